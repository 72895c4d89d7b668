"""Sparse vector mechanisms that also release a number for the answer found above."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edp_bayes.mechanisms import truths
from edp_bayes.mechanisms.base import Mechanism, answers, checked_pair, levels
from edp_bayes.mechanisms.noise import LAPLACE, REACH, log_pdf, panels
from edp_bayes.mechanisms.sparse_vector import ThresholdGrid, answer_chances
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["NumericalSparseVector", "SparseVectorWithAnswers"]


@dataclass(frozen=True)
class _FirstAbove(Mechanism):
    """Find the first answer above a noisy threshold, release a number for it and stop.

    An outcome is a row with that number in its column and 0.0 in all others: an atom where no
    answer was above, otherwise a density on one of the axes.
    """

    kind: ClassVar[str] = "mixed"
    adjacency: ClassVar[str] = "substitution"

    budget: float = 1.0
    threshold: float = 0.0
    pair: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0, 0.0, 1.0), (1.0, 1.0, 0.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        validate.number(self.threshold, "threshold")
        checked_pair(self.pair)

    @property
    @abstractmethod
    def scales(self) -> tuple[float, float, float]:
        """Scales of the noise on the threshold, on the answers and on the number released."""

    def epsilon(self) -> float:
        """Return the largest absolute log ratio of the atom and of all densities."""
        return self._largest(0.0)

    def delta(self, *, epsilon: float) -> float:
        """Return the larger hockey-stick integral, by quadrature."""
        p, q = np.exp(self._log_atoms())
        return truths.mixed_delta(p, q, self._strata(), levels(epsilon))

    def local_epsilon(self, tau: float) -> float:
        """Return the largest log ratio; tau is relative to the largest of all densities."""
        return self._largest(validate.probability(tau, "tau"))

    def atom(self, database: Any) -> float:
        """Return the probability that no answer is above."""
        return math.exp(self._log_atom(database))

    def _log_atom(self, database: Any) -> float:
        spread, jitter, _ = self.scales
        grid = ThresholdGrid.of(answers(database) - self.threshold, spread, jitter)
        return grid.log_mean(grid.log_below.sum(axis=0))

    def log_density(self, database: Any, index: int, value: Array) -> Array:
        """Return the log density of being first above at an index with a number released."""
        return self._at(database, index)(value)

    def _largest(self, tau: float) -> float:
        return max(
            truths.discrete_epsilon(*self._log_atoms(), tau),
            truths.density_epsilon(self._strata(), tau),
        )

    def _log_atoms(self) -> tuple[Array, Array]:
        first, second = self._inputs
        return np.array([self._log_atom(first)]), np.array([self._log_atom(second)])

    def _strata(self) -> list[truths.Stratum]:
        first, second = self._inputs
        scale = min(scale for scale in self.scales if scale > 0.0)
        reach = REACH * max(self.scales)
        knots = np.unique(np.concatenate([answers(first), answers(second), [self.threshold]]))
        edges = panels(np.concatenate([[knots[0] - reach], knots, [knots[-1] + reach]]), scale)
        return [
            truths.Stratum(self._at(first, k), self._at(second, k), edges)
            for k in range(len(first))
        ]

    @abstractmethod
    def _at(self, database: Any, index: int) -> Callable[[Array], Array]:
        """Return that log density as a function of the number, prepared once."""

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        true = answers(database)
        spread, jitter, _ = self.scales
        bar = self.threshold + rng.laplace(scale=spread, size=(size, 1))
        noisy = true + rng.laplace(scale=jitter, size=(size, true.size))
        above = noisy >= bar
        first = above & (np.cumsum(above, axis=1) == 1)
        return np.where(first, self._numbers(true, noisy, rng), 0.0)

    @abstractmethod
    def _numbers(self, true: Array, noisy: Array, rng: np.random.Generator) -> Array:
        """Return the numbers to release, broadcast to the shape of the noisy answers."""


@dataclass(frozen=True)
class SparseVectorWithAnswers(_FirstAbove):
    """Variant 3 of the sparse vector technique: release the noisy answer that was compared.

    The answer reveals where the threshold lay, so that "below" is no longer covered by its
    noise: the true epsilon grows with the number of answers below.

    Parameters
    ----------
    budget : float
        What the mechanism claims, for answers that change by at most one each.
    threshold : float
        The public threshold.
    pair : tuple of tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero, the threshold is not finite or the pair is not of two
        vectors of one length.

    See Also
    --------
    SparseVector : which answers lie above a threshold
    NumericalSparseVector : the answer with fresh noise

    References
    ----------
    Lyu, Su and Li (2017), Understanding the sparse vector technique for differential privacy,
    Algorithm 3 (Roth's lecture notes of 2011) with a cutoff of one.

    Examples
    --------
    >>> SparseVectorWithAnswers(1.0).epsilon() > 1.0
    True
    """

    name: ClassVar[str] = "sparse vector 3"

    @property
    def scales(self) -> tuple[float, float, float]:
        """Scales of the noise: no fresh noise on the number released."""
        return 2.0 / self.budget, 2.0 / self.budget, 0.0

    def _at(self, database: Any, index: int) -> Callable[[Array], Array]:
        """Return the log density: the answer's noise times the chance of all before it.

        That chance is an integral over noisy thresholds up to the value: its tail is one
        exponential, the rest Gauss-Legendre up to the last knot below the value and from there.
        """
        spread, jitter, _ = self.scales
        true = answers(database)
        before = true[:index] - self.threshold

        def log_chance(bar: Array) -> Array:
            below = answer_chances(bar, before, jitter)[0].sum(axis=0)
            return log_pdf(LAPLACE, bar / spread) - math.log(spread) + below

        knots = np.unique(np.append(before, 0.0))
        edges = panels(np.append(knots, knots[-1] + REACH * spread), min(spread, jitter))
        whole = np.append(0.0, np.cumsum(_integral(log_chance, edges[:-1], edges[1:])))
        rate = 1.0 / spread + index / jitter

        def log_density(value: Array) -> Array:
            top = value - self.threshold
            tail = np.exp(log_chance(np.minimum(top, edges[0]))) / rate
            panel = np.clip(np.searchsorted(edges, top) - 1, 0, edges.size - 2)
            # Below the first knot the panel is empty, beyond the last edge it is whole.
            end = np.clip(top, edges[0], edges[-1])
            total = tail + whole[panel] + _integral(log_chance, edges[panel], end)
            noise = log_pdf(LAPLACE, (value - true[index]) / jitter) - math.log(jitter)
            return np.asarray(noise + np.log(total))

        return log_density

    def _numbers(self, true: Array, noisy: Array, rng: np.random.Generator) -> Array:
        return noisy


@dataclass(frozen=True)
class NumericalSparseVector(_FirstAbove):
    """The numerical sparse vector technique: release the answer with fresh noise.

    Parameters
    ----------
    budget : float
        The mechanism is budget-private for answers that change by at most one each.
    threshold : float
        The public threshold.
    pair : tuple of tuple of float
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero, the threshold is not finite or the pair is not of two
        vectors of one length.

    See Also
    --------
    SparseVector : which answers lie above a threshold
    SparseVectorWithAnswers : the noisy answer that was compared, a mistake

    References
    ----------
    Dwork and Roth (2014), The algorithmic foundations of differential privacy, Algorithm 3
    (NumericSparse) with c = 1 and delta = 0: 8/9 of the budget finds the answer, 2/9 releases it.

    Examples
    --------
    >>> NumericalSparseVector(1.0).epsilon() < 1.0
    True
    """

    name: ClassVar[str] = "numerical sparse vector"

    @property
    def scales(self) -> tuple[float, float, float]:
        """Scales 2 / (8/9 budget), twice that, and 2 / (2/9 budget)."""
        spread = 2.25 / self.budget
        return spread, 2.0 * spread, 9.0 / self.budget

    def _at(self, database: Any, index: int) -> Callable[[Array], Array]:
        """Return the log probability of the index plus the log density of the fresh noise."""
        spread, jitter, fresh = self.scales
        true = answers(database)
        grid = ThresholdGrid.of(true - self.threshold, spread, jitter)
        found = grid.log_mean(grid.log_below[:index].sum(axis=0) + grid.log_above[index])
        unit = found - math.log(fresh)
        return lambda value: unit + log_pdf(LAPLACE, (value - true[index]) / fresh)

    def _numbers(self, true: Array, noisy: Array, rng: np.random.Generator) -> Array:
        return true + rng.laplace(scale=self.scales[2], size=noisy.shape)


def _integral(log_function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the integrals of exp(log_function) between many pairs of ends."""
    nodes, weights = truths.unit_nodes()
    half = 0.5 * (high - low)
    points = low[:, None] + half[:, None] * (1.0 + nodes)
    values = np.exp(log_function(points.ravel())).reshape(points.shape)
    return np.asarray(half * (values @ weights))
