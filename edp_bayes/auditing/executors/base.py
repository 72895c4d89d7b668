"""What every executor takes and gives, and how one is found for what a user has."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from edp_bayes.auditing.evaluation import TOP, BlockRisks, estimated, evaluate_block
from edp_bayes.auditing.integral_errors import BlockErrors
from edp_bayes.exceptions import InputTypeError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index

__all__ = ["AnyWork", "Runner", "Work", "in_order", "running", "under_way"]

# Blocks under way for each worker; more where little comes back, so that none waits for a long one.
AHEAD = 2
FEW_NUMBERS = 2**15


@dataclass(frozen=True, eq=False)
class Work:
    """What is to be evaluated.

    Attributes
    ----------
    coupling : Coupling
        The fit, of one query or of several; None elsewhere.
    epsilon : ndarray
        Shape (epsilon,).
    copies : ndarray or None
        Shape (draw,): an individual of each draw, see `edp_bayes.auditing.evaluation`.
    keep_curves : bool
        Whether risks of all draws are kept, where that costs nothing.
    """

    coupling: Any
    epsilon: Array
    copies: Index | None = None
    keep_curves: bool = False

    def evaluate(self, members: Index) -> BlockRisks:
        """Evaluate a block here."""
        return evaluate_block(
            self.coupling, members, self.epsilon, copies=self.copies, keep_curves=self.keep_curves
        )

    def evaluate_part(self, coupling: Any, members: Index) -> BlockRisks:
        """Evaluate a block of which the coupling is a part of the whole."""
        places = None
        if self.copies is not None:
            at = np.searchsorted(members, self.copies).clip(max=members.size - 1)
            places = np.where(members[at] == self.copies, at, -1)
        found = evaluate_block(coupling, np.arange(members.size), self.epsilon, copies=places)
        # positions among the members become those among all
        return replace(found, who=np.where(found.top > 0.0, members[found.who], 0))

    @property
    def numbers(self) -> int:
        """Numbers that come back for each block, but for those of each individual."""
        each = 2 * TOP + 3
        if estimated(self.coupling):
            each += BlockErrors.zeros(0, 0, 0).numbers
        return int(self.coupling.n_draws) * self.epsilon.size * each


class AnyWork(Protocol):
    """What is to be evaluated: individuals (`Work`), or cells of a table."""

    @property
    def coupling(self) -> Any:
        """The fit; None elsewhere."""
        ...

    @property
    def numbers(self) -> int:
        """Numbers that come back for each block, but for those of each individual."""
        ...

    def evaluate(self, members: Index) -> Any:
        """Evaluate a block here."""
        ...

    def evaluate_part(self, coupling: Any, members: Index) -> Any:
        """Evaluate a block of which the coupling is a part of the whole."""
        ...


class Runner(Protocol):
    """Evaluates blocks of individuals somewhere."""

    def __call__(self, work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
        """Yield what is found of every block, in their order."""
        ...


class Future(Protocol):
    """What is being evaluated."""

    def result(self) -> Any:
        """Wait for it."""
        ...

    def cancel(self) -> Any:
        """Leave it."""
        ...


def under_way(work: AnyWork, workers: int) -> int:
    """Return how many blocks are under way: some wait for the first, none for work."""
    return max(AHEAD * workers, FEW_NUMBERS // work.numbers)


def in_order[T](
    submit: Callable[[Index], Future], blocks: Sequence[Index], ahead: Callable[[], int]
) -> Iterator[Any]:
    """Yield results in the order of the blocks, no more than so many of which are under way."""
    waiting: deque[Future] = deque()
    try:
        for members in blocks:
            waiting.append(submit(members))
            if len(waiting) >= ahead():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def running(executor: Any) -> Iterator[Runner]:
    """Give what evaluates blocks by an executor of the user's; by this thread if that is None.

    Raises
    ------
    InputTypeError
        If it is none that is known.
    InvalidInputError
        If it is a number below 1, a cluster that cannot be used, or a package is missing.
    ExecutorError
        If nobody answers at an address.
    """
    if isinstance(executor, str):
        from edp_bayes.auditing.executors import on_dask, on_spark

        where = on_dask if executor.startswith(on_dask.PROTOCOLS) else on_spark
        with where.connected(executor) as found:
            yield _runner(found)
    else:
        yield _runner(executor)


def _runner(executor: Any) -> Runner:
    from edp_bayes.auditing.executors import local, on_dask, on_spark

    if executor is None:
        return local.here
    if isinstance(executor, int | np.integer) and not isinstance(executor, bool):
        return local.Threads(validate.positive_integer(executor, "executor"))
    if isinstance(executor, Executor):
        return local.Pool(executor)
    if on_dask.is_client(executor):
        return on_dask.Dask(executor)
    if on_spark.is_session(executor):
        return on_spark.Spark(executor)
    raise InputTypeError(
        "executor must be a number of threads, an executor of concurrent.futures, a "
        "distributed.Client (edp_bayes[dask]), a SparkSession (edp_bayes[spark]) or the address of "
        f"one, found {type(executor).__name__}"
    )
