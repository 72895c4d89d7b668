"""The distributions with and without individuals along the direction that exposes each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.auditing.assembly.groups import (
    DENSITY_POINTS,
    DENSITY_REACH,
    densities,
    every_few,
)
from edp_bayes.auditing.resampled import Answers
from edp_bayes.coupling.curves.direction import most_exposing
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.responses.dependence import Dependence
    from edp_bayes.responses.joined import JointResponses

__all__ = ["Lines"]


@dataclass(frozen=True, eq=False)
class Lines:
    """The distributions with and without some individuals, along the direction that exposes each.

    A combination of the answers tells no more than the answers do, so that risks along it are lower
    bounds. It is measured in standard deviations of that combination of the responses.
    """

    pairs: list[tuple[Mixture, Mixture]]
    directions: Array
    coupling: JointCoupling
    kept: Index

    @classmethod
    def of(cls, coupling: JointCoupling, kept: Index, shape: tuple[int, int]) -> Lines:
        """Return those of some individuals, in chains of draws."""
        pairs, directions = [], []
        for person in kept:
            p, q = coupling.pair(int(person))
            direction = most_exposing(p, q, coupling.noise)
            directions.append(direction)
            pairs.append(
                tuple(_shaped(part.along(direction, coupling.noise), shape) for part in (p, q))
            )
        return cls(pairs, np.array(directions), coupling, kept)  # type: ignore[arg-type]

    @property
    def mixture(self) -> Mixture:
        """Any of the distributions: only its chains and draws are asked for."""
        return self.pairs[0][0]

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.coupling.n_draws

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return those with and without the individual in this place."""
        return self.pairs[individual]

    def answers(self, individual: int) -> Answers:
        """Return the answers with and without the individual in this place, along the direction."""
        direction, units = self.directions[individual], self.coupling.units
        entries, noise = self.coupling.responses.entries, self.coupling.noise
        own = entries.owner == self.kept[individual]
        whole = units.whiten(self.coupling.responses.response) @ direction
        without = whole.copy()
        without[entries.database[own]] -= units.shrink(entries.value[own]) @ direction
        variance = float(direction @ noise @ direction)
        return Answers(whole, without, GaussianNoise(np.sqrt(variance)) if variance else None)

    def in_all(self, responses: JointResponses, dependence: Dependence, kept: Index) -> Array:
        """Return unit directions in the units of all queries, shape (individual, query).

        Of those revealed exactly, the combination that reveals them.
        """
        raw = self.directions @ np.linalg.inv(self.coupling.units.factor)
        out = np.zeros((len(raw), responses.n_queries))
        out[:, list(dependence.kept)] = raw
        for one in dependence.revealed:
            out[kept == one.individual] = one.combination
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))

    def densities(self, names: NDArray[Any], shape: tuple[int, int]) -> xr.Dataset:
        """Return densities on a grid, of at most 500 draws, and where the responses lie on it."""
        z = self.coupling.units.whiten(self.coupling.responses.response)
        observed = self.directions @ z.T
        low, high = observed.min() - DENSITY_REACH, observed.max() + DENSITY_REACH
        for _, q in self.pairs:
            middle, spread = q.mean().mean(), np.sqrt(q.variance()).mean()
            low, high = min(low, middle - 2.0 * spread), max(high, middle + 2.0 * spread)
        x = np.linspace(low, high, DENSITY_POINTS)
        step = every_few(shape)
        logs = np.array([[part[:, ::step].logpdf(x) for part in pair] for pair in self.pairs])
        return densities(logs, x, names, shape).assign(
            response=(("individual", "database"), observed)
        )


def _shaped(mixture: Mixture, shape: tuple[int, int]) -> Mixture:
    parts = (mixture.weights, mixture.locations, mixture.scales)
    return Mixture(*(part.reshape(*shape, -1) for part in parts))
