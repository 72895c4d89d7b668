"""What a privacy curve means for tests and guesses, in sentences."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.report.sections.mechanisms import has_local_epsilon
from edp_bayes.results import tradeoff
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.basis import resting
from edp_bayes.results.tradeoff import LARGEST_MU
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import at_most, number, percent, risk_limit

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves

__all__ = ["guessed_right", "in_words"]

LEVEL, PRIOR = 0.05, 0.5


def in_words(result: PrivacyCurves, prob: float = PROB) -> tuple[str, ...]:
    """Return sentences on the best test and guess, membership and mu, limits of one probability.

    What the grid of epsilon says nothing of is left out: membership where it ends at its first
    value, mu where an individual may be revealed.
    """
    if has_local_epsilon(result):
        # what was not seen in the samples has room up to this probability
        prob = min(prob, PROB)
    last = result.membership_probability(prior=PRIOR).isel(epsilon=-1)
    # of a composition of some draws no limit is below that of a part in all of its draws
    every = [_limits(one, prob) for one in (result, *result.parts)]
    power, guessed, advantage, exceeded, mu = map(max, zip(*every, strict=True))
    held = f"with {percent(prob)} probability"
    said = partial(at_most, exact=result.exact_zeros, resting=resting(result))
    words = [
        f"A test for membership that raises a false alarm in {percent(LEVEL)} of cases detects a "
        f"member with a probability of at most {risk_limit(power)}, {held}.",
        f"A reader for whom membership is an even bet guesses right with a probability of at "
        f"most {risk_limit(guessed)}, {held}; the advantage is {said(advantage)}.",
    ]
    if exceeded < 1.0:
        after = _up(float(last["posterior"]))
        words.append(
            f"The probability that an answer makes membership of a member likelier than "
            f"{percent(after)}, from {percent(PRIOR)} before ({number(after / PRIOR)} times), is "
            f"{said(exceeded)}, {held}."
        )
    if mu < LARGEST_MU:
        words.append(
            f"Up to epsilon {float(result.epsilon[-1]):g} the answer is at least as private as a "
            f"normal one that an individual moves by {_up(mu):g} standard deviations (mu), {held}."
        )
    return tuple(words)


def guessed_right(result: PrivacyCurves, prob: float) -> float:
    """Return the limit of how often a reader guesses membership right, an even bet beforehand."""
    return max(_limits(one, prob)[1] for one in (result, *result.parts))


def _limits(result: PrivacyCurves, prob: float) -> tuple[float, ...]:
    """Return limits of power, right guesses, advantage, likelier membership and mu.

    None is below that of what the databases themselves show of delta, which every one is at least.
    """
    membership = result.membership_probability(prior=PRIOR)
    draws = (
        result.power(LEVEL),
        membership["guessed"],
        result.advantage(),
        membership["exceeded"].isel(epsilon=-1),
        # a limit of draws some of which are infinite
        result.gaussian_mu().clip(max=LARGEST_MU),
    )
    limits = tuple(_limit(one.to_numpy(), prob) for one in draws)
    curves = result.resampled_curves
    if curves is None:
        return limits
    grid = result.epsilon.to_numpy()
    shown = (
        tradeoff.least_power(curves, grid, np.array([LEVEL])),
        # delta(0) is at least its value at the first epsilon
        PRIOR + PRIOR * curves[:, 0],
        curves[:, 0],
        # the log ratio exceeds an epsilon with a probability of at least delta there
        curves[:, -1],
        tradeoff.least_mu(curves, grid).clip(max=LARGEST_MU),
    )
    return tuple(max(limit, _limit(one, prob)) for limit, one in zip(limits, shown, strict=True))


def _up(value: float) -> float:
    """Return a number with two places, rounded up."""
    return round(math.ceil(100.0 * value - 1e-9) / 100.0, 2)


def _limit(draws: Array, prob: float) -> float:
    return float(upper_limit(draws.ravel(), prob))
