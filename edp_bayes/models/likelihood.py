"""The likelihood of the mixture models, in PyMC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from edp_bayes.responses import Responses

__all__ = ["observe"]


def observe(responses: Responses, weights: Any, locations: Any, scales: Any, kernel: str) -> None:
    """Add the responses to the current PyMC model, the component of each summed out.

    Samples of a randomised query come from one component and share the weight of one database.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if responses.samples == 1:
        family = pm.Normal if kernel == "gaussian" else pm.Laplace
        parameters = {"sigma" if kernel == "gaussian" else "b": scales}
        pm.Mixture(
            "response",
            w=weights,
            comp_dists=family.dist(mu=locations, **parameters),
            observed=responses.response,
            dims="database",
        )
        return
    y = responses.response.reshape(responses.n_databases, responses.samples, 1)
    u = (y - locations) / scales
    log_kernel = (
        -0.5 * u**2 - 0.5 * np.log(2 * np.pi) if kernel == "gaussian" else -pt.abs(u) - np.log(2.0)
    )
    component = log_kernel.mean(axis=1) - pt.log(scales)
    pm.Potential("response", pt.logsumexp(pt.log(weights) + component, axis=1).sum())
