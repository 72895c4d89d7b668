"""Mixtures of Gaussian or Laplace kernels, one or a whole array of posterior draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions import kernels
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.reprs import by_shapes

__all__ = ["Mixture", "flat_draws"]

WEIGHT_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture density, or draws of it in leading axes.

    Parameters
    ----------
    weights, locations, scales : array_like
        Shape (..., component); they are broadcast against each other. Weights are non-negative
        and sum to one over the components; scales are above zero: standard deviations of
        Gaussian kernels, b of Laplace kernels exp(-abs(x) / b) / (2 b).
    kernel : {"gaussian", "laplace"}
        Family of every component.
    noise : GaussianNoise or LaplaceNoise, optional
        Independent noise added to the mixture. Gaussian noise on Gaussian kernels is absorbed
        into the scales; any other pair keeps it here and every density below includes it.

    Raises
    ------
    InvalidInputError
        If weights are negative or do not sum to one, scales are not positive, a value is not
        finite, the shapes do not broadcast or the kernel is unknown.

    See Also
    --------
    hockey_stick : delta between two mixtures
    edp_bayes.models.PyMCMixture : a PyMC model of your own
    audit_trace : audit a posterior drawn elsewhere

    Examples
    --------
    >>> from edp_bayes import Mixture
    >>> p = Mixture([0.5, 0.5], [-1.0, 1.0], 1.0)
    >>> round(float(p.pdf(0.0)), 6)
    0.241971
    """

    weights: NDArray[np.float64]
    locations: NDArray[np.float64]
    scales: NDArray[np.float64]
    kernel: str = "gaussian"
    noise: GaussianNoise | LaplaceNoise | None = None

    __repr__ = by_shapes

    def __init__(
        self,
        weights: ArrayLike,
        locations: ArrayLike,
        scales: ArrayLike,
        *,
        kernel: str = "gaussian",
        noise: GaussianNoise | LaplaceNoise | None = None,
    ) -> None:
        validate.choice(kernel, validate.KERNELS, "kernel")
        arrays = [
            np.atleast_1d(validate.finite_array(value, name))
            for value, name in (
                (weights, "weights"),
                (locations, "locations"),
                (scales, "scales"),
            )
        ]
        try:
            w, mu, s = np.broadcast_arrays(*arrays)
        except ValueError:
            raise InvalidInputError(
                "weights, locations and scales must broadcast to one shape (..., component), "
                f"found {arrays[0].shape}, {arrays[1].shape} and {arrays[2].shape}"
            ) from None
        if w.size == 0:
            raise InvalidInputError("a mixture needs at least one component, found none")
        if (w < 0).any():
            raise InvalidInputError(f"weights must not be negative, found {w.min()}")
        total = w.sum(axis=-1)
        if (np.abs(total - 1.0) > WEIGHT_TOLERANCE).any():
            worst = total.flat[int(np.argmax(np.abs(total - 1.0)))]
            raise InvalidInputError(
                f"weights must sum to 1 over the components, found a sum of {worst:.12g}"
            )
        if (s <= 0).any():
            raise InvalidInputError(f"scales must be greater than 0, found {s.min()}")
        if noise is not None and kernel == "gaussian" and isinstance(noise, GaussianNoise):
            s, noise = np.hypot(s, noise.scale), None
        for name, value in (("weights", w / total[..., None]), ("locations", mu), ("scales", s)):
            array = np.ascontiguousarray(value)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "kernel", str(kernel))
        object.__setattr__(self, "noise", noise)

    def logpdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log density at x, exact far into the tails.

        Parameters
        ----------
        x : array_like
            Finite points, any shape.

        Returns
        -------
        ndarray
            Shape (leading axes) + x.shape.
        """
        points = validate.finite_array(x, "x")
        # The sum over the components so far is total * exp(top), with top the largest of them.
        top = np.full(self._lead + points.shape, -np.finfo(float).max)
        total = np.zeros(top.shape)
        with np.errstate(divide="ignore"):
            for w, u, s in self._components(points):
                value = np.log(w) + self._log_density(u, s)
                ratio = np.exp(-np.abs(value - top))
                total = np.where(value > top, total * ratio + 1.0, total + ratio)
                np.maximum(top, value, out=top)
            return np.asarray(top + np.log(total))

    def pdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the density at x; shapes as in logpdf."""
        points = validate.finite_array(x, "x")
        result = np.zeros(self._lead + points.shape)
        for w, u, s in self._components(points):
            result += w * np.exp(self._log_density(u, s))
        return result

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of values up to x; shapes as in logpdf."""
        points = validate.finite_array(x, "x")
        result = np.zeros(self._lead + points.shape)
        for w, u, s in self._components(points):
            result += w * self._tail(u, s)
        return np.minimum(result, 1.0)

    def sf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of values above x, exact far into the upper tail."""
        points = validate.finite_array(x, "x")
        result = np.zeros(self._lead + points.shape)
        for w, u, s in self._components(points):
            result += w * self._tail(-u, s)
        return np.minimum(result, 1.0)

    def ppf(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return the quantiles of every draw, precise in both tails.

        Parameters
        ----------
        q : array_like
            Probabilities between 0 and 1, both left out, any shape.

        Returns
        -------
        ndarray
            Shape (leading axes) + q.shape.

        Raises
        ------
        InvalidInputError
            If a probability is not between 0 and 1.

        Examples
        --------
        >>> Mixture([0.5, 0.5], [-1.0, 1.0], 1.0).ppf([0.5, 0.975]).round(4)
        array([0.    , 2.6461])
        """
        from scipy import stats
        from scipy.optimize import elementwise

        level = validate.finite_array(q, "q")
        if ((level <= 0.0) | (level >= 1.0)).any():
            raise InvalidInputError(
                f"q must be between 0 and 1, both left out, found {level.min():g} to "
                f"{level.max():g}"
            )
        shape, components = self._lead + level.shape, self.weights.shape[-1]
        w, mu, s = (
            part.reshape(-1, components) for part in (self.weights, self.locations, self.scales)
        )
        draw, level = np.broadcast_arrays(np.arange(len(w))[:, None], level.ravel())

        def away(
            x: NDArray[np.float64], draw: NDArray[np.int64], level: NDArray[np.float64]
        ) -> Any:
            tails = np.zeros((2, *x.shape))
            for k in range(components):
                u, scale = x - mu[draw, k], s[draw, k]
                tails += w[draw, k] * np.stack([self._tail(u, scale), self._tail(-u, scale)])
            return np.where(level <= 0.5, tails[0] - level, (1.0 - level) - tails[1])

        # a sum of two is below the sum of their quantiles of q / 2 with probability at most q
        kernel = stats.norm if self.kernel == "gaussian" else stats.laplace
        low, high = kernel.ppf(0.5 * level), kernel.isf(0.5 * (1.0 - level))
        ends = [
            (mu[draw] + s[draw] * low[..., None]).min(axis=-1),
            (mu[draw] + s[draw] * high[..., None]).max(axis=-1),
        ]
        if self.noise is not None:
            kind = stats.norm if isinstance(self.noise, GaussianNoise) else stats.laplace
            ends[0] += self.noise.scale * kind.ppf(0.5 * level)
            ends[1] += self.noise.scale * kind.isf(0.5 * (1.0 - level))
        found = elementwise.find_root(away, tuple(ends), args=(draw, level))
        return np.asarray(found.x).reshape(shape)

    def masses(self, edges: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities of the cells between edges, and of both cells beyond them.

        Each keeps its relative precision far out: of every component the tail on its own side is
        taken, so that exp(epsilon) times a mass means something for any epsilon.

        Parameters
        ----------
        edges : array_like
            Finite, increasing, shape (edge,).

        Returns
        -------
        ndarray
            Shape (leading axes) + (edge + 1,).

        Examples
        --------
        >>> Mixture(1.0, 0.0, 1.0).masses([0.0, 12.0])
        array([5.00000000e-01, 5.00000000e-01, 1.77648211e-33])
        """
        points = validate.finite_array(edges, "edges")
        result = np.zeros((*self._lead, points.size + 1))
        # of every point, and of one beyond either end, where no tail and no location is left
        tails = np.zeros((2, *self._lead, points.size + 2))
        passed = np.zeros((*self._lead, points.size + 2), dtype=bool)
        passed[..., -1] = True
        for w, u, s in self._components(points):
            tail = self._tail(-np.abs(u), s)
            right = passed[..., 1:-1] = u > 0.0
            tails[0, ..., 1:-1] = np.where(right, 0.0, tail)
            tails[1, ..., 1:-1] = np.where(right, tail, 0.0)
            below, above = tails[..., 1:] - tails[..., :-1]
            # the cell with the location has what both tails leave
            crossing = passed[..., 1:] != passed[..., :-1]
            result += w * (below - above + crossing)
        return np.asarray(np.clip(result, 0.0, 1.0))

    def mean(self) -> NDArray[np.float64]:
        """Return the mean of every draw, shape (leading axes)."""
        return np.asarray(np.sum(self.weights * self.locations, axis=-1))

    def variance(self) -> NDArray[np.float64]:
        """Return the variance of every draw, noise included, shape (leading axes)."""
        centred = self.locations - self.mean()[..., None]
        within = np.square(self.scales) * (2.0 if self.kernel == "laplace" else 1.0)
        total = np.sum(self.weights * (within + np.square(centred)), axis=-1)
        if isinstance(self.noise, GaussianNoise):
            total = total + self.noise.scale**2
        elif isinstance(self.noise, LaplaceNoise):
            total = total + 2.0 * self.noise.scale**2
        return np.asarray(total)

    def sample(
        self, size: int, rng: np.random.Generator | int | None = None
    ) -> NDArray[np.float64]:
        """Return independent values of every draw.

        Parameters
        ----------
        size : int
            Number of values per draw.
        rng : numpy.random.Generator or int, optional
            Source of randomness or its seed. One uniform picks each component, then come the
            kernel's values and the noise's, always in this order.

        Returns
        -------
        ndarray
            Shape (leading axes) + (size,).
        """
        count = validate.positive_integer(size, "size")
        source = validate.generator(rng, "rng")
        shape = (*self._lead, count)
        uniform = source.random(shape)
        chosen = np.zeros(shape, dtype=np.int64)
        for edge in np.moveaxis(np.cumsum(self.weights, axis=-1)[..., :-1], -1, 0):
            chosen += uniform >= edge[..., None]
        chosen = np.minimum(chosen, self._last_positive()[..., None])
        location = np.take_along_axis(self.locations, chosen, axis=-1)
        scale = np.take_along_axis(self.scales, chosen, axis=-1)
        draw = source.standard_normal if self.kernel == "gaussian" else source.laplace
        values = location + scale * draw(size=shape)
        if isinstance(self.noise, GaussianNoise):
            values += source.normal(scale=self.noise.scale, size=shape)
        elif isinstance(self.noise, LaplaceNoise):
            values += source.laplace(scale=self.noise.scale, size=shape)
        return np.asarray(values)

    def convolve(self, noise: GaussianNoise | LaplaceNoise) -> Mixture:
        """Return the distribution of a value of this mixture plus independent noise.

        Raises
        ------
        InputTypeError
            If the noise is of neither kind.
        InvalidInputError
            If the sum has no closed density here: Laplace noise on a mixture that already
            carries Laplace noise, or both kinds on Laplace kernels.

        Examples
        --------
        >>> from edp_bayes.distributions.noise import GaussianNoise
        >>> Mixture(1.0, 0.0, 3.0).convolve(GaussianNoise(4.0)).scales
        array([5.])
        """
        if isinstance(noise, GaussianNoise):
            if self.kernel == "gaussian":
                return self._replaced(scales=np.hypot(self.scales, noise.scale))
            if self.noise is None:
                return self._replaced(noise=noise)
            if isinstance(self.noise, GaussianNoise):
                return self._replaced(
                    noise=GaussianNoise(math.hypot(self.noise.scale, noise.scale))
                )
        elif isinstance(noise, LaplaceNoise):
            if self.noise is None:
                return self._replaced(noise=noise)
        else:
            raise InputTypeError(
                f"noise must be GaussianNoise or LaplaceNoise, found {type(noise).__name__}"
            )
        raise InvalidInputError(
            f"{type(noise).__name__} cannot be added to {self.kernel} kernels that already carry "
            f"{self.noise}: the sum has no closed density; add noise once, or Gaussian noise only"
        )

    def __getitem__(self, index: Any) -> Mixture:
        """Return the draws at an index of the leading axes; components are kept whole."""
        if not self._lead:
            raise InvalidInputError("a single mixture has no leading axes to index")
        key = (*index, slice(None)) if isinstance(index, tuple) else (index, slice(None))
        if not any(k is Ellipsis for k in key):
            missing = len(self._lead) - sum(k is not None for k in key[:-1])
            key = (*key[:-1], *(slice(None),) * max(missing, 0), slice(None))
        return self._replaced(
            weights=self.weights[key], locations=self.locations[key], scales=self.scales[key]
        )

    def __len__(self) -> int:
        """Return the length of the first leading axis."""
        if not self._lead:
            raise InputTypeError("a single mixture has no length")
        return self._lead[0]

    @property
    def _lead(self) -> tuple[int, ...]:
        return self.weights.shape[:-1]

    def _replaced(self, **fields: Any) -> Mixture:
        """Return a copy with other fields, which are known to be valid, bit for bit."""
        copy = object.__new__(Mixture)
        for name in ("weights", "locations", "scales", "kernel", "noise"):
            value = fields.get(name, getattr(self, name))
            if isinstance(value, np.ndarray):
                value = np.ascontiguousarray(value)
                value.setflags(write=False)
            object.__setattr__(copy, name, value)
        return copy

    def _components(self, points: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.float64], ...]]:
        """Yield weight, centred points and scale of each component, ready to broadcast.

        One component at a time, so that memory does not grow with their number.
        """
        pad = (..., *(None,) * points.ndim)
        for k in range(self.weights.shape[-1]):
            w, mu, s = (a[..., k][pad] for a in (self.weights, self.locations, self.scales))
            yield w, points - mu, s

    def _distribution(
        self, u: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> kernels.Distribution:
        if self.noise is None:
            distribution = kernels.gaussian if self.kernel == "gaussian" else kernels.laplace
            return distribution(u, scale)
        extra = np.asarray(self.noise.scale)
        if self.kernel == "gaussian":
            return kernels.normal_laplace(u, scale, extra)
        if isinstance(self.noise, GaussianNoise):
            return kernels.normal_laplace(u, extra, scale)
        return kernels.two_laplaces(u, scale, extra)

    def _log_density(
        self, u: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self.noise is not None:
            return self._distribution(u, scale)[0]
        if self.kernel == "gaussian":
            return kernels.gaussian_log_density(u, scale)
        return kernels.laplace_log_density(u, scale)

    def _tail(self, u: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.noise is not None:
            return self._distribution(u, scale)[1]
        if self.kernel == "gaussian":
            return kernels.gaussian_tail(u, scale)
        return kernels.laplace_tail(u, scale)

    def _last_positive(self) -> NDArray[np.int64]:
        """Index of the last component of positive weight, which rounding must not pass."""
        positive = self.weights[..., ::-1] > 0
        return np.asarray(self.weights.shape[-1] - 1 - np.argmax(positive, axis=-1))


def flat_draws(mixture: Mixture) -> NDArray[np.float64]:
    """Return weights, locations and scales, all leading axes joined: (draw, 3, component)."""
    parts = (mixture.weights, mixture.locations, mixture.scales)
    return np.stack([part.reshape(-1, part.shape[-1]) for part in parts], axis=1)
