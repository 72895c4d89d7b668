"""delta_plus of a property query without noise, from the two distributions.

With S ~ Binomial(m, pi) the number of positives among the m sampled entries, L = exp(eps) and
rho = 1 - pi, both distributions of the sampled count given the critical entry are masses of S times
a linear function, so

    delta_plus = (rho + L pi) / (n pi rho) E (S - k)_+,
    k = m pi + n pi rho (L - 1) / (rho + L pi),

for every sampling rate m / n, the whole database included. delta_minus is the same with pi and
rho exchanged.
"""

from __future__ import annotations

import math

from edp_bayes.statistical_privacy.counts.arithmetic import (
    Pair,
    add,
    compiled,
    decayed,
    divide,
    floor,
    multiply,
    subtract,
)
from edp_bayes.statistical_privacy.counts.binomial import log_mean_excess, log_probability
from edp_bayes.utils.arrays import Array

__all__ = ["curves", "probabilities"]


@compiled
def probabilities(prob: float, mirrored: bool) -> tuple[Pair, Pair]:
    """Return pi and 1 - pi, exchanged if mirrored; each exact."""
    p = (prob, 0.0)
    q = subtract((1.0, 0.0), p)
    if mirrored:
        return q, p
    return p, q


@compiled
def _point(epsilon: float, n: float, m: float, p: Pair, q: Pair) -> float:
    """Return delta at one epsilon, m of n entries drawn, by the mean excess of a binomial count.

    With e = exp(-eps): delta = exp(eps) (p + q e) / (n p q) E(K - strike)_+, K ~ Binomial(m, p),
    strike = m p + n p q (1 - e) / (p + q e) (docs/mathematics/subsampling.md). A probability.
    """
    e = decayed(epsilon)
    mixed = add(multiply(q, e), p)
    lost = subtract((1.0, 0.0), e)
    shift = divide(multiply(multiply((n, 0.0), multiply(p, q)), lost), mixed)
    strike = add(multiply((m, 0.0), p), shift)
    if m == n and floor(strike) + 1.0 >= n:
        # only the count n is left, which is impossible without the critical entry
        return math.exp((n - 1.0) * log_probability(p, q))
    if floor(strike) >= m:
        return 0.0
    scale = mixed[0] / (n * p[0] * q[0])
    return min(math.exp(epsilon + math.log(scale) + log_mean_excess(strike, m, p, q)), 1.0)


@compiled
def curves(epsilon: Array, n: Array, m: Array, prob: Array, mirrored: bool, out: Array) -> None:
    """Fill out with delta_plus, or delta_minus if mirrored; all vectors of one length."""
    for i in range(out.size):
        p, q = probabilities(prob[i], mirrored)
        out[i] = _point(epsilon[i], n[i], m[i], p, q)
