"""Densities of a noisy response under posterior draws, on a lattice of points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.utils.arrays import Array

__all__ = ["NoisyDensities", "noise_rows", "tail_scale"]

GAUSSIAN_REACH = 10.0
COLUMNS = 128  # of a block of a convolution


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
        The lattice; without noise on a lattice each draw may have a start of its own, (draw, 1).
    count : int
        Its number of points.
    reach : float
        Half the width over which the tails of lattice noise are followed.
    """

    noise: NoiseDistribution
    kernel: str
    start: float | Array
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
        """The points, shape (count,), or (draw, count) where each draw has its own."""
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
            start=float(self.start) - reach * stride * self.step,
            step=self.step,
            count=self.count + 2 * reach * stride,
            spacing=spacing,
        )

    def applied(self, distribution: LatticeNoise, triangles: Array) -> Array:
        """Return the sum over k of P(K = k) times the triangles moved by k, (draw, count)."""
        stride, reach = self.strides(distribution.spacing)
        half = min(distribution.half, reach)
        inner = distribution.probability(np.arange(-half, half + 1))[::-1]
        table = _toeplitz(inner, COLUMNS)
        out = np.empty((len(triangles), self.count))
        for offset in range(stride):
            target, part = out[:, offset::stride], triangles[:, offset::stride]
            columns = target.shape[1]
            for start in range(0, columns, COLUMNS):
                stop = min(start + COLUMNS, columns)
                near = part[:, start + reach - half : stop + reach + half]
                target[:, start:stop] = near @ table[: near.shape[1], : stop - start]
            if reach > half:
                target += self._tails(distribution, part, columns, reach - half)
        return out

    def _tails(self, distribution: LatticeNoise, part: Array, columns: int, steps: int) -> Array:
        """Return what both geometric tails add: each sum follows from the one before."""
        from scipy.signal import lfilter

        first = (1.0 - distribution.decay) * np.array([distribution.left, distribution.right])
        ratio = np.array([1.0, -distribution.decay])
        reached = columns + steps - 1
        right = lfilter(first[1:], ratio, part[:, :reached], axis=1)
        left = lfilter(first[:1], ratio, part[:, ::-1][:, :reached], axis=1)[:, ::-1]
        return np.asarray(right[:, -columns:] + left[:, :columns])

    def strides(self, spacing: float) -> tuple[int, int]:
        """Return steps in a spacing, and spacings in the reach."""
        return round(spacing / self.step), math.ceil(self.reach / spacing)


def _toeplitz(weights: Array, columns: int) -> Array:
    """Return the matrix that holds the weights down every column."""
    table = np.zeros((columns + weights.size - 1, columns))
    for column in range(columns):
        table[column : column + weights.size, column] = weights
    return table


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
