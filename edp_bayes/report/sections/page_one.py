"""The first page: what is released, to whom, three risks, what was tried, and who decides.

In the order of ISO/IEC 27559: context, data, risk, mitigation, decision. The three risks are those
of European regulators (Opinion 05/2014 of the Article 29 Working Party): singling out, linkability,
inference.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.report.content import CheckRow, Fact, NoiseFound, PageOne, RiskRow, RulesHeld
from edp_bayes.report.sections.rules import rules_fact
from edp_bayes.report.sections.words import guessed_right
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.effects import ADVISES, WITHHOLDS, shown
from edp_bayes.results.inference import KNOWN_TO, SHARE, amount_errors
from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET, UNDECIDED, Verdict
from edp_bayes.utils.formatting import number, percent, risk_least, risk_limit

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.release import Release

__all__ = ["page_one", "release_facts"]

NO_CLAIM = "no claim: a check withholds it"
NOT_STATED, NOT_ASSESSED = "not stated", "not assessed"
ONE_RELEASE = (
    "one answer, of one database; the unit of privacy is an individual with all of their records "
    "in it"
)
NOT_COVERED = "what they know beyond that; what later releases add, unless it is named below"
ALONE = "one release; compose audits several together"


def page_one(
    result: PrivacyCurves,
    verdict: Verdict,
    *,
    kind: str,
    prob: float,
    checks: tuple[CheckRow, ...],
    noise: tuple[NoiseFound, ...],
    releases: PrivacyCurves | None = None,
    rules: RulesHeld | None = None,
) -> PageOne:
    """Return the first page of a report.

    Parameters
    ----------
    result : PrivacyCurves
        What was audited.
    verdict : Verdict
        Its answer to the target.
    kind : str
        As for `Content`.
    prob : float
        Probability of every limit and band.
    checks : tuple of CheckRow
        Every check, in the report's words.
    noise : tuple of NoiseFound
        Noise that was calibrated.
    releases : PrivacyCurves, optional
        Several releases of the same query together.
    rules : RulesHeld, optional
        Customary rules that the answers were held to.
    """
    failed = [check for check in checks if check.passed is False]
    withholding, advising = (
        tuple(dict.fromkeys(shown(check.name) for check in failed if check.effect == effect))
        for effect in (WITHHOLDS, ADVISES)
    )
    return PageOne(
        facts=_facts(result, kind) if rules is None else (*_facts(result, kind), rules_fact(rules)),
        rows=_rows(result, verdict, kind, prob, releases),
        withholding=withholding,
        advising=advising,
        tried=_tried(verdict, noise),
        fingerprint=str(result.settings.get("fingerprint", ""))[:16],
        prepared_by=result.release.prepared_by,
        next_review=result.release.next_review,
    )


def release_facts(release: Release, what: str) -> tuple[Fact, ...]:
    """Return what is released, by whom, to whom and over what period."""
    return (
        Fact("Released", what),
        Fact("By whom", release.publisher or NOT_STATED),
        Fact("To whom", release.audience or "anybody"),
        Fact("Period", release.period or NOT_STATED),
    )


def _facts(result: PrivacyCurves, kind: str) -> tuple[Fact, ...]:
    release, settings = result.release, result.settings
    individuals = settings.get("individuals")
    known = {"databases", "samples"} & settings.keys()
    subject, size = result.subject if known else (NOT_STATED, NOT_STATED)
    # of a released answer the query's own name, before what is published of it
    named = settings.get("released", settings)
    query = str(named.get("query") or subject)
    what = release.axis(query)
    if release.title and release.title != query:
        what = f"{what} ({query})"
    if "released" in settings:
        what = f"{what}, {settings['released']['words']}"
    protected = "not counted" if individuals is None else f"{int(individuals):,}"
    if left_out := int(settings.get("not_assessed", 0)):
        protected = (
            f"{protected}, of whom {left_out:,} are not assessed: seen in the first databases alone"
        )
    facts = [
        *release_facts(release, what),
        Fact("Data", size),
        Fact("Individuals", protected),
    ]
    if kind in ("query", "composition"):
        facts.append(Fact("One release is", ONE_RELEASE))
    if result.against_whom:
        facts.append(Fact("Against", result.against_whom))
    if kind == "query":
        facts.append(Fact("Not covered", NOT_COVERED))
    return tuple(facts)


def _rows(
    result: PrivacyCurves,
    verdict: Verdict,
    kind: str,
    prob: float,
    releases: PrivacyCurves | None,
) -> tuple[RiskRow, ...]:
    rows = [_singling_out(verdict, guessed_right(result, verdict.prob))]
    if kind == "query":
        rows += [_linkability(result, verdict, prob, releases), _inference(result, verdict, prob)]
    if kind == "composition":
        rows = [replace(rows[0], risk="Linkability")]
    return tuple(rows)


def _singling_out(verdict: Verdict, by_curve: float) -> RiskRow:
    """Return the largest risk, and how often a reader guesses membership right.

    That follows from the limit at the target's epsilon, and `by_curve` from the whole curve.
    """
    if verdict.status == NOT_ESTABLISHED:
        return RiskRow("Singling out", NO_CLAIM, "", "", "", NOT_ESTABLISHED)
    # A test of level a and power 1 - b has 1 - b <= e^epsilon a + delta, and 1 - a <= e^epsilon b +
    # delta: added, 1 - (a + b) / 2 is at most this.
    inverse = math.exp(-verdict.epsilon)
    guessed = (1.0 + inverse * verdict.limit) / (1.0 + inverse)
    guessed = min(guessed, by_curve)
    most = percent(math.ceil(1e3 * guessed - 1e-6) / 1e3)
    return RiskRow(
        risk="Singling out",
        number=(
            f"membership guessed right: 50% before, at most {most} after; "
            f"δ({verdict.epsilon:.4g}) at most {verdict.limit_shown}, target {verdict.delta:.4g}"
        ),
        band=f"{risk_least(verdict.lower)} to {risk_limit(verdict.upper)}",
        meaning=(
            f"Where membership is 50% likely before an answer, a reader of it guesses right with a "
            f"probability of at most {most}."
        ),
        basis="the model" if verdict.basis else "the data and the model",
        status=verdict.status,
    )


def _linkability(
    result: PrivacyCurves, verdict: Verdict, prob: float, releases: PrivacyCurves | None
) -> RiskRow:
    """Return what several releases, several queries and the past say together."""
    settings = result.settings
    seen = bool(settings.get("against"))
    parts = ["earlier answers are known" if seen else "no earlier answer is known"]
    queries = settings.get("queries")
    parts.append(f"{len(queries)} queries together" if queries else "one query")
    parts.append(
        "differences of these queries included" if queries else "differences from other tables not"
    )
    if releases is None:
        return RiskRow(
            risk="Linkability",
            number=NOT_ASSESSED if not queries else "see singling out, of all queries together",
            band="",
            meaning=f"Audited: {', '.join(parts)}, {ALONE}.",
            basis="",
            status=NOT_ASSESSED,
        )
    several = releases.verdict(epsilon=verdict.epsilon, delta=verdict.delta, prob=prob)
    row = _singling_out(several, guessed_right(releases, several.prob))
    return RiskRow(
        risk="Linkability",
        number=row.number,
        band=row.band,
        meaning=f"Of {releases.subject[0]}, together: {', '.join(parts)}.",
        basis=row.basis,
        status=several.status,
    )


def _inference(result: PrivacyCurves, verdict: Verdict, prob: float) -> RiskRow:
    """Return how closely the largest amount is learned, against a share of it."""
    from edp_bayes.results.query import Audit

    if verdict.status == NOT_ESTABLISHED:
        return RiskRow("Inference", NO_CLAIM, "", "", "", NOT_ESTABLISHED)
    draws = amount_errors(result, prob) if isinstance(result, Audit) else None
    if draws is None:
        return RiskRow("Inference", NOT_ASSESSED, "", "No amount of an individual in units of the "
                       "answer is known here.", "", NOT_ASSESSED)  # fmt: skip
    tail = 0.5 * (1.0 - prob)
    low, high = (float(np.quantile(draws, level)) for level in (tail, 1.0 - tail))
    least = -float(upper_limit(-draws, prob))
    status = MET if least >= SHARE else NOT_MET if high < SHARE else UNDECIDED
    return RiskRow(
        risk="Inference",
        number=(
            f"known to ± {number(least, 2)} times itself at best; default target {percent(SHARE)}"
        ),
        band=f"{number(low, 2)} to {number(high, 2)}",
        meaning=(
            f"Half the length of the amounts that an answer leaves with {percent(prob)} "
            "probability, over the largest amount that an individual contributed. Beforehand it is "
            f"taken to be known to within {KNOWN_TO:g} times itself."
        ),
        basis="the model",
        status=status,
    )


def _tried(verdict: Verdict, noise: tuple[NoiseFound, ...]) -> tuple[str, ...]:
    """Return what was tried against the risk with what it costs, or what would help."""
    found = tuple(
        f"{one.distribution} ({one.method}): expected absolute noise {number(one.absolute)}, "
        f"standard deviation {number(one.deviation)}."
        for one in noise
    )
    return found or verdict.helps or ("Nothing: the data as they are.",)
