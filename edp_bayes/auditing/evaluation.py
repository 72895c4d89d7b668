"""Every individual's risk in every draw, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.base import Coupling
from edp_bayes.utils.progress import track

__all__ = ["Risks", "evaluate", "largest_at", "riskiest"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Numbers held at once of risks, or of presence by component, while individuals are evaluated block
# by block.
BLOCK_NUMBERS = 2**22
# The largest risks of every draw that are known one by one.
TOP = 8


@dataclass(frozen=True, eq=False)
class Risks:
    """Privacy quantities of every draw, and summaries of every individual.

    Attributes
    ----------
    delta, total_risk, total_risk_bound : ndarray
        Shape (chain * draw, epsilon): delta, delta* and min(1, sum_i delta_i).
    mean, deviation, highest : ndarray
        Shape (individual, epsilon): posterior mean and standard deviation of delta_i, and its
        maximum over the draws.
    median : ndarray
        Shape (individual, epsilon): posterior median of delta_i.
    screened_bound : ndarray
        Shape (epsilon,): bound on the sum of all delta_i that screening left out.
    curves : ndarray or None
        Shape (chain * draw, individual, epsilon): delta_i of everybody, of few individuals only.
    top, who : ndarray
        Shape (chain * draw, epsilon, rank): the largest delta_i, falling, and whose they are; zeros
        where fewer are above zero.
    copied : ndarray or None
        Shape (chain * draw, epsilon): delta_i of the individual asked for in each draw.
    """

    delta: Array
    total_risk: Array
    total_risk_bound: Array
    mean: Array
    deviation: Array
    median: Array
    highest: Array
    screened_bound: Array
    curves: Array | None
    top: Array
    who: Index
    copied: Array | None = None

    def curves_of(self, individuals: Index, coupling: Coupling, epsilon: Array) -> Array:
        """Return delta_i of some individuals, evaluated anew where they were too many to keep."""
        if self.curves is None:
            return coupling.curves(individuals, epsilon)
        return self.curves[:, individuals]


def evaluate(
    coupling: Coupling, epsilon: Array, *, progressbar: bool, copies: Index | None = None
) -> Risks:
    """Evaluate every individual in blocks; the result does not depend on the blocks.

    Copies name an individual for each draw, whose risk in that draw is kept.
    """
    from edp_bayes.auditing.reductions import accumulate, keep_largest, medians, moments

    relevant, screened_bound = coupling.relevant(epsilon)
    size = coupling.n_draws
    largest, log_survival, total = np.zeros((3, size, epsilon.size))
    top = np.zeros((size, epsilon.size, TOP))
    who = np.zeros(top.shape, dtype=np.int64)
    mean, deviation, highest, median = np.zeros((4, coupling.n_individuals, epsilon.size))
    copied = None if copies is None else np.zeros((size, epsilon.size))
    widest = max(epsilon.size, coupling.mixture.weights.shape[-1])
    block = max(1, BLOCK_NUMBERS // (size * widest))
    blocks = [relevant[start : start + block] for start in range(0, relevant.size, block)]
    # One buffer for all blocks: fresh memory for each costs as much as the integrals.
    buffer = np.empty((size, min(block, relevant.size), epsilon.size))
    for members in track(blocks, "Individuals", total=len(blocks), show=progressbar):
        whole = members.size == buffer.shape[1]
        curves = coupling.curves(members, epsilon, out=buffer if whole else None)
        accumulate(curves, largest, log_survival, total)
        keep_largest(curves, members, top, who)
        mean[members], deviation[members], highest[members] = moments(curves)
        median[members] = medians(curves)
        if copied is not None and copies is not None:
            rows = np.flatnonzero(np.isin(copies, members))
            copied[rows] = curves[rows, np.searchsorted(members, copies[rows])]
    everybody = buffer.shape[1] == coupling.n_individuals
    return Risks(
        delta=largest,
        total_risk=np.abs(np.expm1(log_survival)),
        total_risk_bound=np.minimum(total, 1.0),
        mean=mean,
        deviation=deviation,
        median=median,
        highest=highest,
        screened_bound=screened_bound,
        curves=buffer if everybody else None,
        top=top,
        who=who,
        copied=copied,
    )


def largest_at(
    coupling: Coupling, individuals: Index, rows: Index, epsilon: Array
) -> tuple[Array, Index]:
    """Return the largest risks of some individuals at an epsilon of each of some draws.

    Parameters
    ----------
    coupling : Coupling
        Its draws must be such as can be picked, see `edp_bayes.coupling.stacked.pick`.
    individuals : ndarray of int
        Shape (individual,).
    rows : ndarray of int
        Shape (row,): draws, increasing.
    epsilon : ndarray
        Shape (row,): one of each of these draws.

    Returns
    -------
    top, who : ndarray
        Shape (row, rank): risks by falling size, and whose they are.
    """
    from edp_bayes.auditing.reductions import keep_largest
    from edp_bayes.coupling.stacked import curves_by_draw, pick

    some = pick(coupling, rows)
    relevant = np.intersect1d(some.relevant(epsilon.min(keepdims=True))[0], individuals)
    top = np.zeros((rows.size, 1, TOP))
    who = np.zeros(top.shape, dtype=np.int64)
    step = max(1, BLOCK_NUMBERS // (coupling.n_draws * coupling.mixture.weights.shape[-1]))
    for start in range(0, relevant.size, step):
        members = relevant[start : start + step]
        keep_largest(curves_by_draw(some, members, epsilon), members, top, who)
    return top[:, 0], who[:, 0]


def riskiest(mean: Array, keep: int, named: Sequence[int] | Index = ()) -> Index:
    """Return the riskiest by mean risk over the grid, in order, then those named."""
    score = mean.sum(axis=1)
    first = np.argsort(-score, kind="stable")[:keep]
    return np.array([*first, *(i for i in named if i not in first)], dtype=np.int64)
