"""Quasi-random points of a mixture of multivariate normals: one Sobol net, shifted by draw."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.utils.arrays import Array

__all__ = ["FAR_POINTS", "POINTS", "digital_shifts", "mixture_points", "uniform_points"]

POINTS, FAR_POINTS = 1024, 4096
BITS = 30
NET = 2026  # seed of the net's linear scrambling, the same for every audit


@cache
def _net(dimensions: int) -> NDArray[np.int64]:
    """Return a scrambled Sobol net as integers, shape (FAR_POINTS, dimensions)."""
    from scipy.stats.qmc import Sobol

    uniform = Sobol(dimensions, bits=BITS, rng=np.random.default_rng(NET)).random(FAR_POINTS)
    return (uniform * 2**BITS).astype(np.int64)


def digital_shifts(draws: int, d: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return one random digital shift for each draw and coordinate, shape (draw, d + 1)."""
    source = np.random.Philox(key=[seed, 0], counter=[0, 0, stream, 4])
    return np.random.Generator(source).integers(0, 2**BITS, (draws, d + 1))


def uniform_points(shifts: NDArray[np.int64]) -> Array:
    """Return points between zero and one, (draw, FAR_POINTS, coordinate), for digital shifts."""
    return np.asarray(((_net(shifts.shape[1]) ^ shifts[:, None]) + 0.5) / 2.0**BITS)


def mixture_points(mixture: NormalMixture, shifts: NDArray[np.int64]) -> Array:
    """Return points of every draw, shape (draw, d, FAR_POINTS), each uniform in its distribution.

    The first coordinate picks the component, the others are normal. Its first POINTS, and every
    eighth of them in order, are nets of their own.

    Parameters
    ----------
    mixture : NormalMixture
        Shape (draw, component).
    shifts : ndarray of int
        Shape (draw, d + 1): digital shifts.
    """
    from scipy.special import ndtri

    d = mixture.dimensions
    uniform = uniform_points(shifts)
    edges = np.cumsum(mixture.weights, axis=-1)
    edges /= edges[:, -1:]
    factors = np.linalg.cholesky(mixture.each_covariance)
    out = np.empty((len(shifts), d, FAR_POINTS))
    for s, points in enumerate(uniform):
        chosen = np.searchsorted(edges[s, :-1], points[:, 0], side="right")
        normal = ndtri(points[:, 1:])
        moved = np.einsum("nab,nb->na", factors[s, chosen], normal)
        out[s] = (mixture.locations[s, chosen] + moved).T
    return out
