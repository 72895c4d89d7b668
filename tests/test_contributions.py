"""The contribution distribution against brute force, and its pooling against known populations."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import edp_bayes as edp
from edp_bayes.coupling.contributions import pooling
from edp_bayes.coupling.contributions import posterior as contributions
from edp_bayes.coupling.contributions.posterior import ContributionPosterior


def make_responses(contribution, rest):
    response = rest + contribution.sum(axis=1)
    return edp.Responses.from_arrays(response, contribution=sp.csc_array(contribution))


@pytest.fixture
def steady():
    rng = np.random.default_rng(5)
    return make_responses(0.4 + 0.1 * rng.standard_normal((40, 1)), rng.normal(5.0, 1.0, 40))


def test_posterior_of_one_individual_is_the_conjugate_regression(steady):
    posterior = ContributionPosterior.fit(steady, 0)
    c = steady.contribution.toarray()[:, 0]
    y = steady.response
    rest = y - c - (y.mean() - c.mean())
    design = np.column_stack([np.ones_like(c), rest])
    precision = design.T @ design + np.diag(
        [contributions.FLAT, contributions.INDEPENDENCE_WEIGHT * rest.var()]
    )
    mean = np.linalg.solve(precision, design.T @ c)
    np.testing.assert_allclose(posterior.mean[0], mean, rtol=1e-9)
    covariance = posterior.factor[0] @ posterior.factor[0].T
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-9)


def test_draws_of_an_individual_do_not_depend_on_who_else_is_drawn():
    rng = np.random.default_rng(6)
    c = rng.gamma(2.0, 0.1, (30, 12)) * (rng.random((30, 12)) < 0.4)
    posterior = ContributionPosterior.fit(make_responses(c, rng.normal(5, 1, 30)), 3)
    together = posterior.draw(np.arange(12), 50)
    alone = posterior.draw(np.array([7]), 50)
    for name in ("presence", "intercept", "slope", "spread"):
        np.testing.assert_array_equal(getattr(together, name)[:, [7]], getattr(alone, name))


def test_an_individual_never_absent_is_always_present(steady):
    posterior = ContributionPosterior.fit(steady, 0)
    assert (posterior.draw(np.array([0]), 20).presence == 1.0).all()


def test_posterior_of_the_mean_contribution_covers_it_in_repeated_samples():
    covered = 0
    for repetition in range(200):
        rng = np.random.default_rng([8, repetition])
        c = 0.4 + 0.12 * rng.standard_normal((41, 1))
        posterior = ContributionPosterior.fit(make_responses(c, rng.normal(0, 1, 41)), repetition)
        distribution = posterior.draw(np.array([0]), 400)
        at_centre = distribution.intercept[:, 0] + distribution.slope[:, 0] * posterior.centre[0]
        low, high = np.quantile(at_centre, [0.025, 0.975])
        covered += low <= 0.4 <= high
    assert stats.binomtest(covered, 200, 0.95).pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [(1.2, 14.0), (5.0, 1.0)])
def test_presence_prior_is_learned_from_the_sometimes_absent(a, b):
    rng = np.random.default_rng(9)
    n = 60
    count = rng.binomial(n, rng.beta(a, b, 20_000))
    seen = count[(count > 0) & (count < n)]
    found = pooling._truncated_beta_binomial(*np.unique(seen.astype(float), return_counts=True), n)
    assert found[0] / sum(found) == pytest.approx(a / (a + b), rel=0.05)
    assert sum(found) == pytest.approx(a + b, rel=0.25)


def test_pooled_spread_finds_the_common_relative_spread():
    rng = np.random.default_rng(10)
    size = rng.gamma(2.0, 0.05, 400)
    c = size * (1.0 + 0.3 * rng.standard_normal((30, 400)))
    spread = pooling.pool_spread(np.full(400, 30.0), c.sum(axis=0), (c**2).sum(axis=0))
    relative = 0.3 / np.sqrt(1.0 + 0.3**2)
    assert spread.relative == pytest.approx(relative, rel=0.05)
    assert spread.degrees > 20


def test_those_seen_once_shrink_towards_the_common_size_and_the_others_do_not():
    rng = np.random.default_rng(11)
    n, m = 40, 300
    size = np.exp(rng.normal(-3.0, 0.3, m))
    present = rng.random((n, m)) < 0.05
    present[:, 0] = True
    present[0, 1:] |= ~present[:, 1:].any(axis=0)
    c = present * size * np.exp(rng.normal(0.0, 0.5, (n, m)))
    posterior = ContributionPosterior.fit(make_responses(c, rng.normal(0, 1, n)), 0)
    seen = present.sum(axis=0)
    mean = c.sum(axis=0) / seen
    once = seen == 1
    assert np.log(posterior.mean[once, 0]).std() < 0.7 * np.log(mean[once]).std()
    assert posterior.mean[0, 0] == pytest.approx(mean[0], rel=0.05)


def test_an_individual_never_seen_has_a_risk_from_the_prior_and_not_nan():
    rng = np.random.default_rng(12)
    c = np.zeros((30, 2))
    c[:, 1] = rng.gamma(2.0, 0.1, 30)
    posterior = ContributionPosterior.fit(make_responses(c, rng.normal(5.0, 1.0, 30)), 0)
    distribution = posterior.draw(np.array([0]), 500)
    assert np.isfinite(distribution.intercept).all()
    assert (distribution.presence < 0.3).all()
    assert distribution.presence.mean() < 0.05


def test_always_present_in_every_sample_of_a_randomised_query():
    rng = np.random.default_rng(13)
    n, samples = 30, 49
    c = sp.csc_array(rng.gamma(2.0, 0.1, (n * samples, 1)))
    responses = edp.Responses(
        rng.normal(5.0, 1.0, n * samples),
        c,
        np.array(["a"]),
        np.arange(n),
        presence=np.array([n]),
        samples=samples,
    )
    assert (ContributionPosterior.fit(responses, 0).presence_b == 0).all()


def test_equally_variable_individuals_do_not_break_the_pooling():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        size = rng.gamma(2.0, 0.05, 9)
        c = size * (1.0 + 0.3 * rng.standard_normal((30, 9)))
        found = ContributionPosterior.fit(make_responses(c, rng.normal(5.0, 1.0, 30)), 0)
        drawn = found.draw(np.arange(9), 50)
        for part in (drawn.presence, drawn.intercept, drawn.slope, drawn.spread):
            assert np.isfinite(part).all()
        own = np.sqrt((c**2).mean(axis=0))
        assert (np.abs(np.log(np.abs(found.mean[:, 0]) / own)) < 0.5).all()


@given(
    st.floats(0.05, 1.0),
    st.floats(2.0, 50.0),
    st.integers(2, 60),
    st.floats(-12.0, 6.0),
)
@settings(max_examples=200, deadline=None)
def test_limiting_leaves_a_small_own_spread_the_degrees_of_an_unpooled_one(
    relative, degrees, count, log_ratio
):
    spread = pooling.Spread(relative, degrees)
    count, free = np.array([float(count)]), np.array([count - 1.0])
    residual = free * relative**2 * np.exp(log_ratio)
    weight = spread.weight(count, residual)
    kept = spread.kept(free, residual, weight)
    total = (weight + free) * kept
    assert (kept >= 1.0).all()
    if log_ratio < 0.0:
        assert (total >= min(degrees, pooling.DEGREES) + free - 1e-9).all()
    else:
        assert (kept == 1.0).all()
    # where the spread lies does not change
    scale = (weight * relative**2 + residual) / (weight + free)
    np.testing.assert_allclose((weight * relative**2 + residual) * kept / total, scale)


@pytest.mark.full
def test_the_largest_risk_of_many_seen_seldom_is_no_tail():
    """300 people of a hundredth of a standard deviation, seen once to three times: delta is 0."""
    rng = np.random.default_rng(1)
    c = np.zeros((60, 300))
    for column in range(300):
        seen = rng.choice(60, rng.integers(1, 4), replace=False)
        c[seen, column] = 0.01 * np.exp(rng.normal(0.0, 0.3, seen.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = edp.audit(
            make_responses(c, rng.normal(10.0, 1.0, 60)),
            epsilon=[0.1],
            draws=100,
            random_seed=1,
            progressbar=False,
        )
    assert found.upper("delta").item() < 1e-6
