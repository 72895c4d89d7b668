"""Audits of several queries that are published together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.evaluation import riskiest
from edp_bayes.auditing.joint_evaluation import evaluate_joint
from edp_bayes.auditing.store import described, opened
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.joint import fit_joint
from edp_bayes.records.dependence import linear_dependence
from edp_bayes.utils.progress import working

if TYPE_CHECKING:
    from edp_bayes.auditing.executors.base import Runner
    from edp_bayes.models.base import DensityModel
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.records.joined import JointResponses
    from edp_bayes.results.joint import JointAudit

__all__ = ["audit_joint"]

Array = NDArray[np.float64]


def audit_joint(
    responses: JointResponses,
    *,
    epsilon: Array,
    model: DensityModel,
    adversary: Any,
    individuals: Sequence[Any],
    keep: int,
    settings: SamplerSettings,
    run: Runner,
    store: str | PathLike[str] | None,
    exact_up_to: int,
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
    with ExitStack() as stack:
        if store is not None:
            description = described(responses, None, model, epsilon, settings, exact_up_to)
            held = stack.enter_context(opened(store, description))
            settings, run = replace(settings, keep=held.draws), held.keeping(run)
        fitted = fit_joint(model, kept_queries, dependence, settings)
        risks = evaluate_joint(
            fitted.coupling,
            epsilon,
            progressbar=settings.progressbar,
            run=run,
            exact_up_to=exact_up_to,
        )
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
