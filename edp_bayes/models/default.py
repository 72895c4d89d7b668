"""The model of an audit that names none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import DensityModel, checked_model
from edp_bayes.models.gibbs import GibbsDirichletProcessMixture

__all__ = ["model_or_default"]


def model_or_default(
    model: DensityModel | None, sample_kwargs: Mapping[str, Any] | None = None
) -> DensityModel:
    """Return the model, `GibbsDirichletProcessMixture()` where there is none.

    Parameters
    ----------
    model : DensityModel, optional
        What the user asked for.
    sample_kwargs : mapping, optional
        Arguments of ``pymc.sample``, which the default has no use for.

    Raises
    ------
    InputTypeError
        If the model is something else.
    InvalidInputError
        If there are arguments of NUTS, but no model that samples by it.

    Examples
    --------
    >>> model_or_default(None)
    GibbsDirichletProcessMixture()
    """
    if model is not None:
        return checked_model(model)
    if sample_kwargs:
        raise InvalidInputError(
            f"{next(iter(sample_kwargs))} is an argument of NUTS, by which the default model is "
            "not drawn: give model=DirichletProcessMixture(), which is, or leave it out"
        )
    return GibbsDirichletProcessMixture()
