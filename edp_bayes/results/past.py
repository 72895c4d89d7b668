"""What an adversary has seen, and what they expected of each database given what they knew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["INNER", "Past", "density_at_hand", "past_of"]

Array = NDArray[np.float64]

INNER = 0.5  # probability of the inner interval
MOST_DRAWS, VALUES = 500, 20000


@dataclass(frozen=True, eq=False)
class Past:
    """Responses in their order, and the predictive distribution of each that is explained.

    Attributes
    ----------
    seen : DataArray
        Dims place: every response seen. Places are the databases' keys where these are increasing
        numbers or dates, else 1, 2, ... Of an additive query what insiders contributed is
        subtracted.
    expected : DataArray
        Dims (quantile, place): quantiles of the predictive distributions of the databases that are
        explained, and of the next one where that is at hand.
    at : int
        Where the database at hand is in `expected`.
    label : str
        What it is called.
    less : bool
        Whether what insiders contributed is subtracted.
    first : int
        How many databases serve as lags only.
    """

    seen: xr.DataArray
    expected: xr.DataArray
    at: int
    label: str
    less: bool
    first: int

    @property
    def median(self) -> xr.DataArray:
        """Predictive median, dims place."""
        return self.expected.sel(quantile=0.5, drop=True)

    def interval(self, prob: float) -> tuple[xr.DataArray, xr.DataArray]:
        """Return both ends of one of the intervals asked for, dims place."""
        lower, upper = (
            self.expected.sel(quantile=level, method="nearest", drop=True)
            for level in (0.5 - 0.5 * prob, 0.5 + 0.5 * prob)
        )
        return lower, upper


def past_of(audit: Audit, probs: tuple[float, ...]) -> Past:
    """Return what an adversary has seen, with the median and equal-tailed predictive intervals.

    Parameters
    ----------
    audit : Audit
        Made with an adversary.
    probs : tuple of float
        Probabilities of the intervals.

    Raises
    ------
    InvalidInputError
        If it was made without.
    """
    if "known" not in audit.tree.children:
        raise InvalidInputError(
            "this audit has no adversary, so nothing is known of the past; audit with one, such as "
            "edp.audit(..., adversary=edp.Adversary(past=1))"
        )
    group = audit.tree["known"].to_dataset()
    row = int(group.attrs["row"])
    following = row == group.sizes["database"]
    places = _places(group["release"].to_numpy(), following=following)
    response = group["less_insiders"].to_numpy()
    first = response.size - group.sizes["database"]
    levels = sorted({0.5, *(0.5 - 0.5 * p for p in probs), *(0.5 + 0.5 * p for p in probs)})
    expected = _expected(group, audit.tree["mixture"].to_dataset(), levels, following)
    return Past(
        seen=xr.DataArray(response, {"place": places[: response.size]}, ("place",)),
        expected=xr.DataArray(
            expected, {"quantile": levels, "place": places[first:]}, ("quantile", "place")
        ),
        at=row,
        label=str(audit.settings["at"]),
        less=bool((response != group["released"].to_numpy()).any()),
        first=first,
    )


def density_at_hand(audit: Audit, draws: xr.Dataset) -> xr.Dataset:
    """Return predictive densities of the database at hand from draws of one individual's.

    Every draw is moved to its own place, then averaged; dims x.
    """
    x = draws["x"].to_numpy()
    shift = audit.tree["known"]["shift"].sel(draw=draws["draw"]).transpose("chain", "draw")
    moved = x - shift.to_numpy().reshape(-1, 1)
    found = {}
    for name in ("density_with", "density_without"):
        values = draws[name].transpose("chain", "draw", "x").to_numpy().reshape(-1, x.size)
        each = [
            np.interp(places, x, density, left=0.0, right=0.0)
            for places, density in zip(moved, values, strict=True)
        ]
        found[name] = ("x", np.mean(each, axis=0))
    return xr.Dataset(found, {"x": x})


def _expected(
    group: xr.Dataset, mixture: xr.Dataset, levels: list[float], following: bool
) -> Array:
    """Return quantiles of y_t = c + s x_t' beta + exp(gamma (z_t - z*)) e, with draws of e.

    e is the response of the database at hand about its place.
    """
    chains, draws = group.sizes["chain"], group.sizes["draw"]
    rows = slice(None, None, -(-chains * draws // MOST_DRAWS))
    group, mixture = group.isel(draw=rows), mixture.isel(draw=rows)
    parts = (
        mixture[name].transpose("chain", "draw", "component").to_numpy()
        for name in ("weights", "locations", "scales")
    )
    at_hand = Mixture(*parts, kernel=str(mixture.attrs["kernel"]))
    count = -(-VALUES // (chains * group.sizes["draw"]))
    values = at_hand.sample(count, np.random.default_rng(0))
    beta = group["coefficients"].transpose("chain", "draw", "term").to_numpy()
    gamma = group["growth"].transpose("chain", "draw").to_numpy()
    centre, spread = (float(group.attrs[name]) for name in ("centre", "spread"))
    target = group["target"].to_numpy()
    about = values - (centre + spread * (beta @ target))[..., None]
    design = group["design"].transpose("database", "term").to_numpy()
    positions = group["position"].to_numpy()
    if following:
        design = np.vstack([design, target])
        positions = np.append(positions, group.attrs["target_position"])
    found = []
    for x, z in zip(design, positions, strict=True):
        scale = np.exp(gamma * (z - group.attrs["target_position"]))
        moved = centre + spread * (beta @ x)[..., None] + scale[..., None] * about
        found.append(np.quantile(moved, levels))
    return np.stack(found, axis=1)


def _places(keys: NDArray[Any], *, following: bool) -> NDArray[Any]:
    """Return where databases stand on an axis, with the next one if that is at hand."""
    ordered = keys.dtype.kind in "Miuf" and keys.size > 1 and bool((keys[1:] > keys[:-1]).all())
    places = keys if ordered else np.arange(1, keys.size + 1)
    step = places[-1] - places[-2]
    return np.append(places, places[-1] + step) if following else places
