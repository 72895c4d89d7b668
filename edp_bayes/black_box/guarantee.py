"""What holds for a mechanism of one number whose likelihood ratio is monotone, without a model."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB

__all__ = ["mechanism_guarantee"]

FEWEST = 2


def mechanism_guarantee(
    samples: ArrayLike,
    samples_neighbour: ArrayLike,
    *,
    epsilon: ArrayLike,
    prob: float = PROB,
) -> xr.Dataset:
    """Return a band of delta at every epsilon at once, from two samples of a mechanism.

    The lower end holds for any mechanism. The upper end holds if the ratio of the two densities
    rises, or falls, with the outcome, as it does for Laplace, normal and geometric noise on one
    answer and for randomised response: then the set of outcomes that tells most is a half line.

    Parameters
    ----------
    samples, samples_neighbour : array_like
        Shape (size,): independent outcomes, numbers, for a database and for a neighbour. The sizes
        may differ.
    epsilon : array_like
        Shape (epsilon,), or one number: increasing, not negative.
    prob : float
        Probability of the whole band.

    Returns
    -------
    Dataset
        ``lower`` and ``upper``, dims epsilon: both hold at all epsilons at once.

    Raises
    ------
    InvalidInputError, InputTypeError
        If samples are no finite numbers of one column, are fewer than 2, or another argument cannot
        be used.

    See Also
    --------
    audit_mechanism : a mechanism on one pair of databases
    MechanismAudit : the posterior of a mechanism
    guarantee : limits that hold for any distribution

    Notes
    -----
    Of a sample of size n no half line has a probability farther than sqrt(log(4 / (1 - prob)) /
    (2 n)) from its share, of both samples at once with probability prob: Massart (1990). So with
    these widths w and w' delta(epsilon) is within w + exp(epsilon) w' of the largest share less
    exp(epsilon) times that of the neighbour, over all half lines and both directions. Whether the
    ratio is monotone, samples cannot show: it is known of the mechanism or not. A mechanism whose
    ratio is not may have a larger delta than the upper end.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Annals of
    Probability 18, 1269-1283.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.laplace(size=(2, 100_000))
    >>> band = edp.mechanism_guarantee(noise[0] + 1.0, noise[1], epsilon=[0.5])
    >>> truth = 1 - np.exp(-0.25)  # sensitivity 1, scale 1
    >>> bool(band["lower"][0] < truth < band["upper"][0])
    True
    """
    grid = validate.epsilon_grid(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
    prob = validate.probability(prob, "prob")
    first = _outcomes(samples, "samples")
    second = _outcomes(samples_neighbour, "samples_neighbour")
    shares = [_at_most(sample, np.union1d(first, second)) for sample in (first, second)]
    widths = [math.sqrt(math.log(4.0 / (1.0 - prob)) / (2.0 * len(s))) for s in (first, second)]
    growth = np.exp(grid)
    lower, upper = np.zeros((2, grid.size))
    for one, other in ((0, 1), (1, 0)):
        most = [_most(shares[one], shares[other], value) for value in growth.tolist()]
        apart = widths[one] + growth * widths[other]
        lower = np.maximum(lower, most - apart)
        upper = np.maximum(upper, most + apart)
    return xr.Dataset(
        {"lower": ("epsilon", lower), "upper": ("epsilon", np.minimum(upper, 1.0))},
        coords={"epsilon": grid},
        attrs={"prob": prob, "samples": [len(first), len(second)]},
    )


def _outcomes(samples: ArrayLike, name: str) -> Array:
    """Return outcomes as an array of numbers, shape (size,)."""
    found = validate.finite_array(samples, name)
    if found.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one number an outcome, shape (size,), found shape {found.shape}"
        )
    if found.size < FEWEST:
        raise InvalidInputError(f"{name} must be at least {FEWEST} outcomes, found {found.size}")
    return found


def _at_most(sample: Array, values: Array) -> Array:
    """Return the share of a sample up to each value, 0 first."""
    found = np.searchsorted(np.sort(sample), values, side="right") / sample.size
    return np.concatenate([[0.0], found])


def _most(p: Array, q: Array, growth: float) -> float:
    """Return the largest P(A) - growth Q(A) over half lines A of either direction."""
    below, above = p - growth * q, (1.0 - p) - growth * (1.0 - q)
    return max(float(below.max()), float(above.max()), 0.0)
