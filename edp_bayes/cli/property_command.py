"""`edp-bayes property`: the privacy curve of a property query, from pi or from counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edp_bayes.cli import options
from edp_bayes.cli.answering import (
    exit_code,
    parse_target,
    print_verdict,
    require_record,
    with_target,
    write_record,
)
from edp_bayes.cli.texts import parse_epsilon
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import CHAINS, DRAWS, PROB
from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from edp_bayes.property_audit.models import ProbabilityModel
    from edp_bayes.results.property import PropertyAudit
    from edp_bayes.statistical_privacy import PropertyQuery

__all__ = ["property_"]

MODELS = ("auto", "binomial", "beta-binomial")


def property_(
    n: Annotated[str, typer.Option("--n", help="Entries of the database, or of each: a,b.")],
    prob: Annotated[
        float | None, typer.Option("--prob", help="Probability pi of the property, if known.")
    ] = None,
    count: Annotated[
        list[str] | None,
        typer.Option(
            "--count", help="Positives in place of pi; of several databases a,b; or NAME=a,b."
        ),
    ] = None,
    epsilon: options.Epsilon = "0:0.5:51",
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            help="gaussian:NU or laplace:NU (NU on the count), subsampling:SIZE or :RATE; joined "
            "by +.",
        ),
    ] = None,
    known: Annotated[int, typer.Option("--known", help="Entries the adversary knows.")] = 0,
    known_positive: Annotated[
        int | None, typer.Option("--known-positive", help="How many of them are positive.")
    ] = None,
    released_n: Annotated[
        int | None,
        typer.Option("--released-n", help="Entries of the one released; else the smallest --n."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="auto (the default), binomial or beta-binomial.")
    ] = None,
    out: options.Out[Path | None] = None,
    seed: options.Seed = None,
    draws: options.Draws = None,
    chains: options.Chains = None,
    target: options.Target = None,
    check: options.Check = False,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Print the privacy curve of a share of positives, of a known pi or with its posterior."""
    from edp_bayes.cli.folder import require_writable
    from edp_bayes.cli.numbers import parse_counts, parse_integers, parse_mechanism
    from edp_bayes.statistical_privacy import PropertyQuery, arguments

    if (prob is None) == (not count):
        raise InvalidInputError("exactly one of --prob and --count must be given")
    aim = parse_target(target, check=check)
    grid = with_target(parse_epsilon(epsilon), aim)
    entries = parse_integers(n, "--n")
    arguments.sizes(entries, "--n", 2)
    chosen = _model("auto" if model is None else model)
    steps = parse_mechanism(mechanism, min(entries) if released_n is None else released_n)
    console = terminal(quiet=quiet)
    if prob is not None:
        sampled = {"--released-n": released_n, "--model": model}
        sampled |= {"--json": None if json is None else str(json)}
        sampled |= {"--seed": seed, "--draws": draws, "--chains": chains}
        idle = [option for option, value in sampled.items() if value is not None]
        if idle:
            raise InvalidInputError(
                f"{', '.join(idle)} must be left out where --prob is given: nothing is sampled"
            )
        if len(entries) > 1:
            raise InvalidInputError(f"--n must be one number where --prob is given, found {n!r}")
        query = PropertyQuery(entries[0], prob, steps, known, known_positive)
        if out is not None:
            require_writable(out)
        return _known_probability(query, grid, out, console, aim=aim, check=check)
    if out is not None:
        require_writable(out)
    require_record(json)
    return _posterior(
        {
            "count": parse_counts(count or []),
            "n": entries if len(entries) > 1 else entries[0],
            "epsilon": grid,
            "mechanism": steps,
            "known": known,
            "known_positive": known_positive,
            "released_n": released_n,
            "model": chosen,
            "draws": DRAWS if draws is None else draws,
            "chains": CHAINS if chains is None else chains,
            "random_seed": seed,
        },
        out,
        console,
        aim=aim,
        check=check,
        json=json,
    )


def _model(text: str) -> ProbabilityModel | None:
    from edp_bayes.property_audit import BetaBinomialModel, BinomialModel

    if text not in MODELS:
        raise InvalidInputError(f"--model must be one of {', '.join(MODELS)}, found {text!r}")
    return {"auto": None, "binomial": BinomialModel(), "beta-binomial": BetaBinomialModel()}[text]


