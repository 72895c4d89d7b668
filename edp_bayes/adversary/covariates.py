"""What is public about every database, aligned with the databases by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Covariate", "aligned", "as_frame", "buckets"]


@dataclass(frozen=True, eq=False)
class Covariate:
    """One value of each database, and that of the next one.

    Attributes
    ----------
    name : str
        Its name.
    values : ndarray
        Shape (n,): numbers, or text of categories.
    following : number or str
        Value of the next database.
    taken : bool
        The next value is that of the last database, because none was given.
    """

    name: str
    values: NDArray[Any]
    following: Any
    taken: bool

    def columns(self, row: int | None) -> list[tuple[str, Array, float]]:
        """Return numbers as they are, and categories as indicators of all levels but the commonest.

        With the value at the database in question: that of a row, or of the next one.
        """
        target = self.following if row is None else self.values[row]
        if self.values.dtype.kind == "f":
            return [(self.name, self.values, float(target))]
        levels, counts = np.unique(self.values, return_counts=True)
        if target not in levels:
            raise InvalidInputError(
                f"covariate {self.name!r} of the next database is {target!r}, which no database "
                f"has had: there are {labels.show_some(levels)}"
            )
        rest = np.delete(levels, counts.argmax())
        return [
            (
                f"{self.name}: {level}",
                (self.values == level).astype(np.float64),
                float(target == level),
            )
            for level in rest.tolist()
        ]


def as_frame(table: Any) -> pd.DataFrame:
    """Return a table of any library as pandas, its index the keys of databases.

    Raises
    ------
    InputTypeError
        If it is no table.
    """
    import narwhals.stable.v2 as nw
    import pandas as pd

    if isinstance(table, pd.Series):
        return table.to_frame(name=table.name or "covariate")
    if isinstance(table, pd.DataFrame):
        plain = table.index.name is None and table.index.dtype.kind in "iu"
        return table.set_index(table.columns[0]) if plain else table
    try:
        frame = nw.from_native(table)
    except TypeError:
        raise InputTypeError(
            f"covariates must be a table or a mapping of names to values, found "
            f"{type(table).__name__}"
        ) from None
    whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return as_frame(whole.to_pandas())


def aligned(table: Any, database: NDArray[Any]) -> list[Covariate]:
    """Return the covariates of the databases, in their order.

    Raises
    ------
    InvalidInputError
        If a database has no row or two, or a value is missing.
    InputTypeError
        If the table is none.
    """
    if isinstance(table, Mapping):
        return [_listed(str(name), values, database) for name, values in table.items()]
    frame = as_frame(table)
    if frame.shape[1] == 0:
        raise InvalidInputError("covariates must have a column beside the keys, found none")
    names = labels.as_labels([str(name) for name in frame.columns], "covariate column")
    labels.refuse_duplicates(names, "covariate column")
    keys = labels.as_labels(frame.index.to_numpy(), "covariate")
    labels.refuse_duplicates(keys, "covariate")
    place = {labels.lookup_key(key, database): k for k, key in enumerate(labels.plain_list(keys))}
    wanted = database.tolist()
    missing = [k for k, key in enumerate(wanted) if key not in place]
    if missing:
        raise InvalidInputError(
            f"covariates must have a row for every database, found none for "
            f"{labels.show(database[missing[0]])} ({len(missing)} of {len(wanted)} are missing)"
        )
    rows = [place[key] for key in wanted]
    following = _next(set(place) - set(wanted), wanted[-1])
    order = [*rows, place[following]] if following is not None else rows
    return [_of(str(name), frame[name].to_numpy()[order], database) for name in frame.columns]


def buckets(values: Array, following: float, bins: Any) -> NDArray[Any]:
    """Return the bucket of every value and of the following one, as text.

    Parameters
    ----------
    values : ndarray
        Numbers.
    following : float
        Value of the next database.
    bins : int or sequence of float
        How many buckets of equal probability, or their inner edges.
    """
    if isinstance(bins, int):
        if not 2 <= bins <= values.size // 2:
            raise InvalidInputError(
                f"bins must be from 2 to half the databases, {values.size // 2}, found {bins}"
            )
        edges = np.quantile(values, np.arange(1, bins) / bins)
    else:
        edges = np.asarray(bins, dtype=np.float64)
        if edges.ndim != 1 or edges.size == 0 or (np.diff(edges) <= 0).any():
            raise InvalidInputError(f"bins must be increasing edges, found {bins!r}")
    return np.searchsorted(edges, np.append(values, following), side="right").astype(str)


def _listed(name: str, values: Any, database: NDArray[Any]) -> Covariate:
    """Return values given in the order of the databases, with one more for the next."""
    items = np.asarray(values)
    if items.ndim != 1 or items.size not in (database.size, database.size + 1):
        raise InvalidInputError(
            f"covariate {name!r} must have one value for each of {database.size} databases, and "
            f"may have one more for the next, found shape {items.shape}"
        )
    return _of(name, items, database)


def _of(name: str, items: NDArray[Any], database: NDArray[Any]) -> Covariate:
    import pandas as pd

    absent = np.flatnonzero(pd.isna(items))
    if absent.size:
        where = int(absent[0])
        of = "the next database"
        if where < database.size:
            of = f"database {labels.show(database[where])}"
        raise InvalidInputError(f"covariate {name!r} of {of} is missing")
    if items.dtype.kind in "iuf" or all(
        isinstance(item, int | float) and not isinstance(item, bool) for item in items.tolist()
    ):
        items = items.astype(np.float64)
        if not np.isfinite(items).all():
            raise InvalidInputError(f"covariate {name!r} must be finite")
    else:
        items = np.array([str(item) for item in items.tolist()])
    n, given = database.size, items.size > database.size
    return Covariate(name, items[:n], items[-1].item(), not given)


def _next(others: set[Any], last: Any) -> Any:
    """Return the first key after the last database, None where there is none."""
    try:
        later = sorted(key for key in others if key > last)
    except TypeError:
        return None
    return later[0] if later else None
