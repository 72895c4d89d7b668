"""What is advised where an engine has the records is done with its own table, and helps."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import edp_bayes as edp
from edp_bayes import Databases
from edp_bayes.queries import Proportion, Quantile, Sum
from tests.engine_tables import records
from tests.test_engines import LAZY

TABLE = records()
DAYS = pd.date_range("2024-01-01", periods=20, freq="4D").strftime("%d/%m/%Y").to_numpy()
TABLE["day"] = DAYS[TABLE["week"]]
NUMBERED = {"database": "week", "individual": "client"}
DATED = {"database": "day", "individual": "client"}
DATED |= {"date_format": "%d/%m/%Y", "database_every": "week"}
MEDIAN = Quantile("amount")


def of_some(table):
    return Databases.from_table(table, **NUMBERED).answers(MEDIAN, individuals=["c0", "c3"])


def by_week(table):
    return Databases.from_table(table, **DATED).respond(Sum("amount"), collect=3).response


def median(table):
    return Databases.from_table(table, **NUMBERED).respond(MEDIAN).response


# What is asked, of which engines it is refused, and what is said.
CASES = {
    "some": (of_some, ["polars", "duckdb", "ibis"], "the quantile of some individuals"),
    "order": (by_week, LAZY, "databases follow each other"),
    "ranks": (median, ["dask"], "ranks of the records"),
}


def in_memory(said, engine, table):
    """Return the table as a message says that one of this engine comes into memory."""
    calls = {name.lower(): call for call, name in re.findall(r"(\.\w+\(\)) of (\w+)", said)}
    return eval(f"table{calls[engine]}", {"table": table})


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "engine"), [(case, engine) for case in CASES for engine in CASES[case][1]]
)
def test_a_table_that_is_brought_into_memory_is_answered(case, engine):
    ask, _, why = CASES[case]
    table = LAZY[engine](TABLE)
    with pytest.raises(edp.InvalidInputError, match=why) as error:
        ask(table)
    np.testing.assert_array_equal(ask(in_memory(str(error.value), engine, table)), ask(TABLE))


def test_categories_are_compared_in_memory():
    levels = ["small", "large"]
    items = np.where(TABLE["items"] > 2, *reversed(levels))
    table = pl.from_pandas(TABLE).with_columns(pl.Series("size", items, dtype=pl.Enum(levels)))
    query = Proportion("size", ">=", "large")
    with pytest.raises(edp.InputTypeError, match="by their order only in memory") as error:
        Databases.from_table(table.lazy(), **NUMBERED).respond(query)
    found = Databases.from_table(in_memory(str(error.value), "polars", table.lazy()), **NUMBERED)
    expected = Databases.from_table(TABLE, **NUMBERED).respond(Proportion("items", ">", 2))
    np.testing.assert_array_equal(found.respond(query).response, expected.response)


def test_files_are_ranked_and_read_into_memory_as_advised(tmp_path, monkeypatch):
    with pytest.raises(edp.InvalidInputError, match="write Parquet files and give their path"):
        median(LAZY["dask"](TABLE))
    (tmp_path / "table").mkdir()
    TABLE.to_parquet(tmp_path / "table" / "part.parquet")
    # Files of more records than are read at once
    monkeypatch.setattr("edp_bayes.tables.large_files.MOST_IN_MEMORY", 0)
    np.testing.assert_array_equal(median(tmp_path / "table"), median(TABLE))
    with pytest.raises(edp.InvalidInputError, match=r"or polars\.read_parquet\(\) of files"):
        of_some(tmp_path / "table")
    np.testing.assert_array_equal(of_some(pl.read_parquet(tmp_path / "table")), of_some(TABLE))
