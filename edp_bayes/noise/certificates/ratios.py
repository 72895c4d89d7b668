"""The largest log ratio of the noisy densities with and without an individual, certified.

On a lattice of points the ratio is evaluated; between them it is bounded by the curvature of the
noisy kernels, and beyond them by its limits. What is returned is an upper bound, so that a result
of at most epsilon proves (epsilon, 0) for that draw and individual.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, NoNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise.certificates.curvature import values_and_bends
from edp_bayes.noise.certificates.densities import (
    GAUSSIAN_REACH,
    NoisyDensities,
    noise_rows,
    tail_scale,
)
from edp_bayes.noise.certificates.kernel_tables import KernelTables, kernel_tables
from edp_bayes.noise.certificates.log_lipschitz import log_lipschitz, movement_bound
from edp_bayes.noise.certificates.screening import Screen
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.search import check_time
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.progress import track

__all__ = [
    "LogRatios",
    "Pairs",
    "alike",
    "certified_log_ratios",
    "doubtful_pairs",
    "lattice_for",
    "limits",
    "protected_draws",
    "several_scales",
]

NUMBERS = 2**22  # values of a density held at once
FINEST = 64
COARSE, PARTS = 0.25, 4  # first lattice where cells are divided, and parts of one
POINTS_PER_SCALE = 4
PER_SPACING = 4  # points of a first lattice in a spacing of the noise, at most
BLOCK = 512  # individuals whose bounds are sharpened at once
TOLERANCE = 1e-3  # of a bound, relative to epsilon
FAR_CELLS = 4096  # beyond all locations
NEAR = 1.02  # times epsilon: a bound that is no higher is worth sharpening


@dataclass(frozen=True, eq=False)
class LogRatios:
    """Upper bounds on sup_x abs(log(p_h / p_ih)).

    Attributes
    ----------
    bound : ndarray
        Shape (draw, individual).
    margin : float
        Largest part of any evaluated bound that stands for what lies between the points.
    evaluated : int
        Pairs of a draw and an individual that were evaluated; the others are safe by a bound.
    """

    bound: Array
    margin: float
    evaluated: int

    @property
    def largest(self) -> Array:
        """Bound over all individuals, shape (draw,)."""
        return np.asarray(self.bound.max(axis=1))

    def share(self, epsilon: float) -> float:
        """Return the share of draws in which every individual is protected at epsilon."""
        return float((self.largest <= epsilon).mean())


def certified_log_ratios(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    *,
    draws: Index | None = None,
    individuals: Index | None = None,
    tolerance: float = TOLERANCE,
    screen: bool = True,
    progressbar: bool = False,
) -> LogRatios:
    """Return certified bounds on the log ratio of every draw and individual.

    Parameters
    ----------
    posterior : Posterior
        The distributions with and without each individual.
    noise : NoiseDistribution
        The noise.
    epsilon : float
        Target: a pair that a bound shows to be safe at it is not evaluated further, and one near
        it is evaluated until the margin is at most tolerance * epsilon.
    draws, individuals : ndarray of int, optional
        Which to look at; all by default.
    tolerance : float
        Relative to epsilon.
    screen : bool
        Whether pairs that are safe by `movement_bound` keep that bound.
    progressbar : bool
        Show progress over the individuals.
    """
    chosen = np.arange(posterior.n_draws) if draws is None else draws
    people = np.arange(posterior.n_individuals) if individuals is None else individuals
    bound = np.zeros((chosen.size, people.size))
    margin, evaluated = 0.0, 0
    scan = _Scan(posterior, noise, epsilon, tolerance)
    threshold = epsilon if screen else 0.0
    for pair in doubtful_pairs(
        posterior, noise, threshold, chosen, people, out=bound, progressbar=progressbar
    ):
        value, gap = scan(pair.p, pair.q)
        known = bound[pair.rows, pair.column]
        bound[pair.rows, pair.column] = np.minimum(known, value)
        margin, evaluated = max(margin, gap), evaluated + pair.rows.size
    return LogRatios(bound, margin, evaluated)


def protected_draws(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    draws: Index,
    people: Index,
    *,
    needed: float = 0.0,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return in which draws nobody's certified log ratio exceeds epsilon, and in which one does.

    Draws in which an individual is not protected are not looked at again, and once fewer than
    `needed` are left the others are no longer looked at either: they are neither. Each (draw,).
    """
    alive = np.ones(draws.size, dtype=bool)
    scan = _Scan(posterior, noise, epsilon, TOLERANCE, near=1.0)
    for pair in doubtful_pairs(posterior, noise, epsilon, draws, people):
        left = alive[pair.rows]
        if left.any():
            alive[pair.rows[left]] = scan(pair.p[left], pair.q[left])[0] <= epsilon
        if alive.sum() < needed or not alive.any():
            return np.zeros(draws.size, dtype=bool), ~alive
    return alive, ~alive


