"""Cells that outcomes are counted in: values, bins of a line, and strata of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.black_box.outcomes import Outcomes, repeated
from edp_bayes.black_box.statistic import apply_statistic
from edp_bayes.utils.arrays import Array, Flags, Index

__all__ = ["DENSITY", "MERGED", "POINT", "Cells", "count"]

POINT, DENSITY, MERGED = range(3)
BINS = 64
LEAST_BINS = 32
# Outermost bins of a line, and how much larger the next one may be.
TAIL, GROWTH = 8, 1.6
LARGEST_POSITION = 6.0
# Beyond so many values, rare neighbours are counted together.
MOST_VALUES = 160
MOST_CATEGORIES = 600


@dataclass(frozen=True, eq=False)
class Cells:
    """Counts of both samples in every cell.

    Attributes
    ----------
    a, b : ndarray
        Shape (cell,): outcomes of the first and of the second sample; never both 0.
    role : ndarray
        Shape (cell,): POINT, one value with a probability; DENSITY, a bin of a line; MERGED,
        several values, each too rare to matter alone.
    stratum : ndarray
        Shape (cell,): bins of the same line and values of the same order share a number.
    position, width : ndarray
        Shape (cell,): where a bin lies and how wide it is.
    ordered : ndarray
        Shape (cell,): whether neighbours in the stratum are neighbours as outcomes.
    sizes : tuple of int
        Sizes of the two samples.
    """

    a: Array
    b: Array
    role: Index
    stratum: Index
    position: Array
    width: Array
    ordered: Flags
    sizes: tuple[int, int]

    @property
    def fresh(self) -> Flags:
        """Whether a cell has no neighbour before it, shape (cell,)."""
        return np.asarray(~self.ordered | np.r_[True, np.diff(self.stratum) != 0])

    @property
    def x(self) -> Array:
        """Positions from the median of their stratum in units of its quartiles' distance."""
        out = np.zeros(self.a.size)
        for s in np.unique(self.stratum[self.ordered]):
            here = (self.stratum == s) & self.ordered
            z = self.position[here]
            weight = np.cumsum((self.a + self.b)[here])
            low, middle, high = np.interp(np.array([0.25, 0.5, 0.75]) * weight[-1], weight, z)
            spread = high - low if high > low else max(float(z[-1] - z[0]), 1.0)
            out[here] = np.clip((z - middle) / spread, -LARGEST_POSITION, LARGEST_POSITION)
        return out


def count(
    outcomes: Outcomes, tau: float, statistic: Callable[[Array], Array] | None = None
) -> Cells:
    """Count outcomes in cells.

    Discrete values are cells of their own, in order if they are integers. A line is cut at
    quantiles of both samples together, finer towards its ends. Rows of floats, and floats that
    repeat, are sorted into strata by which of their columns hold a repeated value, and which; what
    is continuous in a stratum is one number, or the statistic of several.

    Parameters
    ----------
    outcomes : Outcomes
        Two samples.
    tau : float
        Values with a share below a quarter of tau may be counted with their neighbours.
    statistic : callable, optional
        Map from rows (size, column) to numbers (size,), for rows of continuous columns; values of
        it that repeat are counted as such. Where some columns hold repeated values, the others
        are added up.
    """
    if outcomes.kind == "discrete":
        parts = [_discrete(outcomes.first, outcomes.second, tau)]
    elif outcomes.kind == "continuous":
        first, second = (_number(x, statistic) for x in (outcomes.first, outcomes.second))
        if outcomes.columns > 1 and repeated(np.concatenate([first, second])).size:
            parts = _strata(Outcomes(first, second, "mixed"), tau)
        else:
            parts = [_line(first, second)]
    else:
        parts = _strata(outcomes, tau)
    strata = np.repeat(np.arange(len(parts)), [part[0].size for part in parts])
    a, b, role, position, width, ordered = (np.concatenate(c) for c in zip(*parts, strict=True))
    return Cells(
        a, b, role.astype(np.int64), strata, position, width, ordered.astype(bool), outcomes.sizes
    )


def _number(rows: Array, statistic: Callable[[Array], Array] | None) -> Array:
    """Return one number for a row: its only column, the statistic, or the sum of what is left."""
    if rows.ndim == 1 or rows.shape[1] == 1:
        return rows.reshape(len(rows))
    return rows.sum(axis=1) if statistic is None else apply_statistic(statistic, rows)


def _strata(outcomes: Outcomes, tau: float) -> list[tuple[Array, ...]]:
    """Rows by which columns hold an atom, and which: a point each, or a line of what is left."""
    first, second = (x[:, None] if x.ndim == 1 else x for x in (outcomes.first, outcomes.second))
    pooled = np.concatenate([first, second])
    atom = np.column_stack([np.isin(column, repeated(column)) for column in pooled.T])
    key = np.column_stack([np.where(atom, pooled, 0.0), atom])
    _, code = np.unique(key, axis=0, return_inverse=True)
    code = code.ravel()
    split = len(first)
    points = atom.all(axis=1)
    if pooled.shape[1] == 1:
        values = pooled[points, 0]
        owner = np.flatnonzero(points) < split
        ordered = np.unique(values).size > BINS
    else:
        values, owner, ordered = code[points], np.flatnonzero(points) < split, False
    parts = []
    if points.any():
        parts.append(_discrete(values[owner], values[~owner], tau, ordered=ordered))
    for c in np.unique(code[~points]):
        here = np.flatnonzero(code == c)
        line = _number(pooled[np.ix_(here, ~atom[here[0]])], None)
        bins = max(LEAST_BINS, round(BINS * here.size / len(pooled)))
        parts.append(_line(line[here < split], line[here >= split], bins))
    return parts


