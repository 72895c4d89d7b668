"""What holds of every reference mechanism: interface, simulation against the stated truths."""

import dataclasses
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from edp_bayes import mechanisms
from edp_bayes.exceptions import EdpBayesError, InputTypeError, InvalidInputError
from edp_bayes.mechanisms import DiscreteMechanism, Mechanism

SUITE = mechanisms.suite()
by_name = pytest.mark.parametrize("mechanism", SUITE, ids=[m.name for m in SUITE])
DISCRETE = [m for m in SUITE if isinstance(m, DiscreteMechanism)]
SIZE = 100_000
# A chi-square or Kolmogorov statistic beyond this has probability 1e-6.
RARE = 1e-6


def keys(sample):
    return [tuple(row) for row in sample.tolist()] if sample.ndim == 2 else sample.tolist()


@by_name
def test_interface(mechanism):
    assert isinstance(mechanism, Mechanism)
    assert dataclasses.is_dataclass(mechanism)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.pair = (0, 1)
    assert mechanism.kind in ("continuous", "discrete", "mixed")
    assert mechanism.adjacency in ("substitution", "add-remove")
    for database in mechanism.pair:
        sample = mechanism(database, 50, np.random.default_rng(1))
        assert sample.shape[0] == 50
        assert sample.ndim in (1, 2)
        assert sample.dtype.kind == ("i" if mechanism.kind == "discrete" else "f")
        np.testing.assert_array_equal(sample, mechanism(database, 50, 1))
        assert np.isfinite(sample).all()


def test_names_are_different():
    assert len({m.name for m in SUITE}) == len(SUITE) == 23


@pytest.mark.full
@by_name
def test_truths_agree_with_each_other(mechanism):
    epsilon = mechanism.epsilon()
    taus = [mechanism.local_epsilon(tau) for tau in (1e-4, 0.01, 0.4)]
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(taus))
    assert all(0.0 <= size <= epsilon + 1e-9 for size in taus)
    curve = [mechanism.delta(epsilon=e) for e in (0.0, 0.5, 3.0)]
    assert all(0.0 <= b <= a <= 1.0 for a, b in itertools.pairwise(curve))
    if math.isfinite(epsilon):
        assert mechanism.delta(epsilon=epsilon + 1e-9) == pytest.approx(0.0, abs=1e-12)
        assert mechanism.delta(epsilon=0.9 * epsilon) > 0.0
    else:
        assert mechanism.delta(epsilon=3.0) > 0.0


@pytest.mark.full
@pytest.mark.parametrize("mechanism", DISCRETE, ids=[m.name for m in DISCRETE])
def test_discrete_distributions_are_those_of_the_samplers(mechanism):
    from scipy.stats import chi2

    for seed, database in enumerate(mechanism.pair):
        distribution = mechanism.distribution(database)
        assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
        seen, counts = np.unique(mechanism(database, SIZE, seed), axis=0, return_counts=True)
        found = dict(zip(keys(seen), counts.tolist(), strict=True))
        possible = {k: mass for k, mass in distribution.items() if mass > 0.0}
        assert set(found) <= set(possible)
        statistic = sum(
            (found.get(k, 0) - SIZE * mass) ** 2 / (SIZE * mass) for k, mass in possible.items()
        )
        assert chi2.sf(statistic, max(len(possible) - 1, 1)) > RARE


def simulated_delta(mechanism, log_ratio, epsilon):
    """Estimate both hockey-stick integrals from samples and known log ratios, with an error."""
    x, other = (log_ratio(mechanism(d, SIZE, s)) for s, d in enumerate(mechanism.pair, start=5))
    forward = np.mean(x > epsilon) - math.exp(epsilon) * np.mean(other > epsilon)
    backward = np.mean(other < -epsilon) - math.exp(epsilon) * np.mean(x < -epsilon)
    return max(forward, backward), (1 + math.exp(epsilon)) / math.sqrt(SIZE)


def laplace_ratio(mechanism, rows):
    first, second = (np.array(d) for d in mechanism.pair)
    return ((np.abs(rows - second) - np.abs(rows - first)) / mechanism.scale).sum(axis=1)


