"""CSV files with more records than are read at once, written as Parquet files to be grouped.

They are read block by block. A column is of the first type of PyArrow's own order that all of its
values have, as if the file were read whole, so that keys, numbers and fingerprints are the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.arrow_columns import beyond_floats, padded
from edp_bayes.records.large_files import Engine, in_engine
from edp_bayes.records.several_files import require_agreement
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["are_large", "grouped_texts", "write"]

# Bytes of CSV files up to which they are read into memory, and of one that is compressed.
MOST_BYTES, MOST_COMPRESSED = 300_000_000, 40_000_000
# Bytes that are read at a time.
BLOCK = 2**24
SPELT = "edp_bayes spelt "


def grouped_texts(
    files: Sequence[str],
    keys: Sequence[str],
    name: str,
    at_hand: Callable[[str, Callable[[Path], Any]], Any],
    system: Any = None,
) -> Engine:
    """Return CSV files as a lazy table of DuckDB; none where they are small enough to be read.

    They are written as Parquet files in a temporary folder that only its owner can read, and that
    is removed with the table.

    Parameters
    ----------
    files : sequence of str
        Their paths.
    keys : sequence of str
        Names of the key columns.
    name : str
        What they are called in messages.
    at_hand : callable
        Takes a path and an action, and returns what that does with the file on this machine.
    system : fsspec file system, optional
        Where they lie; here by default.

    Raises
    ------
    InvalidInputError
        If a file cannot be read, the files do not agree, or the disk is full.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        size = os.path.getsize if system is None else system.size
        sizes = {path: size(path) for path in files}
    except OSError:  # What cannot be read is said by who reads it.
        return Engine()
    if not are_large(sizes):
        return Engine()
    folder = Folder("edp_bayes_csv_")
    targets = [folder.path / f"{k:06}.parquet" for k in range(len(files))]
    schemas = [
        (path, at_hand(path, partial(write, keys=keys, target=target)))
        for path, target in zip(files, targets, strict=True)
    ]
    require_agreement(schemas, keys, name)
    schema = pa.unify_schemas([one for _, one in schemas], promote_options="permissive")
    whole = ds.dataset([str(target) for target in targets], format="parquet", schema=schema)
    alike = all(one.equals(schema) for _, one in schemas)
    engine = in_engine(whole, whole_files=alike, few=True)
    if engine.lazy is None:
        return engine
    return Engine(engine.lazy.select(*schema.names), partial(_rest, engine, folder))


def _rest(engine: Engine, folder: Folder) -> None:
    """Let an engine give back its memory; who can ask for that keeps the folder."""
    engine.rest()


def are_large(files: Mapping[str, int]) -> bool:
    """Return whether CSV files, of so many bytes each, have more records than are read at once.

    Examples
    --------
    >>> are_large({"a.csv": 10**8, "b.csv": 10**8}), are_large({"a.csv.gz": 10**8})
    (False, True)
    """
    share = sum(
        size / (MOST_COMPRESSED if path.lower().endswith(".gz") else MOST_BYTES)
        for path, size in files.items()
    )
    return share > 1.0


def write(path: str | Path, keys: Sequence[str], target: Path) -> pa.Schema:
    """Write a CSV file as a Parquet file, and return its columns.

    Parameters
    ----------
    path : str or Path
        The CSV file, compressed or not.
    keys : sequence of str
        Names of the key columns.
    target : Path
        The Parquet file.

    Raises
    ------
    InvalidInputError
        If a column is not UTF-8, or the disk is full.
    """
    from pyarrow import ArrowInvalid, types

    kinds = _first_kinds(path)
    for name, kind in kinds.items():
        if types.is_binary(kind):
            raise _no_text(name, path)
    texts: set[str] = set()
    while True:
        try:
            again = _written(path, keys, kinds, texts, target)
        except ArrowInvalid as error:
            if not _loosened(kinds, str(error), path):
                raise
            continue
        except OSError as error:
            raise _no_room(error, target) from None
        if not again:
            break
        texts |= again
    try:
        return _as_read(target)
    except OSError as error:
        raise _no_room(error, target) from None


def _first_kinds(path: str | Path) -> dict[str, Any]:
    """Return the types of the first block, which those of all of them can only follow."""
    from pyarrow import csv

    options = csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    with csv.open_csv(path, convert_options=options) as reader:
        return {field.name: field.type for field in reader.schema}


