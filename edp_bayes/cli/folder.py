"""The folder of results: audit, table, plots and report, each complete or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import files, leftovers
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection
    from rich.console import Console

    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.composition import ComposedAudit
    from edp_bayes.results.query import Audit

__all__ = [
    "RESULTS",
    "composed_name",
    "local_files",
    "published_name",
    "refuse_overwriting",
    "remove_unfinished",
    "require_writable",
    "store_found",
    "write",
    "write_table",
]

RULES, REMEDIES = "rules.csv", "remedies.csv"
CELLS = ("cells.csv", "cells.parquet")
CELLS_STORE = "cells.jsonl"
RESOLUTION = 160


def local_files(table: str | None) -> list[Path]:
    """Return the files or the folder of this machine that a table is read from."""
    from edp_bayes.tables.several_files import matches

    if table is None or "://" in table:
        return []
    return [Path(path) for path in matches(table)] or [Path(table)]


def refuse_overwriting(results: Iterable[Path], sources: Iterable[Path]) -> None:
    """Refuse a result whose file, however it is spelt, is one that the run reads or would read."""
    read = {source.resolve(): source for source in sources}
    for result in results:
        place = result.resolve()
        for resolved, source in read.items():
            # The folder audit.zarr would go with all that is in it.
            if place == resolved or place in resolved.parents:
                raise InvalidInputError(
                    f"the result {result} would overwrite {source}, which is read: "
                    "results must have another name or folder"
                )
            if resolved in place.parents and resolved.is_dir():
                raise InvalidInputError(
                    f"the result {result} would lie in {source}, of which all files are read: "
                    "results must have another folder"
                )


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written or made, before any long work; nothing is made yet."""
    places = (folder.absolute(), *folder.absolute().parents)
    nearest = next(place for place in places if os.path.lexists(place))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise InvalidInputError(
            f"the folder {folder} cannot be written: {error.strerror or error}"
        ) from None


def remove_unfinished(results: Iterable[Path], console: Console) -> None:
    """Remove what killed runs left of these results, and say so in a line."""
    places: dict[Path, list[str]] = {}
    for path in results:
        places.setdefault(path.parent, []).append(path.name)
    for place, names in places.items():
        if count := leftovers.remove_leftovers(place, names):
            several = "s" if count > 1 else ""
            console.print(
                f"Removed from {place}: {count} unfinished file{several} of a killed run."
            )


def store_found(store: Path, *, resume: bool) -> str:
    """Return what to say of a store that is there before the run; empty where there is none."""
    if not store.is_dir():
        return ""
    if resume:
        count = len(list(store.glob("block-*.npz")))
        return f"Continued from {store}: {count} blocks of individuals are finished."
    return f"{store} is of a run that did not end: --resume continues it."


def write(
    audit: Audit,
    folder: Path,
    *,
    prob: float,
    zarr: bool,
    show: bool,
    report: Path | None = None,
    reported: Audit | None = None,
    report_names: bool = False,
    target: tuple[float, float] | None = None,
    releases: ComposedAudit | None = None,
    rules: pd.DataFrame | None = None,
) -> list[Path]:
    """Write the audit, its summary, its plots and, where asked for, a report; return the files.

    Results of an earlier run in the folder are removed once the audit is saved.

    Parameters
    ----------
    audit : Audit
        What to write.
    folder : Path
        Where to.
    prob : float
        Probability of every interval and band.
    zarr : bool
        Zarr instead of NetCDF.
    show : bool
        Show progress.
    report : Path, optional
        HTML file of the report.
    reported : Audit, optional
        What it is of, where that is not the audit: what is published of the answer.
    report_names : bool
        Names rather than pseudonyms in it.
    target : tuple of float, optional
        Epsilon and delta that its verdict answers.
    releases : ComposedAudit, optional
        Several releases together, for the first page of the report.
    rules : DataFrame, optional
        Customary rules that the answers were held to, for the report.
    """
    saved = "audit.zarr" if zarr else "audit.nc"
    paths: dict[Path, Callable[[Path], object]] = {folder / saved: audit.save}
    for name, make in MADE.items():
        paths[folder / name] = partial(make, audit, prob)
    if report is not None:
        epsilon, delta = target or (None, None)
        shown = audit if reported is None else reported
        paths[report] = lambda path: shown.report(
            path,
            epsilon=epsilon,
            delta=delta,
            prob=prob,
            names=report_names,
            releases=releases,
            rules=rules,
        )
    older = {*paths, *(folder / name for name in RESULTS)} - {folder / saved}
    for path in track(paths, "Files", total=len(paths), show=show):
        paths[path](path)
        if path == folder / saved:
            _remove(older)
    return list(paths)


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV, complete or not at all; return the file."""
    with files.replaced(path) as temporary:
        table.to_csv(temporary)
    return path


def composed_name(*, zarr: bool) -> str:
    """Return what the releases of several fresh databases are saved as."""
    return "releases.zarr" if zarr else "releases.nc"


def published_name(*, zarr: bool) -> str:
    """Return what the audit of a rounded, binned or suppressed answer is saved as."""
    return "published.zarr" if zarr else "published.nc"


def _remove(older: Iterable[Path]) -> None:
    """Remove the results of an earlier run: an interrupted one must leave no mixture of both."""
    for path in older:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def write_summary(result: PrivacyCurves, prob: float, path: Path) -> None:
    """Write the table of a result as CSV, and beside every number 1 if a check withholds it."""
    # no truth value, so that all columns are numbers
    table = result.summary(ci_prob=prob).assign(withheld=int(result.withheld is not None))
    with files.replaced(path) as temporary:
        table.to_csv(temporary, index_label="quantity")


def _plot(draw: Callable[[], PlotCollection], path: Path) -> None:
    """Draw off screen, in one style whatever the user's own configuration."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    with plt.style.context("default"), files.replaced(path) as temporary:
        collection = draw()
        collection.savefig(temporary, dpi=RESOLUTION)
        plt.close(collection.get_viz("figure"))


MADE: dict[str, Callable[[Audit, float, Path], object]] = {
    "summary.csv": write_summary,
    "delta.png": lambda audit, prob, path: _plot(lambda: audit.plot_delta(ci_prob=prob), path),
    "total_risk.png": lambda audit, prob, path: _plot(
        lambda: audit.plot_total_risk(ci_prob=prob), path
    ),
    "density.png": lambda audit, prob, path: _plot(lambda: audit.plot_density(ci_prob=prob), path),
    "individuals.png": lambda audit, prob, path: _plot(
        lambda: audit.plot_individuals(ci_prob=prob), path
    ),
}
# Names of the results of an audit in its folder, of which either of the first two is there.
RESULTS = (
    *("audit.nc", "audit.zarr", *MADE),
    *("releases.nc", "releases.zarr", "published.nc", "published.zarr", RULES, REMEDIES, *CELLS),
)
