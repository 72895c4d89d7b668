"""Databases of the calendar: the period in which a time lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from edp_bayes.utils.arrays import Index

__all__ = [
    "EVERY",
    "coarse",
    "days_of",
    "has_time_of_day",
    "in_longest_unit",
    "in_zone",
    "instants",
    "local",
    "numbers",
    "of_numbers",
    "starts",
]

# Unit of NumPy in which a period is counted, and how many of them it has.
EVERY = {
    "hour": ("us", 3_600_000_000),
    "day": ("D", 1),
    "week": ("D", 7),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
}
# Weeks begin on Mondays, and day 0, 1 January 1970, is a Thursday.
FIRST_MONDAY = 4


def starts(column: Any, every: str, name: str) -> Any:
    """Return the start of the period of every time, by the calendar of the column's own zone.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Dates or timestamps.
    every : str
        A key of `EVERY`.
    name : str
        The column's name, for messages.

    Raises
    ------
    InputTypeError
        If they are neither.
    """
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise InputTypeError(
            f"a {every} needs dates or timestamps: column {name!r} is of type {kind}; convert it"
        )
    unit, count = EVERY[every]
    shown = local(column)
    if unit == "us":
        # From the time that the clock showed: the hour that comes twice is two hours.
        moment = instants(column)
        offset = shown.astype(np.int64) - moment
        return pa.chunked_array([_as_times(moment - (moment + offset) % count, kind)])
    number = shown.astype(f"M8[{unit}]").astype(np.int64)
    shift = FIRST_MONDAY if every == "week" else 0
    return pa.chunked_array([_of_calendar(number - (number - shift) % count, unit, kind)])


def days_of(starts: Any, every: str) -> tuple[Index, Index]:
    """Return the first day of periods of a day and more, and that after their last, since 1970."""
    unit, count = EVERY[every]
    first = local(starts).astype(f"M8[{unit}]")
    after = (first.astype(np.int64) + count).astype(f"M8[{unit}]")
    return first.astype("M8[D]").astype(np.int64), after.astype("M8[D]").astype(np.int64)


def coarse(key: nw.Expr, dtype: Any, every: str | None) -> nw.Expr:
    """Return times of an engine cut down to the day by the calendar of their own zone.

    For hours they are cut down to the minute where the zone may not be a whole hour from UTC.
    """
    import narwhals.stable.v2 as nw

    if every is None or dtype != nw.Datetime:
        return key
    if every == "hour":
        return key.dt.truncate("1h" if dtype.time_zone is None else "1m")
    if dtype.time_zone is not None:
        key = key.dt.replace_time_zone(None)
    return key.dt.truncate("1d")


def in_zone(column: Any, zone: str | None) -> Any:
    """Return days without a zone, as `coarse` leaves them, in their own zone again."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if zone is None or not pa.types.is_timestamp(kind) or kind.tz is not None:
        return column
    return pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest")


def has_time_of_day(keys: Any) -> bool:
    """Return whether keys are timestamps that do not all lie at midnight."""
    import pyarrow as pa

    if not pa.types.is_timestamp(keys.type):
        return False
    shown = local(keys)
    return bool((shown.astype("M8[D]") != shown).any())


def numbers(keys: Any, every: str | None) -> tuple[Index, str]:
    """Return dates or times as whole numbers, and their unit.

    Without `every` it is the longest unit that suits them all.
    """
    if every:
        unit = EVERY[every][0]
        if unit == "us":
            return instants(keys), unit
        return local(keys).astype(f"M8[{unit}]").astype(np.int64), unit
    number, unit = in_longest_unit(local(keys))
    return (instants(keys) if unit == "us" else number), unit


def of_numbers(number: Index, unit: str, kind: Any) -> Any:
    """Return whole numbers of a unit as dates or times of a type."""
    return _as_times(number, kind) if unit == "us" else _of_calendar(number, unit, kind)


def in_longest_unit(times: NDArray[np.datetime64]) -> tuple[Index, str]:
    """Return times as whole numbers of the longest calendar unit that suits them all, and it."""
    for unit in ("Y", "M", "D"):
        coarse = times.astype(f"M8[{unit}]")
        if (coarse == times).all():
            return coarse.astype(np.int64), unit
    return times.astype("M8[us]").astype(np.int64), "us"


def local(column: Any) -> NDArray[np.datetime64]:
    """Return what calendar and clock showed, in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pc.local_timestamp(column)
    if pa.types.is_date(column.type):
        column = column.cast(pa.date32())
    return np.asarray(_numpy(column)).astype("M8[us]")


def instants(column: Any) -> Index:
    """Return microseconds since the epoch: of UTC where the column has a zone."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind):
        return local(column).astype(np.int64)
    plain = column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz is not None else column
    plain = plain.cast(pa.timestamp(kind.unit)) if kind.tz is not None else plain
    return np.asarray(_numpy(plain)).astype("M8[us]").astype(np.int64)


def _numpy(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _as_times(instants: Index, kind: Any) -> Any:
    """Return microseconds as timestamps in the zone of a type."""
    import pyarrow as pa

    return pa.array(instants).cast(pa.timestamp("us", getattr(kind, "tz", None)))


def _of_calendar(number: Index, unit: str, kind: Any) -> Any:
    """Return months, days and the like as dates, or as their first moment in the zone of a type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = number.astype(f"M8[{unit}]").astype("M8[D]")
    if pa.types.is_date(kind):
        return pa.array(days)
    midnight = pa.array(days.astype("M8[us]"))
    if kind.tz is None:
        return midnight
    return pc.assume_timezone(midnight, kind.tz, ambiguous="earliest", nonexistent="latest")
