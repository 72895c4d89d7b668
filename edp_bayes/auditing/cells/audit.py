"""One audit for each cell of a table that is published every period, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.auditing.cells.chance import why_withheld
from edp_bayes.auditing.cells.records import (
    CELL,
    WHOLE,
    CellRecords,
    Part,
    apart,
    linked,
    parts_of,
)
from edp_bayes.auditing.cells.result import BETWEEN, ORDER, Cells
from edp_bayes.auditing.cells.store import CellStore
from edp_bayes.auditing.cells.together import Together, at_least_alone, correlated, sharing
from edp_bayes.auditing.cells.work import CellWork, quietly
from edp_bayes.auditing.disclosure import RULES, broken, rules_of
from edp_bayes.auditing.executors.base import running
from edp_bayes.distributions.published import published_of
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.query import Query
from edp_bayes.responses.databases import Databases
from edp_bayes.responses.responses import require_databases
from edp_bayes.results.base import NOBODY_KNOWN
from edp_bayes.results.verdict import Target
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import CELL_CHAINS, CELL_DRAWS, CELL_KEEP, CELL_TUNE, PROB
from edp_bayes.utils.labels import as_labels
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.auditing.disclosure import Rule

__all__ = ["audit_cells"]

MOST_CELLS = 100_000
SEED_STEP = 1_000_003
ROWS = "limits apart from withheld ones"  # in a store; rows of earlier ones hold both in one


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
    published: Any = None,
    rules: Sequence[Rule | str] | bool = False,
    prob: float = PROB,
    random_seed: int | None = None,
    executor: Any = None,
    store: str | Path | None = None,
    progressbar: bool = True,
    draws: int = CELL_DRAWS,
    tune: int = CELL_TUNE,
    chains: int = CELL_CHAINS,
    keep: int = CELL_KEEP,
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
        As for `edp_bayes.audit`; that of the target is always one of them.
    delta, target_epsilon : float, optional
        The target of every verdict; by default epsilon 0.1 and one over the individuals of the
        cell.
    adversary : Adversary, optional
        As for `edp_bayes.audit`.
    totals : bool
        Also audit the totals over each column of `by`, and over all cells.
    published : mapping or Published, optional
        What is published of every answer, where that is not the whole: rounded_to and offset,
        threshold, or bins, as for `Audit.released`. Cells that are audited together enter with
        their whole answers, which tell more; so does every cell together with its totals, which are
        rounded or suppressed on their own and do not follow from the cells then.
    rules : bool or sequence of str or Rule
        Rules of disclosure control that every cell and total is held to: True for the customary
        ones, or others as for `disclosure`.
    prob : float
        Probability of the limits.
    random_seed : int, optional
        The same seed gives the same numbers for the same table.
    executor : optional
        Where cells are audited, one in a task: as for `edp_bayes.audit`. A
        ``concurrent.futures.ProcessPoolExecutor`` uses the cores of this machine best.
    store : str or Path, optional
        A file to which every finished cell is added as a line of JSON; cells that are there already
        are not audited again. For the same data, query and options.
    progressbar : bool
        Show progress of the cells.
    draws, tune, chains, keep : int
        As for `edp_bayes.audit`; fewer, for there are many cells.
    **options
        More of `edp_bayes.audit`: model, sampler, appear_once.

    Returns
    -------
    Cells
        A table of verdicts, the worst first, and what they say together.

    Raises
    ------
    InvalidInputError
        If a column of `by` does not exist, is a key of databases or individuals, or has the value
        "(all)", which totals have; the query is no sum or count, there are more than 100,000 cells
        and no executor, or the store is of another run.
    InputTypeError
        If databases are none.

    See Also
    --------
    edp_bayes.report.write_cells : one file on the cells of a table
    audit : audit a query
    compose : the risk of several releases

    Notes
    -----
    Answers of a cell without records in a database are 0. A cell of fewer than 8 databases, or with
    an answer that never changes, has no audit, and says so; one individual alone in a cell is
    revealed exactly. Every cell is audited for its largest risk alone.

    Cells that share individuals, or whose answers are correlated beyond chance (Spearman's rank
    correlation, 5% over all pairs), are audited together, up to five of them; of more no limit is
    established, for a density in more dimensions cannot be learned from tens or hundreds of
    databases. That a combination of them, however many, tells what one individual contributes and
    nobody else is found. Where there are no such cells, an individual's risk is that in their own
    cell: the parallel case. Totals that are published whole are sums of cells, and say nothing
    besides all of them; so leaving out a cell hides nothing.

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
    names = _columns(databases, by)
    target = Target.of(None, epsilon=target_epsilon, delta=delta)
    # the limit is read at the target's epsilon, which has to be in the grid
    epsilon = np.union1d(validate.epsilon_grid(epsilon), [target.epsilon])
    prob = validate.probability(prob, "prob")
    rule = None if published is None else published_of(published, "published")
    held_to = rules_of(RULES if rules is True else rules or ())
    records = _records(databases, query, names, totals=totals)
    if len(records.parts) > MOST_CELLS and executor is None:
        raise InvalidInputError(
            f"there are {len(records.parts):,} cells, more than {MOST_CELLS:,}: give an executor, "
            "fewer columns in by=, or parts of the table"
        )
    cells = [part for part in records.parts if part.kind == CELL]
    people, answers = sharing(records, cells), correlated(records, cells)
    groups = linked(cells, np.concatenate([people.pairs, answers.pairs]))
    # totals that are not published whole do not follow from cells that are not either
    with_totals = rule is not None and totals and answers.compared
    if with_totals:
        groups += apart(cells, groups, records)
    records = replace(records, parts=(*records.parts, *groups))
    asked = (target_epsilon, delta, prob, np.atleast_1d(epsilon).tolist(), random_seed)
    sampled = {"draws": draws, "tune": tune, "chains": chains, "keep": keep, **options}
    fingerprint = _fingerprint(records)
    run = f"{ROWS} {fingerprint} {query} {names} {adversary} {asked} {sampled}"
    run = run if rule is None else f"{run} {rule}"
    held = CellStore(store, run)
    work = CellWork(
        records,
        _seeds(random_seed, len(records.parts)),
        (target_epsilon, delta),
        prob,
        {"epsilon": epsilon, "adversary": adversary, "only_largest": True, **sampled},
        rule,
    )
    left = [k for k, part in enumerate(records.parts) if held.get(_key(part)) is None]
    # the largest first, so that the last ones are short
    left.sort(key=lambda k: -sum(columns.size for columns in records.parts[k].columns))
    with quietly(), running(executor) as runner:
        found = runner(work, [np.array([k]) for k in left])
        shown = track(found, "Cells", total=len(left), show=progressbar)
        for k, row in zip(left, shown, strict=True):
            held.add(_key(records.parts[k]), row.values)
    rows = {_key(part): dict(held.get(_key(part)) or {}) for part in records.parts}
    alone = records.parts[: len(records.parts) - len(groups)]
    against = NOBODY_KNOWN if adversary is None else adversary.words
    for group in groups:
        members = {name: rows[CELL, *key] for name, key in _members(group, cells)}
        rows[_key(group)] = at_least_alone(rows[_key(group)], members, prob=prob, against=against)
    for part in alone if held_to else ():
        contribution, _ = records.contributions(np.unique(np.concatenate(part.columns)))
        rows[_key(part)]["rules_broken"] = BETWEEN.join(broken(contribution, held_to))
    withheld = [rows[_key(part)]["withheld_by"] != "" for part in alone]
    p_values = [rows[_key(part)]["p_value"] for part in alone]
    for part, why in zip(alone, why_withheld(withheld, p_values), strict=True):
        rows[_key(part)]["withheld"] = why
    table = _sorted(alone, names, rows)
    return Cells(
        table,
        names,
        Together(
            _sorted(groups, names, rows),
            names,
            people,
            answers,
            rule.words if with_totals and rule is not None else "",
        ),
        query=records.query if rule is None else f"{records.query}, {rule.words}",
        databases=int(records.database.size),
        individuals=int(records.names.size),
        prob=prob,
        against=against,
        fingerprint=fingerprint,
        random_seed=random_seed,
    )


def _records(
    databases: Databases, query: Query, by: tuple[str, ...], *, totals: bool
) -> CellRecords:
    """Read the records once, and return who contributed how much to every cell."""
    if not (isinstance(query, Query) and query.additive):
        raise InvalidInputError(
            f"cells are audited of sums and counts, found {query}: audit the table of each cell on "
            "its own"
        )
    with quietly():
        found, contribution = _finer(databases, by).contributions(query)
    require_databases(found.databases.size)
    labels = [tuple(label) for label in as_labels(found.individuals, "individual").tolist()]
    for k, name in enumerate(by if totals else ()):
        if any(str(label[k]) == WHOLE for label in labels):
            raise InvalidInputError(
                f"column {name!r} has the value {WHOLE!r}, which is what totals are called: leave "
                "out its records, call it otherwise, or audit without totals"
            )
    owners = [label[len(by) :] for label in labels]
    place = {who: k for k, who in enumerate(dict.fromkeys(owners))}
    names = np.empty(len(place), dtype=object)
    names[:] = [who[0] if len(who) == 1 else who for who in place]
    return CellRecords(
        contribution,
        np.array([place[who] for who in owners], dtype=np.int64),
        names,
        as_labels(found.databases, "database"),
        str(query),
        tuple(parts_of(labels, len(by), totals=totals)),
    )


def _fingerprint(records: CellRecords) -> str:
    """Return a digest of who contributed how much to which cell of which database."""
    digest = sha256()
    matrix = records.contribution
    for part in (matrix.indptr, matrix.indices, matrix.data, records.person):
        digest.update(np.ascontiguousarray(part).tobytes())
    known = [records.names.tolist(), records.database.tolist(), [p.key for p in records.parts]]
    digest.update(repr(known).encode())
    return digest.hexdigest()


def _seeds(random_seed: int | None, count: int) -> tuple[int | None, ...]:
    if random_seed is None:
        return (None,) * count
    return tuple(random_seed + SEED_STEP * k for k in range(count))


def _key(part: Part) -> tuple[str, ...]:
    return (part.kind, *part.key, *part.names)


def _members(group: Part, cells: Sequence[Part]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the key of every cell of a group."""
    first = {int(columns[0]) for columns in group.columns}
    return [(", ".join(one.key), one.key) for one in cells if int(one.columns[0][0]) in first]


def _sorted(
    parts: Sequence[Part], by: tuple[str, ...], found: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the rows of parts, the worst first."""
    import pandas as pd

    rows = [
        {**dict(zip(by, part.key, strict=True)), "kind": part.kind, **found[_key(part)]}
        for part in parts
    ]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    size = table["limit"].fillna(table["limit_withheld"])
    table = table.assign(order=table["status"].map(ORDER.index), size=size)
    table = table.sort_values(["order", "size"], ascending=[True, False], kind="stable")
    return table.drop(columns=["order", "size"]).reset_index(drop=True)


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
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInputError(f"by must name each column once, found {twice[0]!r} twice")
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


def _finer(databases: Databases, by: tuple[str, ...]) -> Databases:
    """Return databases whose individuals are those of each cell, apart."""
    source: Any = databases._source
    return Databases(replace(source, individual=(*by, *source.individual), cells=len(by)))
