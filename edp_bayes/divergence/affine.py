"""Hockey-stick integrals of a Gaussian mixture and its affine image, a microsecond or two each.

Whoever is present in every database leaves behind q(x) = (1 + b) r(x + a + b x), where p is r
with normal noise of variance tau^2 added: p shrunk, moved and narrowed by little. With the
derivatives of p at nodes that resolve it, computed once a draw, q near a node is a series,

    q(x) / (1 + b) = sum_m E_m p^(m)(node) / m!,    E_m = u E_{m-1} - (m - 1) tau^2 E_{m-2},

u = x - node + a + b x, since r = exp(-tau^2 D^2 / 2) p. So no exponential is left for the single
individual; q - p and the difference of their tails follow from E_m - (x - node)^m without
cancellation. The absolute error is about 1e-15 for each sign change. What moves too far for the
series is left to `close`.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.compiled import borrowing, compiled
from edp_bayes.divergence.nodes import MOST_NODES, span
from edp_bayes.divergence.sweep import sweep

__all__ = ["image_integrals", "image_workspace", "is_negligible", "tabulate"]

ORDER = 18  # terms of the series
POINT_ORDER = 13  # where a sign change is looked for
FARTHEST_MOVE = 0.3  # of a step, moved and narrowed, for which ORDER terms will do
SHARE_OF_FLOOR = 0.05
BETWEEN = 1.25  # how much larger than at the nodes s may be between them
INVERSE = np.array([0.0, *(1.0 / m for m in range(1, ORDER + 1))])
TERM = math.log(1e-14)
ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@compiled
def image_workspace(levels):  # type: ignore[no-untyped-def]
    """Return what the functions below write to, for one thread.

    Tails of p at the nodes, derivatives by node and by order, values of one individual at the
    nodes, state of the sweep, largest derivatives; inverses of the steps and of p at the nodes;
    the middle of the nodes, and the largest of 1 and of the distance from there in steps.
    """
    return (
        np.empty((2, MOST_NODES)),
        np.empty((MOST_NODES, ORDER)),
        np.empty((ORDER, MOST_NODES)),
        np.empty((7, MOST_NODES)),
        np.empty((6, levels)),
        np.empty(ORDER),
        np.empty((2, MOST_NODES)),
        np.empty(3),
    )


@compiled
def tabulate(base, nodes, count, work, floor):  # type: ignore[no-untyped-def]
    """Fill in p^(m) h^m / m! and the tails of p at the nodes, component by component.

    The largest derivatives relative to p leave out tails that add up to less than the floor.
    """
    masses, by_node, by_order, values, _, steepest, inverse, extent = work
    for j in range(count):
        masses[0, j] = masses[1, j] = 0.0
        for m in range(ORDER):
            by_order[m, j] = 0.0
    for k in range(base.shape[1]):
        w, mu, sd = base[0, k], base[1, k], base[2, k]
        first, last = span(nodes, count, mu, sd)
        for j in range(first):
            masses[1, j] += w
        for j in range(last, count):
            masses[0, j] += w
        step, square = values[0, first:last], values[1, first:last]
        value, before = values[2, first:last], values[3, first:last]
        for j in range(last - first):
            u, r = (nodes[0, first + j] - mu) / sd, nodes[1, first + j] / sd
            tail = 0.5 * w * math.erfc(abs(u) / ROOT_TWO)
            masses[0, first + j] += tail if u < 0.0 else w - tail
            masses[1, first + j] += w - tail if u < 0.0 else tail
            step[j], square[j] = r * u, r * r
            value[j], before[j] = w / (sd * ROOT_TWO_PI) * math.exp(-0.5 * u * u), 0.0
        # Hermite's recurrence, times (-h / sd)^m / m!
        for m in range(ORDER):
            row, factor = by_order[m, first:last], -1.0 / (m + 1.0)
            for j in range(last - first):
                row[j] += value[j]
                new = factor * (step[j] * value[j] + square[j] * before[j])
                before[j], value[j] = value[j], new
    for m in range(ORDER):
        steepest[m] = 0.0
    extent[0] = middle = 0.5 * (nodes[0, 0] + nodes[0, count - 1])
    extent[1] = extent[2] = 0.0
    for j in range(count):
        inverse[0, j], inverse[1, j] = 1.0 / nodes[1, j], 1.0 / by_order[0, j]
        extent[1] = max(extent[1], inverse[0, j])
        extent[2] = max(extent[2], abs(nodes[0, j] - middle) * inverse[0, j])
        scale = 1.0
        for m in range(ORDER):
            by_node[j, m] = by_order[m, j]
            if min(masses[0, j], masses[1, j]) >= SHARE_OF_FLOOR * floor:
                relative = abs(by_order[m, j]) * scale / by_order[0, j]
                steepest[m] = max(steepest[m], relative)
                scale *= nodes[1, 0] / nodes[1, j]


@borrowing
def is_negligible(nodes, count, a, b, tau2, low, high, work):  # type: ignore[no-untyped-def]
    """Return whether s surely stays between the thresholds wherever p counts."""
    steepest = work[5]
    inverse = 1.0 / nodes[1, 0]
    move = max(abs(a + b * nodes[0, 0]), abs(a + b * nodes[0, count - 1])) * inverse
    v = abs(tau2) * inverse * inverse
    before, e, change = 0.0, 1.0, 0.0
    for m in range(1, ORDER):
        before, e = e, move * e + v * (m - 1.0) * before
        change += steepest[m] * e
    return BETWEEN * (abs(b) + (1.0 + b) * change) < min(-low, high)


@borrowing
def _ratio(count, a, b, tau2, nodes, by_order, values, inverse, extent):  # type: ignore[no-untyped-def]
    """Fill values[:2] with s = q / p - 1 and its slope at the nodes; return whether they serve."""
    x, per_step, per_density = nodes[0, :count], inverse[0, :count], inverse[1, :count]
    s, slope, move, v = values[0, :count], values[1, :count], values[2, :count], values[3, :count]
    before, e, new = values[4, :count], values[5, :count], values[6, :count]
    farthest = (abs(a + b * extent[0]) + math.sqrt(abs(tau2))) * extent[1] + abs(b) * extent[2]
    if not farthest <= FARTHEST_MOVE:  # the bound is rarely reached
        farthest = 0.0
        for j in range(count):
            farthest = max(farthest, (abs(a + b * x[j]) + math.sqrt(abs(tau2))) * per_step[j])
        if not farthest <= FARTHEST_MOVE:
            return False
    order = ORDER
    if farthest > 0.0:
        order = min(int(TERM / math.log(0.7 * farthest)) + 3, ORDER)
    row = by_order[1, :count]
    for j in range(count):
        move[j] = (a + b * x[j]) * per_step[j]
        v[j] = tau2 * per_step[j] * per_step[j]
        s[j], slope[j] = row[j] * move[j], 0.0
        before[j], e[j] = 1.0, move[j]
    for m in range(2, order):
        row, times, lag = by_order[m, :count], float(m), m - 1.0
        for j in range(count):
            new[j] = move[j] * e[j] - lag * v[j] * before[j]
            slope[j] += times * row[j] * e[j]
            s[j] += row[j] * new[j]
        before, e, new = e, new, before
    rise = by_order[1, :count]
    for j in range(count):
        s[j] = b + (1.0 + b) * s[j] * per_density[j]
        change = b * (2.0 + b) * rise[j] + (1.0 + b) * (1.0 + b) * slope[j]
        slope[j] = (change - s[j] * rise[j]) * per_density[j] * per_step[j]
    return True


@borrowing
def _place(near, j, x):  # type: ignore[no-untyped-def]
    """Return the nearer of two nodes, x from there, its move, and tau^2, all in steps.

    Farther than one step from both lies nothing that counts.
    """
    nodes, _, _, a, b, tau2 = near
    i = j - 1 if x - nodes[0, j - 1] < nodes[0, j] - x else j
    h = nodes[1, i]
    t = min(max((x - nodes[0, i]) / h, -1.0), 1.0)
    return i, t, (a + b * (nodes[0, i] + t * h)) / h, tau2 / (h * h)


@borrowing
def _point(near, j, x):  # type: ignore[no-untyped-def]
    """Return s = q / p - 1 and its slope at one point."""
    i, t, move, v = _place(near, j, x)
    row, b = near[2][i], near[4]
    u = t + move
    p, rise, change, bend = row[0], 0.0, 0.0, 0.0
    power, moved, moved_before, difference = 1.0, 1.0, 0.0, 0.0
    for m in range(1, POINT_ORDER):
        rise += m * row[m] * power
        bend += m * row[m] * difference
        difference = u * difference + move * power - v * (m - 1.0) * moved_before
        moved_before, moved = moved, u * moved - v * (m - 1.0) * moved_before
        power *= t
        p += row[m] * power
        change += row[m] * difference
    if p <= 0.0:
        return 0.0, 0.0
    s = b + (1.0 + b) * change / p
    slope = b * (2.0 + b) * rise + (1.0 + b) * (1.0 + b) * bend
    return s, (slope - s * rise) / (p * near[0][1, i])


@borrowing
def _tails(near, j, x, weight):  # type: ignore[no-untyped-def]
    """Return the masses of q - weight p below and above x."""
    i, t, move, v = _place(near, j, x)
    row = near[2][i]
    u = t + move
    own, moved = 0.0, 0.0
    power, after, before, difference = 1.0, 1.0, 0.0, 0.0
    for m in range(1, ORDER + 1):
        difference = u * difference + move * power - v * (m - 1.0) * before
        before, after = after, u * after - v * (m - 1.0) * before
        power *= t
        part = row[m - 1] * INVERSE[m]
        own += part * power
        moved += part * difference
    h = near[0][1, i]
    own *= h
    moved *= h
    lower, upper = near[1][0, i] + own, near[1][1, i] - own
    return moved + (1.0 - weight) * lower, -moved + (1.0 - weight) * upper


_integrate = sweep(_point, _tails)


@borrowing
def image_integrals(nodes, count, a, b, tau2, low, high, work, total):  # type: ignore[no-untyped-def]
    """Fill total with the integrals of (p - q / (1 + low))_+ and (q - (1 + high) p)_+.

    Returns whether the series serves; if not, nothing is filled in.
    """
    masses, by_node, by_order, values, state, _, inverse, extent = work
    if not _ratio(count, a, b, tau2, nodes, by_order, values, inverse, extent):
        return False
    near = nodes, masses, by_node, a, b, tau2
    s, slope = values[0], values[1]
    _integrate(near, nodes[0], count, s, slope, (low, high, state, total[0], total[1]))
    return True
