"""Contributions to several answers that carry over to later ones: an upper bound of what they tell.

As for one answer (`edp_bayes.coupling.views.enlarged`), with matrices in the place of lags: the
answers move by c_t - sum_l B_l c_(t-l). In the metric of a covariance S the pieces that c falls on,
with covariances in the proportion of S, |B_1| S, |B_2| S, ..., tell of it no more than one answer
that moves by F c, with F = 1 + sum_l |B_l| and |B| the largest singular value of S^-1/2 B S^1/2.
All components are taken to have a covariance t S that is no larger than theirs, those that are not
larger to reveal every contribution that shows in them (docs/mathematics/releases.md, carry-over).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.coupling.joint import LOSSES, JointCoupling
from edp_bayes.coupling.views.one_spread import OneSpread, once_in
from edp_bayes.coupling.views.stacked_answers import StackedAnswers, padded
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.joint.points import digital_shifts
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.divergence.joint.losses import PointLosses

__all__ = ["CarriedAnswers"]

APART = 100.0  # standard deviations between components, so that each answer tells its own


class Enlarged(NamedTuple):
    """The answers with and without one individual, less the covariance of those without.

    Attributes
    ----------
    weights, presence : ndarray
        Shape (draw, component).
    move : ndarray
        Shape (draw, component, d): of those present, in units of the one covariance.
    covariance : ndarray
        Shape (draw, component, d, d): of those present; without them it is the identity.
    revealed : ndarray
        Shape (draw,): how often an answer of little spread reveals the individual.
    """

    weights: Array
    presence: Array
    move: Array
    covariance: Array
    revealed: Array


@dataclass(frozen=True, eq=False)
class CarriedAnswers:
    """The answers of several queries, each of which tells its component.

    Known noise is left out, which only adds to the risk.

    Parameters
    ----------
    whole : JointCoupling
        As it was fitted.
    lags : ndarray
        Shape (draw, lag, d, d): B_l in whitened units, [to, from].
    """

    whole: JointCoupling
    lags: Array

    @cached_property
    def shows_in(self) -> int:
        """In how many answers a contribution shows."""
        return 1 + int(self.lags.shape[1])

    @cached_property
    def _metric(self) -> tuple[Array, Array]:
        """Root of the mean covariance S of the components, and of its inverse, (draw, d, d)."""
        mixture = self.whole.mixture
        return _roots(np.einsum("sk,skab->sab", mixture.weights, mixture.each_covariance))

    @cached_property
    def factor(self) -> Array:
        """F, shape (draw,): by how much the carry-over enlarges contributions at most."""
        root, inverse = (part[:, None] for part in self._metric)
        return 1.0 + np.linalg.norm(inverse @ self.lags @ root, ord=2, axis=(-2, -1)).sum(axis=1)

    def moments(self, individuals: Index, orders: Array) -> tuple[Array, Array]:
        """Return bounds on log E exp(order L), and how often individuals are revealed.

        Shapes (draw, individual, order) and (draw, individual). Moments are of answers that do not
        reveal them, those of both directions, the larger.
        """
        draws = self.whole.n_draws
        found = np.empty((draws, individuals.size, orders.size))
        revealed = np.empty((draws, individuals.size))
        everywhere = np.arange(draws)
        for column, individual in enumerate(individuals.tolist()):
            enlarged = self._enlarged(individual, everywhere)
            revealed[:, column] = self._revealed(individual, everywhere, enlarged)
            found[:, column] = 0.0 if enlarged is None else _log_moments(enlarged, orders)
        return found, revealed

    def revealed(self, individual: int, rows: Index) -> Array:
        """Return how often a database reveals an individual exactly, in some draws, at most."""
        return self._revealed(individual, rows, self._enlarged(individual, rows))

    def _revealed(self, individual: int, rows: Index, enlarged: Enlarged | None) -> Array:
        hidden = np.ones(rows.size)
        if individual in self.whole.revealed:
            # in each answer in which their contribution shows
            hidden -= once_in(self.whole.share(individual)[rows], self.shows_in)
        if enlarged is not None:
            hidden *= 1.0 - enlarged.revealed
        return 1.0 - hidden

    def losses(self, individual: int, rows: Index) -> PointLosses | None:
        """Return the privacy losses of answers that do not reveal an individual, in some draws."""
        from edp_bayes.divergence.joint.losses import point_losses

        found = self._enlarged(individual, rows)
        if found is None:
            return None
        d = found.move.shape[-1]
        shifts = digital_shifts(self.whole.n_draws, d, self.whole.seed, LOSSES)[rows]
        return point_losses(*_told_apart(found), shifts)

    def _components(self, individual: int) -> Components:
        """Return the answers with and without one individual, of all draws."""
        if not isinstance(self.whole, StackedAnswers):
            return Components.of(*self.whole.pair(individual))
        parts = [Components.of(*pair) for pair in self.whole.pairs(individual)]
        return Components.joined([block.place for block in self.whole.blocks], parts)

    def _enlarged(self, individual: int, rows: Index) -> Enlarged | None:
        """Return the answers with and without one individual in some draws.

        None where all that the answers tell of them is what they reveal exactly.
        """
        if self.whole.revealed.get(individual, (0, False))[1]:
            return None
        weights, presence, move, rest, present = self._components(individual).at(rows)
        inverse, factor = self._metric[1][rows], self.factor[rows]
        # covariances without and with the individual, and moves, where the middle one is 1
        rest, present = (inverse[:, None] @ part @ inverse[:, None] for part in (rest, present))
        move = factor[:, None, None] * np.einsum("sab,skb->ska", inverse, move)
        own, turned = _own(rest, present)
        own *= factor[:, None, None, None] ** 2
        turned = _enlarge(turned, factor)
        spreads = np.sqrt(np.linalg.eigvalsh(rest)[..., 0])
        ever = np.where(weights > 0.0, presence, 0.0).max(axis=1)
        length = np.sqrt((move**2).sum(-1) + np.trace(own, axis1=-2, axis2=-1))
        most = np.where(weights > 0.0, length, 0.0).max(axis=1)
        one = OneSpread.of(weights, spreads, ever[:, None], most[:, None], shows_in=self.shows_in)
        spread = one.spread[..., None]
        return Enlarged(
            one.weights, presence, move / spread, turned + own / spread[..., None] ** 2,
            one.narrower * once_in(ever, self.shows_in),
        )  # fmt: skip


class Components(NamedTuple):
    """The answers with and without one individual, component by component.

    Attributes
    ----------
    weights, presence : ndarray
        Shape (draw, component).
    move : ndarray
        Shape (draw, component, d): of those present.
    rest, present : ndarray
        Shape (draw, component, d, d): covariances without them, and of those present.
    """

    weights: Array
    presence: Array
    move: Array
    rest: Array
    present: Array

    @classmethod
    def of(cls, p: NormalMixture, q: NormalMixture) -> Components:
        """Part p into what it is without and with the individual: first without, where twice."""
        size = q.weights.shape[1]
        weights, places, covariances = (
            part[:, -size:] for part in (p.weights, p.locations, p.each_covariance)
        )
        presence = np.minimum(weights / np.where(q.weights > 0.0, q.weights, 1.0), 1.0)
        return cls(q.weights, presence, places - q.locations, q.each_covariance, covariances)

    @classmethod
    def joined(cls, places: Sequence[Index], parts: Sequence[Components]) -> Components:
        """Put the draws of several in their places, padded by components of weight zero."""
        return cls(*(padded(places, arrays) for arrays in zip(*parts, strict=True)))

    def at(self, rows: Index) -> Components:
        """Return those of some draws."""
        return Components(*(part[rows] for part in self))


def _roots(covariance: Array) -> tuple[Array, Array]:
    """Return symmetric roots of covariances and of their inverses."""
    values, vectors = np.linalg.eigh(covariance)
    root = np.sqrt(values)[..., None, :]
    turned = np.swapaxes(vectors, -1, -2)
    return (vectors * root) @ turned, (vectors / root) @ turned


def _own(rest: Array, present: Array) -> tuple[Array, Array]:
    """Part covariances with an individual: what is added to the rest, and the rest, less or one.

    present = root (turned + positive part) root, with root root = rest and eigenvalues of `turned`
    at most 1; the first that is returned is root (positive part) root.
    """
    root, inverse = _roots(rest)
    values, vectors = np.linalg.eigh(inverse @ present @ inverse)
    back = np.swapaxes(vectors, -1, -2)
    added = (vectors * np.maximum(values - 1.0, 0.0)[..., None, :]) @ back
    return root @ added @ root, (vectors * np.minimum(values, 1.0)[..., None, :]) @ back


def _enlarge(turned: Array, factor: Array) -> Array:
    """Return covariances of at most 1 whose precision differs by so much more from 1."""
    values, vectors = np.linalg.eigh(turned)
    square = factor[:, None, None] ** 2
    values = 1.0 / (1.0 + square * (1.0 / values - 1.0))
    return np.asarray((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def _told_apart(found: Enlarged) -> tuple[NormalMixture, NormalMixture]:
    """Return mixtures with and without an individual whose components lie far apart."""
    draws, size, d = found.move.shape
    one = np.broadcast_to(np.eye(d), found.covariance.shape)
    wide = np.sqrt(np.linalg.eigvalsh(found.covariance)[..., -1]).max(axis=1, initial=1.0)
    step = APART * wide + 2.0 * np.linalg.norm(found.move, axis=-1).max(axis=1)
    place = np.zeros((draws, size, d))
    place[..., 0] = step[:, None] * np.arange(size)
    weights = np.concatenate(
        [(1.0 - found.presence) * found.weights, found.presence * found.weights], axis=1
    )
    q = NormalMixture(
        weights, np.concatenate([place, place], axis=1), np.concatenate([one, one], axis=1)
    )
    p = NormalMixture(
        weights,
        np.concatenate([place, place + found.move], axis=1),
        np.concatenate([one, found.covariance], axis=1),
    )
    return p, q


def _log_moments(found: Enlarged, orders: Array) -> Array:
    """Return bounds on log E exp(order L), (draw, order), component by component.

    By joint convexity, and convexity in presence: E is at most the weighted sum of
    (1 - rho_k) + rho_k E_k, with E_k the moment of those present, of normal distributions.
    """
    values, vectors = np.linalg.eigh(found.covariance)
    move = np.einsum("skba,skb->ska", vectors, found.move) ** 2
    v, u = values[..., None], move[..., None]
    most = np.full((len(values), orders.size), -np.inf)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for left, logs, pull in (
            ((1.0 + orders) / v - orders, -(1.0 + orders) * np.log(v), (1.0 + orders) / v),
            (1.0 + orders - orders / v, orders * np.log(v), (1.0 + orders) / v),
        ):
            exponent = 0.5 * (logs - np.log(left) + orders * u * pull / left)
            exponent = np.where(left > 0.0, exponent, np.inf).sum(axis=2)
            gained = found.presence[..., None] * np.expm1(exponent)
            gained = np.where((found.weights * found.presence)[..., None] > 0.0, gained, 0.0)
            total = np.einsum("sk,sko->so", found.weights, gained)
            most = np.maximum(most, np.log1p(np.maximum(total, -0.9)))
    return np.where(np.isnan(most), np.inf, most)
