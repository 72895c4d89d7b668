"""Risks under a test chosen once, for the lower ends of bands.

delta_i is the best that any test between the two distributions can do. Every wiggle of a drawn
density is something for the best test to use, and never something lost: where the true densities
are nearly flat, the risk of nearly every draw is above the true one. A test that is chosen once,
for the posterior means of both densities, cannot follow the wiggles of single draws, and no test
does better than the best. So the draws of what it reaches are draws of a lower bound of delta_i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
    from edp_bayes.distributions.published import Published

__all__ = [
    "Cells",
    "LowerBounds",
    "MeanMasses",
    "Pairs",
    "cell_masses",
    "lower_bounds",
    "mean_masses",
    "noisy",
    "same",
    "tested_risks",
]

MOST_DRAWS = 500
ROUNDING = 1e-9  # relative, by which a risk may differ from itself, evaluated anew
CELLS = 80
# Where cells may end: so many scales from the locations of all components of at least this weight.
REACH, PLACES = 5.0, 41
VISIBLE = 0.01
MOST_COMPONENTS = 500  # of all draws, that decide where cells end


class Pairs(Protocol):
    """What is needed of a coupling: draws of the distributions with and without individuals."""

    @property
    def mixture(self) -> Mixture:
        """A distribution of all chains and draws."""
        ...

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        ...

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the distributions with and without one individual."""
        ...


@dataclass(frozen=True, eq=False)
class LowerBounds:
    """What tests that are chosen once reach in some of the draws.

    Attributes
    ----------
    step : int
        Every so many draws of a chain are taken.
    individual_delta : ndarray
        Shape (chain, draw, individual, epsilon): at most delta_i.
    delta, total_risk : ndarray
        Shape (chain, draw, epsilon): at most delta and delta*, with these individuals' part in
        them replaced.
    means : tuple of MeanMasses
        Shape (individual,): what tests were chosen by.
    """

    step: int
    individual_delta: Array
    delta: Array
    total_risk: Array
    means: tuple[MeanMasses, ...]


@dataclass(frozen=True, eq=False)
class MeanMasses:
    """Posterior means of the probabilities of cells, with and without an individual.

    Attributes
    ----------
    edges : ndarray
        Where cells of the answer end.
    noise : ndarray or None
        Shape (interval, cell): of a noisy published answer, the chance of each of its cells from
        each interval between the edges.
    masses : ndarray
        Shape (2, cell): with and without.
    """

    edges: Array
    noise: Array | None
    masses: Array


def lower_bounds(
    coupling: Pairs,
    individuals: Index,
    curves: Array,
    largest: Array,
    total: Array,
    epsilon: Array,
) -> LowerBounds:
    """Return lower bounds of delta_i, delta and delta* in at most 500 draws.

    Parameters
    ----------
    coupling : Coupling
        The distributions with and without each individual, in C chains of D draws.
    individuals : ndarray of int
        Shape (individual,): whose risks are replaced, the riskiest; the others keep theirs.
    curves : ndarray
        Shape (chain * draw, individual, epsilon): their delta_i.
    largest, total : ndarray
        Shape (chain * draw, epsilon): delta and delta* of everybody.
    epsilon : ndarray
        Shape (epsilon,).
    """
    best, everybody = _taken(coupling, curves), _taken(coupling, total)
    tested, means = tested_risks(coupling, individuals, curves, epsilon)
    # the product is the same with these individuals' factors exchanged
    with np.errstate(divide="ignore", invalid="ignore"):
        exchanged = (np.log1p(-tested) - np.log1p(-best)).sum(axis=2)
        survival = (1.0 - everybody) * np.exp(exchanged)
    top = _taken(coupling, largest)
    # the risk of another individual, and not of one of these but for rounding
    others = top > best.max(axis=2) * (1.0 + ROUNDING)
    return LowerBounds(
        _step(coupling),
        tested,
        np.where(others, top, tested.max(axis=2)),
        np.where(everybody < 1.0, np.maximum(1.0 - survival, 0.0), tested.max(axis=2)),
        means,
    )


def tested_risks(
    coupling: Pairs, individuals: Index, curves: Array, epsilon: Array
) -> tuple[Array, tuple[MeanMasses, ...]]:
    """Return what the test for the mean densities reaches, in at most 500 draws, and the means.

    The shape is (chain, draw, individual, epsilon), of every so many draws of each chain. It is
    never above the curves, delta_i of the same individuals in shape (chain * draw, individual,
    epsilon): no test does better than the best one, whatever rounding makes of either.
    """
    if isinstance(coupling, AtomCoupling):
        inner = coupling.density
        below = inner.curves(individuals, epsilon)
        tested, means = tested_risks(inner, individuals, below, epsilon)
        found = coupling.at_least(individuals, tested, _step(coupling), epsilon)
        return np.minimum(found, _taken(coupling, curves)), means
    risks, every = [], []
    for cells, without in _cells(coupling, individuals):
        risks.append(cells.risk(without, epsilon))
        every.append(cells.means(without))
    return np.minimum(np.stack(risks, axis=2), _taken(coupling, curves)), tuple(every)


def mean_masses(coupling: Pairs, individuals: Index) -> tuple[MeanMasses, ...]:
    """Return what tests are chosen by, of every individual, in at most 500 draws."""
    return tuple(cells.means(without) for cells, without in _cells(coupling, individuals))


