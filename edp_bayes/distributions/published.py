"""What of an answer is published: rounded, in bins, or only from a threshold on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate

__all__ = ["WORST", "Published", "published_of"]

WORST = "worst"
LEAST_STEP = 1e-9  # of the largest of offset and threshold: less is lost in rounding


@dataclass(frozen=True)
class Published:
    """A rule by which an answer is published; made and checked by `of`.

    Attributes
    ----------
    rounded_to : float or None
        Answers are rounded to the nearest of offset + k rounded_to, k whole.
    offset : float or "worst"
        One of these values, or that the worst place of all is taken.
    threshold : float or None
        Answers below it, after rounding where there is any, are suppressed.
    bins : tuple of float or None
        Edges of bins, of which only that one is published in which the answer lies.
    noise_after : GaussianNoise or LaplaceNoise or None
        Added to the rounded answer.

    See Also
    --------
    Audit.released : what rounding or suppression is worth
    Adversary : past_published says how earlier answers were published

    Examples
    --------
    >>> Published.of(rounded_to=5, threshold=8).words
    'rounded to 5, suppressed below 8'
    """

    rounded_to: float | None = None
    offset: float | str = 0.0
    threshold: float | None = None
    bins: tuple[float, ...] | None = None
    noise_after: GaussianNoise | LaplaceNoise | None = None

    @classmethod
    def of(
        cls,
        *,
        rounded_to: Any = None,
        offset: Any = 0.0,
        threshold: Any = None,
        bins: ArrayLike | None = None,
        noise_after: Any = None,
    ) -> Published:
        """Check the arguments of `edp_bayes.Audit.released`.

        Raises
        ------
        InvalidInputError, InputTypeError
            If an argument cannot be used, or not together with another.
        """
        if rounded_to is None and threshold is None and bins is None:
            raise InvalidInputError(
                "say what is published: rounded_to=1000, threshold=20_000 or bins=edges"
            )
        if bins is not None:
            if rounded_to is not None or threshold is not None:
                raise InvalidInputError(
                    "bins stand alone: leave out rounded_to and threshold, or bins"
                )
            edges = np.atleast_1d(validate.finite_array(bins, "bins"))
            if edges.ndim != 1 or edges.size == 0 or (np.diff(edges) <= 0).any():
                raise InvalidInputError(
                    f"bins must be edges in increasing order, found {edges.tolist()}"
                )
            bins = tuple(edges.tolist())
        if rounded_to is not None:
            rounded_to = validate.positive_number(rounded_to, "rounded_to")
        if threshold is not None:
            threshold = validate.number(threshold, "threshold")
        if offset != WORST:
            if isinstance(offset, str):
                raise InvalidInputError(f"offset must be a number or 'worst', found {offset!r}")
            offset = validate.number(offset, "offset")
        elif threshold is not None:
            raise InvalidInputError(
                "the worst offset is looked for where nothing is suppressed: give a number as "
                "offset, or leave out threshold"
            )
        if offset != 0.0 and rounded_to is None:
            raise InvalidInputError(
                f"an offset is that of a grid, found offset={offset!r} without rounded_to"
            )
        if rounded_to is not None:
            far = max(abs(offset) if offset != WORST else 0.0, abs(threshold or 0.0))
            if rounded_to < LEAST_STEP * far:
                raise InvalidInputError(
                    f"rounded_to must be at least {LEAST_STEP:g} of offset and threshold, found "
                    f"{rounded_to:g} beside {far:g}"
                )
        _check_noise(noise_after, rounded_to, threshold, offset)
        return cls(rounded_to, offset, threshold, bins, noise_after)

    def of_rounded(self, grid: Published) -> Published:
        """Return the same rule for an answer that is rounded already, as one for what was rounded.

        Every edge moves to that below the first rounded value from it.

        Raises
        ------
        InvalidInputError
            If it is not plain which rounded values are rounded to which.
        """
        step, start = float(grid.rounded_to or 0.0), float(grid.offset)

        def below(edge: float) -> float:
            return start + step * (math.ceil((edge - start) / step - 1e-9) - 0.5)

        if self.rounded_to is None:
            bins = None if self.bins is None else tuple(sorted({below(e) for e in self.bins}))
            return replace(
                self, bins=bins, threshold=None if self.threshold is None else below(self.threshold)
            )
        if self.worst:
            raise InvalidInputError(
                f"offset='worst' is for answers that are not rounded yet, and these are "
                f"{grid.words}: give the offset, or audit them as continuous, "
                "responses.replaced(step=None) (--no-step)"
            )
        steps = self.rounded_to / step
        apart = (self.origin - grid.origin) / step
        if max(abs(steps - round(steps)), abs(apart - round(apart))) > 1e-6:
            raise InvalidInputError(
                f"an answer {grid.words} is rounded further where every edge lies between two of "
                f"its values, such as rounded_to={3.0 * step:g}; give bins= instead"
            )
        return self

    def intervals(self, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the interval in which each answer lies, as far as is published.

        The lower end belongs to it and the upper one does not. Both are the answer where that is
        published in full; an end may be infinite.

        Examples
        --------
        >>> low, high = Published.of(rounded_to=5, threshold=8).intervals(np.array([4.0, 9.0]))
        >>> low.tolist(), high.tolist()
        ([-inf, 7.5], [7.5, 12.5])
        """
        if self.bins is not None:
            edges = np.array([-np.inf, *self.bins, np.inf])
            place = np.searchsorted(edges[1:-1], y, side="right")
            return edges[place], edges[place + 1]
        low = high = np.asarray(y, dtype=np.float64)
        if self.rounded_to is not None:
            low = self.origin + self.rounded_to * np.floor((y - self.origin) / self.rounded_to)
            high = low + self.rounded_to
        hidden = y < self.first_edge
        return np.where(hidden, -np.inf, low), np.where(hidden, self.first_edge, high)

    def same(self, y: NDArray[np.float64]) -> bool:
        """Return whether the same is published of all these answers.

        Examples
        --------
        >>> Published.of(threshold=8).same(np.array([2.0, 4.0]))
        True
        """
        low, high = self.intervals(y)
        return bool((low == low[0]).all() and (high == high[0]).all())

    def said_of(self, answer: float) -> str:
        """Return what is published of one answer, in words.

        Examples
        --------
        >>> rule = Published.of(rounded_to=5, threshold=8)
        >>> rule.said_of(4.0), rule.said_of(9.0)
        ('suppressed', '10')
        """
        low, high = (float(end[0]) for end in self.intervals(np.array([float(answer)])))
        if answer < self.first_edge:
            return "suppressed"
        if self.rounded_to is not None:
            return f"{0.5 * (low + high):.12g}"
        if low == high:
            return f"{low:.12g}"
        if math.isinf(low):
            return f"below {high:.12g}"
        return f"{low:.12g} or more" if math.isinf(high) else f"from {low:.12g} to {high:.12g}"

    @property
    def worst(self) -> bool:
        """Whether the largest risk over all offsets is taken."""
        return self.offset == WORST

    @property
    def words(self) -> str:
        """What is published, in words.

        Examples
        --------
        >>> Published.of(rounded_to=1000).words
        'rounded to 1000'
        >>> Published.of(threshold=20_000).words
        'suppressed below 20000'
        """
        if self.bins is not None:
            size = len(self.bins) + 1
            return f"reduced to one of {size} bins"
        parts = []
        if self.rounded_to is not None:
            place = ""
            if self.worst:
                place = " at the worst offset"
            elif self.offset != 0.0:
                place = f" with offset {self.offset:.12g}"
            parts.append(f"rounded to {self.rounded_to:.12g}{place}")
        if self.threshold is not None:
            parts.append(f"suppressed below {self.threshold:.12g}")
        if self.noise_after is not None:
            parts.append(f"then with {self.noise_after} added")
        return ", ".join(parts)

    @property
    def record(self) -> dict[str, Any]:
        """What was asked for, as plain values."""
        found: dict[str, Any] = {"words": self.words}
        if self.rounded_to is not None:
            found |= {"rounded_to": self.rounded_to, "offset": self.offset}
        if self.threshold is not None:
            found["threshold"] = self.threshold
        if self.bins is not None:
            found["bins"] = list(self.bins)
        if self.noise_after is not None:
            found["noise_after"] = str(self.noise_after)
        return found

    @property
    def first_edge(self) -> float:
        """Below it answers are suppressed: the threshold, or the edge of the first value from it.

        -inf where nothing is suppressed.
        """
        if self.threshold is None:
            return -math.inf
        if self.rounded_to is None:
            return self.threshold
        k = math.ceil((self.threshold - float(self.offset)) / self.rounded_to - 1e-9)
        return float(self.offset) + (k - 0.5) * self.rounded_to

    @property
    def origin(self) -> float:
        """An edge between two rounded values."""
        if self.rounded_to is None or self.worst:
            return 0.0
        return float(self.offset) + 0.5 * self.rounded_to


