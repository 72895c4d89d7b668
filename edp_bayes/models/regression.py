"""The response given what an adversary knows: y_t = c + s (x_t' beta + exp(gamma z_t) u_t).

u_t follows the density model; c and s are the mean and the standard deviation of the residuals of a
linear regression. The risk does not depend on x*' beta, where the database in question lies, so the
density model's mixture is taken to the scale of the database in question, and the responses, their
residuals and contributions are adjusted to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.adversary.known import Known, Regressor, explained
from edp_bayes.coupling.contributions.adjustment import adjust, regressed
from edp_bayes.distributions import kernels
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base_measure import Standardisation
from edp_bayes.models.conditional import DRAWN, Conditional, unused_transitions
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.base import DensityModel, FittedModel
    from edp_bayes.models.coupled import CoupledMixture
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.responses import Responses

__all__ = [
    "SHIFT",
    "InQuestion",
    "Regression",
    "refuse_no_adversary",
    "regression_on",
    "restored",
    "scores_of",
    "stretched",
]

# Name of the draws of `InQuestion.shift` in a trace, whose density is that of the responses in
# question, not that of residuals.
SHIFT = "shift"
LEAST_SCORE = 1e-6  # probabilities nearer to 0 or 1 are taken as this


@dataclass(frozen=True, eq=False)
class Regression(Conditional):
    """Regressors, priors and units of the response given what is known.

    Attributes
    ----------
    known : Known
        What is known.
    units : Standardisation
        c and s.
    """

    known: Known[Responses]
    units: Standardisation

    @classmethod
    def of(cls, known: Known[Responses]) -> Regression:
        """Take the units from least squares."""
        y = known.responses.response_by_database.mean(axis=1)
        full = np.column_stack([np.ones(y.size), known.design])
        coefficients, *_ = np.linalg.lstsq(full, y, rcond=None)
        left = ((y - full @ coefficients) ** 2).sum() / (y.size - full.shape[1])
        return cls(known, Standardisation(float(y.mean()), float(np.sqrt(left))))

    @property
    def sample(self) -> Array:
        """The responses in these units, shape (n, samples)."""
        y = self.known.responses.response_by_database
        return (y - self.units.centre) / self.units.spread

    @property
    def half_step(self) -> Array | None:
        """Half the widths of the bins of rounded responses in these units, shape (n,)."""
        half = self.known.responses.half_step
        return None if half is None else half / self.units.spread

    @cached_property
    def mode(self) -> tuple[Array, float]:
        """Coefficients and gamma that are likeliest if u is standard normal."""
        beta, gamma = self.mode_of(self.sample.mean(axis=1, keepdims=True))
        return beta[:, 0], gamma

    @property
    def place(self) -> float:
        """Where the mean of the responses in question is put, as the mode has it, in these units.

        It is the same for all models, so that their densities can be put together.
        """
        beta, gamma = self.mode
        return float(self.target @ beta + self.growth(gamma) * self.residuals(beta, gamma).mean())

    def residuals(self, beta: Array, gamma: Array | float) -> Array:
        """Return u of every response, shape (..., n, samples), for coefficients (..., p)."""
        fitted = np.asarray(beta) @ self.design.T
        scale = np.exp(np.asarray(gamma)[..., None] * self.position)
        return np.asarray((self.sample - fitted[..., None]) / scale[..., None])

    def modified(self, beta: Array, gamma: float) -> Array:
        """Return residuals as far spread as u, shape (n, samples), for one beta and gamma."""
        u = self.residuals(beta, gamma)
        away = u.mean(axis=1, keepdims=True) - u.mean()
        return np.asarray(u + (self.stretch(gamma)[:, None] - 1.0) * away)

    def adjusted(self, beta: Array, gamma: float) -> Responses:
        """Return responses as they would be at the database in question, given beta and gamma."""
        units = self.units
        residuals = self.modified(beta, gamma)
        moved = (residuals - residuals.mean()) * self.growth(gamma) + self.place
        response = (units.centre + units.spread * moved).ravel()
        half = self.known.responses.half_step
        if half is not None:
            half = half * self.stretch(gamma) * self.growth(gamma) / np.exp(gamma * self.position)
        return adjust(
            self.known.responses,
            *self.predicting(gamma),
            response,
            row=self.known.row if self.known.timed else None,
            half_step=half,
        )

    def next_of(self, u: Mixture, beta: Array, gamma: Array) -> Mixture:
        """Return the response in the database in question, whatever the responses were.

        Parameters
        ----------
        u : Mixture
            Shape (chain, draw, component), in units of one.
        beta, gamma : ndarray
            Shapes (chain, draw, coefficient) and (chain, draw).
        """
        scale = self.growth(gamma)[..., None]
        place = (beta @ self.target)[..., None] + scale * u.locations
        units = self.units
        return Mixture(
            u.weights, units.centre + units.spread * place, units.spread * scale * u.scales,
            kernel=u.kernel,
        )  # fmt: skip

    def in_question(self, posterior: xr.Dataset) -> Responses:
        """Return the responses that the second density of a posterior is of: see `refined`."""
        from edp_bayes.models.base import regression_draws

        coefficients, growth = regression_draws(posterior, self)
        return self.adjusted(coefficients.mean(axis=(0, 1)), float(growth.mean()))

    def fitted_to_residuals(self, model: DensityModel, settings: SamplerSettings) -> FittedModel:
        """Fit a model that knows of no regression to the residuals at the mode.

        The place of the next response has the coefficients' normal posterior about the mode.
        """
        beta, gamma = self.mode
        shape = (settings.chains, settings.draws)
        normal = settings.generator("place").standard_normal((*shape, beta.size, 1))
        coefficients = self.drawn_about(beta[:, None], gamma, normal)[..., 0]
        shift = self.units.spread * ((coefficients - beta) @ self.target)
        growth = np.full(shape, gamma)
        return self._with_density(model, settings, beta, coefficients, growth, shift)

    def refined(
        self, model: DensityModel, joint: FittedModel, settings: SamplerSettings
    ) -> FittedModel:
        """Fit the density again, to the residuals at the posterior mean of the coefficients.

        In a joint fit every draw has residuals of its own, and the density follows them: its bands
        are wider than what is unknown of u. Here coefficients and gamma are those of the joint fit.
        """
        question = joint.in_question
        assert question is not None
        fitted = self._with_density(
            model, settings, question.middle, question.coefficients, question.growth, question.shift
        )
        said = unused_transitions(joint.divergences, joint.diverging)
        parameters = fitted.parameters
        if parameters is not None and fitted.in_question is not None:
            parameters = parameters.assign(fitted.in_question.of_regression(self))
        return replace(fitted, parameters=parameters, warnings=(*fitted.warnings, *said))

    def _with_density(
        self,
        model: DensityModel,
        settings: SamplerSettings,
        middle: Array,
        coefficients: Array,
        growth: Array,
        shift: Array,
    ) -> FittedModel:
        """Fit a model to the residuals at one place, and take its draws to the scale of each."""
        from edp_bayes.models.coupled import CoupledMixture

        responses = self.adjusted(middle, float(growth.mean()))
        fitted = model.fit(responses, settings.starting_without(DRAWN))
        drawn = self.taken_to_scale(
            CoupledMixture(fitted.mixture, fitted.coupling, responses),
            fitted.log_likelihood,
            middle=middle,
            coefficients=coefficients,
            growth=growth,
            shift=shift,
            seed=settings.random_seed or 0,
        )
        assert drawn.in_question is not None
        predictive = fitted.predictive
        return replace(
            fitted,
            mixture=drawn.mixture,
            coupling=drawn.coupling,
            in_question=drawn.in_question,
            log_likelihood=drawn.in_question.log_likelihood,
            predictive=None if predictive is None else predictive + self._moved(growth),
        )

    def taken_to_scale(
        self,
        drawn: CoupledMixture,
        log_likelihood: Array,
        *,
        middle: Array,
        coefficients: Array,
        growth: Array,
        shift: Array,
        seed: int,
    ) -> CoupledMixture:
        """Return draws of the density of the responses in question, each at the scale of its gamma.

        Parameters
        ----------
        drawn : CoupledMixture
            Of responses that are `adjusted` at middle and the mean of gamma.
        log_likelihood : ndarray
            Shape (chain, draw, database), of these responses.
        middle, coefficients, growth, shift : ndarray
            As of `InQuestion`.
        seed : int
            Of the contributions.
        """
        from edp_bayes.coupling.regression import RegressionCoupling

        responses, coupling = drawn.responses, drawn.coupling
        residuals = responses.response_by_database
        if np.ptp(growth) > 0.0:
            factor = self.growth(growth - float(growth.mean()))
            coupling = _stretched(coupling, responses, factor, seed)
        in_question = InQuestion(
            mixture=coupling.mixture,
            responses=responses,
            middle=middle,
            coefficients=coefficients,
            growth=growth,
            shift=shift,
            log_likelihood=log_likelihood + self._moved(growth),
            scores=scores_of(
                drawn.mixture,
                np.broadcast_to(residuals, (*growth.shape, *residuals.shape)),
                responses.half_step,
            ),
            slopes_known=0
            if isinstance(drawn.coupling, RegressionCoupling)
            else regressed(responses),
        )
        return replace(drawn, mixture=coupling.mixture, coupling=coupling, in_question=in_question)

    def _moved(self, growth: Array) -> Array:
        """Return what takes log densities of responses in question to their own scale, (n,)."""
        gamma = float(growth.mean())
        return np.asarray(np.log(self.growth(gamma)) - gamma * self.position)

    def _in_units(self, x: Array) -> Array:
        lag = np.array([part.lag for part in self.known.regressors], dtype=bool)
        x = np.where(lag, x / self.units.spread, x)
        return np.column_stack([x, np.ones(len(x))]) if self.known.scaled else x


def stretched(mixture: Mixture, factor: Array, place: float) -> Mixture:
    """Return draws each scaled about a place by a factor of its own, shape (chain, draw)."""
    scale = factor[..., None]
    located = place + scale * (mixture.locations - place)
    return Mixture(mixture.weights, located, scale * mixture.scales, kernel=mixture.kernel)


def _stretched(coupling: Coupling, responses: Responses, factor: Array, seed: int) -> Coupling:
    """Return a mixture model's coupling with every draw scaled about the mean of the responses.

    Individuals contribute what they did.
    """
    from edp_bayes.coupling.regression import RegressionCoupling

    y = responses.response
    without = {
        i: stretched(
            mixture, factor, float(y.mean() - responses.contribution[:, [i]].sum() / y.size)
        )
        for i, mixture in getattr(coupling, "without", {}).items()
    }
    mixture = stretched(coupling.mixture, factor, float(y.mean()))
    return RegressionCoupling.fit(mixture, responses, seed, without)


def regression_on(
    responses: Responses, adversary: Adversary | None, at: Any = None
) -> Regression | None:
    """Return what an adversary knows as a regression; None where there is no adversary."""
    refuse_no_adversary(adversary, at)
    return None if adversary is None else Regression.of(adversary.given(responses, at=at))


def refuse_no_adversary(adversary: Adversary | None, at: Any) -> None:
    """Refuse a database in question of nobody, and what is no adversary."""
    if adversary is None:
        if at is not None:
            raise InvalidInputError(
                "at is the database in question of an adversary: give adversary=, too"
            )
    elif not isinstance(adversary, Adversary):
        raise InputTypeError(
            f"adversary must be an Adversary, such as Adversary(past=2), found {adversary!r}"
        )


def restored(group: xr.Dataset, responses: Responses) -> tuple[Regression, Array, float, Array]:
    """Return the regression of a saved audit, its beta, its posterior mean of gamma, and shifts.

    Parameters
    ----------
    group : Dataset
        The group `known` of an audit.
    responses : Responses
        All responses, as they were released.
    """
    units = Standardisation(float(group.attrs["centre"]), float(group.attrs["spread"]))
    scaled = bool(group.attrs["scaled"])
    names = [str(name) for name in group["term"].to_numpy()]
    design, target = group["design"].to_numpy(), group["target"].to_numpy()
    regressors = []
    for column, name in enumerate(names[:-1] if scaled else names):
        lag = column < int(group.attrs["past"])
        unit = units.spread if lag else 1.0
        values = design[:, column] * unit
        regressors.append(Regressor(name, values, float(target[column]) * unit, lag))
    insiders = tuple(responses.individual[json.loads(group.attrs["insiders"])].tolist())
    rows = np.arange(responses.n_databases - len(design), responses.n_databases)
    rest = explained(responses, rows, insiders)
    known = Known(
        responses=rest.on_scale,
        log_slope=rest.log_slope,
        regressors=tuple(regressors),
        position=group["position"].to_numpy(),
        target_position=float(group.attrs["target_position"]),
        scaled=scaled,
        against="",
        at=_at(group, responses),
        warnings=(),
        insiders=insiders,
    )
    gamma, shift = (
        group[name].transpose("chain", "draw").to_numpy() for name in ("growth", "shift")
    )
    return (
        Regression(known, units),
        group["middle"].to_numpy(),
        float(gamma.mean()),
        shift[..., None],
    )


def _at(group: xr.Dataset, responses: Responses) -> Any:
    """Return the database in question of a saved audit, None for the next one."""
    first = responses.n_databases - group["position"].size
    row = int(group.attrs.get("row", group["position"].size))
    return None if row == group["position"].size else responses.database[first + row]


@dataclass(frozen=True, eq=False)
class InQuestion:
    """Draws of the response's distribution in the database in question.

    Attributes
    ----------
    mixture : Mixture
        Shape (chain, draw, component): with all draws at the same place, that of `responses`.
    responses : Responses
        The responses as they would be in the database in question.
    middle : ndarray
        Shape (coefficient,): the coefficients by which the responses are adjusted.
    coefficients : ndarray
        Shape (chain, draw, coefficient).
    growth : ndarray
        Shape (chain, draw): gamma.
    shift : ndarray
        Shape (chain, draw): how far every draw lies from that place.
    log_likelihood : ndarray
        Shape (chain, draw, database).
    scores : ndarray
        Shape (n,): normal scores of the probability integral transform of the residuals.
    slopes_known : int
        Of how many individuals contributions were adjusted by slopes that the model takes for
        known, though they are not.
    """

    mixture: Mixture
    responses: Responses
    middle: Array
    coefficients: Array
    growth: Array
    shift: Array
    log_likelihood: Array
    scores: Array
    slopes_known: int = 0

    @classmethod
    def of(cls, regression: Regression, u: Mixture, beta: Array, gamma: Array) -> InQuestion:
        """Take draws of the density of u, of beta and of gamma to the database in question.

        Parameters
        ----------
        regression : Regression
            Units and regressors.
        u : Mixture
            Shape (chain, draw, component), in units of one.
        beta, gamma : ndarray
            Shapes (chain, draw, coefficient) and (chain, draw).
        """
        from edp_bayes.models.base import log_bin_densities, log_densities

        units = regression.units
        middle = beta.mean(axis=(0, 1))
        responses = regression.adjusted(middle, float(gamma.mean()))
        residuals, growth = regression.residuals(beta, gamma), regression.growth(gamma)
        # an intercept, a trend and gamma offset the density's own location: every draw is put
        # where its residuals are the responses
        place = regression.place - growth * residuals.mean(axis=(2, 3))
        scale = units.spread * growth[..., None]
        in_question = Mixture(
            u.weights,
            units.centre + units.spread * place[..., None] + scale * u.locations,
            scale * u.scales,
            kernel=u.kernel,
        )
        jacobian = np.log(units.spread) + gamma[..., None] * regression.position
        half = regression.half_step
        if half is None:
            log_density = log_densities(u, residuals)
        else:
            half = half / np.exp(gamma[..., None] * regression.position)
            log_density = log_bin_densities(u, residuals[..., 0], half)
        return cls(
            mixture=in_question,
            responses=responses,
            middle=middle,
            coefficients=beta,
            growth=gamma,
            shift=units.spread * (beta @ regression.target - place),
            log_likelihood=log_density - jacobian,
            scores=scores_of(u, residuals, half),
        )

    def of_regression(self, regression: Regression) -> xr.Dataset:
        """Return the draws of the regression, dims (chain, draw, ...), as a trace has them."""
        import xarray as xr

        lead = ("chain", "draw")
        return xr.Dataset(
            {
                "coefficients": ((*lead, "term"), self.coefficients),
                "growth": (lead, self.growth),
                SHIFT: (lead, self.shift),
            },
            coords={"term": regression.terms},
        )

    @property
    def next_response(self) -> Mixture:
        """Distribution of the response in the database in question, every draw at its own place."""
        p, shift = self.mixture, self.shift[..., None]
        return Mixture(p.weights, p.locations + shift, p.scales, kernel=p.kernel)


def scores_of(u: Mixture, residuals: Array, half: Array | None = None) -> Array:
    """Return normal scores of the residuals' probabilities, averaged over draws and samples.

    Those of rounded responses, half the width of the bin of each given, are drawn evenly between
    the probabilities of both ends, as of a continuous response (Smith 1985, Diagnostic checks of
    non-standard time series models): at the middle they would spread the less the more of the
    distribution is in the bin. The random numbers are always the same.
    """
    from scipy.special import ndtri

    total = np.zeros(residuals.shape)
    ends = () if half is None else (-half[..., None], half[..., None])
    place = np.random.default_rng(0).random((residuals.shape[-2], 1))
    gaussian = u.kernel == "gaussian"
    for k in range(u.weights.shape[-1]):
        w, mu, s = (part[..., k, None, None] for part in (u.weights, u.locations, u.scales))
        away = [residuals - mu + end for end in ends] or [residuals - mu]
        below = [
            kernels.gaussian_tail(x, s) if gaussian else kernels.laplace(x, s)[1] for x in away
        ]
        total += w * (below[0] + place * (below[-1] - below[0]))
    probability = total.mean(axis=(0, 1, 3)).clip(LEAST_SCORE, 1.0 - LEAST_SCORE)
    return np.asarray(ndtri(probability))
