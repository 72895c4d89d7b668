"""Several density models of several responses in one, as `edp_bayes.models.stacking` does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edp_bayes.coupling.views.stacked_answers import stack_answers
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.models.joint import FittedJoint
from edp_bayes.models.joint_regression import JointInQuestion
from edp_bayes.models.stacking import Stacked, Weighed

if TYPE_CHECKING:
    from edp_bayes.models.joint_regression import JointRegression
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
    weighed = Weighed.of(fits, settings)
    in_question = None
    if regression is not None:
        in_question = JointInQuestion(**weighed.in_question(regression))
    fitted = responses if in_question is None else in_question.responses
    member = weighed.member
    coupling = stack_answers([fit.coupling for fit in fits], member, fitted)
    mixture = NormalMixture(
        *(part.reshape(*member.shape, *part.shape[1:]) for part in coupling.mixture)
    )
    said = weighed.said(model)
    return FittedJoint(
        mixture=mixture.in_units(coupling.units),
        coupling=coupling,
        responses=fitted,
        dependence=fits[0].dependence,
        pooled=all(fit.pooled for fit in fits),
        in_question=in_question,
        **said | {"attributes": {**said["attributes"], "kernel": "gaussian"}},
    )
