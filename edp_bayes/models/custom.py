"""A user's own PyMC model in the place of one of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InputTypeError
from edp_bayes.models.base import FittedModel, fitted_mixture, mixture_from
from edp_bayes.models.log_prior import from_pymc
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from edp_bayes.records.responses import Responses

__all__ = ["PyMCMixture"]


@dataclass(frozen=True)
class PyMCMixture:
    """Any PyMC model whose posterior holds the parameters of a mixture.

    Parameters
    ----------
    build : callable
        Takes Responses and returns a PyMC model.
    kernel : {"gaussian", "laplace"}
        Family of every component.
    weights, locations, scales : str
        Names of its variables of shape (component,), in the units of the response.

    Raises
    ------
    InputTypeError
        If build is no function; when fitted, if it does not return a PyMC model.
    InvalidInputError
        When fitted, if one of the names is not a variable of the model, of one value for each
        component, or the weights are negative or do not sum to one.
    SamplingError
        When fitted, if PyMC cannot sample the model.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> model = edp.PyMCMixture(edp.FiniteMixture(components=2).build)
    >>> model.kernel
    'gaussian'
    """

    build: Callable[[Responses], Any]
    kernel: str = "gaussian"
    weights: str = "weights"
    locations: str = "locations"
    scales: str = "scales"

    def __post_init__(self) -> None:
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        if not callable(self.build):
            raise InputTypeError(
                "build must be a function of Responses that returns a pm.Model, found "
                f"{self.build!r}"
            )

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by NUTS."""
        import pymc as pm

        model = self.build(responses)
        if not isinstance(model, pm.Model):
            raise InputTypeError(f"build must return a pm.Model, found {type(model).__name__}")
        tree = sample_nuts(model, settings)
        names = (self.weights, self.locations, self.scales)
        return fitted_mixture(
            mixture_from(tree, self.kernel, names),
            responses,
            settings,
            tree=tree,
            log_prior=from_pymc(model, tree, top=()),
            attributes={"model": repr(self)},
            remedy="change the model that build returns, or try a transform of the responses",
        )
