"""The privacy loss of a pair on a grid, rounded up and rounded down: both are sound.

Up, the dots of the hockey-stick curve are connected: each bucket's two masses are split on its
ends so that both are kept, which only adds privacy loss (Doroshenko, Ghazi, Kamath, Kumar and
Manurangsi 2022). Masses beyond the last edge stand on it and, for the rest, at infinity.

Down, each bucket counts as a place on the grid near the logarithm of the ratio of its masses. The
sum of these places is a test statistic, and what any test of it reaches is a lower bound, however
the places were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from edp_bayes.divergence.composition.losses import bucket_masses
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array, Index

__all__ = ["Masses", "RoundedLosses", "refuse_large", "rounded", "rounded_losses"]

# Takes edges (pair, E) and offsets (pair,) and returns what `bucket_masses` does.
Masses = Callable[[Array, Array], tuple[Array, Array]]

EDGES = 64  # above the middle, as many below
# Edges grow by this ratio far from the middle, where it is reached with EDGES of them.
FIRST_EDGES = np.concatenate([[0.0], np.geomspace(1e-4, 600.0, 40)])
# Losses beyond it count as infinite, which is sound; up to it masses are exact.
LARGEST_LOSS = 60.0
FIRST_EDGES = FIRST_EDGES[FIRST_EDGES <= LARGEST_LOSS]
LARGEST_EPSILON = 30.0  # above, too little would be left between epsilon and the largest loss
BEYOND = 1e-8  # of delta, for all databases: what losses beyond the last edge may add to it
LARGEST = 1.0  # losses count as that in the spread
MIDDLE = 0.5  # of the spread: buckets have about one width up to there
STEPS = 2.0  # of the grid in the narrowest bucket
MOST_PLACES = 2**14  # up to the last edge
LEAST_SPREAD = 1e-12


class RoundedLosses(NamedTuple):
    """Privacy losses of S pairs on grids of their own.

    The loss at place n is offset + n step.

    Attributes
    ----------
    step, offset : ndarray
        Shape (S,).
    edges : ndarray of int
        Shape (S, 2 EDGES + 1): places of the upper masses.
    upper : ndarray
        Shape (S, 2, 2 EDGES + 1): masses under p and under q on the edges.
    infinite : ndarray
        Shape (S, 2): masses under p of a loss of infinity, under q of minus infinity.
    places : ndarray of int
        Shape (S, 2 EDGES + 3): places of the test statistic.
    tested : ndarray
        Shape (S, 2, 2 EDGES + 3): masses of both on these.
    """

    step: Array
    offset: Array
    edges: Index
    upper: Array
    infinite: Array
    places: Index
    tested: Array

    def at(self, pair: int) -> RoundedLosses:
        """Return the losses of one pair."""
        return RoundedLosses(*(part[pair] for part in self))


def rounded_losses(
    p: Array, q: Array, *, databases: int, largest: float, step: Array | None = None
) -> RoundedLosses:
    """Return the privacy losses of every pair, rounded up and down.

    Parameters
    ----------
    p, q : ndarray, shape (pair, K, 5) and (pair, L, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`.
    databases : int
        How many of them will be composed.
    largest : float
        The largest epsilon that counts.
    step : ndarray, shape (pair,), optional
        Step of the grids; fitted to the losses if not given.
    """
    masses_of = partial(bucket_masses, p, q)
    return rounded(masses_of, len(p), databases=databases, largest=largest, step=step)


def rounded(
    masses_of: Masses, pairs: int, *, databases: int, largest: float, step: Array | None = None
) -> RoundedLosses:
    """Return the privacy losses of pairs whose masses by bucket are known; see `rounded_losses`."""
    refuse_large(largest)
    offset, spread, end = _extent(masses_of, pairs, databases, largest)
    middle = MIDDLE * spread
    ratio = np.arcsinh(end / middle) / EDGES
    if step is None:
        step = np.maximum(middle * np.sinh(ratio) / STEPS, end / MOST_PLACES)
    count = np.arange(EDGES + 1)
    places = np.rint(middle[:, None] * np.sinh(ratio[:, None] * count) / step[:, None])
    # at least one step apart
    places = np.maximum.accumulate(places - count, axis=1) + count
    masses, excess = masses_of(places * step[:, None], offset)
    edges = np.concatenate([-places[:, :0:-1], places], axis=1).astype(np.int64)
    upper, infinite = _connected(masses, excess, edges * step[:, None], offset)
    return RoundedLosses(
        step, offset, edges, upper, infinite, *_tested(masses, excess, edges, step, offset)
    )


def refuse_large(epsilon: float) -> None:
    """Refuse epsilons at which losses of several databases are not bounded.

    Raises
    ------
    InvalidInputError
    """
    if epsilon > LARGEST_EPSILON:
        raise InvalidInputError(
            f"epsilon must be at most {LARGEST_EPSILON:g} for several databases together, found "
            f"{epsilon:g}: ask for smaller values with epsilon="
        )


def _extent(
    masses_of: Masses, pairs: int, databases: int, largest: float
) -> tuple[Array, Array, Array]:
    """Return the loss of the heaviest bucket, how far losses spread about it, and the last edge."""
    first = np.tile(FIRST_EDGES, (pairs, 1))
    masses, excess = masses_of(first, np.zeros(pairs))
    losses = _losses(masses, excess, np.zeros(pairs))
    rows = np.arange(pairs)
    heaviest = masses.sum(axis=1).argmax(axis=1)
    offset = np.clip(losses[rows, heaviest], -LARGEST_EPSILON, LARGEST_EPSILON)
    away = np.abs(losses - offset[:, None])
    mean = masses.mean(axis=1)
    spread = np.sqrt((mean * np.minimum(away, LARGEST) ** 2).sum(axis=1)).clip(LEAST_SPREAD)
    # what comes under q where p is larger, and under p where q is
    rare = np.where(losses > 0.0, masses[:, 1], masses[:, 0])
    order = np.argsort(-away, axis=1, kind="stable")
    beyond = np.cumsum(np.take_along_axis(rare, order, axis=1), axis=1)
    allowed = BEYOND * np.exp(-largest) / databases
    last = np.take_along_axis(away, order, axis=1)
    kept = (beyond > allowed).argmax(axis=1)
    end = 1.5 * last[rows, kept]
    end = np.minimum(np.maximum(end, 4.0 * spread), LARGEST_LOSS + np.abs(offset))
    return offset, spread, end


def _losses(masses: Array, excess: Array, offset: Array) -> Array:
    """Return log(P / Q) of every bucket."""
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log1p(excess / (np.exp(offset)[:, None] * masses[:, 1])) + offset[:, None]
        found = np.where(np.isfinite(near), near, np.log(masses[:, 0]) - np.log(masses[:, 1]))
    found = np.where(masses.sum(axis=1) > 0.0, found, offset[:, None])
    return np.asarray(np.clip(found, -FIRST_EDGES[-1], FIRST_EDGES[-1]))


def _connected(masses: Array, excess: Array, edges: Array, offset: Array) -> tuple[Array, Array]:
    """Split the masses of every bucket on its ends; edges are losses less the offset."""
    scale = np.exp(offset)[:, None]
    size = edges.shape[1]
    middle = size // 2
    # the bucket that is exactly the offset is empty or an atom on its edge
    inner = np.delete(np.arange(1, size + 1), middle)
    low, high = edges[:, :-1], edges[:, 1:]
    under_p, gain = masses[:, 0][:, inner], excess[:, inner]
    width = high - low
    # P exp(-low) - Q and exp(-low) - exp(-high), both times exp(low)
    right = (gain * np.exp(low) - under_p * np.expm1(low)) / -np.expm1(-width)
    right = np.clip(right, 0.0, under_p)
    upper = np.zeros((len(masses), 2, size))
    upper[:, 0, 1:] += right
    upper[:, 0, :-1] += under_p - right
    upper[:, 0, middle] += masses[:, 0, middle + 1]
    upper[:, 1] = upper[:, 0] * np.exp(-edges) / scale
    first, last = masses[:, :, 0], masses[:, :, -1]
    outer_low = np.minimum(first[:, 1], first[:, 0] * np.exp(-edges[:, 0]) / scale[:, 0])
    outer_high = np.minimum(last[:, 0], last[:, 1] * np.exp(edges[:, -1]) * scale[:, 0])
    upper[:, 0, 0] += first[:, 0]
    upper[:, 1, 0] += outer_low
    upper[:, 0, -1] += outer_high
    upper[:, 1, -1] += last[:, 1]
    infinite = np.stack([last[:, 0] - outer_high, first[:, 1] - outer_low], axis=1)
    return upper, infinite


def _tested(
    masses: Array, excess: Array, edges: Index, step: Array, offset: Array
) -> tuple[Index, Array]:
    """Return the place of every bucket on the grid, and the masses there."""
    away = (_losses(masses, excess, offset) - offset[:, None]) / step[:, None]
    limit = 2 * edges[:, -1:]
    return np.clip(np.rint(away), -limit, limit).astype(np.int64), masses
