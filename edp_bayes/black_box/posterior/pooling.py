"""The largest of many quantities, each known with error: one hierarchical posterior of all.

Every pair's local epsilon T_k is known through draws, summarised as a normal distribution of log
T_k. A maximum of separate posteriors is too large. Here log T_k = min(g_k, L), with g_k normal
around a common mean: pairs that reach the mechanism's own level L share it exactly. On a grid of L
and of the hyperparameters everything is summed out, so the draws are independent and exact. Delta,
which may be 0, is pooled in the same way without the logarithm.
"""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["pool", "pool_shares"]

LEVELS, MEANS = 31, 31
SPREADS = np.geomspace(0.02, 2.0, 9)
REACH = 5.0
SMALLEST_ERROR = 1e-4
SMALLEST = 1e-6
# Quantiles, of the draws above 0, that a normal distribution is fitted to; no distribution is
# fitted to few of them.
FITTED_AT = (0.32, 0.84)
MOSTLY_ZERO = 0.95


def pool(draws: Array, rng: np.random.Generator, size: int) -> Array:
    """Return joint draws of several positive quantities.

    Parameters
    ----------
    draws : ndarray
        Shape (draw, pair): separate posterior draws, finite; zeros count as 1e-6.
    rng : numpy.random.Generator
        Source of randomness.
    size : int
        Number of joint draws.

    Returns
    -------
    ndarray
        Shape (size, pair).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> separate = np.exp(rng.normal(0.0, 0.1, (2000, 20)) + rng.normal(0.0, 0.1, 20))
    >>> joint = pool(separate, rng, 1000)
    >>> bool(np.median(joint.max(axis=1)) < np.median(separate.max(axis=1)))
    True
    """
    logs = np.log(np.maximum(draws, SMALLEST))
    return np.exp(_joint(logs.mean(axis=0), logs.std(axis=0), SPREADS, rng, size))


def _joint(
    centre: Array, error: Array, spreads: Array, rng: np.random.Generator, size: int
) -> Array:
    """Return joint draws of quantities that are each known with a normal error, (size, pair)."""
    error = np.maximum(error, SMALLEST_ERROR)
    low, high = float((centre - REACH * error).min()), float((centre + REACH * error).max())
    levels = _levels(centre, error, high)
    means = np.linspace(low, high, MEANS)
    step = np.gradient(levels)
    scores = _evidence(centre, error, levels, means, spreads) + np.log(step)[:, None, None]
    weights = np.exp(scores - scores.max()).ravel()
    chosen = rng.choice(weights.size, size, p=weights / weights.sum())
    level, mean, spread = np.unravel_index(chosen, scores.shape)
    top = levels[level] + step[level] * (rng.random(size) - 0.5)
    out = np.empty((size, centre.size))
    for k in range(centre.size):
        out[:, k] = _draw(centre[k], error[k], top, means[mean], spreads[spread], rng)
    return out


def _levels(centre: Array, error: Array, high: float) -> Array:
    """Return where the shared level may lie, densely where the largest pair is."""
    k = int(np.argmax(centre))
    wide = np.linspace(float(np.median(centre)) - error.max(), high, LEVELS)
    return np.unique(np.r_[wide, np.linspace(-REACH, REACH, LEVELS) * error[k] + centre[k]])


def pool_shares(draws: Array, rng: np.random.Generator) -> Array:
    """Return joint draws of several quantities that may be 0, such as delta.

    As `pool`, but with normal distributions of the quantities themselves, not of their logarithms;
    what such a distribution has below 0 are the draws of 0.

    Parameters
    ----------
    draws : ndarray
        Shape (draw, pair): separate posterior draws, not negative.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray
        Shape (draw, pair). A pair that hardly ever has a draw above 0 keeps its own draws.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> separate = np.maximum(rng.normal(0.0, 0.01, (2000, 20)), 0.0)
    >>> joint = pool_shares(separate, rng)
    >>> bool(np.median(joint.max(axis=1)) < np.median(separate.max(axis=1)))
    True
    """
    from scipy.special import ndtri

    out = draws.copy()
    zero = (draws == 0.0).mean(axis=0)
    known = zero < MOSTLY_ZERO
    if known.sum() < 2:
        return out
    unit = float(np.median(draws[:, known].std(axis=0))) + SMALLEST
    at = zero[known] + (1.0 - zero[known]) * np.array(FITTED_AT)[:, None]
    low, high = (
        np.array([np.quantile(x, p) for x, p in zip(draws[:, known].T / unit, level, strict=True)])
        for level in at
    )
    scale = (high - low) / (ndtri(at[1]) - ndtri(at[0]))
    centre = high - scale * ndtri(at[1])
    spreads = np.geomspace(0.1, max(1.0, float(np.ptp(centre))), SPREADS.size)
    joint = _joint(centre, scale, spreads, rng, len(draws)) * unit
    out[:, known] = np.clip(joint, 0.0, 1.0)
    return out


def _evidence(centre: Array, error: Array, level: Array, mean: Array, spread: Array) -> Array:
    """Return the log likelihood of the hyperparameters, shape (level, mean, spread)."""
    top, mu, s = level[:, None, None], mean[None, :, None], spread[None, None, :]
    total = np.zeros(np.broadcast_shapes(top.shape, mu.shape, s.shape))
    for x, e in zip(centre, error, strict=True):
        free, tied = _parts(x, e, top, mu, s)
        total += np.logaddexp(free, tied)
    return total


def _parts(x: float, e: float, top: Array, mu: Array, s: Array) -> tuple[Array, Array]:
    """Return the log joint of an estimate x with being below the shared level, and being at it."""
    from scipy.special import log_ndtr

    both = np.sqrt(e**2 + s**2)
    # Given x, g is normal around a precision-weighted mean.
    middle = (x * s**2 + mu * e**2) / both**2
    width = e * s / both
    free = -0.5 * ((x - mu) / both) ** 2 - np.log(both) + log_ndtr((top - middle) / width)
    tied = -0.5 * ((x - top) / e) ** 2 - np.log(e) + log_ndtr((mu - top) / s)
    return free, tied


def _draw(x: float, e: float, top: Array, mu: Array, s: Array, rng: np.random.Generator) -> Array:
    from scipy.special import ndtr, ndtri

    free, tied = _parts(x, e, top, mu, s)
    at_level = rng.random(top.size) < np.exp(tied - np.logaddexp(free, tied))
    both = np.sqrt(e**2 + s**2)
    middle, width = (x * s**2 + mu * e**2) / both**2, e * s / both
    u = rng.random(top.size) * ndtr((top - middle) / width)
    below = middle + width * ndtri(np.clip(u, 1e-300, 1.0 - 1e-16))
    return np.where(at_level, top, np.minimum(below, top))
