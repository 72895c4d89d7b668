"""Tails of Gaussian and Laplace noise, split into an exponent and a factor.

A tail is exp(-exponent(d)) times a factor, where d is the exact difference of two counts. Ratios
of tails therefore keep all their digits, however far out both of them are.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.statistical_privacy.counts.arithmetic import compiled

__all__ = ["GAUSSIAN", "LAPLACE", "decay_difference", "increment", "log_density", "tail"]

GAUSSIAN, LAPLACE = 0, 1

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_FAR = 6.0
_FRACTIONS = 45
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


@compiled
def log_density(family: int, d: float, scale: float) -> float:
    """Return the log density at a distance d, up to a constant."""
    if family == GAUSSIAN:
        return -0.5 * (d / scale) ** 2
    return -abs(d) / scale


@compiled
def decay_difference(family: int, d: float, reference: float, scale: float) -> float:
    """Return exponent(reference) - exponent(d) for two distances, zero or more."""
    if family == GAUSSIAN:
        return (reference - d) * (reference + d) / (2.0 * scale * scale)
    return (reference - d) / scale


@compiled
def _mills(u: float) -> float:
    """P(Z > u) exp(u^2 / 2) for a standard normal Z and u >= 0."""
    if u < _FAR:
        return 0.5 * math.erfc(u * _ROOT_HALF) * math.exp(0.5 * u * u)
    t = u
    for k in range(_FRACTIONS, 0, -1):
        t = u + k / t
    return 1.0 / (t * _ROOT_TWO_PI)


@compiled
def tail(family: int, d: float, scale: float) -> tuple[float, float]:
    """Return (distance, factor) of P(noise > d)."""
    if d >= 0.0:
        return d, (_mills(d / scale) if family == GAUSSIAN else 0.5)
    if family == GAUSSIAN:
        return 0.0, 0.5 * math.erfc(d / scale * _ROOT_HALF)
    return 0.0, 1.0 - 0.5 * math.exp(d / scale)


@compiled
def _gaussian_increment(near: float, scale: float) -> tuple[float, float]:
    """Return (distance, factor) of P(near < noise <= near + 1), a difference of two Gaussian tails.

    With h = 1 / scale and u = near h it is Phi(u + h) - Phi(u): as 1 less both tails where it
    spans zero, by Mills' ratios where it falls fast, and otherwise by Gauss and Legendre's rule,
    which keeps the digits that a difference loses. near is in counts.
    """
    h = 1.0 / scale
    u = near * h
    if u < 0.0 and h > 1.0:
        return 0.0, 1.0 - 0.5 * (math.erfc((u + h) * _ROOT_HALF) + math.erfc(-u * _ROOT_HALF))
    middle = u + 0.5 * h
    start = max(near, 0.0)
    if middle * h > 2.0 and u >= 0.0:
        return start, _mills(u) - math.exp(-middle * h) * _mills(u + h)
    total = 0.0
    origin = start * h
    for i in range(_NODES.size):
        s = u + 0.5 * h * (1.0 + _NODES[i])
        total += _WEIGHTS[i] * math.exp(0.5 * (origin - s) * (origin + s))
    return start, 0.5 * h * total / _ROOT_TWO_PI


@compiled
def increment(family: int, d: float, scale: float) -> tuple[float, float]:
    """Return (distance, factor) of P(d - 1 < noise <= d), precise however wide the noise."""
    near = (
        d - 1.0 if d >= 0.5 else -d
    )  # the distribution is symmetric: take the interval on the right
    if family == GAUSSIAN:
        return _gaussian_increment(near, scale)
    h = 1.0 / scale
    if near >= 0.0:
        return near, -0.5 * math.expm1(-h)
    return 0.0, -0.5 * (math.expm1(-(1.0 + near) * h) + math.expm1(near * h))
