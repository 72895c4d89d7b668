"""Fixtures shared by all tests."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# A process that compiles every module it imports starts 5 s later, and tests start many. Where no
# bytecode may lie beside the sources it lies here, for all of them and for the next run.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# The same examples every time: a failure belongs to the change it is seen with.
# Workers of any Spark session have the packages of the tests.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def found_data() -> Path | None:
    """Return the folder of real data, or None."""
    folder = Path(os.environ.get("EDP_BAYES_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data_dir(found_data: Path | None) -> Path:
    """Return the folder of real data; skip where there is none."""
    if found_data is None:
        pytest.skip("no real data; set EDP_BAYES_DATA to their folder")
    return found_data
