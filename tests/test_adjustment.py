"""Contributions and presence adjusted to the database in question."""

from __future__ import annotations

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions.adjustment import VARIANCES, _Slopes, adjust
from edp_bayes.coupling.contributions.pooling import presence_in_question
from edp_bayes.coupling.contributions.posterior import ContributionPosterior
from edp_bayes.coupling.contributions.spells import recent_odds, responses_in_question
from edp_bayes.models.base import fit_as_asked
from edp_bayes.models.joint_regression import JointRegression
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
def test_a_season_of_their_own_is_referred_to_the_database_in_question(place):
    data, season = seasonal(1)
    found = adjust(data, season[:, None], np.array([place]), data.response)
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
        found = adjust(data, season[:, None], np.array([np.sqrt(2.0)]), data.response)
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
    found = adjust(data, known.design, known.target, y)
    assert found.adjustment is not None
    # a falling number of individuals
    assert found.adjustment.odds == pytest.approx(chance[-1] / chance.mean(), rel=0.2)
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
    found = adjust(data, known.design, known.target, y)
    drawn = ContributionPosterior.fit(found, 1).draw(np.arange(people), 50).presence
    assert drawn.mean() == pytest.approx(chance[-1], abs=0.04)


def test_one_spell_is_no_trend():
    there = np.zeros((N, 1))
    there[N // 2 :] = 1.0
    data = edp.Responses.from_arrays(
        np.random.default_rng(7).normal(100.0, 1.0, N) + there[:, 0], contribution=there
    )
    known = edp.Adversary(trend=True).given(data)
    found = adjust(data, known.design, known.target, data.response)
    assert 0.5 < found.adjustment.odds < 6.0


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
            adjust(known.responses, known.design, known.target, y[1:]), 1
        ).draw(np.arange(people), 400)
        low, high = np.quantile(drawn.presence[..., 0], [0.025, 0.975], axis=0)
        inside.append((low[0] <= 0.5) & (high[0] >= 0.5))
        width.append((high - low)[-1])
    assert np.mean(inside) >= 0.8
    if people > 1:
        assert np.mean(width) < 1.3 * 4.0 * 0.5 / np.sqrt(N)


def test_nothing_known_leaves_contributions_as_they_are():
    data, _ = seasonal(5)
    found = adjust(data, np.empty((N, 0)), np.empty(0), data.response)
    assert found.adjustment is None
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
    in_question = np.exp(growth * (0.5 + 1 / 79))
    for responses, size in ((following, 0.4 * in_question), (kept, 0.4)):
        regression = Regression.of(adversary.given(responses))
        found = regression.adjusted(*regression.mode)
        assert found.contribution[:, [0]].mean() == pytest.approx(size, rel=0.12)


def test_models_that_overlook_the_adjustment_say_so():
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
    fitted = fit_as_asked(kernel, regression, settings)
    assert fitted.in_question.slopes_known > 0
    # presence is that of the database in question, as under every model
    adjusted = regression.adjusted(*regression.mode)
    share = adjusted.presence / 60
    wanted = presence_in_question(share, adjusted.adjustment.own_odds)
    found = fitted.coupling.responses.presence / 60
    np.testing.assert_allclose(found, np.maximum(wanted, share), atol=0.5 / 60 + 1e-9)
    mixture = fit_as_asked(edp.FiniteMixture(components=1), regression, settings)
    assert mixture.in_question.slopes_known == 0
    with pytest.warns(edp.exceptions.EdpBayesWarning, match="slopes for known"):
        audit = edp.audit(
            responses,
            epsilon=[0.1],
            model=kernel,
            adversary=edp.Adversary(trend=True),
            **options,
        )
    assert audit.checks.loc["slopes", "statistic"] == fitted.in_question.slopes_known
    assert audit.checks.loc["slopes", "sentence"] in audit.warnings


