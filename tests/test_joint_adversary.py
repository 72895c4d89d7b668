"""Several queries against an adversary: what they know, what is refused, and what an audit says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.coupling.contributions.adjustment import adjust
from edp_bayes.coupling.contributions.pooling import presence_in_question
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.joint_regression import joint_regression_on
from edp_bayes.report.describing import describe
from edp_bayes.responses.dependence import linear_dependence
from edp_bayes.results.past import past_of

N = 60
DAYS = np.arange("2020-01-06", "2021-12-01", 7, dtype="M8[D]")[:N]
QUICK = {"random_seed": 1, "progressbar": False}
FEW = {"draws": 100, "chains": 4, "tune": 300, "keep": 3, **QUICK}
MODEL = edp.FiniteMixture(components=1, thin=5)


def of(response, contribution, query, **options):
    options = {"database": DAYS, "additive": True, **options}
    return edp.Responses.from_arrays(response, contribution=contribution, query=query, **options)


def shop(seed=1, people=4, **options):
    """Return revenue and orders of a shop whose weeks follow each other."""
    rng = np.random.default_rng(seed)
    price, count = rng.gamma(4.0, 0.25, (N, people)), 1.0 + rng.poisson(1.0, (N, people))
    total = np.zeros(N)
    for t in range(1, N):
        total[t] = 0.7 * total[t - 1] + rng.normal(0.0, 4.0)
    revenue = of(50.0 + total + price.sum(axis=1), price, "revenue", **options)
    others = 0.5 * total + rng.normal(0.0, 2.0, N)
    return revenue, of(90.0 + others + count.sum(axis=1), count, "orders", **options)


def joined(*parts):
    return edp.Responses.join(*(parts or shop()))


def known_of(responses, at=None, **known):
    return edp.Adversary(**known).given(responses, at=at)


# What is known


def test_the_past_is_that_of_all_queries():
    both = joined()
    known = known_of(both, past=2, trend=True)
    y = both.response
    assert known.names == [*(f"lag {k} of {q}" for k in (1, 2) for q in both.names), "trend"]
    middle = np.tile(y.mean(axis=0), 2)
    lags = np.concatenate([y[1:-1], y[:-2]], axis=1) - middle
    np.testing.assert_allclose(known.design[:, :4], lags)
    np.testing.assert_allclose(known.target[:4], np.concatenate([y[-1], y[-2]]) - middle)
    np.testing.assert_array_equal(known.responses.database, DAYS[2:])
    single = edp.Adversary(trend=True, past=2).given(both.parts[0])
    np.testing.assert_array_equal(known.design[:, 4], single.design[:, 2])
    assert known_of(both, past=1, at=DAYS[9]).row == 8


def test_covariates_and_further_queries_are_known_once():
    values = np.random.default_rng(3).normal(size=N + 1)
    known = known_of(joined(), covariates={"warm": values}, knows=values[::-1] ** 2)
    assert known.names == ["warm", "knows"]
    assert not known.warnings


def test_insiders_are_subtracted_from_every_sum():
    both = joined()
    known = known_of(both, past=1, insiders=[0, 3])
    told = both.response - sum(
        np.stack([part.contribution_of(i) for part in both.parts], axis=1) for i in (0, 3)
    )
    np.testing.assert_allclose(known.responses.response, told[1:])
    np.testing.assert_allclose(known.design[0], told[0] - told.mean(axis=0))
    assert known.responses.individual.tolist() == [1, 2]


def test_what_insiders_know_of_a_mean_is_a_covariate_of_all_queries():
    rng = np.random.default_rng(1)
    week, person = np.repeat(np.arange(N), 10), np.tile(np.arange(10), N)
    table = pd.DataFrame({"week": week, "person": person, "x": rng.gamma(2.0, size=10 * N)})
    databases = edp.Databases.from_table(table, database="week", individual="person")
    parts = [databases.respond(query) for query in (edp.queries.Sum("x"), edp.queries.Mean("x"))]
    half = parts[1].replaced(response=parts[1].response + rng.normal(size=N))
    known = known_of(edp.Responses.join(parts[0], half), insiders=[3, 7])
    assert len(known.names) == 1
    assert known.names[0].startswith("insiders' records, ")
    assert known.responses.n_individuals == 8


def test_regressors_are_counted_with_the_lags_of_all_queries():
    both = joined()
    with pytest.raises(InvalidInputError, match=r"40 are left for 40 regressors, at least 8 more"):
        known_of(both, past=20)
    edp.Adversary(past=20).given(both.parts[0])  # one query alone has room for them
    assert "15 regressors for 53 databases" in " ".join(known_of(both, past=7, trend=True).warnings)
    assert not known_of(both, past=2, trend=True).warnings


def test_lags_of_a_redundant_query_are_none():
    revenue, orders = shop()
    again = of(3.0 * revenue.response, 3.0 * revenue.contribution, "again")
    known = known_of(joined(revenue, again, orders), past=2)
    assert known.lagged == (0, 2)
    assert known.names == [f"lag {k} of {q}" for k in (1, 2) for q in ("revenue", "orders")]


def test_what_cannot_be_known_is_refused():
    both = joined()
    with pytest.raises(InvalidInputError, match=r"takes no own=True.* as insiders"):
        edp.audit(both, epsilon=0.1, adversary=edp.Adversary(own=True), **QUICK)
    with pytest.raises(InvalidInputError, match="at is the database in question of an adversary"):
        edp.audit(both, epsilon=0.1, at=DAYS[5], **QUICK)
    with pytest.raises(InputTypeError, match="adversary must be an Adversary"):
        edp.audit(both, epsilon=0.1, adversary="past", **QUICK)
    with pytest.raises(InvalidInputError, match="is an insider, whose risk is not audited"):
        edp.audit(
            both, epsilon=0.1, adversary=edp.Adversary(insiders=[1]), individuals=[1], **QUICK
        )
    with pytest.raises(InvalidInputError, match="twin determines the answers to orders"):
        known_of(both, covariates={"twin": both.response[:, 1]})
    with pytest.raises(InvalidInputError, match="no form in several"):
        edp.audit(
            both,
            epsilon=0.1,
            model=edp.Stacked([edp.FiniteMixture(2), edp.FullPosterior()]),
            adversary=edp.Adversary(past=1),
            **QUICK,
        )


# What depends on each other, given what is known


@pytest.mark.full
def test_a_sum_that_follows_from_the_past_reveals_who_is_in_it():
    revenue, orders = shop()
    covariate = np.random.default_rng(5).normal(size=N)
    c = np.zeros((N, 4))
    c[:9, 2] = 1.5
    # the two differ by what is public, and in nine databases not without one individual
    public = of(revenue.response + 2.0 * covariate, revenue.contribution.toarray() + c, "public")
    three = joined(revenue, orders, public)
    assert linear_dependence(three).kept == (0, 1, 2)
    adversary = edp.Adversary(covariates={"z": covariate})
    regression = joint_regression_on(three, adversary)
    assert regression.dependence.kept == (0, 1)
    (found,) = regression.dependence.revealed
    assert (found.individual, found.databases) == (2, 9)
    said = " ".join(regression.dependence.warnings)
    assert "revenue - public follows from what the adversary knows in all databases" in said
    audit = edp.audit(
        three,
        epsilon=[0.1],
        model=MODEL,
        adversary=edp.Adversary(covariates={"z": covariate}),
        **FEW,
    )
    share = float(audit.individual_delta.sel(individual=2).median())
    assert 0.08 < share < 0.35
    assert audit.settings["redundant"] == ["public"]
    assert [text for text in audit.warnings if "revealed exactly" in text]


def test_responses_without_someone_may_follow_from_what_is_known():
    revenue, orders = shop()
    covariate = np.random.default_rng(6).normal(size=N)
    c = np.zeros((N, 4))
    c[:, 1] = np.random.default_rng(7).gamma(2.0, size=N)
    alone = of(covariate + revenue.response + c[:, 1], revenue.contribution.toarray() + c, "alone")
    three = joined(revenue, orders, alone)
    design = covariate[:, None]
    assert not linear_dependence(three).revealed
    (found,) = linear_dependence(three, design).revealed
    assert (found.individual, found.alone) == (1, True)


def test_lags_of_a_query_that_follows_from_what_is_known_are_covariates():
    revenue, orders = shop()
    covariate = np.random.default_rng(8).normal(size=N)
    public = of(revenue.response + covariate, revenue.contribution, "public")
    adversary = edp.Adversary(past=1, covariates={"z": covariate})
    regression = joint_regression_on(joined(revenue, orders, public), adversary)
    assert regression.dependence.kept == (0, 1)
    assert regression.deviation.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert regression.design[:, 2].std() == pytest.approx(1.0)
    assert np.isfinite(regression.mode[0]).all()


# Contributions at the database in question


def test_contributions_to_every_query_are_referred():
    rng = np.random.default_rng(9)
    season = np.sqrt(2.0) * np.cos(2 * np.pi * np.arange(N) / 12)
    price = 2.0 + 0.1 * rng.normal(size=(N, 20))
    count = 3.0 + 0.1 * rng.normal(size=(N, 20))
    price[:, :10] += 0.5 * season[:, None]
    y = rng.normal(100.0, 5.0, (N, 2))
    both = joined(of(y[:, 0], price, "price"), of(y[:, 1], count, "count"))
    found = adjust(both, season[:, None], np.array([np.sqrt(2.0)]), y)
    c = found.entries.value.reshape(20, N, 2)
    np.testing.assert_allclose(c[:10, :, 0].mean(axis=1), 2.0 + 0.5 * np.sqrt(2.0), atol=0.1)
    np.testing.assert_allclose(c[:10, :, 1].mean(axis=1), 3.0, atol=0.1)
    # each query as on its own, the uncertainty that of the worse of them
    alone = [adjust(p, season[:, None], np.array([np.sqrt(2.0)]), p.response) for p in both.parts]
    for part, other in zip(found.parts, alone, strict=True):
        np.testing.assert_allclose(part.contribution.toarray(), other.contribution.toarray())
    most = np.max([one.adjustment.variance for one in alone], axis=0)
    np.testing.assert_allclose(found.adjustment.variance, most)


@pytest.mark.full
@pytest.mark.parametrize("model", [MODEL, edp.SmoothedBootstrap()], ids=["mixture", "kernel"])
def test_presence_follows_how_many_are_there(model):
    rng = np.random.default_rng(10)
    chance = 0.7 * np.exp(-2.0 * np.arange(N) / N)
    there = (rng.random((N, 60)) < chance[:, None]).astype(float)
    y = rng.normal(100.0, 4.0, (N, 2)) + there.sum(axis=1)[:, None]
    both = joined(of(y[:, 0], there, "one"), of(y[:, 1], 2.0 * there, "two"))
    adversary = edp.Adversary(trend=True)
    found = edp.audit(both, epsilon=[0.1], model=model, adversary=adversary, **FEW)
    assert not any("usual odds" in text for text in found.warnings)
    regression = joint_regression_on(both, adversary)
    adjustment = regression.adjusted(*regression.mode).adjustment
    assert adjustment.odds < 0.6
    share = there.mean(axis=0)
    assert presence_in_question(share, adjustment.own_odds).mean() < 0.8 * share.mean()


# What an audit says


@pytest.fixture(scope="module", params=[MODEL, edp.SmoothedBootstrap()], ids=["mixture", "kernel"])
def audit(request):
    return edp.audit(
        joined(),
        epsilon=[0.1, 0.5],
        model=request.param,
        adversary=edp.Adversary(past=1, trend=True),
        **FEW,
    )


@pytest.mark.full
def test_it_says_against_whom(audit):
    assert audit.against == (
        "a person who has seen the last release and knows the trend and when each individual was "
        "last there"
    )
    assert audit.settings["known"] == ["lag 1 of revenue", "lag 1 of orders", "trend"]
    assert audit.settings["at"] == "the next database"
    assert audit.summary().attrs["against"] == audit.against
    assert f"against {audit.against}" in repr(audit)
    assert audit.withheld is None


@pytest.mark.full
def test_given_the_past_the_risk_is_larger(audit):
    model = MODEL if "Finite" in audit.settings["model"] else edp.SmoothedBootstrap()
    plain = edp.audit(joined(), epsilon=[0.1, 0.5], model=model, **FEW)
    assert (audit.delta.median(("chain", "draw")) > plain.delta.median(("chain", "draw"))).all()
    # the series depends on itself, which without an adversary establishes nothing
    assert "adversary=Adversary(past=2, trend=True)" in plain.withheld
    assert "revenue: " in plain.withheld


def test_checks_look_at_the_residuals_of_each_query(audit):
    said = audit.checks["sentence"]
    names = ("lag-1 autocorrelation", "Ljung-Box", "trend", "halves, spread")
    assert all(said[name].startswith(("revenue: ", "orders: ")) for name in names)
    assert audit.checks.loc[list(names), "passed"].all()


@pytest.mark.full
def test_it_is_saved_loaded_and_reported(audit, tmp_path):
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert isinstance(again, edp.JointAudit)
    assert again.against == audit.against
    assert again.summary().equals(audit.summary())
    assert again.tree["known"]["coefficients"].dims == ("chain", "draw", "term", "query")
    text = again.report(tmp_path / "audit.html").read_text()
    assert audit.against in text
    assert "answer to revenue" in text
    assert "answer to orders" in text
    seen = describe(audit).seen
    assert [one.query for one in seen] == ["revenue", "orders"]
    hidden = audit.with_pseudonyms(key="a key of sixteen")
    names = hidden.individual_delta["individual"]
    assert np.array_equal(hidden.tree["in_question"]["individual"], names)


@pytest.mark.parametrize("query", ["revenue", "orders"])
def test_the_past_of_every_query_is_as_expected(audit, query):
    column = ["revenue", "orders"].index(query)
    past = past_of(audit, (0.9,), query)
    y = joined().response[:, column]
    np.testing.assert_array_equal(past.seen, y)
    low, high = past.interval(0.9)
    inside = (low.to_numpy()[:-1] <= y[1:]) & (y[1:] <= high.to_numpy()[:-1])
    assert inside.mean() >= 0.8
    # what was expected follows the past, and is no wider than the kernel makes it
    x = np.column_stack([np.ones(N - 1), joined().response[:-1], np.arange(1, N)])
    fitted = x @ np.linalg.lstsq(x, y[1:], rcond=None)[0]
    assert np.corrcoef(past.median.to_numpy()[:-1], fitted)[0, 1] > 0.95
    assert past.median.to_numpy()[:-1].mean() == pytest.approx(y.mean(), abs=0.3 * y.std())
    held = audit.tree["in_question"].to_dataset().sel(query=query).isel(individual=0)
    step = np.diff(held["place"].to_numpy())[0]
    for name in ("density_with", "density_without"):
        assert float(held[name].sum()) * step == pytest.approx(1.0, abs=0.01)
    middle = float((held["place"] * held["density_with"]).sum()) * step
    assert middle == pytest.approx(float(past.median[-1]), abs=0.3 * y.std())
    assert type(audit.plot_past(query=query, backend="none")).__name__ == "PlotCollection"


def test_the_past_is_asked_for_by_query(audit):
    assert past_of(audit, (0.9,)).seen.identical(past_of(audit, (0.9,), "revenue").seen)
    with pytest.raises(InvalidInputError, match="one of revenue, orders, found 'sum'"):
        past_of(audit, (0.9,), "sum")


@pytest.mark.full
def test_known_noise_is_in_the_risk_and_not_in_the_past():
    noise = edp.GaussianNoise(20.0)
    noisy = joined(*(part.replaced(noise=noise) for part in shop()))
    adversary = edp.Adversary(past=1)
    plain, hidden = (
        edp.audit(data, epsilon=[0.1], model=MODEL, adversary=adversary, **FEW)
        for data in (joined(), noisy)
    )
    assert float(hidden.delta.median()) < 0.3 * float(plain.delta.median())
    one, other = (past_of(found, (0.9,)).interval(0.9) for found in (plain, hidden))
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.full
def test_the_database_in_question_and_a_changing_scale():
    found = edp.audit(
        joined(),
        epsilon=[0.1],
        model=MODEL,
        adversary=edp.Adversary(past=1, trend=True, changing_scale=True, insiders=[2]),
        at=DAYS[20],
        individuals=[0],
        **FEW,
    )
    assert found.settings["at"] == str(DAYS[20])
    assert found.settings["known"][-1] == "changing scale"
    assert found.less_insiders
    assert "2" not in found.individuals["individual"].to_numpy().astype(str)
    assert past_of(found, (0.9,), "orders").at == 19
    text = " ".join(describe(found, names=True).assumptions)
    assert "subtracted from every answer" in text


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers(audit):
    again = edp.audit(
        joined(),
        epsilon=[0.1, 0.5],
        model=MODEL if "Finite" in audit.settings["model"] else edp.SmoothedBootstrap(),
        adversary=edp.Adversary(past=1, trend=True),
        cores=1,
        **FEW,
    )
    assert np.array_equal(again.delta, audit.delta)
