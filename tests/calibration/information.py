"""How narrow could a band be? ``uv run python -m tests.calibration.information``.

Two bounds on the width of a 95% interval for the delta of one individual, beside the widths of the
study. Whoever knows the family of each distribution, that is the number of its normal components
and that the contribution is a regression on the rest, has no regular estimate with a variance below
that of Cramér and Rao. Whoever knows nothing has none below that of the efficient influence
function 1{y in A} - e^epsilon 1{y - c in A}, with A where p > e^epsilon p_i (van der Vaart 1998,
chapter 25). Both are for many databases and take the larger of the two directions as known.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special, stats

from tests.calibration import study
from tests.calibration.report import DEFAULT, RIVAL
from tests.calibration.scenarios import Scenario

GRID = np.linspace(-10.0, 10.0, 20_001)
STEP = GRID[1] - GRID[0]
DIFFERENCE = 1e-5  # of the central differences
NORMAL = 2.0 * stats.norm.ppf(0.975)
KEYS = ["distribution", "individual", "epsilon"]
SMALLEST = 41  # databases from which on the same cells are compared


def parameters(scenario: Scenario) -> np.ndarray:
    """Log weights over the last, means, log standard deviations; then those of the contribution.

    Intercept, slope and log standard deviation of the regression, and log odds of the presence.
    """
    weights, means, sds = scenario.components
    who = scenario.who
    own = [who.mean, who.slope, np.log(who.spread), special.logit(who.presence)]
    return np.concatenate([np.log(weights[:-1] / weights[-1]), means, np.log(sds), own])


def densities(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return p and p_i on the grid."""
    k = (theta.size - 3) // 3
    weights = special.softmax(np.append(theta[: k - 1], 0.0))
    means, sds = theta[k - 1 : 2 * k - 1], np.exp(theta[2 * k - 1 : 3 * k - 1])
    intercept, slope, log_spread, odds = theta[3 * k - 1 :]
    spread, presence = np.exp(log_spread), special.expit(odds)
    without = stats.norm.pdf(GRID[:, None], means, sds) @ weights
    added = (1.0 + slope) * means + intercept, np.hypot((1.0 + slope) * sds, spread)
    with_him = stats.norm.pdf(GRID[:, None], *added) @ weights
    return (1.0 - presence) * without + presence * with_him, without


