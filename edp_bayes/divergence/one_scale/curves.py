"""Hockey-stick integrals of Laplace mixtures, for whole posteriors at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edp_bayes.divergence.any_pair import curves as any_pair
from edp_bayes.divergence.any_pair.components import LAPLACE
from edp_bayes.divergence.any_pair.components import rows as component_rows
from edp_bayes.divergence.logarithmic.curves import fill
from edp_bayes.divergence.one_scale import interval_sums, knots, shared_scale
from edp_bayes.divergence.one_scale.shared_scale import LANES
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, compiled, in_threads

__all__ = ["curves", "shift_curves"]

EARLY = 4  # epsilon evaluated for all draws of a block at once, the others draw by draw
FAR = 600.0  # epsilon beyond which integrals are formed in logarithms: densities are zero at 708
MIN_TASKS = 16  # individuals are split over draws when there are fewer of them than this


def shift_curves(
    weights: Array,
    locations: Array,
    scales: Array,
    indptr: Index,
    rows: Index,
    values: Array,
    epsilon: Array,
    *,
    out: Array | None = None,
) -> Array:
    """Return delta_i(eps) of every draw and individual for one Laplace scale per draw.

    p = sum_j w_j Laplace(x - y_j; h), and p_i is the same with y_j - c_ij in place of y_j.
    The result is max(H_eps(p || p_i), H_eps(p_i || p)), exactly zero once
    max_j abs(c_ij) <= eps h.

    Parameters
    ----------
    weights : ndarray, shape (S, n)
        Weights of every draw; each row sums to one.
    locations : ndarray, shape (n,)
        Responses y_j.
    scales : ndarray, shape (S,)
        Scale h of every draw.
    indptr, rows, values : ndarray, shape (B + 1,), (nnz,), (nnz,)
        Contributions c_ij as compressed sparse columns, one column per individual.
    epsilon : ndarray, shape (E,)
        Finite, non-negative, increasing.
    out : ndarray, shape (S, B, E), optional
        Contiguous array to fill and return. Blocks of individuals that share one spare the
        system from handing out fresh memory each time, which takes as long as the integrals.

    Returns
    -------
    ndarray, shape (S, B, E)
        Privacy curves, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> w, y, h = np.array([[0.5, 0.5]]), np.array([0.0, 1.0]), np.array([1.0])
    >>> ptr, rows, c = np.array([0, 2]), np.array([0, 1]), np.array([0.5, 0.5])
    >>> shift_curves(w, y, h, ptr, rows, c, np.array([0.0, 0.5])).round(6)
    array([[[0.167238, 0.      ]]])
    """
    draws, people = len(scales), len(indptr) - 1
    if out is None:
        out = np.empty((draws, people, len(epsilon)))
    if len(epsilon) and epsilon[-1] > FAR:
        near = np.append(epsilon[epsilon <= FAR], FAR)
        found = shift_curves(weights, locations, scales, indptr, rows, values, near)
        out[..., : near.size - 1], out[..., near.size - 1 :] = found[..., :-1], 0.0
        _fill_far(weights, locations, scales, indptr, rows, values, epsilon, found, out)
        return out
    order = np.argsort(locations, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    # Draws of nearly the same scale share a block, so that whole blocks are safe.
    sequence = np.argsort(scales, kind="stable")
    blocks = -(-draws // LANES)
    groups = 1 if people >= MIN_TASKS else min(blocks, -(-MIN_TASKS // max(people, 1)))
    in_threads(
        _shift_tasks,
        people * groups,
        groups,
        sequence,
        _in_lanes(np.asarray(weights, dtype=np.float64)[np.ix_(sequence, order)]),
        np.asarray(locations, dtype=np.float64)[order],
        1.0 / np.asarray(scales, dtype=np.float64)[sequence],
        np.asarray(indptr, dtype=np.int64),
        rank[rows],
        np.asarray(values, dtype=np.float64),
        np.asarray(epsilon, dtype=np.float64),
        np.expm1(np.asarray(epsilon, dtype=np.float64)),
        out,
    )
    return out


def _fill_far(
    weights: Array,
    locations: Array,
    scales: Array,
    indptr: Index,
    rows: Index,
    values: Array,
    epsilon: Array,
    near: Array,
    out: Array,
) -> None:
    """Fill in what lies beyond FAR, of those who are not zero there, one individual at a time."""
    levels = np.broadcast_to(epsilon, (len(scales), len(epsilon)))
    for person in np.flatnonzero(near[..., -1].any(axis=0)):
        part = slice(indptr[person], indptr[person + 1])
        moved = np.bincount(rows[part], values[part], len(locations))
        some = np.flatnonzero(near[:, person, -1])
        p = component_rows(LAPLACE, weights[some], locations, scales[some, None])
        q = component_rows(LAPLACE, weights[some], locations - moved, scales[some, None])
        found = out[some, person][:, None]
        far = np.broadcast_to(levels[some, None] > FAR, found.shape)
        fill(p, q[:, None], levels[some], far, found, both=True)
        out[some, person] = found[:, 0]


def curves(
    pw: Array,
    pm: Array,
    ps: Array,
    qw: Array,
    qm: Array,
    qs: Array,
    epsilon: Array,
    *,
    direction: int = any_pair.BOTH,
    floor: float = 0.0,
) -> Array:
    """Return the hockey-stick integrals of Laplace mixtures with any scales.

    Pairs in which all scales are equal take the closed form, others the general integrator.

    Parameters
    ----------
    pw, pm, ps : ndarray, shape (S, K)
        Weights, locations and scales of p in every draw.
    qw, qm, qs : ndarray, shape (S, B, L)
        The same of the B mixtures that are compared with p under that draw. With K = L the
        components are taken as pairs in their order, which keeps the precision when q is p
        slightly moved.
    epsilon : ndarray, shape (E,)
        Finite, non-negative, increasing.
    direction : int
        any_pair.BOTH for max(H(p || q), H(q || p)), any_pair.FORWARD for H(p || q).
    floor : float
        Results below it are returned as exactly zero.

    Returns
    -------
    ndarray, shape (S, B, E)

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> curves(one, 0 * one, one, one[None], one[None], one[None], np.array([0.5])).round(6)
    array([[[0.221199]]])
    """
    p = component_rows(LAPLACE, pw, pm, ps)
    q = component_rows(LAPLACE, qw, qm, qs)
    scale = p[:, 0, 2]
    shared = (p[..., 2] == scale[:, None]).all(axis=1)[:, None] & (
        q[..., 2] == scale[:, None, None]
    ).all(axis=2)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    out = np.zeros((*q.shape[:2], len(epsilon)))
    if shared.any():
        draw, person = np.nonzero(shared)
        near = epsilon[epsilon <= FAR]
        at = near.size
        if at < epsilon.size:  # where a curve is zero at FAR, so it is beyond
            near = np.append(near, FAR)
        found = _shared_curves(p, q, draw, person, near, direction, floor)
        out[shared, :at] = found[:, :at]
        if at < epsilon.size:
            far = np.zeros(out.shape, dtype=bool)
            far[shared, at:] = found[:, -1:] > 0.0
            fill(p, q, np.broadcast_to(epsilon, (len(p), epsilon.size)), far, out,
                 both=direction == any_pair.BOTH, floor=floor)  # fmt: skip
    if not shared.all():
        draw, person = np.nonzero(~shared)
        out[~shared] = any_pair.curves(
            p[draw], q[draw, person][:, None], epsilon, direction=direction, floor=floor
        )[:, 0]  # fmt: skip
    return out


def _in_lanes(weights: Array) -> Array:
    """Return weights (draw, component) as (block, (component + 1) LANES), zeros at the end."""
    draws, n = weights.shape
    blocks = -(-draws // LANES)
    out = np.zeros((blocks, n + 1, LANES))
    for block in range(blocks):
        part = weights[block * LANES : (block + 1) * LANES]
        out[block, :n, : len(part)] = part.T
    return out.reshape(blocks, -1)


class _Sums(NamedTuple):
    """What the sums over intervals read and write to, for one thread."""

    epsilon: Array
    growth: Array
    values: Array
    above: Index
    intervals: Index
    total_p: Array
    total_q: Array
    late: tuple[Array, Array, Array]


@compiled
def _shift_tasks(
    first: int,
    last: int,
    groups: int,
    sequence: Index,
    weights: Array,
    y: Array,
    rates: Array,
    indptr: Index,
    rows: Index,
    shifts: Array,
    epsilon: Array,
    growth: Array,
    out: Array,
) -> None:
    """Fill in risks of individuals whose contributions move kernels, (draw, individual, epsilon).

    delta_i = max of H_eps(p || p_i) and H_eps(p_i || p), p = sum_j w_j k_h(x - y_j) and p_i the
    same about y_j - c_ij, Laplace kernels k_h (docs/mathematics/integrals.md, Laplace mixtures of
    one scale). Task i groups + group takes individual i in a group of blocks of LANES draws. The
    sparse columns indptr, rows and shifts are the c_ij in units of y; rates are 1 / h. Where
    max_j |c_ij| <= eps h the risk is zero.
    """
    n, early = y.size, min(EARLY, epsilon.size)
    position, steps, distances = knots.buffers(n, n)
    values, apart = shared_scale.buffer(n, n), np.zeros(LANES)
    above, intervals = interval_sums.marks(n, n)
    sums = _Sums(epsilon, growth, values, above, intervals, np.zeros(LANES), np.zeros(LANES),
                 interval_sums.levels(growth[early:]))  # fmt: skip
    moved = np.zeros(n)
    for task in range(first, last):
        i, group = task // groups, task % groups
        start = group * weights.shape[0] // groups
        stop = (group + 1) * weights.shape[0] // groups
        moved[:] = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            moved[rows[t]] += shifts[t]
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(moved[j]))
        count, total = 0, 0
        for block in range(start, stop):
            draws = sequence[block * LANES : (block + 1) * LANES]
            rate = rates[block * LANES : (block + 1) * LANES]
            for draw in draws:
                out[draw, i] = 0.0
            if largest * rate[0] <= epsilon[0]:  # the smallest scale of the block
                continue
            if count == 0:
                count, total = knots.plan(y, moved, True, y, True, position, steps, distances)
            shared_scale.knot_values(count, total, steps, distances, rate, weights[block], True,
                                     growth[0], values, apart, above)  # fmt: skip
            some = _early(count, largest * rate, draws, early, sums, out[:, i])
            if some and early < epsilon.size:
                _late(count, largest * rate, draws, early, sums, out[:, i])


@compiled
def _early(count: int, furthest: Array, draws: Index, early: int, sums: _Sums, out: Array) -> bool:
    """Fill the risks of a block of draws at the early epsilon; tell if the last is positive.

    furthest is each draw's epsilon from which on the risk is exactly zero.
    """
    epsilon, growth, values, above, intervals, total_p, total_q, _ = sums
    p, q = intervals[0], intervals[1]
    size_p = interval_sums.marked(count, above[0], p)
    size_q = interval_sums.marked(count, above[1], q)
    lanes = draws.size
    for e in range(early):
        size_p = interval_sums.sums(count, growth[e], 1.0, lanes, values, p, size_p, total_p)
        size_q = interval_sums.sums(count, growth[e], -1.0, lanes, values, q, size_q, total_q)
        some = False
        for lane in range(lanes):
            value = max(total_p[lane], total_q[lane])
            if value > 0.0 and epsilon[e] < furthest[lane]:
                out[draws[lane], e] = value
                some = True
        if not some:
            return False
    return True


@compiled
def _late(count: int, furthest: Array, draws: Index, early: int, sums: _Sums, out: Array) -> None:
    """Fill the risks of a block of draws at all epsilon after the early ones."""
    work, curve, bounds = sums.late
    growth = sums.growth[early:]
    for lane in range(draws.size):
        draw = draws[lane]
        if out[draw, early - 1] == 0.0:
            continue
        reach = interval_sums.integrate(count, growth, bounds, lane, sums.values, work, curve)
        for e in range(reach):
            if sums.epsilon[early + e] < furthest[lane]:
                out[draw, early + e] = max(curve[0, e], curve[1, e])


def _shared_curves(
    p: Array, q: Array, draw: Index, person: Index, epsilon: Array, direction: int, floor: float
) -> Array:
    """Return the closed form for the pairs (draw, person), sorted by the locations of p."""
    a, b = p[draw], q[draw, person]
    order = np.argsort(a[..., 1], axis=1, kind="stable")
    a = np.take_along_axis(a, order[..., None], axis=1)
    if a.shape[1] != b.shape[1]:
        order = np.argsort(b[..., 1], axis=1, kind="stable")
    b = np.take_along_axis(b, order[..., None], axis=1)
    both = np.zeros((len(a), 2, epsilon.size))
    in_threads(_shared_tasks, len(a), np.ascontiguousarray(a), np.ascontiguousarray(b),
               np.expm1(epsilon), both)  # fmt: skip
    result = both.max(axis=1) if direction == any_pair.BOTH else both[:, 0]
    return np.where(result >= floor, result, 0.0)


@compiled
def _shared_tasks(first: int, last: int, p: Array, q: Array, growth: Array, out: Array) -> None:
    """Fill in both directions of pairs of Laplace mixtures of one scale, out (pair, 2, epsilon).

    p (pair, n, 5) and q (pair, m, 5) are sorted by location, growth is exp(eps) - 1. Components
    are compared one by one where there are as many of both
    (docs/mathematics/integrals.md, Laplace mixtures of one scale).
    """
    n, m = p.shape[1], q.shape[1]
    position, steps, distances = knots.buffers(n, m)
    values, apart = shared_scale.buffer(n, m), np.zeros(LANES)
    above, _ = interval_sums.marks(n, m)
    work, _, bounds = interval_sums.levels(growth)
    # as the plan wants them: p, q, zero, then the differences of pairs, or -q without pairs
    weights = np.zeros((n + m + 1 + m, LANES))
    y, z, moved, rate = np.zeros(n), np.zeros(m), np.zeros(n), np.zeros(1)
    for s in range(first, last):
        rate[0] = 1.0 / p[s, 0, 2]
        for j in range(n):
            weights[j, 0], y[j] = p[s, j, 0], p[s, j, 1]
        for j in range(m):
            weights[n + j, 0], z[j] = q[s, j, 0], q[s, j, 1]
            weights[n + m + 1 + j, 0] = (p[s, j, 0] if n == m else 0.0) - q[s, j, 0]
            if n == m:
                moved[j] = y[j] - z[j]
        count, total = knots.plan(y, moved, n == m, z, False, position, steps, distances)
        shared_scale.knot_values(
            count, total, steps, distances, rate, weights.ravel(), False, 0.0, values, apart, above
        )
        interval_sums.integrate(count, growth, bounds, ZERO, values, work, out[s])
