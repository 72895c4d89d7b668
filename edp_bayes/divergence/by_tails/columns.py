"""Pairs of normal components as columns of numbers: their values, slopes and tails at many points.

A column is a component N(mu, sd) of p beside a component N(nu, t) of q, with densities f and g:

    part of p = a f + c g,    part of q = (v + c) g,    part of d = p - q: a f - v g.

What p and q have in common, c g, so never enters their difference. A component without a partner
has a = 0 or v = c = 0. Where the log ratio of v g to a f stays small, their difference is a
series instead of a subtraction, as in `edp_bayes.divergence.any_pair`.

A component with Laplace noise, N(nu, t) * Laplace(b), has a column of its own, with v = -c if it
is of p and c = 0 if it is of q. Its density f solves f - b^2 f'' = phi, phi that of N(nu, t), so
that its distribution function is that of N(nu, t) plus b^2 f'.
"""

from __future__ import annotations

import math

from edp_bayes.divergence.any_pair.components import NORMAL_LAPLACE
from edp_bayes.divergence.any_pair.evaluators import expm1_series
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import ZERO, borrowing, decay, inlined, mills_ratio

__all__ = [
    "COLUMN",
    "NOISY",
    "P_SIZE",
    "Q_SIZE",
    "D",
    "P",
    "Q",
    "add_column",
    "add_rows",
    "fill_tails",
    "fill_values",
    "noisy_radius",
    "whole",
]

# Rows of a column: the factors a, c and v, location and 1 / scale of both components, the log
# ratio of v g to a f as (front, change, shift) give it, the kind, and the scale of Laplace noise.
A, C, V, MU, RATE, NU, RATE_Q, FRONT, CHANGE, SHIFT, KIND, NOISE = range(12)
COLUMN = 12
BOTH, CLOSE, ONLY_P, ONLY_Q, NOISY = 0.0, 1.0, 2.0, 3.0, 4.0  # kinds

P, Q, D = 0, 2, 4  # rows of values, slopes after each; or of tails, steps after each
P_SIZE, Q_SIZE = 6, 7
CLOSE_RATIO = 0.5  # log ratio of two components up to which their difference is a series
SERIES_TERMS = 15  # of the difference of two tails: 0.5**15 / 15! is below rounding
PEAK = 1.0 / math.sqrt(2.0 * math.pi)


@borrowing
def add_rows(p: Array, q: Array, reach: float, columns: Array) -> int:
    """Enter the components (K, 5) and (L, 5) of two mixtures; return how many columns.

    They are Gaussian, or Gaussian with Laplace noise. With K = L they are pairs in their order.
    """
    size, paired = ZERO, p.shape[0] == q.shape[0]
    if p[0, 4] == NORMAL_LAPLACE:
        return _add_noisy(p, q, columns)
    for k in range(max(p.shape[0], q.shape[0])):
        w = p[k, 0] if k < p.shape[0] else 0.0
        v = q[k, 0] if k < q.shape[0] else 0.0
        if paired:
            size = add_column(
                columns, size, reach, w, 0.0, v, p[k, 1], p[k, 2], q[k, 1], q[k, 2]
            )  # fmt: skip
            continue
        if w > 0.0:
            size = add_column(
                columns, size, reach, w, 0.0, 0.0, p[k, 1], p[k, 2], p[k, 1], p[k, 2]
            )  # fmt: skip
        if v > 0.0:
            size = add_column(
                columns, size, reach, 0.0, 0.0, v, q[k, 1], q[k, 2], q[k, 1], q[k, 2]
            )  # fmt: skip
    return size


@borrowing
def add_column(
    columns: Array, size: int, reach: float, a: float, c: float, v: float, mu: float, sd: float,
    nu: float, t: float,
) -> int:  # fmt: skip
    """Enter a column as number `size`, unless it weighs nothing; return how many there are."""
    if a <= 0.0 and c <= 0.0 and v <= 0.0:
        return size
    row = columns[size]
    if a == v and mu == nu and sd == t:
        # a f - v g is exactly zero: the column is in common
        a, c, v = 0.0, c + v, 0.0
    row[A], row[C], row[V] = a, c, v
    row[MU], row[RATE], row[NU], row[RATE_Q] = mu, 1.0 / sd, nu, 1.0 / t
    row[FRONT] = row[CHANGE] = row[SHIFT] = 0.0
    row[KIND] = BOTH
    if a <= 0.0:
        row[KIND] = ONLY_Q
    elif v <= 0.0 and c <= 0.0:
        row[KIND] = ONLY_P
    elif v > 0.0:
        # log(v g / (a f)) = front + (z - zq)(z + zq) / 2 with z - zq = change z + shift
        front, change = math.log1p((v - a) / a) - math.log1p((t - sd) / sd), (t - sd) / t
        shift = (nu - mu) / t
        step = abs(change) * reach + abs(shift)
        if abs(front) + step * (reach + 0.5 * step) <= CLOSE_RATIO:
            row[FRONT], row[CHANGE], row[SHIFT], row[KIND] = front, change, shift, CLOSE
    return size + 1


