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

__all__ = ["GaussianNoise", "LaplaceNoise", "Mechanism", "Noise", "Subsampling", "parts"]

Noise = GaussianNoise | LaplaceNoise


@dataclass(frozen=True, kw_only=True)
class Subsampling:
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

    Examples
    --------
    >>> Subsampling(rate=0.25).drawn(1000)
    250
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
            rate = validate.positive_number(self.rate, "sampling rate")
            if rate > 1.0:
                raise InvalidInputError(f"sampling rate must be at most 1, found {rate}")
            object.__setattr__(self, "rate", rate)

    def drawn(self, n: int) -> int:
        """Return how many of n entries are drawn.

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
            If the sample is larger than the database, or a rate rounds to no entry at all.
        """
        if self.size is not None:
            if self.size > n:
                raise InvalidInputError(
                    f"sample size must be at most n, found a size of {self.size} with n = {n}"
                )
            return self.size
        assert self.rate is not None
        size = math.floor(self.rate * n + 0.5)
        if size < 1:
            raise InvalidInputError(
                f"sampling rate {self.rate:g} draws none of n = {n} entries; "
                f"it must be at least {enough(0.5 / n)}"
            )
        return size


Mechanism = Subsampling | Noise | Sequence[Any] | None


def parts(mechanism: Mechanism) -> tuple[Subsampling | None, Noise | None]:
    """Return the subsampling and the noise of a mechanism, either of which may be absent.

    Parameters
    ----------
    mechanism : Subsampling, GaussianNoise, LaplaceNoise, sequence of these, or None
        A sequence is applied in its order: subsampling, then one kind of noise.

    Raises
    ------
    InputTypeError
        If something else is found.
    InvalidInputError
        If a sequence has another order or repeats a part.

    Examples
    --------
    >>> parts((Subsampling(size=100), GaussianNoise(0.01)))
    (Subsampling(size=100, rate=None), GaussianNoise(scale=0.01))
    """
    if mechanism is None:
        return None, None
    steps = tuple(mechanism) if isinstance(mechanism, Sequence) else (mechanism,)
    for step in steps:
        if not isinstance(step, Subsampling | GaussianNoise | LaplaceNoise):
            raise InputTypeError(
                "mechanism must be Subsampling, GaussianNoise, LaplaceNoise or a sequence of "
                f"them, found {step!r}"
            )
    sampling = [s for s in steps if isinstance(s, Subsampling)]
    noise = [s for s in steps if not isinstance(s, Subsampling)]
    if len(sampling) > 1 or len(noise) > 1 or (sampling and steps[0] is not sampling[0]):
        raise InvalidInputError(
            "a mechanism is at most one subsampling followed by at most one noise, found "
            f"{', '.join(type(s).__name__ for s in steps)}"
        )
    return (sampling[0] if sampling else None), (noise[0] if noise else None)
