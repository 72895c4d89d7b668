"""Unit noise whose integrals the truths need: Laplace and exponential."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["EXPONENTIAL", "LAPLACE", "REACH", "log_cdf", "log_pdf", "log_sf", "noise", "panels"]

LAPLACE, EXPONENTIAL = "laplace", "exponential"
# Beyond so many scales the mass is below 1e-17.
REACH = 40.0
PANEL = 4.0


def noise(distribution: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return noise of scale one."""
    return rng.laplace(size=shape) if distribution == LAPLACE else rng.standard_exponential(shape)


def log_pdf(distribution: str, u: Array) -> Array:
    """Return the log density at u."""
    if distribution == LAPLACE:
        return -np.abs(u) - math.log(2.0)
    return np.where(u >= 0.0, -np.maximum(u, 0.0), -np.inf)


def log_cdf(distribution: str, u: Array) -> Array:
    """Return the log probability of values up to u."""
    upper = np.maximum(u, 0.0)
    if distribution == LAPLACE:
        return np.where(
            u < 0.0, np.minimum(u, 0.0) - math.log(2.0), np.log1p(-0.5 * np.exp(-upper))
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-upper)))


def log_sf(distribution: str, u: Array) -> Array:
    """Return the log probability of values above u."""
    return log_cdf(distribution, -u) if distribution == LAPLACE else -np.maximum(u, 0.0)


def panels(knots: Array, scale: float) -> Array:
    """Return knots with points between them, none further apart than a few scales."""
    pieces = [
        np.linspace(a, b, math.ceil((b - a) / (PANEL * scale)) + 1)[:-1] for a, b in pairwise(knots)
    ]
    return np.concatenate([*pieces, knots[-1:]])
