"""Dirichlet process mixture by truncated stick-breaking: the default of audits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.diagnostics.truncation import Truncation
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import GAUSSIAN, FittedModel
from edp_bayes.models.base_measure import BaseMeasure, coordinates
from edp_bayes.models.mixture_model import MixtureModel
from edp_bayes.models.priors import NONNEGATIVE, Priors, Support
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import validate

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["DirichletProcessMixture", "truncation", "truncation_bound"]

TRUNCATION_TOLERANCE = 0.05
QUANTILES = 2000
REMEDY = (
    "where answers are the same again and again, name that value as an atom (atoms=, --atoms); "
    "otherwise see what SmoothedBootstrap() (--model bootstrap) says, or try another kernel "
    "(kernel=, --kernel) or a transform of the responses"
)


@dataclass(frozen=True, repr=False)
class DirichletProcessMixture(MixtureModel):
    """Mixture with weights by stick-breaking and a learned base measure: the default of audits.

    With a Gaussian kernel it is drawn by blocked Gibbs sampling (Ishwaran and James 2001, Section
    5), otherwise or with ``sampler="nutpie"`` from its PyMC model by NUTS.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"}
        Family of every component.
    concentration : tuple of float
        Shape and rate of the Gamma prior on the concentration.
    components : int, optional
        Truncation; by default the fewest for which the bound of Ishwaran and James (2001) on the
        truncation error, in total variation and averaged over the prior on the concentration, is
        at most 0.05. What it leaves out for one response is compared with the risks by the check
        ``truncation`` of an audit, which says how many components are enough.
    base_measure : BaseMeasure
        Prior of the components.
    thin : int
        Of Gibbs sampling: one sweep in so many is kept.
    priors : mapping of str to distribution
        In the place of those of some variables of the PyMC model, such as ``{"concentration":
        pm.Gamma.dist(2, 2)}``, of PyMC or PreliZ: concentration, and the names of
        `BaseMeasure.parameters`. Those of the families that Gibbs sampling draws become arguments
        of this model and its base measure; all others are for NUTS. See docs/models/response.md.

    Raises
    ------
    InputTypeError
        If a prior is no distribution.
    InvalidInputError
        If the kernel is unknown, a parameter is not above zero, or a prior is of no variable or of
        impossible values; when fitted, if Gibbs sampling cannot draw with a prior.

    See Also
    --------
    FiniteMixture : a fixed number of components
    SmoothedBootstrap : a kernel estimate with a posterior
    FullPosterior : response and contributions in one PyMC model
    edp_bayes.compare : compare models by their predictions

    Examples
    --------
    >>> from edp_bayes import DirichletProcessMixture
    >>> DirichletProcessMixture(kernel="laplace").kernel
    'laplace'
    """

    kernel: str = GAUSSIAN
    concentration: tuple[float, float] = (2.0, 2.0)
    components: int | None = None
    base_measure: BaseMeasure = field(default_factory=BaseMeasure)
    thin: int = 50
    priors: Mapping[str, Any] = field(default_factory=Priors)

    remedy = REMEDY

    def __post_init__(self) -> None:
        object.__setattr__(self, "thin", validate.positive_integer(self.thin, "thin"))
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        pair = validate.finite_array(self.concentration, "concentration")
        if pair.shape != (2,) or (pair <= 0).any():
            raise InvalidInputError(
                "concentration must be the shape and the rate of a Gamma distribution, two numbers "
                f"greater than 0, found {self.concentration!r}"
            )
        object.__setattr__(self, "concentration", (float(pair[0]), float(pair[1])))
        if self.components is not None:
            components = validate.positive_integer(self.components, "components")
            object.__setattr__(self, "components", components)
        given = Priors(self.priors, self.parameters)
        if (gamma := given.parameters("concentration", "gamma")) is not None:
            object.__setattr__(self, "concentration", (float(gamma[0]), float(gamma[1])))
            given = given.without("concentration")
        base, given = self.base_measure.taking(given)
        object.__setattr__(self, "base_measure", base)
        object.__setattr__(self, "priors", given)

    @property
    def parameters(self) -> dict[str, Support]:
        """What values the variables may have whose prior may be given."""
        return {"concentration": NONNEGATIVE, **self.base_measure.parameters}

    def truncate(self, n_databases: int) -> int:
        """Return the number of components for a number of databases."""
        return self.components or truncation(self._concentrations, n_databases)

    @cached_property
    def _concentrations(self) -> tuple[float, float] | NDArray[np.float64]:
        """The prior of the concentration as `truncation_bound` takes it."""
        assert isinstance(self.priors, Priors)
        if "concentration" in self.priors:
            return self.priors.draws("concentration", QUANTILES)
        return self.concentration

    def _coords(self, responses: Responses) -> dict[str, Any]:
        """Return the coordinates of the PyMC model."""
        size = self.truncate(responses.n_databases)
        return coordinates(responses, size) | {"break": np.arange(size - 1)}

    def _weights(self, priors: Priors, size: int) -> Any:
        """Add the concentration and the sticks, and return the weights."""
        import pymc as pm
        import pytensor.tensor as pt

        shape, rate = self.concentration
        concentration = priors.add("concentration", partial(pm.Gamma, alpha=shape, beta=rate))
        if size == 1:
            return pt.ones(1)
        stick = pm.Beta("stick", 1.0, concentration, dims="break")
        left = pt.concatenate([[1.0], pt.cumprod(1.0 - stick)])
        return pt.concatenate([stick, [1.0]]) * left

    def _by_gibbs(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by Gibbs sampling."""
        from edp_bayes.models.gibbs import fit_dirichlet_process

        return fit_dirichlet_process(self, data, settings)

    def _truncated(self, tree: xr.DataTree, responses: Responses) -> tuple[Truncation, ...]:
        """Return what was cut off of infinitely many components."""
        concentration = tree["posterior"]["concentration"].to_numpy()
        return (Truncation(concentration, self.truncate(responses.n_databases)),)

    def attributes(self, responses: Responses) -> dict[str, Any]:
        """Return what to record of this model."""
        size = self.truncate(responses.n_databases)
        return {
            "model": repr(self),
            "components": size,
            "truncation_bound": truncation_bound(self._concentrations, size, responses.n_databases),
        }


def truncation_bound(
    concentration: tuple[float, float] | NDArray[np.float64], components: int, n: int
) -> float:
    """Prior mean of a bound on the truncation error, min(1, 2 n (alpha / (1 + alpha))^(K - 1)).

    Ishwaran and James (2001), Theorem 2, bounds the L1 distance between the marginal densities
    of n observations under the truncated and the full process by 4 (1 - E(sum_{k<K} p_k)^n),
    which is at most 4 n E(sum_{k>=K} p_k); this is half of that, in total variation. The prior is
    given as shape and rate of a Gamma distribution, or by draws of another one.
    """
    alpha = _quantiles(concentration) if isinstance(concentration, tuple) else concentration
    tail = (alpha / (1.0 + alpha)) ** (components - 1)
    return float(np.minimum(1.0, 2.0 * n * tail).mean())


@cache
def _quantiles(concentration: tuple[float, float]) -> NDArray[np.float64]:
    from scipy.special import gammaincinv

    shape, rate = concentration
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    quantiles: NDArray[np.float64] = gammaincinv(shape, levels) / rate
    return quantiles


def truncation(concentration: tuple[float, float] | NDArray[np.float64], n: int) -> int:
    """Return the fewest components with a truncation bound of at most 0.05."""
    components = 2
    while truncation_bound(concentration, components, n) > TRUNCATION_TOLERANCE:
        components += 1
    return components
