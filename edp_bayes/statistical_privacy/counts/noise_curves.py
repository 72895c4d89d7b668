"""delta_plus of a count with Gaussian or Laplace noise: the exact mixture over all counts.

Both kernels are log-concave, so the ratio of the two noisy densities never decreases (variation
diminishing, Karlin 1968) and one cut x decides:

    delta_plus = sum_j (plus_j - L minus_j) T_j,    T_j = P(j + noise > x).

The same sum, by parts, is sum_j gain_j (T_{j+1} - T_j) - (L - 1) sum_j minus_j T_j. The first
loses digits when the noise is wide beside the count's own spread, the second when it is narrow
and delta small; both are summed and the one that cancels less is returned.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.statistical_privacy.counts.arithmetic import compiled
from edp_bayes.statistical_privacy.counts.distribution_pairs import DistributionPair
from edp_bayes.statistical_privacy.counts.noise_tails import (
    LAPLACE,
    decay_difference,
    increment,
    log_density,
    tail,
)
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.validate import LARGEST_EPSILON

__all__ = ["check", "curve"]

_DECAY = 45.0
_STEPS = 200
_PRECISION = 1e-13
# Cuts are multiples of this, so that their distances from counts are exact.
_GRAIN = 2.0**-24


def check(epsilon: Array) -> None:
    """Refuse an epsilon above `LARGEST_EPSILON` that is not infinite."""
    large = epsilon[np.isfinite(epsilon) & (epsilon > LARGEST_EPSILON)]
    if large.size:
        raise InvalidInputError(
            f"epsilon must be at most {LARGEST_EPSILON:g} or infinite where noise is added, "
            f"found {large.max():g}"
        )


def curve(pair: DistributionPair, epsilon: Array, family: int, scale: float) -> Array:
    """Return delta_plus of the noisy count at every epsilon.

    Parameters
    ----------
    pair : DistributionPair
        The distributions without noise.
    epsilon : ndarray, shape (E,)
        From 0 to `LARGEST_EPSILON`, or infinity.
    family : {GAUSSIAN, LAPLACE}
        Which noise.
    scale : float
        Its standard deviation or scale, in counts.

    Returns
    -------
    ndarray, shape (E,)
    """
    out = np.zeros(epsilon.size)
    finite = np.isfinite(epsilon)
    values = np.zeros(int(finite.sum()))
    _curve(
        float(pair.start), pair.plus, pair.minus, pair.gain,
        np.ascontiguousarray(epsilon[finite]), family, scale, values,
    )  # fmt: skip
    out[finite] = values
    return out


@compiled
def _curve(
    start: float, plus: Array, minus: Array, gain: Array, epsilon: Array, family: int,
    scale: float, out: Array,
) -> None:  # fmt: skip
    """Fill in delta_plus at every finite epsilon, out (E,), by the one cut that decides.

    delta_plus = sum_j (plus_j - L minus_j) P(j + noise > x), L = exp(eps), with x where the noisy
    densities are p_plus = L p_minus. Counts are start + k, with masses plus and minus (count,);
    scale is in counts.
    """
    log_slack = np.empty(plus.size)
    for i in range(epsilon.size):
        growth = math.exp(epsilon[i])
        # the count from which on plus exceeds L minus, whatever rounding does where both vanish
        turn, total, largest = plus.size, 0.0, 0.0
        for k in range(plus.size - 1, -1, -1):
            total += plus[k] - growth * minus[k]
            if total > largest:
                turn, largest = k, total
        for k in range(plus.size):
            slack = plus[k] - growth * minus[k]
            slack = slack if k >= turn else -slack
            log_slack[k] = math.log(slack) if slack > 0.0 else -math.inf
        out[i] = 0.0
        if 0 < turn < plus.size:
            x, found = _cut(start, log_slack, turn, family, scale)
            if found:
                out[i] = _delta(
                    start, plus, minus, gain, growth, math.expm1(epsilon[i]), x, family, scale
                )
        elif turn == 0:
            out[i] = 1.0


@compiled
def _log_share(
    start: float, log_slack: Array, first: int, last: int, x: float, family: int, scale: float
) -> tuple[float, float]:
    """Log of the sum of exp(log_slack) times the noise's density at x, and its slope in x."""
    largest = -math.inf
    for k in range(first, last):
        largest = max(largest, log_slack[k] + log_density(family, x - (start + k), scale))
    total, slope = 0.0, 0.0
    for k in range(first, last):
        d = x - (start + k)
        exponent = log_slack[k] + log_density(family, d, scale) - largest
        if exponent > -_DECAY:
            weight = math.exp(exponent)
            total += weight
            if family == LAPLACE:
                slope += weight if d < 0.0 else -weight
            else:
                slope -= weight * d / scale
    return largest + math.log(total), slope / (total * scale)