def _order() -> list[Any]:
    """Return the types of columns in the order in which PyArrow tries them."""
    import pyarrow as pa

    times = [pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns")]
    times += [pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")]
    return [pa.null(), pa.int64(), pa.bool_(), *times, pa.float64(), pa.string()]


def _loosened(kinds: dict[str, Any], said: str, path: str | Path) -> bool:
    """Give the column that an error is about its next type; return whether it was about one."""
    import pyarrow as pa

    found = re.search(r"In CSV column #(\d+):", said)
    if found is None:
        return False
    name = list(kinds)[int(found.group(1))]
    if kinds[name] == pa.string():
        raise _no_text(name, path)
    order = _order()
    kinds[name] = order[order.index(kinds[name]) + 1] if kinds[name] in order else pa.string()
    return True


def _written(
    path: str | Path, keys: Sequence[str], kinds: Mapping[str, Any], texts: set[str], target: Path
) -> set[str]:
    """Write a file with columns of some types; return those that turn out to be padded numbers.

    Beside a key of numbers stands how it is spelt, for `_as_read` to choose.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    numbers = [name for name, kind in kinds.items() if _is_number(kind, name in keys)]
    spelt_keys = [name for name in numbers if name in keys and name not in texts]
    schema = pa.schema(
        [(name, pa.string() if name in texts else kind) for name, kind in kinds.items()]
        + [(SPELT + name, pa.string()) for name in spelt_keys]
    )
    found: set[str] = set()
    with pq.ParquetWriter(target, schema) as writer:
        for batch, spelling in _batches(path, kinds, numbers):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in numbers:
                spelt = pc.utf8_trim_whitespace(spelling[name])
                if name in texts:
                    columns[name] = spelt
                elif padded(spelt):
                    found.add(name)
                if name in spelt_keys:
                    columns[SPELT + name] = spelt
            if not found:
                arrays = [columns[name] for name in schema.names]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
    return found


def _is_number(kind: Any, key: bool) -> bool:
    """Return whether the spelling of a column decides whether it is one of numbers."""
    from pyarrow import types

    return types.is_integer(kind) or (key and (types.is_floating(kind) or types.is_boolean(kind)))


def _batches(
    path: str | Path, kinds: Mapping[str, Any], numbers: Sequence[str]
) -> Iterator[tuple[Any, Any]]:
    """Yield the records block by block, and beside them some columns as they are spelt."""
    import pyarrow as pa
    from pyarrow import csv

    def opened(columns: Sequence[str], types: Mapping[str, Any]) -> Any:
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(block_size=BLOCK),
            convert_options=csv.ConvertOptions(
                null_values=[""],
                strings_can_be_null=True,
                include_columns=list(columns),
                column_types=dict(types),
            ),
        )

    with opened(list(kinds), kinds) as reader:
        if not numbers:
            yield from ((batch, None) for batch in reader)
            return
        with opened(numbers, dict.fromkeys(numbers, pa.string())) as spellings:
            yield from zip(reader, spellings, strict=True)


def _as_read(target: Path) -> pa.Schema:
    """Return the columns of a file that was written; keys that numbers would merge become text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pq.read_schema(target)
    kinds = {field.name: field.type for field in whole if not field.name.startswith(SPELT)}
    merged = [
        name for name in kinds if SPELT + name in whole.names and _merges(target, name, kinds[name])
    ]
    if not merged:
        return pa.schema(kinds.items())
    schema = pa.schema(kinds | dict.fromkeys(merged, pa.string()))
    part = target.with_suffix(".part")
    with pq.ParquetFile(target) as file, pq.ParquetWriter(part, schema) as writer:
        for batch in file.iter_batches():
            columns = [batch[SPELT + n if n in merged else n] for n in schema.names]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    part.replace(target)
    return schema


def _merges(target: Path, name: str, kind: pa.DataType) -> bool:
    """Return whether two spellings of a key are one number, or numbers are too large to tell."""
    import duckdb
    import pyarrow as pa

    number, text = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (name, SPELT + name))
    asked = f"count(distinct {number}) < count(distinct {text})"
    if pa.types.is_floating(kind):
        asked += f", max(abs({number}))"
    with duckdb.connect() as engine:
        [found] = engine.read_parquet(str(target)).aggregate(asked).fetchall()
    merged, *largest = found
    column = pa.chunked_array([pa.array(largest, pa.float64())])
    return bool(merged) or (bool(largest) and beyond_floats(column))


def _no_text(name: str, path: str | Path) -> InvalidInputError:
    return InvalidInputError(f"column {name!r} of {path} is not UTF-8; save the file as UTF-8")


def _no_room(error: OSError, target: Path) -> InvalidInputError:
    words = os.strerror(error.errno) if error.errno else str(error)
    return InvalidInputError(
        f"CSV files of this size are written as Parquet files in {target.parent.parent} first, "
        f"which failed ({words}): give a folder with room as TMPDIR, or convert them to Parquet"
    )
