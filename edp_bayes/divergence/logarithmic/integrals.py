"""The integral of p (1 - exp(eps - L)) where L = log(p / q) is above epsilon.

Nothing but log densities is formed, so neither exp(eps) nor a density that leaves the range of
doubles matters. The line is halved into intervals until on each of them either

- bounds show that L stays below epsilon, or that no mass to speak of is left: it adds nothing;
- or all terms that matter change little enough for Gauss-Legendre quadrature, and bounds show
  that L stays above epsilon or is monotone; a sign change is found by Newton's method.

Every family has a log-concave density, symmetric about its location. So on an interval its log is
least at an end and largest at an end or at the location, and its slope lies between those at the
ends: bounds of L and of its slope follow, and no sign change is missed. Only where they decide
nothing, on intervals finer than any term, do L and its slope at the nodes tell instead.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.components import GAUSSIAN, LAPLACE, LAPLACE_LAPLACE
from edp_bayes.divergence.logarithmic.components import (
    FAMILY,
    PLACE,
    ROWS,
    A,
    B,
    log_sum,
    reach_of,
    tabulate,
    term,
)
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import ZERO, compiled

__all__ = ["ROUNDING", "Work", "integral", "workspace"]

Work = tuple[Array, Array, Array, Array, Array, Array]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
VARIATION = 12.0  # of the log of a term over an interval, for the quadrature to be exact
WIDTH = 2.5  # of an interval, in scales of a Gaussian term, for the same
NOTHING = 42.0  # log of the share below which a term does not matter
# Part of such an interval on which signs at its nodes tell where L passes epsilon. Where p and q
# share nearly all of their mass and epsilon is next to zero, no bounds would.
FINE = 1.0 / 8.0
DROPPED = 1e-18  # share of the integral that an interval may leave out
LEAST_LOG = -280.0  # log of a mass that is always negligible
ROUNDING = 1e-15  # relative error of a log density
DEPTH = 90
BUDGET = 200_000  # intervals of one integral
WAITING = 96  # intervals that may wait beside those at the start
ONE_ANCHOR = 100.0  # scales of the narrowest component over which one anchor will do
NEWTON = 100
TURNS = 30


@compiled
def workspace(components: int) -> Work:
    """Return what `integral` writes to, for one thread, for p and q together.

    The table; least and largest logs of an interval, and slopes at both of its ends; logs at one
    point; intervals that wait (anchor, ends, halvings); positions, as a number and what it lacks;
    and masses of the intervals at the start.
    """
    return (
        np.empty((ROWS, components)),
        np.empty((4, components)),
        np.empty(components),
        np.empty((3 * components + WAITING, 4)),
        np.empty((3 * components + 2, 2)),
        np.empty(3 * components + 2),
    )


@compiled
def integral(
    p: Array, q: Array, epsilon: float, reach_gaussian: float, reach_laplace: float, work: Work
) -> float:
    """Return H_eps(p || q), or NaN where it needs too many intervals.

    Parameters
    ----------
    p, q : ndarray, shape (K, 5), (L, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`.
    epsilon : float
        Not negative.
    reach_gaussian, reach_laplace : float
        Standard deviations, and scales, beyond which masses are negligible.
    work : tuple of ndarray
        As `workspace` returns it.
    """
    table, waiting = work[0], work[3]
    first, size = tabulate(p, q, table)
    if first == 0:
        return 0.0
    count = _start(first, size, reach_gaussian, reach_laplace, work)
    total = 0.0
    spent = 0
    while count > 0:
        count -= 1
        spent += 1
        if spent > BUDGET:
            return math.nan
        anchor, left, right = int(waiting[count, 0]), waiting[count, 1], waiting[count, 2]
        depth = waiting[count, 3]
        found = _interval(anchor, left, right, first, size, epsilon, total, work)
        if found >= 0.0:
            total += found
            continue
        middle = 0.5 * (left + right)
        if depth >= DEPTH or not left < middle < right:
            continue  # of the width of rounding
        # the half with more mass of p goes first, so that little is left to look for
        side = _rises(anchor, middle, first, work)
        for half in range(2):
            upper = (half == 0) != side
            waiting[count, 0], waiting[count, 3] = anchor, depth + 1.0
            waiting[count, 1] = middle if upper else left
            waiting[count, 2] = right if upper else middle
            count += 1
    return min(total, 1.0)


@compiled
def _rises(anchor: int, x: float, first: int, work: Work) -> bool:
    """Whether p rises at a point."""
    return _log_density(anchor, x, x, 0, first, work[0], work[2])[1] > 0.0


@compiled
def _start(first: int, size: int, reach_gaussian: float, reach_laplace: float, work: Work) -> int:
    """List the intervals on which p has mass, the heaviest last; return how many.

    Positions are sums of two numbers without rounding. An interval is anchored to the narrowest
    component that reaches it; one anchor does where none is far from it.
    """
    table, edges = work[0], work[4]
    narrowest, low, high = ZERO, math.inf, -math.inf
    for k in range(first):
        if _scale(table, k) < _scale(table, narrowest):
            narrowest = k
        low, high = min(low, table[PLACE, k]), max(high, table[PLACE, k])
    alone = high - low <= ONE_ANCHOR * _scale(table, narrowest)
    count, start, end = ZERO, math.inf, -math.inf
    for k in range(first):
        radius = reach_of(table, k, reach_gaussian, reach_laplace)
        if not alone:
            count = _edge(edges, count, table[PLACE, k], -radius)
            count = _edge(edges, count, table[PLACE, k], radius)
        away = table[PLACE, k] - table[PLACE, narrowest]
        start, end = min(start, away - radius), max(end, away + radius)
    if alone:
        count = _edge(edges, count, table[PLACE, narrowest], start)
        count = _edge(edges, count, table[PLACE, narrowest], end)
    for k in range(size):
        if table[FAMILY, k] == LAPLACE or table[FAMILY, k] == LAPLACE_LAPLACE:
            count = _edge(edges, count, table[PLACE, k], 0.0)
    _sort(edges, count)
    listed = ZERO
    for j in range(count - 1):
        anchor = -1
        for k in range(first):
            radius = reach_of(table, k, reach_gaussian, reach_laplace)
            middle = 0.5 * _from(edges, j, table, k) + 0.5 * _from(edges, j + 1, table, k)
            if abs(middle) < radius and (anchor < 0 or _scale(table, k) < _scale(table, anchor)):
                anchor = k
        if alone:
            anchor = narrowest
        if anchor >= 0:
            left, right = _from(edges, j, table, anchor), _from(edges, j + 1, table, anchor)
            if left < right:
                _list(listed, anchor, left, right, first, size, work)
                listed += 1
    return listed


@compiled
def _scale(table: Array, k: int) -> float:
    """Return the scale that a component's mass has at least."""
    if table[FAMILY, k] in (GAUSSIAN, LAPLACE):
        return float(table[A, k])
    return float(max(table[A, k], table[B, k]))


@compiled
def _edge(edges: Array, count: int, place: float, away: float) -> int:
    """Append a position place + away as a number and what it lacks."""
    whole = place + away
    part = whole - place
    edges[count, 0] = whole
    edges[count, 1] = (place - (whole - part)) + (away - part)
    return count + 1


@compiled
def _from(edges: Array, j: int, table: Array, k: int) -> float:
    """Return a position as the distance from a component."""
    return float((edges[j, 0] - table[PLACE, k]) + edges[j, 1])


@compiled
def _sort(edges: Array, count: int) -> None:
    """Sort the first `count` edges (edge, 2) in place, by insertion; each is whole plus rest."""
    for j in range(1, count):
        whole, rest = edges[j, 0], edges[j, 1]
        t = j - 1
        while t >= 0 and (edges[t, 0] > whole or (edges[t, 0] == whole and edges[t, 1] > rest)):
            edges[t + 1, 0], edges[t + 1, 1] = edges[t, 0], edges[t, 1]
            t -= 1
        edges[t + 1, 0], edges[t + 1, 1] = whole, rest


@compiled
def _list(
    listed: int, anchor: int, left: float, right: float, first: int, size: int, work: Work
) -> None:
    """Enter an interval before all of more mass."""
    waiting, mass = work[3], work[5]
    _bounds(anchor, left, right, 0, first, work)
    most = log_sum(work[1][1], 0, first) + math.log(right - left)
    t = listed - 1
    while t >= 0 and mass[t] > most:
        mass[t + 1] = mass[t]
        for row in range(4):
            waiting[t + 1, row] = waiting[t, row]
        t -= 1
    mass[t + 1] = most
    waiting[t + 1, 0], waiting[t + 1, 1], waiting[t + 1, 2] = anchor, left, right
    waiting[t + 1, 3] = 0.0


@compiled
def _bounds(anchor: int, left: float, right: float, begin: int, end: int, work: Work) -> None:
    """Fill in the least and the largest log of each component, and its slope at both ends."""
    table, parts = work[0], work[1]
    middle = 0.5 * (left + right)
    for k in range(begin, end):
        away = table[PLACE, anchor] - table[PLACE, k]
        hand = 1.0 if away + middle > 0.0 else -1.0
        u, v = away + left, away + right
        one, slope = term(table, k, u, hand)
        other, slope_after = term(table, k, v, hand)
        parts[0, k], parts[1, k] = min(one, other), max(one, other)
        parts[2, k], parts[3, k] = slope, slope_after
        if u < 0.0 < v:
            parts[1, k] = max(parts[1, k], term(table, k, 0.0, hand)[0])


@compiled
def _interval(
    anchor: int,
    left: float,
    right: float,
    first: int,
    size: int,
    epsilon: float,
    total: float,
    work: Work,
) -> float:
    """Return what an interval adds to the integral, or -1 if it has to be halved first."""
    parts = work[1]
    _bounds(anchor, left, right, 0, size, work)
    least_p, most_p = log_sum(parts[0], 0, first), log_sum(parts[1], 0, first)
    least_q, most_q = log_sum(parts[0], first, size), log_sum(parts[1], first, size)
    low, high = least_p - most_q - epsilon, most_p - least_q - epsilon
    if high <= 0.0:
        return 0.0
    mass = most_p + math.log(right - left)
    if mass < LEAST_LOG or (
        total > 0.0 and mass + min(math.log(high), 0.0) < math.log(total * DROPPED)
    ):
        return 0.0
    middle = 0.5 * (left + right)
    above, _, log_p = _log_ratio(anchor, middle, middle, epsilon, first, size, work)
    flattest, steepest = _slopes(first, size, work)
    reach = 0.5 * (right - left)
    move = reach * max(abs(flattest), abs(steepest))
    if move < math.inf:
        low, high = max(low, above - move), min(high, above + move)
    noise = ROUNDING * (abs(log_p) + abs(log_p - above) + epsilon)
    if high <= 0.0:
        return 0.0
    flat = -noise <= low and high <= noise
    if not _is_even(anchor, left, right, first, size, least_p, epsilon, 1.0, work):
        return -1.0
    if low >= 0.0 or flat:
        return _quadrature(anchor, left, right, middle, epsilon, first, size, work)
    if not (flattest > 0.0 or steepest < 0.0):
        if _is_even(anchor, left, right, first, size, least_p, epsilon, FINE, work):
            return _by_nodes(anchor, left, right, middle, epsilon, first, size, work)
        return -1.0
    rises = flattest > 0.0
    inner = left if rises else right
    outer = right if rises else left
    if _log_ratio(anchor, outer, middle, epsilon, first, size, work)[0] <= 0.0:
        return 0.0
    if _log_ratio(anchor, inner, middle, epsilon, first, size, work)[0] < 0.0:
        inner = _sign_change(anchor, inner, outer, middle, epsilon, first, size, work)
    return _quadrature(
        anchor, min(inner, outer), max(inner, outer), middle, epsilon, first, size, work
    )


@compiled
def _log_ratio(
    anchor: int, x: float, middle: float, epsilon: float, first: int, size: int, work: Work
) -> tuple[float, float, float]:
    """Return log(p / q) - epsilon at a point, its slope, and log p."""
    table, logs = work[0], work[2]
    log_p, slope_p = _log_density(anchor, x, middle, 0, first, table, logs)
    log_q, slope_q = _log_density(anchor, x, middle, first, size, table, logs)
    return log_p - log_q - epsilon, slope_p - slope_q, log_p


@compiled
def _log_density(
    anchor: int, x: float, middle: float, begin: int, end: int, table: Array, logs: Array
) -> tuple[float, float]:
    """Return log sum_k exp(l_k), l_k the log term of component k at x, and its slope in x.

    The largest term is taken out first, and the slope is the mean of the terms' slopes by their
    shares (docs/mathematics/integrals.md, in logarithms). x is a distance from the anchor's
    location; components are those from begin to end.
    """
    top, slope = -math.inf, 0.0
    for k in range(begin, end):
        away = table[PLACE, anchor] - table[PLACE, k]
        logs[k], last = term(table, k, away + x, 1.0 if away + middle > 0.0 else -1.0)
        if logs[k] > top:
            top, slope = logs[k], last
    if top == -math.inf or end - begin == 1:
        return top, slope
    total, steep = 0.0, 0.0
    for k in range(begin, end):
        share = logs[k] - top
        if share > -NOTHING:
            away = table[PLACE, anchor] - table[PLACE, k]
            share = math.exp(share)
            total += share
            hand = 1.0 if away + middle > 0.0 else -1.0
            steep += share * term(table, k, away + x, hand)[1]
    return top + math.log(total), steep / total


@compiled
def _slopes(first: int, size: int, work: Work) -> tuple[float, float]:
    """Return bounds of the slope of log(p / q) on the interval of the last bounds."""
    parts = work[1]
    low_p, high_p = _mean_slope(0, first, parts)
    low_q, high_q = _mean_slope(first, size, parts)
    return low_p - high_q, high_p - low_q


@compiled
def _mean_slope(begin: int, end: int, parts: Array) -> tuple[float, float]:
    """Return bounds of a mean of slopes, weighted by densities that are known within bounds."""
    if end - begin == 1:
        return parts[3, begin], parts[2, begin]
    top, least, most = -math.inf, math.inf, -math.inf
    for k in range(begin, end):
        top = max(top, parts[1, k])
        least, most = min(least, parts[3, k]), max(most, parts[2, k])
    weight, centre = 0.0, 0.0
    for k in range(begin, end):
        if parts[1, k] > top - NOTHING:
            share = math.exp(parts[1, k] - top)
            weight += share
            centre += share * 0.5 * (parts[2, k] + parts[3, k])
    centre /= weight
    up, down, lightest, heaviest = 0.0, 0.0, 0.0, 0.0
    for k in range(begin, end):
        high, low = math.exp(parts[1, k] - top), math.exp(parts[0, k] - top)
        lightest += low
        heaviest += high
        rise, fall = parts[2, k] - centre, parts[3, k] - centre
        up += (high if rise > 0.0 else low) * rise
        down += (low if fall > 0.0 else high) * fall
    if lightest > 0.0:
        most = min(most, centre + up / (lightest if up > 0.0 else heaviest))
        least = max(least, centre + down / (lightest if down < 0.0 else heaviest))
    return least, most


@compiled
def _is_even(
    anchor: int,
    left: float,
    right: float,
    first: int,
    size: int,
    least_p: float,
    epsilon: float,
    part: float,
    work: Work,
) -> bool:
    """Whether quadrature is exact for every term that matters, on so much of an interval."""
    table, parts = work[0], work[1]
    for k in range(size):
        front = 0.0 if k < first else epsilon
        if front + parts[1, k] < least_p - NOTHING:
            continue
        if not parts[1, k] - parts[0, k] <= part * VARIATION:
            return False
        family = table[FAMILY, k]
        if family == LAPLACE:
            continue
        if family == LAPLACE_LAPLACE:
            if right - left > part * VARIATION * min(table[A, k], table[B, k]):
                return False
        elif right - left > part * WIDTH * table[A, k]:
            if family == GAUSSIAN:
                return False
            # far out, Laplace noise has smoothed what is normal
            ratio = table[A, k] / table[B, k]
            away = table[PLACE, anchor] - table[PLACE, k]
            near = 0.0 if away + left <= 0.0 <= away + right else 1.0
            near *= min(abs(away + left), abs(away + right))
            if near < (10.0 + ratio) * table[A, k]:
                return False
    return True


@compiled
def _by_nodes(
    anchor: int,
    left: float,
    right: float,
    middle: float,
    epsilon: float,
    first: int,
    size: int,
    work: Work,
) -> float:
    """Return what a fine interval adds, from L and its slope at its ends and its nodes.

    Between two of them L may turn once, and pass epsilon and come back.
    """
    centre, half, total = 0.5 * (left + right), 0.5 * (right - left), 0.0
    above, slope, _ = _log_ratio(anchor, left, middle, epsilon, first, size, work)
    before, start, was = left, left, above > 0.0
    for i in range(NODES.size + 1):
        x = centre + half * NODES[i] if i < NODES.size else right
        above, after, _ = _log_ratio(anchor, x, middle, epsilon, first, size, work)
        stops = 1
        turn = x
        if (above > 0.0) == was and slope * after < 0.0 and (slope < 0.0) == was:
            turn = _turn(anchor, before, x, slope, middle, epsilon, first, size, work)
            stops = 2
        for stop in range(stops):
            here = x if stop == stops - 1 else turn
            now = _log_ratio(anchor, here, middle, epsilon, first, size, work)[0] > 0.0
            if now != was:
                low, high = (here, before) if was else (before, here)
                root = _sign_change(anchor, low, high, middle, epsilon, first, size, work)
                if was:
                    total += _quadrature(anchor, start, root, middle, epsilon, first, size, work)
                start, was = root, now
            before = here
        slope = after
    if was:
        total += _quadrature(anchor, start, right, middle, epsilon, first, size, work)
    return total


@compiled
def _turn(
    anchor: int,
    low: float,
    high: float,
    slope: float,
    middle: float,
    epsilon: float,
    first: int,
    size: int,
    work: Work,
) -> float:
    """Return where the slope of L changes its sign, which it has at the lower end."""
    for _ in range(TURNS):
        x = 0.5 * (low + high)
        here = _log_ratio(anchor, x, middle, epsilon, first, size, work)[1]
        if (here < 0.0) == (slope < 0.0):
            low = x
        else:
            high = x
    return 0.5 * (low + high)


@compiled
def _quadrature(
    anchor: int,
    left: float,
    right: float,
    middle: float,
    epsilon: float,
    first: int,
    size: int,
    work: Work,
) -> float:
    """Return the integral of p (1 - exp(eps - L)) over an interval on which that is not below 0."""
    centre, half, total = 0.5 * (left + right), 0.5 * (right - left), 0.0
    for i in range(NODES.size):
        x = centre + half * NODES[i]
        above, _, log_p = _log_ratio(anchor, x, middle, epsilon, first, size, work)
        total += WEIGHTS[i] * math.exp(log_p + math.log(half)) * -math.expm1(-max(above, 0.0))
    return total


@compiled
def _sign_change(
    anchor: int,
    low: float,
    high: float,
    middle: float,
    epsilon: float,
    first: int,
    size: int,
    work: Work,
) -> float:
    """Return where L is epsilon, between a point where it is below and one where it is above."""
    enough = 1e-9 * abs(high - low)
    x = 0.5 * (low + high)
    for _ in range(NEWTON):
        above, slope, _ = _log_ratio(anchor, x, middle, epsilon, first, size, work)
        if above < 0.0:
            low = x
        else:
            high = x
        new = x - above / slope if slope != 0.0 else math.inf
        if not min(low, high) <= new <= max(low, high):
            new = 0.5 * (low + high)
        moved, x = abs(new - x), new
        if moved <= enough:
            break
    return x
