"""Worlds that no model was tuned to: ``uv run python -m tests.calibration.worlds --write``.

An individual whose coming or giving depends on the rest, shares of a total, answers with atoms,
peaks, edges, gross outliers, newcomers. Each is a whole audit, so that a verdict may be withheld.
The table says how often the limit of 95% at one epsilon lies below the truth, and how often without
a failed check that withholds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.signal import fftconvolve
from scipy.special import expit
from scipy.stats import expon, gamma, lognorm, norm

import edp_bayes as edp
from tests.calibration.failures import standardised
from tests.calibration.report import put

EPSILON = np.array([0.05, 0.2, 0.5])
RESULTS = Path(__file__).with_name("worlds.csv")
START, END = "<!-- worlds -->", "<!-- end of worlds -->"
VISIBLE = 0.001  # below, a truth is none that anybody would miss

LINE = np.linspace(-40.0, 60.0, 2_000_001)
STEP = float(LINE[1] - LINE[0])

type Array = np.ndarray
type Sample = Callable[[np.random.Generator, int], tuple[Array, Array]]


class Side(NamedTuple):
    """A distribution: its density on LINE, and the masses of its atoms."""

    density: Array
    atoms: tuple[float, ...] = ()


@dataclass(frozen=True)
class World:
    """Answers with and without one individual, and what is true of them.

    `sample` returns both answers, (n,) each; `true` both distributions, with the individual first.
    """

    sample: Sample
    true: Callable[[], tuple[Side, Side]]
    options: dict[str, Any] = field(default_factory=dict)
    adversary: edp.Adversary | None = None


def hockey_stick(one: Side, other: Side, epsilon: float) -> float:
    """Return H_epsilon(one || other) by a Riemann sum and the atoms."""
    growth = np.exp(epsilon)
    area = np.maximum(one.density - growth * other.density, 0.0).sum() * STEP
    pairs = zip(one.atoms, other.atoms, strict=True)
    return float(area + sum(max(a - growth * b, 0.0) for a, b in pairs))


def truth(world: World) -> Array:
    """Return delta at EPSILON."""
    p, q = world.true()
    return np.array([max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in EPSILON])


def sum_density(one: Array, other: Array) -> Array:
    """Return the density on LINE of the sum of two independent numbers."""
    whole = fftconvolve(one, other) * STEP
    first = int(np.searchsorted(LINE, 0.0))
    return np.maximum(whole[first : first + LINE.size], 0.0)


def additive(rest: Callable[[np.random.Generator, int], Array], density: Array, amount: float):
    """Return a world of an individual who gives the same amount every time."""

    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        found = rest(rng, n)
        return found + amount, found

    def true() -> tuple[Side, Side]:
        return Side(np.interp(LINE - amount, LINE, density)), Side(density)

    return World(sample, true)


def coming(
    rest: Callable[[np.random.Generator, int], Array],
    density: Array,
    presence: Callable[[Array], Array],
    amount: float,
) -> World:
    """Return a world of an individual whose coming depends on the rest."""

    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        found = rest(rng, n)
        there = rng.random(n) < presence(found)
        return found + amount * there, found

    def true() -> tuple[Side, Side]:
        share = presence(LINE)
        there = np.interp(LINE - amount, LINE, share * density)
        return Side((1.0 - share) * density + there), Side(density)

    return World(sample, true)


def giving(
    rest: Callable[[np.random.Generator, int], Array],
    density: Array,
    parts: list[tuple[Callable[[Array], Array], float]],
) -> World:
    """Return a world of an individual who gives an amount of their own in each part of the rest."""

    def amounts(found: Array) -> Array:
        return np.select([part(found) for part, _ in parts], [amount for _, amount in parts])

    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        found = rest(rng, n)
        return found + amounts(found), found

    def true() -> tuple[Side, Side]:
        moved = [np.interp(LINE - a, LINE, part(LINE) * density) for part, a in parts]
        return Side(np.sum(moved, axis=0)), Side(density)

    return World(sample, true)


def mixture(parts: list[tuple[float, float, float]]):
    """Return a sampler and the density of a normal mixture of (weight, mean, sd)."""
    weights, means, sds = np.array(parts).T

    def sample(rng: np.random.Generator, n: int) -> Array:
        which = rng.choice(weights.size, n, p=weights / weights.sum())
        return means[which] + sds[which] * rng.standard_normal(n)

    density = sum(w * norm.pdf(LINE, m, s) for w, m, s in parts) / weights.sum()
    return sample, density


NORMAL = mixture([(1.0, 0.0, 1.0)])
HOLIDAYS = mixture([(0.9, 0.0, 1.0), (0.1, 6.0, 1.0)])
COMB = mixture([(1.0, float(k), 0.2) for k in range(6)])
SKEWED = mixture(list(zip(*standardised("strongly skewed"), strict=True)))
OUTLIERS = mixture([(0.98, 0.0, 1.0), (0.02, 0.0, 8.0)])
CAP = norm.ppf(2.0 / 3.0)
SHARE, WIDTH = 0.08, 0.5  # of a lognormal total
ODDS, MIDDLE = 0.1, 3.0  # of a proportion near one
NOTHING, CLOSED = 1.0 / 3.0, 0.25


def _share(transform: str | None) -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        total = np.exp(rng.normal(1.0, WIDTH, n))
        return total, (1.0 - SHARE) * total

    def true() -> tuple[Side, Side]:
        shift = -np.log1p(-SHARE) / WIDTH
        return Side(norm.pdf(LINE - shift)), Side(norm.pdf(LINE))

    return World(sample, true, {"transform": transform})


def _proportion(transform: str | None) -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        z = rng.normal(MIDDLE, WIDTH, n)
        return expit(z), expit(z - ODDS)

    def true() -> tuple[Side, Side]:
        return Side(norm.pdf(LINE - ODDS / WIDTH)), Side(norm.pdf(LINE))

    return World(sample, true, {"transform": transform})


def _capped(atoms: bool) -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        rest = rng.standard_normal(n)
        return np.minimum(rest + 0.3, CAP), np.minimum(rest, CAP)

    def true() -> tuple[Side, Side]:
        inside = LINE < CAP
        return (
            Side(inside * norm.pdf(LINE - 0.3), (float(norm.sf(CAP - 0.3)),)),
            Side(inside * norm.pdf(LINE), (float(norm.sf(CAP)),)),
        )

    return World(sample, true, {"atoms": [CAP]} if atoms else {})


def _nothing_without(atoms: bool) -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        rest = np.where(rng.random(n) < NOTHING, 0.0, rng.gamma(4.0, 1.0, n))
        return rest + rng.gamma(4.0, 0.25, n), rest

    def true() -> tuple[Side, Side]:
        rest, own = gamma.pdf(LINE, 4.0), gamma.pdf(LINE, 4.0, scale=0.25)
        both = sum_density(rest, own)
        return (
            Side(NOTHING * own + (1.0 - NOTHING) * both, (0.0,)),
            Side((1.0 - NOTHING) * rest, (NOTHING,)),
        )

    return World(sample, true, {"atoms": [0.0]} if atoms else {})


def _closed(atoms: bool) -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        shut = rng.random(n) < CLOSED
        rest = rng.normal(10.0, 1.0, n)
        return np.where(shut, 0.0, rest + 0.3), np.where(shut, 0.0, rest)

    def true() -> tuple[Side, Side]:
        return (
            Side((1.0 - CLOSED) * norm.pdf(LINE - 10.3), (CLOSED,)),
            Side((1.0 - CLOSED) * norm.pdf(LINE - 10.0), (CLOSED,)),
        )

    return World(sample, true, {"atoms": [0.0]} if atoms else {})


def _heavy() -> World:
    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        rest = rng.standard_normal(n)
        return rest + np.exp(rng.normal(-1.5, 1.0, n)), rest

    def true() -> tuple[Side, Side]:
        own = lognorm.pdf(LINE, 1.0, scale=np.exp(-1.5))
        return Side(sum_density(norm.pdf(LINE), own)), Side(norm.pdf(LINE))

    return World(sample, true)


def _newcomer() -> World:
    """2.5 sd in the last two databases, against whoever knows that they came; the truth: stays."""

    def sample(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        rest = rng.standard_normal(n)
        return rest + 2.5 * (np.arange(n) >= n - 2), rest

    def true() -> tuple[Side, Side]:
        return Side(norm.pdf(LINE - 2.5)), Side(norm.pdf(LINE))

    return World(sample, true, adversary=edp.Adversary(past=1))


WORLDS: dict[str, World] = {
    "normal, gives 0.1": additive(*NORMAL, 0.1),
    "normal, gives 0.4": additive(*NORMAL, 0.4),
    "comes above 0, gives 0.5": coming(*NORMAL, lambda x: 1.0 * (x > 0.0), 0.5),
    "comes above 0.8": coming(*NORMAL, lambda x: 1.0 * (x > 0.8), 0.5),
    "comes above 1.5": coming(*NORMAL, lambda x: 1.0 * (x > 1.5), 0.5),
    "comes below -0.8": coming(*NORMAL, lambda x: 1.0 * (x < -0.8), 0.5),
    "comes the more, the higher": coming(*NORMAL, lambda x: expit(2.0 * x - 1.0), 0.5),
    "comes in holidays": coming(*HOLIDAYS, lambda x: 1.0 * (x > 3.0), 0.5),
    "comes in 6 of 10 holidays": coming(*HOLIDAYS, lambda x: 0.6 * (x > 3.0), 0.5),
    "share of a lognormal total": _share(None),
    "the same, log": _share("log"),
    "proportion near 1": _proportion(None),
    "the same, logit": _proportion("logit"),
    "capped": _capped(False),
    "the same, atom": _capped(True),
    "0 without them": _nothing_without(False),
    "0 without them, atom": _nothing_without(True),
    "closed": _closed(False),
    "closed, atom": _closed(True),
    "strongly skewed, gives 0.1": additive(*SKEWED, 0.1),
    "strongly skewed, gives 0.4": additive(*SKEWED, 0.4),
    "six peaks, gives 0.1": additive(*COMB, 0.1),
    "six peaks, gives 0.3": additive(*COMB, 0.3),
    "outliers, gives 0.4": additive(*OUTLIERS, 0.4),
    "lognormal amounts": _heavy(),
    "new in the last two, gives 2.5": _newcomer(),
    "comes above 2": coming(*NORMAL, lambda x: 1.0 * (x > 2.0), 0.5),
    "comes at both ends": coming(*NORMAL, lambda x: 1.0 * (np.abs(x) > 1.2), 0.5),
    "comes in the middle": coming(*NORMAL, lambda x: 1.0 * (np.abs(x) < 0.4), 0.5),
    "gives 0.6 above 1, else 0.02": giving(
        *NORMAL, [(lambda x: x > 1.0, 0.6), (lambda x: x <= 1.0, 0.02)]
    ),
    "exponential, gives 0.1": additive(
        lambda rng, n: rng.exponential(1.0, n), expon.pdf(LINE), 0.1
    ),
}


def once(task: tuple[str, int, int]) -> dict[str, Any]:
    """Return limits of one audit, and whether it has a verdict."""
    name, n, repetition = task
    world = WORLDS[name]
    seed = np.random.SeedSequence([list(WORLDS).index(name), n, repetition])
    rng = np.random.default_rng(seed)
    answers, without = world.sample(rng, n)
    while (answers == without).all():  # who has never come is no individual of an audit
        answers, without = world.sample(rng, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        responses = edp.Responses.from_arrays(
            answers, response_without=without[:, None], **world.options
        )
        audit = edp.audit(
            responses,
            epsilon=EPSILON,
            adversary=world.adversary,
            draws=250,
            chains=2,
            random_seed=repetition,
            progressbar=False,
        )
    limits = audit.upper("delta").to_numpy()
    lower = audit.band("delta", prob=0.95, kind="pointwise")["upper"].to_numpy()
    return {
        "world": name,
        "n": n,
        "repetition": repetition,
        "withheld": audit.withheld is not None,
        **{f"limit_{k}": limit for k, limit in enumerate(limits)},
        **{f"band_{k}": end for k, end in enumerate(lower)},
    }


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row a world and size: truths, median limits, and what lies below."""
    rows = []
    for (name, n), cell in found.groupby(["world", "n"], sort=False):
        true = truth(WORLDS[name])
        limits = cell[[f"limit_{k}" for k in range(EPSILON.size)]].to_numpy()
        ends = cell[[f"band_{k}" for k in range(EPSILON.size)]].to_numpy()
        kept = ~cell["withheld"].to_numpy(bool)
        visible = true >= VISIBLE
        below, low = limits < true, ends < true
        rows.append(
            {
                "world": name,
                "n": n,
                "repetitions": len(cell),
                "true": ", ".join(f"{value:.2g}" for value in true),
                "median limit": ", ".join(f"{value:.2g}" for value in np.median(limits, axis=0)),
                "withheld": f"{1.0 - kept.mean():.0%}",
                "limit below": ", ".join(
                    f"{share:.0%}" for share in below[:, visible].mean(axis=0)
                ),
                "with a verdict": ", ".join(
                    f"{share:.0%}" for share in (below & kept[:, None])[:, visible].mean(axis=0)
                ),
                "band below, with a verdict": ", ".join(
                    f"{share:.0%}" for share in (low & kept[:, None])[:, visible].mean(axis=0)
                ),
            }
        )
    return pd.DataFrame(rows)


