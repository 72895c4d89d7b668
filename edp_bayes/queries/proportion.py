"""The share of records that satisfy a condition."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries.base import ColumnQuery
from edp_bayes.records.in_memory import IN_MEMORY
from edp_bayes.records.ownership import Ownership, Records
from edp_bayes.records.summaries import Needs, Summaries
from edp_bayes.responses.rounding import coarse_step
from edp_bayes.tables import arrow_columns
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.stable.v2 import Expr

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
EQUALITIES = ("==", "!=")
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Proportion(ColumnQuery):
    """Share of the records that satisfy a condition.

    Parameters
    ----------
    column : str, optional
        Without a comparison a boolean column, or one of zeros and ones.
    comparison : {">=", "<=", "==", "!=", ">", "<"}, optional
        How to compare the column.
    value : int, float, Decimal, bool, str, date or datetime, optional
        What to compare it with. Text is read as the column's type, so "40" suits a numeric and
        "2024-01-31" a date column. Numbers are compared in the column's own precision, ordered
        categories by their order, text by the alphabet.

    Raises
    ------
    InvalidInputError
        If the comparison is unknown, or given without a value or the reverse; when asked, if
        the value is none of the ordered categories.
    InputTypeError
        When asked, if the column's type has no such comparison with the value: text is neither
        above nor below a number.

    See Also
    --------
    Count : the number of records
    edp_bayes.statistical_privacy.PropertyQuery : the share of entries with a property
    edp_bayes.audit_property : the probability of a property from data

    Examples
    --------
    >>> str(Proportion("age", ">=", 40))
    'proportion:age>=40'
    """

    comparison: str | None = None
    value: int | float | Decimal | bool | str | date | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        value: object = self.value
        if isinstance(value, np.integer | np.floating | np.bool_):
            object.__setattr__(self, "value", value.item())
        if (self.comparison is None) != (self.value is None):
            raise InvalidInputError(
                "Proportion needs a comparison and a value together, found "
                f"{self.comparison!r} and {self.value!r}"
            )
        if self.comparison is not None:
            validate.choice(self.comparison, COMPARISONS, "comparison")

    def needs(self) -> Needs:
        """Return how many records satisfy the condition."""
        return Needs(condition=self)

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return shares and c = (k_i N - n_i K) / (N (N - n_i)), in exact integers above."""
        owners, own = found.owners, found.holding
        assert own is not None
        owners.require_remaining(1, "Proportion")
        databases = owners.databases.size
        total = np.bincount(owners.pair_database, own, databases).astype(np.int64)
        size = owners.database_size[owners.pair_database]
        above = own * size - owners.pair_size * total[owners.pair_database]
        return total / owners.database_size, above / (size * owners.remaining.astype(np.float64))

    def step(self, owners: Ownership) -> float | None:
        """Return one over the number of records, where all databases have as many."""
        size = owners.database_size
        return 1.0 / float(size[0]) if (size == size[0]).all() else None

    def warnings(self, response: Array, owners: Ownership, contribution: Array) -> tuple[str, ...]:
        """Return what is assumed of answers on a coarse grid: without an individual it is another.

        An exact fraction k / (N - n_i) shows by itself that records are missing.
        """
        size = owners.database_size
        if coarse_step(1.0 / float(np.median(size)), response) is None:
            return ()
        if (size == size[0]).all():
            return (
                f"shares of {size[0]} records are taken to be published as multiples of "
                f"1/{size[0]}, with and without an individual: an exact fraction of fewer records "
                "shows by itself that some are missing",
            )
        return (
            f"shares of {size.min()} to {size.max()} records lie on a grid of their own in every "
            "database, and on another without an individual: they are treated as continuous, and "
            "the exact fraction says more than that. Publish fewer digits, and audit these by "
            "released(rounded_to=...)",
        )

    def __str__(self) -> str:
        """Return the command-line form."""
        if self.comparison is None:
            return super().__str__()
        return f"proportion:{self.column or ''}{self.comparison}{self.value}"

    @property
    def flag(self) -> bool:
        """Whether the column itself is the condition, by zeros and ones."""
        return self.comparison is None

    def expression(self, schema: Mapping[str, Any]) -> Expr:
        """Return the condition as an expression of an engine.

        Raises
        ------
        InputTypeError
            If the column's type has no such comparison with the value.
        """
        import narwhals.stable.v2 as nw

        column, dtype = self.named_column, schema[self.named_column]
        values = nw.col(column)
        if self.comparison is None:
            return values.cast(nw.Float64) == 1.0
        compare: Callable[[Any, Any], Expr] = COMPARISONS[self.comparison]
        if dtype in (nw.Categorical, nw.Enum):
            if self.comparison not in EQUALITIES:
                raise InputTypeError(
                    f"categories such as those of column {column!r} are compared by their order "
                    f"only in memory: {IN_MEMORY}"
                )
            return compare(values.cast(nw.String), str(self.value))
        if dtype.is_integer():
            return _of_integers(values, self.comparison, self._number(column, np.dtype(np.int64)))
        if dtype.is_numeric():
            kind = np.dtype(np.float32 if dtype == nw.Float32 else np.float64)
            return compare(values.cast(nw.Float64), float(self._number(column, kind)))
        if dtype == nw.Date or dtype == nw.Datetime:
            return self._of_times(values, dtype)
        return compare(values, self._comparable_value(dtype))

    def holds(self, records: Records) -> NDArray[np.bool_]:
        """Return of which records the condition holds."""
        column = self.named_column
        if self.comparison is None:
            return _zeros_and_ones(records, column)
        compare = COMPARISONS[self.comparison]
        series = records.complete(column)
        coded = arrow_columns.categories(series)
        if coded is not None:
            if coded.type.ordered and self.comparison not in EQUALITIES:
                codes = coded.indices.to_numpy(zero_copy_only=False)
                return np.asarray(compare(codes, self._rank(column, coded.dictionary)))
            series = arrow_columns.of_values(coded.dictionary_decode())
        if series.dtype.is_numeric():
            values = records.values(column) if coded is None else series.to_numpy()
            return np.asarray(compare(values, self._number(column, values.dtype)))
        series, value = self._comparable(series, column)
        return np.asarray(compare(series, value).to_numpy(), dtype=np.bool_)

    def _number(self, column: str, dtype: np.dtype[Any]) -> Any:
        """Return the value as the column would hold it; exact beside whole numbers."""
        value = self.value
        if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
            try:
                if dtype.kind != "f":
                    exact = Decimal(value.strip() if isinstance(value, str) else value)
                    return int(exact) if exact == exact.to_integral_value() else float(exact)
                return dtype.type(value)
            except (ValueError, ArithmeticError):
                pass
        raise self._mismatch(column, "numeric")

    def _rank(self, column: str, dictionary: Any) -> int:
        categories = labels.as_objects(dictionary.to_pylist())
        known = [str(each) for each in categories]
        if str(self.value) not in known:
            raise InvalidInputError(
                f"{self.value!r} is none of the categories of column {column!r}, which are "
                f"{labels.show_some(categories)}"
            )
        return known.index(str(self.value))

    def _comparable(self, series: nw.Series[Any], column: str) -> tuple[nw.Series[Any], Any]:
        """Return the column and the value in one type, whichever library holds the column."""
        import narwhals as nw

        if series.dtype == nw.Date or series.dtype == nw.Datetime:
            try:
                return _in_one_zone(series, _moment(self.value))
            except (TypeError, ValueError):
                raise self._mismatch(column, "date") from None
        return series, self._comparable_value(series.dtype)

    def _comparable_value(self, dtype: Any) -> bool | str:
        """Return the value to compare flags or text with."""
        import narwhals as nw

        value, column = self.value, self.named_column
        if dtype == nw.Boolean:
            if isinstance(value, str):
                value = BOOLEANS.get(value.lower(), value)
            if isinstance(value, bool):
                return value
            raise self._mismatch(column, "boolean")
        if dtype == nw.String:
            if self.comparison not in EQUALITIES and not isinstance(literal(str(value)), str):
                raise InputTypeError(
                    f"column {column!r} is text, which is neither above nor below the number "
                    f"{value}; if it holds numbers, with leading zeros perhaps, convert it"
                )
            return str(value)
        raise InputTypeError(f"column {column!r} of type {dtype} cannot be compared with a value")

    def _of_times(self, values: Expr, dtype: Any) -> Expr:
        """Return the comparison of dates or times in an engine, by the clock of their own zone."""
        import narwhals.stable.v2 as nw

        assert self.comparison is not None
        zone = getattr(dtype, "time_zone", None)
        try:
            value = _moment(self.value)
            if zone is None and value.tzinfo is not None:
                raise TypeError
        except (TypeError, ValueError):
            raise self._mismatch(self.named_column, "date") from None
        if zone is not None and value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(zone))
        if dtype == nw.Date:
            values = values.cast(nw.Datetime("us"))
        compare: Callable[[Any, Any], Expr] = COMPARISONS[self.comparison]
        return compare(values, nw.lit(value))

    def _mismatch(self, column: str, kind: str) -> InputTypeError:
        return InputTypeError(f"column {column!r} is {kind}, cannot compare it with {self.value!r}")


