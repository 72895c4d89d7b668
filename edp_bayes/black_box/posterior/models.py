"""Models of the log ratios over cells: a clipped field, and independent cells to compare with."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from edp_bayes.black_box.cells import Cells
from edp_bayes.black_box.logistic import ridge_logistic
from edp_bayes.black_box.posterior.field import (
    ALPHA,
    BETA,
    CLIP_RATIO,
    HYPER,
    LOG_BASE,
    LOG_CLIP,
    LOG_STEP,
    LOGIT_CHANGE,
    Field,
    fill_table,
    forward,
    level_edges,
    sample_path,
)
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.compiled import compiled

if TYPE_CHECKING:
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["ClippedField", "LogRatioModel"]

RATIO_SCALE = 0.3
CLIP_RANGE = (-7.0, 7.0)
# Categories have levels of their own unless the data say clearly that many share the largest: the
# log density of a clip beyond all levels, exp(NO_CLIP), is so much higher.
NO_CLIP, NO_CLIP_ODDS = 3.0, 5.0
LOG_STEP_MEAN = -1.6
LOG_BASE_SCALE = 1.0
CHANGE_WEIGHT = 7.0
# Proposals have scales from `fine`, about the precision of a level, up to this.
LARGEST_STEP = 0.7
SCALES = 24
FAR_SHARE, FAR = 0.2, 10.0
ACCEPTANCE, LARGEST_SCALE = 0.4, 3.0
# A sweep over the hyperparameters; the clip, on which the supremum rests, comes up more often.
# HYPER stands for tying the two clips and untying them, JUMP for a clip at the level of a cell.
JUMP = HYPER + 1
SWEEP = (
    LOG_CLIP,
    ALPHA,
    BETA,
    LOG_CLIP,
    CLIP_RATIO,
    LOG_BASE,
    HYPER,
    LOG_CLIP,
    LOGIT_CHANGE,
    LOG_STEP,
    JUMP,
)
NEWTON_STEPS = 8


@runtime_checkable
class LogRatioModel(Protocol):
    """A model of the log ratios of two distributions over cells."""

    def draw(self, cells: Cells, settings: SamplerSettings) -> Array:
        """Return draws of log(p / q), shape (chain * draw, cell), infinite where q or p is 0."""
        ...


@dataclass(frozen=True)
class ClippedField:
    """Log ratios that move along ordered cells and share their largest absolute value.

    log(p_k / q_k) = clip(alpha + beta x_k + g_k, -lambda_2, lambda_1), see
    `edp_bayes.black_box.posterior.field`. Flat priors on log lambda, Cauchy priors on alpha and
    beta, and a prior probability that lambda_1 = lambda_2.

    Parameters
    ----------
    tie : float
        Prior probability that both clips are equal, as those of a mechanism with symmetric noise
        are; strictly between 0 and 1.
    open_end : float
        Prior probability, at every cell, that one of the two distributions has no mass there (each
        of them); strictly between 0 and 0.5.

    Raises
    ------
    InvalidInputError
        If a probability is outside of its range.
    """

    tie: float = 0.95
    open_end: float = 0.03

    def __post_init__(self) -> None:
        validate.probability(self.tie, "tie")
        validate.probability(2.0 * self.open_end, "twice open_end")

    def draw(self, cells: Cells, settings: SamplerSettings) -> Array:
        """Return draws of log(p / q), shape (chain * draw, cell); chains run in threads."""
        field, start, fine = _problem(cells, self.open_end)
        jobs = [
            (
                field,
                start,
                self.tie,
                fine,
                settings.tune,
                settings.draws,
                settings.generator("field", chain),
            )
            for chain in range(settings.chains)
        ]
        if settings.cores == 1:
            return np.concatenate([_run(*job) for job in jobs])
        with ThreadPoolExecutor(settings.cores or settings.chains) as pool:
            return np.concatenate(list(pool.map(lambda job: _run(*job), jobs)))


def _problem(cells: Cells, open_end: float) -> tuple[Field, Array, float]:
    """Return the field, the start of the chains and the finest step of proposals."""
    a, b = cells.a, cells.b
    total = a + b
    offset = math.log(cells.sizes[0] / cells.sizes[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where((a > 0) & (b > 0), a * np.log(a / total) + b * np.log(b / total), 0.0)
    raw = np.log((a + 0.5) / (b + 0.5)) - offset
    typical = float(np.clip(np.average(np.abs(raw), weights=total), 0.02, 2.0))
    edges = level_edges(typical, float(np.abs(raw).max()) + 2.0)
    grid = 0.5 * (edges[1:] + edges[:-1])
    x = cells.x
    start = np.zeros(HYPER)
    some = cells.ordered
    found, _ = ridge_logistic(
        np.column_stack([np.ones(some.sum()), x[some]]), a[some], total[some], offset=offset,
        ridge=1.0, steps=NEWTON_STEPS,
    )  # fmt: skip
    start[[ALPHA, BETA]] = np.clip(found, -50.0, 50.0)
    # Untied, at the outer levels of each side: chains tie the clips soon where they may.
    order = np.argsort(raw)
    outer = np.interp([0.15, 0.85], np.cumsum(total[order]) / total.sum(), raw[order])
    low, top = np.log(np.maximum(np.abs(outer), 0.02))
    start[LOG_CLIP], start[CLIP_RATIO] = top, low - top
    start[LOG_BASE] = math.log(typical)
    start[LOGIT_CHANGE] = -1.5
    start[LOG_STEP] = LOG_STEP_MEAN
    # Beside a line, atoms are values of their own and share no level with it.
    clipped = cells.ordered | ~cells.ordered.any()
    field = Field(a, b, x, cells.ordered, cells.fresh, clipped, best, offset, open_end, edges, grid)
    return field, start, min(0.7 / math.sqrt(total.sum()), 0.5 * LARGEST_STEP)


@compiled
def _log_prior(h: Array, tie: float, any_ordered: bool) -> float:
    """Return the log prior density of the hyperparameters."""
    top, low = h[LOG_CLIP], h[LOG_CLIP] + h[CLIP_RATIO]
    if min(top, low) < CLIP_RANGE[0] or max(top, low) > CLIP_RANGE[1]:
        return -np.inf
    total = -math.log1p(h[ALPHA] ** 2) - math.log1p(h[BETA] ** 2)
    if not any_ordered and top > NO_CLIP:
        total += NO_CLIP_ODDS
    if h[CLIP_RATIO] == 0.0:
        total += math.log(tie)
    else:
        distance = h[CLIP_RATIO] / RATIO_SCALE
        total += math.log((1.0 - tie) / (math.pi * RATIO_SCALE)) - math.log1p(distance**2)
    total -= 0.5 * (h[LOG_BASE] / LOG_BASE_SCALE) ** 2
    total -= 0.5 * (h[LOG_STEP] - LOG_STEP_MEAN) ** 2
    z = h[LOGIT_CHANGE]
    return float(total + z - (1.0 + CHANGE_WEIGHT) * math.log1p(math.exp(z)))


@compiled
def _log_untie(distance: float, fine: float, span: float) -> float:
    """Return the log density of a proposed log ratio of the clips at this distance from 0."""
    total = 0.0
    for i in range(SCALES):
        scale = fine * math.exp((i + 0.5) / SCALES * span)
        total += 0.5 / scale * math.exp(-distance / scale) / SCALES
    return math.log(total)


@compiled
def _propose_tie(h: Array, new: Array, fine: float, span: float, rng: np.random.Generator) -> float:
    """Tie the two clips or untie them; return the log ratio of the proposal densities."""
    if h[CLIP_RATIO] == 0.0:
        # A scale of the same list as in the density, so that the two agree exactly.
        scale = fine * math.exp((rng.integers(0, SCALES) + 0.5) / SCALES * span)
        d = rng.exponential(scale) * (1.0 if rng.random() < 0.5 else -1.0)
        new[CLIP_RATIO] = d
        if rng.random() < 0.5:
            new[LOG_CLIP] -= d
        return -_log_untie(abs(d), fine, span)
    d = h[CLIP_RATIO]
    new[CLIP_RATIO] = 0.0
    if rng.random() < 0.5:
        new[LOG_CLIP] += d
    return _log_untie(abs(d), fine, span)


@compiled
def _propose_clip(field: Field, new: Array, rng: np.random.Generator) -> float:
    """Move the clip to the level of a cell or anywhere; return the log ratio of the densities."""
    size = field.a.size
    centre, width = np.empty(size), np.empty(size)
    for k in range(size):
        a, b = field.a[k] + 0.5, field.b[k] + 0.5
        level = abs(math.log(a / b) - field.offset) + 0.02
        centre[k] = math.log(level)
        width[k] = min(max(math.sqrt(1.0 / a + 1.0 / b) / level, 0.02), 1.0)
    before = new[LOG_CLIP]
    low, high = CLIP_RANGE
    if rng.random() < 0.5:
        k = int(rng.integers(0, size))
        new[LOG_CLIP] = centre[k] + width[k] * rng.standard_normal()
    else:
        new[LOG_CLIP] = low + (high - low) * rng.random()
    density = np.zeros(2)
    for i, value in enumerate((before, new[LOG_CLIP])):
        for k in range(size):
            z = (value - centre[k]) / width[k]
            density[i] += math.exp(-0.5 * z * z) / (width[k] * math.sqrt(2.0 * math.pi) * size)
        density[i] += 1.0 / (high - low)
    return float(math.log(density[0] / density[1]))


@compiled
def _propose(h: Array, c: int, scale: Array, rng: np.random.Generator) -> Array:
    """Return hyperparameters with place c moved, now and then by far more than usual."""
    new = h.copy()
    far = FAR if rng.random() < FAR_SHARE else 1.0
    new[c] += far * scale[c] * rng.standard_normal()
    if c == BETA and rng.random() < 0.5:
        new[ALPHA] += scale[ALPHA] * rng.standard_normal()
    return new


@compiled
def _run(
    field: Field,
    start: Array,
    tie: float,
    fine: float,
    tune: int,
    draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return draws of the log ratios, shape (draw, cell)."""
    cells, levels = field.a.size, field.grid.size
    h = start.copy()
    filtered, trial = np.empty((cells, levels + 2)), np.empty((cells, levels + 2))
    table, other = np.empty((cells, levels)), np.empty((cells, levels))
    out = np.empty((draws, cells))
    fill_table(field, h, table)
    any_ordered = bool(field.ordered.any())
    now = _log_prior(h, tie, any_ordered) + forward(field, h, table, filtered)
    span = math.log(LARGEST_STEP / fine)
    scale = np.full(HYPER, 5.0 * fine)
    scale[LOG_BASE] = scale[LOGIT_CHANGE] = scale[LOG_STEP] = 1.0
    for it in range(tune + draws):
        for c in SWEEP:
            drifted = c in (ALPHA, BETA)
            if not any_ordered and c in (ALPHA, BETA, LOGIT_CHANGE, LOG_STEP):
                continue
            if c == CLIP_RATIO and h[c] == 0.0:
                continue
            extra = 0.0
            if c == HYPER:
                new = h.copy()
                extra = _propose_tie(h, new, fine, span, rng)
            elif c == JUMP:
                new = h.copy()
                extra = _propose_clip(field, new, rng)
            else:
                new = _propose(h, c, scale, rng)
            prior = _log_prior(new, tie, any_ordered)
            if prior == -np.inf:
                continue
            if drifted:
                fill_table(field, new, other)
            value = prior + forward(field, new, other if drifted else table, trial)
            accepted = math.log(rng.random()) < value - now + extra
            if it < tune and c < HYPER:
                # Towards the acceptance that suits one dimension best, ever more slowly.
                gain = 2.0 / math.sqrt(it + 1.0)
                scale[c] *= math.exp(gain * ((1.0 if accepted else 0.0) - ACCEPTANCE))
                scale[c] = min(max(scale[c], 0.1 * fine), LARGEST_SCALE)
            if accepted:
                h, now = new, value
                filtered, trial = trial, filtered
                if drifted:
                    table, other = other, table
        if it >= tune:
            sample_path(field, h, filtered, rng, out[it - tune])
    return out
