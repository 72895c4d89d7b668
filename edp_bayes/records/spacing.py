"""Keys at regular distances: the periods without a record, and those far from all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.records import periods
from edp_bayes.records.codes import codes_of

if TYPE_CHECKING:
    from edp_bayes.utils.arrays import Index

__all__ = ["Outlying", "Spacing", "spacing"]

# Keys with more gaps than this share of them are not taken as regular.
MOST_GAPS = 0.25
# Periods that stand apart from the others: at most so many, or this share, at an end.
FEW, FEW_SHARE = 2, 0.05
# They do so by as many steps, or as many times the next largest gap.
FAR, TIMES = 8, 4
LARGEST = 2.0**62  # distance of whole numbers of 64 bits that can be counted


class Outlying(NamedTuple):
    """A period that stands far from all others, such as one with a mistyped year.

    Attributes
    ----------
    period, next_to : int
        Which of the keys it is, and the nearest of the others.
    distance : int
        Periods between the two, rounded.
    """

    period: int
    next_to: int
    distance: int


@dataclass(frozen=True, eq=False)
class Spacing:
    """Keys at regular distances.

    Attributes
    ----------
    place : ndarray of int
        Of every key found, how many steps it comes after the first.
    count : int
        Places from the first to the last.
    unit : str
        What lies between two neighbours, in the plural: "weeks", or "periods".
    labels_at : callable
        Takes places and returns their keys as an Arrow array, those without a record, too.
    outlying : tuple of Outlying
        Periods far from all others.
    exact : bool
        Whether these lie at a whole number of steps, too.
    """

    place: Index
    count: int
    unit: str
    labels_at: Callable[[Index], Any]
    outlying: tuple[Outlying, ...] = ()
    exact: bool = True

    @property
    def gaps(self) -> int:
        """How many places have no record."""
        return self.count - self.place.size

    def first_gaps(self, most: int) -> Index:
        """Return the first places without a record."""
        before = np.flatnonzero(np.diff(self.place) > 1)[:most]
        runs = [np.arange(self.place[k] + 1, self.place[k + 1])[:most] for k in before]
        return np.concatenate([*runs, np.empty(0, dtype=np.int64)])[:most].astype(np.int64)


class _Numbers(NamedTuple):
    """Keys as whole numbers, what one of them is called, and how numbers become keys again."""

    number: Index
    unit: str
    written: Callable[[Index], Any]


def spacing(keys: Any, every: str | None) -> Spacing | None:
    """Return the regular distances of sorted distinct keys, None where they have none.

    Without `every` the distance is the smallest that occurs, in the longest calendar unit that
    suits all keys, if it is evident: few keys are then missing, but for some at an end that stand
    far from all others.

    Parameters
    ----------
    keys : pyarrow.Array
        Dates, times, whole numbers, or text that is dates or codes of periods throughout.
    every : str, optional
        A key of `EVERY`, of which the keys are starts.
    """
    if len(keys) < 2:
        return None
    for found in (_codes(keys), _plain(keys)) if every is None else (_calendar(keys, every),):
        if found is not None and (made := _regular(found, every)) is not None:
            return made
    return None


def _codes(keys: Any) -> _Numbers | None:
    """Return codes such as 202407 as numbers."""
    import pyarrow as pa

    coded = codes_of(keys)
    if coded is None:
        return None
    return _Numbers(
        coded.number, coded.unit, lambda number: pa.array(coded.written(number)).cast(keys.type)
    )


def _plain(keys: Any) -> _Numbers | None:
    """Return whole numbers, dates, times, or text that is dates throughout, as numbers."""
    import pyarrow as pa

    kind = keys.type
    if pa.types.is_integer(kind):
        values = keys.to_numpy(zero_copy_only=False)
        if values.dtype == np.uint64:
            return None
        return _Numbers(
            values.astype(np.int64), "periods", lambda number: pa.array(number).cast(kind)
        )
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        dates = _as_dates(keys)
        found = None if dates is None else _calendar(dates, None)
        if found is None:
            return None
        return found._replace(written=lambda number: found.written(number).cast(kind))
    return _calendar(keys, None)


def _as_dates(keys: Any) -> Any:
    """Return text that is dates such as 2024-01-07 throughout as dates, other text as None."""
    import pyarrow as pa

    try:
        dates = keys.cast(pa.date32())
    except pa.ArrowInvalid:
        return None
    return dates if dates.cast(keys.type).equals(keys) else None


def _calendar(keys: Any, every: str | None) -> _Numbers | None:
    import pyarrow as pa

    kind = keys.type
    if not (pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.unit != "ns")):
        return None
    number, unit = periods.numbers(keys, every)
    named = "periods" if every is None else f"{every}s"
    return _Numbers(number, named, lambda number: periods.of_numbers(number, unit, kind))


def _regular(found: _Numbers, every: str | None) -> Spacing | None:
    """Return the distances of numbers where they are regular."""
    gap = np.diff(found.number)
    if float(found.number[-1]) - float(found.number[0]) > LARGEST or (gap <= 0).any():
        return None
    low, high, jumps = _core(gap)
    inner = gap[low : high - 1]
    step = periods.EVERY[every][1] if every else int(inner.min())
    beyond = np.ones(gap.size, dtype=np.bool_)
    beyond[low : high - 1] = False
    if (inner % step).any():
        return None
    place = np.concatenate([[0], np.cumsum(gap // step + (gap % step > step // 2))])
    core = place[high - 1] - place[low] + 1
    if not every and core - (high - low) > MOST_GAPS * (high - low):
        return None
    first = int(found.number[0])
    return Spacing(
        place,
        int(place[-1]) + 1,
        found.unit,
        lambda places: found.written(first + step * places),
        tuple(
            Outlying(far, near, int(abs(place[far] - place[near])))
            for far, near in jumps
            if abs(place[far] - place[near]) >= FAR
        ),
        not (gap[beyond] % step).any(),
    )


def _core(gap: Index) -> tuple[int, int, list[tuple[int, int]]]:
    """Return where the keys lie that no large gap parts from most others, and what it parts.

    The latter are pairs of a key that stands apart and its neighbour.
    """
    low, high = 0, gap.size + 1
    most = max(FEW, int(FEW_SHARE * high))
    jumps: list[tuple[int, int]] = []
    while high - low > 4:
        inner = gap[low : high - 1]
        k = int(inner.argmax())
        left, right = k + 1, inner.size - k
        rest = inner[k + 1 :] if left <= right else inner[:k]
        few = min(left, right)
        if few > most - (low + gap.size + 1 - high) or inner[k] < TIMES * rest.max():
            break
        if inner[k] < MOST_GAPS * rest.sum():
            break
        if left <= right:
            jumps.append((low + k, low + k + 1))
            low += left
        else:
            jumps.append((low + k + 1, low + k))
            high -= right
    return low, high, jumps
