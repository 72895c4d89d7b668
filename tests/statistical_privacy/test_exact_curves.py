"""delta_plus, delta_minus and epsilon_at without noise, against the definition in many digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_bayes import statistical_privacy as sp
from edp_bayes.statistical_privacy.counts import arithmetic
from edp_bayes.statistical_privacy.counts.binomial import log_mass
from edp_bayes.statistical_privacy.counts.exact_curves import probabilities
from tests.statistical_privacy import exact_reference as exact

TOLERANCE = 1e-10
LEAST = 1e-300


def relative_error(found, truth):
    if truth < LEAST:
        return 0.0 if found <= 1.001 * LEAST else np.inf
    return abs(float(found / truth - 1))


def test_the_known_point():
    assert sp.delta_minus(100, 0.1, epsilon=0.5) == pytest.approx(0.02256, abs=5e-6)
    assert sp.delta(100, 0.1, epsilon=0.5) == sp.delta_minus(100, 0.1, epsilon=0.5)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    n=st.integers(2, 120),
    share=st.floats(0.0, 1.0),
    prob=st.floats(1e-6, 1 - 1e-6),
    epsilon=st.floats(0.0, 40.0),
)
def test_small_databases_agree_with_the_definition(n, share, prob, epsilon):
    drawn = max(1, round(share * n))
    with mp.workdps(60):
        plus, minus = exact.distributions(n, drawn, prob)
        up = exact.hockey_stick(plus, minus, epsilon=epsilon)
        down = exact.hockey_stick(minus, plus, epsilon=epsilon)
        sampling = sp.Subsampling(size=drawn)
        assert (
            relative_error(sp.delta_plus(n, prob, epsilon=epsilon, mechanism=sampling), up)
            < TOLERANCE
        )
        assert (
            relative_error(sp.delta_minus(n, prob, epsilon=epsilon, mechanism=sampling), down)
            < TOLERANCE
        )


def far_cases():
    rng = np.random.default_rng(5)
    for n in (10**4, 10**6, 10**7, 10**9):
        for depth in (0.0, 3.0, 12.0, 28.0):
            prob = float(rng.choice([0.5, 0.1, 1e-3, 0.97]))
            drawn = n if rng.random() < 0.5 else int(n * rng.uniform(0.1, 0.9))
            if n == 10**9 and depth < 20.0:
                prob = 1e-4  # the reference sums term by term
            spread = math.sqrt(drawn * prob * (1 - prob))
            yield n, drawn, prob, depth * spread / (n * prob * (1 - prob)), bool(rng.integers(2))


@pytest.mark.parametrize(("n", "drawn", "prob", "epsilon", "mirrored"), list(far_cases()))
def test_huge_databases_agree_with_the_definition(n, drawn, prob, epsilon, mirrored):
    with mp.workdps(40):
        truth = exact.far_delta(epsilon, n, drawn, prob, mirrored=mirrored)
        curve = sp.delta_minus if mirrored else sp.delta_plus
        found = curve(n, prob, epsilon=epsilon, mechanism=sp.Subsampling(size=drawn))
        assert truth > LEAST
        assert relative_error(found, truth) < TOLERANCE


@pytest.mark.parametrize("epsilon", [20.0, 100.0, 600.0, 2000.0, np.inf])
def test_a_large_epsilon_leaves_the_answer_that_gives_everybody_away(epsilon):
    with mp.workdps(1000):
        plus, minus = exact.distributions(30, 30, 0.9)
        truth = exact.hockey_stick(plus, minus, epsilon=min(epsilon, 2000.0))
        assert relative_error(sp.delta_plus(30, 0.9, epsilon=epsilon), truth) < TOLERANCE
    assert sp.delta_plus(30, 0.9, epsilon=np.inf) == pytest.approx(0.9**29, rel=1e-13)
    assert sp.delta_plus(30, 0.9, epsilon=np.inf, mechanism=sp.Subsampling(size=29)) == 0.0


def test_a_strike_that_is_nearly_a_whole_number_loses_no_digit():
    # with prob = 1/2 and n = 3, exp(epsilon) = 2 puts the cut at the count 2
    with mp.workdps(80):
        for epsilon in (math.log(2.0), math.nextafter(math.log(2.0), 1.0)):
            for prob in (0.5, 1e-3, 1e-9):
                plus, minus = exact.distributions(3, 3, prob)
                up = exact.hockey_stick(plus, minus, epsilon=epsilon)
                assert relative_error(sp.delta_plus(3, prob, epsilon=epsilon), up) < TOLERANCE


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    n=st.integers(2, 10**9),
    prob=st.floats(1e-6, 1 - 1e-6),
    epsilon=st.floats(0.0, 3.0),
    step=st.floats(0.0, 1.0),
)
def test_curves_are_ordered(n, prob, epsilon, step):
    here = sp.delta(n, prob, epsilon=epsilon)
    assert 0.0 <= sp.delta(n, prob, epsilon=epsilon + step) <= here * (1 + 1e-12) <= 1 + 1e-12
    # a sample of the sample tells no more
    large, small = sp.Subsampling(size=max(1, n // 2)), sp.Subsampling(size=max(1, n // 3))
    middle = sp.delta(n, prob, epsilon=epsilon, mechanism=large)
    assert sp.delta(n, prob, epsilon=epsilon, mechanism=small) <= middle * (1 + 1e-12)
    assert middle <= here * (1 + 1e-12)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(n=st.integers(2, 10**9), exponent=st.integers(1, 40), epsilon=st.floats(0.0, 2.0))
def test_the_complementary_property_exchanges_the_directions(n, exponent, epsilon):
    prob = 2.0**-exponent  # so that 1 - prob is a double too
    assert sp.delta_minus(n, prob, epsilon=epsilon) == pytest.approx(
        sp.delta_plus(n, 1.0 - prob, epsilon=epsilon), rel=1e-12, abs=0.0
    )


def test_everything_broadcasts():
    epsilon = np.array([0.0, 0.1, 0.2])
    n = np.array([[10], [1000]])
    found = sp.delta(n, 0.3, epsilon=epsilon)
    assert found.shape == (2, 3)
    assert found[1, 2] == sp.delta(1000, 0.3, epsilon=0.2)
    assert sp.delta(n, 0.3, epsilon=epsilon, known=np.array([[1], [5]])).shape == (2, 3)
    assert sp.delta(
        n, np.array([0.2, 0.3]), epsilon=0.1, mechanism=sp.Subsampling(rate=0.5)
    ).shape == (2, 2)
    assert sp.delta(10, 0.3, epsilon=np.empty(0)).shape == (0,)
    assert isinstance(sp.delta(10, 0.3, epsilon=0.1), float)


def test_known_entries_only_shrink_the_database():
    epsilon = np.linspace(0.0, 1.0, 7)
    np.testing.assert_array_equal(
        sp.delta(100, 0.2, epsilon=epsilon, known=40), sp.delta(60, 0.2, epsilon=epsilon)
    )
    assert sp.delta(100, 0.2, epsilon=3.0, known=99) == 1.0


@pytest.mark.parametrize("x", [0.0, 1e-12, 0.3, 0.5, 1.0, 17.25, 300.7, 690.0])
def test_exponential_in_two_doubles(x):
    high, low = arithmetic.decayed(x)
    with mp.workdps(50):
        truth = mp.exp(-mp.mpf(x))
        assert abs((mp.mpf(high) + mp.mpf(low)) / truth - 1) < 1e-23


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("n", "prob"), [(50, 0.3), (10**6, 1e-4), (10**9, 0.37)])
def test_binomial_mass_to_the_last_digits(n, prob, mirrored):
    p, q = probabilities(prob, mirrored)
    with mp.workdps(50):
        exact_p = 1 - mp.mpf(prob) if mirrored else mp.mpf(prob)
        mean, spread = n * exact_p, mp.sqrt(n * exact_p * (1 - exact_p))
        for z in (-30, -3, 0, 5, 33):
            j = min(max(int(mean + z * spread), 0), n)
            truth = mp.log(mp.binomial(n, j)) if n < 100 else (
                mp.loggamma(n + 1) - mp.loggamma(j + 1) - mp.loggamma(n - j + 1)
            )  # fmt: skip
            truth += j * mp.log(exact_p) + (n - j) * mp.log(1 - exact_p)
            assert abs(float(log_mass(float(j), float(n), p, q) - truth)) < 1e-12


def test_epsilon_at_inverts_delta():
    delta = np.array([1e-2, 1e-6, 1e-40])
    for mechanism in (None, sp.Subsampling(rate=0.3), sp.GaussianNoise(0.002)):
        epsilon = sp.epsilon_at(delta, 1000, 0.2, mechanism=mechanism)
        np.testing.assert_allclose(
            sp.delta(1000, 0.2, epsilon=epsilon, mechanism=mechanism), delta, rtol=1e-9
        )
        assert (sp.delta(1000, 0.2, epsilon=epsilon, mechanism=mechanism) <= delta).all()


def test_epsilon_at_its_ends():
    assert sp.epsilon_at(0.9, 1000, 0.2) == 0.0
    assert sp.epsilon_at(0.0, 1000, 0.2) == np.inf
    assert sp.epsilon_at(1e-30, 20, 0.2) == np.inf  # an answer of 0 has probability 0.8^19
    # a sample bounds the loss: P_plus(m) / P_minus(m) = 1 + rate / ((1 - rate) prob)
    bound = math.log(1 + 0.25 / (0.75 * 0.2))
    assert sp.epsilon_at(0.0, 20, 0.2, mechanism=sp.Subsampling(size=5)) == pytest.approx(
        bound, rel=1e-12
    )
    assert sp.epsilon_at(0.0, 20, 0.2, mechanism=sp.LaplaceNoise(0.1)) == pytest.approx(
        0.5, rel=1e-12
    )
    both = (sp.Subsampling(size=5), sp.GaussianNoise(0.1))
    assert sp.epsilon_at(0.0, 20, 0.2, mechanism=both) == pytest.approx(bound, rel=1e-12)
    mixed = sp.epsilon_at([0.0, 1e-3], 20, 0.2, mechanism=sp.GaussianNoise(0.1))
    assert mixed[0] == np.inf
    assert sp.delta(20, 0.2, epsilon=mixed[1], mechanism=sp.GaussianNoise(0.1)) == pytest.approx(
        1e-3, rel=1e-9
    )
    assert sp.epsilon_at([0.5, 0.0], [[20], [30]], 0.2).shape == (2, 2)
