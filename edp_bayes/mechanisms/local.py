"""Mechanisms that each person runs alone: randomized response and RAPPOR."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mechanisms import truths
from edp_bayes.mechanisms.base import DiscreteMechanism, Mechanism, levels, two_inputs
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = ["OneTimeRappor", "RandomizedResponse", "Rappor"]

Bits = NDArray[np.int64]


@dataclass(frozen=True)
class RandomizedResponse(DiscreteMechanism):
    """Answer truthfully with odds exp(budget) to one against each other answer.

    Parameters
    ----------
    budget : float
        The mechanism is budget-private.
    choices : int
        Number of possible answers, 0 to choices - 1.
    pair : tuple of int
        The true answers of the neighbouring inputs.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the budget is not above zero, there are fewer than two choices or the pair is not of two
        of them.

    See Also
    --------
    OneTimeRappor : the permanent response alone
    Rappor : two rounds of randomized response
    DiscreteMechanism : finitely many outcomes

    References
    ----------
    Warner (1965), Randomized response: a survey technique for eliminating evasive answer bias.

    Examples
    --------
    >>> mechanism = RandomizedResponse(math.log(3.0))
    >>> {answer: round(mass, 12) for answer, mass in mechanism.distribution(1).items()}
    {0: 0.25, 1: 0.75}
    """

    name: ClassVar[str] = "randomized response"
    adjacency: ClassVar[str] = "substitution"

    budget: float = 1.0
    choices: int = 2
    pair: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", validate.positive_number(self.budget, "budget"))
        if validate.positive_integer(self.choices, "choices") < 2:
            raise InvalidInputError(f"choices must be at least 2, found {self.choices}")
        for database in two_inputs(self.pair):
            self._answer(database)

    def log_distribution(self, database: Any) -> Mapping[Hashable, float]:
        """Return the log probability of every answer."""
        truth = self._answer(database)
        total = math.log1p((self.choices - 1) * math.exp(-self.budget))
        return {k: (0.0 if k == truth else -self.budget) - total for k in range(self.choices)}

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Bits:
        truth = self._answer(database)
        lies = (self.choices - 1) * math.exp(-self.budget)
        lying = rng.random(size) < lies / (1.0 + lies)
        return (truth + lying * rng.integers(1, self.choices, size)) % self.choices

    def _answer(self, database: Any) -> int:
        if database not in range(self.choices):
            raise InvalidInputError(
                f"the answer must be one of 0 to {self.choices - 1}, found {database!r}"
            )
        return int(database)


@dataclass(frozen=True)
class _BloomReport(Mechanism):
    """A report of the Bloom bits of one value, each bit randomised alone."""

    kind: ClassVar[str] = "discrete"
    adjacency: ClassVar[str] = "substitution"

    def epsilon(self) -> float:
        """Return the sum of the log ratios of all bits in which the pair differs.

        As many bits are set by the first value only as by the second only; the worst report has
        the likeliest answer of the former and the opposite of the latter, or the reverse.
        """
        unset, set_ = np.log(self._chances)
        of_zero, of_one = set_ - unset
        first, second = (self._bloom(database) for database in self._inputs)
        return float(np.sum(first > second) * abs(of_one - of_zero))

    def delta(self, *, epsilon: float) -> float:
        """Return the hockey-stick sum over the numbers of reported bits that differ."""
        log_p, log_q, log_ways = self._differing()
        p, q = np.exp(log_p + log_ways), np.exp(log_q + log_ways)
        return truths.discrete_delta(p, q, levels(epsilon))

    def local_epsilon(self, tau: float) -> float:
        """Return the largest log ratio over reports of probability tau or more."""
        log_p, log_q, _ = self._differing()
        first, second = (self._bloom(database) for database in self._inputs)
        # Bits in which the pair agrees do not move the ratio: take their likeliest report.
        common = float(np.log(self._chances.max(axis=1))[first[first == second]].sum())
        level = validate.probability(tau, "tau")
        return truths.discrete_epsilon(common + log_p, common + log_q, level)

    def _differing(self) -> tuple[Array, Array, Array]:
        """Return the log probability of one report under both inputs, and how many are like it.

        Bits in which the inputs differ matter by how many of each kind are reported as one.
        """
        unset, set_ = np.log(self._chances)
        first, second = (self._bloom(database) for database in self._inputs)
        m, n = int(np.sum(first > second)), int(np.sum(first < second))
        k, j = np.arange(m + 1)[:, None], np.arange(n + 1)
        return (
            _log_run(set_, k, m) + _log_run(unset, j, n),
            _log_run(unset, k, m) + _log_run(set_, j, n),
            _log_binomials(m)[:, None] + _log_binomials(n),
        )

    def _bloom(self, database: Any) -> Bits:
        """Return the Bloom filter of a value: the bits that its hashes put first."""
        return _bloom(database, self._sizes[0], self._sizes[1])

    @property
    @abstractmethod
    def _chances(self) -> Array:
        """Return the probability of each report (column) for a bit that is zero and one (row)."""

    @property
    def _sizes(self) -> tuple[int, int]:
        """Return the numbers of bits and hashes; both are fields of every subclass."""
        return self.bits, self.hashes  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Rappor(_BloomReport):
    """One report of RAPPOR: a permanent and then an instantaneous randomized response per bit.

    Every sample is the report of a new client, whose permanent response is drawn afresh.

    Parameters
    ----------
    bits, hashes : int
        Size of the Bloom filter and number of bits that a value sets.
    permanent : float
        f: a bit is replaced by a fair coin with this probability, once and for all.
    report_unset, report_set : float
        p and q: the probability of reporting one where the permanent bit is zero and one.
    pair : tuple
        Two values, of any type with a stable `repr`.

    Raises
    ------
    InvalidInputError, InputTypeError
        If there are more hashes than bits, a probability is not between 0 and 1 or the pair is not
        of two values.

    See Also
    --------
    OneTimeRappor : the permanent response alone
    RandomizedResponse : a truthful answer with given odds

    References
    ----------
    Erlingsson, Pihur and Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving
    ordinal response.

    Examples
    --------
    >>> round(Rappor().epsilon(), 6)
    1.021651
    """

    name: ClassVar[str] = "RAPPOR"

    bits: int = 4
    hashes: int = 1
    permanent: float = 0.5
    report_unset: float = 0.25
    report_set: float = 0.75
    pair: tuple[Hashable, Hashable] = ("yes", "no")

    def __post_init__(self) -> None:
        _check_sizes(self.bits, self.hashes)
        two_inputs(self.pair)
        for field in ("permanent", "report_unset", "report_set"):
            validate.probability(getattr(self, field), field)

    @property
    def _chances(self) -> Array:
        p, q = self.report_unset, self.report_set
        return _after_coin(self.permanent, np.array([[1.0 - p, p], [1.0 - q, q]]))

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Bits:
        truth = np.broadcast_to(self._bloom(database), (size, self.bits))
        permanent = _remember(truth, self.permanent, rng)
        rate = np.where(permanent == 1, self.report_set, self.report_unset)
        return (rng.random(truth.shape) < rate).astype(np.int64)


@dataclass(frozen=True)
class OneTimeRappor(_BloomReport):
    """The permanent randomized response of RAPPOR, reported as it is.

    Parameters
    ----------
    bits, hashes, permanent, pair
        As for `Rappor`.

    Raises
    ------
    InvalidInputError, InputTypeError
        If there are more hashes than bits, a probability is not between 0 and 1 or the pair is not
        of two values.

    See Also
    --------
    Rappor : two rounds of randomized response
    RandomizedResponse : a truthful answer with given odds

    Examples
    --------
    >>> mechanism = OneTimeRappor()
    >>> round(mechanism.epsilon(), 6) == round(2 * math.log(3.0), 6)
    True
    """

    name: ClassVar[str] = "one-time RAPPOR"

    bits: int = 4
    hashes: int = 1
    permanent: float = 0.5
    pair: tuple[Hashable, Hashable] = ("yes", "no")

    def __post_init__(self) -> None:
        _check_sizes(self.bits, self.hashes)
        two_inputs(self.pair)
        validate.probability(self.permanent, "permanent")

    @property
    def _chances(self) -> Array:
        return _after_coin(self.permanent, np.eye(2))

    def _sample(self, database: Any, size: int, rng: np.random.Generator) -> Bits:
        truth = np.broadcast_to(self._bloom(database), (size, self.bits))
        return _remember(truth, self.permanent, rng)


def _remember(truth: Bits, permanent: float, rng: np.random.Generator) -> Bits:
    """Return bits of which each is replaced by a fair coin with a probability."""
    uniform = rng.random(truth.shape)
    return np.where(uniform < permanent, uniform < 0.5 * permanent, truth).astype(np.int64)


def _after_coin(permanent: float, reports: Array) -> Array:
    """Return the chances of each report (column) if the bit (row) may become a fair coin."""
    return np.asarray((1.0 - permanent) * reports + 0.5 * permanent * reports.sum(axis=0))


def _log_run(log_chances: Array, ones: Bits, count: int) -> Array:
    """Return the log probability of one sequence with so many ones among `count` bits."""
    return np.asarray(ones * log_chances[1] + (count - ones) * log_chances[0])


def _log_binomials(count: int) -> Array:
    """Return the log number of ways to choose 0 to `count` bits."""
    return np.array([math.log(math.comb(count, k)) for k in range(count + 1)])


def _bloom(value: Any, bits: int, hashes: int) -> Bits:
    order = sorted(range(bits), key=lambda bit: blake2b(f"{value!r} {bit}".encode()).digest())
    return np.isin(np.arange(bits), order[:hashes]).astype(np.int64)


def _check_sizes(bits: int, hashes: int) -> None:
    if validate.positive_integer(hashes, "hashes") > validate.positive_integer(bits, "bits"):
        raise InvalidInputError(f"hashes must not exceed {bits} bits, found {hashes}")
