"""Log priors against PyMC and against refits; what power-scaling says of silly priors."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
from scipy import stats

import edp_bayes as edp
from edp_bayes.diagnostics import prior_sensitivity
from edp_bayes.models import (
    BaseMeasure,
    DirichletProcessMixture,
    FiniteMixture,
    SamplerSettings,
    Stacked,
)
from edp_bayes.models.base_measure import Standardisation, least_of, narrowest_of
from edp_bayes.models.gibbs import draw_parameters
from edp_bayes.models.log_prior import component_priors, from_pymc, share_prior, stick_priors

OPTIONS = {"draws": 1000, "tune": 300, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = [0.02, 0.1, 0.3]
SILLY = BaseMeasure(
    shape=200.0, scale_shape=None
)  # Variances near a hundredth of what the data have.


def make_responses(n=41, seed=1):
    rng = np.random.default_rng(seed)
    c = np.abs(rng.normal(0.2, 0.05, (n, 3)))
    return edp.Responses.from_arrays(rng.standard_normal(n), contribution=sp.csc_array(c))


def audited(model, n=41, epsilon=EPSILON, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(make_responses(n), epsilon=epsilon, model=model, **{**OPTIONS, **changes})


@pytest.fixture(scope="module")
def audit():
    return audited(FiniteMixture())


def parameters(size, rng):
    """Any values of the parameters, as one chain of three draws."""
    return {
        "concentration": rng.gamma(2.0, 0.5, (1, 3)),
        "stick": rng.beta(1.0, 1.0, (1, 3, size - 1)),
        "share": rng.dirichlet(np.ones(size), (1, 3)),
        "centre": rng.standard_normal((1, 3)),
        "rate": rng.gamma(2.0, 1.0, (1, 3)),
        "precision": rng.gamma(2.0, 0.25, (1, 3)),
        "unit_variance": 1.0 / rng.gamma(2.0, 1.0, (1, 3, size)),
        "variance_share": rng.beta(2.0, 2.0, (1, 3, size)),
        "offset": rng.standard_normal((1, 3, size)),
    }


@pytest.mark.full
@pytest.mark.parametrize(
    "model",
    [
        edp.DirichletProcessMixture(components=3, concentration=(2.5, 1.5)),
        edp.FiniteMixture(components=3, weight_concentration=0.7),
        edp.FiniteMixture(components=3, base_measure=BaseMeasure(scale_shape=None)),
    ],
    ids=["process", "finite", "one rate"],
)
def test_closed_forms_are_those_of_pymc(model):
    values, responses = parameters(3, np.random.default_rng(2)), make_responses()
    built = model.build(responses)
    names = [variable.name for variable in built.free_RVs]
    posterior = xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{k}" for k in range(values[name].ndim - 2))), v)
            for name, v in values.items()
            if name in names
        },
        coords={"chain": [0], "draw": np.arange(3)},
    )
    theirs = from_pymc(built, xr.DataTree.from_dict({"posterior": posterior}))
    rate, share = values["rate"][..., None], values["variance_share"]
    if model.base_measure.scale_shape is None:
        spread = np.sqrt(rate * values["unit_variance"])
    else:
        spread = np.sqrt(share / (1.0 - share) / rate)
    ours = component_priors(
        model.base_measure,
        centre=values["centre"],
        rate=values["rate"],
        precision=values["precision"],
        locations=values["centre"][..., None]
        + values["offset"] / np.sqrt(values["precision"][..., None]),
        variances=spread**2,
        least=least_of(
            narrowest_of(model.base_measure, responses.response_by_database, None)
            / responses.response.std(ddof=1)
        ),
    )
    if "stick" in names:
        rest = np.log1p(-values["stick"]).sum(-1)
        ours |= stick_priors(model.concentration, values["concentration"], rest, 2)
    else:
        ours |= share_prior(model.weight_concentration, values["share"])
    # what keeps components from being too fine is part of the prior of both
    assert set(ours) == set(theirs.data_vars) == {*names, "narrowest"}
    for name, density in ours.items():
        # PyMC folds the constants of a Gamma in single precision, which costs up to 1e-7.
        np.testing.assert_allclose(density, theirs[name], rtol=1e-9, atol=1e-7, err_msg=name)
    top = {"concentration", "share", "centre", "rate", "precision"} & set(names)
    assert set(json.loads(theirs.attrs["hyperparameters"])) == top


def test_gibbs_keeps_the_parameters_of_the_draws_it_keeps():
    responses = make_responses()
    drawn = draw_parameters(
        responses.response_by_database,
        settings=SamplerSettings(**OPTIONS),
        components=4,
        base=BaseMeasure(scale_shape=None),
        concentration=(2.0, 2.0),
        weight_concentration=0.0,
        thin=2,
    )
    np.testing.assert_allclose(np.exp(drawn.log_rest), drawn.weights[..., -1], rtol=1e-9)
    # Given everything else, rate and precision are gamma with these parameters.
    inverse = (1.0 / drawn.spreads**2).sum(-1)
    scatter = ((drawn.locations - drawn.centre[..., None]) ** 2).sum(-1)
    for values, shape, rate in (
        (drawn.rate, 1.0 + 4 * 2.0, 1.0 + inverse),
        (drawn.precision, 2.0 + 2.0, 4.0 + 0.5 * scatter),
        (drawn.concentration, 2.0 + 3.0, 2.0 - drawn.log_rest),
    ):
        # precision and concentration are drawn given this very draw's components and sticks.
        uniform = stats.gamma.cdf(values * rate, shape).ravel()
        assert stats.kstest(uniform[::5], "uniform").pvalue > 0.001


@pytest.mark.full
def test_weighted_draws_are_those_of_the_scaled_prior():
    """Every prior at the top is closed under powers, so the scaled posterior can be drawn."""
    power = 1.3
    base = BaseMeasure(shape=20.0, scale_shape=None)
    scaled = BaseMeasure(
        shape=20.0,
        scale_shape=None,
        rate_shape=power * (base.rate_shape - 1.0) + 1.0,
        rate_rate=power * base.rate_rate,
        precision_shape=power * (base.precision_shape - 1.0) + 1.0,
        precision_rate=power * base.precision_rate,
        location_scale=base.location_scale / np.sqrt(power),
    )
    long = {"draws": 8000, "chains": 2, "epsilon": [0.1]}
    plain = audited(FiniteMixture(base_measure=base), **long)
    target = audited(FiniteMixture(base_measure=scaled), **{**long, "random_seed": 2})
    prior = plain.tree["log_prior"].to_dataset()[["centre", "rate", "precision"]]
    weight = np.exp((power - 1.0) * prior.to_dataarray().sum("variable"))
    weighted = float((plain.delta[..., 0] * weight).sum() / weight.sum())
    moved = float(target.delta.mean()) - float(plain.delta.mean())
    error = float(plain.delta.std()) / np.sqrt(4000)
    assert moved > 10 * error
    assert weighted == pytest.approx(float(target.delta.mean()), abs=4 * error)


@pytest.mark.full
def test_a_silly_prior_shows_and_much_data_do_not_need_one():
    one_rate = FiniteMixture(base_measure=BaseMeasure(scale_shape=None))
    default, silly = prior_sensitivity(audited(one_rate)), prior_sensitivity(audited(
        FiniteMixture(base_measure=SILLY)
    ))  # fmt: skip
    assert default.index.tolist() == [
        f"{name}[{value}]" for name in ("delta", "total_risk") for value in EPSILON
    ]
    assert (default["prior"] < 0.05).all()
    assert (default["diagnosis"] == "✓").all()
    assert (silly[["prior", "likelihood"]] > 0.3).all().all()
    assert (silly["diagnosis"] == "potential prior-data conflict").all()
    much = prior_sensitivity(audited(one_rate, n=400))
    assert (much["prior"] < 0.02).all()
    assert (much["prior"] < 0.7 * default["prior"]).all()
    assert (much["likelihood"] > 0.05).all()


@pytest.mark.full
def test_process_and_bootstrap_have_their_priors_too():
    silly = DirichletProcessMixture(base_measure=BaseMeasure(shape=50.0, scale_shape=None))
    one = {"epsilon": [0.1], "draws": 400}
    found = prior_sensitivity(audited(silly, **one))["prior"]
    usual = prior_sensitivity(audited(DirichletProcessMixture(), **one))["prior"]
    assert (found > 2 * usual).all()
    tight = audited(edp.SmoothedBootstrap(bandwidth_spread=0.05), **one)
    wide = audited(edp.SmoothedBootstrap(bandwidth_spread=2.0), **one)
    low, high = (prior_sensitivity(a)["likelihood"] for a in (tight, wide))
    assert (high > 3 * low).all()


@pytest.mark.full
def test_a_risk_that_is_zero_in_every_draw_does_not_move():
    audit = audited(edp.SmoothedBootstrap(), epsilon=[0.1, 50.0])
    assert (audit.delta.sel(epsilon=50.0) == 0).all()
    table = prior_sensitivity(audit, quantities="delta")
    assert table.loc["delta[50.0]", ["prior", "likelihood"]].tolist() == [0.0, 0.0]
    assert table.notna().all().all()


@pytest.mark.full
def test_parameters_can_be_named_and_files_keep_them(audit, tmp_path):
    one = prior_sensitivity(audit, parameters=["rate"], epsilon=[0.02, 0.3])
    assert len(one) == 4
    assert (one["prior"] != prior_sensitivity(audit, epsilon=[0.02, 0.3])["prior"]).any()
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert prior_sensitivity(again).equals(prior_sensitivity(audit))
    people = prior_sensitivity(audit, quantities="individual_delta", epsilon=0.1)
    assert len(people) == 3


@pytest.mark.full
def test_nuts_and_gibbs_are_equally_sensitive():
    base = BaseMeasure(shape=50.0, scale_shape=None)
    nuts = audited(edp.FiniteMixture(base_measure=base), sampler="pymc", cores=1)
    gibbs = audited(FiniteMixture(base_measure=base))
    first, second = (prior_sensitivity(a)[["prior", "likelihood"]] for a in (nuts, gibbs))
    np.testing.assert_allclose(first, second, rtol=0.25)
    for name in ("centre", "rate", "precision", "unit_variance", "offset", "narrowest"):
        a, b = (x.tree["log_prior"][name] for x in (nuts, gibbs))
        assert float(a.mean()) == pytest.approx(float(b.mean()), abs=0.25 * float(b.std()))
    own = edp.PyMCMixture(edp.FiniteMixture(base_measure=base).build)
    table = audited(own, sampler="pymc", cores=1, draws=200).tree["log_prior"]
    assert set(json.loads(table.attrs["hyperparameters"])) == set(table.data_vars)


CASES = {
    "epsilon": ({"epsilon": [0.1, 0.2]}, "must be on the audit's grid.*found 0.2"),
    "quantity": ({"quantities": ["risk"]}, "quantity must be one of individual_delta"),
    "no quantity": ({"quantities": []}, "at least one name is needed"),
    "parameter": ({"parameters": ["sigma"]}, "parameter must be one of .*rate"),
    "threshold": ({"threshold": 0.0}, "threshold must be greater than 0"),
}


@pytest.mark.parametrize(("options", "message"), CASES.values(), ids=CASES)
def test_bad_arguments_are_named(audit, options, message):
    with pytest.raises(edp.InvalidInputError, match=message):
        prior_sensitivity(audit, **options)


def test_audits_without_a_prior_are_refused():
    stacked = audited(Stacked([FiniteMixture()]), draws=100)
    with pytest.raises(edp.InvalidInputError, match=r"no log prior.*Stacked\(.*audit each of its"):
        prior_sensitivity(stacked)
    with pytest.raises(edp.InputTypeError, match="an audit is needed, found int"):
        prior_sensitivity(1)


def test_the_units_of_the_base_measure_do_not_enter(audit):
    responses = make_responses()
    assert Standardisation.of(responses.response).spread > 0
    scaled = edp.Responses.from_arrays(
        100.0 * responses.response, contribution=100.0 * responses.contribution
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        other = edp.audit(scaled, epsilon=EPSILON, model=FiniteMixture(), **OPTIONS)
    first, second = (prior_sensitivity(a)[["prior", "likelihood"]] for a in (audit, other))
    np.testing.assert_allclose(first, second, rtol=1e-3)
