"""p and p_i from one draw: what the couplings promise, against the exact integral."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.models import DirichletProcessMixture, SamplerSettings, SmoothedBootstrap

EPSILON = np.array([0.0, 0.02, 0.1, 0.5])
SETTINGS = SamplerSettings(draws=15, tune=50, chains=2, random_seed=2, progressbar=False)


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(3)
    n = 30
    c = rng.gamma(2.0, 0.05, (n, 6)) * (1 + 0.3 * rng.standard_normal((n, 6)))
    c[:, 1] *= rng.random(n) < 0.3
    c[:, 2] *= -3.0
    return edp.Responses.from_arrays(
        rng.standard_normal(n) + c.sum(axis=1), contribution=sp.csc_array(c)
    )


def privacy_curve(p, q, epsilon=EPSILON):
    return np.maximum(
        edp.hockey_stick(p, q, epsilon=epsilon), edp.hockey_stick(q, p, epsilon=epsilon)
    )


@pytest.mark.parametrize(
    "model",
    [
        SmoothedBootstrap(),
        SmoothedBootstrap(kernel="gaussian"),
        SmoothedBootstrap(variable=True),
        DirichletProcessMixture(),
    ],
    ids=["laplace", "gaussian", "variable", "mixture"],
)
def test_curves_are_the_integrals_of_the_pair(model, responses):
    coupling = model.fit(responses, SETTINGS).coupling
    curves = coupling.curves(np.arange(3), EPSILON).reshape(2, 15, 3, EPSILON.size)
    for i in range(3):
        p, q = coupling.pair(i)
        np.testing.assert_allclose(curves[:, :, i], privacy_curve(p, q), rtol=1e-7, atol=2e-12)


def rounded(array):
    """To digits that are left when 2**30 is added."""
    return np.round(np.asarray(array) * 2.0**20) / 2.0**20


def away(mixture, place):
    parts = mixture.weights, rounded(mixture.locations) + place, mixture.scales
    return Mixture(*parts, kernel=mixture.kernel)


@pytest.mark.full
@pytest.mark.parametrize("model", [SmoothedBootstrap(variable=True), DirichletProcessMixture()])
def test_curves_do_not_depend_on_where_the_responses_lie(model, responses):
    """At 1e9 moves were rounded to 1e-7 of a scale, and small risks by a hundredth."""
    fitted = model.fit(responses, SETTINGS)
    found = []
    for place in (0.0, 2.0**30):
        mixture = away(fitted.mixture, place)
        if isinstance(fitted.coupling, ShiftCoupling):
            there = edp.Responses.from_arrays(
                rounded(responses.response) + place, contribution=responses.contribution
            )
            coupling = ShiftCoupling(mixture, there)
        else:
            posterior = fitted.coupling.posterior
            posterior = replace(posterior, centre=rounded(posterior.centre) + place)
            coupling = RegressionCoupling(mixture, posterior)
        found.append(coupling.curves(np.arange(6), EPSILON))
    assert (found[0] > 0).any()
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-11)


@pytest.mark.parametrize("noise", [edp.GaussianNoise(0.3), edp.LaplaceNoise(0.3)])
@pytest.mark.parametrize("model", [SmoothedBootstrap(), DirichletProcessMixture()])
def test_known_noise_is_convolved_with_both(model, noise, responses):
    noisy = edp.Responses(
        responses.response,
        responses.contribution,
        responses.individual,
        responses.database,
        responses.presence,
        noise=noise,
    )
    settings = SamplerSettings(draws=3, tune=50, chains=1, random_seed=2, progressbar=False)
    coupling = model.fit(noisy, settings).coupling
    quiet = model.fit(responses, settings).coupling
    p, q = coupling.pair(0)
    curves = coupling.curves(np.array([0]), EPSILON)[:, 0]
    np.testing.assert_allclose(curves, privacy_curve(p, q)[0], rtol=1e-7, atol=2e-12)
    assert (curves[:, 1:3] < quiet.curves(np.array([0]), EPSILON)[:, 0, 1:3]).all()


def test_bootstrap_moves_every_database_by_its_contribution(responses):
    coupling = SmoothedBootstrap().fit(responses, SETTINGS).coupling
    assert isinstance(coupling, ShiftCoupling)
    p, q = coupling.pair(2)
    np.testing.assert_array_equal(p.weights, q.weights)
    np.testing.assert_array_equal(p.scales, q.scales)
    moved = p.locations - q.locations
    np.testing.assert_allclose(
        moved, np.broadcast_to(responses.contribution_of(2), moved.shape), atol=1e-14
    )


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    rho=st.sampled_from([(1.0, 1.0), (0.95, 0.95), (0.3, 0.3), (0.05, 0.05), (0.05, 0.95)]),
    a=st.floats(-2.0, 2.0),
    b=st.floats(-0.5, 2.0),
    tau=st.floats(0.001, 4.0),
)
def test_adding_the_contribution_back_gives_the_components_of_p(rho, a, b, tau):
    from edp_bayes.coupling.contributions.posterior import ContributionDraws

    mixture = Mixture([[[0.3, 0.7]]], [[[-1.0, 2.0]]], [[[2.0, 3.0]]])
    coupling = RegressionCoupling(mixture, posterior=None)
    rho = np.array(rho)
    distribution = ContributionDraws(
        rho[None, None], *(np.full((1, 1), value) for value in (a, b, tau))
    )
    p, _ = coupling._components(coupling._base, distribution, np.array([0]), np.array([0]))
    w, mu, s = np.moveaxis(p[0], -1, 0)
    if (rho == 1.0).all():
        np.testing.assert_allclose(mu, mixture.locations[0, 0], rtol=1e-12)
        np.testing.assert_allclose(s, mixture.scales[0, 0], rtol=1e-12)
        return
    twin = np.stack([w, mu, s]).reshape(3, 2, 2).transpose(0, 2, 1)  # (part, component, twin)
    mean = (twin[0] * twin[1]).sum(-1) / twin[0].sum(-1)
    square = (twin[0] * (twin[1] ** 2 + twin[2] ** 2)).sum(-1) / twin[0].sum(-1)
    np.testing.assert_allclose(twin[0].sum(-1), [0.3, 0.7])
    np.testing.assert_allclose(mean, mixture.locations[0, 0], rtol=1e-9, atol=1e-9)
    jump = twin[1][:, 1] - twin[1][:, 0]
    if (rho * tau**2 + rho * (1 - rho) * jump**2 < 0.9 * mixture.scales[0, 0] ** 2).all():
        np.testing.assert_allclose(np.sqrt(square - mean**2), mixture.scales[0, 0], rtol=1e-6)
