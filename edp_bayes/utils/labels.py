"""Labels of databases and individuals: one array form for every source, found again by value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.formatting import short

NUMERIC_KINDS = "biuf"
SHOWN = 5

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?)"
)
_FLAGS = re.IGNORECASE | re.DOTALL
_DAY = re.compile(r"\s*\d{1,2}\D\d{1,2}\D\d{2,4}.*", _FLAGS)
_WHOLE_DAY = re.compile(r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)\d{4}")
_NAMED_MONTH = re.compile(
    rf"\s*(\d{{1,4}}\W+)?{_MONTH}(\W+(\d{{1,2}}\W+)?\d{{1,4}}(\W.*)?)?\s*", _FLAGS
)
_PART_OF_YEAR = re.compile(r"\s*[A-Z]*\W*(?P<part>\d{1,2})\D+(?P<year>\d{4})\s*", _FLAGS)


def as_labels(values: Any, name: str) -> NDArray[Any]:
    """Return labels as a read-only vector of numbers, dates or Python objects.

    Strings become Python strings and compound keys tuples of plain Python values, so that a label
    compares and hashes the same whichever library it came from.

    Parameters
    ----------
    values : array_like or iterable
        Labels in one dimension.
    name : str
        What they label, for messages.

    Raises
    ------
    InputTypeError
        If the values are not a sequence.
    InvalidInputError
        If they are not one-dimensional or one is missing.

    Examples
    --------
    >>> as_labels([("north", 1), ("south", 2)], "individual")[1]
    ('south', 2)
    """
    if isinstance(values, str | bytes | Set) or not isinstance(values, Iterable):
        raise InputTypeError(f"{name} labels must be a sequence, found {values!r}")
    validate.refuse_masked(values, f"{name} labels")
    array = np.asarray(values) if hasattr(values, "__array__") else _from_items(list(values))
    if array.ndim != 1:
        raise InvalidInputError(f"{name} labels must have 1 dimension, found shape {array.shape}")
    if array.dtype.kind == "M":
        labels = _microseconds(array)
    elif array.dtype.kind in NUMERIC_KINDS + "m":
        labels = array.copy()
    else:
        labels = as_objects([_plain(item) for item in array.tolist()])
    _refuse_missing(labels, name)
    labels.setflags(write=False)
    return labels


def as_objects(items: list[Any]) -> NDArray[Any]:
    """Return a vector of Python objects; tuples of equal length stay tuples."""
    return np.fromiter(items, dtype=object, count=len(items))


def compound(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the tuples of several label vectors of equal length."""
    return as_objects(list(zip(*(plain_list(part) for part in parts), strict=True)))


def told_apart(times: list[datetime]) -> list[Any]:
    """Return times in order, the hour that the end of summer time repeats with its offset.

    Python compares times of one zone by the clock alone, by which that hour is there only once.
    """
    return [
        moment.replace(tzinfo=timezone(moment.utcoffset() or timedelta()), fold=0)
        if moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()
        else moment
        for moment in times
    ]


def plain_list(labels: NDArray[Any]) -> list[Any]:
    """Return labels as Python values; dates as dates, whatever their resolution."""
    return [_plain(item) for item in _microseconds(labels).tolist()]


def refuse_duplicates(labels: NDArray[Any], name: str) -> None:
    """Refuse a label that stands for two individuals or databases."""
    if labels.dtype != object:
        distinct, counts = np.unique(labels, return_counts=True)
    else:
        try:
            tally = Counter(labels.tolist())
        except TypeError as error:
            raise InputTypeError(f"{name} labels must be hashable: {error}") from None
        distinct, counts = as_objects(list(tally)), np.fromiter(tally.values(), dtype=np.int64)
    repeated = np.flatnonzero(counts > 1)
    if repeated.size:
        raise InvalidInputError(
            f"{name} labels must be distinct, found {show(distinct[repeated[0]])} "
            f"{counts[repeated[0]]} times ({repeated.size} labels are repeated)"
        )


def positions_of(labels: NDArray[Any]) -> dict[Any, int]:
    """Return the position of every label."""
    return {label: k for k, label in enumerate(labels.tolist())}


