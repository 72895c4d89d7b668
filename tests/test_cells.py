"""One audit for each cell of a table, and what the cells say together."""

import html
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array

import edp_bayes as edp
from edp_bayes.auditing.cells import chance as chances
from edp_bayes.auditing.cells import together
from edp_bayes.auditing.cells.audit import SEED_STEP
from edp_bayes.auditing.cells.records import CellRecords, Part
from edp_bayes.auditing.cells.together import correlated
from edp_bayes.auditing.query import audit_for_verdict
from edp_bayes.cli import main
from edp_bayes.report.cells import SHADES
from edp_bayes.results.effects import ADVISES, effect_of
from edp_bayes.results.verdict import no_more_than_whole
from tests.table_forms import FORMS

OPTIONS = {"draws": 50, "chains": 2, "tune": 50, "random_seed": 1, "progressbar": False}
MODEL = edp.FiniteMixture(components=2)


def visits(weeks=40, people=36, moves=False, seed=1):
    """Return visits of patients of three regions and two ages."""
    rng = np.random.default_rng(seed)
    who = np.tile(np.arange(people), weeks)
    region = np.array(["north", "south", "west"])[who % 3]
    rows = pd.DataFrame(
        {
            "week": np.repeat(np.arange(weeks), people),
            "region": region,
            "age": np.where(who % 2 == 0, "old", "young"),
            "who": who,
            "cost": rng.gamma(2.0, 5.0, who.size),
        }
    )[rng.random(who.size) < 0.6]
    if moves:
        rows.loc[rows["who"] == 0, "region"] = np.where(
            rows.loc[rows["who"] == 0, "week"] < 20, "north", "south"
        )
    return rows


def databases(rows):
    return edp.Databases.from_table(rows, database="week", individual="who")


@pytest.fixture(scope="module")
def found():
    return edp.audit_cells(
        databases(visits()), edp.queries.Count(), by=["region", "age"], epsilon=[0.1, 0.3],
        delta=0.3, model=MODEL, **OPTIONS,
    )  # fmt: skip


def test_every_cell_and_total_has_a_row_the_worst_first(found):
    keys = set(zip(found.table["region"], found.table["age"], strict=True))
    regions, ages = ("north", "south", "west"), ("old", "young")
    expected = {(r, a) for r in regions for a in ages}
    expected |= {(r, "(all)") for r in regions} | {("(all)", a) for a in ages}
    assert keys == expected | {("(all)", "(all)")}
    rank = ["revealed exactly", "not met", "not established", "no audit", "undecided", "met"]
    places = [rank.index(status) for status in found.table["status"]]
    assert places == sorted(places)
    assert found.worst.equals(found.table.iloc[0])


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(name, marks=[pytest.mark.full] * (name != "duckdb"))
        for name in FORMS
        if name != "pandas"
    ],
)
def test_every_engine_finds_the_same_cells(form, tmp_path):
    rows = visits(weeks=20, people=12)
    given = {"by": ["region"], "epsilon": [0.1], "model": MODEL, **OPTIONS}
    tables = [
        edp.audit_cells(databases(table), edp.queries.Count(), **given).table
        for table in (rows, FORMS[form](rows, tmp_path))
    ]
    pd.testing.assert_frame_equal(*tables)


def own_responses(region, age):
    """Return the responses of the records of one cell or total alone."""
    rows = visits()
    for column, value in (("region", region), ("age", age)):
        rows = rows if value == "(all)" else rows[rows[column] == value]
    with pytest.warns(edp.EdpBayesWarning):
        return databases(rows).respond(edp.queries.Count())


@pytest.mark.parametrize(("region", "age"), [("north", "old"), ("west", "(all)"), ("(all)",) * 2])
def test_a_cell_has_the_individuals_and_databases_of_its_own_records(found, region, age):
    responses = own_responses(region, age)
    row = found.table.set_index(["region", "age"]).loc[(region, age)]
    assert row["individuals"] == responses.n_individuals
    assert row["databases"] == responses.n_databases


def test_a_cell_is_the_audit_of_its_own_records(found):
    # the first cell has the seed that was given
    audit = edp.audit(
        own_responses("north", "old"), epsilon=[0.1, 0.3], model=MODEL, draws=50, chains=2,
        tune=50, random_seed=1, progressbar=False,
    )  # fmt: skip
    verdict = audit.verdict(epsilon=0.1, delta=0.3)
    row = found.table.set_index(["region", "age"]).loc[("north", "old")]
    assert row["limit"] == pytest.approx(verdict.limit, rel=1e-9)
    assert row["status"] == verdict.status


