"""A quantile of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.queries.base import ColumnQuery
from edp_bayes.records.ownership import Ownership
from edp_bayes.records.summaries import Needs, Summaries, Window
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array, Index

HEAVY_TIES = 0.5


@dataclass(frozen=True)
class Quantile(ColumnQuery):
    """Quantile of a column over the records, by linear interpolation: NumPy's default.

    Parameters
    ----------
    column : str, optional
        Its name; may be left out where there is only one value column.
    q : float
        Level between 0, the minimum, and 1, the maximum.

    Raises
    ------
    InvalidInputError, InputTypeError
        If q lies outside of 0 to 1 or the column is no name; when it is asked, if a database would
        be empty without an individual.

    See Also
    --------
    Mean : the mean of a column
    edp_bayes.diagnostics.check_grid : whether answers lie on a grid
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Quantile("amount", 0.9))
    'quantile:amount:0.9'
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        level = validate.number(self.q, "q")
        if not 0 <= level <= 1:
            raise InvalidInputError(f"q must lie between 0 and 1, found {level}")
        object.__setattr__(self, "q", level)

    def needs(self) -> Needs:
        """Return the values around the quantile."""
        return Needs(quantile=(self.named_column, self.q))

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return quantiles and their change, from one sort of the values around them."""
        owners, window = found.owners, found.window
        assert window is not None
        owners.require_remaining(1, "Quantile")
        databases, of = owners.databases.size, owners.pair_database
        database = of[window.pair]
        order = _sorted_within(window.values, database, databases)
        ordered = window.values[order]
        size = np.bincount(database, minlength=databases)
        skipped = np.bincount(of, window.below, databases).astype(np.int64)
        # Where the record of rank 0 would stand among those here.
        start = np.cumsum(size) - size - skipped
        below, above, fraction = _positions(owners.database_size, self.q)
        response = _interpolate(ordered[start + below], ordered[start + above], fraction)
        # Contributions are differences: taken from a nearby origin they keep their digits.
        origin = ordered[start + below]
        moved = _interpolate(np.zeros_like(origin), ordered[start + above] - origin, fraction)

        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size) - start[database[order]]
        offset = rank - _place_in_pair(order, window)
        below, above, fraction = _positions(owners.remaining, self.q)
        first, origin = start[of], origin[of]
        without = _interpolate(
            ordered[first + _rank_of_remaining(below, offset, window)] - origin,
            ordered[first + _rank_of_remaining(above, offset, window)] - origin,
            fraction,
        )
        return response, moved[of] - without

    def warnings(self, response: Array, owners: Ownership, contribution: Array) -> tuple[str, ...]:
        """Return a warning where ties keep the quantile from moving.

        Without ties everybody moves a quantile, and one individual the minimum and the maximum.
        """
        moves = contribution != 0.0
        if self.q in (0.0, 1.0):
            still = np.ones(response.size, dtype=np.bool_)
            still[owners.pair_database[moves]] = False
            database, what = np.arange(response.size), "databases nobody moves it"
        else:
            still, database, what = ~moves, owners.pair_database, "removals it does not move"
        if still.sum() <= HEAVY_TIES * still.size:
            return ()
        first = int(database[np.argmax(still)])
        return (
            f"{self} stands at values that many records share, such as {response[first]:g} in "
            f"database {labels.show(owners.databases[first])}: in {int(still.sum()):,} of "
            f"{still.size:,} {what}. The answer is discrete "
            "and is treated as continuous, which may understate the risk of who does move it: "
            "record the values more finely, or audit a proportion or mean",
        )

    def __str__(self) -> str:
        """Return the command-line form."""
        return f"{super().__str__()}:{self.q!r}"


def _positions(size: Index, q: float) -> tuple[Index, Index, Array]:
    """Return the two order statistics around a quantile, and how far between them it lies."""
    place = np.asarray(q * (size - 1), dtype=np.float64)
    below: Index = np.floor(place).astype(np.int64)
    above: Index = np.minimum(below + 1, size - 1)
    return below, above, place - below


def _interpolate(below: Array, above: Array, fraction: Array) -> Array:
    """Interpolate from the nearer end, as NumPy does, so that equal ends give their value."""
    step = above - below
    return np.where(fraction < 0.5, below + step * fraction, above - step * (1 - fraction))


def _sorted_within(values: Array, database: Index, n_databases: int) -> Index:
    """Return the order of the records by database, then value."""
    order = np.argsort(values)
    # In the smallest type NumPy sorts the few distinct codes by counting, not comparing.
    codes = database.astype(np.min_scalar_type(n_databases))
    return order[np.argsort(codes[order], kind="stable")]


def _place_in_pair(order: Index, window: Window) -> Index:
    """Return how many records of the same pair come before each value in the order."""
    size = np.bincount(window.pair, minlength=window.below.size)
    place = window.below[window.pair]
    if order.size == 0 or size.max() == 1:
        return place
    order = order[np.argsort(window.pair[order], kind="stable")]
    start = np.cumsum(size) - size
    place[order] += np.arange(order.size) - start[window.pair[order]]
    return place


def _rank_of_remaining(k: Index, offset: Index, window: Window) -> Index:
    """Return the rank, among all records, of the k-th that is left once a pair is removed.

    A removed record at rank r with t removed ones below it has r - t remaining ones below it, so
    it precedes the k-th remaining record exactly if r - t <= k; those below the window all do.
    """
    precede = np.bincount(window.pair, offset <= k[window.pair], k.size).astype(np.int64)
    return k + window.below + precede
