"""W_inf, bottleneck and partial noise, and the counterexamples to the published forms."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import edp_bayes as edp
from edp_bayes import LaplaceNoise, Mixture
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise import NoiseDistribution, NoNoise
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.closed_forms import bottleneck, laplace_scales, partial
from edp_bayes.noise.transport import bottleneck_distance, paired_distances


def by_linear_program(a, v, b, w):
    """Smallest t such that all mass can be moved by at most t: a transport problem for each t."""
    gaps = np.abs(a[:, None] - b)
    rows = np.kron(np.eye(a.size), np.ones(b.size))
    columns = np.kron(np.ones(a.size), np.eye(b.size))
    for t in np.unique(gaps):
        bounds = [(0, None if g <= t else 0) for g in gaps.ravel()]
        found = linprog(
            np.zeros(gaps.size),
            A_eq=np.vstack([rows, columns]),
            b_eq=np.concatenate([v, w]),
            bounds=bounds,
        )
        if found.status == 0:
            return t
    raise AssertionError


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_weighted_distance_is_that_of_optimal_transport(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=4), rng.normal(size=5)
    v, w = rng.multinomial(8, np.ones(4) / 4) / 8, rng.multinomial(8, np.ones(5) / 5) / 8
    assert bottleneck_distance(a, b, v, w) == pytest.approx(by_linear_program(a, v, b, w))


def test_equal_weights_pair_the_sorted_samples():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=40)
    assert bottleneck_distance(a, b) == np.abs(np.sort(a) - np.sort(b)).max()


def test_many_weights_at_once_are_the_same(responses):
    weights = np.random.default_rng(1).dirichlet(np.ones(24), 7)
    moves = responses.contribution_of(0)
    found = paired_distances(responses.response, moves, weights)
    for row, value in zip(weights, found, strict=True):
        y = responses.response
        assert value == pytest.approx(bottleneck_distance(y, y - moves, row))
    assert (found <= np.abs(moves).max()).all()


def test_sorted_samples_are_not_sound_for_unequal_weights():
    """y = (0, 10), y_i = (10, 0), weights (0.9, 0.1): the sorted distance is 0."""
    p = Mixture([0.9, 0.1], [0.0, 10.0], 1.0, kernel="laplace")
    q = Mixture([0.9, 0.1], [10.0, 0.0], 1.0, kernel="laplace")
    assert bottleneck_distance([0.0, 10.0], [10.0, 0.0]) == 0.0
    assert bottleneck_distance([0.0, 10.0], [10.0, 0.0], [0.9, 0.1]) == 10.0
    assert float(p.logpdf(0.0) - q.logpdf(0.0)) == pytest.approx(2.197, abs=1e-3)


def test_bad_distributions_are_refused():
    with pytest.raises(InvalidInputError, match="at least one value"):
        bottleneck_distance([], [])
    with pytest.raises(InvalidInputError, match="2 probabilities"):
        bottleneck_distance([0.0, 1.0], [0.0, 1.0], [0.9, 0.9])


@pytest.mark.parametrize("source", ["plug_in", "bootstrap", "mixture"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_laplace_scales_are_enough_in_every_draw(source, epsilon, request):
    posterior = request.getfixturevalue(source)
    scales = laplace_scales(posterior, epsilon)
    assert np.isfinite(scales).all()
    for draw in range(0, posterior.n_draws, 11):
        noise = NoiseDistribution((LaplaceNoise(float(scales[draw])),))
        found = certified_log_ratios(
            posterior, noise, epsilon, draws=np.array([draw]), screen=False
        )
        assert found.largest[0] <= epsilon * (1 + 2e-3)


def test_partial_noise_makes_a_laplace_kernel_a_wider_one():
    """Its characteristic function over that of the kernel is 1 / (1 + b^2 t^2) once more."""
    s, b = mp.mpf("30.9"), mp.mpf("65.75")
    atom = (s / b) ** 2
    for t in (mp.mpf("0.001"), mp.mpf("0.1"), mp.mpf(7)):
        noise = atom + (1 - atom) / (1 + (b * t) ** 2)
        assert abs(noise / (1 + (s * t) ** 2) - 1 / (1 + (b * t) ** 2)) < 1e-14


@given(st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.999]))
def test_bottleneck_noise_is_enough_in_the_share_of_draws_asked_for(draws, prob):
    scales = np.random.default_rng(draws).permutation(np.arange(1.0, draws + 1.0))
    noise = bottleneck(scales, prob).mean_absolute
    assert (scales <= noise).mean() >= prob - 1e-12
    assert (scales < noise - 0.5).mean() < prob


def test_partial_noise_holds_and_is_less_than_bottleneck(bootstrap):
    scales = laplace_scales(bootstrap, 0.2)
    noise, proved = partial(bootstrap, scales, 0.9)
    assert proved >= 0.9
    assert noise.mean_absolute < np.quantile(scales, 0.9)
    assert certified_log_ratios(bootstrap, noise, 0.2).share(0.2) >= 0.9


def test_partial_noise_needs_laplace_kernels(mixture):
    with pytest.raises(InvalidInputError, match="Laplace kernels of one scale"):
        partial(mixture, np.ones(mixture.n_draws), 0.9)


def test_the_published_hausdorff_construction_breaks_its_promise():
    """A = {0, 10, 10.1, 10.2}, B = {0, 0.1, 0.2, 10}, four times over: the claim is 0.2."""
    y = np.repeat([0.0, 10.0, 10.1, 10.2], 4) + 1e-9 * np.arange(16)
    moved = np.repeat([0.0, 0.1, 0.2, 10.0], 4) + 1e-9 * np.arange(16)
    with pytest.warns(edp.EdpBayesWarning):
        data = edp.Responses.from_arrays(y, moved)
    model = edp.noise.FixedBandwidth(0.02)
    with pytest.warns(edp.EdpBayesWarning, match="does not guarantee epsilon"):
        noise = edp.noise.calibrate(data, epsilon=0.2, method="hausdorff", model=model)
    assert noise.mean_absolute == pytest.approx(1.0, rel=1e-6)
    assert noise.record["reached"] == 0.0
    check = edp.noise.verify(data, noise, epsilon=[0.2, 1.21], model=model, progressbar=False)
    assert float(check.log_ratio[0, 0]) == pytest.approx(1.2018, rel=0.01)
    assert check.probability(epsilon=0.2) == 0.0


def test_no_noise_is_an_atom():
    assert NoiseDistribution((NoNoise(),)).mean_absolute == 0.0


@pytest.mark.parametrize("method", ["bottleneck", "partial"])
def test_rounding_takes_no_draw_that_meets_epsilon_exactly(method):
    # Capped contributions: the same distance, hence log ratio 1 to the last digit, in many draws.
    rng = np.random.default_rng(4)
    y = rng.normal(100.0, 3.0, 40)
    contribution = np.minimum(rng.gamma(4.0, 0.5, (40, 12)), 1.0)
    responses = edp.Responses.from_arrays(y, contribution=contribution)
    model = edp.SmoothedBootstrap(kernel="laplace")
    options = {"model": model, "draws": 25, "random_seed": 1, "progressbar": False}
    noise = edp.noise.calibrate(responses, epsilon=1.0, method=method, prob=0.9, **options)
    assert noise.record["reached"] >= 0.9
