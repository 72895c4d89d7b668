"""The same mechanisms against an adversary who knows every other entry: differential privacy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.divergence.shifts import gaussian_shift, laplace_shift
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.mechanisms import LaplaceNoise, Mechanism, parts
from edp_bayes.utils.arrays import Array

__all__ = ["differential_privacy_delta", "laplace_epsilon"]


def differential_privacy_delta(
    n: ArrayLike, *, epsilon: ArrayLike, mechanism: Mechanism = None
) -> Array | float:
    """Return delta(epsilon) where all other entries are known, in the worst case of them.

    One entry moves the answer by 1 / n, or by 1 / m if it is one of m sampled. Laplace noise
    gives (1 - exp((eps - s) / 2))_+ and Gaussian noise the analytic Gaussian mechanism of Balle
    and Wang (2018), Phi(s/2 - eps/s) - exp(eps) Phi(-s/2 - eps/s), where s is that step over the
    scale. Drawing a share lambda of the entries turns (eps, delta) into (log(1 + lambda (e^eps -
    1)), lambda delta) (Balle, Barthe and Gaboardi 2018), which is attained when no other entry
    has the property. Without noise delta is lambda, or 1 if nothing is drawn either.

    Parameters
    ----------
    n : array_like of int
        Entries of the database, at least 2.
    epsilon : array_like
        Non-negative; may be infinite.
    mechanism : Subsampling, GaussianNoise, LaplaceNoise or a sequence, optional
        As for `edp_bayes.statistical_privacy.delta`.

    Returns
    -------
    ndarray or float
        Broadcast shape of epsilon and n.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    delta : delta of a property query
    laplace_epsilon : where Laplace noise makes delta zero
    edp_bayes.plots.breutigam_reischuk.gain_by_scale : how many times smaller delta is

    Examples
    --------
    >>> from edp_bayes.statistical_privacy import GaussianNoise
    >>> round(differential_privacy_delta(1000, epsilon=0.01, mechanism=GaussianNoise(0.001)), 2)
    0.38
    """
    sampling, noise = parts(mechanism)
    (eps, size), shape = arguments.broadcast(
        epsilon=arguments.epsilons(epsilon), n=arguments.sizes(n, "n", 2)
    )
    drawn = size if sampling is None else np.array([sampling.drawn(int(k)) for k in size], float)
    rate = drawn / size
    if noise is None:
        delta = rate
    else:
        with np.errstate(over="ignore"):
            inner = np.log1p(np.expm1(eps) / rate)
        inner = np.where(np.isinf(inner), eps - np.log(rate), inner)
        step = 1.0 / (noise.scale * drawn)
        shift = laplace_shift if isinstance(noise, LaplaceNoise) else gaussian_shift
        delta = np.zeros(eps.size)
        finite = np.isfinite(inner)
        delta[finite] = rate[finite] * shift(step[finite], inner[finite])
    return delta.reshape(shape) if shape else float(delta[0])


def laplace_epsilon(n: ArrayLike, scale: ArrayLike) -> Array | float:
    """Return 1 / (scale n): from this epsilon on, Laplace noise makes delta exactly 0.

    It is the paper's Lemma 5, holds whatever the adversary knows, and is attained: at any smaller
    epsilon delta is above 0.

    Parameters
    ----------
    n : array_like of int
        Entries of the database, at least 2.
    scale : array_like
        Scale of the noise in units of the answer, above 0.

    Returns
    -------
    ndarray or float
        Broadcast shape of both.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    differential_privacy_delta : delta where all other entries are known
    edp_bayes.noise.LaplaceNoise : Laplace noise

    Examples
    --------
    >>> laplace_epsilon(1000, 0.004)
    0.25
    """
    (size, width), shape = arguments.broadcast(
        n=arguments.sizes(n, "n", 2), scale=arguments.positive(scale, "scale")
    )
    epsilon = 1.0 / (width * size)
    return epsilon.reshape(shape) if shape else float(epsilon[0])
