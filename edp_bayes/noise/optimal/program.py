"""The linear program: the least noise under a set of linear constraints on its distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.exceptions import EdpBayesError
from edp_bayes.noise.search import OutOfTimeError, check_time, seconds_left
from edp_bayes.utils.arrays import Array, Index

__all__ = ["Basis", "Constraint", "Program", "Solution", "SolverError"]

NEGLIGIBLE = 1e-13
AT_ONCE = 2  # constraints for each column that the solver is given at a time
MISSED = 1e-8  # by a scaled constraint, which then counts
# dense programs with many rows: the simplex method takes several times as long
ALGORITHMS: tuple[Any, ...] = ("highs-ipm", "highs", "highs-ds")
LIMIT, NUMERICAL = 1, 4  # status of linprog: out of iterations or time; numerical difficulties
OPTIONS: Any = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


class SolverError(EdpBayesError, RuntimeError):
    """The solver of the linear program stopped without a solution."""


@dataclass(frozen=True)
class Basis:
    """Lattice noise as a combination of columns that are distributions of noise themselves.

    Parameters
    ----------
    spacing : float
        Spacing of the lattice.
    half : int
        Number of free weights on either side of zero.
    decay : float
        Ratio of neighbouring probabilities in the tails.
    symmetric : bool
        Whether both sides are alike.
    """

    spacing: float
    half: int
    decay: float
    symmetric: bool

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.half + 2 if self.symmetric else 2 * self.half + 3

    def matrix(self, reach: int) -> Array:
        """Return P(K = k) of every column for k = -reach, ..., reach: (2 reach + 1, size)."""
        k = np.arange(-reach, reach + 1)
        beyond = np.maximum(np.abs(k) - self.half - 1, 0).astype(np.float64)
        tail = np.where(np.abs(k) > self.half, (1.0 - self.decay) * self.decay**beyond, 0.0)
        inner = (k[:, None] == np.arange(-self.half, self.half + 1)).astype(np.float64)
        parts = [np.where(k < 0, tail, 0.0)[:, None], inner, np.where(k > 0, tail, 0.0)[:, None]]
        both = np.concatenate(parts, axis=1)
        if not self.symmetric:
            return np.asarray(both)
        folded = 0.5 * (both + both[:, ::-1])
        return np.asarray(folded[:, self.half + 1 :])

    def distribution(self, weights: Array) -> LatticeNoise:
        """Return the noise that has these weights of the columns."""
        w = np.where(weights > NEGLIGIBLE, weights, 0.0)
        w = w / w.sum()
        if self.symmetric:
            side = 0.5 * w[1:-1]
            inner, left, right = np.concatenate([side[::-1], w[:1], side]), w[-1] / 2, w[-1] / 2
        else:
            inner, left, right = w[1:-1], w[0], w[-1]
        return LatticeNoise(
            self.spacing, inner, left=float(left), right=float(right), decay=self.decay
        )

    def cost(self, objective: str) -> Array:
        """Return expected absolute noise, or its second moment, of every column."""
        size = np.abs(np.arange(-self.half - 1, self.half + 2)).astype(np.float64)
        mean, variance = 1.0 / (1.0 - self.decay) - 1.0, self.decay / (1.0 - self.decay) ** 2
        if objective == "absolute":
            values = size.copy()
            values[self.half + 1] = 1.0 / 3.0
            values[[0, -1]] += mean
        else:
            values = size**2
            values[[0, -1]] = (size[0] + mean) ** 2 + variance
            values += 1.0 / 6.0
        values *= self.spacing ** (1 if objective == "absolute" else 2)
        return values[self.half + 1 :] if self.symmetric else values


@dataclass(frozen=True, eq=False)
class Constraint:
    """A constraint sum over points of (p_h - exp(eps) q_h) <= delta, for one pair.

    Attributes
    ----------
    draw, individual : int
        Whose.
    sign : int
        1 where p stands first, -1 where the distribution without the individual does.
    points, weights : ndarray
        Places x and the weight of each, a single one of weight 1 where delta = 0.
    first, second : ndarray
        What every column adds to the two sides, p_h and q_h for sign 1, shape (size,).
    """

    draw: int
    individual: int
    sign: int
    points: Array
    weights: Array
    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of the columns, the objective, and the multiplier of each constraint."""

    weights: Array
    value: float
    multipliers: Array


