"""What cells say together: which share individuals, and whose answers are correlated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from edp_bayes.auditing.cells.records import CellRecords, Part
from edp_bayes.auditing.cells.work import REVEALED
from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET, UNDECIDED, no_less_than
from edp_bayes.utils.arrays import Index
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Correlated",
    "Sharing",
    "Together",
    "at_least_alone",
    "correlated",
    "in_words",
    "sharing",
]

NONE = np.zeros((0, 2), dtype=np.int64)  # of pairs

LEVEL = 0.05  # of all pairs of cells together
MOST_COMPARED = 5000  # cells, of which all pairs are compared


@dataclass(frozen=True)
class Sharing:
    """Individuals in several cells.

    Attributes
    ----------
    shared, moving : int
        Who were in several cells of one database, and in several cells at all.
    pairs : ndarray of int
        Shape (pair, 2): cells that these individuals connect.
    """

    shared: int
    moving: int
    pairs: Index


def sharing(records: CellRecords, cells: Sequence[Part]) -> Sharing:
    """Return who is in several cells."""
    cell_of = np.empty(records.person.size, dtype=np.int64)
    for k, part in enumerate(cells):
        cell_of[part.columns[0]] = k
    order = np.argsort(records.person, kind="stable")
    starts = np.flatnonzero(np.diff(records.person[order], prepend=-1))
    matrix, shared, moving = records.contribution, 0, 0
    pairs: set[tuple[int, int]] = set()
    for columns in np.split(order, starts[1:]):
        if columns.size < 2:
            continue
        moving += 1
        rows = np.concatenate(
            [matrix.indices[matrix.indptr[c] : matrix.indptr[c + 1]] for c in columns]
        )
        shared += int(rows.size > np.unique(rows).size)
        places = cell_of[columns].tolist()
        pairs.update(pairwise(places))
    return Sharing(shared, moving, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))


@dataclass(frozen=True)
class Correlated:
    """Cells whose answers are correlated beyond chance.

    Attributes
    ----------
    pairs : ndarray of int
        Shape (pair, 2): which cells.
    largest : float
        The rank correlation of the pair that is largest in size; NaN where there is none.
    compared : bool
        Whether all pairs were compared.
    """

    pairs: Index
    largest: float
    compared: bool


def correlated(records: CellRecords, cells: Sequence[Part]) -> Correlated:
    """Return which answers of cells are correlated, by Spearman's rank correlation.

    The level of 5% is that of all pairs together (Bonferroni). Cells whose answer never changes are
    correlated with none.
    """
    if len(cells) > MOST_COMPARED:
        return Correlated(NONE, np.nan, False)
    answers = np.array([records.answers(part.columns[0]) for part in cells])
    moving = np.flatnonzero(np.ptp(answers, axis=1) > 0.0)
    count = moving.size
    if count < 2:
        return Correlated(NONE, np.nan, True)
    found = stats.spearmanr(answers[moving], axis=1)
    # of two cells SciPy returns numbers in the place of matrices
    rho, p = (np.broadcast_to(part, (count, count)) for part in (found.statistic, found.pvalue))
    first, second = np.nonzero(np.triu(p < LEVEL / (count * (count - 1) / 2), 1))
    sizes = rho[first, second]
    largest = float(sizes[np.abs(sizes).argmax()]) if sizes.size else np.nan
    return Correlated(np.stack([moving[first], moving[second]], axis=1), largest, True)


def at_least_alone(
    joint: Mapping[str, Any],
    alone: Mapping[str, Mapping[str, Any]],
    *,
    prob: float = PROB,
    against: str = "",
) -> dict[str, Any]:
    """Return the row of cells together, never better than that of one of them alone.

    Several answers tell no less than each of them: their limit is at least that of each, and
    nothing is established of them where nothing is of one.

    Parameters
    ----------
    joint : mapping
        What was found of the cells together.
    alone : mapping
        What was found of each of them, by its name.
    prob : float
        Probability of every limit.
    against : str
        Against whom, in words.
    """
    row = dict(joint)
    if row["status"] not in (MET, UNDECIDED, NOT_MET):
        return row
    for status in (REVEALED, NOT_ESTABLISHED):
        for name, one in alone.items():
            if one["status"] == status:
                said = no_less_than(name, status)
                return row | {
                    **dict.fromkeys(("limit", "lower", "median"), np.nan),
                    "limit_withheld": row["limit"] if status == NOT_ESTABLISHED else np.nan,
                    "status": status,
                    "withheld_by": one["withheld_by"],
                    "sentence": said,
                }
    # a cell without an audit has no limit; one that does not meet the target leaves them no better
    highest, lowest = _largest(alone, "limit"), _largest(alone, "lower")
    worse = alone[highest]["limit"] > row["limit"]
    unmet = row["status"] != NOT_MET and alone[lowest]["lower"] > row["delta"]
    if not (worse or unmet):
        return row
    for end in ("limit", "lower", "median"):
        row[end] = float(np.nanmax([row[end], *(one[end] for one in alone.values())]))
    if row["limit"] > row["delta"]:
        row["status"] = NOT_MET if row["lower"] > row["delta"] else UNDECIDED
    row["sentence"] = no_less_than(
        lowest if row["status"] == NOT_MET else highest,
        row["status"],
        row["epsilon"],
        limit=row["limit"],
        lower=row["lower"],
        delta=row["delta"],
        prob=prob,
        against=against,
    )
    return row


def _largest(rows: Mapping[str, Mapping[str, Any]], end: str) -> str:
    """Return the name of the row of which an end is largest; one without it counts least."""
    return max(rows, key=lambda name: float(np.nan_to_num(rows[name][end], nan=-1.0)))


@dataclass(frozen=True, eq=False)
class Together:
    """What the cells say together of an individual; its text is the answer in sentences.

    Parameters
    ----------
    groups : DataFrame
        Rows, as of `Cells.table`, of cells that share individuals or are correlated, audited
        together; the worst first.
    by : tuple of str
        Columns that make up a cell.
    sharing : Sharing
        Who is in several cells.
    correlated : Correlated
        Which cells are correlated.
    published : str
        What is published of cells and of their totals, each on its own, in words; empty where that
        is the whole answer or there are no totals. Where it is not, every cell has a row in
        `groups`, with its totals.
    """

    groups: pd.DataFrame
    by: tuple[str, ...]
    sharing: Sharing
    correlated: Correlated
    published: str = ""

    def __str__(self) -> str:
        """Return what the cells say together."""
        return self.words(lambda row: str(row["sentence"]))

    def words(self, said_of: Callable[[pd.Series], str]) -> str:
        """Return what the cells say together; what is said of a group a function tells."""
        if not self.correlated.compared:
            said = "Their answers were not compared, and nothing is established of them together."
            return f"{self._who} {said}"
        if self.groups.empty:
            return (
                "Nobody was in two of them, and no two are correlated beyond chance: what the "
                "cells say together of an individual is what their own cell says."
            )
        worst = self.groups.iloc[0]
        others = len(self.groups) - 1
        more = f" Of {others:,} more of them none is worse." if others else ""
        strongest = abs(self.correlated.largest)
        correlation = (
            f" Answers are correlated (rank correlation up to {strongest:.2f} in size): "
            "each tells something of the other."
            if len(self.correlated.pairs)
            else ""
        )
        totals = (
            f" Cells and totals are {self.published}, each on its own: a cell and its totals tell "
            "more than the cell does, and at most what its whole answer tells."
            if self.published
            else ""
        )
        said = f"Together, {self.where(worst)}: {said_of(worst)}"
        return f"{self._who}{correlation}{totals} {said}{more}"

    def where(self, row: pd.Series) -> str:
        """Return which cells a group is of, in words."""
        cells = in_words(self.by, row)
        return f"{cells}, with totals" if self.published else cells

    @property
    def _who(self) -> str:
        """Who was in several cells."""
        if self.sharing.shared:
            return f"{_people(self.sharing.shared)} in several cells of one database."
        if self.sharing.moving:
            return f"{_people(self.sharing.moving)} in several cells, never of one database."
        return "Nobody was in two cells."


def in_words(by: tuple[str, ...], row: pd.Series) -> str:
    """Return which cell, or cells, a row is of."""
    return ", ".join(f"{name} {row[name]}" for name in by if row[name])


def _people(count: int) -> str:
    return f"{count:,} individuals were" if count > 1 else "1 individual was"
