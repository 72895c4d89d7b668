"""Key columns: whose record it is, as integers and sorted labels."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.tables import arrow_columns
from edp_bayes.utils import labels

if TYPE_CHECKING:
    import narwhals as nw

    from edp_bayes.utils.arrays import Index

__all__ = ["POOLED", "Key", "combined", "counted", "factorise", "missing_words", "pooled"]

# Label of the records without a key, where they count as one individual.
POOLED = "(missing)"


@dataclass(frozen=True, eq=False)
class Key:
    """One key column of a table.

    Attributes
    ----------
    name : str
        Its name.
    column : pyarrow.ChunkedArray
        Its values in one form for every library.
    categories : pyarrow.Array or None
        Ordered categories, in their order.
    """

    name: str
    column: Any
    categories: Any = None

    @classmethod
    def of(cls, frame: nw.DataFrame[Any], column: str, name: str | None = None) -> Self:
        """Return a column of a table, under its name or that given for messages.

        Raises
        ------
        InvalidInputError
            If it mixes types, or holds numbers that it cannot tell apart.
        InputTypeError
            If its type cannot be a key.
        """
        import narwhals as nw
        import pyarrow as pa

        name = column if name is None else name
        series = arrow_columns.inferred(frame[column])
        if series.dtype == nw.Object:
            raise _refusal(series, name)
        try:
            values = _plain_column(series)
            known = arrow_columns.categories(series)
        except (pa.ArrowException, TypeError, OverflowError):
            raise _unusable(name, series.dtype) from None
        if pa.types.is_nested(values.type):
            raise _unusable(name, series.dtype)
        if arrow_columns.beyond_floats(values):
            raise InvalidInputError(
                f"key column {name!r} holds floats so large that two whole numbers may be one: "
                "give such keys as integers or text"
            )
        ordered = known is not None and known.type.ordered
        return cls(name, values, known.dictionary if ordered else None)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Records without the key, shape (record,)."""
        import pyarrow.compute as pc

        return np.asarray(pc.is_null(self.column, nan_is_null=True).to_numpy())

    def refuse_missing(self, remedy: str, weight: Index | None = None) -> None:
        """Refuse records without the key, of which each row may stand for several."""
        count, records = counted(self.missing, weight)
        if count:
            raise InvalidInputError(f"{missing_words(self.name, count, records)}; {remedy}")

    def take(self, rows: Index) -> Self:
        """Return the key of some of the records."""
        import pyarrow as pa

        return replace(self, column=self.column.take(pa.array(rows)))

    def coded(self) -> tuple[Index, Any]:
        """Return the place of every record's key among the sorted distinct keys, and those."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            coded = arrow_columns.whole(self.column.dictionary_encode())
            keys = coded.dictionary
            if self.categories is not None:
                places = pc.index_in(keys, self.categories.cast(keys.type))
                order = pc.array_sort_indices(places).to_numpy()
            elif pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
                order = labels.natural_order(keys.to_pylist())
            else:
                order = pc.array_sort_indices(keys).to_numpy()
        except (pa.ArrowException, TypeError):
            raise _unusable(self.name, self.column.type) from None
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        return rank[coded.indices.to_numpy(zero_copy_only=False)], keys.take(pa.array(order))

    def labels(self, keys: Any) -> NDArray[Any]:
        """Return distinct keys as labels."""
        import pyarrow as pa

        kind = keys.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            values = keys.to_numpy(zero_copy_only=False)
            fits = values.dtype.kind == "i" or (
                values.dtype.kind == "u" and values.dtype.itemsize < 8
            )
            return labels.as_labels(values.astype(np.int64) if fits else values, self.name)
        if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
            return labels.as_labels(keys.to_numpy(zero_copy_only=False), self.name)
        items = keys.to_pylist()
        if pa.types.is_timestamp(kind):
            items = labels.told_apart(items)
        return labels.as_labels(labels.as_objects(items), self.name)


def missing_words(name: str, count: int, records: int) -> str:
    """Return in words that a key column lacks values."""
    return f"key column {name!r} has {count} missing value(s) in {records} records"


def counted(chosen: NDArray[np.bool_], weight: Index | None) -> tuple[int, int]:
    """Return how many records some rows stand for, and how many all do."""
    if weight is None:
        return int(chosen.sum()), chosen.size
    return int(weight[chosen].sum()), int(weight.sum())


def factorise(frame: nw.DataFrame[Any], columns: Sequence[str]) -> tuple[Index, NDArray[Any]]:
    """Return the position of every row's key in the sorted distinct keys, and those keys.

    Parameters
    ----------
    frame : narwhals.DataFrame
        Rows.
    columns : sequence of str
        One key column, or several of a compound key.

    Returns
    -------
    codes : ndarray of int
        Shape (row,).
    keys : ndarray
        Sorted labels; tuples for a compound key. Ordered categories keep their order, text
        with numbers is sorted by them, and a period is the time at which it begins.

    Raises
    ------
    InvalidInputError
        If a key is missing, names the column and how many; or if keys cannot be distinguished.
    InputTypeError
        If a column cannot be a key.
    """
    keys = [Key.of(frame, name) for name in columns]
    for key in keys:
        key.refuse_missing("every record needs an individual: drop those without, or fill them")
    return combined(keys)


def combined(keys: Sequence[Key]) -> tuple[Index, NDArray[Any]]:
    """Return codes and labels of a key of one or several columns, none of it missing."""
    codes, found = keys[0].coded()
    parts = [keys[0].labels(found)]
    for key in keys[1:]:
        code, found = key.coded()
        own = key.labels(found)
        distinct, codes = np.unique(codes * own.size + code, return_inverse=True)
        parts = [part[distinct // own.size] for part in parts] + [own[distinct % own.size]]
    return codes, parts[0] if len(parts) == 1 else labels.compound(parts)


def pooled(keys: Sequence[Key], missing: NDArray[np.bool_]) -> tuple[Index, NDArray[Any]]:
    """Return codes and labels where all records that lack a key are of one individual, the last."""
    known = np.flatnonzero(~missing)
    codes = np.empty(missing.size, dtype=np.int64)
    codes[known], found = combined([key.take(known) for key in keys])
    codes[missing] = found.size
    label = POOLED if len(keys) == 1 else (POOLED,) * len(keys)
    own = labels.plain_list(found)
    if label in own:
        raise InvalidInputError(
            f"missing='pool' calls records without a key {labels.show(label)}, which is an "
            f"individual of {', '.join(repr(key.name) for key in keys)}: give that one another name"
        )
    return codes, labels.as_labels(labels.as_objects([*own, label]), "individual")


def _plain_column(series: nw.Series[Any]) -> Any:
    """Return an Arrow column that Arrow can sort, in one form for every library."""
    import pyarrow as pa

    column = arrow_columns.chunks(series)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        with contextlib.suppress(pa.ArrowInvalid):  # Finer than microseconds: keep it so.
            column = column.cast(pa.timestamp("us", column.type.tz))
    if pa.types.is_floating(column.type):
        # -0.0 + 0.0 is 0.0: two spellings of one number are one key.
        column = pa.chunked_array([pa.array(column.to_numpy() + 0.0)])
    return column


def _refusal(series: nw.Series[Any], name: str) -> InvalidInputError | InputTypeError:
    """Return what is wrong with Python objects that share no type of a column."""
    seen: dict[type, Any] = {}
    for value in series.to_list():
        if value is not None and value == value:
            seen.setdefault(type(value), value)
    if len(seen) > 1:
        kinds = " and ".join(sorted(kind.__name__ for kind in seen))
        return InvalidInputError(
            f"key column {name!r} mixes values of type {kinds}, so that one key may be written in "
            "two ways: give all of one type, such as text"
        )
    if seen.keys() <= {int}:
        return InvalidInputError(
            f"key column {name!r} holds integers of more than 64 bits: give such keys as text"
        )
    return _unusable(name, series.dtype)


def _unusable(name: str, kind: Any) -> InputTypeError:
    return InputTypeError(
        f"column {name!r} of type {kind} cannot be a key: keys are whole numbers, text, dates or "
        "times"
    )
