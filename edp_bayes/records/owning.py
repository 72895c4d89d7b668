"""From key columns to who owns which record, and what is doubtful about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records import periods
from edp_bayes.records.keys import POOLED, Key, combined, counted, pooled
from edp_bayes.records.ownership import Integers, Ownership
from edp_bayes.utils import labels
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.records.periods import Spacing

__all__ = ["EMPTY", "MISSING", "Owned", "databases_of", "own"]

EMPTY = ("drop", "zero", "error")
MISSING = ("error", "drop", "pool")
# Databases of fewer records each are moments at which something happened, not periods.
FEW_RECORDS = 2
FEW_RECORDS_OF_TIMES = 10

DROPPED = "their contributions leave the answer, so what is audited is not what is published"
ALL_AS_ONE = "they count as one individual, whose risk is that of all of them together"


@dataclass(frozen=True, eq=False)
class Owned:
    """Owners of the records that are kept.

    Attributes
    ----------
    owners : Ownership
        Of every record kept.
    rows : ndarray of int or None
        Which rows of the table they are; None for all.
    warnings : tuple of Sentence
        What is doubtful about the keys.
    too_fine : str
        What makes the databases look like moments rather than periods, if anything.
    """

    owners: Ownership
    rows: Integers | None
    warnings: tuple[Sentence, ...]
    too_fine: str


def own(
    database: Sequence[Key],
    individual: Sequence[Key],
    *,
    every: str | None,
    empty: str,
    missing: str,
    weight: Integers | None = None,
) -> Owned:
    """Return who owns which record.

    Parameters
    ----------
    database, individual : sequence of Key
        Their columns.
    every, empty, missing
        As for `Databases.from_table`.
    weight : ndarray of int, optional
        How many records each row stands for; one if not given.

    Raises
    ------
    InvalidInputError, InputTypeError
        As for `Databases.from_table`.
    """
    for key in database:
        key.refuse_missing(
            "every record needs a database: drop those without, or fill them", weight
        )
    absent = np.logical_or.reduce([key.missing for key in individual])
    warnings = [_of_missing(individual, absent, missing, weight)] if absent.any() else []
    rows = None
    if missing == "drop" and absent.any():
        rows = np.flatnonzero(~absent)
        if not rows.size:
            raise InvalidInputError("no record has an individual: nothing is left to audit")
        database = [key.take(rows) for key in database]
        individual = [key.take(rows) for key in individual]
        weight = None if weight is None else weight[rows]
    if missing == "pool" and absent.any():
        individual_code, individuals = pooled(individual, absent)
    else:
        individual_code, individuals = combined(individual)
    code, databases, said, times = databases_of(database, every, empty)
    warnings += said
    owners = Ownership(code, individual_code, databases, individuals, weight)
    too_fine = _too_fine(owners.database_size, times)
    if too_fine:
        warnings.append(f"{too_fine}; give database_every='week' (--database-every week)")
    return Owned(owners, rows, tuple(map(Sentence, warnings)), too_fine)


def databases_of(
    keys: Sequence[Key], every: str | None, empty: str
) -> tuple[Integers, NDArray[Any], list[str], bool]:
    """Return codes, labels, what is doubtful, and whether the labels are times of the day."""
    key = keys[0]
    if len(keys) > 1:
        if every or empty != "drop":
            names = ", ".join(repr(each.name) for each in keys)
            raise InvalidInputError(
                f"databases by period need one key column, found {names}: give the column of dates"
                if every
                else f"empty={empty!r} needs one key column of dates or whole numbers, found "
                f"{names}: of several it is not known which combinations should be there"
            )
        return *combined(keys), [], False
    column = key.column if every is None else periods.starts(key.column, every, key.name)
    coded = Key(key.name, column, key.categories)
    code, found = coded.coded()
    times = every is None and periods.has_time_of_day(found)
    dates = periods.as_dates(found)
    spacing = periods.spacing(dates, every)
    if spacing is None:
        if empty != "drop":
            raise InvalidInputError(
                f"empty={empty!r} needs periods at regular distances, which those of {key.name!r} "
                "do not show: give database_every='week' or the like, or number the periods"
            )
        return code, coded.labels(found), [], times
    if dates is not found:
        spacing = replace(spacing, labels=spacing.labels.cast(found.type))
    gaps = spacing.gaps
    if not gaps.size:
        return code, coded.labels(found), [], times
    if empty == "zero":
        return spacing.place[code], coded.labels(spacing.labels), [], times
    said = _of_gaps(coded, spacing, gaps)
    if empty == "error":
        raise InvalidInputError(f"{said}; empty='drop' or empty='zero' says what they are")
    return (
        code,
        coded.labels(found),
        [
            f"{said}, so that they are no databases; the sum or count of a period without records "
            "is zero: empty='zero' (--empty zero) keeps them"
        ],
        times,
    )


def _of_gaps(key: Key, spacing: Spacing, gaps: Integers) -> str:
    import pyarrow as pa

    first = key.labels(spacing.labels.take(pa.array(gaps[: labels.SHOWN])))
    more = f" and {gaps.size - first.size:,} more" if gaps.size > first.size else ""
    return (
        f"{gaps.size:,} of {len(spacing.labels):,} periods of {key.name!r} have no record "
        f"({labels.show_some(first)}{more})"
    )


def _of_missing(
    keys: Sequence[Key], absent: NDArray[np.bool_], missing: str, weight: Integers | None
) -> str:
    names = ", ".join(repr(key.name) for key in keys)
    count, records = counted(absent, weight)
    said = f"{count:,} of {records:,} records lack an individual in {names}"
    if missing == "drop":
        return f"{said} and are left out: {DROPPED}"
    if missing == "pool":
        return f"{said} and are pooled as {POOLED!r}: {ALL_AS_ONE}"
    key = next(key for key in keys if key.missing.any())
    raise InvalidInputError(
        f"key column {key.name!r} has {counted(key.missing, weight)[0]} missing value(s) in "
        f"{records} records, and every record needs an individual. missing='drop' (--missing drop) "
        f"leaves them out: {DROPPED}. missing='pool' (--missing pool) keeps them: {ALL_AS_ONE}"
    )


def _too_fine(sizes: Integers, times: bool) -> str:
    """Return in words that databases have few records each, the more so where keys are times."""
    count, records = int((sizes > 0).sum()), int(sizes.sum())
    if records >= count * (FEW_RECORDS_OF_TIMES if times else FEW_RECORDS):
        return ""
    return (
        f"{count:,} databases of {records / count:.1f} records each: a day, week or month may be "
        "meant"
    )
