"""How close to its median a query's response stays, and what noise would do the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.report.content import IntervalRow
from edp_bayes.report.curves import interval

if TYPE_CHECKING:
    from edp_bayes.result import Audit

__all__ = ["interval_rows"]


def interval_rows(audit: Audit, prob: float) -> tuple[IntervalRow, ...]:
    """Return interval_level and interval_epsilon at the widths of an audit's summary."""
    from edp_bayes.response_intervals import WIDTHS, interval_quantities

    around = interval_quantities(audit, WIDTHS)
    return tuple(
        IntervalRow(
            width,
            interval(around["interval_level"].sel(width=width), prob),
            interval(around["interval_epsilon"].sel(width=width), prob),
        )
        for width in WIDTHS
    )
