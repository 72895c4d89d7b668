"""Records that stay where they are: an engine groups them, and only the pairs are collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import EdpBayesError, InputTypeError, InvalidInputError
from edp_bayes.records import periods
from edp_bayes.records.cut_off import Moments
from edp_bayes.records.doubtful import COPIED
from edp_bayes.records.engine_reduction import Pairs, Reduced, integers, with_parts
from edp_bayes.records.exact import ExactSum, multiples, wide
from edp_bayes.records.in_memory import IN_MEMORY
from edp_bayes.records.owning import NO_ENDS, Ends, Owned, databases_of, ends_of
from edp_bayes.records.query import Query
from edp_bayes.records.remainder import MOST_PAIRS
from edp_bayes.records.sources import NO_CELL, TableSource
from edp_bayes.records.summaries import Needs, Spread, Summaries, Window, square_units
from edp_bayes.tables.keys import POOLED, Key, combined, missing_words
from edp_bayes.tables.memory import require_room
from edp_bayes.utils import labels
from edp_bayes.utils.formatting import first_line
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    from edp_bayes.utils.arrays import Array, Index

__all__ = ["EngineSource"]

LARGEST = float(np.finfo(np.float64).max)
# Records up to which an engine is asked for those that repeat another one in all columns.
MOST_COMPARED = 1_000_000
# Ranks kept beside those that a quantile can reach, for the rounding of an engine.
MARGIN = 2
# Records of a pair up to which its sums take fewer parts than those of a database.
MOST_OF_PAIR = 4096
# Bytes of a pair: each column twice while it is read; keys, sizes and contributions beside them.
COLUMN_BYTES, PAIR_BYTES = 16, 100
COUNT, COPIES = "records", "edp_bayes copies"


@dataclass(frozen=True, eq=False)
class EngineSource(TableSource):
    """A lazy table: what queries need of every pair is computed by its engine."""

    @cached_property
    def _owned(self) -> Owned:
        """The databases with their numbers of records, and the individuals; no pairs of them."""
        import narwhals.stable.v2 as nw
        import pyarrow as pa

        self._refuse_missing_cells()
        databases, ends, within = self._found
        keyed = self._lacking(self._keyed())
        if within is not None:
            databases = databases.filter(pa.array(within))
        individuals = self._collect(
            keyed.filter(nw.col("lacks") == 0)
            .group_by(*self._individual_keys)
            .agg(nw.len().alias(COUNT))
        )
        # Rows as of a group-by over the pairs: the records stand with the databases, by any
        # individual or none, and the individuals follow with no more records.
        lacking = integers(databases, "lacks") == 1
        some = pa.array(np.zeros(len(databases), dtype=np.int64), mask=lacking)
        other = pa.array(np.full(len(individuals), np.argmin(lacking) if lacking.size else 0))
        first, second = databases.select(self._database_keys), individuals.drop_columns(COUNT)
        for name in self._individual_keys:
            first = first.append_column(name, individuals[name].take(some))
        for name in self._database_keys:
            second = second.append_column(name, databases[name].take(other))
        rows = pa.concat_tables([first, second.select(first.column_names)])
        weight = np.append(integers(databases, COUNT), np.zeros(len(individuals), dtype=np.int64))
        owned = self._own(*self._keys(rows), weight, ends)
        counts = np.append(np.zeros(len(databases), np.int64), integers(individuals, COUNT))
        counts[: len(databases)][lacking] = integers(databases, COUNT)[lacking]
        owners = owned.owners
        counts = counts if owned.rows is None else counts[owned.rows]
        owners.__dict__["individual_size"] = np.bincount(  # As the property would find it.
            owners.individual, counts, owners.individuals.size
        ).astype(np.int64)
        return owned

    def _refuse_missing_cells(self) -> None:
        """Refuse records without a cell, who are nobody's alone."""
        import narwhals.stable.v2 as nw

        names = self.individual[: self.cells]
        if not names:
            return
        lacking = [self._absent(name, name).sum().alias(name) for name in names]
        found = self._collect(self._lazy.select(nw.len().alias(COUNT), *lacking)).to_pylist()[0]
        for name in names:
            if found[name]:
                raise InvalidInputError(
                    f"{missing_words(name, found[name], found[COUNT])}; {NO_CELL}"
                )

    @cached_property
    def _found(self) -> tuple[pa.Table, Ends, NDArray[np.bool_] | None]:
        """The keys of databases with their records, what is cut off, and which rows are kept.

        The latter is None where all are.
        """
        import narwhals.stable.v2 as nw

        timed = self.every in ("day", "hour") and self._schema[self.database[0]] == nw.Datetime
        moment = nw.col("moment")
        table = self._collect(
            self._lacking(self._keyed(all_periods=True, moment=timed))
            .group_by(*self._database_keys, "lacks")
            .agg(
                nw.len().alias(COUNT),
                *([moment.min().alias("earliest"), moment.max().alias("latest")] if timed else []),
            )
        )
        moments = [table[name] for name in ("earliest", "latest")] if timed else []
        table = table.drop_columns(["earliest", "latest"] if timed else [])
        judged = np.ones(len(table), dtype=np.bool_)
        if self.missing == "drop":
            judged = integers(table, "lacks") == 0
        if len(self.database) > 1 or not judged.any():
            return table, NO_ENDS, None
        rows = np.flatnonzero(judged)
        key = self._keys(table)[0][0]
        if key.missing.any():  # It is refused with all others.
            return table, NO_ENDS, None
        weight = integers(table, COUNT)[rows]
        found = databases_of([key.take(rows)], self.every, "drop")
        when = [periods.instants(column)[rows] for column in moments]
        ends = ends_of(
            key.take(rows),
            found,
            self.every,
            self.partial_ends,
            weight,
            Moments(*when) if when else None,
        )
        if self.partial_ends == "keep" or not ends.codes.size:
            return table, ends, None
        kept = np.ones(len(table), dtype=np.bool_)
        kept[rows[np.isin(found.code, ends.codes)]] = False
        return table, ends, kept

    def _lacking(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return a frame that says whose records lack an individual."""
        import narwhals.stable.v2 as nw

        lacks = nw.any_horizontal(
            *map(self._absent, self._individual_keys, self.individual), ignore_nulls=True
        )
        return frame.with_columns(
            nw.when(lacks).then(nw.lit(1)).otherwise(nw.lit(0)).alias("lacks")
        )

    def summaries(self, query: Query) -> tuple[Summaries, tuple[Sentence, ...]]:
        """Return what a query needs of every pair, by one group-by, and what is doubtful."""
        needs = query.needs()
        frame = self._keyed(needs)
        spreads = self._spreads(frame, needs)
        if needs.quantile is not None:
            return self._ranked(frame, needs.quantile[1]), self._repeated
        found = self._summed(frame, needs, spreads, MOST_OF_PAIR)
        if found.owners.pair_size.max() > MOST_OF_PAIR:  # Their sums may be rounded.
            del found
            found = self._summed(frame, needs, spreads, None)
        return found, self._repeated

    def pairs(self) -> int:
        """Return the number of pairs, or a bound of it that is no more than can be collected."""
        import narwhals.stable.v2 as nw

        owners = self._owned.owners
        records = int(owners.database_size.sum())
        most = min(records, owners.databases.size * owners.individuals.size)
        if most <= MOST_PAIRS:
            return most
        pairs = self._grouped(self._keyed()).select(nw.len().alias(COUNT))
        return int(integers(self._collect(pairs), COUNT)[0])

    def reduced(self, query: Query, collect: int) -> tuple[Reduced, tuple[Sentence, ...]]:
        """Return what is known of every individual, and the pairs of those who can matter."""
        import narwhals.stable.v2 as nw
        import pyarrow as pa

        needs = query.needs()
        frame = self._keyed(needs)
        spreads = self._spreads(frame, needs)
        of = tuple(spreads[name].units(name) for name in needs.sums)
        for its_units in of:
            frame = with_parts(frame, "v0", its_units)
        parts = [f"v0p{k}" for its_units in of for k in range(len(its_units))]
        frame = self._lacking(frame)
        keys = self._database_keys + self._individual_keys
        frame = frame.group_by(*keys, "lacks").agg(
            nw.len().alias(COUNT),
            *(nw.col(name).sum().alias(f"p{k}") for k, name in enumerate(parts)),
        )

        def codes(table: pa.Table) -> Index:
            """Return numbers of databases among all of them."""
            mine = table.select(self._database_keys)
            whole = pa.concat_tables([self._database_rows, mine.cast(self._database_rows.schema)])
            found = databases_of(self._keys(whole)[0], self.every, self.empty)[0]
            return found[len(self._database_rows) :]

        pairs = Pairs(
            frame,
            COUNT,
            of[0] if of else (),
            tuple(self._database_keys),
            tuple(self._individual_keys),
            self._collect,
            codes,
            lambda table: self._keys(table)[1],
            self._owned.owners,
            self._engine,
        )
        if self.every is not None:
            pairs = pairs.joined()
        records = int(self._owned.owners.database_size.sum())
        return pairs.reduced(records, collect), self._repeated

    @cached_property
    def _database_rows(self) -> pa.Table:
        """The keys of all databases, as the engine has them."""
        keys = self._database_keys
        return self._collect(self._keyed(Needs()).select(*keys).unique()).select(keys)

    def _summed(
        self,
        frame: nw.LazyFrame[Any],
        needs: Needs,
        spreads: dict[str, Spread],
        most: int | None,
    ) -> Summaries:
        """Return sums and the like from one group-by over the pairs.

        A pair has at most so many records, if that is given; its sums then need fewer parts.
        """
        import narwhals.stable.v2 as nw

        multiplied = dict.fromkeys(name for names in needs.products for name in names)
        place = {name: f"v{k}" for k, name in enumerate(needs.numbers)}
        of = {
            place[name]: spreads[name].units(name)
            for name in dict.fromkeys((*needs.sums, *multiplied))
        }
        if multiplied:
            frame = self._centred(frame, of, [place[name] for name in multiplied])
            for k, names in enumerate(needs.products):
                one, other = (nw.col(f"{place[name]}d") for name in names)
                of[f"q{k}"] = square_units(spreads[names[0]], spreads[names[1]], names)
                frame = frame.with_columns((one * other).alias(f"q{k}"))
        records = int(self._owned.owners.database_size.sum())
        held = {name: wide(of[name], records, most) if most else of[name] for name in of}
        for name, its_units in held.items():
            frame = with_parts(frame, name, its_units)
        wanted = [f"{name}p{k}" for name, its_units in held.items() for k in range(len(its_units))]
        self._require_room(frame, len(wanted) + 2 * len(needs.extremes))
        extremes = [place[name] for name in needs.extremes]
        table = self._collect(
            self._grouped(
                frame,
                *(nw.col(name).sum() for name in wanted),
                *(nw.col(name).min().alias(f"{name}least") for name in extremes),
                *(nw.col(name).max().alias(f"{name}largest") for name in extremes),
                *([] if needs.condition is None else [nw.col("holds").sum()]),
            )
        )
        self.table.rest()
        owners = self._owners_of(table).owners
        pair, size = owners.pair, owners.pair_database.size
        owners = owners.compact()

        def column(name: str) -> Array:
            return np.asarray(table[name].to_numpy(), dtype=np.float64)

        few = owners.pair_size.max() <= (most or records)

        def summed(name: str) -> ExactSum:
            parts = []
            for k, unit in enumerate(held[name]):
                part = column(f"{name}p{k}")
                if few and not multiples(part, unit):
                    raise InvalidInputError(
                        f"{self._engine} does not add float64 by the rules of IEEE 754, so that "
                        "its sums are not exact: switch off what trades exactness for speed, or "
                        "collect the table"
                    )
                parts.append(np.bincount(pair, part, size))
            return ExactSum(held[name], tuple(parts), of[name])

        sums = {name: summed(place[name]) for name in dict.fromkeys((*needs.sums, *multiplied))}
        least = {name: np.full(size, np.inf) for name in needs.extremes}
        largest = {name: np.full(size, -np.inf) for name in needs.extremes}
        for name in needs.extremes:
            np.minimum.at(least[name], pair, column(f"{place[name]}least"))
            np.maximum.at(largest[name], pair, column(f"{place[name]}largest"))
        holding = None
        if needs.condition is not None:
            holding = np.bincount(pair, integers(table, "holds"), size).astype(np.int64)
        return Summaries(
            owners=owners,
            sums=sums,
            products={names: summed(f"q{k}") for k, names in enumerate(needs.products)},
            origins={
                name: of_name.by(owners.pair_database, owners.databases.size).origin(
                    owners.database_size
                )
                for name, of_name in sums.items()
            },
            least=least,
            largest=largest,
            holding=holding,
        )

    def _centred(
        self, frame: nw.LazyFrame[Any], of: dict[str, tuple[float, ...]], names: Sequence[str]
    ) -> nw.LazyFrame[Any]:
        """Return a frame with deviations from the origins of `ExactSum.origin`, to the bit."""
        import narwhals.stable.v2 as nw

        keys = self._database_keys
        parts = [f"{name}p{k}" for name in names for k in range(len(of[name]))]
        apart = frame
        for name in names:
            apart = with_parts(apart, name, of[name])
        means = apart.group_by(*keys).agg(
            nw.len().alias(COUNT), *(nw.col(part).sum() for part in parts)
        )
        for name in names:
            last = len(of[name]) - 1
            total = nw.col(f"{name}p{last}")
            for k in range(last - 1, -1, -1):
                total = total + nw.col(f"{name}p{k}")
            means = means.with_columns((total / nw.col(COUNT).cast(nw.Float64)).alias(f"{name}m"))
            means = with_parts(means, f"{name}m", of[name])
            origin = nw.col(f"{name}mp0")
            for k in range(1, last + 1):
                origin = origin + nw.col(f"{name}mp{k}")
            means = means.with_columns(origin.alias(f"{name}o"))
        means = means.select(*keys, *(f"{name}o" for name in names))
        return frame.join(means, on=keys, how="inner").with_columns(
            *((nw.col(name) - nw.col(f"{name}o")).alias(f"{name}d") for name in names)
        )

    def _ranked(self, frame: nw.LazyFrame[Any], q: float) -> Summaries:
        """Return the values around a quantile, from ranks within the databases."""
        import narwhals.stable.v2 as nw

        pairs = self._grouped(frame).select(nw.col(COUNT).max())
        most = float(integers(self._collect(pairs), COUNT)[0])
        database, keys = self._database_keys, self._database_keys + self._individual_keys
        # Most pairs have two rows: those below what a quantile can reach, and those above.
        self._require_room(frame, len(keys) + 5)
        rank, size = nw.col("rank"), nw.col("size")
        first = q * (size - (most + 1.0)) - MARGIN
        last = q * (size - 1.0) + most + MARGIN
        try:
            frame = frame.with_columns(
                (nw.col("v0").rank("ordinal").over(*database).cast(nw.Float64) - 1.0).alias("rank"),
                nw.len().over(*database).cast(nw.Float64).alias("size"),
            )
            frame = frame.with_columns(
                nw.when((rank >= first) & (rank <= last)).then(nw.col("v0")).alias("value"),
                (rank < first).cast(nw.Int64).alias("below"),
            )
        except (NotImplementedError, InvalidInputError, nw.exceptions.NarwhalsError) as error:
            raise InvalidInputError(
                f"a quantile needs the ranks of the records within every database, which "
                f"{self._engine} does not give ({first_line(error)}): write Parquet files and "
                f"give their path, or {IN_MEMORY}"
            ) from None
        grouped = frame.group_by(*keys, "value", "below").agg(nw.len().alias(COUNT))
        table = self._collect(grouped)
        self.table.rest()
        owners = self._owners_of(table).owners
        pair, weight = owners.pair, owners.weight
        assert weight is not None
        below = np.bincount(pair, weight * integers(table, "below"), owners.pair_database.size)
        here = np.flatnonzero(table["value"].is_valid().to_numpy())
        here = np.repeat(here, weight[here])
        values = np.asarray(table["value"].to_numpy(), dtype=np.float64)
        return Summaries(
            owners, window=Window(values[here], pair[here], below.astype(np.int64), whole=False)
        )

    # What the engine is asked

    @property
    def _lazy(self) -> nw.LazyFrame[Any]:
        assert self.table.lazy is not None
        return self.table.lazy

    @property
    def _engine(self) -> str:
        return str(self._lazy.implementation)

    def _keyed(
        self, needs: Needs | None = None, *, all_periods: bool = False, moment: bool = False
    ) -> nw.LazyFrame[Any]:
        """Return the keys as d0.. and i0.., numbers as v0.. and where the condition holds.

        Periods that are cut off and left out are among them on request, and so are the times
        themselves.
        """
        import narwhals.stable.v2 as nw

        lazy, schema = self._lazy, self._schema
        if needs is not None and self.missing == "drop":  # Counted first, to be said.
            lazy = lazy.filter(*(~self._absent(name, name) for name in self.individual))
        needs = needs or Needs()
        with self._asking():
            database = [
                periods.coarse(
                    self.clock.coarse(nw.col(name), schema[name]), schema[name], self.every
                ).alias(f"d{k}")
                for k, name in enumerate(self.database)
            ]
            individual = [nw.col(name).alias(f"i{k}") for k, name in enumerate(self.individual)]
            numbers = [
                nw.col(name).cast(nw.Float64).alias(f"v{k}")
                for k, name in enumerate(self._numeric(needs.numbers))
            ]
            condition = []
            if needs.condition is not None:
                name = needs.condition.named_column
                held = needs.condition.expression(schema)
                condition = [
                    nw.when(held).then(nw.lit(1)).otherwise(nw.lit(0)).alias("holds"),
                    nw.col(name).is_null().cast(nw.Int64).alias("lacks"),
                ]
                if needs.condition.flag:
                    self._numeric([name])
                    condition.append(nw.col(name).cast(nw.Float64).alias("flag"))
            when = [nw.col(self.database[0]).alias("moment")] if moment else []
            frame = lazy.select(*database, *individual, *numbers, *condition, *when)
            return frame if all_periods else self._whole(frame)

    def _whole(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return a frame without the periods that are cut off and left out."""
        import narwhals.stable.v2 as nw
        import pyarrow as pa

        table, _, kept = self._found
        if kept is None:
            return frame
        key, values = nw.col("d0"), table["d0"]
        types = pa.types
        in_order = types.is_temporal(values.type) or types.is_integer(values.type)
        if self.every is None or not in_order:
            return frame.filter(~key.is_in(values.filter(pa.array(~kept)).unique().to_pylist()))
        inside = values.filter(pa.array(kept)).to_pylist()
        return frame.filter((key >= nw.lit(min(inside))) & (key <= nw.lit(max(inside))))

    @property
    def _database_keys(self) -> list[str]:
        return [f"d{k}" for k in range(len(self.database))]

    @property
    def _individual_keys(self) -> list[str]:
        return [f"i{k}" for k in range(len(self.individual))]

    def _absent(self, key: str, name: str) -> nw.Expr:
        """Return whether a key of individuals is missing, whatever its column is called now."""
        import narwhals.stable.v2 as nw

        absent = nw.col(key).is_null()
        return absent | nw.col(key).is_nan() if self._schema[name].is_float() else absent

    @cached_property
    def _schema(self) -> Mapping[str, Any]:
        with self._asking():
            return self._lazy.collect_schema()

    def _numeric(self, names: Sequence[str]) -> Sequence[str]:
        """Refuse columns that hold no numbers."""
        import narwhals.stable.v2 as nw

        for name in names:
            dtype = self._schema[name]
            if name in self.table.unclear:
                raise InvalidInputError(self.table.unclear[name])
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise InputTypeError(
                    f"column {name!r} must be numeric, found values of type {dtype}"
                )
        return names

    def _grouped(self, frame: nw.LazyFrame[Any], *sums: nw.Expr) -> nw.LazyFrame[Any]:
        """Return one row for each pair of keys."""
        import narwhals.stable.v2 as nw

        keys = self._database_keys + self._individual_keys
        return frame.group_by(*keys).agg(nw.len().alias(COUNT), *sums)

    def _require_room(self, frame: nw.LazyFrame[Any], columns: int) -> None:
        """Refuse more pairs, with so many columns of numbers, than memory holds."""

        def pairs() -> int:
            import narwhals.stable.v2 as nw

            found = self._collect(self._grouped(frame).select(nw.len().alias(COUNT)))
            return int(integers(found, COUNT)[0])

        keys = len(self.database) + len(self.individual) + 1
        of = self._owned.owners
        most = min(int(of.database_size.sum()), of.databases.size * of.individuals.size)
        require_room(most, pairs, PAIR_BYTES + COLUMN_BYTES * (keys + columns))

    def _spreads(self, frame: nw.LazyFrame[Any], needs: Needs) -> dict[str, Spread]:
        """Return where the numbers lie, and refuse what is missing or not finite."""
        import narwhals.stable.v2 as nw

        asked = [nw.len().alias(COUNT)]
        for k in range(len(needs.numbers)):
            value = nw.col(f"v{k}")
            asked += [
                (value.abs() <= LARGEST).cast(nw.Int64).sum().alias(f"finite{k}"),
                value.min().alias(f"lowest{k}"),
                value.max().alias(f"highest{k}"),
                nw.when(value.abs() > 0.0).then(value.abs()).min().alias(f"smallest{k}"),
            ]
        if needs.condition is not None:
            asked.append(nw.col("lacks").sum())
            if needs.condition.flag:
                flag = nw.col("flag")
                asked.append(((flag == 0.0) | (flag == 1.0)).cast(nw.Int64).sum().alias("flags"))
        if len(asked) == 1:
            return {}
        found = self._collect(frame.select(*asked)).to_pylist()[0]
        records = found[COUNT]
        for k, name in enumerate(needs.numbers):
            if (bad := records - (found[f"finite{k}"] or 0)) > 0:
                value = nw.col(f"v{k}")
                self._refuse(frame, f"v{k}", value.is_null() | ~(value.abs() <= LARGEST), name, bad)
        if needs.condition is not None:
            name = needs.condition.named_column
            if found["lacks"]:
                self._refuse(frame, None, nw.col("lacks") == 1, name, found["lacks"])
            if needs.condition.flag and (found["flags"] or 0) < records:
                flag = nw.col("flag")
                table = self._first(frame, ~((flag == 0.0) | (flag == 1.0)), "flag")
                raise InvalidInputError(
                    "Proportion without a comparison needs a column of zeros and ones, "
                    f"{name!r} has {table['flag'][0].as_py():g} in {self._show(table)}"
                )
        return {
            name: Spread(
                records, found[f"lowest{k}"], found[f"highest{k}"], found[f"smallest{k}"] or 0.0
            )
            for k, name in enumerate(needs.numbers)
        }

    def _refuse(
        self, frame: nw.LazyFrame[Any], value: str | None, bad: nw.Expr, name: str, count: int
    ) -> None:
        table = self._first(frame, bad, *([] if value is None else [value]))
        found = None if value is None else table[value][0].as_py()
        what = "a missing value" if found is None else f"the value {found}"
        raise InvalidInputError(
            f"column {name!r} has {what} in {self._show(table)} ({count} of "
            f"{self._owned.owners.database_size.sum()} records are missing or not finite)"
        )

    def _first(self, frame: nw.LazyFrame[Any], bad: nw.Expr, *values: str) -> pa.Table:
        keys = self._database_keys + self._individual_keys
        return self._collect(frame.filter(bad).select(*keys, *values).head(1))

    def _show(self, table: pa.Table) -> str:
        """Return where the first row belongs, for messages."""
        database, individual = self._keys(table.slice(0, 1))
        lacking = any(key.missing[0] for key in individual)
        name = POOLED if lacking else combined(individual)[1][0]
        period = combined(self._periods(database))[1][0]
        return f"database {labels.show(period)}, individual {labels.show(name)}"

    def _periods(self, database: list[Key]) -> list[Key]:
        if self.every is None:
            return database
        return [Key(k.name, periods.starts(k.column, self.every, k.name)) for k in database]

    @cached_property
    def _repeated(self) -> tuple[Sentence, ...]:
        """Return a warning of records that repeat another one, or that this was not looked at."""
        import narwhals.stable.v2 as nw

        records = int(self._owned.owners.database_size.sum())
        found = None
        if records <= MOST_COMPARED:
            names = self._lazy.collect_schema().names()
            copies = self._lazy.group_by(*names).agg(nw.len().alias(COPIES))
            copies = copies.filter(nw.col(COPIES) > 1)
            try:
                found = self._collect(copies)
            except InvalidInputError:  # A column of lists, say, cannot be grouped by.
                found = None
        if found is None:
            return (
                Sentence(
                    f"whether some of the {records:,} records repeat another one was not looked "
                    "at, because they stay where they are: make sure that none is there twice"
                ),
            )
        if not len(found):
            return ()
        return (self._said_of_copies(found),)

    def _said_of_copies(self, found: pa.Table) -> Sentence:
        """Return the warning of the records that are there more than once."""
        names = [*self.database, *self.individual]
        keys = self._database_keys + self._individual_keys
        database, individual = self._keys(found.select(names).rename_columns(keys))
        known = np.flatnonzero(~np.logical_or.reduce([key.missing for key in individual]))
        copies = int(integers(found, COPIES).sum()) - len(found)
        whose: list[Any] = []
        if known.size:
            whose_code, whom = combined([key.take(known) for key in individual])
            when_code, when = combined(self._periods([key.take(known) for key in database]))
            first = np.lexsort([when_code, whose_code])[0]
            whose = [
                ", as of individual ",
                name_of(whom, int(whose_code[first])),
                f" in database {labels.show(when[when_code[first]])}",
            ]
        return Sentence(f"{copies:,} record(s) repeat another one exactly", *whose, COPIED)

    # What comes back

    def _collect(self, frame: nw.LazyFrame[Any]) -> pa.Table:
        """Return the rows of a small frame; an engine's failure is an error of ours."""
        import narwhals.stable.v2 as nw
        import pyarrow as pa

        with self._asking():
            names = frame.collect_schema().names()
            if frame.implementation.is_polars():
                eager = frame.collect(backend=nw.Implementation.POLARS, engine="streaming")
            else:
                eager = frame.collect()
            table = eager.to_arrow().select(names)
        pa.default_memory_pool().release_unused()
        return table

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (EdpBayesError, MemoryError):
            raise
        except Exception as error:
            raise InvalidInputError(
                f"{self._engine} could not answer: {type(error).__name__}: {first_line(error)}"
            ) from error

    def _keys(self, table: pa.Table) -> tuple[list[Key], list[Key]]:
        import narwhals as nw

        frame = nw.from_native(table, eager_only=True)
        held = set(table.column_names)
        database = [
            Key.of(frame, f"d{k}", name) for k, name in enumerate(self.database) if f"d{k}" in held
        ]
        if self.every is not None and database:
            zone = getattr(self._schema[self.database[0]], "time_zone", None)
            zone = zone and (self.clock.time_zone or zone)
            database = [replace(k, column=periods.in_zone(k.column, zone)) for k in database]
        database = [self.clock.converted(key) for key in database]
        individual = [
            Key.of(frame, f"i{k}", name)
            for k, name in enumerate(self.individual)
            if f"i{k}" in held
        ]
        return database, individual

    def _owners_of(self, table: pa.Table) -> Owned:
        """Return whose the rows of a group-by are."""
        owned = self._own(*self._keys(table), integers(table, COUNT))
        now, before = (int(of.owners.database_size.sum()) for of in (owned, self._owned))
        if now != before:
            raise InvalidInputError(
                f"the table has {now:,} records now and had {before:,} when it was opened: open it "
                "again, and let nobody write to it meanwhile"
            )
        return owned
