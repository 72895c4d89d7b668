"""What a run of `edp-bayes audit` was asked for, refused early where it cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from edp_bayes.cli.texts import (
    PUBLISHED,
    columns,
    number,
    parse_atoms,
    parse_epsilon,
    parse_model,
    parse_published,
)
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import (
    CELL_CHAINS,
    CELL_DRAWS,
    CELL_KEEP,
    CELL_TUNE,
    CHAINS,
    DRAWS,
    KEEP,
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

# Folder, in that of the results, of what a run has finished.
STORE = "audit.store"
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
            given["season"] = season if season == CALENDAR else number(season)
            if given["season"] is None:
                raise InvalidInputError(
                    f"--season must be a number of databases or {CALENDAR}, found {season!r}"
                )
        if insiders is not None:
            share = number(insiders)
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
    chains: int = CHAINS
    keep: int = KEEP
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
        given["names"] = tuple(given.get("names", ()))
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