def natural(text: str) -> list[Any]:
    """Return what text with numbers, of any length, is sorted by: week 2 comes before week 10."""
    parts = re.split(r"(\d+)", text)
    return [_size(part) if odd % 2 else part for odd, part in enumerate(parts)]


def _size(digits: str) -> tuple[int, str]:
    significant = digits.lstrip("0")
    return len(significant), significant


def natural_order(texts: list[str]) -> NDArray[np.int64]:
    """Return the order that sorts texts by the numbers in them, equal ones by the alphabet."""
    order = sorted(range(len(texts)), key=lambda k: (natural(texts[k]), texts[k]))
    return np.array(order, dtype=np.int64)


def sorted_order(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order that sorts distinct labels, whatever order they come in.

    Examples
    --------
    >>> sorted_order(as_objects(["week 10", 3, "week 2"]))
    array([1, 2, 0])
    """
    if labels.dtype.kind in NUMERIC_KINDS + "mM":
        return np.argsort(labels, kind="stable")
    items = labels.tolist()
    order = sorted(range(len(items)), key=lambda k: _sort_key(items[k]))
    return np.array(order, dtype=np.int64)


def _sort_key(label: Any) -> tuple[Any, ...]:
    """Return what labels of any types are sorted by: type first, text by the numbers in it."""
    if isinstance(label, tuple):
        return ("tuple", *map(_sort_key, label))
    if isinstance(label, int | float):
        return ("", label)
    return (type(label).__name__, natural(str(label)), str(label))


def look_like_dates_in_disorder(labels: NDArray[Any]) -> bool:
    """Return whether all labels are dates as text, such as 31/12/2024, not in the order of time.

    Examples
    --------
    >>> look_like_dates_in_disorder(as_objects(["Apr 08 2024", "9 Feb 2024"]))
    True
    """
    if labels.dtype.kind not in "OU" or not all(isinstance(label, str) for label in labels):
        return False
    times = [time for label in labels if (time := _time(label)) is not None]
    if len(times) == labels.size:
        return times != sorted(times)
    return all(_DAY.fullmatch(label) for label in labels)


def date_formats_of(labels: NDArray[Any]) -> tuple[str, ...]:
    """Return the formats that may read all such labels as 31/12/2024 as dates.

    Examples
    --------
    >>> date_formats_of(as_objects(["01/02/2024", "02/01/2024"]))
    ('%d/%m/%Y', '%m/%d/%Y')
    >>> date_formats_of(as_objects(["01/22/2024", "02/01/2024"]))
    ('%m/%d/%Y',)
    """
    found = [_WHOLE_DAY.fullmatch(label) for label in labels if isinstance(label, str)]
    dates = [match for match in found if match is not None]
    marks = {match["mark"] for match in dates}
    if len(dates) < labels.size or len(marks) != 1:
        return ()
    (mark,) = marks
    first, second = (max(int(match[part]) for match in dates) for part in ("first", "second"))
    day_first = (f"%d{mark}%m{mark}%Y",) if first <= 31 and second <= 12 else ()
    month_first = (f"%m{mark}%d{mark}%Y",) if first <= 12 and second <= 31 else ()
    return day_first + month_first


def _time(text: str) -> tuple[int, ...] | None:
    """Return year, month or other part, and day of such text as Q1 2024 or 9 May 2024."""
    month = _NAMED_MONTH.fullmatch(text)
    if month is None:
        part = _PART_OF_YEAR.fullmatch(text)
        return None if part is None else (int(part["year"]), int(part["part"]))
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    year = next((number for number in numbers if number > 31), 0)
    day = next((number for number in numbers if number <= 31), 0)
    return year, _MONTHS.index(month["month"][:3].lower()), day


def lookup_key(label: Any, labels: NDArray[Any]) -> Any:
    """Return a user's label in the form that `positions_of(labels)` has as keys."""
    if labels.dtype.kind in "Mm":
        if getattr(label, "tzinfo", None) is not None:
            return label  # Labels have no zone, so that none is this one.
        try:
            own = np.asarray(label, dtype=labels.dtype.str[:2])
            held = own.astype(labels.dtype)
        except (TypeError, ValueError):
            return label
        return held.tolist() if held == own else label
    return _plain(tuple(label) if isinstance(label, list) else label)


def as_text(label: Any) -> str:
    """Return a label as text, the parts of a compound key joined by a comma."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def as_coordinate(values: NDArray[Any]) -> NDArray[Any]:
    """Return labels as numbers or text, the parts of a compound key joined by a comma."""
    if values.dtype.kind in "iufM":
        return values
    text = [as_text(v) for v in values]
    if len(set(text)) < len(text):
        text = [repr(v) for v in values]
    return np.array(text)


def show(label: Any) -> str:
    """Return a label as it stands in a message."""
    plain = _plain(label)
    if isinstance(plain, tuple):
        return f"({', '.join(map(show, plain))}{',' if len(plain) == 1 else ''})"
    if isinstance(plain, datetime) and plain == plain:
        midnight = plain.time() == time() and plain.tzinfo is None
        return str(plain.date()) if midnight else plain.isoformat(sep=" ")
    if isinstance(plain, date) and plain == plain:
        return plain.isoformat()
    if isinstance(label, np.datetime64 | np.timedelta64):
        return str(label)
    return short(repr(plain))


def show_some(labels: NDArray[Any]) -> str:
    """Return the first few labels and how many more there are."""
    shown = ", ".join(show(label) for label in labels[:SHOWN])
    return shown + (f" and {labels.size - SHOWN} more" if labels.size > SHOWN else "")


def encode(labels: NDArray[Any]) -> bytes:
    """Return bytes that identify the labels, for a fingerprint."""
    if labels.dtype == object:
        return "\x1f".join(map(repr, labels.tolist())).encode()
    if labels.dtype.kind == "M" and np.datetime_data(labels.dtype)[0] == "D":
        labels = labels.astype("datetime64[us]")  # A day and its midnight are one date.
    little = labels.astype(labels.dtype.newbyteorder("<"))
    return little.dtype.str.encode() + little.tobytes()


def _from_items(items: list[Any]) -> NDArray[Any]:
    """Numbers of one kind as a numeric vector; anything else untouched, never coerced to text."""
    objects = as_objects(items)
    kinds = {np.asarray(item).dtype.kind if np.isscalar(item) else "O" for item in items}
    return np.asarray(items) if len(kinds) == 1 and kinds <= set("biufM") else objects


def _microseconds(labels: NDArray[Any]) -> NDArray[Any]:
    """Nanosecond dates as microseconds where nothing is lost: one form for every library."""
    if labels.dtype.kind != "M":
        return labels
    if np.datetime_data(labels.dtype)[0] == "D":
        return labels.copy()
    coarse = labels.astype("datetime64[us]")
    same = (coarse.astype(labels.dtype) == labels) | np.isnat(labels)
    return coarse if bool(same.all()) else labels.copy()


def _plain(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(_plain(part) for part in item)
    if isinstance(item, np.datetime64):
        return _microseconds(np.asarray([item])).tolist()[0]
    return item.item() if isinstance(item, np.generic) else item


def _refuse_missing(labels: NDArray[Any], name: str) -> None:
    if labels.dtype.kind in "Mm":
        missing = np.isnat(labels)
    elif labels.dtype.kind == "f":
        missing = np.isnan(labels)
    elif labels.dtype == object:
        # A missing value of any library (None, NaN, NaT) is None or differs from itself.
        missing = np.fromiter((_is_missing(x) for x in labels), dtype=bool, count=labels.size)
    else:
        return
    if missing.any():
        where = int(np.argmax(missing))
        raise InvalidInputError(
            f"{name} labels must not be missing, found {show(labels[where])} at position {where} "
            f"({int(missing.sum())} of {labels.size})"
        )


def _is_missing(item: Any) -> bool:
    if isinstance(item, tuple):
        return any(_is_missing(part) for part in item)
    differs = item != item
    return (
        item is None
        or str(item) == "<NA>"
        or (isinstance(differs, bool | np.bool_) and bool(differs))
    )
