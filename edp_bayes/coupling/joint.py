"""p_i from a mixture of multivariate normals: each component loses the contribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.pooling import ALONE
from edp_bayes.coupling.contributions.presence_of_several import JointPresence
from edp_bayes.coupling.contributions.several import JointContributionPosterior
from edp_bayes.coupling.curves.each_answer import answer_curves
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.divergence.joint.estimates import PARTS
from edp_bayes.divergence.joint.points import digital_shifts, mixture_points
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import in_threads

if TYPE_CHECKING:
    from edp_bayes.coupling.contributions.several import JointContributionDraws
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.divergence.joint.losses import PointLosses
    from edp_bayes.responses.joined import JointResponses, SomeJointResponses

__all__ = ["FLOOR", "JointCoupling", "JointCurves", "leaders", "pair_curves"]

FLOOR = 1e-6  # risks below this are not looked for: their bounds are added to the sum's error
CHUNK = 32  # draws whose points are held at once
LEADERS = 8  # at each epsilon, whose risks say how large the largest is at least
BASE, OWN, LOSSES = 5, 6, 8  # streams of the digital shifts
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
        Shape (draw, epsilon): bound on the sum of the risks below `FLOOR`, which are zero here.
    bounded : ndarray of bool
        Shape (draw, individual): whose values are upper bounds, see `JointCoupling.with_floor`.
    """

    value: Array
    error: Array
    split: Array
    skipped: Array
    bounded: NDArray[np.bool_]

    @property
    def raised(self) -> Array:
        """The curves with their standard errors added, at most one."""
        return np.minimum(self.value + self.error, 1.0)

    @classmethod
    def zeros(cls, draws: int, people: int, levels: int) -> JointCurves:
        """Return curves to be filled in."""
        shape = (draws, people, levels)
        parts = np.zeros((draws, PARTS, levels))
        light = np.zeros((draws, people), dtype=bool)
        return cls(np.zeros(shape), np.zeros(shape), parts, np.zeros((draws, levels)), light)


