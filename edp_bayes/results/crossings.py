"""Where privacy curves fall to a target: a bracket in every draw, narrow where curves are at hand.

A curve is convex in exp(epsilon), as a maximum of P(A) - exp(epsilon) Q(A) over events. So it lies
below its chords and above their extensions: both are lines, and what they say is certain.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ACCURACY", "CurveSource", "bracket"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Brackets are narrowed to this share of epsilon, as far as the source knows the curve.
ACCURACY = 1e-3
POINTS, ROUNDS = 8, 8


class CurveSource(Protocol):
    """What evaluates the draws of a privacy curve at new epsilons."""

    def between(self, epsilon: Array, left: int, target: float, rows: Index) -> tuple[Array, Array]:
        """Return a lower and an upper bound of delta, shape (row, epsilon), both convex.

        The epsilons lie between two values of the grid, the first of which is at `left`, or below
        the first one for -1. Wherever delta is at most the target the upper bound may be, too.
        """
        ...

    def end(self) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, shape (draw,).

        Raises
        ------
        InvalidInputError
            If there is none; says why.
        """
        ...


def bracket(
    grid: Array,
    curves: Array,
    target: float,
    source: CurveSource | None = None,
    *,
    convex: bool = True,
) -> tuple[Array, Array]:
    """Return two epsilons of every draw between which the curve falls to the target.

    Parameters
    ----------
    grid : ndarray
        Shape (epsilon,), increasing.
    curves : ndarray
        Shape (draw, epsilon), not increasing with epsilon.
    target : float
        Above zero.
    source : CurveSource, optional
        Evaluates the curves between the values of the grid.
    convex : bool
        Whether the curves are convex in exp(epsilon); if not, the bracket ends at the grid.

    Returns
    -------
    lower, upper : ndarray
        Shape (draw,): 0 and the first epsilon where the curve is below the target there and there
        is no source; the last and infinity where it is above the target there.

    Examples
    --------
    >>> bracket(np.array([0.0, 1.0, 2.0]), np.array([[0.4, 0.2, 0.1]]), 0.3)
    (array([0.]), array([0.62011451]))
    """
    lower = _least(grid, curves, target, convex)
    upper = _most(grid, curves, target, convex)
    if source is not None:
        last = (curves > target).sum(axis=1) - 1
        first = 0 if grid[0] == 0.0 else -1
        for left in np.unique(last[(last >= first) & (last < grid.size - 1)]).tolist():
            rows = np.flatnonzero(last == left)
            ends = slice(max(left, 0), left + 2)
            start = grid[ends] if left >= 0 else np.array([0.0, grid[0]])
            known = curves[rows, ends] if left >= 0 else None
            lower[rows], upper[rows] = _narrowed(
                start, known, curves[rows, left + 1], left, target, rows, source
            )
    return np.minimum(lower, upper), upper


def _narrowed(
    ends: Array,
    known: Array | None,
    right: Array,
    left: int,
    target: float,
    rows: Index,
    source: CurveSource,
) -> tuple[Array, Array]:
    """Evaluate curves between two epsilons until brackets are narrow; at zero, too, if unknown."""
    if known is None:
        points, below, above = ends[1:], right[:, None], right[:, None]
        new = np.linspace(ends[0], ends[1], POINTS + 1)[:-1]
    else:
        points, below, above = ends, known, known
        new = np.linspace(ends[0], ends[1], POINTS + 2)[1:-1]
    for _ in range(ROUNDS):
        least, most = source.between(new, left, target, rows)
        points = np.concatenate([points, new])
        order = np.argsort(points, kind="stable")
        points = points[order]
        below = np.concatenate([below, least], axis=1)[:, order]
        above = np.concatenate([above, most], axis=1)[:, order]
        lower = _least(points, below, target, True)
        reached = _most(points, below, target, True)
        cell = (below > target).sum(axis=1) - 1
        wide = np.unique(cell[(reached - lower > ACCURACY * reached) & (cell >= 0)])
        if wide.size == 0:
            break
        each = max(1, POINTS // wide.size)
        new = np.concatenate(
            [np.linspace(points[k], points[k + 1], each + 2)[1:-1] for k in wide.tolist()]
        )
    return lower, _most(points, above, target, True)


def _least(grid: Array, curves: Array, target: float, convex: bool) -> Array:
    """Return an epsilon up to which each curve is certainly above the target."""
    growth = np.exp(grid)
    last = (curves > target).sum(axis=1) - 1
    rows = np.arange(len(curves))
    found = growth[np.maximum(last, 0)]
    if convex:
        for k in (last - 1, last + 1):
            # the chord from k to k + 1, extended into the cell after `last`
            inside = (k >= 0) & (k + 1 < grid.size) & (last >= 0) & (last + 1 < grid.size)
            i, j = rows[inside], k[inside]
            high, low = curves[i, j], curves[i, j + 1]
            falls = high > low
            i, j, high, low = i[falls], j[falls], high[falls], low[falls]
            slope = (high - low) / (growth[j + 1] - growth[j])
            meets = growth[j] + (high - target) / slope
            found[i] = np.clip(meets, found[i], growth[last[i] + 1])
    return np.where(last < 0, 0.0, np.log(found))


def _most(grid: Array, curves: Array, target: float, convex: bool) -> Array:
    """Return an epsilon from which on each curve is certainly at most the target."""
    growth = np.exp(grid)
    last = (curves > target).sum(axis=1) - 1
    rows = np.arange(len(curves))
    left = np.clip(last, 0, max(grid.size - 2, 0))
    right = np.minimum(left + 1, grid.size - 1)
    high, low = curves[rows, left], curves[rows, right]
    share = np.ones_like(high)
    if convex:
        np.divide(high - target, high - low, out=share, where=high > low)
    meets = np.log(growth[left] + share.clip(0.0, 1.0) * (growth[right] - growth[left]))
    found = np.where(last < 0, grid[0], meets)
    return np.where(last == grid.size - 1, np.inf, found)
