"""Bounds on log ratios of many pairs at once, from tables of noisy normal kernels.

G(x; v) is the density of a normal kernel of variance v plus the noise, and solves the heat equation
dG/dv = G'' / 2. Where abs(G'') <= C G everywhere, the same holds with the same C for every larger
v, and abs(G') <= sqrt(C) G: this bounds ratios of mixtures between points. Tables hold log G, which
is nearly linear in x and in v where the noise's tail prevails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.curves.one_answer import given_and_without, relative_presence
from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.noise.certificates.smoothing import triangle_values
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["KernelTables", "NoisyKernel", "kernel_tables", "noisy_kernel"]

# Shares of epsilon that bounds may lose to the points of a pair, and to both axes of the tables.
POINTS, PLACES, VARIANCES = 0.05, 0.01, 0.02
NARROWEST = 1.5  # scales below so many spacings leave ripples in the tails
WIDEST = 1.2  # times the largest scale of any component
REACH = 10.0  # scales of a kernel beyond which only the noise's tail is left
CUT = 9.0  # scales beyond which a normal density is left out
# v times the second derivative of log G in x, and v^2 times that in v, as they usually are at most
USUAL_BEND, USUAL_CHANGE = 1.0, 3.0
LONGEST = 0.7  # of a stride, in units of 1 / sqrt(C)
LARGEST = 700.0  # log ratio whose exponential is finite
LINES, WINDOWS = 12, 24
LEVELS_A_LINE = 4  # levels that share lines
MOST_CELLS = 20_000  # of the noise's lattice, after which a kernel's own tail ends
MOST_SCALES = 10.0  # of Laplace noise, for a kernel: log G bends too much in v beyond
BETWEEN = 4  # points of Laplace noise for one that is kept
LEAST_PAIRS = 32  # for which a thread is started


class KernelTables(NamedTuple):
    """Log densities of noisy normal kernels for increasing variances, each on its own lattice.

    Attributes
    ----------
    variance, step, edge, curvature : ndarray
        Shape (level,): the variances; steps of the lattices; where only the tail is left on both
        sides; C with abs(G'') <= C G for this and every larger variance.
    rise, slope : ndarray
        Shape (level / LEVELS_A_LINE, line): log G changes by at most rise + slope t over any
        distance t, for these and all larger variances and every line. The first rise is 0.
    first : ndarray of int
        Shape (level + 1,): where each level's values begin.
    values : ndarray
        All levels' values, from -edge to edge.
    tail : float
        Scale of the noise's tails.
    error : ndarray
        Shape (level - 1,): largest error of a value between the points and this level and the next.
    """

    variance: Array
    step: Array
    edge: Array
    curvature: Array
    rise: Array
    slope: Array
    first: Index
    values: Array
    tail: float
    error: Array

    def log_lipschitz(self, scales: Array) -> Array:
        """Return sup abs(G') / G of kernels of at least the given scales, infinite below all."""
        level = np.searchsorted(self.variance, scales**2 * (1.0 + 1e-12), side="right") - 1
        known = self.slope[np.maximum(level, 0) // LEVELS_A_LINE, 0]
        return np.where(level >= 0, known, np.inf)

    def bounds(
        self,
        base: Array,
        distribution: ContributionDraws,
        rows: Index,
        columns: Index,
        epsilon: float,
    ) -> Array:
        """Return a bound on the log ratio of some pairs, infinite above epsilon: (pair,).

        Parameters
        ----------
        base : ndarray, shape (draw, 3, component)
            Weights, locations and scales of p.
        distribution : ContributionDraws
            How everybody contributes.
        rows, columns : ndarray of int
            Shape (pair,): draw and individual of each pair.
        epsilon : float
            Where looking for a bound ends.
        """
        moves = tuple(part[rows, columns] for part in distribution.moves)
        out = np.empty(rows.size)
        in_threads(_bounds, rows.size, base, rows, moves, self, epsilon, out, least=LEAST_PAIRS)
        return out


@lru_cache(maxsize=2)
def kernel_tables(
    noise: LatticeNoise | LaplaceNoise, least: float, largest: float, epsilon: float
) -> KernelTables | None:
    """Tabulate kernels of scales from `least` on, closely enough for bounds at epsilon.

    Pairs with a component below, much too narrow for the noise's lattice or far above the `largest`
    have no bound. None where all kernels are too wide for the noise, and where `noisy_kernel` has
    nothing to say.
    """
    if isinstance(noise, LatticeNoise):
        least = max(least, NARROWEST * noise.spacing)
    ratio = 1.0 + math.sqrt(8.0 * VARIANCES * epsilon / USUAL_CHANGE)
    top = min(WIDEST * max(largest, least), math.sqrt(_widest(noise)))
    if top <= least:
        return None
    count = 2 + math.ceil(2.0 * math.log(top / least) / math.log(ratio))
    variance = np.geomspace(least**2, top**2, count)
    close = math.sqrt(8.0 * PLACES * epsilon / USUAL_BEND)
    found = [noisy_kernel(noise, float(v), close) for v in variance]
    levels = [level for level in found if level is not None]
    if len(levels) < count:
        return None
    step = np.array([level.step for level in levels])
    change = np.array([level.change for level in levels])
    along = step**2 / 8.0 * np.array([level.bend for level in levels])
    across = np.diff(variance) ** 2 / 8.0 * np.maximum(change[1:], change[:-1])
    lines = [_lines(level, noise.tail_scale) for level in levels[::LEVELS_A_LINE]]
    return KernelTables(
        variance=variance,
        step=step,
        edge=np.array([level.edge for level in levels]),
        curvature=np.array([level.curvature for level in levels]),
        rise=np.stack([each[0] for each in lines]),
        slope=np.stack([each[1] for each in lines]),
        first=np.cumsum([0, *(level.values.size for level in levels)]),
        values=np.concatenate([level.values for level in levels]),
        tail=noise.tail_scale,
        error=np.maximum(along[1:], along[:-1]) + across,
    )


@dataclass(frozen=True, eq=False)
class NoisyKernel:
    """A normal kernel with noise: log G from -edge to edge, and bounds on its derivatives.

    Attributes
    ----------
    curvature : float
        Largest abs(G'') / G.
    bend, change : float
        Largest second derivatives of log G in x and in v.
    """

    values: Array
    step: float
    edge: float
    curvature: float
    bend: float
    change: float

    @property
    def log_lipschitz(self) -> float:
        """Largest slope of log G; beyond the edge it is that of the noise's tails."""
        largest = float(np.abs(np.diff(self.values)).max())
        return largest / self.step + 0.5 * self.step * self.bend


def noisy_kernel(noise: LatticeNoise | LaplaceNoise, v: float, close: float) -> NoisyKernel | None:
    """Tabulate one variance, at points no more than `close` scales apart.

    None where the noise has no geometric tails on both sides, where the kernel is so wide that
    they begin only very far out, and where the noise has gaps too wide for the kernel.
    """
    if v > 1.01 * _widest(noise):
        return None
    if isinstance(noise, LaplaceNoise):
        return _with_laplace(noise.scale, v, close)
    return _with_lattice(noise, v, close)


def _widest(noise: LatticeNoise | LaplaceNoise) -> float:
    """Return a variance: far wider kernels than the noise reach its tail only very far out."""
    if isinstance(noise, LaplaceNoise):
        return (MOST_SCALES * noise.scale) ** 2
    return MOST_CELLS * noise.spacing * noise.tail_scale


def _with_laplace(b: float, v: float, close: float) -> NoisyKernel:
    """Tabulate Laplace noise, for which b^2 G'' is G less the kernel."""
    from scipy.special import log_ndtr

    s = math.sqrt(v)
    step = close * s / BETWEEN
    half = BETWEEN * math.ceil((REACH * s + v / b) / (BETWEEN * step))
    x = step * np.arange(-half, half + 1)
    sides = (log_ndtr(side * x / s - s / b) - side * x / b for side in (1.0, -1.0))
    values = np.logaddexp(*sides) + 0.5 * v / b**2 - math.log(2.0 * b)
    kernel = np.exp(-0.5 * (x / s) ** 2 - values) / (s * math.sqrt(2.0 * math.pi))
    second = (1.0 - kernel) / b**2
    fourth = (second - kernel * ((x / s) ** 2 - 1.0) / v) / b**2
    return _kept(values, second, fourth, step, BETWEEN, s)


def _with_lattice(noise: LatticeNoise, v: float, close: float) -> NoisyKernel | None:
    """Tabulate noise on a lattice, whose second derivative is a sum of atoms at its points.

    That of G is their sum with a normal density at each, and the fourth the sum with its second
    derivative.
    """
    s, spacing = math.sqrt(v), noise.spacing
    if min(noise.decay, noise.left, noise.right) == 0.0:
        return None
    wanted = close * s
    fine = max(1, math.ceil(spacing / wanted))
    coarse = max(1, math.floor(wanted / spacing))
    cells = (
        math.ceil((noise.half + 4 + (REACH * s + v / noise.tail_scale) / spacing) / coarse) * coarse
    )
    near = math.ceil(CUT * s / spacing) + 1
    weight = noise.probability(np.arange(-cells - near - 1, cells + near + 2))
    x = spacing / fine * np.arange(-near * fine, near * fine + 1)
    triangle = triangle_values(
        np.array([[[1.0, 0.0, s]]]), "gaussian", start=x[0], step=spacing / fine, count=x.size,
        spacing=spacing,
    )[0]  # fmt: skip
    z = (x / s) ** 2
    density = np.exp(-0.5 * z) / (s * math.sqrt(2.0 * math.pi))
    bend = np.diff(weight, 2) / spacing**2
    total = _spread(weight[1:-1], triangle, near, fine)
    if total.min() <= 0.0:
        return None
    second = _spread(bend, density, near, fine) / total
    fourth = _spread(bend, density * (z - 1.0) / v, near, fine) / total
    return _kept(np.log(total), second, fourth, spacing / fine, coarse, s)


def _kept(
    values: Array, second: Array, fourth: Array, step: float, every: int, s: float
) -> NoisyKernel:
    """Return every so many of the values, with what the derivatives over G are at most."""
    slope = np.gradient(values, step)
    inflation = math.exp(every * step / s)  # for what lies between the points
    curvature, curving, change = (
        float(np.abs(part).max()) * inflation
        for part in (second, second - slope**2, 0.25 * (fourth - second**2))
    )
    edge = 0.5 * (values.size - 1) * step
    values = np.ascontiguousarray(values[::every])
    return NoisyKernel(values, every * step, edge, curvature, curving, change)


def _lines(level: NoisyKernel, tail: float) -> Array:
    """Return lines above the change of log G over a distance: rises and slopes, (2, LINES).

    Points at a distance of at most j steps lie in j + 1 cells next to each other. Beyond the table
    the slope is that of the tail, and over longer distances the changes of parts add up: both are
    below any line with a slope of at least these.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    log, step = level.values, level.step
    margin = step**2 / 8.0 * level.bend
    top = np.maximum(log[1:], log[:-1]) + margin
    bottom = np.minimum(log[1:], log[:-1]) - margin
    steepest = level.log_lipschitz
    cells = np.unique(np.geomspace(1, top.size - 1, WINDOWS).astype(np.int64))
    change = np.array(
        [
            (maximum_filter1d(top, j + 1, mode="nearest")
             - minimum_filter1d(bottom, j + 1, mode="nearest")).max()
            for j in cells
        ]
    )  # fmt: skip
    change = np.minimum(change, steepest * step * cells)
    # the change over distances up to cells[k], seen from the shortest of them
    distance = step * np.concatenate([[0], cells[:-1]])
    least = max(1.0 / tail, float(change[-1] / (step * cells[-1])))
    slopes = np.geomspace(steepest, min(least, steepest), LINES)
    rises = np.maximum((change - slopes[:, None] * distance).max(axis=1), 0.0)
    rises[0] = 0.0
    return np.stack([rises, slopes])


def _spread(weight: Array, kernel: Array, near: int, fine: int) -> Array:
    """Return the sum of kernels at the points of the lattice, on one `fine` times finer."""
    cells = weight.size - 2 * near
    out = np.empty((cells - 1) * fine + 1)
    for offset in range(fine):
        # kernel at x - k spacing for x = offset, and k from near to -near
        part = kernel[offset::fine]
        target = out[offset::fine]
        target[:] = np.convolve(weight, part, mode="full")[2 * near : 2 * near + target.size]
    return out


@compiled
def _bounds(  # type: ignore[no-untyped-def]
    first, last, base, rows, moves, tables, epsilon, out
):
    """Fill in bounds on abs(log(p / p_i)) with the noise, (pair,), infinite above epsilon.

    base (draw, 3, K); rows (pair,), the draw of each pair; moves rho (pair, K), a, b, tau2 (pair,);
    tables as in `KernelTables`. Walks over x from the left of all kernels to the right. With
    p = (1 - rho) q + rho g and rho the largest presence ("An individual who is sometimes absent",
    docs/mathematics/individuals.md) bounds on log(g / q) bound log(p / q).
    """
    rho, a, b, tau2 = moves
    variance, step, edge, curvature, _, _, start, values, tail, error = tables
    size = base.shape[2]
    distribution, without = np.empty((2, size)), np.empty((2, size))
    # presence relative to the largest: g has so much of the component given presence
    part = np.empty(size)
    # first the components without, then those given presence
    level = np.empty(2 * size, np.int64)
    weight, place, wide = np.empty(2 * size), np.empty(2 * size), np.empty(2 * size)
    share, reach, stride = np.empty(2 * size), np.empty(2 * size), np.empty(2 * size)
    for j in range(first, last):
        parts, present = base[rows[j]], relative_presence(rho[j], part)
        if present == 0.0:
            out[j] = 0.0
            continue
        given_and_without(parts, rho[j], a[j], b[j], tau2[j], 1.0, 0.0, distribution, without)
        out[j] = np.inf
        usable = True
        for k in range(2 * size):
            side = without if k < size else distribution
            weight[k], place[k] = parts[0, k % size], side[0, k % size]
            wide[k] = side[1, k % size] ** 2
            at = np.searchsorted(variance, wide[k] * (1.0 + 1e-12), side="right") - 1
            level[k] = at
            if weight[k] > 0.0 and (at < 0 or at + 1 >= variance.size):
                usable = False
        if not usable:
            continue
        bound = _by_movement(parts, distribution, without, level, tables)
        # p / q = 1 + rho (g / q - 1); for abs(log(g / q)) at most the bound the upper end is the
        # farther from 1, in logarithms
        bound = math.log1p(present * math.expm1(min(bound, LARGEST)))
        if bound <= epsilon:
            out[j] = bound
            continue
        off, low, high = 0.0, np.inf, -np.inf
        for k in range(2 * size):
            if weight[k] > 0.0:
                at = level[k]
                share[k] = (wide[k] - variance[at]) / (variance[at + 1] - variance[at])
                reach[k], stride[k] = edge[at + 1], 1.0 / math.sqrt(curvature[at])
                off = max(off, error[at])
                low, high = min(low, place[k] - reach[k]), max(high, place[k] + reach[k])
        # what the part that they are present in may differ by, more and less: abs(log(p / q))
        # <= eps where 1 - (1 - exp(-eps)) / rho <= g / q <= 1 + (exp(eps) - 1) / rho
        missing = -math.expm1(-epsilon) / present
        upper = math.log1p(math.expm1(epsilon) / present)
        lower = -math.log1p(-missing) if missing < 1.0 else LARGEST
        least = min(math.sqrt(4.0 * POINTS * upper), LONGEST)
        x, above, below = low, 0.0, 0.0
        # theta: the stride, in units of 1 / sqrt(C) or of the tail's scale; lost: what log(g / q)
        # may differ by within it; before, after: at its ends; origin: where it begins
        theta, lost, before, after = 0.0, 2.0 * off, 0.0, 0.0
        origin = low
        while True:
            q = g = 0.0
            for k in range(2 * size):
                if weight[k] == 0.0:
                    continue
                u = x - place[k]
                value = weight[k] * _value(u, level[k], share[k], step, edge, start, values, tail)
                if k < size:
                    q += value
                    g += (1.0 - part[k]) * value
                else:
                    g += part[k - size] * value
            after = math.log(g / q)
            if x == low:
                before = after
            # between two points g / q of linear interpolations lies between those at the points,
            # and lost is what interpolation and tables may change log(g / q) by
            more, less = max(before, after) + lost, lost - min(before, after)
            if not (more <= upper and less <= lower):
                if theta <= least:
                    bound = np.inf
                    break
                theta = max(0.5 * theta, least)
            else:
                above, below = max(above, more), max(below, less)
                if x >= high:
                    bound = max(
                        math.log1p(present * math.expm1(above)),
                        -math.log1p(present * math.expm1(-below)),
                    )
                    break
                # half of what is left over may be lost in the next stride
                origin, before = x, after
                theta = math.sqrt(2.0 * max(min(upper - after, lower + after) - 2.0 * off, 0.0))
                theta = max(min(theta / math.sqrt(math.exp(min(theta, 1.0))), LONGEST), least)
            # over a stride h <= theta / sqrt(C) abs(G'') <= C G and abs(G') <= sqrt(C) G, so that G
            # is its linear interpolation times 1 +- h^2 C exp(theta) / 8, and so are sums; in a
            # tail C = 1 / tail^2
            eta = theta**2 / 8.0 * math.exp(theta)
            lost = math.log1p(eta) - math.log1p(-eta) + 2.0 * off
            move = theta * tail
            for k in range(2 * size):
                if weight[k] > 0.0:
                    u = origin - place[k]
                    # a kernel shortens the stride from where its reach begins
                    if u <= reach[k]:
                        move = min(move, max(-reach[k] - u, theta * stride[k]))
            x = min(origin + move, high)
        if bound <= epsilon:
            out[j] = bound


@compiled
def _by_movement(parts, distribution, without, level, tables):  # type: ignore[no-untyped-def]
    """Bound log(g / q) by that of every component, moved and widened by an independent amount.

    log E exp(slope abs(Z)) <= x^2 / 2 + min(x sqrt(2 / pi), log 2) for Z ~ N(0, (x / slope)^2).
    The wider density is E G(. + Z) of the narrower, so it differs by a factor of at most
    E exp(rise + slope (moved + abs(Z))), in both directions, and any line serves.
    """
    rise, slope, size, largest = tables.rise, tables.slope, distribution.shape[1], 0.0
    for k in range(size):
        if parts[0, k] == 0.0:
            continue
        at = min(level[k], level[size + k]) // LEVELS_A_LINE
        moved = abs(distribution[0, k] - without[0, k])
        wider = math.sqrt(
            abs((distribution[1, k] - without[1, k]) * (distribution[1, k] + without[1, k]))
        )
        best = np.inf
        for line in range(rise.shape[1]):
            x = slope[at, line] * wider
            spread = 0.5 * x * x + min(x * math.sqrt(2.0 / math.pi), math.log(2.0))
            best = min(best, rise[at, line] + slope[at, line] * moved + spread)
        largest = max(largest, best)
    return largest


@compiled
def _value(u, level, share, step, edge, start, values, tail):  # type: ignore[no-untyped-def]
    """Return G(u; v), whose log is linear between the points and between two levels.

    share is that of the upper level; beyond the edge log G falls by 1 / tail, the noise's own
    slope.
    """
    total = 0.0
    for upper in range(2):
        at = level + upper
        beyond = abs(u) - edge[at]
        if beyond >= 0.0:
            value = values[start[at + 1] - 1] if u > 0.0 else values[start[at]]
            value -= beyond / tail
        else:
            place = (u + edge[at]) / step[at]
            cell = int(place)
            place -= cell
            cell += start[at]
            value = (1.0 - place) * values[cell] + place * values[cell + 1]
        total += value * (share if upper == 1 else 1.0 - share)
    return math.exp(total)
