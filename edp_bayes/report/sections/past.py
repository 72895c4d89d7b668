"""What the adversary has seen, and what they expected of each database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.report.content import Band, SeenSeries
from edp_bayes.report.sections.curves import numbers
from edp_bayes.results.past import INNER, Past, past_of

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["seen"]


def seen(audit: Audit, prob: float, *, names: bool) -> tuple[SeenSeries, ...]:
    """Return the series of an adversary, of each query; none where there is no adversary.

    None, too, under pseudonyms where insiders' contributions were subtracted: beside the released
    responses the series would tell what they contributed.
    """
    if not audit.against:
        return ()
    queries: list[str | None] = [None]
    if audit.joint:
        queries = list(map(str, audit.tree["known"]["query"].to_numpy()))
    inner = INNER if prob > INNER else INNER * prob
    every = [(query, past_of(audit, (inner, prob), query)) for query in queries]
    if any(past.less for _, past in every) and not names:
        return ()
    return tuple(
        _series(past, query or "", inner, prob, audit.modelled_answer) for query, past in every
    )


def _series(past: Past, query: str, inner: float, prob: float, axis: str) -> SeenSeries:

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
        query=query,
        axis=axis,
        dates=past.dates,
    )
