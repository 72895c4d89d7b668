"""All the work of `edp-bayes noise`: no printing, no parsing here."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.calibration import calibrate
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import posterior_of
from edp_bayes.noise.verification import Verification, verify
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from edp_bayes.cli.run import Keys
    from edp_bayes.responses.responses import Responses
    from edp_bayes.results.query import Audit

__all__ = ["DEMO", "NoiseRun", "noise_for_audit", "responses_of", "source_of", "table_of"]

# The name that stands for the data which come with the package, in the place of a file.
DEMO = "demo"
DEMO_KEYS = ("week",), ("customer",)


@dataclass(frozen=True, eq=False)
class NoiseRun:
    """What `edp-bayes noise` reports and writes.

    Attributes
    ----------
    noise : NoiseDistribution
        What was found; its record holds a message in words.
    verification : Verification
        Privacy of the noisy query at the target and at twice it.
    file : Path or None
        Where the noise was saved, for `edp-bayes release`.
    """

    noise: NoiseDistribution
    verification: Verification
    file: Path | None


def noise_for_audit(
    audit: str | Path | Audit,
    epsilon: float,
    delta: float = 0.0,
    *,
    responses: Responses,
    most_draws: int | None = None,
    output: str | Path | None = None,
    progressbar: bool = True,
    **options: Any,
) -> NoiseRun:
    """Calibrate noise for a saved audit, verify it and save it.

    Parameters
    ----------
    audit : str, Path or Audit
        An audit or a file that `Audit.save` wrote.
    epsilon, delta : float
        Target.
    responses : Responses
        The data of the audit, made from the same table and query.
    most_draws : int, optional
        How many draws of the audit to take, evenly spaced; all by default.
    output : str or Path, optional
        Where to write the noise, as JSON.
    progressbar : bool
        Show progress.
    **options
        method, prob, objective, symmetric, spacing, time_limit of `calibrate`.

    Raises
    ------
    InvalidInputError
        As `edp_bayes.load`, `calibrate` and `verify`.
    """
    from edp_bayes.loading import load
    from edp_bayes.results.query import Audit

    target = validate.positive_number(epsilon, "epsilon")
    found = audit if isinstance(audit, Audit) else load(audit, kind=Audit)
    posterior = posterior_of(found, responses=responses, most_draws=most_draws)
    noise = calibrate(posterior, epsilon=target, delta=delta, progressbar=progressbar, **options)
    if found.warnings:
        record = {**noise.record, "audit_warnings": list(found.warnings)}
        noise = NoiseDistribution(noise.components, noise.weights, record)
    grid = [level for level in (target, 2.0 * target) if level <= validate.LARGEST_EPSILON]
    verification = verify(posterior, noise, epsilon=grid, progressbar=progressbar)
    return NoiseRun(noise, verification, None if output is None else noise.save(output))


def responses_of(
    audit: Audit, table: str | None, keys: Keys, *, progressbar: bool = True
) -> Responses:
    """Return the responses of an audit again, from the table it was made from.

    Parameters
    ----------
    audit : Audit
        Its query is asked again.
    table : str or None
        The file, folder, pattern or place, or "demo" for the data of `edp-bayes demo`; None where
        it is not known.
    keys : Keys
        How its rows become databases; the demo's own where no columns are named.
    progressbar : bool
        Show progress.

    Raises
    ------
    InvalidInputError
        If the table is not known or not there, its keys are not known, or the audit's query
        cannot be asked again from its name.
    """
    from edp_bayes.data import load_cdnow_weeks
    from edp_bayes.queries import parse
    from edp_bayes.responses.databases import Databases

    if table is None:
        raise InvalidInputError(
            "the audit holds no contributions and does not say what it was made from: give --table "
            "with --database and --individual as for edp-bayes audit, or --table demo"
        )
    if table == DEMO:
        keys = replace(
            keys,
            database=keys.database or DEMO_KEYS[0],
            individual=keys.individual or DEMO_KEYS[1],
        )
    for option in ("database", "individual"):
        if not getattr(keys, option):
            raise InvalidInputError(f"--{option} must name the key columns of {table}")
    if table != DEMO and not _is_there(table):
        raise InvalidInputError(
            f"the table {table} of the audit is not there: give --table with where it is now"
        )
    source = load_cdnow_weeks() if table == DEMO else table
    databases = Databases.from_table(source, **asdict(keys))
    return databases.respond(parse(str(audit.settings["query"])), progressbar=progressbar)


def table_of(audit: Audit, beside: Path | None = None) -> str | None:
    """Return the table that the command line noted in an audit: "demo", or where it is now.

    An audit holds the name alone. It is looked for in the working directory, in the folder of the
    audit and in the one above; whether it is the same table, its fingerprint will tell.

    Raises
    ------
    InvalidInputError
        If there is no such file.
    """
    name = source_of(audit).get("table")
    if name is None or name == DEMO:
        return name
    folders = [Path()] if beside is None else [Path(), beside.parent, beside.parent / ".."]
    for folder in folders:
        if _is_there(str(folder / name)):
            return str(folder / name)
    raise InvalidInputError(
        f"the table {name} of the audit is not there, neither in the working directory nor beside "
        "the audit: give --table with where it is now"
    )


def _is_there(table: str) -> bool:
    """Return whether a table is a file or a folder, matches some, or lies in a remote place."""
    from edp_bayes.tables.several_files import matches

    return "://" in table or Path(table).exists() or bool(matches(table))


def source_of(audit: Audit) -> dict[str, Any]:
    """Return the table, key columns and periods that the command line noted in an audit."""
    return dict(json.loads(audit.tree.attrs.get("source", "{}")))
