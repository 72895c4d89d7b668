"""Hockey-stick integrals of Laplace mixtures that share one scale, exact and in O(n + E).

Between two neighbouring knots (the locations of p and q, sorted) every density is
A exp(-u) + B exp(u), so the ratio p / q is monotone there and p - exp(eps) q changes sign at
most once. The whole integral then follows from three numbers at each knot, p, q and d = p - q,
which forward and backward recurrences give for all knots in O(n):

- an interval on which p > exp(eps) q throughout adds
  (d_0 + d_1 - expm1(eps) (q_0 + q_1)) tanh(width / 2);
- one that the sign change cuts, with d - expm1(eps) q equal to g at one end and -m at the
  other, adds g^2 / (sqrt(a) + sqrt(b))^2, where a and b are the two exponential parts of the
  integrand at the positive end. No logarithm is needed and nothing cancels.

A component and its shifted copy are kept together as a pair, whose share of d is formed from
1 - exp(-shift), so that d keeps its relative precision however small the shifts are. Only knots
that lie inside the shift of another pair see the two members of that pair apart.

The order of the knots is the same for all draws, so the recurrences run over many draws (lanes)
at once, in loops that become vector instructions. A pass over the knots of each lane then adds
up intervals of equal level: the number of epsilon below the log ratio, negative where q > p.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.compiled import compiled, decay

__all__ = ["buffers", "integrate", "knot_values", "plan", "thresholds"]

# Columns of the plan of a knot: components of p and q that are added when it is passed (they sit
# there and have no partner elsewhere), pair that closes here from the left, from the right, side
# of that pair that sits here, row of its shift among the distances, component of p and of q that
# sits here, and whether the pair opened or closed here encloses other knots.
OWN_P, OWN_Q, ENDS, STARTS, IS_P, SHIFT, AT_P, AT_Q, WIDE = 0, 1, 2, 3, 4, 5, 6, 7, 8
COLUMNS = 9

# Rows of the buffer of values: arrays (knot, lane).
KEPT, LOST, P, Q, D, RATIO, INTEGRAL, BASE = 0, 1, 2, 3, 4, 5, 6, 7
ROWS = 8


@compiled
def buffers(n, m, lanes):  # type: ignore[no-untyped-def]
    """Return position (2, n + m), plan, distances and values for n and m components."""
    return (
        np.zeros((4, n + m)),
        np.zeros((n + m, COLUMNS), dtype=np.int64),
        np.zeros(n + m + min(n, m)),
        np.zeros((ROWS, n + m + min(n, m), lanes)),
    )


@compiled
def _sort(position, count):  # type: ignore[no-untyped-def]
    """Sort the columns of position by its first row; made for columns nearly in order."""
    for k in range(1, count):
        x, a, b = position[0, k], position[1, k], position[2, k]
        t = k - 1
        while t >= 0 and position[0, t] > x:
            position[0, t + 1] = position[0, t]
            position[1, t + 1] = position[1, t]
            position[2, t + 1] = position[2, t]
            t -= 1
        position[0, t + 1], position[1, t + 1], position[2, t + 1] = x, a, b


@compiled
def plan(y, moved, paired, z, position, steps, distances):  # type: ignore[no-untyped-def]
    """Order the knots, match pairs and list the distances whose exponentials are needed.

    y holds the locations of p, increasing. If paired, component j of q sits at y_j - moved_j,
    otherwise q sits at z. Gaps come first among the distances, then the shifts of wide pairs.
    Returns the numbers of knots and of distances.
    """
    n, m = y.size, y.size if paired else z.size
    count = 0
    for j in range(n):
        position[0, count] = y[j] - y[0]
        position[1, count] = j
        position[2, count] = j if paired and moved[j] == 0.0 else m
        count += 1
    for j in range(m):
        if not paired or moved[j] != 0.0:
            position[0, count] = (y[j] - y[0]) - moved[j] if paired else z[j] - y[0]
            position[1, count] = n
            position[2, count] = j
            count += 1
    _sort(position, count)
    total = count - 1
    for k in range(count - 1):
        distances[k] = position[0, k + 1] - position[0, k]
    if paired:
        for k in range(count):
            position[3, int(min(position[1, k], position[2, k]))] = -1.0
    for k in range(count):
        a, b = int(position[1, k]), int(position[2, k])
        step = steps[k]
        step[OWN_P], step[OWN_Q], step[ENDS], step[STARTS] = n, m, -1, -1
        step[IS_P], step[SHIFT], step[WIDE] = a < n, 0, 0
        step[AT_P], step[AT_Q] = a, b
        if not paired or (a < n and b < m):
            step[OWN_P], step[OWN_Q] = a, b
            continue
        j = min(a, b)
        other = int(position[3, j])
        if other < 0:
            position[3, j] = k
            step[STARTS] = j
            continue
        step[ENDS] = j
        if other == k - 1:
            row = other
        else:
            row = total
            total += 1
            step[WIDE] = 1
            steps[other, WIDE] = 1
        distances[row] = abs(moved[j])
        step[SHIFT] = row
        steps[other, SHIFT] = row
    return count, total


@compiled
def knot_values(count, total, steps, distances, rate, wp, wq, lanes, values, carry):  # type: ignore[no-untyped-def]
    """Fill the buffer of values for a block of lanes, up to the factor 1 / (2 h).

    rate (lanes) holds 1 / h; wp, wq (component + 1, lanes) the weights, with a last row of zeros.
    """
    _decays(total, distances, rate, lanes, values[KEPT], values[LOST])
    _forward(count, steps, wp, wq, lanes, values[KEPT], values[LOST], values[P], values[Q],
             values[D], carry)  # fmt: skip
    _backward(count, steps, wp, wq, lanes, values[KEPT], values[LOST], values[P], values[Q],
              values[D], carry)  # fmt: skip
    _intervals(count, lanes, values[KEPT], values[LOST], values[P], values[Q], values[D],
               values[RATIO], values[INTEGRAL], values[BASE])  # fmt: skip


@compiled
def _decays(total, distances, rate, lanes, kept, lost):  # type: ignore[no-untyped-def]
    for k in range(total):
        gap = distances[k]
        for lane in range(lanes):
            kept[k, lane], lost[k, lane] = decay(gap * rate[lane])


@compiled
def _forward(count, steps, wp, wq, lanes, kept, lost, p, q, d, carry):  # type: ignore[no-untyped-def]
    """Sum everything that lies to the left of each knot, the knot included.

    The loops over lanes stay short on purpose: with more arrays in one of them the compiler can
    no longer show that they are distinct, and gives up vector instructions.
    """
    n, m = wp.shape[0] - 1, wq.shape[0] - 1
    closed, apart = carry[0], carry[1]  # parts of d: complete pairs, and wide pairs still open
    closed[:] = 0.0
    open_pairs = 0
    for k in range(count):
        step = steps[k]
        a, b, last = step[AT_P], step[AT_Q], max(k - 1, 0)
        if k == 0:
            for lane in range(lanes):
                p[0, lane] = wp[a, lane]
                q[0, lane] = wq[b, lane]
        else:
            for lane in range(lanes):
                p[k, lane] = p[last, lane] * kept[last, lane] + wp[a, lane]
            for lane in range(lanes):
                q[k, lane] = q[last, lane] * kept[last, lane] + wq[b, lane]
            for lane in range(lanes):
                closed[lane] *= kept[last, lane]
        _add_rows(closed, wp[step[OWN_P]], wq[step[OWN_Q]], lanes, step[OWN_P] < n, step[OWN_Q] < m)
        if step[ENDS] >= 0:
            _close(closed, step, step[ENDS], wp, wq, lost, lanes)
        for lane in range(lanes):
            d[k, lane] = closed[lane]
        if open_pairs > 0:
            for lane in range(lanes):
                apart[lane] *= kept[last, lane]
        if step[WIDE] == 1 and step[ENDS] >= 0:
            open_pairs -= 1
            _join(apart, step, step[ENDS], wp, wq, kept, lanes)
        if open_pairs > 0:
            for lane in range(lanes):
                d[k, lane] += apart[lane]
        if step[WIDE] == 1 and step[STARTS] >= 0:
            if open_pairs == 0:
                apart[:] = 0.0
            open_pairs += 1
            _add_rows(apart, wp[a], wq[b], lanes, a < n, b < m)


@compiled
def _backward(count, steps, wp, wq, lanes, kept, lost, p, q, d, carry):  # type: ignore[no-untyped-def]
    """Add everything that lies to the right of each knot, the knot excluded.

    A pair whose left member is the knot counts as closed here, and not in the forward pass.
    """
    n, m = wp.shape[0] - 1, wq.shape[0] - 1
    closed, apart, sum_p, sum_q = carry[0], carry[1], carry[2], carry[3]
    carry[:, :] = 0.0
    open_pairs = 0
    for back in range(count):
        k = count - 1 - back
        step = steps[k]
        a, b = step[AT_P], step[AT_Q]
        for lane in range(lanes):
            right = sum_p[lane] * kept[k, lane]
            p[k, lane] += right
            sum_p[lane] = right + wp[a, lane]
        for lane in range(lanes):
            right = sum_q[lane] * kept[k, lane]
            q[k, lane] += right
            sum_q[lane] = right + wq[b, lane]
        for lane in range(lanes):
            closed[lane] *= kept[k, lane]
        if step[STARTS] >= 0:
            _close(closed, step, step[STARTS], wp, wq, lost, lanes)
        for lane in range(lanes):
            d[k, lane] += closed[lane]
        _add_rows(closed, wp[step[OWN_P]], wq[step[OWN_Q]], lanes, step[OWN_P] < n, step[OWN_Q] < m)
        if open_pairs > 0:
            for lane in range(lanes):
                apart[lane] *= kept[k, lane]
        if step[WIDE] == 1 and step[STARTS] >= 0:
            open_pairs -= 1
            _join(apart, step, step[STARTS], wp, wq, kept, lanes)
        if open_pairs > 0:
            for lane in range(lanes):
                d[k, lane] += apart[lane]
        if step[WIDE] == 1 and step[ENDS] >= 0:
            if open_pairs == 0:
                apart[:] = 0.0
            open_pairs += 1
            _add_rows(apart, wp[a], wq[b], lanes, a < n, b < m)


@compiled
def _add_rows(total, row_p, row_q, lanes, has_p, has_q):  # type: ignore[no-untyped-def]
    """Add a weight of p and subtract one of q."""
    if has_p and has_q:
        for lane in range(lanes):
            total[lane] += row_p[lane] - row_q[lane]
    elif has_p:
        for lane in range(lanes):
            total[lane] += row_p[lane]
    elif has_q:
        for lane in range(lanes):
            total[lane] -= row_q[lane]


@compiled
def _close(total, step, j, wp, wq, lost, lanes):  # type: ignore[no-untyped-def]
    """Add the share in d of pair j, seen from its member at this knot.

    It is w - v exp(-t) = (w - v) + v (1 - exp(-t)) from p's side, and
    w exp(-t) - v = (w - v) - w (1 - exp(-t)) from q's.
    """
    row_p, row_q, loss = wp[j], wq[j], lost[step[SHIFT]]
    for lane in range(lanes):
        total[lane] += row_p[lane] - row_q[lane]
    if step[IS_P] == 1:
        for lane in range(lanes):
            total[lane] += row_q[lane] * loss[lane]
    else:
        for lane in range(lanes):
            total[lane] -= row_p[lane] * loss[lane]


@compiled
def _join(apart, step, j, wp, wq, kept, lanes):  # type: ignore[no-untyped-def]
    """Remove the member of a wide pair that was met first, now that the other closes it."""
    keep = kept[step[SHIFT]]
    if step[IS_P] == 1:
        row = wq[j]
        for lane in range(lanes):
            apart[lane] += row[lane] * keep[lane]
    else:
        row = wp[j]
        for lane in range(lanes):
            apart[lane] -= row[lane] * keep[lane]


@compiled
def _intervals(count, lanes, kept, lost, p, q, d, ratio, integral, base):  # type: ignore[no-untyped-def]
    """Fill the signed ratio at knots and, per interval, the integrals of d and of min(p, q).

    The ratio is p / q - 1 where p > q and 1 - q / p where p < q; an interval that meets both
    cases is never taken as a whole.
    """
    for k in range(count):
        for lane in range(lanes):
            less = q[k, lane] if d[k, lane] > 0.0 else p[k, lane]
            ratio[k, lane] = d[k, lane] / max(less, 1e-300)
            base[k, lane] = less
    for k in range(count - 1):
        for lane in range(lanes):  # the hyperbolic tangent of half the width
            integral[k, lane] = lost[k, lane] / (1.0 + kept[k, lane])
        for lane in range(lanes):
            base[k, lane] = (base[k, lane] + base[k + 1, lane]) * integral[k, lane]
        for lane in range(lanes):
            integral[k, lane] *= d[k, lane] + d[k + 1, lane]


@compiled
def thresholds(growth, live, out):  # type: ignore[no-untyped-def]
    """Fill out with the ratios at which the signed level changes, between two infinities.

    Level v (from -live to live) lies between out[v + live] and out[v + live + 1].
    """
    out[0] = -math.inf
    for e in range(live):
        out[live - e] = -growth[e]
        out[live + 1 + e] = growth[e]
    out[2 * live + 1] = math.inf


@compiled
def integrate(count, growth, live, bounds, lane, values, work, out):  # type: ignore[no-untyped-def]
    """Add up one lane; out (2, E) gets H(p || q) and H(q || p) for the first live epsilon."""
    ratio, integral, base = values[RATIO], values[INTEGRAL], values[BASE]
    for row in range(3):
        for v in range(2 * live + 1):
            work[row, v] = 0.0
    level = live  # shifted by live, so that it indexes bounds and work
    sum_d = values[D, 0, lane]
    sum_base = values[Q, 0, lane] if sum_d > 0.0 else values[P, 0, lane]
    r = ratio[0, lane]
    level = _move(level, r, bounds, live)
    low, high = bounds[level], bounds[level + 1]
    for k in range(count - 1):
        r = ratio[k + 1, lane]
        if low < r < high:
            sum_d += integral[k, lane]
            sum_base += base[k, lane]
            continue
        after = _move(level, r, bounds, live)
        if after == level:
            sum_d += integral[k, lane]
            sum_base += base[k, lane]
            continue
        work[0, level] += sum_d
        work[1, level] += sum_base
        _cross(k, lane, level - live, after - live, live, growth, values, work)
        level = after
        low, high = bounds[level], bounds[level + 1]
        sum_d = 0.0
        sum_base = 0.0
    work[0, level] += sum_d
    work[1, level] += sum_base
    d = values[D, count - 1, lane]
    work[0, level] += d
    work[1, level] += values[Q, count - 1, lane] if d > 0.0 else values[P, count - 1, lane]
    for side in range(2):
        sign = 1 - 2 * side
        gain, less = 0.0, 0.0
        for back in range(live):
            e = live - 1 - back
            v = live + sign * (e + 1)
            gain += sign * work[0, v]
            less += work[1, v]
            whole = gain - growth[e] * less if less > 0.0 else gain
            out[side, e] = min(max(0.5 * (max(whole, 0.0) + work[2, v]), 0.0), 1.0)


@compiled
def _move(level, r, bounds, live):  # type: ignore[no-untyped-def]
    """Return the level of ratio r: bounds are passed strictly, away from zero."""
    while level < 2 * live and (r > bounds[level + 1] or (level < live and r == bounds[level + 1])):
        level += 1
    while level > 0 and (r < bounds[level] or (level > live and r == bounds[level])):
        level -= 1
    return level


@compiled
def _cross(k, lane, before, after, live, growth, values, work):  # type: ignore[no-untyped-def]
    """Add an interval that spans several levels: in part to those it crosses."""
    d0, d1 = values[D, k, lane], values[D, k + 1, lane]
    kept, lost = values[KEPT, k, lane], values[LOST, k, lane]
    for side in range(2):
        sign = 1 - 2 * side
        first, last = max(sign * before, 0), max(sign * after, 0)
        low, high = min(first, last), max(first, last)
        if high == 0:
            continue
        row = Q if side == 0 else P
        q0, q1 = values[row, k, lane], values[row, k + 1, lane]
        if low > 0:
            work[0, live + sign * low] += values[INTEGRAL, k, lane]
            work[1, live + sign * low] += values[BASE, k, lane]
        for e in range(low, high):
            g0 = sign * d0 - growth[e] * q0
            g1 = sign * d1 - growth[e] * q1
            if last > first:
                g0, g1 = g1, g0
            g, m = max(g0, 0.0), max(-g1, 0.0)
            a = g + kept * m
            b = kept * (kept * g + m)
            whole = a + b + 2.0 * math.sqrt(a * b)
            if whole > 0.0:
                work[2, live + sign * (e + 1)] += g * g * lost * (1.0 + kept) / whole
