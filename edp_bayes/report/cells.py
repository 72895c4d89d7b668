"""A report on every cell of a table: a heat map of the limits, and the worst cells first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edp_bayes.auditing.cells.records import TOGETHER, TOTAL
from edp_bayes.auditing.cells.work import DIFFERENCING, NO_AUDIT, REVEALED
from edp_bayes.exceptions import InputTypeError
from edp_bayes.report.content import Fact
from edp_bayes.report.html import page, require_html
from edp_bayes.report.sections.page_one import NOT_COVERED, ONE_RELEASE, release_facts
from edp_bayes.results.verdict import NOT_ESTABLISHED
from edp_bayes.utils import files
from edp_bayes.utils.formatting import counted, number, percent, risk_limit

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.auditing.cells import Cells

__all__ = ["write_cells"]

WORST = 100  # cells that are listed
MOST_TILES = 5000
# Shades of a heat map, each for limits up to these.
SHADES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Tile:
    """A cell of the heat map.

    Attributes
    ----------
    where : str
        Which cell, in words; empty where there is none.
    shown : str
        Its limit, or that there is none.
    shade : int
        From 0, the lowest limits, to the number of shades less one; -1 where there is no limit.
    status : str
        Of its verdict.
    """

    where: str = ""
    shown: str = ""
    shade: int = -1
    status: str = ""

    @property
    def withheld(self) -> bool:
        """Whether a check withholds the limit."""
        return self.status == NOT_ESTABLISHED


@dataclass(frozen=True)
class Row:
    """A cell in the list of the worst."""

    where: str
    individuals: str
    alone: str
    status: str
    limit: str
    target: str
    sentence: str


@dataclass(frozen=True)
class CellContent:
    """What the report shows: plain numbers and words."""

    title: str
    verdict: str
    status: str
    counts: str
    together: str
    facts: tuple[Fact, ...]
    first: str
    others: str
    columns: tuple[str, ...]
    tiles: tuple[tuple[str, tuple[Tile, ...]], ...]
    shades: tuple[str, ...]
    rows: tuple[Row, ...]
    groups: tuple[Row, ...]
    all_groups: int
    grouped: str
    differing: str
    cells: int
    prepared_by: str
    next_review: str
    fingerprint: str


def write_cells(cells: Cells, path: str | Path, *, title: str | None = None) -> Path:
    """Write a report on the cells of a table: one HTML file, which needs no network.

    Parameters
    ----------
    cells : Cells
        What `edp_bayes.audit_cells` found. No individual is named in it.
    path : str or Path
        The file, complete or not written at all.
    title : str, optional
        Heading of the report; by default that of the release, or the query.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputTypeError
        If these are no cells.
    InvalidInputError
        If the name ends as that of another format or the file cannot be written.

    See Also
    --------
    edp_bayes.audit_cells : audit every cell of a table
    write_report : one file on a result

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import edp_bayes as edp
    >>> visits = pd.DataFrame({
    ...     "week": [*range(10), *range(10)], "region": ["north", "south"] * 10,
    ...     "who": ["Ann", "Bob"] * 10,
    ... })
    >>> databases = edp.Databases.from_table(visits, database="week", individual="who")
    >>> cells = edp.audit_cells(
    ...     databases, edp.queries.Count(), by="region", epsilon=[0.1], progressbar=False
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_cells(cells, Path(folder) / "cells.html")
    ...     "Revealed exactly" in path.read_text(encoding="utf-8")
    True
    """
    from edp_bayes.auditing.cells import Cells

    if not isinstance(cells, Cells):
        raise InputTypeError(f"cells must be Cells, found {type(cells).__name__}")
    target = require_html(path)
    text = page("cells.html", content=_content(cells, title))
    with files.replaced(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return target


def _content(cells: Cells, title: str | None) -> CellContent:
    release = cells.release
    status, headline = cells.headline(_said)
    totals = bool((cells.table["kind"] == TOTAL).any())
    first, *rest = cells.by
    columns, tiles = _heat_map(cells)
    what = release.axis(cells.query)
    facts = (
        *release_facts(release, f"{what} ({cells.query})" if release.title else what),
        Fact(
            "Cells",
            f"{len(cells.table):,}, by {', '.join(cells.by)}{', totals among them' * totals}",
        ),
        Fact("Data", f"{cells.databases:,} databases, {cells.individuals:,} individuals"),
        Fact("One release is", ONE_RELEASE),
        Fact("Against", cells.against),
        Fact("Not covered", NOT_COVERED),
        Fact("Target", _target(cells)),
        Fact("Limits", f"hold with {percent(cells.prob)} probability, each by itself"),
        *_checks(cells),
    )
    return CellContent(
        title=title or release.title or cells.query,
        verdict=headline,
        status=status,
        counts=cells.counts,
        together=cells.together.words(_said),
        facts=facts,
        first=first,
        others=" / ".join(rest),
        columns=columns,
        tiles=tiles,
        shades=tuple(f"up to {number(limit)}" for limit in SHADES),
        rows=tuple(_row(cells, row) for _, row in cells.table.head(WORST).iterrows()),
        groups=tuple(_row(cells, row) for _, row in cells.together.groups.head(WORST).iterrows()),
        all_groups=len(cells.together.groups),
        grouped=_grouped(cells),
        differing=_differing(cells, totals=totals),
        cells=len(cells.table),
        prepared_by=release.prepared_by,
        next_review=release.next_review,
        fingerprint=cells.fingerprint[:16],
    )


def _differing(cells: Cells, *, totals: bool) -> str:
    """Return what totals do to what is said of a cell alone."""
    if cells.together.published:
        return "Of each cell alone: with its totals more is told of it, see cells together."
    if totals:
        return (
            "Beside totals every cell is known from the others: leaving out a cell hides nothing."
        )
    return ""


def _grouped(cells: Cells) -> str:
    """Return which cells are listed together."""
    said = "Cells that share individuals, or whose answers are correlated."
    if not cells.together.published:
        return said
    return f"{said} All others are listed each with its totals, by what the whole answer tells."


def _target(cells: Cells) -> str:
    """Return the target of all cells in words: one of each where delta depends on its people."""
    epsilon, delta = (cells.table[name].to_numpy() for name in ("epsilon", "delta"))
    low, high = delta.min(), delta.max()
    said = f"delta = {low:.4g}" if low == high else f"delta = {low:.4g} to {high:.4g}, by cell,"
    return f"{said} at epsilon = {epsilon[0]:.4g}"


def _checks(cells: Cells) -> tuple[Fact, ...]:
    """Return which checks withhold a verdict, and how many cells break a rule, where asked for."""
    withheld = cells.table["withheld_by"]
    names = sorted({text for text in withheld if text})
    count = int((withheld != "").sum())
    said = f"in {counted(count, 'cell')}: {'; '.join(names)}" if names else "none failed"
    facts: tuple[Fact, ...] = (Fact("Checks that withhold", said),)
    if cells.chance:
        facts = (*facts, Fact("Withheld cells", cells.chance))
    if "rules_broken" not in cells.table:
        return facts
    broken = int((cells.table["rules_broken"] != "").sum())
    return (
        *facts,
        Fact(
            "Rules of disclosure control",
            f"broken in {broken:,} of {counted(len(cells.table), 'cell')}",
        ),
    )


def _heat_map(
    cells: Cells,
) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[Tile, ...]], ...]]:
    """Return the columns of the heat map and its rows; none where it would have too many tiles."""
    grid = cells.grid()
    if grid.size > MOST_TILES:
        return (), ()
    rows = tuple(
        (str(name), tuple(_tile(cells, int(place)) for place in places))
        for name, places in zip(grid.index, grid.to_numpy(), strict=True)
    )
    return tuple(map(str, grid.columns)), rows


def _tile(cells: Cells, place: int) -> Tile:
    if place < 0:
        return Tile()
    row = cells.table.iloc[place]
    limit = float(row["limit"])
    known = not math.isnan(limit)
    return Tile(
        cells.where(row),
        risk_limit(limit) if known else "none",
        next(k for k, most in enumerate(SHADES) if limit <= most) if known else -1,
        row["status"],
    )


def _row(cells: Cells, row: pd.Series) -> Row:
    limit = float(row["limit"])
    return Row(
        cells.where(row),
        f"{row['individuals']:,}",
        f"{row['alone']:,}",
        row["status"],
        "none" if math.isnan(limit) else risk_limit(limit, target=float(row["delta"])),
        f"{row['delta']:.4g}",
        _said(row),
    )


def _said(row: pd.Series) -> str:
    """Return what is said of a row, without the names that checks and errors may hold."""
    status, checks = row["status"], row["withheld_by"]
    if checks == DIFFERENCING:
        return (
            "Not established. A combination of the whole answers tells what one individual "
            "contributes; what is left of that is not known."
        )
    if status == NOT_ESTABLISHED and checks:
        return f"Not established. Checks that withhold the verdict: {checks}."
    if status == REVEALED and row["kind"] == TOGETHER:
        return (
            "Revealed exactly. A combination of these cells tells what one individual contributes."
        )
    if status == NO_AUDIT and "individual" in row["sentence"].casefold():
        return "No audit. The table says why."
    return str(row["sentence"])
