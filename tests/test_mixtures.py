"""Mixtures against SciPy, mpmath quadrature and their own samples."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError

WEIGHTS, LOCATIONS, SCALES = np.array([0.2, 0.5, 0.3]), np.array([-2.0, 0.3, 4.0]), 0.7
NOISES = [None, GaussianNoise(0.4), LaplaceNoise(0.6), LaplaceNoise(0.7)]
FORMS = [(k, n) for k in ("gaussian", "laplace") for n in NOISES]


def distribution(kernel, noise):
    return Mixture(WEIGHTS, LOCATIONS, SCALES, kernel=kernel, noise=noise)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_densities_agree_with_scipy(kernel):
    frozen = (stats.norm if kernel == "gaussian" else stats.laplace)(LOCATIONS, SCALES)
    x = np.linspace(-20, 20, 101)
    p = distribution(kernel, None)
    for name in ("pdf", "cdf", "sf"):
        expected = getattr(frozen, name)(x[:, None]) @ WEIGHTS
        np.testing.assert_allclose(getattr(p, name)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(p.logpdf(x), np.log(p.pdf(x)), rtol=1e-12)


def convolution(kernel, scale, noise, x):
    """Density at x of a centred kernel plus noise, by 30 digit quadrature."""

    def kernel_pdf(u):
        if kernel == "gaussian":
            return mpmath.npdf(u, 0, scale)
        return mpmath.exp(-abs(u) / scale) / (2 * scale)

    def noise_pdf(u):
        if isinstance(noise, GaussianNoise):
            return mpmath.npdf(u, 0, noise.scale)
        return mpmath.exp(-abs(u) / noise.scale) / (2 * noise.scale)

    with mpmath.workdps(30):
        cuts = sorted({-60, -20, -5, -1, 0, 1, 5, 20, 60, x - 5, x - 1, x, x + 1, x + 5})
        return mpmath.quad(lambda u: kernel_pdf(u) * noise_pdf(x - u), cuts)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("noise", NOISES[1:])
@pytest.mark.parametrize("x", [0.0, 0.5, -3.0, 15.0])
def test_noise_is_the_convolution(kernel, noise, x):
    p = Mixture(1.0, 0.0, SCALES, kernel=kernel, noise=noise)
    expected = (
        mpmath.npdf(x, 0, mpmath.hypot(SCALES, noise.scale))
        if kernel == "gaussian" and isinstance(noise, GaussianNoise)
        else convolution(kernel, SCALES, noise, x)
    )
    assert float(p.pdf(x)) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize(("kernel", "noise"), FORMS)
def test_distribution_functions_are_integrals_of_the_density(kernel, noise):
    p = distribution(kernel, noise)
    cuts = [-60.0, *LOCATIONS, 60.0]
    for x in (-7.0, 0.0, 2.5, 9.0):
        inner = sorted(c for c in cuts if c < x)
        below = sum(
            integrate.quad(p.pdf, a, b, epsabs=1e-14, epsrel=1e-12)[0]
            for a, b in zip(inner, [*inner[1:], x], strict=True)
        )
        assert float(p.cdf(x)) == pytest.approx(below, abs=1e-11)
        assert float(p.sf(x)) == pytest.approx(1.0 - below, abs=1e-11)


@pytest.mark.parametrize(("kernel", "noise"), FORMS)
def test_tails_keep_their_relative_precision(kernel, noise):
    p = Mixture(1.0, 0.0, SCALES, kernel=kernel, noise=noise)
    x = 20.0
    upper = float(
        sum(
            mpmath.quad(lambda u: mpmath.mpf(float(p.pdf(float(u)))), [x + 4 * k, x + 4 * k + 4])
            for k in range(8)
        )
    )
    assert upper > 0.0
    assert float(p.sf(x)) == pytest.approx(upper, rel=1e-8)
    assert float(p.cdf(-x)) == pytest.approx(float(p.sf(x)), rel=1e-12)


@pytest.mark.parametrize(("kernel", "noise"), FORMS)
def test_log_density_stays_finite_where_the_density_underflows(kernel, noise):
    p = distribution(kernel, noise)
    values = p.logpdf(np.array([-1e4, 1e4]))
    assert np.isfinite(values).all()
    assert (values < -1e3).all()


def test_two_laplaces_are_continuous_at_equal_scales():
    x = np.linspace(-8, 8, 33)
    equal = Mixture(1.0, 0.0, 1.0, kernel="laplace", noise=LaplaceNoise(1.0))
    np.testing.assert_allclose(equal.pdf(x), (1 + np.abs(x)) * np.exp(-np.abs(x)) / 4, rtol=1e-13)
    for gap in (1e-15, 1e-9, 1e-6):
        near = Mixture(1.0, 0.0, 1.0, kernel="laplace", noise=LaplaceNoise(1.0 + gap))
        np.testing.assert_allclose(near.pdf(x), equal.pdf(x), rtol=10 * gap + 1e-13)
        np.testing.assert_allclose(near.cdf(x), equal.cdf(x), rtol=10 * gap + 1e-13)


@pytest.mark.parametrize(("kernel", "noise"), FORMS)
def test_quantiles_invert_the_distribution_function(kernel, noise):
    low = np.array([1e-12, 1e-6, 0.01, 0.2, 0.5])
    p = distribution(kernel, noise)
    np.testing.assert_allclose(p.cdf(p.ppf(low)), low, rtol=1e-9)
    high = np.array([0.6, 0.99, 1.0 - 2.0**-20])
    np.testing.assert_allclose(p.sf(p.ppf(high)), 1.0 - high, rtol=1e-9)


def test_quantiles_have_the_shape_of_draws_and_probabilities():
    p = Mixture([[0.3, 0.7], [0.0, 1.0]], [[0.0, 1.0], [50.0, 1.0]], [1.0, 2.0])
    q = np.array([[0.1, 0.5, 0.9]])
    assert p.ppf(q).shape == (2, 1, 3)
    np.testing.assert_allclose(p.ppf(q)[1, 0], stats.norm(1.0, 2.0).ppf(q[0]), rtol=1e-12)
    assert p.ppf(0.5).shape == (2,)
    with pytest.raises(InvalidInputError, match="q must be between 0 and 1"):
        p.ppf([0.2, 1.0])


@pytest.mark.parametrize(("kernel", "noise"), FORMS)
def test_samples_follow_the_distribution(kernel, noise):
    p = distribution(kernel, noise)
    values = p.sample(20_000, np.random.default_rng(4))
    assert stats.kstest(values, lambda x: p.cdf(x)).pvalue > 1e-3
    assert values.mean() == pytest.approx(float(p.mean()), abs=5 * np.sqrt(p.variance() / 2e4))
    assert values.var() == pytest.approx(float(p.variance()), rel=0.05)
    np.testing.assert_array_equal(values[:5], p.sample(20_000, 4)[:5])


def test_leading_axes_come_before_the_points():
    rng = np.random.default_rng(0)
    p = Mixture(rng.dirichlet(np.ones(3), (4, 2)), LOCATIONS, rng.uniform(0.5, 1, (4, 2, 1)))
    x = np.array([[0.0, 1.0, 2.0]])
    assert p.pdf(x).shape == (4, 2, 1, 3)
    assert p.mean().shape == p.variance().shape == p.cdf(0.0).shape == (4, 2)
    assert p.sample(7, rng).shape == (4, 2, 7)
    np.testing.assert_array_equal(p[1, 0].pdf(x), p.pdf(x)[1, 0])
    np.testing.assert_array_equal(p[1:3].sf(x), p.sf(x)[1:3])
    np.testing.assert_array_equal(p[..., 1].sf(x), p.sf(x)[:, 1])
    np.testing.assert_array_equal(p[p.mean()[:, 0] > 1].weights, p.weights[p.mean()[:, 0] > 1])
    assert [m.weights.shape for m in p] == [(2, 3)] * 4
    assert len(p) == 4


def test_convolve_adds_noise():
    p = distribution("gaussian", None)
    np.testing.assert_allclose(p.convolve(GaussianNoise(0.5)).scales, np.hypot(SCALES, 0.5))
    mixed = p.convolve(LaplaceNoise(0.5)).convolve(GaussianNoise(0.5))
    assert mixed.noise == LaplaceNoise(0.5)
    np.testing.assert_allclose(mixed.scales, np.hypot(SCALES, 0.5))
    q = distribution("laplace", None).convolve(GaussianNoise(3.0)).convolve(GaussianNoise(4.0))
    assert q.noise == GaussianNoise(5.0)
    for noisy, more in (
        (p.convolve(LaplaceNoise(1.0)), LaplaceNoise(1.0)),
        (q, LaplaceNoise(1.0)),
        (distribution("laplace", LaplaceNoise(1.0)), GaussianNoise(1.0)),
    ):
        with pytest.raises(InvalidInputError, match="no closed density"):
            noisy.convolve(more)
    with pytest.raises(InputTypeError, match="GaussianNoise or LaplaceNoise"):
        p.convolve(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], [0, 1], 1), "sum to 1"),
        (([1.5, -0.5], [0, 1], 1), "negative"),
        (([0.5, 0.5], [0, 1], 0.0), "greater than 0"),
        (([0.5, 0.5], [0, np.nan], 1), "finite"),
        (([0.5, 0.5], [0, 1, 2], 1), "broadcast"),
        (([], [], []), "at least one component"),
    ],
)
def test_bad_mixtures_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Mixture(*arguments)


def test_bad_use_is_refused():
    p = distribution("gaussian", None)
    with pytest.raises(InvalidInputError, match="one of"):
        Mixture(1.0, 0.0, 1.0, kernel="cauchy")
    with pytest.raises(InvalidInputError, match="leading axes"):
        p[0]
    with pytest.raises(InvalidInputError, match="finite"):
        p.pdf(np.inf)
    with pytest.raises(InvalidInputError, match="size"):
        p.sample(0)
    with pytest.raises(ValueError, match="read-only"):
        p.weights[0] = 1.0


def test_components_without_weight_are_never_sampled():
    p = Mixture([0.5, 0.5, 0.0], [0.0, 1.0, 1e9], 1.0)
    assert np.abs(p.sample(10_000, 1)).max() < 100
