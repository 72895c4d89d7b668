"""What a report says of a mechanism: the local epsilon, of the worst pair and of every pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from edp_bayes.report.content import LocalEpsilon
from edp_bayes.results.summaries import interval

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves

__all__ = ["has_local_epsilon", "local_epsilons"]


def has_local_epsilon(result: PrivacyCurves) -> bool:
    """Whether the result is that of a mechanism."""
    return "local_epsilon" in result.tree["posterior"].data_vars


def local_epsilons(result: PrivacyCurves, prob: float, *, names: bool) -> tuple[LocalEpsilon, ...]:
    """Return the local epsilon of the worst pair, then of every pair by falling median.

    Databases are records, so pairs are called by their number unless names are asked for.
    """
    if not has_local_epsilon(result):
        return ()
    posterior = result.tree["posterior"].to_dataset()
    found = [_local(None, posterior["local_epsilon"], prob)]
    if "pair_local_epsilon" in posterior:
        pairs = posterior["pair_local_epsilon"]
        labels = pairs["pair"].to_numpy().tolist()
        each = [
            _local(str(label) if names else f"pair {k}", pairs.isel(pair=k), prob)
            for k, label in enumerate(labels)
        ]
        found += sorted(each, key=lambda one: (-one.median, -one.upper))
    return tuple(found)


def _local(name: str | None, draws: xr.DataArray, prob: float) -> LocalEpsilon:
    values = draws.to_numpy().ravel()
    lower, median, upper = interval(values, prob)
    return LocalEpsilon(name, lower, median, upper, float(np.isinf(values).mean()))
