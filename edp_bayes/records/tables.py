"""Tables of records from any dataframe library or file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.arrow_columns import beyond_floats, padded
from edp_bayes.records.large_files import Engine, in_engine
from edp_bayes.records.large_texts import grouped_texts
from edp_bayes.records.several_files import dataset_of, is_several, load_texts
from edp_bayes.utils.formatting import first_line

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.stable.v2 import LazyFrame

LONGEST_HEADER = 100_000
SUFFIXES = (".parquet", ".pq", ".csv", ".csv.gz")


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
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str] | None], nw.DataFrame[Any]]
    stable: bool
    lazy: LazyFrame[Any] | None = None
    rest: Callable[[], None] = lambda: None
    lacking: Mapping[str, str] = MappingProxyType({})

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
    return f"; values must be separated by commas, found {found[0]!r}" if found else ""


def open_table(source: Any, keys: Sequence[str]) -> Table:
    """Return the table behind a dataframe or path.

    Parameters
    ----------
    source : dataframe, str, Path or sequence of paths
        Any eager or lazy dataframe that Narwhals supports, a PyArrow data set, or Parquet or CSV
        files: one, several, a folder, a folder of partitions, a pattern or a place such as
        s3://bucket/folder.
    keys : sequence of str
        Names of the key columns: those of a CSV file are text where numbers would merge keys.

    Raises
    ------
    InputTypeError
        If it is neither.
    InvalidInputError
        If a file cannot be read, or columns share a name.
    """
    if is_several(source):
        return _open_several(source, keys)
    if isinstance(source, str | Path):
        return _open_file(Path(source), keys)
    return _open_frame(source)


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


def _open_several(source: Any, keys: Sequence[str]) -> Table:
    """Return the table in several files; folders named year=2024 are columns."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    name, found, system, lacking = dataset_of(source)

    def load(names: Sequence[str] | None) -> Any:
        chosen = None if names is None else list(names)
        if not isinstance(found, list):
            return _reading(name, lambda: found.to_table(columns=chosen))
        if system is None:
            tables = (
                (path, _reading(path, partial(_load_csv, path, names, keys=keys))) for path in found
            )
        else:
            load_one = partial(_load_csv, names=names, keys=keys)
            tables = ((path, _remote(system, path, load_one)) for path in found)
        return load_texts(tables, keys, name)

    def read(names: Sequence[str] | None) -> nw.DataFrame[Any]:
        import narwhals as nw

        table = load(names)
        return nw.from_native(table.to_pandas() if names is None else table, eager_only=True)

    engine = Engine()
    if not isinstance(found, list):
        columns = tuple(found.schema.names)
        local = system is None and not isinstance(source, ds.Dataset)
        plain = local and pq.read_schema(found.files[0]).equals(found.schema)
        engine = _reading(name, lambda: in_engine(found, whole_files=plain))
    else:
        if system is None:
            columns = tuple(_reading(found[0], partial(_csv_schema, found[0])))
        else:
            columns = tuple(_remote(system, found[0], _csv_schema))
        engine = grouped_texts(found, keys, name, partial(_at_hand, system), system)
    return Table(columns, read, False, *engine, lacking)


