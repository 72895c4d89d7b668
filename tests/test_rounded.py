"""Answers on a grid: found, drawn within their bins, and the risk of the rounded answer."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, laplace, norm, truncnorm

import edp_bayes as edp
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.models.base import database_log_likelihood
from edp_bayes.models.custom import _of_bins
from edp_bayes.models.gibbs import _standard_normal_within
from edp_bayes.models.regression import InQuestion, Regression
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.rounding import offset_of, plain_step
from edp_bayes.statistical_privacy import delta_minus, delta_plus
from edp_bayes.utils.compiled import compiled
from tests.calibration.rounded import CELLS, SERIES, difference
from tests.calibration.rounded import EPSILON as STUDY_EPSILON

QUICK = {"draws": 50, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = np.array([0.05, 0.3])
STUDIED = STUDY_EPSILON.tolist()


def counts(seed=0, n=60, m=10, prob=0.3):
    rng = np.random.default_rng(seed)
    c = (rng.random((n, m)) < prob).astype(float)
    return c.sum(axis=1), c


def of_counts(step, **options):
    y, c = counts(**options)
    return edp.Responses.from_arrays(y, contribution=c, step=step)


@compiled
def _many(rng, low, high, out):
    for i in range(out.size):
        out[i] = _standard_normal_within(rng, low, high)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.3, 0.4), (-4.0, 5.0), (0.1, 9.0), (0.7, 0.9), (2.0, 9.0), (6.0, 6.1), (-9.0, -1.0)],
)
def test_latent_values_are_truncated_normal(low, high):
    out = np.empty(20_000)
    _many(np.random.default_rng(1), low, high, out)
    assert ((out >= low) & (out <= high)).all()
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    reached = truncnorm.cdf(np.quantile(out, levels), low, high)
    np.testing.assert_allclose(reached, levels, atol=0.015)


def test_the_likelihood_is_that_of_the_bin():
    responses = of_counts(1.0)
    mixture = edp.Mixture([[[0.3, 0.7]]], [[[2.0, 4.0]]], [[[0.4, 1.5]]])
    found = database_log_likelihood(mixture, responses)[0, 0]
    y = responses.response
    mass = sum(
        w * (norm.cdf(y + 0.5, m, s) - norm.cdf(y - 0.5, m, s))
        for w, m, s in ((0.3, 2.0, 0.4), (0.7, 4.0, 1.5))
    )
    np.testing.assert_allclose(found, np.log(mass), rtol=1e-9)


def test_truths_are_the_exact_curves_of_statistical_privacy():
    for size, prob in ((10, 0.1), (10, 0.3)):
        x = np.arange(60)
        truth = difference(binom.pmf(x, size, prob), binom.pmf(x, size - 1, prob), EPSILON)
        # of an individual present with a probability: that of one who is, at another epsilon
        growth = np.expm1(EPSILON)
        kept = prob - growth * (1.0 - prob)
        present, absent = [], []
        for g, k in zip(growth, kept, strict=True):
            inner, outer = np.log1p(g / prob), np.log1p(g / k) if k > 0 else np.inf
            curves = [
                (delta_plus(size, prob, epsilon=e), delta_minus(size, prob, epsilon=e))
                if np.isfinite(e)
                else (0.0, 0.0)
                for e in (inner, outer)
            ]
            present.append(prob * np.array(curves[0]))
            absent.append(max(k, 0.0) * np.array(curves[1]))
        one_way = np.maximum(np.array(present)[:, 0], np.array(absent)[:, 1])
        other_way = np.maximum(np.array(present)[:, 1], np.array(absent)[:, 0])
        closest = np.minimum(np.abs(one_way - truth), np.abs(other_way - truth))
        assert (closest < 1e-12).all()


def test_bands_of_counts_hold_the_exact_risk():
    cell = CELLS[1]
    truth = cell.truth()[:3]
    y, c = cell.sample(3)
    audit = edp.audit(
        edp.Responses.from_arrays(y, contribution=c, step=1.0),
        epsilon=[0.05, 0.1, 0.3], individuals=[0], **QUICK,
    )  # fmt: skip
    band = audit.band("individual_delta", kind="pointwise", prob=0.99).sel(individual=0)
    assert (band["lower"] <= truth).all()
    assert (truth <= band["upper"]).all()
    assert audit.settings["step"] == 1.0
    assert audit.checks.loc["ties", "passed"]
    assert "as rounded answers do (step 1)" in audit.checks.loc["ties", "sentence"]


@pytest.mark.full
def test_the_risk_is_that_of_the_rounded_answer():
    audit = edp.audit(of_counts(1.0), epsilon=EPSILON, **QUICK)
    edges = np.arange(-200, 200) + 0.5
    growth = np.exp(EPSILON)[:, None]
    risks = []
    for person in range(10):
        p, q = (
            np.diff(d.cdf(edges), prepend=0.0, append=1.0)[..., None, :]
            for d in audit.source.coupling.pair(person)
        )
        forwards = np.maximum(p - growth * q, 0.0).sum(axis=-1)
        risks.append(np.maximum(forwards, np.maximum(q - growth * p, 0.0).sum(axis=-1)))
    np.testing.assert_allclose(audit.delta, np.max(risks, axis=0), atol=1e-10)
    suppressed = audit.released(threshold=3, progressbar=False)
    binned = audit.released(bins=[2.5], progressbar=False)
    assert (suppressed.delta <= audit.delta).all()
    assert (binned.delta <= suppressed.delta + 1e-12).all()
    thirds = audit.released(rounded_to=3, progressbar=False)
    assert (thirds.delta <= audit.delta).all()
    with pytest.raises(edp.InvalidInputError, match="every edge lies between two"):
        audit.released(rounded_to=2, progressbar=False)


def test_a_plain_grid_is_found_and_said():
    y, c = counts()
    with pytest.warns(edp.EdpBayesWarning, match="rounded to a grid of step 1"):
        found = edp.Responses.from_arrays(y, contribution=c)
    assert found.step == 1.0
    with pytest.warns(edp.EdpBayesWarning, match="treated as continuous"):
        assert edp.Responses.from_arrays(y, contribution=c, step=None).step is None
    # tenths with an offset
    tenths = edp.Responses.from_arrays(0.1 * y + 0.03, contribution=0.1 * c)
    assert tenths.step == pytest.approx(0.1)
    assert offset_of(tenths.response, tenths.step) == pytest.approx(0.03)
    # contributions on no grid: what is published without an individual would not be on it
    assert edp.Responses.from_arrays(y, contribution=0.37 * c).step is None
    # few ties are no sign of a grid
    fine = edp.Responses.from_arrays(np.arange(60.0), contribution=c)
    assert fine.step is None
    assert plain_step(fine.response, fine.contribution) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "step must be greater than 0, found 0"),
        ({"step": 0.7}, "whole multiples of the step 0.7"),
        ({"step": "one"}, "step must be a number or None"),
        ({"step": 1.0, "noise": edp.LaplaceNoise(1.0)}, "without noise"),
    ],
)
def test_bad_steps_are_named(options, message):
    y, c = counts()
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        edp.Responses.from_arrays(y, contribution=c, **options)


def test_counts_are_rounded_where_that_matters():
    rng = np.random.default_rng(5)

    def databases(rate):
        rows = [
            (day, f"p{k}") for day in range(30) for k in range(5) for _ in range(rng.poisson(rate))
        ]
        frame = pd.DataFrame(rows, columns=["day", "person"])
        return edp.Databases.from_table(frame, database="day", individual="person")

    few = databases(1.5)
    assert few.respond(edp.queries.Count()).step == 1.0
    assert few.respond(edp.queries.Count(), noise=edp.LaplaceNoise(1.0)).step is None
    assert databases(400.0).respond(edp.queries.Count()).step is None


class OfOnesOwn:
    """A model that knows nothing of rounding."""

    kernel = "gaussian"

    def fit(self, responses, settings):
        assert responses.half_step is None
        return edp.FiniteMixture(components=2).fit(responses, settings)


def test_where_rounding_is_not_modelled_it_is_said():
    with pytest.warns(edp.EdpBayesWarning, match="step 1 are treated as continuous by OfOnesOwn"):
        audit = edp.audit(of_counts(1.0), epsilon=EPSILON, model=OfOnesOwn(), **QUICK)
    assert "step" not in audit.settings
    assert any("treated as continuous" in said for said in audit.warnings)


@pytest.fixture(scope="module", params=["mixture", "bootstrap"])
def conditional(request):
    model = {"bootstrap": edp.SmoothedBootstrap()}.get(request.param)
    y, c = SERIES.sample(1)
    responses = edp.Responses.from_arrays(y, contribution=c, step=1.0)
    return edp.audit(
        responses, epsilon=EPSILON, adversary=edp.Adversary(past=1), model=model, **QUICK
    )


def test_given_the_past_the_grid_lies_where_the_next_answer_has_it(conditional):
    audit = conditional
    assert audit.settings["step"] == 1.0
    edges = np.arange(-100, 200) + 0.5
    p, q = (
        np.diff(d.cdf(edges), prepend=0.0, append=1.0)[..., None, :]
        for d in audit.source.coupling.pair(0)
    )
    growth = np.exp(EPSILON)[:, None]
    found = np.maximum(
        np.maximum(p - growth * q, 0.0).sum(axis=-1), np.maximum(q - growth * p, 0.0).sum(axis=-1)
    )
    np.testing.assert_allclose(audit.individual_delta[:, :, 0], found, atol=1e-10)
    rows, one = np.array([3, 70]), np.array([0])
    some = pick(audit.source.coupling, rows).curves(one, EPSILON)
    np.testing.assert_array_equal(some, audit.source.coupling.curves(one, EPSILON)[rows])
    # the distribution of the next response, every draw at its own place
    np.testing.assert_allclose(audit.source.coupling.pair(0)[0].mean(), audit.mixture.mean())
    assert np.ptp(audit.mixture.mean()) > 0.1
    below = audit.tree["lower_bounds"]["individual_delta"]
    assert (below <= audit.individual_delta.sel(draw=below["draw"]) + 1e-9).all()
    scores = audit.tree["known"]["score"].to_numpy()
    assert np.unique(scores).size == scores.size  # drawn within the bins
    assert abs(scores.mean()) < 0.3
    assert 0.7 < scores.std() < 1.3


def test_bands_given_the_past_hold_the_exact_risk(conditional):
    truth = SERIES.truth(1)[[STUDIED.index(e) for e in EPSILON.tolist()]]
    band = conditional.band("individual_delta", kind="pointwise", prob=0.99).sel(individual=0)
    assert (band["lower"] <= truth).all()
    assert (truth <= band["upper"]).all()


def test_likelihood_given_the_past_is_that_of_the_bins():
    y, c = SERIES.sample(2)
    responses = edp.Responses.from_arrays(y, contribution=c, step=1.0)
    regression = Regression.of(edp.Adversary(past=1, changing_scale=True).given(responses))
    u = edp.Mixture([[[0.4, 0.6]]], [[[-0.5, 0.7]]], [[[0.3, 1.1]]])
    beta, gamma = np.array([[[0.4, 0.1]]]), np.array([[0.3]])
    hand = InQuestion.of(regression, u, beta, gamma)
    n, units = y.size - 1, regression.units
    fitted = (regression.design @ beta[0, 0])[:n]
    scale = np.exp(0.3 * regression.position)
    ends = [((y[1:] + end - units.centre) / units.spread - fitted) / scale for end in (-0.5, 0.5)]
    low, high = (u.cdf(end)[0, 0] for end in ends)
    np.testing.assert_allclose(hand.log_likelihood[0, 0], np.log(high - low), rtol=1e-8)
    # the next answer: one unit of the mixture at its own place
    at = units.centre + units.spread * float(beta[0, 0] @ regression.target)
    growth = units.spread * np.exp(0.3 * regression.known.target_position)
    np.testing.assert_allclose(hand.next_response.locations[0, 0], at + growth * u.locations[0, 0])
    # adjusted responses have bins of the scale in question
    adjusted = regression.adjusted(beta[0, 0], 0.3)
    assert adjusted.step is None
    widths = adjusted.half_step / (0.5 * np.exp(0.3 * regression.known.target_position) / scale)
    assert ((widths > 0.97) & (widths < 1.6)).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_the_bootstrap_predicts_bins(kernel):
    responses = of_counts(1.0)
    fitted = edp.SmoothedBootstrap(kernel=kernel).fit(
        responses, SamplerSettings(draws=3, chains=1, random_seed=1)
    )
    y, n = responses.response, 60
    h = float(fitted.mixture.scales[0, 0, 0])
    family = norm if kernel == "gaussian" else laplace
    mass = family.cdf(y[:, None] + 0.5, y, h) - family.cdf(y[:, None] - 0.5, y, h)
    np.fill_diagonal(mass, 0.0)
    score = np.log(mass.sum(axis=1) / (n - 1))
    # bandwidths are drawn between those of a grid of 400
    np.testing.assert_allclose(fitted.log_likelihood[0, 0], score, rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_the_twin_has_the_likelihood_of_bins(kernel):
    pytest.importorskip("pymc")
    rounded, plain = of_counts(1.0), of_counts(None)
    model = edp.FiniteMixture(components=1, kernel=kernel)
    twin = model.build(rounded)
    point = twin.initial_point()
    parts = twin.replace_rvs_by_values([twin["locations"], twin["scales"]])
    find = twin.compile_fn(parts, inputs=twin.value_vars, on_unused_input="ignore")
    mu, s = (float(part[0]) for part in find(point))
    other = model.build(plain)
    prior = float(other.compile_logp(vars=other.free_RVs)(point))
    # the floor of the components is part of the prior, and is another for rounded answers
    prior += float(twin.compile_logp(vars=[twin["narrowest"]])(point))
    y, family = rounded.response, norm if kernel == "gaussian" else laplace
    mass = family.cdf(y + 0.5, mu, s) - family.cdf(y - 0.5, mu, s)
    found = float(twin.compile_logp()(point))
    assert found - prior == pytest.approx(np.log(mass).sum(), rel=1e-6)


def own(distribution):
    import pymc as pm

    def build(responses):
        with pm.Model() as model:
            mu = pm.Normal("mu", 3.0, 2.0)
            pm.Deterministic("weights", pm.math.constant([1.0]))
            pm.Deterministic("locations", mu[None])
            pm.Deterministic("scales", pm.math.constant([1.5]))
            distribution(mu, responses.response)
        return model

    return edp.PyMCMixture(build)


def test_models_of_ones_own_have_bins_where_they_have_a_distribution_function():
    pm = pytest.importorskip("pymc")
    responses = of_counts(1.0)
    normal = own(lambda mu, y: pm.Normal("seen", mu, 1.5, observed=y))
    assert normal.models_rounding(responses)
    y = responses.response
    model = normal.build(responses)
    before = float(model.compile_logp()({"mu": 2.5}))
    assert _of_bins(model, responses)
    mass = norm.cdf(y + 0.5, 2.5, 1.5) - norm.cdf(y - 0.5, 2.5, 1.5)
    added = np.log(mass).sum() - norm.logpdf(y, 2.5, 1.5).sum()
    assert float(model.compile_logp()({"mu": 2.5})) - before == pytest.approx(added, abs=1e-5)
    potential = own(lambda mu, y: pm.Potential("seen", pm.logp(pm.Normal.dist(mu, 1.5), y).sum()))
    assert not potential.models_rounding(responses)
    assert edp.PyMCMixture(edp.FiniteMixture().build).models_rounding(responses)


@pytest.mark.full
def test_gibbs_and_nuts_draw_the_same_rounded_mixture():
    responses = of_counts(1.0)
    model, options = edp.FiniteMixture(components=1), QUICK | {"draws": 300}
    gibbs, nuts = (
        edp.audit(responses, epsilon=EPSILON, model=model, sampler=sampler, **options)
        for sampler in ("gibbs", "nutpie")
    )
    for one in (gibbs, nuts):
        assert one.settings["step"] == 1.0
    for level in (0.1, 0.5, 0.9):
        ends = [one.delta[..., 0].quantile(level).item() for one in (gibbs, nuts)]
        assert ends[0] == pytest.approx(ends[1], abs=0.006)


def test_an_edge_of_the_answers_is_seen():
    # a count of zero is impossible with the individual, and likely without
    # (of sample 4 the upper end at epsilon 1 is 0.35 with many draws, under either kind of floor)
    y, c = CELLS[2].sample(5)
    audit = edp.audit(
        edp.Responses.from_arrays(y, contribution=c, step=1.0), epsilon=[0.3, 0.6, 1.0], **QUICK
    )
    upper = audit.band("delta", kind="pointwise", prob=0.95)["upper"]
    assert (upper > np.exp(-1.0)).all()


@pytest.mark.full
def test_noise_is_not_calibrated_for_rounded_answers():
    responses = of_counts(1.0)
    with pytest.raises(edp.InvalidInputError, match=r"released\(rounded_to=1, noise_after="):
        edp.noise.calibrate(responses, epsilon=0.5, delta=0.01, draws=10, progressbar=False)
    audit = edp.audit(responses, epsilon=EPSILON, **QUICK)
    with pytest.raises(edp.InvalidInputError, match="rounded to a grid of step 1"):
        edp.noise.calibrate(audit, responses=responses, epsilon=0.5, progressbar=False)
    # what the sentence says works
    noisy = audit.released(rounded_to=1, noise_after=edp.LaplaceNoise(2.0), progressbar=False)
    assert (noisy.delta <= audit.delta + 1e-12).all()


def test_plans_are_for_rounded_answers():
    options = {"width": 0.2, "epsilon": 0.3, "repetitions": 2, "draws": 30, "most": 60}
    found = edp.plan(of_counts(1.0), random_seed=1, progressbar=False, **options)
    assert found.sizes.tolist() == [60]
    with pytest.raises(edp.InvalidInputError, match="where answers are rounded"):
        edp.plan(of_counts(1.0), adversary=edp.Adversary(past=1), progressbar=False, **options)


@pytest.mark.full
def test_leakage_is_that_of_rounded_answers():
    y, c = counts()
    responses = edp.Responses.from_arrays(y, contribution=c, step=1.0, additive=True)
    found = edp.leakage(
        responses, epsilon=0.1, past=[0, 1], insiders=[0.0, 0.5], seeds=1, draws=40,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    alone = edp.audit(
        responses, epsilon=[0.1], keep=5, draws=40, tune=500, chains=2, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    assert found.insiders["median"][0.0] == pytest.approx(float(alone.delta.median()))
    # counts of fewer people are on the same grid, and tell more
    assert found.insiders["median"][0.5] > found.insiders["median"][0.0]


def test_insiders_on_no_grid_put_it_anywhere():
    rng = np.random.default_rng(8)
    c = rng.gamma(4.0, 0.25, (40, 6))
    y = np.round(10.0 + rng.standard_normal(40) + c.sum(axis=1))
    responses = edp.Responses.from_arrays(y, contribution=c, step=1.0, additive=True)
    about = {"epsilon": [0.1], **QUICK}
    anywhere = edp.audit(responses, adversary=edp.Adversary(insiders=[0, 1]), **about)
    assert anywhere.source.coupling.published.worst
    there = edp.audit(responses, adversary=edp.Adversary(insiders=[0, 1]), at=39, **about)
    rest = y[39] - c[39, :2].sum()
    apart = there.source.coupling.published.offset - rest
    assert apart == pytest.approx(round(apart))
    assert float(there.delta.median()) <= float(anywhere.delta.median()) + 0.01
    with pytest.raises(edp.InvalidInputError, match="where its bins lie"):
        there.released(threshold=12, progressbar=False)


@pytest.mark.parametrize("same", [True, False])
def test_shares_have_a_step_where_all_have_as_many_records(same):
    rng = np.random.default_rng(3)
    rows = [
        (day, person, float(rng.random() < 0.4))
        for day in range(30)
        for person in range(20 if same else 16 + day % 5)
    ]
    frame = pd.DataFrame(rows, columns=["day", "person", "paid"])
    databases = edp.Databases.from_table(frame, database="day", individual="person")
    said = "published as multiples of 1/20" if same else "shares of 16 to 20 records lie on a grid"
    with pytest.warns(edp.EdpBayesWarning, match=said):
        responses = databases.respond(edp.queries.Proportion("paid"))
    assert responses.step == (pytest.approx(1 / 20) if same else None)
    assert any(said in warning for warning in responses.warnings)
    assert databases.respond(edp.queries.Proportion("paid"), step=None).step is None


def test_joined_answers_are_continuous_and_it_is_said():
    one = of_counts(1.0)
    other = edp.Responses.from_arrays(
        np.random.default_rng(2).normal(size=60), contribution=np.ones((60, 10)), query="mean"
    )
    joined = edp.Responses.join(one, other)
    assert [part.step for part in joined.parts] == [None, None]
    (said,) = (w for w in joined.warnings if "rounded to a grid" in w)
    assert "step 1 are treated as continuous together with others" in said
