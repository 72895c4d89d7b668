"""Times of the databases: from text, numbers and offsets to what a calendar and clock showed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.tables.keys import Key
from edp_bayes.utils import labels

if TYPE_CHECKING:
    import narwhals as nw
    import narwhals.stable.v2 as stable

    from edp_bayes.utils.arrays import Index

__all__ = [
    "AS_IT_IS",
    "UNIX",
    "Clock",
    "Offsets",
    "shifted",
    "with_offsets",
    "zone_of",
]

# How many of them are a second.
UNIX = {"unix": 1, "unix_ms": 1_000, "unix_us": 1_000_000}
MICROSECONDS = 1_000_000
# Every zone is a whole number of these away from UTC, seconds.
QUARTER_HOUR = 900
LENGTH = {"hour": 3600}
DAY = 86400
# Tried first, the commonest of those that share a clock.
FIRST = ("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago")
TRIED = 200  # times that a zone is tried on before all
ISO = (
    r"^\s*(?P<local>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*"
    r"(?P<offset>Z|[+-]\d\d(?::?\d\d)?)\s*$"
)
LIKE_A_DATE = r"\s*\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}"
NUMBERED = (
    r"^\s*(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P<other>[./-])(?P<year>\d{4})"
    r"(?P<rest>[T ]+\d{1,2}:\d\d(?::\d\d)?)?\s*$"
)


@dataclass(frozen=True)
class Clock:
    """How the databases' key is a time, as far as its column does not say it.

    Parameters
    ----------
    every : str, optional
        Period of the calendar that is one database.
    date_format : str, optional
        How text is a date, as of `datetime.strptime`; or "unix", "unix_ms", "unix_us" for
        numbers since 1970.
    time_zone : str, optional
        Zone in whose calendar times with a zone, with an offset or since 1970 lie.
    found : dict, optional
        Takes up what was found rather than said, in sentences.
    """

    every: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    found: dict[str, None] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.date_format is not None and self.date_format not in UNIX:
            _require_format(self.date_format)
        if self.time_zone is not None:
            _require_zone(self.time_zone)

    @property
    def asks(self) -> bool:
        """Whether keys may have to be converted."""
        return any((self.every, self.date_format, self.time_zone))

    def key(self, frame: nw.DataFrame[Any], column: str, name: str | None = None) -> Key:
        """Return a key column of databases, as times where it stands for times.

        Raises
        ------
        InvalidInputError
            If a value is not as the format says, a day may as well be a month, or offsets are of
            more than one clock.
        InputTypeError
            If the column is of a type that the format is not for.
        """
        if not self.asks:
            return Key.of(frame, column, name)
        return self.converted(
            _with_written_offsets(frame, column, name) or Key.of(frame, column, name)
        )

    def say(self, sentence: str) -> None:
        """Take up a sentence on what was found."""
        self.found[sentence] = None

    def zone(self, offsets: Offsets, name: str) -> str | None:
        """Return the zone whose clock shows offsets, say that it is it, and refuse several clocks.

        None stands for a single offset.
        """
        zone = _require_one_clock(offsets, name)
        self.say(f"Times of {name!r} are those of the clock as written, at {offsets.words}.")
        return zone

    def converted(self, key: Key) -> Key:
        """Return a key column of databases as times; see `key`."""
        return replace(key, column=self._converted(key.column, key.name)) if self.asks else key

    def coarse(self, key: stable.Expr, dtype: Any) -> stable.Expr:
        """Return times of an engine in their zone, and numbers cut down to what no period divides.

        Other columns are returned as they are.
        """
        zone = getattr(dtype, "time_zone", None)
        if self.time_zone is not None and zone not in (None, self.time_zone):
            return key.dt.convert_time_zone(self.time_zone)
        if self.every is None or self.date_format not in UNIX or not dtype.is_integer():
            return key
        seconds = LENGTH.get(self.every, DAY) if self.time_zone in (None, "UTC") else QUARTER_HOUR
        step = seconds * UNIX[self.date_format]
        return key - (key % step + step) % step  # The rest of an engine may be negative.

    def _converted(self, column: Any, name: str) -> Any:
        from pyarrow import types

        kind = column.type
        if self.date_format in UNIX:
            return self._since_1970(column, name)
        if types.is_date(kind) or types.is_timestamp(kind):
            return self._in_zone(column, name)
        if self.date_format is not None and types.is_integer(kind):
            column = column.cast("string")
        elif not (types.is_string(kind) or types.is_large_string(kind)):
            if self.every is not None and types.is_integer(kind):
                raise _no_dates(self.every, column, name)
            return column
        distinct = column.dictionary_encode()
        found = distinct.unify_dictionaries()
        values = found.chunk(0).dictionary if found.num_chunks else None
        if values is None or not len(values):
            return column
        times = self._of_text(values, name)
        if times is None:
            return column
        import pyarrow as pa

        return pa.chunked_array([times.take(chunk.indices) for chunk in found.chunks])

    def _since_1970(self, column: Any, name: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        kind = column.type
        if types.is_string(kind) or types.is_large_string(kind):
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise InvalidInputError(
                    f"date_format={self.date_format!r} needs numbers: column {name!r} holds others "
                    f"({error})"
                ) from None
        elif not (types.is_integer(kind) or types.is_floating(kind)):
            raise InputTypeError(
                f"date_format={self.date_format!r} is for numbers since 1970: column {name!r} is "
                f"of type {kind}; leave it out, or name the column of numbers"
            )
        assert self.date_format is not None
        times = MICROSECONDS // UNIX[self.date_format]
        try:
            whole = pc.multiply_checked(column, pa.scalar(times, pa.int64()))
            if types.is_floating(whole.type):
                whole = pc.round(whole)
            made = whole.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
            ends = pc.min_max(made)
            years = [pc.year(ends[end]).as_py() or 1970 for end in ("min", "max")]
        except (pa.ArrowInvalid, OverflowError):
            years = [0]
        if not all(1900 <= year <= 2200 for year in years):
            others = ", ".join(repr(one) for one in UNIX if one != self.date_format)
            raise InvalidInputError(
                f"column {name!r} as date_format={self.date_format!r} lies outside the years 1900 "
                f"to 2200: {others} may be meant"
            )
        return made if self.time_zone is None else made.cast(pa.timestamp("us", self.time_zone))

    def _in_zone(self, column: Any, name: str) -> Any:
        import pyarrow as pa

        kind = column.type
        if self.date_format is not None:
            raise InputTypeError(
                f"date_format is for text and numbers: column {name!r} is of type {kind} already; "
                "leave it out"
            )
        if self.time_zone is None:
            return column
        if getattr(kind, "tz", None) is None:
            raise _no_zone(name)
        return column.cast(pa.timestamp(kind.unit, self.time_zone))

    def _of_text(self, values: Any, name: str) -> Any:
        """Return distinct text as times; None where it stays text."""
        import pyarrow as pa

        values = values.cast(pa.string())
        if self.date_format is not None:
            local, offset = _parsed(values, self.date_format, name)
        elif (found := with_offsets(values)) is not None:
            local, offset = found
        elif self.every is None:
            return None
        else:
            local, order = _plain_dates(values, name)
            offset = None
            if order:
                self.say(f"Dates of {name!r} are read as {order}.")
            if local is None:
                raise _no_dates(self.every, values, name)
        if offset is None:
            if self.time_zone is not None:
                raise _no_zone(name)
            return local
        instants = shifted(local, -offset)
        if self.time_zone is not None or not offset.any():
            return instants.cast(pa.timestamp("us", self.time_zone or "UTC"))
        zone = self.zone(Offsets.of(instants, offset), name)
        if self.every == "hour" and zone is not None:
            return instants.cast(pa.timestamp("us", zone))
        return local


AS_IT_IS = Clock()  # keys are what their column says


@dataclass(frozen=True, eq=False)
class Offsets:
    """Which offsets from UTC were written at which quarters of an hour.

    Attributes
    ----------
    quarter : ndarray of int
        Quarters of an hour since 1970, of UTC.
    minutes : ndarray of int
        Offsets.
    """

    quarter: Index
    minutes: Index

    @classmethod
    def of(cls, instants: Any, minutes: Index) -> Offsets:
        """Return the distinct ones among times in microseconds, missing ones left out."""
        valid = np.asarray(instants.is_valid().to_numpy(zero_copy_only=False))
        moments = np.asarray(instants.cast("int64").fill_null(0).to_numpy())[valid]
        return cls._distinct(moments // (QUARTER_HOUR * MICROSECONDS), minutes[valid])

    @classmethod
    def joined(cls, parts: Iterable[Offsets]) -> Offsets:
        """Return those of several files."""
        each = list(parts)
        return cls._distinct(
            np.concatenate([one.quarter for one in each]),
            np.concatenate([one.minutes for one in each]),
        )

    @classmethod
    def _distinct(cls, quarter: Index, minutes: Index) -> Offsets:
        pairs = np.unique(np.stack([quarter, minutes]).astype(np.int64), axis=1)
        return cls(pairs[0], pairs[1])

    @property
    def words(self) -> str:
        """The offsets as they are written."""
        return ", ".join(_written(int(one)) for one in np.unique(self.minutes))


def _require_one_clock(found: Offsets, name: str) -> str | None:
    """Return the zone whose clock shows all offsets, None for a single one; refuse several clocks.

    Raises
    ------
    InvalidInputError
        If there is no such zone.
    """
    if np.unique(found.minutes).size < 2:
        return None
    zone = zone_of(found)
    if zone is None:
        raise InvalidInputError(
            f"the times of {name!r} have offsets of more than one clock ({found.words}), by which "
            "a day begins at several moments: time_zone='Europe/Berlin' (--time-zone), or another, "
            "says whose days are meant"
        )
    return zone


def zone_of(found: Offsets) -> str | None:
    """Return a zone whose clock shows these offsets at these times; None where there is none."""
    from zoneinfo import available_timezones

    change = np.flatnonzero(np.diff(found.minutes, prepend=found.minutes[:1]))
    spread = np.linspace(0, found.quarter.size - 1, TRIED).astype(np.int64)
    few = np.unique(np.concatenate([change[:TRIED], np.maximum(change[:TRIED] - 1, 0), spread]))
    some = Offsets(found.quarter[few], found.minutes[few])
    known = available_timezones()
    places = sorted(zone for zone in known if "/" in zone and not zone.startswith("Etc/"))
    for zone in (*(one for one in FIRST if one in known), *places):
        if _shows(zone, some) and _shows(zone, found):
            return zone
    return None


def _shows(zone: str, found: Offsets) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    seconds = found.quarter * QUARTER_HOUR
    try:
        local = pc.local_timestamp(pa.array(seconds).cast(pa.timestamp("s", zone)))
    except pa.ArrowInvalid:  # A zone that Arrow does not know.
        return False
    shown = local.cast(pa.int64()).to_numpy() - seconds
    return bool((shown == 60 * found.minutes).all())


def with_offsets(values: Any) -> tuple[Any, Index] | None:
    """Return the clock and the offset, in minutes, of text such as 2024-03-01T10:00:00+01:00.

    Parameters
    ----------
    values : pyarrow.Array
        Text.

    Returns
    -------
    local : pyarrow.Array
        Times without a zone, in microseconds.
    offset : ndarray of int
        Minutes; zero where the value is missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = pc.extract_regex(values, pattern=ISO)
    if parts.null_count > values.null_count or values.null_count == len(values):
        return None
    written = pc.struct_field(parts, "offset").dictionary_encode()
    minutes = np.array([_minutes(one) for one in written.dictionary.to_pylist()], dtype=np.int64)
    places = written.indices.fill_null(0).to_numpy(zero_copy_only=False)
    try:
        local = _as_times(pc.struct_field(parts, "local"))
    except pa.ArrowInvalid:
        return None
    offset = np.where(written.indices.is_valid().to_numpy(zero_copy_only=False), minutes[places], 0)
    return local, offset


