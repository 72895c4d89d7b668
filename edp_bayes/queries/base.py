"""A query of one value column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from edp_bayes.exceptions import InputTypeError
from edp_bayes.records.ownership import only_column
from edp_bayes.records.query import Query


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
