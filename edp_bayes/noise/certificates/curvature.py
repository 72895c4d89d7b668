"""Noisy densities at the points of a lattice, and how much they can bend between them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.noise import LaplaceNoise, NoNoise
from edp_bayes.noise.certificates.densities import NoisyDensities
from edp_bayes.noise.distribution import NoiseDistribution

__all__ = ["bend", "bending_kernels", "values_and_bends"]

Array = NDArray[np.float64]


def values_and_bends(
    p: Array, q: Array, lattice: NoisyDensities
) -> tuple[list[Array], list[Array]]:
    """Return both noisy densities (draw, count) and their bends (draw, count - 1).

    Where p is q with the same share of every component moved, q and what moves are evaluated, each
    once.
    """
    half = p.shape[1] // 2
    share = p[:, half:, 0].sum(axis=1)
    twice = p.shape == q.shape and 2 * half == p.shape[1]
    if not twice or not (q[:, :half, 1:] == q[:, half:, 1:]).all() or not _split(p, q, share):
        values = [lattice(part) for part in (p, q)]
        return values, [bend(*each, lattice) for each in zip((p, q), values, strict=True)]
    still = np.concatenate([q[:, :half, :1] + q[:, half:, :1], q[:, :half, 1:]], axis=-1)
    parts = still, np.ascontiguousarray(p[:, half:])
    values = [lattice(part) for part in parts]
    bends = [bend(*each, lattice) for each in zip(parts, values, strict=True)]
    kept = (1.0 - share)[:, None]
    return (
        [kept * values[0] + values[1], values[0]],
        [kept * bends[0] + bends[1], bends[0]],
    )


def _split(p: Array, q: Array, share: Array) -> bool:
    """Return whether the first half of p is the share of q that stays, in every draw."""
    half = p.shape[1] // 2
    stays = (1.0 - share)[:, None] * (q[:, :half, 0] + q[:, half:, 0])
    still = (p[:, :half, 1:] == q[:, :half, 1:]).all()
    return bool(still and (np.abs(p[:, :half, 0] - stays) <= 1e-12).all())


def bend(components: Array, values: Array, lattice: NoisyDensities) -> Array:
    """Return bounds on the second derivative of a noisy density in every cell, (draw, count - 1).

    A Laplace kernel of scale s with noise of density h has G'' = (G - h) / s^2; for normal
    kernels see `bending_kernels`.

    Parameters
    ----------
    components : ndarray, shape (draw, component, 3)
        The density without noise.
    values : ndarray, shape (draw, count)
        The noisy density at the points.
    lattice : NoisyDensities
        The points and the noise.
    """
    single, s = lattice.noise.components[0], float(components[..., 2].min())
    if (
        len(lattice.noise.components) > 1
        or not isinstance(single, LaplaceNoise)
        or single.scale < s
    ):
        return _bend_of_kernel(components, lattice)
    # Laplace noise of scale b makes P'' = (P - p) / b^2 as well, with p the density without noise,
    # and in a cell no kernel exceeds the larger of its values at the ends by more than this factor
    steps = lattice.step / components[..., 2]
    peak = steps if lattice.kernel == "laplace" else 0.5 * steps**2
    weight = components[..., 0] * np.exp(np.minimum(peak, 700.0))
    raised = np.concatenate([weight[..., None], components[..., 1:]], axis=-1)
    nothing = replace(lattice, noise=NoiseDistribution((NoNoise(),)))
    both = math.exp(min(lattice.step / single.scale, 700.0)) * values + nothing(raised)
    return np.asarray((both[:, 1:] + both[:, :-1]) / single.scale**2)


def bending_kernels(weight: Array, scale: Array) -> tuple[Array, Array]:
    """Return weights and scales of normal densities that bound the bends of normal kernels.

    abs(k'') is at most 2.5 / s^2 times a normal density that is wider by a fifth.
    """
    return 2.5 * weight / scale**2, 1.2 * scale


def _bend_of_kernel(components: Array, lattice: NoisyDensities) -> Array:
    from edp_bayes.noise.certificates.smoothing import sliding_values

    w, mu, s = np.moveaxis(components, -1, 0)
    inflation = math.exp(min(lattice.step / float(s.min()), 700.0))
    if lattice.kernel == "gaussian":
        weight, scale = bending_kernels(w, s)
        wider = lattice(np.stack([weight, mu, scale], axis=-1))
        return inflation * np.maximum(wider[:, 1:], wider[:, :-1])
    own = lattice(np.stack([w / s**2, mu, s], axis=-1))
    result = inflation * np.maximum(own[:, 1:], own[:, :-1])
    first = np.floor((lattice.start - mu) / lattice.step).astype(np.int64)
    low = int(first.min())
    nodes = lattice.step * np.arange(low, int(first.max()) + lattice.count + 3)
    density = lattice.noise.pdf(nodes)
    table = np.maximum(np.maximum(density[:-2], density[1:-1]), density[2:])
    return result + sliding_values(table, w / s**2, first - low, lattice.count - 1)
