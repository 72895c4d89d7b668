import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import directed_hausdorff

from edp_bayes.distributions.neighbours import neighbour_distances
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.plugin import (
    bootstrap,
    bottleneck_epsilon,
    empirical_privacy,
    hausdorff_epsilon,
    integrals,
)
from edp_bayes.plugin.quotient import cell_points, hockey_stick, step_density
from edp_bayes.plugin.resampling import _rechosen, _resampled_risks
from edp_bayes.plugin.selection import (
    bandwidth_grid,
    best_bandwidth,
    candidates,
    held_out_ratios,
    held_out_scores,
    sample_of,
    variable_ratios,
)
from edp_bayes.responses.responses import Responses

DISTRIBUTIONS = {"gaussian": stats.norm, "laplace": stats.laplace}
EPSILON = np.array([0.0, 0.1, 0.5, 1.5])


def study(n=21, individuals=4, seed=0, size=0.3, **options):
    """Responses with one individual that is never there and one that is there sometimes."""
    rng = np.random.default_rng(seed)
    samples = options.get("samples", 1)
    contribution = size * rng.exponential(size=(n * samples, individuals))
    contribution[:, 0] = 0.0
    contribution[::3, 1] = 0.0
    return Responses.from_arrays(rng.normal(size=n * samples), contribution=contribution, **options)


def quadrature(kernel, y, moved, scales, epsilon, cells=60):
    """Both hockey-stick integrals, the larger: two Gauss points in every cell.

    Kinks lie on cell edges, and so do sign changes up to an interpolation; tails of 25 scales
    are cut off.
    """
    knots = np.unique(np.concatenate([y, moved]))
    tails = np.linspace(0, 25 * scales.max(), 20 * cells)
    inner = [np.linspace(a, b, cells + 1) for a, b in pairwise(knots)]
    edges = np.unique(np.concatenate([knots[0] - tails, knots[-1] + tails, *inner]))

    def kernels(u):
        return np.exp(-u * u / 2) / np.sqrt(2 * np.pi) if kernel == "gaussian" else np.exp(-u) / 2

    def gap(x, ratio):
        return sum(
            (kernels(np.abs(x - a) / s) - ratio * kernels(np.abs(x - b) / s)) / (s * y.size)
            for a, b, s in zip(y, moved, scales, strict=True)
        )

    def forward(ratio):
        ends = gap(edges, ratio)
        k = np.flatnonzero(ends[:-1] * ends[1:] < 0)
        roots = edges[k] + np.diff(edges)[k] * ends[k] / (ends[k] - ends[k + 1])
        split = np.unique(np.concatenate([edges, roots]))
        half = np.diff(split) / 2
        x = (split[:-1] + half)[:, None] + half[:, None] * np.array([-1, 1]) / np.sqrt(3)
        return (half @ np.maximum(gap(x, ratio), 0)).sum(), (half @ gap(x, ratio)).sum()

    curves = []
    for e in epsilon:
        # H(q || p) is exp(eps) times the negative part of p - exp(-eps) q.
        positive, whole = forward(np.exp(-e))
        curves.append(max(forward(np.exp(e))[0], np.exp(e) * (positive - whole)))
    return np.array(curves)


# difference quotient


