"""The commands and their options; whatever is slow to import is imported inside them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edp_bayes.cli import (
    failing,
    interval_command,
    mechanism_command,
    noise_command,
    options,
    property_command,
)

app = typer.Typer(
    name="edp-bayes",
    help="Audit empirical differential privacy, with credible bands on every number.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

Zarr = Annotated[
    bool,
    typer.Option(
        "--zarr", help="Save audit.zarr instead of audit.nc.", rich_help_panel=options.RESULTS
    ),
]

# Contributions are small beside a week's revenue: beyond 0.4 there is little risk left to see.
DEMO_EPSILON = "0.02,0.05,0.1,0.2,0.3,0.4"
# Sweeps of the sampler cost far less than the integrals of a draw: few draws, far apart.
DEMO_DRAWS, DEMO_THIN = 160, 200
# With lags, a trend, a season of a quarter and a changing spread its checks of order pass.
DEMO_KNOWS = options.Knows(past=3, trend=True, season=13.0, changing_scale=True)
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
def audit(
    table: Annotated[
        str,
        typer.Argument(
            help="Parquet file, CSV or other text, or Excel workbook, one row for each record; or "
            "a folder of them, a pattern such as 'data/*.parquet', a place such as "
            "s3://bucket/folder, or - for standard input."
        ),
    ],
    database: options.Database[list[str]],
    individual: options.Individual[list[str]],
    query: Annotated[
        list[str],
        typer.Option(
            "--query",
            help="sum:COL, mean:COL, median:COL, count, proportion:COL>=40, ... Give it again for "
            "each of several that are published together.",
            rich_help_panel=options.DATA,
        ),
    ],
    out: options.Out[Path],
    database_every: options.Every = None,
    empty: options.Empty = None,
    missing: options.Missing = None,
    date_format: options.DateFormat = None,
    time_zone: options.TimeZone = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    partial: options.Partial = None,
    collect: options.Collect = None,
    epsilon: options.Epsilon = "0.01:0.5:50",
    model: Annotated[
        str,
        typer.Option("--model", help="dpm, finite:K or bootstrap.", rich_help_panel=options.MODEL),
    ] = "dpm",
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            help="gaussian or laplace; by default the model's.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    components: options.Components = None,
    narrowest: options.Narrowest = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            help="gibbs, nutpie, pymc, numpyro or blackjax; by default the model's.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    seed: options.Seed = None,
    draws: options.Draws = None,
    tune: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Warm-up draws of each chain, {options.Run.tune} by default, "
            f"{options.CELL_TUNE} with --by.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    chains: options.Chains = None,
    target_accept: Annotated[
        float | None,
        typer.Option(
            "--target-accept",
            help="Of NUTS; raise it if that diverges.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Riskiest individuals to keep draws of, {options.Run.keep} by default.",
            rich_help_panel=options.RESULTS,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", help="Individual to keep whatever its risk.", rich_help_panel=options.RESULTS
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="HTML file for a report to hand on.", rich_help_panel=options.RESULTS
        ),
    ] = None,
    report_names: Annotated[
        bool,
        typer.Option(
            "--report-names",
            help="Names, not pseudonyms, in the report.",
            rich_help_panel=options.RESULTS,
        ),
    ] = False,
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="Pseudonyms, not names, in all files.",
            rich_help_panel=options.RESULTS,
        ),
    ] = False,
    pseudonym_key: Annotated[
        Path | None,
        typer.Option(
            "--pseudonym-key",
            help="File of the secret key of the pseudonyms, made if need be; without it they are "
            "random, and nobody can tell whose they are.",
            rich_help_panel=options.RESULTS,
        ),
    ] = None,
    past: options.Past = None,
    past_published: options.PastPublished = False,
    trend: options.Trend = None,
    no_past: options.NoPast = False,
    season: options.Season = None,
    changing_scale: options.ChangingScale = False,
    covariates: options.Covariates = None,
    insiders: options.Insiders = None,
    at: options.At = None,
    executor: options.Where = None,
    exact_up_to: options.ExactUpTo = None,
    resume: options.Resume = False,
    keep_store: options.KeepStore = False,
    appear_once: options.AppearOnce = False,
    databases: options.Fresh = None,
    carry_over: options.CarryOverOption = False,
    step: options.Step = None,
    no_step: options.NoStep = False,
    transform: options.Transformed = None,
    atoms: options.Atoms = None,
    rounded_to: options.RoundedTo = None,
    offset: options.Offset = None,
    threshold: options.Threshold = None,
    bins: options.Bins = None,
    target: options.Target = None,
    check: options.Check = False,
    json: options.Json = None,
    by: options.By = None,
    plan: options.Plan = False,
    remedies: options.Remedies = False,
    rules: options.Rules = False,
    rule: options.OwnRule = None,
    title: options.Title = None,
    unit: options.Unit = None,
    period: options.Period = None,
    publisher: options.Publisher = None,
    audience: options.Audience = None,
    prepared_by: options.PreparedBy = None,
    next_review: options.NextReview = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    zarr: Zarr = False,
) -> int:
    """Audit a query on the databases of a table."""
    from edp_bayes.cli.session import audit_databases

    knows = options.Knows.parse(
        past=past,
        past_published=past_published,
        trend=trend,
        no_past=no_past,
        season=season,
        changing_scale=changing_scale,
        covariates=covariates,
        insiders=insiders,
        at=at,
    )
    run = options.Run.parse(
        query=query,
        epsilon=epsilon,
        model=model,
        sampler=sampler,
        kernel=kernel,
        components=components,
        narrowest=narrowest,
        draws=draws,
        tune=tune,
        chains=chains,
        keep=keep,
        names=tuple(name or ()),
        seed=seed,
        target_accept=target_accept,
        out=out,
        zarr=zarr,
        quiet=quiet,
        report=report,
        report_names=report_names,
        pseudonyms=pseudonyms,
        pseudonym_key=pseudonym_key,
        knows=knows,
        executor=executor,
        exact_up_to=exact_up_to,
        resume=resume,
        keep_store=keep_store,
        appear_once=appear_once,
        databases=databases,
        carry_over=carry_over,
        collect=collect,
        step=step,
        no_step=no_step,
        transform=transform,
        atoms=atoms,
        rounded_to=rounded_to,
        offset=offset,
        threshold=threshold,
        bins=bins,
        target=target,
        check=check,
        json=json,
        by=by,
        plan=plan or None,
        remedies=remedies or None,
        rules=rules or None,
        rule=rule or None,
        title=title,
        unit=unit,
        period=period,
        publisher=publisher,
        audience=audience,
        prepared_by=prepared_by,
        next_review=next_review,
        verbose=verbose,
        table=table,
    )
    keys = options.Keys.parse(
        database,
        individual,
        database_every=database_every,
        empty=empty,
        missing=missing,
        date_format=date_format,
        time_zone=time_zone,
        separator=separator,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        partial=partial,
    )
    return audit_databases(lambda: table, keys, run)


@app.command()
def demo(
    out: options.Out[Path] = Path("edp-bayes-demo"),
    seed: options.Seed = 1,
    target: options.Target = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    zarr: Zarr = False,
) -> int:
    """Audit the weekly revenue of a music shop with 10,010 customers, in one to two minutes."""
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.cli.session import audit_databases
    from edp_bayes.data import load_cdnow_weeks

    run = options.Run.parse(
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
    keys = options.Keys(("week",), ("customer",))
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
