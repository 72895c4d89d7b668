"""Blocks of individuals on the workers of a Dask cluster."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edp_bayes.auditing.executors.base import AnyWork, in_order, under_way
from edp_bayes.auditing.executors.worker import Shipment, received, task
from edp_bayes.exceptions import ExecutorError, InvalidInputError
from edp_bayes.utils.arrays import Index

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["PROTOCOLS", "Dask", "connected", "is_client"]

# Of the addresses of schedulers.
PROTOCOLS = ("tcp://", "tls://", "ucx://", "ws://", "wss://")


def is_client(executor: object) -> bool:
    """Return whether that is a client of Dask; a user of one has imported its package."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Client

    return isinstance(executor, Client)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Give a client of the scheduler at an address.

    Raises
    ------
    InvalidInputError
        If the package is missing.
    ExecutorError
        If no scheduler answers.
    """
    try:
        import distributed
    except ImportError:
        raise InvalidInputError(
            f"executor {address} needs the distributed package: install edp_bayes[dask]"
        ) from None
    try:
        connect: Any = distributed.Client
        client: Client = connect(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ExecutorError(f"no scheduler of Dask answers at {address}: {error}") from None
    with client:
        yield client


@dataclass(frozen=True)
class Dask:
    """The workers of a client. What they lose with one of them is evaluated again by others."""

    client: Client

    def __post_init__(self) -> None:
        if self.client.asynchronous:
            raise InvalidInputError("executor must be a Client that is not asynchronous")
        if self.client.status != "running":
            raise InvalidInputError(
                f"executor must be a Client with a connection, found one that is "
                f"{self.client.status}"
            )

    def __call__(self, work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
        """Yield what is found of every block, in their order."""
        from distributed import CancelledError, KilledWorker

        load, client = Shipment(work), self.client
        with warnings.catch_warnings():
            # Bytes in a task, unlike those scattered, are there again once a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            shared = client.submit(_same, load.shared, pure=False)
        run = task()
        threads: Any = client.nthreads

        def submit(members: Index) -> Any:
            return client.submit(run, shared, load.block(members), pure=False)

        def ahead() -> int:
            total: int = sum(threads().values())
            return under_way(work, max(1, total))

        try:
            yield from map(received, in_order(submit, blocks, ahead))
        except KilledWorker as error:
            raise ExecutorError(
                f"workers of Dask were lost again and again over the same block ({error}), as "
                "happens where memory runs out: give workers more memory or fewer threads; with "
                "store= (--resume) finished blocks are kept"
            ) from None
        except (CancelledError, OSError) as error:
            raise ExecutorError(
                f"the scheduler of Dask was lost ({error}): with store= (--resume) finished "
                "blocks are kept, and the same audit continues"
            ) from None


def _same(shared: bytes) -> bytes:
    return shared
