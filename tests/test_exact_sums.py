"""Exact sums against rational arithmetic, in every order of what is added."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.exact import ExactSum, split, sum_by, units

numbers = st.floats(-1e30, 1e30, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-30)


def summed(values):
    """Return the exact sums of halves of some numbers, in the order given."""
    size = np.abs(values)
    smallest = size[size > 0].min(initial=np.inf)
    of = units(size.size, size.max(), 0.0 if np.isinf(smallest) else smallest, "x")
    return sum_by(values, of, np.arange(size.size) % 2, 2)


@given(st.lists(st.floats(-(2.0**20), 2.0**20), min_size=2, max_size=60), st.integers(-200, 200))
@settings(derandomize=True, deadline=None)
def test_sums_are_those_of_rational_arithmetic(values, exponent):
    # Within 2^75 of the largest number all digits count; what is far below it is rounded off.
    largest = max(map(abs, values))
    kept = [value if abs(value) >= largest * 2.0**-70 else 0.0 for value in values]
    scaled = np.ldexp(kept, exponent)
    found = summed(scaled)
    for half in (0, 1):
        assert found.rounded()[half] == math.fsum(scaled[half::2])


@given(st.lists(numbers, min_size=2, max_size=40), st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_no_order_changes_a_bit(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    array = np.array(values)
    of = units(array.size, max(np.abs(array).max(), 1e-300), 0.0, "x")
    one = sum_by(array, of, np.zeros(array.size, int), 1)
    other = sum_by(array[order], of, np.zeros(array.size, int), 1)
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=50))
@settings(derandomize=True, deadline=None)
def test_deviations_from_an_origin_are_exact(values):
    array = np.array(values)
    of = units(array.size, array.max(), array.min(), "x")
    found = sum_by(array, of, np.zeros(array.size, int), 1)
    count = np.array([array.size])
    origin = found.origin(count)
    assert origin == pytest.approx(array.mean(), rel=1e-12)
    exact = sum(map(Fraction, values)) - array.size * Fraction(float(origin[0]))
    assert found.about(origin, count).rounded()[0] == float(exact)


def test_differences_and_groups_of_groups_are_exact():
    rng = np.random.default_rng(0)
    values = rng.normal(size=60) * 10.0 ** rng.integers(-6, 6, 60)
    of = units(60, np.abs(values).max(), np.abs(values).min(), "x")
    pairs = sum_by(values, of, np.arange(60) // 3, 20)
    whole = pairs.by(np.zeros(20, int), 1)
    assert whole.rounded()[0] == math.fsum(values)
    rest = (whole[np.zeros(20, int)] - pairs).rounded()
    expected = [math.fsum(np.delete(values, np.arange(3 * k, 3 * k + 3))) for k in range(20)]
    np.testing.assert_array_equal(rest, expected)


def test_what_lies_far_below_the_largest_is_rounded_off():
    found = summed(np.array([1.0, 2.0**-200, -1.0, 2.0**-200])).by(np.array([0, 0]), 1)
    assert found.rounded()[0] == 0.0


@pytest.mark.parametrize("value", [0.0, 5e-324, -5e-324, 2.2e-308])
def test_the_smallest_numbers_keep_their_digits(value):
    assert summed(np.array([value, value, value, 0.0])).rounded().tolist() == [2 * value, value]


@pytest.mark.parametrize("largest", [1e308, np.inf])
def test_sums_beyond_all_numbers_are_refused(largest):
    with pytest.raises(InvalidInputError, match=r"values of size .* are too large"):
        units(10, largest, 1.0, "values")


def test_the_parts_of_a_billion_numbers_stay_below_the_bits_of_a_float():
    for count in (2, 10**3, 10**9):
        of = units(count, 123.0, 1e-9, "x")
        parts = [abs(part) for part in split(np.float64(122.9999999999), of)]
        for part, unit in zip(parts, of, strict=True):
            # Twice as many, for deviations from an origin.
            assert 2.0 * count * part / unit <= 2.0**53


def test_sums_are_rounded_once():
    parts = (np.array([2.0**53]), np.array([2.0**-1 - 2.0**-20]))
    assert ExactSum((1.0, 2.0**-30), parts).rounded()[0] == 2.0**53
