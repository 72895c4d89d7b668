"""Contributions and presence as they would be in the database in question.

Where what an adversary knows predicts what individuals contribute, a season of their own for one,
contributions c_t are adjusted to the database in question: c_t - g'(x_t - x*). The slopes g have a
normal prior of mean zero whose variance, relative to the residual variance, is one of a few values.
How common each value is among all individuals is learned from them, and so is which of them an
individual follows: those without a season keep their contributions, those with one lose it. How
many individuals are present is regressed on x_t as a whole, by its log odds, and the odds of
everybody who is sometimes absent follow. Those who come in spells are seen in fewer databases than
there are: presence like that of the database before counts for less. In the database in question
they are there as those who were in the one before, or were not
(`edp_bayes.coupling.contributions.spells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.spells import recent_odds
from edp_bayes.responses.joined import JointResponses
from edp_bayes.responses.responses import Adjustment, Responses, contributing, entry_columns
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array


__all__ = ["adjust", "regressed", "standardised"]

# Prior variances of a slope, for a regressor of unit deviation, over that of the residual.
VARIANCES = np.array([0.0, 0.05, 0.5, 5.0])
LEAST = 3  # presences of whom something is learned
ROUNDS = 50
ROUNDING = 1e-12
CHANGES = 1e-9  # deviation of a regressor, relative to its largest value
ACTIVITY = 0.5  # prior standard deviation of a slope of the log odds of presence
MOST_ALIKE = 0.9  # autocorrelation of presence
BLOCK = 4096  # individuals
# What a coupling may overlook unsaid: a change of the mean's variance.
ADDED = 0.1


def adjust[R: (Responses, JointResponses)](
    responses: R,
    design: Array,
    target: Array,
    response: Array,
    *,
    row: int | None = None,
    half_step: Array | None = None,
) -> R:
    """Return responses at the database in question, with contributions and presence adjusted to it.

    The contributions to each of several queries have a regression of their own, over the databases
    in which the individual contributes to any. What the regressions take and add is the most of
    them.

    Parameters
    ----------
    responses : Responses or JointResponses
        Contributions as they were.
    design : ndarray
        Shape (n, regressor): x_t, centred.
    target : ndarray
        Shape (regressor,): x*.
    response : ndarray
        Shape (n * samples,) or (n, query): the responses adjusted to the database in question.
    row : int, optional
        Which of the databases is in question, n for the next one, where they are in the order of
        time.
    half_step : ndarray, optional
        Shape (n,): half the widths of their bins, where they are rounded.

    Returns
    -------
    Responses or JointResponses
        With an `adjustment`.
    """
    answers = response.reshape(len(response), -1).T
    if design.shape[1] == 0:
        pairs = zip(responses.parts, answers, strict=True)
        return responses.of_parts(
            [part.replaced(response=one, half_step=half_step) for part, one in pairs]
        )
    x, at = standardised(design, target)
    people, n, samples = responses.n_individuals, responses.n_databases, responses.samples
    matrices = responses.entries.matrices(len(response))
    degrees, variance = np.zeros((2, people))
    for matrix in matrices:
        matrix.data, taken, added = _moved(matrix, samples, x, at)
        degrees, variance = np.maximum(degrees, taken), np.maximum(variance, added)
        matrix.eliminate_zeros()
    adjustment = _adjustment(degrees, variance, responses.presence_cells, people, n, x, at, row)
    return responses.of_parts(
        [
            part.replaced(
                response=one,
                contribution=matrix,
                presence=np.maximum(part.presence, contributing(matrix, n, samples)),
                adjustment=adjustment,
                half_step=half_step,
            )
            for part, one, matrix in zip(responses.parts, answers, matrices, strict=True)
        ]
    )


def _adjustment(
    degrees: Array,
    variance: Array,
    present: Index,
    people: int,
    n: int,
    x: Array,
    at: Array,
    row: int | None,
) -> Adjustment:
    """Return how presence is adjusted, too, by everybody's and by that in the database before."""
    odds, course = _odds(present, people, n, x, at)
    recent = np.ones(people)
    if row:
        recent = recent_odds(present, people, n, course, odds, row)
    return Adjustment(degrees, variance, odds, _spells(present, people, n), recent)


def standardised(design: Array, target: Array) -> tuple[Array, Array]:
    """Return both in standard deviations; a regressor that never changed stays in its own units."""
    deviation = design.std(axis=0)
    changes = deviation > CHANGES * np.abs(design).max(axis=0)
    deviation = np.where(changes, deviation, 1.0)
    return design / deviation, target / deviation


