"""`edp.audit`: invariance, real models end to end, and what bad input gets."""

import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr

import edp_bayes as edp
from edp_bayes.auditing import evaluation
from edp_bayes.models import DirichletProcessMixture

QUICK = {"draws": 40, "tune": 100, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.05, (30, 9)) * (rng.random((30, 9)) < 0.6)
    c[:, 2] = 0.5 + 0.1 * rng.standard_normal(30)
    return edp.Responses.from_arrays(
        20.0 + rng.standard_normal(30) + c.sum(axis=1), contribution=sp.csc_array(c)
    )


MODELS = {
    "bootstrap": edp.SmoothedBootstrap(),
    "mixture": DirichletProcessMixture(),
}


def same(first, second):
    for name in ("delta", "total_risk", "total_risk_bound", "individual_delta"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_seed_alone_decides_the_numbers(model, responses, monkeypatch):
    epsilon = [0.05, 0.3]
    first = edp.audit(responses, epsilon=epsilon, model=model, cores=1, **QUICK)
    monkeypatch.setattr(evaluation, "BLOCK_NUMBERS", 1)
    second = edp.audit(responses, epsilon=epsilon, model=model, cores=2, **QUICK)
    same(first, second)
    third = edp.audit(responses, epsilon=epsilon, model=model, **{**QUICK, "random_seed": 2})
    assert (first.delta != third.delta).any()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_units_do_not_matter(responses):
    scaled = edp.Responses.from_arrays(
        1000.0 * responses.response, contribution=1000.0 * responses.contribution
    )
    for model in MODELS.values():
        first = edp.audit(responses, epsilon=[0.05, 0.3], model=model, **QUICK)
        second = edp.audit(scaled, epsilon=[0.05, 0.3], model=model, **QUICK)
        np.testing.assert_allclose(first.delta, second.delta, rtol=1e-6, atol=1e-11)


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_an_unseeded_audit_records_a_seed_that_repeats_it(responses):
    options = {**QUICK, "random_seed": None, "model": edp.SmoothedBootstrap()}
    first = edp.audit(responses, epsilon=[0.1], **options)
    options["random_seed"] = first.settings["random_seed"]
    same(first, edp.audit(responses, epsilon=[0.1], **options))


def test_warnings_of_the_databases_are_given_and_kept():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal(60))
    responses = edp.Responses.from_arrays(walk, walk[:, None] - rng.gamma(1.0, 0.1, (60, 3)))
    with pytest.warns(edp.EdpBayesWarning, match="not independent"):
        audit = edp.audit(responses, epsilon=[0.1], model=edp.SmoothedBootstrap(), **QUICK)
    assert any("not independent" in sentence for sentence in audit.warnings)
    assert not audit.checks.loc["lag-1 autocorrelation", "passed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": []}, "epsilon must hold at least one value"),
        ({"epsilon": [0.2, 0.1]}, "epsilon must be strictly increasing, found 0.2 before 0.1"),
        ({"epsilon": [-0.1, 0.1]}, "epsilon must not be negative, found -0.1"),
        ({"epsilon": [0.1, np.nan]}, "epsilon must be finite, found nan at position 1"),
        ({"epsilon": ["a"]}, "epsilon must be numeric"),
        ({"epsilon": [0.1, 800.0]}, "epsilon must be at most 700, found 800"),
        ({"cores": 0}, "cores must be at least 1, found 0"),
        (
            {"random_state": 1},
            "no option 'random_state', random_seed may be meant: sampling takes draws",
        ),
        ({"random_state": 1, "model": None}, "no option 'random_state'"),
        (
            {"target_accept": 0.9, "model": None},
            "target_accept is an argument of NUTS, and this model",
        ),
        ({"model": edp.noise.FixedBandwidth(1.0)}, r"asked for, 2 of 40; found shape \(1, 1\)"),
        ({"draws": 0}, "draws must be at least 1, found 0"),
        ({"tune": 0}, "tune must be at least 1, found 0"),
        ({"chains": -1}, "chains must be at least 1, found -1"),
        ({"draws": 1.5}, "draws must be an integer, found 1.5"),
        ({"keep": 0}, "keep must be at least 1"),
        ({"random_seed": -1}, "random_seed must not be negative"),
        ({"random_seed": "x"}, "random_seed must be an integer or None"),
        (
            {"sampler": "stan"},
            "sampler must be one of gibbs, nutpie, pymc, numpyro, blackjax, found 'stan'",
        ),
        ({"model": "dpm"}, "model must be a density model"),
        ({"individuals": ["nobody"]}, "nobody"),
    ],
)
def test_bad_arguments_are_named(responses, options, message):
    arguments = {"epsilon": [0.1], "model": edp.SmoothedBootstrap(), **QUICK, **options}
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        edp.audit(responses, **arguments)


@pytest.mark.parametrize("individuals", [0, "ann"])
def test_individuals_are_a_list(responses, individuals):
    with pytest.raises(edp.InputTypeError, match="individuals must be a list of labels"):
        edp.audit(responses, epsilon=[0.1], individuals=individuals)


