"""Independent draws from the posteriors of one property, without a sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.distributions.choice import choose
from edp_bayes.property_audit.likelihoods import LEAST, beta_binomial_log_mass
from edp_bayes.utils.arrays import Array

__all__ = ["LEAST", "MOST", "GridPosterior", "beta_binomial_draws", "binomial_draws"]

# Probabilities are kept apart from 0 and 1, where a query would be trivial.
MOST = 1.0 - 2.0**-53

# The grid of the beta-binomial posterior covers densities down to exp(-DEPTH) of the peak.
DEPTH = 20.0
COARSE, FINE = 41, 241
ROUNDS = 5
REACH = 40.0


def binomial_draws(
    count: Array, n: Array, prior: tuple[float, float], rng: np.random.Generator, size: int
) -> Array:
    """Return draws of pi, whose posterior is a Beta distribution.

    Parameters
    ----------
    count, n : ndarray
        Shape (database,).
    prior : tuple of float
        Parameters of the Beta prior.
    rng : numpy.random.Generator
        Source of randomness.
    size : int
        Number of draws.

    Returns
    -------
    ndarray
        Shape (size,).
    """
    a, b = prior[0] + count.sum(), prior[1] + (n - count).sum()
    return np.asarray(np.clip(rng.beta(a, b, size), LEAST, MOST))


def beta_binomial_draws(
    count: Array,
    n: Array,
    prior: tuple[float, float],
    scale: float,
    rng: np.random.Generator,
    size: int,
) -> tuple[Array, Array]:
    """Return draws of the mean of pi and of its concentration, from the posterior on a grid.

    The grid is laid over the logit of concentration / (concentration + scale), whose prior is
    uniform, and over the logit of the mean in standard errors that this concentration implies.
    It covers densities down to exp(-20) of the peak with 241 points a side, and a draw is
    uniform within its cell, which adds about 0.1% to a variance.

    Parameters
    ----------
    count, n : ndarray
        Shape (database,).
    prior : tuple of float
        Parameters of the Beta prior of the mean.
    scale : float
        Median of the concentration under the prior.
    rng : numpy.random.Generator
        Source of randomness: first the cell of every draw, then its place in the cell.
    size : int
        Number of draws.

    Returns
    -------
    prob, concentration : ndarray
        Shape (size,).
    """
    from scipy.special import expit

    posterior = GridPosterior(count, n, prior, scale)
    error, share = posterior.box()
    mass = np.exp(posterior.log_density(error, share)).ravel()
    row, column = np.divmod(choose(mass, rng.random(size)), share.size)
    moved = rng.random((2, size)) - 0.5
    shares = share[column] + moved[1] * (share[1] - share[0])
    errors = error[row] + moved[0] * (error[1] - error[0])
    mean, concentration = posterior.parameters(errors, shares)
    return np.clip(expit(mean), LEAST, MOST), concentration


@dataclass(frozen=True, eq=False)
class GridPosterior:
    """Posterior of a beta-binomial distribution in coordinates in which it is compact.

    Parameters
    ----------
    count, n, prior, scale
        As for `beta_binomial_draws`.
    """

    count: Array
    n: Array
    prior: tuple[float, float]
    scale: float

    def parameters(self, error: Array, share: Array) -> tuple[Array, Array]:
        """Return the logit of the mean and the concentration; both coordinates broadcast."""
        centre, deviation = self._pooled()
        concentration = self.scale * np.exp(share)
        return centre + deviation * self._inflation(concentration) * error, concentration

    def log_density(self, error: Array, share: Array) -> Array:
        """Return the log density over a grid, (error, share), its largest value zero."""
        from scipy.special import expit, log_expit

        mean, concentration = self.parameters(error[:, None], share)
        # The Beta prior of the mean and the uniform one of the share, with all Jacobians.
        total = self.prior[0] * log_expit(mean) + self.prior[1] * log_expit(-mean)
        total = total + log_expit(share) + log_expit(-share)
        total = total + np.log(self._inflation(concentration))
        prob = np.clip(expit(mean), LEAST, MOST)
        cases, times = np.unique(np.stack([self.count, self.n]), axis=1, return_counts=True)
        for (positives, entries), often in zip(cases.T, times, strict=True):
            mass = beta_binomial_log_mass(positives, entries, prob, concentration)
            total = total + often * mass
        return np.asarray(total - total.max())

    def box(self) -> tuple[Array, Array]:
        """Return both axes of the grid, closed in on what has a density above exp(-DEPTH).

        Errors are first searched at all orders of size alike.
        """
        reach = REACH / self._pooled()[1]
        away = 0.1 * np.sinh(np.linspace(0.0, np.arcsinh(10.0 * reach), COARSE))
        axes = [
            np.concatenate([-away[:0:-1], away]),
            np.linspace(-REACH, REACH, 2 * COARSE - 1),
        ]
        for _ in range(ROUNDS):
            seen = self.log_density(*axes) > -DEPTH
            ends = []
            for axis, other in ((0, 1), (1, 0)):
                inside = np.flatnonzero(seen.any(axis=other))
                low, high = max(inside[0] - 1, 0), min(inside[-1] + 1, axes[axis].size - 1)
                ends.append((axes[axis][low], axes[axis][high]))
            axes = [np.linspace(*end, COARSE) for end in ends]
        return np.linspace(*ends[0], FINE), np.linspace(*ends[1], FINE)

    def _pooled(self) -> tuple[float, float]:
        """Return logit and its standard error of the share of positives of all databases."""
        positives = self.prior[0] + self.count.sum()
        negatives = self.prior[1] + (self.n - self.count).sum()
        return (
            float(np.log(positives / negatives)),
            float(np.sqrt(1.0 / positives + 1.0 / negatives)),
        )

    def _inflation(self, concentration: Array) -> Array:
        """Return by how much dependence multiplies the standard error."""
        n = float(self.n.mean())
        return np.asarray(np.sqrt((concentration + n) / (concentration + 1.0)))
