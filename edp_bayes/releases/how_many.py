"""How many releases of fresh databases stay within a target: `edp.releases_until`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from edp_bayes.exceptions import InputTypeError
from edp_bayes.releases.carry_over import RELEASED, checked_past
from edp_bayes.releases.composing import Source, blocks
from edp_bayes.releases.composition import DRAWS, sources_of
from edp_bayes.releases.parts import whole_draws
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.query import Audit
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB, default_probability
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    from edp_bayes.divergence.composition.pairs import Losses, RoundedOnce

__all__ = ["MOST_RELEASES", "releases_until"]

MOST_RELEASES = 4096
# Numbers of releases at which everybody's risk is bounded, and whose are known one by one.
NUMBERS = np.unique(np.rint(2.0 ** np.arange(0.0, 12.5, 0.5)).astype(np.int64))
RANKS = 12


def releases_until(
    audit: Audit,
    *,
    epsilon: float,
    delta: float,
    prob: float | None = None,
    draws: int | None = DRAWS,
    past: str = RELEASED,
    progressbar: bool = True,
) -> xr.Dataset:
    """Return how many releases, each of a fresh database, keep delta(epsilon) within a target.

    Parameters
    ----------
    audit : Audit
        With its fit, as `edp_bayes.audit` returns it.
    epsilon : float
        Not negative.
    delta : float
        The target, strictly between 0 and 1.
    prob : float, optional
        Probability of the interval; ArviZ's ``stats.ci_prob`` if not given.
    draws : int, optional
        At most so many posterior draws are used, as for `edp_bayes.compose`.
    past : {"released", "others"}
        What later databases follow, as for `edp_bayes.compose`.
    progressbar : bool
        Show progress.

    Returns
    -------
    Dataset
        releases, dims (chain, draw): the largest number at which the upper bound of delta is at
        most the target, 0 if one release is too many, `MOST_RELEASES` for that or more. at_most,
        the same dims: one more is too many by a lower bound of delta, so that the number sought
        lies between the two; the bounds of several queries allow for their integration errors.
        lower, median, upper: of releases. safe: as many stay within the target with a posterior
        probability of 0.95; none where the upper limit of the audit, in all of its draws, is above
        the target.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the audit has no fit or an argument is out of its range.

    See Also
    --------
    Audit.releases_until : the same as a method
    compose : the risk of a number of releases
    released : of what is published of an answer

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.02, (40, 3))
    ... )
    >>> audit = edp.audit(responses, epsilon=[0.5], draws=20, random_seed=1, progressbar=False)
    >>> found = edp.releases_until(audit, epsilon=0.5, delta=0.01, progressbar=False)
    >>> bool(found["safe"] <= found["median"])
    True
    """
    if not isinstance(audit, Audit):
        raise InputTypeError(f"audit must be an Audit, found {type(audit).__name__}")
    level = validate.epsilon_grid([epsilon])
    target = validate.probability(delta, "delta")
    prob = default_probability(prob)
    past = checked_past(past)
    (source,), _, rows, _ = sources_of([audit], [MOST_RELEASES], draws, past)
    numbers = _releases(source, level, target, progressbar)
    if source.carries_over and (numbers == 0).any():
        # nothing carries over in a single release
        (alone,), _, _, _ = sources_of([audit], [1], draws, past)
        numbers = np.maximum(numbers, _within_once(alone, level, target, progressbar)[:, None])
    found, at_most = (part.reshape(rows.shape) for part in numbers.T)
    tail = 0.5 * (1.0 - prob)
    lower, median, upper, safe = (
        float(np.quantile(found, q, method="inverted_cdf"))
        for q in (tail, 0.5, 1.0 - tail, 1.0 - PROB)
    )
    # quantiles as for an upper limit: one more draw has at least as many with that probability
    count = found.size
    place = int(np.floor((1.0 - PROB) * (count + 1))) - 1
    safe = float(np.sort(found, axis=None)[place]) if place >= 0 else 0.0
    if safe > 0.0:
        # one release is within the target by the limit of the audit, which is of all its draws
        once = whole_draws(audit, level, progressbar)["delta"].to_numpy()
        limit = max(float(upper_limit(once.ravel(), PROB)), _shown(audit, float(level[0])))
        safe = safe if limit <= target else 0.0
    return xr.Dataset(
        {
            "releases": (("chain", "draw"), found),
            "at_most": (("chain", "draw"), at_most),
            "lower": lower,
            "median": median,
            "upper": upper,
            "safe": safe,
        },
        coords={
            "chain": audit.delta["chain"][: rows.shape[0]],
            "draw": audit.delta["draw"].to_numpy()[rows[0]],
        },
        attrs={"epsilon": float(level[0]), "delta": target, "prob": prob, "safe_prob": PROB},
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of one individual in some draws: privacy losses, and the chance to be revealed.

    Attributes
    ----------
    losses : RoundedOnce, optional
        None where there are none.
    hidden : ndarray
        Shape (draw,): the probability that a release does not reveal them exactly.
    """

    losses: RoundedOnce | None
    hidden: Array

    @classmethod
    def of(cls, losses: Losses | None, hidden: Array, level: Array) -> _Known:
        """Round the losses for any number of releases."""
        from edp_bayes.divergence.composition.pairs import RoundedOnce

        if losses is None:
            return cls(None, hidden)
        return cls(RoundedOnce.of(losses, databases=MOST_RELEASES, largest=float(level[0])), hidden)

    def within(self, place: int, count: int, level: Array, target: float, *, surely: bool) -> bool:
        """Return whether so many releases keep their risk in one draw within the target.

        Surely by an upper bound, possibly by a lower one. The error of estimates, which takes
        longest, is found only where it matters.
        """

        def found(error: bool) -> bool:
            upper = lower = 0.0
            if self.losses is not None:
                bounds = self.losses.bounds(place, count, level, error=error)
                upper, lower = (float(x[0]) for x in bounds)
            hidden = float(self.hidden[place]) ** count
            if surely:
                return 1.0 - hidden * (1.0 - upper) <= target
            return max(lower, 1.0 - hidden) <= target

        plain = found(False)
        exact = self.losses is None or not self.losses.parts
        return plain if exact or plain != surely else found(True)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Who may be the riskiest of a draw, and a bound on all others, by number of releases.

    Attributes
    ----------
    who : ndarray of int
        Shape (draw, number, rank).
    bound : ndarray
        Shape (draw, number, rank): their bounds, falling; the last one bounds all others.
    known : dict of int to (ndarray of int, _Known)
        The draws in which an individual is one of them, and what is known of them there.
    """

    who: Index
    bound: Array
    known: dict[int, tuple[Index, _Known]]

    @classmethod
    def of(cls, source: Source, level: Array, target: float, progressbar: bool) -> _Candidates:
        """Bound everybody's risk, and get the losses of those whose may exceed the target."""
        from edp_bayes.auditing.reductions import keep_largest
        from edp_bayes.divergence.composition.screening import (
            screen_bounds,
            screening_epsilons,
        )

        shape = (source.order.size, NUMBERS.size, RANKS)
        top, who = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        grid = screening_epsilons(level, MOST_RELEASES)
        for members in blocks([source], grid, progressbar, "Individuals"):
            screen = source.screen(members, grid)
            each = [screen_bounds([screen], [int(k)], level)[..., 0] for k in NUMBERS]
            keep_largest(np.stack(each, axis=2), members, top, who)
        known = {}
        rows, number, rank = np.nonzero(top > target)
        people = who[rows, number, rank]
        for person in np.unique(people).tolist():
            mine = np.unique(rows[people == person])
            hidden = source.unrevealed(person, mine)
            known[person] = mine, _Known.of(source.losses(person, mine), hidden, level)
        return cls(who, top, known)

    def of_draw(self, row: int, level: Array, target: float) -> tuple[int, int]:
        """Return how many releases keep everybody's risk in one draw within the target.

        And who is above it with one more, as far as an upper bound says, -1 if nobody.
        """
        limit, passed, who = MOST_RELEASES, set[tuple[int, int]](), -1

        def within(person: int, count: int) -> bool:
            rows, found = self.known[person]
            place = int(np.searchsorted(rows, row))
            return found.within(place, count, level, target, surely=True)

        safe = self.bound[row, :, -1] <= target  # those not known one by one
        if not safe.all():
            limit = int(NUMBERS[safe].max(initial=0))
            who = int(self.who[row, np.flatnonzero(~safe)[0], 0])
        for number, count in enumerate(NUMBERS.tolist()):
            for rank in np.flatnonzero(self.bound[row, number] > target).tolist():
                person = int(self.who[row, number, rank])
                tried = min(count, limit)
                if (person, tried) in passed or tried == 0 or within(person, tried):
                    passed.add((person, tried))
                    continue
                low = int(NUMBERS[number - 1]) if number else 0
                high = tried
                low = min(low, high - 1)
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if within(person, middle) else (low, middle)
                if low < limit:
                    limit, who = low, person
            if count >= limit:
                return limit, who
        return limit, who


