"""Saved results: read, and refused where a number cannot be what its name says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import files

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load_sound_tree"]

ROUNDING = 1e-6
RISK, POSITIVE, ANY = (0.0, 1.0), (0.0, np.inf), (-np.inf, np.inf)
RISKS = ("delta", "total_risk", "total_risk_bound", "individual_delta", "pair_delta")
COMPONENTS = {"weights": RISK, "locations": ANY, "scales": POSITIVE, "covariances": ANY}
# Limits of what must be finite, by group and name.
FINITE: dict[str, dict[str, tuple[float, float]]] = {
    "posterior": {
        **dict.fromkeys((*RISKS, "property_delta", "prob"), RISK),
        "epsilon": POSITIVE,
    },
    "new_individual": {"delta": RISK, "exceeds": RISK},
    "integration_error": dict.fromkeys(RISKS, RISK),
    "direction": {"direction": (-1.0, 1.0)},
    "rounding": {
        **dict.fromkeys(("delta", "least", "resampled"), RISK),
        **dict.fromkeys(("rounded_to", "moves"), POSITIVE),
    },
    "other_answers": {
        **dict.fromkeys(("delta", "resampled"), RISK),
        **dict.fromkeys(("size", "databases"), POSITIVE),
    },
    "resampled": dict.fromkeys(RISKS, RISK),
    "lower_bounds": dict.fromkeys(RISKS, (-np.inf, 1.0)),
    "individuals": {
        "mean": RISK,
        "sd": RISK,
        "median": RISK,
        "presence": POSITIVE,
        "largest_contribution": POSITIVE,
        "adjusted_contribution": ANY,
        "modelled_contribution": ANY,
    },
    "mixture": COMPONENTS,
    "without": COMPONENTS,
    "densities": {
        "density_with": POSITIVE,
        "density_without": POSITIVE,
        "log_ratio": ANY,
        "x": ANY,
    },
    "in_question": {"density_with": POSITIVE, "density_without": POSITIVE, "place": ANY},
    "observed_data": {"response": ANY},
}
# Not negative, and infinite where there is no bound.
UNBOUNDED = ("local_epsilon", "pair_local_epsilon", "database_local_epsilon", "log_ratio")


def load_sound_tree(path: str | Path) -> xr.DataTree:
    """Read a tree whose risks are probabilities and whose numbers are finite where they must be.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not as it was saved, or a variable is out of its range.
    """
    tree = files.load_tree(Path(path))
    for name, node in tree.children.items():
        data = node.to_dataset(inherit=False)
        for variable, limits in FINITE.get(name, {}).items():
            if variable in data.variables:
                _require(data[variable], limits, f"{path}: {name}/{variable}", finite=True)
        for variable in UNBOUNDED if name == "posterior" else ():
            if variable in data.variables:
                _require(data[variable], POSITIVE, f"{path}: {name}/{variable}", finite=False)
    return tree


def _require(array: xr.DataArray, limits: tuple[float, float], what: str, *, finite: bool) -> None:
    values, (low, high) = array.to_numpy(), limits
    if values.dtype.kind not in "biuf":
        raise InvalidInputError(f"{what} must be numbers, found {values.dtype}")
    within = (values >= low - ROUNDING) & (values <= high + ROUNDING)
    if finite:
        within &= np.isfinite(values)
    if not within.all():
        found = values[~within].flat[0]
        raise InvalidInputError(
            f"{what} must be numbers from {low:g} to {high:g}, found {found:g}: the file is "
            "damaged. Take a copy, or audit again"
        )