@borrowing
def _add_noisy(p: Array, q: Array, columns: Array) -> int:
    """Enter components with noise, those that p and q have in common once."""
    size = ZERO
    paired = p.shape[0] == q.shape[0]
    for k in range(max(p.shape[0], q.shape[0])):
        same = paired
        for i in range(1, 4):
            same = same and p[k, i] == q[k, i]
        if same:
            size = _enter_noisy(p[k], min(p[k, 0], q[k, 0]), 0.0, columns, size)
            more, less = max(p[k, 0] - q[k, 0], 0.0), max(q[k, 0] - p[k, 0], 0.0)
            size = _enter_noisy(p[k], more, less - more, columns, size)
            continue
        if k < p.shape[0]:
            size = _enter_noisy(p[k], p[k, 0], -p[k, 0], columns, size)
        if k < q.shape[0]:
            size = _enter_noisy(q[k], 0.0, q[k, 0], columns, size)
    return size


@borrowing
def _enter_noisy(part: Array, c: float, v: float, columns: Array, size: int) -> int:
    """Enter a component with factors c and v, unless it weighs nothing."""
    if c == 0.0 and v == 0.0:
        return size
    row = columns[size]
    row[A], row[C], row[V], row[KIND] = 0.0, c, v, NOISY
    row[MU] = row[NU] = part[1]
    row[RATE] = row[RATE_Q] = 1.0 / part[2]
    row[NOISE] = part[3]
    return size + 1


@borrowing
def noisy_radius(row: Array, scales: float) -> float:
    """Return how far from its centre a component with noise is exp(-scales^2 / 2) of its peak."""
    sd, b = 1.0 / row[RATE_Q], row[NOISE]
    ratio = sd / b
    if ratio > scales:
        return scales * sd
    return scales * sd + b * (0.5 * scales * scales + 0.5 * ratio * ratio)


