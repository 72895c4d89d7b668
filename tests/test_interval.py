"""Interval epsilon: the paper's numbers, posteriors of the true answer, plots and bad input."""

import math

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import edp_bayes as edp
from edp_bayes import interval
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.plots.interval import (
    plot_count_curves,
    plot_interval_level,
    plot_iso_curves,
    plot_level_curves,
    plot_width_curves,
)

mpl.use("agg")


class NowhereANumber:
    """A prior whose density is nan somewhere."""

    def logpdf(self, x):
        return np.where(np.asarray(x) > 4.0, np.nan, 0.0)

    def ppf(self, q):
        return stats.uniform(0, 10).ppf(q)


UNIFORM = stats.uniform(0, 1)
LAPLACE, GAUSSIAN = edp.LaplaceNoise(4.0), edp.GaussianNoise(4.0)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# The formula and its inverses


def test_the_papers_example_with_its_sign():
    assert interval.epsilon(100, 0.2, 0.8) == pytest.approx(0.0804719, abs=5e-8)


@settings(derandomize=True, deadline=None)
@given(
    count=st.floats(0.5, 1e6),
    width=st.floats(0.001, 2.0),
    level=st.floats(0.001, 0.999),
    sensitivity=st.floats(0.1, 100.0),
)
def test_the_inverses_are_inverses(count, width, level, sensitivity):
    e = interval.epsilon(count, width, level, sensitivity=sensitivity)
    assert e > 0.0
    back = interval.level_from_epsilon(count, width, epsilon=e, sensitivity=sensitivity)
    assert back == pytest.approx(level, rel=1e-9)
    back = interval.width_from_epsilon(count, level, epsilon=e, sensitivity=sensitivity)
    assert back == pytest.approx(width, rel=1e-9)


def test_the_level_is_that_of_laplace_noise():
    for sensitivity in (1.0, 3.0):
        found = interval.level_from_epsilon(50, 0.3, epsilon=0.1, sensitivity=sensitivity)
        noise = stats.laplace(scale=sensitivity / 0.1)
        assert found == pytest.approx(noise.cdf(15) - noise.cdf(-15), abs=1e-12)


def test_arrays_broadcast():
    found = interval.epsilon([[50], [100]], [0.1, 0.2, 0.4], 0.8)
    assert found.shape == (2, 3)
    assert found[1, 1] == interval.epsilon(100, 0.2, 0.8)


GOOD = {"count": 100, "width": 0.2, "level": 0.8}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"count": 0}, InvalidInputError, "count must be greater than 0"),
        ({"count": [10, -3]}, InvalidInputError, "found -3"),
        ({"count": math.nan}, InvalidInputError, "count must be finite"),
        ({"count": "many"}, InputTypeError, "count must be numeric"),
        ({"width": 0.0}, InvalidInputError, "width must be greater than 0"),
        ({"width": -0.1}, InvalidInputError, "width must be greater than 0"),
        ({"level": 0.0}, InvalidInputError, "level must lie strictly between 0 and 1"),
        ({"level": 1.0}, InvalidInputError, "level must lie strictly between 0 and 1"),
        ({"sensitivity": 0.0}, InvalidInputError, "sensitivity"),
        ({"count": [1, 2], "width": [0.1, 0.2, 0.3]}, InvalidInputError, "broadcast"),
    ],
    ids=str,
)
def test_bad_input_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        interval.epsilon(**{**GOOD, **change})


def test_inverses_refuse_bad_input_too():
    with pytest.raises(InvalidInputError, match="epsilon"):
        interval.level_from_epsilon(100, 0.2, epsilon=0.0)
    with pytest.raises(InvalidInputError, match="count"):
        interval.level_from_epsilon(0, 0.2, epsilon=0.1)
    with pytest.raises(InvalidInputError, match="level"):
        interval.width_from_epsilon(100, 1.2, epsilon=0.1)


# Figures


