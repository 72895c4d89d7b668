"""Privacy curves of many pairs of Gaussian mixtures, as far as tails give them well enough."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.components import GAUSSIAN, NORMAL_LAPLACE
from edp_bayes.divergence.by_tails.columns import add_rows
from edp_bayes.divergence.by_tails.integrals import Levels, integrate, tail_work
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = [
    "ABSOLUTE",
    "CUT",
    "NEGLIGIBLE",
    "RELATIVE",
    "ROUNDING",
    "SMALLEST",
    "from_tails",
    "serves",
]

SMALLEST = 1e-100  # mass that is neglected when every result counts
NEGLIGIBLE = 1e-4  # of the floor: mass of tails that is neglected
CUT = 1.5  # of the reach: beyond, a component adds nothing to values
ROUNDING = 5e-16  # of the masses that are subtracted from each other
RELATIVE = 1e-12  # rounding that is left to a result, of its value
ABSOLUTE, OF_FLOOR = 1e-14, 0.01  # and in any case, where there is a floor
NOISY = 5.0  # times as much are both with Laplace noise
LARGEST_RATIO = 1e4  # of a scale to that of Laplace noise: slopes lose as many digits


def from_tails(
    p: Array, q: Array, epsilon: Array, out: Array, start: Index,
    *, both: bool, floor: float,
) -> None:  # fmt: skip
    """Fill in the integrals of every pair up to the epsilon where rounding begins to count.

    Parameters
    ----------
    p, q : ndarray, shape (S, K, 5), (S, B, L, 5)
        Components for which it `serves`, see `edp_bayes.divergence.any_pair.components.rows`.
    epsilon : ndarray, shape (S, E)
        Non-negative, increasing.
    out : ndarray, shape (S, B, E)
        Gets H(p || q), or the larger of both directions.
    start : ndarray of int, shape (S, B)
        Gets the number of the first epsilon of each pair at which so much cancels that rounding may
        be more than 1e-12 of the result, and more than a hundredth of the floor. From there on
        nothing is known.
    both : bool
        Take the larger of H(p || q) and H(q || p).
    floor : float
        Results below it are exactly zero.
    """
    negligible = max(floor * NEGLIGIBLE, SMALLEST)
    more = NOISY if (p[..., 4] == NORMAL_LAPLACE).all() else 1.0
    in_threads(
        _curves, q.shape[0] * q.shape[1], p, q, epsilon, np.expm1(epsilon), both, float(floor),
        more * ROUNDING, more * min(ABSOLUTE, OF_FLOOR * floor), negligible,
        math.sqrt(-2.0 * math.log(negligible)), out, start,
    )  # fmt: skip


def serves(p: Array, q: Array) -> bool:
    """Return whether all components are Gaussian, or all Gaussian with enough Laplace noise."""
    families = np.concatenate([p[..., 4].ravel(), q[..., 4].ravel()])
    if (families == GAUSSIAN).all():
        return True
    if not (families == NORMAL_LAPLACE).all():
        return False
    return all(bool((part[..., 2] <= LARGEST_RATIO * part[..., 3]).all()) for part in (p, q))


@compiled
def _curves(
    first: int,
    last: int,
    p: Array,
    q: Array,
    epsilon: Array,
    growth: Array,
    both: bool,
    floor: float,
    rounding: float,
    absolute: float,
    negligible: float,
    reach: float,
    out: Array,
    start: Index,
) -> None:
    """Fill in H_eps of pairs first to last by tails, up to where rounding counts.

    H_eps(p || q) = sum over sign changes of differences of P(x > t) - exp(eps) Q(x > t)
    (docs/mathematics/integrals.md, Gaussian mixtures). total and scale (2, epsilon) hold the
    integrals of both directions and the sizes of their terms: rounding is at most `rounding` times
    these. Task s people + i is the pair (p[s], q[s, i]); shapes are as for `curves`.
    """
    people, levels = q.shape[1], epsilon.shape[1]
    work = tail_work(2 * (p.shape[1] + q.shape[2]), levels)
    total, scale = np.empty((2, levels)), np.empty((2, levels))
    for task in range(first, last):
        s, i = task // people, task % people
        count = add_rows(p[s], q[s, i], reach, work.columns)
        grid = Levels(epsilon[s], growth[s], epsilon[s], growth[s])
        start[s, i] = 0
        if not integrate(work, count, grid, negligible, CUT * reach, total, scale):
            continue
        for e in range(levels):
            value, error = total[0, e], rounding * scale[0, e]
            if both:
                value, error = max(value, total[1, e]), max(error, rounding * scale[1, e])
            if error > max(RELATIVE * value, absolute):
                break
            out[s, i, e] = value if value >= floor else 0.0
            start[s, i] = e + 1
