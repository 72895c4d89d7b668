"""Blocks of individuals in the tasks of a Spark session, classic or Connect."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from edp_bayes.auditing.executors.base import AnyWork
from edp_bayes.auditing.executors.worker import Shipment, received, task
from edp_bayes.exceptions import ExecutorError, InvalidInputError
from edp_bayes.utils.arrays import Index

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["Spark", "connected", "is_session", "waves"]

# Of the blocks under way: bytes that the driver sends and collects, and their number.
MOST_BYTES, MOST_BLOCKS = 2**29, 512
PORT, PATIENCE = 15002, 20.0  # of Spark Connect by default; seconds
ADDRESS = re.compile(r"sc://|spark://|k8s://|(local(-cluster)?(\[.*\])?|yarn)$")


def is_session(executor: object) -> bool:
    """Return whether that is a Spark session of either kind."""
    return any(
        kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.")
        for kind in type(executor).__mro__
    )


@contextmanager
def connected(address: str) -> Iterator[SparkSession]:
    """Give a session at an address: of Spark Connect if it begins with sc://, or of a master.

    Raises
    ------
    InvalidInputError
        If it is no address, or the package or Java is missing.
    ExecutorError
        If nobody answers.
    """
    if not ADDRESS.match(address):
        raise InvalidInputError(
            "executor must be a number of threads or an address of Dask (tcp://scheduler:8786) or "
            f"Spark (sc://server:15002, local[2]), found {address!r}"
        )
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInputError(
            f"executor {address} needs the pyspark package: install edp_bayes[spark]"
        ) from None
    remote = address.startswith("sc://")
    if remote:
        _require_answer(address)
    else:
        _require_java(address)
    builder: Any = SparkSession.builder
    if address.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with _without_warnings_of_pandas():
            session = (builder.remote if remote else builder.master)(address).getOrCreate()
    except PySparkException as error:
        if "JAVA" in str(error.getCondition()):
            raise _no_java(address, "which did not start") from None
        raise ExecutorError(f"no Spark at {address}: {_first_line(error)}") from None
    except ImportError as error:
        raise InvalidInputError(
            f"executor {address} needs what edp_bayes[spark] installs: {error}"
        ) from None
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _without_warnings_of_pandas() -> Iterator[None]:
    """Leave out what Spark says of the version of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _require_answer(address: str) -> None:
    """Refuse a server of Spark Connect that does not answer: PySpark would try for minutes."""
    place = urlsplit(address)
    host, port = place.hostname or "localhost", place.port or PORT
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except OSError as error:
        raise ExecutorError(
            f"no Spark at {address}: {host}:{port} does not answer ({_first_line(error)})"
        ) from None


def _require_java(address: str) -> None:
    """Refuse a session of our own where PySpark would find no Java to start it with."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=os.path.join(home, "bin")) is None:
        raise _no_java(address, f"and there is no bin/java in JAVA_HOME, {home}")
    if not home and shutil.which("java") is None:
        raise _no_java(address, "which was not found")


def _no_java(address: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"executor {address} needs Java, {why}: install OpenJDK 17 and set JAVA_HOME, or give the "
        "address of a Spark Connect server, sc://..."
    )


@dataclass(frozen=True)
class Spark:
    """The executors of a session; each block is a task, and Spark repeats those that are lost."""

    session: SparkSession

    def __call__(self, work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
        """Yield what is found of every block, in their order."""
        load = Shipment(work)
        run = _over_rows(load.shared)
        for parts in waves(work, map(load.block, blocks)):
            yield from map(received, self._collected(run, parts))

    def _collected(self, run: Any, parts: list[bytes]) -> Iterable[bytes | str]:
        """Return what is found of some blocks, each in a task of its own."""
        import pyarrow as pa
        from pyspark.errors import PySparkException

        rows = pa.table({"block": list(range(len(parts))), "part": pa.array(parts, pa.binary())})
        schema = "block long, found binary, refusal string"
        try:
            with _without_warnings_of_pandas():
                frame = self.session.createDataFrame(rows).repartition(len(parts))
                found = frame.mapInArrow(run, schema).toArrow()
        except (PySparkException, OSError) as error:
            raise _failed(str(error)) from None
        return [row["refusal"] or row["found"] for row in found.sort_by("block").to_pylist()]


def waves(work: AnyWork, parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield blocks by as many as the driver sends and collects at once."""
    each = 8 * work.numbers
    wave: list[bytes] = []
    held = 0
    for part in parts:
        size = each + len(part)
        if wave and (held + size > MOST_BYTES or len(wave) == MOST_BLOCKS):
            yield wave
            wave, held = [], 0
        wave.append(part)
        held += size
    if wave:
        yield wave


def _over_rows(shared: bytes) -> Any:
    """Return the function that Spark calls on the rows of a task."""
    run = task()

    def evaluated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for row in batch.to_pylist():
                found = run(shared, row["part"])
                refused = isinstance(found, str)
                columns = {
                    "block": pa.array([row["block"]], pa.int64()),
                    "found": pa.array([None if refused else found], pa.binary()),
                    "refusal": pa.array([found if refused else None], pa.string()),
                }
                yield pa.RecordBatch.from_pydict(columns)

    return evaluated


def _failed(said: str) -> ExecutorError:
    """Return what to say of a job that failed, by what was raised in the worker if it was there."""
    from edp_bayes import __version__

    raised = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception): .*", said, re.MULTILINE)
    words = raised[-1] if raised else _first_line(said)
    if "No module named" in words:
        return ExecutorError(
            f"a worker of Spark lacks a package ({words}): install edp_bayes=={__version__} for "
            "the Python that PYSPARK_PYTHON names"
        )
    return ExecutorError(
        f"Spark could not evaluate the individuals ({words}): with store= (--resume) finished "
        "blocks are kept, and the same audit continues"
    )


def _first_line(text: object) -> str:
    return str(text).strip().partition("\n")[0]
