"""The two ways in which shift_curves adds up intervals: all draws at once, and draw by draw."""

from __future__ import annotations

import numpy as np
import pytest
from exact_reference import hockey_stick as exact
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence.one_scale import curves as one_scale

EPSILON = np.concatenate([[0.0], np.geomspace(1e-3, 2.0, 14)])


def case(seed, n=11, people=5, draws=37):
    """Contributions from far below to far above the gaps, ties, absences, unsorted scales."""
    rng = np.random.default_rng(seed)
    y = np.round(rng.normal(size=n), 1)
    table = rng.normal(size=(n, people)) * 10 ** rng.uniform(-8, 1, people)
    table[rng.random((n, people)) > rng.uniform(0.1, 1.0, people)] = 0.0
    table[0, 0] = y[0] - y[1]  # one member lands exactly on another knot
    c = sparse.csc_array(table)
    return rng.dirichlet(np.ones(n), draws), y, rng.uniform(0.05, 1.0, draws), c


def curves(weights, y, scales, c, epsilon):
    return one_scale.shift_curves(weights, y, scales, c.indptr, c.indices, c.data, epsilon)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), dropped=st.integers(1, EPSILON.size - 1))
def test_an_epsilon_gives_the_same_wherever_it_stands_in_the_grid(seed, dropped):
    arguments = case(seed)
    whole = curves(*arguments, EPSILON)
    part = curves(*arguments, EPSILON[dropped:])
    np.testing.assert_allclose(part, whole[..., dropped:], rtol=1e-9, atol=1e-16)
    assert ((whole >= 0.0) & (whole <= 1.0)).all()


@pytest.mark.parametrize("levels", [1, one_scale.EARLY, one_scale.EARLY + 1])
def test_grids_about_as_long_as_the_early_part(levels):
    arguments = case(3)
    whole = curves(*arguments, EPSILON)
    np.testing.assert_array_equal(curves(*arguments, EPSILON[:levels])[..., 0], whole[..., 0])
    np.testing.assert_allclose(
        curves(*arguments, EPSILON[:levels]), whole[..., :levels], rtol=1e-9, atol=1e-16
    )


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_agree_with_exact_arithmetic(seed):
    weights, y, scales, c = case(seed)
    found = curves(weights, y, scales, c, EPSILON)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        s, i = rng.integers(scales.size), rng.integers(c.shape[1])
        p = Mixture(weights[s], y, scales[s], kernel="laplace")
        q = Mixture(weights[s], y - c[:, [i]].toarray()[:, 0], scales[s], kernel="laplace")
        for e in (1, one_scale.EARLY - 1, one_scale.EARLY, 9):
            (one, mass), (two, other) = exact(p, q, EPSILON[e]), exact(q, p, EPSILON[e])
            tolerance = 1e-9 * max(one, two) + 1e-16 * max(mass, other)
            assert abs(found[s, i, e] - max(one, two)) <= tolerance


@pytest.mark.full
def test_extreme_epsilon_and_shifts_stay_finite():
    shift = np.array([[1.0, 300.0, 1e4], [0.0, 1e-9, 1e4]])
    weights, scales = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1.0, 1e-3])
    epsilon = np.array([0.1, 200.0, 650.0, 720.0, 800.0, 2000.0])
    found = curves(weights, np.array([0.0, 1.0]), scales, sparse.csc_array(shift), epsilon)
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=-1) <= 0.0).all()
    np.testing.assert_allclose(found[:, 2], 1.0)  # farther apart than any of the epsilon
