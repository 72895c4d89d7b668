"""Epsilon from a distance between two samples: the published form, and the sound one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate

__all__ = ["bottleneck_epsilon", "hausdorff_epsilon"]


def hausdorff_epsilon(y: ArrayLike, y_i: ArrayLike, scale: float) -> float:
    """Return the epsilon of the published Proposition 1, which does not hold.

    The proposition says that two Laplace kernel estimates of scale lambda differ by at most the
    Hausdorff distance of the samples over lambda. The samples {0, 10, 10.1, 10.2} and
    {0, 0.1, 0.2, 10} with lambda = 1 refute it: their Hausdorff distance is 0.2, yet the log
    ratio of the estimates reaches 1.2018. The distance forgets how many points lie near each
    place. It is kept to reproduce published numbers; use `bottleneck_epsilon` for a bound.

    Parameters
    ----------
    y, y_i : array_like
        Responses with and without the individual, shapes (n,) and (k,), any order.
    scale : float
        Scale lambda of the Laplace kernel, in the units of the responses.

    Returns
    -------
    float
        Hausdorff distance of the two sets over the scale.

    Raises
    ------
    InvalidInputError
        If a sample is empty or not finite, or the scale is not above zero.

    See Also
    --------
    bottleneck_epsilon : the distance that is sound
    empirical_privacy : the published point estimates

    References
    ----------
    Burchard, Daoud, Dotterrer (2020), arXiv:1910.12820, Proposition 1.

    Examples
    --------
    >>> from edp_bayes.plugin import hausdorff_epsilon
    >>> round(hausdorff_epsilon([0, 10, 10.1, 10.2], [0, 0.1, 0.2, 10], 1.0), 6)
    0.2
    """
    a, b = _sorted_sample(y, "y"), _sorted_sample(y_i, "y_i")
    return max(_farthest(a, b), _farthest(b, a)) / validate.positive_number(scale, "scale")


def bottleneck_epsilon(y: ArrayLike, y_i: ArrayLike, scale: float) -> float:
    """Return a sound epsilon for two Laplace kernel estimates with equal weights.

    Pair the samples so that the largest shift is as small as possible: in one dimension, in
    sorted order. Each kernel changes by at most exp(shift / scale), and so does the sum.

    Parameters
    ----------
    y, y_i : array_like
        Responses with and without the individual, both of shape (n,), any order.
    scale : float
        Scale lambda of the Laplace kernel, in the units of the responses.

    Returns
    -------
    float
        Bottleneck distance W_inf = max_j abs(y_(j) - y_i(j)) of the sorted samples, over the
        scale. The log ratio of the two estimates exceeds it nowhere.

    Raises
    ------
    InvalidInputError
        If a sample is empty or not finite, the samples differ in size, or the scale is not
        above zero.

    See Also
    --------
    hausdorff_epsilon : the published distance, which is not sound
    empirical_privacy : the published point estimates

    Examples
    --------
    >>> from edp_bayes.plugin import bottleneck_epsilon
    >>> round(bottleneck_epsilon([0, 10, 10.1, 10.2], [0, 0.1, 0.2, 10], 1.0), 6)
    9.9
    """
    a, b = _sorted_sample(y, "y"), _sorted_sample(y_i, "y_i")
    if a.size != b.size:
        raise InvalidInputError(
            f"y and y_i must hold the same number of responses, found {a.size} and {b.size}"
        )
    return float(np.abs(a - b).max()) / validate.positive_number(scale, "scale")


def _sorted_sample(value: ArrayLike, name: str) -> NDArray[np.float64]:
    sample = np.sort(validate.finite_array(value, name, ndim=1))
    if sample.size == 0:
        raise InvalidInputError(f"{name} must hold at least one response, found none")
    return sample


def _farthest(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the largest distance from a point of a to its nearest neighbour in sorted b."""
    right = np.clip(np.searchsorted(b, a), 0, b.size - 1)
    left = np.maximum(right - 1, 0)
    return float(np.minimum(np.abs(a - b[left]), np.abs(a - b[right])).max())
