"""Numbers that sum up draws: tables by ArviZ, intervals that may be infinite, an order by risk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from edp_bayes.results import bands
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import default_probability

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.base import IndividualCurves
    from edp_bayes.results.query import Audit

__all__ = [
    "CI_KINDS",
    "answers_of",
    "by_risk",
    "contributions_shown",
    "finite_draws",
    "individual_intervals",
    "interval",
    "largest_and_spread",
    "log_ratio",
    "most_total",
    "riskiest",
    "summary_table",
]

CI_KINDS = ("eti", "hdi")


def finite_draws(posterior: xr.Dataset) -> tuple[xr.Dataset, dict[str, float]]:
    """Return draws in which infinity is a number just above the largest finite one of a quantity.

    Beside them the largest finite draws, of the quantities with infinite ones.
    """
    finite, largest = posterior.copy(), {}
    for name, draws in posterior.items():
        values = draws.to_numpy()
        if np.isinf(values).any():
            top = float(values[np.isfinite(values)].max(initial=0.0))
            finite[name] = draws.where(np.isfinite(draws), top + 1.0)
            largest[str(name)] = top
    return finite, largest


def summary_table(
    posterior: xr.Dataset, ci_prob: float | None, ci_kind: str | None
) -> pd.DataFrame:
    """Return ArviZ's summary of draws that are all finite."""
    import pandas as pd
    from arviz_base import rcParams
    from arviz_stats import summary

    if ci_kind is None:
        ci_kind = rcParams["stats.ci_kind"]
    validate.choice(ci_kind, CI_KINDS, "ci_kind")
    options = {"ci_prob": default_probability(ci_prob), "round_to": "none"}

    def of(name: str) -> pd.DataFrame:
        tree = xr.DataTree.from_dict({"posterior": posterior[[name]]})
        table: pd.DataFrame = summary(tree, kind="all_median", **options)
        if ci_kind == "hdi":  # beside medians ArviZ gives equal-tailed intervals only
            other = summary(tree, kind="stats", ci_kind="hdi", **options).filter(like="hdi")
            equal = table.columns[table.columns.str.startswith("eti")]
            table[equal] = other
            table = table.rename(columns=dict(zip(equal, other.columns, strict=True)))
        return table

    # One variable at a time, in its own order of dimensions: with several, ArviZ stacks values
    # in the order of the data set's.
    with np.errstate(invalid="ignore"):
        parts = [of(str(name)) for name in posterior.data_vars]
    table: pd.DataFrame = pd.concat(parts)
    # Draws that are all equal have converged, though R-hat is 0 / 0 there.
    table["r_hat"] = table["r_hat"].fillna(1.0)
    return table


def interval(draws: ArrayLike, prob: float) -> tuple[float, float, float]:
    """Return lower end, median and upper end, those of `summary_table` where draws are finite.

    Quantiles among infinite draws, or next to one, are infinite.

    Examples
    --------
    >>> interval([1.0, 2.0, float("inf")], 0.5)
    (1.5, 2.0, inf)
    """
    tail = 0.5 * (1.0 - prob)
    levels, values = [tail, 0.5, 1.0 - tail], np.ravel(draws)
    with np.errstate(invalid="ignore"):
        found = np.quantile(values, levels)
    whole = np.quantile(values, levels, method="inverted_cdf")
    lower, middle, upper = np.where(np.isnan(found), whole, found)
    return float(lower), float(middle), float(upper)


def most_total(audit: IndividualCurves, prob: float) -> xr.DataArray:
    """Return what the total risk is at most whatever the dependence: the end of a whole band.

    That of the sum of all risks, and nowhere below that of delta*, which is at most this sum.
    """
    total, bound = (
        audit.band(name, prob=prob)["upper"] for name in ("total_risk", "total_risk_bound")
    )
    return total.where(total > bound, bound)


def riskiest(audit: Audit, epsilon: float) -> xr.DataArray:
    """Return delta_i of the kept individuals at one epsilon, by falling posterior median.

    Dims (chain, draw, individual).
    """
    risk = audit.individual_delta.sel(epsilon=epsilon, method="nearest", drop=True)
    return risk.isel(individual=by_risk(audit, epsilon))


def individual_intervals(audit: Audit, at: int, prob: float) -> Array:
    """Return the equal-tailed interval of delta_i of the kept individuals at one epsilon.

    Lower end, median and upper end, shape (individual, 3). No upper end is below what the databases
    themselves show.
    """
    draws = audit.individual_delta.isel(epsilon=at).transpose("individual", "chain", "draw")
    found = np.array([interval(one, prob) for one in draws.to_numpy()])
    above = audit.resampled_end(
        "individual_delta", lambda curves: bands.band(curves.T, prob, kind="pointwise")[1]
    )
    if above is not None:
        shown = above.isel(epsilon=at).transpose("individual").to_numpy()
        found[:, 2] = np.maximum(found[:, 2], shown)
    return found


def by_risk(audit: Audit, epsilon: float) -> NDArray[np.int64]:
    """Return the positions of the kept individuals at one epsilon, by falling posterior median."""
    risk = audit.individual_delta.sel(epsilon=epsilon, method="nearest")
    return np.argsort(-risk.median(("chain", "draw")).to_numpy(), kind="stable")


def log_ratio(densities: xr.Dataset) -> xr.DataArray:
    """Return log(with / without) of one individual."""
    return densities["log_ratio"].astype(np.float64)


def largest_and_spread(audit: Audit) -> tuple[float, float] | None:
    """Return the largest contribution in size, and the spread of the answers as released.

    None where nobody changes an answer, where noise is there already, or where contributions are
    known adjusted alone.
    """
    contribution, name = contributions_shown(audit)
    if not name.startswith("largest"):
        return None
    largest = float(abs(contribution).max())
    if largest == 0.0 or json.loads(audit.tree.attrs["noise"]) is not None:
        return None
    return largest, float(answers_of(audit).std(ddof=1))


def answers_of(audit: Audit) -> Array:
    """Return the answers as they were released, of all databases that a result holds."""
    groups = audit.tree.children
    if "answers" in groups:  # on their own scale
        answers = groups["answers"]["response"]
    elif "known" in groups:
        answers = groups["known"]["released"]
    else:
        answers = groups["observed_data"]["response"]
    return np.asarray(answers.to_numpy(), dtype=np.float64).ravel()


def contributions_shown(audit: Audit) -> tuple[xr.DataArray, str]:
    """Return everybody's contribution of largest size, with its sign if known, and its name.

    It is as the individual made it, in any database. One that was adjusted to the database in
    question or divided by a scale is called adjusted: of several queries together there is no
    other.
    """
    about = audit.individuals
    if "largest_contribution" not in about:
        return about["adjusted_contribution"], "adjusted contribution"
    name = "adjusted contribution" if audit.joint else "largest contribution"
    return about.get("signed_contribution", about["largest_contribution"]), name
