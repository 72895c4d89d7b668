"""Whether the risk of each individual is what their own contributions say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.exposure import raw_exposure
from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.formatting import risk, risk_limit
from edp_bayes.utils.sentences import Sentence, name_of
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["NAME", "check_individuals", "conflict_ratios", "conflicts"]

NAME = "individuals"
MOST_RATIO = 3.0  # of what is observed to the upper limit of what is modelled
MATERIAL = 1e-2  # differences below this are no conflict: distributions have tails of many kinds
MOST_NAMED = 3
MOST_LEVELS = 5  # values of epsilon at which they are compared


def check_individuals(
    responses: Responses | JointResponses, *, epsilon: Array, upper: Array, pooled: bool = True
) -> Checks:
    """Compare every individual's own exposure with the upper limit of the largest risk.

    The exposure is what the contributions of one individual say without anybody else's and
    without the density model (`edp_bayes.coupling.contributions.exposure.raw_exposure`). If it is
    more than three times the upper limit of the largest risk and a hundredth, the model does not
    allow for what was observed: the check fails and names the individual, at most three of them.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.
    epsilon, upper : ndarray
        Shape (epsilon,): the grid and the upper limit of delta.
    pooled : bool
        The model draws individuals towards each other.

    Returns
    -------
    Checks
        The check `individuals`; its statistic is the largest ratio of an exposure to the upper
        limit and a third of a hundredth.

    See Also
    --------
    edp_bayes.Audit.plot_individuals : the riskiest individuals of an audit
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> contribution = np.zeros((40, 2))
    >>> contribution[:5, 0], contribution[:, 1] = 100.0, 0.01
    >>> response = np.random.default_rng(1).normal(size=40) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> check_individuals(data, epsilon=np.array([0.5]), upper=np.array([0.2])).passed
    True
    >>> check_individuals(data, epsilon=np.array([0.5]), upper=np.array([0.001])).passed
    False
    """
    some = spread_evenly(epsilon.size, MOST_LEVELS)
    exposure = raw_exposure(responses, epsilon[some])
    ratio = conflict_ratios(exposure, upper[some])
    person, level = np.unravel_index(int(ratio.argmax()), ratio.shape)
    largest = float(ratio[person, level])
    text = f"The own contributions of every individual say at most {largest:.2g} times the upper "
    text += "limit of the largest risk"
    if largest > MOST_RATIO:
        text = conflict_sentence(
            responses,
            conflicts(ratio),
            float(epsilon[some][level]),
            float(exposure[person, level]),
            float(upper[some][level]),
        )
    passed = largest <= MOST_RATIO
    check = threshold(
        NAME,
        largest,
        passed,
        text,
        "See what SmoothedBootstrap() (--model bootstrap) says, which pools nobody."
        if pooled
        else "The risk of those who stand out rests on few databases: ask for more of them.",
    )
    return Checks((check,), 0.0)


def conflict_ratios(exposure: Array, upper: Array) -> Array:
    """Return the ratios of exposures to the upper limit and a third of a hundredth."""
    return np.asarray(exposure / (upper + MATERIAL / MOST_RATIO))


def conflicts(ratio: Array) -> Index:
    """Return whose exposure is more than three times the limit anywhere, the worst first."""
    worst = ratio.max(axis=1)
    order = np.argsort(-worst, kind="stable")
    return np.asarray(order[worst[order] > MOST_RATIO], dtype=np.int64)


def conflict_sentence(
    responses: Responses | JointResponses,
    people: Index,
    epsilon: float,
    exposure: float,
    upper: float,
) -> Sentence:
    """Say who is more exposed than a model allows, and by how much."""
    names = [name_of(responses.individual, person) for person in people[:MOST_NAMED]]
    others = [part for name in names[1:] for part in ("; so does individual ", name)]
    more = f"; and {people.size - len(names)} more do" if people.size > len(names) else ""
    return Sentence(
        "Individual ",
        names[0],
        f" contradicts the model: contributions in {responses.presence[people[0]]} of "
        f"{responses.n_databases} databases say {risk(exposure)} at epsilon = {epsilon:g}, the "
        f"upper limit of the largest risk is {risk_limit(upper)}",
        *others,
        more,
    )
