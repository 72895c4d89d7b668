"""Risks of answers to which Laplace noise is added, bounded at quasi-random points.

Laplace noise of scale b is normal noise whose variance is 2 b^2 times an exponential variable, and
independent of all else. A reader who also sees the variance knows more than one who does not, and
for them the answers are normal mixtures again. So with V the variances of all noise

    H(P || P_i) <= E_V H(P_V || P_iV)

and the same exchanged, with normal noise of the variances V. Points are of the answers
and the variances together, so that all it takes is the ratio of two normal mixtures at each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.divergence.joint.estimates import PARTS, estimate, raise_where_few
from edp_bayes.divergence.joint.points import POINTS, mixture_points, uniform_points
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled, decay, in_threads
from edp_bayes.utils.small_matrices import cholesky

__all__ = ["noisy_curves", "noisy_points"]


def noisy_points(
    mixture: NormalMixture,
    noises: Sequence[GaussianNoise | LaplaceNoise | None],
    shifts: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Return points of every draw with noise, and the variances of their noise.

    Parameters
    ----------
    mixture : NormalMixture
        Shape (draw, component), in the units of the noise.
    noises : sequence of GaussianNoise, LaplaceNoise or None
        Independent noise of each coordinate.
    shifts : ndarray of int
        Shape (draw, 3 d + 1): digital shifts.

    Returns
    -------
    points, variances : ndarray
        Shape (draw, d, POINTS).
    """
    from scipy.special import ndtri

    d = mixture.dimensions
    points = mixture_points(mixture, shifts[:, : d + 1])[:, :, :POINTS]
    uniform = np.swapaxes(uniform_points(shifts)[:, :POINTS, d + 1 :], 1, 2)
    variances = np.zeros_like(points)
    for k, noise in enumerate(noises):
        if isinstance(noise, LaplaceNoise):
            variances[:, k] = -2.0 * noise.scale**2 * np.log(uniform[:, k])
        elif noise is not None:
            variances[:, k] = noise.variance
    return points + np.sqrt(variances) * ndtri(uniform[:, d:]), variances


def noisy_curves(
    p: NormalMixture,
    q: NormalMixture,
    points: Array,
    variances: Array,
    epsilon: Array,
    out: tuple[Array, Array, Array],
) -> None:
    """Fill in the larger of the means over variances of H(p || q) and H(q || p), and its error.

    Parameters
    ----------
    p, q : NormalMixture
        Shape (pair, component), without this noise.
    points, variances : ndarray
        Shape (pair, d, point): as of `noisy_points` for p.
    epsilon : ndarray
        Shape (epsilon,).
    out : tuple of ndarray
        Values and errors (pair, epsilon), and what each part of the points says (pair, part,
        epsilon).
    """
    growth = np.expm1(epsilon)
    in_threads(_curves, len(points), tuple(p), tuple(q), points, variances, growth, *out)


@compiled
def _curves(first, last, p, q, points, variances, growth, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in what `noisy_curves` says of some pairs: u = q / p and v = 1 at points of p."""
    d, count = points.shape[1:]
    u, v = np.empty(count), np.empty(count)
    work, parts = np.empty((3, d, d)), np.empty((3, PARTS))
    for s in range(first, last):
        for n in range(count):
            u[n] = 0.0
            v[n] = 0.0
        for k in range(p[0].shape[1]):
            if p[0][s, k] > 0.0:
                _add(v, points[s], variances[s], p[0][s, k], p[1][s, k], p[2][s, k], work, d, count)
        for k in range(q[0].shape[1]):
            if q[0][s, k] > 0.0:
                _add(u, points[s], variances[s], q[0][s, k], q[1][s, k], q[2][s, k], work, d, count)
        for n in range(count):
            u[n] /= v[n]
            v[n] = 1.0
        estimate(u, v, count, growth, parts, value[s], error[s], split[s])
        raise_where_few(value[s], error[s], count)


@borrowing
def _add(out, x, variances, weight, mean, covariance, work, d, count):  # type: ignore[no-untyped-def]
    """Add w N(x_n; mean, S + diag(V_n)), less the factor (2 pi)^(-d / 2) that all have."""
    whole, factor, solved = work[0], work[1], work[2, 0]
    for a in range(d):
        for b in range(d):
            whole[a, b] = covariance[a, b]
    for n in range(count):
        for a in range(d):
            whole[a, a] = covariance[a, a] + variances[a, n]
        cholesky(whole, factor, d)
        away, height = 0.0, weight
        for a in range(d):
            solved[a] = x[a, n] - mean[a]
            for b in range(a):
                solved[a] -= factor[a, b] * solved[b]
            solved[a] /= factor[a, a]
            away += 0.5 * solved[a] * solved[a]
            height /= factor[a, a]
        out[n] += height * decay(away)[0]
