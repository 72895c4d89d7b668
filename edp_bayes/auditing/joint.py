"""Audits of several queries that are published together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from edp_bayes.auditing.evaluation import evaluate, riskiest
from edp_bayes.auditing.store import described, opened
from edp_bayes.models.joint import fit_joint
from edp_bayes.models.joint_regression import fit_joint_given
from edp_bayes.records.dependence import linear_dependence
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.progress import working

if TYPE_CHECKING:
    from edp_bayes.auditing.executors.base import Runner
    from edp_bayes.models.base import DensityModel
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.records.joined import JointResponses
    from edp_bayes.results.joint import JointAudit

__all__ = ["audit_joint"]


def audit_joint(
    responses: JointResponses,
    *,
    epsilon: Array,
    model: DensityModel,
    regression: JointRegression | None,
    individuals: Sequence[Any],
    keep: int,
    settings: SamplerSettings,
    run: Runner,
    store: str | PathLike[str] | None,
    exact_up_to: int,
    appear_once: bool = False,
    keep_parameters: bool = True,
) -> JointAudit:
    """Audit several queries together; arguments are those of `edp_bayes.audit`, checked.

    Given a regression on what an adversary knows the audit is of the responses that it explains.
    """
    from edp_bayes.auditing.joint_assembly import assemble_joint

    released = responses
    if regression is None:
        dependence = linear_dependence(responses)
    else:
        responses, dependence = regression.known.responses, regression.dependence
    named = list(dict.fromkeys(responses.index_of(label) for label in individuals))
    with ExitStack() as stack:
        if store is not None:
            description = described(released, regression, model, epsilon, settings, exact_up_to)
            held = stack.enter_context(opened(store, description))
            settings, run = replace(settings, keep=held.draws), held.keeping(run)
        if regression is None:
            fitted = fit_joint(model, responses.of_queries(dependence.kept), dependence, settings)
        else:
            fitted = fit_joint_given(model, regression, settings)
        risks = evaluate(
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
            released=released,
            regression=regression,
            dependence=dependence,
            fitted=fitted,
            epsilon=epsilon,
            risks=risks,
            kept=kept,
            settings=settings,
            appear_once=appear_once,
            keep_parameters=keep_parameters,
        )
