"""Posterior of how an individual contributes: how often, how much, and depending on what.

In each database individual i is present with probability rho_i and then contributes
c = a_i + b_i r + tau_i e, with r the response without i (centred) and e standard normal. The
individuals are pooled, because the risk is a maximum over thousands of them: a common distribution
of presence, of the spread of an individual's contributions relative to their size, and of that
size, which yields to an individual's own data (see `edp_bayes.coupling.contributions.pooling`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.exposure import CONSTANT
from edp_bayes.coupling.contributions.pooling import (
    ALONE,
    UNSEEN_SIZE,
    Pool,
    learn_presence,
    pool_contributions,
    pool_presence,
    presence_in_question,
    stand_out,
)
from edp_bayes.coupling.contributions.streams import own_streams
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.responses import Adjustment
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import in_threads

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = [
    "ContributionDraws",
    "ContributionPosterior",
    "ContributionPrior",
    "ContributionSource",
    "Statistics",
]

# Prior weight, in databases, of a contribution that does not depend on the rest.
INDEPENDENCE_WEIGHT = 2.0
FLAT = 1e-3
STEEPEST = 0.9
NEW = [0, 0, 0, 3]  # stream of random numbers of an individual not in the sample
LEAST_OF_A_THREAD = 16  # individuals


@dataclass(frozen=True)
class ContributionPrior:
    """Proper prior of how every individual contributes, in place of the learned one.

    Parameters
    ----------
    degrees, spread : float
        tau squared is degrees spread^2 over a chi-squared with these degrees of freedom.
    intercept_weight, slope_weight : float
        Intercept and slope are Normal(0, tau^2 / weight); the intercept is at rest zero.
    presence : tuple of float, optional
        Beta prior of presence; None where everybody is known to be always present.
    """

    degrees: float
    spread: float
    intercept_weight: float
    slope_weight: float
    presence: tuple[float, float] | None = (0.5, 0.5)


class ContributionDraws(NamedTuple):
    """Draws of how individuals contribute.

    Attributes
    ----------
    presence : ndarray
        Shape (draw, individual, component): probability rho of being present with each component
        of the response; exactly 1 for those never seen absent.
    intercept, slope, spread : ndarray
        Shape (draw, individual): a (at rest zero), b and tau of the contribution
        a + b rest + tau e.
    """

    presence: Array
    intercept: Array
    slope: Array
    spread: Array

    @property
    def moves(self) -> tuple[Array, Array, Array, Array]:
        """What compiled functions take: presence, intercept, slope and the square of the spread."""
        return self.presence, self.intercept, self.slope, self.spread**2


class ContributionSource(Protocol):
    """What a coupling asks of contributions: their draws, individual by individual."""

    @property
    def centre(self) -> Array:
        """Centre of the response without each individual, shape (m,)."""
        ...

    @property
    def expected(self) -> Array:
        """Mean contribution of every individual, shape (m,), absences counted as zero."""
        ...

    def draw(
        self, individuals: NDArray[np.int64], draws: int, components: int = 1
    ) -> ContributionDraws:
        """Draw how some individuals contribute."""
        ...

    def draw_new(self, draws: int, components: int) -> ContributionDraws:
        """Draw how an individual not in the sample contributes."""
        ...

    def taken(self, individuals: NDArray[np.int64]) -> ContributionSource:
        """Return those of some individuals, whose positions become 0, 1, ..."""
        ...

    def picked(self, rows: NDArray[np.int64]) -> ContributionSource:
        """Return those of some draws of the response."""
        ...


@dataclass(frozen=True, eq=False)
class ContributionPosterior:
    """Empirical-Bayes conjugate posterior of every individual's contribution distribution.

    Attributes
    ----------
    presence_a, presence_b : ndarray
        Shape (m,): Beta posterior of presence; b = 0 where always present.
    mean : ndarray
        Shape (m, 2): posterior mean of intercept (at the centre of the rest) and slope.
    factor : ndarray
        Shape (m, 2, 2): Cholesky factor of the posterior covariance over tau squared.
    degrees, squares : ndarray
        Shape (m,): tau squared is squares over a chi-squared with these degrees of freedom.
    centre : ndarray
        Shape (m,): centre of the response without each individual.
    rank : ndarray of int
        Shape (m,): place of everybody in the order of sorted labels.
    seed : int
        Every individual has a stream of its own, numbered by rank, so draws do not depend on who
        else is drawn or in which order.
    pool : Pool or None
        What all together say of an individual not among them; None under a given prior.
    odds : ndarray, optional
        Shape (m,): odds of presence in the database in question over those on average; 1 if not
        given.
    new_odds : float
        The same of an individual not among them.
    """

    presence_a: Array
    presence_b: Array
    mean: Array
    factor: Array
    degrees: Array
    squares: Array
    centre: Array
    rank: NDArray[np.int64]
    seed: int
    pool: Pool | None = None
    odds: Array | None = None
    new_odds: float = 1.0

    @classmethod
    def fit(
        cls, responses: Responses, seed: int, *, prior: ContributionPrior | None = None
    ) -> ContributionPosterior:
        """Condition on the contributions; the cost follows the records."""
        # pooled in the order of labels: sums round by their order
        rank = responses.rank
        stats = Statistics.of(responses, centred=prior is None).taken(responses.order)
        k, n = stats.count, responses.n_databases
        adjustment = responses.adjustment or Adjustment.none(k.size)
        if prior is None:
            flat, steep = np.full_like(k, FLAT), INDEPENDENCE_WEIGHT * stats.rest_variance
            presence = learn_presence(k, n)
            presence_a, presence_b = pool_presence(k, n, presence, stand_out(k, stats.size))
            # A flat intercept takes a degree of freedom, and so does what was regressed out.
            free = np.maximum(k - 1.0 - adjustment.degrees[responses.order], 0.0)
        else:
            flat, steep = (
                np.full_like(k, prior.intercept_weight),
                np.full_like(k, prior.slope_weight),
            )
            presence_a, presence_b = (np.full_like(k, v) for v in prior.presence or ALONE)
            free = k
        absent = k < n if prior is None else np.full(k.shape, prior.presence is not None)
        p00, p01, p11 = k + flat, stats.rest, stats.rest_square + steep
        determinant = p00 * p11 - p01**2
        intercept = (p11 * stats.contribution - p01 * stats.product) / determinant
        slope = (p00 * stats.product - p01 * stats.contribution) / determinant
        fitted = intercept * stats.contribution + slope * stats.product
        residual = np.maximum(stats.contribution_square - fitted, 0.0)
        if prior is None:
            unseen = UNSEEN_SIZE * float(responses.response.std())
            pooled = pool_contributions(
                k, stats.contribution, stats.contribution_square, stats.size, residual, free, unseen
            )
            magnitude, degrees, squares = pooled.magnitude, pooled.weight, pooled.prior
            shrinkage, kept = magnitude.shrinkage, pooled.kept
            seen = np.maximum((k > 0).sum(), 1)
            pool = Pool(
                always=float((k == n).sum() / seen),
                presence=presence,
                spread=pooled.spread,
                middle=magnitude.middle,
                between=magnitude.between,
                negative=float((stats.contribution < 0).sum() / seen),
            )
        else:
            shrinkage = kept = np.ones_like(k)
            degrees = np.full_like(k, prior.degrees)
            squares = degrees * prior.spread**2
            pool = None
        factor = np.zeros((k.size, 2, 2))
        factor[:, 0, 0] = np.sqrt(p11 / determinant + adjustment.variance[responses.order])
        factor[:, 1, 0] = -p01 / np.sqrt(p11 * determinant)
        factor[:, 1, 1] = np.sqrt(1.0 / p11)
        if prior is None:
            factor[k == 0, 0, 0] = 1.0 / pooled.spread.relative
        spells = adjustment.spells[responses.order]
        return cls(
            presence_a=(k / spells + presence_a)[rank],
            presence_b=np.where(absent, (n - k) / spells + presence_b, 0.0)[rank],
            mean=(np.stack([intercept, slope], axis=1) * shrinkage[:, None])[rank],
            factor=factor[rank],
            degrees=((degrees + free) * kept)[rank],
            squares=((squares + residual * shrinkage**2) * kept)[rank],
            centre=stats.centre[rank],
            rank=rank,
            seed=seed,
            pool=pool,
            odds=adjustment.own_odds,
            new_odds=adjustment.odds,
        )

    @property
    def expected(self) -> Array:
        """Mean contribution of every individual, shape (m,), absences counted as zero."""
        return self.presence_a / (self.presence_a + self.presence_b) * self.mean[:, 0]

    def taken(self, individuals: NDArray[np.int64]) -> ContributionPosterior:
        """Return the posterior of some individuals, whose positions become 0, 1, ..."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        own: dict[str, Any] = {
            name: part[individuals] for name, part in parts.items() if isinstance(part, np.ndarray)
        }
        return replace(self, **own)

    def picked(self, rows: NDArray[np.int64]) -> ContributionPosterior:
        """Return the same: its draws are not those of the response."""
        return self

    def draw_new(self, draws: int, components: int) -> ContributionDraws:
        """Draw how an individual unlike all in the sample contributes, as `draw` does for one."""
        if self.pool is None:
            raise InvalidInputError("an individual not in the sample is not known under this prior")
        rng = np.random.Generator(np.random.Philox(key=[self.seed, 0], counter=NEW))
        presence, mean, spread = (part[:, None] for part in self.pool.draw(rng, draws))
        presence = presence_in_question(presence, self.new_odds)
        presence = np.repeat(presence[..., None], components, axis=2)
        return ContributionDraws(presence, mean, np.zeros_like(mean), spread)

    def draw(
        self, individuals: NDArray[np.int64], draws: int, components: int = 1
    ) -> ContributionDraws:
        """Draw how some individuals contribute; presence is the same with every component."""
        shape = (len(individuals), draws)
        presence, chi, normal = np.ones(shape), np.empty(shape), np.empty((*shape, 2))

        def fill(first: int, last: int) -> None:
            ranks = self.rank[individuals[first:last]]
            for row, rng in enumerate(own_streams(self.seed, ranks), start=first):
                i = individuals[row]
                chi[row] = rng.chisquare(self.degrees[i], draws)
                rng.standard_normal(out=normal[row])
                if self.presence_b[i] > 0:
                    drawn = rng.beta(self.presence_a[i], self.presence_b[i], draws)
                    odds = 1.0 if self.odds is None else float(self.odds[i])
                    presence[row] = presence_in_question(drawn, odds)

        in_threads(fill, len(individuals), least=LEAST_OF_A_THREAD)
        mean, factor = self.mean[individuals, :, None], self.factor[individuals, :, :, None]
        first, second = normal[..., 0], normal[..., 1]
        spread = np.sqrt(self.squares[individuals, None] / chi)
        slope = factor[:, 1, 0] * first + factor[:, 1, 1] * second
        slope = np.maximum(mean[:, 1] + spread * slope, -STEEPEST)
        middle = mean[:, 0] + spread * (factor[:, 0, 0] * first)
        intercept = middle - slope * self.centre[individuals, None]
        others = (np.ascontiguousarray(part.T) for part in (intercept, slope, spread))
        return ContributionDraws(np.repeat(presence.T[..., None], components, axis=2), *others)


