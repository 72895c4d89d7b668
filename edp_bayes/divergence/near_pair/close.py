"""Pairs of Gaussian mixtures near a common one: bounds of their risks by those of components.

A posterior draw of p is compared with thousands of p_i that differ from it by little. By joint
convexity the risk is at most the sum over pairs of components, each a closed form: the log ratio of
two normal densities is a quadratic, and its roots bound where one exceeds the other.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.near_pair.nodes import FARTHEST
from edp_bayes.utils.compiled import borrowing

__all__ = [
    "are_close",
    "convexity_bound",
    "covered_bound",
    "inner_epsilons",
    "is_close",
    "log_ratio_terms",
    "pair_integral",
    "pair_risk",
]

CLOSE_SHIFT = 3.0  # largest move of a component, in its own standard deviations
CLOSE_STRETCH = 2.5  # largest ratio of standard deviations

ROOT_TWO = math.sqrt(2.0)


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
def log_ratio_terms(mu, sd, m, s):  # type: ignore[no-untyped-def]
    """Return the log ratio a + b u + c u^2 of N(m, s) to N(mu, sd), and its slope (e - u) f.

    u = (x - mu) / sd; the result is a, b, c, e, f.
    """
    e, stretch = (m - mu) / sd, s / sd
    inverse = 1.0 / (stretch * stretch)
    gain = (stretch - 1.0) * (stretch + 1.0) * inverse
    return -math.log(stretch) - 0.5 * e * e * inverse, e * inverse, 0.5 * gain, e, inverse / sd
