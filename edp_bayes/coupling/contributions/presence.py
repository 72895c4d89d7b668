"""Presence by component: an individual may come when others come, or stay away then.

Every draw of presence rho becomes one share for each component of the response
(`edp_bayes.coupling.contributions.presence_sampler`) whose mean is rho: that is known from
everybody, and to learn it anew from the individual's own databases would make the largest of many
risks too large. That a rare individual is absent says little of a database's component: there it is
drawn once for all such individuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.presence_sampler import Seen, draw_labels, draw_shares
from edp_bayes.coupling.contributions.streams import own_streams
from edp_bayes.distributions.mixtures import Mixture, flat_draws
from edp_bayes.utils.arrays import Array, Flags, Index
from edp_bayes.utils.compiled import in_threads

if TYPE_CHECKING:
    from edp_bayes.coupling.contributions.posterior import ContributionDraws
    from edp_bayes.coupling.views.some_individuals import Contributions
    from edp_bayes.responses.responses import Responses

__all__ = ["FEWEST", "PresencePosterior", "active_components", "label_counts"]

SWEEPS = 5  # of the sampler
# A rare individual is in at most this share of the databases, or in as few.
RARE, FEW = 0.05, 5
FEWEST = 0.5  # expected databases of a component that gets a share of its own
# Streams of random numbers: of an individual, apart from that of their contributions, and of all.
OWN, COMMON = [0, 0, 0, 1], [0, 0, 0, 2]


@dataclass(frozen=True, eq=False)
class PresencePosterior:
    """Shares of the databases of each component in which an individual is present.

    Parameters
    ----------
    mixture : Mixture
        Distribution of the response, shape (chain, draw, component), without known noise.
    responses : Responses
        What the mixture was fitted to.
    seed : int
        Every individual has a stream of its own, numbered by the rank of the label, so draws do
        not depend on who else is drawn or in which order.
    """

    mixture: Mixture
    responses: Responses | Contributions
    seed: int

    def draw(self, individuals: Index, contributions: ContributionDraws) -> Array:
        """Draw presence by component.

        Parameters
        ----------
        individuals : ndarray of int
            Shape (individual,).
        contributions : ContributionDraws
            How they contribute, presence the same with every component.

        Returns
        -------
        ndarray, shape (draw, individual, component)
            The given presence where it is 0 or 1, where it does not depend on the rest in that
            draw, and in components too light to expect half a database.
        """
        out = contributions.presence.copy()
        absent = np.flatnonzero((out[..., 0] < 1.0).any(axis=0))
        if absent.size:
            _ = self._counts  # once, and not in every thread
            in_threads(
                lambda *ends: self._fill(individuals, absent, ends, contributions, out), absent.size
            )
        return out

    def _fill(
        self,
        individuals: Index,
        columns: Index,
        ends: tuple[int, int],
        contributions: ContributionDraws,
        out: Array,
    ) -> None:
        """Fill in the shares of some individuals."""
        some = columns[slice(*ends)]
        streams = own_streams(self.seed, self.responses.rank[individuals[some]], OWN)
        for column, rng in zip(some.tolist(), streams, strict=True):
            individual = int(individuals[column])
            moves = contributions.intercept, contributions.slope, contributions.spread
            draw_shares(
                rng, SWEEPS, self._base, self.active, self._labels, self._seen(individual), moves,
                column, out,
            )  # fmt: skip

    def _seen(self, individual: int) -> Seen:
        """Return what the databases say of one individual's presence."""
        rest, matrix = self.responses.response, self.responses.collected
        where = slice(matrix.indptr[individual], matrix.indptr[individual + 1])
        came, gone = matrix.indices[where].astype(np.int64), matrix.data[where]
        if came.size <= max(RARE * rest.size, FEW * self.responses.samples):
            rows, present, rest = came, np.ones(came.size, dtype=bool), rest[came] - gone
        else:
            rows, present = np.arange(rest.size), np.zeros(rest.size, dtype=bool)
            rest, present[came] = rest.copy(), True
            rest[came] -= gone
        gaussian = self.mixture.kernel == "gaussian"
        return Seen(
            gaussian, self._noise, self.responses.samples, rest, present, rows, self._counts
        )

    @cached_property
    def _base(self) -> Array:
        return flat_draws(self.mixture)

    @property
    def _noise(self) -> float:
        """Square of the scale of a kernel with the variance of known noise."""
        noise = self.responses.noise
        unit = 1.0 if self.mixture.kernel == "gaussian" else 2.0
        return 0.0 if noise is None else noise.variance / unit

    @cached_property
    def active(self) -> Flags:
        """Which components get a share of their own: (draw, component)."""
        return active_components(self._base[:, 0], self.responses.n_databases)

    @cached_property
    def _labels(self) -> NDArray[np.int32]:
        """Component of every response, drawn without regard to presence: (draw, response)."""
        y = self.responses.response
        labels = np.empty((len(self._base), y.size), dtype=np.int32)
        stream = np.random.Philox(key=[self.seed, 0], counter=COMMON)
        gaussian = self.mixture.kernel == "gaussian"
        wide = self._base.copy()
        wide[:, 2] = np.sqrt(wide[:, 2] ** 2 + self._noise)
        draw_labels(np.random.Generator(stream), wide, gaussian, y, self.active, labels)
        return labels

    @cached_property
    def _counts(self) -> Index:
        """How often each component labels a response: (draw, component)."""
        return label_counts(self._labels, self.active.shape[1])


def active_components(weights: Array, databases: int) -> Flags:
    """Return which components get a share of their own, the heaviest always: (draw, k)."""
    heaviest = weights == weights.max(axis=1, keepdims=True)
    return np.asarray((weights * databases >= FEWEST) | heaviest)


def label_counts(labels: NDArray[np.int32], components: int) -> Index:
    """Return how often each component is among labels (draw, response): (draw, component)."""
    draws = len(labels)
    places = labels + components * np.arange(draws)[:, None]
    counts = np.bincount(places.ravel(), minlength=draws * components)
    return counts.reshape(draws, components)
