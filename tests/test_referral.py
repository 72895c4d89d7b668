"""Contributions and presence referred to the database at hand."""

from __future__ import annotations

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions import ContributionPosterior
from edp_bayes.coupling.referral import VARIANCES, _Slopes, refer

N, PERIOD = 78, 13


def seasonal(seed: int, people: int = 30, seasons: int = 15, size: float = 0.5):
    """Return responses of individuals, the first of whom follow a season, and the season."""
    rng = np.random.default_rng(seed)
    season = np.sqrt(2.0) * np.cos(2 * np.pi * np.arange(N) / PERIOD)
    contribution = 1.0 + 0.1 * rng.standard_normal((N, people))
    contribution[:, :seasons] += size * season[:, None]
    y = rng.normal(100.0, 5.0, N) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=contribution, additive=True), season


@pytest.mark.parametrize("place", [np.sqrt(2.0), 0.0, -np.sqrt(2.0)])
def test_a_season_of_their_own_is_referred_to_the_database_at_hand(place):
    data, season = seasonal(1)
    found = refer(data, season[:, None], np.array([place]), data.response)
    c = found.contribution.toarray()
    np.testing.assert_allclose(c[:, :15].mean(axis=0), 1.0 + 0.5 * place, atol=0.06)
    assert c[:, :15].std(axis=0).max() < 0.15
    # whoever has none keeps what they contributed, within three standard errors of a slope
    np.testing.assert_allclose(c[:, 15:], data.contribution.toarray()[:, 15:], atol=0.05)


def test_slopes_are_those_of_a_conjugate_regression():
    data, season = seasonal(2, people=3, seasons=2)
    x = np.stack([season, np.arange(N) / N - 0.5], axis=1)
    x /= x.std(axis=0)
    found = _Slopes.of(data, x, slice(0, 3))
    for person in range(3):
        c = data.contribution.toarray()[:, person]
        centred, left = x - x.mean(axis=0), c - c.mean()
        for k, variance in enumerate(VARIANCES[1:], 1):
            precision = centred.T @ centred + np.eye(2) / variance
            np.testing.assert_allclose(found.inverse[k, person], np.linalg.inv(precision))
            slope = np.linalg.solve(precision, centred.T @ left)
            np.testing.assert_allclose(found.mean[k, person], slope)
            # the marginal covariance of the contributions, by its own determinant
            marginal = np.eye(N) + variance * centred @ centred.T
            residual = left @ np.linalg.solve(marginal, left)
            evidence = -0.5 * (np.linalg.slogdet(marginal)[1] + (N - 1) * np.log(residual))
            np.testing.assert_allclose(found.evidence[person, k], evidence)


def test_what_a_regression_adds_to_the_mean_covers_it():
    inside = []
    for repetition in range(40):
        data, season = seasonal([3, repetition], people=10, seasons=5, size=0.1)
        found = refer(data, season[:, None], np.array([np.sqrt(2.0)]), data.response)
        drawn = ContributionPosterior.fit(found, 1).draw(np.arange(10), 400)
        rest = 100.0 + data.contribution.toarray().mean(axis=0).sum() - 1.0
        mean = drawn.intercept + drawn.slope * rest
        truth = np.where(np.arange(10) < 5, 1.0 + 0.1 * np.sqrt(2.0), 1.0)
        low, high = np.quantile(mean, [0.025, 0.975], axis=0)
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside) >= 0.9


def test_presence_follows_how_many_are_there():
    rng = np.random.default_rng(4)
    chance = 0.3 * np.exp(-1.8 * np.arange(N) / N)
    there = rng.random((N, 400)) < chance[:, None]
    y = rng.normal(1000.0, 20.0, N) + there.sum(axis=1)
    data = edp.Responses.from_arrays(y, contribution=there.astype(float), additive=True)
    known = edp.Adversary(trend=True).given(data)
    found = refer(data, known.design, known.target, y)
    assert found.referral is not None
    # a falling number of individuals
    assert found.referral.odds == pytest.approx(chance[-1] / chance.mean(), rel=0.2)
    drawn = ContributionPosterior.fit(found, 1).draw(np.arange(400), 50).presence
    assert drawn.mean() == pytest.approx(chance[-1], abs=0.015)


@pytest.mark.parametrize("people", [400, 40])
def test_presence_that_grows_becomes_as_common_as_it_is(people):
    rng = np.random.default_rng(6)
    chance = 0.2 + 0.6 * np.arange(N + 1) / N
    there = rng.random((N, people)) < chance[:-1, None]
    y = rng.normal(1000.0, 20.0, N) + there.sum(axis=1)
    data = edp.Responses.from_arrays(y, contribution=there.astype(float), additive=True)
    known = edp.Adversary(trend=True).given(data)
    found = refer(data, known.design, known.target, y)
    drawn = ContributionPosterior.fit(found, 1).draw(np.arange(people), 50).presence
    assert drawn.mean() == pytest.approx(chance[-1], abs=0.04)


def test_one_spell_is_no_trend():
    there = np.zeros((N, 1))
    there[N // 2 :] = 1.0
    data = edp.Responses.from_arrays(
        np.random.default_rng(7).normal(100.0, 1.0, N) + there[:, 0], contribution=there
    )
    known = edp.Adversary(trend=True).given(data)
    found = refer(data, known.design, known.target, data.response)
    assert 0.5 < found.referral.odds < 6.0


@pytest.mark.parametrize("people", [1, 30])
def test_whoever_comes_in_spells_is_known_less(people):
    inside, width = [], []
    for repetition in range(40):
        rng = np.random.default_rng([8, repetition])
        # the first comes in spells, the others by chance
        there = rng.random((N, people)) < 0.5
        there[:, 0] = (rng.integers(2) + (rng.random(N) > 0.9).cumsum()) % 2
        y = rng.normal(100.0, 5.0, N) + there.sum(axis=1)
        data = edp.Responses.from_arrays(y, contribution=there.astype(float), additive=True)
        known = edp.Adversary(past=1).given(data)
        drawn = ContributionPosterior.fit(
            refer(known.responses, known.design, known.target, y[1:]), 1
        ).draw(np.arange(people), 400)
        low, high = np.quantile(drawn.presence[..., 0], [0.025, 0.975], axis=0)
        inside.append((low[0] <= 0.5) & (high[0] >= 0.5))
        width.append((high - low)[-1])
    assert np.mean(inside) >= 0.8
    if people > 1:
        assert np.mean(width) < 1.3 * 4.0 * 0.5 / np.sqrt(N)


def test_nothing_known_leaves_contributions_as_they_are():
    data, _ = seasonal(5)
    found = refer(data, np.empty((N, 0)), np.empty(0), data.response)
    assert found.referral is None
    np.testing.assert_array_equal(found.contribution.toarray(), data.contribution.toarray())
