"""The linear program: many constraints are given to the solver in parts, with the same result."""

import numpy as np
import pytest

from edp_bayes.noise.optimal import program as program_module
from edp_bayes.noise.optimal.program import Basis, Constraint, Program


def random_program(rng, rows):
    basis = Basis(0.5, 6, 0.6, symmetric=True)
    program = Program(basis, "absolute")
    k = np.arange(basis.size)
    for row in range(rows):
        # noise has to be spread: with the individual, zero is likelier than without
        move = rng.uniform(0.2, 1.5)
        first = np.exp(-np.abs(k - rng.uniform(0.0, 4.0)) / 3.0)
        second = first * np.exp(-move * np.exp(-k / rng.uniform(1.0, 4.0)))
        constraint = Constraint(row % 5, row, 1, np.array([float(row)]), np.ones(1), first, second)
        program.add(constraint)
    return program


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_a_program_solved_in_parts_has_the_same_solution(monkeypatch, seed, delta):
    program = random_program(np.random.default_rng(seed), 200)
    active = np.array([True, True, False, True, True])
    current = np.full(program.basis.size, 1.0 / program.basis.size)
    parts, known = [], Program._found

    def found(self, cost, table, right):
        parts.append(len(right))
        return known(self, cost, table, right)

    monkeypatch.setattr(Program, "_found", found)
    solution = program.solve(0.3, delta, active, current)
    assert parts[0] < 160
    monkeypatch.setattr(program_module, "AT_ONCE", 1000)
    whole = program.solve(0.3, delta, active, current)
    assert parts[-1] == 160
    assert 0.0 < whole.value == pytest.approx(solution.value, rel=1e-6)
    for constraint, multiplier in zip(program.constraints, solution.multipliers, strict=True):
        assert multiplier >= -1e-12
        if not active[constraint.draw]:
            assert multiplier == 0.0
            continue
        over = (constraint.first - np.exp(0.3) * constraint.second) @ solution.weights - delta
        assert over <= 1e-7 * max(constraint.first.max(), 1.0)
