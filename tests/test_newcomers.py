"""Newcomers of whom nothing shows whether they stay withhold a verdict, if that matters."""

import warnings

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics import check_newcomers

GRID = np.array([0.05, 0.5])
FAST = {"epsilon": GRID, "draws": 60, "tune": 100, "random_seed": 3, "progressbar": False}


def data(last=2, others=0, stay=0.0, size=2.5, n=60, seed=1):
    """Return one who is new in the last databases, and others who come and stay at this rate."""
    rng = np.random.default_rng(seed)
    contribution = np.zeros((n, 1 + others))
    contribution[n - last :, 0] = size
    for person in range(1, 1 + others):
        there = False
        for t in range(n):
            there = rng.random() < (stay if there else 0.1)
            contribution[t, person] = 0.01 * there
    y = rng.standard_normal(n) + contribution.sum(axis=1)
    names = ["new", *map(str, range(others))]
    return edp.Responses.from_arrays(y, contribution=contribution, individual=names)


def check(found, upper, **options):
    limit = np.full(GRID.size, upper)
    return check_newcomers(found, found, epsilon=GRID, upper=limit, **options).checks


def audited(found, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(found, model=edp.FiniteMixture(components=1), **FAST, **options)


def test_one_who_may_stay_for_sure_is_named():
    (failed,) = check(data(), 0.5)
    assert (failed.name, failed.passed) == ("newcomers", False)
    assert "Individual 'new' is new: in each of the last 2 databases" in str(failed.sentence)
    assert "nobody else shows how often such people stay" in str(failed.sentence)
    assert "probability of 1 that is not excluded" in str(failed.sentence)


def test_a_limit_that_allows_for_it_passes():
    # sure presence, 2.5 deviations at epsilon 0.05: 0.78 beside a normal distribution
    assert check(data(), 0.75)
    assert check(data(), 0.95) == ()


def test_others_who_mostly_left_show_that_newcomers_do():
    found = data(others=150, stay=0.1)
    (failed,) = check(found, 0.1)
    assert "others stayed after as many in a row" in str(failed.sentence)
    assert check(found, 0.3) == ()
    assert check(data(others=40, stay=0.9), 0.3)


def test_who_was_there_before_or_is_gone_is_no_newcomer():
    found = data()
    c = found.contribution.toarray()
    for rows in ([0, 58, 59], [56, 57], range(60)):
        other = np.zeros_like(c)
        other[list(rows), 0] = 2.5
        y = found.response - c[:, 0] + other[:, 0]
        assert check(edp.Responses.from_arrays(y, contribution=other), 0.05) == ()


def test_one_database_is_enough_where_the_order_counts():
    found = data(last=1)
    assert check(found, 0.5) == ()
    (failed,) = check(found, 0.5, fewest=1)
    assert "new: in the last database and in none before" in str(failed.sentence)


def test_fewer_free_databases_widen_what_they_may_risk():
    found = data(n=20)
    (one,), (other,) = check(found, 0.5), check(found, 0.5, regressors=8)
    assert other.statistic > one.statistic


def test_an_audit_without_an_adversary_withholds():
    audit = audited(data(size=1.5))
    assert audit.withheld is not None
    assert "is new" in audit.withheld


def test_an_audit_in_the_order_of_time_withholds_after_one_database():
    audit = audited(data(last=1), adversary=edp.Adversary(past=1))
    assert not audit.checks.loc["newcomers", "passed"]
    assert audit.withheld is not None


def test_of_a_database_that_was_seen_presence_is_known():
    found = data()
    audit = audited(found, adversary=edp.Adversary(past=1), at=found.database[30])
    assert "newcomers" not in audit.checks.index


@pytest.mark.full
def test_several_queries_withhold_too():
    one = data(seed=1)
    two = data(seed=2).replaced(query="other")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        audit = edp.audit(edp.Responses.join(one, two), **FAST)
    assert not audit.checks.loc["newcomers", "passed"]
