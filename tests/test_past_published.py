"""An adversary whose past is what was published of earlier answers: rounded, binned, suppressed."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.auditing.releases import releases_until
from edp_bayes.cli import main
from edp_bayes.cli.answering import CODES, severity
from edp_bayes.distributions.published import Published
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError

N = 80
OPTIONS = {"epsilon": [0.1, 0.5], "draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}
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
def test_a_rounded_answer_is_the_nearest_value_of_its_grid(seed, step, offset):
    y = np.random.default_rng(seed).normal(0.0, 20.0, 50)
    seen = Published.of(rounded_to=step, offset=offset).numbers(y)
    assert np.abs(seen - y).max() <= 0.5 * step * (1.0 + 1e-9)
    whole = (seen - offset) / step
    np.testing.assert_allclose(whole, np.round(whole), atol=1e-6)


def test_intervals_without_an_end_are_the_mean_of_the_answers_in_them():
    y = np.array([1.0, 2.0, 6.0, 11.0, 30.0, 50.0])
    np.testing.assert_allclose(
        Published.of(bins=[5.0, 10.0, 20.0]).numbers(y), [1.5, 1.5, 7.5, 15.0, 40.0, 40.0]
    )
    np.testing.assert_allclose(
        Published.of(threshold=8.0, rounded_to=5.0).numbers(y), [3.0, 3.0, 3.0, 10.0, 30.0, 50.0]
    )


def test_lags_are_what_was_published():
    data = responses_of()
    known = edp.Adversary(past=2, past_published=COARSE).given(data)
    seen = 4.0 * np.round(data.response / 4.0)
    np.testing.assert_allclose(known.design, np.stack([seen[1:-1], seen[:-2]], 1) - seen.mean())
    np.testing.assert_allclose(known.target, seen[[-1, -2]] - seen.mean())
    np.testing.assert_array_equal(known.responses.response, data.response[2:])


def test_what_insiders_contributed_is_subtracted_from_what_was_published():
    data = responses_of()
    known = edp.Adversary(past=1, past_published=COARSE, insiders=[0]).given(data)
    told = data.contribution[:, [0]].toarray().ravel()
    seen = 4.0 * np.round(data.response / 4.0) - told
    np.testing.assert_allclose(np.ravel(known.design), seen[:-1] - seen.mean())


def test_less_of_the_past_hides_more():
    data = responses_of()
    middle = [
        edp.audit(data, adversary=adversary, **{**OPTIONS, "draws": 400}).delta.median().item()
        for adversary in (
            edp.Adversary(past=1),
            edp.Adversary(past=1, past_published={"rounded_to": 0.01}),
            edp.Adversary(past=1, past_published=COARSE),
            None,
        )
    ]
    assert middle[1] == pytest.approx(middle[0], rel=0.1)
    assert middle[3] < middle[2] < 0.8 * middle[0]


def test_the_result_says_what_was_seen():
    adversary = edp.Adversary(past=2, past_published={"rounded_to": 5, "threshold": 40})
    assert adversary.words == (
        "a person who has seen the last 2 releases as published (rounded to 5, suppressed below "
        "40) and knows when each individual was last there"
    )
    found = edp.audit(responses_of(), adversary=adversary, **OPTIONS)
    assert found.settings["past_published"] == "rounded to 5, suppressed below 40"
    assert "as published" in found.settings["against"]


def test_a_spread_that_is_smaller_after_published_answers_is_said():
    data = responses_of(seed=5, spread=1.0, count=200)
    low = float(np.median(data.response))
    with pytest.warns(EdpBayesWarning, match="varies less after one that was published"):
        edp.audit(data, adversary=edp.Adversary(past=1, past_published={"threshold": low}),
                  **OPTIONS)  # fmt: skip
    said = edp.Adversary(past=1, past_published=COARSE).given(data).warnings
    assert not any("varies less" in str(one) for one in said)


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
        assert after.loc[name, "limit"] < before.loc[name, "limit"]
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


def test_the_command_line_takes_the_past_as_published(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(pd.date_range("2023-01-02", periods=40, freq="7D"), 40),
        "who": np.tile(np.arange(40), 40),
        "region": np.tile(np.repeat(["north", "south"], 20), 40),
    })[rng.random(1600) < 0.5]  # fmt: skip
    rows.to_csv(tmp_path / "visits.csv", index=False)
    words = "--database week --individual who --query count --seed 1 --draws 50 --chains 2"
    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), "--model", "finite:2"]
    asked += ["--tune", "50", "--epsilon", "0.1", "--past-published", "--out", str(tmp_path / "a")]
    assert main(asked) == 2
    assert "give --rounded-to" in capsys.readouterr().err
    rounded = ["--rounded-to", "5", "--threshold", "8"]
    assert main([*asked, *rounded, "--no-past"]) == 2
    assert "none was seen: give --past" in capsys.readouterr().err
    assert main([*asked, *rounded, "--past", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "has seen the last release as published (rounded to 5, suppressed below 8)" in said
    assert main([*asked, *rounded, "--past", "1", "--by", "region"]) == 0
    table = pd.read_csv(tmp_path / "a" / "cells.csv")
    assert set(table["region"]) == {"(all)", "north", "south"}
    assert "has seen the last release as published" in table.loc[0, "sentence"]


def test_what_is_published_is_what_everything_is_of(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(pd.date_range("2023-01-02", periods=40, freq="7D"), 30),
        "who": np.tile(np.arange(30), 40),
    })[rng.random(1200) < 0.5]  # fmt: skip
    rows.to_csv(tmp_path / "visits.csv", index=False)
    out = tmp_path / "out"
    words = "--database week --individual who --query count --seed 1 --draws 50 --chains 2"
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


def test_releases_against_different_adversaries_name_them():
    few = {**OPTIONS, "epsilon": [0.5]}
    data = responses_of(spread=0.3)
    one = edp.audit(data, **few)
    other = edp.audit(data, adversary=edp.Adversary(past=1), **few)
    both = edp.compose([one, other], fresh=True, progressbar=False)
    assert (
        "knows nothing but the distribution of the response; a person who has seen"
        in (both.settings["against"])
    )
    assert "no database" not in both.describe()
