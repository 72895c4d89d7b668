"""The least epsilon at which delta is zero: the largest log ratio of both distributions.

Both distributions have a monotone ratio, and log-concave noise keeps it, so the largest log ratios
are at the ends: all drawn entries positive, or none. Probabilities there underflow; their ratio
does not.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.statistical_privacy.counts.binomial import log_choose

__all__ = ["laplace_ratio", "sampled_ratio"]


def sampled_ratio(n: int, drawn: int, prob: float, known: int, positive: float) -> float:
    """Return the largest log ratio of the positives among `drawn` of n entries.

    With T positives among the entries that are not critical, P_plus / P_minus is
    1 + E C(T, drawn - 1) / E C(T, drawn) where all drawn entries are positive, and the same of
    the negatives where none is.

    Parameters
    ----------
    n, drawn, prob, known
        As for `edp_bayes.statistical_privacy.delta`, scalars.
    positive : float
        How many known entries are positive; NaN for the worst case, which is none of them at one
        end and all at the other: by Newton's inequality a positive more lowers the ratio.
    """
    if drawn == n:
        return math.inf
    unknown = n - 1 - known
    certain = (0, 0) if math.isnan(positive) else (int(positive), known - int(positive))
    sides = zip((prob, 1.0 - prob), certain, strict=True)
    return max(_all_alike(drawn, unknown, p, alike) for p, alike in sides)


def laplace_ratio(n: int, drawn: int, prob: float, scale: float) -> float:
    """Return the largest log ratio with Laplace noise, whose scale is in counts; none known.

    Beyond all counts the distributions are in the ratio of their means of exp(+-count / scale).
    """
    shift = 1.0 / scale
    if drawn == n:
        return shift
    rate, fall = drawn / n, math.exp(-shift)
    ends = []
    for p in (prob, 1.0 - prob):
        missed = (1.0 - rate) * (p + (1.0 - p) * fall)
        ends.append(math.log1p(rate * -math.expm1(-shift) / (rate * fall + missed)))
    return max(ends)


def _all_alike(drawn: int, unknown: int, prob: float, certain: int) -> float:
    """Return log(1 + E C(T, drawn - 1) / E C(T, drawn)), T = certain + Binomial(unknown, prob)."""
    if certain + unknown < drawn:
        return math.inf
    if certain == 0:
        return math.log1p(drawn / ((unknown - drawn + 1) * prob))
    fewer, all_ = (_log_moment(k, unknown, prob, certain) for k in (drawn - 1, drawn))
    return float(np.logaddexp(0.0, fewer - all_))


def _log_moment(k: int, unknown: int, prob: float, certain: int) -> float:
    """Return log E C(certain + Binomial(unknown, prob), k), by Vandermonde's identity."""
    from scipy.special import logsumexp

    i = np.arange(max(0, k - certain), min(k, unknown) + 1.0)
    terms = log_choose(certain, k - i) + log_choose(unknown, i) + i * math.log(prob)
    return float(logsumexp(terms))
