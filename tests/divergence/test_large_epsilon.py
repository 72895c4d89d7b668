"""Hockey-stick integrals at any epsilon: in logarithms, against arithmetic of many digits."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import GaussianNoise, LaplaceNoise, Mixture, hockey_stick
from edp_bayes.distributions.kernels import gaussian_tail
from edp_bayes.divergence.any_pair import curves as any_pair
from edp_bayes.divergence.any_pair.components import GAUSSIAN, LAPLACE, rows
from edp_bayes.divergence.logarithmic.curves import fill
from edp_bayes.divergence.one_scale import curves as one_scale
from edp_bayes.divergence.shifts import gaussian_shift, laplace_shift
from edp_bayes.exceptions import InvalidInputError

EPSILON = np.array([0.0, 1.0, 10.0, 15.9, 16.1, 40.0, 100.0, 250.0, 335.0, 700.0, 2000.0])


def of_a_shift(shift, epsilon):
    """Return the integral of a normal distribution and one moved by so many deviations."""
    with mp.workdps(40 + int(epsilon / 2)):
        s, e = mp.mpf(float(shift)), mp.mpf(float(epsilon))
        return float(mp.ncdf(s / 2 - e / s) - mp.exp(e) * mp.ncdf(-s / 2 - e / s))


@pytest.mark.parametrize(
    ("shift", "epsilon", "expected"),
    [
        (29.3, 250.0, 1.0),
        (35.0, 335.0, 1.0),
        (40.0, 700.0, 0.993),
        (39.0, 760.5, 0.490),
        (60.0, 2000.0, 0.0004),
    ],
)
def test_far_shifts(shift, epsilon, expected):
    found = hockey_stick(Mixture(1.0, 0.0, 1.0), Mixture(1.0, shift, 1.0), epsilon=epsilon)
    assert found == pytest.approx(expected, abs=6e-4)
    assert found == pytest.approx(of_a_shift(shift, epsilon), abs=1e-14)


@pytest.mark.full
@pytest.mark.parametrize("deviations", [-5.0, -1.0, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", EPSILON[1:].tolist())
def test_one_normal_distribution_against_another(epsilon, deviations):
    shift = deviations + np.sqrt(deviations**2 + 2.0 * epsilon)
    exact = of_a_shift(shift, epsilon)
    for unit in (1.0, 1e-200, 1e150):
        p, q = Mixture(1.0, 0.0, unit), Mixture(1.0, shift * unit, unit)
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(exact, abs=3e-14)
    assert gaussian_shift(shift, epsilon) == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize("epsilon", [1e8, 1e16, 1e120])
def test_the_closed_form_has_all_digits_at_huge_epsilon(epsilon):
    shift = np.sqrt(2.0 * epsilon)
    with mp.workdps(300):
        s = mp.mpf(float(shift))
        start = s / 2 - mp.mpf(epsilon) / s
        # the other mass is a tail far out: its density over the distance
        rest = mp.npdf(start) / (s / 2 + mp.mpf(epsilon) / s)
        exact = float(mp.ncdf(start) - rest)
    assert gaussian_shift(shift, epsilon) == pytest.approx(exact, abs=1e-12)


def mass(comps, start, end, kernel):
    """Return the mass of components between two points."""

    def tail(x, w, m, s):
        if kernel == "gaussian":
            return w * mp.erfc((x - m) / s / mp.sqrt(2)) / 2
        return w * (mp.exp(-(x - m) / s) / 2 if x > m else 1 - mp.exp((x - m) / s) / 2)

    return mp.fsum(tail(start, *c) - tail(end, *c) for c in comps)


def log_density(comps, x, kernel):
    if kernel == "gaussian":
        return mp.log(mp.fsum(w / s * mp.exp(-(((x - m) / s) ** 2) / 2) for w, m, s in comps))
    return mp.log(mp.fsum(w / s * mp.exp(-abs(x - m) / s) for w, m, s in comps))


def exact(p, q, epsilon, kernel):
    """Return the integral, from sign changes between points that lie close to each other."""
    with mp.workdps(30 + int(epsilon / 2)):
        one, other = (
            [tuple(map(mp.mpf, map(float, c))) for c in zip(*parts, strict=True)]
            for parts in ((d.weights, d.locations, d.scales) for d in (p, q))
        )
        reach = 9.0 if kernel == "gaussian" else 45.0
        points = {m + s * mp.mpf(t) for _, m, s in one for t in np.linspace(-reach, reach, 73)}
        points |= {m + s * mp.mpf(t) for _, m, s in other for t in np.linspace(-8.0, 8.0, 17)}
        points = sorted(points | {m for _, m, _ in one + other})

        def above(x):
            return log_density(one, x, kernel) - log_density(other, x, kernel) - epsilon

        values = [above(x) for x in points]
        start, parts = points[0] if values[0] > 0 else None, []
        for left, right, low, high in zip(points, points[1:], values, values[1:], strict=False):
            if (low > 0) == (high > 0):
                continue
            for _ in range(45):
                middle = (left + right) / 2
                if (above(middle) > 0) == (low > 0):
                    left = middle
                else:
                    right = middle
            if low > 0:
                parts.append((start, left))
            start = None if low > 0 else left
        if start is not None:
            parts.append((start, points[-1]))
        growth = mp.exp(epsilon)
        return float(
            mp.fsum(
                mass(one, *part, kernel) - growth * mass(other, *part, kernel) for part in parts
            )
        )


def far_pair(rng, kernel, kind, target):
    """Return mixtures whose log ratio is about a target."""
    size = int(rng.integers(1, 5))
    w, m = rng.dirichlet(np.ones(size)), rng.normal(0.0, 10 ** rng.uniform(-1, 1), size)
    width = {"one scale": 0.0, "several": 1.0, "wild": 8.0}[kind]
    s = 10 ** rng.uniform(-width, width, size) if width else np.full(size, 10 ** rng.uniform(-1, 1))
    move = np.median(s) * rng.uniform(0.7, 1.4)
    move *= np.sqrt(2.0 * target) if kernel == "gaussian" else target
    who = rng.random(size) < 0.6 if rng.integers(2) else np.ones(size)
    stretch = 1.0 if kind == "one scale" else rng.uniform(0.8, 1.2, size)
    return Mixture(w, m, s, kernel=kernel), Mixture(w, m - move * who, s * stretch, kernel=kernel)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["one scale", "several", "wild"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_mixtures_agree_with_arithmetic_of_many_digits(kernel, kind):
    rng = np.random.default_rng(3)
    for target in (20.0, 300.0):
        p, q = far_pair(rng, kernel, kind, target)
        for epsilon in (target,):
            found = hockey_stick(p, q, epsilon=epsilon)
            assert found == pytest.approx(exact(p, q, epsilon, kernel), abs=2e-13)


@pytest.mark.full
@pytest.mark.parametrize("floor", [0.0, 1e-7])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("away", [15.0, 20.0, 40.0, 44.0, 50.0, 99.0, 101.0])
def test_clusters_with_nothing_between_them(kernel, away, floor):
    family = {"gaussian": GAUSSIAN, "laplace": LAPLACE}[kernel]
    for places, weights in (((0.0, away), (0.7, 0.3)), ((0.0, 0.3 * away, away), (0.5, 0.2, 0.3))):
        p = Mixture(weights, places, 1.0, kernel=kernel)
        q = Mixture(1.0, 0.0, 1.0, kernel=kernel)
        parts = [rows(family, d.weights[None], d.locations[None], d.scales[None]) for d in (p, q)]
        for epsilon in (15.0, 18.0, 40.0):
            expected = exact(p, q, epsilon, kernel)
            assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(expected, abs=1e-13)
            found = any_pair.curves(
                parts[0], parts[1][:, None], np.array([epsilon]), direction=any_pair.FORWARD,
                floor=floor,
            )  # fmt: skip
            assert found[0, 0, 0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.full
def test_forty_components_of_one_scale():
    rng = np.random.default_rng(1)
    w, m = rng.dirichlet(np.ones(40)), rng.normal(0.0, 2.0, 40)
    for kernel, far in (("gaussian", 40.0), ("laplace", 700.0)):
        p, q = Mixture(w, m, 1.0, kernel=kernel), Mixture(w, m - far, 1.0, kernel=kernel)
        x = np.linspace(-60.0, 60.0, 100_001)
        ratio = p.logpdf(x) - q.logpdf(x)
        for epsilon in (300.0, 650.0, 720.0, 800.0):
            density = p.pdf(x) * -np.expm1(-np.maximum(ratio - epsilon, 0.0))
            found = hockey_stick(p, q, epsilon=epsilon)
            assert found == pytest.approx(np.trapezoid(density, x), abs=1e-6)


@pytest.mark.full
def test_laplace_mixtures_of_scales_far_apart():
    """Scales from 1e-8 to 1e8, at locations that are no multiples of anything."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        scales = 10.0 ** np.array([-8.0, -3.0, 0.0, 4.0, 8.0])
        w, m = rng.dirichlet(np.ones(5)), rng.normal(0.0, 3.0, 5)
        moved = m - scales * rng.uniform(0.5, 2.0, 5)
        p, q = (Mixture(w, place, scales, kernel="laplace") for place in (m, moved))
        for epsilon in (0.3, 1.0):
            found = hockey_stick(p, q, epsilon=epsilon)
            assert found == pytest.approx(exact(p, q, epsilon, "laplace"), abs=1e-11)


