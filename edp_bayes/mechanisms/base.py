"""What every reference mechanism offers: a sampler, neighbouring inputs and exact truths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mechanisms import truths
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["DiscreteMechanism", "Mechanism", "answers", "checked_pair", "levels", "two_inputs"]


@dataclass(frozen=True)
class Mechanism(ABC):
    """A randomised function of a database whose privacy is known.

    A mechanism is called as ``mechanism(database, size, rng)`` and returns `size` independent
    outcomes: shape (size,), or (size, column) where an outcome is a row. Databases are written
    as the true answers that the mechanism perturbs. In rows of the kind "mixed" the value 0.0
    stands for "no number was released here", and every other value is continuous.

    Its truths are those of one pair of neighbouring inputs, `pair`:

    - `epsilon()`, the supremum of abs(log p - log q) over all outcomes, which may be infinite;
    - `delta(epsilon)`, the larger of the two hockey-stick integrals;
    - `local_epsilon(tau)`, the supremum over outcomes with max(p, q) >= tau. For discrete
      outcomes and atoms tau is a probability, for densities it is relative to the maximum of the
      larger density. Over no outcome at all the supremum is 0.

    Subclasses are frozen dataclasses with the attributes below.

    Attributes
    ----------
    name : str
        Short name, one of a kind in `edp_bayes.mechanisms.suite`.
    kind : {"continuous", "discrete", "mixed"}
        Kind of outcomes.
    adjacency : {"substitution", "add-remove"}
        How the inputs of the pair differ: one record exchanged, or one more.
    pair : tuple
        The neighbouring inputs (x, x') for which the truths hold.

    See Also
    --------
    DiscreteMechanism : finitely many outcomes
    suite : every reference mechanism
    edp_bayes.audit_mechanism : a mechanism on one pair of databases

    Examples
    --------
    >>> from edp_bayes.mechanisms import Laplace
    >>> mechanism = Laplace()
    >>> isinstance(mechanism, Mechanism), mechanism(mechanism.pair[0], 3, 1).shape
    (True, (3,))
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    adjacency: ClassVar[str]

    def __call__(
        self, database: Any, size: int, rng: np.random.Generator | int | None = None
    ) -> NDArray[Any]:
        """Return independent outcomes.

        Parameters
        ----------
        database : object
            An input of the kind of `pair`.
        size : int
            Number of outcomes.
        rng : numpy.random.Generator or int, optional
            Source of randomness or its seed.

        Returns
        -------
        ndarray
            Shape (size,) or (size, column).

        Raises
        ------
        InvalidInputError, InputTypeError
            If the database or the size cannot be used.
        """
        count = validate.positive_integer(size, "size")
        return self._sample(database, count, validate.generator(rng, "rng"))

    @abstractmethod
    def epsilon(self) -> float:
        """Return the true epsilon of the pair, infinite where no epsilon holds."""

    @abstractmethod
    def delta(self, *, epsilon: float) -> float | None:
        """Return the true delta of the pair at epsilon, None where it is not known.

        Parameters
        ----------
        epsilon : float
            Finite and not negative.
        """

    @abstractmethod
    def local_epsilon(self, tau: float) -> float:
        """Return the true eps_{x,x'}(tau) of the pair.

        Parameters
        ----------
        tau : float
            Strictly between 0 and 1.
        """

    @abstractmethod
    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return `size` outcomes of a database that is yet to be checked."""

    @property
    def _inputs(self) -> tuple[Any, Any]:
        """Return the pair; every subclass has it as a field with its own default."""
        return cast("tuple[Any, Any]", self.pair)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class DiscreteMechanism(Mechanism):
    """A mechanism with finitely many outcomes, whose truths are exact sums.

    See Also
    --------
    Mechanism : what every reference mechanism offers
    RandomizedResponse : a truthful answer with given odds
    edp_bayes.audit_mechanism : a mechanism on one pair of databases

    Examples
    --------
    >>> from edp_bayes.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(1.0)
    >>> isinstance(mechanism, DiscreteMechanism), round(mechanism.epsilon(), 12)
    (True, 1.0)
    """

    kind: ClassVar[str] = "discrete"

    @abstractmethod
    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability of every outcome, finite where `distribution` underflows."""

    def distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the probability of every outcome; an outcome of several columns is a tuple."""
        return {outcome: math.exp(log) for outcome, log in self.log_distribution(database).items()}

    def epsilon(self) -> float:
        """Return the largest absolute log ratio over all outcomes of the pair."""
        return truths.discrete_epsilon(*self._log_masses(), 0.0)

    def delta(self, *, epsilon: float) -> float:
        """Return the larger hockey-stick sum of the pair."""
        p, q = np.exp(self._log_masses())
        return truths.discrete_delta(p, q, levels(epsilon))

    def local_epsilon(self, tau: float) -> float:
        """Return the largest absolute log ratio over outcomes of probability tau or more."""
        return truths.discrete_epsilon(*self._log_masses(), validate.probability(tau, "tau"))

    def _log_masses(self) -> tuple[Array, Array]:
        """Return the log probabilities of all outcomes under both inputs, in one order."""
        p, q = (self.log_distribution(database) for database in self._inputs)
        outcomes = list(dict.fromkeys([*p, *q]))
        return (
            np.array([p.get(outcome, -math.inf) for outcome in outcomes]),
            np.array([q.get(outcome, -math.inf) for outcome in outcomes]),
        )


def answers(database: ArrayLike, *, least: int = 1) -> Array:
    """Return a database as the vector of its true answers."""
    vector = validate.finite_array(database, "the database", ndim=1)
    if vector.size < least:
        raise InvalidInputError(
            f"the database must hold at least {least} answer(s), found {vector.size}"
        )
    return vector


def checked_pair(pair: Any) -> tuple[Array, Array]:
    """Return both inputs of a pair as vectors of the same length."""
    first, second = (answers(database) for database in two_inputs(pair))
    if first.size != second.size:
        raise InvalidInputError(
            "the inputs of a pair must hold as many answers as each other, "
            f"found {first.size} and {second.size}"
        )
    return first, second


def two_inputs(pair: Any) -> tuple[Any, Any]:
    """Return the two inputs of a pair."""
    try:
        first, second = pair
    except (TypeError, ValueError):
        raise InvalidInputError(f"pair must hold two neighbouring inputs, found {pair!r}") from None
    return first, second


def levels(epsilon: float) -> float:
    """Return epsilon as a number from 0 to 700, whose exponential is finite."""
    value = validate.number(epsilon, "epsilon")
    return float(validate.epsilon_grid(value)[0])
