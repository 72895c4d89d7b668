"""Distributions of noise: densities, distribution functions, moments, samples, and saved files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.noise import (
    GaussianNoise,
    LaplaceNoise,
    LatticeNoise,
    NoiseDistribution,
    NoNoise,
)
from edp_bayes.noise.distribution import as_distribution
from edp_bayes.utils.checksums import checksum
from edp_bayes.utils.sentences import Name, Sentence

LATTICE = LatticeNoise(0.5, [0.1, 0.2, 0.3, 0.2, 0.1], left=0.04, right=0.06, decay=0.7)
CONTINUOUS = {"laplace": LaplaceNoise(1.7), "gaussian": GaussianNoise(0.8), "lattice": LATTICE}


@pytest.mark.parametrize("distribution", CONTINUOUS.values(), ids=CONTINUOUS)
def test_moments_and_distribution_function_follow_from_the_density(distribution):
    x = np.linspace(-60.0, 60.0, 1_200_001)
    f = distribution.pdf(x)
    mean = np.trapezoid(x * f, x)
    assert np.trapezoid(f, x) == pytest.approx(1.0, abs=1e-7)
    assert mean == pytest.approx(distribution.mean, abs=1e-7)
    assert np.trapezoid(np.abs(x) * f, x) == pytest.approx(distribution.mean_absolute, abs=1e-7)
    assert np.trapezoid((x - mean) ** 2 * f, x) == pytest.approx(distribution.variance, abs=1e-6)
    steps = integrate.cumulative_trapezoid(f, x, initial=0.0)
    np.testing.assert_allclose(distribution.cdf(x), steps, atol=1e-7)


@pytest.mark.parametrize("distribution", CONTINUOUS.values(), ids=CONTINUOUS)
def test_samples_follow_the_distribution_function(distribution):
    sample = distribution.sample(20_000, np.random.default_rng(3))
    assert stats.kstest(sample, distribution.cdf).pvalue > 1e-3


def test_laplace_and_gaussian_agree_with_scipy():
    x = np.linspace(-9.0, 9.0, 41)
    np.testing.assert_allclose(LaplaceNoise(1.7).cdf(x), stats.laplace(scale=1.7).cdf(x))
    np.testing.assert_allclose(GaussianNoise(0.8).pdf(x), stats.norm(scale=0.8).pdf(x))
    assert GaussianNoise(0.8).mean_absolute == pytest.approx(stats.halfnorm(scale=0.8).mean())


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    st.floats(0.01, 0.95),
    st.floats(0.0, 1.0),
)
def test_cumulative_sums_the_probabilities(half, decay, tail):
    weights = np.array([*half[::-1], 0.5, *half])
    total = weights.sum() + 2.0 * tail
    distribution = LatticeNoise(
        1.0, weights / total, left=tail / total, right=tail / total, decay=decay
    )
    k = np.arange(-2000, 2001)
    np.testing.assert_allclose(
        distribution.cumulative(k), np.cumsum(distribution.probability(k)), atol=1e-12
    )
    assert distribution.mean == pytest.approx(0.0, abs=1e-9)


def test_a_mixture_adds_up():
    noise = NoiseDistribution((NoNoise(), LaplaceNoise(2.0), LATTICE), (0.2, 0.5, 0.3))
    assert noise.atom == 0.2
    assert noise.mean_absolute == pytest.approx(1.0 + 0.3 * LATTICE.mean_absolute)
    second = 0.5 * 8.0 + 0.3 * (LATTICE.variance + LATTICE.mean**2)
    assert noise.variance == pytest.approx(second - (0.3 * LATTICE.mean) ** 2)
    assert noise.cdf(0.0) - noise.cdf(-1e-12) == pytest.approx(0.2, abs=1e-9)
    sample = noise.sample(40_000, 1)
    assert np.mean(sample == 0.0) == pytest.approx(0.2, abs=0.01)
    assert np.abs(sample).mean() == pytest.approx(noise.mean_absolute, rel=0.03)
    np.testing.assert_array_equal(sample, noise.sample(40_000, 1))


def test_saved_noise_is_the_same_noise(tmp_path):
    distributions = (NoNoise(), LaplaceNoise(0.1), GaussianNoise(1 / 3), LATTICE)
    noise = NoiseDistribution(distributions, (0.1, 0.2, 0.3, 0.4), {"epsilon": 0.1})
    again = NoiseDistribution.load(noise.save(tmp_path / "noise.json"))
    x = np.linspace(-3.0, 3.0, 31)
    np.testing.assert_allclose(again.pdf(x), noise.pdf(x), rtol=1e-15)
    assert again.record == {"epsilon": 0.1}
    assert again.components[1] == LaplaceNoise(0.1)


@pytest.mark.parametrize("version", [0, 2, True, "1", None])
def test_another_format_is_refused(version):
    held = json.loads(NoiseDistribution((LaplaceNoise(0.1),)).to_json())
    text = json.dumps({**held, "edp_bayes_noise": version})
    with pytest.raises(InvalidInputError, match=r"found edp_bayes_noise = .*, 1 would be right"):
        NoiseDistribution.from_json(text)


def test_noise_without_checksums_is_refused():
    held = json.loads(NoiseDistribution((LaplaceNoise(0.1),)).to_json())
    del held["checksums"]
    with pytest.raises(InvalidInputError, match="damaged: distributions is not as it was saved"):
        NoiseDistribution.from_json(json.dumps(held))


def test_a_flipped_bit_of_saved_noise_is_refused_or_changes_nothing(tmp_path):
    record = {"epsilon": 0.1, "message": Sentence("Of ", Name("'Ann'", "Ann"), ".")}
    noise = NoiseDistribution((NoNoise(), LaplaceNoise(1 / 3), LATTICE), (0.1, 0.2, 0.7), record)
    path = noise.save(tmp_path / "noise.json")
    raw, refused = path.read_bytes(), 0
    rng = np.random.default_rng(1)
    flips = np.stack([rng.integers(len(raw), size=500), rng.integers(8, size=500)], axis=1)
    for place, bit in flips.tolist():
        damaged = bytearray(raw)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            again = NoiseDistribution.load(path)
        except InvalidInputError:
            refused += 1
        else:
            assert again.to_json() == noise.to_json()
    assert refused > 0.98 * len(flips)


def test_a_changed_weight_of_saved_noise_is_named(tmp_path):
    path = NoiseDistribution((NoNoise(), LaplaceNoise(0.5)), (0.25, 0.75)).save(tmp_path / "n.json")
    path.write_text(path.read_text().replace("0.25", "0.35").replace("0.75", "0.65"))
    with pytest.raises(InvalidInputError, match=r"n.json: .*distributions is not as it was saved"):
        NoiseDistribution.load(path)


def test_files_that_are_no_noise_are_refused(tmp_path):
    def saved(**found):
        held = {"distributions": [{"weight": 1, **found}], "record": {}}
        checked = {name: checksum(value) for name, value in held.items()}
        return json.dumps({"edp_bayes_noise": 1, **held, "checksums": checked})

    for text, reason in (
        ("{}", "found edp_bayes_noise = None, 1 would be right"),
        ("[1, 2]", "found edp_bayes_noise = None"),
        ('{"edp_bayes_noise": 7, "distributions": [], "record": {}}', "edp_bayes_noise = 7"),
        ("nonsense", "no JSON"),
        ('{"edp_bayes_noise": 1}', "damaged: distributions is not as it was saved"),
        (saved(distribution="laplace"), "'scale' is missing"),
        (
            saved(distribution="cauchy"),
            "distribution must be one of none, gaussian, laplace, lattice, found cauchy",
        ),
        (saved(distribution="laplace", scale="x"), "scale must be numeric, found 'x'"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises((InvalidInputError, InputTypeError), match=reason) as caught:
            NoiseDistribution.load(tmp_path / "bad.json")
        assert "bad.json" in str(caught.value)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        NoiseDistribution.load(tmp_path / "missing.json")


BAD = {
    "even": lambda: LatticeNoise(1.0, [0.5, 0.5]),
    "negative": lambda: LatticeNoise(1.0, [-0.1, 1.1, 0.0]),
    "sum": lambda: LatticeNoise(1.0, [0.2, 0.2, 0.2]),
    "spacing": lambda: LatticeNoise(0.0, [1.0]),
    "decay": lambda: LatticeNoise(1.0, [0.5], right=0.5, decay=1.0),
    "scale": lambda: LaplaceNoise(-1.0),
    "weights": lambda: NoiseDistribution((NoNoise(),), (0.5,)),
    "none": lambda: NoiseDistribution((), ()),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_bad_distributions_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()


def test_unknown_distributions_are_refused():
    for bad in (3.0, "laplace", None):
        with pytest.raises(InputTypeError, match="noise must be"):
            as_distribution(bad)
    with pytest.raises(InputTypeError, match="found str"):
        NoiseDistribution(("laplace",))


def test_values_far_beyond_a_lattice():
    distribution = LatticeNoise(1e-12, [0.25, 0.5, 0.25])
    far = np.array([1e8, 1e19, 1e300, np.inf])
    np.testing.assert_array_equal(distribution.cdf(far), 1.0)
    np.testing.assert_array_equal(distribution.cdf(-far), 0.0)
    np.testing.assert_array_equal(distribution.pdf(np.r_[far, -far]), 0.0)
