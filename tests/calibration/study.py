"""Repeat, count and keep: the study resumes where it stopped."""

from __future__ import annotations

import itertools
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from tests.calibration.methods import METHODS, run_once
from tests.calibration.scenarios import (
    DATABASES,
    EPSILON,
    INDIVIDUALS,
    LAWS,
    REPORTED,
    Scenario,
)

CACHE = Path(__file__).parent / ".cache"
RESULTS = Path(__file__).parent / "results.csv"
BATCH = 20
SMALLEST, LARGEST = 1e-4, 0.9
FIELDS = ("lower", "median", "upper", "lower_curve", "upper_curve")


def all_scenarios() -> Iterator[Scenario]:
    """Every R x n x individual with populations of 1 and 300, and the large populations."""
    for population, law, n, individual in itertools.product((1, 300), LAWS, DATABASES, INDIVIDUALS):
        yield Scenario(law, n, individual, population)
    for law, n, individual in itertools.product(("normal", "skewed"), (41, 100), INDIVIDUALS):
        yield Scenario(law, n, individual, 10_000)


def batch(scenario: Scenario, method: str, first: int, count: int) -> dict[str, np.ndarray]:
    """Bands of some repetitions, one array (repetition, field, epsilon) a quantity."""
    found: dict[str, list[np.ndarray]] = {}
    for repetition in range(first, first + count):
        seed = zlib.crc32(scenario.name.encode())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            responses = scenario.sample(np.random.default_rng([seed, repetition]))
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


def run(
    scenarios: Iterable[Scenario], methods: Iterable[str], repetitions: int, workers: int
) -> None:
    """Run what is missing, a batch at a time, all cells before more repetitions of one."""
    CACHE.mkdir(exist_ok=True)
    cells = list(scenarios)
    tasks = [
        (scenario, method, first)
        for first in range(0, repetitions, BATCH)
        for method in methods
        for scenario in cells
        if not _path(scenario, method, first).exists()
    ]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for count, _ in enumerate(pool.map(_job, tasks), 1):
            if count % 20 == 0:
                print(f"{count} of {len(tasks)} batches", flush=True)


def collect(scenarios: Iterable[Scenario], methods: Iterable[str]) -> pd.DataFrame:
    """One row a cell, method, quantity and reported epsilon whose truth is within range."""
    rows = []
    for scenario, method in itertools.product(scenarios, methods):
        parts = []
        first = 0
        while (path := _path(scenario, method, first)).exists():
            with np.load(path) as data:
                parts.append({name: data[name] for name in data.files})
            first += BATCH
        if not parts:
            continue
        for quantity in parts[0]:
            values = np.concatenate([part[quantity] for part in parts])
            rows.extend(_rows(scenario, method, quantity, values))
    return pd.DataFrame(rows)


ORDER = ["population", "law", "n", "individual", "method", "quantity", "epsilon"]


def with_earlier(table: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """Take every cell from the run that repeated it more often."""
    both = pd.concat([table, earlier], ignore_index=True)
    both = both.sort_values("repetitions", ascending=False, kind="stable").drop_duplicates(ORDER)
    for name, values in (("law", LAWS), ("individual", INDIVIDUALS), ("method", METHODS)):
        both[name] = pd.Categorical(both[name], list(values))
    return both.sort_values(ORDER, ignore_index=True)


def _rows(
    scenario: Scenario, method: str, quantity: str, values: np.ndarray
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
        interval = stats.binomtest(int(covered.sum()), covered.size).proportion_ci(
            0.99, method="wilson"
        )
        yield {
            "law": scenario.law,
            "n": scenario.n,
            "individual": scenario.individual,
            "population": scenario.population,
            "method": method,
            "quantity": quantity,
            "epsilon": epsilon,
            "truth": truth[e],
            "repetitions": covered.size,
            "coverage": covered.mean(),
            "coverage_low": interval.low,
            "coverage_high": interval.high,
            "truth_below": (truth[e] < lower[:, e]).mean(),
            "truth_above": (truth[e] > upper[:, e]).mean(),
            "width": np.median(upper[:, e] - lower[:, e]),
            "bias": np.median(median[:, e] - truth[e]),
            "simultaneous": held.mean(),
        }
