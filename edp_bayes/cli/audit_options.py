"""The options of `edp-bayes audit`, by what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from edp_bayes.cli.options import (
    ADVERSARY,
    BEYOND,
    DATA,
    MODEL,
    RESULTS,
    TARGET,
    Chains,
    Check,
    Database,
    Draws,
    Epsilon,
    Individual,
    Json,
    Out,
    Quiet,
    Seed,
    Target,
    Verbose,
    Zarr,
)
from edp_bayes.utils.defaults import CELL_TUNE, EXACT_UP_TO, KEEP, TUNE


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is audited: an answer of every database, and who is in it."""

    database: Database[list[str]]
    individual: Individual[list[str]]
    query: Annotated[
        list[str],
        DATA(
            "--query",
            help="sum:COL, mean:COL, median:COL, count, proportion:COL>=40, ... Give it again "
            "for each of several that are published together.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What kind of answer it is, and whether it is one of a table of cells."""

    appear_once: Annotated[
        bool,
        DATA(
            "--appear-once",
            help="Individuals are persons, although nearly each of them is in one database alone.",
        ),
    ] = False
    step: Annotated[
        float | None,
        DATA(
            "--step",
            help="Answers are rounded to a grid of this step; by default 1 for small counts, "
            "else what the answers show.",
        ),
    ] = None
    no_step: Annotated[
        bool, DATA("--no-step", help="Answers are continuous, even where they are tied.")
    ] = False
    transform: Annotated[
        str | None,
        DATA(
            "--transform",
            help="Scale on which the answer is modelled: log, logit or sqrt; risks are those of "
            "the answer.",
        ),
    ] = None
    atoms: Annotated[
        str | None,
        DATA(
            "--atoms",
            help="Values that the answer has again and again, such as 0 or a cap, with commas "
            "between them; found for the tied ends.",
        ),
    ] = None
    by: Annotated[
        str | None,
        DATA(
            "--by",
            help="Audit every cell, and totals over cells, of a table published by these "
            "columns, with commas between them. For sums and counts.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the adversary knows beside the response."""

    past: Annotated[
        int | None,
        ADVERSARY(
            "--past",
            min=0,
            help="Earlier releases that the adversary has seen, as lags: 2 by default for 30 "
            "databases in order and more.",
        ),
    ] = None
    past_published: Annotated[
        bool,
        ADVERSARY(
            "--past-published",
            help="Of earlier releases they have seen what --rounded-to, --threshold or --bins "
            "leave.",
        ),
    ] = False
    trend: Annotated[
        bool | None,
        ADVERSARY(
            "--trend/--no-trend", help="They know the trend: by default where they know the past."
        ),
    ] = None
    no_past: Annotated[
        bool, ADVERSARY("--no-past", help="Databases are independent, as in the paper.")
    ] = False
    season: Annotated[
        str | None,
        ADVERSARY("--season", help="They know the season: its period in databases, or calendar."),
    ] = None
    changing_scale: Annotated[
        bool, ADVERSARY("--changing-scale", help="The spread may grow or fall over the databases.")
    ] = False
    covariates: Annotated[
        Path | None,
        ADVERSARY(
            "--covariates",
            help="CSV or Parquet file of what they know of every database, its key in the first "
            "columns.",
        ),
    ] = None
    insiders: Annotated[
        str | None,
        ADVERSARY(
            "--insiders",
            help="File of one column of individuals who pool what they contributed, or their "
            "share.",
        ),
    ] = None
    at: Annotated[
        str | None,
        ADVERSARY(
            "--at", help="The database in question; by default the next one, after all of them."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Aim:
    """The target, and what is published of the answer."""

    epsilon: Epsilon = "0.01:0.5:50"
    databases: Annotated[
        int | None,
        TARGET(
            "--databases",
            min=1,
            help="Also the risk of so many releases, each of a fresh database.",
        ),
    ] = None
    carry_over: Annotated[
        bool,
        TARGET(
            "--carry-over",
            help="With --databases: an upper bound that also holds where later databases follow "
            "what the others contributed to earlier ones, rather than the answers as they "
            "were released.",
        ),
    ] = False
    rounded_to: Annotated[
        float | None,
        TARGET("--rounded-to", help="Also the risk of the answer rounded to a multiple of this."),
    ] = None
    offset: Annotated[
        str | None,
        TARGET(
            "--offset", help="It is rounded to this and multiples from there; worst for any place."
        ),
    ] = None
    threshold: Annotated[
        float | None, TARGET("--threshold", help="Also the risk if answers below are suppressed.")
    ] = None
    bins: Annotated[
        str | None,
        TARGET("--bins", help="Also the risk if only the bin is published: its edges, a,b,c."),
    ] = None
    target: Target = None
    check: Check = False
    plan: Annotated[
        bool,
        TARGET(
            "--plan",
            help="Where the target is undecided, also say how many databases would decide, by "
            "simulated futures; takes minutes.",
        ),
    ] = False
    remedies: Annotated[
        bool,
        TARGET(
            "--remedies",
            help="Where the target is not met or undecided, also try what would help: rounding, "
            "noise, a longer period, a limit for each contribution; takes minutes.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """The density model, and how it is drawn."""

    model: Annotated[str, MODEL("--model", help="dpm, finite:K or bootstrap.")] = "dpm"
    kernel: Annotated[
        str | None, MODEL("--kernel", help="gaussian or laplace; by default the model's.")
    ] = None
    components: Annotated[
        int | None,
        MODEL("--components", min=2, help="Components of --model dpm; by default enough."),
    ] = None
    narrowest: Annotated[
        float | None,
        MODEL(
            "--narrowest",
            help="Standard deviation of the narrowest components of --model dpm and finite:K, in "
            "units of the answer as it is modelled; by default what the answers can show. "
            "Limits rest on it.",
        ),
    ] = None
    sampler: Annotated[
        str | None,
        MODEL(
            "--sampler", help="gibbs, nutpie, pymc, numpyro or blackjax; by default the model's."
        ),
    ] = None
    seed: Seed = None
    draws: Draws = None
    tune: Annotated[
        int | None,
        MODEL(
            "--tune",
            min=1,
            help=f"Warm-up draws of each chain, {TUNE} by default, {CELL_TUNE} with --by.",
        ),
    ] = None
    chains: Chains = None
    target_accept: Annotated[
        float | None, MODEL("--target-accept", help="Of NUTS; raise it if that diverges.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Written:
    """What is printed and written, of whom, and in which words."""

    out: Out[Path]
    keep: Annotated[
        int | None,
        RESULTS("--keep", min=1, help=f"Riskiest individuals to keep draws of, {KEEP} by default."),
    ] = None
    names: Annotated[
        list[str] | None, RESULTS("--name", help="Individual to keep whatever its risk.")
    ] = None
    report: Annotated[
        Path | None, RESULTS("--report", help="HTML file for a report to hand on.")
    ] = None
    report_names: Annotated[
        bool, RESULTS("--report-names", help="Names, not pseudonyms, in the report.")
    ] = False
    pseudonyms: Annotated[
        bool, RESULTS("--pseudonyms", help="Pseudonyms, not names, in all files.")
    ] = False
    pseudonym_key: Annotated[
        Path | None,
        RESULTS(
            "--pseudonym-key",
            help="File of the secret key of the pseudonyms, made if need be; without it they are "
            "random, and nobody can tell whose they are.",
        ),
    ] = None
    json: Json = None
    rules: Annotated[
        bool,
        RESULTS(
            "--rules",
            help="Also whether every database passes customary rules of disclosure control "
            "(minimum frequency, dominance, p%, 15/15), beside delta.",
        ),
    ] = False
    rule: Annotated[
        list[str] | None,
        RESULTS(
            "--rule",
            help="A rule with parameters of your own; again for each: frequency:8, frequency:8:5 "
            "(others redacted, then rounded to 5), midpoint:6, dominance:2:90, p:10, "
            "pq:10:50, concentration:15:15.",
        ),
    ] = None
    title: Annotated[
        str | None,
        RESULTS("--title", help="What is released, in place of the query: 'Weekly revenue'."),
    ] = None
    unit: Annotated[str | None, RESULTS("--unit", help="Unit of the answer, such as dollars.")] = (
        None
    )
    period: Annotated[
        str | None, RESULTS("--period", help="Over what period: 'April 1997 to June 1998'.")
    ] = None
    publisher: Annotated[str | None, RESULTS("--publisher", help="Who releases it.")] = None
    audience: Annotated[
        str | None, RESULTS("--audience", help="To whom; anybody if not given.")
    ] = None
    prepared_by: Annotated[str | None, RESULTS("--prepared-by", help="Who made the audit.")] = None
    next_review: Annotated[
        str | None, RESULTS("--next-review", help="When it is to be made again.")
    ] = None
    verbose: Verbose = False
    quiet: Quiet = False
    zarr: Zarr = False


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where individuals are evaluated, and how many in full."""

    collect: Annotated[
        int | None,
        BEYOND(
            "--collect",
            min=1,
            help="Individuals whose contributions are collected, those who can matter most; the "
            "risks of all others are bounded. For sums and counts; by default all, or "
            "100,000 beyond 50 million pairs in an engine.",
        ),
    ] = None
    executor: Annotated[
        str | None,
        BEYOND(
            "--executor",
            help="Where individuals are evaluated: a number of threads, or the address of a Dask "
            "scheduler (tcp://...) or of Spark (sc://..., local[2]). With --by, where cells "
            "are audited: a number of processes, one a core by default, or an address.",
        ),
    ] = None
    exact_up_to: Annotated[
        int | None,
        BEYOND(
            "--exact-up-to",
            min=1,
            help=f"In populations of more individuals, {EXACT_UP_TO:,} by default, those who "
            "hardly matter enter delta* by an upper bound of their risk.",
        ),
    ] = None
    resume: Annotated[
        bool,
        BEYOND(
            "--resume",
            help="Keep what is finished in audit.store, in the folder of the results, and "
            "continue from it after a kill, with the same numbers.",
        ),
    ] = False
    keep_store: Annotated[bool, BEYOND("--keep-store", help="Leave audit.store at the end.")] = (
        False
    )
