"""Hockey-stick integrals from the values at the knots of Laplace mixtures of one scale.

Between two knots p - exp(eps) q changes sign at most once:

- an interval on which p > exp(eps) q throughout adds
  (d_0 + d_1 - expm1(eps) (q_0 + q_1)) tanh(width / 2);
- one that the sign change cuts, with d - expm1(eps) q equal to g at one end and -m at the
  other, adds g^2 / (sqrt(a) + sqrt(b))^2, where a and b are the two exponential parts of the
  integrand at the positive end. No logarithm is needed and nothing cancels.

`sums` adds up all intervals for one epsilon and many draws (lanes) at once, in vector
instructions, whatever the intervals look like. `integrate` takes one lane and any number of
epsilon, in O(n + E): intervals of equal level (how many epsilon lie below the log ratio, counted
negatively where q > p) are added up together, and only those that span levels one by one.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.one_scale.shared_scale import KEPT, LINE, LOST, D, P, Q, Unsigned
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, inlined

__all__ = ["integrate", "levels", "marked", "marks", "sums"]

TINY = 2.2250738585072014e-308  # densities of zero count as this in ratios


@compiled
def marks(n: int, m: int) -> tuple[Index, Index]:
    """Return the marks of knots and the lists of intervals, (2, n + m) both: for p and for q."""
    return np.zeros((2, n + m), dtype=np.int64), np.zeros((2, n + m), dtype=np.int64)


@compiled
def marked(count: int, above: Index, intervals: Index) -> int:
    """List the intervals one end of which is marked, and return their number."""
    size = 0
    for k in range(count - 1):
        intervals[size] = k
        size += 1 if above[k] + above[k + 1] > 0 else 0
    return size


@compiled
def sums(
    count: int,
    growth: float,
    sign: float,
    lanes: int,
    values: Array,
    intervals: Index,
    size: int,
    total: Array,
) -> int:
    """Fill total (LANES) with the integral at one epsilon, for all lanes at once.

    growth is expm1(eps), sign 1 for H(p || q) and -1 for H(q || p). Of the listed intervals those
    with any positive part stay in the list; returns how many.
    """
    width = np.uint64(lanes)
    row = Q if sign > 0.0 else P
    first, last = LINE, np.uint64(count) * LINE
    for lane in range(width):
        left = sign * values[first + D + lane] - growth * values[first + row + lane]
        right = sign * values[last + D + lane] - growth * values[last + row + lane]
        total[lane] = max(left, 0.0) + max(right, 0.0)
    left_over = 0
    for place in range(size):
        at = np.uint64(intervals[place] + 1) * LINE
        after = at + LINE
        positive = 0
        for lane in range(width):
            g0 = sign * values[at + D + lane] - growth * values[at + row + lane]
            g1 = sign * values[after + D + lane] - growth * values[after + row + lane]
            total[lane] += _positive(g0, g1, values[at + KEPT + lane], values[at + LOST + lane])
            positive |= max(g0, g1) > 0.0
        intervals[left_over] = intervals[place]
        left_over += positive
    for lane in range(width):
        total[lane] = min(0.5 * total[lane], 1.0)
    return left_over


@inlined
def _positive(g0: float, g1: float, kept: float, lost: float) -> float:
    """Integrate the positive part of an interval, without branches."""
    high, low = max(g0, g1), min(g0, g1)
    g, m = max(high, 0.0), max(-low, 0.0)
    a = g + kept * m
    b = kept * (kept * g + m)
    cut = a + b + 2.0 * math.sqrt(a * b)
    above = g * g * (1.0 + kept) if low < 0.0 else g + low
    below = max(cut, 1e-300) if low < 0.0 else 1.0 + kept
    return above * lost / below


@compiled
def levels(growth: Array) -> tuple[Array, Array, Array]:
    """Return what `integrate` needs: work (3, 2 E + 1), a curve (2, E) and bounds (2 E + 2).

    The bounds are the ratios at which the signed level changes, between two infinities: level v
    (from -E to E) lies between places v + E and v + E + 1.
    """
    size = growth.size
    bounds = np.empty(2 * size + 2)
    bounds[0], bounds[2 * size + 1] = -math.inf, math.inf
    for e in range(size):
        bounds[size - e], bounds[size + 1 + e] = -growth[e], growth[e]
    return np.zeros((3, 2 * size + 1)), np.zeros((2, size)), bounds


@compiled
def integrate(
    count: int, growth: Array, bounds: Array, lane: int, values: Array, work: Array, out: Array
) -> int:
    """Add up one lane; out (2, E) gets H(p || q) and H(q || p) for the smallest epsilon.

    Returns how many epsilon that is; for all others both integrals are zero. work (3, 2 E + 1)
    holds zeros, and does so again afterwards.
    """
    size = growth.size
    place = np.uint64(lane)
    sum_d, sum_base = _end(values, LINE + place)
    level = _move(size, sum_d / max(sum_base, TINY), bounds, size)
    reach = abs(level - size)
    for k in range(count - 1):
        at = np.uint64(k + 1) * LINE + place
        d, base = _end(values, at + LINE)
        if level == size and abs(d) <= growth[0] * base:
            continue  # nothing here: most intervals
        after = _move(level, d / max(base, TINY), bounds, size)
        if after == level:
            share, less = _interval(values, at)
            sum_d += share
            sum_base += less
            continue
        work[0, level] += sum_d
        work[1, level] += sum_base
        _cross(at, level - size, after - size, growth, values, work)
        level = after
        reach = max(reach, abs(level - size))
        sum_d = 0.0
        sum_base = 0.0
    d, base = _end(values, np.uint64(count) * LINE + place)
    work[0, level] += sum_d + d
    work[1, level] += sum_base + base
    for side in range(2):
        sign = 1 - 2 * side
        gain, less = 0.0, 0.0
        for back in range(reach):
            e = reach - 1 - back
            v = size + sign * (e + 1)
            gain += sign * work[0, v]
            less += work[1, v]
            whole = gain - growth[e] * less if less > 0.0 else gain
            out[side, e] = min(max(0.5 * (max(whole, 0.0) + work[2, v]), 0.0), 1.0)
    work[:, size - reach : size + reach + 1] = 0.0
    return reach


@inlined
def _end(values: Array, at: Unsigned) -> tuple[float, float]:
    """Return d and min(p, q) at a knot: also their integrals over the tail beyond it."""
    d = values[at + D]
    return d, values[at + Q] if d > 0.0 else values[at + P]


@inlined
def _interval(values: Array, at: Unsigned) -> tuple[float, float]:
    """Integrate d and min(p, q) over the gap on the right of a knot.

    An interval that meets both p > q and p < q is never taken as a whole.
    """
    d0, base0 = _end(values, at)
    d1, base1 = _end(values, at + LINE)
    half = values[at + LOST] / (1.0 + values[at + KEPT])  # tanh of half the width
    return (d0 + d1) * half, (base0 + base1) * half


@compiled
def _move(level: int, r: float, bounds: Array, size: int) -> int:
    """Return the level of ratio r: bounds are passed strictly, away from zero."""
    while level < 2 * size and (r > bounds[level + 1] or (level < size and r == bounds[level + 1])):
        level += 1
    while level > 0 and (r < bounds[level] or (level > size and r == bounds[level])):
        level -= 1
    return level


@compiled
def _cross(
    at: Unsigned, before: int, after: int, growth: Array, values: Array, work: Array
) -> None:
    """Add an interval that spans several size: in part to those it crosses."""
    size = growth.size
    d0, d1 = values[at + D], values[at + LINE + D]
    kept, lost = values[at + KEPT], values[at + LOST]
    for side in range(2):
        sign = 1 - 2 * side
        first, last = max(sign * before, 0), max(sign * after, 0)
        low, high = min(first, last), max(first, last)
        if high == 0:
            continue
        row = Q if side == 0 else P
        q0, q1 = values[at + row], values[at + LINE + row]
        if low > 0:
            share, less = _interval(values, at)
            work[0, size + sign * low] += share
            work[1, size + sign * low] += less
        for e in range(low, high):
            g0 = sign * d0 - growth[e] * q0
            g1 = sign * d1 - growth[e] * q1
            if last > first:
                g0, g1 = g1, g0
            share = _cut(max(g0, 0.0), max(-g1, 0.0), kept, lost)
            work[2, size + sign * (e + 1)] += share


@inlined
def _cut(g: float, m: float, kept: float, lost: float) -> float:
    """Integrate the positive part of an interval with values g and -m at its ends."""
    a = g + kept * m
    b = kept * (kept * g + m)
    whole = a + b + 2.0 * math.sqrt(a * b)
    return g * g * lost * (1.0 + kept) / max(whole, 1e-300)
