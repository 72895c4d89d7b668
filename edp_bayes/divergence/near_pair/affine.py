"""Hockey-stick integrals of a Gaussian mixture and its affine image, a microsecond or two each.

An individual in every database leaves behind q(x) = (1 + b) r(x + a + b x), where p is r
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

from edp_bayes.divergence.near_pair.nodes import MOST_NODES, span
from edp_bayes.divergence.near_pair.sweep import sweep
from edp_bayes.utils.compiled import borrowing, linked

__all__ = ["image_integrals", "image_workspace", "is_negligible", "tabulate"]

ORDER = 26  # terms of the series
# How far the image may lie, in steps, moved and narrowed, for ORDER terms to do.
FARTHEST_MOVE, FARTHEST_SPREAD = 0.8, 0.3
LAST_TERM = 1e-9  # of s at nodes, which only tell where sign changes are
# Terms at a sign change: for what does not move, more for each step, and more for its tails.
POINT_TERMS, TERMS_PER_STEP, TAIL_TERMS = 13, 9.0, 5
SHARE_OF_FLOOR = 0.05
BETWEEN = 1.25  # how much larger than at the nodes s may be between them
INVERSE = np.array([0.0, *(1.0 / m for m in range(1, ORDER + 1))])
ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
# Rows of the values of one individual at the nodes. They are flat and unsigned integers address
# them: only so can the compiler show that they are distinct, which vector instructions need.
ROWS = 6
S, SLOPE, MOVE, SPREAD, BEFORE, NOW = (np.uint64(row * MOST_NODES) for row in range(ROWS))


@linked
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
        np.empty(ROWS * MOST_NODES),
        np.empty((6, levels)),
        np.empty(ORDER),
        np.empty((2, MOST_NODES)),
        np.empty(3),
    )


@linked
def tabulate(base, nodes, count, work, floor):  # type: ignore[no-untyped-def]
    """Fill in p^(m) h^m / m! and the tails of p at the nodes, component by component.

    The largest derivatives relative to p leave out tails that add up to less than the floor.
    """
    masses, by_node, by_order, flat, _, steepest, inverse, extent = work
    values = flat.reshape((ROWS, MOST_NODES))
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
            # value is w (-h / sd)^m He_m(u) phi(u) / (m! sd): new comes from
            # He_m+1 = u He_m - m He_m-1, with step = h u / sd and square = (h / sd)^2
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
    """Return whether s surely stays between the thresholds wherever p counts.

    s = b + (1 + b) sum_m E_m p^(m) / (m! p), m >= 1, at a node x: E_m is at most what it is for the
    largest move with plus for minus, p^(m) h^m / (m! p) at most steepest[m], h the first step.
    """
    steepest = work[5]
    move, v = _in_first_steps(nodes, count, a, b, tau2)
    before, e, change = 0.0, 1.0, 0.0
    for m in range(1, ORDER):
        before, e = e, move * e + v * (m - 1.0) * before
        change += steepest[m] * e
    return BETWEEN * (abs(b) + (1.0 + b) * change) < min(-low, high)


@borrowing
def _in_first_steps(nodes, count, a, b, tau2):  # type: ignore[no-untyped-def]
    """Return the largest move and the variance taken away, in first steps."""
    inverse = 1.0 / nodes[1, 0]
    move = max(abs(a + b * nodes[0, 0]), abs(a + b * nodes[0, count - 1])) * inverse
    return move, abs(tau2) * inverse * inverse


@borrowing
def _terms(move, v, steepest):  # type: ignore[no-untyped-def]
    """Return how many terms of s count at the nodes: the first that add less than LAST_TERM.

    Term m is bounded by steepest[m] and E_m for the largest move, as in `is_negligible`.
    """
    before, e, last = 0.0, 1.0, 1.0
    for m in range(1, ORDER):
        before, e = e, move * e + v * (m - 1.0) * before
        term = steepest[m] * e
        if term + last <= LAST_TERM:  # a single one may vanish
            return m
        last = term
    return ORDER


@borrowing
def _farthest(nodes, count, a, b, per_step, extent):  # type: ignore[no-untyped-def]
    """Return the largest move in steps, or a bound of it that is small enough.

    abs(a + b x) / step <= abs(a + b middle) / least step + abs(b) max(abs(x - middle) / step).
    """
    farthest = abs(a + b * extent[0]) * extent[1] + abs(b) * extent[2]
    if farthest > FARTHEST_MOVE:
        farthest = 0.0
        for j in range(count):
            farthest = max(farthest, abs(a + b * nodes[0, j]) * per_step[j])
    return farthest


@borrowing
def _ratio(count, a, b, tau2, order, nodes, by_order, values, inverse):  # type: ignore[no-untyped-def]
    """Fill in s = q / p - 1 and its slope at the nodes.

    With x a node, u is the move: E_m by its recurrence (MOVE, SPREAD: u and tau^2 in steps; BEFORE,
    NOW: E_m-1 and E_m). As dE_m / du = m E_m-1, the slope takes the same terms.
    """
    x, per_step, per_density = nodes[0], inverse[0], inverse[1]
    rise, end = by_order[1], np.uint64(count)
    for j in range(end):
        move = (a + b * x[j]) * per_step[j]
        values[MOVE + j] = move
        values[SPREAD + j] = tau2 * per_step[j] * per_step[j]
        values[BEFORE + j], values[NOW + j] = 1.0, move
        values[S + j], values[SLOPE + j] = rise[j] * move, 0.0
    for m in range(2, order):
        row, times, lag = by_order[m], float(m), m - 1.0
        for j in range(end):
            now = values[NOW + j]
            new = values[MOVE + j] * now - lag * values[SPREAD + j] * values[BEFORE + j]
            values[SLOPE + j] += times * row[j] * now
            values[S + j] += row[j] * new
            values[BEFORE + j], values[NOW + j] = now, new
    for j in range(end):
        s = b + (1.0 + b) * values[S + j] * per_density[j]
        change = b * (2.0 + b) * rise[j] + (1.0 + b) * (1.0 + b) * values[SLOPE + j]
        values[S + j] = s
        values[SLOPE + j] = (change - s * rise[j]) * per_density[j] * per_step[j]


@borrowing
def _place(near, j, x):  # type: ignore[no-untyped-def]
    """Return the nearer of two nodes, x from there, its move, and tau^2, all in steps.

    Farther than one step from both lies nothing that counts.
    """
    nodes, inverse, _, _, a, b, tau2, _ = near
    i = j - 1 if x - nodes[0, j - 1] < nodes[0, j] - x else j
    per_step = inverse[0, i]
    t = min(max((x - nodes[0, i]) * per_step, -1.0), 1.0)
    return i, t, (a + b * nodes[0, i]) * per_step + b * t, tau2 * per_step * per_step


@borrowing
def _point(near, j, x):  # type: ignore[no-untyped-def]
    """Return s = q / p - 1 and its slope at one point."""
    i, t, move, v = _place(near, j, x)
    row, b, terms = near[3][i], near[5], near[7]
    u = t + move
    p, rise, change, bend = row[0], 0.0, 0.0, 0.0
    # power = t^m, moved = E_m(u), difference = E_m - t^m = u (E_m-1 - t^m-1) + move t^m-1 - lost,
    # which does not cancel; with p(x) = sum row[m] t^m, q(x) - p(x) is a sum of differences
    power, moved, moved_before, difference = 1.0, 1.0, 0.0, 0.0
    for m in range(1, terms):
        rise += m * row[m] * power
        bend += m * row[m] * difference
        # What waits for nothing in brackets: each sum after it then waits for one product only.
        lost = v * (m - 1.0) * moved_before
        difference = u * difference + (move * power - lost)
        moved_before, moved = moved, u * moved - lost
        power *= t
        p += row[m] * power
        change += row[m] * difference
    if p <= 0.0:
        return 0.0, 0.0
    per_density = 1.0 / p
    s = b + (1.0 + b) * change * per_density
    slope = b * (2.0 + b) * rise + (1.0 + b) * (1.0 + b) * bend
    return s, (slope - s * rise) * per_density * near[1][0, i]


@borrowing
def _tails(near, j, x, weight):  # type: ignore[no-untyped-def]
    """Return the masses of q - weight p below and above x."""
    i, t, move, v = _place(near, j, x)
    # The tail of q is that of r = exp(-tau^2 D^2 / 2) p at x + a + b x; its series is the
    # integral of that of p, term by term, so (E_m - t^m) / m once more
    row, terms = near[3][i], near[7] + TAIL_TERMS
    u = t + move
    own, moved = 0.0, 0.0
    power, after, before, difference = 1.0, 1.0, 0.0, 0.0
    for m in range(1, terms):
        lost = v * (m - 1.0) * before
        difference = u * difference + (move * power - lost)
        before, after = after, u * after - lost
        power *= t
        part = row[m - 1] * INVERSE[m]
        own += part * power
        moved += part * difference
    h = near[0][1, i]
    own *= h
    moved *= h
    lower, upper = near[2][0, i] + own, near[2][1, i] - own
    return moved + (1.0 - weight) * lower, -moved + (1.0 - weight) * upper


_integrate = sweep(_point, _tails)


@borrowing
def image_integrals(nodes, count, a, b, tau2, low, high, work, total):  # type: ignore[no-untyped-def]
    """Fill total with the integrals of (p - q / (1 + low))_+ and (q - (1 + high) p)_+.

    Returns whether the series serves; if not, nothing is filled in.
    """
    masses, by_node, by_order, values, state, steepest, inverse, extent = work
    farthest = _farthest(nodes, count, a, b, inverse[0], extent)
    spread = math.sqrt(abs(tau2)) * extent[1]
    if not (farthest <= FARTHEST_MOVE and spread <= FARTHEST_SPREAD):
        return False
    move, v = _in_first_steps(nodes, count, a, b, tau2)
    order = _terms(move, v, steepest)
    _ratio(count, a, b, tau2, order, nodes, by_order, values, inverse)
    terms = POINT_TERMS + int(TERMS_PER_STEP * farthest)
    near = nodes, inverse, masses, by_node, a, b, tau2, terms
    s, slope = values[S:SLOPE], values[SLOPE:MOVE]
    _integrate(near, nodes[0], count, s, slope, (low, high, state, total[0], total[1]))
    return True
