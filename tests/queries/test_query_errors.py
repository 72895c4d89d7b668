"""Queries without a value, and arguments that cannot be used."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from edp_bayes.databases import Databases
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries import Count, Mean, Proportion, Quantile, Slope, Sum, Variance

pytestmark = pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")


def make(rows=None, **columns):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "year": np.repeat(np.arange(2000, 2020), 4),
            "who": list("abcd") * 20,
            "x": rng.normal(size=80),
            "y": rng.normal(size=80),
        }
    ).assign(**columns)
    return table if rows is None else table[rows(table)]


def respond(query, table):
    return Databases.from_table(table, database="year", individual="who").respond(query)


def alone(table):
    return (table["year"] != 2003) | (table["who"] == "c")


@pytest.mark.parametrize("query", [Mean("x"), Proportion("x", ">", 0), Quantile("x")], ids=str)
def test_an_individual_alone_in_a_database_is_named(query):
    with pytest.raises(InvalidInputError, match="database 2003 without individual 'c' has 0"):
        respond(query, make(alone))


@pytest.mark.parametrize("query", [Sum("x"), Count()], ids=str)
def test_totals_of_an_empty_database_are_zero(query):
    responses = respond(query, make(alone))
    assert responses.response_without("c")[3] == 0.0
    assert responses.contribution_of("c")[3] == responses.response[3] != 0.0


@pytest.mark.parametrize(
    ("query", "least"), [(Variance("x"), 2), (Variance("x", 3), 4), (Slope("y", "x"), 2)]
)
def test_too_few_records_are_left(query, least):
    table = make(lambda t: (t["year"] != 2003) | t["who"].isin(list("abcd")[:least]))
    message = f"needs at least {least} .*2003 without individual 'a' has {least - 1}"
    if least == 4:
        message = "needs at least 4 .*2000 without individual 'a' has 3"
    with pytest.raises(InvalidInputError, match=message):
        respond(query, table)


def test_too_few_records_to_begin_with():
    table = make(alone)
    with pytest.raises(InvalidInputError, match=r"Variance needs .* database 2003 has 1"):
        respond(Variance("x"), table)


def test_a_predictor_that_does_not_vary():
    table = make()
    table.loc[table["year"] == 2005, "x"] = 0.1
    with pytest.raises(InvalidInputError, match=r"database 2005: 'x' is 0\.1 in all"):
        respond(Slope("y", "x"), table)
    table.loc[(table["year"] == 2005) & (table["who"] == "d"), "x"] = 7.0
    with pytest.raises(InvalidInputError, match="database 2005 without individual 'd': 'x' is the"):
        respond(Slope("y", "x"), table)


def test_a_query_without_a_column_lists_the_choices():
    with pytest.raises(InvalidInputError, match=r"Mean needs the name.*2 value columns, 'x', 'y'"):
        respond(Mean(), make())
    with pytest.raises(InvalidInputError, match="0 value columns, none"):
        respond(Sum(), make()[["year", "who"]])
    responses = respond(Mean(), make()[["year", "who", "y"]])
    assert responses.query == "mean:y"


@pytest.mark.parametrize(
    ("make_query", "error", "message"),
    [
        (lambda: Sum(3), InputTypeError, "column must be the name of a column, found 3"),
        (lambda: Slope("y", None), InputTypeError, "predictor must be the name"),
        (lambda: Quantile("x", 1.5), InvalidInputError, "q must lie between 0 and 1, found 1.5"),
        (lambda: Quantile("x", np.nan), InvalidInputError, "q must be finite"),
        (lambda: Variance("x", ddof=-1), InvalidInputError, "ddof must not be negative"),
        (lambda: Variance("x", ddof=0.5), InputTypeError, "ddof must be an integer"),
        (lambda: Proportion("x", "=>", 1), InvalidInputError, "comparison must be one of >="),
        (lambda: Proportion("x", ">="), InvalidInputError, "comparison and a value together"),
    ],
)
def test_arguments_that_cannot_be_used(make_query, error, message):
    with pytest.raises(error, match=message):
        make_query()


def typed_columns():
    k = np.arange(80)
    return {
        "number": k % 7,
        "text": [f"{v:02d}" for v in k % 7],
        "flag": k % 7 > 3,
        "day": [dt.date(2024, 1, 1) + dt.timedelta(days=int(v)) for v in k % 7],
        "time": [dt.datetime(2024, 1, 1, 6) + dt.timedelta(days=int(v)) for v in k % 7],
        "zone": pd.to_datetime(
            [dt.datetime(2024, 1, 1, 6) + dt.timedelta(days=int(v)) for v in k % 7]
        ).tz_localize("Europe/Paris"),
    }


CONDITIONS = [
    (Proportion("number", ">=", 4), lambda k: k >= 4),
    (Proportion("number", "<", "2.5"), lambda k: k < 2.5),
    (Proportion("text", "==", "03"), lambda k: k == 3),
    (Proportion("text", "!=", "03"), lambda k: k != 3),
    (Proportion("text", ">", "04"), lambda k: k > 4),
    (Proportion("flag"), lambda k: k > 3),
    (Proportion("flag", "==", "False"), lambda k: k <= 3),
    (Proportion("day", "<=", "2024-01-03"), lambda k: k <= 2),
    (Proportion("day", "==", dt.date(2024, 1, 3)), lambda k: k == 2),
    (Proportion("time", ">=", "2024-01-03"), lambda k: k >= 2),
    (Proportion("time", ">", dt.datetime(2024, 1, 3, 6)), lambda k: k > 2),
    (Proportion("zone", ">", dt.datetime(2024, 1, 3, 6)), lambda k: k > 2),
    (Proportion("zone", ">=", dt.datetime(2024, 1, 3, 5, tzinfo=dt.UTC)), lambda k: k >= 2),
    (Proportion("number", ">=", np.int64(3)), lambda k: k >= 3),
]


@pytest.mark.parametrize("library", ["pandas", "categorical", "polars", "arrow"])
@pytest.mark.parametrize(("query", "condition"), CONDITIONS, ids=[str(q) for q, _ in CONDITIONS])
def test_conditions_on_columns_of_every_type(query, condition, library):
    table = pl.from_pandas(make(**typed_columns())).with_columns(pl.col("day").cast(pl.Date))
    if library == "arrow":
        table = table.to_arrow()
    elif library != "polars":
        table = table.to_pandas()
        if library == "categorical":
            table["text"] = table["text"].astype("category")
    holds = condition(np.arange(80) % 7).reshape(20, 4)
    np.testing.assert_allclose(respond(query, table).response, holds.mean(axis=1), rtol=1e-14)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (Proportion("number", ">", "many"), InputTypeError, "'number' is numeric, .* with 'many'"),
        (Proportion("number", "==", True), InputTypeError, "'number' is numeric"),
        (Proportion("flag", "==", 3), InputTypeError, "'flag' is boolean"),
        (Proportion("time", ">", "soon"), InputTypeError, "'time' is date, .* with 'soon'"),
        (
            Proportion("time", ">", dt.datetime(2024, 1, 3, tzinfo=dt.UTC)),
            InputTypeError,
            "is date",
        ),
        (Proportion("number"), InvalidInputError, r"zeros and ones, 'number' has 2 in database"),
        (Proportion("text"), InputTypeError, "'text' must be numeric"),
        (Proportion("age", ">", 4), InvalidInputError, "needs a column 'age'"),
    ],
)
def test_conditions_that_do_not_suit_the_column(query, error, message):
    with pytest.raises(error, match=message):
        respond(query, make(**typed_columns()))


def test_a_missing_text_in_a_condition_is_named():
    table = make(**typed_columns())
    table.loc[5, "text"] = None
    with pytest.raises(InvalidInputError, match="'text' has a missing value in database 2001, ind"):
        respond(Proportion("text", "==", "03"), table)


@pytest.mark.parametrize("size", [1e308, 1e200])
def test_overflow_is_an_error_and_not_an_infinity(size):
    query = Sum("x") if size == 1e308 else Variance("x")
    rows = make(x=np.where(np.arange(80) < 8, size * (1 + np.arange(80) % 2 / 2), 1.0))
    with pytest.raises(InvalidInputError, match="response of database 2000 is inf"):
        respond(query, rows)
