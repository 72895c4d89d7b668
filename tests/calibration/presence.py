"""Coverage for an individual sometimes present: ``uv run python -m tests.calibration.presence``.

They come with the rest, which the mixture models know of only from one component to another, or
adds several standard deviations. The table tells what becomes of their bands then, of those of the
smoothed bootstrap, and how often the check of the databases notices.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from edp_bayes.diagnostics import check_databases
from tests.calibration.methods import run_once
from tests.calibration.scenarios import EPSILON, FOLLOWERS, LARGE, Scenario
from tests.calibration.study import responses_of

METHODS = ("dirichlet process", "smoothed bootstrap")
SIZES = (41, 100, 400)
REPORTED = (0.02, 0.1, 0.3)


def once(scenario: Scenario, repetition: int) -> tuple[list[bool], bool]:
    """Whether each method's pointwise bands hold each truth, and whether the check fails."""
    responses = responses_of(scenario, repetition)
    checks = check_databases(responses).checks
    doubted = any(check.name == "presence" and not check.passed for check in checks)
    truth, at = scenario.truth["delta"], np.isin(EPSILON, REPORTED)
    held: list[bool] = []
    for method in METHODS:
        found = run_once(method, responses, repetition)["delta"]
        held.extend(((found.lower <= truth) & (truth <= found.upper))[at])
    return held, doubted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print("Coverage at epsilon " + ", ".join(map(str, REPORTED)) + ".\n")
    print("| individual | n | noticed | " + " | ".join(METHODS) + " |\n" + "|---" * 5 + "|")
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for individual in FOLLOWERS | LARGE:
            if individual in LARGE:
                distribution = "normal"
            else:
                distribution = "normal, divided" if "the more" in individual else "skewed"
            for n in SIZES:
                scenario = Scenario(distribution, n, individual)
                cells = [scenario] * options.repetitions
                held, doubted = zip(*pool.map(once, cells, range(len(cells))), strict=True)
                shares = np.mean(held, axis=0).reshape(len(METHODS), -1)
                row = [", ".join(f"{share:.2f}" for share in each) for each in shares]
                cells_of_row = [individual, str(n), f"{np.mean(doubted):.0%}", *row]
                print(f"| {' | '.join(cells_of_row)} |", flush=True)


if __name__ == "__main__":
    main()
