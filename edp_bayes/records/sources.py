"""Where records come from: a table, random subsets of a table, or an array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.cut_off import Partial
from edp_bayes.records.doubtful import doubled_records
from edp_bayes.records.ownership import Ownership, Records
from edp_bayes.records.owning import Ends, Owned, own
from edp_bayes.records.query import Query
from edp_bayes.records.summaries import Summaries, summarise
from edp_bayes.tables.clocks import AS_IT_IS, Clock
from edp_bayes.tables.keys import Key, factorise
from edp_bayes.tables.tables import Table
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Index
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    import narwhals as nw
    import xarray as xr

NO_CELL = (
    "every record needs a cell: leave out those without one, or give them a value of their own, "
    "such as 'unknown'"
)


class Source(Protocol):
    """Records with their owners, read when they are needed."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Names of the columns that are not keys."""

    @property
    def lacking(self) -> Mapping[str, str]:
        """Columns that not all files have, and a file without them."""

    @property
    def read_as(self) -> str:
        """What is unusual about how files were read, in a sentence."""

    @property
    def owners(self) -> Ownership:
        """Who owns which record."""

    @property
    def warnings(self) -> tuple[Sentence, ...]:
        """What is doubtful about the keys."""

    @property
    def too_fine(self) -> str:
        """What makes the databases look like moments rather than periods, if anything."""

    @property
    def partial(self) -> Partial | None:
        """First and last periods that look cut off, if any."""

    def read(self, columns: Sequence[str] | None) -> Records:
        """Return the records with some columns, or with all."""

    def summaries(self, query: Query) -> tuple[Summaries, tuple[Sentence, ...]]:
        """Return what a query needs of every pair, and what is doubtful about the records."""


class InMemory(ABC):
    """A source whose records are read into this process.

    DuckDB does not take its place, though it would group an Arrow table: it loses the order of
    categories, and a callable query needs whole rows.
    """

    @abstractmethod
    def read(self, columns: Sequence[str] | None) -> Records:
        """Return the records with some columns, or with all."""

    @abstractmethod
    def whole_rows(self, records: Records, rows: Index) -> nw.DataFrame[Any] | None:
        """Return some records with all columns, None where that means reading the table again."""

    def summaries(self, query: Query) -> tuple[Summaries, tuple[Sentence, ...]]:
        """Return what a query needs of every pair, and what is doubtful about the records."""
        records = self.read(query.columns())
        order = records.order(query.columns())
        ordered = records.take(order)
        doubtful = doubled_records(
            ordered, query.columns(), lambda rows: self.whole_rows(records, order[rows])
        )
        return summarise(ordered, query.needs()), doubtful


