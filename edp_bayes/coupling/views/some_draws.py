"""Couplings of several density models side by side, each draw under the coupling of its model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import Coupling, draw_count
from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.coupling.pilots import SHARE
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError
from edp_bayes.utils.arrays import Array, Index

__all__ = ["SomeDraws", "StackedCoupling", "curves_by_draw", "pick", "stack_couplings"]


@dataclass(frozen=True, eq=False)
class StackedCoupling:
    """Blocks of draws, each with a coupling of its own.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component): the blocks' distributions, those with fewer components
        padded by components of weight zero.
    blocks : tuple of (ndarray, Coupling)
        Rows among all draws, increasing, and the coupling of these draws. Every row is in one
        block.
    """

    mixture: Mixture
    blocks: tuple[tuple[Index, Coupling], ...]

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.blocks[0][1].n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return draw_count(self.mixture)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return those who may matter in any block, and the largest of the blocks' bounds."""
        people, bounds = zip(*self._relevant(epsilon), strict=True)
        return np.unique(np.concatenate(people)), np.max(bounds, axis=0)

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given."""
        if out is None:
            out = np.empty((self.n_draws, len(individuals), epsilon.size))
        for (rows, coupling), (people, _) in zip(self.blocks, self._relevant(epsilon), strict=True):
            asked = np.isin(individuals, people)
            if asked.all():
                out[rows] = coupling.curves(individuals, epsilon)
                continue
            out[rows] = 0.0
            if asked.any():
                out[np.ix_(rows, asked)] = coupling.curves(individuals[asked], epsilon)
        return out

    def bounded(self, epsilon: Array, share: float = SHARE) -> StackedCoupling:
        """Return the coupling of a large population, see `RegressionCoupling.bounded`."""
        blocks = (
            (
                rows,
                inner.bounded(epsilon, share) if isinstance(inner, RegressionCoupling) else inner,
            )
            for rows, inner in self.blocks
        )
        return StackedCoupling(self.mixture, tuple(blocks))

    @property
    def floor(self) -> Array | None:
        """Where curves may be upper bounds, shape (draw, epsilon); None where they are exact."""
        floors = [(rows, getattr(inner, "floor", None)) for rows, inner in self.blocks]
        known = [floor for _, floor in floors if floor is not None]
        if not known:
            return None
        out = np.zeros((self.n_draws, known[0].shape[1]))
        for rows, floor in floors:
            out[rows] = 0.0 if floor is None else floor
        return out

    @property
    def reduced(self) -> NDArray[np.bool_] | None:
        """Whose curves are upper bounds, because contributions were not collected."""
        found: NDArray[np.bool_] | None = getattr(self.blocks[0][1], "reduced", None)
        return found

    def new_individual(self, epsilon: Array) -> Array:
        """Return delta_i(eps) of an individual unlike all in the sample, shape (draw, epsilon).

        Zero where a model knows of none, such as the smoothed bootstrap.
        """
        out = np.zeros((self.n_draws, epsilon.size))
        for rows, coupling in self.blocks:
            if new := getattr(coupling, "new_individual", None):
                out[rows] = new(epsilon)
        return out

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        lead = self.mixture.weights.shape[:-1]
        pairs = [coupling.pair(individual) for _, coupling in self.blocks]
        rows = [rows for rows, _ in self.blocks]
        p, q = (_joined(rows, list(side), lead) for side in zip(*pairs, strict=True))
        return p, q

    def _relevant(self, epsilon: Array) -> list[tuple[Index, Array]]:
        """Return what is relevant in each block, remembered for the blocks of individuals."""
        key = epsilon.tobytes()
        if key not in self._remembered:
            self._remembered[key] = [coupling.relevant(epsilon) for _, coupling in self.blocks]
        return self._remembered[key]

    @cached_property
    def _remembered(self) -> dict[bytes, list[tuple[Index, Array]]]:
        return {}


def stack_couplings(members: list[Coupling], member: Index) -> StackedCoupling:
    """Take each draw, in its place, from the member named for it.

    Parameters
    ----------
    members : list of Coupling
        Each with the same chains and draws.
    member : ndarray of int, shape (chain, draw)
        Position of a member for every draw.

    Raises
    ------
    InputTypeError
        If the draws of a coupling cannot be picked one by one.
    """
    flat = member.ravel()
    used = [(np.flatnonzero(flat == k), members[k]) for k in np.unique(flat)]
    blocks = tuple((rows, pick(coupling, rows)) for rows, coupling in used)
    distributions = [coupling.mixture for _, coupling in blocks]
    mixture = _joined([rows for rows, _ in blocks], distributions, member.shape)
    return StackedCoupling(mixture, blocks)


@singledispatch
def pick(coupling: Any, rows: Index) -> Any:
    """Return the coupling of some draws, as a single chain; rows among all draws, increasing.

    Register an implementation for a coupling of your own by ``@pick.register``.
    """
    raise InputTypeError(
        "stacking needs couplings whose draws can be picked one by one, found "
        f"{type(coupling).__name__}; register how with edp_bayes.coupling.views.some_draws.pick"
    )


@pick.register
def _(coupling: JointCoupling, rows: Index) -> JointCoupling:
    return coupling.picked(rows)


@pick.register
def _(coupling: ShiftCoupling, rows: Index) -> Coupling:
    return ShiftCoupling(_picked(coupling.mixture, rows), coupling.responses)


@pick.register
def _(coupling: RegressionCoupling, rows: Index) -> Coupling:
    parts = {f.name: getattr(coupling, f.name) for f in fields(RegressionCoupling)}
    parts["mixture"] = _picked(coupling.mixture, rows)
    parts["posterior"] = coupling.posterior.picked(rows)
    parts["without"] = {i: _picked(mixture, rows) for i, mixture in coupling.without.items()}
    parts["floor"] = None
    return SomeDraws(**parts, whole=coupling, rows=rows)


@pick.register
def _(coupling: StackedCoupling, rows: Index) -> Coupling:
    blocks = []
    for held, inner in coupling.blocks:
        wanted = np.isin(held, rows)
        if wanted.any():
            inside = pick(inner, np.flatnonzero(wanted))
            blocks.append((np.searchsorted(rows, held[wanted]), inside))
    return StackedCoupling(_picked(coupling.mixture, rows), tuple(blocks))


@singledispatch
def curves_by_draw(coupling: Coupling, individuals: Index, epsilon: Array) -> Array:
    """Return delta_i at an epsilon of each draw, shape (draw, individual, 1)."""
    out = np.empty((epsilon.size, individuals.size, 1))
    for level in np.unique(epsilon):
        rows = np.flatnonzero(epsilon == level)
        out[rows] = pick(coupling, rows).curves(individuals, np.array([level]))
    return out


@curves_by_draw.register
def _(coupling: RegressionCoupling, individuals: Index, epsilon: Array) -> Array:
    return coupling.curves(individuals, epsilon[:, None])


@curves_by_draw.register
def _(coupling: StackedCoupling, individuals: Index, epsilon: Array) -> Array:
    out = np.empty((coupling.n_draws, individuals.size, 1))
    for rows, inner in coupling.blocks:
        out[rows] = curves_by_draw(inner, individuals, epsilon[rows])
    return out


@dataclass(frozen=True, eq=False)
class SomeDraws(RegressionCoupling):
    """Some of the draws of a coupling: the very numbers it gives all in all."""

    whole: RegressionCoupling = field(kw_only=True)
    rows: Index = field(kw_only=True)

    def contributions(self, individuals: Index, *, by_component: bool = True) -> ContributionDraws:
        """Return how some individuals contribute, their presence by component."""
        contributions = self.whole.contributions(individuals, by_component=by_component)
        return ContributionDraws(*(part[self.rows] for part in contributions))

    def _active(self) -> NDArray[np.bool_]:
        """Return in which components presence may be another than on the whole."""
        return self.whole._active()[self.rows]


def _picked(mixture: Mixture, rows: Index) -> Mixture:
    """Return some draws as a single chain."""
    places = np.unravel_index(rows, mixture.weights.shape[:-1])
    return mixture[tuple(axis[None] for axis in places)]


def _joined(rows: list[Index], parts: list[Mixture], lead: tuple[int, ...]) -> Mixture:
    """Put the draws of several mixtures in their rows, padded to the most components."""
    width = max(part.weights.shape[-1] for part in parts)
    whole = np.empty((3, int(np.prod(lead)), width))
    for places, part in zip(rows, parts, strict=True):
        for array, values in zip(whole, (part.weights, part.locations, part.scales), strict=True):
            flat = values.reshape(places.size, -1)
            missing = ((0, 0), (0, width - flat.shape[1]))
            array[places] = np.pad(flat, missing, mode="edge")
        whole[0, places, part.weights.shape[-1] :] = 0.0
    arrays = whole.reshape(3, *lead, width)
    return Mixture(*arrays, kernel=parts[0].kernel, noise=parts[0].noise)
