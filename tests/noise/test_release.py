"""Release: exact distributions, one grid for every value, and the leak of the naive sampler."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.noise import (
    GaussianNoise,
    LaplaceNoise,
    LatticeNoise,
    NoiseDistribution,
    NoNoise,
    release,
)
from edp_bayes.noise import exact_sampling as exact
from edp_bayes.noise.distribution import as_distribution
from edp_bayes.noise.releasing import MissingSamplerError, grid_of

LATTICE = LatticeNoise(0.5, [0.1, 0.2, 0.3, 0.2, 0.1], left=0.04, right=0.06, decay=0.7)
NOISES = {"laplace": LaplaceNoise(1.7), "gaussian": GaussianNoise(0.8), "lattice": LATTICE}


def seeded(seed=5):
    return random.Random(seed).getrandbits


@pytest.mark.parametrize("distribution", NOISES.values(), ids=NOISES)
def test_exact_numbers_follow_the_distribution(distribution):
    bits = seeded()
    values = [float(exact.draw_noise(distribution, bits)) for _ in range(4000)]
    assert stats.kstest(values, distribution.cdf).pvalue > 1e-3


def test_building_blocks():
    bits = seeded()
    share = np.mean([exact.bernoulli_exp(Fraction(3, 2), bits) for _ in range(20_000)])
    assert share == pytest.approx(math.exp(-1.5), abs=0.01)
    chosen = [exact.choose([0.1, 0.0, 0.6, 0.3], bits) for _ in range(10_000)]
    counts = np.bincount(chosen, minlength=4) / 10_000
    np.testing.assert_allclose(counts, [0.1, 0.0, 0.6, 0.3], atol=0.02)
    assert {exact.below(3, bits) for _ in range(100)} == {0, 1, 2}
    assert all(0 < exact.uniform(bits) < 1 for _ in range(100))


def test_the_weights_are_taken_exactly():
    """0.1 + 0.2 is not 0.3 in floating point; the counts are those of the fractions."""
    weights = [0.1, 0.2, 0.7]
    unit = math.lcm(*(Fraction(w).denominator for w in weights))
    total = sum(int(Fraction(w) * unit) for w in weights)
    first = int(Fraction(0.1) * unit)
    stream = iter([first - 1, first])

    def one_number(size):
        assert size == total.bit_length()
        return next(stream)

    assert exact.choose(weights, one_number) == 0
    assert exact.choose(weights, one_number) == 1


@pytest.mark.parametrize("value", [0.0, 1e-3, 12345.678901])
def test_every_answer_lies_on_the_grid_of_the_noise(value):
    noise = as_distribution(LATTICE)
    step = 2.0 ** grid_of(noise)
    bits = seeded()
    answers = [release(value, noise, random_bits=bits) for _ in range(200)]
    assert all((answer / step).is_integer() for answer in answers)
    assert np.mean(answers) == pytest.approx(value + noise.mean, abs=0.4)


def naive(value, scale, rng):
    """The textbook sampler: a logarithm of a uniform number, in floating point."""
    sign = 1.0 if rng.random() < 0.5 else -1.0
    return value + sign * scale * math.log(1.0 - rng.random())


def test_the_naive_sampler_leaks_and_release_does_not():
    """Answers between 0.3 and 0.7 to values 0 and 1 (Mironov 2012).

    Near 1 the floating-point sum is a multiple of 2^-54; near 0 it hardly ever is. Whoever sees
    the last bits knows the value. On the grid of `release` both values give the same answers.
    """
    rng = random.Random(1)
    fine = 2.0**-54

    def share(draw):
        inside = [x for x in (draw() for _ in range(4000)) if 0.3 < x < 0.7]
        return len(inside), np.mean([not (x / fine).is_integer() for x in inside])

    count, from_zero = share(lambda: naive(0.0, 1.0, rng))
    _, from_one = share(lambda: naive(1.0, 1.0, rng))
    assert count > 300
    assert from_one == 0.0
    # a number of [0.3, 0.7] has 53 or 54 bits after the point, so look one level deeper
    small_zero = [x for x in (naive(0.0, 1.0, rng) for _ in range(4000)) if 0.01 < x < 0.1]
    small_one = [x for x in (naive(1.0, 1.0, rng) for _ in range(20_000)) if 0.01 < x < 0.1]
    assert np.mean([not (x / fine).is_integer() for x in small_zero]) > 0.7
    assert np.mean([not (x / fine).is_integer() for x in small_one]) == 0.0
    assert from_zero >= 0.0
    bits = seeded()
    distribution = LaplaceNoise(1.0)
    supports = [
        {
            release(v, distribution, grid=0.25, sampler="exact", random_bits=bits)
            for _ in range(3000)
        }
        for v in (0.0, 1.0)
    ]
    near = [{x for x in support if -1.0 <= x <= 2.0} for support in supports]
    assert near[0] == near[1] == set(np.arange(-1.0, 2.25, 0.25))


def test_released_answers_have_the_ideal_probabilities():
    """P(answer = k grid) is the mass of the ideal sum between k - 1/2 and k + 1/2."""
    bits, value, grid = seeded(), 0.3, 0.5
    noise = NoiseDistribution((NoNoise(), LaplaceNoise(0.6)), (0.3, 0.7))
    answers = [release(value, noise, grid=grid, random_bits=bits) for _ in range(6000)]
    k = np.arange(-6, 9)
    edges = grid * (np.append(k, 9) - 0.5) - value
    expected = np.diff(noise.cdf(edges))
    counts = np.array([np.sum(np.array(answers) == grid * j) for j in k])
    kept = expected > 1e-3
    observed = np.append(counts[kept], 6000 - counts[kept].sum())
    ideal = 6000 * np.append(expected[kept], 1.0 - expected[kept].sum())
    assert stats.chisquare(observed, ideal).pvalue > 1e-3


def test_the_operating_system_is_the_default_source():
    answers = {release(1.0, LATTICE) for _ in range(20)}
    assert len(answers) > 10


def test_no_noise_gives_the_value_itself():
    assert release(0.1, NoNoise()) == 0.1


def test_bad_requests_are_refused():
    with pytest.raises(InvalidInputError, match="value must be finite"):
        release(math.nan, LATTICE)
    with pytest.raises(InvalidInputError, match="grid must be greater than 0"):
        release(1.0, LATTICE, grid=0.0)
    with pytest.raises(InvalidInputError, match="sampler must be one of"):
        release(1.0, LATTICE, sampler="numpy")
    with pytest.raises(InvalidInputError, match="Laplace and Gaussian noise only"):
        release(1.0, LATTICE, sampler="opendp")
    with pytest.raises(InputTypeError, match="noise must be"):
        release(1.0, 2.0)


def test_a_missing_sampler_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingSamplerError, match=r"edp-bayes\[release\]"):
        release(1.0, LaplaceNoise(2.0))


@pytest.mark.full
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_opendp_draws_laplace_and_gaussian_noise(name):
    distribution = NOISES[name]
    pytest.importorskip("opendp", reason="OpenDP is not installed: extra edp-bayes[release]")
    answers = np.array([release(3.0, distribution) for _ in range(2000)])
    step = 2.0 ** grid_of(as_distribution(distribution))
    assert all((x / step).is_integer() for x in answers)
    assert stats.kstest(answers - 3.0, distribution.cdf).pvalue > 1e-4


def test_opendp_adds_noise_before_a_coarse_grid_rounds():
    """3.9 and 4.1 lie on both sides of the middle of a cell: rounded first they would tell."""
    pytest.importorskip("opendp", reason="OpenDP is not installed: extra edp-bayes[release]")
    for value in (3.9, 4.1):
        share = np.mean([release(value, LaplaceNoise(1.0), grid=8.0) == 0.0 for _ in range(400)])
        assert 0.3 < share < 0.7  # five standard errors and more around 0.55 and 0.45
