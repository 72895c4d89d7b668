"""ArviZ's groups of what a model drew: parameters, their prior, and what both predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from edp_bayes.diagnostics.predictive import replicates_of
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.models.base import FittedModel
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses

__all__ = ["drawn_groups"]

MOST = 5_000_000  # numbers that are predicted
# The stream of the predictive check, so that these are the replicates that it looks at.
POSTERIOR, PRIOR = "replicates", "prior predictive"


def drawn_groups(
    fitted: FittedModel | FittedJoint,
    responses: Responses | JointResponses,
    observed: xr.Dataset,
    settings: SamplerSettings,
) -> dict[str, xr.Dataset]:
    """Return parameters, prior, constant data, and what posterior and prior predict.

    Parameters
    ----------
    fitted : FittedModel or FittedJoint
        Draws of a model.
    responses : Responses or JointResponses
        What was modelled.
    observed : xarray.Dataset
        The group observed_data, whose dims and coordinates predictions have. More than five million
        numbers are not predicted.
    settings : SamplerSettings
        Whose streams of random numbers are used.
    """
    found: dict[str, xr.Dataset] = {}
    predictions = {"posterior_predictive": (fitted.mixture, POSTERIOR)}
    if fitted.parameters is not None:
        found["parameters"] = fitted.parameters
    constant = getattr(fitted, "constant_data", None)  # of a model of one's own
    if constant is not None and constant.data_vars:
        found["constant_data"] = constant
    prior = None if fitted.prior is None else fitted.prior()
    if prior is not None:
        found["prior"] = prior.variables
        if prior.mixture is not None:
            predictions["prior_predictive"] = (prior.mixture, PRIOR)
    for name, (mixture, stream) in predictions.items():
        values = _predicted(mixture, responses, settings.generator(stream))
        if values is not None:
            chains, draws = values.shape[:2]
            found[name] = xr.Dataset(
                {"response": (("chain", "draw", *observed["response"].dims), values)},
                coords={
                    "chain": np.arange(chains),
                    "draw": np.arange(draws),
                    **observed["response"].coords,
                },
            )
    predicted = getattr(fitted, "predicted", None)  # of presence and contributions
    if predicted is not None and "posterior_predictive" in found:
        more = predicted(MOST)
        if more is not None:
            # databases have the labels of the response, in the same order
            both = [found["posterior_predictive"], more.drop_vars("database", errors="ignore")]
            found["posterior_predictive"] = xr.merge(both, join="exact")
    return found


def _predicted(
    mixture: Mixture | NormalMixture,
    responses: Responses | JointResponses,
    rng: np.random.Generator,
) -> Array | None:
    """Return predicted responses, draws in front; None where they are too many."""
    if np.prod(mixture.weights.shape[:-1]) * responses.response.size > MOST:
        return None
    if isinstance(mixture, NormalMixture):
        return mixture.sample(len(responses.response), rng)
    assert isinstance(responses, Responses)
    if responses.samples == 1:
        return replicates_of(mixture, responses, rng)
    return _of_clusters(mixture, responses.n_databases, responses.samples, rng)


def _of_clusters(mixture: Mixture, databases: int, samples: int, rng: np.random.Generator) -> Array:
    """Return samples of a randomised query, those of a database from one of the components."""
    weights = mixture.weights.cumsum(axis=-1)
    uniform = rng.random((*weights.shape[:-1], databases))
    chosen = (uniform[..., None] >= weights[..., None, :-1]).sum(axis=-1)
    place, scale = (
        np.take_along_axis(part, chosen, axis=-1) for part in (mixture.locations, mixture.scales)
    )
    draw = rng.standard_normal if mixture.kernel == "gaussian" else rng.laplace
    return np.asarray(place[..., None] + scale[..., None] * draw(size=(*chosen.shape, samples)))