@pytest.mark.full
def test_what_cells_say_together_is_said(found):
    assert found.together.groups.empty
    assert "Nobody was in two of them, and no two are correlated beyond chance" in str(found)
    moved = edp.audit_cells(
        databases(visits(moves=True)), edp.queries.Count(), by="region", epsilon=[0.1],
        totals=False, model=MODEL, **OPTIONS,
    )  # fmt: skip
    assert (moved.together.sharing.shared, moved.together.sharing.moving) == (0, 1)
    assert "1 individual was in several cells, never of one database" in str(moved)
    groups = moved.together.groups
    assert groups["region"].tolist() == ["north + south"]
    assert groups["individuals"].tolist() == [24]
    assert f"Together, region north + south: {groups['sentence'][0]}" in str(moved)
    assert moved.everything["kind"].tolist() == ["cell"] * 3 + ["together"]


def test_individuals_of_several_cells_are_audited_in_all_of_them_together():
    rows = visits()
    twice = rows[rows["who"] == 0].assign(region="west")
    both = edp.audit_cells(
        databases(pd.concat([rows, twice])), edp.queries.Sum("cost"), by="region", epsilon=[0.1],
        delta=0.3, totals=False, model=MODEL, **OPTIONS,
    )  # fmt: skip
    assert (both.together.sharing.shared, both.together.sharing.moving) == (1, 1)
    assert "1 individual was in several cells of one database" in str(both)
    own = [
        databases(pd.concat([rows, twice]).query(f"region == '{name}'")).respond(
            edp.queries.Sum("cost"), step=None
        )
        for name in ("north", "west")
    ]
    # the same databases and individuals, zero where an individual has nothing in a cell
    everybody = sorted({label for one in own for label in one.individual.tolist()})
    parts = []
    for one, name in zip(own, ("north", "west"), strict=True):
        matrix = np.zeros((40, len(everybody)))
        places = [everybody.index(label) for label in one.individual.tolist()]
        matrix[:, places] = one.contribution.toarray()
        parts.append(
            edp.Responses.from_arrays(
                matrix.sum(axis=1), contribution=matrix, database=one.database,
                individual=everybody, query=f"sum of cost of {name}", additive=True,
            )
        )  # fmt: skip
    options = {**OPTIONS, "random_seed": 1 + 3 * SEED_STEP}
    audit = edp.audit(edp.Responses.join(*parts), epsilon=[0.1], model=MODEL, **options)
    verdict = audit.verdict(epsilon=0.1, delta=0.3)
    row = both.together.groups.iloc[0]
    assert row["region"] == "north + west"
    alone = both.table[both.table["region"].isin(["north", "west"])]
    limit = max(verdict.limit, alone["limit"].max())  # together no less than alone
    assert row["limit"] == pytest.approx(limit, rel=1e-9)
    assert row["status"] == ("met" if limit <= 0.3 else "undecided")
    median = float(audit.delta.median())
    assert row["median"] == pytest.approx(max(median, alone["median"].max()), rel=1e-6)


def test_an_individual_whom_cells_differ_by_is_revealed_exactly(tmp_path):
    rows = visits()
    west, more = rows[rows["region"] == "west"], rows[rows["who"] == 0]
    both = pd.concat([west, west.assign(region="copy"), more.assign(region="copy")])
    found = edp.audit_cells(
        databases(both), edp.queries.Sum("cost"), by="region", epsilon=[0.1], delta=0.3,
        model=MODEL, **OPTIONS,
    )  # fmt: skip
    row = found.together.groups.iloc[0]
    assert (row["region"], row["status"]) == ("copy + west", "revealed exactly")
    assert found.record()["status"] == "fail"
    assert found.record()["together"][0]["status"] == "revealed exactly"
    json.dumps(found.record(), allow_nan=False)
    assert "sum:cost of copy - sum:cost of west varies by what individual 0" in row["sentence"]
    page = found.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    assert "A combination of these cells tells what one individual contributes." in page
    assert "individual 0" not in page


def seasonal(regions, weeks=60, people=8):
    """Return visits of regions whose answers rise and fall alike."""
    rng = np.random.default_rng(3)
    chance = 0.5 + 0.35 * rng.choice([-1.0, 1.0], weeks)
    rows = []
    for k in range(regions):
        week, who = np.nonzero(rng.random((weeks, people)) < chance[:, None])
        rows.append(pd.DataFrame({"week": week, "region": f"r{k}", "who": who + k * people}))
    return pd.concat(rows)


