"""Finite mixture; one component is the plain parametric model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.models.base import (
    GAUSSIAN,
    NAMES,
    FittedModel,
    OfRounded,
    ShortRepr,
    at_hand_from,
    diverging_mixture,
    fitted_mixture,
    mixture_from,
    parts_of,
)
from edp_bayes.models.base_measure import (
    BaseMeasure,
    assumed,
    coordinates,
    observe,
    priors_of,
    units_of,
)
from edp_bayes.models.log_prior import from_pymc
from edp_bayes.models.prior_draws import prior_of_mixture
from edp_bayes.models.priors import SIMPLEX, Priors, Support
from edp_bayes.models.regression import regression_on
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.utils import validate

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.contributions import ToSource
    from edp_bayes.models.regression import Regression
    from edp_bayes.records.adversary import Adversary
    from edp_bayes.records.responses import Responses

__all__ = ["FiniteMixture"]

REMEDY = (
    "try more components (components=, --model finite:K), another kernel (kernel=, "
    "--kernel) or a transform of the responses"
)


@dataclass(frozen=True, repr=False)
class FiniteMixture(ShortRepr, OfRounded):
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

    def build(
        self,
        responses: Responses,
        regression: Regression | None = None,
        *,
        adversary: Adversary | None = None,
        at: Any = None,
    ) -> Any:
        """Return the PyMC model, with weights, locations and scales as named deterministics.

        Given what an adversary knows at a database, as for `edp_bayes.audit`, or the regression on
        it, they are those of its residuals, in its units.
        """
        import pymc as pm
        import pytensor.tensor as pt

        if (given := regression_on(responses, adversary, at)) is not None:
            responses, regression = given.known.responses, given
        responses, priors = responses.on_scale, priors_of(self, regression)
        with pm.Model(coords=coordinates(responses, self.components)) as model:
            if self.components > 1:
                alpha = np.full(self.components, self.weight_concentration)
                share = priors.add("share", partial(pm.Dirichlet, a=alpha), dims="component")
            else:
                share = pt.ones(1)
            weights = pm.Deterministic("weights", share, dims="component")
            locations, scales = self.base_measure.build(
                *units_of(self.base_measure, responses, regression),
                self.kernel,
                priors,
            )
            observe(responses, weights, locations, scales, self.kernel, regression)
        return model

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior, by Gibbs sampling where the kernel is Gaussian.

        The same posterior is drawn by NUTS for other kernels, and where the settings ask for it.
        """
        return self._fit(responses.on_scale, settings)

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior of the residuals' distribution and of the regression."""
        return regression.refined(self, self._fit(regression, settings), settings)

    def _fit(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        if settings.by_gibbs(self.kernel, self.priors):
            from edp_bayes.models.gibbs import fit_finite

            return fit_finite(self, data, settings)
        model = self.build(*parts_of(data))
        return self.from_draws(model, sample_nuts(model, settings), data, settings)

    def from_draws(
        self,
        model: Any,
        tree: xr.DataTree,
        data: Responses | Regression,
        settings: SamplerSettings,
        source: ToSource | None = None,
    ) -> FittedModel:
        """Return what was fitted, from draws of the PyMC model, with contributions of a source."""
        responses, regression = parts_of(data)
        return fitted_mixture(
            mixture_from(tree, self.kernel, NAMES),
            responses,
            settings,
            at_hand=None if regression is None else at_hand_from(tree, self.kernel, regression),
            tree=tree,
            prior=partial(prior_of_mixture, model, settings, self.kernel, NAMES),
            log_prior=from_pymc(model, tree),
            attributes={
                "model": repr(self),
                "components": self.components,
                **assumed(self.base_measure, data),
            },
            remedy=REMEDY,
            diverging=diverging_mixture(self.kernel),
            source=source,
        )