@pytest.mark.parametrize("right_scale", [True, False])
def test_histogram_delta_by_simulation(right_scale):
    mechanism = mechanisms.NoisyHistogram(0.5, right_scale=right_scale)
    for epsilon in (0.0, 0.3):
        found, error = simulated_delta(
            mechanism, lambda rows: laplace_ratio(mechanism, rows), epsilon
        )
        assert abs(found - mechanism.delta(epsilon=epsilon)) < 3 * error


def test_prefix_sum_delta_by_simulation_of_its_rows():
    mechanism = mechanisms.PrefixSum(0.5)
    found, error = simulated_delta(
        mechanism, lambda rows: laplace_ratio(mechanism, np.diff(rows, prepend=0.0, axis=1)), 0.1
    )
    assert abs(found - mechanism.delta(epsilon=0.1)) < 3 * error


def test_several_changed_counts_have_an_epsilon_but_no_known_delta():
    mechanism = mechanisms.NoisyHistogram(0.5, pair=((1.0, 1.0), (2.0, 0.0)))
    assert mechanism.epsilon() == 1.0
    assert mechanism.delta(epsilon=0.1) is None


NUMERIC = [m for m in SUITE if "RAPPOR" not in m.name]


@pytest.mark.parametrize("bad", ["text", (1.0, math.nan), (), None], ids=str)
@pytest.mark.parametrize("mechanism", NUMERIC, ids=[m.name for m in NUMERIC])
def test_a_bad_database_is_refused(mechanism, bad):
    with pytest.raises(EdpBayesError):
        mechanism(bad, 10, 1)


@by_name
def test_bad_sizes_epsilons_and_taus_are_refused(mechanism):
    with pytest.raises(InvalidInputError, match="size"):
        mechanism(mechanism.pair[0], 0, 1)
    with pytest.raises(InputTypeError, match="size"):
        mechanism(mechanism.pair[0], 2.5, 1)
    with pytest.raises(InvalidInputError, match="epsilon"):
        mechanism.delta(epsilon=-0.1)
    for tau in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInputError, match="tau"):
            mechanism.local_epsilon(tau)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (mechanisms.Laplace, {"scale": 0.0}),
        (mechanisms.Laplace, {"pair": (1.0,)}),
        (mechanisms.Geometric, {"pair": (1, 2, 3)}),
        (mechanisms.OneTimeRappor, {"pair": 3}),
        (mechanisms.PrefixSum, {"pair": ((1.0,),)}),
        (mechanisms.Gaussian, {"scale": -1.0}),
        (mechanisms.RestrictedLaplace, {"pair": (-1.0, 1.0)}),
        (mechanisms.Geometric, {"budget": 0.0}),
        (mechanisms.Geometric, {"pair": (0.5, 1)}),
        (mechanisms.TruncatedGeometric, {"pair": (0, 6)}),
        (mechanisms.RandomizedResponse, {"choices": 1}),
        (mechanisms.RandomizedResponse, {"pair": (0, 2)}),
        (mechanisms.Rappor, {"hashes": 5}),
        (mechanisms.Rappor, {"permanent": 1.0}),
        (mechanisms.NoisyMaxIndex, {"noise": "uniform"}),
        (mechanisms.NoisyMaxValue, {"pair": ((1.0,), (1.0, 2.0))}),
        (mechanisms.SparseVector, {"variant": 3}),
        (mechanisms.SparseVector, {"pair": ((0.0,) * 13, (1.0,) * 13)}),
        (mechanisms.NumericalSparseVector, {"threshold": math.inf}),
        (mechanisms.ExponentialMechanism, {"sensitivity": 0.0}),
    ],
    ids=str,
)
def test_bad_settings_are_refused(make, options):
    with pytest.raises(EdpBayesError):
        make(**options)


def test_importing_the_suite_imports_nothing_heavy():
    heavy = ("pymc", "arviz_base", "xarray", "scipy", "numba", "pandas", "matplotlib")
    code = (
        "import sys, edp_bayes.mechanisms, edp_bayes.plugin.local_privacy, "
        "edp_bayes.black_box.membership, "
        f"edp_bayes.interval; print([m for m in {heavy} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
