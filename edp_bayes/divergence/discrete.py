"""Hockey-stick integrals of discrete distributions: exact sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate

__all__ = ["hockey_stick"]

MASS_TOLERANCE = 1e-8


def hockey_stick(
    p_mass: ArrayLike, q_mass: ArrayLike, epsilon: ArrayLike
) -> NDArray[np.float64] | float:
    """Return H_eps(p || q) = sum of (p - exp(eps) q) over the values where it is positive.

    Parameters
    ----------
    p_mass, q_mass : array_like, shape (..., value)
        Probabilities of the same values on the last axis; other axes broadcast.
    epsilon : array_like
        Non-negative, any shape. At infinity the result is the mass of p where q has none.

    Returns
    -------
    ndarray or float
        Shape (leading axes) + (shape of epsilon); a float if there are none.

    Raises
    ------
    InvalidInputError
        If a mass is negative, masses do not sum to one, the shapes do not fit or epsilon is
        negative or NaN.

    Examples
    --------
    >>> round(hockey_stick([0.5, 0.5], [0.25, 0.75], 0.0), 6)
    0.25
    """
    p, q = _masses(p_mass, "p_mass"), _masses(q_mass, "q_mass")
    if p.shape[-1] != q.shape[-1]:
        raise InvalidInputError(
            "p_mass and q_mass must list the same values, found "
            f"{p.shape[-1]} and {q.shape[-1]} of them"
        )
    eps = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(eps).any() or (eps < 0).any():
        raise InvalidInputError("epsilon must not be negative or NaN")
    try:
        p, q = np.broadcast_arrays(p, q)
    except ValueError:
        raise InvalidInputError(
            f"leading axes of p_mass and q_mass must broadcast, found {p.shape} and {q.shape}"
        ) from None
    d = (p - q).reshape(-1, p.shape[-1])
    base = q.reshape(-1, p.shape[-1])
    result = np.empty((d.shape[0], eps.size))
    for e, value in enumerate(eps.ravel()):
        with np.errstate(over="ignore", invalid="ignore"):
            loss = np.where(base > 0.0, np.expm1(value) * base, 0.0)
        result[:, e] = np.maximum(d - loss, 0.0).sum(axis=-1)
    sums = result.reshape(p.shape[:-1] + eps.shape)
    return float(sums) if sums.ndim == 0 else sums


def _masses(value: ArrayLike, name: str) -> NDArray[np.float64]:
    mass = np.atleast_1d(validate.finite_array(value, name))
    if (mass < 0).any():
        raise InvalidInputError(f"{name} must not be negative, found {mass.min()}")
    total = mass.sum(axis=-1)
    if (np.abs(total - 1.0) > MASS_TOLERANCE).any():
        worst = total.flat[int(np.argmax(np.abs(total - 1.0)))]
        raise InvalidInputError(f"{name} must sum to 1, found a sum of {worst:.12g}")
    return mass
