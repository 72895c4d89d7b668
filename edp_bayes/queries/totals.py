"""Queries that are totals or a ratio of two totals: count, sum and mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.queries.base import ColumnQuery
from edp_bayes.records.exact import blocks
from edp_bayes.records.ownership import Ownership
from edp_bayes.records.query import Query
from edp_bayes.records.summaries import Needs, Summaries
from edp_bayes.utils.arrays import Array


@dataclass(frozen=True)
class Count(Query):
    """Number of records of a database.

    See Also
    --------
    Sum : the sum of a column
    Proportion : the share of records that satisfy a condition
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Count())
    'count'
    """

    answers_nothing = True
    additive = True

    def columns(self) -> tuple[str, ...]:
        """Return no column: only the owners count."""
        return ()

    def step(self, owners: Ownership) -> float | None:
        """Return one."""
        return 1.0

    def needs(self) -> Needs:
        """Return nothing: pairs are counted in any case."""
        return Needs()

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return counts and how many records each individual owns."""
        owners = found.owners
        return owners.database_size.astype(np.float64), owners.pair_size.astype(np.float64)

    def __str__(self) -> str:
        """Return the command-line form."""
        return "count"


@dataclass(frozen=True)
class Sum(ColumnQuery):
    """Sum of a column; zero for an empty database.

    Parameters
    ----------
    column : str, optional
        Its name; may be left out where there is only one value column.

    Raises
    ------
    InputTypeError
        If the column is no name.

    See Also
    --------
    Count : the number of records
    Mean : the mean of a column
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Sum("amount"))
    'sum:amount'
    """

    answers_nothing = True
    additive = True

    def needs(self) -> Needs:
        """Return the sums of the column."""
        return Needs(sums=(self.named_column,))

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return sums and the sum each individual adds, each rounded once."""
        own = found.sums[self.named_column]
        return found.by_database(own).rounded(), own.rounded()


@dataclass(frozen=True)
class Mean(ColumnQuery):
    """Arithmetic mean of a column over the records.

    Parameters
    ----------
    column : str, optional
        Its name; may be left out where there is only one value column.

    Raises
    ------
    InvalidInputError
        When asked, if without an individual no record of a database is left.

    See Also
    --------
    Sum : the sum of a column
    Quantile : a quantile of a column
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> str(Mean("amount"))
    'mean:amount'
    """

    def needs(self) -> Needs:
        """Return the sums of the column."""
        return Needs(sums=(self.named_column,))

    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return means and c = sum_i (x - mean) / (N - n_i), with no difference of means."""
        owners = found.owners
        owners.require_remaining(1, "Mean")
        name = self.named_column
        beyond = found.all_deviations(name).rounded() / owners.database_size
        contribution = np.empty(owners.pair_size.size)
        for some in blocks(contribution.size):
            of, size = owners.pair_database[some], owners.pair_size[some]
            own = found.deviations(name, some).rounded() - size * beyond[of]
            contribution[some] = own / owners.remaining[some]
        return found.origins[name] + beyond, contribution
