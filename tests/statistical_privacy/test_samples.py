"""Samples with replacement, and samples of entries of unlike probability."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InvalidInputError
from tests.exact_sums import exact_sum
from tests.statistical_privacy import exact_reference as exact


def enumerated(probs, critical, samples):
    """Masses of the positives over all databases and equally likely samples, by the definition."""
    size = len(samples[0])
    found = {True: np.zeros(size + 1), False: np.zeros(size + 1)}
    for database in itertools.product([False, True], repeat=len(probs)):
        weight = np.prod(
            [p if x else 1 - p for k, (x, p) in enumerate(zip(database, probs, strict=True))
             if k != critical]
        )  # fmt: skip
        for sample in samples:
            found[database[critical]][sum(database[k] for k in sample)] += weight / len(samples)
    return found[True], found[False]


@pytest.mark.parametrize(("n", "drawn"), [(2, 1), (3, 4), (4, 3), (5, 2)])
def test_draws_with_replacement_agree_with_all_databases_and_all_draws(n, drawn):
    epsilon = np.linspace(0.0, 3.0, 13)
    draws = list(itertools.product(range(n), repeat=drawn))
    plus, minus = enumerated([0.3] * n, 0, draws)
    sampling = sp.SamplingWithReplacement(size=drawn)
    found = sp.delta_plus(n, 0.3, epsilon=epsilon, mechanism=sampling)
    np.testing.assert_allclose(found, exact_sum(plus, minus, epsilon), rtol=1e-11, atol=1e-15)
    found = sp.delta_minus(n, 0.3, epsilon=epsilon, mechanism=sampling)
    np.testing.assert_allclose(found, exact_sum(minus, plus, epsilon), rtol=1e-11, atol=1e-15)


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    data=st.data(), n=st.integers(2, 14), prob=st.floats(0.01, 0.99), epsilon=st.floats(0.0, 2.0)
)
def test_draws_with_replacement_agree_with_the_literal_sum(data, n, prob, epsilon):
    drawn = data.draw(st.integers(1, 20))
    known = data.draw(st.integers(0, n - 1))
    positive = data.draw(st.integers(0, known))
    sampling = sp.SamplingWithReplacement(size=drawn)
    options = {"known": known, "known_positive": positive}
    noisy = (sampling, sp.LaplaceNoise(0.3))
    with mp.workdps(40):
        plus, minus = exact.replacement_distributions(n, drawn, prob, known, positive)
        for curve, p, q in ((sp.delta_plus, plus, minus), (sp.delta_minus, minus, plus)):
            truth = exact.hockey_stick(p, q, epsilon=epsilon)
            found = curve(n, prob, epsilon=epsilon, mechanism=sampling, **options)
            assert found == pytest.approx(float(truth), rel=1e-10, abs=1e-15)
        truth = exact.noisy_delta(plus, minus, epsilon, "laplace", mp.mpf(0.3) * drawn)
        found = sp.delta_plus(n, prob, epsilon=epsilon, mechanism=noisy, **options)
        assert found == pytest.approx(float(truth), rel=1e-10, abs=1e-15)


@pytest.mark.full
def test_deep_tails_of_draws_with_replacement():
    n, drawn, prob, epsilon = 60, 45, 0.1, 1.5
    sampling = sp.SamplingWithReplacement(size=drawn)
    with mp.workdps(60):
        plus, minus = exact.replacement_distributions(n, drawn, prob)
        truth = float(exact.hockey_stick(minus, plus, epsilon=mp.mpf("0.2")))
        deep = float(exact.hockey_stick(plus, minus, epsilon=epsilon))
    found = sp.delta_minus(n, prob, epsilon=0.2, mechanism=sampling)
    assert found == pytest.approx(truth, rel=1e-10, abs=0.0)
    assert deep < 1e-15
    found = sp.delta_plus(n, prob, epsilon=epsilon, mechanism=sampling)
    assert found == pytest.approx(deep, rel=1e-10, abs=0.0)


@pytest.mark.parametrize("noise", [None, sp.LaplaceNoise(0.1), sp.GaussianNoise(0.1)])
def test_the_least_epsilon_of_delta_zero_is_the_largest_log_ratio(noise):
    n, drawn, prob = 9, 5, 0.3
    sampling = sp.SamplingWithReplacement(size=drawn)
    mechanism = sampling if noise is None else (sampling, noise)
    with mp.workdps(40):
        for known, positive in ((0, 0), (3, 1), (8, 5)):
            options = {"known": known, "known_positive": positive}
            plus, minus = exact.replacement_distributions(n, drawn, prob, known, positive)
            shift = [
                mp.exp(j / (mp.mpf(0.1) * drawn)) if isinstance(noise, sp.LaplaceNoise) else 1
                for j in range(drawn + 1)
            ]
            ratios = [plus[-1] / minus[-1], minus[0] / plus[0]]
            if isinstance(noise, sp.LaplaceNoise):
                ends = [[mp.fsum(a * b**s for a, b in zip(side, shift, strict=True))
                         for side in (plus, minus)] for s in (1, -1)]  # fmt: skip
                ratios = [ends[0][0] / ends[0][1], ends[1][1] / ends[1][0]]
            found = sp.epsilon_at(0.0, n, prob, mechanism=mechanism, **options)
            assert found == pytest.approx(float(mp.log(max(ratios))), rel=1e-9)
    everything = sp.epsilon_at(0.0, n, prob, mechanism=mechanism, known=8, known_positive=[0, 8])
    assert np.isinf(everything).all() == (not isinstance(noise, sp.LaplaceNoise))
    worst = sp.epsilon_at(0.0, n, prob, mechanism=mechanism, known=3)
    every = sp.epsilon_at(0.0, n, prob, mechanism=mechanism, known=3, known_positive=np.arange(4))
    assert worst == pytest.approx(every.max(), rel=1e-12)


def test_the_worst_case_of_known_entries_is_over_every_count():
    epsilon, sampling = np.array([0.1, 0.4]), sp.SamplingWithReplacement(size=12)
    every = sp.delta(
        10, 0.4, epsilon=epsilon, mechanism=sampling, known=4, known_positive=np.arange(5)[:, None]
    )
    found = sp.delta(10, 0.4, epsilon=epsilon, mechanism=sampling, known=4)
    np.testing.assert_allclose(found, every.max(axis=0))


def test_many_draws_tell_the_whole_answer_and_one_draw_is_a_sample_of_one():
    epsilon = np.linspace(0.0, 1.0, 5)
    many = sp.delta(8, 0.4, epsilon=epsilon, mechanism=sp.SamplingWithReplacement(size=20_000))
    np.testing.assert_allclose(many, sp.delta(8, 0.4, epsilon=epsilon), rtol=1e-6)
    one = sp.delta(8, 0.4, epsilon=epsilon, mechanism=sp.SamplingWithReplacement(size=1))
    without = sp.delta(8, 0.4, epsilon=epsilon, mechanism=sp.Subsampling(size=1))
    np.testing.assert_allclose(one, without, rtol=1e-12)


def test_exchangeable_entries_drawn_with_replacement():
    """By the mixture over the common probability, entry by entry, in many digits."""
    n, drawn, alpha, beta = 7, 9, 2.0, 3.0
    sampling = sp.SamplingWithReplacement(size=drawn)
    with mp.workdps(40):

        def draws(a, b, critical):
            out = [mp.mpf(0)] * (drawn + 1)
            for g in range(n):
                weight = mp.binomial(n - 1, g) * mp.beta(g + a, n - 1 - g + b) / mp.beta(a, b)
                for j, mass in enumerate(exact.binomial(drawn, mp.mpf(g + critical) / n)):
                    out[j] += weight * mass
            return out

        plus, minus = draws(alpha + 1, beta, 1), draws(alpha, beta + 1, 0)
        for epsilon in (0.0, 0.3, 1.2):
            truth = max(
                exact.hockey_stick(plus, minus, epsilon=epsilon),
                exact.hockey_stick(minus, plus, epsilon=epsilon),
            )
            found = sp.beta_binomial_delta(n, alpha, beta, epsilon=epsilon, mechanism=sampling)
            assert found == pytest.approx(float(truth), rel=1e-10, abs=1e-15)


UNLIKE = [0.1, 0.35, 0.5, 0.8, 0.95]


@pytest.mark.parametrize("drawn", [1, 2, 4, 5])
def test_samples_of_unlike_entries_agree_with_all_databases_and_all_samples(drawn):
    epsilon = np.linspace(0.0, 3.0, 13)
    ones = np.ones(5, dtype=int)
    without = list(itertools.combinations(range(5), drawn))
    again = list(itertools.product(range(5), repeat=drawn))
    for sampling, samples in (
        (sp.Subsampling(size=drawn), without),
        (sp.SamplingWithReplacement(size=drawn), again),
    ):
        found = sp.group_delta(ones, UNLIKE, epsilon=epsilon, mechanism=sampling)
        for critical in range(5):
            plus, minus = enumerated(UNLIKE, critical, samples)
            truth = np.maximum(exact_sum(plus, minus, epsilon), exact_sum(minus, plus, epsilon))
            np.testing.assert_allclose(found[:, critical], truth, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_samples_of_unlike_entries_with_noise(family):
    kind = {"gaussian": sp.GaussianNoise, "laplace": sp.LaplaceNoise}[family]
    drawn, epsilon = 3, 0.4
    samples = list(itertools.combinations(range(5), drawn))
    mechanism = (sp.Subsampling(size=drawn), kind(0.2))
    found = sp.group_delta(np.ones(5, dtype=int), UNLIKE, epsilon=epsilon, mechanism=mechanism)
    for critical in range(5):
        plus, minus = enumerated(UNLIKE, critical, samples)
        with mp.workdps(30):
            scale = mp.mpf(0.2) * drawn
            truth = max(
                exact.noisy_delta(list(plus), list(minus), epsilon, family, scale),
                exact.noisy_delta(list(minus[::-1]), list(plus[::-1]), epsilon, family, scale),
            )
        assert found[critical] == pytest.approx(float(truth), rel=1e-8)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4), prob=st.floats(0.05, 0.95))
def test_samples_of_like_groups_are_samples_of_one_database(sizes, prob):
    n = sum(sizes) + 1
    sizes, epsilon = [*sizes, 1], np.linspace(0.0, 1.0, 4)
    for mechanism in (
        sp.Subsampling(rate=0.6),
        (sp.Subsampling(rate=0.6), sp.LaplaceNoise(0.1)),
        sp.SamplingWithReplacement(rate=1.4),
    ):
        found = sp.group_delta(sizes, [prob] * len(sizes), epsilon=epsilon, mechanism=mechanism)
        whole = sp.delta(n, prob, epsilon=epsilon, mechanism=mechanism)
        np.testing.assert_allclose(found, np.tile(whole[:, None], len(sizes)), rtol=1e-9)


def test_what_takes_no_sample_with_replacement_says_so():
    sampling = sp.SamplingWithReplacement(size=5)
    for function in (
        lambda: sp.normal_approximation(10, 0.3, epsilon=0.1, mechanism=sampling),
        lambda: sp.differential_privacy_delta(10, epsilon=0.1, mechanism=sampling),
    ):
        with pytest.raises(InvalidInputError, match="only Subsampling, without replacement"):
            function()
    with pytest.raises(InvalidInputError, match="use fewer draws or a smaller n"):
        sp.delta(10**9, 0.3, epsilon=0.1, mechanism=sp.SamplingWithReplacement(size=10**6))
    with pytest.raises(InvalidInputError, match="sample size must be at most n"):
        sp.group_delta([2, 2], [0.3, 0.4], epsilon=0.1, mechanism=sp.Subsampling(size=5))
