"""Exact privacy of a pair of known distributions: sums for outcomes, quadrature for densities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from edp_bayes.utils.arrays import Array

__all__ = [
    "Stratum",
    "density_epsilon",
    "discrete_delta",
    "discrete_epsilon",
    "integrate",
    "log_integral",
    "log_mass",
    "log_ratio",
    "mixed_delta",
    "quadrature",
    "unit_nodes",
]

LogDensity = Callable[[Array], Array]

PANEL_NODES = 20
SCAN_POINTS = 64
HALVINGS = 60
SECTIONS = 40
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Stratum:
    """Two densities on one line, smooth between knots.

    Parameters
    ----------
    log_p, log_q : callable
        Log densities at an array of points, -inf where there is none. They need not integrate to
        one: a stratum may be one part of a distribution.
    knots : ndarray
        Increasing; every kink and jump of both densities, the ends of the domain first and last.
        What lies beyond the ends must not matter.
    """

    log_p: LogDensity
    log_q: LogDensity
    knots: Array

    def larger(self, t: Array) -> Array:
        """Return the logarithm of the larger density."""
        return np.maximum(self.log_p(t), self.log_q(t))

    def size(self, floor: float, t: Array) -> Array:
        """Return abs(log p - log q) where the larger log density reaches a floor, else -inf."""
        p, q = self.log_p(t), self.log_q(t)
        return np.where(np.maximum(p, q) >= floor, np.abs(log_ratio(p, q)), -np.inf)


def discrete_epsilon(log_p: Array, log_q: Array, tau: float) -> float:
    """Return the largest abs(log p - log q) over outcomes with max(p, q) >= tau, 0 over none.

    Masses come as logarithms: the rarest outcomes, whose masses may underflow, often decide.
    """
    likely = np.maximum(log_p, log_q) >= log_mass(np.asarray(tau))
    ratio = log_ratio(log_p[likely], log_q[likely])
    return float(np.max(np.abs(ratio), initial=0.0))


def discrete_delta(p: Array, q: Array, epsilon: float) -> float:
    """Return the larger of the sums of (p - exp(epsilon) q)_+ and (q - exp(epsilon) p)_+."""
    return mixed_delta(p, q, (), epsilon)


def density_epsilon(strata: Sequence[Stratum], tau: float) -> float:
    """Return the largest abs(log p - log q) where max(p, q) is at least tau times its maximum.

    With tau = 0 that is everywhere. The maximum is taken over all strata. Each piece between
    knots is scanned, its best point is polished, and so are the edges of the set where the
    density is large enough.
    """
    peak = max(_maximum(s.larger, s.knots) for s in strata)
    floor = peak + math.log(tau) if tau > 0.0 else -math.inf
    return max(0.0, *(_maximum(partial(s.size, floor), s.knots) for s in strata))


def mixed_delta(p: Array, q: Array, strata: Sequence[Stratum], epsilon: float) -> float:
    """Return the larger of the two hockey-stick integrals over atoms of masses p, q and strata."""
    growth = math.exp(epsilon)
    forward = float(np.maximum(p - growth * q, 0.0).sum())
    backward = float(np.maximum(q - growth * p, 0.0).sum())
    for s in strata:
        forward += _hockey_stick(s.log_p, s.log_q, s.knots, epsilon)
        backward += _hockey_stick(s.log_q, s.log_p, s.knots, epsilon)
    return min(1.0, max(forward, backward))


def integrate(function: Callable[[Array], Array], edges: Array) -> float:
    """Return the integral of a function that is smooth between edges."""
    nodes, weights = quadrature(edges)
    return float(np.sum(weights * function(nodes)))


def log_integral(log_values: Array, weights: Array) -> float:
    """Return the log of a sum of positive weights times values given as logarithms."""
    top = float(np.max(log_values))
    if top == -math.inf:
        return top
    return top + math.log(float(np.sum(weights * np.exp(log_values - top))))


@lru_cache(maxsize=1)
def unit_nodes() -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss-Legendre on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    return nodes, weights


def quadrature(edges: Array) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss-Legendre between increasing edges."""
    nodes, weights = unit_nodes()
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def log_ratio(log_p: Array, log_q: Array) -> Array:
    """Return log p - log q: 0 where neither has density, infinite where one has."""
    neither = np.isneginf(log_p) & np.isneginf(log_q)
    return np.asarray(np.where(neither, 0.0, log_p) - np.where(neither, 0.0, log_q))


