"""How closely an answer tells the amount of an individual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.results.summaries import contributions_shown
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["SHARE", "amount_errors"]

# An amount that is known to within this share of itself is taken to be learned: the customary p of
# the p% rule.
SHARE = 0.1
POINTS, TAIL = 2000, 12.0


def amount_errors(audit: Audit, prob: float) -> Array | None:
    """Return draws of half the predictive interval of the answer over the largest contribution.

    An adversary who expects the answer without an individual at its median learns the amount from
    the difference, with the error of that expectation: half the equal-tailed interval of this
    probability.

    Parameters
    ----------
    audit : Audit
        Of one query.
    prob : float
        Probability of the predictive interval.

    Returns
    -------
    ndarray or None
        Shape (draw,), in amounts; None where contributions or intervals are not known in units of
        the answer, or nobody contributes.
    """
    if audit.joint or not audit.intervals_known or audit.transform:
        return None
    contribution, name = contributions_shown(audit)
    sizes = np.abs(contribution.to_numpy())
    if not name.startswith("largest") or sizes.size == 0 or float(sizes.max()) == 0.0:
        return None
    position = int(np.argmax(sizes))
    # of who makes up most of the answer, that of the answers without them
    mixture = audit.without.get(position, audit.mixture)
    centre, spread = mixture.mean(), np.sqrt(mixture.variance())
    low, high = (centre - TAIL * spread).min(), (centre + TAIL * spread).max()
    grid = np.linspace(low, high, POINTS)
    below = mixture.cdf(grid).reshape(-1, POINTS)
    tail = 0.5 * (1.0 - prob)
    ends = np.array([np.interp([tail, 1.0 - tail], row, grid) for row in below])
    return np.asarray((ends[:, 1] - ends[:, 0]) / (2.0 * float(sizes.max())))
