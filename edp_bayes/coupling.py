"""p and every p_i from one posterior draw: the law of the response without each individual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from edp_bayes.contributions import ContributionDraws, ContributionPosterior
from edp_bayes.mixtures import Mixture, flat_draws
from edp_bayes.noise.laws import GaussianNoise, LaplaceNoise

if TYPE_CHECKING:
    from edp_bayes.presence import PresencePosterior
    from edp_bayes.responses import Responses

__all__ = ["Coupling", "RegressionCoupling", "ShiftCoupling"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Individual risks below this are not looked for; what is left out is bounded and reported.
FLOOR = 1e-12


class Coupling(Protocol):
    """The laws without each individual, tied draw by draw to the law of the response."""

    @property
    def mixture(self) -> Mixture:
        """Law of the response, shape (chain, draw, component), without known noise."""
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
    responses: Responses

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.responses.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return draw_count(self.mixture)

    @property
    def _shared_scale(self) -> bool:
        scales = self.mixture.scales
        return bool((scales == scales[..., :1]).all())

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return the individuals who move a component by more than eps of its scale.

        With Laplace kernels all others have risk zero exactly; with Gaussian kernels the bound by
        joint convexity is evaluated at the largest move and the smallest scale.
        """
        from edp_bayes.divergence.screening import gaussian_shift

        largest = self.responses.largest_contribution / self.mixture.scales.min()
        if self.mixture.kernel == "laplace":
            return np.flatnonzero(largest > epsilon[0]), np.zeros_like(epsilon)
        bound = np.asarray(gaussian_shift(largest[:, None], epsilon))
        kept = bound[:, 0] > FLOOR
        return np.flatnonzero(kept), bound[~kept].sum(axis=0)

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given."""
        part = self.responses.contribution[:, individuals]
        weights = _flat(self.mixture.weights)
        scales = _flat(self.mixture.scales)
        exact = self.mixture.kernel == "laplace" and self.responses.noise is None
        if exact and self._shared_scale:
            from edp_bayes.divergence.laplace import shift_curves

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
        y = self.responses.response
        curves = _curves(
            _stack(weights, y, scales),
            _stack(weights[:, None], y - part.toarray().T, scales[:, None]),
            epsilon,
            kernel=self.mixture.kernel,
            noise=self.responses.noise,
        )
        return curves if out is None else _copied(curves, out)

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        moved = self.responses.contribution[:, [individual]].toarray()[:, 0]
        p, noise = self.mixture, self.responses.noise
        return (
            Mixture(p.weights, p.locations, p.scales, kernel=p.kernel, noise=noise),
            Mixture(p.weights, p.locations - moved, p.scales, kernel=p.kernel, noise=noise),
        )


@dataclass(frozen=True, eq=False)
class RegressionCoupling:
    """Each component loses the individual's contribution, given that component.

    The contribution is a + b rest + tau e with probability rho and 0 otherwise (see
    `edp_bayes.contributions`), where rho may be another one in each component (see
    `edp_bayes.presence`). The law without i has one component for each of p, with location
    m_k and variance s_k^2 such that adding the contribution back gives the mean and the variance
    of component k; so p is, to second order in the contribution, the same for every individual.
    For an individual who is always present it is exactly the same.

    Where the law without an individual is known itself, because they make up most of the variance
    (see `edp_bayes.dominance`), p is that law with the contribution added to every component.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component), without the known noise.
    posterior : ContributionPosterior
        Law of every individual's contributions.
    presence : PresencePosterior, optional
        Presence by component; the same in all of them if not given.
    noise : GaussianNoise or LaplaceNoise, optional
        Known noise of the release, convolved exactly.
    without : mapping of int to Mixture
        The law without some individuals, by position; draws as those of the mixture.
    """

    mixture: Mixture
    posterior: ContributionPosterior
    presence: PresencePosterior | None = None
    noise: GaussianNoise | LaplaceNoise | None = None
    without: Mapping[int, Mixture] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        mixture: Mixture,
        responses: Responses,
        seed: int,
        without: Mapping[int, Mixture] | None = None,
    ) -> RegressionCoupling:
        """Condition the contribution laws on the data; pair them with the draws of p."""
        from edp_bayes.presence import PresencePosterior

        return cls(
            mixture,
            ContributionPosterior.fit(responses, seed),
            PresencePosterior(mixture, responses, seed),
            responses.noise,
            without or {},
        )

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return int(self.posterior.centre.size)

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return draw_count(self.mixture)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return every individual: each draw is screened on its own in `curves`.

        What is left out there is below 1e-12 for each individual and epsilon.
        """
        everybody = np.arange(self.n_individuals)
        return everybody, np.full_like(epsilon, FLOOR * self.n_individuals)

    def laws(self, individuals: Index, *, by_component: bool = True) -> ContributionDraws:
        """Return the contribution laws of some individuals, their presence by component."""
        law = self.posterior.draw(individuals, self.n_draws)
        if not by_component:
            return law
        if self.presence is None:
            components = self.mixture.weights.shape[-1]
            return replace(law, presence=np.repeat(law.presence[..., None], components, axis=2))
        return replace(law, presence=self.presence.draw(individuals, law))

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given."""
        if out is None:
            out = np.empty((self.n_draws, len(individuals), epsilon.size))
        known = np.isin(individuals, list(self.without))
        if not known.any():
            self._from_mixture(self.laws(individuals), epsilon, out)
        else:
            others = np.empty((self.n_draws, int((~known).sum()), epsilon.size))
            self._from_mixture(self.laws(individuals[~known]), epsilon, others)
            out[:, ~known] = others
            for column in np.flatnonzero(known):
                p, q = self._known_pair(int(individuals[column]))
                out[:, column] = self._integrals(p, q, epsilon)
        out[out <= FLOOR] = 0.0
        return out

    def new_individual(self, epsilon: Array) -> Array:
        """Return delta_i(eps) of an individual unlike all in the sample, shape (draw, epsilon)."""
        law = self.posterior.draw_new(self.n_draws)
        components = self.mixture.weights.shape[-1]
        law = replace(law, presence=np.repeat(law.presence[..., None], components, axis=2))
        out = np.empty((self.n_draws, 1, epsilon.size))
        self._from_mixture(law, epsilon, out)
        return out[:, 0]

    def _from_mixture(self, law: ContributionDraws, epsilon: Array, out: Array) -> None:
        """Fill in the curves of those whose law without them is that of the mixture, less them."""
        out[...] = 0.0
        done = np.zeros(law.intercept.shape, dtype=bool)
        if self.mixture.kernel == "gaussian" and not isinstance(self.noise, LaplaceNoise):
            from edp_bayes.coupled_curves import coupled_curves

            noise_scale = 0.0 if self.noise is None else self.noise.scale
            coupled_curves(
                self._base, law, epsilon, noise_scale=noise_scale, floor=FLOOR, out=out, close=done
            )
        rows, columns = np.nonzero(~done)
        if rows.size:
            out[rows, columns] = self._integrals(*self._components(law, rows, columns), epsilon)

    def _integrals(self, p: Array, q: Array, epsilon: Array) -> Array:
        """Return the curves of pairs of components (pair, component, 3)."""
        kernel = self.mixture.kernel
        curves = _curves(p, q[:, None], epsilon, kernel=kernel, noise=self.noise, floor=FLOOR)
        return np.asarray(curves[:, 0])

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        lead = self.mixture.weights.shape[:-1]
        if individual in self.without:
            parts = self._known_pair(individual)
        else:
            law = self.laws(np.array([individual]))
            rows = np.arange(self.n_draws)
            parts = self._components(law, rows, np.zeros_like(rows))
        p, q = (self._mixture(part.reshape(*lead, *part.shape[1:])) for part in parts)
        return p, q

    def _known_pair(self, individual: int) -> tuple[Array, Array]:
        """Return components (draw, component, [w, mu, s]) of p and of p_i, which is known."""
        base = flat_draws(self.without[individual])
        law = self.laws(np.array([individual]), by_component=False)
        rho, a, b, spread = law.presence, law.intercept, law.slope, law.spread
        unit = 1.0 if self.mixture.kernel == "gaussian" else 2.0
        weights, mu, s = np.moveaxis(base, 1, 0)
        without = np.stack([mu, s], axis=-1)
        present = np.stack(
            [mu + a + b * mu, np.sqrt(((1.0 + b) * s) ** 2 + spread**2 / unit)], axis=-1
        )
        return _joined(weights, rho, present, without)

    def _mixture(self, components: Array) -> Mixture:
        parts = np.moveaxis(components, -1, 0)
        return Mixture(*parts, kernel=self.mixture.kernel, noise=self.noise)

    @cached_property
    def _base(self) -> Array:
        return flat_draws(self.mixture)

    def _components(
        self, law: ContributionDraws, rows: Index, columns: Index
    ) -> tuple[Array, Array]:
        """Return components (pair, component, [w, mu, s]) of p and of p_i.

        Every component of p is (1 - rho) of that of p_i and rho of that given presence: twice the
        components, unless everybody selected is always present.
        """
        from edp_bayes.coupled_curves import component_laws

        base = self._base[rows]
        rho, a, b, spread = (
            part[rows, columns] for part in (law.presence, law.intercept, law.slope, law.spread)
        )
        unit = 1.0 if self.mixture.kernel == "gaussian" else 2.0
        laws = np.moveaxis(component_laws(base, rho, a, b, spread, unit=unit), 2, -1)
        present, without = laws[:, 0], laws[:, 1]
        return _joined(base[:, 0], rho, present, without)


def _joined(weights: Array, rho: Array, present: Array, without: Array) -> tuple[Array, Array]:
    """Return components (pair, component, [w, mu, s]) of p and of p_i, in the same order."""
    if (rho == 1.0).all():
        return _join(weights, present), _join(weights, without)
    both = np.concatenate([(1.0 - rho) * weights, rho * weights], axis=1)
    return (
        _join(both, np.concatenate([without, present], axis=1)),
        _join(both, np.concatenate([without, without], axis=1)),
    )


def _join(weights: Array, laws: Array) -> Array:
    return np.concatenate([weights[..., None], laws], axis=-1)


def _curves(
    p: Array,
    q: Array,
    epsilon: Array,
    *,
    kernel: str,
    noise: GaussianNoise | LaplaceNoise | None,
    floor: float = 0.0,
) -> Array:
    """Return max of both integrals; p (draw, K, 3), q (draw, individual, L, 3)."""
    from edp_bayes.divergence import smooth
    from edp_bayes.divergence.integral import component_rows

    left, right = (
        component_rows(part[..., 0], part[..., 1], part[..., 2], kernel, noise) for part in (p, q)
    )
    return smooth.curves(left, right, epsilon, floor=floor)


def _copied(values: Array, out: Array) -> Array:
    out[...] = values
    return out


def draw_count(mixture: Mixture) -> int:
    """Return the number of draws in the leading axes of a mixture."""
    return int(np.prod(mixture.weights.shape[:-1]))


def _stack(*parts: Array) -> Array:
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def _flat(array: Array) -> Array:
    """Join chains and draws."""
    return np.ascontiguousarray(array.reshape(-1, array.shape[-1]))
