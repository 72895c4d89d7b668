"""The PyMC model of several queries: an observed variable with labels, and predictions from it."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import edp_bayes as edp
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models import SamplerSettings
from edp_bayes.models.prior_draws import prior_draws

WEEKS = [f"week {j}" for j in range(30)]
NAMES = ["revenue", "orders"]
KNOWN = edp.Adversary(past=1, trend=True, changing_scale=True)
SETTINGS = SamplerSettings(random_seed=1)
MODELS = [edp.FiniteMixture(2), edp.DirichletProcessMixture(components=3)]

pytestmark = [
    pytest.mark.usefixtures("quickly_compiled"),
    pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning"),
    # the smooth floor of components, which the draws have been through
    pytest.mark.filterwarnings("ignore:The effect of Potentials:UserWarning"),
]


def joined():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(30, 2)) @ np.array([[3.0, 8.0], [0.0, 4.0]]) + [50.0, 900.0]
    parts = [
        edp.Responses.from_arrays(
            column, contribution=np.full((30, 2), 0.1), query=name, database=WEEKS, additive=True
        )
        for column, name in zip(y.T, NAMES, strict=True)
    ]
    return edp.Responses.join(*parts)


def at_a_point(model):
    """Return a point of the unconstrained space, and the variables of the model there."""
    rng = np.random.default_rng(2)
    point = {
        name: value + 0.3 * rng.standard_normal(np.shape(value))
        for name, value in model.initial_point(1).items()
    }
    variables = [*model.free_RVs, *model.deterministics]
    found = model.compile_fn(
        model.replace_rvs_by_values(variables), inputs=model.value_vars, on_unused_input="ignore"
    )(point)
    return point, dict(zip((v.name for v in variables), found, strict=True))


def log_densities(y, variables, centre, factor, fitted=0.0, scale=None):
    """Log densities of responses (n, d) by SciPy, each component a distribution of its own."""
    scale = np.ones(len(y)) if scale is None else scale
    place = np.broadcast_to(fitted, y.shape)
    found = np.empty((len(y), len(variables["weights"])))
    for k, (mu, root) in enumerate(zip(variables["locations"], variables["roots"], strict=True)):
        for j in range(len(y)):
            spread = scale[j] * factor @ root
            middle = centre + factor @ (place[j] + scale[j] * mu)
            found[j, k] = stats.multivariate_normal(middle, spread @ spread.T).logpdf(y[j])
    return np.logaddexp.reduce(np.log(variables["weights"]) + found, axis=1)


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_response_has_the_log_density_of_its_mixture(model):
    responses = joined()
    built = model.build(responses)
    point, variables = at_a_point(built)
    found = built.compile_logp(vars=[built["response"]], sum=False)(point)[0]
    y = responses.response
    exact = log_densities(y, variables, y.mean(axis=0), np.linalg.cholesky(np.cov(y.T)))
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-10)


def test_given_what_is_known_it_is_that_of_the_residuals():
    responses = joined()
    built = edp.FiniteMixture(2).build(responses, adversary=KNOWN)
    point, variables = at_a_point(built)
    found = built.compile_logp(vars=[built["response"]], sum=False)(point)[0]
    y = responses.response[1:]
    x = built["regressors"].get_value()
    design = np.column_stack([np.ones(29), responses.response[:-1], np.linspace(-0.5, 0.5, 29)])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    factor = np.linalg.cholesky(left.T @ left / (29 - 4))
    scale = np.exp(variables["growth"] * built["position"].get_value())
    exact = log_densities(
        y, variables, y.mean(axis=0), factor, x @ variables["coefficients"], scale
    )
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("adversary", [None, KNOWN], ids=["alone", "given what is known"])
def test_every_variable_has_the_dims_and_labels_of_the_responses(adversary):
    built = edp.DirichletProcessMixture(components=3).build(joined(), adversary=adversary)
    known = ["response_data", "regressors", "regressors_next", "position"] if adversary else []
    variables = [*built.free_RVs, *built.deterministics, *built.observed_RVs]
    for variable in [*variables, *(built[name] for name in known)]:
        dims = built.named_vars_to_dims.get(variable.name, ())
        assert len(dims) == variable.ndim, variable.name
        assert None not in dims
    assert built.named_vars_to_dims["response"] == ("database", "query")
    assert list(built.coords["database"]) == WEEKS[1:] if adversary else WEEKS
    assert list(built.coords["query"]) == NAMES
    assert len(built.coords["component"]) == 3
    if adversary:
        assert list(built.coords["term"])[-2:] == ["trend", "intercept"]


def of_the_prior(built):
    """Return draws of every variable, in the place of those of a posterior."""
    return xr.DataTree.from_dict({"posterior": prior_draws(built, SETTINGS)})


@pytest.mark.full
def test_new_databases_are_predicted_with_the_distribution_of_the_draws():
    responses = joined()
    model = edp.FiniteMixture(2, base_measure=edp.models.BaseMeasure(shape=8.0, scale_shape=8.0))
    built = model.build(responses)
    draws = of_the_prior(built)
    with built:
        pm.set_data(
            {"response_data": np.zeros((40, 2))},
            coords={"database": [f"new {j}" for j in range(40)]},
        )
        tree = pm.sample_posterior_predictive(
            draws, predictions=True, random_seed=1, progressbar=False
        )
    predicted = tree["predictions"]["response"]
    assert predicted.dims == ("chain", "draw", "database", "query")
    assert list(predicted["query"]) == NAMES
    assert str(predicted["database"].to_numpy()[0]) == "new 0"
    # the share of the responses below some places, draw by draw known in closed form
    posterior = draws["posterior"]
    y = responses.response
    factor = np.linalg.cholesky(np.cov(y.T))
    root = posterior["roots"].transpose("chain", "draw", "component", "axis", "other_axis")
    mu = y.mean(axis=0) + posterior["locations"].to_numpy() @ factor.T
    spread = np.sqrt(((factor @ root.to_numpy()) ** 2).sum(axis=-1))
    for k, name in enumerate(NAMES):
        at = y[:, k].mean() + 0.5 * y[:, k].std()
        each = stats.norm.cdf(at, mu[..., k], spread[..., k])
        exact = (posterior["weights"].to_numpy() * each).sum(axis=-1)
        found = (predicted.sel(query=name) < at).mean("database").to_numpy()
        error = np.sqrt((exact * (1.0 - exact)).sum() / 40.0) / exact.size
        assert abs(found.mean() - exact.mean()) < 4.0 * error


def test_predictions_given_what_is_known_lie_where_the_regression_puts_them():
    built = edp.FiniteMixture().build(joined(), adversary=KNOWN)
    draws = of_the_prior(built).isel(draw=slice(100))
    far = built["regressors_next"].get_value() + np.array([0.0, 0.0, 1000.0, 0.0])
    with built:
        pm.set_data(
            {"response_data": np.zeros((1, 2)), "regressors": far[None], "position": [0.5]},
            coords={"database": ["next"]},
        )
        tree = pm.sample_posterior_predictive(
            draws, predictions=True, random_seed=1, progressbar=False
        )
    found = tree["predictions"]["response"].sel(database="next", query="revenue")
    trend = draws["posterior"]["coefficients"].sel(term="trend").isel(axis=0)
    assert np.corrcoef(found.to_numpy().ravel(), trend.to_numpy().ravel())[0, 1] > 0.99


@pytest.mark.full
def test_the_log_likelihood_is_one_number_a_database_and_loo_takes_it():
    built = edp.FiniteMixture().build(joined())
    draws = of_the_prior(built).isel(draw=slice(100))
    with built:
        tree = pm.compute_log_likelihood(draws, progressbar=False)
    log_likelihood = tree["log_likelihood"]["response"]
    assert log_likelihood.dims == ("chain", "draw", "database")
    assert list(log_likelihood["database"].to_numpy()) == WEEKS
    assert np.isfinite(az.loo(tree).elpd)


def test_queries_that_follow_from_others_are_left_out_and_other_models_refused():
    first = joined().parts[0]
    double = first.replaced(
        response=2.0 * first.response, contribution=2.0 * first.contribution, query="double"
    )
    both = edp.Responses.join(first, double)
    assert list(edp.FiniteMixture().build(both).coords["query"]) == ["revenue"]
    with pytest.raises(InvalidInputError, match="takes Gaussian kernels"):
        edp.FiniteMixture(kernel="laplace").build(both)
