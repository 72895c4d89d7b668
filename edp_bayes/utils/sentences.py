"""Sentences on individuals: names stand apart from the words, so that a report can hide them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from numpy.typing import NDArray

from edp_bayes.utils import labels


class Name(NamedTuple):
    """An individual in a sentence: the label as messages show it and as a result holds it."""

    shown: str
    label: str


class Sentence(str):
    """Text of words and names of individuals.

    Parameters
    ----------
    *parts : str, Name or Sentence
        What is joined. Words must name nobody: names come from `name_of`.

    Examples
    --------
    >>> said = Sentence("Individual ", Name("'Ann'", "Ann"), " makes up 40% of it.")
    >>> said.startswith("Individual 'Ann'")
    True
    >>> said.naming(str.upper)
    'Individual ANN makes up 40% of it.'
    """

    parts: tuple[str | Name, ...]

    def __new__(cls, *parts: str | Name) -> Self:
        """Join the parts."""
        flat = [p for part in parts for p in (part.parts if isinstance(part, Sentence) else [part])]
        made = super().__new__(cls, "".join(p.shown if isinstance(p, Name) else p for p in flat))
        made.parts = tuple(flat)
        return made

    def naming(self, called: Callable[[str], str]) -> str:
        """Return the text with individuals called as the function says, from their labels."""
        return "".join(called(p.label) if isinstance(p, Name) else p for p in self.parts)


def name_of(individual: NDArray[Any], position: int) -> Name:
    """Return the name of the individual at a position among all."""
    one = individual[position : position + 1]
    held = labels.plain_list(labels.as_coordinate(one))[0]
    return Name(labels.show(one[0]), str(held))


def stored(value: Any) -> Any:
    """Return a sentence as a list of its parts, for JSON; anything else as it is."""
    return list(value.parts) if isinstance(value, Sentence) else value


def restored(value: Any) -> Any:
    """Return a list as the sentence that was stored; text, which says no names apart, as it is."""
    if not isinstance(value, list):
        return value
    return Sentence(*(Name(*part) if isinstance(part, list) else part for part in value))
