"""Integrals in several dimensions against closed forms, slices and exact pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.coupling.joint import OWN, pair_curves
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.divergence.joint.points import digital_shifts, mixture_points
from edp_bayes.divergence.joint.screening import ORDERS, pair_bound
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.utils.small_matrices import congruence, eigen

EPSILON = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


def curve(p, q, epsilon=EPSILON, draws=4):
    """Return the curve of one pair, and its standard error, at several sets of points."""
    p, q = (NormalMixture(*(np.repeat(part[None], draws, 0) for part in one)) for one in (p, q))
    shifts = digital_shifts(len(p.weights), p.dimensions, 1, OWN)
    return pair_curves(p, q, np.zeros((p.dimensions, p.dimensions)), epsilon, shifts)


def normal(mean, covariance):
    return NormalMixture(np.ones(1), np.array([mean]), np.array([covariance]))


def bound_of(variances, shifts, epsilon):
    out = np.empty(1)
    pair_bound(
        np.array(variances), np.array(shifts), len(shifts), np.array([epsilon]), 1, ORDERS, out
    )
    return out[0]


def covariance_of(rng, d):
    root = rng.normal(size=(d, d))
    return root @ root.T + 0.1 * np.eye(d)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shift", [0.05, 0.5, 2.0, 5.0])
def test_equal_covariances_are_one_dimension_along_mahalanobis(d, shift):
    rng = np.random.default_rng(d)
    covariance = covariance_of(rng, d)
    direction = rng.normal(size=d)
    length = np.sqrt(direction @ np.linalg.solve(covariance, direction))
    value, error = curve(
        normal(direction * shift / length, covariance), normal(np.zeros(d), covariance)
    )
    exact = gaussian_shift(shift, EPSILON)
    assert np.abs(value.mean(axis=0) - exact).max() < 4e-3
    # the standard error is that of the error
    assert (np.abs(value - exact) <= 3.0 * error + 1e-4).mean() > 0.85


def test_releases_with_correlated_gaussian_noise_are_one_of_their_effective_sensitivity():
    # Delta c, noise of covariance S: as one release of sensitivity Delta ||c|| in the norm of S^-1
    covariance = np.array([[4.0, 3.0, 0.0], [3.0, 5.0, 1.0], [0.0, 1.0, 2.0]])
    sensitivity = np.array([1.0, 0.5, 1.0])
    effective = np.sqrt(sensitivity @ np.linalg.solve(covariance, sensitivity))
    value, _ = curve(normal(sensitivity, covariance), normal(np.zeros(3), covariance))
    assert np.allclose(value, gaussian_shift(effective, EPSILON), atol=2e-3)


def slices(p, q, epsilon, count=400):
    """Return max(H(p || q), H(q || p)) by slices of the second coordinate's exact integrals."""
    lows, highs = [], []
    for part in (p, q):
        spread = np.sqrt(part.covariances[:, 0, 0])
        lows.append((part.locations[:, 0] - 8.0 * spread).min())
        highs.append((part.locations[:, 0] + 8.0 * spread).max())
    x = np.linspace(min(lows), max(highs), count)

    def of_slice(part, at):
        variance = part.covariances[:, 0, 0]
        slope = part.covariances[:, 1, 0] / variance
        heights = part.weights * np.exp(-0.5 * (at - part.locations[:, 0]) ** 2 / variance)
        heights /= np.sqrt(2.0 * np.pi * variance)
        place = part.locations[:, 1] + slope * (at - part.locations[:, 0])
        rest = part.covariances[:, 1, 1] - slope**2 * variance
        return heights.sum(), edp.Mixture(heights / heights.sum(), place, np.sqrt(rest))

    def one_side(left, right, level):
        total = 0.0
        for at in x:
            (a, first), (b, second) = of_slice(left, at), of_slice(right, at)
            if a < 1e-14:
                continue
            inner = level + np.log(max(b, 1e-300) / a)
            if inner >= 0.0:
                total += a * edp.hockey_stick(first, second, epsilon=min(inner, 600.0))
            else:
                growth = np.exp(inner)
                other = edp.hockey_stick(second, first, epsilon=min(-inner, 600.0))
                total += a * (1.0 - growth + growth * other)
        return total * (x[1] - x[0])

    return max(one_side(p, q, epsilon), one_side(q, p, epsilon))


