"""The variance of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries.base import ColumnQuery
from edp_bayes.records.exact import blocks
from edp_bayes.records.summaries import Needs, Summaries
from edp_bayes.utils.arrays import Array


@dataclass(frozen=True)
class Variance(ColumnQuery):
    """Variance of a column over the records.

    Parameters
    ----------
    column : str, optional
        Its name; may be left out where there is only one value column.
    ddof : int
        The squared deviations are divided by the number of records minus ddof.

    Raises
    ------
    InvalidInputError, InputTypeError
        If ddof is not an integer from 0 or the column is no name; when it is asked, if too few
        records would remain without an individual.

    See Also
    --------
    Mean : the mean of a column
    Slope : the slope of a regression
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Variance("amount"))
    'variance:amount'
    """

    ddof: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.ddof, bool) or not isinstance(self.ddof, int | np.integer):
            raise InputTypeError(f"ddof must be an integer, found {self.ddof!r}")
        if self.ddof < 0:
            raise InvalidInputError(f"ddof must not be negative, found {self.ddof}")

    def needs(self) -> Needs:
        """Return the sums of the squared deviations."""
        return Needs(products=((self.named_column, self.named_column),))

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return variances V and contributions.

        From deviations d, with N' = N - n_i records left,
        c = (sum_i d^2 + (sum_i d)^2 / N' - n_i V) / (N' - ddof).
        """
        owners = found.owners
        owners.require_remaining(self.ddof + 1, "Variance")
        name = self.named_column
        square = found.products[name, name]
        total = found.all_deviations(name).rounded()
        beyond = total / owners.database_size
        variance = (found.by_database(square).rounded() - total * beyond) / (
            owners.database_size - self.ddof
        )
        contribution = np.empty(owners.pair_size.size)
        for some in blocks(contribution.size):
            of, size, remaining = (
                of_pairs[some]
                for of_pairs in (owners.pair_database, owners.pair_size, owners.remaining)
            )
            # From the origin, which is nearly the mean, to the mean itself.
            own, shift = found.deviations(name, some).rounded(), beyond[of]
            centred = own - size * shift
            squares = square[some].rounded() - shift * (own + centred)
            removed = squares + centred**2 / remaining - size * variance[of]
            contribution[some] = removed / (remaining - self.ddof)
        return variance, contribution

    def __str__(self) -> str:
        """Return the command-line form, which has ddof 1, or else with the ddof behind it."""
        return super().__str__() + ("" if self.ddof == 1 else f" (ddof {self.ddof})")
