"""What a privacy curve means for tests and guesses, in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    import xarray as xr

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
    return max(
        _guessed(one, one.membership_probability(prior=PRIOR), prob)
        for one in (result, *result.parts)
    )


def _limits(result: PrivacyCurves, prob: float) -> tuple[float, ...]:
    """Return limits of power, right guesses, advantage, likelier membership and mu.

    None is below that of what the databases themselves show of delta, which every one is at least.
    """
    membership = result.membership_probability(prior=PRIOR)
    grid = result.epsilon.to_numpy()
    larger = partial(_larger, result.resampled_curves, prob)
    return (
        larger(
            result.power(LEVEL),
            lambda curves: tradeoff.least_power(curves, grid, np.array([LEVEL])),
        ),
        _guessed(result, membership, prob),
        larger(result.advantage(), _at_zero),
        # the log ratio exceeds an epsilon with a probability of at least delta there
        larger(membership["exceeded"].isel(epsilon=-1), lambda curves: curves[:, -1]),
        # a limit of draws some of which are infinite
        larger(
            result.gaussian_mu().clip(max=LARGEST_MU),
            lambda curves: tradeoff.least_mu(curves, grid).clip(max=LARGEST_MU),
        ),
    )


def _guessed(result: PrivacyCurves, membership: xr.Dataset, prob: float) -> float:
    return _larger(
        result.resampled_curves,
        prob,
        membership["guessed"],
        lambda curves: PRIOR + PRIOR * _at_zero(curves),
    )


def _at_zero(curves: Array) -> Array:
    """Return what delta(0) is at least: its value at the first epsilon."""
    return curves[:, 0]


def _larger(
    curves: Array | None, prob: float, draws: xr.DataArray, least: Callable[[Array], Array]
) -> float:
    """Return the limit of draws, or of what they are at least by curves that databases show."""
    limit = _limit(draws.to_numpy(), prob)
    return limit if curves is None else max(limit, _limit(least(curves), prob))


def _up(value: float) -> float:
    """Return a number with two places, rounded up."""
    return round(math.ceil(100.0 * value - 1e-9) / 100.0, 2)


def _limit(draws: Array, prob: float) -> float:
    return float(upper_limit(draws.ravel(), prob))
