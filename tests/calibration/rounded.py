"""Coverage for answers that are counts: ``python -m tests.calibration.rounded --repetitions 40``.

Binomial and Poisson databases, and rounded series given their past or trend, audited as rounded
answers and as continuous ones; truths are sums over all counts.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom, norm, poisson

import edp_bayes as edp

RESULTS = Path(__file__).with_name("rounded.csv")
EPSILON = np.array([0.05, 0.1, 0.3, 0.6])
COUNTS = np.arange(400)
METHODS: dict[str, tuple[float | None, edp.models.DensityModel | None]] = {
    "rounded": (1.0, None),
    "rounded, bootstrap": (1.0, edp.SmoothedBootstrap()),
    "continuous": (None, None),
}


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


@dataclass(frozen=True)
class Series:
    """One person present with a probability, the rest normal about the past or a trend, rounded."""

    known: str
    slope: float
    spread: float
    prob: float
    databases: int

    @property
    def name(self) -> str:
        return f"given the {self.known}, spread {self.spread:g}, n = {self.databases}"

    @property
    def adversary(self) -> edp.Adversary:
        return edp.Adversary(past=1) if self.known == "past" else edp.Adversary(trend=True)

    def sample(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return answers and contributions; individual 0 is audited."""
        rng = np.random.default_rng([seed, self.databases])
        mine = (rng.random((self.databases, 1)) < self.prob).astype(float)
        away = self.spread * rng.standard_normal(self.databases)
        y = np.empty(self.databases)
        for t in range(self.databases):
            y[t] = np.round(self._middle(y, t) + away[t]) + mine[t, 0]
        return y, mine

    def truth(self, seed: int) -> np.ndarray:
        """Return delta of individual 0 in the next database, given what came before."""
        y, _ = self.sample(seed)
        edges = np.arange(-200, 201) - 0.5
        rest = np.diff(norm.cdf(edges, self._middle(y, self.databases), self.spread))
        with_one = (1.0 - self.prob) * rest + self.prob * np.append(0.0, rest[:-1])
        return difference(with_one, rest)

    def _middle(self, y: np.ndarray, t: int) -> float:
        if self.known == "trend":
            return 10.0 + self.slope * t
        return 10.0 + self.slope * ((y[t - 1] if t else 10.0) - 10.0)


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
SERIES = Series("past", 0.5, 0.7, 0.9, 60)
GIVEN = (SERIES, Series("trend", 0.05, 0.7, 0.9, 60))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument(
        "--only", nargs="*", help="names of cells and methods, with a comma between"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", edp.EdpBayesWarning)
    rows = []
    for cell, method in itertools.product((*CELLS, *GIVEN), METHODS):
        if options.only and f"{cell.name}, {method}" not in options.only:
            continue
        step, model = METHODS[method]
        found, truths, spent = [], [], time.process_time()
        for seed in range(options.repetitions):
            y, c = cell.sample(seed)
            given = isinstance(cell, Series)
            audit = edp.audit(
                edp.Responses.from_arrays(y, contribution=c, step=step), epsilon=EPSILON,
                adversary=cell.adversary if given else None, model=model, individuals=[0],
                draws=50, random_seed=seed + 1, progressbar=False,
            )  # fmt: skip
            band = audit.band("individual_delta", kind="pointwise", prob=0.95).sel(individual=0)
            found.append((band["lower"].to_numpy(), band["upper"].to_numpy()))
            truths.append(cell.truth(seed) if given else cell.truth())
        lower, upper = np.moveaxis(np.array(found), 1, 0)
        truth = np.array(truths)
        for e, epsilon in enumerate(EPSILON):
            rows.append(
                {
                    "cell": cell.name, "method": method, "epsilon": epsilon,
                    "truth": truth[:, e].mean(), "repetitions": options.repetitions,
                    "covered": np.mean((lower <= truth) & (truth <= upper), axis=0)[e],
                    "below": np.mean(upper < truth, axis=0)[e],
                    "width": np.mean(upper - lower, axis=0)[e],
                    "seconds": (time.process_time() - spent) / options.repetitions,
                }
            )  # fmt: skip
        table = pd.DataFrame(rows)
        if options.only and RESULTS.exists():
            before = pd.read_csv(RESULTS)
            again = (
                before[["cell", "method"]]
                .apply(tuple, axis=1)
                .isin(table[["cell", "method"]].apply(tuple, axis=1))
            )
            table = pd.concat([before[~again], table])
        table.to_csv(options.out, index=False, float_format="%.4g")
        print(pd.DataFrame(rows[-EPSILON.size :]).to_string(), flush=True)


if __name__ == "__main__":
    main()