@dataclass(frozen=True, eq=False)
class TableSource(InMemory):
    """One table with a row for each record of each database.

    Parameters
    ----------
    table : Table
        The table.
    database, individual : tuple of str
        Key columns.
    every : str, optional
        Period of the calendar that is one database.
    empty : {"drop", "zero", "error"}, optional
        What becomes of periods without a record, as for `Databases.from_table`.
    missing : {"error", "drop", "pool"}
        What becomes of records without an individual.
    clock : Clock
        How the keys of databases are times, as far as their column does not say it.
    partial_ends : {"keep", "drop"}
        What becomes of a first or last period that is cut off.
    cells : int
        How many of the first columns of `individual` say the cell of a record, not whose it is.
    """

    table: Table
    database: tuple[str, ...]
    individual: tuple[str, ...]
    every: str | None = None
    empty: str | None = None
    missing: str = "error"
    clock: Clock = AS_IT_IS
    partial_ends: str = "keep"
    cells: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.table.columns

    @property
    def lacking(self) -> Mapping[str, str]:
        """Columns that not all files have, and a file without them."""
        return self.table.lacking

    @property
    def read_as(self) -> str:
        """What was found of how files and dates are to be read, in sentences."""
        return " ".join([*filter(None, [self.table.read_as()]), *self.clock.found])

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Names of the columns that are not keys."""
        return _others(self.columns, self.database + self.individual)

    @cached_property
    def _owned(self) -> Owned:
        return self._owners(self.table.read(self.database + self.individual))

    @property
    def owners(self) -> Ownership:
        """Who owns which record, from the key columns alone."""
        return self._owned.owners

    @property
    def warnings(self) -> tuple[Sentence, ...]:
        """What is doubtful about the keys."""
        return self._owned.warnings

    @property
    def too_fine(self) -> str:
        """What makes the databases look like moments rather than periods, if anything."""
        return self._owned.too_fine

    @property
    def partial(self) -> Partial | None:
        """First and last periods that look cut off, if any."""
        return self._owned.partial

    def read(self, columns: Sequence[str] | None) -> Records:
        """Return the records with some columns, or with all.

        The rows of a lazy table may come in another order each time: its keys are read together
        with the values.
        """
        keys = self.database + self.individual
        frame = self.table.read(None if columns is None else _union(keys, columns))
        owned = self._owned if self.table.stable else self._owners(frame)
        if owned.rows is not None:
            frame = frame[owned.rows]
        return Records(owned.owners, frame)

    def whole_rows(self, records: Records, rows: Index) -> nw.DataFrame[Any] | None:
        """Return some records with all columns, None where that means reading the table again."""
        if not self.table.stable:
            return _if_whole(records, rows, self.columns)
        kept = self._owned.rows
        return self.table.read(None)[rows if kept is None else kept[rows]]

    def _owners(self, frame: nw.DataFrame[Any]) -> Owned:
        individual = [Key.of(frame, name) for name in self.individual]
        for key in individual[: self.cells]:
            key.refuse_missing(NO_CELL)
        return self._own([self.clock.key(frame, name) for name in self.database], individual)

    def _own(
        self,
        database: Sequence[Key],
        individual: Sequence[Key],
        weight: Index | None = None,
        ends: Ends | None = None,
    ) -> Owned:
        _refuse_empty(database[0].column)
        return own(
            database,
            individual,
            every=self.every,
            empty=self.empty,
            missing=self.missing,
            partial=self.partial_ends,
            weight=weight,
            ends=ends,
        )


class AsGiven:
    """Databases that are drawn, or were asked for one by one: no doubt is raised."""

    warnings: ClassVar[tuple[Sentence, ...]] = ()
    too_fine: ClassVar[str] = ""
    partial: ClassVar[Partial | None] = None


@dataclass(frozen=True, eq=False)
class SubsampleSource(InMemory, AsGiven):
    """Random subsets of the individuals of one table."""

    table: Table
    individual: tuple[str, ...]
    size: int
    count: int
    entropy: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.table.columns

    @property
    def lacking(self) -> Mapping[str, str]:
        """Columns that not all files have, and a file without them."""
        return self.table.lacking

    @property
    def read_as(self) -> str:
        """What is unusual about how files were read, in a sentence."""
        return self.table.read_as()

    @property
    def value_columns(self) -> tuple[str, ...]:
        """Names of the columns that are not keys."""
        return _others(self.columns, self.individual)

    @cached_property
    def owners(self) -> Ownership:
        """Who owns which record of which subset."""
        return self._draw(self.table.read(self.individual))[0]

    def read(self, columns: Sequence[str] | None) -> Records:
        """Return the records of all subsets with some columns, or with all."""
        frame = self.table.read(None if columns is None else _union(self.individual, columns))
        owners, rows = self._draw(frame)
        return Records(owners, frame[rows])

    def whole_rows(self, records: Records, rows: Index) -> nw.DataFrame[Any] | None:
        """Return some records with all columns, None where that means reading the table again."""
        return _if_whole(records, rows, self.columns)

    def _draw(self, frame: nw.DataFrame[Any]) -> tuple[Ownership, Index]:
        """Return the owners of every record drawn, and its row in the table."""
        _refuse_empty(frame)
        codes, individuals = factorise(frame, self.individual)
        if self.size >= individuals.size:
            raise InvalidInputError(
                f"size must be below the number of individuals, {individuals.size}, "
                f"found {self.size}"
            )
        order = np.argsort(codes, kind="stable")
        owned = np.bincount(codes, minlength=individuals.size)
        start = np.cumsum(owned) - owned
        chosen = np.concatenate([self._subset(k, individuals.size) for k in range(self.count)])
        length = owned[chosen]
        rows = order[_ranges(start[chosen], length)]
        database = np.repeat(np.repeat(np.arange(self.count), self.size), length)
        drawn, individual = np.unique(codes[rows], return_inverse=True)
        owners = Ownership(database, individual, np.arange(self.count), individuals[drawn])
        return owners, rows

    def _subset(self, k: int, available: int) -> Index:
        seed = np.random.SeedSequence(self.entropy, spawn_key=(k,))
        return np.sort(np.random.default_rng(seed).choice(available, self.size, replace=False))


@dataclass(frozen=True, eq=False)
class ArraySource(InMemory, AsGiven):
    """One value for each cell (individual, database) of an array, where it is observed.

    Parameters
    ----------
    owners : Ownership
        Who owns which record, ordered by individual, then database.
    values : ndarray
        Shape (record,).
    name : str
        Name of the value column.
    dimensions : tuple of str
        Dimensions of the databases, then of the individuals.
    database_dimensions : int
        How many of them are of databases.
    """

    owners: Ownership
    values: NDArray[np.float64]
    name: str
    dimensions: tuple[str, ...]
    database_dimensions: int
    value_columns: tuple[str, ...] = field(init=False)
    lacking: ClassVar[Mapping[str, str]] = MappingProxyType({})
    read_as: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_columns", (self.name,))

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of the value column: coordinates are labels, and not for a query to sum."""
        return self.value_columns

    def read(self, columns: Sequence[str] | None) -> Records:
        """Return the records with their values, and with their labels if all are wanted."""
        import narwhals as nw
        import pandas as pd

        data: dict[str, Any] = {self.name: self.values}
        if columns is None:
            cut = self.database_dimensions
            data = (
                _label_columns(self.dimensions[:cut], self.owners.databases, self.owners.database)
                | _label_columns(
                    self.dimensions[cut:], self.owners.individuals, self.owners.individual
                )
                | data
            )
        return Records(self.owners, nw.from_native(pd.DataFrame(data, copy=False), eager_only=True))

    def whole_rows(self, records: Records, rows: Index) -> nw.DataFrame[Any] | None:
        """Return some records with all columns."""
        return records.frame[rows]


