"""Audits of answers on a grid: what is published is the rounding of what is modelled."""

from __future__ import annotations

from edp_bayes.coupling.base import Coupling
from edp_bayes.coupling.released import ReleasedCoupling
from edp_bayes.distributions.published import Published
from edp_bayes.models.base import DensityModel
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.records.responses import Responses
from edp_bayes.records.rounding import offset_of
from edp_bayes.utils.sentences import Sentence

__all__ = ["modelled_step", "rounded_coupling"]


def modelled_step(
    responses: Responses, model: DensityModel, settings: SamplerSettings, explained: bool
) -> tuple[Responses, tuple[str, ...]]:
    """Return the responses as they are modelled, and a sentence if their step is not.

    The mixtures drawn by Gibbs sampling draw what was rounded; an adversary's residuals are on no
    grid.
    """
    if responses.step is None:
        return responses, ()
    own = isinstance(model, DirichletProcessMixture | FiniteMixture)
    if own and not explained and settings.by_gibbs(model.kernel):
        return responses, ()
    why = "given what an adversary knows" if explained else f"by {type(model).__name__}"
    if own and not explained:
        why = f"by NUTS or with the {model.kernel} kernel"
    said = Sentence(
        f"Answers rounded to a grid of step {responses.step:g} are treated as continuous {why}: "
        "rounding is modelled by Gibbs sampling of Gaussian mixtures alone."
    )
    return responses.replaced(step=None), (said,)


def rounded_coupling(coupling: Coupling, responses: Responses) -> ReleasedCoupling:
    """Return the coupling of the rounded answers."""
    step = float(responses.step or 0.0)
    return ReleasedCoupling(
        coupling, Published(rounded_to=step, offset=offset_of(responses.response, step))
    )
