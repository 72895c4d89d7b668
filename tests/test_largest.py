"""The largest contribution there is against what the model of contributions expects."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions.posterior import ContributionPosterior, ContributionPrior
from edp_bayes.diagnostics.largest import check_largest

N, PEOPLE = 40, 60


def responses_of(contributions, rest=None):
    rng = np.random.default_rng(5)
    rest = 10.0 * rng.standard_normal(len(contributions)) if rest is None else rest
    return edp.Responses.from_arrays(rest + contributions.sum(axis=1), contribution=contributions)


def often(seed, sizes):
    rng = np.random.default_rng(seed)
    there = rng.random((N, PEOPLE)) < 0.4
    return there * sizes * (1.0 + 0.2 * rng.standard_normal((N, PEOPLE)))


def checked(contributions, seed=1, **options):
    responses = responses_of(contributions)
    posterior = ContributionPosterior.fit(responses, 1, **options)
    return check_largest(posterior, responses, seed)["largest contribution"]


@pytest.mark.full
def test_false_alarms_are_rare():
    failed = [not checked(often(seed, np.full(PEOPLE, 0.5))).passed for seed in range(100)]
    assert np.mean(failed) <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 100)


def test_one_who_gave_far_more_once_is_not_expected():
    contributions = often(1, np.full(PEOPLE, 0.5))
    contributions[3, 7] = 60.0
    check = checked(contributions)
    assert not check.passed
    assert check.statistic == 60.0
    assert "above what the model of contributions expects" in check.sentence
    assert "tails are lighter than the data" in check.sentence


def test_a_model_of_heavy_tails_is_told_so():
    wide = ContributionPrior(1.0, 20.0, 1.0, 1.0)
    check = checked(often(2, np.full(PEOPLE, 0.5)), prior=wide)
    assert not check.passed
    assert "far below what the model of contributions expects" in check.sentence
    assert "tails are heavier than the data" in check.sentence


def test_the_seed_decides():
    contributions = often(3, np.full(PEOPLE, 0.5))
    assert checked(contributions, 4) == checked(contributions, 4)


def test_nothing_is_tested_where_there_is_nothing_or_too_much(monkeypatch):
    responses = responses_of(np.zeros((N, 2)))
    posterior = ContributionPosterior.fit(responses, 1)
    assert not check_largest(posterior, responses, 1).checks
    responses = responses_of(often(3, np.full(PEOPLE, 0.5)))
    monkeypatch.setattr("edp_bayes.diagnostics.largest.MOST_NUMBERS", 1000)
    posterior = ContributionPosterior.fit(responses, 1)
    assert not check_largest(posterior, responses, 1).checks


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_an_audit_has_it_and_still_gives_a_verdict():
    contributions = often(1, np.full(PEOPLE, 0.5))
    contributions[3, 7] = 3.0
    options = {"epsilon": [0.1], "draws": 60, "random_seed": 1, "progressbar": False}
    found = edp.audit(responses_of(contributions), **options)
    check = found.checks.loc["largest contribution"]
    assert not check["passed"]
    assert "largest contribution" not in (found.withheld or "")
    again = edp.audit(responses_of(contributions), model=edp.SmoothedBootstrap(), **options)
    assert "largest contribution" not in again.checks.index
