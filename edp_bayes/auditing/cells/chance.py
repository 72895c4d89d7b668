"""Which cells are withheld beyond chance, and how many would be by chance alone.

Every cell is held to its own checks, however many cells there are: of one in which something is
wrong nothing is claimed, even where that is seen in many others by chance. So the more cells, the
more are withheld though their models are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.diagnostics.checks import holm
from edp_bayes.results.effects import FAMILIES, LEVEL, WITHHOLDS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BEYOND", "MAY_BE", "NO_TEST", "held_to_chance", "tested", "why_withheld"]

# Why a cell is withheld.
BEYOND = "beyond chance"
MAY_BE = "may be chance"
NO_TEST = "not by a test"
SHOWN = 10  # cells that are named


def tested(checks: pd.DataFrame) -> tuple[float, float]:
    """Return how probable it is at most that tests withhold a cell by chance, and their p-value.

    Parameters
    ----------
    checks : DataFrame
        As `Audit.checks`.

    Returns
    -------
    tuple of float
        The levels of all families of tests that were made, added up; and the smallest p-value after
        Holm's correction in its family, times the number of families. The latter is NaN where a
        check failed that is no test, which no chance explains, or where there is none.
    """
    withholding = checks[checks["effect"] == WITHHOLDS]
    by_test = withholding["p_adjusted"].notna()
    failed = withholding["passed"].eq(False)
    families = [
        family
        for family in FAMILIES
        if withholding.index[by_test].isin(family).any()  # otherwise it was not made
    ]
    if not families or (failed & ~by_test).any():
        return LEVEL * len(families), np.nan
    smallest = float(withholding.loc[by_test, "p_adjusted"].min())
    return LEVEL * len(families), min(1.0, len(families) * smallest)


def why_withheld(withheld: Sequence[bool], p_values: Sequence[float]) -> list[str]:
    """Return of every cell why it is withheld; empty where it is not.

    A test tells beyond chance what it still does after Holm's correction over all cells, at 5%
    for all of them together and whatever their dependence.

    Parameters
    ----------
    withheld : sequence of bool
        Whether checks withhold each cell.
    p_values : sequence of float
        Those of its tests, as `tested` returns them.

    Examples
    --------
    >>> why_withheld([True, True, True, False], [1e-5, 0.04, np.nan, 0.4])
    ['beyond chance', 'may be chance', 'not by a test', '']
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.size, np.nan)
    known = ~np.isnan(p)
    adjusted[known] = holm(p[known].tolist())
    return [
        "" if not held else NO_TEST if np.isnan(one) else BEYOND if one < LEVEL else MAY_BE
        for held, one in zip(withheld, adjusted.tolist(), strict=True)
    ]


def held_to_chance(table: pd.DataFrame, names: Sequence[str]) -> str:
    """Return how many cells are withheld, how many would be by chance, and which are beyond it.

    Parameters
    ----------
    table : DataFrame
        As `Cells.table`.
    names : sequence of str
        Every row's cell in words.

    Returns
    -------
    str
        Sentences; empty where none is withheld.
    """
    why = table["withheld"].to_numpy()
    count = {kind: int((why == kind).sum()) for kind in (BEYOND, MAY_BE, NO_TEST)}
    total = sum(count.values())
    if not total:
        return ""
    expected = float(table["chance"].sum())
    said = [
        f"Checks withhold {total:,} of {len(table):,} cells. Were every model right, tests would "
        f"withhold at most {expected:.2g} on average, by chance alone."
    ]
    if count[BEYOND]:
        sure = [name for name, kind in zip(names, why, strict=True) if kind == BEYOND]
        listed = "; ".join(sure[:SHOWN])
        more = f" and {len(sure) - SHOWN:,} more" if len(sure) > SHOWN else ""
        said.append(f"Beyond chance, by Holm's correction over cells: {listed}{more}.")
    if count[NO_TEST]:
        said.append(f"Withheld by checks that are no tests: {count[NO_TEST]:,}.")
    if count[MAY_BE]:
        said.append(f"Withheld, though it may be chance: {count[MAY_BE]:,}; nothing clears them.")
    return " ".join(said)
