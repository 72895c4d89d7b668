"""Sums of floating-point numbers that are exact, so that no order of adding changes a bit.

A number is split into parts, each a multiple of its own unit and so small that the sums of all
parts of one unit are whole numbers of units below 2^53: every partial sum is exact in float64, in
every order and on every engine (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31, 2008, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array, Index

__all__ = ["ExactSum", "blocks", "multiples", "rounding_to", "split", "sum_by", "units", "wide"]


# Bits below the largest number that are kept: two numbers of which one is 2^75 times the other
# keep all their digits.
BITS = 128
BLOCK = 1_000_000  # sums rounded at a time, to save memory
LOWEST = -1074  # exponent of the smallest float64


def units(count: int, largest: float, smallest: float, what: str) -> tuple[float, ...]:
    """Return the units of the parts of numbers, the largest first.

    Parameters
    ----------
    count : int
        How many numbers there are.
    largest, smallest : float
        Bounds of their absolute values other than zero.
    what : str
        What they are, for messages.

    Raises
    ------
    InvalidInputError
        If a sum may exceed the largest float64.

    Examples
    --------
    >>> units(1000, 3.0, 0.5, "x")
    (1.8189894035458565e-12, 4.1359030627651384e-25)
    """
    if largest == 0.0:
        return (1.0,)
    width = 51 - max(1, math.ceil(math.log2(count)))
    top = math.frexp(largest)[1] if math.isfinite(largest) else 1024
    if top + 53 - width > 1023 or top + math.log2(count) > 1023:
        raise InvalidInputError(
            f"{what} of size {largest:g} are too large: their sum may be more than 1.8e308, the "
            "largest number there is; give them in a larger unit, such as thousands"
        )
    lowest = math.frexp(smallest)[1] - 53 if smallest > 0.0 else LOWEST
    lowest = max(lowest, top - BITS, LOWEST)
    exponents = [top - width]
    while exponents[-1] > lowest:
        exponents.append(exponents[-1] - width - 1)
    return tuple(2.0 ** max(exponent, LOWEST) for exponent in exponents)


def wide(of: Sequence[float], count: int, most: int) -> tuple[float, ...]:
    """Return fewer units, with the same last one, for sums of no more than some of the numbers.

    The parts of a number are fewer and larger; what is rounded off below the last unit, and so the
    exact sum, is the same.

    Parameters
    ----------
    of : sequence of float
        Units for sums of all numbers, as of `units`.
    count, most : int
        How many numbers there are, and how many are added at most.

    Examples
    --------
    >>> narrow = units(10**8, 3.0, 0.5, "x")
    >>> len(narrow), len(wide(narrow, 10**8, 4096))
    (3, 2)
    """
    bits = [max(1, math.ceil(math.log2(number))) for number in (count, most)]
    if bits[0] <= bits[1] or len(of) == 1:
        return tuple(of)
    exponent = math.frexp(of[0])[1] - 1 - (bits[0] - bits[1])
    lowest = math.frexp(of[-1])[1] - 1
    exponents = [max(exponent, lowest)]
    while exponents[-1] > lowest:
        exponents.append(max(exponents[-1] - (52 - bits[1]), lowest))
    return tuple(2.0**exponent for exponent in exponents)


def blocks(size: int) -> Iterator[slice]:
    """Yield the slices of so many groups, to save memory where each needs several numbers."""
    for start in range(0, size, BLOCK):
        yield slice(start, start + BLOCK)


def rounding_to(unit: float) -> float:
    """Return the number m for which (x + m) - m is x rounded to a multiple of a unit."""
    return 1.5 * 2.0**52 * unit


def split(values: Array, of: Sequence[float]) -> Iterator[Array]:
    """Yield the parts of numbers; what lies below the last unit is rounded off.

    Examples
    --------
    >>> [float(part) for part in split(np.float64(3.3), (1.0, 2.0**-10))]
    [3.0, 0.2998046875]
    """
    rest = values
    for unit in of:
        part = (rest + rounding_to(unit)) - rounding_to(unit)
        yield part
        rest = rest - part


def multiples(values: Array, unit: float) -> bool:
    """Return whether numbers are multiples of a unit, few enough of it to be exact.

    Examples
    --------
    >>> multiples(np.array([0.5, -3.0]), 0.5), multiples(np.array([0.75]), 0.5)
    (True, False)
    """
    count = values / unit
    return bool(((np.rint(count) == count) & (np.abs(count) <= 2.0**53)).all())


@dataclass(frozen=True, eq=False)
class ExactSum:
    """Sums of many groups of numbers, kept by parts.

    Attributes
    ----------
    units : tuple of float
        Unit of every part, the largest first.
    parts : tuple of ndarray
        Sums of each part, shape (group,).
    narrow : tuple of float, optional
        Units for sums of all groups, where those of each group are `wide`.
    """

    units: tuple[float, ...]
    parts: tuple[Array, ...]
    narrow: tuple[float, ...] | None = None

    def by(self, group: Index, size: int) -> ExactSum:
        """Return the sums of groups of groups."""
        of = self.narrow or self.units
        totals = tuple(np.zeros(size) for _ in of)
        for block in blocks(group.size):
            for total, part in zip(totals, self[block].narrowed().parts, strict=True):
                total += np.bincount(group[block], part, size)
        return ExactSum(of, totals)

    def narrowed(self) -> ExactSum:
        """Return the same sums by the units for sums of all groups."""
        if self.narrow is None or self.narrow == self.units:
            return self
        totals = tuple(np.zeros_like(self.parts[0]) for _ in self.narrow)
        for part in self.parts:
            for total, own in zip(totals, split(part, self.narrow), strict=True):
                total += own
        return ExactSum(self.narrow, totals)

    def __getitem__(self, place: Any) -> ExactSum:
        """Return the sums of some groups."""
        return ExactSum(self.units, tuple(part[place] for part in self.parts), self.narrow)

    def __sub__(self, other: ExactSum) -> ExactSum:
        """Return the differences, exactly."""
        pairs = zip(self.parts, other.narrowed().parts, strict=True)
        return ExactSum(self.units, tuple(mine - theirs for mine, theirs in pairs))

    def about(self, origin: Array, count: Index) -> ExactSum:
        """Return the sums of the same numbers minus an origin that is a multiple of the units."""
        parts = zip(self.parts, split(origin, self.units), strict=True)
        found = tuple(part - count * own for part, own in parts)
        return ExactSum(self.units, found, self.narrow)

    def origin(self, count: Index) -> Array:
        """Return the means, rounded to multiples of the units; of no numbers, zero."""
        mean = self.plain() / np.maximum(count, 1)
        return np.asarray(sum(split(mean, self.units), np.zeros_like(mean)))

    def plain(self) -> Array:
        """Return the sums, added from the smallest part as an engine can: some digits may go."""
        total = self.parts[-1]
        for part in self.parts[-2::-1]:
            total = total + part
        return total

    def rounded(self) -> Array:
        """Return the sums as the nearest float64."""
        found = np.empty(self.parts[0].shape)
        for block in blocks(found.size):
            found[block] = self[block]._rounded()
        return found

    def _rounded(self) -> Array:
        parts = list(self.parts)
        for k in range(len(parts) - 1, 0, -1):
            step = rounding_to(self.units[k - 1])
            carry = (parts[k] + step) - step
            parts[k] = parts[k] - carry
            parts[k - 1] = parts[k - 1] + carry
        high, low = parts[0], np.zeros_like(parts[0])
        for part in parts[1:]:
            total = high + part
            held = total - high
            low = low + ((high - (total - held)) + (part - held))
            high = total
        return high + low


def sum_by(values: Array, of: tuple[float, ...], group: Index, size: int) -> ExactSum:
    """Return the sums of the numbers of every group.

    Examples
    --------
    >>> numbers = np.array([1e16, 1.0, -1e16, 0.1])
    >>> found = sum_by(numbers, units(4, 1e16, 0.1, "x"), np.zeros(4, dtype=int), 1)
    >>> found.rounded()
    array([1.1])
    """
    return ExactSum(of, tuple(np.bincount(group, part, size) for part in split(values, of)))
