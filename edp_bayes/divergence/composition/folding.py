"""Hockey-stick curves of many independent databases, from privacy losses on grids.

The loss of all databases together is the sum of theirs: a convolution, by fast Fourier transforms
in a window outside of which there is next to nothing (Chernoff).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.composition.rounding import RoundedLosses

__all__ = ["SLACK", "composed_curves", "folded_draws", "power"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# What the window and rounding may be wrong by; it is added to upper and taken off lower curves.
SLACK = 1e-10
OUTSIDE = 1e-12  # mass outside the window, at either end
TILTS = np.geomspace(0.05, 20.0, 14)  # of that which would be best for a normal distribution


def composed_curves(
    parts: Sequence[RoundedLosses], counts: Sequence[int], epsilon: Array
) -> tuple[Array, Array]:
    """Return an upper and a lower bound of delta of one individual over several databases.

    Parameters
    ----------
    parts : sequence of RoundedLosses
        Of one pair each, all with the same step.
    counts : sequence of int
        How many independent databases there are of each.
    epsilon : ndarray, shape (E,)
        Increasing.

    Returns
    -------
    upper, lower : ndarray, shape (E,)
        Bounds of max(H(P || Q), H(Q || P)) of the products of all distributions.
    """
    step = float(parts[0].step)
    shift = sum(k * float(part.offset) for part, k in zip(parts, counts, strict=True))
    size, first = _window(parts, counts)
    losses = np.asarray(shift + step * (first + np.arange(size)), dtype=np.float64)
    folded, infinite = [], []
    for side in (0, 1):
        folded.append(_folded([(one.edges, one.upper[side]) for one in parts], counts, size, first))
        infinite.append(_any_of([float(one.infinite[side]) for one in parts], counts))
    upper = np.maximum(
        _above(losses, folded[0], infinite[0], epsilon),
        _above(-losses[::-1], folded[1][::-1], infinite[1], epsilon),
    )
    under = [
        _folded([(one.places, one.tested[side]) for one in parts], counts, size, first)
        for side in (0, 1)
    ]
    lower = np.maximum(
        _best_test(under[0], under[1], epsilon), _best_test(under[1][::-1], under[0][::-1], epsilon)
    )
    upper = np.minimum(upper + SLACK, 1.0)
    return upper, np.clip(lower - SLACK, 0.0, upper)


def folded_draws(
    places: Sequence[Index], masses: Sequence[Sequence[Array]], counts: Sequence[int]
) -> tuple[Array, Array]:
    """Return the masses of sums of places over all databases, under p and under q, in every draw.

    Parameters
    ----------
    places : sequence of ndarray of int, shape (cell,)
        Of each kind of database.
    masses : sequence of two ndarray, shape (draw, cell)
        Under p and under q.
    counts : sequence of int
        Number of databases of each kind.

    Returns
    -------
    under_p, under_q : ndarray
        Shape (draw, size), in the order of the sums.
    """
    ends = [
        _ends(list(places), [one[side][s] for one in masses], counts)
        for side in (0, 1)
        for s in range(len(masses[0][0]))
    ]
    low = math.floor(min(end[0] for end in ends))
    size = _good_size(math.ceil(max(end[1] for end in ends)) - low + 1)
    under_p, under_q = (
        np.stack(
            [
                _folded(
                    [(place, both[side][s]) for place, both in zip(places, masses, strict=True)],
                    counts, size, low,
                )
                for s in range(len(masses[0][0]))
            ]
        )
        for side in (0, 1)
    )  # fmt: skip
    return under_p, under_q


def _window(parts: Sequence[RoundedLosses], counts: Sequence[int]) -> tuple[int, int]:
    """Return how many places hold all but a negligible part of the sums, and the first of them."""
    ends = [
        _ends([getattr(one, places) for one in parts], [getattr(one, under)[side] for one in parts],
              counts)
        for places, under in (("edges", "upper"), ("places", "tested"))
        for side in (0, 1)
    ]  # fmt: skip
    low = math.floor(min(end[0] for end in ends))
    high = math.ceil(max(end[1] for end in ends))
    return _good_size(high - low + 1), low


def _ends(places: list[Index], masses: list[Array], counts: Sequence[int]) -> tuple[float, float]:
    """Return the ends beyond which sums of places lie with a probability of OUTSIDE each."""
    mean = variance = 0.0
    for place, mass, count in zip(places, masses, counts, strict=True):
        centre = float(mass @ place) / max(float(mass.sum()), 1e-300)
        mean += count * centre
        variance += count * float(mass @ (place - centre) ** 2)
    allowed = -math.log(OUTSIDE)
    tilts = TILTS * math.sqrt(2.0 * allowed / max(variance, 1.0))
    found = []
    for sign in (-1.0, 1.0):
        log_moments = np.zeros_like(tilts)
        for place, mass, count in zip(places, masses, counts, strict=True):
            exponents = sign * np.outer(tilts, place)
            top = exponents.max(axis=1)
            total = np.exp(exponents - top[:, None]) @ mass
            log_moments += count * (np.log(np.maximum(total, 1e-300)) + top)
        found.append(sign * float(((log_moments + allowed) / tilts).min()))
    least, most = (
        float(sum(k * end(place) for place, k in zip(places, counts, strict=True)))
        for end in (np.min, np.max)
    )
    return max(found[0], least), min(found[1], most)


def _good_size(size: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(size, real=True))


def _folded(
    parts: Sequence[tuple[Index, Array]], counts: Sequence[int], size: int, first: int
) -> Array:
    """Return the masses of sums of places from the first on, in a window of that size."""
    from scipy import fft

    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for (places, masses), count in zip(parts, counts, strict=True):
        on_grid = np.bincount(places % size, masses, size)
        product *= power(fft.rfft(on_grid), count)
    sums = np.asarray(fft.irfft(product, size))
    return np.maximum(np.roll(sums, -(first % size)), 0.0)


def power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return an integer power by squaring, several times faster than that of NumPy."""
    result: NDArray[np.complex128] | None = None
    while True:
        if exponent & 1:
            result = values if result is None else result * values
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        values = values * values


def _any_of(masses: Sequence[float], counts: Sequence[int]) -> float:
    """Return the probability that anything of these masses comes in so many databases."""
    if max(masses) >= 1.0:
        return 1.0
    none = sum(k * math.log1p(-mass) for mass, k in zip(masses, counts, strict=True))
    return -math.expm1(none)


def _above(losses: Array, masses: Array, infinite: float, epsilon: Array) -> Array:
    """Return the sum of mass (1 - exp(epsilon - loss)) over losses above epsilon, and infinity."""
    from_above = np.cumsum(masses[::-1])[::-1]
    with np.errstate(over="ignore", under="ignore"):
        discounted = np.cumsum((masses * np.exp(-np.maximum(losses, -50.0)))[::-1])[::-1]
    start = np.searchsorted(losses, epsilon, side="right")
    padded = np.append(from_above, 0.0), np.append(discounted, 0.0)
    found = padded[0][start] - np.exp(epsilon) * padded[1][start]
    return np.asarray(np.maximum(found, 0.0) + infinite)


def _best_test(under_p: Array, under_q: Array, epsilon: Array) -> Array:
    """Return the largest P(S > c) - exp(epsilon) Q(S > c) over all c, at every epsilon."""
    above_p, above_q = (np.cumsum(mass[::-1]) for mass in (under_p, under_q))
    return np.asarray((above_p - np.exp(epsilon)[:, None] * above_q).max(axis=1))
