"""Upper bounds of privacy curves, for all who can hardly matter in a large population.

By joint convexity the risk is at most the sum over components of the risks of each, which have
closed forms. Where that is below a floor it stands for the risk itself. Where the largest risk is
the floor many have such bounds above it, as components that overlap balance each other; then masses
in cells tell more, see `edp_bayes.divergence.near_pair.cells`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.curves.one_answer import moments_without, own_variance
from edp_bayes.divergence.near_pair.cells import STEP, bound_by_cells, cell_workspace
from edp_bayes.divergence.near_pair.close import inner_epsilons, pair_risk
from edp_bayes.divergence.near_pair.nodes import FARTHEST, MOST_NODES, place_nodes
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled, in_threads

__all__ = ["bound_curves"]

LIGHT = 1e-9  # components that weigh less, all together, are bounded by their weight
NOTHING = 1e-13  # of a curve that need not fall farther
BESIDE = 1e-3  # of the floor: mass of components that bounds leave out
APART = 0.3  # of the floor: mass of components whose closed forms serve beside cells of the others
TAILS = 1e-2  # of the floor: mass of tails without cells
FEW_TERMS = 64  # closed forms that take less time than masses in cells


def bound_curves(
    base: Array,
    contributions: ContributionDraws,
    epsilon: Array,
    *,
    noise_scale: float,
    floor: Array,
    out: Array,
    done: NDArray[np.bool_],
    by_cells: bool = False,
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
    by_cells : bool
        Also take masses in cells, where the floor is about as high as the largest risk.
    """
    in_threads(
        _draws, len(base), base, contributions.moves, float(noise_scale) ** 2, np.expm1(epsilon),
        floor, by_cells, out, done,
    )  # fmt: skip


@compiled
def _draws(first, last, base, moves, noise, growth, floor, by_cells, out, done):  # type: ignore[no-untyped-def]
    """Fill in bounds and whether they serve, for the draws from first to last.

    Shapes are those of `bound_curves`; moves are rho (draw, individual, component), a, b and tau2
    (draw, individual), noise is a variance and growth exp(eps) - 1. The bound is that of "Who
    hardly matters in a large population" (docs/mathematics/individuals.md).
    """
    rho, a, b, tau2 = moves
    size = base.shape[2]
    heavy, parts = np.empty(size, dtype=np.int64), np.empty((6, size))
    wide, nodes = np.empty((3, size)), np.empty((2, MOST_NODES if by_cells else 0))
    cells, count = cell_workspace(size if by_cells else 0, growth.size), 0
    for s in range(first, last):
        beside = max(LIGHT, BESIDE * floor[s, -1]) if by_cells else LIGHT
        inside = _list_heavy(base[s, 0], max(beside, APART * floor[s, -1]), heavy)
        heavier = _list_heavy(base[s, 0], beside, heavy)
        if by_cells:
            for k in range(size):
                wide[0, k], wide[1, k] = 0.0, base[s, 1, k]
                wide[2, k] = math.sqrt(base[s, 2, k] ** 2 + noise)
            for k in heavy[:inside]:
                wide[0, k] = base[s, 0, k]
            count = place_nodes(wide, nodes, STEP, max(LIGHT, TAILS * floor[s, -1]))
        for i in range(rho.shape[1]):
            rest, moving = _moving_parts(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], noise, growth[0],
                heavy[:heavier], parts,
            )  # fmt: skip
            if moving * growth.size <= FEW_TERMS or count < 2:
                done[s, i] = _fill_bounds(parts, moving, rest, growth, floor[s], out[s, i])
            if done[s, i] or count < 2:
                continue
            rest, every = _every_part(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], noise, growth[0],
                heavy[:inside], heavy[inside:heavier], parts,
            )  # fmt: skip
            bound_by_cells(nodes[0], count, parts, every, rest, growth, cells, out[s, i])
            done[s, i] = _are_below(parts, every, rest, growth, floor[s], out[s, i])
            if not done[s, i]:
                out[s, i] = 0.0


