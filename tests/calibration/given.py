"""The study of audits given an adversary: ``uv run python -m tests.calibration.given``.

Databases in the order of time, innovations normal or skewed, and one individual among none or 300
others. The truth is delta_i of the next database given the earlier releases. Each cell tells how
often the 95% band lies wholly below or above it, how often the upper limit of 95% holds, how wide
the band is, and how often the checks of order notice what the adversary was not told. Runs what
given.csv lacks.
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
from scipy import stats

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.diagnostics import check_databases
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.models.base import fit_as_asked
from edp_bayes.models.regression import regression_on
from edp_bayes.responses.responses import Responses
from edp_bayes.results import bands
from edp_bayes.results.effects import DEPENDENCE
from edp_bayes.utils.files import replaced
from tests.calibration import report

RESULTS = Path(__file__).parent / "given.csv"
EPSILON = np.array([0.03, 0.15, 0.4])
SMALLEST = 1e-4  # truths below it are not judged
SIZES, DATABASES, INNOVATIONS = (0.4, 0.1), (41, 78, 150), ("normal", "skewed")
DRAWS, TUNE, BATCH, SWEEPS = 199, 500, 25, 400
SPREAD = 0.3  # of a contribution, relative to its size
PERIOD, BURN = 13, 100
SHAPE = 4.0  # of the Gamma distribution of skewed innovations
PEOPLE, SMALL = 300, 0.02
OWN_SEASON, STAYS = 0.8, 0.9  # amplitude; probability that a spell or an absence goes on
# No adversary; who knows all there is; who misses something.
NAMES = ("plain", "given", "without")


@dataclass(frozen=True)
class Process:
    """How the databases follow each other.

    Parameters
    ----------
    kind : str
        What is particular of the individuals or of the noise; empty if nothing.
    lag : float
        Coefficient of the last response.
    trend : float
        Over the series, in innovation standard deviations.
    season : float
        Its standard deviation.
    known, unknown : dict
        Further arguments of the adversary who knows all, and of one who misses something.
    others : bool
        Whether there are 300 more individuals.
    """

    kind: str = ""
    lag: float = 0.0
    trend: float = 0.0
    season: float = 0.0
    known: tuple[tuple[str, object], ...] = ()
    unknown: tuple[tuple[str, object], ...] | None = None
    others: bool = False


CALENDAR: tuple[tuple[str, object], ...] = (("trend", True),)
SEASONAL = (*CALENDAR, ("season", PERIOD))
SCALED = (*CALENDAR, ("changing_scale", True))
PROCESSES = {
    "independent": Process(known=CALENDAR),
    "independent, 300 others": Process(known=CALENDAR, others=True),
    "AR 0.6": Process(lag=0.6, known=CALENDAR),
    "AR 0.9": Process(lag=0.9, known=CALENDAR),
    "trend": Process(trend=2.0, known=CALENDAR, unknown=()),
    "season": Process(season=1.0, known=SEASONAL, unknown=CALENDAR),
    "AR 0.6, trend, season": Process(
        lag=0.6, trend=2.0, season=1.0, known=SEASONAL, unknown=CALENDAR
    ),
    "scale halves": Process("scale", known=SCALED, unknown=CALENDAR),
    "latent AR 0.8": Process("latent", known=CALENDAR),
    "level shift": Process("shift", known=CALENDAR),
    "own season, peak": Process("peak", known=SEASONAL, unknown=CALENDAR),
    "own season, trough": Process("trough", known=SEASONAL, unknown=CALENDAR),
    "spells": Process("spells", known=CALENDAR),
    "falling activity": Process("falling", known=CALENDAR, unknown=(), others=True),
    "growing activity": Process("growing", known=CALENDAR, unknown=(), others=True),
}
ACTIVITY = {"falling": (0.6, 0.15), "growing": (0.25, 0.75)}  # presence from first to next


@dataclass(frozen=True)
class Cell:
    """A process, the innovations, the number of databases and the size of a contribution."""

    process: str
    innovations: str
    n: int
    size: float

    @property
    def name(self) -> str:
        return f"{self.process}, {self.innovations}, n={self.n}, {self.size:g}"

    @property
    def of(self) -> Process:
        return PROCESSES[self.process]

    def adversary(self, method: str) -> Adversary | None:
        if method == "plain":
            return None
        told = self.of.unknown if method == "without" else self.of.known
        return Adversary(past=2, **dict(told or ()))  # type: ignore[arg-type]

    @property
    def methods(self) -> tuple[str, ...]:
        return NAMES if self.of.unknown is not None else NAMES[:2]

    def sample(self, repetition: int) -> tuple[Responses, np.ndarray]:
        """Draw databases and return the true delta_i of the next; the individual is the first."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), repetition])
        n, kind = self.n, self.of.kind
        time = np.arange(n)
        there = self._presence(rng)
        own = there[:, 0] * self._means(time) * (1.0 + SPREAD * rng.standard_normal(n))
        others = SMALL * there[:, 1:] * (1.0 + SPREAD * rng.standard_normal(there[:, 1:].shape))
        contribution = np.column_stack([own, others])
        entering = contribution.sum(axis=1)
        if kind == "latent":
            y = _latent(rng, n) + entering
        else:
            place = self.of.trend * time / n + (2.0 if kind == "shift" else 0.0) * (time >= n // 2)
            place = place + self.of.season * np.sqrt(2.0) * np.cos(2 * np.pi * time / PERIOD)
            y = place + self._recursion(rng, entering)
        responses = Responses.from_arrays(y, contribution=contribution, additive=True)
        return responses, self._truth(y)

    def _scale(self, time: np.ndarray | int) -> np.ndarray:
        """Standard deviation of the innovations, relative to that of the next database."""
        halving = 1.0 if self.of.kind == "scale" else 0.0
        return np.exp2(halving * (1.0 - np.asarray(time) / self.n))

    def _means(self, time: np.ndarray | int) -> np.ndarray:
        """Mean contributions of the individual where present."""
        if self.of.kind not in ("peak", "trough"):
            return np.full(np.shape(time), self.size)
        sign = 1.0 if self.of.kind == "peak" else -1.0
        wave = np.cos(2 * np.pi * (np.asarray(time) - self.n) / PERIOD)
        return self.size * (1.0 + sign * OWN_SEASON * wave)

    def _presence(self, rng: np.random.Generator) -> np.ndarray:
        people = 1 + (PEOPLE if self.of.others else 0)
        if self.of.kind == "spells":
            changes = rng.random(self.n) > STAYS
            return ((rng.integers(2) + changes.cumsum()) % 2).astype(float)[:, None]
        return rng.random((self.n, people)) < self._shares(np.arange(self.n))[:, None]

    def _shares(self, time: np.ndarray) -> np.ndarray:
        first, last = ACTIVITY.get(self.of.kind, (1.0, 1.0))
        return first + (last - first) * time / self.n

    def _recursion(self, rng: np.random.Generator, entering: np.ndarray) -> np.ndarray:
        """Innovations and contributions, each carried over in part to the next response."""
        early = self._innovations(rng, BURN)
        drawn = self._innovations(rng, self.n) * self._scale(np.arange(self.n))
        innovations = np.concatenate([early, drawn + entering - entering.mean()])
        if self.of.lag == 0.0:
            return innovations[BURN:] + entering.mean()
        out, last = np.empty(innovations.size), 0.0
        for k, innovation in enumerate(innovations):
            out[k] = last = self.of.lag * last + innovation
        return out[BURN:]

    def _innovations(self, rng: np.random.Generator, count: int) -> np.ndarray:
        if self.innovations == "normal":
            return rng.standard_normal(count)
        return (rng.gamma(SHAPE, size=count) - SHAPE) / np.sqrt(SHAPE)

    def _truth(self, y: np.ndarray) -> np.ndarray:
        presence = 1.0
        if self.of.kind == "spells":
            presence = _filtered(self, y)
        elif self.of.kind in ACTIVITY:
            presence = float(self._shares(np.array(self.n)))
        shares, curves = _curves(self)
        return np.array([np.interp(presence, shares, curve) for curve in curves.T])


GRID = np.linspace(-9.0, 14.0, 23_001)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


def _density(innovations: str, x: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """Density of an innovation plus a normal variable."""
    total = np.zeros_like(x)
    for node, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        at = x - mean - np.sqrt(variance) * node
        if innovations == "normal":
            total += weight * stats.norm.pdf(at)
        else:
            root = np.sqrt(SHAPE)
            total += weight * root * stats.gamma.pdf(root * at + SHAPE, SHAPE)
    return total


def _pair(cell: Cell, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Densities of the next response without the individual, and with them present."""
    size, variance = float(cell._means(cell.n)), 0.0
    if cell.of.others:
        share = float(cell._shares(np.array(cell.n)))
        variance = PEOPLE * SMALL**2 * (share * (1.0 + SPREAD**2) - share**2)
    more = variance + (SPREAD * size) ** 2
    return _density(cell.innovations, x, 0.0, variance), _density(cell.innovations, x, size, more)


@cache
def _curves(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Presence, and delta_i over EPSILON for each."""
    shares = np.linspace(0.0, 1.0, 101)
    without, present = _pair(cell, GRID)

    def excess(one: np.ndarray, other: np.ndarray) -> list[float]:
        return [
            float(np.trapezoid(np.clip(one - np.exp(e) * other, 0.0, None), GRID)) for e in EPSILON
        ]

    rows = []
    for share in shares:
        p = (1.0 - share) * without + share * present
        rows.append(np.maximum(excess(p, without), excess(without, p)))
    return shares, np.array(rows)


def _filtered(cell: Cell, y: np.ndarray) -> float:
    """Probability that the individual is there next, given the earlier releases."""
    absent, present = _pair(cell, y)
    share = 0.5
    for there, away in zip(present, absent, strict=True):
        after = share * there / (share * there + (1.0 - share) * away)
        share = STAYS * after + (1.0 - STAYS) * (1.0 - after)
    return share


def _latent(rng: np.random.Generator, n: int) -> np.ndarray:
    """An autoregression seen with noise; one step ahead, by Kalman's filter, its variance is one.

    The filter's variance settles within the series. What contributions add to the noise changes
    it by less than a hundredth.
    """
    lag, noise, step, variance = 0.8, 1.0, 0.36, 1.0
    for _ in range(200):
        variance = lag**2 * variance * noise / (variance + noise) + step
    state, out = rng.standard_normal(), np.empty(n)
    for k in range(n):
        out[k] = state + np.sqrt(noise) * rng.standard_normal()
        state = lag * state + np.sqrt(step) * rng.standard_normal()
    return out / np.sqrt(variance + noise)


def all_cells() -> Iterator[Cell]:
    for process, innovations, n, size in itertools.product(
        PROCESSES, INNOVATIONS, DATABASES, SIZES
    ):
        # what Kalman's filter gives is exact for normal innovations alone
        if PROCESSES[process].kind != "latent" or innovations == "normal":
            yield Cell(process, innovations, n, size)


def once(cell: Cell, method: str, repetition: int) -> np.ndarray:
    """Truth, lower end, upper end, upper limit, and whether a check of order fails."""
    settings = SamplerSettings(
        draws=DRAWS, tune=TUNE, chains=1, random_seed=repetition, progressbar=False, cores=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        responses, truth = cell.sample(repetition)
        regression = regression_on(responses, cell.adversary(method))
        model = DirichletProcessMixture(thin=max(5, SWEEPS // cell.n))
        fitted = fit_as_asked(model, regression or responses, settings)
        draws = fitted.coupling.curves(np.array([0]), EPSILON)[:, 0]
        lower, upper = bands.pointwise(draws, 0.95)
        limit = bands.upper_limit(draws, 0.95)
        in_question = fitted.in_question
        checks = check_databases(
            responses if in_question is None else in_question.responses,
            scores=None if in_question is None else in_question.scores,
            past=0 if regression is None else regression.known.past,
        ).checks
    noticed = any(check.name in DEPENDENCE and not check.passed for check in checks)
    return np.stack([truth, lower, upper, limit, np.full_like(truth, noticed)])


def _job(task: tuple[Cell, str, int, int]) -> np.ndarray:
    cell, method, first, count = task
    return np.stack([once(cell, method, first + k) for k in range(count)])


def rows_of(cell: Cell, method: str, values: np.ndarray) -> Iterator[dict[str, object]]:
    for e, epsilon in enumerate(EPSILON):
        truth, lower, upper, limit, noticed = values[:, :, e].T
        yield {
            **vars(cell),
            "method": method,
            "epsilon": epsilon,
            "truth": truth.mean(),
            "repetitions": len(values),
            "covers": ((lower <= truth) & (truth <= upper)).mean(),
            "band_below": (upper < truth).mean(),
            "band_above": (lower > truth).mean(),
            "limit_holds": (limit >= truth).mean(),
            "width": np.median(upper - lower),
            "noticed": noticed.mean(),
        }


KEY = ["process", "innovations", "n", "size", "method", "epsilon"]


def store(rows: Iterable[dict[str, object]]) -> None:
    """Put rows in place of those of the same cell and method."""
    known = [pd.read_csv(RESULTS)] if RESULTS.exists() else []
    table = pd.concat([*known, pd.DataFrame(rows)], ignore_index=True)
    table = table.drop_duplicates(KEY, keep="last", ignore_index=True)
    orders = {"process": PROCESSES, "innovations": INNOVATIONS, "method": NAMES}
    for name, values in orders.items():
        table[name] = pd.Categorical(table[name], list(values))
    table = table.sort_values(KEY, ignore_index=True)
    with replaced(RESULTS) as target:
        table.to_csv(target, index=False, float_format="%.6g")


def missing(cells: str, methods: Iterable[str], repetitions: int) -> list[tuple[Cell, str]]:
    """Return what the results do not hold so often."""
    held: set[tuple[object, ...]] = set()
    if RESULTS.exists():
        table = pd.read_csv(RESULTS)
        often = table[table["repetitions"] >= repetitions]
        held = set(often[KEY[:5]].itertuples(index=False, name=None))
    return [
        (cell, method)
        for cell in all_cells()
        for method in cell.methods
        if method in methods
        and re.search(cells, cell.name)
        and (*vars(cell).values(), method) not in held
    ]


def run(wanted: list[tuple[Cell, str]], repetitions: int, workers: int) -> None:
    """Run cells; what is finished is kept cell by cell."""
    tasks = [
        (cell, method, first, min(BATCH, repetitions - first))
        for cell, method in wanted
        for first in range(0, repetitions, BATCH)
    ]
    each = math.ceil(repetitions / BATCH)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        batches = pool.map(_job, tasks)
        for done, (cell, method) in enumerate(wanted, start=1):
            values = np.concatenate(list(itertools.islice(batches, each)))
            store(rows_of(cell, method, values))
            print(f"{done} of {len(wanted)}: {cell.name}, {method}", flush=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means by process, method and n; widths over those of the plain audit, where independent."""
    wilson = [
        stats.binomtest(round(p * k), int(k)).proportion_ci(0.99, method="wilson").low
        for p, k in zip(table["band_below"], table["repetitions"], strict=True)
    ]
    key = ["innovations", "n", "size", "epsilon"]
    plain = table[(table["process"] == "independent") & (table["method"] == "plain")]
    base = plain.set_index(key)["width"]
    wide = table["width"].to_numpy() / base.reindex(pd.MultiIndex.from_frame(table[key])).to_numpy()
    table = table.assign(low=np.array(wilson) > 0.1, wide=wide)
    table = table[table["truth"] >= SMALLEST]
    rows = []
    for names, part in table.groupby(["process", "method", "n"], sort=False, observed=True):
        rows.append(
            {
                **dict(zip(("process", "adversary", "n"), names, strict=True)),
                "cells": len(part),
                "band below": part["band_below"].mean(),
                "most": part["band_below"].max(),
                "cells above 10%": int(part["low"].sum()),
                "band above": part["band_above"].mean(),
                "covers": part["covers"].mean(),
                "limit holds": part["limit_holds"].mean(),
                "width": part["wide"].median(),
                "noticed": part["noticed"].mean(),
            }
        )
    return pd.DataFrame(rows)


def markdown(table: pd.DataFrame) -> str:
    shown = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in table.values]
    lines = [list(table.columns), ["---"] * table.shape[1], *shown]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--cells", default=".*", help="regular expression on the cells' names")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--collect", action="store_true", help="only print the summary")
    options = parser.parse_args()
    if not options.collect:
        wanted = missing(options.cells, options.methods, options.repetitions)
        run(wanted, options.repetitions, options.workers)
    table = summary(pd.read_csv(RESULTS))
    print(table.round(3).to_string(index=False))
    report.put(markdown(table), "<!-- given -->", "<!-- end of given -->")


if __name__ == "__main__":
    main()
