"""One number for an outcome of several columns, learned on a part of the samples.

Any function of the outcome is post-processing: it cannot raise delta, and what is found through
it is a lower bound for the mechanism itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edp_bayes.black_box.logistic import ridge_logistic
from edp_bayes.black_box.outcomes import Outcomes
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["Statistic", "apply_statistic", "learn"]

STEPS = 12
RIDGE = 1e-3
GROUPS = 24
LEAST = 40
# Coefficients within so many standard errors of zero are left out.
CLEAR = 3.0
REACH = 4.0


@dataclass(frozen=True, eq=False)
class Statistic:
    """A linear or quadratic form of the columns.

    Attributes
    ----------
    name : str
        What it is, in words.
    centre, scale : ndarray
        Shape (column,): medians and quartile distances of the columns.
    linear : ndarray
        Shape (column,).
    quadratic : ndarray
        Shape (column,): weights of the squares.
    """

    name: str
    centre: Array
    scale: Array
    linear: Array
    quadratic: Array

    def __call__(self, rows: Array) -> Array:
        """Return the statistic of rows (size, column), shape (size,)."""
        z = (rows - self.centre) / self.scale
        return np.asarray(z @ self.linear + z**2 @ self.quadratic)


def learn(outcomes: Outcomes, rng: np.random.Generator) -> tuple[Statistic, Outcomes]:
    """Learn a statistic on half of each sample; return it and the other half.

    Candidates are every column alone, a logistic regression on all columns with the unclear
    coefficients left out, and one with squares too. They are fitted on a quarter of the samples;
    the one that tells the two samples apart best on a second quarter is taken, a simpler one where
    it is as good.

    Raises
    ------
    InvalidInputError
        If a sample has fewer than 40 outcomes.
    """
    if min(outcomes.sizes) < LEAST:
        raise InvalidInputError(
            f"a statistic of several columns needs at least {LEAST} outcomes a side to be learned, "
            f"found {min(outcomes.sizes)}; state one by statistic=..."
        )
    parts = [
        np.array_split(x[rng.permutation(len(x))], [len(x) // 4, len(x) // 2])
        for x in (outcomes.first, outcomes.second)
    ]
    fit, judge, rest = ((a, b) for a, b in zip(*parts, strict=True))
    candidates = _candidates(*fit)
    scores = [_score(c(judge[0]), c(judge[1])) for c in candidates]
    best = int(np.argmax(scores))
    chosen = next(
        c for c, score in zip(candidates, scores, strict=True) if score >= 0.97 * scores[best]
    )
    return chosen, Outcomes(*rest, kind=outcomes.kind)


def apply_statistic(statistic: Callable[[Array], Array], rows: Array) -> Array:
    """Return a stated statistic of rows (size, column), checked.

    Raises
    ------
    InvalidInputError
        If it fails or does not return one finite number for each row.
    """
    try:
        values = np.asarray(statistic(rows), dtype=np.float64)
    except Exception as error:
        raise InvalidInputError(
            f"statistic must return a number for each outcome, but failed: {error!r}"
        ) from error
    if values.shape != (len(rows),) or not np.isfinite(values).all():
        raise InvalidInputError(
            f"statistic must return {len(rows)} finite numbers for {len(rows)} outcomes, found "
            f"shape {values.shape}"
        )
    return values


def _candidates(first: Array, second: Array) -> list[Statistic]:
    """Return the columns, then the regressions: from simple to complex."""
    pooled = np.concatenate([first, second])
    centre = np.median(pooled, axis=0)
    low, high = np.quantile(pooled, [0.25, 0.75], axis=0)
    scale = np.where(high > low, high - low, 1.0)
    columns = pooled.shape[1]
    nothing = np.zeros(columns)
    found = [
        Statistic(f"column {k}", centre, scale, np.eye(columns)[k], nothing) for k in range(columns)
    ]
    z = np.clip((pooled - centre) / scale, -REACH, REACH)
    label = np.r_[np.ones(len(first)), np.zeros(len(second))]
    linear = _regression(z, label)
    found.append(Statistic("logistic regression", centre, scale, linear, nothing))
    both = _regression(np.column_stack([z, z**2]), label)
    found.append(
        Statistic("logistic regression with squares", centre, scale, both[:columns], both[columns:])
    )
    return [s for s in found if np.any(s.linear) or np.any(s.quadratic)]


def _regression(features: Array, label: Array) -> Array:
    """Return the coefficients of a ridge logistic regression, those that are unclear as 0."""
    kept = np.ones(features.shape[1], dtype=bool)
    weights = np.zeros(features.shape[1])
    for _ in range(2):
        design = np.column_stack([np.ones(len(label)), features[:, kept]])
        found, information = ridge_logistic(
            design, label, np.ones(len(label)), offset=0.0, ridge=RIDGE, steps=STEPS
        )
        error = np.sqrt(np.diag(np.linalg.inv(information)))[1:]
        weights = np.zeros(features.shape[1])
        weights[kept] = found[1:]
        clear = np.abs(found[1:]) > CLEAR * error
        if clear.all() or not clear.any():
            break
        kept[kept] = clear
    return weights


def _score(first: Array, second: Array) -> float:
    """Return the Jensen-Shannon divergence of two samples over pooled quantiles."""
    edges = np.quantile(np.concatenate([first, second]), np.linspace(0, 1, GROUPS + 1)[1:-1])
    a, b = (
        np.bincount(np.searchsorted(edges, side), minlength=GROUPS) / side.size
        for side in (first, second)
    )
    middle = 0.5 * (a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(side > 0, side * np.log(side / middle), 0.0).sum() for side in (a, b)]
    return float(0.5 * sum(parts))
