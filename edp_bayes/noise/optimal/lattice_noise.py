"""The noise of any shape with the least expected size: constraint generation and verification."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.noise.certificates.curvature import both_values
from edp_bayes.noise.certificates.densities import NoisyDensities
from edp_bayes.noise.certificates.noisy import TAILS
from edp_bayes.noise.certificates.ratios import (
    Pairs,
    alike,
    certified_log_ratios,
    doubtful_pairs,
    lattice_for,
    limits,
)
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.optimal.duality import lower_bound
from edp_bayes.noise.optimal.program import Basis, Constraint, Program, Solution, SolverError
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.scales import largest_risk
from edp_bayes.noise.search import OutOfTimeError, more_time, say, seconds_left
from edp_bayes.utils import formatting
from edp_bayes.utils.arrays import Array, Index

__all__ = ["Optimum", "optimal_noise"]

ROUNDS = 60
REPAIRS = 20
WORST = 100  # pairs of a draw and an individual that add constraints in one round
CROWD = 30  # individuals who miss the target, after whom a round looks no further
FIRST = 40  # draws, the hardest, that the search begins with
MOST_ROWS = 16  # constraints for each column, after which slack ones are left out
PEAKS = 6
NEIGHBOURS = np.array([-12, -4, 0, 4, 12])
EXCHANGES = 3
SHARES = (0.5, 0.2)  # of the way from noise that is enough to the program's
STALLED, STALL = 8, 0.1  # rounds in which its value grew by no more than this part of `close`
ROUGH = 0.03
BLENDS = (0.0, 0.002, 0.02, 0.2, 1.0)  # shares of noise that is surely enough
TINY = 1e-290
LEAST = 1e-9  # weight of every column under normal kernels
RELAXED = 0.01
CLOSE = 3e-3  # of epsilon or delta: how far a constraint may be missed before the last rounds
CLOSEST = 1e-4
MOST_WEIGHTS = 300  # on either side, unless more are needed
LARGEST_HALF = 6000  # weights on either side, whose matrices still fit into memory
NEAR = 1.0  # share of that by which the noise may be larger than the program's
BOUND_REACH = (0.6, 0.8, 1.3, 2.0, 3.0)
ENOUGH = 0.02  # how near to the noise a bound ends the search for a better one
REACH = 5.0  # times the size of simpler noise: what the free weights cover


@dataclass(frozen=True, eq=False)
class Optimum:
    """The noise and what is known of it.

    Attributes
    ----------
    noise : LatticeNoise in a NoiseDistribution, or None
        The noise; None where simpler noise is as small, or time was over before any was verified.
    active : ndarray of bool
        Shape (draw,): the draws in which it was made to hold.
    lower : float
        No distribution of noise that holds in these draws has a smaller objective.
    margin : float
        By how much epsilon (or delta) was lowered for what lies between the points.
    complete : bool
        False where time was over before the search was.
    """

    noise: NoiseDistribution | None
    active: NDArray[np.bool_]
    lower: float
    margin: float
    complete: bool = True


@dataclass(eq=False)
class OptimalNoise:
    """State of the constraint generation."""

    posterior: Posterior
    epsilon: float
    delta: float
    prob: float
    objective: str
    program: Program
    weights: Array
    safe: Array
    active: NDArray[np.bool_]
    people: Index
    hardest: Index
    worth: float
    solution: Solution | None = None
    verified: NoiseDistribution | None = None
    fine: int = 1
    matrices: dict[int, Array] = field(default_factory=dict)

    @property
    def hopeless(self) -> bool:
        """Whether no noise of this program is smaller than simpler noise that is enough."""
        return self.solution is not None and self.solution.value >= self.worth

    @property
    def noise(self) -> NoiseDistribution:
        """The current noise."""
        return NoiseDistribution((self.program.basis.distribution(self.weights),))

    def solve(
        self, epsilon: float, delta: float, close: float, *, worth: float | None = None
    ) -> None:
        """Add violated constraints and solve, until the noise is enough and nearly the least.

        Or until the program's value, which only grows, is no longer below `worth`, by default the
        size of simpler noise that is enough.

        Or until it has stalled: later rounds would add a tenth of what may be missed, or less.

        What is looked at lies half-way, or a fifth, from noise that is enough to the solution of
        the program (Ben-Ameur and Neto 2007): constraints found there cut deeper, and where none
        is violated by more than `close` it takes the place of the former, and the next round looks
        at the solution itself. Rounds look at those who have constraints; the result is held
        against everybody.
        """
        cost = self.program.basis.cost(self.objective)
        enough = self._enough(epsilon, delta, close)
        limit = self.worth if worth is None else min(worth, self.worth)
        at_optimum, values = False, [0.0] * STALLED
        for _ in range(ROUNDS):
            if not at_optimum:
                self._solve(epsilon, delta)
            assert self.solution is not None
            if self.solution.value >= limit:
                return
            least, value = self.solution.weights, self.solution.value
            stalled = value - values[-STALLED] <= STALL * close * value
            values.append(value)
            near = enough is not None and value >= (1.0 - NEAR * close) * cost @ enough
            if enough is not None and (stalled or near):
                self.weights = enough
                if not self._violated(epsilon, delta, close, everybody=True):
                    return
                enough, at_optimum = self._enough(epsilon, delta, close), False
                values = [0.0] * STALLED
                continue
            shares = (1.0,) if enough is None or at_optimum else SHARES
            for share in shares:
                self.weights = least if enough is None else share * least + (1.0 - share) * enough
                at_optimum = not self._violated(epsilon, delta, close)
                if at_optimum:
                    enough = self.weights
                    break
            at_optimum = at_optimum and share == shares[0]
        warnings.warn(
            f"constraint generation stopped after {ROUNDS} rounds: the noise may be larger than "
            "it has to be",
            EdpBayesWarning,
            stacklevel=2,
        )
        if enough is not None:
            self.weights = enough

    def _enough(self, epsilon: float, delta: float, close: float) -> Array | None:
        """Return the least of the noises found that violates nothing, if there is one."""
        current = self.weights
        for share in BLENDS:
            self.weights = weights = (1.0 - share) * current + share * self.safe
            if not self._violated(epsilon, delta, close):
                return weights
        return None

    def _solve(self, epsilon: float, delta: float) -> None:
        self.solution = self.program.solve(epsilon, delta, self.active, self.weights)
        conditions = len(self.program.constraints)
        say(f"Optimal noise: {self.solution.value:.4g} or more, under {conditions:,} conditions")
        most = MOST_ROWS * self.program.basis.size
        if len(self.program.constraints) > most:
            current = self.weights
            slack = np.array(
                [
                    1.0
                    - math.exp(epsilon)
                    * float(constraint.second @ current)
                    / float(constraint.first @ current)
                    for constraint in self.program.constraints
                ]
            )
            held = self.solution.multipliers > 0
            keep = held | (slack > np.quantile(slack, 1.0 - 0.5 * most / slack.size))
            self.program.drop(keep)
            self.solution = Solution(
                self.solution.weights, self.solution.value, self.solution.multipliers[keep]
            )

    def _violated(
        self, epsilon: float, delta: float, close: float, *, everybody: bool = False
    ) -> bool:
        """Return whether any pair misses the target; add constraints of those that miss by most.

        By default individuals and draws that have constraints are looked at, or everybody in the
        hardest draws if nobody has. Of many that miss the target only the first are looked for:
        individuals who need most noise come first.
        """
        draws, people = np.flatnonzero(self.active), self.people
        if not everybody:
            draws, people = self._looked_at()
        threshold = epsilon * (1.0 + 0.5 * close) if delta == 0.0 else epsilon
        limit = close * (epsilon if delta == 0.0 else delta)
        misses = []
        for pair in doubtful_pairs(self.posterior, self.noise, threshold, draws, people):
            excess = self._excess(pair, epsilon, delta)
            person = int(people[pair.column])
            for row, side in np.argwhere(excess > limit):
                misses.append((float(excess[row, side]), person, int(pair.rows[row]), side))
            if len({miss[1] for miss in misses}) >= CROWD or len(misses) >= 2 * WORST:
                break
        misses.sort(key=lambda miss: (-miss[0], miss[1:]))
        for person in sorted({miss[1] for miss in misses[:WORST]}):
            chosen = [miss[2:] for miss in misses[:WORST] if miss[1] == person]
            self._constraints_of(person, draws, chosen, epsilon, delta)
        return bool(misses)

    def _looked_at(self) -> tuple[Index, Index]:
        """Return the draws and the individuals that most rounds look at."""
        held = [each for each in self.program.constraints if self.active[each.draw]]
        if not held:
            return np.sort(self.hardest[self.active[self.hardest]][:FIRST]), self.people
        people = self.people[np.isin(self.people, [each.individual for each in held])]
        return np.unique([each.draw for each in held]), people

    def _excess(self, pair: Pairs, epsilon: float, delta: float) -> Array:
        """Return by how much p over q, and q over p, miss the target: (row, 2)."""
        out = np.empty((pair.rows.size, 2))
        for part in alike(self.noise, self.posterior.kernel, pair.p, pair.q):
            lattice = self._lattice(pair.p[part], pair.q[part])
            p, q = both_values(pair.p[part], pair.q[part], lattice)
            if delta == 0.0:
                ratio = np.log(np.maximum(p, TINY) / np.maximum(q, TINY))
                out[part, 0], out[part, 1] = ratio.max(axis=1), -ratio.min(axis=1)
                out[part] -= epsilon
            else:
                growth = math.exp(epsilon)
                for side, f in enumerate((p - growth * q, q - growth * p)):
                    out[part, side] = np.maximum(f, 0.0).sum(axis=1) * lattice.step - delta
        return out

    def _constraints_of(
        self,
        person: int,
        draws: Index,
        chosen: list[tuple[int, int]],
        epsilon: float,
        delta: float,
    ) -> None:
        """Add the constraints of one individual in some draws and directions."""
        rows = draws[[row for row, _ in chosen]]
        sides = np.array([side for _, side in chosen])
        p, q = (part[rows] for part in self.posterior.pair(person))
        for part in alike(self.noise, self.posterior.kernel, p, q):
            self._add(person, rows[part], sides[part], [p[part], q[part]], epsilon, delta)

    def _add(
        self,
        person: int,
        rows: Index,
        chosen: Index,
        parts: list[Array],
        epsilon: float,
        delta: float,
    ) -> None:
        lattice = self._lattice(*parts)
        triangles = [lattice.triangles(self.spacing, part) for part in parts]
        distribution = self.program.basis.distribution(self.weights)
        values = [lattice.applied(distribution, each) for each in triangles]
        matrix = self._matrix(lattice.strides(self.spacing)[1])
        for k, side in enumerate(chosen):
            sides = [triangles[0][k], triangles[1][k]]
            first, second = (values[side][k], values[1 - side][k])
            if delta == 0.0:
                places = _peaks(
                    np.log(np.maximum(first, TINY) / np.maximum(second, TINY)) - epsilon
                )
                groups = [(np.array([place]), np.ones(1)) for place in places]
            else:
                where = np.flatnonzero(first > math.exp(epsilon) * second)
                groups = [(where, np.full(where.size, lattice.step))]
            for where, weights in groups:
                columns = [_columns(each, where, weights, matrix, lattice, self.spacing)
                           for each in sides]  # fmt: skip
                self.program.add(
                    Constraint(
                        int(rows[k]),
                        person,
                        1 - 2 * int(side),
                        lattice.points[where],
                        weights,
                        columns[side],
                        columns[1 - side],
                    )
                )

    def _lattice(self, p: Array, q: Array) -> NoisyDensities:
        tails = 0.0 if self.delta == 0.0 else TAILS
        return lattice_for(self.noise, self.posterior.kernel, p, q, self.fine, tails=tails)

    @property
    def spacing(self) -> float:
        """Spacing of the lattice."""
        return self.program.basis.spacing

    def _matrix(self, reach: int) -> Array:
        known = self.matrices.get(reach)
        if known is None:
            self.matrices.clear()
            known = self.matrices[reach] = self.program.basis.matrix(reach)
        return known


def _peaks(excess: Array) -> Index:
    """Return the points of the highest peaks, and some around them: they move with the noise."""
    peak = (excess > 0.0) & (excess >= np.roll(excess, 1)) & (excess >= np.roll(excess, -1))
    where = np.flatnonzero(peak)
    where = where[np.argsort(-excess[where], kind="stable")[:PEAKS]]
    near = np.unique((where[:, None] + NEIGHBOURS).ravel())
    near = near[(near >= 0) & (near < excess.size)]
    return np.asarray(near[excess[near] > 0.0])


def _columns(
    triangles: Array,
    where: Index,
    weights: Array,
    matrix: Array,
    lattice: NoisyDensities,
    spacing: float,
) -> Array:
    """Return what every column of the basis gives at some points, weighted and summed."""
    # x - k spacing for all k, in the order of the rows of the matrix
    span = lattice.strides(spacing)[0] * np.arange(matrix.shape[0])[::-1]
    return np.asarray((weights @ triangles[where[:, None] + span]) @ matrix)


def optimal_noise(
    posterior: Posterior,
    epsilon: float,
    delta: float,
    *,
    prob: float,
    scale: float,
    near: float,
    worth: float,
    spacing: float,
    hardness: Array,
    held: NDArray[np.bool_],
    people: Index,
    objective: str = "absolute",
    symmetric: bool = True,
) -> Optimum:
    """Return the noise with the least objective that meets the target in enough draws.

    Parameters
    ----------
    posterior : Posterior
        The distributions with and without each individual.
    epsilon, delta : float
        Target.
    prob : float
        Share of the draws in which it must hold for every individual.
    scale : float
        Scale of the tails.
    near : float
        Size of noise of a simple shape that is enough in so many draws: the weights are free up to
        five times it, and further if they are few.
    worth : float
        The objective of that noise: what cannot be below it is not looked for.
    spacing : float
        Spacing of the lattice.
    hardness : ndarray
        Shape (draw,): how much noise each draw seems to need.
    held : ndarray of bool
        Shape (draw,): where the noise of a simple shape is known to be enough.
    people : ndarray of int
        The individuals that may matter.
    objective : {"absolute", "variance"}
        Expected absolute noise, or variance.
    symmetric : bool
        Whether the noise has to be symmetric.
    """
    order = posterior.hardest_first(epsilon)
    people = order[np.isin(order, people)]
    wide, enough = (math.ceil(REACH * size / spacing) for size in (scale, near))
    count = max(enough, min(wide, 2 * enough, MOST_WEIGHTS))
    if count > LARGEST_HALF:
        least = formatting.enough(REACH * near / LARGEST_HALF, 3)
        raise InvalidInputError(
            f"spacing must be at least {least} beside noise of this size, found {spacing:g}"
        )
    basis = Basis(spacing, count, math.exp(-spacing / scale), symmetric)
    excluded = int((1.0 - prob) * posterior.n_draws + 1e-9)
    hopeless = np.zeros(posterior.n_draws, dtype=bool)
    if delta == 0.0:
        hopeless = _hopeless(posterior, epsilon, scale, people)
    hardness = np.where(hopeless, np.inf, hardness)
    hardest = np.argsort(-hardness, kind="stable")
    active = np.ones(posterior.n_draws, dtype=bool)
    active[hardest[: max((excluded + 1) // 2, int(hopeless.sum()))]] = False
    state = OptimalNoise(
        posterior,
        epsilon,
        delta,
        prob,
        objective,
        Program(basis, objective, least=LEAST if posterior.kernel == "gaussian" else 0.0),
        _geometric(basis, 0.1 * scale),
        _geometric(basis, scale),
        active,
        people,
        hardest,
        worth,
    )
    try:
        state.solve(epsilon, delta, ROUGH)
        while (~active).sum() < excluded:
            _leave_out(state, excluded - int((~active).sum()))
            state.solve(epsilon, delta, ROUGH)
        if not state.hopeless:
            _exchange(state, excluded, hardness)
        return _repaired(state)
    except OutOfTimeError:
        # a bound on any noise that holds where the noise found does
        if state.verified is None:
            active &= held
        return Optimum(state.verified, active.copy(), _lower(state), 0.0, complete=False)


def _hopeless(
    posterior: Posterior, epsilon: float, scale: float, people: Index
) -> NDArray[np.bool_]:
    """Return the draws in which tails of this scale alone miss the target, shape (draw,)."""
    noise = NoiseDistribution((LaplaceNoise(scale),))
    missed = np.zeros(posterior.n_draws, dtype=bool)
    for pair in doubtful_pairs(posterior, noise, epsilon, np.arange(missed.size), people):
        over = limits(pair.p, pair.q, posterior.kernel, noise) > epsilon
        missed[pair.rows[over]] = True
    return missed


def _geometric(basis: Basis, scale: float) -> Array:
    """Return weights like those of Laplace noise."""
    k = np.arange(-basis.half - 1, basis.half + 2)
    weights = np.exp(-basis.spacing * np.abs(k) / scale)
    weights[[0, -1]] /= 1.0 - basis.decay
    if basis.symmetric:
        weights = weights[basis.half + 1 :]
        weights[1:] *= 2.0
    return np.asarray(weights / weights.sum())


def _leave_out(state: OptimalNoise, budget: int) -> None:
    """Leave out the draws whose constraints cost most, half of what may go at a time."""
    assert state.solution is not None
    price = np.zeros(state.active.size)
    # constraints found since the program was solved come last and have no price yet
    for constraint, multiplier in zip(
        state.program.constraints, state.solution.multipliers, strict=False
    ):
        price[constraint.draw] += multiplier * float(constraint.first @ state.weights)
    price[~state.active] = -1.0
    take = max(1, math.ceil(0.34 * budget))
    state.active[np.argsort(-price, kind="stable")[:take]] = False


def _exchange(state: OptimalNoise, excluded: int, hardness: Array) -> None:
    """Take back the left-out draws that the noise protects all the same, and spend the budget.

    Where there are none, another draw is left out in place of one of them, if that helps. Draws of
    infinite hardness are never taken back.
    """
    for _ in range(EXCHANGES):
        out = np.flatnonzero(~state.active & np.isfinite(hardness))
        safe = out[_protected(state, out)]
        if safe.size == 0:
            if out.size == 0 or not _swapped(state, int(out[np.argmin(hardness[out])])):
                return
            continue
        state.active[safe] = True
        while (~state.active).sum() < excluded:
            _leave_out(state, excluded - int((~state.active).sum()))
        state.solve(state.epsilon, state.delta, ROUGH)


def _swapped(state: OptimalNoise, back: int) -> bool:
    """Leave out the draw whose constraints cost most in place of this one, if that helps."""
    weights, active, solution = state.weights, state.active.copy(), state.solution
    assert solution is not None
    _leave_out(state, 1)
    state.active[back] = True
    worth = (1.0 - ROUGH) * solution.value
    state.solve(state.epsilon, state.delta, ROUGH, worth=worth)
    assert state.solution is not None
    if state.solution.value < worth:
        return True
    state.weights, state.active, state.solution = weights, active, solution
    return False


def _protected(state: OptimalNoise, draws: Index) -> NDArray[np.bool_]:
    if draws.size == 0:
        return np.zeros(0, dtype=bool)
    if state.delta == 0.0:
        found = certified_log_ratios(
            state.posterior, state.noise, state.epsilon, draws=draws, individuals=state.people
        )
        return np.asarray(found.largest <= state.epsilon * (1.0 + ROUGH))
    risk = largest_risk(state.posterior, state.noise, state.epsilon, draws, state.people)
    return np.asarray(risk <= state.delta * (1.0 + ROUGH))


def _repaired(state: OptimalNoise) -> Optimum:
    """Lower the target until the verification off the lattice holds in the active draws."""
    draws = np.flatnonzero(state.active)
    pure = state.delta == 0.0
    target = limit = state.epsilon if pure else state.delta
    state.fine = 4 if pure else 1
    if math.isfinite(seconds_left()) and not state.hopeless:
        _verify_soon(state)
    for repair in range(REPAIRS):
        close = max(CLOSE / 2**repair, CLOSEST)  # or the same noise would do once more
        state.solve(target if pure else state.epsilon, 0.0 if pure else target, close)
        if state.hopeless:
            # a bound in some draws says nothing of simpler noise, which holds in others
            lower = _lower(state) if state.active.all() else 0.0
            return Optimum(None, state.active.copy(), lower, 0.0)
        over = _over(state, draws)
        if over <= 0.0:
            return Optimum(state.noise, state.active.copy(), _lower(state), limit - target)
        target -= max(over, 1e-3 * limit) * 1.02
        if target <= 0.0:
            break
    raise SolverError(
        f"the noise that was found misses its target by {over:g} off the lattice, and no lower "
        "target repairs it; give a smaller spacing"
    )


def _over(state: OptimalNoise, draws: Index) -> float:
    """Return by how much the current noise misses its target in any of the draws."""
    if state.delta == 0.0:
        reached = certified_log_ratios(
            state.posterior,
            state.noise,
            state.epsilon,
            draws=draws,
            individuals=state.people,
            tolerance=CLOSE,
        ).largest.max()
        return float(reached) - state.epsilon
    reached = largest_risk(state.posterior, state.noise, state.epsilon, draws, state.people).max()
    return float(reached) - state.delta


def _verify_soon(state: OptimalNoise) -> None:
    """Keep noise that is verified though a little larger, in case time is over before the rest."""
    weights = state.weights
    for share in BLENDS[2:]:
        state.weights = (1.0 - share) * weights + share * state.safe
        if _over(state, np.flatnonzero(state.active)) <= 0.0:
            state.verified = state.noise
            break
    state.weights = weights


def _lower(state: OptimalNoise) -> float:
    """Return the dual bound, for which there is a little more time than for the noise."""
    say("A bound on the least noise")
    with more_time():
        return _bound(state)


def _bound(state: OptimalNoise) -> float:
    """Return the dual bound, from the constraints that no tail beyond the free weights can help.

    Those further out price the tails, whose shape is fixed here, and would spoil the bound.
    """
    basis, posterior = state.program.basis, state.posterior
    middle = float((posterior.base[..., 0] * posterior.base[..., 1]).sum(axis=1).mean())
    best = 0.0
    for part in BOUND_REACH:
        edge = part * basis.half * basis.spacing
        near = [
            inner
            for constraint in state.program.constraints
            if (inner := _inside(constraint, middle, edge))
        ]
        if not near:
            continue
        # sums stand for integrals here: a little more delta covers the difference
        delta = state.delta * (1.0 + RELAXED)
        bound = lower_bound(
            posterior,
            near,
            state.weights,
            basis,
            active=state.active,
            epsilon=state.epsilon,
            delta=delta,
            objective=state.objective,
        )
        best = max(best, bound)
        if state.solution is not None and best >= (1.0 - ENOUGH) * state.solution.value:
            break
    return best


def _inside(constraint: Constraint, middle: float, edge: float) -> Constraint | None:
    """Return a constraint that is near enough; of no other a part would still be one."""
    return constraint if np.abs(constraint.points - middle).max() <= edge else None
