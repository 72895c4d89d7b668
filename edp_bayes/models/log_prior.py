"""Log prior density of the drawn parameters, what sensitivity to the prior is read from.

Each parameter is meant as the PyMC models have it, so locations and variances of components stand
for their standardised forms: ``offset``, and ``variance_share`` or ``unit_variance``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.models.base_measure import NARROWEST
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.base_measure import BaseMeasure
    from edp_bayes.models.regression import Regression

__all__ = [
    "coefficient_priors",
    "component_priors",
    "from_pymc",
    "gather",
    "share_prior",
    "stick_priors",
]

# The parameters at the top of the mixture models' hierarchy.
HYPERPARAMETERS = (
    "concentration", "share", "centre", "rate", "precision", "locations", "scales"
)  # fmt: skip


def gather(densities: Mapping[str, Array], top: Iterable[str] = HYPERPARAMETERS) -> xr.Dataset:
    """Return log prior densities, each of shape (chain, draw), as one dataset.

    Attribute ``hyperparameters`` names those at the top of the hierarchy, as JSON.
    """
    import xarray as xr

    names = [name for name in top if name in densities]
    return xr.Dataset(
        {name: (("chain", "draw"), values) for name, values in densities.items()},
        attrs={"hyperparameters": json.dumps(names or list(densities))},
    )


def from_pymc(model: Any, tree: xr.DataTree, top: Iterable[str] = HYPERPARAMETERS) -> xr.Dataset:
    """Return the log prior density of every free variable of a PyMC model at its draws.

    The factor of the base measure that keeps components from being too fine is among them.
    """
    from pymc.model.transform.conditioning import remove_value_transforms
    from pymc.stats import compute_log_prior

    with _without_starts(model):
        found = compute_log_prior(tree, model=model, extend_inferencedata=False, progressbar=False)
        plain = remove_value_transforms(model)
    densities = {
        str(name): values.transpose("chain", "draw", ...).to_numpy()
        for name, values in found.data_vars.items()
    }
    shape = next(iter(densities.values())).shape[:2]
    sums = {name: v.reshape(*shape, -1).sum(-1) for name, v in densities.items()}
    if any(factor.name == NARROWEST for factor in model.potentials):
        sums[NARROWEST] = _factor(plain, NARROWEST, tree)
    return gather(dict(sorted(sums.items())), top)


@contextmanager
def _without_starts(model: Any) -> Iterator[None]:
    """Take out where variables say that sampling starts: PyMC copies no model that says so."""
    starts = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(starts))
        yield
    finally:
        model.rvs_to_initial_values.update(starts)


def _factor(model: Any, name: str, tree: xr.DataTree) -> Array:
    """Return a potential of a model without transforms at all draws, shape (chain, draw)."""
    inputs = [value for value in model.value_vars if value.name in tree["posterior"]]
    density = model.compile_fn(
        model.logp(vars=[model.named_vars[name]]), inputs=inputs, on_unused_input="ignore",
        point_fn=False,
    )  # fmt: skip
    draws = [
        tree["posterior"][value.name].transpose("chain", "draw", ...).to_numpy() for value in inputs
    ]
    shape = draws[0].shape[:2]
    found = [density(*(part[at] for part in draws)) for at in np.ndindex(*shape)]
    return np.reshape(np.asarray(found, dtype=np.float64), shape)


def stick_priors(
    prior: tuple[float, float], concentration: Array, log_rest: Array, sticks: int
) -> dict[str, Array]:
    """Return the densities of concentration and sticks.

    The log rest is that of the weight the sticks leave, the sum of log(1 - stick), in which alone
    the density Beta(1, concentration) of every stick is written.
    """
    from scipy.stats import gamma

    shape, rate = prior
    return {
        "concentration": gamma.logpdf(concentration, shape, scale=1.0 / rate),
        "stick": sticks * np.log(concentration) + (concentration - 1.0) * log_rest,
    }


def component_priors(
    base: BaseMeasure,
    *,
    centre: Array,
    rate: Array,
    precision: Array,
    locations: Array,
    variances: Array,
    least: float,
) -> dict[str, Array]:
    """Return the densities of components in standardised units, shape (chain, draw, component).

    That of ``narrowest`` is the factor exp(-least / (2 v)) of every variance v.
    """
    from scipy.stats import beta, gamma, invgamma, norm

    offset = (locations - centre[..., None]) * np.sqrt(precision)[..., None]
    if base.scale_shape is None:
        unit_variance = variances / rate[..., None]
        scale = {"unit_variance": invgamma.logpdf(unit_variance, base.shape).sum(-1)}
    else:
        ratio = variances * rate[..., None]
        share = ratio / (1.0 + ratio)
        scale = {"variance_share": beta.logpdf(share, base.scale_shape, base.shape).sum(-1)}
    return {
        "centre": norm.logpdf(centre, scale=base.location_scale),
        "rate": gamma.logpdf(rate, base.rate_shape, scale=1.0 / base.rate_rate),
        "precision": gamma.logpdf(precision, base.precision_shape, scale=1.0 / base.precision_rate),
        **scale,
        "offset": norm.logpdf(offset).sum(-1),
        NARROWEST: -0.5 * least * (1.0 / variances).sum(-1),
    }


def share_prior(weight_concentration: float, weights: Array) -> dict[str, Array]:
    """Return the density of Dirichlet weights; none where there is a single component."""
    from scipy.special import gammaln

    size = weights.shape[-1]
    if size == 1:
        return {}
    a = weight_concentration
    logs = np.log(np.maximum(weights, np.finfo(np.float64).tiny))
    constant = gammaln(size * a) - size * gammaln(a)
    return {"share": constant + (a - 1.0) * logs.sum(-1)}


def coefficient_priors(
    regression: Regression, coefficients: Array, growth: Array
) -> dict[str, Array]:
    """Return the densities of the coefficients of what is known, and of the growth of the scale."""
    from scipy.stats import norm

    found = {}
    if coefficients.shape[-1]:
        density = norm.logpdf(coefficients, scale=regression.deviation)
        found["coefficients"] = np.asarray(density).sum(-1)
    if regression.scaled:
        found["growth"] = norm.logpdf(growth, scale=regression.growth_deviation)
    return found
