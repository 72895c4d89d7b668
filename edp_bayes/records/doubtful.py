"""What is legal but doubtful about records: those that repeat another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.records.ownership import Records, with_next
from edp_bayes.tables import arrow_columns
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Index
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["COPIED", "doubled_records"]

MOST_COMPARED = 100_000
# Share of records that repeat another, from which it is no coincidence in what is read.
FEWEST_COPIES = 0.3
COPIED = (
    ". If they are copies, they widen the distribution of the answer, which may understate the "
    "risk of other individuals: remove them, or give each record a number of its own"
)


def doubled_records(
    records: Records,
    columns: Sequence[str],
    whole_rows: Callable[[Index], nw.DataFrame[Any] | None],
) -> tuple[Sentence, ...]:
    """Return a warning where records are alike in all columns.

    Parameters
    ----------
    records : Records
        Records in the order of these columns.
    columns : sequence of str
        Columns that a query reads.
    whole_rows : callable
        Takes places among the records and returns them with all columns, or None where that would
        mean reading the table again: it is then judged by what was read, if most are alike.
    """
    owners = records.owners
    same = owners.pair[1:] == owners.pair[:-1]
    exact = False
    for name in columns:
        series = arrow_columns.inferred(records.frame[name])
        if series.dtype.is_numeric() and same.any():
            values = series.to_numpy()
            same &= values[1:] == values[:-1]
            exact |= series.dtype.is_float()
    at = np.flatnonzero(same)
    if not at.size:
        return ()
    candidates = with_next(same)[:MOST_COMPARED]
    frame = whole_rows(candidates)
    where = "exactly"
    if frame is None:
        if not exact or at.size < FEWEST_COPIES * owners.pair.size:
            return ()
        frame, where = records.frame[candidates], "in every column that is read"
    group = owners.pair[candidates]
    for name in frame.columns:
        code = _codes(frame[name])
        if code is not None:
            group = np.unique(group * (code.max() + 1) + code, return_inverse=True)[1]
    group = np.unique(group, return_inverse=True)[1]
    count = np.bincount(group)
    doubled = np.flatnonzero(count[group] > 1)
    if not doubled.size:
        return ()
    record = int(candidates[doubled[0]])
    copies = int((count[count > 1] - 1).sum())
    return (
        Sentence(
            f"{copies:,} record(s) repeat another one {where}, as of individual ",
            name_of(owners.individuals, int(owners.individual[record])),
            f" in database {labels.show(owners.databases[owners.database[record]])}",
            COPIED,
        ),
    )


def _codes(series: nw.Series[Any]) -> Index | None:
    """Return values as codes, None for a column whose values cannot be compared."""
    import pyarrow as pa

    try:
        column = arrow_columns.chunks(arrow_columns.inferred(series))
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        coded = arrow_columns.whole(coded.unify_dictionaries())
    except (pa.ArrowException, TypeError, OverflowError):
        return None
    # Polars counts categories without a sign.
    indices = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(indices, dtype=np.int64) + 1
