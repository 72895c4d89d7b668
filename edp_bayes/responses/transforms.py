"""Monotone maps of an answer, which change no risk, and the scale on which it is modelled.

A person who sees log(y) sees y. So delta is that of the answer on any scale, and the one may be
chosen on which the density is easiest to learn: log for amounts that are multiplied, logit for
shares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["NAMES", "Pair", "Transform", "described", "named", "transform_of"]

# Values this close, relative to the largest, may be mapped to the same double.
FINE = 1e3 * np.finfo(np.float64).eps
# Of the spread of the answers: what a round trip may miss.
ROUND_TRIP = 1e-6
# Of the spread on the transformed scale: the step of the numerical slope of a pair's inverse.
SLOPE_STEP = 1e-3


class Transform(ABC):
    """One scale. Subclasses say how to get there, and where it begins and ends.

    Examples
    --------
    >>> transform_of("log").difference(np.array([4.0]), np.array([3.0])).round(4)
    array([1.3863])
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    needs: ClassVar[str] = ""

    @abstractmethod
    def forward(self, y: Array) -> Array:
        """Return answers on this scale."""

    @abstractmethod
    def inverse(self, x: Array) -> Array:
        """Return the answers that are so on this scale."""

    @abstractmethod
    def difference(self, y: Array, c: Array) -> Array:
        """Return forward(y) - forward(y - c), without cancellation."""

    @abstractmethod
    def log_slope(self, y: Array) -> Array:
        """Return log abs(forward'(y)): log density of y less that of forward(y)."""

    @abstractmethod
    def inside(self, y: Array) -> NDArray[np.bool_]:
        """Return which answers have a finite value on this scale."""

    def of(self, what: str) -> str:
        """Return in words what something is on this scale."""
        return f"{self.label} of {what}"

    def refuse_unfit(self, y: Array, without: Array) -> None:
        """Refuse values that this is no monotone map of. That of a name always is one."""
        return None

    def __str__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True)
