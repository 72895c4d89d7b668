"""Epsilon from how often a membership-inference attack was right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import INDEPENDENT_DRAWS, default_probability

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["MembershipEpsilon", "epsilon_from_membership"]

PRIOR = 0.5
# The rates' quantiles are integrated over, finely towards both ends, where epsilon is large.
LAST_TAIL, PANELS, PANEL_NODES = 1e-14, 24, 16
LARGEST = 700.0
# Where panels end besides: as many standard deviations from the mean of the other rate.
STEPS = np.arange(-8.0, 9.0, 2.0)


@dataclass(frozen=True, eq=False)
class MembershipEpsilon:
    """Posterior of epsilon given the outcomes of a membership-inference attack.

    Made by `epsilon_from_membership`.

    Parameters
    ----------
    draws : DataArray
        Draws of epsilon, dims (chain, draw). Counts, delta, prior and seed stand in its
        attributes.
    true_positives, true_negatives, false_positives, false_negatives : int
    delta : float

    See Also
    --------
    epsilon_from_membership : epsilon from counts of hits and false alarms
    edp_bayes.Attack : how often an attack was right

    References
    ----------
    Zanella-Beguelin et al. (2023), Bayesian estimation of differential privacy.

    Examples
    --------
    >>> found = epsilon_from_membership(
    ...     true_positives=90, true_negatives=80, false_positives=20, false_negatives=10,
    ...     random_seed=1,
    ... )
    >>> low, high = found.interval(0.9)
    >>> bool(low < found.draws.median() < high)
    True
    """

    draws: xr.DataArray
    true_positives: int
    true_negatives: int
    false_positives: int
    false_negatives: int
    delta: float

    def cdf(self, *, epsilon: float) -> float:
        """Return the posterior probability of epsilon or less, by quadrature over one rate.

        Epsilon holds exactly if the true positive rate lies between two bounds that the false
        positive rate gives; both rates are independent.
        """
        from scipy.special import betainc, betaincc, betaincinv

        level = validate.number(epsilon, "epsilon")
        if level < 0:
            return 0.0
        hit, miss = self.true_positives + PRIOR, self.false_negatives + PRIOR
        alarm, quiet = self.false_positives + PRIOR, self.true_negatives + PRIOR
        growth, total = np.exp(level), 0.0
        bends = _bends(hit, miss, growth, self.delta)
        # Each half in terms of the tail that is small there, so that no rate is rounded to one.
        for shapes, near in (((alarm, quiet), bends), ((quiet, alarm), 1.0 - bends)):
            tail, weights = _tails(betainc(*shapes, near))
            rate = betaincinv(*shapes, tail)
            fpr, tnr = (rate, 1.0 - rate) if near is bends else (1.0 - rate, rate)
            below = np.minimum(
                betainc(hit, miss, _clip(growth * fpr + self.delta)),
                betaincc(miss, hit, _clip((tnr - self.delta) / growth)),
            )
            short = np.maximum(
                betainc(hit, miss, _clip((fpr - self.delta) / growth)),
                betaincc(miss, hit, _clip(growth * tnr + self.delta)),
            )
            total += float(np.sum(weights * np.maximum(below - short, 0.0)))
        return min(1.0, total)

    def interval(self, prob: float | None = None) -> tuple[float, float]:
        """Return the equal-tailed credible interval, exact rather than from the draws.

        Parameters
        ----------
        prob : float, optional
            Its probability; ArviZ's ``stats.ci_prob`` if not given.
        """
        tail = 0.5 * (1.0 - default_probability(prob))
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, probability: float) -> float:
        from scipy.optimize import brentq

        if self.cdf(epsilon=0.0) >= probability:
            return 0.0
        high = 1.0
        while self.cdf(epsilon=high) < probability and high < LARGEST:
            high *= 2.0
        return float(brentq(lambda e: self.cdf(epsilon=e) - probability, 0.0, high, xtol=1e-10))


def epsilon_from_membership(
    *,
    true_positives: int,
    true_negatives: int,
    false_positives: int,
    false_negatives: int,
    delta: float = 0.0,
    draws: int = INDEPENDENT_DRAWS,
    chains: int = 4,
    random_seed: int | None = None,
) -> MembershipEpsilon:
    """Return the posterior of epsilon from the counts of a membership-inference attack.

    Both rates have independent Beta(1/2, 1/2) priors. Epsilon is the largest of the logarithms
    of (TPR - delta) / FPR, (TNR - delta) / FNR, (FNR - delta) / TNR and (FPR - delta) / TPR, and
    at least 0: what the attack alone proves, hence a lower bound on the mechanism's epsilon.

    Parameters
    ----------
    true_positives, false_negatives : int
        Members that the attack called members, and those that it missed.
    false_positives, true_negatives : int
        Others that the attack called members, and those that it did not.
    delta : float
        At least 0 and below 1.
    draws, chains : int
        Number of posterior draws per chain, and of chains. The draws are independent.
    random_seed : int, optional
        Seed of the draws.

    Returns
    -------
    MembershipEpsilon

    Raises
    ------
    InvalidInputError, InputTypeError
        If a count is negative or no integer, there are no members or no others, or delta is not
        in [0, 1).

    See Also
    --------
    MembershipEpsilon : the posterior of epsilon
    edp_bayes.attack : guess from releases who is in the data
    edp_bayes.audit_mechanism : a mechanism on one pair of databases

    References
    ----------
    Zanella-Beguelin et al. (2023), Bayesian estimation of differential privacy.

    Examples
    --------
    >>> posterior = epsilon_from_membership(
    ...     true_positives=487, true_negatives=1, false_positives=512, false_negatives=0,
    ...     delta=1e-5, random_seed=1,
    ... )
    >>> [round(end, 3) for end in posterior.interval(0.9)]
    [0.144, 6.416]
    """
    import xarray as xr

    counts = {
        "true_positives": true_positives,
        "true_negatives": true_negatives,
        "false_positives": false_positives,
        "false_negatives": false_negatives,
    }
    counts = {name: _count(value, name) for name, value in counts.items()}
    for kind, first, second in (
        ("members", "true_positives", "false_negatives"),
        ("non-members", "false_positives", "true_negatives"),
    ):
        if counts[first] + counts[second] == 0:
            raise InvalidInputError(
                f"the attack must have been tried on at least one of the {kind}, found "
                f"{first} = {second} = 0"
            )
    slack = validate.number(delta, "delta")
    if not 0 <= slack < 1:
        raise InvalidInputError(f"delta must lie in [0, 1), found {slack}")
    shape = validate.positive_integer(chains, "chains"), validate.positive_integer(draws, "draws")
    seed = validate.seed(random_seed)
    rng = np.random.default_rng(seed)
    tpr, fnr = _rates(counts["true_positives"], counts["false_negatives"], shape, rng)
    fpr, tnr = _rates(counts["false_positives"], counts["true_negatives"], shape, rng)
    values = _epsilon(tpr, fnr, fpr, tnr, slack)
    posterior = xr.DataArray(
        values,
        {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])},
        ("chain", "draw"),
        name="epsilon",
        attrs={
            **counts,
            "delta": slack,
            "prior": "Beta(1/2, 1/2) on both rates",
            **({} if seed is None else {"random_seed": seed}),
        },
    )
    return MembershipEpsilon(posterior, **counts, delta=slack)


def _epsilon(tpr: Array, fnr: Array, fpr: Array, tnr: Array, delta: float) -> Array:
    ratios = np.stack(
        [(tpr - delta) / fpr, (tnr - delta) / fnr, (fnr - delta) / tnr, (fpr - delta) / tpr]
    )
    return np.log(np.maximum(ratios.max(axis=0), 1.0))


def _rates(
    yes: int, no: int, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return draws of a Beta rate and of its complement, neither rounded to zero."""
    first, second = rng.gamma(yes + PRIOR, size=shape), rng.gamma(no + PRIOR, size=shape)
    return first / (first + second), second / (first + second)


