"""Joint density models: one posterior by two samplers, and that of one dimension."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.distributions.multivariate import Units
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base_measure import BaseMeasure, Standardisation
from edp_bayes.models.gibbs import draw_parameters
from edp_bayes.models.joint_gibbs import Weights, draw_joint
from edp_bayes.models.joint_nuts import draw_joint_nuts
from edp_bayes.models.sampling import SamplerSettings

SETTINGS = SamplerSettings(draws=500, tune=500, chains=2, random_seed=1, progressbar=False)


def two_answers(n, seed=1):
    rng = np.random.default_rng(seed)
    away = np.where(rng.random(n)[:, None] < 0.3, [4.0, -2.0], 0.0)
    return rng.normal(size=(n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]]) + away


@pytest.mark.full
def test_in_one_dimension_it_is_the_mixture_of_one_dimension():
    y = two_answers(40)[:, [0]]
    units = Units.of(y)
    joint = draw_joint(
        y, units, base=BaseMeasure(), weights=Weights(8, (2.0, 2.0)), settings=SETTINGS, thin=10
    ).mixture.in_units(units)
    plain = draw_parameters(
        y,
        settings=SETTINGS,
        components=8,
        base=BaseMeasure(),
        concentration=(2.0, 2.0),
        weight_concentration=0.0,
        thin=10,
        units=Standardisation(float(units.centre[0]), float(units.factor[0, 0])),
    ).mixture
    x = np.linspace(y.min() - 1.0, y.max() + 1.0, 15)
    found = np.exp(joint.logpdf(x[:, None])).mean(axis=(0, 1))
    exact = plain.pdf(x).mean(axis=(0, 1))
    assert np.abs(found - exact).max() < 0.03 * exact.max()


@pytest.mark.full
def test_gibbs_sampling_and_nuts_draw_one_posterior():
    y = two_answers(30)
    units, weights = Units.of(y), Weights(2, dirichlet=1.0)
    gibbs = draw_joint(y, units, base=BaseMeasure(), weights=weights, settings=SETTINGS, thin=50)
    nuts = draw_joint_nuts(y, units, base=BaseMeasure(), weights=weights, settings=SETTINGS)
    grid = np.stack(np.meshgrid(np.linspace(-2.0, 2.0, 5), np.linspace(-2.0, 2.0, 5)), -1)
    points = grid.reshape(-1, 2)
    of_gibbs, of_nuts = (np.exp(one.mixture.logpdf(points)) for one in (gibbs, nuts))
    top = of_nuts.mean(axis=(0, 1)).max()
    for level in (0.1, 0.5, 0.9):
        one, other = (np.quantile(part, level, axis=(0, 1)) for part in (of_gibbs, of_nuts))
        assert np.abs(one - other).max() < 0.1 * top
    means = (part.mean(axis=(0, 1)) for part in (of_gibbs, of_nuts))
    assert np.abs(np.subtract(*means)).max() < 0.04 * top
    assert gibbs.rate.mean() == pytest.approx(nuts.rate.mean(), rel=0.15)
    assert gibbs.precision.mean() == pytest.approx(nuts.precision.mean(), rel=0.15)


def responses(y):
    parts = [
        edp.Responses.from_arrays(column, contribution=0.1 * np.ones(len(y)), query=name)
        for column, name in zip(y.T, ("one", "other"), strict=True)
    ]
    return edp.Responses.join(*parts)


def test_the_bandwidth_has_the_posterior_of_its_leave_one_out_likelihood():
    from scipy.stats import multivariate_normal

    from edp_bayes.models.joint_bootstrap import bandwidth_of

    z = two_answers(12)
    known = bandwidth_of(z, 0.7, 0.7)
    g = 200
    h = known.grid[g]
    for j in (0, 7):
        others = np.delete(z, j, axis=0)
        each = [multivariate_normal(one, h**2 * np.eye(2)).pdf(z[j]) for one in others]
        assert known.scores[g, j] == pytest.approx(np.log(np.mean(each)))
        # without database j: every other one scored by all but j and itself
        total = -0.5 * (np.log(h / 0.7) / 0.7) ** 2
        for i, one in enumerate(others):
            rest = np.delete(others, i, axis=0)
            each = [multivariate_normal(two, h**2 * np.eye(2)).pdf(one) for two in rest]
            total += np.log(np.mean(each))
        assert known.log_without[g, j] == pytest.approx(total)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (edp.SmoothedBootstrap(kernel="laplace"), "matrix bandwidth"),
        (edp.SmoothedBootstrap(variable=True), "one bandwidth"),
        (edp.DirichletProcessMixture(kernel="laplace"), "Gaussian kernels"),
        (edp.Stacked([edp.FiniteMixture(2), edp.FullPosterior()]), "no form in several"),
    ],
)
def test_models_without_a_multivariate_form_are_refused(model, words):
    with pytest.raises(InvalidInputError, match=words):
        edp.audit(responses(two_answers(20)), epsilon=0.1, model=model, progressbar=False)
