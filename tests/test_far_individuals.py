"""Individuals far outside the others: risks, their lower bounds and `epsilon_at` at any epsilon."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.auditing.lower_bounds import lower_bounds
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.divergence.composition.pairs import curves as composed_curves
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.exceptions import InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")

EPSILON = np.array([0.1, 1.0, 5.0, 14.0, 20.0, 50.0, 100.0, 200.0, 400.0, 600.0, 700.0])
MODELS = {
    "default": None,
    "laplace bootstrap": edp.SmoothedBootstrap(),
    "gaussian bootstrap": edp.SmoothedBootstrap(kernel="gaussian"),
    "normal": edp.FiniteMixture(components=1),
}


def responses(unit=1.0, people=4):
    """One individual contributes about 40 standard deviations, one 25 in half of the databases."""
    rng = np.random.default_rng(0)
    c = np.abs(rng.normal(0.0, 0.05, (40, people)))
    c[:, 0] = 40.0 + 0.3 * rng.normal(size=40)
    c[:20, 1] = 25.0 + rng.normal(size=20)
    y = 100.0 + rng.standard_normal(40) + c.sum(axis=1)
    return edp.Responses.from_arrays(y * unit, contribution=c * unit)


def audited(data, model, epsilon=EPSILON):
    return edp.audit(
        data, epsilon=epsilon, model=model, draws=6, chains=2, random_seed=1, progressbar=False
    )


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(MODELS))
def test_audits_are_right_at_any_epsilon(name):
    audit = audited(responses(), MODELS[name])
    coupling = audit.source.coupling
    people = np.arange(4)
    curves = coupling.curves(people, EPSILON)
    pairs = [coupling.pair(i) for i in people]

    def risk(epsilon):
        both = (
            np.maximum(
                edp.hockey_stick(p, q, epsilon=epsilon), edp.hockey_stick(q, p, epsilon=epsilon)
            )
            for p, q in pairs
        )
        return np.stack([part.reshape(12, -1) for part in both], axis=1)

    np.testing.assert_allclose(curves, risk(EPSILON), rtol=0.0, atol=2e-12)
    delta = curves.max(axis=1)
    found = lower_bounds(
        coupling, people, curves, delta, 1.0 - np.prod(1.0 - curves, axis=1), EPSILON
    )
    assert (found.individual_delta <= curves.reshape(found.individual_delta.shape)).all()
    assert (found.delta <= delta.reshape(found.delta.shape)).all()
    # cells keep their digits: where the risk is large, so is what the test reaches
    assert found.individual_delta[..., 0, 0].mean() > 0.5 * curves[:, 0, 0].mean()
    at = audit.epsilon_at(0.3)
    for k, (upper, lower) in enumerate(
        zip(at.values.ravel(), at["lower"].values.ravel(), strict=True)
    ):
        if np.isfinite(upper):
            assert risk(upper)[k].max() <= 0.3 + 1e-9
        assert risk(lower)[k].max() >= 0.3 - 1e-9


def test_rounded_answers_far_out():
    audit = audited(responses(), MODELS["normal"])
    delta = audit.delta.values
    for options in ({"rounded_to": 0.5}, {"rounded_to": 1e-4}, {"threshold": 120.0}):
        released = audit.released(**options).delta.values
        assert (released <= delta + 1e-9).all()
        assert (np.diff(released, axis=-1) <= 1e-9).all()


@pytest.mark.parametrize(
    ("shift", "databases"), [(0.3, 2), (5.0, 2), (7.0, 1), (40.0, 1), (1e6, 3)]
)
def test_compositions_are_bounded_on_both_sides(shift, databases):
    epsilon = np.array([0.1, 1.0, 5.0, 10.0, 20.0, 30.0])
    p, q = (rows(GAUSSIAN, np.ones((1, 1)), np.full((1, 1), m), 1.0) for m in (shift, 0.0))
    upper, lower = composed_curves([(p, q)], [databases], epsilon)
    exact = gaussian_shift(shift * databases**0.5, epsilon)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()


def test_compositions_beyond_their_epsilon_are_refused():
    audit = audited(responses(), MODELS["normal"])
    with pytest.raises(InvalidInputError, match="at most 30 for several databases"):
        edp.compose(audit, databases=2, progressbar=False)


@pytest.mark.full
@pytest.mark.parametrize("unit", [2.0**85, 2.0**-95])
@pytest.mark.parametrize("name", ["default", "laplace bootstrap", "normal"])
def test_units_make_no_difference(name, unit):
    grid = np.array([0.1, 1.0, 20.0])
    found = [audited(responses(scale), MODELS[name], grid) for scale in (1.0, unit)]
    for quantity in ("delta", "total_risk"):
        one, other = (getattr(audit, quantity).values for audit in found)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_units_that_no_double_holds_are_refused():
    with pytest.raises(InvalidInputError, match=r"spread by at least 1e-30"):
        responses(1e-200)
    with pytest.raises(InvalidInputError, match=r"the largest response is 1.67e.152"):
        responses(1e150)
    y, c = np.arange(20.0), np.zeros((20, 1))
    c[3] = 1e100
    with pytest.raises(InvalidInputError, match=r"the largest contribution is 1e.100"):
        edp.Responses.from_arrays(y, contribution=c)
    with pytest.raises(InvalidInputError, match=r"the largest scale of the noise is 1e.200"):
        edp.Responses.from_arrays(y, contribution=y, noise=edp.LaplaceNoise(1e200))