def test_data_of_the_papers_figures():
    """Figure 1 is epsilon against the width, Figure 2 against the level; both fall into one."""
    widths = interval.width_curves(width=[0.1, 0.2, 0.4], level=[0.5, 0.8])
    assert widths.dims == ("level", "width")
    np.testing.assert_allclose(widths.sel(level=0.8), 0.0804719 * np.array([2, 1, 0.5]), atol=1e-6)
    levels = interval.level_curves(level=[0.5, 0.8], width=[0.1, 0.2, 0.4])
    assert levels.dims == ("width", "level")
    xr.testing.assert_allclose(levels.transpose("level", "width"), widths)
    assert widths.attrs == levels.attrs == {"count": 100.0, "sensitivity": 1.0}
    assert (np.diff(interval.width_curves(), axis=1) < 0).all()
    assert (np.diff(interval.level_curves(), axis=1) > 0).all()
    with pytest.raises(InvalidInputError, match="level"):
        interval.level_curves(level=[0.5, 1.0])
    with pytest.raises(InvalidInputError, match="level"):
        interval.width_curves(level=[])


def test_data_of_other_curves():
    iso = interval.iso_curves()
    assert iso.dims == ("epsilon", "width")
    at = iso.sel(epsilon=0.1).isel(width=19)
    assert float(at) == interval.level_from_epsilon(100.0, float(at["width"]), epsilon=0.1)
    counts = interval.count_curves(count=[50, 100], width=[0.2, 0.4])
    np.testing.assert_allclose(counts.sel(width=0.2), [2 * 0.0804719, 0.0804719], atol=1e-6)
    with pytest.raises(InvalidInputError, match="width"):
        interval.iso_curves(width=[])


@pytest.mark.parametrize(
    ("plot", "curves"),
    [
        (plot_width_curves, interval.width_curves),
        (plot_level_curves, interval.level_curves),
        (plot_iso_curves, interval.iso_curves),
        (plot_count_curves, interval.count_curves),
    ],
    ids=["width", "level", "iso", "count"],
)
def test_figures_draw_their_curves(plot, curves):
    data = curves()
    pc = plot(backend="none")
    for i, curve in enumerate(data):
        drawn = pc.get_viz(f"curve_{i}", data.name)
        np.testing.assert_array_equal(drawn["y"], curve)
    assert plot(data, backend="matplotlib", visuals={"title": False}) is not None
    with pytest.raises(InvalidInputError, match="dims"):
        plot(data.isel({data.dims[0]: 0}), backend="none")
    with pytest.raises(InvalidInputError, match="visual"):
        plot(backend="none", visuals={"curve_99": False})


def test_plot_of_a_posterior_level():
    draws = np.random.default_rng(1).normal(100.0, 20.0, (2, 400))
    found = interval.posterior(draws, epsilon=0.1, width=[0.1, 0.2, 0.4])
    pc = plot_interval_level(found, ci_prob=0.9, backend="none")
    band = pc.get_viz("band", "interval_level")
    ends = np.quantile(draws, [0.05, 0.95])
    np.testing.assert_allclose(
        band["y_bottom"],
        interval.level_from_epsilon(ends[0], [0.1, 0.2, 0.4], epsilon=0.1),
        rtol=1e-3,
    )
    np.testing.assert_allclose(
        band["y_top"], interval.level_from_epsilon(ends[1], [0.1, 0.2, 0.4], epsilon=0.1), rtol=1e-3
    )
    assert plot_interval_level(found, backend="matplotlib") is not None
    with pytest.raises(InvalidInputError, match="interval_level"):
        plot_interval_level(interval.posterior(draws, width=0.1, level=0.8), backend="none")


# Audit of an interval


def test_audit_of_draws():
    draws = np.random.default_rng(1).normal(100.0, 5.0, (4, 500))
    found = interval.posterior(draws, width=[0.1, 0.2], level=[0.8, 0.9], epsilon=0.1)
    assert found["interval_epsilon"].dims == ("chain", "draw", "width", "level")
    assert found["interval_level"].dims == ("chain", "draw", "width")
    assert found["interval_width"].dims == ("chain", "draw", "level")
    np.testing.assert_allclose(
        found["interval_epsilon"].sel(width=0.2, level=0.8), interval.epsilon(draws, 0.2, 0.8)
    )
    np.testing.assert_allclose(
        found["interval_level"].sel(width=0.1), interval.level_from_epsilon(draws, 0.1, epsilon=0.1)
    )
    np.testing.assert_allclose(
        found["interval_width"].sel(level=0.9), interval.width_from_epsilon(draws, 0.9, epsilon=0.1)
    )
    np.testing.assert_array_equal(found["answer"], draws)
    assert found.attrs["inference_library"] == "edp_bayes"


