"""Audits of draws that were made elsewhere, and the parameters that a result keeps."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.adversary.known import known
from edp_bayes.models.contributions import CONTRIBUTIONS
from edp_bayes.models.regression import Regression

OPTIONS = {"epsilon": [0.1, 0.5], "random_seed": 3, "progressbar": False}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(1)
    own = rng.gamma(2.0, 0.2, (40, 6)) * (rng.random((40, 6)) < 0.7)
    return edp.Responses.from_arrays(rng.normal(10.0, 1.0, 40) + own.sum(axis=1), contribution=own)


@pytest.fixture(scope="module")
def drawn(responses):
    """An audit whose model NUTS drew here."""
    return edp.audit(
        responses, model=edp.PyMCMixture(edp.FiniteMixture(components=2).build), draws=60, tune=200,
        chains=2, **OPTIONS,
    )  # fmt: skip


@pytest.mark.full
def test_an_audit_by_nuts_keeps_every_parameter(drawn, tmp_path):
    parameters = drawn.tree["parameters"].to_dataset()
    assert {"weights", "locations", "scales"} <= set(parameters.data_vars)
    assert (parameters.sizes["chain"], parameters.sizes["draw"]) == (2, 60)
    summary = az.summary(xr.DataTree.from_dict({"posterior": parameters}))
    assert len(summary) >= 6
    loaded = edp.load(drawn.save(tmp_path / "audit.nc"))
    xr.testing.assert_allclose(loaded.tree["parameters"].to_dataset(), parameters)


@pytest.mark.full
def test_parameters_are_left_out_when_asked_and_under_pseudonyms(responses, drawn, tmp_path):
    model = edp.PyMCMixture(edp.FiniteMixture(components=2).build)
    few = edp.audit(
        responses, model=model, draws=20, tune=50, chains=2, keep_parameters=False, **OPTIONS
    )
    assert "parameters" not in few.tree.children
    hidden = edp.load(drawn.with_pseudonyms().save(tmp_path / "hidden.nc"))
    assert "parameters" not in hidden.tree.children


@pytest.mark.parametrize("form", ["group", "tree"])
def test_the_same_draws_give_the_same_audit(drawn, responses, form):
    draws = drawn.tree["parameters"].to_dataset()
    if form == "tree":
        statistics = drawn.tree["sample_stats"].to_dataset()
        draws = xr.DataTree.from_dict({"posterior": draws, "sample_stats": statistics})
    found = edp.audit_trace(draws, responses, **OPTIONS)
    np.testing.assert_array_equal(found.delta, drawn.delta)
    assert found.settings["sampler"] == "elsewhere"
    assert found.settings["tune"] == 0
    np.testing.assert_array_equal(
        found.tree["parameters"]["locations"], drawn.tree["parameters"]["locations"]
    )


def test_a_function_makes_the_mixture(responses):
    rng = np.random.default_rng(2)
    y = responses.response
    sigma = np.sqrt(39 * y.var(ddof=1) / rng.chisquare(39, (2, 80)))
    mu = rng.normal(y.mean(), sigma / np.sqrt(40))
    draws = xr.Dataset({"mu": (("chain", "draw"), mu), "sigma": (("chain", "draw"), sigma)})

    def normal(posterior):
        mu, sigma = (posterior[name].to_numpy()[..., None] for name in ("mu", "sigma"))
        return edp.Mixture(np.ones_like(mu), mu, sigma)

    found = edp.audit_trace(draws, responses, mixture=normal, **OPTIONS)
    mixture = found.tree["mixture"]
    np.testing.assert_array_equal(mixture["locations"].to_numpy()[..., 0], mu)
    by_names = draws.assign(
        w=(("chain", "draw", "k"), np.ones((2, 80, 1))), m=draws["mu"].expand_dims("k", -1),
        s=draws["sigma"].expand_dims("k", -1),
    )  # fmt: skip
    named = edp.audit_trace(by_names, responses, mixture=("w", "m", "s"), **OPTIONS)
    np.testing.assert_array_equal(found.delta, named.delta)


@pytest.mark.parametrize(
    ("draws", "options", "error", "message"),
    [
        ({"a": 1}, {}, edp.InputTypeError, "DataTree or InferenceData"),
        (xr.Dataset({"a": ("x", [1.0])}), {}, edp.InvalidInputError, "dims chain and draw"),
        (xr.Dataset({"a": (("chain", "draw"), np.ones((2, 30)))}), {}, edp.InvalidInputError,
         "variables named weights, locations, scales"),
        (xr.Dataset({"a": (("chain", "draw"), np.ones((2, 30)))}), {"mixture": "weights"},
         edp.InputTypeError, "mixture must be the names"),
        (xr.Dataset({"a": (("chain", "draw"), np.ones((2, 30)))}), {"mixture": lambda _: 1},
         edp.InputTypeError, "must return a Mixture, found int"),
        (xr.Dataset({"a": (("chain", "draw"), np.ones((2, 30)))}),
         {"mixture": lambda _: edp.Mixture([[[1.0]]], [[[0.0]]], [[[1.0]]])},
         edp.InvalidInputError, r"\(2, 30\) first, found \(1, 1, 1\)"),
        (xr.Dataset({"a": (("chain", "draw"), np.ones((2, 30)))}), {"kernel": "cauchy"},
         edp.InvalidInputError, "kernel"),
    ],
)  # fmt: skip
def test_draws_that_cannot_be_used_are_refused(responses, draws, options, error, message):
    with pytest.raises(error, match=message):
        edp.audit_trace(draws, responses, **OPTIONS, **options)


def test_draws_of_other_responses_are_refused(responses):
    y = responses.response
    noise = 0.1 * np.random.default_rng(1).standard_normal((2, 30, 1))
    values = {"weights": 1.0 + 0.0 * noise, "locations": y.mean() + noise, "scales": np.exp(noise)}
    posterior = xr.Dataset({k: (("chain", "draw", "component"), v) for k, v in values.items()})

    def draws(values):
        observed = xr.Dataset({"response": ("database", values)})
        return xr.DataTree.from_dict({"posterior": posterior, "observed_data": observed})

    for others in (y + 1.0, y[:-1]):
        with pytest.raises(edp.InvalidInputError, match=r"draws are of \d+ other responses"):
            edp.audit_trace(draws(others), responses, **OPTIONS)
    same = edp.audit_trace(draws(y), responses, **OPTIONS)
    assert same.delta.sizes["draw"] == 30
    once = posterior.isel(chain=[0], draw=[0])
    repeated = xr.concat([once] * 30, "draw", join="override")
    with pytest.raises(edp.InvalidInputError, match="the draws are all the same"):
        edp.audit_trace(repeated, responses, **OPTIONS)


@pytest.mark.full
@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("model", [edp.FiniteMixture(2), edp.DirichletProcessMixture(components=3)])
def test_a_mixture_is_built_of_what_an_adversary_knows(responses, model):
    adversary = edp.Adversary(past=1)
    built = model.build(responses, adversary=adversary)
    given = Regression.of(known(adversary, responses, None))
    by_regression = model.build(given.known.responses, given)
    assert [v.name for v in built.free_RVs] == [v.name for v in by_regression.free_RVs]
    assert "coefficients" in built.named_vars
    point = by_regression.initial_point()
    np.testing.assert_allclose(built.compile_logp()(point), by_regression.compile_logp()(point))


LABELS = {
    "dates": np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]"),
    "text": [f"week {k}" for k in range(40)],
    "pairs": [(2023 + k // 20, k % 20) for k in range(40)],
}


@pytest.mark.full
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "model", [edp.FiniteMixture(components=2), edp.DirichletProcessMixture(components=3)]
)
def test_variables_have_dims_and_databases_their_labels(responses, labels, model):
    named = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution, database=labels
    )
    built = model.build(named)
    assert len(set(built.coords["database"])) == 40
    sizes = {name: built[name].eval().shape for name in built.named_vars}
    without = {
        name for name, shape in sizes.items() if shape and not built.named_vars_to_dims[name]
    }
    assert not without
    found = edp.audit(named, model=model, sampler="nutpie", draws=20, tune=50, chains=2, **OPTIONS)
    assert found.tree["parameters"]["locations"].dims == ("chain", "draw", "component")


def test_coefficients_are_named_by_what_the_adversary_knows(responses):
    adversary = edp.Adversary(trend=True, season=4)
    regression = Regression.of(known(adversary, responses, None))
    built = edp.FiniteMixture().build(regression.known.responses, regression)
    assert tuple(built.named_vars_to_dims["coefficients"]) == ("term",)
    assert list(built.coords["term"]) == regression.known.names
    assert "trend" in built.coords["term"]


@pytest.fixture(scope="module")
def full(responses):
    """An audit by the full posterior."""
    model = edp.FullPosterior(edp.FiniteMixture())
    return edp.audit(responses, model=model, draws=40, tune=150, chains=2, **OPTIONS)


@pytest.mark.full
def test_drawn_contributions_give_the_same_audit(full, responses):
    draws = full.tree["parameters"].to_dataset()
    found = edp.audit_trace(draws, responses, contributions=CONTRIBUTIONS, **OPTIONS)
    np.testing.assert_array_equal(found.delta, full.delta)
    turned = draws.isel(individual=slice(None, None, -1))
    again = edp.audit_trace(turned, responses, contributions=CONTRIBUTIONS, **OPTIONS)
    np.testing.assert_array_equal(again.delta, full.delta)
    others = draws.assign_coords(individual=draws["individual"] + 1)
    with pytest.raises(edp.InvalidInputError, match="is of individuals who are not those of the r"):
        edp.audit_trace(others, responses, contributions=CONTRIBUTIONS, **OPTIONS)


def test_draws_know_no_adversary(responses):
    rng = np.random.default_rng(1)
    draws = xr.Dataset({
        name: (("chain", "draw", "component"), values)
        for name, values in {
            "weights": np.ones((2, 30, 1)),
            "locations": rng.normal(12.0, 0.2, (2, 30, 1)),
            "scales": rng.uniform(1.0, 1.4, (2, 30, 1)),
        }.items()
    })  # fmt: skip
    dated = responses.replaced(database=np.arange(1980, 2020))
    with pytest.raises(edp.InvalidInputError, match="draws are of the responses as they are"):
        edp.audit_trace(draws, dated, adversary=edp.Adversary(past=1), **OPTIONS)
    with pytest.raises(edp.InputTypeError, match="names of presence, intercept, slope and spread"):
        edp.audit_trace(draws, responses, contributions="presence", **OPTIONS)
