"""The study of joint audits given the past: ``uv run python -m tests.calibration.joint_given``.

A bivariate autoregression with correlated innovations, normal or skewed, and one individual who
always contributes the same. The truth is delta_i of the next answers given the earlier ones.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.models.joint import fit_joint
from edp_bayes.models.joint_regression import fit_joint_given, joint_regression_on
from edp_bayes.responses.dependence import linear_dependence
from edp_bayes.responses.joined import JointResponses
from edp_bayes.responses.responses import Responses
from edp_bayes.results import bands

RESULTS = Path(__file__).parent / "joint_given.csv"
EPSILON = np.array([0.03, 0.15, 0.4])
LAG, ROOT = np.array([[0.6, 0.2], [-0.3, 0.4]]), np.array([[1.0, 0.0], [0.6, 0.8]])
SHIFT = np.array([0.3, -0.1])
SHAPE = 4.0  # of the Gamma distribution of skewed innovations
BURN, DRAWS, TUNE, SWEEPS, SAMPLE = 100, 199, 500, 400, 2_000_000
DATABASES, INNOVATIONS, METHODS = (41, 78), ("normal", "skewed"), ("plain", "given")


def innovations_of(kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return independent innovations of unit variance, shape (count, 2)."""
    if kind == "normal":
        return rng.standard_normal((count, 2))
    return (rng.gamma(SHAPE, size=(count, 2)) - SHAPE) / np.sqrt(SHAPE)


@cache
def truth(kind: str) -> np.ndarray:
    """Return delta_i of the next answers by simulation, over EPSILON."""
    move = np.linalg.solve(ROOT, SHIFT)
    rng = np.random.default_rng(1)
    u = innovations_of(kind, rng, SAMPLE)

    def log_density(x: np.ndarray) -> np.ndarray:
        if kind == "normal":
            return -0.5 * (x**2).sum(axis=1)
        return stats.gamma.logpdf(np.sqrt(SHAPE) * x + SHAPE, SHAPE).sum(axis=1)

    # log of p over p_i, at answers without them and at answers with them
    ratios = (log_density(u - move) - log_density(u), log_density(u) - log_density(u + move))
    # H(p_i || p) is the mean of (1 - e^eps p / p_i)_+ without them, H(p || p_i) likewise with them
    sides = [
        [np.maximum(-np.expm1(e + sign * ratio), 0.0).mean() for e in EPSILON]
        for sign, ratio in zip((1.0, -1.0), ratios, strict=True)
    ]
    return np.max(sides, axis=0)


def sample(kind: str, n: int, repetition: int) -> JointResponses:
    """Draw databases of both queries."""
    rng = np.random.default_rng([zlib.crc32(f"joint {kind} {n}".encode()), repetition])
    noise = innovations_of(kind, rng, n + BURN) @ ROOT.T
    y = np.zeros((n + BURN, 2))
    for t in range(1, n + BURN):
        y[t] = LAG @ y[t - 1] + noise[t]
    return JointResponses(
        tuple(
            Responses.from_arrays(50.0 + column, contribution=np.full((n, 1), c), query=name)
            for column, c, name in zip(y[BURN:].T, SHIFT, ("one", "other"), strict=True)
        )
    )


def once(kind: str, n: int, method: str, repetition: int) -> np.ndarray:
    """Return lower end, upper end and upper limit, shape (3, epsilon)."""
    settings = SamplerSettings(
        draws=DRAWS, tune=TUNE, chains=1, random_seed=repetition, progressbar=False, cores=1
    )
    model, responses = (
        DirichletProcessMixture(thin=max(5, SWEEPS // n)),
        sample(kind, n, repetition),
    )
    regression = joint_regression_on(responses, Adversary(past=2, trend=True))
    if method == "plain" or regression is None:
        fitted = fit_joint(model, responses, linear_dependence(responses), settings)
    else:
        fitted = fit_joint_given(model, regression, settings)
    draws = fitted.coupling.curves(np.array([0]), EPSILON).value[:, 0]
    return np.stack([*bands.pointwise(draws, 0.95), bands.upper_limit(draws, 0.95)])


def main() -> None:
    """Run every cell and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=60)
    count, rows = parser.parse_args().repetitions, []
    warnings.simplefilter("ignore")
    for kind, n, method in itertools.product(INNOVATIONS, DATABASES, METHODS):
        found = np.stack([once(kind, n, method, repetition) for repetition in range(count)])
        for exact, epsilon, part in zip(
            truth(kind), EPSILON, found.transpose(2, 1, 0), strict=True
        ):
            lower, upper, limit = part
            rows.append(
                {
                    "innovations": kind,
                    "n": n,
                    "method": method,
                    "epsilon": epsilon,
                    "truth": exact,
                    "repetitions": count,
                    "covers": ((lower <= exact) & (exact <= upper)).mean(),
                    "band_below": (upper < exact).mean(),
                    "band_above": (lower > exact).mean(),
                    "limit_holds": (limit >= exact).mean(),
                    "width": np.median(upper - lower),
                }
            )
        pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
