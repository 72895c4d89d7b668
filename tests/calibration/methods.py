"""What is compared: draws of delta and delta*, or bands, from one set of responses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from edp_bayes import plugin
from edp_bayes.auditing.evaluation import evaluate, riskiest
from edp_bayes.auditing.lower_bounds import lower_bounds
from edp_bayes.auditing.reductions import accumulate
from edp_bayes.divergence import gaussian
from edp_bayes.models import (
    BaseMeasure,
    DirichletProcessMixture,
    FiniteMixture,
    SamplerSettings,
    SmoothedBootstrap,
)
from edp_bayes.responses.responses import Responses
from edp_bayes.results import bands
from tests.calibration.scenarios import EPSILON

PROB = 0.95
DRAWS, TUNE = 199, 500
KEEP = 10  # individuals whose lower bounds stand at lower ends, as in an audit
# Few databases leave the sampler slow: draws are kept this many sweeps apart, over n, and so are
# worth about as many independent ones.
SWEEPS, LEAST_SWEEPS = 1000, 5
RESAMPLES = 200


@dataclass(frozen=True)
class Bands:
    """Bands of one quantity over EPSILON."""

    lower: np.ndarray
    median: np.ndarray
    upper: np.ndarray
    lower_curve: np.ndarray
    upper_curve: np.ndarray


def from_draws(draws: np.ndarray, below: np.ndarray | None = None) -> Bands:
    lower, upper = bands.band(draws, PROB, kind="pointwise", below=below)
    curves = bands.band(draws, PROB, kind="simultaneous", below=below)
    return Bands(lower, np.median(draws, axis=0), upper, *curves)


def gibbs(make: Callable[..., Any], responses: Responses) -> Any:
    """Return the sampler whose draws are far enough apart for these responses."""
    return make(thin=max(LEAST_SWEEPS, SWEEPS // responses.n_databases))


def posterior(make: Callable[..., Any]) -> Callable[[Responses, int], dict[str, Bands]]:
    """Bands of the audit with a model, as `Audit.band` makes them."""

    def run(responses: Responses, seed: int) -> dict[str, Bands]:
        settings = SamplerSettings(
            draws=DRAWS, tune=TUNE, chains=1, random_seed=seed, progressbar=False, cores=1
        )
        model = make(responses)
        coupling = model.fit(responses, settings).coupling
        risks = evaluate(coupling, EPSILON, progressbar=False)
        people = riskiest(risks.mean, KEEP)
        curves = risks.curves_of(people, coupling, EPSILON)
        tested = lower_bounds(coupling, people, curves, risks.delta, risks.total_risk, EPSILON)
        return {
            "delta": from_draws(risks.delta, tested.delta.reshape(-1, EPSILON.size)),
            "total_risk": from_draws(risks.total_risk, tested.total_risk.reshape(-1, EPSILON.size)),
        }

    return run


def unpaired(responses: Responses, seed: int) -> dict[str, Bands]:
    """Separate posteriors of p and of every p_i, of equal models."""
    model = gibbs(DirichletProcessMixture, responses)
    fits = responses.n_individuals + 1

    def draws(data: Responses, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        settings = SamplerSettings(
            draws=DRAWS, tune=TUNE, chains=1, random_seed=fits * seed + part, progressbar=False
        )
        mixture = model.fit(data, settings).mixture
        return mixture.weights[0], mixture.locations[0], mixture.scales[0]

    distribution = draws(responses, 0)
    largest, log_survival, total = np.zeros((3, DRAWS, EPSILON.size))
    for part, label in enumerate(responses.individual, 1):
        without = Responses.from_arrays(
            responses.response_without(label), contribution=responses.contribution[:, [part - 1]]
        )
        others = (array[:, None] for array in draws(without, part))
        curves = gaussian.curves(*distribution, *others, EPSILON, floor=1e-9)
        accumulate(curves, largest, log_survival, total)
    return {"delta": from_draws(largest), "total_risk": from_draws(-np.expm1(log_survival))}


def plug_in(responses: Responses, seed: int) -> dict[str, Bands]:
    """The published estimate with a bootstrap percentile band."""
    found = plugin.bootstrap(
        responses,
        epsilon=EPSILON,
        density="fixed",
        kernel="laplace",
        resamples=RESAMPLES,
        prob=PROB,
        random_seed=seed,
    )
    estimate = plugin.empirical_privacy(
        responses, epsilon=EPSILON, density="fixed", kernel="laplace"
    )
    out = {}
    for name, band, point in (
        ("delta", found.delta, estimate.delta),
        ("total_risk", found.total_risk, estimate.total_risk),
    ):
        out[name] = Bands(band[:, 0], point, band[:, 1], band[:, 0], band[:, 1])
    return out


ONE_RATE = partial(DirichletProcessMixture, base_measure=BaseMeasure(scale_shape=None))
METHODS: dict[str, Callable[[Responses, int], dict[str, Bands]]] = {
    "dirichlet process": posterior(partial(gibbs, DirichletProcessMixture)),
    "one rate": posterior(partial(gibbs, ONE_RATE)),
    "normal": posterior(partial(gibbs, partial(FiniteMixture, components=1))),
    "smoothed bootstrap": posterior(lambda responses: SmoothedBootstrap(kernel="laplace")),
    "plug-in bootstrap": plug_in,
    "unpaired": unpaired,
}


def run_once(method: str, responses: Responses, seed: int) -> dict[str, Bands]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[method](responses, seed)
