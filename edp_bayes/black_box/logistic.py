"""Ridge logistic regression by Newton's method."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["ridge_logistic"]

LEAST_WEIGHT = 1e-9


def ridge_logistic(
    design: Array, hits: Array, trials: Array, *, offset: float, ridge: float, steps: int
) -> tuple[Array, Array]:
    """Return the coefficients and their information at the last step.

    Parameters
    ----------
    design : ndarray
        Shape (row, coefficient).
    hits, trials : ndarray
        Shape (row,): hits among the trials of each row.
    offset : float
        Added to every logit.
    ridge : float
        Prior precision of every coefficient.
    steps : int
        Of Newton's method.
    """
    found = np.zeros(design.shape[1])
    for _ in range(steps):
        share = 1.0 / (1.0 + np.exp(-np.clip(design @ found + offset, -30.0, 30.0)))
        gradient = design.T @ (hits - trials * share) - ridge * found
        weight = np.maximum(trials * share * (1.0 - share), LEAST_WEIGHT)
        information = design.T * weight @ design + ridge * np.eye(found.size)
        found = found + np.linalg.solve(information, gradient)
    return found, information
