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

from edp_bayes.divergence.compiled import compiled
from edp_bayes.divergence.sweep import sweep

__all__ = ["image_integrals", "image_workspace", "tabulate"]

ORDER = 18  # terms of the series
POINT_ORDER = 13  # where a sign change is looked for
STEP = 0.5  # of the narrowest component that counts, between nodes
NEGLIGIBLE = 1e-17  # mass of a component's tails that needs no nodes
MOST_NODES = 2048
FARTHEST_TAIL = 10.0  # standard deviations: a component farther away adds nothing to a node
FARTHEST = 0.3  # of a step: the largest move and narrowing for which ORDER terms will do
TERM = math.log(1e-14)
ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@compiled
def image_workspace(levels):  # type: ignore[no-untyped-def]
    """Return what the functions below write to, for one thread.

    Nodes with their steps and tails of p (4 rows), derivatives by node and by order, values of
    one individual at the nodes, state of the sweep.
    """
    return (
        np.empty((4, MOST_NODES)),
        np.empty((MOST_NODES, ORDER)),
        np.empty((ORDER, MOST_NODES)),
        np.empty((7, MOST_NODES)),
        np.empty((6, levels)),
    )


@compiled
def tabulate(base, work):  # type: ignore[no-untyped-def]
    """Place nodes and fill in p^(m) h^m / m! and the tails of p there; return their number.

    base is (3, K), weights, locations and standard deviations. Returns 0 for a mixture that
    needs more nodes than there is room for.
    """
    nodes, by_node, by_order, values, _ = work
    size = base.shape[1]
    reach = np.zeros((2, size))
    first, last = np.inf, -np.inf
    for k in range(size):
        reach[0, k], reach[1, k] = np.inf, -np.inf
        if base[0, k] > NEGLIGIBLE:
            half = math.sqrt(2.0 * math.log(base[0, k] / NEGLIGIBLE)) * base[2, k]
            reach[0, k], reach[1, k] = base[1, k] - half, base[1, k] + half
            first, last = min(first, reach[0, k]), max(last, reach[1, k])
    x, count = first, 0
    while x <= last:
        if count == MOST_NODES:
            return 0
        width = np.inf
        for k in range(size):
            # Steps become shorter towards a narrow component, and longer after it.
            away = max(reach[0, k] - x, x - reach[1, k])
            width = min(width, max(base[2, k], 0.5 * away))
        nodes[0, count], nodes[1, count] = x, STEP * width
        count += 1
        x = _within(reach, x + STEP * width)
    _derivatives(base, nodes[:, :count], by_order, values)
    for j in range(count):
        for m in range(ORDER):
            by_node[j, m] = by_order[m, j]
    return count


@compiled
def _within(reach, x):  # type: ignore[no-untyped-def]
    """Return x, or the next point which a component reaches."""
    following = np.inf
    for k in range(reach.shape[1]):
        if reach[0, k] <= x <= reach[1, k]:
            return x
        if reach[0, k] > x:
            following = min(following, reach[0, k])
    return following


@compiled
def _derivatives(base, nodes, by_order, values):  # type: ignore[no-untyped-def]
    """Add up p^(m) h^m / m! and the tails at the nodes, component by component."""
    count = nodes.shape[1]
    nodes[2:] = 0.0
    by_order[:, :count] = 0.0
    for k in range(base.shape[1]):
        w, mu, sd = base[0, k], base[1, k], base[2, k]
        first = np.searchsorted(nodes[0], mu - FARTHEST_TAIL * sd)
        last = np.searchsorted(nodes[0], mu + FARTHEST_TAIL * sd)
        nodes[3, :first] += w
        nodes[2, last:] += w
        step, square = values[0, first:last], values[1, first:last]
        value, before = values[2, first:last], values[3, first:last]
        for j in range(last - first):
            u, r = (nodes[0, first + j] - mu) / sd, nodes[1, first + j] / sd
            tail = 0.5 * w * math.erfc(abs(u) / ROOT_TWO)
            nodes[2, first + j] += tail if u < 0.0 else w - tail
            nodes[3, first + j] += w - tail if u < 0.0 else tail
            step[j], square[j] = r * u, r * r
            value[j], before[j] = w / (sd * ROOT_TWO_PI) * math.exp(-0.5 * u * u), 0.0
        # Hermite's recurrence, times (-h / sd)^m / m!
        for m in range(ORDER):
            row, inverse = by_order[m, first:last], -1.0 / (m + 1.0)
            for j in range(last - first):
                row[j] += value[j]
                new = inverse * (step[j] * value[j] + square[j] * before[j])
                before[j], value[j] = value[j], new


