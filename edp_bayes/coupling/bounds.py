"""Upper bounds of privacy curves, for all who can hardly matter in a large population.

By joint convexity the risk is at most the sum over components of the risks of each, which have
closed forms. Where that is below a floor it stands for the risk itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions import ContributionDraws
from edp_bayes.coupling.curves import moments_without, own_variance
from edp_bayes.divergence.near_pair.close import inner_epsilons, pair_risk
from edp_bayes.divergence.near_pair.nodes import FARTHEST
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled, in_threads

__all__ = ["bound_curves"]

LIGHT = 1e-9  # components that weigh less, all together, are bounded by their weight
NOTHING = 1e-13  # of a curve that need not fall farther


def bound_curves(
    base: Array,
    contributions: ContributionDraws,
    epsilon: Array,
    *,
    noise_scale: float,
    floor: Array,
    out: Array,
    done: NDArray[np.bool_],
) -> None:
    """Fill in upper bounds of the curves that are below the floor at every epsilon.

    Parameters
    ----------
    base : ndarray, shape (S, 3, K)
        Weights, locations and standard deviations of p in every draw.
    contributions : ContributionDraws
        How B individuals contribute.
    epsilon : ndarray, shape (E,)
        Finite, non-negative, increasing.
    noise_scale : float
        Standard deviation of known Gaussian noise, 0 for none.
    floor : ndarray, shape (S, E)
        What bounds must not exceed.
    out : ndarray, shape (S, B, E)
        Zeros; gets the bounds where done.
    done : ndarray of bool, shape (S, B)
        False; gets whose curves are bounded.
    """
    in_threads(
        _draws, len(base), base, contributions.moves, float(noise_scale) ** 2, np.expm1(epsilon),
        floor, out, done,
    )  # fmt: skip


@compiled
def _draws(first, last, base, moves, noise, growth, floor, out, done):  # type: ignore[no-untyped-def]
    """Fill in bounds and whether they serve, for the draws from first to last.

    Shapes are those of `bound_curves`; moves are rho (draw, individual, component), a, b and tau2
    (draw, individual), noise is a variance and growth exp(eps) - 1. The bound is that of "Who
    hardly matters in a large population" (docs/mathematics/individuals.md).
    """
    rho, a, b, tau2 = moves
    size = base.shape[2]
    heavy, parts = np.empty(size, dtype=np.int64), np.empty((6, size))
    for s in range(first, last):
        count = _list_heavy(base[s, 0], heavy)
        for i in range(rho.shape[1]):
            rest, moving = _moving_parts(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], noise, growth[0],
                heavy[:count], parts,
            )  # fmt: skip
            done[s, i] = _fill_bounds(parts, moving, rest, growth, floor[s], out[s, i])


@compiled
def _list_heavy(weights, heavy):  # type: ignore[no-untyped-def]
    """List all components but the lightest."""
    count, light = 0, 0.0
    for k in np.argsort(weights):
        light += weights[k]
        if light > LIGHT:
            heavy[count] = k
            count += 1
    return count


@borrowing
def _moving_parts(base, rho, a, b, tau2, noise, growth, heavy, parts):  # type: ignore[no-untyped-def]
    """List the components whose log ratio may pass a threshold; return what the others add.

    Columns of parts: location and scale of g and of q, presence, weight. What the lightest add is
    at most sum_k w_k rho_k, as no hockey-stick integral is above one.
    """
    rest, moving = 0.0, 0
    for k in range(rho.size):
        rest += base[0, k] * rho[k]
    for k in heavy:
        weight, mu, variance, here = base[0, k], base[1, k], base[2, k] ** 2, rho[k]
        rest -= weight * here
        if here == 0.0:
            continue
        n, left = moments_without(mu, variance, here, a, b, tau2)
        m = n + (a + b * n)
        t = math.sqrt(left + noise)
        s = math.sqrt((1.0 + b) ** 2 * left + own_variance(tau2, variance, here) + noise)
        # Within FARTHEST sd the standard scores z of g and of q differ by at most move, so that
        # log(g / q) is at most move (FARTHEST + move / 2) + abs(log stretch), and the latter at
        # most change most. The factor most makes it hold for both directions. What is farther out
        # weighs less than 1e-22.
        stretch = s / t
        most = max(stretch, 1.0 / stretch)
        change = abs(stretch - 1.0)
        move = (abs(m - n) / t + change * FARTHEST) * most
        kept = here - growth * (1.0 - here)
        up = _least_log1p(growth / kept) if kept > 0.0 else np.inf
        allowed = min(_least_log1p(growth / here), up)
        if move * (FARTHEST + 0.5 * move) + change * most <= allowed:
            continue
        parts[0, moving], parts[1, moving], parts[2, moving], parts[3, moving] = m, s, n, t
        parts[4, moving], parts[5, moving] = here, weight
        moving += 1
    return max(rest, 0.0), moving


@borrowing
def _least_log1p(x):  # type: ignore[no-untyped-def]
    """Return 2 x / (2 + x), a lower bound of log(1 + x) for x >= 0: thresholds too low are safe."""
    return 2.0 * x / (2.0 + x)


@borrowing
def _fill_bounds(parts, moving, rest, growth, floor, out):  # type: ignore[no-untyped-def]
    """Fill in the bounds at every epsilon; return whether all are below the floor.

    A bound at one epsilon holds at all larger ones (fact 4 of docs/mathematics/hockey_stick.md), so
    one that has come down to the rest is kept. growth, floor and out are (epsilon,).
    """
    bound = np.inf if moving else rest
    for e in range(growth.size):
        if bound > rest + NOTHING:
            bound = rest
            for k in range(moving):
                here = parts[4, k]
                backward, down, up = inner_epsilons(here, growth[e])
                bound += parts[5, k] * pair_risk(
                    parts[0, k], parts[1, k], parts[2, k], parts[3, k], here, backward, down, up
                )
                if bound > floor[e]:
                    break
        if bound > floor[e]:
            for before in range(e):
                out[before] = 0.0
            return False
        out[e] = bound
    return True