def gradients(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of p and p_i, one row a parameter."""
    rows = []
    for j in range(theta.size):
        up, down = theta.copy(), theta.copy()
        up[j] += DIFFERENCE
        down[j] -= DIFFERENCE
        rows.append(np.subtract(densities(up), densities(down)) / (2.0 * DIFFERENCE))
    p, without = np.moveaxis(rows, 1, 0)
    return p, without


def information(scenario: Scenario) -> np.ndarray:
    """Return the Fisher information of one database: of the rest, and of what they contribute."""
    who = scenario.who
    theta = parameters(scenario)
    rest = theta.size - 4
    _, without = densities(theta)
    _, slopes = gradients(theta)
    found = np.zeros((theta.size, theta.size))
    scores = slopes[:rest] / np.maximum(without, np.finfo(float).tiny)
    found[:rest, :rest] = STEP * scores @ slopes[:rest].T
    moments = [STEP * (without @ GRID**power) for power in range(3)]
    regression = np.array([moments[:2], moments[1:]]) / who.spread**2
    found[rest : rest + 2, rest : rest + 2] = who.presence * regression
    found[rest + 2, rest + 2] = 2.0 * who.presence
    # An individual always present is known to be.
    found[rest + 3, rest + 3] = who.presence * (1.0 - who.presence) or np.inf
    return found


def standard_errors(scenario: Scenario, epsilon: float) -> tuple[float, float]:
    """Return the least standard errors of delta from one database: family known, nothing known."""
    theta = parameters(scenario)
    pair, changes = np.array(densities(theta)), np.array(gradients(theta))
    # Of the two orders of p and p_i the one whose divergence is larger.
    orders = [pair, changes], [pair[::-1], changes[::-1]]
    gaps = [of[0] - np.exp(epsilon) * of[1] for of, _ in orders]
    larger = int(np.argmax([np.maximum(gap, 0.0).sum() for gap in gaps]))
    inside = gaps[larger] > 0
    change = orders[larger][1]
    gradient = STEP * (change[0] - np.exp(epsilon) * change[1])[:, inside].sum(axis=1)
    fisher = information(scenario)
    free = np.isfinite(np.diag(fisher))
    gradient, fisher = gradient[free], fisher[np.ix_(free, free)]
    known = np.sqrt(gradient @ np.linalg.solve(fisher, gradient))
    # The influence function takes four values, by whether each response is in the set.
    first, second = STEP * orders[larger][0][:, inside].sum(axis=1)
    both = STEP * (pair[1] * _joined(scenario, inside))[inside].sum()
    factor = np.exp(epsilon)
    square = first + factor**2 * second - 2.0 * factor * both
    return float(known), float(np.sqrt(square - (first - factor * second) ** 2))


def _joined(scenario: Scenario, inside: np.ndarray) -> np.ndarray:
    """Return how probable it is that the response with them is in the set, given that without."""
    who = scenario.who
    edges = np.diff(inside.astype(float), prepend=0.0, append=0.0)
    places = np.append(GRID, GRID[-1]) - 0.5 * STEP
    middle = (1.0 + who.slope) * GRID + who.mean
    present = np.zeros(GRID.size)
    for k in np.flatnonzero(edges):
        present -= edges[k] * stats.norm.cdf((places[k] - middle) / who.spread)
    return (1.0 - who.presence) * inside + who.presence * present


def bounds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the least standard errors in cells of the study, from one database."""
    found = [standard_errors(Scenario(name, 1, who), e) for name, who, e in cells.to_numpy()]
    return cells.assign(**dict(zip(("family", "nothing"), np.transpose(found), strict=True)))


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return the widths of the study and of both bounds, population 1, one row a cell.

    No interval needs what lies below zero.
    """
    one = table[(table["population"] == 1) & table["method"].isin([DEFAULT, RIVAL])]
    values = ["width", "width_that_covers", "coverage_high", "truth"]
    wide = one.pivot(index=[*KEYS, "n"], columns="method", values=values)
    wide.columns = [" ".join(name) for name in wide.columns]
    wide = wide.reset_index()
    wide = wide.merge(bounds(wide[KEYS].drop_duplicates()), on=KEYS)
    for name in ("family", "nothing"):
        width = NORMAL * wide[name] / np.sqrt(wide["n"].astype(float))
        wide[name] = np.minimum(width, width / 2.0 + wide[f"truth {DEFAULT}"])
    wide["both cover"] = wide[[f"coverage_high {m}" for m in (DEFAULT, RIVAL)]].min(axis=1) >= 0.93
    return wide


def main() -> None:
    found = beside(study.pooled(pd.read_csv(study.RESULTS)))
    both = found[found["both cover"]]
    print(f"Over {RIVAL}, where both cover")
    for name in ("family", "nothing", f"width {DEFAULT}"):
        ratio = both[name] / both[f"width {RIVAL}"]
        print(f"{name}: {ratio.mean():.2f}, above 1 in {(ratio > 1).mean():.2f}")
        groups = ratio.groupby(both["n"])
        shares = (ratio > 1).groupby(both["n"]).mean()
        print(pd.DataFrame({"mean": groups.mean(), "above 1": shares, "cells": groups.size()}))
    print(f"Over the family, in cells whose delta is above half of its width at n = {SMALLEST}")
    cells = found[found["family"] < 2.0 * found[f"truth {DEFAULT}"]].query("n == @SMALLEST")
    apart = found.merge(cells[KEYS], on=KEYS).query("n >= @SMALLEST")
    for column in (f"width {DEFAULT}", *(f"width_that_covers {m}" for m in (DEFAULT, RIVAL))):
        ratio = apart[column] / apart["family"]
        print(column)
        print(ratio.groupby([apart["distribution"], apart["n"]], observed=True).median().unstack())
    print(cells["distribution"].value_counts(sort=False))


if __name__ == "__main__":
    pd.options.display.float_format = "{:.2f}".format
    main()
