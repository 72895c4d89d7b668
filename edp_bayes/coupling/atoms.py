"""Answers with atoms: point masses beside a density, with and without each individual.

The answer is the atom a with probability w_a, and otherwise, with probability w_0, a draw from a
density g. Of the databases at a, the answer without i is another with probability q_a; of the
databases at none it is the atom a with probability r_a. Such answers are kept apart, whatever they
are. With g_i the density without i where neither is an atom, r the sum of all r_a, and
v_a = w_a (1 - q_a) + w_0 r_a, subadditivity of the positive part gives

    H_eps(p || p_i) <= w_0 r + sum_a (w_a - exp(eps) v_a)+ + w_0 (1 - r) H_eps(g || g_i),
    H_eps(p_i || p) <= sum_a w_a q_a + sum_a (v_a - exp(eps) w_a)+ + w_0 (1 - r) H_eps(g_i || g).

Both are exact where no answer is kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edp_bayes.coupling.base import FLOOR, Coupling
from edp_bayes.coupling.contributions.pooling import ALONE, FEWEST_POOLED, MOST_WEIGHT
from edp_bayes.coupling.views.some_draws import curves_by_draw, pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.responses.responses import Responses

__all__ = ["AtomCoupling", "Beta", "Masses"]

# Streams of random numbers: of the atoms' shares, of an individual, of one not in the sample.
SHARES, OWN, NEW = [0, 0, 0, 11], [0, 0, 0, 12], [0, 0, 0, 13]
JEFFREYS = 0.5
LEAST_WEIGHT = 0.1  # databases that the pooled beta distribution counts for


class Beta(NamedTuple):
    """Beta distributions of shares, by their parameters."""

    a: Array
    b: Array

    def taken(self, members: Index) -> Beta:
        """Return those of some individuals."""
        return Beta(self.a[members], self.b[members])


class Masses(NamedTuple):
    """Draws of point masses with and without individuals.

    Attributes
    ----------
    atoms : ndarray
        Shape (draw, 1, atom): w_a.
    without : ndarray
        Shape (draw, individual, atom): v_a, less what is kept apart of w_0.
    leaving, falling : ndarray
        Shape (draw, individual): sum of w_a q_a, and w_0 r.
    density : ndarray
        Shape (draw, individual): w_0 (1 - r).
    """

    atoms: Array
    without: Array
    leaving: Array
    falling: Array
    density: Array

    def at(self, epsilon: Array) -> tuple[Array, Array]:
        """Return the risks of the atoms themselves, both directions, (draw, individual, epsilon).

        Epsilon has shape (epsilon,) or (draw, epsilon).
        """
        level = epsilon[..., None, :, None] if epsilon.ndim == 2 else epsilon[:, None]
        return (
            _excess(self.atoms[..., None, :], self.without[..., None, :], level),
            _excess(self.without[..., None, :], self.atoms[..., None, :], level),
        )


@dataclass(frozen=True, eq=False)
class AtomCoupling:
    """A coupling of the answers at no atom, and the masses of the atoms.

    Parameters
    ----------
    density : Coupling
        Of the answers at no atom.
    known : ndarray
        Shape (atom + 1,): Dirichlet posterior of the shares of the atoms and of all other answers.
    leaving, falling : Beta
        Shape (individual, atom): posteriors of q and of r.
    unlike : tuple of Beta
        Shape (atom,): those of an individual not in the sample.
    rank : ndarray of int
        Shape (individual,): place of everybody in the order of sorted labels, the number of their
        random stream.
    seed : int
        Of these streams.
    draws : int
        Number of draws.
    rows : ndarray of int, optional
        Which of them; all if not given.
    drawn : ndarray, optional
        Shape (draws, atom + 1): the shares of a model that draws them; from `known` if not given.
    """

    density: Coupling
    known: Array
    leaving: Beta
    falling: Beta
    unlike: tuple[Beta, Beta]
    rank: Index
    seed: int
    draws: int
    rows: Index | None = None
    drawn: Array | None = None

    @classmethod
    def of(cls, density: Coupling, responses: Responses, seed: int) -> AtomCoupling:
        """Put the atoms of responses beside the coupling of all answers that are at none."""
        from edp_bayes.responses.atoms import at_atoms

        counts = at_atoms(responses)
        leaving, new_leaving = _posterior(counts.leaves, counts.count)
        falling, new_falling = _posterior(
            counts.falls, np.full(counts.count.shape, float(counts.others))
        )
        return cls(
            density=density,
            known=np.append(counts.count, counts.others) + JEFFREYS,
            leaving=leaving,
            falling=falling,
            unlike=(new_leaving, new_falling),
            rank=responses.rank,
            seed=seed,
            draws=density.n_draws,
        )

    def given(self, shares: Array) -> AtomCoupling:
        """Return the same with shares that a model drew, shape (draw, atom + 1)."""
        return replace(self, drawn=shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def shares(self) -> Array:
        """Draws of the shares of the atoms and of all other answers, (draw, atom + 1)."""
        found = self.drawn
        if found is None:
            rng = np.random.Generator(np.random.Philox(key=[self.seed, 0], counter=SHARES))
            found = rng.dirichlet(self.known, self.draws)
        return found if self.rows is None else found[self.rows]

    @property
    def mixture(self) -> Mixture:
        """Distribution of the answers at no atom."""
        return self.density.mixture

    @property
    def without(self) -> Any:
        """The distributions at no atom without some individuals, where they are known."""
        return getattr(self.density, "without", {})

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.density.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of posterior draws, all chains together."""
        return self.draws if self.rows is None else int(self.rows.size)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return everybody: those who turn an atom into another answer may matter."""
        return np.arange(self.n_individuals), self.density.relevant(epsilon)[1]

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return a bound of delta_i(eps), shape (draw, individual, epsilon), in `out` if given."""
        if out is None:
            out = np.empty((self.n_draws, individuals.size, epsilon.shape[-1]))
        relevant = np.isin(individuals, self._relevant(epsilon))
        out[:, ~relevant] = 0.0
        if relevant.all():
            self.density.curves(individuals, epsilon, out=out)
        elif relevant.any():
            out[:, relevant] = self.density.curves(individuals[relevant], epsilon)
        return self._around(self.masses(individuals), out, epsilon)

    def by_draw(self, individuals: Index, epsilon: Array) -> Array:
        """Return delta_i at an epsilon of each draw, shape (draw, individual, 1)."""
        found = curves_by_draw(self.density, individuals, epsilon)
        return self._around(self.masses(individuals), found, epsilon[:, None])

    def new_individual(self, epsilon: Array) -> Array:
        """Return delta_i(eps) of an individual unlike all in the sample, shape (draw, epsilon)."""
        inner = getattr(self.density, "new_individual", None)
        found = np.zeros((self.n_draws, epsilon.size)) if inner is None else inner(epsilon)
        rng = np.random.Generator(np.random.Philox(key=[self.seed, 0], counter=NEW))
        shape = (self.draws, 1, self.known.size - 1)
        q, r = (rng.beta(share.a, share.b, shape) for share in self.unlike)
        return self._around(self._masses(q, r), found[:, None], epsilon)[:, 0]

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities at no atom with and without one individual."""
        return self.density.pair(individual)

    def masses(self, individuals: Index) -> Masses:
        """Return the draws of all point masses of some individuals."""
        shape = (self.draws, individuals.size, self.known.size - 1)
        q, r = np.empty(shape), np.empty(shape)
        source = np.random.Philox(key=[self.seed, 0], counter=OWN)
        rng, start = np.random.Generator(source), source.state
        for column, i in enumerate(individuals):
            start["state"]["key"][1] = self.rank[i]
            source.state = start
            for drawn, share in ((q, self.leaving), (r, self.falling)):
                drawn[:, column] = rng.beta(share.a[i], share.b[i], (self.draws, shape[2]))
        return self._masses(q, r)

    def at_least(self, individuals: Index, tested: Array, step: int, epsilon: Array) -> Array:
        """Return lower bounds of delta_i from those of the density, (chain, draw, person, epsilon).

        Whatever test distinguishes the densities meets what is kept apart: at most exp(eps) times.
        """
        chains, draws = self.mixture.weights.shape[:2]
        masses = self.masses(individuals)
        atoms = masses.at(epsilon)
        with np.errstate(over="ignore"):
            growth = np.exp(epsilon)
        sides = []
        for alone, against in zip(atoms, (masses.leaving, masses.falling), strict=True):
            # of every so many draws of each chain
            parts = (alone, against[..., None], masses.density[..., None])
            first, met, kept = (
                part.reshape(chains, draws, *part.shape[1:])[:, ::step] for part in parts
            )
            lost = np.where(met > 0.0, growth * np.maximum(met, np.finfo(float).tiny), 0.0)
            sides.append((first, first + np.maximum(kept * tested - lost, 0.0)))
        (one, with_one), (two, with_two) = sides
        return np.asarray(np.maximum(np.maximum(one, two), np.minimum(with_one, with_two)))

    def _relevant(self, epsilon: Array) -> Index:
        if epsilon.ndim > 1:
            epsilon = epsilon.min(axis=0)
        key = epsilon.tobytes()
        if key not in self._remembered:
            self._remembered[key] = self.density.relevant(epsilon)[0]
        return self._remembered[key]

    @cached_property
    def _remembered(self) -> dict[bytes, Index]:
        return {}

    def _around(self, masses: Masses, curves: Array, epsilon: Array) -> Array:
        """Take the curves of the density into those of the whole answer, in their place."""
        both = masses.at(epsilon)
        told_apart = (masses.falling, masses.leaving)
        most = np.maximum(*(a + b[..., None] for a, b in zip(both, told_apart, strict=True)))
        curves *= masses.density[..., None]
        curves += most
        np.minimum(curves, 1.0, out=curves)
        curves[curves <= FLOOR] = 0.0
        return curves

    def _masses(self, q: Array, r: Array) -> Masses:
        if self.rows is not None:
            q, r = q[self.rows], r[self.rows]
        atoms, rest = self.shares[:, None, :-1], self.shares[:, -1:]
        # of few databases they may sum to more than one
        r = r / np.maximum(r.sum(axis=-1, keepdims=True), 1.0)
        return Masses(
            atoms,
            atoms * (1.0 - q) + rest[..., None] * r,
            (atoms * q).sum(axis=-1),
            rest * r.sum(axis=-1),
            rest * (1.0 - r.sum(axis=-1)),
        )


def _excess(here: Array, there: Array, epsilon: Array) -> Array:
    """Return the sum over atoms of (here - exp(epsilon) there)+."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.exp(epsilon + np.log(there) - np.log(here))
    return np.where(here > 0.0, here * np.maximum(1.0 - ratio, 0.0), 0.0).sum(axis=-1)


