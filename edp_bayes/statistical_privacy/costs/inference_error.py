"""Mean absolute errors of a count's share, of its probability or of the database drawn from."""

from __future__ import annotations

import numpy as np

from edp_bayes.statistical_privacy.counts.distribution_pairs import binomial_window
from edp_bayes.statistical_privacy.counts.replacement import of_draws
from edp_bayes.statistical_privacy.mechanisms import LaplaceNoise, Noise
from edp_bayes.utils.arrays import Array

__all__ = ["mean_absolute", "mean_absolute_of_draws"]

_NEGLIGIBLE = 1e-18


def mean_absolute(
    n: float, drawn: float, prob: float, replaced: bool, noise: Noise | None
) -> float:
    """Return E abs(K / m + noise - prob), K being the count of the m entries that are drawn.

    Raises
    ------
    InvalidInputError
        If a sum over both counts, of a sample with replacement, has more than 1e9 terms.
    """
    if replaced:
        start, masses = 0, of_draws(int(n), int(drawn), _likely(n, prob))
    else:
        start, masses = _likely(drawn, prob)
    shares = (start + np.arange(masses.size)) / drawn
    return float(masses @ _moved(shares - prob, noise))


def mean_absolute_of_draws(n: float, drawn: float, prob: float, noise: Noise | None) -> float:
    """Return E abs(K / m + noise - S / n), K being the positives of m draws with replacement.

    S is the count of the database. Given S the count of draws is binomial.

    Raises
    ------
    InvalidInputError
        If the sum over both counts has more than 1e9 terms.
    """
    start, weights = _likely(n, prob)
    total = 0.0
    for positives, weight in zip(start + np.arange(weights.size), weights, strict=True):
        masses = of_draws(int(n), int(drawn), (int(positives), np.ones(1)))
        shares = np.arange(drawn + 1.0) / drawn
        total += weight * float(masses @ _moved(shares - positives / n, noise))
    return total


def _likely(n: float, prob: float) -> tuple[int, Array]:
    """Return start and masses of a binomial count where they matter beside 1."""
    start, masses = binomial_window(int(n), prob)
    seen = np.flatnonzero(masses >= _NEGLIGIBLE)
    return start + int(seen[0]), masses[seen[0] : seen[-1] + 1]


def _moved(distance: Array, noise: Noise | None) -> Array:
    """Return E abs(distance + noise)."""
    from scipy.special import erf

    size = np.abs(distance)
    if noise is None:
        return size
    u = size / noise.scale
    if isinstance(noise, LaplaceNoise):
        return np.asarray(size + noise.scale * np.exp(-u))
    spread = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * u * u)
    return np.asarray(size * erf(u / np.sqrt(2.0)) + noise.scale * spread)
