"""The two distributions of a count that an adversary compares, over a window of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.statistical_privacy.counts.binomial import masses
from edp_bayes.statistical_privacy.counts.exact_curves import probabilities
from edp_bayes.utils.arrays import Array

__all__ = ["DistributionPair", "binomial_pair", "binomial_window"]

Window = tuple[int, Array]


@dataclass(frozen=True, eq=False)
class DistributionPair:
    """Distributions of the count given that the critical entry is positive (plus) or not (minus).

    The ratio plus / minus must not decrease with the count. So it is for a count of independent
    entries, for a sample of it, and for exchangeable entries: their distributions are log-concave
    and the critical entry shifts them, or their ratio is linear in the count.

    Parameters
    ----------
    start : int
        Count of the first mass.
    plus, minus : ndarray, shape (count,)
        Masses; outside of the window they are below 1e-308.
    gain : ndarray, shape (count,)
        P_minus(count <= j) - P_plus(count <= j), which is never negative; 0 at the last j.
    """

    start: int
    plus: Array
    minus: Array
    gain: Array

    @classmethod
    def of_shares(cls, rate: float, included: Window, excluded: Window | None) -> DistributionPair:
        """Return the pair for a critical entry that is drawn with probability rate.

        Parameters
        ----------
        rate : float
            Probability that the critical entry is among those counted.
        included, excluded : (int, ndarray)
            Start and masses of the count of all other entries, given that it is or is not;
            `excluded` may be None where the rate is 1.
        """
        first, values = included
        last = first + values.size
        if excluded is not None:
            first = min(first, excluded[0])
            last = max(last, excluded[0] + excluded[1].size - 1)
        drawn, missed = np.zeros(last - first + 1), np.zeros(last - first + 1)
        offset = included[0] - first
        drawn[offset : offset + values.size] = rate * values
        if excluded is not None:
            offset = excluded[0] - first
            missed[offset : offset + excluded[1].size] = (1.0 - rate) * excluded[1]
        shifted = np.concatenate([[0.0], drawn[:-1]])
        return cls(first, shifted + missed, drawn + missed, drawn)

    @classmethod
    def of_masses(cls, start: int, plus: Array, minus: Array) -> DistributionPair:
        """Return the pair of two distributions whose gain is not known otherwise.

        The gain is summed from the end at which plus - minus has one sign, so nothing cancels.
        """
        change = plus - minus
        above = np.append(np.cumsum(change[::-1])[::-1][1:], 0.0)
        below = -np.cumsum(change)
        rising = int(np.argmax(plus > minus))
        gain = np.where(np.arange(plus.size) < rising, below, above)
        return cls(start, plus, minus, np.maximum(gain, 0.0))

    def mirrored(self) -> DistributionPair:
        """Return the pair of counts of entries without the property: delta_minus of this one."""
        last = self.start + self.plus.size - 1
        gain = np.append(self.gain[:-1][::-1], 0.0)
        return DistributionPair(-last, self.minus[::-1].copy(), self.plus[::-1].copy(), gain)

    def delta_plus(self, *, epsilon: Array) -> Array:
        """Return sum of (plus - exp(epsilon) minus)_+ at every epsilon, an infinite one too."""
        result = np.empty(epsilon.size)
        for i, value in enumerate(epsilon):
            with np.errstate(over="ignore", invalid="ignore"):
                factor = np.exp(value)
                cost = np.where(self.minus > 0.0, factor * self.minus, 0.0)
            result[i] = np.maximum(self.plus - cost, 0.0).sum()
        return np.minimum(result, 1.0)


def binomial_pair(n: int, drawn: int, prob: float) -> DistributionPair:
    """Return the distributions of the positives among `drawn` of n entries, one of them critical.

    With rate = drawn / n the count of the other entries is Binomial(drawn - 1) if the critical
    entry is drawn and Binomial(drawn) if not (the paper's Lemma 4).
    """
    excluded = binomial_window(drawn, prob) if drawn < n else None
    return DistributionPair.of_shares(drawn / n, binomial_window(drawn - 1, prob), excluded)


def binomial_window(n: int, prob: float) -> Window:
    """Return start and masses of Binomial(n, prob) where they exceed 1e-308."""
    p, q = probabilities(prob, False)
    start, values = masses(float(n), p, q)
    return start, values
