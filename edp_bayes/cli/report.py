"""What an auditor wants to know, as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from edp_bayes.characters import clean
from edp_bayes.cli.answering import print_verdict
from edp_bayes.interval.response_intervals import WIDTHS
from edp_bayes.report.sections import curves, records
from edp_bayes.report.sections.rules import rules_held
from edp_bayes.results.describing import failed_of
from edp_bayes.results.effects import ADVISES, WITHHOLDS
from edp_bayes.results.joint import JointAudit
from edp_bayes.results.summaries import (
    by_risk,
    contributions_shown,
    individual_intervals,
    interval,
    most_total,
)
from edp_bayes.utils.formatting import percent, risk, risk_limit, short
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.auditing.cells import Cells
    from edp_bayes.results.base import IndividualCurves, PrivacyCurves
    from edp_bayes.results.composition import ComposedAudit
    from edp_bayes.results.query import Audit
    from edp_bayes.results.verdict import Verdict

__all__ = [
    "crossings",
    "diagnostics",
    "positions",
    "print_cells",
    "print_parts",
    "print_published",
    "print_releases",
    "print_report",
    "print_rules",
]

EPSILONS = 6
INDIVIDUALS = 5
WORST = 20  # cells
# Checks whose sentence is worth reading when they passed.
TOLD = ("convergence", "out-of-sample", "overdispersion")

# How what a failed check does is shown.
EFFECT_STYLES = {WITHHOLDS: "bold red", ADVISES: "bold yellow"}

COLUMNS = (
    "delta: largest risk of one individual. delta*: risk that anybody is exposed, were "
    "individuals exposed independently. Whatever the dependence, it is at least delta and at most "
    "the sum of all risks; the last column is the upper end of the {prob} simultaneous band of "
    "that sum."
)
INTERVALS = (
    "level: probability that the response differs from its median by at most width times that "
    "median. It says how well the response can be guessed; delta says what it tells of individuals."
)
TOGETHER = "Contributions are in standard deviations of all answers together."
# How sentences begin on what may not carry over to several databases.
COMPOSED = ("Later databases", "All databases")
REST = "Responses are less what insiders contributed."


def print_report(
    audit: Audit,
    console: Console,
    *,
    prob: float,
    verdict: Verdict | None = None,
    verbose: bool = True,
    start: str = "",
) -> None:
    """Print the verdict in the first line and the table of risks; the rest where it is asked for.

    Each table stands under a line that says which kind of interval it holds, of what probability.

    Parameters
    ----------
    audit : Audit
        What to print.
    console : rich.console.Console
        Where to.
    prob : float
        Probability of every interval and band.
    verdict : Verdict, optional
        Of its target; of the default one if not given.
    verbose : bool
        Also how it was made, the riskiest individuals, other tables and all checks in words.
    start : str
        What the first line begins with.
    """
    if start:
        console.print()
    verdict = audit.verdict(prob=prob) if verdict is None else verdict
    print_verdict(verdict, console, start=start)
    first = float(audit.epsilon[0])
    tailed = f"median and {percent(prob)} equal-tailed interval"
    title = f"Risk by epsilon: median and {percent(prob)} simultaneous band"
    risks = (title, _risks(audit, prob, verdict.epsilon))
    if not verbose:
        print_parts((risks, (None, _counted(audit))), console)
        return
    parts = (
        (None, _header(audit)),
        risks,
        (None, Text(COLUMNS.format(prob=percent(prob)))),
        (f"Epsilon at which delta falls to a target: {tailed}", crossings(audit, prob)),
        (
            f"Riskiest individuals at epsilon = {first:.4g}: {tailed}",
            _individuals(audit, prob, first),
        ),
        *_last(audit, prob, tailed),
        (None, diagnostics(audit)),
    )
    print_parts(parts, console)


def _counted(audit: PrivacyCurves) -> Text:
    """Return how many checks failed, by what that does, and how to read them."""
    failed = [one for one in audit.outcomes if one.passed is False]
    if not failed:
        return Text("No check failed. --verbose prints them, and all tables.")
    counts = (
        f"{sum(one.effect == effect for one in failed)} {words} ({failed_of(failed, effect)})"
        for effect, words in ((WITHHOLDS, "of which a failure withholds"), (ADVISES, "advising"))
        if any(one.effect == effect for one in failed)
    )
    return Text(f"Failed checks: {', '.join(counts)}. --verbose prints them, and all tables.")


def print_releases(
    releases: ComposedAudit, console: Console, *, prob: float, verdict: Verdict, verbose: bool
) -> None:
    """Print the risks of several releases, and what they rest on."""
    doubts = [str(one) for one in releases.warnings if str(one).startswith(COMPOSED)]
    said = [releases.hypotheses, releases.settings["assumed"], *doubts]
    title = f"{releases.databases:,} fresh databases: median and {percent(prob)} simultaneous band"
    console.print()
    print_verdict(verdict, console, start=f"{releases.databases:,} fresh databases. ")
    parts = ((title, _risks(releases, prob)),) if verbose else ()
    print_parts((*parts, (None, Text(" ".join(said)))), console)


def print_published(
    audit: Audit, console: Console, *, prob: float, verdict: Verdict, verbose: bool
) -> None:
    """Print the risks of what is published of the answer."""
    words = audit.settings["released"]["words"]
    title = f"The answer {words}: median and {percent(prob)} simultaneous band"
    print_verdict(verdict, console, start=f"The answer {words}. ")
    if verbose:
        print_parts(((title, _risks(audit, prob)),), console)


def print_rules(rules: pd.DataFrame, console: Console) -> None:
    """Print which customary rules are passed, and the limit of delta before and after each."""
    table = Table()
    table.add_column("rule", overflow="fold")
    for head in ("passed", "limit of delta", "after the rule"):
        table.add_column(head, justify="right")
    held = rules_held(rules)
    for row in held.rows:
        table.add_row(Text(row.rule), row.passed, row.before, row.after)
    title = f"Rules of disclosure control, and delta at epsilon = {held.epsilon:.4g}"
    print_parts(((title, table), (None, Text(held.meaning))), console)


def print_cells(cells: Cells, console: Console) -> None:
    """Print the worst cell in the first line, what all say together, and the worst few."""
    by = cells.by
    _, line = cells.headline(lambda row: str(row["sentence"]))
    console.print(Text(clean(line), style="bold"))
    console.print(Text(str(cells)))
    table = Table()
    for head in (*by, "individuals", "status", "limit of\ndelta", "target"):
        table.add_column(head, overflow="fold")
    for _, row in cells.table.head(WORST).iterrows():
        limit = "" if np.isnan(row["limit"]) else risk_limit(float(row["limit"]))
        cell = [short(clean(str(row[name]))) for name in by]
        table.add_row(*cell, f"{row['individuals']:,}", row["status"], limit, risk(row["delta"]))
    title = f"The worst {min(WORST, len(cells.table))} of {len(cells.table):,} cells"
    print_parts(((title, table),), console)


def print_parts(parts: Iterable[tuple[str | None, RenderableType]], console: Console) -> None:
    """Print each part under its title, an empty line before it."""
    for title, part in parts:
        console.print()
        if title is not None:
            console.print(Text(title, style="bold"))
        console.print(part)


def _header(audit: Audit) -> Table:
    settings = audit.settings
    told = settings.get("insiders", 0)
    rows = {
        "Query": f"{settings['query']}",
        "Data": f"{settings['databases']:,} databases, {settings['individuals']:,} individuals"
        + (f" beside {told:,} insiders" if told else ""),
        "Fingerprint": f"{settings['fingerprint'][:16]}",
        "Model": f"{settings['model']}",
        "Draws": f"{settings['chains']} chains of {settings['draws']}, {settings['sampler']}",
        "Seed": f"{settings['random_seed']}",
    }
    if audit.transform:
        rows["Scale"] = f"modelled as {audit.scaled('the answer')}; risks are those of the answer"
    if audit.at_atoms:
        rows["Atoms"] = f"{audit.at_atoms}; the density is that of all others"
    if audit.against:
        rows["Against"] = audit.against
        rows["Database"] = settings["at"]
    grid = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        grid.add_row(Text(name, style="bold"), Text(value))
    return grid


def _risks(audit: IndividualCurves, prob: float, at: float | None = None) -> Table:
    """Return both risks at some epsilons of the grid, and at this one if it is there."""
    table = Table()
    heads = ("epsilon", "delta", "band", "delta*", "band", "sum at\nmost")
    for head in heads:
        table.add_column(head, justify="right")
    delta, total = (audit.band(name, prob=prob) for name in ("delta", "total_risk"))
    bound = most_total(audit, prob)
    exact = audit.exact_zeros
    own: Any = (
        () if at is None else np.flatnonzero(np.isclose(audit.epsilon, at, rtol=1e-9, atol=0.0))
    )
    for k in sorted({*positions(audit.epsilon.size), *map(int, own)}):
        cells = [f"{float(audit.epsilon[k]):.4g}"]
        for band in (delta, total):
            lower, middle, upper = (float(band[name][k]) for name in ("lower", "median", "upper"))
            ends = " to ".join(risk(end, exact=exact) for end in (lower, upper))
            cells += [risk(middle, exact=exact), ends]
        table.add_row(*cells, risk_limit(float(bound[k]), exact=exact))
    return table


def crossings(audit: PrivacyCurves, prob: float) -> Table:
    """Return the epsilon at which delta falls to each target."""
    table = Table()
    for head in ("delta", "epsilon", "interval"):
        table.add_column(head, justify="right")
    for found in curves.crossings(audit, prob):
        lower, middle, upper = found.words
        table.add_row(f"{found.target:g}", middle, " to ".join(dict.fromkeys((lower, upper))))
    return table


def _last(audit: Audit, prob: float, tailed: str) -> tuple[tuple[str | None, Any], ...]:
    """Return what stands before the checks: intervals, or the combination of several queries."""
    if audit.joint:
        together = JointAudit(audit.tree)
        name = short(clean(str(together.direction["individual"].to_numpy()[0])))
        said = (
            f"The combination of the answers that exposes {name} most: {together.direction_of()}."
        )
        return ((None, Text(f"{said} {TOGETHER}")),)
    if not audit.intervals_known:
        return ()
    return (
        (f"Within a relative width of the median response: {tailed}", _intervals(audit, prob)),
        (None, Text(INTERVALS + (f" {REST}" if audit.less_insiders else ""))),
    )


def _individuals(audit: Audit, prob: float, epsilon: float) -> Table:
    at = int(np.abs(audit.epsilon.to_numpy() - epsilon).argmin())
    ends = xr.DataArray(
        individual_intervals(audit, at, prob),
        {"individual": audit.individual_delta["individual"].to_numpy()},
        ("individual", "end"),
    )
    draws = ends.isel(individual=by_risk(audit, epsilon))
    if audit.settings.get("not_assessed"):
        assessed = audit.individuals["presence"] > 0
        draws = draws.isel(individual=assessed.sel(individual=draws["individual"]).to_numpy())
    table = Table()
    table.add_column("individual", overflow="fold")
    contribution, name = contributions_shown(audit)
    for head in (
        "delta_i",
        "interval",
        "databases\npresent",
        "last\nseen",
        name.replace(" ", "\n"),
    ):
        table.add_column(head, justify="right")
    for k in range(min(INDIVIDUALS, draws.sizes["individual"])):
        one = draws.isel(individual=k)
        lower, middle, upper = one.to_numpy().tolist()
        label = one["individual"].values
        facts, most = audit.individuals.sel(individual=label), contribution.sel(individual=label)
        exact = audit.exact_zeros or float(most) == 0.0
        table.add_row(
            Text(short(clean(str(one["individual"].values)))),
            risk(middle, exact=exact),
            f"{risk(lower, exact=exact)} to {risk(upper, exact=exact)}",
            f"{int(facts['presence'])}",
            Text(clean(str(facts["last_seen"].values))),
            f"{float(most):.4g}",
        )
    return table


def diagnostics(audit: PrivacyCurves) -> Table:
    """Return every failed check in its own words, then what could not be tested or passed.

    Each says what its failure does: it withholds the verdict, or it advises.
    """
    rows = records.checks(audit, str)
    grid = Table.grid(padding=(0, 2))
    failed = {row.sentence: row.effect for row in rows if row.passed is False}
    read = ": read them before relying on any number above." if failed else "."
    verdict = audit.failures[0].upper() + audit.failures[1:] + read
    grid.add_row(Text("Checks", style="bold"), Text(verdict, style="bold"))
    for effect in EFFECT_STYLES:
        for sentence in (said for said, one in failed.items() if one == effect):
            grid.add_row(Text(effect.upper(), style=EFFECT_STYLES[effect]), Text(sentence))
    for row in rows:
        if row.passed is None:
            words = Text(f"{row.name} ({row.effect}): {row.sentence}")
            grid.add_row(Text("not tested", style="bold"), words)
    passed = [row for row in rows if row.passed]
    for row in passed:
        if row.name.startswith(TOLD):
            words = Text(f"{row.name} ({row.effect}): {row.sentence}")
            grid.add_row(Text("passed", style="green"), words)
    for effect, words_of in ((WITHHOLDS, "withhold"), (ADVISES, "advise")):
        others = [
            row.name for row in passed if row.effect == effect and not row.name.startswith(TOLD)
        ]
        if others:
            said = Text(f"{'; '.join(others)} (would {words_of}).")
            grid.add_row(Text("passed", style="green"), said)
    return grid


def _intervals(audit: Audit, prob: float) -> Table:
    table = Table()
    for head in ("width", "level", "interval"):
        table.add_column(head, justify="right")
    level = audit.interval_level(WIDTHS)
    for k, width in enumerate(WIDTHS):
        lower, middle, upper = interval(level.isel(width=k), prob)
        table.add_row(f"{width:g}", f"{middle:.3g}", f"{lower:.3g} to {upper:.3g}")
    return table


def positions(size: int) -> list[int]:
    """Return the places on a grid that are printed.

    Examples
    --------
    >>> positions(51)
    [0, 10, 20, 30, 40, 50]
    """
    return [int(k) for k in spread_evenly(size, EPSILONS)]
