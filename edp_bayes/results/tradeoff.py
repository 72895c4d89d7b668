"""Privacy curves in the words of tests and guesses: trade-off, Gaussian mu, membership, advantage.

A curve is known on a grid of epsilon. What follows errs on the safe side between and beyond its
values: upper ends take the most, lower ends the least that a curve through them can be.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = [
    "curve_at",
    "exceedance",
    "gaussian_mu",
    "guessing",
    "least_mu",
    "least_power",
    "most_power",
]

BETWEEN = 4  # points in each cell of the grid where a Gaussian curve is compared
LARGEST_MU, HALVINGS = 100.0, 50


def most_power(curves: Array, epsilon: Array, levels: Array) -> Array:
    """Return the most that a test of each level can detect, shape (draw, level).

    The power at level a is at most delta + exp(epsilon) a and 1 - exp(-epsilon)(1 - delta - a) for
    every epsilon (Dong, Roth and Su 2022, Proposition 2.13).

    Parameters
    ----------
    curves : ndarray, shape (draw, epsilon)
        delta(epsilon), of both directions.
    epsilon : ndarray, shape (epsilon,)
    levels : ndarray, shape (level,)
        Probabilities of a false alarm.

    Examples
    --------
    >>> most_power(np.array([[0.1]]), np.array([0.0]), np.array([0.05]))
    array([[0.15]])
    """
    power = np.ones((len(curves), levels.size))
    for delta, level in zip(curves.T, epsilon, strict=True):
        growth = math.exp(level)
        power = np.minimum(power, delta[:, None] + growth * levels)
        power = np.minimum(power, 1.0 - (1.0 - delta[:, None] - levels) / growth)
    return np.clip(power, levels, 1.0)


def least_power(curves: Array, epsilon: Array, levels: Array) -> Array:
    """Return the least that the best test of each level detects, for curves of at least these.

    Between two values of the grid a curve is at least its value at the right one.
    """
    edges = np.concatenate([[0.0], epsilon])
    values = np.concatenate([curves, np.zeros((len(curves), 1))], axis=1)
    power = np.ones((len(curves), levels.size))
    for delta, level in zip(values.T, edges, strict=True):
        growth = math.exp(level)
        power = np.minimum(power, delta[:, None] + growth * levels)
        power = np.minimum(power, 1.0 - (1.0 - delta[:, None] - levels) / growth)
    return np.clip(power, levels, 1.0)


def curve_at(curves: Array, epsilon: Array, level: float, *, convex: bool = True) -> Array:
    """Return the most that delta is at one epsilon, shape (draw,).

    Between values it lies below chords in exp(epsilon) if it is convex there, and is at most its
    value at the left one if not. Left of the first one, d at e, it is at
    most d + (1 - d) (exp(e) - exp(level)) / (1 + exp(e)) (Kairouz, Oh and Viswanath 2017).
    """
    if level < epsilon[0]:
        end = math.exp(epsilon[0])
        rise = (end - math.exp(level)) / (1.0 + end)
        return np.asarray(curves[:, 0] + (1.0 - curves[:, 0]) * rise)
    growth = np.exp(epsilon)
    right = min(int(np.searchsorted(epsilon, level)), epsilon.size - 1)
    left = max(right - 1, 0)
    if right == left or level >= epsilon[-1]:
        return np.asarray(curves[:, right].copy())
    if not convex:
        return np.asarray(curves[:, right if level >= epsilon[right] else left].copy())
    share = (math.exp(level) - growth[left]) / (growth[right] - growth[left])
    return np.asarray((1.0 - share) * curves[:, left] + share * curves[:, right])


def exceedance(curves: Array, epsilon: Array) -> Array:
    """Return the most probable that the log ratio exceeds each epsilon, shape (draw, epsilon).

    P(L > epsilon) <= delta(e) / (1 - exp(e - epsilon)) for every e below epsilon.
    """
    found = np.ones_like(curves)
    for k in range(1, epsilon.size):
        share = -np.expm1(epsilon[:k] - epsilon[k])
        found[:, k] = np.minimum(1.0, (curves[:, :k] / share).min(axis=1))
    return np.minimum.accumulate(found, axis=1)


def guessing(curves: Array, epsilon: Array, prior: float, *, convex: bool = True) -> Array:
    """Return the largest probability of a right guess at membership, shape (draw,).

    With prior probability p of membership it is max(p, 1 - p) + min(p, 1 - p) delta(e) at
    e = abs(log((1 - p) / p)).
    """
    level = abs(math.log1p(-prior) - math.log(prior))
    rare = min(prior, 1.0 - prior)
    return 1.0 - rare + rare * curve_at(curves, epsilon, level, convex=convex)


def gaussian_mu(curves: Array, epsilon: Array, *, convex: bool = True) -> Array:
    """Return the least mu whose Gaussian curve is nowhere below on the grid, shape (draw,).

    The curve is that of a normal distribution and its copy moved by mu standard deviations. In
    between it is compared with the chord at the left end of each of a few parts.
    """
    points, values = [float(epsilon[0])], [curves[:, 0]]
    for left, right in itertools.pairwise(epsilon.tolist()):
        parts = np.linspace(left, right, BETWEEN + 1)
        points += parts[1:].tolist()
        values += [curve_at(curves, epsilon, part, convex=convex) for part in parts[:-1].tolist()]
    return least_mu(np.stack(values, axis=1), np.array(points))


def least_mu(needed: Array, grid: Array) -> Array:
    """Return the least mu whose Gaussian curve is nowhere below points of a curve, shape (draw,).

    Examples
    --------
    >>> least_mu(np.array([[0.0], [0.38292492]]), np.array([0.0])).round(6).tolist()
    [0.0, 1.0]
    """
    from edp_bayes.divergence.shifts import gaussian_shift

    low, high = np.zeros(len(needed)), np.full(len(needed), LARGEST_MU)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        enough = (gaussian_shift(middle[:, None], grid) >= needed).all(axis=1)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    revealed = (needed >= 1.0).any(axis=1)
    return np.where(revealed | (high >= LARGEST_MU), np.inf, high)