@inlined
def _search(x: Array, size: int, value: float) -> int:
    """Return how many of the first `size` points, in order, are below a value."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _range(row: Array, x: Array, size: int, cut: float) -> tuple[int, int]:
    """Return the points between which the components of a column are more than negligible."""
    low, high = math.inf, -math.inf
    if row[KIND] == NOISY:
        radius = noisy_radius(row, cut)
        return _search(x, size, row[NU] - radius), _search(x, size, row[NU] + radius)
    if row[KIND] != ONLY_Q:
        low, high = row[MU] - cut / row[RATE], row[MU] + cut / row[RATE]
    if row[KIND] != ONLY_P:
        low = min(low, row[NU] - cut / row[RATE_Q])
        high = max(high, row[NU] + cut / row[RATE_Q])
    return _search(x, size, low), _search(x, size, high)


@borrowing
def fill_values(columns: Array, count: int, x: Array, size: int, cut: float, out: Array) -> None:
    """Fill out (6, >= size) with p, q and d = p - q at the points and a slope after each.

    The points are in order. Components more than `cut` scales away add nothing.
    """
    for row in range(6):
        for j in range(size):
            out[row, j] = 0.0
    for k in range(count):
        row = columns[k]
        first, last = _range(row, x, size, cut)
        if first == last:
            continue
        at = x[first:last]
        p, p_slope, q = out[P, first:last], out[P + 1, first:last], out[Q, first:last]
        q_slope, d, d_slope = out[Q + 1, first:last], out[D, first:last], out[D + 1, first:last]
        # Each loop is free of branches, so that it becomes vector instructions.
        if row[KIND] == CLOSE:
            _close_values(row, at, p, p_slope, q, q_slope, d, d_slope)
        elif row[KIND] == BOTH:
            _both_values(row, at, p, p_slope, q, q_slope, d, d_slope)
        elif row[KIND] == NOISY:
            c, v, nu, rate, b = row[C], row[V], row[NU], row[RATE_Q], row[NOISE]
            for j in range(last - first):
                value, slope = _noisy((at[j] - nu) * rate, 1.0 / (rate * b), b)
                p[j] += c * value
                q[j] += (v + c) * value
                d[j] -= v * value
                p_slope[j] += c * slope
                q_slope[j] += (v + c) * slope
                d_slope[j] -= v * slope
        elif row[KIND] == ONLY_P:
            mu, rate, a = row[MU], row[RATE], row[A] * row[RATE] * PEAK
            for j in range(last - first):
                u = (at[j] - mu) * rate
                value = a * decay(0.5 * u * u)[0]
                slope = -u * rate * value
                p[j] += value
                d[j] += value
                p_slope[j] += slope
                d_slope[j] += slope
        else:
            nu, rate = row[NU], row[RATE_Q]
            c, v = row[C] * rate * PEAK, row[V] * rate * PEAK
            for j in range(last - first):
                u = (at[j] - nu) * rate
                value = decay(0.5 * u * u)[0]
                slope = -u * rate * value
                p[j] += c * value
                q[j] += (v + c) * value
                d[j] -= v * value
                p_slope[j] += c * slope
                q_slope[j] += (v + c) * slope
                d_slope[j] -= v * slope


@inlined
def _both_values(
    row: Array, x: Array, p: Array, p_slope: Array, q: Array, q_slope: Array, d: Array,
    d_slope: Array,
) -> None:  # fmt: skip
    mu, rate, nu, rate_q = row[MU], row[RATE], row[NU], row[RATE_Q]
    a, c, v = row[A] * rate * PEAK, row[C] * rate_q * PEAK, row[V] * rate_q * PEAK
    for j in range(x.size):
        z, zq = (x[j] - mu) * rate, (x[j] - nu) * rate_q
        f, g = a * decay(0.5 * z * z)[0], decay(0.5 * zq * zq)[0]
        f_slope, g_slope = -z * rate * f, -zq * rate_q * g
        p[j] += f + c * g
        q[j] += (v + c) * g
        d[j] += f - v * g
        p_slope[j] += f_slope + c * g_slope
        q_slope[j] += (v + c) * g_slope
        d_slope[j] += f_slope - v * g_slope


@inlined
def _close_values(
    row: Array, x: Array, p: Array, p_slope: Array, q: Array, q_slope: Array, d: Array,
    d_slope: Array,
) -> None:  # fmt: skip
    mu, rate, a, c = row[MU], row[RATE], row[A] * row[RATE] * PEAK, row[C] / row[V]
    front, change, shift = row[FRONT], row[CHANGE], row[SHIFT]
    for j in range(x.size):
        z = (x[j] - mu) * rate
        step = change * z + shift  # z - zq without cancellation
        zq = z - step
        f = a * decay(0.5 * z * z)[0]
        minus = -f * expm1_series(front + 0.5 * step * (z + zq))
        g = f - minus
        f_slope = -z * rate * f
        minus_slope = -rate * (z * minus + (step + zq * change) * g)
        g_slope = f_slope - minus_slope
        p[j] += f + c * g
        q[j] += g + c * g
        d[j] += minus
        p_slope[j] += f_slope + c * g_slope
        q_slope[j] += g_slope + c * g_slope
        d_slope[j] += minus_slope


@borrowing
def fill_tails(columns: Array, count: int, x: Array, size: int, cut: float, out: Array) -> None:
    """Fill out (8, >= size) with the masses of p, q and d = p - q below each point, in two parts.

    Phi(z) is the smaller tail, -Phi(-z) where z > 0, and a step from 0 to 1 at z = 0. The first
    row of each pair has the sums of tails, the second of steps; the last two rows have sums of
    tails of p and of q without their signs. So the mass between two points on one side of all
    components is a difference of small numbers.
    """
    for row in range(8):
        for j in range(size):
            out[row, j] = 0.0
    for k in range(count):
        row = columns[k]
        a, c, v = row[A], row[C], row[V]
        first, last = _range(row, x, size, cut)
        for j in range(last, size):
            out[P + 1, j] += a + c
            out[Q + 1, j] += v + c
            out[D + 1, j] += a - v
        if first == last:
            continue
        at = x[first:last]
        p, p_step, q = out[P, first:last], out[P + 1, first:last], out[Q, first:last]
        q_step, d, d_step = out[Q + 1, first:last], out[D, first:last], out[D + 1, first:last]
        p_size, q_size = out[P_SIZE, first:last], out[Q_SIZE, first:last]
        mu, rate, nu, rate_q = row[MU], row[RATE], row[NU], row[RATE_Q]
        if row[KIND] == CLOSE:
            change, shift, common = row[CHANGE], row[SHIFT], (v + c) / v
            for j in range(last - first):
                # a Phi(z) - v Phi(zq) = (a - v) Phi(z) - v (Phi(zq) - Phi(z)), and with h = zq - z
                # Phi(z + h) - Phi(z) = phi(z) sum_n h^n He_{n-1}(-z) / n!
                z = (at[j] - mu) * rate
                tail, step = _in_two_parts(z)
                moved = v * PEAK * decay(0.5 * z * z)[0] * _hermite_sum(z, -(change * z + shift))
                p[j] += (a + c) * tail + (common - 1.0) * moved
                q[j] += (v + c) * tail + common * moved
                d[j] += (a - v) * tail - moved
                p_step[j] += (a + c) * step
                q_step[j] += (v + c) * step
                d_step[j] += (a - v) * step
                p_size[j] += (a + c) * abs(tail)
                q_size[j] += (v + c) * abs(tail)
        elif row[KIND] == BOTH:
            for j in range(last - first):
                tail, step = _in_two_parts((at[j] - mu) * rate)
                tail_q, step_q = _in_two_parts((at[j] - nu) * rate_q)
                p[j] += a * tail + c * tail_q
                q[j] += (v + c) * tail_q
                d[j] += a * tail - v * tail_q
                p_step[j] += a * step + c * step_q
                q_step[j] += (v + c) * step_q
                d_step[j] += a * step - v * step_q
                p_size[j] += a * abs(tail) + c * abs(tail_q)
                q_size[j] += (v + c) * abs(tail_q)
        elif row[KIND] == NOISY:
            b = row[NOISE]
            for j in range(last - first):
                z = (at[j] - nu) * rate_q
                tail, step = _in_two_parts(z)
                # F = Phi + b^2 f'
                tail += b * b * _noisy(z, 1.0 / (rate_q * b), b)[1]
                p[j] += c * tail
                q[j] += (v + c) * tail
                d[j] -= v * tail
                p_step[j] += c * step
                q_step[j] += (v + c) * step
                d_step[j] -= v * step
                p_size[j] += c * abs(tail)
                q_size[j] += (v + c) * abs(tail)
        else:
            if row[KIND] == ONLY_P:
                nu, rate_q = mu, rate
            for j in range(last - first):
                tail, step = _in_two_parts((at[j] - nu) * rate_q)
                p[j] += (a + c) * tail
                q[j] += (v + c) * tail
                d[j] += (a - v) * tail
                p_step[j] += (a + c) * step
                q_step[j] += (v + c) * step
                d_step[j] += (a - v) * step
                p_size[j] += (a + c) * abs(tail)
                q_size[j] += (v + c) * abs(tail)


@borrowing
def whole(columns: Array, count: int) -> tuple[float, float, float]:
    """Return the masses of p, q and d, added up as `fill_tails` adds up steps."""
    p, q, d = 0.0, 0.0, 0.0
    for k in range(count):
        a, c, v = columns[k, A], columns[k, C], columns[k, V]
        p, q, d = p + (a + c), q + (v + c), d + (a - v)
    return p, q, d


@inlined
def _noisy(z: float, ratio: float, b: float) -> tuple[float, float]:
    """Density of N(0, s^2) * Laplace(b) and its slope at s z; ratio is s / b.

    It is half the sum, and the slope over b half the difference, of the densities with noise on
    one side, exponential of mean b. These are

        exp(-z^2 / 2) M(t) / b,  or  (exp(-(z - ratio / 2) ratio) - exp(-z^2 / 2) M(-t)) / b

    with Mills' ratio M(t) = exp(t^2 / 2) P(N(0, 1) > t), t = ratio - z, where t is positive or not.
    """
    peak = decay(0.5 * z * z)[0]
    right = _one_sided(z, ratio, peak)
    left = _one_sided(-z, ratio, peak)
    return 0.5 * (right + left) / b, 0.5 * (left - right) / (b * b)


@inlined
def _one_sided(z: float, ratio: float, peak: float) -> float:
    t = ratio - z
    mills = peak * mills_ratio(abs(t))
    return mills if t >= 0.0 else decay(max((z - 0.5 * ratio) * ratio, 0.0))[0] - mills


@inlined
def _in_two_parts(z: float) -> tuple[float, float]:
    """Return the smaller tail, with its sign, and the step whose sum is Phi(z)."""
    tail = decay(0.5 * z * z)[0] * mills_ratio(abs(z))
    return (-tail if z > 0.0 else tail), (1.0 if z > 0.0 else 0.0)


@inlined
def _hermite_sum(z: float, h: float) -> float:
    """sum_n h^n He_{n-1}(-z) / n!, by He_n(y) = y He_{n-1}(y) - (n - 1) He_{n-2}(y)."""
    before, now, total = 0.0, h, h
    for n in range(1, SERIES_TERMS):
        new = h * (1.0 / (n + 1.0)) * (-z * now - h * ((n - 1.0) / n) * before)  # no divisions
        before, now = now, new
        total += new
    return total
