"""A tighter upper bound from each individual's own privacy curve: its dots composed on a grid.

The pair that dominates a curve at a few epsilons (`edp_bayes.divergence.composition.screening`) has
masses at these epsilons and at their negatives. Here each is split on the ends of its bucket of a
grid, as in `edp_bayes.divergence.composition.rounding`, and many individuals are composed at once.
Masses beyond a cut stand at infinity.
"""

from __future__ import annotations

import numpy as np

from edp_bayes.divergence.composition.convolution import SLACK, power
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import in_threads

__all__ = ["coarse_bounds"]

SIZE = 1024  # places of the grid
REACH = 12.0  # of the window on either side, in spreads of all databases together
CUT = 4.0  # larger losses of one database count as infinite, in the same unit
TILTS = np.array([2.0, 4.0, 6.0, 8.0, 11.0])  # over that unit
BLOCK = 128  # curves at once; their numbers, not those of threads, decide the last bit
LARGEST = 1.0
LEAST = 1e-9


def coarse_bounds(curves: Array, grid: Array, databases: int, epsilon: Array) -> Array:
    """Return an upper bound of delta over independent databases.

    Parameters
    ----------
    curves : ndarray, shape (S, G)
        max(H(p || q), H(q || p)), never rising.
    grid : ndarray, shape (G,)
        Their epsilons, increasing from 0.
    databases : int
        How many there are.
    epsilon : ndarray, shape (E,)
        Increasing.

    Returns
    -------
    ndarray, shape (S, E)

    Examples
    --------
    >>> from edp_bayes.divergence.composition.screening import screening_epsilons
    >>> from edp_bayes.divergence.shifts import gaussian_shift
    >>> epsilon = np.array([0.1])
    >>> grid = screening_epsilons(epsilon, 52)
    >>> bound = coarse_bounds(gaussian_shift(0.03, grid)[None], grid, 52, epsilon)
    >>> exact = gaussian_shift(0.03 * 52**0.5, epsilon)
    >>> bool(exact < bound[0] < 1.3 * exact)
    True
    """
    out = np.empty((len(curves), epsilon.size))

    def fill(first: int, last: int) -> None:
        for block in range(first, last):
            part = slice(block * BLOCK, (block + 1) * BLOCK)
            out[part] = _bounds(curves[part], grid, databases, epsilon)

    in_threads(fill, -(-len(curves) // BLOCK))
    return out


def _bounds(curves: Array, grid: Array, databases: int, epsilon: Array) -> Array:
    from scipy import fft

    at, x = grid[1:], np.exp(grid[1:])
    slopes = -np.diff(curves, axis=1) / np.diff(np.exp(grid))
    slopes = np.maximum.accumulate(slopes[:, ::-1], axis=1)[:, ::-1]
    masses = slopes - np.concatenate([slopes[:, 1:], np.zeros_like(slopes[:, :1])], axis=1)
    square = (masses * (x + 1.0)) @ np.minimum(at, LARGEST) ** 2
    unit = np.sqrt(databases * square).clip(LEAST)
    step = 2.0 * REACH * unit / SIZE
    beyond = at > CUT * unit[:, None]
    infinite = curves[:, -1] + (masses * x * beyond).sum(axis=1)
    # on the grid: upwards where p is larger, downwards where q is
    low = np.floor(at / step[:, None])
    low = np.where(beyond, np.floor(CUT * unit / step)[:, None], low)
    rest = np.where(beyond, 0.0, at - low * step[:, None])
    width = -np.expm1(-step)[:, None]
    right = np.clip(-np.expm1(-rest) / width, 0.0, 1.0)
    # of a loss of -at the bucket ends at -low: its share, up there, of what p has
    upper = np.clip(-np.expm1(rest - step[:, None]) / width, 0.0, 1.0)
    upper = np.where(beyond, 1.0, upper)
    above = np.where(beyond, 0.0, masses * x)
    places = np.concatenate([low + 1.0, low, -low, -low - 1.0], axis=1)
    mass = np.concatenate(
        [above * right, above * (1.0 - right), masses * upper, masses * (1.0 - upper)], axis=1
    )
    middle = np.maximum(1.0 - infinite - mass.sum(axis=1), 0.0)
    rows = np.arange(len(curves))
    on_grid = np.bincount(
        (rows[:, None] * SIZE + places.astype(np.int64) % SIZE).ravel(),
        mass.ravel(),
        len(curves) * SIZE,
    ).reshape(-1, SIZE)
    on_grid[:, 0] += middle
    sums = fft.irfft(power(fft.rfft(on_grid, axis=1), databases), SIZE, axis=1)
    sums = np.maximum(np.roll(sums, SIZE // 2, axis=1), 0.0)
    losses = step[:, None] * (np.arange(SIZE) - SIZE // 2)
    missed = _beyond_window(places * step[:, None], mass, middle, unit, databases)
    missed -= np.expm1(databases * np.log1p(-np.minimum(infinite, 1.0 - LEAST)))
    out = np.empty((len(curves), epsilon.size))
    for e, level in enumerate(epsilon):
        out[:, e] = (sums * np.maximum(-np.expm1(level - losses), 0.0)).sum(axis=1)
    return np.asarray(np.minimum(out + missed[:, None] + SLACK, 1.0))


def _beyond_window(losses: Array, mass: Array, middle: Array, unit: Array, databases: int) -> Array:
    """Return a bound of the mass of sums above the window, which would come back from below."""
    found = np.full(len(losses), np.inf)
    for tilt in TILTS:
        moment = middle + (mass * np.exp(tilt / unit[:, None] * losses)).sum(axis=1)
        edge = tilt * REACH * (1.0 - 2.0 / SIZE)
        exponent = databases * np.log(np.maximum(moment, LEAST)) - edge
        found = np.minimum(found, np.exp(np.minimum(exponent, 0.0)))
    return found
