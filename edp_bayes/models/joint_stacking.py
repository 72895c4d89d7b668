"""Several density models of several responses in one, as `edp_bayes.models.stacking` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.views.stacked_answers import stack_answers
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.models.joint import FittedJoint
from edp_bayes.models.leave_one_out import leave_one_out, stacking_weights
from edp_bayes.models.stacking import (
    Stacked,
    apportioned,
    averaged,
    chosen,
    said_of_members,
    statistics,
)
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.models.joint_regression import JointInQuestion, JointRegression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses

__all__ = ["stack_joint"]


def stack_joint(
    model: Stacked,
    fits: Sequence[FittedJoint],
    responses: JointResponses,
    settings: SamplerSettings,
    regression: JointRegression | None = None,
) -> FittedJoint:
    """Weigh fits of the same responses and take their draws in proportion.

    Parameters
    ----------
    model : Stacked
        Whose models were fitted.
    fits : sequence of FittedJoint
        One for each.
    responses : JointResponses
        What was fitted.
    settings : SamplerSettings
        As for the fits.
    regression : JointRegression, optional
        On what an adversary knows.
    """
    found = [leave_one_out(fit.log_likelihood, fit.predictive) for fit in fits]
    log_density = np.stack([np.asarray(part.elpd_i) for part in found], axis=1)
    weights = stacking_weights(log_density)
    member = apportioned(weights, settings)
    in_question = None if regression is None else _in_question(regression, fits, member)
    fitted = responses if in_question is None else in_question.responses
    coupling = stack_answers([fit.coupling for fit in fits], member, fitted)
    mixture = NormalMixture(
        *(part.reshape(*member.shape, *part.shape[1:]) for part in coupling.mixture)
    )
    return FittedJoint(
        mixture=mixture.in_units(coupling.units),
        coupling=coupling,
        responses=fitted,
        dependence=fits[0].dependence,
        log_likelihood=chosen(np.stack([fit.log_likelihood for fit in fits]), member),
        predictive=averaged(log_density, weights),
        sample_stats=statistics(fits, member),
        attributes={
            "model": repr(model),
            "sampler": "stacked",
            "kernel": "gaussian",
            "stacking_weights": weights.tolist(),
            "members": [dict(fit.attributes) for fit in fits],
        },
        remedy="stack another model, too, or try a transform of the responses",
        diverging=" ".join(dict.fromkeys(fit.diverging for fit in fits if fit.divergences)),
        truncated=tuple(
            replace(process, share=float(weight) * process.share)
            for weight, fit in zip(weights, fits, strict=True)
            for process in fit.truncated
        ),
        pooled=all(fit.pooled for fit in fits),
        warnings=said_of_members(model.models, fits, found),
        in_question=in_question,
    )


def _in_question(
    regression: JointRegression, fits: Sequence[FittedJoint], member: Index
) -> JointInQuestion:
    """Return the database in question under the draws taken; all models put it at one place."""
    from scipy.special import ndtr, ndtri

    from edp_bayes.models.joint_regression import JointInQuestion

    parts = [fit.in_question for fit in fits if fit.in_question is not None]

    def taken(name: str) -> Array:
        return chosen(np.stack([getattr(part, name) for part in parts]), member)

    beta, gamma = taken("coefficients"), taken("growth")
    middle = beta.mean(axis=(0, 1))
    shares = np.bincount(member.ravel(), minlength=len(parts)) / member.size
    scores = np.tensordot(shares, ndtr([part.scores for part in parts]), axes=1)
    return JointInQuestion(
        responses=regression.adjusted(middle, float(gamma.mean())),
        middle=middle,
        coefficients=beta,
        growth=gamma,
        shift=taken("shift"),
        scores=np.asarray(ndtri(scores)),
        slopes_known=max(part.slopes_known for part in parts),
    )
