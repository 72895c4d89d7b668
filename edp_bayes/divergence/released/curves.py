"""The risk that is left of pairs of mixtures once answers are published in bins."""

from __future__ import annotations

import numpy as np

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.divergence.any_pair import curves as any_pair
from edp_bayes.divergence.integral import component_rows
from edp_bayes.divergence.released import masses, sign_changes
from edp_bayes.divergence.released.grid import MANY_BINS, MOST_BINS, Grid
from edp_bayes.utils.arrays import Array

__all__ = ["released_curves"]

UNSEEN = 1e-16  # mass of a rounded answer that does not count


def released_curves(
    p: Array,
    q: Array,
    epsilon: Array,
    grid: Grid,
    centre: Array,
    *,
    worst: bool = False,
    noise: GaussianNoise | LaplaceNoise | None = None,
    floor: float = 0.0,
) -> Array:
    """Return the risk of what is published for every pair of mixtures.

    Parameters
    ----------
    p, q : ndarray, shape (pair, K, 5)
        Components as distances from the centre, see `edp_bayes.divergence.any_pair.components`.
    epsilon : ndarray, shape (pair, E)
        Increasing.
    grid : Grid
        The bins.
    centre : ndarray, shape (pair,)
        What was subtracted from locations.
    worst : bool
        Bound the largest over all places of a stepped grid.
    noise : GaussianNoise or LaplaceNoise, optional
        Added to the middle of the bin, of which there must not be too many: else the risk without
        noise is returned, which is never below.
    floor : float
        Risks below need not be looked for.

    Returns
    -------
    ndarray, shape (pair, E)
    """
    growth = np.expm1(epsilon)
    both = _directions(p, q, epsilon, floor) if worst else None
    # the middles of bins become components, of which there must not be many; so do parts of a step
    most = MANY_BINS if noise is None and not worst else MOST_BINS
    out, few = masses.curves(p, q, growth, grid, centre, both, most=most)
    many = np.flatnonzero(~few)
    if both is not None:
        out[many] = both[many].max(axis=1)
    elif many.size:
        out[many] = _of_many_bins(p[many], q[many], epsilon[many], grid, centre[many], floor)
    if noise is not None and few.any():
        out[few] = _with_noise(p[few], q[few], epsilon[few], grid, centre[few], noise, floor)
    return out


def _of_many_bins(
    p: Array, q: Array, epsilon: Array, grid: Grid, centre: Array, floor: float
) -> Array:
    """Return the risk of pairs with many bins; beyond FAR that of the full answer, never below."""
    ordinary = np.minimum(epsilon, any_pair.FAR)
    found = sign_changes.curves(p, q, np.expm1(ordinary), grid, centre, floor=floor)
    far = epsilon > any_pair.FAR
    if far.any():
        full = any_pair.curves(p, q[:, None], epsilon, floor=floor)[:, 0]
        found = np.where(far, np.minimum(full, found), found)
    return np.asarray(found)


def _directions(p: Array, q: Array, epsilon: Array, floor: float) -> Array:
    """Return H_eps(p || q) and H_eps(q || p) of every pair, shape (pair, 2, E)."""
    if len(p) == 0:
        return np.zeros((0, 2, epsilon.shape[1]))
    both = [
        any_pair.curves(first, second[:, None], epsilon, direction=any_pair.FORWARD, floor=floor)
        for first, second in ((p, q), (q, p))
    ]
    return np.concatenate(both, axis=1)


def _with_noise(
    p: Array,
    q: Array,
    epsilon: Array,
    grid: Grid,
    centre: Array,
    noise: GaussianNoise | LaplaceNoise,
    floor: float,
) -> Array:
    """Return the risk of rounded answers with noise added: mixtures with a component a value."""
    kernel = "laplace" if isinstance(noise, LaplaceNoise) else "gaussian"
    edges, found, sizes = masses.masses(p, q, grid, centre)
    out = np.zeros_like(epsilon)
    for j, size in enumerate(sizes.tolist()):
        seen = np.flatnonzero(found[j, :, :size].max(axis=0) > UNSEEN)
        places = edges[j, 0] + grid.step * (seen - 0.5)
        scales = np.full(seen.size, noise.scale)
        rounded = (component_rows(part[seen], places, scales, kernel, None) for part in found[j])
        one, other = rounded
        out[j] = any_pair.curves(one[None], other[None, None], epsilon[j], floor=floor)[0, 0]
    return out
