"""The audit of every cell of a table, from the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from edp_bayes.cli import folder, report
from edp_bayes.cli.answering import exit_code, write_record
from edp_bayes.cli.failing import refuse_interrupted
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    from rich.console import Console

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.cli.run import Run
    from edp_bayes.responses.databases import Databases

__all__ = ["audit_table"]


def audit_table(
    databases: Databases, adversary: Adversary | None, run: Run, console: Console, *, show: bool
) -> int:
    """Audit every cell, print the worst and write the table; return the exit code."""
    from edp_bayes.auditing.cells import audit_cells

    if len(run.query) > 1:
        raise InvalidInputError("--by is for one query: give --query once")
    epsilon, delta = run.target or (None, None)
    with _workers(run.where) as workers:
        found = audit_cells(
            databases,
            run.query[0],
            by=run.by,
            epsilon=run.epsilon,
            delta=delta,
            target_epsilon=epsilon,
            adversary=adversary,
            published=run.published,
            rules=run.rules,
            prob=PROB,
            executor=workers,
            store=run.out / folder.CELLS_STORE if run.resume else None,
            progressbar=show,
            keep=run.keep,
            **run.sampling,
        )
    refuse_interrupted()
    if run.release is not None:
        found = found.with_release(run.release)
    report.print_cells(found, console)
    run.out.mkdir(parents=True, exist_ok=True)
    written = [found.save(run.out / name) for name in folder.CELLS]
    console.print(f"\nWritten to {run.out}: {', '.join(path.name for path in written)}.")
    if run.json is not None:
        console.print(f"Record: {write_record(found.record(), run.json)}")
    if run.report is not None:
        console.print(f"Report: {found.report(run.report)}")
    return exit_code(found.statuses, check=run.check)


@contextmanager
def _workers(where: int | str | None) -> Iterator[Any]:
    """Give what audits cells: processes of this machine, one a core, or what an address names."""
    from numba import get_num_threads

    count = get_num_threads() if where is None else where
    if count == 1 or isinstance(count, str):
        yield None if count == 1 else count
        return
    with ProcessPoolExecutor(count, get_context("spawn"), _leave_interrupts) as pool:
        yield pool


def _leave_interrupts() -> None:
    """Leave an interrupt to the first process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
