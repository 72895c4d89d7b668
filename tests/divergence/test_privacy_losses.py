"""Privacy losses of pairs and of many databases: closed forms, another library, and soundness."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.divergence.any_pair.components import GAUSSIAN, LAPLACE, rows
from edp_bayes.divergence.composition import convolution, pairs
from edp_bayes.divergence.composition.coarse import coarse_bounds
from edp_bayes.divergence.composition.losses import bucket_masses
from edp_bayes.divergence.composition.rounding import rounded_losses
from edp_bayes.divergence.composition.screening import Screen, screen_bounds, screening_epsilons
from edp_bayes.divergence.shifts import gaussian_shift

EPSILON = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


def mixture(weights, locations, scales, family=GAUSSIAN):
    return rows(family, *(np.atleast_2d(part) for part in (weights, locations, scales)))


def single(location, family=GAUSSIAN):
    return mixture(1.0, location, 1.0, family)


def both(p, q, epsilon):
    """Return the larger direction of one database, by integrals that have tests of their own."""
    first, second = (Mixture(*part[0, :, :3].T) for part in (p, q))
    return np.maximum(
        hockey_stick(first, second, epsilon=epsilon), hockey_stick(second, first, epsilon=epsilon)
    )


@pytest.mark.parametrize("offset", [0.0, 0.07, -0.3])
def test_masses_of_losses_of_a_shift_are_normal(offset):
    s, edges = 0.3, np.array([[0.0, 0.1, 0.2, 0.9]])
    masses, excess = bucket_masses(single(s), single(0.0), edges, np.array([offset]))
    ends = np.array([-np.inf, *(offset - edges[0, ::-1]), *(offset + edges[0]), np.inf])
    for side, sign in ((0, 1.0), (1, -1.0)):
        exact = np.diff(stats.norm(sign * s * s / 2, s).cdf(ends))
        np.testing.assert_allclose(masses[0, side], exact, atol=3e-15)
    gained = masses[0, 0] - np.exp(offset) * masses[0, 1]
    np.testing.assert_allclose(excess[0], gained, atol=3e-15)


@pytest.mark.parametrize("shift", [0.01, 0.3, 1.5])
@pytest.mark.parametrize("databases", [1, 2, 12, 52, 365])
def test_releases_of_a_shift_are_a_larger_shift(shift, databases):
    upper, lower = pairs.curves([(single(shift), single(0.0))], [databases], EPSILON)
    exact = gaussian_shift(shift * np.sqrt(databases), EPSILON)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()
    assert (upper[0] - lower[0]).max() < 2e-3


def test_unequal_databases_compose_as_their_shifts_do():
    sides = [(single(s), single(0.0)) for s in (0.4, 0.05, 1e-4)]
    upper, lower = pairs.curves(sides, [3, 40, 7], EPSILON)
    exact = gaussian_shift(np.sqrt(3 * 0.4**2 + 40 * 0.05**2 + 7e-8), EPSILON)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()
    assert (upper[0] - lower[0]).max() < 2e-3


@pytest.mark.parametrize("databases", [2, 20])
def test_laplace_noise_agrees_with_another_library(databases):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    shift = 0.25
    upper, lower = pairs.curves(
        [(single(shift, LAPLACE), single(0.0, LAPLACE))], [databases], EPSILON
    )
    theirs = [
        np.array(
            pld.from_laplace_mechanism(
                1.0 / shift, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
            )
            .self_compose(databases)
            .get_delta_for_epsilon(EPSILON)
        )
        for pessimistic in (False, True)
    ]
    assert (upper[0] >= theirs[0] - 1e-9).all()
    assert (lower[0] <= theirs[1] + 1e-9).all()
    assert (upper[0] - theirs[1]).max() < 2e-3
    assert (theirs[0] - lower[0]).max() < 2e-3


@pytest.mark.parametrize("databases", [1, 12])
def test_rare_presence_agrees_with_another_library(databases):
    """Theirs are bounds of an answer of which only the cell is released: no more than the truth."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    p = mixture([0.9, 0.1], [0.0, 1.2], [1.0, 1.05])
    q = mixture([0.9, 0.1], [0.0, 0.0], [1.0, 1.0])
    upper, lower = pairs.curves([(p, q)], [databases], EPSILON)
    places = np.linspace(-7.0, 8.0, 301)
    cells = [
        np.diff(Mixture(*part[0, :, :3].T).cdf(places), prepend=0.0, append=1.0) for part in (p, q)
    ]
    logs = [dict(enumerate(np.log(part))) for part in cells]
    theirs = [
        np.max(
            [
                pld.from_two_probability_mass_functions(
                    *order, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3,
                ).self_compose(databases).get_delta_for_epsilon(EPSILON)
                for order in (logs, logs[::-1])
            ],
            axis=0,
        )
        for pessimistic in (False, True)
    ]  # fmt: skip
    assert (upper[0] >= theirs[0] - 1e-9).all()
    # cells of a twentieth of a deviation lose next to nothing
    assert (lower[0] <= theirs[1] + 2e-4).all()
    assert (upper[0] - theirs[1]).max() < 1e-3
    assert (theirs[0] - lower[0]).max() < 1e-3


