"""Pointwise and simultaneous bands over a curve, from its draws."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.arrays import Array

__all__ = ["KINDS", "band", "fewest_draws", "pointwise", "simultaneous", "upper_limit"]


KINDS = ("simultaneous", "pointwise")


def band(
    draws: Array, prob: float, *, kind: str, below: Array | None = None
) -> tuple[Array, Array]:
    """Return a band of one kind; its lower end, from draws of a lower bound if there are any.

    Parameters
    ----------
    draws : ndarray
        Shape (draw, point).
    prob : float
        Posterior probability.
    kind : {"simultaneous", "pointwise"}
        Of whole curves, or at every single point.
    below : ndarray, optional
        Shape (draw, point): draws of a lower bound of the curve, perhaps fewer. The curve must not
        increase: what bounds it from below at one point does so at every point before.

    Returns
    -------
    lower, upper : ndarray
        Shape (point,).

    See Also
    --------
    pointwise : a band for each point
    simultaneous : a band for whole curves
    upper_limit : a one-sided limit
    edp_bayes.Audit.band : credible bands over epsilon

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.arange(1.0, 100.0)[:, None]
    >>> band(draws, 0.9, kind="pointwise", below=draws - 2.0)
    (array([3.]), array([95.]))
    """
    make = simultaneous if kind == "simultaneous" else pointwise
    lower, upper = make(draws, prob)
    if below is None:
        return lower, upper
    lower = np.minimum(lower, make(below, prob)[0])
    return never_rising(lower), upper


def pointwise(draws: Array, prob: float) -> tuple[Array, Array]:
    """Return the equal-tailed interval at every point.

    The k-th smallest of N is taken for the quantile k / (N + 1), so that one more draw falls into
    it with the probability stated. With fewer than `fewest_draws` it is their range, into which
    one more falls with probability (N - 1) / (N + 1).

    Parameters
    ----------
    draws : ndarray
        Shape (draw, ...).
    prob : float
        Posterior probability of the interval at each single point.

    Returns
    -------
    lower, upper : ndarray
        Shape (...).

    See Also
    --------
    simultaneous : a band for whole curves
    band : a band of any kind, from draws

    Examples
    --------
    >>> import numpy as np
    >>> pointwise(np.arange(1.0, 100.0)[:, None], 0.9)
    (array([5.]), array([95.]))
    """
    tail = 0.5 * (1.0 - prob)
    lower, upper = np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull")
    return lower, upper


def upper_limit(draws: Array, prob: float, *, kind: str = "pointwise") -> Array:
    """Return the one-sided upper limit at every point, or of whole curves.

    The k-th smallest of N is taken for the quantile k / (N + 1), as for `pointwise`. That of whole
    curves is the k-th smallest value at every point, with the smallest k for which at least
    prob (N + 1) of N curves are nowhere above: one side of `simultaneous`, nowhere below the limit
    at single points.

    Parameters
    ----------
    draws : ndarray
        Shape (draw, ...); of whole curves (draw, point).
    prob : float
        Posterior probability that the value, or the whole curve, is at most the limit.
    kind : {"pointwise", "simultaneous"}
        At every single point, or of whole curves.

    Returns
    -------
    ndarray
        Shape (...).

    See Also
    --------
    band : a band of any kind, from draws
    simultaneous : a band for whole curves
    edp_bayes.Audit.upper : a one-sided upper limit

    Examples
    --------
    >>> import numpy as np
    >>> upper_limit(np.arange(1.0, 100.0)[:, None], 0.95)
    array([95.])
    >>> curves = np.random.default_rng(1).normal(size=(1000, 20))
    >>> limit = upper_limit(curves, 0.95, kind="simultaneous")
    >>> bool((curves <= limit).all(axis=1).mean() >= 0.95)
    True
    """
    single = np.asarray(np.quantile(draws, prob, axis=0, method="weibull"))
    # rounding may take what lies between two draws above both
    single = np.minimum(single, draws.max(axis=0))
    if kind == "pointwise":
        return single
    count = draws.shape[0]
    order = np.sort(draws, axis=0)
    # the rank at which a curve is nowhere above; ties count in its favour
    height = np.ones(count, dtype=np.int64)
    for point in range(draws.shape[1]):
        rank = np.searchsorted(order[:, point], draws[:, point], side="left") + 1
        np.maximum(height, rank, out=height)
    # 0.95 * 20 is a little more than 19
    inside = min(math.ceil(prob * (count + 1) - 1e-9), count)
    return np.asarray(np.maximum(order[np.sort(height)[inside - 1] - 1], single))


def never_rising(limit: Array) -> Array:
    """Return limits over epsilon, last, that hold at every smaller epsilon, too: risks never rise.

    Examples
    --------
    >>> import numpy as np
    >>> never_rising(np.array([0.2, 0.1, 0.15]))
    array([0.2 , 0.15, 0.15])
    """
    return np.maximum.accumulate(limit[..., ::-1], axis=-1)[..., ::-1]


def limit_of_both(draws: Array, shown: Array, prob: float, *, kind: str) -> Array:
    """Return the larger limit over epsilon: of draws, or of what the databases themselves show.

    Parameters
    ----------
    draws, shown : ndarray
        Shapes (draw, epsilon) and (sample, epsilon).
    prob, kind
        As of `upper_limit`.

    Examples
    --------
    >>> import numpy as np
    >>> draws, shown = np.full((20, 2), 0.1), np.full((30, 2), [0.05, 0.2])
    >>> limit_of_both(draws, shown, 0.9, kind="pointwise")
    array([0.2, 0.2])
    """
    below = never_rising(upper_limit(shown, prob, kind=kind))
    return np.maximum(upper_limit(draws, prob, kind=kind), below)


def holds_limit(draws: int, prob: float) -> bool:
    """Return whether so many draws hold a one-sided limit of this probability.

    Examples
    --------
    >>> holds_limit(20, 0.95), holds_limit(19, 0.95)
    (True, False)
    """
    return draws * (1.0 - prob) >= 1.0 - 1e-9


def fewest_draws(prob: float) -> int:
    """Return how many draws there must be for their range to hold one more with that probability.

    Parameters
    ----------
    prob : float
        The probability.

    Returns
    -------
    int
        The fewest N with (N - 1) / (N + 1) of at least prob.

    See Also
    --------
    simultaneous : a band for whole curves
    upper_limit : a one-sided limit

    Examples
    --------
    >>> fewest_draws(0.95)
    39
    """
    # 2 / (1 - 0.95) is a little less than 40, 2 / (1 - 0.9) a little more than 20.
    return math.ceil(2.0 / (1.0 - prob) - 1.0 - 1e-9)


def simultaneous(draws: Array, prob: float) -> tuple[Array, Array]:
    """Return the rank envelope that holds whole curves with the given probability.

    The depth of a curve is its most extreme rank at any point, counted from the nearer end. The
    band reaches from the k-th smallest to the k-th largest value at every point, with the largest
    k for which at most (1 - prob) (N + 1) of N curves have a depth of k or less. Ranks are counted
    as for `pointwise`, whose interval it contains. Ties count in a curve's favour, so that draws
    which are exactly zero together do not widen the band. With too few draws it is their range.

    Parameters
    ----------
    draws : ndarray
        Shape (draw, point): one curve a row.
    prob : float
        Posterior probability that the whole curve lies in the band.

    Returns
    -------
    lower, upper : ndarray
        Shape (point,).

    See Also
    --------
    pointwise : a band for each point
    upper_limit : a one-sided limit
    fewest_draws : how many draws a band needs

    References
    ----------
    Myllymaki, Mrkvicka, Grabarnik, Seijo and Hahn (2017), Global envelope tests for spatial
    processes, JRSS B 79, 381-404.

    Examples
    --------
    >>> import numpy as np
    >>> curves = np.random.default_rng(1).normal(size=(1000, 20))
    >>> lower, upper = simultaneous(curves, 0.9)
    >>> whole = ((curves >= lower) & (curves <= upper)).all(axis=1)
    >>> bool(whole.mean() >= 0.9)
    True
    """
    count = draws.shape[0]
    order = np.sort(draws, axis=0)
    depth = np.full(count, count, dtype=np.int64)
    for point in range(draws.shape[1]):
        column = order[:, point]
        from_below = np.searchsorted(column, draws[:, point], side="right")
        from_above = count - np.searchsorted(column, draws[:, point], side="left")
        np.minimum(depth, np.minimum(from_below, from_above), out=depth)
    # 1.0 - 0.9 is a little less than 0.1.
    outside = (1.0 - prob) * (count + 1) + 1e-9
    deep = int(np.sort(depth)[min(int(outside), count - 1)]) - 1
    rank = max(min(deep, int(0.5 * outside)), 1)
    # Ties may let whole curves lie deeper than single points do.
    lower, upper = pointwise(draws, prob)
    return np.minimum(order[rank - 1], lower), np.maximum(order[count - rank], upper)
