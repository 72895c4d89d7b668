"""Checks of the arguments of privacy curves; each names what was found and what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

__all__ = [
    "broadcast",
    "deltas",
    "epsilons",
    "finite_epsilons",
    "positive",
    "probabilities",
    "sizes",
]

# Counts up to this, and the differences between them, are exact doubles.
LARGEST_N = 10**15
LEAST_DELTA = 1e-300


def epsilons(value: ArrayLike) -> Array:
    """Return epsilon, any shape, non-negative; infinity is allowed."""
    return _range(value, "epsilon", 0.0, np.inf, "must not be negative or NaN")


def finite_epsilons(value: ArrayLike) -> Array:
    """Return epsilon, any shape, non-negative and finite."""
    array = epsilons(value)
    if np.isinf(array).any():
        raise InvalidInputError("epsilon must be finite, found inf")
    return array


def deltas(value: ArrayLike) -> Array:
    """Return delta, any shape: 0, or from 1e-300 to 1."""
    array = _range(value, "delta", 0.0, 1.0, "must lie in [0, 1]")
    tiny = (array > 0.0) & (array < LEAST_DELTA)
    if tiny.any():
        raise InvalidInputError(
            f"delta must be 0 or at least {LEAST_DELTA:g}, below which doubles are not precise, "
            f"found {array[tiny].flat[0]}"
        )
    return array


def probabilities(value: ArrayLike, name: str = "prob") -> Array:
    """Return probabilities strictly between 0 and 1."""
    array = validate.finite_array(value, name)
    bad = (array <= 0.0) | (array >= 1.0)
    if bad.any():
        found = float(array[bad].flat[0])
        reason = (
            "; such a query is trivial: every entry is alike and its answer reveals nothing"
            if found in (0.0, 1.0)
            else ""
        )
        raise InvalidInputError(f"{name} must lie strictly between 0 and 1, found {found}{reason}")
    return array


def sizes(value: Any, name: str, least: int) -> Array:
    """Return whole numbers of at least `least`, as doubles that hold them exactly."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        number = validate.finite_array(value, name)
        if array.dtype.kind == "b" or (number != np.floor(number)).any():
            raise InputTypeError(f"{name} must hold whole numbers, found {value!r}")
        array = number
    if (array < least).any():
        raise InvalidInputError(f"{name} must be at least {least}, found {array.min()}")
    if (array > LARGEST_N).any():
        raise InvalidInputError(f"{name} must be at most {LARGEST_N:.0e}, found {array.max()}")
    return array.astype(np.float64)


def positive(value: ArrayLike, name: str) -> Array:
    """Return finite numbers above zero."""
    array = validate.finite_array(value, name)
    if (array <= 0.0).any():
        raise InvalidInputError(f"{name} must be greater than 0, found {array.min()}")
    return array


def broadcast(**arrays: Array) -> tuple[list[Array], tuple[int, ...]]:
    """Return the arrays as vectors of one length, and the shape they have together."""
    try:
        full = np.broadcast_arrays(*arrays.values())
    except ValueError:
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInputError(
            f"the shapes of all arguments must broadcast, found {found}"
        ) from None
    return [np.ascontiguousarray(a).ravel() for a in full], full[0].shape


def _range(value: ArrayLike, name: str, low: float, high: float, rule: str) -> Array:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} must be numeric, found {value!r}") from None
    array = array.astype(np.float64)
    bad = np.isnan(array) | (array < low) | (array > high)
    if bad.any():
        raise InvalidInputError(f"{name} {rule}, found {array[bad].flat[0]}")
    return array
