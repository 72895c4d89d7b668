"""p_i from the mixture p: each component loses the contribution, given that component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import FLOOR, draw_count, pair_curves
from edp_bayes.coupling.contributions.posterior import (
    ContributionDraws,
    ContributionPosterior,
    ContributionSource,
)
from edp_bayes.coupling.pilots import LEAST, SHARE, largest_of_pilots
from edp_bayes.distributions.mixtures import Mixture, flat_draws
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.contributions.presence import PresencePosterior
    from edp_bayes.responses.responses import Responses

__all__ = ["Centred", "RegressionCoupling"]

PILOTS = 64  # whose risks say how large the largest is at least


class Centred(NamedTuple):
    """The mixture and contributions of some individuals, as distances from a common location.

    Attributes
    ----------
    base : ndarray
        Shape (draw, 3, component): weights, locations less the centre, and scales.
    moves : ContributionDraws
        How the individuals contribute to answers less the centre.
    centre : ndarray
        Shape (draw,).
    """

    base: Array
    moves: ContributionDraws
    centre: Array


@dataclass(frozen=True, eq=False)
class RegressionCoupling:
    """Each component loses the individual's contribution, given that component.

    The contribution is a + b rest + tau e with probability rho and 0 otherwise (see
    `edp_bayes.coupling.contributions.posterior`), where rho may be another one in each component
    (see `edp_bayes.coupling.contributions.presence`). The distribution without i has one component
    for each of p, with location m_k and variance s_k^2 such that adding the contribution back gives
    the mean and the variance of component k; so p is, to second order in the contribution, the same
    for every individual. For an individual who is always present it is exactly the same.

    Where the distribution without an individual is known itself, because they make up most of the
    variance (see `edp_bayes.coupling.contributions.dominance`), p is that distribution with the
    contribution added to every component.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component), without the known noise.
    posterior : ContributionSource
        Distribution of every individual's contributions.
    presence : PresencePosterior, optional
        Presence by component; the same in all of them if not given.
    noise : GaussianNoise or LaplaceNoise, optional
        Known noise of the release, convolved exactly.
    without : mapping of int to Mixture
        The distribution without some individuals, by position; draws as those of the mixture.
    floor : ndarray, optional
        Shape (draw, epsilon): curves at these epsilons may be upper bounds, not above it, in the
        place of risks that are not above it either, see `bounded`.
    by_cells : bool
        Whether the floor is about as high as the largest risk, so that bounds must be tight.
    reduced : ndarray of bool, optional
        Shape (m,): whose contributions were not collected. Their curves are upper bounds, whatever
        their presence in each component, see `edp_bayes.coupling.curves.reduced`; they have no
        pair.
    """

    mixture: Mixture
    posterior: ContributionSource
    presence: PresencePosterior | None = None
    noise: GaussianNoise | LaplaceNoise | None = None
    without: Mapping[int, Mixture] = field(default_factory=dict)
    floor: Array | None = None
    reduced: NDArray[np.bool_] | None = None
    by_cells: bool = False

    @classmethod
    def fit(
        cls,
        mixture: Mixture,
        responses: Responses,
        seed: int,
        without: Mapping[int, Mixture] | None = None,
        *,
        source: ContributionSource | None = None,
    ) -> RegressionCoupling:
        """Condition the contribution distributions on the data; pair them with the draws of p.

        Where a source of contributions is given, these are of the same draws as the mixture.
        """
        from edp_bayes.coupling.contributions.presence import PresencePosterior

        reduced = None if responses.remainder is None else responses.reduced
        if reduced is not None:
            _refuse_unbounded(mixture, reduced, without or {})
        return cls(
            mixture,
            source or ContributionPosterior.fit(responses, seed),
            None if source is not None else PresencePosterior(mixture, responses, seed),
            responses.noise,
            without or {},
            reduced=reduced,
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

    def bounded(self, epsilon: Array, share: float = SHARE) -> RegressionCoupling:
        """Return the coupling of a large population, where few matter and all others are bounded.

        Its curves at these epsilons are upper bounds, of closed form, where these are below a share
        of the largest risk, or below 1e-9, at every epsilon of a draw. All other curves are as they
        were. How large the largest risk is at least, some individuals say, who contribute most on
        average.
        """
        if self.pilots.size == 0:
            return self
        largest = largest_of_pilots(replace(self, floor=None), epsilon)
        return self.with_floor(share * largest, by_cells=share > SHARE)

    def with_floor(self, floor: Array, *, by_cells: bool = False) -> RegressionCoupling:
        """Return the coupling whose curves may be upper bounds where they are not above a floor.

        By cells bounds are tighter and take longer, see `edp_bayes.coupling.curves.bounds`.
        """
        return replace(self, floor=np.maximum(floor, LEAST), by_cells=by_cells)

    def without_integrals(
        self, individuals: Index, epsilon: Array, drawn: Centred
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return curves that need no integral of their own, and whose these are.

        They are exact of distributions that are close, and upper bounds where these are not above
        the floor. Shapes (draw, individual, epsilon) and (draw, individual); zeros elsewhere.
        `drawn` is what `centred` returns of these individuals.
        """
        out = np.zeros((self.n_draws, len(individuals), epsilon.shape[-1]))
        known = np.isin(individuals, list(self.without))
        base, contributions, _ = drawn
        done = self._without_integrals(base, contributions, epsilon, out)
        out[:, known], done[:, known] = 0.0, False
        return out, done

    @property
    def pilots(self) -> Index:
        """Who contributes most on average, the most first.

        Nobody where curves have no bounds of closed form.
        """
        if self.mixture.kernel != "gaussian" or isinstance(self.noise, LaplaceNoise):
            return np.zeros(0, dtype=np.int64)
        most = -np.abs(self.posterior.expected)
        if self.reduced is not None:
            most[self.reduced] = np.inf
        return np.argsort(most, kind="stable")[: min(PILOTS, np.isfinite(most).sum())]

    def contributions(self, individuals: Index, *, by_component: bool = True) -> ContributionDraws:
        """Return how some individuals contribute, their presence by component."""
        if by_component and self.reduced is not None and self.reduced[individuals].any():
            raise InvalidInputError(
                "the contributions of these individuals were not collected, and their risk is only "
                "bounded: collect those of more individuals"
            )
        components = self.mixture.weights.shape[-1] if by_component else 1
        contributions = self.posterior.draw(individuals, self.n_draws, components)
        if self.presence is None or not by_component:
            return contributions
        return contributions._replace(presence=self.presence.draw(individuals, contributions))

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (chain * draw, individual, epsilon), in `out` if given.

        Epsilon may be that of every draw, shape (chain * draw, epsilon).
        """
        levels = epsilon.shape[-1]
        if out is None:
            out = np.empty((self.n_draws, len(individuals), levels))
        if self.reduced is not None and self.reduced[individuals].any():
            return self._some_reduced(individuals, epsilon, out)
        known = np.isin(individuals, list(self.without))
        if not known.any():
            self._from_mixture(self.contributions(individuals), epsilon, out)
        else:
            others = np.empty((self.n_draws, int((~known).sum()), levels))
            self._from_mixture(self.contributions(individuals[~known]), epsilon, others)
            out[:, ~known] = others
            for column in np.flatnonzero(known):
                p, q = self._known_pair(int(individuals[column]))
                out[:, column] = self._integrals(p, q, epsilon)
        out[out <= FLOOR] = 0.0
        return out

    def _some_reduced(self, individuals: Index, epsilon: Array, out: Array) -> Array:
        """Fill in curves of individuals some of whom are bounded, whatever their presence."""
        from edp_bayes.coupling.curves.reduced import reduced_curves

        assert self.reduced is not None
        some = self.reduced[individuals]
        if not some.all():
            out[:, ~some] = self.curves(individuals[~some], epsilon)
        # Any noise makes risks smaller; that of Laplace is left out.
        gaussian = isinstance(self.noise, GaussianNoise)
        found = np.empty((self.n_draws, int(some.sum()), epsilon.shape[-1]))
        base, contributions, _ = _centred(
            self._base, self.contributions(individuals[some], by_component=False)
        )
        reduced_curves(
            base,
            self._active(),
            contributions,
            epsilon,
            noise_scale=self.noise.scale if gaussian and self.noise is not None else 0.0,
            out=found,
        )
        out[:, some] = found
        return out

    def _active(self) -> NDArray[np.bool_]:
        """Return in which components presence may be another than on the whole."""
        if self.presence is None:
            return np.zeros((self.n_draws, self.mixture.weights.shape[-1]), dtype=bool)
        return self.presence.active

    def new_individual(self, epsilon: Array) -> Array:
        """Return delta_i(eps) of an individual unlike all in the sample, shape (draw, epsilon)."""
        contributions = self.posterior.draw_new(self.n_draws, self.mixture.weights.shape[-1])
        out = np.empty((self.n_draws, 1, epsilon.size))
        self._from_mixture(contributions, epsilon, out)
        return out[:, 0]

    def _from_mixture(self, contributions: ContributionDraws, epsilon: Array, out: Array) -> None:
        """Fill in the curves of those whose p_i is the mixture less their contributions."""
        out[...] = 0.0
        base, contributions, _ = _centred(self._base, contributions)
        done = self._without_integrals(base, contributions, epsilon, out)
        rows, columns = np.nonzero(~done)
        if rows.size:
            out[rows, columns] = self._integrals(
                *self._components(base, contributions, rows, columns),
                epsilon if epsilon.ndim == 1 else epsilon[rows],
            )

    def _without_integrals(
        self, base: Array, contributions: ContributionDraws, epsilon: Array, out: Array
    ) -> NDArray[np.bool_]:
        """Fill in curves that need no integral of their own, and return whose these are."""
        from edp_bayes.coupling.curves.bounds import bound_curves
        from edp_bayes.coupling.curves.one_answer import coupled_curves

        done = np.zeros(contributions.intercept.shape, dtype=bool)
        if self.mixture.kernel != "gaussian" or isinstance(self.noise, LaplaceNoise):
            return done
        noise_scale = 0.0 if self.noise is None else self.noise.scale
        if self.floor is not None:
            bound_curves(
                base, contributions, epsilon, noise_scale=noise_scale, floor=self.floor,
                by_cells=self.by_cells, out=out, done=done,
            )  # fmt: skip
        coupled_curves(
            base, contributions, epsilon, noise_scale=noise_scale, floor=FLOOR, out=out, close=done
        )
        return done

    def _integrals(self, p: Array, q: Array, epsilon: Array) -> Array:
        """Return the curves of pairs of components (pair, component, 3)."""
        kernel = self.mixture.kernel
        curves = pair_curves(p, q[:, None], epsilon, kernel=kernel, noise=self.noise, floor=FLOOR)
        return np.asarray(curves[:, 0])

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities with and without one individual, shape (chain, draw, component)."""
        lead = self.mixture.weights.shape[:-1]
        if individual in self.without:
            parts = self._known_pair(individual)
        else:
            contributions = self.contributions(np.array([individual]))
            rows = np.arange(self.n_draws)
            parts = self._components(self._base, contributions, rows, np.zeros_like(rows))
        p, q = (self._mixture(part.reshape(*lead, *part.shape[1:])) for part in parts)
        return p, q

    def component_pairs(
        self, individuals: Index, rows: Index, columns: Index, drawn: Centred | None = None
    ) -> tuple[Array, Array, Array]:
        """Return components (pair, component, 3) of p and p_i less a location, and that location.

        Of pairs of a draw and an individual whose distribution without them is not known itself.
        What was drawn of all these individuals need not be drawn again.
        """
        if drawn is None:
            people, columns = np.unique(columns, return_inverse=True)
            drawn = self.centred(individuals[people])
        return *self._components(drawn.base, drawn.moves, rows, columns), drawn.centre[rows]

    def centred(self, individuals: Index) -> Centred:
        """Return components and contributions less a location of each draw, and that location."""
        return _centred(self._base, self.contributions(individuals))

    def _known_pair(self, individual: int) -> tuple[Array, Array]:
        """Return components (draw, component, [w, mu, s]) of p and of p_i, which is known."""
        base = flat_draws(self.without[individual])
        rho, a, b, spread = self.contributions(np.array([individual]), by_component=False)
        unit = 1.0 if self.mixture.kernel == "gaussian" else 2.0
        weights, mu, s = np.moveaxis(base, 1, 0)
        without = np.stack([mu, s], axis=-1)
        present = np.stack(
            [mu + a + b * mu, np.sqrt(((1.0 + b) * s) ** 2 + spread**2 / unit)], axis=-1
        )
        return _joined(weights, rho[:, 0], present, without)

    def _mixture(self, components: Array) -> Mixture:
        parts = np.moveaxis(components, -1, 0)
        return Mixture(*parts, kernel=self.mixture.kernel, noise=self.noise)

    @cached_property
    def _base(self) -> Array:
        return flat_draws(self.mixture)

    def _components(
        self, base: Array, contributions: ContributionDraws, rows: Index, columns: Index
    ) -> tuple[Array, Array]:
        """Return components (pair, component, [w, mu, s]) of p and of p_i.

        Every component of p is (1 - rho) of that of p_i and rho of that given presence: twice the
        components, unless everybody selected is always present.
        """
        from edp_bayes.coupling.curves.one_answer import pair_components

        base = base[rows]
        rho, a, b, spread = (part[rows, columns] for part in contributions)
        unit = 1.0 if self.mixture.kernel == "gaussian" else 2.0
        distributions = np.moveaxis(pair_components(base, rho, a, b, spread, unit=unit), 2, -1)
        present, without = distributions[:, 0], distributions[:, 1]
        return _joined(base[:, 0], rho, present, without)


