"""The paper's normal approximation of the count, and what subsampling is worth at least.

Both under names that say so; the exact curves are `delta`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.exceptions import InputTypeError
from edp_bayes.statistical_privacy import arguments, curves
from edp_bayes.statistical_privacy.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    Mechanism,
    Noise,
    Subsampling,
    parts,
)
from edp_bayes.utils.arrays import Array

__all__ = ["normal_approximation", "subsampling_bound"]

# Beyond it exp(epsilon) - 1 is exp(epsilon).
LARGE = 600.0


def normal_approximation(
    n: ArrayLike, prob: ArrayLike, *, epsilon: ArrayLike, mechanism: Mechanism = None
) -> Array | float:
    """Return delta(epsilon) as if every count were normal (the paper's Lemmas 6 and 10).

    The count of k entries other than the critical one is taken to be N(k prob, k prob (1 -
    prob)). Gaussian noise adds its variance, Laplace noise is convolved exactly, and a sample
    is a mixture of two normal distributions. The approximation ignores that counts are whole
    numbers and skewed; it can err on either side.

    Parameters
    ----------
    n, prob, epsilon, mechanism
        As for `edp_bayes.statistical_privacy.delta`, no entry being known.

    Returns
    -------
    ndarray or float
        Broadcast shape of epsilon, n and prob.

    Raises
    ------
    InputTypeError, InvalidInputError
        As for `delta`; also for a sample of a single entry, whose count is not normal at all.

    See Also
    --------
    delta : delta of a property query
    subsampling_bound : a bound from the smaller database

    Examples
    --------
    >>> round(normal_approximation(epsilon=0.5, n=100, prob=0.1), 4)
    0.0127
    """
    sampling, noise = parts(mechanism)
    (eps, size, p), shape = arguments.broadcast(
        epsilon=arguments.epsilons(epsilon),
        n=arguments.sizes(n, "n", 2),
        prob=arguments.probabilities(prob),
    )
    out = np.empty(eps.size)
    cases, group = np.unique(np.stack([size, p]), axis=1, return_inverse=True)
    for k, (entries, probability) in enumerate(cases.T):
        where = group == k
        drawn = int(entries) if sampling is None else sampling.drawn(int(entries))
        out[where] = _curve(eps[where], int(entries), drawn, float(probability), noise)
    return out.reshape(shape) if shape else float(out[0])


def _curve(epsilon: Array, n: int, drawn: int, prob: float, noise: Noise | None) -> Array:
    if drawn < 2:
        arguments.sizes(drawn, "number of entries drawn", 2)
    rate = drawn / n
    means = np.array([drawn - 1, drawn][: 1 if rate == 1.0 else 2]) * prob
    weights = np.array([rate, 1.0 - rate][: means.size])
    spreads = np.sqrt(means * (1.0 - prob))
    counted: Noise | None = None
    if isinstance(noise, GaussianNoise):
        counted = GaussianNoise(noise.scale * drawn)
    elif isinstance(noise, LaplaceNoise):
        counted = LaplaceNoise(noise.scale * drawn)
    step = np.array([1.0, 0.0][: means.size])
    minus = Mixture(weights, means, spreads, noise=counted)
    plus = Mixture(weights, means + step, spreads, noise=counted)
    return np.maximum(
        hockey_stick(plus, minus, epsilon=epsilon), hockey_stick(minus, plus, epsilon=epsilon)
    )


def subsampling_bound(
    n: ArrayLike, prob: ArrayLike, sampling: Subsampling, *, epsilon: ArrayLike
) -> Array | float:
    """Return an upper bound on delta(epsilon) under subsampling, from the smaller database.

    With lambda = m / n and inner epsilon eps0 = log(1 + (e^eps - 1) / lambda), the curve of the
    sample is at most lambda times that of a database of m entries at eps0 (the paper's closing
    conjecture). Advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2) proves it
    with a factor below one: with beta = e^(eps - eps0), delta_plus is at most
    lambda ((1 - beta) (1 - prob) + beta) delta_plus of the m entries, and delta_minus the same
    with prob in place of 1 - prob.

    Parameters
    ----------
    n : array_like of int
        Entries of the database, at least 2.
    prob : array_like
        Probability that an entry has the property, strictly between 0 and 1.
    sampling : Subsampling
        Draws at least 2 entries.
    epsilon : array_like
        Epsilon of the sampled query, finite and non-negative.

    Returns
    -------
    ndarray or float
        Broadcast shape of all arguments; the larger of both directions.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    delta : delta of a property query
    Subsampling : a sample drawn without replacement
    normal_approximation : delta as if counts were normal

    Examples
    --------
    >>> from edp_bayes.statistical_privacy import delta
    >>> quarter = Subsampling(rate=0.25)
    >>> bound = subsampling_bound(400, 0.2, quarter, epsilon=0.1)
    >>> true = delta(400, 0.2, epsilon=0.1, mechanism=quarter)
    >>> round(bound, 5), round(true, 5)
    (0.00295, 0.0016)
    """
    return subsampling_bound_by_direction(n, prob, sampling, (True, False), epsilon=epsilon)


def subsampling_bound_by_direction(
    n: ArrayLike,
    prob: ArrayLike,
    sampling: Subsampling,
    directions: tuple[bool, ...],
    *,
    epsilon: ArrayLike,
) -> Array | float:
    """Return the bound for delta_plus (True), delta_minus (False) or the larger of both."""
    if not isinstance(sampling, Subsampling):
        raise InputTypeError(f"sampling must be Subsampling, found {sampling!r}")
    (eps, size, p), shape = arguments.broadcast(
        epsilon=arguments.finite_epsilons(epsilon),
        n=arguments.sizes(n, "n", 2),
        prob=arguments.probabilities(prob),
    )
    drawn = np.array([sampling.drawn(int(k)) for k in size], float)
    rate = drawn / size
    inner = np.where(
        eps > LARGE, eps - np.log(rate), np.log1p(np.expm1(np.minimum(eps, LARGE)) / rate)
    )
    beta = np.exp(eps - inner)
    bounds = np.zeros(eps.size)
    for plus in directions:
        curve, share = (curves.delta_plus, 1.0 - p) if plus else (curves.delta_minus, p)
        factor = rate * ((1.0 - beta) * share + beta)
        bounds = np.maximum(bounds, factor * curve(drawn, p, epsilon=inner))
    return bounds.reshape(shape) if shape else float(bounds[0])
