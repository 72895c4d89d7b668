"""Who contributed how much to every cell of a table, and which cells have to do with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.responses.joined import MOST_QUERIES
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = [
    "CELL",
    "TOGETHER",
    "TOTAL",
    "WHOLE",
    "CellRecords",
    "Part",
    "apart",
    "linked",
    "parts_of",
]

CELL, TOTAL, TOGETHER = "cell", "total", "together"
WHOLE = "(all)"  # values of a column, in the key of a total


@dataclass(frozen=True, eq=False)
class Part:
    """What is audited at once: a cell, a total, or some cells together.

    Attributes
    ----------
    kind : {"cell", "total", "together"}
        Which of these.
    key : tuple of str
        The value of every column that makes up cells.
    columns : tuple of ndarray of int
        The columns of records of each cell in it.
    names : tuple of str
        What each cell in it is called, where there are several.
    """

    kind: str
    key: tuple[str, ...]
    columns: tuple[Index, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CellRecords:
    """Contributions by individual and cell.

    Attributes
    ----------
    contribution : sparse array
        Shape (database, column): of one individual to one cell.
    person : ndarray of int
        Shape (column,): whose they are, a position in `names`.
    names : ndarray
        Shape (person,): labels of individuals.
    database : ndarray
        Labels of databases.
    query : str
        Name of the query.
    parts : tuple of Part
        What is audited.
    """

    contribution: csc_array[np.float64]
    person: Index
    names: NDArray[Any]
    database: NDArray[Any]
    query: str
    parts: tuple[Part, ...]

    def contributions(self, columns: Index) -> tuple[csc_array[np.float64], Index]:
        """Return contributions (database, individual) to a cell, and whose they are."""
        from scipy.sparse import csc_array

        people, place = np.unique(self.person[columns], return_inverse=True)
        ones = np.ones(columns.size)
        together = csc_array((ones, (np.arange(columns.size), place)), (columns.size, people.size))
        return csc_array(self.contribution[:, columns] @ together), people

    def answers(self, columns: Index) -> Array:
        """Return the answer of a cell in every database."""
        return np.asarray(self.contribution[:, columns].sum(axis=1), dtype=np.float64).ravel()

    def responses(self, part: Part) -> list[Responses]:
        """Return the responses of every cell of a part, to the same individuals."""
        from scipy.sparse import csc_array

        found = [self.contributions(columns) for columns in part.columns]
        everybody = np.unique(np.concatenate([people for _, people in found]))
        out = []
        for k, (matrix, people) in enumerate(found):
            places = np.searchsorted(everybody, people)
            entries = matrix.tocoo()
            shape = (matrix.shape[0], everybody.size)
            whole = csc_array((entries.data, (entries.row, places[entries.col])), shape)
            out.append(
                Responses.from_arrays(
                    np.asarray(matrix.sum(axis=1)).ravel(),
                    contribution=whole,
                    database=self.database,
                    individual=list(self.names[everybody]),
                    query=f"{self.query} of {part.names[k]}" if part.names else self.query,
                    additive=True,
                )
            )
        return out


@taken.register
def _(records: CellRecords, members: Index) -> CellRecords:
    """Return what some parts need of the records."""
    parts = [records.parts[k] for k in members.tolist()]
    used = [columns for part in parts for columns in part.columns]
    columns = np.unique(np.concatenate(used)) if used else np.zeros(0, dtype=np.int64)
    people, person = np.unique(records.person[columns], return_inverse=True)
    moved = (
        replace(part, columns=tuple(np.searchsorted(columns, one) for one in part.columns))
        for part in parts
    )
    return replace(
        records,
        contribution=records.contribution[:, columns],
        person=person,
        names=records.names[people],
        parts=tuple(moved),
    )


def parts_of(labels: Sequence[tuple[Any, ...]], width: int, *, totals: bool) -> Iterator[Part]:
    """Yield every cell, then every total: over all values of each choice of columns."""
    held = [frozenset(range(width))]
    if totals:
        held += [frozenset(kept) for k in range(width) for kept in combinations(range(width), k)]
    for kept in held:
        found: dict[tuple[str, ...], list[int]] = {}
        for i, label in enumerate(labels):
            key = tuple(str(label[k]) if k in kept else WHOLE for k in range(width))
            found.setdefault(key, []).append(i)
        kind = CELL if len(kept) == width else TOTAL
        for key in sorted(found):
            yield Part(kind, key, (np.array(found[key]),))


def linked(cells: Sequence[Part], pairs: Index) -> list[Part]:
    """Return the cells that pairs connect, directly or through others, as parts of several."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (len(cells), len(cells))
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape)
    _, group = connected_components(graph, directed=False)
    out = []
    for one in np.unique(group):
        members = [cells[k] for k in np.flatnonzero(group == one).tolist()]
        if len(members) > 1:
            names = tuple(", ".join(part.key) for part in members)
            columns = tuple(part.columns[0] for part in members)
            out.append(Part(TOGETHER, _joined(members), columns, names))
    return out


def apart(cells: Sequence[Part], groups: Sequence[Part], records: CellRecords) -> list[Part]:
    """Return every other cell of several individuals as a part of one, together with its totals."""
    taken = {int(columns[0]) for group in groups for columns in group.columns}
    return [
        replace(part, kind=TOGETHER)
        for part in cells
        if int(part.columns[0][0]) not in taken
        and np.unique(records.person[part.columns[0]]).size > 1
    ]


def _joined(members: Sequence[Part]) -> tuple[str, ...]:
    """Return the values of every column, those that differ with a plus between them."""
    if len(members) > MOST_QUERIES:
        return (f"{len(members)} cells", *([""] * (len(members[0].key) - 1)))
    values = zip(*(part.key for part in members), strict=True)
    found = [tuple(dict.fromkeys(column)) for column in values]
    if sum(len(column) > 1 for column in found) <= 1:
        return tuple(" + ".join(column) for column in found)
    # their order says which values go together
    return tuple(" + ".join(part.key[k] for part in members) for k in range(len(found)))