def _posterior(count: Array, totals: Array) -> tuple[Beta, Beta]:
    """Return beta posteriors of shares by individual and atom, and what all say of another.

    Shape of the count: (individual, atom); of the totals: (atom,).
    """
    a, b = np.empty_like(count), np.empty_like(count)
    pooled = np.empty((2, totals.size))
    for k, n in enumerate(totals):
        seen = count[:, k]
        learned = _learned(seen, n)
        # of those who were seen doing it others say nothing
        a[:, k] = np.where(seen > 0.0, JEFFREYS, learned[0]) + seen
        b[:, k] = np.where(seen > 0.0, JEFFREYS, learned[1]) + n - seen
        pooled[:, k] = learned
    return Beta(a, b), Beta(*pooled)


def _learned(count: Array, n: float) -> tuple[float, float]:
    """Return the beta distribution of a share over the individuals: their mean, its weight fitted.

    Jeffreys' prior for fewer than eight individuals, or without a database.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import betaln

    if count.size < FEWEST_POOLED or n == 0:
        return ALONE
    values, times = np.unique(count, return_counts=True)
    mean = (float(count.sum()) + JEFFREYS) / (count.size * n + 2.0 * JEFFREYS)

    def loss(log_weight: float) -> float:
        a, b = mean * np.exp(log_weight), (1.0 - mean) * np.exp(log_weight)
        return -float(times @ (betaln(a + values, b + n - values) - betaln(a, b)))

    ends = np.log([LEAST_WEIGHT, MOST_WEIGHT * n])
    weight = float(np.exp(minimize_scalar(loss, bounds=ends, method="bounded").x))
    return mean * weight, (1.0 - mean) * weight


@taken.register
def _(coupling: AtomCoupling, members: Index) -> AtomCoupling:
    return replace(
        coupling,
        density=taken(coupling.density, members),
        leaving=coupling.leaving.taken(members),
        falling=coupling.falling.taken(members),
        rank=coupling.rank[members],
    )


@pick.register
def _(coupling: AtomCoupling, rows: Index) -> AtomCoupling:
    chosen = rows if coupling.rows is None else coupling.rows[rows]
    return replace(coupling, density=pick(coupling.density, rows), rows=chosen)


@curves_by_draw.register
def _(coupling: AtomCoupling, individuals: Index, epsilon: Array) -> Array:
    return coupling.by_draw(individuals, epsilon)
