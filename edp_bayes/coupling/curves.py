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

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions import ContributionDraws
from edp_bayes.divergence.any_pair.curves import by_draw
from edp_bayes.divergence.near_pair.affine import (
    image_integrals,
    image_workspace,
    is_negligible,
    tabulate,
)
from edp_bayes.divergence.near_pair.close import (
    are_close,
    both_integrals,
    convexity_bound,
    covered_bound,
    densities,
    inner_epsilons,
    is_close,
    pair_risk,
    workspace,
)
from edp_bayes.divergence.near_pair.nodes import MOST_NODES, place_nodes
from edp_bayes.divergence.near_pair.safety import is_safe, safety_tables, tabulate_shares
from edp_bayes.utils.compiled import borrowing, compiled, in_threads

__all__ = [
    "coupled_curves",
    "given_and_without",
    "moments_without",
    "movement_lengths",
    "own_variance",
    "pair_components",
    "relative_presence",
]

Array = NDArray[np.float64]

# The share of a component's variance that one individual may explain.
LARGEST_SHARE = 0.9
# Beyond, differences of tails divided by so little are no longer exact.
MOST_GROWTH = 1e5
# Pairs whose component distributions take about as long as a thread takes to start.
CHEAP_PAIRS = 2000
# Of a curve of at most MINOR, components that move by more than their own width are bounded by
# joint convexity instead of integrated if they weigh at most NARROW: the curve is too high by that
# at most, never too low.
NARROW, MINOR = 1e-9, 1e-3


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
    in_threads(
        _draws, len(base), base, wide, contributions.moves, float(noise_scale),
        np.expm1(by_draw(epsilon, len(base))), float(floor), out, close,
    )  # fmt: skip


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


@compiled
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


@borrowing
def moments_without(mu, variance, here, a, b, tau2):  # type: ignore[no-untyped-def]
    """Return mean and variance of a component without an individual present there by `here`.

    They are those which, with their contribution added back, give the mean and variance of the
    component of p, unless that would take more than LARGEST_SHARE of its variance: m_k and s_k^2 of
    docs/models/contributions.md, with mu, variance = mu_k, v_k and here = rho_k.
    """
    m = (mu - here * a) / (1.0 + here * b)
    jump = a + b * m
    explained = min(here * tau2 + here * (1.0 - here) * jump * jump, LARGEST_SHARE * variance)
    return m, (variance - explained) / (1.0 - here + here * (1.0 + b) ** 2)


@borrowing
def own_variance(tau2, variance, here):  # type: ignore[no-untyped-def]
    """Return the variance that their presence, by `here`, adds to a component.

    tau^2, but at most LARGEST_SHARE v_k / rho_k (docs/models/contributions.md).
    """
    return min(tau2, LARGEST_SHARE * variance / here)


@compiled
def _narrowest(base):  # type: ignore[no-untyped-def]
    """Return the smallest variance of a component that weighs anything."""
    least = np.inf
    for k in range(base.shape[1]):
        if base[0, k] > 0.0:
            least = min(least, base[2, k] ** 2)
    return least


@compiled
def relative_presence(rho, share):  # type: ignore[no-untyped-def]
    """Fill in presence relative to the largest, and return that."""
    largest = rho.max()
    for k in range(rho.size):
        share[k] = rho[k] / largest if largest > 0.0 else 0.0
    return largest


