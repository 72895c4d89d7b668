"""From key columns to who owns which record, and what is doubtful about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records import periods
from edp_bayes.records.cut_off import Moments, Partial, cut_off
from edp_bayes.records.ownership import Ownership
from edp_bayes.records.spacing import spacing
from edp_bayes.tables.keys import POOLED, Key, combined, counted, missing_words, pooled
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Index
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.records.spacing import Spacing

__all__ = ["EMPTY", "MISSING", "NO_ENDS", "Ends", "Owned", "databases_of", "ends_of", "own"]

EMPTY = ("drop", "zero", "error")
MISSING = ("error", "drop", "pool")
# Databases of fewer records each are moments at which something happened, not periods.
FEW_RECORDS = 2
FEW_RECORDS_OF_TIMES = 10
# Share of databases without a record from which they are no more taken for zero.
MOST_INVENTED = 0.5

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
    partial : Partial or None
        First and last periods that look cut off.
    """

    owners: Ownership
    rows: Index | None
    warnings: tuple[Sentence, ...]
    too_fine: str
    partial: Partial | None = None


class Ends(NamedTuple):
    """The first and the last period, where they look cut off.

    Attributes
    ----------
    partial : Partial or None
        Which do; None where none does.
    warnings : tuple of str
        That they do, and why.
    codes : ndarray of int
        Which of the databases they are.
    """

    partial: Partial | None
    warnings: tuple[str, ...]
    codes: Index


NO_ENDS = Ends(None, (), np.empty(0, dtype=np.int64))


