"""Blocks of individuals on this machine: one after the other, in threads, or in a user's pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from edp_bayes.auditing.executors.base import AnyWork, in_order, under_way
from edp_bayes.exceptions import ExecutorError
from edp_bayes.utils.arrays import Index

__all__ = ["Pool", "Threads", "here"]

# Of a pool that does not say how many workers it has.
UNKNOWN = 8


def here(work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
    """Evaluate one block after the other, each in Numba's threads."""
    return map(work.evaluate, blocks)


@dataclass(frozen=True)
class Threads:
    """So many threads, each with a block of its own."""

    count: int

    def __call__(self, work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
        """Yield what is found of every block, in their order."""
        with ThreadPoolExecutor(self.count) as pool:
            yield from Pool(pool)(work, blocks)


@dataclass(frozen=True)
class Pool:
    """An executor of `concurrent.futures`, or of a library that follows it."""

    executor: Executor

    def __call__(self, work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
        """Yield what is found of every block, in their order."""
        submit, read = self._ways(work)
        workers = int(getattr(self.executor, "_max_workers", UNKNOWN))
        try:
            yield from map(read, in_order(submit, blocks, lambda: under_way(work, workers)))
        except BrokenExecutor as error:
            raise ExecutorError(
                f"a worker process was lost ({error}), as happens where memory runs out: audit "
                "again with fewer workers; with store= (--resume) finished blocks are kept"
            ) from None

    def _ways(self, work: AnyWork) -> tuple[Callable[[Index], Future[Any]], Callable[[Any], Any]]:
        """Return how a block is sent and how what comes back is read."""
        if isinstance(self.executor, ThreadPoolExecutor):
            return lambda members: self.executor.submit(_in_one_thread, work, members), _as_it_is
        from edp_bayes.auditing.executors.worker import Shipment, evaluate, received

        load = Shipment(work)
        return (
            lambda members: self.executor.submit(evaluate, load.shared, load.block(members)),
            received,
        )


def _as_it_is(found: Any) -> Any:
    return found


def _in_one_thread(work: AnyWork, members: Index) -> Any:
    from edp_bayes.auditing.executors.worker import one_thread

    with one_thread():
        return work.evaluate(members)
