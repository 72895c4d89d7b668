"""Risks of rounded, binned and suppressed answers against sums over bins of exact probabilities."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from edp_bayes import GaussianNoise, LaplaceNoise, Mixture, hockey_stick
from edp_bayes.distributions.published import Published
from edp_bayes.divergence.integral import component_rows
from edp_bayes.divergence.released import masses, sign_changes
from edp_bayes.divergence.released.curves import released_curves
from edp_bayes.divergence.released.grid import Grid

EPSILON = np.array([0.0, 0.05, 0.3, 1.0])
NOISES = (None, GaussianNoise(0.2), LaplaceNoise(0.2))


def pair(seed, kernel="gaussian", noise=None):
    rng = np.random.default_rng(seed)
    w, m, s = rng.dirichlet(np.ones(4)), rng.normal(0.0, 2.0, 4), rng.uniform(0.1, 1.0, 4)
    return (
        Mixture(w, m, s, kernel=kernel, noise=noise),
        Mixture(w, m - rng.uniform(0.0, 0.3, 4), 0.95 * s, kernel=kernel, noise=noise),
    )


def rows(mixture):
    return component_rows(
        mixture.weights, mixture.locations, mixture.scales, mixture.kernel, mixture.noise
    )[None]


def full(p, q, epsilon=EPSILON):
    return np.maximum(hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon))


def grid_of(**options):
    published = Published.of(**options)
    edges = np.array(published.bins or ())
    step = published.rounded_to or 0.0
    return Grid(edges, published.first_edge, step, published.origin)


def found(p, q, **options):
    noise = options.get("noise_after")
    grid, worst = grid_of(**options), options.get("offset") == "worst"
    return released_curves(
        rows(p), rows(q), EPSILON[None], grid, np.zeros(1), worst=worst, noise=noise
    )[0]


def binned(p, q, edges, epsilon=EPSILON):
    """Sum over bins of exact probabilities."""
    one, other = (np.diff(d.cdf(edges), prepend=0.0, append=1.0) for d in (p, q))
    growth = np.exp(epsilon)[:, None]
    return np.maximum(
        np.maximum(one - growth * other, 0.0).sum(axis=1),
        np.maximum(other - growth * one, 0.0).sum(axis=1),
    )


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_both_ways_to_sum_over_rounded_answers_are_exact(kernel, noise):
    for seed, step, offset in ((0, 0.9, 0.2), (1, 3.0, -0.4), (2, 0.11, 0.03), (3, 0.02, 0.0)):
        p, q = pair(seed, kernel, noise)
        edges = offset + step * (np.arange(-6000, 6000) + 0.5)
        truth = binned(p, q, edges)
        grid = grid_of(rounded_to=step, offset=offset)
        arguments = rows(p), rows(q), np.expm1(EPSILON)[None], grid, np.zeros(1)
        summed, few = masses.curves(*arguments)
        if few[0]:
            np.testing.assert_allclose(summed[0], truth, rtol=0.0, atol=1e-14)
        integrated = sign_changes.curves(*arguments, floor=1e-14)
        np.testing.assert_allclose(integrated[0], truth, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(
            found(p, q, rounded_to=step, offset=offset), truth, rtol=0.0, atol=1e-13
        )


def test_wide_components_that_weigh_next_to_nothing_take_no_bins():
    p, q = pair(7)
    light = [1e-12, 1e-19, 1e-20]
    wide = [
        Mixture(*(np.append(part, more) for part, more in zip(
            (d.weights, d.locations, d.scales), (light, np.zeros(3), [50.0, 1e3, 1e6]), strict=True
        )))
        for d in (p, q)
    ]  # fmt: skip
    edges = 0.5 + np.arange(-60_000, 60_000)
    grid = grid_of(rounded_to=1.0, offset=0.0)
    arguments = *map(rows, wide), np.expm1(EPSILON)[None], grid, np.zeros(1)
    summed, few = masses.curves(*arguments, most=1024)
    assert few[0]
    np.testing.assert_allclose(summed[0], binned(*wide, edges), rtol=0.0, atol=1e-14)


def test_suppression_below_a_threshold():
    for seed, threshold in ((4, -1.0), (5, 0.3), (6, 2.0)):
        p, q = pair(seed)
        above = threshold + np.linspace(0.0, 12.0, 100_001)
        truth = binned(p, q, above)
        np.testing.assert_allclose(found(p, q, threshold=threshold), truth, atol=2e-8)
        # rounded answers below it are suppressed
        values = 0.5 * np.arange(-60, 60)
        edges = values[values >= threshold] - 0.25
        np.testing.assert_allclose(
            found(p, q, threshold=threshold, rounded_to=0.5), binned(p, q, edges), atol=1e-14
        )
    assert (found(p, q, threshold=1e3) < 1e-15).all()
    np.testing.assert_allclose(found(p, q, threshold=-1e3), full(p, q), atol=1e-13)


def test_bins_of_any_width():
    p, q = pair(7)
    edges = np.array([-1.0, 0.2, 0.25, 3.0])
    np.testing.assert_allclose(found(p, q, bins=edges), binned(p, q, edges), atol=1e-15)


def test_tails_keep_their_digits_at_a_large_epsilon():
    # Q of the bins that count is e^-15 and less of P, which itself is small
    p, q = Mixture(1.0, 0.0, 1.0), Mixture(1.0, -2.5, 1.0)
    epsilon = 15.0
    with mpmath.workdps(60):
        edges = [mpmath.mpf(k) + mpmath.mpf("0.5") for k in range(-40, 40)]
        edges = [-mpmath.inf, *edges, mpmath.inf]

        def mass(mu, a, b):
            return mpmath.ncdf(b - mu) - mpmath.ncdf(a - mu)

        growth, other = mpmath.exp(epsilon), mpmath.mpf("-2.5")
        pairs = [(mass(0, a, b), mass(other, a, b)) for a, b in itertools.pairwise(edges)]
        forwards = sum(max(one - growth * two, 0) for one, two in pairs)
        backwards = sum(max(two - growth * one, 0) for one, two in pairs)
        truth = max(forwards, backwards)
    result = released_curves(
        rows(p), rows(q), np.array([[epsilon]]), grid_of(rounded_to=1.0), np.zeros(1)
    )[0, 0]
    assert result == pytest.approx(float(truth), rel=1e-9)
    assert 1e-8 < result < 1e-5


@given(
    st.integers(0, 10_000),
    st.floats(0.01, 8.0),
    st.floats(-1.0, 1.0),
    st.sampled_from(["gaussian", "laplace"]),
)
def test_nothing_published_says_more_than_the_answer(seed, step, offset, kernel):
    p, q = pair(seed, kernel)
    whole = full(p, q)
    rounded = found(p, q, rounded_to=step, offset=offset)
    assert (rounded <= whole + 1e-13).all()
    # every second edge less says less
    coarser = found(p, q, rounded_to=2.0 * step, offset=offset + 0.5 * step)
    assert (coarser <= rounded + 1e-13).all()
    assert (found(p, q, threshold=offset) <= whole + 1e-13).all()
    assert (found(p, q, rounded_to=step, offset="worst") >= rounded - 1e-13).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_the_worst_offset_is_bounded_closely(kernel):
    for seed in range(4):
        p, q = pair(seed, kernel)
        for step in (0.9, 3.0):
            each = [
                binned(p, q, step * (np.arange(-60, 60) + place))
                for place in np.linspace(0.0, 1.0, 100)
            ]
            largest = np.max(each, axis=0)
            bound = found(p, q, rounded_to=step, offset="worst")
            assert (bound >= largest).all()
            assert (bound <= full(p, q) + 1e-13).all()
            assert (bound - largest <= 0.012).all()


@pytest.mark.parametrize("noise", [GaussianNoise(0.7), LaplaceNoise(0.7)], ids=str)
def test_noise_after_rounding(noise):
    p, q = pair(8)
    z = np.linspace(-25.0, 25.0, 400_001)
    edges = np.arange(-30, 30) + 0.5
    values = np.append(edges - 0.5, 30.0)
    one, other = (np.diff(d.cdf(edges), prepend=0.0, append=1.0) for d in (p, q))
    seen = one + other > 1e-18
    f, g = (
        sum(w * noise.pdf(z - v) for w, v in zip(mass[seen], values[seen], strict=True))
        for mass in (one, other)
    )
    growth = np.exp(EPSILON)[:, None]
    truth = np.maximum(
        np.trapezoid(np.maximum(f - growth * g, 0.0), z),
        np.trapezoid(np.maximum(g - growth * f, 0.0), z),
    )
    result = found(p, q, rounded_to=1.0, noise_after=noise)
    np.testing.assert_allclose(result, truth, rtol=0.0, atol=1e-7)
    assert (result <= found(p, q, rounded_to=1.0)).all()


def test_one_sign_change_on_an_edge_loses_nothing():
    p, q = Mixture(1.0, 0.5, 1.0), Mixture(1.0, -0.5, 1.0)
    # log p - log q = x, so that p = e^eps q at x = eps
    at = found(p, q, bins=EPSILON)
    shifted = norm.sf(EPSILON - 0.5) - np.exp(EPSILON) * norm.sf(EPSILON + 0.5)
    np.testing.assert_allclose(at, shifted, rtol=1e-12)
