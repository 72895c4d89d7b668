"""Subsampling against an adversary who knows some entries exactly but not which are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edp_bayes.statistical_privacy.counts.arithmetic import Pair, compiled
from edp_bayes.statistical_privacy.counts.binomial import log_mass
from edp_bayes.statistical_privacy.counts.distribution_pairs import (
    DistributionPair,
    Window,
    binomial_window,
)
from edp_bayes.utils.arrays import Array

__all__ = ["known_pairs", "sampled_pair"]

_LEAST = 1e-308
# Values of a table that serves all distributions together, at most 240 MB.
_LARGEST_TABLE = 30_000_000


def known_pairs(
    n: int, drawn: int, prob: float, known: int, known_positive: range
) -> Iterator[DistributionPair]:
    """Yield the distributions of the positives among `drawn` of n entries, `known` of them known.

    All entries but the critical one hold known_positive + B positives, B ~ Binomial(n - 1 -
    known, prob); given those, a sample holds a hypergeometric number of them. How many known
    entries were drawn is thereby unseen, as it is for the adversary. One pair for every value of
    known_positive.
    """
    start, weights = binomial_window(n - 1 - known, prob)
    first = float(known_positive[0] + start)
    included = _Mixtures(weights, first, len(known_positive), n - 1, drawn - 1)
    excluded = _Mixtures(weights, first, len(known_positive), n - 1, drawn)
    for k in range(len(known_positive)):
        missed = (0, excluded.distribution(k)) if drawn < n else None
        yield DistributionPair.of_shares(drawn / n, (0, included.distribution(k)), missed)


def sampled_pair(n: int, drawn: int, others: Window) -> DistributionPair:
    """Return the distributions of the positives among `drawn` of n entries.

    Which entries are drawn does not depend on what they are, so given the positives among all
    others the sample holds a hypergeometric number of them, however their probabilities differ.

    Parameters
    ----------
    n, drawn : int
        Entries and how many are drawn, without replacement.
    others : (int, ndarray)
        Start and masses of the positives among all entries but the critical one; log-concave.
    """
    start, weights = others
    included, excluded = (
        (0, _Mixtures(weights, float(start), 1, n - 1, size).distribution(0))
        for size in (drawn - 1, drawn)
    )
    return DistributionPair.of_shares(drawn / n, included, excluded if drawn < n else None)


class _Mixtures:
    """Distributions sum_i weights[i] Hypergeometric(n, first + k + i, drawn), k = 0, 1, ..."""

    def __init__(self, weights: Array, first: float, count: int, n: int, drawn: int) -> None:
        self.weights, self.first, self.n, self.drawn = weights, first, n, min(drawn, n)
        self.table: Array | None = None
        rows = weights.size + count - 1
        if count > 1 and rows * (self.drawn + 1) <= _LARGEST_TABLE:
            self.table = np.zeros((rows, self.drawn + 1))
            for i in range(rows):
                _add_hypergeometric(1.0, first + i, float(n), float(self.drawn), self.table[i])

    def distribution(self, k: int) -> Array:
        if self.table is not None:
            return np.asarray(self.weights @ self.table[k : k + self.weights.size])
        out = np.zeros(self.drawn + 1)
        _mix(self.weights, self.first + k, float(self.n), float(self.drawn), out)
        return out


@compiled
def _mix(weights: Array, first: float, n: float, drawn: float, out: Array) -> None:
    """Add weights[i] times Hypergeometric(n, first + i, drawn) to out."""
    for i in range(weights.size):
        _add_hypergeometric(weights[i], first + i, n, drawn, out)


@compiled
def _add_hypergeometric(
    weight: float, positives: float, n: float, drawn: float, out: Array
) -> None:
    """Add weight times P(J = j) to out[j], (drawn + 1,), J ~ Hypergeometric(n, positives, drawn).

    From the mode on in both directions, by the ratio of neighbours,
    P(j + 1) / P(j) = (positives - j) (drawn - j) / ((j + 1) (n - positives - drawn + j + 1)).
    """
    least = max(0.0, drawn + positives - n)
    most = min(drawn, positives)
    mode = float(math.floor((drawn + 1.0) * (positives + 1.0) / (n + 2.0)))
    mode = min(max(mode, least), most)
    peak = weight * math.exp(_log_hypergeometric(mode, positives, n, drawn))
    rest = n - positives - drawn
    value, j = peak, mode
    while value >= _LEAST:
        out[int(j)] += value
        if j >= most:
            break
        value *= (positives - j) * (drawn - j) / ((j + 1.0) * (rest + j + 1.0))
        j += 1.0
    value, j = peak, mode
    while j > least:
        value *= j * (rest + j) / ((positives - j + 1.0) * (drawn - j + 1.0))
        j -= 1.0
        if value < _LEAST:
            break
        out[int(j)] += value


@compiled
def _log_hypergeometric(j: float, positives: float, n: float, drawn: float) -> float:
    """Return log P(J = j), J ~ Hypergeometric(n, positives, drawn).

    As of binomial masses b of one probability, drawn / n: P(j) = b(j; positives)
    b(drawn - j; n - positives) / b(drawn; n), none of which underflows.
    """
    if drawn == 0.0 or drawn == n:
        return 0.0
    p: Pair = (drawn / n, 0.0)
    q: Pair = ((n - drawn) / n, 0.0)
    return (
        log_mass(j, positives, p, q)
        + log_mass(drawn - j, n - positives, p, q)
        - log_mass(drawn, n, p, q)
    )
