"""What a query reads: who owns which record of which database, and the columns of the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.tables import arrow_columns
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True, eq=False)
class Ownership:
    """Database and individual of every record, as positions in the label vectors.

    A pair is an individual and a database in which it owns at least one record. Pairs are ordered
    by individual, then database: the order of a matrix stored by columns. Everything a query
    computes has the length of the records or of the pairs, never n times m.

    Parameters
    ----------
    database, individual : ndarray of int
        Shape (record,).
    databases, individuals : ndarray
        Labels, shapes (n,) and (m,).
    weight : ndarray of int, optional
        How many records each stands for, shape (record,): rows of an engine that has counted them.
    """

    database: Index
    individual: Index
    databases: NDArray[Any]
    individuals: NDArray[Any]
    weight: Index | None = None

    @cached_property
    def _pairs(self) -> tuple[Index, Index]:
        key = self.individual * self.databases.size + self.database
        step = np.diff(key)
        if bool((step >= 0).all()):
            first = np.concatenate([[True], step > 0])
            return key[first], np.cumsum(first) - 1
        distinct, pair = np.unique(key, return_inverse=True)
        return distinct, pair

    @property
    def pair(self) -> Index:
        """Pair of every record, shape (record,)."""
        return self._pairs[1]

    @cached_property
    def pair_database(self) -> Index:
        """Database of every pair, shape (pair,)."""
        return self._pairs[0] % self.databases.size

    @cached_property
    def pair_individual(self) -> Index:
        """Individual of every pair, shape (pair,)."""
        return self._pairs[0] // self.databases.size

    @cached_property
    def database_size(self) -> Index:
        """Records of every database, shape (n,)."""
        return self._counted(self.database, self.databases.size)

    @cached_property
    def individual_size(self) -> Index:
        """Records of every individual, shape (m,)."""
        return self._counted(self.individual, self.individuals.size)

    @cached_property
    def pair_size(self) -> Index:
        """Records of every pair, shape (pair,)."""
        return self._counted(self.pair, self.pair_database.size)

    @cached_property
    def remaining(self) -> Index:
        """Records of the pair's database without the pair's individual, shape (pair,)."""
        return self.database_size[self.pair_database] - self.pair_size

    @cached_property
    def presence(self) -> Index:
        """Databases in which every individual owns records, shape (m,)."""
        return np.bincount(self.pair_individual, minlength=self.individuals.size)

    @cached_property
    def _by_database(self) -> tuple[Index, Index]:
        order = np.argsort(self.database, kind="stable")
        return order, np.concatenate([[0], np.cumsum(self.database_size)])

    def _counted(self, group: Index, size: int) -> Index:
        """Return the records of every group."""
        if self.weight is None:
            return np.bincount(group, minlength=size)
        return np.bincount(group, self.weight, size).astype(np.int64)

    def compact(self) -> Ownership:
        """Return the same pairs with one row each, in their order, and its records as weight."""
        pairs = Ownership(
            self.pair_database,
            self.pair_individual,
            self.databases,
            self.individuals,
            self.pair_size,
        )
        known = {
            "pair_database": pairs.database,
            "pair_individual": pairs.individual,
            "pair_size": self.pair_size,
            "database_size": self.database_size,
        }
        pairs.__dict__.update(known)  # As its properties would find them.
        return pairs

    def take(self, rows: Index) -> Ownership:
        """Return the owners of some of the records, in the order of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Ownership(
            self.database[rows], self.individual[rows], self.databases, self.individuals, weight
        )

    def rows(self, database: int) -> Index:
        """Return the records of one database in their own order."""
        order, start = self._by_database
        return order[start[database] : start[database + 1]]

    def show_record(self, record: int) -> str:
        """Return where a record belongs, for messages."""
        return (
            f"database {labels.show(self.databases[self.database[record]])}, "
            f"individual {labels.show(self.individuals[self.individual[record]])}"
        )

    def show_pair(self, pair: int) -> str:
        """Return whose removal from which database a pair stands for, for messages."""
        return (
            f"database {labels.show(self.databases[self.pair_database[pair]])} without "
            f"individual {labels.show(self.individuals[self.pair_individual[pair]])}"
        )

    def require_remaining(self, least: int, query: str) -> None:
        """Refuse databases with too few records for a query, whole or without an individual."""
        small = np.flatnonzero(self.database_size < least)
        if small.size:
            raise InvalidInputError(
                f"{query} needs at least {least} record(s), database "
                f"{labels.show(self.databases[small[0]])} has {self.database_size[small[0]]}"
            )
        small = np.flatnonzero(self.remaining < least)
        if small.size:
            raise InvalidInputError(
                f"{query} needs at least {least} record(s), {self.show_pair(int(small[0]))} has "
                f"{self.remaining[small[0]]} ({small.size} such removals); drop these databases, "
                "or use Sum or Count, which have a value for an empty database"
            )


