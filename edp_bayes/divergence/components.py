"""Values and slopes of two mixtures, and of their difference, at a batch of points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import compiled, decay

__all__ = ["BATCH", "GAUSSIAN", "LAPLACE", "LAPLACE_LAPLACE", "NORMAL_LAPLACE", "evaluate", "pair", "stack"]

BATCH = 16  # points evaluated at once: whole vector registers, and the nodes of one cell

# Family of a mixture. Components are rows (weight, location, a, b): a is the scale of the kernel;
# with noise, a is the Gaussian scale and b the Laplace scale, or a and b both are Laplace scales.
GAUSSIAN, LAPLACE, NORMAL_LAPLACE, LAPLACE_LAPLACE = 0, 1, 2, 3

P, Q, D, P_SLOPE, Q_SLOPE, D_SLOPE = 0, 1, 2, 3, 4, 5  # rows of the result
CLOSE = 0.5  # log ratio of two paired components up to which their difference has a series

Array = NDArray[np.float64]

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_ROOT_TWO = math.sqrt(2.0)


def stack(weights: Array, locations: Array, scales: Array) -> Array:
    """Stack the parameters of mixtures without noise as rows (weight, location, scale, 0)."""
    w, mu, s = np.broadcast_arrays(weights, locations, scales)
    return np.stack([w, mu, s, np.zeros(s.shape)], axis=-1)


@compiled
def pair(family, p, q, reach, out):  # type: ignore[no-untyped-def]
    """Compare components k of p and q; return whether any pair is close enough for a series.

    out[k] gets (close, log of the ratio of the factors in front, relative change of scale,
    shift in units of q's scale). reach is the number of scales over which a component matters.
    """
    found = False
    for k in range(p.shape[0]):
        out[k, 0] = 0.0
        w, v = p[k, 0], q[k, 0]
        if w <= 0.0 or v <= 0.0:
            continue
        a, b = p[k, 2], q[k, 2]
        front = math.log1p((v - w) / w) - math.log1p((b - a) / a)
        change = (b - a) / b
        shift = (q[k, 1] - p[k, 1]) / b
        step = abs(change) * reach + abs(shift)
        largest = abs(front) + (step * (reach + 0.5 * step) if family == GAUSSIAN else step)
        if largest <= CLOSE:
            out[k, 0], out[k, 1], out[k, 2], out[k, 3] = 1.0, front, change, shift
            found = True
    return found


@compiled
def evaluate(family_p, p, family_q, q, pairs, x, middle, out):  # type: ignore[no-untyped-def]
    """Fill out (6, BATCH) with p, q, d = p - q and their slopes at x (BATCH).

    middle is a point of the cell that x lies in: it decides the side of a knot on its edge.
    pairs is what `pair` filled, or has no rows; it is only valid for equal families.
    """
    for row in range(6):
        for i in range(BATCH):
            out[row, i] = 0.0
    paired = pairs.shape[0]
    for k in range(paired):
        if pairs[k, 0] > 0.0:
            if family_p == GAUSSIAN:
                _gaussian_pair(p[k, 0], p[k, 1], p[k, 2], q[k, 1], q[k, 2],
                               pairs[k, 1], pairs[k, 2], pairs[k, 3], x, out)  # fmt: skip
                continue
            if (middle > p[k, 1]) == (middle > q[k, 1]):
                _laplace_pair(p[k, 0], p[k, 1], p[k, 2], q[k, 2],
                              pairs[k, 1], pairs[k, 2], pairs[k, 3], x, middle, out)  # fmt: skip
                continue
        _single(family_p, p[k, 0], p[k, 1], p[k, 2], p[k, 3], x, middle, 1.0, P, out)
        _single(family_q, q[k, 0], q[k, 1], q[k, 2], q[k, 3], x, middle, -1.0, Q, out)
    for k in range(paired, p.shape[0]):
        _single(family_p, p[k, 0], p[k, 1], p[k, 2], p[k, 3], x, middle, 1.0, P, out)
    for k in range(paired, q.shape[0]):
        _single(family_q, q[k, 0], q[k, 1], q[k, 2], q[k, 3], x, middle, -1.0, Q, out)


@compiled
def _single(family, w, mu, a, b, x, middle, sign, row, out):  # type: ignore[no-untyped-def]
    """Add one component to its density (row), and with its sign to the difference."""
    if w <= 0.0:
        return
    if family == GAUSSIAN:
        rate = 1.0 / a
        front = w * rate / _ROOT_TWO_PI
        for i in range(BATCH):
            z = (x[i] - mu) * rate
            value = front * decay(0.5 * z * z)[0]
            slope = -z * rate * value
            out[row, i] += value
            out[row + 3, i] += slope
            out[D, i] += sign * value
            out[D_SLOPE, i] += sign * slope
    elif family == LAPLACE:
        rate = (1.0 if middle > mu else -1.0) / a
        front = 0.5 * w / a
        for i in range(BATCH):
            value = front * decay((x[i] - mu) * rate)[0]
            slope = -rate * value
            out[row, i] += value
            out[row + 3, i] += slope
            out[D, i] += sign * value
            out[D_SLOPE, i] += sign * slope
    else:
        side = 1.0 if middle > mu else -1.0
        for i in range(BATCH):
            u = x[i] - mu
            value, slope = normal_laplace(u, a, b) if family == NORMAL_LAPLACE else (
                two_laplaces(u, side, a, b))  # fmt: skip
            out[row, i] += w * value
            out[row + 3, i] += w * slope
            out[D, i] += sign * w * value
            out[D_SLOPE, i] += sign * w * slope


@compiled
def _expm1_series(t):  # type: ignore[no-untyped-def]
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
def _gaussian_pair(w, mu, a, nu, b, front, change, shift, x, out):  # type: ignore[no-untyped-def]
    rate, rate_q = 1.0 / a, 1.0 / b
    factor = w * rate / _ROOT_TWO_PI
    for i in range(BATCH):
        z = (x[i] - mu) * rate
        step = change * z + shift  # z - (x - nu) / b without cancellation
        zq = z - step
        value = factor * decay(0.5 * z * z)[0]
        growth = _expm1_series(front + 0.5 * step * (z + zq))
        difference = -value * growth
        value_q = value - difference
        out[P, i] += value
        out[Q, i] += value_q
        out[D, i] += difference
        out[P_SLOPE, i] -= z * rate * value
        out[Q_SLOPE, i] -= zq * rate_q * value_q
        out[D_SLOPE, i] -= z * rate * difference + (step + zq * change) * rate * value_q


@compiled
def _laplace_pair(w, mu, a, b, front, change, shift, x, middle, out):  # type: ignore[no-untyped-def]
    side = 1.0 if middle > mu else -1.0
    rate, rate_q = side / a, side / b
    factor = 0.5 * w / a
    for i in range(BATCH):
        z = (x[i] - mu) * rate
        value = factor * decay(z)[0]
        difference = -value * _expm1_series(front + change * z + side * shift)
        value_q = value - difference
        out[P, i] += value
        out[Q, i] += value_q
        out[D, i] += difference
        out[P_SLOPE, i] -= rate * value
        out[Q_SLOPE, i] -= rate_q * value_q
        out[D_SLOPE, i] -= rate * difference + change * rate * value_q


@compiled
def _erfcx(z):  # type: ignore[no-untyped-def]
    """exp(z^2) erfc(z) for z >= 0."""
    if z < 4.0:
        return math.exp(z * z) * math.erfc(z)
    t = z
    for k in range(60, 0, -1):
        t = z + 0.5 * k / t
    return 1.0 / (1.7724538509055159 * t)


@compiled
def _half_normal_laplace(u, s, b):  # type: ignore[no-untyped-def]
    """Density at u of N(0, s^2) plus an exponential of mean b."""
    z = (s / b - u / s) / _ROOT_TWO
    if z >= 0.0:
        return 0.5 / b * math.exp(-0.5 * (u / s) ** 2) * _erfcx(z)
    return 0.5 / b * math.exp(0.5 * (s / b) ** 2 - u / b) * math.erfc(z)


@compiled
def normal_laplace(u, s, b):  # type: ignore[no-untyped-def]
    """Density and slope at u of N(0, s^2) plus Laplace(b)."""
    right = 0.5 * _half_normal_laplace(u, s, b)
    left = 0.5 * _half_normal_laplace(-u, s, b)
    return right + left, (left - right) / b


@compiled
def two_laplaces(u, side, a, b):  # type: ignore[no-untyped-def]
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


@compiled
def cut_reach(family, a, b, reach_gaussian, reach_laplace):  # type: ignore[no-untyped-def]
    """Distance from a component's location beyond which its mass is negligible."""
    if family == GAUSSIAN:
        return reach_gaussian * a
    if family == LAPLACE:
        return reach_laplace * a
    if family == LAPLACE_LAPLACE:
        return reach_laplace * max(a, b) * 1.1
    ratio = a / b
    if ratio > reach_gaussian:
        return reach_gaussian * a
    return b * (reach_laplace + 0.5 * ratio * ratio) + reach_gaussian * a


@compiled
def is_knot(family):  # type: ignore[no-untyped-def]
    """Whether densities of the family bend at their locations."""
    return family == LAPLACE or family == LAPLACE_LAPLACE


@compiled
def lengths(family, a, b, reach_gaussian, reach_laplace, out):  # type: ignore[no-untyped-def]
    """Fill out (2, 3): up to two zones of a component, each (radius, scale, is Gaussian)."""
    out[:, :] = 0.0
    radius = cut_reach(family, a, b, reach_gaussian, reach_laplace)
    if family == GAUSSIAN:
        out[0, 0], out[0, 1], out[0, 2] = radius, a, 1.0
    elif family == LAPLACE:
        out[0, 0], out[0, 1] = radius, a
    elif family == LAPLACE_LAPLACE:
        out[0, 0], out[0, 1] = reach_laplace * min(a, b), min(a, b)
        out[1, 0], out[1, 1] = radius, max(a, b)
    else:
        out[0, 0], out[0, 1], out[0, 2] = min(radius, 10.0 * a + a * a / b), a, 1.0
        out[1, 0], out[1, 1] = radius, b
    return 2 if family >= NORMAL_LAPLACE else 1


