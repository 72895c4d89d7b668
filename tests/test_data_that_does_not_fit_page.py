"""The guide page on engines: its code runs, and every engine gives the same responses."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import pytest

import edp_bayes as edp

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "data_that_does_not_fit.md"
CELLS = re.findall(r"```(?:\{code-cell\} )?python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
ON_SPARK = [cell for cell in CELLS if "pyspark" in cell]


@pytest.fixture(scope="module")
def scope():
    found: dict[str, object] = {}
    with warnings.catch_warnings():
        for cell in CELLS:
            if cell not in ON_SPARK:
                exec(cell, found)
    return found


@pytest.mark.full
def test_duckdb_and_dask_answer_alike(scope):
    assert scope["responses"].n_databases == 40
    assert scope["found"].fingerprint == scope["responses"].fingerprint
    assert scope["responses"].fingerprint == respond(scope, edp.queries.Sum("amount")).fingerprint


@pytest.mark.full
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
@pytest.mark.filterwarnings("ignore")
def test_spark_answers_alike(scope):
    pytest.importorskip("pyspark")
    (cell,) = ON_SPARK
    exec(cell, scope)
    expected = respond(scope, edp.queries.Mean("amount"))
    assert scope["in_spark"].fingerprint == expected.fingerprint
    scope["spark"].stop()


def respond(scope, query):
    table = scope["sales"]
    table = table.assign(day=table["day"].astype("datetime64[s]").dt.date)
    return edp.Databases.from_table(
        table, database="day", individual="client", database_every="week"
    ).respond(query)
