"""Periods written as codes: months 202407, ISO weeks 2024-W05, quarters 2024Q1 and the like."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edp_bayes.utils.arrays import Index

__all__ = ["Coded", "codes_of", "numbers_of", "texts_of"]

# Fewer distinct values say too little of what they are.
FEWEST = 6
# Years in which the middle code lies; a mistyped one may lie elsewhere.
USUAL, POSSIBLE = (1900, 2100), (1000, 9999)
MONDAY = 4  # The day number of a Monday: day 0, 1 January 1970, is a Thursday.
A_YEAR = {"months": 12, "quarters": 4}
# Digits of a whole number, and how many of them follow the year.
DIGITS = {5: 1, 6: 2, 8: 4}
# What they are: quarters, months or weeks, and days.
LETTER_BY_WIDTH = {1: "Q", 2: "", 4: "D"}
TEXT = re.compile(r"(?P<year>\d{4})(?P<mark>[-/_. ]?(?:Q|M|W|KW|CW)?)(?P<part>\d+)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Coded:
    """Codes as numbers of periods.

    Attributes
    ----------
    number : ndarray of int
        Months or quarters since 1970; Mondays or days since 1 January 1970.
    unit : str
        "months", "weeks", "quarters" or "days".
    written : callable
        Takes such numbers and returns their codes, written alike.
    """

    number: Index
    unit: str
    written: Callable[[Index], Any]

    @property
    def dates(self) -> tuple[Index, str]:
        """Whole numbers of NumPy's own unit, months or days, and that unit."""
        if self.unit == "weeks":
            return 7 * self.number + MONDAY, "D"
        if self.unit == "quarters":
            return 3 * self.number, "M"
        return self.number, self.unit[0].upper()


def numbers_of(values: Index) -> Coded | None:
    """Return whole numbers YYYYQ, YYYYMM, YYYYWW or YYYYMMDD; None where not all are such codes.

    Examples
    --------
    >>> coded = numbers_of(np.array([202410, 202411, 202412, 202501, 202502, 202503]))
    >>> coded.unit, np.diff(coded.number).tolist(), coded.written(coded.number[-1:] + 10)
    ('months', [1, 1, 1, 1, 1], array([202601]))
    """
    if values.size < FEWEST or values.min() < 0:
        return None
    digits = len(str(int(values.max())))
    if digits not in DIGITS or len(str(int(values.min()))) != digits:
        return None
    after = 10 ** DIGITS[digits]
    found = _read(values // after, values % after, LETTER_BY_WIDTH[DIGITS[digits]])
    if found is None:
        return None
    number, unit = found

    def written(number: Index) -> Index:
        year, part = _year_and_part(number, unit)
        return np.asarray(year * after + part)

    return Coded(number, unit, written)


def texts_of(texts: Sequence[str]) -> Coded | None:
    """Return such text as 2024-W05, 2024Q1, 2024-05 or 202405; None where not all is written alike.

    Examples
    --------
    >>> coded = texts_of(["2020-W51", "2020-W52", "2020-W53", "2021-W01", "2021-W02", "2021-W03"])
    >>> coded.unit, coded.written(coded.number[:1] + 5)
    ('weeks', ['2021-W03'])
    """
    if len(texts) < FEWEST:
        return None
    first = TEXT.fullmatch(texts[0])
    if first is None:
        return None
    mark = first["mark"]
    years, parts = [text[:4] for text in texts], [text[4 + len(mark) :] for text in texts]
    if not all(each.isdecimal() and len(each) <= 4 for each in (*years, *parts)):
        return None
    alike = len(set(map(len, parts))) == 1
    width = len(parts[0]) if alike else 1
    letter: str | None = mark[-1:].upper()
    if not mark:
        letter = LETTER_BY_WIDTH.get(width) if alike else None
    elif not mark[-1].isalpha():
        letter = {(True, 2): "", (False, 1): ""}.get((alike, width))
    if letter is None:
        return None
    year, part = (np.array(list(map(int, each))) for each in (years, parts))
    found = _read(year, part, letter)
    if found is None:
        return None
    number, unit = found

    def written(number: Index) -> list[str]:
        year, part = (each.tolist() for each in _year_and_part(number, unit))
        return [f"{y:04d}{mark}{p:0{width}d}" for y, p in zip(year, part, strict=True)]

    return Coded(number, unit, written) if written(number) == list(texts) else None


def codes_of(keys: Any) -> Coded | None:
    """Return an Arrow array of distinct keys as codes; None where they are none."""
    import pyarrow as pa

    if pa.types.is_integer(keys.type):
        values = keys.to_numpy(zero_copy_only=False)
        return None if values.dtype == np.uint64 else numbers_of(values.astype(np.int64))
    if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
        return texts_of(keys.to_pylist())
    return None


def _read(year: Index, part: Index, letter: str) -> tuple[Index, str] | None:
    """Return numbers of periods and their unit; None where not all are codes of the letter."""
    middle = float(np.median(year))
    if not USUAL[0] <= middle <= USUAL[1]:
        return None
    if year.min() < POSSIBLE[0] or year.max() > POSSIBLE[1] or part.min() < 1:
        return None
    if letter == "D":
        return _days(year, part)
    if letter == "Q":
        return (4 * (year - 1970) + part - 1, "quarters") if part.max() <= 4 else None
    if letter == "M" or (letter == "" and part.max() <= 12):
        return (12 * (year - 1970) + part - 1, "months") if part.max() <= 12 else None
    first = _first_monday(year)
    if (part > (_first_monday(year + 1) - first) // 7).any():
        return None
    return (first - MONDAY) // 7 + part - 1, "weeks"


def _days(year: Index, part: Index) -> tuple[Index, str] | None:
    month, day = part // 100, part % 100
    if month.min() < 1 or month.max() > 12 or day.min() < 1:
        return None
    months = (12 * (year - 1970) + month - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1).astype("m8[D]")
    return (days.astype(np.int64), "days") if (days.astype("M8[M]") == months).all() else None


def _year_and_part(number: Index, unit: str) -> tuple[Index, Index]:
    """Return the year of every period and what follows it in a code."""
    if unit in A_YEAR:
        return number // A_YEAR[unit] + 1970, number % A_YEAR[unit] + 1
    if unit == "days":
        days = number.astype("M8[D]")
        months = days.astype("M8[M]")
        month = months.astype(np.int64)
        day = (days - months.astype("M8[D]")).astype(np.int64) + 1
        return month // 12 + 1970, 100 * (month % 12 + 1) + day
    monday = 7 * number + MONDAY
    year = _year_of(monday + 3)  # An ISO week is of the year of its Thursday.
    return year, (monday - _first_monday(year)) // 7 + 1


def _year_of(days: Index) -> Index:
    return days.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


def _first_monday(year: Index) -> NDArray[np.int64]:
    """Return the Monday of the first ISO week of every year, the week of 4 January."""
    fourth = (year - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64) + 3
    return fourth - (fourth - MONDAY) % 7
