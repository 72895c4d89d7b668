"""A study that goes looking for failure: ``uv run python -m tests.calibration.failures``.

Distributions with spikes (Marron and Wand 1992), one exposed individual among others of several
kinds, contributions that are heavy-tailed over the databases, and an individual who makes up most
of the response. Each cell tells how often the 95% band lies wholly below the true delta, how often
the upper limit of 95% holds it, and how wide the band is. Runs what failures.csv lacks.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats

from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.divergence import gaussian
from edp_bayes.models import (
    BaseMeasure,
    DirichletProcessMixture,
    SamplerSettings,
    SmoothedBootstrap,
)
from edp_bayes.responses.responses import Responses
from edp_bayes.results import bands
from edp_bayes.utils.files import replaced
from tests.calibration import report

RESULTS = Path(__file__).parent / "failures.csv"
EPSILON = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
SMALLEST, LARGEST = 1e-4, 0.97
DRAWS, TUNE, BATCH = 199, 500, 20
OTHERS = 100
WORST = 15

# Weights, means and standard deviations of Marron and Wand's densities 1 to 8; standardised below.
MARRON_WAND = {
    "normal": ([1.0], [0.0], [1.0]),
    "skewed unimodal": ([0.2, 0.2, 0.6], [0.0, 0.5, 13 / 12], [1.0, 2 / 3, 5 / 9]),
    "strongly skewed": (
        [1 / 8] * 8,
        [3.0 * ((2 / 3) ** k - 1.0) for k in range(8)],
        [(2 / 3) ** k for k in range(8)],
    ),
    "kurtotic unimodal": ([2 / 3, 1 / 3], [0.0, 0.0], [1.0, 0.1]),
    "outlier": ([0.1, 0.9], [0.0, 0.0], [1.0, 0.1]),
    "separated bimodal": ([0.5, 0.5], [-1.5, 1.5], [0.5, 0.5]),
    "skewed bimodal": ([0.75, 0.25], [0.0, 1.5], [1.0, 1 / 3]),
}


def standardised(name: str) -> np.ndarray:
    """Return weights, means and standard deviations of a density of mean 0 and sd 1."""
    w, m, s = (np.array(part, float) for part in MARRON_WAND[name])
    mean = w @ m
    sd = np.sqrt(w @ (s**2 + m**2) - mean**2)
    return np.stack([w, (m - mean) / sd, s / sd])


def shape(kind: str, rng: np.random.Generator, size: int) -> np.ndarray:
    """Return contributions of mean about one."""
    if kind == "constant":
        return np.ones(size)
    if kind == "normal":
        return 1.0 + 0.3 * rng.standard_normal(size)
    if kind == "lognormal":
        return np.exp(rng.standard_normal(size) - 0.5)
    if kind == "Pareto":
        return 0.5 * (1.0 + rng.pareto(2.0, size))
    if kind == "one large":
        large = rng.random(size) < 1 / 20
        return np.where(large, 10.0, 0.5) * (1.0 + 0.1 * rng.standard_normal(size))
    if kind == "wide":
        return 1.0 + 2.5 * rng.standard_normal(size)
    raise ValueError(kind)


@dataclass(frozen=True)
class Cell:
    """An individual whose contributions, in sd of the rest, come in some of n databases."""

    group: str
    distribution: str
    n: int
    kind: str
    size: float
    present: int
    others: str = "none"

    @property
    def name(self) -> str:
        who = f"{self.kind} {self.size:g} in {self.present}"
        return f"{self.group}, {self.distribution}, n={self.n}, {who}, others {self.others}"

    def sizes(self) -> np.ndarray:
        """Return the mean contributions of the others, the same in every repetition."""
        rng = np.random.default_rng(7)
        if self.others == "none":
            return np.empty(0)
        if "Pareto" in self.others:
            return 0.01 * (1.0 + rng.pareto(1.5, OTHERS)).clip(max=10.0)
        return 0.02 * np.exp(0.5 * rng.standard_normal(OTHERS))

    def sample(self, repetition: int) -> Responses:
        """Draw databases; the individual is the first of all."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), repetition])
        w, m, s = standardised(self.distribution)
        k = rng.choice(w.size, self.n, p=w)
        rest = m[k] + s[k] * rng.standard_normal(self.n)
        sizes = self.sizes()
        there = np.ones((self.n, sizes.size), dtype=bool)
        if self.others.startswith("once"):
            there[:] = False
            there[rng.integers(0, self.n, sizes.size), np.arange(sizes.size)] = True
        elif self.others.startswith("rarely"):
            there = rng.random(there.shape) < 0.05
        others = there * sizes * (1.0 + 0.3 * rng.standard_normal(there.shape))
        present = np.zeros(self.n, dtype=bool)
        present[rng.permutation(self.n)[: self.present]] = True
        own = present * self.size * shape(self.kind, rng, self.n)
        contribution = sp.csc_array(np.column_stack([own, others]))
        return Responses.from_arrays(rest + contribution.sum(axis=1), contribution=contribution)

    @property
    def truth(self) -> np.ndarray:
        """Return the true delta_i; the others' sum is taken to be normal."""
        return _truth(self)


