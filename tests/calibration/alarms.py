"""How often the check of individuals fails: ``uv run python -m tests.calibration.alarms``.

Over the cells of the study of failures and, with populations of 300, of the main study, at 41
databases. Beside it, how often the upper limit was too low at any epsilon: only then is a failed
check no false alarm.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd

from edp_bayes.diagnostics import check_individuals
from edp_bayes.results import bands
from tests.calibration import failures, scenarios, study

N = 41


def once(cell: failures.Cell | scenarios.Scenario, repetition: int) -> tuple[bool, bool]:
    """Whether the check fails, and whether the upper limit is too low anywhere."""
    if isinstance(cell, failures.Cell):
        responses, epsilon, truth = cell.sample(repetition), failures.EPSILON, cell.truth
    else:
        responses = study.responses_of(cell, repetition)
        epsilon, truth = scenarios.EPSILON, cell.truth["delta"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = failures.delta_of(responses, "default", repetition, epsilon)
        limit = bands.upper_limit(draws, 0.95)
        failed = not check_individuals(responses, epsilon=epsilon, upper=limit).passed
    seen = (truth >= failures.SMALLEST) & (truth <= failures.LARGEST)
    return failed, bool((limit < truth)[seen].any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cells = [
        *(cell for cell in failures.all_cells() if cell.n == N),
        *(cell for cell in study.all_scenarios() if (cell.n, cell.population) == (N, 300)),
    ]
    tasks = [(cell, k) for cell in cells for k in range(options.repetitions)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        found = np.array(list(pool.map(once, *zip(*tasks, strict=True))))
    groups = [getattr(cell, "group", "population of 300") for cell, _ in tasks]
    table = pd.DataFrame(found, columns=["fails", "too low"]).assign(group=groups)
    table["false alarm"] = table["fails"] & ~table["too low"]
    table["found"] = table["fails"] & table["too low"]
    print(table.groupby("group").mean().round(4).to_string())
    print(f"{len(table)} repetitions")


if __name__ == "__main__":
    main()
