"""Known entries under subsampling, groups of different probabilities, exchangeable entries."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import statistical_privacy as sp
from tests.exact_sums import exact_sum
from tests.statistical_privacy import exact_reference as exact


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    data=st.data(), n=st.integers(3, 12), prob=st.floats(0.01, 0.99), epsilon=st.floats(0.0, 2.0)
)
def test_known_entries_agree_with_the_literal_sum(data, n, prob, epsilon):
    drawn = data.draw(st.integers(1, n))
    known = data.draw(st.integers(1, n - 1))
    positive = data.draw(st.integers(0, known))
    sampling = sp.Subsampling(size=drawn)
    with mp.workdps(40):
        plus, minus = exact.known_distributions(n, drawn, prob, known, positive)
        up, down = (
            exact.hockey_stick(plus, minus, epsilon=epsilon),
            exact.hockey_stick(minus, plus, epsilon=epsilon),
        )
        options = {"known": known, "known_positive": positive}
        found = sp.delta_plus(n, prob, epsilon=epsilon, mechanism=sampling, **options)
        assert found == pytest.approx(float(up), rel=1e-10, abs=1e-15)
        found = sp.delta_minus(n, prob, epsilon=epsilon, mechanism=sampling, **options)
        assert found == pytest.approx(float(down), rel=1e-10, abs=1e-15)
        noisy = exact.noisy_delta(plus, minus, epsilon, "laplace", mp.mpf(0.3) * drawn)
        found = sp.delta_plus(
            n, prob, epsilon=epsilon, mechanism=(sampling, sp.LaplaceNoise(0.3)), **options
        )
        assert found == pytest.approx(float(noisy), rel=1e-10, abs=1e-15)


def test_the_worst_case_of_the_known_entries_is_over_every_count():
    epsilon, sampling = np.array([0.1, 2.23]), sp.Subsampling(size=16)
    every = sp.delta(
        24, 0.84, epsilon=epsilon, mechanism=sampling, known=7, known_positive=np.arange(8)[:, None]
    )
    np.testing.assert_allclose(
        sp.delta(24, 0.84, epsilon=epsilon, mechanism=sampling, known=7), every.max(axis=0)
    )
    # here it is neither none nor all of them
    assert every[:, 1].argmax() not in (0, 7)


def test_deep_tails_with_known_entries():
    """A table of all distributions and single ones must agree, and both with many digits."""
    n, drawn, prob, known, positive = 40, 15, 0.1, 6, 2
    epsilon = 3.0
    with mp.workdps(60):
        plus, minus = exact.known_distributions(n, drawn, prob, known, positive)
        truth = float(exact.hockey_stick(plus, minus, epsilon=epsilon))
    found = sp.delta_plus(
        n,
        prob,
        epsilon=epsilon,
        mechanism=sp.Subsampling(size=drawn),
        known=known,
        known_positive=positive,
    )
    assert found == pytest.approx(truth, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("noise", [sp.GaussianNoise, sp.LaplaceNoise])
def test_everything_known_is_differential_privacy(noise):
    epsilon, n = np.linspace(0.0, 0.5, 6), 1000
    for mechanism in (noise(0.003), (sp.Subsampling(size=200), noise(0.015))):
        found = sp.delta(
            n, 0.37, epsilon=epsilon, mechanism=mechanism, known=n - 1, known_positive=0
        )
        expected = sp.differential_privacy_delta(n, epsilon=epsilon, mechanism=mechanism)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    rate = sp.differential_privacy_delta(n, epsilon=epsilon, mechanism=sp.Subsampling(rate=0.2))
    found = sp.delta(
        n, 0.37, epsilon=epsilon, mechanism=sp.Subsampling(rate=0.2), known=n - 1, known_positive=0
    )
    np.testing.assert_allclose(found, rate, rtol=1e-12)
    assert (rate == 0.2).all()


def test_published_points_of_differential_privacy():
    for scale, published in ((1.0, 0.38), (3.0, 0.128)):
        found = sp.differential_privacy_delta(
            1000, epsilon=0.01, mechanism=sp.GaussianNoise(scale / 1000)
        )
        assert found == pytest.approx(published, abs=5e-4)
    assert (
        sp.differential_privacy_delta(1000, epsilon=np.inf, mechanism=sp.GaussianNoise(0.01)) == 0.0
    )
    assert sp.differential_privacy_delta(1000, epsilon=0.3) == 1.0
    laplace = sp.differential_privacy_delta(1000, epsilon=0.1, mechanism=sp.LaplaceNoise(0.004))
    assert laplace == pytest.approx(1 - math.exp((0.1 - 0.25) / 2), rel=1e-12)


def test_groups_agree_with_a_literal_convolution():
    sizes, probs = np.array([7, 1, 12]), np.array([0.1, 0.9, 0.45])
    epsilon = np.linspace(0.0, 3.0, 7)
    found = sp.group_delta(sizes, probs, epsilon=epsilon)
    assert found.shape == (7, 3)
    for g in range(3):
        distribution = np.ones(1)
        for h in range(3):
            for _ in range(sizes[h] - (h == g)):
                distribution = np.convolve(distribution, [1 - probs[h], probs[h]])
        plus, minus = np.append(0.0, distribution), np.append(distribution, 0.0)
        expected = np.maximum(exact_sum(plus, minus, epsilon), exact_sum(minus, plus, epsilon))
        np.testing.assert_allclose(found[:, g], expected, rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("mechanism", [None, sp.GaussianNoise(0.01), sp.LaplaceNoise(0.01)])
def test_equal_groups_are_one_database(mechanism):
    epsilon = np.linspace(0.0, 0.9, 5)
    found = sp.group_delta([30, 50, 20], [0.2, 0.2, 0.2], epsilon=epsilon, mechanism=mechanism)
    whole = sp.delta(100, 0.2, epsilon=epsilon, mechanism=mechanism)
    np.testing.assert_allclose(found, np.tile(whole[:, None], 3), rtol=1e-10)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 5.0), (0.3, 0.4), (1.0, 1.0), (0.5, 40.0)])
@pytest.mark.parametrize("drawn", [12, 5])
def test_exchangeable_entries_agree_with_the_mixture_over_the_probability(alpha, beta, drawn):
    """Given the critical entry the distribution of the probability shifts; integrate over it."""
    n = 12
    with mp.workdps(40):

        def distribution(a, b, size):
            return [
                mp.binomial(size, j) * mp.beta(j + a, size - j + b) / mp.beta(a, b)
                for j in range(size + 1)
            ]

        rate = mp.mpf(drawn) / n
        a, b = mp.mpf(alpha), mp.mpf(beta)
        plus = [
            rate * x + (1 - rate) * y
            for x, y in zip(
                exact.shifted(distribution(a + 1, b, drawn - 1)),
                distribution(a + 1, b, drawn),
                strict=True,
            )
        ]
        minus = [
            rate * x + (1 - rate) * y
            for x, y in zip(
                exact.padded(distribution(a, b + 1, drawn - 1), drawn + 1),
                distribution(a, b + 1, drawn),
                strict=True,
            )
        ]
        for epsilon in (0.0, 0.3, 1.5, 6.0):
            truth = max(
                exact.hockey_stick(plus, minus, epsilon=epsilon),
                exact.hockey_stick(minus, plus, epsilon=epsilon),
            )
            sampling = sp.Subsampling(size=drawn)
            found = sp.beta_binomial_delta(n, alpha, beta, epsilon=epsilon, mechanism=sampling)
            assert found == pytest.approx(float(truth), rel=1e-10, abs=1e-15)
            noisy = max(
                exact.noisy_delta(plus, minus, epsilon, "gaussian", mp.mpf(0.1) * drawn),
                exact.noisy_delta(
                    minus[::-1], plus[::-1], epsilon, "gaussian", mp.mpf(0.1) * drawn
                ),
            )
            mechanism = (sampling, sp.GaussianNoise(0.1))
            found = sp.beta_binomial_delta(n, alpha, beta, epsilon=epsilon, mechanism=mechanism)
            assert found == pytest.approx(float(noisy), rel=1e-9, abs=1e-15)


def test_a_sharp_beta_distribution_is_a_fixed_probability():
    epsilon = np.linspace(0.0, 0.6, 7)
    found = sp.beta_binomial_delta(300, 0.2e9, 0.8e9, epsilon=epsilon)
    np.testing.assert_allclose(found, sp.delta(300, 0.2, epsilon=epsilon), rtol=2e-5)
    assert sp.beta_binomial_delta(300, [1.0, 2.0], 4.0, epsilon=epsilon[:, None]).shape == (7, 2)


def test_deep_tails_of_exchangeable_entries():
    n, alpha, beta, epsilon = 3000, 800.0, 1200.0, 1.0
    with mp.workdps(50):
        p = mp.mpf(alpha) / (alpha + beta)
        growth = mp.exp(mp.mpf(epsilon))
        truth = mp.mpf(0)
        mass = mp.beta(alpha, n + beta) / mp.beta(alpha, beta)
        for j in range(n + 1):
            slack = mp.mpf(j) / n / p - growth * mp.mpf(n - j) / n / (1 - p)
            truth += mass * max(slack, 0)
            mass *= (n - j) * (j + mp.mpf(alpha)) / ((j + 1) * (n - j - 1 + mp.mpf(beta)))
    minus_first = sp.beta_binomial_delta(n, alpha, beta, epsilon=epsilon)
    assert truth < 1e-15
    assert minus_first >= float(truth) * (1 - 1e-10)
    mirrored = sp.beta_binomial_delta(n, beta, alpha, epsilon=epsilon)
    assert minus_first == pytest.approx(mirrored, rel=1e-11, abs=0.0)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(data=st.data(), n=st.integers(3, 12), prob=st.floats(0.01, 0.99))
def test_pure_privacy_of_a_sample_is_the_largest_log_ratio(data, n, prob):
    drawn, known = data.draw(st.integers(1, n)), data.draw(st.integers(0, n - 1))
    positive = data.draw(st.none() | st.integers(0, known))
    largest = mp.mpf(0)
    with mp.workdps(40):
        for count in range(known + 1) if positive is None else [positive]:
            for p, q in zip(*exact.known_distributions(n, drawn, prob, known, count), strict=True):
                if p or q:
                    largest = max(largest, abs(mp.log(p / q)) if p and q else mp.inf)
    for mechanism in (
        sp.Subsampling(size=drawn),
        (sp.Subsampling(size=drawn), sp.GaussianNoise(1.0)),
    ):
        found = sp.epsilon_at(
            0.0, n, prob, mechanism=mechanism, known=known, known_positive=positive
        )
        assert found == pytest.approx(float(largest), rel=1e-10)


def test_probabilities_that_underflow_are_not_zero():
    assert sp.epsilon_at(0.0, 10**5, 0.5) == np.inf
    sampling = sp.Subsampling(size=2000)
    bound = math.log(1.0 + 0.25 / 0.1)
    assert sp.epsilon_at(0.0, 10_000, 0.1, mechanism=sampling) == pytest.approx(bound, rel=1e-12)
    # wide noise lowers it to its own bound for a sample, 1 / (size * scale)
    narrow, wide = (
        sp.epsilon_at(0.0, 10_000, 0.1, mechanism=(sampling, sp.LaplaceNoise(s)))
        for s in (1e-7, 1.0)
    )
    assert narrow == pytest.approx(bound, rel=1e-9)
    assert wide == pytest.approx(0.2 / 2000, rel=1e-3)
    choice = sp.least_utility_loss(10**5, 0.5, epsilon=0.3, delta=0.0)
    assert choice.mechanism.scale == pytest.approx(1e-5 / 0.3, rel=1e-8)


@pytest.mark.parametrize(("n", "drawn", "prob", "scale"), [(12, 5, 0.2, 0.1), (9, 8, 0.7, 0.03)])
def test_pure_privacy_of_a_noisy_sample(n, drawn, prob, scale):
    """Against the ratio of both noisy distributions beyond all counts, term by term."""
    with mp.workdps(40):
        plus, minus = exact.known_distributions(n, drawn, prob, 0, 0)
        ends = []
        for sign in (1, -1):
            tilt = [mp.exp(sign * mp.mpf(j) / (scale * drawn)) for j in range(len(plus))]
            tops = [
                mp.fsum(p * t for p, t in zip(distribution, tilt, strict=True))
                for distribution in (plus, minus)
            ]
            ends.append(abs(mp.log(tops[0] / tops[1])))
    mechanism = (sp.Subsampling(size=drawn), sp.LaplaceNoise(scale))
    assert sp.epsilon_at(0.0, n, prob, mechanism=mechanism) == pytest.approx(
        float(max(ends)), rel=1e-12
    )


@pytest.mark.parametrize(
    ("n", "alpha", "beta"),
    [(10, 1.0, 1e-16), (1000, 5.0, 5e-14), (10, 1.0, 1e-8), (10, 1e-300, 1e10)],
)
def test_tiny_parameters_of_exchangeable_entries(n, alpha, beta):
    with mp.workdps(60):
        a, b = mp.mpf(alpha), mp.mpf(beta)
        masses = [
            mp.binomial(n, j) * mp.rf(a, j) * mp.rf(b, n - j) / mp.rf(a + b, n)
            for j in range(n + 1)
        ]
        plus = [m * j / n * (a + b) / a for j, m in enumerate(masses)]
        minus = [m * (n - j) / n * (a + b) / b for j, m in enumerate(masses)]
        truth = max(
            exact.hockey_stick(*distributions, 0.5)
            for distributions in ((plus, minus), (minus, plus))
        )
    for parameters in ((alpha, beta), (beta, alpha)):
        found = sp.beta_binomial_delta(n, *parameters, epsilon=0.5)
        assert found == pytest.approx(float(truth), rel=1e-11)
