"""Presence by component for joint queries.

As in `edp_bayes.coupling.contributions.presence`, of which this is the first sweep: the component
of every database is drawn once for each draw, from its responses, and an individual's presence rho
is the same with every component or, as the data decide, each component has a share of its own of
mean rho.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.contributions.presence import (
    COMMON,
    OWN,
    active_components,
    label_counts,
)
from edp_bayes.coupling.contributions.presence_sampler import (
    PRESENCES,
    draw_beta,
    keep_mean,
    log_bayes_factor,
)
from edp_bayes.coupling.contributions.streams import own_streams
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.utils.arrays import Array, Flags, Index
from edp_bayes.utils.compiled import compiled, in_threads

if TYPE_CHECKING:
    from edp_bayes.responses.entries import Entries

__all__ = ["JointPresence"]


@dataclass(frozen=True, eq=False)
class JointPresence:
    """Shares of the databases of each component in which an individual is present.

    Parameters
    ----------
    mixture : NormalMixture
        Distribution of the whitened responses, shape (draw, component).
    response : ndarray
        Shape (n, d): whitened.
    entries : Entries
        Who contributes where.
    rank : ndarray of int
        Place of every individual in the order of sorted labels.
    seed : int
        Seed.
    """

    mixture: NormalMixture
    response: Array
    entries: Entries
    rank: Index
    seed: int

    def fill(self, individuals: Index, presence: Array) -> None:
        """Replace presence (draw, individual, component) where an individual may be absent."""
        some = np.flatnonzero((presence[..., 0] < 1.0).any(axis=0))
        if some.size == 0:
            return
        labels, counts = self._labels, self._counts
        start, database = self.entries.start, self.entries.database
        streams = own_streams(self.seed, self.rank[individuals[some]], OWN)
        for column, rng in zip(some, streams, strict=True):
            came = database[start[individuals[column]] : start[individuals[column] + 1]]
            own = np.ascontiguousarray(presence[:, column])
            _shares(rng, self.mixture.weights, self._active, labels, counts, came, own)
            presence[:, column] = own

    @cached_property
    def _active(self) -> Flags:
        """Which components get a share of their own: (draw, component)."""
        return active_components(self.mixture.weights, len(self.response))

    @cached_property
    def _labels(self) -> NDArray[np.int32]:
        """Component of every database: (draw, n)."""
        w, mu, covariances = self.mixture
        draws, components, d = mu.shape
        inverse = np.linalg.inv(
            np.linalg.cholesky(np.broadcast_to(covariances, (draws, components, d, d)))
        )
        source = np.random.Generator(np.random.Philox(key=[self.seed, 0], counter=COMMON))
        uniform = source.random((draws, len(self.response)))
        labels = np.empty((draws, len(self.response)), dtype=np.int32)
        active = self._active
        in_threads(_label, draws, w, mu, inverse, active, self.response, uniform, labels)
        return labels

    @cached_property
    def _counts(self) -> Array:
        """Databases of every component, shape (draw, component)."""
        counts = label_counts(self._labels, self.mixture.weights.shape[1])
        return counts.astype(np.float64)


@compiled
def _label(first, last, w, mu, inverse, active, z, uniform, labels):  # type: ignore[no-untyped-def]
    """Fill in the component of every database, labels (draw, n), by one uniform number each.

    Component k has a probability in proportion to w_k N(z_j; mu_k, S_k), among the active ones; z
    is (n, d), inverse (draw, component, d, d) that of the lower factor of S_k.
    """
    components, d = mu.shape[1:]
    mass = np.empty(components)
    for s in range(first, last):
        for j in range(len(z)):
            top = -np.inf
            for k in range(components):
                mass[k] = -np.inf
                if not active[s, k] or w[s, k] <= 0.0:
                    continue
                mass[k] = np.log(w[s, k])
                for a in range(d):
                    u = 0.0
                    for b in range(a + 1):
                        u += inverse[s, k, a, b] * (z[j, b] - mu[s, k, b])
                    mass[k] += np.log(inverse[s, k, a, a]) - 0.5 * u * u
                top = max(top, mass[k])
            total = 0.0
            for k in range(components):
                total += np.exp(mass[k] - top)
                mass[k] = total
            left, k = uniform[s, j] * total, 0
            while k < components - 1 and mass[k] <= left:
                k += 1
            labels[s, j] = k


@compiled
def _shares(rng, weights, active, labels, counts, came, presence):  # type: ignore[no-untyped-def]
    """Replace one individual's presence (draw, component) by shares of their own where they are.

    As the first sweep of `coupling.presence_sampler`: with probability one half a priori rho_k ~
    Beta(2, 2 (1 - rho) / rho), of which the posterior given the labels is drawn. came lists the
    databases in which they contribute; counts is (draw, component).
    """
    draws, components = presence.shape
    n_present, n_absent = np.empty(components), np.empty(components)
    share, terms = np.empty(components), np.empty((3, components))
    places = np.empty(components, dtype=np.int64)
    place_of = np.empty(components, dtype=np.int64)
    for s in range(draws):
        rho, count = presence[s, 0], 0
        for k in range(components):
            if active[s, k]:
                places[count], place_of[k] = k, count
                count += 1
        if not 0.0 < rho < 1.0 or count < 2:
            continue
        for k in range(count):
            n_present[k], n_absent[k] = 0.0, counts[s, places[k]]
            terms[0, k] = -1.0
        for j in came:
            k = place_of[labels[s, j]]
            n_present[k] += 1.0
            n_absent[k] -= 1.0
        a, b = PRESENCES, PRESENCES * (1.0 - rho) / rho
        evidence = log_bayes_factor(n_present, n_absent, count, b, rho, 1.0, terms)
        if rng.random() * (1.0 + np.exp(-evidence)) >= 1.0:
            continue
        for k in range(count):
            share[k] = rho
            if n_present[k] + n_absent[k] > 0.0:
                share[k] = draw_beta(rng, a + n_present[k], b + n_absent[k])
        keep_mean(weights[s], places, count, rho, share)
        for k in range(count):
            presence[s, places[k]] = share[k]
