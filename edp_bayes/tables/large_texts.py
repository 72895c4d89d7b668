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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.tables.arrow_columns import beyond_floats, padded
from edp_bayes.tables.clocks import Offsets, shifted, with_offsets
from edp_bayes.tables.keys import Key
from edp_bayes.tables.large_files import Engine, in_engine
from edp_bayes.tables.reading import Form
from edp_bayes.tables.several_files import require_agreement
from edp_bayes.tables.texts import Texts, is_plain_number, is_zoned, may_be_numbers, no_text
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["are_large", "grouped_texts", "write"]

# Bytes of CSV files up to which they are read into memory, and of one that is compressed.
MOST_BYTES, MOST_COMPRESSED = 300_000_000, 40_000_000
# Bytes that are read at a time.
BLOCK = 2**24
SPELT, OFFSET = "edp_bayes spelt ", "edp_bayes offset "
# Times by which a compressed file may grow.
MOST_FOLD = 2000


def grouped_texts(texts: Texts, system: Any = None) -> Engine:
    """Return CSV files as a lazy table of DuckDB; none where they are small enough to be read.

    They are written as Parquet files in a temporary folder that only its owner can read, and that
    is removed with the table.

    Parameters
    ----------
    texts : Texts
        The files.
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
        size = unpacked_size if system is None else system.size
        sizes = {path: size(path) for path in texts.files}
    except OSError:  # What cannot be read is said by who reads it.
        return Engine()
    if not are_large(sizes):
        return Engine()
    folder = Folder("edp_bayes_csv_")
    targets = [folder.path / f"{k:06}.parquet" for k in range(len(texts.files))]
    schemas = _write_all(texts, targets, [() for _ in targets])
    suspects = [
        texts.suspects(dict(_kinds(schema)), texts.form_of_known(path)) for path, schema in schemas
    ]
    suspects = [_of_numbers(*pair) for pair in zip(targets, suspects, strict=True)]
    if any(suspects):
        # What may be read in two ways stays text, and is refused where it is asked for.
        marked = [[n for n in names if n not in texts.unclear] for names in suspects]
        marked = [texts.marked(names) for names in marked]
        if any(marked):
            schemas = _write_all(texts, targets, marked)
    schemas = _on_one_clock(texts, targets, schemas)
    require_agreement(schemas, texts.keys, texts.name)
    schema = pa.unify_schemas([one for _, one in schemas], promote_options="permissive")
    whole = ds.dataset([str(target) for target in targets], format="parquet", schema=schema)
    alike = all(one.equals(schema) for _, one in schemas)
    zone = texts.reading.clock.time_zone
    engine = in_engine(whole, whole_files=alike, few=True, time_zone=zone)
    if engine.lazy is None:
        return engine
    return Engine(engine.lazy.select(*schema.names), partial(_rest, engine, folder))


def _of_numbers(target: Path, names: Sequence[str]) -> list[str]:
    """Return which columns may be numbers with marks, as far as the first records show."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not names:
        return []
    with pq.ParquetFile(target) as file:
        first = next(file.iter_batches(batch_size=64, columns=list(names)), None)
    if first is None:
        return []
    return [n for n in names if pa.types.is_floating(first[n].type) or may_be_numbers(first[n])]


def _write_all(
    texts: Texts, targets: Sequence[Path], marked: Sequence[Sequence[str]]
) -> list[tuple[str, pa.Schema]]:
    """Write files of which some columns have numbers with marks; those without any are kept."""
    import pyarrow.parquet as pq

    found = []
    for file, target, names in zip(texts.files, targets, marked, strict=True):
        if names or not target.exists():
            action = partial(write, texts=texts, file=file, target=target, marked=names)
            found.append((file, texts.locally(file, action)))
        else:
            found.append((file, _shown(pq.read_schema(target))))
    return found