def own(
    database: Sequence[Key],
    individual: Sequence[Key],
    *,
    every: str | None,
    empty: str | None,
    missing: str,
    partial: str,
    weight: Index | None = None,
    ends: Ends | None = None,
) -> Owned:
    """Return who owns which record.

    Parameters
    ----------
    database, individual : sequence of Key
        Their columns.
    every, empty, missing, partial
        As for `Databases.from_table`.
    weight : ndarray of int, optional
        How many records each row stands for; one if not given.
    ends : Ends, optional
        Which periods are cut off, where that is known; if they are left out, no row is of them.

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
        absent = absent[rows]
    found = databases_of(database, every, empty, weight)
    if ends is None:
        ends = ends_of(database[0], found, every, partial, weight)
        if partial == "drop" and ends.codes.size:
            kept = np.flatnonzero(~np.isin(found.code, ends.codes))
            database = [key.take(kept) for key in database]
            individual = [key.take(kept) for key in individual]
            weight = None if weight is None else weight[kept]
            rows, absent = kept if rows is None else rows[kept], absent[kept]
            found = databases_of(database, every, empty, weight)
    warnings += [*found.warnings, *ends.warnings]
    if missing == "pool" and absent.any():
        individual_code, individuals = pooled(individual, absent)
    else:
        individual_code, individuals = combined(individual)
    owners = Ownership(found.code, individual_code, found.databases, individuals, weight)
    too_fine = _too_fine(owners.database_size, found.times)
    if too_fine:
        warnings.append(f"{too_fine}; give database_every='week' (--database-every week)")
    return Owned(owners, rows, tuple(map(Sentence, warnings)), too_fine, ends.partial)


def ends_of(
    key: Key,
    found: Found,
    every: str | None,
    partial: str,
    weight: Index | None,
    moments: Moments | None = None,
) -> Ends:
    """Return which of the first and the last period look cut off."""
    if found.starts is None:
        return NO_ENDS
    size = np.bincount(found.code, weight, found.databases.size).astype(np.int64)
    cut = cut_off(key.column, found.code, size, found.starts, every, weight=weight, moments=moments)
    told, codes = [], []
    for side, why, code in (("first", cut.first, 0), ("last", cut.last, size.size - 1)):
        if why:
            told.append(f"the {side}, {labels.show(found.databases[code])}: {why}")
            codes.append(code)
    if not codes:
        return NO_ENDS
    ends = [found.databases[code] if why else None for why, code in zip(cut, (0, -1), strict=True)]
    said = (
        f"{len(codes)} period{'' if len(codes) == 1 else 's'} of {key.name!r} look"
        f"{'s' if len(codes) == 1 else ''} cut off, {' and '.join(told)}. "
        + (
            "Partial periods are left out"
            if partial == "drop"
            else "Partial periods widen the distribution of the answer, which may understate all "
            "risks: partial='drop' (--partial drop) leaves them out"
        )
    )
    return Ends(Partial(partial, *ends), (said,), np.array(codes))


class Found(NamedTuple):
    """Databases, and whose each row is.

    Attributes
    ----------
    code : ndarray of int
        Database of every row.
    databases : ndarray
        Labels.
    warnings : list of str
        What is doubtful.
    times : bool
        Whether the labels are times of the day.
    starts : pyarrow.Array or None
        The labels as the engine has them, where they are periods in the order of time.
    """

    code: Index
    databases: NDArray[Any]
    warnings: list[str]
    times: bool = False
    starts: Any = None


def databases_of(
    keys: Sequence[Key], every: str | None, empty: str | None, weight: Index | None = None
) -> Found:
    """Return the databases of rows, each of which stands for one record or for its weight."""
    key = keys[0]
    if len(keys) > 1:
        if every or empty not in (None, "drop"):
            names = ", ".join(repr(each.name) for each in keys)
            raise InvalidInputError(
                f"databases by period need one key column, found {names}: give the column of dates"
                if every
                else f"empty={empty!r} needs one key column of dates or whole numbers, found "
                f"{names}: of several it is not known which combinations should be there"
            )
        return Found(*combined(keys), [])
    column = key.column if every is None else periods.starts(key.column, every, key.name)
    coded = Key(key.name, column, key.categories)
    code, found = coded.coded()
    times = every is None and periods.has_time_of_day(found)
    regular = spacing(found, every)
    if regular is None:
        if empty not in (None, "drop"):
            raise InvalidInputError(
                f"empty={empty!r} needs periods at regular distances, which those of {key.name!r} "
                "do not show: give database_every='week' or the like, or number the periods"
            )
        return Found(code, coded.labels(found), [], times, None if every is None else found)
    if not regular.gaps:
        return Found(code, coded.labels(found), [], times, found)
    said = _of_gaps(coded, regular)
    if empty is None and regular.outlying:
        raise InvalidInputError(
            f"a period of {key.name!r} stands far from all others"
            + _apart(coded, found, regular, code, weight, ": ")
            + "; empty='drop' (--empty drop) keeps it as a database"
        )
    if empty == "error":
        raise InvalidInputError(
            f"{said}; empty='drop' (--empty drop) or empty='zero' (--empty zero) says what they are"
            + _apart(coded, found, regular, code, weight, "; ")
        )
    if empty == "zero":
        if regular.gaps > MOST_INVENTED * regular.count or not regular.exact:
            raise InvalidInputError(
                f"{said}, so that empty='zero' would make {regular.gaps:,} of {regular.count:,} "
                "databases out of nothing"
                + (
                    _apart(coded, found, regular, code, weight, ": ")
                    or ": take longer periods by database_every (--database-every), or "
                    "empty='drop' (--empty drop)"
                )
            )
        every_place = regular.labels_at(np.arange(regular.count))
        far = _apart(coded, found, regular, code, weight, "; ")
        said += "; they are databases whose sum and count are zero"
        labelled = coded.labels(every_place)
        return Found(regular.place[code], labelled, [said + far], times, every_place)
    said += (
        ", so that they are no databases; the sum or count of a period without records is zero: "
        "empty='zero' (--empty zero) keeps them"
    )
    return Found(
        code,
        coded.labels(found),
        [said + _apart(coded, found, regular, code, weight, "; ")],
        times,
        found,
    )


def _of_gaps(key: Key, regular: Spacing) -> str:
    first = key.labels(regular.labels_at(regular.first_gaps(labels.SHOWN)))
    more = f" and {regular.gaps - first.size:,} more" if regular.gaps > first.size else ""
    return (
        f"{regular.gaps:,} of {regular.count:,} periods of {key.name!r} have no record "
        f"({labels.show_some(first)}{more})"
    )


def _apart(
    key: Key,
    found: Any,
    regular: Spacing,
    code: Index,
    weight: Index | None,
    before: str,
) -> str:
    """Return in words, after some mark, which periods stand far from all others."""
    if not regular.outlying:
        return ""
    shown = [labels.show(label) for label in key.labels(found)]
    told = []
    for period, other, distance in regular.outlying:
        records, _ = counted(code == period, weight)
        side = "after" if period > other else "before"
        told.append(
            f"{shown[period]} ({records:,} record{'' if records == 1 else 's'}) stands "
            f"{distance:,} {regular.unit} {side} {shown[other]}, the nearest of the others"
        )
    return (
        f"{before}{' and '.join(told)}: correct the year if it is mistyped, or leave such records "
        "out"
    )


def _of_missing(
    keys: Sequence[Key], absent: NDArray[np.bool_], missing: str, weight: Index | None
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
        f"{missing_words(key.name, counted(key.missing, weight)[0], records)}, and every record "
        "needs an individual. missing='drop' (--missing drop) "
        f"leaves them out: {DROPPED}. missing='pool' (--missing pool) keeps them: {ALL_AS_ONE}"
    )


def _too_fine(sizes: Index, times: bool) -> str:
    """Return in words that databases have few records each, the more so where keys are times."""
    count, records = int((sizes > 0).sum()), int(sizes.sum())
    if records >= count * (FEW_RECORDS_OF_TIMES if times else FEW_RECORDS):
        return ""
    return (
        f"{count:,} databases of {records / count:.1f} records each: a day, week or month may be "
        "meant"
    )
