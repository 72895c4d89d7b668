"""Seed the faults one by one: ``uv run python -m tests.mutants [NAME ...]``; prints Markdown."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.faults import FAULTS, ROOT, Fault

OUTCOMES = {0: "survived", 1: "caught"}  # by the exit code of pytest


def seeded(folder: Path, fault: Fault | None) -> dict[str, str]:
    """Copy the package with a fault, or without one; return the environment that imports it."""
    package = folder / "edp_bayes"
    shutil.copytree(ROOT / "edp_bayes", package)
    # The package of the working folder must not come first.
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    if fault is not None:
        faulty = fault.source.replace(fault.text, fault.replacement)
        (package / fault.file).write_text(faulty, encoding="utf-8")
        if fault.compiled:
            # Kept code holds what it calls as that was before.
            environment["NUMBA_CACHE_DIR"] = str(folder / "numba")
    return environment


def tested(environment: Mapping[str, str], tests: Sequence[str], *, full: bool) -> tuple[int, str]:
    """Run files of tests up to the first failure; return pytest's exit code and what it printed."""
    files = [str(ROOT / "tests" / name) for name in tests]
    marks = ["-m", "full or not full"] if full else []
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *marks, *files], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def run(fault: Fault | None, tests: Sequence[str], *, full: bool) -> str:
    """Print the row of a fault, and return its outcome."""
    start = time.monotonic()
    with TemporaryDirectory(prefix="edp_bayes_mutant_") as folder:
        code, printed = tested(seeded(Path(folder), fault), tests, full=full)
    outcome = OUTCOMES.get(code, f"pytest ended with {code}")
    found = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(.*?)(?: - .*)?$", printed, re.MULTILINE)
    by = found[1] if found else ""
    name = "no fault" if fault is None else fault.name
    print(f"| {name} | {outcome} | {time.monotonic() - start:.0f} | {by} |", flush=True)
    if code not in OUTCOMES:
        print(printed, file=sys.stderr)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [fault.name for fault in FAULTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--full", action="store_true", help="run tests marked full, too")
    parser.add_argument(
        "--none", action="store_true", help="seed no fault: the same tests must pass"
    )
    options = parser.parse_args()
    if unknown := set(options.names).difference(names):
        parser.error(f"no fault is called {min(unknown)!r}: {', '.join(names)}")
    chosen = [fault for fault in FAULTS if fault.name in (options.names or names)]
    print("| fault | outcome | seconds | first test that fails |\n|---|---|---|---|", flush=True)
    if options.none:
        tests = sorted({name for fault in chosen for name in fault.tests})
        return int(run(None, tests, full=options.full) != "survived")
    outcomes = [run(fault, fault.tests, full=options.full) for fault in chosen]
    print(f"\n{outcomes.count('caught')} of {len(chosen)} caught")
    return int(outcomes.count("caught") < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
