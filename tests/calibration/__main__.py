"""Run the calibration study: ``uv run python -m tests.calibration --repetitions 100``."""

from __future__ import annotations

import argparse
import itertools
import re

import pandas as pd

from tests.calibration import report, study
from tests.calibration.methods import METHODS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=f"{__doc__} Runs what is neither in {study.RESULTS.name} nor in the cache, "
        f"and writes {study.RESULTS.name} and the tables of {report.PAGE.name}.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--repetitions", type=int, default=100, help=f"how many, in batches of {study.BATCH}"
    )
    parser.add_argument("--first", type=int, default=0, help="the first repetition of this run")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(METHODS),
        choices=list(METHODS),
        metavar="METHOD",
        help="some of these",
    )
    parser.add_argument("--cells", default=".*", help="regular expression on the cells' names")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--collect", action="store_true", help="only write the table of results")
    options = parser.parse_args()
    everything = list(study.all_scenarios())
    chosen = [cell for cell in everything if re.search(options.cells, cell.name)]
    if not chosen:
        parser.error(f"no cell is called {options.cells!r}; one is {everything[0].name!r}")
    earlier = pd.read_csv(study.RESULTS) if study.RESULTS.exists() else None
    # method by method
    pairs = [(cell, method) for method, cell in itertools.product(options.methods, chosen)]
    if not options.collect:
        if earlier is not None:
            try:
                pairs = study.missing(earlier, pairs, options.first, options.repetitions)
            except ValueError as error:
                parser.error(str(error))
        if not pairs:
            print(f"{study.RESULTS.name} holds all of these repetitions")
            return
        study.run(pairs, options.first, options.repetitions, options.workers)
    table = study.collect(everything, METHODS, options.first)
    if earlier is not None:
        table = study.with_earlier(table, earlier)
    table.to_csv(study.RESULTS, index=False, float_format="%.6g")
    report.write(study.pooled(table))
    print(f"{len(table)} rows in {study.RESULTS.name}")


if __name__ == "__main__":
    main()
