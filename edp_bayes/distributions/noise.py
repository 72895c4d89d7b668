"""Distributions of noise that a query adds to its response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["GaussianNoise", "LaplaceNoise", "NoNoise", "Noise"]


class Noise(Protocol):
    """A distribution of additive noise."""

    @property
    def mean(self) -> float:
        """Mean of the noise."""
        ...

    @property
    def mean_absolute(self) -> float:
        """Expected absolute noise."""
        ...

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        ...

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, without an atom."""
        ...

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x."""
        ...

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent values, shape (size,)."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """No noise at all: an atom at zero.

    See Also
    --------
    NoiseDistribution : noise that a calibration found
    verify : audit a query with noise added

    Examples
    --------
    >>> NoNoise().mean_absolute, NoNoise().cdf([-1.0, 0.0]).tolist()
    (0.0, [0.0, 1.0])
    """

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def mean_absolute(self) -> float:
        """Zero."""
        return 0.0

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    def pdf(self, x: ArrayLike) -> Array:
        """Return zero everywhere: an atom has no density."""
        return np.zeros(np.shape(x))

    def cdf(self, x: ArrayLike) -> Array:
        """Return 1 from zero on."""
        return np.where(np.asarray(x, dtype=np.float64) >= 0.0, 1.0, 0.0)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return zeros."""
        return np.zeros(size)


@dataclass(frozen=True)
class GaussianNoise:
    """Centred normal noise.

    Parameters
    ----------
    scale : float
        Standard deviation, in the units of the response.

    Raises
    ------
    InvalidInputError
        If the scale is not a finite number above zero.

    See Also
    --------
    LaplaceNoise : Laplace noise
    calibrate : the least noise for a target
    verify : audit a query with noise added

    Examples
    --------
    >>> round(GaussianNoise(2.0).mean_absolute, 6)
    1.595769
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.positive_number(self.scale, "noise scale"))

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def mean_absolute(self) -> float:
        """Expected absolute noise, the scale times the root of 2 / pi."""
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def variance(self) -> float:
        """The scale squared."""
        return self.scale**2

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, any shape."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        return np.asarray(np.exp(-0.5 * z * z) / (self.scale * math.sqrt(2.0 * math.pi)))

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x."""
        from scipy.special import ndtr

        return np.asarray(ndtr(np.asarray(x, dtype=np.float64) / self.scale))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent values; for simulation only, see `edp_bayes.noise.release`."""
        return rng.normal(scale=self.scale, size=size)


@dataclass(frozen=True)
class LaplaceNoise:
    """Centred Laplace noise, the additive mechanism of classical differential privacy.

    Parameters
    ----------
    scale : float
        Scale b of the density exp(-abs(x) / b) / (2 b), in the units of the response.

    Raises
    ------
    InvalidInputError
        If the scale is not a finite number above zero.

    See Also
    --------
    GaussianNoise : normal noise
    LatticeNoise : noise that floating-point numbers cannot betray
    calibrate : the least noise for a target

    Examples
    --------
    >>> LaplaceNoise(2.0).variance
    8.0
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.positive_number(self.scale, "noise scale"))

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def mean_absolute(self) -> float:
        """The scale."""
        return self.scale

    @property
    def tail_scale(self) -> float:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> float:
        """Twice the scale squared."""
        return 2.0 * self.scale**2

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, any shape."""
        z = np.abs(np.asarray(x, dtype=np.float64)) / self.scale
        return np.asarray(np.exp(-z) / (2.0 * self.scale))

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x."""
        z = np.asarray(x, dtype=np.float64) / self.scale
        tail = 0.5 * np.exp(-np.abs(z))
        return np.asarray(np.where(z < 0.0, tail, 1.0 - tail))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent values; for simulation only, see `edp_bayes.noise.release`."""
        return rng.laplace(scale=self.scale, size=size)
