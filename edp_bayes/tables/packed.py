"""Tables within other files: archives, workbooks and standard input."""

from __future__ import annotations

import gzip
import shutil
import sys
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.tables import memory
from edp_bayes.tables.several_files import PARQUET, TEXT
from edp_bayes.utils.leftovers import Folder

__all__ = ["STDIN", "WORKBOOK", "ZIP", "from_stdin", "unpacked", "workbook"]

STDIN, ZIP, WORKBOOK = "-", ".zip", ".xlsx"
BLOCK = 2**22
# How much memory a workbook takes for each byte of its sheets.
WORKBOOK_BYTES = 4
STARTS = {b"PAR1": ".parquet", gzip.compress(b"")[:2]: ".csv.gz", b"PK\x03\x04": ZIP}


def from_stdin() -> tuple[Folder, str]:
    """Return standard input as a file in a folder of our own: a table is read several times."""
    folder = Folder("edp_bayes_stdin_")
    source = getattr(sys.stdin, "buffer", None)
    if source is None or sys.stdin.isatty():
        raise InvalidInputError("the table - is standard input, and nothing is sent to it")
    start: bytes = source.read(4)
    suffix = next((end for begin, end in STARTS.items() if start.startswith(begin)), ".csv")
    path = folder.path / f"stdin{suffix}"
    try:
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(source, file, BLOCK)
    except OSError as error:
        raise _no_room(STDIN, folder, error.strerror or error) from None
    return folder, str(path)


def unpacked(path: Path) -> tuple[Folder, list[str]]:
    """Return the files of an archive, in a folder of our own.

    Raises
    ------
    InvalidInputError
        If it is no archive, needs a password, holds other files, or more than the disk.
    """
    folder = Folder("edp_bayes_zip_")
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if _is_record(one)]
            odd = [m.filename for m in members if not m.filename.lower().endswith(PARQUET + TEXT)]
            if odd or not members:
                raise InvalidInputError(
                    f"{path} must hold files whose names end in {', '.join(PARQUET + TEXT)}, found "
                    f"{odd[0] if odd else 'none'}"
                )
            room = shutil.disk_usage(folder.path).free
            size = sum(member.file_size for member in members)
            if size > room:
                said = f"it holds {size / 1e9:.3g} GB, and {room / 1e9:.3g} GB are free"
                raise _no_room(path, folder, said)
            files = []
            for number, member in enumerate(members):
                target = folder.path / f"{number:04}_{PurePosixPath(member.filename).name}"
                with archive.open(member) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, BLOCK)
                files.append(str(target))
    except zipfile.BadZipFile as error:
        raise InvalidInputError(
            f"cannot read {path}: it is not a whole archive ({error})"
        ) from None
    except (RuntimeError, NotImplementedError) as error:
        raise InvalidInputError(f"cannot read {path}: {error}; unpack it yourself") from None
    except OSError as error:
        raise _no_room(path, folder, error.strerror or error) from None
    return folder, files


def _is_record(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    hidden = any(part.startswith((".", "_")) and part != ".." for part in parts)
    return not (member.is_dir() or hidden)


def workbook(path: Path) -> Any:
    """Return the one sheet of a workbook that has records, as a table of Arrow.

    Raises
    ------
    InvalidInputError
        If it cannot be read, has records in several sheets, or the memory does not hold it.
    """
    try:
        import fastexcel
    except ImportError:
        raise InvalidInputError(
            f"{path} needs fastexcel, pip install 'edp_bayes[excel]'; or save it as CSV"
        ) from None
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        room = memory.allowed() - memory.used()
        if size * WORKBOOK_BYTES > room:
            raise InvalidInputError(
                f"{path} takes {size * WORKBOOK_BYTES / 1e9:.3g} GB while it is read, and "
                f"{max(room, 0) / 1e9:.3g} GB are left: save it as CSV"
            )
        book = fastexcel.read_excel(path)
        sheets = {name: book.load_sheet(name) for name in book.sheet_names}
    except (zipfile.BadZipFile, fastexcel.FastExcelError, OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read {path} as a workbook: {error}") from None
    full = [name for name, sheet in sheets.items() if sheet.height]
    if len(full) != 1:
        found = f"in {', '.join(map(repr, full))}" if full else "in none"
        raise InvalidInputError(
            f"{path} must have records in one sheet, found {found}: save that one as a file"
        )
    return _whole_numbers(sheets[full[0]].to_arrow())


def _whole_numbers(table: Any) -> Any:
    """Return a table whose columns of whole numbers are such: a workbook has only floats."""
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        table = pa.Table.from_batches([table])
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            try:
                whole = table[field.name].cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, field.name, whole)
    return table


def _no_room(what: object, folder: Folder, words: object) -> InvalidInputError:
    return InvalidInputError(
        f"{what} is unpacked in {folder.path.parent} first, which failed ({words}): give a folder "
        "with room as TMPDIR, or unpack it yourself"
    )
