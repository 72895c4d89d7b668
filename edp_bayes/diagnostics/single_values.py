"""Whether answers become one value again and again, which no density allows for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.diagnostics.individuals import MOST_LEVELS
from edp_bayes.responses.atoms import FEWEST_TIES, at_values, tied_ends
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.formatting import risk, risk_limit
from edp_bayes.utils.sentences import Sentence, name_of
from edp_bayes.utils.shares import highest_share
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["check_atoms"]

PROB = 0.95


def check_atoms(responses: Responses, *, epsilon: Array, upper: Array) -> Checks:
    """Look for a value that answers have again and again with an individual, or without them alone.

    Looked at are zero and the smallest and the largest answer, with or without an individual, as
    for `atoms="found"`. A density gives no probability to a single value. How much more often than
    exp(epsilon) times an answer is exactly that value without the individual than with them, or the
    other way round, is a risk by itself. The check fails where the upper limit of 95% of that share
    (Clopper and Pearson) is more than the upper limit of the largest risk, if it happened in at
    least three databases.

    Nothing is looked for where atoms are named, where answers are rounded or counts, or where they
    have several samples or noise.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses as they were, of all databases.
    epsilon, upper : ndarray
        Shape (epsilon,): the grid and the upper limit of delta.

    Returns
    -------
    Checks
        The check `atoms`, where it fails; its statistic is the share of databases.

    See Also
    --------
    check_grid : whether answers without an individual lie on a grid
    edp_bayes.Responses : answers, and atoms of their distribution
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> rest = np.where(np.arange(40) % 3 == 0, 0.0, rng.gamma(4.0, 1.0, 40))
    >>> answer = rest + rng.gamma(4.0, 0.2, 40)
    >>> data = edp.Responses.from_arrays(answer, response_without=rest[:, None])
    >>> grid = np.array([0.5])
    >>> check_atoms(data, epsilon=grid, upper=np.array([0.3]))["atoms"].passed
    False
    >>> check_atoms(data, epsilon=grid, upper=np.array([0.6])).checks
    ()
    """
    if (
        responses.atoms is not None
        or responses.half_step is not None
        or responses.samples > 1
        or responses.noise is not None
    ):
        return Checks((), 0.0)
    y, n = responses.response, responses.n_databases
    values = np.union1d(tied_ends(y, responses.collected), 0.0)
    found = at_values(responses, values)
    some = np.flatnonzero((np.abs(found.falls - found.leaves) >= FEWEST_TIES).any(axis=1))
    if not some.size:
        return Checks((), 0.0)
    with_them = np.broadcast_to(found.count, (some.size, values.size))
    without = with_them + found.falls[some] - found.leaves[some]
    levels = spread_evenly(epsilon.size, MOST_LEVELS)
    growth = np.exp(epsilon[levels])[:, None, None]
    excess = np.maximum(without - growth * with_them, with_them - growth * without)
    limit = np.where(excess >= FEWEST_TIES, highest_share(np.maximum(excess, 0.0), n, PROB), 0.0)
    over = limit - upper[levels, None, None]
    level, row, place = np.unravel_index(int(over.argmax()), over.shape)
    if over[level, row, place] <= 0.0:
        return Checks((), 0.0)
    at = levels[level]
    text = Sentence(
        f"The answer is exactly {values[place]:.12g} in {int(without[row, place])} of {n} "
        "databases without individual ",
        name_of(responses.individual, int(some[row])),
        f", and in {int(with_them[row, place])} with them. That alone may be a risk of "
        f"{risk(float(limit[level, row, place]))} at epsilon = {epsilon[at]:g}, the upper limit of "
        f"the largest risk is {risk_limit(float(upper[at]))}",
    )
    advice = (
        f"Name the value as an atom: responses.replaced(atoms=[{values[place]:.12g}]) (--atoms)."
    )
    share = float(excess[level, row, place]) / n
    return Checks((threshold("atoms", share, False, text, advice),), 1.0 - PROB)
