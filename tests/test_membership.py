"""Epsilon from the counts of a membership-inference attack."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from edp_bayes.black_box.membership import epsilon_from_membership
from edp_bayes.exceptions import InputTypeError, InvalidInputError

PUBLISHED = {
    "true_positives": 487,
    "true_negatives": 1,
    "false_positives": 512,
    "false_negatives": 0,
    "delta": 1e-5,
}


def brute_force(counts, delta, size, seed):
    """Epsilon of Beta draws, as the four ratios are written down."""
    rng = np.random.default_rng(seed)
    tpr = rng.beta(counts["true_positives"] + 0.5, counts["false_negatives"] + 0.5, size)
    fpr = rng.beta(counts["false_positives"] + 0.5, counts["true_negatives"] + 0.5, size)
    pairs = ((tpr, fpr), (1 - fpr, 1 - tpr), (1 - tpr, 1 - fpr), (fpr, tpr))
    with np.errstate(divide="ignore"):
        ratios = [np.maximum(a - delta, 0.0) / np.maximum(b, 1e-300) for a, b in pairs]
        return np.maximum(np.log(np.max(ratios, axis=0)), 0.0)


def test_the_published_example():
    low, high = epsilon_from_membership(**PUBLISHED, random_seed=1).interval(0.9)
    assert low == pytest.approx(0.144, abs=0.01)
    assert high == pytest.approx(6.41, abs=0.01)


def test_the_published_example_takes_less_than_a_second():
    epsilon_from_membership(**PUBLISHED, random_seed=1).interval(0.9)
    start = time.process_time()
    epsilon_from_membership(**PUBLISHED, random_seed=2).interval(0.9)
    assert time.process_time() - start < 1.0


@pytest.mark.full
@settings(derandomize=True, deadline=None, max_examples=8)
@given(
    members=st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(any),
    others=st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(any),
    delta=st.sampled_from([0.0, 1e-5, 0.05, 0.3]),
)
def test_interval_and_draws_agree_with_brute_force(members, others, delta):
    counts = {
        "true_positives": members[0],
        "false_negatives": members[1],
        "false_positives": others[0],
        "true_negatives": others[1],
    }
    found = epsilon_from_membership(**counts, delta=delta, draws=5_000, chains=4, random_seed=1)
    values = brute_force(counts, delta, 20_000, 2)
    for probe in np.quantile(values, [0.05, 0.5, 0.95]):
        expected = np.mean(values <= probe)
        assert found.cdf(epsilon=probe) == pytest.approx(expected, abs=0.02)
        assert np.mean(found.draws.to_numpy() <= probe) == pytest.approx(expected, abs=0.03)
    low, high = found.interval(0.8)
    assert 0.0 <= low <= high
    if low > 0.0:
        assert found.cdf(epsilon=low) == pytest.approx(0.1, abs=1e-8)
    assert found.cdf(epsilon=high) >= 0.9 - 1e-8


def test_cdf_against_two_dimensional_quadrature():
    found = epsilon_from_membership(
        true_positives=30, false_negatives=10, false_positives=12, true_negatives=25, delta=0.02
    )
    u = (np.arange(1500) + 0.5) / 1500
    tpr = stats.beta.ppf(u, 30.5, 10.5)[:, None]
    fpr = stats.beta.ppf(u, 12.5, 25.5)
    for level in (0.3, 0.8, 1.5):
        growth = math.exp(level)
        holds = (
            (tpr - 0.02 <= growth * fpr)
            & (1 - fpr - 0.02 <= growth * (1 - tpr))
            & (1 - tpr - 0.02 <= growth * (1 - fpr))
            & (fpr - 0.02 <= growth * tpr)
        )
        assert found.cdf(epsilon=level) == pytest.approx(holds.mean(), abs=1e-3)
    assert found.cdf(epsilon=-1.0) == 0.0
    assert found.cdf(epsilon=600.0) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        ((500_000, 500_000, 50, 50), 0.0),
        ((500_000, 500_000, 9, 12), 0.01),
        ((990_000, 10_000, 10_000, 990_000), 0.0),
        ((900_000, 100_000, 2, 8), 0.0),
    ],
)
def test_cdf_where_one_rate_is_known_far_better(counts, delta):
    """Against a dense grid of quantiles of the false positive rate."""
    hits, misses, alarms, quiet = counts
    posterior = epsilon_from_membership(
        true_positives=hits,
        false_negatives=misses,
        false_positives=alarms,
        true_negatives=quiet,
        delta=delta,
        random_seed=1,
    )
    f = special.betaincinv(alarms + 0.5, quiet + 0.5, (np.arange(100_000) + 0.5) / 100_000)
    for epsilon in np.quantile(posterior.draws, [0.03, 0.3, 0.7]):
        growth = math.exp(epsilon)
        high = np.minimum(growth * f + delta, 1 - (1 - f - delta) / growth)
        low = np.maximum((f - delta) / growth, 1 - growth * (1 - f) - delta)
        ends = [
            special.betainc(hits + 0.5, misses + 0.5, np.clip(end, 0.0, 1.0)) for end in (low, high)
        ]
        truth = np.maximum(ends[1] - ends[0], 0.0).mean()
        assert posterior.cdf(epsilon=epsilon) == pytest.approx(truth, abs=1e-6)


def test_a_perfect_attack_leaves_a_finite_interval():
    found = epsilon_from_membership(
        true_positives=10**6,
        false_negatives=0,
        false_positives=0,
        true_negatives=10**6,
        random_seed=1,
    )
    low, high = found.interval(0.9)
    assert 12.0 < low < high < 40.0
    assert np.isfinite(found.draws).all()


def test_draws_have_the_dims_of_arviz_and_follow_the_seed():
    runs = [
        epsilon_from_membership(**PUBLISHED, draws=50, chains=2, random_seed=s) for s in (1, 1, 2)
    ]
    assert runs[0].draws.dims == ("chain", "draw")
    assert runs[0].draws.shape == (2, 50)
    assert runs[0].draws.attrs["random_seed"] == 1
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    assert not np.array_equal(runs[0].draws, runs[2].draws)


def test_default_probability_is_that_of_arviz():
    from arviz_base import rc_context

    found = epsilon_from_membership(**PUBLISHED)
    with rc_context({"stats.ci_prob": 0.9}):
        assert found.interval() == found.interval(0.9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"true_positives": -1}, InvalidInputError, "true_positives must not be negative"),
        ({"false_positives": 2.5}, InputTypeError, "false_positives must be a count"),
        ({"true_positives": 0}, InvalidInputError, "members"),
        ({"true_negatives": 0, "false_positives": 0}, InvalidInputError, "non-members"),
        ({"delta": 1.0}, InvalidInputError, "delta"),
        ({"delta": -0.1}, InvalidInputError, "delta"),
        ({"delta": math.nan}, InvalidInputError, "delta"),
        ({"draws": 0}, InvalidInputError, "draws"),
    ],
    ids=str,
)
def test_bad_input_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        epsilon_from_membership(**{**PUBLISHED, **change})


def test_bad_probability_is_refused():
    with pytest.raises(InvalidInputError, match="prob"):
        epsilon_from_membership(**PUBLISHED).interval(1.0)


@pytest.mark.parametrize(
    ("seed", "error"),
    [(-1, InvalidInputError), (np.random.default_rng(1), InputTypeError)],
    ids=["negative", "generator"],
)
def test_bad_seeds_are_refused(seed, error):
    with pytest.raises(error, match="random_seed"):
        epsilon_from_membership(**PUBLISHED, random_seed=seed)