@cache
def _truth(cell: Cell) -> np.ndarray:
    w, m, s = standardised(cell.distribution)
    sizes = cell.sizes()
    chance = {"n": 0.0, "o": 1.0 / cell.n, "r": 0.05, "a": 1.0}[cell.others[0]]
    extra = float((sizes**2 * (1.09 * chance - chance**2)).sum())
    s = np.sqrt(s**2 + extra)
    rho = cell.present / cell.n
    if cell.kind in ("constant", "normal", "wide"):
        spread = {"constant": 0.0, "normal": 0.3, "wide": 2.5}[cell.kind] * cell.size
        moved, wide = m + cell.size, np.sqrt(s**2 + spread**2)
        p = np.concatenate([(1 - rho) * w, rho * w])
        q = np.concatenate([m, m]), np.concatenate([s, s])
        return gaussian.curves(
            p[None],
            np.concatenate([m, moved])[None],
            np.concatenate([s, wide])[None],
            p[None, None],
            q[0][None, None],
            q[1][None, None],
            EPSILON,
        )[0, 0]
    # The distribution of contributions by its quantiles, the integral on a fine grid.
    drawn = np.sort(cell.size * shape(cell.kind, np.random.default_rng(3), 400_000))[50::100]
    top = min(float(drawn[-1]), 60.0) + 8.0
    x = np.concatenate([np.linspace(-8.0, 8.0, 6001), np.linspace(8.0, top, 4001)[1:]])
    q = sum(a * stats.norm.pdf(x, b, c) for a, b, c in zip(w, m, s, strict=True))
    g = np.zeros_like(x)
    for part in np.array_split(drawn, 40):
        for a, b, c in zip(w, m, s, strict=True):
            g += a * stats.norm.pdf(x[:, None], b + part, c).sum(axis=1)
    p = (1 - rho) * q + rho * g / drawn.size

    def excess(one: np.ndarray, other: np.ndarray) -> list[float]:
        return [np.trapezoid(np.clip(one - np.exp(e) * other, 0.0, None), x) for e in EPSILON]

    return np.maximum(excess(p, q), excess(q, p))


def all_cells() -> Iterator[Cell]:
    for distribution, n, size in itertools.product(MARRON_WAND, (41, 100, 400), (0.1, 0.4, 1.0)):
        yield Cell("distributions", distribution, n, "normal", size, n)
    for size, present, others in itertools.product(
        (0.3, 1.0, 3.0, 10.0), (1, 5, 20, 41), ("once", "rarely, Pareto", "always")
    ):
        kind = "constant" if present == 1 else "normal"
        yield Cell("exposed", "normal", 41, kind, size, present, others)
    for kind, size, present in itertools.product(
        ("lognormal", "Pareto", "one large"), (0.1, 0.5, 2.0), (10, 41)
    ):
        yield Cell("heavy-tailed", "normal", 41, kind, size, present, "rarely")
    for kind, size, present in (
        ("wide", 2.0, 41), ("wide", 2.0, 20), ("wide", 0.5, 41), ("wide", 0.5, 10),
        ("normal", 5.0, 41),
    ):  # fmt: skip
        yield Cell("dominant", "normal", 41, kind, size, present)