def published_of(asked: Any, name: str) -> Published:
    """Return a rule by which every answer has one value, of its arguments or as it is.

    Raises
    ------
    InvalidInputError, InputTypeError
        If it is neither, or leaves the value open.
    """
    if isinstance(asked, Mapping):
        asked = Published.of(**asked)
    if not isinstance(asked, Published):
        raise InputTypeError(
            f"{name} must be arguments of Audit.released, such as {{'rounded_to': 5}}, found "
            f"{asked!r}"
        )
    if asked.worst or asked.noise_after is not None:
        raise InvalidInputError(
            f"{name} is a rule by which every answer has one value: offset='worst' and noise_after "
            "are none"
        )
    return asked


def _check_noise(noise: Any, rounded_to: Any, threshold: Any, offset: Any) -> None:
    if noise is None:
        return
    if not isinstance(noise, GaussianNoise | LaplaceNoise):
        raise InputTypeError(
            f"noise_after must be GaussianNoise or LaplaceNoise, found {type(noise).__name__}"
        )
    if rounded_to is None or threshold is not None:
        raise InvalidInputError(
            "noise_after is added to rounded answers, all of which are published: give rounded_to "
            "alone with it; noise that comes before suppression or bins is noise= of the query"
        )
    if offset == WORST:
        raise InvalidInputError(
            "the worst offset is looked for without noise_after, which only lowers the risk: leave "
            "it out, or give a number as offset"
        )
