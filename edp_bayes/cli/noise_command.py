"""`edp-bayes noise` and `edp-bayes release`: the noise an audit asks for, and one noisy answer."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edp_bayes.cli import options
from edp_bayes.cli.run import Keys
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.utils.defaults import NOISE_METHOD, PROB
from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from edp_bayes.cli.noise_work import NoiseRun
    from edp_bayes.results.query import Audit

__all__ = ["noise", "release"]


@options.grouped
def noise(
    audit: Annotated[Path, typer.Argument(help="A saved audit, such as audit.nc.")],
    *,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Target.")],
    delta: Annotated[float, typer.Option("--delta", help="Target.")] = 0.0,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="laplace, gaussian, bottleneck, partial, optimal (of any shape, in minutes) or "
            "hausdorff.",
        ),
    ] = NOISE_METHOD,
    prob: Annotated[
        float, typer.Option("--prob", help="Share of the draws in which the target must hold.")
    ] = PROB,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            help="Table of the audit, or demo; by default one of its name, in the working "
            "directory, beside the audit or in the folder above.",
        ),
    ] = None,
    database: options.Database[list[str] | None] = None,
    individual: options.Individual[list[str] | None] = None,
    reads: options.Reads,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="Draws of the audit to hold it against.")
    ] = 40,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", help="Seconds; then the best noise so far, with a bound on the least."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="JSON file for the noise, for edp-bayes release.")
    ] = Path("noise.json"),
    quiet: options.Quiet = False,
) -> None:
    """Print the noise that brings an audited query to a target, and write it to a file."""
    from edp_bayes.cli.folder import refuse_overwriting, require_writable
    from edp_bayes.cli.noise_work import noise_for_audit, responses_of, source_of, table_of
    from edp_bayes.loading import load
    from edp_bayes.noise.calibration import check
    from edp_bayes.noise.posterior import NOISE_LEAVES, refuse_transform
    from edp_bayes.responses.atoms import refuse_atoms
    from edp_bayes.results.query import Audit
    from edp_bayes.utils import validate

    validate.positive_number(epsilon, "--epsilon")
    if time_limit is not None:
        validate.positive_number(time_limit, "--time-limit")
    check(epsilon, delta, method=method, prob=prob)
    if out.is_dir():
        raise InvalidInputError(f"--out must name a file, {out} is a folder")
    refuse_overwriting([out], [*([] if audit.is_dir() else [audit]), *_files(table)])
    require_writable(out.parent)
    console = terminal(quiet=quiet)
    show = console.is_terminal and not quiet
    found = load(audit, kind=Audit)
    refuse_transform(found.settings.get("transform"))
    refuse_atoms(found.settings.get("atoms"), NOISE_LEAVES)
    source = source_of(found)
    source.pop("table", None)
    table = table_of(found, audit) if table is None else table
    refuse_overwriting([out], _files(table))
    keys = Keys.parse(database, individual, known=source, **vars(reads))
    with warnings.catch_warnings():
        # What they say stands in the noise's message, or in the audit.
        warnings.simplefilter("ignore", EdpBayesWarning)
        responses = responses_of(found, table, keys, progressbar=show)
        if show:
            people = f"{responses.n_individuals:,} individuals"
            console.print(f"Looking for noise for {people}: minutes, where they are thousands.")
        run = noise_for_audit(
            found,
            epsilon,
            delta,
            responses=responses,
            most_draws=draws,
            method=method,
            prob=prob,
            time_limit=time_limit,
            output=out,
            progressbar=show,
        )
    _print(run, found, console, epsilon, delta, out)


def _files(table: str | None) -> list[Path]:
    """Return the files that a table is read from, if it is of files."""
    from edp_bayes.cli.folder import local_files
    from edp_bayes.cli.noise_work import DEMO

    return [] if table == DEMO else local_files(table)


def _print(
    run: NoiseRun, audit: Audit, console: Console, epsilon: float, delta: float, out: Path
) -> None:
    distribution, record = run.noise, run.noise.record
    target = f"epsilon = {epsilon:g}, delta = {delta:g}"
    if audit.against:
        console.print(f"Against {audit.against}; the database in question: {audit.settings['at']}.")
    if distribution.atom < 1.0:
        console.print(f"Noise by the method {record['method']}, for {target}:")
        nothing = (
            f", none at all with probability {distribution.atom:.3g}" if distribution.atom else ""
        )
        console.print(
            f"  expected absolute noise {distribution.mean_absolute:.4g}, standard deviation "
            f"{distribution.variance**0.5:.4g}{nothing}"
        )
        lower = None if record.get("stopped_early", False) else record.get("lower_bound")
        if lower:
            console.print(
                f"  no symmetric noise that holds in the same draws has less than {lower:.4g}"
            )
    console.print(record["message"])
    held = run.verification.probability(epsilon=epsilon, delta=delta)
    console.print(
        f"Verified: P({target} holds | data) = {held:.3g}, from the {record['draws']} draws it was "
        f"made for and all {record['individuals']:,} individuals."
    )
    failed = dict.fromkeys(one.sentence for one in audit.outcomes if one.passed is False)
    if failed:
        console.print(f"The guarantee is worth no more than the audit: {audit.failures}.")
    for sentence in failed:
        console.print(f"WARNING  {sentence}")
    console.print(f"\nWritten to {out}.")


def release(
    noise: Annotated[Path, typer.Argument(help="A file that edp-bayes noise wrote.")],
    value: Annotated[
        float | None,
        typer.Option(
            "--value",
            help="The true answer; without this option it is asked for and not shown, so that no "
            "shell's history holds it.",
        ),
    ] = None,
    sampler: Annotated[
        str, typer.Option("--sampler", help="auto, opendp or exact (of this library).")
    ] = "auto",
) -> None:
    """Print one noisy answer, with randomness from the operating system."""
    from edp_bayes.cli.release_work import release_from_file

    if value is None:
        value = _asked()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EdpBayesWarning)
        answer = release_from_file(noise, value, sampler=sampler)
    for warning in caught:
        typer.echo(f"WARNING  {warning.message}", err=True)
    typer.echo(repr(answer))


def _asked() -> float:
    """Return the true answer: asked for at a terminal, a line of what is piped in elsewhere."""
    if sys.stdin is not None and sys.stdin.isatty():
        asked: float = typer.prompt("The true answer", type=float, hide_input=True, err=True)
        return asked
    line = "" if sys.stdin is None else sys.stdin.readline().strip()
    try:
        return float(line)
    except ValueError:
        raise InvalidInputError(f"the true answer must be a number, found {line!r}") from None
