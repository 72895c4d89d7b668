"""Pairs found safe without integrals: none has a risk, and most of those without one are found."""

import numpy as np

from edp_bayes.divergence import gaussian
from edp_bayes.divergence.near_pair.close import are_close, convexity_bound, covered_bound
from edp_bayes.divergence.near_pair.nodes import MOST_NODES, place_nodes
from edp_bayes.divergence.near_pair.safety import is_safe, safety_tables, tabulate_shares


def normal(x, weights, locations, scales):
    u = (x[:, None] - locations) / scales
    return weights / scales * np.exp(-0.5 * u * u)


def random_pair(rng):
    """Return the base, g given presence, q, share, and thresholds between mild and strict."""
    size = int(rng.integers(1, 12))
    base = np.stack(
        [
            rng.dirichlet(np.full(size, 0.5)),
            rng.normal(0.0, 2.0, size),
            np.exp(rng.normal(-1.0, 1.2, size)),
        ]
    )
    magnitude = 10.0 ** rng.uniform(-4.0, 0.0)
    given = base[1:] + magnitude * base[2].min() * rng.standard_normal((2, size))
    without = base[1:] + magnitude * base[2].min() * rng.standard_normal((2, size))
    given[1], without[1] = (np.clip(p[1], 0.5 * base[2], 2.0 * base[2]) for p in (given, without))
    low, high = (10.0 ** rng.uniform(-4.0, 0.0, 2)) * (-0.9, 1.0)
    return base, given, without, rng.random(size), low, high


def changes(base, given, without, share):
    """Return q / g - 1 on a grid much finer than any component, where p counts."""
    reach = 9.0 * base[2]
    x = np.unique(
        np.concatenate(
            [np.linspace(m - r, m + r, 1001) for m, r in zip(base[1], reach, strict=True)]
        )
    )
    x = x[normal(x, *base).sum(axis=1) > 1e-13 * (base[0] / base[2]).max()]
    q = normal(x, base[0], *without)
    g = (1.0 - share) * q + share * normal(x, base[0], *given)
    return q.sum(axis=1) / g.sum(axis=1) - 1.0


def test_safe_pairs_have_no_risk_and_most_pairs_without_are_found():
    rng = np.random.default_rng(1)
    found, without_risk = 0, 0
    for _ in range(400):
        base, given, without, share, low, high = random_pair(rng)
        nodes, work = np.empty((2, MOST_NODES)), safety_tables(base.shape[1])
        count = place_nodes(base, nodes)
        if count == 0 or not are_close(base, given, without):
            continue
        tabulate_shares(base, nodes, count, work)
        change = changes(base, given, without, share)
        true = bool(low <= change.min() and change.max() <= high)
        safe = is_safe(base, given, without, share, low, high, work)
        assert true or not safe
        found, without_risk = found + safe, without_risk + true
    assert 0.5 * without_risk < found < without_risk


def exact_risk(base, given, without, rho, epsilon):
    """Return the risk by the general integrator."""
    w, (n, t) = base[0], without
    p = np.r_[(1.0 - rho) * w, rho * w], np.r_[n, given[0]], np.r_[t, given[1]]
    q = np.r_[w, 0.0 * w], np.r_[n, n], np.r_[t, t]
    curves = gaussian.curves(*(x[None] for x in p), *(x[None, None] for x in q), epsilon)
    return float(curves[0, 0, 0])


def test_a_narrow_component_that_a_wide_one_covers_has_no_risk():
    """A spike of which a part moves by five of its widths: the heavier, the riskier."""
    without, given = np.array([[0.0, 1.0], [1.0, 0.002]]), np.array([[0.0, 1.01], [1.0, 0.002]])
    rho, alone = np.array([0.5, 0.04]), np.empty(2)
    epsilon = np.array([0.1])
    found = []
    for weight in (1e-5, 1e-4, 1e-3, 1e-2):
        base = np.stack([[1.0 - weight, weight], *without])
        growth = np.expm1(epsilon[0])
        by_pairs = convexity_bound(base, given, without, rho, growth, 1.0)
        covered = covered_bound(base, given, without, rho, growth, 1.0, alone)
        exact = exact_risk(base, given, without, rho, epsilon)
        assert by_pairs > 0.03 * weight
        assert covered >= exact - 1e-13
        found.append((covered, exact))
    assert found[0] == (0.0, 0.0)
    assert found[1] == (0.0, 0.0)
    assert found[-1][1] > 1e-4


def test_bounds_with_covers_are_above_the_risk_and_often_nothing():
    rng = np.random.default_rng(2)
    nothing = 0
    for _ in range(1500):
        size = int(rng.integers(2, 9))
        base = np.stack(
            [
                rng.dirichlet(np.full(size, 0.3)),
                rng.normal(0.0, 1.0, size),
                np.exp(rng.normal(-1.5, 2.0, size)),
            ]
        )
        move = 10.0 ** rng.uniform(-4.0, -1.0) * rng.standard_normal((2, size))
        without = base[1:] + move * [[1.0], [0.1]]
        given = base[1:] - move * [[1.0], [0.1]]
        without[1], given[1] = (np.maximum(x[1], 0.2 * base[2]) for x in (without, given))
        rho = rng.choice([0.03, 0.3, 1.0], size) * rng.random(size) ** rng.integers(0, 2)
        epsilon = 10.0 ** rng.uniform(-2.0, 0.5, 1)
        growth, alone = np.expm1(epsilon[0]), np.empty(size)
        covered = covered_bound(base, given, without, rho, growth, 1.0, alone)
        assert covered >= exact_risk(base, given, without, rho, epsilon) - 1e-12
        nothing += covered < 1e-12 < convexity_bound(base, given, without, rho, growth, 1.0)
    assert nothing > 100


def test_without_an_epsilon_nothing_covers():
    base, alone = np.array([[0.9, 0.1], [0.0, 0.0], [1.0, 0.1]]), np.empty(2)
    assert covered_bound(base, base[1:], base[1:], base[0], 0.0, 1.0, alone) == np.inf
