"""Options that several commands share, and how a command takes those of a dataclass.

Each option is declared once: alone, or as a field of the dataclass of those that belong together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from edp_bayes.utils.defaults import CELL_CHAINS, CELL_DRAWS, CHAINS, DRAWS

# Panels of the help.
DATA = partial(typer.Option, rich_help_panel="Data")
ADVERSARY = partial(typer.Option, rich_help_panel="What the adversary knows")
TARGET = partial(typer.Option, rich_help_panel="Target, and what is published")
MODEL = partial(typer.Option, rich_help_panel="Model")
RESULTS = partial(typer.Option, rich_help_panel="Results")
BEYOND = partial(typer.Option, rich_help_panel="Beyond one machine")

T = TypeVar("T")


def grouped[R](command: Callable[..., R]) -> Callable[..., R]:
    """Let a command take each field of its dataclasses as an option of its own.

    Fields are annotated as Typer's parameters are; one without a default is required.
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {p.name: p.annotation for p in signature.parameters.values() if _is_group(p)}
    parameters = [one for p in signature.parameters.values() for one in _options(p)]

    @wraps(command)
    def run(**given: Any) -> R:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **made)

    # Typer reads the options of a command from its signature.
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _is_group(parameter: inspect.Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the parameters that a parameter of a command stands for."""
    if not _is_group(parameter):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    return list(inspect.signature(parameter.annotation, eval_str=True).parameters.values())


# Some are required by one command and not by another: Out[Path], Out[Path | None].
Database = Annotated[T, DATA("--database", help="Key column of the databases; several: a,b.")]
Individual = Annotated[T, DATA("--individual", help="Key column of the individuals; several: a,b.")]
Out = Annotated[T, RESULTS("--out", help="Folder for the results; made if need be.")]
Epsilon = Annotated[str, TARGET("--epsilon", help="start:stop:count, or a list 0.1,0.2,0.5.")]
Seed = Annotated[int | None, MODEL("--seed", min=0, help="The same seed, the same numbers.")]
Draws = Annotated[
    int | None,
    MODEL(
        "--draws",
        min=1,
        help=f"Kept draws of each chain, {DRAWS} by default, {CELL_DRAWS} with --by.",
    ),
]
Chains = Annotated[
    int | None,
    MODEL(
        "--chains", min=1, help=f"Number of chains, {CHAINS} by default, {CELL_CHAINS} with --by."
    ),
]
Target = Annotated[
    str | None,
    TARGET(
        "--target",
        help="What is to be shown, EPSILON:DELTA, such as 0.1:0.01; by default epsilon 0.1 and one "
        "over the number of individuals.",
    ),
]
Check = Annotated[
    bool,
    TARGET(
        "--check", help="The exit code tells: 3 target not met, 4 undecided, 5 not established."
    ),
]
Json = Annotated[
    Path | None, RESULTS("--json", help="File for the record of the verdict, as JSON.")
]
Verbose = Annotated[bool, RESULTS("--verbose", help="Print all tables and what every check says.")]
Quiet = Annotated[bool, RESULTS("--quiet", help="Print nothing but errors.")]
Zarr = Annotated[bool, RESULTS("--zarr", help="Save audit.zarr instead of audit.nc.")]


@dataclass(frozen=True, kw_only=True)
class Reads:
    """How the table is read."""

    database_every: Annotated[
        str | None,
        DATA(
            "--database-every",
            help="Databases are hours, days, weeks, months, quarters or years of the key column: "
            "hour, day, week, month, quarter or year.",
        ),
    ] = None
    empty: Annotated[
        str | None,
        DATA(
            "--empty",
            help="Periods without a record: drop, zero (sum, count) or error. Without it they "
            "are left out, and a period far from all others, as a mistyped year makes, is "
            "refused.",
        ),
    ] = None
    missing: Annotated[
        str | None,
        DATA(
            "--missing",
            help="Records without an individual: error (the default), drop them, or pool them as "
            "one individual.",
        ),
    ] = None
    date_format: Annotated[
        str | None,
        DATA(
            "--date-format",
            help="How text of the database column is a date, such as %d.%m.%Y; or unix, unix_ms "
            "or unix_us for numbers since 1970.",
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        DATA(
            "--time-zone",
            help="Zone of the calendar for times with a zone, an offset or since 1970: "
            "Europe/Berlin.",
        ),
    ] = None
    separator: Annotated[
        str | None,
        DATA("--separator", help="Between the values of a text file: ';', tab, ...; found."),
    ] = None
    decimal: Annotated[
        str | None, DATA("--decimal", help="Decimal mark of a text file, . or ,; found.")
    ] = None
    thousands: Annotated[
        str | None,
        DATA("--thousands", help="Between thousands: . , ' or a blank; found where plain."),
    ] = None
    encoding: Annotated[
        str | None,
        DATA("--encoding", help="Of a text file, such as cp1252; UTF-8 and UTF-16 are found."),
    ] = None
    partial: Annotated[
        str | None,
        DATA(
            "--partial",
            help="A first or last period that is cut off: keep it, with a warning (the default), "
            "or drop it.",
        ),
    ] = None