@dataclass(frozen=True)
class Statistics:
    """Sums over the databases in which each individual contributes; samples share one weight."""

    count: Array
    contribution: Array
    contribution_square: Array
    rest: Array
    rest_square: Array
    product: Array
    centre: Array
    rest_variance: Array

    @classmethod
    def of(cls, responses: Responses, *, centred: bool = True) -> Statistics:
        """Add up; responses without an individual are about their mean if centred, or about 0."""
        y, c, owner = responses.response, responses.collected, responses.owner
        others, centre = responses.remainder, np.zeros(responses.n_individuals)
        if centred:
            centre = y.mean() - np.bincount(owner, c.data, responses.n_individuals) / y.size
            if others is not None:
                centre[others.individuals] = y.mean() - others.contribution / y.size
        rest = y[c.indices] - c.data - centre[owner]

        def total(values: Array) -> Array:
            return np.bincount(owner, values, responses.n_individuals) / responses.samples

        sums = {
            "count": total(np.ones_like(c.data)),
            "contribution": total(c.data),
            "contribution_square": total(c.data**2),
            "rest": total(rest),
            "rest_square": total(rest**2),
            "product": total(rest * c.data),
        }
        if others is not None:
            for name in ("count", "contribution", "contribution_square"):
                sums[name][others.individuals] = getattr(others, name)
            found = others.rest(centre[others.individuals])
            for name, values in zip(("rest", "rest_square", "product"), found, strict=True):
                sums[name][others.individuals] = values
        return cls(
            **sums,
            centre=centre,
            rest_variance=np.maximum(responses.variance_without, CONSTANT * y.var()),
        )

    def taken(self, order: NDArray[np.int64]) -> Statistics:
        """Return the sums in another order of individuals."""
        return Statistics(*(getattr(self, part.name)[order] for part in fields(self)))

    @property
    def size(self) -> Array:
        """Root mean square of an individual's contributions."""
        return np.sqrt(self.contribution_square / np.maximum(self.count, 1e-300))
