"""Engines group the records where they are; every one gives the bits of a table at hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from edp_bayes import Databases, queries
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.engine import EngineSource
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


@pytest.mark.parametrize("engine", [*EAGER, *LAZY])
def test_every_engine_gives_the_same_bits(engine, expected):
    shuffled = TABLE.sample(frac=1.0, random_state=3)
    asked = UNRANKED if engine == "dask" else QUERIES
    found = fingerprints((EAGER | LAZY)[engine](shuffled), asked)
    assert found == {str(query): expected[str(query)] for query in asked}


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


@needs_java
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_bits(spark, expected):
    assert fingerprints(spark.createDataFrame(TABLE)) == expected


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from edp_bayes.records.engine import EngineSource
from tests.engine_tables import QUERIES, fingerprints, records
builder = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
assert "connect" in type(spark).__module__
few = [query for query in QUERIES if str(query) in sys.argv]
print(json.dumps(fingerprints(spark.createDataFrame(records()), few)))
spark.stop()
"""


@needs_java
@pytest.mark.slow
def test_spark_connect_gives_the_same_bits(expected):
    pytest.importorskip("pyspark.sql.connect")
    few = ["sum:amount", "variance:amount", "quantile:amount:0.3"]
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, *few], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {name: expected[name] for name in few}


def test_a_quantile_is_refused_where_ranks_are_not_given():
    databases = Databases.from_table(dask_table(TABLE), **KEYS)
    with pytest.raises(InvalidInputError, match=r"ranks .* which dask does not give.*DuckDB or"):
        databases.respond(queries.Quantile("amount"))


@pytest.fixture
def nothing_in_memory(monkeypatch):
    """Every Parquet file is one with more records than are read at once."""
    monkeypatch.setattr("edp_bayes.records.large_files.MOST_IN_MEMORY", 0)


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


@pytest.mark.parametrize("form", FILES)
@pytest.mark.usefixtures("nothing_in_memory")
def test_files_larger_than_memory_are_grouped_by_an_engine(form, tmp_path, expected):
    source = FILES[form](TABLE, tmp_path)
    databases = Databases.from_table(source, **KEYS)
    assert isinstance(databases._source, EngineSource)
    assert fingerprints(source) == expected
