"""Several models of several answers in one: each draw is its own model's."""

from dataclasses import replace

import numpy as np
import pytest
from joint_cases import EPSILON, joint_coupling, joint_responses

import edp_bayes as edp
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.coupling.views.stacked_answers import stack_answers

QUICK = {"draws": 15, "tune": 100, "chains": 2, "random_seed": 1, "progressbar": False}
PEOPLE = np.array([0, 1, 2, 5])
MEMBER = np.array([[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]])
STACKED = edp.Stacked([edp.DirichletProcessMixture(components=4), edp.SmoothedBootstrap()])


@pytest.fixture(scope="module")
def members():
    return [joint_coupling(kind, draws=5) for kind in ("mixture", "bootstrap")]


@pytest.fixture(scope="module")
def stacked(members):
    return stack_answers(members, MEMBER, joint_responses())


def test_one_model_alone_is_itself(members):
    one = stack_answers(members[:1], np.zeros((2, 5), dtype=np.int64), joint_responses())
    for found, known in zip(
        one.curves(PEOPLE, EPSILON), members[0].curves(PEOPLE, EPSILON), strict=True
    ):
        np.testing.assert_array_equal(found, known)


def test_every_draw_is_that_of_its_model(members, stacked):
    """Of whom p and p_i are known, and integrals as far as their errors tell."""
    which = MEMBER.ravel()
    found = stacked.curves(PEOPLE, EPSILON)
    own = [one.curves(PEOPLE, EPSILON) for one in members]
    for row, k in enumerate(which):
        away = np.abs(found.value[row] - own[k].value[row])
        assert (away <= 4.0 * (found.error[row] + own[k].error[row]) + 1e-4).all()
    for person in PEOPLE.tolist():
        for side, found in enumerate(stacked.pair(person)):
            known = [one.pair(person)[side] for one in members]
            np.testing.assert_allclose(
                found.mean(), [known[k].mean()[row] for row, k in enumerate(which)], atol=1e-9
            )
            np.testing.assert_allclose(
                found.covariance(),
                [known[k].covariance()[row] for row, k in enumerate(which)],
                atol=1e-9,
            )


def test_models_of_other_units_are_put_in_those_of_the_first(members):
    """As where each model adjusts the answers to an adversary by coefficients of its own."""
    other = joint_coupling("mixture", draws=5, seed=6)
    both = [members[1], other]
    p, _ = stack_answers(both, MEMBER, joint_responses()).pair(5)
    found = p.in_units(members[1].units)
    known = [one.pair(5)[0].in_units(one.units) for one in both]
    for row, k in enumerate(MEMBER.ravel()):
        np.testing.assert_allclose(found.mean()[row], known[k].mean()[row], rtol=1e-9)
        np.testing.assert_allclose(found.covariance()[row], known[k].covariance()[row], rtol=1e-9)


def test_some_draws_and_some_individuals_of_a_stack_are_those_of_all(stacked):
    rows = np.array([1, 4, 8])
    some = stacked.picked(rows)
    for one, other in zip(some.pair(5), stacked.pair(5), strict=True):
        np.testing.assert_allclose(one.mean(), other.mean()[rows], atol=1e-12)
    few = taken(stacked, PEOPLE)
    whole, part = (
        stacked.curves(PEOPLE, EPSILON).value,
        few.curves(np.arange(4), EPSILON).value,
    )
    np.testing.assert_array_equal(part, whole)
    orders = np.array([0.5, 2.0])
    moments = stacked.log_moments(PEOPLE, orders)
    np.testing.assert_allclose(some.log_moments(PEOPLE, orders), moments[rows], rtol=1e-12)


def test_a_floor_leaves_the_largest_risk_as_it_is(stacked):
    everybody = np.arange(stacked.n_individuals)
    led = stacked.led(EPSILON)
    first, second = (one.curves(everybody, EPSILON).value.max(axis=1) for one in (stacked, led))
    np.testing.assert_allclose(first, second, atol=2e-3)
    assert led.floor.shape == (10, 3)
    assert replace(led, floor=None).floor is None


@pytest.mark.full
@pytest.mark.parametrize("adversary", [None, edp.Adversary(trend=True)])
def test_an_audit_takes_a_stack_of_models(adversary):
    part = joint_responses()
    days = np.arange("2024-01-01", "2024-01-31", dtype="M8[D]")
    both = edp.Responses.join(*(one.replaced(database=days, additive=True) for one in part.parts))
    audit = edp.audit(both, epsilon=EPSILON, model=STACKED, adversary=adversary, **QUICK)
    settings = audit.settings
    assert settings["sampler"] == "stacked"
    assert sum(settings["stacking_weights"]) == pytest.approx(1.0)
    assert (audit.band()["lower"] <= audit.band()["upper"]).all()
    weights = audit.joint_mixture.weights
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    row = audit.released(rounded_to={"sum": 4.0, "count": 2.0}, progressbar=False)
    assert (row.upper() <= audit.upper() + 1e-12).all()
