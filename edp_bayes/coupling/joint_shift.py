"""Every database keeps its weight and moves by what the individual contributed to its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.joint import BASE, CHUNK, FLOOR, JointCoupling, JointCurves
from edp_bayes.coupling.joint_curves import FAR, NOTHING
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.joint.estimates import PARTS, add_density, estimate
from edp_bayes.divergence.joint.points import (
    FAR_POINTS,
    POINTS,
    digital_shifts,
    mixture_points,
)
from edp_bayes.divergence.joint.screening import ORDERS, pair_bound
from edp_bayes.utils.compiled import compiled, in_threads
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["JointShiftCoupling"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JointShiftCoupling(JointCoupling):
    """p = sum_j w_j N(y_j, H), p_i = sum_j w_j N(y_j - c_ij, H), as `edp_bayes.coupling.shift`.

    Parameters
    ----------
    mixture : NormalMixture
        Shape (draw, n): one component for each database, of one covariance H in each draw.
    units : Units
        Whitened units.
    responses : JointResponses
        Contributions.
    revealed : mapping of int to (int, bool)
        As for `JointCoupling`.
    seed : int
        Of the points.
    """

    posterior: None = None  # type: ignore[assignment]
    without: Mapping[int, NormalMixture] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Numbers held for each individual and draw, beside the curves."""
        return 1

    def pair(self, individual: int) -> tuple[NormalMixture, NormalMixture]:
        """Return the distributions with and without one individual, whitened, without noise."""
        database, value = self.responses.contribution.of(individual)
        moved = self.mixture.locations.copy()
        moved[:, database] -= self.units.shrink(value)
        return self.mixture, self.mixture._replace(locations=moved)

    def _from_mixture(
        self, people: Index, columns: NDArray[np.bool_], epsilon: Array, out: JointCurves
    ) -> None:
        found = self.responses.contribution
        moves = self.units.shrink(found.value)
        w, mu, covariances = self.mixture
        draws, d = len(w), mu.shape[2]
        value, error = np.zeros((2, draws, people.size, epsilon.size))
        shifts = digital_shifts(draws, d, self.seed, BASE)
        wide = covariances[:, 0] + self.noise
        for start in range(0, draws, CHUNK):
            some = slice(start, min(start + CHUNK, draws))
            points = mixture_points(
                NormalMixture(w[some], mu[some], wide[some, None]), shifts[some]
            )
            in_threads(
                _curves, len(points), (w[some], mu[some], wide[some]), points, people,
                (found.start, found.database, moves), np.expm1(epsilon), ORDERS, FLOOR,
                value[some], error[some], out.split[some], out.skipped[some],
            )  # fmt: skip
        out.value[:, columns], out.error[:, columns] = value, error


@compiled
def _curves(  # type: ignore[no-untyped-def]
    first, last, base, points, people, entries, growth, orders, floor, value, error, split, skipped
):
    """Fill in the curves of some people at the points (draw, d, FAR_POINTS) of each draw."""
    w, mu, covariances = base
    begin, database, moves = entries
    n, d = mu.shape[1:]
    levels = growth.size
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    density, u, v = np.empty(FAR_POINTS), np.empty(FAR_POINTS), np.ones(FAR_POINTS)
    gone, there = np.empty(FAR_POINTS), np.empty(FAR_POINTS)
    quadratic, parts, mean = np.empty(FAR_POINTS), np.empty((3, PARTS)), np.empty(d)
    bound, one, shift = np.empty(levels), np.ones(1), np.empty(1)
    thresholds, found = np.log1p(growth), np.empty(levels)
    for s in range(first, last):
        cholesky(covariances[s], factor, d)
        inverse_factor(factor, inverse, d)
        known = 0
        for row in range(people.size):
            i = people[row]
            for e in range(levels):
                bound[e] = 0.0
            far = 0.0
            for entry in range(begin[i], begin[i + 1]):
                length = 0.0
                for a in range(d):
                    u_a = 0.0
                    for b in range(a + 1):
                        u_a += inverse[a, b] * moves[entry, b]
                    length += u_a * u_a
                far = max(far, length)
                shift[0] = np.sqrt(length)
                pair_bound(one, shift, 1, thresholds, levels, orders, found)
                for e in range(levels):
                    bound[e] += w[s, database[entry]] * found[e]
            if bound[0] <= floor:
                for e in range(levels):
                    skipped[s, e] += bound[e]
                continue
            count = FAR_POINTS if far > FAR * FAR else POINTS
            if known < count:
                for k in range(FAR_POINTS):
                    density[k] = 0.0
                for j in range(n):
                    if w[s, j] > NOTHING:
                        add_density(
                            density, quadratic, points[s], count, w[s, j], mu[s, j], inverse, d
                        )
                known = count
            for k in range(count):
                gone[k] = 0.0
                there[k] = 0.0
            for entry in range(begin[i], begin[i + 1]):
                j = database[entry]
                for a in range(d):
                    mean[a] = mu[s, j, a] - moves[entry, a]
                add_density(there, quadratic, points[s], count, w[s, j], mean, inverse, d)
                add_density(gone, quadratic, points[s], count, w[s, j], mu[s, j], inverse, d)
            for k in range(count):
                u[k] = max(1.0 + (there[k] - gone[k]) / density[k], 0.0)
            estimate(u, v, count, growth, parts, value[s, row], error[s, row], split[s])
            for e in range(levels):
                if value[s, row, e] * count < PARTS:
                    error[s, row, e] = max(error[s, row, e], 1.0 / count)
                value[s, row, e] = min(value[s, row, e], bound[e])
                error[s, row, e] = min(error[s, row, e], bound[e] - value[s, row, e])