def _thin(n: int) -> int:
    return max(5, 1000 // n)


METHODS = {
    "default": lambda n: DirichletProcessMixture(thin=_thin(n)),
    "one scale": lambda n: DirichletProcessMixture(
        base_measure=BaseMeasure(scale_shape=None), thin=_thin(n)
    ),
    "smoothed bootstrap": lambda n: SmoothedBootstrap(),
}


def delta_of(responses: Responses, method: str, seed: int, epsilon: np.ndarray) -> np.ndarray:
    """Draws of delta, shape (DRAWS, epsilon)."""
    settings = SamplerSettings(
        draws=DRAWS, tune=TUNE, chains=1, random_seed=seed, progressbar=False, cores=1
    )
    coupling = METHODS[method](responses.n_databases).fit(responses, settings).coupling
    return evaluate(coupling, epsilon, progressbar=False).delta


def once(cell: Cell, method: str, repetition: int) -> np.ndarray:
    """Lower end, median and upper end of the band, and the upper limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = delta_of(cell.sample(repetition), method, repetition, EPSILON)
        lower, upper = bands.pointwise(draws, 0.95)
        limit = bands.upper_limit(draws, 0.95)
    return np.stack([lower, np.median(draws, axis=0), upper, limit])


def _job(task: tuple[Cell, str, int, int]) -> np.ndarray:
    cell, method, first, count = task
    return np.stack([once(cell, method, first + k) for k in range(count)])


def rows_of(cell: Cell, method: str, values: np.ndarray) -> Iterator[dict[str, object]]:
    truth = cell.truth
    lower, _, upper, limit = np.moveaxis(values, 1, 0)
    for e, epsilon in enumerate(EPSILON):
        if not SMALLEST <= truth[e] <= LARGEST:
            continue
        yield {
            "group": cell.group,
            "distribution": cell.distribution,
            "n": cell.n,
            "kind": cell.kind,
            "size": cell.size,
            "present": cell.present,
            "others": cell.others,
            "method": method,
            "epsilon": epsilon,
            "truth": truth[e],
            "repetitions": len(values),
            "band_below": (upper[:, e] < truth[e]).mean(),
            "limit_holds": (limit[:, e] >= truth[e]).mean(),
            "covers": ((lower[:, e] <= truth[e]) & (truth[e] <= upper[:, e])).mean(),
            "width": np.median(upper[:, e] - lower[:, e]),
            "limit": np.median(limit[:, e]),
        }


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means and worst cells by group and n, with the 99% Wilson intervals that decide."""

    def ends(share: pd.Series, side: str) -> np.ndarray:
        counts = zip(share, table.loc[share.index, "repetitions"], strict=True)
        found = [
            stats.binomtest(round(p * n), n).proportion_ci(0.99, method="wilson") for p, n in counts
        ]
        return np.array([getattr(one, side) for one in found])

    rows = []
    for key, part in table.groupby(["method", "group", "n"], sort=False):
        rows.append(
            {
                **dict(zip(("method", "group", "n"), key, strict=True)),
                "cells": len(part),
                "band below": part["band_below"].mean(),
                "cells above 10%": int((ends(part["band_below"], "low") > 0.1).sum()),
                "limit holds": part["limit_holds"].mean(),
                "least": part["limit_holds"].min(),
                "cells below 90%": int((ends(part["limit_holds"], "high") < 0.9).sum()),
            }
        )
    return pd.DataFrame(rows)


def worst(table: pd.DataFrame) -> str:
    """List the default's cells whose upper limit holds least often."""
    cells = table[table["method"] == "default"].nsmallest(WORST, "limit_holds", keep="first")
    names = ["group", "distribution", "n", "kind", "size", "present", "others", "epsilon", "truth"]
    shown = cells[[*names, "limit_holds", "band_below", "limit", "repetitions"]]
    return f"The {WORST} cells of the default whose limit holds least often:\n\n{markdown(shown)}"


def markdown(table: pd.DataFrame) -> str:
    rows = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in row] for row in table.values]
    lines = [list(table.columns), ["---"] * table.shape[1], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


KEY = ["group", "distribution", "n", "kind", "size", "present", "others", "method", "epsilon"]


def store(rows: Iterable[dict[str, object]]) -> None:
    """Put rows in place of those of the same cell and method."""
    known = [pd.read_csv(RESULTS)] if RESULTS.exists() else []
    table = pd.concat([*known, pd.DataFrame(rows)], ignore_index=True)
    table = table.drop_duplicates(KEY, keep="last", ignore_index=True)
    with replaced(RESULTS) as target:
        table.to_csv(target, index=False, float_format="%.6g")


def has(known: pd.DataFrame, cell: Cell, method: str, repetitions: int) -> bool:
    """Whether a cell was run that often; one without a visible truth has no rows."""
    if not known.size:
        return False
    who = vars(cell) | {"method": method}
    there = known[(known[list(who)] == pd.Series(who)).all(axis=1)]
    return bool(len(there)) and bool((there["repetitions"] >= repetitions).all())


def run(method: str, cells: str, repetitions: int, workers: int) -> None:
    """Run what is missing; what is finished is kept cell by cell."""
    known = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame()
    missing = [
        cell
        for cell in all_cells()
        if re.search(cells, cell.name) and not has(known, cell, method, repetitions)
    ]
    tasks = [
        (cell, method, first, min(BATCH, repetitions - first))
        for cell in missing
        for first in range(0, repetitions, BATCH)
    ]
    each = math.ceil(repetitions / BATCH)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        batches = pool.map(_job, tasks)
        for done, cell in enumerate(missing, start=1):
            values = np.concatenate(list(itertools.islice(batches, each)))
            store(rows_of(cell, method, values))
            print(f"{done} of {len(missing)}: {cell.name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=["default"], choices=list(METHODS))
    parser.add_argument("--cells", default=".*", help="regular expression on the cells' names")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--collect", action="store_true", help="only print the summary")
    options = parser.parse_args()
    if not options.collect:
        for method in options.methods:
            run(method, options.cells, options.repetitions, options.workers)
    known = pd.read_csv(RESULTS)
    table = summary(known)
    print(table.round(3).to_string(index=False))
    report.put(
        f"{markdown(table)}\n{worst(known)}", "<!-- failures -->", "<!-- end of failures -->"
    )


if __name__ == "__main__":
    main()
