"""Pairs found safe without integrals: none has a risk, and most of those without one are found."""

import numpy as np

from edp_bayes.divergence.near_pair.close import are_close
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
