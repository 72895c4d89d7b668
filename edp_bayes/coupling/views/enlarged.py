"""Contributions that carry over to later databases: an upper bound of what they reveal there.

An individual who is missing from several databases in a row leaves a mark on each of them, and one
on those that follow it, where these follow what the others contributed. Given what was released
before, the answer moves by c_t - sum_l beta_l c_(t-l), with contributions c and lags beta.

Let the rest of an answer be normal, and part it into independent normal pieces whose variances are
in the proportion of 1, |beta_1|, |beta_2|, ... Each contribution, and each part that carries over,
falls on a piece of its own. All pieces that one contribution falls on tell of it as much as a
single normal answer does that it moves by c F, with F = 1 + sum_l |beta_l|, and pieces of different
contributions are independent: however often the individual comes, so many databases with F times
the contribution and no carry-over are an upper bound. Where they always come, contributions have a
mean, which moves every answer by a known multiple of it: its largest size over all databases is at
most max_j |1 - beta_1 - ... - beta_j|. Where the rest is a mixture, its component is taken to be
known, which only adds to the risk, and all components to be as narrow as one of them
(`edp_bayes.coupling.views.one_spread`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import Coupling, draw_count, flat
from edp_bayes.coupling.contributions.posterior import STEEPEST, ContributionDraws
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.coupling.views.one_spread import of_one_spread, once_in
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.some_draws import StackedCoupling
from edp_bayes.coupling.views.some_individuals import Contributions, taken
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError
from edp_bayes.utils.arrays import Array, Index

__all__ = ["CarryOver", "apart", "carried_over", "revealed_curves", "revealed_later"]

CHOOSING = 16  # individuals by whom the one spread of all components is chosen


@dataclass(frozen=True, eq=False)
class CarryOver:
    """By which factors contributions are multiplied in every draw.

    Attributes
    ----------
    always : ndarray
        Shape (draw,): the mean of those who are always present.
    sometimes : ndarray
        Shape (draw,): what differs from it, and all contributions of others.
    shows_in : int
        In how many answers a contribution shows; one where it is only multiplied.
    """

    always: Array
    sometimes: Array
    shows_in: int = 1

    @classmethod
    def most(cls, slopes: Array) -> CarryOver:
        """Return an upper bound for the coefficients of lags, shape (draw, lag).

        Examples
        --------
        >>> CarryOver.most(np.array([[0.3, -0.2]])).sometimes
        array([1.5])
        >>> CarryOver.most(np.array([[-0.4, 0.0]])).always
        array([1.4])
        """
        steady = np.abs(1.0 - np.cumsum(slopes, axis=1)).max(axis=1, initial=1.0)
        return cls(steady, 1.0 + np.abs(slopes).sum(axis=1), 1 + slopes.shape[1])

    @classmethod
    def least(cls, slopes: Array) -> CarryOver:
        """Return what is left of contributions if all that carries over goes against them."""
        left = np.maximum(1.0 - np.abs(slopes).sum(axis=1), 0.0)
        return cls(left, left)

    def of(self, rows: NDArray[np.int64]) -> CarryOver:
        """Return the factors of some draws."""
        return CarryOver(self.always[rows], self.sometimes[rows], self.shows_in)

    def __call__(self, contributions: ContributionDraws, centre: Array) -> ContributionDraws:
        """Multiply contributions.

        Parameters
        ----------
        contributions : ContributionDraws
            Of some individuals.
        centre : ndarray
            Shape (individual,): where the mean contribution is taken.
        """
        steady = (contributions.presence == 1.0).all(axis=2)
        factor = np.where(steady, self.always[:, None], self.sometimes[:, None])
        mean = factor * (contributions.intercept + contributions.slope * centre)
        slope = np.maximum(self.sometimes[:, None] * contributions.slope, -STEEPEST)
        spread = self.sometimes[:, None] * contributions.spread
        return ContributionDraws(contributions.presence, mean - slope * centre, slope, spread)


@dataclass(frozen=True, eq=False)
class CarriedOverCoupling(RegressionCoupling):
    """A coupling whose contributions are multiplied.

    Attributes
    ----------
    whole : RegressionCoupling
        The coupling as it was fitted.
    carry_over : CarryOver
        The factors.
    narrower : ndarray
        Shape (draw,): how often an answer of little spread reveals all contributions that show in
        it, by the mixture.
    narrower_without : mapping of int to ndarray
        The same of distributions without some individuals that are known themselves.
    """

    whole: RegressionCoupling = field(kw_only=True)
    carry_over: CarryOver = field(kw_only=True)
    narrower: Array = field(kw_only=True)
    narrower_without: Mapping[int, Array] = field(kw_only=True)

    @classmethod
    def of(cls, whole: RegressionCoupling, carry_over: CarryOver) -> CarriedOverCoupling:
        """Multiply the contributions of a coupling."""
        noise = whole.noise.scale if isinstance(whole.noise, GaussianNoise) else 0.0

        def even(mixture: Mixture, people: Index) -> tuple[Mixture, Array]:
            if carry_over.shows_in == 1 or not people.size:
                return mixture, np.zeros(draw_count(mixture))
            drawn = carry_over(
                whole.contributions(people, by_component=False), whole.posterior.centre[people]
            )
            middle = drawn.intercept + drawn.slope * whole.posterior.centre[people]
            size = np.hypot(middle, drawn.spread)
            return of_one_spread(
                mixture, drawn.presence[..., 0], size, shows_in=carry_over.shows_in, noise=noise
            )

        most = np.argsort(-np.abs(whole.posterior.expected), kind="stable")[:CHOOSING]
        mixture, narrower = even(whole.mixture, most)
        without = {i: even(part, np.array([i])) for i, part in whole.without.items()}
        return cls(
            mixture, whole.posterior, whole.presence, whole.noise,
            {i: part for i, (part, _) in without.items()},
            whole=whole, carry_over=carry_over, narrower=narrower,
            narrower_without={i: share for i, (_, share) in without.items()},
        )  # fmt: skip

    def contributions(
        self, individuals: NDArray[np.int64], *, by_component: bool = True
    ) -> ContributionDraws:
        """Return how some individuals contribute, their presence by component."""
        found = self.whole.contributions(individuals, by_component=by_component)
        return self.carry_over(found, self.posterior.centre[individuals])

    def revealed(self, individuals: Index) -> Array:
        """Return how often an answer of little spread reveals individuals, (draw, individual)."""
        presence = self.contributions(individuals).presence.max(axis=2)
        share = np.repeat(self.narrower[:, None], individuals.size, axis=1)
        for column in np.flatnonzero(np.isin(individuals, list(self.without))):
            share[:, column] = self.narrower_without[int(individuals[column])]
        return share * once_in(presence, self.carry_over.shows_in)


@singledispatch
def carried_over(coupling: Coupling, carry_over: CarryOver) -> Coupling:
    """Return the coupling with contributions multiplied.

    Register an implementation for a coupling of your own by ``@carried_over.register``.
    """
    raise InputTypeError(
        "databases that follow what others contributed need couplings whose contributions can be "
        f"multiplied, found {type(coupling).__name__}: give past='released', or register how with "
        "edp_bayes.coupling.views.enlarged.carried_over"
    )


@carried_over.register
def _(coupling: RegressionCoupling, carry_over: CarryOver) -> Coupling:
    return CarriedOverCoupling.of(coupling, carry_over)


@carried_over.register
def _(coupling: StackedCoupling, carry_over: CarryOver) -> Coupling:
    blocks = tuple(
        (rows, carried_over(inner, carry_over.of(rows))) for rows, inner in coupling.blocks
    )
    return StackedCoupling(coupling.mixture, blocks)


@carried_over.register
def _(coupling: ReleasedCoupling, carry_over: CarryOver) -> Coupling:
    # a published answer tells no more than the full one
    return carried_over(coupling.full, carry_over)


@carried_over.register
def _(coupling: ShiftCoupling, carry_over: CarryOver) -> Coupling:
    """Multiply what is known of contributions, in all draws alike: by the largest factor."""
    responses = coupling.responses
    part = Contributions.of(cast(Any, responses), np.arange(responses.n_individuals))
    steady = np.diff(part.contribution.indptr) == part.response.size
    factor = np.where(steady, carry_over.always.max(), carry_over.sometimes.max())
    matrix = part.contribution.copy()
    matrix.data = matrix.data * np.repeat(factor, np.diff(matrix.indptr))
    largest = part.largest_contribution * factor
    mixture = coupling.mixture
    if carry_over.shows_in > 1 and not coupling.shared_scale:
        there = np.where(mixture.weights > 0.0, mixture.scales, np.inf)
        mixture = Mixture(
            mixture.weights, mixture.locations, there.min(axis=-1, keepdims=True),
            kernel=mixture.kernel, noise=mixture.noise,
        )  # fmt: skip
    return ShiftCoupling(mixture, replace(part, contribution=matrix, largest_contribution=largest))


@taken.register
def _(coupling: CarriedOverCoupling, members: NDArray[np.int64]) -> Coupling:
    some: CarriedOverCoupling = taken.dispatch(RegressionCoupling)(coupling, members)
    shares = coupling.narrower_without
    return replace(
        some,
        whole=cast(RegressionCoupling, taken(coupling.whole, members)),
        narrower_without={k: shares[i] for k, i in enumerate(members.tolist()) if i in shares},
    )


@singledispatch
def revealed_later(coupling: Coupling, individuals: Index) -> Array:
    """Return how often answers of little spread reveal individuals, shape (draw, individual)."""
    return np.zeros((coupling.n_draws, individuals.size))


@revealed_later.register
def _(coupling: CarriedOverCoupling, individuals: Index) -> Array:
    return coupling.revealed(individuals)


@revealed_later.register
def _(coupling: StackedCoupling, individuals: Index) -> Array:
    out = np.empty((coupling.n_draws, individuals.size))
    for rows, inner in coupling.blocks:
        out[rows] = revealed_later(inner, individuals)
    return out


@singledispatch
def revealed_curves(coupling: Coupling, individuals: NDArray[np.int64], epsilon: Array) -> Array:
    """Return delta_i(eps) where each answer tells its component, (draw, individual, epsilon).

    An upper bound of the risk where it does not, by joint convexity.
    """
    return _one_by_one(coupling, individuals, epsilon)


def _one_by_one(coupling: Coupling, individuals: NDArray[np.int64], epsilon: Array) -> Array:
    from edp_bayes.divergence.any_pair.curves import curves
    from edp_bayes.divergence.composition.losses import each_component
    from edp_bayes.divergence.integral import component_rows

    size = coupling.mixture.weights.shape[-1]
    out = np.zeros((coupling.n_draws, individuals.size, epsilon.size))
    for column, individual in enumerate(individuals.tolist()):
        p, q = (
            apart(
                component_rows(
                    flat(side.weights), flat(side.locations), flat(side.scales), side.kernel,
                    side.noise,
                ),
                size,
            )
            for side in coupling.pair(individual)
        )  # fmt: skip
        draws, weights, p, q = each_component(p, q)
        found = curves(p, q[:, None], epsilon)[:, 0]
        np.add.at(out[:, column], draws, weights[:, None] * found)
    return out


@revealed_curves.register
def _(coupling: RegressionCoupling, individuals: NDArray[np.int64], epsilon: Array) -> Array:
    if coupling.mixture.kernel != "gaussian" or isinstance(coupling.noise, LaplaceNoise):
        return _one_by_one(coupling, individuals, epsilon)
    from edp_bayes.coupling.curves.bounds import bound_curves

    out = np.zeros((coupling.n_draws, individuals.size, epsilon.size))
    base, contributions, _ = coupling.centred(individuals)
    bound_curves(
        base, contributions, epsilon,
        noise_scale=0.0 if coupling.noise is None else coupling.noise.scale,
        floor=np.full((coupling.n_draws, epsilon.size), np.inf), out=out,
        done=np.zeros(out.shape[:2], dtype=bool),
    )  # fmt: skip
    known = np.isin(individuals, list(coupling.without))
    if known.any():
        out[:, known] = _one_by_one(coupling, individuals[known], epsilon)
    return out


@revealed_curves.register
def _(coupling: StackedCoupling, individuals: NDArray[np.int64], epsilon: Array) -> Array:
    out = np.empty((coupling.n_draws, individuals.size, epsilon.size))
    for rows, inner in coupling.blocks:
        out[rows] = revealed_curves(inner, individuals, epsilon)
    return out


def apart(components: Array, size: int) -> Array:
    """Return the components of a mixture, one by one as far as an answer tells them apart.

    Parameters
    ----------
    components : ndarray
        Shape (pair, component, 5), see `edp_bayes.divergence.any_pair.components.rows`.
    size : int
        How many there are of the rest: where that is fewer, it is repeated, without and with the
        individual, which no answer tells.

    Returns
    -------
    ndarray, shape (pair, size, 1 or 2, 5)

    Examples
    --------
    >>> from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
    >>> apart(rows(GAUSSIAN, np.full((1, 6), 1 / 6), np.zeros((1, 6)), 1.0), 3).shape
    (1, 3, 2, 5)
    """
    parts = components.reshape(len(components), -1, size, components.shape[-1])
    return np.ascontiguousarray(parts.swapaxes(1, 2))
