"""Options as text, and what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edp_bayes.models.base import DensityModel
    from edp_bayes.records.query import Query

__all__ = ["Run", "columns", "parse_epsilon", "parse_model"]

# Digits kept of a spaced grid, so that 0.3 is not 0.30000000000000004.
DIGITS = 12
MOST_EPSILONS = 10_000


@dataclass(frozen=True)
class Run:
    """Everything that a run was asked for.

    Attributes
    ----------
    query : Query
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
    sampler, draws, tune, chains, keep, seed, target_accept
        As for `edp_bayes.audit`; None takes what is usual.
    zarr, quiet : bool
        Save to Zarr; print nothing.
    """

    query: Query
    epsilon: NDArray[np.float64]
    model: DensityModel
    out: Path
    names: tuple[str, ...] = ()
    sampler: str | None = None
    draws: int = 500
    tune: int = 1000
    chains: int = 4
    keep: int = 10
    seed: int | None = None
    target_accept: float | None = None
    zarr: bool = False
    quiet: bool = False
    report: Path | None = None
    report_names: bool = False

    @property
    def nuts(self) -> dict[str, Any]:
        """Arguments for NUTS alone."""
        return {} if self.target_accept is None else {"target_accept": self.target_accept}

    @classmethod
    def parse(
        cls,
        *,
        query: str,
        epsilon: str,
        out: Path,
        model: str = "dpm",
        sampler: str | None = None,
        kernel: str | None = None,
        names: tuple[str, ...] = (),
        draws: int = 500,
        tune: int = 1000,
        chains: int = 4,
        keep: int = 10,
        seed: int | None = None,
        target_accept: float | None = None,
        zarr: bool = False,
        quiet: bool = False,
        report: Path | None = None,
        report_names: bool = False,
        table: Path | None = None,
    ) -> Self:
        """Return a run from its options, refusing all that can be refused without the data.

        The table is what will be read, if it is a file: no result may take its place.
        """
        from edp_bayes.cli.folder import RESULTS, refuse_overwriting, require_writable
        from edp_bayes.queries import parse
        from edp_bayes.utils import validate
        from edp_bayes.utils.files import require_zarr

        if report_names and report is None:
            raise InvalidInputError("--report-names is for a report: give --report with its file")
        if zarr:
            require_zarr("--zarr")
        if target_accept is not None:
            validate.probability(target_accept, "--target-accept")
            from edp_bayes.models.sampling import NUTS

            if sampler not in NUTS and (sampler is not None or kernel in (None, "gaussian")):
                raise InvalidInputError(
                    f"--target-accept is for --sampler {' and '.join(NUTS)}, found "
                    f"{sampler or 'no --sampler'}"
                )
        grid, distribution, asked = parse_epsilon(epsilon), parse_model(model, kernel), parse(query)
        named = [out / name for name in RESULTS]
        reports = [] if report is None else [report]
        if table is not None:
            refuse_overwriting([*named, *reports], [table])
        for path in reports:
            _require_report(path, named)
        require_writable(out)
        for path in reports:
            require_writable(path.parent)
        return cls(
            query=asked,
            epsilon=grid,
            model=distribution,
            out=out,
            names=names,
            sampler=sampler,
            draws=draws,
            tune=tune,
            chains=chains,
            keep=keep,
            seed=seed,
            target_accept=target_accept,
            zarr=zarr,
            quiet=quiet,
            report=report,
            report_names=report_names,
        )


def _require_report(report: Path, others: Iterable[Path]) -> None:
    """Refuse a report that is a folder, or one of the other results, or within one."""
    if report.is_dir():
        raise InvalidInputError(f"--report must name a file, {report} is a folder")
    place = report.resolve()
    for other in others:
        if other.resolve() in (place, *place.parents):
            raise InvalidInputError(
                f"--report must have a name of its own, found {report}, where {other.name} is "
                "written; report.html would do"
            )


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


def parse_model(text: str, kernel: str | None) -> DensityModel:
    """Return the density model that dpm, finite:K or bootstrap stands for.

    Raises
    ------
    InvalidInputError
        If it is none of these, K is no positive integer or the kernel is unknown.
    """
    from edp_bayes.models import (
        DirichletProcessMixture,
        FiniteMixture,
        SmoothedBootstrap,
    )

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
    return model if kernel is None else replace(model, kernel=kernel)
