"""What a PyMC model predicts beside the response: replicates of all else that it observes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["predicted_by"]


def predicted_by(
    model: Any, tree: xr.DataTree, names: tuple[str, ...], settings: SamplerSettings, most: int
) -> xr.Dataset | None:
    """Return replicates of observed variables of a PyMC model, one for each posterior draw.

    Parameters
    ----------
    model : pymc.Model
        What was drawn from.
    tree : DataTree
        Its posterior, and what it observed.
    names : tuple of str
        Of the observed variables.
    settings : SamplerSettings
        Whose stream of random numbers is used.
    most : int
        Numbers that are predicted at most.

    Returns
    -------
    Dataset or None
        Dims (chain, draw, ...); whole numbers as few bytes as they need. None where there would be
        more numbers than that.
    """
    import pymc as pm
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    observed = [model.rvs_to_values[model[name]].eval() for name in names]
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    if draws * sum(values.size for values in observed) > most:
        return None
    free = [variable.name for variable in model.free_RVs]
    rng = settings.generator("predicted")
    with model, warnings.catch_warnings():
        # of the smooth floors of parameters, which have acted on the draws
        warnings.filterwarnings("ignore", message=".*[Pp]otential")
        found = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": posterior[free]}),
            var_names=list(names),
            random_seed=int(rng.integers(2**31)),
            progressbar=False,
            # compiled code would be faster, and take longer to compile than this to draw
            compile_kwargs={"mode": "FAST_COMPILE"},
        )["posterior_predictive"].to_dataset()
    found = found.drop_vars(["chain", "draw"])
    found.attrs = {}
    compact: xr.Dataset = found.map(_compact)
    return compact


def _compact(values: xr.DataArray) -> xr.DataArray:
    """Return zeros and ones in one byte each."""
    if values.dtype.kind in "iub" and values.size and 0 <= values.min() <= values.max() <= 1:
        return values.astype(np.int8)
    return values
