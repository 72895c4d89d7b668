"""Noise: the exact mixture against many digits, other engines and limits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes import Mixture, hockey_stick
from edp_bayes import statistical_privacy as sp
from edp_bayes.statistical_privacy.counts import noise_tails
from tests.statistical_privacy import exact_reference as exact

TOLERANCE = 1e-10
LEAST = 1e-300
NOISES = {"gaussian": sp.GaussianNoise, "laplace": sp.LaplaceNoise}
FAMILIES = {"gaussian": noise_tails.GAUSSIAN, "laplace": noise_tails.LAPLACE}


def relative_error(found, truth):
    if truth < LEAST:
        return 0.0 if found <= 1.001 * LEAST else np.inf
    return abs(float(found / truth - 1))


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    n=st.integers(2, 45),
    share=st.floats(0.0, 1.0),
    prob=st.floats(1e-5, 1 - 1e-5),
    family=st.sampled_from(["gaussian", "laplace"]),
    width=st.floats(-2.0, 3.0),
    depth=st.floats(0.0, 30.0),
)
def test_small_databases_agree_with_the_definition(n, share, prob, family, width, depth):
    drawn = max(1, round(share * n))
    scale = 10.0**width / drawn
    count_scale = mp.mpf(scale) * drawn
    epsilon = min(depth / np.sqrt(n * prob * (1 - prob) + 10.0 ** (2 * width)), 300.0)
    mechanism = (sp.Subsampling(size=drawn), NOISES[family](scale))
    with mp.workdps(60 + int(epsilon / 2)):
        plus, minus = exact.distributions(n, drawn, prob)
        up = exact.noisy_delta(plus, minus, epsilon, family, count_scale)
        down = exact.noisy_delta(minus[::-1], plus[::-1], epsilon, family, count_scale)
        assert (
            relative_error(sp.delta_plus(n, prob, epsilon=epsilon, mechanism=mechanism), up)
            < TOLERANCE
        )
        assert (
            relative_error(sp.delta_minus(n, prob, epsilon=epsilon, mechanism=mechanism), down)
            < TOLERANCE
        )


@pytest.mark.full
@pytest.mark.parametrize(
    ("family", "scale", "epsilon"),
    [("gaussian", 0.4, 0.6), ("laplace", 20.0, 0.04), ("gaussian", 600.0, 0.001)],
)
def test_a_million_entries(family, scale, epsilon):
    """All counts that matter, in 30 digits, on a window around the cut and the mean."""
    n, prob = 10**6, 2e-4
    found = sp.delta_plus(n, prob, epsilon=epsilon, mechanism=NOISES[family](scale / n))
    first, last = 60, 640  # 10 standard deviations below to 31 above the mean
    with mp.workdps(30):
        p = mp.mpf(prob)
        mass = mp.exp(
            mp.loggamma(n) - mp.loggamma(first + 1) - mp.loggamma(n - first)
            + first * mp.log(p) + (n - 1 - first) * mp.log(1 - p)
        )  # fmt: skip
        others = []
        for j in range(first, last):
            others.append(mass)
            mass *= (n - 1 - j) * p / ((j + 1) * (1 - p))
        count_scale = mp.mpf(scale / n) * n
        plus, minus = exact.shifted(others), exact.padded(others, len(others) + 1)
        truth = exact.noisy_delta(plus, minus, epsilon, family, count_scale)
        assert 0 < truth < 0.03
        assert relative_error(found, truth) < TOLERANCE


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_agrees_with_the_integrals_of_mixture_densities(family):
    n, prob, scale = 60, 0.3, 0.8
    weights = stats.binom.pmf(np.arange(n), n - 1, prob)
    counts = np.arange(n, dtype=float)
    minus = Mixture(weights / weights.sum(), counts, scale, kernel=family)
    plus = Mixture(weights / weights.sum(), counts + 1.0, scale, kernel=family)
    epsilon = np.linspace(0.0, 0.8, 9)
    noise = NOISES[family](scale / n)
    np.testing.assert_allclose(
        sp.delta_plus(n, prob, epsilon=epsilon, mechanism=noise),
        hockey_stick(plus, minus, epsilon=epsilon),
        rtol=1e-8,
    )
    np.testing.assert_allclose(
        sp.delta_minus(n, prob, epsilon=epsilon, mechanism=noise),
        hockey_stick(minus, plus, epsilon=epsilon),
        rtol=1e-8,
    )


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_noise_that_vanishes_leaves_the_exact_curve(family):
    epsilon = np.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose(
        sp.delta(200, 0.2, epsilon=epsilon, mechanism=NOISES[family](1e-7)),
        sp.delta(200, 0.2, epsilon=epsilon),
        rtol=1e-11,
    )


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    n=st.integers(2, 400),
    prob=st.floats(0.001, 0.999),
    family=st.sampled_from(["gaussian", "laplace"]),
    width=st.floats(-2.0, 2.0),
    wider=st.floats(1.0, 3.0),
    epsilon=st.floats(0.0, 1.0),
)
def test_more_noise_never_tells_more(n, prob, family, width, wider, epsilon):
    scale = 10.0**width / n
    with_noise = sp.delta(n, prob, epsilon=epsilon, mechanism=NOISES[family](scale))
    assert sp.delta(
        n, prob, epsilon=epsilon, mechanism=NOISES[family](scale * wider)
    ) <= with_noise * (1 + 1e-11)
    assert with_noise <= sp.delta(n, prob, epsilon=epsilon) * (1 + 1e-11)
    # who knows more entries is told no less
    half = sp.delta(n, prob, epsilon=epsilon, mechanism=NOISES[family](scale), known=n // 2)
    assert with_noise <= half * (1 + 1e-11)
    dp = sp.differential_privacy_delta(n, epsilon=epsilon, mechanism=NOISES[family](scale))
    assert half <= dp * (1 + 1e-11) + 1e-300


def test_laplace_noise_ends_exactly_where_its_scale_says():
    n, scale = 50, 0.1
    end = sp.laplace_epsilon(n, scale)
    assert end == pytest.approx(0.2)
    assert sp.delta(n, 0.3, epsilon=end * (1 + 1e-12), mechanism=sp.LaplaceNoise(scale)) == 0.0
    assert sp.delta(n, 0.3, epsilon=0.9 * end, mechanism=sp.LaplaceNoise(scale)) > 0.0


def test_infinite_epsilon_and_empty_input():
    noise = sp.GaussianNoise(0.01)
    assert sp.delta(50, 0.3, epsilon=np.inf, mechanism=noise) == 0.0
    assert sp.delta(50, 0.3, epsilon=[0.1, np.inf], mechanism=noise)[1] == 0.0
    assert sp.delta(50, 0.3, epsilon=np.empty(0), mechanism=noise).shape == (0,)


@pytest.mark.full
@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [0.05, 0.9, 1.0, 7.0, 1e4])
def test_tails_and_increments(family, scale):
    def above(d):
        z = mp.mpf(d) / scale
        if family == "gaussian":
            return mp.erfc(z / mp.sqrt(2)) / 2
        return mp.exp(-z) / 2 if z > 0 else 1 - mp.exp(z) / 2

    def value(function, d):
        distance, factor = function(FAMILIES[family], d, scale)
        u = mp.mpf(distance) / scale
        return factor * mp.exp(-u * u / 2 if family == "gaussian" else -u)

    with mp.workdps(450):
        for d in np.concatenate([np.linspace(-30.0, 30.0, 17) * scale, [0.0, 0.25, 0.5, 1.0]]):
            truth = above(d)
            assert abs(value(noise_tails.tail, d) / truth - 1) < 3e-15
            truth = above(mp.mpf(d) - 1) - above(d)
            assert abs(value(noise_tails.increment, d) / truth - 1) < 1e-13


def test_normal_approximation_is_close_where_counts_are_many():
    epsilon = np.linspace(0.0, 0.02, 5)  # far out the count's skewness shows
    for mechanism in (
        None,
        sp.GaussianNoise(1e-4),
        sp.LaplaceNoise(1e-4),
        sp.Subsampling(rate=0.5),
    ):
        exact_curve = sp.delta(20_000, 0.4, epsilon=epsilon, mechanism=mechanism)
        approximate = sp.normal_approximation(20_000, 0.4, epsilon=epsilon, mechanism=mechanism)
        assert not np.array_equal(exact_curve, approximate)
        np.testing.assert_allclose(approximate, exact_curve, rtol=0.05)
    closed = stats.norm.cdf(0.5 / 69.3) - stats.norm.cdf(-0.5 / 69.3)
    assert sp.normal_approximation(20_000, 0.4, epsilon=0.0) == pytest.approx(closed, rel=1e-3)
