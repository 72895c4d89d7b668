"""Utility loss, matching, the best mechanism, and the theorem on subsampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy import approximations, curves


def literal_error(n, drawn, prob):
    """Distances of sample and true share, and their probabilities."""
    k, r = np.arange(drawn + 1)[:, None], np.arange(n - drawn + 1)
    weight = stats.binom.pmf(k, drawn, prob) * stats.binom.pmf(r, n - drawn, prob)
    return k / drawn - (k + r) / n, weight


@pytest.mark.parametrize(("n", "drawn", "prob"), [(20, 7, 0.3), (200, 50, 0.02), (150, 149, 0.5)])
def test_losses_of_a_sample_by_hand(n, drawn, prob):
    error, weight = literal_error(n, drawn, prob)
    sampling = sp.Subsampling(size=drawn)
    squared = sp.utility_loss(n, prob, sampling)
    assert squared == pytest.approx((weight * error**2).sum(), rel=1e-9)
    absolute = sp.utility_loss(n, prob, sampling, kind="absolute")
    assert absolute == pytest.approx((weight * np.abs(error)).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "distribution"),
    [(sp.GaussianNoise(0.01), stats.norm), (sp.LaplaceNoise(0.01), stats.laplace)],
    ids=["gaussian", "laplace"],
)
def test_losses_of_noise(noise, distribution):
    assert sp.utility_loss(50, 0.3, noise) == pytest.approx(distribution.var(scale=0.01))
    mean = 2 * distribution.expect(lambda x: x, lb=0.0, scale=0.01)
    assert sp.utility_loss(50, 0.3, noise, kind="absolute") == pytest.approx(mean, rel=1e-6)
    both = (sp.Subsampling(size=10), noise)
    parts = sp.utility_loss(50, 0.3, both[0]) + sp.utility_loss(50, 0.3, noise)
    assert sp.utility_loss(50, 0.3, both) == pytest.approx(parts)
    error, weight = literal_error(50, 10, 0.3)
    x = distribution.ppf((np.arange(20_000) + 0.5) / 20_000, scale=0.01)
    literal = sum(
        w * np.abs(e + x).mean()
        for e, w in zip(error.ravel(), weight.ravel(), strict=True)
        if w > 1e-9
    )
    assert sp.utility_loss(50, 0.3, both, kind="absolute") == pytest.approx(literal, rel=1e-4)


def test_no_mechanism_loses_nothing():
    assert sp.utility_loss(50, 0.3) == 0.0
    assert sp.utility_loss(50, 0.3, sp.Subsampling(rate=1.0), kind="absolute") == 0.0
    assert sp.utility_loss([50, 60], [[0.3], [0.4]], sp.Subsampling(size=5)).shape == (2, 2)


def test_absolute_loss_of_a_huge_sample_is_that_of_a_normal_error():
    n, drawn, prob = 10**9, 10**7, 0.3
    squared = sp.utility_loss(n, prob, sp.Subsampling(size=drawn))
    absolute = sp.utility_loss(n, prob, sp.Subsampling(size=drawn), kind="absolute")
    assert absolute == pytest.approx(math.sqrt(squared * 2 / math.pi), rel=1e-6)


@pytest.mark.parametrize("noise", [sp.GaussianNoise, sp.LaplaceNoise])
@pytest.mark.parametrize("kind", ["squared", "absolute"])
def test_matching_goes_there_and_back(noise, kind):
    n, prob, sampling = 400, 0.2, sp.Subsampling(size=100)
    matched = sp.matching_scale(sampling, n, prob, noise, kind=kind)
    assert sp.utility_loss(n, prob, matched, kind=kind) == pytest.approx(
        sp.utility_loss(n, prob, sampling, kind=kind), rel=1e-12
    )
    rate = sp.matching_rate(noise(matched.scale * (1 + 1e-12)), n, prob, kind=kind)
    assert rate == pytest.approx(0.25, rel=1e-9)


def test_the_best_mechanism_cannot_be_weakened():
    n, prob, epsilon, target = 500, 0.1, 0.2, 1e-4
    best = sp.least_utility_loss(n, prob, epsilon=epsilon, delta=target)
    every = (best, *best.alternatives)
    assert {type(c.mechanism).__name__ for c in every} == {
        "Subsampling", "GaussianNoise", "LaplaceNoise"
    }  # fmt: skip
    assert [c.utility_loss for c in every] == sorted(c.utility_loss for c in every)
    for choice in every:
        assert choice.delta <= target
        assert choice.delta == sp.delta(n, prob, epsilon=epsilon, mechanism=choice.mechanism)
        assert choice.utility_loss == sp.utility_loss(n, prob, choice.mechanism)
        weaker = (
            sp.Subsampling(size=choice.mechanism.size + 1)
            if isinstance(choice.mechanism, sp.Subsampling)
            else type(choice.mechanism)(choice.mechanism.scale * (1 - 1e-6))
        )
        assert sp.delta(n, prob, epsilon=epsilon, mechanism=weaker) > target


def test_the_best_mechanism_at_its_ends():
    assert sp.least_utility_loss(1000, 0.3, epsilon=0.5, delta=0.5).mechanism is None
    only = sp.least_utility_loss(100, 0.3, epsilon=0.5, delta=0.0)
    scales = {type(c.mechanism): c.mechanism for c in (only, *only.alternatives)}
    assert scales[sp.LaplaceNoise].scale == pytest.approx(0.02, rel=1e-8)
    assert sp.GaussianNoise not in scales
    with pytest.raises(InvalidInputError, match="no mechanism reaches"):
        sp.least_utility_loss(100, 0.3, epsilon=0.0, delta=0.0)


def directional(epsilon, n, prob, drawn, plus):
    bound = approximations.subsampling_bound_by_direction(
        n, prob, sp.Subsampling(size=drawn), (plus,), epsilon=epsilon
    )
    curve = curves.delta_plus if plus else curves.delta_minus
    return bound, curve(n, prob, epsilon=epsilon, mechanism=sp.Subsampling(size=drawn))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    drawn=st.integers(2, 5000),
    more=st.integers(0, 5000),
    prob=st.floats(1e-4, 1 - 1e-4),
    epsilon=st.floats(0.0, 5.0),
    plus=st.booleans(),
)
def test_the_theorem_on_subsampling(drawn, more, prob, epsilon, plus):
    bound, true = directional(epsilon, drawn + more, prob, drawn, plus)
    assert true <= bound * (1 + 1e-11) + 1e-300


def test_the_sharper_bound_over_a_grid():
    epsilon = np.linspace(0.0, 0.5, 11)[:, None]
    prob = np.array([0.01, 0.1, 0.5, 0.9])
    margins = []
    for n in (50, 1000, 10**6):
        for rate in (0.1, 0.5, 0.9):
            drawn = int(rate * n)
            inner = np.log1p(np.expm1(epsilon) / rate)
            conjecture = rate * sp.delta(drawn, prob, epsilon=inner)
            bound = sp.subsampling_bound(n, prob, sp.Subsampling(size=drawn), epsilon=epsilon)
            true = sp.delta(n, prob, epsilon=epsilon, mechanism=sp.Subsampling(size=drawn))
            assert (bound <= conjecture * (1 + 1e-12)).all()
            assert (true <= bound * (1 + 1e-11)).all()
            margins.append((true[bound > 1e-250] / bound[bound > 1e-250]).max())
    assert max(margins) == pytest.approx(1.0, abs=1e-9)  # attained at epsilon = 0
    assert min(margins) > 0.9


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    drawn=st.integers(2, 2000),
    more=st.integers(1, 2000),
    prob=st.floats(1e-3, 1 - 1e-3),
    epsilon=st.floats(0.0, 1.0),
)
def test_subsampling_is_a_pure_curve_at_another_epsilon(drawn, more, prob, epsilon):
    """The identity behind the theorem: lambda k delta_plus of the m entries, exactly."""
    n, growth = drawn + more, math.exp(epsilon)
    rate = drawn / n
    inner = 1 + (growth - 1) / rate
    beta = growth / inner
    share = (1 - beta) * (1 - prob) + beta
    k = 1 - inner * (1 - share)
    found = sp.delta_plus(n, prob, epsilon=epsilon, mechanism=sp.Subsampling(size=drawn))
    if k <= 0:
        assert found == 0.0
        return
    expected = rate * k * sp.delta_plus(drawn, prob, epsilon=math.log(inner * share / k))
    if expected > 1e-200:
        assert found == pytest.approx(expected, rel=1e-7)
