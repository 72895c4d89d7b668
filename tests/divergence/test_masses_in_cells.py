"""Bounds from masses in cells against the general integrator."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.divergence import gaussian
from edp_bayes.divergence.near_pair.cells import STEP, bound_by_cells, cell_workspace
from edp_bayes.divergence.near_pair.nodes import MOST_NODES, place_nodes

EPSILON = np.array([0.0, 0.01, 0.1, 0.3, 1.0, 4.0])


def integrals(w, rho, g, q, epsilon=EPSILON):
    """The larger of both directions; g and q are (2, K), locations and scales."""
    p = np.concatenate([q, g], axis=1), np.concatenate([q, q], axis=1)
    (pm, ps), (qm, qs) = p
    weights = np.concatenate([(1.0 - rho) * w, rho * w])
    return gaussian.curves(
        weights[None], pm[None], ps[None],
        weights[None, None], qm[None, None], qs[None, None], epsilon,
    )[0, 0]  # fmt: skip


def bounds(w, rho, g, q, *, negligible=1e-9, rest=0.0, epsilon=EPSILON):
    nodes, out = np.empty((2, MOST_NODES)), np.empty(epsilon.size)
    count = place_nodes(np.stack([w, *q]), nodes, STEP, negligible)
    assert count > 1
    work = cell_workspace(w.size, epsilon.size)
    parts = np.stack([*g, *q, rho, w])
    bound_by_cells(nodes[0], count, parts, w.size, rest, np.expm1(epsilon), work, out)
    return out


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.floats(-4.0, 2.0),
    always=st.booleans(),
    negligible=st.floats(-12.0, -2.0),
)
def test_a_bound_is_above_both_integrals(seed, size, always, negligible):
    """Whatever is moved how far, narrowed or widened, and however coarse the cells are."""
    rng = np.random.default_rng(seed)
    w, rho = rng.dirichlet(np.full(4, 0.7)), np.ones(4) if always else rng.beta(0.5, 1.0, 4)
    q = np.stack([2.0 * rng.standard_normal(4), rng.lognormal(-0.5, 1.0, 4)])
    stretch = np.exp(10.0 ** min(size, 0.0) * rng.standard_normal(4))
    g = np.stack([q[0] + 10.0**size * rng.standard_normal(4), q[1] * stretch])
    found = bounds(w, rho, g, q, negligible=10.0**negligible)
    assert (found >= integrals(w, rho, g, q) - 1e-14).all()
    assert (np.diff(found) <= 1e-14).all()
    assert (found <= 1.0).all()


def test_components_that_overlap_balance_each_other():
    """Component by component the bound is half as much again; here less than a third of that."""
    w, rho = np.array([0.4, 0.35, 0.25]), np.full(3, 0.6)
    q = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 1.2]])
    g = q + np.array([[0.15], [0.001]])
    epsilon = np.array([0.05, 0.1])
    exact = integrals(w, rho, g, q, epsilon)
    alone = sum(
        w[k] * integrals(np.ones(1), rho[k : k + 1], g[:, [k]], q[:, [k]], epsilon)
        for k in range(3)
    )
    assert (alone > 1.5 * exact).all()
    found = bounds(w, rho, g, q, epsilon=epsilon)
    assert ((exact <= found) & (found - exact < (alone - exact) / 3.0)).all()


def test_where_one_underflows_beside_the_other_there_is_no_bound_of_their_ratio():
    """Fifty standard deviations: the density without is zero where the density with is not."""
    w, rho = np.array([0.9, 0.1]), np.array([0.0, 0.5])
    q = np.array([[0.0, 0.0], [30.0, 1.0]])
    g = np.array([[0.0, 50.0], [30.0, 1.0]])
    exact = integrals(w, rho, g, q)
    assert exact[3] > 0.03
    assert (bounds(w, rho, g, q) >= exact - 1e-14).all()


def test_what_is_left_out_is_added():
    w, rho = np.array([1.0]), np.array([0.5])
    q = np.array([[0.0], [1.0]])
    plain, more = (
        bounds(w, rho, q + np.array([[0.1], [0.0]]), q, rest=rest) for rest in (0.0, 0.01)
    )
    np.testing.assert_allclose(more - plain, 0.01, rtol=1e-12)
