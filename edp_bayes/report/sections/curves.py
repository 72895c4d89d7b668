"""Privacy curves with their bands, thinned to what a report can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.report.content import Band, Crossing, Curve
from edp_bayes.results.base import TARGETS
from edp_bayes.results.summaries import interval
from edp_bayes.utils import validate
from edp_bayes.utils.formatting import crossing, risk_limit

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves

__all__ = [
    "Chosen",
    "banded",
    "chosen",
    "crossings",
    "numbers",
    "place",
    "shown_positions",
    "thinned",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_EPSILONS = 201
KINDS = ("pointwise", "simultaneous")
LARGEST_CHOSEN = 10.0  # epsilon, where nobody asked for one
# Times the number of databases, the limit of an individual who was there once and contributed five
# standard deviations: 2.9 to 3.4 for 20 to 365 databases, by `edp_bayes.smallest_delta`.
ONCE = 3.3


def banded(result: PrivacyCurves, quantity: str, prob: float) -> Curve:
    """Return the posterior median of a quantity over epsilon, with both of its bands."""
    found = {kind: result.band(quantity, kind=kind, prob=prob) for kind in KINDS}
    bands = {
        kind: Band(numbers(band["lower"]), numbers(band["upper"])) for kind, band in found.items()
    }
    return Curve(numbers(found["pointwise"]["median"]), **bands)


class Chosen(NamedTuple):
    """Where in the grid a verdict is given, and why there, in a sentence."""

    at: int
    why: str


def chosen(
    grid: Array,
    epsilon: float | None,
    upper: ArrayLike,
    *,
    symbol: str = "ε",
    what: str = "limit",
    databases: int | None = None,
) -> Chosen:
    """Return where in the grid the verdict is given, and why if nobody asked for it.

    By default it is the first epsilon at which the upper limit of delta is at most the first of
    the targets, which the sentence names; not above 10, where odds may change by a factor of 22,000
    and a small delta says nothing. Where the limit is nowhere that small it is the first of all,
    the largest risk. A wish between two values of the grid means the lower one, which errs on
    the safe side. Where so few databases can hardly show the target of anybody, it says so.

    Parameters
    ----------
    grid, upper : array_like
        Shape (epsilon,): the grid, and the limit of delta of the whole curve.
    epsilon : float or None
        The wish.
    symbol, what : str
        What epsilon, and the limit, are called.
    databases : int, optional
        Of an audit of individuals, how many there were.

    Examples
    --------
    >>> chosen(np.array([0.1, 0.2]), None, [0.5, 0.006]).why
    'By default the first ε is shown at which the limit is at most 0.01, here 0.2.'
    >>> chosen(np.array([0.1, 0.2]), None, [0.5, 0.02])
    Chosen(at=0, why='Up to ε = 0.2 the limit is nowhere below 0.01, the default target: it is 0.02 there. Shown is the first ε, 0.1.')
    """  # noqa: E501
    target = TARGETS[0]
    if epsilon is None:
        limit = np.asarray(upper)
        last = max(int(np.searchsorted(grid, LARGEST_CHOSEN, side="right")) - 1, 0)
        good = np.flatnonzero(limit[: last + 1] <= target)
        if good.size:
            at = int(good[0])
            return Chosen(
                at,
                f"By default the first {symbol} is shown at which the {what} is at most "
                f"{target:g}, here {grid[at]:.4g}.",
            )
        return Chosen(
            0,
            f"Up to {symbol} = {grid[last]:.4g} the {what} is nowhere below {target:g}, the "
            f"default target: it is {risk_limit(float(limit[last]))} there. Shown is the first "
            f"{symbol}, {grid[0]:.4g}.{_out_of_reach(target, databases)}",
        )
    wanted = validate.number(epsilon, "epsilon")
    if not grid[0] <= wanted <= grid[-1]:
        raise InvalidInputError(
            f"epsilon must lie in the grid of the result, from {grid[0]:g} to {grid[-1]:g}, "
            f"found {wanted:g}"
        )
    return Chosen(int(np.searchsorted(grid, wanted, side="right")) - 1, "")


def place(
    result: PrivacyCurves, epsilon: float | None, limit: Array, *, symbol: str = "ε"
) -> Chosen:
    """Return where in the grid of a result the verdict is given; see `chosen`."""
    grid = result.epsilon.to_numpy()
    return chosen(grid, epsilon, limit, symbol=symbol, databases=_databases(result))


def _databases(result: PrivacyCurves) -> int | None:
    """Return how many databases individuals were in, where one release of them is audited."""
    groups = result.tree.children
    if "individuals" not in groups or "composition" in groups:
        return None
    return int(result.settings["databases"])


def _out_of_reach(target: float, databases: int | None) -> str:
    """Return the limit of who was there once and stood out, where it is above a target."""
    if databases is None or ONCE / databases <= target:
        return ""
    return (
        f" Of an individual who contributed several standard deviations of the answer, if only "
        f"once, {databases:,} databases show no limit below about {ONCE / databases:.2g} "
        "(edp_bayes.smallest_delta)."
    )


def shown_positions(size: int, at: int) -> Index:
    """Return the positions of the grid that are shown: all, or 201 and that of the verdict.

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
    """Return the epsilon at which delta falls to each target, with its equal-tailed interval."""
    last = float(result.epsilon[-1])
    rows = []
    for target in TARGETS:
        draws = result.epsilon_at(target)
        found, least = interval(draws, prob), interval(draws["lower"], prob)
        words = tuple(crossing(*ends, last) for ends in zip(found, least, strict=True))
        rows.append(Crossing(target, *found, words))
    return tuple(rows)


def numbers(values: xr.DataArray | ArrayLike) -> tuple[float, ...]:
    """Return a vector as plain numbers."""
    return tuple(np.asarray(values, dtype=np.float64).tolist())
