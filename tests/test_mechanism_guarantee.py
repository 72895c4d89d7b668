"""A band without a model, for mechanisms whose likelihood ratio is monotone."""

import numpy as np
import pytest
from scipy.stats import norm

import edp_bayes as edp

EPSILON = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


def laplace(rng, size):
    """Return samples of Laplace noise of scale 1 on neighbouring counts, and delta."""
    noise = rng.laplace(size=(2, size))
    return noise[0] + 1.0, noise[1], np.maximum(1.0 - np.exp((EPSILON - 1.0) / 2.0), 0.0)


def gaussian(rng, size):
    noise = rng.normal(size=(2, size))
    middle = EPSILON / 0.7
    delta = norm.cdf(0.35 - middle) - np.exp(EPSILON) * norm.cdf(-0.35 - middle)
    return noise[0] + 0.7, noise[1], delta


def responses(rng, size):
    """Return randomised responses, true three times in four: delta by the two outcomes."""
    first, second = rng.random((2, size)) < np.array([[0.75], [0.25]])
    return first, second, np.maximum(0.75 - np.exp(EPSILON) * 0.25, 0.0)


def geometric(rng, size):
    """Return counts with two-sided geometric noise of ratio exp(-1/2)."""
    ratio = np.exp(-0.5)
    noise = rng.geometric(1 - ratio, (2, 2, size))
    first, second = noise[0] - noise[1]
    k = np.arange(-80, 81)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    shifted = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k - 1)
    delta = np.maximum(shifted - np.exp(EPSILON)[:, None] * mass, 0.0).sum(axis=1)
    return first + 1, second, delta


@pytest.mark.full
@pytest.mark.parametrize("mechanism", [laplace, gaussian, responses, geometric])
def test_the_whole_band_holds_delta_as_often_as_it_says(mechanism):
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(200):
        first, second, delta = mechanism(rng, 500)
        band = edp.mechanism_guarantee(first, second, epsilon=EPSILON, prob=0.9)
        missed += bool(
            (band["lower"] > delta + 1e-12).any() | (band["upper"] < delta - 1e-12).any()
        )
    # 20 of 200 are allowed for
    assert missed <= 20


def test_samples_of_two_sizes_make_a_narrower_band():
    rng = np.random.default_rng(2)
    widths = []
    for size in (200, 2000, 20_000):
        first, second, delta = laplace(rng, size)
        band = edp.mechanism_guarantee(first, second[: size // 2], epsilon=EPSILON)
        assert (band["lower"] <= delta).all()
        assert (delta <= band["upper"]).all()
        widths.append(float((band["upper"] - band["lower"])[1]))
    assert widths[0] > widths[1] > widths[2]


def test_the_shares_are_those_of_all_half_lines():
    first, second = [1.0, 2.0, 2.0, 5.0], [2.0, 3.0, 3.0]
    band = edp.mechanism_guarantee(first, second, epsilon=[0.2])
    growth = np.exp(0.2)
    best = 0.0
    for t in np.arange(0.0, 7.0, 0.5):
        for p, q in ((first, second), (second, first)):
            for side in (np.less_equal, np.greater):
                one, other = (np.mean(side(np.array(s), t)) for s in (p, q))
                best = max(best, one - growth * other)
    half = np.sqrt(np.log(80.0) / 8.0), np.sqrt(np.log(80.0) / 6.0)
    assert best + half[1] + growth * half[0] > 1.0  # of so few outcomes
    assert band["upper"][0] == 1.0
    assert band["lower"][0] == 0.0
    many = edp.mechanism_guarantee(first * 1000, second * 1000, epsilon=[0.2])
    ends = [
        best + sign * (half[k] + growth * half[1 - k]) / np.sqrt(1000.0)
        for sign in (-1.0, 1.0)
        for k in (0, 1)
    ]
    assert min(ends) - 1e-12 <= many["lower"][0] <= best <= many["upper"][0] <= max(ends) + 1e-12


def test_a_lower_end_holds_where_the_ratio_is_not_monotone():
    rng = np.random.default_rng(3)
    # outcomes at both ends tell of the first database, and no half line tells all
    first = np.where(rng.random(50_000) < 0.5, -1.0, 1.0)
    second = rng.choice([-1.0, 0.0, 1.0], 50_000)
    band = edp.mechanism_guarantee(first, second, epsilon=[0.1])
    delta = 1.0 / 3.0  # of 0, which the first never gives
    assert band["lower"][0] < delta
    assert band["upper"][0] < delta


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([[1.0, 2.0]], {}, "one number an outcome"),
        ([1.0], {}, "at least 2 outcomes"),
        ([1.0, np.nan], {}, "samples"),
        ([1.0, 2.0], {"prob": 1.5}, "prob"),
        ([1.0, 2.0], {"epsilon": [-0.1]}, "epsilon"),
    ],
)
def test_bad_input_is_refused(samples, options, message):
    asked = {"epsilon": [0.1], **options}
    with pytest.raises(edp.InvalidInputError, match=message):
        edp.mechanism_guarantee(samples, [0.0, 1.0], **asked)
