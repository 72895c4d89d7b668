"""Everybody's risk over several databases: bounded, and composed where it matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.coupling.base import Coupling
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.published_row import RowCoupling
from edp_bayes.divergence.composition.binned import AtMost
from edp_bayes.divergence.composition.pairs import ExactLosses
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.coupling.views.carried_answers import CarriedAnswers
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.distributions.published import Published
    from edp_bayes.divergence.composition.pairs import Losses
    from edp_bayes.divergence.composition.screening import MomentScreen, Screen

__all__ = [
    "THRESHOLD",
    "CarriedSource",
    "ComposedRisks",
    "JointSource",
    "SingleSource",
    "Source",
    "blocks",
    "bounds",
    "composed_risks",
    "whole_answers",
]

BLOCK_NUMBERS = 2**22
# Individuals whose bound is at most this enter delta* by it, and of every draw and epsilon only
# so many of the largest are composed for its sake.
THRESHOLD, RANKS = 1e-3, 12
# Bounds above this, at the smallest epsilon, are found again on a grid of losses.
TIGHTENED = 5e-4
ALMOST_ONE = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """One kind of database: an audit's draws, how many databases, and whose risk is where.

    Attributes
    ----------
    coupling : Coupling or JointCoupling
        Of the draws taken, as many as every other source has.
    count : int
        Number of databases.
    position : ndarray of int
        Shape (individual,): position in the coupling, -1 for who is never in these databases.
    order : ndarray of int
        Shape (draw,): which of the coupling's draws goes with each draw of the composition.
    """

    coupling: Any
    count: int
    position: Index
    order: Index

    @property
    def carries_over(self) -> bool:
        """Whether contributions carry over to later databases."""
        return False

    @abstractmethod
    def screen(self, people: Index, grid: Array) -> Screen | MomentScreen:
        """Return what bounds the risks of some individuals over several databases."""

    @abstractmethod
    def curves(self, people: Index, epsilon: Array) -> Array:
        """Return delta_i(epsilon) of one database, shape (draw, individual, epsilon)."""

    @abstractmethod
    def losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses of an individual in some draws; None where there is none."""

    def least_losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses, at least, where contributions carry over."""
        return self.losses(person, rows)

    def unrevealed(self, person: int, rows: Index) -> Array:
        """Return the probability that a database does not reveal an individual exactly, by draw.

        At least, where contributions carry over.
        """
        return np.ones(rows.size)

    def at_most_unrevealed(self, person: int, rows: Index) -> Array:
        """Return the same, at most."""
        return self.unrevealed(person, rows)

    @abstractmethod
    def line(self, person: int) -> tuple[Mixture, Mixture] | None:
        """Return the distributions of one answer with and without an individual, for tests."""

    @property
    def published(self) -> Published | None:
        """What is published of the answers that tests see; None for the whole of them."""
        return None


@dataclass(frozen=True, eq=False)
class SingleSource(Source):
    """Databases of one query.

    Attributes
    ----------
    least : Coupling, optional
        Where contributions carry over to later databases: that of what is left of them at least.
        The other is then that of the largest, and each answer is taken to tell its component.
    bounded : bool
        Whether risks are those of answers that tell more than what is published.
    """

    coupling: Coupling
    least: Coupling | None = None
    bounded: bool = False

    @property
    def carries_over(self) -> bool:
        """Whether contributions carry over to later databases."""
        return self.least is not None

    def screen(self, people: Index, grid: Array) -> Screen:
        """Return what bounds the risks of some individuals over several databases."""
        from edp_bayes.divergence.composition.screening import Screen

        return Screen(self.curves(people, grid), grid)

    def curves(self, people: Index, epsilon: Array) -> Array:
        """Return delta_i(epsilon) of one database, shape (draw, individual, epsilon)."""
        from edp_bayes.coupling.views.enlarged import revealed_curves, revealed_later

        place = self.position[people]
        known = place >= 0
        found = np.zeros((self.order.size, people.size, epsilon.size))
        if not known.any():
            return found
        some = place[known]
        if self.carries_over:
            share = revealed_later(self.coupling, some)[..., None]
            curves = share + (1.0 - share) * revealed_curves(self.coupling, some, epsilon)
        else:
            curves = self.coupling.curves(some, epsilon)
        found[:, known] = curves[self.order]
        return found

    def unrevealed(self, person: int, rows: Index) -> Array:
        """Return the probability that a database does not reveal an individual exactly, by draw.

        At least, where contributions carry over.
        """
        from edp_bayes.coupling.views.enlarged import revealed_later

        place = int(self.position[person])
        if place < 0 or not self.carries_over:
            return np.ones(rows.size)
        found = revealed_later(self.coupling, np.array([place]))
        return np.asarray(1.0 - found[self.order[rows], 0])

    def at_most_unrevealed(self, person: int, rows: Index) -> Array:
        """Return the same, at most."""
        return np.ones(rows.size)

    def losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses of an individual in some draws; None where there is none."""
        return self._losses(self.coupling, person, rows, self.pair)

    def least_losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses, at least, where contributions carry over."""
        if self.least is None:
            return self.losses(person, rows)
        return self._losses(self.least, person, rows, partial(self._pair, self.least))

    def line(self, person: int) -> tuple[Mixture, Mixture] | None:
        """Return the distributions of the answer with and without an individual, for tests.

        None where they are never in it, or tests of what is published are not known.
        """
        place = int(self.position[person])
        return None if place < 0 or self.bounded else (self.least or self.coupling).pair(place)

    @property
    def published(self) -> Published | None:
        """What is published of the answers that tests see; None for the whole of them."""
        coupling = self.least or self.coupling
        return coupling.published if isinstance(coupling, ReleasedCoupling) else None

    def pair(self, person: int, rows: Index) -> tuple[Array, Array] | None:
        """Return the components with and without an individual in some draws."""
        from edp_bayes.coupling.views.enlarged import apart

        found = self._pair(self.coupling, person, rows)
        if found is None or not self.carries_over:
            return found
        size = self.coupling.mixture.weights.shape[-1]
        return apart(found[0], size), apart(found[1], size)

    def _losses(
        self,
        coupling: Coupling,
        person: int,
        rows: Index,
        pair: Callable[[int, Index], tuple[Array, Array] | None],
    ) -> Losses | None:
        place = int(self.position[person])
        if place >= 0 and isinstance(coupling, ReleasedCoupling):
            return coupling.losses(place, self.order[rows])
        found = pair(person, rows)
        if found is None:
            return None
        return AtMost(ExactLosses(*found)) if self.bounded else ExactLosses(*found)

    def _pair(self, coupling: Coupling, person: int, rows: Index) -> tuple[Array, Array] | None:
        from edp_bayes.divergence.integral import component_rows

        place = int(self.position[person])
        if place < 0:
            return None
        found = []
        for mixture in coupling.pair(place):
            some = mixture[np.unravel_index(self.order[rows], mixture.weights.shape[:-1])]
            found.append(
                component_rows(some.weights, some.locations, some.scales, some.kernel, some.noise)
            )
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class JointSource(Source):
    """Databases of several queries that are published together."""

    coupling: JointCoupling

    def screen(self, people: Index, grid: Array) -> MomentScreen:
        """Return what bounds the risks of some individuals over several databases."""
        from edp_bayes.divergence.composition.screening import ORDERS, MomentScreen

        place = self.position[people]
        known = place >= 0
        moments = np.zeros((self.order.size, people.size, ORDERS.size))
        if known.any():
            moments[:, known] = self.coupling.log_moments(place[known], ORDERS)[self.order]
        return MomentScreen(moments)

    def curves(self, people: Index, epsilon: Array) -> Array:
        """Return delta_i(epsilon) of one database with the errors of its integrals added."""
        place = self.position[people]
        known = place >= 0
        found = np.zeros((self.order.size, people.size, epsilon.size))
        if known.any():
            found[:, known] = self.coupling.curves(place[known], epsilon).raised[self.order]
        return found

    def losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses of an individual in some draws; None where there is none."""
        place = int(self.position[person])
        return None if place < 0 else self.coupling.losses(place, self.order[rows])

    def unrevealed(self, person: int, rows: Index) -> Array:
        """Return the probability that a database does not reveal an individual exactly, by draw."""
        place = int(self.position[person])
        if place not in self.coupling.revealed:
            return np.ones(rows.size)
        return np.asarray(1.0 - self.coupling.share(place)[self.order[rows]])

    def line(self, person: int) -> tuple[Mixture, Mixture] | None:
        """Return the distributions along what exposes an individual most, for tests."""
        place = int(self.position[person])
        return None if place < 0 else self.coupling.line(place)