@dataclass(frozen=True, eq=False)
class Pairs:
    """One individual in those draws where no bound shows that noise makes them safe.

    Attributes
    ----------
    column : int
        Place among the individuals asked for.
    rows : ndarray of int
        Places among the draws asked for.
    p, q : ndarray, shape (row, component, 3)
        Components with and without the individual.
    """

    column: int
    rows: Index
    p: Array
    q: Array


def doubtful_pairs(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    draws: Index,
    people: Index,
    *,
    out: Array | None = None,
    progressbar: bool = False,
) -> Iterator[Pairs]:
    """Yield the pairs that a bound on the movement of components does not show to be safe.

    The bounds are written to out, shape (draw, individual), if given.
    """
    screen = posterior.screen(epsilon) if epsilon > 0.0 else None
    if screen is None:
        yield from _unscreened(posterior, noise, epsilon, draws, people, out, progressbar)
        return
    tables = _tables(posterior, screen, noise, epsilon)
    slopes = _slopes(screen, tables, noise)
    bounds = np.empty((draws.size, people.size)) if out is None else out
    bounds[...] = screen.bounds(slopes, draws, people)
    columns = np.flatnonzero((bounds > epsilon).any(axis=0))
    for column in track(
        _sharpened(posterior, tables, bounds, columns, epsilon, draws, people),
        "Individuals",
        total=columns.size,
        show=progressbar,
    ):
        check_time()
        rows = np.flatnonzero(bounds[:, column] > epsilon)
        if rows.size == 0:
            continue
        person = int(people[column])
        p, q = (part[draws[rows]] for part in posterior.pair(person))
        bound = movement_bound(p, q, posterior.kernel, slopes[screen.level[draws[rows], person]])
        bounds[rows, column] = bound
        left = np.flatnonzero(bound > epsilon)
        if left.size:
            yield Pairs(int(column), rows[left], p[left], q[left])


def _tables(
    posterior: Posterior, screen: Screen, noise: NoiseDistribution, epsilon: float
) -> KernelTables | None:
    """Return tables of the noisy kernels, where these are normal and the noise is a single one."""
    distribution = noise.components[0]
    if not isinstance(posterior.coupling, RegressionCoupling) or posterior.kernel != "gaussian":
        return None
    if len(noise.components) > 1 or not isinstance(distribution, LatticeNoise | LaplaceNoise):
        return None
    return kernel_tables(
        distribution, float(screen.scales[0]), float(posterior.base[..., 2].max()), epsilon
    )


def _slopes(screen: Screen, tables: KernelTables | None, noise: NoiseDistribution) -> Array:
    """Return the log_lipschitz of the noisy kernels at every level of the screen."""
    if tables is None or isinstance(noise.components[0], LaplaceNoise):
        return screen.slopes(noise)
    slopes = tables.log_lipschitz(screen.scales)
    unknown = np.isinf(slopes)
    if unknown.any():
        slopes[unknown] = log_lipschitz(noise, screen.kernel, screen.scales[unknown])
    return slopes


def _sharpened(
    posterior: Posterior,
    tables: KernelTables | None,
    bounds: Array,
    columns: Index,
    epsilon: float,
    draws: Index,
    people: Index,
) -> Iterator[int]:
    """Yield the columns, after lowering their bounds as far as the tables show, block by block."""
    if tables is None:
        yield from columns
        return
    coupling = posterior.coupling
    assert isinstance(coupling, RegressionCoupling)
    base = np.ascontiguousarray(np.moveaxis(posterior.base, -1, 1))
    # The tables are of the distribution of the response: not for those whose pair has another.
    alone = np.isin(people[columns], list(coupling.without))
    yield from columns[alone]
    columns = columns[~alone]
    for start in range(0, columns.size, BLOCK):
        block = columns[start : start + BLOCK]
        rows, places = np.nonzero(bounds[:, block] > epsilon)
        distribution = posterior.contributions(people[block])
        found = tables.bounds(base, distribution, draws[rows], places, epsilon)
        bounds[rows, block[places]] = found
        yield from block


