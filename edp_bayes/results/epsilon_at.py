"""Where privacy curves fall to a target: a bracket in every draw, narrow where curves are known.

A curve is convex in exp(epsilon), as a maximum of P(A) - exp(epsilon) Q(A) over events. So it lies
below its chords and above their extensions: both are lines, and what they say is certain.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.formatting import number

__all__ = ["ACCURACY", "CurveSource", "WholeCurves", "bracket", "small_delta"]

# Brackets are narrowed to this share of epsilon, as far as the source knows the curve.
ACCURACY = 1e-3
# New epsilons that all draws share, in each round; more rounds where each draw has its own.
POINTS, ROUNDS, OWN_ROUNDS = 8, 8, 20
# Half the distance of a draw's own two epsilons, of the width of its bracket at first, and at most.
HALF, WIDEST = 0.05, 1.0 / 3.0
# Deltas that are asked for where it is zero nowhere: the first one that curves fall to.
SMALL = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# How often a source is asked whether a bracket holds for everybody.
CHECKS = 2


class CurveSource(Protocol):
    """What evaluates the draws of a privacy curve at new epsilons."""

    @property
    def shared(self) -> bool:
        """Whether all draws are evaluated at the same epsilons."""
        ...

    def between(self, epsilon: Array, left: int, target: float, rows: Index) -> tuple[Array, Array]:
        """Return a lower and an upper bound of delta, shape (row, epsilon), both convex.

        Each row has epsilons of its own, shape (row, epsilon), equal in all rows where they are
        shared. They lie between two values of the grid, the first of which is at `left`, or below
        the first one for -1.
        """
        ...

    def holds(self, epsilon: Array, left: int, target: float, rows: Index) -> NDArray[np.bool_]:
        """Return whether delta is surely at most the target where the upper bound is, shape (row,).

        Where not, `between` heeds from then on what was found.
        """
        ...

    def end(self, instead: str) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, shape (draw,).

        Raises
        ------
        InvalidInputError
            If there is none; says why, and what to do instead: that of `small_delta`, which the
            source does not know, and what else would do.
        """
        ...


class WholeCurves:
    """Base of a source that leaves nothing out: its brackets hold for everybody."""

    def holds(self, epsilon: Array, left: int, target: float, rows: Index) -> NDArray[np.bool_]:
        """Return that they do; see `CurveSource`."""
        return np.ones(rows.size, dtype=bool)


def small_delta(grid: Array, curves: Array) -> str:
    """Return what to ask for where delta is zero at no epsilon: a delta that every draw falls to.

    Parameters
    ----------
    grid, curves
        As for `bracket`.

    Examples
    --------
    >>> small_delta(np.array([0.5, 2.0]), np.array([[0.4, 0.0], [0.3, 2e-4]]))
    'ask for a delta that every draw falls to, such as 0.001'
    >>> small_delta(np.array([0.5]), np.array([[0.4]]))
    'audit at epsilon above 0.5 (epsilon=), where delta may be small, and ask for such a delta'
    """
    highest = float(curves[:, -1].max())
    for delta in SMALL:
        if delta >= highest:
            return f"ask for a delta that every draw falls to, such as {number(delta)}"
    return (
        f"audit at epsilon above {grid[-1]:.4g} (epsilon=), where delta may be small, and ask for "
        "such a delta"
    )


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
        Whether the curves are convex in exp(epsilon); if not, brackets end at epsilons at which
        curves were evaluated.

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
            for _ in range(CHECKS):
                known = _known(grid, curves, left, target, rows, source)
                lower[rows], found = _narrowed(*known, left, target, rows, source, convex)
                held = source.holds(found, left, target, rows)
                upper[rows[held]] = found[held]
                rows = rows[~held]
                if rows.size == 0:
                    break
    return np.minimum(lower, upper), upper


def _known(
    grid: Array, curves: Array, left: int, target: float, rows: Index, source: CurveSource
) -> tuple[Array, Array, Array]:
    """Return the ends of a cell of the grid and bounds of the curves there, (row, end) each."""
    if left >= 0:
        cell = slice(left, left + 2)
        return np.tile(grid[cell], (rows.size, 1)), curves[rows, cell], curves[rows, cell]
    ends = np.tile([0.0, grid[0]], (rows.size, 1))
    least, most = source.between(ends[:, :1], left, target, rows)
    right = curves[rows, :1]
    return ends, np.concatenate([least, right], axis=1), np.concatenate([most, right], axis=1)


