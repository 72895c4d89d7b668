"""Curves of delta_i for several queries, draw by draw: bounds, and integrals where they matter.

Component k of p is (1 - rho_k) q_k + rho_k g_k, as in `edp_bayes.coupling.curves.one_answer`, with
q_k normal without the individual and g_k normal given their presence. Means and covariances without
them are such that adding the contribution back gives those of component k: with G = I + rho_k B,

    m_k = G^-1 (mu_k - rho_k a),
    R_k = G^-1 (S_k - rho_k T - rho_k (1 - rho_k) j j') G'^-1,    j = a + B m_k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.joint.estimates import (
    PARTS,
    add_density,
    add_mixture,
    covered,
    estimate,
    raise_where_few,
)
from edp_bayes.divergence.joint.points import FAR_POINTS, POINTS
from edp_bayes.divergence.joint.screening import log_moment, pair_bound
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import borrowing, compiled, in_threads
from edp_bayes.utils.small_matrices import cholesky, congruence, eigen, inverse_factor

__all__ = [
    "Base",
    "joint_bounds",
    "joint_integrals",
    "joint_moments",
    "known_curves",
    "pair_components",
    "without_component",
]

LARGEST_SHARE = 0.9  # of a component's variance in any direction that one individual may explain
LEAST = 1e-300
LARGEST_EXPONENT = 600.0  # of a moment that is finite
NOTHING = 1e-10  # components of less weight are left out
# Standard deviations of a shift beyond which there are more points, if it has this probability.
FAR, VISIBLE = 1.5, 0.01


class Base(NamedTuple):
    """Draws of p in whitened units.

    Attributes
    ----------
    weights : ndarray
        Shape (draw, component).
    locations : ndarray
        Shape (draw, component, d).
    covariances : ndarray
        Shape (draw, component, d, d), without known noise.
    noise : ndarray
        Shape (d, d): covariance of known noise.
    """

    weights: Array
    locations: Array
    covariances: Array
    noise: Array


@borrowing
def _solve(matrix, vector, out, work, d):  # type: ignore[no-untyped-def]
    """Fill in matrix^-1 vector, and the inverse of the matrix in work, by elimination."""
    for a in range(d):
        for b in range(d):
            work[a, b] = 1.0 if a == b else 0.0
    for a in range(d):
        pivot = a
        for b in range(a + 1, d):
            if abs(matrix[b, a]) > abs(matrix[pivot, a]):
                pivot = b
        if pivot != a:
            for c in range(d):
                matrix[a, c], matrix[pivot, c] = matrix[pivot, c], matrix[a, c]
                work[a, c], work[pivot, c] = work[pivot, c], work[a, c]
        scale = 1.0 / matrix[a, a]
        for c in range(d):
            matrix[a, c] *= scale
            work[a, c] *= scale
        for b in range(d):
            if b != a:
                ratio = matrix[b, a]
                for c in range(d):
                    matrix[b, c] -= ratio * matrix[a, c]
                    work[b, c] -= ratio * work[a, c]
    for a in range(d):
        out[a] = 0.0
        for b in range(d):
            out[a] += work[a, b] * vector[b]


@borrowing
def _cap(explained, lower, inverse, work, d):  # type: ignore[no-untyped-def]
    """Keep what is explained within a share of the covariance lower lower' in every direction.

    Eigenvalues in units of that covariance are cut off; the sum of them, a trace, bounds the
    largest, so that most need no eigenvectors. All matrices are (d, d), inverse is lower^-1.
    """
    relative, vectors, other = work[0], work[1], work[2]
    congruence(inverse, explained, relative, d)
    total = 0.0
    for a in range(d):
        total += relative[a, a]
    if total <= LARGEST_SHARE:
        return
    eigen(relative, vectors, d)
    for a in range(d):
        for b in range(d):
            part = 0.0
            for c in range(d):
                part += vectors[a, c] * min(relative[c, c], LARGEST_SHARE) * vectors[b, c]
            other[a, b] = part
    congruence(lower, other, explained, d)


@borrowing
def without_component(  # type: ignore[no-untyped-def]
    mu, covariance, lower, inverse, here, a, slope, spread, mean, jump, rest, work, d
):
    """Fill in the mean without an individual, their jump there, and the covariance without them.

    m_k, j_k and R_k of docs/mathematics/several_queries.md: mu, covariance = mu_k, S_k, here =
    rho_k, a, slope, spread = a, B, T. lower is the lower factor of S_k, inverse that factor's; work
    (6, d, d) at least, `turned` gets (I + rho_k B)^-1.
    """
    matrix, turned, explained = work[3], work[4], work[5]
    for b in range(d):
        jump[b] = mu[b] - here * a[b]
        for c in range(d):
            matrix[b, c] = here * slope[b, c] + (1.0 if b == c else 0.0)
    _solve(matrix, jump, mean, turned, d)
    for b in range(d):
        jump[b] = a[b]
        for c in range(d):
            jump[b] += slope[b, c] * mean[c]
    for b in range(d):
        for c in range(d):
            explained[b, c] = here * (spread[b, c] + (1.0 - here) * jump[b] * jump[c])
    _cap(explained, lower, inverse, work, d)
    for b in range(d):
        for c in range(d):
            explained[b, c] = covariance[b, c] - explained[b, c]
    congruence(turned, explained, rest, d)


@borrowing
def _present(rest, slope, spread, out, work, d):  # type: ignore[no-untyped-def]
    """Fill in the covariance given presence, (I + B) R (I + B)' + T."""
    matrix = work[3]
    for b in range(d):
        for c in range(d):
            matrix[b, c] = slope[b, c] + (1.0 if b == c else 0.0)
    congruence(matrix, rest, out, d)
    for b in range(d):
        for c in range(d):
            out[b, c] += spread[b, c]


