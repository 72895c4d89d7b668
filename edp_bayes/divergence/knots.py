"""The knots of two Laplace mixtures of one scale: their order, pairs and distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edp_bayes.divergence.compiled import ZERO, compiled

__all__ = ["buffers", "plan"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Columns of the plan of a knot: components of p and q that are added when it is passed (they sit
# there and have no partner elsewhere), pair that closes here from the left, from the right, side
# of that pair that sits here, row of its shift among the distances, component of p and of q that
# sits here, and whether the pair opened or closed here encloses other knots.
OWN_P, OWN_Q, ENDS, STARTS, IS_P, SHIFT, AT_P, AT_Q, WIDE = 0, 1, 2, 3, 4, 5, 6, 7, 8
COLUMNS = 9


@compiled
def buffers(n: int, m: int, rows: int, lanes: int) -> tuple[Array, Index, Array, Array]:
    """Return position (2, n + m), plan, distances and values (rows, ...) for n and m components."""
    return (
        np.zeros((4, n + m)),
        np.zeros((n + m, COLUMNS), dtype=np.int64),
        np.zeros(n + m + min(n, m)),
        np.zeros((rows, n + m + min(n, m), lanes)),
    )


@compiled
def _sort(position: Array, count: int) -> None:
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
def plan(
    y: Array, moved: Array, paired: bool, z: Array, position: Array, steps: Index, distances: Array
) -> tuple[int, int]:
    """Order the knots, match pairs and list the distances whose exponentials are needed.

    y holds the locations of p, increasing. If paired, component j of q sits at y_j - moved_j,
    otherwise q sits at z. Gaps come first among the distances, then the shifts of wide pairs.
    Returns the numbers of knots and of distances.
    """
    n, m = y.size, y.size if paired else z.size
    count = ZERO
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
