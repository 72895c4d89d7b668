"""Presence by component: an individual may come when others come, or stay away then.

Every draw of presence rho becomes one share for each component of the response
(`edp_bayes.coupling.presence_sampler`) whose mean is rho: that is known from everybody, and to
learn it anew from the individual's own databases would make the largest of many risks too large.
That a rare individual is absent says little of a database's component: there it is drawn once for
all such individuals.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.presence_sampler import Seen, draw_labels, draw_shares
from edp_bayes.distributions.mixtures import Mixture, flat_draws

if TYPE_CHECKING:
    from edp_bayes.coupling.contributions import ContributionDraws
    from edp_bayes.coupling.parts import Contributions
    from edp_bayes.records.responses import Responses

__all__ = ["FEWEST", "PresencePosterior"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

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
        whole = contributions._replace(presence=contributions.presence[..., 0])
        absent = np.flatnonzero((whole.presence < 1.0).any(axis=0))
        if absent.size == 0:
            return out
        _ = self._counts  # once, and not in every thread

        def fill(column: int) -> None:
            own = (np.ascontiguousarray(part[:, column]) for part in whole)
            out[:, column] = self._of(int(individuals[column]), *own)

        with ThreadPoolExecutor(numba.get_num_threads()) as pool:
            list(pool.map(fill, absent))
        return out

    def _of(self, individual: int, presence: Array, a: Array, b: Array, spread: Array) -> Array:
        """Return one individual's shares, shape (draw, component)."""
        rest, matrix = self.responses.response.copy(), self.responses.contribution
        where = slice(matrix.indptr[individual], matrix.indptr[individual + 1])
        came = matrix.indices[where]
        present = np.zeros(rest.size, dtype=bool)
        present[came] = True
        rest[came] -= matrix.data[where]
        shares = np.empty((presence.size, self._base.shape[2]))
        labels = self._labels
        if came.size <= max(RARE * rest.size, FEW * self.responses.samples):
            known = (self._counts - self._counted(came)) / self.responses.samples
            rest, present, labels = rest[came], present[came], labels.take(came, axis=1)
        else:
            known = np.zeros_like(shares)
        stream = np.random.Philox(key=[self.seed, self.responses.rank[individual]], counter=OWN)
        gaussian, weight = self.mixture.kernel == "gaussian", 1.0 / self.responses.samples
        seen = Seen(gaussian, self._noise, weight, rest, present, known)
        rng, moves = np.random.Generator(stream), (presence, a, b, spread**2)
        draw_shares(rng, SWEEPS, self._base, self._active, labels, seen, moves, shares)
        return shares

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
    def _active(self) -> NDArray[np.bool_]:
        """Which components get a share of their own, the heaviest at least: (draw, component)."""
        weights = self._base[:, 0]
        heaviest = weights == weights.max(axis=1, keepdims=True)
        return (weights * self.responses.n_databases >= FEWEST) | heaviest

    @cached_property
    def _labels(self) -> NDArray[np.int32]:
        """Component of every response, drawn without regard to presence: (draw, response)."""
        y = self.responses.response
        labels = np.empty((len(self._base), y.size), dtype=np.int32)
        stream = np.random.Philox(key=[self.seed, 0], counter=COMMON)
        gaussian = self.mixture.kernel == "gaussian"
        wide = self._base.copy()
        wide[:, 2] = np.sqrt(wide[:, 2] ** 2 + self._noise)
        draw_labels(np.random.Generator(stream), wide, gaussian, y, self._active, labels)
        return labels

    @cached_property
    def _counts(self) -> Index:
        return self._counted(np.arange(self.responses.response.size))

    def _counted(self, some: NDArray[np.integer[Any]]) -> Index:
        """Return how often each component labels some responses: (draw, component)."""
        draws, components = self._active.shape
        places = self._labels[:, some] + components * np.arange(draws)[:, None]
        counts = np.bincount(places.ravel(), minlength=draws * components)
        return counts.reshape(draws, components)