@st.composite
def mixtures(draw):
    """Return two mixtures of up to three components, near each other or not."""
    size = draw(st.integers(1, 3))
    number = st.floats(-2.0, 2.0)
    w = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)))
    m = np.array(draw(st.lists(number, min_size=size, max_size=size)))
    s = np.exp(draw(st.lists(st.floats(-2.0, 0.5), min_size=size, max_size=size)))
    move = 10 ** draw(st.floats(-4.0, 0.0))
    rho = draw(st.floats(0.01, 1.0))
    q = mixture(np.concatenate([(1 - rho) * w, rho * w]) / w.sum(), np.tile(m, 2), np.tile(s, 2))
    p = q.copy()
    p[0, size:, 1] += move
    return p, q


@settings(max_examples=40)
@given(mixtures(), st.sampled_from([1, 3, 30]))
def test_bounds_are_sound_and_in_order(pair, databases):
    upper, lower = pairs.curves([pair], [databases], EPSILON)
    grid = screening_epsilons(EPSILON, databases)
    screened = screen_bounds([Screen(both(*pair, grid)[None], grid)], [databases], EPSILON)
    assert (lower[0] <= upper[0]).all()
    assert (lower[0] <= screened[0] + 1e-9).all()
    coarse = coarse_bounds(both(*pair, grid)[None], grid, databases, EPSILON)
    assert (lower[0] <= coarse[0] + 1e-9).all()
    one = both(*pair, EPSILON)
    if databases == 1:
        assert (lower[0] <= one + 1e-12).all()
        assert (one <= upper[0] + 1e-12).all()
    # more databases never hide anybody, and nothing is worse than as many chances
    assert (upper[0] >= one - 1e-9).all()
    assert lower[0, 0] <= 1.0 - (1.0 - one[0]) ** databases + 1e-9