def chains(seed, n=40, people=60, alike=0.9, share=0.4):
    """Return presence of individuals who come and leave in spells: (n, people)."""
    rng = np.random.default_rng(seed)
    there = np.zeros((n, people), dtype=bool)
    there[0] = rng.random(people) < share
    for t in range(1, n):
        there[t] = rng.random(people) < share * (1.0 - alike) + alike * there[t - 1]
    return there


def of_presence(there, seed=1):
    rng = np.random.default_rng(seed)
    contribution = there * (1.0 + 0.1 * rng.standard_normal(there.shape))
    y = 100.0 + rng.normal(0.0, 5.0, len(there)) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=contribution, additive=True)


def adjusted_for(data, adversary, at=None):
    regression = Regression.of(adversary.given(data, at=at))
    return regression.adjusted(*regression.mode)


def test_whoever_is_there_stays_and_whoever_left_comes_back_as_others_did():
    there = chains(11)
    data = of_presence(there)
    found = adjusted_for(data, edp.Adversary(past=1))
    share = found.presence / found.n_databases
    chance = presence_in_question(share, found.adjustment.own_odds)
    sometimes, here = (share > 0.0) & (share < 1.0), there[-1]
    assert (chance[sometimes & here] >= share[sometimes & here]).all()
    assert chance[sometimes & here].mean() == pytest.approx(0.9 + 0.1 * 0.4, abs=0.06)
    gone = sometimes & ~here
    usual = presence_in_question(share, found.adjustment.odds)
    assert (chance[gone] > 0.0).all()
    assert (chance[gone] <= usual[gone] + 1e-12).all()
    # on the safe side of the true rate of coming back, and far below their share
    assert 0.04 <= chance[gone].mean() < 0.6 * share[gone].mean()


def test_presence_without_spells_keeps_its_share():
    there = chains(12, alike=0.0)
    found = adjusted_for(of_presence(there), edp.Adversary(past=1))
    share = found.presence / found.n_databases
    np.testing.assert_allclose(
        presence_in_question(share, found.adjustment.recent), share, rtol=0.35, atol=0.02
    )


def test_databases_without_an_order_keep_the_share():
    data = of_presence(chains(13))
    rng = np.random.default_rng(1)
    found = adjusted_for(data, edp.Adversary(covariates={"weather": rng.normal(size=40)}))
    assert (found.adjustment.recent == 1.0).all()


def chances(present):
    """Return presence at the next database, by individual, of presence (n, people)."""
    n, people = present.shape
    owner, place = np.nonzero(present.T)
    odds = recent_odds(owner * n + place, people, n, np.ones(n), 1.0, n)
    share = present.mean(axis=0)
    return odds * share / (1.0 - share + odds * share)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 20])
def test_a_newcomer_stays_as_others_do(k):
    present = np.ones((40, 12), dtype=bool)
    present[: 40 - k, 0] = False
    # eleven others always stayed
    assert chances(present)[0] >= 11.5 / 12.0 - 1e-12
    # where those who come leave at once, so may a newcomer
    rng = np.random.default_rng(1)
    seldom = rng.random((40, 200)) < 0.03
    seldom[:, 0] = np.arange(40) == 39
    assert chances(seldom)[0] < 0.1


@pytest.mark.full
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_few_databases_give_presence_between_never_and_always(n):
    """Every history of two individuals, at every database in question."""
    rows = np.arange(n)
    for code in range(1, 4**n):
        present = np.stack([code >> rows & 1, code >> rows + n & 1], axis=1).astype(bool)
        owner, place = np.nonzero(present.T)
        share = present.mean(axis=0)
        sometimes = (share > 0.0) & (share < 1.0)
        for row in range(1, n + 1):
            odds = recent_odds(owner * n + place, 2, n, np.ones(n), 1.0, row)
            assert (odds[~sometimes] == 1.0).all()
            chance = presence_in_question(share, odds)[sometimes]
            assert ((chance > 0.0) & (chance < 1.0)).all()
            there = present[row - 1, sometimes]
            assert (chance[there] >= share[sometimes][there] - 1e-12).all()
            assert (chance[~there] <= share[sometimes][~there] + 1e-12).all()


