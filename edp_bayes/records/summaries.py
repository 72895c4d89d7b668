"""What queries need of every individual in every database, and what is found.

A query declares its needs; what holds the records, this process or an engine, answers them by
one group-by over the pairs. All sums are exact, so that every engine and every order of the records
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.exact import ExactSum, sum_by, units
from edp_bayes.records.in_memory import IN_MEMORY
from edp_bayes.records.ownership import Ownership, Records
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = [
    "Condition",
    "Needs",
    "Spread",
    "Summaries",
    "Window",
    "square_units",
    "summarise",
]


class Condition(Protocol):
    """A condition on the values of a record."""

    @property
    def flag(self) -> bool:
        """Whether the column itself is the condition, by zeros and ones."""

    @property
    def named_column(self) -> str:
        """Name of the column that it reads."""

    def holds(self, records: Records) -> NDArray[np.bool_]:
        """Return of which records it holds."""

    def expression(self, schema: Mapping[str, Any]) -> nw.Expr:
        """Return the condition as an expression of an engine."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a query needs of every pair beside its number of records.

    Attributes
    ----------
    sums : tuple of str
        Columns whose sums are needed.
    products : tuple of pairs of str
        Columns whose deviations from the mean of their database are multiplied, and the products
        summed; their sums are needed, too.
    extremes : tuple of str
        Columns of which the least and the largest value are needed.
    condition : Condition, optional
        How many records satisfy it.
    quantile : tuple of (str, float), optional
        Column and level of a quantile: the values around it are needed, with their ranks.
    """

    sums: tuple[str, ...] = ()
    products: tuple[tuple[str, str], ...] = ()
    extremes: tuple[str, ...] = ()
    condition: Condition | None = None
    quantile: tuple[str, float] | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must be numeric and finite."""
        pairs = (name for pair in self.products for name in pair)
        ranked = () if self.quantile is None else (self.quantile[0],)
        return tuple(dict.fromkeys((*self.sums, *pairs, *self.extremes, *ranked)))


@dataclass(frozen=True)
class Spread:
    """Where the finite numbers of a column lie.

    Attributes
    ----------
    count : int
        Number of records.
    lowest, highest : float
        Their ends.
    smallest : float
        Smallest absolute value other than zero; 0 if there is none.
    """

    count: int
    lowest: float
    highest: float
    smallest: float

    @classmethod
    def of(cls, values: Array) -> Spread:
        """Return the spread of some numbers."""
        size = np.abs(values)
        smallest = float(size.min(where=size > 0.0, initial=np.inf))
        smallest = smallest if np.isfinite(smallest) else 0.0
        return cls(values.size, float(values.min()), float(values.max()), smallest)

    def units(self, column: str) -> tuple[float, ...]:
        """Return the units of exact sums of the column."""
        largest = max(-self.lowest, self.highest)
        return units(self.count, largest, self.smallest, f"values of column {column!r}")


def square_units(one: Spread, other: Spread, columns: tuple[str, str]) -> tuple[float, ...]:
    """Return the units of exact sums of products of deviations from means."""
    with np.errstate(over="ignore"):
        width = np.float64(one.highest) - one.lowest
        largest = float(width * (np.float64(other.highest) - other.lowest))
    names = " and ".join(map(repr, dict.fromkeys(columns)))
    return units(one.count, largest, 0.0, f"products of deviations of {names}")


@dataclass(frozen=True, eq=False)
class Window:
    """Values around a quantile, one of each record there.

    Attributes
    ----------
    values : ndarray
        Shape (value,).
    pair : ndarray of int
        Whose they are.
    below : ndarray of int
        Records of every pair below all values of its database here, shape (pair,).
    whole : bool
        Whether these are all records.
    """

    values: Array
    pair: Index
    below: Index
    whole: bool