def with_earlier(found: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """Return what was found, and what was before of other worlds and sizes, in their order."""
    cells = set(zip(found["world"], found["n"], strict=True))
    old = [cell not in cells for cell in zip(earlier["world"], earlier["n"], strict=True)]
    both = pd.concat([earlier[old], found], ignore_index=True)
    order = both["world"].map(list(WORLDS).index)
    return both.assign(order=order).sort_values(["order", "n", "repetition"]).drop(columns="order")


def markdown(table: pd.DataFrame) -> str:
    """Return the table as it stands on the page."""
    head = list(table.columns)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60])
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"{RESULTS.name} and the page")
    options = parser.parse_args()
    tasks = [
        (name, n, k)
        for name in options.worlds
        for n in options.sizes
        for k in range(options.repetitions)
    ]
    found = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(once, tasks):
            found.append(row)
            if row["repetition"] == options.repetitions - 1:
                cell = [r for r in found if (r["world"], r["n"]) == (row["world"], row["n"])]
                print(markdown(summary(pd.DataFrame(cell))).splitlines()[-1], flush=True)
    table = pd.DataFrame(found)
    if options.write:
        if RESULTS.exists():
            table = with_earlier(table, pd.read_csv(RESULTS))
        table.to_csv(RESULTS, index=False, float_format="%.6g")
        put(markdown(summary(table)), START, END)


if __name__ == "__main__":
    main()
