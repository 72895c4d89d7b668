"""Sums over bins few enough for their masses to be taken one by one, from tails."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.any_pair.components import (
    GAUSSIAN,
    LAPLACE,
    LAPLACE_LAPLACE,
    NORMAL_LAPLACE,
)
from edp_bayes.divergence.any_pair.curves import _add, _collect
from edp_bayes.divergence.any_pair.evaluators import _half_normal_laplace
from edp_bayes.divergence.any_pair.sign_changes import signed_level
from edp_bayes.divergence.released.grid import (
    MANY_BINS,
    MOST_BINS,
    PARTS,
    Grid,
    edges_within,
    moved,
)
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import compiled, in_threads, upper_tail

__all__ = ["curves", "masses"]

# Of the mass of a mixture exp(-REACH) is left out at a component, and exp(epsilon) times less: bins
# of p far out may have that much less of q.
REACH = 42.0
P, Q, D = 0, 1, 2


def curves(
    p: Array,
    q: Array,
    growth: Array,
    grid: Grid,
    centre: Array,
    worst: Array | None = None,
    *,
    most: int = MANY_BINS,
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the larger of both sums of every pair, and which pairs have few enough bins.

    Parameters
    ----------
    p, q : ndarray, shape (pair, K, 5) and (pair, L, 5)
        Components as distances from the centre, see `edp_bayes.divergence.any_pair.components`.
    growth : ndarray, shape (pair, E)
        expm1 of increasing epsilons.
    grid : Grid
        The bins.
    centre : ndarray, shape (pair,)
        What was subtracted from locations.
    worst : ndarray, shape (pair, 2, E), optional
        H_eps(p || q) and H_eps(q || p). If given, the largest over all places of a stepped grid is
        bounded: where its edges lie in one part of the step, the answer says no more than one that
        tells these parts apart, in full. That adds at most what bins as narrow as a part lose of
        the full answer.
    most : int
        How many bins are few enough; those of a stepped grid.

    Returns
    -------
    curves, done : ndarray, shapes (pair, E) and (pair,)
        Zeros where there are too many bins.
    """
    out, done = np.zeros(growth.shape), np.zeros(len(p), dtype=np.bool_)
    parts = 1 if worst is None else PARTS
    whole = np.zeros((1, 2, 1)) if worst is None else worst
    in_threads(_curves, len(p), p, q, growth, grid, centre, parts, most, whole, out, done)
    return out, done


