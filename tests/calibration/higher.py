"""Coverage of the higher of two upper ends: ``uv run python -m tests.calibration.higher``.

Where the default's band lies below the truth too often, that of the smoothed bootstrap does not
always. The table tells what becomes of the default's band when it ends where the higher of both
does, at every n with a population of 1. Fits are kept and taken from the cache of the study.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from tests.calibration import study
from tests.calibration.scenarios import DATABASES, Scenario

DEFAULT, OTHER = "dirichlet process", "smoothed bootstrap"


def rows(scenario: Scenario, repetitions: int) -> pd.DataFrame:
    """Coverage and median width of the default's band and of the one with the higher end."""
    bands, others = (
        study.kept(scenario, method, 0)["delta"][:repetitions] for method in (DEFAULT, OTHER)
    )
    upper = study.FIELDS.index("upper")
    higher = bands.copy()
    higher[:, upper] = np.maximum(bands[:, upper], others[:, upper])
    each = [
        pd.DataFrame(study.rows_of(scenario, name, "delta", 0, values))
        for name, values in (("default", bands), ("higher", higher))
    ]
    return pd.concat(each, ignore_index=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and least coverage, cells that cover too rarely and ratio of widths, by n."""
    cell = ["n", "distribution", "individual", "epsilon"]
    table = study.pooled(table).assign(rarely=lambda found: found["coverage_high"] < 0.93)
    by = table.groupby(["method", "n"])
    found = by["coverage"].agg(mean="mean", least="min").assign(rarely=by["rarely"].sum())
    width = table.pivot(index=cell, columns="method", values="width")
    wider = np.log(width["higher"] / width["default"]).groupby("n").mean()
    found.loc["higher", "wider"] = np.expm1(wider).to_numpy()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--databases", type=int, nargs="+", default=DATABASES, choices=DATABASES)
    options = parser.parse_args()
    cells = [s for s in study.all_scenarios() if s.population == 1 and s.n in options.databases]
    pairs = [(cell, method) for method in (DEFAULT, OTHER) for cell in cells]
    study.run(pairs, 0, options.repetitions, options.workers)
    table = pd.concat([rows(cell, options.repetitions) for cell in cells], ignore_index=True)
    print(summary(table).round(3).to_string())


if __name__ == "__main__":
    main()
