"""Finite mixture; one component is the plain parametric model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.models.base import GAUSSIAN, FittedModel
from edp_bayes.models.base_measure import BaseMeasure, coordinates
from edp_bayes.models.mixture_model import MixtureModel
from edp_bayes.models.priors import SIMPLEX, Priors, Support
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["FiniteMixture"]

REMEDY = (
    "try more components (components=, --model finite:K), another kernel (kernel=, "
    "--kernel) or a transform of the responses"
)


@dataclass(frozen=True, repr=False)
class FiniteMixture(MixtureModel):
    """Mixture of a fixed number of components, with Dirichlet weights.

    Parameters
    ----------
    components : int
        Number of components; 1 is a single normal or Laplace distribution.
    kernel : {"gaussian", "laplace"}
        Family of every component.
    weight_concentration : float
        Each parameter of the symmetric Dirichlet prior on the weights.
    base_measure : BaseMeasure
        Prior of the components.
    thin : int
        Of Gibbs sampling: one sweep in so many is kept.
    priors : mapping of str to distribution
        In the place of those of some variables of the PyMC model, as for `DirichletProcessMixture`:
        share, which are the weights, and the names of `BaseMeasure.parameters`.

    Raises
    ------
    InputTypeError
        If a prior is no distribution.
    InvalidInputError
        If the kernel is unknown, there is no component, a parameter is not above zero, or a prior
        is of no variable or of impossible values; when fitted, if Gibbs sampling cannot draw with
        a prior.

    See Also
    --------
    DirichletProcessMixture : the default model of an audit
    BaseMeasure : the prior of a component
    edp_bayes.compare : compare models by their predictions

    Examples
    --------
    >>> from edp_bayes import FiniteMixture
    >>> FiniteMixture(components=2).components
    2
    """

    components: int = 1
    kernel: str = GAUSSIAN
    weight_concentration: float = 1.0
    base_measure: BaseMeasure = field(default_factory=BaseMeasure)
    thin: int = 50
    priors: Mapping[str, Any] = field(default_factory=Priors)

    remedy = REMEDY

    def __post_init__(self) -> None:
        object.__setattr__(self, "thin", validate.positive_integer(self.thin, "thin"))
        components = validate.positive_integer(self.components, "components")
        object.__setattr__(self, "components", components)
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        validate.positive_number(self.weight_concentration, "weight_concentration")
        given = Priors(self.priors, self.parameters)
        dirichlet = given.parameters("share", "dirichlet")
        if dirichlet is not None and np.ptp(dirichlet[0]) == 0.0:
            object.__setattr__(self, "weight_concentration", float(dirichlet[0][0]))
            given = given.without("share")
        base, given = self.base_measure.taking(given)
        object.__setattr__(self, "base_measure", base)
        object.__setattr__(self, "priors", given)

    @property
    def parameters(self) -> dict[str, Support]:
        """What values the variables may have whose prior may be given."""
        several = {"share": SIMPLEX._replace(size=self.components)} if self.components > 1 else {}
        return {**several, **self.base_measure.parameters}

    def _coords(self, responses: Responses) -> dict[str, Any]:
        """Return the coordinates of the PyMC model."""
        return coordinates(responses, self.components)

    def _weights(self, priors: Priors, size: int) -> Any:
        """Add the shares, and return them."""
        import pymc as pm
        import pytensor.tensor as pt

        if size == 1:
            return pt.ones(1)
        alpha = np.full(size, self.weight_concentration)
        return priors.add("share", partial(pm.Dirichlet, a=alpha), dims="component")

    def _by_gibbs(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by Gibbs sampling."""
        from edp_bayes.models.gibbs import fit_finite

        return fit_finite(self, data, settings)

    def attributes(self, responses: Responses) -> dict[str, Any]:
        """Return what to record of this model."""
        return {"model": repr(self), "components": self.components}