def _cells(coupling: Pairs, individuals: Index) -> Iterator[tuple[Cells, Array]]:
    """Yield cells with the masses with each individual, and the masses without them."""
    step, published = _step(coupling), getattr(coupling, "published", None)
    cells: Cells | None = None
    for person in individuals:
        p, q = (distribution[:, ::step] for distribution in coupling.pair(int(person)))
        # the distribution with an individual who is always present is that with anybody else who is
        if cells is None or not same(p, cells.distribution):
            cells = Cells.of(p, published)
        yield cells, cells.masses_of(q)


def same(p: Mixture, q: Mixture) -> bool:
    """Return whether two mixtures of one kernel have the same components in all draws."""
    names = ("weights", "locations", "scales")
    return all(np.array_equal(getattr(p, name), getattr(q, name)) for name in names)


def _taken(coupling: Pairs, values: Array) -> Array:
    """Return what belongs to the draws that are taken, by chain."""
    chains, draws = coupling.mixture.weights.shape[:2]
    return np.asarray(values.reshape(chains, draws, *values.shape[1:])[:, :: _step(coupling)])


def _step(coupling: Pairs) -> int:
    return -(-coupling.n_draws // MOST_DRAWS)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of which events are unions, with the masses of the distribution with an individual.

    Events are unions of 81 cells, which changes the risk to second order in their width only: at
    the edges of the best event p = exp(epsilon) q. Of a published answer they are unions of what
    is published, and with noise after that of cells of the noisy answer.
    """

    distribution: Mixture
    edges: Array
    noise: Array | None
    masses: Array

    @classmethod
    def of(cls, distribution: Mixture, published: Published | None = None) -> Cells:
        """Return the cells for draws of the distribution with an individual."""
        edges, noise = _edges(distribution), None
        if published is not None:
            edges, noise = _published(edges, published)
        return cls(distribution, edges, noise, cell_masses(distribution, edges, noise))

    def masses_of(self, q: Mixture) -> Array:
        """Return the probability of every cell under another distribution."""
        return cell_masses(q, self.edges, self.noise)

    def means(self, without: Array) -> MeanMasses:
        """Return the means of these masses, and of those without an individual."""
        draws = tuple(range(self.masses.ndim - 1))
        both = [mass.mean(axis=draws) for mass in (self.masses, without)]
        return MeanMasses(self.edges, self.noise, np.stack(both))

    def risk(self, without: Array, epsilon: Array) -> Array:
        """Return what the best test for the mean densities reaches in every draw.

        Parameters
        ----------
        without : ndarray
            Shape (leading axes) + (cell,): draws of the masses without the individual.
        epsilon : ndarray
            Shape (epsilon,).

        Returns
        -------
        ndarray, shape (leading axes) + (epsilon,)
            max(0, P(A) - exp(epsilon) Q(A)), or the same with P and Q exchanged, for the event A
            that is best against the means of both distributions over all draws: never above
            max(H_eps(p || q), H_eps(q || p)), for these are the maxima over all events.
        """
        masses = [self.masses, without]
        growth = np.exp(epsilon)[:, None]
        lead = tuple(range(self.masses.ndim - 1))
        means = self.means(without).masses
        both = []
        for first, second in ((0, 1), (1, 0)):
            event = (means[first] > growth * means[second]).astype(np.float64)
            reached = masses[first] @ event.T - growth[:, 0] * (masses[second] @ event.T)
            both.append(reached)
        forwards = both[0].mean(axis=lead) >= both[1].mean(axis=lead)
        return np.asarray(np.maximum(np.where(forwards, *both), 0.0))


def cell_masses(distribution: Mixture, edges: Array, noise: Array | None = None) -> Array:
    """Return the probability of every cell, shape (leading axes) + (cell,)."""
    masses = distribution.masses(edges)
    return masses if noise is None else masses @ noise


def _published(edges: Array, published: Published) -> tuple[Array, Array | None]:
    """Return edges of bins near these, and the share of noisy answers of each bin in each cell."""
    if published.bins is not None:
        return np.array(published.bins), None
    step, noise = published.rounded_to, published.noise_after
    if step is not None:
        k = np.unique(np.round((edges - published.origin) / step))
        if noise is not None:
            k = np.arange(k[0] - k.size, k[-1] + k.size + 1)
        edges = published.origin + step * k
    if noise is not None and step is not None:
        middles = np.append(edges - 0.5 * step, edges[-1] + 0.5 * step)
        reach = REACH * noise.scale
        ends = np.linspace(middles[0] - reach, middles[-1] + reach, CELLS)
        return edges, noisy(middles, noise).masses(ends)
    first = published.first_edge
    return np.unique(np.append(edges[edges > first], first if first > -np.inf else edges)), None


def noisy(middles: Array, noise: GaussianNoise | LaplaceNoise) -> Mixture:
    """Return the distributions of known values with noise, shape (value,)."""
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.distributions.noise import LaplaceNoise

    kernel = "laplace" if isinstance(noise, LaplaceNoise) else "gaussian"
    return Mixture(np.ones((middles.size, 1)), middles[:, None], noise.scale, kernel=kernel)


def _edges(distribution: Mixture) -> Array:
    """Return where cells end: closer together where draws have narrower or more components."""
    visible = distribution.weights >= min(VISIBLE, 0.5 / distribution.weights.shape[-1])
    every = -(-int(visible.sum()) // MOST_COMPONENTS)
    places = np.linspace(-REACH, REACH, PLACES)[:, None]
    candidates = (
        distribution.locations[visible][::every] + places * distribution.scales[visible][::every]
    )
    return np.unique(np.quantile(candidates, np.linspace(0.0, 1.0, CELLS)))
