"""Bands: how many curves they hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edp_bayes.results import bands


def wiggly(rng, count, points=40):
    x = np.linspace(0, 1, points)
    out = np.zeros((count, points))
    for k in range(1, 7):
        out += rng.standard_normal((count, 1)) * np.sin(np.pi * k * x + 0.3) / k
    return out


def inside(curves, band):
    return ((curves >= band[0]) & (curves <= band[1])).all(axis=1).mean()


def test_simultaneous_band_holds_whole_curves_and_the_pointwise_one_does_not():
    rng = np.random.default_rng(1)
    draws, fresh = wiggly(rng, 4000), wiggly(rng, 4000)
    simultaneous = bands.simultaneous(draws, 0.9)
    assert 0.87 < inside(fresh, simultaneous) < 0.93
    assert inside(fresh, bands.pointwise(draws, 0.9)) < 0.75


def test_pointwise_band_holds_each_point():
    rng = np.random.default_rng(2)
    draws, fresh = wiggly(rng, 4000), wiggly(rng, 4000)
    low, high = bands.pointwise(draws, 0.9)
    held = ((fresh >= low) & (fresh <= high)).mean(axis=0)
    assert (np.abs(held - 0.9) < 0.03).all()


def test_pointwise_band_of_few_draws_holds_one_more_with_its_probability():
    # Interpolation between the smallest and the largest draw would hold 0.81 of them on average.
    rng = np.random.default_rng(4)
    low, high = bands.pointwise(rng.uniform(size=(19, 20_000)), 0.9)
    assert np.mean(high - low) == pytest.approx(0.9, abs=4 * 0.064 / np.sqrt(20_000))


@pytest.mark.parametrize("prob", [0.5, 0.8, 0.89, 0.9, 0.95, 0.99])
def test_the_fewest_draws_are_those_whose_range_is_wide_enough(prob):
    fewest = bands.fewest_draws(prob)
    for count, enough in ((fewest, True), (fewest - 1, False)):
        assert ((count - 1) / (count + 1) >= prob - 1e-12) == enough


def test_simultaneous_band_leaves_out_all_the_curves_it_may():
    """0.1 of 40 ranks are two at each end, although 1 - 0.9 is below 0.1 in floating point."""
    low, high = bands.simultaneous(np.arange(1.0, 40.0)[:, None], 0.9)
    assert (low.item(), high.item()) == pytest.approx((2.0, 38.0))


@pytest.mark.full
@given(data=st.data(), prob=st.sampled_from([0.3, 0.5, 0.8, 0.89, 0.9, 0.95, 0.99]))
@settings(max_examples=300, deadline=None)
def test_a_simultaneous_band_contains_the_pointwise_one_and_the_upper_limit(data, prob):
    shape = data.draw(st.tuples(st.integers(1, 60), st.integers(1, 6)))
    # few values, so that many are tied
    value = st.one_of(st.integers(0, 3).map(float), st.floats(0.0, 1.0))
    draws = data.draw(arrays(np.float64, shape, elements=value))
    below = draws * data.draw(st.floats(0.0, 1.0)) if data.draw(st.booleans()) else None
    wide, narrow = (bands.band(draws, prob, kind=kind, below=below) for kind in bands.KINDS)
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()
    assert (bands.upper_limit(draws, 0.5 * (1.0 + prob)) <= wide[1] + 1e-12).all()


def test_the_limit_of_whole_curves_holds_them_and_that_of_single_points_does_not():
    rng = np.random.default_rng(7)
    draws, fresh = wiggly(rng, 4000), wiggly(rng, 4000)
    held = {
        kind: (fresh <= bands.upper_limit(draws, 0.9, kind=kind)).all(axis=1).mean()
        for kind in bands.KINDS
    }
    assert 0.87 < held["simultaneous"] < 0.93
    assert held["pointwise"] < 0.8


def test_synthetic_curves_have_no_simultaneous_band_inside_the_pointwise_one():
    rng = np.random.default_rng(6)
    for _ in range(400):
        size = int(rng.integers(20, 200))
        draws = np.sort(rng.beta(0.5, 5.0, (size, 8)) ** rng.uniform(0.5, 4.0), axis=1)[:, ::-1]
        wide, narrow = bands.simultaneous(draws, 0.89), bands.pointwise(draws, 0.89)
        assert (wide[0] <= narrow[0]).all()
        assert (wide[1] >= narrow[1]).all()


def test_points_that_are_zero_in_every_draw_do_not_widen_the_band():
    rng = np.random.default_rng(3)
    draws = wiggly(rng, 2000)
    padded = np.hstack([draws, np.zeros((2000, 30))])
    low, high = bands.simultaneous(padded, 0.9)
    np.testing.assert_array_equal((low[:40], high[:40]), bands.simultaneous(draws, 0.9))
    assert (low[40:] == 0).all()
    assert (high[40:] == 0).all()


def test_band_of_one_point_is_an_interval_of_its_mass():
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((10_000, 1))
    low, high = bands.simultaneous(draws, 0.9)
    assert abs(((draws >= low) & (draws <= high)).mean() - 0.9) < 0.01


@pytest.mark.parametrize("kind", bands.KINDS)
def test_lower_end_from_a_bound_falls_with_the_curve(kind):
    rng = np.random.default_rng(5)
    draws = np.sort(rng.uniform(size=(500, 12)), axis=1)[:, ::-1]
    below = draws * rng.uniform(0.2, 1.0, draws.shape[1])
    plain, upper = bands.band(draws, 0.9, kind=kind)
    lower, same = bands.band(draws, 0.9, kind=kind, below=below)
    alone = np.minimum(plain, bands.band(below, 0.9, kind=kind)[0])
    assert (np.diff(alone) > 0).any()
    assert (np.diff(lower) <= 0).all()
    assert (alone <= lower).all()
    assert (lower <= plain).all()
    np.testing.assert_array_equal(same, upper)
