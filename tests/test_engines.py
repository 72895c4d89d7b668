"""Engines group the records where they are; every one gives the bits of a table in memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import Databases, queries
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.engine import EngineSource
from edp_bayes.records.exact import multiples, sum_by, units
from tests.engine_tables import QUERIES, fingerprints, records

ROOT = Path(__file__).parents[1]
TABLE = records()
ARROW = pa.Table.from_pandas(TABLE, preserve_index=False)
KEYS = {"database": "week", "individual": "client"}
UNRANKED = [query for query in QUERIES if not isinstance(query, queries.Quantile)]


@pytest.fixture(scope="session")
def expected():
    return fingerprints(TABLE)


def ibis_table(table):
    return pytest.importorskip("ibis").memtable(pa.Table.from_pandas(table))


def dask_table(table):
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(table, npartitions=3)


LAZY = {
    "polars": lambda table: pl.from_pandas(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(pa.Table.from_pandas(table, preserve_index=False)),
    "ibis": ibis_table,
    "dask": dask_table,
}
EAGER = {
    "polars eager": pl.from_pandas,
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
}
each_engine = pytest.mark.parametrize("engine", LAZY)


@pytest.fixture(autouse=True)
def one_thread():
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        yield


@pytest.mark.full
@pytest.mark.parametrize("engine", [*EAGER, *LAZY])
def test_every_engine_gives_the_same_bits(engine, expected):
    shuffled = TABLE.sample(frac=1.0, random_state=3)
    asked = UNRANKED if engine == "dask" else QUERIES
    found = fingerprints((EAGER | LAZY)[engine](shuffled), asked)
    assert found == {str(query): expected[str(query)] for query in asked}


@pytest.mark.full
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.03, 0.37, 0.5, 0.9, 1.0]))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_a_quantile_needs_only_the_values_around_it(seed, level):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(20, 300))
    owners = rng.choice(6, p=rng.dirichlet(np.full(6, 0.5)), size=size)
    table = pd.DataFrame(
        {
            "week": np.concatenate([np.repeat(np.arange(8), 2), rng.integers(8, size=size)]),
            "client": np.concatenate([np.tile([10, 11], 8), owners]),
            "amount": rng.normal(size=size + 16).round(int(rng.integers(0, 4))) + 0.0,
        }
    )
    query = queries.Quantile("amount", level)
    try:
        expected = doubts(table, query)
    except InvalidInputError as error:
        with pytest.raises(InvalidInputError, match=str(error)[:30]):
            doubts(pl.from_pandas(table).lazy(), query)
        return
    found = doubts(pl.from_pandas(table).lazy(), query)
    assert found.fingerprint == expected.fingerprint
    assert found.warnings == expected.warnings


@pytest.mark.parametrize("most", [30, 2])
def test_pairs_of_few_records_need_fewer_parts_and_those_of_many_are_asked_again(
    most, monkeypatch, expected
):
    monkeypatch.setattr("edp_bayes.records.engine.MOST_OF_PAIR", most)
    asked = [queries.Sum("amount"), queries.Variance("amount"), queries.Slope("level", "amount")]
    found = fingerprints(LAZY["duckdb"](TABLE), asked)
    assert found == {str(query): expected[str(query)] for query in asked}


@pytest.mark.parametrize(
    "query", [queries.Variance("amount"), queries.Quantile("amount", 0.5)], ids=str
)
def test_pairs_that_memory_does_not_hold_are_refused_before_they_are_collected(query, monkeypatch):
    databases = Databases.from_table(LAZY["duckdb"](TABLE), **KEYS)
    monkeypatch.setattr("edp_bayes.tables.memory.used", lambda: 0)
    monkeypatch.setattr("edp_bayes.tables.memory.allowed", lambda: 20_000)
    with pytest.raises(InvalidInputError, match=r"^1\d\d pairs of a database and an indiv"):
        databases.respond(query)
    monkeypatch.setattr("edp_bayes.tables.memory.allowed", lambda: 200_000)
    databases.respond(query)


needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")


@pytest.fixture(scope="session")
def spark():
    sql = pytest.importorskip("pyspark.sql")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.mark.full
@needs_java
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_bits(spark, expected):
    assert fingerprints(spark.createDataFrame(TABLE)) == expected


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from edp_bayes.records.engine import EngineSource
from edp_bayes.records.exact import multiples, sum_by, units
from tests.engine_tables import QUERIES, fingerprints, records
builder = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
assert "connect" in type(spark).__module__
few = [query for query in QUERIES if str(query) in sys.argv]
print(json.dumps(fingerprints(spark.createDataFrame(records()), few)))
spark.stop()
"""


