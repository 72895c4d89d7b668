"""A few of many, spread evenly."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Index

__all__ = ["spread_evenly"]


def spread_evenly(size: int, most: int) -> Index:
    """Return at most so many positions out of size, the first and the last among them.

    Examples
    --------
    >>> spread_evenly(9, 3).tolist(), spread_evenly(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.unique(np.linspace(0, size - 1, most).round().astype(np.int64))
