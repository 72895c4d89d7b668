"""First and last periods that the records cover in part alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.records import periods
from edp_bayes.utils import labels

if TYPE_CHECKING:
    from edp_bayes.utils.arrays import Array, Index

__all__ = ["PARTIAL", "CutOff", "Moments", "Partial", "cut_off"]

PARTIAL = ("keep", "drop")
# A period is cut off where a usual one has at least this share of its records in what is missing.
LEAST_LOST = 0.05
# What is missing at an end is unusual if at most this share of the other periods miss as much,
# and if it exceeds their upper decile by twice the distance of that from their median.
MOST_ALIKE, DECILE, TIMES = 0.025, 0.9, 2.0
# Records of a period are few below this share of the median of so many neighbours.
FEW_RECORDS, NEIGHBOURS = 0.5, 8
FEWEST = 6  # periods that are compared with
TINY = 1e-9  # for rounding
HOUR, MINUTE = 3_600_000_000, 60_000_000  # microseconds


class Moments(NamedTuple):
    """The first and the last moment of the records of every row, in microseconds."""

    first: Index
    last: Index


class CutOff(NamedTuple):
    """Why the first and the last period look cut off, in words; empty where they do not."""

    first: str = ""
    last: str = ""


class Partial(NamedTuple):
    """First and last periods that look cut off, and what becomes of them.

    Attributes
    ----------
    choice : str
        One of `PARTIAL`.
    first, last : label or None
        Those that do.
    """

    choice: str
    first: Any = None
    last: Any = None

    @property
    def words(self) -> str:
        """What is done with which."""
        ends = {"first": self.first, "last": self.last}
        found = [f"{end} {labels.show(held)}" for end, held in ends.items() if held is not None]
        return f"{self.choice} ({', '.join(found)})"


def cut_off(
    column: Any,
    code: Index,
    size: Index,
    starts: Any,
    every: str | None,
    *,
    weight: Index | None = None,
    moments: Moments | None = None,
) -> CutOff:
    """Return whether the first and the last period look cut off.

    Where periods of the calendar have dates or times in them, it counts which days the records
    reach, weekdays distinguished, or which part of the day or hour; beside it, and elsewhere, how
    many records there are.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Dates, times or keys of the rows.
    code : ndarray of int
        Period of every row.
    size : ndarray of int
        Records of every period; those without any are left out.
    starts : pyarrow.Array
        Keys of the periods, sorted.
    every : str, optional
        A key of `EVERY`, of which the keys are starts.
    weight : ndarray of int, optional
        How many records each row stands for.
    moments : Moments, optional
        When these were, where the column is coarser.
    """
    kept = np.flatnonzero(size > 0)
    if kept.size < FEWEST + 2:
        return CutOff()
    first = last = ""
    if every in ("day", "hour"):
        moments = moments or _moments(column)
        if moments is not None:
            start = periods.instants(starts)
            first, last = _by_moments(start, kept, code, moments, every)
    elif every is not None:
        start, end = periods.days_of(starts, every)
        day = periods.local(column).astype("M8[D]").astype(np.int64)
        first, last = _by_days(start[kept], end[kept], day, weight)
    counts = size[kept].astype(np.float64)
    return CutOff(first or _by_count(counts, "after"), last or _by_count(counts[::-1], "before"))


def _moments(column: Any) -> Moments | None:
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type):
        return None
    instants = periods.instants(column)
    return Moments(instants, instants)


def _by_days(start: Index, end: Index, day: Index, weight: Index | None) -> CutOff:
    """Judge by the days without a record at an end of a period, as weekdays usually have some."""
    origin, total = int(start[0]), int(end[-1] - start[0])
    records = np.bincount(day - origin, weight, total)
    active = records > 0
    weekday = (np.arange(total) + origin) % 7
    edge = np.zeros(total + 1)
    edge[start[1:-1] - origin] += 1.0
    np.subtract.at(edge, end[1:-1] - origin, 1.0)
    inner = np.cumsum(edge)[:-1] > 0.0
    days = np.maximum(np.bincount(weekday[inner], minlength=7), 1)
    usual = np.bincount(weekday[inner], active[inner], 7) / days
    rate = np.bincount(weekday[inner], records[inner], 7) / days
    expected, sold = (np.append(0.0, np.cumsum(each[weekday])) for each in (usual, rate))
    place = np.flatnonzero(active)
    period = np.searchsorted(start - origin, place, side="right") - 1
    every = np.arange(start.size)
    low = place[np.searchsorted(period, every)]
    high = place[np.searchsorted(period, every, side="right") - 1]
    head = expected[low] - expected[start - origin]
    tail = expected[end - origin] - expected[high + 1]
    whole = np.maximum(sold[end - origin] - sold[start - origin], 1e-300)
    lost = (sold[low] - sold[start - origin]) / whole
    lost_after = (sold[end - origin] - sold[high + 1]) / whole
    first = last = ""
    if lost[0] >= LEAST_LOST and _unusual(head[0], head[1:-1]):
        first = f"its records begin on {_shown(low[0] + origin)}"
    if lost_after[-1] >= LEAST_LOST and _unusual(tail[-1], tail[1:-1]):
        last = f"its records end on {_shown(high[-1] + origin)}"
    return CutOff(first, last)


def _by_moments(start: Index, kept: Index, code: Index, moments: Moments, every: str) -> CutOff:
    """Judge by the time without a record at an end of a day or hour."""
    length = periods.EVERY["hour"][1] * (24 if every == "day" else 1)
    low = np.full(start.size, np.iinfo(np.int64).max)
    high = np.full(start.size, np.iinfo(np.int64).min)
    np.minimum.at(low, code, moments.first)
    np.maximum.at(high, code, moments.last)
    head = (low - start)[kept].astype(np.float64)
    tail = (start + length - high)[kept].astype(np.float64)
    usual = np.median(head[1:-1]), np.median(tail[1:-1])
    open_for = max(float(length - usual[0] - usual[1]), 1.0)
    unit, name = (HOUR, "hours") if every == "day" else (MINUTE, "minutes")
    first = last = ""
    if (head[0] - usual[0]) / open_for >= LEAST_LOST and _unusual(head[0], head[1:-1]):
        first = f"its records begin {head[0] / unit:.1f} {name} after it does"
    if (tail[-1] - usual[1]) / open_for >= LEAST_LOST and _unusual(tail[-1], tail[1:-1]):
        last = f"its records end {tail[-1] / unit:.1f} {name} before it does"
    return CutOff(first, last)


def _by_count(counts: Array, side: str) -> str:
    """Judge the first of some periods by how many records its neighbours have.

    A trend is no matter: what is compared is each period with those that follow it.
    """
    inner = counts[:-1]  # The other end may be cut off, too.
    width = min(NEIGHBOURS, (inner.size - 1) // 2)
    around = np.lib.stride_tricks.sliding_window_view(inner[1:], width)
    median = np.median(around, axis=1)
    short = np.log((median + 0.5) / (inner[: median.size] + 0.5))
    if counts[0] >= FEW_RECORDS * median[0] or not _unusual(short[0], short[1:]):
        return ""
    return (
        f"it has {counts[0]:,.0f} record{'' if counts[0] == 1 else 's'} where the {width} {side} "
        f"it have {median[0]:,.0f} (median)"
    )


def _unusual(own: float, others: Array) -> bool:
    """Return whether what is missing is far more than other periods miss."""
    middle, high = np.quantile(others, (0.5, DECILE), method="higher")
    limit = high + TIMES * (high - middle) + TINY
    return bool(own > limit and (others >= own - TINY).sum() <= MOST_ALIKE * others.size)


def _shown(day: int) -> str:
    date = np.datetime64(int(day), "D").item()
    return f"{date:%A}, {date.isoformat()}"