def exact_hockey_stick(y, moved, points, ratio):
    """The same finite sum in exact arithmetic, cell by cell."""

    def density(values):
        values = sorted(Fraction(v) for v in values)
        last = len(values) - 1
        cells = max(1, round(last / points))
        edges = sorted({values[round(last * k / cells)] for k in range(cells + 1)})
        out = []
        for k, (a, b) in enumerate(pairwise(edges)):
            inside = sum(a < v < b for v in values)
            ends = (a, k == 0), (b, k == len(edges) - 2)
            # Half of an inner edge, all but half a point of an outer one.
            shares = [
                values.count(v) - Fraction(1, 2) if outer else Fraction(values.count(v), 2)
                for v, outer in ends
            ]
            out.append((a, b, (inside + sum(shares)) / last / (b - a)))
        return out

    p, q = density(y), density(moved)
    edges = sorted({e for a, b, _ in p + q for e in (a, b)})

    def height(distribution, a, b):
        return next((h for lo, hi, h in distribution if lo <= a and b <= hi), Fraction(0))

    sums = [Fraction(0), Fraction(0)]
    for a, b in pairwise(edges):
        u, v = height(p, a, b), height(q, a, b)
        sums[0] += (b - a) * max(u - ratio * v, 0)
        sums[1] += (b - a) * max(v - ratio * u, 0)
    return float(max(sums))


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-4, 4)), min_size=2, max_size=15),
    st.integers(1, 5),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_step_hockey_stick_is_the_exact_sum(rows, points):
    y = np.array([row[0] for row in rows], dtype=float)
    moved = y - np.array([row[1] for row in rows])
    assume(np.ptp(y) > 0 and np.ptp(moved) > 0)
    p, q = step_density(y, points), step_density(moved, points)
    assert (p.heights * np.diff(p.edges)).sum() == pytest.approx(1, abs=1e-12)
    found = hockey_stick(p, q, epsilon=np.log([1.0, 2.0, 5.0]))
    exact = [exact_hockey_stick(y, moved, points, ratio) for ratio in (1, 2, 5)]
    assert found == pytest.approx(exact, abs=1e-12)


def test_quotient_where_only_one_density_is_positive():
    p, q = step_density(np.arange(5.0), 2), step_density(np.arange(5.0) - 1.0, 2)
    # Uniform on [0, 4] and on [-1, 3]: a quarter is apart, whatever epsilon is.
    assert hockey_stick(p, q, epsilon=np.array([0.0, 3.0, 700.0])) == pytest.approx(0.25)


def test_quotient_of_point_masses():
    distribution, atom = step_density(np.arange(5.0), 2), step_density(np.ones(5), 2)
    assert hockey_stick(distribution, atom, epsilon=EPSILON).tolist() == [1.0] * 4
    assert hockey_stick(atom, atom, epsilon=EPSILON).tolist() == [0.0] * 4
    assert hockey_stick(atom, step_density(np.zeros(5), 2), epsilon=EPSILON).tolist() == [1.0] * 4


def test_quotient_estimate_takes_about_root_n_points():
    responses = study(n=41)
    result = empirical_privacy(responses, epsilon=EPSILON, density="difference_quotient")
    assert (result.density, result.kernel, result.bandwidth) == ("difference_quotient", None, 6)
    assert cell_points(41) == 6
    assert result.log_likelihood == {"difference_quotient": -np.inf}
    y, moved = responses.response, responses.response_without(3)
    assert result.individual_delta[3] == pytest.approx(
        [exact_hockey_stick(y, moved, 6, Fraction(float(np.exp(e)))) for e in EPSILON], abs=1e-12
    )


# choice of density and bandwidth


@given(
    st.lists(st.integers(0, 30), min_size=4, max_size=20),
    st.integers(1, 3),
)
@settings(derandomize=True, deadline=None)
def test_neighbour_distances_are_those_of_sorted_gaps(values, neighbours):
    y = np.array(values, dtype=float)
    brute = np.sort(np.abs(y[:, None] - y), axis=1)[:, neighbours]
    assert neighbour_distances(y, neighbours).tolist() == brute.tolist()


