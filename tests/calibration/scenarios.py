"""Data with known truth: a response R plus contributions, everything a Gaussian mixture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from edp_bayes.divergence import gaussian
from edp_bayes.responses.responses import Responses

EPSILON = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0])
REPORTED = (0.02, 0.1, 0.3, 1.0)
DATABASES = (20, 41, 100, 400)

# Weights, means and standard deviations; standardised below.
DISTRIBUTIONS = {
    "normal": ([1.0], [0.0], [1.0]),
    "skewed": ([0.5, 0.3, 0.2], [-0.6, 0.3, 1.3], [0.4, 0.5, 0.9]),
    "bimodal": ([0.5, 0.5], [-1.0, 1.0], [0.45, 0.45]),
    "heavy-tailed": ([0.75, 0.25], [0.0, 0.0], [0.6, 1.8]),
    "nearly uniform": ([0.25] * 4, [-1.2, -0.4, 0.4, 1.2], [0.45] * 4),
}


@dataclass(frozen=True)
class Individual:
    """Mean contribution in standard deviations of R, presence, and dependence on the rest.

    Presence may be one probability for each component of R.
    """

    mean: float
    presence: float | tuple[float, ...] = 1.0
    slope: float = 0.0

    @property
    def spread(self) -> float:
        return 0.3 * abs(self.mean)


INDIVIDUALS = {
    "0.05": Individual(0.05),
    "0.1": Individual(0.1),
    "0.4": Individual(0.4),
    "1.0": Individual(1.0),
    "absent 70%": Individual(0.4, presence=0.3),
    "absent 95%": Individual(0.4, presence=0.05),
    "negative": Individual(-0.4),
    "proportional": Individual(0.3, slope=0.1),
}
# Not in the study's tables: those who come with the rest, or against it. Each component of the
# skewed distribution has a share of its own; those of the divided one, which is normal, follow a
# curve.
GRID = np.arange(-3.0, 3.1, 0.5)
DIVIDED = {"normal, divided": (np.exp(-(GRID**2) / 1.68).tolist(), GRID.tolist(), [0.4] * 13)}
FOLLOWERS = {
    "comes with others": Individual(0.4, presence=(0.1, 0.4, 0.7)),
    "comes with few": Individual(0.4, presence=(0.4, 0.2, 0.0)),
    "comes by chance": Individual(0.4, presence=(0.31, 0.31, 0.31)),
    "comes the more, the more others": Individual(
        0.4, presence=tuple(0.6 / (1.0 + np.exp(-2.0 * GRID)))
    ),
    "comes the less, the more others": Individual(
        0.4, presence=tuple(0.6 / (1.0 + np.exp(2.0 * GRID)))
    ),
}
# Nor these, in half of the databases with what makes a component of its own.
LARGE = {"adds three": Individual(3.0, presence=0.5), "adds six": Individual(6.0, presence=0.5)}
# Mean contribution of the Gamma-distributed rest of a population, in standard deviations of R.
OTHERS = {1: 0.0, 300: 0.01, 10_000: 0.001}


@dataclass(frozen=True)
class Scenario:
    """One cell of the study."""

    distribution: str
    n: int
    individual: str
    population: int = 1

    @property
    def name(self) -> str:
        return f"{self.distribution}, n={self.n}, {self.individual}, m={self.population}"

    @property
    def who(self) -> Individual:
        return (INDIVIDUALS | FOLLOWERS | LARGE)[self.individual]

    @cached_property
    def components(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and standard deviations of R, standardised."""
        w, m, s = (np.array(part, float) for part in (DISTRIBUTIONS | DIVIDED)[self.distribution])
        w = w / w.sum()
        mean = w @ m
        sd = np.sqrt(w @ (s**2 + m**2) - mean**2)
        return w, (m - mean) / sd, s / sd

    @cached_property
    def means(self) -> np.ndarray:
        """Mean contributions of everybody else, Gamma-distributed, the same in every repetition."""
        rng = np.random.default_rng(20_240_101)
        return rng.gamma(1.0, OTHERS[self.population], self.population - 1)

    def sample(self, rng: np.random.Generator) -> Responses:
        """Draw databases; the individual is the first of the population."""
        w, m, s = self.components
        who = self.who
        k = rng.choice(w.size, self.n, p=w)
        rest = m[k] + s[k] * rng.standard_normal(self.n)
        others = self.means * (1.0 + 0.3 * rng.standard_normal((self.n, self.means.size)))
        rest = rest + others.sum(axis=1)
        present = rng.random(self.n) < np.broadcast_to(who.presence, w.shape)[k]
        own = who.mean + who.slope * rest + who.spread * rng.standard_normal(self.n)
        contribution = np.column_stack([np.where(present, own, 0.0), others])
        return Responses.from_arrays(
            rest + contribution[:, 0], contribution=sp.csc_array(contribution)
        )

    @cached_property
    def truth(self) -> dict[str, np.ndarray]:
        """True delta_i of the individual, delta and delta* over EPSILON."""
        w, m, s = self.components
        who = self.who
        variance = (0.3 * self.means) ** 2
        m = m + self.means.sum()
        s = np.sqrt(s**2 + variance.sum())
        rho = np.asarray(who.presence)
        weights = np.concatenate([(1 - rho) * w, rho * w])
        without = np.concatenate([m, m]), np.concatenate([s, s])
        stretch = 1.0 + who.slope
        present = (
            np.concatenate([m, stretch * m + who.mean]),
            np.concatenate([s, np.sqrt((stretch * s) ** 2 + who.spread**2)]),
        )

        def curve(q_means: np.ndarray, q_sds: np.ndarray) -> np.ndarray:
            shape = (1, *q_means.shape)
            return gaussian.curves(
                weights[None],
                present[0][None],
                present[1][None],
                np.broadcast_to(weights, shape),
                q_means[None],
                q_sds[None],
                EPSILON,
            )[0]

        own = curve(without[0][None], without[1][None])[0]
        if self.population == 1:
            return {"delta": own}
        # Without another individual: their mean and variance leave every component.
        sds = np.sqrt(
            present[1] ** 2 - np.concatenate([np.ones_like(w), np.full_like(w, stretch**2)])
            * variance[:, None]
        )  # fmt: skip
        stretches = np.concatenate([np.ones_like(w), np.full_like(w, stretch)])
        others = curve(present[0] - stretches * self.means[:, None], sds)
        everybody = np.concatenate([own[None], others])
        return {
            "delta": everybody.max(axis=0),
            "total_risk": -np.expm1(np.log1p(-everybody).sum(axis=0)),
        }
