"""The knots of two Laplace mixtures of one scale: their order, pairs and distances."""

from __future__ import annotations

import numpy as np

from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.compiled import ZERO, compiled

__all__ = ["buffers", "plan"]

# Columns of the plan of a knot. All but the last three are rows of a table of weights (n of p,
# then m of q unless they are the same, a row of zeros, then n differences p - q of pairs, or m
# times -q without pairs):
# - what sits here of p and of q, and the share in d of what has no partner elsewhere;
# - the other member of the pair that closes here from the left and from the right, and the
#   difference of its weights.
# Then the sign of the member that sits here (p's is 1), the row of the pair's shift among the
# distances, and whether the pair encloses other knots: 1 at its left member, -1 at its right.
AT_P, AT_Q, OWN, ENDS, STARTS, END_GAIN, START_GAIN, SIGN, SHIFT, WIDE = range(10)
COLUMNS = 10


@compiled
def buffers(n: int, m: int) -> tuple[Array, Index, Array]:
    """Return position (4, n + m), plan and distances for n and m components."""
    return (
        np.zeros((4, n + m)),
        np.zeros((n + m, COLUMNS), dtype=np.int64),
        np.zeros(n + m + min(n, m)),
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
    y: Array,
    moved: Array,
    paired: bool,
    z: Array,
    same: bool,
    position: Array,
    steps: Index,
    distances: Array,
) -> tuple[int, int]:
    """Order the knots, match pairs and list the distances whose exponentials are needed.

    y holds the locations of p, increasing. If paired, component j of q sits at y_j - moved_j,
    otherwise q sits at z; same tells that the weights of paired mixtures are equal. Gaps come
    first among the distances, then the shifts of wide pairs. Returns the numbers of knots and of
    distances.
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
    first_q = 0 if same else n
    zero = first_q + m
    for k in range(count):
        a, b = int(position[1, k]), int(position[2, k])
        step = steps[k]
        step[:] = zero
        step[AT_P] = a if a < n else zero
        step[AT_Q] = first_q + b if b < m else zero
        step[SIGN], step[SHIFT], step[WIDE] = 1 if a < n else -1, 0, 0
        if not paired:
            step[OWN] = a if a < n else zero + 1 + b
            continue
        j = min(a, b)
        gain = zero if same else zero + 1 + j
        if a < n and b < m:
            step[OWN] = gain
            continue
        other = int(position[3, j])
        partner = first_q + j if a < n else j
        if other < 0:
            position[3, j] = k
            step[STARTS], step[START_GAIN] = partner, gain
            continue
        step[ENDS], step[END_GAIN] = partner, gain
        if other == k - 1:
            row = other
        else:
            row = total
            total += 1
            step[WIDE] = -1
            steps[other, WIDE] = 1
        distances[row] = abs(moved[j])
        step[SHIFT] = row
        steps[other, SHIFT] = row
    return count, total
