"""What subsampling is worth at least: the paper's closing conjecture, which is a theorem."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InputTypeError
from edp_bayes.statistical_privacy import arguments, curves
from edp_bayes.statistical_privacy.mechanisms import Subsampling

__all__ = ["bound", "subsampling_bound"]

Array = NDArray[np.float64]

# Beyond it exp(epsilon) - 1 is exp(epsilon).
_LARGE = 600.0


def subsampling_bound(
    epsilon: ArrayLike, n: ArrayLike, prob: ArrayLike, sampling: Subsampling
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
    epsilon : array_like
        Epsilon of the sampled query, finite and non-negative.
    n : array_like of int
        Entries of the database, at least 2.
    prob : array_like
        Probability that an entry has the property, strictly between 0 and 1.
    sampling : Subsampling
        Draws at least 2 entries.

    Returns
    -------
    ndarray or float
        Broadcast shape of all arguments; the larger of both directions.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    Examples
    --------
    >>> from edp_bayes.statistical_privacy import delta
    >>> quarter = Subsampling(rate=0.25)
    >>> bound, true = subsampling_bound(0.1, 400, 0.2, quarter), delta(0.1, 400, 0.2, quarter)
    >>> round(bound, 5), round(true, 5)
    (0.00295, 0.0016)
    """
    return bound(epsilon, n, prob, sampling, (True, False))


def bound(
    epsilon: ArrayLike,
    n: ArrayLike,
    prob: ArrayLike,
    sampling: Subsampling,
    directions: tuple[bool, ...],
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
        eps > _LARGE, eps - np.log(rate), np.log1p(np.expm1(np.minimum(eps, _LARGE)) / rate)
    )
    beta = np.exp(eps - inner)
    bounds = np.zeros(eps.size)
    for plus in directions:
        curve, share = (curves.delta_plus, 1.0 - p) if plus else (curves.delta_minus, p)
        factor = rate * ((1.0 - beta) * share + beta)
        bounds = np.maximum(bounds, factor * curve(inner, drawn, p))
    return bounds.reshape(shape) if shape else float(bounds[0])