@borrowing
def _diagonalise(given, jump, rest, spectrum, work, d):  # type: ignore[no-untyped-def]
    """Fill in variances and shifts of g in units of q, then of q in units of g: (4, d).

    Return the square of the shift in standard deviations without the individual. q becomes N(0, I)
    and g N(shift, diag(variance)) by R^-1/2 and a rotation, which leaves divergences as they are.
    """
    lower, inverse, relative, vectors, turned = work[0], work[1], work[2], work[3], work[4]
    cholesky(rest, lower, d)
    inverse_factor(lower, inverse, d)
    congruence(inverse, given, relative, d)
    for a in range(d):
        turned[0, a] = 0.0
        for b in range(a + 1):
            turned[0, a] += inverse[a, b] * jump[b]
    eigen(relative, vectors, d)
    far = 0.0
    for a in range(d):
        shift = 0.0
        for b in range(d):
            shift += vectors[b, a] * turned[0, b]
        far += shift * shift
        variance = max(relative[a, a], LEAST)
        spectrum[0, a], spectrum[1, a] = variance, shift
        spectrum[2, a], spectrum[3, a] = 1.0 / variance, shift / math.sqrt(variance)
    return far


@borrowing
def _bound(spectrum, rho, weight, growth, levels, orders, out, work, d):  # type: ignore[no-untyped-def]
    """Add to (side, epsilon) what one component adds at most, by joint convexity.

    w_k rho_k H_alpha(g_k || q_k) on side 0 and w_k kappa_k H_beta(q_k || g_k) on side 1, each
    bounded by Renyi divergences: "Screening" in docs/mathematics/several_queries.md. growth is
    exp(eps) - 1.
    """
    for side in range(2):
        for e in range(levels):
            kept = rho if side == 0 else rho - growth[e] * (1.0 - rho)
            work[0, e] = math.log1p(growth[e] / kept) if kept > 0.0 else np.inf
        variances, shifts = spectrum[2 * side], spectrum[2 * side + 1]
        pair_bound(variances, shifts, d, work[0], levels, orders, work[1])
        for e in range(levels):
            kept = rho if side == 0 else rho - growth[e] * (1.0 - rho)
            if kept > 0.0:
                out[side, e] += weight * kept * work[1, e]


