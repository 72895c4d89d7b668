"""Log masses of binomial and beta-binomial counts, for arrays of draws."""

from __future__ import annotations

import numpy as np

from edp_bayes.statistical_privacy.counts.binomial import log_choose
from edp_bayes.utils.arrays import Array

__all__ = ["beta_binomial_log_mass", "binomial_log_mass"]

LEAST = 1e-300
_LARGE = 50.0


def binomial_log_mass(count: Array, n: Array, prob: Array) -> Array:
    """Return log P(count) of Binomial(n, prob); everything broadcasts."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(log_choose(n, count) + xlogy(count, prob) + xlog1py(n - count, -prob))


def beta_binomial_log_mass(count: Array, n: Array, prob: Array, concentration: Array) -> Array:
    """Return log P(count) where pi is Beta(prob, 1 - prob) times the concentration.

    Precise for concentrations far above n, where it tends to the binomial distribution.
    """
    # Where both factors are tiny their product may not underflow to 0, whose Gamma is infinite.
    a = np.maximum(prob * concentration, LEAST)
    b = np.maximum((1.0 - prob) * concentration, LEAST)
    rest = n - count
    return np.asarray(log_choose(n, count) + _rise(a, count) + _rise(b, rest) - _rise(a + b, n))


def _rise(a: Array, x: Array) -> Array:
    """Return log Gamma(a + x) - log Gamma(a), whose two terms would cancel for large a."""
    from scipy.special import gammaln

    a, x = np.broadcast_arrays(a, x)
    large = a > _LARGE
    out = np.empty(a.shape)
    out[~large] = gammaln(a[~large] + x[~large]) - gammaln(a[~large])
    a, x = a[large], x[large]
    out[large] = (
        (a - 0.5) * np.log1p(x / a) + x * np.log(a + x) - x + _remainder(a + x) - _remainder(a)
    )
    return out


def _remainder(a: Array) -> Array:
    """Return what Stirling's formula leaves of log Gamma, to 1e-14 above 50."""
    inverse = 1.0 / (a * a)
    return np.asarray((1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / a)