def _known_probability(
    query: PropertyQuery,
    grid: Any,
    out: Path | None,
    console: Console,
    *,
    aim: tuple[float, float] | None,
    check: bool,
) -> int:
    """Print and write the exact curve of a known pi."""
    import numpy as np
    from rich.table import Table

    from edp_bayes.cli.folder import RESOLUTION
    from edp_bayes.cli.report import positions
    from edp_bayes.results.base import TARGETS
    from edp_bayes.results.property import PropertyAudit, who_knows
    from edp_bayes.results.verdict import Target, exact_verdict
    from edp_bayes.utils import files
    from edp_bayes.utils.formatting import risk

    curves = [
        np.asarray(side(epsilon=grid))
        for side in (query.delta_plus, query.delta_minus, query.delta)
    ]
    epsilon, delta = aim or (None, None)
    asked = Target.of(query.n, epsilon=epsilon, delta=delta)
    value = float(query.delta(epsilon=asked.epsilon))
    verdict = exact_verdict(value, asked, PropertyAudit.risk, who_knows(query.known))
    print_verdict(verdict, console)
    console.print(f"n = {query.n:,}, probability {query.prob:g}; exact")
    table = Table()
    for head in ("epsilon", "delta_plus", "delta_minus", "delta"):
        table.add_column(head, justify="right")
    for k in positions(len(grid)):
        table.add_row(f"{grid[k]:.4g}", *(risk(float(curve[k]), exact=True) for curve in curves))
    console.print(table)
    for target in TARGETS:
        console.print(f"delta falls to {target:g} at epsilon {float(query.epsilon_at(target)):.6g}")
    code = exit_code([verdict.status], check=check)
    if out is None:
        return code
    with files.replaced(out / "curve.csv") as temporary:
        np.savetxt(
            temporary,
            np.column_stack([grid, *curves]),
            delimiter=",",
            header="epsilon,delta_plus,delta_minus,delta",
            comments="",
        )
    with files.replaced(out / "delta.png") as temporary:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        from edp_bayes.plots import style

        with style.context():
            figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        query.plot(epsilon=grid, ax=axes)
        figure.savefig(temporary, dpi=RESOLUTION)
        plt.close(figure)
    console.print(f"\nWritten to {out}: curve.csv, delta.png.")
    return code


def _posterior(
    arguments: dict[str, Any],
    out: Path | None,
    console: Console,
    *,
    aim: tuple[float, float] | None,
    check: bool,
    json: Path | None,
) -> int:
    """Audit the counts, print what there is to know and write it."""
    import warnings

    from edp_bayes.cli import folder
    from edp_bayes.cli.failing import refuse_interrupted
    from edp_bayes.exceptions import EdpBayesWarning
    from edp_bayes.property_audit import audit_property
    from edp_bayes.results.verdict_record import record

    show = console.is_terminal and not console.quiet
    with warnings.catch_warnings():
        # Each of them is printed with the diagnostics.
        warnings.simplefilter("ignore", EdpBayesWarning)
        found = audit_property(**arguments, progressbar=show)
        refuse_interrupted()
        epsilon, delta = aim or (None, None)
        verdict = found.verdict(epsilon=epsilon, delta=delta, prob=PROB)
        print_verdict(verdict, console)
        _print(found, console)
        if json is not None:
            write_record(record(found, verdict), json)
        code = exit_code([verdict.status], check=check)
        if out is None:
            return code
        found.save(out / "property.nc")
        folder.write_summary(found, PROB, out / "summary.csv")
        folder._plot(lambda: found.plot_delta(ci_prob=PROB), out / "delta.png")
        found.report(out / "report.html", epsilon=epsilon, delta=delta, prob=PROB)
    console.print(f"\nWritten to {out}: property.nc, summary.csv, delta.png, report.html.")
    return code


def _print(found: PropertyAudit, console: Console) -> None:
    from rich.table import Table

    from edp_bayes.cli.report import (
        crossings,
        diagnostics,
        positions,
        print_parts,
    )
    from edp_bayes.results.summaries import interval
    from edp_bayes.utils.formatting import percent, risk

    settings = found.settings
    console.print(
        f"{settings['query']} of n = {settings['individuals']:,}; counts of "
        f"{settings['databases']} database(s); "
        f"{'dependent' if found.dependent else 'independent'} entries; seed "
        f"{settings['random_seed']}"
    )
    risks = Table()
    for head in ("epsilon", "delta", "band"):
        risks.add_column(head, justify="right")
    band = found.band(prob=PROB)
    for k in positions(found.epsilon.size):
        lower, middle, upper = (float(band[end][k]) for end in ("lower", "median", "upper"))
        risks.add_row(
            f"{float(found.epsilon[k]):.4g}", risk(middle), f"{risk(lower)} to {risk(upper)}"
        )
    shares = Table()
    for head in ("property", "probability", "interval"):
        shares.add_column(head, justify="left" if head == "property" else "right")
    for k, name in enumerate(settings["properties"]):
        lower, middle, upper = interval(found.prob.isel(property=k), PROB)
        shares.add_row(name, f"{middle:.4g}", f"{lower:.4g} to {upper:.4g}")
    tailed = f"median and {percent(PROB)} equal-tailed interval"
    parts = (
        (f"Risk by epsilon: median and {percent(PROB)} simultaneous band", risks),
        (f"Epsilon at which delta falls to a target: {tailed}", crossings(found, PROB)),
        (f"Probability of the property: {tailed}", shares),
        (None, diagnostics(found)),
    )
    print_parts(parts, console)
