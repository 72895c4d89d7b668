"""Densities of two Laplace mixtures that share one scale, and their difference, at all knots.

Between two neighbouring knots (the locations of p and q, sorted) every density is
A exp(-u) + B exp(u), so the ratio p / q is monotone there and p - exp(eps) q changes sign at
most once. The whole integral then follows (see `interval_sums`) from three numbers at each knot,
p, q and d = p - q, which recurrences from the left and from the right give for all knots in O(n).

A component and its shifted copy are kept together as a pair, whose share of d is formed from
1 - exp(-shift), so that d keeps its relative precision however small the shifts are. Only knots
that lie inside the shift of another pair see the two members of that pair apart.

The order of the knots is the same for all draws, so the recurrences run over many draws (lanes)
at once, in loops that become vector instructions. They also tell at which knots the ratio exceeds
the smallest exp(eps) in any lane: it is monotone between knots, so nothing else matters.

The buffer of values is flat, one line of LINE numbers for each knot, and unsigned integers
address it: only so can the compiler show that the rows of a line are distinct and that no index
counts from the end, which vector instructions need.
"""

from __future__ import annotations

import numpy as np

from edp_bayes.divergence.one_scale.knots import (
    AT_P,
    AT_Q,
    END_GAIN,
    ENDS,
    OWN,
    SHIFT,
    SIGN,
    START_GAIN,
    STARTS,
    WIDE,
)
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, decay

__all__ = ["KEPT", "LANES", "LINE", "LOST", "D", "P", "Q", "Unsigned", "buffer", "knot_values"]

Unsigned = np.uint64

LANES = 32  # draws whose recurrences run together
# Rows of a line, LANES numbers each. The line of knot k is k + 1; line 0 and the line after the
# last knot are zero except for KEPT and LOST, which belong to the gap on the knot's right and,
# further on, to the shifts of wide pairs.
_ROWS = 8
KEPT, LOST, P, Q, D, RIGHT_P, RIGHT_Q, RIGHT_D = (np.uint64(row * LANES) for row in range(_ROWS))
# The padding spreads the values of one lane over the whole cache.
LINE = np.uint64(_ROWS * LANES + 8)
WIDTH = np.uint64(LANES)


@compiled
def buffer(n: int, m: int) -> Array:
    """Return the buffer of values for n and m components."""
    return np.zeros((n + m + min(n, m) + 2) * int(LINE))


@compiled
def knot_values(
    count: int,
    total: int,
    steps: Index,
    distances: Array,
    rate: Array,
    weights: Array,
    same: bool,
    growth: float,
    values: Array,
    apart: Array,
    above: Index,
) -> None:
    """Fill the buffer of values for a block of lanes, up to the factor 1 / (2 h).

    rate (lanes) holds 1 / h; weights (rows of LANES numbers, flat) what the plan points to; same
    tells that p and q have the same weights; apart (LANES) is workspace. above (2, count) tells of
    each knot whether p > (1 + growth) q, and q > (1 + growth) p, in any lane.
    """
    lanes = np.uint64(rate.size)
    _decays(total, distances, rate, values)
    _clear(count, values)
    _from_left(count, steps, weights, same, lanes, values)
    if total >= count:  # some pairs are wide
        _apart(count, steps, weights, False, lanes, values, apart)
        _apart(count, steps, weights, True, lanes, values, apart)
    _from_right(count, steps, weights, same, growth, lanes, values, above)


@compiled
def _decays(total: int, distances: Array, rate: Array, values: Array) -> None:
    """Fill in exp(-gap / h) and 1 - exp(-gap / h) of every distance between knots, in each lane."""
    lanes = np.uint64(rate.size)
    for k in range(total):
        at = np.uint64(k + 1) * LINE
        gap = distances[k]
        for lane in range(lanes):
            kept, lost = decay(gap * rate[lane])
            values[at + KEPT + lane] = kept
            values[at + LOST + lane] = lost


@compiled
def _clear(count: int, values: Array) -> None:
    """Set what lies after the last knot to zero: there is nothing on its right."""
    after = np.uint64(count + 1) * LINE
    for place in range(P, LINE):
        values[after + place] = 0.0


