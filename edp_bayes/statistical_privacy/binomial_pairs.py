"""The two laws of a count of independent entries, all with the property alike likely."""

from __future__ import annotations

from edp_bayes.statistical_privacy.binomial import masses
from edp_bayes.statistical_privacy.exact_curves import probabilities
from edp_bayes.statistical_privacy.law_pairs import LawPair, Window

__all__ = ["binomial_pair"]


def binomial_pair(n: int, drawn: int, prob: float) -> LawPair:
    """Return the laws of the positives among `drawn` of n entries, the critical one among the n.

    With rate = drawn / n the count of the other entries is Binomial(drawn - 1) if the critical
    entry is drawn and Binomial(drawn) if not (the paper's Lemma 4).
    """
    excluded = binomial_window(drawn, prob) if drawn < n else None
    return LawPair.of_shares(drawn / n, binomial_window(drawn - 1, prob), excluded)


def binomial_window(n: int, prob: float) -> Window:
    """Return start and masses of Binomial(n, prob) where they exceed 1e-308."""
    p, q = probabilities(prob, False)
    start, values = masses(float(n), p, q)
    return start, values
