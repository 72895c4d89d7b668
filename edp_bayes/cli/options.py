"""Options that commands share, each declared once, and what their text stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import typer

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import (
    CELL_CHAINS,
    CELL_DRAWS,
    CELL_KEEP,
    CELL_TUNE,
    DRAWS,
    EXACT_UP_TO,
    TUNE,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edp_bayes.auditing.disclosure import Rule
    from edp_bayes.distributions.published import Published
    from edp_bayes.models.base import DensityModel
    from edp_bayes.records.query import Query
    from edp_bayes.results.release import Release

__all__ = [
    "STORE",
    "AppearOnce",
    "At",
    "Atoms",
    "Audience",
    "Bins",
    "By",
    "Chains",
    "ChangingScale",
    "Check",
    "Collect",
    "Covariates",
    "Database",
    "DateFormat",
    "Decimal",
    "Draws",
    "Empty",
    "Encoding",
    "Epsilon",
    "Every",
    "ExactUpTo",
    "Fresh",
    "Individual",
    "Insiders",
    "Json",
    "KeepStore",
    "Keys",
    "Knows",
    "Missing",
    "NextReview",
    "NoPast",
    "NoStep",
    "Offset",
    "Out",
    "OwnRule",
    "Partial",
    "Past",
    "PastPublished",
    "Period",
    "Plan",
    "PreparedBy",
    "Publisher",
    "Quiet",
    "Remedies",
    "Resume",
    "RoundedTo",
    "Rules",
    "Run",
    "Season",
    "Seed",
    "Separator",
    "Step",
    "Target",
    "Thousands",
    "Threshold",
    "TimeZone",
    "Title",
    "Transformed",
    "Trend",
    "Unit",
    "Verbose",
    "Where",
    "columns",
    "parse_atoms",
    "parse_epsilon",
    "parse_model",
    "parse_published",
]

# Panels of the help.
DATA, ADVERSARY, TARGET = "Data", "What the adversary knows", "Target, and what is published"
MODEL, RESULTS, BEYOND = "Model", "Results", "Beyond one machine"

# Digits kept of a spaced grid, so that 0.3 is not 0.30000000000000004.
DIGITS = 12
MOST_EPSILONS = 10_000
# Folder, in that of the results, of what a run has finished.
STORE = "audit.store"
# Options that say what is published of an answer.
PUBLISHED = ("rounded_to", "offset", "threshold", "bins")
FOUND = "found"  # a step that nobody asked for


@dataclass(frozen=True)
class Keys:
    """How the rows of a table become databases.

    Attributes
    ----------
    database, individual : tuple of str
        Key columns.
    database_every, empty, missing, partial, date_format, time_zone, separator, decimal, thousands
    encoding
        As for `Databases.from_table`.
    """

    database: tuple[str, ...] = ()
    individual: tuple[str, ...] = ()
    database_every: str | None = None
    empty: str | None = None
    missing: str = "error"
    date_format: str | None = None
    time_zone: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    partial: str = "keep"

    @classmethod
    def parse(
        cls,
        database: Iterable[str] | None,
        individual: Iterable[str] | None,
        *,
        known: Mapping[str, Any] | None = None,
        **options: str | None,
    ) -> Self:
        """Return keys from the options given, and from what is known where they were not."""
        from edp_bayes.records.cut_off import PARTIAL
        from edp_bayes.records.owning import EMPTY, MISSING
        from edp_bayes.records.periods import EVERY
        from edp_bayes.tables.clocks import Clock
        from edp_bayes.tables.reading import Reading
        from edp_bayes.utils import validate

        given: dict[str, Any] = {name: value for name, value in options.items() if value}
        for name, choices in (
            ("database_every", EVERY),
            ("empty", EMPTY),
            ("missing", MISSING),
            ("partial", PARTIAL),
        ):
            if name in given:
                validate.choice(given[name], choices, f"--{name.replace('_', '-')}")
        for name, value in (("database", database), ("individual", individual)):
            if value:
                given[name] = columns(value, f"--{name}")
        reads = ("date_format", "time_zone")
        Clock(**{name: given[name] for name in reads if name in given})
        marks = ("separator", "decimal", "thousands", "encoding")
        Reading(**{name: given[name] for name in marks if name in given})
        noted = dict(known or {})
        for name in ("database", "individual"):
            noted[name] = tuple(noted.get(name, ()))
        return cls(**{**noted, **given})


@dataclass(frozen=True)
class Knows:
    """What the adversary of a run knows beside the response, as far as options say it.

    Attributes
    ----------
    past : int or None
        Lags; None takes what is usual.
    past_published : bool
        They have seen what is published of every answer, not the answer.
    trend : bool or None
        Whether they know the trend; None takes what is usual.
    season, changing_scale
        As for `Adversary`.
    covariates : Path or None
        File of what is public about every database.
    insiders : Path, float or ()
        File of individuals, or their share.
    at : str or None
        The database in question, as text.
    no_past : bool
        Databases are independent as far as no option says otherwise.
    """

    past: int | None = None
    past_published: bool = False
    trend: bool | None = None
    season: float | str | None = None
    covariates: Path | None = None
    changing_scale: bool = False
    insiders: Path | float | tuple[()] = ()
    at: str | None = None
    no_past: bool = False

    @property
    def files(self) -> dict[str, Path]:
        """The files that are read, by their options."""
        named = {"--covariates": self.covariates, "--insiders": self.insiders}
        return {option: path for option, path in named.items() if isinstance(path, Path)}

    @classmethod
    def parse(
        cls, *, season: str | None = None, insiders: str | None = None, **options: Any
    ) -> Self:
        """Return what is known, refusing all that can be refused without the data."""
        from edp_bayes.adversary.adversary import CALENDAR, Adversary
        from edp_bayes.tables.tables import open_table

        given = {name: value for name, value in options.items() if value is not None}
        if season is not None:
            given["season"] = season if season == CALENDAR else _number(season)
            if given["season"] is None:
                raise InvalidInputError(
                    f"--season must be a number of databases or {CALENDAR}, found {season!r}"
                )
        if insiders is not None:
            share = _number(insiders)
            given["insiders"] = Path(insiders) if share is None else share
        known = cls(**given)
        if known.no_past and known.past is not None:
            raise InvalidInputError("--past and --no-past contradict: give one of them")
        shared = known.insiders if isinstance(known.insiders, float) else ()
        Adversary(season=known.season, insiders=shared)
        for path in known.files.values():
            open_table(path, ())
        return known

    def refuse_doubled(self, tables: Iterable[Path]) -> None:
        """Refuse a file that is given twice."""
        read = {path.resolve(): "the table" for path in tables}
        for option, path in self.files.items():
            other = read.setdefault(path.resolve(), option)
            if other != option:
                raise InvalidInputError(
                    f"{option} must be a file of its own, found {path}, which is {other}"
                )


@dataclass(frozen=True)
class Run:
    """Everything that a run was asked for.

    Attributes
    ----------
    query : tuple of Query
        What is audited.
    epsilon : ndarray
        Shape (epsilon,).
    model : DensityModel
        Distribution of the response.
    out : Path
        Folder of the results, known to be writable.
    names : tuple of str
        Individuals to keep, as text.
    report : Path or None
        HTML file of the report, in a folder known to be writable; None for no report.
    report_names : bool
        Names rather than pseudonyms in the report.
    pseudonyms : bool
        Pseudonyms rather than names in all files.
    pseudonym_key : Path or None
        File of their key, made if need be; None for a random key that is kept nowhere.
    knows : Knows
        What the adversary knows.
    databases : int or None
        How many fresh databases are composed; None for none.
    carry_over : bool
        These may follow what the others contributed, rather than the answers as released.
    collect : int or None
        How many individuals' contributions are collected; None takes what is usual.
    step : float, "found" or None
        Answers are rounded to a grid of this step.
    transform : str or None
        Scale on which the answer is modelled; None for its own.
    atoms : list of float, "found" or None
        Values that the answer has again and again.
    appear_once : bool
        As for `edp_bayes.audit`.
    published : Published or None
        What is published of the answer; None for the whole of it.
    target : tuple of float or None
        Epsilon and delta that the verdict answers; None for the default.
    check : bool
        The exit code tells the verdict.
    json : Path or None
        File of the verdict's record; None for none.
    verbose : bool
        Print all tables and checks.
    rules : tuple of Rule
        Rules that are also looked at.
    plan : bool
        Say how many databases would decide.
    remedies : bool
        Try what would help.
    by : tuple of str
        Columns whose values make up cells, each of which is audited; none for one answer.
    release : Release or None
        What is released, by whom and over what period, in words.
    sampler, draws, tune, chains, keep, seed, target_accept
        As for `edp_bayes.audit`; None takes what is usual.
    zarr, quiet : bool
        Save to Zarr; print nothing.
    executor : str or None
        Number of threads, or address, of where individuals are evaluated.
    exact_up_to : int or None
        As for `edp_bayes.audit`; None takes what is usual.
    resume, keep_store : bool
        Keep what is finished and continue from it; leave it there at the end.
    """

    query: tuple[Query, ...]
    epsilon: NDArray[np.float64]
    model: DensityModel
    out: Path
    names: tuple[str, ...] = ()
    sampler: str | None = None
    draws: int = DRAWS
    tune: int = TUNE
    chains: int = 4
    keep: int = 10
    seed: int | None = None
    target_accept: float | None = None
    zarr: bool = False
    quiet: bool = False
    report: Path | None = None
    report_names: bool = False
    pseudonyms: bool = False
    pseudonym_key: Path | None = None
    knows: Knows = Knows()
    executor: str | None = None
    exact_up_to: int | None = None
    resume: bool = False
    keep_store: bool = False
    databases: int | None = None
    carry_over: bool = False
    collect: int | None = None
    step: float | str | None = FOUND
    transform: str | None = None
    atoms: str | list[float] | None = None
    appear_once: bool = False
    published: Published | None = None
    target: tuple[float, float] | None = None
    check: bool = False
    json: Path | None = None
    verbose: bool = False
    rules: tuple[Rule, ...] = ()
    plan: bool = False
    remedies: bool = False
    by: tuple[str, ...] = ()
    release: Release | None = None

    @property
    def store(self) -> Path | None:
        """Folder of what is finished; None where nothing is to be kept."""
        return self.out / STORE if self.resume else None

    @property
    def where(self) -> int | str | None:
        """Where individuals are evaluated: threads, an address, or here."""
        known = self.executor
        return int(known) if known is not None and known.isdecimal() else known

    @property
    def sampling(self) -> dict[str, Any]:
        """How an audit is drawn, in the arguments of `edp_bayes.audit`."""
        return {
            "model": self.model,
            "sampler": self.sampler,
            "draws": self.draws,
            "tune": self.tune,
            "chains": self.chains,
            "random_seed": self.seed,
            "appear_once": self.appear_once,
            **self.bounding,
            **self.nuts,
        }

    @property
    def bounding(self) -> dict[str, Any]:
        """From how many individuals on risks are bounded, if that is not to be what is usual."""
        return {} if self.exact_up_to is None else {"exact_up_to": self.exact_up_to}

    @property
    def nuts(self) -> dict[str, Any]:
        """Arguments for NUTS alone."""
        return {} if self.target_accept is None else {"target_accept": self.target_accept}

    @classmethod
    def parse(
        cls,
        *,
        query: str | Sequence[str],
        epsilon: str,
        out: Path,
        model: str = "dpm",
        kernel: str | None = None,
        thin: int | None = None,
        components: int | None = None,
        narrowest: float | None = None,
        table: str | None = None,
        **options: Any,
    ) -> Self:
        """Return a run from its options, refusing all that can be refused without the data.

        The table is what will be read: no result may take the place of its files. The other
        options are attributes of a run; None takes what is usual.
        """
        from edp_bayes.cli.answering import parse_target, with_target
        from edp_bayes.cli.folder import (
            RESULTS,
            local_files,
            refuse_overwriting,
            require_writable,
        )
        from edp_bayes.cli.keys import require_key_apart
        from edp_bayes.queries import parse
        from edp_bayes.results.release import Release
        from edp_bayes.utils import validate
        from edp_bayes.utils.files import require_zarr

        given = {name: value for name, value in options.items() if value is not None}
        if "by" in given:
            given["by"] = columns([given["by"]], "--by")
            _refuse_beside_cells(given)
            given = {**OF_CELLS, **given}
        if given.pop("no_step", False):
            if "step" in given:
                raise InvalidInputError("--step and --no-step contradict: give one of them")
            given["step"] = None
        elif "step" in given:
            validate.positive_number(given["step"], "--step")
        from edp_bayes.responses import transforms

        if "atoms" in given:
            given["atoms"] = parse_atoms(given["atoms"])
            _refuse_beside_atoms(given)
        if "transform" in given:
            validate.choice(given["transform"], transforms.NAMES, "--transform")
            if isinstance(given.get("step"), float):
                raise InvalidInputError(
                    "--transform is for continuous answers, and --step says that they lie on a "
                    "grid: leave out one of the two, or give --no-step"
                )
        given["published"] = parse_published(
            {name: given.pop(name) for name in PUBLISHED if name in given}
        )
        if given["published"] is None and "knows" in given and given["knows"].past_published:
            raise InvalidInputError(
                "--past-published is for answers that are published in part: give --rounded-to, "
                "--threshold or --bins, too"
            )
        if given["published"] is not None and "transform" in given:
            raise InvalidInputError(
                "--transform is a scale to model the answer on, and --rounded-to, --threshold and "
                "--bins are on its own: leave out one of the two"
            )
        said = (part.name for part in fields(Release))
        words = {name: given.pop(name) for name in said if name in given}
        given["release"] = Release(**words) if words else None
        given["rules"] = _rules(given.pop("rules", False), given.pop("rule", ()))
        given["target"] = parse_target(given.get("target"), check=given.get("check", False))
        queries = tuple(parse(one) for one in ([query] if isinstance(query, str) else query))
        run = cls(
            queries,
            with_target(parse_epsilon(epsilon), given["target"]),
            parse_model(model, kernel, thin, components, narrowest),
            out,
            **given,
        )
        if run.report_names and run.report is None:
            raise InvalidInputError("--report-names is for a report: give --report with its file")
        if run.report_names and run.pseudonyms:
            raise InvalidInputError("--report-names and --pseudonyms contradict: give one of them")
        tables = local_files(table)
        read = [*tables, *run.knows.files.values()]
        run.knows.refuse_doubled(tables)
        if run.pseudonym_key is not None:
            require_key_apart(run.pseudonym_key, run, read)
        if run.zarr:
            require_zarr("--zarr")
        if run.keep_store and not run.resume:
            raise InvalidInputError("--keep-store is for a store: give --resume, too")
        if run.carry_over and run.databases is None:
            raise InvalidInputError("--carry-over is for several releases: give --databases, too")
        if run.carry_over and run.knows.no_past:
            raise InvalidInputError(
                "--carry-over and --no-past contradict: without a past nothing carries over to "
                "later answers"
            )
        if run.target_accept is not None:
            validate.probability(run.target_accept, "--target-accept")
            from edp_bayes.models.sampling import NUTS

            if run.sampler not in NUTS and (
                run.sampler is not None or kernel in (None, "gaussian")
            ):
                raise InvalidInputError(
                    f"--target-accept is for --sampler {', '.join(NUTS)}, found "
                    f"{run.sampler or 'no --sampler'}"
                )
        results = [out / name for name in RESULTS]
        named = {"--report": (run.report, "report.html"), "--json": (run.json, "verdict.json")}
        reports = [path for path, _ in named.values() if path is not None]
        refuse_overwriting([*results, *reports], read)
        for option, (path, usual) in named.items():
            if path is not None:
                _require_own_file(path, option, usual, results)
        if run.report is not None and run.json is not None:
            _require_own_file(run.json, "--json", "verdict.json", [run.report])
        require_writable(out)
        for path in reports:
            require_writable(path.parent)
        return run


# Some are required by one command and not by another: Out[Path], Out[Path | None].
T = TypeVar("T")
Database = Annotated[
    T,
    typer.Option(
        "--database", help="Key column of the databases; several: a,b.", rich_help_panel=DATA
    ),
]
Individual = Annotated[
    T,
    typer.Option(
        "--individual", help="Key column of the individuals; several: a,b.", rich_help_panel=DATA
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--database-every",
        help="Databases are hours, days, weeks, months, quarters or years of the key column: "
        "hour, day, week, month, quarter or year.",
        rich_help_panel=DATA,
    ),
]
Empty = Annotated[
    str | None,
    typer.Option(
        "--empty",
        help="Periods without a record: drop, zero (sum, count) or error. Without it they are "
        "left out, and a period far from all others, as a mistyped year makes, is refused.",
        rich_help_panel=DATA,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        help="Records without an individual: error (the default), drop them, or pool them as one "
        "individual.",
        rich_help_panel=DATA,
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format",
        help="How text of the database column is a date, such as %d.%m.%Y; or unix, unix_ms or "
        "unix_us for numbers since 1970.",
        rich_help_panel=DATA,
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        help="Zone of the calendar for times with a zone, an offset or since 1970: Europe/Berlin.",
        rich_help_panel=DATA,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="Between the values of a text file: ';', tab, ...; found.",
        rich_help_panel=DATA,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal", help="Decimal mark of a text file, . or ,; found.", rich_help_panel=DATA
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        help="Between thousands: . , ' or a blank; found where plain.",
        rich_help_panel=DATA,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Of a text file, such as cp1252; UTF-8 and UTF-16 are found.",
        rich_help_panel=DATA,
    ),
]
Partial = Annotated[
    str | None,
    typer.Option(
        "--partial",
        help="A first or last period that is cut off: keep it, with a warning (the default), or "
        "drop it.",
        rich_help_panel=DATA,
    ),
]
Collect = Annotated[
    int | None,
    typer.Option(
        "--collect",
        min=1,
        help="Individuals whose contributions are collected, those who can matter most; the risks "
        "of all others are bounded. For sums and counts; by default all, or 100,000 beyond 50 "
        "million pairs in an engine.",
        rich_help_panel=BEYOND,
    ),
]
Out = Annotated[
    T,
    typer.Option("--out", help="Folder for the results; made if need be.", rich_help_panel=RESULTS),
]
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon", help="start:stop:count, or a list 0.1,0.2,0.5.", rich_help_panel=TARGET
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="The same seed, the same numbers.", rich_help_panel=MODEL),
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--draws",
        min=1,
        help=f"Kept draws of each chain, {Run.draws} by default, {CELL_DRAWS} with --by.",
        rich_help_panel=MODEL,
    ),
]
Chains = Annotated[
    int | None,
    typer.Option(
        "--chains",
        min=1,
        help=f"Number of chains, {Run.chains} by default, {CELL_CHAINS} with --by.",
        rich_help_panel=MODEL,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Keep what is finished in audit.store, in the folder of the results, and continue "
        "from it after a kill, with the same numbers.",
        rich_help_panel=BEYOND,
    ),
]
AppearOnce = Annotated[
    bool,
    typer.Option(
        "--appear-once",
        help="Individuals are persons, although nearly each of them is in one database alone.",
        rich_help_panel=DATA,
    ),
]
KeepStore = Annotated[
    bool, typer.Option("--keep-store", help="Leave audit.store at the end.", rich_help_panel=BEYOND)
]
Where = Annotated[
    str | None,
    typer.Option(
        "--executor",
        help="Where individuals are evaluated: a number of threads, or the address of a Dask "
        "scheduler (tcp://...) or of Spark (sc://..., local[2]). With --by, where cells are "
        "audited: a number of processes, one a core by default, or an address.",
        rich_help_panel=BEYOND,
    ),
]
ExactUpTo = Annotated[
    int | None,
    typer.Option(
        "--exact-up-to",
        min=1,
        help=f"In populations of more individuals, {EXACT_UP_TO:,} by default, those who hardly "
        "matter enter delta* by an upper bound of their risk.",
        rich_help_panel=BEYOND,
    ),
]
Fresh = Annotated[
    int | None,
    typer.Option(
        "--databases",
        min=1,
        help="Also the risk of so many releases, each of a fresh database.",
        rich_help_panel=TARGET,
    ),
]
CarryOverOption = Annotated[
    bool,
    typer.Option(
        "--carry-over",
        help="With --databases: an upper bound that also holds where later databases follow what "
        "the others contributed to earlier ones, rather than the answers as they were released.",
        rich_help_panel=TARGET,
    ),
]
Step = Annotated[
    float | None,
    typer.Option(
        "--step",
        help="Answers are rounded to a grid of this step; by default 1 for small counts, else what "
        "the answers show.",
        rich_help_panel=DATA,
    ),
]
NoStep = Annotated[
    bool,
    typer.Option(
        "--no-step", help="Answers are continuous, even where they are tied.", rich_help_panel=DATA
    ),
]
RoundedTo = Annotated[
    float | None,
    typer.Option(
        "--rounded-to",
        help="Also the risk of the answer rounded to a multiple of this.",
        rich_help_panel=TARGET,
    ),
]
Atoms = Annotated[
    str | None,
    typer.Option(
        "--atoms",
        help="Values that the answer has again and again, such as 0 or a cap, with commas between "
        "them; found for the tied ends.",
        rich_help_panel=DATA,
    ),
]
Transformed = Annotated[
    str | None,
    typer.Option(
        "--transform",
        help="Scale on which the answer is modelled: log, logit or sqrt; risks are those of the "
        "answer.",
        rich_help_panel=DATA,
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset",
        help="It is rounded to this and multiples from there; worst for any place.",
        rich_help_panel=TARGET,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", help="Also the risk if answers below are suppressed.", rich_help_panel=TARGET
    ),
]
Bins = Annotated[
    str | None,
    typer.Option(
        "--bins",
        help="Also the risk if only the bin is published: its edges, a,b,c.",
        rich_help_panel=TARGET,
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        "--components",
        min=2,
        help="Components of --model dpm; by default enough.",
        rich_help_panel=MODEL,
    ),
]
Narrowest = Annotated[
    float | None,
    typer.Option(
        "--narrowest",
        help="Standard deviation of the narrowest components of --model dpm and finite:K, in units "
        "of the answer as it is modelled; by default what the answers can show. Limits rest on it.",
        rich_help_panel=MODEL,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="What is to be shown, EPSILON:DELTA, such as 0.1:0.01; by default epsilon 0.1 and one "
        "over the number of individuals.",
        rich_help_panel=TARGET,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="The exit code tells: 3 target not met, 4 undecided, 5 not established.",
        rich_help_panel=TARGET,
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", help="File for the record of the verdict, as JSON.", rich_help_panel=RESULTS
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="Audit every cell, and totals over cells, of a table published by these columns, with "
        "commas between them. For sums and counts.",
        rich_help_panel=DATA,
    ),
]
Plan = Annotated[
    bool,
    typer.Option(
        "--plan",
        help="Where the target is undecided, also say how many databases would decide, by "
        "simulated futures; takes minutes.",
        rich_help_panel=TARGET,
    ),
]
Remedies = Annotated[
    bool,
    typer.Option(
        "--remedies",
        help="Where the target is not met or undecided, also try what would help: rounding, noise, "
        "a longer period, a limit for each contribution; takes minutes.",
        rich_help_panel=TARGET,
    ),
]
Rules = Annotated[
    bool,
    typer.Option(
        "--rules",
        help="Also whether every database passes customary rules of disclosure control (minimum "
        "frequency, dominance, p%, 15/15), beside delta.",
        rich_help_panel=RESULTS,
    ),
]
OwnRule = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="A rule with parameters of your own; again for each: frequency:8, frequency:8:5 "
        "(others redacted, then rounded to 5), midpoint:6, dominance:2:90, p:10, pq:10:50, "
        "concentration:15:15.",
        rich_help_panel=RESULTS,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Print all tables and what every check says.", rich_help_panel=RESULTS
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title",
        help="What is released, in place of the query: 'Weekly revenue'.",
        rich_help_panel=RESULTS,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", help="Unit of the answer, such as dollars.", rich_help_panel=RESULTS),
]
Period = Annotated[
    str | None,
    typer.Option(
        "--period", help="Over what period: 'April 1997 to June 1998'.", rich_help_panel=RESULTS
    ),
]
Publisher = Annotated[
    str | None, typer.Option("--publisher", help="Who releases it.", rich_help_panel=RESULTS)
]
Audience = Annotated[
    str | None,
    typer.Option("--audience", help="To whom; anybody if not given.", rich_help_panel=RESULTS),
]
PreparedBy = Annotated[
    str | None, typer.Option("--prepared-by", help="Who made the audit.", rich_help_panel=RESULTS)
]
NextReview = Annotated[
    str | None,
    typer.Option("--next-review", help="When it is to be made again.", rich_help_panel=RESULTS),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=RESULTS)
]
Past = Annotated[
    int | None,
    typer.Option(
        "--past",
        min=0,
        help="Earlier releases that the adversary has seen, as lags: 2 by default for 30 databases "
        "in order and more.",
        rich_help_panel=ADVERSARY,
    ),
]
PastPublished = Annotated[
    bool,
    typer.Option(
        "--past-published",
        help="Of earlier releases they have seen what --rounded-to, --threshold or --bins leave.",
        rich_help_panel=ADVERSARY,
    ),
]
Trend = Annotated[
    bool | None,
    typer.Option(
        "--trend/--no-trend",
        help="They know the trend: by default where they know the past.",
        rich_help_panel=ADVERSARY,
    ),
]
NoPast = Annotated[
    bool,
    typer.Option(
        "--no-past", help="Databases are independent, as in the paper.", rich_help_panel=ADVERSARY
    ),
]
Season = Annotated[
    str | None,
    typer.Option(
        "--season",
        help="They know the season: its period in databases, or calendar.",
        rich_help_panel=ADVERSARY,
    ),
]
Covariates = Annotated[
    Path | None,
    typer.Option(
        "--covariates",
        help="CSV or Parquet file of what they know of every database, its key in the first "
        "columns.",
        rich_help_panel=ADVERSARY,
    ),
]
ChangingScale = Annotated[
    bool,
    typer.Option(
        "--changing-scale",
        help="The spread may grow or fall over the databases.",
        rich_help_panel=ADVERSARY,
    ),
]
Insiders = Annotated[
    str | None,
    typer.Option(
        "--insiders",
        help="File of one column of individuals who pool what they contributed, or their share.",
        rich_help_panel=ADVERSARY,
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="The database in question; by default the next one, after all of them.",
        rich_help_panel=ADVERSARY,
    ),
]


def _require_own_file(path: Path, option: str, usual: str, others: Iterable[Path]) -> None:
    """Refuse a file that is a folder, or one of the other results, or within one."""
    if path.is_dir():
        raise InvalidInputError(f"{option} must name a file, {path} is a folder")
    place = path.resolve()
    for other in others:
        if other.resolve() in (place, *place.parents):
            raise InvalidInputError(
                f"{option} must have a name of its own, found {path}, where {other.name} is "
                f"written; {usual} would do"
            )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def columns(values: Iterable[str], option: str) -> tuple[str, ...]:
    """Return column names given by repeating an option or with commas between them.

    Examples
    --------
    >>> columns(["year", "month, day"], "--database")
    ('year', 'month', 'day')
    """
    names = tuple(part.strip() for value in values for part in value.split(","))
    if not names or not all(names):
        raise InvalidInputError(f"{option} must name columns, found {', '.join(values)!r}")
    return names


def _rules(customary: bool, own: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that are asked for: the customary ones, and one's own."""
    if not (customary or own):
        return ()
    from edp_bayes.auditing.disclosure import RULES, rules_of

    return tuple(rules_of([*(RULES if customary else ()), *own]))


