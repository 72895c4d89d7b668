"""Privacy curves with their bands, thinned to what a report can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.report.content import Band, Crossing, Curve
from edp_bayes.results.bands import pointwise
from edp_bayes.results.base import TARGETS
from edp_bayes.results.summaries import interval
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.formatting import crossing

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves

__all__ = [
    "banded",
    "crossings",
    "numbers",
    "position",
    "require_inside",
    "shown_positions",
    "thinned",
]

MOST_EPSILONS = 201
KINDS = ("pointwise", "simultaneous")


def banded(result: PrivacyCurves, quantity: str, prob: float) -> Curve:
    """Return the posterior median of a quantity over epsilon, with both of its bands."""
    found = {kind: result.band(quantity, kind=kind, prob=prob) for kind in KINDS}
    bands = {
        kind: Band(numbers(band["lower"]), numbers(band["upper"])) for kind, band in found.items()
    }
    return Curve(numbers(found["pointwise"]["median"]), **bands)


def position(grid: Array, epsilon: float) -> int:
    """Return where in the grid an epsilon is, or the next one below; the first where none is.

    Examples
    --------
    >>> [position(np.array([0.1, 0.2]), epsilon) for epsilon in (0.05, 0.1, 0.15, 3.0)]
    [0, 0, 0, 1]
    """
    return max(int(np.searchsorted(grid, epsilon * (1.0 + 1e-9), side="right")) - 1, 0)


def require_inside(grid: Array, epsilon: float) -> float:
    """Return an epsilon that was asked for; refuse one outside of the grid."""
    wanted = validate.number(epsilon, "epsilon")
    if not grid[0] <= wanted <= grid[-1]:
        raise InvalidInputError(
            f"epsilon must lie in the grid of the result, from {grid[0]:g} to {grid[-1]:g}, "
            f"found {wanted:g}"
        )
    return wanted


def shown_positions(size: int, at: int) -> Index:
    """Return the positions of the grid that are shown: all, or 201 and that of the target.

    Examples
    --------
    >>> shown_positions(3, 1)
    array([0, 1, 2])
    >>> bool(777 in shown_positions(5000, 777))
    True
    """
    spaced = np.linspace(0, size - 1, min(size, MOST_EPSILONS)).round().astype(np.int64)
    return np.unique([*spaced, at])


def thinned(curve: Curve, shown: Index) -> Curve:
    """Return a curve at some of its points."""

    def few(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(values[k] for k in shown)

    def band(whole: Band | None) -> Band | None:
        return None if whole is None else Band(few(whole.lower), few(whole.upper))

    return Curve(few(curve.median), band(curve.pointwise), band(curve.simultaneous))


def crossings(result: PrivacyCurves, prob: float) -> tuple[Crossing, ...]:
    """Return the epsilon at which delta falls to each target, with its equal-tailed interval.

    No upper end is below what the databases themselves show.
    """
    last = float(result.epsilon[-1])
    rows = []
    for target in TARGETS:
        draws = result.epsilon_at(target)
        found, least = interval(draws, prob), interval(draws["lower"], prob)
        above = _shown_above(result, target, prob)
        if found[-1] < above[0]:
            found, least = (*found[:2], above[1]), (*least[:2], above[0])
        words = tuple(crossing(*ends, last) for ends in zip(found, least, strict=True))
        rows.append(Crossing(target, *found, words))
    return tuple(rows)


def _shown_above(result: PrivacyCurves, target: float, prob: float) -> tuple[float, float]:
    """Return the last epsilon at which the databases show delta above a target, and the next."""
    curves = result.resampled_curves
    if curves is None:
        return 0.0, 0.0
    upper = pointwise(curves, prob)[1]
    places = np.flatnonzero(upper > target)
    if places.size == 0:
        return 0.0, 0.0
    edges = np.append(result.epsilon.to_numpy(), np.inf)
    return float(edges[places[-1]]), float(edges[places[-1] + 1])


def numbers(values: xr.DataArray | ArrayLike) -> tuple[float, ...]:
    """Return a vector as plain numbers."""
    return tuple(np.asarray(values, dtype=np.float64).tolist())
