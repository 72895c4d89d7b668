"""What an adversary knows: regressors, the database in question, insiders, and what is refused."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.adversary.timeline import Timeline
from edp_bayes.diagnostics.own import check_own
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.results.bands import upper_limit

N = 48
DAYS = np.arange("2020-01-06", "2021-12-01", 7, dtype="M8[D]")[:N]


def responses_of(
    seed: int = 1, database: Any = DAYS, people: int = 5, **options: Any
) -> edp.Responses:
    rng = np.random.default_rng(seed)
    contribution = rng.gamma(4.0, 0.1, (N, people))
    response = rng.normal(100.0, 1.0, N) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(
        response, contribution=contribution, database=database, additive=True, **options
    )


def test_lags_are_the_earlier_releases():
    data = responses_of()
    known = edp.Adversary(past=2).given(data)
    y = data.response
    assert known.names == ["lag 1", "lag 2"]
    np.testing.assert_allclose(known.design, np.stack([y[1:-1], y[:-2]], 1) - y.mean())
    np.testing.assert_allclose(known.target, y[[-1, -2]] - y.mean())
    np.testing.assert_array_equal(known.responses.database, DAYS[2:])


def test_the_database_in_question_may_be_one_of_those_seen():
    data = responses_of()
    known = edp.Adversary(past=2, trend=True, changing_scale=True).given(data, at=DAYS[10])
    np.testing.assert_allclose(known.target, known.design[8])
    assert known.target_position == known.position[8]
    with pytest.raises(InvalidInputError, match="with 2 before it, found 2020-01-13, number 2"):
        edp.Adversary(past=2).given(data, at=DAYS[1])
    with pytest.raises(InvalidInputError, match="at must be a database, found 5"):
        edp.Adversary(past=2).given(data, at=5)


def test_the_trend_goes_on_to_the_next_database():
    known = edp.Adversary(trend=True).given(responses_of())
    step = np.diff(known.design[:, 0])
    np.testing.assert_allclose(step, step[0])
    np.testing.assert_allclose(known.target[0] - known.design[-1, 0], step[0])
    assert known.design.std() == pytest.approx(1.0)


@given(period=st.floats(2.5, 20.0))
@settings(max_examples=20, deadline=None)
def test_a_season_repeats(period):
    known = edp.Adversary(season=period).given(responses_of())
    place = np.arange(N + 1)
    values = np.vstack([known.design, known.target])
    for column, regressor in zip(values.T, known.regressors, strict=True):
        harmonic = int(regressor.name.split()[-1])
        waves = np.stack([f(2 * np.pi * harmonic * place / period) for f in (np.sin, np.cos)], 1)
        full = np.column_stack([np.ones(N + 1), waves])
        fitted = full @ np.linalg.lstsq(full, column, rcond=None)[0]
        np.testing.assert_allclose(fitted, column, atol=1e-6)


def test_the_calendar_finds_its_own_seasons():
    hours = np.arange("2020-01-01", "2021-01-01", dtype="M8[h]").astype("M8[us]")[:400]
    assert Timeline.of(hours).seasons() == {
        "day": 24.0,
        "week": 168.0,
        "year": pytest.approx(8765.82),
    }
    months = np.arange("2010-01", "2014-01", dtype="M8[M]").astype("M8[D]")
    assert Timeline.of(months).seasons() == {"year": pytest.approx(12.0)}
    known = edp.Adversary(season="calendar").given(responses_of(database=months))
    assert known.names[0] == "year, cosine 1"
    with pytest.raises(InvalidInputError, match="no longer than half the series"):
        edp.Adversary(season="calendar").given(responses_of())  # of weeks, for less than a year
    with pytest.raises(InvalidInputError, match="keys that are dates"):
        edp.Adversary(season="calendar").given(responses_of(database=None))


def table(extra: int = 0) -> pd.DataFrame:
    days = np.arange(N + extra) * np.timedelta64(7, "D") + DAYS[0]
    rng = np.random.default_rng(2)
    warm, day = rng.normal(size=days.size), np.where(np.arange(days.size) % 3, "sun", "rain")
    return pd.DataFrame({"day": days, "warm": warm, "sky": day})


def test_covariates_are_aligned_by_their_keys():
    rows = table(1)
    known = edp.Adversary(covariates=rows.sample(frac=1.0, random_state=1)).given(responses_of())
    assert known.names == ["warm", "sky: rain"]
    warm = rows["warm"].to_numpy()
    mean, deviation = warm[:-1].mean(), warm[:-1].std()
    np.testing.assert_allclose(known.design[:, 0], (warm[:-1] - mean) / deviation)
    np.testing.assert_allclose(known.target[0], (warm[-1] - mean) / deviation)
    assert not known.warnings
    same = edp.Adversary(covariates=pl.from_pandas(rows)).given(responses_of())
    np.testing.assert_array_equal(same.design, known.design)


def test_a_next_covariate_that_is_not_given_is_the_last_one():
    known = edp.Adversary(covariates=table()).given(responses_of())
    np.testing.assert_array_equal(known.target, known.design[-1])
    assert "that of the last one" in known.warnings[0]


def test_missing_covariates_are_refused_by_name():
    rows = table()
    rows.loc[3, "warm"] = np.nan
    with pytest.raises(InvalidInputError, match="'warm' of database 2020-01-27 is missing"):
        edp.Adversary(covariates=rows).given(responses_of())
    with pytest.raises(InvalidInputError, match="found none for 2020-01-13"):
        edp.Adversary(covariates=table().drop(index=1)).given(responses_of())
    with pytest.raises(InvalidInputError, match="distinct"):
        edp.Adversary(covariates=pd.concat([table(), table()[:1]])).given(responses_of())
    with pytest.raises(InputTypeError, match="a table or a mapping"):
        edp.Adversary(covariates=5).given(responses_of())


def test_insiders_are_subtracted_from_sums_and_no_longer_audited():
    data = responses_of()
    known = edp.Adversary(past=1, insiders=[0, 3]).given(data)
    told = data.contribution_of(0) + data.contribution_of(3)
    np.testing.assert_allclose(known.responses.response, (data.response - told)[1:])
    assert known.responses.individual.tolist() == [1, 2, 4]
    np.testing.assert_allclose(known.responses.contribution_of(4), data.contribution_of(4)[1:])


def test_what_insiders_know_of_a_mean_is_its_value_on_their_records():
    rng = np.random.default_rng(1)
    week, person = np.repeat(np.arange(20), 30), np.tile(np.arange(30), 20)
    frame = pd.DataFrame({"week": week, "person": person, "x": rng.normal(size=600)})
    databases = edp.Databases.from_table(frame, database="week", individual="person")
    data = databases.respond(edp.queries.Mean("x"))
    known = edp.Adversary(insiders=[3, 7]).given(data)
    own = frame[frame["person"].isin([3, 7])].groupby("week")["x"].mean().to_numpy()
    np.testing.assert_allclose(known.design[:, 0], (own - own.mean()) / own.std())
    assert known.responses.n_individuals == 28
    np.testing.assert_array_equal(known.responses.response, data.response)


def test_a_share_of_insiders_is_drawn_by_its_seed():
    data = responses_of(people=40)
    first, same, other = (
        edp.Adversary(insiders=0.25, random_seed=seed).given(data).insiders for seed in (1, 1, 2)
    )
    assert first == same != other
    assert len(first) == 10


def test_the_own_contribution_that_tells_most_is_known():
    data = responses_of()
    big = data.contribution.toarray()
    big[:, 2] *= 20.0
    data = edp.Responses.from_arrays(
        data.response + big.sum(axis=1), contribution=big, additive=True
    )
    assert edp.Adversary(own=True).given(data).insiders == (2,)


def test_a_further_query_is_known_in_buckets():
    data = responses_of()
    values = np.random.default_rng(3).normal(size=N)
    known = edp.Adversary(knows=values, bins=[-0.5, 0.5]).given(data)
    assert len(known.names) == 2
    assert [np.unique(column.round(9)).size for column in known.design.T] == [2, 2]
    exact = edp.Adversary(knows=values).given(data)
    np.testing.assert_allclose(exact.design[:, 0], (values - values.mean()) / values.std())
    with pytest.raises(InvalidInputError, match="bins are buckets of knows"):
        edp.Adversary(bins=3)


@pytest.mark.parametrize("form", [list, tuple, pd.Series, lambda v: {"g": v}])
def test_a_further_query_may_be_given_with_the_next_value(form):
    data = responses_of(database=None)
    values = np.append(np.random.default_rng(3).uniform(0.0, 1.0, N), 0.1)
    values[:N:2] += 2.0
    known = edp.Adversary(knows=form(values.tolist()), bins=[1.5]).given(data)
    (column,) = known.design.T
    np.testing.assert_array_equal(column > 0, values[:N] > 1.5)
    # the last database of all is in the same bucket as the next one
    assert known.target[0] == column[-1]
    assert not known.warnings
    other = edp.Adversary(knows=form([*values[:N], 2.5]), bins=[1.5]).given(data)
    assert other.target[0] == column[0] != column[-1]
    with pytest.raises(InvalidInputError, match="of one query, found columns a, b"):
        edp.Adversary(knows={"a": values, "b": values}).given(data)


def test_bad_input_is_refused_by_name():
    data = responses_of()
    with pytest.raises(InvalidInputError, match="no longer than half the series, 24 databases"):
        edp.Adversary(season=30).given(data)
    with pytest.raises(InvalidInputError, match="too few for what the adversary knows"):
        edp.Adversary(past=22).given(data)
    with pytest.raises(InvalidInputError, match="twin determines the response"):
        edp.Adversary(past=2, covariates={"twin": 2.0 * data.response + 1.0}).given(data)
    with pytest.raises(InvalidInputError, match="leave an individual to audit, found all 5"):
        edp.Adversary(insiders=[0, 1, 2, 3, 4]).given(data)
    with pytest.raises(InvalidInputError, match="unknown individual 9"):
        edp.Adversary(insiders=[9]).given(data)
    with pytest.raises(InvalidInputError, match="is no sum over individuals"):
        edp.Adversary(insiders=[1]).given(data.replaced(additive=False))
    with pytest.raises(InputTypeError, match="insiders must be labels"):
        edp.Adversary(insiders="ann")
    with pytest.raises(InvalidInputError, match="share of insiders"):
        edp.Adversary(insiders=1.5)
    with pytest.raises(InputTypeError, match="past must be an integer"):
        edp.Adversary(past=1.5)
    with pytest.raises(InvalidInputError, match="season must be at least 2"):
        edp.Adversary(season=1)
    with pytest.raises(InvalidInputError, match="individual 1 is an insider"):
        edp.audit(data, epsilon=[0.1], adversary=edp.Adversary(insiders=[1]), individuals=[1])
    with pytest.raises(InputTypeError, match="adversary must be an Adversary"):
        edp.audit(data, epsilon=[0.1], adversary="past")
    with pytest.raises(InvalidInputError, match="give adversary=, too"):
        edp.audit(data, epsilon=[0.1], at=3)


def test_databases_out_of_order_are_refused():
    days = DAYS.copy()
    days[[3, 9]] = days[[9, 3]]
    with pytest.raises(InvalidInputError, match="in the order of time, found 2020-03-09 before"):
        edp.Adversary(past=1).given(responses_of(database=days))
    text = [f"{k % 28 + 1}/{k % 12 + 1}/20{k:02d}" for k in range(N)][::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        data = responses_of(database=text)
    with pytest.raises(InvalidInputError, match="dates as text"):
        edp.Adversary(past=1).given(data)
    assert edp.Adversary(insiders=[0]).given(data).responses.n_databases == N


def test_uneven_spacing_is_said_with_the_gaps():
    days = DAYS.copy()
    days[20:] += np.timedelta64(7, "D")
    known = edp.Adversary(past=1).given(responses_of(database=days))
    assert "2020-05-18 before 2020-06-01" in known.warnings[0]
    zone = dt.timezone(dt.timedelta(hours=2))
    aware = [dt.datetime(2020, 1, 1, tzinfo=zone) + dt.timedelta(days=k) for k in range(N)]
    assert not edp.Adversary(past=1).given(responses_of(database=aware)).warnings


def test_many_regressors_are_said_with_the_price():
    known = edp.Adversary(past=6, trend=True, season=8).given(responses_of())
    assert "1.5 times as wide" in known.warnings[-1]


@pytest.mark.parametrize(
    ("adversary", "words"),
    [
        (edp.Adversary(), "a person who knows nothing but the distribution of the response"),
        (
            edp.Adversary(past=1),
            "a person who has seen the last release and knows when each individual was last there",
        ),
        (
            edp.Adversary(trend=True),
            "a person who knows the trend and when each individual was last there",
        ),
        (edp.Adversary(covariates={"warm": [1.0]}), "a person who knows the covariate warm"),
        (
            edp.Adversary(past=2, season="calendar"),
            "a person who has seen the last 2 releases and knows the seasons of the calendar and "
            "when each individual was last there",
        ),
        (
            edp.Adversary(past=3, trend=True, season=13, changing_scale=True, insiders=["ann"]),
            "a person who has seen the last 3 releases, knows the trend, a season of 13 databases, "
            "how the spread changes and when each individual was last there and learns from an "
            "insider what they contributed",
        ),
        (
            edp.Adversary(past=2, season=12, covariates={"warm": [1.0]}),
            "a person who has seen the last 2 releases and knows a season of 12 databases, the "
            "covariate warm and when each individual was last there",
        ),
        (
            edp.Adversary(insiders=0.5, own=True),
            "a person who learns from 50% of all individuals what they contributed and knows what "
            "they contributed themselves",
        ),
    ],
)
def test_it_is_said_against_whom(adversary, words):
    assert adversary.words == words


@pytest.mark.full
def test_the_own_contribution_of_the_riskiest_is_known_by_the_next_who_knows_theirs():
    """Whoever tells most is the worst for all others; for them it is who tells next most."""
    rng = np.random.default_rng(4)
    contribution = rng.gamma(4.0, [0.02, 0.02, 0.25, 0.1], (N, 4))
    data = edp.Responses.from_arrays(
        rng.normal(100.0, 1.0, N) + contribution.sum(axis=1),
        contribution=contribution,
        individual=["ann", "bob", "cat", "dan"],
        additive=True,
    )
    options = {
        "epsilon": [0.1, 0.3],
        "model": edp.FiniteMixture(),
        "draws": 100,
        "random_seed": 1,
        "progressbar": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = edp.audit(data, adversary=edp.Adversary(own=True), **options)
        given = {
            who: edp.audit(data, adversary=edp.Adversary(insiders=[who]), **options)
            for who in data.individual
        }
    limits = {
        who: float(upper_limit(audit.delta.to_numpy().reshape(-1, 2), 0.95).sum())
        for who, audit in given.items()
    }
    assert found.own == max(limits, key=limits.__getitem__) == "dan"
    xr.testing.assert_equal(found.delta, given["dan"].delta)
    check = found.checks.loc["own contribution"]
    assert bool(check["passed"])
    assert "'dan' contributed themselves; against 'cat'" in check["sentence"]
    assert found.against == "a person who knows what they contributed themselves"
    with pytest.raises(edp.InvalidInputError, match="an audit tells which"):
        edp.noise.calibrate(data, epsilon=1.0, adversary=edp.Adversary(own=True))


def test_what_is_known_anyway_tells_nothing_of_the_own_contribution():
    """A contribution that follows the trend tells most only of those who do not know the trend."""
    data, time = responses_of(), np.arange(N)
    c = data.contribution.toarray()
    c[:, 0] = 0.2 * time
    c[:, 1] *= 5.0
    data = edp.Responses.from_arrays(data.response + c.sum(axis=1), contribution=c, additive=True)
    assert edp.Adversary(own=True).given(data).insiders == (0,)
    assert edp.Adversary(own=True, trend=True).given(data).insiders == (1,)


def test_another_who_knows_their_own_contribution_is_named_where_they_are_worse():
    data = responses_of()
    grid, upper = np.array([0.1, 0.5]), np.array([0.04, 0.02])
    (check,) = check_own(data, (2, 4), epsilon=grid, upper=upper, other=[0.04, 0.05]).checks
    assert not check.passed
    assert check.statistic == pytest.approx(2.5)
    assert "larger against 4" in check.sentence
    assert "at most" not in check.sentence
    hidden = check.sentence.naming(lambda label: f"<{label}>")
    assert "against <4>" in hidden
    assert "individual <2>" in hidden


def twice(database=DAYS):
    """Return a table with two columns of one name."""
    return pd.DataFrame(np.zeros((N, 2)), columns=["x", "x"], index=pd.Index(database, name="week"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"past": 100}, "after the lags 0 are left for 100 regressors"),
        ({"past": 47}, "after the lags 1 are left"),
        ({"covariates": twice()}, "covariate column labels must be distinct, found 'x' 2 times"),
    ],
)
def test_more_than_the_databases_allow_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        edp.Adversary(**options).given(responses_of())


def test_numbers_out_of_their_range_say_which():
    with pytest.raises(InvalidInputError, match="past must be at least 0, found -1"):
        edp.Adversary(past=-1)
    with pytest.raises(InvalidInputError, match="at least 0 and less than 1, found 1"):
        edp.Adversary(insiders=1.0)


def test_who_knows_their_own_contribution_is_not_asked_for():
    data = responses_of()
    own = edp.Adversary(own=True)
    (who,) = own.given(data).insiders
    with pytest.raises(InvalidInputError, match=f"individual {who} knows their own contribution"):
        edp.audit(data, epsilon=[0.1], adversary=own, individuals=[who], progressbar=False)


def test_an_insider_who_makes_up_most_of_an_answer_may_stand_beside_a_scale():
    # less what they contributed twice no answer would have a logarithm
    rng = np.random.default_rng(4)
    contribution = np.column_stack([rng.uniform(6.0, 7.0, N), rng.gamma(4.0, 0.05, (N, 3))])
    rest = rng.uniform(2.0, 4.0, N)
    data = edp.Responses.from_arrays(
        rest + contribution.sum(axis=1), contribution=contribution, database=DAYS, additive=True,
        transform="log",
    )  # fmt: skip
    known = edp.Adversary(past=1, insiders=[0]).given(data)
    np.testing.assert_allclose(
        known.responses.response, np.log(rest + contribution[:, 1:].sum(axis=1))[1:]
    )
    assert known.insiders == (0,)
