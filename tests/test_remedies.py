"""What warnings advise depends on the model: nobody is told what they did, or cannot do."""

import re

import numpy as np
import pandas as pd
import pytest
import typer
import xarray as xr

import edp_bayes as edp
from edp_bayes.cli.app import app
from edp_bayes.cli.options import Knows, parse_model
from edp_bayes.diagnostics import check_databases, check_draws, check_individuals
from edp_bayes.diagnostics.joint import check_joint_databases
from edp_bayes.models import FiniteMixture, PyMCMixture, SamplerSettings, Stacked
from edp_bayes.models.base import diverging_mixture
from edp_bayes.records.known import known

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
    "bootstrap": (
        edp.SmoothedBootstrap(),
        r"try another kernel \(kernel=, --kernel\), variable=True or",
    ),
    "variable": (
        edp.SmoothedBootstrap(variable=True),
        r"try another kernel \(kernel=, --kernel\) or a",
    ),
    "dpm": (
        edp.DirichletProcessMixture(),
        r"see what SmoothedBootstrap\(\) \(--model bootstrap\) says, or",
    ),
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
    assert pooled.endswith(
        "See what SmoothedBootstrap() (--model bootstrap) says, which pools nobody."
    )
    assert "SmoothedBootstrap" not in alone
    assert alone.endswith("rests on few databases: ask for more of them.")


def alike(n):
    rng = np.random.default_rng(n)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = 0.95 * y[t - 1] + rng.normal(0.0, 0.3)
    return y


def drifting(n):
    return np.linspace(0.0, 6.0, n) + np.random.default_rng(n).normal(0.0, 0.5, n)


SERIES = {
    "alike": alike,
    "opposed": lambda n: (
        np.tile([1.0, -1.0], n)[:n] + 0.1 * np.random.default_rng(n).normal(size=n)
    ),
    "drifting": drifting,
    "wider": lambda n: np.random.default_rng(n).normal(size=n) * np.exp(np.linspace(-1.5, 1.5, n)),
}


def of_series(name, n, days=False):
    rng = np.random.default_rng(1)
    c = rng.gamma(2.0, 0.01, (n, 4))
    dates = pd.date_range("2024-01-01", periods=n, freq="W-MON").to_numpy() if days else None
    y = 50.0 + SERIES[name](n) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, database=dates)


def told(sentence):
    """Return the adversary that a sentence names, after its options were found to say the same."""
    (call,) = re.findall(r"give adversary=(Adversary\(.*?\)), ", sentence)
    (options,) = re.findall(r"\), (--[^.]*)\.", sentence)
    adversary = eval(call, {"Adversary": edp.Adversary})
    command = typer.main.get_command(app).commands["audit"]
    given, _, _ = command.make_parser(typer.Context(command)).parse_args(options.split())
    past = int(given.pop("past", None) or 0)
    knows = Knows.parse(past=past, **given)
    for name in ("past", "trend", "season", "changing_scale"):
        assert (getattr(knows, name) or 0) == (getattr(adversary, name) or 0)
    return adversary


@pytest.mark.full
@pytest.mark.parametrize("n", [8, 9, 10, 11, 12, 14, 20, 53])
@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("days", [False, True])
def test_who_is_to_be_audited_against_can_be_on_these_databases(name, n, days):
    data = of_series(name, n, days)
    order = ("lag-1 autocorrelation", "Ljung-Box", "trend", "halves")
    failed = [c for c in check_databases(data).checks if not c.passed and c.name.startswith(order)]
    for check in failed:
        if "No adversary" in check.sentence:
            assert n < 12
            assert "too few" in check.sentence
            continue
        known(told(check.sentence), data, None)
    assert failed or n < 53


