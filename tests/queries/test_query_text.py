"""Queries written as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries import Count, Mean, Proportion, Quantile, Slope, Sum, Variance, parse


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("count", Count()),
        (" Sum : amount ", Sum("amount")),
        ("sum", Sum()),
        ("sum:a:b", Sum("a:b")),
        ("mean:kWh used", Mean("kWh used")),
        ("proportion:smoker", Proportion("smoker")),
        ("proportion:age>=40", Proportion("age", ">=", 40)),
        ("proportion: age > 40.5", Proportion("age", ">", 40.5)),
        ("proportion:>1", Proportion(None, ">", 1)),
        ("proportion:zip==01234", Proportion("zip", "==", "01234")),
        ("proportion:sex!=Male", Proportion("sex", "!=", "Male")),
        ("proportion:day<2024-01-31", Proportion("day", "<", "2024-01-31")),
        ("variance:x", Variance("x")),
        ("quantile:x:0.25", Quantile("x", 0.25)),
        ("quantile:a:b:0.25", Quantile("a:b", 0.25)),
        ("quantile:0.9", Quantile(None, 0.9)),
        ("slope:kwh:temperature", Slope("kwh", "temperature")),
    ],
)
def test_forms(text, query):
    assert parse(text) == query


NAMES = st.text("abcXYZ_ 09", min_size=1, max_size=8).map(str.strip).filter(bool)
VALUES = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), NAMES)
QUERIES = st.one_of(
    st.just(Count()),
    st.builds(Sum, NAMES),
    st.builds(Mean, NAMES),
    st.builds(Variance, NAMES),
    st.builds(Quantile, NAMES, st.floats(0, 1)),
    st.builds(Slope, NAMES, NAMES),
    st.builds(Proportion, NAMES, st.sampled_from([">=", "<=", "==", "!=", ">", "<"]), VALUES),
)


@given(query=QUERIES)
@settings(derandomize=True, deadline=None)
def test_a_query_is_read_back_from_its_own_text(query):
    again = parse(str(query))
    assert str(again) == str(query)
    if not isinstance(query, Proportion) or not isinstance(query.value, str):
        assert again == query


@pytest.mark.parametrize(
    "text",
    [
        "",
        "total:x",
        "count:x",
        "quantile",
        "quantile:x",
        "quantile:x:high",
        "slope:y",
        "slope:y:x:z",
    ],
)
def test_other_text_lists_the_forms(text):
    with pytest.raises(InvalidInputError, match=r"unknown query.*count; sum:COLUMN;.*slope:"):
        parse(text)


def test_a_level_outside_its_range_is_named():
    with pytest.raises(InvalidInputError, match="q must lie between 0 and 1, found 90"):
        parse("quantile:x:90")


def test_text_must_be_text():
    with pytest.raises(InputTypeError, match="must be given as text, found 3"):
        parse(3)