@dataclass(eq=False)
class Program:
    """A growing set of constraints and the noise that is best under them.

    `atoms` are further columns, each a cost and its entries on both sides of every constraint.

    Every column has at least the weight `least`: with normal kernels the noise needs some mass
    everywhere, or both densities vanish where their ratio is asked for.
    """

    basis: Basis
    objective: str
    least: float = 0.0
    constraints: list[Constraint] = field(default_factory=list)
    seen: set[tuple[int, int, int, float]] = field(default_factory=set)
    atoms: list[tuple[float, Array, Array]] = field(default_factory=list)

    def add(self, constraint: Constraint) -> None:
        """Add a constraint, unless the same one is already there."""
        key = (
            constraint.draw,
            constraint.individual,
            constraint.sign,
            float(constraint.points @ constraint.weights),
        )
        if key not in self.seen:
            self.seen.add(key)
            self.constraints.append(constraint)

    def drop(self, keep: NDArray[np.bool_]) -> None:
        """Keep only some of the constraints."""
        self.constraints = [
            constraint for constraint, kept in zip(self.constraints, keep, strict=True) if kept
        ]
        self.seen = {
            (
                constraint.draw,
                constraint.individual,
                constraint.sign,
                float(constraint.points @ constraint.weights),
            )
            for constraint in self.constraints
        }

    def solve(
        self, epsilon: float, delta: float, active: NDArray[np.bool_], current: Array
    ) -> Solution:
        """Return the least noise under the constraints of active draws.

        Of many constraints the solver is given those that `current` comes nearest to missing, and
        then those that its solution misses, until there are none.

        Parameters
        ----------
        epsilon, delta : float
            Targets.
        active : ndarray of bool
            Shape (draw,).
        current : ndarray
            Weights of the columns so far: every constraint is scaled by its size under them.

        Raises
        ------
        SolverError
            If the solver stops without a solution; the message holds its status.
        """
        size = self.basis.size
        cost = np.array([*self.basis.cost(self.objective), *(atom[0] for atom in self.atoms)])
        unit = self.basis.spacing ** (1 if self.objective == "absolute" else 2)
        which = [k for k, constraint in enumerate(self.constraints) if active[constraint.draw]]
        table = np.zeros((len(which), cost.size))
        right, scale = np.zeros((2, len(which)))
        for row, k in enumerate(which):
            constraint = self.constraints[k]
            known = float(constraint.first @ current) if delta == 0.0 else 1.0
            scale[row] = max(known, 1e-9 * float(constraint.first.max()), 1e-300)
            table[row, :size] = (constraint.first - math.exp(epsilon) * constraint.second) / scale[
                row
            ]
            for column, (_, first, second) in enumerate(self.atoms, start=size):
                table[row, column] = (first[k] - math.exp(epsilon) * second[k]) / scale[row]
            right[row] = delta / scale[row]
        miss = table[:, :size] @ current - right
        chosen: Index = np.zeros(0, dtype=np.int64)
        while True:
            new = np.argsort(-miss, kind="stable")[: AT_ONCE * size]
            new = new[miss[new] > (MISSED if chosen.size else -np.inf)]
            if chosen.size and new.size == 0:
                break
            chosen = np.concatenate([chosen, new])
            found = self._found(cost / unit, table[chosen], right[chosen])
            miss = table @ found.x - right
            miss[chosen] = -np.inf
            if chosen.size == len(which):
                break
        multipliers = np.zeros(len(self.constraints))
        rows = np.array(which, dtype=np.int64)[chosen]
        multipliers[rows] = -found.ineqlin.marginals * unit / scale[chosen]
        return Solution(
            np.maximum(found.x, 0.0), float(cost @ np.maximum(found.x, 0.0)), multipliers
        )

    def _found(self, cost: Array, table: Array, right: Array) -> Any:
        """Return what HiGHS finds: where an algorithm stops on numerical trouble, the next tries.

        It is one program with one optimum.
        """
        from scipy.optimize import linprog

        for method in ALGORITHMS:
            if (left := seconds_left()) <= 0.0:
                raise OutOfTimeError
            options: Any = {**OPTIONS, "time_limit": left} if math.isfinite(left) else OPTIONS
            found = linprog(
                cost,
                A_ub=table,
                b_ub=right,
                A_eq=np.ones((1, cost.size)),
                b_eq=[1.0],
                bounds=(self.least, None),
                method=method,
                options=options,
            )
            if found.status == LIMIT:
                check_time()
            if found.status != NUMERICAL:
                break
        if found.status != 0 or found.x is None:
            raise SolverError(
                f"HiGHS found no noise under {len(right)} constraints: status {found.status}, "
                f"{found.message}"
            )
        return found
