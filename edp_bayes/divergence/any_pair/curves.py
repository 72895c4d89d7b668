"""Hockey-stick integrals of any two mixtures, by cells on which both densities are smooth.

The line is cut into cells, at the knots of Laplace kernels and no wider than the narrowest
component that matters there. On the Gauss-Lobatto nodes of a cell the signed excess

    s = p / q - 1 where p > q,  s = 1 - q / p where p < q

and its slope are known, so every sign change of p - exp(eps) q and of q - exp(eps) p, for the
whole grid of epsilon, is where s passes expm1(eps) or -expm1(eps). Where s may turn between two
nodes and reach a threshold, the interval is halved until it cannot. The sign changes are polished
by Newton's method; an error dx in one costs only O(dx^2) in the integral. Between neighbouring
sign changes the set of epsilon that count is constant, and quadrature of d = p - q and q there,
added up by level, gives all of them: integral of d - expm1(eps) q. No two distribution functions
are ever subtracted. Most pairs of Gaussian mixtures, Laplace noise included, do not come here:
their integrals follow from distribution functions, ten times as fast, where these do not cancel.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.components import GAUSSIAN, TABLE_ROWS, tabulate, zones
from edp_bayes.divergence.any_pair.evaluators import P_SLOPE, VALUES, D, P, Q, evaluator
from edp_bayes.divergence.any_pair.sign_changes import (
    STACK,
    Evaluate,
    Workspace,
    crossings,
    excess,
    may_turn,
    polish,
    resolve,
    signed_level,
)
from edp_bayes.divergence.by_tails.curves import from_tails, serves
from edp_bayes.divergence.centring import common_location, in_common_units
from edp_bayes.divergence.logarithmic.curves import fill, is_uneven
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, compiled, in_threads

__all__ = [
    "BATCH",
    "BOTH",
    "FAR",
    "FORWARD",
    "by_cells",
    "by_draw",
    "by_level",
    "centred",
    "curves",
]

FORWARD, BOTH = 0, 1  # H(p || q), or the larger of the two directions

FAR = 16.0  # epsilon beyond which integrals are formed in logarithms
BATCH = 16  # nodes of a cell
CELL = 1.25  # half the width of a cell, in scales of a Gaussian component
CELL_GROWTH = 12.0  # largest change of a log density over half a cell
SMALLEST = 1e-100  # mass that is neglected when every result counts


def _lobatto(n: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss-Lobatto quadrature on [-1, 1]."""
    last = np.polynomial.legendre.Legendre.basis(n - 1)
    inner = np.sort(last.deriv().roots().real)
    for _ in range(3):
        inner = inner - last.deriv()(inner) / last.deriv(2)(inner)
    x = np.concatenate([[-1.0], inner, [1.0]])
    x = 0.5 * (x - x[::-1])
    return x, 2.0 / (n * (n - 1) * last(x) ** 2)


LOBATTO_X, LOBATTO_W = _lobatto(BATCH)
LEGENDRE_X, LEGENDRE_W = np.polynomial.legendre.leggauss(BATCH)
FEW = 8  # nodes of a short piece
FEW_X, FEW_W = np.polynomial.legendre.leggauss(FEW)
FEW_LENGTH, FEW_GROWTH = 0.35, 2.0  # part of a cell, and change of a log density, up to which