def _unscreened(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    draws: Index,
    people: Index,
    out: Array | None,
    progressbar: bool,
) -> Iterator[Pairs]:
    """Go through everybody, leaving out those whose largest contribution is safe."""
    kernel, base = posterior.kernel, posterior.base[draws]
    smallest = base[..., 2].min(axis=1)
    steep = log_lipschitz(noise, kernel, smallest)
    moved = posterior.largest_move
    # An individual who moves nothing is safe, whatever the slope.
    coarse = np.multiply(steep.max(), moved, out=np.zeros_like(moved), where=moved > 0.0)
    for column in track(range(people.size), "Individuals", total=people.size, show=progressbar):
        check_time()
        person = int(people[column])
        if coarse[person] <= epsilon:
            if out is not None:
                out[:, column] = steep * moved[person] if moved[person] > 0.0 else 0.0
            continue
        p, q = (part[draws] for part in posterior.pair(person))
        least = np.minimum(p[..., 2].min(axis=1), q[..., 2].min(axis=1))
        here = steep if (least >= smallest).all() else log_lipschitz(noise, kernel, least)
        bound = movement_bound(p, q, kernel, here)
        if out is not None:
            out[:, column] = bound
        rows = np.flatnonzero(bound > epsilon)
        if rows.size:
            yield Pairs(column, rows, p[rows], q[rows])


