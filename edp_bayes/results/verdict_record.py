"""The record of a verdict for machines, with the keys that output checkers' tools read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.verdict import Verdict

__all__ = ["ACRO_STATUS", "REVIEW", "RISKS", "number_or_none", "record"]

# Words of the ACRO tool's records for what a checker does; what is not decided is theirs to decide.
ACRO_STATUS = {MET: "pass", NOT_MET: "fail"}
REVIEW = "review"
# Risks that delta is about, by their names in the ontology of statistical disclosure control.
RISKS = tuple(
    f"https://www.w3id.org/statbarnsdc#{name}" for name in ("Differencing", "AuxiliaryInformation")
)


def record(result: PrivacyCurves, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict, what it rests on and how it was made, as plain numbers and words.

    Parameters
    ----------
    result : PrivacyCurves
        What was audited.
    verdict : Verdict
        What it answers.

    Returns
    -------
    dict
        Ready for JSON: an infinite or missing number is None. The keys ``uid``, ``status``,
        ``type``, ``properties``, ``sdc``, ``command``, ``summary``, ``outcome``, ``output``,
        ``timestamp``, ``comments`` and ``exception`` are those of the ACRO tool's records, whose
        status is pass, fail or review; the verdict itself stands under ``verdict``. Where a check
        withholds it, limit, band and median there are None, and ``limit_withheld`` is what the
        limit would have been.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, epsilon=[0.5], random_seed=1, progressbar=False)
    >>> found = record(audit, audit.verdict(epsilon=0.5, delta=0.01))
    >>> found["status"], found["verdict"]["status"], found["seed"]
    ('pass', 'met', 1)
    """
    settings = result.settings
    posterior = result.tree["posterior"].attrs
    fingerprint = str(settings.get("fingerprint", ""))
    return {
        "uid": f"edp_bayes_{fingerprint[:16]}" if fingerprint else "edp_bayes",
        "status": ACRO_STATUS.get(verdict.status, REVIEW),
        "type": "privacy audit",
        "properties": {"method": "edp_bayes", "query": settings.get("query", "")},
        "sdc": {"summary": {"withheld": len(verdict.withheld_by)}, "risks": list(RISKS)},
        "command": "edp_bayes.audit",
        "summary": f"{ACRO_STATUS.get(verdict.status, REVIEW)}; {verdict.claim}",
        "outcome": {},
        "output": [],
        "timestamp": posterior.get("created_at", ""),
        "comments": [*verdict.sentences[1:], *filter(None, (verdict.basis,)), *verdict.helps],
        "exception": "",
        "verdict": {
            "status": verdict.status,
            "epsilon": verdict.epsilon,
            "delta": verdict.delta,
            "defaults": list(verdict.target.defaults),
            "prob": verdict.prob,
            "kind": verdict.kind,
            **_numbers(verdict),
            "read_at": [number_or_none(value) for value in verdict.read_at],
            "against": verdict.against,
            "decided_by": verdict.decided_by,
            "withheld_by": list(verdict.withheld_by),
            "basis": verdict.basis,
        },
        "checks": [
            {
                "check": one.check,
                "passed": one.passed,
                "effect": one.effect,
                "sentence": str(one.sentence),
            }
            for one in result.outcomes
        ],
        "fingerprint": fingerprint,
        "databases": settings.get("databases"),
        "individuals": settings.get("individuals"),
        "model": settings.get("model", ""),
        "seed": settings.get("random_seed"),
        "versions": {
            "edp_bayes": result.tree.attrs.get("edp_bayes_version", ""),
            **settings.get("versions", {}),
        },
    }


def _numbers(verdict: Verdict) -> dict[str, Any]:
    """Return limit, band and median; where a check withholds them the limit alone, named so."""
    if verdict.status == NOT_ESTABLISHED:
        missing = {"limit": None, "band": [None, None], "median": None}
        return missing | {"limit_withheld": verdict.limit}
    band = [verdict.lower, verdict.upper]
    return {"limit": verdict.limit, "band": band, "median": verdict.median}


def number_or_none(value: float) -> float | None:
    """Return a number as JSON has it: None where it is infinite or missing."""
    return value if math.isfinite(value) else None
