"""Bounds of the risk of a pair of Gaussian mixtures from their masses in cells.

With d = p - q, R = d / q and growth = exp(eps) - 1, p - exp(eps) q is q (R - growth). The masses of
d and of q in a cell are exact, and so is the mean of R there. Where R lies between two ends in the
cell, the convex function (R - growth)_+ lies below its chord, and its mean below the chord at the
mean: only cells in which R may pass growth lose something. For q - exp(eps) p it is -d / p =
-R / (1 + R), which falls with R. How the ends of R are found, and why all of this holds, is in "Who
is surely not the riskiest" (docs/mathematics/individuals.md).
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.near_pair.nodes import MOST_NODES
from edp_bayes.utils.compiled import borrowing, compiled, decay, mills_ratio

__all__ = ["STEP", "bound_by_cells", "cell_workspace"]

STEP = 0.3  # of the narrowest component that counts, between edges
ROUNDING = 1e-13  # by which bounds are raised
SMALLEST = 1e-30  # mass of a cell that is not divided by
STEEPEST = 600.0  # log ratio of g to q beyond which both have to underflow not to matter
PEAK = 1.0 / math.sqrt(2.0 * math.pi)
# Rows of a component by cell: the least and the largest w_k q_k, and of rho_k (g_k / q_k - 1)
LIGHT, HEAVY, LOW, HIGH = range(4)


@compiled
def cell_workspace(components, levels):  # type: ignore[no-untyped-def]
    """Return what the function below writes to, for one thread.

    Values of a component at the edges, its ends by cell, sums over components by cell, and the
    parts of both directions that are in full up to a level, and those of one level.
    """
    return (
        np.empty((4, MOST_NODES)),
        np.empty((components, 4, MOST_NODES)),
        np.empty((6, MOST_NODES)),
        np.empty((2, 3, levels)),
    )


@borrowing
def bound_by_cells(x, count, parts, size, rest, growth, work, out):  # type: ignore[no-untyped-def]
    """Fill in bounds of max(H_eps(p || q), H_eps(q || p)) at every epsilon.

    x has `count` edges. Columns of parts are components: location and scale of g and of q,
    presence rho and weight w, of p with components w ((1 - rho) q + rho g); rest is what all others
    add at most. growth, exp(eps) - 1, increases.
    """
    at, ends, sums, total = work
    sums[:, : count - 1], total[:] = 0.0, 0.0
    forth = back = rest + ROUNDING
    for k in range(size):
        beyond_g, beyond_q = _add_component(x, count, parts[:, k], at, ends[k], sums)
        # beyond all edges the integrals are at most these
        forth, back = forth + beyond_g, back + beyond_q
    _add_ranges(count - 1, size, ends, sums)
    forth, back = _add_cells(count - 1, sums, growth, total, forth, back)
    for side in range(2):
        full_d = full_base = 0.0
        least = forth if side == 0 else back
        for e in range(growth.size - 1, -1, -1):
            full_d, full_base = full_d + total[side, 0, e], full_base + total[side, 1, e]
            value = least + total[side, 2, e] + (full_d - growth[e] * full_base)
            out[e] = min(max(value, out[e] if side == 1 else 0.0), 1.0)


@borrowing
def _add_component(x, count, part, at, ends, sums):  # type: ignore[no-untyped-def]
    """Add the masses of a component in every cell, and fill in its ends there.

    Returns what g and q have beyond all edges, times w rho. Loops are short and without branches,
    so that they become vector instructions.
    """
    m, s, n, t, rho, w = part[0], part[1], part[2], part[3], part[4], part[5]
    rate, rate_q, front, height = 1.0 / s, 1.0 / t, math.log(t / s), w * PEAK / t
    x, density, below_q = x[:count], at[0, :count], at[1, :count]
    ratio, below_g = at[2, :count], at[3, :count]
    for j in range(x.size):
        u = (x[j] - n) * rate_q
        q = decay(0.5 * u * u)[0]
        tail = q * mills_ratio(abs(u))
        density[j] = height * q
        below_q[j] = w * (tail if u < 0.0 else 1.0 - tail)
    for j in range(x.size):
        v = (x[j] - m) * rate
        tail = decay(0.5 * v * v)[0] * mills_ratio(abs(v))
        below_g[j] = w * rho * (tail if v < 0.0 else 1.0 - tail)
    for j in range(x.size):
        u, v = (x[j] - n) * rate_q, (x[j] - m) * rate
        log_ratio = front + 0.5 * (u - v) * (u + v)
        fall = decay(min(abs(log_ratio), STEEPEST))[0]
        ratio[j] = rho * ((fall if log_ratio < 0.0 else 1.0 / fall) - 1.0)
    _add_differences(below_q, 1.0, sums[0])
    _add_differences(below_g, 1.0, sums[1])
    _add_differences(below_q, -rho, sums[1])
    _fill_ends(density, ends[LIGHT], ends[HEAVY])
    _fill_ends(ratio, ends[LOW], ends[HIGH])
    if x[0] <= n < x[count - 1]:
        # A normal density is least at an end of a cell, and largest there or at its location.
        ends[HEAVY, _cell_of(x, count, n)] = height
    curvature = rate_q * rate_q - rate * rate
    turn = (n * rate_q * rate_q - m * rate * rate) / curvature if curvature != 0.0 else np.inf
    steepest = 0.0
    for place in (m, turn, x[0], x[count - 1]):
        # The log ratio, a parabola, has its ends there or where it turns.
        if x[0] <= place <= x[count - 1]:
            c, v, u = _cell_of(x, count, place), (place - m) * rate, (place - n) * rate_q
            log_ratio = front + 0.5 * (u - v) * (u + v)
            steepest = max(steepest, log_ratio)
            value = rho * math.expm1(min(log_ratio, STEEPEST))
            ends[LOW, c], ends[HIGH, c] = min(ends[LOW, c], value), max(ends[HIGH, c], value)
    if steepest > STEEPEST:
        _let_go(x, m, rate, n, rate_q, front, ends)
    first, last, share = 0, count - 1, w * rho
    beyond_q = share - rho * (below_q[last] - below_q[first])
    return share - (below_g[last] - below_g[first]), beyond_q


@borrowing
def _add_differences(below, factor, out):  # type: ignore[no-untyped-def]
    """Add the differences of neighbours, times a factor."""
    for c in range(below.size - 1):
        out[c] += factor * (below[c + 1] - below[c])


@borrowing
def _fill_ends(values, low, high):  # type: ignore[no-untyped-def]
    """Fill in the smaller and the larger of neighbours."""
    for c in range(values.size - 1):
        low[c], high[c] = min(values[c], values[c + 1]), max(values[c], values[c + 1])


@borrowing
def _let_go(x, m, rate, n, rate_q, front, ends):  # type: ignore[no-untyped-def]
    """Leave cells without a bound in which q underflows beside g."""
    inside = _cell_of(x, x.size, m) if x[0] <= m <= x[x.size - 1] else -1
    for c in range(x.size - 1):
        for place in (x[c], x[c + 1], m if c == inside else x[c]):
            v, u = (place - m) * rate, (place - n) * rate_q
            if front + 0.5 * (u - v) * (u + v) > STEEPEST and decay(0.5 * v * v)[0] > 0.0:
                ends[HEAVY, c] = ends[HIGH, c] = np.inf


@borrowing
def _cell_of(x, count, value):  # type: ignore[no-untyped-def]
    """Return the cell in which a value between the first and the last edge lies."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if x[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@borrowing
