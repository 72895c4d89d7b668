"""What the adversary has seen, and what they expected of each database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.report.content import Band, SeenSeries
from edp_bayes.report.sections.curves import numbers
from edp_bayes.results.past import INNER, past_of

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["seen"]


def seen(audit: Audit, prob: float, *, names: bool) -> SeenSeries | None:
    """Return the series of an adversary; None where there is none.

    None, too, under pseudonyms where insiders' contributions were subtracted: beside the released
    responses the series would tell what they contributed.
    """
    if not audit.against:
        return None
    inner = INNER if prob > INNER else INNER * prob
    past = past_of(audit, (inner, prob))
    if past.less and not names:
        return None

    def band(level: float) -> Band:
        return Band(*(numbers(end.to_numpy()) for end in past.interval(level)))

    return SeenSeries(
        responses=numbers(past.seen.to_numpy()),
        first=past.first + 1,
        median=numbers(past.median.to_numpy()),
        inner=band(inner),
        inner_prob=inner,
        outer=band(prob),
        at=past.at,
        label=past.label,
        less=past.less,
    )
