"""Upper bounds of the curves of individuals whose contributions were not collected, compiled.

How they contribute is drawn as for everybody, from sums over their databases. Only how their
presence follows the response is not known: in every draw the bound is the largest over all ways in
which their presence on the whole can be spread over the components. By joint convexity the risk is
at most the sum over components of the risks of each, and that of one in which they are present by r
is at most r times the largest risk of g against q, or q against g, for any presence up to the most
that there can be.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.curves.one_answer import LARGEST_SHARE, moments_without, own_variance
from edp_bayes.divergence.any_pair.curves import by_draw
from edp_bayes.divergence.near_pair.close import inner_epsilons, pair_risk
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled, in_threads

__all__ = ["reduced_curves"]

ROUNDING = 1e-9  # by which bounds are raised, relative to what they are
# Standard deviations within which a log ratio below the threshold makes a component's risk nothing,
# less than 1e-16.
FAR = 8.3
LARGE = 600.0  # an exponent beyond which a term is left out, which makes the bound larger


def reduced_curves(
    base: Array,
    active: NDArray[np.bool_],
    contributions: ContributionDraws,
    epsilon: Array,
    *,
    noise_scale: float,
    out: Array,
) -> None:
    """Fill in upper bounds of privacy curves, whatever presence is in each component.

    Parameters
    ----------
    base : ndarray, shape (S, 3, K)
        Weights, locations and standard deviations of p in every draw.
    active : ndarray of bool, shape (S, K)
        Components in which presence may be another than on the whole.
    contributions : ContributionDraws
        How B individuals contribute; presence on the whole in the first component.
    epsilon : ndarray, shape (E,) or (S, E)
        Finite, non-negative, increasing, the same in all draws or of each draw.
    noise_scale : float
        Standard deviation of known Gaussian noise, 0 for none.
    out : ndarray, shape (S, B, E)
        Gets the bounds.
    """
    rho, a, b, tau2 = contributions.moves
    in_threads(
        _draws, len(base), base, active, np.ascontiguousarray(rho[..., 0]), a, b, tau2,
        float(noise_scale) ** 2, np.expm1(by_draw(epsilon, len(base))), out,
    )  # fmt: skip


@compiled
def _draws(first, last, base, active, rho, a, b, tau2, noise, growths, out):  # type: ignore[no-untyped-def]
    """Fill in the bounds of "Who was not collected" (docs/mathematics/individuals.md).

    rho, a, b, tau2 are (draw, individual), growths (draw, epsilon), noise a variance. mass is W
    there, share R_k, most D_k by (component, epsilon), and cap w_k R_k, the largest x_k.
    """
    size, levels = base.shape[2], growths.shape[1]
    most, cap = np.empty((size, levels)), np.empty(size)
    for s in range(first, last):
        mass = 0.0
        for k in range(size):
            if active[s, k]:
                mass += base[s, 0, k]
        for i in range(rho.shape[1]):
            here = rho[s, i]
            for e in range(levels):
                out[s, i, e] = 0.0
            if here <= 0.0:
                continue
            moving = 0
            for k in range(size):
                weight, mu, variance = base[s, 0, k], base[s, 1, k], base[s, 2, k] ** 2
                if weight <= 0.0:
                    continue
                if here == 1.0 or not active[s, k]:
                    _add_known(
                        weight, mu, variance, here, a[s, i], b[s, i], tau2[s, i], noise,
                        growths[s], out[s, i],
                    )  # fmt: skip
                    continue
                share = min(1.0, here * mass / weight)
                if _fill_most(
                    mu, variance, share, a[s, i], b[s, i], tau2[s, i], noise, growths[s],
                    most[moving],
                ):  # fmt: skip
                    cap[moving] = weight * share
                    moving += 1
            for e in range(levels):
                if moving > 0:
                    out[s, i, e] += _spread(most, cap, moving, e, here * mass)
                out[s, i, e] = min(out[s, i, e] * (1.0 + ROUNDING), 1.0)


@borrowing
def _add_known(weight, mu, variance, here, a, b, tau2, noise, growth, out):  # type: ignore[no-untyped-def]
    """Add the risk of a component in which presence is known.

    It is w_k max(rho H_alpha(g || q), kappa H_beta(q || g)), in closed form.
    """
    n, left = moments_without(mu, variance, here, a, b, tau2)
    m = n + (a + b * n)
    t = math.sqrt(left + noise)
    s = math.sqrt((1.0 + b) ** 2 * left + own_variance(tau2, variance, here) + noise)
    for e in range(growth.size):
        backward, down, up = inner_epsilons(here, growth[e])
        out[e] += weight * pair_risk(m, s, n, t, here, backward, down, up)


@borrowing
def _fill_most(mu, variance, share, a, b, tau2, noise, growth, out):  # type: ignore[no-untyped-def]
    """Fill in the most that presence up to a share can make of the risk, over presence.

    Return whether it is anything. Ends of what moments_without and own_variance give for any
    presence r from 0 to the share: the contribution on average is (a + b mu) / (1 + r b). out, by
    epsilon, is at least D_k; low and high bound the variance t^2 of q, narrow and wide s^2 / t^2,
    with s^2 that of g. Each term of L(z) is at its worst end.
    """
    jump = abs(a + b * mu) / min(1.0, 1.0 + share * b)
    away = share * (1.0 - share) if share < 0.5 else 0.25
    explained = min(share * tau2 + away * jump * jump, LARGEST_SHARE * variance)
    stretch = (1.0 + b) ** 2
    end = 1.0 + share * (stretch - 1.0)
    low = (variance - explained) / max(1.0, end) + noise
    high = variance / min(1.0, end) + noise
    least_own, own = min(tau2, LARGEST_SHARE * variance / share), tau2
    # (1 + b)^2 (v - noise) + own + noise over v, at both ends of v
    fixed = noise * (1.0 - stretch)
    wide = max(stretch + (own + fixed) / low, stretch + (own + fixed) / high)
    narrow = min(stretch + (least_own + fixed) / low, stretch + (least_own + fixed) / high)
    # abs(m - n) over t, and over s
    move = jump / math.sqrt(low)
    back = jump / math.sqrt(narrow * low)
    least = np.inf
    for e in range(growth.size):
        backward, down, up = inner_epsilons(share, growth[e])
        least = min(least, min(down, up))
    # constants of L(z) for g against q, and for q against g; where L stays below the least
    # threshold within FAR deviations there is nothing to add
    d = -0.5 * math.log(narrow) + 0.5 * move * move
    r = 0.5 * math.log(wide) + 0.5 * back * back
    forth = d + FAR * (0.5 * max(wide - 1.0, 0.0) * FAR + move * math.sqrt(wide))
    other = r + FAR * (0.5 * max(1.0 / narrow - 1.0, 0.0) * FAR + back / math.sqrt(narrow))
    if max(forth, other) <= least:
        return False
    for e in range(growth.size):
        backward, down, up = inner_epsilons(share, growth[e])
        out[e] = _tails(d, wide - 1.0, move * math.sqrt(wide), down)
        if backward > 0.0:
            out[e] = max(out[e], _tails(r, 1.0 / narrow - 1.0, back / math.sqrt(narrow), up))
    return True


@borrowing
def _tails(constant, square, linear, epsilon):  # type: ignore[no-untyped-def]
    """Return a bound of the hockey-stick integral where log ratios are at most a parabola.

    E(1 - exp(epsilon - L))_+ of a standard normal z, with L = constant + square z^2 / 2 + linear z
    where z > 0, and without the linear term where z < 0.
    """
    square = max(square, 0.0)
    found = _tail(constant, square, linear, epsilon) + _tail(constant, square, 0.0, epsilon)
    return min(found, 1.0)


@borrowing
def _tail(constant, square, linear, epsilon):  # type: ignore[no-untyped-def]
    """Return the part of z > 0: exact, or larger where an exponent is too large to be taken.

    L passes epsilon at z = start; E exp(epsilon - L) beyond is a normal tail, its square completed.
    """
    left = epsilon - constant
    start = 0.0
    if left > 0.0:
        root = linear + math.sqrt(linear * linear + 2.0 * square * left)
        if root <= 0.0:
            return 0.0
        start = 2.0 * left / root
    found = 0.5 * math.erfc(start * math.sqrt(0.5))
    scale = math.sqrt(1.0 + square)
    exponent = left + 0.5 * (linear / scale) ** 2
    if exponent < LARGE:
        beyond = 0.5 * math.erfc((start * scale + linear / scale) * math.sqrt(0.5))
        found -= math.exp(exponent) * beyond / scale
    return max(found, 0.0)


@borrowing
def _spread(most, cap, count, level, budget):  # type: ignore[no-untyped-def]
    """Return the largest sum of x_k most_k with x_k at most cap_k, all together the budget.

    A linear program with one constraint beside the bounds: the largest most_k first.
    """
    total, taken = 0.0, np.inf
    left = budget
    last = -1
    for _ in range(count):
        # the next largest, of equal ones in their order
        best, place = -1.0, -1
        for k in range(count):
            value = most[k, level]
            if value > best and (value < taken or (value == taken and k > last)):
                best, place = value, k
        if place < 0 or best <= 0.0:
            break
        part = min(cap[place], left)
        total += part * best
        left -= part
        if left <= 0.0:
            break
        taken, last = best, place
    return total
