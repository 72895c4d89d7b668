"""Risks as text: exactly zero, too small to show, and a limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_bayes.report.sections.records import _shown
from edp_bayes.utils.formatting import risk, risk_limit


@given(st.floats(0.0, 1.0))
def test_only_exactly_zero_is_printed_as_zero(value):
    for words in (risk(value), risk_limit(value)):
        assert (words == "0") == (value == 0.0)
        assert (words == "< 1e-6") <= (0.0 < value < 1e-6)
    if value >= 1e-6:
        assert float(risk(value)) == pytest.approx(value, rel=0.051)
        assert float(risk_limit(value)) >= value * (1.0 - 1e-9)


def test_the_smallest_numbers_are_below_the_limit_not_zero():
    smallest = np.nextafter(0.0, 1.0)
    assert risk(smallest) == risk(np.nextafter(1e-6, 0.0)) == "< 1e-6"
    assert (risk(-0.0), risk(1e-6)) == ("0", "1.0e-6")


def test_what_was_not_given_is_not_said_to_be_none():
    assert _shown(None) == _shown("") == "not given"
    assert _shown([0.0, None]) == "0.0, not given"