@dataclass(frozen=True, eq=False)
class JointCoupling:
    """Each component loses the individual's contribution to all queries, given that component.

    See `edp_bayes.coupling.curves.several_answers`. Where the distribution without an individual is
    known itself, because in some direction they make up most of the variance, p is that
    distribution with the contribution added to every component.

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
    floor : ndarray, optional
        Shape (draw, epsilon): at most the largest risk, see `with_floor`.
    integrated : bool
        Whether curves that are surely not above the floor are integrated all the same.
    whole, rows : JointCoupling and ndarray of int, optional
        Of which coupling these are some draws, and which, see `picked`.
    """

    mixture: NormalMixture
    units: Units
    responses: JointResponses | SomeJointResponses
    posterior: JointContributionPosterior
    without: Mapping[int, NormalMixture] = field(default_factory=dict)
    revealed: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    seed: int = 0
    floor: Array | None = None
    integrated: bool = True
    whole: JointCoupling | None = None
    rows: Index | None = None

    # integrals have errors, which `curves` gives
    estimated: ClassVar[bool] = True

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
        """Numbers held for each individual and draw, beside the curves and their bounds."""
        d = self.mixture.dimensions
        return int(self.mixture.weights.shape[1]) + 2 * d * d + d

    @cached_property
    def noise(self) -> Array:
        """Covariance of the known noise in whitened units, shape (d, d)."""
        return self.units.spread(self.responses.noise_variance)

    def contributions(
        self, individuals: Index, *, by_component: bool = True
    ) -> JointContributionDraws:
        """Return how some individuals contribute, their presence by component."""
        if self.whole is not None:
            drawn = self.whole.contributions(individuals, by_component=by_component)
            return drawn._replace(**{k: part[self.rows] for k, part in drawn._asdict().items()})
        components = self.mixture.weights.shape[1] if by_component else 1
        drawn = self.posterior.draw(individuals, self.n_draws, components)
        if by_component:
            self._presence.fill(individuals, drawn.presence)
        return drawn

    def with_floor(self, epsilon: Array, *, integrated: bool) -> JointCoupling:
        """Return the coupling with what the largest risk is at least.

        It is that of a few, large by a rough measure, who are integrated in every draw. Those
        of bounds not above it, or 1e-6, at every epsilon of a draw are not the riskiest there.
        If not integrated, their curve is that bound. What each answer tells on its own is evaluated
        for all others.
        """
        plain = replace(self, floor=None)
        found = plain.curves(self.leading(epsilon), epsilon)
        largest = (found.value - found.error).max(axis=1)
        return replace(self, floor=np.maximum(largest, FLOOR), integrated=integrated)

    def led(self, epsilon: Array) -> JointCoupling:
        """Return the coupling with a floor, all of whose curves are integrated."""
        return self.with_floor(epsilon, integrated=True)

    def bounded(self, epsilon: Array) -> JointCoupling:
        """Return the coupling whose curves below a floor are bounds."""
        return self.with_floor(epsilon, integrated=False)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return everybody: who does not matter shows draw by draw, see `JointCurves.skipped`."""
        return np.arange(self.n_individuals), np.zeros(epsilon.size)

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
            shifts = digital_shifts(self.n_draws, p.dimensions, self.seed, OWN)
            value, error = pair_curves(p, q, self.noise, epsilon, shifts, out.split)
            exact = answer_curves(p, q, self.units, self.noise, epsilon)
            out.value[:, column], out.error[:, column] = np.maximum(value, exact), error
        for column in np.flatnonzero(np.isin(individuals, list(self.revealed))):
            share = self.share(int(individuals[column]))[:, None]
            value = out.value[:, column]
            # at least the share; what else tells of them counts where this does not
            out.value[:, column] = share + (1.0 - share) * value
            out.error[:, column] *= 1.0 - share
            out.bounded[:, column] = False
        return out

    def share(self, individual: int) -> Array:
        """Draw the share of databases in which an individual is revealed, shape (draw,).

        Exactly 1 where they are in all of them.
        """
        if self.whole is not None:
            return np.asarray(self.whole.share(individual)[self.rows])
        count, n = self.revealed[individual][0], self.responses.n_databases
        if count == n:
            return np.ones(self.n_draws)
        stream = [self.seed, int(self.responses.rank[individual])]
        rng = np.random.Generator(np.random.Philox(key=stream, counter=REVEALED))
        return rng.beta(count + ALONE[0], n - count + ALONE[1], self.n_draws)

    def picked(self, rows: Index) -> JointCoupling:
        """Return the coupling of some draws."""
        return replace(
            self,
            mixture=_of(self.mixture, rows),
            without={i: _of(part, rows) for i, part in self.without.items()},
            floor=None,
            whole=self,
            rows=rows,
        )

    def log_moments(self, individuals: Index, orders: Array) -> Array:
        """Return bounds on log E exp(order L) of privacy losses, shape (draw, individual, order).

        Infinite for those whose distribution without them is known itself, or who are revealed.
        """
        found = np.full((self.n_draws, individuals.size, orders.size), np.inf)
        plain = ~np.isin(individuals, [*self.without, *self.revealed])
        if plain.any():
            some = individuals[plain]
            found[:, plain] = self._log_moments(some, self._moves(some), orders)
        return found

    def losses(self, individual: int, rows: Index) -> PointLosses | None:
        """Return the privacy losses of an individual in some draws; None if nothing is learned.

        Of those revealed they are those of all else that the answers tell.
        """
        from edp_bayes.divergence.joint.losses import point_losses

        if self.revealed.get(individual, (0, False))[1]:
            return None
        p, q = (_of(part, rows) for part in self.pair(individual))
        p, q = (part._replace(covariances=part.covariances + self.noise) for part in (p, q))
        shifts = digital_shifts(self.n_draws, p.dimensions, self.seed, LOSSES)[rows]
        return point_losses(p, q, shifts)

    def line(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the distributions along the combination that exposes an individual most."""
        from edp_bayes.coupling.curves.direction import most_exposing

        p, q = self.pair(individual)
        direction = most_exposing(p, q, self.noise)
        return p.along(direction, self.noise), q.along(direction, self.noise)

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
        from edp_bayes.coupling.curves.several_answers import pair_components

        rho, a, slope, spread = (part[:, 0] for part in self.contributions(one))
        q, given = pair_components(self.mixture, rho, a, slope, spread)
        return _mixed(q, given, rho), q

    def _from_mixture(
        self, people: Index, columns: NDArray[np.bool_], epsilon: Array, out: JointCurves
    ) -> None:
        """Fill in bounds, and integrals where they matter, draw by draw."""
        moves = self._moves(people)
        bound, far = self._bounds(people, moves, np.expm1(epsilon))
        needed = bound[..., 0] > FLOOR
        out.skipped[:] += np.where(needed, 0.0, bound[..., 0]).sum(axis=1)[:, None]
        value, error = np.zeros((2, *bound.shape))
        light = np.zeros_like(needed)
        if self.floor is not None:
            # those revealed have a risk beside this
            open_ = ~np.isin(people, list(self.revealed))
            light = needed & (bound <= self.floor[:, None]).all(axis=2) & open_
        if not self.integrated:
            value[light], needed = bound[light], needed & ~light
            out.bounded[:, columns] = light
        rows, who = np.nonzero(needed)
        begin = np.searchsorted(rows, np.arange(self.n_draws + 1))
        active = np.flatnonzero(np.diff(begin))
        shifts = digital_shifts(self.n_draws, self.mixture.dimensions, self.seed, BASE)
        for start in range(0, active.size, CHUNK):
            some = active[start : start + CHUNK]
            pairs = slice(begin[some[0]], begin[some[-1] + 1])
            at, place = (rows[pairs], who[pairs]), np.append(begin[some], begin[some[-1] + 1])
            wide = self._base(some)
            split = np.zeros((some.size, *out.split.shape[1:]))
            found = np.zeros((2, at[0].size, epsilon.size))
            p, q, missed = self._integrals(
                people[at[1]], moves, at, mixture_points(wide, shifts[some]), place - place[0],
                wide, far[at], np.expm1(epsilon), (found[0], found[1], split),
            )  # fmt: skip
            if missed.size:
                # narrow components, of which each distribution has its own: at points of its own
                one, other = (_of(both, missed) for both in (p, q))
                parts, draw = np.zeros((missed.size, *split.shape[1:])), at[0][missed]
                found[0, missed], found[1, missed] = pair_curves(
                    one, other, self.noise, epsilon, shifts[draw], parts
                )
                np.add.at(split, np.searchsorted(some, draw), parts)
            heavy = np.flatnonzero(~light[at])
            p, q = (NormalMixture(*(part[heavy] for part in one)) for one in (p, q))
            exact = answer_curves(p, q, self.units, self.noise, epsilon)
            found[0, heavy] = np.maximum(found[0, heavy], exact)
            value[at] = np.minimum(found[0], bound[at])
            error[at] = np.minimum(found[1], bound[at] - value[at])
            out.split[some] += split
        out.value[:, columns], out.error[:, columns] = value, error

    def _base(self, rows: Index) -> NormalMixture:
        """Return the distribution of the released answers in some draws."""
        w, mu, covariances = (part[rows] for part in self.mixture)
        return NormalMixture(w, mu, covariances + self.noise)

    def _moves(self, people: Index) -> Any:
        return tuple(self.contributions(people))

    def _bounds(self, people: Index, moves: Any, growth: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return bounds (draw, individual, epsilon), and where more points are needed."""
        from edp_bayes.coupling.curves.several_answers import Base, joint_bounds
        from edp_bayes.divergence.joint.screening import ORDERS

        bound = np.empty((self.n_draws, people.size, growth.size))
        far = np.empty(bound.shape[:2], dtype=bool)
        base = Base(*self.mixture, self.noise)
        in_threads(joint_bounds, self.n_draws, base, moves, growth, ORDERS, FLOOR, bound, far)
        return bound, far

    def _log_moments(self, people: Index, moves: Any, orders: Array) -> Array:
        from edp_bayes.coupling.curves.several_answers import Base, joint_moments

        out = np.empty((self.n_draws, people.size, orders.size))
        base = Base(*self.mixture, self.noise)
        in_threads(joint_moments, self.n_draws, base, moves, orders, out)
        return out

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
        """Fill in values, errors and sums of pairs; return these, and whom the points miss."""
        from edp_bayes.coupling.curves.several_answers import joint_integrals, pair_components

        rho, a, slope, spread = (part[at] for part in moves)
        base = NormalMixture(*(part[at[0]] for part in self.mixture))
        q, given = pair_components(base, rho, a, slope, spread)
        noisy = ((part.locations, part.covariances + self.noise) for part in (q, given))
        missed = np.zeros(len(people), dtype=np.bool_)
        in_threads(
            joint_integrals, len(points), points, begin, tuple(wide), rho, *noisy, far, growth,
            *out, missed,
        )  # fmt: skip
        return _mixed(q, given, rho), q, np.flatnonzero(missed)

    def leading(self, epsilon: Array) -> Index:
        """Return who may have the largest risk, by what a normal distribution would say."""
        return leaders(*self.posterior.typical, epsilon, self.responses.rank)

    @cached_property
    def _presence(self) -> JointPresence:
        return JointPresence(
            self.mixture,
            self.units.whiten(self.responses.response),
            self.responses.entries,
            self.responses.rank,
            self.seed,
        )


def _of(mixture: NormalMixture, rows: Index) -> NormalMixture:
    """Return some draws of a mixture."""
    whole = mixture._replace(covariances=mixture.each_covariance)
    return NormalMixture(*(np.ascontiguousarray(part[rows]) for part in whole))


def _mixed(q: NormalMixture, given: NormalMixture, rho: Array) -> NormalMixture:
    """Return (1 - rho) q + rho g, component by component."""
    if (rho == 1.0).all():
        return given
    return NormalMixture(
        np.concatenate([(1.0 - rho) * q.weights, rho * q.weights], axis=1),
        np.concatenate([q.locations, given.locations], axis=1),
        np.concatenate([q.covariances, given.covariances], axis=1),
    )


def leaders(presence: Array, size: Array, epsilon: Array, rank: Index) -> Index:
    """Return a few whose contributions, in standard deviations, expose them most, increasing.

    At every epsilon, as if the responses were normal with and without them.
    """
    from edp_bayes.divergence.shifts import gaussian_shift

    first, chosen = np.argsort(rank), set[int]()
    here = np.maximum(presence[first], 1e-300)
    for growth in np.expm1(epsilon):
        score = here * gaussian_shift(size[first], np.log1p(growth / here))
        chosen.update(first[np.argsort(-score, kind="stable")[:LEADERS]].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def pair_curves(
    p: NormalMixture,
    q: NormalMixture,
    noise: Array,
    epsilon: Array,
    shifts: Index,
    split: Array | None = None,
) -> tuple[Array, Array]:
    """Return the curves of known pairs, shape (pair, epsilon), at points of each p."""
    from edp_bayes.coupling.curves.several_answers import known_curves

    pairs = len(p.weights)
    value, error = np.zeros((2, pairs, epsilon.size))
    if split is None:
        split = np.zeros((pairs, PARTS, epsilon.size))
    p, q = (part._replace(covariances=part.covariances + noise) for part in (p, q))
    for start in range(0, pairs, CHUNK):
        some = slice(start, min(start + CHUNK, pairs))
        one, other = (NormalMixture(*(array[some] for array in part)) for part in (p, q))
        points = mixture_points(one, shifts[some])
        in_threads(
            known_curves, len(points), tuple(one), tuple(other), points, np.expm1(epsilon),
            value[some], error[some], split[some],
        )  # fmt: skip
    return value, error