@compiled
def _ratio(count, a, b, tau2, nodes, by_order, values):  # type: ignore[no-untyped-def]
    """Fill values[:2] with s = q / p - 1 and its slope at the nodes; return whether they serve."""
    x, h = nodes[0, :count], nodes[1, :count]
    s, slope, move, v = values[0, :count], values[1, :count], values[2, :count], values[3, :count]
    before, e, new = values[4, :count], values[5, :count], values[6, :count]
    spread = math.sqrt(abs(tau2))
    farthest = 0.0
    for j in range(count):
        inverse = 1.0 / h[j]
        move[j] = (a + b * x[j]) * inverse
        v[j] = tau2 * inverse * inverse
        farthest = max(farthest, abs(move[j]) + spread * inverse)
    if not farthest <= FARTHEST:
        return False
    order = ORDER
    if farthest > 0.0:
        order = min(int(TERM / math.log(0.7 * farthest)) + 3, ORDER)
    row = by_order[1, :count]
    for j in range(count):
        s[j], slope[j] = row[j] * move[j], 0.0
        before[j], e[j] = 1.0, move[j]
    for m in range(2, order):
        row, times, lag = by_order[m, :count], float(m), m - 1.0
        for j in range(count):
            new[j] = move[j] * e[j] - lag * v[j] * before[j]
            slope[j] += times * row[j] * e[j]
            s[j] += row[j] * new[j]
        before, e, new = e, new, before
    density, rise = by_order[0, :count], by_order[1, :count]
    for j in range(count):
        s[j] = b + (1.0 + b) * s[j] / density[j]
        change = b * (2.0 + b) * rise[j] + (1.0 + b) * (1.0 + b) * slope[j]
        slope[j] = (change - s[j] * rise[j]) / (density[j] * h[j])
    return True


@compiled
def _place(near, j, x):  # type: ignore[no-untyped-def]
    """Return the nearer of two nodes, x from there, its move, and tau^2, all in steps.

    Farther than one step from both lies nothing that counts.
    """
    nodes, _, a, b, tau2 = near
    i = j - 1 if x - nodes[0, j - 1] < nodes[0, j] - x else j
    h = nodes[1, i]
    t = min(max((x - nodes[0, i]) / h, -1.0), 1.0)
    return i, t, (a + b * (nodes[0, i] + t * h)) / h, tau2 / (h * h)


@compiled
def _point(near, j, x):  # type: ignore[no-untyped-def]
    """Return s = q / p - 1 and its slope at one point."""
    i, t, move, v = _place(near, j, x)
    row, b = near[1][i], near[3]
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


@compiled
def _tails(near, j, x, weight):  # type: ignore[no-untyped-def]
    """Return the masses of q - weight p below and above x."""
    i, t, move, v = _place(near, j, x)
    row = near[1][i]
    u = t + move
    own, moved = 0.0, 0.0
    power, after, before, difference = 1.0, 1.0, 0.0, 0.0
    for m in range(1, ORDER + 1):
        difference = u * difference + move * power - v * (m - 1.0) * before
        before, after = after, u * after - v * (m - 1.0) * before
        power *= t
        own += row[m - 1] * power / m
        moved += row[m - 1] * difference / m
    h = near[0][1, i]
    own *= h
    moved *= h
    lower, upper = near[0][2, i] + own, near[0][3, i] - own
    return moved + (1.0 - weight) * lower, -moved + (1.0 - weight) * upper


_integrate = sweep(_point, _tails)


@compiled
def image_integrals(count, a, b, tau2, low, high, work, total):  # type: ignore[no-untyped-def]
    """Fill total with the integrals of (p - q / (1 + low))_+ and (q - (1 + high) p)_+.

    Returns whether the series serves; if not, nothing is filled in.
    """
    nodes, by_node, by_order, values, state = work
    if not _ratio(count, a, b, tau2, nodes, by_order, values):
        return False
    near = nodes, by_node, a, b, tau2
    s, slope = values[0], values[1]
    _integrate(near, nodes[0], count, s, slope, (low, high, state, total[0], total[1]))
    return True
