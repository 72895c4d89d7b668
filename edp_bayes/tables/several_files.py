"""Tables in more than one file: folders, partitioned folders, patterns, lists and remote places."""

from __future__ import annotations

import contextlib
import glob
import re
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.formatting import first_line

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = [
    "PARQUET",
    "TEXT",
    "dataset_of",
    "is_several",
    "matches",
    "require_agreement",
]

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
WILD = frozenset("*?[")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # a folder's name for records without a value
WORKS = (
    "a file, a folder, a folder of partitions such as year=2024, a pattern such as data/*.parquet, "
    "a list of files, or a place such as s3://bucket/folder"
)


def is_several(source: Any) -> bool:
    """Return whether a source is more than one local file."""
    if isinstance(source, str | Path):
        text = str(source)
        return "://" in text or Path(text).is_dir() or _is_pattern(text)
    if isinstance(source, Sequence):
        return bool(source) and all(isinstance(part, str | Path) for part in source)
    return type(source).__module__.startswith("pyarrow._dataset")


def matches(pattern: str) -> list[str]:
    """Return the files of this machine that a pattern stands for, in order; none of a plain path.

    Examples
    --------
    >>> matches("records.parquet")
    []
    """
    if not _is_pattern(pattern):
        return []
    return sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())


class Found(NamedTuple):
    """What a source stands for.

    Attributes
    ----------
    name : str
        For messages.
    files : pyarrow.dataset.Dataset or list of str
        A data set of Parquet files, or the CSV files.
    filesystem : fsspec file system, optional
        Where they lie; none for this machine.
    lacking : dict of str to str
        Columns that not all Parquet files have, and a file without them.
    """

    name: str
    files: ds.Dataset | list[str]
    filesystem: Any
    lacking: dict[str, str]


def dataset_of(source: Any) -> Found:
    """Return a data set of Parquet files, or the CSV files, and where they lie.

    Parameters
    ----------
    source : str, Path, sequence of these or pyarrow.dataset.Dataset
        Where the records are.

    Raises
    ------
    InvalidInputError
        If there is no file, files are of several formats, or a file system is unknown.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, ds.Dataset):
        return Found("the data set", source, None, {})
    if isinstance(source, str | Path):
        name = str(source)
        filesystem, files, base = _found(name)
    else:
        files, name = [str(part) for part in source], "the files"
        filesystem, base = None, None
        places = [path for path in files if "://" in path]
        if places:
            raise InvalidInputError(
                f"a list must hold files of this machine, found {places[0]}; give a folder or a "
                "pattern of that place, such as s3://bucket/folder"
            )
        missing = [path for path in files if not Path(path).is_file()]
        if missing:
            raise InvalidInputError(f"cannot read {missing[0]}: there is no such file")
    formats = {_format(path) for path in files}
    if not files or None in formats:
        odd = next((path for path in files if _format(path) is None), None)
        found = "no such file there" if odd is None else odd
        raise InvalidInputError(
            f"{name} must hold files whose names end in {', '.join(PARQUET + TEXT)}, found "
            f"{found}; what works is {WORKS}"
        )
    if len(formats) > 1:
        raise InvalidInputError(f"{name} must hold files of one format, found Parquet and CSV")
    if formats == {"csv"}:
        return Found(name, files, filesystem, {})
    partitioning = _partitioning(files, base)
    try:
        schema, lacking = _schema(files, filesystem, partitioning.schema)
        whole = ds.dataset(
            files,
            format="parquet",
            filesystem=filesystem,
            partitioning=partitioning,
            partition_base_dir=base,
            schema=schema,
        )
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(f"cannot read {name}: {error}") from None
    return Found(name, whole, filesystem, lacking)


def require_agreement(
    schemas: Sequence[tuple[str, pa.Schema]], keys: Sequence[str], name: str
) -> None:
    """Refuse CSV files that have other columns, or a column of other types."""
    columns = schemas[0][1].names
    for path, schema in schemas:
        if schema.names != columns:
            raise InvalidInputError(
                f"the files of {name} must have the same columns, found {', '.join(columns)} in "
                f"{schemas[0][0]} and {', '.join(schema.names)} in {path}"
            )
    for column in columns:
        kinds = {str(schema.field(column).type): path for path, schema in schemas}
        kinds.pop("null", None)
        if len(kinds) > 1 and set(kinds) != {"int64", "double"}:
            (one, first), (other, second) = list(kinds.items())[:2]
            of = "key column" if column in keys else "column"
            raise InvalidInputError(
                f"{of} {column!r} must have one type in all files of {name}, found {one} in "
                f"{first} and {other} in {second}"
            )


def _found(name: str) -> tuple[Any, list[str], str | None]:
    """Return the file system, the files in order, and the folder that partitions begin in."""
    if "://" not in name:
        if _is_pattern(name):
            return None, matches(name), None
        every = (path for path in Path(name).rglob("*") if path.is_file())
        return None, sorted(str(p) for p in every if _is_data(p.relative_to(name))), name
    try:
        import fsspec
    except ImportError:
        raise InvalidInputError(
            f"{name} needs fsspec, pip install 'edp_bayes[remote]', and the package of its place, "
            "such as s3fs"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(name)
        if any(mark in path for mark in WILD):
            files = sorted(system.glob(path))
        elif system.isdir(path):
            files = sorted(p for p in system.find(path) if _is_data(Path(p).relative_to(path)))
        else:
            files = [path] if system.exists(path) else []
    except (ValueError, ImportError, OSError) as error:
        raise InvalidInputError(f"cannot read {name}: {first_line(error)}") from None
    return system, [str(file) for file in files], path


def _partitioning(files: Sequence[str], base: str | None) -> Any:
    """Return what names of folders such as year=2024 say: whole numbers, dates or texts."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    values: dict[str, set[str]] = {}
    for path in files:
        folder = Path(path).parent
        if base is not None and folder.is_relative_to(base):
            folder = folder.relative_to(base)
        for part in folder.parts:
            name, is_one, value = part.partition("=")
            if is_one:
                values.setdefault(unquote(name), set()).add(unquote(value))
    kinds = [(name, _kind_of(found - {NO_VALUE})) for name, found in values.items()]
    return ds.partitioning(pa.schema(kinds), flavor="hive")