def _narrowed(
    points: Array,
    below: Array,
    above: Array,
    left: int,
    target: float,
    rows: Index,
    source: CurveSource,
    convex: bool,
) -> tuple[Array, Array]:
    """Evaluate curves, known at the ends of a cell, until every bracket is narrow."""
    lower, upper = np.zeros((2, rows.size))
    wide: Index = np.arange(rows.size)
    half: Array = np.full(rows.size, HALF)
    before: Array = np.full(rows.size, np.inf)
    for step in range(ROUNDS if source.shared else OWN_ROUNDS):
        lower[wide] = _least(points, below, target, convex)
        upper[wide] = _most(points, above, target, convex)
        reached = _most(points, below, target, convex)
        width = reached - lower[wide]
        open_ = (width > ACCURACY * reached) & (below[:, 0] > target)
        if not open_.any():
            break
        half = np.where(width > 0.5 * before, 4.0 * half, 0.5 * half).clip(HALF / 8.0, WIDEST)
        wide, points, below, above = wide[open_], points[open_], below[open_], above[open_]
        reached, half, before = reached[open_], half[open_], width[open_]
        if source.shared:
            new = _shared(points[0], below, target, POINTS if step else POINTS + 1)
            new = np.tile(new, (wide.size, 1))
        else:
            new = _own(points, below, target, lower[wide], reached, half)
        least, most = source.between(new, left, target, rows[wide])
        points = np.concatenate([points, new], axis=1)
        order = np.argsort(points, axis=1, kind="stable")
        points, below, above = (
            np.take_along_axis(part, order, axis=1)
            for part in (
                points,
                np.concatenate([below, least], axis=1),
                np.concatenate([above, most], axis=1),
            )
        )
        if not convex:
            below, above = (np.minimum.accumulate(part, axis=1) for part in (below, above))
    return lower, upper


def _shared(points: Array, below: Array, target: float, count: int) -> Array:
    """Return new epsilons in the cells in which any curve falls to the target."""
    cells = np.unique((below > target).sum(axis=1) - 1)
    each = max(1, count // cells.size)
    return np.concatenate(
        [np.linspace(points[k], points[k + 1], each + 2)[1:-1] for k in cells.tolist()]
    )


def _own(
    points: Array, below: Array, target: float, lower: Array, upper: Array, half: Array
) -> Array:
    """Return two epsilons of every draw, around where it falls to the target if log-linear."""
    rows = np.arange(len(points))
    last = np.clip((below > target).sum(axis=1) - 1, 0, points.shape[1] - 2)
    high, low = (
        np.log(np.maximum(below[rows, k], 1e-9 * target) / target) for k in (last, last + 1)
    )
    share = high / np.maximum(high - low, 1e-300)
    guess = points[rows, last] + share.clip(0.0, 1.0) * (
        points[rows, last + 1] - points[rows, last]
    )
    apart = np.maximum(half * (upper - lower), 0.45 * ACCURACY * guess)
    middle = np.clip(guess, lower + apart, np.maximum(upper - apart, lower + apart))
    pair = np.stack([middle - apart, middle + apart], axis=1)
    return np.asarray(np.clip(pair, lower[:, None], upper[:, None]))


def _least(points: Array, curves: Array, target: float, convex: bool) -> Array:
    """Return an epsilon up to which each curve is certainly above the target."""
    growth = np.exp(np.broadcast_to(points, curves.shape))
    size = curves.shape[1]
    last = (curves > target).sum(axis=1) - 1
    rows = np.arange(len(curves))
    found = growth[rows, np.maximum(last, 0)]
    if convex:
        for k in (last - 1, last + 1):
            # the chord from k to k + 1, extended into the cell after `last`
            inside = (k >= 0) & (k + 1 < size) & (last >= 0) & (last + 1 < size)
            i, j = rows[inside], k[inside]
            high, low = curves[i, j], curves[i, j + 1]
            falls = (high > low) & (growth[i, j + 1] > growth[i, j])
            i, j, high, low = i[falls], j[falls], high[falls], low[falls]
            slope = (high - low) / (growth[i, j + 1] - growth[i, j])
            with np.errstate(over="ignore"):  # of a slope next to nothing, it is clipped
                meets = growth[i, j] + (high - target) / slope
            found[i] = np.clip(meets, found[i], growth[i, last[i] + 1])
    return np.where(last < 0, 0.0, np.log(found))


def _most(points: Array, curves: Array, target: float, convex: bool) -> Array:
    """Return an epsilon from which on each curve is certainly at most the target."""
    points = np.broadcast_to(points, curves.shape)
    growth = np.exp(points)
    size = curves.shape[1]
    last = (curves > target).sum(axis=1) - 1
    rows = np.arange(len(curves))
    left = np.clip(last, 0, max(size - 2, 0))
    right = np.minimum(left + 1, size - 1)
    high, low = curves[rows, left], curves[rows, right]
    share = np.ones_like(high)
    if convex:
        np.divide(high - target, high - low, out=share, where=high > low)
    meets = growth[rows, left] + share.clip(0.0, 1.0) * (growth[rows, right] - growth[rows, left])
    found = np.where(last < 0, points[:, 0], np.log(meets))
    return np.where(last == size - 1, np.inf, found)
