"""Couplings of several answers under several models, each of whose draws is of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from edp_bayes.coupling.joint import JointCoupling, JointCurves
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.responses.joined import JointResponses
from edp_bayes.utils.arrays import Array, Index

__all__ = ["StackedAnswers", "padded", "stack_answers"]


class Block(NamedTuple):
    """The draws of one model.

    Attributes
    ----------
    place, rows : ndarray of int
        Where they are among all draws, and which of the model's they are.
    member : JointCoupling
        The model's own.
    """

    place: Index
    rows: Index
    member: JointCoupling


@dataclass(frozen=True, eq=False)
class StackedAnswers(JointCoupling):
    """The draws of several couplings of the same answers, in the units of the first.

    Parameters
    ----------
    blocks : tuple of Block
        All draws, by model.
    """

    posterior: None = None  # type: ignore[assignment]
    blocks: tuple[Block, ...] = ()

    @property
    def width(self) -> int:
        """Numbers held for each individual and draw, beside the curves and their bounds."""
        return max(block.member.width for block in self.blocks)

    def curves(self, individuals: Index, epsilon: Array) -> JointCurves:
        """Return delta_i(eps) of some individuals, each draw's by its own model."""
        out = JointCurves.zeros(self.n_draws, len(individuals), epsilon.size)
        for block, part in zip(self.blocks, self._parts, strict=True):
            for whole, found in zip(out, part.curves(individuals, epsilon), strict=True):
                whole[block.place] = found
        return out

    def picked(self, rows: Index) -> StackedAnswers:
        """Return the coupling of some draws."""
        blocks = []
        for place, own, member in self.blocks:
            at = np.full(self.n_draws, -1)
            at[place] = own
            here = np.flatnonzero(at[rows] >= 0)
            if here.size:
                blocks.append(Block(here, at[rows[here]], member))
        mixture = NormalMixture(*(part[rows] for part in self.mixture))
        return replace(
            self, mixture=mixture, blocks=tuple(blocks), floor=None, whole=self, rows=rows
        )

    def log_moments(self, individuals: Index, orders: Array) -> Array:
        """Return bounds on log E exp(order L) of privacy losses, (draw, individual, order)."""
        out = np.empty((self.n_draws, individuals.size, orders.size))
        for block, part in zip(self.blocks, self._parts, strict=True):
            out[block.place] = part.log_moments(individuals, orders)
        return out

    def leading(self, epsilon: Array) -> Index:
        """Return who may have the largest risk under any of the models."""
        found = [part.leading(epsilon) for part in self._parts]
        return np.unique(np.concatenate(found))

    def pair(self, individual: int) -> tuple[NormalMixture, NormalMixture]:
        """Return the distributions with and without one individual, whitened, without noise."""
        places = [block.place for block in self.blocks]
        p, q = (_merged(places, side) for side in zip(*self.pairs(individual), strict=True))
        return p, q

    def pairs(self, individual: int) -> list[list[NormalMixture]]:
        """Return the same of each model's own draws."""
        return [
            [_in_units(side, part.units, self.units) for side in part.pair(individual)]
            for part in self._parts
        ]

    @cached_property
    def _parts(self) -> tuple[JointCoupling, ...]:
        """The models' own couplings of their draws here."""
        return tuple(
            replace(
                member.picked(rows),
                floor=None if self.floor is None else self.floor[place],
                integrated=self.integrated,
            )
            for place, rows, member in self.blocks
        )


def stack_answers(
    members: Sequence[JointCoupling], member: Index, responses: JointResponses
) -> StackedAnswers:
    """Return the coupling whose draw (chain, draw) is that of the model of this number.

    Parameters
    ----------
    members : sequence of JointCoupling
        Of the same answers.
    member : ndarray of int
        Shape (chain, draw).
    responses : JointResponses
        What they were fitted to.
    """
    rows = [np.flatnonzero(member.ravel() == k) for k in range(len(members))]
    blocks = tuple(Block(own, own, one) for own, one in zip(rows, members, strict=True) if own.size)
    first = members[0]
    parts = [_in_units(_picked(one.mixture, own), one.units, first.units) for _, own, one in blocks]
    return StackedAnswers(
        mixture=_merged([block.place for block in blocks], parts),
        units=first.units,
        responses=responses,
        revealed=first.revealed,
        seed=first.seed,
        blocks=blocks,
    )


def _in_units(mixture: NormalMixture, found: Units, wanted: Units) -> NormalMixture:
    """Return a mixture in other units; in the same as it is."""
    if all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True)):
        return mixture
    return mixture.in_units(found).whitened(wanted)


def _picked(mixture: NormalMixture, rows: Index) -> NormalMixture:
    """Return some draws, with a covariance of its own for every component."""
    whole = mixture._replace(covariances=mixture.each_covariance)
    return NormalMixture(*(part[rows] for part in whole))


def _merged(places: Sequence[Index], parts: Sequence[NormalMixture]) -> NormalMixture:
    """Put draws where they belong, padded to the most components by such of weight zero."""
    arrays = ((part.weights, part.locations, part.each_covariance) for part in parts)
    return NormalMixture(*(padded(places, found) for found in zip(*arrays, strict=True)))


def padded(places: Sequence[Index], parts: Sequence[Array]) -> Array:
    """Put draws (draw, component, ...) where they belong, padded to the most components.

    By zeros, and by unit matrices where each component has one.
    """
    draws, most = sum(place.size for place in places), max(part.shape[1] for part in parts)
    each = parts[0].shape[2:]
    out = np.zeros((draws, most, *each))
    if len(each) == 2:
        out[:] = np.eye(each[0])
    for place, part in zip(places, parts, strict=True):
        out[place, : part.shape[1]] = part
    return out


@taken.register
def _(coupling: StackedAnswers, members: Index) -> StackedAnswers:
    blocks = tuple(block._replace(member=taken(block.member, members)) for block in coupling.blocks)
    whole: StackedAnswers = taken.dispatch(JointCoupling)(coupling, members)
    return replace(whole, blocks=blocks)
