"""Repeat, count and keep: the study resumes where it stopped."""

from __future__ import annotations

import itertools
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from edp_bayes.responses.responses import Responses
from tests.calibration.methods import METHODS, run_once
from tests.calibration.scenarios import (
    DATABASES,
    DISTRIBUTIONS,
    EPSILON,
    INDIVIDUALS,
    REPORTED,
    Scenario,
)

CACHE = Path(__file__).parent / ".cache"
RESULTS = Path(__file__).parent / "results.csv"
BATCH = 20
SMALLEST, LARGEST = 1e-4, 0.9
PROB = 0.95
FIELDS = ("lower", "median", "upper", "lower_curve", "upper_curve")

type Pair = tuple[Scenario, str]  # a cell and a method


def all_scenarios() -> Iterator[Scenario]:
    """Every R x n x individual with populations of 1 and 300, and the large populations."""
    for size, *cell in itertools.product((1, 300), DISTRIBUTIONS, DATABASES, INDIVIDUALS):
        yield Scenario(*cell, size)
    for cell in itertools.product(("normal", "skewed"), (41, 100), INDIVIDUALS):
        yield Scenario(*cell, 10_000)


def responses_of(scenario: Scenario, repetition: int) -> Responses:
    """Draw the databases of one repetition of a cell, whoever asks the same."""
    seed = zlib.crc32(scenario.name.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scenario.sample(np.random.default_rng([seed, repetition]))


def batch(scenario: Scenario, method: str, first: int, count: int) -> dict[str, np.ndarray]:
    """Bands of some repetitions, one array (repetition, field, epsilon) a quantity."""
    found: dict[str, list[np.ndarray]] = {}
    for repetition in range(first, first + count):
        responses = responses_of(scenario, repetition)
        for quantity, bands in run_once(method, responses, repetition).items():
            if quantity in scenario.truth:
                row = np.stack([getattr(bands, name) for name in FIELDS])
                found.setdefault(quantity, []).append(row)
    return {quantity: np.stack(rows) for quantity, rows in found.items()}


def _path(scenario: Scenario, method: str, first: int) -> Path:
    key = f"{scenario.name}, {method}".replace(" ", "_").replace("%", "").replace(",", "")
    return CACHE / f"{key}__{first}.npz"


def _job(task: tuple[Scenario, str, int]) -> str:
    scenario, method, first = task
    path = _path(scenario, method, first)
    if not path.exists():
        results = batch(scenario, method, first, BATCH)
        temporary = path.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(temporary, **results)
        temporary.replace(path)
    return path.name


def run(pairs: Sequence[Pair], first: int, repetitions: int, workers: int) -> None:
    """Run what is not kept yet, a batch at a time, all cells before more repetitions of one."""
    CACHE.mkdir(exist_ok=True)
    tasks = [
        (scenario, method, start)
        for start in range(first, first + repetitions, BATCH)
        for scenario, method in pairs
        if not _path(scenario, method, start).exists()
    ]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for count, _ in enumerate(pool.map(_job, tasks), 1):
            if count % 20 == 0:
                print(f"{count} of {len(tasks)} batches", flush=True)


def collect(scenarios: Iterable[Scenario], methods: Iterable[str], first: int) -> pd.DataFrame:
    """One row a cell, method, quantity and reported epsilon whose truth is within range.

    Of the repetitions from `first` on.
    """
    rows = []
    for scenario, method in itertools.product(scenarios, methods):
        for quantity, values in kept(scenario, method, first).items():
            rows.extend(rows_of(scenario, method, quantity, first, values))
    return pd.DataFrame(rows)


def kept(scenario: Scenario, method: str, first: int) -> dict[str, np.ndarray]:
    """Bands (repetition, field, epsilon) of each quantity that were run from `first` on."""
    parts = []
    while (path := _path(scenario, method, first)).exists():
        with np.load(path) as data:
            parts.append({name: data[name] for name in data.files})
        first += BATCH
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts or [{}])[0]}


CELL = ["population", "distribution", "n", "individual", "method", "quantity", "epsilon"]
AVERAGED = [
    "coverage",
    "truth_below",
    "truth_above",
    "width",
    "width_that_covers",
    "bias",
    "simultaneous",
]