def array_source(
    array: xr.DataArray, database: tuple[str, ...], individual: tuple[str, ...]
) -> ArraySource:
    """Return the observed cells of an array as records, with sorted labels."""
    dimensions = database + individual
    _require_dimensions(array, dimensions)
    keys = [_coordinate(array, name) for name in dimensions]
    ordered = array.transpose(*dimensions).values[np.ix_(*(order for order, _ in keys))]
    if ordered.dtype.kind not in labels.NUMERIC_KINDS:
        raise InputTypeError(f"the array must be numeric, found {ordered.dtype} data")
    cut = len(database)
    databases = _stack([key for _, key in keys[:cut]])
    individuals = _stack([key for _, key in keys[cut:]])
    values = ordered.astype(np.float64).reshape(databases.size, individuals.size).T
    present = ~np.isnan(values)
    _refuse_infinite(values, databases, individuals)
    _refuse_unobserved(present, databases)
    individual_code, database_code = np.nonzero(present)
    seen = present.any(axis=1)
    owners = Ownership(
        database_code, (np.cumsum(seen) - 1)[individual_code], databases, individuals[seen]
    )
    name = array.name if isinstance(array.name, str) and array.name not in dimensions else "value"
    return ArraySource(owners, values[present], name, dimensions, cut)


def _require_dimensions(array: Any, names: tuple[str, ...]) -> None:
    import xarray as xr

    if not isinstance(array, xr.DataArray):
        raise InputTypeError(f"array must be an xarray.DataArray, found {type(array).__name__}")
    found = ", ".join(map(repr, array.dims))
    for name in names:
        if name not in array.dims:
            raise InvalidInputError(f"there is no dimension {name!r}; the dimensions are {found}")
    rest = [name for name in array.dims if name not in names]
    if rest:
        raise InvalidInputError(
            f"dimension {rest[0]!r} belongs neither to databases nor to individuals; select one "
            f"of its values or reduce it (the dimensions are {found})"
        )


def _coordinate(array: xr.DataArray, name: str) -> tuple[Index, NDArray[Any]]:
    """Return the order that sorts a dimension, and its sorted labels."""
    coordinate = labels.as_labels(array[name].values, name)
    labels.refuse_duplicates(coordinate, f"coordinate {name!r}")
    try:
        texts = coordinate.dtype == object and all(isinstance(x, str) for x in coordinate)
        order = (
            labels.natural_order(coordinate.tolist())
            if texts
            else np.argsort(coordinate, kind="stable")
        )
    except TypeError as error:
        raise InputTypeError(f"coordinate {name!r} cannot be sorted: {error}") from None
    return order, coordinate[order]


def _stack(keys: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of the cells of several dimensions, the last one fastest."""
    if len(keys) == 1:
        return keys[0]
    grid = np.meshgrid(*(np.arange(key.size) for key in keys), indexing="ij")
    return labels.compound([key[place.ravel()] for key, place in zip(keys, grid, strict=True)])


def _refuse_infinite(
    values: NDArray[np.float64], databases: NDArray[Any], individuals: NDArray[Any]
) -> None:
    bad = np.argwhere(np.isinf(values))
    if bad.size:
        i, j = bad[0]
        raise InvalidInputError(
            f"the array has the value {values[i, j]} in database {labels.show(databases[j])}, "
            f"individual {labels.show(individuals[i])} ({len(bad)} of {values.size} cells); "
            "use NaN where an individual is absent"
        )


def _refuse_unobserved(present: NDArray[np.bool_], databases: NDArray[Any]) -> None:
    empty = np.flatnonzero(~present.any(axis=0))
    if empty.size:
        raise InvalidInputError(
            f"database {labels.show(databases[empty[0]])} has no value at all "
            f"({empty.size} of {databases.size} databases); drop what was not observed"
        )


def _label_columns(
    names: tuple[str, ...], keys: NDArray[Any], codes: Index
) -> dict[str, NDArray[Any]]:
    if len(names) == 1:
        return {names[0]: keys[codes]}
    parts = zip(*keys.tolist(), strict=True)
    return {
        name: np.asarray(part)[codes]
        if not isinstance(part[0], tuple)
        else labels.as_objects(list(part))[codes]
        for name, part in zip(names, parts, strict=True)
    }


def _ranges(start: Index, length: Index) -> Index:
    """Return start, start + 1, ... of every range, one after another."""
    ends = np.cumsum(length)
    ranges: Index = np.arange(ends[-1]) + np.repeat(start - (ends - length), length)
    return ranges


def _refuse_empty(rows: Any) -> None:
    if len(rows) == 0:
        raise InvalidInputError("the table has no records")


def _if_whole(records: Records, rows: Index, columns: Sequence[str]) -> nw.DataFrame[Any] | None:
    return records.frame[rows] if set(columns) <= set(records.frame.columns) else None


def _others(columns: tuple[str, ...], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in keys)


def _union(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*first, *second)))
