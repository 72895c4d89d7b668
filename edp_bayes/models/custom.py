"""A user's own PyMC model in the place of one of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError
from edp_bayes.models.base import (
    FittedModel,
    fitted_mixture,
    mixture_from,
    refuse_unlike,
    require_variables,
)
from edp_bayes.models.base_measure import ROUNDED
from edp_bayes.models.contributions import (
    ToSource,
    check_names,
    drawn_without_regression,
    refuse_shapes,
    source_of,
)
from edp_bayes.models.coupled import (
    CoupledMixture,
    coupled_mixture,
    drawn_from,
    with_atoms,
)
from edp_bayes.models.log_prior import from_pymc
from edp_bayes.models.prior_draws import prior_of_mixture
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.utils import validate

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["PyMCMixture"]

FAINT = 1e-12  # probability of a bin that is a difference of larger ones


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
    contributions : tuple of str, optional
        Names of its variables of how individuals contribute, in the order of
        ``responses.individual`` and the units of the response: presence, shape (individual,) or
        (individual, component), and intercept, slope and spread, shape (individual,), of the
        contribution intercept + slope rest + spread e, with e standard normal. By default they are
        known by empirical Bayes.

    Raises
    ------
    InputTypeError
        If build is no function; when fitted, if it does not return a PyMC model.
    InvalidInputError
        When fitted, if one of the names is not a variable of the model, of one value for each
        component, or the weights are negative or do not sum to one.
    SamplingError
        When fitted, if PyMC cannot sample the model.

    See Also
    --------
    edp_bayes.audit_trace : audit a posterior drawn elsewhere
    FullPosterior : response and contributions in one PyMC model
    DensityModel : what every model of the response offers

    Notes
    -----
    Where answers are rounded (`step` of `Responses`) and the model observes the responses as they
    are, by a distribution with a distribution function, its likelihood is made that of their bins.
    A model that sees to this itself has a likelihood named ``rounded_response``. Any other is
    audited as one of continuous answers, with a warning.

    The log prior, from which sensitivity to the prior is read, is left out with a warning where
    PyMC cannot compute it.

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
    contributions: tuple[str, str, str, str] | None = None

    def __post_init__(self) -> None:
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        if not callable(self.build):
            raise InputTypeError(
                "build must be a function of Responses that returns a pm.Model, found "
                f"{self.build!r}"
            )
        check_names(self.contributions)

    def models_rounding(self, responses: Responses) -> bool:
        """Return whether the model is, or can be made, one of what was rounded."""
        return _of_bins(self._built(responses), responses)

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by NUTS."""
        responses = responses.on_scale
        model = self._built(responses)
        if responses.half_step is not None:
            _of_bins(model, responses)
        return self.from_draws(model, sample_nuts(model, settings), responses, settings)

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Fit the model to the responses given what an adversary knows.

        Contributions of the model are those of the responses as they are: it is refused.
        """
        if self.contributions is not None:
            raise drawn_without_regression(self)
        return regression.fitted_to_residuals(self, settings)

    def from_draws(
        self,
        model: Any,
        tree: xr.DataTree,
        data: Responses,
        settings: SamplerSettings,
        drawn: CoupledMixture | None = None,
    ) -> FittedModel:
        """Return what was fitted, from draws of the PyMC model.

        And of p and every p_i that they make, where these have contributions of their own.
        """
        names = (self.weights, self.locations, self.scales)
        log_prior, said = _log_prior(model, tree)
        fitted = fitted_mixture(
            drawn or self.coupled(tree, data, settings.random_seed or 0),
            settings,
            tree=tree,
            prior=partial(prior_of_mixture, model, settings, self.kernel, names),
            log_prior=log_prior,
            attributes={"model": repr(self)},
            remedy="change the model that build returns, or try a transform of the responses",
        )
        return replace(fitted, warnings=(*fitted.warnings, *said))

    def to_mixture(
        self, draws: Any, responses: Responses, *, random_seed: int | None = None
    ) -> CoupledMixture:
        """Return p and every p_i of draws of the PyMC model that `build` returns.

        Parameters
        ----------
        draws : DataTree, InferenceData or Dataset
            With a group posterior of dims chain and draw, or that group itself.
        responses : Responses
            What `build` was given.
        random_seed : int, optional
            Of contributions that the model does not name: that of an audit gives its numbers. By
            default 0.

        Raises
        ------
        InvalidInputError, InputTypeError
            If the draws are not of such a model, or say that they are of other responses.

        See Also
        --------
        CoupledMixture : what is returned
        """
        seed, modelled = validate.seed(random_seed) or 0, responses.on_scale
        tree = drawn_from(draws, modelled)
        return with_atoms(self.coupled(tree, modelled, seed), responses, tree, seed)

    def coupled(
        self, tree: xr.DataTree, data: Responses, seed: int, source: ToSource | None = None
    ) -> CoupledMixture:
        """Return p and every p_i of draws.

        Contributions are those of a source, or else those that the model names.
        """
        names = (self.weights, self.locations, self.scales)
        return coupled_mixture(
            mixture_from(tree, self.kernel, names),
            data,
            seed,
            source=source or source_of(tree["posterior"].to_dataset(), self.contributions),
        )

    def _built(self, responses: Responses) -> Any:
        import pymc as pm

        model = self.build(responses.on_scale)
        if not isinstance(model, pm.Model):
            raise InputTypeError(f"build must return a pm.Model, found {type(model).__name__}")
        # before anything is drawn
        names, own = (self.weights, self.locations, self.scales), self.contributions or ()
        require_variables(names, model.named_vars)
        require_variables(own, model.named_vars, " of contributions")
        shapes = {name: _shape(model[name]) for name in (*names, *own)}
        refuse_unlike({name: shapes[name] for name in names})
        if own:
            of_own, components = [shapes[name] for name in own], shapes[self.weights][0]
            refuse_shapes(own, of_own, responses.n_individuals, components)
        return model


def _shape(variable: Any) -> tuple[int, ...]:
    """Return the shape of a variable of a model; not known to PyTensor it is evaluated."""
    static = variable.type.shape
    if None not in static:
        return tuple(static)
    return tuple(map(int, variable.shape.eval(mode="FAST_COMPILE")))


def _log_prior(model: Any, tree: xr.DataTree) -> tuple[xr.Dataset | None, tuple[str, ...]]:
    """Return the log prior at the draws; or none, and why: the draws are worth more than it."""
    try:
        return from_pymc(model, tree, top=()), ()
    except Exception as error:
        return None, (
            "the log prior of this model could not be computed, so its sensitivity to the prior "
            "cannot be told; PyMC says: "
            f"{str(error).strip().partition('\n')[0] or type(error).__name__}",
        )


def _of_bins(model: Any, responses: Responses) -> bool:
    """Make the likelihood of a PyMC model that of bins, and return whether it is.

    What is added is the log of the probability of each response's bin over its log density. Where
    that is a difference of larger numbers the density stands.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if ROUNDED in model.named_vars:
        return True
    y, half = responses.response, responses.half_step
    found = [rv for rv in model.observed_RVs if _is(model.rvs_to_values[rv].eval(), y)]
    if half is None or len(found) != 1:
        return False
    with model:
        try:
            above, below = (pm.logcdf(found[0], end) for end in (y + half, y - half))
        except NotImplementedError:
            return False
        whole = pt.exp(above) - pt.exp(below)
        seen = whole > FAINT
        density = pm.logp(found[0], y)
        logs = pt.log(pt.switch(seen, whole, 1.0) / (2.0 * half))
        pm.Potential(ROUNDED, pt.switch(seen, logs - density, 0.0).sum())
    return True


def _is(values: Any, y: NDArray[np.float64]) -> bool:
    return values.shape == y.shape and bool((values == y).all())
