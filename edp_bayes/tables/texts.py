"""CSV files and the like: columns typed by what they hold, whatever stands between the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.tables.arrow_columns import beyond_floats, padded
from edp_bayes.tables.clocks import with_offsets
from edp_bayes.tables.marks import NO_NUMBERS, Marks, Shown, decide, shown
from edp_bayes.tables.reading import Form, Reading, form_of
from edp_bayes.tables.several_files import require_agreement

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FIRST", "Texts", "no_text"]


FIRST = 64  # values that tell text from numbers


@dataclass(frozen=True, eq=False)
class Texts:
    """Text files that are one table.

    Parameters
    ----------
    files : sequence of str
        Their paths.
    keys : sequence of str
        Names of the key columns.
    name : str
        What they are called in messages.
    reading : Reading
        What was said of how they are read.
    locally : callable
        Takes a path and an action, and returns what that does with the file on this machine.
    """

    files: Sequence[str]
    keys: Sequence[str]
    name: str
    reading: Reading
    locally: Callable[[str, Callable[[Path], Any]], Any]
    _forms: dict[str, Form] = field(default_factory=dict, init=False, repr=False)
    _used: set[str] = field(default_factory=set, init=False, repr=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the first file."""
        first = self.files[0]
        return tuple(self.locally(first, lambda path: self.form(first, path).names(path)))

    def form(self, file: str, path: Path) -> Form:
        """Return what separates the values of the file of this path."""
        if file not in self._forms:
            self._forms[file] = form_of(path, self.reading)
        return self._forms[file]

    def load(self, names: Sequence[str] | None) -> Any:
        """Return some columns of all files, or all."""
        import pyarrow as pa

        def load_one(file: str) -> Any:
            return self.locally(file, lambda path: self._load_one(file, path, names))

        if len(self.files) == 1:
            table = load_one(self.files[0])
        else:
            tables = [load_one(file) for file in self.files]
            found = [(file, one.schema) for file, one in zip(self.files, tables, strict=True)]
            require_agreement(found, self.keys, self.name)
            table = pa.concat_tables(tables, promote_options="permissive")
        return self._with_utc(table)

    @property
    def words(self) -> str:
        """What is unusual about how the files were read, in a sentence; empty where nothing is."""
        parts = [word for form in dict.fromkeys(self._forms.values()) for word in form.words]
        if self._used:
            marks, found, _ = self._marks
            parts += marks.words(found[name] for name in sorted(self._used))
        if not parts:
            return ""
        *most, last = dict.fromkeys(parts)
        return f"Read with {', '.join(most)}{' and ' if most else ''}{last}."

    def kinds(self, schema: pa.Schema, file: str) -> dict[str, pa.DataType]:
        """Return the types of the columns of a file, refusing one that is no text of its encoding.

        What a format of dates is for is text.
        """
        from pyarrow import string, types

        forced = dict.fromkeys(self.reading.as_text, string())
        kinds = {field.name: forced.get(field.name, field.type) for field in schema}
        for name, kind in kinds.items():
            if types.is_binary(kind):
                raise no_text(name, file)
        return kinds

    def numbers(self, kinds: Mapping[str, pa.DataType]) -> list[str]:
        """Return the columns whose spelling decides whether they are numbers."""
        from pyarrow import types

        return [
            name
            for name, kind in kinds.items()
            if types.is_integer(kind)
            or (name in self.keys and (types.is_floating(kind) or types.is_boolean(kind)))
        ]

    def timed(self, kinds: Mapping[str, pa.DataType]) -> list[str]:
        """Return the columns of times whose offsets are kept."""
        return [n for n in self.reading.with_offset if getattr(kinds.get(n), "tz", None)]

    def suspects(self, kinds: Mapping[str, Any], form: Form) -> list[str]:
        """Return columns that may be numbers with other marks: text, and numbers with points.

        The latter only where points are in doubt: where no commas stand between values, or some
        numbers have commas themselves.
        """
        from pyarrow import types

        plain = form.points and self.reading.decimal != ","
        return [
            name
            for name, kind in kinds.items()
            if name not in self.keys
            and (types.is_string(kind) or (types.is_floating(kind) and not plain))
        ]

    def marked(
        self, kinds: Mapping[str, Any], first: Any, form: Form, *, refuse: bool = False
    ) -> list[str]:
        """Return which columns are numbers by the marks of the table, as all files show.

        Parameters
        ----------
        kinds : mapping of str to DataType
            Types by which they were read.
        first : pyarrow.Table or RecordBatch
            The first records, which tell what is no number.
        form : Form
            What is between the values.
        refuse : bool
            Whether to refuse those that may be read in two ways, instead of leaving them text.

        Raises
        ------
        InvalidInputError
            If one may be read in two ways, and such are refused.
        """
        from pyarrow import types

        suspects = [
            name
            for name in self.suspects(kinds, form)
            if types.is_floating(kinds[name]) or shown(first[name].slice(0, FIRST)) != NO_NUMBERS
        ]
        if not suspects:
            return []
        marks, found, unclear = self._marks
        doubtful = [name for name in suspects if name in unclear]
        if refuse and doubtful:
            raise InvalidInputError(unclear[doubtful[0]])
        chosen = [n for n in suspects if n not in unclear and marks.fit(found[n])]
        self._used.update(chosen)
        return chosen

    @property
    def found_unclear(self) -> dict[str, str]:
        """Why columns cannot be read, as far as that was looked at."""
        return self._marks[2] if "_marks" in self.__dict__ else {}

    @property
    def marks(self) -> Marks:
        """The marks of numbers."""
        return self._marks[0]

    @cached_property
    def _marks(self) -> tuple[Marks, dict[str, Shown], dict[str, str]]:
        """The marks of numbers, what all columns show, and why some cannot be read."""
        found: dict[str, Shown] = {}
        points: list[str] = []
        for file in self.files:
            self.locally(file, partial(self._look, file, found, points))
        marks, unclear = decide(
            found,
            decimal=self.reading.decimal or ("." if points and not _commas(found) else None),
            thousands=self.reading.thousands,
            name=self.name,
        )
        return marks, found, unclear

    def _look(self, file: str, found: dict[str, Shown], points: list[str], path: Path) -> None:
        """Add what the columns of a file show."""
        import pyarrow as pa

        form = self.form(file, path)
        with form.opened(path) as reader:
            kinds = {field.name: field.type for field in reader.schema}
        names = self.suspects(dict.fromkeys(kinds, pa.string()), form)
        if form.separator == ",":
            points += [name for name in names if pa.types.is_floating(kinds[name])]
        for batch in form.opened(path, names, dict.fromkeys(names, pa.string())):
            for name in names:
                found[name] = shown(batch[name], found.get(name, frozenset()))
            if all(found[name] == NO_NUMBERS for name in names):
                return

    def _load_one(self, file: str, path: Path, names: Sequence[str] | None) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        form = self.form(file, path)
        forced = {name: pa.string() for name in self.reading.as_text}
        wanted = form.names(path) if names is None else list(names)
        try:
            table = form.read(path, wanted, {k: v for k, v in forced.items() if k in wanted})
        except pa.ArrowKeyError:
            columns = form.names(path)
            lacking = next(name for name in wanted if name not in columns)
            raise InvalidInputError(
                f"{file} has no column {lacking!r}, as other files have; its columns are "
                f"{', '.join(columns)}"
            ) from None
        kinds = self.kinds(table.schema, file)
        numbers, timed = self.numbers(kinds), self.timed(kinds)
        marked = self.marked(kinds, table, form, refuse=True)
        if numbers or timed or marked:
            spelt = [*numbers, *timed, *marked]
            text = form.read(path, spelt, dict.fromkeys(spelt, pa.string()))
        for name in numbers:
            spelling = pc.utf8_trim_whitespace(text[name])
            # 007 and 7 are two keys, and so are the months 2023.1 and 2023.10.
            if padded(spelling) or (
                name in self.keys and (_merges(table[name], spelling) or beyond_floats(table[name]))
            ):
                table = _with(table, name, spelling)
        for name in timed:
            table = _with(table, name, text[name])
        for name in marked:
            table = _with(table, name, self.marks.numbers(text[name]))
        return table

    def _with_utc(self, table: Any) -> Any:
        """Return times that were all written in UTC as such."""
        import pyarrow as pa

        for name in self.reading.with_offset:
            if name in table.column_names and pa.types.is_string(table[name].type):
                found = with_offsets(table[name].unique())
                if found is not None and not found[1].any():
                    for unit in ("s", "ns"):
                        try:
                            table = _with(table, name, table[name].cast(pa.timestamp(unit, "UTC")))
                            break
                        except pa.ArrowInvalid:
                            continue
        return table


def no_text(name: str, path: str | Path) -> InvalidInputError:
    """Return what is wrong with a column that is no text of the encoding."""
    return InvalidInputError(
        f"column {name!r} of {path} is not UTF-8; save the file as UTF-8, or give its encoding, "
        "such as encoding='cp1252' (--encoding cp1252)"
    )


def _commas(found: Mapping[str, Shown]) -> bool:
    """Return whether some column shows decimal commas."""
    marks, _ = decide(found, decimal=None, thousands=None, name="")
    return marks.decimal == ","


def _with(table: Any, name: str, column: Any) -> Any:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _merges(values: Any, text: Any) -> bool:
    """Return whether two spellings are one value."""
    import pyarrow.compute as pc

    return bool(pc.less(pc.count_distinct(values), pc.count_distinct(text)).as_py())
