"""What a regression on what an adversary knows is, of one query or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from edp_bayes.adversary.known import LAG, OTHER, TREND, Explained
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import Sentence

__all__ = ["DRAWN", "GROWTH", "Conditional", "Given", "given_of", "unused_transitions"]

# Prior standard deviation of gamma, and how far its mode is looked for.
GROWTH, FARTHEST = 0.7, 3.0
# Variables of a PyMC model that are of the regression alone.
DRAWN = ("coefficients", "growth")
LEAST_GROWTH = 1e-6
MOST_LEVERAGE = 0.9


class Conditional(ABC):
    """What of a regression does not depend on how many queries there are."""

    known: Explained

    @property
    @abstractmethod
    def mode(self) -> tuple[Array, float]:
        """Coefficients and gamma that are likeliest if u is standard normal."""

    @property
    def record(self) -> dict[str, Any]:
        """What to say of the adversary in the settings of a result."""
        known = self.known
        return {
            "against": known.against,
            "at": "the next database" if known.at is None else _name(known.at),
            "known": [*known.names, *(["changing scale"] if known.scaled else [])],
            "insiders": len(known.insiders),
            **self._as_published,
            **({"not_assessed": len(known.unassessed)} if known.unassessed else {}),
        }

    @property
    def _as_published(self) -> dict[str, Any]:
        """What was published of the last releases, and who sees it of later ones."""
        known = self.known
        if not known.past_published:
            return {}
        return {
            "past_published": known.past_published,
            "last_published": list(known.last_published),
            "against_later": known.against_later,
        }

    @property
    def terms(self) -> list[str]:
        """Name of every coefficient."""
        return [*self.known.names, *(["intercept"] if self.known.scaled else [])]

    @cached_property
    def design(self) -> Array:
        """Shape (n, coefficient): x_t in the units of the coefficients.

        Where the scale changes the last column is an intercept.
        """
        return self._in_units(self.known.design)

    @cached_property
    def target(self) -> Array:
        """Shape (coefficient,): x* in the same units."""
        return np.asarray(self._in_units(self.known.target[None])[0])

    @cached_property
    def deviation(self) -> Array:
        """Prior standard deviation of every coefficient, shape (coefficient,)."""
        own = [LAG if part.lag else OTHER for part in self.known.regressors]
        return np.array([*own, *([OTHER] if self.known.scaled else [])])

    @property
    def scaled(self) -> bool:
        """Whether gamma is other than zero."""
        return self.known.scaled

    @property
    def growth_deviation(self) -> float:
        """Prior standard deviation of gamma; 0 where the scale does not change."""
        return GROWTH if self.scaled else 0.0

    @property
    def position(self) -> Array:
        """z_t, shape (n,); zero where the scale does not change."""
        return self.known.position if self.scaled else np.zeros_like(self.known.position)

    def growth(self, gamma: Array | float) -> Array:
        """Return the scale of the database in question, exp(gamma z*)."""
        at = self.known.target_position if self.scaled else 0.0
        return np.exp(np.asarray(gamma) * at)

    def mode_of(self, y: Array) -> tuple[Array, float]:
        """Return coefficients and gamma that are likeliest if u is standard normal.

        Of responses (n, query) in these units, coefficients (coefficient, query).
        """
        from scipy.optimize import minimize_scalar

        precision = np.diag(self.deviation**-2.0)

        def at(gamma: float) -> tuple[Array, float]:
            scale = np.exp(gamma * self.position)[:, None]
            x, left = self.design / scale, y / scale
            beta = np.linalg.solve(precision + x.T @ x, x.T @ left)
            loss = 0.5 * float(((left - x @ beta) ** 2).sum() + (beta * (precision @ beta)).sum())
            loss += gamma * y.shape[1] * float(self.position.sum()) + 0.5 * (gamma / GROWTH) ** 2
            return beta, loss

        if not self.scaled:
            return at(0.0)[0], 0.0
        best = minimize_scalar(
            lambda gamma: at(gamma)[1], bounds=(-FARTHEST, FARTHEST), method="bounded"
        )
        return at(float(best.x))[0], float(best.x)

    def stretch(self, gamma: float) -> Array:
        """Return by how much residuals of a fit are too small, shape (n,).

        Those of a fit lie too near: at a database of leverage h their variance is 1 - h of that of
        u. Davison and Hinkley (1997), Bootstrap Methods and their Application, Section 6.2.
        """
        n = self.position.size
        level = np.ones((n, 0 if self.scaled else 1))
        x = np.column_stack([self.design, level]) / np.exp(gamma * self.position)[:, None]
        prior = np.zeros(x.shape[1])
        prior[: self.deviation.size] = self.deviation**-2.0
        leverage = np.einsum("ta,at->t", x, np.linalg.solve(np.diag(prior) + x.T @ x, x.T))
        # the mean alone has a leverage of 1 / n, which is no part of what is known
        share = (1.0 - 1.0 / n) / (1.0 - np.minimum(leverage, MOST_LEVERAGE))
        return np.asarray(np.sqrt(share))

    def predicting(self, gamma: float) -> tuple[Array, Array]:
        """Return what predicts contributions, and that of the database in question.

        Where the scale changes contributions may grow with it, in the place of the trend. It is
        exp(gamma z), linear in z where gamma is zero.
        """
        known = self.known
        if not self.scaled:
            return known.design, known.target
        others = [name != TREND for name in known.names]
        rate = gamma if abs(gamma) > LEAST_GROWTH else LEAST_GROWTH
        scale = np.expm1(rate * known.position) / rate
        in_question = np.expm1(rate * known.target_position) / rate
        design = np.column_stack([known.design[:, others], scale - scale.mean()])
        return design, np.append(known.target[others], in_question - scale.mean())

    def drawn_about(self, mode: Array, gamma: float, normal: Array) -> Array:
        """Return normal draws of coefficients about their mode.

        With the normal posterior if u is standard normal; of standard normal numbers and a mode
        (coefficient, ...), draws in front.
        """
        x = self.design / np.exp(gamma * self.position)[:, None]
        factor = np.linalg.cholesky(np.diag(self.deviation**-2.0) + x.T @ x)
        return np.asarray(mode + np.linalg.solve(factor.T, normal))

    @abstractmethod
    def _in_units(self, x: Array) -> Array:
        """Return regressors in the units of the coefficients."""


class Given(NamedTuple):
    """What is known of every database, for compiled code.

    Attributes
    ----------
    design : ndarray
        Shape (n, coefficient).
    precision : ndarray
        Shape (coefficient,): prior precision, the same for every query.
    start : ndarray
        Shape (coefficient,), or (coefficient, query) of several queries: where the chain starts.
    position : ndarray
        Shape (n,): z.
    growth : float
        Where gamma starts.
    deviation : float
        Prior standard deviation of gamma; 0 where it is zero.
    """

    design: Array
    precision: Array
    start: Array
    position: Array
    growth: float
    deviation: float


def given_of(regression: Conditional | None, n: int, *queries: int) -> Given:
    """Return what is known for compiled code; nothing without a regression."""
    if regression is None:
        nothing = np.empty((0, *queries))
        return Given(np.empty((n, 0)), np.empty(0), nothing, np.zeros(n), 0.0, 0.0)
    beta, gamma = regression.mode
    return Given(
        np.ascontiguousarray(regression.design),
        regression.deviation**-2.0,
        np.ascontiguousarray(beta),
        np.ascontiguousarray(regression.position),
        gamma,
        regression.growth_deviation,
    )


def unused_transitions(count: int, advice: str) -> tuple[Sentence, ...]:
    """Say that transitions diverged in a fit of which the coefficients alone are kept."""
    if not count:
        return ()
    return (Sentence(f"{count} divergent transitions while coefficients were drawn: {advice}"),)


def _name(database: Any) -> str:
    """Return the label of a database as it stands in a sentence."""
    time = isinstance(database, np.datetime64 | date)
    return labels.show(database) if time else labels.as_text(database)