@pytest.mark.parametrize("always", [False, True])
def test_spells_of_those_never_and_always_there_change_nothing(always):
    n, people = 6, 3
    owner, place = np.nonzero(np.full((people, n), always))
    np.testing.assert_array_equal(
        recent_odds(owner * n + place, people, n, np.ones(n), 0.5, n), np.ones(people)
    )


@pytest.mark.parametrize("n", [24, 41, 60, 104])
def test_pooling_yields_to_who_does_not_come_in_spells(n):
    rng = np.random.default_rng(2)
    present = np.zeros((n, 201), dtype=bool)
    state = rng.random(200) < 0.5
    for row in range(n):
        state = rng.random(200) < np.where(state, 0.9, 0.1)
        present[row, :200] = state
    found = []
    for _ in range(30):
        present[:, 200] = rng.random(n) < 0.5
        present[-1, 200] = False
        found.append(chances(present)[200] / present[:, 200].mean())
    assert np.mean(found) > 0.93
    for every in (2, 4):
        present[:, 200] = np.arange(n) % every == n % every
        share = present[:, 200].mean()
        assert chances(present)[200] == pytest.approx(share, rel=0.04)
    # of those who have left most are still taken to be away
    left = ~present[-1, :200] & present[:, :200].any(axis=0)
    assert chances(present)[:200][left].mean() < 0.7 * present[:, :200].mean()


def test_at_an_earlier_database_spells_are_those_of_the_time():
    there = np.zeros((40, 12), dtype=bool)
    there[5:20] = True  # all come and leave together but for one
    there[:, 0] = False
    there[25:, 0] = True
    there[::7, 1:6] = True
    data = of_presence(there)
    early = adjusted_for(data, edp.Adversary(past=1), at=data.database[15]).adjustment.recent
    late = adjusted_for(data, edp.Adversary(past=1)).adjustment.recent
    assert early[0] <= 1.0 < late[0]


