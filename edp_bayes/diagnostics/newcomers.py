"""Whether the verdict rests on newcomers who leave again, of which the data say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.exposure import raw_exposure
from edp_bayes.coupling.contributions.spells import newcomers, runs
from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.diagnostics.individuals import MOST_LEVELS, conflict_ratios
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.formatting import risk, risk_limit
from edp_bayes.utils.sentences import Sentence, name_of
from edp_bayes.utils.shares import highest_share
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["check_newcomers"]

PROB = 0.95
ADVICE = "Ask for later databases, which show whether they do."


def check_newcomers(
    responses: Responses | JointResponses,
    records: Responses | JointResponses,
    *,
    epsilon: Array,
    upper: Array,
    fewest: int = 2,
    regressors: int = 0,
) -> Checks:
    """Ask what newcomers would risk if they stayed as surely as the data allow.

    Newcomers were in all of the last k databases and in none before. How likely they are to be in
    the next one is seen in others alone, who had been there k times in a row, and in their own
    k - 1 databases after the first. The probability that they stay is at most its upper limit of
    95% (Clopper and Pearson); without others it is one. With that presence their contributions say
    a risk, beside a normal distribution whose standard deviation is the lower limit of 95%. The
    check fails where that is more than the upper limit of the largest risk. Newcomers are looked
    for among individuals whose contributions were collected.

    Parameters
    ----------
    responses : Responses or JointResponses
        Leave-one-out responses as they are modelled.
    records : Responses or JointResponses
        The same of all databases, in the order of time, as they were.
    epsilon, upper : ndarray
        Shape (epsilon,): the grid and the upper limit of delta.
    fewest : int
        In how many databases newcomers must have been: one says nothing where the order of the
        databases is not part of the model.
    regressors : int
        What was estimated from the databases beside the spread.

    Returns
    -------
    Checks
        The check `newcomers`, where it fails; its statistic is the largest ratio of such a risk to
        the upper limit.

    See Also
    --------
    check_individuals : whether risks are what contributions say
    edp_bayes.Adversary : who knows when an individual was last there
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> contribution = np.zeros((40, 1))
    >>> contribution[-2:] = 2.0
    >>> response = np.random.default_rng(1).normal(size=40) + contribution[:, 0]
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> grid = np.array([0.5])
    >>> check_newcomers(data, data, epsilon=grid, upper=np.array([0.1]))["newcomers"].passed
    False
    >>> check_newcomers(data, data, epsilon=grid, upper=np.array([0.95])).checks
    ()
    """
    from scipy.special import chdtri

    n = records.n_databases
    owner, place = np.divmod(records.presence_cells, n)
    run = newcomers(owner, place, records.n_individuals, n)
    new = run >= fewest
    if not new.any():
        return Checks((), 0.0)
    stayed, of = runs(owner, place, n)
    presence = np.bincount(owner, minlength=run.size) / n
    for length in np.unique(run[new]):
        own = int(length) - 1
        limit = highest_share(stayed[length] + own, int(of[length]) + own, PROB)
        presence[run == length] = float(limit)
    some = spread_evenly(epsilon.size, MOST_LEVELS)
    degrees = max(responses.n_databases - 1 - regressors, 1)
    narrow = float(np.sqrt(chdtri(degrees, PROB) / degrees))
    exposure = raw_exposure(responses, epsilon[some], presence=presence, narrower=narrow)
    ratio = np.where(new[:, None], conflict_ratios(exposure, upper[some]), 0.0)
    person, level = np.unravel_index(int(ratio.argmax()), ratio.shape)
    largest = float(ratio[person, level])
    if largest <= 1.0:
        return Checks((), 0.0)
    k = int(run[person])
    others = int(of[k])
    seen = (
        f"{int(stayed[k]):,} of {others:,} others stayed after as many in a row"
        if others
        else "nobody else shows how often such people stay"
    )
    text = Sentence(
        "Individual ",
        name_of(records.individual, int(person)),
        f" is new: in {'the last database' if k == 1 else f'each of the last {k} databases'} and "
        f"in none before; {seen}. If they stay with the probability of {presence[person]:.2g} that "
        f"is not excluded, they risk up to {risk(float(exposure[person, level]))} at epsilon = "
        f"{epsilon[some][level]:g}, the upper limit of the largest risk is "
        f"{risk_limit(float(upper[some][level]))}",
    )
    return Checks((threshold("newcomers", largest, False, text, ADVICE),), 1.0 - PROB)
