"""The stated truths against quadrature, brute force and published results."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from edp_bayes import mechanisms
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mechanisms import truths

GRID = [0.0, 0.2, 0.5, 1.0, 2.0]


def brute_delta(p, q, epsilon):
    """Both hockey-stick sums over dictionaries of masses."""
    keys = set(p) | set(q)
    return max(
        sum(max(a.get(k, 0.0) - math.exp(epsilon) * b.get(k, 0.0), 0.0) for k in keys)
        for a, b in ((p, q), (q, p))
    )


def brute_epsilon(p, q, tau):
    ratios = [0.0]
    for k in set(p) | set(q):
        a, b = p.get(k, 0.0), q.get(k, 0.0)
        if max(a, b) >= tau and max(a, b) > 0.0:
            ratios.append(math.inf if min(a, b) == 0.0 else abs(math.log(a / b)))
    return max(ratios)


# One number plus noise


def normal_pair(scale):
    unit = -math.log(scale * math.sqrt(2 * math.pi))
    return tuple(lambda t, m=m: unit - 0.5 * ((t - m) / scale) ** 2 for m in (0.0, 1.0))


def laplace_pair(scale):
    return tuple(lambda t, m=m: -math.log(2 * scale) - abs(t - m) / scale for m in (0.0, 1.0))


def restricted_pair(scale):
    """On its support, the half line, which is all that the tests look at."""
    cuts = {mode: float(stats.laplace.logsf(0, mode, scale)) for mode in (1.0, 2.0)}
    return tuple(
        lambda t, m=mode, c=cut: -math.log(2 * scale) - abs(t - m) / scale - c
        for mode, cut in cuts.items()
    )


def quad_hockey_stick(a, b, epsilon, knots):
    """One direction, by scipy between knots."""

    def excess(t):
        return max(math.exp(a(t)) - math.exp(epsilon + b(t)), 0.0)

    parts = [integrate.quad(excess, *ends, limit=400)[0] for ends in itertools.pairwise(knots)]
    return sum(parts)


ADDITIVE = [
    (mechanisms.Gaussian, normal_pair, (-40.0, 0.0, 1.0, 41.0)),
    (mechanisms.Laplace, laplace_pair, (-60.0, 0.0, 1.0, 61.0)),
    (mechanisms.RestrictedLaplace, restricted_pair, (0.0, 1.0, 2.0, 62.0)),
]


@pytest.mark.parametrize("scale", [0.6, 1.0])
@pytest.mark.parametrize(
    ("make", "pair", "knots"), ADDITIVE, ids=["Gaussian", "Laplace", "restricted"]
)
def test_closed_forms_agree_with_quadrature(make, pair, knots, scale):
    mechanism = make(scale)
    p, q = pair(scale)
    for epsilon in GRID:
        integrals = [quad_hockey_stick(a, b, epsilon, knots) for a, b in ((p, q), (q, p))]
        assert mechanism.delta(epsilon=epsilon) == pytest.approx(max(integrals), abs=2e-8)
    fine = np.unique(np.concatenate([np.linspace(max(-6, knots[0]), 8, 400_001), knots]))
    density = np.maximum(p(fine), q(fine))
    ratio = np.abs(p(fine) - q(fine))
    for tau in (0.01, 0.1, 0.5):
        inside = density >= density.max() + math.log(tau)
        assert mechanism.local_epsilon(tau) == pytest.approx(ratio[inside].max(), abs=2e-4)


def test_gaussian_delta_against_mpmath():
    for scale, epsilon in ((1.0, 1.0), (0.25, 8.0), (5.0, 0.1)):
        s = mpmath.mpf(1) / scale
        with mpmath.workdps(40):
            exact = mpmath.ncdf(s / 2 - epsilon / s) - mpmath.exp(epsilon) * mpmath.ncdf(
                -s / 2 - epsilon / s
            )
        assert mechanisms.Gaussian(scale).delta(epsilon=epsilon) == pytest.approx(
            float(exact), rel=1e-9
        )


@pytest.mark.parametrize("scale", [1e2, 1e8, 1e12, 1e17])
def test_gaussian_delta_of_wide_noise_is_an_error_function(scale):
    expected = math.erf(1 / scale / math.sqrt(8))
    assert mechanisms.Gaussian(scale).delta(epsilon=0.0) == pytest.approx(
        expected, rel=1e-14, abs=0
    )


def test_restricted_laplace_epsilon_is_the_published_one():
    for rate in (0.5, 1.0, 2.0):
        published = rate + math.log((2 - math.exp(-2 * rate)) / (2 - math.exp(-rate)))
        mechanism = mechanisms.RestrictedLaplace(1 / rate)
        assert mechanism.epsilon() == pytest.approx(published, rel=1e-12)
        for seed, mode in enumerate(mechanism.pair):
            free = stats.laplace(mode, 1 / rate)
            sample = mechanism(mode, 100_000, seed)
            # The distribution function sends the sample to uniform values.
            assert stats.kstest(1 - free.sf(sample) / free.sf(0), "uniform").pvalue > 1e-6


@pytest.mark.parametrize("name", ["Laplace", "Gaussian"])
def test_additive_samplers(name):
    distribution = {"Laplace": stats.laplace, "Gaussian": stats.norm}[name]
    sample = getattr(mechanisms, name)(2.0)(3.0, 100_000, 4)
    assert stats.kstest(sample, distribution(3.0, 2.0).cdf).pvalue > 1e-6


# Counts and local mechanisms


@pytest.mark.parametrize("pair", [(0, 1), (3, 1), (2, 6)], ids=str)
def test_geometric_by_brute_force(pair):
    mechanism = mechanisms.Geometric(0.4, pair)
    a = math.exp(-0.4)
    p, q = (
        {k: (1 - a) / (1 + a) * a ** abs(k - x) for k in range(-300, 301)} for x in mechanism.pair
    )
    for epsilon in GRID:
        assert mechanism.delta(epsilon=epsilon) == pytest.approx(
            brute_delta(p, q, epsilon), abs=1e-12
        )
    for tau in (0.01, 0.1, 0.19, 0.2):
        assert mechanism.local_epsilon(tau) == pytest.approx(brute_epsilon(p, q, tau), abs=1e-12)


def test_geometric_sampler():
    sample = mechanisms.Geometric(0.4)(3, 200_000, 1)
    a = math.exp(-0.4)
    for k in range(-2, 9):
        mass = (1 - a) / (1 + a) * a ** abs(k - 3)
        assert abs(np.mean(sample == k) - mass) < 5 * math.sqrt(mass / sample.size)


def test_truncated_geometric_is_the_clamped_geometric():
    a = math.exp(-0.4)
    distribution = mechanisms.TruncatedGeometric(0.4, 5).distribution(1)
    clamped = dict.fromkeys(range(6), 0.0)
    for k in range(-300, 301):
        clamped[min(max(k, 0), 5)] += (1 - a) / (1 + a) * a ** abs(k - 1)
    assert distribution == pytest.approx(clamped, abs=1e-12)


def bloom_distribution(mechanism, value, rates):
    """The probability of every report, bit by bit."""
    bits = mechanism._bloom(value)
    return {
        report: math.prod(
            rates[b] if r else 1 - rates[b] for r, b in zip(report, bits, strict=True)
        )
        for report in itertools.product((0, 1), repeat=mechanism.bits)
    }


RAPPORS = {
    "one bit": mechanisms.Rappor(),
    "shared bits": mechanisms.Rappor(bits=6, hashes=4),
    "one-time": mechanisms.OneTimeRappor(bits=5, hashes=2),
}


@pytest.mark.parametrize("name", RAPPORS)
def test_rappor_by_enumeration_of_all_reports(name):
    mechanism = RAPPORS[name]
    f = mechanism.permanent
    if name == "one-time":
        rates = (f / 2, 1 - f / 2)
    else:
        lie, truth = mechanism.report_unset, mechanism.report_set
        rates = (
            f / 2 * truth + (1 - f / 2) * lie,
            (1 - f / 2) * truth + f / 2 * lie,
        )
    p, q = (bloom_distribution(mechanism, value, rates) for value in mechanism.pair)
    assert p != q
    for epsilon in GRID:
        assert mechanism.delta(epsilon=epsilon) == pytest.approx(
            brute_delta(p, q, epsilon), abs=1e-12
        )
    assert mechanism.epsilon() == pytest.approx(brute_epsilon(p, q, 0.0), abs=1e-10)
    for tau in (0.005, 0.01, 0.05, 0.1):
        assert mechanism.local_epsilon(tau) == pytest.approx(brute_epsilon(p, q, tau), abs=1e-10)
    for seed, (value, distribution) in enumerate(zip(mechanism.pair, (p, q), strict=True)):
        size = 100_000
        seen, counts = np.unique(mechanism(value, size, seed), axis=0, return_counts=True)
        found = dict(zip(map(tuple, seen.tolist()), counts.tolist(), strict=True))
        statistic = sum(
            (found.get(k, 0) - size * m) ** 2 / (size * m) for k, m in distribution.items()
        )
        assert stats.chi2.sf(statistic, len(distribution) - 1) > 1e-6


def test_rappor_epsilon_for_disjoint_bits_is_the_published_one():
    bloom = mechanisms.OneTimeRappor(bits=8, hashes=2)._bloom
    value = next(v for v in range(100) if not (bloom(v) * bloom("yes")).any())
    mechanism = mechanisms.OneTimeRappor(bits=8, hashes=2, pair=("yes", value))
    f = mechanism.permanent
    assert mechanism.epsilon() == pytest.approx(2 * 2 * math.log((1 - f / 2) / (f / 2)))


@pytest.mark.parametrize("one_time", [True, False])
def test_large_rappor_against_the_number_of_differing_bits(one_time):
    """The log ratio is a multiple of a difference of two binomial counts."""
    f, make = 0.9, mechanisms.OneTimeRappor if one_time else mechanisms.Rappor
    large = make(bits=4096, hashes=1500, permanent=f)
    first, second = (large._bloom(value) for value in large.pair)
    count = int(np.sum(first > second))
    assert count > 500
    lie, truth = (0.0, 1.0) if one_time else (0.25, 0.75)
    unset, set_ = (f / 2 * (lie + truth) + (1 - f) * rate for rate in (lie, truth))
    step = math.log(set_ / unset) + math.log((1 - unset) / (1 - set_))
    assert large.epsilon() == pytest.approx(count * step, rel=1e-12)
    ones = np.arange(count + 1)
    many, few = (stats.binom.pmf(ones, count, rate) for rate in (set_, unset))
    forward, backward = np.convolve(many, few[::-1]), np.convolve(few, many[::-1])
    for epsilon in (0.0, 1.0, 5.0):
        expected = np.maximum(forward - math.exp(epsilon) * backward, 0.0).sum()
        assert large.delta(epsilon=epsilon) == pytest.approx(expected, abs=1e-10)


# Masses that underflow

TINY = {
    "end of the counts": (mechanisms.TruncatedGeometric(1.0, 1000, (998, 999)), 1.0),
    "more counts": (mechanisms.TruncatedGeometric(0.4, 5000, (4000, 4001)), 0.4),
    "subnormal counts": (mechanisms.TruncatedGeometric(0.1, 7500, (7400, 7401)), 0.1),
    "subnormal candidate": (
        mechanisms.ExponentialMechanism(pair=((0.0, 1490.0), (1.0, 1490.0))),
        0.5,
    ),
    "candidate": (mechanisms.ExponentialMechanism(pair=((0.0, 1492.0), (1.0, 1491.0))), 1.0),
    "response": (mechanisms.RandomizedResponse(800.0), 800.0),
    "exponential maximum": (
        mechanisms.NoisyMaxIndex(noise="exponential", pair=((0.0, 2000.0), (1.0, 2000.0))),
        0.5,
    ),
    # (1 + u / 2) exp(-u) / 2 for a gap of u scales between two Laplace variables
    "Laplace maximum": (
        mechanisms.NoisyMaxIndex(pair=((0.0, 2000.0), (1.0, 2000.0))),
        0.5 + math.log((2 + 999.5) / (2 + 1000.0)),
    ),
    "sparse vector": (
        mechanisms.SparseVector(6, pair=((2000.0,), (1999.0,))),
        0.5 + math.log((2 + 999.5) / (2 + 1000.0)),
    ),
}


@pytest.mark.parametrize(("mechanism", "epsilon"), TINY.values(), ids=TINY)
def test_epsilon_of_outcomes_too_rare_for_a_float(mechanism, epsilon):
    assert mechanism.epsilon() == pytest.approx(epsilon, rel=1e-9)
    assert mechanism.local_epsilon(0.999) <= epsilon


def test_epsilon_of_nearly_truthful_rappor():
    mechanism = mechanisms.OneTimeRappor(bits=256, hashes=64, permanent=1e-6)
    first, second = (mechanism._bloom(value) for value in mechanism.pair)
    expected = 2 * int(np.sum(first > second)) * math.log((1 - 0.5e-6) / 0.5e-6)
    assert mechanism.epsilon() == pytest.approx(expected, rel=1e-13)
    assert mechanism.local_epsilon(0.5) == pytest.approx(expected, rel=1e-12)


# Noisy max


def permute_and_flip(answers, rate):
    """Exponential noise and argmax is permute-and-flip (Ding et al. 2021): brute force."""
    flip = [math.exp(rate * (a - max(answers))) for a in answers]
    distribution = dict.fromkeys(range(len(answers)), 0.0)
    orders = list(itertools.permutations(range(len(answers))))
    for order in orders:
        alive = 1.0
        for i in order:
            distribution[i] += alive * flip[i] / len(orders)
            alive *= 1 - flip[i]
    return distribution


@pytest.mark.parametrize("answers", [(1.0, 1.0, 1.0), (2.0, 0.0, 0.5, -1.0)], ids=str)
def test_exponential_noise_is_permute_and_flip(answers):
    mechanism = mechanisms.NoisyMaxIndex(1.0, noise="exponential")
    distribution = mechanism.distribution(answers)
    assert distribution == pytest.approx(permute_and_flip(answers, 0.5), abs=1e-12)


@pytest.mark.parametrize("gap", [0.0, 0.7, 3.0])
def test_two_laplace_answers_have_a_closed_form(gap):
    distribution = mechanisms.NoisyMaxIndex(1.0).distribution((0.0, gap))
    u = gap / 2.0
    assert distribution[0] == pytest.approx(0.5 * (1 + u / 2) * math.exp(-u), abs=1e-13)


def max_cdf(mechanism, database):
    def cdf(t):
        return np.prod([stats.laplace.cdf(t, a, mechanism.scale) for a in database], axis=0)

    return cdf


def test_laplace_maximum_against_its_distribution_function():
    mechanism = mechanisms.NoisyMaxValue(1.0, pair=((1.0, 0.5, 1.0), (2.0, 1.0, 2.0)))
    p, q = (max_cdf(mechanism, d) for d in mechanism.pair)
    edges = np.unique(np.concatenate([np.linspace(-60, 80, 280_001), *mechanism.pair]))
    a, b = np.diff(p(edges)), np.diff(q(edges))
    for epsilon in GRID:
        coarse = max(
            np.maximum(a - math.exp(epsilon) * b, 0).sum(),
            np.maximum(b - math.exp(epsilon) * a, 0).sum(),
        )
        assert mechanism.delta(epsilon=epsilon) == pytest.approx(coarse, abs=1e-7)
    width = np.diff(edges)
    height = np.maximum(a, b) / width
    kept = height > 1e-9
    for tau in (0.01, 0.3):
        inside = kept & (height >= tau * height.max())
        size = np.abs(np.log(a[inside] / b[inside])).max()
        assert mechanism.local_epsilon(tau) == pytest.approx(size, abs=2e-3)
    # In the lower tail every answer counts: the sum of all changes over the scale.
    assert mechanism.epsilon() == pytest.approx(2.5 / mechanism.scale, abs=1e-10)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_samplers_of_the_maximum(noise):
    mechanism = mechanisms.NoisyMaxValue(1.0, noise=noise)
    distribution = stats.laplace if noise == "laplace" else stats.expon
    for seed, database in enumerate(mechanism.pair):
        sample = mechanism(database, 50_000, seed)

        def cdf(t, database=database):
            return np.prod([distribution.cdf(t, a, mechanism.scale) for a in database], axis=0)

        assert stats.kstest(sample, cdf).pvalue > 1e-6


def test_exponential_maximum_by_quadrature():
    mechanism = mechanisms.NoisyMaxValue(1.0, noise="exponential")
    grid = np.linspace(1.0, 61.0, 60_001)
    f, g = (
        sum(
            stats.expon.pdf(grid, a, 2.0)
            * np.prod([stats.expon.cdf(grid, b, 2.0) for j, b in enumerate(d) if j != i], axis=0)
            for i, a in enumerate(d)
        )
        for d in mechanism.pair
    )
    for epsilon in (0.0, 0.5):
        coarse = max(
            integrate.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), grid)
            for a, b in ((f, g), (g, f))
        )
        assert mechanism.delta(epsilon=epsilon) == pytest.approx(coarse, abs=1e-6)
    assert mechanism.epsilon() == math.inf
    same_top = mechanisms.NoisyMaxValue(
        1.0, noise="exponential", pair=((1.0, 0.0, 0.0), (1.0, -1.0, -1.0))
    )
    assert math.isfinite(same_top.epsilon())
    more_on_top = mechanisms.NoisyMaxValue(1.0, noise="exponential", pair=((1.0, 1.0), (1.0, 0.0)))
    assert more_on_top.epsilon() == math.inf


# Sparse vector


def published_rows(variant, answers, budget, cutoff, size, rng):
    """Lyu, Su and Li (2017), Figure 1, line by line, one run at a time."""
    for _ in range(size):
        first = budget / 4 if variant == 4 else budget / 2
        second = budget - first
        rho = rng.laplace(scale=(cutoff if variant == 2 else 1) / first)
        row, count = [], 0
        for q in answers:
            if variant == 1:
                nu = rng.laplace(scale=2 * cutoff / second)
            elif variant == 2:
                nu = rng.laplace(scale=2 * cutoff / first)
            elif variant == 5:
                nu = 0.0
            else:
                nu = rng.laplace(scale=1 / second)
            if q + nu >= 0.0 + rho:
                row.append(1)
                if variant == 2:
                    rho = rng.laplace(scale=cutoff / second)
                count += 1
                if variant in (1, 2, 4) and count >= cutoff:
                    break
            else:
                row.append(0)
        yield tuple(row + [-1] * (len(answers) - len(row)))


@pytest.mark.parametrize("variant", [1, 2, 4, 5, 6])
def test_sparse_vector_distributions_are_those_of_the_published_algorithms(variant):
    mechanism = mechanisms.SparseVector(variant, budget=1.3, cutoff=2)
    distribution = mechanism.distribution(mechanism.pair[1])
    size = 20_000
    found = dict.fromkeys(distribution, 0)
    rng = np.random.default_rng(variant)
    for row in published_rows(variant, mechanism.pair[1], 1.3, 2, size, rng):
        found[row] += 1
    possible = {k: m for k, m in distribution.items() if m > 0}
    assert sum(found[k] for k in possible) == size
    statistic = sum((found[k] - size * m) ** 2 / (size * m) for k, m in possible.items())
    assert stats.chi2.sf(statistic, len(possible) - 1) > 1e-6


def test_sparse_vector_probabilities_by_scipy_quadrature():
    mechanism = mechanisms.SparseVector(6, budget=1.0)
    answers = mechanism.pair[1]
    distribution = mechanism.distribution(answers)
    for row in [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0)]:

        def integrand(z, row=row):
            chances = [
                stats.laplace.sf(z - a, 0, 2.0) if r else stats.laplace.cdf(z - a, 0, 2.0)
                for r, a in zip(row, answers, strict=True)
            ]
            return stats.laplace.pdf(z, 0, 2.0) * math.prod(chances)

        parts = [
            integrate.quad(integrand, *ends)[0] for ends in itertools.pairwise((-80, -1, 0, 1, 80))
        ]
        assert distribution[row] == pytest.approx(sum(parts), abs=1e-10)


def test_stoddards_sparse_vector_is_the_distribution_of_its_threshold():
    mechanism = mechanisms.SparseVector(5)
    noise = stats.laplace(0, 2.0)
    distribution = mechanism.distribution((1.0, 1.0, -1.0, -1.0))
    assert distribution[1, 1, 1, 1] == pytest.approx(noise.cdf(-1), abs=1e-12)
    assert distribution[1, 1, 0, 0] == pytest.approx(noise.cdf(1) - noise.cdf(-1), abs=1e-12)
    assert mechanism.epsilon() == math.inf
    assert mechanism.delta(epsilon=5.0) == pytest.approx(noise.cdf(1) - noise.cdf(-1), abs=1e-12)


def test_released_answers_have_the_densities_of_the_samplers():
    for make in (mechanisms.SparseVectorWithAnswers, mechanisms.NumericalSparseVector):
        mechanism = make()
        for seed, database in enumerate(mechanism.pair):
            rows = mechanism(database, 100_000, seed)
            assert (np.count_nonzero(rows, axis=1) <= 1).all()
            nothing = mechanism.atom(database)
            error = math.sqrt(nothing / len(rows))
            assert abs(np.mean(~rows.any(axis=1)) - nothing) < 5 * error
            grid = np.unique(np.concatenate([np.linspace(-100, 100, 8001), database]))
            total = nothing
            for k in range(len(database)):
                density = np.exp(mechanism.log_density(database, k, grid))
                heaped = integrate.cumulative_trapezoid(density, grid, initial=0.0)
                total += heaped[-1]
                values = rows[rows[:, k] != 0.0, k]
                assert abs(values.size / len(rows) - heaped[-1]) < 0.01
                uniform = np.interp(values, grid, heaped / heaped[-1])
                assert stats.kstest(uniform, "uniform").pvalue > 1e-6
            assert total == pytest.approx(1.0, abs=1e-4)


def test_compared_answers_by_scipy_quadrature():
    mechanism = mechanisms.SparseVectorWithAnswers(1.0)
    database = (1.0, 0.3, -0.5)
    for value in (-7.0, 0.2, 4.0):

        def integrand(z):
            return (
                stats.laplace.pdf(z, 0, 2.0)
                * stats.laplace.cdf(z - 1.0, 0, 2.0)
                * stats.laplace.cdf(z - 0.3, 0, 2.0)
            )

        knots = [-120.0, *(k for k in (0.0, 0.3, 1.0) if k < value), value]
        chance = sum(
            integrate.quad(integrand, *ends, epsabs=1e-14)[0] for ends in itertools.pairwise(knots)
        )
        expected = math.log(chance) + stats.laplace.logpdf(value, -0.5, 2.0)
        found = mechanism.log_density(database, 2, np.array([value]))[0]
        assert found == pytest.approx(expected, abs=1e-8)


def test_numerical_sparse_vector_has_product_densities():
    mechanism = mechanisms.NumericalSparseVector(1.0)
    first, second = mechanism.pair
    sizes = [abs(math.log(mechanism.atom(first) / mechanism.atom(second)))]
    for k in range(3):
        far = np.array([-1e3, 1e3])
        ratio = mechanism.log_density(first, k, far) - mechanism.log_density(second, k, far)
        sizes.append(np.abs(ratio).max())
    assert mechanism.epsilon() == pytest.approx(max(sizes), abs=1e-10)


# Properties that are theorems

answer = st.floats(-3, 3).map(lambda v: round(v, 2))
change = st.floats(-1, 1).map(lambda v: round(v, 2))
neighbours = st.lists(st.tuples(answer, change), min_size=1, max_size=4).map(
    lambda rows: (tuple(a for a, _ in rows), tuple(a + c for a, c in rows))
)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(pair=neighbours, budget=st.floats(0.1, 2.0))
def test_private_mechanisms_keep_their_budget(pair, budget):
    private = [
        mechanisms.NoisyMaxIndex(budget, pair=pair),
        mechanisms.NoisyMaxIndex(budget, noise="exponential", pair=pair),
        mechanisms.ExponentialMechanism(budget, pair=pair),
        mechanisms.SparseVector(1, budget, pair=pair),
        mechanisms.SparseVector(2, budget, pair=pair),
    ]
    for mechanism in private:
        assert mechanism.epsilon() <= budget + 1e-9
    loose = mechanisms.SparseVector(4, budget, pair=pair)
    assert loose.epsilon() <= (1 + 6 * loose.cutoff) / 4 * budget + 1e-9


@settings(derandomize=True, deadline=None, max_examples=5)
@given(pair=neighbours, budget=st.floats(0.5, 2.0))
def test_numerical_sparse_vector_keeps_its_budget(pair, budget):
    assert mechanisms.NumericalSparseVector(budget, pair=pair).epsilon() <= budget + 1e-8


def test_broken_variants_break_their_budget():
    many = ((0.0,) * 8, (1.0,) * 4 + (-1.0,) * 4)
    assert mechanisms.SparseVector(4, 1.0).epsilon() > 1.0
    assert mechanisms.SparseVector(6, 1.0, pair=many).epsilon() > 2.0
    assert mechanisms.SparseVectorWithAnswers(1.0).epsilon() > 1.0
    assert mechanisms.NoisyMaxValue(1.0).epsilon() > 1.0
    assert mechanisms.NoisyHistogram(0.5, right_scale=False).epsilon() == 2.0


def test_no_likely_outcome_means_no_local_loss():
    mechanism = mechanisms.RandomizedResponse(1.0, choices=200)
    assert mechanism.local_epsilon(0.5) == 0.0
    half = np.log([0.5, 0.5])
    assert truths.discrete_epsilon(half, half, 0.6) == 0.0
    assert truths.discrete_epsilon(half, np.log([0.25, 0.75]), 0.5) == pytest.approx(math.log(2))


def test_one_sided_outcomes_are_infinite_only_where_they_are_likely():
    p, q = np.log([0.98, 0.02]), np.array([0.0, -math.inf])
    assert truths.discrete_epsilon(p, q, 0.01) == math.inf
    assert truths.discrete_epsilon(p, q, 0.05) == pytest.approx(-math.log(0.98))


def test_an_epsilon_whose_exponential_is_infinite_is_refused():
    for mechanism in (mechanisms.Laplace(), mechanisms.Geometric(), mechanisms.Gaussian()):
        assert mechanism.delta(epsilon=700.0) == 0.0
        with pytest.raises(InvalidInputError, match="epsilon must be at most 700"):
            mechanism.delta(epsilon=2000.0)


def test_an_answer_that_is_never_randomised():
    mechanism = mechanisms.RandomizedResponse(1000.0)
    truth, other = mechanism.pair
    assert mechanism.distribution(truth) == {truth: 1.0, other: 0.0}
    assert (mechanism(truth, 1000, 1) == truth).all()