def naive_score(sample, counts, bandwidth, kernel, neighbours=None):
    """Score each row by an estimate made, from the start, without its database."""
    total = 0.0
    for j, point in enumerate(sample.response):
        kept = np.flatnonzero(sample.database != sample.database[j])
        y = sample.response[kept]
        weight = counts[sample.database[kept]]
        scale = np.full(y.size, bandwidth)
        if neighbours is not None:
            distance = np.sort(np.abs(y[:, None] - y), axis=1)[:, neighbours]
            scale = bandwidth * distance / stats.gmean(distance)
        density = (weight * DISTRIBUTIONS[kernel].pdf(point, y, scale)).sum() / weight.sum()
        if counts[sample.database[j]]:
            total += counts[sample.database[j]] * (np.log(density) if density > 0 else -np.inf)
    return total


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("density", ["fixed", "variable"])
@pytest.mark.parametrize("samples", [1, 3])
def test_scores_leave_the_whole_database_out(kernel, density, samples, monkeypatch):
    from edp_bayes.plugin import selection

    monkeypatch.setattr(selection, "CELLS_AT_ONCE", 100)
    sample = sample_of(study(n=20, samples=samples))
    counts = np.random.default_rng(1).integers(0, 3, size=(4, 20)).astype(float)
    grid = np.array([1.0, 1.5])
    found = held_out_scores(sample, counts, grid, kernel, held_out_ratios(sample, density, 3))
    neighbours = 3 if density == "variable" else None
    expected = [[naive_score(sample, c, h, kernel, neighbours) for h in grid] for c in counts]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_bandwidth_maximises_the_score(kernel):
    sample = sample_of(study(n=41))
    (found,) = candidates(sample, density="fixed", kernel=kernel)
    best = minimize_scalar(
        lambda u: -naive_score(sample, np.ones(41), np.exp(u), kernel),
        bracket=(np.log(found.bandwidth / 2), np.log(found.bandwidth)),
    )
    assert found.bandwidth == pytest.approx(np.exp(best.x), rel=0.02)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-3)
    assert found.log_likelihood == pytest.approx(
        naive_score(sample, np.ones(41), found.bandwidth, kernel), rel=1e-12
    )


def test_polish_finds_the_top_of_a_parabola_and_marks_edges():
    grid = np.geomspace(0.1, 10, 21)
    tops = np.array([0.3, 2.0, 0.01, 100.0])
    scores = -((np.log(grid) - np.log(tops)[:, None]) ** 2)
    bandwidth, at_edge = best_bandwidth(grid, scores)
    assert bandwidth == pytest.approx([0.3, 2.0, 0.1, 10.0])
    assert at_edge.tolist() == [False, False, True, True]
    flat, _ = best_bandwidth(grid, np.where(np.arange(21) == 4, 0.0, -np.inf)[None])
    assert flat == pytest.approx(grid[4:5])


def test_variable_ratios_have_unit_geometric_mean_despite_ties():
    y = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0])
    ratios = variable_ratios(y, 2)
    assert np.log(ratios).mean() == pytest.approx(0, abs=1e-12)
    assert (ratios > 0).all()
    assert variable_ratios(np.zeros(5), 2).tolist() == [1.0] * 5


def test_auto_takes_the_largest_likelihood():
    result = empirical_privacy(study(n=41), epsilon=EPSILON)
    assert set(result.log_likelihood) == {
        "fixed gaussian",
        "fixed laplace",
        "variable gaussian",
        "variable laplace",
        "difference_quotient",
    }
    best = max(result.log_likelihood, key=lambda name: result.log_likelihood[name])
    assert best == f"{result.density} {result.kernel}"
    for density in ("fixed", "variable"):
        for kernel in ("gaussian", "laplace"):
            alone = empirical_privacy(study(n=41), epsilon=EPSILON, density=density, kernel=kernel)
            name = f"{density} {kernel}"
            assert alone.log_likelihood == {name: result.log_likelihood[name]}


def test_heavy_ties_are_warned_of():
    y = np.repeat(np.arange(10.0), 3)
    with pytest.warns(EdpBayesWarning, match="tied"):
        responses = Responses.from_arrays(y, response_without=y - 0.1)
    with pytest.warns(EdpBayesWarning, match="best at the edge"):
        empirical_privacy(responses, epsilon=[1.0], density="fixed")