def with_earlier(table: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """Add what other runs, perhaps on other machines, have found for other repetitions.

    Of two runs that begin with the same repetition the longer one is taken.
    """
    both = pd.concat([table, earlier], ignore_index=True)
    both = both.sort_values("repetitions", ascending=False, kind="stable")
    both = both.drop_duplicates([*CELL, "first"])
    orders = {"distribution": DISTRIBUTIONS, "individual": INDIVIDUALS, "method": METHODS}
    for name, values in orders.items():
        both[name] = pd.Categorical(both[name], list(values))
    both = both.sort_values([*CELL, "first"], ignore_index=True)
    end = both["first"] + both["repetitions"]
    before = end.groupby([both[name] for name in CELL], observed=True).shift(fill_value=0)
    if (both["first"] < before).any():
        raise ValueError("two runs hold the same repetitions of a cell: begin after the last one")
    return both


def missing(
    earlier: pd.DataFrame, pairs: Iterable[Pair], first: int, repetitions: int
) -> list[Pair]:
    """Return the pairs of which the results lack repetitions that are wanted.

    Raise if a run would repeat what they hold from a run that began elsewhere.
    """
    last, left = first + repetitions, []
    runs = {
        key: {(begin, begin + count) for begin, count in part.to_numpy()}
        for key, part in earlier.groupby(CELL[:5], observed=True)[["first", "repetitions"]]
    }
    for scenario, method in pairs:
        cell = (scenario.population, scenario.distribution, scenario.n, scenario.individual, method)
        held = {run for run in runs.get(cell, ()) if run[0] < last and run[1] > first}
        if sum(min(end, last) - max(begin, first) for begin, end in held) >= repetitions:
            continue
        others = [run for run in held if run[0] != first]
        if others:
            raise ValueError(
                f"the results hold repetitions {min(begin for begin, _ in others)} to "
                f"{max(end for _, end in others) - 1} of {scenario.name}, {method}: begin after "
                "the last one (--first), or choose other cells (--cells)"
            )
        left.append((scenario, method))
    return left


def pooled(table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: coverage over all repetitions, means of the runs' medians."""
    weight = table["repetitions"]
    sums = table[AVERAGED].mul(weight, axis=0).assign(repetitions=weight, truth=table["truth"])
    groups = sums.groupby([table[name] for name in CELL], observed=True)
    out = groups[[*AVERAGED, "repetitions"]].sum()
    out[AVERAGED] = out[AVERAGED].div(out["repetitions"], axis=0)
    known = groups["width_that_covers"].count() == groups.size()
    out["width_that_covers"] = out["width_that_covers"].where(known)
    out["truth"] = groups["truth"].first()
    ends = [
        stats.binomtest(round(c * n), n).proportion_ci(0.99, method="wilson")
        for c, n in zip(out["coverage"], out["repetitions"].astype(int), strict=True)
    ]
    out["repetitions"] = out["repetitions"].astype(int)
    out["coverage_low"] = [end.low for end in ends]
    out["coverage_high"] = [end.high for end in ends]
    return out.reset_index()


def rows_of(
    scenario: Scenario, method: str, quantity: str, first: int, values: np.ndarray
) -> Iterator[dict[str, object]]:
    truth = scenario.truth[quantity]
    lower, median, upper, lower_curve, upper_curve = np.moveaxis(values, 1, 0)
    in_range = (truth >= SMALLEST) & (truth <= LARGEST)
    held = ((lower_curve <= truth) & (truth <= upper_curve))[:, in_range].all(axis=1)
    for epsilon in REPORTED:
        e = int(np.flatnonzero(epsilon == EPSILON)[0])
        if not in_range[e]:
            continue
        covered = (lower[:, e] <= truth[e]) & (truth[e] <= upper[:, e])
        width = float(np.median(upper[:, e] - lower[:, e]))
        stretch = _stretch(lower[:, e], median[:, e], upper[:, e], truth[e])
        yield {
            "distribution": scenario.distribution,
            "n": scenario.n,
            "individual": scenario.individual,
            "population": scenario.population,
            "method": method,
            "quantity": quantity,
            "epsilon": epsilon,
            "truth": truth[e],
            "first": first,
            "repetitions": covered.size,
            "coverage": covered.mean(),
            "truth_below": (truth[e] < lower[:, e]).mean(),
            "truth_above": (truth[e] > upper[:, e]).mean(),
            "width": width,
            "width_that_covers": width * stretch if np.isfinite(stretch) else np.inf,
            "bias": np.median(median[:, e] - truth[e]),
            "simultaneous": held.mean(),
        }


def _stretch(lower: np.ndarray, median: np.ndarray, upper: np.ndarray, truth: float) -> float:
    """By how much bands must be stretched, seen from the median, to hold the truth in 95%.

    Infinite where the truth is on a side on which too many bands have no width.
    """
    side = np.where(truth > median, upper, lower) - median
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(truth == median, 0.0, np.abs((truth - median) / side))
    return float(np.quantile(needed, PROB, method="inverted_cdf"))
