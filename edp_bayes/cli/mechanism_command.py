"""`edp-bayes mechanism`: how private a mechanism is, from two files of its outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edp_bayes.cli import options
from edp_bayes.cli.answering import (
    exit_code,
    parse_target,
    print_verdict,
    require_record,
    with_target,
    write_record,
)
from edp_bayes.cli.texts import parse_epsilon
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    from edp_bayes.results.mechanism import MechanismAudit

__all__ = ["mechanism"]

RESULTS = ("mechanism.nc", "report.html")


def mechanism(
    samples: Annotated[Path, typer.Argument(help="Outcomes for a database, a NumPy file.")],
    neighbour: Annotated[Path, typer.Argument(help="Outcomes for a neighbour, a NumPy file.")],
    epsilon: options.Epsilon = "0:2:41",
    kind: Annotated[
        str, typer.Option("--kind", help="auto, continuous, discrete or mixed.")
    ] = "auto",
    tau: Annotated[
        float,
        typer.Option(
            "--tau",
            help="Outcomes of a smaller probability do not count for local epsilon; for continuous "
            "ones, of a smaller density relative to the largest.",
        ),
    ] = 0.01,
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="How the databases differ: substitution, add-remove.")
    ] = "substitution",
    unit: Annotated[
        str, typer.Option("--unit", help="Unit of privacy, such as 'a person'; recorded.")
    ] = "one record",
    out: options.Out[Path | None] = None,
    seed: options.Seed = None,
    target: options.Target = None,
    check: options.Check = False,
    json: options.Json = None,
) -> int:
    """Print the privacy curve and local epsilon of a mechanism, from samples of two databases."""
    import warnings

    from edp_bayes.black_box.auditing import audit_mechanism
    from edp_bayes.cli.folder import refuse_overwriting, require_writable
    from edp_bayes.exceptions import EdpBayesWarning
    from edp_bayes.results.verdict_record import record

    console = terminal()
    aim = parse_target(target, check=check)
    grid = with_target(parse_epsilon(epsilon), aim)
    if out is not None:
        refuse_overwriting([out / name for name in RESULTS], [samples, neighbour])
        require_writable(out)
    require_record(json, [samples, neighbour])
    pair = [_load(path) for path in (samples, neighbour)]
    with warnings.catch_warnings():
        # Each of them is printed below.
        warnings.simplefilter("ignore", EdpBayesWarning)
        found = audit_mechanism(
            *pair,
            epsilon=grid,
            kind=kind,
            tau=tau,
            adjacency=adjacency,
            unit=unit,
            random_seed=seed,
            progressbar=console.is_terminal,
        )
    at, delta = aim or (None, None)
    verdict = found.verdict(epsilon=at, delta=delta, prob=PROB)
    print_verdict(verdict, console)
    _print(found, console)
    if json is not None:
        write_record(record(found, verdict), json)
    if out is not None:
        saved, report = (out / name for name in RESULTS)
        written = found.save(saved), found.report(report, epsilon=at, delta=delta, prob=PROB)
        console.print(f"\nWritten to {out}: {', '.join(path.name for path in written)}.")
    return exit_code([verdict.status], check=check)


def _load(path: Path) -> Any:
    from zipfile import BadZipFile

    import numpy as np

    if not path.is_file():
        raise InvalidInputError(f"cannot read {path}: there is no such file")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.ndarray):
                names = ", ".join(found)
    except (OSError, ValueError, EOFError, BadZipFile):
        raise InvalidInputError(
            f"cannot read {path} as a NumPy file of numbers or strings; write one by numpy.save"
        ) from None
    if not isinstance(found, np.ndarray):
        raise InvalidInputError(f"{path} must hold one array, found an archive of {names}")
    return found


def _print(found: MechanismAudit, console: Any) -> None:
    from rich.table import Table

    from edp_bayes.cli.report import diagnostics, positions, print_parts
    from edp_bayes.utils.formatting import percent, risk

    share = percent(PROB)
    band = found.band("delta", kind="simultaneous", prob=PROB)
    table = Table("epsilon", "delta", "band", title=f"delta: median and {share} simultaneous band")
    for k in positions(band.sizes["epsilon"]):
        one = band.isel(epsilon=k)
        table.add_row(
            f"{float(one['epsilon']):.3g}",
            risk(float(one["median"])),
            f"{risk(float(one['lower']))} to {risk(float(one['upper']))}",
        )
    console.print(table)
    low, high = found.local_epsilon_interval(PROB)
    end = "no upper end" if high == float("inf") else f"{high:.3g}"
    console.print(
        f"Local epsilon at tau = {found.tau:g}: median {float(found.local_epsilon.median()):.3g}, "
        f"{share} interval {low:.3g} to {end}."
    )
    recorded = found.settings
    console.print(f"Neighbours: {recorded['adjacency']}; unit of privacy: {recorded['unit']}.")
    print_parts([(None, diagnostics(found))], console)
