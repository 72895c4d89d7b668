"""Audits of several queries that are published together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.evaluation import BLOCK_NUMBERS, riskiest
from edp_bayes.auditing.reductions import accumulate, medians, moments
from edp_bayes.divergence.joint.estimates import PARTS
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.joint import fit_joint
from edp_bayes.records.dependence import linear_dependence
from edp_bayes.utils.progress import track, working

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.models.base import DensityModel
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.records.joined import JointResponses
    from edp_bayes.results.joint import JointAudit

__all__ = ["JointRisks", "audit_joint", "evaluate_joint"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JointRisks:
    """Privacy quantities of every draw, with the standard errors of their integrals.

    Attributes
    ----------
    delta, total_risk, total_risk_bound : ndarray
        Shape (3, draw, epsilon): as integrated, and with standard errors subtracted and added; of
        the sum its own.
    mean, deviation, median : ndarray
        Shape (individual, epsilon): of delta_i.
    error : ndarray
        Shape (individual, epsilon): mean standard error of delta_i.
    screened_bound : ndarray
        Shape (epsilon,): bound on the sum of all risks that were not integrated, in any draw.
    """

    delta: Array
    total_risk: Array
    total_risk_bound: Array
    mean: Array
    deviation: Array
    median: Array
    error: Array
    screened_bound: Array


def audit_joint(
    responses: JointResponses,
    *,
    epsilon: Array,
    model: DensityModel,
    adversary: Any,
    individuals: Sequence[Any],
    keep: int,
    settings: SamplerSettings,
) -> JointAudit:
    """Audit several queries together; arguments are those of `edp_bayes.audit`, checked."""
    from edp_bayes.auditing.joint_assembly import assemble_joint

    if adversary is not None:
        raise InvalidInputError(
            "a joint audit has no adversary yet: audit each query against one on its own, "
            "edp.audit(revenue, adversary=...), and together without, --no-past"
        )
    named = list(dict.fromkeys(responses.index_of(label) for label in individuals))
    dependence = linear_dependence(responses)
    kept_queries = responses.of_queries(dependence.kept)
    fitted = fit_joint(model, kept_queries, dependence, settings)
    risks = evaluate_joint(fitted.coupling, epsilon, progressbar=settings.progressbar)
    order = responses.order
    kept = order[riskiest(risks.mean[order], keep, responses.rank[named])]
    with working("Diagnostics", show=settings.progressbar):
        return assemble_joint(
            responses=responses,
            dependence=dependence,
            fitted=fitted,
            epsilon=epsilon,
            risks=risks,
            kept=kept,
            settings=settings,
        )


def evaluate_joint(coupling: JointCoupling, epsilon: Array, *, progressbar: bool) -> JointRisks:
    """Evaluate every individual in blocks; the result does not depend on the blocks."""
    size, people = coupling.n_draws, coupling.n_individuals
    largest, log_survival, total = np.zeros((3, 3, size, epsilon.size))
    mean, deviation, median, error = np.zeros((4, people, epsilon.size))
    split = np.zeros((size, PARTS, epsilon.size))
    skipped = np.zeros((size, epsilon.size))
    block = max(1, BLOCK_NUMBERS // (size * (2 * epsilon.size + coupling.width)))
    starts = range(0, people, block)
    for start in track(starts, "Individuals", total=len(starts), show=progressbar):
        members = np.arange(start, min(start + block, people))
        curves = coupling.curves(members, epsilon)
        for k, sign in enumerate((0.0, -1.0, 1.0)):
            values = np.clip(curves.value + sign * curves.error, 0.0, 1.0)
            accumulate(values, largest[k], log_survival[k], total[k])
        mean[members], deviation[members], _ = moments(curves.value)
        median[members] = medians(curves.value)
        error[members] = curves.error.mean(axis=0)
        split += curves.split
        skipped += curves.skipped
    # everybody's integrals are at the same points: the error is that of their sum
    summed = np.std(split, axis=1, ddof=1) / np.sqrt(PARTS)
    parts = total[0], -log_survival[0]
    several = [
        np.stack([part, np.maximum(part - summed, 0.0), part + summed + skipped]) for part in parts
    ]
    return JointRisks(
        delta=largest,
        total_risk=-np.expm1(-several[1]),
        total_risk_bound=np.minimum(several[0], 1.0),
        mean=mean,
        deviation=deviation,
        median=median,
        error=error,
        screened_bound=skipped.max(axis=0),
    )