@pytest.mark.full
@pytest.mark.parametrize("model", [edp.SmoothedBootstrap(), edp.FiniteMixture(components=1)])
def test_who_left_long_ago_is_not_the_riskiest_for_the_next_database(model):
    """Of 32 years, the largest contributor came in the last 8, an equal one left in the first."""
    there = np.zeros((32, 30), dtype=bool)
    rng = np.random.default_rng(5)
    for i in range(2, 30):
        start = rng.integers(0, 28)
        there[start : start + rng.integers(3, 12), i] = True
    there[:8, 0], there[24:, 1] = True, True
    contribution = there * np.where(np.arange(30) < 2, 4.0, 1.0)
    contribution = contribution * (1.0 + 0.05 * rng.standard_normal(there.shape))
    y = 100.0 + rng.normal(0.0, 4.0, 32) + contribution.sum(axis=1)
    data = edp.Responses.from_arrays(y, contribution=contribution, additive=True)
    options = {"epsilon": [0.2], "draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}
    audit = edp.audit(data, model=model, adversary=edp.Adversary(trend=True), **options)
    median = audit.individuals["median"].isel(epsilon=0).to_numpy()
    plain = edp.audit(data, model=model, **options).individuals["median"].isel(epsilon=0)
    assert median.argmax() == 1
    assert 0.0 < median[0] < 0.5 * median[1]
    assert median[1] > float(plain[1])


def test_joint_answers_refer_presence_to_the_same_databases():
    there = chains(14, people=20)
    data = of_presence(there)
    orders = edp.Responses.from_arrays(
        50.0 + np.random.default_rng(2).normal(size=40) + there.sum(axis=1),
        contribution=there.astype(float),
        additive=True,
        query="orders",
    )
    joint = edp.Responses.join(data, orders)
    regression = JointRegression.of(edp.Adversary(past=1).given(joint))
    adjusted = regression.adjusted(*regression.mode)
    found = responses_in_question(adjusted)
    share = np.bincount(adjusted.entries.owner, minlength=20) / adjusted.n_databases
    wanted = presence_in_question(share, adjusted.adjustment.own_odds)
    now = np.bincount(found.entries.owner, minlength=20) / adjusted.n_databases
    np.testing.assert_allclose(now, wanted, atol=1.0 / adjusted.n_databases)
    assert (now != share).any()
    assert np.isin(found.entries.value, adjusted.entries.value).all()


def test_samples_of_a_database_move_together():
    there = chains(15, n=30, people=15)
    rng = np.random.default_rng(3)
    c = np.repeat(there, 2, axis=0) * (1.0 + 0.1 * rng.standard_normal((60, 15)))
    data = edp.Responses.from_arrays(
        100.0 + rng.normal(0.0, 5.0, 60) + c.sum(axis=1), contribution=c, samples=2
    )
    found = adjusted_for(data, edp.Adversary(past=1))
    moved = responses_in_question(found).contribution.toarray().reshape(29, 2, 15) != 0.0
    assert (moved[:, 0] == moved[:, 1]).all()
    wanted = presence_in_question(found.presence / 29, found.adjustment.own_odds)
    np.testing.assert_allclose(moved[:, 0].mean(axis=0), wanted, atol=1.0 / 29)


@pytest.fixture(scope="module")
def only_in_lags():
    """Forty days; the first two individuals come in the first two of them alone."""
    there = chains(16, n=40, people=12)
    there[:, :2] = False
    there[:2, :2] = True
    days = np.arange("2024-01-01", "2024-02-10", dtype="M8[D]")
    names = np.array([f"p{k}" for k in range(12)])
    data = of_presence(there)
    return edp.Responses.from_arrays(
        data.response, contribution=data.contribution, individual=names, database=days
    )


OPTIONS = {"epsilon": [0.2], "draws": 40, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.mark.full
@pytest.mark.parametrize("model", [edp.SmoothedBootstrap(), edp.FiniteMixture(components=1)])
def test_who_was_seen_in_lags_alone_is_not_assessed(model, only_in_lags, tmp_path):
    adversary = edp.Adversary(past=2)
    audit = edp.audit(only_in_lags, model=model, adversary=adversary, keep=12, **OPTIONS)
    said = "2 of 12 individuals contributed only to the first 2 databases, which serve as lags"
    (sentence,) = [one for one in audit.warnings if said in one]
    assert "not assessed ('p0', 'p1')" in sentence
    assert audit.settings["not_assessed"] == 2
    page = audit.report(tmp_path / "report.html", names=True).read_text()
    assert "12, of whom 2 are not assessed: seen in the first databases alone" in page
    table = page[page.index('<table id="people"') :]
    table = table[: table.index("</table>")]
    assert ">p0<" not in table
    assert ">p2<" in table
    assert said in page
    with pytest.raises(edp.InvalidInputError, match="'p1' contributed only to databases that"):
        edp.audit(only_in_lags, model=model, adversary=adversary, individuals=["p1"], **OPTIONS)
    both = edp.Responses.join(
        only_in_lags,
        only_in_lags.replaced(response=np.random.default_rng(1).normal(size=40), query="other"),
    )
    assert list(adversary.given(both).unassessed) == ["p0", "p1"]
    assert "not_assessed" not in edp.audit(only_in_lags, model=model, **OPTIONS).settings


@pytest.mark.full
def test_tables_say_when_individuals_were_last_seen(only_in_lags, tmp_path):
    audit = edp.audit(
        only_in_lags, model=edp.SmoothedBootstrap(), adversary=edp.Adversary(past=1), **OPTIONS
    )
    seen = audit.individuals["last_seen"]
    rows = only_in_lags.contribution.toarray() != 0.0
    for name, column in zip(only_in_lags.individual, rows.T, strict=True):
        last = str(only_in_lags.database[np.flatnonzero(column)[-1]]) if column.any() else ""
        assert str(seen.sel(individual=name).values) == last
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert (again.individuals["last_seen"].to_numpy() == seen.to_numpy()).all()
    page = again.report(tmp_path / "report.html", names=True).read_text()
    assert "last seen" in page
    assert "2024-02-09" in page
