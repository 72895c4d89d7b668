"""Individuals who make up most of the response's variance: p from the distribution without them.

What remains of the response without such an individual is a small difference of large variances,
which the distribution of the response cannot tell. The responses without them are observed, so the
density model is fitted to these, and their contributions are added back, see
`edp_bayes.coupling.regression.RegressionCoupling`. Of several queries it is the variance of some
combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.exposure import CONSTANT, units_of
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.responses.entries import outer
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["dominant_individuals", "fit_without", "responses_without"]

LEAST_SHARE = 0.5
MOST = 3


def dominant_individuals(responses: Responses | JointResponses) -> Index:
    """Return whose contributions have at least half the variance of the response, at most three.

    Parameters
    ----------
    responses : Responses or JointResponses
        Leave-one-out responses; of several queries half the variance in some direction.

    Returns
    -------
    ndarray of int
        Positions, those of the largest share first.

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
    units, found, rows = units_of(responses), responses.entries, len(responses.response)
    c = units.shrink(found.value)
    middle, square = found.total(c), found.total(outer(c))
    if (others := responses.remainder) is not None:
        unit = units.factor[0, 0]
        middle[others.individuals, 0] = others.contribution / unit
        square[others.individuals, 0, 0] = others.contribution_square / unit**2
    about = square - outer(middle) / rows
    share = np.linalg.eigvalsh(about)[:, -1] / (rows - 1.0)  # the units' variance is of n - 1
    order = np.argsort(-share, kind="stable")[:MOST]
    return np.asarray(order[share[order] >= LEAST_SHARE], dtype=np.int64)


def responses_without(
    responses: Responses | JointResponses, individuals: Index
) -> Iterator[tuple[int, Array, str]]:
    """Yield individuals, the responses without each, and the name of a stream for each."""
    for person in map(int, individuals):
        label = responses.individual[person]
        yield person, responses.response_without(label), f"without {labels.as_text(label)}"


def fit_without(
    responses: Responses,
    shape: tuple[int, int],
    draw: Callable[[Array, str], Mixture],
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
    """
    deviation = float(responses.response.std())
    found = {}
    for person, rest, stream in responses_without(responses, dominant_individuals(responses)):
        if np.ptp(rest) > CONSTANT * deviation:
            found[person] = draw(rest.reshape(-1, responses.samples), stream)
        else:
            place = np.full((*shape, 1), rest.mean())
            found[person] = Mixture(1.0, place, CONSTANT * deviation)
    return found