def curves(
    p: Array, q: Array, epsilon: Array, *, direction: int = BOTH, floor: float = 0.0
) -> Array:
    """Return the hockey-stick integrals of every pair of mixtures over a grid of epsilon.

    Parameters
    ----------
    p : ndarray, shape (S, K, 5)
        Components of p in each draw, see `components.rows`.
    q : ndarray, shape (S, B, L, 5)
        Components of B mixtures compared with p under the same draw.
    epsilon : ndarray, shape (E,) or (S, E)
        Finite, non-negative, increasing, the same in all draws or of each draw. Above FAR, and of
        pairs whose scales are far apart, integrals are formed in logarithms, see
        `edp_bayes.divergence.logarithmic`.
    direction : int
        FORWARD for H(p || q), BOTH for the larger of H(p || q) and H(q || p).
    floor : float
        Results below it are returned as exactly zero, which saves looking for them.

    Returns
    -------
    ndarray, shape (S, B, E)
    """
    p, q = in_common_units(p, q)
    epsilon = by_draw(epsilon, len(p))
    out = np.zeros((*q.shape[:2], epsilon.shape[1]))
    uneven = is_uneven(p, q)
    ordinary = int((epsilon <= FAR).sum(axis=1).max(initial=0)) if not uneven.all() else 0
    far = np.broadcast_to((epsilon > FAR)[:, None], out.shape) | uneven[..., None]
    if not far.any():
        _ordinary(p, q, epsilon, direction, floor, out)
        return out
    if ordinary:
        # where a curve is zero at FAR, so it is beyond
        near = np.minimum(epsilon[:, : min(ordinary + 1, epsilon.shape[1])], FAR)
        found = np.zeros((*q.shape[:2], near.shape[1]))
        _ordinary(p, q, near, direction, floor, found)
        out[..., :ordinary] = found[..., :ordinary]
        far &= uneven[..., None] | (found[..., -1:] > 0.0)
        out[..., :ordinary] *= epsilon[:, None, :ordinary] <= FAR
        out[uneven] = 0.0
    fill(p, q, epsilon, far, out, both=direction == BOTH, floor=floor)
    return out


def _ordinary(p: Array, q: Array, epsilon: Array, direction: int, floor: float, out: Array) -> None:
    """Fill in the integrals at epsilons up to FAR, shape (S, E)."""
    p, q = centred(p, q)
    start = np.zeros(out.shape[:2], dtype=np.int64)
    if serves(p, q):
        from_tails(p, q, epsilon, out, start, both=direction == BOTH, floor=floor)
        if (start == epsilon.shape[1]).all():
            return
    by_cells(p, q, epsilon, direction, floor, out, start)


def by_cells(
    p: Array, q: Array, epsilon: Array, direction: int, floor: float, out: Array, start: Index
) -> None:
    """Fill in the integrals of every pair from some epsilon on, by quadrature in every cell.

    start, shape (S, B), is the number of the first epsilon of each pair.
    """
    reach_laplace = -math.log(max(floor * 1e-9, SMALLEST))
    in_threads(
        _curves,
        q.shape[0] * q.shape[1],
        evaluator(_all_gaussian(p, q)),
        p,
        q,
        np.expm1(epsilon),
        direction,
        float(floor),
        math.sqrt(2.0 * reach_laplace),
        reach_laplace,
        start,
        out,
    )


def _all_gaussian(p: Array, q: Array) -> bool:
    return bool((p[..., 4] == GAUSSIAN).all() and (q[..., 4] == GAUSSIAN).all())


def by_draw(epsilon: Array, draws: int) -> Array:
    """Return epsilon of every draw, shape (draw, E), from one grid of all or from that."""
    grid = np.asarray(epsilon, dtype=np.float64)
    return np.ascontiguousarray(np.broadcast_to(grid, (draws, grid.shape[-1])))


def centred(p: Array, q: Array) -> tuple[Array, Array]:
    """Return the components of each draw at their distances from a location common to p.

    Those of q have no say: the integrals of a pair must not depend on who else is compared.
    """
    centre = common_location(np.where(p[..., 0] > 0.0, p[..., 1], np.nan))
    if not centre.any():
        return p, q
    p, q = p.copy(), q.copy()
    p[..., 1] -= centre[:, None]
    q[..., 1] -= centre[:, None, None]
    return p, q


