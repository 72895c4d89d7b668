"""What every coupling gives: p and each p_i from one posterior draw, and the curves of a pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.utils.arrays import Array, Index

__all__ = ["FLOOR", "CoarserCoupling", "Coupling", "draw_count", "flat", "pair_curves"]

# Individual risks below this are not looked for; what is left out is bounded and reported.
FLOOR = 1e-12


class Coupling(Protocol):
    """The distributions without each individual, tied draw by draw to that of the response."""

    @property
    def mixture(self) -> Mixture:
        """Distribution of the response, shape (chain, draw, component), without known noise."""
        ...

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        ...

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        ...

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return the individuals whose risk may matter, and a bound on the sum of all others.

        The bound has the shape of epsilon.
        """
        ...

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given."""
        ...

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        ...


class CoarserCoupling(ABC):
    """A coupling of answers that tell less than those of a finer one: no risk is larger."""

    @property
    @abstractmethod
    def finer(self) -> Coupling:
        """The coupling whose risks bound these."""

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.finer.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return self.finer.n_draws

    @property
    def without(self) -> Mapping[int, Mixture]:
        """The finer distributions without some individuals that are known themselves."""
        return getattr(self.finer, "without", {})

    @property
    def reduced(self) -> NDArray[np.bool_] | None:
        """Whose curves are upper bounds, because contributions were not collected."""
        found: NDArray[np.bool_] | None = getattr(self.finer, "reduced", None)
        return found

    @property
    def floor(self) -> Array | None:
        """Where curves may be upper bounds, shape (draw, epsilon); None where they are exact."""
        found: Array | None = getattr(self.finer, "floor", None)
        return found

    def new_individual(self, epsilon: Array) -> Array:
        """Return the finer risk of an individual unlike all in the sample, which is never less."""
        new = getattr(self.finer, "new_individual", None)
        return np.zeros((self.n_draws, epsilon.size)) if new is None else np.asarray(new(epsilon))


def draw_count(mixture: Mixture) -> int:
    """Return the number of draws in the leading axes of a mixture."""
    return int(np.prod(mixture.weights.shape[:-1]))


def flat(array: Array) -> Array:
    """Join chains and draws."""
    return np.ascontiguousarray(array.reshape(-1, array.shape[-1]))


def pair_curves(
    p: Array,
    q: Array,
    epsilon: Array,
    *,
    kernel: str,
    noise: GaussianNoise | LaplaceNoise | None,
    floor: float = 0.0,
) -> Array:
    """Return max of both integrals; p (draw, K, 3), q (draw, individual, L, 3).

    Epsilon may be that of every draw, shape (draw, epsilon).
    """
    from edp_bayes.divergence.any_pair import curves as any_pair
    from edp_bayes.divergence.integral import component_rows

    left, right = (
        component_rows(part[..., 0], part[..., 1], part[..., 2], kernel, noise) for part in (p, q)
    )
    return any_pair.curves(left, right, epsilon, floor=floor)
