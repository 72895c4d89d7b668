"""How little noise any distribution could have: a lower bound from the multipliers of the program.

For multipliers mu >= 0 of any finite set of constraints p_h(x) <= exp(eps) q_h(x) + ..., every
distribution h of noise that meets them has

    E cost(Z) >= inf_z [cost(z) + sum mu (p(x - z) - exp(eps) q(x - z))] - delta sum mu,

because h is a probability and meets the constraints. The infimum is over the whole line, so the
bound holds for atoms and for distributions of any shape, not for the lattice alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edp_bayes.noise.certificates.curvature import bending_kernels
from edp_bayes.noise.optimal.program import Basis, Constraint, Program
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.search import OutOfTimeError
from edp_bayes.utils.arrays import Array

__all__ = ["lower_bound"]

Sides = list[tuple[Array, Array]]

ROUNDS, ATOMS = 6, 12
CLOSE = 0.01
FAR = {"laplace": 45.0, "gaussian": 10.0}  # scales beyond which a kernel is left out
# of a kernel's height, what is left there: sums leave out normal densities from 9 scales on
NOTHING = {"laplace": math.exp(-45.0), "gaussian": math.exp(-40.5)}
COARSEST = 5.0  # scales between two points, beyond which nothing is said of what lies there
PARTS = 4  # of each cell of a set that stands for an integral
PER_SCALE, LEAST, MOST = 80, 2001, 60_001


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual function of some multipliers: its bound, and where it is lowest.

    Attributes
    ----------
    bound : float
        No admissible noise has a smaller expected cost; never negative.
    lowest : ndarray
        Places z at which an atom of noise would be worth most.
    """

    bound: float
    lowest: Array


def lower_bound(
    posterior: Posterior,
    constraints: list[Constraint],
    weights: Array,
    basis: Basis,
    *,
    active: NDArray[np.bool_],
    epsilon: float,
    delta: float,
    objective: str,
) -> float:
    """Return a number that the expected cost of no admissible noise is below.

    The program over the lattice is solved again under the given constraints alone, with atoms
    of noise added as further columns where its dual function is lowest, some rounds long. The
    bound of every round holds, also of those that time allows.

    Parameters
    ----------
    posterior : Posterior
        What the constraints were made from.
    constraints : list of Constraint
        Program; any part of those that hold gives a bound.
    weights : ndarray
        Weights of the columns, for the scale of the constraints.
    basis : Basis
        The lattice.
    active : ndarray of bool
        Shape (draw,): the draws that count.
    epsilon, delta : float
        Targets.
    objective : {"absolute", "variance"}
        The cost: abs(z) or z squared.
    """
    constraints = [constraint for constraint in constraints if active[constraint.draw]]
    if delta > 0.0:
        constraints = [_finer(constraint) for constraint in constraints]
    program = Program(basis, objective, constraints=constraints)
    sides = _sides(posterior, constraints)
    best = 0.0
    for _ in range(ROUNDS):
        try:
            solution = program.solve(epsilon, delta, active, weights)
        except OutOfTimeError:
            break
        dual = _dual(
            constraints,
            sides,
            solution.multipliers,
            kernel=posterior.kernel,
            epsilon=epsilon,
            delta=delta,
            objective=objective,
            symmetric=basis.symmetric,
            guess=solution.value,
        )
        best = max(best, dual.bound)
        if dual.bound >= (1.0 - CLOSE) * solution.value or dual.lowest.size == 0:
            break
        program.atoms += _atoms(constraints, sides, dual.lowest, posterior.kernel, basis, objective)
    return best


def _finer(constraint: Constraint) -> Constraint:
    """Return a constraint on a set of cells with several points in each."""
    places = (np.arange(PARTS) + 0.5) / PARTS - 0.5
    points = (constraint.points[:, None] + constraint.weights[:, None] * places).ravel()
    return replace(constraint, points=points, weights=np.repeat(constraint.weights / PARTS, PARTS))


def _sides(posterior: Posterior, constraints: list[Constraint]) -> Sides:
    """Return the components of both sides of every constraint, (component, 3) each."""
    sides: Sides = [(np.empty(0), np.empty(0))] * len(constraints)
    for person in sorted({constraint.individual for constraint in constraints}):
        pair = posterior.pair(person)
        for k, constraint in enumerate(constraints):
            if constraint.individual == person:
                p, q = (part[constraint.draw] for part in pair)
                sides[k] = (p, q) if constraint.sign > 0 else (q, p)
    return sides


