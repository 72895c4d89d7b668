"""Logarithms of the densities of two mixtures and of their slopes, wherever they lie.

A point is a distance from an anchor, the location of a component. So what lies within a narrow
component keeps its digits, however large its location is.
"""

from __future__ import annotations

import math

from edp_bayes.divergence.any_pair.components import GAUSSIAN, LAPLACE, NORMAL_LAPLACE
from edp_bayes.divergence.any_pair.evaluators import _erfcx
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import ZERO, compiled

__all__ = ["FAMILY", "PLACE", "ROWS", "A", "B", "log_sum", "reach_of", "tabulate", "term"]

FRONT, PLACE, A, B, FAMILY = 0, 1, 2, 3, 4  # rows of the table: log weight first
ROWS = 5
_ROOT_TWO = math.sqrt(2.0)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LEAST = 1e-300  # of what has a logarithm


@compiled
def tabulate(p: Array, q: Array, table: Array) -> tuple[int, int]:
    """Fill the table of all components that weigh anything; return where those of p and q end."""
    size = ZERO
    first = ZERO
    for side in range(2):
        mine = p if side == 0 else q
        for k in range(mine.shape[0]):
            w, a, family = mine[k, 0], mine[k, 2], mine[k, 4]
            if w <= 0.0:
                continue
            front = math.log(w)
            if family == GAUSSIAN:
                front -= math.log(a) + _HALF_LOG_TWO_PI
            elif family == LAPLACE:
                front -= math.log(a) + math.log(2.0)
            table[FRONT, size] = front
            for row in range(1, ROWS):
                table[row, size] = mine[k, row]
            size += 1
        if side == 0:
            first = size
    return first, size


@compiled
def reach_of(table: Array, k: int, reach_gaussian: float, reach_laplace: float) -> float:
    """Return the distance beyond which the mass of a component is negligible."""
    a, b, family = table[A, k], table[B, k], table[FAMILY, k]
    if family == GAUSSIAN:
        return reach_gaussian * a
    if family == LAPLACE:
        return reach_laplace * a
    if family == NORMAL_LAPLACE:
        ratio = a / b
        radius = reach_gaussian * a
        if ratio <= reach_gaussian:
            radius += b * (reach_laplace + 0.5 * ratio * ratio)
        return radius
    return 1.1 * reach_laplace * max(a, b)


@compiled
def term(table: Array, k: int, u: float, hand: float) -> tuple[float, float]:
    """Return the log of a component at distance u from its location, and the slope of that.

    hand is the side on which u lies, which decides at a bend.
    """
    front, a, b, family = table[FRONT, k], table[A, k], table[B, k], table[FAMILY, k]
    if family == GAUSSIAN:
        z = u / a
        return front - (0.5 * z) * z, -z / a
    if family == LAPLACE:
        return front - hand * u / a, -hand / a
    if family == NORMAL_LAPLACE:
        right, left = _log_half(u, a, b), _log_half(-u, a, b)
        top = max(right, left)
        r, m = math.exp(right - top), math.exp(left - top)
        return front + top + math.log(0.5 * (r + m)), (m - r) / (m + r) / b
    small, large = min(a, b), max(a, b)
    t = max(hand * u, 0.0)
    away = (large - small) / (small * large)
    gain = -math.expm1(-away * t) / (away * large) if away * t > _LEAST else t / large
    slope = hand * (math.exp(-away * t) / (1.0 + gain) - 1.0) / large
    return front - t / large - math.log(2.0 * (small + large)) + math.log1p(gain), slope


@compiled
def _log_half(u: float, s: float, b: float) -> float:
    """Return the log density at u of N(0, s^2) plus an exponential of mean b."""
    z = (s / b - u / s) / _ROOT_TWO
    if z >= 0.0:
        return -0.5 * (u / s) ** 2 + math.log(_erfcx(z)) - math.log(2.0 * b)
    return 0.5 * (s / b) ** 2 - u / b + math.log(math.erfc(z)) - math.log(2.0 * b)


@compiled
def log_sum(logs: Array, first: int, last: int) -> float:
    """Return the log of the sum of exponentials; minus infinity of nothing."""
    top = -math.inf
    for k in range(first, last):
        top = max(top, logs[k])
    if top == -math.inf or last - first == 1:
        return top
    total = 0.0
    for k in range(first, last):
        total += math.exp(logs[k] - top)
    return top + math.log(total)
