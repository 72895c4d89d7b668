"""The public integral: exact arithmetic on random mixtures, hard shapes, and its contract."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact_reference import hockey_stick as exact
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.divergence import hockey_stick
from edp_bayes.divergence.centring import common_location
from edp_bayes.exceptions import InputTypeError, InvalidInputError

KERNELS = ["gaussian", "laplace"]
NOISES = [None, GaussianNoise(0.5), LaplaceNoise(0.3)]


def random_pair(rng, kernel, scales):
    """Return two mixtures that are slightly moved, slightly changed, or unrelated."""
    n = int(rng.integers(1, 6))
    spread = 10 ** rng.uniform(-1, 1.3)
    w, m = rng.dirichlet(np.ones(n)), rng.normal(0, spread, n)
    width = {"equal": 0.0, "unequal": 0.5, "wild": 3.0}[scales]
    s = 10 ** rng.uniform(-width, 0.3 if width else 0.0, n)
    change = 10 ** rng.uniform(-9, 0)
    kind = rng.integers(3)
    if kind == 0:
        other = w, m - change * s.min() * rng.normal(size=n), s
    elif kind == 1:
        v = w * np.exp(change * rng.normal(size=n))
        stretch = np.exp(change * rng.normal(size=n)) if width else 1.0
        other = v / v.sum(), m + change * s * rng.normal(size=n), s * stretch
    else:
        k = int(rng.integers(1, 6))
        other = rng.dirichlet(np.ones(k)), rng.normal(0, spread, k), rng.choice(s, k)
    return Mixture(w, m, s, kernel=kernel), Mixture(*other, kernel=kernel)


def assert_exact(p, q, epsilon, points=400):
    found = hockey_stick(p, q, epsilon=epsilon)
    value, mass = exact(p, q, epsilon, points)
    assert 0.0 <= found <= 1.0
    if value >= 1e-12:
        assert abs(found - value) <= 1e-9 * value + 1e-16 * mass, (found, value)
    else:
        assert found <= 1.1e-12


@pytest.mark.full
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scales", ["equal", "unequal", "wild"])
def test_random_mixtures_agree_with_exact_arithmetic(kernel, scales):
    rng = np.random.default_rng([KERNELS.index(kernel), len(scales)])
    for _ in range(8):
        p, q = random_pair(rng, kernel, scales)
        size = min(1.0, hockey_stick(p, q, epsilon=0.0))
        for epsilon in (0.0, rng.uniform(0, 3) * size, rng.uniform(0, 20) * size):
            assert_exact(p, q, epsilon)


SHAPES = {
    "spikes in a wide one": (
        [0.7, 0.1, 0.1, 0.1], [0.0, -1.0, 0.5, 0.5001], [3.0, 0.003, 0.01, 0.003],
        [0.7, 0.1, 0.1, 0.1], [0.0, -1.0005, 0.5, 0.5], [3.0, 0.003, 0.01, 0.003],
    ),
    "far apart": (
        [0.5, 0.3, 0.2], [-1e4, 0.0, 3e3], [1.0, 2.0, 0.5],
        [0.5, 0.2, 0.3], [-1e4, 0.1, 3e3], [1.0, 2.0, 0.5],
    ),
    "twelve standard deviations between": (
        [0.5, 0.5], [0.0, 12.0], [1.0, 1.0], [0.4, 0.6], [0.3, 11.8], [1.0, 1.0],
    ),
    "scales a thousandfold": (
        [0.5, 0.5], [0.0, 0.0], [1.0, 1e-3], [0.5, 0.5], [0.0, 0.0], [1e-3, 1.0],
    ),
    "light and heavy tails": ([1.0], [0.0], [1.0], [0.9, 0.1], [0.0, 0.0], [0.9, 5.0]),
    "a rare far component": (
        [0.999999, 1e-6], [0.0, 30.0], [1.0, 1.0], [0.999999, 1e-6], [0.0, 31.0], [1.0, 1.0],
    ),
    "many modes": (
        [0.1] * 10, list(range(10)), [0.15] * 10,
        [0.1] * 10, [k + 0.05 * (-1) ** k for k in range(10)], [0.15] * 10,
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_hard_shapes(kernel, shape):
    w, m, s, v, n, t = SHAPES[shape]
    p, q = Mixture(w, m, s, kernel=kernel), Mixture(v, n, t, kernel=kernel)
    for epsilon in (0.0, 0.03, 1.0):
        assert_exact(p, q, epsilon, points=800)
        assert_exact(q, p, epsilon, points=800)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shift", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 5.0])
def test_shifted_single_kernels_have_their_closed_forms(kernel, shift):
    p, q = Mixture(1.0, 0.0, 1.0, kernel=kernel), Mixture(1.0, shift, 1.0, kernel=kernel)
    for epsilon in (0.0, 0.3 * shift, 0.9 * shift, 2.0 * shift, shift + shift**2):
        with mp.workdps(50):
            s, e = mp.mpf(shift), mp.mpf(epsilon)
            value = (
                mp.ncdf(s / 2 - e / s) - mp.exp(e) * mp.ncdf(-s / 2 - e / s)
                if kernel == "gaussian"
                else max(1 - mp.exp((e - s) / 2), mp.mpf(0))
            )
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(
            float(value), rel=1e-9, abs=1e-30
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scales", [[1.0, 1.0, 1.0], [0.3, 1.0, 0.5]], ids=["equal", "unequal"])
@pytest.mark.parametrize("place", [1e9, -1e9, 1e12], ids="{:g}".format)
def test_large_locations_lose_no_digits(kernel, scales, place):
    """Only the locations themselves are rounded, to what the exact integral takes, too."""
    w, m = [0.3, 0.5, 0.2], place + np.array([0.0, 1.3, 4.2])
    n = m - np.array([0.1, 0.25, 0.4])
    p, q = Mixture(w, m, scales, kernel=kernel), Mixture(w, n, scales, kernel=kernel)
    near = [Mixture(w, part - place, scales, kernel=kernel) for part in (m, n)]
    for epsilon in (0.0, 0.1, 0.3):
        value, _ = exact(*near, epsilon)
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(value, rel=1e-12)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=6))
def test_the_common_location_is_subtracted_without_rounding(locations):
    centre = float(common_location(np.array(locations)))
    for location in locations:
        assert mp.mpf(location) - mp.mpf(centre) == mp.mpf(location - centre)


@pytest.mark.full
@pytest.mark.parametrize("other", ["gaussian", "laplace"])
def test_kernels_may_differ(other):
    """Against a fine trapezium rule."""
    p = Mixture([0.6, 0.4], [0.0, 2.0], [1.0, 0.3], kernel="gaussian")
    q = Mixture([0.5, 0.5], [0.1, 2.1], [0.9, 0.4], kernel=other, noise=LaplaceNoise(0.2))
    x = np.unique(np.concatenate([np.linspace(-40, 40, 2_000_001), np.linspace(-3, 5, 2_000_001)]))
    a, b = p.pdf(x), q.pdf(x)
    for epsilon in (0.0, 0.2, 1.0):
        for one, two, f, g in ((p, q, a, b), (q, p, b, a)):
            expected = np.trapezoid(np.maximum(f - np.exp(epsilon) * g, 0.0), x)
            assert hockey_stick(one, two, epsilon=epsilon) == pytest.approx(expected, abs=2e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise", [LaplaceNoise(0.4), LaplaceNoise(1.0), GaussianNoise(0.4)])
@pytest.mark.parametrize("shift", [0.3, 1e-4])
def test_noise_agrees_with_quadrature(kernel, noise, shift):
    """Tanh-sinh quadrature of the densities between the sign changes of the log ratio."""
    p = Mixture([0.3, 0.7], [0.0, 1.5], [1.0, 0.5], kernel=kernel, noise=noise)
    q = Mixture([0.3, 0.7], [-shift, 1.5 - shift / 2], [1.0, 0.5], kernel=kernel, noise=noise)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for epsilon in (0.0, shift / 3):
        x = np.unique(np.concatenate([np.linspace(-40, 40, 16001), p.locations, q.locations]))
        gap = p.logpdf(x) - q.logpdf(x) - epsilon
        cuts = set(x[::40].tolist()) | set(p.locations.tolist()) | set(q.locations.tolist())
        for k in np.flatnonzero(gap[1:] * gap[:-1] < 0):
            low, high = x[k], x[k + 1]
            for _ in range(60):
                middle = 0.5 * (low + high)
                inside = p.logpdf(middle) - q.logpdf(middle) - epsilon
                low, high = (middle, high) if inside * gap[k] > 0 else (low, middle)
            cuts.add(float(low))
        edges = np.array(sorted(cuts))
        half = 0.5 * np.diff(edges)[:, None]
        t = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes
        pieces = (half * weights * (p.pdf(t) - np.exp(epsilon) * q.pdf(t))).sum(axis=1)
        expected = np.maximum(pieces, 0.0).sum()
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-14)


mixtures = st.integers(0, 2**32 - 1)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(mixtures, st.sampled_from(KERNELS), st.sampled_from(NOISES))
def test_properties(seed, kernel, noise):
    rng = np.random.default_rng(seed)
    p, q = random_pair(rng, kernel, str(rng.choice(["equal", "unequal", "wild"])))
    if noise is not None:
        p, q = p.convolve(noise), q.convolve(noise)
    epsilon = np.concatenate([[0.0], np.sort(rng.exponential(size=6)), [30.0, 800.0, np.inf]])
    forward, backward = hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon)
    assert np.isfinite(forward).all()
    assert (forward >= 0).all()
    assert (forward <= 1).all()
    assert (np.diff(forward) <= 1e-15).all()
    assert forward[-1] == 0.0
    assert forward[0] == pytest.approx(backward[0], rel=1e-9, abs=1e-15)  # total variation
    convexity = np.diff(forward[:-3]) / np.diff(np.expm1(epsilon[:-3]))
    assert (np.diff(convexity) >= -1e-9).all()  # convex in exp(eps)
    assert (hockey_stick(p, p, epsilon=epsilon) == 0.0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_noise_never_increases_the_integral(kernel):
    rng = np.random.default_rng(8)
    epsilon = np.linspace(0, 1, 5)
    for _ in range(6):
        p, q = random_pair(rng, kernel, "unequal")
        before = hockey_stick(p, q, epsilon=epsilon)
        for noise in NOISES[1:]:
            after = hockey_stick(p.convolve(noise), q.convolve(noise), epsilon=epsilon)
            assert (after <= before * (1 + 1e-9) + 1e-14).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_shapes_broadcast(kernel):
    rng = np.random.default_rng(1)
    p = Mixture(rng.dirichlet(np.ones(3), (4, 1)), rng.normal(size=3), 1.0, kernel=kernel)
    scales = np.where(np.arange(5)[:, None] % 2, 1.0, rng.uniform(0.5, 1, (5, 3)))
    q = Mixture(rng.dirichlet(np.ones(3), 5), rng.normal(size=3), scales, kernel=kernel)
    epsilon = np.array([[0.5, 0.0, 0.1]])
    result = hockey_stick(p, q, epsilon=epsilon)
    assert isinstance(result, np.ndarray)
    assert result.shape == (4, 5, 1, 3)
    one = hockey_stick(p[2, 0], q[3], epsilon=0.1)
    assert isinstance(one, float)
    assert result[2, 3, 0, 2] == pytest.approx(one, rel=1e-13)
    assert hockey_stick(p[0, 0], q[0], epsilon=[]).shape == (0,)
    assert hockey_stick(p[:0], q, epsilon=epsilon).shape == (0, 5, 1, 3)


def test_bad_input_is_refused():
    p = Mixture([[1.0]] * 2, 0.0, 1.0)
    with pytest.raises(InvalidInputError, match=r"negative or NaN, found -1\.0"):
        hockey_stick(p, p, epsilon=[0.0, -1.0])
    with pytest.raises(InvalidInputError, match="NaN"):
        hockey_stick(p, p, epsilon=np.nan)
    with pytest.raises(InputTypeError, match="epsilon must be numeric"):
        hockey_stick(p, p, epsilon="a")
    with pytest.raises(InputTypeError, match="q must be a Mixture, found float"):
        hockey_stick(p, 1.0, epsilon=0.0)
    with pytest.raises(InvalidInputError, match="broadcast"):
        hockey_stick(p, Mixture([[1.0]] * 3, 0.0, 1.0), epsilon=0.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise", [LaplaceNoise(0.4), LaplaceNoise(1.0), GaussianNoise(0.4)])
@pytest.mark.parametrize("shift", [1e-11, 1e-7, 1e-4, 0.05])
def test_tiny_shifts_under_noise(kernel, noise, shift):
    """A symmetric unimodal distribution and its shifted copy differ by P(abs(U) < shift / 2)."""
    p = Mixture(1.0, 0.0, 1.0, kernel=kernel, noise=noise)
    q = Mixture(1.0, shift, 1.0, kernel=kernel, noise=noise)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = shift / 2
    expected = half * (weights * p.pdf(half / 2 * (nodes + 1))).sum()
    assert hockey_stick(p, q, epsilon=0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e12])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_distributions_far_apart_at_the_largest_epsilon(kernel, unit):
    shift = 100.0 if kernel == "gaussian" else 1500.0
    p = Mixture(1.0, 0.0, unit, kernel=kernel)
    for scale in (unit, 2.0 * unit):
        q = Mixture(1.0, shift * unit, scale, kernel=kernel)
        found = hockey_stick(p, q, epsilon=np.linspace(600.0, 700.0, 21))
        assert (np.diff(found) <= 1e-12).all()
        # 1 - exp((eps - shift) / 2) or so, or more where it is an upper bound
        assert found[-1] > (0.999 if scale == unit else 0.9)
