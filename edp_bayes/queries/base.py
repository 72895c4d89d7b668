"""What every built-in query provides: its columns and exact leave-one-out responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from edp_bayes.exceptions import InputTypeError
from edp_bayes.queries.records import Floats, Records, only_column


class Query(ABC):
    """A statistic of one database whose leave-one-out responses follow without rerunning it.

    Subclasses are frozen dataclasses; `str(query)` is the form that `edp_bayes.queries.parse`
    reads, where it has one: not for a variance with another ddof than 1.

    Examples
    --------
    >>> from edp_bayes import queries
    >>> isinstance(queries.Count(), Query), queries.Sum("amount").columns()
    (True, ('amount',))
    """

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the columns the query reads."""

    @abstractmethod
    def leave_one_out(self, records: Records) -> tuple[Floats, Floats]:
        """Return responses, shape (n,), and contributions y_j - y_ij of pairs, shape (pair,)."""

    def resolve(self, choices: Sequence[str]) -> Self:
        """Return the query with its column filled in, where it named none."""
        return self


@dataclass(frozen=True)
class ColumnQuery(Query):
    """A query of one value column.

    Parameters
    ----------
    column : str, optional
        Its name; may be left out where there is only one value column.
    """

    column: str | None = None

    def __post_init__(self) -> None:
        require_name(self.column, "column", optional=True)

    def columns(self) -> tuple[str, ...]:
        """Return the column's name."""
        return () if self.column is None else (self.column,)

    def resolve(self, choices: Sequence[str]) -> Self:
        """Return the query of the only value column, where it named none."""
        if self.column is not None:
            return self
        return replace(self, column=only_column(choices, type(self).__name__))

    def __str__(self) -> str:
        """Return the command-line form."""
        name = type(self).__name__.lower()
        return name if self.column is None else f"{name}:{self.column}"

    @property
    def named_column(self) -> str:
        """The column's name, once known."""
        return only_column(self.columns(), type(self).__name__)


def require_name(value: Any, name: str, *, optional: bool = False) -> None:
    """Refuse anything but the name of a column."""
    if not (isinstance(value, str) or (optional and value is None)):
        raise InputTypeError(f"{name} must be the name of a column, found {value!r}")
