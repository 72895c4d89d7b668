"""Curves of an individual over several databases, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.composition.folding import composed_curves
from edp_bayes.divergence.composition.rounding import rounded_losses

__all__ = ["curves"]

Array = NDArray[np.float64]


def curves(
    pairs: Sequence[tuple[Array, Array]], counts: Sequence[int], epsilon: Array
) -> tuple[Array, Array]:
    """Return upper and lower bounds of delta over independent databases of several kinds.

    Parameters
    ----------
    pairs : sequence of (ndarray, ndarray)
        For each kind of database the components of p and of q, shapes (S, K, 5) and (S, L, 5), see
        `edp_bayes.divergence.any_pair.components.rows`; or in groups that an answer tells apart,
        (S, G, K, 5) and (S, G, L, 5).
    counts : sequence of int
        How many databases there are of each kind.
    epsilon : ndarray, shape (E,)
        Not negative, increasing.

    Returns
    -------
    upper, lower : ndarray, shape (S, E)
        Bounds of max(H(P || Q), H(Q || P)) of the products of all distributions.

    Examples
    --------
    Two releases with unit noise and a contribution of 0.3: a shift of 0.3 sqrt(2).

    >>> from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
    >>> from edp_bayes.divergence.shifts import gaussian_shift
    >>> p, q = (rows(GAUSSIAN, np.ones((1, 1)), np.full((1, 1), m), 1.0) for m in (0.3, 0.0))
    >>> upper, lower = curves([(p, q)], [2], np.array([0.1]))
    >>> exact = float(gaussian_shift(0.3 * 2**0.5, 0.1))
    >>> bool(lower[0, 0] <= exact <= upper[0, 0]), bool(upper[0, 0] - lower[0, 0] < 1e-3)
    (True, True)
    """
    total, largest = sum(counts), float(epsilon[-1])
    parts = [rounded_losses(*pair, databases=total, largest=largest) for pair in pairs]
    if len(parts) > 1:
        # one step for all, of which each kind has its share
        squares = [k * part.step**2 for part, k in zip(parts, counts, strict=True)]
        step = np.sqrt(np.sum(squares, axis=0) / total)
        parts = [
            rounded_losses(*pair, databases=total, largest=largest, step=step) for pair in pairs
        ]
    size = len(pairs[0][0])
    upper, lower = np.empty((2, size, epsilon.size))
    for s in range(size):
        found = composed_curves([part.at(s) for part in parts], counts, epsilon)
        upper[s], lower[s] = found
    return upper, lower
