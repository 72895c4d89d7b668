"""The field of log ratios over cells: exact forward filtering and backward sampling.

A cell k has a outcomes of the first distribution and b of the second; given their sum, a is
binomial with logit r_k + offset, where r_k = log(p_k / q_k) and the offset is the log ratio of the
sample sizes. The model is

    r_k = clip(alpha + beta x_k + g_k, -lambda_2, lambda_1),

with g a Markov chain along ordered cells that stays where it is, moves a little (a Laplace step)
or jumps (to a draw of a Laplace distribution); cells without an order jump every time, and have no
drift. A cell may also be seen under one distribution alone, r = +inf or -inf. Clipping gives cells
that share the supremum exactly, as the plateaus of a mechanism do, so that a maximum over them is
one number and not the largest of many noisy ones. On a grid of levels the chain is summed out
exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from edp_bayes.utils.arrays import Array, Flags
from edp_bayes.utils.compiled import ZERO, compiled

__all__ = ["HYPER", "Field", "fill_table", "forward", "level_edges", "sample_path"]

LEVELS = 141
STAY_INFINITE = 0.97
SUBLEVELS = 9
NEGLIGIBLE = -40.0
# A share of jumps goes further: a lone extreme cell is not drawn in by all the others.
WIDE_SHARE, WIDE = 0.2, 6.0

# Places in the vector of hyperparameters.
ALPHA, BETA, LOG_CLIP, CLIP_RATIO, LOG_BASE, LOGIT_CHANGE, LOG_STEP = range(7)
HYPER = 7


class Field(NamedTuple):
    """Counts of every cell and the grid of levels; all that stays fixed while sampling.

    Attributes
    ----------
    a, b : ndarray
        Shape (cell,): outcomes of the first and of the second distribution.
    x : ndarray
        Shape (cell,): where an ordered cell lies, in units of the spread of the outcomes.
    ordered, fresh, clipped : ndarray
        Shape (cell,): whether the cell has a drift, whether the chain starts anew in it, and
        whether its log ratio is clipped.
    best : ndarray
        Shape (cell,): largest log likelihood of the cell at any level.
    offset : float
        Log ratio of the sample sizes.
    open_end : float
        Prior probability that the chain enters +inf, and that it enters -inf, at a cell.
    edges, grid : ndarray
        Shapes (level + 1,) and (level,): the levels of g.
    """

    a: Array
    b: Array
    x: Array
    ordered: Flags
    fresh: Flags
    clipped: Flags
    best: Array
    offset: float
    open_end: float
    edges: Array
    grid: Array


def level_edges(fine: float, reach: float) -> Array:
    """Return the edges of the grid of g: symmetric, finest around 0, shape (LEVELS + 1,)."""
    top = math.asinh(reach / fine)
    return fine * np.sinh(np.linspace(-top, top, LEVELS + 1))


@compiled
def _score(a: float, b: float, z: float) -> float:
    """Return the log likelihood of a cell at the logit z."""
    return a * z - (a + b) * (max(z, 0.0) + math.log1p(math.exp(-abs(z))))


@compiled
def _drift(field: Field, hyper: Array, k: int) -> float:
    """Return alpha + beta x_k, a log ratio; 0 of cells without an order."""
    return hyper[ALPHA] + hyper[BETA] * field.x[k] if field.ordered[k] else 0.0


@compiled
def _ends(field: Field, hyper: Array, k: int) -> tuple[float, float]:
    """Return -lambda_2 and lambda_1, between which the log ratio of a cell is clipped."""
    if not field.clipped[k]:
        return -np.inf, np.inf
    top = math.exp(hyper[LOG_CLIP])
    return -top * math.exp(hyper[CLIP_RATIO]), top


@compiled
def fill_table(field: Field, hyper: Array, table: Array) -> None:
    """Fill in the likelihood without clipping, relative to each cell's best, (cell, level)."""
    a, b, grid = field.a, field.b, field.grid
    table[:] = 0.0
    for k in range(a.size):
        shift = _drift(field, hyper, k) + field.offset
        # The log likelihood is concave: once negligible on one side of its mode, it stays so.
        middle = np.searchsorted(grid, math.log((a[k] + 0.5) / (b[k] + 0.5)) - shift)
        for side in range(2):
            i = middle - side
            while 0 <= i < grid.size:
                value = _score(a[k], b[k], shift + grid[i]) - field.best[k]
                if value < NEGLIGIBLE:
                    break
                table[k, i] = math.exp(value)
                i += 1 - 2 * side


