"""Mechanisms that add continuous noise to one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mechanisms.base import Mechanism, levels, two_inputs
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["Gaussian", "Laplace", "RestrictedLaplace"]


@dataclass(frozen=True)
class _Additive(Mechanism):
    """Noise of a known scale on one true answer."""

    kind: ClassVar[str] = "continuous"
    adjacency: ClassVar[str] = "add-remove"

    scale: float = 1.0
    pair: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.positive_number(self.scale, "scale"))
        for database in two_inputs(self.pair):
            self._answer(database)

    def _answer(self, database: Any) -> float:
        return float(validate.finite_array(database, "the database", ndim=0))

    @property
    def _shift(self) -> float:
        """Return how far the answers of the pair lie apart, in scales."""
        return abs(self.pair[1] - self.pair[0]) / self.scale


@dataclass(frozen=True)
class Laplace(_Additive):
    """The Laplace mechanism on one count.

    Parameters
    ----------
    scale : float
        Scale b of the noise exp(-abs(x) / b) / (2 b).
    pair : tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the scale is not above zero or the pair is not of two answers.

    See Also
    --------
    Gaussian : normal noise on a count
    Geometric : whole-numbered noise
    RestrictedLaplace : no negative outputs
    edp_bayes.noise.LaplaceNoise : Laplace noise

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity in private data
    analysis.

    Examples
    --------
    >>> mechanism = Laplace(2.0)
    >>> mechanism.epsilon(), round(mechanism.delta(epsilon=0.0), 6)
    (0.5, 0.221199)
    """

    name: ClassVar[str] = "Laplace"

    def epsilon(self) -> float:
        """Return the shift over the scale."""
        return self._shift

    def delta(self, *, epsilon: float) -> float:
        """Return (1 - exp((epsilon - shift / scale) / 2))_+."""
        return max(0.0, -math.expm1(0.5 * (levels(epsilon) - self._shift)))

    def local_epsilon(self, tau: float) -> float:
        """Return the shift over the scale, which the mode already attains."""
        validate.probability(tau, "tau")
        return self._shift

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        return rng.laplace(self._answer(database), self.scale, size)


@dataclass(frozen=True)
class Gaussian(_Additive):
    """The Gaussian mechanism on one count: no finite epsilon, a known delta for each.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise.
    pair : tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the scale is not above zero or the pair is not of two answers.

    See Also
    --------
    Laplace : Laplace noise on a count
    edp_bayes.noise.GaussianNoise : normal noise
    edp_bayes.audit_mechanism : a mechanism on one pair of databases

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> mechanism = Gaussian(1.0)
    >>> mechanism.epsilon(), round(mechanism.delta(epsilon=1.0), 6)
    (inf, 0.126937)
    """

    name: ClassVar[str] = "Gaussian"

    def epsilon(self) -> float:
        """Return infinity: the log ratio grows without bound in the tails."""
        return math.inf if self._shift > 0.0 else 0.0

    def delta(self, *, epsilon: float) -> float:
        """Return Phi(s / 2 - epsilon / s) - exp(epsilon) Phi(-s / 2 - epsilon / s)."""
        from edp_bayes.divergence.shifts import gaussian_shift

        return float(gaussian_shift(self._shift, levels(epsilon)))

    def local_epsilon(self, tau: float) -> float:
        """Return s^2 / 2 + s sqrt(2 log(1 / tau)), the log ratio at the edge of the set."""
        s = self._shift
        return 0.5 * s * s + s * math.sqrt(-2.0 * math.log(validate.probability(tau, "tau")))

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        return rng.normal(self._answer(database), self.scale, size)


@dataclass(frozen=True)
class RestrictedLaplace(_Additive):
    """Laplace noise on one answer, restricted to outputs that are not negative.

    The density is exp(-abs(t - x) / b) / (b (2 - exp(-x / b))) on [0, inf): restriction costs
    privacy, since the normaliser tells answers apart.

    Parameters
    ----------
    scale : float
        Scale b of the noise before it is restricted.
    pair : tuple of float
        The true answers of the neighbouring inputs, not negative.

    Raises
    ------
    InvalidInputError
        If the scale is not above zero or the pair is not of two answers.

    See Also
    --------
    Laplace : Laplace noise on a count
    TruncatedGeometric : clamped to a range

    References
    ----------
    Askin, Kutta and Dette (2022), Statistical quantification of differential privacy: a local
    approach.

    Examples
    --------
    >>> round(RestrictedLaplace(1.0).epsilon(), 6)
    1.133201
    """

    name: ClassVar[str] = "restricted Laplace"

    pair: tuple[float, float] = (1.0, 2.0)

    def epsilon(self) -> float:
        """Return s + log((2 - exp(-b)) / (2 - exp(-a))) for answers a < b, in scales."""
        low, high = self._ordered
        return high - low + self._tilt

    def delta(self, *, epsilon: float) -> float:
        """Return the larger hockey-stick integral, in closed form."""
        level, (low, high) = levels(epsilon), self._ordered
        if level >= self.epsilon():
            return 0.0
        cut = 0.5 * (low + high + self._tilt - level)
        forward = self._below(low, cut) - math.exp(level) * self._below(high, cut)
        cut = min(0.5 * (low + high + self._tilt + level), high)
        backward = self._above(high, cut) - math.exp(level) * self._above(low, cut)
        return max(0.0, forward, backward)

    def local_epsilon(self, tau: float) -> float:
        """Return the true epsilon, which the larger mode already attains."""
        validate.probability(tau, "tau")
        return self.epsilon()

    def _answer(self, database: Any) -> float:
        answer = super()._answer(database)
        if answer < 0:
            raise InvalidInputError(f"the answer must not be negative, found {answer}")
        return answer

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        mode = self._answer(database) / self.scale
        inside = -math.expm1(-mode)
        uniform = rng.random(size) * (1.0 + inside)
        # The left branch is cut off at zero; the right one is a whole exponential.
        left = mode + np.log1p(-np.minimum(uniform, inside))
        right = mode - np.log1p(-np.clip(uniform - inside, 0.0, None))
        return np.maximum(np.where(uniform < inside, left, right), 0.0) * self.scale

    @property
    def _ordered(self) -> tuple[float, float]:
        low, high = sorted(answer / self.scale for answer in self.pair)
        return low, high

    @property
    def _tilt(self) -> float:
        low, high = self._ordered
        return math.log((1.0 - math.expm1(-high)) / (1.0 - math.expm1(-low)))

    @staticmethod
    def _below(mode: float, t: float) -> float:
        """Return the probability of [0, t] for a mode, all in scales."""
        left = math.exp(-max(mode - t, 0.0)) - math.exp(-mode)
        return (left - math.expm1(-max(t - mode, 0.0))) / (1.0 - math.expm1(-mode))

    @staticmethod
    def _above(mode: float, t: float) -> float:
        """Return the probability of [t, inf) for a mode, all in scales."""
        left = -math.expm1(-max(mode - t, 0.0))
        return (left + math.exp(-max(t - mode, 0.0))) / (1.0 - math.expm1(-mode))
