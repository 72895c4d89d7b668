"""Draws from the prior of a PyMC model, the factors in its density among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import mixture_from, regression_draws
from edp_bayes.models.base_measure import NARROWEST, ROUNDED
from edp_bayes.models.contribution_model import LEAST_SPREAD

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.multivariate import Units
    from edp_bayes.models.regression import Regression
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["PriorDraws", "prior_draws", "prior_of_joint", "prior_of_mixture"]

DRAWS = 500  # from the prior, at most
FEWEST = 200
TRIES = 5000
# Factors of the prior density, none of them above 1, and what is no part of the prior.
FACTORS = (NARROWEST, LEAST_SPREAD)
LIKELIHOODS = ("response", ROUNDED, "jacobian")


class PriorDraws(NamedTuple):
    """Draws from the prior.

    Attributes
    ----------
    variables : xarray.Dataset
        Every variable of the PyMC model, dims (chain, draw, ...).
    mixture : Mixture or NormalMixture, optional
        Shape (chain, draw, component): the distribution of the response.
    """

    variables: xr.Dataset
    mixture: Any = None


def prior_of_mixture(
    model: Any,
    settings: SamplerSettings,
    kernel: str,
    names: tuple[str, str, str],
    regression: Regression | None = None,
) -> PriorDraws | None:
    """Return draws from the prior of a model, and the mixtures that its variables make.

    Given a regression these are of the response in the database in question.
    """
    import xarray as xr

    found = prior_draws(model, settings)
    if found is None:
        return None
    try:
        mixture = mixture_from(xr.DataTree.from_dict({"posterior": found}), kernel, names)
    except InvalidInputError:  # such as a scale that is too small for a number
        return PriorDraws(found)
    if regression is not None:
        mixture = regression.next_of(mixture, *regression_draws(found, regression))
    return PriorDraws(found, mixture)


def prior_of_joint(model: Any, settings: SamplerSettings, units: Units) -> PriorDraws | None:
    """Return draws from the prior of several responses, their mixtures in units of these."""
    found = prior_draws(model, settings)
    return None if found is None else PriorDraws(found, normal_mixture(found).in_units(units))


def normal_mixture(posterior: xr.Dataset) -> NormalMixture:
    """Collect the mixture draws of `edp_bayes.models.joint_nuts.build_joint`, whitened."""
    w, locations, root = (
        posterior[name].transpose("chain", "draw", ...).to_numpy()
        for name in ("weights", "locations", "roots")
    )
    w = np.clip(w, 0.0, None)
    return NormalMixture(w / w.sum(-1, keepdims=True), locations, root @ np.swapaxes(root, -1, -2))


def prior_draws(model: Any, settings: SamplerSettings) -> xr.Dataset | None:
    """Return 200 to 500 draws of every variable of a PyMC model from its prior, as one chain.

    A factor of the prior density that is no distribution, the smooth floor of components, is
    allowed for by rejection: a draw is kept with the probability that it states.

    Returns
    -------
    xarray.Dataset or None
        Dims (chain, draw, ...). None where the prior cannot be drawn from: it is improper, a
        distribution has no random numbers, or a potential of the model may be part of it.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> y = np.random.default_rng(1).normal(size=30)
    >>> model = edp.FiniteMixture().build(edp.Responses.from_arrays(y, contribution=0.1 * y))
    >>> found = prior_draws(model, edp.models.SamplerSettings(random_seed=1))
    >>> found["locations"].dims, 200 <= found.sizes["draw"] <= 500
    (('chain', 'draw', 'component'), True)
    """
    potentials = {factor.name: factor for factor in model.potentials}
    if not set(potentials) <= {*FACTORS, *LIKELIHOODS}:
        return None
    variables = [*model.free_RVs, *model.deterministics]
    factors = [potentials[name] for name in FACTORS if name in potentials]
    rng = settings.generator("prior")
    try:
        drawn = _kept(variables, factors, DRAWS, rng)
        share = len(drawn[0]) / DRAWS
        if len(drawn[0]) < FEWEST:
            if share * TRIES < FEWEST:
                return None
            more = _kept(variables, factors, int(1.2 * FEWEST / share), rng)
            drawn = [np.concatenate(both) for both in zip(drawn, more, strict=True)]
    except Exception:  # of whatever distribution it is: an audit is worth more than its prior
        return None
    if not all(np.isfinite(values).all() for values in drawn):
        return None
    return _dataset(model, variables, drawn)


def _kept(variables: list[Any], factors: list[Any], count: int, rng: np.random.Generator) -> Any:
    """Return draws of variables, those that the factors reject left out."""
    import pymc as pm

    # compiled code would be faster, and take longer to compile than this to draw
    *drawn, weight = pm.draw(
        [*variables, sum(factors, start=np.zeros(()))] if factors else [*variables, variables[0]],
        count,
        random_seed=int(rng.integers(2**31)),
        mode="FAST_COMPILE",
    )
    if not factors:
        return drawn
    kept = np.log(rng.random(count)) < weight
    return [values[kept][:DRAWS] for values in drawn]


def _dataset(model: Any, variables: list[Any], drawn: list[Any]) -> xr.Dataset:
    import xarray as xr

    found, used = {}, set()
    for variable, values in zip(variables, drawn, strict=True):
        name = str(variable.name)
        named = model.named_vars_to_dims.get(name) or [None] * (values.ndim - 1)
        dims = [dim or f"{name}_dim_{axis}" for axis, dim in enumerate(named)]
        found[name] = (("chain", "draw", *dims), values[None])
        used.update(dims)
    coords = {
        name: np.asarray(labels)
        for name, labels in model.coords.items()
        if name in used and labels is not None
    }
    return xr.Dataset(found, coords={"chain": [0], "draw": np.arange(len(drawn[0])), **coords})
