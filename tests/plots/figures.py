"""Every public figure, drawn from small results."""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import edp_bayes as edp
from edp_bayes import interval, noise, plots
from edp_bayes.plots import breutigam_reischuk, statistical_privacy
from edp_bayes.plots.noise import plot_noise, plot_tradeoff

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
MONTHS = np.arange("2020-01", "2023-05", dtype="datetime64[M]")
FEW = {"draws": 50, "random_seed": 1, "progressbar": False}
FEWER = {**FEW, "draws": 15}  # for what fits again and again


@cache
def responses() -> edp.Responses:
    """Return large answers of dated databases, some of whose individuals are alike."""
    rng = np.random.default_rng(1)
    contribution = 1e6 * rng.gamma(2.0, 0.2, (40, 3))
    contribution = np.c_[contribution, contribution[:, [2, 2, 2]]]
    return edp.Responses.from_arrays(
        2e6 * rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1),
        contribution=contribution,
        individual=[f"client {k}" for k in range(1, 7)],
        database=MONTHS.astype(str).tolist(),
        query="sum:kwh",
        additive=True,
    )


@cache
def audit() -> edp.Audit:
    return edp.audit(
        responses(), epsilon=np.linspace(0.1, 0.8, 8), model=edp.SmoothedBootstrap(), **FEW
    )


@cache
def against() -> edp.Audit:
    known = edp.Adversary(past=2, trend=True, season=12.0)
    return edp.audit(responses(), epsilon=[0.1, 0.3], adversary=known, **FEW)


@cache
def leakage() -> edp.Leakage:
    return edp.leakage(responses(), epsilon=0.1, past=[0, 1], insiders=[0.0, 0.5], **FEWER)


@cache
def tradeoff() -> noise.Tradeoff:
    return noise.tradeoff(
        responses(), epsilon=[0.2, 0.5, 1.0], model=edp.SmoothedBootstrap(), **FEWER
    )


def level() -> xr.Dataset:
    draws = np.random.default_rng(1).normal(100.0, 5.0, (4, 500))
    return interval.posterior(draws, width=[0.1, 0.2, 0.3], epsilon=0.1)


SHOWN: dict[str, Callable[[], object]] = {
    "plot_count_curves": plots.plot_count_curves,
    "plot_delta": lambda: plots.plot_delta(audit()),
    "plot_delta, logarithmic": lambda: plots.plot_delta(audit(), log=True),
    "plot_delta, against an adversary": lambda: plots.plot_delta(against()),
    "plot_density": lambda: plots.plot_density(audit()),
    "plot_individuals": lambda: plots.plot_individuals(audit()),
    "plot_interval_level": lambda: plots.plot_interval_level(level()),
    "plot_iso_curves": plots.plot_iso_curves,
    "plot_leakage": lambda: plots.plot_leakage(leakage()),
    "plot_level_curves": plots.plot_level_curves,
    "plot_membership": lambda: plots.plot_membership(audit()),
    "plot_noise": lambda: plot_noise(noise.NoiseDistribution((noise.LaplaceNoise(2e6),))),
    "plot_past": lambda: plots.plot_past(against()),
    "plot_power": lambda: plots.plot_power(audit()),
    "plot_total_risk": lambda: plots.plot_total_risk(audit()),
    "plot_total_risk, against an adversary": lambda: plots.plot_total_risk(against()),
    "plot_tradeoff": lambda: plot_tradeoff(tradeoff()),
    "plot_width_curves": plots.plot_width_curves,
}
for module in (statistical_privacy, breutigam_reischuk):
    SHOWN |= {name: getattr(module, name) for name in module.__all__}


def drawn(name: str) -> Figure:
    """Return a figure by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        SHOWN[name]()
    return plt.gcf()


def of_the_gallery(script: Path) -> list[Figure]:
    """Return all figures that a script leaves open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        runpy.run_path(str(script))
    return [plt.figure(number) for number in plt.get_fignums()]
