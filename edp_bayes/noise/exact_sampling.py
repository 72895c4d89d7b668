"""Random numbers as exact fractions, from a source of random bits alone.

No floating-point function is called, so no rounding of a logarithm can betray the secret value.
Uniform numbers have 128 bits; that is the one approximation, and any event under the distribution
drawn here differs in probability from the ideal distribution by less than 2^-100.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise, Noise, NoNoise

__all__ = ["bernoulli_exp", "choose", "draw_noise", "exponential", "normal", "uniform"]

Bits = Callable[[int], int]

PRECISION = 128


def uniform(bits: Bits) -> Fraction:
    """Return a uniform number in (0, 1): the middle of one of 2^128 cells."""
    return Fraction(2 * bits(PRECISION) + 1, 2 ** (PRECISION + 1))


def below(n: int, bits: Bits) -> int:
    """Return a uniform integer from 0 to n - 1, by rejection."""
    size = n.bit_length()
    while True:
        value = bits(size)
        if value < n:
            return value


def bernoulli(p: Fraction, bits: Bits) -> bool:
    """Return True with probability p exactly."""
    return below(p.denominator, bits) < p.numerator


def bernoulli_exp(rate: Fraction, bits: Bits) -> bool:
    """Return True with probability exp(-rate), rate >= 0.

    Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy,
    Algorithm 1, with the rate split into whole parts.
    """
    while rate > 1:
        if not bernoulli_exp(Fraction(1), bits):
            return False
        rate -= 1
    k = 1
    while bernoulli(rate / k, bits):
        k += 1
    return k % 2 == 1


def exponential(bits: Bits) -> Fraction:
    """Return an exponential number of mean one: whole part geometric, the rest by rejection."""
    whole = 0
    while bernoulli_exp(Fraction(1), bits):
        whole += 1
    while True:
        part = uniform(bits)
        if bernoulli_exp(part, bits):
            return whole + part


def normal(bits: Bits) -> Fraction:
    """Return a standard normal number, by rejection from an exponential one (von Neumann)."""
    while True:
        size = exponential(bits)
        if bernoulli_exp((size - 1) ** 2 / 2, bits):
            return -size if bits(1) else size


def choose(weights: Sequence[float], bits: Bits) -> int:
    """Return an index with probability in proportion to the weights, which are taken exactly."""
    shares = [Fraction(w) for w in weights]
    unit = math.lcm(*(share.denominator for share in shares))
    counts = [int(share * unit) for share in shares]
    value = below(sum(counts), bits)
    for index, count in enumerate(counts):
        value -= count
        if value < 0:
            return index
    raise AssertionError("a number below the sum lies within it")


def draw_noise(distribution: Noise, bits: Bits) -> Fraction:
    """Return one number from a distribution of noise."""
    if isinstance(distribution, NoNoise):
        return Fraction(0)
    if isinstance(distribution, LaplaceNoise):
        size = Fraction(distribution.scale) * exponential(bits)
        return -size if bits(1) else size
    if isinstance(distribution, GaussianNoise):
        return Fraction(distribution.scale) * normal(bits)
    assert isinstance(distribution, LatticeNoise)
    k = (
        choose([distribution.left, *distribution.weights.tolist(), distribution.right], bits)
        - distribution.half
        - 1
    )
    if abs(k) > distribution.half:
        ratio, step = Fraction(distribution.decay), 1 if k > 0 else -1
        while bernoulli(ratio, bits):
            k += step
    return Fraction(distribution.spacing) * (k + uniform(bits) + uniform(bits) - 1)