@pytest.mark.parametrize("noise", [GaussianNoise(0.5), LaplaceNoise(0.4)])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_noise_agrees_with_quadrature(kernel, noise):
    p = Mixture([0.4, 0.6], [0.0, 1.0], [0.6, 1.0], kernel=kernel, noise=noise)
    q = Mixture([0.4, 0.6], [60.0, 70.0], [0.6, 1.2], kernel=kernel, noise=noise)
    x = np.linspace(-80.0, 80.0, 200_001)
    ratio, density = p.logpdf(x) - q.logpdf(x), p.pdf(x)
    for epsilon in (20.0, 50.0, 60.0, 100.0, 1000.0):
        expected = np.trapezoid(density * -np.expm1(-np.maximum(ratio - epsilon, 0.0)), x)
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(expected, abs=1e-6)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(["gaussian", "laplace"]),
    kind=st.sampled_from(["one scale", "several", "wild"]),
    target=st.floats(0.01, 5000.0),
    unit=st.sampled_from([2.0**-600, 2.0**-3, 1.0, 2.0**500]),
)
def test_properties(seed, kernel, kind, target, unit):
    p, q = far_pair(np.random.default_rng(seed), kernel, kind, target)
    epsilon = np.unique(np.r_[0.0, np.geomspace(0.05, 1.5, 12) * target, 15.9, 16.1])
    found = hockey_stick(p, q, epsilon=epsilon)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    # at ordinary epsilon nodes are rounded to the digits of locations, up to 1e6 scales away
    rounding = 1e-10
    assert (np.diff(found) <= rounding).all()
    # convex in exp(epsilon): below its chords
    left, middle, right = epsilon[:-2], epsilon[1:-1], epsilon[2:]
    share = np.exp(middle - right) * np.expm1(left - middle) / np.expm1(left - right)
    assert (found[1:-1] <= (1.0 - share) * found[:-2] + share * found[2:] + rounding).all()
    # the same in another unit, and mirrored
    for factor in (unit, -unit):
        one, other = (
            Mixture(d.weights, factor * d.locations, unit * d.scales, kernel=kernel) for d in (p, q)
        )
        again = hockey_stick(one, other, epsilon=epsilon)
        np.testing.assert_allclose(again, found, rtol=0.0, atol=rounding)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), target=st.floats(0.05, 15.0))
