"""The smallest epsilon at which delta(epsilon) is as small as wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy import arguments, curves
from edp_bayes.statistical_privacy.mechanisms import Mechanism, any_parts
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.validate import LARGEST_EPSILON

__all__ = ["epsilon_at", "smallest"]

_HALVINGS = 60


def epsilon_at(
    delta: ArrayLike,
    n: ArrayLike,
    prob: ArrayLike,
    *,
    mechanism: Mechanism = None,
    known: ArrayLike = 0,
    known_positive: ArrayLike | None = None,
) -> Array | float:
    """Return the smallest epsilon whose delta(epsilon) does not exceed delta.

    Parameters
    ----------
    delta : array_like
        Values from 1e-300 to 1, or 0.
    n, prob, mechanism, known, known_positive
        As for `edp_bayes.statistical_privacy.delta`; everything broadcasts.

    Returns
    -------
    ndarray or float
        Infinity where no epsilon reaches delta: without a mechanism an answer of 0 or 1 gives
        every entry away, which happens with probability max(prob, 1 - prob)^(n - 1). At a delta
        of 0 it is the largest log ratio of both distributions.

    Raises
    ------
    InputTypeError, InvalidInputError
        As for `delta`; also if it takes an epsilon above 700 where noise is added.

    See Also
    --------
    delta : delta of a property query
    least_utility_loss : the cheapest mechanism for a target

    Examples
    --------
    >>> round(epsilon_at(0.022556322, n=100, prob=0.1), 6)
    0.5
    """
    target = arguments.deltas(delta)
    arrays = [target, np.asarray(n), np.asarray(prob), np.asarray(known)]
    if known_positive is not None:
        arrays.append(np.asarray(known_positive))
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        found = ", ".join(str(a.shape) for a in arrays)
        raise InvalidInputError(
            f"the shapes of all arguments must broadcast, found {found}"
        ) from None
    goal = np.broadcast_to(target, shape)
    none = goal == 0.0
    if none.any():
        # probabilities that underflow are not zero
        pure = curves.pure_epsilon(n, prob, mechanism, known, known_positive)
        if pure is not None:
            ends = np.broadcast_to(pure, shape).copy()
            if not none.all():
                goal = np.where(none, 1.0, goal)
                others = epsilon_at(
                    goal, n, prob, mechanism=mechanism, known=known, known_positive=known_positive
                )
                ends = np.where(none, ends, others)
            return ends if shape else float(ends)

    def reached(epsilon: Array) -> NDArray[np.bool_]:
        return np.asarray(
            curves.delta(
                n,
                prob,
                epsilon=epsilon,
                mechanism=mechanism,
                known=known,
                known_positive=known_positive,
            )
            <= goal
        )

    _, noise = any_parts(mechanism)
    largest = np.inf if noise is None else LARGEST_EPSILON
    found_epsilon = smallest(reached, shape, largest)
    return found_epsilon if shape else float(found_epsilon)


def smallest(
    reached: Callable[[Array], NDArray[np.bool_]], shape: tuple[int, ...], largest: float
) -> Array:
    """Return the smallest epsilon of every case at which `reached`, which never turns back."""
    low, high = np.zeros(shape), np.ones(shape)
    always, never = reached(low), ~reached(np.full(shape, np.inf))
    high[never] = np.inf
    pending = ~(always | never)
    while True:
        open_ = pending & ~reached(np.where(pending, np.minimum(high, largest), 0.0))
        if not open_.any():
            break
        if (high[open_] >= largest).any():
            raise InvalidInputError(
                f"the target delta is reached only at an epsilon above {largest:g}; with so "
                "little noise use mechanism=None or a larger scale"
            )
        low[open_] = high[open_]
        high[open_] *= 2.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + np.where(pending, np.minimum(high, largest), low))
        small = reached(middle)
        high = np.where(pending & small, middle, high)
        low = np.where(pending & ~small, middle, low)
    return np.where(always, 0.0, high)
