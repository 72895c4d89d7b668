"""Run the calibration study: ``uv run python -m tests.calibration --repetitions 100``."""

from __future__ import annotations

import argparse
import re

import pandas as pd

from tests.calibration import report, study
from tests.calibration.methods import METHODS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first repetition of this run")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--cells", default=".*", help="regular expression on the cells' names")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--collect", action="store_true", help="only write the table of results")
    options = parser.parse_args()
    everything = list(study.all_scenarios())
    chosen = [cell for cell in everything if re.search(options.cells, cell.name)]
    if not chosen:
        parser.error(f"no cell is called {options.cells!r}; one is {everything[0].name!r}")
    earlier = pd.read_csv(study.RESULTS) if study.RESULTS.exists() else None
    if not options.collect:
        if earlier is not None:
            study.refuse_twice(earlier, chosen, options.methods, options.first, options.repetitions)
        study.run(chosen, options.methods, options.first, options.repetitions, options.workers)
    table = study.collect(everything, METHODS, options.first)
    if earlier is not None:
        table = study.with_earlier(table, earlier)
    table.to_csv(study.RESULTS, index=False, float_format="%.6g")
    report.write(study.pooled(table))
    print(f"{len(table)} rows in {study.RESULTS.name}")


if __name__ == "__main__":
    main()