def _refuse_unbounded(
    mixture: Mixture, reduced: NDArray[np.bool_], without: Mapping[int, Mixture]
) -> None:
    """Refuse where individuals whose contributions were not collected have no bound."""
    if mixture.kernel != "gaussian":
        raise InvalidInputError(
            "risks of individuals whose contributions were not collected are bounded with Gaussian "
            f"kernels alone, found {mixture.kernel!r}: take these, or collect all contributions"
        )
    if reduced[list(without)].any():
        raise InvalidInputError(
            "an individual who makes up most of the response's variance was not collected: collect "
            "the contributions of more individuals"
        )


def _centred(base: Array, contributions: ContributionDraws) -> Centred:
    """Return the same, with responses as distances from a location common to each draw, and it."""
    from edp_bayes.divergence.centring import common_location

    weights, locations, scales = np.moveaxis(base, 1, 0)
    centre = common_location(np.where(weights > 0.0, locations, np.nan))[:, None]
    moved = contributions.intercept + contributions.slope * centre
    centred = np.stack([weights, locations - centre, scales], axis=1)
    return Centred(centred, contributions._replace(intercept=moved), centre[:, 0])


def _joined(weights: Array, rho: Array, present: Array, without: Array) -> tuple[Array, Array]:
    """Return components (pair, component, [w, mu, s]) of p and of p_i, in the same order."""
    if (rho == 1.0).all():
        return _join(weights, present), _join(weights, without)
    both = np.concatenate([(1.0 - rho) * weights, rho * weights], axis=1)
    return (
        _join(both, np.concatenate([without, present], axis=1)),
        _join(both, np.concatenate([without, without], axis=1)),
    )


def _join(weights: Array, distributions: Array) -> Array:
    return np.concatenate([weights[..., None], distributions], axis=-1)
