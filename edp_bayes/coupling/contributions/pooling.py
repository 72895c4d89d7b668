"""What all individuals together say of one: how often, how much and how variably they contribute.

The risk is a maximum over thousands of individuals, so their estimates are drawn together: those
seen once or twice follow the others. Pooling yields to an individual's own data where the two
conflict: no estimate moves towards the others by more than one own standard error, on the scale of
logarithms (limited translation: Efron and Morris 1972), and how often others are present says
nothing of those whose contributions are far larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.utils.arrays import Array

__all__ = [
    "Magnitude",
    "Pool",
    "Pooled",
    "Spread",
    "learn_presence",
    "pool_contributions",
    "pool_presence",
    "presence_in_question",
    "stand_out",
]

# Fewer individuals than this are not pooled.
FEWEST_POOLED = 8
# Prior sizes where there is nothing to pool: spread relative to size, degrees of freedom, and
# the size of an individual who was never seen relative to the spread of the response.
RELATIVE_SPREAD = 0.5
DEGREES = 2.0
UNSEEN_SIZE = 0.25
MOST_DEGREES = 50.0
# Own standard errors by which an estimate moves towards the others.
MOST_MOVED = 1.0
# Presence of individuals whose sizes stand out: of the largest, by so many robust standard
# deviations of log sizes, whose own is at least a third.
ALONE = (0.5, 0.5)
STANDS_OUT, LEAST_DEVIATION, MOST_ALONE = 3.0, 1.0 / 3.0, 20
# The pooled beta distribution counts for at most this many times an individual's own databases,
# and its mean is at least this many of them.
MOST_WEIGHT, LEAST_SEEN = 10.0, 1.0
TAILS = 4.0  # degrees of freedom of the log size of an individual not in the sample
NOTHING = 1e-300
ROUNDING = 1e-12  # of squares relative to the square of the size


def pool_presence(
    count: Array, n: int, learned: tuple[float, float], alone: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return the beta prior of everybody's presence, from that learned of all.

    It counts for fewer databases where the log of an individual's share of databases would
    otherwise move by more than one own standard error.

    Parameters
    ----------
    count : ndarray
        Shape (m,): in how many of the n databases each individual contributes.
    n : int
        Databases.
    learned : tuple of float
        As `learn_presence` returns it.
    alone : ndarray of bool
        Shape (m,): who is not pooled.

    Returns
    -------
    a, b : ndarray
        Shape (m,); 1/2 for those alone.
    """
    a, b = np.full(count.shape, ALONE[0]), np.full(count.shape, ALONE[1])
    if learned == ALONE:
        return a, b
    weight = sum(learned)
    mean = learned[0] / weight
    inside = (count > 0) & (count < n)
    share = count[inside] / n
    reach = np.exp(MOST_MOVED * np.sqrt((1.0 - share) / count[inside]))
    weights = np.full(count.shape, weight)
    weights[inside] = _limited(share, float(n), mean, weight, reach)
    return np.where(alone, a, mean * weights), np.where(alone, b, (1.0 - mean) * weights)


def learn_presence(count: Array, n: int) -> tuple[float, float]:
    """Return the beta distribution of presence among those sometimes absent.

    Beta(1/2, 1/2) where fewer than eight individuals are.
    """
    seen = count[(count < n) & (count > 0)]
    if seen.size < FEWEST_POOLED:
        return ALONE
    values, times = np.unique(seen, return_counts=True)
    return _truncated_beta_binomial(values, times.astype(np.float64), n)


@dataclass(frozen=True)
class Pool:
    """What is known of an individual not in the sample, from all others.

    Parameters
    ----------
    always : float
        Share of individuals never absent.
    presence : tuple of float
        Beta distribution of presence among the others.
    spread : Spread
        Spread of the contributions relative to their size.
    middle, between : float
        Mean and variance of the log sizes; their tails are those of Student's t.
    negative : float
        Share of individuals whose contributions are negative on average.
    """

    always: float
    presence: tuple[float, float]
    spread: Spread
    middle: float
    between: float
    negative: float

    def draw(self, rng: np.random.Generator, draws: int) -> tuple[Array, Array, Array]:
        """Return draws of presence, mean contribution and spread, each of shape (draws,)."""
        presence = rng.beta(*self.presence, draws)
        presence[rng.random(draws) < self.always] = 1.0
        far = rng.standard_t(TAILS, draws) * np.sqrt((TAILS - 2.0) / TAILS * self.between)
        size = np.exp(np.clip(self.middle + far, -300.0, 300.0))
        chi = rng.chisquare(self.spread.degrees, draws)
        spread = self.spread.relative * size * np.sqrt(self.spread.degrees / chi)
        sign = np.where(rng.random(draws) < self.negative, -1.0, 1.0)
        return presence, sign * size, spread


def presence_in_question(presence: Array, odds: float | Array) -> Array:
    """Return presence in the database in question, of odds so many times those on average."""
    if np.isscalar(odds) and odds == 1.0:
        return presence
    return odds * presence / (1.0 - presence + odds * presence)


