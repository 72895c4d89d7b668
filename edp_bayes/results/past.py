"""What an adversary has seen, and what they expected of each database given what they knew."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["INNER", "Past", "density_in_question", "past_of", "query_shown", "written"]

INNER = 0.5  # probability of the inner interval
MOST_DRAWS, VALUES = 500, 20000
DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?")


@dataclass(frozen=True, eq=False)
class Past:
    """Responses in their order, and the predictive distribution of each that is explained.

    Attributes
    ----------
    seen : DataArray
        Dims place: every response seen. Places are the databases' keys where these are increasing
        numbers or dates, also as text such as 2026-05-04, else 1, 2, ... Of an additive query what
        insiders contributed is subtracted.
    expected : DataArray
        Dims (quantile, place): quantiles of the predictive distributions of the databases that are
        explained, and of the next one where that is the one in question.
    at : int
        Where the database in question is in `expected`.
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
    def dates(self) -> tuple[str, ...]:
        """Dates of the databases, the next included if in question; none if keys are others."""
        places = np.union1d(self.seen["place"].to_numpy(), self.expected["place"].to_numpy())
        return written(places) if places.dtype.kind == "M" else ()

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


def past_of(audit: Audit, probs: tuple[float, ...], query: str | None = None) -> Past:
    """Return what an adversary has seen, with the median and equal-tailed predictive intervals.

    Parameters
    ----------
    audit : Audit
        Made with an adversary.
    probs : tuple of float
        Probabilities of the intervals.
    query : str, optional
        Which of several queries; the first if not given.

    Raises
    ------
    InvalidInputError
        If it was made without, or is of no such query.
    """
    if "known" not in audit.tree.children:
        raise InvalidInputError(
            "this audit has no adversary, so nothing is known of the past; audit with one, such as "
            "edp.audit(..., adversary=edp.Adversary(past=1))"
        )
    group, mixture = _of_query(audit, query)
    row = int(group.attrs["row"])
    following = row == group.sizes["database"]
    places = _places(group["release"].to_numpy(), following=following)
    response = group["less_insiders"].to_numpy()
    first = response.size - group.sizes["database"]
    levels = sorted({0.5, *(0.5 - 0.5 * p for p in probs), *(0.5 + 0.5 * p for p in probs)})
    expected = _expected(group, mixture, levels, following)
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


def query_shown(audit: Audit, query: str | None) -> str:
    """Return the name of the query whose past is asked for, the first if not given.

    Raises
    ------
    InvalidInputError
        If the audit has no such query, or it follows from others.
    """
    if not audit.joint:
        if query is not None:
            raise InvalidInputError(
                f"query is for joint audits, found {query!r}: leave it out for an audit of one"
            )
        return str(audit.settings["query"])
    names = list(map(str, audit.tree["known"]["query"].to_numpy()))
    if query is None:
        return names[0]
    if query not in names:
        raise InvalidInputError(f"query must be one of {', '.join(names)}, found {query!r}")
    return query


def _of_query(audit: Audit, query: str | None) -> tuple[xr.Dataset, xr.Dataset]:
    """Return what is known, and the distribution of the response in question, of one query."""
    group, mixture = (audit.tree[name].to_dataset() for name in ("known", "mixture"))
    name = query_shown(audit, query)
    if not audit.joint:
        return group, mixture
    one = group.sel(query=name).drop_vars(["released", "less_insiders"])
    for series in ("released", "less_insiders"):
        one[series] = ("release", group[series].sel(answer=name).to_numpy())
    one.attrs = {**group.attrs, "centre": float(one["centre"]), "spread": 1.0}
    known = json.loads(audit.tree.attrs.get("noise", "null")) or []
    noise = next((float(part["scale"]) for part in known if part["query"] == name), 0.0)
    variance = mixture["covariances"].sel(query=name, other_query=name) - noise**2
    return one, xr.Dataset(
        {
            "weights": mixture["weights"],
            "locations": mixture["locations"].sel(query=name, drop=True),
            "scales": np.sqrt(variance.reset_coords(drop=True)),
        },
        attrs=mixture.attrs,
    )


def density_in_question(audit: Audit, draws: xr.Dataset, query: str | None = None) -> xr.Dataset:
    """Return predictive densities of the database in question from draws of one individual's.

    Every draw is moved to its own place, then averaged; dims x.
    """
    if audit.joint:
        held = audit.tree["in_question"].to_dataset().sel(query=query_shown(audit, query))
        own = held.sel(individual=draws["individual"].values)
        return xr.Dataset(
            {name: ("x", own[name].to_numpy()) for name in ("density_with", "density_without")},
            {"x": held["place"].to_numpy()},
        )
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

    e is the response of the database in question about its place.
    """
    chains, draws = group.sizes["chain"], group.sizes["draw"]
    rows = slice(None, None, -(-chains * draws // MOST_DRAWS))
    group, mixture = group.isel(draw=rows), mixture.isel(draw=rows)
    parts = (
        mixture[name].transpose("chain", "draw", "component").to_numpy()
        for name in ("weights", "locations", "scales")
    )
    in_question = Mixture(*parts, kernel=str(mixture.attrs["kernel"]))
    count = -(-VALUES // (chains * group.sizes["draw"]))
    values = in_question.sample(count, np.random.default_rng(0))
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


def written(dates: NDArray[Any]) -> tuple[str, ...]:
    """Return dates as text: months where all are the first of one, else days."""
    monthly = bool((dates == dates.astype("datetime64[M]")).all())
    unit: Any = "M" if monthly else "D"
    return tuple(np.datetime_as_string(dates, unit=unit, casting="unsafe").tolist())


def _places(keys: NDArray[Any], *, following: bool) -> NDArray[Any]:
    """Return where databases stand on an axis, with the next one if it is in question."""
    keys = _dates(keys)
    ordered = keys.dtype.kind in "Miuf" and keys.size > 1 and bool((keys[1:] > keys[:-1]).all())
    places = keys if ordered else np.arange(1, keys.size + 1)
    step = places[-1] - places[-2]
    places = np.append(places, places[-1] + step) if following else places
    return places.astype("datetime64[ns]") if places.dtype.kind == "M" else places


def _dates(keys: NDArray[Any]) -> NDArray[Any]:
    """Return text such as 2026-05-04 or 2026-05 as dates, other keys as they are."""
    text = keys.dtype.kind in "UO" and all(isinstance(key, str) for key in keys.tolist())
    if not text or not all(DATE.fullmatch(key) for key in keys.tolist()):
        return keys
    unit = "D" if all(len(key) == len("2026-05-04") for key in keys.tolist()) else "M"
    try:
        return keys.astype(str).astype(f"datetime64[{unit}]")
    except ValueError:  # a thirteenth month
        return keys
