"""What warnings advise depends on the model: nobody is told what they did, or cannot do."""

import re

import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.diagnostics import check_draws, check_individuals
from edp_bayes.models import FiniteMixture, PyMCMixture, SamplerSettings, Stacked
from edp_bayes.models.base import diverging_mixture

SETTINGS = SamplerSettings(draws=60, tune=60, chains=2, random_seed=1, progressbar=False)


def one_normal(data):
    import pymc as pm

    y = data.response_by_database[:, 0]
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 1.0)
        pm.Normal("y", mean, 0.1, observed=y)
        for name, value in (("weights", 1.0), ("locations", mean), ("scales", 0.1)):
            pm.Deterministic(name, pm.math.stack([value]))
    return model


BOOTSTRAP = edp.SmoothedBootstrap(kernel="gaussian")
MODELS = {
    "bootstrap": (edp.SmoothedBootstrap(), "variable=True, another kernel"),
    "variable": (edp.SmoothedBootstrap(variable=True), "try another kernel"),
    "dpm": (edp.DirichletProcessMixture(), r"see what SmoothedBootstrap\(\) says, or try another"),
    "finite": (FiniteMixture(components=1), r"try more components \(components=, --model finite"),
    "stacked": (Stacked([FiniteMixture(), BOOTSTRAP]), "stack another model, too"),
    "custom": (PyMCMixture(build=one_normal), "change the model that build returns"),
}
COMPONENTS = {"finite"}
ITSELF = {"dpm"}


@pytest.fixture(scope="module")
def responses():
    """Two far clusters, and an exposed individual."""
    rng = np.random.default_rng(2)
    c = rng.gamma(2.0, 0.05, (30, 4))
    c[:3, 0] = 4.0
    y = np.where(np.arange(30) % 7 == 0, 9.0, 0.0) + rng.normal(0.0, 0.1, 30)
    return edp.Responses.from_arrays(y + c.sum(axis=1), contribution=c)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, responses):
    name = request.param
    return name, MODELS[name][0].fit(responses, SETTINGS)


def test_the_remedy_is_one_for_this_model(fitted, responses):
    name, fit = fitted
    shifted = edp.Responses.from_arrays(responses.response + 50.0, contribution=np.ones((30, 1)))
    checks = edp.diagnostics.posterior_predictive_check(fit.mixture, shifted, 1, advice=fit.remedy)
    assert not checks.passed
    for sentence in checks.warnings:
        assert "The density model does not fit: " in sentence
        assert re.search(MODELS[name][1], sentence)
        assert ("more components" in sentence) == (name in COMPONENTS)
        assert ("SmoothedBootstrap()" in sentence) == (name in ITSELF)


def test_exact_draws_have_no_chains_that_disagree(fitted):
    name, fit = fitted
    assert fit.independent == (name in {"bootstrap", "variable"})


def test_divergences_name_what_is_left_to_do():
    draws = xr.DataArray(np.random.default_rng(1).normal(size=(4, 500)), dims=("chain", "draw"))
    for kernel, words in (("gaussian", "Leave out sampler="), ("laplace", "the Gaussian kernel")):
        said = check_draws(draws, divergences=3, diverging=diverging_mixture(kernel)).warnings
        assert len(said) == 1
        assert words in said[0]
    assert "Gibbs" not in check_draws(draws, divergences=3).warnings[0]


@pytest.mark.parametrize("draws", [50, 500])
def test_of_independent_draws_only_the_number_counts(draws):
    values = np.random.default_rng(1).normal(size=(2, draws))
    values[1] += 3.0  # no independent draws would do so
    array = xr.DataArray(values, dims=("chain", "draw"), name="delta")
    found = check_draws(array, independent=True)
    assert found.passed == (draws == 500)
    for sentence in (*found.warnings, found.row()["sentence"]):
        assert "R-hat" not in sentence
        assert f"delta rests on {2 * draws} independent draws" in sentence
    assert "R-hat" in check_draws(array).warnings[0]


def test_an_audit_by_the_bootstrap_says_nothing_of_chains(responses):
    options = {"epsilon": [0.1], "random_seed": 1, "chains": 2, "progressbar": False}
    audit = edp.audit(responses, model=edp.SmoothedBootstrap(), draws=60, **options)
    verified = edp.noise.verify(
        responses, edp.LaplaceNoise(1.0), model=edp.SmoothedBootstrap(), draws=60, **options
    )
    for result in (audit, verified):
        said = " ".join([*result.warnings, *result.checks["sentence"]])
        assert "R-hat" not in said
        assert "chains" not in said
        assert "SmoothedBootstrap()" not in said
        assert "120 independent draws" in said


def test_an_exposed_individual_is_not_sent_to_the_model_at_hand(responses):
    grid, limit = np.array([0.1]), np.array([1e-4])
    pooled, alone = (
        check_individuals(responses, epsilon=grid, upper=limit, pooled=pooled).warnings[0]
        for pooled in (True, False)
    )
    assert pooled.endswith("See what SmoothedBootstrap() says, which pools nobody.")
    assert "SmoothedBootstrap" not in alone
    assert alone.endswith("rests on few databases: ask for more of them.")
