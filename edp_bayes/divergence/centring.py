"""A location common to all components, which integrals need not carry along."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["common_location"]

Array = NDArray[np.float64]


def common_location(locations: Array) -> Array:
    """Return for each row what can be subtracted from all its locations without rounding.

    Nodes and moves of large locations are rounded to the digits that these have. It is the
    location nearest to zero, rounded towards zero to digits that all locations have; zero where
    they are not of one sign. NaN stands for what does not count.

    Examples
    --------
    >>> common_location(np.array([[1e9 + 1.0, 1e9 + 1.25], [-1.0, 1.0]]))
    array([1.e+09, 0.e+00])
    """
    low, high = np.nanmin(locations, axis=-1), np.nanmax(locations, axis=-1)
    nearest = np.where(np.abs(low) < np.abs(high), low, high)
    digits = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return np.where(low * high > 0.0, np.trunc(nearest / digits) * digits, 0.0)
