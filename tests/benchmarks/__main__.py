"""Run the benchmarks: ``uv run python -m tests.benchmarks [CASE ...]``; prints Markdown."""

from __future__ import annotations

import platform
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.cases import CASES


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), cpu)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pymc"))
    return f"{cpu}, Python {platform.python_version()}, {libraries}"


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        warnings.simplefilter("ignore")
        case = CASES[sys.argv[2]]
        print(f"### {case.__doc__}\n")
        print("| what | measured |\n|---|---|")
        for what, measured in case():
            print(f"| {what} | {measured} |")
        print(flush=True)
        return
    print(f"Machine: {machine()}\n", flush=True)
    for name in sys.argv[1:] or CASES:
        subprocess.run([sys.executable, "-m", "tests.benchmarks", "--one", name], check=True)


if __name__ == "__main__":
    main()