@pytest.mark.full
def test_the_default_is_the_model_of_the_calibration_study(responses):
    found, named = (
        edp.audit(responses, epsilon=[0.1], model=model, **QUICK)
        for model in (None, DirichletProcessMixture())
    )
    same(found, named)
    assert found.settings["model"] == "DirichletProcessMixture()"


def test_something_else_than_responses_is_refused():
    with pytest.raises(edp.InputTypeError, match="responses must be Responses, found ndarray"):
        edp.audit(np.zeros(20), epsilon=[0.1])


@pytest.mark.parametrize(("chains", "draws", "least"), [(4, 3, 4), (1, 7, 8)])
def test_too_few_draws_are_refused_before_the_fit(responses, monkeypatch, chains, draws, least):
    def fit(self, responses, settings):
        raise AssertionError("too late")

    monkeypatch.setattr(edp.SmoothedBootstrap, "fit", fit)
    with pytest.raises(edp.InvalidInputError, match=f"at least {least} draws .* found {draws}"):
        edp.audit(
            responses,
            epsilon=[0.1],
            model=edp.SmoothedBootstrap(),
            chains=chains,
            draws=draws,
            progressbar=False,
        )


def test_few_draws_are_doubted_and_not_refused():
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.1, (40, 3))
    responses = edp.Responses.from_arrays(rng.normal(10.0, 1.0, 40), contribution=contribution)
    model = edp.FiniteMixture()
    with pytest.warns(edp.EdpBayesWarning, match="20 draws are too few for PSIS-LOO"):
        found = edp.audit(
            responses, epsilon=[0.1], model=model, draws=5, random_seed=1, progressbar=False
        )
    assert not found.checks.loc["out-of-sample log density", "passed"]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_numbers_of_numpy_will_do(responses):
    options = {name: np.int64(v) for name, v in QUICK.items() if name != "progressbar"}
    model = edp.FiniteMixture(components=np.int64(2))
    first = edp.audit(responses, epsilon=[0.1], model=model, progressbar=False, **options)
    model = edp.FiniteMixture(components=2)
    same(first, edp.audit(responses, epsilon=[0.1], model=model, **QUICK))
    assert first.settings["model"] == repr(model)


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_an_individual_named_twice_counts_once(responses):
    options = {"epsilon": [0.05, 0.3], "model": edp.SmoothedBootstrap(), "keep": 1, **QUICK}
    once = edp.audit(responses, individuals=[4], **options)
    often = edp.audit(responses, individuals=[4, 2, 4, 4], **options)
    assert often.individual_delta.sizes["individual"] == 2  # individual 2 is the riskiest
    xr.testing.assert_equal(once.band("total_risk"), often.band("total_risk"))
    assert often.band("individual_delta").sizes["individual"] == 2


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_labels_that_differ_in_type_alone_stay_apart(responses):
    labels = [1, "1", *"abcdefg"]
    named = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution, individual=labels
    )
    found = edp.audit(named, epsilon=[0.1], model=edp.SmoothedBootstrap(), **QUICK)
    shown = found.band("individual_delta")["individual"].to_numpy()
    assert len(set(shown)) == len(labels)
    assert {"1", "'1'"} <= set(shown)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("model", [None, edp.SmoothedBootstrap()], ids=["default", "bootstrap"])
def test_the_order_of_individuals_does_not_matter(model):
    rng = np.random.default_rng(8)
    contribution = rng.gamma(2.0, 0.1, (40, 15)) * (rng.random((40, 15)) < rng.uniform(0.2, 1, 15))
    contribution[:, 3] = rng.gamma(4.0, 0.8, 40)
    response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    names = np.array([f"meter {k}" for k in range(15)], dtype=object)
    order = rng.permutation(15)
    first, second = (
        edp.audit(
            edp.Responses.from_arrays(
                response, contribution=contribution[:, chosen], individual=names[chosen]
            ),
            epsilon=[0.05, 0.2, 0.5],
            model=model,
            draws=40,
            tune=100,
            chains=2,
            individuals=["meter 7"],
            keep=4,
            random_seed=9,
            progressbar=False,
        )
        for chosen in (np.arange(15), order)
    )
    xr.testing.assert_identical(
        first.individuals, second.individuals.sel(individual=first.individuals["individual"])
    )
    for name in ("delta", "individual_delta", "total_risk", "total_risk_bound"):
        one, other = getattr(first, name), getattr(second, name)
        if name.startswith("total"):  # sums and products over individuals
            xr.testing.assert_allclose(one, other, rtol=1e-12)
        else:
            xr.testing.assert_identical(one, other)
    xr.testing.assert_identical(first.new_individual(), second.new_individual())


@pytest.mark.full
@pytest.mark.parametrize("adversary", [None, edp.Adversary(past=2)])
def test_responses_to_which_nobody_contributes_can_be_audited(adversary):
    y = np.random.default_rng(3).normal(size=40)
    responses = edp.Responses.from_arrays(y, contribution=np.zeros((40, 3)))
    audit = edp.audit(
        responses, epsilon=[0.1], adversary=adversary, draws=50, random_seed=1, progressbar=False
    )
    assert float(audit.upper("delta")[0]) < 0.02
    assert audit.individuals["largest_contribution"].max() == 0.0
