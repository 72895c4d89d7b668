"""Who asks where delta is zero, and cannot know it, is told a delta that has an epsilon."""

import re

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.property_audit import BetaBinomialModel, BinomialModel

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
QUICK = {"draws": 20, "chains": 2, "random_seed": 1, "progressbar": False}
ONE = edp.FiniteMixture(components=1)
BOOTSTRAP = edp.SmoothedBootstrap()
NAMED = re.compile(r"ask for a delta that every draw falls to, such as ([\d.e-]+\d)")
LONGER = re.compile(r"audit at epsilon above ([\d.]+) \(epsilon=\)")


def answers(query="query", seed=7):
    rng = np.random.default_rng(seed)
    c = rng.gamma(4.0, 0.2, (24, 3))
    y = 20.0 + rng.standard_normal(24) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, query=query)


def of_model(epsilon, model=ONE):
    return edp.audit(answers(), epsilon=epsilon, model=model, **QUICK)


def of_several(epsilon):
    both = edp.Responses.join(answers(), answers("other", seed=8))
    return edp.audit(both, epsilon=epsilon, model=ONE, **QUICK)


def of_outcomes(epsilon):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=300), 0.5 + rng.normal(size=300)
    return edp.audit_mechanism(first, second, epsilon=epsilon, **QUICK)


def of_pairs(epsilon):
    def respond(share, size, rng):
        return rng.random(size) < share

    pairs = [(0.3, 0.6), (0.4, 0.7)]
    return edp.audit_mechanisms(respond, pairs, size=200, epsilon=epsilon, **QUICK)


def of_property(epsilon, model, count, n):
    return edp.audit_property(count, n, epsilon=epsilon, model=model, tune=30, **QUICK)


# How an audit is made on a grid of epsilon, and one grid that ends too early for any small delta.
AUDITS = {
    "model": (of_model, 0.1),
    "rounded": (lambda e: of_model(e, BOOTSTRAP).released(rounded_to=1.0, progressbar=False), 0.1),
    "several queries": (of_several, 0.1),
    "several databases": (
        lambda e: edp.compose(of_model(e, BOOTSTRAP), databases=2, progressbar=False),
        0.2,
    ),
    "outcomes": (of_outcomes, 0.1),
    "pairs": (of_pairs, 0.1),
    "dependent entries": (
        lambda e: of_property(e, BetaBinomialModel(), [30, 60, 12, 44, 75, 20], 100),
        0.1,
    ),
    "independent entries": (lambda e: of_property(e, BinomialModel(), [9, 11, 10], 20), 0.1),
}


def asked(result):
    """Ask where delta is zero, and return what is said instead."""
    with pytest.raises(edp.InvalidInputError, match="delta must be above 0 here") as error:
        result.epsilon_at(0.0)
    return str(error.value)


@pytest.mark.full
@pytest.mark.parametrize("case", AUDITS)
def test_the_delta_that_is_named_has_an_epsilon_in_every_draw(case):
    audited, last = AUDITS[case]
    short = asked(audited([last]))
    assert not NAMED.search(short)
    (above,) = LONGER.findall(short)
    assert float(above) == last
    longer = audited(np.array([1.0, 2.0, 5.0, 10.0, 20.0]) * float(above) * 4.0)
    (delta,) = NAMED.findall(asked(longer))
    assert np.isfinite(longer.epsilon_at(float(delta))).all()
    assert float(delta) == 1e-6 or np.isinf(longer.epsilon_at(float(delta) / 10.0)).any()


def test_the_model_that_is_named_knows_where_delta_is_zero():
    said = asked(of_model([0.1]))
    (call,) = re.findall(r"or audit with (SmoothedBootstrap\(.*?\))", said)
    model = eval(call, {"SmoothedBootstrap": edp.SmoothedBootstrap})
    assert np.isfinite(of_model([0.1], model).epsilon_at(0.0)).all()


def test_a_saved_audit_is_made_again(tmp_path):
    audit = of_model([0.1, 20.0], BOOTSTRAP)
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    said = asked(loaded)
    assert "audit again, or ask for" in said
    (delta,) = NAMED.findall(said)
    assert np.isfinite(loaded.epsilon_at(float(delta))).all()
    assert np.isfinite(audit.epsilon_at(0.0)).all()


@pytest.mark.parametrize("audited", [of_outcomes, of_pairs])
def test_the_local_epsilon_is_there_where_it_is_named(audited):
    found = audited([0.1])
    assert "or see local_epsilon" in asked(found)
    assert np.isfinite(found.local_epsilon.median())
