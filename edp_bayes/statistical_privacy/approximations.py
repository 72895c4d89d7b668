"""The paper's normal approximation of the count, under its name; the exact curves are `delta`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.divergence import hockey_stick
from edp_bayes.mixtures import Mixture
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    Mechanism,
    Noise,
    parts,
)

__all__ = ["normal_approximation"]

Array = NDArray[np.float64]


def normal_approximation(
    epsilon: ArrayLike, n: ArrayLike, prob: ArrayLike, mechanism: Mechanism = None
) -> Array | float:
    """Return delta(epsilon) as if every count were normal (the paper's Lemmas 6 and 10).

    The count of k entries other than the critical one is taken to be N(k prob, k prob (1 -
    prob)). Gaussian noise adds its variance, Laplace noise is convolved exactly, and a sample
    is a mixture of two normal laws. The approximation ignores that counts are whole numbers and
    skewed; it can err on either side.

    Parameters
    ----------
    epsilon, n, prob, mechanism
        As for `edp_bayes.statistical_privacy.delta`, no entry being known.

    Returns
    -------
    ndarray or float
        Broadcast shape of epsilon, n and prob.

    Raises
    ------
    InputTypeError, InvalidInputError
        As for `delta`; also for a sample of a single entry, whose count is not normal at all.

    Examples
    --------
    >>> round(normal_approximation(0.5, n=100, prob=0.1), 4)
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
    return np.maximum(hockey_stick(plus, minus, epsilon), hockey_stick(minus, plus, epsilon))