@compiled
def joint_bounds(first, last, base, moves, growth, orders, floor, bound, far):  # type: ignore[no-untyped-def]
    """Fill in what joint convexity bounds delta_i by: (draw, individual, epsilon).

    Moves are presence (draw, individual, component), intercept, slope and spread. Where the bound
    at the first epsilon is not above the floor it stands for all. Far, shape (draw, individual),
    says where shifts are such that more points are needed.
    """
    rho, intercept, slope, spread = moves
    weights, locations, covariances, noise = base
    components, d = locations.shape[1:]
    levels = growth.size
    lower, inverse = np.empty((components, d, d)), np.empty((components, d, d))
    mean, jump = np.empty(d), np.empty(d)
    rest, given = np.empty((d, d)), np.empty((d, d))
    work = np.empty((6, max(d, 2), max(d, 2)))
    found = np.empty((2, levels))
    spectra, rows = np.empty((components, 4, d)), np.empty((2, levels))
    for s in range(first, last):
        for k in range(components):
            cholesky(covariances[s, k], lower[k], d)
            inverse_factor(lower[k], inverse[k], d)
        for i in range(rho.shape[1]):
            found[0, 0], found[1, 0] = 0.0, 0.0
            farthest = 0.0
            for k in range(components):
                weight, here = weights[s, k], rho[s, i, k]
                if weight <= NOTHING or here == 0.0:
                    continue
                without_component(
                    locations[s, k], covariances[s, k], lower[k], inverse[k], here,
                    intercept[s, i], slope[s, i], spread[s, i], mean, jump, rest, work, d,
                )  # fmt: skip
                _present(rest, slope[s, i], spread[s, i], given, work, d)
                for a in range(d):
                    for b in range(d):
                        rest[a, b] += noise[a, b]
                        given[a, b] += noise[a, b]
                moved = _diagonalise(given, jump, rest, spectra[k], work, d)
                if weight * here >= VISIBLE:
                    farthest = max(farthest, moved)
                _bound(spectra[k], here, weight, growth, 1, orders, found, rows, d)
            far[s, i] = farthest > FAR * FAR
            most = max(found[0, 0], found[1, 0])
            if most <= floor:
                # curves do not rise with epsilon, so the bound at the first holds for all
                for e in range(levels):
                    bound[s, i, e] = most
                continue
            for side in range(2):
                for e in range(levels):
                    found[side, e] = 0.0
            for k in range(components):
                here = rho[s, i, k]
                if weights[s, k] > NOTHING and here > 0.0:
                    _bound(spectra[k], here, weights[s, k], growth, levels, orders, found, rows, d)
            for e in range(levels):
                bound[s, i, e] = max(found[0, e], found[1, e])


@compiled
def joint_moments(first, last, base, moves, orders, out):  # type: ignore[no-untyped-def]
    """Fill in bounds on log E exp(order L) of the privacy loss, (draw, individual, order).

    Of p against q under p and of q against p under q, the larger. By joint convexity, component by
    component, and by convexity in presence, E is at most the weighted sum of
    (1 - rho_k) + rho_k exp(order D), with D the Renyi divergence of order 1 + order of g_k and q_k.
    """
    rho, intercept, slope, spread = moves
    weights, locations, covariances, noise = base
    components, d = locations.shape[1:]
    lower, inverse = np.empty((components, d, d)), np.empty((components, d, d))
    mean, jump = np.empty(d), np.empty(d)
    rest, given = np.empty((d, d)), np.empty((d, d))
    work = np.empty((6, max(d, 2), max(d, 2)))
    spectra = np.empty((components, 4, d))
    for s in range(first, last):
        for k in range(components):
            cholesky(covariances[s, k], lower[k], d)
            inverse_factor(lower[k], inverse[k], d)
        for i in range(rho.shape[1]):
            for k in range(components):
                if weights[s, k] <= NOTHING or rho[s, i, k] == 0.0:
                    continue
                without_component(
                    locations[s, k], covariances[s, k], lower[k], inverse[k], rho[s, i, k],
                    intercept[s, i], slope[s, i], spread[s, i], mean, jump, rest, work, d,
                )  # fmt: skip
                _present(rest, slope[s, i], spread[s, i], given, work, d)
                for a in range(d):
                    for b in range(d):
                        rest[a, b] += noise[a, b]
                        given[a, b] += noise[a, b]
                _diagonalise(given, jump, rest, spectra[k], work, d)
            for o in range(orders.size):
                most = -np.inf
                for side in range(2):
                    total = 0.0
                    for k in range(components):
                        here = rho[s, i, k]
                        gained = 0.0
                        if weights[s, k] > NOTHING and here > 0.0:
                            exponent = log_moment(
                                spectra[k, 2 * side], spectra[k, 2 * side + 1], d, orders[o]
                            )
                            gained = here * math.expm1(min(exponent, LARGEST_EXPONENT))
                            if exponent > LARGEST_EXPONENT:
                                gained = np.inf
                        total += weights[s, k] * gained
                    most = max(most, math.log1p(max(total, 0.0)))
                out[s, i, o] = most