@pytest.mark.full
@needs_java
def test_spark_connect_gives_the_same_bits(expected):
    pytest.importorskip("pyspark.sql.connect")
    few = ["sum:amount", "variance:amount", "quantile:amount:0.3"]
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, *few], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {name: expected[name] for name in few}


@pytest.mark.full
def test_a_quantile_is_refused_where_ranks_are_not_given():
    databases = Databases.from_table(dask_table(TABLE), **KEYS)
    with pytest.raises(InvalidInputError, match=r"ranks .* which dask does not give.*Parquet"):
        databases.respond(queries.Quantile("amount"))


@pytest.fixture
def nothing_in_memory(monkeypatch):
    """Every Parquet file is one with more records than are read at once."""
    monkeypatch.setattr("edp_bayes.tables.large_files.MOST_IN_MEMORY", 0)


def write_folder(table, folder):
    for k in range(3):
        table.iloc[k::3].to_parquet(folder / f"{k}.parquet", index=False)
    return folder


def write_file(table, folder):
    table.to_parquet(folder / "records.parquet", index=False)
    return folder / "records.parquet"


def write_partitions(table, folder):
    table.assign(half=table["items"] % 2).to_parquet(folder, partition_cols=["half"], index=False)
    return folder


FILES = {
    "file": write_file,
    "folder": write_folder,
    "pattern": lambda table, folder: f"{write_folder(table, folder)}/*.parquet",
    "partitions": write_partitions,
    "data set": lambda table, folder: ds.dataset(write_folder(table, folder)),
    "remote": lambda table, folder: f"file://{write_folder(table, folder)}",
}


@pytest.mark.full
@pytest.mark.parametrize("form", FILES)
@pytest.mark.usefixtures("nothing_in_memory")
def test_files_larger_than_memory_are_grouped_by_an_engine(form, tmp_path, expected):
    source = FILES[form](TABLE, tmp_path)
    databases = Databases.from_table(source, **KEYS)
    assert isinstance(databases._source, EngineSource)
    assert fingerprints(source) == expected


def test_many_records_are_said_not_to_be_compared(monkeypatch):
    monkeypatch.setattr("edp_bayes.records.engine.MOST_COMPARED", 10)
    with pytest.warns(EdpBayesWarning, match="400 records repeat another one was not looked at"):
        responses = Databases.from_table(LAZY["duckdb"](TABLE), **KEYS).respond(queries.Count())
    assert any("was not looked at" in doubt for doubt in responses.warnings)


# What is doubtful or wrong is found in the engine