@pytest.mark.full
def test_cells_that_rise_and_fall_alike_are_audited_together():
    asked = {"by": "region", "epsilon": [0.1], "totals": False, "model": MODEL, **OPTIONS}
    few = edp.audit_cells(databases(seasonal(3)), edp.queries.Count(), **asked)
    assert few.together.correlated.largest > 0.5
    assert few.together.groups["region"].tolist() == ["r0 + r1 + r2"]
    assert "Nobody was in two cells. Answers are correlated" in str(few)
    many = edp.audit_cells(databases(seasonal(6)), edp.queries.Count(), **asked)
    row = many.together.groups.iloc[0]
    assert (row["region"], row["status"]) == ("6 cells", "not established")
    assert "at most 5 are audited together" in row["sentence"]


def test_independent_cells_are_seldom_called_correlated():
    rng = np.random.default_rng(7)
    calls = 0
    for _ in range(100):
        answers = rng.poisson(5.0, (30, 12)).astype(float)
        matrix = csc_array(answers)
        columns = tuple(Part("cell", (str(k),), (np.array([k]),)) for k in range(12))
        records = CellRecords(matrix, np.arange(12), np.arange(12), np.arange(30), "count", columns)
        calls += len(correlated(records, columns).pairs) > 0
    # at most 5 of 100 on average; 12 or more have a chance of 0.4%
    assert calls < 12


def test_of_cells_that_are_too_many_to_compare_nothing_is_established_together(found, monkeypatch):
    monkeypatch.setattr(together, "MOST_COMPARED", 2)
    many = edp.audit_cells(
        databases(visits()), edp.queries.Count(), by="region", epsilon=[0.1], totals=False,
        model=MODEL, **OPTIONS,
    )  # fmt: skip
    assert "Their answers were not compared" in str(many)
    assert many.statuses[-1] == "not established"
    assert found.statuses == found.table["status"].tolist()


def test_the_grid_holds_every_cell_with_totals_last(found):
    grid = found.grid()
    assert grid.index.tolist() == ["north", "south", "west", "(all)"]
    assert grid.columns.tolist() == ["old", "young", "(all)"]
    row = found.table.iloc[grid.loc["south", "young"]]
    assert (row["region"], row["age"]) == ("south", "young")
    assert sorted(grid.to_numpy().ravel()) == list(range(len(found.table)))


def test_a_report_shows_the_worst_cell_and_a_heat_map(found, tmp_path):
    named = found.with_release(title="Visits & more", publisher="City")
    page = named.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    worst = found.worst
    assert f"Worst cell, region {worst['region']}, age {worst['age']}." in page
    assert "<h1><bdi>Visits &amp; more</bdi></h1>" in page
    assert page.count('class="tile h') == len(found.table) + len(SHADES)
    assert "at most" in page
    assert "anonymous" not in page
    with pytest.raises(edp.InvalidInputError, match=r"must end in \.html"):
        named.report(tmp_path / "cells.pdf")
    with pytest.raises(edp.InvalidInputError, match="a release has"):
        named.with_release(colour="blue")
    with pytest.raises(edp.InvalidInputError, match="markup"):
        named.with_release(title="<b>Visits</b>")


def test_a_cell_that_cannot_be_audited_has_a_status_and_ends_nothing():
    rows = visits()
    alone = pd.DataFrame({"week": np.arange(40), "region": "east", "age": "old", "who": 99})
    constant = pd.DataFrame(
        {"week": np.repeat(np.arange(40), 2), "region": "far", "age": "old", "who": [98, 97] * 40}
    )
    found = edp.audit_cells(
        databases(pd.concat([rows, alone, constant])), edp.queries.Count(), by="region",
        epsilon=[0.1], model=MODEL, **OPTIONS,
    )  # fmt: skip
    table = found.table.set_index("region")
    assert table.loc["far", "status"] == "no audit"
    assert table.loc["east", "status"] == "revealed exactly"
    assert found.worst["region"] == "east"
    assert "One individual alone" in table.loc["east", "sentence"]
    assert np.isnan(table.loc["far", "limit"])
    assert table.loc["north", "status"] != "no audit"


