"""The slope of a least-squares line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.queries.base import require_name
from edp_bayes.records.exact import blocks
from edp_bayes.records.query import Query
from edp_bayes.records.summaries import Needs, Summaries
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

# Below this share of the predictor's spread, a contribution is the difference of two slopes.
LITTLE_SPREAD = 1e-3
# Below this share of the squared deviations that are left, these lie too far from their own mean.
FAR_FROM_MEAN = 1e-8


@dataclass(frozen=True)
class Slope(Query):
    """Slope of the ordinary least-squares fit of one column on another, with an intercept.

    Parameters
    ----------
    response, predictor : str
        Names of the columns y and x of y = a + b x.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a column is no name; when it is asked, if fewer than two records or a constant predictor
        would remain without an individual.

    See Also
    --------
    Variance : the variance of a column
    Mean : the mean of a column
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Slope("kwh", "temperature"))
    'slope:kwh:temperature'
    """

    response: str
    predictor: str

    def __post_init__(self) -> None:
        require_name(self.response, "response")
        require_name(self.predictor, "predictor")

    def columns(self) -> tuple[str, ...]:
        """Return both columns."""
        return tuple(dict.fromkeys((self.response, self.predictor)))

    def needs(self) -> Needs:
        """Return the sums of products of deviations, and the ends of the predictor."""
        x, y = self.predictor, self.response
        return Needs(products=((x, x), (x, y)), extremes=(x,))

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return slopes b and contributions.

        From deviations dx and residuals e, with N' = N - n_i records left,
        c = (sum_i dx e + sum_i dx sum_i e / N') / (Sxx - sum_i dx^2 - (sum_i dx)^2 / N').
        """
        owners = found.owners
        owners.require_remaining(2, "Slope")
        self._refuse_equal(found)
        x, y = self.predictor, self.response
        sum_x, sum_y = found.all_deviations(x), found.all_deviations(y)
        sum_xx, sum_xy = (found.by_database(found.products[names]) for names in ((x, x), (x, y)))
        mean_x, mean_y = (e.rounded() / owners.database_size for e in (sum_x, sum_y))
        spread = sum_xx.rounded() - sum_x.rounded() * mean_x
        slope = (sum_xy.rounded() - sum_x.rounded() * mean_y) / spread
        contribution = np.empty(owners.pair_size.size)
        for some in blocks(contribution.size):
            of, size, remaining = (
                of_pairs[some]
                for of_pairs in (owners.pair_database, owners.pair_size, owners.remaining)
            )
            dx, dy = found.deviations(x, some), found.deviations(y, some)
            square, product = found.products[x, x][some], found.products[x, y][some]
            rest_x, rest_y, squares, products = (
                (e[of] - own).rounded()
                for e, own in ((sum_x, dx), (sum_y, dy), (sum_xx, square), (sum_xy, product))
            )
            left = squares - rest_x**2 / remaining
            own_dx, own_dy = dx.rounded(), dy.rounded()
            own_x = own_dx - size * mean_x[of]
            own_y = own_dy - size * mean_y[of]
            own_xx = square.rounded() - mean_x[of] * (own_dx + own_x)
            own_xy = product.rounded() - mean_x[of] * own_dy - mean_y[of] * own_x
            change = own_xy - slope[of] * own_xx
            change += own_x * (own_y - slope[of] * own_x) / remaining
            contribution[some] = change / np.where(left > 0.0, left, 1.0)
            for row in np.flatnonzero(left < LITTLE_SPREAD * spread[of]):
                pair = int(row) + some.start
                self._refuse_equal_without(pair, found)
                if left[row] > FAR_FROM_MEAN * squares[row]:
                    without = products[row] - rest_x[row] * rest_y[row] / remaining[row]
                    without /= left[row]
                else:
                    without = _slope(*found.left_without(pair, (x, y)))
                contribution[pair] = slope[of[row]] - without
        return slope, contribution

    def _refuse_equal(self, found: Summaries) -> None:
        """Refuse a database in which the predictor does not vary."""
        owners, of = found.owners, found.owners.pair_database
        lowest = np.full(owners.databases.size, np.inf)
        highest = -lowest
        np.minimum.at(lowest, of, found.least[self.predictor])
        np.maximum.at(highest, of, found.largest[self.predictor])
        equal = np.flatnonzero(lowest == highest)
        if equal.size:
            raise InvalidInputError(
                f"Slope has no value in database {labels.show(owners.databases[equal[0]])}: "
                f"{self.predictor!r} is {lowest[equal[0]]:g} in all of its records"
            )

    def _refuse_equal_without(self, pair: int, found: Summaries) -> None:
        """Refuse a database in which the predictor does not vary without an individual."""
        owners = found.owners
        others: Index = np.flatnonzero(owners.pair_database == owners.pair_database[pair])
        others = others[others != pair]
        lowest = found.least[self.predictor][others].min()
        if lowest == found.largest[self.predictor][others].max():
            raise InvalidInputError(
                f"Slope has no value in {owners.show_pair(pair)}: {self.predictor!r} is the same "
                f"in all {owners.remaining[pair]} records"
            )

    def __str__(self) -> str:
        """Return the command-line form."""
        return f"slope:{self.response}:{self.predictor}"


def _slope(x: Array, y: Array) -> float:
    """Return the slope of one set of records."""
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))
