"""Errors of estimates of the probability, samples with replacement, and mixtures of queries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from tests.exact_sums import exact_sum

KINDS = {"squared": np.square, "absolute": np.abs}


def draws(n, drawn, prob):
    """Shares of all draws and of all databases, and their probabilities, by the definition."""
    shares, truths, weights = [], [], []
    for database in itertools.product([0, 1], repeat=n):
        weight = np.prod([prob if x else 1 - prob for x in database])
        for sample in itertools.product(database, repeat=drawn):
            shares.append(np.mean(sample))
            truths.append(np.mean(database))
            weights.append(weight / n**drawn)
    return np.array(shares), np.array(truths), np.array(weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "drawn"), [(2, 3), (4, 2), (4, 4)])
def test_losses_of_draws_with_replacement_by_enumeration(kind, n, drawn):
    prob, size = 0.3, KINDS[kind]
    shares, truths, weights = draws(n, drawn, prob)
    sampling = sp.SamplingWithReplacement(size=drawn)
    found = sp.utility_loss(n, prob, sampling, kind=kind)
    assert found == pytest.approx(weights @ size(shares - truths), rel=1e-12)
    found = sp.inference_loss(n, prob, sampling, kind=kind)
    assert found == pytest.approx(weights @ size(shares - prob), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drawn", [1, 7, 30])
def test_inference_from_a_sample_is_inference_from_a_smaller_database(kind, drawn):
    n, prob = 30, 0.2
    shares = np.arange(drawn + 1) / drawn
    truth = stats.binom.pmf(np.arange(drawn + 1), drawn, prob) @ KINDS[kind](shares - prob)
    found = sp.inference_loss(n, prob, sp.Subsampling(size=drawn), kind=kind)
    assert found == pytest.approx(truth, rel=1e-12)
    if drawn > 1:
        assert found == pytest.approx(sp.inference_loss(drawn, prob, kind=kind), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("noise", "density"),
    [(sp.GaussianNoise(0.1), stats.norm), (sp.LaplaceNoise(0.1), stats.laplace)],
)
@pytest.mark.parametrize("replaced", [False, True])
def test_losses_with_noise_by_quadrature(kind, noise, density, replaced):
    n, drawn, prob, size = 4, 3, 0.3, KINDS[kind]
    sampling = (sp.SamplingWithReplacement if replaced else sp.Subsampling)(size=drawn)
    if replaced:
        shares, truths, weights = draws(n, drawn, prob)
    else:
        shares = np.arange(drawn + 1) / drawn
        weights, truths = stats.binom.pmf(np.arange(drawn + 1), drawn, prob), None

    def moved(distance):
        return integrate.quad(
            lambda x: size(distance + x) * density.pdf(x, scale=0.1), -4, 4,
            points=[-distance, 0.0], limit=200,
        )[0]  # fmt: skip

    def mean(distances):
        values, place = np.unique(distances.round(12), return_inverse=True)
        return np.bincount(place, weights) @ [moved(d) for d in values]

    mechanism = (sampling, noise)
    found = sp.inference_loss(n, prob, mechanism, kind=kind)
    assert found == pytest.approx(mean(shares - prob), rel=1e-6)
    if replaced:
        found = sp.utility_loss(n, prob, mechanism, kind=kind)
        assert found == pytest.approx(mean(shares - truths), rel=1e-6)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(n=st.integers(2, 400), prob=st.floats(0.01, 0.99), rate=st.floats(0.5, 1.0))
def test_a_squared_inference_loss_is_that_of_the_database_and_of_the_mechanism(n, prob, rate):
    for mechanism in (
        None,
        sp.Subsampling(rate=rate),
        sp.SamplingWithReplacement(rate=rate),
        (sp.Subsampling(rate=rate), sp.LaplaceNoise(0.01)),
    ):
        both = sp.inference_loss(n, prob) + sp.utility_loss(n, prob, mechanism)
        query = sp.PropertyQuery(n, prob, mechanism)
        assert query.inference_loss() == pytest.approx(both, rel=1e-12)
        assert query.inference_loss(kind="absolute") <= both**0.5 * (1 + 1e-12)


def test_inference_from_huge_databases():
    loss = sp.inference_loss(10**9, [0.1, 0.5], kind="absolute")
    normal = np.sqrt(2 / np.pi * np.array([0.09, 0.25]) / 1e9)
    np.testing.assert_allclose(loss, normal, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="kind"):
        sp.inference_loss(10, 0.3, kind="median")


def test_a_mixture_of_queries_against_every_pair_of_values():
    """Two properties of one entry; the answers are told apart by their query, or not."""
    epsilon, weights = np.linspace(0.0, 2.0, 9), [0.3, 0.7]
    n, probs = 6, (0.3, 0.6)
    bound = sp.mixture_delta([sp.PropertyQuery(n, p) for p in probs], weights, epsilon=epsilon)
    worst = {True: np.zeros(9), False: np.zeros(9)}
    for first, second in itertools.product(itertools.product([0, 1], repeat=2), repeat=2):
        for told in (True, False):
            sides = [
                _answer([stats.binom.pmf(np.arange(n + 1) - x, n - 1, p)
                         for x, p in zip(value, probs, strict=True)], weights, told)
                for value in (first, second)
            ]  # fmt: skip
            np.maximum(worst[told], exact_sum(*sides, epsilon), out=worst[told])
    np.testing.assert_allclose(worst[True], bound, rtol=1e-9, atol=1e-14)
    assert (worst[False] <= bound + 1e-14).all()


def _answer(masses, weights, told):
    parts = [w * mass for w, mass in zip(weights, masses, strict=True)]
    return np.concatenate(parts) if told else sum(parts)


def test_a_mixture_of_one_query_is_that_query_and_bad_mixtures_say_why():
    query = sp.PropertyQuery(30, 0.2, sp.LaplaceNoise(0.1))
    assert sp.mixture_delta([query], [1.0], epsilon=0.1) == query.delta(epsilon=0.1)
    with pytest.raises(InputTypeError, match="queries must be PropertyQuery, found 3"):
        sp.mixture_delta([query, 3], [0.5, 0.5], epsilon=0.1)
    with pytest.raises(InvalidInputError, match=r"weights must have the sum 1, found 0\.9"):
        sp.mixture_delta([query, query], [0.5, 0.4], epsilon=0.1)
    with pytest.raises(InvalidInputError, match="one value for each of 1"):
        sp.mixture_delta([query], [0.5, 0.5], epsilon=0.1)
