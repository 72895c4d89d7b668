"""Curves of delta_i under the regression coupling, for every draw and individual at once.

Component k of p is (1 - rho_k) q_k + rho_k g_k for an individual who is present there with
probability rho_k, with q_k the distribution without them and g_k the distribution given their
presence. With rho the largest of all rho_k, and g the mixture of (1 - share_k) q_k + share_k g_k
for share_k = rho_k / rho, also p = (1 - rho) q + rho g, and exactly

    H_eps(p || q) = rho H_e(g || q),   expm1(e) = expm1(eps) / rho,
    H_eps(q || p) = kept H_e(q || g),  expm1(e) = expm1(eps) / kept,
    kept = rho - expm1(eps) (1 - rho),

and 0 where kept <= 0. So only the pair (g, q), whose differences are those of the components of p,
is ever integrated, and most individuals are safe by joint convexity, component by component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.divergence.any_pair.curves import by_draw
from edp_bayes.divergence.by_tails.columns import add_column
from edp_bayes.divergence.by_tails.curves import (
    ABSOLUTE,
    CUT,
    NEGLIGIBLE,
    RELATIVE,
    ROUNDING,
    SMALLEST,
)
from edp_bayes.divergence.by_tails.integrals import Levels, integrate, new_levels, tail_work
from edp_bayes.divergence.logarithmic.curves import UNEVEN
from edp_bayes.divergence.near_pair.affine import (
    image_integrals,
    image_workspace,
    is_negligible,
    tabulate,
)
from edp_bayes.divergence.near_pair.close import (
    are_close,
    convexity_bound,
    covered_bound,
)
from edp_bayes.divergence.near_pair.nodes import MOST_NODES, place_nodes
from edp_bayes.divergence.near_pair.safety import is_safe, safety_tables, tabulate_shares
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import ZERO, borrowing, compiled, in_threads, linked

__all__ = [
    "coupled_curves",
    "given_and_without",
    "moments_without",
    "movement_lengths",
    "own_variance",
    "pair_components",
    "relative_presence",
    "variance_taken",
]

# The share of a component's variance that one individual may explain.
LARGEST_SHARE = 0.9
# Beyond, differences of tails divided by so little are no longer exact.
MOST_GROWTH = 1e5
# Pairs whose component distributions take about as long as a thread takes to start.
CHEAP_PAIRS = 2000


def coupled_curves(
    base: Array,
    contributions: ContributionDraws,
    epsilon: Array,
    *,
    noise_scale: float,
    floor: float,
    out: Array,
    close: NDArray[np.bool_],
) -> None:
    """Fill in the privacy curves of everybody whose distributions are close to the base.

    Parameters
    ----------
    base : ndarray, shape (S, 3, K)
        Weights, locations and standard deviations of p in every draw.
    contributions : ContributionDraws
        How B individuals contribute.
    epsilon : ndarray, shape (E,) or (S, E)
        Finite, non-negative, increasing, the same in all draws or of each draw.
    noise_scale : float
        Standard deviation of known Gaussian noise, 0 for none.
    floor : float
        Curves that joint convexity bounds by this are not looked for and stay zero.
    out : ndarray, shape (S, B, E)
        Zeros, or known curves; gets max(H_eps(p || q), H_eps(q || p)) where close.
    close : ndarray of bool, shape (S, B)
        Whose curves are known already; gets whether the distributions were close enough.
    """
    wide = base.copy()
    wide[:, 2] = np.hypot(base[:, 2], noise_scale)
    arguments = (
        base, wide, contributions.moves, float(noise_scale), np.expm1(by_draw(epsilon, len(base))),
        float(floor), out, close,
    )  # fmt: skip
    # What would serve nobody is not compiled: of a first, small audit compilation is most.
    first = contributions.presence[..., 0] == 1.0
    if (contributions.presence[first] == 1.0).all(axis=-1).any():  # some are always present
        in_threads(_images, len(base), *arguments)
    if not close.all():
        in_threads(_draws, len(base), *arguments)


def pair_components(
    base: Array, rho: Array, a: Array, b: Array, spread: Array, *, unit: float
) -> Array:
    """Return locations and scales of g and of q for some pairs of draw and individual.

    Parameters
    ----------
    base : ndarray, shape (pair, 3, K)
        Weights, locations and scales of p.
    rho : ndarray, shape (pair, K)
        Presence in every component.
    a, b, spread : ndarray, shape (pair,)
        Intercept, slope and standard deviation of the contribution.
    unit : float
        Variance of a kernel of scale one.

    Returns
    -------
    ndarray, shape (pair, 2, 2, K)
        [g, q], [locations, scales].
    """
    out = np.empty((len(base), 2, 2, base.shape[2]))
    in_threads(
        _all_pairs, len(base), base, rho, a, b, spread**2, float(unit), out, least=CHEAP_PAIRS
    )
    return out


def movement_lengths(
    base: Array, contributions: ContributionDraws, epsilon: float, *, kernel: str
) -> tuple[Array, Array]:
    """Return how gentle a slope of the log density makes every pair safe at epsilon.

    With a slope of at most L the log ratio of two components is at most L times their distance
    and a term for their widths; the length is the least for which this, at L = 1 / length, is
    epsilon or less for all components, see `edp_bayes.noise.certificates.screening`.

    Parameters
    ----------
    base : ndarray, shape (S, 3, K)
        Weights, locations and scales of p in every draw.
    contributions : ContributionDraws
        How B individuals contribute.
    epsilon : float
        The target.
    kernel : {"gaussian", "laplace"}
        Family of the components.

    Returns
    -------
    length, smallest : ndarray, shape (S, B)
        The lengths, and the smallest scale of any component with or without the individual.
    """
    length, smallest = np.empty((2, *contributions.intercept.shape))
    in_threads(
        _lengths, len(base), base, contributions.moves, math.expm1(epsilon), kernel == "gaussian",
        length, smallest,
    )  # fmt: skip
    return length, smallest


@compiled
def _lengths(first, last, base, moves, growth, gaussian, length, smallest):  # type: ignore[no-untyped-def]
    """Fill in lengths and smallest scales, (draw, individual); moves are as in `_draws`.

    Noise whose log density has slopes of at most L = 1 / length leaves no risk if every log ratio
    of g_k and q_k is at most log(1 + (exp(eps) - 1) / rho_k): the threshold of q against g is
    larger. The wider is the narrower, moved and with independent noise added, of which log E exp(L
    abs(noise)) counts.
    """
    (rho, a, b, tau2), size = moves, base.shape[2]
    given, without = np.empty((2, size)), np.empty((2, size))
    unit = 1.0 if gaussian else 2.0
    for s in range(first, last):
        for i in range(rho.shape[1]):
            given_and_without(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], unit, 0.0, given, without
            )
            longest, least = 0.0, np.inf
            for k in range(size):
                small, large = min(given[1, k], without[1, k]), max(given[1, k], without[1, k])
                least = min(least, small)
                if base[s, 0, k] == 0.0 or rho[s, i, k] == 0.0:
                    continue
                allowed = math.log1p(growth / rho[s, i, k])
                moved = abs(given[0, k] - without[0, k])
                if gaussian:
                    # noise N(0, v): at most L sqrt(2 v / pi) + L^2 v / 2, as log 2 Phi is concave;
                    # the least length is a root of allowed x^2 = linear x + v / 2
                    v = (large - small) * (large + small)
                    linear = moved + math.sqrt(2.0 / math.pi * v)
                    found = linear + math.sqrt(linear * linear + 2.0 * v * allowed)
                    found /= 2.0 * allowed
                else:
                    # a Laplace kernel is, by 1 - share, the narrower, and otherwise has Laplace
                    # noise of scale large: at most 2 L share large while L large <= 1 / 2
                    share = 1.0 - (small / large) ** 2
                    found = (moved + 2.0 * share * large) / allowed
                    if share > 0.0:
                        found = max(found, 2.0 * large)
                longest = max(longest, found)
            length[s, i], smallest[s, i] = longest, least


@compiled
def _all_pairs(first, last, base, rho, a, b, tau2, unit, out):  # type: ignore[no-untyped-def]
    """Fill in out (pair, 2, 2, K) for the pairs from first to last; see `pair_components`."""
    for j in range(first, last):
        given_and_without(base[j], rho[j], a[j], b[j], tau2[j], unit, 0.0, out[j, 0], out[j, 1])


@linked
def given_and_without(base, rho, a, b, tau2, unit, noise, given, without):  # type: ignore[no-untyped-def]
    """Take the contribution a + b rest + tau e out of every component.

    base (3, K), rho (K,); given and without, (2, K), get locations and scales of g_k and q_k. unit
    is the variance of a kernel of scale one, noise the square of the scale of known noise.
    """
    for k in range(base.shape[1]):
        mu, variance, here = base[1, k], unit * base[2, k] ** 2, rho[k]
        m, rest = moments_without(mu, variance, here, a, b, tau2)
        without[0, k], without[1, k] = m, math.sqrt(rest / unit + noise)
        if here == 1.0:
            # Exactly p, so that rounding does not make a difference between individuals.
            given[0, k], given[1, k] = mu, math.sqrt(base[2, k] ** 2 + noise)
        else:
            own = own_variance(tau2, variance, here)
            given[0, k] = m + (a + b * m)
            given[1, k] = math.sqrt(((1.0 + b) ** 2 * rest + own) / unit + noise)


def variance_taken(mu: Any, here: Any, a: Any, b: Any, tau2: Any) -> tuple[Any, Any]:
    """Return the mean without an individual, and what their contribution has of the variance.

    Of numbers, or of arrays that broadcast.
    """
    m = (mu - here * a) / (1.0 + here * b)
    jump = a + b * m
    return m, here * tau2 + here * (1.0 - here) * jump * jump


_variance_taken = borrowing(variance_taken)  # for what is compiled


@borrowing
def moments_without(mu, variance, here, a, b, tau2):  # type: ignore[no-untyped-def]
    """Return mean and variance of a component without an individual present there by `here`.

    They are those which, with their contribution added back, give the mean and variance of the
    component of p, unless that would take more than LARGEST_SHARE of its variance: m_k and s_k^2 of
    docs/models/contributions.md, with mu, variance = mu_k, v_k and here = rho_k.
    """
    m, taken = _variance_taken(mu, here, a, b, tau2)
    explained = min(taken, LARGEST_SHARE * variance)
    return m, (variance - explained) / (1.0 - here + here * (1.0 + b) ** 2)


@borrowing
def own_variance(tau2, variance, here):  # type: ignore[no-untyped-def]
    """Return the variance that their presence, by `here`, adds to a component.

    tau^2, but at most LARGEST_SHARE v_k / rho_k (docs/models/contributions.md).
    """
    return min(tau2, LARGEST_SHARE * variance / here)


@linked
def _narrowest(base):  # type: ignore[no-untyped-def]
    """Return the smallest variance of a component that weighs anything."""
    least = np.inf
    for k in range(base.shape[1]):
        if base[0, k] > 0.0:
            least = min(least, base[2, k] ** 2)
    return least


@linked
def relative_presence(rho, share):  # type: ignore[no-untyped-def]
    """Fill in presence relative to the largest, and return that."""
    largest = rho.max()
    for k in range(rho.size):
        share[k] = rho[k] / largest if largest > 0.0 else 0.0
    return largest


@linked
def _thresholds(rho, growth):  # type: ignore[no-untyped-def]
    """Return q / g - 1 below which p > exp(eps) q, and above which q > exp(eps) p.

    With growth = exp(eps) - 1 they are exp(-alpha) - 1 and exp(beta) - 1, alpha and beta those of
    "An individual who is sometimes absent" (docs/mathematics/individuals.md); kept is its kappa.
    """
    kept = rho - growth * (1.0 - rho)
    return -growth / (rho + growth), growth / kept if kept > 0.0 else np.inf


@compiled
def _images(first, last, base, wide, moves, noise, growths, floor, out, close):  # type: ignore[no-untyped-def]
    """Fill in the curves of those always present, where q is an affine image that is near p.

    Arguments are those of `_draws`. q has variance taken away, see `divergence.near_pair.affine`.
    """
    rho, a, b, tau2 = moves
    levels = growths.shape[1]
    work, nodes, total = image_workspace(levels), np.empty((2, MOST_NODES)), np.empty((2, levels))
    for s in range(first, last):
        growth = growths[s]
        low = -growth / (1.0 + growth)  # q / p - 1 at p = exp(eps) q
        count = place_nodes(wide[s], nodes)
        if count == 0:
            continue
        narrowest = _narrowest(base[s])
        tabulated = False
        for i in range(rho.shape[1]):
            if close[s, i] or rho[s, i].min() < 1.0 or tau2[s, i] > LARGEST_SHARE * narrowest:
                continue
            if not tabulated:
                tabulate(wide[s], nodes, count, work, floor)
                tabulated = True
            # The noise is not part of the response that the individual leaves: with v_k
            # of wide, (v_k - noise^2 - tau2) / (1 + b)^2 + noise^2 = (v_k - lost) / (1 + b)^2.
            lost = tau2[s, i] - noise * noise * b[s, i] * (2.0 + b[s, i])
            if is_negligible(nodes, count, a[s, i], b[s, i], lost, low[0], growth[0], work):
                close[s, i] = True
            elif growth[-1] <= MOST_GROWTH and image_integrals(
                nodes, count, a[s, i], b[s, i], lost, low, growth, work, total
            ):
                close[s, i] = True
                for e in range(levels):
                    out[s, i, e] = max(total[0, e], total[1, e], 0.0)


@compiled
def _draws(first, last, base, wide, moves, noise, growths, floor, out, close):  # type: ignore[no-untyped-def]
    """Fill in the curves of the draws from first to last, by the cheapest way that will do.

    base is (draw, 3, K), wide the same with known noise of standard deviation `noise`. Of moves rho
    is (draw, individual, K), a, b, tau2 (draw, individual): contribution a + b rest + tau e.
    growths, (draw, epsilon), is exp(eps) - 1; out (draw, individual, epsilon). Indices s, i, e in
    this order.
    """
    rho, a, b, tau2 = moves
    size, levels = base.shape[2], growths.shape[1]
    alone = np.empty(size)
    nodes, total = np.empty((2, MOST_NODES)), np.empty((2, levels))
    safety = safety_tables(size)
    given, without = np.empty((2, size)), np.empty((2, size))
    share, scale = np.empty(size), np.empty((2, levels))
    tail, grid = tail_work(size, levels), new_levels(levels)
    negligible = max(floor * NEGLIGIBLE, SMALLEST)
    reach = math.sqrt(-2.0 * math.log(negligible))
    for s in range(first, last):
        growth = growths[s]
        accurate = growth[-1] <= MOST_GROWTH
        placed, count = False, ZERO
        for i in range(rho.shape[1]):
            if close[s, i]:
                continue
            given_and_without(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], 1.0, noise * noise, given, without
            )
            # curves do not rise with epsilon (fact 4 of docs/mathematics/hockey_stick.md), so a
            # bound at the first holds for all
            bound = convexity_bound(wide[s], given, without, rho[s, i], growth[0], floor)
            if bound > floor:
                bound = covered_bound(wide[s], given, without, rho[s, i], growth[0], floor, alone)
            if bound <= floor:
                close[s, i] = True
                continue
            # In logarithms, elsewhere.
            if not accurate or _is_uneven(wide[s], given, without):
                continue
            if not placed:
                placed, count = True, place_nodes(wide[s], nodes)
                if count > 0:
                    tabulate_shares(wide[s], nodes, count, safety)
            present = relative_presence(rho[s, i], share)
            # the risk is zero where this holds; it is for components that are near their own
            if count > 0 and are_close(wide[s], given, without):
                low, high = _thresholds(present, growth[0])
                if is_safe(wide[s], given, without, share, low, high, safety):
                    close[s, i] = True
                    continue
            filled = _fill_columns(wide[s], given, without, share, reach, tail.columns)
            _fill_levels(present, growth, grid)
            if not integrate(tail, filled, grid, negligible, CUT * reach, total, scale):
                continue
            exact = True
            for e in range(levels):
                # H(p || q) = rho H_alpha(g || q), H(q || p) = kappa H_beta(q || g)
                kept = max(present - growth[e] * (1.0 - present), 0.0)
                value, error = present * total[0, e], present * scale[0, e]
                if kept > 0.0:
                    value, error = max(value, kept * total[1, e]), max(error, kept * scale[1, e])
                exact = exact and ROUNDING * error <= max(RELATIVE * value, ABSOLUTE)
                out[s, i, e] = value
            close[s, i] = exact


@borrowing
def _is_uneven(base: Array, given: Array, without: Array) -> bool:
    """Return whether locations lie too far apart for the narrowest component."""
    low, high, smallest = np.inf, -np.inf, np.inf
    for k in range(base.shape[1]):
        if base[0, k] > 0.0:
            for part in (given, without):
                low, high = min(low, part[0, k]), max(high, part[0, k])
                smallest = min(smallest, part[1, k])
    return high - low > UNEVEN * smallest


@borrowing
def _fill_columns(
    base: Array, given: Array, without: Array, share: Array, reach: float, columns: Array
) -> int:
    """Enter g, a mixture of q_k by 1 - share_k and g_k by share_k, beside q; return how many."""
    size = ZERO
    for k in range(base.shape[1]):
        w = base[0, k] * share[k]
        if base[0, k] > 0.0:
            size = add_column(
                columns, size, reach, w, base[0, k] - w, w, given[0, k], given[1, k],
                without[0, k], without[1, k],
            )  # fmt: skip
    return size


@borrowing
def _fill_levels(rho: float, growth: Array, levels: Levels) -> None:
    """Fill in log g / q above which p > exp(eps) q, and below which q > exp(eps) p."""
    for e in range(growth.size):
        kept = rho - growth[e] * (1.0 - rho)
        levels.up_growth[e] = growth[e] / rho
        levels.down_growth[e] = growth[e] / kept if kept > 0.0 else np.inf
        levels.up[e] = math.log1p(levels.up_growth[e])
        levels.down[e] = math.log1p(levels.down_growth[e])