@dataclass(frozen=True, eq=False)
class CarriedSource(JointSource):
    """The same, with contributions that carry over to later databases.

    What is composed bounds their risks from above; what they are at least is not known.

    Attributes
    ----------
    carried : CarriedAnswers
        The answers with the contributions as large as the carry-over may make them.
    """

    carried: CarriedAnswers

    @classmethod
    def of(cls, source: Source, lags: Array) -> CarriedSource:
        """Let contributions carry over, by matrices (draw, lag, d, d)."""
        from edp_bayes.coupling.views.carried_answers import CarriedAnswers

        carried = CarriedAnswers(whole_answers(source.coupling), lags)
        return cls(source.coupling, source.count, source.position, source.order, carried)

    @property
    def carries_over(self) -> bool:
        """Whether contributions carry over to later databases."""
        return True

    def screen(self, people: Index, grid: Array) -> MomentScreen:
        """Return what bounds the risks of some individuals over several databases."""
        from edp_bayes.divergence.composition.screening import ORDERS, MomentScreen

        place = self.position[people]
        known = place >= 0
        moments = np.zeros((self.order.size, people.size, ORDERS.size))
        revealed = np.zeros((self.order.size, people.size))
        if known.any():
            found = self.carried.moments(place[known], ORDERS)
            moments[:, known], revealed[:, known] = (part[self.order] for part in found)
        return MomentScreen(moments, revealed)

    def losses(self, person: int, rows: Index) -> Losses | None:
        """Return the privacy losses of an individual in some draws; None where there is none."""
        place = int(self.position[person])
        if place < 0:
            return None
        found = self.carried.losses(place, self.order[rows])
        return None if found is None else AtMost(found)

    def least_losses(self, person: int, rows: Index) -> Losses | None:
        """Return nothing: what the answers tell at least is not known."""
        return None

    def unrevealed(self, person: int, rows: Index) -> Array:
        """Return the probability that a database does not reveal an individual, at least."""
        place = int(self.position[person])
        if place < 0:
            return np.ones(rows.size)
        return np.asarray(1.0 - self.carried.revealed(place, self.order[rows]))

    def at_most_unrevealed(self, person: int, rows: Index) -> Array:
        """Return the same, at most: without any carry-over."""
        return super().unrevealed(person, rows)

    def line(self, person: int) -> None:
        """Return nothing: which combination exposes an individual at least is not known."""


