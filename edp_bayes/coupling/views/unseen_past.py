"""The next answer where of the last ones no more is known than the intervals they lie in.

Given the past in full the answer has the density p, and p_i without individual i. What the past may
have been moves both by the same amount. Given the intervals alone they are mixtures of the moved
densities, sum_m v_m p(x - s_m) and sum_m v_m p_i(x - s_m), with v the distribution of the past
within the intervals. Its posterior is the Bayesian bootstrap's, over spells of databases before
which the same was published. Each component is moved to a few pasts, drawn at random. By joint
convexity this never lowers a risk on average (docs/mathematics/adversary.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import FLOOR, CoarserCoupling, Coupling
from edp_bayes.coupling.pilots import SHARE, largest_of_pilots
from edp_bayes.coupling.regression import Centred, RegressionCoupling
from edp_bayes.coupling.views.published import NEGLIGIBLE, PAIRS, ReleasedCoupling, components
from edp_bayes.coupling.views.some_draws import curves_by_draw, pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.utils.arrays import Array, Index

__all__ = ["PastCoupling", "given_in_full"]

# Places of the past in all components together: so many for each spread of the answer, at most.
A_SPREAD, MOST = 6.0, 24


@dataclass(frozen=True, eq=False)
class PastCoupling(CoarserCoupling):
    """A coupling whose distributions are mixed over what the past may have been.

    Its risks are at most those of the coupling given the past, on average over that.

    Parameters
    ----------
    known : Coupling
        That given the past in full.
    component : ndarray of int
        Shape (chain * draw, place): which component of the response is moved.
    moved : ndarray
        Shape (chain * draw, place): by how much.
    share : ndarray
        Shape (chain * draw, place): share of the component's weight; zero pads.
    """

    known: Coupling
    component: Index
    moved: Array
    share: Array

    @classmethod
    def of(
        cls,
        known: Coupling,
        effect: Array,
        spell: Index,
        spread: float,
        rng: np.random.Generator,
    ) -> PastCoupling:
        """Draw how the past is distributed within its intervals, and where components move.

        Parameters
        ----------
        known : Coupling
            That given the past in full.
        effect : ndarray
            Shape (chain * draw, past): by how much each past moves the answer.
        spell : ndarray of int
            Shape (past,): pasts of one spell, numbered from 0 on, are like each other and weigh the
            same.
        spread : float
            Standard deviation of the answer given the past in full.
        rng : numpy.random.Generator
            Source of randomness: weights of the spells first, then places.
        """
        draws, pasts = effect.shape
        order = np.argsort(effect, axis=1)
        weight = rng.standard_exponential((draws, int(spell.max()) + 1))[:, spell]
        below = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
        below /= below[:, -1:]
        reach = float(np.ptp(effect, axis=1).mean()) / spread
        most = min(MOST, math.ceil(A_SPREAD * reach))
        base = known.mixture.weights
        count = 1 + np.floor(most * base.reshape(draws, -1)).astype(np.int64)
        total = count.sum(axis=1)
        used = np.arange(total.max()) < total[:, None]
        component = np.zeros(used.shape, dtype=np.int64)
        size = np.ones(used.shape, dtype=np.int64)
        number = np.zeros(used.shape, dtype=np.int64)
        flat = count.ravel()
        component[used] = np.repeat(np.tile(np.arange(count.shape[1]), draws), flat)
        size[used] = np.repeat(flat, flat)
        number[used] = np.arange(flat.sum()) - np.repeat(np.cumsum(flat) - flat, flat)
        # systematic sampling: every past is taken as often as it weighs, on average
        start = np.take_along_axis(rng.random(count.shape), component, axis=1)
        where = (number + start) / size
        rows = np.arange(draws)[:, None]
        found = np.searchsorted((below + 2.0 * rows).ravel(), (where + 2.0 * rows).ravel())
        place = np.minimum(found.reshape(where.shape) - pasts * rows, pasts - 1)
        moved = np.take_along_axis(np.take_along_axis(effect, order, axis=1), place, axis=1)
        return cls(known, component, moved, np.where(used, 1.0 / size, 0.0))

    @property
    def finer(self) -> Coupling:
        """That given the past."""
        return self.known

    @cached_property
    def mixture(self) -> Mixture:
        """Distribution of the response, shape (chain, draw, component), without known noise."""
        return self._mixed(self.known.mixture)

    @property
    def pilots(self) -> Index:
        """Who contributes most on average; nobody where curves have no bounds of closed form."""
        if isinstance(self.known, RegressionCoupling):
            return self.known.pilots
        return np.zeros(0, dtype=np.int64)

    def bounded(self, epsilon: Array, share: float = SHARE) -> PastCoupling:
        """Return the coupling of a large population, see `RegressionCoupling.bounded`.

        What bounds the risk given the past bounds it here.
        """
        if self.pilots.size == 0:
            return self
        largest = largest_of_pilots(self, epsilon)
        return self.with_floor(share * largest, by_cells=share > SHARE)

    def with_floor(self, floor: Array, *, by_cells: bool = False) -> PastCoupling:
        """Return the coupling whose curves may be upper bounds where they are not above a floor."""
        assert isinstance(self.known, RegressionCoupling)
        return replace(self, known=self.known.with_floor(floor, by_cells=by_cells))

    def centred(self, individuals: Index) -> Centred:
        """Return what is drawn of individuals given the past, see `RegressionCoupling.centred`."""
        assert isinstance(self.known, RegressionCoupling)
        return self.known.centred(individuals)

    def without_integrals(
        self, individuals: Index, epsilon: Array, drawn: Centred
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return curves that need no integral of their own, and whose these are: upper bounds."""
        assert isinstance(self.known, RegressionCoupling)
        return self.known.without_integrals(individuals, epsilon, drawn)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return whose risk may matter given the past; nobody else's is more here."""
        return self.known.relevant(epsilon)

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        p, q = self.known.pair(individual)
        return self._mixed(p), self._mixed(q)

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given.

        Epsilon may be that of every draw, shape (chain * draw, epsilon).
        """
        from edp_bayes.divergence.any_pair import curves as any_pair
        from edp_bayes.divergence.any_pair.curves import by_draw

        grids = by_draw(epsilon, self.n_draws)
        if out is None:
            out = np.empty((self.n_draws, len(individuals), grids.shape[1]))
        drawn = None
        if self.floor is not None and isinstance(self.known, RegressionCoupling):
            drawn = self.known.centred(individuals)
            out[...], done = self.known.without_integrals(individuals, epsilon, drawn)
            asked = ~done | (out > self.floor[:, None]).any(axis=2)
            out[~done] = np.inf
        else:
            # the risk given the past is never below it
            self.known.curves(individuals, epsilon, out=out)
            asked = (out > NEGLIGIBLE).any(axis=2)
        columns, rows = np.nonzero(asked.T)
        for start in range(0, rows.size, PAIRS):
            row, column = (part[start : start + PAIRS] for part in (rows, columns))
            p, q, _ = components(self, individuals, row, column, drawn)
            found = any_pair.curves(p, q[:, None], grids[row], floor=FLOOR)[:, 0]
            out[row, column] = np.minimum(found, out[row, column])
        return out

    def moved_components(self, parts: Array, rows: Index) -> Array:
        """Return components (pair, component, 5) of some draws, moved to what the past may be.

        They may be the components of the response several times over, as with and without an
        individual who is sometimes absent.
        """
        size = self.known.mixture.weights.shape[-1]
        times = -(-parts.shape[1] // size)
        if more := times * size - parts.shape[1]:
            parts = np.pad(parts, ((0, 0), (0, more), (0, 0)), mode="edge")
            parts[:, -more:, 0] = 0.0
        chosen = (self.component[rows][:, None] + size * np.arange(times)[:, None]).reshape(
            len(rows), -1
        )
        found = np.take_along_axis(parts, chosen[..., None], axis=1)
        found[..., 0] *= np.tile(self.share[rows], times)
        found[..., 1] += np.tile(self.moved[rows], times)
        return found

    def _mixed(self, mixture: Mixture) -> Mixture:
        """Return draws of a mixture, moved to what the past may be."""
        lead = mixture.weights.shape[:-1]
        parts = np.stack([mixture.weights, mixture.locations, mixture.scales], axis=-1)
        found = self.moved_components(
            parts.reshape(self.n_draws, -1, 3), np.arange(self.n_draws)
        ).reshape(*lead, -1, 3)
        return Mixture(*np.moveaxis(found, -1, 0), kernel=mixture.kernel, noise=mixture.noise)


def given_in_full(coupling: Coupling) -> Coupling:
    """Return the coupling of whole answers given the past in full.

    Later answers follow what will be published of those before them. Whatever that is, and however
    they are published themselves, their risks are at most these.
    """
    if isinstance(coupling, ReleasedCoupling) and isinstance(coupling.full, PastCoupling):
        return coupling.full.known
    return coupling.known if isinstance(coupling, PastCoupling) else coupling


@components.register
def _(
    coupling: PastCoupling,
    individuals: Index,
    rows: Index,
    columns: Index,
    drawn: Centred | None = None,
) -> tuple[Array, Array, Array]:
    p, q, centre = components(coupling.known, individuals, rows, columns, drawn)
    return coupling.moved_components(p, rows), coupling.moved_components(q, rows), centre


@pick.register
def _(coupling: PastCoupling, rows: Index) -> Coupling:
    return PastCoupling(
        pick(coupling.known, rows),
        coupling.component[rows],
        coupling.moved[rows],
        coupling.share[rows],
    )


@taken.register
def _(coupling: PastCoupling, members: Index) -> PastCoupling:
    return replace(coupling, known=taken(coupling.known, members))


@curves_by_draw.register
def _(coupling: PastCoupling, individuals: Index, epsilon: Array) -> Array:
    return coupling.curves(individuals, epsilon[:, None])
