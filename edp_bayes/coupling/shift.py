"""Every database keeps its weight and moves by what the individual contributed to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import FLOOR, draw_count, flat, pair_curves
from edp_bayes.coupling.contributions.spells import responses_in_question
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.views.some_individuals import Contributions
    from edp_bayes.responses.responses import Responses

__all__ = ["ShiftCoupling"]


@dataclass(frozen=True, eq=False)
class ShiftCoupling:
    """Every database keeps its weight and moves by the individual's contribution to it.

    The coupling of the Bayesian bootstrap: p = sum_j w_j k(x - y_j), p_i = sum_j w_j k(x - y_ij).

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, n * samples), one component for each response, without the known noise.
    responses : Responses
        Contributions, sparse.
    """

    mixture: Mixture
    responses: Responses | Contributions

    @classmethod
    def fit(cls, mixture: Mixture, responses: Responses) -> ShiftCoupling:
        """Take individuals to be present as often as in the database in question."""
        return cls(mixture, responses_in_question(responses))

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.responses.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return draw_count(self.mixture)

    @property
    def shared_scale(self) -> bool:
        """Whether all kernels of a draw have one scale."""
        scales = self.mixture.scales
        return bool((scales == scales[..., :1]).all())

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return the individuals who move a component by more than eps of its scale.

        With Laplace kernels all others have risk zero exactly; with Gaussian kernels the bound by
        joint convexity is evaluated at the largest move and the smallest scale; of those who stay,
        risks below 1e-12 are zero.
        """
        from edp_bayes.divergence.shifts import gaussian_shift

        largest = self.responses.largest_contribution / self.mixture.scales.min()
        if self.mixture.kernel == "laplace":
            return np.flatnonzero(largest > epsilon[0]), np.zeros_like(epsilon)
        bound = np.asarray(gaussian_shift(largest[:, None], epsilon))
        kept = bound[:, 0] > FLOOR
        return np.flatnonzero(kept), bound[~kept].sum(axis=0) + FLOOR * kept.sum()

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given."""
        if self.responses.reduced[individuals].any():
            return self._some_reduced(individuals, epsilon, out)
        part = self.responses.collected[:, individuals]
        weights = flat(self.mixture.weights)
        scales = flat(self.mixture.scales)
        exact = self.mixture.kernel == "laplace" and self.responses.noise is None
        if exact and self.shared_scale:
            from edp_bayes.divergence.one_scale.curves import shift_curves

            return shift_curves(
                weights,
                self.responses.response,
                np.ascontiguousarray(scales[:, 0]),
                part.indptr.astype(np.int64),
                part.indices.astype(np.int64),
                part.data,
                epsilon,
                out=out,
            )
        from edp_bayes.divergence.centring import common_location

        y = self.responses.response - common_location(self.responses.response)
        curves = pair_curves(
            _stack(weights, y, scales),
            _stack(weights[:, None], y - part.toarray().T, scales[:, None]),
            epsilon,
            kernel=self.mixture.kernel,
            noise=self.responses.noise,
            floor=FLOOR if self.mixture.kernel == "gaussian" else 0.0,
        )
        return curves if out is None else _copied(curves, out)

    @property
    def reduced(self) -> NDArray[np.bool_] | None:
        """Whose curves are upper bounds, because contributions were not collected."""
        return self.responses.reduced if self.responses.reduced.any() else None

    def _some_reduced(self, individuals: Index, epsilon: Array, out: Array | None) -> Array:
        """Return curves of individuals some of whom are bounded by joint convexity.

        The bound is that of their largest contribution in the heaviest databases, as many as they
        are present in, by the smallest scale.
        """
        from edp_bayes.divergence.shifts import gaussian_shift

        if out is None:
            out = np.empty((self.n_draws, len(individuals), epsilon.size))
        some = self.responses.reduced[individuals]
        if not some.all():
            out[:, ~some] = self.curves(individuals[~some], epsilon)
        people = individuals[some]
        weights, smallest = flat(self.mixture.weights), flat(self.mixture.scales).min(axis=1)
        heaviest = np.cumsum(-np.sort(-weights, axis=1), axis=1)
        rows = self.responses.presence[people] * self.responses.samples
        moved = self.responses.largest_contribution[people]
        columns = np.flatnonzero(some)
        for draw, scale in enumerate(smallest):
            move = (moved / scale)[:, None]
            if self.mixture.kernel == "laplace":
                risk = np.maximum(-np.expm1(0.5 * (epsilon - move)), 0.0)
            else:
                risk = np.asarray(gaussian_shift(move, epsilon))
            share = np.where(rows > 0, heaviest[draw, np.maximum(rows, 1) - 1], 0.0)
            out[draw, columns] = np.minimum(share, 1.0)[:, None] * risk
        return out

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        if self.responses.reduced[individual]:
            raise InvalidInputError(
                "the contributions of this individual were not collected, and their risk is only "
                "bounded: collect those of more individuals"
            )
        moved = self.responses.collected[:, [individual]].toarray()[:, 0]
        p, noise = self.mixture, self.responses.noise
        return (
            Mixture(p.weights, p.locations, p.scales, kernel=p.kernel, noise=noise),
            Mixture(p.weights, p.locations - moved, p.scales, kernel=p.kernel, noise=noise),
        )


def _copied(values: Array, out: Array) -> Array:
    out[...] = values
    return out


def _stack(*parts: Array) -> Array:
    return np.stack(np.broadcast_arrays(*parts), axis=-1)
