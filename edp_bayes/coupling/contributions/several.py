"""Posterior of how an individual contributes to several queries, in whitened units.

In each database individual i is present with probability rho_i and then contributes
c = a + B r + e, with r the responses without i and e normal of covariance T: the multivariate form
of `edp_bayes.coupling.contributions.posterior`, pooled in the same way. The size of a contribution
is its length in whitened units, the standard deviations by which it moves the responses together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.coupling.contributions.exposure import CONSTANT
from edp_bayes.coupling.contributions.pooling import (
    UNSEEN_SIZE,
    learn_presence,
    pool_contributions,
    pool_presence,
    presence_in_question,
    stand_out,
)
from edp_bayes.coupling.contributions.posterior import (
    FLAT,
    INDEPENDENCE_WEIGHT,
    STEEPEST,
)
from edp_bayes.coupling.contributions.streams import own_streams
from edp_bayes.responses.entries import outer
from edp_bayes.responses.responses import Adjustment
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

if TYPE_CHECKING:
    from edp_bayes.distributions.multivariate import Units
    from edp_bayes.responses.joined import JointResponses

__all__ = ["JointContributionDraws", "JointContributionPosterior"]

ROUNDING = 1e-12  # of the square of a size
FLATTEN, MOST_FLATTENED = 0.7, 60


class JointContributionDraws(NamedTuple):
    """Draws of how individuals contribute, in whitened units.

    Attributes
    ----------
    presence : ndarray
        Shape (draw, individual, component).
    intercept : ndarray
        Shape (draw, individual, d): at rest zero.
    slope, spread : ndarray
        Shape (draw, individual, d, d): B, and T.
    """

    presence: Array
    intercept: Array
    slope: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class JointContributionPosterior:
    """Empirical-Bayes conjugate posterior of every individual's contributions.

    Attributes
    ----------
    presence_a, presence_b : ndarray
        Shape (m,): Beta posterior of presence; b = 0 where always present.
    mean : ndarray
        Shape (m, 1 + d, d): posterior mean of intercept (at the centre of the rest) and slopes.
    factor : ndarray
        Shape (m, 1 + d, 1 + d): Cholesky factor of the rows' posterior covariance.
    degrees : ndarray
        Shape (m,): degrees of freedom of the spread of each response.
    root : ndarray
        Shape (m, d, d): Cholesky factor of the scale of T's inverse Wishart posterior.
    centre : ndarray
        Shape (m, d): centre of the responses without each individual.
    rank : ndarray of int
        Shape (m,): place in the order of sorted labels, which numbers the streams.
    seed : int
        Seed.
    odds : ndarray, optional
        Shape (m,): odds of presence in the database in question over those on average; 1 if not
        given.
    """

    presence_a: Array
    presence_b: Array
    mean: Array
    factor: Array
    degrees: Array
    root: Array
    centre: Array
    rank: Index
    seed: int
    odds: Array | None = None

    @classmethod
    def fit(cls, responses: JointResponses, units: Units, seed: int) -> JointContributionPosterior:
        """Condition on the contributions; the cost follows the records."""
        rank, order = responses.rank, responses.order
        stats = _Statistics.of(responses, units).taken(order)
        k, n, d = stats.count, responses.n_databases, responses.n_queries
        presence_a, presence_b = pool_presence(k, n, learn_presence(k, n), stand_out(k, stats.size))
        adjustment = responses.adjustment or Adjustment.none(k.size)
        spells = adjustment.spells[order]
        free = np.maximum(k - 1.0 - adjustment.degrees[order], 0.0)
        precision = np.zeros((k.size, 1 + d, 1 + d))
        precision[:, 0, 0] = k + FLAT
        precision[:, 0, 1:] = precision[:, 1:, 0] = stats.rest
        precision[:, 1:, 1:] = stats.rest_square + INDEPENDENCE_WEIGHT * stats.rest_covariance
        right = np.concatenate([stats.contribution[:, None], stats.product], axis=1)
        mean = np.linalg.solve(precision, right)
        left = stats.contribution_square - np.swapaxes(right, 1, 2) @ mean
        residual = _psd(0.5 * (left + np.swapaxes(left, 1, 2)))
        square = _trace(stats.contribution_square)
        length = np.sqrt((stats.contribution**2).sum(axis=1))
        pooled = pool_contributions(
            k, length, square, stats.size, _trace(residual), free, UNSEEN_SIZE
        )
        prior = pooled.prior[:, None, None] * _shape(stats, d)
        shrinkage, kept = pooled.magnitude.shrinkage, pooled.kept
        scale = (prior + residual * (shrinkage**2)[:, None, None]) * kept[:, None, None]
        covariance = np.linalg.inv(precision)
        covariance[:, 0, 0] += adjustment.variance[order]
        covariance[k == 0, 0, 0] = pooled.spread.relative**-2.0
        return cls(
            presence_a=(k / spells + presence_a)[rank],
            presence_b=np.where(k < n, (n - k) / spells + presence_b, 0.0)[rank],
            mean=(mean * shrinkage[:, None, None])[rank],
            factor=np.linalg.cholesky(covariance)[rank],
            degrees=((pooled.weight + free) * kept)[rank],
            root=np.linalg.cholesky(_raised(scale))[rank],
            centre=stats.centre[rank],
            rank=rank,
            seed=seed,
            odds=adjustment.own_odds,
        )

    def taken(self, members: Index) -> JointContributionPosterior:
        """Return that of some individuals."""
        arrays = (part.name for part in fields(self) if part.name != "seed")
        names = [name for name in arrays if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name)[members] for name in names})

    @property
    def typical(self) -> tuple[Array, Array]:
        """Mean presence and root mean square length of contributions, shape (m,) each."""
        spread = (self.root**2).sum(axis=(1, 2)) / self.degrees
        size = np.sqrt((self.mean[:, 0] ** 2).sum(axis=1) + spread)
        return self.presence_a / (self.presence_a + self.presence_b), size

    def draw(self, individuals: Index, draws: int, components: int) -> JointContributionDraws:
        """Draw how some individuals contribute; presence is the same with every component."""
        d, people = self.centre.shape[1], len(individuals)
        triangle, rows = d * (d - 1) // 2, (1 + d) * d
        presence = np.ones((draws, people))
        chi = np.empty((people, draws, d))
        normal = np.empty((people, draws, triangle + rows))
        streams = own_streams(self.seed, self.rank[individuals])
        for row, (i, rng) in enumerate(zip(individuals, streams, strict=True)):
            # Bartlett: degrees + d - 1, one less for every row
            chi[row] = rng.chisquare(self.degrees[i] + np.arange(d - 1.0, -1.0, -1.0), (draws, d))
            rng.standard_normal(out=normal[row])
            if self.presence_b[i] > 0:
                drawn = rng.beta(self.presence_a[i], self.presence_b[i], draws)
                odds = 1.0 if self.odds is None else float(self.odds[i])
                presence[:, row] = presence_in_question(drawn, odds)
        intercept = np.empty((draws, people, d))
        slope, spread = np.empty((2, draws, people, d, d))
        some = tuple(
            np.ascontiguousarray(part[individuals])
            for part in (self.mean, self.factor, self.root, self.centre)
        )
        in_threads(_fill, people, chi, normal, some, intercept, slope, spread)
        whole = np.repeat(presence[..., None], components, axis=2)
        return JointContributionDraws(whole, intercept, slope, spread)


@compiled
def _fill(first, last, chi, normal, some, intercept, slope, spread):  # type: ignore[no-untyped-def]
    """Turn chi-squared and normal numbers into draws of intercept, slope and spread.

    T ~ inverse Wishart of scale root root', and the rows (intercept, slopes) are matrix-normal
    about mean, with covariance factor factor' between rows and T between columns. chi is
    (individual, draw, d), normal (individual, draw, d (d - 1) / 2 + (1 + d) d): below Bartlett's
    diagonal, then rows.
    """
    mean, factor, root, centre = some
    d = centre.shape[1]
    triangle, inverse, half = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    moved, rows = np.empty((1 + d, d)), np.empty((1 + d, d))
    lower, work = np.empty((d, d)), np.empty((d, d))
    for i in range(first, last):
        for s in range(chi.shape[1]):
            at = 0
            for a in range(d):
                triangle[a, a] = np.sqrt(chi[i, s, a])
                for b in range(a):
                    triangle[a, b] = normal[i, s, at]
                    at += 1
            inverse_factor(triangle, inverse, d)
            # T = half half', half = root A'^-1
            for a in range(d):
                for b in range(d):
                    total = 0.0
                    for c in range(min(a, b) + 1):
                        total += root[i, a, c] * inverse[b, c]
                    half[a, b] = total
            for a in range(d):
                for b in range(a + 1):
                    total = 0.0
                    for c in range(d):
                        total += half[a, c] * half[b, c]
                    spread[s, i, a, b] = total
                    spread[s, i, b, a] = total
            for a in range(1 + d):
                for b in range(d):
                    rows[a, b] = normal[i, s, at]
                    at += 1
            for a in range(1 + d):
                for b in range(d):
                    total = 0.0
                    for c in range(a + 1):
                        total += factor[i, a, c] * rows[c, b]
                    moved[a, b] = total
            for b in range(d):
                intercept[s, i, b] = mean[i, 0, b]
                for c in range(d):
                    intercept[s, i, b] += moved[0, c] * half[b, c]
                for a in range(d):
                    total = mean[i, 1 + a, b]
                    for c in range(d):
                        total += moved[1 + a, c] * half[b, c]
                    slope[s, i, b, a] = total
            _flatten(slope[s, i], lower, work, d)
            # from the centre of the rest to rest zero
            for b in range(d):
                for a in range(d):
                    intercept[s, i, b] -= slope[s, i, b, a] * centre[i, a]


@compiled
def _flatten(slope, lower, work, d):  # type: ignore[no-untyped-def]
    """Shrink slopes until the individual adds less than they take away in any direction.

    I + B is to leave at least a tenth of every difference of the rest. Its least singular value is
    at least one over the Frobenius norm of its inverse, which is that of the inverse of L in
    (I + B)'(I + B) = L L'.
    """
    least = 1.0 - STEEPEST
    small = 0.0
    for a in range(d):
        for b in range(d):
            small += slope[a, b] * slope[a, b]
    if small < STEEPEST * STEEPEST:
        return
    for _ in range(MOST_FLATTENED):
        for a in range(d):
            for b in range(d):
                total = 0.0
                for c in range(d):
                    left = slope[c, a] + (1.0 if a == c else 0.0)
                    right = slope[c, b] + (1.0 if b == c else 0.0)
                    total += left * right
                work[a, b] = total
        cholesky(work, lower, d)
        inverse_factor(lower, work, d)
        squares = 0.0
        for a in range(d):
            for b in range(a + 1):
                squares += work[a, b] * work[a, b]
        if squares * least * least <= 1.0 and _determinant_positive(slope, work, d):
            return
        for a in range(d):
            for b in range(d):
                slope[a, b] *= FLATTEN


@compiled
def _determinant_positive(slope, work, d):  # type: ignore[no-untyped-def]
    """Whether I + B keeps its orientation, by elimination in work."""
    for a in range(d):
        for b in range(d):
            work[a, b] = slope[a, b] + (1.0 if a == b else 0.0)
    positive = True
    for a in range(d):
        pivot = a
        for b in range(a + 1, d):
            if abs(work[b, a]) > abs(work[pivot, a]):
                pivot = b
        if work[pivot, a] == 0.0:
            return False
        if pivot != a:
            positive = not positive
            for c in range(d):
                work[a, c], work[pivot, c] = work[pivot, c], work[a, c]
        positive = positive == (work[a, a] > 0.0)
        for b in range(a + 1, d):
            ratio = work[b, a] / work[a, a]
            for c in range(a, d):
                work[b, c] -= ratio * work[a, c]
    return positive


@dataclass(frozen=True, eq=False)
class _Statistics:
    """Sums over the databases in which each individual contributes, in whitened units."""

    count: Array
    contribution: Array
    contribution_square: Array
    rest: Array
    rest_square: Array
    product: Array
    centre: Array
    rest_covariance: Array

    @classmethod
    def of(cls, responses: JointResponses, units: Units) -> _Statistics:
        found = responses.entries
        z, c = units.whiten(responses.response), units.shrink(found.value)
        n, people, total = responses.n_databases, responses.n_individuals, found.total
        centre = -total(c) / n
        rest = z[found.database] - c - centre[found.owner]
        whole = found.covariance_without(z, c)
        return cls(
            count=np.bincount(found.owner, minlength=people).astype(np.float64),
            contribution=total(c),
            contribution_square=total(outer(c)),
            rest=total(rest),
            rest_square=total(outer(rest)),
            product=total(rest[:, :, None] * c[:, None, :]),
            centre=centre,
            rest_covariance=_psd(whole) + CONSTANT * np.eye(z.shape[1]),
        )

    def taken(self, order: Index) -> _Statistics:
        """Return the sums in another order of individuals."""
        return _Statistics(*(getattr(self, part.name)[order] for part in fields(self)))

    @property
    def size(self) -> Array:
        """Root mean square length of an individual's contributions."""
        return np.sqrt(_trace(self.contribution_square) / np.maximum(self.count, 1e-300))


def _shape(stats: _Statistics, d: int) -> Array:
    """Return how contributions vary about their mean in a typical individual, of trace one."""
    k = stats.count
    about = (
        stats.contribution_square - outer(stats.contribution) / np.maximum(k, 1.0)[:, None, None]
    )
    size = _trace(stats.contribution_square)
    usable = (k > 1.5) & (_trace(about) > ROUNDING * size)
    neutral = np.eye(d) / d
    if not usable.any():
        return neutral
    relative = _psd(about[usable]) / _trace(about[usable])[:, None, None]
    weight = np.minimum(k[usable] - 1.0, d)
    # as if one more individual had varied in every direction alike
    found = (weight[:, None, None] * relative).sum(axis=0) + neutral
    return np.asarray(found / np.trace(found))


def _trace(matrices: Array) -> Array:
    return np.asarray(np.trace(matrices, axis1=1, axis2=2))


def _psd(matrices: Array) -> Array:
    """Return symmetric matrices without their negative eigenvalues, which are rounding."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2))


def _raised(matrices: Array) -> Array:
    """Return matrices that have a Cholesky factor."""
    d = matrices.shape[1]
    least = ROUNDING * _trace(matrices) + 1e-300
    return matrices + least[:, None, None] * np.eye(d)
