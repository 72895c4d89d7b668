"""What the model drew stays in a result, as ArviZ's functions take it."""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import edp_bayes as edp
from edp_bayes.models.base_measure import least_of, narrowest_spread
from edp_bayes.models.prior_draws import prior_draws, prior_of_mixture
from edp_bayes.models.regression import regression_on
from edp_bayes.models.sampling import SamplerSettings

OPTIONS = {"epsilon": [0.1], "draws": 150, "tune": 300, "random_seed": 1, "progressbar": False}
BY_NUTS = {**OPTIONS, "sampler": "nutpie", "chains": 2}
OF_MODEL = {"parameters", "prior", "prior_predictive", "posterior_predictive"}

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")


def world(n=40, seed=1, **changes):
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.1, (n, 3))
    y = rng.normal(10.0, 2.0, n) + c.sum(axis=1)
    y = np.round(y / changes["step"]) * changes["step"] if "step" in changes else y
    return edp.Responses.from_arrays(y, **({"contribution": c} | changes))


@pytest.fixture(scope="module")
def audit():
    return edp.audit(world(), model=edp.FiniteMixture(components=2), **BY_NUTS)


def test_the_functions_of_arviz_run_on_the_trace(audit):
    trace = audit.trace
    assert az.plot_ppc_dist(trace, backend="none").viz.children
    assert az.plot_ppc_dist(trace, group="prior_predictive", backend="none").viz.children
    names = ["rate", "precision", "centre"]
    compared = az.plot_prior_posterior(trace, var_names=names, backend="none")
    assert set(names) <= set(compared.viz["dist"].data_vars)
    assert az.plot_ess(trace, var_names=["locations"], backend="none").viz.children
    pit = az.loo_pit(trace)["response"]
    assert pit.sizes["database"] == 40
    # of the model that the responses were drawn from
    assert stats.kstest(pit.to_numpy(), "uniform").pvalue > 0.01


@pytest.mark.filterwarnings("ignore:In a future version of xarray:FutureWarning")
def test_the_sensitivity_of_parameters_is_looked_at_by_arviz(audit):
    table = az.psense_summary(audit.trace, var_names=["rate", "scales"], round_to=6)
    assert len(table) == 3
    assert (table[["prior", "likelihood"]].to_numpy() > 0.0).all()


def test_replicates_and_draws_of_the_prior_are_those_of_their_distributions(audit):
    predicted = audit.tree["posterior_predictive"]["response"]
    assert predicted.dims == ("chain", "draw", "database")
    mixture = audit.mixture
    variance = mixture.variance().mean() + mixture.mean().var()
    assert float(predicted.mean()) == pytest.approx(mixture.mean().mean(), abs=0.1)
    assert float(predicted.var()) == pytest.approx(variance, rel=0.1)
    prior = audit.tree["prior"].to_dataset()
    assert set(prior.data_vars) == set(audit.tree["parameters"].data_vars)
    assert stats.kstest(prior["centre"].to_numpy().ravel(), "norm").pvalue > 1e-3
    weights, located = prior["weights"], prior["locations"]
    expected = (weights * located).sum("component").median()
    found = audit.tree["prior_predictive"]["response"].median()
    assert float(found) == pytest.approx(float(expected), abs=0.5)


def test_the_prior_has_the_smooth_floor_of_components():
    """Of one component, by quadrature over the rate and the share of its variance."""
    responses = world()
    base = edp.models.BaseMeasure(narrowest=1.5)
    model = edp.FiniteMixture(base_measure=base).build(responses)
    found = prior_draws(model, SamplerSettings(random_seed=1))
    spread = responses.response.std(ddof=1)
    share = np.linspace(0.0, 1.0, 4001)[1:-1]
    rate = np.exp(np.linspace(-9.0, 4.0, 800))[:, None]
    variance = share / (1.0 - share) / rate
    weight = stats.beta.pdf(share, 0.5, 2.0) * stats.gamma.pdf(rate, 1.0) * rate
    weight = weight * np.exp(-0.5 * least_of(1.5 / spread) / variance)
    weight /= weight.sum()
    assert narrowest_spread(responses.response[:, None]) < 0.5
    for name, grid in (("rate", rate), ("variance_share", share)):
        exact = (weight * grid).sum()
        deviation = np.sqrt((weight * (grid - exact) ** 2).sum())
        values = found[name].to_numpy().ravel()
        assert values.mean() == pytest.approx(exact, abs=4.0 * deviation / np.sqrt(values.size))
    without = (stats.beta.mean(0.5, 2.0), stats.beta.std(0.5, 2.0))
    values = found["variance_share"].to_numpy().ravel()
    assert values.mean() > without[0] + 4.0 * without[1] / np.sqrt(values.size)


def own_model(prior):
    def build(responses):
        with pm.Model(coords={"database": responses.database}) as model:
            widest = pm.Data("widest", 5.0)
            locations = prior("locations")
            scales = pm.HalfNormal("scales", widest, shape=1)
            pm.Deterministic("weights", pt.ones(1))
            pm.Normal("response", locations, scales, observed=responses.response, dims="database")
        return model

    return build


@pytest.mark.full
def test_a_model_of_ones_own_keeps_its_data_and_prior(tmp_path):
    build = own_model(lambda name: pm.Normal(name, 10.0, 3.0, shape=1))
    audit = edp.audit(world(), model=edp.PyMCMixture(build), **BY_NUTS)
    assert float(audit.trace["constant_data"]["widest"]) == 5.0
    predicted = audit.tree["prior_predictive"]["response"]
    assert float(predicted.var()) == pytest.approx(3.0**2 + 5.0**2, rel=0.3)
    again = edp.audit_trace(audit.trace, world(), epsilon=[0.1], random_seed=1, progressbar=False)
    np.testing.assert_array_equal(again.delta, audit.delta)
    assert set(again.tree["prior"].data_vars) == set(audit.tree["prior"].data_vars)


