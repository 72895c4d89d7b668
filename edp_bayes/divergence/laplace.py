"""Hockey-stick integrals of Laplace mixtures that share one scale, exact and in O(n + E).

Between two neighbouring knots (the locations of p and q, sorted) every density is
A exp(-u) + B exp(u), so the ratio p / q is monotone there and p - exp(eps) q changes sign at
most once. The whole integral then follows from three numbers at each knot, p, q and d = p - q,
which forward and backward recurrences give for all knots in O(n):

- an interval on which p > exp(eps) q throughout adds
  (d_0 + d_1 - expm1(eps) (q_0 + q_1)) tanh(width / 2);
- one that the sign change cuts, with g = d - expm1(eps) q positive at one end and -m at the
  other, adds g^2 / (sqrt(a) + sqrt(b))^2, where a and b are the two exponential parts of the
  integrand at the positive end. No logarithm is needed and nothing cancels.

A knot and its shifted copy are kept together as a pair, whose share of d is formed from
1 - exp(-shift), so that d keeps its relative precision however small the shifts are.

The recurrences run for LANES draws at once: the order of the knots is the same in all of them,
so the loops over lanes become vector instructions.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import compiled, decay

__all__ = ["shared_scale_curves", "shift_curves"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LANES = 4
MIN_TASKS = 16  # individuals are split over draws when there are fewer of them than this
PLAIN, OPEN, CLOSE = 0, 1, 2  # what a knot is to its pair, from left to right


def shift_curves(
    weights: Array,
    locations: Array,
    scales: Array,
    indptr: Index,
    rows: Index,
    values: Array,
    epsilon: Array,
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

    Returns
    -------
    ndarray, shape (S, B, E)
        Privacy curves, never negative.

    Examples
    --------
    >>> import numpy as np
    >>> w, y, h = np.array([[0.5, 0.5]]), np.array([0.0, 1.0]), np.array([1.0])
    >>> ptr, rows, c = np.array([0, 2]), np.array([0, 1]), np.array([0.5, 0.5])
    >>> shift_curves(w, y, h, ptr, rows, c, np.array([0.0, 0.5])).round(6)
    array([[[0.182574, 0.      ]]])
    """
    order = np.argsort(locations, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    padded = _lanes(np.asarray(weights)[:, order])
    rates = _pad(1.0 / np.asarray(scales, dtype=np.float64))
    return _shift_curves(
        padded,
        np.ascontiguousarray(locations[order], dtype=np.float64),
        rates,
        np.asarray(indptr, dtype=np.int64),
        rank[rows].astype(np.int64),
        np.asarray(values, dtype=np.float64),
        np.ascontiguousarray(epsilon, dtype=np.float64),
        len(scales),
    )


def shared_scale_curves(
    pw: Array, pm: Array, qw: Array, qm: Array, scales: Array, epsilon: Array
) -> Array:
    """Return both directions of H_eps for pairs of Laplace mixtures with one scale per pair.

    Parameters
    ----------
    pw, pm : ndarray, shape (S, K)
        Weights and locations of p.
    qw, qm : ndarray, shape (S, L)
        Weights and locations of q. With K = L the components are taken as pairs in their order,
        which keeps the precision when q is p slightly moved.
    scales : ndarray, shape (S,)
        The scale of each pair.
    epsilon : ndarray, shape (E,)
        Finite, non-negative, increasing.

    Returns
    -------
    ndarray, shape (S, 2, E)
        H_eps(p || q) and H_eps(q || p).
    """
    return _shared_scale_curves(pw, pm, qw, qm, scales, epsilon)


def _lanes(weights: Array) -> Array:
    """Transpose to (component, draw), with draws padded to whole lanes and a last row of zeros."""
    draws, n = weights.shape
    out = np.zeros((n + 1, -(-draws // LANES) * LANES))
    out[:n, :draws] = weights.T
    out[:n, draws:] = weights[-1][:, None]
    return out


def _pad(rates: Array) -> Array:
    missing = -rates.size % LANES
    return np.concatenate([rates, np.full(missing, rates[-1])])


@compiled()
def _plan_shift(locations, rows, shifts, plan_i, plan_f):  # type: ignore[no-untyped-def]
    """Sort the knots of p and p_i; return their number, see _plan for what is stored."""
    n = locations.size
    moved = np.zeros(n, dtype=np.float64)
    for t in range(rows.size):
        moved[rows[t]] += shifts[t]
    position = np.empty(2 * n)
    left = np.empty(2 * n, dtype=np.int64)
    right = np.empty(2 * n, dtype=np.int64)
    knots = 0
    for j in range(n):
        position[knots] = locations[j] - locations[0]
        left[knots] = j
        right[knots] = j if moved[j] == 0.0 else n
        knots += 1
    for j in range(n):
        if moved[j] != 0.0:
            position[knots] = (locations[j] - locations[0]) - moved[j]
            left[knots] = n
            right[knots] = j
            knots += 1
    distances = _plan(position[:knots], left[:knots], right[:knots], np.abs(moved), n, n,
                      plan_i, plan_f)  # fmt: skip
    return knots, distances


@compiled()
def _plan(position, left, right, span, n, m, plan_i, plan_f):  # type: ignore[no-untyped-def]
    """Order the knots and pair each component with its shifted copy.

    position, left, right describe the knots: the component of p (n: none) and of q (m: none)
    that sits there. span holds the distance between the members of each pair; components at or
    beyond its size are single. plan_i gets columns left, right, role, reset (no pair is open
    across this side of the knot), partner component, row of the pair's distance; plan_f the
    distances to exponentiate: gaps first, then those of pairs that are not neighbours.
    Returns the number of distances.
    """
    knots = position.size
    order = np.argsort(position, kind="mergesort")
    place_left = np.full(n + 1, -1, dtype=np.int64)
    place_right = np.full(m + 1, -1, dtype=np.int64)
    for k in range(knots):
        plan_i[k, 0] = left[order[k]]
        plan_i[k, 1] = right[order[k]]
        place_left[plan_i[k, 0]] = k
        place_right[plan_i[k, 1]] = k
    for k in range(knots - 1):
        plan_f[k] = position[order[k + 1]] - position[order[k]]
    distances = knots - 1
    still_open = 0
    for k in range(knots):
        a, b = plan_i[k, 0], plan_i[k, 1]
        plan_i[k, 2] = PLAIN
        plan_i[k, 3] = 0
        if (a < n and b < m) or min(a, b) >= span.size:
            continue
        j = min(a, b)
        other = place_right[j] if a < n else place_left[j]
        plan_i[k, 4] = j
        if k < other:
            plan_i[k, 2] = OPEN
            plan_i[k, 3] = 1 if still_open == 0 else 0
            still_open += 1
            if other == k + 1:
                plan_f[k] = span[j]
                row = k
            else:
                plan_f[distances] = span[j]
                row = distances
                distances += 1
            plan_i[k, 5] = row
            plan_i[other, 5] = row
        else:
            plan_i[k, 2] = CLOSE
            still_open -= 1
            plan_i[k, 3] = 1 if still_open == 0 else 0
    return distances


@compiled()
def _closed(a, b, is_p, wp, wq, lost, c):  # type: ignore[no-untyped-def]
    """Add to c the share of a pair in d, seen from its nearer member (p's if is_p)."""
    for lane in range(LANES):
        c[lane] += (wp[lane] - wq[lane]) + (
            wq[lane] * lost[lane] if is_p else -(wp[lane] * lost[lane])
        )


@compiled()
def _knot_values(  # type: ignore[no-untyped-def]
    knots, plan_i, wp, wq, start, kept, lost, p, q, d
):
    """Fill p, q and d = p - q at the knots, up to the factor 1 / (2 h)."""
    n, m = wp.shape[0] - 1, wq.shape[0] - 1
    stop = start + LANES
    sum_p = np.zeros(LANES)
    sum_q = np.zeros(LANES)
    naive = np.zeros(LANES)  # one-sided part of d, pairs that are cut by the knot included
    exact = np.zeros(LANES)  # the same from closed pairs alone, free of cancellation
    for k in range(knots):
        a = wp[plan_i[k, 0], start:stop]
        b = wq[plan_i[k, 1], start:stop]
        pk, qk, dk = p[k], q[k], d[k]
        if k > 0:
            keep = kept[k - 1]
            for lane in range(LANES):
                sum_p[lane] *= keep[lane]
                sum_q[lane] *= keep[lane]
                naive[lane] *= keep[lane]
                exact[lane] *= keep[lane]
        role = plan_i[k, 2]
        if role == OPEN:
            for lane in range(LANES):
                dk[lane] = naive[lane]
        for lane in range(LANES):
            sum_p[lane] += a[lane]
            sum_q[lane] += b[lane]
            pk[lane] = sum_p[lane]
            qk[lane] = sum_q[lane]
            naive[lane] += a[lane] - b[lane]
        if role == PLAIN:
            for lane in range(LANES):
                exact[lane] += a[lane] - b[lane]
        elif role == CLOSE:
            j = plan_i[k, 4]
            _closed(n, m, plan_i[k, 0] < n, wp[j, start:stop], wq[j, start:stop],
                    lost[plan_i[k, 5]], exact)  # fmt: skip
            if plan_i[k, 3] == 1:
                for lane in range(LANES):
                    naive[lane] = exact[lane]
        if role != OPEN:
            for lane in range(LANES):
                dk[lane] = naive[lane]
    sum_p[:] = 0.0
    sum_q[:] = 0.0
    naive[:] = 0.0
    exact[:] = 0.0
    for back in range(knots):
        k = knots - 1 - back
        a = wp[plan_i[k, 0], start:stop]
        b = wq[plan_i[k, 1], start:stop]
        pk, qk, dk = p[k], q[k], d[k]
        if back > 0:
            keep = kept[k]
            for lane in range(LANES):
                sum_p[lane] *= keep[lane]
                sum_q[lane] *= keep[lane]
                naive[lane] *= keep[lane]
                exact[lane] *= keep[lane]
        role = plan_i[k, 2]
        if role != OPEN:
            for lane in range(LANES):
                dk[lane] += naive[lane]
        for lane in range(LANES):
            pk[lane] += sum_p[lane]
            qk[lane] += sum_q[lane]
            sum_p[lane] += a[lane]
            sum_q[lane] += b[lane]
            naive[lane] += a[lane] - b[lane]
        if role == PLAIN:
            for lane in range(LANES):
                exact[lane] += a[lane] - b[lane]
        elif role == OPEN:
            j = plan_i[k, 4]
            _closed(n, m, plan_i[k, 0] < n, wp[j, start:stop], wq[j, start:stop],
                    lost[plan_i[k, 5]], exact)  # fmt: skip
            if plan_i[k, 3] == 1:
                for lane in range(LANES):
                    naive[lane] = exact[lane]
            for lane in range(LANES):
                dk[lane] += naive[lane]


@compiled()
def _cut(positive, negative, kept, lost):  # type: ignore[no-untyped-def]
    """Integrate the positive part of an interval whose ends are positive and -negative."""
    a = positive + kept * negative
    b = kept * (kept * positive + negative)
    whole = a + b + 2.0 * np.sqrt(a * b)
    return positive * positive * lost * (1.0 + kept) / whole if whole > 0.0 else 0.0


@compiled()
def _level(ratio, growth, live, level):  # type: ignore[no-untyped-def]
    """Return the number of growth[:live] below ratio, starting the search at level."""
    while level < live and growth[level] < ratio:
        level += 1
    while level > 0 and growth[level - 1] >= ratio:
        level -= 1
    return level


@compiled()
def _integrate(knots, live, growth, lane, p, q, d, kept, lost, ratio, half, work, out):  # type: ignore[no-untyped-def]
    """Add up one lane over all intervals; out[0] and out[1] get the two directions."""
    work[:, : live + 1] = 0.0
    level_p = _level(ratio[0, lane], growth, live, 0)
    level_q = _level(-ratio[0, lane], growth, live, 0)
    work[0, level_p] += d[0, lane]
    work[1, level_p] += q[0, lane]
    work[2, level_q] -= d[0, lane]
    work[3, level_q] += p[0, lane]
    for k in range(knots - 1):
        d0, d1 = d[k, lane], d[k + 1, lane]
        tanh = half[k, lane]
        before_p, before_q = level_p, level_q
        level_p = _level(ratio[k + 1, lane], growth, live, level_p)
        level_q = _level(-ratio[k + 1, lane], growth, live, level_q)
        if before_p + level_p > 0:
            low = min(before_p, level_p)
            work[0, low] += (d0 + d1) * tanh
            work[1, low] += (q[k, lane] + q[k + 1, lane]) * tanh
            for e in range(low, max(before_p, level_p)):
                g0 = d0 - growth[e] * q[k, lane]
                g1 = d1 - growth[e] * q[k + 1, lane]
                if level_p > before_p:
                    g0, g1 = g1, g0
                work[4, e] += _cut(max(g0, 0.0), max(-g1, 0.0), kept[k, lane], lost[k, lane])
        if before_q + level_q > 0:
            low = min(before_q, level_q)
            work[2, low] -= (d0 + d1) * tanh
            work[3, low] += (p[k, lane] + p[k + 1, lane]) * tanh
            for e in range(low, max(before_q, level_q)):
                g0 = -d0 - growth[e] * p[k, lane]
                g1 = -d1 - growth[e] * p[k + 1, lane]
                if level_q > before_q:
                    g0, g1 = g1, g0
                work[5, e] += _cut(max(g0, 0.0), max(-g1, 0.0), kept[k, lane], lost[k, lane])
    work[0, level_p] += d[knots - 1, lane]
    work[1, level_p] += q[knots - 1, lane]
    work[2, level_q] -= d[knots - 1, lane]
    work[3, level_q] += p[knots - 1, lane]
    for side in range(2):
        gain, base = 0.0, 0.0
        for back in range(live):
            e = live - 1 - back
            gain += work[2 * side, e + 1]
            base += work[2 * side + 1, e + 1]
            whole = gain - growth[e] * base if base > 0.0 else gain
            out[side, e] = min(max(0.5 * (max(whole, 0.0) + work[4 + side, e]), 0.0), 1.0)


@compiled()
def _block(knots, distances, plan_i, plan_f, wp, wq, start, rates, p, q, d, kept, lost, ratio, half):  # type: ignore[no-untyped-def]
    """Fill every array of knots and intervals for the lanes that begin at draw start."""
    for k in range(distances):
        gap = plan_f[k]
        keep, lose = kept[k], lost[k]
        for lane in range(LANES):
            keep[lane], lose[lane] = decay(gap * rates[start + lane])
    _knot_values(knots, plan_i, wp, wq, start, kept, lost, p, q, d)
    for k in range(knots):
        pk, qk, dk, rk, hk = p[k], q[k], d[k], ratio[k], half[k]
        keep, lose = kept[k], lost[k]
        for lane in range(LANES):
            below = qk[lane] if dk[lane] > 0.0 else pk[lane]
            rk[lane] = dk[lane] / max(below, 1e-300)
            hk[lane] = lose[lane] / (1.0 + keep[lane])


@compiled(parallel=True)
def _shift_curves(wt, locations, rates, indptr, rows, values, epsilon, draws):  # type: ignore[no-untyped-def]
    n, people, levels = locations.size, indptr.size - 1, epsilon.size
    growth = np.expm1(epsilon)
    out = np.zeros((draws, people, levels))
    blocks = wt.shape[1] // LANES
    groups = 1 if people >= MIN_TASKS else min(blocks, -(-MIN_TASKS // max(people, 1)))
    for task in numba.prange(people * groups):
        i, group = task // groups, task % groups
        largest = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(values[t]))
        first, last = group * blocks // groups, (group + 1) * blocks // groups
        if last > first and largest > epsilon[0] / np.max(rates[first * LANES : last * LANES]):
            plan_i = np.zeros((2 * n, 6), dtype=np.int64)
            plan_f = np.zeros(3 * n)
            arrays = np.zeros((7, 3 * n, LANES))
            work = np.zeros((6, levels + 1))
            curve = np.zeros((2, levels))
            part = slice(indptr[i], indptr[i + 1])
            knots, distances = _plan_shift(locations, rows[part], values[part], plan_i, plan_f)
            for block in range(first, last):
                start = block * LANES
                if largest * np.max(rates[start : start + LANES]) <= epsilon[0]:
                    continue
                _block(knots, distances, plan_i, plan_f, wt, wt, start, rates,
                       arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5],
                       arrays[6])  # fmt: skip
                for lane in range(min(LANES, draws - start)):
                    live = 0
                    while live < levels and epsilon[live] < largest * rates[start + lane]:
                        live += 1
                    _integrate(knots, live, growth, lane, arrays[0], arrays[1], arrays[2],
                               arrays[3], arrays[4], arrays[5], arrays[6], work, curve)  # fmt: skip
                    for e in range(live):
                        out[start + lane, i, e] = max(curve[0, e], curve[1, e])
    return out


@compiled(parallel=True)
def _shared_scale_curves(pw, pm, qw, qm, scales, epsilon):  # type: ignore[no-untyped-def]
    pairs, n, m, levels = pw.shape[0], pw.shape[1], qw.shape[1], epsilon.size
    growth = np.expm1(epsilon)
    out = np.zeros((pairs, 2, levels))
    for s in numba.prange(pairs):
        wp = np.zeros((n + 1, LANES))
        wq = np.zeros((m + 1, LANES))
        position = np.empty(n + m)
        left = np.empty(n + m, dtype=np.int64)
        right = np.empty(n + m, dtype=np.int64)
        knots = 0
        span = np.zeros(n if n == m else 0)
        for j in range(n):
            wp[j, :] = pw[s, j]
            same = n == m and pm[s, j] == qm[s, j]
            if n == m:
                span[j] = abs(pm[s, j] - qm[s, j])
            position[knots], left[knots], right[knots] = pm[s, j] - pm[s, 0], j, j if same else m
            knots += 1
        for j in range(m):
            wq[j, :] = qw[s, j]
            if n != m or pm[s, j] != qm[s, j]:
                position[knots], left[knots], right[knots] = qm[s, j] - pm[s, 0], n, j
                knots += 1
        plan_i = np.zeros((n + m, 6), dtype=np.int64)
        plan_f = np.zeros(2 * (n + m))
        arrays = np.zeros((7, 2 * (n + m), LANES))
        distances = _plan(position[:knots], left[:knots], right[:knots], span, n, m,
                          plan_i, plan_f)  # fmt: skip
        _block(knots, distances, plan_i, plan_f, wp, wq, 0, np.full(LANES, 1.0 / scales[s]),
               arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5],
               arrays[6])  # fmt: skip
        work = np.zeros((6, levels + 1))
        _integrate(knots, levels, growth, 0, arrays[0], arrays[1], arrays[2], arrays[3],
                   arrays[4], arrays[5], arrays[6], work, out[s])  # fmt: skip
    return out
