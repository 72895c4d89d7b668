"""Black-box audits: ``uv run python -m tests.benchmarks.black_box``; prints Markdown.

Processor time and width of bands for 100,000 outcomes a side, and the coverage of the published
one-sided bound, of one column and of several. Times are processor seconds of one thread; imports
and compilation come first.
"""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
from scipy.optimize import brentq

from edp_bayes import mechanisms
from edp_bayes.black_box.auditing import audit_mechanism
from edp_bayes.plugin.local_privacy import mpl
from tests.benchmarks.__main__ import machine

SIZE, RUNS = 100_000, 1000
ROW_RUNS = 400
# A distribution-free competitor reports (0, 0.587) for this delta.
DELTA = 0.0796
AUDITED = (
    mechanisms.Laplace(),
    mechanisms.Gaussian(),
    mechanisms.Geometric(1.0),
    mechanisms.RandomizedResponse(1.0),
    mechanisms.NumericalSparseVector(),
)


def audits() -> None:
    """Print the time of an audit and its 95% band of delta where delta is 0.0796."""
    print(f"### 2 x {SIZE:,} outcomes, 4 chains of 300 + 1,000\n")
    print("| mechanism | kind | CPU s | epsilon | delta | 95% band | width |")
    print("|---|---|---|---|---|---|---|")
    quiet = {"random_seed": 1, "progressbar": False, "cores": 1}
    for mechanism in AUDITED:
        rng = np.random.default_rng(1)
        pair = [mechanism(database, SIZE, rng) for database in mechanism.pair]
        short = [side[:1000] for side in pair]
        audit_mechanism(*short, epsilon=[0.5], draws=20, tune=20, **quiet)
        # Below the epsilon at which delta vanishes, if it does.
        level = brentq(lambda e, m=mechanism: m.delta(epsilon=e) - DELTA, 0.0, 5.0)
        start = time.process_time()
        found = audit_mechanism(*pair, epsilon=[level], **quiet)
        seconds = time.process_time() - start
        band = found.band("delta", kind="pointwise", prob=0.95)
        low, high = float(band["lower"][0]), float(band["upper"][0])
        print(
            f"| {mechanism.name} | {mechanism.kind} | {seconds:.1f} | {level:.4f} | {DELTA} "
            f"| ({low:.4f}, {high:.4f}) | {high - low:.4f} |",
            flush=True,
        )


def bounds() -> None:
    """Print how often the published lower bound holds for Laplace outputs on [0, inf)."""
    print(f"\n### mpl, {RUNS:,} runs, 2,000 and 20,000 outputs a side, tau = 0.1\n")
    print("| lambda | truth | bound at most truth | median bound | median estimate |")
    print("|---|---|---|---|---|")
    for rate in (1.0, 2.0):
        truth = rate + math.log((2 - math.exp(-2 * rate)) / (2 - math.exp(-rate)))
        mechanism = mechanisms.RestrictedLaplace(1 / rate)
        runs = [
            mpl(
                mechanism,
                [mechanism.pair],
                first_size=2_000,
                second_size=20_000,
                tau=0.1,
                points=100,
                random_seed=seed,
            )
            for seed in range(RUNS)
        ]
        lower = np.array([run.lower for run in runs])
        estimate = np.median([run.epsilon for run in runs])
        print(
            f"| {rate:g} | {truth:.4f} | {np.mean(lower <= truth):.1%} | {np.median(lower):.3f} "
            f"| {estimate:.3f} |",
            flush=True,
        )


def laplace(answers: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return answers with Laplace noise of scale 1, shape (size, column)."""
    return answers + rng.laplace(size=(size, answers.size))


def gaussian(answers: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return answers with standard normal noise, shape (size, column)."""
    return answers + rng.normal(size=(size, answers.size))


def columns() -> None:
    """Print how often the lower bound holds for noise on 2 to 5 answers, 1 apart."""
    print(f"\n### mpl, {ROW_RUNS} runs, 5,000 and 50,000 outputs a side, 400 points\n")
    print("| noise | columns | differing | floor | truth | bound at most truth | median bound |")
    print("|---|---|---|---|---|---|---|")
    for sampler, norm in ((laplace, 1), (gaussian, 2)):
        for count in (2, 3, 4, 5):
            for differing in (1, count):
                apart = np.zeros(count)
                apart[:differing] = differing ** (-1.0 / norm)
                runs = [
                    mpl(
                        sampler,
                        [(np.zeros(count), apart)],
                        first_size=5_000,
                        second_size=50_000,
                        points=400,
                        random_seed=seed,
                    )
                    for seed in range(ROW_RUNS)
                ]
                lower = np.array([run.lower for run in runs])
                tau = float(np.median([run.tau for run in runs]))
                # of normal densities floored at a share of the peak
                truth = 1.0 if norm == 1 else math.sqrt(-2.0 * math.log(tau)) - 0.5
                print(
                    f"| {sampler.__name__.capitalize()} | {count} | {differing} | {tau:.3f} "
                    f"| {truth:.3f} | {np.mean(lower <= truth):.1%} | {np.median(lower):.3f} |",
                    flush=True,
                )


def main() -> None:
    warnings.simplefilter("ignore")  # of the short audits that come first
    print(f"Machine: {machine()}\n")
    audits()
    bounds()
    columns()


if __name__ == "__main__":
    main()
