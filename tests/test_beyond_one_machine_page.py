"""The page on threads, Dask, Spark and runs that resume: its code runs, and its options exist."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from edp_bayes.cli.run import STORE

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "beyond_one_machine.md").read_text()


@pytest.fixture(scope="module")
def scope():
    return {}


def cells(heading):
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
    assert found
    return "\n".join(found)


def test_threads(scope):
    exec(cells("Threads"), scope)
    assert (scope["here"].total_risk > 0.0).any()


@pytest.mark.full
def test_dask(scope):
    pytest.importorskip("distributed")
    exec(cells("Dask"), scope)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_spark(scope, monkeypatch):
    pytest.importorskip("pyspark")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, which is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=false pyspark-shell")
    exec(cells("Spark"), scope)


def test_runs_that_resume(scope, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(cells("Runs that resume"), scope)
    assert list(tmp_path.iterdir()) == []
    assert f"`{STORE}`" in PAGE
