"""Exact curves of property queries beside dp_accounting and the literal sums of the paper.

Run ``uv run python -m tests.benchmarks.statistical_privacy``; it prints Markdown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from edp_bayes import statistical_privacy as sp

Array = NDArray[np.float64]
PROB = 0.1
REPEATS = 5


def best(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def literal(epsilon: Array, n: int) -> Array:
    """Both directions as sums over all counts, as the paper writes them."""
    distribution = stats.binom.pmf(np.arange(n), n - 1, PROB)
    plus, minus = np.append(0.0, distribution), np.append(distribution, 0.0)
    growth = np.exp(epsilon)[:, None]
    return np.maximum(
        np.maximum(plus - growth * minus, 0.0).sum(axis=1),
        np.maximum(minus - growth * plus, 0.0).sum(axis=1),
    )


def accounted(epsilon: Array, n: int, interval: float) -> Array:
    """Both directions by privacy loss distributions, one at a time."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    distribution = stats.binom.logpmf(np.arange(n), n - 1, PROB)
    minus = {j: float(v) for j, v in enumerate(distribution)}
    plus = {j + 1: float(v) for j, v in enumerate(distribution)}
    found = []
    for lower, upper in ((minus, plus), (plus, minus)):
        one = pld.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=interval, symmetric=True
        )
        found.append([one.get_delta_for_epsilon(float(e)) for e in epsilon])
    return np.max(found, axis=0)


def exact_rows() -> list[tuple[str, str]]:
    rows = []
    for n, end in ((10**4, 0.5), (10**9, 0.002)):
        epsilon = np.linspace(0.0, end, 1000)
        for name, mechanism in (("pure", None), ("half sampled", sp.Subsampling(rate=0.5))):
            seconds = best(
                lambda e=epsilon, k=n, m=mechanism: sp.delta(k, PROB, epsilon=e, mechanism=m)
            )
            rows.append((f"{name}, n = {n:,}: 1,000 points", milliseconds(seconds)))
    for kind in (sp.GaussianNoise, sp.LaplaceNoise):
        for n in (1000, 10**6):
            epsilon, noise = np.linspace(0.0, 5.0 / np.sqrt(n), 10), kind(3.0 / n)
            seconds = best(
                lambda e=epsilon, k=n, m=noise: sp.delta(k, PROB, epsilon=e, mechanism=m), repeats=3
            )
            name = f"{kind.__name__} of scale 3 / n, n = {n:,}: a point"
            rows.append((name, milliseconds(seconds / epsilon.size)))
    return rows


def beside_rows() -> list[tuple[str, str, str, str]]:
    rows = []
    for n in (1000, 10_000):
        epsilon = np.linspace(0.0, 0.5, 50)
        ours = np.asarray(sp.delta(n, PROB, epsilon=epsilon))
        seconds = best(lambda e=epsilon, k=n: sp.delta(k, PROB, epsilon=e))
        rows.append((f"{n:,}", "this library", milliseconds(seconds), ""))
        others: dict[str, Callable[[], Array]] = {
            "literal sums, NumPy": lambda e=epsilon, k=n: literal(e, k)
        }
        if find_spec("dp_accounting") is not None:
            for interval in (1e-4, 1e-5):
                others[f"dp_accounting, grid {interval:g}"] = lambda e=epsilon, k=n, i=interval: (
                    accounted(e, k, i)
                )
        for name, function in others.items():
            seconds = best(function, repeats=1)
            error = np.abs(function() / ours - 1.0).max()
            rows.append((f"{n:,}", name, milliseconds(seconds), f"{error:.1e}"))
    return rows


def main() -> None:
    print("| curve, both directions | best time |\n|---|---|")
    for what, measured in exact_rows():
        print(f"| {what} | {measured} |")
    print("\n50 epsilons in [0, 0.5], both directions, no mechanism:\n")
    print("| n | by | time | largest relative difference from this library |\n|---|---|---|---|")
    for row in beside_rows():
        print(f"| {' | '.join(row)} |")
    if find_spec("dp_accounting") is None:
        print("\nSkipped dp_accounting: the package dp-accounting is not installed.")


if __name__ == "__main__":
    main()
