"""From draws of log ratios to draws of both distributions, of delta and of the local epsilon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.black_box.cells import DENSITY, POINT, Cells
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.epsilon_at import WholeCurves
from edp_bayes.utils.arrays import Array

__all__ = ["CellCurves", "Distributions", "delta_curves", "distributions", "local_epsilon"]

BETWEEN = np.linspace(0.0, 1.0, 5)
BEYOND = np.linspace(0.0, 1.0, 5)
BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Distributions:
    """Draws of both distributions over the cells.

    Attributes
    ----------
    log_ratio : ndarray
        Shape (draw, cell): log(p / q), which may be infinite.
    p, q : ndarray
        Shape (draw, cell): probabilities, each draw summing to one.
    """

    log_ratio: Array
    p: Array
    q: Array


@dataclass(frozen=True, eq=False)
class CellCurves(WholeCurves):
    """Evaluates delta of drawn distributions at any epsilon.

    Parameters
    ----------
    distributions : Distributions
        The draws.
    kind : str
        Kind of outcomes: continuous, discrete or mixed.
    """

    distributions: Distributions
    kind: str
    shared = False

    def between(
        self, epsilon: Array, left: int, target: float, rows: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return a lower and an upper bound of delta; see `edp_bayes.results.epsilon_at`."""
        own = self.distributions
        some = Distributions(own.log_ratio[rows], own.p[rows], own.q[rows])
        found = delta_curves(some, epsilon)
        return found, found

    def end(self, instead: str) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, or say why there is none."""
        if self.kind != "discrete":
            raise InvalidInputError(
                f"delta must be above 0 here, found 0: of {self.kind} outcomes the tails were not "
                f"seen, where ratios may be without bound; {instead}, or see local_epsilon"
            )
        p, q = self.distributions.p, self.distributions.q
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(np.log(p) - np.log(q))
        return np.asarray(np.where(p == q, 0.0, ratio).max(axis=1))


def distributions(cells: Cells, log_ratio: Array, rng: np.random.Generator) -> Distributions:
    """Return both distributions from log ratios and the pooled distribution of the cells.

    The pooled distribution has a Dirichlet posterior (vanishing prior). The field treats the size
    of each sample as random; it is not, so draws are conditioned on the pooled share of the first
    sample being what it is, by regression on its logit: exact for a normal posterior, and cells
    that share a level still share it afterwards.
    """
    total = cells.a + cells.b
    offset = float(np.log(cells.sizes[0] / cells.sizes[1]))
    mass = rng.standard_gamma(total, (len(log_ratio), total.size))
    mass = np.maximum(mass, np.finfo(float).tiny)
    mass /= mass.sum(axis=1, keepdims=True)
    share = (mass * _logistic(log_ratio + offset)).sum(axis=1)
    excess = np.log(share) - np.log1p(-share) - offset if _inside(share) else np.zeros(share.size)
    ratio = log_ratio.copy()
    finite = np.isfinite(log_ratio).all(axis=0)
    ratio[:, finite] -= _explained(log_ratio[:, finite], excess)
    log_mass = np.log(mass)
    mass = np.exp(log_mass - _explained(log_mass, excess))
    first = _logistic(ratio + offset)
    p, q = mass * first, mass * (1.0 - first)
    return Distributions(ratio, p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True))


def delta_curves(found: Distributions, epsilon: Array) -> Array:
    """Return delta(epsilon), the larger of both hockey-stick sums, shape (draw, epsilon).

    Epsilons are the same in all draws, shape (epsilon,), or each draw's own, (draw, epsilon).
    """
    out = np.empty((len(found.p), epsilon.shape[-1]))
    for e in range(out.shape[1]):
        growth = np.exp(epsilon[..., e, None])
        forward = np.maximum(found.p - growth * found.q, 0.0).sum(axis=1)
        backward = np.maximum(found.q - growth * found.p, 0.0).sum(axis=1)
        out[:, e] = np.maximum(forward, backward)
    return np.clip(out, 0.0, 1.0)


def local_epsilon(cells: Cells, found: Distributions, tau: float) -> Array:
    """Return sup abs(log p - log q) over outcomes with max(p, q) >= tau, shape (draw,).

    For a value, tau is a probability; for densities it is relative to the largest value of the
    larger density. Between the centres of bins the log ratio and the logarithm of the pooled
    density are interpolated linearly, so that the edge of the set may lie within a bin.
    """
    points = cells.role == POINT
    kept = np.maximum(found.p, found.q)[:, points] >= tau
    largest = np.where(kept, np.abs(found.log_ratio[:, points]), 0.0).max(axis=1, initial=0.0)
    lines = np.unique(cells.stratum[cells.role == DENSITY])
    if lines.size:
        step = max(1, BLOCK // (8 * cells.a.size))
        for start in range(0, len(largest), step):
            rows = slice(start, start + step)
            largest[rows] = np.maximum(largest[rows], _over_lines(cells, found, lines, rows, tau))
    return largest


def _over_lines(cells: Cells, found: Distributions, lines: Array, rows: slice, tau: float) -> Array:
    parts = [_on_line(cells, found, cells.stratum == line, rows) for line in lines]
    peak = np.max([density.max(axis=1) for density, _ in parts], axis=0)
    floor = peak[:, None] + np.log(tau)
    tops = [np.where(d >= floor, np.abs(r), 0.0).max(axis=1) for d, r in parts]
    return np.asarray(np.max(tops, axis=0))


def _on_line(cells: Cells, found: Distributions, here: Array, rows: slice) -> tuple[Array, Array]:
    """Return the log of the larger density and the log ratio at points of a line."""
    ratio = found.log_ratio[rows, here]
    width, position = cells.width[here], cells.position[here]
    log_density = np.log(found.p[rows, here] + found.q[rows, here]) - np.log(width)
    if position.size > 1:
        points = _points(position, width)
        right = np.clip(np.searchsorted(position, points, side="right"), 1, position.size - 1)
        share = (points - position[right - 1]) / (position[right] - position[right - 1])
        within = np.clip(share, 0.0, 1.0)
        # Beyond the outermost centres the density goes on falling, and the ratio stays.
        log_density = log_density[:, right - 1] * (1 - share) + log_density[:, right] * share
        ratio = _between(ratio[:, right - 1], ratio[:, right], within)
    return log_density - np.log1p(np.exp(-np.abs(ratio))), ratio


def _points(position: Array, width: Array) -> Array:
    inner = position[:-1, None] + np.diff(position)[:, None] * BETWEEN[:-1]
    left = position[0] - 0.5 * width[0] * BEYOND[:0:-1]
    right = position[-1] + 0.5 * width[-1] * BEYOND
    return np.concatenate([left, inner.ravel(), right])


def _between(left: Array, right: Array, share: Array) -> Array:
    """Interpolate; next to an infinite value take the nearer one."""
    with np.errstate(invalid="ignore"):
        value = left * (1.0 - share) + right * share
    nearer = np.where(share < 0.5, left, right)
    return np.where(np.isfinite(left) & np.isfinite(right), value, nearer)


def _explained(values: Array, excess: Array) -> Array:
    """Return the part of every column that a regression on the excess explains."""
    centred = excess - excess.mean()
    spread = float(centred @ centred)
    if spread == 0.0:
        return np.zeros_like(values)
    return np.multiply.outer(excess, centred @ values / spread)


def _inside(share: Array) -> bool:
    return bool(((share > 0.0) & (share < 1.0)).all())


def _logistic(z: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(z, -700.0, 700.0))))
