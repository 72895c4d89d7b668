"""Queries without a value, and arguments that cannot be used."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries import Count, Mean, Proportion, Quantile, Slope, Sum, Variance
from edp_bayes.responses.databases import Databases

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
        (Proportion("number"), InvalidInputError, r"zeros and ones, 'number' has 4 in database"),
        (Proportion("text"), InputTypeError, "'text' must be numeric, .* leading zeros"),
        (Proportion("text", ">", 4), InputTypeError, "'text' is text, .* number 4;"),
        (Proportion("text", "<=", "4"), InputTypeError, "'text' is text, .* number 4;"),
        (Proportion("day", ">", 4), InputTypeError, "'day' is date, .* with 4"),
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
    with pytest.raises(InvalidInputError, match="are too large: their sum may be more than"):
        respond(query, rows)


LEVELS = ["low", "medium", "high"]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize(
    ("comparison", "holds"), [(">=", {1, 2}), (">", {2}), ("<", {0}), ("==", {1}), ("!=", {0, 2})]
)
def test_ordered_categories_are_compared_by_their_order(comparison, holds, library):
    rank = np.arange(80) * 7 % 3
    frame = pl.from_pandas(make()).with_columns(
        pl.Series("level", [LEVELS[k] for k in rank], dtype=pl.Enum(LEVELS))
    )
    table = {"polars": frame, "pandas": frame.to_pandas(), "arrow": frame.to_arrow()}[library]
    found = respond(Proportion("level", comparison, "medium"), table).response
    np.testing.assert_allclose(found, np.isin(rank, list(holds)).reshape(20, 4).mean(axis=1))


def test_a_value_that_is_no_category_is_named():
    levels = pd.Categorical(["low", "high"] * 40, LEVELS, ordered=True)
    with pytest.raises(InvalidInputError, match=r"'tall' is none .* 'low', 'medium', 'high'"):
        respond(Proportion("level", ">", "tall"), make(level=levels))


def test_numbers_are_compared_in_the_precision_of_their_column():
    k = np.arange(80) ** 2 % 31
    tenths, large = (k % 10 / 10).astype(np.float32), 2**53 + k % 4
    hours = pd.Categorical(k % 24)
    table = make(tenths=tenths, large=large, hours=hours)
    for query, holds in (
        (Proportion("tenths", ">=", 0.7), k % 10 >= 7),
        (Proportion("tenths", "==", "0.1"), k % 10 == 1),
        (Proportion("large", ">=", 2**53 + 1), k % 4 >= 1),
        (Proportion("large", "==", str(2**53 + 3)), k % 4 == 3),
        (Proportion("large", "<=", 2**53 + 0.0), k % 4 == 0),
        (Proportion("hours", ">=", 9), k % 24 >= 9),
    ):
        for each in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
            found = respond(query, each).response
            np.testing.assert_array_equal(found, holds.reshape(20, 4).mean(axis=1))


def test_objects_of_one_type_are_that_type():
    days = np.array([dt.date(2024, 1, 1 + k % 28) for k in range(80)], dtype=object)
    prices = np.array([Decimal(k) / 4 for k in range(80)], dtype=object)
    table = make(day=days, price=prices, flag=np.array([k % 3 == 0 for k in range(80)], object))
    k = np.arange(80)
    for query, values in (
        (Proportion("day", ">", "2024-01-05"), k % 28 > 4),
        (Proportion("price", ">=", Decimal("5.00")), k >= 20),
        (Proportion("flag"), k % 3 == 0),
        (Mean("price"), k / 4),
    ):
        found = respond(query, table).response
        np.testing.assert_allclose(found, values.reshape(20, 4).mean(axis=1), rtol=1e-14)


def test_text_among_numbers_is_shown_with_its_record():
    amounts = ["1.5", "2", "1,234", *["3"] * 77]
    message = "found values of type String; '1,234' in database 2000, individual 'c' is no number"
    with pytest.raises(InputTypeError, match=message):
        respond(Mean("amount"), make(amount=amounts))


def test_a_class_is_no_query():
    with pytest.raises(InputTypeError, match=r"found the class Mean; make one, Mean\(...\)"):
        respond(Mean, make())


def test_workers_are_checked_for_queries_that_need_none():
    databases = Databases.from_table(make(), database="year", individual="who")
    with pytest.raises(InvalidInputError, match="workers must be at least 1, found -3"):
        databases.respond(Count(), workers=-3)
