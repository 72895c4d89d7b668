"""Databases of records, from which a query's leave-one-out responses are computed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.cut_off import PARTIAL
from edp_bayes.records.doubtful_labels import doubtful_labels, sums_of_others
from edp_bayes.records.engine import EngineSource
from edp_bayes.records.ownership import Ownership
from edp_bayes.records.owning import EMPTY, MISSING
from edp_bayes.records.periods import EVERY
from edp_bayes.records.query import Query
from edp_bayes.records.remainder import DEFAULT, MOST_PAIRS, reduced_pairs
from edp_bayes.records.sources import Source, SubsampleSource, TableSource, array_source
from edp_bayes.records.summaries import Summaries
from edp_bayes.responses.responses import (
    Responses,
    frames_of_our_own,
    require_databases,
    require_noise,
)
from edp_bayes.responses.rounding import FOUND, coarse_step
from edp_bayes.tables.clocks import AS_IT_IS, Clock
from edp_bayes.tables.reading import Reading
from edp_bayes.tables.tables import open_table, refuse_lacking
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    import xarray as xr
    from scipy.sparse import csc_array

__all__ = ["Databases"]


@dataclass(frozen=True, eq=False)
class Databases:
    """Databases of records, validated and read when a query needs them.

    Make one with `from_table`, `from_xarray` or `subsamples`. Only the keys are read at once;
    cost and memory follow the number of records, never databases times individuals.

    Attributes
    ----------
    database : ndarray
        Labels of the n databases, sorted, so that weeks or years stay in order of time.
    individual : ndarray
        Labels of the m individuals that own a record somewhere, sorted; tuples for compound keys.
    warnings : tuple of str
        What is legal but doubtful about the keys; each was also a warning.
    too_fine : str
        What makes the databases look like moments rather than periods; empty if nothing does.

    Raises
    ------
    InvalidInputError
        If there are fewer than 8 databases or fewer than 2 individuals.

    See Also
    --------
    respond : the responses of a query
    Responses : responses and contributions
    edp_bayes.queries.Query : what every query offers
    edp_bayes.data.load_cdnow_weeks : example data, 65 whole weeks

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from edp_bayes import queries
    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({
    ...     "week": np.repeat(np.arange(30), 4),
    ...     "client": np.tile(["a", "b", "c", "d"], 30),
    ...     "kwh": rng.gamma(2.0, size=120),
    ... })
    >>> databases = Databases.from_table(table, database="week", individual="client")
    >>> databases
    Databases(30 databases, 4 individuals)
    >>> databases.respond(queries.Mean("kwh"))
    Responses(mean:kwh: 30 databases, 4 individuals, 120 contributions)
    """

    _source: Source
    database: NDArray[Any] = field(init=False)
    individual: NDArray[Any] = field(init=False)
    warnings: tuple[str, ...] = field(init=False)
    too_fine: str = field(init=False)

    def __post_init__(self) -> None:
        owners = self._source.owners
        require_databases(owners.databases.size)
        _require_two(owners)
        object.__setattr__(self, "database", owners.databases)
        object.__setattr__(self, "individual", owners.individuals)
        object.__setattr__(self, "too_fine", self._source.too_fine)
        alike = doubtful_labels(owners.individuals, owners.individual_size)
        alike += doubtful_labels(owners.databases, owners.database_size, of="database")
        object.__setattr__(self, "warnings", self._source.warnings + alike)
        _warn(self.warnings)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        database: str | Sequence[str],
        individual: str | Sequence[str],
        database_every: str | None = None,
        empty: str | None = None,
        missing: str = "error",
        date_format: str | None = None,
        time_zone: str | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: str | None = None,
        partial: str = "keep",
    ) -> Databases:
        """Return the databases of a table with one row for each record.

        Parameters
        ----------
        table : dataframe, str or Path
            Any eager or lazy dataframe that Narwhals supports (pandas, Polars, PyArrow, DuckDB,
            Ibis, Dask, Spark and others), a PyArrow data set, or the path of files: Parquet, text
            (.csv, .tsv, .txt, compressed as .gz or .zip) or an Excel workbook of one sheet (.xlsx,
            with the extra "excel"); one, several, a folder, a pattern, a place such as
            s3://bucket/folder, or "-" for standard input. Lazy tables
            stay in their engine, and Parquet files of more than five million records, or CSV files
            of more than 300 MB, in DuckDB:
            these group the records for every query, and only a row for each individual in each
            database comes back. Smaller files are read anew for every query, in the columns
            needed. The columns of a CSV file are
            typed by what they hold; one with numbers such as 007 stays text, and so does a key
            column in which two spellings, such as 2023.1 and 2023.10, would be one number.
        database, individual : str or sequence of str
            Key column, or the columns of a compound key.
        database_every : {"hour", "day", "week", "month", "quarter", "year"}, optional
            The database column holds dates or times, and each period of the calendar is one
            database, labelled by its start. The calendar is that of the column's time zone, in
            which the hour that the end of summer time repeats is two hours; weeks begin on
            Mondays. Text may be dates or times, such as 2024-03-31, 31.03.2024 or
            2024-03-31T10:00:00+02:00, whose day is the one that is written.
        empty : {"drop", "zero", "error"}, optional
            What becomes of a period without any record, where dates, whole numbers, codes such as
            202407, 2024-W05 (an ISO week) or 2024-Q3, or `database_every` show that there should
            be one: it is left out; it is a database whose sum and count are zero, which other
            queries refuse; or it is refused. The first two have a warning, and "zero" is refused
            where more than half of the databases would have no record, as after a mistyped year.
            Without it such periods are left out, too, and a period that stands far from all others
            is refused, which "drop" keeps as a database, with a warning.
            Periods are not looked for, and no warning is given, where keys are other text or
            compound, such as year and week.
        missing : {"error", "drop", "pool"}
            What becomes of records whose individual is missing: they are refused; left out, so
            that what is audited is not what is published; or pooled as the individual
            "(missing)", whose risk is that of all of them together. Both have a warning.
        date_format : str, optional
            How the text of the database column is a date, as for `datetime.strptime`: "%d.%m.%Y".
            Or "unix", "unix_ms" or "unix_us" for seconds, milliseconds or microseconds since
            1970. It is found where it is plain: 03/04/2024 alone is not.
        time_zone : str, optional
            Zone such as "Europe/Berlin" in whose calendar the times of the database column lie,
            where they have a zone or an offset or are counted since 1970; else their own, or UTC.
            Offsets of more than one clock need it.
        separator, decimal, thousands : str, optional
            What stands between the values of a text file, such as ";" or "tab", the decimal mark,
            "." or ",", and the mark between thousands, one of . , ' and a blank. Found where they
            are plain, which the result's settings say; refused where 1,234 may be two numbers.
            Keys stay as they are spelt.
        encoding : str, optional
            Encoding of a text file, such as "cp1252"; UTF-8 and UTF-16 are found.
        partial : {"keep", "drop"}
            What becomes of a first or last period that looks cut off: its records begin or end
            well inside it, by the days or hours that other periods reach, or are less than half as
            many as in its neighbours and fewer than chance explains. It is kept or left out, both
            with a warning. Looked at where keys are periods, as for `empty`.

        Raises
        ------
        InvalidInputError
            If a column is unknown, the table is empty, a key is missing, mixes types or holds
            numbers that cannot be distinguished, a file cannot be read, a period without records is
            refused or not known, or there are fewer than 8 databases or 2 individuals.
        InputTypeError
            If the table is of an unknown type or a column cannot be a key.

        Warns
        -----
        EdpBayesWarning
            If databases have so few records each that a longer period may be meant, periods have
            no record or are cut off, records no individual, or labels look like damage (such as
            "nan" or 1.23457E+15) or differ by case, blanks and the like alone. It stands in the
            responses, too.

        See Also
        --------
        from_xarray : databases from an array
        respond : the responses of a query

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> days = pd.date_range("2024-01-01", periods=140, freq="D")
        >>> table = pd.DataFrame({"day": days.repeat(3), "client": ["a", "b", "c"] * 140})
        >>> Databases.from_table(
        ...     table, database="day", individual="client", database_every="week"
        ... )
        Databases(20 databases, 3 individuals)
        """
        database, individual = _names(database, "database"), _names(individual, "individual")
        if database_every is not None:
            validate.choice(database_every, EVERY, "database_every")
        if empty is not None:
            validate.choice(empty, EMPTY, "empty")
        validate.choice(missing, MISSING, "missing")
        validate.choice(partial, PARTIAL, "partial")
        clock = Clock(database_every, date_format, time_zone)
        if len(database) > 1:
            clock = _no_clock(clock, database)
        reading = Reading(database, clock, separator, decimal, thousands, encoding)
        source = open_table(table, database + individual, reading)
        source.require(database + individual)
        _refuse_overlap(database, individual)
        clock = replace(clock, date_format=None) if source.dated else clock
        kind = TableSource if source.lazy is None else EngineSource
        made = kind(source, database, individual, database_every, empty, missing, clock, partial)
        return cls(made)

    @classmethod
    def from_xarray(
        cls,
        array: xr.DataArray,
        *,
        database: str | Sequence[str],
        individual: str | Sequence[str],
    ) -> Databases:
        """Return the databases of an array with one value for each database and individual.

        NaN means that the individual is absent from the database. Individuals that are absent
        from all databases are left out. The value column is named after the array, or "value".

        Parameters
        ----------
        array : xarray.DataArray
            Numeric values.
        database, individual : str or sequence of str
            Its dimensions; individuals are the cells of several dimensions, labelled by tuples.

        Raises
        ------
        InvalidInputError
            If the dimensions disagree, a value is infinite, a coordinate is repeated, a database
            has no value, or there are fewer than 8 databases or 2 individuals.
        InputTypeError
            If it is not a numeric DataArray.

        See Also
        --------
        from_table : databases from records
        respond : the responses of a query

        Examples
        --------
        >>> import numpy as np, xarray as xr
        >>> rain = xr.DataArray(
        ...     np.random.default_rng(1).gamma(2.0, size=(30, 2, 3)),
        ...     dims=("year", "lat", "lon"), coords={"lat": [40.0, 42.5]},
        ... )
        >>> databases = Databases.from_xarray(rain, database="year", individual=("lat", "lon"))
        >>> databases.individual[0]
        (40.0, 0)
        """
        databases, individuals = _names(database, "database"), _names(individual, "individual")
        _refuse_overlap(databases, individuals)
        return cls(array_source(array, databases, individuals))

    @classmethod
    def subsamples(
        cls,
        table: Any,
        *,
        individual: str | Sequence[str],
        size: int,
        count: int,
        random_seed: int | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: str | None = None,
    ) -> Databases:
        """Return random subsets of the individuals of one table, each with all their records.

        Parameters
        ----------
        table : dataframe, str or Path
            As for `from_table`, without databases.
        individual : str or sequence of str
            Key column or columns.
        size : int
            Individuals in each subset, drawn without replacement; fewer than there are.
        count : int
            Number of subsets, labelled 0..count-1.
        random_seed : int, optional
            Seed of the draws; subset k is the same whatever the count.
        separator, decimal, thousands, encoding : str, optional
            As for `from_table`.

        Raises
        ------
        InvalidInputError
            As for `from_table`, or if `size` is not below the number of individuals.

        See Also
        --------
        from_table : databases from records
        audit : audit a query
        """
        individual = _names(individual, "individual")
        reading = Reading((), AS_IT_IS, separator, decimal, thousands, encoding)
        source = open_table(table, individual, reading)
        source.require(individual)
        size = validate.positive_integer(size, "size")
        count = validate.positive_integer(count, "count")
        require_databases(count)
        entropy = np.random.SeedSequence(validate.seed(random_seed)).entropy
        return cls(SubsampleSource(source, individual, size, count, entropy))

    @property
    def n_databases(self) -> int:
        """Number n of databases."""
        return int(self.database.size)

    @property
    def n_individuals(self) -> int:
        """Number m of individuals."""
        return int(self.individual.size)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self._source.columns

    def respond(
        self,
        query: Query | Callable[..., Any],
        *,
        noise: GaussianNoise | LaplaceNoise | None = None,
        step: float | str | None = FOUND,
        samples: int | None = None,
        random_seed: int | None = None,
        workers: int | None = None,
        progressbar: bool = True,
        collect: int | None = None,
        transform: Any = None,
        atoms: ArrayLike | str | None = None,
    ) -> Responses:
        """Return the responses of a query with and without every individual.

        Parameters
        ----------
        query : Query or callable
            A query of `edp_bayes.queries`, or a callable that takes one database as a dataframe
            of the table's own library (pandas for files and xarray, what Narwhals collects for
            lazy tables) and returns a number. A callable is run again without each individual
            present, in threads.
        noise : GaussianNoise or LaplaceNoise, optional
            Distribution of noise that the release adds to the query: it is kept, not drawn.
        step : float, optional
            Answers are rounded to a grid of this step, see `Responses`. By default that of a count,
            or of a share of as many records in every database, where it is coarse, or what is found
            from the answers; None treats them as continuous.
        samples : int, optional
            The callable is randomised: it is called with a dataframe and a
            `numpy.random.Generator`, this often for every database, with the same stream with
            and without an individual.
        random_seed : int, optional
            Seed of a randomised callable; the number of workers does not change the responses.
        workers : int, optional
            Threads that run a callable; by default one for each processor.
        progressbar : bool
            Show progress where a callable takes longer than two seconds.
        collect : int, optional
            How many individuals' contributions are collected at most, those who can matter most by
            the number of their databases and their largest contribution. Of all others a few sums
            are known, from which how they contribute is drawn as if all were collected, and their
            risks are bounded, not evaluated (`edp_bayes.audit` says by how much). For `Count` and
            `Sum`. All are collected if not given, but of tables in an engine with more than
            50,000,000 pairs of a database and an individual 100,000 individuals', with a warning;
            the number of individuals or more collects all in any case.
        transform : {"log", "logit", "sqrt"} or pair of callables, optional
            The scale on which the answers are modelled, see `Responses`.
        atoms : array_like of float or "found", optional
            Values that the answer has again and again, such as 0 or a cap, see `Responses`.

        Raises
        ------
        InvalidInputError
            If a column is unknown, a value is missing or not finite, the query has no value
            without an individual, a callable fails, an engine fails or cannot answer the query, or
            the responses are not valid.
        InputTypeError
            If a column or a callable's value is not numeric, or the query of an unknown type.

        See Also
        --------
        audit : audit a query
        answers : the answers alone
        Responses : responses and contributions
        """
        require_noise(noise)
        if workers is not None:
            validate.positive_integer(workers, "workers")
        if collect is not None:
            collect = validate.positive_integer(collect, "collect")
            if not (isinstance(query, Query) and query.additive):
                raise InvalidInputError(
                    "collect is for Count and Sum, whose answers are sums over individuals: "
                    f"{getattr(query, '__name__', query)} needs the contributions of everybody, "
                    "so leave collect out"
                )
        if isinstance(query, type):
            raise InputTypeError(
                f"query must be one of edp_bayes.queries or a callable, found the class "
                f"{query.__name__}; make one, {query.__name__}(...)"
            )
        if isinstance(query, Query):
            if samples is not None or random_seed is not None:
                raise InvalidInputError(
                    f"samples and random_seed are for a randomised callable, {query} is not "
                    "randomised; give the distribution of added noise as noise="
                )
            fewer, said = self._fewer(query, collect)
            if fewer is not None:
                return self._reduced(query, fewer, said, noise, step, transform, atoms)
            query, summaries, found = self._read(query)
            owners = summaries.owners
            with np.errstate(all="ignore"):  # Responses refuses whatever is not finite.
                response, contribution = query.leave_one_out(summaries)
                found += tuple(map(Sentence, query.warnings(response, owners, contribution)))
                if query.additive:
                    found += sums_of_others(owners, response, contribution)
            del summaries  # They may be as large as what follows.
            _warn(found)
            name = str(query)
            ask = Asking(self, query)
        elif callable(query):
            from edp_bayes.records.rerun import rerun

            records, found = self._source.read(None), ()
            owners = records.owners
            response, contribution = rerun(
                query,
                records,
                samples=_samples(samples, random_seed),
                random_seed=validate.seed(random_seed),
                workers=workers,
                progressbar=progressbar,
            )
            name = getattr(query, "__qualname__", repr(query))
            ask = None
        else:
            raise InputTypeError(
                f"query must be one of edp_bayes.queries or a callable, found {query!r}"
            )
        step = _step(step, query, owners, response, noise)
        return Responses(
            response=response,
            contribution=_matrix(contribution, owners, samples or 1),
            individual=owners.individuals,
            database=owners.databases,
            presence=owners.presence,
            samples=samples or 1,
            noise=noise,
            query=name,
            additive=isinstance(query, Query) and query.additive,
            ask=ask,
            step=step,
            transform=transform,
            atoms=atoms,
            warnings=self.warnings + found,
            read_as=self._source.read_as,
            identifier=self._identifier,
            partial=self._source.partial,
        )

    def contributions(self, query: Query) -> tuple[Ownership, csc_array[np.float64]]:
        """Return who there is, and what each contributes to a sum or count.

        The matrix has shape (database, individual). Unlike those of `respond` the answers may be
        constant.
        """
        query, summaries, _ = self._read(query)
        with np.errstate(all="ignore"):
            _, contribution = query.leave_one_out(summaries)
        return summaries.owners, _matrix(contribution, summaries.owners, 1)

    def answers(
        self, query: Query, *, individuals: Iterable[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return what a query answers on every database, or on the records of some individuals.

        Parameters
        ----------
        query : Query
            A query of `edp_bayes.queries`.
        individuals : iterable, optional
            Labels of individuals; all if not given.

        Returns
        -------
        ndarray
            Shape (n,); where these have no record, the mean of the other databases.

        Raises
        ------
        InvalidInputError
            If a column is unknown, an individual is, or none of them has a record.

        See Also
        --------
        respond : the responses of a query
        edp_bayes.queries.Query : what every query offers
        """
        query, found, _ = self._read(query)
        if individuals is None:
            return query.leave_one_out(found)[0]
        owners, wanted = found.owners, set(individuals)
        chosen = np.array([name in wanted for name in owners.individuals.tolist()], dtype=bool)
        if chosen.sum() < len(wanted):
            name = next(iter(wanted.difference(owners.individuals.tolist())))
            raise InvalidInputError(
                f"unknown individual {labels.show(name)}; there are "
                f"{labels.show_some(owners.individuals)}"
            )
        some = found.of_some(chosen[owners.pair_individual])
        answers, _ = query.leave_one_out(some)
        out = np.full(owners.databases.size, float(answers.mean()))
        out[np.unique(owners.pair_database[chosen[owners.pair_individual]])] = answers
        return out

    def _fewer(self, query: Query, collect: int | None) -> tuple[int | None, tuple[Sentence, ...]]:
        """Return how many individuals' contributions are collected, None for all, and why."""
        if collect is not None or not query.additive or not isinstance(self._source, EngineSource):
            all_of_them = collect is None or collect >= self.n_individuals
            return (None, ()) if all_of_them else (collect, ())
        pairs = self._source.pairs()
        if pairs <= MOST_PAIRS or self.n_individuals <= DEFAULT:
            return None, ()
        return DEFAULT, (
            Sentence(
                f"{pairs:,} pairs of a database and an individual are more than {MOST_PAIRS:,}: "
                f"the contributions of {DEFAULT:,} individuals are collected, and the risks of all "
                "others are bounded; collect= (--collect) says of how many"
            ),
        )

    def _reduced(
        self,
        query: Query,
        collect: int,
        said: tuple[Sentence, ...],
        noise: GaussianNoise | LaplaceNoise | None,
        step: float | str | None,
        transform: Any,
        atoms: ArrayLike | str | None,
    ) -> Responses:
        """Return responses with the contributions of some individuals."""
        query = self._resolved(query)
        if isinstance(self._source, EngineSource):
            found, doubts = self._source.reduced(query, collect)
            owners, response, contribution = found.owners, found.response, found.contribution
            presence, remainder = found.presence, found.remainder
        else:
            summaries, doubts = self._source.summaries(query)
            owners = summaries.owners
            with np.errstate(all="ignore"):  # Responses refuses whatever is not finite.
                response, every = query.leave_one_out(summaries)
            presence = owners.presence
            collected, remainder = reduced_pairs(owners, response, every, collect)
            owners, contribution = _of_some(owners, every, collected)
        doubts = (*doubts, *said, *sums_of_others(owners, response, contribution))
        _warn(doubts)
        return Responses(
            response=response,
            contribution=_matrix(contribution, owners, 1),
            individual=owners.individuals,
            database=owners.databases,
            presence=presence,
            noise=noise,
            query=str(query),
            additive=query.additive,
            ask=Asking(self, query),
            step=_step(step, query, owners, response, noise),
            transform=transform,
            atoms=atoms,
            warnings=self.warnings + doubts,
            identifier=self._identifier,
            remainder=remainder,
            read_as=self._source.read_as,
            partial=self._source.partial,
        )

    @property
    def _identifier(self) -> str:
        """The key of individuals, in words; empty of an array."""
        return ", ".join(map(str, getattr(self._source, "individual", ())))

    def _resolved(self, query: Query) -> Query:
        """Return a query whose columns are known to be there."""
        query = query.resolve(self._source.value_columns)
        for name in query.columns():
            if name not in self.columns:
                raise InvalidInputError(
                    f"{query} needs a column {name!r}; the columns are "
                    + ", ".join(map(str, self.columns))
                )
        refuse_lacking(query.columns(), self._source.lacking)
        return query

    def _read(self, query: Query) -> tuple[Query, Summaries, tuple[str, ...]]:
        query = self._resolved(query)
        found, warned = self._source.summaries(query)
        empty = np.flatnonzero(found.owners.database_size == 0)
        if empty.size and not query.answers_nothing:
            raise InvalidInputError(
                f"empty='zero' is for sums and counts: {query} has no value where there are no "
                f"records, as in database {labels.show(self.database[empty[0]])} ({empty.size:,} "
                "of them); empty='drop' leaves such periods out"
            )
        return query, found, warned

    def __repr__(self) -> str:
        """Return the sizes."""
        return f"Databases({self.n_databases} databases, {self.n_individuals} individuals)"


