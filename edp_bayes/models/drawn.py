"""Draws that were made elsewhere in the place of a model that is sampled here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base import NAMES, FittedModel, fitted_mixture, mixture_from
from edp_bayes.models.contributions import check_names, source_of
from edp_bayes.models.coupled import coupled_mixture, drawn_from, group_of, posterior_of
from edp_bayes.models.prior_draws import PriorDraws
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["DrawnMixture", "ToMixture"]

# What makes a mixture of a posterior, shape (chain, draw, component).
type ToMixture = tuple[str, str, str] | Callable[[xr.Dataset], Mixture]


@dataclass(frozen=True, eq=False)
class DrawnMixture:
    """A model whose posterior was drawn before, by whatever sampler.

    Parameters
    ----------
    draws : DataTree, InferenceData or Dataset
        With a group posterior of dims chain and draw, or that group itself.
    mixture : tuple of str, or callable
        Names of the variables that are weights, locations and scales, of one value for each
        component, in the units of the response; or what makes a `Mixture` of shape (chain, draw,
        component) of the posterior as a Dataset.
    kernel : {"gaussian", "laplace"}
        Family of every component, where names are given.
    contributions : tuple of str, optional
        Names of the variables of how individuals contribute, as for `edp_bayes.PyMCMixture`. By
        default they are known by empirical Bayes.

    Raises
    ------
    InputTypeError
        If draws are none of these, or the mixture is neither names nor a function.
    InvalidInputError
        If there are no dims chain and draw, or the kernel is unknown; when fitted, if a name is not
        there or what is made is no mixture of these draws.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import edp_bayes as edp
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), np.zeros((2, 30)))})
    >>> def normal(posterior):
    ...     mu = posterior["mu"].to_numpy()[..., None]
    ...     return edp.Mixture(np.ones_like(mu), mu, np.ones_like(mu))
    >>> DrawnMixture(draws, normal).shape
    (2, 30)
    """

    draws: Any = field(repr=False)
    mixture: ToMixture = NAMES
    kernel: str = "gaussian"
    contributions: tuple[str, str, str, str] | None = None
    posterior: xr.Dataset = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        check_names(self.contributions)
        if not callable(self.mixture) and (
            isinstance(self.mixture, str) or len(tuple(self.mixture)) != len(NAMES)
        ):
            raise InputTypeError(
                "mixture must be the names of weights, locations and scales, or a function of the "
                f"posterior, found {self.mixture!r}"
            )
        object.__setattr__(self, "posterior", posterior_of(self.draws))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chains, and of draws in each."""
        return self.posterior.sizes["chain"], self.posterior.sizes["draw"]

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Refuse: the draws were made of the responses as they are."""
        raise InvalidInputError(
            "these draws are of the responses as they are, whatever an adversary knows: leave "
            "adversary= out, or give a model in the place of its draws. The to_mixture of a model "
            "takes draws and adversary="
        )

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Return the draws that were given, beside those without each individual."""
        drawn_from(self.draws, responses, responses.on_scale)
        mixture, responses = self._mixture(), responses.on_scale
        parts = (mixture.weights, mixture.locations, mixture.scales)
        if not any(np.ptp(part, axis=(0, 1)).any() for part in parts):
            raise InvalidInputError(
                "the draws are all the same, and those of a posterior are not: an estimate that is "
                "repeated has no band"
            )
        source = source_of(self.posterior, self.contributions)
        drawn = coupled_mixture(mixture, responses, settings.random_seed or 0, source=source)
        fitted = fitted_mixture(
            drawn,
            settings,
            attributes={"model": repr(self), "sampler": "elsewhere", "tune": 0},
            remedy="change the model whose draws these are",
        )
        prior = group_of(self.draws, "prior")
        return replace(
            fitted,
            sample_stats=group_of(self.draws, "sample_stats"),
            parameters=self.posterior,
            prior=None if prior is None else partial(PriorDraws, prior),
            constant_data=group_of(self.draws, "constant_data"),
        )

    def _mixture(self) -> Mixture:
        if not callable(self.mixture):
            tree = xr.DataTree.from_dict({"posterior": self.posterior})
            return mixture_from(tree, self.kernel, self.mixture)
        found = self.mixture(self.posterior)
        if not isinstance(found, Mixture):
            raise InputTypeError(f"mixture must return a Mixture, found {type(found).__name__}")
        if found.weights.shape[:-1] != self.shape:
            raise InvalidInputError(
                f"mixture must return one of shape (chain, draw, component), {self.shape} first, "
                f"found {found.weights.shape}"
            )
        return found