# estimates


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("density", ["fixed", "variable"])
@pytest.mark.parametrize("samples", [1, 2])
def test_risks_are_the_integrals(density, kernel, samples):
    responses = study(n=20, samples=samples)
    result = empirical_privacy(responses, epsilon=EPSILON, density=density, kernel=kernel)
    assert result.bandwidths.shape == (20 * samples,)
    assert result.individual_delta[0].tolist() == [0.0] * 4
    for i in (1, 3):
        expected = quadrature(
            kernel, responses.response, responses.response_without(i), result.bandwidths, EPSILON
        )
        assert result.individual_delta[i] == pytest.approx(expected, abs=1e-8)
    assert result.delta.tolist() == result.individual_delta.max(axis=0).tolist()
    assert result.total_risk == pytest.approx(
        1 - np.prod(1 - result.individual_delta, axis=0), abs=1e-14
    )


def test_fixed_bandwidths_are_equal_and_given_ones_are_kept():
    result = empirical_privacy(
        study(), epsilon=EPSILON, density="fixed", bandwidth=0.4, kernel="laplace"
    )
    assert result.bandwidths.tolist() == [0.4] * 21
    assert result.bandwidth == 0.4


def test_laplace_risk_is_exactly_zero_beyond_the_largest_shift():
    responses = study()
    largest = responses.largest_contribution.max()
    result = empirical_privacy(
        responses, epsilon=[largest / 0.4], density="fixed", kernel="laplace", bandwidth=0.4
    )
    assert result.delta.tolist() == [0.0]
    assert result.total_risk.tolist() == [0.0]


@pytest.mark.parametrize("density", ["fixed", "variable", "difference_quotient"])
def test_blocks_do_not_change_the_result(density, monkeypatch):
    responses = study(individuals=7)
    kernel = "auto" if density == "difference_quotient" else "laplace"
    how = {"density": density, "kernel": kernel}
    whole = empirical_privacy(responses, epsilon=EPSILON, **how)
    band = bootstrap(responses, epsilon=EPSILON, resamples=9, random_seed=0, **how)
    monkeypatch.setattr(integrals, "BLOCK_VALUES", 60)
    pieces = empirical_privacy(responses, epsilon=EPSILON, **how)
    assert pieces.individual_delta.tolist() == whole.individual_delta.tolist()
    again = bootstrap(responses, epsilon=EPSILON, resamples=9, random_seed=0, **how)
    assert again.individual_delta.tolist() == band.individual_delta.tolist()
    assert again.total_risk == pytest.approx(band.total_risk, rel=1e-12)


def test_gaussian_noise_widens_gaussian_kernels():
    noisy = study(noise=GaussianNoise(0.6))
    result = empirical_privacy(noisy, epsilon=EPSILON, density="fixed")
    assert set(result.log_likelihood) == {"fixed gaussian"}
    widened = empirical_privacy(
        study(),
        epsilon=EPSILON,
        density="fixed",
        kernel="gaussian",
        bandwidth=float(np.hypot(result.bandwidth, 0.6)),
    )
    assert result.individual_delta == pytest.approx(widened.individual_delta, abs=1e-12)
    assert "difference_quotient" not in empirical_privacy(noisy, epsilon=EPSILON).log_likelihood


@pytest.mark.parametrize(
    ("noise", "options"),
    [
        (LaplaceNoise(1.0), {}),
        (GaussianNoise(1.0), {"kernel": "laplace"}),
        (GaussianNoise(1.0), {"density": "difference_quotient"}),
    ],
)
def test_noise_no_estimate_can_hold_is_refused(noise, options):
    with pytest.raises(InvalidInputError, match="known noise"):
        empirical_privacy(study(noise=noise), epsilon=EPSILON, **options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"density": "histogram"}, "density must be one of"),
        ({"density": "kernel"}, "density must be one of"),
        ({"kernel": "box"}, "kernel must be one of"),
        ({"bandwidth": 1.0}, "give density="),
        ({"density": "fixed", "bandwidth": 0.0}, "bandwidth must be greater"),
        ({"density": "difference_quotient", "bandwidth": 2.5}, "whole number"),
        ({"density": "difference_quotient", "bandwidth": 21}, "whole number"),
        ({"density": "variable", "neighbours": 20}, "at most 19"),
        ({"density": "variable", "neighbours": 0}, "at least 1"),
    ],
)
def test_bad_options_are_refused(options, match):
    with pytest.raises(InvalidInputError, match=match):
        empirical_privacy(study(), epsilon=EPSILON, **options)


