"""Which pairs of a draw and an individual are safe without a look at their densities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.noise.certificates.log_lipschitz import log_lipschitz, movement_bound, presence_share
from edp_bayes.noise.search import check_time
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.noise.distribution import NoiseDistribution
    from edp_bayes.noise.posterior import Posterior

__all__ = ["Screen"]

LEVELS = 24
UPWARDS = 1.0 + 1e-6  # tables hold four bytes a number, rounded to the safe side
LARGEST = 3e38
TINY = 1e-200
NUMBERS = 2**22  # presences of pairs measured at once


@dataclass(frozen=True, eq=False)
class Screen:
    """For every pair, how gentle a slope of the log density makes it safe.

    A noisy kernel whose log density has a slope of at most L (see `log_lipschitz`) leaves a log
    ratio of at most epsilon * L * length wherever L * length <= 1: the bound of `movement_bound` is
    convex in L, zero at zero and at most epsilon at 1 / length.

    Attributes
    ----------
    kernel : str
        Family of the components.
    epsilon : float
        What the lengths are made for.
    length : ndarray
        Shape (draw, individual), in the units of the response.
    scales : ndarray
        Shape (level,): scales of kernels, increasing.
    level : ndarray of int
        Shape (draw, individual): the level that no component of the pair is below.
    """

    kernel: str
    epsilon: float
    length: NDArray[np.float32]
    scales: Array
    level: NDArray[np.uint8]

    @classmethod
    def of(cls, posterior: Posterior, epsilon: float) -> Screen:
        """Go through all individuals once."""
        shape = posterior.n_draws, posterior.n_individuals
        length, least = np.empty((2, *shape), dtype=np.float32)
        for people, long, small in _measured(posterior, epsilon):
            check_time()
            long = np.where(np.isnan(long), np.inf, long) * UPWARDS
            length[:, people], least[:, people] = np.minimum(long, LARGEST), small / UPWARDS
        scales = np.geomspace(float(least.min()), float(least.max()), LEVELS)
        scales[0] = float(least.min())
        level = np.searchsorted(scales, least, side="right") - 1
        return cls(posterior.kernel, epsilon, length, scales, level.astype(np.uint8))

    def slopes(self, noise: NoiseDistribution) -> Array:
        """Return the log_lipschitz of the noisy kernels at every level, shape (level,)."""
        return log_lipschitz(noise, self.kernel, self.scales)

    def enough(self, epsilon: float, person: int) -> Array:
        """Return, for each draw, a scale of Laplace noise that makes an individual safe."""
        return np.asarray(self.length[:, person] * max(1.0, self.epsilon / epsilon))

    def bounds(self, slopes: Array, draws: Index, people: Index) -> Array:
        """Return bounds on the log ratio, infinite above epsilon: (draw, individual)."""
        where = np.ix_(draws, people)
        with np.errstate(invalid="ignore"):
            share = slopes[self.level[where]] * self.length[where]
        return np.where(share <= 1.0, self.epsilon * share, np.inf)


def _measured(posterior: Posterior, epsilon: float) -> Iterator[tuple[Index, Array, Array]]:
    """Yield individuals with their lengths and smallest scales, each (draw, individual)."""
    from edp_bayes.coupling.curves.one_answer import movement_lengths
    from edp_bayes.coupling.regression import RegressionCoupling

    coupling, everybody = posterior.coupling, np.arange(posterior.n_individuals)
    alone = everybody
    if isinstance(coupling, RegressionCoupling):
        alone = np.array(list(coupling.without), dtype=np.int64)
    for person in map(int, alone):
        p, q = posterior.pair(person)
        small = np.minimum(p[..., 2].min(axis=1), q[..., 2].min(axis=1))
        length = _lengths(p, q, posterior.kernel, epsilon)
        yield everybody[[person]], length[:, None], small[:, None]
    if not isinstance(coupling, RegressionCoupling):
        return
    everybody = np.setdiff1d(everybody, alone)
    base = np.ascontiguousarray(np.moveaxis(posterior.base, -1, 1))
    size = max(1, NUMBERS // (posterior.n_draws * base.shape[2]))
    for start in range(0, everybody.size, size):
        people = everybody[start : start + size]
        distribution = coupling.contributions(people)
        yield people, *movement_lengths(base, distribution, epsilon, kernel=posterior.kernel)


def _lengths(p: Array, q: Array, kernel: str, epsilon: float) -> Array:
    """Return a length for each draw: `movement_bound` is at most epsilon at slope 1 / length."""
    moved, small = np.abs(p[..., 1] - q[..., 1]), np.minimum(p[..., 2], q[..., 2])
    large = np.maximum(p[..., 2], q[..., 2])
    # what a moved component may be off by, where only a share of it moves
    allowed = np.log1p(math.expm1(epsilon) / np.maximum(presence_share(p, q), TINY))
    if kernel == "gaussian":
        # log(2 Phi(x)) <= x sqrt(2 / pi), so (moved + sqrt(2 v / pi)) L + v L^2 / 2 is a bound
        v = (large - small) * (large + small)
        linear = moved + np.sqrt(2.0 / math.pi * v)
        length = (linear + np.sqrt(linear**2 + 2.0 * v * allowed)) / (2.0 * allowed)
    else:
        # log(1 + w x / (1 - x)) <= 2 w x for x <= 1 / 2
        share = 1.0 - (small / large) ** 2
        length = (moved + 2.0 * share * large) / allowed
        length = np.where(share > 0.0, np.maximum(length, 2.0 * large), length)
    length = np.where(p[..., 0] > 0.0, length, 0.0).max(axis=1)
    comparable = np.isfinite(movement_bound(p, q, kernel, np.zeros(len(p))))
    return np.asarray(np.where(comparable, length, np.inf))