@pytest.mark.parametrize("missing", ["error", "drop", "pool"])
@pytest.mark.parametrize("form", ["pandas", "duckdb"])
def test_a_record_without_a_cell_is_refused_and_belongs_to_nobody(form, missing, tmp_path):
    rows = visits(weeks=12, people=9)
    rows.loc[rows.index[::7], "region"] = None
    table = edp.Databases.from_table(
        FORMS[form](rows, tmp_path), database="week", individual="who", missing=missing
    )
    lacking = int(rows["region"].isna().sum())
    with pytest.raises(
        edp.InvalidInputError,
        match=rf"'region' has {lacking} missing value.*every record needs a cell",
    ):
        edp.audit_cells(table, edp.queries.Count(), by="region", epsilon=[0.1], **OPTIONS)


def test_of_a_cell_that_never_changes_it_is_said_that_nothing_hides_anybody():
    rows = visits(weeks=12, people=12)
    rows = rows[rows["region"] != "west"]
    same = pd.DataFrame(
        {"week": np.repeat(np.arange(12), 3), "region": "west", "who": np.tile([2, 5, 8], 12)}
    )
    found = edp.audit_cells(
        databases(pd.concat([rows, same])), edp.queries.Count(), by="region", epsilon=[0.1],
        totals=False, model=MODEL, **OPTIONS,
    )  # fmt: skip
    west = found.table.set_index("region").loc["west"]
    assert west["status"] == "no audit"
    assert "The answer is 3 in all 12 databases" in west["sentence"]
    assert "nothing random hides who joins or leaves" in west["sentence"]
    assert list(found.table["status"]).index("no audit") == 0 or found.worst["status"] == "not met"


def test_cells_vary_where_their_total_does_not():
    rng = np.random.default_rng(5)
    who = np.tile(np.arange(12), 40)
    rows = pd.DataFrame({
        "week": np.repeat(np.arange(40), 12), "who": who,
        "region": np.where(rng.random(who.size) < 0.5, "north", "south"),
    })  # fmt: skip
    found = edp.audit_cells(
        databases(rows), edp.queries.Count(), by="region", epsilon=[0.1], model=MODEL, **OPTIONS
    )
    table = found.table.set_index("region")
    assert table.loc["(all)", "status"] == "no audit"
    assert "is 12 in all 40" in table.loc["(all)", "sentence"]
    assert "no audit" not in table.loc[["north", "south"], "status"].tolist()
    # one answer tells the other
    assert found.together.correlated.largest == pytest.approx(-1.0)
    assert found.together.groups["region"].tolist() == ["north + south"]


def test_a_store_keeps_what_is_finished(tmp_path, monkeypatch):
    store = tmp_path / "cells.jsonl"
    asked = {"by": "region", "epsilon": [0.1], "model": MODEL, "store": store, **OPTIONS}
    source = databases(visits())
    first = edp.audit_cells(source, edp.queries.Count(), **asked)
    lines = store.read_text().splitlines()
    assert len(lines) == 1 + len(first.table)
    # killed in the middle of a line
    store.write_text("\n".join([*lines[:3], lines[3][:20]]))
    again = edp.audit_cells(source, edp.queries.Count(), **asked)
    pd.testing.assert_frame_equal(first.table, again.table)
    assert store.read_text().splitlines() == lines
    from edp_bayes.auditing.cells import work

    monkeypatch.setattr(work, "audit_for_verdict", None)  # nothing is left to audit
    kept = edp.audit_cells(source, edp.queries.Count(), **asked)
    pd.testing.assert_frame_equal(first.table, kept.table)
    with pytest.raises(edp.InvalidInputError, match="holds cells of other data"):
        edp.audit_cells(source, edp.queries.Count(), **{**asked, "epsilon": [0.2]})


def test_individuals_whose_keys_read_alike_stay_apart():
    rows = visits().assign(name=lambda t: t["who"].map(str), town="x")
    rows.loc[rows["who"] == 0, ["name", "town"]] = ["a b", "c"]
    rows.loc[rows["who"] == 3, ["name", "town"]] = ["a", "b c"]
    source = edp.Databases.from_table(rows, database="week", individual=["name", "town"])
    found = edp.audit_cells(
        source, edp.queries.Count(), by="region", epsilon=[0.1], totals=False, model=MODEL,
        **OPTIONS,
    )  # fmt: skip
    assert found.table.set_index("region").loc["north", "individuals"] == 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": "planet"}, "by must name columns of the table, found 'planet'"),
        ({"by": "who"}, "found 'who', which identifies individuals"),
        ({"by": "week"}, "found 'week', which identifies databases"),
        ({"by": []}, "by must name at least one column"),
        ({"by": ["region", "region"]}, "by must name each column once, found 'region' twice"),
        ({"query": edp.queries.Mean("cost")}, "cells are audited of sums and counts"),
        ({"delta": 1.5}, "delta of a target"),
    ],
)
def test_cells_that_cannot_be_are_refused(changes, message):
    asked = {"query": edp.queries.Count(), "by": "region", "epsilon": [0.1], **OPTIONS, **changes}
    with pytest.raises(edp.InvalidInputError, match=message):
        edp.audit_cells(databases(visits()), asked.pop("query"), **asked)


