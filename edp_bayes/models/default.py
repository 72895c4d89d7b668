"""The model of an audit that names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.models.base import DensityModel, checked_model
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.sampling import NUTS
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses

__all__ = ["FULL_UP_TO", "model_of_sampler", "model_or_default"]

FULL_UP_TO = 100  # individuals whose contributions NUTS draws where no model is named


def model_or_default(model: DensityModel | None) -> DensityModel:
    """Return the model, `DirichletProcessMixture()` where there is none.

    Parameters
    ----------
    model : DensityModel, optional
        What the user asked for.

    Raises
    ------
    InputTypeError
        If the model is something else.

    Examples
    --------
    >>> model_or_default(None)
    DirichletProcessMixture()
    """
    return DirichletProcessMixture() if model is None else checked_model(model)


def model_of_sampler(
    model: DensityModel | None, sampler: str | None, responses: Responses | JointResponses
) -> tuple[DensityModel, tuple[str, ...]]:
    """Return the model, and a sentence if a sampler of NUTS draws less than everything.

    A sampler of NUTS that is named beside no model draws the response and all contributions, in one
    PyMC model: `FullPosterior()`, of up to 100 individuals. It draws the response alone where that
    model cannot be, as of several queries, or where a density model is named.

    Parameters
    ----------
    model : DensityModel, optional
        What the user asked for.
    sampler : str, optional
        The sampler that the user named.
    responses : Responses or JointResponses
        What is to be modelled.

    Raises
    ------
    InputTypeError
        If the model is something else.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> c = np.random.default_rng(1).gamma(2.0, 1.0, (20, 3))
    >>> responses = edp.Responses.from_arrays(c.sum(axis=1), contribution=c)
    >>> model_of_sampler(None, "nutpie", responses)
    (FullPosterior(), ())
    >>> model_of_sampler(None, None, responses)
    (DirichletProcessMixture(), ())
    """
    from edp_bayes.models.full_posterior import FullPosterior

    if not isinstance(responses, Responses) or model is not None or sampler not in NUTS:
        return model_or_default(model), ()
    why = _not_full(responses)
    if why is None:
        return FullPosterior(), ()
    said = Sentence(
        f"NUTS drew the response alone, and contributions are known by empirical Bayes: {why}. "
        "model=DirichletProcessMixture() asks for that and says nothing"
    )
    return DirichletProcessMixture(), (said,)


def _not_full(responses: Responses) -> str | None:
    """Return why not all is drawn; None where it is."""
    if responses.samples > 1:
        return f"there are {responses.samples} samples of each response"
    if responses.remainder is not None:
        return "contributions of some individuals were not collected"
    if responses.n_individuals > FULL_UP_TO:
        return (
            f"there are {responses.n_individuals:,} individuals, and beyond {FULL_UP_TO} "
            "all of it is drawn by model=FullPosterior() alone"
        )
    return None