@compiled
def _list_heavy(weights, least, heavy):  # type: ignore[no-untyped-def]
    """List all components but the lightest, which weigh no more all together, and return how many.

    The heaviest is the first: where bounds are too large that shows soon.
    """
    count, light = weights.size, 0.0
    # by insertion: numpy.argsort takes 4 s to compile
    order = np.empty(count, dtype=np.int64)
    for k in range(count):
        place = k
        while place > 0 and weights[order[place - 1]] > weights[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    for k in order:
        light += weights[k]
        if light > least:
            break
        count -= 1
    for j in range(count):
        heavy[j] = order[weights.size - 1 - j]
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
        m, s, n, t = _with_and_without(mu, variance, here, a, b, tau2, noise)
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
def _every_part(base, rho, a, b, tau2, noise, growth, within, apart, parts):  # type: ignore[no-untyped-def]
    """List the components within cells, as `_moving_parts` lists some; return what others add.

    Those apart add their own risks at most, by joint convexity; these fall with growth.
    """
    rest, count = 0.0, 0
    for k in range(rho.size):
        rest += base[0, k] * rho[k]
    for k in within:
        rest -= base[0, k] * rho[k]
        _fill_part(base, k, rho, a, b, tau2, noise, parts, count)
        count += 1
    for k in apart:
        rest -= base[0, k] * rho[k]
    rest = max(rest, 0.0)
    for k in apart:
        if rho[k] > 0.0:
            _fill_part(base, k, rho, a, b, tau2, noise, parts, count)
            rest += _term(parts, count, growth)
    return rest, count


@borrowing
def _fill_part(base, k, rho, a, b, tau2, noise, parts, place):  # type: ignore[no-untyped-def]
    """Fill in a column of parts."""
    variance, here = base[2, k] ** 2, rho[k]
    m, s, n, t = _with_and_without(base[1, k], variance, max(here, 1e-300), a, b, tau2, noise)
    parts[0, place], parts[1, place], parts[2, place], parts[3, place] = m, s, n, t
    parts[4, place], parts[5, place] = here, base[0, k]


@borrowing
def _with_and_without(mu, variance, here, a, b, tau2, noise):  # type: ignore[no-untyped-def]
    """Return location and scale of g and of q of a component."""
    n, left = moments_without(mu, variance, here, a, b, tau2)
    own = own_variance(tau2, variance, here)
    return (
        n + (a + b * n),
        math.sqrt((1.0 + b) ** 2 * left + own + noise),
        n,
        math.sqrt(left + noise),
    )


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
                bound += _term(parts, k, growth[e])
                if bound > floor[e]:
                    break
        if bound > floor[e]:
            for before in range(e):
                out[before] = 0.0
            return False
        out[e] = bound
    return True


@borrowing
def _term(parts, k, growth):  # type: ignore[no-untyped-def]
    """Return the risk of a component, which is what it adds to the bound."""
    here = parts[4, k]
    backward, down, up = inner_epsilons(here, growth)
    return parts[5, k] * pair_risk(
        parts[0, k], parts[1, k], parts[2, k], parts[3, k], here, backward, down, up
    )


@borrowing
def _are_below(parts, size, rest, growth, floor, out):  # type: ignore[no-untyped-def]
    """Return whether bounds are below the floor, where they are not after taking closed forms.

    Far out, where the ratio of p and q is steep, these are the smaller ones. Risks are convex in
    growth, so between a bound and that at the last epsilon their chord is one.
    """
    last = growth.size - 1
    for step in range(last + 1):
        e = step - 1 if step > 0 else last
        if out[e] <= floor[e]:
            continue
        bound = rest
        for k in range(size):
            if parts[4, k] > 0.0 and bound <= floor[e]:
                bound += _term(parts, k, growth[e])
        if bound > floor[e]:
            return False
        out[e] = bound
        for after in range(e + 1, last):
            share = (growth[after] - growth[e]) / (growth[last] - growth[e])
            out[after] = min(out[after], bound + share * (out[last] - bound))
    return True