def _kind_of(values: Collection[str]) -> pa.DataType:
    """Return the type of what names of folders say."""
    import pyarrow as pa

    if values and all(re.fullmatch(r"-?\d+", one) and abs(int(one)) < 2**31 for one in values):
        return pa.int32()
    if values and all(re.fullmatch(r"\d{4}-\d\d-\d\d", value) for value in values):
        with contextlib.suppress(ValueError):
            for value in values:
                date.fromisoformat(value)
            return pa.date32()
    return pa.string()


def _schema(
    files: Sequence[str], filesystem: Any, partitions: pa.Schema
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of all files, and those that a file lacks; refuse one of two types."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    fields = {field.name: (field.type, "the names of folders") for field in partitions}
    schemas: list[pa.Schema] = []
    lacking: dict[str, str] = {}
    for path in files:
        one = ds.dataset([path], format="parquet", filesystem=filesystem).schema
        lacking |= {name: path for name in fields if name not in one.names + partitions.names}
        if schemas:
            lacking |= {name: files[0] for name in one.names if name not in fields}
        schemas.append(one)
        for field in one:
            kind, first = fields.setdefault(field.name, (field.type, path))
            if pa.types.is_null(kind):
                fields[field.name] = field.type, path
            elif not (pa.types.is_null(field.type) or _agree(kind, field.type)):
                raise InvalidInputError(
                    f"column {field.name!r} must have one type in all files, found {kind} in "
                    f"{first} and {field.type} in {path}"
                )
    return pa.unify_schemas([*schemas, partitions], promote_options="permissive"), lacking


def _agree(kind: pa.DataType, other: pa.DataType) -> bool:
    """Return whether columns of two types are one: Parquet has a single type of text."""
    from pyarrow import types

    each = (kind, other)
    return (
        kind == other
        or all(types.is_string(one) or types.is_large_string(one) for one in each)
        or all(types.is_dictionary(one) for one in each)
    )


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in WILD) and not Path(text).exists()


def _is_data(path: Path) -> bool:
    """Return whether a file of a folder is one of records: what is hidden and marks are not."""
    return path.suffix != "" and not any(part.startswith((".", "_")) for part in path.parts)


def _format(path: str) -> str | None:
    name = path.lower()
    return "parquet" if name.endswith(PARQUET) else "csv" if name.endswith(TEXT) else None