@dataclass(frozen=True)
class Asking:
    """Asks queries of databases again, see `Responses.ask`."""

    databases: Databases
    query: Query

    def __call__(
        self, query: Query | None, individuals: Iterable[Any] | None
    ) -> NDArray[np.float64]:
        """Return what a query answers on the records of some individuals, or of all."""
        return self.databases.answers(query or self.query, individuals=individuals)


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, EdpBayesWarning, stacklevel=frames_of_our_own())


def _names(value: str | Sequence[str], what: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"{what} must be a name or a sequence of names, found {value!r}")
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"{what} must name at least one key, each once, found {value!r}")
    return tuple(names)


def _no_clock(clock: Clock, database: tuple[str, ...]) -> Clock:
    """Return that of compound keys, which are no times, and refuse what would make them such."""
    for name in ("date_format", "time_zone"):
        if getattr(clock, name) is not None:
            raise InvalidInputError(
                f"{name}= (--{name.replace('_', '-')}) is for one key column of times, found "
                f"{', '.join(map(repr, database))}"
            )
    return AS_IT_IS


def _refuse_overlap(database: tuple[str, ...], individual: tuple[str, ...]) -> None:
    both = [name for name in individual if name in database]
    if both:
        raise InvalidInputError(f"{both[0]!r} cannot be a key of databases and of individuals")


