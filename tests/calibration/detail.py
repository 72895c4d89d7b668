"""How often the check of detail fails: ``uv run python -m tests.calibration.detail``.

Under densities of narrow peaks, with how often the limit of 95% lies below the truth, and under
smooth ones, where a failure is a false alarm. Fits of the default model without the other checks.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

import edp_bayes as edp
from edp_bayes.auditing.evaluation import evaluate
from edp_bayes.diagnostics import check_detail
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.results import bands
from tests.calibration.failures import standardised
from tests.calibration.worlds import COMB, EPSILON, SKEWED, VISIBLE, additive, mixture, truth

type Array = np.ndarray
type Sampler = Callable[[np.random.Generator, int], Array]

TEN = mixture([(1.0, float(k), 0.15) for k in range(10)])
IRREGULAR = mixture(
    [(1.0, 0.0, 0.15), (2.0, 1.3, 0.2), (1.0, 2.1, 0.1), (1.5, 3.6, 0.25), (1.0, 5.2, 0.15)]
)
PEAKS = {
    "six peaks": (COMB, (0.1, 0.3)),
    "ten peaks": (TEN, (0.3,)),
    "irregular peaks": (IRREGULAR, (0.3,)),
    "strongly skewed": (SKEWED, (0.1, 0.4)),
}


def marron_wand(name: str) -> Sampler:
    """Return a sampler of one of their densities, of mean 0 and standard deviation 1."""
    return mixture(list(zip(*standardised(name), strict=True)))[0]


SMOOTH: dict[str, Sampler] = {
    "normal": marron_wand("normal"),
    "skewed": marron_wand("skewed unimodal"),
    "separated bimodal": marron_wand("separated bimodal"),
    "skewed bimodal": marron_wand("skewed bimodal"),
    "kurtotic": marron_wand("kurtotic unimodal"),
    "t of 4 degrees": lambda rng, n: rng.standard_t(4.0, n),
    "Gamma(2)": lambda rng, n: rng.gamma(2.0, 1.0, n),
    "lognormal, 0.5": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
    "lognormal, 1": lambda rng, n: np.exp(rng.standard_normal(n)),
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "outliers": lambda rng, n: np.where(rng.random(n) < 0.02, 8.0, 1.0) * rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
}


def once(rest: Array, size: float, seed: int) -> tuple[bool, Array]:
    """Return whether the check fails, and the limits at EPSILON."""
    responses = edp.Responses.from_arrays(rest + size, response_without=rest[:, None])
    settings = SamplerSettings(
        draws=250, tune=500, chains=2, random_seed=seed, progressbar=False, cores=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = edp.DirichletProcessMixture().fit(responses, settings)
        delta = evaluate(fitted.coupling, EPSILON, progressbar=False).delta
    failed = bool(check_detail(fitted.mixture, responses).checks)
    return failed, bands.upper_limit(delta, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[41, 60, 100])
    options = parser.parse_args()
    print("| density | n | contribution | detail fails | limit below | and detail passes |")
    for n in options.sizes:
        for name, ((sample, density), sizes) in PEAKS.items():
            for size in sizes:
                true = truth(additive(sample, density, size))
                found = [
                    once(sample(np.random.default_rng([n, k]), n), size, k)
                    for k in range(options.repetitions)
                ]
                failed = np.array([one for one, _ in found])
                below = (np.array([limit for _, limit in found]) < true) & (true >= VISIBLE)
                most = below.mean(axis=0).max()
                passed = (below & ~failed[:, None]).mean(axis=0).max()
                shares = f"{failed.mean():.0%} | {most:.0%} | {passed:.0%}"
                print(f"| {name} | {n} | {size} | {shares} |", flush=True)
        for name, draw in SMOOTH.items():
            rests = [draw(np.random.default_rng([n, k]), n) for k in range(options.repetitions)]
            alarms = [once(rest, 0.4 * float(rest.std()), k)[0] for k, rest in enumerate(rests)]
            print(f"| {name} | {n} | - | {np.mean(alarms):.0%} | - | - |", flush=True)


if __name__ == "__main__":
    main()
