"""The slope of a least-squares line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.queries.base import require_name
from edp_bayes.records.ownership import Floats, Records
from edp_bayes.records.query import Query
from edp_bayes.utils import labels

# Below this share of the predictor's spread, subtracting what an individual owns loses digits.
LITTLE_SPREAD = 1e-3


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

    def leave_one_out(self, records: Records) -> tuple[Floats, Floats]:
        """Return slopes b and contributions.

        From deviations dx and residuals e, with N' = N - n_i records left,
        c = (sum_i dx e + sum_i dx sum_i e / N') / (Sxx - sum_i dx^2 - (sum_i dx)^2 / N').
        """
        records.require_remaining(2, "Slope")
        owners = records.owners
        x, y = records.numbers(self.predictor), records.numbers(self.response)
        _refuse_equal(x, self.predictor, records)
        dx, _ = records.centred(self.predictor)
        dy, _ = records.centred(self.response)
        spread = records.database_total(dx**2)
        slope = records.database_total(dx * dy) / spread
        residual = dy - slope[owners.database] * dx
        own = records.pair_total(dx)
        left = spread[owners.pair_database] - records.pair_total(dx**2) - own**2 / owners.remaining
        change = records.pair_total(dx * residual)
        change += own * records.pair_total(residual) / owners.remaining
        little = np.flatnonzero(left < LITTLE_SPREAD * spread[owners.pair_database])
        left[little] = 1.0
        contribution = change / left
        for pair in little:
            rows = records.without(int(pair))
            without = _slope(x[rows], y[rows])
            if without is None:
                raise InvalidInputError(
                    f"Slope has no value in {owners.show_pair(int(pair))}: "
                    f"{self.predictor!r} is the same in all {rows.size} records"
                )
            contribution[pair] = slope[owners.pair_database[pair]] - without
        return slope, contribution

    def __str__(self) -> str:
        """Return the command-line form."""
        return f"slope:{self.response}:{self.predictor}"


def _slope(x: Floats, y: Floats) -> float | None:
    """Return the slope of one set of records, None where x does not vary."""
    if np.ptp(x) == 0:
        return None
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))


def _refuse_equal(x: Floats, predictor: str, records: Records) -> None:
    """Refuse a database in which the predictor does not vary."""
    owners = records.owners
    lowest = np.full(owners.databases.size, np.inf)
    highest = -lowest
    np.minimum.at(lowest, owners.database, x)
    np.maximum.at(highest, owners.database, x)
    equal = np.flatnonzero(lowest == highest)
    if equal.size:
        raise InvalidInputError(
            f"Slope has no value in database {labels.show(owners.databases[equal[0]])}: "
            f"{predictor!r} is {lowest[equal[0]]:g} in all of its records"
        )