def test_audit_takes_an_array_a_vector_a_number_and_the_absolute_value():
    array = xr.DataArray(np.full((3, 2), -50.0), dims=("draw", "chain"))
    assert interval.posterior(array, width=0.2, level=0.8)["interval_epsilon"].shape == (2, 3)
    assert interval.posterior([50.0, 60.0], width=0.2, level=0.8)["answer"].shape == (1, 2)
    for answer in (100, -100.0):
        found = interval.posterior(answer, width=0.2, level=0.8, sensitivity=2.0)
        assert float(found["interval_epsilon"].squeeze()) == pytest.approx(2 * 0.0804719, abs=1e-7)


def test_audit_is_understood_by_arviz(tmp_path):
    from arviz_stats import summary

    draws = np.random.default_rng(1).normal(100.0, 5.0, (4, 500))
    found = interval.posterior(draws, width=0.2, level=[0.8, 0.9])
    table = summary(xr.DataTree.from_dict({"posterior": found}), ci_prob=0.9, round_to="none")
    assert {"answer", "interval_epsilon[0.8]"} <= set(table.index)
    found.to_netcdf(tmp_path / "interval.nc", engine="h5netcdf")


@pytest.mark.parametrize(
    ("answer", "options", "error"),
    [
        (100.0, {}, InvalidInputError),
        (100.0, {"width": 0.2}, InvalidInputError),
        (0.0, {"width": 0.2, "level": 0.8}, InvalidInputError),
        ([1.0, math.inf], {"width": 0.2, "level": 0.8}, InvalidInputError),
        ([], {"width": 0.2, "level": 0.8}, InvalidInputError),
        (np.ones((1, 2, 3)), {"width": 0.2, "level": 0.8}, InvalidInputError),
        (xr.DataArray([1.0], dims="sample"), {"width": 0.2, "level": 0.8}, InvalidInputError),
        ("many", {"width": 0.2, "level": 0.8}, InputTypeError),
        (100.0, {"width": 0.0, "level": 0.8}, InvalidInputError),
        (100.0, {"width": 0.2, "level": 1.0}, InvalidInputError),
        (100.0, {"width": [0.2, 0.2], "level": 0.8}, InvalidInputError),
        (100.0, {"width": 0.2, "epsilon": -1.0}, InvalidInputError),
        (100.0, {"width": 0.2, "level": 0.8, "sensitivity": -1.0}, InvalidInputError),
    ],
    ids=[
        "nothing", "one", "zero", "infinite", "empty", "three dims", "dims", "text", "width",
        "level", "repeated", "epsilon", "sensitivity",
    ],
)  # fmt: skip
def test_bad_audits_are_refused(answer, options, error):
    with pytest.raises(error):
        interval.posterior(answer, **options)


# Posterior of the true answer


def log_likelihood(noise, gap):
    distribution = stats.laplace if isinstance(noise, edp.LaplaceNoise) else stats.norm
    return distribution.logpdf(gap, 0, noise.scale)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("prior", [None, stats.poisson(20)], ids=["flat", "poisson"])