@pytest.mark.full
def test_the_command_line_prints_the_worst_cell_first(capsys, tmp_path):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    words = "--database week --individual who --query count --no-past --seed 1 --draws 50"
    few = "--chains 2 --model finite:2 --tune 50 --by region,age --epsilon 0.1 --check"
    out = tmp_path / "out"
    report = ["--report", str(out / "report.html"), "--title", "Visits"]
    report += ["--json", str(out / "cells.json")]
    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), *few.split()]
    code = main([*asked, "--target", "0.1:0.3", "--resume", "--out", str(out), *report])
    printed = capsys.readouterr().out
    table = pd.read_csv(out / "cells.csv")
    worst = table.iloc[0]
    record = json.loads((out / "cells.json").read_text(encoding="utf-8"))
    assert len(record["cells"]) == len(table)
    assert record["cells"][0]["sentence"] == worst["sentence"]
    assert (record["seed"], record["databases"], record["properties"]["by"]) == (
        1, 40, ["region", "age"],
    )  # fmt: skip
    assert record["status"] == ("fail" if "not met" in set(table["status"]) else "review")
    assert "<title>Visits</title>" in (out / "report.html").read_text(encoding="utf-8")
    assert printed.startswith(f"Worst cell, region {worst['region']}, age {worst['age']}.")
    codes = {
        "met": 0,
        "not met": 3,
        "undecided": 4,
        "not established": 5,
        "no audit": 5,
        "revealed exactly": 3,
    }
    assert code == max(codes[one] for one in table["status"])
    empty = ["withheld", "withheld_by"]  # texts of nothing are missing in a CSV file
    typed = pd.read_parquet(out / "cells.parquet")
    pd.testing.assert_frame_equal(typed.drop(columns=empty), table.drop(columns=empty))
    for name in empty:
        assert typed[name].tolist() == table[name].astype(object).fillna("").tolist()
    assert json.loads((out / "cells.jsonl").read_text().splitlines()[0])["run"]
    assert main([*asked, "--by", "region", "--plan", "--out", str(out), "--target", "1:0.1"]) == 2
    assert "--by and --plan do not go together" in capsys.readouterr().err


def test_what_a_cell_leaves_out_is_no_part_of_its_verdict():
    responses = own_responses("north", "old")
    options = {**OPTIONS, "epsilon": [0.1, 0.5], "model": MODEL, "keep": 3, "only_largest": True}
    whole, short = edp.audit(responses, **options), audit_for_verdict(responses, **options)
    made, left = (set(one.checks.index) for one in (whole, short))
    assert {effect_of(name) for name in made - left} == {ADVISES}
    assert not left - made
    asked = {"epsilon": 0.1, "delta": 0.05}
    assert short.verdict(**asked).claim == whole.verdict(**asked).claim
    assert short.verdict(**asked).withheld_by == whole.verdict(**asked).withheld_by
    assert "densities" not in short.tree.children


def row_of(status, limit=np.nan, lower=np.nan, **more):
    found = {"status": status, "epsilon": 0.1, "delta": 0.06, "limit": limit, "lower": lower}
    return found | {"median": lower, "withheld_by": "", "sentence": "As it was."} | more


def test_cells_together_are_never_better_than_one_of_them_alone():
    joint = row_of("met", 0.05, 0.01)
    kept = together.at_least_alone(joint, {"a": row_of("met", 0.04, 0.0), "b": row_of("no audit")})
    assert kept == joint
    found = together.at_least_alone(
        joint, {"a": row_of("undecided", 0.13, 0.02), "b": row_of("met", 0.05, 0.0)}
    )
    assert (found["status"], found["limit"], found["lower"]) == ("undecided", 0.13, 0.02)
    assert "the limit of a alone is 0.13" in found["sentence"]
    worse = together.at_least_alone(
        joint, {"a": row_of("not met", 0.3, 0.1)}, against="a person who knows", prob=0.9
    )
    assert worse["status"] == "not met"
    assert worse["sentence"] == (
        "Not met: against a person who knows, at epsilon = 0.1 the risk from a alone is at least "
        "0.1, with 90% probability: together no less."
    )
    # a limit of its own that is larger leaves one that does not meet the target as it is
    wide = together.at_least_alone(
        row_of("undecided", 0.5, 0.0), {"a": row_of("not met", 0.3, 0.1)}
    )
    assert (wide["status"], wide["limit"], wide["lower"]) == ("not met", 0.5, 0.1)
    withheld = row_of("not established", withheld_by="trend")
    none = together.at_least_alone(joint, {"a": withheld, "b": row_of("met", 0.01, 0.0)})
    assert (none["status"], none["withheld_by"]) == ("not established", "trend")
    assert np.isnan(none["limit"])
    revealed = together.at_least_alone(row_of("revealed exactly"), {"a": row_of("met", 0.01, 0.0)})
    assert revealed["status"] == "revealed exactly"