def stand_out(count: Array, size: Array) -> NDArray[np.bool_]:
    """Return whose contributions are far larger than those of the others, at most twenty.

    Parameters
    ----------
    count, size : ndarray
        Shape (m,): databases and root mean square of each individual's contributions.
    """
    out = np.zeros(count.shape, dtype=bool)
    seen = np.flatnonzero(count > 0)
    if seen.size >= FEWEST_POOLED:
        log_size = np.log(size[seen])
        middle = np.median(log_size)
        deviation = max(1.4826 * float(np.median(np.abs(log_size - middle))), LEAST_DEVIATION)
        far = (log_size - middle) / deviation
        order = np.argsort(-far, kind="stable")[:MOST_ALONE]
        out[seen[order]] = far[order] > STANDS_OUT
    return out


def _limited(own: Array, count: float | Array, pooled: float, weight: float, reach: Array) -> Array:
    """Return the weight of the pool with which the mean of both stays within reach of the own.

    Within factors of `reach` of the own value, which counts `count`.
    """
    end = np.where(own > pooled, own / reach, own * reach)
    outside = np.where(own > pooled, pooled < end, pooled > end)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = count * (own - end) / (end - pooled)
    return np.where(outside, np.minimum(weight, most), weight)


def _log_seen(count: Array, n: int, beta: tuple[float, float]) -> Array:
    """Log probability of a count under a beta-binomial distribution, given 0 < count < n."""
    from scipy.special import betaln, gammaln

    a, b = beta
    choose = gammaln(n + 1.0) - gammaln(count + 1.0) - gammaln(n - count + 1.0)
    zero = np.exp(betaln(a, b + n) - betaln(a, b))
    full = np.exp(betaln(a + n, b) - betaln(a, b))
    inside = np.log(max(1.0 - zero - full, NOTHING))
    return np.asarray(choose + betaln(a + count, b + n - count) - betaln(a, b) - inside)


def _truncated_beta_binomial(values: Array, times: Array, n: int) -> tuple[float, float]:
    """Maximum likelihood of a beta-binomial distribution seen only between zero and n.

    Over its mean and its weight in databases, both within what any individual may learn from the
    others.
    """
    from scipy.optimize import minimize

    least, most = np.log([0.1, MOST_WEIGHT * n])
    low = LEAST_SEEN / n

    def beta(parameters: Array) -> tuple[float, float]:
        share, weight = 1.0 / (1.0 + np.exp(-parameters))
        mean = low + (1.0 - 2.0 * low) * share
        total = np.exp(least + (most - least) * weight)
        return float(mean * total), float((1.0 - mean) * total)

    def loss(parameters: Array) -> float:
        # A weak prior keeps a few individuals from fixing the distribution exactly.
        penalty = 0.5 * float(np.sum(parameters**2)) / 4.0
        return penalty - float(times @ _log_seen(values, n, beta(parameters)))

    best = minimize(loss, np.zeros(2), method="Nelder-Mead")
    return beta(best.x)


@dataclass(frozen=True)
class Spread:
    """Scaled inverse chi-squared distribution of an individual's spread relative to their size."""

    relative: float
    degrees: float

    def weight(self, count: Array, residual: Array) -> Array:
        """Return the degrees of freedom the pool has for each individual.

        Fewer where the log of the own residual variance would otherwise move towards the pool by
        more than one own standard error.

        Parameters
        ----------
        count : ndarray
            Shape (m,): databases in which each individual contributes.
        residual : ndarray
            Shape (m,): residual sum of squares, relative to the square of the pooled size.
        """
        from scipy.special import polygamma

        free = np.maximum(count - 1.0, 0.0)
        out = np.full(count.shape, self.degrees)
        usable = (free > 0.5) & (residual > ROUNDING)
        own = residual[usable] / free[usable]
        reach = np.exp(MOST_MOVED * np.sqrt(polygamma(1, 0.5 * free[usable])))
        out[usable] = _limited(own, free[usable], self.relative**2, self.degrees, reach)
        return out

    def kept(self, free: Array, residual: Array, weight: Array) -> Array:
        """Return by how many times degrees of freedom and squares grow where `weight` was limited.

        Limiting says where the spread lies, not that nothing is known of it: the pool keeps the two
        degrees that it has where nothing is pooled. With fewer the tails of a person seen twice are
        those of Cauchy's distribution, and the largest risk of thousands is that of a tail. Only
        where the own spread is below the pool's: above it the tails stay as the few own
        contributions leave them.

        Parameters
        ----------
        free : ndarray
            Shape (m,): degrees of freedom of the own residuals.
        residual, weight : ndarray
            Shape (m,): as `weight` takes and returns them.
        """
        least = min(self.degrees, DEGREES)
        below = (weight < least) & (residual < free * self.relative**2)
        kept = np.ones_like(weight)
        kept[below] = (least + free[below]) / (weight[below] + free[below])
        return kept


