"""How contributions carry over where later databases follow what the others contributed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.releases.composing import CarriedSource, SingleSource, whole_answers
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
    """Return the coefficients of the first lags, (chain * draw, lag).

    Of several queries matrices in whitened units, (chain * draw, lag, to, from).
    """
    slopes = audit.tree["known"]["coefficients"].transpose("chain", "draw", "term", ...).to_numpy()
    if not audit.joint:
        return np.asarray(slopes[..., :reach].reshape(-1, reach))
    d = slopes.shape[-1]
    lags = np.swapaxes(slopes[..., : reach * d, :].reshape(-1, reach, d, d), -1, -2)
    factor = whole_answers(audit.fit).units.factor
    return np.asarray(np.linalg.solve(factor, lags @ factor))


def with_carry_over(source: Source, audit: Audit, chosen: Index) -> Source:
    """Return what is composed, with the carry-over of contributions to later databases.

    Upper bounds are of contributions that are as much larger as the carry-over may make them, where
    each answer tells its component of the mixture; what tests reach is of what is left of them.
    """
    from edp_bayes.coupling.views.enlarged import CarryOver, carried_over

    reach = _reach(audit, source.count)
    if reach < 1:
        return source
    slopes = _lags(audit, reach)[chosen]
    if audit.joint:
        return CarriedSource.of(source, slopes)
    assert isinstance(source, SingleSource)
    single = source.coupling
    most, least = (
        carried_over(single, factors(slopes)) for factors in (CarryOver.most, CarryOver.least)
    )
    if isinstance(single, ReleasedCoupling):
        # of what is left, no more is told than what is published
        least = replace(single, full=least)
    return replace(source, coupling=most, least=least)


def carry_over_of(audit: Audit, count: int) -> float:
    """Return by how much the carry-over enlarges contributions at most, the mean of all draws.

    One where there are none.
    """
    from edp_bayes.coupling.views.carried_answers import CarriedAnswers
    from edp_bayes.coupling.views.enlarged import CarryOver

    reach = _reach(audit, count)
    if reach < 1:
        return 1.0
    lags = _lags(audit, reach)
    if audit.joint:
        return float(CarriedAnswers(whole_answers(audit.fit), lags).factor.mean())
    return float(CarryOver.most(lags).sometimes.mean())
