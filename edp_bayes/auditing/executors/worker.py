"""What a worker does elsewhere: unpack a block, evaluate it in one thread, send what was found.

The function that is sent holds nothing of this package, so that a worker which lacks it, or has
another version, can say so.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from edp_bayes.auditing.executors.base import AnyWork
from edp_bayes.coupling.views.some_individuals import Common, Packed, unpack
from edp_bayes.exceptions import ExecutorError
from edp_bayes.utils.arrays import Index

__all__ = ["Shipment", "Task", "evaluate", "one_thread", "received", "task"]

# Takes what all blocks share and what one needs, and returns what was found, or why not.
Task = Callable[[bytes, bytes], bytes | str]


class Shipment:
    """Work as bytes: what all blocks share, and what each of them needs besides."""

    def __init__(self, work: AnyWork) -> None:
        self._packed = Packed(work.coupling)
        rest = replace(work, coupling=None)  # type: ignore[type-var]
        self.shared = pickle.dumps((self._packed.shared, rest))

    def block(self, members: Index) -> bytes:
        """Return what else a block needs."""
        return pickle.dumps((members, self._packed.part(members)))


def task() -> Task:
    """Return the function that is sent to workers."""
    from edp_bayes import __version__

    version = __version__

    def work(shared: bytes, block: bytes) -> bytes | str:
        import platform

        here = f"worker {platform.node()}"
        try:
            import edp_bayes
            from edp_bayes.auditing.executors import worker
        except ImportError as error:
            return f"{here} cannot import edp_bayes ({error}): install edp_bayes=={version} there"
        if edp_bayes.__version__ != version:
            return (
                f"{here} has edp_bayes {edp_bayes.__version__}, which may give other numbers: "
                f"install edp_bayes=={version} there"
            )
        return worker.evaluate(shared, block)

    return work


def evaluate(shared: bytes, block: bytes) -> bytes:
    """Evaluate a block, in one thread."""
    common, work = _unpacked(shared)
    members, part = pickle.loads(block)
    coupling = unpack(common, part)
    with one_thread():
        return pickle.dumps(work.evaluate_part(coupling, members))


def received(found: bytes | str) -> Any:
    """Return what a worker found, or raise why it did not.

    Raises
    ------
    ExecutorError
        If the worker lacks this version of the package.
    """
    if isinstance(found, str):
        raise ExecutorError(found)
    return pickle.loads(found)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let compiled functions that this thread calls use no further threads."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@lru_cache(maxsize=1)
def _unpacked(shared: bytes) -> tuple[list[Common], AnyWork]:
    common, work = pickle.loads(shared)
    return pickle.loads(common), work
