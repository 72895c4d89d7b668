"""Simulation-based calibration: ``uv run python -m tests.calibration.sbc --repetitions 400``.

Parameters come from the prior, data from the model given them, and the rank of the true delta
among posterior draws must be uniform (Talts et al. 2018). Contributions get a proper prior here,
in place of the one that is learned from everybody, and responses are not standardised.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.coupling.contributions.posterior import (
    ContributionDraws,
    ContributionPosterior,
    ContributionPrior,
)
from edp_bayes.coupling.contributions.presence import FEWEST, PresencePosterior
from edp_bayes.coupling.contributions.presence_sampler import PRESENCES
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.models import SamplerSettings
from edp_bayes.models.base_measure import BaseMeasure, Standardisation
from edp_bayes.models.gibbs import draw_parameters
from edp_bayes.plots import style
from edp_bayes.responses.responses import Responses

EPSILON = np.array([0.02, 0.1, 0.3, 1.0])
RESULTS = Path(__file__).parent / "sbc.csv"
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "sbc.png"
DRAWS, THIN, TUNE = 127, 20, 500
UNITS = Standardisation(0.0, 1.0)
BASE = BaseMeasure()
CONCENTRATION = (2.0, 2.0)


@dataclass(frozen=True)
class Case:
    """One model, a number of databases, and whether the individual is ever absent."""

    model: str
    components: int
    always_present: bool
    n: int = 41

    @property
    def name(self) -> str:
        return f"{self.model}, {'always present' if self.always_present else 'sometimes absent'}"

    @property
    def weight_concentration(self) -> float:
        """Zero for stick-breaking, as the Gibbs sampler has it."""
        return 0.0 if self.model == "dirichlet process" else 1.0


CASES = [
    Case(model, components, always)
    for (model, components), always in itertools.product(
        (("dirichlet process", 15), ("finite mixture", 3)), (True, False)
    )
]
PRIOR = ContributionPrior(
    degrees=6.0, spread=0.05, intercept_weight=0.05, slope_weight=5.0, presence=(3.0, 2.0)
)
ALWAYS = replace(PRIOR, presence=None)


def draw_base(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Weights, locations and standard deviations of p from the prior, shape (1, 3, K)."""
    size = case.components
    rate = rng.gamma(BASE.rate_shape, 1.0 / BASE.rate_rate)
    precision = rng.gamma(BASE.precision_shape, 1.0 / BASE.precision_rate)
    centre = rng.normal(0.0, BASE.location_scale)
    variance = rng.gamma(BASE.scale_shape, 1.0 / rate, size) / rng.gamma(BASE.shape, 1.0, size)
    location = rng.normal(centre, np.sqrt(variance / precision))
    if case.weight_concentration:
        weights = rng.dirichlet(np.full(size, case.weight_concentration))
    else:
        alpha = rng.gamma(CONCENTRATION[0], 1.0 / CONCENTRATION[1])
        stick = np.append(rng.beta(1.0, alpha, size - 1), 1.0)
        weights = stick * np.cumprod(np.append(1.0, 1.0 - stick[:-1]))
    return np.stack([weights, location, np.sqrt(variance)])[None]


def draw_contribution(case: Case, rng: np.random.Generator) -> ContributionDraws:
    """One individual's contribution distribution from the prior."""
    spread = np.sqrt(PRIOR.degrees / rng.chisquare(PRIOR.degrees)) * PRIOR.spread
    intercept = rng.normal(0.0, spread / np.sqrt(PRIOR.intercept_weight))
    slope = rng.normal(0.0, spread / np.sqrt(PRIOR.slope_weight))
    presence = 1.0 if case.always_present else rng.beta(*PRIOR.presence)
    others = (np.array([[value]]) for value in (intercept, slope, spread))
    return ContributionDraws(np.array([[[presence]]]), *others)


@dataclass(frozen=True)
class FixedDistribution:
    """Stands where a posterior of contribution distributions would, with the truth in it."""

    distribution: ContributionDraws
    centre: np.ndarray

    def draw(self, individuals: np.ndarray, draws: int, components: int = 1) -> ContributionDraws:
        presence = np.repeat(self.distribution.presence, components, axis=2)
        return self.distribution._replace(presence=presence)


@dataclass(frozen=True)
class FixedPresence:
    """Stands where a posterior of presence by component would, with the truth in it."""

    presence: np.ndarray

    def draw(self, individuals: np.ndarray, distribution: ContributionDraws) -> np.ndarray:
        return self.presence


