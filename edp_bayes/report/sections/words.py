"""What a privacy curve means for tests and guesses, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edp_bayes.results.bands import upper_limit
from edp_bayes.results.tradeoff import LARGEST_MU
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import number, percent, risk_limit

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves

__all__ = ["in_words"]

LEVEL, PRIOR = 0.05, 0.5


def in_words(result: PrivacyCurves) -> tuple[str, ...]:
    """Return sentences on the best test and guess, membership and mu: limits that hold with 95%.

    What the grid of epsilon says nothing of is left out: membership where it ends at its first
    value, mu where somebody may be revealed.
    """
    membership = result.membership_probability(prior=PRIOR)
    last = membership.isel(epsilon=-1)
    power, guessed, advantage, exceeded = (
        _limit(draws)
        for draws in (
            result.power(LEVEL), membership["guessed"], result.advantage(), last["exceeded"],
        )
    )  # fmt: skip
    # a limit of draws some of which are infinite
    mu = _limit(result.gaussian_mu().clip(max=LARGEST_MU))
    held = f"with {percent(PROB)} probability"
    words = [
        f"A test for membership that raises a false alarm in {percent(LEVEL)} of cases detects a "
        f"member with a probability of at most {risk_limit(power)}, {held}.",
        f"Whoever holds membership for as likely as not guesses right with a probability of at "
        f"most {risk_limit(guessed)}, {held}; the advantage is at most {risk_limit(advantage)}.",
    ]
    if exceeded < 1.0:
        after = _up(float(last["posterior"]))
        words.append(
            f"An answer makes membership of a member likelier than {percent(after)}, from "
            f"{percent(PRIOR)} before ({number(after / PRIOR)} times), with a probability of at "
            f"most {risk_limit(exceeded)}, {held}."
        )
    if mu < LARGEST_MU:
        words.append(
            f"Up to epsilon {float(result.epsilon[-1]):g} the answer is at least as private as a "
            f"normal one that an individual moves by {_up(mu):g} standard deviations (mu), {held}."
        )
    return tuple(words)


def _up(value: float) -> float:
    """Return a number with two places, rounded up."""
    return round(math.ceil(100.0 * value - 1e-9) / 100.0, 2)


def _limit(draws: xr.DataArray) -> float:
    return float(upper_limit(draws.to_numpy().ravel(), PROB))
