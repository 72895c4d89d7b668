"""What a report says of property queries: exact curves, or audits from counts."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.report.content import Content, Crossing, Curve, PropertyRow
from edp_bayes.report.sections.curves import numbers, position, require_inside
from edp_bayes.results.base import TARGETS
from edp_bayes.results.property import PropertyAudit, who_knows
from edp_bayes.results.summaries import interval
from edp_bayes.results.verdict import Target, exact_verdict
from edp_bayes.utils.formatting import number

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.statistical_privacy.property_query import PropertyQuery

__all__ = ["describe_property", "property_rows"]

POINTS = 201

ASSUMPTIONS = (
    "The entries have the property independently of each other, all with the probability that is "
    "given; the adversary knows this probability.",
    "The adversary sees one answer, the share of entries with the property, and asks whether one "
    "critical entry has it. What several answers say together is not covered.",
    "The curve is computed, not estimated: it is as right as the probability that was given.",
)


def describe_property(
    query: PropertyQuery,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    title: str | None = None,
) -> Content:
    """Return what a report on a property query says.

    Parameters
    ----------
    query : PropertyQuery
        What to describe.
    epsilon, delta : float, optional
        The target, epsilon within the range where delta falls to a thousandth.
    title : str, optional
        Heading.

    Raises
    ------
    InvalidInputError
        If epsilon lies outside of that range.
    """
    start = float(query.delta(epsilon=0.0))
    end = float(query.epsilon_at(start / 1000.0)) if start > 0.0 else 1.0
    grid = np.linspace(0.0, end if 0.0 < end < math.inf else 1.0, POINTS)
    values = np.asarray(query.delta(epsilon=grid))
    if epsilon is not None:
        require_inside(grid, epsilon)
    target = Target.of(query.n, epsilon=epsilon, delta=delta)
    value = float(query.delta(epsilon=target.epsilon))
    verdict = exact_verdict(value, target, PropertyAudit.risk, who_knows(query.known))
    ends = [float(query.epsilon_at(target)) for target in TARGETS]
    crossings = [
        Crossing(target, None, end, None, (number(end),))
        for target, end in zip(TARGETS, ends, strict=True)
    ]
    return Content(
        title=title or f"Property query on {query.n:,} entries",
        kind="property",
        prob=1.0,
        epsilon=numbers(grid),
        at=position(grid, target.epsilon),
        verdict=verdict,
        exact_zeros=True,
        curve=Curve(numbers(values)),
        crossings=tuple(crossings),
        assumptions=(*ASSUMPTIONS, *_known(query)),
        settings=(
            ("entries", f"{query.n:,}"),
            ("probability of the property", f"{query.prob:.12g}"),
            ("mechanism", "none" if query.mechanism is None else repr(query.mechanism)),
            ("entries the adversary knows", f"{query.known:,}"),
            ("root mean squared error of the answer", f"{math.sqrt(query.utility_loss()):.6g}"),
            ("edp_bayes", version("edp_bayes")),
        ),
    )


def property_rows(result: PrivacyCurves, at: int, prob: float) -> tuple[PropertyRow, ...]:
    """Return the probability and the delta of every property, the riskiest first."""
    posterior = result.tree["posterior"].to_dataset()
    if "prob" not in posterior:
        return ()
    delta = posterior.get("property_delta", posterior["delta"]).isel(epsilon=at)
    rows = []
    for k, name in enumerate(posterior["property"].to_numpy().tolist()):
        risk = delta.isel(property=k) if "property" in delta.dims else delta
        share = interval(posterior["prob"].isel(property=k).to_numpy(), prob)
        rows.append(PropertyRow(str(name), share, interval(risk.to_numpy(), prob)))
    return tuple(sorted(rows, key=lambda row: -row.delta[1]))


def _known(query: PropertyQuery) -> tuple[str, ...]:
    if query.known == 0:
        return ("The adversary knows none of the entries.",)
    how = (
        "in the worst case"
        if query.known_positive is None
        else f"of which {query.known_positive:,} have the property"
    )
    return (f"The adversary knows {query.known:,} of the other entries, {how}.",)
