"""Positions drawn by weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose"]


def choose(mass: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return, for every uniform number, a position drawn in proportion to the mass."""
    heaped = np.cumsum(mass)
    chosen = np.searchsorted(heaped, uniform * heaped[-1], side="right")
    return np.asarray(np.minimum(chosen, heaped.size - 1), dtype=np.int64)
