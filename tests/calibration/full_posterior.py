"""Empirical Bayes beside the full posterior: ``uv run python -m tests.calibration.full_posterior``.

Both models on the same data sets: bands of delta, and how often each person's interval agrees. What
is learned of contributions with the pools estimated is held to what is learned with them drawn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context

import numpy as np

import edp_bayes as edp
from tests.calibration.scenarios import Scenario
from tests.calibration.study import responses_of

REPORTED = (0.02, 0.1, 0.3, 1.0)
MODELS = {"empirical": edp.DirichletProcessMixture(), "full": edp.FullPosterior()}


@dataclass(frozen=True)
class Crowd(Scenario):
    """A cell with some others, of a hundredth of a standard deviation each."""

    @cached_property
    def means(self) -> np.ndarray:
        rng = np.random.default_rng(20_240_101)
        return rng.gamma(1.0, 0.02, self.population - 1)


CELLS = [
    Scenario("normal", 20, "0.4"),
    Scenario("normal", 41, "0.4"),
    Scenario("bimodal", 41, "1.0"),
    Scenario("skewed", 41, "comes with few"),
    Scenario("bimodal", 100, "absent 70%"),
    Scenario("heavy-tailed", 41, "absent 95%"),
    Scenario("nearly uniform", 100, "proportional"),
    Scenario("normal", 41, "adds three"),
    Crowd("normal", 41, "0.4", 30),
    Crowd("skewed", 41, "absent 70%", 100),
]


def once(cell: Scenario, draws: int) -> list[str]:
    """Return a row for each model: the truth, and the band of delta at every epsilon."""
    responses = responses_of(cell, 0)
    rows = []
    for name, model in MODELS.items():
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            audit = edp.audit(
                responses, epsilon=REPORTED, model=model, draws=draws, tune=2 * draws, cores=1,
                random_seed=1, progressbar=False,
            )  # fmt: skip
        band = audit.band("delta", kind="pointwise", prob=0.95)
        taken = time.perf_counter() - begun
        at = [int(np.flatnonzero(np.isclose(audit.epsilon, e))[0]) for e in REPORTED]
        truth = np.interp(REPORTED, *_truth(cell))
        found = [
            f"{float(band['lower'][k]):.3g} to {float(band['upper'][k]):.3g} ({t:.3g})"
            for k, t in zip(at, truth, strict=True)
        ]
        rows.append(f"| {cell.name} | {name} | {' | '.join(found)} | {taken:.0f} |")
    return rows


def _truth(cell: Scenario) -> tuple[np.ndarray, np.ndarray]:
    from tests.calibration.scenarios import EPSILON

    return EPSILON, cell.truth["delta"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print("Bands of delta of 95% (the truth).\n")
    head = ["cell", "contributions", *map(str, REPORTED), "seconds"]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for rows in pool.map(once, CELLS, [options.draws] * len(CELLS)):
            print("\n".join(rows), flush=True)


if __name__ == "__main__":
    main()