def whole_answers(coupling: Any) -> JointCoupling:
    """Return the coupling of all answers, where a part of them is published."""
    whole: JointCoupling = coupling.full if isinstance(coupling, RowCoupling) else coupling
    return whole


@dataclass(frozen=True, eq=False)
class ComposedRisks:
    """Privacy quantities of every draw over all databases: upper bounds, and lower ones.

    Attributes
    ----------
    delta, total_risk, total_risk_bound : ndarray
        Shape (draw, epsilon): at least delta, delta* and min(1, sum_i delta_i).
    delta_lower, total_risk_lower : ndarray
        Shape (draw, epsilon): at most delta and delta*.
    kept : ndarray of int
        The riskiest individuals, in order.
    individual, individual_lower : ndarray
        Shape (draw, kept, epsilon): bounds of their delta_i.
    by_bound : ndarray
        Shape (draw, epsilon): sum of the bounds of all individuals who were not composed.
    composed : float
        Mean number of individuals composed in a draw.
    """

    delta: Array
    total_risk: Array
    total_risk_bound: Array
    delta_lower: Array
    total_risk_lower: Array
    kept: Index
    individual: Array
    individual_lower: Array
    by_bound: Array
    composed: float


def composed_risks(
    sources: Sequence[Source], epsilon: Array, *, keep: int, progressbar: bool
) -> ComposedRisks:
    """Return the risks of everybody over all databases.

    The largest risk is that of a composed individual, never the composition of the largest: who is
    riskiest changes with the number of databases. In every draw individuals are composed by falling
    bound until nobody else's bound is above the largest found.
    """
    from edp_bayes.auditing.reductions import accumulate, keep_largest

    size, people = sources[0].order.size, sources[0].position.size
    largest, log_survival, total = np.zeros((3, size, epsilon.size))
    top, who = np.zeros((size, epsilon.size, RANKS)), np.zeros((size, epsilon.size, RANKS), int)
    score = np.zeros(people)
    for members, highest in bounds(sources, epsilon, progressbar, "Individuals"):
        accumulate(highest, largest, log_survival, total)
        keep_largest(highest, members, top, who)
        score[members] = highest.sum(axis=2).mean(axis=0)
    kept = np.argsort(-score, kind="stable")[:keep]
    found = _Composed(sources, epsilon, people)
    found.add(np.repeat(np.arange(size), kept.size), np.tile(kept, size), progressbar)
    asked = (top > THRESHOLD) | ((np.arange(RANKS) == 0) & (top > 0.0))
    rows, level, rank = np.nonzero(asked)
    found.add(rows, who[rows, level, rank], progressbar)
    if (top[..., -1] > found.delta).any():
        # some of those not known one by one may be above the largest
        for members, highest in bounds(sources, epsilon, progressbar, "Individuals once more"):
            rows, columns = np.nonzero((highest > found.delta[:, None]).any(axis=2))
            found.add(rows, members[columns], progressbar)
    own = found.of(kept)
    order = np.argsort(-own[0].sum(axis=2).mean(axis=0), kind="stable")
    survived = log_survival + found.log_survival
    return ComposedRisks(
        delta=found.delta,
        total_risk=np.maximum(-np.expm1(np.minimum(survived, 0.0)), found.delta),
        total_risk_bound=np.minimum(np.maximum(total + found.total, found.delta), 1.0),
        delta_lower=found.delta_lower,
        total_risk_lower=np.maximum(-np.expm1(found.log_survival_lower), found.delta_lower),
        kept=kept[order],
        individual=own[0][:, order],
        individual_lower=own[1][:, order],
        by_bound=np.maximum(total - found.bounded, 0.0),
        composed=found.count / size,
    )


