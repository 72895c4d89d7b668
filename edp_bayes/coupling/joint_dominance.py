"""Individuals who make up most of the variance of some combination of several responses.

As `edp_bayes.coupling.dominance`: what remains of the combination without them is a small
difference of large variances, so the density model is fitted to the responses without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.dominance import LEAST_SHARE, MOST
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.records.joined import outer
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.records.joined import JointResponses

__all__ = ["dominant", "joint_without"]


def dominant(responses: JointResponses, units: Units) -> NDArray[np.int64]:
    """Return whose contributions have at least half the variance in some direction, at most three.

    Those of the largest share first.
    """
    found = responses.contribution
    c, n = units.shrink(found.value), responses.n_databases
    middle, square = found.total(c) / n, found.total(outer(c)) / n
    share = np.linalg.eigvalsh(square - outer(middle))[:, -1]
    order = np.argsort(-share, kind="stable")[:MOST]
    return np.asarray(order[share[order] >= LEAST_SHARE], dtype=np.int64)


def joint_without(
    responses: JointResponses,
    units: Units,
    draw: Callable[[Array, Units, str], NormalMixture],
    *,
    leave: Sequence[int] = (),
) -> dict[int, NormalMixture]:
    """Return the distribution of the responses without each dominant individual, in these units.

    Parameters
    ----------
    responses : JointResponses
        With and without each individual.
    units : Units
        Those of the result.
    draw : callable
        Takes responses (n, d), their own units and the name of a stream, and returns draws in
        their own units.
    leave : sequence of int
        Whose responses depend linearly without them: nothing is drawn for these.
    """
    found = {}
    for person in map(int, dominant(responses, units)):
        if person in leave:
            continue
        rest = responses.response.copy()
        database, value = responses.contribution.of(person)
        rest[database] -= value
        own = Units.of(rest)
        stream = f"without {labels.as_text(responses.individual[person])}"
        found[person] = draw(rest, own, stream).in_units(own).whitened(units)
    return found
