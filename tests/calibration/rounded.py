"""Coverage for answers that are counts: ``python -m tests.calibration.rounded --repetitions 40``.

Binomial and Poisson databases, audited as rounded answers and as continuous ones; truths are sums
over all counts.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom, poisson

import edp_bayes as edp

RESULTS = Path(__file__).with_name("rounded.csv")
EPSILON = np.array([0.05, 0.1, 0.3])
COUNTS = np.arange(400)
STEPS = {"rounded": 1.0, "continuous": None}


@dataclass(frozen=True)
class Cell:
    """People present with a probability, or one person with a Poisson number of records."""

    distribution: str
    size: int
    prob: float
    databases: int

    @property
    def name(self) -> str:
        return f"{self.distribution} {self.size} x {self.prob:g}, n = {self.databases}"

    def sample(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and contributions; individual 0 is audited."""
        rng = np.random.default_rng([seed, self.size])
        if self.distribution == "binomial":
            c = (rng.random((self.databases, self.size)) < self.prob).astype(float)
            return c.sum(axis=1), c
        mine = (rng.random((self.databases, 1)) < self.prob).astype(float)
        return rng.poisson(self.size, self.databases) + mine[:, 0], mine

    def truth(self) -> np.ndarray:
        """Return delta of individual 0."""
        if self.distribution == "binomial":
            return difference(
                binom.pmf(COUNTS, self.size, self.prob), binom.pmf(COUNTS, self.size - 1, self.prob)
            )
        rest = poisson.pmf(COUNTS, self.size)
        with_one = (1.0 - self.prob) * rest + self.prob * np.append(0.0, rest[:-1])
        return difference(with_one, rest)


def difference(p: np.ndarray, q: np.ndarray, epsilon: np.ndarray = EPSILON) -> np.ndarray:
    """Return the larger of both sums over all counts."""
    growth = np.exp(epsilon)[:, None]
    return np.maximum(
        np.maximum(p - growth * q, 0.0).sum(axis=1), np.maximum(q - growth * p, 0.0).sum(axis=1)
    )


CELLS = (
    Cell("binomial", 10, 0.1, 60),
    Cell("binomial", 10, 0.3, 60),
    Cell("poisson", 1, 1.0, 60),
    Cell("poisson", 5, 1.0, 60),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    options = parser.parse_args()
    warnings.simplefilter("ignore", edp.EdpBayesWarning)
    rows = []
    for cell, (method, step) in itertools.product(CELLS, STEPS.items()):
        truth = cell.truth()
        found = []
        for seed in range(options.repetitions):
            y, c = cell.sample(seed)
            responses = edp.Responses.from_arrays(y, contribution=c, step=step)
            audit = edp.audit(
                responses, epsilon=EPSILON, individuals=[0], draws=50, random_seed=seed + 1,
                progressbar=False,
            )  # fmt: skip
            band = audit.band("individual_delta", kind="pointwise", prob=0.95).sel(individual=0)
            found.append((band["lower"].to_numpy(), band["upper"].to_numpy()))
        lower, upper = np.moveaxis(np.array(found), 1, 0)
        for e, epsilon in enumerate(EPSILON):
            rows.append(
                {
                    "cell": cell.name, "method": method, "epsilon": epsilon, "truth": truth[e],
                    "repetitions": options.repetitions,
                    "covered": np.mean((lower[:, e] <= truth[e]) & (truth[e] <= upper[:, e])),
                    "below": np.mean(upper[:, e] < truth[e]),
                    "width": np.mean(upper[:, e] - lower[:, e]),
                }
            )  # fmt: skip
        pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