def _refuse_beside_atoms(given: Mapping[str, Any]) -> None:
    """Refuse, before any long work, what answers with atoms are not known with."""
    for name in ("transform", "step", "databases", *PUBLISHED):
        if given.get(name) is not None:
            raise InvalidInputError(
                f"--atoms and --{name.replace('_', '-')} do not go together: leave out one of the "
                "two"
            )


# What is usual of cells, of which there are many.
OF_CELLS = {"draws": CELL_DRAWS, "tune": CELL_TUNE, "chains": CELL_CHAINS, "keep": CELL_KEEP}


def _refuse_beside_cells(given: Mapping[str, Any]) -> None:
    """Refuse, before any long work, what is for one answer alone."""
    answer = ("atoms", "transform", "step", "collect", "databases")
    results = ("plan", "remedies", "report_names", "pseudonyms", "pseudonym_key")
    if given.get("names"):
        raise InvalidInputError("--by and --name do not go together: leave out one of the two")
    if "knows" in given and given["knows"].at is not None:
        raise InvalidInputError("--by and --at do not go together: cells are of the next database")
    for name in (*answer, *results):
        if given.get(name) not in (None, False, ()):
            raise InvalidInputError(
                f"--by and --{name.replace('_', '-')} do not go together: leave out one of the "
                "two, or audit that cell on its own"
            )