def _hockey_stick(log_p: LogDensity, log_q: LogDensity, knots: Array, epsilon: float) -> float:
    """Return the integral of (p - exp(epsilon) q)_+, split at the sign changes found."""

    def excess(t: Array) -> Array:
        return np.asarray(log_ratio(log_p(t), log_q(t)) - epsilon)

    def integrand(t: Array) -> Array:
        return np.asarray(np.maximum(np.exp(log_p(t)) - np.exp(epsilon + log_q(t)), 0.0))

    grid = _grid(knots)
    positive = excess(grid.ravel()).reshape(grid.shape) > 0.0
    piece, at = np.nonzero(positive[:, 1:] != positive[:, :-1])
    starts, ends = grid[piece, at], grid[piece, at + 1]
    sign = positive[piece, at]
    changes = _halve(lambda t: (excess(t) > 0.0) == sign, starts, ends)
    return integrate(integrand, np.unique(np.concatenate([knots, changes])))


def _maximum(function: Callable[[Array], Array], knots: Array) -> float:
    """Return the maximum of a function that is smooth between knots, or -inf outside a set.

    Every piece is scanned; golden sections polish its best point, halving the edges of the set.
    """
    grid = _grid(knots)
    values = function(grid.ravel()).reshape(grid.shape)
    best = values.argmax(axis=1)
    rows = np.arange(best.size)
    low = grid[rows, np.maximum(best - 1, 0)]
    high = grid[rows, np.minimum(best + 1, grid.shape[1] - 1)]
    tops = [values.max(), _golden(function, low, high), _at_edges(function, grid, values)]
    return float(max(tops))


def _golden(function: Callable[[Array], Array], low: Array, high: Array) -> float:
    """Return the largest value that golden sections of all brackets meet."""
    top = -math.inf
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        f_left, f_right = function(left), function(right)
        top = max(top, float(f_left.max()), float(f_right.max()))
        keep = f_left >= f_right
        low, high = np.where(keep, low, left), np.where(keep, right, high)
    return top


def _at_edges(function: Callable[[Array], Array], grid: Array, values: Array) -> float:
    """Return the largest value at the edges of the set outside which a function is -inf."""
    inside = values > -np.inf
    piece, at = np.nonzero(inside[:, 1:] != inside[:, :-1])
    if piece.size == 0:
        return -math.inf
    left = inside[piece, at]
    starts = np.where(left, grid[piece, at], grid[piece, at + 1])
    ends = np.where(left, grid[piece, at + 1], grid[piece, at])
    return float(function(_halve(lambda t: function(t) > -np.inf, starts, ends)).max())


def _halve(stays: Callable[[Array], NDArray[np.bool_]], starts: Array, ends: Array) -> Array:
    """Return the last points, going from starts to ends, where a condition is seen to hold."""
    for _ in range(HALVINGS if starts.size else 0):
        middle = 0.5 * (starts + ends)
        holds = stays(middle)
        starts, ends = np.where(holds, middle, starts), np.where(holds, ends, middle)
    return starts


def _grid(knots: Array) -> Array:
    """Return points of every piece between knots, shape (piece, point).

    Densities are continuous from the right: a piece has its left knot, but not its right one.
    """
    a, b = knots[:-1], knots[1:]
    inner = np.linspace(np.nextafter(a, b), np.nextafter(b, a), SCAN_POINTS, axis=1)
    return np.column_stack([a, inner])


def log_mass(mass: Array) -> Array:
    """Return the logarithm of probabilities, -inf of zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass))
