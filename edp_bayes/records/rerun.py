"""Leave-one-out responses of any callable, by running it again without each individual."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.ownership import Records
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.progress import track

BLOCK = 64

Function = Callable[..., Any]
Block = tuple[int, Index]


def rerun(
    function: Function,
    records: Records,
    *,
    samples: int | None = None,
    random_seed: int | None = None,
    workers: int | None = None,
    progressbar: bool = True,
) -> tuple[Array, Array]:
    """Return responses and contributions of a callable, run once for each pair and database.

    Parameters
    ----------
    function : callable
        Takes one database as a dataframe of the user's own library and returns a number; with
        `samples` it takes a `numpy.random.Generator` as a second argument. It is called from
        several threads unless `workers` is 1.
    records : Records
        All records.
    samples : int, optional
        Samples of a randomised query for each database (Burchard et al. 2020, Definition 2).
    random_seed : int, optional
        Seed of the randomised query. Sample k of database j has its own stream, the same with
        and without every individual and whatever the number of workers.
    workers : int, optional
        Threads; by default one for each processor.
    progressbar : bool
        Show progress where it takes longer than two seconds.

    Returns
    -------
    response : ndarray
        Shape (n * samples,).
    contribution : ndarray
        Shape (pair, samples).

    Raises
    ------
    InvalidInputError
        If the callable fails or returns a value that is not finite; names the database and
        individual.
    InputTypeError
        If it returns anything but a number.
    """
    owners = records.owners
    runner = _Runner(function, records, _streams(samples, random_seed))
    per_database = 1 if samples is None else samples
    response = np.empty((owners.databases.size, per_database))
    without = np.empty((owners.pair_database.size, per_database))
    blocks = list(_blocks(owners.pair_database, owners.databases.size))
    threads = _workers(workers)
    results = _run(runner, blocks, threads)
    for (database, pairs), values in track(
        results, "leave-one-out responses", total=len(blocks), show=progressbar
    ):
        if pairs.size:
            without[pairs] = values
        else:
            response[database] = values[0]
    return response.ravel(), response[owners.pair_database] - without


@dataclass(frozen=True)
class _Runner:
    """One callable on one block: a whole database, or it without each of a few individuals."""

    function: Function
    records: Records
    streams: Callable[[int], Iterable[np.random.SeedSequence | None]]

    def __call__(self, block: Block) -> Array:
        database, pairs = block
        owners = self.records.owners
        rows = owners.rows(database)
        if not pairs.size:
            return np.array([self._values(database, rows, None)])
        owner = owners.individual[rows]
        individuals = owners.pair_individual[pairs]
        return np.array([self._values(database, rows[owner != i], i) for i in individuals])

    def _values(self, database: int, rows: Index, individual: int | None) -> list[float]:
        return [
            self._value(database, rows, individual, stream) for stream in self.streams(database)
        ]

    def _value(
        self,
        database: int,
        rows: Index,
        individual: int | None,
        stream: np.random.SeedSequence | None,
    ) -> float:
        # Every call gets a frame of its own: a callable may change what it is given.
        frame = self.records.frame[rows].to_native()
        arguments = (frame,) if stream is None else (frame, np.random.default_rng(stream))
        try:
            result = self.function(*arguments)
        except Exception as error:
            hint = (
                "; a query that takes a generator needs samples=" if self._wants_rng(stream) else ""
            )
            raise InvalidInputError(
                f"the query failed on {self._where(database, individual)}: "
                f"{type(error).__name__}: {error}{hint}"
            ) from error
        return self._number(result, database, individual)

    def _wants_rng(self, stream: np.random.SeedSequence | None) -> bool:
        """Return whether the callable needs a second argument that it is not given."""
        if stream is not None:
            return False
        try:
            inspect.signature(self.function).bind(None)
        except (TypeError, ValueError):
            return True
        return False

    def _number(self, result: Any, database: int, individual: int | None) -> float:
        plain = result.as_py() if hasattr(result, "as_py") else result
        array = np.asarray(plain)
        if array.ndim or array.dtype.kind not in labels.NUMERIC_KINDS:
            raise InputTypeError(
                f"the query must return one number, found {type(result).__name__} on "
                f"{self._where(database, individual)}"
            )
        number = float(array)
        if not np.isfinite(number):
            raise InvalidInputError(
                f"the query must return a finite number, found {number} on "
                f"{self._where(database, individual)}"
            )
        return number

    def _where(self, database: int, individual: int | None) -> str:
        owners = self.records.owners
        whole = f"database {labels.show(owners.databases[database])}"
        if individual is None:
            return whole
        return f"{whole} without individual {labels.show(owners.individuals[individual])}"


def _streams(
    samples: int | None, random_seed: int | None
) -> Callable[[int], Iterable[np.random.SeedSequence | None]]:
    """Return the seeds of a database's samples; a single None where the query has no chance."""
    if samples is None:
        return lambda database: (None,)
    entropy = np.random.SeedSequence(random_seed).entropy
    return partial(_seeds, entropy, samples)


def _seeds(entropy: Any, samples: int, database: int) -> list[np.random.SeedSequence | None]:
    return [np.random.SeedSequence(entropy, spawn_key=(database, k)) for k in range(samples)]


def _blocks(pair_database: Index, n_databases: int) -> Iterator[Block]:
    """Yield every whole database first, so that a faulty query fails early, then the pairs."""
    for database in range(n_databases):
        yield database, np.empty(0, dtype=np.int64)
    order = np.argsort(pair_database, kind="stable")
    ends = np.cumsum(np.bincount(pair_database, minlength=n_databases))
    for database, pairs in enumerate(np.split(order, ends[:-1])):
        for start in range(0, pairs.size, BLOCK):
            yield database, pairs[start : start + BLOCK]


def _workers(workers: int | None) -> int:
    if workers is None:
        return os.cpu_count() or 1
    return validate.positive_integer(workers, "workers")


def _run(runner: _Runner, blocks: list[Block], workers: int) -> Iterator[tuple[Block, Array]]:
    if workers == 1:
        for block in blocks:
            yield block, runner(block)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        futures: dict[Future[Array], Block] = {pool.submit(runner, b): b for b in blocks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)
