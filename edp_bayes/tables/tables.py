"""Tables of records from any dataframe library or file."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.tables.large_files import in_engine
from edp_bayes.tables.large_texts import grouped_texts
from edp_bayes.tables.packed import STDIN, WORKBOOK, ZIP, from_stdin, unpacked, workbook
from edp_bayes.tables.reading import AS_FOUND, Reading
from edp_bayes.tables.several_files import PARQUET, TEXT, dataset_of, is_several
from edp_bayes.tables.texts import Texts
from edp_bayes.utils.formatting import first_line
from edp_bayes.utils.leftovers import Folder

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow.dataset as ds
    from narwhals.stable.v2 import LazyFrame

UNEVEN = (
    " (a line has more or fewer values than the first, as where text stands before the names of "
    "the columns: the first line must be these, so leave out what is no record)"
)
SUFFIXES = (*PARQUET, *TEXT, ZIP, WORKBOOK)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of records that are read when they are needed.

    Parameters
    ----------
    columns : tuple of str
        Names of all columns.
    read : callable
        Takes names, or None for all columns, and returns an eager Narwhals dataframe.
    stable : bool
        Whether every read is sure to return the same rows in the same order.
    lazy : narwhals.stable.v2.LazyFrame, optional
        The table in an engine, which then does the reading and grouping.
    rest : callable
        Lets an engine of our own give back memory that it keeps for what may come.
    lacking : mapping of str to str
        Columns that not all files have, and a file without them.
    unclear : mapping of str to str
        Columns that an engine holds as text because they may be read in two ways, and why.
    read_as : callable
        Returns what is unusual about how files were read, in a sentence.
    dated : bool
        Whether the keys of databases are dates already that were text by a format.
    folders : tuple of Folder
        Files of our own that the table is read from.
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str] | None], nw.DataFrame[Any]]
    stable: bool
    lazy: LazyFrame[Any] | None = None
    rest: Callable[[], None] = lambda: None
    lacking: Mapping[str, str] = MappingProxyType({})
    unclear: Mapping[str, str] = MappingProxyType({})
    read_as: Callable[[], str] = str
    dated: bool = False
    folders: tuple[Folder, ...] = ()

    def require(self, names: Sequence[str]) -> None:
        """Refuse names that are not columns, or not of all files."""
        for name in names:
            if name not in self.columns:
                raise InvalidInputError(
                    f"there is no column {name!r}; the columns are "
                    + ", ".join(map(str, self.columns))
                    + _other_separator(self.columns)
                )
        refuse_lacking(names, self.lacking)


def refuse_lacking(names: Iterable[str], lacking: Mapping[str, str]) -> None:
    """Refuse columns that not all files have: what is not there is not a missing value."""
    for name in names:
        if name in lacking:
            raise InvalidInputError(
                f"column {name!r} must be in all files, and {lacking[name]} has none; leave out "
                "such files, or write the column into them"
            )


def _other_separator(columns: Sequence[str]) -> str:
    """Return a hint where the single column of a file looks like several."""
    found = [mark for mark in (";", "\t", "|") if len(columns) == 1 and mark in columns[0]]
    return f"; separator={found[0]!r} (--separator) may be meant" if found else ""


def open_table(source: Any, keys: Sequence[str], reading: Reading = AS_FOUND) -> Table:
    """Return the table behind a dataframe or path.

    Parameters
    ----------
    source : dataframe, str, Path or sequence of paths
        Any eager or lazy dataframe that Narwhals supports, a PyArrow data set, or files: Parquet,
        text such as CSV, compressed or not, or an Excel workbook; one, several, a folder, a folder
        of partitions, a pattern, a place such as s3://bucket/folder, or - for standard input.
    keys : sequence of str
        Names of the key columns: those of a text file are text where numbers would merge keys.
    reading : Reading
        What was said of how text is read.

    Raises
    ------
    InputTypeError
        If it is neither.
    InvalidInputError
        If a file cannot be read, columns share a name, or text may be read in two ways.
    """
    if isinstance(source, str | Path) and str(source) == STDIN:
        folder, source = from_stdin()
        return _within(folder, open_table(source, keys, reading))
    if isinstance(source, str | Path) and Path(source).is_file():
        if str(source).lower().endswith(ZIP):
            folder, files = unpacked(Path(source))
            members = files[0] if len(files) == 1 else files
            return _within(folder, open_table(members, keys, reading))
        if str(source).lower().endswith(WORKBOOK):
            _refuse_text(reading, source)
            return _open_frame(workbook(Path(source)))
    if is_several(source):
        return _open_several(source, keys, reading)
    if isinstance(source, str | Path):
        return _open_file(Path(source), keys, reading)
    _refuse_text(reading, "a dataframe")
    return _open_frame(source)


def _within(folder: Folder, table: Table) -> Table:
    """Return a table that keeps a folder of our own as long as it is there."""
    return replace(table, folders=(folder, *table.folders))


def _refuse_text(reading: Reading, what: object) -> None:
    """Refuse options about text for what is no text."""
    if reading.said:
        option = next(iter(reading.said))
        raise InvalidInputError(
            f"{option}= (--{option}) is for text files such as CSV, found {what}: leave it out"
        )


def _open_frame(source: Any) -> Table:
    import narwhals as nw
    import narwhals.stable.v2 as stable
    from narwhals.exceptions import NarwhalsError

    try:
        frame = nw.from_native(source)
        columns = tuple(frame.collect_schema().names())
    except TypeError:
        raise InputTypeError(
            "a table must be a dataframe that Narwhals supports (pandas, Polars, PyArrow, DuckDB "
            f"and others) or the path of a file, found {type(source).__name__}"
        ) from None
    except (NarwhalsError, ValueError) as error:
        raise InvalidInputError(f"the table cannot be used: {error}") from None
    except Exception as error:  # Of an engine: a closed connection, say, or a lost session.
        raise InvalidInputError(f"the table cannot be used: {first_line(error)}") from error
    if isinstance(frame, nw.LazyFrame):
        lazy = frame

        def collect(names: Sequence[str] | None) -> nw.DataFrame[Any]:
            return (lazy if names is None else lazy.select(*names)).collect()

        return Table(columns, collect, stable=False, lazy=stable.from_native(lazy.to_native()))
    eager = _own(frame)
    return Table(columns, lambda names: eager if names is None else eager.select(*names), True)


def _own(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Return a frame that later changes of the user's own do not reach.

    Only pandas changes in place; from version 3 on its shallow copies are made real on writing.
    """
    import narwhals as nw

    if not frame.implementation.is_pandas():
        return frame
    native = frame.to_native()
    deep = frame.implementation._backend_version() < (3,)
    return nw.from_native(native.copy(deep=deep), eager_only=True)