@dataclass(frozen=True, eq=False)
class _Scan:
    """Evaluates pairs, on finer lattices as long as that can decide whether epsilon holds."""

    posterior: Posterior
    noise: NoiseDistribution
    epsilon: float
    tolerance: float
    near: float = NEAR

    def __call__(self, p: Array, q: Array) -> tuple[Array, float]:
        if not _can_be_scanned(self.noise):
            return np.full(len(p), np.inf), 0.0
        limit = limits(p, q, self.posterior.kernel, self.noise)
        if self.posterior.kernel == "laplace":
            limit = np.maximum(limit, beyond(p, q, self.noise))
        result, margin = np.full(len(p), np.inf), 0.0
        hopeful = np.flatnonzero(np.isfinite(limit))
        on_lattice = any(isinstance(each, LatticeNoise) for each in self.noise.components)
        scan = self._by_lattices if on_lattice else self._by_cells
        for part in alike(self.noise, self.posterior.kernel, p[hopeful], q[hopeful]):
            check_time()
            rows = hopeful[part]
            found, gap = scan(p[rows], q[rows])
            result[rows] = np.maximum(found, limit[rows])
            margin = max(margin, float(gap[np.isfinite(gap)].max(initial=0.0)))
        return result, margin

    def _by_lattices(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return bounds and their gaps, (draw,), on finer lattices where a draw is undecided."""
        result, gaps = np.full((2, len(p)), np.inf)
        left, fine = np.arange(len(p)), 1
        while left.size:
            lattice = lattice_for(self.noise, self.posterior.kernel, p[left], q[left], fine)
            cells = self._cells(p[left], q[left], lattice, np.zeros(left.size))
            seen, result[left] = (part.max(axis=1) for part in cells)
            gaps[left] = _gap(seen, result[left])
            again = self._undecided(seen, result[left]) & (fine < FINEST)
            left, fine = left[again], 4 * fine
        return result, gaps

    def _by_cells(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return bounds and their gaps, (draw,), dividing the cells that leave a draw undecided."""
        fine = COARSE
        lattice = lattice_for(self.noise, self.posterior.kernel, p, q, fine)
        knots = np.zeros(len(p))
        if self.posterior.kernel == "laplace" and self.noise.atom > 0.0:
            knots = self._knots(p, q)
        seen, proved = self._cells(p, q, lattice, knots)
        highest, result = np.maximum(knots, seen.max(axis=1)), knots.copy()
        row = np.repeat(np.arange(len(p)), proved.shape[1])
        start = np.tile(lattice.points[:-1], len(p))
        bound, step = proved.ravel(), lattice.step
        while row.size:
            kept = self._undecided(highest[row], bound) & (fine < FINEST)
            np.maximum.at(result, row[~kept], bound[~kept])
            row, start = row[kept], start[kept]
            step, fine = step / PARTS, PARTS * fine
            bound = np.empty((row.size, PARTS))
            for part in _slices(row.size, NUMBERS // (10 * p.shape[1])):
                each = row[part]
                finer = replace(lattice, start=start[part, None], step=step, count=PARTS + 1)
                seen, bound[part] = self._cells(p[each], q[each], finer, knots[each])
                np.maximum.at(highest, each, seen.max(axis=1))
            start = (start[:, None] + step * np.arange(PARTS)).ravel()
            row, bound = np.repeat(row, PARTS), bound.ravel()
        return result, _gap(highest, result)

    def _undecided(self, seen: Array, proved: Array) -> NDArray[np.bool_]:
        """Return what finer points can still decide."""
        open_ = (seen <= self.epsilon * self.near) & (proved > self.epsilon)
        return np.asarray(open_ & (_gap(seen, proved) > self.tolerance * self.epsilon))

    def _cells(
        self, p: Array, q: Array, lattice: NoisyDensities, floor: Array
    ) -> tuple[Array, Array]:
        """Return the larger log ratio at the ends of every cell and a bound in it, (draw, cell)."""
        values, bends = values_and_bends(p, q, lattice)
        one, other = (
            _between(values[a], values[b], bends[a], bends[b], lattice.step, floor)
            for a, b in ((0, 1), (1, 0))
        )
        return np.maximum(one[0], other[0]), np.maximum(one[1], other[1])

    def _knots(self, p: Array, q: Array) -> Array:
        """Largest log ratio where the densities bend: an atom leaves the kernels' own peaks."""
        from edp_bayes.noise.certificates.smoothing import point_values

        x = np.concatenate([p[..., 1], q[..., 1]], axis=1)
        rows = (noise_rows(part, self.posterior.kernel, self.noise) for part in (p, q))
        first, second = (point_values(each, x) for each in rows)
        return np.asarray(np.abs(np.log(first / second)).max(axis=1))


def _can_be_scanned(noise: NoiseDistribution) -> bool:
    """Return whether tails are known: one distribution, or a simple one beside no noise at all.

    Beyond the points several distributions leave sums of exponentials whose ratio need not be
    monotone.
    """
    distributions = [
        distribution
        for weight, distribution in noise
        if weight > 0.0 and not isinstance(distribution, NoNoise)
    ]
    lattice = any(isinstance(distribution, LatticeNoise) for distribution in distributions)
    return len(distributions) <= 1 and not (lattice and noise.atom > 0.0)


def _between(
    first: Array, second: Array, bend_first: Array, bend_second: Array, step: float, floor: Array
) -> tuple[Array, Array]:
    """Return the larger log ratio at the ends of every cell and a bound in it, each (draw, cell).

    With T the larger log ratio of the ends of a cell, and at least the floor, the function
    first - exp(T + t) second is at most step^2 / 8 (bend_first + exp(T + t) bend_second) above
    its chord, and that is zero at t = log((1 + a) / (1 - b)).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.log(first / second)
        ends = np.maximum(ratio[:, 1:], ratio[:, :-1])
        top = np.maximum(ends, floor[:, None])
        least = np.minimum(second[:, 1:], second[:, :-1])
        a = step**2 / 8.0 * bend_first / (np.exp(top) * least)
        b = step**2 / 8.0 * bend_second / least
        proof = top + np.where(b < 1.0, np.log1p(a) - np.log1p(-np.minimum(b, 1.0)), np.inf)
    ends, proof = (np.where(np.isnan(part), np.inf, part) for part in (ends, proof))
    return ends, proof


def _gap(seen: Array, proved: Array) -> Array:
    gap = np.full(proved.shape, np.inf)
    return np.asarray(np.subtract(proved, seen, out=gap, where=np.isfinite(proved)))


def _slices(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, max(1, size)):
        yield slice(start, start + max(1, size))


def alike(noise: NoiseDistribution, kernel: str, p: Array, q: Array) -> Iterator[Index]:
    """Yield rows whose lattices have about as many points, as many as can be held at once.

    A lattice for all rows would be as wide as the widest of them.
    """
    if len(p) == 0:
        return
    places = np.concatenate([p[..., 1], q[..., 1]], axis=1)
    scales = np.concatenate([p[..., 2], q[..., 2]], axis=1)
    width = np.ptp(places, axis=1) + 2.0 * _kernel_pad(noise, kernel, scales.max(axis=1))
    order = np.argsort(width, kind="stable")
    start = 0
    while start < order.size:
        stop = int(np.searchsorted(width[order], 2.0 * width[order[start]], side="right"))
        rows = order[start : max(stop, start + 1)]
        count = lattice_for(noise, kernel, p[rows], q[rows]).count
        rows = rows[: max(1, NUMBERS // count)]
        yield rows
        start += rows.size


def lattice_for(
    noise: NoiseDistribution,
    kernel: str,
    p: Array,
    q: Array,
    fine: float = 1,
    *,
    tails: float = 0.0,
) -> NoisyDensities:
    """Return the lattice on which some pairs are compared, `fine` times finer than at first.

    It ends where every kernel has reached the tail of its noise, or so many tail scales later.
    """
    locations = np.concatenate([p[..., 1].ravel(), q[..., 1].ravel()])
    scales = np.concatenate([p[..., 2].ravel(), q[..., 2].ravel()])
    low, high = float(locations.min()), float(locations.max())
    small, large = float(scales.min()), float(scales.max())
    lattices = [
        distribution for distribution in noise.components if isinstance(distribution, LatticeNoise)
    ]
    widths = [
        small,
        *(
            distribution.scale
            for distribution in noise.components
            if hasattr(distribution, "scale")
        ),
    ]
    pad = float(_kernel_pad(noise, kernel, np.array(large)))
    widest = max(tail_scale(noise, 1), tail_scale(noise, -1), large)
    pad += tails * widest
    span = high - low + 2.0 * pad
    if lattices:
        spacing = min(distribution.spacing for distribution in lattices)
        if any(round(distribution.spacing / spacing, 9) % 1.0 for distribution in lattices):
            raise InvalidInputError(
                "the spacings of lattices in one noise must be multiples of the smallest, found "
                f"{sorted({distribution.spacing for distribution in lattices})}"
            )
        step = spacing / (fine * math.ceil(min(POINTS_PER_SCALE * spacing / small, PER_SPACING)))
        pad += max((distribution.half + 2) * distribution.spacing for distribution in lattices)
        # few different widths, so that matrices made for one pair serve the next
        block = 64.0 * spacing
        reach = block * math.ceil((span + pad + 40.0 * small) / block)
    else:
        step, reach = max(widths) / (POINTS_PER_SCALE * 4 * fine), 0.0
    count = math.ceil((high - low + 2.0 * pad) / step) + 1
    return NoisyDensities(noise, kernel, low - pad, step, count, reach)


def _kernel_pad(noise: NoiseDistribution, kernel: str, scale: Array) -> Array:
    if kernel == "gaussian":
        tail = max(tail_scale(noise, 1), tail_scale(noise, -1))
        return GAUSSIAN_REACH * scale + (scale**2 / tail if tail > 0.0 else 0.0)
    normal = max(
        (
            distribution.scale
            for distribution in noise.components
            if isinstance(distribution, GaussianNoise)
        ),
        default=0.0,
    )
    return GAUSSIAN_REACH * normal + normal**2 / scale


def limits(p: Array, q: Array, kernel: str, noise: NoiseDistribution) -> Array:
    """Return the limits of abs(log(p_h / q_h)) at both ends of the line, the larger, (draw,).

    The widest exponential tail wins, the noise's or a Laplace kernel's; normal tails that nothing
    covers differ without bound.
    """
    result = np.zeros(len(p))
    for side in (-1, 1):
        tail = tail_scale(noise, side)
        left, right = (_log_tail(part, kernel, tail, side) for part in (p, q))
        with np.errstate(invalid="ignore"):
            gap = np.abs(left[1] - right[1])
        gap = np.where(left[0] == right[0], gap, np.inf)
        result = np.maximum(result, np.where(np.isnan(gap), np.inf, gap))
    return result


def several_scales(p: Array, q: Array) -> NDArray[np.bool_]:
    """Return in which draws the components have more than one scale, shape (draw,)."""
    both = np.concatenate([p, q], axis=1)
    counted = both[..., 0] > 0.0
    widest = np.where(counted, both[..., 2], 0.0).max(axis=1)
    return np.asarray(widest > np.where(counted, both[..., 2], np.inf).min(axis=1))


def beyond(p: Array, q: Array, noise: NoiseDistribution) -> Array:
    """Return a bound on abs(log(p_h / q_h)) outside of all locations of Laplace kernels, (draw,).

    With one scale s and one tail of the noise both densities are sums of two exponentials, and
    their ratio is monotone: what it is on the last points and in the limit bounds it. With several
    scales they are sums T exp(-x / r) (1 + sum of c_k exp(-nu_k x)) with nu_k > 0, and the bracket
    is bounded over cells in x. Infinite for several scales with noise on a lattice.
    """
    result = np.zeros(len(p))
    rows = np.flatnonzero(several_scales(p, q))
    if rows.size == 0:
        return result
    if any(isinstance(distribution, LatticeNoise) for distribution in noise.components):
        result[rows] = np.inf
        return result
    for side in (-1.0, 1.0):
        first, second = (_exponentials(part[rows], other[rows], noise, side)
                         for part, other in ((p, q), (q, p)))  # fmt: skip
        result[rows] = np.maximum(result[rows], _ratio_of_sums(first, second))
    return result


def _exponentials(
    part: Array, other: Array, noise: NoiseDistribution, side: float
) -> tuple[Array, Array]:
    """Return rates of exponentials and values where the locations of both end, (draw, term)."""
    w, mu, s = np.moveaxis(part, -1, 0)
    end = np.maximum((side * mu).max(axis=1), (side * other[..., 1]).max(axis=1))[:, None]
    end = end + _kernel_pad(noise, "laplace", np.maximum(s.max(), other[..., 2].max()))
    distance = end - side * mu
    rates, values = [], []
    for share, distribution in noise:
        if isinstance(distribution, LaplaceNoise):
            t = distribution.scale
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = 0.5 * share * w / ((t - s) * (t + s))
                rates += [1.0 / s, np.full_like(s, 1.0 / t)]
                values += [-factor * s * np.exp(-distance / s), factor * t * np.exp(-distance / t)]
        else:
            normal = distribution.scale if isinstance(distribution, GaussianNoise) else 0.0
            rates.append(1.0 / s)
            values.append(0.5 * share * w / s * np.exp(0.5 * (normal / s) ** 2 - distance / s))
    return np.concatenate(rates, axis=1), np.concatenate(values, axis=1)


def _ratio_of_sums(first: tuple[Array, Array], second: tuple[Array, Array]) -> Array:
    """Bound the abs(log) ratio of two sums of exponentials over the half-line, (draw,)."""
    sums = (first, second)
    counted = [values != 0.0 for _, values in sums]
    slowest = np.minimum(*(np.where(c, r, np.inf).min(axis=1) for c, (r, _) in
                           zip(counted, sums, strict=True)))[:, None]  # fmt: skip
    excess = [np.where(c, r - slowest, 0.0) for c, (r, _) in zip(counted, sums, strict=True)]
    unit = np.minimum(*(np.where(e > 0.0, e, np.inf).min(axis=1) for e in excess))[:, None]
    # points whose last one is infinity; every exponential falls from one to the next
    places = 1.0 - np.arange(FAR_CELLS + 1) / FAR_CELLS
    ends = []
    for (_, values), rate in zip(sums, excess, strict=True):
        low, high = np.zeros((2, len(values), FAR_CELLS))
        for k in range(values.shape[1]):
            with np.errstate(invalid="ignore"):
                power = np.where(rate[:, [k]] > 0.0, rate[:, [k]] / unit, 0.0)
            term = values[:, [k]] * places**power
            high += np.maximum(term[:, :-1], term[:, 1:])
            low += np.minimum(term[:, :-1], term[:, 1:])
        ends.append((low, high))
    (p_low, p_high), (q_low, q_high) = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.log(np.maximum(p_high / q_low, q_high / p_low)).max(axis=1)
    sound = (p_low > 0.0).all(axis=1) & (q_low > 0.0).all(axis=1)
    return np.where(sound & np.isfinite(largest), largest, np.inf)


def _log_tail(part: Array, kernel: str, tail: float, side: int) -> tuple[Array, Array]:
    """Return scale and log amplitude of the tail of each draw."""
    from scipy.special import logsumexp

    w, mu, s = np.moveaxis(part, -1, 0)
    if kernel == "gaussian":
        if tail == 0.0:
            return np.zeros(len(w)), np.full(len(w), np.nan)
        amplitude = side * mu / tail + 0.5 * (s / tail) ** 2
        return np.full(len(w), tail), np.asarray(logsumexp(amplitude, b=w, axis=1))
    widest = np.where(w > 0.0, s, 0.0).max(axis=1)
    of_kernel = widest >= tail
    scale = np.where(of_kernel, widest, tail)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(
            of_kernel[:, None], s == widest[:, None], 1.0 / (1.0 - (s / scale[:, None]) ** 2)
        )
    return scale, np.asarray(logsumexp(side * mu / scale[:, None], b=w * factor, axis=1))
