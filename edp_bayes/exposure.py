"""What each individual's own contributions say of their risk, without a model of anybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from edp_bayes.responses import Responses

__all__ = ["raw_exposure"]

Array = NDArray[np.float64]

# Shifts are counted in at least this share of the spread of the response.
LEAST_SPREAD = 1e-9


def raw_exposure(responses: Responses, epsilon: Array) -> Array:
    """Return the mean over the databases of the risk that each contribution alone would be.

    (1 / n) sum_j H_eps(N(c_ij, s_i^2) || N(0, s_i^2)), with s_i the standard deviation of the
    responses without the individual: how often and how far they move the response, as observed.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.
    epsilon : ndarray
        Shape (epsilon,).

    Returns
    -------
    ndarray
        Shape (individual, epsilon).

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> contribution = np.zeros((40, 2))
    >>> contribution[:5, 0], contribution[:, 1] = 100.0, 0.01
    >>> response = np.random.default_rng(1).normal(size=40) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> raw_exposure(data, np.array([0.5])).round(3)
    array([[0.125],
           [0.   ]])
    """
    from edp_bayes.divergence.screening import gaussian_shift

    c, people = responses.contribution, responses.n_individuals
    owner = np.repeat(np.arange(people), np.diff(c.indptr))
    least = LEAST_SPREAD * float(responses.response.std())
    spread = np.maximum(np.sqrt(responses.variance_without), least)
    shift = np.abs(c.data) / spread[owner]
    rows = responses.response.size
    parts = [np.bincount(owner, gaussian_shift(shift, e), people) / rows for e in epsilon]
    return np.stack(parts, axis=1)
