"""An adversary whose past is what was published of earlier answers: rounded, binned, suppressed."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.adversary.pasts import pasts_of
from edp_bayes.cli import main
from edp_bayes.cli.answering import CODES, severity
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.coupling.views.unseen_past import PastCoupling, given_in_full
from edp_bayes.distributions.published import Published
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.releases.how_many import releases_until

N = 80
OPTIONS = {"epsilon": [0.1, 0.5], "draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}
FEW = {**OPTIONS, "draws": 10}  # for what takes time in proportion
COARSE = {"rounded_to": 4.0}


def responses_of(seed=3, spread=0.6, count=N, **options):
    """Return answers that hang on to the last one, with five individuals in them."""
    rng = np.random.default_rng(seed)
    level = np.zeros(count)
    for t in range(1, count):
        level[t] = 0.9 * level[t - 1] + spread * rng.normal()
    contribution = rng.gamma(4.0, 0.05, (count, 5))
    return edp.Responses.from_arrays(
        50.0 + level + contribution.sum(axis=1), contribution=contribution,
        database=np.arange("2020-01-06", "2024-01-01", 7, dtype="M8[D]")[:count], additive=True,
        **options,
    )  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_an_answer_lies_in_the_interval_that_is_published_of_it(seed, step, offset):
    y = np.random.default_rng(seed).normal(0.0, 20.0, 50)
    low, high = Published.of(rounded_to=step, offset=offset).intervals(y)
    assert (low <= y + 1e-9).all()
    assert (y < high + 1e-9).all()
    whole = (0.5 * (low + high) - offset) / step
    np.testing.assert_allclose(whole, np.round(whole), atol=1e-6)
    np.testing.assert_allclose(high - low, step, rtol=1e-6)


def test_intervals_have_no_end_where_none_is_published():
    y = np.array([1.0, 2.0, 6.0, 11.0, 30.0])
    low, high = Published.of(bins=[5.0, 10.0, 20.0]).intervals(y)
    np.testing.assert_array_equal(low, [-np.inf, -np.inf, 5.0, 10.0, 20.0])
    np.testing.assert_array_equal(high, [5.0, 5.0, 10.0, 20.0, np.inf])
    low, high = Published.of(threshold=8.0).intervals(y)
    np.testing.assert_array_equal(low, [-np.inf, -np.inf, -np.inf, 11.0, 30.0])
    np.testing.assert_array_equal(high, [8.0, 8.0, 8.0, 11.0, 30.0])


def test_what_was_published_is_said_in_words():
    binned, hidden = Published.of(bins=[5.0, 10.0]), Published.of(threshold=8.0)
    assert [binned.said_of(y) for y in (1.0, 7.0, 11.0)] == [
        "below 5",
        "from 5 to 10",
        "10 or more",
    ]
    assert [hidden.said_of(y) for y in (7.5, 8.5)] == ["suppressed", "8.5"]


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans(), st.sampled_from(["t", "r", "b"])
)
def test_a_past_may_be_what_would_have_been_published_alike(seed, past, around, kind):
    rng = np.random.default_rng(seed)
    y = rng.normal(0.0, 2.0, 40)
    rule = {"t": {"threshold": 0.5}, "r": {"rounded_to": 3.0}, "b": {"bins": [-1.0, 1.0]}}[kind]
    low, high = Published.of(**rule).intervals(y)
    others = rng.normal(size=(40, 2)) if around else np.empty((40, 0))
    found = pasts_of(y, low, high, others, past=past, row=None).answers
    real = y[::-1][:past]
    assert (np.abs(found - real).max(axis=1) < 1e-9).any()
    for lag in range(past):
        at = y.size - 1 - lag
        if low[at] == high[at]:
            np.testing.assert_array_equal(found[:, lag], y[at])
        else:
            assert (found[:, lag] >= low[at] - 1e-9).all()
            assert (found[:, lag] < high[at] + 1e-9).all()
    if not around and (past == 1 or kind != "t"):
        windows = np.arange(past, 41)[:, None] - np.arange(1, past + 1)
        alike = (low[windows] == low[windows[-1]]).all(axis=1)
        assert len(found) == alike.sum()


def test_what_else_is_known_narrows_what_the_past_may_have_been():
    rng = np.random.default_rng(1)
    season = np.tile([-5.0, 5.0], 30)
    y = season + rng.normal(0.0, 1.0, 60)
    low, high = np.full(60, -np.inf), np.full(60, 20.0)
    blind, aware = (
        pasts_of(y, low, high, around, past=1, row=None).answers
        for around in (np.empty((60, 0)), season[:, None])
    )
    assert blind.std() > 4.0
    # the last answer was one of the high ones
    assert aware.std() == pytest.approx(1.0, abs=0.3)
    assert aware.mean() == pytest.approx(5.0, abs=0.5)


def test_lags_are_the_answers_and_the_past_what_they_may_have_been():
    data = responses_of()
    known = edp.Adversary(past=2, past_published=COARSE).given(data)
    y = data.response
    np.testing.assert_allclose(known.design, np.stack([y[1:-1], y[:-2]], 1) - y.mean())
    np.testing.assert_allclose(known.target, known.pasts.mean - y.mean())
    last = 4.0 * np.round(y[[-1, -2]] / 4.0)
    assert (np.abs(known.pasts.answers - last) <= 2.0 + 1e-9).all()
    assert known.last_published == tuple(f"{value:g}" for value in last)
    np.testing.assert_array_equal(known.responses.response, y[2:])


def test_a_past_that_was_published_in_full_is_a_number():
    data = responses_of()
    low = float(data.response[-1]) - 0.1
    known = edp.Adversary(past=1, past_published={"threshold": low}).given(data)
    whole = edp.Adversary(past=1).given(data)
    assert known.pasts is None
    np.testing.assert_array_equal(known.target, whole.target)
    np.testing.assert_array_equal(known.design, whole.design)


def test_of_a_database_that_was_seen_the_past_is_that_before_it():
    data = responses_of()
    at = data.database[10]
    known = edp.Adversary(past=1, past_published=COARSE).given(data, at=at)
    last = 4.0 * np.round(data.response[9] / 4.0)
    assert known.last_published == (f"{last:g}",)
    assert (np.abs(known.pasts.answers - last) <= 2.0 + 1e-9).all()


def test_what_insiders_contributed_is_subtracted_from_what_was_published():
    data = responses_of()
    known = edp.Adversary(past=1, past_published=COARSE, insiders=[0]).given(data)
    told = data.contribution[:, [0]].toarray().ravel()
    rest = data.response - told
    np.testing.assert_allclose(np.ravel(known.design), rest[:-1] - rest.mean())
    last = 4.0 * np.round(data.response[-1] / 4.0) - told[-1]
    assert (np.abs(known.pasts.answers - last) <= 2.0 + 1e-9).all()


def test_where_the_spread_changes_the_past_is_known_in_full():
    known = edp.Adversary(past=1, past_published=COARSE, changing_scale=True).given(responses_of())
    assert known.pasts is None
    assert known.last_published


@cache
def some_coupling():
    """Return a mixture model's coupling of five individuals."""
    data = responses_of(count=40)
    fitted = edp.FiniteMixture(components=2).fit(
        data, SamplerSettings(draws=40, tune=100, chains=2, random_seed=1, progressbar=False)
    )
    return fitted.coupling


