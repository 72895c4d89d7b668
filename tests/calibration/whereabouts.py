"""Two truths of people in spells: ``uv run python -m tests.calibration.whereabouts``.

An audit of ordered databases takes presence in the next one from whether the individual was in the
last one. That is the truth against an adversary who knows where they were. An adversary who knows
the releases alone takes presence from those: the truth of `tests.calibration.given`. For
individuals who are away it is the larger of the two.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from tests.calibration.given import EPSILON, STAYS, Cell, _curves, once

SIZES = (41, 150)


def was_there(cell: Cell, repetition: int) -> bool:
    """Whether the individual was in the last database."""
    responses, _ = cell.sample(repetition)
    return bool((responses.contribution.indices == cell.n - 1).any())


def truth_of_those_seen(cell: Cell, there: bool) -> np.ndarray:
    """Return delta_i given whether the individual was in the last database, by epsilon."""
    shares, curves = _curves(cell)
    presence = STAYS if there else 1.0 - STAYS
    return np.array([np.interp(presence, shares, curve) for curve in curves.T])


def below(cell: Cell, repetitions: int) -> Iterator[tuple[bool, int, np.ndarray]]:
    """Yield whether they were there, how often, and shares of bands and limits below the truth.

    Shape (2, 2, epsilon): the truth of the releases and that of the last presence; band and limit.
    """
    there = np.array([was_there(cell, k) for k in range(repetitions)])
    found = np.array([once(cell, "given", k) for k in range(repetitions)])
    known = np.array([truth_of_those_seen(cell, bool(here)) for here in there])
    ends = found[:, 2:4]
    for here in (True, False):
        some = there == here
        truths = np.stack([found[some, 0], known[some]], axis=1)
        yield here, int(some.sum()), (ends[some][:, None] < truths[:, :, None]).mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=80)
    options = parser.parse_args()
    print(f"Below the truth at epsilon {', '.join(f'{e:g}' for e in EPSILON)}.\n")
    head = ["n", "size", "last time", "repetitions", "truth", "band", "limit"]
    print(f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|")
    for n in SIZES:
        for size in (0.4, 0.1):
            for here, count, shares in below(
                Cell("spells", "normal", n, size), options.repetitions
            ):
                for name, values in zip(("releases", "last presence"), shares, strict=True):
                    said = [", ".join(f"{value:.0%}" for value in each) for each in values]
                    place = "there" if here else "away"
                    print(f"| {n} | {size:g} | {place} | {count} | {name} | {' | '.join(said)} |")


if __name__ == "__main__":
    main()
