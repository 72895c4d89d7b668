"""Several responses given what an adversary knows: y_t = c + F (C' x_t + exp(gamma z_t) u_t).

u_t follows the joint density model; c is the mean of the responses and F F' the covariance of the
residuals of a linear regression. With the earlier answers to all queries among x_t it is a vector
autoregression. The risk does not depend on C' x*, where the database in question lies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.adversary.known import LAG, OTHER, Known
from edp_bayes.coupling.contributions.adjustment import adjust, regressed
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.models.conditional import DRAWN, Conditional, unused_transitions
from edp_bayes.models.regression import refuse_no_adversary, scores_of
from edp_bayes.models.smoothed_bootstrap import SmoothedBootstrap
from edp_bayes.models.stacking import Stacked
from edp_bayes.responses.dependence import Dependence, linear_dependence
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.models.base import DensityModel
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses

__all__ = ["JointInQuestion", "JointRegression", "fit_joint_given", "joint_regression_on"]


@dataclass(frozen=True, eq=False)
class JointRegression(Conditional):
    """Regressors, priors and units of several responses given what is known.

    Lags enter whitened by F, as the responses do, so that the prior, which is the same for lags of
    a query's own and of others, does not depend on the order of the queries.

    Attributes
    ----------
    known : Known
        What is known.
    dependence : Dependence
        What depends linearly given that, and which queries are kept.
    units : Units
        c and F, of the queries that are kept.
    """

    known: Known[JointResponses]
    dependence: Dependence
    units: Units

    @classmethod
    def of(cls, known: Known[JointResponses]) -> JointRegression:
        """Look for linear dependence, and take the units from least squares."""
        dependence = linear_dependence(known.responses, known.design)
        y = known.responses.response[:, list(dependence.kept)]
        full = np.column_stack([np.ones(len(y)), known.design])
        coefficients, *_ = np.linalg.lstsq(full, y, rcond=None)
        left = y - full @ coefficients
        free = (len(y) - 1.0) / (len(y) - np.linalg.matrix_rank(full))
        factor = Units.of(left).factor * np.sqrt(free)
        return cls(known, dependence, Units(y.mean(axis=0), factor))

    @cached_property
    def responses(self) -> JointResponses:
        """Responses of the queries that are kept, as they were."""
        return self.known.responses.of_queries(self.dependence.kept)

    @property
    def n_queries(self) -> int:
        """Number of queries that are kept."""
        return len(self.dependence.kept)

    @cached_property
    def whitened(self) -> NDArray[np.int64]:
        """Shape (lag, query kept): columns of x that are lags of the queries kept.

        All that a lag of another tells follows from what else is known, but for rounding.
        """
        lagged = self.known.lagged
        own = np.array([lagged.index(k) for k in self.dependence.kept], dtype=np.int64)
        return np.asarray(len(lagged) * np.arange(self.known.past)[:, None] + own)

    @cached_property
    def deviation(self) -> Array:
        """Prior standard deviation of every coefficient, the same for all responses."""
        found = np.full(len(self.known.regressors) + self.scaled, OTHER)
        found[self.whitened] = LAG
        return found

    @property
    def sample(self) -> Array:
        """The responses in these units, shape (n, query)."""
        return self.units.whiten(self.responses.response)

    @cached_property
    def mode(self) -> tuple[Array, float]:
        """Coefficients (coefficient, query) and gamma that are likeliest if u is normal."""
        return self.mode_of(self.sample)

    @property
    def place(self) -> Array:
        """Where the mean of the responses in question is put, in these units, shape (query,)."""
        beta, gamma = self.mode
        middle = self.residuals(beta, gamma).mean(axis=0)
        return np.asarray(self.target @ beta + self.growth(gamma) * middle)

    def residuals(self, beta: Array, gamma: Array | float) -> Array:
        """Return u of every response, (..., n, query), for coefficients (..., p, query)."""
        scale = np.exp(np.asarray(gamma)[..., None] * self.position)
        return np.asarray((self.sample - self.design @ beta) / scale[..., None])

    def modified(self, beta: Array, gamma: float) -> Array:
        """Return residuals as far spread as u, shape (n, query), for one beta and gamma.

        The prior and F are the same for all responses, and so is the leverage of a database.
        """
        u = self.residuals(beta, gamma)
        return np.asarray(u + (self.stretch(gamma)[:, None] - 1.0) * (u - u.mean(axis=0)))

    def adjusted(self, beta: Array, gamma: float) -> JointResponses:
        """Return responses as they would be in the database in question, given beta and gamma."""
        residuals = self.modified(beta, gamma)
        moved = (residuals - residuals.mean(axis=0)) * self.growth(gamma) + self.place
        response = self.units.centre + moved @ self.units.factor.T
        row = self.known.row if self.known.timed else None
        return adjust(self.responses, *self.predicting(gamma), response, row=row)

    def in_responses(self, beta: Array) -> Array:
        """Return coefficients (..., p, query) in the units of the responses and of `known`."""
        factor = self.units.factor
        found = beta @ factor.T
        for block in self.whitened:
            found[..., block, :] = np.linalg.inv(factor).T @ found[..., block, :]
        return np.asarray(found)

    def _in_units(self, x: Array) -> Array:
        x = x.copy()
        for block in self.whitened:
            x[:, block] = self.units.shrink(np.ascontiguousarray(x[:, block]))
        # a query that follows from what else is known has lags of no unit of their own
        for column in range(len(self.known.lagged) * self.known.past):
            if column not in self.whitened:
                x[:, column] /= self.known.regressors[column].values.std()
        return np.column_stack([x, np.ones(len(x))]) if self.known.scaled else x


def joint_regression_on(
    responses: JointResponses, adversary: Adversary | None, at: Any = None
) -> JointRegression | None:
    """Return what an adversary knows as a regression; None where there is no adversary."""
    refuse_no_adversary(adversary, at)
    return None if adversary is None else JointRegression.of(adversary.given(responses, at=at))


@dataclass(frozen=True, eq=False)
class JointInQuestion:
    """Draws of the responses' distribution in the database in question.

    Attributes
    ----------
    responses : JointResponses
        The responses as they would be in the database in question.
    middle : ndarray
        Shape (coefficient, query): the coefficients by which the responses are adjusted.
    coefficients : ndarray
        Shape (chain, draw, coefficient, query).
    growth : ndarray
        Shape (chain, draw): gamma.
    shift : ndarray
        Shape (chain, draw, query): how far every draw lies from the place of `responses`.
    scores : ndarray
        Shape (n, query): normal scores of the probability integral transform of the residuals.
    slopes_known : int
        As of `edp_bayes.models.regression.InQuestion`.
    """

    responses: JointResponses
    middle: Array
    coefficients: Array
    growth: Array
    shift: Array
    scores: Array
    slopes_known: int = 0

    def next_response(self, mixture: NormalMixture) -> NormalMixture:
        """Return the mixture with every draw at its own place."""
        return mixture._replace(locations=mixture.locations + self.shift[..., None, :])


def fit_joint_given(
    model: DensityModel, regression: JointRegression, settings: SamplerSettings
) -> FittedJoint:
    """Draw coefficients and gamma, and the density of the residuals at their posterior mean.

    As for one query: the mixtures are first drawn together with the coefficients, and the density
    again, given the residuals, modified by leverage, at the mean of these; of the smoothed
    bootstrap the coefficients have their normal posterior about the mode.
    """
    from edp_bayes.models.joint import draw_joint_given, fit_joint

    if isinstance(model, Stacked):
        from edp_bayes.models.joint_stacking import stack_joint

        fits = [fit_joint_given(one, regression, settings) for one in model.models]
        return stack_joint(model, fits, regression.responses, settings, regression)
    said: tuple[str, ...] = ()
    if isinstance(model, SmoothedBootstrap):
        middle, gamma = regression.mode
        shape = (settings.chains, settings.draws)
        normal = settings.generator("place").standard_normal((*shape, *middle.shape))
        coefficients = regression.drawn_about(middle, gamma, normal)
        growth = np.full(shape, gamma)
        moved = np.einsum("a,...ad->...d", regression.target, coefficients - middle)
    else:
        drawn, diverging = draw_joint_given(model, regression, settings)
        coefficients, growth = drawn.coefficients, drawn.growth
        said = unused_transitions(drawn.divergences, diverging)
        middle = coefficients.mean(axis=(0, 1))
        # every draw is put where its residuals are the responses
        means = regression.residuals(coefficients, growth).mean(axis=-2)
        there = np.einsum("a,...ad->...d", regression.target, coefficients)
        moved = there + regression.growth(growth)[..., None] * means - regression.place
    gamma = float(growth.mean())
    responses = regression.adjusted(middle, gamma)
    alone = settings.starting_without(DRAWN)
    fitted = fit_joint(model, responses, regression.dependence, alone)
    each = np.broadcast_to(responses.response, (*growth.shape, *responses.response.shape))
    scores = [
        scores_of(_of_query(fitted.mixture, a), each[..., [a]]) for a in range(regression.n_queries)
    ]
    factor = regression.growth(growth - gamma)
    stretched = float(np.ptp(factor)) > 0.0
    # the densities are those of the responses in question, at another scale than their own
    scale = np.log(regression.growth(gamma)) - gamma * regression.position
    scale = regression.n_queries * scale
    return replace(
        fitted,
        mixture=_stretched(fitted.mixture, responses.response.mean(axis=0), factor)
        if stretched
        else fitted.mixture,
        coupling=_stretched_coupling(fitted.coupling, factor.ravel())
        if stretched
        else fitted.coupling,
        log_likelihood=fitted.log_likelihood + scale,
        predictive=None if fitted.predictive is None else fitted.predictive + scale,
        warnings=(*fitted.warnings, *said),
        in_question=JointInQuestion(
            responses=responses,
            middle=middle,
            coefficients=coefficients,
            growth=growth,
            shift=moved @ regression.units.factor.T,
            scores=np.stack(scores, axis=1),
            slopes_known=0 if fitted.pooled else regressed(responses),
        ),
    )


def _of_query(mixture: NormalMixture, query: int) -> Mixture:
    direction = np.zeros(mixture.dimensions)
    direction[query] = 1.0
    return mixture.along(direction)


def _stretched(mixture: NormalMixture, place: Array, factor: Array) -> NormalMixture:
    """Return every draw scaled about a place."""
    scale = factor[..., None, None]
    return NormalMixture(
        mixture.weights,
        place + scale * (mixture.locations - place),
        scale[..., None] ** 2 * mixture.covariances,
    )


def _stretched_coupling(coupling: JointCoupling, factor: Array) -> JointCoupling:
    """Return a coupling with every draw scaled; individuals contribute what they did."""
    responses, units = coupling.responses, coupling.units
    found = responses.entries
    lost = found.total(units.shrink(found.value)) / responses.n_databases
    without = {i: _stretched(mixture, -lost[i], factor) for i, mixture in coupling.without.items()}
    origin = np.zeros(coupling.mixture.dimensions)
    return replace(coupling, mixture=_stretched(coupling.mixture, origin, factor), without=without)