def bounds(
    sources: Sequence[Source], epsilon: Array, progressbar: bool, words: str
) -> Iterator[tuple[Index, Array]]:
    """Yield blocks of individuals and the bounds of their risks, (draw, individual, epsilon)."""
    from edp_bayes.divergence.composition.screening import screening_epsilons

    grid = screening_epsilons(epsilon, sum(one.count for one in sources))
    for members in blocks(sources, grid, progressbar, words):
        yield members, _bounds_of(sources, members, grid, epsilon)


def blocks(
    sources: Sequence[Source], grid: Array, progressbar: bool, words: str
) -> Iterator[Index]:
    """Yield blocks of individuals whose screens fit into memory."""
    people, size = sources[0].position.size, sources[0].order.size
    widest = max(4 * grid.size, max(one.coupling.mixture.weights.shape[-1] for one in sources))
    step = max(1, BLOCK_NUMBERS // (size * widest))
    parts = [np.arange(k, min(k + step, people)) for k in range(0, people, step)]
    yield from track(parts, words, total=len(parts), show=progressbar)


def _bounds_of(sources: Sequence[Source], members: Index, grid: Array, epsilon: Array) -> Array:
    from edp_bayes.divergence.composition.coarse import coarse_bounds
    from edp_bayes.divergence.composition.screening import Screen, screen_bounds

    screens = [one.screen(members, grid) for one in sources]
    found = screen_bounds(screens, [one.count for one in sources], epsilon)
    if len(screens) == 1 and isinstance(screens[0], Screen):
        large = found[..., 0] > TIGHTENED
        finer = coarse_bounds(screens[0].curves[large], grid, sources[0].count, epsilon)
        found[large] = np.minimum(found[large], finer)
    return np.minimum(found, ALMOST_ONE)


class _Composed:
    """Who was composed in which draw, and what follows for the draw."""

    def __init__(self, sources: Sequence[Source], epsilon: Array, people: int) -> None:
        from edp_bayes.divergence.composition.screening import screening_epsilons

        self.sources, self.epsilon = sources, epsilon
        self.grid = screening_epsilons(epsilon, sum(one.count for one in sources))
        size = sources[0].order.size
        self.delta, self.delta_lower = np.zeros((2, size, epsilon.size))
        # to be added to those of all bounds: composed less bounds
        self.log_survival, self.total, self.bounded = np.zeros((3, size, epsilon.size))
        self.log_survival_lower = np.zeros((size, epsilon.size))
        self.done: dict[int, tuple[Index, Array, Array]] = {}
        self.count = 0

    def add(self, rows: Index, people: Index, progressbar: bool) -> None:
        """Compose individuals in some draws, pairs of a row and a position, if not done."""
        asked: dict[int, Index] = {}
        for person in np.unique(people).tolist():
            wanted = np.unique(rows[people == person])
            if person in self.done:
                wanted = np.setdiff1d(wanted, self.done[person][0])
            if wanted.size:
                asked[person] = wanted
        work = sorted(asked.items())
        for person, wanted in track(work, "Compositions", total=len(work), show=progressbar):
            self._compose(person, wanted)

    def _compose(self, person: int, rows: Index) -> None:
        from edp_bayes.divergence.composition import pairs

        found = [(one.losses(person, rows), one.count) for one in self.sources]
        there = [(kind, count) for kind, count in found if kind is not None]
        upper, lower = np.zeros((2, rows.size, self.epsilon.size))
        if there:
            kinds, counts = zip(*there, strict=True)
            upper, lower = pairs.composed(kinds, counts, self.epsilon)
        least, most = np.ones((2, rows.size, 1))
        for one in self.sources:
            least[:, 0] *= one.unrevealed(person, rows) ** one.count
            most[:, 0] *= one.at_most_unrevealed(person, rows) ** one.count
        # revealed in any of the databases, or by all else
        upper = np.minimum(1.0 - least * (1.0 - upper), ALMOST_ONE)
        lower = np.minimum(np.maximum(lower, 1.0 - most), ALMOST_ONE)
        bound = _bounds_of(self.sources, np.array([person]), self.grid, self.epsilon)[rows, 0]
        upper = np.minimum(upper, bound)
        lower = np.minimum(lower, upper)
        self.delta[rows] = np.maximum(self.delta[rows], upper)
        self.delta_lower[rows] = np.maximum(self.delta_lower[rows], lower)
        self.log_survival[rows] += np.log1p(-upper) - np.log1p(-bound)
        self.log_survival_lower[rows] += np.log1p(-lower)
        self.total[rows] += upper - bound
        self.bounded[rows] += bound
        self.count += rows.size
        if person in self.done:
            before = self.done[person]
            rows, upper, lower = (
                np.concatenate([old, new])
                for old, new in zip(before, (rows, upper, lower), strict=True)
            )
        self.done[person] = rows, upper, lower

    def of(self, people: Index) -> tuple[Array, Array]:
        """Return the bounds of those who were composed in every draw."""
        shape = (self.delta.shape[0], people.size, self.epsilon.size)
        upper, lower = np.zeros((2, *shape))
        for k, person in enumerate(people.tolist()):
            rows, above, below = self.done[person]
            upper[rows, k], lower[rows, k] = above, below
        return upper, lower
