"""Arithmetic in pairs of doubles: a value is the exact sum of a leading part and a small rest.

At n = 1e9 the place of a cut, a whole number of about 1e9, and its distance from a mean decide
delta, and one double has too few digits for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba

from edp_bayes.utils.compiled import kept

__all__ = ["Pair", "add", "compiled", "decayed", "divide", "floor", "multiply", "subtract"]

Pair = tuple[float, float]

_LN2 = 0.6931471805599453
_LN2_REST = 2.3190468138462996e-17
_SPLITTER = 134217729.0  # 2**27 + 1
_HALVINGS = 6
_TERMS = 11
_UNDERFLOW = 745.0


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Compile a function, keep the result on disk, and fuse or reorder no operation."""
    rules = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    return kept(numba.njit(cache=True, **rules), function)


@compiled
def _sum(a: float, b: float) -> Pair:
    """Exact sum of two doubles (Knuth)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


@compiled
def _product(a: float, b: float) -> Pair:
    """Exact product of two doubles (Dekker)."""
    p = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def add(a: Pair, b: Pair) -> Pair:
    """Return a + b."""
    s, rest = _sum(a[0], b[0])
    t, low = _sum(a[1], b[1])
    s, rest = _sum(s, rest + t)
    return _sum(s, rest + low)


@compiled
def subtract(a: Pair, b: Pair) -> Pair:
    """Return a - b."""
    return add(a, (-b[0], -b[1]))


@compiled
def multiply(a: Pair, b: Pair) -> Pair:
    """Return a b."""
    p, rest = _product(a[0], b[0])
    return _sum(p, rest + (a[0] * b[1] + a[1] * b[0]))


@compiled
def divide(a: Pair, b: Pair) -> Pair:
    """Return a / b."""
    first = a[0] / b[0]
    rest = subtract(a, multiply(b, (first, 0.0)))
    second = rest[0] / b[0]
    rest = subtract(rest, multiply(b, (second, 0.0)))
    return add(_sum(first, second), (rest[0] / b[0], 0.0))


@compiled
def floor(a: Pair) -> float:
    """Return the largest whole number not above a."""
    whole = math.floor(a[0])
    if whole == a[0] and a[1] < 0.0:
        return whole - 1.0
    return float(whole)


@compiled
def decayed(x: float) -> Pair:
    """Return exp(-x) for x >= 0."""
    if x > _UNDERFLOW:
        return 0.0, 0.0
    powers = math.floor(x / _LN2 + 0.5)
    r = subtract((x, 0.0), multiply((powers, 0.0), (_LN2, _LN2_REST)))
    step = 0.5**_HALVINGS
    y = (-r[0] * step, -r[1] * step)
    # exp(y) - 1 by its series, then doubled in the exponent so that no digit of it is lost
    term = y
    change = y
    for k in range(2, _TERMS + 1):
        term = divide(multiply(term, y), (float(k), 0.0))
        change = add(change, term)
    for _ in range(_HALVINGS):
        change = add((2.0 * change[0], 2.0 * change[1]), multiply(change, change))
    e = add((1.0, 0.0), change)
    return math.ldexp(e[0], -int(powers)), math.ldexp(e[1], -int(powers))