def doubts(table, query=UNRANKED[1], **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        responses = Databases.from_table(table, **{**KEYS, **options}).respond(query)
    return responses


@pytest.mark.full
@each_engine
def test_copies_are_found(engine):
    table = pd.concat([TABLE, TABLE.iloc[[5, 5, 9]]], ignore_index=True)
    found, expected = doubts(LAZY[engine](table)), doubts(table)
    assert "3 record(s) repeat another one exactly, as of individual" in found.warnings[-1]
    assert found.warnings == expected.warnings
    assert found.fingerprint == expected.fingerprint


@pytest.mark.full
@each_engine
@pytest.mark.parametrize("missing", ["drop", "pool"])
def test_records_without_an_individual_are_left_out_or_pooled(engine, missing):
    table = TABLE.assign(client=TABLE["client"].where(np.arange(400) % 9 > 0, None))
    # What is left out may be wrong, and is far larger than the rest.
    table.loc[0, "amount"] = np.nan if missing == "drop" else 1e12
    for query in (queries.Count(), queries.Variance("amount")):
        found = doubts(LAZY[engine](table), query, missing=missing)
        expected = doubts(table, query, missing=missing)
        assert found.fingerprint == expected.fingerprint
        assert found.warnings == expected.warnings
        assert any("45 of 400 records lack an individual" in doubt for doubt in found.warnings)
    with pytest.raises(
        InvalidInputError, match=r"'client' has 45 missing value\(s\) in 400 records"
    ):
        doubts(LAZY[engine](table))


@each_engine
def test_a_database_is_never_missing(engine):
    table = TABLE.assign(week=TABLE["week"].astype("Int64").where(np.arange(400) != 3))
    with pytest.raises(InvalidInputError, match=r"'week' has 1 missing value\(s\) in 400 records"):
        doubts(LAZY[engine](table))


@pytest.mark.full
@each_engine
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(engine, value):
    table = TABLE.copy()
    table.loc[[5, 7], "amount"] = value
    for query in (queries.Sum("amount"), queries.Slope("level", "amount")):
        with pytest.raises(InvalidInputError) as refusal:
            doubts(LAZY[engine](table), query)
        assert "column 'amount' has " in str(refusal.value)
        assert "(2 of 400 records are missing or not finite)" in str(refusal.value)
        places = (f"database {table['week'][k]}, individual '{table['client'][k]}'" for k in (5, 7))
        assert any(place in str(refusal.value) for place in places)


@pytest.mark.full
@each_engine
@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (queries.Sum("kind"), InputTypeError, "'kind' must be numeric, found values of type Str"),
        (queries.Proportion("items"), InvalidInputError, "zeros and ones, 'items' has [234] in"),
        (queries.Proportion("kind", ">", 3), InputTypeError, "'kind' is text, which is neither"),
        (queries.Proportion("items", "==", "x"), InputTypeError, "'items' is numeric, cannot com"),
        (queries.Mean("none"), InvalidInputError, "needs a column 'none'; the columns are week"),
    ],
)
def test_columns_that_do_not_suit_a_query(engine, query, error, message):
    with pytest.raises(error, match=message):
        doubts(LAZY[engine](TABLE), query)


@each_engine
def test_missing_text_in_a_condition_is_named(engine):
    table = TABLE.assign(kind=TABLE["kind"].where(np.arange(400) != 8, None))
    with pytest.raises(
        InvalidInputError, match=r"'kind' has a missing value in database .*1 of 400"
    ):
        doubts(LAZY[engine](table), queries.Proportion("kind", "==", "a"))


@pytest.mark.full
@each_engine
def test_an_individual_alone_is_named(engine):
    table = TABLE.assign(client=TABLE["client"].where(TABLE["week"] != 3, "c0"))
    with pytest.raises(InvalidInputError, match="database 3 without individual 'c0' has 0"):
        doubts(LAZY[engine](table), queries.Mean("amount"))


@each_engine
def test_an_empty_table_has_no_records(engine):
    with pytest.raises(InvalidInputError, match="no records"):
        doubts(LAZY[engine](TABLE.iloc[:0]))


def test_an_engine_that_fails_is_named():
    relation = LAZY["duckdb"](TABLE)
    broken = relation.project("week, client, error('no such host')::double as amount")
    with pytest.raises(InvalidInputError, match=r"duckdb could not answer: .*no such host"):
        Databases.from_table(broken, **KEYS).respond(queries.Sum("amount"))


def test_a_table_that_grows_is_opened_again():
    connection = duckdb.connect()
    connection.execute("create table records as select * from ARROW")
    databases = Databases.from_table(connection.table("records"), **KEYS)
    databases.respond(queries.Sum("amount"))
    connection.execute("insert into records select * from ARROW limit 3")
    for query in (queries.Sum("amount"), queries.Quantile("amount")):
        with pytest.raises(InvalidInputError, match="has 403 records now and had 400"):
            databases.respond(query)


