"""Answers that become one value without an individual withhold a verdict until it is named."""

import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics import check_atoms

GRID = np.array([0.05, 0.5])


def data(nothing=20, n=60, level=0.0, seed=2, **options):
    """Return answers that are the level without an individual in so many databases."""
    rng = np.random.default_rng(seed)
    rest = level + np.where(np.arange(n) < nothing, 0.0, rng.gamma(4.0, 1.0, n))
    own = rng.gamma(4.0, 0.25, n)
    return edp.Responses.from_arrays(rest + own, response_without=rest[:, None], **options)


def check(found, upper, grid=GRID):
    return check_atoms(found, epsilon=grid, upper=np.full(grid.size, upper)).checks


def test_the_value_is_named_and_how_often_it_is_there():
    (failed,) = check(data(), 0.4)
    assert (failed.name, failed.passed, failed.statistic) == ("atoms", False, 20 / 60)
    said = str(failed.sentence)
    assert "exactly 0 in 20 of 60 databases without individual" in said
    assert "in 0 with them" in said
    assert said.endswith("Name the value as an atom: responses.replaced(atoms=[0]) (--atoms).")


def test_a_limit_above_what_it_may_reveal_passes():
    # Clopper and Pearson: 20 of 60 is at most 0.448
    assert check(data(), 0.44)
    assert check(data(), 0.45) == ()


def test_two_databases_are_none():
    assert check(data(nothing=2), 0.001) == ()
    assert check(data(nothing=3), 0.001)


def test_the_smallest_answer_counts_where_it_is_not_zero():
    (failed,) = check(data(level=7.5), 0.3)
    assert "exactly 7.5" in str(failed.sentence)


def test_zero_counts_between_other_answers():
    rng = np.random.default_rng(4)
    rest = rng.standard_normal(60)
    rest[:10] = 0.0
    found = edp.Responses.from_arrays(rest + 0.3, response_without=rest[:, None])
    (failed,) = check(found, 0.1)
    assert "exactly 0 in 10 of 60" in str(failed.sentence)


def test_a_value_as_often_with_them_as_without_tells_nothing():
    rng = np.random.default_rng(5)
    shut = np.arange(60) < 15
    rest = rng.normal(10.0, 1.0, 60)
    y, without = np.where(shut, 0.0, rest + 0.3), np.where(shut, 0.0, rest)
    found = edp.Responses.from_arrays(y, response_without=without[:, None])
    assert check(found, 0.001) == ()


def test_a_larger_epsilon_forgives_what_both_have():
    rng = np.random.default_rng(6)
    rest = rng.standard_normal(60)
    y = np.minimum(rest + 1.0, 0.5)
    found = edp.Responses.from_arrays(y, response_without=np.minimum(rest, 0.5)[:, None])
    assert check(found, 0.2, np.array([0.05]))
    assert check(found, 0.2, np.array([3.0])) == ()


@pytest.mark.parametrize("options", [{"atoms": [0.0]}, {"noise": edp.GaussianNoise(0.1)}])
def test_nothing_is_looked_for_where_no_density_is_claimed(options):
    found = data().replaced(**options)
    assert check(found, 0.001) == ()


def test_the_remedy_that_is_named_is_one():
    fast = {"epsilon": GRID, "draws": 60, "tune": 100, "random_seed": 3, "progressbar": False}
    found = data(nothing=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        plain = edp.audit(found, model=edp.FiniteMixture(components=1), **fast)
        named = edp.audit(found.replaced(atoms=[0.0]), **fast)
    assert not plain.checks.loc["atoms", "passed"]
    assert plain.withheld is not None
    assert "atoms" not in named.checks.index
