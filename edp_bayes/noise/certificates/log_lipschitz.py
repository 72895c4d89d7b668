"""How steep noisy kernels are, and which individuals are safe for that reason alone.

For a kernel k of scale s and noise h let G be the density of their sum. Its log_lipschitz is
sup abs(G') / G; mixtures of such kernels inherit it.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import LaplaceNoise, Noise
from edp_bayes.noise.certificates.densities import NoisyDensities
from edp_bayes.noise.certificates.kernel_tables import noisy_kernel
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.utils.arrays import Array

__all__ = ["log_lipschitz", "movement_bound", "presence_share"]

FINEST = 64  # points of a lattice cell, at most
LEVELS = 24
NARROW = 16.0  # normal kernels narrower than a spacing by this factor leave the noise as it is
CLOSENESS = 0.09  # points of a noisy normal kernel, in its scales


def log_lipschitz(noise: NoiseDistribution, kernel: str, scales: Array) -> Array:
    """Return sup abs(G') / G for noisy kernels of at least the given scales, shape (scale,).

    It is infinite where there is no bound. Laplace noise of scale b has 1 / b, Laplace kernels of
    scale s have 1 / s, and a sum has the smaller of both. For lattice noise G is evaluated on
    points, between which its curvature bounds it.
    """
    scales = np.asarray(scales, dtype=np.float64)
    slope = np.zeros(scales.size)
    for weight, distribution in noise:
        if weight > 0.0:
            slope = np.maximum(slope, _of_distribution(distribution, kernel, scales))
    return slope


def _of_distribution(distribution: Noise, kernel: str, s: Array) -> Array:
    of_kernel = 1.0 / s if kernel == "laplace" else np.full(s.size, np.inf)
    if isinstance(distribution, LatticeNoise):
        return np.minimum(_of_lattice(distribution, kernel, s), of_kernel)
    if isinstance(distribution, LaplaceNoise):
        return np.minimum(1.0 / distribution.scale, of_kernel)
    return of_kernel


def _of_lattice(distribution: LatticeNoise, kernel: str, scales: Array) -> Array:
    levels, position = np.unique(scales, return_inverse=True)
    # Smaller kernels are steeper: a few levels, each good for all above it, save most of the work.
    if levels.size > LEVELS:
        spread = np.log(levels[-1] / levels[0])
        rank = np.floor((LEVELS - 1) * np.log(levels / levels[0]) / spread)
        first = np.unique(rank, return_index=True)[1]
        position = (np.searchsorted(first, np.arange(levels.size), side="right") - 1)[position]
        levels = levels[first]
    return np.array([_lattice_level(distribution, kernel, float(s)) for s in levels])[position]


def _lattice_level(distribution: LatticeNoise, kernel: str, s: float) -> float:
    own = distribution.log_lipschitz
    if kernel == "gaussian":
        narrow = s * NARROW < distribution.spacing  # the sum is as steep as the noise, or nearly
        level = None if narrow else noisy_kernel(distribution, s**2, CLOSENESS)
        return own if level is None else min(own, level.log_lipschitz)
    fine = int(np.clip(np.ceil(4.0 * distribution.spacing / s), 2, FINEST))
    step, reach = distribution.spacing / fine, (distribution.half + 4) * distribution.spacing
    evaluate = NoisyDensities(
        NoiseDistribution((distribution,)),
        kernel,
        -reach,
        step,
        2 * (distribution.half + 4) * fine + 1,
        2.0 * reach + 12.0 * s + 40.0 * distribution.spacing,
    )
    total = evaluate(np.array([[[1.0, 0.0, s]]]))[0]
    if (total <= 0.0).any():
        return own
    # further out only the tails of noise and kernel are left: the slope goes from one to the other
    tail = (
        (1.0 - distribution.decay) / (distribution.decay * distribution.spacing)
        if distribution.decay > 0.0
        else math.inf
    )
    jump = max(float(np.abs(np.diff(np.log(total))).max()) / step, min(tail, 1.0 / s))
    density = np.asarray(distribution.pdf(evaluate.points))
    lower = np.minimum(total[1:], total[:-1]) * math.exp(-0.5 * step / s)
    curvature = max(1.0, float((np.maximum(density[1:], density[:-1]) / lower).max())) / s**2
    # with abs(G'') <= C G the slope is at most sqrt(C), and abs((log G)'') <= C + slope^2
    found = jump + 0.5 * step * curvature
    if 2.0 * step * found <= 1.0 and step**2 * curvature <= 1.0:
        found = (1.0 - math.sqrt(1.0 - 2.0 * step * found)) / step
    else:
        found = math.inf
    return min(own, found, math.sqrt(curvature))


def movement_bound(p: Array, q: Array, kernel: str, slope: Array) -> Array:
    """Return a bound on abs(log(p_h / q_h)) over the whole line, shape (draw,).

    Component k of q is component k of p moved by m and widened or narrowed by an independent
    amount Z. With a log density of slope at most L the log ratio of two such noisy components
    is at most L abs(m) + log E exp(L abs(Z)), and the ratio of mixtures with equal weights never
    exceeds that of their components. Infinite where the weights differ. Where only a share rho
    of a component moves (see `presence_share`) a log ratio of B there is log(1 + rho (exp(B) - 1))
    of the whole component, whose ratio is 1 - rho + rho (ratio of what moves).

    Parameters
    ----------
    p, q : ndarray, shape (draw, component, 3)
    kernel : {"gaussian", "laplace"}
    slope : ndarray, shape (draw,)
        Steepness at the smallest scale of both.
    """
    if p.shape != q.shape:
        return np.full(len(p), np.inf)
    rate = slope[:, None]
    small, large = np.minimum(p[..., 2], q[..., 2]), np.maximum(p[..., 2], q[..., 2])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if kernel == "gaussian":
            from scipy.special import log_ndtr

            wide = rate * np.sqrt((large - small) * (large + small))
            spread = math.log(2.0) + log_ndtr(wide) + 0.5 * wide**2
        else:
            kept = (small / large) ** 2
            spread = np.log(kept + (1.0 - kept) / np.maximum(1.0 - rate * large, 0.0))
        spread = np.where(small == large, 0.0, spread)
        moved = np.abs(p[..., 1] - q[..., 1])
        bound = np.where(moved > 0.0, rate * moved, 0.0) + spread
    bound = np.where(p[..., 0] > 0.0, np.where(np.isnan(bound), np.inf, bound), 0.0)
    same = (np.abs(p[..., 0] - q[..., 0]) <= 1e-15).all(axis=1)
    share = presence_share(p, q)
    with np.errstate(over="ignore", invalid="ignore"):
        diluted = np.where(share > 0.0, np.log1p(share * np.expm1(bound)), 0.0)
    bound = np.minimum(bound, diluted).max(axis=1)
    return np.asarray(np.where(same, bound, np.inf))


def presence_share(p: Array, q: Array) -> Array:
    """Return rho where p is q with a share rho of a component moved, 1 elsewhere.

    That is the distribution of an individual who is absent from some databases: the first half of
    the components of p are those of q, the second half those of q moved, with weights in the ratio
    1 - rho to rho.

    Returns
    -------
    ndarray, shape (draw, component)
        Both halves of a component have the same.
    """
    half, odd = divmod(p.shape[1], 2)
    if odd or p.shape != q.shape:
        return np.ones(p.shape[:2])
    weight = p[:, :half, 0] + p[:, half:, 0]
    rho = np.divide(p[:, half:, 0], weight, out=np.zeros_like(weight), where=weight > 0.0)
    still = (p[:, :half, 1:] == q[:, :half, 1:]).all(axis=(1, 2))
    twice = (q[:, :half, 1:] == q[:, half:, 1:]).all(axis=(1, 2))
    return np.where((still & twice)[:, None], np.tile(rho, 2), 1.0)
