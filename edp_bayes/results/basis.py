"""What an upper limit of delta rests on: the data alone, the shape of the distribution, the model.

No upper limit of delta is free of assumptions, but for this: an individual who contributes nothing
changes nothing, so delta_i is at most the probability rho_i that they contribute. How often they
did limits that (Clopper and Pearson 1934), for databases that are alike. If the answer's
distribution is a mixture of components of standard deviation s or more, whatever their number,
contributions do not follow the rest within a component, and none is larger than the largest seen,
c_i, then by joint convexity

    delta_i(eps) <= rho_i D_eps(c_i / s),

with D_eps(x) the hockey-stick integral of two components that are x standard deviations apart. What
lies below that rests on the model of distribution and contributions, and is nowhere below what the
databases themselves show of the answers that tell most (`edp_bayes.auditing.resampled`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.results.bands import upper_limit
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.formatting import at_most, number, risk_limit
from edp_bayes.utils.shares import highest_share

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.query import Audit

__all__ = ["basis", "on_what", "resting"]

# What the largest of many adds is said where limits are at least this, and more than that times the
# limit of a single individual.
LEAST_SAID, MUCH = 1e-6, 1.25


def _narrowest(audit: Audit) -> tuple[float, bool]:
    """Return the standard deviation of the narrowest components, and whether it was stated.

    NaN where a model names none: of models stacked together, where one of them does not.
    """
    settings = audit.settings
    members: list[dict[str, Any]] = settings.get("members", [settings])
    named = [
        (float(one["narrowest"]), bool(one.get("narrowest_stated")))
        for one in members
        if "narrowest" in one
    ]
    return min(named) if len(named) == len(members) else (np.nan, False)


def basis(audit: Audit, prob: float, kind: str = "simultaneous") -> xr.Dataset:
    """Return limits of delta by what they rest on; see `edp_bayes.results.query.Audit.basis`."""
    from edp_bayes.divergence.shifts import gaussian_shift, laplace_shift

    epsilon, (width, stated) = audit.epsilon.to_numpy(), _narrowest(audit)
    often = _presence_limits(audit, prob)
    limits = {"data": np.full(epsilon.size, often.max(initial=0.0))}
    # An atom is narrower than any component.
    if np.isfinite(width) and width > 0.0 and not audit.joint and not audit.at_atoms:
        laplace = str(audit.tree["mixture"].attrs["kernel"]) == "laplace"
        moved = np.abs(_contributions(audit)) * (np.sqrt(2.0) if laplace else 1.0) / width
        apart = (laplace_shift if laplace else gaussian_shift)(moved[:, None], epsilon)
        limits["shape"] = (often[:, None] * apart).max(axis=0, initial=0.0)
    shown = audit.resampled_end("delta", lambda draws: upper_limit(draws.T, prob, kind=kind))
    if shown is not None:
        limits["resampled"] = shown.to_numpy()
    single = audit.upper("individual_delta", prob=prob, kind=kind)
    limits["individual"] = single.max("individual").to_numpy()
    limits["model"] = audit.upper("delta", prob=prob, kind=kind).to_numpy()
    return xr.Dataset(
        {name: ("epsilon", values) for name, values in limits.items()},
        coords={"epsilon": epsilon},
        attrs={"prob": prob, "kind": kind, "narrowest": width, "stated": stated},
    )


def _presence_limits(audit: Audit, prob: float) -> Array:
    """Return upper limits of the probability that individuals contribute, for all at once.

    Given what an adversary knows of the database in question none is below 1: other databases are
    not like it.
    """
    present = audit.individuals["presence"].to_numpy()
    if audit.against:
        return np.ones(present.size)
    databases = int(audit.settings["databases"])
    return highest_share(present, databases, 1.0 - (1.0 - prob) / max(present.size, 1))


def _contributions(audit: Audit) -> Array:
    """Return the largest contribution of every individual, as it is modelled."""
    people = audit.individuals
    for name in ("adjusted_contribution", "modelled_contribution"):
        if name in people:
            return np.asarray(people[name].to_numpy())
    return np.asarray(people["largest_contribution"].to_numpy())


def resting(result: PrivacyCurves) -> str:
    """Return what a limit of delta rests on that is too small for the data alone to show it."""
    if result.exact_zeros:
        contributed = result.tree["individuals"]["largest_contribution"].any()
        return "resting on the Laplace kernels of the model" if contributed else ""
    if "mixture" in result.tree.children or "composition" in result.tree.children:
        return (
            "resting on how narrow the model lets the distribution of the answer be, not on the "
            "data alone"
        )
    return "resting on the model, not on the data alone"


def on_what(audit: Audit, prob: float, *, kind: str = "simultaneous") -> tuple[str, ...]:
    """Return of every epsilon what its limit of delta rests on, in sentences."""
    basis = audit.basis(prob=prob, kind=kind)
    data, model = float(basis["data"][0]), basis["model"].to_numpy()
    if data < 1.0:
        start = (
            "Where databases are alike, how often individuals were present is enough to show, "
            f"whatever the distribution, that it is {at_most(data)}."
        )
    elif audit.against:
        start = "Data alone show no limit below 1 for the database in question."
    else:
        start = "Data alone show no limit below 1: some individual was in every database."
    rests = _rests(basis)
    largest = _of_many(audit, basis)
    if "shape" not in basis:
        parts_of = [
            [start, rest] if limit < data else [start]
            for limit, rest in zip(model, rests, strict=True)
        ]
        return tuple(
            " ".join([*parts, *more]) for parts, more in zip(parts_of, largest, strict=True)
        )
    shown = "by default the narrowest that the answers can show"
    why = "as stated" if basis.attrs["stated"] else shown
    narrowest = number(basis.attrs["narrowest"])
    scale = f" of {audit.scaled('the answer')}" if audit.transform else ""
    width = (
        f"If no component of the distribution{scale} is narrower than {narrowest}, {why}, and "
        "contributions do not follow the rest within one, it is"
    )
    no_less = (
        f"That no component{scale and f' of the distribution{scale}'} is narrower than "
        f"{narrowest}, {why}, shows no smaller one."
    )
    said = []
    for shape, limit, rest, more in zip(
        basis["shape"].to_numpy(), model, rests, largest, strict=True
    ):
        less = shape < data and risk_limit(shape) != risk_limit(data)
        parts = [start, f"{width} {at_most(shape)}." if less else no_less]
        below = [rest] if limit < min(shape, data) else []
        said.append(" ".join([*parts, *below, *more]))
    return tuple(said)


def _rests(basis: xr.Dataset) -> list[str]:
    """Return of every epsilon what is said of a limit that the data alone and the shape leave."""
    if "resampled" not in basis:
        return ["What is below rests on the model."] * basis.sizes["epsilon"]
    raised = (basis["resampled"] >= basis["model"]) & (basis["resampled"] > 0.0)
    return [
        "What is below rests on the model and on the databases themselves, resampled: by these it "
        "is larger than by the model."
        if more
        else "What is below rests on the model."
        for more in raised.to_numpy()
    ]


def _of_many(audit: Audit, basis: xr.Dataset) -> list[list[str]]:
    """Return of every epsilon what the largest of many adds to the limit, where that is much."""
    count = int(audit.settings["individuals"]) - int(audit.settings.get("not_assessed", 0))
    said = []
    for one, limit in zip(basis["individual"].to_numpy(), basis["model"].to_numpy(), strict=True):
        much = count > 1 and limit > MUCH * one and limit >= LEAST_SAID
        said.append(
            [
                f"For any single individual whose draws were kept it is {at_most(float(one))}: the "
                f"rest is what it takes to hold for the largest of {count:,}."
            ]
            if much
            else []
        )
    return said
