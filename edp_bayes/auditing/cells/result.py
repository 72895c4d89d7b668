"""Verdicts of all cells of a table, and what they say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.auditing.cells.chance import held_to_chance
from edp_bayes.auditing.cells.recording import record_of
from edp_bayes.auditing.cells.records import WHOLE
from edp_bayes.auditing.cells.together import Together, in_words
from edp_bayes.auditing.cells.work import NO_AUDIT, REVEALED
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.release import Release
from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET, UNDECIDED
from edp_bayes.utils import files
from edp_bayes.utils.formatting import counted, percent

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["BETWEEN", "ORDER", "Cells"]

BETWEEN = " | "  # names of rules

# From the worst on.
ORDER = (REVEALED, NOT_MET, NOT_ESTABLISHED, NO_AUDIT, UNDECIDED, MET)


@dataclass(frozen=True, eq=False)
class Cells:
    """Verdicts of all cells of a table, the worst first.

    Made by `edp_bayes.audit_cells`.

    Parameters
    ----------
    table : DataFrame
        One row a cell or total: its keys, kind, databases and individuals with records in it,
        databases in which one individual was alone in it, status, epsilon, delta (the target),
        limit, lower, median, limit_withheld, withheld_by, chance, p_value, sentence, withheld, and
        rules_broken where rules were asked for: names of those that an answer of the cell breaks in
        some database, bars between them. Where checks withhold a cell its limit, lower and median
        are missing, and what the limit would have been stands in limit_withheld. chance is the
        probability, at most, that tests withhold a cell whose model is right, p_value that of its
        tests, and withheld says whether it is "beyond chance" after Holm's correction over cells,
        "may be chance", or "not by a test". A cell that cannot be audited has the status
        "no audit" and says why.
    by : tuple of str
        Columns that make up a cell.
    together : Together
        What the cells say together of an individual.
    query : str
        What is asked of every cell.
    databases, individuals : int
        How many there are in all.
    prob : float
        Probability of every limit.
    against : str
        Against whom, in words; empty where no adversary was given.
    fingerprint : str
        Of the records.
    random_seed : int, optional
        Of every audit.
    release : Release
        What is released, in the publisher's words.

    See Also
    --------
    audit_cells : audit every cell of a table
    report.write_cells : a report with the worst cells first
    Verdict : of one audit

    Examples
    --------
    >>> import pandas as pd
    >>> import edp_bayes as edp
    >>> records = pd.DataFrame(
    ...     {"week": 2 * [*range(30)], "who": 30 * ["a"] + 30 * ["b"], "area": 30 * [1] + 30 * [2]}
    ... )
    >>> databases = edp.Databases.from_table(records, database="week", individual="who")
    >>> cells = edp.audit_cells(
    ...     databases, edp.queries.Count(), by="area", epsilon=[0.1], progressbar=False
    ... )
    >>> cells.worst["status"]  # the answers are constant: one record a week
    'revealed exactly'
    """

    table: pd.DataFrame
    by: tuple[str, ...]
    together: Together
    query: str
    databases: int
    individuals: int
    prob: float
    against: str
    fingerprint: str
    random_seed: int | None = None
    release: Release = field(default_factory=Release)

    @property
    def worst(self) -> pd.Series:
        """The row of the worst cell."""
        return self.table.iloc[0]

    def headline(self, said_of: Callable[[pd.Series], str]) -> tuple[str, str]:
        """Return the worst status, and of what it is: a cell, or cells together if these are worse.

        What is said of a row a function tells.
        """
        worst, groups = self.worst, self.together.groups
        order = ORDER.index(worst["status"])
        if not groups.empty and ORDER.index(groups.iloc[0]["status"]) < order:
            row = groups.iloc[0]
            where = self.together.where(row)
            return row["status"], f"Worst, cells together, {where}. {said_of(row)}"
        if not self.together.correlated.compared and ORDER.index(NOT_ESTABLISHED) < order:
            return NOT_ESTABLISHED, f"Not established. Of all cells together: {self.together}"
        return worst["status"], f"Worst cell, {self.where(worst)}. {said_of(worst)}"

    @property
    def everything(self) -> pd.DataFrame:
        """The rows of cells and totals, then those of cells together."""
        import pandas as pd

        if self.together.groups.empty:
            return self.table
        return pd.concat([self.table, self.together.groups], ignore_index=True)

    @property
    def statuses(self) -> list[str]:
        """The status of every row, and that of the cells together where it is not established."""
        found = [str(status) for status in self.everything["status"]]
        return found if self.together.correlated.compared else [*found, NOT_ESTABLISHED]

    def where(self, row: pd.Series) -> str:
        """Return which cell a row is of, in words."""
        return in_words(self.by, row)

    def __str__(self) -> str:
        """Return how many cells have which status, of what, and what they say together."""
        told = (self.counts, self.limits, self.chance, str(self.together), self.rules)
        return " ".join(filter(None, told))

    @property
    def counts(self) -> str:
        """How many cells have which status, the worst first."""
        counts = self.table["status"].value_counts()
        said = ", ".join(f"{counts[name]:,} {name}" for name in ORDER if name in counts)
        return f"{counted(len(self.table), 'cell')}: {said}."

    @property
    def limits(self) -> str:
        """What every limit is of, in a sentence: of delta, where, against whom and how sure."""
        whom = f", against {self.against}" if self.against else ""
        return (
            f"Each limit is of delta at epsilon = {self.table['epsilon'].iloc[0]:.4g} from "
            f"{self.query}{whom}, with {percent(self.prob)} probability."
        )

    @property
    def chance(self) -> str:
        """How many cells checks withhold, how many would be by chance; empty where there are none.

        Every cell is held to its own checks: one that may be withheld by chance stays withheld.
        """
        return held_to_chance(self.table, [self.where(row) for _, row in self.table.iterrows()])

    @property
    def rules(self) -> str:
        """How many cells break which rule of disclosure control; empty where none was asked for."""
        if "rules_broken" not in self.table:
            return ""
        names = [one.split(BETWEEN) for one in self.table["rules_broken"] if one]
        counts = Counter(name for broken in names for name in broken)
        if not counts:
            return "No cell breaks a rule in any database."
        said = "; ".join(f"{name} ({count})" for name, count in counts.most_common())
        return f"Rules that cells break in some database, and how many cells: {said}."

    def with_release(self, release: Release | None = None, **words: str) -> Cells:
        """Return the same cells with words for what is released, as `Audit.with_release`.

        Raises
        ------
        InvalidInputError, InputTypeError
            If one is no plain text of one line, or is unknown.
        """
        return replace(self, release=self.release.changed(release, words))

    def grid(self) -> pd.DataFrame:
        """Return the rows of cells and totals by the first column of `by` and by the others.

        Returns
        -------
        DataFrame
            Positions in `table`, -1 where there is no such cell; totals come last.
        """
        import pandas as pd

        first, *rest = self.by
        others = [" / ".join(values) for values in self.table[rest].itertuples(index=False)]
        place = pd.DataFrame(
            {first: self.table[first], "others": others, "place": range(len(self.table))}
        )
        found = place.pivot_table(index=first, columns="others", values="place", fill_value=-1)
        rows = sorted(found.index, key=lambda name: (name == WHOLE, name))
        columns = sorted(found.columns, key=lambda name: (name.count(WHOLE), name))
        return found.loc[rows, columns].astype(int).rename_axis(columns=" / ".join(rest))

    def record(self) -> dict[str, Any]:
        """Return every verdict as plain numbers and words, ready for JSON.

        With the keys of the ACRO tool's records, whose status is pass, fail or review.
        """
        return record_of(self)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write a report, see `edp_bayes.report.write_cells`."""
        from edp_bayes.report import write_cells

        return write_cells(self, path, **options)

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
