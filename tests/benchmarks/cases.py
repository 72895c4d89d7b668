"""The benchmarks: each returns rows of (what, measured) and runs in a process of its own."""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy import integrate

import edp_bayes as edp
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.auditing.query import audit_for_verdict
from edp_bayes.auditing.rounded import rounded_coupling
from edp_bayes.models import DirichletProcessMixture, SamplerSettings
from edp_bayes.utils.defaults import CELL_CHAINS, CELL_DRAWS, CELL_KEEP, CELL_TUNE

DATA = Path(os.environ.get("EDP_BAYES_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
GRID = np.linspace(0.01, 0.30, 50)
Row = tuple[str, str]


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    start = time.perf_counter()
    end: list[float] = []
    yield lambda: (end[0] if end else time.perf_counter()) - start
    end.append(time.perf_counter())


def peak() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB peak"


def settings(draws: int, **options: object) -> SamplerSettings:
    return SamplerSettings(
        draws=draws // 4, tune=1000, chains=4, random_seed=1, progressbar=False, **options
    )


def gpcp() -> edp.Responses:
    import xarray as xr

    with np.load(DATA / "gpcp_daily_mm.npz") as stored:
        array = xr.DataArray(
            stored["daily_mm"],
            dims=("day", "lat", "lon"),
            coords={name: stored[name] for name in ("day", "lat", "lon")},
        )
    whole = np.isfinite(array).all(("lat", "lon"))
    databases = edp.Databases.from_xarray(
        array[whole.to_numpy()], database="day", individual=("lat", "lon")
    )
    return databases.respond(edp.queries.Mean(), progressbar=False)


def _audit(responses: edp.Responses, model: object, **options: object) -> list[Row]:
    rows = []
    for run in ("first, with compilation", "second"):
        with stopwatch() as sampling:
            fitted = model.fit(responses, settings(1000, **options))
        with stopwatch() as evaluation:
            evaluate(fitted.coupling, GRID, progressbar=False)
        rows.append((f"{run}: fit", f"{sampling():.1f} s"))
        rows.append((f"{run}: delta and delta* of all individuals", f"{evaluation():.1f} s"))
    return [*rows, ("memory", peak())]


def gpcp_bootstrap() -> list[Row]:
    """GPCP days, SmoothedBootstrap(laplace): 59 x 10,368, 1,000 draws x 50 epsilons."""
    return _audit(gpcp(), edp.SmoothedBootstrap(kernel="laplace"))


def gpcp_mixture() -> list[Row]:
    """GPCP days, DirichletProcessMixture by NUTS: 59 x 10,368, 1,000 draws x 50 epsilons."""
    return _audit(gpcp(), edp.DirichletProcessMixture(), sampler="nutpie")


def gpcp_gibbs() -> list[Row]:
    """GPCP days, the default by Gibbs sampling: 59 x 10,368, 1,000 draws x 50 epsilons."""
    return _audit(gpcp(), DirichletProcessMixture())


def excess(x: float, p: edp.Mixture, one: np.ndarray, other: np.ndarray, growth: float) -> float:
    """(p - growth q)_+ at one point, both with the weights and the scale of p."""
    w, h = p.weights, p.scales[0]
    a = (w * np.exp(-np.abs(x - one) / h)).sum()
    b = (w * np.exp(-np.abs(x - other) / h)).sum()
    return float(max(a - growth * b, 0.0) / (2.0 * h))


def literal() -> list[Row]:
    """Against the literal algorithm and a grid, on the same GPCP draws and epsilons."""
    responses = gpcp()
    fitted = edp.SmoothedBootstrap(kernel="laplace").fit(responses, settings(1000))
    coupling = fitted.coupling
    everybody, _ = coupling.relevant(GRID)
    coupling.curves(everybody[:2], GRID)
    evaluate(coupling, GRID[:1], progressbar=False)
    with stopwatch() as ours:
        evaluate(coupling, GRID, progressbar=False)
    cells = coupling.n_draws * coupling.n_individuals * GRID.size
    each = ours() / cells

    rng = np.random.default_rng(0)
    y = responses.response
    dense = responses.contribution.toarray()
    sample = rng.integers(coupling.n_individuals, size=6)
    margin = 15.0 * float(coupling.mixture.scales.max())
    ends = float(y.min()) - margin, float(y.max()) + margin
    worst = 0.0
    with stopwatch() as by_quad:
        for i in sample:
            mixture = coupling.mixture[0, 0]
            for epsilon in GRID[::10]:
                growth = float(np.exp(epsilon))
                value = max(
                    integrate.quad(
                        excess, *ends, args=(mixture, *pair, growth), limit=400, epsabs=1e-10
                    )[0]
                    for pair in ((y, y - dense[:, i]), (y - dense[:, i], y))
                )
                exact = coupling.curves(np.array([i]), np.array([epsilon]))[0, 0, 0]
                worst = max(worst, abs(value - exact))
    quad_each = by_quad() / (sample.size * GRID[::10].size)

    x = np.linspace(*ends, 2000)
    step = x[1] - x[0]
    with stopwatch() as by_grid:
        for i in sample:
            for draw in range(3):
                w, h = coupling.mixture.weights[0, draw], coupling.mixture.scales[0, draw, 0]
                a, b = (
                    (w[:, None] * np.exp(-np.abs(x - c[:, None]) / h)).sum(0) / (2 * h)
                    for c in (y, y - dense[:, i])
                )
                growth = np.exp(GRID)[:, None]
                np.maximum(
                    np.maximum(a - growth * b, 0).sum(1) * step,
                    np.maximum(b - growth * a, 0).sum(1) * step,
                )
    grid_each = by_grid() / (sample.size * 3 * GRID.size)
    return [
        ("this library, a draw, individual and epsilon", f"{each * 1e9:.1f} ns"),
        ("SciPy quad, the same (30 sampled)", f"{quad_each * 1e3:.2f} ms"),
        ("NumPy grid of 2,000 points, the same", f"{grid_each * 1e6:.1f} us"),
        ("ratio to SciPy quad", f"{quad_each / each:,.0f}"),
        ("ratio to the NumPy grid", f"{grid_each / each:,.0f}"),
        ("largest error of quad (epsabs 1e-10): it misses narrow intervals", f"{worst:.1e}"),
    ]


def sparse_responses(m: int, surviving: float, epsilon: float) -> edp.Responses:
    """78 databases, everybody present in 1% of them, Gamma contributions."""
    rng = np.random.default_rng(2)
    n = 78
    nnz = rng.binomial(n * m, 0.01)
    where = rng.choice(n * m, nnz, replace=False) if n * m < 1e7 else rng.integers(n * m, size=nnz)
    amount = rng.gamma(2.0, 1.0, nnz)
    contribution = sp.csc_array((amount, (where % n, where // n)), shape=(n, m))
    contribution.sum_duplicates()
    response = rng.standard_normal(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probe = edp.Responses.from_arrays(response, contribution=contribution)
        fitted = edp.SmoothedBootstrap().fit(probe, settings(500))
        threshold = epsilon * float(fitted.mixture.scales.min())
        scale = threshold / float(np.quantile(probe.largest_contribution, 1.0 - surviving))
        return edp.Responses.from_arrays(response, contribution=scale * contribution)


def millions() -> list[Row]:
    """78 databases, 1% present, 500 draws x 20 epsilons in [0.05, 1], SmoothedBootstrap."""
    epsilon = np.linspace(0.05, 1.0, 20)
    rows = []
    for m, surviving in ((10_000, 0.01), (100_000, 0.01), (1_000_000, 0.01), (1_000_000, 0.1)):
        responses = sparse_responses(m, surviving, epsilon[0])
        with stopwatch() as watch:
            fitted = edp.SmoothedBootstrap().fit(responses, settings(500))
            kept = fitted.coupling.relevant(epsilon)[0].size
            evaluate(fitted.coupling, epsilon, progressbar=False)
        rows.append((f"{m:,} individuals, {kept:,} survive screening", f"{watch():.1f} s"))
        rows.append(("", peak()))
    return rows


def summed_responses(m: int) -> edp.Responses:
    """78 databases, everybody present in 1% of them, log-normal amounts, their sum."""
    rng = np.random.default_rng(1)
    n = 78
    cells = np.unique(rng.integers(n * m, size=rng.binomial(n * m, 0.01)))
    owner, row = cells // n, cells % n
    size = rng.lognormal(0.0, 1.0, m)
    amount = size[owner] * rng.lognormal(0.0, 0.5, cells.size)
    contribution = sp.csc_array((amount, (row, owner)), shape=(n, m))
    total = np.asarray(contribution.sum(axis=1)).ravel()
    return edp.Responses.from_arrays(total, contribution=contribution)


def large() -> list[Row]:
    """78 databases, 1% present, log-normal amounts, their sum, 15 epsilons, the default model."""
    epsilon, draws = np.linspace(0.05, 1.0, 15), int(os.environ.get("EDP_BAYES_DRAWS", "500"))
    rows = []
    for m in (10_000, 100_000, 1_000_000):
        responses = summed_responses(m)
        with stopwatch() as watch:
            coupling = DirichletProcessMixture().fit(responses, settings(draws)).coupling
            start = time.process_time()
            risks = evaluate(coupling, epsilon, progressbar=False, exact_up_to=1)
            used = time.process_time() - start
        added = float(risks.bounded.max())
        rows += [
            (f"{m:,} individuals, {draws} draws: processor time", f"{used:.1f} s"),
            ("for a draw and an individual", f"{used / (m * draws) * 1e6:.2f} us"),
            ("wall time, fit included", f"{watch():.1f} s"),
            ("at most added to the sum of all risks by bounds", f"{added:.1e}"),
            ("", peak()),
        ]
    return rows


def largest() -> list[Row]:
    """Counts and sums of 100 databases, evaluated in full and for the largest risk alone, in turns.

    The last one is a count in a population of which most individuals are bounded by default.
    """
    epsilon, rows, rng = np.array([0.1]), [], np.random.default_rng(1)
    for name, m, share, sizes, asked in (
        ("count, 1,000 individuals", 1000, 0.02, np.ones(1000), {"only_largest": True}),
        ("sum, 1,000", 1000, 0.02, rng.lognormal(0.0, 1.0, 1000).round(2), {"only_largest": True}),
        ("count, 25,000, by default", 25_000, 0.02, np.ones(25_000), {"exact_up_to": 20_000}),
    ):
        rare = share * rng.gamma(1.0, 1.0, m).clip(max=20.0)
        contribution = sp.csc_array((rng.random((100, m)) < rare) * sizes)
        total = np.asarray(contribution.sum(axis=1)).ravel().round(2)
        responses = edp.Responses.from_arrays(total, contribution=contribution, additive=True)
        fitted = DirichletProcessMixture().fit(responses, settings(48)).coupling
        coupling = rounded_coupling(fitted, responses)
        seconds, found = [], []
        for options in ({}, asked, {}, asked):
            start = time.process_time()
            found.append(evaluate(coupling, epsilon, progressbar=False, **options).delta)
            seconds.append(time.process_time() - start)
        rows += [
            (f"{name}: processor time in full", f"{seconds[2]:.1f} s"),
            ("with bounds", f"{seconds[3]:.1f} s"),
            ("ratio", f"{seconds[3] / seconds[2]:.2f}"),
            ("largest difference of delta", f"{np.abs(found[2] - found[3]).max():.1e}"),
        ]
    return rows


def cell() -> list[Row]:
    """A cell of 1,000 individuals as `edp.audit_cells` audits it: a count, and a sum of amounts.

    Each individual is present in a share of the 100 databases between 0.1 and 1.
    """
    rows: list[Row] = []
    for name in ("count", "sum of log-normal amounts"):
        rng = np.random.default_rng(1)
        there = rng.random((100, 1000)) < rng.uniform(0.1, 1.0, 1000)
        amounts = np.ones((100, 1000))
        if name != "count":
            amounts = rng.lognormal(0.0, 1.0, (100, 1000)).round(2)
        contribution = sp.csc_array(there * amounts)
        total = np.asarray(contribution.sum(axis=1)).ravel()
        responses = edp.Responses.from_arrays(total, contribution=contribution, additive=True)
        for epsilon in ([0.1], np.linspace(0.01, 0.5, 50)):
            seconds = []
            for _ in range(2):  # the first one compiles
                start = time.process_time()
                audit_for_verdict(
                    responses, epsilon=epsilon, only_largest=True, random_seed=1, progressbar=False,
                    draws=CELL_DRAWS, tune=CELL_TUNE, chains=CELL_CHAINS, keep=CELL_KEEP,
                )  # fmt: skip
                seconds.append(time.process_time() - start)
            rows.append((f"{name}, {len(epsilon)} epsilons: processor time", f"{seconds[1]:.1f} s"))
    return rows


def full_posterior() -> list[Row]:
    """The full posterior beside empirical Bayes, 41 databases and 50 individuals, and 100."""
    rows: list[Row] = []
    for m in (50, 100):
        rng = np.random.default_rng(1)
        sizes = np.exp(0.5 * rng.standard_normal(m)) * rng.gamma(4.0, 0.25, (41, m))
        contribution = sizes * (rng.random((41, m)) < rng.beta(2.0, 2.0, m))
        response = 20.0 + 5.0 * rng.standard_normal(41) + contribution.sum(axis=1)
        responses = edp.Responses.from_arrays(response, contribution=contribution)
        seconds = []
        for model in (edp.DirichletProcessMixture(), edp.FullPosterior()):
            edp.audit(
                responses, epsilon=[0.1], model=model, draws=5, tune=5, random_seed=1,
                progressbar=False,
            )  # fmt: skip
            start = time.perf_counter()
            edp.audit(responses, epsilon=[0.1], model=model, random_seed=1, progressbar=False)
            seconds.append(time.perf_counter() - start)
        rows += [
            (f"{m} individuals, empirical Bayes: time", f"{seconds[0]:.1f} s"),
            ("full posterior", f"{seconds[1]:.1f} s"),
            ("ratio", f"{seconds[1] / seconds[0]:.0f}"),
        ]
    return rows


def conditional() -> list[Row]:
    """An audit given what is known beside a plain one, in turns: 78 x 10,000, 500 draws."""
    epsilon = np.linspace(0.05, 1.0, 20)
    responses = sparse_responses(10_000, 0.1, epsilon[0])
    kinds = {"plain": None, "given": edp.Adversary(past=2, trend=True, season=7)}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(4):
        for name, adversary in kinds.items():
            start = time.process_time()
            edp.audit(
                responses,
                epsilon=epsilon,
                adversary=adversary,
                draws=125,
                random_seed=1,
                progressbar=False,
            )
            seconds[name].append(time.process_time() - start)
    plain, given = (min(times[1:]) for times in seconds.values())  # the first loads compiled code
    return [
        ("plain audit, processor time", f"{plain:.1f} s"),
        ("given two lags, trend and season, the same", f"{given:.1f} s"),
        ("ratio (aim: at most 1.3)", f"{given / plain:.2f}"),
    ]


def doubtful() -> list[Row]:
    """A million labels of individuals judged, beside the reading of their table."""
    import pandas as pd

    from edp_bayes.records.doubtful_labels import doubtful_labels

    people = 1_000_000
    week = np.random.default_rng(3).integers(0, 40, people)
    rows = []
    for name, form in (("of one case", "user{:07d}"), ("mixed case", "User{:07d}")):
        table = pd.DataFrame(
            {"week": week, "who": [form.format(k) for k in range(people)], "x": 1.0}
        )
        start = time.process_time()
        databases = edp.Databases.from_table(table, database="week", individual="who")
        read = time.process_time() - start
        start = time.process_time()
        doubtful_labels(databases.individual, np.ones(people))
        judged = time.process_time() - start
        rows.append(
            (f"labels {name}: reading, judging them alone", f"{read:.2f} s, {judged:.2f} s")
        )
    return rows


CASES: dict[str, Callable[[], list[Row]]] = {
    case.__name__: case
    for case in (
        gpcp_bootstrap,
        gpcp_mixture,
        gpcp_gibbs,
        literal,
        millions,
        large,
        largest,
        cell,
        full_posterior,
        conditional,
        doubtful,
    )
}
