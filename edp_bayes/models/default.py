"""The model of an audit that names none."""

from __future__ import annotations

from edp_bayes.models.base import DensityModel, checked_model
from edp_bayes.models.dirichlet_process import DirichletProcessMixture

__all__ = ["model_or_default"]


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