def _dual(
    constraints: list[Constraint],
    sides: Sides,
    multipliers: Array,
    *,
    kernel: str,
    epsilon: float,
    delta: float,
    objective: str,
    symmetric: bool,
    guess: float,
) -> Dual:
    used = np.flatnonzero(multipliers > 0.0)
    if used.size == 0:
        return Dual(0.0, np.zeros(0))
    terms = [_terms(constraints[k], sides[k], float(multipliers[k]), epsilon) for k in used]
    weight, place, scale = (np.concatenate(part) for part in zip(*terms, strict=True))
    # further out the cost alone exceeds the guess, and all kernels together are negligible
    reach = float((np.abs(place) + FAR[kernel] * scale).max())
    edge = max(reach, 1.1 * guess, guess**0.5)
    beyond = float((np.abs(weight) / scale).sum()) * NOTHING[kernel]
    points = int(min(max(2.0 * edge / float(scale.min()) * PER_SCALE, LEAST), MOST))
    z = np.append(np.linspace(-edge, edge, points), 0.0)  # where the cost has its kink
    if kernel == "laplace":
        peaks = place[(np.abs(place) < edge) & (weight < 0.0)]
        z = np.concatenate([z, peaks, -peaks] if symmetric else [z, peaks])
    z = np.unique(z)
    if np.diff(z).max() > COARSEST * scale.min():
        return Dual(0.0, np.zeros(0))
    gain, curve = _sums(weight, place, scale, z, kernel)
    if symmetric:
        back, back_curve = _sums(weight, place, scale, -z[::-1], kernel)
        gain, curve = 0.5 * (gain + back[::-1]), 0.5 * (curve + back_curve[::-1])
    cost = np.abs(z) if objective == "absolute" else z**2
    value = cost + gain
    # between two points the function is above its chord by no more than its upward curvature
    bend = np.maximum(curve[1:], curve[:-1]) + (2.0 if objective == "variance" else 0.0)
    dip = np.diff(z) ** 2 / 8.0 * bend
    least = float((np.minimum(value[1:], value[:-1]) - dip).min())
    bound = least - beyond - delta * float(multipliers[used].sum())
    inner = (value[1:-1] <= value[:-2]) & (value[1:-1] <= value[2:])
    where = np.flatnonzero(inner) + 1
    where = where[value[where] < (1.0 - CLOSE) * guess]
    if symmetric:
        where = where[z[where] >= 0.0]
    where = where[np.argsort(value[where], kind="stable")[:ATOMS]]
    return Dual(max(bound, 0.0), z[where])


def _atoms(
    constraints: list[Constraint], sides: Sides, z: Array, kernel: str, basis: Basis, objective: str
) -> list[tuple[float, Array, Array]]:
    """Return cost and entries of atoms of noise at z, each half at -z if noise is symmetric."""
    entries = np.zeros((2, len(constraints), z.size))
    signs = (1.0, -1.0) if basis.symmetric else (1.0,)
    for row, constraint in enumerate(constraints):
        for side in range(2):
            for sign in signs:
                x = constraint.points[:, None] - sign * z
                value = constraint.weights @ _density(sides[row][side], x, kernel)
                entries[side, row] += value / len(signs)
    cost = np.abs(z) if objective == "absolute" else z**2
    return [(float(c), entries[0, :, k], entries[1, :, k]) for k, c in enumerate(cost)]


def _density(components: Array, x: Array, kernel: str) -> Array:
    w, mu, s = components.T
    u = (x[..., None] - mu) / s
    if kernel == "laplace":
        return np.asarray(np.exp(-np.abs(u)) @ (0.5 * w / s))
    return np.asarray(np.exp(-0.5 * u * u) @ (w / (s * math.sqrt(2.0 * math.pi))))


def _terms(
    constraint: Constraint, sides: tuple[Array, Array], multiplier: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """Return weights, places and scales of the kernels in z that a constraint adds to the cost."""
    first, second = sides
    share = multiplier * constraint.weights[:, None]
    parts = []
    for part, factor in ((first, 1.0), (second, -math.exp(epsilon))):
        places = constraint.points[:, None] - part[:, 1]
        scales = np.broadcast_to(part[:, 2], places.shape)
        parts.append(((factor * share * part[:, 0]).ravel(), places.ravel(), scales.ravel()))
    weight, place, scale = (np.concatenate(each) for each in zip(*parts, strict=True))
    return weight, place, scale


def _sums(weight: Array, place: Array, scale: Array, z: Array, kernel: str) -> tuple[Array, Array]:
    """Return the sum of all kernels at z, and a bound on its upward second derivative nearby."""
    from edp_bayes.noise.certificates.smoothing import kernel_sums

    value, step = kernel_sums(weight, place, scale, z, kernel), float(np.diff(z).max())
    if kernel == "gaussian":
        upward = np.abs(weight) * np.exp(np.minimum(step / scale, 50.0))
        upward, wider = bending_kernels(upward, scale)
        return value, kernel_sums(upward, place, wider, z, kernel)
    # off its peak the second derivative of a Laplace kernel is itself over its scale squared
    upward = np.maximum(weight, 0.0) * np.exp(np.minimum(step / scale, 50.0)) / scale**2
    return value, kernel_sums(upward, place, scale, z, kernel)
