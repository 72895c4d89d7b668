"""Exact sums against rational arithmetic, in every order of what is added."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.exact import ExactSum, split, sum_by, units, wide

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


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=4),
    st.integers(3, 40),
)
@settings(derandomize=True, deadline=None)
def test_sums_of_few_numbers_need_fewer_parts_and_have_the_same_bits(values, more):
    array = np.array(values)
    largest, smallest = np.abs(array).max(), np.abs(array[array != 0]).min(initial=1.0)
    count = array.size << more
    narrow = units(count, largest, smallest, "x")
    few = wide(narrow, count, array.size)
    assert len(few) <= len(narrow)
    assert few[-1] == narrow[-1]
    pair = np.arange(array.size) % 2
    one, other = (sum_by(array, of, pair, 2) for of in (narrow, few))
    other = ExactSum(few, other.parts, narrow)
    np.testing.assert_array_equal(one.rounded(), other.rounded())
    again = np.zeros(2, dtype=int)
    np.testing.assert_array_equal(one.by(again, 1).rounded(), other.by(again, 1).rounded())
    count_of = np.bincount(pair, minlength=2)
    origin = np.full(2, one.by(again, 1).origin(np.array([array.size]))[0])
    about = [of.about(origin, count_of).rounded() for of in (one, other)]
    np.testing.assert_array_equal(*about)
    rest = [(one.by(again, 1)[again] - of).rounded() for of in (one, other)]
    np.testing.assert_array_equal(*rest)


def test_a_hundred_million_numbers_need_a_third_less_parts_for_each_pair():
    cents, squares = units(10**8, 500.0, 0.01, "x"), units(10**8, 25e4, 0.0, "x")
    assert [len(of) for of in (cents, squares)] == [3, 6]
    assert [len(wide(of, 10**8, 4096)) for of in (cents, squares)] == [2, 4]


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