def test_both_forms_agree_where_both_serve(seed, target):
    rng = np.random.default_rng(seed)
    for kernel, family in (("gaussian", GAUSSIAN), ("laplace", LAPLACE)):
        pair = far_pair(rng, kernel, "several", target)
        p, q = (rows(family, d.weights, d.locations, d.scales)[None] for d in pair)
        epsilon = np.linspace(0.0, 16.0, 9)
        ordinary = any_pair.curves(p, q[:, None], epsilon)
        logarithmic = np.zeros_like(ordinary)
        wanted = np.ones(ordinary.shape, dtype=bool)
        fill(p, q[:, None], epsilon[None], wanted, logarithmic, both=True)
        np.testing.assert_allclose(ordinary, logarithmic, rtol=0.0, atol=1e-11)


def test_draws_may_have_epsilons_of_their_own():
    p = rows(GAUSSIAN, np.ones((3, 1)), np.zeros((3, 1)), np.ones((3, 1)))
    q = rows(GAUSSIAN, np.ones((3, 2, 1)), np.array([[[1.0], [20.0]]] * 3), np.ones((3, 2, 1)))
    epsilon = np.array([[0.1, 1.0, 2.0], [1.0, 150.0, 200.0], [180.0, 200.0, 220.0]])
    found = any_pair.curves(p, q, epsilon)
    for person, shift in enumerate((1.0, 20.0)):
        np.testing.assert_allclose(found[:, person], gaussian_shift(shift, epsilon), atol=1e-13)


