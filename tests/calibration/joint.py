"""Coverage of joint audits: ``python -m tests.calibration.joint --repetitions 40``.

Several queries on databases whose distribution is known; truths are closed forms, or integrals at
2^17 quasi-random points of the exact densities.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import gamma, norm, qmc

import edp_bayes as edp
from edp_bayes.divergence.shifts import gaussian_shift

RESULTS = Path(__file__).with_name("joint.csv")
EPSILON = np.array([0.1, 0.5])
OTHERS = 5  # individuals beside the audited one, as small as they come


@dataclass(frozen=True)
class Cell:
    """One individual's contributions to several answers of databases of one distribution.

    Attributes
    ----------
    name : str
        In words.
    databases : int
        Their number.
    shift : tuple of float
        What individual 0 contributes to each answer, in standard deviations of the rest.
    presence : float
        Probability of being there.
    skewed : bool
        Whether the first answer without individual 0 is Gamma(3), else normal.
    correlation : float
        Of the answers without individual 0.
    """

    name: str
    databases: int
    shift: tuple[float, ...]
    presence: float = 1.0
    skewed: bool = False
    correlation: float = 0.6

    @property
    def root(self) -> np.ndarray:
        d = len(self.shift)
        whole = np.full((d, d), self.correlation) + (1.0 - self.correlation) * np.eye(d)
        return np.asarray(np.linalg.cholesky(whole))

    def rest(self, normal: np.ndarray) -> np.ndarray:
        """Turn independent normal numbers (n, d) into answers without individual 0."""
        if self.skewed:
            normal = np.array(normal)
            first = gamma.ppf(norm.cdf(normal[:, 0]), 3.0)
            normal[:, 0] = (first - 3.0) / np.sqrt(3.0)
        return np.asarray(normal @ self.root.T)

    def density(self, y: np.ndarray) -> np.ndarray:
        """Return that of the answers without individual 0."""
        z = np.linalg.solve(self.root, y.T).T
        found = np.prod(norm.pdf(z[:, 1:]), axis=1)
        if self.skewed:
            first = gamma.pdf(3.0 + np.sqrt(3.0) * z[:, 0], 3.0) * np.sqrt(3.0)
        else:
            first = norm.pdf(z[:, 0])
        return np.asarray(found * first / np.prod(np.diagonal(self.root)))

    def sample(self, seed: int) -> edp.JointResponses:
        """Return responses; individual 0 is audited."""
        rng = np.random.default_rng([seed, self.databases, len(self.shift)])
        d, n = len(self.shift), self.databases
        y = self.rest(rng.standard_normal((n, d)))
        here = rng.random(n) < self.presence
        mine = here[:, None] * np.array(self.shift)
        # the others are part of the rest
        small = 0.02 * rng.standard_normal((n, OTHERS, d))
        parts = []
        for a in range(d):
            c = np.concatenate([mine[:, [a]], small[:, :, a]], axis=1)
            parts.append(
                edp.Responses.from_arrays(y[:, a] + mine[:, a], contribution=c, query=f"q{a}")
            )
        return edp.Responses.join(*parts)

    def truth(self) -> np.ndarray:
        """Return delta of individual 0."""
        shift = np.array(self.shift)
        if not self.skewed and self.presence == 1.0:
            length = np.sqrt(shift @ np.linalg.solve(self.root @ self.root.T, shift))
            return np.asarray(gaussian_shift(length, EPSILON))
        points = qmc.Sobol(len(shift), rng=np.random.default_rng(1)).random_base2(17)
        y = self.rest(norm.ppf(np.clip(points, 1e-12, 1.0 - 1e-12)))
        # at points of the rest, q, and of the rest moved, g: p = (1 - rho) q + rho g
        rho, found = self.presence, []
        for level in np.exp(EPSILON):
            totals = np.array([0.0, 1.0])  # H(q || p) = 1 - E_p min(q / p, e^eps)
            for x, weight in ((y, 1.0 - rho), (y + shift, rho)):
                if weight == 0.0:
                    continue
                q, g = self.density(x), self.density(x - shift)
                p = (1.0 - rho) * q + rho * g
                totals[0] += weight * np.maximum(1.0 - level * q / p, 0.0).mean()
                totals[1] -= weight * np.minimum(q / p, level).mean()
            found.append(totals.max())
        return np.array(found)


CELLS = (
    Cell("normal", 41, (0.3, 0.3)),
    Cell("skewed", 41, (0.4, 0.2), skewed=True),
    Cell("exposed, in one of ten", 100, (2.0, 3.0), presence=0.1),
    Cell("normal, three queries", 100, (0.3, 0.2, 0.3)),
)
FIVE = Cell("normal, five queries", 60, (0.2, 0.2, 0.2, 0.2, 0.2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--five", type=int, default=6, help="repetitions of five queries")
    parser.add_argument("--only", default=".*", help="regular expression on the cells' names")
    options = parser.parse_args()
    warnings.simplefilter("ignore", edp.EdpBayesWarning)
    rows = []
    for cell in (*CELLS, FIVE):
        if not re.search(options.only, cell.name):
            continue
        truth, start = cell.truth(), time.process_time()
        count = options.five if cell is FIVE else options.repetitions
        found = []
        for seed in range(count):
            audit = edp.audit(
                cell.sample(seed), epsilon=EPSILON, individuals=[0], keep=1, draws=50,
                random_seed=seed + 1, progressbar=False,
            )  # fmt: skip
            band = audit.band("individual_delta", kind="pointwise", prob=0.95).sel(individual=0)
            above = audit.upper("individual_delta").sel(individual=0)
            ends = (band["lower"], band["median"], band["upper"], above)
            found.append([part.to_numpy() for part in ends])
        lower, median, upper, limit = np.moveaxis(np.array(found), 1, 0)
        for e, epsilon in enumerate(EPSILON):
            rows.append(
                {
                    "cell": cell.name, "databases": cell.databases, "queries": len(cell.shift),
                    "epsilon": epsilon, "truth": truth[e], "repetitions": count,
                    "covered": np.mean((lower[:, e] <= truth[e]) & (truth[e] <= upper[:, e])),
                    "below": np.mean(upper[:, e] < truth[e]),
                    "above": np.mean(lower[:, e] > truth[e]),
                    "limit_holds": np.mean(limit[:, e] >= truth[e]),
                    "median": np.median(median[:, e]),
                    "width": np.mean(upper[:, e] - lower[:, e]),
                    "seconds": (time.process_time() - start) / count,
                }
            )  # fmt: skip
        earlier = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame({"cell": []})
        others = earlier[~earlier["cell"].isin([row["cell"] for row in rows])]
        table = pd.concat([others, pd.DataFrame(rows)]) if len(others) else pd.DataFrame(rows)
        table.to_csv(RESULTS, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
