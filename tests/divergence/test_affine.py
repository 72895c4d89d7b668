"""The series for affine images of a mixture against the exact integrals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.divergence.near_pair.affine import image_integrals, image_workspace, tabulate
from edp_bayes.divergence.near_pair.nodes import MOST_NODES, place_nodes

EPSILON = np.array([0.0, 0.003, 0.01, 0.1, 0.3])


def random_mixture(rng):
    size = int(rng.integers(1, 12))
    weights = rng.dirichlet(np.full(size, 0.4))
    return np.stack([weights, 3.0 * rng.standard_normal(size), np.exp(rng.normal(-0.5, 1.0, size))])


def image(base, a, b, tau2):
    return edp.Mixture(base[0], (base[1] - a) / (1.0 + b), np.sqrt(base[2] ** 2 - tau2) / (1.0 + b))


def integrals(base, a, b, tau2):
    work, total = image_workspace(EPSILON.size), np.empty((2, EPSILON.size))
    growth = np.expm1(EPSILON)
    nodes = np.empty((2, MOST_NODES))
    count = place_nodes(base, nodes)
    tabulate(base, nodes, count, work, 0.0)
    done = image_integrals(nodes, count, a, b, tau2, -growth / (1.0 + growth), growth, work, total)
    return total if done else None


def random_image(rng, narrowest, least, most):
    move = 10.0 ** rng.uniform(least, most) * narrowest
    a, b = move * rng.standard_normal(), 0.02 * move / narrowest * rng.standard_normal()
    tau2 = min(move * rng.random(), 0.2 * narrowest) ** 2 * (1.0 if rng.random() < 0.8 else -1.0)
    return a, b, tau2


def assert_exact(base, a, b, tau2, found):
    p, q = edp.Mixture(*base), image(base, a, b, tau2)
    expected = [edp.hockey_stick(p, q, epsilon=EPSILON), edp.hockey_stick(q, p, epsilon=EPSILON)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=2e-14)


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, 100_000))
def test_the_series_gives_the_exact_integrals(seed):
    rng = np.random.default_rng(seed)
    base = random_mixture(rng)
    change = random_image(rng, base[2].min(), -5.0, -0.4)
    found = integrals(base, *change)
    if found is not None:
        assert_exact(base, *change, found)


@pytest.mark.full
@pytest.mark.parametrize("seed", [3149, 2352, 1220, 273, 3950])
def test_sign_changes_are_found_closely_enough_where_the_ratio_is_bent(seed):
    # a Newton step fewer is wrong by some 1e-13 here
    rng = np.random.default_rng(seed)
    base = random_mixture(rng)
    change = random_image(rng, base[2].min(), -1.5, -0.4)
    assert_exact(base, *change, integrals(base, *change))


def test_most_of_the_random_cases_are_near_enough_for_the_series():
    served = 0
    for seed in range(50):
        base = random_mixture(np.random.default_rng(seed))
        served += integrals(base, 0.3 * base[2].min(), 0.0, 0.0) is not None
    assert served == 50


@pytest.mark.parametrize("change", [(1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 1.0)], ids=str)
def test_what_moves_too_far_is_left_to_others(change):
    base = np.array([[1.0], [0.0], [1.0]])
    assert integrals(base, *change) is None


def test_a_mixture_that_needs_too_many_nodes_has_none():
    many = 300
    comb = np.stack([np.full(many, 1 / many), np.arange(many) * 1.0, np.full(many, 0.02)])
    nodes = np.empty((2, MOST_NODES))
    assert 0 < place_nodes(comb[:, :10] * [[30], [1], [1]], nodes) < MOST_NODES
    assert place_nodes(comb, nodes) == 0
