"""A user's own PyMC model in the place of one of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edp_bayes import validate
from edp_bayes.models.base import FittedModel, SamplerSettings, mixture_from, sample_nuts
from edp_bayes.models.fitting import fitted_mixture
from edp_bayes.models.log_prior import from_pymc

if TYPE_CHECKING:
    from edp_bayes.responses import Responses

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
    InvalidInputError
        When fitted, if one of the names is not a variable of the model.

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

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by NUTS."""
        model = self.build(responses)
        tree = sample_nuts(model, settings)
        names = (self.weights, self.locations, self.scales)
        return fitted_mixture(
            mixture_from(tree, self.kernel, names),
            responses,
            settings,
            tree=tree,
            log_prior=from_pymc(model, tree, top=()),
            attributes={"model": repr(self)},
        )
