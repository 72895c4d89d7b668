"""Components of mixtures as rows of numbers, matched in pairs, and where they matter."""

from __future__ import annotations

import math

import numpy as np

from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, compiled

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "LAPLACE_LAPLACE",
    "NORMAL_LAPLACE",
    "rows",
    "tabulate",
    "zones",
]

# Family of a mixture. Components are rows (weight, location, a, b, family): a is the scale of the
# kernel; with noise, a is the Gaussian and b the Laplace scale, or both are Laplace scales.
GAUSSIAN, LAPLACE, NORMAL_LAPLACE, LAPLACE_LAPLACE = 0, 1, 2, 3

# Rows of the table: weight, location, scales a and b, family, 1 / a and weight / a, and for a close
# pair also the scale of q, the location of q, the log ratio of the factors in front, the relative
# change of scale, the shift in units of q's scale and the number of the component.
WEIGHT, PLACE, A, B, FAMILY, RATE, HEIGHT = 0, 1, 2, 3, 4, 5, 6
A_Q, PLACE_Q, FRONT, CHANGE, SHIFT, NUMBER = 7, 8, 9, 10, 11, 12
TABLE_ROWS = 13

CLOSE = 0.5  # log ratio of two components up to which their difference has a series
CLOSE_NOISY = 0.01  # shift over scale up to which the same holds for kernels with noise
VECTOR = 4  # columns of each group are padded to a multiple of this


def rows(family: int, weights: Array, locations: Array, a: Array, b: float | Array = 0.0) -> Array:
    """Stack the parameters of a mixture as rows (..., component, 5)."""
    parts = np.broadcast_arrays(weights, locations, a, b, float(family))
    return np.stack(parts, axis=-1).astype(np.float64, copy=False)


@compiled
def tabulate(
    p: Array, q: Array, reach_gaussian: float, reach_laplace: float, table: Array, ends: Index
) -> None:
    """Fill the table of columns: close pairs of p and q, other components of p, others of q.

    ends gets the end of each of the three groups. With equally many components, number k of p and
    number k of q are a pair; it is close if the log of their ratio stays below CLOSE wherever
    they matter, so that their difference can be formed from a series instead of a subtraction.
    """
    paired = p.shape[0] == q.shape[0]
    size = ZERO
    if paired:
        for k in range(p.shape[0]):
            if _close(p[k], q[k], reach_gaussian, reach_laplace, table, size):
                table[NUMBER, size] = k
                size += 1
    pairs = size
    size = _pad(table, ZERO, size)
    ends[0] = size
    for side in range(2):
        mine = p if side == 0 else q
        start, known = size, ZERO
        for k in range(mine.shape[0]):
            if known < pairs and table[NUMBER, known] == k:
                known += 1
            elif mine[k, 0] > 0.0:
                _enter(mine[k], table, size)
                size += 1
        size = _pad(table, start, size)
        ends[side + 1] = size


@compiled
def _close(
    p: Array, q: Array, reach_gaussian: float, reach_laplace: float, table: Array, column: int
) -> bool:
    """Whether two components are close; if so, fill the column."""
    w, v, a, b, family = p[0], q[0], p[2], q[2], p[4]
    if w <= 0.0 or v <= 0.0 or family != q[4]:
        return False
    front = math.log1p((v - w) / w) - math.log1p((b - a) / a)
    change = (b - a) / b
    shift = (q[1] - p[1]) / b
    if family > LAPLACE:
        near = abs(q[1] - p[1]) <= CLOSE_NOISY * min(a, p[3]) and abs(front) <= CLOSE
        if not (near and a == b and p[3] == q[3]):
            return False
    else:
        reach = reach_gaussian if family == GAUSSIAN else reach_laplace
        step = abs(change) * reach + abs(shift)
        largest = abs(front) + (step * (reach + 0.5 * step) if family == GAUSSIAN else step)
        if not largest <= CLOSE:
            return False
    _enter(p, table, column)
    table[A_Q, column], table[PLACE_Q, column] = b, q[1]
    table[FRONT, column], table[CHANGE, column], table[SHIFT, column] = front, change, shift
    return True


@compiled
def _enter(row: Array, table: Array, column: int) -> None:
    """Copy a component (5,) to a column of the table, with 1 / scale and weight / scale."""
    for k in range(5):
        table[k, column] = row[k]
    table[RATE, column], table[HEIGHT, column] = 1.0 / row[2], row[0] / row[2]


@compiled
def _pad(table: Array, start: int, size: int) -> int:
    """Repeat the last column of a group without weight until the group fills whole vectors."""
    while (size - start) % VECTOR != 0:
        for row in range(TABLE_ROWS):
            table[row, size] = table[row, size - 1]
        table[WEIGHT, size] = table[HEIGHT, size] = 0.0
        size += 1
    return size


@compiled
def zones(
    p: Array, q: Array, reach_gaussian: float, reach_laplace: float, found: Array, bends: Array
) -> tuple[int, int]:
    """Fill zones (start, end, centre, scale, is Gaussian) and locations of bends.

    In a zone cells must resolve that scale; beyond the reach of a component its mass is
    negligible. Returns the numbers of zones and bends.
    """
    size, bent = ZERO, ZERO
    for k in range(p.shape[0] + q.shape[0]):
        row = p[k] if k < p.shape[0] else q[k - p.shape[0]]
        w, mu, a, b, family = row[0], row[1], row[2], row[3], row[4]
        if w <= 0.0:
            continue
        small, large = min(a, b), max(a, b)
        if family == GAUSSIAN:
            size = _zone(found, size, mu, reach_gaussian * a, a, 1.0)
        elif family == LAPLACE:
            size = _zone(found, size, mu, reach_laplace * a, a, 0.0)
        elif family == LAPLACE_LAPLACE:
            size = _zone(found, size, mu, reach_laplace * small, small, 0.0)
            size = _zone(found, size, mu, 1.1 * reach_laplace * large, large, 0.0)
        else:
            ratio = a / b
            radius = reach_gaussian * a
            if ratio <= reach_gaussian:
                radius += b * (reach_laplace + 0.5 * ratio * ratio)
            size = _zone(found, size, mu, min(radius, (10.0 + ratio) * a), a, 1.0)
            size = _zone(found, size, mu, radius, b, 0.0)
        if family in (LAPLACE, LAPLACE_LAPLACE):
            bends[bent] = mu
            bent += 1
    return size, bent


@compiled
def _zone(found: Array, size: int, mu: float, radius: float, scale: float, gaussian: float) -> int:
    """Append a zone about mu to found (zone, 5); return how many there are now."""
    found[size, 0], found[size, 1], found[size, 2] = mu - radius, mu + radius, mu
    found[size, 3], found[size, 4] = scale, gaussian
    return size + 1
