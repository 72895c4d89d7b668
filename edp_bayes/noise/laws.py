"""Laws of noise that a query adds to its response."""

from __future__ import annotations

from dataclasses import dataclass

from edp_bayes import validate


@dataclass(frozen=True)
class GaussianNoise:
    """Centred normal noise.

    Parameters
    ----------
    scale : float
        Standard deviation, in the units of the response.

    Raises
    ------
    InvalidInputError
        If the scale is not a finite number above zero.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.positive_number(self.scale, "noise scale"))


@dataclass(frozen=True)
class LaplaceNoise:
    """Centred Laplace noise, the additive mechanism of classical differential privacy.

    Parameters
    ----------
    scale : float
        Scale b of the density exp(-abs(x) / b) / (2 b), in the units of the response.

    Raises
    ------
    InvalidInputError
        If the scale is not a finite number above zero.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate.positive_number(self.scale, "noise scale"))
