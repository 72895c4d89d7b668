"""One spread for all components, where later answers tell of a contribution, too.

A contribution shows in the answer of its own database and in those that follow it, each with a
component of its own. Counted by the spread of its own database alone it would be hidden by a wide
component where the next answer has a narrow one (docs/mathematics/releases.md, carry-over). So all
components are taken to be as narrow as one of them, and an answer of one that is narrower still
reveals every contribution that shows in it. Which component that is any choice bounds; the least is
taken for those who contribute most.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from edp_bayes.coupling.base import flat
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.utils.arrays import Array

__all__ = ["of_one_spread", "once_in"]


def once_in(presence: Array, databases: int) -> Array:
    """Return the probability of being present at least once in some databases.

    Examples
    --------
    >>> once_in(np.array([0.5, 1.0]), 2)
    array([0.75, 1.  ])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(databases * np.log1p(-presence)))


def of_one_spread(
    mixture: Mixture, presence: Array, size: Array, *, shows_in: int, noise: float = 0.0
) -> tuple[Mixture, Array]:
    """Return the mixture with one spread in each draw, and how often answers are narrower.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component).
    presence, size : ndarray
        Shape (draw, individual): of those by whom the spread is chosen, how often they are present
        and how much they contribute then, carry-over included.
    shows_in : int
        In how many answers a contribution shows.
    noise : float
        Standard deviation of known noise that hides contributions besides.

    Returns
    -------
    mixture : Mixture
        Without the components that are narrower.
    narrower : ndarray
        Shape (draw,): their weight.

    Examples
    --------
    >>> p = Mixture([[[0.9, 0.1]]], [[[0.0, 9.0]]], [[[1.0, 1e-3]]])
    >>> found, narrower = of_one_spread(p, np.full((1, 1), 0.5), np.ones((1, 1)), shows_in=2)
    >>> narrower, found.scales[0, 0], found.weights[0, 0]
    (array([0.1]), array([1., 1.]), array([1., 0.]))
    """
    weights, scales = flat(mixture.weights), flat(mixture.scales)
    order = np.argsort(np.where(weights > 0.0, scales, np.inf), axis=1, kind="stable")
    rising = np.take_along_axis(scales, order, axis=1)
    ordered = np.take_along_axis(weights, order, axis=1)
    narrower = np.concatenate([np.zeros((len(order), 1)), np.cumsum(ordered, axis=1)[:, :-1]], 1)
    # The total variation of each choice, by draw, individual and component.
    revealed = once_in(presence, shows_in)[..., None]
    shift = size[..., None] / np.hypot(rising, noise)[:, None]
    hidden = presence[..., None] * (2.0 * ndtr(shift / 2.0) - 1.0)
    share = narrower[:, None]
    risk = (share * revealed + (1.0 - share) * hidden).max(axis=1)
    first = np.argmin(np.where(ordered > 0.0, risk, np.inf), axis=1)[:, None]
    spread = np.take_along_axis(rising, first, axis=1)
    # Components of the same spread are all kept.
    kept = (weights > 0.0) & (scales >= spread)
    left = np.where(kept, weights, 0.0)
    total = left.sum(axis=1, keepdims=True)
    all_kept = (kept | (weights == 0.0)).all(axis=1, keepdims=True)
    if (
        all_kept.all()
        and (scales[weights > 0.0] == spread.repeat(weights.shape[1], 1)[weights > 0.0]).all()
    ):
        return mixture, np.zeros(len(weights))
    left = np.where(all_kept, weights, left / total)
    lead = mixture.weights.shape
    found = Mixture(
        left.reshape(lead), mixture.locations, np.broadcast_to(spread, scales.shape).reshape(lead),
        kernel=mixture.kernel, noise=mixture.noise,
    )  # fmt: skip
    return found, np.where(all_kept, 0.0, 1.0 - total)[:, 0]