def _moved(
    matrix: csc_array[np.float64], samples: int, x: Array, at: Array
) -> tuple[Array, Array, Array]:
    """Return contributions at the database in question, degrees of freedom and variance added.

    Everybody's stored entries are their presence, zeros among them.
    """
    rows = np.repeat(x, samples, axis=0)
    starts = range(0, matrix.shape[1], BLOCK)
    parts = [_Slopes.of(matrix, samples, rows, slice(start, start + BLOCK)) for start in starts]
    shares = _shares(np.concatenate([part.evidence[part.count >= LEAST] for part in parts]))
    found = [part.in_question(shares, at) for part in parts]
    slope, degrees, variance = (np.concatenate(part) for part in zip(*found, strict=True))
    moved = ((rows[matrix.indices] - at) * slope[entry_columns(matrix)]).sum(axis=1)
    return matrix.data - moved, degrees, variance


def regressed(responses: Responses | JointResponses) -> int:
    """Return of how many individuals seen the contributions were adjusted with uncertain slopes.

    A coupling that takes adjusted contributions as they are takes these slopes for known.
    """
    if responses.adjustment is None:
        return 0
    present, people = responses.presence_cells, responses.n_individuals
    seen = np.bincount(present // responses.n_databases, minlength=people) > 0
    return int((responses.adjustment.variance[seen] > ADDED).sum())


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Regressions of the contributions of some individuals, for every prior variance.

    Attributes
    ----------
    count : ndarray
        Shape (individual,): presences.
    middle : ndarray
        Shape (individual, regressor): mean of the regressors where present.
    squares : ndarray
        Shape (individual, regressor, regressor): about that mean.
    inverse, mean, residual, evidence
        Posterior covariance (variance, individual, regressor, regressor) in units of the residual
        variance, mean (variance, individual, regressor), residual sum of squares (variance,
        individual) and log evidence (individual, variance).
    """

    count: Array
    middle: Array
    squares: Array
    inverse: Array
    mean: Array
    residual: Array
    evidence: Array

    @classmethod
    def of(cls, matrix: csc_array[np.float64], samples: int, rows: Array, some: slice) -> _Slopes:
        part = matrix[:, some]
        people, width = part.shape[1], rows.shape[1]
        owner = np.repeat(np.arange(people), np.diff(part.indptr))
        x, c = rows[part.indices], part.data

        def total(values: Array) -> Array:
            return np.bincount(owner, values, people) / samples

        count = total(np.ones_like(c))
        least = np.maximum(count, 1.0)
        middle = np.stack([total(x[:, a]) for a in range(width)], axis=1) / least[:, None]
        average = total(c) / least
        x, c = x - middle[owner], c - average[owner]
        squares = np.empty((people, width, width))
        for a in range(width):
            for b in range(a, width):
                squares[:, a, b] = squares[:, b, a] = total(x[:, a] * x[:, b])
        product = np.stack([total(x[:, a] * c) for a in range(width)], axis=1)
        about = total(c**2)
        size = about + count * average**2
        unit = np.eye(width)
        inverse, mean, residual, evidence = [], [], [], []
        for variance in VARIANCES:
            growth = unit + variance * squares
            found = variance * np.linalg.inv(growth)
            slope = np.einsum("iab,ib->ia", found, product)
            left = np.maximum(about - (slope * product).sum(axis=1), ROUNDING * size)
            _, determinant = np.linalg.slogdet(growth)
            with np.errstate(divide="ignore"):
                fit = np.where(size > 0.0, np.log(left), 0.0)
            inverse.append(found)
            mean.append(slope)
            residual.append(left)
            evidence.append(-0.5 * (determinant + np.maximum(count - 1.0, 0.0) * fit))
        return cls(
            count,
            middle,
            squares,
            np.stack(inverse),
            np.stack(mean),
            np.stack(residual),
            np.stack(evidence, axis=1),
        )

    def in_question(self, shares: Array, target: Array) -> tuple[Array, Array, Array]:
        """Return slopes (individual, regressor), degrees they took and the variance they add."""
        weight = _weights(self.evidence, shares).T
        weight[:, self.count < LEAST] = shares[:, None]
        mean = (weight[..., None] * self.mean).sum(axis=0)
        decided = np.einsum("viab,iab->vi", self.inverse, self.squares)
        away = target - self.middle
        spread = np.einsum("ia,viab,ib->vi", away, self.inverse, away)
        moved = (self.mean * away).sum(axis=2)
        between = (weight * (moved - (weight * moved).sum(axis=0)) ** 2).sum(axis=0)
        free = np.maximum(self.count - 1.0, 1.0)
        residual = (weight * self.residual).sum(axis=0) / free
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.where(residual > 0.0, between / residual, 0.0)
        return mean, (weight * decided).sum(axis=0), (weight * spread).sum(axis=0) + between


def _weights(evidence: Array, shares: Array) -> Array:
    """Return the probability of every prior variance, shape (individual, variance)."""
    log = evidence + np.log(shares)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _shares(evidence: Array) -> Array:
    """Return how common each prior variance is, by expectation and maximisation.

    One individual of each is seen beforehand.
    """
    shares = np.full(VARIANCES.size, 1.0 / VARIANCES.size)
    for _ in range(ROUNDS):
        seen = _weights(evidence, shares).sum(axis=0) + 1.0
        shares = seen / seen.sum()
    return shares


def _absent(present: Index, people: int, n: int) -> NDArray[np.bool_]:
    """Whether an individual is sometimes absent, and not always."""
    count = np.bincount(present // n, minlength=people)
    return np.asarray((count > 0) & (count < n))


def _spells(present: Index, people: int, n: int) -> Array:
    """Return by how much spells widen the variance of everybody's share of databases.

    By the autocorrelations of presence, drawn together as far as their own errors explain how they
    differ.
    """
    owner, place = np.divmod(present, n)

    def total(where: NDArray[np.bool_]) -> Array:
        return np.bincount(owner[where], minlength=people).astype(np.float64)

    count, first, last = total(place >= 0), total(place == 0), total(place == n - 1)
    again = np.append(np.diff(present) == 1, False) & (place < n - 1)
    mean = count / n
    product = total(again) - mean * (2.0 * count - first - last) + (n - 1) * mean**2
    square = count * (1.0 - mean)
    out = np.ones(people)
    some = (count >= LEAST) & (count < n)
    if not some.any():
        return out
    # one over n is the bias of independent presence
    alike = product[some] / square[some] + 1.0 / n
    common = alike.mean()
    between = max(float(alike.var()) - 1.0 / n, 0.0)
    alike = common + between / (between + 1.0 / n) * (alike - common)
    out[some] = _inflation(alike)
    return out


def _odds(cells: Index, everybody: int, n: int, x: Array, at: Array) -> tuple[float, Array]:
    """Return odds of presence at the database in question over those on average, and its course.

    By a regression of the log odds of presence, among individuals sometimes absent. The course is
    presence as fitted to each database over that on average, shape (n,).
    """
    some = _absent(cells, everybody, n)
    people = int(some.sum())
    if people == 0:
        return 1.0, np.ones(n)
    present = np.bincount(cells[some[cells // n]] % n, minlength=n).astype(np.float64)
    y = np.log(present + 0.5) - np.log(people - present + 0.5)
    centred = x - x.mean(axis=0)
    full, *_ = np.linalg.lstsq(centred, y - y.mean(), rcond=None)
    left = y - y.mean() - centred @ full
    noise = float((left**2).sum()) / max(n - 1 - x.shape[1], 1)
    middle = present.mean()
    noise = max(noise, 1.0 / (middle + 0.5) + 1.0 / (people - middle + 0.5))
    weighted = centred / (noise * float(_inflation(_autocorrelation(left))))
    precision = weighted.T @ centred + np.eye(x.shape[1]) / ACTIVITY**2
    slope = np.linalg.solve(precision, weighted.T @ (y - y.mean()))
    level = y.mean() - x.mean(axis=0) @ slope
    share = _share(level + x @ slope)
    usual = share.mean()
    return float(np.exp(level + at @ slope) * (1.0 - usual) / usual), share / usual


def _autocorrelation(residual: Array) -> Array:
    square = residual @ residual
    return np.asarray(residual[1:] @ residual[:-1] / square if square > 0.0 else 0.0)


def _inflation(autocorrelation: Array) -> Array:
    """Return by how much neighbours that are alike widen the variance of a mean or a slope."""
    alike = np.clip(autocorrelation, 0.0, MOST_ALIKE)
    return np.asarray((1.0 + alike) / (1.0 - alike))


def _share(log_odds: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))
