"""One spread for all components, where later answers tell of a contribution, too.

A contribution shows in the answer of its own database and in those that follow it, each with a
component of its own. Counted by the spread of its own database alone it would be hidden by a wide
component where the next answer has a narrow one (docs/mathematics/releases.md, carry-over). So all
components are taken to be as narrow as one of them, and an answer of one that is narrower still
reveals every contribution that shows in it. Which component that is any choice bounds; the least is
taken for those who contribute most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from edp_bayes.coupling.base import flat
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.utils.arrays import Array

__all__ = ["OneSpread", "of_one_spread", "once_in"]


def once_in(presence: Array, databases: int) -> Array:
    """Return the probability of being present at least once in some databases.

    Examples
    --------
    >>> once_in(np.array([0.5, 1.0]), 2)
    array([0.75, 1.  ])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(databases * np.log1p(-presence)))


class OneSpread(NamedTuple):
    """A spread for all components of each draw.

    Attributes
    ----------
    spread : ndarray
        Shape (draw, 1).
    weights : ndarray
        Shape (draw, component): of those that are not narrower, of sum one.
    narrower : ndarray
        Shape (draw,): weight of all others.
    """

    spread: Array
    weights: Array
    narrower: Array

    @classmethod
    def of(
        cls,
        weights: Array,
        spreads: Array,
        presence: Array,
        size: Array,
        *,
        shows_in: int,
        noise: float = 0.0,
    ) -> OneSpread:
        """Choose that of the least risk.

        Parameters
        ----------
        weights, spreads : ndarray
            Shape (draw, component).
        presence, size : ndarray
            Shape (draw, individual): of those by whom it is chosen, how often they are present and
            how much they contribute then, carry-over included.
        shows_in : int
            In how many answers a contribution shows.
        noise : float
            Standard deviation of known noise that hides contributions besides.
        """
        there = np.where(weights > 0.0, spreads, np.inf)
        order = np.argsort(there, axis=1, kind="stable")
        ordered, rising = (np.take_along_axis(part, order, axis=1) for part in (weights, there))
        before = np.cumsum(ordered, axis=1) - ordered
        # The total variation of each choice, by draw, individual and component.
        revealed = once_in(presence, shows_in)[..., None]
        shift = size[..., None] / np.hypot(rising, noise)[:, None]
        hidden = presence[..., None] * (2.0 * ndtr(shift / 2.0) - 1.0)
        share = before[:, None]
        risk = (share * revealed + (1.0 - share) * hidden).max(axis=1)
        first = np.argmin(np.where(ordered > 0.0, risk, np.inf), axis=1)[:, None]
        spread = np.take_along_axis(rising, first, axis=1)
        kept = np.where(spreads >= spread, weights, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        whole = (kept == weights).all(axis=1, keepdims=True)
        return cls(
            spread,
            np.where(whole, weights, kept / total),
            np.where(whole, 0.0, np.maximum(1.0 - total, 0.0))[:, 0],
        )


def of_one_spread(
    mixture: Mixture, presence: Array, size: Array, *, shows_in: int, noise: float = 0.0
) -> tuple[Mixture, Array]:
    """Return the mixture with one spread in each draw, and how often answers are narrower.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component).
    presence, size, shows_in, noise
        As of `OneSpread.of`.

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
    one = OneSpread.of(weights, scales, presence, size, shows_in=shows_in, noise=noise)
    if ((scales == one.spread) | (weights == 0.0)).all():
        return mixture, one.narrower
    lead = mixture.weights.shape
    found = Mixture(
        one.weights.reshape(lead), mixture.locations, one.spread.reshape(*lead[:-1], 1),
        kernel=mixture.kernel, noise=mixture.noise,
    )  # fmt: skip
    return found, one.narrower
