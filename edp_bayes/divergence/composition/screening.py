"""An upper bound of delta over several databases from each individual's own privacy curve.

A curve of max(H(p || q), H(q || p)) at a few epsilons, its dots connected, is that of a pair which
dominates (p, q) and (q, p) (Zhu, Dong and Wang 2022), also in compositions. Of that pair, which is
symmetric, the moments E exp(lambda L) multiply, and with alpha = lambda + 1

    delta <= c_alpha E exp(lambda L) exp(-lambda epsilon),
    c_alpha = (1 - 1/alpha)^(alpha - 1) / alpha,

beside the mass at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["ORDERS", "MomentScreen", "Screen", "screen_bounds", "screening_epsilons"]

ORDERS = np.geomspace(0.4, 4000.0, 28)  # lambda
LARGEST_EXPONENT = 600.0
RATIO, BEYOND = 2.0, 4.0  # of neighbouring epsilons; up to how much above the largest of interest
FINEST = 8.0  # the smallest epsilon is so much finer than the spread that could matter
LEAST_EPSILON = 0.01
ROUNDING = 1e-11  # of masses, which are second differences of curves


class Screen:
    """Moments and infinite masses of privacy curves.

    Parameters
    ----------
    curves : ndarray, shape (..., E)
        max(H(p || q), H(q || p)), never rising.
    epsilon : ndarray, shape (E,)
        Their epsilons, increasing from 0.
    """

    def __init__(self, curves: Array, epsilon: Array) -> None:
        self.curves = curves
        x = np.exp(epsilon)
        slopes = -np.diff(curves, axis=-1) / np.diff(x)
        # convex but for rounding
        slopes = np.maximum.accumulate(slopes[..., ::-1], axis=-1)[..., ::-1]
        masses = slopes - np.concatenate([slopes[..., 1:], np.zeros_like(slopes[..., :1])], axis=-1)
        exponents = np.outer(ORDERS, epsilon[1:])
        beyond = (exponents > LARGEST_EXPONENT).astype(np.float64)
        exponents = np.minimum(exponents, LARGEST_EXPONENT)
        gains = x[1:] * np.expm1(exponents) + np.expm1(-exponents)
        self.infinite = curves[..., -1]
        # as matrices: products of more dimensions are many times slower
        flat = np.ascontiguousarray(masses.reshape(-1, masses.shape[-1]))
        shape = (*masses.shape[:-1], ORDERS.size)
        found = (flat @ gains.T).reshape(shape)
        np.log1p(np.maximum(found - self.infinite[..., None], -0.9), out=found)
        unbounded = beyond.any(axis=1)
        if unbounded.any():
            some = (flat @ beyond[unbounded].T > 0.0).reshape(*shape[:-1], -1)
            found[..., unbounded] = np.where(some, np.inf, found[..., unbounded])
        self.log_moments = found


class MomentScreen:
    """Bounds on log E exp(lambda L) of the finite privacy losses, at all `ORDERS`.

    Parameters
    ----------
    log_moments : ndarray, shape (..., order)
        The larger of both directions.
    infinite : ndarray, shape (...), optional
        How often the loss is infinite; never where not given.
    """

    def __init__(self, log_moments: Array, infinite: Array | None = None) -> None:
        self.log_moments = log_moments
        self.infinite = np.zeros(log_moments.shape[:-1]) if infinite is None else infinite


def screening_epsilons(epsilon: Array, databases: int) -> Array:
    """Return at which epsilons curves are needed to bound delta over so many databases.

    Examples
    --------
    >>> grid = screening_epsilons(np.array([0.1, 0.5]), 52)
    >>> grid.size, float(grid[0])
    (14, 0.0)
    """
    first = max(float(epsilon[0]), LEAST_EPSILON) / (FINEST * math.sqrt(databases))
    last = float(epsilon[-1]) + BEYOND
    count = math.ceil(math.log(last / first) / math.log(RATIO)) + 1
    return np.concatenate([[0.0], np.geomspace(first, last, count)])


def screen_bounds(
    screens: Sequence[Screen | MomentScreen], counts: Sequence[int], epsilon: Array
) -> Array:
    """Return the bound of delta over databases of several kinds, shape (..., epsilon)."""
    exponents = sum(k * one.log_moments for one, k in zip(screens, counts, strict=True))
    with np.errstate(divide="ignore"):
        finite = sum(
            k * np.log1p(-np.minimum(one.infinite, 1.0))
            for one, k in zip(screens, counts, strict=True)
        )
    alpha = ORDERS + 1.0
    front = ORDERS * np.log1p(-1.0 / alpha) - np.log(alpha)
    bounds = np.empty((*np.shape(finite), epsilon.size))
    for e, level in enumerate(epsilon):
        bounds[..., e] = (exponents + (front - ORDERS * level)).min(axis=-1)
    whole = np.exp(np.minimum(bounds, 0.0)) - np.expm1(finite)[..., None]
    return np.asarray(np.minimum(whole + ROUNDING * sum(counts), 1.0))