def test_the_risk_is_that_of_densities_mixed_over_the_past():
    epsilon, people = np.array([0.1, 0.5]), np.arange(5)
    known = some_coupling()
    rng = np.random.default_rng(2)
    effect = np.tile(rng.uniform(-2.0, 2.0, 60), (known.n_draws, 1))
    spread = float(np.sqrt(known.mixture.variance()).mean())
    few = [
        PastCoupling.of(known, effect, np.arange(60), spread, np.random.default_rng(seed))
        for seed in range(8)
    ]
    found = np.mean([one.curves(people, epsilon) for one in few], axis=0)
    whole = known.curves(people, epsilon)
    assert (found <= whole * (1.0 + 1e-9)).all()
    for person in people:
        p, q = known.pair(int(person))
        mixed = []
        for part in (p, q):
            size = part.weights.shape[-1]
            mixed.append(
                edp.Mixture(
                    np.repeat(part.weights, 60, axis=-1) / 60.0,
                    np.repeat(part.locations, 60, axis=-1) + np.tile(effect[0], size),
                    np.repeat(part.scales, 60, axis=-1),
                )
            )
        exact = np.maximum(
            edp.hockey_stick(mixed[0], mixed[1], epsilon=epsilon),
            edp.hockey_stick(mixed[1], mixed[0], epsilon=epsilon),
        ).reshape(-1, 2)
        mean, least = found[:, person].mean(axis=0), exact.mean(axis=0)
        # on the safe side on average, and not far from it
        assert (mean > 0.99 * least).all()
        assert (mean < 1.25 * least + 0.002).all()
        assert (least < 0.95 * whole[:, person].mean(axis=0)).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 5.0), st.integers(2, 30))
