"""Report-noisy-max: which noisy answer is the largest, or how large it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.mechanisms import truths
from edp_bayes.mechanisms.base import DiscreteMechanism, Mechanism, answers, checked_pair, levels
from edp_bayes.mechanisms.noise import EXPONENTIAL, LAPLACE, REACH, log_cdf, log_pdf, noise, panels
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["NoisyMaxIndex", "NoisyMaxValue"]

Pair = tuple[tuple[float, ...], tuple[float, ...]]

NOISES = (LAPLACE, EXPONENTIAL)
NO_ATOMS = np.empty(0)


@dataclass(frozen=True)
class _NoisyMax(Mechanism):
    """Noise of scale 2 / budget on every answer, then the maximum."""

    budget: float = 1.0
    noise: str = LAPLACE
    pair: Pair = ((1.0, 1.0, 1.0, 1.0), (2.0, 0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        validate.choice(self.noise, NOISES, "noise")
        checked_pair(self.pair)

    @property
    def scale(self) -> float:
        """Scale of the noise on every answer."""
        return 2.0 / self.budget

    def _noisy(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        true = answers(database)
        return np.asarray(true + self.scale * noise(self.noise, (size, true.size), rng))

    def _log_parts(self, database: Any, t: Array) -> Array:
        """Return the log density that answer i is the largest and equals t, (answer, point)."""
        u = (t - answers(database)[:, None]) / self.scale
        below = log_cdf(self.noise, u)
        others = np.array([np.delete(below, i, axis=0).sum(axis=0) for i in range(len(u))])
        return np.asarray(log_pdf(self.noise, u) - np.log(self.scale) + others)

    def _edges(self, *databases: Any) -> Array:
        """Return knots of the densities of the maximum, with ends beyond which nothing matters."""
        true = [answers(database) for database in databases]
        knots = np.unique(np.concatenate(true))
        if self.noise == EXPONENTIAL:
            knots = knots[knots >= min(vector.max() for vector in true)]
            return np.append(knots, knots[-1] + REACH * self.scale)
        reach = REACH * self.scale
        return np.concatenate([[knots[0] - reach], knots, [knots[-1] + reach]])


@dataclass(frozen=True)
class NoisyMaxIndex(DiscreteMechanism, _NoisyMax):
    """Report which noisy answer is the largest.

    Parameters
    ----------
    budget : float
        The mechanism is budget-private for answers that change by at most one each.
    noise : {"laplace", "exponential"}
        Distribution of the noise, of scale 2 / budget.
    pair : tuple of tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero, the noise is unknown or the pair is not of two vectors of
        one length.

    See Also
    --------
    NoisyMaxValue : the largest answer itself, a mistake
    ExponentialMechanism : a choice by utility

    References
    ----------
    Dwork and Roth (2014), The algorithmic foundations of differential privacy, Claim 3.9;
    Ding et al. (2018), Detecting violations of differential privacy.

    Examples
    --------
    >>> round(NoisyMaxIndex(1.0).distribution((1.0, 1.0))[0], 12)
    0.5
    """

    adjacency: ClassVar[str] = "substitution"

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, with the distribution of the noise."""
        return f"noisy max, argmax, {self.noise}"

    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability that each answer is the largest, by its position."""
        nodes, weights = truths.quadrature(panels(self._edges(database), self.scale))
        parts = self._log_parts(database, nodes)
        return {i: truths.log_integral(part, weights) for i, part in enumerate(parts)}

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.argmax(self._noisy(database, size, rng), axis=1).astype(np.int64)


@dataclass(frozen=True)
class NoisyMaxValue(_NoisyMax):
    """Report the largest noisy answer itself, a mistake: the noise covers one answer only.

    Parameters
    ----------
    budget : float
        What the mechanism claims.
    noise : {"laplace", "exponential"}
        Distribution of the noise, of scale 2 / budget. With exponential noise the support tells the
        largest true answer, so epsilon is infinite where that differs.
    pair : tuple of tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero, the noise is unknown or the pair is not of two vectors of
        one length.

    See Also
    --------
    NoisyMaxIndex : which answer is largest
    suite : every reference mechanism

    References
    ----------
    Ding et al. (2018), Detecting violations of differential privacy.

    Examples
    --------
    >>> round(NoisyMaxValue(1.0).epsilon(), 9), NoisyMaxValue(1.0, noise="exponential").epsilon()
    (1.5, inf)
    """

    kind: ClassVar[str] = "continuous"
    adjacency: ClassVar[str] = "add-remove"

    pair: Pair = ((1.0, 1.0, 1.0), (2.0, 2.0, 2.0))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, with the distribution of the noise."""
        return f"noisy max, maximum, {self.noise}"

    def epsilon(self) -> float:
        """Return the largest absolute log ratio, tails included.

        With exponential noise the densities rise from the largest true answer m like a power of
        t - m, whose exponent counts the answers equal to m: epsilon is infinite if either differs.
        """
        first, second = (answers(database) for database in self._inputs)
        starts = {(vector.max(), int(np.sum(vector == vector.max()))) for vector in (first, second)}
        if self.noise == EXPONENTIAL and len(starts) > 1:
            return math.inf
        return truths.density_epsilon([self._stratum()], 0.0)

    def delta(self, *, epsilon: float) -> float:
        """Return the larger hockey-stick integral, by quadrature."""
        return truths.mixed_delta(NO_ATOMS, NO_ATOMS, [self._stratum()], levels(epsilon))

    def local_epsilon(self, tau: float) -> float:
        """Return the largest absolute log ratio where the larger density is at least tau."""
        return truths.density_epsilon([self._stratum()], validate.probability(tau, "tau"))

    def _stratum(self) -> truths.Stratum:
        first, second = self._inputs
        return truths.Stratum(
            self._log_density(first),
            self._log_density(second),
            panels(self._edges(first, second), self.scale),
        )

    def _log_density(self, database: Any) -> Callable[[Array], Array]:
        def log_density(t: Array) -> Array:
            return np.asarray(np.logaddexp.reduce(self._log_parts(database, t), axis=0))

        return log_density

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(self._noisy(database, size, rng).max(axis=1))
