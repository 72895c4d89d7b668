"""The estimator and bound of Askin, Kutta and Dette."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.mechanisms import (
    Geometric,
    Laplace,
    NoisyHistogram,
    PrefixSum,
    RandomizedResponse,
    Rappor,
    RestrictedLaplace,
    SparseVector,
)
from edp_bayes.plugin import local_privacy, rows
from edp_bayes.plugin.local_privacy import mpl


@pytest.mark.full
@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_bound_covers_the_published_truth(rate):
    """Over 200 runs; a bound of 95% misses more than 20 times with probability 1e-3."""
    truth = rate + math.log((2 - math.exp(-2 * rate)) / (2 - math.exp(-rate)))
    mechanism = RestrictedLaplace(1 / rate)
    runs = [
        mpl(
            mechanism,
            [mechanism.pair],
            first_size=2_000,
            second_size=20_000,
            tau=0.1,
            points=100,
            random_seed=seed,
        )
        for seed in range(200)
    ]
    lower = np.array([run.lower for run in runs])
    assert np.sum(lower > truth) <= 20
    assert np.median(lower) > 0.8 * truth
    assert {run.kind for run in runs} == {"continuous"}


def test_bound_covers_for_discrete_outcomes_at_its_level():
    """Stage 2 is a plain asymptotic interval here, so that it misses about as often as stated."""
    mechanism = RandomizedResponse(1.0)
    runs = [
        mpl(mechanism, [mechanism.pair], first_size=1_000, second_size=5_000, random_seed=seed)
        for seed in range(400)
    ]
    missed = np.mean([run.lower > 1.0 for run in runs])
    assert 0.02 < missed < 0.09
    z = np.array([(run.log_ratio - 1.0) / run.standard_error for run in runs])
    assert stats.kstest(z, "norm").pvalue > 1e-4


def test_standard_error_is_the_published_formula():
    mechanism = Geometric(0.4)
    found = mpl(mechanism, [mechanism.pair], tau=0.05, random_seed=3)
    streams = np.random.SeedSequence(3).spawn(4)
    p, q = (
        Counter(mechanism(d, 100_000, np.random.default_rng(s)).tolist())[found.location] / 100_000
        for d, s in zip(mechanism.pair, streams[2:], strict=True)
    )
    sigma = math.sqrt(1 / p + 1 / q - 2)
    assert found.log_ratio == pytest.approx(abs(math.log(p / q)), abs=1e-12)
    assert found.standard_error == pytest.approx(sigma / math.sqrt(100_000), rel=1e-12)
    bound = found.log_ratio + stats.norm.ppf(0.05) * found.standard_error
    assert found.lower == pytest.approx(bound, rel=1e-9)


def test_continuous_standard_error_is_the_published_formula():
    mechanism = Laplace(1.0)
    found = mpl(mechanism, [mechanism.pair], tau=0.05, random_seed=3)
    streams = np.random.SeedSequence(3).spawn(4)

    def density(database, stream):
        sample = mechanism(database, 100_000, np.random.default_rng(stream))
        u = (sample - found.location) / found.bandwidth
        return np.mean(0.75 * np.maximum(1 - u**2, 0)) / found.bandwidth

    f, g = (density(d, s) for d, s in zip(mechanism.pair, streams[2:], strict=True))
    assert found.log_ratio == pytest.approx(abs(math.log(f / g)), abs=1e-9)
    sigma = math.sqrt(0.6 * (1 / f + 1 / g))
    assert found.standard_error == pytest.approx(
        sigma / math.sqrt(100_000 * found.bandwidth), rel=1e-9
    )
    # Undersmoothed: of smaller order than the reference rule.
    assert found.bandwidth < 2.345 * 100_000**-0.2


def test_kernel_estimate_agrees_with_every_pair_of_differences():
    rng = np.random.default_rng(1)
    sample, points = rng.normal(size=500), np.linspace(-4, 4, 37)
    u = (sample - points[:, None]) / 0.3
    direct = np.mean(0.75 * np.maximum(1 - u**2, 0), axis=1) / 0.3
    np.testing.assert_allclose(local_privacy._kernel(sample, points, 0.3), direct, atol=1e-13)


def test_the_pair_that_leaks_most_is_found():
    mechanism = Laplace(1.0)
    pairs = [(0.0, 0.2), (0.0, 2.0), (0.0, 1.0)]
    found = mpl(mechanism, pairs, tau=0.05, first_size=20_000, random_seed=1)
    assert found.pair == 1
    assert found.epsilon == max(found.pair_epsilon)
    assert 1.7 < found.lower < 2.0


def test_distributions_below_the_floor_count_as_the_floor():
    mechanism = SparseVector(5)
    found = mpl(mechanism, [mechanism.pair], tau=0.01, random_seed=1)
    distribution = mechanism.distribution(mechanism.pair[1])
    assert found.location == (1, 1, 0, 0)
    assert found.log_ratio == pytest.approx(math.log(distribution[1, 1, 0, 0] / 0.01), abs=0.05)


def test_outcomes_are_rows_or_any_value():
    mechanism = Rappor()
    assert len(mpl(mechanism, [mechanism.pair], random_seed=1).location) == 4

    def words(database, size, rng):
        return np.where(rng.random(size) < (0.7 if database else 0.3), "yes", "no")

    found = mpl(words, [(True, False)], random_seed=1)
    assert found.location in ("yes", "no")
    assert found.lower < math.log(7 / 3) < found.lower + 0.1


def test_the_seed_alone_decides():
    mechanism = Laplace(1.0)
    runs = [mpl(mechanism, [mechanism.pair], second_size=5_000, random_seed=s) for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def nothing(database, size, rng):
    return np.zeros((size, 2, 2))


def short(database, size, rng):
    return rng.normal(size=size - 1)


def not_finite(database, size, rng):
    return np.full(size, np.nan)


def failing(database, size, rng):
    raise RuntimeError("no such table")


def two_kinds(database, size, rng):
    return rng.normal(size=size) if database else rng.integers(0, 2, size)


def constant(database, size, rng):
    return np.full(size, 1.5)


def many_columns(database, size, rng):
    return rng.normal(size=(size, 6))


def one_for_all(database, size, rng):
    return np.column_stack([rng.normal(size=size), np.full(size, 3.0)])


def summed(database, size, rng):
    noise = rng.normal(size=(size, 2))
    return np.column_stack([noise, noise.sum(axis=1)])


@pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")
@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (nothing, "pair 0 it returned shape"),
        (short, "pair 0 it returned shape"),
        (not_finite, "finite; those of pair 0"),
        (failing, "failed for pair 0: RuntimeError: no such table"),
        (two_kinds, "pair 0 must give outputs of one kind"),
        (constant, "all equal"),
        (many_columns, "at most 5 columns; those of pair 0 have 6"),
        (one_for_all, "pair 0 cannot be used: column 1 of the outputs is constant"),
        (summed, "pair 0 cannot be used: columns of the outputs follow from each other"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_bad_samplers_are_named_with_their_pair(sampler, message):
    with pytest.raises(InvalidInputError, match=message):
        mpl(sampler, [(0, 1)], random_seed=1)


def test_the_second_pair_is_named_too():
    def half_bad(database, size, rng):
        return rng.normal(size=size) if database < 2 else rng.normal(size=3)

    with pytest.raises(InvalidInputError, match="pair 1"):
        mpl(half_bad, [(0, 1), (1, 2)], random_seed=1)


def test_pairs_of_different_kinds_are_refused():
    def either(database, size, rng):
        return rng.normal(size=size) if database < 2 else rng.integers(0, 2, size)

    with pytest.raises(InvalidInputError, match="one kind; those of pair 1"):
        mpl(either, [(0, 1), (2, 3)], random_seed=1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tau": 0.0}, InvalidInputError),
        ({"tau": 1.0}, InvalidInputError),
        ({"prob": 1.0}, InvalidInputError),
        ({"first_size": 99}, InvalidInputError),
        ({"second_size": 1e5}, InputTypeError),
        ({"kind": "mixed"}, InvalidInputError),
        ({"points": 0}, InvalidInputError),
        ({"smoothness": 0.0}, InvalidInputError),
        ({"smoothness": 2.5}, InvalidInputError),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(options, error):
    with pytest.raises(error):
        mpl(Laplace(), [(0.0, 1.0)], **options)


@pytest.mark.parametrize("pairs", [[], [(1,)], 3], ids=str)
def test_bad_pairs_are_refused(pairs):
    with pytest.raises((InvalidInputError, InputTypeError)):
        mpl(Laplace(), pairs)


def test_a_mechanism_is_callable():
    with pytest.raises(InputTypeError, match="callable"):
        mpl(3, [(0, 1)])


def test_atoms_of_continuous_outputs_are_doubtful():
    def clipped(database, size, rng):
        return np.maximum(rng.normal(database, size=size), 0.0)

    with pytest.warns(EdpBayesWarning, match="repeat"):
        mpl(clipped, [(0.0, 1.0)], second_size=1_000, random_seed=1)


def test_a_floor_above_every_density_is_said():
    mechanism = Laplace(1e6, (0.0, 1e6))
    with pytest.warns(EdpBayesWarning, match="no distribution of any pair exceeds tau"):
        found = mpl(mechanism, [mechanism.pair], second_size=1_000, random_seed=1)
    assert found.epsilon == 0.0


# Several continuous columns


def laplace_rows(database, size, rng):
    """Return true answers with Laplace noise of scale 2: the loss is their l1 distance over 2."""
    return np.asarray(database) + rng.laplace(scale=2.0, size=(size, len(database)))


def gaussian_rows(database, size, rng):
    return np.asarray(database) + rng.normal(size=(size, len(database)))


def neighbours(columns, distance, norm):
    """Return two vectors of answers so far apart, differing in all columns alike."""
    shift = np.full(columns, distance / columns ** (1.0 / norm))
    return np.zeros(columns), shift


def runs_of(sampler, pair, count, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)  # a floor that was raised
        return [mpl(sampler, [pair], random_seed=seed, **options) for seed in range(count)]


SMALL = {"first_size": 1_000, "second_size": 5_000, "points": 100}


@pytest.mark.full
def test_the_bound_covers_in_two_columns():
    """A bound of 90% that misses in more than 14 of 60 runs does so with probability 1e-3."""
    runs = runs_of(laplace_rows, neighbours(2, 2.0, 1), 60, prob=0.9, **SMALL)
    lower = np.array([run.lower for run in runs])
    assert np.sum(lower > 1.0) <= 14
    assert np.median(lower) > 0.7
    assert {(run.kind, len(run.location)) for run in runs} == {("continuous", 2)}


@pytest.mark.full
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize(("sampler", "norm"), [(laplace_rows, 1), (gaussian_rows, 2)])
def test_the_bound_covers_in_several_columns(sampler, norm, columns):
    """A bound of 95% that misses in more than 20 of 200 runs does so with probability 1e-3."""
    laplace = sampler is laplace_rows
    pair = neighbours(columns, 2.0 if laplace else 1.0, norm)
    runs = runs_of(sampler, pair, 200, first_size=5_000, second_size=50_000, points=400)
    lower = np.array([run.lower for run in runs])
    # normal densities of which both are floored at the share tau of the peak, 1 apart
    floored = [math.sqrt(-2.0 * math.log(run.tau)) - 0.5 for run in runs]
    assert np.sum(lower > (1.0 if laplace else floored)) <= 20
    assert np.median(lower) > (0.5 if laplace else 1.0)


def test_pairs_of_rows_are_compared_and_the_worst_is_named():
    pairs = [neighbours(3, distance, 1) for distance in (0.2, 4.0, 1.0)]
    with pytest.warns(EdpBayesWarning, match="the floor is"):
        found = mpl(laplace_rows, pairs, second_size=20_000, points=200, random_seed=1)
    assert found.pair == 1
    assert found.epsilon == max(found.pair_epsilon)
    assert 1.0 < found.lower < 2.0
    assert found.tau > 0.01


def test_a_linear_map_of_the_columns_changes_nothing():
    """The running totals of noisy counts lose what the counts lose, whatever their units."""
    mix = np.triu(np.ones((3, 3))) * [1e6, 1e-3, 1.0]

    def mixed(database, size, rng):
        return laplace_rows(database, size, rng) @ mix + [1e9, 0.0, -5.0]

    pair = neighbours(3, 2.0, 1)
    plain, other = (runs_of(sampler, pair, 1, **SMALL)[0] for sampler in (laplace_rows, mixed))
    assert other.lower == pytest.approx(plain.lower, abs=0.15)
    assert other.bandwidth == plain.bandwidth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        for mechanism in (NoisyHistogram(0.5), PrefixSum(0.5)):
            found = mpl(mechanism, [mechanism.pair], second_size=20_000, random_seed=1)
            assert 0.2 < found.lower < mechanism.epsilon()


def test_the_density_of_rows_agrees_with_every_pair_of_differences():
    rng = np.random.default_rng(1)
    sample, points = rng.normal(size=(500, 3)), rng.normal(size=(20, 3))
    u = (sample - points[:, None]) / 0.9
    kernel = np.prod(0.75 * np.maximum(1 - u**2, 0), axis=2) / 0.9**3
    mean, square = rows._densities(sample, points, 0.9)
    np.testing.assert_allclose(mean, kernel.mean(axis=1), atol=1e-13)
    np.testing.assert_allclose(square, np.square(kernel).mean(axis=1), atol=1e-13)


def test_the_bandwidth_of_one_column_is_the_reference_rule():
    assert rows.bandwidth(1, 10_000, 2.0) == pytest.approx(2.345 * 10_000**-0.2, rel=1e-4)
    ratio = rows.bandwidth(5, 1_000, 1.0) / rows.bandwidth(5, 128_000, 1.0)
    assert ratio == pytest.approx(2.0)


def test_the_standard_error_of_rows_approaches_the_published_formula():
    a, b = (np.random.default_rng(k).normal(size=(200_000, 2)) for k in (1, 2))
    place = rows.Place(1.0, 1.0, (0.0, 0.0), 0.01, False, 1e-3, np.eye(2), 0.1)
    ratio, error = rows.measure(a, b, place)
    f = 1.0 / (2.0 * math.pi)
    assert error == pytest.approx(math.sqrt(0.36 * 2.0 / f / (200_000 * 0.01)), rel=0.05)
    assert ratio < 4.0 * error


def test_too_few_outputs_for_so_many_columns_are_refused():
    with pytest.raises(InvalidInputError, match="second_size must be large enough"):
        mpl(gaussian_rows, [neighbours(5, 1.0, 2)], second_size=100, random_seed=1)


def test_a_single_column_of_rows_is_a_number():
    def column(database, size, rng):
        return rng.laplace(database, size=(size, 1))

    found = mpl(column, [(0.0, 1.0)], second_size=5_000, random_seed=1)
    plain = mpl(Laplace(), [(0.0, 1.0)], second_size=5_000, random_seed=1)
    assert found == plain
