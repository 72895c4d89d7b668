"""Hockey-stick integrals of Laplace mixtures that share one scale, exact and in O(n + E).

Between two neighbouring knots (the locations of p and q, sorted) every density is
A exp(-u) + B exp(u), so the ratio p / q is monotone there and p - exp(eps) q changes sign at
most once. The whole integral then follows from three numbers at each knot, p, q and d = p - q,
which forward and backward recurrences give for all knots in O(n):

- an interval on which p > exp(eps) q throughout adds
  (d_0 + d_1 - expm1(eps) (q_0 + q_1)) tanh(width / 2);
- one that the sign change cuts, with d - expm1(eps) q equal to g at one end and -m at the
  other, adds g^2 / (sqrt(a) + sqrt(b))^2, where a and b are the two exponential parts of the
  integrand at the positive end. No logarithm is needed and nothing cancels.

A component and its shifted copy are kept together as a pair, whose share of d is formed from
1 - exp(-shift), so that d keeps its relative precision however small the shifts are. Only knots
that lie inside the shift of another pair see the two members of that pair apart.

The order of the knots is the same for all draws, so the recurrences run over many draws (lanes)
at once, in loops that become vector instructions, and so does the integral at the smallest
epsilon, where most sign changes are. The largest ratio at a knot is the largest anywhere: from
there on every epsilon is exactly safe. For the epsilon in between, a pass over the knots of one
lane adds up intervals of equal level: how many epsilon lie below the log ratio, counted
negatively where q > p.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import compiled, decay, inlined
from edp_bayes.divergence.knots import (
    AT_P,
    AT_Q,
    ENDS,
    IS_P,
    OWN_P,
    OWN_Q,
    SHIFT,
    STARTS,
    WIDE,
)

__all__ = [
    "CARRIED",
    "first",
    "integrate",
    "intervals",
    "knot_values",
    "thresholds",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Rows of the buffer of values: arrays (knot, lane).
KEPT, LOST, P, Q, D, RATIO, INTEGRAL, BASE = 0, 1, 2, 3, 4, 5, 6, 7
ROWS = 8
CARRIED = 5  # rows of running sums per lane; the last one ends as the largest ratio


@compiled
def knot_values(
    count: int,
    total: int,
    steps: Index,
    distances: Array,
    rate: Array,
    wp: Array,
    wq: Array,
    same: bool,
    lanes: int,
    values: Array,
    carry: Array,
) -> None:
    """Fill the buffer of values for a block of lanes, up to the factor 1 / (2 h).

    rate (lanes) holds 1 / h; wp, wq (component + 1, lanes) the weights, with a last row of zeros;
    same tells that wq is wp.
    The last row of carry (CARRIED, lanes) gets the largest ratio.
    """
    _decays(total, distances, rate, lanes, values[KEPT], values[LOST])
    _forward(count, steps, wp, wq, same, lanes, values[KEPT], values[LOST], values[P], values[Q],
             values[D], carry)  # fmt: skip
    _backward(count, steps, wp, wq, same, lanes, values[KEPT], values[LOST], values[P], values[Q],
              values[D], carry)  # fmt: skip
    _ratios(count, lanes, values[P], values[Q], values[D], values[RATIO], values[BASE], carry[4])


@compiled
def _decays(
    total: int, distances: Array, rate: Array, lanes: int, kept: Array, lost: Array
) -> None:
    for k in range(total):
        gap = distances[k]
        for lane in range(lanes):
            kept[k, lane], lost[k, lane] = decay(gap * rate[lane])


@compiled
def _forward(
    count: int,
    steps: Index,
    wp: Array,
    wq: Array,
    same: bool,
    lanes: int,
    kept: Array,
    lost: Array,
    p: Array,
    q: Array,
    d: Array,
    carry: Array,
) -> None:
    """Sum everything that lies to the left of each knot, the knot included.

    The loops over lanes stay short on purpose: with more arrays in one of them the compiler can
    no longer show that they are distinct, and gives up vector instructions.
    """
    n, m = wp.shape[0] - 1, wq.shape[0] - 1
    closed, apart = carry[0], carry[1]  # parts of d: complete pairs, and wide pairs still open
    closed[:] = 0.0
    open_pairs = 0
    for k in range(count):
        step = steps[k]
        a, b, last = step[AT_P], step[AT_Q], max(k - 1, 0)
        if k == 0:
            for lane in range(lanes):
                p[0, lane] = wp[a, lane]
                q[0, lane] = wq[b, lane]
        else:
            for lane in range(lanes):
                p[k, lane] = p[last, lane] * kept[last, lane] + wp[a, lane]
            for lane in range(lanes):
                q[k, lane] = q[last, lane] * kept[last, lane] + wq[b, lane]
            for lane in range(lanes):
                closed[lane] *= kept[last, lane]
        own_p, own_q = step[OWN_P], step[OWN_Q]
        if not same:  # weights that stay where they are drop out of d
            _add_rows(closed, wp[own_p], wq[own_q], lanes, own_p < n, own_q < m)
        if step[ENDS] >= 0:
            _close(closed, step, step[ENDS], wp, wq, same, lost, lanes)
        for lane in range(lanes):
            d[k, lane] = closed[lane]
        if open_pairs > 0:
            for lane in range(lanes):
                apart[lane] *= kept[last, lane]
        if step[WIDE] == 1 and step[ENDS] >= 0:
            open_pairs -= 1
            _join(apart, step, step[ENDS], wp, wq, kept, lanes)
        if open_pairs > 0:
            for lane in range(lanes):
                d[k, lane] += apart[lane]
        if step[WIDE] == 1 and step[STARTS] >= 0:
            if open_pairs == 0:
                apart[:] = 0.0
            open_pairs += 1
            _add_rows(apart, wp[a], wq[b], lanes, a < n, b < m)


@compiled
def _backward(
    count: int,
    steps: Index,
    wp: Array,
    wq: Array,
    same: bool,
    lanes: int,
    kept: Array,
    lost: Array,
    p: Array,
    q: Array,
    d: Array,
    carry: Array,
) -> None:
    """Add everything that lies to the right of each knot, the knot excluded.

    A pair whose left member is the knot counts as closed here, and not in the forward pass.
    """
    n, m = wp.shape[0] - 1, wq.shape[0] - 1
    closed, apart, sum_p, sum_q = carry[0], carry[1], carry[2], carry[3]
    carry[:, :] = 0.0
    open_pairs = 0
    for back in range(count):
        k = count - 1 - back
        step = steps[k]
        a, b = step[AT_P], step[AT_Q]
        for lane in range(lanes):
            right = sum_p[lane] * kept[k, lane]
            p[k, lane] += right
            sum_p[lane] = right + wp[a, lane]
        for lane in range(lanes):
            right = sum_q[lane] * kept[k, lane]
            q[k, lane] += right
            sum_q[lane] = right + wq[b, lane]
        for lane in range(lanes):
            closed[lane] *= kept[k, lane]
        if step[STARTS] >= 0:
            _close(closed, step, step[STARTS], wp, wq, same, lost, lanes)
        for lane in range(lanes):
            d[k, lane] += closed[lane]
        own_p, own_q = step[OWN_P], step[OWN_Q]
        if not same:  # weights that stay where they are drop out of d
            _add_rows(closed, wp[own_p], wq[own_q], lanes, own_p < n, own_q < m)
        if open_pairs > 0:
            for lane in range(lanes):
                apart[lane] *= kept[k, lane]
        if step[WIDE] == 1 and step[STARTS] >= 0:
            open_pairs -= 1
            _join(apart, step, step[STARTS], wp, wq, kept, lanes)
        if open_pairs > 0:
            for lane in range(lanes):
                d[k, lane] += apart[lane]
        if step[WIDE] == 1 and step[ENDS] >= 0:
            if open_pairs == 0:
                apart[:] = 0.0
            open_pairs += 1
            _add_rows(apart, wp[a], wq[b], lanes, a < n, b < m)


@compiled
def _add_rows(
    total: Array, row_p: Array, row_q: Array, lanes: int, has_p: bool, has_q: bool
) -> None:
    """Add a weight of p and subtract one of q."""
    if has_p and has_q:
        for lane in range(lanes):
            total[lane] += row_p[lane] - row_q[lane]
    elif has_p:
        for lane in range(lanes):
            total[lane] += row_p[lane]
    elif has_q:
        for lane in range(lanes):
            total[lane] -= row_q[lane]


@compiled
def _close(
    total: Array, step: Index, j: int, wp: Array, wq: Array, same: bool, lost: Array, lanes: int
) -> None:
    """Add the share in d of pair j, seen from its member at this knot.

    It is w - v exp(-t) = (w - v) + v (1 - exp(-t)) from p's side, and
    w exp(-t) - v = (w - v) - w (1 - exp(-t)) from q's.
    """
    row_p, row_q, loss = wp[j], wq[j], lost[step[SHIFT]]
    if not same:
        for lane in range(lanes):
            total[lane] += row_p[lane] - row_q[lane]
    if step[IS_P] == 1:
        for lane in range(lanes):
            total[lane] += row_q[lane] * loss[lane]
    else:
        for lane in range(lanes):
            total[lane] -= row_p[lane] * loss[lane]


@compiled
def _join(apart: Array, step: Index, j: int, wp: Array, wq: Array, kept: Array, lanes: int) -> None:
    """Remove the member of a wide pair that was met first, now that the other closes it."""
    keep = kept[step[SHIFT]]
    if step[IS_P] == 1:
        row = wq[j]
        for lane in range(lanes):
            apart[lane] += row[lane] * keep[lane]
    else:
        row = wp[j]
        for lane in range(lanes):
            apart[lane] -= row[lane] * keep[lane]


@compiled
def _ratios(
    count: int, lanes: int, p: Array, q: Array, d: Array, ratio: Array, base: Array, largest: Array
) -> None:
    """Fill the signed ratio at knots: p / q - 1 where p > q and 1 - q / p where p < q."""
    for lane in range(lanes):
        largest[lane] = 0.0
    for k in range(count):
        for lane in range(lanes):
            less = q[k, lane] if d[k, lane] > 0.0 else p[k, lane]
            ratio[k, lane] = d[k, lane] / max(less, 1e-300)
            base[k, lane] = less
        for lane in range(lanes):
            largest[lane] = max(largest[lane], abs(ratio[k, lane]))


@compiled
def first(
    count: int, lanes: int, growth: float, sign: float, base: int, values: Array, total: Array
) -> None:
    """Fill total (lanes) with the integral at one epsilon, for all lanes at once.

    growth is expm1(eps), and base the row Q with sign 1 for H(p || q), or P with -1 for
    H(q || p).
    """
    _first(count, lanes, growth, sign, values[D], values[base], values[KEPT], values[LOST], total)


@compiled
def _first(
    count: int,
    lanes: int,
    growth: float,
    sign: float,
    d: Array,
    base: Array,
    kept: Array,
    lost: Array,
    total: Array,
) -> None:
    last = count - 1
    for lane in range(lanes):
        left = max(sign * d[0, lane] - growth * base[0, lane], 0.0)
        total[lane] = left + max(sign * d[last, lane] - growth * base[last, lane], 0.0)
    for k in range(last):
        for lane in range(lanes):
            g0 = sign * d[k, lane] - growth * base[k, lane]
            g1 = sign * d[k + 1, lane] - growth * base[k + 1, lane]
            keep, lose = kept[k, lane], lost[k, lane]
            low = min(g0, g1)
            total[lane] += _cut(max(max(g0, g1), 0.0), max(-low, 0.0), keep, lose)
            total[lane] += max(low, 0.0) * lose / (1.0 + keep)
    for lane in range(lanes):
        total[lane] = min(0.5 * total[lane], 1.0)


@inlined
def _cut(g: float, m: float, kept: float, lost: float) -> float:
    """Integrate the positive part of an interval with values g and -m at its ends."""
    a = g + kept * m
    b = kept * (kept * g + m)
    whole = a + b + 2.0 * math.sqrt(a * b)
    return g * g * lost * (1.0 + kept) / max(whole, 1e-300)


@compiled
def intervals(count: int, lanes: int, values: Array) -> None:
    """Fill the integrals of d and of min(p, q) over each interval, which `integrate` needs.

    An interval that meets both p > q and p < q is never taken as a whole.
    """
    _intervals(count, lanes, values[KEPT], values[LOST], values[D], values[INTEGRAL], values[BASE])


@compiled
def _intervals(
    count: int, lanes: int, kept: Array, lost: Array, d: Array, integral: Array, base: Array
) -> None:
    for k in range(count - 1):
        for lane in range(lanes):  # the hyperbolic tangent of half the width
            integral[k, lane] = lost[k, lane] / (1.0 + kept[k, lane])
        for lane in range(lanes):
            base[k, lane] = (base[k, lane] + base[k + 1, lane]) * integral[k, lane]
        for lane in range(lanes):
            integral[k, lane] *= d[k, lane] + d[k + 1, lane]


@compiled
def thresholds(growth: Array, live: int, out: Array) -> None:
    """Fill out with the ratios at which the signed level changes, between two infinities.

    Level v (from -live to live) lies between out[v + live] and out[v + live + 1].
    """
    out[0] = -math.inf
    for e in range(live):
        out[live - e] = -growth[e]
        out[live + 1 + e] = growth[e]
    out[2 * live + 1] = math.inf


@compiled
def integrate(
    count: int,
    growth: Array,
    live: int,
    bounds: Array,
    lane: int,
    values: Array,
    work: Array,
    out: Array,
) -> None:
    """Add up one lane; out (2, E) gets H(p || q) and H(q || p) for the first live epsilon."""
    ratio, integral, base = values[RATIO], values[INTEGRAL], values[BASE]
    for row in range(3):
        for v in range(2 * live + 1):
            work[row, v] = 0.0
    level = live  # shifted by live, so that it indexes bounds and work
    sum_d = values[D, 0, lane]
    sum_base = values[Q, 0, lane] if sum_d > 0.0 else values[P, 0, lane]
    r = ratio[0, lane]
    level = _move(level, r, bounds, live)
    low, high = bounds[level], bounds[level + 1]
    for k in range(count - 1):
        r = ratio[k + 1, lane]
        if low < r < high:
            sum_d += integral[k, lane]
            sum_base += base[k, lane]
            continue
        after = _move(level, r, bounds, live)
        if after == level:
            sum_d += integral[k, lane]
            sum_base += base[k, lane]
            continue
        work[0, level] += sum_d
        work[1, level] += sum_base
        _cross(k, lane, level - live, after - live, live, growth, values, work)
        level = after
        low, high = bounds[level], bounds[level + 1]
        sum_d = 0.0
        sum_base = 0.0
    work[0, level] += sum_d
    work[1, level] += sum_base
    d = values[D, count - 1, lane]
    work[0, level] += d
    work[1, level] += values[Q, count - 1, lane] if d > 0.0 else values[P, count - 1, lane]
    for side in range(2):
        sign = 1 - 2 * side
        gain, less = 0.0, 0.0
        for back in range(live):
            e = live - 1 - back
            v = live + sign * (e + 1)
            gain += sign * work[0, v]
            less += work[1, v]
            whole = gain - growth[e] * less if less > 0.0 else gain
            out[side, e] = min(max(0.5 * (max(whole, 0.0) + work[2, v]), 0.0), 1.0)


@compiled
def _move(level: int, r: float, bounds: Array, live: int) -> int:
    """Return the level of ratio r: bounds are passed strictly, away from zero."""
    while level < 2 * live and (r > bounds[level + 1] or (level < live and r == bounds[level + 1])):
        level += 1
    while level > 0 and (r < bounds[level] or (level > live and r == bounds[level])):
        level -= 1
    return level


@compiled
def _cross(
    k: int, lane: int, before: int, after: int, live: int, growth: Array, values: Array, work: Array
) -> None:
    """Add an interval that spans several levels: in part to those it crosses."""
    d0, d1 = values[D, k, lane], values[D, k + 1, lane]
    kept, lost = values[KEPT, k, lane], values[LOST, k, lane]
    for side in range(2):
        sign = 1 - 2 * side
        first, last = max(sign * before, 0), max(sign * after, 0)
        low, high = min(first, last), max(first, last)
        if high == 0:
            continue
        row = Q if side == 0 else P
        q0, q1 = values[row, k, lane], values[row, k + 1, lane]
        if low > 0:
            work[0, live + sign * low] += values[INTEGRAL, k, lane]
            work[1, live + sign * low] += values[BASE, k, lane]
        for e in range(low, high):
            g0 = sign * d0 - growth[e] * q0
            g1 = sign * d1 - growth[e] * q1
            if last > first:
                g0, g1 = g1, g0
            share = _cut(max(g0, 0.0), max(-g1, 0.0), kept, lost)
            work[2, live + sign * (e + 1)] += share