def _kinds(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _shown(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a file that was written, without those for our own use."""
    import pyarrow as pa

    return pa.schema([(name, kind) for name, kind in _kinds(schema) if not _is_ours(name)])


def _is_ours(name: str) -> bool:
    return name.startswith((SPELT, OFFSET))


def _on_one_clock(
    texts: Texts, targets: Sequence[Path], schemas: list[tuple[str, pa.Schema]]
) -> list[tuple[str, pa.Schema]]:
    """Return files whose times with offsets are what the clock showed, where that is one clock."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in texts.reading.with_offset:
        having = [k for k, t in enumerate(targets) if OFFSET + name in pq.read_schema(t).names]
        if not having:
            continue
        found = Offsets.joined(_offsets(targets[k], name) for k in having)
        if not found.minutes.any():
            continue
        zone = texts.reading.clock.zone(found, name)
        for k in having:
            file, schema = schemas[k]
            place = schema.get_field_index(name)
            if texts.reading.clock.every == "hour" and zone is not None:
                kind = pa.timestamp("us", zone)
                _rewritten(targets[k], name, lambda times, _, kind=kind: times.cast(kind))
            else:
                kind = pa.timestamp("us")
                _rewritten(targets[k], name, shifted)
            schemas[k] = (file, schema.set(place, pa.field(name, kind)))
    return schemas


def _offsets(target: Path, name: str) -> Offsets:
    """Return the offsets that are written in a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(target) as file:
        return Offsets.joined(
            Offsets.of(batch[name].cast(pa.timestamp("us", "UTC")), batch[OFFSET + name].to_numpy())
            for batch in file.iter_batches(columns=[name, OFFSET + name])
        )


def _rewritten(target: Path, name: str, change: Callable[..., Any]) -> None:
    """Change the times of a file, which are UTC beside their offsets."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = target.with_suffix(".part")
    writer: Any = None
    with pq.ParquetFile(target) as file:
        for batch in file.iter_batches():
            times = batch[name].cast(pa.timestamp("us", "UTC"))
            changed = change(times, batch[OFFSET + name].to_numpy())
            place = batch.schema.get_field_index(name)
            kinds = batch.schema.set(place, pa.field(name, changed.type))
            columns = [changed if k == place else one for k, one in enumerate(batch.columns)]
            writer = writer or pq.ParquetWriter(part, kinds)
            writer.write_batch(pa.record_batch(columns, schema=kinds))
    if writer is not None:
        writer.close()
        part.replace(target)


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


def unpacked_size(path: str) -> int:
    """Return the bytes of a file; of a compressed one as many as make it large, if it is.

    A file that is compressed a thousandfold is larger than it looks.
    """
    size = os.path.getsize(path)
    if not path.lower().endswith(".gz") or not size < MOST_COMPRESSED < size * MOST_FOLD:
        return size
    import pyarrow as pa

    left = MOST_BYTES
    try:
        with pa.input_stream(path) as file:
            while left > 0 and (block := len(file.read(BLOCK))):
                left -= block
    except pa.ArrowException:  # What cannot be read is said by who reads it.
        return size
    return size if left > 0 else MOST_COMPRESSED + 1


def write(
    path: str | Path, texts: Texts, file: str, target: Path, marked: Sequence[str] = ()
) -> pa.Schema:
    """Write a CSV file as a Parquet file, and return its columns.

    Parameters
    ----------
    path : str or Path
        The CSV file, compressed or not, as it is.
    texts : Texts
        The files it is one of.
    file : str
        Its name among them.
    target : Path
        The Parquet file.
    marked : sequence of str
        Columns of numbers with other marks than points.

    Raises
    ------
    InvalidInputError
        If a column is not UTF-8, or the disk is full.
    """
    from pyarrow import ArrowInvalid, string, types

    form = texts.form(file, Path(path))
    with form.opened(path) as reader:
        kinds = {field.name: field.type for field in reader.schema}
    for name, kind in kinds.items():
        if name in texts.reading.as_text or name in marked:
            kinds[name] = string()
        elif types.is_binary(kind):
            raise no_text(name, file)
    job = Job(path, form, texts, tuple(marked), target)
    padded_ones: set[str] = set()
    while True:
        try:
            again = _written(job, kinds, padded_ones)
        except ArrowInvalid as error:
            if not _loosened(kinds, str(error), file):
                raise
            continue
        except OSError as error:
            raise _no_room(error, target) from None
        if not again:
            break
        padded_ones |= again
    try:
        return _as_read(target)
    except OSError as error:
        raise _no_room(error, target) from None


class Job(NamedTuple):
    """A file that is written, and what is known of it."""

    path: str | Path
    form: Form
    texts: Texts
    marked: tuple[str, ...]
    target: Path

    @property
    def keys(self) -> Sequence[str]:
        """Names of the key columns."""
        return self.texts.keys


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
        raise no_text(name, path)
    order = _order()
    kinds[name] = order[order.index(kinds[name]) + 1] if kinds[name] in order else pa.string()
    return True


def _written(job: Job, kinds: Mapping[str, Any], texts: set[str]) -> set[str]:
    """Write a file with columns of some types; return those that turn out to be padded numbers.

    Beside a key of numbers stands how it is spelt, for `_as_read` to choose, and beside times of
    databases their offset.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    numbers = [name for name, kind in kinds.items() if is_plain_number(kind, name in job.keys)]
    spelt_keys = [name for name in numbers if name in job.keys and name not in texts]
    timed = [name for name in job.texts.reading.with_offset if is_zoned(kinds.get(name))]
    dates = [name for name in job.texts.reading.converted if name in kinds]
    own = dict.fromkeys(texts, pa.string()) | dict.fromkeys(job.marked, pa.float64())
    own |= dict.fromkeys(dates, pa.timestamp("us"))
    schema = pa.schema(
        list({**kinds, **own}.items())
        + [(SPELT + name, pa.string()) for name in spelt_keys]
        + [(OFFSET + name, pa.int64()) for name in timed]
    )
    found: set[str] = set()
    with pq.ParquetWriter(job.target, schema) as writer:
        for batch, spelling in _batches(job, kinds, [*numbers, *timed]):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in numbers:
                spelt = pc.utf8_trim_whitespace(spelling[name])
                if name in texts:
                    columns[name] = spelt
                elif padded(spelt):
                    found.add(name)
                if name in spelt_keys:
                    columns[SPELT + name] = spelt
            for name in timed:
                offsets = with_offsets(spelling[name])
                columns[OFFSET + name] = pa.array(
                    np.zeros(len(batch), dtype=np.int64) if offsets is None else offsets[1]
                )
            for name in job.marked:
                columns[name] = job.texts.marks.numbers(columns[name])
            for name in dates:
                key = Key(name, pa.chunked_array([columns[name]]))
                columns[name] = (
                    job.texts.reading.clock.converted(key).column.combine_chunks()
                    if columns[name].null_count < len(columns[name])
                    else pa.nulls(len(columns[name]), pa.timestamp("us"))
                )
            if not found:
                arrays = [columns[name] for name in schema.names]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
    return found


def _batches(job: Job, kinds: Mapping[str, Any], spelt: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the records block by block, and beside them some columns as they are spelt."""
    import pyarrow as pa

    with job.form.opened(job.path, list(kinds), kinds, BLOCK) as reader:
        if not spelt:
            yield from ((batch, None) for batch in reader)
            return
        text = dict.fromkeys(spelt, pa.string())
        with job.form.opened(job.path, spelt, text, BLOCK) as spellings:
            yield from zip(reader, spellings, strict=True)


def _as_read(target: Path) -> pa.Schema:
    """Return the columns of a file that was written; keys that numbers would merge become text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pq.read_schema(target)
    kinds = dict(_kinds(_shown(whole)))
    merged = [
        name for name in kinds if SPELT + name in whole.names and _merges(target, name, kinds[name])
    ]
    if not merged:
        return pa.schema(kinds.items())
    schema = pa.schema(kinds | dict.fromkeys(merged, pa.string()))
    offsets = [field for field in whole if field.name.startswith(OFFSET)]
    held = pa.schema([*schema, *offsets])
    part = target.with_suffix(".part")
    with pq.ParquetFile(target) as file, pq.ParquetWriter(part, held) as writer:
        for batch in file.iter_batches():
            columns = [batch[SPELT + n if n in merged else n] for n in held.names]
            writer.write_batch(pa.record_batch(columns, schema=held))
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


def _no_room(error: OSError, target: Path) -> InvalidInputError:
    words = os.strerror(error.errno) if error.errno else str(error)
    return InvalidInputError(
        f"CSV files of this size are written as Parquet files in {target.parent.parent} first, "
        f"which failed ({words}): give a folder with room as TMPDIR, or convert them to Parquet"
    )
