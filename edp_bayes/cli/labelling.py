"""Labels written by a user, or read from another file, in the form that the databases have."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import labels

__all__ = ["label_of", "like", "place_of", "written"]


def label_of(text: str, known: NDArray[Any], option: str, kind: str) -> Any:
    """Return the label that reads like the text; parts of a key have commas between.

    Raises
    ------
    InvalidInputError
        If there is none.

    Examples
    --------
    >>> import numpy as np
    >>> label_of("2024-01-08", np.array(["2024-01-01", "2024-01-08"], "M8[us]"), "--at", "database")
    datetime.datetime(2024, 1, 8, 0, 0)
    """
    wanted = _squeeze(text)
    everything = labels.plain_list(known)
    for label in everything:
        if wanted in (_squeeze(labels.as_text(label)), _squeeze(written(label))):
            return label
    place = place_of(known)
    parts = tuple(wanted.split(",")) if isinstance(everything[0], tuple) else text.strip()
    try:
        label = like(parts, everything[0])
    except ValueError:
        label = None
    if label not in place:
        raise InvalidInputError(
            f"{option}: there is no {kind} {text!r}; there are {labels.show_some(known)}"
        )
    return label


def place_of(known: NDArray[Any]) -> dict[Any, int]:
    """Return the place of every label, as a plain Python value."""
    return {label: k for k, label in enumerate(labels.plain_list(known))}


def like(value: Any, example: Any) -> Any:
    """Return a key as a value of the type of another key: text, a number, a date or a time.

    A time without a zone is one of the example's zone.

    Raises
    ------
    ValueError
        If it does not read as one.

    Examples
    --------
    >>> like("2024-01-08", datetime(2024, 1, 1)), like(7, "text"), like("07", 1)
    (datetime.datetime(2024, 1, 8, 0, 0), '7', 7)
    """
    if isinstance(example, tuple):
        if not isinstance(value, tuple) or len(value) != len(example):
            raise ValueError(f"{len(example)} parts are needed")
        return tuple(like(part, other) for part, other in zip(value, example, strict=True))
    if isinstance(example, str):
        return written(value)
    if isinstance(example, date):
        return _like_date(value, example)
    if isinstance(value, str) and isinstance(example, int | float):
        return _number(value)
    return value


def written(label: Any) -> str:
    """Return a label as a user writes it: whole numbers without a point, midnight as a day.

    Examples
    --------
    >>> written(datetime(2024, 1, 8)), written(("north", 3.0))
    ('2024-01-08', 'north,3')
    """
    if isinstance(label, tuple):
        return ",".join(map(written, label))
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    if isinstance(label, datetime):
        midnight = label.time() == time() and label.tzinfo is None
        return str(label.date()) if midnight else label.isoformat(sep=" ")
    return str(label)


def _like_date(value: Any, example: date) -> date:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, date):
        raise ValueError("a date is needed")
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    if isinstance(example, datetime):
        zoned = moment.tzinfo is None and example.tzinfo is not None
        return moment.replace(tzinfo=example.tzinfo) if zoned else moment
    return moment.date() if moment.time() == time() else moment


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _squeeze(text: str) -> str:
    return ",".join(part.strip() for part in text.split(","))
