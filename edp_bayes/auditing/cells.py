"""One audit for each cell of a table that is published every period, and their verdicts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.auditing.query import audit
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.databases import Databases
from edp_bayes.records.responses import Responses
from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, NOT_MET, UNDECIDED, Target
from edp_bayes.utils import files, validate
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.records.adversary import Adversary
    from edp_bayes.records.query import Query

__all__ = ["NO_AUDIT", "Cells", "audit_cells"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

NO_AUDIT = "no audit"
# From the worst on.
ORDER = (NOT_ESTABLISHED, NOT_MET, UNDECIDED, NO_AUDIT, MET)
TOTAL = "(all)"
MOST_CELLS = 100_000
SEED_STEP = 1_000_003


@dataclass(frozen=True, eq=False)
class Cells:
    """Verdicts of all cells of a table, the worst first.

    Made by `edp_bayes.audit_cells`.

    Parameters
    ----------
    table : DataFrame
        One row a cell: its keys, databases, individuals, status, epsilon, delta (the target),
        limit, lower, median, withheld_by and sentence. A cell that cannot be audited has the status
        "no audit" and says why.
    by : tuple of str
        Columns that make up a cell.
    shared : int
        Individuals who were in several cells of one database.
    moving : int
        Individuals who were in several cells, in whatever databases.
    against : str
        Against whom, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from edp_bayes.auditing.cells import Cells
    >>> table = pd.DataFrame({"region": ["north"], "status": ["met"], "limit": [0.01],
    ...                       "sentence": ["Met."], "delta": [0.1], "epsilon": [0.1]})
    >>> print(Cells(table, ("region",), 0, 0, ""))
    1 cells: 1 met. Nobody was in two of them: what the cells say together of an individual is what their own cell says, where cells are independent of each other.
    """  # noqa: E501

    table: pd.DataFrame
    by: tuple[str, ...]
    shared: int
    moving: int
    against: str

    @property
    def worst(self) -> pd.Series:
        """The row of the worst cell."""
        return self.table.iloc[0]

    @property
    def together(self) -> str:
        """What the cells say together of an individual, in a sentence."""
        if self.moving == 0:
            return (
                "Nobody was in two of them: what the cells say together of an individual is what "
                "their own cell says, where cells are independent of each other."
            )
        where = (
            f"{self.shared:,} individuals were in several cells of one database"
            if self.shared
            else f"{self.moving:,} individuals were in several cells, never of one database"
        )
        return (
            f"{where}: what cells say of them together is not assessed here. Up to five cells can "
            "be audited together (Responses.join); of more, publish fewer or add noise."
        )

    def __str__(self) -> str:
        """Return how many cells have which status, and what they say together."""
        counts = self.table["status"].value_counts()
        said = ", ".join(f"{counts[name]} {name}" for name in ORDER if name in counts)
        return f"{len(self.table):,} cells: {said}. {self.together}"

    def save(self, path: str | Path) -> Path:
        """Write the table to a file ending in .csv or .parquet; complete or not at all.

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
                self.table.to_csv(temporary, index=False)
            else:
                self.table.to_parquet(temporary, index=False)
        return target


