"""Privacy losses of answers of which the bins alone are published, and of losses known from above.

A bin is an atom of the loss: log(P / Q) of its masses. So what composes is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edp_bayes.divergence.composition.pairs import Losses
from edp_bayes.divergence.composition.rounding import RoundedLosses, rounded
from edp_bayes.utils.arrays import Array

__all__ = ["AtMost", "BinLosses"]

FURTHEST = 600.0  # losses count as this at most, as where one mass is zero


@dataclass(frozen=True, eq=False)
class BinLosses:
    """Privacy losses of pairs of discrete distributions.

    Attributes
    ----------
    under_p, under_q : ndarray
        Shape (pair, bin): masses of both; zeros pad.

    Examples
    --------
    Two bins, of 0.6 and 0.4 with an individual and 0.5 each without, in two releases.

    >>> from edp_bayes.divergence.composition.pairs import composed
    >>> losses = BinLosses(np.array([[0.6, 0.4]]), np.array([[0.5, 0.5]]))
    >>> upper, lower = composed([losses], [2], np.array([0.0]))
    >>> bool(lower[0, 0] <= 0.6**2 - 0.5**2 <= upper[0, 0])
    True
    """

    under_p: Array
    under_q: Array

    def rounded(
        self, *, databases: int, largest: float, step: Array | None = None
    ) -> RoundedLosses:
        """Return them on grids, rounded up and down."""
        pairs = len(self.under_p)
        return rounded(self._masses, pairs, databases=databases, largest=largest, step=step)

    def parts(self) -> Sequence[Losses]:
        """Return nothing: they are exact."""
        return []

    def _masses(self, edges: Array, offset: Array) -> tuple[Array, Array]:
        """Return masses and excess by bucket; see `edp_bayes.divergence.composition.losses`."""
        levels = edges.shape[1]
        masses = np.zeros((len(edges), 2, 2 * levels + 1))
        excess = np.zeros((len(edges), 2 * levels + 1))
        for s, (p, q) in enumerate(zip(self.under_p, self.under_q, strict=True)):
            with np.errstate(divide="ignore", invalid="ignore"):
                loss = np.where(p + q > 0.0, np.log(p) - np.log(q), offset[s])
            away = np.clip(loss, -FURTHEST, FURTHEST) - offset[s]
            # an end belongs to the bucket nearer to the middle, as zero to the middle itself
            above = np.searchsorted(edges[s], np.abs(away), side="left")
            place = levels + np.sign(away).astype(np.int64) * np.where(away == 0.0, 0, above)
            size = 2 * levels + 1
            masses[s] = np.bincount(place, p, size), np.bincount(place, q, size)
            excess[s] = np.bincount(place, p - np.exp(offset[s]) * q, size)
        return masses, excess


@dataclass(frozen=True, eq=False)
class AtMost:
    """Privacy losses of answers that tell no less: upper bounds are theirs, lower ones zero."""

    losses: Losses

    def rounded(
        self, *, databases: int, largest: float, step: Array | None = None
    ) -> RoundedLosses:
        """Return them on grids; all that may be tested lies in one place."""
        found = self.losses.rounded(databases=databases, largest=largest, step=step)
        return found._replace(places=np.zeros_like(found.places))

    def parts(self) -> Sequence[Losses]:
        """Return the same of their parts."""
        return [AtMost(part) for part in self.losses.parts()]
