"""Contributions whose draws come with those of the response, as a PyMC model gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from edp_bayes.coupling.contributions.posterior import STEEPEST, ContributionDraws
from edp_bayes.utils.arrays import Array, Index

__all__ = ["DrawnContributions"]

ALWAYS = 1.0 - 1e-12  # presence above is 1


@dataclass(frozen=True, eq=False)
class DrawnContributions:
    """Draws of how every individual contributes, each of the same draw as the response's mixture.

    A source of contributions, as `edp_bayes.coupling.contributions.posterior.ContributionPosterior`
    is.

    Parameters
    ----------
    draws : ContributionDraws
        Of all individuals; presence by component, shape (draw, individual, component).
    overall : ndarray
        Shape (draw, individual): presence over all components.
    centre : ndarray
        Shape (individual,): mean of the response without each of them.
    new : ContributionDraws, optional
        The same of one individual not in the sample; if not given, of those in it.
    """

    draws: ContributionDraws
    overall: Array
    centre: Array
    new: ContributionDraws | None = None

    @classmethod
    def of(
        cls,
        draws: ContributionDraws,
        weights: Array,
        centre: Array,
        new: ContributionDraws | None = None,
    ) -> DrawnContributions:
        """Take draws and the weights of their components, shape (draw, component).

        Slopes are at least -0.9, so that an answer grows with the rest of it.
        """
        steep = np.maximum(draws.slope, -STEEPEST)
        # the odds of those never absent are finite where they are sampled
        presence = np.where(draws.presence > ALWAYS, 1.0, draws.presence)
        presence = np.broadcast_to(presence, (*draws.slope.shape, weights.shape[-1]))
        overall = np.einsum("sk,sik->si", weights, presence)
        # of sums of weights that round
        overall = np.where((presence == 1.0).all(axis=-1), 1.0, np.minimum(overall, 1.0))
        held = draws._replace(presence=np.ascontiguousarray(presence), slope=steep)
        return cls(held, overall, centre, new)

    @property
    def expected(self) -> Array:
        """Mean contribution of every individual, shape (m,), absences counted as zero."""
        at_centre = self.draws.intercept + self.draws.slope * self.centre
        return np.asarray((self.overall * at_centre).mean(axis=0))

    def taken(self, individuals: Index) -> DrawnContributions:
        """Return those of some individuals, whose positions become 0, 1, ..."""
        return replace(
            self,
            draws=ContributionDraws(*(part[:, individuals] for part in self.draws)),
            overall=self.overall[:, individuals],
            centre=self.centre[individuals],
        )

    def picked(self, rows: Index) -> DrawnContributions:
        """Return those of some draws of the response."""

        def some(draws: ContributionDraws) -> ContributionDraws:
            return ContributionDraws(*(part[rows] for part in draws))

        new = None if self.new is None else some(self.new)
        return replace(self, draws=some(self.draws), overall=self.overall[rows], new=new)

    def draw(self, individuals: Index, draws: int, components: int = 1) -> ContributionDraws:
        """Return how some individuals contribute; presence by component if there are several.

        All draws, or as many of them at equal distances.
        """
        held = len(self.overall)
        rows = slice(None) if draws == held else np.arange(draws) * held // draws
        parts = self.draws
        if components < parts.presence.shape[-1]:
            parts = parts._replace(presence=self.overall[..., None])
        return ContributionDraws(
            *(np.ascontiguousarray(part[rows][:, individuals]) for part in parts)
        )

    def draw_new(self, draws: int, components: int) -> ContributionDraws:
        """Return how an individual not in the sample contributes.

        As those in the sample in turn, where the model says nothing of others.
        """
        if self.new is not None:
            return self.new
        rows = np.arange(draws)
        who = rows % self.centre.size
        return ContributionDraws(*(part[rows, who][:, None] for part in self.draws))
