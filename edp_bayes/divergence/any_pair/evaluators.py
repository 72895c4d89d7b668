"""Values and slopes of two mixtures, and of their difference, at a batch of points.

The integrator calls these through a function pointer: it is compiled once for all families, and
a family that is never used is never compiled. Sums over components may be reordered into
vectors, in an order that is fixed when they are compiled.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numba
from numba import types

from edp_bayes.divergence.any_pair.components import (
    A_Q,
    CHANGE,
    FAMILY,
    FRONT,
    GAUSSIAN,
    HEIGHT,
    LAPLACE,
    NORMAL_LAPLACE,
    PLACE,
    PLACE_Q,
    RATE,
    SHIFT,
    WEIGHT,
    A,
    B,
)
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, decay, inlined, kept

__all__ = ["D_SLOPE", "P_SLOPE", "Q_SLOPE", "VALUES", "D", "P", "Q", "evaluator", "expm1_series"]

P, Q, D, P_SLOPE, Q_SLOPE, D_SLOPE = 0, 1, 2, 3, 4, 5  # rows of the result
VALUES = 6

_NORMAL_PEAK = 1.0 / math.sqrt(2.0 * math.pi)
_ROOT_TWO = math.sqrt(2.0)

_VECTOR, _MATRIX = types.float64[::1], types.float64[:, ::1]
_SIGNATURE = types.void(_MATRIX, types.int64[::1], _VECTOR, types.float64, _MATRIX)


@functools.cache
def evaluator(gaussian: bool) -> Any:
    """Return the compiled evaluation for Gaussian mixtures, or for all families.

    It takes a table of components and the ends of its groups as `tabulate` fills them, the points
    x, a point in the middle of their cell, which decides the side of a bend on its edge, and
    fills a matrix (6, points) with p, q, d = p - q and their slopes.
    """
    function = _gaussian_values if gaussian else _any_values
    rules = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc"}}
    return kept(numba.cfunc(_SIGNATURE, cache=True, **rules), function)


def _gaussian_values(table: Array, ends: Index, x: Array, middle: float, out: Array) -> None:
    for i in range(x.size):
        t = x[i]
        p, q, d, p_slope, q_slope, d_slope = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(ends[0]):
            value, minus, slope, slope_minus = _gaussian_pair(
                t, table[HEIGHT, k], table[PLACE, k], table[RATE, k],
                table[FRONT, k], table[CHANGE, k], table[SHIFT, k],
            )  # fmt: skip
            p += value
            d += minus
            p_slope += slope
            d_slope += slope_minus
        q, q_slope = p - d, p_slope - d_slope
        for k in range(ends[0], ends[1]):
            value, slope = _gaussian(t, table[HEIGHT, k], table[PLACE, k], table[RATE, k])
            p += value
            d += value
            p_slope += slope
            d_slope += slope
        for k in range(ends[1], ends[2]):
            value, slope = _gaussian(t, table[HEIGHT, k], table[PLACE, k], table[RATE, k])
            q += value
            d -= value
            q_slope += slope
            d_slope -= slope
        out[P, i], out[Q, i], out[D, i] = p, q, d
        out[P_SLOPE, i], out[Q_SLOPE, i], out[D_SLOPE, i] = p_slope, q_slope, d_slope


def _any_values(table: Array, ends: Index, x: Array, middle: float, out: Array) -> None:
    for i in range(x.size):
        t = x[i]
        for row in range(VALUES):
            out[row, i] = 0.0
        for k in range(ends[0]):
            value, minus, slope, slope_minus = _any_pair(t, middle, table, k)
            out[P, i] += value
            out[Q, i] += value - minus
            out[D, i] += minus
            out[P_SLOPE, i] += slope
            out[Q_SLOPE, i] += slope - slope_minus
            out[D_SLOPE, i] += slope_minus
        for k in range(ends[0], ends[2]):
            value, slope = _single(t, middle, table[FAMILY, k], table[WEIGHT, k], table[PLACE, k],
                                   table[A, k], table[B, k])  # fmt: skip
            side, sign = (P, 1.0) if k < ends[1] else (Q, -1.0)
            out[side, i] += value
            out[side + P_SLOPE, i] += slope
            out[D, i] += sign * value
            out[D_SLOPE, i] += sign * slope


@inlined
def _gaussian(x: float, height: float, mu: float, rate: float) -> tuple[float, float]:
    """Return value and slope of one component; height is its weight over its scale."""
    z = (x - mu) * rate
    value = height * _NORMAL_PEAK * decay(0.5 * z * z)[0]
    return value, -z * rate * value


@inlined
def _gaussian_pair(
    x: float, height: float, mu: float, rate: float, front: float, change: float, shift: float
) -> tuple[float, float, float, float]:
    """Return p, p - q and their slopes for two close components."""
    z = (x - mu) * rate
    step = change * z + shift  # z - (x - nu) / b without cancellation
    zq = z - step
    value = height * _NORMAL_PEAK * decay(0.5 * z * z)[0]
    minus = -value * expm1_series(front + 0.5 * step * (z + zq))
    slope_minus = -rate * (z * minus + (step + zq * change) * (value - minus))
    return value, minus, -z * rate * value, slope_minus


@compiled
def _any_pair(x: float, middle: float, table: Array, k: int) -> tuple[float, float, float, float]:
    """Return the same for a close pair of any family."""
    mu, nu, family = table[PLACE, k], table[PLACE_Q, k], table[FAMILY, k]
    front, change, shift = table[FRONT, k], table[CHANGE, k], table[SHIFT, k]
    height, rate = table[HEIGHT, k], table[RATE, k]
    if family == GAUSSIAN:
        return _gaussian_pair(x, height, mu, rate, front, change, shift)
    if family != LAPLACE:
        return _noisy_pair(x, middle, table, k)
    hand = 1.0 if middle > mu else -1.0
    value = 0.5 * height * decay(max(hand * rate * (x - mu), 0.0))[0]
    slope = -hand * rate * value
    if (middle > mu) == (middle > nu):
        minus = -value * expm1_series(front + hand * (change * rate * (x - mu) + shift))
        return value, minus, slope, -hand * rate * (minus + change * (value - minus))
    # between the two locations p and q lean opposite ways: no difference of slopes cancels
    rate_q = -hand / table[A_Q, k]
    other = 0.5 * height * math.exp(front) * decay(max(rate_q * (x - nu), 0.0))[0]
    return value, value - other, slope, slope + rate_q * other


@compiled
def _noisy_pair(x: float, middle: float, table: Array, k: int) -> tuple[float, float, float, float]:
    """Return the same for two kernels with noise that differ by weight and a small shift.

    Their difference is a series in the odd derivatives of the density at the middle between
    them. The density f of U + Laplace(b) solves f - b^2 f'' = g with g the density of U.
    """
    w, mu, nu = table[WEIGHT, k], table[PLACE, k], table[PLACE_Q, k]
    a, b, family = table[A, k], table[B, k], table[FAMILY, k]
    growth = math.expm1(table[FRONT, k])
    value, slope = _single(x, middle, family, w, mu, a, b)
    if family != NORMAL_LAPLACE and (middle > mu) != (middle > nu):
        other, other_slope = _single(x, middle, family, w * (1.0 + growth), nu, a, b)
        return value, value - other, slope, slope - other_slope
    shift, centre = nu - mu, 0.5 * (mu + nu)
    f, f1 = _single(x, middle, family, w, centre, a, b)
    hand = 1.0 if middle > centre else -1.0
    if family == NORMAL_LAPLACE:
        z = (x - centre) / a
        g, g1 = _gaussian(x, w / a, centre, 1.0 / a)
        g2 = (z * z - 1.0) / (a * a) * g
        g3 = (3.0 - z * z) * z / (a * a * a) * g
    else:
        g = 0.5 * w / a * decay(max(hand * (x - centre) / a, 0.0))[0]
        g1, g2, g3 = -hand / a * g, g / (a * a), -hand / (a * a * a) * g
    square, half = b * b, 0.25 * shift * shift
    f2, f3 = (f - g) / square, (f1 - g1) / square
    f4, f5 = (f2 - g2) / square, (f3 - g3) / square
    moved = shift * (f1 + half / 6.0 * (f3 + half / 20.0 * f5))
    moved_slope = shift * (f2 + half / 6.0 * f4)
    return (
        value,
        moved - growth * (value - moved),
        slope,
        moved_slope - growth * (slope - moved_slope),
    )


@compiled
def _single(
    x: float, middle: float, family: float, w: float, mu: float, a: float, b: float
) -> tuple[float, float]:
    """Return value and slope of one component of any family."""
    u = x - mu
    hand = 1.0 if middle > mu else -1.0
    if family == GAUSSIAN:
        return _gaussian(x, w / a, mu, 1.0 / a)
    if family == LAPLACE:
        value = 0.5 * w / a * decay(max(hand * u / a, 0.0))[0]
        return value, -hand / a * value
    if family == NORMAL_LAPLACE:
        value, slope = _normal_laplace(u, a, b)
    else:
        value, slope = _two_laplaces(u, hand, a, b)
    return w * value, w * slope


@inlined
def expm1_series(t: float) -> float:
    """exp(t) - 1 for abs(t) <= 1/2, to 1e-17 of its value; clipped beyond, where it is unused."""
    t = min(max(t, -1.0), 1.0)
    s = 1.0 / 1307674368000.0
    s = 1.0 / 87178291200.0 + t * s
    s = 1.0 / 6227020800.0 + t * s
    s = 1.0 / 479001600.0 + t * s
    s = 1.0 / 39916800.0 + t * s
    s = 1.0 / 3628800.0 + t * s
    s = 1.0 / 362880.0 + t * s
    s = 1.0 / 40320.0 + t * s
    s = 1.0 / 5040.0 + t * s
    s = 1.0 / 720.0 + t * s
    s = 1.0 / 120.0 + t * s
    s = 1.0 / 24.0 + t * s
    s = 1.0 / 6.0 + t * s
    s = 0.5 + t * s
    return t * (1.0 + t * s)


@compiled
def _erfcx(z: float) -> float:
    """exp(z^2) erfc(z) for z >= 0."""
    if z < 4.0:
        return math.exp(z * z) * math.erfc(z)
    t = z
    for k in range(60, 0, -1):
        t = z + 0.5 * k / t
    return 1.0 / (1.7724538509055159 * t)


@compiled
def _half_normal_laplace(u: float, s: float, b: float) -> float:
    """Density at u of N(0, s^2) plus an exponential of mean b."""
    z = (s / b - u / s) / _ROOT_TWO
    if z >= 0.0:
        return 0.5 / b * math.exp(-0.5 * (u / s) ** 2) * _erfcx(z)
    return 0.5 / b * math.exp(0.5 * (s / b) ** 2 - u / b) * math.erfc(z)


@compiled
def _normal_laplace(u: float, s: float, b: float) -> tuple[float, float]:
    """Density and slope at u of N(0, s^2) plus Laplace(b)."""
    right = 0.5 * _half_normal_laplace(u, s, b)
    left = 0.5 * _half_normal_laplace(-u, s, b)
    return right + left, (left - right) / b


@compiled
def _two_laplaces(u: float, side: float, a: float, b: float) -> tuple[float, float]:
    """Density and slope at u of Laplace(a) plus Laplace(b); side is the sign of u.

    With a <= b and r = 1/a - 1/b the density (b exp(-u/b) - a exp(-u/a)) / (2 (b^2 - a^2)) is
    exp(-u/b) (1 + (1 - exp(-r u)) / (r b)) / (2 (a + b)), which has the limit a = b.
    """
    small, large = min(a, b), max(a, b)
    t = max(side * u, 0.0)
    r = (large - small) / (small * large)
    kept, lost = decay(r * t)
    mean = lost / (r * large) if r * t > 1e-300 else t / large
    front = 0.5 * math.exp(-t / large) / (small + large)
    value = front * (1.0 + mean)
    return value, side * (front * kept - value) / large
