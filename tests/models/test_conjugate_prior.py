"""What Gibbs sampling keeps of its parameters, and their prior: those of the PyMC model."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import edp_bayes as edp
from edp_bayes.models import BaseMeasure, SamplerSettings
from edp_bayes.models.conjugate_prior import prior_of_gibbs, upper_roots
from edp_bayes.models.joint import fit_joint
from edp_bayes.models.prior_draws import prior_draws
from edp_bayes.responses.dependence import linear_dependence

SETTINGS = SamplerSettings(draws=60, tune=60, chains=2, random_seed=1, progressbar=False)
OPTIONS = {"epsilon": [0.1], "draws": 150, "random_seed": 1, "progressbar": False}

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")


def one(seed=1, query="one", **options):
    rng = np.random.default_rng(seed)
    c = np.random.default_rng(9).gamma(2.0, 0.1, (40, 3))
    y = rng.normal(10.0, 2.0, 40) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, query=query, **options)


def both():
    return edp.Responses.join(one(), one(2, "other"))


def compared(found, exact):
    """Compare the distributions of every number of every variable."""
    assert set(found.data_vars) <= set(exact.data_vars)
    for name in found.data_vars:
        ours, theirs = found[name], exact[name]
        assert ours.dims == theirs.dims, name
        pair = [part.to_numpy().reshape(part.sizes["draw"], -1) for part in (ours, theirs)]
        for a, b in zip(*(part.T for part in pair), strict=True):
            # a single weight is 1, but for rounding
            assert stats.ks_2samp(a.round(9), b.round(9)).pvalue > 1e-3, name


MODELS = {
    "Dirichlet process": edp.DirichletProcessMixture(components=4),
    "two components": edp.FiniteMixture(2, weight_concentration=0.7),
    "one component": edp.FiniteMixture(),
    "one rate": edp.DirichletProcessMixture(
        components=2, base_measure=BaseMeasure(scale_shape=None, shape=3.0)
    ),
    # of which the smooth floor rejects most draws
    "no fine components": edp.FiniteMixture(base_measure=BaseMeasure(narrowest=1.5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_prior_is_that_of_the_pymc_model(name):
    model = MODELS[name]
    fitted = model.fit(one(), SETTINGS)
    found = fitted.prior()
    compared(found.variables, prior_draws(model.build(one()), SamplerSettings(random_seed=2)))
    assert set(found.variables.data_vars) == set(fitted.parameters.data_vars)
    np.testing.assert_array_equal(found.mixture.locations, found.variables["locations"])
    assert found.mixture.weights.sum(axis=-1) == pytest.approx(1.0)
    assert 200 <= found.variables.sizes["draw"] <= 500


@pytest.mark.full
@pytest.mark.parametrize("name", ["Dirichlet process", "two components"])
def test_the_prior_of_several_queries_is_that_of_the_pymc_model(name):
    model, responses = MODELS[name], both()
    fitted = fit_joint(model, responses, linear_dependence(responses), SETTINGS)
    found = fitted.prior()
    compared(found.variables, prior_draws(model.build(responses), SamplerSettings(random_seed=2)))
    assert set(found.variables.data_vars) == set(fitted.parameters.data_vars)
    roots = fitted.parameters["roots"].to_numpy()
    factor = np.linalg.cholesky(np.cov(responses.response.T))
    spread = factor @ roots
    np.testing.assert_allclose(
        spread @ np.swapaxes(spread, -1, -2), fitted.mixture.covariances, rtol=1e-8
    )
    assert (roots[..., 1, 0] == 0.0).all()


def test_roots_are_upper_triangles_with_positive_diagonals():
    rng = np.random.default_rng(1)
    halves = rng.standard_normal((50, 4, 6))
    whole = halves @ np.swapaxes(halves, -1, -2)
    roots = upper_roots(whole)
    np.testing.assert_allclose(roots @ np.swapaxes(roots, -1, -2), whole, atol=1e-10)
    np.testing.assert_array_equal(roots, np.triu(roots))
    assert (np.diagonal(roots, axis1=-2, axis2=-1) > 0.0).all()
    # of a covariance that is singular
    thin = upper_roots(np.ones((2, 2)))
    assert np.isfinite(thin).all()
    np.testing.assert_allclose(thin @ thin.T, np.ones((2, 2)), atol=1e-7)


def test_a_prior_that_is_rejected_nearly_always_is_left_out():
    from edp_bayes.models.base_measure import Standardisation

    found = prior_of_gibbs(
        SETTINGS,
        BaseMeasure(),
        Standardisation(0.0, 1.0),
        components=4,
        concentration=(2.0, 2.0),
        weight_concentration=0.0,
        least=1e6,
    )
    assert found is None


@pytest.fixture(scope="module")
def audit():
    return edp.audit(one(), **OPTIONS)


@pytest.mark.filterwarnings("ignore:In a future version of xarray:FutureWarning")
def test_the_functions_of_arviz_run_on_the_trace_of_the_default(audit):
    assert audit.settings["sampler"] == "gibbs"
    trace = audit.trace
    names = ["concentration", "centre", "rate", "precision", "weights", "scales"]
    compared = az.plot_prior_posterior(trace, var_names=names, backend="none")
    assert set(names) <= set(compared.viz["dist"].data_vars)
    assert az.plot_ppc_dist(trace, group="prior_predictive", backend="none").viz.children
    table = az.psense_summary(trace, var_names=["rate", "precision", "centre"], round_to=6)
    assert (table[["prior", "likelihood"]].to_numpy() > 0.0).all()
    assert list(az.summary(trace, var_names=["rate", "precision"]).index) == ["rate", "precision"]


def test_parameters_are_those_of_the_mixture_in_units_of_the_response(audit):
    parameters = audit.tree["parameters"].to_dataset()
    np.testing.assert_array_equal(parameters["locations"], audit.mixture.locations)
    assert parameters["locations"].dims == ("chain", "draw", "component")
    spread = one().response.std(ddof=1)
    # given its locations the centre is normal, as Gibbs sampling draws it
    located = (parameters["locations"] - one().response.mean()) / spread
    strength = 1.0 + parameters["precision"] * located.sizes["component"]
    middle = parameters["precision"] * located.sum("component") / strength
    away = (parameters["centre"] - middle) * np.sqrt(strength)
    assert stats.kstest(away.to_numpy().ravel(), "norm").pvalue > 1e-3
    predicted = audit.tree["prior_predictive"]["response"]
    assert predicted.sizes["database"] == 40
    assert audit.tree["prior"].sizes["draw"] == predicted.sizes["draw"]


@pytest.mark.full
def test_a_joint_audit_by_gibbs_sampling_keeps_what_was_drawn(tmp_path):
    responses = both()
    audit = edp.audit(responses, model=edp.FiniteMixture(thin=5), **OPTIONS)
    trace = audit.trace
    assert audit.settings["sampler"] == "gibbs"
    names = ["centre", "rate", "precision"]
    assert az.plot_prior_posterior(trace, var_names=names, backend="none").viz.children
    predicted = trace["prior_predictive"]["response"]
    assert predicted.dims == ("chain", "draw", "database", "query")
    assert az.plot_ppc_dist(trace, group="prior_predictive", backend="none").viz.children
    loaded = edp.load(audit.save(tmp_path / "joint.nc"))
    np.testing.assert_array_equal(loaded.tree["prior"]["rate"], trace["prior"]["rate"])
    few = edp.audit(responses, model=edp.FiniteMixture(thin=5), keep_parameters=False, **OPTIONS)
    assert not {"parameters", "prior", "prior_predictive"} & set(few.tree.children)
    np.testing.assert_array_equal(few.delta, audit.delta)


@pytest.mark.full
def test_the_centre_of_several_queries_is_drawn_from_its_own_distribution():
    responses = both()
    fitted = fit_joint(
        edp.FiniteMixture(3, thin=5), responses, linear_dependence(responses), SETTINGS
    )
    drawn = fitted.parameters
    strength = 1.0 + drawn["precision"] * 3
    middle = drawn["precision"] * drawn["locations"].sum("component") / strength
    away = (drawn["centre"] - middle) * np.sqrt(strength)
    assert stats.kstest(away.to_numpy().ravel(), "norm").pvalue > 1e-3


def test_of_whom_no_draws_are_asked_nothing_is_drawn(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("drawn all the same")

    monkeypatch.setattr("edp_bayes.models.gibbs.prior_of_gibbs", refuse)
    monkeypatch.setattr(pm, "draw", refuse)
    few = edp.audit(one(), keep_parameters=False, **OPTIONS)
    assert "prior" not in few.tree.children
