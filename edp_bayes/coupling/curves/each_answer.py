"""What each answer on its own tells, exactly, from the same draws as all of them together.

The distribution of one answer is a mixture of normals, with and without an individual, and its
integrals are those of one dimension. All answers together tell no less (Burchard, Daoud and
Dotterrer 2020, Lemma 2), so the largest of these is a lower bound without an error.
"""

from __future__ import annotations

import numpy as np

from edp_bayes.coupling.base import pair_curves
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.utils.arrays import Array

__all__ = ["answer_curves"]


def answer_curves(
    p: NormalMixture, q: NormalMixture, units: Units, noise: Array, epsilon: Array
) -> Array:
    """Return the largest delta_i(eps) of any answer on its own, shape (draw, epsilon).

    Parameters
    ----------
    p, q : NormalMixture
        With and without an individual in each draw, whitened, without noise, (draw, component).
    units : Units
        What they are in.
    noise : ndarray
        Shape (d, d): covariance of known noise, whitened.
    epsilon : ndarray
        Shape (epsilon,).
    """
    largest = np.zeros((len(p.weights), epsilon.size))
    for row in units.factor if largest.size else ():
        left, right = (_rows(part, row / np.linalg.norm(row), noise) for part in (p, q))
        found = pair_curves(left, right[:, None], epsilon, kernel="gaussian", noise=None)
        np.maximum(largest, found[:, 0], out=largest)
    return largest


def _rows(mixture: NormalMixture, direction: Array, noise: Array) -> Array:
    """Return weights, locations and scales of one answer, shape (draw, component, 3)."""
    found = mixture.along(direction, noise)
    parts = found.weights, found.locations, found.scales
    return np.stack([np.broadcast_to(part, found.locations.shape) for part in parts], axis=-1)
