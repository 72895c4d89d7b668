"""The riskiest individuals: a table, a histogram of all others, densities with and without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from edp_bayes.report.content import (
    Band,
    Curve,
    Distributions,
    Histogram,
    People,
    Person,
    TotalRisk,
)
from edp_bayes.report.pseudonyms import Namer
from edp_bayes.report.sections.curves import banded, numbers, thinned
from edp_bayes.results import bands
from edp_bayes.results.summaries import (
    contributions_shown,
    individual_intervals,
    log_ratio,
    most_total,
)
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.formatting import rounded_up

if TYPE_CHECKING:
    from edp_bayes.results.base import IndividualCurves
    from edp_bayes.results.query import Audit

__all__ = ["distributions", "people", "total_risk"]

MOST_ROWS = 1000
MOST_DISTRIBUTIONS = 6


def total_risk(audit: IndividualCurves, shown: Index, prob: float) -> TotalRisk:
    """Return delta* and the upper end of the band of min(1, sum_i delta_i) at some epsilons."""
    bound = most_total(audit, prob).to_numpy()
    return TotalRisk(thinned(banded(audit, "total_risk", prob), shown), numbers(bound[shown]))


def people(audit: Audit, at: int, prob: float, named: Namer) -> People:
    """Return the riskiest individuals, those whose draws were kept, and counts of the rest.

    Under pseudonyms the largest contribution is rounded up to two digits: to the last one it
    would say who it is.
    """
    about = audit.individuals
    plain = labels.plain_list(about["individual"].to_numpy())
    mean = about["mean"].transpose("individual", "epsilon").to_numpy()
    median = about["median"].transpose("individual", "epsilon").to_numpy()
    presence = about["presence"].to_numpy()
    shown, contributes = contributions_shown(audit)
    contribution = shown.to_numpy()
    kept = _kept(audit, at, prob)
    seen = about["last_seen"].to_numpy().astype(str)
    order = np.lexsort((-mean.sum(axis=1), -median[:, at]))
    # who was seen in lags alone is not assessed, and stands in no table
    unassessed = audit.settings.get("not_assessed", 0) > 0
    left_out = np.flatnonzero((presence == 0) & unassessed)
    order = order[~np.isin(order, left_out)]
    where = {label: k for k, label in enumerate(plain)}
    must = {where[label] for label in kept}
    chosen = [*order[:MOST_ROWS].tolist()]
    chosen += [int(k) for k in order[MOST_ROWS:] if int(k) in must]
    rows = tuple(
        Person(
            name=named(plain[k]),
            presence=int(presence[k]),
            last_seen=str(seen[k]),
            contribution=float(contribution[k])
            if named.described is None
            else rounded_up(float(contribution[k])),
            median=float(median[k, at]),
            interval=kept.get(plain[k]),
            median_at_first=float(median[k, 0]),
        )
        for k in chosen
    )
    rest = np.delete(median[:, at], [*chosen, *left_out])
    return People(
        rows,
        total=order.size,
        rest=_histogram(rest),
        contributes=contributes,
    )


def distributions(audit: Audit, at: int, prob: float, named: Namer) -> tuple[Distributions, ...]:
    """Return the densities with and without the riskiest of those whose draws were kept."""
    group = audit.tree["densities"].to_dataset()
    draws = audit.individual_delta.transpose("individual", "epsilon", ...)
    total = draws.mean(("chain", "draw")).to_numpy().sum(axis=1)
    median = draws.median(("chain", "draw")).to_numpy()
    order = np.lexsort((-total, -median[:, at]))[:MOST_DISTRIBUTIONS]
    plain = labels.plain_list(group["individual"].to_numpy())
    return tuple(
        _distributions(group.isel(individual=k), named(plain[k]), prob, audit.modelled_answer)
        for k in order.tolist()
    )


def _kept(audit: Audit, at: int, prob: float) -> dict[object, tuple[float, float, float]]:
    kept = labels.plain_list(audit.individual_delta["individual"].to_numpy())
    found = individual_intervals(audit, at, prob).tolist()
    return {
        label: (low, middle, high) for label, (low, middle, high) in zip(kept, found, strict=True)
    }


def _histogram(median: Array) -> Histogram:
    positive = median[median > 0.0]
    if positive.size == 0:
        return Histogram((), (), without=int(median.size))
    powers = np.floor(np.log10(positive)).astype(np.int64)
    low, high = int(powers.min()), int(powers.max())
    counts = np.bincount(powers - low, minlength=high - low + 1)
    return Histogram(
        tuple(range(low, high + 2)), tuple(counts.tolist()), without=int((median <= 0.0).sum())
    )


def _distributions(draws: xr.Dataset, name: str, prob: float, axis: str) -> Distributions:
    x = draws["x"].to_numpy()
    present, absent = (
        _flat(draws[f"density_{distribution}"]) for distribution in ("with", "without")
    )
    ratio = _flat(log_ratio(draws.astype(np.float64)))
    visible = np.isfinite(ratio).all(axis=0)
    return Distributions(
        name,
        numbers(x),
        _curve(present, prob),
        _curve(absent, prob),
        numbers(x[visible]),
        _curve(ratio[:, visible], prob),
        axis,
    )


def _flat(draws: xr.DataArray) -> Array:
    values = draws.transpose("chain", "draw", "x").to_numpy().astype(np.float64)
    return np.asarray(values.reshape(-1, values.shape[-1]))


def _curve(draws: Array, prob: float) -> Curve:
    lower, upper = bands.pointwise(draws, prob)
    return Curve(numbers(np.median(draws, axis=0)), Band(numbers(lower), numbers(upper)))
