"""Centred distributions of one kernel, alone or with noise added: log density and lower tail.

Every distribution here is symmetric, so its upper tail at u is the lower tail at -u, and each keeps
its relative precision far out, where densities underflow.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = [
    "gaussian",
    "gaussian_log_density",
    "gaussian_tail",
    "laplace",
    "laplace_log_density",
    "laplace_tail",
    "mean_decay",
    "normal_laplace",
    "two_laplaces",
]

Distribution = tuple[Array, Array]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def gaussian(u: Array, scale: Array) -> Distribution:
    """Return log density and P(U <= u) of N(0, scale^2)."""
    return gaussian_log_density(u, scale), gaussian_tail(u, scale)


def gaussian_log_density(u: Array, scale: Array) -> Array:
    """Return the log density of N(0, scale^2) alone."""
    z = u / scale
    return -0.5 * z * z - np.log(scale) - _LOG_ROOT_TWO_PI


def gaussian_tail(u: Array, scale: Array) -> Array:
    """Return P(U <= u) of N(0, scale^2) alone."""
    from scipy.special import ndtr

    return np.asarray(ndtr(u / scale))


def laplace(u: Array, scale: Array) -> Distribution:
    """Return log density and P(U <= u) of the Laplace distribution."""
    return laplace_log_density(u, scale), laplace_tail(u, scale)


def laplace_log_density(u: Array, scale: Array) -> Array:
    """Return the log density of the Laplace distribution alone."""
    return -np.abs(u) / scale - np.log(2.0 * scale)


def laplace_tail(u: Array, scale: Array) -> Array:
    """Return P(U <= u) of the Laplace distribution alone."""
    tail = 0.5 * np.exp(-np.abs(u) / scale)
    return np.where(u < 0, tail, 1.0 - tail)


def normal_laplace(u: Array, normal_scale: Array, laplace_scale: Array) -> Distribution:
    """Return log density and P(U <= u) of the sum of N(0, s^2) and Laplace(b).

    With h the density of N(0, s^2) plus an exponential of mean b, the density is the mean of
    h(u) and h(-u), and the lower tail Phi(u / s) - b (h(u) - h(-u)) / 2 (Reed and Jorgensen
    2004, the symmetric case). On the left no difference there cancels.
    """
    from scipy.special import ndtr

    s, b = normal_scale, laplace_scale
    right, left = _log_normal_exponential(u, s, b), _log_normal_exponential(-u, s, b)
    t = -np.abs(u)
    near = np.where(u < 0, right, left)
    far = np.where(u < 0, left, right)
    tail = ndtr(t / s) - 0.5 * b * np.exp(near) + 0.5 * b * np.exp(far)
    return np.logaddexp(right, left) - math.log(2.0), np.where(u < 0, tail, 1.0 - tail)


def two_laplaces(u: Array, first: Array, second: Array) -> Distribution:
    """Return log density and P(U <= u) of the sum of Laplace(first) and Laplace(second).

    With a <= b the two scales, t = abs(u) and g = (1 - exp(-r t)) / r, r = 1/a - 1/b, which is t
    in the limit a = b, the density is exp(-t/b) (1 + g / b) / (2 (a + b)) and the tail
    exp(-t/b) (1 + g a / (b (a + b))) / 2.
    """
    a, b = np.minimum(first, second), np.maximum(first, second)
    t = np.abs(u)
    r = (b - a) / (a * b)
    growth = t * mean_decay(r * t)
    tail = 0.5 * np.exp(-t / b) * (1.0 + growth * a / (b * (a + b)))
    return (
        -t / b + np.log1p(growth / b) - np.log(2.0 * (a + b)),
        np.where(u < 0, tail, 1.0 - tail),
    )


def _log_normal_exponential(u: Array, s: Array, b: Array) -> Array:
    """Log density at u of N(0, s^2) plus an exponential of mean b."""
    from scipy.special import erfc, erfcx

    z = (s / b - u / s) / math.sqrt(2.0)
    with np.errstate(divide="ignore"):
        inner = -0.5 * np.square(u / s) + np.log(erfcx(np.maximum(z, 0.0)))
        outer = 0.5 * np.square(s / b) - u / b + np.log(erfc(np.minimum(z, 0.0)))
    return np.asarray(np.where(z >= 0.0, inner, outer) - np.log(2.0 * b))


def mean_decay(x: Array) -> Array:
    """Return (1 - exp(-x)) / x for x >= 0, which is 1 at 0."""
    safe = np.where(x > 0.0, x, 1.0)
    return np.asarray(np.where(x > 0.0, -np.expm1(-safe) / safe, 1.0))
