"""Integrals of Gaussian mixtures from tails: against quadrature in cells and exact arithmetic."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from exact_reference import hockey_stick as exact

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.divergence import hockey_stick
from edp_bayes.divergence.any_pair.components import GAUSSIAN, NORMAL_LAPLACE, rows
from edp_bayes.divergence.any_pair.curves import BOTH, FORWARD, by_cells
from edp_bayes.divergence.by_tails.curves import from_tails
from edp_bayes.utils.compiled import compiled, mills_ratio, upper_tail

FLOOR = 1e-12


@compiled
def _tail(u: float) -> float:
    return upper_tail(u)


@compiled
def _mills(u: float) -> float:
    return mills_ratio(u)


def test_upper_tail_agrees_with_exact_arithmetic():
    for u in np.concatenate([np.linspace(0.0, 2.0, 41), np.linspace(2.0, 37.5, 101)]):
        with mp.workdps(30):
            value = float(mp.erfc(mp.mpf(float(u)) / mp.sqrt(2)) / 2)
        # The argument u^2 / 2 of an exponential is itself rounded.
        assert _tail(u) == pytest.approx(value, rel=4e-16 * (2.0 + u * u / 2), abs=0.0)


def test_mills_ratio_agrees_with_exact_arithmetic():
    for u in np.concatenate([np.linspace(0.0, 40.0, 201), np.geomspace(40.0, 1e6, 20)]):
        with mp.workdps(30):
            z = mp.mpf(float(u))
            # The continued fraction of Laplace where the product would be zero times infinity.
            value = mp.exp(z * z / 2) * mp.erfc(z / mp.sqrt(2)) / 2
            if u > 40.0:
                fraction = z
                for k in range(60, 0, -1):
                    fraction = z + k / fraction
                value = 1 / (fraction * mp.sqrt(2 * mp.pi))
            assert _mills(u) == pytest.approx(float(value), rel=1e-15, abs=0.0)


def pairs(rng, size, components, shift, stretch):
    """Return pairs of mixtures of which q is p moved and stretched, narrow components included."""
    w = rng.dirichlet(np.full(components, 0.5), size)
    mu = rng.normal(0.0, 3.0, (size, components))
    sd = np.exp(rng.normal(-0.5, 1.2, (size, components)))
    moved = rng.exponential(shift, (size, 1)) * (rng.random((size, components)) < 0.7)
    change = np.exp(rng.normal(0.0, stretch, (size, components)))
    return rows(GAUSSIAN, w, mu, sd), rows(GAUSSIAN, w, mu - moved, sd * change)


def both_ways(p, q, epsilon, *, both, floor):
    """Return the curves from tails, those from cells, and how many epsilons tails do for."""
    grid = np.tile(epsilon, (len(p), 1))
    found, known = np.zeros((2, len(p), 1, epsilon.size))
    start = np.zeros((len(p), 1), dtype=np.int64)
    from_tails(p, q[:, None], grid, found, start, both=both, floor=floor)
    by_cells(
        p, q[:, None], grid, BOTH if both else FORWARD, floor, known, np.zeros_like(start)
    )  # fmt: skip
    return found[:, 0], known[:, 0], start[:, 0]


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("components", [1, 4, 17])
@pytest.mark.parametrize(("shift", "stretch"), [(0.01, 0.0), (1.0, 0.1), (20.0, 1.0)])
def test_curves_are_those_of_quadrature_in_cells(both, components, shift, stretch):
    rng = np.random.default_rng([both, components, int(100 * shift)])
    p, q = pairs(rng, 60, components, shift, stretch)
    epsilon = np.linspace(0.0, 2.0, 15)
    found, known, start = both_ways(p, q, epsilon, both=both, floor=FLOOR)
    assert (start == epsilon.size).all()
    assert known.max() > 1e-4
    # A result at the floor may be zero in one of them.
    np.testing.assert_allclose(found, known, rtol=0.0, atol=2e-12)
    above = known > 2.0 * FLOOR
    np.testing.assert_allclose(found[above], known[above], rtol=0.0, atol=1e-13)


@pytest.mark.parametrize(
    ("shift", "stretch", "noise"),
    [
        pytest.param(0.01, 0.0, 0.001, marks=pytest.mark.full),
        (0.01, 0.0, 0.2),
        (0.01, 0.0, 3.0),
        (1.0, 0.1, 0.001),
        (1.0, 0.1, 0.2),
        (1.0, 0.1, 3.0),
        pytest.param(20.0, 1.0, 0.001, marks=pytest.mark.full),
        (20.0, 1.0, 0.2),
        (20.0, 1.0, 3.0),
    ],
)
def test_curves_under_laplace_noise_are_those_of_quadrature_in_cells(shift, stretch, noise):
    rng = np.random.default_rng([int(1000 * noise), int(100 * shift)])
    p, q = pairs(rng, 5, 4, shift, stretch)
    p[..., 3:], q[..., 3:] = (noise, NORMAL_LAPLACE), (noise, NORMAL_LAPLACE)
    # One person of the five is absent from one component, and weighs more in another.
    q[0, 1, :3], q[0, 2, 0] = p[0, 1, :3], 1.1 * q[0, 2, 0]
    epsilon = np.linspace(0.0, 2.0, 9)
    found, known, start = both_ways(p, q, epsilon, both=True, floor=FLOOR)
    assert (start == epsilon.size).all()
    assert known.max() > 1e-4
    np.testing.assert_allclose(found, known, rtol=0.0, atol=2e-12)


def test_presence_in_common_cancels_exactly():
    rng = np.random.default_rng(3)
    p, q = pairs(rng, 40, 6, 10.0, 0.5)
    rare = 1e-4
    together = p.copy(), p.copy()
    for side, other in zip(together, (p, q), strict=True):
        side[..., 0] *= 1.0 - rare
        other[..., 0] *= rare
    epsilon = np.linspace(0.0, 1e-3, 9)
    found, known, start = both_ways(
        np.concatenate([together[0], p], axis=1), np.concatenate([together[1], q], axis=1),
        epsilon, both=True, floor=FLOOR,
    )  # fmt: skip
    assert (start == epsilon.size).all()
    assert known.max() > 1e-5
    np.testing.assert_allclose(found, known, rtol=0.0, atol=1e-15)


def test_where_much_cancels_the_rest_is_left_to_quadrature():
    # p exceeds q by a little, in a narrow interval within the bulk of both.
    p = rows(GAUSSIAN, np.array([[1.0 - 1e-7, 1e-7]]), np.array([[0.0, 0.3]]),
             np.array([[1.0, 1e-3]]))  # fmt: skip
    q = rows(GAUSSIAN, np.array([[1.0]]), np.array([[0.0]]), np.array([[1.0]]))
    epsilon = np.array([1e-5, 3e-5])
    _, known, start = both_ways(p, q, epsilon, both=False, floor=0.0)
    assert (start < epsilon.size).all()
    values = hockey_stick(
        Mixture([1.0 - 1e-7, 1e-7], [0.0, 0.3], [1.0, 1e-3]), Mixture(1.0, 0.0, 1.0),
        epsilon=epsilon,
    )  # fmt: skip
    assert (values == known[0]).all()
    assert (values > 0.0).all()


@pytest.mark.parametrize("shift", [1e-8, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("stretch", [1.0, 1.5])
def test_tails_agree_with_exact_arithmetic(shift, stretch):
    rng = np.random.default_rng(5)
    w, mu = rng.dirichlet(np.ones(4)), rng.normal(0.0, 2.0, 4)
    sd = np.array([0.05, 0.4, 1.0, 2.0])
    p, q = Mixture(w, mu, sd), Mixture(w, mu - shift, sd * stretch)
    size = min(1.0, hockey_stick(p, q, epsilon=0.0))
    for epsilon in (0.0, 0.3 * size, 2.0 * size):
        value, _ = exact(p, q, epsilon)
        found, _, start = both_ways(
            *(rows(GAUSSIAN, m.weights, m.locations, m.scales)[None] for m in (p, q)),
            np.array([epsilon]), both=False, floor=0.0,
        )  # fmt: skip
        if start[0] == 1:
            assert found[0, 0] == pytest.approx(value, rel=2e-12, abs=0.0)
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(value, rel=1e-9, abs=0.0)
        assert math.isfinite(value)
