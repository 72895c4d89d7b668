"""What each part of a composition says on its own, in all of its draws.

A composition takes some of the draws; its limits may not lie below those of a part for that. So the
draws of every part are kept, and limits are the larger ones. One release of one audit is the audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.releases.sharing import names_of
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import EXACT_UP_TO

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["CURVE", "OWN", "TOTALS", "itself", "on_grid", "part_groups", "whole_draws"]

TOTALS = ("delta", "total_risk", "total_risk_bound")
CURVE, OWN = ("chain", "draw", "epsilon"), ("chain", "draw", "individual", "epsilon")


def itself(audits: Sequence[Audit], counts: Sequence[int], epsilon: Array) -> bool:
    """Return whether a composition is one release of one audit, whose integrals are known.

    Those of several queries are at the epsilons of the audit.
    """
    if len(audits) > 1 or counts[0] > 1:
        return False
    return not audits[0].joint or on_grid(audits[0], epsilon)


def on_grid(audit: Audit, epsilon: Array) -> bool:
    """Return whether these are epsilons of the audit."""
    return bool(np.isin(epsilon, audit.epsilon.to_numpy()).all())


def whole_draws(audit: Audit, epsilon: Array, progressbar: bool) -> xr.Dataset:
    """Return all draws of delta, delta* and the sum at some epsilons, as limits are made of them.

    Evaluated anew where the grid of the audit does not hold these epsilons.
    """
    if on_grid(audit, epsilon):
        return audit.safe_draws[list(TOTALS)].sel(epsilon=epsilon)
    from edp_bayes.auditing.evaluation import evaluate

    risks = evaluate(audit.fit, epsilon, progressbar=progressbar, exact_up_to=EXACT_UP_TO)
    found = {name: risks.safe(name) for name in TOTALS}
    lead = {name: audit.delta[name] for name in ("chain", "draw")}
    shape = (*(one.size for one in lead.values()), -1)
    return xr.Dataset(
        {name: (CURVE, values.reshape(shape)) for name, values in found.items()},
        coords={**lead, "epsilon": epsilon},
    )


def limit_draws(
    audit: Audit, places: Sequence[int | None], epsilon: Array, progressbar: bool
) -> xr.Dataset:
    """Return `whole_draws` with the risks of some individuals, by their places; of None zero."""
    found = whole_draws(audit, epsilon, progressbar)
    lead = tuple(found.sizes[name] for name in ("chain", "draw"))
    draws = [
        np.zeros((*lead, epsilon.size))
        if place is None
        else _own(audit, place, epsilon).reshape(*lead, epsilon.size)
        for place in places
    ]
    return found.assign(individual_delta=(OWN, np.stack(draws, axis=2)))


def part_groups(
    audits: Sequence[Audit], people: NDArray[Any], epsilon: Array, progressbar: bool
) -> dict[str, xr.Dataset]:
    """Return a group of draws for every part, by the name that it has in the tree."""
    found = {}
    for k, (part, names) in enumerate(zip(audits, names_of(audits), strict=True), start=1):
        place = {label: position for position, label in enumerate(names.tolist())}
        places = [place.get(label) for label in people.tolist()]
        draws = limit_draws(part, places, epsilon, progressbar)
        found[f"part_{k}"] = draws.assign_coords(individual=people)
    return found


def _own(audit: Audit, place: int, epsilon: Array) -> Array:
    """Return the draws of the individual in a place, of all chains, (draw, epsilon)."""
    kept = audit.safe_draws["individual_delta"]
    known = kept["individual"].to_numpy().tolist()
    label = audit.individuals["individual"].to_numpy()[place : place + 1].tolist()[0]
    if on_grid(audit, epsilon) and label in known:
        one = kept.isel(individual=known.index(label)).sel(epsilon=epsilon)
        values = one.transpose("chain", "draw", "epsilon").to_numpy()
        return np.asarray(values.reshape(-1, epsilon.size))
    fit = audit.fit
    curves = fit.curves(np.array([place]), epsilon)
    return np.asarray((curves.raised if audit.joint else curves)[:, 0])
