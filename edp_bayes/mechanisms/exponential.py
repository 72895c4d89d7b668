"""The exponential mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.choice import choose
from edp_bayes.mechanisms.base import DiscreteMechanism, answers, checked_pair
from edp_bayes.utils import validate

__all__ = ["ExponentialMechanism"]


@dataclass(frozen=True)
class ExponentialMechanism(DiscreteMechanism):
    """Choose candidate i with probability proportional to exp(budget u_i / (2 sensitivity)).

    Parameters
    ----------
    budget : float
        The mechanism is budget-private for utilities that change by `sensitivity` each.
    sensitivity : float
        Largest change of a utility between neighbours.
    pair : tuple of tuple of float
        The utilities of all candidates for the neighbouring inputs.

    Raises
    ------
    InvalidInputError
        If the budget or the sensitivity is not above zero, or the pair is not of two vectors of one
        length.

    See Also
    --------
    NoisyMaxIndex : which answer is largest
    DiscreteMechanism : finitely many outcomes

    References
    ----------
    McSherry and Talwar (2007), Mechanism design via differential privacy.

    Examples
    --------
    >>> distribution = ExponentialMechanism(1.0).distribution((0.0, 2.0))
    >>> round(distribution[1] / distribution[0], 6)
    2.718282
    """

    name: ClassVar[str] = "exponential mechanism"
    adjacency: ClassVar[str] = "substitution"

    budget: float = 1.0
    sensitivity: float = 1.0
    pair: tuple[tuple[float, ...], tuple[float, ...]] = (
        (1.0, 1.0, 1.0, 1.0),
        (2.0, 0.0, 0.0, 0.0),
    )

    def __post_init__(self) -> None:
        for field in ("budget", "sensitivity"):
            object.__setattr__(self, field, validate.positive_number(getattr(self, field), field))
        checked_pair(self.pair)

    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability of every candidate, by its position."""
        return dict(enumerate(self._log_probabilities(database).tolist()))

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return choose(np.exp(self._log_probabilities(database)), rng.random(size))

    def _log_probabilities(self, database: Any) -> NDArray[np.float64]:
        utility = 0.5 * self.budget / self.sensitivity * answers(database)
        below = utility - utility.max()
        return np.asarray(below - np.log(np.exp(below).sum()))
