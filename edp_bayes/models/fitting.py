"""From mixture draws to a fitted model: the step that every mixture model shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edp_bayes.coupling import RegressionCoupling
from edp_bayes.models.base import FittedModel, SamplerSettings, database_log_likelihood

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.mixtures import Mixture
    from edp_bayes.responses import Responses

__all__ = ["fitted_mixture"]


def fitted_mixture(
    mixture: Mixture,
    responses: Responses,
    settings: SamplerSettings,
    *,
    tree: xr.DataTree | None = None,
    log_prior: xr.Dataset | None = None,
    without: Mapping[int, Mixture] | None = None,
    attributes: Mapping[str, Any],
) -> FittedModel:
    """Couple the draws of a mixture model to the law without each individual."""
    sampler = settings.sampler if tree is not None else "gibbs"
    return FittedModel(
        mixture=mixture,
        coupling=RegressionCoupling.fit(mixture, responses, settings.random_seed or 0, without),
        log_likelihood=database_log_likelihood(mixture, responses),
        sample_stats=tree["sample_stats"].to_dataset() if tree is not None else None,
        log_prior=log_prior,
        attributes={"sampler": sampler, **attributes},
    )