@pytest.mark.parametrize("case", [0, 1])
def test_mixtures_in_two_dimensions_agree_with_slices(case):
    rng = np.random.default_rng(case)
    weights = rng.dirichlet(np.ones(2))
    places = rng.normal(0.0, 2.0, (2, 2))
    covariances = np.array([covariance_of(rng, 2) for _ in range(2)])
    p = NormalMixture(weights, places, covariances)
    q = NormalMixture(weights, places - rng.normal(0.0, 0.5, (2, 2)), 0.8 * covariances)
    value, error = curve(p, q, np.array([0.2]), draws=16)
    exact = slices(p, q, 0.2)
    assert exact > 0.1
    assert abs(value.mean() - exact) < 1e-3
    assert (np.abs(value[:, 0] - exact) <= 3.0 * error[:, 0]).all()


def test_a_distribution_far_narrower_and_away_is_not_missed():
    # no point of p comes near to q: the sample mean of the ratio is 0, not 1
    p = normal(np.array([0.0, 3.0]), np.diag([1.0, 0.05]))
    q = normal(np.zeros(2), np.diag([1.0, 0.001]))
    value, _ = curve(p, q)
    assert (value > 0.999).all()


def test_a_wider_distribution_without_is_not_missed():
    # in the tails the ratio q / p has no bound
    p, q = normal(np.zeros(2), np.eye(2)), normal(np.zeros(2), 9.0 * np.eye(2))
    value, error = curve(p, q)
    exact = slices(NormalMixture(*p), NormalMixture(*q), 0.1)
    assert abs(value[:, 1].mean() - exact) < 3e-3
    assert (value[:, 1] + 3.0 * error[:, 1] >= exact).all()


@given(
    ratio=st.floats(0.05, 3.0),
    shift=st.floats(0.0, 6.0),
    epsilon=st.floats(0.0, 4.0),
)
def test_the_bound_by_renyi_divergences_is_above_the_risk(ratio, shift, epsilon):
    p, q = edp.Mixture(1.0, shift, np.sqrt(ratio)), edp.Mixture(1.0, 0.0, 1.0)
    exact = edp.hockey_stick(p, q, epsilon=epsilon)
    bound = bound_of([ratio], [shift], epsilon)
    assert bound >= exact - 1e-12


def test_the_bound_is_close_enough_to_screen_with():
    small = bound_of([1.0, 1.0], [0.01, 0.0], 0.1)
    assert small < 1e-20
    exact = float(gaussian_shift(0.5, 1.0))
    bound = bound_of([1.0, 1.0], [0.3, 0.4], 1.0)
    assert exact <= bound < 8.0 * exact


def test_points_are_of_the_mixture():
    rng = np.random.default_rng(1)
    mixture = NormalMixture(
        np.array([[0.7, 0.3]]),
        rng.normal(size=(1, 2, 3)),
        np.array([[covariance_of(rng, 3), covariance_of(rng, 3)]]),
    )
    points = mixture_points(mixture, digital_shifts(1, 3, 1, 0))[0]
    assert np.allclose(points.mean(axis=1), mixture.mean()[0], atol=0.01)
    assert np.allclose(np.cov(points), mixture.covariance()[0], rtol=0.02, atol=0.02)


def test_densities_are_scipys():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(2)
    places, covariances = rng.normal(size=(2, 3)), [covariance_of(rng, 3) for _ in range(2)]
    y = rng.normal(size=(5, 3))
    mixture = NormalMixture(np.array([0.4, 0.6]), places, np.array(covariances))
    parts = zip((0.4, 0.6), places, covariances, strict=True)
    exact = sum(w * multivariate_normal(m, s).pdf(y) for w, m, s in parts)
    assert np.allclose(mixture.logpdf(y), np.log(exact))
    units = Units.of(rng.normal(size=(9, 3)) * [1.0, 20.0, 300.0])
    again = mixture.in_units(units).whitened(units)
    assert np.allclose(again.covariances, mixture.covariances)
    line = mixture.along(np.array([1.0, -2.0, 0.5]))
    assert np.allclose(line.variance(), [1.0, -2.0, 0.5] @ mixture.covariance() @ [1.0, -2.0, 0.5])


def test_small_eigenvalues_are_lapacks():
    rng = np.random.default_rng(3)
    for d in (1, 2, 5):
        matrix = covariance_of(rng, d)
        turned, vectors = matrix.copy(), np.empty((d, d))
        eigen(turned, vectors, d)
        assert np.allclose(np.sort(np.diagonal(turned)), np.linalg.eigvalsh(matrix))
        out = np.empty((d, d))
        congruence(vectors.T.copy(), matrix, out, d)
        assert np.allclose(out, np.diag(np.diagonal(turned)), atol=1e-10)
