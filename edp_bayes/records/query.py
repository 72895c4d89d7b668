"""What every built-in query provides: its columns and exact leave-one-out responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from edp_bayes.records.ownership import Ownership
from edp_bayes.records.summaries import Needs, Summaries
from edp_bayes.utils.arrays import Array

__all__ = ["Query"]


class Query(ABC):
    """A statistic of one database whose leave-one-out responses follow without rerunning it.

    Subclasses are frozen dataclasses; `str(query)` is the form that `edp_bayes.queries.parse`
    reads, where it has one: not for a variance with another ddof than 1.

    See Also
    --------
    edp_bayes.Databases.respond : the responses of a query
    parse : the query that a text stands for
    Sum : the sum of a column

    Examples
    --------
    >>> from edp_bayes import queries
    >>> isinstance(queries.Count(), Query), queries.Sum("amount").columns()
    (True, ('amount',))
    """

    answers_nothing: ClassVar[bool] = False
    """Whether a database without records has an answer."""
    additive: ClassVar[bool] = False
    """Whether the answer is a sum over individuals."""

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the columns the query reads."""

    @abstractmethod
    def needs(self) -> Needs:
        """Return what the answers follow from, for every individual in every database."""

    @abstractmethod
    def leave_one_out(self, found: Summaries) -> tuple[Array, Array]:
        """Return responses, shape (n,), and contributions y_j - y_ij of pairs, shape (pair,)."""

    def resolve(self, choices: Sequence[str]) -> Self:
        """Return the query with its column filled in, where it named none."""
        return self

    def step(self, owners: Ownership) -> float | None:
        """Return the step of the grid on which all answers lie; None where there is none."""
        return None

    def warnings(self, response: Array, owners: Ownership, contribution: Array) -> tuple[str, ...]:
        """Return what is legal but doubtful about responses and contributions."""
        return ()
