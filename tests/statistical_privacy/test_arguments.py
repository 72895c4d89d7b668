"""Bad input gets an error that says what was found; the package stays light."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import edp_bayes
from edp_bayes import statistical_privacy as sp
from edp_bayes.exceptions import InputTypeError, InvalidInputError

BAD = {
    "prob 0": (InvalidInputError, "trivial", {"prob": 0.0}),
    "prob 1": (InvalidInputError, "trivial", {"prob": [0.5, 1.0]}),
    "prob negative": (InvalidInputError, "prob must lie strictly.*-0.1", {"prob": -0.1}),
    "prob NaN": (InvalidInputError, "prob must be finite", {"prob": np.nan}),
    "prob text": (InputTypeError, "prob must be numeric", {"prob": "often"}),
    "n too small": (InvalidInputError, "n must be at least 2, found 1", {"n": 1}),
    "n not whole": (InputTypeError, "n must hold whole numbers", {"n": 10.5}),
    "n NaN": (InvalidInputError, "n must be finite", {"n": np.nan}),
    "n huge": (InvalidInputError, "n must be at most", {"n": 10**18}),
    "epsilon negative": (InvalidInputError, "must not be negative.*-1", {"epsilon": [0.1, -1.0]}),
    "epsilon NaN": (InvalidInputError, "NaN", {"epsilon": np.nan}),
    "epsilon text": (InputTypeError, "epsilon must be numeric", {"epsilon": "small"}),
    "known all": (InvalidInputError, "known must be below n", {"known": 100}),
    "known negative": (InvalidInputError, "known must be at least 0", {"known": -1}),
    "known_positive": (
        InvalidInputError,
        "known_positive must not exceed known, found 4 of 3",
        {"known": 3, "known_positive": 4},
    ),
    "sample too large": (
        InvalidInputError,
        "at most n, found a size of 101 with n = 100",
        {"mechanism": sp.Subsampling(size=101)},
    ),
    "rate draws nothing": (
        InvalidInputError,
        "draws none of n = 100",
        {"mechanism": sp.Subsampling(rate=0.001)},
    ),
    "mechanism text": (InputTypeError, "mechanism must be", {"mechanism": "gaussian"}),
    "mechanism order": (
        InvalidInputError,
        "at most one sampling followed",
        {"mechanism": (sp.GaussianNoise(0.1), sp.Subsampling(size=5))},
    ),
    "two noises": (
        InvalidInputError,
        "at most one noise",
        {"mechanism": (sp.GaussianNoise(0.1), sp.LaplaceNoise(0.1))},
    ),
    "epsilon too large for noise": (
        InvalidInputError,
        "at most 700",
        {"mechanism": sp.GaussianNoise(0.1), "epsilon": 701.0},
    ),
    "shapes": (
        InvalidInputError,
        "must broadcast",
        {"epsilon": [0.1, 0.2], "prob": [0.1, 0.2, 0.3]},
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("function", ["delta", "delta_plus", "delta_minus"])
def test_bad_arguments_of_curves(function, case):
    error, words, change = BAD[case]
    arguments = {"epsilon": 0.1, "n": 100, "prob": 0.3} | change
    with pytest.raises(error, match=words):
        getattr(sp, function)(**arguments)


@pytest.mark.parametrize("scale", [-0.1, 0.0, np.nan, np.inf])
@pytest.mark.parametrize("distribution", ["GaussianNoise", "LaplaceNoise"])
def test_bad_scales(distribution, scale):
    with pytest.raises(InvalidInputError, match="noise scale"):
        getattr(sp, distribution)(scale)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, InvalidInputError, "either the size or the rate"),
        ({"size": 3, "rate": 0.1}, InvalidInputError, "either the size or the rate"),
        ({"size": 0}, InvalidInputError, "sample size must be at least 1"),
        ({"size": 2.5}, InputTypeError, "sample size must be an integer"),
        ({"rate": 0.0}, InvalidInputError, "sampling rate must be greater than 0"),
        ({"rate": 1.5}, InvalidInputError, "sampling rate must be at most 1"),
        ({"rate": np.nan}, InvalidInputError, "sampling rate must be finite"),
    ],
)
def test_bad_subsampling(options, error, words):
    with pytest.raises(error, match=words):
        sp.Subsampling(**options)


def raises(words, error=InvalidInputError):
    return pytest.raises(error, match=words)


def test_bad_arguments_of_the_other_functions():
    with raises("delta must lie in"):
        sp.epsilon_at(1.5, 100, 0.3)
    with raises("delta must lie in"):
        sp.epsilon_at(np.nan, 100, 0.3)
    with raises("must broadcast"):
        sp.epsilon_at([0.1, 0.2], [10, 20, 30], 0.3)
    with raises("epsilon above 700"):
        sp.epsilon_at(1e-200, 3, 0.3, mechanism=sp.GaussianNoise(0.001))
    with raises("delta must be 0 or at least 1e-300"):
        sp.epsilon_at(1e-305, 100, 0.3)
    with raises("kind must be one of"):
        sp.utility_loss(100, 0.3, kind="cubic")
    with raises("leave entries out"):
        sp.matching_scale(sp.Subsampling(rate=1.0), 100, 0.3, sp.GaussianNoise)
    with raises("noise must be", InputTypeError):
        sp.matching_scale(sp.Subsampling(rate=0.5), 100, 0.3, sp.Subsampling)
    with raises("sampling must be", InputTypeError):
        sp.matching_scale(0.5, 100, 0.3, sp.GaussianNoise)
    with raises("noise must be", InputTypeError):
        sp.matching_rate(0.5, 100, 0.3)
    with raises("more than the"):
        sp.matching_rate(sp.GaussianNoise(9.0), 100, 0.3)
    with raises("double sum"):
        both = (sp.Subsampling(rate=0.5), sp.GaussianNoise(1e-5))
        sp.utility_loss(10**9, 0.3, both, kind="absolute")
    with raises("epsilon must be finite"):
        sp.subsampling_bound(100, 0.3, sp.Subsampling(rate=0.5), epsilon=np.inf)
    with raises("sampling must be", InputTypeError):
        sp.subsampling_bound(100, 0.3, sp.GaussianNoise(0.1), epsilon=0.1)
    with raises("number of entries drawn must be at least 2"):
        sp.normal_approximation(100, 0.3, epsilon=0.1, mechanism=sp.Subsampling(size=1))
    with raises("scale must be greater than 0"):
        sp.laplace_epsilon(100, -1.0)


def test_bad_groups_and_beta_distributions():
    with raises("sample size must be at most n"):
        sp.group_delta([5, 5], [0.1, 0.2], epsilon=0.1, mechanism=sp.Subsampling(size=11))
    with raises("one value for each group"):
        sp.group_delta([5, 5, 5], [0.1, 0.2], epsilon=0.1)
    with raises("at least 2 entries"):
        sp.group_delta([1], [0.1], epsilon=0.1)
    with raises("trivial"):
        sp.group_delta([5, 5], [0.1, 1.0], epsilon=0.1)
    with raises("sizes must be at least 1"):
        sp.group_delta([5, 0], [0.1, 0.2], epsilon=0.1)
    with raises("at most 700"):
        sp.group_delta([5, 5], [0.1, 0.2], epsilon=800.0, mechanism=sp.GaussianNoise(0.1))
    with raises("alpha must be greater than 0"):
        sp.beta_binomial_delta(10, 0.0, 1.0, epsilon=0.1)
    with raises("beta must be finite"):
        sp.beta_binomial_delta(10, 1.0, np.nan, epsilon=0.1)


def test_a_property_query_is_its_curves():
    query = sp.PropertyQuery(200, 0.2, sp.Subsampling(size=50), known=3, known_positive=1)
    epsilon = np.linspace(0.0, 0.3, 4)
    options = {"mechanism": query.mechanism, "known": 3, "known_positive": 1}
    for name in ("delta", "delta_plus", "delta_minus"):
        expected = getattr(sp, name)(200, 0.2, epsilon=epsilon, **options)
        np.testing.assert_array_equal(getattr(query, name)(epsilon=epsilon), expected)
    at = query.delta(epsilon=0.2)
    assert query.epsilon_at(at) == pytest.approx(0.2, rel=1e-9)
    assert query.utility_loss() == sp.utility_loss(200, 0.2, query.mechanism)
    with raises("trivial"):
        sp.PropertyQuery(200, 1.0)
    with raises("n must be a single number", InputTypeError):
        sp.PropertyQuery([200, 300], 0.2)


def test_the_noise_distributions_are_those_of_the_package():
    assert sp.GaussianNoise is edp_bayes.GaussianNoise
    assert sp.LaplaceNoise is edp_bayes.LaplaceNoise


def test_names_exist_and_the_package_is_light():
    for name in sp.__all__:
        assert getattr(sp, name) is not None
    assert set(dir(sp)) == set(sp.__all__)
    with pytest.raises(AttributeError):
        _ = sp.nothing
    heavy = ("numba", "scipy", "matplotlib", "xarray", "pymc")
    code = (
        f"import sys, edp_bayes.statistical_privacy;print([m for m in {heavy} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.full
def test_numerics_import_neither_models_nor_plots():
    code = (
        "import sys, edp_bayes.statistical_privacy as sp;"
        "sp.delta(10, 0.3, epsilon=0.1, mechanism=sp.GaussianNoise(0.1));"
        "sp.normal_approximation(10, 0.3, epsilon=0.1);"
        "print([m for m in ('pymc', 'arviz_base', 'matplotlib', 'xarray') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
