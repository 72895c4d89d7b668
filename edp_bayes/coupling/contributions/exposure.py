"""What each individual's own contributions say of their risk, without a model of anybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.pooling import presence_in_question
from edp_bayes.distributions.multivariate import Units
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Adjustment, Responses

__all__ = ["CONSTANT", "raw_exposure", "units_of"]

# Responses without an individual are constant below this share of the standard deviation of all
# responses; a regression on them takes it as a share of the variance.
CONSTANT = 1e-9


def raw_exposure(
    responses: Responses | JointResponses,
    epsilon: Array,
    *,
    presence: Array | None = None,
    narrower: float = 1.0,
) -> Array:
    """Return the risk that contributions as observed would be beside a normal distribution.

    That of p = (1 - rho) q + rho g against q = N(0, s_i^2), with rho the share of databases in
    which the individual contributes, that of the database in question where presence is adjusted to
    it, s_i the standard deviation of the responses without them, and g the mixture of N(c_ij,
    s_i^2) over these databases. By joint convexity over the c_ij, exact where they are all equal,
    an upper bound where they vary.

    Parameters
    ----------
    responses : Responses or JointResponses
        Leave-one-out responses. Of several queries the shift is the Mahalanobis distance.
    epsilon : ndarray
        Shape (epsilon,).
    presence : ndarray, optional
        Shape (individual,): rho, where it is another one.
    narrower : float
        Factor of s_i.

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
    units, found, others = units_of(responses), responses.entries, responses.remainder
    values, vectors = np.linalg.eigh(
        responses.covariance_without(units) + units.spread(responses.noise_variance)
    )
    axes = vectors / (narrower * np.sqrt(np.maximum(values, CONSTANT**2)))[:, None]

    def lengths(contribution: Array, owner: Index) -> Array:
        turned = np.einsum("eb,eba->ea", units.shrink(contribution), axes[owner])
        return np.asarray(np.sqrt((turned**2).sum(axis=1)))

    shift = lengths(found.value, found.owner)
    sizes = (len(responses.response), responses.n_individuals)
    out = _of_shifts(shift, found.owner, sizes, epsilon, responses.adjustment, presence)
    if others is not None:
        # as if all contributions of these were as large as their largest
        shift = lengths(others.largest[:, None], others.individuals)
        out[others.individuals] = _of_alike(shift, others.count / responses.n_databases, epsilon)
    return out


def units_of(responses: Responses | JointResponses) -> Units:
    """Return the units in which the responses to one query or several have covariance one."""
    y = responses.response
    return Units.of(y.reshape(len(y), -1))


def _of_shifts(
    shift: Array,
    owner: Index,
    sizes: tuple[int, int],
    epsilon: Array,
    adjustment: Adjustment | None,
    presence: Array | None = None,
) -> Array:
    """Return the risks of contributions by so many standard deviations."""
    rows, people = sizes
    count = np.bincount(owner, minlength=people)
    share = count / rows if presence is None else presence
    if presence is None and adjustment is not None:
        share = presence_in_question(share, adjustment.own_odds)
    out = np.empty((people, epsilon.size))
    for level, e in enumerate(epsilon):
        where = np.bincount(owner, _where_present(shift, share[owner], e), people)
        out[:, level] = share * where / np.maximum(count, 1)
    return out


def _of_alike(shift: Array, rho: Array, epsilon: Array) -> Array:
    """Return the risks of contributions that are all of one size, in a share rho of databases."""
    out = np.zeros((shift.size, epsilon.size))
    seen = rho > 0.0
    for level, e in enumerate(epsilon):
        out[seen, level] = rho[seen] * _where_present(shift[seen], rho[seen], e)
    return out


def _where_present(shift: Array, rho: Array, epsilon: float) -> Array:
    """Return the risk over rho of a shift in a share rho of databases."""
    from edp_bayes.divergence.shifts import gaussian_shift

    growth = np.expm1(epsilon)
    kept = rho - growth * (1.0 - rho)
    risk = gaussian_shift(shift, np.log1p(growth / rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        other = kept / rho * gaussian_shift(shift, np.log1p(growth / kept))
    return np.maximum(risk, np.where(kept > 0.0, other, 0.0))