def masses(p: Array, q: Array, grid: Grid, centre: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return the upper edge of every bin but the last, their masses, and how many bins there are.

    Returns
    -------
    edges : ndarray, shape (pair, bin)
        As distances from the centre; zeros beyond the last.
    masses : ndarray, shape (pair, 2, bin)
        Of p and of q.
    size : ndarray of int, shape (pair,)
        Zero where there are too many.
    """
    most = MOST_BINS + 2
    edges, found = np.zeros((len(p), most)), np.zeros((len(p), 2, most))
    size = np.zeros(len(p), dtype=np.int64)
    in_threads(_all_masses, len(p), p, q, grid, centre, edges, found, size)
    return edges, found, size


@compiled
def _all_masses(first, last, p, q, grid, centre, edges, found, size):  # type: ignore[no-untyped-def]
    """Fill in edges and masses of the bins of pairs first to last; see `masses` for shapes.

    A mass is P(edge_(b-1) < x <= edge_b), the first and the last bin without an outer edge
    (docs/mathematics/answers.md, what is published of an answer).
    """
    work = np.empty((3, found.shape[2]))
    for j in range(first, last):
        here = moved(grid, centre[j])
        low, high = _span(p[j], q[j], REACH)
        count = edges_within(here, low, high, 1, edges[j])
        if count < 0:
            continue
        size[j] = count + 1
        _fill(p[j], q[j], REACH, edges[j], count, work)
        for b in range(count + 1):
            found[j, 0, b], found[j, 1, b] = work[P, b], work[Q, b]


@compiled
def _curves(first, last, p, q, growth, grid, centre, parts, most, whole, out, done):  # type: ignore[no-untyped-def]
    """Fill in sum_b (P_b - exp(eps) Q_b)_+ of pairs first to last, the larger of both directions.

    P_b and Q_b are the masses of bin b (docs/mathematics/answers.md, what is published of an
    answer). With several parts of a step it is the bound of `curves`: over all places t of the
    grid, max_t of at most min(H, H_t + (H - H_narrow)_+), with H_t of bins that tell part t apart.
    growth is exp(eps) - 1, (pair, epsilon); out has its shape.
    """
    room, levels = most * parts + grid.edges.size + 2, growth.shape[1]
    edges, bins = np.empty(room), np.empty((3, room))
    work = np.empty((4, levels + 1))
    curve, narrow = np.empty((2, 2, levels))
    for j in range(first, last):
        reach = REACH + math.log1p(growth[j, levels - 1])
        low, high = _span(p[j], q[j], reach)
        count = edges_within(moved(grid, centre[j]), low, high, parts, edges)
        if count < 0:
            continue
        done[j] = True
        _fill(p[j], q[j], reach, edges, count, bins)
        _sum(bins, count, 1, 0, growth[j], work, narrow)
        if parts == 1:
            for e in range(levels):
                out[j, e] = max(narrow[0, e], narrow[1, e])
            continue
        for part in range(parts):
            _sum(bins, count, -parts, part, growth[j], work, curve)
            for e in range(levels):
                for side in range(2):
                    lost = max(whole[j, side, e] - narrow[side, e], 0.0)
                    found = min(curve[side, e] + lost, whole[j, side, e])
                    out[j, e] = max(out[j, e], found)


@compiled
def _sum(bins, count, width, part, growth, work, curve):  # type: ignore[no-untyped-def]
    """Sum over bins of `width` neighbours, or if it is negative of all but one, and that one."""
    work[:, :] = 0.0
    mass_p, mass_q, mass_d = 0.0, 0.0, 0.0
    for b in range(count + 1):
        mass_p += bins[P, b]
        mass_q += bins[Q, b]
        mass_d += bins[D, b]
        place = (b - part) % abs(width)
        if place == 0 or (width < 0 and place == 1) or b == count:
            _add(_level(mass_p, mass_q, mass_d, growth), mass_p, mass_q, mass_d, work)
            mass_p, mass_q, mass_d = 0.0, 0.0, 0.0
    _collect(growth, work, curve)


@compiled
def _level(mass_p, mass_q, mass_d, growth):  # type: ignore[no-untyped-def]
    """Return up to which epsilon a bin counts, and in which direction."""
    base = mass_q if mass_d > 0.0 else mass_p
    if base < 1e-290:
        return signed_level(0.0 if mass_d == 0.0 else mass_d / 1e-300, growth)
    return signed_level(mass_d / base, growth)


@compiled
def _radius(row, weight, reach):  # type: ignore[no-untyped-def]
    """Return beyond which distance less than exp(-reach) lies, or little more, of this weight.

    That is negative where there is less altogether: a light component may be as wide as it will.
    """
    reach = reach + math.log(weight)
    if reach <= 0.0:
        return -1.0
    a, b, family = row[2], row[3], row[4]
    if family == GAUSSIAN:
        return math.sqrt(2.0 * reach) * a
    if family == LAPLACE:
        return reach * a
    if family == LAPLACE_LAPLACE:
        return 1.1 * reach * max(a, b)
    return math.sqrt(2.0 * reach) * a + reach * b


@compiled
def _span(p, q, reach):  # type: ignore[no-untyped-def]
    """Return the ends beyond which p and q have next to nothing, in units of the responses."""
    low, high = np.inf, -np.inf
    for side in range(2):
        mine = p if side == 0 else q
        for k in range(mine.shape[0]):
            radius = _radius(mine[k], mine[k, 0], reach) if mine[k, 0] > 0.0 else -1.0
            if radius >= 0.0:
                low, high = min(low, mine[k, 1] - radius), max(high, mine[k, 1] + radius)
    return low, high


@compiled
def _fill(p, q, reach, edges, count, bins):  # type: ignore[no-untyped-def]
    """Fill in the masses of all bins, of p, of q and of p - q.

    Where an individual is sometimes absent most components are in both, and twice in q.
    """
    bins[:, : count + 1] = 0.0
    paired, half = p.shape[0] == q.shape[0], q.shape[0] // 2
    twice = paired and 2 * half == q.shape[0]
    for k in range(p.shape[0]):
        weight = 0.0
        if paired and _same(p[k], q[k]) and not (twice and k >= half and _same(q[k - half], q[k])):
            weight = q[k, 0]
            if twice and k < half and _same(q[k], q[k + half]):
                weight += q[k + half, 0]
        if p[k, 0] > 0.0 or weight > 0.0:
            _add_component(p[k], p[k, 0], weight, reach, edges, count, bins)
    for k in range(q.shape[0]):
        again = twice and k >= half and _same(q[k - half], q[k])
        known = k - half if again else k
        if q[k, 0] > 0.0 and not (paired and _same(p[known], q[known])):
            _add_component(q[k], 0.0, q[k, 0], reach, edges, count, bins)


@compiled
def _same(first, second):  # type: ignore[no-untyped-def]
    """Whether two components are the same but for their weights."""
    alike = True
    for row in range(1, 5):
        alike = alike and first[row] == second[row]
    return alike


@compiled
def _add_component(row, in_p, in_q, reach, edges, count, bins):  # type: ignore[no-untyped-def]
    """Add the masses of a component, as differences of tails on one side of its location."""
    mu, radius = row[1], _radius(row, max(in_p, in_q), reach)
    if radius < 0.0:
        return
    first = np.searchsorted(edges[:count], mu - radius)
    middle = np.searchsorted(edges[:count], mu, side="right")
    last = np.searchsorted(edges[:count], mu + radius, side="right")
    # One more at each end, where nothing is left; loops have no branches for vector instructions.
    tails = np.zeros(last - first + 2)
    _fill_tails(edges[first:last], row, tails[1:])
    left = middle - first + 1
    for place, factor in ((P, in_p), (Q, in_q), (D, in_p - in_q)):
        _add_masses(tails, first, left, factor, bins[place])


@compiled
def _fill_tails(edges, row, out):  # type: ignore[no-untyped-def]
    """Fill in the mass of a component beyond each edge, as seen from its location."""
    if row[4] == GAUSSIAN:
        mu, rate = row[1], 1.0 / row[2]
        for b in range(edges.size):
            out[b] = upper_tail(abs(edges[b] - mu) * rate)
    else:
        for b in range(edges.size):
            out[b] = _tail(abs(edges[b] - row[1]), row)


@compiled
def _add_masses(tails, first, left, factor, out):  # type: ignore[no-untyped-def]
    """Add differences of tails to the bins from the first on; `left` of them begin left of it."""
    for b in range(left - 1):
        out[first + b] += factor * (tails[b + 1] - tails[b])
    out[first + left - 1] += factor * (1.0 - tails[left - 1] - tails[left])
    for b in range(left, tails.size - 1):
        out[first + b] += factor * (tails[b] - tails[b + 1])


@compiled
def _tail(u, row):  # type: ignore[no-untyped-def]
    """Return the mass of a component beyond a distance from its location."""
    a, b, family = row[2], row[3], row[4]
    if family == LAPLACE:
        return 0.5 * math.exp(-u / a)
    if family == NORMAL_LAPLACE:
        near, far = _half_normal_laplace(-u, a, b), _half_normal_laplace(u, a, b)
        return 0.5 * math.erfc(u / (math.sqrt(2.0) * a)) + 0.5 * b * (far - near)
    small, large = min(a, b), max(a, b)
    rate = (large - small) / (small * large)
    growth = -math.expm1(-rate * u) / rate if rate * u > 1e-300 else u
    return 0.5 * math.exp(-u / large) * (1.0 + growth * small / (large * (small + large)))
