"""CSV files with more records than are read at once, written as Parquet files to be grouped.

They are read block by block. A column is of the first type of PyArrow's own order that all of its
values have, as if the file were read whole, so that keys, numbers and fingerprints are the same.
DuckDB would read the text itself, in twice the time and by other rules: 01 is text to it, +1 too,
and inf a date. What only the end of a file or another file tells, such as whether a key may be a
number, is written both ways, and chosen when all is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.tables.arrow_columns import beyond_floats, padded
from edp_bayes.tables.clocks import Offsets, with_offsets
from edp_bayes.tables.keys import Key
from edp_bayes.tables.large_files import Engine, in_engine
from edp_bayes.tables.reading import Form
from edp_bayes.tables.several_files import require_agreement
from edp_bayes.tables.texts import FIRST, Texts, no_text
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = ["are_large", "grouped_texts", "write"]

# Bytes of CSV files up to which they are read into memory, and of one that is compressed.
MOST_BYTES, MOST_COMPRESSED = 300_000_000, 40_000_000
# Bytes that are read at a time.
BLOCK = 2**24
# A key of numbers is written as it is spelt, and as numbers under a name that begins so; a time
# with an offset as a moment, and as what the clock showed.
NUMBER, SHOWN = "edp_bayes number ", "edp_bayes shown "
MINUTE = 60_000_000  # microseconds
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
    import narwhals.stable.v2 as nw
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    try:
        size = unpacked_size if system is None else system.size
        sizes = {path: size(path) for path in texts.files}
    except OSError:  # What cannot be read is said by who reads it.
        return Engine()
    if not are_large(sizes):
        return Engine()
    folder = Folder("edp_bayes_csv_")
    targets = [folder.path / f"{k:06}.parquet" for k in range(len(texts.files))]
    found = [
        (file, texts.locally(file, partial(write, texts=texts, file=file, target=target)))
        for file, target in zip(texts.files, targets, strict=True)
    ]
    require_agreement(found, texts.keys, texts.name)
    kinds = pa.unify_schemas([schema for _, schema in found], promote_options="permissive")
    each = [pq.read_schema(target) for target in targets]
    schema = pa.unify_schemas(each, promote_options="permissive")
    whole = ds.dataset([str(target) for target in targets], format="parquet", schema=schema)
    chosen = {name: name for name in kinds.names}
    zone = texts.reading.clock.time_zone
    for name in kinds.names:
        if NUMBER + name in schema.names and not pa.types.is_string(kinds.field(name).type):
            chosen[name] = NUMBER + name
        if SHOWN + name in schema.names and (offsets := _offsets(whole, name)).minutes.any():
            own = texts.reading.clock.zone(offsets, name)
            if texts.reading.clock.every == "hour" and own is not None:
                zone = own
            else:
                chosen[name] = SHOWN + name
    alike = all(one.equals(schema) for one in each)
    engine = in_engine(whole, whole_files=alike, few=True, time_zone=zone)
    if engine.lazy is None:
        return engine
    lazy = engine.lazy.select(*(nw.col(stored).alias(name) for name, stored in chosen.items()))
    return Engine(lazy, partial(_rest, engine, folder))


def _offsets(whole: ds.Dataset, name: str) -> Offsets:
    """Return the offsets from UTC that times were written with."""
    import pyarrow as pa

    parts = []
    for batch in whole.to_batches(columns=[name, SHOWN + name]):
        moments = batch[name].cast(pa.timestamp("us", "UTC"), safe=False)
        shown, since = (times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
                        for times in (batch[SHOWN + name], moments))  # fmt: skip
        parts.append(Offsets.of(moments, np.rint((shown - since) / MINUTE).astype(np.int64)))
    return Offsets.joined(parts)


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


def write(path: str | Path, texts: Texts, file: str, target: Path) -> pa.Schema:
    """Write a CSV file as a Parquet file, and return its columns as they are read.

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

    Raises
    ------
    InvalidInputError
        If a column is not UTF-8, or the disk is full.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    form = texts.form(file, Path(path))
    with form.opened(path) as reader:
        kinds = texts.kinds(reader.schema, file)
    plan, with_zeros = _settled(Plan(path, form, texts, kinds), file, target)
    first: Any = {}
    if suspects := texts.suspects(plan.kinds, form):
        with pq.ParquetFile(target) as written:
            first = next(written.iter_batches(FIRST, columns=suspects))
    marked = texts.marked(plan.kinds, first, form)
    if marked:
        kinds = plan.kinds | dict.fromkeys(marked, pa.string())
        plan = replace(plan, kinds=kinds, marked=tuple(marked))
        plan, with_zeros = _settled(plan, file, target)
    merged = [n for n in plan.keys if n in with_zeros or _merges(target, n, plan.kinds[n])]
    return plan.read(merged)