@compiled
def _curves(
    first: int,
    last: int,
    evaluate: Evaluate,
    p: Array,
    q: Array,
    growth: Array,
    direction: int,
    floor: float,
    reach_gaussian: float,
    reach_laplace: float,
    start: Index,
    out: Array,
) -> None:
    """Fill in H_eps(p || q) of pairs first to last, or the larger of both directions.

    H_eps(p || q) = integral of (p - exp(eps) q)_+ = sum over stretches between sign changes of
    their integrals of (p - q) - (exp(eps) - 1) q (docs/mathematics/hockey_stick.md). Task s people
    + i is the pair (p[s], q[s, i]). p has shape (draw, K, 5), q (draw, individual, L, 5), growth,
    which is exp(eps) - 1, (draw, epsilon), start (draw, individual) and out (draw, individual,
    epsilon); results are probabilities.
    """
    people, levels = q.shape[1], growth.shape[1]
    most = p.shape[1] + q.shape[2]
    table = np.zeros((TABLE_ROWS, most + 16))
    ends = np.zeros(3, dtype=np.int64)
    spans = np.empty((2 * most, 5))
    bends = np.empty(most)
    room, level = np.empty(4 * (levels + 1)), np.empty(levels)
    x, values, nodes = np.empty(BATCH), np.empty((VALUES, BATCH)), np.empty((4, BATCH))
    stack, breaks = np.empty((STACK, 7)), np.empty((256 + 2 * levels, 6))
    curve = np.empty((2, levels))
    for task in range(first, last):
        s, i = task // people, task % people
        skipped = start[s, i]
        if skipped == levels:
            continue
        kept = levels - skipped
        for e in range(kept):
            level[e] = growth[s, skipped + e]
        # contiguous, as in other callers: by_level is compiled once
        cell = Workspace(
            evaluate, table, ends, level[:kept], x, values, nodes, stack, breaks,
            room[: 4 * (kept + 1)].reshape(4, kept + 1),
        )  # fmt: skip
        by_level(cell, p[s], q[s, i], reach_gaussian, reach_laplace, spans, bends)
        _collect(cell.growth, cell.work, curve)
        for e in range(kept):
            value = max(curve[0, e], curve[1, e]) if direction == BOTH else curve[0, e]
            out[s, i, skipped + e] = value if value >= floor else 0.0


@compiled
def by_level(
    cell: Workspace,
    p: Array,
    q: Array,
    reach_gaussian: float,
    reach_laplace: float,
    spans: Array,
    bends: Array,
) -> None:
    """Fill the workspace with the integrals of one pair over each signed level."""
    cell.work[:, :] = 0.0
    tabulate(p, q, reach_gaussian, reach_laplace, cell.table, cell.ends)
    count, bent = zones(p, q, reach_gaussian, reach_laplace, spans, bends)
    left, end = math.inf, -math.inf
    for k in range(count):
        left, end = min(left, spans[k, 0]), max(end, spans[k, 1])
    while left < end:
        right = min(_next_edge(left, spans, count, bends, bent), end)
        if right == -math.inf:
            left = _next_start(left, spans, count)
            continue
        _add_cell(cell, left, right)
        left = right


@compiled
def _width(zone: Array, x: float) -> float:
    """Largest width of a cell that starts at x, for the sake of one zone."""
    if zone[4] > 0.0:
        z = abs(x - zone[2]) / zone[3]
        return float(2.0 * zone[3] * min(CELL, CELL_GROWTH / (z + CELL)))
    return float(CELL_GROWTH * zone[3])


@compiled
def _next_edge(left: float, zones: Array, count: int, bends: Array, bent: int) -> float:
    """Return the end of the cell that starts at left, or -inf in a gap between all zones."""
    width = math.inf
    for k in range(count):
        if zones[k, 0] <= left < zones[k, 1]:
            width = min(width, _width(zones[k], left))
    if width == math.inf:
        return -math.inf
    right = left + width
    for k in range(count):
        start = zones[k, 0]
        if left < start < right:
            other = _width(zones[k], start)
            if other < 0.5 * width:
                right = min(right, max(start, left + other))
    for k in range(bent):
        if left < bends[k] < right:
            right = bends[k]
    return right if right > left else math.nextafter(left, math.inf)


@compiled
def _next_start(left: float, zones: Array, count: int) -> float:
    """Return the least start of a zone to the right of a place, infinite if there is none."""
    start = math.inf
    for k in range(count):
        if zones[k, 0] > left:
            start = min(start, zones[k, 0])
    return start