@settings(max_examples=10, deadline=None)
def test_a_past_that_is_not_known_never_adds_to_the_risk(seed, width, pasts):
    known = some_coupling()
    rng = np.random.default_rng(seed)
    effect = rng.normal(0.0, width, (known.n_draws, pasts))
    mixed = PastCoupling.of(known, effect, np.sort(rng.integers(0, 3, pasts)), 1.0, rng)
    people, epsilon = np.arange(5), np.array([0.0, 0.2, 1.0])
    weight = mixed.mixture.weights.sum(axis=-1)
    np.testing.assert_allclose(weight, 1.0)
    found, whole = mixed.curves(people, epsilon), known.curves(people, epsilon)
    assert (found <= whole + 1e-12).all()
    rows = np.arange(0, known.n_draws, 3)
    np.testing.assert_allclose(
        pick(mixed, rows).curves(people, epsilon), found[rows], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        taken(mixed, people[1:3]).curves(np.arange(2), epsilon),
        found[:, 1:3],
        rtol=1e-9,
        atol=1e-12,
    )


HELD, EPSILONS = 0.9, np.array([0.1, 0.5])  # of the last answer, in the next one


def true_risk(low, high):
    """Return delta of a contribution of one by integration, the last answer between two ends."""
    deviation = 1.0 / np.sqrt(1.0 - HELD**2)
    past = np.linspace(max(low, -8.0 * deviation), min(high, 8.0 * deviation), 801)
    weight = np.exp(-0.5 * (past / deviation) ** 2)
    x = np.linspace(-8.0 * deviation - 8.0, 8.0 * deviation + 8.0, 6001)

    def density(at):
        away = at[:, None] - HELD * past
        return np.exp(-0.5 * away**2) @ weight / weight.sum() / np.sqrt(2.0 * np.pi)

    p, q = density(x), density(x + 1.0)
    each = [
        max(np.maximum(p - growth * q, 0.0).sum(), np.maximum(q - growth * p, 0.0).sum())
        for growth in np.exp(EPSILONS)
    ]
    return np.array(each) * (x[1] - x[0])


@pytest.mark.parametrize(
    ("rule", "value", "low", "high"),
    [
        pytest.param({"threshold": 0.0}, "suppressed", -np.inf, 0.0, marks=pytest.mark.full),
        pytest.param({"threshold": 0.0}, "published", 0.7, 0.7, marks=pytest.mark.full),
        ({"rounded_to": 6.0}, "0", -3.0, 3.0),
        pytest.param({"bins": [1.0]}, "1 or more", 1.0, np.inf, marks=pytest.mark.full),
    ],
)
def test_the_limit_covers_the_risk_after_what_was_published_last(rule, value, low, high):
    """Given a past of released answers, an interval or a number, each has a risk of its own."""
    truth, published = true_risk(low, high), Published.of(**rule)
    limits, medians = [], []
    rng = np.random.default_rng(4)
    while len(limits) < 6:
        y = np.zeros(130)
        for t in range(1, 130):
            y[t] = HELD * y[t - 1] + rng.normal()
        y = y[50:]
        said = published.said_of(float(y[-1]))
        if said != value and (value != "published" or said == "suppressed"):
            continue
        data = edp.Responses.from_arrays(
            y, contribution=np.ones((80, 1)), database=np.arange(80), additive=True
        )
        found = edp.audit(
            data, adversary=edp.Adversary(past=1, past_published=rule), epsilon=EPSILONS,
            model=edp.FiniteMixture(components=1), draws=150, tune=200, chains=2,
            random_seed=len(limits), progressbar=False, keep_parameters=False,
        )  # fmt: skip
        limits.append(found.upper("delta").to_numpy())
        medians.append(found.delta.median(("chain", "draw")).to_numpy())
    assert (np.array(limits) >= truth).all(axis=1).sum() >= 5
    if low < high:  # most of what the interval hides is hidden
        most = 0.5 * (truth + true_risk(0.0, 0.0))
        assert (np.median(medians, axis=0) < most).all()