def test_shift_curves_beyond_the_range_of_densities():
    epsilon = np.array([1.0, 590.0, 599.0, 601.0, 650.0, 700.0])
    c = np.array([0.5, 595.0, 660.0, 900.0])
    weights, y = np.full((2, 3), 1.0 / 3.0), np.array([0.0, 0.5, 2.0])
    found = one_scale.shift_curves(
        weights, y, np.array([1.0, 1.0]), np.arange(0, 13, 3), np.tile(np.arange(3), 4),
        np.repeat(c, 3), epsilon,
    )  # fmt: skip
    for person, shift in enumerate(c):
        one, other = (Mixture(weights[0], m, 1.0, kernel="laplace") for m in (y, y - shift))
        both = [hockey_stick(a, b, epsilon=epsilon) for a, b in ((one, other), (other, one))]
        np.testing.assert_allclose(found[0, person], np.maximum(*both), atol=1e-13)
    alone = one_scale.shift_curves(
        np.ones((1, 1)), np.zeros(1), np.ones(1), np.array([0, 1]), np.zeros(1, dtype=int),
        np.array([660.0]), epsilon,
    )  # fmt: skip
    np.testing.assert_allclose(alone[0, 0], laplace_shift(660.0, epsilon), atol=1e-14)


def test_what_rounding_decides_is_refused():
    p, q = Mixture(1.0, 0.0, 1.0), Mixture(1.0, np.sqrt(2e16), 1.0)
    with pytest.raises(InvalidInputError, match="rounding of a log ratio changes it by"):
        hockey_stick(p, q, epsilon=1e16)
    # where it decides nothing, the largest double is as good as any
    assert hockey_stick(p, q, epsilon=1.7e308) == 0.0
    assert hockey_stick(p, q, epsilon=1e15) == pytest.approx(1.0, rel=0.0, abs=1e-15)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_masses_keep_their_digits_far_out(kernel):
    p = Mixture([0.3, 0.7], [-1.0, 2.0], [0.5, 1.0], kernel=kernel)
    edges = np.array([-30.0, -20.0, 0.0, 1.0, 12.0, 30.0, 31.0])
    found = p.masses(edges)
    assert found.shape == (8,)
    assert found.sum() == pytest.approx(1.0, abs=1e-15)
    expected = p.sf(edges[-1]), p.cdf(edges[0]), p.sf(12.0) - p.sf(30.0)
    np.testing.assert_allclose(found[[-1, 0, 5]], expected, rtol=1e-12)
    if kernel == "gaussian":
        below = 0.3 * gaussian_tail(np.array([-38.0]), 1.0) + 0.7 * gaussian_tail(-22.0, 1.0)
        assert found[1] == pytest.approx(below.item() - p.cdf(-30.0), rel=1e-12)


def test_mixtures_that_share_nearly_everything_are_not_refused():
    """At epsilon 0, where components far apart make p and q equal to rounding in most places."""
    rng = np.random.default_rng(2)
    places = np.r_[rng.normal(0.0, 5e6, 16), 0.03]
    scales = np.r_[rng.uniform(3e5, 1e7, 16), 0.98]
    w = rng.dirichlet(np.ones(17))
    moved = places - np.r_[np.full(16, 0.05), 0.05]
    p, q = (Mixture(w, m, scales) for m in (places, moved))
    found = hockey_stick(p, q, epsilon=np.array([0.0, 1e-9, 1e-3]))
    alone = w[-1] * hockey_stick(Mixture(1.0, 0.03, 0.98), Mixture(1.0, -0.02, 0.98), epsilon=0.0)
    assert (np.diff(found) <= 1e-14).all()
    assert found[0] == pytest.approx(alone, rel=1e-3)


def test_a_narrow_dip_between_nodes_is_found():
    """L falls below epsilon by 5e-5 over a thirtieth of a scale, and comes back."""
    w = np.array([0.54, 0.0518403795, 0.117452655, 0.279252087, 0.0114548785])
    m = np.array([-7663.394406, -7661.342407, -7659.526917, 2299.442553, -0.3511857])
    a = np.array([0.720602448, 0.668711574, 1.38558194, 0.772468613, 2.83122059])
    b = np.array([0.742895017, 0.54624036, 1.26164702, 1.02624237, 2.44349289])
    moved = m - 0.22018 * np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    noise = LaplaceNoise(0.619998577)
    p = Mixture(w, m, a, kernel="laplace", noise=noise)
    q = Mixture(w, moved, b, kernel="laplace", noise=noise)
    pair = [rows(3, d.weights, d.locations, d.scales, 0.619998577)[None] for d in (p, q)]
    ordinary = any_pair.curves(pair[0], pair[1][:, None], np.zeros(1))
    found = np.zeros_like(ordinary)
    fill(pair[0], pair[1][:, None], np.zeros((1, 1)), found == 0.0, found, both=True)
    np.testing.assert_allclose(found, ordinary, rtol=0.0, atol=1e-11)
