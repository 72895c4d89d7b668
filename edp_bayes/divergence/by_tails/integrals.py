"""Hockey-stick integrals of two Gaussian mixtures over grids of epsilon, from their tails.

With L = log p / q, H_eps(p || q) is the mass of p - exp(eps) q over {L > eps}, and
H_eps(q || p) that of q - exp(eps) p over {L < -eps}. L and its slope are tabulated once at nodes
that resolve every component. Where L may turn between two nodes and reach a threshold, the
interval is halved until it cannot. Every threshold that L passes is a sign change, polished by
Newton's method on L (an error dx in one costs only O(dx^2) in the integral), and the integrals are
differences of masses below or above sign changes, whichever loses less: the difference of p and q
themselves is known without cancellation, see `edp_bayes.divergence.by_tails.columns`. The absolute
error is about 1e-15 for each sign change. Small results lose relative precision: who needs that
takes `edp_bayes.divergence.any_pair`.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from edp_bayes.divergence.any_pair.sign_changes import inverse_hermite, range_between, wait
from edp_bayes.divergence.by_tails.columns import (
    COLUMN,
    P_SIZE,
    Q_SIZE,
    D,
    P,
    Q,
    fill_tails,
    fill_values,
    whole,
)
from edp_bayes.divergence.by_tails.nodes import MOST_NODES, place
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, borrowing, linked

__all__ = ["Levels", "TailWork", "integrate", "new_levels", "tail_work"]

Point = tuple[float, float, float]  # with L and its slope there

HALVINGS = 16
STACK = 64  # intervals that may wait to be halved
POLISHING = 60
CLOSE_ENOUGH = 1e-3  # of an interval: after such a Newton step integrals are within rounding
FLATTEST = 1e-290  # density below which a log ratio is not known
# Rows of the sign changes: where, between what, the value of L, up or down, the number of its
# threshold, counted from 0, or from -1 downwards, and the width of the interval between nodes.
WHERE, LOW, HIGH, VALUE, RISES, NUMBER, WIDTH = range(7)
# Where a set begins or ends that is not at a sign change; the last is no literal, as ZERO.
CLOSED, BEFORE_ALL, AFTER_ALL = -1, -2, cast(int, np.int64(-3))


class Levels(NamedTuple):
    """Thresholds of L, all positive and increasing, and factors in front of the other density.

    Attributes
    ----------
    up, up_growth : ndarray
        Shape (E,): p - (1 + up_growth) q is integrated over {L > up}.
    down, down_growth : ndarray
        Shape (E,): q - (1 + down_growth) p is integrated over {L < -down}.
    """

    up: Array
    up_growth: Array
    down: Array
    down_growth: Array


class TailWork(NamedTuple):
    """What `integrate` writes to, for one thread.

    Attributes
    ----------
    columns, zones : ndarray
        Shapes (most, COLUMN) and (3, 2 most): the pair, to be filled in before, and its zones.
    x, values : ndarray
        Shapes (most,) and (8, most): nodes or sign changes, and values or tails there.
    one, at : ndarray
        Shapes (1,) and (6, 1): the same of a single point.
    stack : ndarray
        Shape (STACK, 7): intervals that wait to be halved.
    found : ndarray
        Shape (7, changes): sign changes.
    points : ndarray
        Shape (changes,): some of them.
    opened : ndarray of int
        Shape (2, E): for each direction, the sign change at which the set that is open begins.
    """

    columns: Array
    zones: Array
    x: Array
    values: Array
    one: Array
    at: Array
    stack: Array
    found: Array
    points: Array
    opened: Index


@linked
def tail_work(columns: int, levels: int) -> TailWork:
    """Return the workspace for pairs of so many columns and levels."""
    changes = 512 + 16 * levels
    most = max(MOST_NODES, changes)
    return TailWork(
        np.empty((columns, COLUMN)), np.empty((3, 2 * columns)), np.empty(most),
        np.empty((8, most)), np.empty(1), np.empty((6, 1)),
        np.empty((STACK, 7)), np.empty((7, changes)), np.empty(changes),
        np.empty((2, levels), dtype=np.int64),
    )  # fmt: skip


@linked
def new_levels(levels: int) -> Levels:
    """Return so many levels, to be filled in."""
    return Levels(np.empty(levels), np.empty(levels), np.empty(levels), np.empty(levels))


@borrowing
def integrate(
    work: TailWork, count: int, levels: Levels, negligible: float, cut: float, total: Array,
    scale: Array,
) -> bool:  # fmt: skip
    """Fill total (2, E) with the integrals of both directions for the first `count` columns.

    scale (2, E) gets the masses that are subtracted from each other to find them; rounding is some
    1e-16 of these. Tails of a mass below `negligible`, and what lies more than `cut` scales from a
    component, are left out. Returns whether there was room for all nodes and sign changes; if not,
    nothing is filled in.
    """
    x, values = work.x, work.values
    size = place(work.columns, count, negligible, work.zones, x)
    if size == 0:
        return False
    fill_values(work.columns, count, x, size, cut, values)
    found = ZERO
    start = _point(x[0], values, ZERO)
    before = _level(start[1], levels, ZERO)
    first = before
    for j in range(1, size):
        end = _point(x[j], values, j)
        after = _level(end[1], levels, before)
        if _may_turn(start, end, levels, min(before, after), max(before, after)):
            found = _resolve(work, count, cut, levels, start, end, found)
        elif after != before:
            found = _crossings(work, levels, start, before, end, after, found)
        start, before = end, after
    if found == work.found.shape[1]:
        return False
    _polish(work, count, cut, found)
    for i in range(found):
        x[i] = work.found[WHERE, i]
    fill_tails(work.columns, count, x, found, cut, values)
    _sum_up(work, count, levels, first, found, total, scale)
    return True


@borrowing
def _point(x: float, values: Array, j: int) -> Point:
    """Return x with L = log p / q and its slope there, from p, q and d = p - q."""
    d, base, sign = values[D, j], Q, 1.0
    if d < 0.0:
        base, sign = P, -1.0
    if values[base, j] < FLATTEST:
        return x, (0.0 if d == 0.0 else sign * 1e3), 0.0
    # exp|L| - 1 = s = |d| / base
    s = sign * d / values[base, j]
    slope = (sign * values[D + 1, j] - s * values[base + 1, j]) / values[base, j]
    return x, sign * math.log1p(s), sign * slope / (1.0 + s)


@borrowing
def _level(ratio: float, levels: Levels, near: int) -> int:
    """Return how many thresholds lie between 0 and L, with its sign, from that of a near point."""
    up, down = levels.up, levels.down
    level = near
    while level < up.size and (up[level] < ratio if level >= 0 else -down[-level - 1] <= ratio):
        level += 1
    while level > -down.size and (-down[-level] > ratio if level <= 0 else up[level - 1] >= ratio):
        level -= 1
    return level


@borrowing
def _threshold(level: int, levels: Levels) -> float:
    """Return the value of L at which its level passes from level to level + 1."""
    if level >= 0:
        return levels.up[level] if level < levels.up.size else math.inf
    return -levels.down[-level - 1] if -level - 1 < levels.down.size else -math.inf


@borrowing
def _may_turn(start: Point, end: Point, levels: Levels, low: int, high: int) -> bool:
    """Whether L may leave [L0, L1] between two points far enough to pass another threshold.

    low and high are the levels at the lower and the higher end.
    """
    least, most = range_between(start, end)
    return most > _threshold(high, levels) or least < _threshold(low - 1, levels)


@borrowing
def _resolve(
    work: TailWork, count: int, cut: float, levels: Levels, start: Point, end: Point, found: int
) -> int:
    """Halve an interval until L is monotone, or no threshold in reach, on every part."""
    stack = work.stack
    size = wait(stack, ZERO, start, end, 0.0)
    while size > 0:
        size -= 1
        start = stack[size, 0], stack[size, 1], stack[size, 2]
        end, depth = (stack[size, 3], stack[size, 4], stack[size, 5]), stack[size, 6]
        before = _level(start[1], levels, ZERO)
        after = _level(end[1], levels, before)
        turn = _may_turn(start, end, levels, min(before, after), max(before, after))
        if turn and depth < HALVINGS:
            work.one[0] = 0.5 * (start[0] + end[0])
            fill_values(work.columns, count, work.one, work.one.size, cut, work.at)
            centre = _point(work.one[0], work.at, ZERO)
            size = wait(stack, size, centre, end, depth + 1.0)
            size = wait(stack, size, start, centre, depth + 1.0)
        elif before != after:
            found = _crossings(work, levels, start, before, end, after, found)
    return found


@borrowing
def _crossings(
    work: TailWork, levels: Levels, start: Point, before: int, end: Point, after: int, found: int
) -> int:
    """Append every threshold that L passes in an interval on which it is monotone."""
    rows, step, level = work.found, (1 if after > before else -1), before
    while level != after and found < rows.shape[1]:
        number = level if step > 0 else level - 1
        level += step
        value = _threshold(number, levels)
        rows[WHERE, found] = inverse_hermite(start, end, value)
        rows[LOW, found], rows[HIGH, found], rows[VALUE, found] = start[0], end[0], value
        rows[RISES, found], rows[NUMBER, found] = step, number
        rows[WIDTH, found] = end[0] - start[0]
        found += 1
    return found


@borrowing
def _polish(work: TailWork, count: int, cut: float, found: int) -> None:
    """Move every sign change to where L has its value, all of them at a time.

    Newton's method, kept between the ends of the interval, which close in; halving where it
    leaves them.
    """
    rows, x, values, which = work.found, work.x, work.values, work.points
    moving = found
    for i in range(found):
        which[i] = i
    for _ in range(POLISHING):
        if moving == 0:
            return
        for j in range(moving):
            x[j] = rows[WHERE, int(which[j])]
        fill_values(work.columns, count, x, moving, cut, values)
        left = ZERO
        for j in range(moving):
            i = int(which[j])
            here, ratio, slope = _point(x[j], values, j)
            error = ratio - rows[VALUE, i]
            if error == 0.0:
                continue
            if (error > 0.0) == (rows[RISES, i] > 0.0):
                rows[HIGH, i] = here
            else:
                rows[LOW, i] = here
            low, high = rows[LOW, i], rows[HIGH, i]
            guess = here - error / slope if slope != 0.0 else math.inf
            if not low <= guess <= high:
                guess = 0.5 * (low + high)
            rows[WHERE, i] = guess
            if abs(guess - here) > CLOSE_ENOUGH * rows[WIDTH, i] and (
                high - low > 1e-13 * (abs(low) + abs(high))
            ):
                which[left] = i
                left += 1
        moving = left


@borrowing
def _sum_up(
    work: TailWork, count: int, levels: Levels, first: int, found: int, total: Array, scale: Array
) -> None:
    """Add the masses between sign changes, from left to right, for every threshold."""
    opened, rows = work.opened, work.found
    end = whole(work.columns, count)
    for e in range(levels.up.size):
        total[0, e] = total[1, e] = scale[0, e] = scale[1, e] = 0.0
        opened[0, e] = BEFORE_ALL if first > e else CLOSED
        opened[1, e] = BEFORE_ALL if -first > e else CLOSED
    for i in range(found):
        number, rises = int(rows[NUMBER, i]), rows[RISES, i] > 0.0
        side, e, enters = 0, number, rises
        if number < 0:
            side, e, enters = 1, -number - 1, not rises
        if enters:
            opened[side, e] = i
        else:
            if opened[side, e] != CLOSED:
                _add(work.values, levels, side, e, opened[side, e], i, end, total, scale)
            opened[side, e] = CLOSED
    for e in range(levels.up.size):
        for side in range(2):
            if opened[side, e] != CLOSED:
                _add(work.values, levels, side, e, opened[side, e], AFTER_ALL, end, total, scale)
            total[side, e] = min(max(total[side, e], 0.0), 1.0)


@borrowing
def _add(
    tails: Array, levels: Levels, side: int, e: int, start: int, stop: int,
    end: tuple[float, float, float], total: Array, scale: Array,
) -> None:  # fmt: skip
    """Add the mass between two sign changes, and that of all that is subtracted to find it."""
    growth = levels.up_growth[e] if side == 0 else levels.down_growth[e]
    tail_base = tail_d = step_p = step_q = step_d = size_p = size_q = 0.0
    base = Q if side == 0 else P
    if stop == AFTER_ALL:
        step_p, step_q, step_d = end
    else:
        tail_base, tail_d = tails[base, stop], tails[D, stop]
        step_p, step_q, step_d = tails[P + 1, stop], tails[Q + 1, stop], tails[D + 1, stop]
        size_p, size_q = tails[P_SIZE, stop], tails[Q_SIZE, stop]
    if start != BEFORE_ALL:
        tail_base, tail_d = tail_base - tails[base, start], tail_d - tails[D, start]
        step_p, step_q = step_p - tails[P + 1, start], step_q - tails[Q + 1, start]
        step_d -= tails[D + 1, start]
        size_p, size_q = size_p + tails[P_SIZE, start], size_q + tails[Q_SIZE, start]
    size_p, size_q = size_p + abs(step_p), size_q + abs(step_q)
    if side == 0:
        total[side, e] += (tail_d - growth * tail_base) + (step_d - growth * step_q)
        scale[side, e] += size_p + (1.0 + growth) * size_q
    else:
        total[side, e] += (-tail_d - growth * tail_base) + (-step_d - growth * step_p)
        scale[side, e] += size_q + (1.0 + growth) * size_p