def _open_several(source: Any, keys: Sequence[str], reading: Reading) -> Table:
    """Return the table in several files; folders named year=2024 are columns."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    name, found, system, lacking = dataset_of(source)
    if isinstance(found, list):
        return _open_texts(Texts(found, keys, name, reading, partial(_locally, system)), system)
    _refuse_text(reading, "Parquet")
    local = system is None and not isinstance(source, ds.Dataset)
    plain = local and pq.read_schema(found.files[0]).equals(found.schema)
    return replace(_open_parquet(name, found, reading, whole_files=plain), lacking=lacking)


def _open_parquet(
    name: str | Path, found: ds.Dataset, reading: Reading, *, whole_files: bool
) -> Table:
    """Return the table in a data set of Parquet files, which may stand for files as they are."""

    def read(names: Sequence[str] | None) -> nw.DataFrame[Any]:
        chosen = None if names is None else list(names)
        return _eager(_reading(name, lambda: found.to_table(columns=chosen)), names)

    columns = tuple(found.schema.names)
    zone = reading.clock.time_zone
    engine = _reading(name, lambda: in_engine(found, whole_files=whole_files, time_zone=zone))
    return Table(columns, read, False, *engine)


def _open_texts(texts: Texts, system: Any = None) -> Table:
    """Return the table in one text file or several."""
    columns = _distinct(texts.columns, texts.name)
    engine = grouped_texts(texts, system)
    unclear = {} if engine.lazy is None else texts.found_unclear
    return Table(
        columns,
        lambda names: _eager(texts.load(names), names),
        False,
        *engine,
        unclear=unclear,
        dated=engine.lazy is not None and bool(texts.reading.converted),
        read_as=lambda: texts.words,
    )


def _eager(table: Any, names: Sequence[str] | None) -> nw.DataFrame[Any]:
    """Return an Arrow table as a frame."""
    import narwhals as nw

    # A callable query gets whole rows, and of a file pandas is the likeliest form wanted.
    return nw.from_native(table.to_pandas() if names is None else table, eager_only=True)


def _locally[T](system: Any, path: str, action: Callable[[Path], T]) -> T:
    """Return what is found of a text file, copied to this machine meanwhile if it is elsewhere."""
    if system is None:
        return _reading(path, lambda: action(Path(path)))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        try:
            system.get_file(path, str(copy))
        except OSError as error:
            raise InvalidInputError(f"cannot read {path}: {error}") from None
        return _reading(copy, lambda: action(copy))


def _open_file(path: Path, keys: Sequence[str], reading: Reading) -> Table:
    name = path.name.lower()
    if not path.suffix and not path.exists():
        raise InvalidInputError(f"cannot read {path}: there is no such file or folder")
    if not name.endswith(SUFFIXES):
        raise InvalidInputError(
            f"cannot tell the format of {path}: its name must end in {', '.join(SUFFIXES)}"
        )
    if not name.endswith(PARQUET):
        return _open_texts(Texts([str(path)], keys, str(path), reading, partial(_locally, None)))
    _refuse_text(reading, path)
    return _open_parquet(path, _reading(path, lambda: _dataset(path)), reading, whole_files=True)


def _reading[T](place: str | Path, action: Callable[[], T]) -> T:
    import pyarrow as pa

    path = Path(place)
    try:
        return action()
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"the column names of {path} are not UTF-8; save the file as UTF-8, or give its "
            "encoding, such as encoding='cp1252' (--encoding cp1252)"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {_system_words(path, error)}") from None
    except pa.ArrowException as error:
        ragged = UNEVEN if re.search(r"Expected \d+ columns", str(error)) else ""
        raise InvalidInputError(f"cannot read {path}: {error}{ragged}") from error


def _system_words(path: Path, error: OSError) -> str:
    """Return why a file cannot be read, in words of our own."""
    if not path.exists():
        return "there is no such file"
    if path.is_dir():
        return "it is a folder, not a file"
    if error.errno:
        return os.strerror(error.errno)
    kind = "Parquet" if path.suffix.lower() in (".parquet", ".pq") else "CSV"
    return f"it is not a whole {kind} file"


def _distinct(columns: Sequence[str], name: str | Path) -> tuple[str, ...]:
    """Return names of columns, refusing one that stands there twice."""
    doubled = [column for column in columns if columns.count(column) > 1]
    if doubled:
        raise InvalidInputError(f"{name} has more than one column {doubled[0]!r}")
    return tuple(columns)


def _dataset(path: Path) -> ds.Dataset:
    """Return a file as a data set, in which the name of its folder is no column."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    _distinct(pq.read_schema(path).names, path)  # What else is wrong with a file is said here, too.
    return ds.dataset(str(path), format="parquet")