@compiled
def joint_integrals(  # type: ignore[no-untyped-def]
    first, last, points, begin, base, presence, q, given, far, growth, value, error, split, missed
):
    """Fill in delta_i and its standard error, shape (pair, epsilon), for pairs sorted by draw.

    And, shape (pair,), whose distribution the points miss a part of, for whom nothing is filled in.

    Points are (draw, d, FAR_POINTS), of a base (weights, locations, covariances) with noise. The
    pairs of draw s are those from begin[s] to begin[s + 1], each with presence, means and
    covariances (with noise) without the individual and given their presence, by component.
    """
    weights, locations, covariances = base
    components, d = locations.shape[1:]
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    density, u, v = np.empty(FAR_POINTS), np.empty(FAR_POINTS), np.empty(FAR_POINTS)
    quadratic, parts = np.empty(FAR_POINTS), np.empty((3, PARTS))
    for s in range(first, last):
        # density is p at the points, known how many of them have it in this draw
        x, known = points[s], 0
        for pair in range(begin[s], begin[s + 1]):
            count = FAR_POINTS if far[pair] else POINTS
            if known < count:
                for n in range(FAR_POINTS):
                    density[n] = 0.0
                for k in range(components):
                    if weights[s, k] > NOTHING:
                        cholesky(covariances[s, k], factor, d)
                        inverse_factor(factor, inverse, d)
                        add_density(
                            density, quadratic, x, count, weights[s, k], locations[s, k], inverse, d
                        )
                known = count
            # u becomes q / p, v the mixture with the individual over p, 1 if they are always there
            always = True
            for k in range(components):
                always = always and presence[pair, k] == 1.0
            for n in range(count):
                u[n] = 0.0
                v[n] = 0.0
            for k in range(components):
                if weights[s, k] <= NOTHING:
                    continue
                cholesky(q[1][pair, k], factor, d)
                inverse_factor(factor, inverse, d)
                mean = q[0][pair, k]
                add_density(u, quadratic, x, count, weights[s, k], mean, inverse, d)
                if always:
                    continue
                here = presence[pair, k]
                if here < 1.0:
                    add_density(
                        v, quadratic, x, count, (1.0 - here) * weights[s, k], mean, inverse, d
                    )
                if here > 0.0:
                    cholesky(given[1][pair, k], factor, d)
                    inverse_factor(factor, inverse, d)
                    add_density(
                        v, quadratic, x, count, here * weights[s, k], given[0][pair, k], inverse, d
                    )
            for n in range(count):
                u[n] /= density[n]
                v[n] = 1.0 if always else v[n] / density[n]
            missed[pair] = not covered(v, count, parts)
            if missed[pair]:
                continue
            estimate(u, v, count, growth, parts, value[pair], error[pair], split[s])
            raise_where_few(value[pair], error[pair], count)


@compiled
def known_curves(first, last, p, q, points, growth, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in the curves of pairs of mixtures (weights, locations, covariances) at points of p.

    p and q start with (draw, component), points is (draw, d, point), value and error are
    (draw, epsilon); u = q / p, v = 1.
    """
    d, count = points.shape[1:]
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    u, v = np.empty(count), np.empty(count)
    quadratic, parts = np.empty(count), np.empty((3, PARTS))
    for s in range(first, last):
        for n in range(count):
            u[n] = 0.0
            v[n] = 0.0
        x = points[s]
        add_mixture(v, quadratic, x, count, p[0][s], p[1][s], p[2][s], factor, inverse, d)
        add_mixture(u, quadratic, x, count, q[0][s], q[1][s], q[2][s], factor, inverse, d)
        for n in range(count):
            u[n] /= v[n]
            v[n] = 1.0
        estimate(u, v, count, growth, parts, value[s], error[s], split[s])


def pair_components(
    mixture: NormalMixture, rho: Array, a: Array, slope: Array, spread: Array
) -> tuple[NormalMixture, NormalMixture]:
    """Return q and g of one individual in every draw, component by component, without noise."""
    w, mu, covariances = mixture
    q = NormalMixture(w, np.empty_like(mu), np.empty_like(covariances))
    given = NormalMixture(w, np.empty_like(mu), np.empty_like(covariances))
    in_threads(_all_pairs, len(w), mu, covariances, (rho, a, slope, spread), tuple(q), tuple(given))
    return q, given


@compiled
def _all_pairs(first, last, mu, covariances, moves, q, given):  # type: ignore[no-untyped-def]
    """Fill in means and covariances of q and g, (draw, component, ...), of one individual."""
    rho, intercept, slope, spread = moves
    components, d = mu.shape[1:]
    lower, inverse = np.empty((d, d)), np.empty((d, d))
    work, jump = np.empty((6, max(d, 2), max(d, 2))), np.empty(d)
    for s in range(first, last):
        for k in range(components):
            cholesky(covariances[s, k], lower, d)
            inverse_factor(lower, inverse, d)
            without_component(
                mu[s, k], covariances[s, k], lower, inverse, rho[s, k], intercept[s], slope[s],
                spread[s], q[1][s, k], jump, q[2][s, k], work, d,
            )  # fmt: skip
            _present(q[2][s, k], slope[s], spread[s], given[2][s, k], work, d)
            for b in range(d):
                given[1][s, k, b] = q[1][s, k, b] + jump[b]
