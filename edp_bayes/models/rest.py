"""The distribution of the response without one individual, drawn apart by NUTS."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edp_bayes.models.base import NAMES, mixture_from
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.responses.responses import Responses

__all__ = ["draw_rest"]


def draw_rest(
    model: Any, responses: Responses, settings: SamplerSettings, y: Array, stream: str
) -> Mixture:
    """Draw the distribution of responses without one individual from a PyMC model of them.

    Parameters
    ----------
    model : MixtureModel or PyMCMixture
        Whose variables are weights, locations and scales.
    responses : Responses
        Those with everybody, on the scale that is modelled: rounded as the rest is.
    settings : SamplerSettings
        Of the model of everybody; initial values are of that alone.
    y : ndarray
        Shape (n, samples): the responses without the individual.
    stream : str
        Names the random numbers, so that those of several individuals differ.
    """
    from scipy.sparse import csc_array

    rest = responses.replaced(
        response=y.ravel(),
        contribution=csc_array(responses.collected.shape),
        presence=None,
        step=responses.step,
        half_step=responses.half_step,
        remainder=None,
    )
    alone = replace(settings.starting_without().of_stream(stream), keep=None)
    return mixture_from(sample_nuts(model.build(rest), alone), model.kernel, NAMES)