def _as_times(text: Any) -> Any:
    """Return text such as 2024-03-01 10:00 as times; digits beyond microseconds are left out."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(text, r"(\.\d{6})\d+$", r"\1").cast("timestamp[us]")


def _minutes(offset: str | None) -> int:
    if offset in (None, "Z"):
        return 0
    assert offset is not None
    digits = offset[1:].replace(":", "").ljust(4, "0")
    size = 60 * int(digits[:2]) + int(digits[2:])
    return -size if offset[0] == "-" else size


def _written(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def shifted(times: Any, minutes: Index) -> Any:
    """Return times, in microseconds, so many minutes later."""
    import pyarrow as pa
    import pyarrow.compute as pc

    later = pa.array(minutes * 60 * MICROSECONDS)
    return pc.add(times.cast(pa.int64()), later).cast(pa.timestamp("us"))


def _with_written_offsets(frame: nw.DataFrame[Any], column: str, name: str | None) -> Key | None:
    """Return Python times of several offsets as text; an Arrow column has one zone for all."""
    import narwhals as nw
    import pyarrow as pa

    series = frame[column]
    if series.dtype != nw.Object:
        return None
    items = series.to_list()
    times = [item for item in items if isinstance(item, datetime) and item == item]
    if len({item.utcoffset() for item in times}) < 2:
        return None
    text = [item.isoformat() if isinstance(item, datetime) and item == item else None
            for item in items]  # fmt: skip
    return Key(column if name is None else name, pa.chunked_array([pa.array(text, pa.string())]))


def _plain_dates(values: Any, name: str) -> tuple[Any, str]:
    """Return text such as 2024-03-01, 31.12.2024 or 12/31/2024 as times, and the order found.

    None stands for other text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return _as_times(pc.utf8_trim_whitespace(values)), ""
    except pa.ArrowInvalid:
        pass
    parts = pc.extract_regex(values, pattern=NUMBERED)
    if parts.null_count > values.null_count or values.null_count == len(values):
        return None, ""
    first, second, year = (
        pc.struct_field(parts, part).cast(pa.int64()) for part in ("first", "second", "year")
    )
    days, months = (bool(pc.any(pc.greater(part, 12)).as_py()) for part in (first, second))
    # engines give values in any order
    example = labels.show(pc.min(values).as_py())
    if days == months:
        found = "days and months in both places" if days else "no day above the 12th"
        raise InvalidInputError(
            f"the dates of {name!r} such as {example} may have the day first or the month, with "
            f"{found}: date_format='%d{_mark(parts)}%m{_mark(parts)}%Y' (--date-format) says it"
        )
    day, month = (first, second) if days else (second, first)
    text = pc.binary_join_element_wise(
        year.cast("string"),
        pc.utf8_lpad(month.cast("string"), 2, padding="0"),
        pc.utf8_lpad(day.cast("string"), 2, padding="0"),
        "-",
    )
    rest = pc.utf8_trim(pc.struct_field(parts, "rest"), characters="T ")
    rest = pc.if_else(pc.equal(pc.utf8_length(rest), 0), "00:00", rest)
    rest = pc.replace_substring_regex(rest, r"^(\d):", r"0\1:")
    try:
        order = ("day", "month", "year") if days else ("month", "day", "year")
        return _as_times(pc.binary_join_element_wise(text, rest, " ")), _mark(parts).join(order)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"the dates of {name!r} such as {example} cannot be read ({error}): date_format= "
            "(--date-format) says how they are written"
        ) from None