@dataclass(frozen=True, eq=False)
class Records:
    """Records with their owners.

    Parameters
    ----------
    owners : Ownership
        Database and individual of every record.
    frame : narwhals.DataFrame
        The columns that were asked for, one row for each record.
    """

    owners: Ownership
    frame: nw.DataFrame[Any]

    def order(self, columns: Iterable[str]) -> Index:
        """Return the order of the records by individual, database and the numbers in some columns.

        Records that are alike in these columns come next to each other in it.
        """
        owners = self.owners
        keys: list[NDArray[Any]] = [owners.individual * owners.databases.size + owners.database]
        for name in columns:
            series = arrow_columns.inferred(self.frame[name])
            if series.dtype.is_numeric():
                keys.append(_plain_numbers(series))
        return _lexical_order(keys)

    def take(self, rows: Index) -> Records:
        """Return some of the records, in the order of the rows."""
        return Records(self.owners.take(rows), self.frame[rows])

    def numbers(self, column: str) -> Array:
        """Return a numeric or boolean column as float64, shape (record,); errors of `values`."""
        # Adding zero makes -0.0 the 0.0 that it equals.
        return np.asarray(self.values(column), dtype=np.float64) + 0.0

    def values(self, column: str) -> NDArray[Any]:
        """Return whole numbers and floats as the column holds them, all else as float64.

        Raises
        ------
        InputTypeError
            If the column is neither numeric nor boolean.
        InvalidInputError
            If a value is missing or not finite; names the column, database and individual.
        """
        import narwhals as nw

        series = arrow_columns.inferred(self.frame[column])
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise InputTypeError(
                f"column {column!r} must be numeric, found values of type {series.dtype}"
                + self._first_text(series)
            )
        self._refuse_first(series.is_null().to_numpy(), column, "a missing value")
        values = _plain_numbers(series)
        bad = ~np.isfinite(values)
        if bad.any():
            self._refuse_first(bad, column, f"the value {values[np.argmax(bad)]}")
        return values

    def complete(self, column: str) -> nw.Series[Any]:
        """Return a column of any type, refusing missing values."""
        series = arrow_columns.inferred(self.frame[column])
        self._refuse_first(series.is_null().to_numpy(), column, "a missing value")
        return series

    def _first_text(self, series: nw.Series[Any]) -> str:
        """Return what keeps a column of text from being one of numbers, for messages."""
        import narwhals as nw

        if series.dtype != nw.String:
            return ""
        texts = series.to_list()
        record = next((k for k, text in enumerate(texts) if not reads_as_number(text)), None)
        if record is None:
            return "; all of it reads as numbers, some perhaps with leading zeros: convert it"
        return f"; {texts[record]!r} in {self.owners.show_record(record)} is no number"

    def _refuse_first(self, bad: NDArray[np.bool_], column: str, what: str) -> None:
        if bad.any():
            record = int(np.argmax(bad))
            raise InvalidInputError(
                f"column {column!r} has {what} in {self.owners.show_record(record)} "
                f"({int(bad.sum())} of {bad.size} records are missing or not finite)"
            )

    def without(self, pair: int) -> Index:
        """Return the records of the pair's database that its individual does not own."""
        rows = self.owners.rows(int(self.owners.pair_database[pair]))
        kept: NDArray[np.bool_] = self.owners.individual[rows] != self.owners.pair_individual[pair]
        return rows[kept]


def _plain_numbers(series: nw.Series[Any]) -> NDArray[Any]:
    """Return whole numbers and floats as the column holds them, all else as float64."""
    import narwhals as nw

    exact = series.dtype.is_integer() or series.dtype.is_float()
    values = series.to_numpy() if exact else series.cast(nw.Float64).to_numpy()
    return values if values.dtype.kind in "iuf" else values.astype(np.float64)


def _lexical_order(keys: Sequence[NDArray[Any]]) -> Index:
    """Return the order that sorts by the first key, then the others where it is repeated."""
    order = np.argsort(keys[0])
    if len(keys) == 1:
        return order
    first = keys[0][order]
    tied = first[1:] == first[:-1]
    if tied.any():
        # Only records that share the first key need the others.
        rows = with_next(tied)
        within = order[rows]
        order[rows] = within[np.lexsort([key[within] for key in reversed(keys)])]
    return order


def with_next(tied: NDArray[np.bool_]) -> Index:
    """Return the places that are tied to the next one, and these next ones, in order.

    Examples
    --------
    >>> with_next(np.array([True, False, False, True, True])).tolist()
    [0, 1, 3, 4, 5]
    """
    return np.flatnonzero(np.append(tied, False) | np.append(False, tied))


def reads_as_number(value: Any) -> bool:
    """Return whether a value is a number or text of one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def only_column(choices: Sequence[str], query: str) -> str:
    """Return the single value column a query without a column name stands for."""
    if len(choices) != 1:
        found = ", ".join(map(repr, choices)) or "none"
        raise InvalidInputError(
            f"{query} needs the name of its column: there are {len(choices)} value columns, {found}"
        )
    return choices[0]
