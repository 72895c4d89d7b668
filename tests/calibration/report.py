"""The tables of docs/calibration_tables.md, from the results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

PAGE = Path(__file__).parents[2] / "docs" / "calibration_tables.md"
DEFAULT, RIVAL = "dirichlet process", "plug-in bootstrap"
START, END = "<!-- results -->", "<!-- end of results -->"


def write(table: pd.DataFrame) -> None:
    """Put the tables on the page."""
    put(tables(table), START, END)


def put(text: str, start: str, end: str) -> None:
    """Put text between two markers of the page."""
    before, rest = PAGE.read_text().split(start)
    _, after = rest.split(end)
    PAGE.write_text(f"{before}{start}\n\n{text}\n{end}{after}")


def tables(table: pd.DataFrame) -> str:
    parts = [overall(table)]
    for (method, population, quantity), part in table.groupby(
        ["method", "population", "quantity"], sort=False, observed=True
    ):
        low, high = part["repetitions"].min(), part["repetitions"].max()
        count = f"{low}" if low == high else f"{low} to {high}"
        meets = (part["coverage_high"] >= 0.93) & (part["coverage_low"] <= 0.97)
        parts.append(f"### {method}, population {population}, {quantity} ({count} repetitions)\n")
        parts.append(
            f"{len(part)} cells of distribution, n, individual and epsilon; {meets.mean():.0%} "
            f"have a 99% Wilson interval that meets [0.93, 0.97].\n"
        )
        rows = part.groupby("n").agg(
            mean=("coverage", "mean"),
            least=("coverage", "min"),
            most=("coverage", "max"),
            simultaneous=("simultaneous", "mean"),
        )
        parts.append(_markdown(rows, "n"))
        cells = {"index": "distribution", "columns": "n", "values": "coverage"}
        shares = part.pivot_table(**cells, observed=True)
        parts.append(_markdown(shares, "coverage by distribution and n"))
    parts.append(misses(table))
    both = table[table["method"].isin([DEFAULT, RIVAL])]
    for (population, quantity), part in both.groupby(["population", "quantity"], sort=False):
        if part["method"].nunique() == 2:
            parts.append(widths(part, f"population {population}, {quantity}"))
    return "\n".join(parts)


def overall(table: pd.DataFrame) -> str:
    """Average the default and its rival over all cells of each n, whatever the population."""
    parts = []
    for method in (DEFAULT, RIVAL):
        part = table[table["method"] == method]
        rows = part.groupby("n").agg(
            cells=("coverage", "size"),
            mean=("coverage", "mean"),
            simultaneous=("simultaneous", "mean"),
        )
        parts.append(f"### {method}, all populations and quantities\n")
        parts.append(_markdown(rows, "n"))
    return "\n".join(parts)


def misses(table: pd.DataFrame) -> str:
    """List the default's cells that cover too rarely, and count those that do too often."""
    default = table[table["method"] == DEFAULT]
    names = ["population", "quantity", "distribution", "n", "individual", "epsilon"]
    shares = ["coverage", "truth_below", "truth_above"]
    rare = default[default["coverage_high"] < 0.93].sort_values("coverage")
    often = default[default["coverage_low"] > 0.97]
    rows = rare[names].astype(str)
    rows[shares] = rare[shares].map("{:.3f}".format)
    rows["repetitions"] = rare["repetitions"].astype(str)
    rows = rows.rename(columns={"truth_below": "truth below", "truth_above": "truth above"})
    return (
        f"### Cells of {DEFAULT} that miss [0.93, 0.97]\n\n"
        f"By their 99% Wilson intervals, {len(rare)} of {len(default)} cells cover too "
        f"rarely and {len(often)} too often. Those that cover too rarely, with the shares of "
        "repetitions in which the truth was below and above the band:\n\n"
        f"{_lines(rows.columns, rows.to_numpy())}"
    )


def widths(both: pd.DataFrame, what: str) -> str:
    """Compare the default's width with the bootstrap's: where both cover, and made to cover."""
    cell = ["distribution", "n", "individual", "epsilon"]
    wide = both.set_index([*cell, "method"]).unstack("method")
    wide = wide[wide["width"].notna().all(axis=1)]
    covers = (wide["coverage_high"] >= 0.93).all(axis=1)
    ratio = (wide["width"][DEFAULT] / wide["width"][RIVAL])[covers]
    text = (
        f"### Width, {what}: {DEFAULT} over {RIVAL}\n\n"
        f"In the {covers.sum()} cells in which both cover (99% Wilson intervals that reach 0.93) "
        f"the default's median width is {ratio.mean():.2f} times the bootstrap's on average, and "
        f"larger in {(ratio > 1).mean():.0%} of them.\n"
    )
    stretched = wide["width_that_covers"].dropna()
    never = np.isinf(stretched)
    fair = (stretched[DEFAULT] / stretched[RIVAL])[~never.any(axis=1)]
    equal = (
        f"### Width at a coverage of 95%, {what}: {DEFAULT} over {RIVAL}\n\n"
        "Both bands of every cell are stretched or shrunk, seen from their medians, until they "
        f"cover in 95% of the repetitions. That can be done in {fair.size} cells. There the "
        f"default's median width is {fair.mean():.2f} times the bootstrap's on average, and larger "
        f"in {(fair > 1).mean():.0%} of them. No factor does it for the default in "
        f"{never[DEFAULT].sum()} cells, for the bootstrap in {never[RIVAL].sum()}: one of its ends "
        "is the median, far from the truth.\n"
    )
    return f"{text}\n{_by_distribution(ratio)}\n{equal}\n{_by_distribution(fair)}"


def _by_distribution(ratio: pd.Series) -> str:
    means = ratio.groupby(["distribution", "n"], observed=True).mean().unstack("n")
    return _markdown(means, "ratio by distribution and n")


def _markdown(rows: pd.DataFrame, corner: str) -> str:
    return _lines(
        [corner, *rows.columns],
        ([row[0], *map(_number, row[1:])] for row in rows.itertuples()),
    )


def _number(value: float) -> str:
    return f"{value}" if isinstance(value, int) else f"{value:.3f}"


def _lines(columns: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    head = list(columns)
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"
