"""Checks about records look at records, and know a record's number from a person's."""

import re

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics import check_identifier
from edp_bayes.queries import Quantile, Sum

QUICK = {"draws": 30, "tune": 30, "chains": 2, "random_seed": 1, "progressbar": False}
KNOWN = edp.Adversary(past=2, trend=True)


@pytest.fixture(scope="module")
def trips():
    """Totals that fall; one database is the work of one individual."""
    rng = np.random.default_rng(1)
    part = rng.gamma(2.0, 1.0, (60, 8)) * np.linspace(20.0, 4.0, 60)[:, None]
    part[30] = 0.0
    part[30, 2] = 90.0
    part[40, 5] = 700.0
    return edp.Responses.from_arrays(
        part.sum(axis=1), contribution=part, individual=list("abcdefgh"), query="trips",
        additive=True,
    )  # fmt: skip


def checked(responses, **options):
    return edp.audit(responses, epsilon=[0.1, 0.5], **QUICK, **options).checks


@pytest.mark.full
def test_shares_are_those_of_the_records_whatever_the_adversary_knows(trips):
    plain, given = checked(trips), checked(trips, adversary=KNOWN)
    for name in ("largest share", "largest over next", "ties"):
        assert given.loc[name, "statistic"] == plain.loc[name, "statistic"]
        assert given.loc[name, "sentence"] == plain.loc[name, "sentence"]
    share = given.loc["largest share"]
    assert share["statistic"] == 1.0
    assert share["sentence"].startswith(
        "Individual 'c' makes up 100% of the response of database 30"
    )
    assert given.loc["largest over next", "statistic"] == pytest.approx(
        700.0 / np.delete(trips.largest_contribution, 5).max()
    )


def test_insiders_take_nothing_off_the_records(trips):
    given = checked(trips, adversary=edp.Adversary(trend=True, insiders=["a", "b"]))
    assert given.loc["largest share", "statistic"] == 1.0
    assert "'c' makes up 100%" in given.loc["largest share", "sentence"]


@pytest.mark.full
def test_several_queries_too(trips):
    rng = np.random.default_rng(3)
    other = edp.Responses.from_arrays(
        rng.normal(50.0, 5.0, 60), contribution=rng.gamma(2.0, 0.1, (60, 8)),
        individual=list("abcdefgh"), query="others", additive=True,
    )  # fmt: skip
    joint = edp.Responses.join(trips, other)
    given = checked(joint, adversary=KNOWN)
    assert given.loc["largest share", "statistic"] == 1.0
    assert given.loc["largest share", "sentence"].startswith("trips: Individual 'c' makes up 100%")


@pytest.fixture(scope="module")
def rides():
    """Twenty persons, whose records have numbers."""
    rng = np.random.default_rng(2)
    count = 600
    return pd.DataFrame(
        {
            "week": rng.integers(0, 40, count),
            "ride": np.arange(count),
            "person": rng.integers(0, 20, count),
            "fare": rng.gamma(2.0, 5.0, count),
        }
    )


def responses(rides, individual):
    databases = edp.Databases.from_table(rides, database="week", individual=individual)
    return databases.respond(edp.queries.Sum("fare"))


@pytest.mark.full
def test_the_number_of_a_record_withholds_and_the_column_is_named(rides):
    audit = edp.audit(responses(rides, "ride"), epsilon=[0.1], **QUICK)
    assert audit.withheld.startswith(
        "Not established. 600 of 600 individuals are in one database alone: 'ride' looks like the "
        "number of a record, or like one new in each database. Then the risks are those of records"
    )


def test_naming_the_person_is_a_remedy(rides):
    found = check_identifier(responses(rides, "person"))["identifier"]
    assert found.passed
    assert found.statistic < 0.5
    assert not check_identifier(responses(rides, ["person", "ride"])).passed


@pytest.mark.full
def test_persons_who_come_once_are_said_to(rides):
    audit = edp.audit(responses(rides, "ride"), epsilon=[0.1], appear_once=True, **QUICK)
    assert audit.checks.loc["identifier", "passed"]
    assert "were said to be persons who come once" in audit.checks.loc["identifier", "sentence"]
    assert "Not established. 600" not in (audit.withheld or "")


@pytest.mark.parametrize(
    ("people", "twice", "passed"), [(35, 0, True), (36, 1, False), (40, 3, True)]
)
def test_some_dozens_nearly_all_in_one_database(people, twice, passed):
    contribution = np.zeros((40, people))
    contribution[np.arange(people) % 40, np.arange(people)] = 1.0
    contribution[39, :twice] = 1.0
    data = edp.Responses.from_arrays(np.arange(40.0), contribution=contribution)
    check = check_identifier(data)["identifier"]
    assert check.passed == passed
    assert re.search("their identifier looks like", check.sentence) is None or not passed
    assert check_identifier(edp.Responses.join(data, data.replaced(query="b"))).passed == passed


def test_subsets_of_one_table_are_no_doubt(rides):
    table = rides.drop(columns="week")
    databases = edp.Databases.subsamples(table, individual="ride", size=20, count=40, random_seed=1)
    assert check_identifier(databases.respond(edp.queries.Sum("fare"))).passed


@pytest.mark.parametrize("shift", [100.0, 0.0, -100.0])
def test_of_a_median_nobody_is_a_part(shift):
    rng = np.random.default_rng(5)
    y, c = shift + rng.normal(0.0, 5.0, 60), rng.gamma(2.0, 0.1, (60, 3))
    y[29], c[29, 2] = (shift or 1.0), 40.0
    told = edp.diagnostics.check_databases(
        edp.Responses.from_arrays(y, contribution=c, individual=list("abc"))
    )["largest share"]
    assert not told.passed
    assert " makes up " not in told.sentence
    assert "share" not in told.sentence
    change = f"{40 / abs(y[29]):.0%} of itself, the most there is" if shift else "40. The result"
    assert told.sentence.startswith(
        f"Without individual 'c' the response of database 29 would change by {change}"
    )


def test_a_change_beyond_the_response_is_more_than_itself():
    y, c = np.full(30, 10.0) + np.arange(30.0), np.full((30, 2), 0.1)
    c[4, 1] = 50.0
    told = edp.diagnostics.check_databases(edp.Responses.from_arrays(y, contribution=c))
    assert "database 4 would change by more than itself." in told["largest share"].sentence


def test_a_median_of_records_says_so():
    rng = np.random.default_rng(6)
    weeks, people = np.repeat(np.arange(40), 5), np.tile(list("abcde"), 40)
    amount = rng.gamma(20.0, 1.0, 200)
    amount[people == "e"] *= 9.0
    records = pd.DataFrame({"week": weeks, "person": people, "amount": amount})
    data = edp.Databases.from_table(records, database="week", individual="person")
    said = {
        name: edp.diagnostics.check_databases(data.respond(query))["largest share"].sentence
        for name, query in (("sum", Sum("amount")), ("median", Quantile("amount", 0.5)))
    }
    assert " makes up " in said["sum"]
    assert " makes up " not in said["median"]
    assert re.search(r"Without individual .* would change by \d+% of itself", said["median"])
