"""Hockey-stick integrals of many pairs at large epsilon, or with scales far apart."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.logarithmic.integrals import ROUNDING, Work, integral, workspace
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["UNEVEN", "fill", "is_uneven"]

SMALLEST = 1e-100  # mass that is neglected when every result counts
# Scales of the narrowest component between the farthest locations, beyond which nodes of all
# components together are too coarse for it.
UNEVEN = 1e6
SURE = 1e3  # epsilon up to which rounding of the log ratio is of no account
ACCURACY = 1e-9  # to which results have to be known
LARGEST_LOG = 1000.0  # of a density, in the units of its mixture, where it has mass


def is_uneven(p: Array, q: Array) -> NDArray[np.bool_]:
    """Return the pairs whose locations lie too far apart for their narrowest component.

    Parameters
    ----------
    p, q : ndarray, shape (S, K, 5), (S, B, L, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`.

    Returns
    -------
    ndarray of bool, shape (S, B)
    """
    (low, high, small), (least, most, smallest) = _extent(p), _extent(q)
    spread = np.maximum(high[:, None], most) - np.minimum(low[:, None], least)
    return np.asarray(spread > UNEVEN * np.minimum(small[:, None], smallest))


def _extent(mixture: Array) -> tuple[Array, Array, Array]:
    """Return the least and the largest location and the smallest scale of what weighs anything."""
    weighs, noisy = mixture[..., 0] > 0.0, mixture[..., 4] > 1.0
    place, a, b = mixture[..., 1], mixture[..., 2], mixture[..., 3]
    scale = np.where(noisy, np.minimum(a, b), a)
    return (
        np.where(weighs, place, np.inf).min(axis=-1),
        np.where(weighs, place, -np.inf).max(axis=-1),
        np.where(weighs, scale, np.inf).min(axis=-1),
    )


def fill(
    p: Array,
    q: Array,
    epsilon: Array,
    wanted: NDArray[np.bool_],
    out: Array,
    *,
    both: bool,
    floor: float = 0.0,
) -> None:
    """Fill in the hockey-stick integrals that are wanted.

    Parameters
    ----------
    p, q : ndarray, shape (S, K, 5), (S, B, L, 5)
        Components, see `edp_bayes.divergence.any_pair.components.rows`.
    epsilon : ndarray, shape (S, E)
        Finite, non-negative, increasing.
    wanted : ndarray of bool, shape (S, B, E)
        What to fill in; of each pair all from some epsilon on.
    out : ndarray, shape (S, B, E)
        Gets the integrals.
    both : bool
        Take the larger of H(p || q) and H(q || p); otherwise H(p || q).
    floor : float
        Results below it are exactly zero.

    Raises
    ------
    InvalidInputError
        If epsilon is so large that rounding decides what the result is.
    """
    draw, person = np.nonzero(wanted.any(axis=2))
    if draw.size == 0:
        return
    first = wanted[draw, person].argmax(axis=1)
    found = np.zeros((draw.size, 2, epsilon.shape[1]))
    reach = -math.log(max(floor * 1e-9, SMALLEST))
    in_threads(
        _pairs, draw.size, p, q, draw, person, first, np.ascontiguousarray(epsilon), both,
        math.sqrt(2.0 * reach), reach, floor, found,
    )  # fmt: skip
    _refuse(found, np.broadcast_to(epsilon[draw][:, None], found.shape))
    values = found[:, 0]
    for at in range(draw.size):
        out[draw[at], person[at], first[at] :] = values[at, first[at] :]


def _refuse(found: Array, epsilon: Array) -> None:
    """Refuse what is not a number or is not known well enough."""
    lost = np.isnan(found)
    if lost.any():
        raise InvalidInputError(
            f"the integral at epsilon {float(epsilon[lost].min()):g} takes too many intervals: the "
            "components of these densities are too many or differ too much; leave out components "
            "without weight, or ask for another epsilon"
        )
    unsure = np.abs(found[:, 0] - found[:, 1]) > ACCURACY
    if unsure.any():
        lowest, change = float(epsilon[:, 0][unsure].min()), np.ptp(found, axis=1)[unsure].max()
        raise InvalidInputError(
            f"epsilon must be small enough for the result to be known, found {lowest:g}: there the "
            f"rounding of a log ratio changes it by {float(change):.2g}"
        )


@compiled
def _pairs(
    begin: int,
    end: int,
    p: Array,
    q: Array,
    draw: NDArray[np.int64],
    person: NDArray[np.int64],
    start: NDArray[np.int64],
    epsilon: Array,
    both: bool,
    reach_gaussian: float,
    reach_laplace: float,
    floor: float,
    found: Array,
) -> None:
    """Fill found (pair, 2, E) with the integrals and, at huge epsilon, those of one rounded up.

    What a curve has fallen to is never passed again; after zero it is zero.
    """
    work = workspace(p.shape[1] + q.shape[2])
    for pair in range(begin, end):
        s, i = draw[pair], person[pair]
        last = math.inf
        for e in range(start[pair], epsilon.shape[1]):
            level = epsilon[s, e]
            value = _integral(p[s], q[s, i], level, both, reach_gaussian, reach_laplace, work)
            if math.isnan(value):
                found[pair, 0, e] = value
                break
            value = min(value, last)
            if value < floor or value == 0.0:
                value = 0.0
            found[pair, 0, e] = found[pair, 1, e] = last = value
            if level > SURE:
                error = 8.0 * ROUNDING * (level + LARGEST_LOG)
                higher = _integral(
                    p[s], q[s, i], level + error, both, reach_gaussian, reach_laplace, work
                )
                lower = _integral(
                    p[s], q[s, i], level - error, both, reach_gaussian, reach_laplace, work
                )
                found[pair, 1, e] = higher if value - higher > lower - value else lower
            elif value == 0.0:
                break


@compiled
def _integral(
    p: Array, q: Array, epsilon: float, both: bool, gaussian: float, laplace: float, work: Work
) -> float:
    """Return H_eps(p || q) of two mixtures (K, 5) and (L, 5), or the larger of both directions."""
    value = integral(p, q, epsilon, gaussian, laplace, work)
    if both:
        value = max(value, integral(q, p, epsilon, gaussian, laplace, work))
    return value