def audit_cells(
    databases: Databases,
    query: Query,
    *,
    by: str | Sequence[str],
    epsilon: ArrayLike,
    delta: float | None = None,
    target_epsilon: float | None = None,
    adversary: Adversary | None = None,
    totals: bool = True,
    prob: float = PROB,
    random_seed: int | None = None,
    store: str | Path | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Cells:
    """Audit every cell of a table that is published of each database, and totals over cells.

    The records are read once: a cell's answer is the sum of what its individuals contributed.

    Parameters
    ----------
    databases : Databases
        Of a table, with its individuals as `individual=`; the columns of `by` are no part of it.
    query : Query
        A sum or a count.
    by : str or sequence of str
        Columns whose values make up a cell, such as region and age.
    epsilon : array_like
        As for `edp_bayes.audit`.
    delta, target_epsilon : float, optional
        The target of every verdict; by default epsilon 0.1 and one over the individuals of the
        cell.
    adversary : Adversary, optional
        As for `edp_bayes.audit`.
    totals : bool
        Also audit the totals over each column of `by`, and over all cells.
    prob : float
        Probability of the limits.
    random_seed : int, optional
        The same seed gives the same numbers for the same table.
    store : str or Path, optional
        A file to which every finished cell is added as a line of JSON; cells that are there already
        are not audited again. For the same data, query and options.
    progressbar : bool
        Show progress of the cells.
    **options
        Of `edp_bayes.audit`: model, draws, tune, chains, executor.

    Returns
    -------
    Cells
        A table of verdicts, the worst first, and what they say together.

    Raises
    ------
    InvalidInputError
        If a column of `by` does not exist or is a key of databases or individuals, the query is no
        sum or count, there are more than 100,000 cells, or the store is of another run.
    InputTypeError
        If databases are none.

    Notes
    -----
    Answers of a cell without records in a database are 0. A cell of fewer than 8 databases, of one
    individual, or with an answer that never changes has no audit, and says so. Where nobody was in
    two cells, an individual's risk is that in their own cell, if the cells are independent: the
    parallel case. Beside totals every cell is known from the others, so none is hidden by leaving
    it out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> rows = pd.DataFrame({
    ...     "week": np.repeat(np.arange(30), 20), "who": np.tile(np.arange(20), 30),
    ...     "region": np.tile(np.repeat(["north", "south"], 10), 30),
    ... })[rng.random(600) < 0.6]
    >>> databases = edp.Databases.from_table(rows, database="week", individual="who")
    >>> cells = edp.audit_cells(
    ...     databases, edp.queries.Count(), by="region", epsilon=[0.1], draws=50, chains=2,
    ...     random_seed=1, progressbar=False,
    ... )
    >>> sorted(cells.table["region"])
    ['(all)', 'north', 'south']
    """
    import pandas as pd

    names = _columns(databases, by)
    Target.of(None, epsilon=target_epsilon, delta=delta)
    prob = validate.probability(prob, "prob")
    with _quietly():
        responses = _finer(databases, names).respond(query, progressbar=False, step=None)
    if not responses.additive:
        raise InvalidInputError(
            f"cells are audited of sums and counts, found {query}: audit the table of each cell on "
            "its own"
        )
    labels = [tuple(label) for label in responses.individual.tolist()]
    groups = list(_groups(labels, len(names), totals=totals))
    if len(groups) > MOST_CELLS:
        raise InvalidInputError(
            f"there are {len(groups):,} cells, more than {MOST_CELLS:,}: fewer columns in by=, or "
            "parts of the table"
        )
    shared, moving = _shared(responses, labels, len(names))
    asked = (target_epsilon, delta, prob, np.atleast_1d(epsilon).tolist(), random_seed, options)
    done = _Store(store, f"{responses.fingerprint} {query} {names} {adversary} {asked}")
    rows = []
    for place, (key, members) in enumerate(
        track(groups, "Cells", total=len(groups), show=progressbar)
    ):
        row = done.get(key)
        if row is None:
            row = _audited(
                responses,
                labels,
                members,
                len(names),
                target=(target_epsilon, delta),
                prob=prob,
                epsilon=epsilon,
                adversary=adversary,
                random_seed=None if random_seed is None else random_seed + SEED_STEP * place,
                **options,
            )
            done.add(key, row)
        rows.append({**dict(zip(names, key, strict=True)), **row})
    table = pd.DataFrame(rows)
    order = table["status"].map(ORDER.index)
    table = table.assign(order=order).sort_values(["order", "limit"], ascending=[True, False])
    table = table.drop(columns="order").reset_index(drop=True)
    return Cells(table, names, shared, moving, adversary.words if adversary is not None else "")


def _columns(databases: Databases, by: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(databases, Databases):
        raise InputTypeError(f"databases must be Databases, found {type(databases).__name__}")
    names = (by,) if isinstance(by, str) else tuple(by)
    source: Any = databases._source
    keys = (*getattr(source, "database", ()), *getattr(source, "individual", ()))
    if not getattr(source, "individual", ()):
        raise InvalidInputError("cells are those of a table: make databases by from_table")
    if not names:
        raise InvalidInputError("by must name at least one column")
    for name in names:
        if name in keys:
            raise InvalidInputError(
                f"by must name columns beside the keys, found {name!r}, which identifies "
                f"{'individuals' if name in source.individual else 'databases'}"
            )
        if name not in databases.columns:
            raise InvalidInputError(
                f"by must name columns of the table, found {name!r}; the columns are "
                + ", ".join(map(str, databases.columns))
            )
    return names


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out the warnings of single cells: what matters of them stands in their rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        yield


def _finer(databases: Databases, by: tuple[str, ...]) -> Databases:
    """Return databases whose individuals are those of each cell, apart."""
    source: Any = databases._source
    return Databases(replace(source, individual=(*by, *source.individual)))


def _groups(
    labels: list[tuple[Any, ...]], width: int, *, totals: bool
) -> Iterator[tuple[tuple[str, ...], Index]]:
    """Return the key of every cell and total, and which columns are in it."""
    held = [frozenset(range(width))]
    if totals:
        held += [frozenset(kept) for k in range(width) for kept in combinations(range(width), k)]
    for kept in held:
        found: dict[tuple[str, ...], list[int]] = {}
        for i, label in enumerate(labels):
            key = tuple(str(label[k]) if k in kept else TOTAL for k in range(width))
            found.setdefault(key, []).append(i)
        for key in sorted(found):
            yield key, np.array(found[key])


def _shared(responses: Responses, labels: list[tuple[Any, ...]], width: int) -> tuple[int, int]:
    """Return how many were in several cells of one database, and in several at all."""
    people: dict[tuple[Any, ...], list[int]] = {}
    for i, label in enumerate(labels):
        people.setdefault(label[width:], []).append(i)
    several = [columns for columns in people.values() if len(columns) > 1]
    matrix = responses.contribution
    there = 0
    for columns in several:
        ends = ((matrix.indptr[c], matrix.indptr[c + 1]) for c in columns)
        rows = np.concatenate([matrix.indices[first:last] for first, last in ends])
        there += int(rows.size > np.unique(rows).size)
    return there, len(several)


def _audited(
    responses: Responses,
    labels: list[tuple[Any, ...]],
    members: Index,
    width: int,
    *,
    target: tuple[float | None, float | None],
    prob: float,
    **options: Any,
) -> dict[str, Any]:
    """Return the row of one cell."""
    from scipy.sparse import csc_array

    part = responses.contribution[:, members]
    people = [labels[i][width:] for i in members]
    place = {who: k for k, who in enumerate(dict.fromkeys(people))}
    names = [who[0] if len(who) == 1 else who for who in place]
    together = csc_array(
        (np.ones(members.size), (np.arange(members.size), [place[who] for who in people])),
        shape=(members.size, len(names)),
    )
    contribution = csc_array(part @ together)
    answers: Array = np.asarray(contribution.sum(axis=1)).ravel()
    row: dict[str, Any] = {
        "databases": int(np.unique(contribution.indices).size),
        "individuals": len(names),
    }
    epsilon, delta = target
    try:
        if len(names) < 2:
            raise InvalidInputError("one individual alone is in this cell: the answer is theirs")
        with _quietly():
            cell = Responses.from_arrays(
                answers,
                contribution=contribution,
                database=responses.database,
                individual=names,
                query=responses.query,
                additive=True,
            )
            verdict = audit(cell, progressbar=False, **options).verdict(
                epsilon=epsilon, delta=delta, prob=prob
            )
    except InvalidInputError as error:
        asked = Target.of(len(names), epsilon=epsilon, delta=delta)
        return {
            **row,
            "status": NO_AUDIT,
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "limit": np.nan,
            "lower": np.nan,
            "median": np.nan,
            "withheld_by": "",
            "sentence": f"No audit: {error}.",
        }
    return {
        **row,
        "status": verdict.status,
        "epsilon": verdict.epsilon,
        "delta": verdict.delta,
        "limit": verdict.limit,
        "lower": verdict.lower,
        "median": verdict.median,
        "withheld_by": ", ".join(verdict.withheld_by),
        "sentence": verdict.claim,
    }


class _Store:
    """Finished cells, a line of JSON each, under the fingerprint of the run."""

    def __init__(self, path: str | Path | None, run: str) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[str, dict[str, Any]] = {}
        if self.path is None:
            return
        if self.path.exists():
            whole = list(self._lines(self.path))
            if not whole or whole[0].get("run") != run:
                raise InvalidInputError(
                    f"{self.path} holds cells of other data, another query or other columns: "
                    "remove it, or give another store"
                )
            self.rows = {json.dumps(one["key"]): one["row"] for one in whole[1:]}
        else:
            whole = [{"run": run}]
        # without a line that a kill cut off, to which the next would be added
        with files.replaced(self.path) as temporary:
            temporary.write_text("".join(json.dumps(one) + "\n" for one in whole), encoding="utf-8")

    @staticmethod
    def _lines(path: Path) -> Iterator[dict[str, Any]]:
        """Return what every line holds, up to one that is not whole."""
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return

    def get(self, key: Iterable[str]) -> dict[str, Any] | None:
        """Return the row of a finished cell."""
        return self.rows.get(json.dumps(list(key)))

    def add(self, key: Iterable[str], row: Mapping[str, Any]) -> None:
        """Add the row of a cell that is finished."""
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": list(key), "row": dict(row)}) + "\n")