def parse_atoms(text: str) -> str | list[float]:
    """Return the numbers that a list with commas stands for, or that they are to be found.

    Raises
    ------
    InvalidInputError
        If the text is neither.

    Examples
    --------
    >>> parse_atoms("0,99.5")
    [0.0, 99.5]
    """
    from edp_bayes.responses.atoms import FOUND as AT_ENDS

    if text == AT_ENDS:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--atoms must be numbers with commas between them, such as 0,100, or {AT_ENDS}, found "
            f"{text!r}"
        ) from None


def parse_epsilon(text: str) -> NDArray[np.float64]:
    """Return the grid that start:stop:count or a list with commas stands for.

    Raises
    ------
    InvalidInputError
        If the text is neither, or the grid is not increasing and not negative.

    Examples
    --------
    >>> parse_epsilon("0.1:0.3:3")
    array([0.1, 0.2, 0.3])
    """
    import numpy as np

    from edp_bayes.utils import validate

    try:
        if ":" not in text:
            return validate.epsilon_grid([float(part) for part in text.split(",")], "--epsilon")
        start, stop, count = text.split(":")
        first, last, size = float(start), float(stop), int(count)
    except InvalidInputError:
        raise
    except ValueError:
        raise InvalidInputError(
            f"--epsilon must be start:stop:count or a list such as 0.1,0.2,0.5, found {text!r}"
        ) from None
    if not (np.isfinite([first, last]).all() and 1 <= size <= MOST_EPSILONS):
        raise InvalidInputError(
            f"--epsilon must have finite ends and a count from 1 to {MOST_EPSILONS}, found {text!r}"
        )
    if size == 1 and first != last:
        raise InvalidInputError(
            f"--epsilon with a count of 1 has one value and no room for both ends, found {text!r}: "
            f"give --epsilon {first:g} or a larger count"
        )
    return validate.epsilon_grid(np.linspace(first, last, size).round(DIGITS), "--epsilon")


