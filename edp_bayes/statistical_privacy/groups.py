"""Entries with different probabilities: the count of positives is Poisson-binomial."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.counts import noise_curves
from edp_bayes.statistical_privacy.counts.distribution_pairs import (
    DistributionPair,
    Window,
    binomial_window,
)
from edp_bayes.statistical_privacy.counts.known_entries import sampled_pair
from edp_bayes.statistical_privacy.counts.noise_tails import GAUSSIAN, LAPLACE
from edp_bayes.statistical_privacy.counts.replacement import replacement_pair
from edp_bayes.statistical_privacy.mechanisms import (
    LaplaceNoise,
    Mechanism,
    Noise,
    Sampling,
    Subsampling,
    any_parts,
)
from edp_bayes.utils.arrays import Array

__all__ = ["group_delta", "worst_curve"]


def group_delta(
    sizes: ArrayLike, probs: ArrayLike, *, epsilon: ArrayLike, mechanism: Mechanism = None
) -> Array:
    """Return delta(epsilon) of an entry of each group, when groups differ in probability.

    The query answers with the share of all entries that have the property. All that an entry's
    risk depends on is the count of the other entries, a sum of binomial counts; groups of one
    entry each give a Poisson-binomial count. A sample is drawn from all entries alike, whatever
    their group.

    Parameters
    ----------
    sizes : array_like of int, shape (group,)
        Entries of each group, at least 1 each and 2 together.
    probs : array_like, shape (group,)
        Probability of the property in each group, strictly between 0 and 1.
    epsilon : array_like
        Non-negative; with noise at most 700 or infinite.
    mechanism : Subsampling, SamplingWithReplacement, GaussianNoise, LaplaceNoise or a sequence
        As for `edp_bayes.statistical_privacy.delta`; nothing if not given.

    Returns
    -------
    ndarray, shape (shape of epsilon) + (group,)
        Its maximum over the groups is the delta of the query.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type, or a sample without
        replacement is larger than the database.

    See Also
    --------
    delta : delta of a property query
    beta_binomial_delta : delta where entries depend on each other

    Examples
    --------
    >>> group_delta(epsilon=0.2, sizes=[90, 10], probs=[0.1, 0.5]).round(4)
    array([0.057 , 0.0585])

    A quarter of the same entries:

    >>> from edp_bayes.statistical_privacy import Subsampling
    >>> quarter = Subsampling(rate=0.25)
    >>> group_delta(epsilon=0.2, sizes=[90, 10], probs=[0.1, 0.5], mechanism=quarter).round(4)
    array([0.0064, 0.0071])
    """
    sampling, noise = any_parts(mechanism)
    eps = arguments.epsilons(epsilon)
    p = np.atleast_1d(arguments.probabilities(probs, "probs"))
    counts = np.atleast_1d(arguments.sizes(sizes, "sizes", 1))
    if counts.shape != p.shape or p.ndim != 1:
        raise InvalidInputError(
            "sizes and probs must be vectors with one value for each group, found shapes "
            f"{counts.shape} and {p.shape}"
        )
    if counts.sum() < 2:
        raise InvalidInputError("the groups must hold at least 2 entries, found 1")
    out = np.empty((eps.size, p.size))
    n = int(counts.sum())
    drawn = n if sampling is None else sampling.drawn(n)
    for k, others in enumerate(_others(counts, p)):
        pair = _counted(n, drawn, others, sampling)
        out[:, k] = worst_curve(pair, eps.ravel(), noise, float(drawn))
    return out.reshape(eps.shape + p.shape)


def worst_curve(
    pair: DistributionPair, epsilon: Array, noise: Noise | None, counted: float
) -> Array:
    """Return the larger of both directions of a pair, with noise in units of 1 / counted."""
    both = (pair, pair.mirrored())
    if noise is None:
        return np.maximum(*(one.delta_plus(epsilon=epsilon) for one in both))
    noise_curves.check(epsilon)
    family = LAPLACE if isinstance(noise, LaplaceNoise) else GAUSSIAN
    scale = noise.scale * counted
    return np.maximum(*(noise_curves.curve(one, epsilon, family, scale) for one in both))


def _counted(n: int, drawn: int, others: Window, sampling: Sampling | None) -> DistributionPair:
    """Return the distributions of the count that is answered, given that of all other entries."""
    if isinstance(sampling, Subsampling):
        return sampled_pair(n, drawn, others)
    whole = DistributionPair.of_shares(1.0, others, None)
    return whole if sampling is None else replacement_pair(n, drawn, whole)


def _others(counts: Array, probs: Array) -> list[Window]:
    """Return for every group the distribution of the positives among all entries but one of it."""
    whole = [binomial_window(int(c), float(p)) for c, p in zip(counts, probs, strict=True)]
    before, after = [_NOTHING], [_NOTHING]
    for k in range(len(whole) - 1):
        before.append(_sum(before[-1], whole[k]))
        after.append(_sum(after[-1], whole[-1 - k]))
    return [
        _sum(_sum(before[k], after[-1 - k]), binomial_window(int(counts[k]) - 1, float(probs[k])))
        for k in range(len(whole))
    ]


_NOTHING: Window = (0, np.ones(1))


def _sum(a: Window, b: Window) -> Window:
    """Return the distribution of the sum of two counts, by convolution, which keeps tails."""
    masses = np.convolve(a[1], b[1])
    kept = np.flatnonzero(masses > 0.0)
    return a[0] + b[0] + int(kept[0]), masses[kept[0] : kept[-1] + 1]