@compiled
def _balance(
    start: float, log_slack: Array, turn: int, x: float, family: int, scale: float
) -> tuple[float, float]:
    """Log of the positive over the negative part of p_plus - L p_minus at x, and its slope."""
    above, rise = _log_share(start, log_slack, turn, log_slack.size, x, family, scale)
    below, fall = _log_share(start, log_slack, 0, turn, x, family, scale)
    return above - below, rise - fall


@compiled
def _cut(
    start: float, log_slack: Array, turn: int, family: int, scale: float
) -> tuple[float, bool]:
    """Where p_plus = L p_minus, by Newton's method held in a bracket."""
    low, high = start - 0.5, start + log_slack.size - 0.5
    step = 1.0 + scale
    while _balance(start, log_slack, turn, low, family, scale)[0] > 0.0:
        if family == LAPLACE:
            return low, False
        low -= step
        step *= 2.0
    step = 1.0 + scale
    while _balance(start, log_slack, turn, high, family, scale)[0] < 0.0:
        # beyond the last count the balance of Laplace noise no longer changes
        if family == LAPLACE or step > 1e200:
            return high, False
        high += step
        step *= 2.0
    x = start + turn - 0.5
    if not low < x < high:
        x = 0.5 * (low + high)
    for _ in range(_STEPS):
        value, slope = _balance(start, log_slack, turn, x, family, scale)
        if value > 0.0:
            high = x
        else:
            low = x
        new = x - value / slope if slope > 0.0 else math.inf
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= _PRECISION * (scale + abs(x)) or high - low <= _GRAIN:
            x = new
            break
        x = new
    return math.floor(x / _GRAIN + 0.5) * _GRAIN, True


@compiled
def _delta(
    start: float, plus: Array, minus: Array, gain: Array, growth: float, excess: float,
    x: float, family: int, scale: float,
) -> float:  # fmt: skip
    """Return delta_plus for a cut at x, by the better of two sums; see the module.

    sum_j (plus_j - L minus_j) T_j, or sum_j gain_j (T_(j+1) - T_j) - (L - 1) sum_j minus_j T_j with
    T_j = P(j + noise > x), L = growth and L - 1 = excess. All terms are taken relative to the
    largest, at the distance `reference`, in counts.
    """
    # the largest term sets the scale, so that none of those that matter underflows
    largest, reference = -math.inf, 0.0
    for k in range(plus.size):
        mass = plus[k] + minus[k]
        d = x - (start + k)
        if mass > 0.0:
            size = math.log(mass) + (log_density(family, d, scale) if d > 0.0 else 0.0)
            if size > largest:
                largest, reference = size, max(d, 0.0)
    above, below, won, lost = 0.0, 0.0, 0.0, 0.0
    for k in range(plus.size):
        d = x - (start + k)
        mass = plus[k] + minus[k]
        if mass == 0.0:
            continue
        # the nearer end of the interval in which the noise must fall for j + 1 but not for j
        near = log_density(family, d - 1.0, scale) if d > 1.0 else 0.0
        if math.log(mass) + near < largest - 2.0 * _DECAY:
            continue
        distance, factor = tail(family, d, scale)
        share = factor * math.exp(decay_difference(family, distance, reference, scale))
        slack = (plus[k] - growth * minus[k]) * share
        if slack > 0.0:
            above += slack
        else:
            below -= slack
        lost += excess * minus[k] * share
        distance, factor = increment(family, d, scale)
        won += gain[k] * factor * math.exp(decay_difference(family, distance, reference, scale))
    value = above - below
    if (won - lost) * (above + below) > value * (won + lost):
        value = won - lost
    return max(value, 0.0) * math.exp(-decay_difference(family, 0.0, reference, scale))
