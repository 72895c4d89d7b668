"""Sums over bins of any width, and integrals where answers are published in full.

The line is cut into cells as for the full answer. A cell that lies in a bin adds to the bin's
masses, and a bin counts when it is complete. A cell of several whole bins is integrated as for the
full answer; only in its bins with a sign change is something lost, and those are taken as a whole
instead.
"""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.divergence.any_pair.components import GAUSSIAN, TABLE_ROWS, tabulate, zones
from edp_bayes.divergence.any_pair.curves import (
    BATCH,
    LOBATTO_W,
    LOBATTO_X,
    SMALLEST,
    _add,
    _add_cell,
    _collect,
    _next_edge,
    _next_start,
    _piece,
)
from edp_bayes.divergence.any_pair.evaluators import VALUES, D, P, Q, evaluator
from edp_bayes.divergence.any_pair.sign_changes import STACK, Workspace
from edp_bayes.divergence.released.grid import Grid, edge_after, edge_before, moved
from edp_bayes.divergence.released.masses import _level
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import compiled, in_threads

__all__ = ["curves"]


def curves(p: Array, q: Array, growth: Array, grid: Grid, centre: Array, *, floor: float) -> Array:
    """Return the larger of both sums of every pair, shape (pair, E).

    Parameters
    ----------
    p, q, growth, grid, centre
        As for `edp_bayes.divergence.released.masses.curves`; the grid has no edges of its own.
    floor : float
        As for `edp_bayes.divergence.any_pair.curves.curves`.
    """
    reach_laplace = -math.log(max(floor * 1e-9, SMALLEST))
    out = np.zeros(growth.shape)
    gaussian = bool((p[..., 4] == GAUSSIAN).all() and (q[..., 4] == GAUSSIAN).all())
    in_threads(
        _curves, len(p), evaluator(gaussian), p, q, growth, grid, centre,
        math.sqrt(2.0 * reach_laplace), reach_laplace, out,
    )  # fmt: skip
    return out


@compiled
def _curves(first, last, evaluate, p, q, growth, grid, centre, reach_gaussian, reach_laplace, out):  # type: ignore[no-untyped-def]
    """Fill in sum_b (P_b - exp(eps) Q_b)_+ of pairs first to last, the larger of both directions.

    A bin in which p - exp(eps) q keeps its sign at every epsilon adds its part of the integral
    H_eps as it is, so that only bins that hold a sign change are summed by their masses P_b and Q_b
    (docs/mathematics/answers.md, what is published of an answer). total (3,) holds the integrals
    of p, q and p - q over the bin that is open. growth is exp(eps) - 1, (pair, epsilon); out has
    its shape.
    """
    levels, most = growth.shape[1], p.shape[1] + q.shape[1]
    table, ends = np.zeros((TABLE_ROWS, most + 16)), np.zeros(3, dtype=np.int64)
    spans, bends = np.empty((2 * most, 5)), np.empty(most)
    work, level = np.empty((4, levels + 1)), np.empty(levels)
    cell = Workspace(
        evaluate, table, ends, level, np.empty(BATCH), np.empty((VALUES, BATCH)),
        np.empty((4, BATCH)), np.empty((STACK, 7)), np.empty((256 + 2 * levels, 6)), work,
    )  # fmt: skip
    curve, total = np.empty((2, levels)), np.zeros(3)
    for j in range(first, last):
        work[:, :], total[:] = 0.0, 0.0
        for e in range(levels):
            level[e] = growth[j, e]
        here = moved(grid, centre[j])
        tabulate(p[j], q[j], reach_gaussian, reach_laplace, table, ends)
        count, bent = zones(p[j], q[j], reach_gaussian, reach_laplace, spans, bends)
        left, end = math.inf, -math.inf
        for k in range(count):
            left, end = min(left, spans[k, 0]), max(end, spans[k, 1])
        # the bin that is open ends here
        stop = here.start if left < here.start else left
        while left < end:
            right = min(_next_edge(left, spans, count, bends, bent), end)
            if right == -math.inf:
                left = _next_start(left, spans, count)
                continue
            if left >= stop:
                _close(cell, total)
                if here.step == 0.0:
                    _add_cell(cell, left, right)
                    left = right
                    continue
                stop = edge_after(here, left)
                if stop < right:
                    right = max(edge_before(here, right), stop)
                    found = _add_cell(cell, left, right)
                    if found > 0:
                        _take_whole(cell, here, left, right, found)
                    left = stop = right
                    continue
            right = min(right, stop)
            _add_masses(cell, left, right, total)
            left = right
        _close(cell, total)
        _collect(level, work, curve)
        for e in range(levels):
            out[j, e] = max(curve[0, e], curve[1, e])


@compiled
def _add_masses(cell, left, right, total):  # type: ignore[no-untyped-def]
    """Add the integrals of p, q and p - q over a cell."""
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    for i in range(BATCH):
        cell.x[i] = middle + half * LOBATTO_X[i]
    cell.evaluate(cell.table, cell.ends, cell.x, middle, cell.values)
    for i in range(BATCH):
        weight = half * LOBATTO_W[i]
        total[0] += weight * cell.values[P, i]
        total[1] += weight * cell.values[Q, i]
        total[2] += weight * cell.values[D, i]


@compiled
def _close(cell, total):  # type: ignore[no-untyped-def]
    """Count the bin with these masses, and start another."""
    _add(_level(total[0], total[1], total[2], cell.growth), total[0], total[1], total[2], cell.work)
    total[:] = 0.0


@compiled
def _take_whole(cell, grid, left, right, found):  # type: ignore[no-untyped-def]
    """Take every bin of a cell with sign changes as a whole, and not piece by piece."""
    breaks, middle = cell.breaks, 0.5 * (left + right)
    k = 0
    while k < found:
        here = min(max(breaks[k, 0], left), right)
        begin = max(edge_before(grid, here), left)
        stop = min(edge_after(grid, here), right)
        whole_p, whole_q, whole_d = 0.0, 0.0, 0.0
        level = int(breaks[k, 5]) - int(breaks[k, 4])
        while begin < stop:
            ends = k >= found or breaks[k, 0] >= stop
            until = stop if ends else max(breaks[k, 0], begin)
            if until > begin:
                part_p, part_q, part_d = _piece(cell, middle, begin, until, False)
                _add(level, -part_p, -part_q, -part_d, cell.work)
                whole_p += part_p
                whole_q += part_q
                whole_d += part_d
            begin = until
            if ends:
                break
            level = int(breaks[k, 5])
            k += 1
        _add(_level(whole_p, whole_q, whole_d, cell.growth), whole_p, whole_q, whole_d, cell.work)
        if here >= right:
            break