@compiled
def _likelihood(field: Field, hyper: Array, k: int, row: Array, out: Array) -> None:
    """Fill in the likelihood of a cell at every level, with clipping and the infinite levels."""
    grid, size = field.grid, field.grid.size
    a, b = field.a[k], field.b[k]
    low, top = _ends(field, hyper, k)
    drift = _drift(field, hyper, k)
    for i in range(size):
        out[i] = row[i]
    below, above = np.searchsorted(grid, low - drift), np.searchsorted(grid, top - drift)
    if below > 0:
        score = _score(a, b, low + field.offset) - field.best[k]
        out[:below] = math.exp(max(score, NEGLIGIBLE))
    if above < size:
        score = _score(a, b, top + field.offset) - field.best[k]
        out[above:size] = math.exp(max(score, NEGLIGIBLE))
    out[size] = 1.0 if b == 0.0 else 0.0
    out[size + 1] = 1.0 if a == 0.0 else 0.0


@compiled
def _distributions(field: Field, hyper: Array) -> tuple[Array, Array, Array, Array]:
    """Return the distribution of jumps, and decay, width and norm of a Laplace step of levels."""
    edges, grid, size = field.edges, field.grid, field.grid.size
    base, decay, width, norm = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    spread, step = math.exp(hyper[LOG_BASE]), math.exp(hyper[LOG_STEP])
    before, up, down = 0.0, 0.0, 0.0
    for i in range(size):
        distance = abs(edges[i + 1]) / spread
        near, far = math.exp(-distance), math.exp(-distance / WIDE)
        tail = 0.5 * ((1.0 - WIDE_SHARE) * near + WIDE_SHARE * far)
        # What lies beyond the grid counts at its ends.
        after = 1.0 if i == size - 1 else (tail if edges[i + 1] < 0 else 1.0 - tail)
        base[i] = after - before
        before = after
        width[i] = edges[i + 1] - edges[i]
        decay[i] = math.exp(-(grid[i] - grid[i - 1]) / step) if i > 0 else 0.0
        up = up * decay[i] + width[i]
        norm[i] = up
    for i in range(size - 1, -1, -1):
        norm[i] = 1.0 / (norm[i] + down)
        down = (down + width[i]) * decay[i]
    return base, decay, width, norm


@compiled
def _spread(mass: Array, decay: Array, norm: Array, from_below: Array, from_above: Array) -> None:
    """Fill in the density after a Laplace step, in a time proportional to the levels.

    What comes from below (or from where it is) and from above are running sums; both are in one
    loop, because each of them alone waits for its own last term.
    """
    up, down = 0.0, 0.0
    last = mass.size - 1
    for i in range(mass.size):
        j = last - i
        up = up * decay[i] + mass[i] * norm[i]
        from_below[i] = up
        from_above[j] = down
        down = down * decay[j] + mass[j] * norm[j] * decay[j]


@compiled
def _change(hyper: Array) -> float:
    """Return the probability that the chain leaves its level at a cell, by its log odds."""
    return 1.0 / (1.0 + math.exp(-hyper[LOGIT_CHANGE]))


@compiled
def forward(field: Field, hyper: Array, table: Array, filtered: Array) -> float:
    """Return the log marginal likelihood of the hyperparameters; fill in what the filter finds.

    filtered has shape (cell, level + 2); the last two levels are +inf and -inf.
    """
    size = field.grid.size
    base, decay, width, norm = _distributions(field, hyper)
    from_below, from_above = np.empty(size), np.empty(size)
    likelihood = np.empty(size + 2)
    change, entry = _change(hyper), field.open_end
    finite = 1.0 - 2.0 * entry
    total = 0.0
    for k in range(field.a.size):
        _likelihood(field, hyper, k, table[k], likelihood)
        now = filtered[k]
        if field.fresh[k]:
            for i in range(size):
                now[i] = finite * base[i]
            now[size:] = entry
        else:
            old = filtered[k - 1]
            infinite = old[size] + old[size + 1]
            _spread(old[:size], decay, norm, from_below, from_above)
            stay, move = finite * (1.0 - change), 0.5 * finite * change
            jump = move * (1.0 - infinite) + (1.0 - STAY_INFINITE) * infinite
            for i in range(size):
                moved = (from_below[i] + from_above[i]) * width[i]
                now[i] = stay * old[i] + move * moved + jump * base[i]
            for i in range(size, size + 2):
                now[i] = STAY_INFINITE * old[i] + entry * (1.0 - infinite)
        mass = 0.0
        for i in range(size + 2):
            now[i] *= likelihood[i]
            mass += now[i]
        if not mass > 0.0:
            return -np.inf
        scale = 1.0 / mass
        for i in range(size + 2):
            now[i] *= scale
        total += math.log(mass)
    return total


