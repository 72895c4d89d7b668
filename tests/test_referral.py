"""Contributions and presence referred to the database at hand."""

from __future__ import annotations

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions import ContributionPosterior
from edp_bayes.coupling.referral import VARIANCES, _Slopes, refer
from edp_bayes.models.base import fit_as_asked
from edp_bayes.models.regression import Regression
from edp_bayes.models.sampling import SamplerSettings

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
    found = _Slopes.of(data.contribution, 1, x, slice(0, 3))
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


@pytest.mark.parametrize("trend", [False, True])
@pytest.mark.parametrize("growth", [1.0, -1.0])
def test_contributions_that_follow_a_changing_scale_are_as_large_as_it_is(growth, trend):
    """Contributions of an average size are too small where series and contributions grow."""
    rng = np.random.default_rng(8)
    z = np.linspace(-0.5, 0.5, 80)
    scale = np.exp(growth * z)
    sizes = np.array([0.4, *np.full(19, 0.1)])
    following, kept = (
        edp.Responses.from_arrays(
            scale * rng.normal(size=80) + contribution.sum(axis=1), contribution=contribution
        )
        for contribution in (
            scale[:, None] * sizes * (1.0 + 0.1 * rng.normal(size=(80, 20))),
            sizes * (1.0 + 0.1 * rng.normal(size=(80, 20))),
        )
    )
    adversary = edp.Adversary(changing_scale=True, trend=trend)
    at_hand = np.exp(growth * (0.5 + 1 / 79))
    for responses, size in ((following, 0.4 * at_hand), (kept, 0.4)):
        regression = Regression.of(adversary.given(responses))
        found = regression.referred(*regression.mode)
        assert found.contribution[:, [0]].mean() == pytest.approx(size, rel=0.12)


def test_models_that_overlook_the_referral_say_so():
    """More come at the end, and everybody then contributes more."""
    rng, time = np.random.default_rng(9), np.arange(60)
    there = rng.random((60, 25)) < (0.2 + 0.6 * time / 60)[:, None]
    contribution = there * (1.0 + 0.05 * rng.normal(size=(60, 25)) + 0.5 * (time / 60)[:, None])
    responses = edp.Responses.from_arrays(
        rng.normal(size=60) + contribution.sum(axis=1), contribution=contribution
    )
    options = {"draws": 50, "random_seed": 1, "progressbar": False, "chains": 2}
    settings = SamplerSettings(**options)
    regression = Regression.of(edp.Adversary(trend=True).given(responses))
    kernel = edp.SmoothedBootstrap(kernel="gaussian")
    presence, slopes = fit_as_asked(kernel, regression, settings).warnings
    odds = regression.referred(*regression.mode).referral.odds
    assert f"{odds:.2g} times their usual odds" in presence
    assert "risk is too small" in presence
    assert "takes the slopes for known" in slopes
    mixture = fit_as_asked(edp.FiniteMixture(components=1), regression, settings)
    assert not mixture.warnings
    with pytest.warns(edp.exceptions.EdpBayesWarning, match="usual odds"):
        audit = edp.audit(
            responses,
            epsilon=[0.1],
            model=kernel,
            adversary=edp.Adversary(trend=True),
            **options,
        )
    assert presence in audit.warnings