def test_bad_epsilon_is_refused():
    with pytest.raises(InvalidInputError, match="epsilon"):
        empirical_privacy(study(), epsilon=[0.5, 0.1])


# bootstrap


@pytest.mark.parametrize("density", ["fixed", "variable", "difference_quotient"])
def test_a_resample_is_the_estimate_of_its_rows(density):
    responses = study(samples=2)
    sample = sample_of(responses)
    kernel = "auto" if density == "difference_quotient" else "laplace"
    (chosen,) = candidates(sample, density=density, kernel=kernel)
    counts = np.random.default_rng(2).multinomial(21, np.full(21, 1 / 21), size=3)
    risks = _resampled_risks(
        sample,
        responses.contribution,
        chosen,
        counts,
        np.full(3, chosen.bandwidth),
        EPSILON,
    )
    for k, count in enumerate(counts):
        rows = np.repeat(np.arange(42), count[sample.database])
        y, moved = responses.response[rows], responses.response_without(2)[rows]
        expected = (
            hockey_stick(
                *(step_density(v, int(chosen.bandwidth)) for v in (y, moved)), epsilon=EPSILON
            )
            if density == "difference_quotient"
            else quadrature("laplace", y, moved, chosen.bandwidth * chosen.ratios[rows], EPSILON)
        )
        assert risks[k, 2] == pytest.approx(expected, abs=1e-8)


def test_resampled_bandwidth_maximises_its_own_score():
    sample = sample_of(study(n=41))
    (chosen,) = candidates(sample, density="fixed", kernel="gaussian")
    counts = np.random.default_rng(3).multinomial(41, np.full(41, 1 / 41), size=3)
    lonely = np.eye(41, dtype=np.int64)[:1] * 41
    found = _rechosen(sample, chosen, np.vstack([np.ones((1, 41), int), counts, lonely]), None)
    assert found[0] == chosen.bandwidth
    assert found[-1] == chosen.bandwidth
    for bandwidth, count in zip(found[1:-1], counts, strict=True):
        score = naive_score(sample, count, bandwidth, "gaussian")
        for other in bandwidth_grid(sample.response):
            assert score >= naive_score(sample, count, other, "gaussian") - 1e-3


def test_same_seed_same_band_and_wider_with_more_probability():
    responses = study()
    options = {"resamples": 100, "random_seed": 5}
    first = bootstrap(responses, epsilon=EPSILON, **options)
    second = bootstrap(responses, epsilon=EPSILON, **options)
    assert first.individual_delta.tolist() == second.individual_delta.tolist()
    narrow = bootstrap(responses, epsilon=EPSILON, prob=0.5, **options)
    for field in ("individual_delta", "delta", "total_risk"):
        inner, outer = getattr(narrow, field), getattr(first, field)
        assert (outer[..., 0] <= inner[..., 0]).all()
        assert (inner[..., 1] <= outer[..., 1]).all()
    assert first.individual_delta.shape == (4, 4, 2)
    assert first.delta.shape == first.total_risk.shape == (4, 2)
    assert first.bandwidth.shape == (100,)


def test_bandwidth_can_be_kept():
    responses = study()
    kept = bootstrap(responses, epsilon=EPSILON, rechoose=False, resamples=10, random_seed=0)
    assert np.unique(kept.bandwidth).size == 1
    given_one = bootstrap(responses, epsilon=EPSILON, bandwidth=0.3, resamples=10, random_seed=0)
    assert np.unique(given_one.bandwidth).tolist() == [0.3]
    again = bootstrap(responses, epsilon=EPSILON, resamples=10, random_seed=0)
    assert np.unique(again.bandwidth).size > 1


