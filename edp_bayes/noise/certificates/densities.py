"""Densities of a noisy response under posterior draws, on a lattice of points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise
from edp_bayes.noise.distribution import NoiseDistribution

__all__ = ["NoisyDensities", "noise_rows", "tail_scale"]

Array = NDArray[np.float64]

GAUSSIAN_REACH = 10.0
NEGLIGIBLE = 1e-30  # of the peak of a density without noise, which its noise lifts far above


def noise_rows(components: Array, kernel: str, noise: NoiseDistribution) -> Array:
    """Return the rows of a mixture with noise of closed form added, one set for each distribution.

    components has shape (..., component, 3), the result (..., component * distributions, 5).
    """
    from edp_bayes.divergence.any_pair.components import GAUSSIAN, LAPLACE, rows
    from edp_bayes.divergence.integral import component_rows

    w, mu, s = np.moveaxis(components, -1, 0)
    parts = []
    for share, distribution in noise:
        if isinstance(distribution, NoNoise):
            family = GAUSSIAN if kernel == "gaussian" else LAPLACE
            parts.append(rows(family, share * w, mu, s))
        elif isinstance(distribution, LaplaceNoise | GaussianNoise):
            parts.append(component_rows(share * w, mu, s, kernel, distribution))
    return np.concatenate(parts, axis=-2)


@dataclass(frozen=True, eq=False)
class NoisyDensities:
    """Evaluates mixtures plus noise at start + step * (0, ..., count - 1).

    Parameters
    ----------
    noise : NoiseDistribution
        The noise. Lattice noise needs a spacing that is a multiple of the step.
    kernel : {"gaussian", "laplace"}
        Family of the mixtures.
    start, step : float
        The lattice.
    count : int
        Its number of points.
    reach : float
        Half the width over which the tails of lattice noise are followed.
    """

    noise: NoiseDistribution
    kernel: str
    start: float
    step: float
    count: int
    reach: float

    def __call__(self, components: Array) -> Array:
        """Return the densities, shape (draw, count), of components (draw, component, 3)."""
        from edp_bayes.noise.certificates.smoothing import point_values

        total = np.zeros((len(components), self.count))
        if any(
            not isinstance(distribution, LatticeNoise) for distribution in self.noise.components
        ):
            rows = noise_rows(components, self.kernel, self.noise)
            x = np.broadcast_to(self.points, total.shape)
            total += point_values(rows, x)
        for share, distribution in self.noise:
            if isinstance(distribution, LatticeNoise):
                total += share * self.convolved(distribution, components)
        return total

    @property
    def points(self) -> Array:
        """The points, shape (count,)."""
        return np.asarray(self.start + self.step * np.arange(self.count), dtype=np.float64)

    def convolved(self, distribution: LatticeNoise, components: Array) -> Array:
        """Return the densities with lattice noise, shape (draw, count)."""
        return self.applied(distribution, self.triangles(distribution.spacing, components))

    def triangles(self, spacing: float, components: Array) -> Array:
        """Return the densities with one triangle of noise, `reach` beyond the points' ends."""
        from edp_bayes.noise.certificates.smoothing import triangle_values

        stride, reach = self.strides(spacing)
        return triangle_values(
            components,
            self.kernel,
            start=self.start - reach * stride * self.step,
            step=self.step,
            count=self.count + 2 * reach * stride,
            spacing=spacing,
        )

    def applied(self, distribution: LatticeNoise, triangles: Array) -> Array:
        """Return the sum over k of P(K = k) times the triangles moved by k, (draw, count)."""
        stride, reach = self.strides(distribution.spacing)
        weights = distribution.probability(np.arange(-reach, reach + 1))
        out = np.empty((len(triangles), self.count))
        low, high = _support(triangles)
        for offset in range(stride):
            target = out[:, offset::stride]
            columns = target.shape[1]
            first = max(0, -(-(low - offset) // stride))
            last = min(columns + 2 * reach, -(-(high - offset) // stride))
            part = triangles[:, offset::stride][:, first:last]
            target[:] = part @ _toeplitz(weights[::-1], columns, first, last)
        return out

    def strides(self, spacing: float) -> tuple[int, int]:
        """Return steps in a spacing, and spacings in the reach."""
        return round(spacing / self.step), math.ceil(self.reach / spacing)


def _support(triangles: Array) -> tuple[int, int]:
    """Return the columns between which some density is more than a negligible part of its peak."""
    largest = (triangles / triangles.max(axis=1, keepdims=True)).max(axis=0)
    kept = np.flatnonzero(largest > NEGLIGIBLE)
    return int(kept[0]), int(kept[-1]) + 1


def _toeplitz(weights: Array, columns: int, first: int, last: int) -> Array:
    """Return rows first to last of the matrix that holds the weights down every column."""
    padded = np.concatenate([np.zeros(columns - 1), weights, np.zeros(columns - 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, columns + weights.size - 1)
    return np.ascontiguousarray(windows[::-1].T[first:last])


def tail_scale(noise: NoiseDistribution, side: int) -> float:
    """Return the scale of the noise's exponential tail on one side, 0 where it has none."""

    def scale(distribution: Noise) -> float:
        if isinstance(distribution, LaplaceNoise):
            return distribution.scale
        if isinstance(distribution, LatticeNoise):
            mass = distribution.right if side > 0 else distribution.left
            return distribution.tail_scale if mass > 0.0 else 0.0
        return 0.0

    return max(scale(distribution) for weight, distribution in noise if weight > 0.0)
