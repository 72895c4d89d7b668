"""What is left of everybody's risk once a row of several answers is published by rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.joint import FLOOR, JointCoupling, JointCurves
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.distributions.published_row import PublishedRow
from edp_bayes.divergence.joint.points import digital_shifts, mixture_points
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edp_bayes.divergence.composition.pairs import Losses

__all__ = ["RowCoupling"]

CHUNK = 32  # pairs whose points are held at once
ROW = 9  # stream of the digital shifts


@dataclass(frozen=True, eq=False)
class RowCoupling:
    """A coupling of several answers whose curves are those of what is published of them.

    Where an individual is revealed exactly by the whole answers, or their risk in these is below
    `least` throughout, it stands for what is left of it, which is never more.

    Parameters
    ----------
    full : JointCoupling
        That of the whole answers.
    published : PublishedRow
        What is published of them, in the order of the coupling's queries.
    shift : ndarray, optional
        Shape (draw, query): how far the answers of every draw lie from where the full coupling has
        them, as given what an adversary knows.
    least : ndarray, optional
        Shape (draw, epsilon): risks that others are known to have.
    """

    full: JointCoupling
    published: PublishedRow
    shift: Array | None = None
    least: Array | None = None

    # integrals have errors, which `curves` gives
    estimated: ClassVar[bool] = True

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.full.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return self.full.n_draws

    @property
    def mixture(self) -> NormalMixture:
        """Distribution of the whole answers, whitened, without known noise."""
        return self.full.mixture

    @property
    def width(self) -> int:
        """Numbers held for each individual and draw, beside the curves and their bounds."""
        return self.full.width

    @property
    def revealed(self) -> Mapping[int, tuple[int, bool]]:
        """Whom the whole answers reveal exactly."""
        return self.full.revealed

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return everybody, as the full coupling."""
        return self.full.relevant(epsilon)

    def led(self, epsilon: Array) -> RowCoupling:
        """Return the coupling with a floor, all of whose curves are those of the whole or less."""
        return replace(self, full=self._with_floor(epsilon, integrated=True))

    def bounded(self, epsilon: Array) -> RowCoupling:
        """Return the coupling whose curves below a floor are bounds."""
        return replace(self, full=self._with_floor(epsilon, integrated=False))

    def curves(self, individuals: Index, epsilon: Array) -> JointCurves:
        """Return delta_i(eps) of some individuals, never above those of the whole answers."""
        found = self.full.curves(individuals, epsilon)
        whole = found.raised
        asked = ~found.bounded & (found.value[..., 0] > FLOOR)
        if self.least is not None:
            asked &= (found.value > self.least[:, None]).any(axis=2)
        asked &= ~np.isin(individuals, list(self.full.revealed))
        # of the answers, and where there is noise, of its variances and of itself
        d = self.full.mixture.dimensions * (3 if self.published.noises else 1)
        shifts = digital_shifts(self.n_draws, d, self.full.seed, ROW)
        for column in np.flatnonzero(asked.any(axis=0)):
            rows = np.flatnonzero(asked[:, column])
            value, error, split = self._of_one(int(individuals[column]), rows, epsilon, shifts)
            raised = np.minimum(value + error, whole[rows, column])
            found.value[rows, column] = np.minimum(value, found.value[rows, column])
            found.error[rows, column] = raised - found.value[rows, column]
            # The sum's error is that of both: of the whole answers, and of what is left.
            found.split[rows] += split
        return found

    def log_moments(self, individuals: Index, orders: Array) -> Array:
        """Return bounds on those of the privacy losses of the whole answers, which are no less."""
        return self.full.log_moments(individuals, orders)

    def losses(self, individual: int, rows: Index) -> Losses | None:
        """Return privacy losses in some draws, as far as they are known: at most the whole's."""
        from edp_bayes.divergence.composition.binned import AtMost

        found = self.full.losses(individual, rows)
        return None if found is None else AtMost(found)

    def share(self, individual: int) -> Array:
        """Draw the share of databases in which the whole answers reveal an individual."""
        return self.full.share(individual)

    def line(self, individual: int) -> None:
        """Return nothing: a combination of the answers is not published."""

    def _with_floor(self, epsilon: Array, *, integrated: bool) -> JointCoupling:
        """Return the full coupling with a floor that is no more than the largest risk left."""
        plain = replace(self, full=replace(self.full, floor=None), least=None)
        found = plain.curves(self.full.leading(epsilon), epsilon)
        largest = (found.value - found.error).max(axis=1)
        return replace(self.full, floor=np.maximum(largest, FLOOR), integrated=integrated)

    def _of_one(
        self, individual: int, rows: Index, epsilon: Array, shifts: NDArray[np.int64]
    ) -> tuple[Array, Array, Array]:
        """Return values and errors (row, epsilon), and what parts of the points say."""
        from edp_bayes.divergence.joint.cells import cell_curves
        from edp_bayes.divergence.joint.estimates import PARTS
        from edp_bayes.divergence.joint.noisy import noisy_curves, noisy_points

        p, q = self.full.pair(individual)
        value, error = np.zeros((2, rows.size, epsilon.size))
        split = np.zeros((rows.size, PARTS, epsilon.size))
        for start in range(0, rows.size, CHUNK):
            some = slice(start, start + CHUNK)
            out = value[some], error[some], split[some]
            one, other = (self._noisy(part, rows[some]) for part in (p, q))
            if self.published.noises:
                one, other = (part.in_units(self.full.units) for part in (one, other))
                noisy = noisy_points(one, self.published.noises, shifts[rows[some]])
                noisy_curves(one, other, *noisy, epsilon, out)
                continue
            points = mixture_points(one, shifts[rows[some], : one.dimensions + 1])
            cells = np.stack(
                [self._cells(at, row) for at, row in zip(points, rows[some], strict=True)]
            )
            cell_curves(one, other, points, cells, epsilon, out)
        return value, error, split

    def _noisy(self, mixture: NormalMixture, rows: Index) -> NormalMixture:
        """Return some draws with known noise."""
        whole = mixture.each_covariance[rows] + self.full.noise
        parts = mixture.weights[rows], mixture.locations[rows], whole
        return NormalMixture(*map(np.ascontiguousarray, parts))

    def _cells(self, points: Array, row: int) -> Index:
        """Return the cells of whitened points (d, point) of a draw."""
        units = self.full.units
        y = units.centre + points.T @ units.factor.T
        return self.published.cells(y if self.shift is None else y + self.shift[row])


@pick.register
def _(coupling: RowCoupling, rows: Index) -> RowCoupling:
    shift, least = (None if one is None else one[rows] for one in (coupling.shift, coupling.least))
    return replace(coupling, full=coupling.full.picked(rows), shift=shift, least=least)


@taken.register
def _(coupling: RowCoupling, members: Index) -> RowCoupling:
    return replace(coupling, full=taken(coupling.full, members))
