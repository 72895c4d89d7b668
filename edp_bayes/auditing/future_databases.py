"""Databases that a fitted model expects to see: responses, and contributions given them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.coupling.contributions.posterior import ContributionDraws
    from edp_bayes.coupling.regression import RegressionCoupling

__all__ = ["FutureDatabases"]


@dataclass(frozen=True, eq=False)
class FutureDatabases:
    """Distribution of new databases under every draw of a mixture model of Gaussian kernels.

    A response y comes from the distribution p of a draw. Given y, the contributions of the
    individuals are drawn independently of each other, each from its distribution given y under the
    same draw, so that every pair (y, c_i) follows the fitted model: exactly where i is always
    present, otherwise up to the distribution of y, whose components have only the mean and variance
    of the pair's. Let component k of the distribution without i have mean m and variance s^2, and
    let the contribution to rest r be c = a + b r + tau e; given presence and component, y and c are
    then jointly normal with

        E y = a + (1 + b) m,   var y = (1 + b)^2 s^2 + tau^2,
        E c = a + b m,         cov(c, y) = b (1 + b) s^2 + tau^2,

    and var(c | y) = s^2 tau^2 / var y.

    Parameters
    ----------
    coupling : RegressionCoupling
        A fitted mixture model's distribution of the response and of every contribution.
    individuals : ndarray of int
        Shape (individual,): whose contributions are wanted.

    Raises
    ------
    InvalidInputError
        If the coupling is not that of a mixture model with Gaussian kernels.
    """

    coupling: RegressionCoupling
    individuals: NDArray[np.int64]

    def __init__(self, coupling: Coupling, individuals: NDArray[np.int64]) -> None:
        from edp_bayes.coupling.regression import RegressionCoupling

        if not isinstance(coupling, RegressionCoupling) or coupling.mixture.kernel != "gaussian":
            raise InvalidInputError(
                "new databases are simulated from mixture models with Gaussian kernels, found "
                f"{type(coupling).__name__} with {coupling.mixture.kernel} kernels; use "
                "DirichletProcessMixture()"
            )
        object.__setattr__(self, "coupling", coupling)
        object.__setattr__(self, "individuals", individuals)

    def sample(self, draw: int, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return responses (size,) and contributions (size, individual) under one draw.

        Parameters
        ----------
        draw : int
            Which posterior draw, all chains together.
        size : int
            Number of databases.
        rng : numpy.random.Generator
            Source of randomness: components and responses first, then each individual in turn.
        """
        base = self._base(draw)
        chosen = rng.choice(base.shape[1], size, p=base[0] / base[0].sum())
        y = base[1, chosen] + base[2, chosen] * rng.standard_normal(size)
        columns = [self._given(y, base, draw, i, rng) for i in range(self.individuals.size)]
        return y, np.stack(columns, axis=1)

    def _base(self, draw: int) -> Array:
        """Weights, locations and scales of p, shape (3, component)."""
        p = self.coupling.mixture
        parts = (p.weights, p.locations, p.scales)
        return np.stack([part.reshape(-1, part.shape[-1])[draw] for part in parts])

    def _given(
        self, y: Array, base: Array, draw: int, column: int, rng: np.random.Generator
    ) -> Array:
        """Return contributions of one individual given the responses."""
        from edp_bayes.coupling.curves.one_answer import LARGEST_SHARE, pair_components

        distribution = self._distributions
        rho = distribution.presence[draw, column]
        a, b, tau = (
            part[draw : draw + 1, column]
            for part in (distribution.intercept, distribution.slope, distribution.spread)
        )
        present, without = pair_components(base[None], rho[None], a, b, tau, unit=1.0)[0]
        with np.errstate(divide="ignore"):
            most = LARGEST_SHARE * base[2] ** 2 / rho
        explained = np.minimum(tau**2, most)
        log_mass = np.stack(
            [
                _log_mass(base[0] * (1.0 - rho), without, y),
                _log_mass(base[0] * rho, present, y),
            ]
        )
        here, k = _choose(log_mass, rng)
        rest = without[1, k] ** 2
        slope = (b * (1.0 + b) * rest + explained[k]) / present[1, k] ** 2
        middle = a + b * without[0, k] + slope * (y - present[0, k])
        spread = np.sqrt(rest * explained[k]) / present[1, k]
        contribution = middle + spread * rng.standard_normal(y.size)
        return np.where(here == 1, contribution, 0.0)

    @cached_property
    def _distributions(self) -> ContributionDraws:
        return self.coupling.contributions(self.individuals)


def _log_mass(weights: Array, distribution: Array, y: Array) -> Array:
    """Log of weight times normal density, up to a constant, shape (component, response)."""
    location, scale = distribution[:, :, None]
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)[:, None]
    return np.asarray(log_weights - np.log(scale) - 0.5 * ((y - location) / scale) ** 2)


def _choose(log_mass: Array, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Draw presence and component of every response; log_mass (presence, component, response)."""
    present, components, size = log_mass.shape
    flat = log_mass.reshape(present * components, size)
    mass = np.cumsum(np.exp(flat - flat.max(axis=0)), axis=0)
    chosen = (mass < rng.random(size) * mass[-1]).sum(axis=0)
    return tuple(np.asarray(part) for part in np.divmod(chosen, components))
