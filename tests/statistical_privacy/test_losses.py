"""The privacy loss: its curve, composition and mixtures, against enumeration and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from tests.exact_sums import exact_sum

EPSILON = np.array([0.0, 0.1, 0.5, 1.3, 4.0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"known": 3},
        {"mechanism": sp.Subsampling(size=7)},
        {"mechanism": sp.Subsampling(size=7), "known": 5, "known_positive": 2},
        {"mechanism": sp.SamplingWithReplacement(size=30)},
        {"mechanism": sp.SamplingWithReplacement(size=4), "known": 5, "known_positive": 0},
    ],
)
def test_the_loss_of_a_property_query_has_its_curve(options):
    query = sp.PropertyQuery(20, 0.3, **options)
    for direction, curve in (("plus", query.delta_plus), ("minus", query.delta_minus)):
        loss = query.privacy_loss(direction=direction)
        np.testing.assert_allclose(
            loss.delta(epsilon=EPSILON), curve(epsilon=EPSILON), rtol=1e-10, atol=1e-15
        )
        assert (loss.exceeds(epsilon=EPSILON) >= loss.delta(epsilon=EPSILON)).all()
        assert loss.delta(epsilon=np.inf) == pytest.approx(curve(epsilon=np.inf), rel=1e-12)


def test_a_sample_never_has_an_infinite_loss_even_where_masses_underflow():
    for n in (400, 3000):
        loss = sp.privacy_loss(n, 0.001, mechanism=sp.Subsampling(rate=0.9))
        assert loss.infinite == 0.0
        assert math.isfinite(loss.mean())
    assert sp.privacy_loss(5, 0.3).infinite == pytest.approx(0.3**4)
    assert sp.privacy_loss(5, 0.3).mean() == math.inf


masses = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=4)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(p=masses, data=st.data(), times=st.integers(1, 4))
def test_small_compositions_are_the_exact_product(p, data, times):
    q = data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(p), max_size=len(p)))
    q[0] = q[0] + 0.1
    p, q = np.array(p) / sum(p), np.array(q) / sum(q)
    loss = sp.PrivacyLoss.of_masses(p, q).composed(times)
    several = [
        np.array([np.prod(c) for c in itertools.product(side, repeat=times)]) for side in (p, q)
    ]
    truth = exact_sum(*several, EPSILON)
    np.testing.assert_allclose(loss.delta(epsilon=EPSILON), truth, rtol=1e-9, atol=1e-13)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(p=st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3), data=st.data())
def test_large_compositions_are_never_below_the_truth(p, data):
    """By all counts of three answers among 40 releases."""
    q = data.draw(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3))
    times = 40
    p, q = np.array(p) / sum(p), np.array(q) / sum(q)
    found = sp.PrivacyLoss.of_masses(p, q).composed(times).delta(epsilon=EPSILON)
    counts = [(i, j, times - i - j) for i in range(times + 1) for j in range(times + 1 - i)]
    several = [np.exp(stats.multinomial.logpmf(counts, times, side)) for side in (p, q)]
    truth = exact_sum(*several, EPSILON)
    assert (found >= truth - 1e-13).all()
    np.testing.assert_allclose(found, truth, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("times", [17, 100, 1000, 30_000])
def test_compositions_of_randomised_response_have_a_closed_form(times):
    step = 2.0 / times**0.5
    p = 1.0 / (1.0 + math.exp(-step))
    found = sp.PrivacyLoss.of_masses([p, 1.0 - p], [1.0 - p, p]).composed(times)
    j = np.arange(times + 1)
    losses, weights = (2.0 * j - times) * step, stats.binom.pmf(j, times, p)
    truth = [(weights * -np.expm1(np.minimum(e - losses, 0.0))).sum() for e in EPSILON]
    assert (found.delta(epsilon=EPSILON) >= np.array(truth) - 1e-12).all()
    np.testing.assert_allclose(found.delta(epsilon=EPSILON), truth, rtol=0.0, atol=1e-6)
    assert found.infinite < 1e-7


@settings(derandomize=True, deadline=None, max_examples=40)
@given(p=st.floats(1e-9, 1.0 - 1e-9), q=st.floats(1e-9, 1.0 - 1e-9), times=st.integers(17, 100_000))
@pytest.mark.full
def test_compositions_of_two_answers_far_apart_have_a_closed_form(p, q, times):
    found = sp.PrivacyLoss.of_masses([p, 1.0 - p], [q, 1.0 - q]).composed(times)
    j = np.arange(times + 1)
    losses = j * np.log(p / q) + (times - j) * (np.log1p(-p) - np.log1p(-q))
    weights = stats.binom.pmf(j, times, p)
    truth = [(weights * -np.expm1(np.minimum(e - losses, 0.0))).sum() for e in EPSILON]
    # the masses of the binomial distribution are themselves right to 1e-12 or so
    assert (found.delta(epsilon=EPSILON) >= np.array(truth) - 1e-10).all()
    np.testing.assert_allclose(found.delta(epsilon=EPSILON), truth, rtol=0.0, atol=1e-3)


def test_the_composed_property_query_is_close_to_the_literal_convolution():
    loss = sp.privacy_loss(300, 0.2, mechanism=sp.Subsampling(size=100))
    twice = sp.PrivacyLoss(  # by hand, on all pairs of atoms
        *_joined_by_hand(loss), infinite=0.0
    )
    found = loss.composed(2).composed(2).delta(epsilon=EPSILON)
    truth = twice.joined(twice).delta(epsilon=EPSILON)
    assert (found >= truth - 1e-11).all()
    np.testing.assert_allclose(found, truth, atol=1e-7)


def _joined_by_hand(loss):
    values, place = np.unique(np.add.outer(loss.losses, loss.losses).ravel(), return_inverse=True)
    return values, np.bincount(place, np.outer(loss.masses, loss.masses).ravel())


def test_joining_different_losses():
    one = sp.PrivacyLoss.of_masses([0.2, 0.3, 0.5], [0.5, 0.5, 0.0])
    other = sp.PrivacyLoss.of_masses([0.6, 0.4], [0.3, 0.7])
    p = np.outer([0.2, 0.3, 0.5], [0.6, 0.4]).ravel()
    q = np.outer([0.5, 0.5, 0.0], [0.3, 0.7]).ravel()
    found = one.joined(other)
    np.testing.assert_allclose(found.delta(epsilon=EPSILON), exact_sum(p, q, EPSILON), rtol=1e-12)
    assert found.infinite == pytest.approx(0.5)
    fine, coarse = (sp.privacy_loss(n, 0.3, mechanism=sp.Subsampling(rate=0.5)) for n in (900, 600))
    both = fine.joined(coarse)
    assert fine.losses.size * coarse.losses.size > 2**16
    sums = np.add.outer(fine.losses, coarse.losses)
    weight = np.outer(fine.masses, coarse.masses)
    truth = [(weight * -np.expm1(np.minimum(e - sums, 0.0))).sum() for e in EPSILON]
    assert (both.delta(epsilon=EPSILON) >= np.array(truth) - 1e-14).all()
    np.testing.assert_allclose(both.delta(epsilon=EPSILON), truth, atol=1e-8)


def test_quantiles_and_tails_by_definition():
    loss = sp.PrivacyLoss([-1.0, 0.2, 0.7], [0.1, 0.4, 0.3], 0.2)
    assert loss.exceeds(epsilon=[0.0, 0.2, 0.69, 0.7, 9.0]) == pytest.approx(
        [0.9, 0.5, 0.5, 0.2, 0.2]
    )
    found = loss.quantile([0.0, 0.05, 0.3, 0.6, 0.79, 0.9, 1.0])
    assert found.tolist() == [-1.0, -1.0, 0.2, 0.7, 0.7, math.inf, math.inf]
    assert loss.quantile(0.4) == 0.2
    assert loss.delta(epsilon=0.5) == pytest.approx(0.2 + 0.3 * (1 - math.exp(-0.2)))
    assert sp.PrivacyLoss([0.0], [1.0]).delta(epsilon=0.0) == 0.0
    assert sp.PrivacyLoss([], [], 1.0).composed(1000).delta(epsilon=3.0) == 1.0


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    weight=st.floats(0.0, 1.0),
    first=st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
    second=st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
)
def test_a_mixture_that_is_told_bounds_one_that_is_not(weight, first, second):
    pairs = [(np.array(x[:3]) / sum(x[:3]), np.array(x[3:]) / sum(x[3:])) for x in (first, second)]
    told = sp.PrivacyLoss.mixture(
        [sp.PrivacyLoss.of_masses(*pair) for pair in pairs], [weight, 1.0 - weight]
    ).delta(epsilon=EPSILON)
    mean = weight * exact_sum(*pairs[0], EPSILON) + (1 - weight) * exact_sum(*pairs[1], EPSILON)
    np.testing.assert_allclose(told, mean, rtol=1e-9, atol=1e-14)
    p, q = (weight * pairs[0][k] + (1 - weight) * pairs[1][k] for k in (0, 1))
    assert (exact_sum(p, q, EPSILON) <= told + 1e-14).all()


def test_losses_that_are_none_say_why():
    for arguments, words in (
        (([0.0, 0.0], [0.5, 0.5]), "losses must increase"),
        (([0.0], [0.5, 0.5]), "one length"),
        (([0.0, 1.0], [0.0, 1.0]), "masses must be above 0"),
        (([0.0], [1.1], -0.1), "masses must be above 0"),
        (([0.0], [0.8], 0.1), "must have the sum 1, found 0.9"),
        (([-1.0], [1.0]), "not the losses of two distributions"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            sp.PrivacyLoss(*arguments)
    loss = sp.PrivacyLoss([0.0], [1.0])
    with pytest.raises(InvalidInputError, match="prob must lie in"):
        loss.quantile(1.1)
    with pytest.raises(InvalidInputError, match="same answers"):
        sp.PrivacyLoss.of_masses([1.0], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="p must not be negative"):
        sp.PrivacyLoss.of_masses([-1.0, 2.0], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="one value for each of 2"):
        sp.PrivacyLoss.mixture([loss, loss], [1.0])
    with pytest.raises(InputTypeError, match="must be PrivacyLoss"):
        loss.joined(0.3)
    with pytest.raises(InvalidInputError, match="without noise"):
        sp.privacy_loss(10, 0.3, mechanism=sp.LaplaceNoise(0.1))
    with pytest.raises(InvalidInputError, match="known_positive must be given"):
        sp.privacy_loss(10, 0.3, mechanism=sp.Subsampling(size=3), known=2)
    with pytest.raises(InputTypeError, match="single numbers"):
        sp.privacy_loss([10, 12], 0.3)
    with pytest.raises(InvalidInputError, match="direction"):
        sp.privacy_loss(10, 0.3, direction="both")
