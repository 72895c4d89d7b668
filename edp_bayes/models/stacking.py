"""Several density models in one, in the proportions in which together they predict best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base import (
    GAUSSIAN,
    DefaultKernel,
    DensityModel,
    FittedModel,
    checked_model,
    fit_as_asked,
    models_rounding,
    parts_of,
)
from edp_bayes.models.leave_one_out import doubtful, leave_one_out, stacking_weights
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["Stacked", "Weighed"]


@dataclass(frozen=True, init=False)
class Stacked:
    """Density models averaged by stacking.

    Every model is fitted to the same responses with the same settings. The weights maximise the
    sum over the databases of the log of the weighted leave-one-database-out predictive densities:
    Yao, Vehtari, Simpson and Gelman (2018), "Using stacking to average Bayesian predictive
    distributions", Bayesian Analysis 13, 917-1007. The draws of the result are those of the models
    in these proportions, each with the coupling of its own model.

    Parameters
    ----------
    models : iterable of DensityModel
        At least one, all with the same kernel. Models whose kernel is left at its default take that
        of the others, and the Gaussian one where only their defaults differ.

    Raises
    ------
    InvalidInputError
        If there is no model, or the kernels asked for differ: the components of a mixture are of
        one family.
    InputTypeError
        If one of them is not a density model.

    See Also
    --------
    edp_bayes.compare : compare models by their predictions
    DensityModel : what every model of the response offers

    Notes
    -----
    In every chain each model provides the same number of draws, its weight times the draws of the
    chain by largest remainders, at places that the seed puts in random order. The draw at a place
    is its model's own draw of that chain and place. R-hat then compares chains of the average: it
    is large where the chains of a model of some weight disagree, and does not see that the models
    differ, since all of them are in every chain. A model of small weight that has not converged
    hardly shows; audit it alone if it matters. The weights are estimates, and the draws do not
    carry their uncertainty.

    Examples
    --------
    >>> from edp_bayes.models import DirichletProcessMixture, SmoothedBootstrap
    >>> Stacked([DirichletProcessMixture(), SmoothedBootstrap()]).models
    (DirichletProcessMixture(), SmoothedBootstrap(kernel='gaussian'))
    """

    models: tuple[DensityModel, ...]

    def __init__(self, models: Iterable[DensityModel]) -> None:
        if not isinstance(models, Iterable):
            raise InputTypeError(f"models must be a list of density models, found {models!r}")
        members = tuple(checked_model(model, "every model") for model in models)
        if not members:
            raise InvalidInputError("stacking needs at least one model, found none")
        object.__setattr__(self, "models", _of_one_kernel(members))

    @property
    def kernel(self) -> str:
        """Family of every component: gaussian or laplace."""
        return self.models[0].kernel

    def models_rounding(self, responses: Responses) -> bool:
        """Return whether all the models are of what was rounded."""
        return all(models_rounding(model, responses) for model in self.models)

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Fit every model, weigh them and take their draws in proportion.

        Raises
        ------
        InvalidInputError
            If a model does not return the chains and draws asked for.
        """
        return self._fit(responses.on_scale, settings)

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Fit every model to the same regression, weigh them and take their draws in proportion."""
        return self._fit(regression, settings)

    def _fit(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        from edp_bayes.coupling.views.some_draws import stack_couplings
        from edp_bayes.models.regression import InQuestion

        fits = [fit_as_asked(model, data, settings) for model in self.models]
        weighed = Weighed.of(fits, settings)
        coupling = stack_couplings([fit.coupling for fit in fits], weighed.member)
        _, regression = parts_of(data)
        in_question = None
        if regression is not None:
            in_question = InQuestion(
                mixture=coupling.mixture,
                log_likelihood=weighed.taken("log_likelihood"),
                **weighed.in_question(regression),
            )
        return FittedModel(
            mixture=coupling.mixture,
            coupling=coupling,
            in_question=in_question,
            **weighed.said(self),
        )


@dataclass(frozen=True, eq=False)
class Weighed:
    """Fits of the same data, to one query or to several, weighed by stacking.

    Parameters
    ----------
    fits : sequence of FittedModel or FittedJoint
        One for each model.
    scores : list of ELPDData
        Their scores of databases left out.
    weights : ndarray
        Shape (model,).
    member : ndarray of int
        Shape (chain, draw): the model of each draw.
    """

    fits: Sequence[FittedModel | FittedJoint]
    scores: list[Any]
    weights: Array
    member: Index

    @classmethod
    def of(cls, fits: Sequence[FittedModel | FittedJoint], settings: SamplerSettings) -> Self:
        """Weigh fits, and take their draws in proportion."""
        scores = [leave_one_out(fit.log_likelihood, fit.predictive) for fit in fits]
        weights = stacking_weights(_log_density(scores))
        return cls(fits, scores, weights, _apportioned(weights, settings))

    def said(self, model: Stacked) -> dict[str, Any]:
        """Return what a fit of the draws taken has beside densities, couplings and databases."""
        fits, member = self.fits, self.member
        return {
            "log_likelihood": _chosen(np.stack([fit.log_likelihood for fit in fits]), member),
            "predictive": _averaged(_log_density(self.scores), self.weights),
            "sample_stats": _statistics(fits, member),
            "warnings": _warnings(model.models, fits, self.scores),
            "attributes": {
                "model": repr(model),
                "sampler": "stacked",
                "stacking_weights": self.weights.tolist(),
                "members": [dict(fit.attributes) for fit in fits],
            },
            "remedy": "stack another model, too, or try a transform of the responses",
            "diverging": " ".join(dict.fromkeys(fit.diverging for fit in fits if fit.divergences)),
            "truncated": tuple(
                replace(process, share=float(weight) * process.share)
                for weight, fit in zip(self.weights, fits, strict=True)
                for process in fit.truncated
            ),
        }

    def taken(self, name: str) -> Array:
        """Return what is known of the database in question, of the model of each draw."""
        return _chosen(np.stack([getattr(part, name) for part in self._parts]), self.member)

    def in_question(self, regression: Regression | JointRegression) -> dict[str, Any]:
        """Return the database in question under the draws taken; all models put it at one place."""
        from scipy.special import ndtr, ndtri

        parts, beta, gamma = self._parts, self.taken("coefficients"), self.taken("growth")
        middle = beta.mean(axis=(0, 1))
        shares = np.bincount(self.member.ravel(), minlength=len(parts)) / self.member.size
        scores = ndtr([part.scores for part in parts])
        averaged = shares @ scores.reshape(len(parts), -1)
        return {
            "responses": regression.adjusted(middle, float(gamma.mean())),
            "middle": middle,
            "coefficients": beta,
            "growth": gamma,
            "shift": self.taken("shift"),
            "scores": np.asarray(ndtri(averaged.reshape(scores.shape[1:]))),
            "slopes_known": max(part.slopes_known for part in parts),
        }

    @property
    def _parts(self) -> list[Any]:
        return [fit.in_question for fit in self.fits if fit.in_question is not None]


def _log_density(scores: list[Any]) -> Array:
    """Return log predictive densities of databases left out, shape (database, model)."""
    return np.stack([np.asarray(score.elpd_i) for score in scores], axis=1)


def _of_one_kernel(models: tuple[DensityModel, ...]) -> tuple[DensityModel, ...]:
    """Return the models, those with a kernel nobody asked for with the common one."""
    if len({model.kernel for model in models}) == 1:
        return models
    asked = {m.kernel for m in models if not isinstance(m.kernel, DefaultKernel)}
    if len(asked) > 1:
        raise InvalidInputError(
            "stacked models must have the same kernel, because the components of a mixture are "
            f"of one family; found {' and '.join(sorted(asked))}. Give them the same kernel=, or "
            "compare them by edp_bayes.compare"
        )
    # Gibbs sampling draws mixtures of Gaussian kernels.
    common = str(next(iter(asked), GAUSSIAN))
    return tuple(
        replace(model, kernel=common)  # type: ignore[type-var]
        if isinstance(model.kernel, DefaultKernel) and model.kernel != common
        else model
        for model in models
    )


def apportion(weights: Array, draws: int) -> Index:
    """Return how many draws each model provides, by largest remainders.

    Examples
    --------
    >>> apportion(np.array([0.5, 0.3, 0.2]), 11)
    array([6, 3, 2])
    """
    quota = weights * draws
    counts = np.floor(quota).astype(np.int64)
    order = np.argsort(counts - quota, kind="stable")
    counts[order[: draws - counts.sum()]] += 1
    return counts


def _apportioned(weights: Array, settings: SamplerSettings) -> Index:
    """Return the model of each draw, shape (chain, draw): the same numbers in every chain."""
    counts = apportion(weights, settings.draws)
    block = np.repeat(np.arange(weights.size), counts)
    chains = [settings.generator("stack", k).permutation(block) for k in range(settings.chains)]
    return np.stack(chains)


def _chosen(values: Array, member: Index) -> Array:
    """Pick from values (model, chain, draw, ...) the model of each draw."""
    chain, draw = np.indices(member.shape)
    return np.asarray(values[member, chain, draw])


def _averaged(log_density: Array, weights: Array) -> Array:
    """Log of the weighted predictive densities of each database left out."""
    from scipy.special import logsumexp

    return np.asarray(logsumexp(log_density, axis=1, b=weights))


def _statistics(fits: Sequence[FittedModel | FittedJoint], member: Index) -> xr.Dataset:
    """Return the model of each draw, and whether it was a divergent transition."""
    import xarray as xr

    diverging = np.zeros((len(fits), *member.shape), dtype=bool)
    for flags, fit in zip(diverging, fits, strict=True):
        if fit.sample_stats is not None and "diverging" in fit.sample_stats:
            flags[:] = fit.sample_stats["diverging"].transpose("chain", "draw").to_numpy()
    dims = ("chain", "draw")
    return xr.Dataset(
        {"member": (dims, member), "diverging": (dims, _chosen(diverging, member))},
        coords={dim: np.arange(size) for dim, size in zip(dims, member.shape, strict=True)},
    )


def _warnings(
    models: tuple[DensityModel, ...], fits: Sequence[FittedModel | FittedJoint], found: list[Any]
) -> tuple[str, ...]:
    """Return what the members are doubtful about, and where their scores are."""
    said = [sentence for fit in fits for sentence in fit.warnings]
    for model, part in zip(models, found, strict=True):
        if count := doubtful(part):
            doubt = (
                f"The stacking weights are doubtful: {count} of {part.n_data_points} databases "
                f"have a Pareto k above {float(part.good_k):.2f} under {model!r}."
            )
            said.append(Sentence(doubt))
    return tuple(said)
