"""Verdicts of all cells of a table, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edp_bayes.auditing.cells.work import NO_AUDIT, REVEALED
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET, UNDECIDED
from edp_bayes.utils import files

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ORDER", "Cells"]

# From the worst on.
ORDER = (REVEALED, NOT_ESTABLISHED, NOT_MET, UNDECIDED, NO_AUDIT, MET)


@dataclass(frozen=True, eq=False)
class Cells:
    """Verdicts of all cells of a table, the worst first.

    Made by `edp_bayes.audit_cells`.

    Parameters
    ----------
    table : DataFrame
        One row a cell or total: its keys, kind, databases and individuals with records in it,
        databases in which one individual was alone in it, status, epsilon, delta (the target),
        limit, lower, median, withheld_by and sentence. A cell that cannot be audited has the status
        "no audit" and says why.
    by : tuple of str
        Columns that make up a cell.
    groups : DataFrame
        Rows of the same kind of cells that share individuals or are correlated, audited together.
    shared, moving : int
        Individuals who were in several cells of one database, and in several cells at all.
    correlation : float
        The rank correlation of the two cells that are correlated most; NaN if none are beyond
        chance.
    compared : bool
        Whether the answers of all pairs of cells were compared.
    against : str
        Against whom, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from edp_bayes.auditing.cells import Cells
    >>> table = pd.DataFrame({"region": ["north"], "kind": ["cell"], "status": ["met"],
    ...                       "limit": [0.01], "sentence": ["Met."]})
    >>> print(Cells(table, ("region",), table.iloc[:0], 0, 0, float("nan"), True, ""))
    1 cells: 1 met. Nobody was in two of them, and no two are correlated beyond chance: what the cells say together of an individual is what their own cell says.
    """  # noqa: E501

    table: pd.DataFrame
    by: tuple[str, ...]
    groups: pd.DataFrame
    shared: int
    moving: int
    correlation: float
    compared: bool
    against: str

    @property
    def worst(self) -> pd.Series:
        """The row of the worst cell."""
        return self.table.iloc[0]

    @property
    def everything(self) -> pd.DataFrame:
        """The rows of cells and totals, then those of cells together."""
        import pandas as pd

        if self.groups.empty:
            return self.table
        return pd.concat([self.table, self.groups], ignore_index=True)

    @property
    def together(self) -> str:
        """What the cells say together of an individual, in sentences."""
        if not self.compared:
            return f"{self._who} Their answers were not compared: nothing is established together."
        if self.groups.empty:
            return (
                "Nobody was in two of them, and no two are correlated beyond chance: what the "
                "cells say together of an individual is what their own cell says."
            )
        worst = self.groups.iloc[0]
        where = ", ".join(f"{name} {worst[name]}" for name in self.by)
        more = len(self.groups) - 1
        rest = f" So it is of {more} more groups, none worse." if more else ""
        correlation = (
            f" Answers are correlated (rank correlation up to {self.correlation:.2f}): whoever "
            "sees one knows more of another."
            if self.correlation == self.correlation
            else ""
        )
        return f"{self._who}{correlation} Together, {where}: {worst['sentence']}{rest}"

    @property
    def _who(self) -> str:
        """Who was in several cells."""
        if self.shared:
            return f"{self.shared:,} individuals were in several cells of one database."
        if self.moving:
            return f"{self.moving:,} individuals were in several cells, never of one database."
        return "Nobody was in two cells."

    def __str__(self) -> str:
        """Return how many cells have which status, and what they say together."""
        counts = self.table["status"].value_counts()
        said = ", ".join(f"{counts[name]} {name}" for name in ORDER if name in counts)
        return f"{len(self.table):,} cells: {said}. {self.together}"

    def save(self, path: str | Path) -> Path:
        """Write every row to a file ending in .csv or .parquet; complete or not at all.

        Raises
        ------
        InvalidInputError
            If the name ends in neither.
        """
        target = Path(path)
        if target.suffix not in (".csv", ".parquet"):
            raise InvalidInputError(
                f"cells are written to a file ending in .csv or .parquet, found {target.name}"
            )
        with files.replaced(target) as temporary:
            if target.suffix == ".csv":
                self.everything.to_csv(temporary, index=False)
            else:
                self.everything.to_parquet(temporary, index=False)
        return target
