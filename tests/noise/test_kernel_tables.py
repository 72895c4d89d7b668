"""Tables of noisy normal kernels: every bound holds, and none is much too large."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.noise.certificates.kernel_tables import LEVELS_A_LINE, _value, kernel_tables
from edp_bayes.noise.certificates.noisy import NoisyDensities
from edp_bayes.noise.certificates.ratios import doubtful_pairs, lattice_for
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import posterior_of

EPSILON = 0.1
PEOPLE = 12
PRESENCE = np.linspace(0.05, 1.0, PEOPLE)


def jagged(seed, spacing=0.1, half=30, scale=1.0, lopsided=False):
    """Noise like an optimum's: rough weights around a geometric decay."""
    rng = np.random.default_rng(seed)
    k = np.arange(-half - 1, half + 2)
    weights = np.exp(-np.abs(k) * spacing / scale) * rng.gamma(2.0, 1.0, k.size)
    weights[[0, -1]] += 0.02 * weights.sum()
    if not lopsided:
        weights += weights[::-1]
    weights /= weights.sum()
    return LatticeNoise(
        spacing,
        weights[1:-1],
        left=float(weights[0]),
        right=float(weights[-1]),
        decay=math.exp(-spacing / scale),
    )


def some_noise(seed):
    """Rough noise on a lattice, like both sides of zero or not, or Laplace noise."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    return LaplaceNoise(rng.uniform(0.3, 3.0)) if kind == 0 else jagged(seed, lopsided=kind == 1)


def exact(noise, variance, x):
    """Log G at increasing points a multiple of 0.01 apart."""
    step = 0.01
    start = float(x.min())
    places = np.rint((x - start) / step).astype(int)
    one = NoisyDensities(
        NoiseDistribution((noise,)), "gaussian", start, step, int(places.max()) + 1, 60.0
    )
    return np.log(one(np.array([[[1.0, 0.0, math.sqrt(variance)]]]))[0][places])


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spot=st.floats(0.0, 0.999))
@example(seed=11, spot=0.0)
@example(seed=11, spot=0.9)
@example(seed=600, spot=0.98)
def test_values_between_points_and_levels_are_within_their_error(seed, spot):
    noise = some_noise(seed)
    tables = kernel_tables(noise, 0.3, 3.0, EPSILON)
    level = int(spot * (tables.variance.size - 1))
    low, high = tables.variance[level : level + 2]
    rng = np.random.default_rng(seed)
    share = rng.random()
    x = -9.0 + 0.01 * np.sort(rng.integers(0, 1800, 50))
    found = [
        math.log(
            _value(
                u, level, share, tables.step, tables.edge, tables.first, tables.values, tables.tail
            )
        )
        for u in x
    ]
    off = np.abs(found - exact(noise, low + share * (high - low), x))
    assert off.max() <= tables.error[level]
    # kernels up to ten times as wide as the noise change faster than tables of usual noise expect
    coarse = 0.1 if noise.tail_scale > 0.99 else 0.5
    assert tables.error[level] < coarse * EPSILON


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spot=st.floats(0.0, 0.999))
@example(seed=11, spot=0.0)
@example(seed=11, spot=0.9)
def test_lines_and_curvature_bound_every_kernel(seed, spot):
    noise = some_noise(seed)
    tables = kernel_tables(noise, 0.3, 3.0, EPSILON)
    level = int(spot * tables.variance.size)
    x = np.arange(-12.0, 12.0, 0.01)
    log = exact(noise, tables.variance[level], x)
    for steps in (1, 5, 20, 100, 500, 2000):
        change = float(np.abs(log[steps:] - log[:-steps]).max())
        line = tables.rise + tables.slope * (0.01 * steps)
        assert change <= line[level // LEVELS_A_LINE].min() + 1e-9
    second = np.diff(np.exp(log), 2) / 0.01**2
    assert (np.abs(second) <= 1.001 * tables.curvature[level] * np.exp(log[1:-1]) + 1e-9).all()
    scales = np.sqrt(tables.variance[[0, level]])
    slopes = np.abs(np.diff(log)).max() / 0.01
    assert tables.log_lipschitz(scales)[1] >= slopes
    assert np.isinf(tables.log_lipschitz(0.5 * scales)[0])


@pytest.fixture(scope="module")
def everybody(responses):
    """Posterior draws with people of all kinds: present always, often and hardly ever."""
    import edp_bayes as edp

    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.1, (40, PEOPLE)) * (rng.random((40, PEOPLE)) < PRESENCE)
    data = edp.Responses.from_arrays(rng.standard_normal(40) + c.sum(axis=1), contribution=c)
    base = edp.models.BaseMeasure(scale_shape=None)  # as wide components as the tables are for
    model = edp.FiniteMixture(components=3, base_measure=base)
    return posterior_of(data, model=model, draws=2, random_seed=2, progressbar=False)


def largest_ratio(posterior, noise, person, draw):
    p, q = (part[[draw]] for part in posterior.pair(person))
    lattice = lattice_for(noise, "gaussian", p, q, 2)
    return float(np.abs(np.log(lattice(p) / lattice(q))).max())


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("shape", ["rough", "laplace"])
def test_bounds_hold_and_are_near(everybody, seed, scale, shape):
    rough = jagged(seed, spacing=0.05, half=60, scale=scale)
    noise = rough if shape == "rough" else LaplaceNoise(0.5 + 0.4 * seed * scale)
    base = np.ascontiguousarray(np.moveaxis(everybody.base, -1, 1))
    scales = everybody.base[..., 2]
    tables = kernel_tables(noise, 0.3 * float(scales.min()), float(scales.max()), EPSILON)
    people, draws = np.arange(PEOPLE), np.arange(everybody.n_draws)
    distribution = everybody.coupling.contributions(people)
    rows, columns = (part.ravel() for part in np.indices((draws.size, people.size)))
    found = tables.bounds(base, distribution, rows, columns, EPSILON)
    assert np.isfinite(found).any()
    assert np.isinf(found).any()
    some = np.random.default_rng(seed).choice(rows.size, 40, replace=False)
    for row, column, bound in zip(rows[some], columns[some], found[some], strict=True):
        ratio = largest_ratio(everybody, NoiseDistribution((noise,)), int(column), int(row))
        assert ratio <= bound
        # what is not shown to be safe is not safe by far
        assert np.isfinite(bound) or ratio > 0.75 * EPSILON
        assert np.isinf(bound) or bound <= EPSILON


@pytest.mark.parametrize(
    "distribution", [*(jagged(seed, spacing=0.05, half=60) for seed in (0, 1)), LaplaceNoise(2.0)]
)
def test_nobody_who_is_exposed_is_passed_over(everybody, distribution):
    noise = NoiseDistribution((distribution,))
    draws, people = np.arange(everybody.n_draws), np.arange(PEOPLE)[::-1]
    out = np.empty((draws.size, people.size))
    listed = np.zeros(out.shape, dtype=bool)
    for pair in doubtful_pairs(everybody, noise, EPSILON, draws, people, out=out):
        listed[pair.rows, pair.column] = True
    for row, column in np.argwhere(~listed):
        assert largest_ratio(everybody, noise, int(people[column]), int(row)) <= EPSILON
    assert (out[~listed] <= EPSILON).all()
    assert 0 < listed.sum() < listed.size


def test_components_without_a_table_have_no_bound(everybody):
    base = np.ascontiguousarray(np.moveaxis(everybody.base, -1, 1))
    distribution = everybody.coupling.contributions(np.arange(PEOPLE))
    here = np.arange(3)
    tables = kernel_tables(jagged(0, spacing=2.0, scale=20.0), 0.1, 1.0, EPSILON)
    assert np.isinf(tables.bounds(base, distribution, here, here, EPSILON)).all()


def test_noise_without_tails_has_no_tables():
    assert kernel_tables(LatticeNoise(0.5, [0.25, 0.5, 0.25]), 1.0, 2.0, EPSILON) is None


def test_kernels_far_wider_than_the_noise_have_no_tables():
    assert kernel_tables(jagged(0), 1e3, 2e3, EPSILON) is None
