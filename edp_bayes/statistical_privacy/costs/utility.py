"""How far a mechanism's answer is from the true share: utility loss, and scales that match it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    Mechanism,
    Noise,
    Sampling,
    SamplingWithReplacement,
    Subsampling,
    any_parts,
)
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["KINDS", "inference_loss", "matching_rate", "matching_scale", "utility_loss"]

KINDS = ("squared", "absolute")


def utility_loss(
    n: ArrayLike, prob: ArrayLike, mechanism: Mechanism = None, *, kind: str = "squared"
) -> Array | float:
    """Return the expected distance between the mechanism's answer and the true share.

    The expectation is over database, sample and noise. Squared: scale^2 for Gaussian noise,
    2 scale^2 for Laplace noise, prob (1 - prob) (1/m - 1/n) for a sample of m without and
    prob (1 - prob) (1 - 1/n) / m for one with replacement; they add. Absolute: scale sqrt(2/pi),
    scale, and an exact sum for a sample.

    Parameters
    ----------
    n, prob, mechanism
        As for `edp_bayes.statistical_privacy.delta`.
    kind : {"squared", "absolute"}
        Mean squared error, in squared shares, or mean absolute error, in shares.

    Returns
    -------
    ndarray or float
        Broadcast shape of n and prob.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    inference_loss : the distance to the probability
    least_utility_loss : the cheapest mechanism for a target
    matching_rate : the sampling rate that costs as much as noise

    Examples
    --------
    >>> round(utility_loss(1000, 0.1, Subsampling(size=100)), 6)
    0.00081
    >>> round(utility_loss(1000, 0.1, LaplaceNoise(0.02), kind="absolute"), 6)
    0.02
    """
    validate.choice(kind, KINDS, "kind")
    sampling, noise = any_parts(mechanism)
    (size, p), shape = arguments.broadcast(
        n=arguments.sizes(n, "n", 2), prob=arguments.probabilities(prob)
    )
    drawn = _drawn(sampling, size)
    if kind == "squared":
        replaced = isinstance(sampling, SamplingWithReplacement)
        kept = (size - 1.0 if replaced else size - drawn) / (size * drawn)
        loss = p * (1.0 - p) * kept + _squared(noise)
    else:
        cases = zip(size, drawn, p, strict=True)
        loss = np.array([_absolute(*case, sampling, noise) for case in cases])
    return loss.reshape(shape) if shape else float(loss[0])


def inference_loss(
    n: ArrayLike, prob: ArrayLike, mechanism: Mechanism = None, *, kind: str = "squared"
) -> Array | float:
    """Return the expected distance between the mechanism's answer and the probability prob.

    It is what statistical inference loses: the answer estimates the distribution of the entries,
    not the database itself, so the database's own randomness counts, too. The paper's Definition 8
    and Lemma 8 treat the utility of statistical inference; their wording was not available, and
    this is the expected squared or absolute error of that estimate. Squared: prob (1 - prob) / m
    for the m entries that are counted, prob (1 - prob) (1/n + (1 - 1/n) / m) for m draws with
    replacement, plus the variance of the noise. Absolute: an exact sum over the count.

    Parameters
    ----------
    n, prob, mechanism
        As for `edp_bayes.statistical_privacy.delta`.
    kind : {"squared", "absolute"}
        Mean squared error, in squared shares, or mean absolute error, in shares.

    Returns
    -------
    ndarray or float
        Broadcast shape of n and prob.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    utility_loss : the distance to the true share
    delta : delta of a property query

    Examples
    --------
    >>> round(inference_loss(1000, 0.1), 6), round(inference_loss(1000, 0.1, LaplaceNoise(0.01)), 6)
    (9e-05, 0.00029)
    >>> round(inference_loss(1000, 0.1, Subsampling(size=100)), 6)
    0.0009
    """
    validate.choice(kind, KINDS, "kind")
    sampling, noise = any_parts(mechanism)
    (size, p), shape = arguments.broadcast(
        n=arguments.sizes(n, "n", 2), prob=arguments.probabilities(prob)
    )
    drawn = _drawn(sampling, size)
    replaced = isinstance(sampling, SamplingWithReplacement)
    if kind == "squared":
        counted = 1.0 / size + (1.0 - 1.0 / size) / drawn if replaced else 1.0 / drawn
        loss = p * (1.0 - p) * counted + _squared(noise)
    else:
        from edp_bayes.statistical_privacy.costs import inference_error

        cases = zip(size, drawn, p, strict=True)
        loss = np.array([inference_error.mean_absolute(*case, replaced, noise) for case in cases])
    return loss.reshape(shape) if shape else float(loss[0])


def matching_scale(
    sampling: Subsampling, n: int, prob: float, noise: type[Noise], *, kind: str = "squared"
) -> Noise:
    """Return the noise with the utility loss of a subsampling.

    Parameters
    ----------
    sampling : Subsampling
        Must leave at least one entry out.
    n, prob
        Scalars as for `edp_bayes.statistical_privacy.delta`.
    noise : type
        GaussianNoise or LaplaceNoise.
    kind : {"squared", "absolute"}
        As for `utility_loss`.

    Returns
    -------
    GaussianNoise or LaplaceNoise

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, or every entry is drawn, so that no noise matches.

    See Also
    --------
    matching_rate : the sampling rate that costs as much as noise
    utility_loss : the distance to the true share
    edp_bayes.noise.LaplaceNoise : Laplace noise

    Examples
    --------
    >>> round(matching_scale(Subsampling(size=100), 1000, 0.5, GaussianNoise).scale, 6)
    0.047434
    """
    if noise not in (GaussianNoise, LaplaceNoise):
        raise InputTypeError(f"noise must be GaussianNoise or LaplaceNoise, found {noise!r}")
    if not isinstance(sampling, Subsampling):
        raise InputTypeError(f"sampling must be Subsampling, found {sampling!r}")
    loss = float(utility_loss(n, prob, sampling, kind=kind))
    if loss == 0.0:
        raise InvalidInputError(
            f"sampling must leave entries out for noise to match it, found a sample of all n = {n}"
        )
    unit = float(utility_loss(n, prob, noise(1.0), kind=kind))
    return noise(math.sqrt(loss / unit) if kind == "squared" else loss / unit)


def matching_rate(noise: Noise, n: int, prob: float, *, kind: str = "squared") -> float:
    """Return the sampling rate with the utility loss of noise.

    Parameters
    ----------
    noise : GaussianNoise or LaplaceNoise
        In units of the answer.
    n, prob
        Scalars as for `edp_bayes.statistical_privacy.delta`.
    kind : {"squared", "absolute"}
        As for `utility_loss`.

    Returns
    -------
    float
        With squared losses the rate that matches exactly, were parts of entries drawn; with
        absolute ones that of the smallest sample that loses no more.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, or even a single entry loses less than the noise.

    See Also
    --------
    matching_scale : the noise that costs as much as a sample
    utility_loss : the distance to the true share
    Subsampling : a sample drawn without replacement

    Examples
    --------
    >>> round(matching_rate(GaussianNoise(0.0474341649), 1000, 0.5), 6)
    0.1
    """
    if not isinstance(noise, GaussianNoise | LaplaceNoise):
        raise InputTypeError(f"noise must be GaussianNoise or LaplaceNoise, found {noise!r}")
    loss = float(utility_loss(n, prob, noise, kind=kind))
    worst = float(utility_loss(n, prob, Subsampling(size=1), kind=kind))
    if loss > worst:
        raise InvalidInputError(
            f"the noise loses {loss:.4g}, more than the {worst:.4g} of a sample of one entry; "
            "no sampling rate matches it"
        )
    if kind == "squared":
        return 1.0 / (1.0 + n * loss / (prob * (1.0 - prob)))
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if float(utility_loss(n, prob, Subsampling(size=middle), kind=kind)) <= loss:
            high = middle
        else:
            low = middle
    return high / n


def _drawn(sampling: Sampling | None, size: Array) -> Array:
    return size if sampling is None else np.array([sampling.drawn(int(k)) for k in size], float)


def _squared(noise: Noise | None) -> float:
    return 0.0 if noise is None else noise.variance


def _absolute(
    n: float, drawn: float, prob: float, sampling: Sampling | None, noise: Noise | None
) -> float:
    from edp_bayes.statistical_privacy.costs import inference_error, sampling_error
    from edp_bayes.statistical_privacy.counts.noise_tails import GAUSSIAN, LAPLACE

    if isinstance(sampling, SamplingWithReplacement):
        return inference_error.mean_absolute_of_draws(n, drawn, prob, noise)
    if drawn < n:
        if noise is None:
            return sampling_error.mean_absolute(n, drawn, prob)
        family = LAPLACE if isinstance(noise, LaplaceNoise) else GAUSSIAN
        return sampling_error.mean_absolute_with_noise(n, drawn, prob, family, noise.scale)
    if noise is None:
        return 0.0
    return noise.scale * (1.0 if isinstance(noise, LaplaceNoise) else math.sqrt(2.0 / math.pi))