def _releases(source: Source, level: Array, target: float, progressbar: bool) -> Index:
    """Return how many releases stay within the target in every draw, and at most: (draw, 2)."""
    candidates = _Candidates.of(source, level, target, progressbar)
    size = source.order.size
    out = np.empty((size, 2), dtype=np.int64)
    for row in track(range(size), "Releases", total=size, show=progressbar):
        out[row, 0], who = candidates.of_draw(row, level, target)
        out[row, 1] = _at_most(source, row, who, int(out[row, 0]), level, target)
    return out


def _at_most(source: Source, row: int, person: int, known: int, level: Array, target: float) -> int:
    """Return from which number on one individual is above the target, by a lower bound, less one.

    At least `known`. The risk rises with the number of releases.
    """
    if person < 0:
        return MOST_RELEASES
    rows = np.array([row])
    hidden = source.at_most_unrevealed(person, rows)
    found = _Known.of(source.least_losses(person, rows), hidden, level)

    def within(count: int) -> bool:
        return found.within(0, count, level, target, surely=False)

    low, high = known, known + 1
    while high < MOST_RELEASES and within(high):
        low, high = high, min(2 * high, MOST_RELEASES)
    if high == MOST_RELEASES and within(high):
        return MOST_RELEASES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def _shown(audit: Audit, level: float) -> float:
    """Return the limit of what the databases themselves show of delta at an epsilon, or beyond."""
    curves, grid = audit.resampled_curves, audit.epsilon.to_numpy()
    at = int(np.searchsorted(grid, level * (1.0 - 1e-9)))
    return 0.0 if curves is None or at == grid.size else float(upper_limit(curves[:, at], PROB))


def _within_once(source: Source, level: Array, target: float, progressbar: bool) -> Index:
    """Return 1 in the draws in which a single release is within the target, 0 in others."""
    largest = np.zeros(source.order.size)
    for members in blocks([source], level, progressbar, "Individuals once more"):
        largest = np.maximum(largest, source.curves(members, level).max(axis=(1, 2)))
    return np.asarray(largest <= target, dtype=np.int64)
