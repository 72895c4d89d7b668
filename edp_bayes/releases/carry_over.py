"""How contributions carry over where later databases follow what the others contributed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.releases.composing import SingleSource
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.releases.composing import Source
    from edp_bayes.results.query import Audit

__all__ = ["OTHERS", "RELEASED", "carry_over_of", "checked_past", "with_carry_over"]

RELEASED, OTHERS = PASTS = ("released", "others")


def checked_past(past: str) -> str:
    """Return what later databases follow, or say what it may be."""
    if past not in PASTS:
        raise InvalidInputError(f"past must be one of {', '.join(PASTS)}, found {past!r}")
    return past


def _reach(audit: Audit, count: int) -> int:
    """Return how many lags reach one of so many databases from another."""
    if "known" not in audit.tree.children:
        return 0
    return min(int(audit.tree["known"].attrs["past"]), count - 1)


def _lags(audit: Audit, reach: int) -> Array:
    """Return the coefficients of the first lags, (chain * draw, lag)."""
    slopes = audit.tree["known"]["coefficients"].transpose("chain", "draw", "term")
    return np.asarray(slopes.to_numpy()[..., :reach].reshape(-1, reach))


def with_carry_over(source: Source, audit: Audit, chosen: Index) -> Source:
    """Return what is composed, with the carry-over of contributions to later databases.

    Upper bounds are of contributions that are as much larger as the carry-over may make them, where
    each answer tells its component of the mixture; what tests reach is of what is left of them.
    """
    from edp_bayes.coupling.views.enlarged import CarryOver, carried_over

    reach = _reach(audit, source.count)
    if reach < 1:
        return source
    if audit.joint:
        raise InvalidInputError(
            "no bound is computed of how contributions to several queries carry over to later "
            "releases, since each moves the later answers to all of them, in directions of their "
            "own: give past='released' to compare with the past as it was released, or audit "
            "without a past"
        )
    assert isinstance(source, SingleSource)
    slopes, single = _lags(audit, reach)[chosen], source.coupling
    most, least = (
        carried_over(single, factors(slopes)) for factors in (CarryOver.most, CarryOver.least)
    )
    if isinstance(single, ReleasedCoupling):
        # of what is left, no more is told than what is published
        least = replace(single, full=least)
    return replace(source, coupling=most, least=least)


def carry_over_of(audit: Audit, count: int) -> float:
    """Return by how much the carry-over enlarges contributions at most, the mean of all draws.

    One where there are none, infinity where there is no bound.
    """
    from edp_bayes.coupling.views.enlarged import CarryOver

    reach = _reach(audit, count)
    if reach < 1:
        return 1.0
    if audit.joint:
        return np.inf
    return float(CarryOver.most(_lags(audit, reach)).sometimes.mean())
