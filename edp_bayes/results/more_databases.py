"""How many databases would decide an undecided target, as far as a single result says."""

from __future__ import annotations

import math
from typing import NamedTuple

from edp_bayes.utils.formatting import about, number, rounded_up

__all__ = ["Needed", "needed"]

# What the number follows from.
WIDTH = "the band narrows as the root of their number grows (edp_bayes.plan simulates them)"
MOST = 1000.0  # times the databases that there are: nobody plans for more


class Needed(NamedTuple):
    """How many databases would decide, and that in a sentence.

    Attributes
    ----------
    databases : int or None
        The number, to two digits; None where more databases may as well show the contrary.
    sentence : str
        What is said.
    """

    databases: int | None
    sentence: str


def needed(limit: float, median: float, lower: float, target: float, databases: int) -> Needed:
    """Return how many databases would decide whether delta is at most a target.

    delta is a maximum over individuals, and of few databases its posterior median lies above what
    more of them find. So the middle between the lower end and the median is taken for that, and the
    limit to approach it in inverse proportion to the root of the number of databases, as a standard
    error does: with n databases, and n' of them, it is middle + (limit - middle) sqrt(n / n').

    Parameters
    ----------
    limit, median, lower : float
        Upper limit and posterior median of delta, and the lower end of its band.
    target : float
        The delta asked for, below the limit.
    databases : int
        How many there are.

    Examples
    --------
    >>> needed(0.3, 0.15, 0.05, 0.2, 40).databases
    160
    >>> needed(0.3, 0.15, 0.05, 0.1, 40).databases is None
    True
    """
    middle = 0.5 * (median + lower)
    if target <= middle:
        return Needed(
            None,
            "The target is nearer to the lower end of the band than to the posterior median, "
            f"{about(median)}: more databases may well show that it is not met.",
        )
    times = ((limit - middle) / (target - middle)) ** 2
    if times > MOST:
        return Needed(
            None, f"More than {number(MOST * databases)} databases would have to decide: {WIDTH}."
        )
    count = math.ceil(rounded_up(times * databases))
    return Needed(count, f"About {count:,} databases would decide: {WIDTH}.")
