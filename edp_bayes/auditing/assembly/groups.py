"""Groups of a tree that audits of one query and of several have alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import name_of

if TYPE_CHECKING:
    from edp_bayes.models.base import FittedModel
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = [
    "DENSITY_POINTS",
    "DENSITY_REACH",
    "LEAD",
    "by_epsilon",
    "densities",
    "every_few",
    "groups_of_fit",
    "known_attributes",
    "observed",
]

LEAD = ("chain", "draw")
# Of densities: points, standard deviations beyond all answers, and draws at most.
DENSITY_POINTS, DENSITY_REACH, DENSITY_DRAWS = 201, 1.0, 500


def every_few(shape: tuple[int, int]) -> int:
    """Return of how many draws of each chain one has densities."""
    return -(-shape[0] * shape[1] // DENSITY_DRAWS)


def densities(
    logs: Array, x: Array, individuals: NDArray[Any], shape: tuple[int, int]
) -> xr.Dataset:
    """Return densities with and without individuals, of some draws.

    Parameters
    ----------
    logs : ndarray
        Shape (individual, 2, chain, draw, x): logarithms with and without them. Their difference
        is the log ratio where both densities are too small for numbers of single precision.
    x : ndarray
        Where they are.
    individuals : ndarray
        Labels.
    shape : tuple of int
        Chains and all draws.
    """
    dims = (*LEAD, "individual", "x")
    with_, without = np.moveaxis(logs, (0, 1), (3, 0))
    found = {
        "density_with": np.exp(with_),
        "density_without": np.exp(without),
        "log_ratio": with_ - without,
    }
    return xr.Dataset(
        {name: (dims, values.astype(np.float32)) for name, values in found.items()},
        coords={
            "chain": np.arange(shape[0]),
            "draw": np.arange(shape[1])[:: every_few(shape)],
            "individual": individuals,
            "x": x,
        },
    )


def groups_of_fit(
    fitted: FittedModel | FittedJoint, database: NDArray[Any], chains: Mapping[str, Any]
) -> dict[str, xr.Dataset]:
    """Return ArviZ's groups of a fit: its log likelihood, and what else it has."""
    coords = {"database": labels.as_coordinate(database)}
    found = {
        "log_likelihood": xr.Dataset(
            {"response": (("chain", "draw", "database"), fitted.log_likelihood)},
            coords={**chains, **coords},
        )
    }
    if fitted.predictive is not None:
        found["log_predictive"] = xr.Dataset({"response": ("database", fitted.predictive)}, coords)
    if fitted.log_prior is not None:
        found["log_prior"] = fitted.log_prior.assign_coords(chains)
    if fitted.sample_stats is not None:
        found["sample_stats"] = fitted.sample_stats
    return found


def observed(responses: Responses | JointResponses) -> xr.Dataset:
    """Return the group observed_data, with a dim for samples or for queries where there are any."""
    values = responses.response.reshape(responses.n_databases, -1)
    coords: dict[str, Any] = {"database": labels.as_coordinate(responses.database)}
    if responses.response.ndim > 1:
        coords["query"] = list(responses.names)
        return xr.Dataset({"response": (("database", "query"), values)}, coords)
    if responses.samples == 1:
        return xr.Dataset({"response": ("database", values[:, 0])}, coords)
    return xr.Dataset({"response": (("database", "sample"), values)}, coords)


def known_attributes(
    regression: Regression | JointRegression, released: Responses | JointResponses
) -> dict[str, Any]:
    """Return what the group known says of the adversary and of the database in question."""
    known = regression.known
    return {
        "target_position": known.target_position,
        "row": known.row,
        "scaled": int(known.scaled),
        "past": known.past,
        "insiders": json.dumps([released.index_of(name) for name in known.insiders]),
        "own": "".join(
            name_of(released.individual, released.index_of(label)).label
            for label in known.tellers[:1]
        ),
    }


def by_epsilon(epsilon: Array, values: Array) -> dict[str, float]:
    """Return values by their epsilon as text, for settings."""
    return dict(zip(map(str, epsilon), map(float, values), strict=True))
