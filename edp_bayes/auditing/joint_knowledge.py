"""What an adversary knows of several queries, and the answers in question, for a result's tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.adversary.known import explained
from edp_bayes.auditing.assembly.groups import known_attributes
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.models.joint_regression import JointInQuestion, JointRegression
    from edp_bayes.responses.joined import JointResponses

__all__ = ["answers_in_question", "known_group"]

POINTS, DRAWS, REACH = 201, 500, 4.0  # standard deviations
LEAD = ("chain", "draw")


def known_group(
    regression: JointRegression,
    in_question: JointInQuestion,
    released: JointResponses,
    chains: Mapping[str, Any],
) -> xr.Dataset:
    """Return what the adversary knows, its coefficients, and all answers as they were released.

    Coefficients are in the units of the responses, of regressors as `design` has them. Dim `answer`
    is over all queries, `query` over those that do not follow from others.
    """
    known = regression.known
    everything = np.arange(released.n_databases)
    rest = explained(released, everything, known.insiders)
    ones = np.ones((len(known.design), int(known.scaled)))
    return xr.Dataset(
        {
            "design": (("database", "term"), np.column_stack([known.design, ones])),
            "target": ("term", np.append(known.target, ones[0])),
            "position": ("database", regression.position),
            "middle": (("term", "query"), regression.in_responses(in_question.middle)),
            "coefficients": (
                (*LEAD, "term", "query"),
                regression.in_responses(in_question.coefficients),
            ),
            "growth": (LEAD, in_question.growth),
            "shift": ((*LEAD, "query"), in_question.shift),
            "score": (("database", "query"), in_question.scores),
            "centre": ("query", regression.units.centre),
            "released": (("release", "answer"), released.response),
            "less_insiders": (("release", "answer"), rest.response),
        },
        coords={
            **chains,
            "term": regression.terms,
            "query": [released.names[k] for k in regression.dependence.kept],
            "answer": list(released.names),
            "database": labels.as_coordinate(known.responses.database),
            "release": labels.as_coordinate(released.database),
        },
        attrs=known_attributes(regression, released),
    )


def answers_in_question(
    coupling: JointCoupling, shift: Array, kept: Index, names: NDArray[Any], queries: list[Any]
) -> xr.Dataset:
    """Return the predictive density of each answer in question, with and without some individuals.

    Averaged over at most 500 draws, every draw at its own place, with known noise.

    Parameters
    ----------
    coupling : JointCoupling
        Of all draws.
    shift : ndarray
        Shape (chain, draw, query): how far every draw lies from where the coupling has it.
    kept, names : ndarray
        Positions and labels of the individuals.
    queries : list
        Names of the queries.
    """
    units, d = coupling.units, len(queries)
    moved = shift.reshape(-1, d)
    step = -(-len(moved) // DRAWS)
    moved = moved[::step]
    values, places = np.empty((2, len(kept), d, POINTS)), np.empty((d, POINTS))
    for row, person in enumerate(kept):
        pairs = [
            NormalMixture(*(array[::step] for array in part)) for part in coupling.pair(int(person))
        ]
        for a, direction in enumerate(units.factor):
            both = [part.along(direction, coupling.noise) for part in pairs]
            if row == 0:
                middle = both[0].mean() + units.centre[a] + moved[:, a]
                spread = np.sqrt(both[0].variance().mean() + middle.var())
                reach = REACH * float(spread)
                places[a] = float(middle.mean()) + np.linspace(-reach, reach, POINTS)
            for side, part in enumerate(both):
                at = places[a] - (units.centre[a] + moved[:, a])[:, None]
                values[side, row, a] = _pdf(part.weights, part.locations, part.scales, at)
    dims = ("individual", "query", "point")
    return xr.Dataset(
        {
            "density_with": (dims, values[0]),
            "density_without": (dims, values[1]),
            "place": (("query", "point"), places),
        },
        coords={"individual": names, "query": queries},
    )


def _pdf(weights: Array, locations: Array, scales: Array, at: Array) -> Array:
    """Return the mean over draws of normal mixtures' densities, each at points of its own."""
    found = np.zeros(at.shape[1])
    for k in range(weights.shape[1]):
        scale = scales[:, k, None]
        u = (at - locations[:, k, None]) / scale
        found += (weights[:, k, None] / scale * np.exp(-0.5 * u**2)).mean(axis=0)
    return np.asarray(found / np.sqrt(2.0 * np.pi))
