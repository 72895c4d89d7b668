"""Compare noise: ``uv run python -m tests.benchmarks.noise [CASE ...]``; prints Markdown.

Every row is verified: "protected" is the share of posterior draws in which the certified log
ratio of every individual is at most epsilon. The classical Laplace mechanism takes the observed
range of one individual's values as its sensitivity. Few draws, so that a run takes minutes: the
price of prob is that of all but 1 of 20, for the mixture 2 of 40.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import edp_bayes as edp
from edp_bayes.models.base import DensityModel
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.distribution import as_distribution
from edp_bayes.noise.posterior import Posterior, posterior_of
from tests.benchmarks.__main__ import machine
from tests.benchmarks.cases import DATA

METHODS = ("bottleneck", "classical", "partial", "hausdorff", "laplace", "optimal")
FEW_METHODS = ("bottleneck", "laplace", "optimal")
YEARS = 41
SMALL: dict[str, tuple[DensityModel, int]] = {
    "posterior, default model, 200 draws, prob 0.95": (edp.DirichletProcessMixture(), 50),
    "posterior, SmoothedBootstrap(), 200 draws, prob 0.95": (edp.SmoothedBootstrap(), 50),
}
DRAWS, CHAINS = 5, 4
SHARE = 0.02  # electricity clients above this share of everything are left out


@dataclass(frozen=True)
class Case:
    """Responses, the range of one individual's values as it enters the query, and the unit.

    Models by title, each with the draws of one chain.
    """

    responses: edp.Responses
    range: float
    unit: str
    models: dict[str, tuple[DensityModel, int]]
    epsilon: tuple[float, ...]
    methods: tuple[str, ...] = METHODS


def climate() -> Case:
    """US climate divisions, last 41 years: mean annual precipitation of 344 divisions."""
    with np.load(DATA / "us_climate_divisions_annual_mm.npz") as stored:
        values = stored["annual_mm"][-YEARS:]
        years, divisions = stored["year"][-YEARS:], stored["division"]
    m = values.shape[1]
    y = values.mean(axis=1)
    without = (values.sum(axis=1)[:, None] - values) / (m - 1)
    responses = edp.Responses.from_arrays(y, without, individual=divisions, database=years)
    models = kernel_estimates(30.9, "mm")
    return Case(responses, float(np.ptp(values)) / m, "mm", models, (0.1, 0.05))


def electricity() -> Case:
    """Electricity, weekly total of the clients under 2% of the total."""
    with np.load(DATA / "electricity_weekly_kwh.npz") as stored:
        kwh, clients = stored["kwh"].astype(float), stored["client"]
    small = kwh.sum(axis=0) < SHARE * kwh.sum()
    kwh, clients = kwh[:, small] / 1000.0, clients[small]
    responses = edp.Responses.from_arrays(kwh.sum(axis=1), contribution=kwh, individual=clients)
    models = kernel_estimates(plug_in(responses), "MWh")
    return Case(responses, float(np.ptp(kwh)), "MWh", models, (0.1,))


def weekly_revenue() -> tuple[edp.Responses, float]:
    """CDNOW, and the largest revenue of one customer in one week."""
    from edp_bayes.data import load_cdnow_weeks

    table = load_cdnow_weeks()
    databases = edp.Databases.from_table(table, database="week", individual="customer")
    responses = databases.respond(edp.queries.Sum("dollars"), progressbar=False)
    weekly = table.groupby(["week", "customer"])["dollars"].sum()
    return responses, float(weekly.max())


def cdnow() -> Case:
    """CDNOW, revenue of 65 weeks, 10,010 customers."""
    responses, largest = weekly_revenue()
    return Case(responses, largest, "$", kernel_estimates(plug_in(responses), "$"), (0.1,))


def mixture() -> Case:
    """CDNOW, revenue of 65 weeks, 10,010 customers, under the Dirichlet process mixture."""
    model = edp.DirichletProcessMixture(thin=10)
    models = {f"posterior, Dirichlet process, {10 * CHAINS} draws, prob 0.95": (model, 10)}
    responses, largest = weekly_revenue()
    return Case(responses, largest, "$", models, (0.1,), FEW_METHODS)


def few_customers() -> Case:
    """Monthly revenue from 8 customers of gamma sizes, 40 months, each present in 6 of 10."""
    return _shop("gamma", 2.0, 50.0)


def few_uneven_customers() -> Case:
    """Monthly revenue from 8 customers of lognormal sizes, 40 months, each present in 6 of 10."""
    return _shop("lognormal", 4.0, 1.0)


def _shop(family: str, *shape: float) -> Case:
    rng = np.random.default_rng(1)
    spent = getattr(rng, family)(*shape, (40, 8))
    spent[rng.random(spent.shape) >= 0.6] = 0.0
    responses = edp.Responses.from_arrays(spent.sum(axis=1), contribution=spent)
    return Case(responses, float(spent.max()), "$", SMALL, (0.2,), FEW_METHODS)


def exposed() -> Case:
    """Three hundred people who give 1 once, and one who gives 100 in 5 of 40 databases."""
    rng = np.random.default_rng(1)
    given = np.zeros((40, 301))
    given[rng.integers(40, size=300), np.arange(300)] = 1.0
    given[rng.permutation(40)[:5], 300] = 100.0
    response = 100.0 + rng.normal(0.0, 5.0, 40) + given.sum(axis=1)
    responses = edp.Responses.from_arrays(response, contribution=given)
    return Case(responses, 100.0, "", SMALL, (0.2,), FEW_METHODS)


def kernel_estimates(bandwidth: float, unit: str) -> dict[str, tuple[DensityModel, int]]:
    """One bandwidth, and its posterior."""
    return {
        f"plug-in, Laplace kernel, bandwidth {bandwidth:.4g} {unit}": (
            edp.noise.FixedBandwidth(bandwidth),
            DRAWS,
        ),
        f"posterior, SmoothedBootstrap(), {DRAWS * CHAINS} draws, prob 0.95": (
            edp.SmoothedBootstrap(),
            DRAWS,
        ),
    }


def plug_in(responses: edp.Responses) -> float:
    """Median of the bandwidth's posterior."""
    model = edp.SmoothedBootstrap()
    fitted = model.fit(responses, edp.models.SamplerSettings(draws=500, random_seed=1))
    return float(np.median(fitted.mixture.scales[..., 0]))


