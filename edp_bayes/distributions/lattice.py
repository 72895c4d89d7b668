"""Noise of any shape: a density that is linear between the points of a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.reprs import by_shapes

__all__ = ["LatticeNoise"]

TOLERANCE = 1e-9
FARTHEST = 2.0**52  # in spacings: cells beyond are no integers


@dataclass(frozen=True, eq=False)
class LatticeNoise:
    """Noise spacing * (K + U + V - 1), with K an integer and U, V uniform on [0, 1].

    The density is linear between the points of the lattice, where it is P(K = k) / spacing. Beyond
    the last weight on either side the probabilities fall geometrically.

    Parameters
    ----------
    spacing : float
        Distance of two points of the lattice, in the units of the response.
    weights : array_like
        Shape (2 L + 1,): P(K = k) for k = -L, ..., L.
    left, right : float
        P(K < -L) and P(K > L).
    decay : float
        Ratio of two neighbouring probabilities beyond L, in [0, 1).

    Raises
    ------
    InvalidInputError
        If the weights are not an odd number of non-negative values that sum, with both tails,
        to one, the spacing is not above zero or the decay lies outside of [0, 1).

    See Also
    --------
    LaplaceNoise : Laplace noise
    release : one noisy answer

    Examples
    --------
    >>> noise = LatticeNoise(0.5, [0.25, 0.5, 0.25])
    >>> noise.mean_absolute, round(float(noise.pdf(0.25)), 6)
    (0.3333333333333333, 0.75)
    """

    spacing: float
    weights: Array
    left: float
    right: float
    decay: float

    __repr__ = by_shapes

    def __init__(
        self,
        spacing: float,
        weights: ArrayLike,
        *,
        left: float = 0.0,
        right: float = 0.0,
        decay: float = 0.0,
    ) -> None:
        array = validate.finite_array(weights, "weights", ndim=1)
        tails = validate.finite_array([left, right, decay], "tails")
        if array.size % 2 == 0:
            raise InvalidInputError(f"weights must be an odd number of values, found {array.size}")
        if (array < 0).any() or (tails < 0).any() or tails[2] >= 1:
            raise InvalidInputError(
                "weights and tails must not be negative and the decay must be below 1, found a "
                f"least weight of {array.min():g}, tails {left:g} and {right:g}, decay {decay:g}"
            )
        total = array.sum() + tails[:2].sum()
        if abs(total - 1.0) > TOLERANCE:
            raise InvalidInputError(f"weights and tails must sum to 1, found {total:.12g}")
        array /= total
        array.setflags(write=False)
        object.__setattr__(self, "spacing", validate.positive_number(spacing, "spacing"))
        object.__setattr__(self, "weights", array)
        object.__setattr__(self, "left", float(tails[0] / total))
        object.__setattr__(self, "right", float(tails[1] / total))
        object.__setattr__(self, "decay", float(tails[2]))

    @property
    def half(self) -> int:
        """L, the number of weights on either side of zero."""
        return (self.weights.size - 1) // 2

    @property
    def tail_scale(self) -> float:
        """Scale of the exponential that the tails follow, 0 where the decay is 0."""
        return -self.spacing / math.log(self.decay) if self.decay > 0.0 else 0.0

    @property
    def log_lipschitz(self) -> float:
        """Largest slope of the log density, infinite where the density is zero somewhere."""
        if min(self.left, self.right, self.decay, float(self.weights.min())) == 0.0:
            return math.inf
        p = self.probability(np.arange(-self.half - 2, self.half + 3))
        return float((np.abs(np.diff(p)) / np.minimum(p[1:], p[:-1])).max()) / self.spacing

    def probability(self, k: ArrayLike) -> Array:
        """Return P(K = k) for integers of any shape."""
        index, half = np.asarray(k, dtype=np.int64), self.half
        inner = self.weights[np.clip(index + half, 0, 2 * half)]
        beyond = np.maximum(np.abs(index) - half - 1, 0).astype(np.float64)
        tail = np.where(index > 0, self.right, self.left)
        outer = tail * (1.0 - self.decay) * self.decay**beyond
        return np.asarray(np.where(np.abs(index) <= half, inner, outer))

    def cumulative(self, k: ArrayLike) -> Array:
        """Return P(K <= k) for integers of any shape."""
        index, half = np.asarray(k, dtype=np.int64), self.half
        inner = self.left + np.cumsum(self.weights)[np.clip(index + half, 0, 2 * half)]
        below = self.left * self.decay ** np.maximum(-half - 1 - index, 0).astype(np.float64)
        above = 1.0 - self.right * self.decay ** np.maximum(index - half, 0).astype(np.float64)
        return np.asarray(np.where(index < -half, below, np.where(index > half, above, inner)))

    @property
    def mean(self) -> float:
        """Mean of the noise."""
        k = np.arange(-self.half, self.half + 1)
        tails = (self.right - self.left) * self._tail_mean
        return self.spacing * float(self.weights @ k + tails)

    @property
    def mean_absolute(self) -> float:
        """Expected absolute noise."""
        k = np.abs(np.arange(-self.half, self.half + 1, dtype=np.float64))
        k[self.half] = 1.0 / 3.0
        tails = (self.right + self.left) * self._tail_mean
        return self.spacing * float(self.weights @ k + tails)

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        k = np.arange(-self.half, self.half + 1, dtype=np.float64)
        ratio = self.decay
        tail = self._tail_mean**2 + ratio / (1.0 - ratio) ** 2
        square = float(self.weights @ (k * k) + (self.right + self.left) * tail) + 1.0 / 6.0
        return self.spacing**2 * square - self.mean**2

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x, any shape."""
        t = self._in_spacings(x)
        k = np.floor(t)
        low, high = self.probability(k), self.probability(k + 1)
        return np.asarray((low + (t - k) * (high - low)) / self.spacing)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of noise up to x."""
        t = self._in_spacings(x)
        k = np.floor(t)
        part = t - k
        low, high = self.probability(k), self.probability(k + 1)
        # the hat at k has passed 1 - (1 - part)^2 / 2 of its mass, the hat at k + 1 part^2 / 2
        value = self.cumulative(k) - 0.5 * (1.0 - part) ** 2 * low + 0.5 * part**2 * high
        return np.asarray(np.clip(value, 0.0, 1.0))

    def _in_spacings(self, x: ArrayLike) -> Array:
        farthest = FARTHEST * self.spacing
        return np.clip(np.asarray(x, dtype=np.float64), -farthest, farthest) / self.spacing

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Return independent values; for simulation only, see `edp_bayes.noise.release`."""
        half = self.half
        choice = rng.choice(
            2 * half + 3, size=size, p=np.concatenate([[self.left], self.weights, [self.right]])
        )
        k = choice - half - 1
        beyond = rng.geometric(1.0 - self.decay, size) - 1
        k = k + np.where(np.abs(k) > half, np.sign(k) * beyond, 0)
        return np.asarray(self.spacing * (k + rng.random(size) + rng.random(size) - 1.0))

    @property
    def _tail_mean(self) -> float:
        return self.half + 1 + self.decay / (1.0 - self.decay)
