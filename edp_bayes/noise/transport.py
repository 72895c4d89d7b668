"""The bottleneck distance W_inf of two distributions on the line, weighted or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["bottleneck_distance", "paired_distances"]

# Weights that agree to this, after sums over hundreds of databases, belong to one quantile.
ROUNDING = 1e-13


def bottleneck_distance(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, other: ArrayLike | None = None
) -> float:
    """Return W_inf, the least largest move that takes one distribution into the other.

    On the line the coupling of equal quantiles is best: W_inf = sup_t abs(F^-1(t) - G^-1(t)).

    Parameters
    ----------
    a, b : array_like
        Values of the two distributions, shapes (n,) and (k,).
    weights, other : array_like, optional
        Their probabilities; equal by default, and `other` the same as `weights`.

    Raises
    ------
    InvalidInputError
        If a sample is empty, weights are no probabilities or lengths disagree.

    Examples
    --------
    >>> bottleneck_distance([0.0, 10.0], [10.0, 0.0])
    0.0
    >>> bottleneck_distance([0.0, 10.0], [10.0, 0.0], [0.9, 0.1])
    10.0
    """
    x, y = (validate.finite_array(v, n, ndim=1) for v, n in ((a, "a"), (b, "b")))
    v = np.full(x.size, 1.0 / max(x.size, 1)) if weights is None else _weights(weights, x.size)
    if other is not None:
        w = _weights(other, y.size)
    elif weights is None:
        w = np.full(y.size, 1.0 / max(y.size, 1))
    else:
        w = _weights(weights, y.size)
    if x.size == 0 or y.size == 0:
        raise InvalidInputError("a distribution needs at least one value, found none")
    first, second = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    return float(_distance(x[first], v[first], y[second], w[second]))


def paired_distances(y: Array, moves: Array, weights: Array) -> Array:
    """Return W_inf between the responses and the moved responses under many weights.

    Parameters
    ----------
    y : ndarray, shape (n,)
    moves : ndarray, shape (n,)
        Contributions of one individual.
    weights : ndarray, shape (draw, n)

    Returns
    -------
    ndarray, shape (draw,)
    """
    out = np.zeros(len(weights))
    without = y - moves
    first, second = np.argsort(y, kind="stable"), np.argsort(without, kind="stable")
    in_threads(_distances, len(weights), y, without, first, second, weights, out)
    return out


def _weights(value: ArrayLike, size: int) -> Array:
    array = validate.finite_array(value, "weights", ndim=1)
    if array.size != size or (array < 0).any() or abs(array.sum() - 1.0) > 1e-8:
        raise InvalidInputError(
            f"weights must be {size} probabilities, found {array.size} with a sum of "
            f"{array.sum():.12g}"
        )
    return array


@compiled
def _distance(x: Array, v: Array, y: Array, w: Array) -> float:
    """Return W_inf of values x with weights v and y with weights w, both sorted.

    Quantiles in step: left and right are what is not yet matched of x[i] and y[j]. The matching of
    equal quantiles has the least largest move ("The Hausdorff distance does not bound the log
    ratio", docs/mathematics/errors.md).
    """
    i, j, left, right, largest = 0, 0, v[0], w[0], 0.0
    while True:
        if left > ROUNDING and right > ROUNDING:
            largest = max(largest, abs(x[i] - y[j]))
        step = min(left, right)
        left -= step
        right -= step
        if left <= ROUNDING:
            i += 1
            if i == x.size:
                return largest
            left = v[i]
        if right <= ROUNDING:
            j += 1
            if j == y.size:
                return largest
            right = w[j]


@compiled
def _distances(
    first: int,
    last: int,
    y: Array,
    without: Array,
    order: Index,
    other: Index,
    weights: Array,
    out: Array,
) -> None:
    """Fill in W_inf between y and without, (n,), under the weights (draw, n) of each draw.

    order and other sort y and without; first and last are draws.
    """
    for d in range(first, last):
        w = weights[d]
        out[d] = _distance(y[order], w[order], without[other], w[other])