def test_a_prior_that_cannot_be_drawn_is_left_out():
    model = own_model(lambda name: pm.Flat(name, shape=1))(world())
    assert prior_draws(model, SamplerSettings(random_seed=1)) is None
    model = own_model(lambda name: pm.Normal(name, 10.0, 3.0, shape=1))(world())
    names = ("weights", "locations", "scales")
    settings = SamplerSettings(random_seed=1)
    assert prior_of_mixture(model, settings, "gaussian", names) is not None
    with model:
        pm.Potential("of_ones_own", -(model["locations"] ** 2).sum())
    assert prior_draws(model, settings) is None


@pytest.mark.full
def test_groups_are_saved_and_left_out_when_asked_and_under_pseudonyms(audit, tmp_path):
    assert set(audit.tree.children) >= OF_MODEL
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    for name in OF_MODEL:
        xr.testing.assert_allclose(loaded.tree[name].to_dataset(), audit.tree[name].to_dataset())
    hidden = edp.load(audit.with_pseudonyms().save(tmp_path / "hidden.nc"))
    assert not OF_MODEL & set(hidden.tree.children)
    few = edp.audit(world(), keep_parameters=False, **OPTIONS)
    assert not OF_MODEL & set(few.tree.children)
    np.testing.assert_allclose(few.trace["posterior"]["weights"], few.mixture.weights)


def test_replicates_of_rounded_answers_are_rounded():
    audit = edp.audit(world(step=0.5), **OPTIONS)
    predicted = audit.tree["posterior_predictive"]["response"].to_numpy()
    away = (predicted - audit.tree["observed_data"]["response"].to_numpy()) / 0.5
    np.testing.assert_allclose(away, np.round(away), atol=1e-9)
    assert np.abs(away).max() > 1.0


def test_samples_of_a_database_are_predicted_together():
    """Of components far apart all samples of a database are from the same one."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random((40, 1)) < 0.5, -50.0, 50.0) + rng.standard_normal((40, 3))
    responses = edp.Responses.from_arrays(y.ravel(), contribution=np.full((120, 2), 0.1), samples=3)
    predicted = edp.audit(responses, **OPTIONS).tree["posterior_predictive"]["response"]
    assert predicted.dims == ("chain", "draw", "database", "sample")
    sides = np.sign(predicted.to_numpy())
    assert np.mean(sides.min(axis=-1) == sides.max(axis=-1)) > 0.95
    assert abs(sides.mean()) < 0.3
    apart = predicted.std("sample").median()
    assert float(apart) == pytest.approx(stats.chi.median(2) / np.sqrt(3), rel=0.3)


@pytest.mark.full
def test_a_joint_audit_by_nuts_keeps_what_was_drawn(tmp_path):
    parts = [world(query="one"), world(seed=2, query="other", contribution=world().contribution)]
    joined = edp.Responses.join(*parts)
    options = {**BY_NUTS, "draws": 100, "tune": 200}
    audit = edp.audit(joined, model=edp.FiniteMixture(), **options)
    assert set(audit.tree.children) >= OF_MODEL
    parameters = audit.tree["parameters"].to_dataset()
    assert parameters["locations"].dims == ("chain", "draw", "component", "axis")
    assert {"rate", "precision", "centre"} <= set(parameters.data_vars)
    assert "rate" in audit.tree["log_prior"]
    expected = stats.gamma.logpdf(parameters["rate"], 1.0)
    np.testing.assert_allclose(audit.tree["log_prior"]["rate"], expected)
    predicted = audit.tree["posterior_predictive"]["response"]
    assert predicted.dims == ("chain", "draw", "database", "query")
    observed = joined.response
    for k, name in enumerate(("one", "other")):
        one = predicted.sel(query=name)
        assert float(one.mean()) == pytest.approx(observed[:, k].mean(), abs=0.5)
        assert float(one.std()) == pytest.approx(observed[:, k].std(), rel=0.25)
    assert az.plot_ppc_dist(audit.trace, backend="none").viz.children
    assert az.plot_ess(audit.trace, var_names=["rate"], backend="none").viz.children
    few = edp.audit(joined, model=edp.FiniteMixture(), keep_parameters=False, **options)
    assert not OF_MODEL & set(few.tree.children)
    np.testing.assert_array_equal(few.delta, audit.delta)


@pytest.mark.full
def test_given_an_adversary_the_prior_predicts_the_database_in_question():
    """In units of the response, as PyMC does with the regressors of the next database."""
    responses = world().replaced(response=500.0 + 3.0 * np.arange(40) + world().response)
    adversary, model = edp.Adversary(trend=True), edp.FiniteMixture()
    regression = regression_on(responses, adversary)
    built = model.build(responses, adversary=adversary)
    settings = SamplerSettings(random_seed=1)
    names = ("weights", "locations", "scales")
    prior = prior_of_mixture(built, settings, "gaussian", names, regression)
    found = prior.mixture.sample(40, np.random.default_rng(1)).ravel()
    with built:
        new = {"regressors": built["regressors_next"].get_value()[None], "response_data": [0.0]}
        pm.set_data(new, coords={"database": ["next"]})
        expected = pm.draw(built["response"], 4000, random_seed=1).ravel()
    at = np.array([0.25, 0.5, 0.75])
    low, middle, high = np.quantile(expected, at)
    assert 400.0 < middle < 900.0
    np.testing.assert_allclose(
        np.quantile(found, at), [low, middle, high], atol=0.15 * (high - low)
    )