def _remote[T](system: Any, path: str, action: Callable[[Path], T]) -> T:
    """Return what is found of a CSV file of a file system, copied to this machine meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(path).name
        try:
            system.get_file(path, str(copy))
        except OSError as error:
            raise InvalidInputError(f"cannot read {path}: {error}") from None
        return _reading(copy, lambda: action(copy))


def _at_hand[T](system: Any, path: str, action: Callable[[Path], T]) -> T:
    """Return what is found of a CSV file, wherever it is."""
    if system is not None:
        return _remote(system, path, action)
    return _reading(path, lambda: action(Path(path)))


def _open_file(path: Path, keys: Sequence[str]) -> Table:
    name = path.name.lower()
    if not path.suffix and not path.exists():
        raise InvalidInputError(f"cannot read {path}: there is no such file or folder")
    if not name.endswith(SUFFIXES):
        raise InvalidInputError(
            f"cannot tell the format of {path}: its name must end in {', '.join(SUFFIXES)}"
        )
    schema, load = (
        (_parquet_schema, _load_parquet)
        if name.endswith((".parquet", ".pq"))
        else (_csv_schema, partial(_load_csv, keys=keys))
    )

    def read(names: Sequence[str] | None) -> nw.DataFrame[Any]:
        import narwhals as nw

        table = _reading(path, lambda: load(path, names))
        # A callable query gets whole rows, and of a file pandas is the likeliest form wanted.
        return nw.from_native(table.to_pandas() if names is None else table, eager_only=True)

    columns = _reading(path, lambda: schema(path))
    doubled = [column for column in columns if columns.count(column) > 1]
    if doubled:
        raise InvalidInputError(f"{path} has more than one column {doubled[0]!r}")
    engine = Engine()
    if load is _load_parquet:
        engine = _reading(path, lambda: in_engine(_dataset(path), whole_files=True))
    else:
        engine = grouped_texts([str(path)], keys, str(path), partial(_at_hand, None))
    return Table(tuple(columns), read, False, *engine)


def _reading[T](place: str | Path, action: Callable[[], T]) -> T:
    import pyarrow as pa

    path = Path(place)
    try:
        return action()
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"the column names of {path} are not UTF-8; save the file as UTF-8"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {_system_words(path, error)}") from None
    except pa.ArrowException as error:
        hint = _other_separator(_first_line(path)) if isinstance(error, pa.ArrowInvalid) else ""
        raise InvalidInputError(f"cannot read {path}: {error}{hint}") from error


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


def _first_line(path: Path) -> list[str]:
    """Return what a CSV file without its separator would have as columns; nothing of others."""
    import pyarrow as pa

    if not path.name.lower().endswith((".csv", ".csv.gz")):
        return []
    with pa.input_stream(str(path)) as file:
        start: bytes = file.read(LONGEST_HEADER)
    line = start.partition(b"\n")[0].decode("utf-8", "replace")
    return line.split(",")


def _parquet_schema(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def _dataset(path: Path) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(str(path), format="parquet")


def _load_parquet(path: Path, names: Sequence[str] | None) -> Any:
    import pyarrow.parquet as pq

    # The plain file reader: the data set reader would turn a folder's name into a column.
    with pq.ParquetFile(path) as file:
        return file.read(columns=None if names is None else list(names))


def _csv_schema(path: str | Path) -> list[str]:
    from pyarrow import csv

    with csv.open_csv(path, convert_options=csv.ConvertOptions(null_values=[""])) as reader:
        return list(reader.schema.names)


def _load_csv(path: str | Path, names: Sequence[str] | None, *, keys: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    # Only an empty field is missing: a key that reads "NA" or "null" is a key.
    def read(columns: Sequence[str] | None, types: Mapping[str, Any]) -> Any:
        options = csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            include_columns=columns,
            column_types=types,
        )
        return csv.read_csv(path, convert_options=options)

    try:
        table = read(None if names is None else list(names), {})
    except pa.ArrowKeyError:
        columns = _csv_schema(path)
        lacking = next(name for name in names or () if name not in columns)
        raise InvalidInputError(
            f"{path} has no column {lacking!r}, as other files have; its columns are "
            f"{', '.join(columns)}"
        ) from None
    kinds = {field.name: field.type for field in table.schema}
    for name, kind in kinds.items():
        if pa.types.is_binary(kind):
            raise InvalidInputError(
                f"column {name!r} of {path} is not UTF-8; save the file as UTF-8"
            )
    numbers = [
        name
        for name, kind in kinds.items()
        if pa.types.is_integer(kind)
        or (name in keys and (pa.types.is_floating(kind) or pa.types.is_boolean(kind)))
    ]
    if numbers:
        text = read(numbers, dict.fromkeys(numbers, pa.string()))
        for name in numbers:
            spelt = pc.utf8_trim_whitespace(text[name])
            # 007 and 7 are two keys, and so are the months 2023.1 and 2023.10.
            if padded(spelt) or (
                name in keys and (_merges(table[name], spelt) or beyond_floats(table[name]))
            ):
                table = table.set_column(table.schema.get_field_index(name), name, spelt)
    return table


def _merges(values: Any, text: Any) -> bool:
    """Return whether two spellings are one value."""
    import pyarrow.compute as pc

    return bool(pc.less(pc.count_distinct(values), pc.count_distinct(text)).as_py())
