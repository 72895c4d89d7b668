"""Parquet files with more records than are read at once: DuckDB groups them as it reads."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from narwhals.stable.v2 import LazyFrame

__all__ = ["in_engine"]

# Records up to which files are read into memory, where more can be said of them.
MOST_IN_MEMORY = 5_000_000
# Share of the memory for the engine; the rest is for the pairs that it finds.
SHARE = 0.4
LEAST_MEMORY = 8 * 2**30  # Where it cannot be asked for.


def in_engine(found: ds.Dataset, *, whole_files: bool) -> LazyFrame[Any] | None:
    """Return a data set as a lazy table of DuckDB, None where it is small enough to be read.

    DuckDB writes to disk what its memory does not hold.

    Parameters
    ----------
    found : pyarrow.dataset.Dataset
        Where the records are: every place that PyArrow or fsspec knows.
    whole_files : bool
        Whether it stands for local files as they are: DuckDB then reads them itself, unless a
        column is of a type that it reads otherwise than PyArrow.
    """
    import narwhals.stable.v2 as nw

    zones = {getattr(field.type, "tz", None) for field in found.schema} - {None}
    if found.count_rows() <= MOST_IN_MEMORY or len(zones) > 1:
        return None
    import duckdb

    engine = duckdb.connect(
        config={
            "temp_directory": str(Path(tempfile.gettempdir()) / "edp_bayes_duckdb"),
            "preserve_insertion_order": False,
            "memory_limit": f"{SHARE * _memory() / 2**20:.0f}MiB",
        }
    )
    if zones:  # A time of DuckDB has no zone of its own.
        engine.execute("set TimeZone = ?", [zones.pop()])
    if whole_files and all(_is_plain(field.type) for field in found.schema):
        return nw.from_native(engine.read_parquet(found.files, hive_partitioning=False))
    return nw.from_native(engine.from_arrow(found))


def _memory() -> int:
    """Return the bytes of memory that this process may use."""
    found = [LEAST_MEMORY]
    if hasattr(os, "sysconf"):
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):  # No limit is the word "max".
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with contextlib.suppress(ImportError):  # Not on Windows.
        import resource

        limits = (
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        )
        found += [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min(found)


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a column is one of numbers, text, flags or dates."""
    from pyarrow import types

    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_date32)
    text = types.is_string(kind) or types.is_large_string(kind)
    return text or any(is_such(kind) for is_such in plain)
