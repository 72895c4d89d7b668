"""Density models of several responses together, coupled to those without each individual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.coupling.contributions.dominance import dominant_individuals, responses_without
from edp_bayes.coupling.contributions.several import JointContributionPosterior
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.diagnostics.convergence import DIVERGING
from edp_bayes.diagnostics.predictive import ADVICE
from edp_bayes.diagnostics.truncation import Truncation
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import DensityModel, diverging_mixture
from edp_bayes.models.base_measure import priors_of
from edp_bayes.models.conjugate_prior import gibbs_dataset, prior_of_joint_gibbs
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.joint_gibbs import JointDraws, Weights, draw_joint
from edp_bayes.models.log_prior import from_pymc, gather
from edp_bayes.models.prior_draws import PriorDraws, prior_of_joint
from edp_bayes.models.smoothed_bootstrap import SmoothedBootstrap
from edp_bayes.models.stacking import Stacked
from edp_bayes.responses.dependence import Dependence, linear_dependence
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.models.joint_regression import JointInQuestion, JointRegression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses

__all__ = ["FittedJoint", "build_joint_model", "draw_joint_given", "fit_joint"]

# Whose priors say the same of several responses together as of one.
JOINT_PRIORS = ("concentration", "share", "centre", "rate", "precision")

REMEDY = (
    "see what SmoothedBootstrap(kernel='gaussian') (--model bootstrap --kernel gaussian) says, or "
    "transform the responses"
)


@dataclass(frozen=True, eq=False)
class FittedJoint:
    """Posterior draws of the responses' joint distribution, coupled to those without individuals.

    Attributes
    ----------
    mixture : NormalMixture
        Shape (chain, draw, component), in the responses' units, without known noise.
    coupling : JointCoupling
        From the same draws, all chains together.
    responses : JointResponses
        What was fitted, as it is coupled.
    dependence : Dependence
        Which queries follow from others, and whom combinations of the answers reveal.
    log_likelihood : ndarray
        Shape (chain, draw, database).
    predictive : ndarray, optional
        Shape (database,): log predictive density of each database left out.
    log_prior : Dataset, optional
        Of the parameters at the top.
    sample_stats : Dataset, optional
        What NUTS says of itself.
    parameters : Dataset, optional
        Draws of every variable of the PyMC model, of the whitened responses, where NUTS drew it;
        of Gibbs sampling those at the top, and of the components.
    prior : callable, optional
        Draws from the prior of these.
    constant_data : Dataset, optional
        Data that the PyMC model holds.
    attributes : mapping
        Settings to record.
    remedy, diverging : str
        What helps where the model does not fit or transitions diverge.
    truncated : tuple of Truncation
        Dirichlet processes of which finitely many components are kept.
    pooled : bool
        The model draws individuals towards each other.
    warnings : tuple of str
        What is doubtful about the fit.
    in_question : JointInQuestion, optional
        The database in question of an adversary; mixture, coupling and log likelihood are given
        what they know.
    """

    mixture: NormalMixture
    coupling: JointCoupling
    responses: JointResponses
    dependence: Dependence
    log_likelihood: Array
    predictive: Array | None = None
    log_prior: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    parameters: xr.Dataset | None = None
    prior: Callable[[], PriorDraws | None] | None = None
    constant_data: xr.Dataset | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    remedy: str = ADVICE
    diverging: str = DIVERGING
    truncated: tuple[Truncation, ...] = ()
    pooled: bool = True
    warnings: tuple[str, ...] = ()
    in_question: JointInQuestion | None = None

    @property
    def independent(self) -> bool:
        """Whether every draw is exact and independent of all others."""
        return self.attributes.get("sampler") == "exact"

    @property
    def divergences(self) -> int:
        """Number of divergent transitions after warm-up."""
        if self.sample_stats is None or "diverging" not in self.sample_stats:
            return 0
        return int(self.sample_stats["diverging"].sum())


def fit_joint(
    model: DensityModel,
    responses: JointResponses,
    dependence: Dependence,
    settings: SamplerSettings,
) -> FittedJoint:
    """Draw from the posterior of the joint distribution of responses that do not depend linearly.

    Raises
    ------
    InvalidInputError
        If the model has no multivariate form.
    """
    if isinstance(model, SmoothedBootstrap):
        from edp_bayes.models.joint_bootstrap import fit_joint_bootstrap

        return fit_joint_bootstrap(model, responses, dependence, settings)
    if isinstance(model, Stacked):
        from edp_bayes.models.joint_stacking import stack_joint

        fits = [fit_joint(one, responses, dependence, settings) for one in model.models]
        return stack_joint(model, fits, responses, settings)
    return _fit_mixture(_mixture(model), responses, dependence, settings)


def _mixture(model: DensityModel) -> DirichletProcessMixture | FiniteMixture:
    """Return a mixture that has a multivariate form, and refuse all others."""
    if not isinstance(model, DirichletProcessMixture | FiniteMixture):
        raise InvalidInputError(
            "a joint audit takes DirichletProcessMixture, FiniteMixture, SmoothedBootstrap or "
            f"those Stacked, found {model!r}: other models have no form in several dimensions"
        )
    if model.kernel != "gaussian":
        raise InvalidInputError(
            f"a joint audit takes Gaussian kernels, found kernel = {model.kernel!r}: leave kernel= "
            "out"
        )
    if model.base_measure.narrowest is not None:
        raise InvalidInputError(
            "narrowest is in units of one answer, and a joint audit has several: leave narrowest= "
            "out, or audit one query"
        )
    found = [name for name in model.priors if name not in JOINT_PRIORS]
    if found:
        raise InvalidInputError(
            f"a joint audit takes priors of {', '.join(JOINT_PRIORS)}, which mean the same for "
            f"several queries; found one of {found[0]}"
        )
    return model


def _fit_mixture(
    model: DirichletProcessMixture | FiniteMixture,
    responses: JointResponses,
    dependence: Dependence,
    settings: SamplerSettings,
) -> FittedJoint:
    draw, weights, attributes = _drawer(model, responses, settings)
    units = Units.of(responses.response)
    drawn: JointDraws = draw(responses.response, units)
    # without these the responses depend linearly, and nothing is drawn
    alone = [one.individual for one in dependence.revealed if one.alone]
    dominant = dominant_individuals(responses)
    without = {}
    for person, rest, stream in responses_without(responses, dominant[~np.isin(dominant, alone)]):
        own = Units.of(rest)
        apart: JointDraws = draw(rest, own, stream=stream)
        without[person] = apart.mixture.in_units(own).whitened(units)
    truncated: tuple[Truncation, ...] = ()
    if not weights.dirichlet:
        truncated = (Truncation(drawn.concentration, weights.components),)
        attributes["truncation_mass"] = truncated[0].mass
    return FittedJoint(
        mixture=drawn.mixture.in_units(units),
        coupling=coupled(drawn.mixture, units, responses, dependence, settings, without),
        responses=responses,
        dependence=dependence,
        log_likelihood=drawn.mixture.logpdf(units.whiten(responses.response))
        - np.log(np.diagonal(units.factor)).sum(),
        log_prior=_log_prior(model, drawn, weights),
        sample_stats=drawn.sample_stats,
        parameters=_parameters(drawn, weights),
        prior=_prior(drawn, weights, settings, units),
        constant_data=drawn.constant_data,
        attributes=attributes,
        remedy=REMEDY,
        diverging=diverging_mixture(model.kernel),
        truncated=truncated,
    )


def _weights_of(model: DirichletProcessMixture | FiniteMixture, n: int) -> Weights:
    """Return the prior of the weights for a number of databases."""
    if isinstance(model, FiniteMixture):
        return Weights(model.components, dirichlet=model.weight_concentration)
    # unless a prior of another family is given
    return Weights(model.truncate(n), model.concentration)


def build_joint_model(
    model: DensityModel,
    responses: JointResponses,
    *,
    adversary: Adversary | None = None,
    at: Any = None,
) -> Any:
    """Return the PyMC model of several responses together, of those that are not redundant.

    Raises
    ------
    InvalidInputError
        If the model has no multivariate form.
    """
    from edp_bayes.models.joint_nuts import build_joint
    from edp_bayes.models.joint_regression import joint_regression_on

    mixture = _mixture(model)
    regression = joint_regression_on(responses, adversary, at)
    if regression is None:
        responses = responses.of_queries(linear_dependence(responses).kept)
        units = Units.of(responses.response)
    else:
        responses, units = regression.responses, regression.units
    return build_joint(
        responses.response,
        units,
        mixture.base_measure,
        _weights_of(mixture, responses.n_databases),
        regression,
        priors=priors_of(mixture, None),
        coords=_coords(responses),
    )


def _coords(responses: JointResponses) -> dict[str, Any]:
    return {
        "database": labels.as_coordinate(responses.database),
        "query": list(responses.names),
    }


def _drawer(
    model: DirichletProcessMixture | FiniteMixture,
    responses: JointResponses,
    settings: SamplerSettings,
) -> tuple[Callable[..., JointDraws], Weights, dict[str, Any]]:
    """Return what draws a model, by either sampler, the prior of its weights, and what to record.

    It takes responses (n, d), their units, and may take the name of a stream or a regression.
    """
    weights = _weights_of(model, responses.n_databases)
    attributes = model.attributes(responses)  # type: ignore[arg-type]
    options: dict[str, Any] = {"base": model.base_measure, "weights": weights, "settings": settings}
    if settings.by_gibbs(model.kernel, model.priors):
        draw = partial(draw_joint, **options, thin=model.thin)
        return draw, weights, {"sampler": "gibbs", **attributes}
    from edp_bayes.models.joint_nuts import draw_joint_nuts

    return (
        partial(
            draw_joint_nuts, **options, priors=priors_of(model, None), coords=_coords(responses)
        ),
        weights,
        {"sampler": settings.nuts, **attributes},
    )


def draw_joint_given(
    model: DensityModel, regression: JointRegression, settings: SamplerSettings
) -> tuple[JointDraws, str]:
    """Draw a mixture of the residuals together with the regression on what is known.

    Returns
    -------
    JointDraws
        In the regression's units.
    str
        What helps against divergent transitions.

    Raises
    ------
    InvalidInputError
        If the model has no multivariate form.
    """
    mixture, responses = _mixture(model), regression.responses
    draw, _, _ = _drawer(mixture, responses, settings)
    drawn = draw(responses.response, regression.units, stream="given", regression=regression)
    return drawn, diverging_mixture(mixture.kernel)


def coupled(
    mixture: NormalMixture,
    units: Units,
    responses: JointResponses,
    dependence: Dependence,
    settings: SamplerSettings,
    without: Mapping[int, NormalMixture],
) -> JointCoupling:
    """Pair draws (chain, draw, component) with how individuals contribute."""
    seed = settings.random_seed or 0
    return JointCoupling(
        mixture=joined_chains(mixture),
        units=units,
        responses=responses,
        posterior=JointContributionPosterior.fit(responses, units, seed),
        without={i: joined_chains(part) for i, part in without.items()},
        revealed={one.individual: (one.databases, one.alone) for one in dependence.revealed},
        seed=seed,
    )


def joined_chains(mixture: NormalMixture) -> NormalMixture:
    """Return draws of all chains together, contiguous."""
    return NormalMixture(
        *(np.ascontiguousarray(part.reshape(-1, *part.shape[2:])) for part in mixture)
    )


def _parameters(drawn: JointDraws, weights: Weights) -> xr.Dataset:
    if drawn.by_nuts is not None:
        found: xr.Dataset = drawn.by_nuts.tree["posterior"].to_dataset()
        return found
    return gibbs_dataset(drawn.variables(concentration=not weights.dirichlet))


def _prior(
    drawn: JointDraws, weights: Weights, settings: SamplerSettings, units: Units
) -> Callable[[], PriorDraws | None]:
    """Return what draws from the prior of the model."""
    if drawn.by_nuts is not None:
        return partial(prior_of_joint, drawn.by_nuts.model, settings, units)
    assert drawn.prior is not None
    return partial(prior_of_joint_gibbs, settings, drawn.prior, units, weights.components)


def _log_prior(
    model: DirichletProcessMixture | FiniteMixture, drawn: JointDraws, weights: Weights
) -> xr.Dataset:
    from scipy.stats import gamma

    if drawn.by_nuts is not None:
        return from_pymc(*drawn.by_nuts)
    base = model.base_measure
    found = {
        "rate": gamma.logpdf(drawn.rate, base.rate_shape, scale=1.0 / base.rate_rate),
        "precision": gamma.logpdf(
            drawn.precision, base.precision_shape, scale=1.0 / base.precision_rate
        ),
    }
    if not weights.dirichlet:
        shape, rate = weights.concentration
        found["concentration"] = gamma.logpdf(drawn.concentration, shape, scale=1.0 / rate)
    return gather(found)
