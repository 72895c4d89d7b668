"""The batch kernels that an audit calls, against the exact integral of each pair."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from exact_reference import hockey_stick as exact
from scipy import sparse

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import gaussian, hockey_stick
from edp_bayes.divergence.one_scale import curves as one_scale

EPSILON = np.concatenate([[0.0], np.geomspace(1e-3, 2.0, 9)])


def contributions(rng, n, people, size, density):
    """Random sparse contributions of quite different sizes."""
    table = rng.normal(size=(n, people)) * size * 10 ** rng.uniform(-3, 0, people)
    table[rng.random((n, people)) > density] = 0.0
    return sparse.csc_array(table)


def shifted(weights, y, scales, c, epsilon=EPSILON):
    return one_scale.shift_curves(weights, y, scales, c.indptr, c.indices, c.data, epsilon)


@pytest.mark.full
@pytest.mark.parametrize("density", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
def test_shift_curves_are_exact(density, size):
    """Moves below and far above the gaps between locations, ties included."""
    rng = np.random.default_rng([int(10 * density), int(100 * size)])
    n, people, draws = 12, 4, 3
    y = np.round(rng.normal(size=n), 1)
    w, h = rng.dirichlet(np.ones(n), draws), rng.uniform(0.2, 1.0, draws)
    c = contributions(rng, n, people, size, density)
    curves = shifted(w, y, h, c)
    assert curves.shape == (draws, people, EPSILON.size)
    for s in range(draws):
        p = Mixture(w[s], y, h[s], kernel="laplace")
        for i in range(people):
            q = Mixture(w[s], y - c[:, [i]].toarray()[:, 0], h[s], kernel="laplace")
            both = np.maximum(
                hockey_stick(p, q, epsilon=EPSILON), hockey_stick(q, p, epsilon=EPSILON)
            )
            np.testing.assert_allclose(curves[s, i], both, rtol=1e-9, atol=1e-16)
    for s, i, e in ((0, 0, 0), (1, 1, 3), (2, 3, 6)):
        p = Mixture(w[s], y, h[s], kernel="laplace")
        q = Mixture(w[s], y - c[:, [i]].toarray()[:, 0], h[s], kernel="laplace")
        (one, mass), (two, other) = exact(p, q, EPSILON[e]), exact(q, p, EPSILON[e])
        tolerance = 1e-9 * max(one, two) + 1e-16 * max(mass, other)
        assert abs(curves[s, i, e] - max(one, two)) <= tolerance


def test_shift_curves_of_one_location_have_a_closed_form():
    shift = np.array([1e-13, 1e-8, 1e-4, 0.1, 3.0])
    c = sparse.csc_array(shift[None] * 2.0)
    curves = shifted(np.ones((1, 1)), np.array([7.0]), np.array([2.0]), c)
    expected = -np.expm1(-0.5 * np.maximum(shift[:, None] - EPSILON, 0.0))
    np.testing.assert_allclose(curves[0], expected, rtol=1e-12)


def test_shift_curves_are_exactly_zero_from_the_largest_contribution_on():
    rng = np.random.default_rng(3)
    y, w, h = rng.normal(size=8), rng.dirichlet(np.ones(8), 40), rng.uniform(0.5, 2.0, 40)
    c = contributions(rng, 8, 30, 0.5, 0.5)
    curves = shifted(w, y, h, c)
    largest = np.abs(c.toarray()).max(axis=0)
    safe = largest[None, :, None] <= EPSILON * h[:, None, None]
    assert (curves[safe] == 0.0).all()
    assert (curves[:, largest == 0.0] == 0.0).all()
    assert (curves[~safe][:, None] >= 0.0).all()


def test_results_depend_neither_on_blocks_nor_on_threads():
    rng = np.random.default_rng(5)
    y, w, h = rng.normal(size=9), rng.dirichlet(np.ones(9), 70), rng.uniform(0.2, 1.0, 70)
    c = contributions(rng, 9, 21, 0.3, 0.7)
    whole = shifted(w, y, h, c)
    np.testing.assert_array_equal(shifted(w[33:35], y, h[33:35], c), whole[33:35])
    np.testing.assert_array_equal(shifted(w, y, h, c[:, [4]]), whole[:, [4]])
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        np.testing.assert_array_equal(shifted(w, y, h, c), whole)
    finally:
        numba.set_num_threads(threads)


def test_shift_curves_fill_the_array_they_are_given():
    rng = np.random.default_rng(9)
    y, w, h = rng.normal(size=6), rng.dirichlet(np.ones(6), 5), rng.uniform(0.2, 1.0, 5)
    c = contributions(rng, 6, 7, 0.3, 0.7)
    given = np.full((5, 7, EPSILON.size), np.nan)
    same = one_scale.shift_curves(w, y, h, c.indptr, c.indices, c.data, EPSILON, out=given)
    assert same is given
    np.testing.assert_array_equal(given, shifted(w, y, h, c))


def test_shift_curves_are_below_the_convexity_bound():
    from edp_bayes.divergence.shifts import laplace_shift

    rng = np.random.default_rng(6)
    y, w, h = rng.normal(size=9), rng.dirichlet(np.ones(9), 5), rng.uniform(0.2, 1.0, 5)
    c = contributions(rng, 9, 20, 1.0, 0.7)
    shift = np.abs(c.toarray().T)[None, :, None] / h[:, None, None, None]
    bound = (w[:, None, None] * laplace_shift(shift, EPSILON[:, None])).sum(axis=-1)
    assert (shifted(w, y, h, c) <= bound + 1e-15).all()


@pytest.mark.full
def test_climate_like_scale(data_dir):
    """Real contributions of many small individuals, against the single pair."""
    daily = np.load(data_dir / "gpcp_daily_mm.npz")["daily_mm"].reshape(61, -1).astype(np.float64)
    values = daily[~np.isnan(daily).any(axis=1)]
    y = values.mean(axis=1)
    c = (values - y[:, None]) / (values.shape[1] - 1)
    rng = np.random.default_rng(0)
    w, h = rng.dirichlet(np.ones(y.size), 4), rng.uniform(0.02, 0.05, 4)
    chosen = rng.choice(values.shape[1], 20, replace=False)
    epsilon = np.linspace(0.0, 0.3, 50)
    curves = shifted(w, y, h, sparse.csc_array(c[:, chosen]), epsilon)
    p = Mixture(w[:, None], y, h[:, None, None], kernel="laplace")
    q = Mixture(w[:, None], y - c.T[chosen], h[:, None, None], kernel="laplace")
    both = np.maximum(hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon))
    np.testing.assert_allclose(curves, both, rtol=1e-9, atol=1e-16)
    assert (curves > 0).any()


def draws_of_pairs(rng, draws, people, n, kernel_scales):
    pw, pm = rng.dirichlet(np.ones(n), draws), rng.normal(0, 1.5, (draws, n))
    ps = np.full((draws, n), 0.7) if kernel_scales == "equal" else rng.uniform(0.3, 1, (draws, n))
    shift = 10 ** rng.uniform(-4, 0, (draws, people, 1)) * rng.normal(size=(draws, people, n))
    qw, qs = np.repeat(pw[:, None], people, 1), np.repeat(ps[:, None], people, 1)
    if kernel_scales == "changed":
        qs = qs * np.exp(0.3 * shift)
    return pw, pm, ps, qw, pm[:, None] + shift, qs


@pytest.mark.parametrize(("module", "kernel"), [(gaussian, "gaussian"), (one_scale, "laplace")])
@pytest.mark.parametrize("kernel_scales", ["equal", "unequal", "changed"])
def test_curves_are_the_larger_direction(module, kernel, kernel_scales):
    rng = np.random.default_rng(len(kernel_scales))
    arrays = draws_of_pairs(rng, 4, 5, 6, kernel_scales)
    curves = module.curves(*arrays, EPSILON)
    floored = module.curves(*arrays, EPSILON, floor=1e-15)
    assert curves.shape == (4, 5, EPSILON.size)
    assert ((floored == 0.0) | (floored >= 1e-15)).all()
    kept = curves >= 1e-12
    np.testing.assert_allclose(floored[kept], curves[kept], rtol=1e-9)
    assert (np.abs(floored - curves)[~kept] <= 1.1e-15 + 1e-9 * curves[~kept]).all()
    pw, pm, ps, qw, qm, qs = arrays
    p = Mixture(pw[:, None], pm[:, None], ps[:, None], kernel=kernel)
    q = Mixture(qw, qm, qs, kernel=kernel)
    both = np.maximum(hockey_stick(p, q, epsilon=EPSILON), hockey_stick(q, p, epsilon=EPSILON))
    np.testing.assert_allclose(curves, both, rtol=1e-9, atol=1e-16)
    one, mass = exact(p[2, 0], q[2, 3], EPSILON[2])
    two, other = exact(q[2, 3], p[2, 0], EPSILON[2])
    assert abs(curves[2, 3, 2] - max(one, two)) <= 1e-9 * max(one, two) + 1e-16 * max(mass, other)


def test_numbers_of_components_may_differ():
    rng = np.random.default_rng(2)
    pw, pm, ps, *_ = draws_of_pairs(rng, 3, 1, 5, "unequal")
    qw, qm, qs = (np.repeat(a[:, None, :4], 2, axis=1) for a in (pw, pm, ps))
    qw = qw / qw.sum(axis=-1, keepdims=True)
    for module, kernel in ((gaussian, "gaussian"), (one_scale, "laplace")):
        curves = module.curves(pw, pm, ps, qw, qm, qs, EPSILON)
        p = Mixture(pw[1], pm[1], ps[1], kernel=kernel)
        q = Mixture(qw[1, 0], qm[1, 0], qs[1, 0], kernel=kernel)
        for e in (0, 6):
            value = max(exact(p, q, EPSILON[e])[0], exact(q, p, EPSILON[e])[0])
            assert curves[1, 1, e] == pytest.approx(value, rel=1e-9, abs=1e-14)
