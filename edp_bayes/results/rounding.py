"""What rounding would leave of a risk, by the draws of a fit, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.results.bands import limit_of_both
from edp_bayes.utils.formatting import either, number, risk_least, risk_limit

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.verdict import Target
    from edp_bayes.utils.arrays import Array

__all__ = ["ROUNDING", "may_be_rounded", "rounding_sentence"]

ROUNDING = "rounding"  # the group of a result
# Settings of audits of which no rounded answer is known.
NOT_ROUNDED = ("released", "queries", "transform", "atoms", "reduced")


def may_be_rounded(result: PrivacyCurves) -> bool:
    """Return whether `edp_bayes.released` takes such an audit, and its answer is whole."""
    return not any(name in result.settings for name in NOT_ROUNDED)


def rounding_sentence(
    rounding: xr.Dataset, target: Target, at: int, *, prob: float, kind: str
) -> str:
    """Return the least step of rounding that would meet a target, or that none would.

    Parameters
    ----------
    rounding : Dataset
        As of `edp_bayes.Audit.rounding`.
    target : Target
        What is to be met.
    at : int
        Where the limit is read in the grid of epsilon.
    prob : float
        Probability of the limit.
    kind : {"pointwise", "simultaneous"}
        As of the verdict.

    Returns
    -------
    str
        Empty where the bounds say neither.
    """

    def draws(name: str) -> Array:
        return rounding[name].transpose("rounded_to", ..., "epsilon").to_numpy()

    upper, lower = (
        [
            float(limit_of_both(drawn, shown, prob, kind=kind)[at])
            for drawn, shown in zip(draws(name), draws("resampled"), strict=True)
        ]
        for name in ("delta", "least")
    )
    steps = rounding["rounded_to"].to_numpy().tolist()
    for step, limit, moved in zip(steps, upper, rounding["moves"].to_numpy(), strict=True):
        if limit <= target.delta:
            return (
                f"Rounding to {number(step)} would meet the target: the limit would be "
                f"{risk_limit(limit)}. It would move an answer by {number(float(moved), 2)} of its "
                "standard deviation."
            )
    if not steps or min(lower) <= target.delta:
        return ""
    return (
        f"Rounding to {either(map(number, steps))} would not meet the target: the limit would be "
        f"at least {risk_least(min(lower))}."
    )
