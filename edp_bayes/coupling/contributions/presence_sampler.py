"""Gibbs sampling of presence by component, compiled.

In each draw an individual's presence rho is either the same whatever the rest, with prior
probability one half, or component k has a share of its own, rho_k ~ Beta(C, C (1 - rho) / rho), of
mean rho. Gibbs sampling takes turns between the shares, given the components of the databases, and
the components, given the responses without them, whether they were present and the distributions
without them that go with the shares; a Metropolis step corrects the conjugate draw of the shares
for these distributions. A contribution of several standard deviations makes a component of its own,
in all of whose databases they are. There shares and components hold each other fast, and from one
presence everywhere they are not found: sweeps begin with the components of the responses, and each
ends with random walks of the shares for which the components are summed out. At the end the shares
are scaled so that presence on the whole is still rho. Where a contribution is small beside every
component the distributions without them are taken to be those of the response, and shares and
components do not hold each other fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.curves.one_answer import moments_without
from edp_bayes.utils.compiled import borrowing, compiled, decay, linked

__all__ = [
    "PRESENCES",
    "Seen",
    "draw_beta",
    "draw_labels",
    "draw_shares",
    "keep_mean",
    "log_bayes_factor",
]

PRESENCES = 2.0  # prior weight of rho, in presences, for the share of a component
FEW_SWEEPS = 2  # for small contributions
WALK = (2.0, 0.5)  # steps of the logit of a share
MOST = 1.0 - 1e-9  # no share is larger while they are sometimes absent
SMALL = 0.2  # contribution over a component's standard deviation
FARTHEST = 600.0  # a density falls no farther than exp of minus this
FEW_PRESENCES = 8.0  # of which a product takes less time than logarithms of gamma functions


class Seen(NamedTuple):
    """What the databases say of one individual's presence.

    Attributes
    ----------
    gaussian : bool
        Whether the kernel is normal, or else Laplace.
    noise : float
        Square of the scale of a kernel with the variance of known noise.
    samples : int
        Responses of a database: each weighs one part in so many.
    rest : ndarray
        Shape (response,): the responses without the individual, of all databases or of those listed
        because the individual is present there.
    present : ndarray of bool
        Shape (response,).
    rows : ndarray of int
        Shape (response,): which responses these are.
    counts : ndarray of int
        Shape (draw, component): how many of all responses each component labels.
    """

    gaussian: bool
    noise: float
    samples: int
    rest: NDArray[np.float64]
    present: NDArray[np.bool_]
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]


@compiled
def draw_shares(rng, sweeps, base, active, labels, seen, moves, column, out):  # type: ignore[no-untyped-def]
    """Draw the shares of one individual, in whose column of `out` presence on the whole stands.

    moves are intercept, slope and spread of the contribution, (draw, individual) each; base is
    (draw, 3, component), weights, locations and scales of p; active is (draw, component), out
    (draw, individual, component), labels (draw, response). Indices: s draw, k place in the list of
    components with a share of their own, j response. Priors as in docs/models/contributions.md: one
    rho for all components, or rho_k ~ Beta(2, 2 (1 - rho) / rho), with probability one half each.
    """
    gaussian, noise, samples, rest, present, rows, counts = seen
    weight = 1.0 / samples
    size, n = base.shape[2], rest.size
    # locations and scales of q_k and their logarithms, (3, component); the component of each
    # response and its likelihood in all; the shares proposed and held; absences that are not listed
    without, proposed = np.empty((3, size)), np.empty((3, size))
    component, mass = np.empty(n, dtype=np.int64), np.empty((size, n))
    share, probability, known = np.empty(size), np.empty(size), np.empty(size)
    left = np.empty(n)
    # how often they were absent and present in each component, by that flag: without a branch
    counted, terms = np.empty((2, size)), np.empty((3, size))
    n_absent, n_present = counted[0], counted[1]
    places, order = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    unit = 1.0 if gaussian else 2.0
    for s in range(len(base)):
        rho, a, b = out[s, column, 0], moves[0][s, column], moves[1][s, column]
        tau2 = moves[2][s, column] ** 2
        count = _list_places(active, s, places)
        if not 0.0 < rho < 1.0 or count < 2:
            continue
        for k in range(count):
            order[places[k]] = k
            known[k] = counts[s, places[k]]
        # known keeps those labelled k and not listed in rows: absent there, their labels are fixed
        for j in range(n):
            component[j] = order[labels[s, rows[j]]]
            known[component[j]] -= 1.0
        for k in range(count):
            known[k] /= samples
        # Beta prior of a share, of mean rho; terms of -1 are not yet filled in
        first, second = PRESENCES, PRESENCES * (1.0 - rho) / rho
        contribution = (a, b, tau2, unit, noise)
        terms[:] = -1.0
        small = _is_small(base[s], places, count, a, b, tau2, unit)
        if small:
            for k in range(count):
                without[0, places[k]] = base[s, 1, places[k]]
                without[1, places[k]] = math.sqrt(base[s, 2, places[k]] ** 2 + noise)
        own, last = False, (FEW_SWEEPS if small else sweeps) - 1
        for sweep in range(last + 1):
            if sweep > 0:
                _draw_components(rng, mass, count, left, component)
            for k in range(count):
                n_present[k], n_absent[k] = 0.0, known[k]
            for j in range(n):
                counted[np.int64(present[j]), component[j]] += weight
            # P(shares of their own | labels, presence) = 1 / (1 + exp(-evidence)), shares
            # integrated out; then share_k | . ~ Beta(first + n_present_k, second + n_absent_k), or
            # all are rho
            evidence = log_bayes_factor(n_present, n_absent, count, second, rho, weight, terms)
            its_own = rng.random() * (1.0 + math.exp(-evidence)) < 1.0
            if sweep == 0 or own or its_own:
                for k in range(count):
                    share[k] = rho
                    if its_own:
                        share[k] = draw_beta(rng, first + n_present[k], second + n_absent[k])
                taken = sweep == 0 or small
                if not small:
                    for k in range(count):
                        place = places[k]
                        proposed[0, place], proposed[1, place] = _without(
                            base[s], place, share[k], contribution
                        )
                if not taken:
                    # The proposal knows nothing of what the shares make of the distribution without
                    # them: Metropolis and Hastings by the ratio of the densities of the rest given
                    # the components. A sample of a database counts by its weight.
                    listed = places[:count]
                    gain = _log_density(rest, component, listed, proposed, gaussian)
                    gain -= _log_density(rest, component, listed, without, gaussian)
                    taken = math.log(rng.random()) < weight * gain
                if taken:
                    own = its_own
                    if not small:
                        without, proposed = proposed, without
                    for k in range(count):
                        probability[k] = share[k]
                        # nothing is drawn by them after the last sweep but by random walks
                        if sweep < last or (own and not small):
                            _fill_masses(
                                rest, present, probability[k], base[s, 0, places[k]],
                                without[0, places[k]], without[1, places[k]], gaussian, mass[k],
                            )  # fmt: skip
            if own and not small:
                _walk(
                    rng, base[s], places[:count], seen, known, second, contribution, probability,
                    without, mass,
                )  # fmt: skip
        if own:
            for k in range(count):
                # no database tells of this component
                if n_present[k] + n_absent[k] == 0.0:
                    probability[k] = rho
            keep_mean(base[s, 0], places, count, rho, probability)
            for k in range(count):
                out[s, column, places[k]] = probability[k]


@borrowing
def _without(base, k, share, contribution):  # type: ignore[no-untyped-def]
    """Return location and scale of a component without them, with the known noise.

    base is (3, component); the scale is a standard deviation over sqrt(unit), unit being the
    variance of a kernel of scale one: 1 for normal, 2 for Laplace kernels.
    """
    a, b, tau2, unit, noise = contribution
    m, variance = moments_without(base[1, k], unit * base[2, k] ** 2, share, a, b, tau2)
    return m, math.sqrt(variance / unit + noise)


@linked
def _walk(  # type: ignore[no-untyped-def]
    rng, base, places, seen, known, second, contribution, probability, without, mass
):
    """Move one share after the other by random steps of its logit, components summed out.

    Response j has the likelihood sum_k mass[k, j]; below and above are its sums over the components
    before and after i. With the Jacobian of the logit the prior of share r is r^2 (1 - r)^second,
    and each absence that is not listed is a factor of 1 - r.
    """
    gaussian, weight, rest, present = seen.gaussian, 1.0 / seen.samples, seen.rest, seen.present
    moved, below = np.empty(rest.size), np.empty(rest.size)
    above = np.empty((places.size, rest.size))
    for step in WALK:
        below[:], above[places.size - 1] = 0.0, 0.0
        for i in range(places.size - 1, 0, -1):
            for j in range(rest.size):
                above[i - 1, j] = above[i, j] + mass[i, j]
        for i in range(places.size):
            k, old = places[i], probability[i]
            odds = old / (1.0 - old) * math.exp(step * rng.standard_normal())
            new = min(odds / (1.0 + odds), MOST)
            m, scale = _without(base, k, new, contribution)
            _fill_masses(rest, present, new, base[0, k], m, scale, gaussian, moved)
            gain = weight * _log_ratio(below, above[i], mass[i], moved)
            gain += (second + known[i]) * math.log((1.0 - new) / (1.0 - old))
            # accept with probability (new / old)^2 exp(gain)
            taken = math.log(rng.random() * (old / new) ** PRESENCES) < gain
            if taken:
                probability[i], without[0, k], without[1, k] = new, m, scale
                # by a loop: rows assigned take 3 s to compile, for the text of an error
                for j in range(rest.size):
                    mass[i, j] = moved[j]
            for j in range(rest.size):
                below[j] += mass[i, j]


@compiled
def draw_labels(rng, base, gaussian, y, active, out):  # type: ignore[no-untyped-def]
    """Draw the component of every response, without regard to presence.

    base (draw, 3, component), y (response,), out (draw, response): component k with a probability
    in proportion to w_k times its density, among the active ones.
    """
    size = base.shape[2]
    mass, left = np.empty((size, y.size)), np.empty(y.size)
    component = np.empty(y.size, dtype=np.int64)
    places, present = np.empty(size, dtype=np.int64), np.ones(y.size, dtype=np.bool_)
    for s in range(len(base)):
        count = _list_places(active, s, places)
        for k in range(count):
            part = base[s, :, places[k]]
            _fill_masses(y, present, 1.0, part[0], part[1], part[2], gaussian, mass[k])
        _draw_components(rng, mass, count, left, component)
        for j in range(y.size):
            out[s, j] = places[component[j]]


@borrowing
def _list_places(active, s, places):  # type: ignore[no-untyped-def]
    """List which components get a share of their own."""
    count = 0
    for k in range(active.shape[1]):
        if active[s, k]:
            places[count] = k
            count += 1
    return count


@borrowing
def _fill_masses(rest, present, share, weight, location, scale, gaussian, out):  # type: ignore[no-untyped-def]
    """Fill in, up to a factor, how likely every database is to be of component k.

    That is its density there, times the weight and the chance of their presence or absence:
    w_k q_k(rest_j) share_k, or 1 - share_k. out is (response,). Each loop asks one question, or
    none, so that all become vector instructions.
    """
    inverse = 1.0 / scale
    height = weight * inverse
    there, away = height * share, height * (1.0 - share)
    # exponents are never too large, so that every database is of some component
    if gaussian:
        for j in range(rest.size):
            u = abs(rest[j] - location) * inverse
            out[j] = decay(min(0.5 * u * u, FARTHEST))[0]
    else:
        for j in range(rest.size):
            u = abs(rest[j] - location) * inverse
            out[j] = decay(min(u, FARTHEST))[0]
    for j in range(rest.size):
        out[j] *= there if present[j] else away


@borrowing
def _is_small(base, places, count, a, b, tau2, unit):  # type: ignore[no-untyped-def]
    """Return whether the contribution is small beside every component that has a share."""
    for i in range(count):
        k = places[i]
        jump = a + b * base[1, k]
        if jump * jump + tau2 > SMALL * SMALL * unit * base[2, k] ** 2 or abs(b) > SMALL:
            return False
    return True


@borrowing
def _log_ratio(below, above, old, new):  # type: ignore[no-untyped-def]
    """Return that of the likelihoods with new and with old masses of one component.

    A product of ratios, whose logarithm is taken only before it leaves the range of doubles.
    """
    ratio, logs = 1.0, 0.0
    for j in range(old.size):
        others = below[j] + above[j]
        ratio *= (others + new[j]) / (others + old[j])
        if not 1e-100 < ratio < 1e100:
            logs += math.log(ratio)
            ratio = 1.0
    return logs + math.log(ratio)


@borrowing
def draw_beta(rng, a, b):  # type: ignore[no-untyped-def]
    """Draw a share below one, of Beta(a, b), as a ratio of gamma variables."""
    part = rng.standard_gamma(a)
    return min(part / (part + rng.standard_gamma(b)), MOST)


@borrowing
def _log_density(rest, component, places, given, gaussian):  # type: ignore[no-untyped-def]
    """Return that of the rest given the components, up to a constant.

    given is (3, component): locations and scales of q_k, and a row for the logarithms of these;
    component (response,) numbers places.
    """
    for k in places:
        given[2, k] = math.log(given[1, k])
    total = 0.0
    for j in range(rest.size):
        k = places[component[j]]
        u = (rest[j] - given[0, k]) / given[1, k]
        total -= given[2, k] + (0.5 * u * u if gaussian else abs(u))
    return total


@borrowing
def _draw_components(rng, mass, count, left, component):  # type: ignore[no-untyped-def]
    """Draw the component of every response, P(component_j = k | .) proportional to mass[k, j].

    What a uniform share of all masses leaves of them falls from component to component, and is
    below zero from the one that is drawn on. left and component are (response,); loops over them
    are without branches, so that they become vector instructions.
    """
    for j in range(left.size):
        left[j] = mass[0, j]
    for k in range(1, count):
        row = mass[k]
        for j in range(left.size):
            left[j] += row[j]
    for j in range(left.size):
        left[j] *= rng.random()
        component[j] = 0
    for k in range(count - 1):
        row = mass[k]
        for j in range(left.size):
            left[j] -= row[j]
            component[j] += 1 if left[j] >= 0.0 else 0


@borrowing
def log_bayes_factor(n_present, n_absent, count, second, rho, weight, terms):  # type: ignore[no-untyped-def]
    """Return that of shares of their own, given how often they came and stayed away.

    Terms of components whose counts are those of the last time are taken from there: rows of terms
    are counts present, counts absent, and the term. With p_k and a_k these counts it is
    sum_k log B(2 + p_k, second + a_k) / B(2, second) - p_k log rho - a_k log(1 - rho), and
    B(2, second) = 1 / (second (second + 1)).
    """
    total, product, absent, common = 0.0, 1.0, 0.0, math.log1p(-rho)
    front, back = math.log(second * (second + 1.0)), math.log(rho)
    for k in range(count):
        if weight == 1.0 and n_present[k] <= FEW_PRESENCES:
            absent += n_absent[k]
            product *= _beta_ratio(n_present[k], n_absent[k], second, rho)
            continue
        if n_present[k] != terms[0, k] or n_absent[k] != terms[1, k]:
            terms[0, k], terms[1, k] = n_present[k], n_absent[k]
            terms[2, k] = (
                _log_beta(PRESENCES + n_present[k], second + n_absent[k])
                + front
                - n_present[k] * back
                - n_absent[k] * common
            )
        total += terms[2, k]
    return total + math.log(product) - absent * common


@borrowing
def _beta_ratio(present, absent, second, rho):  # type: ignore[no-untyped-def]
    """Return B(PRESENCES + present, second + absent) / B(PRESENCES, second) / rho^present.

    Of whole numbers, PRESENCES being two.
    """
    b = second + absent
    ratio, step = second * (second + 1.0) / (b * (b + 1.0)), PRESENCES
    while step < PRESENCES + present:
        ratio *= step / ((b + step) * rho)
        step += 1.0
    return ratio


@borrowing
def _log_beta(a, b):  # type: ignore[no-untyped-def]
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@borrowing
def keep_mean(weights, places, count, rho, share):  # type: ignore[no-untyped-def]
    """Scale the shares so that presence on the whole is still rho.

    sum_k w_k share_k = rho sum_k w_k over the listed components, but no share is above one.
    """
    mean, mass = 0.0, 0.0
    for k in range(count):
        mass += weights[places[k]]
        mean += weights[places[k]] * share[k]
    for k in range(count):
        share[k] = min(share[k] * rho * mass / mean, 1.0)
