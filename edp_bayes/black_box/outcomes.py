"""Outcomes of a mechanism: what kind they are, and the same form for every container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import labels, validate

__all__ = ["KINDS", "Outcomes", "continuous_columns", "read_outcomes", "repeated"]

KINDS = ("auto", "continuous", "discrete", "mixed")
# A value counts as repeated from this share of all values on: floats of few bits collide by chance.
REPEATED_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Two samples of outcomes in one form.

    Attributes
    ----------
    first, second : ndarray
        Shape (size,) or (size, column): float64 for continuous and mixed outcomes; for discrete
        ones numbers or Python objects, rows as tuples.
    kind : {"continuous", "discrete", "mixed"}
        Kind of both.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    kind: str

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of outcomes a side."""
        return len(self.first), len(self.second)

    @property
    def columns(self) -> int:
        """Number of columns of an outcome."""
        return 1 if self.first.ndim == 1 else int(self.first.shape[1])


def read_outcomes(samples: Any, samples_neighbour: Any, kind: str = "auto") -> Outcomes:
    """Return two samples in one form, refusing what cannot be compared.

    Parameters
    ----------
    samples, samples_neighbour : array_like
        Shape (size,) or (size, column).
    kind : {"auto", "continuous", "discrete", "mixed"}
        "auto" takes integers, booleans, strings and tuples as discrete and floats as continuous,
        or mixed if values repeat.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a sample is empty, not finite or of another kind or width than the other.

    Examples
    --------
    >>> read_outcomes(["a", "b"], ["a", "a"]).kind
    'discrete'
    >>> read_outcomes([0.0, 0.3, 0.0], [0.1, 0.5, 0.2]).kind
    'mixed'
    """
    validate.choice(kind, KINDS, "kind")
    names = ("samples", "samples_neighbour")
    arrays = [
        _as_array(s, name) for s, name in zip((samples, samples_neighbour), names, strict=True)
    ]
    families = [_family(array) for array in arrays]
    if families[0] != families[1]:
        raise InputTypeError(
            "both samples must hold the same kind of outcomes, found "
            f"{families[0]} in samples and {families[1]} in samples_neighbour"
        )
    widths = [array.shape[1:] for array in arrays]
    if widths[0] != widths[1]:
        raise InvalidInputError(
            "outcomes of both samples must have as many columns as each other, found shapes "
            f"{arrays[0].shape} and {arrays[1].shape}"
        )
    numbers = families[0] in ("floats", "integers")
    if kind in ("continuous", "mixed") and not numbers:
        raise InputTypeError(f"{kind} outcomes must be numbers, found {families[0]}")
    if kind == "discrete" or (kind == "auto" and families[0] != "floats"):
        return Outcomes(_hashable(arrays[0]), _hashable(arrays[1]), "discrete")
    first, second = (array.astype(np.float64) for array in arrays)
    for array, name in zip((first, second), names, strict=True):
        validate.finite_array(array, name)
    if kind == "auto":
        kind = "mixed" if _repeats(first, second) else "continuous"
    return Outcomes(first, second, kind)


def repeated(pooled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of a vector that repeat: its atoms."""
    values, counts = np.unique(pooled, return_counts=True)
    return values[counts >= max(2.0, REPEATED_SHARE * pooled.size)]


def continuous_columns(outcomes: Outcomes) -> NDArray[np.int64]:
    """Return how many columns of each row of floats hold a value that does not repeat."""
    pooled = np.concatenate([outcomes.first, outcomes.second])
    columns = pooled[:, None] if pooled.ndim == 1 else pooled
    free = [~np.isin(column, repeated(column)) for column in columns.T]
    return np.asarray(np.sum(free, axis=0, dtype=np.int64))


def _repeats(first: NDArray[Any], second: NDArray[Any]) -> list[NDArray[np.float64]]:
    pooled = np.concatenate([first, second])
    columns = pooled[:, None] if pooled.ndim == 1 else pooled
    return [atoms for atoms in map(repeated, columns.T) if atoms.size]


def _as_array(samples: Any, name: str) -> NDArray[Any]:
    if isinstance(samples, str | bytes) or not hasattr(samples, "__len__"):
        raise InputTypeError(f"{name} must be a sequence of outcomes, found {samples!r}")
    if len(samples) == 0:
        raise InvalidInputError(f"{name} must hold at least one outcome, found none")
    if hasattr(samples, "__array__"):
        array = np.asarray(samples)
    elif all(isinstance(item, tuple) for item in samples):
        array = labels.as_objects(list(samples))
    else:
        try:
            array = np.asarray(samples)
        except ValueError:
            array = labels.as_objects(list(samples))
        if array.dtype.kind in "US" and not all(isinstance(s, str | bytes) for s in samples):
            array = labels.as_objects(list(samples))
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise InvalidInputError(
            f"{name} must have shape (size,) or (size, column), found {array.shape}"
        )
    if array.dtype.kind == "c":
        raise InputTypeError(f"{name} must be real, found complex numbers")
    if array.dtype == object:
        labels.as_labels(array.ravel(), f"{name} outcome")  # refuses what is missing
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    return array


def _family(array: NDArray[Any]) -> str:
    """Return what the outcomes are, in words."""
    plain = {"f": "floats", "i": "integers", "u": "integers", "b": "booleans"}
    if array.dtype.kind in plain:
        return plain[array.dtype.kind]
    if array.dtype.kind in "US":
        return "strings"
    if array.dtype.kind in "Mm":
        return "dates"
    types = {type(item) for item in array.ravel().tolist()}
    if types <= {int, bool} or types <= {float, int}:
        return "integers" if types <= {int, bool} else "floats"
    return "strings" if types == {str} else "tuples" if types == {tuple} else "objects"


def _hashable(array: NDArray[Any]) -> NDArray[Any]:
    """Return discrete outcomes as a vector of numbers or objects, none of them missing."""
    if array.ndim == 2:
        array = labels.as_objects(list(map(tuple, array.tolist())))
    flat = labels.as_labels(array, "outcome")
    if flat.dtype == object:
        try:
            set(flat.tolist())
        except TypeError as error:
            raise InputTypeError(f"discrete outcomes must be hashable: {error}") from None
    return flat
