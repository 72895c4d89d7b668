"""The privacy loss of answers in several dimensions, at points weighted under both distributions.

Points x of the mixture r of p and q in equal parts have weights p / r and q / r, which are at most
2. With their means made one, each set of weighted points is a pair of distributions whose losses
are known exactly, and rounds up and down as any pair does. What differs from the true pair is the
error of the points, as the eight parts of them, nets of their own, say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.composition.rounding import RoundedLosses, rounded
from edp_bayes.divergence.joint.estimates import PARTS
from edp_bayes.divergence.joint.points import mixture_points
from edp_bayes.utils.arrays import Array

__all__ = ["PointLosses", "point_losses"]

FURTHEST = 600.0  # losses count as this at most


@dataclass(frozen=True, eq=False)
class PointLosses:
    """Privacy losses of some pairs at points.

    Attributes
    ----------
    loss : ndarray
        Shape (pair, point): log(p / q) there.
    under_p, under_q : ndarray
        Shape (pair, point): masses of both distributions, each of sum one.
    """

    loss: Array
    under_p: Array
    under_q: Array

    def rounded(
        self, *, databases: int, largest: float, step: Array | None = None
    ) -> RoundedLosses:
        """Return the losses on grids, as `rounded_losses`."""
        return rounded(
            self._masses, len(self.loss), databases=databases, largest=largest, step=step
        )

    def parts(self) -> list[PointLosses]:
        """Return the losses at each part of the points alone."""
        size = self.loss.shape[1] // PARTS
        return [
            _normalised(
                *(
                    part[:, k * size : (k + 1) * size]
                    for part in (self.loss, self.under_p, self.under_q)
                )
            )
            for k in range(PARTS)
        ]

    def _masses(self, edges: Array, offset: Array) -> tuple[Array, Array]:
        """Return masses and excess by bucket; see `edp_bayes.divergence.composition.losses`."""
        levels = edges.shape[1]
        masses, excess = (
            np.zeros((len(edges), 2, 2 * levels + 1)),
            np.zeros((len(edges), 2 * levels + 1)),
        )
        for s, (loss, p, q) in enumerate(zip(self.loss, self.under_p, self.under_q, strict=True)):
            away = loss - offset[s]
            above = np.searchsorted(edges[s], np.abs(away), side="left")
            # an end belongs to the bucket nearer to the middle, as zero to the middle itself
            place = levels + np.sign(away).astype(np.int64) * np.where(away == 0.0, 0, above)
            for row, weight in enumerate((p, q)):
                masses[s, row] = np.bincount(place, weight, 2 * levels + 1)
            excess[s] = np.bincount(place, -p * np.expm1(-away), 2 * levels + 1)
        return masses, excess


def point_losses(p: NormalMixture, q: NormalMixture, shifts: NDArray[np.int64]) -> PointLosses:
    """Return the privacy losses of pairs of mixtures, shape (pair, component).

    Parameters
    ----------
    p, q : NormalMixture
        With known noise.
    shifts : ndarray of int
        Shape (pair, d + 1): digital shifts.
    """
    both = NormalMixture(
        0.5 * np.concatenate([p.weights, q.weights], axis=1),
        np.concatenate([p.locations, q.locations], axis=1),
        np.concatenate([p.covariances, q.covariances], axis=1),
    )
    points = np.swapaxes(mixture_points(both, shifts), 1, 2)
    logs = [
        np.stack(
            [NormalMixture(*(array[s] for array in part)).logpdf(x) for s, x in enumerate(points)]
        )
        for part in (p, q)
    ]
    loss = logs[0] - logs[1]
    # p / r = 2 / (1 + q / p)
    weights = (2.0 / (1.0 + np.exp(np.clip(sign * loss, -FURTHEST, FURTHEST))) for sign in (-1, 1))
    return _normalised(loss, *weights)


def _normalised(loss: Array, p: Array, q: Array) -> PointLosses:
    first, second = p.sum(axis=1, keepdims=True), q.sum(axis=1, keepdims=True)
    moved = np.clip(loss + np.log(second / first), -FURTHEST, FURTHEST)
    return PointLosses(moved, p / first, q / second)