@pytest.mark.full
def test_less_of_the_past_hides_more():
    data = responses_of()
    middle = [
        edp.audit(data, adversary=adversary, **{**OPTIONS, "draws": 100}).delta.median().item()
        for adversary in (
            edp.Adversary(past=1),
            edp.Adversary(past=1, past_published={"rounded_to": 0.01}),
            edp.Adversary(past=1, past_published=COARSE),
            None,
        )
    ]
    assert middle[1] == pytest.approx(middle[0], rel=0.1)
    assert middle[3] < middle[2] < 0.8 * middle[0]


@pytest.mark.full
def test_the_result_says_what_was_seen():
    adversary = edp.Adversary(past=2, past_published={"rounded_to": 5, "threshold": 40})
    assert adversary.words == (
        "a person who has seen the last 2 releases as published (rounded to 5, suppressed below "
        "40) and knows when each individual was last there"
    )
    found = edp.audit(responses_of(), adversary=adversary, **OPTIONS)
    assert found.settings["past_published"] == "rounded to 5, suppressed below 40"
    assert "as published" in found.settings["against"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"past_published": COARSE}, InvalidInputError, "none was seen: give past"),
        ({"past": 1, "past_published": 5}, InputTypeError, "must be arguments of Audit.released"),
        (
            {"past": 1, "past_published": {"rounded_to": 5, "offset": "worst"}},
            InvalidInputError,
            "every answer has one value",
        ),
        ({"past": 1, "past_published": {"bins": [2, 1]}}, InvalidInputError, "increasing order"),
    ],
)
def test_what_was_not_published_so_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        edp.Adversary(**options)


def test_a_past_that_tells_nothing_is_refused():
    data = responses_of()
    with pytest.raises(InvalidInputError, match="published as the same value"):
        edp.Adversary(past=1, past_published={"threshold": 1e6}).given(data)
    scaled = responses_of(transform="log")
    with pytest.raises(InvalidInputError, match="leave out transform"):
        edp.Adversary(past=1, past_published=COARSE).given(scaled)
    joint = edp.Responses.join(data, responses_of(seed=4))
    with pytest.raises(InvalidInputError, match="a joint audit takes no past_published"):
        edp.Adversary(past=1, past_published=COARSE).given(joint)


def test_only_what_was_published_is_composed():
    data = responses_of()
    audit = edp.audit(data, adversary=edp.Adversary(past=1, past_published=COARSE), **OPTIONS)
    with pytest.raises(InvalidInputError, match="here more is released each time"):
        edp.compose(audit, databases=2, progressbar=False)
    with pytest.raises(InvalidInputError, match="here more is released each time"):
        releases_until(audit, epsilon=0.5, delta=0.1, progressbar=False)
    alone = edp.compose(audit, databases=1, progressbar=False)
    np.testing.assert_allclose(alone.delta, audit.delta)


@pytest.mark.full
def test_releases_to_come_are_as_risky_as_after_a_past_that_is_known_in_full():
    data = responses_of()
    adversary = edp.Adversary(past=1, past_published=COARSE)
    audit = edp.audit(data, adversary=adversary, **FEW)
    fit = audit.source.coupling
    assert isinstance(fit, PastCoupling)
    assert given_in_full(fit) is fit.known
    published = audit.released(**COARSE)
    assert given_in_full(published.source.coupling) is fit.known
    both = edp.compose(published, databases=2, progressbar=False)
    people = np.arange(data.n_individuals)
    one = fit.known.curves(people, both.epsilon.to_numpy()).max(axis=1).reshape(both.delta.shape)
    assert (both.delta.to_numpy() >= one - 1e-9).all()
    assert (one >= published.delta.to_numpy() - 1e-12).all()
    assert (one > published.delta.to_numpy() + 1e-6).mean() > 0.9
    # what holds of whole answers from below need not of what is published of them
    assert not both.band("delta", prob=0.9)["lower"].any()
    # what was published last is no part of what is said of the releases after it
    assert "it was" in audit.against
    assert both.against == adversary.words


