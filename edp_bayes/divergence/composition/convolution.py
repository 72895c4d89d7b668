"""Hockey-stick curves of many independent databases, from privacy losses on grids.

The loss of all databases together is the sum of theirs: a convolution, by fast Fourier transforms
in a window outside of which there is next to nothing (Chernoff). Where that window would be too
wide, sums over fewer databases are folded and then doubled
(`edp_bayes.divergence.composition.doubling`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.composition.doubling import PLACES, RoundedDown, RoundedUp, Sums, powered
from edp_bayes.divergence.composition.rounding import RoundedLosses
from edp_bayes.utils.arrays import Array, Index

__all__ = ["composed_curves", "folded_draws", "power", "slack"]

# What the window and rounding may be wrong by; it is added to upper and taken off lower curves.
SLACK = 1e-10
TRANSFORMED = 1e-13  # error of a mass that was found by transforms, of which exp(epsilon) counts
OUTSIDE = 1e-12  # mass outside the window, at either end
LOST = 5e-12  # what both may be wrong by where sums in a window are doubled
# Places of a window for all databases, from which on sums over fewer are doubled: of one pair, and
# where all draws are folded at once.
WIDEST, WIDEST_BY_DRAW = 2**15, 2**12
SURELY_WIDE = 10.0  # spreads that a window has at least
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
    if size > WIDEST:
        return _doubled_curves(parts, counts, epsilon)
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
    lower = _best_of_both(under[0], under[1], epsilon)
    return _bounded(upper, lower, SLACK, slack(epsilon))


def _doubled_curves(
    parts: Sequence[RoundedLosses], counts: Sequence[int], epsilon: Array
) -> tuple[Array, Array]:
    """Return the bounds of `composed_curves` where a window for all databases is too wide."""
    upper, lost = np.zeros(epsilon.size), SLACK
    for side, sign in ((0, 1), (1, -1)):
        found = _joined(
            [sign * one.edges for one in parts],
            [one.upper[side][None] for one in parts],
            [float(one.infinite[side]) for one in parts],
            counts,
            [
                RoundedUp(PLACES, float(one.step), sign * float(one.offset), float(epsilon[-1]))
                for one in parts
            ],
        )
        shift = sum(sign * k * float(one.offset) for one, k in zip(parts, counts, strict=True))
        places = found.first + np.arange(found.masses.shape[1])
        losses = np.asarray(shift + float(parts[0].step) * found.stride * places)
        upper = np.maximum(upper, _above(losses, found.masses[0], found.infinite, epsilon))
        lost = max(lost, found.lost)
    under = _joined(
        [one.places for one in parts],
        [one.tested for one in parts],
        [0.0] * len(parts),
        counts,
        [RoundedDown()] * len(parts),
    )
    lower = _best_of_both(under.masses[0], under.masses[1], epsilon)
    return _bounded(upper, lower, lost, slack(epsilon, under.lost))


def slack(epsilon: Array, lost: float = 0.0) -> Array:
    """Return what a lower bound P(S) - exp(epsilon) Q(S) may be wrong by at every epsilon."""
    return np.maximum(max(SLACK, lost), TRANSFORMED * np.exp(epsilon))


def _bounded(upper: Array, lower: Array, above: float, below: Array) -> tuple[Array, Array]:
    """Return both bounds with what each may be wrong by."""
    upper = np.minimum(upper + above, 1.0)
    return upper, np.clip(lower - below, 0.0, upper)


def _joined(
    places: Sequence[Index],
    masses: Sequence[Array],
    infinite: Sequence[float],
    counts: Sequence[int],
    rules: Sequence[RoundedDown],
) -> Sums:
    """Return sums over all databases, those of each kind doubled on their own.

    Parameters
    ----------
    places : sequence of ndarray of int, shape (cell,)
        Of each kind of database.
    masses : sequence of ndarray, shape (row, cell)
        Of all that is folded at once.
    infinite : sequence of float
        Mass at infinity.
    counts : sequence of int
        Number of databases of each kind.
    rules : sequence of RoundedDown
        How sums of each kind are joined.
    """
    found: Sums | None = None
    total, offset = 0, 0.0
    for place, mass, beyond, count, rule in zip(
        places, masses, infinite, counts, rules, strict=True
    ):

        def direct(
            databases: int,
            place: Index = place,
            mass: Array = mass,
            beyond: float = beyond,
            rule: RoundedDown = rule,
        ) -> Sums | None:
            return _direct(place, mass, beyond, databases, rule.most)

        one = powered(direct, count, rule)
        if isinstance(rule, RoundedUp):
            # one offset of all databases together
            offset += count * rule.offset
            rule = replace(rule, offset=offset / (total + count))
        total += count
        found = one if found is None else rule.joined(found, one)
    assert found is not None
    return found


def _direct(place: Index, mass: Array, beyond: float, databases: int, most: int) -> Sums | None:
    """Return sums over some databases of one kind in one window, None where it is too wide."""
    single, infinite = [databases], _any_of([beyond], [databases])
    spread = max(_variance(place, row) for row in mass) ** 0.5
    if SURELY_WIDE * spread * math.sqrt(databases) > most and databases > 1:
        return None
    ends = [_ends([place], [row], single) for row in mass]
    low = math.floor(min(end[0] for end in ends))
    size = _good_size(math.ceil(max(end[1] for end in ends)) - low + 1)
    if size > most and databases > 1:
        return None
    found = np.stack([_folded([(place, row)], single, size, low) for row in mass])
    return Sums(found, low, 1, databases, infinite, LOST)


def folded_draws(
    places: Sequence[Index], masses: Sequence[Sequence[Array]], counts: Sequence[int]
) -> tuple[Array, Array, float]:
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
    lost : float
        What either may be wrong by.
    """
    rows = [np.concatenate([np.asarray(side) for side in both]) for both in masses]
    ends = [_ends(list(places), [part[s] for part in rows], counts) for s in range(len(rows[0]))]
    low = math.floor(min(end[0] for end in ends))
    size = _good_size(math.ceil(max(end[1] for end in ends)) - low + 1)
    if size > WIDEST_BY_DRAW:
        rule = RoundedDown(WIDEST_BY_DRAW)
        kinds = len(places)
        found = _joined(places, rows, [0.0] * kinds, counts, [rule] * kinds)
        folded, lost = found.masses, max(SLACK, found.lost)
    else:
        parts = [list(zip(places, row, strict=True)) for row in zip(*rows, strict=True)]
        folded, lost = np.stack([_folded(part, counts, size, low) for part in parts]), SLACK
    middle = len(folded) // 2
    return folded[:middle], folded[middle:], lost


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
    variance = 0.0
    for place, mass, count in zip(places, masses, counts, strict=True):
        variance += count * _variance(place, mass)
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


def _variance(place: Index, mass: Array) -> float:
    centre = float(mass @ place) / max(float(mass.sum()), 1e-300)
    return float(mass @ (place - centre) ** 2)


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


def _best_of_both(under_p: Array, under_q: Array, epsilon: Array) -> Array:
    """Return the largest of both directions that tests of a statistic reach."""
    return np.maximum(
        _best_test(under_p, under_q, epsilon), _best_test(under_q[::-1], under_p[::-1], epsilon)
    )


def _best_test(under_p: Array, under_q: Array, epsilon: Array) -> Array:
    """Return the largest P(S > c) - exp(epsilon) Q(S > c) over all c, at every epsilon."""
    above_p, above_q = (np.cumsum(mass[::-1]) for mass in (under_p, under_q))
    return np.asarray((above_p - np.exp(epsilon)[:, None] * above_q).max(axis=1))
