"""Answers on a grid: counts, and numbers published with few digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = [
    "FOUND",
    "ROUNDING",
    "checked_step",
    "coarse_step",
    "moved_by",
    "offset_of",
    "on_grid",
    "plain_step",
    "rounding_steps",
]

FOUND = "found"  # from the data
# Numbers this close to each other, relative to their size, differ by rounding alone.
ROUNDING = 16 * np.finfo(np.float64).eps
NEAR = 1e-6  # of a step: nearer to a value of the grid than this is on it
MOST_PARTS = 4  # steps in the smallest difference of two responses
COARSE = 25.0  # steps in a standard deviation up to which a grid matters
# Steps of rounding that are tried, in standard deviations of the answers; their first digits.
TRIED = (0.2, 5.0)
ONE_TWO_FIVE = (1.0, 2.0, 5.0)


def offset_of(response: Array, step: float) -> float:
    """Return the value of the grid nearest to zero."""
    return float(response[0] - step * np.round(response[0] / step))


def plain_step(response: Array, contribution: csc_array[np.float64]) -> float | None:
    """Return the step of a grid on which all responses and contributions lie, if there is one.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> plain_step(np.array([3.0, 5.0, 8.0]), csc_array([[1.0], [1.0], [0.0]]))
    1.0
    >>> plain_step(np.array([3.0, 5.5, 8.25]), csc_array([[0.1], [1.0], [0.0]])) is None
    True
    """
    gaps = np.diff(np.unique(response))
    gaps = gaps[gaps > NEAR * np.abs(response).max()]
    if gaps.size == 0:
        return None
    values = np.unique(np.concatenate([response - response[0], contribution.data]))
    for parts in range(1, MOST_PARTS + 1):
        step = float(f"{gaps.min() / parts:.9g}")
        if on_grid(values, step):
            return step
    return None


def coarse_step(step: float, response: Array) -> float | None:
    """Return the step of a query's grid where that is coarse beside the responses' spread."""
    return step if float(response.std()) < COARSE * step else None


def checked_step(
    step: Any, response: Array, contribution: csc_array[np.float64], *, plain: bool
) -> float | None:
    """Return the step asked for, or found; plain responses have neither samples nor noise.

    Raises
    ------
    InvalidInputError, InputTypeError
        If it is no number above zero, or the responses do not lie on its grid.
    """
    if step is None:
        return None
    if isinstance(step, str):
        if step != FOUND:
            raise InputTypeError(f"step must be a number or None, found {step!r}")
        return plain_step(response, contribution) if plain else None
    step = float(validate.positive_number(step, "step"))
    if not plain:
        raise InvalidInputError(
            "a step is that of one rounded answer for each database, without noise: leave out "
            "step, or samples and noise"
        )
    away = response - response[0]
    if not on_grid(away, step):
        worst = int(np.argmax(np.abs(away / step - np.round(away / step))))
        raise InvalidInputError(
            f"the responses must differ by whole multiples of the step {step:g}, found "
            f"{response[worst]:.12g} beside {response[0]:.12g}; give another step, or step=None "
            "(--no-step)"
        )
    return float(step)


def on_grid(values: Array, step: float) -> bool:
    """Return whether all values are whole multiples of a step."""
    return bool((np.abs(values / step - np.round(values / step)) < NEAR).all())


def rounding_steps(spread: float, step: float | None) -> Iterator[float]:
    """Yield the steps of rounding that are tried, rising: 1, 2 or 5 times a power of ten.

    From a fifth of the spread of the answers to five times that. Of answers on a grid they are odd
    multiples of its step, so that every edge lies between two answers.

    Examples
    --------
    >>> list(rounding_steps(3.0, None)), list(rounding_steps(3.0, 1.0))
    ([1.0, 2.0, 5.0, 10.0], [3.0, 5.0, 11.0])
    """
    least, most = (limit * spread for limit in TRIED)
    power = 10.0 ** math.floor(math.log10(least))
    while power <= most:
        for one in ONE_TWO_FIVE:
            size = one * power
            if step:
                size = step * (2.0 * math.floor(size / step / 2.0) + 1.0)
                if size == step:
                    continue
            if least <= size <= most:
                yield size
        power *= 10.0


def moved_by(response: Array, size: float) -> float:
    """Return by how much rounding moves the answers, in their standard deviations.

    The root mean square.

    Examples
    --------
    >>> round(moved_by(np.array([1.0, 2.0, 6.0, 7.0]), 5.0), 3)
    0.62
    """
    moved = size * np.round(response / size) - response
    return float(np.sqrt(np.mean(moved**2)) / response.std())