CASES: dict[str, Callable[[], Case]] = {
    "climate": climate,
    "electricity": electricity,
    "cdnow": cdnow,
    "mixture": mixture,
    "few_customers": few_customers,
    "few_uneven_customers": few_uneven_customers,
    "exposed": exposed,
}


def rows(posterior: Posterior, case: Case, epsilon: float) -> None:
    base = math.nan
    for method in case.methods:
        start = time.process_time()
        if method == "classical":
            noise = as_distribution(edp.LaplaceNoise(case.range / epsilon))
        else:
            noise = edp.noise.calibrate(posterior, epsilon=epsilon, method=method)
        seconds = time.process_time() - start
        base = noise.mean_absolute if method == "bottleneck" else base
        lower = noise.record.get("lower_bound")
        bounds = certified_log_ratios(posterior, noise, epsilon)
        print(
            f"| {method} | {epsilon:g} | {noise.mean_absolute:.4g} | {noise.variance**0.5:.4g} | "
            f"{noise.mean_absolute / base:.0%} | {'' if lower is None else f'{lower:.4g}'} | "
            f"{bounds.share(epsilon):.1%} | {np.median(bounds.largest):.3g} | {seconds:.1f} |",
            flush=True,
        )


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"Machine: {machine()}\n")
    for name in sys.argv[1:] or CASES:
        case = CASES[name]()
        print(f"### {CASES[name].__doc__}\n")
        for title, (model, draws) in case.models.items():
            posterior = posterior_of(
                case.responses,
                model=model,
                draws=draws,
                chains=CHAINS,
                random_seed=1,
                progressbar=False,
            )
            spread = float(np.sqrt(posterior.coupling.mixture.variance()).mean())
            print(f"{title}; {case.unit}, spread of the response {spread:.4g}:\n", flush=True)
            print(
                "| method | epsilon | expected abs. noise | standard deviation | of bottleneck | "
                "lower bound | protected | median log ratio | CPU s |\n" + "|---" * 9 + "|"
            )
            for epsilon in case.epsilon:
                rows(posterior, case, epsilon)
            print()


if __name__ == "__main__":
    main()
