"""Every individual's risk in every draw, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.integral_errors import BlockErrors, IntegralErrors
from edp_bayes.coupling.base import Coupling
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    from edp_bayes.auditing.executors.base import Runner

__all__ = [
    "BlockRisks",
    "Risks",
    "canonical_blocks",
    "combine",
    "estimated",
    "evaluate",
    "evaluate_block",
    "largest_at",
    "riskiest",
]

# Numbers held at once of risks, or of presence by component, while individuals are evaluated block
# by block.
BLOCK_NUMBERS = 2**22
# Fewest individuals of a block that is evaluated, sent and kept as one.
LEAST_BLOCK = 128
# Of the largest risk that is known: less by more than rounding, so that it is above itself.
BELOW = 1.0 - 1e-9
# Individuals of whom all are evaluated: to find how large the largest risk is takes as long.
FEW = 128
# The largest risks of every draw that are known one by one.
TOP = 8
# Numbers held at once where integrals have errors, each pair of a draw and an individual many.
ESTIMATED_NUMBERS = 2**24
# Individuals beyond whom it pays to know first how large the largest risk is.
LED = 100


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
    floor : ndarray
        Shape (chain * draw, epsilon): risks not above it may be upper bounds; zero where none is.
    bounded : ndarray
        Shape (chain * draw, epsilon): bound on the sum of these.
    copied : ndarray or None
        Shape (chain * draw, epsilon): delta_i of the individual asked for in each draw.
    reduced : ndarray or None
        Shape (chain * draw, epsilon): the largest bound of those whose contributions were not
        collected; None where all were.
    evaluated : ndarray or None
        Shape (chain * draw, epsilon): the largest delta_i of all others.
    errors : IntegralErrors or None
        What integrals leave open; None where they are exact.
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
    floor: Array
    bounded: Array
    copied: Array | None = None
    reduced: Array | None = None
    evaluated: Array | None = None
    errors: IntegralErrors | None = None

    def safe(self, name: str) -> Array:
        """Return a quantity as upper limits are made of it: errors of integrals added."""
        found: Array = getattr(self, name) if self.errors is None else getattr(self.errors, name)[1]
        return found

    @property
    def least_delta(self) -> Array:
        """Lower end of delta: zero where it may be no more than an upper bound."""
        if self.errors is not None:
            return np.asarray(self.errors.delta[0])
        delta = self.delta if self.evaluated is None else self.evaluated
        return np.where(delta > self.floor, delta, 0.0)

    @property
    def least_total_risk(self) -> Array:
        """delta* of all whose risks are no upper bounds."""
        if self.errors is not None:
            return np.asarray(self.errors.total_risk[0])
        survival = (1.0 - self.total_risk) * np.exp(self.bounded)
        return np.maximum(1.0 - survival, 0.0)

    def curves_of(self, individuals: Index, coupling: Coupling, epsilon: Array) -> Array:
        """Return delta_i of some individuals, evaluated anew where they were too many to keep."""
        if self.curves is None:
            return coupling.curves(individuals, epsilon)
        return self.curves[:, individuals]


@dataclass(frozen=True, eq=False)
class BlockRisks:
    """What a block of individuals adds to `Risks`, independently of others.

    Attributes
    ----------
    largest, log_survival, total, log_bounded : ndarray
        Shape (draw, epsilon): over the block, the largest delta_i, the sum of log(1 - delta_i), the
        sum of delta_i, and the sum of log(1 - delta_i) of those that may be upper bounds.
    mean, deviation, median, highest : ndarray
        Shape (member, epsilon): summaries over the draws.
    top, who : ndarray
        Shape (draw, epsilon, rank): the largest delta_i of the block, and whose they are.
    copied : ndarray
        Shape (row, epsilon): delta_i of members in the draws they were asked for in.
    curves : ndarray or None
        Shape (draw, member, epsilon), if they are to be kept.
    errors : BlockErrors or None
        What integrals leave open; None where they are exact.
    """

    largest: Array
    log_survival: Array
    total: Array
    log_bounded: Array
    mean: Array
    deviation: Array
    median: Array
    highest: Array
    top: Array
    who: Index
    copied: Array
    curves: Array | None = None
    errors: BlockErrors | None = None


def evaluate(
    coupling: Any,
    epsilon: Array,
    *,
    progressbar: bool,
    copies: Index | None = None,
    run: Runner | None = None,
    exact_up_to: int | None = None,
    only_largest: bool = False,
) -> Risks:
    """Evaluate every individual, block by block.

    Parameters
    ----------
    coupling : Coupling or JointCoupling
        The fit.
    epsilon : ndarray
        Shape (epsilon,).
    progressbar : bool
        Show progress.
    copies : ndarray of int, optional
        Shape (draw,): the individual of each draw whose risk in that draw is kept.
    run : Runner, optional
        Evaluates the blocks somewhere, see `edp_bayes.auditing.executors`; here by default.
    exact_up_to : int, optional
        In larger populations the risks of those who hardly matter are upper bounds, where a
        coupling has such, see `edp_bayes.coupling.regression.RegressionCoupling.bounded`.
    only_largest : bool
        So are all that are surely not the largest, in any population.
    """
    from edp_bayes.auditing.executors.base import Work
    from edp_bayes.auditing.executors.local import here

    only_largest &= coupling.n_individuals > FEW
    if only_largest or (exact_up_to is not None and coupling.n_individuals > exact_up_to):
        bounded = getattr(coupling, "bounded", None)
        share = {"share": BELOW} if only_largest else {}
        coupling = coupling if bounded is None else bounded(epsilon, **share)
    elif coupling.n_individuals > LED and estimated(coupling):
        coupling = coupling.led(epsilon)
    relevant, screened_bound = coupling.relevant(epsilon)
    reduced: NDArray[np.bool_] | None = getattr(coupling, "reduced", None)
    blocks = canonical_blocks(relevant)
    if reduced is not None:
        blocks = canonical_blocks(relevant[~reduced[relevant]])
        blocks += canonical_blocks(relevant[reduced[relevant]])
    everybody = relevant.size == coupling.n_individuals
    exact = getattr(coupling, "floor", None) is None and reduced is None
    exact &= not estimated(coupling)
    keep = exact and everybody and relevant.size <= _step(coupling, epsilon)
    found = (run or here)(Work(coupling, epsilon, copies, keep), blocks)
    shown = track(found, "Individuals", total=len(blocks), show=progressbar)
    return combine(
        zip(blocks, shown, strict=True),
        shape=(coupling.n_draws, coupling.n_individuals, epsilon.size),
        screened_bound=screened_bound,
        copies=copies,
        floor=_floor(coupling, epsilon),
        reduced=reduced,
    )


def canonical_blocks(individuals: Index) -> list[Index]:
    """Return the blocks in which individuals are evaluated: their number alone decides.

    Sums are rounded block by block, so what they are must depend on nothing else. As many more
    individuals as there are, the larger are the blocks, and the fewer sums each of them needs.
    """
    least = max(LEAST_BLOCK, math.isqrt(4 * individuals.size))
    size = 1 << (least - 1).bit_length()
    return [individuals[start : start + size] for start in range(0, individuals.size, size)]


def evaluate_block(
    coupling: Any,
    members: Index,
    epsilon: Array,
    *,
    copies: Index | None = None,
    keep_curves: bool = False,
) -> BlockRisks:
    """Evaluate some individuals: a function of the draws, of them and of epsilon alone.

    Parameters
    ----------
    coupling : Coupling
        The fit, or what of it these individuals need.
    members : ndarray of int
        Shape (member,): increasing.
    epsilon : ndarray
        Shape (epsilon,).
    copies : ndarray of int, optional
        Shape (draw,): the individual whose risk in that draw is kept, a member or not.
    keep_curves : bool
        Keep delta_i of all members in all draws.
    """
    from edp_bayes.auditing.reductions import accumulate, keep_largest, medians, moments

    size, levels = coupling.n_draws, epsilon.size
    floor = _floor(coupling, epsilon)
    reduced: NDArray[np.bool_] | None = getattr(coupling, "reduced", None)
    bounded = reduced is not None and bool(reduced[members].all())
    if bounded:
        floor = np.full_like(floor, np.inf)
    largest, log_survival, total, log_bounded = np.zeros((4, size, levels))
    top = np.zeros((size, levels, TOP))
    who = np.zeros(top.shape, dtype=np.int64)
    mean, deviation, highest, median = np.zeros((4, members.size, levels))
    rows = _rows_of(members, copies)
    copied = np.zeros((rows.size, levels))
    step = members.size if keep_curves else _step(coupling, epsilon)
    errors = BlockErrors.zeros(size, members.size, levels) if estimated(coupling) else None
    # One buffer for all steps: fresh memory for each costs as much as the integrals.
    buffer = np.empty((size, min(step, members.size), levels)) if errors is None else None
    for start in range(0, members.size, step):
        part = slice(start, start + step)
        some = members[part]
        if errors is None:
            whole = buffer is not None and some.size == buffer.shape[1]
            curves = coupling.curves(some, epsilon, out=buffer if whole else None)
        else:
            found = coupling.curves(some, epsilon)
            curves = found.value
            errors.add_curves(part, found)
        accumulate(curves, largest, log_survival, total, floor, log_bounded)
        if not bounded:  # Nobody is asked at other epsilons of whom there is a bound alone.
            keep_largest(curves, some, top, who)
        mean[part], deviation[part], highest[part] = moments(curves)
        median[part] = medians(curves)
        if copies is not None:
            here = _rows_of(some, copies)
            column = np.searchsorted(some, copies[here])
            copied[np.searchsorted(rows, here)] = curves[here, column]
    return BlockRisks(
        largest=largest,
        log_survival=log_survival,
        total=total,
        log_bounded=log_bounded if errors is None else errors.log_bounded,
        mean=mean,
        deviation=deviation,
        median=median,
        highest=highest,
        top=top,
        who=who,
        copied=copied,
        curves=buffer if keep_curves else None,
        errors=errors,
    )


def combine(
    blocks: Iterable[tuple[Index, BlockRisks]],
    *,
    shape: tuple[int, int, int],
    screened_bound: Array,
    copies: Index | None = None,
    floor: Array | None = None,
    reduced: NDArray[np.bool_] | None = None,
) -> Risks:
    """Put the canonical blocks together, added in their order.

    Parameters
    ----------
    blocks : iterable of (ndarray, BlockRisks)
        Members and what was found of them.
    shape : tuple of int
        Numbers of draws, of individuals and of epsilons.
    screened_bound : ndarray
        Shape (epsilon,): bound on the sum of the risks of all who are in no block.
    copies : ndarray of int, optional
        Shape (draw,): the individual whose risk is kept.
    floor : ndarray, optional
        Shape (draw, epsilon): where risks may be upper bounds.
    reduced : ndarray of bool, optional
        Shape (individual,): whose risks are upper bounds, all of a block or none.
    """
    size, people, levels = shape
    largest, most, log_survival, total, log_bounded = np.zeros((5, size, levels))
    top = np.zeros((size, levels, TOP))
    who = np.zeros(top.shape, dtype=np.int64)
    mean, deviation, highest, median = np.zeros((4, people, levels))
    copied = None if copies is None else np.zeros((size, levels))
    curves: list[Array | None] = []
    errors: BlockErrors | None = None
    for members, block in blocks:
        into = most if reduced is not None and reduced[members].any() else largest
        np.maximum(into, block.largest, out=into)
        log_survival += block.log_survival
        total += block.total
        log_bounded += block.log_bounded
        top, who = _largest_of_both(top, who, block.top, block.who)
        mean[members], deviation[members] = block.mean, block.deviation
        median[members], highest[members] = block.median, block.highest
        if copied is not None:
            copied[_rows_of(members, copies)] = block.copied
        curves.append(block.curves)
        if block.errors is not None:
            errors = errors or BlockErrors.zeros(*shape)
            errors.add_block(members, block.errors)
    kept = [part for part in curves if part is not None]
    everybody = sum(part.shape[1] for part in kept) == people
    delta = np.maximum(largest, most)
    # By rounding alone they could be in another order.
    total_risk = np.maximum(np.abs(np.expm1(log_survival)), delta)
    return Risks(
        delta=delta,
        total_risk=total_risk,
        total_risk_bound=np.minimum(np.maximum(total, total_risk), 1.0),
        mean=mean,
        deviation=deviation,
        median=median,
        highest=highest,
        screened_bound=screened_bound if errors is None else errors.skipped.max(axis=0),
        curves=np.concatenate(kept, axis=1) if everybody else None,
        top=top,
        who=who,
        copied=copied,
        floor=np.zeros((size, levels)) if floor is None else floor,
        bounded=-log_bounded if errors is None else errors.bounded,
        reduced=None if reduced is None else most,
        evaluated=None if reduced is None else largest,
        errors=None if errors is None else errors.of_sums(log_survival, total),
    )


def estimated(coupling: Any) -> bool:
    """Return whether integrals have errors, as in several dimensions: curves say which."""
    return bool(getattr(coupling, "estimated", False))


def _floor(coupling: Any, epsilon: Array) -> Array:
    """Return where risks may be upper bounds, zeros where none is or curves say themselves."""
    floor: Array | None = None if estimated(coupling) else getattr(coupling, "floor", None)
    return np.zeros((coupling.n_draws, epsilon.size)) if floor is None else floor


def _rows_of(members: Index, copies: Index | None) -> Index:
    """Return the draws whose copied individual is a member."""
    if copies is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(copies, members))


def _step(coupling: Any, epsilon: Array) -> int:
    """Return how many individuals memory is for at once."""
    if estimated(coupling):
        each = coupling.n_draws * (5 * epsilon.size + coupling.width)
        return max(1, ESTIMATED_NUMBERS // int(each))
    widest: int = max(epsilon.size, coupling.mixture.weights.shape[-1])
    return max(1, BLOCK_NUMBERS // int(coupling.n_draws * widest))


def _largest_of_both(top: Array, who: Index, more: Array, whose: Index) -> tuple[Array, Index]:
    """Return the largest risks of two lists, of equal ones those of the first."""
    risks, people = np.concatenate([top, more], axis=-1), np.concatenate([who, whose], axis=-1)
    order = np.argsort(-risks, axis=-1, kind="stable")[..., :TOP]
    return np.take_along_axis(risks, order, -1), np.take_along_axis(people, order, -1)


def largest_at(
    coupling: Coupling, individuals: Index, rows: Index, epsilon: Array
) -> tuple[Array, Index]:
    """Return the largest risks of some individuals at an epsilon of each of some draws.

    Parameters
    ----------
    coupling : Coupling
        Its draws must be such as can be picked, see `edp_bayes.coupling.views.some_draws.pick`.
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
    from edp_bayes.coupling.views.some_draws import curves_by_draw, pick

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
