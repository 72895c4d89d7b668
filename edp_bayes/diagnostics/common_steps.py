"""The step of which numbers are multiples: greatest common divisors of sums of floats."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array, Index

__all__ = ["FINEST_SHARE", "candidates", "common_steps", "plain"]

ROUNDING = 2.0**-44  # of the largest value: what sums of many floats may be off by
FINEST_SHARE = 2.0**-20  # of the largest value: finer steps are not told from rounding
NEAR_SCALES = (1e2, 1e4, 1e6, np.inf)  # multiples by which a step is made precise in turn
GROUP = 3  # answers whose divisor is a candidate where a share of all lies on a grid
MOST_DRAWN = 4  # times all answers are drawn in groups
MOST_VALUES = 2**18  # in all groups together
NAMED = 2  # candidates of each owner


def common_steps(values: Array, *, size: float) -> Array:
    """Return the greatest common divisor of each row, within rounding, and 0 where it is finer.

    Euclid's algorithm with the smallest remainder of the row as the next divisor. A remainder is a
    combination of the values whose factors grow as the divisor shrinks, and so does its error.

    Parameters
    ----------
    values : ndarray
        Shape (row, k). Zeros are multiples of everything; a row of zeros has no step, 0.
    size : float
        The largest number that the values are sums of: its rounding is theirs.

    Examples
    --------
    >>> common_steps(np.array([[365.0 * 4, 365.0 * 7, 0.0], [3.3, 1.1 * 7, 1.1 * 8]]), size=3e3)
    array([365. ,   1.1])
    """
    tolerance, found = ROUNDING * size, np.zeros(len(values))
    magnitude = np.abs(values)
    magnitude[magnitude <= tolerance] = np.inf
    rows = np.flatnonzero(np.isfinite(magnitude).any(axis=1))
    left = magnitude[rows]
    while rows.size:
        place = left.argmin(axis=1)
        step = left[np.arange(rows.size), place]
        kept = step >= FINEST_SHARE * size
        rows, left, place, step = rows[kept], left[kept], place[kept], step[kept, None]
        there = np.isfinite(left)
        left = np.where(there, left, 0.0)
        left = np.abs(left - np.rint(left / step) * step)
        left[left <= tolerance * np.maximum(size / step, 1.0)] = np.inf
        done = ~np.isfinite(left).any(axis=1)
        found[rows[done]] = step[done, 0]
        left[np.arange(rows.size), place] = step[:, 0]
        rows, left = rows[~done], left[~done]
    return _precise(found, values)


def candidates(owner: Index, values: Array, *, size: float, least: float) -> tuple[Index, Array]:
    """Return common steps of groups of each owner's values that recur, and whose they are.

    At most two of each owner: those that are frequent and coarse. The groups are drawn at random,
    with a fixed seed, so that no pattern in the order of the values hides a step.
    """
    rng = np.random.default_rng(0)
    owners, steps = [], []
    for _ in range(min(MOST_DRAWN, MOST_VALUES // max(owner.size, 1))):
        order = np.lexsort((rng.random(owner.size), owner))
        _, first, count = np.unique(owner[order], return_index=True, return_counts=True)
        place = np.arange(owner.size) - np.repeat(first, count)
        order = order[place < np.repeat(count // GROUP * GROUP, count)].reshape(-1, GROUP)
        owners.append(owner[order[:, 0]])
        steps.append(common_steps(values[order], size=size))
    if not steps:
        return np.empty(0, dtype=np.int64), np.empty(0)
    whose, step = np.concatenate(owners), np.concatenate(steps)
    whose, step = whose[step > 1.5 * least], step[step > 1.5 * least]
    key = np.rint(1e6 * np.log(step / least))
    order = np.lexsort((key, whose))
    whose, step, key = whose[order], step[order], key[order]
    new = np.flatnonzero(np.r_[True, (np.diff(whose) > 0) | (np.diff(key) > 1.0)][: whose.size])
    times = np.diff(np.r_[new, whose.size])
    new, times = new[times > 1], times[times > 1]
    order = np.lexsort((-times * key[new], whose[new]))
    whose, step = whose[new][order], step[new][order]
    _, first, count = np.unique(whose, return_index=True, return_counts=True)
    kept = np.arange(whose.size) - np.repeat(first, count) < NAMED
    return whose[kept], step[kept]


def plain(step: float) -> float:
    """Return the shortest decimal that is the step within rounding.

    Examples
    --------
    >>> plain(0.1 + 0.2)
    0.3
    """
    for digits in range(1, 17):
        short = float(f"{step:.{digits}g}")
        if abs(short - step) <= 0.5 * ROUNDING * step:
            return short
    return step


def _precise(step: Array, values: Array) -> Array:
    """Return steps that fit the values of each row best, from small multiples to large ones."""
    found = step.copy()
    rows = np.flatnonzero(step > 0.0)
    for most in NEAR_SCALES:
        parts = np.rint(values[rows] / found[rows, None])
        parts[np.abs(parts) > most] = 0.0
        squares = (parts * parts).sum(axis=1)
        best = (parts * values[rows]).sum(axis=1) / np.where(squares > 0.0, squares, 1.0)
        found[rows] = np.where(squares > 0.0, best, found[rows])
    return found