@settings(max_examples=25)
@given(mixtures())
def test_rounding_up_keeps_masses_and_dominates(pair):
    found = rounded_losses(*pair, databases=10, largest=2.0).at(0)
    for side in (0, 1):
        total = found.upper[side].sum() + found.infinite[side]
        assert abs(total - 1.0) < 1e-9
        assert abs(found.tested[side].sum() - 1.0) < 1e-9
    losses = found.offset + found.step * found.edges
    for epsilon in (0.0, 0.3, 1.0):
        curve = (found.upper[0] * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum()
        first, second = (Mixture(*part[0, :, :3].T) for part in pair)
        assert curve + found.infinite[0] >= hockey_stick(first, second, epsilon=epsilon) - 1e-12


def test_the_screen_bounds_a_shift_within_a_factor():
    for shift in (0.003, 0.02, 0.2):
        grid = screening_epsilons(EPSILON[1:], 52)
        curve = gaussian_shift(shift, grid)
        bound = screen_bounds([Screen(curve, grid)], [52], EPSILON[1:])
        exact = gaussian_shift(shift * np.sqrt(52), EPSILON[1:])
        assert (bound >= exact).all()
        large = exact > 1e-3
        assert (bound[large] < 5.0 * exact[large] + 1e-9).all()


@pytest.mark.parametrize("databases", [1, 12, 52, 365])
@pytest.mark.parametrize("shift", [0.0, 1e-4, 0.003, 0.03, 0.3, 3.0])
def test_coarse_bounds_are_near_a_shift(shift, databases):
    grid = screening_epsilons(EPSILON[1:], databases)
    found = coarse_bounds(gaussian_shift(shift, grid)[None], grid, databases, EPSILON[1:])[0]
    exact = gaussian_shift(shift * np.sqrt(databases), EPSILON[1:])
    assert (found >= exact).all()
    # of one database the chords between the dots of its curve are all there is
    large = (exact > 1e-3) & (databases > 1)
    assert (found[large] < 1.5 * exact[large]).all()


def test_coarse_bounds_of_rare_presence_are_sound():
    for rho, move in ((0.02, 0.3), (0.05, 0.1), (0.02, 1.0), (0.3, 2.0)):
        q = mixture([1.0 - rho, rho], [0.0, 0.0], [1.0, 1.0])
        p = mixture([1.0 - rho, rho], [0.0, move], [1.0, 1.0])
        upper, lower = pairs.curves([(p, q)], [52], EPSILON[1:])
        grid = screening_epsilons(EPSILON[1:], 52)
        found = coarse_bounds(both(p, q, grid)[None], grid, 52, EPSILON[1:])
        assert (found >= lower).all()
        assert (found <= 3.0 * upper + 1e-4).all()


def test_a_revealed_answer_reveals_more_often_with_more_databases():
    """Disjoint distributions with probability 0.01: the rest of the losses is log(0.99)."""
    p = mixture([0.99, 0.01], [0.0, 40.0], [1.0, 1.0])
    q = mixture([0.99, 0.01], [0.0, 0.0], [1.0, 1.0])
    upper, lower = pairs.curves([(p, q)], [52], EPSILON)
    exact = 1.0 - 0.99**52
    assert (np.abs(upper[0] - exact) < 1e-6).all()
    assert (np.abs(lower[0] - exact) < 1e-6).all()


def test_groups_that_an_answer_tells_apart_are_components_far_from_each_other():
    """Two components at zero with and without a shift, or the same ones a hundred apart."""
    weights, rho = np.array([0.3, 0.7]), 0.4
    both = np.concatenate([(1 - rho) * weights, rho * weights])
    scales, moved = np.array([0.5, 1.0, 0.5, 1.0]), np.array([0.0, 0.0, 0.8, 0.8])
    places = 100.0 * np.array([0.0, 1.0, 0.0, 1.0])
    far = [mixture(both, places + move, scales) for move in (moved, 0.0 * moved)]
    told = [
        np.ascontiguousarray(mixture(both, move, scales).reshape(1, 2, 2, 5).swapaxes(1, 2))
        for move in (moved, 0.0 * moved)
    ]
    edges, offset = np.array([[0.0, 0.05, 0.3, 1.0]]), np.array([-0.1])
    for one, other in zip(
        bucket_masses(*told, edges, offset), bucket_masses(*far, edges, offset), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)
    one, other = (pairs.curves([sides], [12], EPSILON) for sides in (told, far))
    np.testing.assert_allclose(one, other, atol=1e-9)


# Repeated squaring


@pytest.fixture
def doubled(monkeypatch):
    """Have all sums doubled, also those that fit into one window."""

    def only(places=2**9):
        monkeypatch.setattr(convolution, "WIDEST", 0)
        monkeypatch.setattr(convolution, "PLACES", places)

    return only


@pytest.mark.parametrize("databases", [1, 2, 3, 12, 52, 365])
@pytest.mark.parametrize(("rho", "move"), [(1.0, 0.02), (1.0, 0.5), (0.1, 1.2), (0.01, 3.0)])
def test_doubled_sums_are_those_of_one_window(databases, rho, move, monkeypatch, doubled):
    q = mixture([1.0 - rho, rho], [0.0, 0.0], [1.0, 1.0])
    p = mixture([1.0 - rho, rho], [0.0, move], [1.0, 1.05])
    monkeypatch.setattr(convolution, "WIDEST", 2**40)
    whole = pairs.curves([(p, q)], [databases], EPSILON)
    doubled(2**11)
    found = pairs.curves([(p, q)], [databases], EPSILON)
    # each only loosens: but for a shift of one place each upper curve is no lower
    for side, sign in ((0, 1.0), (1, -1.0)):
        away = sign * (found[side] - whole[side])[0]
        assert (away > -1e-9).all()
        assert (away < 3e-4).all()
    assert (found[1] <= whole[0]).all()
    assert (whole[1] <= found[0]).all()


@pytest.mark.parametrize("places", [2**6, 2**9])
@pytest.mark.parametrize("shift", [0.003, 0.05, 1.5])
@pytest.mark.parametrize("databases", [7, 365, 3_000, 99_999])
def test_doubled_bounds_of_a_shift_are_sound(shift, databases, places, doubled):
    doubled(places)
    upper, lower = pairs.curves([(single(shift), single(0.0))], [databases], EPSILON)
    exact = gaussian_shift(shift * np.sqrt(databases), EPSILON)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()


@pytest.mark.parametrize("databases", [3_000, 10_000, 100_000])
@pytest.mark.parametrize("shift", [0.001, 0.003, 0.01])
def test_very_many_releases_of_a_shift_are_a_larger_shift(shift, databases):
    upper, lower = pairs.curves([(single(shift), single(0.0))], [databases], EPSILON)
    exact = gaussian_shift(shift * np.sqrt(databases), EPSILON)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()
    assert (upper[0] - lower[0]).max() < 1e-3


@pytest.mark.parametrize("databases", [20, 365])
def test_doubled_laplace_noise_agrees_with_another_library(databases, doubled):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    shift = 0.05
    doubled(2**11)
    upper, lower = pairs.curves(
        [(single(shift, LAPLACE), single(0.0, LAPLACE))], [databases], EPSILON
    )
    theirs = [
        np.array(
            pld.from_laplace_mechanism(
                1.0 / shift, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
            )
            .self_compose(databases)
            .get_delta_for_epsilon(EPSILON)
        )
        for pessimistic in (False, True)
    ]
    assert (upper[0] >= theirs[0] - 1e-9).all()
    assert (lower[0] <= theirs[1] + 1e-9).all()
    assert (upper[0] - theirs[1]).max() < 2e-3
    assert (theirs[0] - lower[0]).max() < 2e-3


def test_unequal_databases_are_doubled_together(doubled):
    sides = [(single(s), single(0.0)) for s in (0.4, 0.05, 1e-4)]
    exact = gaussian_shift(np.sqrt(3 * 0.4**2 + 400 * 0.05**2 + 7e-8), EPSILON)
    doubled(2**11)
    upper, lower = pairs.curves(sides, [3, 400, 7], EPSILON)
    assert (lower[0] <= exact).all()
    assert (exact <= upper[0]).all()
    assert (upper[0] - lower[0]).max() < 4e-3


def test_a_rare_revelation_among_very_many_databases():
    p = mixture([1.0 - 1e-4, 1e-4], [0.0, 40.0], [1.0, 1.0])
    q = mixture([1.0 - 1e-4, 1e-4], [0.0, 0.0], [1.0, 1.0])
    upper, lower = pairs.curves([(p, q)], [10_000], EPSILON)
    exact = 1.0 - (1.0 - 1e-4) ** 10_000
    assert (np.abs(upper[0] - exact) < 1e-6).all()
    assert (np.abs(lower[0] - exact) < 1e-6).all()


def test_what_is_held_grows_with_the_logarithm_of_the_number():
    pair = (single(1.5), single(0.0))
    peak = {}
    for databases in (1_000, 100_000):
        pairs.curves([pair], [databases], EPSILON)
        tracemalloc.start()
        pairs.curves([pair], [databases], EPSILON)
        peak[databases] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak[100_000] < 1.5 * peak[1_000]


def test_statistics_of_all_draws_are_doubled_alike(monkeypatch):
    """What tests chosen once reach: masses stay masses, and the best test is nearly as good."""
    rng = np.random.default_rng(1)
    places = np.array([-3, -1, 0, 2, 5])
    masses = [rng.dirichlet(np.full(5, 20.0), 3) for _ in range(2)]
    whole = convolution.folded_draws([places], [masses], [40])
    monkeypatch.setattr(convolution, "WIDEST_BY_DRAW", 2**6)
    found = convolution.folded_draws([places], [masses], [40])
    for few, many in zip(found[:2], whole[:2], strict=True):
        np.testing.assert_allclose(few.sum(axis=1), 1.0, atol=1e-9)
        assert few.shape[1] <= 2**6 < many.shape[1]
    best = [
        (np.cumsum(p[:, ::-1], axis=1) - np.cumsum(q[:, ::-1], axis=1)).max(axis=1)
        for p, q, _ in (found, whole)
    ]
    assert (best[0] <= best[1] + 1e-9).all()
    np.testing.assert_allclose(best[0], best[1], atol=0.03)
