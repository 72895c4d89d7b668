"""Mechanisms that release several noisy numbers: histograms and prefix sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edp_bayes.mechanisms.base import Mechanism, answers, checked_pair, levels
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["NoisyHistogram", "PrefixSum"]


@dataclass(frozen=True)
class _NoisyCounts(Mechanism):
    """Laplace noise on every count, then a map that can be undone."""

    kind: ClassVar[str] = "continuous"
    adjacency: ClassVar[str] = "add-remove"

    budget: float = 1.0
    pair: tuple[tuple[float, ...], tuple[float, ...]] = ((1.0, 1.0, 1.0), (2.0, 1.0, 1.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        checked_pair(self.pair)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on every count."""
        return 1.0 / self.budget

    def epsilon(self) -> float:
        """Return the sum of the differences of the counts, over the scale."""
        return float(self._shifts.sum())

    def delta(self, *, epsilon: float) -> float | None:
        """Return Laplace's delta where the pair differs in one count, None for several."""
        level = levels(epsilon)
        if np.count_nonzero(self._shifts) > 1:
            return None
        return max(0.0, -math.expm1(0.5 * (level - self.epsilon())))

    def local_epsilon(self, tau: float) -> float:
        """Return the true epsilon, which the mode already attains."""
        validate.probability(tau, "tau")
        return self.epsilon()

    @property
    def _shifts(self) -> Array:
        first, second = checked_pair(self.pair)
        return np.abs(first - second) / self.scale

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        counts = answers(database)
        return counts + rng.laplace(scale=self.scale, size=(size, counts.size))


@dataclass(frozen=True)
class NoisyHistogram(_NoisyCounts):
    """A histogram with Laplace noise on every count, of the right scale or the wrong one.

    Parameters
    ----------
    budget : float
        What the mechanism claims: budget-private for histograms that differ by one record.
    pair : tuple of tuple of float
        The true counts of the neighbouring inputs.
    right_scale : bool
        Noise of scale 1 / budget; otherwise of scale budget, a mistake that was made in earnest
        and gives a true epsilon of 1 / budget.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero or the pair is not of two vectors of one length.

    See Also
    --------
    PrefixSum : running totals of noisy counts
    Laplace : Laplace noise on a count

    References
    ----------
    Ding, Wang, Wang, Zhang and Kifer (2018), Detecting violations of differential privacy.

    Examples
    --------
    >>> NoisyHistogram(0.5).epsilon(), NoisyHistogram(0.5, right_scale=False).epsilon()
    (0.5, 2.0)
    """

    right_scale: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, which tells the right scale from the wrong one."""
        return "noisy histogram" + ("" if self.right_scale else ", wrong scale")

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on every count."""
        return 1.0 / self.budget if self.right_scale else self.budget


@dataclass(frozen=True)
class PrefixSum(_NoisyCounts):
    """Running totals of noisy counts.

    The totals can be turned back into the noisy counts, so their privacy is that of the
    histogram; only a view of several totals at once shows it.

    Parameters
    ----------
    budget : float
        The mechanism is budget-private for counts that differ by one record.
    pair : tuple of tuple of float
        The true counts of the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget is not above zero or the pair is not of two vectors of one length.

    See Also
    --------
    NoisyHistogram : noise on every count
    Laplace : Laplace noise on a count

    References
    ----------
    Wang, Ding, Kifer and Zhang (2020), CheckDP: an automated and
    integrated approach for proving differential privacy or finding precise counterexamples.

    Examples
    --------
    >>> PrefixSum(0.5).epsilon()
    0.5
    """

    name: ClassVar[str] = "prefix sum"

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Array:
        return np.cumsum(super()._sample(database, size, rng), axis=1)