def draw_presence(rho: float, weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Presence by component from the prior, shape (K,)."""
    active = weights * n >= FEWEST
    if rho == 1.0 or active.sum() < 2 or rng.random() < 0.5:
        return np.full(weights.size, rho)
    share = rng.beta(PRESENCES, PRESENCES * (1.0 - rho) / rho, weights.size)
    share *= rho * weights[active].sum() / (weights[active] @ share[active])
    return np.where(active, np.minimum(share, 1.0), rho)


def simulate(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, Responses]:
    """True delta over EPSILON and responses, jointly from prior and model."""
    base, own = draw_base(case, rng), draw_contribution(case, rng)
    mixture = Mixture(*(base[:, None, part] for part in range(3)))
    presence = draw_presence(float(own.presence[0, 0, 0]), base[0, 0], case.n, rng)
    coupling = RegressionCoupling(
        mixture, FixedDistribution(own, np.zeros(1)), FixedPresence(presence[None, None])
    )
    truth = coupling.curves(np.array([0]), EPSILON)[0, 0]
    q = coupling.pair(0)[1]
    w, mu, sd = (part[0, 0] for part in (q.weights, q.locations, q.scales))
    k = rng.choice(w.size, case.n, p=w / w.sum())
    rest = mu[k] + sd[k] * rng.standard_normal(case.n)
    a, b, tau = (float(part[0, 0]) for part in (own.intercept, own.slope, own.spread))
    size = a + b * rest + tau * rng.standard_normal(case.n)
    contribution = np.where(rng.random(case.n) < presence[k % case.components], size, 0.0)
    responses = Responses.from_arrays(
        rest + contribution, contribution=sp.csc_array(contribution[:, None])
    )
    return truth, responses


def fitted(case: Case, responses: Responses, seed: int) -> np.ndarray:
    """Posterior draws of delta, shape (DRAWS, epsilon)."""
    settings = SamplerSettings(
        draws=DRAWS, tune=TUNE, chains=1, random_seed=seed, progressbar=False, cores=1
    )
    mixture = draw_parameters(
        responses.response_by_database,
        settings=settings,
        components=case.components,
        base=BASE,
        concentration=CONCENTRATION,
        weight_concentration=case.weight_concentration,
        thin=THIN,
        units=UNITS,
    ).mixture
    posterior = ContributionPosterior.fit(
        responses, seed, prior=ALWAYS if case.always_present else PRIOR
    )
    presence = PresencePosterior(mixture, responses, seed)
    coupling = RegressionCoupling(mixture, posterior, presence)
    return evaluate(coupling, EPSILON, progressbar=False).delta


def ranks(case: Case, repetition: int) -> np.ndarray | None:
    """Ranks of the true delta among DRAWS, ties broken at random; None where nobody contributes."""
    rng = np.random.default_rng([17, CASES.index(case), repetition])
    truth, responses = simulate(case, rng)
    if responses.n_individuals == 0:
        return None
    draws = fitted(case, responses, repetition)
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return below + rng.integers(0, equal + 1)


def table(repetitions: int) -> pd.DataFrame:
    """One row a case and repetition, one column an epsilon."""
    rows = []
    for case in CASES:
        for repetition in range(repetitions):
            found = ranks(case, repetition)
            if found is not None:
                rows.append([case.name, repetition, *found])
        print(case.name, flush=True)
    return pd.DataFrame(rows, columns=["case", "repetition", *map(str, EPSILON)])


def transforms(found: pd.DataFrame) -> pd.DataFrame:
    """Probability integral transforms: ranks made continuous within their steps."""
    rng = np.random.default_rng(0)
    columns = list(map(str, EPSILON))
    values = found[columns].to_numpy()
    return found.assign(
        **dict(zip(columns, ((values + rng.random(values.shape)) / (DRAWS + 1)).T, strict=True))
    )


def uniformity(found: pd.DataFrame) -> pd.DataFrame:
    """Means, coverage of the central 95% and Kolmogorov-Smirnov tests, by case and epsilon."""
    from scipy import stats

    rows = []
    for name, part in transforms(found).groupby("case", sort=False):
        for epsilon in map(str, EPSILON):
            pit = part[epsilon]
            test = stats.kstest(pit, "uniform")
            inside = ((pit > 0.025) & (pit < 0.975)).mean()
            rows.append([name, float(epsilon), len(pit), pit.mean(), inside, test.pvalue])
    return pd.DataFrame(
        rows, columns=["case", "epsilon", "repetitions", "mean PIT", "in 95%", "p-value"]
    )


def picture(found: pd.DataFrame) -> None:
    """ECDF-PIT plots by ArviZ, one row a case and one column an epsilon."""
    import arviz_plots as azp
    import matplotlib.pyplot as plt
    from arviz_base import from_dict

    pit = transforms(found)
    size = pit.groupby("case").size().min()
    cases = list(dict.fromkeys(pit["case"]))
    columns = list(map(str, EPSILON))
    values = np.stack([pit.loc[pit["case"] == name, columns].to_numpy()[:size] for name in cases])
    tree = from_dict(
        {"prior_sbc": {"delta": values.transpose(1, 0, 2)}},
        sample_dims=["sample"],
        dims={"delta": ["case", "epsilon"]},
        coords={"case": cases, "epsilon": EPSILON},
    )
    plot = azp.plot_ecdf_pit(
        tree,
        group="prior_sbc",
        sample_dims=["sample"],
        backend="matplotlib",
        visuals={"title": False, "xlabel": False},
        figure_kwargs={
            "figsize": (12, 10),
            "sharex": True,
            "sharey": True,
            "layout": "constrained",
        },
    )
    axes = np.asarray(plt.gcf().axes).reshape(len(cases), EPSILON.size)
    for row, name in zip(axes, cases, strict=True):
        row[0].set_ylabel(name.replace(", ", "\n") + "\nECDF less uniform")
    for axis, epsilon in zip(axes[0], EPSILON, strict=True):
        axis.set_title(f"delta at epsilon = {epsilon:g}")
    for axis in axes[-1]:
        axis.set_xlabel("probability integral transform")
    PICTURE.parent.mkdir(exist_ok=True)
    plot.savefig(PICTURE, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--collect", action="store_true", help="only draw the picture again")
    options = parser.parse_args()
    if options.collect:
        found = pd.read_csv(RESULTS)
    else:
        found = table(options.repetitions)
        found.to_csv(RESULTS, index=False)
    print(uniformity(found).to_string(index=False, float_format="%.3f"))
    with style.context():
        picture(found)


if __name__ == "__main__":
    main()
