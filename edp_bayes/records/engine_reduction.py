"""Pairs that are too many to be collected: an engine reduces them by individual.

The pairs stay lazy. By database they give the answers; by individual, what pooling needs and the
largest contribution; and only the pairs of those who stand above the others come back. All sums are
those of `edp_bayes.records.remainder`, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.exact import ExactSum, multiples, rounding_to
from edp_bayes.records.in_memory import IN_MEMORY
from edp_bayes.records.ownership import Ownership
from edp_bayes.records.remainder import (
    TERMS,
    Remainder,
    Standing,
    origin_of,
    pooled_individual,
    split_individuals,
    units_of_terms,
)
from edp_bayes.tables.keys import Key, combined
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

__all__ = ["Pairs", "Reduced", "integers", "with_parts"]

CODE = "code"  # number of the database of a pair, where an engine has finer keys


@dataclass(frozen=True, eq=False)
class Reduced:
    """What was found of every individual, and of the pairs that were collected.

    Attributes
    ----------
    owners : Ownership
        The pairs that were collected, among all individuals and databases.
    response : ndarray
        Shape (n,).
    contribution : ndarray
        Shape (pair,): of these pairs.
    presence : ndarray of int
        Shape (m,): databases in which each individual has records.
    remainder : Remainder
        What is known of individuals without pairs.
    """

    owners: Ownership
    response: Array
    contribution: Array
    presence: Index
    remainder: Remainder


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of databases and individuals in an engine.

    Parameters
    ----------
    frame : LazyFrame
        One row for each pair of keys, with numbers of records and parts of sums.
    count : str
        Column of the number of records.
    units : tuple of float
        Of the parts p0, p1, ... of a contribution; none where the number of records is it.
    database, individual : tuple of str
        Key columns.
    collect : callable
        Collects a small frame.
    codes : callable
        Takes collected rows of database keys and returns the number of the database of each.
    keys : callable
        Takes collected rows of individual keys and returns these as `Key`.
    owners : Ownership
        All databases and individuals.
    engine : str
        Its name, for messages.
    """

    frame: nw.LazyFrame[Any]
    count: str
    units: tuple[float, ...]
    database: tuple[str, ...]
    individual: tuple[str, ...]
    collect: Callable[[Any], pa.Table]
    codes: Callable[[pa.Table], Index]
    keys: Callable[[pa.Table], list[Key]]
    owners: Ownership
    engine: str

    @property
    def _parts(self) -> list[str]:
        return [f"p{k}" for k in range(len(self.units))]

    def joined(self) -> Pairs:
        """Return pairs of whole databases, where keys of the engine are finer, such as days."""
        import narwhals.stable.v2 as nw

        key = self.database[0]
        table = self.collect(self.frame.group_by(key).agg(nw.len().alias("rows")))
        code = self.codes(table)
        if np.unique(code).size == code.size:
            return self
        first = table[key].take(np.argsort(code, kind="stable")).to_pylist()
        order = np.sort(code)
        starts = [
            min(first[place] for place in np.flatnonzero(order == each)) for each in np.unique(code)
        ]
        if starts != sorted(starts):
            raise InvalidInputError(
                "contributions are reduced by an engine where its databases follow each other in "
                f"time: give a column of periods, or {IN_MEMORY}"
            )
        number = nw.lit(int(np.unique(code)[0]))
        for before, each, start in zip(
            np.unique(code)[:-1].tolist(), np.unique(code)[1:].tolist(), starts[1:], strict=True
        ):
            number = number + (nw.col(key) >= nw.lit(start)).cast(nw.Int64) * (each - before)
        frame = self.frame.with_columns(number.alias(CODE))
        columns = [self.count, *self._parts]
        frame = frame.group_by(CODE, *self.individual, "lacks").agg(
            *(nw.col(name).sum() for name in columns)
        )
        given = dict(self.__dict__) | {"frame": frame, "database": (CODE,), "codes": _as_codes}
        return Pairs(**given)

    def reduced(self, records: int, collect: int) -> Reduced:
        """Return what is known of every individual, and the pairs of those who stand above.

        Parameters
        ----------
        records : int
            How many there were when the table was opened.
        collect : int
            Whose contributions are collected at most, fewer than there are.
        """
        import narwhals.stable.v2 as nw

        frame = self._with_contributions(self.frame)
        parts = self._parts or [self.count]
        by_database = self.collect(
            frame.with_columns(nw.col("c").abs().alias("largest"))
            .group_by(*self.database)
            .agg(
                *(nw.col(name).sum() for name in dict.fromkeys([self.count, *parts])),
                nw.col("largest").max(),
            )
        )
        found = int(integers(by_database, self.count).sum())
        if found != records:
            raise InvalidInputError(
                f"the table has {found:,} records now and had {records:,} when it was opened: open "
                "it again, and let nobody write to it meanwhile"
            )
        response = np.zeros(self.owners.databases.size)
        response[self.codes(by_database)] = self._exact(by_database, self.units, parts).rounded()
        origin = origin_of(response)
        of = units_of_terms(response, float(_floats(by_database, "largest").max()), origin)
        known = frame.filter(nw.col("lacks") == 0)
        people = self.collect(self._by_individual(self._with_terms(known, origin, of), of))
        collected, remainder, standing, code = self._split(people, of, origin, collect)
        chosen = self._above(known, of["c"], standing)
        rows = known.join(chosen, on=list(self.individual), how="inner")
        names = [*self.database, *self.individual, self.count, "c"]
        table = self.collect(rows.select(names))
        person = self._persons(table, people, collected[code], code)
        pooled = pooled_individual(self.owners.individuals)
        presence = np.zeros(self.owners.individuals.size, dtype=np.int64)
        presence[code] = integers(people, "presence")
        if pooled:
            table, person, presence[pooled] = self._with_pooled(frame, table, person, pooled[0])
        owners = Ownership(
            self.codes(table),
            person,
            self.owners.databases,
            self.owners.individuals,
            integers(table, self.count),
        )
        if owners.presence[collected].sum() != presence[collected].sum():
            raise InvalidInputError(
                f"{self.engine} found other individuals above the rest when it was asked again: "
                "collect the contributions of all, or collect the table"
            )
        contribution = np.zeros(owners.pair_database.size)
        contribution[owners.pair] = _floats(table, "c")
        return Reduced(owners, response, contribution, presence, remainder)

    def _with_contributions(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return a frame with c, the contribution of a pair rounded once."""
        import narwhals.stable.v2 as nw

        if not self.units:
            return frame.with_columns(nw.col(self.count).cast(nw.Float64).alias("c"))
        return _with_rounded(frame, self._parts, self.units, "c")

    def _with_terms(
        self, frame: nw.LazyFrame[Any], origin: float, of: Mapping[str, tuple[float, ...]]
    ) -> nw.LazyFrame[Any]:
        """Return a frame with the parts of what is summed for every individual."""
        import narwhals.stable.v2 as nw

        columns = self._parts or [self.count]
        answers = self.frame.group_by(*self.database).agg(
            *(nw.col(name).sum().alias(f"y{k}") for k, name in enumerate(columns))
        )
        names = [f"y{k}" for k in range(len(columns))]
        if self.units:
            answers = _with_rounded(answers, names, self.units, "y")
        else:
            answers = answers.with_columns(nw.col("y0").cast(nw.Float64).alias("y"))
        answers = answers.select(*self.database, (nw.col("y") - origin).alias("u"))
        frame = frame.join(answers, on=list(self.database), how="inner")
        c = nw.col("c")
        frame = frame.with_columns(
            (c * c).alias("cc"), nw.when(c != 0.0).then(nw.col("u")).otherwise(0.0).alias("u")
        )
        frame = frame.with_columns(
            (nw.col("u") * nw.col("u")).alias("uu"), (nw.col("u") * c).alias("uc")
        )
        for name in TERMS:
            frame = with_parts(frame, name, of[name])
        return frame

    def _by_individual(
        self, frame: nw.LazyFrame[Any], of: Mapping[str, tuple[float, ...]]
    ) -> nw.LazyFrame[Any]:
        import narwhals.stable.v2 as nw

        frame = frame.with_columns((nw.col("c") != 0.0).cast(nw.Int64).alias("some"))
        wanted = [f"{name}p{k}" for name in TERMS for k in range(len(of[name]))]
        return frame.group_by(*self.individual).agg(
            nw.len().alias("presence"),
            nw.col("some").sum(),
            nw.col("c").min().alias("lowest"),
            nw.col("c").max().alias("highest"),
            *(nw.col(name).sum() for name in wanted),
        )

    def _split(
        self,
        people: pa.Table,
        of: Mapping[str, tuple[float, ...]],
        origin: float,
        collect: int,
    ) -> tuple[NDArray[np.bool_], Remainder, Standing, Index]:
        """Return who is collected, all others, where they stand, and whose the rows are."""
        code, labels = combined(self.keys(people))
        size = self.owners.individuals.size
        pooled = pooled_individual(self.owners.individuals)
        if labels.size != size - len(pooled) or np.unique(code).size != code.size:
            raise InvalidInputError(
                f"{self.engine} tells keys of individuals apart that are one, or found others than "
                "when the table was opened: collect the table"
            )

        def placed(values: Array) -> Array:
            out = np.zeros(size)
            out[code] = values
            return out

        sums = {}
        for name in TERMS:
            parts = [f"{name}p{k}" for k in range(len(of[name]))]
            found = self._exact(people, of[name], parts)
            sums[name] = ExactSum(of[name], tuple(map(placed, found.parts)))
        collected, remainder, standing = split_individuals(
            placed(_floats(people, "some")),
            placed(np.minimum(_floats(people, "lowest"), 0.0)),
            placed(np.maximum(_floats(people, "highest"), 0.0)),
            sums,
            origin,
            collect,
            pooled,
        )
        return collected, remainder, standing, code

    def _above(
        self, frame: nw.LazyFrame[Any], of: tuple[float, ...], standing: Standing
    ) -> nw.LazyFrame[Any]:
        """Return the keys of those whose contributions are collected."""
        import narwhals.stable.v2 as nw

        frame = with_parts(frame, "c", of)
        frame = frame.with_columns(
            (nw.col("c") != 0.0).cast(nw.Int64).alias("some"), nw.col("c").abs().alias("largest")
        )
        parts = [f"cp{k}" for k in range(len(of))]
        frame = frame.group_by(*self.individual).agg(
            nw.col("some").sum(),
            nw.col("largest").max(),
            *(nw.col(name).sum() for name in parts),
        )
        total = nw.col(parts[-1])
        for name in parts[-2::-1]:
            total = total + nw.col(name)
        some, largest = nw.col("some").cast(nw.Float64), nw.col("largest")
        frame = frame.with_columns(
            total.alias("total"), Standing.score(some, largest).alias("score")
        )
        above = standing.above(nw.col("largest"), nw.col("total"), nw.col("score"))
        return frame.filter(above).select(*self.individual)

    def _persons(
        self, table: pa.Table, people: pa.Table, chosen: NDArray[np.bool_], code: Index
    ) -> Index:
        """Return the position of the individual of every collected pair."""
        import pyarrow as pa

        rows = np.flatnonzero(chosen)
        names = list(self.individual)
        known = people.select(names).take(pa.array(rows))
        both = pa.concat_tables([known, table.select(names)])
        own, labels = combined(self.keys(both))
        place = np.full(labels.size, -1)
        place[own[: rows.size]] = code[rows]
        found = place[own[rows.size :]]
        if (found < 0).any():
            raise InvalidInputError(
                f"{self.engine} compares numbers otherwise than it did before: collect the table"
            )
        return np.asarray(found)

    def _with_pooled(
        self, frame: nw.LazyFrame[Any], table: pa.Table, person: Index, pooled: int
    ) -> tuple[pa.Table, Index, int]:
        """Return the collected pairs with those of all records without an individual."""
        import narwhals.stable.v2 as nw
        import pyarrow as pa

        names = [*self._parts, self.count]
        lacking = frame.filter(nw.col("lacks") == 1).group_by(*self.database)
        whole = lacking.agg(*(nw.col(name).sum() for name in names))
        more = self.collect(self._with_contributions(whole).select(*self.database, self.count, "c"))
        kept = table.select([*self.database, self.count, "c"])
        both = pa.concat_tables([kept, more.cast(kept.schema)])
        return both, np.append(person, np.full(len(more), pooled)), len(more)

    def _exact(self, table: pa.Table, of: tuple[float, ...], names: Sequence[str]) -> ExactSum:
        parts = tuple(_floats(table, name) for name in names)
        if of and not all(map(multiples, parts, of)):
            raise InvalidInputError(
                f"{self.engine} does not add float64 by the rules of IEEE 754, so that its sums "
                "are not exact: switch off what trades exactness for speed, or collect the table"
            )
        return ExactSum(of or (1.0,), parts)


def with_parts(frame: nw.LazyFrame[Any], name: str, of: Sequence[float]) -> nw.LazyFrame[Any]:
    """Return a frame with the parts of a column, as `exact.split` makes them."""
    import narwhals.stable.v2 as nw

    rest = nw.col(name)
    for k, unit in enumerate(of):
        part = (rest + rounding_to(unit)) - rounding_to(unit)
        frame = frame.with_columns(part.alias(f"{name}p{k}"))
        if k + 1 < len(of):
            frame = frame.with_columns((rest - nw.col(f"{name}p{k}")).alias(f"{name}r{k}"))
            rest = nw.col(f"{name}r{k}")
    return frame


def _with_rounded(
    frame: nw.LazyFrame[Any], names: Sequence[str], of: Sequence[float], into: str
) -> nw.LazyFrame[Any]:
    """Return a frame with a sum rounded once, of its parts, as `ExactSum.rounded` does it."""
    import narwhals.stable.v2 as nw

    own = [f"{into}w{k}" for k in range(len(names))]
    kept = frame.collect_schema().names()
    frame = frame.with_columns(*(nw.col(n).alias(w) for n, w in zip(names, own, strict=True)))
    for k in range(len(own) - 1, 0, -1):
        step = rounding_to(of[k - 1])
        frame = frame.with_columns(((nw.col(own[k]) + step) - step).alias("carry"))
        frame = frame.with_columns(
            (nw.col(own[k]) - nw.col("carry")).alias(own[k]),
            (nw.col(own[k - 1]) + nw.col("carry")).alias(own[k - 1]),
        )
    frame = frame.with_columns(nw.col(own[0]).alias("high"), nw.lit(0.0).alias("low"))
    for name in own[1:]:
        part = nw.col(name)
        frame = frame.with_columns((nw.col("high") + part).alias("total"))
        frame = frame.with_columns((nw.col("total") - nw.col("high")).alias("held"))
        left = (nw.col("high") - (nw.col("total") - nw.col("held"))) + (part - nw.col("held"))
        frame = frame.with_columns((nw.col("low") + left).alias("low"))
        frame = frame.with_columns(nw.col("total").alias("high"))
    rounded = (nw.col("high") + nw.col("low")).alias(into)
    return frame.select(*kept, rounded)


def _as_codes(table: pa.Table) -> Index:
    return integers(table, CODE)


def integers(table: pa.Table, name: str) -> Index:
    """Return whole numbers, for which an engine may have decimals."""
    import pyarrow as pa

    return np.asarray(table[name].cast(pa.int64()).to_numpy())


def _floats(table: pa.Table, name: str) -> Array:
    return np.asarray(table[name].to_numpy(), dtype=np.float64)
