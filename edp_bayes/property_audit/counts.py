"""Counts of positives in one or many databases, checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.statistical_privacy import arguments

__all__ = ["PropertyCounts"]

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PropertyCounts:
    """How many entries of each database have each property.

    Parameters
    ----------
    count : array_like of int, or mapping from names to them
        A number for one database, shape (database,) for several, (database, property) for
        several properties; or a number or vector under the name of each property.
    n : array_like of int
        Entries of each database, at least 2: a number, or shape (database,).

    Attributes
    ----------
    count : ndarray of int64, shape (database, property)
    n : ndarray of int64, shape (database,)
    properties : tuple of str

    Raises
    ------
    InputTypeError, InvalidInputError
        If a value is not a whole number, a count is negative or exceeds its n, there is no
        count or the shapes do not fit.

    See Also
    --------
    edp_bayes.audit_property : the probability of a property from data
    edp_bayes.statistical_privacy.PropertyQuery : the share of entries with a property

    Examples
    --------
    >>> counts = PropertyCounts({"older": [103, 98], "veteran": [3, 5]}, n=1000)
    >>> counts.count.shape, counts.n.tolist()
    ((2, 2), [1000, 1000])
    """

    count: Counts
    n: Counts
    properties: tuple[str, ...]

    def __init__(self, count: ArrayLike | Mapping[str, ArrayLike], n: ArrayLike) -> None:
        names, values = _columns(count)
        entries = arguments.sizes(n, "n", 2)
        if entries.ndim > 1 or entries.size == 0:
            raise InvalidInputError(
                f"n must be a number or have shape (database,), found shape {entries.shape}"
            )
        if entries.ndim == 1 and entries.size not in (1, len(values)):
            raise InvalidInputError(
                f"n must be one number or one a database, found {entries.size} for "
                f"{len(values)} database(s)"
            )
        sizes = np.broadcast_to(entries, len(values)).astype(np.int64)
        above = values > sizes[:, None]
        if above.any():
            j, k = (int(i) for i in np.argwhere(above)[0])
            raise InvalidInputError(
                f"count must not exceed n, found {values[j, k]} of {sizes[j]} in database {j}"
            )
        for name, value in (("count", values), ("n", sizes)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "properties", names)

    @property
    def n_databases(self) -> int:
        """Number of databases."""
        return int(self.count.shape[0])

    @property
    def n_properties(self) -> int:
        """Number of properties."""
        return int(self.count.shape[1])

    @property
    def fingerprint(self) -> str:
        """Hash of the counts, their sizes and their names."""
        found = hashlib.sha256(repr((self.properties, self.count.shape)).encode())
        found.update(self.count.astype("<i8").tobytes() + self.n.astype("<i8").tobytes())
        return found.hexdigest()


def _columns(count: Any) -> tuple[tuple[str, ...], Counts]:
    """Return the names of the properties and their counts, shape (database, property)."""
    if not isinstance(count, Mapping):
        values = _whole(count, "count")
        if values.ndim > 2 or values.size == 0:
            raise InvalidInputError(
                "count must be a number or have shape (database,) or (database, property), "
                f"found shape {values.shape}"
            )
        if values.ndim < 2:
            return ("property",), np.atleast_1d(values)[:, None]
        return tuple(f"property {k}" for k in range(values.shape[1])), values
    if not count:
        raise InvalidInputError("count must name at least one property, found none")
    vectors = {}
    for name, values in count.items():
        if not isinstance(name, str) or not name:
            raise InputTypeError(f"a property must be named by a text, found {name!r}")
        vectors[name] = np.atleast_1d(_whole(values, f"count of {name!r}"))
    shapes = {name: vector.shape for name, vector in vectors.items()}
    first = next(iter(shapes.values()))
    if len(first) > 1 or first[0] == 0 or len(set(shapes.values())) > 1:
        raise InvalidInputError(
            "every property must have one count a database, found "
            + ", ".join(f"{name!r} {shape}" for name, shape in shapes.items())
        )
    return tuple(vectors), np.stack(list(vectors.values()), axis=1)


def _whole(value: Any, name: str) -> Counts:
    return arguments.sizes(value, name, 0).astype(np.int64)
