"""Every database keeps its weight and moves by what the individual contributed to its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.curves.several_answers import FAR, NOTHING
from edp_bayes.coupling.joint import JointCoupling, leaders
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.divergence.joint.estimates import PARTS, add_density, estimate
from edp_bayes.divergence.joint.points import FAR_POINTS, POINTS
from edp_bayes.divergence.joint.screening import ORDERS, pair_bound
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["JointShiftCoupling"]


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
        database, value = self.responses.entries.of(individual)
        moved = self.mixture.locations.copy()
        moved[:, database] -= self.units.shrink(value)
        return self.mixture, self.mixture._replace(locations=moved)

    def _moves(self, people: Index) -> Any:
        found = self.responses.entries
        return found.start, found.database, self.units.shrink(found.value)

    def _bounds(self, people: Index, moves: Any, growth: Array) -> tuple[Array, NDArray[np.bool_]]:
        bound = np.empty((self.n_draws, people.size, growth.size))
        far = np.empty(bound.shape[:2], dtype=bool)
        wide = self.mixture.covariances[:, 0] + self.noise
        in_threads(
            _bounds, self.n_draws, self.mixture.weights, wide, people, moves, growth, ORDERS, bound,
            far,
        )  # fmt: skip
        return bound, far

    def _integrals(
        self,
        people: Index,
        moves: Any,
        at: tuple[Index, Index],
        points: Array,
        begin: Index,
        wide: NormalMixture,
        far: NDArray[np.bool_],
        growth: Array,
        out: tuple[Array, Array, Array],
    ) -> tuple[NormalMixture, NormalMixture, Index]:
        in_threads(
            _integrals, len(points), points, begin, people, tuple(wide), moves, far, growth, *out
        )
        p = NormalMixture(*(part[at[0]] for part in self.mixture))
        moved = p.locations.copy()
        start, database, value = moves
        count = start[people + 1] - start[people]
        pair = np.repeat(np.arange(people.size), count)
        entry = np.arange(pair.size) + np.repeat(start[people] - (np.cumsum(count) - count), count)
        moved[pair, database[entry]] -= value[entry]
        # points are those of p itself
        return p, p._replace(locations=moved), np.empty(0, dtype=np.int64)

    def _log_moments(self, people: Index, moves: Any, orders: Array) -> Array:
        start, database, value = moves
        w, covariances = self.mixture.weights, self.mixture.covariances[:, 0] + self.noise
        inverse = np.linalg.inv(covariances)
        out = np.empty((self.n_draws, people.size, orders.size))
        for column, i in enumerate(people):
            own = slice(start[i], start[i + 1])
            length = np.einsum("ea,sab,eb->se", value[own], inverse, value[own])
            with np.errstate(over="ignore"):
                gained = np.expm1(0.5 * length[..., None] * orders * (1.0 + orders))
            out[:, column] = np.log1p((w[:, database[own], None] * gained).sum(axis=1))
        return out

    def leading(self, epsilon: Array) -> Index:
        """Return who may have the largest risk, by the root mean square of what they contribute."""
        found = self.responses.entries
        whole = self.mixture.covariances[:, 0].mean(axis=0) + self.noise
        moves = self.units.shrink(found.value)
        length = np.einsum("ea,ab,eb->e", moves, np.linalg.inv(whole), moves)
        count = np.maximum(np.diff(found.start), 1)
        size = np.sqrt(found.total(length) / count)
        return leaders(count / self.responses.n_databases, size, epsilon, self.responses.rank)


@compiled
def _bounds(first, last, w, covariances, people, entries, growth, orders, bound, far):  # type: ignore[no-untyped-def]
    """Fill in bounds (draw, person, epsilon), and where more points are needed.

    p_i is p with component j, of database j, moved by the contribution c_ij: by joint convexity the
    risk is at most the sum of w_j H(N(c_ij, S) || N(0, S)), bounded by Renyi divergences. length is
    c' S^-1 c, w (draw, n), covariances (draw, d, d); entries are those of the contributions.
    """
    begin, database, moves = entries
    d, levels = moves.shape[1], growth.size
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    one, shift = np.ones(1), np.empty(1)
    thresholds, found = np.log1p(growth), np.empty(levels)
    for s in range(first, last):
        cholesky(covariances[s], factor, d)
        inverse_factor(factor, inverse, d)
        for row in range(people.size):
            i = people[row]
            for e in range(levels):
                bound[s, row, e] = 0.0
            farthest = 0.0
            for entry in range(begin[i], begin[i + 1]):
                length = 0.0
                for a in range(d):
                    u_a = 0.0
                    for b in range(a + 1):
                        u_a += inverse[a, b] * moves[entry, b]
                    length += u_a * u_a
                farthest = max(farthest, length)
                shift[0] = np.sqrt(length)
                pair_bound(one, shift, 1, thresholds, levels, orders, found)
                for e in range(levels):
                    bound[s, row, e] += w[s, database[entry]] * found[e]
            far[s, row] = farthest > FAR * FAR


@compiled
def _integrals(  # type: ignore[no-untyped-def]
    first, last, points, place, people, base, entries, far, growth, value, error, split
):
    """Fill in the curves of pairs (of draw s those from place[s] to place[s + 1]).

    Only the components of databases in which they contribute move: u = q / p = 1 + (there - gone) /
    p, with gone and there their densities before and after. points (draw, d, FAR_POINTS).
    """
    w, mu, covariances = base
    begin, database, moves = entries
    n, d = mu.shape[1:]
    factor, inverse = np.empty((d, d)), np.empty((d, d))
    density, u, v = np.empty(FAR_POINTS), np.empty(FAR_POINTS), np.ones(FAR_POINTS)
    gone, there = np.empty(FAR_POINTS), np.empty(FAR_POINTS)
    quadratic, parts, mean = np.empty(FAR_POINTS), np.empty((3, PARTS)), np.empty(d)
    for s in range(first, last):
        cholesky(covariances[s, 0], factor, d)
        inverse_factor(factor, inverse, d)
        known = 0
        for pair in range(place[s], place[s + 1]):
            i = people[pair]
            count = FAR_POINTS if far[pair] else POINTS
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
                # the difference may round to less than zero
                u[k] = max(1.0 + (there[k] - gone[k]) / density[k], 0.0)
            estimate(u, v, count, growth, parts, value[pair], error[pair], split[s])
            for e in range(growth.size):
                # too few points tell: they may all have missed it
                if value[pair, e] * count < PARTS:
                    error[pair, e] = max(error[pair, e], 1.0 / count)
