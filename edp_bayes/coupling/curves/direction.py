"""Which combination of several responses tells most of an individual."""

from __future__ import annotations

import numpy as np

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.utils.arrays import Array

__all__ = ["most_exposing"]


def most_exposing(p: NormalMixture, q: NormalMixture, noise: Array) -> Array:
    """Return the direction along which the means of p and q tell them apart best, unit variance.

    With d the difference of the means and S the covariance without the individual it is S^-1 d
    (Fisher's linear discriminant: for normals of one covariance it tells all there is), or where
    the spread tells more than the mean, the eigenvector of the covariances that differs most.
    Means and covariances are averages over the draws; the variance is that of p.

    Parameters
    ----------
    p, q : NormalMixture
        Draws with and without the individual, shape (draw, component).
    noise : ndarray
        Shape (d, d): covariance of known noise.
    """
    middle, apart = (part.mean().mean(axis=0) for part in (p, q))
    whole, rest = (part.covariance().mean(axis=0) + noise for part in (p, q))
    shift = middle - apart
    direction = np.linalg.solve(rest, shift)
    root = np.linalg.inv(np.linalg.cholesky(rest))
    ratio, vectors = np.linalg.eigh(root @ whole @ root.T)
    # twice the Kullback-Leibler divergence of the means' normals, by its two parts
    spread = ratio - 1.0 - np.log(ratio)
    if spread.max() > shift @ direction:
        direction = vectors[:, int(spread.argmax())] @ root
    size = float(np.sqrt(direction @ whole @ direction))
    return np.asarray(direction / size if size > 0.0 else direction)
