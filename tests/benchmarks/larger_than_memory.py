"""Records in Parquet files, grouped within 8 GB, beside the engine's own group-by.

``uv run python -m tests.benchmarks.larger_than_memory [MILLIONS OF RECORDS] [FOLDER] [CASE ...]``

A case is "engine", a query, or a query and how many individuals' contributions are collected, such
as "sum:amount collect=10000". The process is told that it has 8 GB, and ended if it ever holds
more. Address space that is reserved and not used, of which DuckDB and the compiled code have
several GB, does not count.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.benchmarks.__main__ import machine

DATABASES, INDIVIDUALS, PER_PAIR = 78, 300_000, 5
LIMIT = 8_000_000_000
BLOCK = 1_000_000
CASES = (
    "engine",
    "count",
    "sum:amount",
    "sum:amount collect=10000",
    "mean:amount",
    "proportion:amount>=30",
    "variance:amount",
    "slope:amount:client",
    "quantile:amount:0.5",
)


def write(folder: Path, millions: int) -> None:
    """Write files of a million records each, in no order of their pairs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = millions * BLOCK // PER_PAIR
    for block in range(millions):
        rng = np.random.default_rng([1, block])
        # Pairs without repetition: a multiplication modulo all of them is a permutation.
        chosen = rng.integers(pairs, size=BLOCK) * 7_919 % (DATABASES * INDIVIDUALS)
        cents = np.round(rng.gamma(2.0, 20.0, BLOCK), 2)
        columns = {"week": chosen % DATABASES, "client": chosen // DATABASES, "amount": cents}
        pq.write_table(pa.table(columns), folder / f"{block:03d}.parquet")


def own_group_by(folder: Path) -> str:
    import duckdb

    found = duckdb.sql(
        f"select week, client, count(*) n, sum(amount) s from '{folder}/*.parquet' group by all"
    ).arrow()
    table = found.read_all() if hasattr(found, "read_all") else found
    return f"{table.num_rows:,} pairs"


def respond(folder: Path, case: str) -> str:
    import edp_bayes as edp

    query, _, collect = case.partition(" collect=")
    databases = edp.Databases.from_table(folder, database="week", individual="client")
    return str(
        databases.respond(
            edp.queries.parse(query), progressbar=False, collect=int(collect) if collect else None
        )
    )


def measured(action: Callable[[], str]) -> None:
    """Run within the limit and print CPU seconds and the peak of memory."""
    from edp_bayes.tables import memory

    memory.allowed = lambda: LIMIT  # type: ignore[assignment]

    def watch() -> None:
        while memory.used() < LIMIT:
            time.sleep(0.02)
        print("more than the limit", flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    start = time.process_time()
    found = action()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{time.process_time() - start:.1f} s, {peak:.2f} GB peak: {found}", flush=True)


def main() -> None:
    if sys.argv[-1] == "-":
        _, folder, case, _ = sys.argv
        own = case == "engine"
        measured(lambda: own_group_by(Path(folder)) if own else respond(Path(folder), case))
        return
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    home = sys.argv[2] if len(sys.argv) > 2 else None
    print(f"Machine: {machine()}\n\n{millions} million records; CPU time, limit 8 GB\n", flush=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        write(folder, millions)
        for case in sys.argv[3:] or CASES:
            print(f"{case:26}", end="", flush=True)
            run = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.larger_than_memory"]
            subprocess.run([*run, str(folder), case, "-"])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