@compiled
def _add_cell(cell: Workspace, left: float, right: float) -> int:
    """Add the share of one cell to work; return how many sign changes are in breaks."""
    growth, x, values, breaks, work = cell.growth, cell.x, cell.values, cell.breaks, cell.work
    edge, s, slope, mass = cell.nodes[0], cell.nodes[1], cell.nodes[2], cell.nodes[3]
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    for i in range(BATCH):
        x[i] = middle + half * LOBATTO_X[i]
    cell.evaluate(cell.table, cell.ends, x, middle, values)
    for i in range(BATCH):
        edge[i] = x[i]
        s[i], slope[i] = excess(values, i)
    found = ZERO
    level = signed_level(s[0], growth)
    first = level
    whole_p, whole_q, whole_d = 0.0, 0.0, 0.0
    steepest = FEW_GROWTH / (FEW_LENGTH * half)
    for i in range(BATCH):
        weight = half * LOBATTO_W[i]
        mass[i] = weight * values[P, i]
        whole_p += mass[i]
        whole_q += weight * values[Q, i]
        whole_d += weight * values[D, i]
        for row in (P, Q):
            steepest = max(steepest, abs(values[row + P_SLOPE, i]) / max(values[row, i], 1e-290))
    for i in range(BATCH - 1):
        after = signed_level(s[i + 1], growth)
        lowest, highest = min(level, after), max(level, after)
        start, end = (edge[i], s[i], slope[i]), (edge[i + 1], s[i + 1], slope[i + 1])
        if may_turn(start, end, growth, lowest, highest):
            found = resolve(cell, middle, start, end, found)
        elif after != level:
            found = crossings(cell, start, level, end, after, found)
        level = after
    if found == 0:
        _add(first, whole_p, whole_q, whole_d, work)
        return found
    polish(cell, middle, found)
    # the piece with most mass is what the others leave of the cell
    largest = _largest(left, edge, mass, breaks, found)
    level, spared = first, first
    begin = left
    for k in range(found + 1):
        stop = right if k == found else min(max(breaks[k, 0], begin), right)
        if k == largest:
            spared = level
        elif stop > begin:
            few = 0.5 * (stop - begin) * steepest <= FEW_GROWTH
            part_p, part_q, part_d = _piece(cell, middle, begin, stop, few)
            _add(level, part_p, part_q, part_d, work)
            whole_p -= part_p
            whole_q -= part_q
            whole_d -= part_d
        begin = stop
        if k < found:
            level = int(breaks[k, 5])
    _add(spared, max(whole_p, 0.0), max(whole_q, 0.0), whole_d, work)
    return found


@compiled
def _largest(left: float, edge: Array, mass: Array, breaks: Array, found: int) -> int:
    """Return the number of the piece with most mass of p, by the nodes that lie in it."""
    best, largest = -1.0, 0
    node, start = 0, left
    for k in range(found + 1):
        share = 0.0
        stop = math.inf if k == found else max(breaks[k, 0], start)
        while node < BATCH and edge[node] <= stop:
            share += mass[node]
            node += 1
        if share > best:
            best, largest = share, k
        start = stop
    return largest


@compiled
def _piece(
    cell: Workspace, middle: float, start: float, stop: float, few: bool
) -> tuple[float, float, float]:
    """Return the integrals of p, q and d over [start, stop]."""
    centre, half = 0.5 * (start + stop), 0.5 * (stop - start)
    nodes, weights = (FEW_X, FEW_W) if few else (LEGENDRE_X, LEGENDRE_W)
    size, x, values = nodes.size, cell.x, cell.values
    for i in range(size):
        x[i] = centre + half * nodes[i]
    cell.evaluate(cell.table, cell.ends, x[:size], middle, values)
    part_p, part_q, part_d = 0.0, 0.0, 0.0
    for i in range(size):
        part_p += weights[i] * values[P, i]
        part_q += weights[i] * values[Q, i]
        part_d += weights[i] * values[D, i]
    return half * part_p, half * part_q, half * part_d


@compiled
def _add(level: int, whole_p: float, whole_q: float, whole_d: float, work: Array) -> None:
    """Add the integrals of a stretch to the sums (4, E + 1) by level.

    The level is how many of the E epsilons lie below abs(log(p / q)), with the sign of p - q. Where
    it is above zero those of p - q and q count, up to that epsilon, towards H(p || q), where it is
    below zero those of q - p and p towards H(q || p); see `_collect`.
    """
    if level > 0:
        work[0, level] += whole_d
        work[1, level] += whole_q
    elif level < 0:
        work[2, -level] -= whole_d
        work[3, -level] += whole_p


@compiled
def _collect(growth: Array, work: Array, out: Array) -> None:
    """Sum the integrals over all levels above each epsilon, in both directions."""
    levels = growth.size
    for side in range(2):
        gain, base = 0.0, 0.0
        for back in range(levels):
            e = levels - 1 - back
            gain += work[2 * side, e + 1]
            base += work[2 * side + 1, e + 1]
            value = gain - growth[e] * base if base > 0.0 else gain
            out[side, e] = min(max(value, 0.0), 1.0)
