"""Hockey-stick integrals of Gaussian mixtures, for whole posteriors at once."""

from __future__ import annotations

from edp_bayes.divergence.any_pair import curves as any_pair
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.utils.arrays import Array

__all__ = ["curves"]


def curves(
    pw: Array, pm: Array, ps: Array, qw: Array, qm: Array, qs: Array, epsilon: Array,
    *, floor: float = 0.0,
) -> Array:  # fmt: skip
    """Return max(H_eps(p || q), H_eps(q || p)) for every draw and individual.

    Parameters
    ----------
    pw, pm, ps : ndarray, shape (S, K)
        Weights, means and standard deviations of p in every draw.
    qw, qm, qs : ndarray, shape (S, B, L)
        The same of the B mixtures that are compared with p under that draw. With K = L the
        components are taken as pairs in their order, which keeps the precision when q is p
        slightly moved.
    epsilon : ndarray, shape (E,)
        Finite, non-negative, increasing.
    floor : float
        Results below it are returned as exactly zero, which saves looking for them.

    Returns
    -------
    ndarray, shape (S, B, E)
        Privacy curves, never negative.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> curves(one, 0 * one, one, one[None], one[None], one[None], np.array([0.0, 1.0])).round(6)
    array([[[0.382925, 0.126937]]])
    """
    return any_pair.curves(
        rows(GAUSSIAN, pw, pm, ps), rows(GAUSSIAN, qw, qm, qs), epsilon, floor=floor
    )
