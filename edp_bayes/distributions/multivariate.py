"""Mixtures of multivariate normals, draws in front."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.reprs import by_shapes

__all__ = ["NormalMixture", "Units"]


class Units(NamedTuple):
    """What stands for one and zero: y = centre + factor z.

    Attributes
    ----------
    centre : ndarray
        Shape (d,).
    factor : ndarray
        Shape (d, d), lower triangular: Cholesky's factor of the sample covariance.
    """

    centre: Array
    factor: Array

    @classmethod
    def of(cls, y: Array) -> Units:
        """Whiten by the sample mean and covariance of responses (n, d), without forming it."""
        centre = y.mean(axis=0)
        triangle = np.linalg.qr((y - centre) / np.sqrt(len(y) - 1.0), mode="r")
        sign = np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)
        return cls(centre, np.ascontiguousarray((triangle * sign[:, None]).T))

    def spread(self, variance: Array) -> Array:
        """Return what is independent for every response, of variances (d,), as covariance of z."""
        inverse = np.linalg.inv(self.factor)
        return np.asarray(inverse @ np.diag(variance) @ inverse.T)

    def whiten(self, y: Array) -> Array:
        """Return z of responses (..., d)."""
        return self.shrink(y - self.centre)

    def shrink(self, moves: Array) -> Array:
        """Return differences (..., d) of responses as differences of z."""
        flat = moves.reshape(-1, moves.shape[-1])
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.factor, flat.T, lower=True).T.reshape(moves.shape))


class NormalMixture(NamedTuple):
    """Draws of a mixture of multivariate normals.

    Attributes
    ----------
    weights : ndarray
        Shape (..., component).
    locations : ndarray
        Shape (..., component, d).
    covariances : ndarray
        Shape (..., component, d, d), or one that is broadcast.

    See Also
    --------
    JointAudit.joint_mixture : the distribution of several responses
    Mixture : of one response

    Examples
    --------
    >>> normal = NormalMixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> float(normal.along(np.array([1.0, 1.0])).variance().round(9))  # of the sum of both
    2.0
    """

    weights: Array
    locations: Array
    covariances: Array

    def __repr__(self) -> str:
        """Return how it is made, but long arrays by their shape."""
        return by_shapes(self)

    @property
    def dimensions(self) -> int:
        """Number d of responses."""
        return int(self.locations.shape[-1])

    @property
    def each_covariance(self) -> Array:
        """Covariances with one for every component, however they broadcast."""
        return np.broadcast_to(self.covariances, (*self.locations.shape, self.dimensions))

    def in_units(self, units: Units) -> NormalMixture:
        """Return the mixture of y = centre + factor z."""
        factor = units.factor
        return NormalMixture(
            self.weights,
            units.centre + self.locations @ factor.T,
            factor @ self.covariances @ factor.T,
        )

    def whitened(self, units: Units) -> NormalMixture:
        """Return the mixture of z."""
        inverse = np.linalg.inv(units.factor)
        return NormalMixture(
            self.weights,
            (self.locations - units.centre) @ inverse.T,
            inverse @ self.covariances @ inverse.T,
        )

    def along(self, direction: Array, noise: Array | float = 0.0) -> Mixture:
        """Return the distribution of a combination of the responses, with known noise (d, d)."""
        covariances = self.covariances + noise
        variances = np.einsum("...ab,a,b->...", covariances, direction, direction)
        return Mixture(self.weights, self.locations @ direction, np.sqrt(variances))

    def logpdf(self, y: Array) -> Array:
        """Return the log density at points (n, d), shape (..., n)."""
        found = np.full((*self.weights.shape[:-1], len(y)), -np.inf)
        covariances = self.each_covariance
        constant = 0.5 * self.dimensions * np.log(2.0 * np.pi)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        for k in range(self.weights.shape[-1]):
            factor = np.linalg.cholesky(covariances[..., k, :, :])
            away = y - self.locations[..., k, None, :]
            u = np.linalg.solve(factor, np.swapaxes(away, -1, -2))
            scale = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1) + constant
            term = (logs[..., k] - scale)[..., None] - 0.5 * (u**2).sum(axis=-2)
            np.logaddexp(found, term, out=found)
        return found

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent values of every draw, shape (..., size, d)."""
        lead = self.weights.shape[:-1]
        edges = np.cumsum(self.weights, axis=-1)
        uniform = rng.random((*lead, size)) * edges[..., -1:]
        chosen = (uniform[..., None] >= edges[..., None, :-1]).sum(axis=-1)
        factors = _roots(self.each_covariance)
        place = np.take_along_axis(self.locations, chosen[..., None], axis=-2)
        factor = np.take_along_axis(factors, chosen[..., None, None], axis=-3)
        normal = rng.standard_normal((*lead, size, self.dimensions))
        return np.asarray(place + np.einsum("...ab,...b->...a", factor, normal))

    def mean(self) -> Array:
        """Return the mean of every draw, shape (..., d)."""
        return np.asarray(np.einsum("...k,...kd->...d", self.weights, self.locations))

    def covariance(self) -> Array:
        """Return the covariance of every draw, shape (..., d, d)."""
        away = self.locations - self.mean()[..., None, :]
        spread = self.covariances + away[..., :, None] * away[..., None, :]
        return np.asarray(np.einsum("...k,...kab->...ab", self.weights, spread))


def _roots(covariances: Array) -> Array:
    """Return roots A of covariances A A', also of those that rounding made singular."""
    try:
        return np.asarray(np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        variances, directions = np.linalg.eigh(covariances)
        return np.asarray(directions * np.sqrt(np.maximum(variances, 0.0))[..., None, :])
