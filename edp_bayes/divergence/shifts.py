"""Bounds that show, without integrating, that an individual is safe.

By joint convexity H_eps(sum w_j P_j || sum w_j Q_j) <= sum w_j H_eps(P_j || Q_j), and the
divergence of a single kernel from its shifted copy has a closed form.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.utils.arrays import Array

__all__ = ["gaussian_shift", "laplace_shift"]

_SMALL_SHIFT = 0.5
_LARGE = 16.0  # epsilon from which on a sum of squares is formed without rounding
_SPLIT = 134217729.0  # 2^27 + 1
_LARGEST_SPLIT = 1e140
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def laplace_shift(shift: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return H_eps between a Laplace density and its shifted copy: (1 - exp((eps - s) / 2))_+.

    Parameters
    ----------
    shift : array_like
        s, the shift over the scale; its sign does not matter.
    epsilon : array_like
        Non-negative; broadcasts against shift.

    Examples
    --------
    >>> float(laplace_shift(1.0, 1.0))
    0.0
    """
    s, eps = np.abs(np.asarray(shift, dtype=np.float64)), np.asarray(epsilon, dtype=np.float64)
    excess = np.maximum(s - eps, 0.0)
    return np.asarray(-np.expm1(-0.5 * excess))


def gaussian_shift(shift: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return H_eps between a normal density and its shifted copy.

    The closed form Phi(s/2 - eps/s) - exp(eps) Phi(-s/2 - eps/s) (Balle and Wang 2018,
    Theorem 5) is phi(a) (R(a) - R(b)), with a, b = eps/s -+ s/2 and R the Mills ratio. For small
    s, where that difference cancels, it is the integral of 1 - z R(z) from a to b.

    Parameters
    ----------
    shift : array_like
        s, the shift over the standard deviation; its sign does not matter.
    epsilon : array_like
        Non-negative; broadcasts against shift.

    Examples
    --------
    >>> round(float(gaussian_shift(1.0, 0.0)), 6)
    0.382925
    """
    from scipy.special import erfcx, ndtr

    s, eps = np.broadcast_arrays(
        np.abs(np.asarray(shift, dtype=np.float64)), np.asarray(epsilon, dtype=np.float64)
    )
    result = np.zeros(s.shape)
    live = (s > 0.0) & np.isfinite(eps)
    s, eps = s[live], eps[live]

    def mills(z: Array) -> Array:
        return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)))

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centre = eps / s
        a, b = centre - 0.5 * s, centre + 0.5 * s
        large = (eps > _LARGE) & (s < _LARGEST_SPLIT)
        a[large] = _exact_difference(eps[large], s[large])
        density = np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
        value = ndtr(-a) - density * mills(b)
        near = s < _SMALL_SHIFT
        z = np.maximum(centre[near, None] + 0.5 * s[near, None] * _NODES, -1.0)
        length = np.sum(_WEIGHTS * (1.0 - z * mills(z)), axis=1)
        value[near] = density[near] * 0.5 * s[near] * length
    # beyond 40 standard deviations the normal density is zero in double precision
    result[live] = np.where(a > 40.0, 0.0, np.clip(value, 0.0, 1.0))
    return result


def _exact_difference(epsilon: Array, s: Array) -> Array:
    """Return eps / s - s / 2, which is what decides where both are large, to its last digits."""
    square = s * s
    upper = _SPLIT * s - (_SPLIT * s - s)
    lower = s - upper
    lost = ((upper * upper - square) + 2.0 * upper * lower) + lower * lower
    return np.asarray(((epsilon - 0.5 * square) - 0.5 * lost) / s)
