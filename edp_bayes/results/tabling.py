"""A result as a column of a regression table: the plug-in format of maketables, without it.

Its names are dictated: b, se and p are its estimate, its standard error and its p-value, of which
a posterior has a median, a standard deviation and none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import percent, risk

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.base import PrivacyCurves

__all__ = ["STATISTICS", "coefficients", "statistic", "statistic_labels"]

# Statistics below the table by default, in their order.
STATISTICS = ("N", "individuals", "model", "draws", "verdict")
LABELS = {
    "N": "Databases",
    "individuals": "Individuals",
    "model": "Model",
    "sampler": "Sampler",
    "draws": "Draws",
    "random_seed": "Seed",
    "against": "Against",
    "verdict": "Verdict",
    "se_type": "In brackets",
}


def coefficients(result: PrivacyCurves) -> pd.DataFrame:
    """Return a row for each epsilon of the grid.

    Columns b, the posterior median of delta, se, its standard deviation, p, missing, so that no
    number gets stars, ci95l and ci95u, the ends of the pointwise band, and limit, the upper limit.
    """
    import pandas as pd

    band = result.band("delta", kind="pointwise", prob=PROB)
    names = [f"delta, epsilon = {float(epsilon):.6g}" for epsilon in result.epsilon]
    return pd.DataFrame(
        {
            "b": band["median"].to_numpy(),
            "se": result.delta.std(("chain", "draw")).to_numpy(),
            "p": np.full(len(names), np.nan),
            "ci95l": band["lower"].to_numpy(),
            "ci95u": band["upper"].to_numpy(),
            "limit": result.upper("delta", prob=PROB).to_numpy(),
        },
        index=pd.Index(names, name="Coefficient"),
    )


def statistic(result: PrivacyCurves, key: str) -> float | str | None:
    """Return a number or words to stand below the table, None where there is none."""
    settings = result.settings
    if key == "N":
        return int(np.min(settings["databases" if "databases" in settings else "samples"]))
    if key == "draws":
        return int(result.delta.sizes["chain"] * result.delta.sizes["draw"])
    if key == "verdict":
        found = result.verdict()
        target = f"{risk(found.delta)} at epsilon = {found.epsilon:.4g}"
        return f"{found.status} (target: {target})"
    if key == "se_type":
        return f"posterior standard deviation; bands and limits of {percent(PROB)}"
    value = settings.get(key) if key in LABELS else None
    return value if isinstance(value, int) else str(value) if value else None


def statistic_labels(result: PrivacyCurves) -> dict[str, str]:
    """Return what statistics are called."""
    return LABELS if "databases" in result.settings else {**LABELS, "N": "Samples"}
