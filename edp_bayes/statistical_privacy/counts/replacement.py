"""Samples with replacement: each draw is any of the n entries, so the count given S is binomial.

Given S positives among all n entries each of the m draws is positive with probability S / n,
whichever entry is critical. So both distributions of the count of positive draws are mixtures,

    P_plus = E Binomial(m, S / n) with S as it is if the critical entry is positive,

and P_minus alike. Binomial(m, s / n) is totally positive of order 2 in the count and s, so the
ratio P_plus / P_minus never decreases if that of S does not (Karlin 1968).
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy.counts.arithmetic import compiled, divide
from edp_bayes.statistical_privacy.counts.binomial import log_choose, masses
from edp_bayes.statistical_privacy.counts.distribution_pairs import (
    DistributionPair,
    Window,
    binomial_window,
)
from edp_bayes.utils.arrays import Array

__all__ = ["known_replacement_pair", "largest_ratio", "of_draws", "replacement_pair"]

_LARGEST_SUM = 1e9
_LARGEST_ARRAY = 10**7


def replacement_pair(n: int, drawn: int, database: DistributionPair) -> DistributionPair:
    """Return the distributions of the positive draws among `drawn`, with replacement.

    Parameters
    ----------
    n, drawn : int
        Entries of the database, and draws.
    database : DistributionPair
        Distributions of the positives among all n entries.

    Returns
    -------
    DistributionPair

    Raises
    ------
    InvalidInputError
        If the sum over both counts has more than 1e9 terms.
    """
    plus, minus = (
        of_draws(n, drawn, (database.start, side)) for side in (database.plus, database.minus)
    )
    return DistributionPair.of_masses(0, plus, minus)


def known_replacement_pair(
    n: int, drawn: int, prob: float, known: int, known_positive: int
) -> DistributionPair:
    """Return the same where `known` of n independent entries are known."""
    start, weights = binomial_window(n - 1 - known, prob)
    database = DistributionPair.of_shares(1.0, (known_positive + start, weights), None)
    return replacement_pair(n, drawn, database)


def of_draws(n: int, drawn: int, positives: Window) -> Array:
    """Return the masses of 0, ..., `drawn` positive draws, given those of the positive entries.

    Raises
    ------
    InvalidInputError
        If the sum over both counts has more than 1e9 terms.
    """
    start, weights = positives
    if (terms := float(weights.size) * (drawn + 1.0)) > _LARGEST_SUM:
        raise InvalidInputError(
            "a sample with replacement is a double sum over the positive entries and draws, here "
            f"of {terms:.1e} terms, above {_LARGEST_SUM:.0e}; use fewer draws or a smaller n"
        )
    out = np.zeros(drawn + 1)
    _mix(float(start), np.ascontiguousarray(weights), float(n), float(drawn), out)
    return out


def largest_ratio(
    n: int, drawn: int, prob: float, known: int, positive: float, scale: float | None
) -> float:
    """Return the largest log ratio of both distributions, with or without Laplace noise.

    At the upper end the ratio is that of the means of ((S + 1) / n)^m and (S / n)^m, S being the
    positives among the other entries; with noise of that scale, in counts, it is that of the
    means of (1 + a (S + 1) / n)^m and (1 + a S / n)^m, a = exp(1 / scale) - 1. The lower end is
    the same of the negatives. A positive more among the known ones lowers the ratio, so the worst
    case is none of them at one end and all at the other.
    """
    certain = (0, 0) if math.isnan(positive) else (int(positive), known - int(positive))
    sides = zip((prob, 1.0 - prob), certain, strict=True)
    return max(_at_the_end(n, drawn, p, known, alike, scale) for p, alike in sides)


def _at_the_end(
    n: int, drawn: int, prob: float, known: int, certain: int, scale: float | None
) -> float:
    from scipy.special import logsumexp

    unknown = n - 1 - known
    if unknown > _LARGEST_ARRAY:
        raise InvalidInputError(
            "the largest log ratio of a sample with replacement is a sum over all unknown entries, "
            f"at most {_LARGEST_ARRAY:.0e}, found {unknown}"
        )
    i = np.arange(unknown + 1.0)
    weights = log_choose(unknown, i) + i * math.log(prob) + (unknown - i) * math.log1p(-prob)
    with np.errstate(divide="ignore"):
        share, one_more = np.log(certain + i) - math.log(n), np.log(certain + i + 1) - math.log(n)
        if scale is not None:
            share, one_more = _tilted(share, 1.0 / scale), _tilted(one_more, 1.0 / scale)
    return float(logsumexp(weights + drawn * one_more) - logsumexp(weights + drawn * share))


def _tilted(log_share: Array, shift: float) -> Array:
    """Return log(1 + share (exp(shift) - 1))."""
    rest = np.log1p(-np.minimum(np.exp(log_share), 1.0))
    return np.asarray(np.logaddexp(rest, log_share + shift))


@compiled
def _mix(start: float, weights: Array, n: float, drawn: float, out: Array) -> None:
    """Add weights[i] times Binomial(drawn, (start + i) / n) to out."""
    for i in range(weights.size):
        positives = start + i
        if weights[i] == 0.0:
            continue
        if positives <= 0.0:
            out[0] += weights[i]
        elif positives >= n:
            out[-1] += weights[i]
        else:
            p = divide((positives, 0.0), (n, 0.0))
            q = divide((n - positives, 0.0), (n, 0.0))
            first, values = masses(drawn, p, q)
            for k in range(values.size):
                out[first + k] += weights[i] * values[k]