@pytest.mark.full
def test_suppressed_counts_are_composed_by_the_threshold_that_was_asked_for():
    rng = np.random.default_rng(1)
    present = rng.random((60, 12)) < 0.5
    data = edp.Responses.from_arrays(
        present.sum(axis=1).astype(float), contribution=present.astype(float), step=1.0
    )
    rule = {"threshold": 6.0}
    audit = edp.audit(
        data, adversary=edp.Adversary(past=1, past_published=rule),
        model=edp.FiniteMixture(components=1), **FEW,
    )  # fmt: skip
    published = audit.released(**rule, progressbar=False)
    # counts are suppressed from 5.5 down, and the rule is what was asked for
    assert published.settings["released"]["words"] == "suppressed below 6"
    both = edp.compose(published, databases=2, progressbar=False)
    assert (both.delta.mean("draw") >= published.delta.mean("draw")).all()


def test_people_whose_contributions_are_bounded_stay_so():
    known = some_coupling()
    effect = np.tile(np.linspace(-2.0, 2.0, 20), (known.n_draws, 1))
    mixed = PastCoupling.of(known, effect, np.arange(20), 1.0, np.random.default_rng(1))
    epsilon, people = np.array([0.1, 0.5]), np.arange(5)
    exact, bounded = mixed.curves(people, epsilon), mixed.bounded(epsilon, 0.9)
    found = bounded.curves(people, epsilon)
    above = (exact > bounded.floor[:, None]).any(axis=2)
    assert above.any()
    assert not above.all()
    np.testing.assert_allclose(found[above], exact[above], rtol=1e-9)
    assert (found >= exact - 1e-12).all()


@pytest.mark.full
def test_cells_are_published_as_their_table_is(tmp_path):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(np.arange(40), 40), "who": np.tile(np.arange(40), 40),
        "region": np.tile(np.repeat(["north", "south"], 20), 40),
    })[rng.random(1600) < 0.5]  # fmt: skip
    rows = pd.concat([rows, pd.DataFrame({"week": range(40), "who": 99, "region": "isle"})])
    databases = edp.Databases.from_table(rows, database="week", individual="who")
    options = {"by": "region", "epsilon": [0.1], "model": edp.FiniteMixture(components=2),
               "draws": 50, "tune": 50, "chains": 2, "random_seed": 1, "progressbar": False,
               "totals": False}  # fmt: skip
    store = tmp_path / "cells.jsonl"
    whole = edp.audit_cells(databases, edp.queries.Count(), store=store, **options)
    asked = {"published": {"rounded_to": 5, "threshold": 8}, **options}
    found = edp.audit_cells(databases, edp.queries.Count(), **asked)
    assert found.query == "count, rounded to 5, suppressed below 8"
    before, after = (one.table.set_index("region") for one in (whole, found))
    for name in ("north", "south"):
        assert after.loc[name, "median"] < before.loc[name, "median"]
        assert after.loc[name, "limit"] <= before.loc[name, "limit"]
    assert before.loc["isle", "status"] == "revealed exactly"
    # one individual is always suppressed
    assert after.loc["isle", "status"] == "no audit"
    assert "is the same in all databases" in after.loc["isle", "sentence"]
    with pytest.raises(InvalidInputError, match="holds cells of other data"):
        edp.audit_cells(databases, edp.queries.Count(), store=store, **asked)
    with pytest.raises(InvalidInputError, match="every answer has one value"):
        edp.audit_cells(
            databases, edp.queries.Count(), **options,
            published={"rounded_to": 5, "offset": "worst"},
        )  # fmt: skip


