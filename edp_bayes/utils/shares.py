"""Limits of a probability by how often something came true."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["highest_share"]


def highest_share(count: ArrayLike, total: int, prob: ArrayLike) -> NDArray[np.float64]:
    """Return the upper limit of a probability by Clopper and Pearson (1934).

    Parameters
    ----------
    count : array_like of int
        How often it came true, of `total` times.
    total : int
        Number of trials, independent and alike.
    prob : array_like
        Probability of the limit; that of one below is one less the limit of the opposite.

    Examples
    --------
    >>> highest_share([0, 3, 40], 40, 0.95).round(3)
    array([0.072, 0.183, 1.   ])
    """
    from scipy.special import betaincinv

    seen = np.asarray(count, dtype=np.float64)
    others = total - seen
    found = betaincinv(seen + 1.0, np.maximum(others, 1.0), np.asarray(prob, dtype=np.float64))
    return np.where(others > 0, found, 1.0)
