"""Individuals who make up most of the response's variance: p from the distribution without them.

What remains of the response without such an individual is a small difference of large variances,
which the distribution of the response cannot tell. The responses without them are observed, so the
density model is fitted to these, and their contributions are added back, see
`edp_bayes.coupling.regression.RegressionCoupling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.exposure import CONSTANT
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.records.responses import Responses

__all__ = ["dominant_individuals", "fit_without"]

LEAST_SHARE = 0.5
MOST = 3


def dominant_individuals(responses: Responses) -> Index:
    """Return whose contributions have at least half the variance of the response, at most three.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.

    Returns
    -------
    ndarray of int
        Positions, those of the largest variance first.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.normal(2.0, [5.0, 0.1], (40, 2))
    >>> response = rng.normal(size=40) + contribution.sum(axis=1)
    >>> dominant_individuals(edp.Responses.from_arrays(response, contribution=contribution))
    array([0])
    """
    c, rows, owner = responses.collected, responses.response.size, responses.owner
    mean = np.bincount(owner, c.data, responses.n_individuals) / rows
    square = np.bincount(owner, c.data**2, responses.n_individuals) / rows
    if (others := responses.remainder) is not None:
        mean[others.individuals] = others.contribution / rows
        square[others.individuals] = others.contribution_square / rows
    share = (square - mean**2) / responses.response.var()
    order = np.argsort(-share, kind="stable")[:MOST]
    return np.asarray(order[share[order] >= LEAST_SHARE], dtype=np.int64)


def fit_without(
    responses: Responses,
    shape: tuple[int, int],
    draw: Callable[[Array, str], Mixture],
    individuals: Index | None = None,
) -> dict[int, Mixture]:
    """Return the distribution of the response without each dominant individual.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.
    shape : tuple of int
        Chains and draws.
    draw : callable
        Takes responses, shape (n, samples), and the name of a stream of random numbers, and
        returns draws of their distribution, shape (chain, draw, component).
    individuals : ndarray of int, optional
        The `dominant_individuals`, where they were found before.
    """
    deviation = float(responses.response.std())
    found = {}
    people = dominant_individuals(responses) if individuals is None else individuals
    for person in map(int, people):
        label = responses.individual[person]
        rest = responses.response_without(label)
        if np.ptp(rest) > CONSTANT * deviation:
            found[person] = draw(
                rest.reshape(-1, responses.samples), f"without {labels.as_text(label)}"
            )
        else:
            place = np.full((*shape, 1), rest.mean())
            found[person] = Mixture(1.0, place, CONSTANT * deviation)
    return found
