"""Whether the model of contributions expects one as large as the largest there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.diagnostics.checks import Checks, PendingTest, decide, threshold
from edp_bayes.utils import validate
from edp_bayes.utils.formatting import number, rounded_up

if TYPE_CHECKING:
    from edp_bayes.coupling.contributions.posterior import ContributionSource
    from edp_bayes.responses.responses import Responses

__all__ = ["check_largest"]

LARGEST = "largest contribution"
REPLICATES = 100
# A size and spread of their own for everybody make the largest of many a little too large: tails
# are said to be too heavy where the typical replicate is this many times what there is.
MUCH = 2.0
MOST_NUMBERS = 30_000_000  # contributions drawn; more are not
WIDER = (
    "Its tails are heavier than the data: the largest risk may be that of a tail, and limits too "
    "large."
)
NARROWER = "Its tails are lighter than the data: individuals alike to that one may risk more."


def check_largest(
    posterior: ContributionSource,
    responses: Responses,
    random_seed: int | np.random.Generator | None = None,
    *,
    level: float = 0.05,
) -> Checks:
    """Compare the largest contribution with the largest of replicates.

    Each of 100 draws of the posterior makes one replicate: of every individual as many
    contributions as they made, to the same databases. The p-value is one-sided, that the largest
    there is is larger than replicates; it fails, too, where the median replicate is twice as large.

    Parameters
    ----------
    posterior : ContributionSource
        How everybody contributes.
    responses : Responses
        What it was fitted to.
    random_seed : int or Generator, optional
        Seed; the same one gives the same p-value.
    level : float
        Probability of a false alarm.

    Returns
    -------
    Checks
        The check `largest contribution`; none where there are more than 300,000 contributions, or
        some that were not collected.

    References
    ----------
    Gelman, Meng, Stern (1996), Posterior predictive assessment of model fitness via realized
    discrepancies, Statistica Sinica 6, 733-807.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> from edp_bayes.coupling.contributions.posterior import ContributionPosterior
    >>> rng = np.random.default_rng(1)
    >>> c = rng.normal(0.5, 0.1, (40, 3))
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(size=40) + c.sum(axis=1), contribution=c
    ... )
    >>> check_largest(ContributionPosterior.fit(responses, 1), responses, 1).passed
    True
    """
    level = validate.probability(level, "level")
    c, owner = responses.collected, responses.owner
    if responses.remainder is not None or not 0 < c.nnz <= MOST_NUMBERS // REPLICATES:
        return Checks((), level)
    rng = validate.generator(random_seed)
    draws = posterior.draw(np.arange(responses.n_individuals), REPLICATES)
    rest = responses.response[c.indices] - c.data
    replicated = np.empty(REPLICATES)
    for k in range(REPLICATES):
        a, b, spread = (part[k, owner] for part in (draws.intercept, draws.slope, draws.spread))
        found = a + b * rest + spread * rng.standard_normal(c.nnz)
        replicated[k] = np.abs(found).max()
    observed = float(np.abs(c.data).max())
    low, middle, high = np.quantile(replicated, [0.025, 0.5, 0.975])
    # a report may be handed on, and an exact amount would tell more than an answer does
    shown = rounded_up(observed)
    numbers = f"{number(shown)}, 95% of replicates from {number(low, 2)} to {number(high, 2)}"
    said = "The largest contribution is {} what the model of contributions expects"
    if middle > MUCH * observed:
        text = f"{said.format('far below')}: {numbers}"
        return Checks((threshold(LARGEST, shown, False, text, WIDER),), level)
    above = float((replicated >= observed).sum() + 1) / (REPLICATES + 1)
    test = PendingTest(LARGEST, shown, above, numbers, said.format("above"), NARROWER)
    return Checks(decide([test], level), level)
