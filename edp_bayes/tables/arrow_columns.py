"""Columns of any dataframe library as Arrow holds them: categories, objects and periods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import narwhals as nw

# From here on, floats of so many bits leave out whole numbers.
EXACT_INTEGERS = {16: 2**11, 32: 2**24, 64: 2**53}


def chunks(series: nw.Series[Any]) -> Any:
    """Return a chunked array; a period becomes the time at which it begins."""
    import narwhals as nw
    import pyarrow as pa

    native = series.to_native()
    if str(getattr(native, "dtype", "")).startswith("period"):
        series = nw.from_native(native.dt.to_timestamp(), series_only=True)
    column = series.to_arrow()
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def categories(series: nw.Series[Any]) -> Any:
    """Return a categorical column as one dictionary array, None for a column of another type."""
    import narwhals as nw

    if series.dtype not in (nw.Categorical, nw.Enum):
        return None
    return whole(chunks(series).unify_dictionaries())


def whole(column: Any) -> Any:
    """Return the one array of a chunked dictionary array."""
    import pyarrow as pa

    array = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def beyond_floats(column: Any) -> bool:
    """Return whether a column of floats holds numbers of which it does not tell all apart."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return False
    limit = EXACT_INTEGERS[column.type.bit_width]
    return bool(pc.any(pc.greater_equal(pc.abs(column), float(limit))).as_py())


def padded(column: Any) -> bool:
    """Return whether text has whole numbers with zeros before them, such as 007."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, r"^[+-]?0\d")).as_py())


def inferred(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column of Python objects, such as dates or decimals, by the type they share."""
    import narwhals as nw
    import pyarrow as pa

    if series.dtype != nw.Object:
        return series
    try:
        return of_values(series.to_list())
    except (pa.ArrowException, OverflowError):
        return series


def of_values(values: Iterable[Any]) -> nw.Series[Any]:
    """Return Python values as a column of the type they share."""
    import narwhals as nw
    import pyarrow as pa

    column = pa.chunked_array([pa.array(values, from_pandas=True)])
    return nw.from_native(column, series_only=True)
