"""How probable a model that draws contributions says it is that an individual is in a database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.drawn import DrawnContributions
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.diagnostics.independence import StatedPresence
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.responses.responses import Responses

__all__ = ["stated_presence"]

MOST_DRAWS = 500  # of which presence is the mean


def stated_presence(coupling: Coupling, responses: Responses) -> StatedPresence | None:
    """Return what a model of contributions states of presence; None where it states nothing.

    Its p_i has components in the absence of i, of weights (1 - rho_k) w_k, and in their presence,
    of weights rho_k w_k: the share of these in p_i at the response without them.
    """
    drawn = isinstance(coupling, RegressionCoupling) and isinstance(
        coupling.posterior, DrawnContributions
    )
    if not drawn or responses.samples > 1:
        return None
    assert isinstance(coupling, RegressionCoupling)
    return partial(_given_rest, coupling, responses)


def _given_rest(
    coupling: RegressionCoupling, responses: Responses, people: NDArray[np.int64]
) -> Array:
    rest = responses.response[:, None] - responses.collected[:, people].toarray()
    columns = [_of_one(coupling, int(i), r) for i, r in zip(people, rest.T, strict=True)]
    return np.stack(columns, axis=1)


def _of_one(coupling: RegressionCoupling, person: int, rest: Array) -> Array:
    """Return the probability of their presence in each database, the mean over draws."""
    _, without = coupling.pair(person)
    size = without.weights.shape[-1]
    components = coupling.mixture.weights.shape[-1]
    if size == components:  # always there, it says
        return np.ones(rest.size)
    draws = coupling.n_draws
    rows = slice(None, None, -(-draws // MOST_DRAWS))
    weights, mu, s = (
        part.reshape(draws, size)[rows, :, None]
        for part in (without.weights, without.locations, without.scales)
    )
    u = (rest - mu) / s
    with np.errstate(divide="ignore"):
        logs = np.log(weights) - np.log(s)
    logs = logs - (0.5 * u**2 if without.kernel == "gaussian" else np.abs(u))
    logs -= logs.max(axis=1, keepdims=True)
    density = np.exp(logs)
    present = density[:, components:].sum(axis=1)
    return np.asarray((present / density.sum(axis=1)).mean(axis=0))
