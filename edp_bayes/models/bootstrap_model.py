"""The likelihood of the smoothed bootstrap in PyMC: each database, given all others.

The density of database j is the kernel estimate of all others, of equal weights. That of a new
database is p = sum_j w_j k_h(x - y_j), of the random weights. Both are one observed variable: the
data ``others`` hold the weights of each database's estimate, and a row without any has those of p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.models.base_measure import ROUNDED, add_response, log_bins
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["CENTRES", "OTHERS", "RATIOS", "observe_others"]

# Names of the data: where the kernels are, their weights for each database, and their bandwidths
# relative to the common one.
CENTRES, OTHERS, RATIOS = "kernel_centres", "others", "bandwidth_ratios"
KERNELS = ("database", "component")


def observe_others(
    responses: Responses,
    weights: Any,
    bandwidth: Any,
    centres: Any,
    *,
    kernel: str,
    different: NDArray[np.bool_],
    ratios: Array | None,
    ratios_next: Array,
) -> None:
    """Add the responses to the current PyMC model, each given those of all other databases.

    Of rounded responses, and of several samples of each, they are a potential.

    Parameters
    ----------
    responses : Responses
        On the scale that is modelled.
    weights, bandwidth, centres : TensorVariable
        Of the kernels, shapes (component,), () and (component,).
    kernel : {"gaussian", "laplace"}
        Their family.
    different : ndarray of bool
        Shape (response, component): whether both are of different databases.
    ratios : ndarray or None
        Bandwidths relative to the common one, the same shape; None if they are all equal.
    ratios_next : ndarray
        Shape (component,): the same of p.
    """
    import pymc as pm
    import pytensor.tensor as pt

    y, half = add_response(responses), responses.half_step
    if half is None and responses.samples == 1:
        equal = different / different.sum(axis=1, keepdims=True)
        others = pm.Data(OTHERS, equal, dims=KERNELS)
        pm.Data(f"{OTHERS}_next", np.zeros(len(equal)), dims="component")
        scale = bandwidth
        if ratios is not None:
            scale = bandwidth * pm.Data(RATIOS, ratios, dims=KERNELS)
            pm.Data(f"{RATIOS}_next", ratios_next, dims="component")
        family = pm.Normal if kernel == "gaussian" else pm.Laplace
        pm.Mixture(
            "response",
            w=pt.switch(others.sum(axis=1, keepdims=True) > 0.0, others, weights),
            comp_dists=family.dist(centres + pt.zeros_like(others), scale),
            observed=y,
            dims="database",
        )
        return
    scale = bandwidth * (np.ones((1, len(different))) if ratios is None else ratios)
    distance, n, samples = y.reshape((-1, 1)) - centres, responses.n_databases, responses.samples
    if half is not None:
        width = pm.Data("half_step", half, dims="database")
        logs = log_bins(y[:, None], width[:, None], centres, scale, kernel)
    else:
        u = distance / scale
        logs = -0.5 * u**2 - 0.5 * np.log(2 * np.pi) if kernel == "gaussian" else -pt.abs(u)
        logs = logs - pt.log(scale) - (np.log(2.0) if kernel == "laplace" else 0.0)
    log_share = np.where(different, 0.0, -np.inf) - np.log(samples * (n - 1))
    name = "response" if half is None else ROUNDED
    pm.Potential(name, pt.logsumexp(logs + log_share, axis=1).mean() * n)