@pytest.mark.parametrize("name", ["alike", "drifting", "wider"])
def test_what_is_advised_of_dependent_databases_makes_the_sentence_go(name):
    data = of_series(name, 60)
    options = {"epsilon": [0.1], "model": BOOTSTRAP, "draws": 40, "chains": 2, "random_seed": 1}
    options["progressbar"] = False
    audit = edp.audit(data, **options)
    sentences = [one for one in audit.warnings if "give adversary=" in one]
    assert sentences
    again = edp.audit(data, adversary=told(sentences[0]), **options)
    (check,) = [name for name, row in audit.checks.iterrows() if row["sentence"] == sentences[0]]
    assert again.checks.loc[check, "passed"]


def test_lags_of_several_queries_are_advised_where_they_fit():
    data = of_series("alike", 16)
    rng = np.random.default_rng(3)
    others = [
        edp.Responses.from_arrays(
            rng.normal(size=16), contribution=0.01 * rng.normal(size=(16, 4)), query=f"q{k}"
        )
        for k in range(2)
    ]
    joint = edp.Responses.join(data, *others)
    (sentence,) = [s for s in check_joint_databases(joint).warnings if "give adversary=" in s][:1]
    adversary = told(sentence)
    assert adversary.past == 1  # two lags of three queries and a trend leave too few databases
    assert adversary.given(joint).regressors


@pytest.mark.parametrize(("n", "regressors"), [(9, 1), (12, 3), (40, 4)])
def test_given_an_adversary_no_more_is_advised_than_fits(n, regressors):
    scores = np.cumsum(np.random.default_rng(4).normal(size=n))
    said = check_databases(
        of_series("alike", n), scores=scores, past=0, regressors=regressors, level=0.9
    ).warnings
    (sentence,) = [one for one in said if "given what the adversary knows" in one][:1]
    assert ("more lags" in sentence) == (n - 1 - regressors - 1 >= 8)
    assert ("season" in sentence) == (n - regressors - 2 >= 8)
    assert ("it takes more of them" in sentence) == (n - regressors - 1 < 8)


@pytest.mark.full
@pytest.mark.parametrize("components", [3, 12])
def test_as_many_components_as_are_asked_for_are_enough(components):
    rng = np.random.default_rng(2)
    c = rng.gamma(2.0, 0.05, (41, 4))
    data = edp.Responses.from_arrays(rng.normal(size=41) + c.sum(axis=1), contribution=c)
    options = {"epsilon": [0.1, 3.0], "draws": 200, "chains": 2, "random_seed": 1}
    options["progressbar"] = False
    audit = edp.audit(data, model=edp.DirichletProcessMixture(components=components), **options)
    sentence = audit.checks.loc["truncation", "sentence"]
    (call,) = re.findall(r"\((DirichletProcessMixture\(components=\d+\))", sentence)
    (count,) = re.findall(r"--components (\d+)", sentence)
    model = eval(call, {"DirichletProcessMixture": edp.DirichletProcessMixture})
    assert parse_model("dpm", None, components=int(count)) == model
    assert edp.audit(data, model=model, **options).checks.loc["truncation", "passed"]
    with pytest.raises(edp.InvalidInputError, match="--components is for --model dpm"):
        parse_model("finite:3", None, components=5)


def test_a_calendar_of_less_than_two_years_has_no_season_to_leave_out():
    data = of_series("alike", 53, days=True)
    with pytest.raises(edp.InvalidInputError, match=r"no season\. Leave out season"):
        known(edp.Adversary(past=2, season="calendar"), data, None)
    known(edp.Adversary(past=2), data, None)
    known(edp.Adversary(past=2, season="calendar"), of_series("alike", 105, days=True), None)


def test_noise_that_ran_out_of_time_is_sent_to_no_method_that_refuses(monkeypatch, responses):
    from edp_bayes.noise import search

    times = iter([0.0])
    monkeypatch.setattr(search, "now", lambda: next(times, 1e6))
    for delta in (0.0, 0.01):
        with pytest.raises(edp.EdpBayesError, match="give a longer time_limit") as error:
            edp.noise.calibrate(
                responses, epsilon=0.1, delta=delta, model=BOOTSTRAP, draws=5, chains=1,
                time_limit=1.0, progressbar=False,
            )  # fmt: skip
        assert ("bottleneck" in str(error.value)) == (delta == 0.0)
        times = iter([0.0])