@compiled
def _thresholds(rho, growth):  # type: ignore[no-untyped-def]
    """Return q / g - 1 below which p > exp(eps) q, and above which q > exp(eps) p.

    With growth = exp(eps) - 1 they are exp(-alpha) - 1 and exp(beta) - 1, alpha and beta those of
    "An individual who is sometimes absent" (docs/mathematics/individuals.md); kept is its kappa.
    """
    kept = rho - growth * (1.0 - rho)
    return -growth / (rho + growth), growth / kept if kept > 0.0 else np.inf


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
    work, image_work = workspace(size, levels), image_workspace(levels)
    nodes, total = np.empty((2, MOST_NODES)), np.empty((2, levels))
    safety = safety_tables(size)
    given, without = np.empty((2, size)), np.empty((2, size))
    low, high, share = np.empty(levels), np.empty(levels), np.empty(size)
    reduced, narrow = np.empty((3, size)), np.empty(levels)
    for s in range(first, last):
        growth = growths[s]
        # q / p - 1 at p = exp(eps) q, of those always present
        always_low = -growth / (1.0 + growth)
        accurate = growth[-1] <= MOST_GROWTH
        count = place_nodes(wide[s], nodes)
        narrowest = _narrowest(base[s])
        tabulated = known = False
        for i in range(rho.shape[1]):
            if close[s, i]:
                continue
            always = rho[s, i].min() == 1.0
            # q is an affine image of p with variance taken away: see `divergence.near_pair.affine`
            if always and count > 0 and tau2[s, i] <= LARGEST_SHARE * narrowest:
                if not tabulated:
                    tabulate(wide[s], nodes, count, image_work, floor)
                    tabulated = True
                # The noise is not part of the response that the individual leaves: with v_k
                # of wide, (v_k - noise^2 - tau2) / (1 + b)^2 + noise^2 = (v_k - lost) / (1 + b)^2.
                lost = tau2[s, i] - noise * noise * b[s, i] * (2.0 + b[s, i])
                if is_negligible(
                    nodes, count, a[s, i], b[s, i], lost, always_low[0], growth[0], image_work
                ):
                    close[s, i] = True
                    continue
                if accurate and image_integrals(
                    nodes, count, a[s, i], b[s, i], lost, always_low, growth, image_work, total
                ):
                    close[s, i] = True
                    for e in range(levels):
                        out[s, i, e] = max(total[0, e], total[1, e], 0.0)
                    continue
            given_and_without(
                base[s], rho[s, i], a[s, i], b[s, i], tau2[s, i], 1.0, noise * noise, given, without
            )
            # curves do not rise with epsilon (fact 4 of docs/mathematics/hockey_stick.md), so a
            # bound at the first holds for all
            bound = convexity_bound(wide[s], given, without, rho[s, i], growth[0], floor)
            if bound > floor:
                bound = covered_bound(wide[s], given, without, rho[s, i], growth[0], floor, share)
            if bound <= floor:
                close[s, i] = True
                continue
            if count == 0 or not accurate:
                continue
            if not known:
                densities(wide[s], nodes, count, work)
                tabulate_shares(wide[s], nodes, count, safety)
                known = True
            present = relative_presence(rho[s, i], share)
            for e in range(levels):
                low[e], high[e] = _thresholds(present, growth[e])
            narrow[:] = 0.0
            part = wide[s]
            # far components would need nodes of their own: where they weigh next to nothing their
            # risks are added as bounds, otherwise the pair is left to the general integrals
            if are_close(wide[s], given, without):
                if is_safe(wide[s], given, without, share, low[0], high[0], safety):
                    close[s, i] = True
                    continue
            else:
                bound = convexity_bound(wide[s], given, without, rho[s, i], growth[0], MINOR)
                if bound > MINOR:
                    continue
                if not _leave_narrow(wide[s], given, without, rho[s, i], growth, reduced, narrow):
                    continue
                part = reduced
            close[s, i] = True
            both_integrals(part, given, without, share, nodes, count, low, high, work, total)
            for e in range(levels):
                # H(p || q) = rho H_alpha(g || q), H(q || p) = kappa H_beta(q || g)
                value = present * total[0, e]
                kept = present - growth[e] * (1.0 - present)
                if kept > 0.0:
                    value = max(value, kept * total[1, e])
                out[s, i, e] = max(value, 0.0) + narrow[e]


@compiled
def _leave_narrow(base, given, without, rho, growth, reduced, narrow):  # type: ignore[no-untyped-def]
    """Give no weight to the components that are not near their own, and bound what they add.

    Return whether that is little enough. By joint convexity (fact 3 of
    docs/mathematics/hockey_stick.md) the risk is at most that of the other components and, of those
    left out, the sum of the risks of each. reduced is (3, K), narrow (epsilon,).
    """
    most = 0.0
    for k in range(base.shape[1]):
        for row in range(3):
            reduced[row, k] = base[row, k]
        if not is_close(base, given, without, k):
            reduced[0, k] = 0.0
            most += base[0, k] * rho[k]
    if most > NARROW:
        return False
    for k in range(base.shape[1]):
        if reduced[0, k] == 0.0 and base[0, k] > 0.0 and rho[k] > 0.0:
            m, s, n, t = given[0, k], given[1, k], without[0, k], without[1, k]
            for e in range(growth.size):
                backward, down, up = inner_epsilons(rho[k], growth[e])
                narrow[e] += base[0, k] * pair_risk(m, s, n, t, rho[k], backward, down, up)
    return True