def _require_two(owners: Ownership) -> None:
    if owners.individuals.size < 2:
        raise InvalidInputError(
            f"at least 2 individuals are needed, found only {labels.show(owners.individuals[0])}: "
            "without it every database is empty"
        )


def _samples(samples: int | None, random_seed: int | None) -> int | None:
    if samples is not None:
        return validate.positive_integer(samples, "samples")
    if random_seed is not None:
        raise InvalidInputError("random_seed needs samples: the query is not randomised without")
    return None


def _step(
    asked: float | str | None,
    query: Any,
    owners: Ownership,
    response: Array,
    noise: GaussianNoise | LaplaceNoise | None,
) -> float | str | None:
    """Return the step of the grid of the answers: what is asked for, or that of the query."""
    if asked != FOUND or noise is not None or not isinstance(query, Query):
        return asked
    own = query.step(owners)
    return FOUND if own is None else coarse_step(own, response)


def _of_some(
    owners: Ownership, contribution: Array, collected: NDArray[np.bool_]
) -> tuple[Ownership, Array]:
    """Return the pairs of some individuals, among all of them, and their contributions."""
    pairs = np.flatnonzero(collected[owners.pair_individual])
    some = Ownership(
        owners.pair_database[pairs],
        owners.pair_individual[pairs],
        owners.databases,
        owners.individuals,
        owners.pair_size[pairs],
    )
    found = np.empty(pairs.size)
    found[some.pair] = contribution[pairs]
    return some, found


def _matrix(contribution: Array, owners: Ownership, samples: int) -> csc_array[np.float64]:
    """Return contributions of pairs, shape (pair,) or (pair, samples), as rows by individuals."""
    from scipy.sparse import csc_array

    rows = owners.pair_database[:, None] * samples + np.arange(samples)
    columns = np.concatenate([[0], np.cumsum(owners.presence) * samples])
    shape = (owners.databases.size * samples, owners.individuals.size)
    return csc_array((contribution.ravel(), rows.ravel(), columns), shape=shape)
