"""Individual risks of a noisy query: exact integrals, or quadrature with a bound on its error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise
from edp_bayes.noise.certificates.curvature import values_and_bends
from edp_bayes.noise.certificates.densities import NoisyDensities, noise_rows, tail_scale
from edp_bayes.noise.certificates.ratios import Pairs, doubtful_pairs, lattice_for, limits
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior
from edp_bayes.utils.arrays import Array, Index

__all__ = ["TAILS", "NoisyCoupling"]

NUMBERS = 2**20
FLOOR = 1e-12  # risks up to this are not distinguished from zero
TOLERANCE = 1e-3  # error of the quadrature, relative to the result, that is looked for
ABSOLUTE = 1e-6
FINEST = 64
TAILS = 20.0  # scales of the tail up to which it is integrated


@dataclass(eq=False)
class NoisyCoupling:
    """The noisy response with and without each individual, as an audit takes them.

    Parameters
    ----------
    posterior : Posterior
        The distributions without noise.
    noise : NoiseDistribution
        Laplace noise, Gaussian noise, no noise and mixtures of these are integrated exactly;
        lattice noise by quadrature.

    Attributes
    ----------
    errors : dict
        For each epsilon, the largest bound on the error of a quadrature so far.
    """

    posterior: Posterior
    noise: NoiseDistribution
    errors: dict[float, float] = field(default_factory=dict)

    @property
    def mixture(self) -> Mixture:
        """Distribution of the response without noise."""
        return self.posterior.coupling.mixture

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return self.posterior.n_individuals

    @property
    def n_draws(self) -> int:
        """Number of draws, all chains together."""
        return self.posterior.n_draws

    @property
    def exact(self) -> bool:
        """Whether the integrals have closed forms between their sign changes."""
        return not any(
            isinstance(distribution, LatticeNoise) for distribution in self.noise.components
        )

    def error(self, epsilon: float) -> float:
        """Return a bound on the error of any delta_i computed so far."""
        return FLOOR + self.errors.get(epsilon, 0.0)

    def relevant(self, epsilon: Array) -> tuple[Index, Array]:
        """Return everybody: `curves` leaves out pairs that a bound shows to have no risk."""
        return np.arange(self.n_individuals), np.zeros_like(epsilon)

    def curves(self, individuals: Index, epsilon: Array, *, out: Array | None = None) -> Array:
        """Return delta_i(eps), shape (draw, individual, epsilon), in `out` if given."""
        if self._widened is not None:
            return self._widened.curves(individuals, epsilon, out=out)
        if out is None:
            out = np.empty((self.n_draws, len(individuals), epsilon.size))
        return self._by_pairs(individuals, epsilon, np.arange(self.n_draws), out)

    def risks(self, individuals: Index, epsilon: Array, draws: Index) -> Array:
        """Return delta_i(eps) in some draws, shape (draw, individual, epsilon)."""
        if self._widened is not None:
            return self._widened.curves(individuals, epsilon)[draws]
        out = np.empty((draws.size, individuals.size, epsilon.size))
        return self._by_pairs(individuals, epsilon, draws, out)

    @cached_property
    def _widened(self) -> RegressionCoupling | None:
        """The coupling itself with Gaussian noise on Gaussian kernels, for which it is fast."""
        coupling, distribution = self.posterior.coupling, self.noise.components[0]
        fast = isinstance(coupling, RegressionCoupling) and self.posterior.kernel == "gaussian"
        if (
            not fast
            or len(self.noise.components) > 1
            or not isinstance(distribution, GaussianNoise)
        ):
            return None
        assert isinstance(coupling, RegressionCoupling)
        return replace(coupling, noise=distribution)

    def _by_pairs(self, individuals: Index, epsilon: Array, draws: Index, out: Array) -> Array:
        out[...] = 0.0
        pairs = doubtful_pairs(
            self.posterior, self.noise, float(epsilon[0]), draws, np.asarray(individuals)
        )
        for pair in pairs:
            value = self._exact(pair, epsilon) if self.exact else self._quadrature(pair, epsilon)
            out[pair.rows, pair.column] = value
        out[out <= FLOOR] = 0.0
        return out

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return the densities without noise; noise is added where they are integrated."""
        return self.posterior.coupling.pair(individual)

    def _exact(self, pair: Pairs, epsilon: Array) -> Array:
        from edp_bayes.divergence.any_pair import curves as any_pair

        kernel = self.posterior.kernel
        p, q = (noise_rows(part, kernel, self.noise) for part in (pair.p, pair.q))
        return np.asarray(any_pair.curves(p, q[:, None], epsilon, floor=FLOOR)[:, 0])

    def _quadrature(self, pair: Pairs, epsilon: Array) -> Array:
        result = np.zeros((pair.rows.size, epsilon.size))
        error = np.full_like(result, np.inf)
        fine = 1
        todo = np.arange(pair.rows.size)
        while todo.size:
            lattice = self._lattice(pair, todo, fine)
            size = max(1, NUMBERS // lattice.count)
            for start in range(0, todo.size, size):
                rows = todo[start : start + size]
                result[rows], error[rows] = self._integrals(
                    pair.p[rows], pair.q[rows], epsilon, lattice
                )
            poor = error[todo] > np.maximum(TOLERANCE * result[todo], ABSOLUTE)
            todo, fine = todo[poor.any(axis=1)], fine * 4
            if fine > FINEST:
                break
        for e, largest in zip(epsilon, error.max(axis=0), strict=True):
            self.errors[float(e)] = max(self.errors.get(float(e), 0.0), float(largest))
        return result

    def _lattice(self, pair: Pairs, rows: Index, fine: int) -> NoisyDensities:
        p, q = pair.p[rows], pair.q[rows]
        return lattice_for(self.noise, self.posterior.kernel, p, q, fine, tails=TAILS)

    def _integrals(
        self, p: Array, q: Array, epsilon: Array, lattice: NoisyDensities
    ) -> tuple[Array, Array]:
        """Return the larger integral of both directions and a bound on its error, (draw, eps)."""
        values, bends = values_and_bends(p, q, lattice)
        kinks = [self._kinks(part) for part in (p, q)]
        limit = limits(p, q, self.posterior.kernel, self.noise)
        tails = [max(tail_scale(self.noise, side), float(p[..., 2].max())) for side in (-1, 1)]
        result, error = np.zeros((2, len(p), epsilon.size))
        for e, eps in enumerate(epsilon):
            growth = math.exp(eps)
            for a, b in ((0, 1), (1, 0)):
                f = values[a] - growth * values[b]
                total, doubt = _positive_part(f, bends[a] + growth * bends[b], lattice.step)
                doubt = doubt + lattice.step**2 / 8.0 * (kinks[a] + growth * kinks[b])
                open_ = (limit > eps) | (f[:, 0] > 0.0) | (f[:, -1] > 0.0)
                ends = values[a][:, 0] * tails[0] + values[a][:, -1] * tails[1]
                doubt = doubt + np.where(open_, ends, 0.0)
                result[:, e] = np.maximum(result[:, e], total)
                error[:, e] = np.maximum(error[:, e], doubt)
        return result, error

    def _kinks(self, part: Array) -> Array:
        """Return by how much the slope jumps at the peaks an atom leaves, all together, (draw,)."""
        if self.posterior.kernel == "gaussian" or self.noise.atom == 0.0:
            return np.zeros(len(part))
        return np.asarray(self.noise.atom * (part[..., 0] / part[..., 2] ** 2).sum(axis=1))


def _positive_part(f: Array, curvature: Array, step: float) -> tuple[Array, Array]:
    """Return the integral of the positive part of the chords of f, and a bound on its error.

    In a cell f is within step^2 / 8 curvature of its chord, and so is the positive part; a cell
    where that is not enough to reach zero adds nothing.
    """
    left, right = f[:, :-1], f[:, 1:]
    top, bottom = np.maximum(left, right), np.minimum(left, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(top > bottom, top**2 / (top - bottom), 0.0)
    area = np.where(bottom >= 0.0, left + right, np.where(top > 0.0, crossing, 0.0))
    may_count = top + step**2 / 8.0 * curvature > 0.0
    error = np.where(may_count, step**3 / 12.0 * curvature, 0.0)
    return 0.5 * step * area.sum(axis=1), error.sum(axis=1)
