"""Differencing: combinations of cells that tell what one individual contributes, and nobody else.

With R_j(t) the contributions of individual j to every cell of database t, a combination c reveals i
where c' R_j(t) is the same in all databases for every other j, and not for i. Then c is orthogonal
to the rows R_j(t) of all others, less their mean over t where j is in all databases, and the rows
of i have a leverage of one in that direction. Unlike a dependence of the answers, which some
combination of as many cells as databases has by chance, this holds whatever the answers are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.responses.dependence import combination
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.labels import show

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from edp_bayes.auditing.cells.records import CellRecords, Part

__all__ = ["Difference", "difference", "said_of"]

UNITS = 64 * np.finfo(np.float64).eps  # of the largest row, which a mean is no closer than
SMALLEST = 1e-10  # of the largest eigenvalue, below which there is no direction
FULL = 1.0 - 1e-6  # a leverage that may be one
EXACT = 1e-9  # of what the individual contributes to a combination, nothing of others
NAMED = 5  # cells
CLOSE = 1e-6  # of the largest coefficient, none


class Difference(NamedTuple):
    """A combination of cells that only one individual's contributions move.

    Attributes
    ----------
    individual : int
        A position in the names of the records.
    combination : ndarray
        Shape (cell,): what each cell is multiplied by.
    databases : int
        In how many databases the individual is revealed.
    """

    individual: int
    combination: Array
    databases: int


def difference(records: CellRecords, part: Part) -> Difference | None:
    """Return the combination of a part's cells that reveals one individual in most databases.

    Parameters
    ----------
    records : CellRecords
        Who contributed how much to every cell.
    part : Part
        Cells, however many.

    Returns
    -------
    Difference or None
        None where no combination reveals anybody.
    """
    rows, person = _rows(records, part)
    scale = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=0), dtype=np.float64).ravel())
    used = scale > 0.0
    if not used.any():
        return None
    rows = (rows[:, used] / scale[used]).tocsr()
    sizes, vectors = np.linalg.eigh((rows.T @ rows).toarray())
    kept = sizes > SMALLEST * sizes[-1]
    whitened = vectors[:, kept] / np.sqrt(sizes[kept])
    # rows of one individual stand one after the other
    starts = np.flatnonzero(np.diff(person, prepend=-1))
    ends = np.append(starts[1:], person.size)
    found: Difference | None = None
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        own = rows[start:end] @ whitened
        # the trace, and so the largest leverage in any direction, is below one of most
        if float((own**2).sum()) < FULL:
            continue
        leverage, directions = np.linalg.eigh(own.T @ own)
        if leverage[-1] < FULL:
            continue
        c = whitened @ directions[:, -1]
        c[np.abs(c) < CLOSE * np.abs(c).max()] = 0.0
        told = np.abs(rows @ c)
        most = told[start:end].max()
        if max(told[:start].max(initial=0.0), told[end:].max(initial=0.0)) > EXACT * most:
            continue
        count = int((told[start:end] > EXACT * most).sum())
        if found is None or count > found.databases:
            whole = np.zeros(used.size)
            whole[used] = c / scale[used]
            found = Difference(int(person[start]), whole, count)
    return found


def said_of(found: Difference, records: CellRecords, part: Part) -> str:
    """Return in a sentence which combination reveals whom, naming a few cells."""
    told = np.flatnonzero(found.combination)
    names = tuple(f"({part.names[k]})" for k in told.tolist())
    said = (
        combination(found.combination[told], names)
        if told.size <= NAMED
        else f"A combination of {told.size} of these cells"
    )
    who = show(records.names[found.individual])
    return (
        f"{said} varies by what individual {who} contributes and by nothing else, in "
        f"{found.databases} of {records.database.size} databases."
    )


def _rows(records: CellRecords, part: Part) -> tuple[csr_array[np.float64], Index]:
    """Return a row of contributions to the cells for each individual and database, and whose it is.

    Rows of those who are in all databases are less their mean.
    """
    from scipy.sparse import coo_array, csr_array

    columns = np.concatenate(part.columns)
    cell = np.repeat(np.arange(len(part.columns)), [one.size for one in part.columns])
    entries = records.contribution[:, columns].tocoo()
    databases = records.contribution.shape[0]
    person = records.person[columns][entries.col]
    keys, row = np.unique(person * databases + entries.row, return_inverse=True)
    shape = (keys.size, len(part.columns))
    rows = csr_array(coo_array((entries.data, (row, cell[entries.col])), shape))
    owner = keys // databases
    people, place, count = np.unique(owner, return_inverse=True, return_counts=True)
    always = np.flatnonzero(count[place] == databases)
    ones = np.full(always.size, 1.0 / databases)
    shape = (people.size, keys.size)
    mean = csr_array(coo_array((ones, (place[always], always)), shape) @ rows)
    moved = csr_array(rows - mean[place])
    largest = np.asarray(abs(rows).max(axis=0).todense()).ravel()
    moved.data[np.abs(moved.data) < UNITS * largest[moved.indices]] = 0.0
    return moved, owner
