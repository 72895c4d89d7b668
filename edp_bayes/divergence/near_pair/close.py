"""Hockey-stick integrals of Gaussian mixtures close to a common one, a few microseconds each.

A posterior draw of p is compared with thousands of p_i that differ from it by little. Everything
about p alone is computed once a draw: nodes that resolve its components, and each component's
density there. At those nodes two mixtures g and q of the same weights, whose components moved and
stretched a little, follow from expm1 of quadratics. q > exp(e) g is s = q / g - 1 > expm1(e), and
g > exp(e) q is s < expm1(-e), so the sign changes of a whole grid of epsilon follow from
the monotone pieces of s; each is polished by Newton's method (an error dx costs O(dx^2)), and
the integrals are differences of normal tails. The absolute error is about 1e-15 for each sign
change. Mixtures that are not close are left to `smooth`.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.near_pair.nodes import FARTHEST, MOST_NODES, span
from edp_bayes.divergence.near_pair.sweep import sweep
from edp_bayes.utils.compiled import borrowing, compiled, decay, inlined

__all__ = [
    "are_close",
    "both_integrals",
    "convexity_bound",
    "covered_bound",
    "densities",
    "inner_epsilons",
    "is_close",
    "log_ratio_terms",
    "pair_integral",
    "pair_risk",
    "workspace",
]

CLOSE_SHIFT = 3.0  # largest move of a component, in its own standard deviations
CLOSE_STRETCH = 2.5  # largest ratio of standard deviations

SERIES = 0.06  # expm1 by its series up to here
NEAR = 0.03  # tails by their series up to here
ROWS = 15
LARGEST_RATIO = 700.0  # whose exponential is finite
ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@compiled
def workspace(components, levels):  # type: ignore[no-untyped-def]
    """Return what the functions below write to, for one thread.

    Densities at the nodes and which nodes are near, what one point needs, values at the nodes,
    state of the sweep.
    """
    return (
        np.empty((components, MOST_NODES)),
        np.empty((components, 2), dtype=np.int64),
        np.empty((ROWS, components)),
        np.empty((4, MOST_NODES)),
        np.empty((6, levels)),
    )


@borrowing
def convexity_bound(base, given, without, rho, growth, enough):  # type: ignore[no-untyped-def]
    """Bound the risk for p of components (1 - rho_k) q_k + rho_k g_k, by pairs of components.

    A pair whose log ratio stays within the thresholds wherever it counts adds nothing, others their
    closed form. Stops once the bound is more than `enough`. "Who hardly matters in a large
    population" in docs/mathematics/individuals.md; base is (3, K), given and without (2, K), rho
    (K,), growth exp(eps) - 1 at one epsilon.
    """
    total, before, up, down, backward = 0.0, -1.0, 0.0, 0.0, 0.0
    for k in range(given.shape[1]):
        forward = rho[k]
        if forward == 0.0:
            continue
        if forward != before:
            before = forward
            backward, down, up = inner_epsilons(forward, growth)
        m, s, n, t = given[0, k], given[1, k], without[0, k], without[1, k]
        # Within FARTHEST sd the standard scores of g and of q differ by at most move, so their log
        # ratio is at most move (FARTHEST + move / 2) + abs(log(s / t)), in both directions
        stretch = s / t
        move = (abs(m - n) / t + abs(stretch - 1.0) * FARTHEST) * max(stretch, 1.0 / stretch)
        if move * (FARTHEST + 0.5 * move) + abs(math.log(stretch)) <= min(up, down):
            continue
        total += base[0, k] * pair_risk(m, s, n, t, forward, backward, down, up)
        if total > enough:
            break
    return total


@borrowing
def covered_bound(base, given, without, rho, growth, enough, alone):  # type: ignore[no-untyped-def]
    """Bound the risk as `convexity_bound`, where wide components cover narrow ones.

    With c = exp(eps) - exp(eps'), p - exp(eps) q is p - exp(eps') q - c q. Half of expm1(eps) is
    kept for the components by themselves, and the rest is c. A component k adds at most
    w_k rho_k g_k, and only where its own log ratio passes the threshold: nothing, if there another
    one, that adds nothing itself, has as much in c w_j q_j. Likewise for q - exp(eps) p. `alone`,
    of a number for each component, is written to. The proposition of "Narrow components that
    others cover" (docs/mathematics/individuals.md): alone marks who may be in N, all of whom have
    the share 1 / lonely, so that the shares of those covered add up to at most one.
    """
    half, lonely = 0.5 * growth, 0
    if half <= 0.0:
        return np.inf
    for k in range(given.shape[1]):
        alone[k] = 0.0
        if rho[k] > 0.0 and base[0, k] > 0.0:
            backward, down, up = inner_epsilons(rho[k], half)
            m, s, n, t = given[0, k], given[1, k], without[0, k], without[1, k]
            stretch = s / t
            move = (abs(m - n) / t + abs(stretch - 1.0) * FARTHEST) * max(stretch, 1.0 / stretch)
            if move * (FARTHEST + 0.5 * move) + abs(math.log(stretch)) > min(up, down):
                alone[k] = 1.0
                lonely += 1
    total = 0.0
    for k in range(given.shape[1]):
        if alone[k] == 0.0:
            continue
        m, s, n, t = given[0, k], given[1, k], without[0, k], without[1, k]
        backward, down, up = inner_epsilons(rho[k], growth)
        covered = False
        for j in range(given.shape[1]):
            cover = base[0, j] * half / lonely
            if alone[j] != 0.0 or cover == 0.0:
                continue
            mu, sd = without[0, j], without[1, j]
            covered = _is_below(base[0, k] * rho[k], m, s, n, t, down, cover, mu, sd) and (
                backward == 0.0
                or _is_below(base[0, k] * backward, n, t, m, s, up, cover * (1.0 - rho[j]), mu, sd)
            )
            if covered:
                break
        if not covered:
            # not in N, so at eps' like all others
            backward, down, up = inner_epsilons(rho[k], half)
            total += base[0, k] * pair_risk(m, s, n, t, rho[k], backward, down, up)
            if total > enough:
                break
    return total


@borrowing
def _is_below(weight, m, s, n, t, epsilon, other, mu, sd):  # type: ignore[no-untyped-def]
    """Return whether weight N(m, s) is below other N(mu, sd) where it is above e^eps N(n, t).

    The narrower of two normal densities has its largest ratio to the other at one point. Where that
    is not among those in question, it is at an end of them. front is the log ratio of the heights,
    peak inverse what the largest log ratio is above that, best where it is.
    """
    if other <= 0.0 or s >= sd:
        return False
    front = math.log(weight * sd / (other * s))
    inverse, peak = 1.0 / (sd * sd - s * s), 0.5 * (m - mu) ** 2
    if front + peak * inverse <= 0.0:
        return True
    best = m + s * s * (m - mu) * inverse
    # log(N(m, s) / N(n, t)) - epsilon is a quadratic in x with this constant; above zero at best,
    # the largest ratio is among those in question
    level = math.log(t / s) - epsilon
    if 0.5 * ((best - n) / t) ** 2 - 0.5 * ((best - m) / s) ** 2 + level > 0.0:
        return False
    # Ends: roots of c u^2 + b u + a with x = m + s u.
    d, r = (m - n) / s, s / t
    c, b, a = 0.5 * (r * r - 1.0), r * r * d, 0.5 * r * r * d * d + level
    root = b * b - 4.0 * c * a
    if root < 0.0:
        return True
    half = -0.5 * (b + math.copysign(math.sqrt(root), b))
    for k in range(2):
        under, over = (half, c) if k == 0 else (a, half)
        if over != 0.0:
            x = m + s * (under / over)
            if front - 0.5 * ((x - m) / s) ** 2 + 0.5 * ((x - mu) / sd) ** 2 > 0.0:
                return False
    return True


@borrowing
def inner_epsilons(rho, growth):  # type: ignore[no-untyped-def]
    """Return the factor of H(q || g) in the risk of a component, and epsilon for g and for q.

    kappa, alpha and beta of "An individual who is sometimes absent"
    (docs/mathematics/individuals.md): e^beta = rho e^eps / kappa = 1 + (e^eps - 1) / kappa. growth
    is exp(eps) - 1.
    """
    backward = max(rho - growth * (1.0 - rho), 0.0)
    up = math.log1p(growth / backward) if backward > 0.0 else np.inf
    return backward, math.log1p(growth / rho), up


@borrowing
def pair_risk(m, s, n, t, forward, backward, down, up):  # type: ignore[no-untyped-def]
    """Return the risk of a component with g = N(m, s) and q = N(n, t).

    max(rho H_alpha(g || q), kappa H_beta(q || g)), with forward = rho, backward = kappa, down =
    alpha and up = beta, infinite where kappa is zero.
    """
    one = forward * pair_integral(m, s, n, t, down)
    if up < np.inf:
        one = max(one, backward * pair_integral(n, t, m, s, up))
    return one


@borrowing
def pair_integral(m, s, n, t, epsilon):  # type: ignore[no-untyped-def]
    """H_eps of N(m, s) against N(n, t): where it exceeds is bounded by the roots of a quadratic."""
    d = (m - n) / s
    r = s / t
    curvature = 0.5 * (r * r - 1.0)
    # In units of s about m: log ratio = c u^2 + b u + a with u ~ N(0, 1) under the first
    # distribution.
    b = r * r * d
    a = 0.5 * r * r * d * d - math.log(r) - epsilon
    root = b * b - 4.0 * curvature * a
    if abs(curvature) < 1e-14:
        if b == 0.0:
            return 0.0
        edge = abs(-a / b)
        sign = 1.0 if a < 0.0 else -1.0
        value = _upper(sign * edge)
        other = _upper(sign * edge + r * abs(d))
        return max(value - math.exp(epsilon) * other, 0.0)
    if root <= 0.0:
        return max(-math.expm1(epsilon), 0.0) if curvature > 0.0 else 0.0
    # roots by the form that does not cancel: half / c and a / half
    half = -0.5 * (b + math.copysign(math.sqrt(root), b))
    x, y = half / curvature, a / half if half != 0.0 else 0.0
    low, high = min(x, y), max(x, y)
    # the first exceeds outside of the roots if it is the wider, otherwise between them; tails are
    # from above between positive roots, else from below, so that small masses keep their digits
    if curvature > 0.0:
        first = _upper(-low) + _upper(high)
        second = _upper(-r * (low + d)) + _upper(r * (high + d))
    elif low > 0.0:
        first = _upper(low) - _upper(high)
        second = _upper(r * (low + d)) - _upper(r * (high + d))
    else:
        first = _upper(-high) - _upper(-low)
        second = _upper(-r * (high + d)) - _upper(-r * (low + d))
    return max(first - math.exp(epsilon) * second, 0.0)


@borrowing
def _upper(u):  # type: ignore[no-untyped-def]
    """Return the upper tail of the standard normal distribution."""
    return 0.5 * math.erfc(u / ROOT_TWO)


@borrowing
def are_close(base, given, without):  # type: ignore[no-untyped-def]
    """Return whether every component of g and of q is near its own in the base."""
    close = True
    for k in range(base.shape[1]):
        close = close and is_close(base, given, without, k)
    return close


@borrowing
def is_close(base, given, without, k):  # type: ignore[no-untyped-def]
    """Return whether component k of g and of q is near its own in the base."""
    sd = base[2, k]
    for part in (given, without):
        stretch = part[1, k] / sd
        if abs(part[0, k] - base[1, k]) > CLOSE_SHIFT * sd:
            return False
        if stretch > CLOSE_STRETCH or stretch * CLOSE_STRETCH < 1.0:
            return False
    return True


@borrowing
def densities(base, nodes, count, work):  # type: ignore[no-untyped-def]
    """Fill in the density of every component at the nodes near it."""
    table, ranges = work[0], work[1]
    for k in range(base.shape[1]):
        mu, sd = base[1, k], base[2, k]
        ranges[k, 0], ranges[k, 1] = span(nodes, count, mu, sd)
        front = base[0, k] / (sd * ROOT_TWO_PI)
        for j in range(ranges[k, 0], ranges[k, 1]):
            u = (nodes[0, j] - mu) / sd
            table[k, j] = front * math.exp(-0.5 * u * u)


@borrowing
def _ratio(base, given, without, share, x, table, ranges, count, g, slope, d, d_slope):  # type: ignore[no-untyped-def]
    """Fill g and d = q - g with their slopes at the nodes.

    base (3, K), given and without (2, K), share (K,), x (count,), table (K, node): densities of the
    components of the base. With t0 and t1 the log ratios of given and without to the base,
    given = table (1 + expm1 t0) and without - given = table (expm1 t1 - expm1 t0): no cancellation.
    """
    for j in range(count):
        g[j] = slope[j] = d[j] = d_slope[j] = 0.0
    for k in range(base.shape[1]):
        if base[0, k] == 0.0:
            continue
        mu, sd = base[1, k], base[2, k]
        a0, b0, c0, e0, f0 = log_ratio_terms(mu, sd, given[0, k], given[1, k])
        a1, b1, c1, e1, f1 = log_ratio_terms(mu, sd, without[0, k], without[1, k])
        small = _largest(a0, b0, c0) <= SERIES and _largest(a1, b1, c1) <= SERIES
        inverse, part, rest = 1.0 / sd, share[k], 1.0 - share[k]
        first, last = ranges[k, 0], ranges[k, 1]
        at, row = x[first:last], table[k, first:last]
        to_g, to_slope = g[first:last], slope[first:last]
        to_d, to_d_slope = d[first:last], d_slope[first:last]
        # Loops without branches become vector instructions.
        for j in range(last - first):
            u = (at[j] - mu) * inverse
            t0, t1 = a0 + u * (b0 + u * c0), a1 + u * (b1 + u * c1)
            if small:
                change, other = _small_expm1(t0), _small_expm1(t1)
            else:
                change, other = _expm1(t0), _expm1(t1)
            # own: given, weighted; difference: without less given; own_slope, other_slope: of their
            # logs; bend: slope of difference. g = own + (1 - share) difference, d = share
            # difference
            own = row[j] * (1.0 + change)
            difference = row[j] * (other - change)
            own_slope, other_slope = (e0 - u) * f0, (e1 - u) * f1
            bend = difference * other_slope + own * (other_slope - own_slope)
            to_g[j] += own + rest * difference
            to_slope[j] += own * own_slope + rest * bend
            to_d[j] += part * difference
            to_d_slope[j] += part * bend


@borrowing
def _pairs(base, given, without, share, pair):  # type: ignore[no-untyped-def]
    """Fill what one point needs of every component; return whether series will do.

    Rows: location and 1 / sd of g given presence, its factor in front, the quadratic log ratio of q
    to it (a, b, c), the factors e and f of its slope, weight, ratio of the scales of both, share;
    the rest is workspace.
    """
    series = True
    for k in range(base.shape[1]):
        mu, sd = given[0, k], given[1, k]
        a, b, c, e, f = log_ratio_terms(mu, sd, without[0, k], without[1, k])
        series = series and (base[0, k] == 0.0 or _largest(a, b, c) <= SERIES)
        pair[0, k], pair[1, k], pair[2, k] = mu, 1.0 / sd, base[0, k] / (sd * ROOT_TWO_PI)
        pair[3, k], pair[4, k], pair[5, k], pair[6, k], pair[7, k] = a, b, c, e, f
        pair[8, k], pair[9, k], pair[10, k] = base[0, k], sd / without[1, k], share[k]
    return series


@inlined
def _largest(a, b, c):  # type: ignore[no-untyped-def]
    """Bound a quadratic over the reach of its component."""
    return abs(a) + FARTHEST * (abs(b) + FARTHEST * abs(c))


@borrowing
def log_ratio_terms(mu, sd, m, s):  # type: ignore[no-untyped-def]
    """Return the log ratio a + b u + c u^2 of N(m, s) to N(mu, sd), and its slope (e - u) f.

    u = (x - mu) / sd; the result is a, b, c, e, f.
    """
    e, stretch = (m - mu) / sd, s / sd
    inverse = 1.0 / (stretch * stretch)
    gain = (stretch - 1.0) * (stretch + 1.0) * inverse
    return -math.log(stretch) - 0.5 * e * e * inverse, e * inverse, 0.5 * gain, e, inverse / sd


@inlined
def _small_expm1(t):  # type: ignore[no-untyped-def]
    """Return exp(t) - 1 by eight terms of its series: for abs(t) <= SERIES."""
    tail = 1.0 / 120 + t * (1.0 / 720 + t * (1.0 / 5040 + t * (1.0 / 40320)))
    return t * (1.0 + t * (0.5 + t * (1.0 / 6 + t * (1.0 / 24 + t * tail))))


@inlined
def _expm1(t):  # type: ignore[no-untyped-def]
    """Return exp(t) - 1 by `decay`, without branches: (1 - exp(-t)) / exp(-t) for t > 0."""
    kept, lost = decay(abs(t))
    return lost / kept if t > 0.0 else -lost


@borrowing
def _point(near, _, x):  # type: ignore[no-untyped-def]
    """Return s = q / g - 1 and its slope at one point."""
    pair, series = near
    place, inverse, front = pair[0], pair[1], pair[2]
    a, b, c, e, f, share = pair[3], pair[4], pair[5], pair[6], pair[7], pair[10]
    value, value_slope, change, change_slope = pair[11], pair[12], pair[13], pair[14]
    # Every component first, in vector instructions; the sums after, in order.
    for k in range(pair.shape[1]):
        u = (x - place[k]) * inverse[k]
        # own is given, difference without - given, each with its slope in x; then as in `_ratio`
        own = front[k] * decay(0.5 * u * u)[0]
        t = a[k] + u * (b[k] + u * c[k])
        # Past its reach a component's log ratio may be anything, but it weighs nothing there.
        ratio = _small_expm1(min(max(t, -1.0), 1.0)) if series else _expm1(min(t, LARGEST_RATIO))
        difference = own * ratio
        own_slope = -u * inverse[k]
        other_slope = (e[k] - u) * f[k]
        bend = difference * other_slope + own * (other_slope - own_slope)
        value[k] = own + (1.0 - share[k]) * difference
        value_slope[k] = own * own_slope + (1.0 - share[k]) * bend
        change[k] = share[k] * difference
        change_slope[k] = share[k] * bend
    g, slope, d, d_slope = 0.0, 0.0, 0.0, 0.0
    for k in range(pair.shape[1]):
        g += value[k]
        slope += value_slope[k]
        d += change[k]
        d_slope += change_slope[k]
    if g <= 0.0:
        return 0.0, 0.0
    s = d / g
    return s, (d_slope - s * slope) / g


@borrowing
def _tails(near, _, x, weight):  # type: ignore[no-untyped-def]
    """Return the masses of q - weight g below and above x.

    The tails of the two members of a pair differ by the density times a series in h, their
    distance at x, where that is small.
    """
    pair = near[0]
    moved, lower, upper = 0.0, 0.0, 0.0
    for k in range(pair.shape[1]):
        # v: standard score of x in given; v + h: in without
        w = pair[8, k]
        v = (x - pair[0, k]) * pair[1, k]
        h = (v - pair[6, k]) * pair[9, k] - v
        if min(v, v + h) > FARTHEST:
            lower += w
            continue
        if max(v, v + h) < -FARTHEST:
            upper += w
            continue
        # erfc of positive numbers only, so that small tails keep their digits
        tail = 0.5 * math.erfc(abs(v) / ROOT_TWO)
        lower += w * (tail if v < 0.0 else 1.0 - tail)
        upper += w * (1.0 - tail if v < 0.0 else tail)
        change = 0.0
        if abs(h) * (1.0 + abs(v)) <= NEAR:
            # Phi(v + h) - Phi(v) = phi(v) sum_n h^n He_{n-1}(-v) / n!
            q = v * v
            bends = 1.0 + h * (
                -v / 2.0
                + h * (
                    (q - 1.0) / 6.0
                    + h * (
                        v * (3.0 - q) / 24.0
                        + h * (
                            (3.0 + q * (q - 6.0)) / 120.0
                            + h * (-v * (15.0 + q * (q - 10.0)) / 720.0)
                        )
                    )
                )
            )  # fmt: skip
            change = w * math.exp(-0.5 * q) / ROOT_TWO_PI * h * bends
        else:
            u = v + h
            other = 0.5 * math.erfc(abs(u) / ROOT_TWO)
            if (u < 0.0) == (v < 0.0):
                change = w * (other - tail if v < 0.0 else tail - other)
            else:
                change = w * (1.0 - tail - other if v < 0.0 else tail + other - 1.0)
        kept = (1.0 - pair[10, k]) * change
        lower, upper, moved = lower + kept, upper - kept, moved + pair[10, k] * change
    # q - weight g = (q - g) + (1 - weight) g: moved is the mass of q - g below x, and above
    # x it is the negative of that
    return moved + (1.0 - weight) * lower, -moved + (1.0 - weight) * upper


_integrate = sweep(_point, _tails)


@borrowing
def both_integrals(base, given, without, share, nodes, count, low, high, work, total):  # type: ignore[no-untyped-def]
    """Fill total with the integrals of (g - q / (1 + low))_+ and of (q - (1 + high) g)_+.

    base is (3, K), weights, locations and standard deviations, with its `count` nodes; without is
    (2, K), locations and standard deviations of q. Component k of g is (1 - share[k]) of that of q
    and share[k] of that in given, (2, K).
    """
    table, ranges, pair, values, state = work
    x = nodes[0]
    g, slope, d, d_slope = values[0], values[1], values[2], values[3]
    near = pair, _pairs(base, given, without, share, pair)
    _ratio(base, given, without, share, x, table, ranges, count, g, slope, d, d_slope)
    for j in range(count):
        if g[j] <= 0.0:
            d[j] = d_slope[j] = 0.0
            continue
        d[j] /= g[j]
        d_slope[j] = (d_slope[j] - d[j] * slope[j]) / g[j]
    _integrate(near, x, count, d, d_slope, (low, high, state, total[0], total[1]))