def test_an_engine_that_does_not_round_is_found_out():
    """Sums of numbers themselves, not of their parts: what a simplified (x + m) - m would give."""
    values = TABLE["amount"].to_numpy()
    of = units(400, values.max(), values.min(), "amount")
    assert all(map(multiples, sum_by(values, of, np.zeros(400, int), 1).parts, of))
    assert not multiples(values[:1] + values[1:2], of[0])


def test_a_closed_connection_is_one_sentence():
    connection = duckdb.connect()
    relation = connection.from_arrow(ARROW)
    databases = Databases.from_table(relation, **KEYS)
    connection.close()
    with pytest.raises(InvalidInputError, match="duckdb could not answer: "):
        databases.respond(queries.Sum("amount"))
    with pytest.raises(InvalidInputError, match=r"table cannot be used|could not answer"):
        Databases.from_table(relation, **KEYS)


# Periods, zones and types of keys

MOMENTS = pd.Series(pd.date_range("2024-01-01", periods=3000, freq="53min"))


def moments(zone=None):
    rng = np.random.default_rng(3)
    when = MOMENTS.sample(400, random_state=1, ignore_index=True)
    when = when if zone is None else when.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pd.DataFrame(
        {"when": when, "client": rng.integers(5, size=400), "amount": rng.normal(5.0, 1.0, 400)}
    )


def by_period(table, every):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        databases = Databases.from_table(
            table, database="when", individual="client", database_every=every
        )
        return databases.respond(queries.Sum("amount"))


@pytest.mark.full
@each_engine
@pytest.mark.parametrize("every", ["hour", "day", "week", "month"])
def test_periods_are_those_of_a_table_in_memory(engine, every):
    if every == "month":
        table = moments().assign(
            when=lambda f: f["when"] + f.index.to_series() * pd.Timedelta("1D")
        )
    else:
        table = moments()
    assert by_period(LAZY[engine](table), every).fingerprint == by_period(table, every).fingerprint


@pytest.mark.full
@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("every", ["hour", "week"])
def test_periods_of_another_zone(engine, every):
    table = moments("America/New_York")
    source = LAZY[engine](table)
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.execute("set TimeZone = 'America/New_York'")
        source = connection.from_arrow(pa.Table.from_pandas(table, preserve_index=False))
    assert by_period(source, every).fingerprint == by_period(table, every).fingerprint


@pytest.mark.usefixtures("nothing_in_memory")
def test_files_keep_the_zone_of_their_times(tmp_path):
    table = moments("Europe/Rome")
    found = by_period(write_folder(table, tmp_path), "week")
    assert found.fingerprint == by_period(table, "week").fingerprint


def test_partitions_of_several_zones_are_refused(tmp_path):
    for k, zone in enumerate(("UTC", "Europe/Rome")):
        moments(zone).to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(
        InvalidInputError, match=r"'when' must have one type.*tz=UTC.*tz=Europe/Rome"
    ):
        by_period(tmp_path, "week")


@each_engine
def test_periods_need_dates(engine):
    with pytest.raises(InputTypeError, match="a week needs dates or timestamps: column 'when'"):
        by_period(LAZY[engine](moments().assign(when=3)), "week")


@pytest.mark.full
@each_engine
def test_gaps_and_labels_are_those_of_a_table_in_memory(engine):
    table = TABLE[TABLE["week"] != 7].assign(
        week=lambda f: pd.Timestamp("2024-01-01") + pd.to_timedelta(f["week"] * 7, unit="D"),
        client=lambda f: f["client"].str[1:].astype(float) / 4,
    )
    for empty in ("drop", "zero"):
        found, expected = (doubts(form, empty=empty) for form in (LAZY[engine](table), table))
        assert found.fingerprint == expected.fingerprint
        assert found.warnings == expected.warnings
    assert found.n_databases == 20