@dataclass(frozen=True, eq=False)
class Summaries:
    """What was found of every pair, in the order of `Ownership`.

    Attributes
    ----------
    owners : Ownership
        The pairs, with their numbers of records.
    sums : mapping of str to ExactSum
        Of the values of a column.
    products : mapping of pairs of str to ExactSum
        Of the products of deviations from the origins.
    origins : mapping of str to ndarray
        For every database a number near the mean of the column, shape (n,).
    least, largest : mapping of str to ndarray
        Ends of the values of a column, shape (pair,).
    holding : ndarray of int or None
        Records that satisfy the condition.
    window : Window or None
        Values around the quantile.
    without : callable
        Takes a pair and columns, and returns the values that are left without its individual in
        its database; refuses where the records are not in memory.
    """

    owners: Ownership
    sums: Mapping[str, ExactSum] = field(default_factory=dict)
    products: Mapping[tuple[str, str], ExactSum] = field(default_factory=dict)
    origins: Mapping[str, Array] = field(default_factory=dict)
    least: Mapping[str, Array] = field(default_factory=dict)
    largest: Mapping[str, Array] = field(default_factory=dict)
    holding: Index | None = None
    window: Window | None = None
    without: Callable[[int, Sequence[str]], list[Array]] | None = None

    def by_database(self, of_pairs: ExactSum) -> ExactSum:
        """Return the sums over every database."""
        return of_pairs.by(self.owners.pair_database, self.owners.databases.size)

    def deviations(self, column: str, pairs: slice) -> ExactSum:
        """Return the sums of deviations from the origins, of some pairs."""
        of, size = self.owners.pair_database[pairs], self.owners.pair_size[pairs]
        return self.sums[column][pairs].about(self.origins[column][of], size)

    def all_deviations(self, column: str) -> ExactSum:
        """Return the sums of deviations from the origins, of every database."""
        size = self.owners.database_size
        return self.by_database(self.sums[column]).about(self.origins[column], size)

    def left_without(self, pair: int, columns: Sequence[str]) -> list[Array]:
        """Return the values in the pair's database that its individual does not own.

        Raises
        ------
        InvalidInputError
            If the records are not in memory.
        """
        if self.without is None:
            raise InvalidInputError(
                f"{self.owners.show_pair(pair)} is so unlike the rest that sums do not tell the "
                f"answer without them: {IN_MEMORY}"
            )
        return self.without(pair, columns)

    def of_some(self, chosen: NDArray[np.bool_]) -> Summaries:
        """Return the summaries of some pairs, each counted for two owners.

        There is an answer without either of these in every database that they own records of.

        Raises
        ------
        InvalidInputError
            If only the values around a quantile of all are in memory.
        """
        if self.window is not None and not self.window.whole:
            raise InvalidInputError(
                "the quantile of some individuals' records is not known where an engine has the "
                f"records: {IN_MEMORY}"
            )
        owners = self.owners
        pairs = np.flatnonzero(chosen)
        seen, database = np.unique(owners.pair_database[pairs], return_inverse=True)
        twice, half = np.concatenate([pairs, pairs]), np.repeat([0, 1], pairs.size)
        doubled = Ownership(
            np.concatenate([database, database]),
            half,
            owners.databases[seen],
            np.array([0, 1]),
            owners.pair_size[twice],
        )
        pair, size = doubled.pair, doubled.pair_database.size

        def summed(of: ExactSum) -> ExactSum:
            return of[twice].by(pair, size)

        def extreme(of: Array, choose: np.ufunc) -> Array:
            found = np.empty(size)
            found[pair] = of[twice]
            choose.at(found, pair, of[twice])
            return found

        return Summaries(
            owners=doubled,
            sums={name: summed(of) for name, of in self.sums.items()},
            products={names: summed(of) for names, of in self.products.items()},
            origins={name: of[seen] for name, of in self.origins.items()},
            least={name: extreme(of, np.minimum) for name, of in self.least.items()},
            largest={name: extreme(of, np.maximum) for name, of in self.largest.items()},
            holding=_counted(self.holding, twice, pair, size),
            window=None if self.window is None else _doubled(self.window, pairs, pair, size),
        )


def _counted(holding: Index | None, twice: Index, pair: Index, size: int) -> Index | None:
    if holding is None:
        return None
    return np.bincount(pair, holding[twice], size).astype(np.int64)


def _doubled(window: Window, pairs: Index, pair: Index, size: int) -> Window:
    place = np.full(window.below.size, -1)
    place[pairs] = np.arange(pairs.size)
    rows = np.flatnonzero(place[window.pair] >= 0)
    own = place[window.pair[rows]]
    return Window(
        np.tile(window.values[rows], 2),
        np.concatenate([pair[own], pair[own + pairs.size]]),
        np.zeros(size, dtype=np.int64),
        whole=True,
    )


def summarise(records: Records, needs: Needs) -> Summaries:
    """Return what a query needs of records that are in memory.

    Raises
    ------
    InvalidInputError
        If a value is missing or not finite, or a sum would be too large.
    InputTypeError
        If a column is not numeric.
    """
    owners = records.owners
    pair, size = owners.pair, owners.pair_database.size
    numbers = {name: records.numbers(name) for name in needs.numbers}
    spreads = {name: Spread.of(values) for name, values in numbers.items()}
    multiplied = dict.fromkeys(name for names in needs.products for name in names)
    sums = {
        name: sum_by(numbers[name], spreads[name].units(name), pair, size)
        for name in dict.fromkeys((*needs.sums, *multiplied))
    }
    origins = {
        name: of.by(owners.pair_database, owners.databases.size).origin(owners.database_size)
        for name, of in sums.items()
    }
    deviations = {name: numbers[name] - origins[name][owners.database] for name in multiplied}
    products = {}
    for one, other in needs.products:
        of = square_units(spreads[one], spreads[other], (one, other))
        products[one, other] = sum_by(deviations[one] * deviations[other], of, pair, size)
    least = {name: np.full(size, np.inf) for name in needs.extremes}
    largest = {name: np.full(size, -np.inf) for name in needs.extremes}
    for name in needs.extremes:
        np.minimum.at(least[name], pair, numbers[name])
        np.maximum.at(largest[name], pair, numbers[name])
    condition = needs.condition
    ranked = None if needs.quantile is None else numbers[needs.quantile[0]]

    def without(which: int, columns: Sequence[str]) -> list[Array]:
        rows = records.without(which)
        return [numbers[name][rows] for name in columns]

    return Summaries(
        owners=owners,
        sums=sums,
        products=products,
        origins=origins,
        least=least,
        largest=largest,
        holding=None
        if condition is None
        else np.bincount(pair, condition.holds(records), size).astype(np.int64),
        window=None
        if ranked is None
        else Window(ranked, pair, np.zeros(size, dtype=np.int64), whole=True),
        without=without,
    )