def _add_ranges(cells, size, ends, sums):  # type: ignore[no-untyped-def]
    """Add up what bounds R from its mean M.

    R - M is sum_k w_k q_k (rho_k (g_k / q_k - 1) - M) over sum_k w_k q_k. Rows of sums: masses of q
    and of d, the most of the numerator, the most of minus the numerator, the least of the
    denominator, and M.
    """
    up, down, least, mean = sums[2], sums[3], sums[4], sums[5]
    for c in range(cells):
        mean[c] = sums[1, c] / max(sums[0, c], SMALLEST)
    for k in range(size):
        light, heavy, low, high = ends[k, LIGHT], ends[k, HEAVY], ends[k, LOW], ends[k, HIGH]
        for c in range(cells):
            above = high[c] - mean[c]
            up[c] += above * (heavy[c] if above > 0.0 else light[c])
        for c in range(cells):
            below = mean[c] - low[c]
            down[c] += below * (heavy[c] if below > 0.0 else light[c])
        for c in range(cells):
            least[c] += light[c]


@borrowing
def _add_cells(cells, sums, growth, total, forth, back):  # type: ignore[no-untyped-def]
    """Add both integrals over every cell; return what each has at every epsilon.

    Rows of total, by direction: masses of d and of what it is divided by, of cells that count in
    full up to a level, and the sum of others at a level.
    """
    near_up = near_down = 0
    for c in range(cells):
        q, d = sums[0, c], sums[1, c]
        p = q + d
        if q <= SMALLEST or p <= SMALLEST or sums[4, c] <= 0.0:
            # of p and of q there is next to nothing
            forth, back = forth + max(p, 0.0), back + max(q, 0.0)
            continue
        high = d / q + max(sums[2, c], 0.0) / sums[4, c]
        low = d / q - max(sums[3, c], 0.0) / sums[4, c]
        near_up = _add_cell(d, q, low, high, growth, total[0], near_up)
        most = -low / (1.0 + low) if low > -1.0 else np.inf
        least = -high / (1.0 + high) if high < np.inf else -1.0
        near_down = _add_cell(-d, p, least, most, growth, total[1], near_down)
    return forth, back


@borrowing
def _add_cell(d, base, low, high, growth, total, near):  # type: ignore[no-untyped-def]
    """Add the integral of (d - growth base)_+, where d / base lies between low and high.

    Returns how many levels are at most low, near which the next cell's number is looked for.
    """
    while near < growth.size and growth[near] <= low:
        near += 1
    while near > 0 and growth[near - 1] > low:
        near -= 1
    if near > 0:
        total[0, near - 1] += d
        total[1, near - 1] += base
    above, width = max(d - low * base, 0.0), high - low
    for e in range(near, growth.size):
        if growth[e] >= high:
            break
        total[2, e] += above * ((high - growth[e]) / width if width < np.inf else 1.0)
    return near