def parse_published(given: Mapping[str, Any]) -> Published | None:
    """Return what is published, of rounded_to, offset, threshold and bins as text or numbers.

    Raises
    ------
    InvalidInputError
        If an option cannot be used, or not together with another.

    Examples
    --------
    >>> parse_published({"rounded_to": 1000.0, "offset": "worst"}).words
    'rounded to 1000 at the worst offset'
    >>> parse_published({"bins": "10, 20"}).bins
    (10.0, 20.0)
    """
    from edp_bayes.distributions.published import WORST, Published

    if not given:
        return None
    asked = dict(given)
    offset = asked.get("offset")
    if offset is not None and "rounded_to" not in asked:
        raise InvalidInputError("--offset is that of a grid: give --rounded-to with its step")
    if offset is not None and offset != WORST:
        asked["offset"] = _number(offset)
        if asked["offset"] is None:
            raise InvalidInputError(f"--offset must be a number or worst, found {offset!r}")
    if "bins" in asked:
        asked["bins"] = [_number(part) for part in asked["bins"].split(",")]
        if None in asked["bins"]:
            raise InvalidInputError(
                f"--bins must be edges such as 1000,2000,5000, found {given['bins']!r}"
            )
    return Published.of(**asked)


def parse_model(
    text: str,
    kernel: str | None,
    thin: int | None = None,
    components: int | None = None,
    narrowest: float | None = None,
) -> DensityModel:
    """Return the density model that dpm, finite:K or bootstrap stands for.

    The first two have draws that are thin sweeps apart, and a narrowest component; components are
    those of the first.

    Raises
    ------
    InvalidInputError
        If it is none of these, K is no positive integer, the kernel is unknown, or components or
        the narrowest are given for another model.
    """
    from edp_bayes.models import (
        BaseMeasure,
        DirichletProcessMixture,
        FiniteMixture,
        SmoothedBootstrap,
    )
    from edp_bayes.utils import validate

    name, _, count = text.partition(":")
    model: DirichletProcessMixture | FiniteMixture | SmoothedBootstrap
    if text == "dpm":
        model = DirichletProcessMixture()
    elif text == "bootstrap":
        model = SmoothedBootstrap()
    elif name == "finite" and count.isdecimal() and int(count) > 0:
        model = FiniteMixture(components=int(count))
    else:
        raise InvalidInputError(f"--model must be dpm, finite:K or bootstrap, found {text!r}")
    if components is not None and text != "dpm":
        raise InvalidInputError(
            f"--components is for --model dpm, found --model {text}: leave it out, or give the "
            "number of a finite mixture as --model finite:K"
        )
    changes: dict[str, Any] = {"kernel": kernel, "thin": thin, "components": components}
    if narrowest is not None:
        validate.positive_number(narrowest, "--narrowest")
        if text == "bootstrap":
            raise InvalidInputError(
                "--narrowest is for --model dpm and finite:K, found --model bootstrap: leave it "
                "out, or leave out --model"
            )
        changes["base_measure"] = BaseMeasure(narrowest=narrowest)
    return replace(model, **{name: value for name, value in changes.items() if value is not None})