def counts_of(weeks, people, seed):
    """Return visits of two regions, everybody there in half of the weeks."""
    rng = np.random.default_rng(seed)
    week, who = np.nonzero(rng.random((weeks, 2 * people)) < 0.5)
    region = np.where(who < people, "north", "south")
    return pd.DataFrame({"week": week, "who": who, "region": region})


def published_together(people, rule, epsilon=0.1):
    """Return delta of what is published of a count of fair coins, alone and with the total."""
    from scipy.stats import binom

    there = np.arange(people + 1)
    p, q = (np.append(binom.pmf(there[: n + 1], n, 0.5), [0.0] * (people - n)) for n in
            (people, people - 1))  # fmt: skip
    other = binom.pmf(there, people, 0.5)
    found = []
    for answer in (lambda a, b: (rule(a),), lambda a, b: (rule(a), rule(b), rule(a + b))):
        seen = {}
        for a in there.tolist():
            for b in there.tolist():
                pair = seen.setdefault(answer(a, b), np.zeros(2))
                pair += np.array([p[a], q[a]]) * other[b]
        both, e = np.array(list(seen.values())), np.exp(epsilon)
        ways = (both[:, 0] - e * both[:, 1], both[:, 1] - e * both[:, 0])
        found.append(max(np.maximum(way, 0.0).sum() for way in ways))
    return found


@pytest.mark.full
@pytest.mark.parametrize("published", [{"threshold": 8}, {"rounded_to": 5}])
def test_cells_and_totals_that_are_published_in_part_are_held_to_the_whole_answers(
    published, tmp_path
):
    step, least = published.get("rounded_to", 1), published.get("threshold", 0)
    alone, with_total = published_together(
        10, lambda a: -1 if a < least else step * round(a / step)
    )
    assert with_total > 1.5 * alone
    asked = {"by": "region", "epsilon": [0.1], "delta": 0.5, "model": MODEL, **OPTIONS}
    given = databases(counts_of(60, 10, seed=4)), edp.queries.Count()
    found = edp.audit_cells(*given, published=published, **asked)
    groups = found.together.groups.set_index("region")
    cells = found.table[found.table["kind"] == "cell"].set_index("region")
    assert sorted(groups.index) == ["north", "south"]
    held = groups["limit"].fillna(groups["limit_withheld"])
    assert (held >= with_total).all()
    assert (held >= cells["limit"].fillna(0.0)).all()
    said = str(found)
    assert "what their own cell says" not in said
    assert "at most what its whole answer tells" in said
    assert len(found.statuses) == len(found.table) + 2
    page = found.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    assert "Of each cell alone: with its totals more is told of it" in page
    assert "leaving out a cell hides nothing" not in page
    # without totals nothing beside the cell is of its individuals; whole totals follow from cells
    for more in ({"published": published, "totals": False}, {"published": None}):
        assert edp.audit_cells(*given, **more, **asked).together.groups.empty


@pytest.mark.parametrize(
    ("share", "whole", "status"),
    [(1.01, "met", "met"), (-0.01, "not met", "undecided"), (0.5, "undecided", "undecided")],
)
def test_what_is_published_meets_what_whole_answers_meet_and_may_meet_more(share, whole, status):
    audit = edp.audit(own_responses("north", "old"), epsilon=[0.1], model=MODEL, **OPTIONS)
    band = audit.verdict(epsilon=0.1, delta=0.1)
    delta = band.lower + share * (band.limit - band.lower)
    verdict = audit.verdict(epsilon=0.1, delta=delta)
    assert verdict.status == whole
    found, sentence = no_more_than_whole(verdict, "rounded to 5")
    assert found == status
    assert sentence.startswith(f"{status.capitalize()}: ")
    assert "of the whole answers" in sentence
    assert verdict.against in sentence


