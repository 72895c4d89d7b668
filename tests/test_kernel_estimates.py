"""Kernel estimates, held to SciPy's densities and to sums written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes.distributions.kernel_estimates import (
    BANDWIDTHS,
    KERNELS,
    KernelEstimate,
    best_estimate,
    left_out_scores,
    robust_spread,
)

FAMILY = {"gaussian": stats.norm, "laplace": stats.laplace}


@pytest.mark.parametrize("kernel", KERNELS)
def test_densities_and_scores_are_those_of_scipy(kernel):
    answers = np.random.default_rng(3).standard_t(4.0, 17)
    points = np.linspace(-3.0, 3.0, 7)
    estimate = KernelEstimate(kernel, 0.4)
    expected = FAMILY[kernel].pdf(points[:, None], answers, 0.4).mean(axis=1)
    np.testing.assert_allclose(estimate.density(points, answers), expected, rtol=1e-12)
    h = BANDWIDTHS[15] * robust_spread(answers)
    without = [
        FAMILY[kernel].pdf(y, np.delete(answers, j), h).mean() for j, y in enumerate(answers)
    ]
    found = left_out_scores(answers)[15, KERNELS.index(kernel)]
    assert found == pytest.approx(np.log(without).sum(), rel=1e-10)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
def test_the_best_estimate_has_the_units_of_the_answers(seed, scale, shift):
    answers = np.random.default_rng(seed).normal(size=20)
    one, other = best_estimate(answers), best_estimate(shift + scale * answers)
    assert other.kernel == one.kernel
    assert other.bandwidth == pytest.approx(scale * one.bandwidth, rel=1e-6)
