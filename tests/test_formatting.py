"""Risks as text: exactly zero, too small to show, and a limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_bayes.report.sections.records import _shown
from edp_bayes.utils.formatting import about, at_most, risk, risk_limit


@given(st.floats(0.0, 1.0))
def test_only_a_zero_or_a_one_that_is_known_to_be_is_printed_as_such(value):
    for shown in (risk, risk_limit):
        assert (shown(value, exact=True) == "0") == (value == 0.0)
        assert (shown(value) == "< 1e-6") == (value < 1e-6)
    assert ("0 " in f"{at_most(value)} ") <= (value >= 1e-6)
    assert (risk(value) == "1") == (value == 1.0)
    if value >= 1e-6:
        assert float(risk(value).strip("> ")) == pytest.approx(value, rel=0.051)
        assert float(risk_limit(value)) >= value * (1.0 - 1e-9)


def test_the_smallest_numbers_are_below_the_limit_not_zero():
    smallest = np.nextafter(0.0, 1.0)
    assert risk(smallest) == risk(np.nextafter(1e-6, 0.0)) == "< 1e-6"
    assert (risk(-0.0, exact=True), risk(-0.0), risk(1e-6)) == ("0", "< 1e-6", "1.0e-6")


def test_a_limit_too_small_to_be_known_says_what_it_rests_on():
    said = [at_most(x, resting="resting on the model") for x in (0.2, 1e-30, 0.0)]
    assert said == ["at most 0.2", *["below 1e-6, resting on the model"] * 2]
    assert at_most(0.0, exact=True) == "exactly 0"
    assert at_most(0.0, exact=True, resting="resting on it") == "exactly 0, resting on it"
    assert (about(0.0), about(0.0, exact=True), about(0.2)) == ("below 1e-6", "0", "0.2")


def test_what_was_not_given_is_not_said_to_be_none():
    assert _shown(None) == _shown("") == "not given"
    assert _shown([0.0, None]) == "0.0, not given"