@pytest.mark.full
@pytest.mark.parametrize("published", [None, {"rounded_to": 5}])
@pytest.mark.parametrize("copies", [1, 6])
def test_a_report_names_nobody_whatever_is_found(published, copies, tmp_path):
    rows = visits(people=12).assign(who=lambda table: "patient-" + table["who"].astype(str))
    west = rows[rows["region"] == "west"]
    more = west[west["who"] == "patient-2"].assign(region="copy")
    alike = [west.assign(region=f"copy {k}" if k else "copy") for k in range(copies)]
    found = edp.audit_cells(
        databases(pd.concat([west, *alike, more])), edp.queries.Sum("cost"), by="region",
        epsilon=[0.1], published=published, model=MODEL, **OPTIONS,
    )  # fmt: skip
    assert "'patient-2'" in str(found)
    status = "revealed exactly" if published is None else "not established"
    assert found.together.groups.iloc[0]["status"] == status
    page = found.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    assert "patient-" not in page


def test_cells_together_that_are_worse_than_each_of_them_come_first(tmp_path):
    rows = visits()
    west, more = rows[rows["region"] == "west"], rows[rows["who"] == 2]
    both = pd.concat([west, west.assign(region="copy"), more.assign(region="copy")])
    found = edp.audit_cells(
        databases(both), edp.queries.Sum("cost"), by="region", epsilon=[0.1], delta=0.9,
        model=MODEL, **OPTIONS,
    )  # fmt: skip
    assert "revealed exactly" not in set(found.table["status"])
    start = "Worst, cells together, region copy + west. Revealed exactly."
    assert found.headline(lambda row: row["sentence"])[1].startswith(start)
    assert found.record()["summary"].startswith(f"fail; {start}")
    page = found.report(tmp_path / "cells.html").read_text(encoding="utf-8")
    assert f'<p class="sentence verdict revealed-exactly">{start}' in page


def test_every_limit_of_cells_says_of_what_it_is(found):
    said = str(found)
    assert "delta at epsilon = 0.1 from count, against a person who knows the distribution" in said
    assert "with 95% probability" in said


def test_a_value_that_totals_have_is_refused_where_there_are_totals():
    rows = visits(people=12).replace({"region": {"west": "(all)"}})
    asked = {"by": ["age", "region"], "epsilon": [0.1], "model": MODEL, **OPTIONS}
    with pytest.raises(edp.InvalidInputError, match=r"column 'region' has the value '\(all\)'"):
        edp.audit_cells(databases(rows), edp.queries.Count(), **asked)
    alone = edp.audit_cells(databases(rows), edp.queries.Count(), totals=False, **asked)
    assert len(alone.table) == 6


def drifting(weeks=60, people=40, regions=4, drifts=1):
    """Return visits of some regions, of which the last few fill over the weeks."""
    rng = np.random.default_rng(3)
    who, week = np.tile(np.arange(people), weeks), np.repeat(np.arange(weeks), people)
    share = np.where(who % regions >= regions - drifts, 0.1 + 0.8 * week / weeks, 0.5)
    rows = pd.DataFrame({"week": week, "who": who, "region": [f"r{k % regions}" for k in who]})
    return rows[rng.random(who.size) < share]


@pytest.mark.full
def test_a_limit_that_a_check_withholds_is_not_taken_for_one(tmp_path):
    found = edp.audit_cells(
        databases(drifting()), edp.queries.Count(), by="region", epsilon=[0.1], totals=False,
        model=MODEL, **OPTIONS,
    )  # fmt: skip
    table = pd.read_csv(found.save(tmp_path / "cells.csv")).set_index("region")
    row = table.loc["r3"]
    assert (row["status"], row["withheld"]) == ("not established", "beyond chance")
    assert row[["limit", "lower", "median"]].isna().all()
    assert 0.0 < row["limit_withheld"] < 1.0
    others = table.drop("r3")
    established = others[others["status"] != "not established"]
    assert len(established) >= 2
    assert established["limit"].notna().all()
    assert established["limit_withheld"].isna().all()
    assert (established["withheld"].isna()).all()
    said = (
        "Were every model right, tests would withhold at most 0.4 on average, by chance alone. "
        "Beyond chance, by Holm's correction over cells: region r3."
    )
    record = found.record()
    page = found.report(tmp_path / "cells.html").read_text("utf-8")
    for place in (found.chance, str(found), " ".join(record["comments"]), html.unescape(page)):
        assert said in place
    kept = next(one for one in record["cells"] if one["region"] == "r3")
    assert (kept["limit"], kept["limit_withheld"]) == (None, row["limit_withheld"])
    assert f"{row['limit_withheld']:.2g}" not in page