@compiled
def _from_left(
    count: int, steps: Index, weights: Array, same: bool, lanes: Unsigned, values: Array
) -> None:
    """Sum everything on the left of each knot, the knot included.

    A pair of which both members are on the left adds to d w - v exp(-t) =
    (w - v) + v (1 - exp(-t)) seen from p's member, w exp(-t) - v = (w - v) - w (1 - exp(-t)) from
    q's.
    """
    for k in range(count):
        step = steps[k]
        at = np.uint64(k + 1) * LINE
        last = at - LINE
        a, b = np.uint64(step[AT_P]) * WIDTH, np.uint64(step[AT_Q]) * WIDTH
        j, shift = np.uint64(step[ENDS]) * WIDTH, np.uint64(step[SHIFT] + 1) * LINE
        sign = float(step[SIGN])
        for lane in range(lanes):
            kept = values[last + KEPT + lane]
            values[at + P + lane] = values[last + P + lane] * kept + weights[a + lane]
            values[at + Q + lane] = values[last + Q + lane] * kept + weights[b + lane]
            pair = sign * weights[j + lane] * values[shift + LOST + lane]
            values[at + D + lane] = values[last + D + lane] * kept + pair
        if not same:  # weights that stay where they are drop out of d
            _add(values, at + D, weights, step[OWN], lanes)
            _add(values, at + D, weights, step[END_GAIN], lanes)


@compiled
def _from_right(
    count: int,
    steps: Index,
    weights: Array,
    same: bool,
    growth: float,
    lanes: Unsigned,
    values: Array,
    above: Index,
) -> None:
    """Add everything on the right of each knot, the knot excluded, and compare p with q.

    A pair whose left member is the knot counts as closed here, and not in the sum from the left.
    """
    for back in range(count):
        k = count - 1 - back
        step = steps[k]
        at = np.uint64(k + 1) * LINE
        after = at + LINE
        a, b = np.uint64(step[AT_P]) * WIDTH, np.uint64(step[AT_Q]) * WIDTH
        j, shift = np.uint64(step[STARTS]) * WIDTH, np.uint64(step[SHIFT] + 1) * LINE
        sign = float(step[SIGN])
        for lane in range(lanes):
            kept = values[at + KEPT + lane]
            values[at + RIGHT_P + lane] = values[after + RIGHT_P + lane] * kept + weights[a + lane]
            values[at + RIGHT_Q + lane] = values[after + RIGHT_Q + lane] * kept + weights[b + lane]
            pair = sign * weights[j + lane] * values[shift + LOST + lane]
            values[at + RIGHT_D + lane] = values[after + RIGHT_D + lane] * kept + pair
        if not same:
            _add(values, at + RIGHT_D, weights, step[START_GAIN], lanes)
        p_above, q_above = 0, 0
        for lane in range(lanes):
            kept = values[at + KEPT + lane]
            p = values[at + P + lane] + values[after + RIGHT_P + lane] * kept
            q = values[at + Q + lane] + values[after + RIGHT_Q + lane] * kept
            d = values[at + D + lane] + values[at + RIGHT_D + lane]
            values[at + P + lane] = p
            values[at + Q + lane] = q
            values[at + D + lane] = d
            p_above |= d > growth * q
            q_above |= -d > growth * p
        above[0, k], above[1, k] = p_above, q_above
        if not same:
            _add(values, at + RIGHT_D, weights, step[OWN], lanes)


@compiled
def _add(values: Array, at: Unsigned, weights: Array, row: int, lanes: Unsigned) -> None:
    """Add a row of weights to values from `at` on, in each lane."""
    source = np.uint64(row) * WIDTH
    for lane in range(lanes):
        values[at + lane] += weights[source + lane]


@compiled
def _apart(
    count: int,
    steps: Index,
    weights: Array,
    backward: bool,
    lanes: Unsigned,
    values: Array,
    apart: Array,
) -> None:
    """Add to d the member already met of every wide pair whose other member is still to come."""
    opens = -1 if backward else 1
    closing = STARTS if backward else ENDS
    pairs = 0
    for n in range(count):
        k = count - 1 - n if backward else n
        step = steps[k]
        at = np.uint64(k + 1) * LINE
        gap = at if backward else at - LINE
        if pairs > 0:
            for lane in range(lanes):
                apart[lane] *= values[gap + KEPT + lane]
        if step[WIDE] == -opens:  # the member met first leaves, now that the other closes the pair
            pairs -= 1
            j, shift = np.uint64(step[closing]) * WIDTH, np.uint64(step[SHIFT] + 1) * LINE
            sign = float(step[SIGN])
            for lane in range(lanes):
                apart[lane] += sign * weights[j + lane] * values[shift + KEPT + lane]
        if pairs > 0:
            for lane in range(lanes):
                values[at + D + lane] += apart[lane]
        if step[WIDE] == opens:
            if pairs == 0:
                apart[:] = 0.0
            pairs += 1
            a, b = np.uint64(step[AT_P]) * WIDTH, np.uint64(step[AT_Q]) * WIDTH
            for lane in range(lanes):
                apart[lane] += weights[a + lane] - weights[b + lane]
