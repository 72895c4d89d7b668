"""Posterior of how an individual contributes: how often, how much, and depending on what.

In each database individual i is present with probability rho_i and then contributes
c = a_i + b_i r + tau_i e, with r the response without i (centred) and e standard normal. The
individuals are pooled, because the risk is a maximum over thousands of them: a common law of
presence, of the spread of an individual's contributions relative to their size, and of that size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edp_bayes.responses import Responses

__all__ = ["ContributionDraws", "ContributionPosterior", "ContributionPrior"]

Array = NDArray[np.float64]

# Fewer individuals than this are not pooled.
FEWEST_POOLED = 8
# Prior sizes where there is nothing to pool: spread relative to size, degrees of freedom, and
# the size of an individual who was never seen relative to the spread of the response.
RELATIVE_SPREAD = 0.5
DEGREES = 2.0
UNSEEN_SIZE = 0.25
# Prior weight, in databases, of a contribution that does not depend on the rest.
INDEPENDENCE_WEIGHT = 2.0
FLAT = 1e-3
MOST_DEGREES = 50.0
STEEPEST = 0.9


@dataclass(frozen=True)
class ContributionPrior:
    """Proper prior of every individual's contribution law, in place of the learned one.

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


@dataclass(frozen=True)
class ContributionDraws:
    """Draws of the contribution law, each of shape (draw, individual).

    Attributes
    ----------
    presence : ndarray
        Probability rho of being present; exactly 1 for those never seen absent. Its shape is
        (draw, individual, component) where it stands beside a mixture, see `edp_bayes.presence`.
    intercept, slope, spread : ndarray
        a (at rest zero), b and tau of the contribution a + b rest + tau e.
    """

    presence: Array
    intercept: Array
    slope: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class ContributionPosterior:
    """Empirical-Bayes conjugate posterior of every individual's contribution law.

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
    seed : int
        Every individual has a stream of its own, so draws do not depend on who else is drawn.
    """

    presence_a: Array
    presence_b: Array
    mean: Array
    factor: Array
    degrees: Array
    squares: Array
    centre: Array
    seed: int

    @classmethod
    def fit(
        cls, responses: Responses, seed: int, *, prior: ContributionPrior | None = None
    ) -> ContributionPosterior:
        """Condition on the contributions; the cost follows the records."""
        stats = _Statistics.of(responses, centred=prior is None)
        k, n = stats.count, responses.n_databases
        if prior is None:
            pooled = _pooled_spread(stats)
            magnitude = _pooled_magnitude(stats, pooled.relative)
            shrinkage, relative = magnitude.shrinkage, pooled.relative
            degrees, squares = pooled.degrees, pooled.degrees * (relative * magnitude.size) ** 2
            flat, steep = FLAT, INDEPENDENCE_WEIGHT * stats.rest_variance
            beta = _pooled_presence(k, n)
            # A flat intercept takes a degree of freedom.
            free = np.maximum(k - 1.0, 0.0)
        else:
            shrinkage, relative = np.ones_like(k), 1.0
            degrees, squares = prior.degrees, np.full_like(k, prior.degrees * prior.spread**2)
            flat, steep, free = prior.intercept_weight, prior.slope_weight, k
            beta = prior.presence or (0.5, 0.5)
        absent = k < n if prior is None else np.full(k.shape, prior.presence is not None)
        p00, p01, p11 = k + flat, stats.rest, stats.rest_square + steep
        determinant = p00 * p11 - p01**2
        intercept = (p11 * stats.contribution - p01 * stats.product) / determinant
        slope = (p00 * stats.product - p01 * stats.contribution) / determinant
        fitted = intercept * stats.contribution + slope * stats.product
        residual = np.maximum(stats.contribution_square - fitted, 0.0)
        factor = np.zeros((k.size, 2, 2))
        factor[:, 0, 0] = np.sqrt(p11 / determinant)
        factor[:, 1, 0] = -p01 / np.sqrt(p11 * determinant)
        factor[:, 1, 1] = np.sqrt(1.0 / p11)
        if prior is None:
            factor[k == 0, 0, 0] = 1.0 / relative
        return cls(
            presence_a=k + beta[0],
            presence_b=np.where(absent, n - k + beta[1], 0.0),
            mean=np.stack([intercept, slope], axis=1) * shrinkage[:, None],
            factor=factor,
            degrees=degrees + free,
            squares=squares + residual * shrinkage**2,
            centre=stats.centre,
            seed=seed,
        )

    def draw(self, individuals: NDArray[np.int64], draws: int) -> ContributionDraws:
        """Draw the contribution law of some individuals, shape (draws, len(individuals))."""
        shape = (len(individuals), draws)
        presence, chi, normal = np.ones(shape), np.empty(shape), np.empty((*shape, 2))
        # One generator is set to each individual's stream: making one takes longer than drawing.
        source = np.random.Philox(key=[self.seed, 0])
        rng, start = np.random.Generator(source), source.state
        for row, i in enumerate(individuals):
            start["state"]["key"][1] = i
            source.state = start
            chi[row] = rng.chisquare(self.degrees[i], draws)
            rng.standard_normal(out=normal[row])
            if self.presence_b[i] > 0:
                presence[row] = rng.beta(self.presence_a[i], self.presence_b[i], draws)
        mean, factor = self.mean[individuals, :, None], self.factor[individuals, :, :, None]
        first, second = normal[..., 0], normal[..., 1]
        spread = np.sqrt(self.squares[individuals, None] / chi)
        slope = factor[:, 1, 0] * first + factor[:, 1, 1] * second
        slope = np.maximum(mean[:, 1] + spread * slope, -STEEPEST)
        middle = mean[:, 0] + spread * (factor[:, 0, 0] * first)
        intercept = middle - slope * self.centre[individuals, None]
        laws = (presence, intercept, slope, spread)
        return ContributionDraws(*(np.ascontiguousarray(part.T) for part in laws))