def _discrete(
    first: NDArray[Any], second: NDArray[Any], tau: float, ordered: bool | None = None
) -> tuple[Array, ...]:
    """Count values; numbers are in order, anything else is not."""
    pooled = np.concatenate([first, second])
    numeric = pooled.dtype.kind in "iuf"
    if pooled.dtype == object:
        known = {value: k for k, value in enumerate(dict.fromkeys(pooled.tolist()))}
        code = np.fromiter((known[v] for v in pooled.tolist()), np.int64, pooled.size)
        values = np.arange(len(known), dtype=np.float64)
    else:
        distinct, code = np.unique(pooled, return_inverse=True)
        values = distinct.astype(np.float64) if numeric else np.arange(distinct.size, dtype=float)
    a = np.bincount(code[: first.size], minlength=values.size).astype(float)
    b = np.bincount(code[first.size :], minlength=values.size).astype(float)
    in_order = numeric if ordered is None else ordered
    group = _groups(a + b, tau, in_order)
    first_of = np.flatnonzero(np.r_[True, np.diff(group) > 0]) if in_order else None
    size = np.bincount(group)
    total = np.bincount(group, a + b)
    position = (
        np.bincount(group, (a + b) * values) / total
        if first_of is not None
        else np.arange(size.size, dtype=np.float64)
    )
    return (
        np.bincount(group, a),
        np.bincount(group, b),
        np.where(size == 1, POINT, MERGED).astype(float),
        position,
        np.ones(size.size),
        np.full(size.size, float(in_order)),
    )


def _groups(total: Array, tau: float, ordered: bool) -> Index:
    """Return the cell of each value: its own unless it is rare and there are very many."""
    if total.size <= (MOST_VALUES if ordered else MOST_CATEGORIES):
        return np.arange(total.size)
    share = total / total.sum()
    if not ordered:
        keep = np.argsort(-total, kind="stable")[:MOST_CATEGORIES]
        keep = keep[(np.arange(keep.size) < MOST_CATEGORIES // 2) | (share[keep] >= 0.25 * tau)]
        group = np.full(total.size, keep.size)
        group[keep] = np.arange(keep.size)
        return group
    group = np.empty(total.size, dtype=np.int64)
    current, filled = 0, 0.0
    for k, mass in enumerate(share):
        if filled and (mass >= 0.25 * tau or filled + mass > 2.0 / MOST_VALUES):
            current, filled = current + 1, 0.0
        group[k] = current
        filled += mass
        if mass >= 0.25 * tau:
            current, filled = current + 1, 0.0
    return group


def _line(first: Array, second: Array, bins: int = BINS) -> tuple[Array, ...]:
    """Cut a line at pooled quantiles, finer towards the ends."""
    pooled = np.sort(np.concatenate([first, second]))
    cuts = _cuts(pooled.size, bins)
    edges = np.unique(0.5 * (pooled[cuts - 1] + pooled[cuts]))
    starts = np.searchsorted(pooled, edges, side="right")
    # Ties may leave a cell between two edges empty, or the last one.
    kept = (np.diff(starts, prepend=0) > 0) & (starts < pooled.size)
    edges, starts = edges[kept], np.append(0, starts[kept])
    a, b = (
        np.bincount(np.searchsorted(edges, side), minlength=edges.size + 1).astype(float)
        for side in (first, second)
    )
    position = np.add.reduceat(pooled, starts) / (a + b)
    ends = np.r_[pooled[0], edges, pooled[-1]]
    width = np.diff(ends)
    width = np.maximum(width, 1e-12 * max(float(width.max()), 1e-300))
    cell = np.ones(a.size)
    return a, b, DENSITY * cell, position, width, cell


def _cuts(size: int, most_bins: int) -> Index:
    """Return the ranks to cut at: cells of equal counts, then ever smaller ones at both ends."""
    most = max(size / most_bins, TAIL)
    tail = [float(TAIL)]
    while tail[-1] * GROWTH < most:
        tail.append(tail[-1] * GROWTH)
    left = np.cumsum(tail)
    left = left[left < 0.25 * size]
    if left.size == 0:
        # one cell would make any two samples alike
        bins = max(2, min(most_bins, size // (2 * TAIL)))
        return np.unique(np.linspace(0, size, bins + 1).astype(np.int64)[1:-1])
    inner = np.linspace(left[-1], size - left[-1], max(2, most_bins - 2 * left.size + 1))
    return np.unique(np.r_[left, inner, size - left].astype(np.int64))
