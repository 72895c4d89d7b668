"""Whether answers without an individual lie on a coarser grid than those with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.diagnostics.checks import Check, Checks, threshold
from edp_bayes.diagnostics.common_steps import (
    FINEST_SHARE,
    ROUNDING,
    candidates,
    common_steps,
    plain,
)
from edp_bayes.utils.arrays import Array, Flags, Index
from edp_bayes.utils.formatting import risk, risk_limit
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["GRID", "check_grid"]

GRID = "grid"
LEVEL = 0.05
STEPS = (1.0, 2.0, 2.5, 5.0)  # times a power of ten: of digits
MULTIPLES = (1.0, 1.2, 1.5, 2.0, 2.4, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5, 8.0, 9.0)  # the same
FINEST = 1e4  # times what rounding may do: finer steps are not told from it
LEAST_CHANCE = 1e-3  # that a total lies on a grid by chance, at least
HIDDEN = 0.25  # of a step: noise of a larger standard deviation hides its grid
MOST_NAMED = 3
MOST_CELLS = 2**20  # people times databases of which common steps are sought
ALL_SQUARES = math.pi**2 / 6.0  # the sum of 1 / h^2: no test at h^-2 of a level exceeds it together


class _Break(NamedTuple):
    """A grid that an individual breaks: in how many databases, and what that alone reveals."""

    person: int
    step: float
    broken: int
    on_without: int
    on_with: int
    level: int
    exposure: float
    excess: float


def check_grid(
    responses: Responses, *, epsilon: Array, upper: Array, level: float = LEVEL
) -> Checks:
    """Look for individuals without whom answers lie on a grid that they leave with them.

    Were the others' amounts as fine as those of an individual who contributes cents, the response
    without them would be a whole number in one database of a hundred. Where it is one more often
    (binomial test at the level, over all individuals and grids together), the individual breaks
    that grid. What the event "a multiple of the step" alone reveals of them is compared with the
    upper limit of the largest risk, and the check fails where it is more at any epsilon.

    Two kinds of steps are looked for, each at half the level. The first are 1 to 9, 1.2, 1.5, 2.4,
    2.5 and 7.5 times powers of ten, from the digits of the amounts up to the largest response.
    The second are greatest common divisors: of the responses without an individual, of all
    databases and of those in which they contribute. They find any step down to a millionth of the
    largest response. Divisors of three responses each, which recur, find a step on which a share
    of them lies. An odd step of less than about a third of the responses may go unseen.
    Where answers without others lie on it as often, in the same databases, it is no grid that the
    individual breaks: shares of a few records have small denominators, and lie on many grids.
    Divisors are chosen from the data: that of h times the digits of the amounts is tested at a
    share of the level that falls as 1 / h^2, so that all of them together keep it. They are sought
    for the individuals in most databases, up to a million pairs of individual and database.

    Rounded responses and counts are modelled on their grid, and samples of a randomised query have
    none: nothing is looked for. Noise hides the grids of less than four times its standard
    deviation, and contributions as near to a multiple as that deviation. The grid is that of what
    is published: the numerator of a mean or of a proportion is not looked into.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses as they were, of all databases.
    epsilon, upper : ndarray
        Shape (epsilon,): the grid of epsilon and the upper limit of delta.
    level : float
        Probability of a false alarm.

    Returns
    -------
    Checks
        The check `grid`; its statistic is the largest share of databases in which an individual
        breaks a grid.

    See Also
    --------
    check_scale : whether answers ask for another scale
    edp_bayes.queries.Quantile : a quantile of a column
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> amount = rng.integers(1, 400, (40, 8)) / 2
    >>> amount[:, 0] += 0.13
    >>> data = edp.Responses.from_arrays(amount.sum(axis=1), contribution=amount)
    >>> check = check_grid(data, epsilon=np.array([0.1]), upper=np.array([0.3]))["grid"]
    >>> check.passed, check.statistic
    (False, 1.0)
    """
    found = _worst(responses, epsilon, upper, level)
    if not found:
        text = "Nobody alone takes the answer off a grid of digits or multiples on which it lies"
        return Checks((threshold(GRID, 0.0, True, text + " without them", ""),), level)
    worst = found[0]
    return Checks((_failed(responses, found, worst, epsilon, upper),), level)


def _failed(
    responses: Responses, found: list[_Break], worst: _Break, epsilon: Array, upper: Array
) -> Check:
    names = [name_of(responses.individual, one.person) for one in found[:MOST_NAMED]]
    others = [part for name in names[1:] for part in ("; so does individual ", name)]
    more = f"; and {len(found) - len(names)} more do" if len(found) > len(names) else ""
    n = responses.n_databases
    text = Sentence(
        "Individual ",
        names[0],
        f" breaks a grid: without them the answer is a multiple of {worst.step:.15g} in "
        f"{worst.on_without} of {n} databases, with them in {worst.on_with}. That alone says a "
        f"risk of {risk(worst.exposure)} at epsilon = {epsilon[worst.level]:g}, the upper limit of "
        f"the largest risk is {risk_limit(float(upper[worst.level]))}",
        *others,
        more,
    )
    advice = (
        f"Round amounts to multiples of {worst.step:.15g} before they are added, or publish with "
        "noise of that size."
    )
    share = max(one.broken for one in found) / n
    return threshold(GRID, share, False, text, advice)


def _worst(responses: Responses, epsilon: Array, upper: Array, level: float) -> list[_Break]:
    """Return one grid for each individual who breaks some, the worst first."""
    if responses.samples > 1 or responses.half_step is not None:
        return []
    best: dict[int, _Break] = {}
    if not (entries := _Entries.of(responses)).owner.size:
        return []
    halves = (search(responses, entries, level / 2.0) for search in (_breaks, _divided))
    for found in chain.from_iterable(halves):
        broken = _compared(*found, responses.n_databases, epsilon, upper)
        if broken is not None and broken.excess >= best.get(broken.person, broken).excess:
            best[broken.person] = broken  # of equal ones the coarsest
    return sorted(best.values(), key=lambda one: -one.excess)


def _compared(
    person: int,
    step: float,
    broken: int,
    finer: int,
    without: int,
    with_them: int,
    n: int,
    epsilon: Array,
    upper: Array,
) -> _Break | None:
    """Return what the event reveals where that is more than the limit at some epsilon.

    `finer` is in how many databases the own contribution is no multiple: had it nothing to do with
    the rest, it would break the grid in that share of the databases in which the rest lies on it.
    """
    growth = np.exp(epsilon)
    both = []
    for on in (with_them, without * (1.0 - finer / n)):
        off = (n - on) - growth * (n - without)
        both.append(np.maximum(off, without - growth * on) / n)
    exposure = np.minimum(*both)
    excess = exposure - upper
    level = int(np.argmax(excess))
    if excess[level] <= 0.0:
        return None
    said = float(exposure[level]), float(excess[level])
    return _Break(person, step, broken, without, with_them, level, *said)


def _breaks(
    responses: Responses, everything: _Entries, level: float
) -> Iterator[tuple[int, float, int, int, int, int]]:
    """Yield who breaks which grid more often than by chance.

    Beside individual and step, numbers of databases: in which they break it, in which their own
    contribution is no multiple, and in which the response without and with them is one.
    """
    c, y, n = responses.collected, responses.response, responses.n_databases
    size, noise = everything.size, _noise(responses)
    digits = _steps(STEPS, FINEST * everything.tolerance, size)
    first = everything.first_broken(y, digits)
    if first == digits.size:
        return
    steps = _steps(MULTIPLES, digits[first], size)
    finest = _steps(MULTIPLES, digits[max(0, first - len(STEPS))], size)
    steps = steps[HIDDEN * steps > noise]
    people = int((np.diff(c.indptr) > 0).sum())
    left, decade, tests = everything, 0.0, people * steps.size
    for step in steps:
        if (below := _decade(step)) != decade:  # all steps from here on are multiples of it
            decade = below
            left = left.some(left.on(left.rest, decade))
            if not left.owner.size:
                return
        on = everything.multiples(y, step)
        alone = left.some(left.on(left.rest, step))
        hits = alone.some(~alone.on(alone.own, step, within=noise))
        person, broken = np.unique(hits.owner, return_counts=True)
        if not person.size:
            continue
        theirs = everything.some(np.isin(everything.owner, person))
        own = theirs.some(~theirs.on(theirs.own, step))
        at = np.searchsorted(person, own.owner)
        finer = np.bincount(at, minlength=person.size)
        chance = np.bincount(at, own.chances(step, finest), person.size) / finer
        moved = np.bincount(np.searchsorted(person, theirs.owner), on[theirs.row], person.size)
        kept = np.bincount(
            np.searchsorted(person, alone.owner[np.isin(alone.owner, person)]),
            minlength=person.size,
        )
        without = int(on.sum()) - moved.astype(np.int64) + kept
        for k in np.flatnonzero(_by_chance(without, n, chance) * tests < level):
            among = everything.others(int(person[k]), own.row[at == k], step)
            if _by_chance(int(without[k]), n, among) * tests >= level:
                continue
            yield (
                int(person[k]), float(step), int(broken[k]), int(finer[k]), int(without[k]),
                int(on.sum()),
            )  # fmt: skip


def _divided(
    responses: Responses, everything: _Entries, level: float
) -> Iterator[tuple[int, float, int, int, int, int]]:
    """Yield who breaks a grid whose step is a common divisor of responses without them.

    As `_breaks`. Equal responses count once in the test: they are no further evidence of a grid.
    """
    c, y, n = responses.collected, responses.response, responses.n_databases
    size, noise = everything.size, _noise(responses)
    count = np.diff(c.indptr)
    people = np.argsort(-count, kind="stable")[: max(1, MOST_CELLS // n)]
    people = np.sort(people[count[people] > 0])
    total = int((count > 0).sum())
    base = max(common_steps(np.r_[y, c.data][None], size=size)[0], FINEST_SHARE * size)
    own = everything.some(np.isin(everything.owner, people))
    place = np.searchsorted(people, own.owner)
    rests = np.zeros((people.size, n))
    rests[place, own.row] = own.rest
    without = np.repeat(y[None], people.size, axis=0)
    inside = np.isin(responses.owner, people)
    there = np.searchsorted(people, responses.owner[inside]), c.indices[inside]
    without[there] = rests[there]
    whose, step = candidates(place, own.rest, size=size, least=base)
    everybody = np.arange(people.size)
    whose = np.r_[everybody, everybody, whose]
    step = np.r_[common_steps(without, size=size), common_steps(rests, size=size), step]
    sought = (step > 1.5 * base) & (HIDDEN * step > noise)
    for k, exact in zip(whose[sought], step[sought], strict=True):
        named, answers = plain(float(exact)), without[k]
        on, parts = everything.multiples(answers, named), named / base
        values = everything.distinct(answers[np.abs(answers) > everything.tolerance])
        hits = everything.distinct(answers[on])
        tests = total * ALL_SQUARES * parts**2
        if _by_chance(hits, values, max(LEAST_CHANCE, 1.0 / parts)) * tests >= level:
            continue
        mine = own.some(place == k)
        mine = mine.some(~mine.on(mine.own, named))
        broken = (~mine.on(mine.own, named, within=noise) & on[mine.row]).sum()
        if not broken:
            continue
        pairs = np.stack([mine.own, np.full(mine.own.size, named)], axis=1)
        chance = np.maximum(common_steps(pairs, size=size) / named, LEAST_CHANCE).mean()
        if _by_chance(hits, values, chance) * tests >= level:
            continue
        among = everything.others(int(people[k]), mine.row, named)
        if _by_chance(hits, values, among) * tests < level:
            kept = everything.multiples(y, named)
            counts = int(broken), mine.own.size, int(on.sum()), int(kept.sum())
            yield (int(people[k]), named, *counts)


def _noise(responses: Responses) -> float:
    """Return the standard deviation of the known noise of the answers."""
    return 0.0 if responses.noise is None else math.sqrt(responses.noise.variance)


def _by_chance(hits: Index | int, n: int, chance: Array | float) -> Array:
    """Return how likely so many of n or more are hit by chance; 1 where no more than expected."""
    from scipy.special import bdtrc

    return np.where(hits > n * chance, bdtrc(hits - 1.0, n, chance), 1.0)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Contributions, and what is left of the response without them."""

    owner: Index
    row: Index
    own: Array
    rest: Array
    size: float

    @classmethod
    def of(cls, responses: Responses) -> _Entries:
        """Return all entries but those without which nothing is left, which lies on every grid."""
        c, size = responses.collected, float(np.abs(responses.response).max())
        row = c.indices.astype(np.int64)
        found = cls(responses.owner, row, c.data, responses.response[row] - c.data, size)
        return found.some(np.abs(found.rest) > found.tolerance)

    @property
    def tolerance(self) -> float:
        """What rounding may do to a response."""
        return ROUNDING * self.size

    def some(self, kept: Flags) -> _Entries:
        """Return some of the entries."""
        parts = (self.owner[kept], self.row[kept], self.own[kept], self.rest[kept])
        return _Entries(*parts, self.size)

    def on(self, values: Array, step: float, *, within: float = 0.0) -> Flags:
        """Return which values are multiples of the step, but for rounding or a distance."""
        parts = values / step
        return np.asarray(np.abs(parts - np.rint(parts)) <= max(within, self.tolerance) / step)

    def multiples(self, values: Array, step: float) -> Flags:
        """Return which values are multiples of the step other than zero."""
        return self.on(values, step) & (np.abs(values) > self.tolerance)

    def distinct(self, values: Array) -> int:
        """Return how many values differ by more than rounding."""
        return int(np.unique(np.rint(values / self.tolerance / FINEST)).size)

    def others(self, person: int, rows: Index, step: float) -> float:
        """Return how often an answer without another is a multiple, in some databases.

        Shares of a few records have small denominators, and lie on many grids whatever is left out.
        """
        among = np.zeros(int(self.row.max()) + 1, dtype=bool)
        among[rows] = True
        rest = self.rest[among[self.row] & (self.owner != person)]
        return float(self.on(rest, step).mean()) if rest.size else 0.0

    def first_broken(self, y: Array, steps: Array) -> int:
        """Return the place of the first step of a grid on which not everything lies."""
        for k, step in enumerate(steps):
            if not (self.on(y, step).all() and self.on(self.own, step).all()):
                return k
        return int(steps.size)

    def chances(self, step: float, steps: Array) -> Array:
        """Return how likely what is left is a multiple of the step, on the grid of the own part.

        That grid is the coarsest one, of a step that is contained in this one, on which the own
        contribution lies.
        """
        found = np.full(self.own.size, LEAST_CHANCE)
        for finer in steps[steps < step]:
            parts = step / finer
            if abs(parts - round(parts)) < 1e-9 and 1.0 / parts > LEAST_CHANCE:
                found[self.on(self.own, finer)] = 1.0 / parts
        return found


def _steps(factors: tuple[float, ...], least: float, most: float) -> Array:
    """Return all steps between two sizes that are such factors of a power of ten, increasing."""
    if not 0.0 < least < most:
        return np.empty(0)
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    found = np.array([float(f"{m}e{k}") for k in range(low, high + 1) for m in factors])
    return np.asarray(found[(found >= least) & (found <= most)])


def _decade(step: float) -> float:
    """Return the power of ten of which this step and all coarser ones are multiples."""
    exponent = math.floor(math.log10(step) + 1e-9)
    return float(f"1e{exponent - 1}")