def _of_integers(values: Expr, comparison: str, value: int | float) -> Expr:
    """Return a comparison with whole numbers alone, which engines do not round."""
    import narwhals.stable.v2 as nw

    if isinstance(value, float):
        if comparison in EQUALITIES:
            return nw.lit(comparison == "!=")
        value = math.ceil(value) if comparison in (">=", "<") else math.floor(value)
    compare: Callable[[Any, Any], Expr] = COMPARISONS[comparison]
    return compare(values, value)


def literal(text: str) -> int | float | str:
    """Return a number only where it writes back the same: a code like "007" stays text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text:
            return number
    return text


def _zeros_and_ones(records: Records, column: str) -> NDArray[np.bool_]:
    values = records.numbers(column)
    other = (values != 0) & (values != 1)
    if other.any():
        record = int(np.argmax(other))
        raise InvalidInputError(
            f"Proportion without a comparison needs a column of zeros and ones, {column!r} has "
            f"{values[record]:g} in {records.owners.show_record(record)}"
        )
    return values.astype(np.bool_)


def _in_one_zone(series: nw.Series[Any], value: datetime) -> tuple[nw.Series[Any], datetime]:
    """Return dates and a date without zones: both in UTC, or by the clock of the column."""
    import narwhals as nw

    if getattr(series.dtype, "time_zone", None) is None:
        if value.tzinfo is not None:
            raise TypeError
        return series.cast(nw.Datetime("us")), value
    if value.tzinfo is not None:
        series, value = series.dt.convert_time_zone("UTC"), value.astimezone(UTC)
    return series.dt.replace_time_zone(None).cast(nw.Datetime("us")), value.replace(tzinfo=None)


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise TypeError