def test_one_individual_is_quick():
    y = np.random.default_rng(0).normal(size=41)
    responses = Responses.from_arrays(y, response_without=y - 0.2)
    grid = np.linspace(0, 2, 20)
    bootstrap(responses, epsilon=grid, kernel="laplace", resamples=2)
    start = time.perf_counter()
    bootstrap(responses, epsilon=grid, kernel="laplace", resamples=200, random_seed=1)
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize(
    ("options", "match"),
    [({"resamples": 0}, "resamples"), ({"prob": 1.5}, "prob"), ({"kernel": "box"}, "kernel")],
)
def test_bad_bootstrap_options_are_refused(options, match):
    with pytest.raises(InvalidInputError, match=match):
        bootstrap(study(), epsilon=EPSILON, **options)


# distances


A = np.array([0, 10, 10.1, 10.2])
B = np.array([0, 0.1, 0.2, 10])


def largest_log_ratio(a, b, scale):
    # Between knots the log ratio is monotone, so the knots and the tails hold its extremes.
    x = np.concatenate([a, b])[:, None]
    p, q = (stats.laplace.pdf(x, v, scale).mean(axis=1) for v in (a, b))
    return np.abs(np.log(p / q)).max()


def test_published_proposition_fails_where_it_was_found_to():
    assert hausdorff_epsilon(A, B, 1.0) == pytest.approx(0.2)
    assert largest_log_ratio(A, B, 1.0) == pytest.approx(1.2018, abs=5e-5)
    assert largest_log_ratio(A, B, 1.0) > hausdorff_epsilon(A, B, 1.0)
    assert bottleneck_epsilon(A, B, 1.0) == pytest.approx(9.9)


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(-3, 3)), min_size=1, max_size=12),
    st.floats(0.3, 3),
)
@settings(derandomize=True, deadline=None)
def test_bottleneck_is_never_exceeded_and_hausdorff_is_scipys(rows, scale):
    a = np.array([row[0] for row in rows])
    b = a - np.array([row[1] for row in rows])
    assert largest_log_ratio(a, b, scale) <= bottleneck_epsilon(a, b, scale) + 1e-9
    distance = max(directed_hausdorff(u[:, None], v[:, None])[0] for u, v in ((a, b), (b, a)))
    assert hausdorff_epsilon(a, b, scale) == pytest.approx(distance / scale)


def test_samples_of_distances_are_checked():
    with pytest.raises(InvalidInputError, match="same number"):
        bottleneck_epsilon(A, B[:3], 1.0)
    with pytest.raises(InvalidInputError, match="at least one response"):
        hausdorff_epsilon([], B, 1.0)
    with pytest.raises(InvalidInputError, match="scale"):
        hausdorff_epsilon(A, B, 0.0)


# real data


def test_climate_divisions(data_dir):
    rain = np.load(data_dir / "us_climate_divisions_annual_mm.npz")["annual_mm"]
    places = rain.shape[1]
    y = rain.mean(axis=1)
    without = (rain.sum(axis=1, keepdims=True) - rain) / (places - 1)
    responses = Responses.from_arrays(y, response_without=without)
    result = empirical_privacy(
        responses, epsilon=[0.0, 0.05, 0.5], kernel="laplace", density="fixed"
    )
    assert result.individual_delta.shape == (places, 3)
    assert 0 < result.delta[0] < 0.2
    assert result.delta[2] == 0.0
    assert (np.diff(result.total_risk) <= 0).all()
    assert (result.total_risk >= result.delta).all()
    riskiest = int(result.individual_delta[:, 0].argmax())
    expected = quadrature("laplace", y, without[:, riskiest], result.bandwidths, [0.0])
    assert result.delta[0] == pytest.approx(expected[0], abs=1e-8)
