"""How long commands take to start: ``uv run python -m tests.benchmarks.starting``; CPU seconds."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from edp_bayes.noise import LaplaceNoise, NoiseDistribution
from tests.benchmarks.__main__ import machine

RUNS = 3


def seconds(arguments: list[str]) -> float:
    """Return the least CPU time of a few runs in a new process, the first of them a warm-up."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    print(f"Machine: {machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        noise = NoiseDistribution((LaplaceNoise(2.0),)).save(Path(folder) / "noise.json")
        release = ["-m", "edp_bayes.cli", "release", str(noise), "--value", "3"]
        cases = {
            "import edp_bayes": ["-c", "import edp_bayes"],
            "edp-bayes --help": ["-m", "edp_bayes.cli", "--help"],
            "edp-bayes release": release,
            "edp-bayes release --sampler exact": [*release, "--sampler", "exact"],
        }
        for name, arguments in cases.items():
            print(f"{name:35} {seconds(arguments):.2f} s", flush=True)


if __name__ == "__main__":
    main()
