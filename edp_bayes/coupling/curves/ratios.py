"""The largest log ratio of the distributions with and without anybody: where delta is zero."""

from __future__ import annotations

import numpy as np

from edp_bayes.coupling.base import Coupling, flat
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["largest_log_ratio"]

BLOCK = 64  # draws at once


def largest_log_ratio(coupling: Coupling, instead: str) -> Array:
    """Return the largest absolute log ratio of p and any p_i in every draw, shape (draw,).

    Parameters
    ----------
    coupling : Coupling
        A shift of Laplace kernels: with one scale a draw and no known noise the ratio is monotone
        between neighbouring locations, so the largest is at one of them; otherwise its bound, the
        largest contribution over a scale.
    instead : str
        What to ask for where it is not bounded.

    Raises
    ------
    InvalidInputError
        If the ratio is not bounded.
    """
    if not isinstance(coupling, ShiftCoupling) or coupling.mixture.kernel != "laplace":
        raise InvalidInputError(
            "delta must be above 0 here, found 0: tails of the model's densities with and without "
            "an individual differ without bound, so delta is above zero at every epsilon; "
            f"{instead}, or audit with SmoothedBootstrap(kernel='laplace')"
        )
    scales = flat(coupling.mixture.scales)
    matrix, rows = coupling.responses.contribution, coupling.responses.response.size
    if not coupling.shared_scale or coupling.responses.noise is not None:
        each = np.zeros(rows)
        np.maximum.at(each, matrix.indices, np.abs(matrix.data))
        return np.asarray((each / scales).max(axis=1))
    weights, y, h = flat(coupling.mixture.weights), coupling.responses.response, scales[:, 0]
    bound = coupling.responses.largest_contribution
    found = np.zeros(len(h))
    for person in np.argsort(-bound, kind="stable"):
        open_ = np.flatnonzero(bound[person] / h > found)
        if open_.size == 0:
            break
        moved = y - matrix[:, [int(person)]].toarray()[:, 0]
        for start in range(0, open_.size, BLOCK):
            some = open_[start : start + BLOCK]
            ratio = _at_locations(weights[some], y, moved, h[some])
            found[some] = np.maximum(found[some], ratio)
    return found


def _at_locations(weights: Array, y: Array, moved: Array, h: Array) -> Array:
    """Return the largest absolute log ratio at any location of either mixture, shape (draw,)."""
    from scipy.special import logsumexp

    points = np.concatenate([y, moved])
    with np.errstate(divide="ignore"):
        logs = np.log(weights)[:, None, :]
    distances = (np.abs(points[:, None] - places) / h[:, None, None] for places in (y, moved))
    p, q = (logsumexp(logs - distance, axis=2) for distance in distances)
    return np.asarray(np.abs(p - q).max(axis=1))