def test_counts_have_their_exact_posterior(noise, prior):
    counts = np.arange(1, 400)
    log_post = log_likelihood(noise, 7.3 - counts)
    if prior is not None:
        log_post = log_post + prior.logpmf(counts)
    exact = np.exp(log_post - log_post.max())
    exact /= exact.sum()
    draws = interval.answer_from_release(
        7.3, noise, prior=prior, draws=25_000, random_seed=1
    ).to_numpy()
    assert draws.shape == (4, 25_000)
    common = exact * draws.size > 5
    seen = np.array([np.sum(draws == c) for c in counts])
    statistic = np.sum((seen - draws.size * exact)[common] ** 2 / (draws.size * exact[common]))
    assert stats.chi2.sf(statistic, common.sum() - 1) > 1e-6
    assert seen[~common].sum() < 100


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    "prior", [None, stats.norm(20, 3), stats.gamma(4, scale=1000.0)], ids=["flat", "normal", "wide"]
)
def test_numbers_have_their_exact_posterior(noise, prior):
    def density(x):
        weight = 1.0 if prior is None else prior.pdf(x)
        return np.exp(log_likelihood(noise, 7.3 - x)) * weight

    grid = np.unique(np.append(np.linspace(1.0, 160.0, 400_001), 7.3))
    heaped = integrate.cumulative_trapezoid(density(grid), grid, initial=0.0)
    draws = interval.answer_from_release(
        7.3, noise, prior=prior, low=1.0, discrete=False, draws=10_000, random_seed=1
    )
    uniform = np.interp(draws.to_numpy().ravel(), grid, heaped / heaped[-1])
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def test_a_normal_posterior_in_closed_form():
    draws = interval.answer_from_release(
        100.0, edp.GaussianNoise(3.0), prior=stats.norm(90, 4), discrete=False,
        draws=20_000, random_seed=2,
    )  # fmt: skip
    precision = 1 / 9 + 1 / 16
    mean = (100 / 9 + 90 / 16) / precision
    distribution = stats.norm(mean, precision**-0.5)
    assert stats.kstest(draws.to_numpy().ravel(), distribution.cdf).pvalue > 1e-4


def test_a_release_far_below_the_range_still_has_a_posterior():
    draws = interval.answer_from_release(-500.0, edp.LaplaceNoise(2.0), random_seed=1).to_numpy()
    assert draws.min() == 1.0
    # Beyond the end the likelihood is geometric.
    assert np.mean(draws == 1.0) == pytest.approx(1 - math.exp(-0.5), abs=0.03)


def test_limits_and_seed():
    runs = [
        interval.answer_from_release(50, LAPLACE, low=48, high=51, random_seed=s) for s in (1, 1, 2)
    ]
    assert set(np.unique(runs[0])) == {48.0, 49.0, 50.0, 51.0}
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize(
    ("released", "noise", "options", "error"),
    [
        (math.nan, LAPLACE, {}, InvalidInputError),
        (5.0, 2.0, {}, InputTypeError),
        (5.0, LAPLACE, {"low": 9, "high": 2}, InvalidInputError),
        (5.0, LAPLACE, {"prior": stats.norm(5, 1)}, InputTypeError),
        (5.0, LAPLACE, {"prior": "flat"}, InputTypeError),
        (5.0, LAPLACE, {"prior": stats.poisson(5), "discrete": False}, InputTypeError),
        (5.0, LAPLACE, {"prior": UNIFORM, "discrete": False, "low": 2}, InvalidInputError),
        (5.0, LAPLACE, {"prior": UNIFORM, "discrete": False, "low": 1}, InvalidInputError),
        (5.0, LAPLACE, {"prior": NowhereANumber(), "discrete": False}, InvalidInputError),
        (5.0, edp.LaplaceNoise(1e6), {}, InvalidInputError),
        (5.0, LAPLACE, {"low": 4.2, "high": 4.8}, InvalidInputError),
        (5.0, LAPLACE, {"draws": 0}, InvalidInputError),
    ],
    ids=[
        "nan", "noise", "range", "density", "text", "mass", "empty", "point", "no number",
        "large", "between", "draws",
    ],
)  # fmt: skip
def test_bad_releases_are_refused(released, noise, options, error):
    with pytest.raises(error):
        interval.answer_from_release(released, noise, **options)


def test_coverage_of_epsilon_from_a_noisy_count():
    """True counts from the prior: the 80% interval of epsilon holds the truth in 80% of runs."""
    rng = np.random.default_rng(5)
    prior, held = stats.poisson(60), 0
    for seed in range(250):
        count = prior.rvs(random_state=rng)
        answer = interval.answer_from_release(
            count + rng.laplace(scale=4.0), LAPLACE, prior=prior, draws=500, chains=1,
            random_seed=seed,
        )  # fmt: skip
        found = interval.posterior(answer, width=0.2, level=0.8)["interval_epsilon"]
        low, high = np.quantile(found, [0.1, 0.9])
        held += low <= interval.epsilon(count, 0.2, 0.8) <= high
    assert 0.75 < held / 250 < 0.92  # counts are discrete, so the interval may hold more


