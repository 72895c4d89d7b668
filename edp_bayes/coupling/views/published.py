"""What is left of everybody's risk once answers are published rounded, in bins or suppressed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import FLOOR, CoarserCoupling, Coupling
from edp_bayes.coupling.pilots import SHARE, largest_of_pilots
from edp_bayes.coupling.regression import Centred, RegressionCoupling
from edp_bayes.coupling.views.some_draws import curves_by_draw, pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.published import Published
from edp_bayes.divergence.released.grid import Grid
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.divergence.composition.pairs import Losses

__all__ = ["NEGLIGIBLE", "ReleasedCoupling", "grid_of"]

# A risk of the full answer up to this stands for what is left of it.
NEGLIGIBLE = 1e-9
PAIRS = 4096  # of a draw and an individual, evaluated at once
REACH = 9.0  # scales of a component
RARELY = 0.05  # draws of such a share may cost more


def grid_of(published: Published) -> Grid:
    """Return the bins as compiled functions take them."""
    edges = np.array(published.bins or (), dtype=np.float64)
    step = published.rounded_to or 0.0
    return Grid(edges, published.first_edge, step, published.origin)


@dataclass(frozen=True, eq=False)
class ReleasedCoupling(CoarserCoupling):
    """A coupling whose curves are those of what is published of the answer.

    Where `least` is given and the risk of a pair in the full answer is below it throughout, the
    latter stands for what is left of it, which is never more.

    Parameters
    ----------
    full : Coupling
        That of the full answer.
    published : Published
        What is published of it.
    least : ndarray, optional
        Shape (chain * draw, epsilon): risks that others are known to have.
    people : ndarray of int, optional
        All who may have a risk, increasing.
    shift : ndarray, optional
        Shape (chain * draw,): how far the answer of every draw lies from where the full coupling
        has it, as given what an adversary knows.
    """

    full: Coupling
    published: Published
    least: Array | None = None
    people: Index | None = None
    shift: Array | None = None

    @property
    def finer(self) -> Coupling:
        """That of the full answer."""
        return self.full

    @property
    def mixture(self) -> Mixture:
        """Distribution of the full answer, shape (chain, draw, component), without known noise."""
        return self.full.mixture

    def bounded(self, epsilon: Array, share: float = SHARE) -> ReleasedCoupling:
        """Return the coupling of a large population, see `RegressionCoupling.bounded`.

        What bounds the risk in the full answer bounds what is left of it.
        """
        if self.pilots.size == 0:
            return self
        largest = largest_of_pilots(self, epsilon)
        return self.with_floor(share * largest, by_cells=share > SHARE)

    @property
    def pilots(self) -> Index:
        """Who contributes most on average; nobody where curves have no bounds of closed form."""
        return self.full.pilots if isinstance(self.full, _Bounded) else np.zeros(0, dtype=np.int64)

    def with_floor(self, floor: Array, *, by_cells: bool = False) -> ReleasedCoupling:
        """Return the coupling whose curves may be upper bounds where they are not above a floor."""
        assert isinstance(self.full, _Bounded)
        return replace(self, full=self.full.with_floor(floor, by_cells=by_cells))

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return whose risk may matter in the full answer; those of none there have none here."""
        people, bound = self.full.relevant(epsilon)
        if self.people is None:
            return people, bound
        return np.intersect1d(people, self.people), bound + NEGLIGIBLE * people.size

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities of the full answer with and without one individual, as it lies."""
        p, q = self.full.pair(individual)
        if self.shift is None:
            return p, q
        shift = self.shift.reshape(p.weights.shape[:-1])[..., None]
        return replace(p, locations=p.locations + shift), replace(q, locations=q.locations + shift)

    def losses(self, individual: int, rows: Index) -> Losses:
        """Return the privacy losses of what is published, in some draws.

        Where it is no bin of a few, those of an answer that tells more: of the bins before noise,
        or else of the full answer.
        """
        from edp_bayes.divergence.composition.binned import AtMost, BinLosses
        from edp_bayes.divergence.composition.pairs import ExactLosses
        from edp_bayes.divergence.released.masses import masses

        p, q, centre = components(self.full, np.array([individual]), rows, np.zeros_like(rows))
        if not self.published.worst:
            centre = centre if self.shift is None else centre + self.shift[rows]
            _, found, size = masses(p, q, grid_of(self.published), centre)
            if (size > 0).all():
                bins = BinLosses(*np.moveaxis(found[:, :, : size.max()], 1, 0))
                return bins if self.published.noise_after is None else AtMost(bins)
        return AtMost(ExactLosses(p, q))

    def costly(self) -> bool:
        """Whether the risk of a pair takes longer than that of the full answer."""
        published = self.published
        if published.rounded_to is None:
            return published.bins is None
        return published.worst or published.noise_after is not None or self.many_values()

    def many_values(self) -> bool:
        """Whether rounded answers are too many to be added up in more than a few draws."""
        from edp_bayes.divergence.released.grid import MOST_BINS

        p = self.mixture
        low, high = ((p.locations + side * REACH * p.scales) for side in (-1.0, 1.0))
        span = high.max(axis=-1) - low.min(axis=-1)
        return bool((span > MOST_BINS * (self.published.rounded_to or np.inf)).mean() > RARELY)

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given.

        Epsilon may be that of every draw, shape (chain * draw, epsilon).
        """
        from edp_bayes.divergence.any_pair.curves import by_draw
        from edp_bayes.divergence.released.curves import released_curves

        grids = by_draw(epsilon, self.n_draws)
        shape = self.n_draws, len(individuals), grids.shape[1]
        if self.reduced is not None and (some := self.reduced[individuals]).any():
            out = np.empty(shape) if out is None else out
            # What is left of the risk in the full answer is never more.
            out[:, some] = self.full.curves(individuals[some], epsilon)
            if not some.all():
                out[:, ~some] = self.curves(individuals[~some], epsilon)
            return out
        most = drawn = None
        if self.floor is not None and isinstance(self.full, _Bounded):
            drawn = self.full.centred(individuals)
            found, done = self.full.without_integrals(individuals, epsilon, drawn)
            out = found if out is None else out
            out[...] = found
            # the risk in the full answer is never below what is left of it
            asked = ~done | (out > self.floor[:, None]).any(axis=2)
            most = np.where(done[..., None], out, np.inf)
        elif self.least is None:
            out = np.empty(shape) if out is None else out
            asked = np.ones(shape[:2], dtype=bool)
        else:
            out = self.full.curves(individuals, epsilon, out=out)
            asked = (out > np.maximum(self.least, NEGLIGIBLE)[:, None]).any(axis=2)
            most = out
        columns, rows = np.nonzero(asked.T)
        for start in range(0, rows.size, PAIRS):
            row, column = (part[start : start + PAIRS] for part in (rows, columns))
            p, q, centre = components(self.full, individuals, row, column, drawn)
            centre = centre if self.shift is None else centre + self.shift[row]
            found = released_curves(
                p, q, grids[row], grid_of(self.published), centre, worst=self.published.worst,
                noise=self.published.noise_after, floor=FLOOR,
            )  # fmt: skip
            out[row, column] = found if most is None else np.minimum(found, most[row, column])
        out[out <= FLOOR] = 0.0
        return out


