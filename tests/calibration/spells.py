"""Presence of people who come and leave: ``uv run python -m tests.calibration.spells --write``.

What `recent_odds` makes of presence in the next database, against its true probability. A number
below the truth is on the unsafe side: the risk of an individual grows with their presence. Those
in the last database are kept apart from those who were not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edp_bayes.coupling.contributions.spells import recent_odds
from tests.calibration import report

START, END = "<!-- spells -->", "<!-- end of spells -->"
DATABASES = (24, 60)
REPETITIONS = 100
FAR = 0.9  # a number below this times the truth is far below it
ROUNDING = 1e-9


class Sample(NamedTuple):
    """Presence, shape (n, people), and the true probability of it next, shape (people,).

    The truth is NaN for those whom the world does not watch.
    """

    present: np.ndarray
    truth: np.ndarray


@dataclass(frozen=True)
class World:
    """People of whom some are watched."""

    name: str
    sample: Callable[[np.random.Generator, int], Sample]


class Figures(NamedTuple):
    """Means of the truth and of what is made of it, and how often that is below, or far below."""

    truth: float
    given: float
    below: float
    far_below: float


def markov(
    rng: np.random.Generator, n: int, people: int, share: float, alike: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return two-state Markov presence, shape (n, people), and its probability in the next one."""
    there = np.empty((n, people), dtype=bool)
    there[0] = rng.random(people) < share
    for row in range(1, n):
        there[row] = rng.random(people) < share * (1.0 - alike) + alike * there[row - 1]
    return there, share * (1.0 - alike) + alike * there[-1]


def newcomers(others: int) -> World:
    """One who came up to five databases ago and stays, beside others who are always there."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        present = np.ones((n, others + 1), dtype=bool)
        present[: n - rng.integers(1, 6), 0] = False
        return Sample(present, _only_first(others + 1, 1.0))

    return World(f"a newcomer beside {others} always there", sample)


def left(others: int) -> World:
    """One who left for good after a third of the databases, beside others who stay."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        present = np.ones((n, others + 1), dtype=bool)
        start = rng.integers(0, n // 3)
        present[:, 0] = (np.arange(n) >= start) & (np.arange(n) < n // 3)
        return Sample(present, _only_first(others + 1, 0.0))

    return World(f"one who has left beside {others} always there", sample)


def one_spell(people: int, stays: float) -> World:
    """Everybody comes once, at any time, stays with a probability, and does not come back."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        came = rng.integers(0, n, people)
        gone = came + rng.geometric(1.0 - stays, people)
        time = np.arange(n)[:, None]
        present = (time >= came) & (time < gone)
        return Sample(present, stays * present[-1])

    return World(f"{people} who come once, stay with {stays:g}", sample)


def unlike(name: str, own: tuple[float, float], others: tuple[float, float]) -> World:
    """One of a share and an autocorrelation among fifty of others."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        first, chance = markov(rng, n, 1, *own)
        rest, _ = markov(rng, n, 50, *others)
        return Sample(np.hstack([first, rest]), _only_first(51, chance[0]))

    return World(name, sample)


def alike(people: int, share: float, autocorrelation: float) -> World:
    """People whose presence is Markov, of one autocorrelation."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        return Sample(*markov(rng, n, people, share, autocorrelation))

    return World(f"{people} of share {share:g}, autocorrelation {autocorrelation:g}", sample)


def _only_first(people: int, truth: float) -> np.ndarray:
    return np.append(truth, np.full(people - 1, np.nan))


WORLDS = (
    *(newcomers(others) for others in (1, 3, 10)),
    one_spell(30, 0.9),
    left(3),
    left(10),
    unlike("one in spells among 50 at random", (0.5, 0.9), (0.5, 0.0)),
    unlike("one at random among 50 in spells", (0.5, 0.0), (0.5, 0.9)),
    alike(10, 0.3, 0.0),
    alike(10, 0.3, 0.5),
    alike(10, 0.5, 0.9),
    alike(10, 0.5, 0.95),
    alike(2, 0.5, 0.9),
    alike(10, 0.1, 0.9),
)


def given(present: np.ndarray) -> np.ndarray:
    """Return presence at the next database by `recent_odds`, shape (people,)."""
    n, people = present.shape
    owner, place = np.nonzero(present.T)
    odds = recent_odds(owner * n + place, people, n, np.ones(n), 1.0, n)
    share = present.mean(axis=0)
    return odds * share / (1.0 - share + odds * share)


def study(world: World, n: int, repetitions: int = REPETITIONS) -> dict[bool, Figures | None]:
    """Return the figures of those in the last database (True) and of those who were not (False).

    None where there are none. Those who were never or always there are left out: what is known of
    them is their share.
    """
    rng = np.random.default_rng([n, *world.name.encode()])
    here, truth, found = [], [], []
    for _ in range(repetitions):
        present, true = world.sample(rng, n)
        if not present.any():
            continue
        share = present.mean(axis=0)
        seen = (share > 0.0) & (share < 1.0) & ~np.isnan(true)
        here.append(present[-1, seen])
        truth.append(true[seen])
        found.append(given(present)[seen])
    last, true, made = map(np.concatenate, (here, truth, found))
    return {at: _figures(true[last == at], made[last == at]) for at in (True, False)}


def _figures(truth: np.ndarray, found: np.ndarray) -> Figures | None:
    if truth.size == 0:
        return None
    below = (found < (1.0 - ROUNDING) * truth).mean()
    far = (found < (1.0 - ROUNDING) * FAR * truth).mean()
    return Figures(float(truth.mean()), float(found.mean()), float(below), float(far))


def table(repetitions: int = REPETITIONS) -> str:
    """Return the figures of every world as a table of Markdown, those of 24 and 60 databases."""
    head = ["people", "last time", "truth", "given", "below", "far below"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for world in WORLDS:
        found = [study(world, n, repetitions) for n in DATABASES]
        for here in (True, False):
            both = [each[here] for each in found]
            if not all(both):
                continue
            truth, made, below, far = zip(*both, strict=True)
            cells = [
                world.name,
                "there" if here else "away",
                ", ".join(f"{value:.2f}" for value in truth),
                ", ".join(f"{value:.2f}" for value in made),
                ", ".join(f"{value:.0%}" for value in below),
                ", ".join(f"{value:.0%}" for value in far),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--write", action="store_true", help=f"put the table in {report.PAGE.name}")
    options = parser.parse_args()
    text = table(options.repetitions)
    print(text)
    if options.write:
        report.put(text, START, END)


if __name__ == "__main__":
    main()