@pytest.mark.full
def test_the_command_line_takes_the_past_as_published(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(pd.date_range("2023-01-02", periods=40, freq="7D"), 40),
        "who": np.tile(np.arange(40), 40),
        "region": np.tile(np.repeat(["north", "south"], 20), 40),
    })[rng.random(1600) < 0.5]  # fmt: skip
    rows.to_csv(tmp_path / "visits.csv", index=False)
    words = "--database week --individual who --query count --seed 1 --draws 10 --chains 2"
    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), "--model", "finite:2"]
    asked += ["--tune", "50", "--epsilon", "0.1", "--past-published", "--out", str(tmp_path / "a")]
    assert main(asked) == 2
    assert "give --rounded-to" in capsys.readouterr().err
    rounded = ["--rounded-to", "5", "--threshold", "8"]
    assert main([*asked, *rounded, "--no-past"]) == 2
    assert "none was seen: give --past" in capsys.readouterr().err
    assert main([*asked, *rounded, "--past", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "has seen the last release as published (rounded to 5, suppressed below 8; it was" in said
    )
    assert main([*asked, *rounded, "--past", "1", "--by", "region"]) == 0
    table = pd.read_csv(tmp_path / "a" / "cells.csv")
    assert set(table["region"]) == {"(all)", "north", "south"}
    assert "has seen the last release as published" in table.loc[0, "sentence"]


@pytest.mark.full
def test_what_is_published_is_what_everything_is_of(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(pd.date_range("2023-01-02", periods=40, freq="7D"), 30),
        "who": np.tile(np.arange(30), 40),
    })[rng.random(1200) < 0.5]  # fmt: skip
    rows.to_csv(tmp_path / "visits.csv", index=False)
    out = tmp_path / "out"
    words = "--database week --individual who --query count --seed 1 --draws 10 --chains 2"
    more = "--model finite:2 --tune 50 --epsilon 0.1 --target 0.1:0.9 --past 1 --past-published"
    rest = "--rounded-to 5 --threshold 8 --databases 2 --check"
    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), *more.split(), *rest.split()]
    files = ["--json", str(out / "v.json"), "--report", str(out / "r.html"), "--out", str(out)]
    code = main([*asked, *files])
    said = capsys.readouterr().out
    rule = "the answer rounded to 5, suppressed below 8"
    first = said[said.index("The answer rounded to 5") :].split("Failed")[0].split(chr(10))
    record = json.loads((out / "v.json").read_text(encoding="utf-8"))
    year = edp.load(out / "releases.nc")
    assert "rounded to 5" in year.settings["query"]
    one = edp.load(out / "published.nc").verdict(epsilon=0.1, delta=0.9)
    page = " ".join((out / "r.html").read_text(encoding="utf-8").split())
    if one.status != "not established":
        assert rule in one.claim
        assert one.claim in " ".join(" ".join(first).split())
        assert one.claim in page
    worst = max((one, year.verdict(epsilon=0.1, delta=0.9)), key=lambda v: severity(v.status))
    assert record["verdict"]["status"] == worst.status
    assert code == CODES[worst.status]
    assert said.index("The answer rounded to 5") < said.index("The whole answer.")


@pytest.mark.full
def test_cells_together_are_audited_against_all_of_the_past():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({
        "week": np.repeat(np.arange(40), 20), "who": np.tile(np.arange(20), 40),
        "region": np.tile(np.repeat(["north", "south"], 10), 40),
    })[rng.random(800) < 0.5]  # fmt: skip
    rows = pd.concat([rows, rows[rows["who"] == 0].assign(region="south")])
    found = edp.audit_cells(
        edp.Databases.from_table(rows, database="week", individual="who"), edp.queries.Count(),
        by="region", epsilon=[0.1], model=edp.FiniteMixture(components=2), totals=False,
        adversary=edp.Adversary(past=1, past_published={"rounded_to": 5}), draws=50, tune=50,
        chains=2, random_seed=1, progressbar=False,
    )  # fmt: skip
    assert "no audit" not in found.statuses


@pytest.mark.full
def test_releases_against_different_adversaries_name_them():
    few = {**FEW, "epsilon": [0.5]}
    data = responses_of(spread=0.3)
    one = edp.audit(data, **few)
    other = edp.audit(data, adversary=edp.Adversary(past=1), **few)
    both = edp.compose([one, other], fresh=True, progressbar=False)
    assert (
        "knows nothing but the distribution of the response; a person who has seen"
        in (both.settings["against"])
    )
    assert "no database" not in both.describe()
