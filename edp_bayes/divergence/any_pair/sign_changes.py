"""Where p - exp(eps) q or q - exp(eps) p change sign, for a whole grid of epsilon at once.

The signed excess s is p / q - 1 where p > q and 1 - q / p where p < q. It passes expm1(eps) where
p - exp(eps) q changes sign, and -expm1(eps) where q - exp(eps) p does. The signed level of a point
is the number of thresholds that s has passed there, counted from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from edp_bayes.divergence.any_pair.evaluators import D_SLOPE, P_SLOPE, Q_SLOPE, D, P, Q
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, borrowing, compiled, linked

__all__ = [
    "STACK",
    "Evaluate",
    "Workspace",
    "crossings",
    "excess",
    "inverse_hermite",
    "may_turn",
    "polish",
    "range_between",
    "resolve",
    "signed_level",
    "wait",
]

Evaluate = Callable[[Array, Index, Array, float, Array], None]
Point = tuple[float, float, float]  # with s and its slope there

HALVINGS = 16
STACK = 64  # intervals that may wait to be halved


class Workspace(NamedTuple):
    """The two mixtures, the thresholds, and what the integrator writes to, for one thread.

    Attributes
    ----------
    evaluate : function
        As `edp_bayes.divergence.any_pair.evaluators.evaluator` returns it.
    table, ends : ndarray
        The components, as `edp_bayes.divergence.any_pair.components.tabulate` fills them in.
    growth : ndarray
        Shape (level,): expm1(eps).
    x, values : ndarray
        Shapes (batch,), (VALUES, batch): points, and the mixtures there.
    nodes : ndarray
        Shape (4, batch): the nodes of a cell, s and its slope there, and the mass of p.
    stack : ndarray
        Shape (STACK, 7): intervals that wait to be halved.
    breaks : ndarray
        Shape (most, 6): the sign changes of a cell, as `crossings` appends them.
    work : ndarray
        Shape (4, level + 1): integrals by level.
    """

    evaluate: Evaluate
    table: Array
    ends: Index
    growth: Array
    x: Array
    values: Array
    nodes: Array
    stack: Array
    breaks: Array
    work: Array


@compiled
def excess(values: Array, i: int) -> tuple[float, float]:
    """Return the signed excess s at point i and its slope."""
    d = values[D, i]
    base, base_slope = values[Q, i], values[Q_SLOPE, i]
    if d < 0.0:
        base, base_slope = values[P, i], values[P_SLOPE, i]
    if base < 1e-290:
        return (0.0 if d == 0.0 else d / 1e-300), 0.0
    s = d / base
    return s, (values[D_SLOPE, i] - s * base_slope) / base


@compiled
def _count_below(growth: Array, s: float) -> int:
    """Return how many values of growth, increasing, are below s, by bisection."""
    low, high = 0, growth.size
    while low < high:
        middle = (low + high) // 2
        if growth[middle] < s:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def signed_level(s: float, growth: Array) -> int:
    """Return how many thresholds lie below abs(s), with the sign of s."""
    if s > 0.0:
        return _count_below(growth, s)
    return -_count_below(growth, -s)


@compiled
def _threshold(level: int, growth: Array) -> float:
    """Return the value of s at which the signed level passes from level to level + 1."""
    if level >= 0:
        return growth[level] if level < growth.size else math.inf
    return -growth[-level - 1] if -level - 1 < growth.size else -math.inf


@borrowing
def range_between(start: Point, end: Point) -> tuple[float, float]:
    """Return between what values a function may be from one node to the next.

    With slopes of one sign and at most three times the chord the cubic through both is monotone
    (Fritsch and Carlson 1980): then these are its values at the nodes.
    """
    (x0, s0, m0), (x1, s1, m1) = start, end
    width = x1 - x0
    rise = (s1 - s0) / width if width > 0.0 else 0.0
    steep, top, bottom = 3.0 * abs(rise), max(s0, s1), min(s0, s1)
    if m0 * rise >= 0.0 and m1 * rise >= 0.0 and abs(m0) <= steep and abs(m1) <= steep:
        return bottom, top
    if m0 > 0.0 and m1 < 0.0:
        up, down = min(m0, -m1), 0.0
    elif m0 < 0.0 and m1 > 0.0:
        up, down = 0.0, min(-m0, m1)
    else:
        up = down = max(abs(m0), abs(m1))
    return bottom - down * width, top + up * width


@compiled
def may_turn(start: Point, end: Point, growth: Array, low: int, high: int) -> bool:
    """Whether s may leave [s0, s1] between two nodes far enough to pass another threshold.

    low and high are the levels at the lower and the higher end.
    """
    least, most = range_between(start, end)
    return most > _threshold(high, growth) or least < _threshold(low - 1, growth)


@compiled
def resolve(cell: Workspace, middle: float, start: Point, end: Point, found: int) -> int:
    """Halve an interval until s is monotone, or no threshold in reach, on every part."""
    growth, x, values, stack = cell.growth, cell.x, cell.values, cell.stack
    size = wait(stack, ZERO, start, end, 0.0)
    while size > 0:
        size -= 1
        start = stack[size, 0], stack[size, 1], stack[size, 2]
        end, depth = (stack[size, 3], stack[size, 4], stack[size, 5]), stack[size, 6]
        before, after = signed_level(start[1], growth), signed_level(end[1], growth)
        turn = may_turn(start, end, growth, min(before, after), max(before, after))
        if turn and depth < HALVINGS:
            x[0] = 0.5 * (start[0] + end[0])
            cell.evaluate(cell.table, cell.ends, x[:1], middle, values)
            s, slope = excess(values, ZERO)
            centre = x[0], s, slope
            size = wait(stack, size, centre, end, depth + 1.0)
            size = wait(stack, size, start, centre, depth + 1.0)
        elif before != after:
            found = crossings(cell, start, before, end, after, found)
    return found


@linked
def wait(stack: Array, size: int, start: Point, end: Point, depth: float) -> int:
    """Put an interval on the stack."""
    for i in range(3):
        stack[size, i], stack[size, 3 + i] = start[i], end[i]
    stack[size, 6] = depth
    return size + 1


@borrowing
def crossings(
    cell: Workspace, start: Point, before: int, end: Point, after: int, found: int
) -> int:
    """Append a row (guess, low, high, threshold, rises, level after) for each sign change."""
    breaks = cell.breaks
    step = 1 if after > before else -1
    level = before
    while level != after and found < breaks.shape[0]:
        target = _threshold(level if step > 0 else level - 1, cell.growth)
        level += step
        breaks[found, 0] = inverse_hermite(start, end, target)
        breaks[found, 1], breaks[found, 2] = start[0], end[0]
        breaks[found, 3], breaks[found, 4], breaks[found, 5] = target, step, level
        found += 1
    return found


@linked
def inverse_hermite(start: Point, end: Point, target: float) -> float:
    """Solve the cubic with these end values and slopes for target."""
    (x0, s0, m0), (x1, s1, m1) = start, end
    width = x1 - x0
    rise = s1 - s0
    t = min(max((target - s0) / rise, 0.0), 1.0)
    a, b = m0 * width, m1 * width
    for _ in range(3):
        value = s0 + t * (a + t * ((3.0 * rise - 2.0 * a - b) + t * (a + b - 2.0 * rise)))
        slope = a + t * (2.0 * (3.0 * rise - 2.0 * a - b) + 3.0 * t * (a + b - 2.0 * rise))
        if slope * rise <= 0.0:
            break
        t = min(max(t - (value - target) / slope, 0.0), 1.0)
    return x0 + t * width


@compiled
def polish(cell: Workspace, middle: float, found: int) -> None:
    """Move every row of breaks to its sign change, a batch of them at a time."""
    x, values, breaks = cell.x, cell.values, cell.breaks
    for start in range(0, found, x.size):
        size = min(x.size, found - start)
        for _ in range(60):
            for i in range(size):
                x[i] = breaks[start + i, 0]
            cell.evaluate(cell.table, cell.ends, x[:size], middle, values)
            moving = False
            for i in range(size):
                row = breaks[start + i]
                target = row[3]
                base = Q if target >= 0.0 else P
                g = values[D, i] - target * values[base, i]
                dg = values[D_SLOPE, i] - target * values[base + 3, i]
                if g == 0.0 or row[2] <= row[1]:
                    continue
                if (g > 0.0) == (row[4] > 0.0):
                    row[2] = row[0]
                else:
                    row[1] = row[0]
                guess = row[0] - g / dg if dg != 0.0 else math.inf
                if not row[1] < guess < row[2]:
                    guess = 0.5 * (row[1] + row[2])
                if abs(guess - row[0]) > 1e-5 * (row[2] - row[1]) and (
                    row[2] - row[1] > 1e-13 * (abs(row[1]) + abs(row[2]))
                ):
                    moving = True
                row[0] = guess
            if not moving:
                break
