"""What the adversary of a run knows: from options and files to an `Adversary`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.cli.labelling import like, place_of
from edp_bayes.exceptions import EdpBayesError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.cli.run import Keys, Knows
    from edp_bayes.distributions.published import Published
    from edp_bayes.responses.databases import Databases
    from edp_bayes.tables.clocks import Clock
    from edp_bayes.tables.keys import Key

__all__ = ["adversary_of", "sentence"]


def adversary_of(
    knows: Knows,
    databases: Databases,
    keys: Keys,
    seed: int | None,
    published: Published | None = None,
) -> Adversary | None:
    """Return the adversary that the options stand for; None where they know nothing.

    Where databases have an order and are not few, they have seen the last releases and know the
    trend unless an option says otherwise. `published` is what is published of every answer.

    Raises
    ------
    InvalidInputError, InputTypeError
        If a file cannot be read, or names a database or an individual that is not there.
    """
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.adversary.usual import PAST, why_independent

    usual = not knows.no_past and not why_independent(databases.database)
    insiders: Any = knows.insiders
    if isinstance(insiders, Path):
        insiders = _insiders(insiders, databases.individual)
    covariates = knows.covariates
    past = (PAST if usual else 0) if knows.past is None else knows.past
    if knows.past_published and not past:
        raise InvalidInputError(
            "--past-published is of earlier releases, and none was seen: give --past"
        )
    found = Adversary(
        past=past,
        past_published=published if knows.past_published else None,
        trend=usual if knows.trend is None else knows.trend,
        season=knows.season,
        covariates=None if covariates is None else _covariates(covariates, keys, databases),
        changing_scale=knows.changing_scale,
        insiders=insiders,
        random_seed=seed or 0,
    )
    if not found.nothing:
        return found
    if knows.at is not None:
        raise InvalidInputError(
            "--at is the database in question of an adversary who knows something: give --past or "
            "another option of what they know"
        )
    return None


def sentence(knows: Knows, databases: Databases, adversary: Adversary | None) -> str:
    """Return against whom a run is, and how to change it."""
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.adversary.usual import PAST, why_independent

    why = why_independent(databases.database)
    if adversary is not None:
        change = "--no-past takes databases as independent."
        if knows.no_past or why:
            change = "What else they know is said by --past, --trend and others."
        elif knows.past is None and knows.trend is None:
            change = f"--past {PAST} --trend are the default; {change}"
        return f"Against {adversary.words}. {change}"
    why = "as --no-past asks" if knows.no_past else why
    return (
        f"Against {Adversary().words}: databases are "
        f"taken as independent, {why or 'as asked'}. --past {PAST} --trend is "
        f"{Adversary(past=PAST, trend=True).words}."
    )


def _covariates(path: Path, keys: Keys, databases: Databases) -> pd.DataFrame:
    """Return the covariates of a file, its index the keys of databases, and refuse gaps."""
    import pandas as pd

    from edp_bayes.adversary.covariates import aligned
    from edp_bayes.tables.tables import open_table

    size = len(keys.database)
    with _naming("--covariates", path):
        columns = open_table(path, ()).columns
        if len(columns) <= size:
            raise InvalidInputError(
                f"a file of covariates must have columns beside {_of_key(size)} of the database, "
                f"found {', '.join(map(repr, columns))}"
            )
        named = columns[:size]
        frame = open_table(path, named).read(columns)
        rows = _keys(frame, named, databases.database, clocks=_clocks(keys))
        table: pd.DataFrame = frame.select(*columns[size:]).to_pandas()
        table.index = pd.Index(rows, dtype=object, name="database", tupleize_cols=False)
        aligned(table, databases.database)
    return table


def _insiders(path: Path, individual: NDArray[Any]) -> tuple[Any, ...]:
    """Return the individuals that a file names, all of whom are there."""
    from edp_bayes.tables.tables import open_table
    from edp_bayes.utils.labels import plain_list, show, show_some

    everybody = plain_list(individual)
    example = everybody[0]
    size = len(example) if isinstance(example, tuple) else 1
    place = place_of(individual)
    with _naming("--insiders", path):
        columns = open_table(path, ()).columns
        if len(columns) != size:
            raise InvalidInputError(
                f"a file of insiders must have {_of_key(size)} of the individual and no more, "
                f"found {', '.join(map(repr, columns))}"
            )
        if _like_or_none(columns[0] if size == 1 else columns, example) in place:
            raise InvalidInputError(
                f"the first line must name the column, found {columns[0]!r}, an individual"
            )
        labels = _keys(open_table(path, columns).read(columns), columns, individual)
        unknown = [label for label in labels if label not in place]
        if unknown:
            raise InvalidInputError(
                f"column {columns[0]!r} names {show(unknown[0])}, who is no individual "
                f"({len(unknown)} of {len(labels)} are none); there are {show_some(individual)}"
            )
    return tuple(dict.fromkeys(labels))


def _keys(
    frame: Any,
    columns: tuple[str, ...],
    known: NDArray[np.generic],
    *,
    clocks: Sequence[Clock] = (),
) -> list[Any]:
    """Return the key of every row, of the type of those that are known.

    Keys may be times by any of several clocks.
    """
    from edp_bayes.tables.keys import Key, combined
    from edp_bayes.utils.labels import plain_list, show

    keys = [Key.of(frame, name) for name in columns]
    for key in keys:
        key.refuse_missing("every row needs one")
    if clocks:
        keys = [_by_clock(key, clocks) for key in keys]
    code, found = combined(keys)
    example, own = plain_list(known)[0], []
    for key in plain_list(found):
        try:
            own.append(like(key, example))
        except ValueError:
            raise InvalidInputError(
                f"column {', '.join(map(repr, columns))} holds {show(key)}, where keys are like "
                f"{show(example)}"
            ) from None
    return [own[k] for k in code.tolist()]


def _clocks(keys: Keys) -> list[Clock]:
    """Return how keys of covariates may be times: as those of the table, or plainly."""
    from edp_bayes.tables.clocks import Clock

    every, zone = keys.database_every, keys.time_zone
    ways = [Clock(every, keys.date_format, zone), Clock(every, None, zone), Clock(every)]
    return [clock for clock in dict.fromkeys(ways) if clock.asks]


def _by_clock(key: Key, clocks: Sequence[Clock]) -> Key:
    """Return a key as the start of its period, by the first clock that it can be read by."""
    from edp_bayes.records.periods import starts

    for clock in clocks:
        try:
            found = clock.converted(key)
        except EdpBayesError:
            if clock is clocks[-1]:
                raise
            continue
        break
    if clock.every is None:
        return found
    return replace(found, column=starts(found.column, clock.every, key.name))


def _like_or_none(value: Any, example: Any) -> Any:
    try:
        return like(value, example)
    except ValueError:
        return None


def _of_key(size: int) -> str:
    return "the key column" if size == 1 else f"the {size} key columns"


@contextmanager
def _naming(option: str, path: Path) -> Iterator[None]:
    """Put the option, and the file where it is not named yet, before what is wrong."""
    try:
        yield
    except EdpBayesError as error:
        where = option if str(path) in str(error) else f"{option} {path}"
        raise type(error)(f"{where}: {error}") from None