@dataclass(frozen=True)
class _Statistics:
    """Sums over the databases in which each individual contributes; samples share one weight."""

    count: Array
    contribution: Array
    contribution_square: Array
    rest: Array
    rest_square: Array
    product: Array
    centre: Array
    rest_variance: float

    @classmethod
    def of(cls, responses: Responses, *, centred: bool = True) -> _Statistics:
        y, c = responses.response, responses.contribution
        owner = np.repeat(np.arange(responses.n_individuals), np.diff(c.indptr))
        centre = np.zeros(responses.n_individuals)
        if centred:
            centre = y.mean() - np.bincount(owner, c.data, responses.n_individuals) / y.size
        rest = y[c.indices] - c.data - centre[owner]

        def total(values: Array) -> Array:
            return np.bincount(owner, values, responses.n_individuals) / responses.samples

        return cls(
            count=total(np.ones_like(c.data)),
            contribution=total(c.data),
            contribution_square=total(c.data**2),
            rest=total(rest),
            rest_square=total(rest**2),
            product=total(rest * c.data),
            centre=centre,
            rest_variance=float(y.var()),
        )

    @property
    def size(self) -> Array:
        """Root mean square of an individual's contributions."""
        return np.sqrt(self.contribution_square / np.maximum(self.count, 1e-300))


def _pooled_presence(count: Array, n: int) -> tuple[float, float]:
    """Beta prior of presence, learned from those sometimes absent."""
    seen = count[(count < n) & (count > 0)]
    if seen.size >= FEWEST_POOLED:
        return _truncated_beta_binomial(seen, n)
    return 0.5, 0.5


def _truncated_beta_binomial(count: Array, n: int) -> tuple[float, float]:
    """Maximum likelihood of a beta-binomial law seen only where it is neither zero nor n."""
    from scipy.optimize import minimize
    from scipy.special import betaln

    values, times = np.unique(count, return_counts=True)

    def loss(log_parameters: Array) -> float:
        a, b = np.exp(log_parameters)
        zero = np.exp(betaln(a, b + n) - betaln(a, b))
        full = np.exp(betaln(a + n, b) - betaln(a, b))
        terms = betaln(a + values, b + n - values) - betaln(a, b)
        # A weak prior at Beta(1/2, 1/2) keeps a few individuals from fixing the law exactly.
        penalty = 0.5 * np.sum((log_parameters - np.log(0.5)) ** 2) / 4.0
        return float(penalty - times @ (terms - np.log(max(1.0 - zero - full, 1e-300))))

    best = minimize(loss, np.log([0.5, 0.5]), method="Nelder-Mead", bounds=[(-6.0, 8.0)] * 2)
    a, b = np.exp(best.x)
    return float(a), float(b)


@dataclass(frozen=True)
class _Spread:
    """Scaled inverse chi-squared law of an individual's spread relative to his size."""

    relative: float
    degrees: float


def _pooled_spread(stats: _Statistics) -> _Spread:
    """Fit the law by moments of the log residual variance, as Smyth (2004), Section 6.2."""
    from scipy.special import digamma, polygamma

    free = stats.count - 1.0
    about_mean = stats.contribution_square - stats.contribution**2 / np.maximum(stats.count, 1e-300)
    usable = (free > 0.5) & (about_mean > 1e-12 * stats.contribution_square)
    if usable.sum() < FEWEST_POOLED:
        return _Spread(RELATIVE_SPREAD, DEGREES)
    half = 0.5 * free[usable]
    relative = about_mean[usable] / free[usable] / stats.size[usable] ** 2
    log_variance = np.log(relative) - digamma(half) + np.log(half)
    excess = log_variance.var(ddof=1) - polygamma(1, half).mean()
    alike = excess <= polygamma(1, 0.5 * MOST_DEGREES)
    degrees = MOST_DEGREES if alike else max(2.0 * _inverse_trigamma(excess), DEGREES)
    variance = np.exp(log_variance.mean() + digamma(0.5 * degrees) - np.log(0.5 * degrees))
    return _Spread(float(np.sqrt(min(variance, 1.0))), degrees)


def _inverse_trigamma(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-3, 1e6))


@dataclass(frozen=True, eq=False)
class _Magnitude:
    """Pooled size of each individual's contributions, and the factor that takes them there."""

    size: Array
    shrinkage: Array


def _pooled_magnitude(stats: _Statistics, relative: float) -> _Magnitude:
    """Shrink log sizes towards their common mean, by a normal law of log sizes.

    Those seen once or twice are drawn to the others, those seen often keep their own size, and
    those never seen get the common one.
    """
    seen = stats.count > 0
    size, shrinkage = stats.size, np.ones_like(stats.count)
    common = UNSEEN_SIZE * np.sqrt(stats.rest_variance)
    if seen.sum() >= FEWEST_POOLED:
        noise = relative**2 / stats.count[seen]
        log_size = np.log(size[seen])
        between = max(float(log_size.var(ddof=1) - noise.mean()), 0.01)
        keep = between / (between + noise)
        middle = float(np.average(log_size, weights=keep))
        shrinkage[seen] = np.exp((1.0 - keep) * (middle - log_size))
        common = np.exp(middle)
    return _Magnitude(np.where(seen, size * shrinkage, common), shrinkage)
