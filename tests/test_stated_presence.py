"""The test of presence against what a model of contributions states: a household."""

import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.diagnostics import check_databases
from edp_bayes.diagnostics.stated import stated_presence

NAMES = ("presence", "amount", "slope", "spread")
PATTERNS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
COMES, JOINS, AMOUNT, SPREAD = 0.6, np.array([0.9, 0.8]), np.array([1.0, 2.0]), 0.1
EACH = np.prod(np.where(PATTERNS, JOINS, 1.0 - JOINS), axis=1)
WEIGHTS = COMES * EACH + (1.0 - COMES) * (np.arange(4) == 0)


def household(seed, n=60):
    """Return responses to which two come together or not at all, and their patterns."""
    rng = np.random.default_rng(seed)
    pattern = rng.choice(4, n, p=WEIGHTS)
    own = PATTERNS[pattern] * rng.normal(AMOUNT, SPREAD, (n, 2))
    y = 20.0 + rng.standard_normal(n) + own.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=own, individual=["Ann", "Ben"])


def truth(presence=PATTERNS.T, draws=3):
    """Return draws that are the truth, of a presence by component that may be another."""
    lead, shape = ("chain", "draw"), (2, draws)
    places = 20.0 + PATTERNS @ AMOUNT
    values = {
        "weights": WEIGHTS,
        "locations": places,
        "scales": np.sqrt(1.0 + SPREAD**2 * PATTERNS.sum(axis=1)),
        "presence": np.asarray(presence, dtype=float),
        "amount": AMOUNT,
        "slope": np.zeros(2),
        "spread": np.full(2, SPREAD),
    }
    dims = {"presence": ("individual", "component")} | dict.fromkeys(NAMES[1:], ("individual",))
    return xr.Dataset(
        {
            name: ((*lead, *dims.get(name, ("component",))), np.broadcast_to(v, (*shape, *v.shape)))
            for name, v in values.items()
        }
    )


def checked(responses, draws):
    model = edp.PyMCMixture(edp.FiniteMixture().build, contributions=NAMES)
    coupling = model.to_mixture(draws, responses).coupling
    return check_databases(responses, stated=stated_presence(coupling, responses))


def test_what_is_stated_is_the_formula_of_bayes():
    responses = household(1)
    coupling = (
        edp.PyMCMixture(edp.FiniteMixture().build, contributions=NAMES)
        .to_mixture(truth(), responses)
        .coupling
    )
    stated = stated_presence(coupling, responses)
    assert stated is not None
    found = stated(np.array([0]))[:, 0]
    # the rest of Ann is 20, or 22 where Ben is there; Ann comes by 0.9 in a household that comes
    rest = responses.response - responses.contribution.toarray()[:, 0]
    there = np.exp(-0.5 * (rest - 22.0) ** 2 / 1.01) / np.sqrt(1.01)
    alone = np.exp(-0.5 * (rest - 20.0) ** 2)
    ann = WEIGHTS[1] * alone + WEIGHTS[3] * there
    np.testing.assert_allclose(
        found, ann / (ann + WEIGHTS[0] * alone + WEIGHTS[2] * there), atol=1e-9
    )


@pytest.mark.full
def test_a_dependence_that_is_stated_fails_as_often_as_its_level_says():
    """Against the data alone it fails in most: who comes depends on the rest."""
    plain, given = [], []
    for seed in range(100):
        responses = household(seed)
        plain.append(check_databases(responses)["presence"].p_value)
        given.append(checked(responses, truth())["presence"].p_value)
    assert np.mean(np.array(plain) < 0.05) > 0.8
    assert np.mean(np.array(given) < 0.05) <= 0.1


def test_a_dependence_that_is_stated_wrongly_fails():
    """Chance alone, or one who comes when the other does not."""
    chance = np.broadcast_to(WEIGHTS @ PATTERNS, (4, 2)).T
    swapped = np.array([[0.9, 0.9, 0.1, 0.1], [0.9, 0.1, 0.9, 0.1]])
    for presence in (chance, swapped):
        failed = [
            not checked(household(seed), truth(presence))["presence"].passed for seed in range(20)
        ]
        assert np.mean(failed) > 0.8
    sentence = checked(household(3), truth(chance))["presence"].sentence
    assert "comes otherwise than the model states when the response without them is high" in str(
        sentence
    )


def test_who_is_stated_to_be_always_there_and_is_not_fails():
    assert not checked(household(1), truth(np.ones((2, 4))))["presence"].passed


def test_contributions_by_empirical_bayes_state_nothing():
    responses = household(1)
    coupling = edp.FiniteMixture().to_mixture(truth(), responses).coupling
    assert stated_presence(coupling, responses) is None


@pytest.mark.parametrize("names", [None, NAMES])
def test_an_audit_withholds_what_its_model_denies_alone(names):
    draws = truth(draws=50)
    moved = np.random.default_rng(1).normal(0.0, 0.01, draws["locations"].shape)
    audit = edp.audit_trace(
        draws.assign(locations=draws["locations"] + moved),
        household(2),
        epsilon=[0.1],
        contributions=names,
        random_seed=1,
        progressbar=False,
    )
    assert audit.checks.loc["presence", "passed"] == (names is not None)
