"""Numbers with decimal commas and marks between thousands: what they show, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edp_bayes.exceptions import InvalidInputError

__all__ = ["NO_NUMBERS", "Marks", "Shown", "decide", "require_marks", "shown"]

DECIMALS = (".", ",")
# Blanks may be of any width, apostrophes straight or not.
THOUSANDS = {".": ".", ",": ",", "'": "'’", " ": " \u00a0\u202f\u2009"}
WORDS = {".": "dots", ",": "commas", "'": "apostrophes", " ": "blanks"}
SIGN, END = r"^\s*[+-]?", r"\s*$"

# What a number shows: its kind, and what it needs as decimal mark and between thousands.
Kind = tuple[str | None, str | None]


def _patterns() -> list[tuple[str, tuple[Kind, ...]]]:
    """Return patterns, the first of which a value fits, and the ways to read what fits."""
    found: list[tuple[str, tuple[Kind, ...]]] = [(r"\d+([eE][+-]?\d+)?", ((None, None),))]
    for mark, other in ((".", ","), (",", ".")):
        one, two = f"[{mark}]", f"[{other}]"
        found += [
            (rf"[1-9]\d{{0,2}}{one}\d{{3}}", ((mark, None), (None, mark))),
            (rf"[1-9]\d{{0,2}}({one}\d{{3}}){{2,}}", ((None, mark),)),
            (rf"(\d+{one}\d*|{one}\d+)([eE][+-]?\d+)?", ((mark, None),)),
            (rf"[1-9]\d{{0,2}}({one}\d{{3}})+{two}\d*", ((other, mark),)),
        ]
    for mark in ("'", " "):
        groups = rf"[1-9]\d{{0,2}}([{THOUSANDS[mark]}]\d{{3}})+"
        found.append((groups, ((None, mark),)))
        found += [(rf"{groups}[{decimal}]\d*", ((decimal, mark),)) for decimal in DECIMALS]
    return found


PATTERNS = _patterns()
# The kinds that a value may show, by their number among the patterns.
Shown = frozenset[int]
NO_NUMBERS: Shown = frozenset({-1})


def shown(column: Any, before: Shown = frozenset()) -> Shown:
    """Return which kinds of numbers text shows, with those that it showed before.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        Text.
    before : frozenset of int
        What earlier parts of the column showed.
    """
    import pyarrow.compute as pc

    if before == NO_NUMBERS:
        return before
    found = set(before)
    rest = column.drop_null()
    if len(rest) > 64 and shown(rest.slice(0, 64)) == NO_NUMBERS:
        return NO_NUMBERS
    for number, (pattern, _) in enumerate(PATTERNS):
        if not len(rest):
            break
        fits = pc.match_substring_regex(rest, f"{SIGN}{pattern}{END}")
        if pc.any(fits).as_py():
            found.add(number)
            rest = rest.filter(pc.invert(fits))
    return NO_NUMBERS if len(rest) else frozenset(found)


@dataclass(frozen=True)
class Marks:
    """The decimal mark of a table, and the marks between thousands.

    Attributes
    ----------
    decimal : str
        A point or a comma.
    thousands : str
        Marks that may stand between thousands.
    """

    decimal: str = "."
    thousands: str = ""

    def fit(self, kinds: Shown) -> bool:
        """Return whether numbers of all these kinds can be read, one of them other than plainly."""
        if kinds == NO_NUMBERS or not kinds:
            return False
        return all(
            any(
                decimal in (None, self.decimal) and (thousand is None or thousand in self.thousands)
                for decimal, thousand in PATTERNS[kind][1]
            )
            for kind in kinds
        )

    def numbers(self, column: Any) -> Any:
        """Return text of numbers as numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.utf8_trim_whitespace(column)
        every = "".join(THOUSANDS[mark] for mark in self.thousands)
        if every:
            text = pc.replace_substring_regex(text, f"[{every}]", "")
        if self.decimal == ",":
            text = pc.replace_substring(text, ",", ".")
        text = pc.replace_substring_regex(text, r"^\+", "")
        return text.cast(pa.float64())

    def words(self, kinds: Iterable[Shown]) -> list[str]:
        """Return what is unusual about numbers of these kinds."""
        every = {kind for one in kinds if self.fit(one) for kind in one}
        used = {
            mark
            for kind in every
            for decimal, mark in PATTERNS[kind][1]
            if mark is not None and mark in self.thousands and decimal in (None, self.decimal)
        }
        commas = ["decimal commas"] if self.decimal == "," else []
        return commas + [f"{WORDS[mark]} between thousands" for mark in sorted(used)]


def decide(
    found: Mapping[str, Shown], *, decimal: str | None, thousands: str | None, name: str
) -> tuple[Marks, dict[str, str]]:
    """Return the marks of a table, and why columns cannot be read, by their names.

    Parameters
    ----------
    found : mapping of str to frozenset
        What the columns show, see `shown`.
    decimal, thousands : str, optional
        Marks that were given.
    name : str
        What the table is called in messages.
    """
    if decimal is None and thousands is not None and thousands in DECIMALS:
        decimal = DECIMALS[thousands == "."]
    numbers = {column: kinds for column, kinds in found.items() if kinds and kinds != NO_NUMBERS}
    if decimal is not None:
        return _marks(decimal, thousands), {}
    showing: dict[str, list[str]] = {mark: [] for mark in DECIMALS}
    unclear: list[str] = []
    for column, kinds in numbers.items():
        for mark, other in ((".", ","), (",", ".")):
            if any(_requires(kind, mark, other) for kind in kinds):
                showing[mark].append(column)
        if any(len(PATTERNS[kind][1]) > 1 for kind in kinds):
            unclear.append(column)
    if all(showing.values()):
        point, comma = (showing[mark][0] for mark in DECIMALS)
        said = (
            f"numbers of {name} have decimal points ({point!r}) and decimal commas ({comma!r}): "
            "decimal=',' or '.' (--decimal) says which are numbers"
        )
        return _marks(".", thousands), dict.fromkeys((*showing["."], *showing[","]), said)
    if showing[","] or showing["."]:
        return _marks("," if showing[","] else ".", thousands), {}
    return _marks(".", thousands), {
        column: (
            f"the numbers of column {column!r} of {name} may have a decimal mark or one between "
            "thousands, as 1,234 and 1.234 may: decimal=',' or '.' (--decimal) says it"
        )
        for column in unclear
    }


def _requires(kind: int, mark: str, other: str) -> bool:
    """Return whether a kind of numbers shows that one mark is the decimal mark, not the other."""
    ways = PATTERNS[kind][1]
    return len(ways) == 1 and (ways[0][0] == mark or (ways[0][0] is None and ways[0][1] == other))


def _marks(decimal: str, thousands: str | None) -> Marks:
    if thousands is not None:
        return Marks(decimal, thousands)
    return Marks(decimal, "".join(mark for mark in THOUSANDS if mark != decimal))


def require_marks(decimal: str | None, thousands: str | None) -> None:
    """Refuse marks that no number has."""
    if decimal is not None and decimal not in DECIMALS:
        raise InvalidInputError(f"decimal must be '.' or ',', found {decimal!r}")
    if thousands is not None and thousands not in THOUSANDS:
        raise InvalidInputError(
            f"thousands must be one of {', '.join(map(repr, THOUSANDS))}, found {thousands!r}"
        )
    if decimal is not None and decimal == thousands:
        raise InvalidInputError(f"decimal and thousands must differ, found {decimal!r} for both")
