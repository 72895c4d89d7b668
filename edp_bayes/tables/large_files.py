"""Parquet files with more records than are read at once: DuckDB groups them as it reads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from edp_bayes.tables import memory
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from narwhals.stable.v2 import LazyFrame

__all__ = ["Engine", "in_engine"]

# Records up to which files are read into memory, where more can be said of them.
MOST_IN_MEMORY = 5_000_000
# Share of the memory for the engine; the rest is for the pairs that it finds.
SHARE = 0.4
LEAST = "1MiB"  # of memory for an engine that rests


class Engine(NamedTuple):
    """A lazy table of DuckDB, and what lets it give back the memory that it keeps."""

    lazy: LazyFrame[Any] | None = None
    rest: Callable[[], None] = lambda: None


def in_engine(
    found: ds.Dataset, *, whole_files: bool, few: bool = False, time_zone: str | None = None
) -> Engine:
    """Return a data set as a lazy table of DuckDB; none where it is small enough to be read.

    DuckDB writes to disk what its memory does not hold.

    Parameters
    ----------
    found : pyarrow.dataset.Dataset
        Where the records are: every place that PyArrow or fsspec knows.
    whole_files : bool
        Whether it stands for local files as they are: DuckDB then reads them itself, unless a
        column is of a type that it reads otherwise than PyArrow.
    few : bool
        Whether few records, too, are left to it.
    time_zone : str, optional
        Zone of times that have one; their own if not given.
    """
    import narwhals.stable.v2 as nw

    zones = {getattr(field.type, "tz", None) for field in found.schema} - {None}
    if (len(zones) > 1 and time_zone is None) or not (few or found.count_rows() > MOST_IN_MEMORY):
        return Engine()
    import duckdb

    spill = Folder("edp_bayes_duckdb_")
    limit = f"{SHARE * memory.allowed() / 2**20:.0f}MiB"
    engine = duckdb.connect(
        config={
            "temp_directory": str(spill.path),
            "preserve_insertion_order": False,
            "memory_limit": limit,
        }
    )

    def rest(spill: Folder = spill) -> None:  # Those who can ask for it keep the folder.
        with contextlib.suppress(duckdb.Error):  # What it needs it keeps.
            engine.execute("set memory_limit = ?", [LEAST])
        engine.execute("set memory_limit = ?", [limit])

    if zones:  # A time of DuckDB has no zone of its own.
        engine.execute("set TimeZone = ?", [time_zone or zones.pop()])
    if whole_files and all(_is_plain(field.type) for field in found.schema):
        relation = engine.read_parquet(found.files, hive_partitioning=False)
    else:
        relation = engine.from_arrow(found)
    return Engine(nw.from_native(relation), rest)


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a column is one of numbers, text, flags or dates."""
    from pyarrow import types

    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_date32)
    text = types.is_string(kind) or types.is_large_string(kind)
    return text or any(is_such(kind) for is_such in plain)
