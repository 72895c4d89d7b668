"""The commands and their options; whatever is slow to import is imported inside them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edp_bayes.cli import (
    audit_options,
    failing,
    interval_command,
    mechanism_command,
    noise_command,
    options,
    property_command,
)
from edp_bayes.cli.run import Keys, Knows, Run

app = typer.Typer(
    name="edp-bayes",
    help="Audit empirical differential privacy, with credible bands on every number.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Contributions are small beside a week's revenue: beyond 0.4 there is little risk left to see.
DEMO_EPSILON = "0.02,0.05,0.1,0.2,0.3,0.4"
# Sweeps of the sampler cost far less than the integrals of a draw: few draws, far apart.
DEMO_DRAWS, DEMO_THIN = 160, 200
# With lags, a trend, a season of a quarter and a changing spread its checks of order pass.
DEMO_KNOWS = Knows(past=3, trend=True, season=13.0, changing_scale=True)
DEMO_DATA = (
    "The CDNOW data: 69,659 purchases of 23,570 customers, who joined up to 25 March 1997. "
    "Audited are the 65 whole weeks after that, in which 10,010 of them bought something, against "
    "{words}: with edp-bayes audit by --past 3 --trend --season 13 --changing-scale."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; that of the process if not given.

    Returns
    -------
    int
        0 where all went well, or what --check tells of a verdict (3, 4 or 5), 2 after one line on
        stderr where not, 130 if interrupted, 143 if terminated.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    return failing.run(typer.main.get_command(app), given or ["--help"])


def _version(wanted: bool) -> None:
    if wanted:
        from edp_bayes import __version__

        typer.echo(f"edp-bayes {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Audit empirical differential privacy, with credible bands on every number."""


@app.command()
@options.grouped
def audit(
    table: Annotated[
        str,
        typer.Argument(
            help="Parquet file, CSV or other text, or Excel workbook, one row for each record; or "
            "a folder of them, a pattern such as 'data/*.parquet', a place such as "
            "s3://bucket/folder, or - for standard input."
        ),
    ],
    subject: audit_options.Subject,
    reads: options.Reads,
    answer: audit_options.Answer,
    known: audit_options.Known,
    aim: audit_options.Aim,
    modelled: audit_options.Modelled,
    written: audit_options.Written,
    scale: audit_options.Scale,
) -> int:
    """Audit a query on the databases of a table."""
    from edp_bayes.cli.session import audit_databases

    asked = [vars(group) for group in (answer, aim, modelled, written, scale)]
    run = Run.parse(
        query=subject.query,
        knows=Knows.parse(**vars(known)),
        table=table,
        **{name: value for group in asked for name, value in group.items()},
    )
    keys = Keys.parse(subject.database, subject.individual, **vars(reads))
    return audit_databases(lambda: table, keys, run)


@app.command()
def demo(
    out: options.Out[Path] = Path("edp-bayes-demo"),
    seed: options.Seed = 1,
    target: options.Target = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    zarr: options.Zarr = False,
) -> int:
    """Audit the weekly revenue of a music shop with 10,010 customers, in one to four minutes."""
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.cli.session import audit_databases
    from edp_bayes.data import load_cdnow_weeks

    run = Run.parse(
        query="sum:dollars",
        epsilon=DEMO_EPSILON,
        draws=DEMO_DRAWS,
        seed=seed,
        out=out,
        zarr=zarr,
        quiet=quiet,
        report=out / "report.html",
        knows=DEMO_KNOWS,
        target=target,
        verbose=verbose,
        thin=DEMO_THIN,
    )
    keys = Keys(("week",), ("customer",))
    knows = DEMO_KNOWS
    adversary = Adversary(
        past=knows.past or 0,
        trend=bool(knows.trend),
        season=knows.season,
        changing_scale=knows.changing_scale,
    )
    about = DEMO_DATA.format(words=adversary.words)
    return audit_databases(load_cdnow_weeks, keys, run, about=about)


app.command("property")(property_command.property_)
app.command("interval")(interval_command.interval)
app.command("mechanism")(mechanism_command.mechanism)
app.command("noise")(noise_command.noise)
app.command("release")(noise_command.release)
