"""The fast integrals of close mixtures against the exact ones, and their screening."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import edp_bayes as edp
from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.curves import one_answer as module
from edp_bayes.coupling.curves.one_answer import pair_components
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.divergence.any_pair.curves import BOTH, FAR, by_cells
from edp_bayes.divergence.any_pair.curves import curves as any_pair
from edp_bayes.divergence.near_pair.close import convexity_bound, pair_integral

EPSILON = np.array([0.0, 0.01, 0.1, 0.3, 1.0])


def coupled_curves(base, distribution, epsilon, *, noise_scale, floor):
    out = np.zeros((*distribution.intercept.shape, epsilon.size))
    close = np.zeros(distribution.intercept.shape, dtype=bool)
    module.coupled_curves(
        base, distribution, epsilon, noise_scale=noise_scale, floor=floor, out=out, close=close
    )
    return out, close


def random_case(seed, people=6):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    base = np.empty((1, 3, size))
    base[0, 0] = rng.dirichlet(np.full(size, 0.5))
    base[0, 1] = rng.normal(0.0, 1.0, size)
    base[0, 2] = np.exp(rng.normal(-0.5, 0.8, size))
    magnitude = 10.0 ** rng.uniform(-5.0, -0.3)
    rho = np.where(rng.random(people) < 0.5, 1.0, rng.random(people))
    own = rng.random((people, size)) ** 2
    by_component = (rho < 1.0) & (rng.random(people) < 0.5)
    distribution = ContributionDraws(
        presence=np.where(by_component[:, None], own, rho[:, None])[None],
        intercept=magnitude * rng.standard_normal((1, people)),
        slope=0.3 * magnitude * rng.standard_normal((1, people)),
        spread=0.3 * magnitude * rng.random((1, people)),
    )
    return base, distribution


def exact(base, distribution, i, epsilon=EPSILON):
    g, q = pair_components(
        base,
        *(
            part[:, i]
            for part in (
                distribution.presence,
                distribution.intercept,
                distribution.slope,
                distribution.spread,
            )
        ),
        unit=1.0,
    )[0]
    w, rho = base[0, 0], distribution.presence[0, i]
    both = rows(GAUSSIAN, np.r_[(1 - rho) * w, rho * w], np.r_[q[0], g[0]], np.r_[q[1], g[1]])
    twin = rows(GAUSSIAN, np.r_[(1 - rho) * w, rho * w], np.r_[q[0], q[0]], np.r_[q[1], q[1]])
    grid, out = epsilon[epsilon <= FAR], np.zeros((1, 1, epsilon.size))
    near = np.zeros((1, 1, grid.size))
    # By quadrature in cells, another way than that of the curves.
    by_cells(
        both[None], twin[None, None], grid[None], BOTH, 0.0, near, np.zeros((1, 1), dtype=np.int64)
    )
    out[..., : grid.size] = near
    if grid.size < epsilon.size:
        out[..., grid.size :] = any_pair(both[None], twin[None, None], epsilon[grid.size :])
    return out[0, 0]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.integers(0, 10_000))
def test_fast_integrals_are_the_exact_ones(seed):
    base, distribution = random_case(seed)
    curves, close = coupled_curves(base, distribution, EPSILON, noise_scale=0.0, floor=0.0)
    for i in np.flatnonzero(close[0]):
        expected = exact(base, distribution, i)
        np.testing.assert_allclose(curves[0, i], expected, rtol=1e-7, atol=2e-12)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 10_000), st.sampled_from([1e-12, 1e-8, 1e-4]))
def test_screening_drops_nothing_above_its_floor(seed, floor):
    base, distribution = random_case(seed)
    kept, close = coupled_curves(base, distribution, EPSILON, noise_scale=0.0, floor=0.0)
    screened, _ = coupled_curves(base, distribution, EPSILON, noise_scale=0.0, floor=floor)
    dropped = close & (screened == 0).all(axis=-1)
    assert (kept[dropped] <= floor + 1e-13).all()


def test_noise_widens_every_distribution():
    base, distribution = random_case(3)
    noisy, close = coupled_curves(base, distribution, EPSILON, noise_scale=2.0, floor=0.0)
    wide = base.copy()
    for i in np.flatnonzero(close[0]):
        g, q = pair_components(
            base,
            *(
                part[:, i]
                for part in (
                    distribution.presence,
                    distribution.intercept,
                    distribution.slope,
                    distribution.spread,
                )
            ),
            unit=1.0,
        )[0]
        rho, w = distribution.presence[0, i], wide[0, 0]
        g, q = (np.stack([m, np.hypot(s, 2.0)]) for m, s in (g, q))
        both = Mixture(np.r_[(1 - rho) * w, rho * w], np.r_[q[0], g[0]], np.r_[q[1], g[1]])
        without = Mixture(w, *q)
        expected = np.maximum(
            edp.hockey_stick(both, without, epsilon=EPSILON),
            edp.hockey_stick(without, both, epsilon=EPSILON),
        )
        np.testing.assert_allclose(noisy[0, i], expected, rtol=1e-6, atol=2e-12)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.floats(-2.0, 2.0), st.floats(0.3, 3.0), st.floats(0.3, 3.0), st.sampled_from([0.0, 0.1, 1.0])
)
def test_integral_of_one_pair_is_the_closed_form(m, s, t, epsilon):
    found = pair_integral(m, s, 0.0, t, epsilon)
    expected = edp.hockey_stick(Mixture(1.0, m, s), Mixture(1.0, 0.0, t), epsilon=epsilon)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-14)


def test_bound_of_one_pair_with_a_common_scale_is_the_shift_formula():
    base = np.array([[1.0], [0.0], [1.0]])
    distribution, without = np.array([[0.4], [1.0]]), np.array([[0.0], [1.0]])
    epsilon = 0.1
    bound = convexity_bound(base, distribution, without, np.ones(1), np.expm1(epsilon), np.inf)
    expected = stats.norm.cdf(0.2 - 0.25) - np.exp(0.1) * stats.norm.cdf(-0.2 - 0.25)
    np.testing.assert_allclose(bound, expected, rtol=1e-12)


@pytest.mark.parametrize("sd", [20.0, 60.0, 100.0, 1000.0])
@pytest.mark.parametrize("rho", [0.9, 1.0])
def test_a_component_much_narrower_than_another(sd, rho):
    base = np.array([[[0.5, 0.5], [0.0, 0.0], [1.0, sd]]])
    distribution = ContributionDraws(
        np.full((1, 1, 2), rho), *(np.array([[value]]) for value in (0.0, -0.1, 0.0))
    )
    curves, close = coupled_curves(base, distribution, EPSILON, noise_scale=0.0, floor=0.0)
    assert close.all()
    expected = exact(base, distribution, 0)
    assert expected.max() > 0.04
    np.testing.assert_allclose(curves[0, 0], expected, rtol=1e-7, atol=2e-12)


@pytest.mark.parametrize("weight", [1e-10, 8e-10, 1e-6, 1e-2])
def test_a_narrow_component_that_moves_by_many_of_its_widths(weight):
    base = np.array([[[1.0 - weight, weight], [0.0, 0.3], [1.0, 1e-3]]])
    distribution = ContributionDraws(
        np.full((1, 1, 2), 0.01), *(np.array([[value]]) for value in (0.05, 0.0, 1e-4))
    )
    curves, close = coupled_curves(base, distribution, EPSILON, noise_scale=0.0, floor=0.0)
    assert close.all()
    expected = exact(base, distribution, 0)
    assert expected.max() > 1e-5
    np.testing.assert_allclose(curves[0, 0], expected, rtol=0.0, atol=1e-14)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_large_epsilon_is_left_to_the_general_integrator(seed):
    base, distribution = random_case(seed)
    epsilon = np.array([1.0, 11.0, 25.0])
    curves, known = coupled_curves(base, distribution, epsilon, noise_scale=0.0, floor=1e-12)
    for i in np.flatnonzero(known[0]):  # those that joint convexity shows to be negligible
        assert curves[0, i].max() == 0.0
        assert exact(base, distribution, i, epsilon).max() <= 1e-11
