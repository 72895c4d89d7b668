"""Coverage of black-box audits: ``uv run python -m tests.calibration.mechanisms``.

Every reference mechanism is sampled again and again for its pair; the 90% bands of the local
epsilon and of delta(0.5) are compared with the exact truths. What is done already is kept in
tests/calibration/.cache, so the study resumes; ``--write`` puts the table in
docs/black_box/measured.md.
"""

from __future__ import annotations

import argparse
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from edp_bayes.black_box.analysis import analyse
from edp_bayes.black_box.outcomes import read_outcomes
from edp_bayes.black_box.posterior.models import ClippedField
from edp_bayes.mechanisms import Mechanism, suite
from edp_bayes.models.sampling import SamplerSettings

CACHE = Path(__file__).parent / ".cache"
PAGE = Path(__file__).parents[2] / "docs" / "black_box" / "measured.md"
START, END = "<!-- results -->", "<!-- end of results -->"
TAU, EPSILON, PROB = 0.01, 0.5, 0.9
DRAWS, TUNE = 250, 120
ROUND = 20
# Where the true delta is 0 the band covers it if it starts no higher than this.
NOTHING = 1e-3
FIELDS = ("low", "median", "high", "low95", "delta_low", "delta_median", "delta_high")


def once(mechanism: Mechanism, size: int, repetition: int) -> np.ndarray:
    """Ends and medians of the bands of one simulated audit, in the order of FIELDS."""
    rng = np.random.default_rng([zlib.crc32(mechanism.name.encode()), size, repetition])
    samples = [mechanism(database, size, rng) for database in mechanism.pair]
    settings = SamplerSettings(
        draws=DRAWS, tune=TUNE, chains=1, random_seed=repetition, progressbar=False, cores=1
    )
    found = analyse(read_outcomes(*samples), ClippedField(), settings, np.array([EPSILON]), TAU)
    tail = 0.5 * (1.0 - PROB)
    at = [tail, 0.5, 1.0 - tail]
    local = np.quantile(found.local_epsilon, [*at, 0.025], method="inverted_cdf")
    delta = np.quantile(found.delta[:, 0], at)
    return np.concatenate([local, delta])


def cached(mechanism: Mechanism, size: int) -> tuple[Path, np.ndarray]:
    """Where the bands of a mechanism are kept, and those there are, shape (repetition, field)."""
    CACHE.mkdir(exist_ok=True)
    name = re.sub(r"\W+", "_", f"mechanism {mechanism.name} {size}")
    path = CACHE / f"{name}.npy"
    return path, np.load(path) if path.exists() else np.empty((0, len(FIELDS)))


def run(chosen: list[tuple[Mechanism, int]], repetitions: int) -> None:
    """Run what is missing, a round of every mechanism before more of one."""
    for target in range(ROUND, repetitions + ROUND, ROUND):
        for mechanism, size in chosen:
            path, rows = cached(mechanism, size)
            missing = range(len(rows), min(target, repetitions))
            if missing:
                np.save(path, np.vstack([rows, *(once(mechanism, size, k) for k in missing)]))
        print(f"{min(target, repetitions)} of {repetitions} repetitions", flush=True)


def row(mechanism: Mechanism, size: int, rows: np.ndarray) -> dict[str, object]:
    """Truths, coverage and medians of one mechanism."""
    found = pd.DataFrame(rows, columns=FIELDS)
    truth, delta = mechanism.local_epsilon(TAU), mechanism.delta(epsilon=EPSILON)
    if np.isinf(truth):
        local = np.isinf(found.high)
    else:
        local = (found.low <= truth) & (truth <= found.high)
    out: dict[str, object] = {
        "mechanism": mechanism.name,
        "kind": mechanism.kind,
        "size": size,
        "repetitions": len(found),
        "local epsilon": truth,
        "coverage": local.mean(),
        "truth below": (truth < found.low).mean(),
        "truth above": (truth > found.high).mean(),
        "band": f"({found.low.median():.3f}, {found.high.median():.3f})",
        "low95": found.low95.median(),
        "delta": delta,
    }
    if delta is None:
        return out
    if delta == 0.0:
        covered = found.delta_low <= NOTHING
    else:
        covered = (found.delta_low <= delta) & (delta <= found.delta_high)
    out["coverage of delta"] = covered.mean()
    out["width of delta"] = (found.delta_high - found.delta_low).median()
    return out


def tables(frame: pd.DataFrame) -> str:
    """Markdown, one table a sample size; coverages with their 95% Wilson intervals."""
    parts = []
    for size, part in frame.groupby("size"):
        lines = [
            f"### {size:,} outcomes a side\n",
            "| mechanism | repetitions | local epsilon | coverage | median band | delta(0.5) "
            "| coverage | median width |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for _, r in part.iterrows():
            lines.append(
                f"| {r['mechanism']} | {r['repetitions']} | {r['local epsilon']:.4f} "
                f"| {_share(r['coverage'], r['repetitions'])} | {r['band']} | {r['delta']:.4f} "
                f"| {_share(r['coverage of delta'], r['repetitions'])} "
                f"| {r['width of delta']:.4f} |"
            )
        for _, r in part[part["mechanism"] == "Laplace"].iterrows():
            lines.append(f"\nLaplace: the median lower end of the 95% band is {r['low95']:.3f}.")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _share(coverage: float, repetitions: int) -> str:
    ends = stats.binomtest(round(coverage * repetitions), repetitions).proportion_ci(
        method="wilson"
    )
    return f"{coverage:.3f} ({ends.low:.2f}-{ends.high:.2f})"


def write(frame: pd.DataFrame) -> None:
    """Put the tables between the page's markers."""
    before, rest = PAGE.read_text().split(START)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{START}\n\n{tables(frame)}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--mechanisms", default=".*", help="regular expression on the names")
    parser.add_argument("--collect", action="store_true", help="run nothing, show what there is")
    parser.add_argument("--write", action="store_true", help="put the tables on the page")
    options = parser.parse_args()
    chosen = [
        (mechanism, size)
        for size in options.sizes
        for mechanism in suite()
        if re.search(options.mechanisms, mechanism.name)
    ]
    if not options.collect:
        run(chosen, options.repetitions)
    kept = [(m, size, cached(m, size)[1][: options.repetitions]) for m, size in chosen]
    frame = pd.DataFrame([row(m, size, rows) for m, size, rows in kept if len(rows)])
    print(tables(frame))
    if options.write:
        write(frame)


if __name__ == "__main__":
    main()
