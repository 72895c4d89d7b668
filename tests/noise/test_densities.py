"""Noisy densities, log_lipschitz and certified log ratios against quadrature and brute force."""

import dataclasses

import mpmath as mp
import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import Mixture
from edp_bayes.noise import GaussianNoise, LaplaceNoise, LatticeNoise, NoiseDistribution, NoNoise
from edp_bayes.noise.certificates import screening
from edp_bayes.noise.certificates.curvature import bend, both_values, values_and_bends
from edp_bayes.noise.certificates.densities import NoisyDensities
from edp_bayes.noise.certificates.log_lipschitz import log_lipschitz, movement_bound
from edp_bayes.noise.certificates.ratios import certified_log_ratios, limits
from edp_bayes.noise.certificates.smoothing import kernel_sums
from edp_bayes.noise.distribution import as_distribution
from edp_bayes.noise.posterior import Posterior, posterior_of

LATTICE = LatticeNoise(0.5, [0.1, 0.2, 0.3, 0.2, 0.1], left=0.04, right=0.06, decay=0.7)
KERNELS = ("gaussian", "laplace")


def noisy_by_quadrature(x, components, kernel, distribution):
    """Integrate distribution.pdf(t) p(x - t) between every bend of either, by Gauss-Legendre."""
    w, mu, s = components.T
    p = Mixture(w, mu, s, kernel=kernel)
    knots = np.arange(-200, 201) * distribution.spacing
    knots = knots[np.abs(knots) <= 60.0]
    near = (x - mu)[:, None] + s[:, None] * np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8])
    edges = np.unique(np.concatenate([knots, near[np.abs(near) <= 60.0]]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    t = (middle[:, None] + half[:, None] * nodes).ravel()
    return float((distribution.pdf(t) * p.pdf(x - t) * (half[:, None] * weights).ravel()).sum())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [0.05, 0.3, 2.0])
def test_lattice_noise_is_convolved_exactly(kernel, scale):
    components = np.array([[0.4, 0.0, scale], [0.6, 1.3, 1.1 * scale]])
    lattice = NoisyDensities(as_distribution(LATTICE), kernel, -5.0, 0.125, 81, 60.0)
    values = lattice(components[None])[0]
    for k in range(0, 81, 20):
        expected = noisy_by_quadrature(lattice.points[k], components, kernel, LATTICE)
        assert values[k] == pytest.approx(expected, rel=1e-10)


def test_a_wide_gaussian_kernel_agrees_with_mpmath():
    lattice = NoisyDensities(as_distribution(LatticeNoise(1.0, [1.0])), "gaussian", 90, 1, 1, 1)
    value = lattice(np.array([[[1.0, 0.0, 30.0]]]))[0, 0]
    with mp.workdps(40):

        def second(t):
            t = mp.mpf(t)
            return t * mp.ncdf(t / 30) + 30 * mp.npdf(t / 30)

        exact = float(second(91) - 2 * second(90) + second(89))
    assert value == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_distributions_of_closed_form_are_those_of_the_mixture(kernel):
    components = np.array([[[0.4, 0.0, 0.7], [0.6, 1.3, 0.9]]])
    noise = NoiseDistribution((NoNoise(), LaplaceNoise(0.8), GaussianNoise(0.6)), (0.2, 0.5, 0.3))
    lattice = NoisyDensities(noise, kernel, -5.0, 0.25, 41, 0.0)
    p = Mixture(*components[0].T, kernel=kernel)
    expected = 0.2 * p.pdf(lattice.points)
    expected += 0.5 * p.convolve(LaplaceNoise(0.8)).pdf(lattice.points)
    expected += 0.3 * p.convolve(GaussianNoise(0.6)).pdf(lattice.points)
    np.testing.assert_allclose(lattice(components)[0], expected, rtol=1e-12)


NOISES = {
    "lattice": as_distribution(LATTICE),
    "laplace": as_distribution(LaplaceNoise(0.8)),
    "partial": NoiseDistribution((NoNoise(), LaplaceNoise(1.5)), (0.2, 0.8)),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["lattice", "laplace"])
def test_steepness_is_a_bound(kernel, name):
    noise = NOISES[name]
    scales = np.array([0.2, 0.7])
    bound = log_lipschitz(noise, kernel, scales)
    for s, slope in zip(scales, bound, strict=True):
        lattice = NoisyDensities(noise, kernel, -8.0, 0.005, 3201, 60.0)
        log = np.log(lattice(np.array([[[1.0, 0.0, s]]]))[0])
        steepest = np.abs(np.diff(log)).max() / 0.005
        assert steepest <= slope * (1 + 1e-9)  # rounding of differences
        assert slope <= 1.6 * steepest


@pytest.mark.parametrize("kernel", KERNELS)
def test_movement_bound_holds(kernel):
    rng = np.random.default_rng(2)
    slope = log_lipschitz(NOISES["laplace"], kernel, np.array([0.3]))
    for _ in range(20):
        w = rng.dirichlet(np.ones(3))
        p = np.stack([w, rng.normal(size=3), rng.uniform(0.3, 0.8, 3)], axis=-1)[None]
        q = p.copy()
        q[..., 1] += 0.2 * rng.normal(size=3)
        q[..., 2] = np.maximum(q[..., 2] * rng.uniform(0.8, 1.2, 3), 0.3)
        lattice = NoisyDensities(NOISES["laplace"], kernel, -12.0, 0.01, 2401, 0.0)
        ratio = np.abs(np.log(lattice(p) / lattice(q))).max()
        assert ratio <= movement_bound(p, q, kernel, slope)[0] * (1 + 1e-12)


def largest_bend(components, noise, kernel):
    """Second differences of the noisy density in each of 48 cells, from 64 points of each."""
    fine = NoisyDensities(noise, kernel, -6.0, 0.25 / 64, 48 * 64 + 1, 60.0)
    second = np.abs(np.diff(fine(components), 2)) * (64 / 0.25) ** 2
    return np.stack([second[:, 64 * k : 64 * k + 63].max(axis=1) for k in range(48)], axis=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["lattice", "laplace"])
def test_bend_bounds_the_second_derivative(kernel, name):
    components = np.array([[[0.4, 0.0, 0.3], [0.6, 1.3, 0.5]]])
    coarse = NoisyDensities(NOISES[name], kernel, -6.0, 0.25, 49, 60.0)
    bound = bend(components, coarse(components), coarse)
    largest = largest_bend(components, NOISES[name], kernel)
    assert (largest <= bound * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_smooth_noise_on_a_lattice_bends_little_whatever_the_kernels(kernel):
    """Its density bends by its own scale, not by that of kernels narrower than the spacing."""
    spacing, decay = 0.5, np.exp(-0.5 / 3.0)
    weights = decay ** np.abs(np.arange(-20, 21))
    tail = weights[-1] * decay / (1.0 - decay)
    total = weights.sum() + 2.0 * tail
    image = LatticeNoise(spacing, weights / total, left=tail / total, right=tail / total,
                         decay=decay)  # fmt: skip
    noise = as_distribution(image)
    components = np.array([[[0.4, 0.0, 0.1], [0.6, 1.3, 0.4]]])
    lattice = NoisyDensities(noise, kernel, -6.0, 0.125, 97, 60.0)
    values = lattice(components)
    bound = bend(components, values, lattice)
    fine = NoisyDensities(noise, kernel, -6.0, 0.125 / 32, 96 * 32 + 1, 60.0)
    second = np.abs(np.diff(fine(components), 2)) * (32 / 0.125) ** 2
    largest = np.stack([second[:, 32 * k : 32 * k + 31].max(axis=1) for k in range(96)], axis=1)
    assert (largest <= bound * (1 + 1e-6) + 1e-9).all()
    by_kernel = (components[..., 0] / components[..., 2] ** 2).sum() * values.max()
    assert bound.max() < 0.2 * by_kernel


def test_an_individual_sometimes_absent_is_evaluated_once_and_alike():
    w, mu, s = np.array([0.4, 0.6]), np.array([0.0, 1.3]), np.array([0.3, 0.5])
    rho = np.array([0.25, 1.0])
    weights = np.stack([np.concatenate([(1 - r) * w, r * w]) for r in rho])
    places, scales = np.tile(mu, (2, 2)), np.tile(s, (2, 2))
    q = np.stack([weights, places, scales], axis=-1)
    p = q.copy()
    p[:, 2:, 1] += 0.2
    p[:, 2:, 2] *= 1.1
    for noise in NOISES.values():
        lattice = NoisyDensities(noise, "gaussian", -6.0, 0.25, 49, 60.0)
        values, bends = values_and_bends(p, q, lattice)
        np.testing.assert_array_equal(both_values(p, q, lattice), values)
        for part, value, bound in zip((p, q), values, bends, strict=True):
            np.testing.assert_allclose(value, lattice(part), rtol=1e-12)
            assert (largest_bend(part, noise, "gaussian") <= bound * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("source", ["plug_in", "bootstrap", "mixture"])
def test_certified_ratios_are_sharp_upper_bounds(source, noise, request):
    posterior = request.getfixturevalue(source)
    lattice = NoisyDensities(noise, posterior.kernel, 10.0, 0.5 / 32, 32 * 2 * 22 + 1, 40.0)
    for draw, person in ((0, 0), (posterior.n_draws - 1, 3)):
        p, q = (part[[draw]] for part in posterior.pair(person))
        places = [dataclasses.replace(lattice, start=x, count=1)
                  for x in {*p[0, :, 1].tolist(), *q[0, :, 1].tolist()}]  # fmt: skip
        brute = max(
            float(np.abs(np.log(grid(p) / grid(q))).max())
            for grid in (lattice, *(places if noise.atom else ()))
        )
        # the supremum may be at infinity, which has a test of its own below
        brute = max(brute, float(limits(p, q, posterior.kernel, noise)[0]))
        for level in (0.3 * brute, 1.005 * brute):
            found = certified_log_ratios(
                posterior,
                noise,
                level,
                draws=np.array([draw]),
                individuals=np.array([person]),
                screen=False,
            )
            assert brute <= found.bound[0, 0] * (1 + 1e-9)
        assert found.bound[0, 0] <= level


def test_limits_are_those_far_out(plug_in):
    p, q = plug_in.pair(1)
    for noise in (as_distribution(LaplaceNoise(2.0)), as_distribution(LaplaceNoise(0.2))):
        limit = limits(p, q, "laplace", noise)[0]
        ends = [NoisyDensities(noise, "laplace", x, 1.0, 1, 0.0) for x in (-60.0, 110.0)]
        ratios = [abs(np.log(end(p) / end(q)).item()) for end in ends]
        assert limit == pytest.approx(max(ratios), rel=1e-6)


def test_gaussian_noise_has_no_finite_log_ratio(mixture):
    found = certified_log_ratios(mixture, as_distribution(GaussianNoise(3.0)), 0.5)
    assert np.isinf(found.largest).all()


def test_a_fitted_model_and_an_audit_give_the_same_posterior(responses):
    model = edp.FiniteMixture(components=2)
    options = {"draws": 20, "chains": 2, "random_seed": 3, "progressbar": False}
    direct = posterior_of(responses, model=model, **options)
    with pytest.warns(edp.EdpBayesWarning):
        audit = edp.audit(responses, epsilon=[0.1], model=model, **options)
    again = posterior_of(audit, responses=responses)
    for person in (0, 2):
        for a, b in zip(direct.pair(person), again.pair(person), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_sums_agree_with_every_kernel_at_every_point(kernel):
    rng = np.random.default_rng(3)
    weight, place = rng.normal(size=(2, 80)) * [[1.0], [50.0]]
    scale = rng.choice([0.5, 2.0, 7.0], 80)
    z = np.unique(np.concatenate([place[:20], rng.normal(0.0, 80.0, 100)]))
    each = Mixture(np.ones((80, 1)), place[:, None], scale[:, None], kernel=kernel).pdf(z)
    np.testing.assert_allclose(
        kernel_sums(weight, place, scale, z, kernel), weight @ each, atol=1e-14
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_lengths_of_the_regression_are_those_of_its_components(responses, kernel):
    settings = edp.models.SamplerSettings(draws=5, tune=50, chains=2, random_seed=1)
    drawn = edp.FiniteMixture(components=2).fit(responses, settings).coupling
    distribution = drawn.mixture
    components = Mixture(
        distribution.weights, distribution.locations, distribution.scales, kernel=kernel
    )
    coupling = dataclasses.replace(drawn, mixture=components)
    posterior = Posterior(coupling, responses.individual, responses)
    for epsilon in (0.05, 0.5):
        ((people, length, smallest),) = screening._measured(posterior, epsilon)
        for person in people:
            p, q = posterior.pair(person)
            expected = screening._lengths(p, q, kernel, epsilon)
            np.testing.assert_allclose(length[:, person], expected, rtol=1e-12)
            np.testing.assert_allclose(
                smallest[:, person], np.minimum(p[..., 2], q[..., 2]).min(axis=1), rtol=1e-12
            )
