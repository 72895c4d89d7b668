"""One run from the table to the folder of results."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.cli.answering import exit_code, severity, write_record
from edp_bayes.cli.failing import refuse_interrupted
from edp_bayes.cli.run import STORE, Keys, Run
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.responses.responses import Responses
    from edp_bayes.results.query import Audit
    from edp_bayes.results.tried import Tried
    from edp_bayes.results.verdict import Verdict

__all__ = ["audit_databases"]


def audit_databases(
    load: Callable[[], Any],
    keys: Keys,
    run: Run,
    *,
    about: str = "",
) -> int:
    """Read a table, audit the query, print what an auditor wants to know and write the files.

    Parameters
    ----------
    load : callable
        Returns the table or its path.
    keys : Keys
        How its rows become databases.
    run : Run
        What was asked for.
    about : str
        Where the data are from and against whom they are audited.

    Returns
    -------
    int
        0, or under --check what the verdict is; see `edp_bayes.cli.answering.CODES`.
    """
    from edp_bayes import audit, disclosure, plan
    from edp_bayes.auditing.disclosure import require_rules
    from edp_bayes.auditing.released import audit_released
    from edp_bayes.auditing.store import remove
    from edp_bayes.cli import folder, report
    from edp_bayes.cli.adversary_options import adversary_of, sentence
    from edp_bayes.cli.cell_work import audit_table
    from edp_bayes.cli.keys import pseudonym_key
    from edp_bayes.cli.labelling import label_of
    from edp_bayes.cli.noise_work import DEMO
    from edp_bayes.releases.carry_over import OTHERS, RELEASED
    from edp_bayes.responses.databases import Databases
    from edp_bayes.responses.responses import Responses
    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.verdict import NOT_MET, UNDECIDED
    from edp_bayes.results.verdict_record import record
    from edp_bayes.tables.packed import STDIN

    if len(run.query) > 1:
        _refuse_alone(run)
    console = terminal(quiet=run.quiet)
    show = console.is_terminal and not run.quiet
    with warnings.catch_warnings():
        # Each of them is printed with the diagnostics.
        warnings.simplefilter("ignore", EdpBayesWarning)
        # The verdict stands in the first line: what is read and begun goes elsewhere.
        notes = console if run.verbose else terminal(stderr=True, quiet=not show)
        if about:
            notes.print(f"{about}\n")
        reports = [] if run.report is None else [run.report]
        folder.remove_unfinished([*(run.out / name for name in folder.RESULTS), *reports], console)
        table = load()
        databases = Databases.from_table(table, **asdict(keys))
        _refuse_moments(databases.too_fine)
        adversary = adversary_of(run.knows, databases, keys, run.seed, run.published)
        if run.by:
            return audit_table(databases, adversary, run, console, show=show)
        at = run.knows.at
        at = None if at is None else label_of(at, databases.database, "--at", "database")
        answers = [
            databases.respond(
                query,
                step=run.step,
                progressbar=show,
                collect=run.collect,
                transform=run.transform,
                atoms=run.atoms,
            )
            for query in run.query
        ]
        responses = answers[0] if len(answers) == 1 else Responses.join(*answers)
        if run.rules and isinstance(responses, Responses):
            require_rules(responses)
        names = [label_of(n, responses.individual, "--name", "individual") for n in run.names]
        notes.print(
            f"{responses.n_databases:,} databases ({', '.join(keys.database)}) and "
            f"{responses.n_individuals:,} individuals ({', '.join(keys.individual)}) are read."
        )
        if not about:
            notes.print(sentence(run.knows, databases, adversary))
        if responses.read_as:
            notes.print(responses.read_as)
        for doubt in responses.warnings:
            notes.print(f"WARNING  {doubt}")
        if line := folder.store_found(run.out / STORE, resume=run.resume):
            notes.print(line)
        notes.print("Sampling; the first run also compiles code.")
        found = audit(
            responses,
            epsilon=run.epsilon,
            adversary=adversary,
            at=at,
            individuals=names,
            keep=run.keep,
            progressbar=show,
            executor=run.where,
            store=run.store,
            keep_store=True,
            **run.sampling,
        )
        refuse_interrupted()
        if run.release is not None:
            found = found.with_release(run.release)
        # An audit holds no contributions: `edp-bayes noise` reads them again, from a table of this
        # name. Its path says more about the user than a result to hand on should.
        source = asdict(keys)
        if not isinstance(table, str):
            source["table"] = DEMO
        elif "://" not in table and table != STDIN:
            source["table"] = Path(table).name
        found.tree.attrs["source"] = json.dumps(source)
        epsilon, delta = run.target or (None, None)
        answer = partial(PrivacyCurves.verdict, epsilon=epsilon, delta=delta, prob=PROB)
        verdict = answer(found)
        unplanned, future = "", None
        if run.plan and verdict.status == UNDECIDED and isinstance(responses, Responses):
            notes.print("Planning: simulated futures show how many databases would decide.")
            try:
                future = plan(
                    responses,
                    delta=verdict.delta,
                    epsilon=verdict.epsilon,
                    kind="pointwise",
                    prob=PROB,
                    model=run.model,
                    adversary=adversary,
                    random_seed=run.seed,
                    progressbar=show,
                )
            except InvalidInputError as error:  # the audit is not lost for it
                unplanned = f"\nNo plan: {error}."
        tried = None
        if (
            run.remedies
            and verdict.status in (NOT_MET, UNDECIDED)
            and isinstance(responses, Responses)
        ):
            notes.print("Trying what would help: rounding, noise, a longer period, a limit.")
            tried = _remedies(found, responses, adversary, at, run, verdict)
            found = found.with_tried(tried)
        if future is not None or tried is not None:
            verdict = answer(found, plan=future)
        # What is published of the answer counts in its place.
        counted: dict[str, tuple[PrivacyCurves, Verdict]] = (
            {} if run.published is not None else {"": (found, verdict)}
        )
        published = None
        if run.published is not None:
            # what is published comes first, and is what a report, releases and a record are of
            published = audit_released(found, run.published, progressbar=show)
            said = answer(published)
            counted["published"] = published, said
            report.print_published(published, console, prob=PROB, verdict=said, verbose=run.verbose)
        report.print_report(
            found,
            console,
            prob=PROB,
            verdict=verdict,
            verbose=run.verbose,
            start="" if published is None else "The whole answer. ",
        )
        if unplanned:
            console.print(unplanned)
        if about and not run.verbose:
            console.print(f"\n{about}")
        hidden = {"key": pseudonym_key(run)} if run.pseudonyms else None
        composed = None
        if run.databases is not None:
            composed = (found if published is None else published).compose(
                run.databases, past=OTHERS if run.carry_over else RELEASED, progressbar=show
            )
            said = answer(composed)
            counted["composed"] = composed, said
            report.print_releases(composed, console, prob=PROB, verdict=said, verbose=run.verbose)
        rules = None
        if run.rules and isinstance(responses, Responses):
            rules = disclosure(responses, audit=found, epsilon=verdict.epsilon, rules=run.rules)
            report.print_rules(rules, console)
        bare = published
        if published is not None and hidden is not None:
            bare = published.with_pseudonyms(**hidden)
        written = folder.write(
            found if hidden is None else found.with_pseudonyms(**hidden),
            run.out,
            prob=PROB,
            zarr=run.zarr,
            show=show,
            report=run.report,
            reported=bare,
            report_names=run.report_names,
            target=run.target,
            releases=composed,
            rules=rules,
        )
        if composed is not None:
            whole = composed if hidden is None else composed.with_pseudonyms(**hidden)
            written.append(whole.save(run.out / folder.composed_name(zarr=run.zarr)))
        if bare is not None:
            written.append(bare.save(run.out / folder.published_name(zarr=run.zarr)))
        if rules is not None:
            written.append(folder.write_table(rules, run.out / folder.RULES))
        if tried is not None:
            written.append(folder.write_table(tried.table, run.out / folder.REMEDIES))
        if run.json is not None:
            decisive, said = max(counted.values(), key=lambda one: severity(one[1].status))
            bare_record = decisive if hidden is None else decisive.with_pseudonyms(**hidden)
            named = said if hidden is None else answer(bare_record)
            written.append(write_record(record(bare_record, named), run.json))
        if run.store is not None and not run.keep_store:
            remove(run.store)
    if run.pseudonyms:
        kept = "nowhere" if run.pseudonym_key is None else f"in {run.pseudonym_key}"
        console.print(f"\nThe secret key of the pseudonyms is kept {kept}.")
    inside = ", ".join(path.name for path in written if path.parent == run.out)
    console.print(f"\nWritten to {run.out}: {inside}.")
    for path in written:
        if path.parent != run.out:
            console.print(f"Written beside it: {path.resolve()}")
    return exit_code((said.status for _, said in counted.values()), check=run.check)


def _remedies(
    found: Audit,
    responses: Responses,
    adversary: Adversary | None,
    at: Any,
    run: Run,
    verdict: Verdict,
) -> Tried:
    """Try what would help, by audits as this one was."""
    from edp_bayes import remedies

    return remedies(
        found,
        responses,
        epsilon=verdict.epsilon,
        delta=verdict.delta,
        prob=PROB,
        adversary=adversary,
        progressbar=terminal(quiet=run.quiet).is_terminal,
        at=at,
        only_largest=True,
        **run.sampling,
    )


def _refuse_alone(run: Run) -> None:
    """Refuse, before any long work, what is for an audit of one query alone."""
    for option, given in (
        ("--step", isinstance(run.step, float)),
        ("--rounded-to, --threshold and --bins", run.published is not None),
        ("--collect", run.collect is not None),
        ("--transform", run.transform is not None),
        ("--atoms", run.atoms is not None),
        ("--rules and --rule", run.rules),
        ("--plan", run.plan),
        ("--remedies", run.remedies),
    ):
        if given:
            raise InvalidInputError(
                f"{option} {'are' if ' and ' in option else 'is'} for one query, found "
                f"{len(run.query)}: leave it out, or give one --query"
            )


def _refuse_moments(too_fine: str) -> None:
    """Refuse databases of so few records that every risk looks small, before any long work."""
    if too_fine:
        raise InvalidInputError(
            f"{too_fine}; give --database-every week, for dates or times, or a key column of "
            "longer periods"
        )
