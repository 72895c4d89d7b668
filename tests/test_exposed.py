"""Whoever is exposed is seen: outlying sizes, rare or frequent presence, dominance."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes import noise
from edp_bayes.coupling.contributions import pooling
from edp_bayes.coupling.contributions.dominance import dominant_individuals
from edp_bayes.coupling.contributions.exposure import raw_exposure
from edp_bayes.coupling.contributions.posterior import ContributionPosterior
from edp_bayes.diagnostics import check_individuals
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.noise.calibration import _refuse_exposed
from edp_bayes.noise.posterior import posterior_of

N, OTHERS = 40, 300


def pool(count, n, alone):
    return pooling.pool_presence(count, n, pooling.learn_presence(count, n), alone)


def one_exposed(size, present, *, others=OTHERS, seed=1):
    """People who contribute 1 in one database, and one who contributes more."""
    rng = np.random.default_rng([seed, present])
    c = np.zeros((N, others + 1))
    c[rng.permutation(N)[:present], 0] = size
    c[rng.integers(0, N, others), np.arange(1, others + 1)] = 1.0
    response = 100.0 + 5.0 * rng.standard_normal(N) + c.sum(axis=1)
    return edp.Responses.from_arrays(response, contribution=sp.csc_array(c))


def audited(responses, **options):
    options = {"draws": 50, "random_seed": 1, "progressbar": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(responses, epsilon=[0.1, 0.5], **options)


@pytest.mark.full
@pytest.mark.parametrize(("present", "truth"), [(1, 0.025), (5, 0.125), (20, 0.5)])
def test_a_hundred_times_the_others_is_seen_however_often(present, truth):
    audit = audited(one_exposed(100.0, present))
    band = audit.band("delta", prob=0.95, kind="pointwise")
    assert (band["lower"] <= truth).all()
    assert (band["upper"] >= truth).all()
    assert (audit.upper("delta", prob=0.95) >= truth).all()
    assert audit.checks.loc["individuals", "passed"]
    assert int(audit.individual_delta["individual"][0]) == 0


@pytest.mark.full
def test_always_present_with_ten_times_the_others():
    audit = audited(one_exposed(10.0, N))
    assert (audit.upper("delta", prob=0.95) >= [0.601, 0.522]).all()
    assert (audit.delta.median(("chain", "draw")) < 0.9).all()


@pytest.mark.full
def test_noise_is_found_for_the_exposed_from_responses_and_from_a_saved_audit(tmp_path):
    responses = one_exposed(100.0, 5)
    audit = audited(responses, draws=25)
    saved = edp.load(audit.save(tmp_path / "audit.nc"))
    assert list(saved.without) == [0]
    sizes = []
    for source in (audit, saved):
        with pytest.warns(edp.EdpBayesWarning, match="larger than the spread"):
            found = noise.calibrate(
                source, epsilon=0.5, delta=0.01, method="gaussian", responses=responses
            )
        sizes.append(found.mean_absolute)
    assert sizes[0] == sizes[1] > 30.0


class Pooled:
    """A model that pools a large contribution away, as an earlier default did."""

    kernel = "gaussian"

    def fit(self, responses, settings):
        small = responses.contribution.copy()
        small.data = np.sign(small.data) * np.minimum(np.abs(small.data), 1.0)
        shrunk = edp.Responses.from_arrays(responses.response, contribution=small)
        return DirichletProcessMixture(thin=5).fit(shrunk, settings)


@pytest.mark.full
def test_a_model_that_contradicts_an_individual_gets_no_verdict_and_no_clean_bill():
    responses = one_exposed(100.0, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        audit = audited(responses, model=Pooled())
        row = audit.checks.loc["individuals"]
        assert not row["passed"]
        assert row["sentence"].startswith("Individual 0 contradicts the model")
        assert any("Individual 0 contradicts" in sentence for sentence in audit.warnings)
        posterior = posterior_of(responses, model=Pooled(), draws=50, progressbar=False)
        with pytest.raises(edp.InvalidInputError, match=r"no noise.*Individual 0 contradicts"):
            _refuse_exposed(posterior, 0.5, 0.01, 0.95)


@pytest.mark.parametrize("variation", [0.0, 0.5])
def test_raw_exposure_is_that_of_mixtures_or_above_it(variation):
    rng = np.random.default_rng(3)
    c = 1.0 + variation * rng.standard_normal((30, 4))
    c *= rng.random((30, 4)) < np.array([0.1, 0.4, 0.7, 1.1])
    responses = edp.Responses.from_arrays(rng.normal(0, 2, 30) + c.sum(axis=1), contribution=c)
    epsilon = np.array([0.05, 0.3, 0.7])
    found = raw_exposure(responses, epsilon)
    for person in range(4):
        spread = np.full((1, 30), responses.response_without(person).std())
        p, q = (
            edp.Mixture(np.full((1, 30), 1 / 30), place, spread)
            for place in (c[None, :, person], np.zeros((1, 30)))
        )
        exact = np.maximum(
            edp.hockey_stick(p, q, epsilon=epsilon), edp.hockey_stick(q, p, epsilon=epsilon)
        )[0]
        if variation:
            assert (found[person] >= exact - 1e-12).all()
            assert (found[person] <= 3.0 * exact + 1e-3).all()
        else:
            np.testing.assert_allclose(found[person], exact, rtol=1e-9, atol=1e-13)


def test_the_check_names_the_worst_first_and_counts_the_others():
    c = np.zeros((40, 6))
    for person in range(6):
        c[5 * person : 5 * person + 5, person] = 30.0 + person
    response = np.random.default_rng(4).normal(size=40)
    responses = edp.Responses.from_arrays(
        response + c.sum(axis=1), contribution=c, individual=list("abcdef")
    )
    check = check_individuals(responses, epsilon=np.array([0.5]), upper=np.array([1e-3]))[
        "individuals"
    ]
    assert check.statistic > 2.0
    assert "; and 3 more do" in check.sentence


@pytest.mark.parametrize(("times", "passed"), [(2.9, True), (3.1, False)])
def test_an_individual_contradicts_a_limit_that_three_times_is_below_them(times, passed):
    responses, epsilon = one_exposed(100.0, 5), np.array([0.5])
    upper = raw_exposure(responses, epsilon).max(axis=0) / times - 0.01 / 3.0
    assert check_individuals(responses, epsilon=epsilon, upper=upper).passed == passed


@pytest.mark.parametrize("seed", range(3))
def test_variance_without_is_that_of_the_responses_without(seed):
    rng = np.random.default_rng(seed)
    c = rng.normal(3.0, 2.0, (25, 5)) * (rng.random((25, 5)) < 0.6)
    responses = edp.Responses.from_arrays(rng.normal(50, 1, 25) + c.sum(axis=1), contribution=c)
    exact = [responses.response_without(i).var() for i in range(5)]
    np.testing.assert_allclose(responses.variance_without, exact, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1e-6, 1e6), present=st.integers(1, 40))
def test_no_estimate_moves_by_more_than_one_own_standard_error(seed, factor, present):
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 12, 60).astype(float)
    size = np.exp(0.3 * rng.standard_normal(60))
    count[0], size[0] = present, factor
    spread = pooling.Spread(0.4, 20.0)
    magnitude = pooling.pool_magnitude(count, size, np.full(60, 0.4), spread, 1.0)
    assert (np.abs(np.log(magnitude.shrinkage)) <= 0.4 / np.sqrt(count) * (1 + 1e-9)).all()
    a, b = pool(count, 40, np.zeros(60, dtype=bool))
    inside = count < 40
    mean = (a + count) / (a + b + 40)
    error = np.sqrt((1.0 - count / 40) / count)
    assert (np.abs(np.log(40 * mean / count))[inside] <= error[inside] * (1 + 1e-6)).all()
    residual = size**2 * rng.chisquare(np.maximum(count - 1, 1))
    weight = spread.weight(count, residual)
    free = count - 1
    several = free > 0
    own = residual[several] / free[several]
    both = (weight[several] * 0.16 + residual[several]) / (weight[several] + free[several])
    from scipy.special import polygamma

    reach = np.sqrt(polygamma(1, 0.5 * free[several]))
    assert (weight >= 0).all()
    assert (np.abs(np.log(both / own)) <= reach * (1 + 1e-6)).all()


def test_ordinary_people_are_pooled_as_far_as_ever():
    """Nobody of a population of one kind is anywhere near a standard error from the pool."""
    count = np.random.default_rng(5).binomial(40, 0.3, 5000).astype(float)
    a, b = pool(count, 40, np.zeros(5000, dtype=bool))
    middle = np.abs(count - 12) <= 3
    assert (a[middle] + b[middle] > 100.0).all()
    assert a[middle] / (a + b)[middle] == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("factor", [3.0, 100.0, 1e12])
def test_whoever_stands_out_is_not_pooled(factor):
    rng = np.random.default_rng(6)
    size = np.exp(0.2 * rng.standard_normal(500))
    size[7] *= factor
    alone = pooling.stand_out(np.ones(500), size)
    assert alone[7]
    assert alone.sum() <= 20
    a, b = pool(np.full(500, 3.0), 40, alone)
    assert (a[7], b[7]) == (0.5, 0.5)


def test_dominance_needs_half_of_the_variance():
    rng = np.random.default_rng(7)
    rest = rng.normal(0.0, 1.0, 60)
    for spread, found in ((5.0, [0]), (0.5, [])):
        c = rng.normal(2.0, spread, (60, 1))
        responses = edp.Responses.from_arrays(rest + c[:, 0], contribution=c)
        assert dominant_individuals(responses).tolist() == found


def test_the_risk_of_a_dominant_individual_covers_the_truth():
    """The rest has one standard deviation, the contribution five: 0.667 to 0.619 are true."""
    truth, missed = np.array([0.667, 0.645, 0.619]), 0
    for repetition in range(6):
        rng = np.random.default_rng([8, repetition])
        c = rng.normal(2.0, 5.0, (60, 1))
        responses = edp.Responses.from_arrays(rng.standard_normal(60) + c[:, 0], contribution=c)
        fitted = DirichletProcessMixture(thin=10).fit(
            responses,
            SamplerSettings(draws=150, tune=500, chains=1, random_seed=1, progressbar=False),
        )
        draws = fitted.coupling.curves(np.arange(1), np.array([0.1, 0.5, 1.0]))[:, 0]
        missed += int((np.quantile(draws, 0.95, axis=0) < truth).any())
        assert (np.median(draws, axis=0) < 0.9).all()
    assert missed <= 1


@pytest.mark.full
def test_an_individual_who_is_all_there_is_has_their_presence_as_risk():
    rng = np.random.default_rng(9)
    c = np.where(rng.random(40) < 0.6, rng.gamma(3.0, 1.0, 40), 0.0)[:, None]
    audit = audited(edp.Responses.from_arrays(c[:, 0], contribution=c), draws=250)
    presence = ContributionPosterior.fit(
        edp.Responses.from_arrays(c[:, 0], contribution=c), 1
    ).draw(np.arange(1), 1000)
    found = audit.delta.to_numpy().reshape(1000, 2)
    np.testing.assert_allclose(found, np.repeat(presence.presence[:, 0], 2, axis=1), rtol=1e-6)


BAD = {
    "all alike": lambda rng: np.full((30, 12), 0.1),
    "over twelve orders": lambda rng: np.broadcast_to(10.0 ** np.arange(-12, 0), (30, 12)).copy(),
    "all always present": lambda rng: rng.gamma(2.0, 0.1, (30, 12)),
    "nobody twice": lambda rng: np.eye(30, 12) * rng.gamma(2.0, 0.1, 12),
    "the only one": lambda rng: rng.gamma(2.0, 0.1, (30, 1)),
}


@pytest.mark.full
@pytest.mark.parametrize("population", BAD.values(), ids=BAD)
def test_odd_populations_get_finite_results(population):
    rng = np.random.default_rng(10)
    c = population(rng)
    responses = edp.Responses.from_arrays(rng.standard_normal(30) + c.sum(axis=1), contribution=c)
    audit = audited(responses)
    upper = audit.upper("delta")
    assert np.isfinite(upper).all()
    assert ((upper >= 0.0) & (upper <= 1.0)).all()
    assert audit.checks.loc["individuals", "passed"]


@pytest.mark.full
def test_upper_is_a_quantile_that_never_rises():
    audit = audited(one_exposed(1.0, 5, others=10), draws=250)
    limit = audit.upper("delta", prob=0.9)
    draws = np.sort(audit.delta.to_numpy().reshape(-1, 2), axis=0)
    assert limit.dims == ("epsilon",)
    assert (draws[899] <= limit).all()
    assert (limit <= draws[901]).all()
    assert limit.attrs == {"quantity": "delta", "prob": 0.9, "kind": "pointwise"}
    assert audit.upper("individual_delta").dims == ("individual", "epsilon")
    with pytest.raises(edp.InvalidInputError, match="prob must lie"):
        audit.upper("delta", prob=1.0)
    with pytest.raises(edp.InvalidInputError, match="quantity must be one of"):
        audit.upper("risk")


@pytest.mark.full
def test_a_new_individual_is_one_of_the_sample_or_from_the_pool():
    rng = np.random.default_rng(11)
    c = rng.gamma(2.0, 0.1, (40, 20)) * (rng.random((40, 20)) < 0.5)
    responses = edp.Responses.from_arrays(rng.standard_normal(40) + c.sum(axis=1), contribution=c)
    audit = audited(responses, keep=20, draws=100)
    new = audit.new_individual()
    assert new["delta"].dims == ("chain", "draw", "epsilon")
    assert (new["exceeds"] <= 1 / 21 + 1e-12).all()
    assert (new["exceeds"] > 0).all()
    everybody = audit.individual_delta.mean(("chain", "draw", "individual"))
    np.testing.assert_allclose(new["delta"].mean(("chain", "draw")), everybody, rtol=0.35)
    same = (new["delta"] == audit.individual_delta).all("epsilon").any("individual")
    assert 0.9 < float(same.mean()) < 1.0
    bootstrap = audited(responses, model=edp.SmoothedBootstrap()).new_individual()
    assert (bootstrap["exceeds"] == 0).all()
    stacked = edp.Stacked([DirichletProcessMixture(), edp.SmoothedBootstrap("gaussian")])
    assert (audited(responses, model=stacked).new_individual()["delta"] >= 0).all()
