"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time: a failure belongs to the change it is seen with.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data; skip where there is none."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("EDP_BAYES_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set EDP_BAYES_DATA to their folder")
    return folder
