"""Whether the distribution without a dominant individual was taken out of that with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.dominance import LEAST_SHARE, dominant_individuals
from edp_bayes.coupling.contributions.drawn import DrawnContributions
from edp_bayes.coupling.curves.one_answer import LARGEST_SHARE, variance_taken
from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.coupling.regression import RegressionCoupling
    from edp_bayes.responses.responses import Responses

__all__ = ["check_dominant"]

DOMINANT = "dominant"
MOST_CUT = 0.05  # of a draw's components, on average, from which no more could be taken
ADVICE = (
    "Their risk may be larger than it says. DirichletProcessMixture(), the default, and "
    "FullPosterior() draw that distribution from the responses without them."
)


def check_dominant(responses: Responses, coupling: RegressionCoupling) -> Checks:
    """Check that the distribution without a dominant individual was drawn apart.

    Where their contributions have at least half the variance of the response, what these leave of
    it is a small difference of large variances. A model that states contributions of its own may
    know that difference: it fails where more than 5% of its components, by weight, would lose more
    than 90% of their variance, which is as much as is taken.

    Parameters
    ----------
    responses : Responses
        What the density is of.
    coupling : RegressionCoupling
        Of a density to how individuals contribute.

    Returns
    -------
    Checks
        The check `dominant`, where it fails; its statistic is the number of individuals.
    """
    found = [
        person
        for person in dominant_individuals(responses).tolist()
        if person not in coupling.without
        and (
            not isinstance(coupling.posterior, DrawnContributions)
            or _cut(coupling, person) > MOST_CUT
        )
    ]
    if not found:
        return Checks((), 0.0)
    text = Sentence(
        "Individual ",
        name_of(responses.individual, found[0]),
        f" has at least {LEAST_SHARE:.0%} of the variance of the response, and the distribution "
        "without them is what their contributions leave of it, a small difference",
    )
    return Checks((threshold(DOMINANT, float(len(found)), False, text, ADVICE),), 0.0)


def _cut(coupling: RegressionCoupling, person: int) -> float:
    """Return the weight of components from which less is taken than an individual contributes."""
    mixture, draws = coupling.mixture, coupling.n_draws
    weights, locations, scales = (
        part.reshape(draws, -1) for part in (mixture.weights, mixture.locations, mixture.scales)
    )
    rho, a, b, spread = (part[:, 0] for part in coupling.contributions(np.array([person])))
    _, taken = variance_taken(locations, rho, a[:, None], b[:, None], spread[:, None] ** 2)
    unit = 1.0 if mixture.kernel == "gaussian" else 2.0
    cut = taken > LARGEST_SHARE * unit * scales**2
    return float((weights * cut).sum(axis=-1).mean())