@dataclass(frozen=True)
class Plan:
    """How the columns of a file are written.

    Parameters
    ----------
    path : str or Path
        The file.
    form : Form
        What is between its values.
    texts : Texts
        The files it is one of.
    kinds : dict of str to DataType
        Types by which the columns are read.
    spelt : frozenset of str
        Columns of numbers that stay text, keys apart.
    marked : tuple of str
        Columns of numbers with other marks than points.
    """

    path: str | Path
    form: Form
    texts: Texts
    kinds: dict[str, pa.DataType]
    spelt: frozenset[str] = field(default_factory=frozenset)
    marked: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """Columns that are numbers or text by their spelling."""
        return self.texts.numbers(self.kinds)

    @property
    def keys(self) -> list[str]:
        """Those of them that are keys."""
        return [name for name in self.numbers if name in self.texts.keys]

    @property
    def timed(self) -> list[str]:
        """Times whose offsets are kept."""
        return self.texts.timed(self.kinds)

    @property
    def dates(self) -> list[str]:
        """Text that is dates by a format."""
        return [name for name in self.texts.reading.converted if name in self.kinds]

    def read(self, as_text: Sequence[str]) -> pa.Schema:
        """Return the columns as they are read, some of them as text."""
        import pyarrow as pa

        kinds = self.kinds | dict.fromkeys([*self.spelt, *as_text], pa.string())
        kinds |= dict.fromkeys(self.marked, pa.float64())
        kinds |= dict.fromkeys(self.dates, pa.timestamp("us"))
        kinds |= dict.fromkeys(self.timed, pa.timestamp("us", "UTC"))
        return pa.schema(kinds.items())

    def stored(self) -> pa.Schema:
        """Return the columns as they are written."""
        import pyarrow as pa

        kinds = {field.name: field.type for field in self.read(self.keys)}
        kinds |= {name: self.kinds[name] for name in self.timed}
        kinds |= {NUMBER + name: self.kinds[name] for name in self.keys}
        kinds |= {SHOWN + name: pa.timestamp("us") for name in self.timed}
        return pa.schema(kinds.items())


def _settled(plan: Plan, file: str, target: Path) -> tuple[Plan, set[str]]:
    """Write a file; return the plan to which its blocks led, and what `_written` found."""
    import pyarrow as pa

    while True:
        try:
            found = _written(plan, target)
        except pa.ArrowInvalid as error:
            plan = replace(plan, kinds=_loosened(plan.kinds, error, file))
        except OSError as error:
            raise _no_room(error, target) from None
        else:
            text = plan.spelt | found - set(plan.keys)
            if text == plan.spelt:
                return plan, found
            plan = replace(plan, spelt=text)


def _order() -> list[Any]:
    """Return the types of columns in the order in which PyArrow tries them."""
    import pyarrow as pa

    times = [pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns")]
    times += [pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")]
    return [pa.null(), pa.int64(), pa.bool_(), *times, pa.float64(), pa.string()]


def _loosened(kinds: dict[str, pa.DataType], error: Exception, file: str) -> dict[str, pa.DataType]:
    """Return types in which the column that an error is about has its next one."""
    import pyarrow as pa

    found = re.search(r"In CSV column #(\d+):", str(error))
    if found is None:
        raise error
    name = list(kinds)[int(found.group(1))]
    if kinds[name] == pa.string():
        raise no_text(name, file)
    order = _order()
    place = order.index(kinds[name]) + 1 if kinds[name] in order else -1
    return {**kinds, name: order[place]}


def _written(plan: Plan, target: Path) -> set[str]:
    """Write a file, and return which columns are whole numbers with zeros before them.

    What is found to be text only now is not written to its end, but read again.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    clock, schema = plan.texts.reading.clock, plan.stored()
    found: set[str] = set()
    with pq.ParquetWriter(target, schema) as writer:
        for batch, spelling in _batches(plan):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in plan.numbers:
                spelt = pc.utf8_trim_whitespace(spelling[name])
                if name in plan.keys:
                    columns[NUMBER + name] = columns[name]
                if name in plan.keys or name in plan.spelt:
                    columns[name] = spelt
                if padded(spelt):
                    found.add(name)
            for name in plan.timed:
                written = with_offsets(spelling[name])
                moments = columns[name].cast(pa.timestamp("us", "UTC"), safe=False)
                columns[SHOWN + name] = (
                    moments.cast("timestamp[us]") if written is None else written[0]
                )
            for name in plan.marked:
                columns[name] = plan.texts.marks.numbers(columns[name])
            for name in plan.dates:
                key = Key(name, pa.chunked_array([columns[name]]))
                columns[name] = (
                    clock.converted(key).column.combine_chunks()
                    if columns[name].null_count < len(columns[name])
                    else pa.nulls(len(columns[name]), pa.timestamp("us"))
                )
            if found <= {*plan.keys, *plan.spelt}:
                arrays = [columns[name] for name in schema.names]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
    return found


def _batches(plan: Plan) -> Iterator[tuple[Any, Any]]:
    """Yield the records block by block, and beside them some columns as they are spelt."""
    import pyarrow as pa

    spelt = [*plan.numbers, *plan.timed]
    with plan.form.opened(plan.path, list(plan.kinds), plan.kinds, BLOCK) as reader:
        if not spelt:
            yield from ((batch, None) for batch in reader)
            return
        text = dict.fromkeys(spelt, pa.string())
        with plan.form.opened(plan.path, spelt, text, BLOCK) as spellings:
            yield from zip(reader, spellings, strict=True)


def _merges(target: Path, name: str, kind: pa.DataType) -> bool:
    """Return whether two spellings of a key are one number, or numbers are too large to tell."""
    import duckdb
    import pyarrow as pa

    text, number = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (name, NUMBER + name))
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