def test_median_from_data_is_the_bayesian_bootstrap():
    values = [3.0, 1.0, 2.0, 10.0, 4.0]
    draws = interval.answer_from_data(values, draws=20_000, random_seed=1).to_numpy()
    # The first k weights sum to a Beta(k, n - k) value, which reaches 1/2 from the median onwards.
    reached = [0.0, *(stats.beta.sf(0.5, k, 5 - k) for k in range(1, 5)), 1.0]
    expected = np.diff(reached)
    found = [np.mean(draws == v) for v in sorted(values)]
    np.testing.assert_allclose(found, expected, atol=0.006)


def test_data_may_be_responses_and_must_be_several():
    rng = np.random.default_rng(1)
    y = rng.normal(100.0, 3.0, 24)
    responses = edp.Responses.from_arrays(
        y, contribution=rng.uniform(0.5, 1.0, (24, 1)), individual=["ann"]
    )
    np.testing.assert_array_equal(
        interval.answer_from_data(responses, random_seed=1),
        interval.answer_from_data(y, random_seed=1),
    )
    with pytest.raises(InvalidInputError, match="at least two"):
        interval.answer_from_data([3.0])
    with pytest.raises(InvalidInputError, match="finite"):
        interval.answer_from_data([3.0, math.nan])


@pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_median_from_an_audit_halves_its_response_density(kernel):
    rng = np.random.default_rng(1)
    responses = edp.Responses.from_arrays(
        rng.gamma(5.0, 4.0, 20), contribution=rng.uniform(0.1, 1.0, (20, 2)), individual=["a", "b"]
    )
    result = edp.audit(
        responses, epsilon=[0.5], model=edp.SmoothedBootstrap(kernel=kernel), draws=50, chains=2,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    answer = interval.answer_from_mixture(result.mixture)
    assert answer.shape == (2, 50)
    for chain, draw in ((0, 0), (1, 7), (1, 49)):
        distribution = result.mixture[chain, draw]
        assert float(distribution.cdf(float(answer[chain, draw]))) == pytest.approx(0.5, abs=1e-9)


def test_the_book_count_of_those_aged_40_or_older(data_dir):
    import pandas as pd

    age = pd.read_parquet(data_dir / "adult_with_pii.parquet", columns=["age"])["age"]
    count = int((age >= 40).sum())
    assert count == 14_237
    # Noise at epsilon 0.1 keeps it within 0.2% of the truth with 94%.
    assert interval.level_from_epsilon(count, 0.002, epsilon=0.1) == pytest.approx(0.942, abs=5e-4)


def test_samples_of_a_database_share_its_weight():
    rng = np.random.default_rng(2)
    y = np.repeat(rng.normal(100.0, 3.0, 24), 2)  # both samples of a database are the same
    responses = edp.Responses.from_arrays(
        y, contribution=rng.uniform(0.5, 1.0, (48, 1)), individual=["ann"], samples=2
    )
    np.testing.assert_array_equal(
        interval.answer_from_data(responses, random_seed=1),
        interval.answer_from_data(y[::2], random_seed=1),
    )
    single = edp.Responses.from_arrays(
        np.repeat(y, 10), contribution=np.ones((480, 1)), individual=["ann"], samples=20
    )
    assert interval.answer_from_data(single, random_seed=1).std() > 0.3


@pytest.mark.parametrize(
    ("released", "scale", "centre", "spread"),
    [(150_000.0, 1e5, 1000.0, 1.0), (2000.0, 1000.0, 50.0, 1e-3), (2e4, 1e4, 50.0, 0.1)],
)
def test_a_prior_that_is_narrow_beside_the_noise(released, scale, centre, spread):
    draws = interval.answer_from_release(
        released,
        edp.LaplaceNoise(scale),
        prior=stats.norm(centre, spread),
        discrete=False,
        draws=10_000,
        random_seed=1,
    ).to_numpy()
    # Below what was released the likelihood is exponential, which moves a normal prior.
    distribution = stats.norm(centre + spread**2 / scale, spread)
    assert stats.kstest(draws.ravel(), distribution.cdf).pvalue > 1e-4


def test_prior_and_release_far_apart():
    draws = interval.answer_from_release(
        1e6, edp.GaussianNoise(1.0), prior=stats.norm(0.0, 1.0), discrete=False, low=-1e7,
        draws=10_000, random_seed=1,
    ).to_numpy()  # fmt: skip
    assert stats.kstest(draws.ravel(), stats.norm(5e5, 0.5**0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("seed", "error"), [(-1, InvalidInputError), ("a", InputTypeError)])
def test_bad_seeds_are_refused(seed, error):
    with pytest.raises(error, match="random_seed"):
        interval.answer_from_release(5.0, LAPLACE, random_seed=seed)
    with pytest.raises(error, match="random_seed"):
        interval.answer_from_data([1.0, 2.0, 3.0], random_seed=seed)


@pytest.mark.full
@pytest.mark.parametrize(
    ("released", "scale", "prior"),
    [
        (3.0, 2.0, stats.gamma(0.5, scale=10)),
        (3.0, 2.0, stats.gamma(0.1, scale=10)),
        (0.3, 0.1, stats.beta(0.5, 0.5)),
        (0.99, 0.1, stats.beta(0.5, 0.5)),
        (103.4, 2.0, stats.pareto(0.5)),
        (103.4, 2.0, stats.loguniform(1, 1e20)),
        (8.0, 3.0, stats.expon(scale=1.0)),
    ],
    ids=["gamma", "steep gamma", "arcsine", "arcsine at its end", "pareto", "loguniform", "expon"],
)
def test_priors_that_are_infinite_at_an_end_or_have_heavy_tails(released, scale, prior):
    draws = interval.answer_from_release(
        released, edp.LaplaceNoise(scale), prior=prior, discrete=False, draws=5000, random_seed=1
    ).to_numpy()
    # In the prior's own quantiles the posterior density is the likelihood alone.
    level = (np.arange(2_000_000) + 0.5) / 2_000_000
    heaped = np.cumsum(np.exp(-np.abs(prior.ppf(level) - released) / scale))
    uniform = np.interp(prior.cdf(draws.ravel()), level + 0.25e-6, heaped / heaped[-1])
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    "prior",
    [stats.randint(1, 10_000_001), stats.geom(1e-6), stats.zipf(2.0)],
    ids=["uniform", "geometric", "zipf"],
)
def test_a_count_whose_prior_is_wide_and_whose_posterior_is_narrow(prior):
    counts = np.arange(1, 2000)
    mass = np.exp(-np.abs(counts - 103.4) / 2.0 + prior.logpmf(counts) - prior.logpmf(103))
    draws = interval.answer_from_release(
        103.4, edp.LaplaceNoise(2.0), prior=prior, draws=25_000, random_seed=1
    )
    found = np.array([(draws.to_numpy() <= c).mean() for c in (95, 100, 103, 105, 110)])
    heaped = np.cumsum(mass)[np.array([95, 100, 103, 105, 110]) - 1] / mass.sum()
    np.testing.assert_allclose(found, heaped, atol=0.01)


def test_a_count_whose_prior_is_narrow_beside_the_noise():
    prior = stats.poisson(100)
    draws = interval.answer_from_release(
        103.4, edp.LaplaceNoise(1e6), prior=prior, draws=25_000, random_seed=1
    ).to_numpy()
    assert draws.mean() == pytest.approx(100.0, abs=0.2)
    assert draws.std() == pytest.approx(10.0, abs=0.1)


def test_a_count_whose_prior_and_release_are_far_apart():
    # The likelihood falls by exp(-1/2) a count: where the prior rises by that is the mode.
    draws = interval.answer_from_release(
        103.4, edp.LaplaceNoise(2.0), prior=stats.poisson(1e5), random_seed=1
    ).to_numpy()
    mean = 1e5 * math.exp(-0.5)
    assert draws.mean() == pytest.approx(mean, abs=5 * math.sqrt(mean / 4000))


def test_noise_that_is_small_beside_one_leaves_the_nearest_count():
    draws = interval.answer_from_release(1e9 + 0.3, edp.LaplaceNoise(1e-3), random_seed=1)
    assert np.unique(draws).tolist() == [1e9]


def test_only_counts_begin_at_one():
    for released in (0.37, -10.0):
        draws = interval.answer_from_release(
            released, edp.LaplaceNoise(0.01), discrete=False, random_seed=1
        )
        assert float(draws.median()) == pytest.approx(released, abs=0.01)
