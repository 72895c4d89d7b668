"""Mechanisms that a property query can use, and how they combine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.formatting import enough

__all__ = [
    "GaussianNoise",
    "LaplaceNoise",
    "Mechanism",
    "Noise",
    "Sampling",
    "SamplingWithReplacement",
    "Subsampling",
    "any_parts",
    "parts",
]

Noise = GaussianNoise | LaplaceNoise


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Answer from entries drawn at random; which were drawn stays secret.

    Parameters
    ----------
    size : int, optional
        Number of draws.
    rate : float, optional
        Draws for each of the n entries; their number is rate times n, rounded.
    """

    size: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.rate is None):
            raise InvalidInputError(
                f"give either the size or the rate, found size={self.size}, rate={self.rate}"
            )
        if self.size is not None:
            validate.positive_integer(self.size, "sample size")
        if self.rate is not None:
            object.__setattr__(self, "rate", validate.positive_number(self.rate, "sampling rate"))

    def drawn(self, n: int) -> int:
        """Return the number of draws from n entries.

        Parameters
        ----------
        n : int
            Entries of the database.

        Returns
        -------
        int

        Raises
        ------
        InvalidInputError
            If a rate rounds to no entry at all, or a sample without replacement is larger than
            the database.
        """
        if self.size is not None:
            return self.size
        assert self.rate is not None
        size = math.floor(self.rate * n + 0.5)
        if size < 1:
            raise InvalidInputError(
                f"sampling rate {self.rate:g} draws none of n = {n} entries; "
                f"it must be at least {enough(0.5 / n)}"
            )
        return size


@dataclass(frozen=True, kw_only=True)
class Subsampling(Sampling):
    """Answer from a sample of the entries, drawn without replacement; the sample stays secret.

    Parameters
    ----------
    size : int, optional
        Number of entries drawn.
    rate : float, optional
        Share of the n entries that is drawn, in (0, 1]; their number is rate times n, rounded.

    Raises
    ------
    InputTypeError, InvalidInputError
        If not exactly one of them is given, or it is out of its range.

    See Also
    --------
    SamplingWithReplacement : a sample drawn with replacement
    subsampling_bound : a bound from the smaller database
    matching_rate : the sampling rate that costs as much as noise

    Examples
    --------
    >>> Subsampling(rate=0.25).drawn(1000)
    250
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None and self.rate > 1.0:
            raise InvalidInputError(f"sampling rate must be at most 1, found {self.rate}")

    def drawn(self, n: int) -> int:
        """Return how many of n entries are drawn; arguments and errors are those of `Sampling`."""
        size = super().drawn(n)
        if size > n:
            raise InvalidInputError(
                f"sample size must be at most n, found a size of {size} with n = {n}"
            )
        return size


@dataclass(frozen=True, kw_only=True)
class SamplingWithReplacement(Sampling):
    """Answer with the share of positives among draws with replacement, which stay secret.

    Each draw is any of the n entries with probability 1 / n, so an entry may be drawn again, and
    there may be more draws than entries.

    Parameters
    ----------
    size : int, optional
        Number of draws.
    rate : float, optional
        Draws for each of the n entries, above 0; their number is rate times n, rounded.

    Raises
    ------
    InputTypeError, InvalidInputError
        If not exactly one of them is given, or it is out of its range.

    See Also
    --------
    Subsampling : a sample drawn without replacement
    delta : delta of a property query

    Examples
    --------
    >>> from edp_bayes.statistical_privacy import delta
    >>> round(delta(100, 0.1, epsilon=0.2, mechanism=SamplingWithReplacement(size=50)), 5)
    0.01922
    """


Mechanism = Sampling | Noise | Sequence[Any] | None


def any_parts(mechanism: Mechanism) -> tuple[Sampling | None, Noise | None]:
    """Return the sampling and the noise of a mechanism, either of which may be absent.

    Parameters
    ----------
    mechanism : Subsampling, SamplingWithReplacement, GaussianNoise, LaplaceNoise, sequence, or None
        A sequence is applied in its order: sampling, then one kind of noise.

    Raises
    ------
    InputTypeError
        If something else is found.
    InvalidInputError
        If a sequence has another order or repeats a part.

    Examples
    --------
    >>> any_parts((SamplingWithReplacement(size=100), GaussianNoise(0.01)))
    (SamplingWithReplacement(size=100, rate=None), GaussianNoise(scale=0.01))
    """
    if mechanism is None:
        return None, None
    steps = tuple(mechanism) if isinstance(mechanism, Sequence) else (mechanism,)
    for step in steps:
        if not isinstance(step, Subsampling | SamplingWithReplacement | Noise):
            raise InputTypeError(
                "mechanism must be Subsampling, GaussianNoise, LaplaceNoise, "
                f"SamplingWithReplacement or a sequence of them, found {step!r}"
            )
    sampling = [s for s in steps if isinstance(s, Sampling)]
    noise = [s for s in steps if not isinstance(s, Sampling)]
    if len(sampling) > 1 or len(noise) > 1 or (sampling and steps[0] is not sampling[0]):
        raise InvalidInputError(
            "a mechanism is at most one sampling followed by at most one noise, found "
            f"{', '.join(type(s).__name__ for s in steps)}"
        )
    return (sampling[0] if sampling else None), (noise[0] if noise else None)


def parts(mechanism: Mechanism) -> tuple[Subsampling | None, Noise | None]:
    """Return the parts of a mechanism where no sampling with replacement is offered.

    Arguments and errors are those of `any_parts`; it also refuses `SamplingWithReplacement`.

    Examples
    --------
    >>> parts((Subsampling(size=100), GaussianNoise(0.01)))
    (Subsampling(size=100, rate=None), GaussianNoise(scale=0.01))
    """
    sampling, noise = any_parts(mechanism)
    if sampling is not None and not isinstance(sampling, Subsampling):
        raise InvalidInputError(
            f"only Subsampling, without replacement, is offered here, found {sampling!r}"
        )
    return sampling, noise
