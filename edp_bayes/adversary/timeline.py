"""The order of databases in time: where each lies, in steps, and which comes next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.codes import Coded, numbers_of, texts_of
from edp_bayes.records.periods import in_longest_unit
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

__all__ = ["Timeline", "time_of"]

HOUR = 3_600_000_000  # microseconds
DAYS_A_YEAR = 365.2425
EARLIEST, LATEST = 1900, 2100  # whole numbers that are taken as years


@dataclass(frozen=True, eq=False)
class Timeline:
    """Where the databases lie in time.

    Attributes
    ----------
    position : ndarray
        Shape (n,): steps after the first database.
    unit : str
        NumPy's unit of dates ("Y", "M", "D" or "us"), "" for numbers, "given" where only the
        order is known.
    step : float
        The usual distance, in units.
    uneven : tuple of str
        Pairs of neighbours at another distance than the usual one, in words.
    disorder : str
        Two neighbours in the wrong order, in words; empty where there are none.
    """

    position: Array
    unit: str
    step: float
    uneven: tuple[str, ...]
    disorder: str

    @classmethod
    def of(cls, database: NDArray[Any]) -> Timeline:
        """Read the keys of databases as dates or numbers, or take them in the order given.

        Examples
        --------
        >>> Timeline.of(np.array(["2024-01-01", "2024-02-01", "2024-04-01"], "M8[D]")).position
        array([0., 1., 3.])
        >>> Timeline.of(np.array([202410, 202411, 202412, 202501, 202502, 202503])).position
        array([0., 1., 2., 3., 4., 5.])
        """
        found = _numbers(database)
        if found is None:
            disorder = ""
            if labels.look_like_dates_in_disorder(database):
                disorder = "dates as text that do not sort by time"
            return cls(np.arange(database.size, dtype=np.float64), "given", 1.0, (), disorder)
        number, unit = found
        gap = np.diff(number)
        wrong = np.flatnonzero(gap <= 0)
        disorder = _neighbours(database, wrong[0]) if wrong.size else ""
        values, counts = np.unique(gap[gap > 0], return_counts=True)
        step = float(values[counts.argmax()]) if values.size else 1.0
        uneven = tuple(_neighbours(database, k) for k in np.flatnonzero(gap != step))
        return cls((number - number[0]) / step, unit, step, uneven, disorder)

    @property
    def ordered(self) -> bool:
        """Whether keys are dates or numbers, or given in an order that nothing contradicts."""
        return not self.disorder

    def require_order(self, what: str) -> None:
        """Refuse databases that are not in the order of time.

        Raises
        ------
        InvalidInputError
            Names two neighbours in the wrong order.
        """
        if self.disorder:
            raise InvalidInputError(
                f"{what} needs databases in the order of time, found {self.disorder}; sort them, "
                "or give keys that are dates or numbers"
            )

    def seasons(self) -> dict[str, float]:
        """Return the calendar's own periods, in steps: a day, a week, a year.

        Raises
        ------
        InvalidInputError
            If keys are no dates, or a step is a year.
        """
        size = {"Y": DAYS_A_YEAR, "M": DAYS_A_YEAR / 12, "D": 1.0, "us": 1.0 / (24 * HOUR)}
        if self.unit not in size:
            raise InvalidInputError(
                "the calendar's own season needs keys that are dates: give the period as a number "
                "of databases, such as season=12"
            )
        days = self.step * size[self.unit]
        periods = {"day": 1.0, "week": 7.0, "year": DAYS_A_YEAR}
        found = {name: period / days for name, period in periods.items() if period >= 2.0 * days}
        if not found:
            raise InvalidInputError("databases of a year or more have no season")
        return found


def _numbers(database: NDArray[Any]) -> tuple[Array, str] | None:
    """Return keys as numbers of a unit, None where they are neither dates nor numbers."""
    text, coded = database.dtype.kind in "OU", _coded(database)
    if coded is not None:
        number, unit = coded.dates
        return number.astype(np.float64), unit
    if database.dtype.kind in "iuf":
        return database.astype(np.float64), ""
    times = _times(database.tolist()) if text else database
    if times is None or times.dtype.kind != "M":
        return None
    number, unit = in_longest_unit(times.astype("M8[us]"))
    return number.astype(np.float64), unit


def _coded(database: NDArray[Any]) -> Coded | None:
    """Return codes of periods, as numbers or text; None where the keys are none."""
    if database.dtype.kind == "i":
        return numbers_of(database.astype(np.int64))
    if database.dtype.kind in "OU" and all(isinstance(label, str) for label in database):
        return texts_of(database.tolist())
    return None


def _times(items: list[Any]) -> NDArray[Any] | None:
    """Return dates, times with a zone and ISO text as datetimes."""
    if all(isinstance(item, datetime) for item in items):
        zone = [item.tzinfo is not None for item in items]
        if all(zone):
            return np.array([np.datetime64(round(t.timestamp() * 1e6), "us") for t in items])
        return None if any(zone) else np.array(items, dtype="M8[us]")
    if all(isinstance(item, date) for item in items):
        return np.array(items, dtype="M8[D]")
    if all(isinstance(item, str) and item[:4].isdigit() and item[4:5] == "-" for item in items):
        try:
            return np.array(items, dtype="M8[us]")
        except ValueError:
            return None
    return None


def _neighbours(database: NDArray[Any], k: Any) -> str:
    return f"{labels.show(database[k])} before {labels.show(database[k + 1])}"


def time_of(database: NDArray[Any]) -> tuple[np.datetime64, np.datetime64] | None:
    """Return the time that databases cover, from the first to a usual step after the last.

    Databases are named by dates, codes of periods or years; None where by something else.

    Examples
    --------
    >>> time_of(np.array(["2024-01-01", "2024-01-08", "2024-01-15"], "M8[D]"))[1]
    np.datetime64('2024-01-22T00:00:00.000000')
    >>> str(time_of(np.array([202407, 202408, 202409, 202410, 202411, 202412]))[1])
    '2025-01-01T00:00:00.000000'
    >>> time_of(np.arange(3)) is None
    True
    """
    coded = _coded(database)
    if coded is not None:
        number, unit = coded.dates
        times: NDArray[Any] | None = number.astype(f"M8[{unit}]")
    elif database.dtype.kind == "i" and _are_years(database):
        times = (database - 1970).astype("M8[Y]")
    else:
        times = _times(database.tolist()) if database.dtype.kind in "OU" else database
    if times is None or times.dtype.kind != "M" or times.size == 0:
        return None
    order = np.unique(times.astype("M8[us]"))
    step = np.median(np.diff(order)) if order.size > 1 else np.timedelta64(1, "us")
    return order[0], order[-1] + step


def _are_years(database: NDArray[Any]) -> bool:
    return bool(database.size and database.min() >= EARLIEST and database.max() <= LATEST)