def _mark(parts: Any) -> str:
    import pyarrow.compute as pc

    return str(pc.struct_field(parts, "mark").drop_null()[0].as_py())


def _parsed(values: Any, date_format: str, name: str) -> tuple[Any, Index | None]:
    """Return distinct text as the clock showed it, and offsets where the format has them."""
    import pandas as pd
    import pyarrow as pa

    text = pd.Series(values.to_pylist(), dtype="str").str.strip()
    try:
        found = pd.to_datetime(text, format=date_format, exact=True, utc="%z" in date_format)
    except (ValueError, OverflowError):
        read = pd.to_datetime(
            text, format=date_format, exact=True, utc="%z" in date_format, errors="coerce"
        )
        bad = text[read.isna() & text.notna()]
        example = labels.show(bad.iloc[0]) if len(bad) else "a value"
        raise InvalidInputError(
            f"column {name!r} holds {example}, which is no date by date_format={date_format!r}"
        ) from None
    if "%z" not in date_format:
        return pa.array(found, from_pandas=True).cast(pa.timestamp("us"), safe=False), None
    moments = pa.array(found.dt.tz_localize(None), from_pandas=True)
    written = text.str.extract(r"(Z|[+-]\d\d:?\d\d)\D*$", expand=False)
    offset = np.array([_minutes(one if isinstance(one, str) else None) for one in written])
    return shifted(moments.cast(pa.timestamp("us"), safe=False), offset), offset


