"""How text files are read: marks between and within values, encoding, dates."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.tables.clocks import AS_IT_IS, UNIX, Clock
from edp_bayes.tables.marks import require_marks

__all__ = ["AS_FOUND", "Form", "Reading", "form_of"]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "bar": "|"}
# A number in quotes that has a comma.
WITH_COMMA = re.compile(r'"\s*[+-]?[\d.\']*\d,\d+[\d,.]*\s*"')
# Bytes from which separator and encoding are known, and lines of them.
SAMPLE, LINES = 2**18, 200
BYTE_ORDERS = (
    (codecs.BOM_UTF8, "utf8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Reading:
    """How text files are read, as far as it was said; the rest is found where it is plain.

    Parameters
    ----------
    database : tuple of str
        Key columns of the databases.
    clock : Clock
        How they are times.
    separator : str, optional
        Mark between values; also "tab".
    decimal : {".", ","}, optional
        Decimal mark.
    thousands : {".", ",", "'", " "}, optional
        Mark between thousands.
    encoding : str, optional
        Name of the encoding, such as "cp1252".

    Raises
    ------
    InvalidInputError
        If a mark or an encoding is not known, or two marks are the same.
    """

    database: tuple[str, ...] = ()
    clock: Clock = AS_IT_IS
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None:
            separator = NAMES.get(separator, separator)
            if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n':
                raise InvalidInputError(
                    f"separator must be one character or 'tab', found {self.separator!r}"
                )
            if not separator.isascii():
                raise InvalidInputError(f"separator must be an ASCII character, found {separator}")
        object.__setattr__(self, "separator", separator)
        require_marks(self.decimal, self.thousands)
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns that a format of dates is for, whatever else they look like."""
        by_format = self.clock.date_format not in (None, *UNIX)
        return self.database if by_format else ()

    @property
    def converted(self) -> tuple[str, ...]:
        """Columns of dates by a format that say everything of the clock."""
        return () if "%z" in str(self.clock.date_format) else self.as_text

    @property
    def with_offset(self) -> tuple[str, ...]:
        """Columns whose offsets from UTC are kept, where they are times."""
        local = self.clock.every is not None and self.clock.time_zone is None
        return self.database if local and not self.as_text else ()

    @property
    def said(self) -> dict[str, str]:
        """The options about text that were given."""
        every = ("separator", "decimal", "thousands", "encoding")
        return {name: getattr(self, name) for name in every if getattr(self, name) is not None}


AS_FOUND = Reading()  # nothing was said


@dataclass(frozen=True)
class Form:
    """What separates the values of a text file, its encoding, and whether points are decimal marks.

    That is so where commas stand between values, and none within numbers.
    """

    separator: str = ","
    encoding: str = "utf8"
    points: bool = True

    @property
    def words(self) -> list[str]:
        """What is unusual about it."""
        between = SEPARATORS.get(self.separator, repr(self.separator))
        return [
            *([] if self.separator == "," else [f"{between} between values"]),
            *([] if self.encoding == "utf8" else [f"the encoding {self.encoding}"]),
        ]

    def opened(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        block: int | None = None,
    ) -> Any:
        """Return a reader of a file block by block; only an empty field is missing."""
        from pyarrow import csv as arrow

        return arrow.open_csv(path, **self._options(columns, types, block))

    def read(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return a file as a table; only an empty field is missing."""
        from pyarrow import csv as arrow

        return arrow.read_csv(path, **self._options(columns, types))

    def _options(
        self,
        columns: Sequence[str] | None,
        types: Mapping[str, Any] | None,
        block: int | None = None,
    ) -> dict[str, Any]:
        from pyarrow import csv as arrow

        return {
            "read_options": arrow.ReadOptions(encoding=self.encoding, block_size=block),
            "parse_options": arrow.ParseOptions(delimiter=self.separator),
            # A key that reads "NA" or "null" is a key.
            "convert_options": arrow.ConvertOptions(
                null_values=[""],
                strings_can_be_null=True,
                include_columns=None if columns is None else list(columns),
                column_types=dict(types or {}),
            ),
        }

    def names(self, path: str | Path) -> list[str]:
        """Return the names of a file's columns."""
        with self.opened(path) as reader:
            return list(reader.schema.names)


def form_of(path: str | Path, reading: Reading) -> Form:
    """Return what separates the values of a text file and its encoding, said or plain.

    Raises
    ------
    InvalidInputError
        If lines may be separated in two ways, or the text is not of its encoding.
    """
    import pyarrow as pa

    with pa.input_stream(str(path)) as file:
        start: bytes = file.read(SAMPLE)
    encoding = reading.encoding or _plain_encoding(start)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
    if len(start) == SAMPLE:
        text = text.rpartition("\n")[0]
    if reading.separator is not None:
        separator = reading.separator
    elif str(path).lower().removesuffix(".gz").endswith(".tsv"):
        separator = "\t"
    else:
        separator = _plain_separator(text, path)
    return Form(separator, encoding, separator == "," and not WITH_COMMA.search(text))


def _plain_encoding(start: bytes) -> str:
    """Return UTF-8, or UTF-16 where a mark or every second byte shows it."""
    for mark, encoding in BYTE_ORDERS:
        if start.startswith(mark):
            return encoding
    if len(start) >= 4:
        for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            zeros = start[first::2].count(0)
            if zeros > 0.4 * len(start) / 2 and not start[1 - first :: 2].count(0):
                return encoding
    return "utf8"


def _plain_separator(text: str, path: str | Path) -> str:
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)[:LINES]
    found = [mark for mark in SEPARATORS if _separates(lines, mark)]
    if len(found) > 1:
        raise InvalidInputError(
            f"the lines of {path} have as many {SEPARATORS[found[0]]} each as {
                ' and '.join(SEPARATORS[mark] for mark in found[1:])
            }: separator={found[0]!r} or {found[1]!r} "
            "(--separator) says what is between values"
        )
    return found[0] if found else ","


def _separates(lines: Sequence[str], mark: str) -> bool:
    """Return whether all lines have as many values between marks, and more than one."""
    try:
        counts = {len(row) for row in csv.reader(lines, delimiter=mark) if row}
    except csv.Error:
        return False
    return len(counts) == 1 and counts.pop() > 1


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
        "a".encode(name)
    except (LookupError, TypeError, ValueError):
        raise InvalidInputError(
            f"encoding must be the name of one, such as utf-8, utf-16 or cp1252, found {name!r}"
        ) from None
    plain = found.name.replace("utf-8", "utf8")
    return "utf8" if plain in ("utf8", "ascii", "utf8-sig", "utf_8_sig") else found.name