@runtime_checkable
class _Bounded(Protocol):
    """A coupling whose curves may have bounds of closed form, see `RegressionCoupling.bounded`."""

    @property
    def pilots(self) -> Index: ...

    def with_floor(self, floor: Array, *, by_cells: bool = False) -> Coupling: ...

    def centred(self, individuals: Index) -> Centred: ...

    def without_integrals(
        self, individuals: Index, epsilon: Array, drawn: Centred
    ) -> tuple[Array, NDArray[np.bool_]]: ...


@singledispatch
def components(
    coupling: Coupling,
    individuals: Index,
    rows: Index,
    columns: Index,
    drawn: Centred | None = None,
) -> tuple[Array, Array, Array]:
    """Return components of p and p_i of pairs of a draw and an individual, less their centre.

    A regression's contributions of these individuals need not be drawn again where they are given.

    Returns
    -------
    p, q : ndarray, shape (pair, component, 5)
        As in `edp_bayes.divergence.any_pair.components`.
    centre : ndarray, shape (pair,)
        What was subtracted from locations.
    """
    from edp_bayes.divergence.centring import common_location
    from edp_bayes.divergence.integral import component_rows

    found: list[list[Array]] = [[], []]
    for column in np.unique(columns):
        mine = rows[columns == column]
        pair = coupling.pair(int(individuals[column]))
        for side, mixture in enumerate(pair):
            some = mixture[np.unravel_index(mine, mixture.weights.shape[:-1])]
            found[side].append(
                component_rows(some.weights, some.locations, some.scales, some.kernel, some.noise)
            )
    p, q = (_stacked(parts) for parts in found)
    places = np.where(p[..., 0] > 0.0, p[..., 1], np.nan)
    centre = common_location(places)
    p[..., 1] -= centre[:, None]
    q[..., 1] -= centre[:, None]
    return p, q, centre


@components.register
def _(
    coupling: RegressionCoupling,
    individuals: Index,
    rows: Index,
    columns: Index,
    drawn: Centred | None = None,
) -> tuple[Array, Array, Array]:
    from edp_bayes.divergence.integral import component_rows

    if np.isin(individuals[columns], list(coupling.without)).any():
        return components.dispatch(object)(coupling, individuals, rows, columns)
    *pair, centre = coupling.component_pairs(individuals, rows, columns, drawn)
    kernel, noise = coupling.mixture.kernel, coupling.noise
    p, q = (
        component_rows(part[..., 0], part[..., 1], part[..., 2], kernel, noise) for part in pair
    )
    return p, q, centre


def _stacked(parts: list[Array]) -> Array:
    """Join pairs, padded to the most components by such of weight zero."""
    width = max(part.shape[1] for part in parts)
    padded = []
    for part in parts:
        more = np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)), mode="edge")
        more[:, part.shape[1] :, 0] = 0.0
        padded.append(more)
    return np.concatenate(padded)


@pick.register
def _(coupling: ReleasedCoupling, rows: Index) -> Coupling:
    least = None if coupling.least is None else coupling.least[rows]
    shift = None if coupling.shift is None else coupling.shift[rows]
    return replace(coupling, full=pick(coupling.full, rows), least=least, shift=shift)


@taken.register
def _(coupling: ReleasedCoupling, members: Index) -> ReleasedCoupling:
    people = coupling.people
    return replace(
        coupling,
        full=taken(coupling.full, members),
        people=None if people is None else np.flatnonzero(np.isin(members, people)),
    )


@curves_by_draw.register
def _(coupling: ReleasedCoupling, individuals: Index, epsilon: Array) -> Array:
    return replace(coupling, least=None).curves(individuals, epsilon[:, None])
