"""Individuals whose contributions were not collected, and what is known of each instead.

Pooling and the distribution of an individual's contributions need a few sums over the databases in
which they contribute; only how their presence follows the response needs the contributions
themselves. So those who can hardly matter are known by these sums and by their largest
contribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.exact import ExactSum, sum_by, units
from edp_bayes.records.ownership import Ownership
from edp_bayes.tables.keys import POOLED
from edp_bayes.utils.arrays import Array, Index

__all__ = [
    "DEFAULT",
    "MOST_PAIRS",
    "NotCollected",
    "Remainder",
    "Standing",
    "origin_of",
    "pooled_individual",
    "reduced_pairs",
    "require_collected",
    "split_individuals",
    "units_of_terms",
]

# Pairs of a database and an individual up to which all are collected; beyond, the contributions of
# so many individuals.
MOST_PAIRS, DEFAULT = 50_000_000, 100_000
TERMS = ("c", "cc", "u", "uu", "uc")
WAY_OUT = (
    "collect all of them, such as by respond(query, collect=databases.n_individuals) "
    "(--collect 1000000000)"
)


@dataclass(frozen=True, eq=False)
class Remainder:
    """What is known of the individuals whose contributions were not collected.

    Sums are over the databases in which an individual's contribution is not zero.

    Attributes
    ----------
    individuals : ndarray of int
        Shape (r,): their positions among all, increasing.
    count : ndarray
        Shape (r,): number of these databases.
    contribution, contribution_square : ndarray
        Shape (r,): sums of c_ij and of its square.
    response, response_square, product : ndarray
        Shape (r,): sums of u_j = y_j - origin, of its square, and of u_j c_ij.
    lowest, highest : ndarray
        Shape (r,): ends of c_ij.
    origin : float
        A number near the mean of the responses.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import edp_bayes as edp
    >>> table = pd.DataFrame({
    ...     "week": np.repeat(np.arange(20), 3), "client": ["a", "b", "c"] * 20,
    ...     "kwh": np.random.default_rng(1).gamma(2.0, [9.0, 1.0, 0.1], (20, 3)).ravel(),
    ... })
    >>> databases = edp.Databases.from_table(table, database="week", individual="client")
    >>> responses = databases.respond(edp.queries.Sum("kwh"), collect=2)
    >>> responses.remainder.individuals, responses.remainder.count
    (array([2]), array([20.]))
    """

    individuals: Index
    count: Array
    contribution: Array
    contribution_square: Array
    response: Array
    response_square: Array
    product: Array
    lowest: Array
    highest: Array
    origin: float

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def size(self) -> int:
        """Number of individuals."""
        return int(self.individuals.size)

    @property
    def largest(self) -> Array:
        """Largest size of a contribution of each, shape (r,)."""
        return np.maximum(-self.lowest, self.highest)

    def rest(self, centre: Array) -> tuple[Array, Array, Array]:
        """Return sums of r_ij = y_j - c_ij - centre_i, of its square and of r_ij c_ij.

        Parameters
        ----------
        centre : ndarray
            Shape (r,).
        """
        e, k = centre - self.origin, self.count
        first = self.response - self.contribution
        square = self.response_square - 2.0 * self.product + self.contribution_square
        return (
            first - k * e,
            np.maximum(square - 2.0 * e * first + k * e**2, 0.0),
            self.product - self.contribution_square - e * self.contribution,
        )

    def moved(self, mean: float) -> Array:
        """Return the sums of (y_j - c_ij - mean)^2 - (y_j - mean)^2, shape (r,)."""
        about_mean = self.product - (mean - self.origin) * self.contribution
        return self.contribution_square - 2.0 * about_mean

    def parts(self) -> list[bytes]:
        """Return everything in bytes, for a fingerprint."""
        whole = [self.individuals.astype("<i8"), np.array([self.origin], dtype="<f8")]
        sums = (getattr(self, name) for name in SUMS)
        return [part.tobytes() for part in (*whole, *(part.astype("<f8") for part in sums))]


SUMS = (
    "count", "contribution", "contribution_square", "response", "response_square", "product",
    "lowest", "highest",
)  # fmt: skip


class NotCollected:
    """Stands in the place of a matrix of contributions some of whose columns were not collected.

    Whatever it is asked for it refuses, so that nobody is taken for one who contributes nothing.

    Parameters
    ----------
    collected : scipy.sparse array
        The matrix, with empty columns.
    count : int
        How many individuals were not collected.
    """

    def __init__(self, collected: Any, count: int) -> None:
        self.collected, self.count = collected, count

    def _refuse(self) -> InvalidInputError:
        return InvalidInputError(
            f"the contributions of {self.count:,} individuals were not collected, and this needs "
            f"them: {WAY_OUT}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling look for what is not there
            raise AttributeError(name)
        raise self._refuse()

    def __getitem__(self, place: Any) -> Any:
        raise self._refuse()


def require_collected(remainder: Remainder | None, what: str) -> None:
    """Refuse what needs the contributions of everybody.

    Raises
    ------
    InvalidInputError
        If some were not collected.
    """
    if remainder is not None:
        raise InvalidInputError(
            f"{what} needs the contributions of everybody, and those of {remainder.size:,} "
            f"individuals were not collected: {WAY_OUT}"
        )


def origin_of(response: Array) -> float:
    """Return a number near the mean of the responses that every engine reads alike."""
    return float(np.float32(response.mean()))


def units_of_terms(response: Array, largest: float, origin: float) -> dict[str, tuple[float, ...]]:
    """Return the units in which the sums over an individual's databases are exact.

    Parameters
    ----------
    response : ndarray
        Shape (n,).
    largest : float
        Largest size of a contribution.
    origin : float
        What is subtracted from responses.

    Raises
    ------
    InvalidInputError
        If squares are too large for float64.
    """
    u = float(np.abs(response - origin).max())
    with np.errstate(over="ignore"):
        sizes = [float(np.float64(a) * b) for a, b in ((largest, 1.0), (largest, largest))]
        sizes += [float(np.float64(u) * b) for b in (1.0, u, largest)]
    what = "sums of squares of answers and contributions, with values"
    return {
        name: units(response.size, size, 0.0, what) for name, size in zip(TERMS, sizes, strict=True)
    }


@dataclass(frozen=True)
class Standing:
    """Who stands above others: those whose contributions are collected.

    They are ordered by the number of databases times the square of the largest contribution; then
    by that; then by the sum of all. The first is about their part of the variance of the response,
    so that no more than a few can stand out by it.

    Attributes
    ----------
    least : tuple of float
        Of the last who is collected.
    """

    least: tuple[float, float, float]

    @classmethod
    def of(cls, count: Array, largest: Array, total: Array, collect: int) -> Standing:
        """Return where at most so many individuals stand above.

        Those who are alike in all three are all collected or none of them.

        Raises
        ------
        InvalidInputError
            If more individuals than are to be collected are the first.
        """
        score = cls.score(count, largest)
        order = np.lexsort([-total, -largest, -score])
        last, nobody = order[collect - 1], order[collect : collect + 1]
        keys = (score, largest, total)
        if nobody.size and all(key[last] == key[nobody[0]] for key in keys):
            alike = np.logical_and.reduce([key[order] == key[last] for key in keys])
            place = int(np.flatnonzero(alike)[0])
            if place == 0:
                raise InvalidInputError(
                    f"{int(alike.sum()):,} individuals are alike in presence, largest and total "
                    f"contribution and nobody stands above them: collect more than {collect:,}, or "
                    "all of them"
                )
            last = order[place - 1]
        return cls((float(score[last]), float(largest[last]), float(total[last])))

    @staticmethod
    def score(count: Any, largest: Any) -> Any:
        """Return the first of the three, of arrays or of expressions of an engine."""
        return count * (largest * largest)

    def above(self, largest: Any, total: Any, score: Any) -> Any:
        """Return who is collected, of arrays or of expressions of an engine."""
        first, second, third = self.least
        later = (largest > second) | ((largest == second) & (total >= third))
        return (score > first) | ((score == first) & later)


def reduced_pairs(
    owners: Ownership, response: Array, contribution: Array, collect: int
) -> tuple[NDArray[np.bool_], Remainder]:
    """Return which individuals' contributions are collected, and what is known of all others.

    Parameters
    ----------
    owners : Ownership
        The pairs.
    response, contribution : ndarray
        Shapes (n,) and (pair,).
    collect : int
        Whose contributions are collected at most, fewer than there are.

    Returns
    -------
    collected : ndarray of bool
        Shape (m,).
    remainder : Remainder
        Of all others.
    """
    person, people = owners.pair_individual, owners.individuals.size
    some = contribution != 0.0
    origin = origin_of(response)
    c = contribution[some]
    u = (response - origin)[owners.pair_database[some]]
    of = units_of_terms(response, float(np.abs(contribution).max(initial=0.0)), origin)
    values = {"c": c, "cc": c * c, "u": u, "uu": u * u, "uc": u * c}
    sums = {name: sum_by(values[name], of[name], person[some], people) for name in TERMS}
    lowest, highest = np.zeros((2, people))
    np.minimum.at(lowest, person, contribution)
    np.maximum.at(highest, person, contribution)
    count = np.bincount(person[some], minlength=people).astype(np.float64)
    always = pooled_individual(owners.individuals)
    return split_individuals(count, lowest, highest, sums, origin, collect, always)[:2]


def pooled_individual(individuals: NDArray[Any]) -> list[int]:
    """Return the position of the records without a key that count as one individual, if any do."""
    last = individuals[-1]
    parts = last if isinstance(last, tuple) else (last,)
    return [individuals.size - 1] if all(part == POOLED for part in parts) else []


def split_individuals(
    count: Array,
    lowest: Array,
    highest: Array,
    sums: Mapping[str, ExactSum],
    origin: float,
    collect: int,
    always: Sequence[int] = (),
) -> tuple[NDArray[np.bool_], Remainder, Standing]:
    """Return who is collected, what is known of all others, and where those stand.

    `always` are positions of individuals who are collected whatever they contribute.
    """
    largest, total = np.maximum(-lowest, highest), sums["c"].plain()
    asked = count.copy()
    for values in (asked, largest, total):
        values[list(always)] = 0.0
    standing = Standing.of(asked, largest, total, collect)
    score = Standing.score(asked, largest)
    collected = np.asarray(standing.above(largest, total, score))
    collected[list(always)] = True
    others = np.flatnonzero(~collected)
    exact = {name: sums[name][others].rounded() for name in TERMS}
    remainder = Remainder(
        individuals=others,
        count=count[others],
        contribution=exact["c"],
        contribution_square=exact["cc"],
        response=exact["u"],
        response_square=exact["uu"],
        product=exact["uc"],
        lowest=lowest[others],
        highest=highest[others],
        origin=origin,
    )
    return collected, remainder, standing
