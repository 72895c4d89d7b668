"""Tables of records from any dataframe library or file, and their key columns as integers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records import arrow_columns
from edp_bayes.utils import labels

if TYPE_CHECKING:
    import narwhals as nw

Integers = NDArray[np.int64]

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
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str] | None], nw.DataFrame[Any]]
    stable: bool

    def require(self, names: Iterable[str]) -> None:
        """Refuse names that are not columns."""
        for name in names:
            if name not in self.columns:
                raise InvalidInputError(
                    f"there is no column {name!r}; the columns are "
                    + ", ".join(map(str, self.columns))
                    + _other_separator(self.columns)
                )


def _other_separator(columns: Sequence[str]) -> str:
    """Return a hint where the single column of a file looks like several."""
    found = [mark for mark in (";", "\t", "|") if len(columns) == 1 and mark in columns[0]]
    return f"; values must be separated by commas, found {found[0]!r}" if found else ""


def open_table(source: Any, keys: Sequence[str]) -> Table:
    """Return the table behind a dataframe or path.

    Parameters
    ----------
    source : dataframe, str or Path
        Any eager or lazy dataframe that Narwhals supports, or a Parquet or CSV file.
    keys : sequence of str
        Names of the key columns: those of a CSV file are text where numbers would merge keys.

    Raises
    ------
    InputTypeError
        If it is neither.
    InvalidInputError
        If a file cannot be read, or columns share a name.
    """
    if isinstance(source, str | Path):
        return _open_file(Path(source), keys)
    return _open_frame(source)


def _open_frame(source: Any) -> Table:
    import narwhals as nw
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
    if isinstance(frame, nw.LazyFrame):
        lazy = frame

        def collect(names: Sequence[str] | None) -> nw.DataFrame[Any]:
            return (lazy if names is None else lazy.select(*names)).collect()

        return Table(columns, collect, stable=False)
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


def _open_file(path: Path, keys: Sequence[str]) -> Table:
    name = path.name.lower()
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
    return Table(tuple(columns), read, stable=False)


def _reading[T](path: Path, action: Callable[[], T]) -> T:
    import pyarrow as pa

    try:
        return action()
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"the column names of {path} are not UTF-8; save the file as UTF-8"
        ) from None
    except (OSError, pa.ArrowException) as error:
        hint = _other_separator(_first_line(path)) if isinstance(error, pa.ArrowInvalid) else ""
        raise InvalidInputError(f"cannot read {path}: {error}{hint}") from error


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


def _load_parquet(path: Path, names: Sequence[str] | None) -> Any:
    import pyarrow.parquet as pq

    # The plain file reader: the data set reader would turn a folder's name into a column.
    with pq.ParquetFile(path) as file:
        return file.read(columns=None if names is None else list(names))


def _csv_schema(path: Path) -> list[str]:
    from pyarrow import csv

    with csv.open_csv(path, convert_options=csv.ConvertOptions(null_values=[""])) as reader:
        return list(reader.schema.names)


def _load_csv(path: Path, names: Sequence[str] | None, *, keys: Sequence[str]) -> Any:
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

    table = read(None if names is None else list(names), {})
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
            if _is_padded(spelt) or (name in keys and _merges(table[name], spelt)):
                table = table.set_column(table.schema.get_field_index(name), name, spelt)
    return table


def _is_padded(column: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, r"^[+-]?0\d")).as_py())


def _merges(values: Any, text: Any) -> bool:
    """Return whether two spellings are one value."""
    import pyarrow.compute as pc

    return bool(pc.less(pc.count_distinct(values), pc.count_distinct(text)).as_py())


def factorise(frame: nw.DataFrame[Any], columns: Sequence[str]) -> tuple[Integers, NDArray[Any]]:
    """Return the position of every row's key in the sorted distinct keys, and those keys.

    Parameters
    ----------
    frame : narwhals.DataFrame
        Rows.
    columns : sequence of str
        One key column, or several of a compound key.

    Returns
    -------
    codes : ndarray of int
        Shape (row,).
    keys : ndarray
        Sorted labels; tuples for a compound key. Ordered categories keep their order, text
        with numbers is sorted by them, and a period is the time at which it begins.

    Raises
    ------
    InvalidInputError
        If a key is missing; names the column and how many.
    InputTypeError
        If a column cannot be a key.
    """
    codes, keys = _factorise_column(frame[columns[0]], columns[0])
    parts = [keys]
    for name in columns[1:]:
        code, key = _factorise_column(frame[name], name)
        distinct, codes = np.unique(codes * key.size + code, return_inverse=True)
        parts = [part[distinct // key.size] for part in parts] + [key[distinct % key.size]]
    return codes, parts[0] if len(parts) == 1 else labels.compound(parts)


def _factorise_column(series: nw.Series[Any], name: str) -> tuple[Integers, NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = _plain_column(series)
        missing = int(pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0)
        if missing:
            raise InvalidInputError(
                f"key column {name!r} has {missing} missing value(s) in {len(column)} records; "
                "every record needs a database and an individual"
            )
        known = arrow_columns.categories(series)
        coded = arrow_columns.whole(column.dictionary_encode())
        if known is not None and known.type.ordered:
            places = pc.index_in(coded.dictionary, known.dictionary.cast(coded.dictionary.type))
            order = pc.array_sort_indices(places).to_numpy()
        elif pa.types.is_string(coded.dictionary.type) or pa.types.is_large_string(
            coded.dictionary.type
        ):
            order = labels.natural_order(coded.dictionary.to_pylist())
        else:
            order = pc.array_sort_indices(coded.dictionary).to_numpy()
    except (pa.ArrowException, TypeError) as error:
        raise InputTypeError(
            f"column {name!r} of type {series.dtype} cannot be a key: {error}"
        ) from None
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    codes = rank[coded.indices.to_numpy(zero_copy_only=False)]
    return codes, _key_labels(coded.dictionary.take(pa.array(order)), name)


def _plain_column(series: nw.Series[Any]) -> Any:
    """Return an Arrow column that Arrow can sort, in one form for every library."""
    import pyarrow as pa

    column = arrow_columns.chunks(series)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        with contextlib.suppress(pa.ArrowInvalid):  # Finer than microseconds: keep it so.
            column = column.cast(pa.timestamp("us", column.type.tz))
    if pa.types.is_floating(column.type):
        # -0.0 + 0.0 is 0.0: two spellings of one number are one key.
        column = pa.chunked_array([pa.array(column.to_numpy() + 0.0)])
    return column


def _key_labels(keys: Any, name: str) -> NDArray[Any]:
    import pyarrow as pa

    kind = keys.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        values = keys.to_numpy(zero_copy_only=False)
        fits = values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < 8)
        return labels.as_labels(values.astype(np.int64) if fits else values, name)
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return labels.as_labels(keys.to_numpy(zero_copy_only=False), name)
    return labels.as_labels(labels.as_objects(keys.to_pylist()), name)
