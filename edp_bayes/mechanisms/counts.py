"""Mechanisms that release a count as a count: two-sided geometric noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.mechanisms.base import DiscreteMechanism, Mechanism, levels, two_inputs
from edp_bayes.utils import validate

__all__ = ["Geometric", "TruncatedGeometric"]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Geometric(Mechanism):
    """Two-sided geometric noise on a count: P(k) = (1 - a) / (1 + a) a^abs(k - x).

    Parameters
    ----------
    budget : float
        The mechanism is budget-private for neighbouring counts: a = exp(-budget).
    pair : tuple of int
        The true counts of the neighbouring inputs.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the budget is not above zero or the pair is not of two counts.

    See Also
    --------
    TruncatedGeometric : clamped to a range
    Laplace : Laplace noise on a count

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing privacy mechanisms.

    Examples
    --------
    >>> mechanism = Geometric(0.4)
    >>> mechanism.epsilon(), round(mechanism.delta(epsilon=0.0), 6)
    (0.4, 0.197375)
    """

    name: ClassVar[str] = "geometric"
    kind: ClassVar[str] = "discrete"
    adjacency: ClassVar[str] = "add-remove"

    budget: float = 0.4
    pair: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        for database in two_inputs(self.pair):
            _count(database)

    def epsilon(self) -> float:
        """Return the budget times the difference of the counts."""
        return self.budget * self._shift

    def delta(self, *, epsilon: float) -> float:
        """Return the hockey-stick sum: the lower tail in closed form, then count by count."""
        level, a, shift = levels(epsilon), math.exp(-self.budget), self._shift
        total = max(0.0, -math.expm1(level - shift * self.budget)) / (1.0 + a)
        top = math.tanh(0.5 * self.budget)
        for k in range(1, shift):
            total += max(0.0, top * (a**k - math.exp(level) * a ** (shift - k)))
        return total

    def local_epsilon(self, tau: float) -> float:
        """Return the true epsilon if the mode has probability tau or more, 0 otherwise."""
        likely = math.tanh(0.5 * self.budget) >= validate.probability(tau, "tau")
        return self.epsilon() if likely else 0.0

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Counts:
        return _count(database) + _noise(self.budget, size, rng)

    @property
    def _shift(self) -> int:
        return abs(self.pair[1] - self.pair[0])


@dataclass(frozen=True)
class TruncatedGeometric(DiscreteMechanism):
    """Two-sided geometric noise on a count between 0 and `largest`, clamped to that range.

    Parameters
    ----------
    budget : float
        As for `Geometric`.
    largest : int
        Largest count, at least 1.
    pair : tuple of int
        The true counts of the neighbouring inputs.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the budget or the largest count is not above zero, or the pair is not of two counts up to
        the largest.

    See Also
    --------
    Geometric : whole-numbered noise
    RestrictedLaplace : no negative outputs

    Examples
    --------
    >>> mechanism = TruncatedGeometric(0.4, 5)
    >>> round(sum(mechanism.distribution(2).values()), 12), round(mechanism.epsilon(), 12)
    (1.0, 0.4)
    """

    name: ClassVar[str] = "truncated geometric"
    adjacency: ClassVar[str] = "add-remove"

    budget: float = 0.4
    largest: int = 5
    pair: tuple[int, int] = (2, 3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        object.__setattr__(self, "largest", validate.positive_integer(self.largest, "largest"))
        for database in two_inputs(self.pair):
            self._inside(database)

    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability of every count from 0 to `largest`."""
        count = self._inside(database)
        mode = math.log(math.tanh(0.5 * self.budget))
        end = -math.log1p(math.exp(-self.budget))
        return {
            k: (end if k in (0, self.largest) else mode) - self.budget * abs(k - count)
            for k in range(self.largest + 1)
        }

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Counts:
        noisy = self._inside(database) + _noise(self.budget, size, rng)
        return np.clip(noisy, 0, self.largest)

    def _inside(self, database: Any) -> int:
        count = _count(database)
        if not 0 <= count <= self.largest:
            raise InvalidInputError(f"the count must lie in 0 to {self.largest}, found {count}")
        return count


def _count(database: Any) -> int:
    if isinstance(database, bool) or not isinstance(database, int | np.integer):
        raise InputTypeError(f"the database must be a count (an integer), found {database!r}")
    return int(database)


def _noise(budget: float, size: int, rng: np.random.Generator) -> Counts:
    """Return the difference of two geometric values, which is two-sided geometric."""
    stop = -math.expm1(-budget)
    return rng.geometric(stop, size) - rng.geometric(stop, size)
