"""What is released, by whom and over what period: words that a report and pictures show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from edp_bayes.exceptions import InputTypeError, InvalidInputError

__all__ = ["Release", "common"]

LONGEST = 200
MARKUP = re.compile(r"<[a-zA-Z/!?]|&#?\w+;")


@dataclass(frozen=True)
class Release:
    """What a result is of, in its publisher's words; what is not known is empty.

    Parameters
    ----------
    title : str
        What is released, such as "Weekly revenue"; it takes the place of the query.
    unit : str
        Unit of the answer, such as "dollars".
    period : str
        Over what period, such as "April 1997 to June 1998".
    publisher : str
        Who releases it.
    audience : str
        To whom.
    prepared_by : str
        Who made the audit.
    next_review : str
        When it is to be made again.

    Raises
    ------
    InputTypeError
        If one of them is no text.
    InvalidInputError
        If one holds markup or characters that cannot be seen, or more than 200 characters.

    See Also
    --------
    Audit.with_release : a result with words for what is released
    edp_bayes.report.write_report : one file on a result

    Examples
    --------
    >>> Release(title="Weekly revenue", unit="dollars").axis("answer")
    'Weekly revenue, dollars'
    """

    title: str = ""
    unit: str = ""
    period: str = ""
    publisher: str = ""
    audience: str = ""
    prepared_by: str = ""
    next_review: str = ""

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if not isinstance(value, str):
                raise InputTypeError(f"{part.name} must be text, found {value!r}")
            if MARKUP.search(value):
                raise InvalidInputError(
                    f"{part.name} must be plain text, found markup in {value[:LONGEST]!r}: leave "
                    "out tags and entities"
                )
            if not value.isprintable():
                raise InvalidInputError(
                    f"{part.name} must be one line of characters that can be seen, found {value!r}"
                )
            if len(value) > LONGEST:
                raise InvalidInputError(
                    f"{part.name} must have at most {LONGEST} characters, found {len(value)}"
                )

    def changed(self, release: Release | None, words: Mapping[str, str]) -> Release:
        """Return the words with those of another release, and others by name, in their place.

        Raises
        ------
        InvalidInputError, InputTypeError
            If one is no plain text of one line, or is unknown.
        """
        if unknown := words.keys() - Release.__dataclass_fields__.keys():
            raise InvalidInputError(
                f"a release has {', '.join(Release.__dataclass_fields__)}, found "
                f"{', '.join(sorted(unknown))}"
            )
        given = {} if release is None else release.record
        return Release(**{**self.record, **given, **words})

    @classmethod
    def of(cls, record: dict[str, str]) -> Self:
        """Return what a record of a later version holds, too, as far as it is known here."""
        known = {part.name for part in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})

    @property
    def record(self) -> dict[str, Any]:
        """What is known, as plain words."""
        return {name: value for name, value in asdict(self).items() if value}

    def axis(self, what: str) -> str:
        """Return the label of an axis on which answers lie."""
        return ", ".join(filter(None, (self.title or what, self.unit)))


def common(releases: Sequence[Release]) -> Release:
    """Return the words that several releases have in common.

    Examples
    --------
    >>> common([Release("Visits", unit="people"), Release("Sales", unit="people")]).record
    {'unit': 'people'}
    """
    first, *others = (release.record for release in releases)
    return Release(
        **{
            name: value
            for name, value in first.items()
            if all(other.get(name) == value for other in others)
        }
    )