@pytest.mark.full
def test_tests_of_right_models_withhold_no_more_cells_than_is_said():
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(300):
        y = rng.normal(size=40)
        responses = edp.Responses.from_arrays(y, contribution=rng.normal(0.5, 0.1, (40, 1)))
        rows = edp.diagnostics.check_databases(responses).table().assign(effect="withholds")
        chance, p_value = chances.tested(rows.drop(index="ties"))
        assert chance == 0.05
        held += p_value < 0.05
    # 15 on average at most; 28 or more have a chance of 0.1%
    assert held < 28


def test_a_check_without_a_p_value_is_no_matter_of_chance():
    columns = ["check", "p_adjusted", "passed", "effect"]
    rows = [
        ("trend", 0.2, True, "withholds"),
        ("minimum", 0.01, False, "withholds"),
        ("grid", np.nan, True, "withholds"),
        ("ties", np.nan, False, "advises"),
    ]
    checks = pd.DataFrame(rows, columns=columns).set_index("check")
    assert chances.tested(checks) == pytest.approx((0.1, 0.02))
    checks.loc["grid", "passed"] = False
    chance, p_value = chances.tested(checks)
    assert (chance, np.isnan(p_value)) == (pytest.approx(0.1), True)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_of_many_cells_no_more_than_holm_rejects_are_beyond_chance(p_values):
    why = chances.why_withheld([p < 0.05 for p in p_values], p_values)
    # step down by hand
    left = sorted(p_values)
    rejected = next((k for k, p in enumerate(left) if p * (len(left) - k) >= 0.05), len(left))
    assert why.count("beyond chance") == rejected
    assert why.count("may be chance") == sum(p < 0.05 for p in p_values) - rejected


def test_the_epsilon_of_the_target_is_in_the_grid_of_every_cell():
    found = edp.audit_cells(
        databases(visits()), edp.queries.Count(), by="region", epsilon=[0.5], model=MODEL, **OPTIONS
    )
    limits = found.table["limit"].dropna()
    assert len(limits) > 0
    assert (limits < 1.0).all()


def test_very_many_cells_need_an_executor(monkeypatch):
    from edp_bayes.auditing.cells import audit

    monkeypatch.setattr(audit, "MOST_CELLS", 3)
    with pytest.raises(edp.InvalidInputError, match="cells, more than 3: give an executor"):
        edp.audit_cells(
            databases(visits()), edp.queries.Count(), by="region", epsilon=[0.5], **OPTIONS
        )


def test_nothing_is_written_where_there_is_no_such_column(tmp_path, capsys):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    asked = ["audit", str(tmp_path / "visits.csv"), "--database", "week", "--individual", "who"]
    asked += ["--query", "count", "--by", "planet", "--out", str(tmp_path / "out"), "--resume"]
    assert main(asked) == 2
    assert "planet" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_cell_is_held_to_the_rules():
    rules = ["frequency:7", "dominance:1:60"]
    found = edp.audit_cells(
        databases(visits()), edp.queries.Sum("cost"), by="region", epsilon=[0.1], model=MODEL,
        rules=rules, **OPTIONS,
    )  # fmt: skip
    rows = visits()
    for _, row in found.table.iterrows():
        some = rows if row["region"] == "(all)" else rows[rows["region"] == row["region"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", edp.EdpBayesWarning)
            responses = databases(some).respond(edp.queries.Sum("cost"))
        alone = edp.disclosure(responses, rules=rules)
        assert row["rules_broken"] == " | ".join(alone.index[~alone["passed"]])
    assert set(found.table["rules_broken"]) >= {"", "at least 7 individuals"}
    assert "at least 7 individuals (" in str(found)
    assert "rules_broken" in found.record()["cells"][0]


def test_cells_that_break_no_rule_say_so(tmp_path, capsys):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    asked = ["audit", str(tmp_path / "visits.csv"), "--database", "week", "--individual", "who"]
    asked += ["--query", "count", "--by", "region", "--epsilon", "0.1", "--model", "finite:2"]
    few = ["--draws", "50", "--tune", "50", "--chains", "2", "--executor", "1"]
    assert main([*asked, *few, "--rule", "frequency:1", "--out", str(tmp_path / "out")]) == 0
    assert "No cell breaks a rule in any database." in " ".join(capsys.readouterr().out.split())
    assert "rules_broken" in pd.read_csv(tmp_path / "out" / "cells.csv").columns
