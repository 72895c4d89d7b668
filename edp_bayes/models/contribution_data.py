"""What of the data the PyMC model of contributions holds, and the units it has them in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.adversary.known import TREND
from edp_bayes.coupling.contributions.adjustment import standardised
from edp_bayes.coupling.contributions.dominance import dominant_individuals
from edp_bayes.coupling.contributions.posterior import INDEPENDENCE_WEIGHT, Statistics
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base_measure import Standardisation
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["Held"]

MOST = 2000  # individuals
LARGE = 0.5  # standard deviations of the response, of who makes components of their own
SCALE = "scale"  # name of what predicts contributions where the spread changes


@dataclass(frozen=True, eq=False)
class Held:
    """Records of who was there, constants of the model, and what predicts contributions.

    Given a regression, units and constants are those of the responses at the database in question,
    as the mode of the regression has them; see `edp_bayes.coupling.contributions.adjustment`.

    Attributes
    ----------
    responses : Responses
        One response a database, on the scale that is modelled; contributions as they were.
    regression : Regression or None
        Of the responses, on what an adversary knows.
    in_question : Responses
        The same at the database in question.
    predictors, target : ndarray
        Shapes (n, predictor) and (predictor,): what predicts contributions and presence, of mean
        zero and unit standard deviation, and that of the database in question.
    """

    responses: Responses
    regression: Regression | None
    in_question: Responses
    predictors: Array
    target: Array

    @classmethod
    def of(cls, responses: Responses, regression: Regression | None = None) -> Held:
        """Take what a model needs; refuse what it has no likelihood for.

        Raises
        ------
        InvalidInputError
            If there are several samples of a response, more than 2,000 individuals, or
            contributions that were not collected.
        """
        _refuse(responses)
        if regression is None:
            nothing = np.empty((responses.n_databases, 0))
            return cls(responses, None, responses, nothing, np.empty(0))
        x, target = standardised(*regression.predicting(regression.mode[1]))
        middle = x.mean(axis=0)
        in_question = regression.adjusted(*regression.mode)
        return cls(responses, regression, in_question, x - middle, target - middle)

    @cached_property
    def units(self) -> Standardisation:
        """Mean and standard deviation of the responses."""
        return Standardisation.of(self.in_question.response)

    @cached_property
    def dominant(self) -> Index:
        """Whose presence does not depend on the component.

        See `edp_bayes.coupling.contributions.dominance`.
        """
        return dominant_individuals(self.in_question)

    @property
    def database(self) -> Index:
        """Database of every record, shape (record,)."""
        return self.responses.collected.indices.astype(np.int64)

    @property
    def owner(self) -> Index:
        """Individual of every record, shape (record,)."""
        return self.responses.owner

    @property
    def contribution(self) -> Array:
        """Contribution of every record, shape (record,)."""
        return np.asarray(self.responses.collected.data)

    @cached_property
    def present(self) -> Index:
        """One where an individual was there, otherwise zero, shape (n, m)."""
        out = np.zeros((self.responses.n_databases, self.responses.n_individuals), dtype=np.int64)
        out[self.database, self.owner] = 1
        return out

    @cached_property
    def sometimes(self) -> Index:
        """Who is sometimes absent."""
        return np.flatnonzero(~self.present.all(axis=0))

    @cached_property
    def large(self) -> Index:
        """Who of them makes components of their own, dominant individuals apart."""
        big = np.flatnonzero(self._statistics.size > LARGE * self.units.spread)
        return np.setdiff1d(np.intersect1d(big, self.sometimes), self.dominant)

    @property
    def sign(self) -> Array:
        """Sign of the sum of what everybody contributed, shape (m,)."""
        return np.where(self._statistics.contribution < 0.0, -1.0, 1.0)

    @property
    def centre(self) -> Array:
        """Mean response without each individual, standardised, shape (m,)."""
        return (self._statistics.centre - self.units.centre) / self.units.spread

    @property
    def steep(self) -> Array:
        """Weight, as a root, of a contribution that does not depend on the rest, shape (m,)."""
        variance = INDEPENDENCE_WEIGHT * self._statistics.rest_variance
        return np.asarray(np.sqrt(variance) / self.units.spread)

    @property
    def timed(self) -> bool:
        """Whether databases follow each other, so that presence may depend on that before."""
        return self.regression is not None and self.regression.known.timed

    @cached_property
    def before(self) -> Array:
        """Presence in the database before, less its share, shape (n + 1, m): the next one last.

        What was before the first database is not known: zero.
        """
        there = self.present - self.present.mean(axis=0)
        return np.vstack([np.zeros(there.shape[1]), there])

    @property
    def before_in_question(self) -> Array:
        """The same of the database in question, shape (m,)."""
        assert self.regression is not None
        return np.asarray(self.before[self.regression.known.row])

    @property
    def predictor(self) -> list[str]:
        """Name of what predicts contributions and presence."""
        if self.regression is None:
            return []
        known = self.regression.known
        if not self.regression.scaled:
            return list(known.names)
        return [*(name for name in known.names if name != TREND), SCALE]

    @cached_property
    def _statistics(self) -> Statistics:
        return Statistics.of(self.in_question)


def _refuse(responses: Responses) -> None:
    """Refuse what there is no likelihood for."""
    if responses.samples > 1:
        raise InvalidInputError(
            "FullPosterior takes one response a database, found "
            f"{responses.samples} samples: take DirichletProcessMixture()"
        )
    if responses.n_individuals > MOST:
        raise InvalidInputError(
            f"FullPosterior is for at most {MOST:,} individuals, found "
            f"{responses.n_individuals:,}: take DirichletProcessMixture()"
        )
    if responses.remainder is not None:
        raise InvalidInputError(
            "FullPosterior needs the contributions of all individuals, and those of "
            f"{responses.reduced.sum()} were not collected: collect them, or take "
            "DirichletProcessMixture()"
        )
