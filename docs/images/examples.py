"""Draw the pictures of docs/examples from the code of the pages themselves.

Run `uv run python docs/images/examples.py`, or with names of pages such as `retail`.
"""

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import edp_bayes as edp

HERE = Path(__file__).parent
Scope = dict[str, Any]


def run(page: str) -> Scope:
    """Return the names that the code of a page leaves."""
    text = (HERE.parent / "examples" / f"{page}.md").read_text(encoding="utf-8")
    scope: Scope = {}
    for cell in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(cell, scope)
    return scope


def limit(audit: Any) -> float:
    """Return the upper limit of delta at the first epsilon."""
    return float(audit.upper()[0])


def health_counts(scope: Scope) -> Figure:
    """Upper limits of delta by area, of whole counts and of rounded ones."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    areas = ["north", "south", "islands"]
    for k, (name, cells) in enumerate(
        (("whole counts", scope["whole"]), ("below 8 redacted, rounded to 5", scope["rounded"]))
    ):
        table = cells.table.set_index("area")["limit"]
        axes.bar(np.arange(3) + 0.35 * k, table[areas], width=0.33, label=name)
    axes.axhline(0.1, color="k", ls=":", label="target")
    axes.set_xticks(np.arange(3) + 0.175, areas)
    axes.set(ylabel="upper limit of delta(0.5)")
    axes.legend(frameon=False, loc="upper left")
    return figure


def energy_meters(scope: Scope) -> Figure:
    """The season, and what four audits say."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    week, total = np.arange(scope["weeks"].size), scope["kwh"].sum(axis=1) / 1000
    left.plot(week, total, color="0.4", label="all meters")
    left.plot(week, scope["kwh"][:, 0] / 1000, color="C3", label="the largest meter")
    left.set(xlabel="week", ylabel="consumption in MWh", ylim=(0, 1.35 * total.max()))
    left.legend(frameon=False, loc="upper left", ncols=2)
    audits = {**scope["audits"], "each meter capped": scope["remedy"]}
    for k, audit in enumerate(audits.values()):
        doubtful = bool(audit.withheld_by)
        right.barh(k, limit(audit), color="0.8" if doubtful else "C0", hatch="//" * doubtful)
    right.axvline(0.1, color="k", ls=":")
    right.set_yticks(range(len(audits)), audits)
    right.invert_yaxis()
    right.set(xlabel="upper limit of delta(0.5)", title="hatched: withheld; dotted: the target")
    return figure


def mobility_counts(scope: Scope) -> Figure:
    """Two counts and their difference."""
    figure, (top, below) = plt.subplots(2, 1, figsize=(8, 3.8), layout="constrained", sharex=True)
    count = scope["count"]
    top.step(count.index, count["entered"], where="mid", label="entered")
    top.step(count.index, count["left"], where="mid", label="left", ls="--")
    top.set(ylabel="phones, three zones", ylim=(0, None))
    top.legend(frameon=False, ncols=2)
    below.bar(count.index, scope["difference"], color="C3")
    below.set(xlabel="day", ylabel="entered - left")
    return figure


def retail(scope: Scope) -> Figure:
    """The dealer in the revenue, and what a limit on each customer does."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    by = scope["sales"].assign(dealer=scope["sales"]["customer"] == 0)
    by = by.groupby(["week", "dealer"])["dollars"].sum().unstack(fill_value=0.0) / 1000
    week = np.arange(1, len(by) + 1)
    left.bar(week, by[False], width=1.0, color="0.8", label="all others")
    left.bar(week, by[True], width=1.0, bottom=by[False], color="C3", label="the dealer")
    left.set(xlabel="week", ylabel="revenue in thousand dollars")
    left.legend(frameon=False)
    audits = {"all of the revenue": scope["audit"], "at most 150 dollars each": scope["remedy"]}
    for k, audit in enumerate(audits.values()):
        right.barh(k, limit(audit), color="C0")
    right.axvline(0.1, color="k", ls=":", label="target")
    right.set_yticks(range(len(audits)), audits)
    right.invert_yaxis()
    right.set(xlabel="upper limit of delta(0.5)")
    right.legend(frameon=False, loc="lower right")
    return figure


def official_statistics(scope: Scope) -> Figure:
    """The total, and the risk of every firm."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    years, turnover = scope["years"], scope["turnover"]
    rest = turnover[:, 1:].sum(axis=1)
    left.bar(years, rest, width=1.0, color="0.8", label="eleven firms")
    left.bar(years, turnover[:, 0], width=1.0, bottom=rest, color="C3", label="the largest firm")
    left.set(xlabel="year", ylabel="turnover", ylim=(0, 1.35 * turnover.sum(axis=1).max()))
    left.legend(frameon=False, ncols=2, loc="upper left")
    firms = scope["total"].individual
    right.bar(range(1, firms.size + 1), scope["risk"][firms])
    right.axhline(0.05, color="k", ls=":", label="target")
    right.set(xlabel="firm", ylabel="mean of delta_i(1)", ylim=(0, 1))
    right.legend(frameon=False)
    return figure


def black_box(scope: Scope) -> Figure:
    """Both curves with their bands."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for k, (unit, (audit, _)) in enumerate(scope["found"].items()):
        band = audit.band("delta", prob=0.95)
        axes.fill_between(band["epsilon"], band["lower"], band["upper"], alpha=0.3, color=f"C{k}")
        axes.plot(band["epsilon"], band["median"], color=f"C{k}", label=unit)
    axes.plot([0.5], [0.0], "k^", label="the claim: epsilon = 0.5, delta = 0", clip_on=False)
    axes.set(xlabel="epsilon", ylabel="delta, with 95% band", ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def comparison(scope: Scope) -> Figure:
    """Noise that three tools ask for, and the spread of the answer."""
    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    needed = scope["needed"]
    axes.barh(list(needed), list(needed.values()), color="C0")
    axes.axvline(scope["weekly"].response.std(), color="k", ls=":", label="spread of the answer")
    axes.invert_yaxis()
    axes.set(xlabel="scale of Gaussian noise in dollars, for delta(0.5) at most 0.1")
    axes.legend(frameon=False, loc="lower left")
    return figure


PICTURES: dict[str, Callable[[Scope], Figure]] = {
    draw.__name__: draw
    for draw in (
        health_counts, energy_meters, mobility_counts, retail, official_statistics, black_box,
        comparison,
    )
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore", edp.EdpBayesWarning)
    for page in sys.argv[1:] or PICTURES:
        figure = PICTURES[page](run(page))
        figure.savefig(HERE / f"example_{page}.png", dpi=110)
        plt.close(figure)
