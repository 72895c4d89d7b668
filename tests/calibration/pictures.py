"""The pictures of docs/calibration.md: ``uv run python -m tests.calibration.pictures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from edp_bayes.plots import style
from tests.calibration import failures, given, information, study

FOLDER = Path(__file__).parents[2] / "docs" / "images"
DEFAULT, BEFORE = "dirichlet process", "one rate"
BLUE, ORANGE = style.COLOURS[:2]
GREY = "0.6"
MARKS = "os^Dv"  # beside colours, for prints in grey


def main() -> None:
    table = study.pooled(pd.read_csv(study.RESULTS))
    found = pd.read_csv(failures.RESULTS)
    with style.context():
        by_side(table, found)
        widths(table)
        exposed(found)
        distributions(found)
        known(pd.read_csv(given.RESULTS))


def save(name: str) -> None:
    plt.savefig(FOLDER / f"calibration_{name}.png", dpi=110)
    plt.close()


def by_side(table: pd.DataFrame, found: pd.DataFrame) -> None:
    """Share of repetitions with the truth above and below the band, by group of cells."""
    default = found[found["method"] == "default"]
    rows = [
        (f"{group}, n = {n}", part["band_below"].mean(), (1 - part["covers"] - part["band_below"]))
        for (group, n), part in default.groupby(["group", "n"], sort=False)
    ]
    main_study = table[table["method"] == DEFAULT]
    rows += [
        (f"population {m:,}, n = {n}", part["truth_above"].mean(), part["truth_below"])
        for (m, n), part in main_study.groupby(["population", "n"], sort=False)
    ]
    _, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for k, (_, above, below) in enumerate(rows):
        axes.barh(k, -100 * above, color=ORANGE)
        axes.barh(k, 100 * float(np.mean(below)), color=BLUE, hatch="//", edgecolor="white")
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.axvline(-2.5, color=GREY, lw=0.8)
    axes.axvline(2.5, color=GREY, lw=0.8)
    axes.set_xlabel("truth above the band (left) and below it (right), % of repetitions")
    save("sides")


def widths(table: pd.DataFrame) -> None:
    """Width of the default's band over the bound of who knows the family."""
    one = table[(table["population"] == 1) & table["method"].isin([DEFAULT, BEFORE])]
    one = one[one["n"] == 41]
    wide = one.pivot(index=[*information.KEYS, "n"], columns="method", values="width").reset_index()
    wide = wide.dropna().merge(information.bounds(wide[information.KEYS]), on=information.KEYS)
    bound = information.NORMAL * wide["family"] / np.sqrt(wide["n"].astype(float))
    _, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for method, colour, mark in ((BEFORE, "0.6", "^"), (DEFAULT, BLUE, ".")):
        name = "default" if method == DEFAULT else "one rate for all components"
        axes.loglog(bound, wide[method], mark, ms=4, color=colour, label=name)
    ends = np.array([bound.min(), bound.max()])
    axes.loglog(ends, ends, color=GREY, lw=0.8)
    axes.set_xlabel("width that knowing the family would give")
    axes.set_ylabel("median width of the 95% band")
    axes.figure.legend(loc="outside lower center", ncols=3)
    save("widths")


def exposed(found: pd.DataFrame) -> None:
    """Upper limits of the exposed against the truth."""
    part = found[(found["method"] == "default") & (found["group"] != "distributions")]
    _, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    for (group, cells), mark in zip(part.groupby("group", sort=False), MARKS, strict=False):
        axes.loglog(cells["truth"], cells["limit"], mark, ms=4, label=group)
    ends = np.array([part["truth"].min(), 1.0])
    axes.loglog(ends, ends, color=GREY, lw=0.8)
    axes.set_xlabel("true delta of the individual")
    axes.set_ylabel("median upper limit of 95%")
    axes.figure.legend(loc="outside lower center", ncols=3)
    save("exposed")


def distributions(found: pd.DataFrame) -> None:
    """How often the upper limit holds, by distribution and number of databases."""
    part = found[(found["method"] == "default") & (found["group"] == "distributions")]
    sizes = sorted(part["n"].unique())
    _, panels = plt.subplots(
        1, len(sizes), figsize=(7.6, 3.2), sharey=True, sharex=True, layout="constrained"
    )
    distributions = list(dict.fromkeys(part["distribution"]))
    for axes, n in zip(np.atleast_1d(panels), sizes, strict=True):
        _one_size(axes, part[part["n"] == n], distributions)
        axes.set_title(f"n = {n}", fontsize=9)
    np.atleast_1d(panels)[0].set_yticks(range(len(distributions)), distributions)
    np.atleast_1d(panels)[0].invert_yaxis()
    np.atleast_1d(panels)[len(sizes) // 2].set_xlabel(
        "share of repetitions in which the upper limit of 95% holds, one point a cell"
    )
    save("distributions")


def _one_size(axes: Axes, cells: pd.DataFrame, distributions: list[str]) -> None:
    for k, distribution in enumerate(distributions):
        holds = cells.loc[cells["distribution"] == distribution, "limit_holds"]
        axes.plot(holds, np.full(holds.size, k), ".", color=BLUE, alpha=0.5)
    axes.axvline(0.95, color=GREY, lw=0.8)


def known(table: pd.DataFrame) -> None:
    """Share of repetitions with the band below the truth, by process and adversary."""
    part = table[(table["n"] == 150) & (table["innovations"] == "normal") & (table["size"] == 0.4)]
    processes = [name for name in given.PROCESSES if name in set(part["process"])]
    _, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    looks = (
        ("plain", "no adversary", "0.6", "s"),
        ("without", "adversary who misses something", ORANGE, "^"),
        ("given", "adversary who knows the process", BLUE, "o"),
    )
    for method, name, colour, mark in looks:
        below = part[part["method"] == method].groupby("process")["band_below"].max()
        places = [processes.index(process) for process in below.index]
        axes.plot(100 * below, places, mark, color=colour, label=name, clip_on=False, zorder=3)
    axes.axvline(5.0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(processes)), processes)
    axes.invert_yaxis()
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("95% band wholly below the truth, % of repetitions, the worst epsilon")
    axes.figure.legend(loc="outside lower center", ncols=3)
    save("given")


if __name__ == "__main__":
    main()
