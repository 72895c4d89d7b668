"""A result as the content of a report: each part is there if the result has what it takes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.report.content import Content
from edp_bayes.report.pseudonyms import Names, Pseudonyms, namer, worded
from edp_bayes.report.sections import (
    curves,
    individuals,
    mechanisms,
    noise_needed,
    page_one,
    past,
    properties,
    records,
    words,
)
from edp_bayes.report.sections.rules import rules_held
from edp_bayes.results.basis import on_what, resting
from edp_bayes.results.release import Release
from edp_bayes.results.verdict import whole_curve
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Index
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.statistical_privacy.property_query import PropertyQuery

__all__ = ["describe"]


def describe(
    result: PrivacyCurves | PropertyQuery,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    prob: float | None = None,
    names: bool = False,
    key: bytes | str | None = None,
    noise: Any = (),
    title: str | None = None,
    releases: PrivacyCurves | None = None,
    rules: pd.DataFrame | None = None,
) -> Content:
    """Return what a report on a result says.

    Parameters
    ----------
    result : Audit, MechanismAudit, PropertyAudit or PropertyQuery
        What to describe. Sections for which it has no numbers are left out.
    epsilon, delta, prob, names, key, noise, title, releases, rules
        As for `edp_bayes.report.write_report`.

    Returns
    -------
    Content

    Raises
    ------
    InputTypeError, InvalidInputError
        If the result is something else or an argument cannot be used.

    See Also
    --------
    write_report : one file on a result
    edp_bayes.Audit.describe : one paragraph in words
    edp_bayes.Audit.summary : a table of every quantity

    Examples
    --------
    >>> from edp_bayes.statistical_privacy import PropertyQuery
    >>> content = describe(PropertyQuery(100, 0.1), epsilon=0.0)
    >>> content.kind, content.exact
    ('property', True)
    """
    from edp_bayes.results.base import PrivacyCurves

    if title is not None:
        Release(title=title)  # refuses markup and what is no line of text
    if not isinstance(result, PrivacyCurves):
        # Looked at second: its module takes a second to import.
        from edp_bayes.statistical_privacy.property_query import PropertyQuery

        if isinstance(result, PropertyQuery):
            return properties.describe_property(result, epsilon=epsilon, delta=delta, title=title)
        raise InputTypeError(
            "a report is written from an Audit, a MechanismAudit, a PropertyAudit or a "
            f"PropertyQuery, found {type(result).__name__}"
        )
    if "log_ratio" in result.tree["posterior"]:
        raise InvalidInputError(
            "what was verified stands in the report of its audit: audit.report(path, "
            "noise=verification)"
        )
    probability = PROB if prob is None else validate.probability(prob, "prob")
    grid = result.epsilon.to_numpy()
    curve = curves.banded(result, "delta", probability)
    limit = result.upper("delta", prob=probability, kind="simultaneous").to_numpy()
    if epsilon is not None:
        curves.require_inside(grid, epsilon)
    verdict = result.verdict(epsilon=epsilon, delta=delta, prob=probability)
    at = curves.position(grid, verdict.epsilon)
    shown = curves.shown_positions(grid.size, at)
    parts: dict[str, Any] = {}
    if "composition" in result.tree.children:
        parts = _of_releases(result, shown, probability, names=names, key=key)
    elif "individuals" in result.tree.children:
        parts = _of_individuals(result, at, shown, probability, names=names, key=key, noise=noise)
    else:
        # Noise may have been found for the individuals of another result.
        hidden = Names() if names else Pseudonyms(b"", "")
        nameless = partial(worded, named=hidden, known=frozenset())
        parts = {
            "kind": "mechanism" if mechanisms.has_local_epsilon(result) else "property",
            "local": mechanisms.local_epsilons(result, probability, names=names),
            "properties": properties.property_rows(result, at, probability),
            "noise": noise_needed.found(noise, nameless, probability),
            "checks": records.checks(result, str),
        }
    withheld = records.withheld(parts["checks"])  # in its words
    said = whole_curve(result, probability)
    verdict = replace(verdict, reason=withheld or "")
    held = None if rules is None else rules_held(rules)
    first = page_one.page_one(
        result,
        verdict,
        kind=parts["kind"],
        prob=probability,
        checks=parts["checks"],
        noise=parts.get("noise", ()),
        releases=releases,
        rules=held,
    )
    return Content(
        title=title or records.title(result, parts["kind"]),
        prob=probability,
        epsilon=curves.numbers(grid[shown]),
        at=int(np.flatnonzero(shown == at)[0]),
        curve=curves.thinned(curve, shown),
        limit=curves.numbers(limit[shown]),
        verdict=verdict,
        first=first,
        claims=() if withheld else tuple(said[k] for k in shown),
        exact_zeros=result.exact_zeros,
        resting=resting(result),
        withheld=withheld,
        against=result.settings.get("against"),
        words=words.in_words(result, probability),
        crossings=curves.crossings(result, probability),
        assumptions=records.assumptions(result, parts["kind"]),
        settings=records.settings(result),
        rules=held,
        **parts,
    )


def _of_releases(
    result: PrivacyCurves,
    shown: Index,
    prob: float,
    *,
    names: bool,
    key: bytes | str | None,
) -> dict[str, Any]:
    """Return the parts that several releases have together."""
    from edp_bayes.results.composition import ComposedAudit

    composed = result if isinstance(result, ComposedAudit) else ComposedAudit(result.tree)
    named = namer(composed, names=names, key=key)
    said = partial(worded, named=named, known=frozenset())
    return {
        "kind": "composition",
        "total": individuals.total_risk(composed, shown, prob),
        "checks": records.checks(composed, said),
        "pseudonyms": named.described,
    }


def _of_individuals(
    result: PrivacyCurves,
    at: int,
    shown: Index,
    prob: float,
    *,
    names: bool,
    key: bytes | str | None,
    noise: Any,
) -> dict[str, Any]:
    """Return the parts that only a query on individuals has."""
    from edp_bayes.results.query import Audit

    audit = result if isinstance(result, Audit) else Audit(result.tree)
    named = namer(audit, names=names, key=key)
    everybody = labels.plain_list(audit.tree["individuals"]["individual"].to_numpy())
    said = partial(worded, named=named, known=frozenset(map(str, everybody)))
    return {
        "kind": "query",
        "total": individuals.total_risk(audit, shown, prob),
        "people": individuals.people(audit, at, prob, named),
        "distributions": individuals.distributions(audit, at, prob, named),
        "basis": tuple(np.array(on_what(audit, prob))[shown].tolist()),
        "intervals": noise_needed.interval_rows(audit, prob),
        "noise": noise_needed.found(noise, said, prob),
        "enough": noise_needed.enough(audit, shown, rounded=not names),
        "checks": records.checks(audit, said),
        "seen": past.seen(audit, prob, names=names),
        "pseudonyms": named.described,
    }
