"""Contributions of every individual to one query or several, entry by entry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Entries", "outer"]


class Entries(NamedTuple):
    """Contributions to all queries, by individual.

    Attributes
    ----------
    owner, database : ndarray of int
        Shape (entry,): whose, increasing, and in which database, increasing for each individual.
        An entry is there where any query's contribution is not zero. Of a randomised query every
        sample has entries of its own, and `database` is its row.
    value : ndarray
        Shape (entry, query).
    start : ndarray of int
        Shape (m + 1,): individual i owns the entries from start[i] to start[i + 1].
    """

    owner: Index
    database: Index
    value: Array
    start: Index

    def of(self, individual: int) -> tuple[Index, Array]:
        """Return databases and contributions of one individual."""
        own = slice(int(self.start[individual]), int(self.start[individual + 1]))
        return self.database[own], self.value[own]

    def matrices(self, rows: int) -> list[csc_array[np.float64]]:
        """Return a matrix of its own for every query, rows by individuals, with all entries."""
        from scipy.sparse import csc_array

        shape = (rows, self.start.size - 1)
        return [
            csc_array((one, self.database, self.start), shape=shape, copy=True)
            for one in self.value.T
        ]

    def total(self, values: Array) -> Array:
        """Return sums by individual of one number or array of each entry, shape (m, ...)."""
        people = self.start.size - 1
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        sums = [np.bincount(self.owner, part, people) for part in flat.T]
        return np.stack(sums, axis=1).reshape(people, *values.shape[1:])

    def covariance_without(self, response: Array, contribution: Array) -> Array:
        """Return that of the responses without each individual, shape (m, query, query).

        Of responses whose means are zero, and their contributions in the same units.
        """
        n, own = len(response), response[self.database]
        moved = outer(own - contribution) - outer(own)
        mean = self.total(contribution) / n
        return np.asarray(response.T @ response / n + self.total(moved) / n - outer(mean))


def outer(rows: Array) -> Array:
    """Return the product of every row with itself, shape (row, query, query)."""
    return np.asarray(rows[:, :, None] * rows[:, None, :])
