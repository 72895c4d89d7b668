"""Sums over very many databases by repeated squaring, on grids that grow coarser as sums spread.

Sums over half of the databases are convolved with themselves, and with one database where their
number is odd. Both the number of convolutions and what is held grow with the logarithm of their
number: what no longer fits is put on a grid of half as many places. Up, this splits every loss on
its neighbours as `edp_bayes.divergence.composition.rounding` does, which only adds privacy loss;
what lies far below is put on the lowest place, what lies far above at infinity. Down, two places
count as one and ends are cut off, so that the sum remains a statistic of all answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["PLACES", "RoundedDown", "RoundedUp", "Sums", "powered"]

PLACES = 2**12  # of the grid of sums, from which on it grows coarser
TRIMMED = 1e-12  # mass at either end that is moved
ROWS = 128  # convolved at once


@dataclass(frozen=True, eq=False)
class Sums:
    """Masses of sums of losses, or of a statistic, over some databases.

    Attributes
    ----------
    masses : ndarray
        Shape (row, size): at the places (first + n) stride.
    first, stride : int
    databases : int
        Over how many.
    infinite : float
        Mass at infinity.
    lost : float
        What rounding of numbers may have moved, of a mass of one.
    """

    masses: Array
    first: int
    stride: int
    databases: int
    infinite: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True, eq=False)
class RoundedDown:
    """Sums of a statistic of the answers: whatever becomes of it remains one.

    Attributes
    ----------
    most : int
        Places that are held.
    """

    most: int = PLACES

    def joined(self, one: Sums, other: Sums) -> Sums:
        """Return sums over the databases of both."""
        while one.stride != other.stride:
            if one.stride < other.stride:
                one = self.coarser(one)
            else:
                other = self.coarser(other)
        return self.fitted(_convolved(one, other))

    def fitted(self, sums: Sums) -> Sums:
        """Return the sums on at most so many places."""
        sums = self.trimmed(sums)
        while sums.masses.shape[1] > self.most:
            sums = self.coarser(sums)
        return sums

    def coarser(self, sums: Sums) -> Sums:
        """Return the sums on every other place."""
        masses, first = _even(sums)
        return replace(
            sums, masses=masses[:, ::2] + masses[:, 1::2], first=first, stride=2 * sums.stride
        )

    def trimmed(self, sums: Sums) -> Sums:
        """Return the sums without ends that hold next to nothing, which count as the last place."""
        low, high = (_tail(sums.masses[:, ::sign].max(axis=0), TRIMMED) for sign in (1, -1))
        size = sums.masses.shape[1]
        if low + high >= size:
            return sums
        masses = sums.masses[:, low : size - high].copy()
        masses[:, 0] += sums.masses[:, :low].sum(axis=1)
        masses[:, -1] += sums.masses[:, size - high :].sum(axis=1)
        return replace(sums, masses=masses, first=sums.first + low)


@dataclass(frozen=True, eq=False)
class RoundedUp(RoundedDown):
    """Sums of privacy losses, in one direction: they only become larger.

    Attributes
    ----------
    step, offset : float
        The loss of one database at place n is offset + n step.
    largest : float
        The largest epsilon that counts.
    """

    step: float = 1.0
    offset: float = 0.0
    largest: float = 0.0

    def coarser(self, sums: Sums) -> Sums:
        """Return the sums on every other place, the masses between them split on both.

        So that the masses under both distributions are kept.
        """
        masses, first = _even(sums)
        above = 1.0 / (1.0 + math.exp(-self.step * sums.stride))
        odd = masses[:, 1::2]
        kept = np.pad(masses[:, ::2], ((0, 0), (0, 1)))
        kept[:, :-1] += (1.0 - above) * odd
        kept[:, 1:] += above * odd
        return replace(sums, masses=kept, first=first, stride=2 * sums.stride)

    def trimmed(self, sums: Sums) -> Sums:
        """Return the sums without ends: those below on the lowest place, those above at infinity.

        Above, what has next to no mass under either distribution.
        """
        masses, size = sums.masses[0], sums.masses.shape[1]
        low = _tail(masses, TRIMMED)
        losses = sums.databases * self.offset + self.step * sums.stride * (
            sums.first + np.arange(size)
        )
        under_other = masses * np.exp(np.clip(self.largest - losses, -700.0, 700.0))
        high = max(_tail(part[::-1], TRIMMED) for part in (masses, under_other))
        if low + high >= size:
            return sums
        kept = masses[low : size - high].copy()
        kept[0] += masses[:low].sum()
        moved = float(masses[size - high :].sum())
        return replace(
            sums, masses=kept[None], first=sums.first + low, infinite=sums.infinite + moved
        )


def powered(direct: Callable[[int], Sums | None], databases: int, rule: RoundedDown) -> Sums:
    """Return sums over so many databases.

    Parameters
    ----------
    direct : callable
        Returns sums over some databases, or None where these spread too far; never for one.
    databases : int
        How many.
    rule : RoundedDown
        How sums are joined.
    """
    bits = []
    while (found := direct(databases)) is None:
        bits.append(databases & 1)
        databases >>= 1
    found = rule.fitted(found)
    single = None
    for bit in reversed(bits):
        found = rule.joined(found, found)
        if bit:
            single = single or rule.fitted(_there(direct(1)))
            found = rule.joined(found, single)
    return found


def _there(sums: Sums | None) -> Sums:
    assert sums is not None
    return sums


def _convolved(one: Sums, other: Sums) -> Sums:
    from scipy import fft

    size = one.masses.shape[1] + other.masses.shape[1] - 1
    length = int(fft.next_fast_len(size, real=True))
    rows = one.masses.shape[0]
    masses = np.empty((rows, size))
    for start in range(0, rows, ROWS):
        part = slice(start, start + ROWS)
        found = fft.rfft(one.masses[part], length, axis=1)
        if one is other:
            found *= found
        else:
            found *= fft.rfft(other.masses[part], length, axis=1)
        masses[part] = fft.irfft(found, length, axis=1)[:, :size]
    # errors of transforms in the norm of squares, in units of the last place of a number
    norm = math.sqrt(float((one.masses**2).sum(axis=1).max()))
    lost = math.sqrt(length) * math.log2(length) * np.finfo(np.float64).eps * norm
    return Sums(
        np.maximum(masses, 0.0),
        one.first + other.first,
        one.stride,
        one.databases + other.databases,
        one.infinite + other.infinite - one.infinite * other.infinite,
        one.lost + other.lost + lost,
    )


def _even(sums: Sums) -> tuple[Array, int]:
    """Return an even number of places from an even one on, and half of that one."""
    before = sums.first % 2
    after = (before + sums.masses.shape[1]) % 2
    masses = sums.masses
    if before or after:
        masses = np.pad(masses, ((0, 0), (before, after)))
    return masses, (sums.first - before) // 2


def _tail(masses: Array, most: float) -> int:
    """Return how many of the first places hold no more mass than that together."""
    return int(np.searchsorted(np.cumsum(masses), most, side="right"))
