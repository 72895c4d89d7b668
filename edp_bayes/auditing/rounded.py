"""Audits of answers on a grid: what is published is the rounding of what is modelled."""

from __future__ import annotations

import numpy as np

from edp_bayes.coupling.base import Coupling
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.distributions.published import WORST, Published
from edp_bayes.models.base import DensityModel, models_rounding
from edp_bayes.models.regression import InQuestion, Regression
from edp_bayes.responses.responses import Responses
from edp_bayes.responses.rounding import offset_of, on_grid
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import Sentence

__all__ = ["modelled_step", "rounded_coupling"]


def modelled_step(responses: Responses, model: DensityModel) -> tuple[Responses, tuple[str, ...]]:
    """Return the responses as they are modelled, and a sentence if their step is not."""
    if responses.step is None or models_rounding(model, responses):
        return responses, ()
    said = Sentence(
        f"Answers rounded to a grid of step {responses.step:g} are treated as continuous by "
        f"{type(model).__name__}: the library's own models draw what was rounded, and a model of "
        "one's own where its likelihood has a distribution function (see PyMCMixture)."
    )
    return responses.replaced(step=None), (said,)


def rounded_coupling(
    coupling: Coupling,
    responses: Responses,
    regression: Regression | None = None,
    in_question: InQuestion | None = None,
) -> ReleasedCoupling:
    """Return the coupling of the rounded answers.

    The grid is that of the answer, so given what an adversary knows it lies elsewhere beside the
    density of the residuals in every draw: each is put where its own coefficients put the database
    in question. Of insiders whose contributions are on the grid nothing changes; where theirs are
    not, they move the rest of the answer by what nobody else knows, and the worst place is taken.

    Parameters
    ----------
    coupling : Coupling
        Of what was rounded.
    responses : Responses
        As they were released.
    regression, in_question : optional
        Given what an adversary knows.
    """
    step = float(responses.step or 0.0)
    offset: float | str = offset_of(responses.response, step)
    shift = None if in_question is None else in_question.shift.ravel()
    if regression is not None and responses.additive and regression.known.insiders:
        told = _told(responses, regression)
        if not on_grid(told, step):
            at = regression.known.at
            offset = WORST
            if at is not None:
                where = regression.known.row + responses.n_databases - regression.position.size
                rest = responses.response - told
                offset = offset_of(rest[where : where + 1], step)
    return ReleasedCoupling(coupling, Published(rounded_to=step, offset=offset), shift=shift)


def _told(responses: Responses, regression: Regression) -> Array:
    """Return what insiders contributed to every database, shape (n,)."""
    columns = [responses.index_of(name) for name in regression.known.insiders]
    return np.asarray(responses.contribution[:, columns].sum(axis=1)).ravel()
