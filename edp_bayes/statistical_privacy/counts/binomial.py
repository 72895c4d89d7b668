"""The binomial distribution to the last digits: its mass, and the mean excess over a strike.

The mass follows Loader (2000), "Fast and accurate computation of binomial probabilities": each
term of the exponent is a deviance, so nothing large cancels. Here the deviances are those of the
exact difference between a count and its mean.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.statistical_privacy.counts.arithmetic import (
    Pair,
    add,
    compiled,
    floor,
    multiply,
    subtract,
)
from edp_bayes.utils.arrays import Array

__all__ = ["log_choose", "log_mass", "log_mean_excess", "log_probability", "masses"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Terms of the tail beyond which an integral over the beta distribution is cheaper than a sum.
_LONGEST_SUM = 300.0
_DECAY = 45.0  # exp(-45) is nothing beside 1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_LEAST = 1e-308


@compiled
def log_probability(p: Pair, q: Pair) -> float:
    """Return log p, where q is 1 - p to the digits that p lacks."""
    if p[0] > 0.5:
        return math.log1p(-q[0]) - q[1] / (1.0 - q[0])
    return math.log(p[0]) + p[1] / p[0]


@compiled
def _stirling_error(n: float) -> float:
    """Log n! minus Stirling's formula, n >= 1."""
    if n < 16.0:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - _HALF_LOG_TWO_PI
    s = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - s / 1188) * s) * s) * s) / n


@compiled
def _log1p_rest(x: float) -> float:
    """log(1 + x) - x."""
    if abs(x) > 0.5:
        return math.log1p(x) - x
    v = x / (2.0 + x)
    square = v * v
    power = v
    total = 0.0
    k = 3.0
    while True:
        power *= square
        term = power / k
        total += term
        if abs(term) <= 1e-17 * abs(total) or term == 0.0:
            return 2.0 * total - x * v
        k += 2.0


@compiled
def _deviance(u: float) -> float:
    """(1 + u) log(1 + u) - u, the deviance of a Poisson count per unit of its mean."""
    if abs(u) > 0.5:
        return (1.0 + u) * math.log1p(u) - u
    # the two parts are about -u^2 / 2 and u^2: little cancels
    return (1.0 + u) * _log1p_rest(u) + u * u


@compiled
def log_mass(j: float, n: float, p: Pair, q: Pair) -> float:
    """Return log P(S = j) for S ~ Binomial(n, p), 0 <= j <= n whole numbers."""
    if j == 0.0:
        return n * log_probability(q, p)
    if j == n:
        return n * log_probability(p, q)
    mean = multiply((n, 0.0), p)
    x = subtract((j, 0.0), mean)[0]
    comean = n * q[0]
    exponent = mean[0] * _deviance(x / mean[0]) + comean * _deviance(-x / comean)
    rest = _stirling_error(n) - _stirling_error(j) - _stirling_error(n - j)
    return 0.5 * math.log(n / (j * (n - j))) - _HALF_LOG_TWO_PI + rest - exponent


@compiled
def _sum_of_tail(a: float, gap: float, n: float, odds: float) -> float:
    """Sum of (j - a + gap) P(S = j) / P(S = a) over j >= a."""
    weight, total, i = 1.0, gap, 0.0
    while a + i < n:
        weight *= (n - a - i) * odds / (a + i + 1.0)
        i += 1.0
        term = weight * (i + gap)
        total += term
        if term < 1e-18 * total:
            break
    return total


@compiled
def _integral_of_tail(a: float, gap: float, n: float, p: Pair, q: Pair) -> float:
    """Compute the same as an integral over the beta distribution, all of whose terms are positive.

    With rho(y) = (1 - y/p)^(a-1) (1 + y/q)^(n-a) it is
    (a / p) times the integral over 0 < y < p of rho(y) (gap + (n - a) y / (q + y)).
    """
    distance = subtract((a, 0.0), multiply((n, 0.0), p))[0]
    slope = (distance - q[0]) / (p[0] * q[0])
    curvature = (a - 1.0) / p[0] ** 2 + (n - a) / q[0] ** 2
    reach = min(p[0], 2.0 * _DECAY / (slope + math.sqrt(slope * slope + 2.0 * _DECAY * curvature)))
    total = 0.0
    for i in range(_NODES.size):
        y = 0.5 * reach * (1.0 + _NODES[i])
        log_rho = -slope * y
        log_rho += (a - 1.0) * _log1p_rest(-y / p[0]) + (n - a) * _log1p_rest(y / q[0])
        total += _WEIGHTS[i] * math.exp(log_rho) * (gap + (n - a) * y / (q[0] + y))
    return 0.5 * reach * total * a / p[0]


@compiled
def log_mean_excess(strike: Pair, n: float, p: Pair, q: Pair) -> float:
    """Return log E (S - strike)_+ for S ~ Binomial(n, p) and n p <= strike < n.

    Two positive sums or integrals, so nothing cancels; the time does not grow with n.
    """
    a = floor(strike) + 1.0
    gap = subtract((a, 0.0), strike)[0]
    odds = p[0] / q[0]
    fall = -math.log((n - a) * odds / (a + 1.0)) if a < n else math.inf
    local = (n - a) * a / n
    # how many terms until fall * i + i^2 / (2 local) has used up the digits
    if a >= n - 1.0 or local <= 0.0:
        terms = 1.0
    else:
        terms = 2.0 * _DECAY / (fall + math.sqrt(max(fall * fall + 2.0 * _DECAY / local, 0.0)))
    if terms <= _LONGEST_SUM:
        tail = _sum_of_tail(a, gap, n, odds)
    else:
        tail = _integral_of_tail(a, gap, n, p, q)
    return log_mass(a, n, p, q) + math.log(tail)


@compiled
def masses(n: float, p: Pair, q: Pair) -> tuple[int, np.ndarray]:
    """Return where the masses of Binomial(n, p) start to exceed 1e-308, and those masses."""
    mean = multiply((n, 0.0), p)
    mode = min(floor(add(mean, p)), n)
    peak = math.exp(log_mass(mode, n, p, q))
    odds = p[0] / q[0]
    first, value = mode, peak
    while first > 0.0:
        value *= first / ((n - first + 1.0) * odds)
        if value < _LEAST:
            break
        first -= 1.0
    last, value = mode, peak
    while last < n:
        value *= (n - last) * odds / (last + 1.0)
        if value < _LEAST:
            break
        last += 1.0
    out = np.empty(int(last - first) + 1)
    start = int(mode - first)
    out[start] = peak
    for i in range(start, 0, -1):
        j = first + i
        out[i - 1] = out[i] * (j / ((n - j + 1.0) * odds))
    for i in range(start, out.size - 1):
        j = first + i
        out[i + 1] = out[i] * ((n - j) * odds / (j + 1.0))
    return int(first), out


def log_choose(n: ArrayLike, count: ArrayLike) -> Array:
    """Return the log of the number of ways to choose `count` of n; both broadcast."""
    from scipy.special import gammaln

    n, count = np.asarray(n), np.asarray(count)
    return np.asarray(gammaln(n + 1.0) - gammaln(count + 1.0) - gammaln(n - count + 1.0))