def _require_format(text: str) -> None:
    """Refuse a format that no date is written by."""
    if not isinstance(text, str):
        raise InputTypeError(f"date_format must be text, found {text!r}")
    moment = datetime(2024, 12, 31, 23, 58, 59, tzinfo=UTC)
    try:
        fits = "%" in text and datetime.strptime(moment.strftime(text), text)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInputError(
            f"date_format must be {', '.join(UNIX)} or like %d.%m.%Y, found {text!r}"
        )


@cache
def _require_zone(name: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError):
        raise InvalidInputError(
            f"time_zone must be the name of a zone such as Europe/Berlin, found {name!r}"
        ) from None


def _no_dates(every: str, column: Any, name: str) -> InputTypeError:
    numbers = (
        ""
        if "string" in str(column.type)
        else ("'unix' or 'unix_ms' for seconds or milliseconds since 1970, ")
    )
    example = labels.show(column.drop_null()[0].as_py()) if len(column.drop_null()) else "nothing"
    if not numbers and (strange := _beside_dates(column.drop_null())):
        return InputTypeError(
            f"column {name!r} holds {labels.show(strange)}, which is no date, beside dates such as "
            f"{example}: correct such records, or leave them out"
        )
    return InputTypeError(
        f"a {every} needs dates or timestamps: column {name!r} is of type {column.type}, such as "
        f"{example}; date_format= (--date-format) says how they are dates, {numbers}or like "
        "'%d.%m.%Y'"
    )


def _beside_dates(column: Any) -> str | None:
    """Return the first text that is no date where at least nine in ten are written like one."""
    import pandas as pd

    text = pd.Series(column.unique().to_pylist(), dtype="str")
    like = text.str.match(LIKE_A_DATE)
    return str(text[~like].iloc[0]) if 0.9 <= like.mean() < 1.0 else None


def _no_zone(name: str) -> InvalidInputError:
    return InvalidInputError(
        f"time_zone is for times with a zone, with an offset or since 1970: those of {name!r} have "
        "none, so that they are what the clock showed; leave it out"
    )
