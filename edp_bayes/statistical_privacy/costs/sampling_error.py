"""Mean absolute error of a share estimated from a sample: exact sums over both counts."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy.counts.arithmetic import Pair, compiled, multiply, subtract
from edp_bayes.statistical_privacy.counts.binomial import log_mean_excess, masses
from edp_bayes.statistical_privacy.counts.exact_curves import probabilities
from edp_bayes.statistical_privacy.counts.noise_tails import LAPLACE
from edp_bayes.utils.arrays import Array

__all__ = ["mean_absolute", "mean_absolute_with_noise"]

_NEGLIGIBLE = 1e-18
_LARGEST_SUM = 1e9


def mean_absolute(n: float, drawn: float, prob: float) -> float:
    """Return E abs(K / m - (K + R) / n), K ~ Binomial(m) drawn and R ~ Binomial(n - m) not."""
    p, q = probabilities(prob, False)
    start, weights = masses(drawn, p, q)
    return float(_given_drawn(float(start), weights, n - drawn, drawn, p, q) / n)


@compiled
def _given_drawn(
    start: float, weights: Array, rest: float, drawn: float, p: Pair, q: Pair
) -> float:
    """E abs(R - K (n - m) / m): given K, twice the mean excess over a strike plus a distance."""
    mean = multiply((rest, 0.0), p)
    total = 0.0
    for i in range(weights.size):
        if weights[i] < _NEGLIGIBLE:
            continue
        strike = (rest * (start + i) / drawn, 0.0)
        beyond = subtract(strike, mean)[0]
        excess = 0.0
        if beyond >= 0.0 and strike[0] < rest:
            excess = math.exp(log_mean_excess(strike, rest, p, q))
        elif beyond < 0.0 and strike[0] > 0.0:
            excess = math.exp(log_mean_excess((rest - strike[0], 0.0), rest, q, p))
        total += weights[i] * (2.0 * excess + abs(beyond))
    return total


def mean_absolute_with_noise(
    n: float, drawn: float, prob: float, family: int, scale: float
) -> float:
    """Return the same with independent noise added, by a sum over K and R.

    Raises
    ------
    InvalidInputError
        If the sum has more than 1e9 terms.
    """
    p, q = probabilities(prob, False)
    kept = []
    for size in (drawn, n - drawn):
        start, weights = masses(size, p, q)
        seen = np.flatnonzero(weights >= _NEGLIGIBLE)
        kept.append((float(start + seen[0]), weights[seen[0] : seen[-1] + 1]))
    terms = kept[0][1].size * kept[1][1].size
    if terms > _LARGEST_SUM:
        raise InvalidInputError(
            "the absolute utility loss of subsampling with noise is a double sum, here of "
            f"{terms:.1e} terms, above {_LARGEST_SUM:.0e}; use kind='squared' or a smaller n"
        )
    (first, a), (second, b) = kept
    return float(_double_sum(first, a, second, b, n, drawn, family, scale))


@compiled
def _double_sum(
    first: float, a: Array, second: float, b: Array, n: float, drawn: float, family: int,
    scale: float,
) -> float:  # fmt: skip
    """Return sum_k sum_r P(K = k) P(R = r) E|t + noise|, t = k / m - (k + r) / n, a share.

    K starts at `first` with masses a, R at `second` with masses b, m is `drawn`. With u = |t| / s,
    s the scale, E|t + noise| is |t| + s exp(-u) of Laplace noise, and |t| erf(u / sqrt 2) +
    s sqrt(2 / pi) exp(-u^2 / 2) of Gaussian noise.
    """
    total = 0.0
    for i in range(a.size):
        k = first + i
        inner = 0.0
        for j in range(b.size):
            t = abs(k / drawn - (k + second + j) / n)
            u = t / scale
            if family == LAPLACE:
                moved = t + scale * math.exp(-u)
            else:
                spread = math.sqrt(2.0 / math.pi) * math.exp(-0.5 * u * u)
                moved = t * math.erf(u / math.sqrt(2.0)) + scale * spread
            inner += b[j] * moved
        total += a[i] * inner
    return total
