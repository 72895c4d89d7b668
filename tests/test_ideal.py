"""The smallest delta that so many databases can show."""

import numpy as np
import pytest
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models import BaseMeasure
from edp_bayes.results.verdict import ONCE

QUICK = {"repetitions": 6, "draws": 60, "random_seed": 1, "progressbar": False}


@pytest.mark.full
def test_limits_fall_to_the_truth_and_not_below():
    found = edp.smallest_delta([20, 100], epsilon=[0.1, 0.5], contribution=[0.1, 0.4], **QUICK)
    assert found["limit"].dims == ("databases", "contribution", "epsilon")
    assert (found["limit"].diff("databases") < 0.0).all()
    assert (found["limit"].diff("epsilon") < 0.0).all()
    assert (found["limit"] > found["true"]).all()
    assert (found["least"] <= found["limit"]).all()
    assert (found["limit"] <= found["most"]).all()
    at, shift = 0.1, 0.4
    exact = norm.cdf(shift / 2 - at / shift) - np.exp(at) * norm.cdf(-shift / 2 - at / shift)
    assert float(found["true"].sel(contribution=0.4, epsilon=0.1)) == pytest.approx(exact)


@pytest.mark.full
def test_a_stated_smoothness_shows_more():
    stated = edp.DirichletProcessMixture(base_measure=BaseMeasure(narrowest=0.2))
    free, smooth = (
        edp.smallest_delta(60, epsilon=0.5, model=model, **QUICK)["limit"].item()
        for model in (None, stated)
    )
    assert smooth < 0.5 * free


@pytest.mark.full
@pytest.mark.parametrize("size", [20, 100])
def test_who_was_there_once_and_stood_out_has_a_limit_by_their_number(size):
    """The constant of the verdict, between a third below and above."""
    found = edp.smallest_delta(size, epsilon=[0.1, 5.0], contribution=5.0, seen=1, **QUICK)
    assert "true" not in found
    assert (abs(size * found["limit"] / ONCE - 1.0) < 0.34).all()


def test_the_same_seed_gives_the_same_numbers():
    one, two = (edp.smallest_delta(20, epsilon=0.1, **QUICK) for _ in range(2))
    assert one.identical(two)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"databases": 7}, "databases must be at least 8, found 7"),
        ({"databases": [20, 9], "seen": 12}, "databases must be at least 12, found 9"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"contribution": np.nan}, "contribution"),
        ({"seen": 0}, "seen"),
        ({"prob": 1.0}, "prob"),
        ({"repetitions": 0}, "repetitions"),
        ({"draws": 5}, "draws must be at least 20, found 5"),
    ],
)
def test_what_cannot_be_used_is_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        edp.smallest_delta(**({"databases": 20, "epsilon": 0.1} | QUICK | change))
