"""p_i from a mixture of multivariate normals: each component loses the contribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.joint_contributions import JointContributionPosterior
from edp_bayes.coupling.joint_presence import JointPresence
from edp_bayes.coupling.pooling import ALONE
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.divergence.joint.estimates import PARTS
from edp_bayes.utils.compiled import in_threads

if TYPE_CHECKING:
    from edp_bayes.coupling.joint_contributions import JointContributionDraws
    from edp_bayes.records.joined import JointResponses

__all__ = ["FLOOR", "JointCoupling", "JointCurves", "pair_curves"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FLOOR = 1e-6  # risks below this are not looked for: their bounds are added to the sum's error
CHUNK = 32  # draws whose points are held at once
BASE, OWN = 5, 6  # streams of the digital shifts
REVEALED = [0, 0, 0, 7]  # stream of the share of databases in which an individual is revealed


class JointCurves(NamedTuple):
    """Privacy curves of some individuals, and what is known of their errors.

    Attributes
    ----------
    value, error : ndarray
        Shape (draw, individual, epsilon): delta_i(eps) and its standard error.
    split : ndarray
        Shape (draw, part, epsilon): the sum of all delta_i by each part of the points, whose means
        vary as that of the whole does.
    skipped : ndarray
        Shape (draw, epsilon): bound on the sum of the risks that were not integrated.
    """

    value: Array
    error: Array
    split: Array
    skipped: Array

    @classmethod
    def zeros(cls, draws: int, people: int, levels: int) -> JointCurves:
        """Return curves to be filled in."""
        shape = (draws, people, levels)
        parts = np.zeros((draws, PARTS, levels))
        return cls(np.zeros(shape), np.zeros(shape), parts, np.zeros((draws, levels)))


@dataclass(frozen=True, eq=False)
class JointCoupling:
    """Each component loses the individual's contribution to all queries, given that component.

    See `edp_bayes.coupling.joint_curves`. Where the distribution without an individual is known
    itself, because in some direction they make up most of the variance, p is that distribution with
    the contribution added to every component.

    Parameters
    ----------
    mixture : NormalMixture
        Distribution of the whitened responses, shape (draw, component), without known noise.
    units : Units
        What they are in.
    responses : JointResponses
        What it was fitted to.
    posterior : JointContributionPosterior
        How individuals contribute.
    without : mapping of int to NormalMixture
        The distribution without some individuals, in the same units, by position.
    revealed : mapping of int to (int, bool)
        Individuals whom a combination of the answers reveals exactly, by position: in how many
        databases, and whether the responses without them depend linearly, so that this is all of
        their risk.
    seed : int
        Of presence and points.
    """

    mixture: NormalMixture
    units: Units
    responses: JointResponses
    posterior: JointContributionPosterior
    without: Mapping[int, NormalMixture] = field(default_factory=dict)
    revealed: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    seed: int = 0

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.responses.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return len(self.mixture.weights)

    @property
    def width(self) -> int:
        """Numbers held for each individual and draw, beside the curves."""
        d = self.mixture.dimensions
        return int(self.mixture.weights.shape[1]) + 2 * d * d + d

    @cached_property
    def noise(self) -> Array:
        """Covariance of the known noise in whitened units, shape (d, d)."""
        inverse = np.linalg.inv(self.units.factor)
        return np.asarray(inverse @ np.diag(self.responses.noise_variance) @ inverse.T)

    def contributions(
        self, individuals: Index, *, by_component: bool = True
    ) -> JointContributionDraws:
        """Return how some individuals contribute, their presence by component."""
        components = self.mixture.weights.shape[1] if by_component else 1
        drawn = self.posterior.draw(individuals, self.n_draws, components)
        if by_component:
            self._presence.fill(individuals, drawn.presence)
        return drawn

    def curves(self, individuals: Index, epsilon: Array) -> JointCurves:
        """Return delta_i(eps) of some individuals."""
        out = JointCurves.zeros(self.n_draws, len(individuals), epsilon.size)
        alone = np.array([self.revealed.get(int(i), (0, False))[1] for i in individuals])
        known = np.isin(individuals, list(self.without)) & ~alone
        plain = ~known & ~alone
        if plain.any():
            self._from_mixture(individuals[plain], plain, epsilon, out)
        for column in np.flatnonzero(known):
            p, q = self.pair(int(individuals[column]))
            found = pair_curves(p, q, self.noise, epsilon, self.seed, out.split)
            out.value[:, column], out.error[:, column] = found
        for column in np.flatnonzero(np.isin(individuals, list(self.revealed))):
            share = self.share(int(individuals[column]))[:, None]
            value = out.value[:, column]
            # at least the share; what else tells of them is told where this does not
            out.value[:, column] = share + (1.0 - share) * value
            out.error[:, column] *= 1.0 - share
        return out

    def share(self, individual: int) -> Array:
        """Draw the share of databases in which an individual is revealed, shape (draw,).

        Exactly 1 where they are in all of them.
        """
        count, n = self.revealed[individual][0], self.responses.n_databases
        if count == n:
            return np.ones(self.n_draws)
        stream = [self.seed, int(self.responses.rank[individual])]
        rng = np.random.Generator(np.random.Philox(key=stream, counter=REVEALED))
        return rng.beta(count + ALONE[0], n - count + ALONE[1], self.n_draws)

    def pair(self, individual: int) -> tuple[NormalMixture, NormalMixture]:
        """Return the distributions with and without one individual, whitened, without noise."""
        one = np.array([individual])
        if individual in self.without:
            q = self.without[individual]
            presence, a, slope, spread = (
                part[:, 0] for part in self.contributions(one, by_component=False)
            )
            turned = np.eye(self.mixture.dimensions) + slope[:, None]
            place = np.einsum(
                "skab,skb->ska",
                np.broadcast_to(turned, (*q.locations.shape, q.dimensions)),
                q.locations,
            )
            given = NormalMixture(
                q.weights,
                place + a[:, None],
                turned @ q.covariances @ np.swapaxes(turned, -1, -2) + spread[:, None],
            )
            return _mixed(q, given, np.broadcast_to(presence[:, :1], q.weights.shape)), q
        from edp_bayes.coupling.joint_curves import pair_components

        rho, a, slope, spread = (part[:, 0] for part in self.contributions(one))
        q, given = pair_components(self.mixture, rho, a, slope, spread)
        return _mixed(q, given, rho), q

    def _from_mixture(
        self, people: Index, columns: NDArray[np.bool_], epsilon: Array, out: JointCurves
    ) -> None:
        from edp_bayes.coupling.joint_curves import Base, joint_curves
        from edp_bayes.divergence.joint.points import digital_shifts, mixture_points
        from edp_bayes.divergence.joint.screening import ORDERS

        w, mu, covariances = self.mixture
        base = Base(w, mu, covariances, self.noise)
        moves = tuple(self.contributions(people))
        shape = (self.n_draws, people.size, epsilon.size)
        value, error = np.zeros((2, *shape))
        shifts = digital_shifts(self.n_draws, self.mixture.dimensions, self.seed, BASE)
        for start in range(0, self.n_draws, CHUNK):
            some = slice(start, min(start + CHUNK, self.n_draws))
            wide = NormalMixture(w[some], mu[some], covariances[some] + self.noise)
            points = mixture_points(wide, shifts[some])
            in_threads(
                joint_curves, len(points), start, base, points, moves, np.expm1(epsilon), ORDERS,
                FLOOR, value, error, out.split, out.skipped,
            )  # fmt: skip
        out.value[:, columns], out.error[:, columns] = value, error

    @cached_property
    def _presence(self) -> JointPresence:
        return JointPresence(
            self.mixture,
            self.units.whiten(self.responses.response),
            self.responses.contribution,
            self.responses.rank,
            self.seed,
        )


def _mixed(q: NormalMixture, given: NormalMixture, rho: Array) -> NormalMixture:
    """Return (1 - rho) q + rho g, component by component."""
    if (rho == 1.0).all():
        return given
    return NormalMixture(
        np.concatenate([(1.0 - rho) * q.weights, rho * q.weights], axis=1),
        np.concatenate([q.locations, given.locations], axis=1),
        np.concatenate([q.covariances, given.covariances], axis=1),
    )


def pair_curves(
    p: NormalMixture,
    q: NormalMixture,
    noise: Array,
    epsilon: Array,
    seed: int,
    split: Array | None = None,
) -> tuple[Array, Array]:
    """Return the curves of known pairs, shape (draw, epsilon), at points of each p."""
    from edp_bayes.coupling.joint_curves import known_curves
    from edp_bayes.divergence.joint.points import digital_shifts, mixture_points

    draws = len(p.weights)
    value, error = np.zeros((2, draws, epsilon.size))
    if split is None:
        split = np.zeros((draws, PARTS, epsilon.size))
    shifts = digital_shifts(draws, p.dimensions, seed, OWN)
    p, q = (part._replace(covariances=part.covariances + noise) for part in (p, q))
    for start in range(0, draws, CHUNK):
        some = slice(start, min(start + CHUNK, draws))
        one, other = (NormalMixture(*(array[some] for array in part)) for part in (p, q))
        points = mixture_points(one, shifts[some])
        in_threads(
            known_curves, len(points), tuple(one), tuple(other), points, np.expm1(epsilon),
            value[some], error[some], split[some],
        )  # fmt: skip
    return value, error
