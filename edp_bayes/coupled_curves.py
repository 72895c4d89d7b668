"""Which draws of which individuals can have a risk above the floor, by joint convexity."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import compiled, in_threads

__all__ = ["active_pairs"]

Array = NDArray[np.float64]


def active_pairs(p: Array, q: Array, epsilon: float, floor: float) -> NDArray[np.bool_]:
    """Return where the bound on delta_i(eps) exceeds the floor, shape (draw, individual).

    H_eps(sum w P || sum w Q) <= sum w H_eps(P_k || Q_k), both directions. The components of an
    individual who may be absent are half untouched (P_k = Q_k); merging each touched one with its
    untouched twin sharpens the bound to rho H_e(N' || N) with expm1(e) = expm1(eps) / rho, the
    amplification by subsampling, and to a like one in the other direction.

    Parameters
    ----------
    p, q : ndarray, shape (draw, individual, component, 3)
        Weights, locations and standard deviations; absent components first.
    epsilon : float
        The smallest epsilon of interest.
    floor : float
        Bounds up to this count as zero.
    """
    out = np.zeros(p.shape[:2], dtype=np.bool_)
    in_threads(_active, len(p), p, q, float(epsilon), float(floor), out)
    return out


@compiled
def _active(first_draw, last_draw, p, q, epsilon, floor, out):  # type: ignore[no-untyped-def]
    people, size = p.shape[1:3]
    for s in range(first_draw, last_draw):
        for i in range(people):
            half = size // 2
            twins = size > 1 and size % 2 == 0
            if twins:
                for k in range(half):
                    twins = twins and q[s, i, k, 1] == q[s, i, half + k, 1]
                    twins = twins and q[s, i, k, 2] == q[s, i, half + k, 2]
                    twins = twins and p[s, i, k, 1] == q[s, i, k, 1]
            first = half if twins else 0
            total = 0.0
            for k in range(first, size):
                w = q[s, i, k, 0]
                if w <= 0.0:
                    continue
                rho = 1.0
                if twins:
                    w += q[s, i, k - half, 0]
                    rho = q[s, i, k, 0] / w
                growth = math.expm1(epsilon)
                forward = rho * _one(
                    p[s, i, k, 1],
                    p[s, i, k, 2],
                    q[s, i, k, 1],
                    q[s, i, k, 2],
                    math.log1p(growth / rho),
                )
                kept = 1.0 - math.exp(epsilon) * (1.0 - rho)
                backward = 0.0
                if kept > 0.0:
                    backward = kept * _one(
                        q[s, i, k, 1],
                        q[s, i, k, 2],
                        p[s, i, k, 1],
                        p[s, i, k, 2],
                        math.log(math.exp(epsilon) * rho / kept),
                    )
                total += w * max(forward, backward)
                if total > floor:
                    break
            out[s, i] = total > floor


@compiled
def _upper(u):  # type: ignore[no-untyped-def]
    return 0.5 * math.erfc(u / math.sqrt(2.0))


@compiled
def _one(m, s, n, t, epsilon):  # type: ignore[no-untyped-def]
    """H_eps of N(m, s) against N(n, t): the set where it exceeds is bounded by a quadratic."""
    d = (m - n) / s
    r = s / t
    curvature = 0.5 * (r * r - 1.0)
    # In units of s about m: log ratio = c u^2 + b u + a with u ~ N(0, 1) under the first law.
    b = r * r * d
    a = 0.5 * r * r * d * d - math.log(r) - epsilon
    root = b * b - 4.0 * curvature * a
    if abs(curvature) < 1e-14:
        if b == 0.0:
            return 0.0
        edge = abs(-a / b)
        sign = 1.0 if a < 0.0 else -1.0
        value = _upper(sign * edge)
        other = _upper(sign * edge + r * abs(d))
        return max(value - math.exp(epsilon) * other, 0.0)
    if root <= 0.0:
        return max(-math.expm1(epsilon), 0.0) if curvature > 0.0 else 0.0
    half = -0.5 * (b + math.copysign(math.sqrt(root), b))
    x, y = half / curvature, a / half if half != 0.0 else 0.0
    low, high = min(x, y), max(x, y)
    if curvature > 0.0:
        first = _upper(-low) + _upper(high)
        second = _upper(-r * (low + d)) + _upper(r * (high + d))
    elif low > 0.0:
        first = _upper(low) - _upper(high)
        second = _upper(r * (low + d)) - _upper(r * (high + d))
    else:
        first = _upper(-high) - _upper(-low)
        second = _upper(-r * (high + d)) - _upper(-r * (low + d))
    return max(first - math.exp(epsilon) * second, 0.0)
