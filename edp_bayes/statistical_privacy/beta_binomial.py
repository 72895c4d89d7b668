"""Exchangeable entries: their common probability is itself random, with a Beta distribution.

Given that the critical entry is positive, Beta(a, b) becomes Beta(a + 1, b): fixing one entry
moves the distribution of all others. By exchangeability P(critical positive | count j of n) = j /
n, so both distributions are again masses of the beta-binomial count times linear functions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.counts.distribution_pairs import DistributionPair
from edp_bayes.statistical_privacy.counts.replacement import replacement_pair
from edp_bayes.statistical_privacy.groups import worst_curve
from edp_bayes.statistical_privacy.mechanisms import (
    Mechanism,
    SamplingWithReplacement,
    any_parts,
)
from edp_bayes.utils.arrays import Array

__all__ = ["beta_binomial_delta"]


def beta_binomial_delta(
    n: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    *,
    epsilon: ArrayLike,
    mechanism: Mechanism = None,
) -> Array | float:
    """Return delta(epsilon) when the probability of the property is Beta(alpha, beta).

    The adversary knows alpha and beta but not the probability that was drawn. Entries are then
    dependent: with a mean alpha / (alpha + beta) kept and alpha + beta growing, the curve tends
    to that of independent entries.

    Parameters
    ----------
    n : array_like of int
        Entries of the database, at least 2. Arrays of this length are built.
    alpha, beta : array_like
        Parameters of the Beta distribution, above 0.
    epsilon : array_like
        Non-negative; with noise at most 700 or infinite.
    mechanism : Subsampling, SamplingWithReplacement, GaussianNoise, LaplaceNoise or a sequence
        As for `edp_bayes.statistical_privacy.delta`.

    Returns
    -------
    ndarray or float
        Broadcast shape of epsilon, n, alpha and beta.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range, NaN or of another type.

    See Also
    --------
    delta : delta of a property query
    edp_bayes.property_audit.BetaBinomialModel : entries that depend on each other
    mixture_delta : a bound for a mixture of queries

    Examples
    --------
    >>> round(beta_binomial_delta(epsilon=0.5, n=100, alpha=10.0, beta=90.0), 4)
    0.0603
    """
    sampling, noise = any_parts(mechanism)
    (eps, size, a, b), shape = arguments.broadcast(
        epsilon=arguments.epsilons(epsilon),
        n=arguments.sizes(n, "n", 2),
        alpha=arguments.positive(alpha, "alpha"),
        beta=arguments.positive(beta, "beta"),
    )
    if np.isinf(a + b).any():
        raise InvalidInputError(f"alpha + beta must be finite, found {a.max():g} and {b.max():g}")
    out = np.empty(eps.size)
    cases, group = np.unique(np.stack([size, a, b]), axis=1, return_inverse=True)
    for k, (entries, first, second) in enumerate(cases.T):
        drawn = int(entries) if sampling is None else sampling.drawn(int(entries))
        if isinstance(sampling, SamplingWithReplacement):
            whole = beta_binomial_pair(int(entries), int(entries), float(first), float(second))
            pair = replacement_pair(int(entries), drawn, whole)
        else:
            pair = beta_binomial_pair(int(entries), drawn, float(first), float(second))
        out[group == k] = worst_curve(pair, eps[group == k], noise, float(drawn))
    return out.reshape(shape) if shape else float(out[0])


def beta_binomial_pair(n: int, drawn: int, alpha: float, beta: float) -> DistributionPair:
    """Return the distributions of the positives among `drawn` of n exchangeable entries."""
    counts = np.arange(drawn + 1.0)
    log_masses = _log_masses(drawn, alpha, beta)
    rate, total = drawn / n, alpha + beta
    drawn_share, missed_share = rate / drawn, (1.0 - rate) / (total + drawn)
    positive = drawn_share * counts + missed_share * (alpha + counts)
    negative = drawn_share * counts[::-1] + missed_share * (beta + counts[::-1])
    with np.errstate(divide="ignore"):
        # in logarithms: a tiny mass may be divided by a tiny parameter
        plus = np.exp(log_masses + np.log(positive) + (math.log(total) - math.log(alpha)))
        minus = np.exp(log_masses + np.log(negative) + (math.log(total) - math.log(beta)))
    return DistributionPair.of_masses(0, plus, minus)


def _log_masses(n: int, alpha: float, beta: float) -> Array:
    """Return the log beta-binomial masses from their ratios, which need no gamma function."""
    j = np.arange(float(n))
    above, below = alpha + j, beta + (n - j - 1.0)
    with np.errstate(over="ignore", divide="ignore"):
        odds = np.log(above / below)
    odds = np.where(np.isfinite(odds), odds, np.log(above) - np.log(below))
    steps = np.log((n - j) / (j + 1.0)) + odds
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    logs -= logs.max()
    return np.asarray(logs - math.log(np.exp(logs).sum()))
