"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data; skip where there is none."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("EDP_BAYES_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set EDP_BAYES_DATA to their folder")
    return folder
