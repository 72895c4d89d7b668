"""What a truncated Dirichlet process leaves out, against the risks that are reported."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics.truncation import Truncation, check_truncation
from edp_bayes.models import DirichletProcessMixture, FiniteMixture, SamplerSettings

SETTINGS = SamplerSettings(draws=400, tune=300, chains=2, random_seed=3, progressbar=False)
QUICK = {"draws": 40, "tune": 100, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(5)
    part = rng.gamma(2.0, 0.05, (30, 3))
    return edp.Responses.from_arrays(rng.standard_normal(30) + part.sum(axis=1), contribution=part)


def test_the_mass_is_what_sticks_leave_on_average():
    rng = np.random.default_rng(1)
    alpha, components = np.array([0.4, 1.0, 3.0]), 6
    sticks = 1.0 - rng.random((200_000, components - 1, 3)) ** (1.0 / alpha)
    left = np.prod(1.0 - sticks, axis=1)
    assert Truncation(alpha, components).mass == pytest.approx(left.mean(), rel=0.01)


def test_a_fit_weighs_its_last_component_as_the_mass_says(responses):
    fitted = DirichletProcessMixture(components=8, thin=10).fit(responses, SETTINGS)
    (process,) = fitted.truncated
    assert fitted.attributes["truncation_mass"] == process.mass
    assert process.mass == pytest.approx(fitted.mixture.weights[..., -1].mean(), rel=0.5)
    assert FiniteMixture(components=2).fit(responses, SETTINGS).truncated == ()


@pytest.mark.full
def test_nuts_says_the_same_mass(responses):
    model = DirichletProcessMixture(components=8)
    nuts = model.fit(
        responses, SamplerSettings(**{**QUICK, "draws": 1000, "tune": 1000}, sampler="nutpie")
    )
    gibbs = model.fit(responses, SETTINGS)
    assert nuts.truncated[0].mass == pytest.approx(gibbs.truncated[0].mass, rel=0.3)


def test_a_mass_above_a_limit_fails_and_names_what_suffices():
    process = Truncation(np.array([0.5, 1.0, 2.0]), 12)
    passed = check_truncation([process], epsilon=[0.1, 0.5], upper=[0.2, process.mass])
    assert passed.passed
    failed = check_truncation([process], epsilon=[0.1, 0.5, 1.0], upper=[0.2, 1e-4, 1e-5])
    check = failed["truncation"]
    assert not check.passed
    assert check.statistic == process.mass
    assert "at 2 of 3 epsilons, from 0.5 on" in check.sentence
    enough = int(check.sentence.rstrip(").").split()[-1])
    assert process.mass_of(enough) <= 1e-6 < process.mass_of(enough - 1)


def test_limits_too_small_to_print_ask_for_no_more_than_can_be_had():
    process = Truncation(np.array([1.0]), 25)
    assert process.mass < 1e-6
    assert check_truncation([process], epsilon=[2.0], upper=[0.0]).passed
    assert check_truncation([], epsilon=[2.0], upper=[0.0]).checks == ()


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_an_audit_fails_by_name_where_its_mixture_is_too_short(responses):
    def audit(components):
        model = DirichletProcessMixture(components=components)
        return edp.audit(responses, epsilon=[0.05, 4.0], model=model, **QUICK)

    short, long = audit(4), audit(60)
    assert not short.checks.loc["truncation", "passed"]
    assert any("more components" in sentence for sentence in short.warnings)
    mass = short.settings["truncation_mass"]
    assert short.checks.loc["truncation", "statistic"] == pytest.approx(mass)
    assert long.checks.loc["truncation", "passed"]
    assert long.settings["truncation_mass"] < 1e-6 < mass


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_a_stack_weighs_the_mass_by_the_share_of_draws(responses):
    model = edp.Stacked([DirichletProcessMixture(components=5), edp.SmoothedBootstrap()])
    fitted = model.fit(responses, SETTINGS)
    (process,) = fitted.truncated
    weight = fitted.attributes["stacking_weights"][0]
    assert process.mass == pytest.approx(
        weight * fitted.attributes["members"][0]["truncation_mass"]
    )
    stacked = edp.audit(responses, epsilon=[0.05, 0.5], model=model, **QUICK)
    assert "truncation" in stacked.checks.index