def _bends(hit: float, miss: float, growth: float, delta: float) -> Array:
    """Return the false positive rates at which the integrand of the cdf bends or may be steep.

    It is steep where a bound crosses the bulk of the true positive rate, which many members make
    narrow, and bends where two bounds meet.
    """
    mean = hit / (hit + miss)
    rates = mean + STEPS * np.sqrt(mean * (1.0 - mean) / (hit + miss + 1.0))
    found = [
        (rates - delta) / growth,
        1.0 - delta - growth * (1.0 - rates),
        growth * rates + delta,
        1.0 - (1.0 - rates - delta) / growth,
        [(1.0 - delta) / (growth + 1.0), (growth + delta) / (growth + 1.0)],
    ]
    return _clip(np.concatenate(found))


def _tails(more: Array) -> tuple[Array, Array]:
    """Return nodes and weights on the probabilities from 0 to 1/2, dense towards 0.

    No panel crosses one of the probabilities given.
    """
    within = more[(more > LAST_TAIL) & (more < 0.5)]
    edges = np.unique(np.r_[0.0, np.geomspace(LAST_TAIL, 0.5, PANELS), within])
    nodes, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def _clip(rate: Array) -> Array:
    return np.clip(rate, 0.0, 1.0)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{name} must be a count (an integer), found {value!r}")
    if value < 0:
        raise InvalidInputError(f"{name} must not be negative, found {value}")
    return int(value)