class Log(Transform):
    """The logarithm of answers above 0."""

    name = "log"
    label = "log"
    needs = "answers above 0"

    def forward(self, y: Array) -> Array:
        return np.log(y)

    def inverse(self, x: Array) -> Array:
        return np.exp(x)

    def difference(self, y: Array, c: Array) -> Array:
        return np.asarray(-np.log1p(-c / y))

    def log_slope(self, y: Array) -> Array:
        return -np.log(y)

    def inside(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray(y > 0.0)


@dataclass(frozen=True)
class Logit(Transform):
    """The log odds of shares between 0 and 1."""

    name = "logit"
    label = "logit"
    needs = "answers between 0 and 1, both excluded"

    def forward(self, y: Array) -> Array:
        return np.asarray(np.log(y) - np.log1p(-y))

    def inverse(self, x: Array) -> Array:
        from scipy.special import expit

        return np.asarray(expit(x))

    def difference(self, y: Array, c: Array) -> Array:
        return np.asarray(np.log1p(c / (1.0 - y)) - np.log1p(-c / y))

    def log_slope(self, y: Array) -> Array:
        return np.asarray(-np.log(y) - np.log1p(-y))

    def inside(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray((y > 0.0) & (y < 1.0))


@dataclass(frozen=True)
class Sqrt(Transform):
    """The square root of answers of 0 and more."""

    name = "sqrt"
    label = "square root"
    needs = "answers of at least 0"

    def forward(self, y: Array) -> Array:
        return np.sqrt(y)

    def inverse(self, x: Array) -> Array:
        # no answer has a root below 0: what a density has there is at the end
        return np.maximum(x, 0.0) ** 2

    def difference(self, y: Array, c: Array) -> Array:
        return np.asarray(c / (np.sqrt(y) + np.sqrt(y - c)))

    def log_slope(self, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(2.0) - 0.5 * np.log(y))

    def inside(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray(y >= 0.0)


@dataclass(frozen=True)
class Pair(Transform):
    """A strictly monotone function of one's own and its inverse, of arrays.

    Attributes
    ----------
    forwards, backwards : callable
        The function, and its inverse.

    Examples
    --------
    >>> transform_of((np.cbrt, lambda x: x**3)).difference(np.array([8.0]), np.array([7.0]))
    array([1.])
    """

    forwards: Callable[[Array], Any]
    backwards: Callable[[Array], Any]

    needs = "answers of which it is a finite number"

    @property
    def own_name(self) -> str:
        """Name of the function; empty of one that has none."""
        found = str(getattr(self.forwards, "__name__", ""))
        return found if found.isidentifier() else ""

    def forward(self, y: Array) -> Array:  # noqa: D102
        return _applied(self.forwards, y, "the first function of transform")

    def inverse(self, x: Array) -> Array:  # noqa: D102
        return _applied(self.backwards, x, "the second function of transform")

    def difference(self, y: Array, c: Array) -> Array:  # noqa: D102
        return np.asarray(self.forward(y) - self.forward(y - c))

    def log_slope(self, y: Array) -> Array:  # noqa: D102
        # of the inverse, which is smooth where a scale ends
        x = self.forward(y)
        h = SLOPE_STEP * float(x.std() or 1.0)
        near, far = (self.inverse(x + k * h) - self.inverse(x - k * h) for k in (1.0, 2.0))
        slope = np.abs(8.0 * near - far) / (12.0 * h)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(slope))

    def inside(self, y: Array) -> NDArray[np.bool_]:  # noqa: D102
        return np.isfinite(self.forward(y))

    def of(self, what: str) -> str:  # noqa: D102
        return f"{self.own_name or 'transform'} of {what}"

    def refuse_unfit(self, y: Array, without: Array) -> None:
        """Refuse what is not strictly monotone on the answers and between them, or not inverted.

        A function that maps two answers to one would make risks too small: some of the answer is
        no longer seen.
        """
        values = np.unique(np.concatenate([y, without]))
        x = np.unique(np.concatenate([values, 0.5 * (values[1:] + values[:-1])]))
        found = self.forward(x)
        size, spread = float(np.abs(x).max()), float(y.std())
        step = np.diff(found) * np.sign(found[-1] - found[0])
        back = (step < 0.0) | ((step == 0.0) & (np.diff(x) > FINE * size)) | ~np.isfinite(step)
        if back.any():
            k = int(np.argmax(back))
            raise InvalidInputError(
                f"transform must be strictly monotone, and its first function maps {x[k]:.12g} to "
                f"{found[k]:.12g} and {x[k + 1]:.12g} to {found[k + 1]:.12g}: where answers are "
                "mapped to one, risks would come out too small"
            )
        away = np.abs(self.inverse(found) - x)
        wrong = ~(away <= max(ROUND_TRIP * spread, FINE * size))
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InvalidInputError(
                "the second function of transform must be the inverse of the first: "
                f"{x[k]:.12g} is mapped to {found[k]:.12g} and back to {x[k] + away[k]:.12g} or "
                f"{x[k] - away[k]:.12g}"
            )

    def __str__(self) -> str:
        """Return what it is called in settings."""
        return f"pair {self.own_name}".strip()


_NAMED: dict[str, Transform] = {one.name: one for one in (Log(), Logit(), Sqrt())}
NAMES = tuple(_NAMED)


def transform_of(value: object) -> Transform | None:
    """Return the transform that a name or a pair of functions stands for, None for None.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the name is unknown, or it is neither.
    """
    if value is None or isinstance(value, Transform):
        return value
    if isinstance(value, str):
        if value not in _NAMED:
            raise InvalidInputError(
                f"transform must be {', '.join(NAMES)} or a pair of functions, found {value!r}"
            )
        return _NAMED[value]
    if isinstance(value, tuple | list) and len(value) == 2 and all(map(callable, value)):
        return Pair(*value)
    raise InputTypeError(
        f"transform must be {', '.join(NAMES)} or a pair of functions, a strictly monotone one and "
        f"its inverse, found {value!r}"
    )


def named(text: str) -> Transform | None:
    """Return the transform of a name in settings; None for a pair, whose functions are not kept."""
    return _NAMED.get(text)


def described(text: str, what: str) -> str:
    """Return in words what something is on the scale that settings name; itself if they name none.

    Examples
    --------
    >>> described("log", "the answer"), described("pair cbrt", "the answer"), described("", "it")
    ('log of the answer', 'cbrt of the answer', 'it')
    """
    scale = named(text)
    if scale is not None:
        return scale.of(what)
    return f"{text.partition(' ')[2] or 'transform'} of {what}" if text else what


def _applied(function: Callable[[Array], Any], values: Array, what: str) -> Array:
    with np.errstate(all="ignore"):  # whatever is not finite is refused by name
        try:
            found = np.asarray(function(values), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"{what} must take and return an array: {error}") from None
    if found.shape != values.shape:
        raise InvalidInputError(
            f"{what} must return an array of the shape it is given, {values.shape}, found "
            f"{found.shape}"
        )
    return found
