"""What a privacy curve means for tests and guesses, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.results.bands import upper_limit
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import percent, risk_limit

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves

__all__ = ["in_words"]

LEVEL, PRIOR = 0.05, 0.5


def in_words(result: PrivacyCurves) -> tuple[str, ...]:
    """Return sentences on the best test and the best guess, each a limit with 95% probability."""
    power = result.power(LEVEL).to_numpy()
    guessed = result.membership_probability(prior=PRIOR)["guessed"].to_numpy()
    limits = [
        risk_limit(float(upper_limit(np.ravel(draws), PROB)))
        for draws in (power, guessed, result.advantage().to_numpy())
    ]
    held = f"with {percent(PROB)} probability"
    return (
        f"A test for membership that raises a false alarm in {percent(LEVEL)} of cases detects a "
        f"member with a probability of at most {limits[0]}, {held}.",
        f"Whoever holds membership for as likely as not guesses right with a probability of at "
        f"most {limits[1]}, {held}; the advantage is at most {limits[2]}.",
    )