@compiled
def _pick(weights: Array, u: float) -> int:
    """Return i with probability weights[i] / sum of weights, shape (level,), for a uniform u.

    The first whose running sum passes u times the sum; the largest where rounding passes none.
    """
    target = u * weights.sum()
    running = 0.0
    for i in range(weights.size):
        running += weights[i]
        if running > target:
            return i
    return int(np.argmax(weights))


@compiled
def sample_path(
    field: Field, hyper: Array, filtered: Array, rng: np.random.Generator, out: Array
) -> None:
    """Draw the log ratios from the filtered distributions; fill them in, shape (cell,).

    Levels are drawn backwards; a run of cells that stay at one level is then placed within that
    level's cell of the grid, by its likelihood.
    """
    cells, size = field.a.size, field.grid.size
    level = np.empty(cells, np.int64)
    stays = np.zeros(cells + 1, np.bool_)  # from the cell before into this one
    _draw_levels(field, hyper, filtered, rng, level, stays)
    first = ZERO
    for k in range(cells):
        if stays[k + 1]:
            continue
        if level[k] >= size:
            out[first : k + 1] = np.inf if level[k] == size else -np.inf
        else:
            g = _place(field, hyper, first, k + 1, level[k], rng)
            low, top = _ends(field, hyper, k)
            for j in range(first, k + 1):
                out[j] = min(max(_drift(field, hyper, j) + g, low), top)
        first = k + 1


@compiled
def _draw_levels(
    field: Field, hyper: Array, filtered: Array, rng: np.random.Generator, level: Any, stays: Flags
) -> None:
    """Draw the level of every cell from the last to the first; fill in levels and stays, (cell,).

    P(level_k = i | level_(k+1) = j, counts) is proportional to F_k(i) T(i, j), with F_k what the
    filter found of cell k and T the step of the chain. To a finite j it comes by staying (i = j),
    with probability (1 - change) (1 - 2 entry), or by half a change each of a Laplace step,
    width_j exp(-|g_i - g_j| / step) norm_i, and of a jump, base_j. An infinite level stays with
    probability STAY_INFINITE, and jumps otherwise; `forward` sums over the same.
    """
    grid, size, entry = field.grid, field.grid.size, field.open_end
    base, _, width, norm = _distributions(field, hyper)
    weights = np.empty(size + 2)
    change, step = _change(hyper), math.exp(hyper[LOG_STEP])
    move = 0.5 * change * (1.0 - 2.0 * entry)
    last = field.a.size - 1
    level[last] = _pick(filtered[last], rng.random())
    for k in range(last - 1, -1, -1):
        distribution, after = filtered[k], level[k + 1]
        if field.fresh[k + 1]:
            level[k] = _pick(distribution, rng.random())
            continue
        if after >= size:
            for i in range(size):
                weights[i] = distribution[i] * entry
            weights[size:] = 0.0
            weights[after] = distribution[after] * STAY_INFINITE
            level[k] = _pick(weights, rng.random())
            continue
        for i in range(size):
            near = width[after] * math.exp(-abs(grid[i] - grid[after]) / step) * norm[i]
            weights[i] = distribution[i] * move * (near + base[after])
        for i in range(size, size + 2):
            weights[i] = distribution[i] * (1.0 - STAY_INFINITE) * base[after]
        stay = distribution[after] * (1.0 - 2.0 * entry) * (1.0 - change)
        if rng.random() * (stay + weights.sum()) < stay:
            level[k] = after
            stays[k + 1] = True
        else:
            level[k] = _pick(weights, rng.random())


@compiled
def _place(
    field: Field, hyper: Array, first: int, end: int, level: int, rng: np.random.Generator
) -> float:
    """Return a value within a level's cell of the grid, for the run of cells that share it."""
    low, top = _ends(field, hyper, first)
    start = field.edges[level]
    step = (field.edges[level + 1] - start) / SUBLEVELS
    scores = np.zeros(SUBLEVELS)
    for s in range(SUBLEVELS):
        for j in range(first, end):
            r = min(max(_drift(field, hyper, j) + start + (s + 0.5) * step, low), top)
            scores[s] += _score(field.a[j], field.b[j], r + field.offset)
    place = _pick(np.exp(scores - scores.max()), rng.random())
    return float(start + (place + rng.random()) * step)
