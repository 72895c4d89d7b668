"""Noisy densities at the points of a lattice, and how much they can bend between them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import LaplaceNoise, NoNoise
from edp_bayes.noise.certificates.densities import NoisyDensities
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.utils.arrays import Array

__all__ = ["bend", "bending_kernels", "both_values", "values_and_bends"]


def both_values(p: Array, q: Array, lattice: NoisyDensities) -> list[Array]:
    """Return both noisy densities, each (draw, count).

    Where p is q with the same share of every component moved, q and what moves are evaluated, each
    once.
    """
    split = _split(p, q)
    if split is None:
        return [lattice(part) for part in (p, q)]
    kept, *parts = split
    return _joined(kept, *(lattice(part) for part in parts))


def values_and_bends(
    p: Array, q: Array, lattice: NoisyDensities
) -> tuple[list[Array], list[Array]]:
    """Return both noisy densities, as `both_values`, and their bends (draw, count - 1)."""
    split = _split(p, q)
    kept, *parts = (None, p, q) if split is None else split
    values = [lattice(part) for part in parts]
    bends = [bend(*each, lattice) for each in zip(parts, values, strict=True)]
    if kept is None:
        return values, bends
    return _joined(kept, *values), _joined(kept, *bends)


def _joined(kept: Array, still: Array, moved: Array) -> list[Array]:
    return [kept * still + moved, still]


def _split(p: Array, q: Array) -> tuple[Array, Array, Array] | None:
    """Return what p keeps of q, (draw, 1), q, and what moves, if p is of this form in every draw.

    The first half of p stays, the second moves.
    """
    half = p.shape[1] // 2
    if p.shape != q.shape or 2 * half != p.shape[1]:
        return None
    if (q[:, :half, 1:] != q[:, half:, 1:]).any() or (p[:, :half, 1:] != q[:, :half, 1:]).any():
        return None
    weight = q[:, :half, :1] + q[:, half:, :1]
    kept = 1.0 - p[:, half:, 0].sum(axis=1)[:, None]
    if (np.abs(p[:, :half, 0] - kept * weight[..., 0]) > 1e-12).any():
        return None
    still = np.concatenate([weight, q[:, :half, 1:]], axis=-1)
    return kept, still, np.ascontiguousarray(p[:, half:])


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
    if isinstance(single, LatticeNoise) and len(lattice.noise.components) == 1:
        of_kernel = _bend_of_kernel(components, lattice)
        if s >= single.spacing:
            return of_kernel
        return np.asarray(np.minimum(of_kernel, _bend_of_lattice(components, single, lattice)))
    if (
        len(lattice.noise.components) > 1
        or not isinstance(single, LaplaceNoise)
        or single.scale < s
    ):
        return _bend_of_kernel(components, lattice)
    # Laplace noise of scale b makes P'' = (P - p) / b^2 as well, with p the density without noise
    nothing = replace(lattice, noise=NoiseDistribution((NoNoise(),)))
    raised = nothing(_raised(components, lattice))
    both = math.exp(min(lattice.step / single.scale, 700.0)) * values + raised
    return np.asarray((both[:, 1:] + both[:, :-1]) / single.scale**2)


def _raised(components: Array, lattice: NoisyDensities) -> Array:
    """Return components that no kernel exceeds in a cell by more than at its ends."""
    steps = lattice.step / components[..., 2]
    peak = steps if lattice.kernel == "laplace" else 0.5 * steps**2
    weight = components[..., 0] * np.exp(np.minimum(peak, 700.0))
    return np.concatenate([weight[..., None], components[..., 1:]], axis=-1)


def _bend_of_lattice(components: Array, noise: LatticeNoise, lattice: NoisyDensities) -> Array:
    """Bound P'' by the noise alone, whose slope jumps at the points of its lattice.

    With p the density without noise P'' is the sum of the jumps times p moved by their places.
    """
    k = np.arange(-noise.half - 3, noise.half + 4)
    jumps = np.abs(np.diff(noise.probability(k), n=2)) / noise.spacing**2
    # beyond, the jumps fall as the probabilities do
    left, right = (float(end) * noise.decay / (1.0 - noise.decay) for end in jumps[[0, -1]])
    total = float(jumps.sum()) + left + right
    sizes = LatticeNoise(
        noise.spacing, jumps / total, left=left / total, right=right / total, decay=noise.decay
    )
    stride, reach = lattice.strides(noise.spacing)
    wider = replace(
        lattice,
        noise=NoiseDistribution((NoNoise(),)),
        start=lattice.start - reach * stride * lattice.step,
        count=lattice.count + 2 * reach * stride,
    )
    bends = total * lattice.applied(sizes, wider(_raised(components, lattice)))
    return np.asarray(np.maximum(bends[:, 1:], bends[:, :-1]))


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
