"""Closed forms of shifted kernels, and the bound by joint convexity that rests on them."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.divergence.shifts import gaussian_shift, laplace_shift


@pytest.mark.parametrize("shift", [1e-14, 1e-8, 1e-4, 0.01, 0.3, 0.49, 0.51, 1.0, 4.0, 40.0])
def test_gaussian_shift_keeps_its_relative_precision(shift):
    for epsilon in shift * np.array([0.0, 1e-3, 0.5, 1.0, 3.0, 9.0, 20.0]):
        with mp.workdps(400):
            s, e = mp.mpf(shift), mp.mpf(float(epsilon))
            value = mp.ncdf(s / 2 - e / s) - mp.exp(e) * mp.ncdf(-s / 2 - e / s)
        found = float(gaussian_shift(shift, epsilon))
        assert found == pytest.approx(float(value), rel=1e-10, abs=1e-290)
        assert found == float(gaussian_shift(-shift, epsilon))


def test_shift_limits():
    assert float(gaussian_shift(0.0, 0.0)) == 0.0
    assert float(gaussian_shift(1.0, np.inf)) == 0.0
    assert float(gaussian_shift(1e-300, 1.0)) == 0.0
    assert float(gaussian_shift(1e3, 1.0)) == 1.0
    assert float(laplace_shift(0.0, 0.0)) == 0.0
    assert float(laplace_shift(1.0, np.inf)) == 0.0
    assert float(laplace_shift(1e-15, 0.0)) == pytest.approx(5e-16, rel=1e-12)
    grid = laplace_shift(np.array([[0.5], [2.0]]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(grid[1, 1], 1 - np.exp(-0.5))
    assert grid[0, 1] == 0.0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "laplace"]))
def test_convexity_bound_is_never_below_the_truth(seed, kernel):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    w, m = rng.dirichlet(np.ones(n)), rng.normal(0, 3, n)
    s = np.exp(rng.normal(size=n))
    shift = 10 ** rng.uniform(-3, 0.5) * rng.normal(size=n)
    epsilon = np.concatenate([[0.0], rng.exponential(np.abs(shift).max(), 4)])
    p = Mixture(w, m, s, kernel=kernel)
    q = Mixture(w, m + shift * s, s, kernel=kernel)
    single = gaussian_shift if kernel == "gaussian" else laplace_shift
    bound = single(shift, epsilon[:, None]) @ w
    found = hockey_stick(p, q, epsilon=epsilon)
    assert (found <= bound * (1 + 1e-9) + 1e-15).all()
    if n == 1:
        np.testing.assert_allclose(found, bound, rtol=1e-9, atol=1e-15)


def test_gaussian_shift_at_zero_is_total_variation():
    s = np.linspace(0.01, 5, 20)
    np.testing.assert_allclose(
        gaussian_shift(s, 0.0), stats.norm.cdf(s / 2) - stats.norm.cdf(-s / 2), rtol=1e-10
    )