def pool_spread(count: Array, contribution: Array, contribution_square: Array) -> Spread:
    """Fit the distribution by moments of the log residual variance, as Smyth (2004), Section 6.2.

    Parameters
    ----------
    count, contribution, contribution_square : ndarray
        Shape (m,): number, sum and sum of squares of each individual's contributions.
    """
    from scipy.special import digamma, polygamma

    free = count - 1.0
    about_mean = contribution_square - contribution**2 / np.maximum(count, NOTHING)
    usable = (free > 0.5) & (about_mean > ROUNDING * contribution_square)
    if usable.sum() < FEWEST_POOLED:
        return Spread(RELATIVE_SPREAD, DEGREES)
    half = 0.5 * free[usable]
    mean_square = contribution_square[usable] / count[usable]
    relative = about_mean[usable] / free[usable] / mean_square
    log_variance = np.log(relative) - digamma(half) + np.log(half)
    excess = log_variance.var(ddof=1) - polygamma(1, half).mean()
    alike = excess <= polygamma(1, 0.5 * MOST_DEGREES)
    degrees = MOST_DEGREES if alike else max(2.0 * _inverse_trigamma(excess), DEGREES)
    variance = np.exp(log_variance.mean() + digamma(0.5 * degrees) - np.log(0.5 * degrees))
    return Spread(float(np.sqrt(min(variance, 1.0))), degrees)


def _inverse_trigamma(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-3, 1e6))


@dataclass(frozen=True, eq=False)
class Magnitude:
    """Pooled size of each individual's contributions, and the factor that takes them there.

    Attributes
    ----------
    size, shrinkage : ndarray
        Shape (m,).
    middle, between : float
        Mean and variance of the log sizes of individuals.
    """

    size: Array
    shrinkage: Array
    middle: float
    between: float


def pool_magnitude(
    count: Array, size: Array, own_spread: Array, spread: Spread, unseen: float
) -> Magnitude:
    """Draw log sizes towards their common mean, by at most one own standard error.

    Those seen once or twice are drawn to the others, those seen often keep their own size, and
    those never seen get the common one.

    Parameters
    ----------
    count, size : ndarray
        Shape (m,): databases and root mean square of each individual's contributions.
    own_spread : ndarray
        Shape (m,): spread of the contributions relative to their size, posterior to the pool.
    spread : Spread
        Pooled spread.
    unseen : float
        Size of an individual never seen where there is nothing to pool.
    """
    seen = count > 0
    shrinkage = np.ones_like(count)
    middle, between = float(np.log(unseen)), 1.0
    if seen.sum() >= FEWEST_POOLED:
        noise = spread.relative**2 / count[seen]
        log_size = np.log(size[seen])
        between = max(float(log_size.var(ddof=1) - noise.mean()), 0.01)
        keep = between / (between + noise)
        middle = float(np.average(log_size, weights=keep))
        error = np.minimum(own_spread[seen], spread.relative) / np.sqrt(count[seen])
        move = np.clip((1.0 - keep) * (middle - log_size), -MOST_MOVED * error, MOST_MOVED * error)
        shrinkage[seen] = np.exp(move)
    sizes = np.where(seen, size * shrinkage, np.exp(middle))
    return Magnitude(sizes, shrinkage, middle, between)


class Pooled(NamedTuple):
    """What all individuals together say of how much each contributes, and how variably.

    Attributes
    ----------
    spread : Spread
        Spread of contributions relative to their size.
    magnitude : Magnitude
        Sizes.
    weight : ndarray
        Shape (m,): degrees of freedom that the pooled spread counts for.
    kept : ndarray
        Shape (m,): share of all degrees of freedom that is kept.
    """

    spread: Spread
    magnitude: Magnitude
    weight: Array
    kept: Array

    @property
    def prior(self) -> Array:
        """Sum of squares that the pooled spread counts for, shape (m,)."""
        return self.weight * (self.spread.relative * self.magnitude.size) ** 2


def pool_contributions(
    count: Array,
    contribution: Array,
    square: Array,
    size: Array,
    residual: Array,
    free: Array,
    unseen: float,
) -> Pooled:
    """Pool contributions to one query; of several their lengths in whitened units.

    Parameters
    ----------
    count, contribution, square : ndarray
        Shape (m,): in how many databases everybody contributes, the sum of it and of its square.
    size : ndarray
        Shape (m,): root mean square.
    residual : ndarray
        Shape (m,): what a regression on the rest leaves of the squares.
    free : ndarray
        Shape (m,): degrees of freedom of that.
    unseen : float
        Size of an individual who was never seen, if nobody was.
    """
    spread = pool_spread(count, contribution, square)
    own = residual / np.where(size > 0.0, size, 1.0) ** 2
    weight = spread.weight(count, own)
    own_spread = np.sqrt((weight * spread.relative**2 + own) / (weight + free))
    magnitude = pool_magnitude(count, size, own_spread, spread, unseen)
    return Pooled(spread, magnitude, weight, spread.kept(free, own, weight))
