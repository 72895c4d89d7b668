"""Checks of arguments shared by every module; each names what was found and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError

KERNELS = ("gaussian", "laplace")
LARGEST_EPSILON = 700.0  # whose exponential is finite


def finite_array(value: ArrayLike, name: str, *, ndim: int | None = None) -> NDArray[np.float64]:
    """Return a float64 array, refusing anything non-numeric, complex or non-finite."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
        array = np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        found = repr(value) if isinstance(value, str) else f"{_dtype(value)} data"
        raise InputTypeError(f"{name} must be numeric, found {found}") from None
    refuse_masked(value, name)
    if ndim is not None and array.ndim != ndim:
        raise InvalidInputError(f"{name} must have {ndim} dimension(s), found shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        place = f" at position {where[0] if len(where) == 1 else where}" if where else ""
        raise InvalidInputError(
            f"{name} must be finite, found {array[tuple(where)]}{place} "
            f"({int(bad.sum())} of {array.size} values)"
        )
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Refuse a masked array in which something is masked: what is under the mask is no data."""
    if np.ma.is_masked(value):
        mask = np.ma.getmaskarray(value)
        where = tuple(int(k) for k in np.argwhere(mask)[0])
        place = where[0] if len(where) == 1 else where
        raise InvalidInputError(
            f"{name} must not be missing, found a masked value at position {place} "
            f"({int(mask.sum())} of {mask.size} values)"
        )


def epsilon_grid(epsilon: ArrayLike, name: str = "epsilon") -> NDArray[np.float64]:
    """Return epsilon as a non-empty, strictly increasing vector from 0 to at most 700."""
    grid = np.atleast_1d(finite_array(epsilon, name))
    if grid.ndim != 1 or grid.size == 0:
        raise InvalidInputError(
            f"{name} must hold at least one value in one dimension, found shape {grid.shape}"
        )
    if grid[0] < 0 or (grid < 0).any():
        raise InvalidInputError(f"{name} must not be negative, found {grid.min()}")
    if (grid > LARGEST_EPSILON).any():
        raise InvalidInputError(f"{name} must be at most {LARGEST_EPSILON:g}, found {grid.max():g}")
    steps = np.diff(grid)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0))
        raise InvalidInputError(
            f"{name} must be strictly increasing, found {grid[at]} before {grid[at + 1]}"
        )
    return grid


def positive_integer(value: Any, name: str) -> int:
    """Return value as an int of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{name} must be an integer, found {value!r}")
    if value < 1:
        raise InvalidInputError(f"{name} must be at least 1, found {value}")
    return int(value)


def number(value: Any, name: str) -> float:
    """Return value as one finite float; neither an array nor True is one."""
    found = finite_array(value, name)
    if found.ndim != 0:
        raise InvalidInputError(f"{name} must be a single number, found shape {found.shape}")
    if np.asarray(value).dtype.kind == "b":
        raise InputTypeError(f"{name} must be a number, found {bool(value)}")
    return float(found)


def positive_number(value: Any, name: str) -> float:
    """Return value as a finite float above zero."""
    found = number(value, name)
    if found <= 0:
        raise InvalidInputError(f"{name} must be greater than 0, found {found}")
    return found


def probability(value: Any, name: str) -> float:
    """Return value as a float strictly between zero and one."""
    found = number(value, name)
    if not 0 < found < 1:
        raise InvalidInputError(f"{name} must lie strictly between 0 and 1, found {found}")
    return found


def seed(value: Any, name: str = "random_seed") -> int | None:
    """Return value as an int of at least zero, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{name} must be an integer or None, found {value!r}")
    if value < 0:
        raise InvalidInputError(f"{name} must not be negative, found {value}")
    return int(value)


def generator(value: Any, name: str = "random_seed") -> np.random.Generator:
    """Return a source of randomness: value itself, or a new one with that seed."""
    if isinstance(value, np.random.Generator | np.random.SeedSequence):
        return np.random.default_rng(value)
    return np.random.default_rng(seed(value, name))


def choice(value: Any, options: Iterable[str], name: str) -> str:
    """Return value if it is one of the options."""
    allowed = tuple(options)
    if value not in allowed:
        raise InvalidInputError(f"{name} must be one of {', '.join(allowed)}, found {value!r}")
    return str(value)


def _dtype(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return str(dtype)
    try:
        return str(np.asarray(value).dtype)
    except ValueError:
        return "ragged"