@pytest.mark.full
@each_engine
def test_compound_keys_are_tuples(engine):
    keys = {"database": "week", "individual": ["kind", "client"]}
    found, expected = (
        Databases.from_table(form, **keys).respond(queries.Mean("amount"))
        for form in (LAZY[engine](TABLE), TABLE)
    )
    assert found.individual.tolist()[0] == ("a", "c0")
    assert found.fingerprint == expected.fingerprint


# Conditions, insiders and what needs the records


@pytest.mark.full
@each_engine
@pytest.mark.parametrize("comparison", [">=", "<=", "==", "!=", ">", "<"])
@pytest.mark.parametrize("value", [2, 2.5])
def test_whole_numbers_are_compared_exactly(engine, comparison, value):
    table = TABLE.assign(items=TABLE["items"] + 2**53)
    query = queries.Proportion("items", comparison, 2**53 + 1 if value == 2 else value)
    found, expected = [], []
    for form, into in ((LAZY[engine](table), found), (table, expected)):
        try:
            into.append(doubts(form, query).fingerprint)
        except InvalidInputError as error:
            into.append(str(error))
    assert found == expected


@pytest.mark.full
@each_engine
def test_conditions_on_dates_and_small_floats(engine):
    table = TABLE.assign(
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(TABLE["items"], unit="D"),
        tenths=(TABLE["items"] / 10).astype(np.float32),
    )
    for query in (
        queries.Proportion("day", ">", "2024-01-02"),
        queries.Proportion("tenths", ">=", 0.3),
        queries.Proportion("tenths", "==", "0.1"),
        queries.Proportion("paid", "==", False),
    ):
        found, expected = (doubts(form, query) for form in (LAZY[engine](table), table))
        assert found.fingerprint == expected.fingerprint


@pytest.mark.full
@each_engine
@pytest.mark.parametrize("query", [q for q in UNRANKED if str(q) != "slope:level:amount"], ids=str)
def test_answers_on_the_records_of_some(engine, query):
    expected = Databases.from_table(TABLE, **KEYS).answers(query, individuals=["c0", "c3"])
    found = Databases.from_table(LAZY[engine](TABLE), **KEYS)
    np.testing.assert_array_equal(found.answers(query, individuals=["c0", "c3"]), expected)
    few = TABLE[TABLE["client"].isin(["c0", "c3"])]
    if str(query) == "mean:amount":
        np.testing.assert_allclose(expected, few.groupby("week")["amount"].mean(), rtol=1e-12)


def test_what_needs_the_records_themselves_is_refused_with_the_way_out():
    lazy = Databases.from_table(LAZY["duckdb"](TABLE), **KEYS)
    with pytest.raises(InvalidInputError, match=r"quantile of some individuals.*\.collect\(\)"):
        lazy.answers(queries.Quantile("amount"), individuals=["c0", "c3"])
    # Without c0 there is nothing left but a millionth of the spread, far from the mean of all.
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"week": np.repeat(np.arange(20), 6), "client": [*"aabbcc"] * 20})
    table["x"] = np.where(table["client"] == "a", 1e9, 0.0) + rng.normal(size=120)
    table["y"] = rng.normal(size=120)
    slope = queries.Slope("y", "x")
    assert Databases.from_table(table, **KEYS).respond(slope).n_individuals == 3
    with pytest.raises(InvalidInputError, match=r"without individual 'a' is so unlike.*collect"):
        Databases.from_table(LAZY["polars"](table), **KEYS).respond(slope)


@each_engine
def test_a_function_of_ones_own_gets_the_records(engine):
    def total(frame):
        column = frame["amount"]
        return float(np.sum(column.to_numpy()))

    found = Databases.from_table(LAZY[engine](TABLE), **KEYS).respond(total, progressbar=False)
    expected = Databases.from_table(TABLE, **KEYS).respond(queries.Sum("amount"))
    np.testing.assert_allclose(found.response, expected.response, rtol=1e-12)
