"""`edp.audit_property`: posteriors, curves, calibration, dependence, files and bad input."""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.loading import load
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.property_audit import (
    BetaBinomialModel,
    BinomialModel,
    PropertyCounts,
    PyMCProbabilities,
    audit_property,
    auditing,
    exact_draws,
)
from edp_bayes.property_audit.curves import Query
from edp_bayes.property_audit.likelihoods import beta_binomial_log_mass, binomial_log_mass
from edp_bayes.property_audit.models import _variable
from edp_bayes.property_audit.overdispersion import compare
from edp_bayes.results import bands
from edp_bayes.statistical_privacy import (
    GaussianNoise,
    LaplaceNoise,
    Subsampling,
    beta_binomial_delta,
    delta,
)

EPSILON = np.array([0.0, 0.1, 0.3])
QUICK = {"draws": 200, "chains": 2, "random_seed": 1, "progressbar": False}
VARIED = [72, 51, 63, 8, 60, 86, 180, 67, 92, 39, 28, 75]


def sampling(draws=500, chains=4, seed=1, **others):
    return SamplerSettings(
        draws=draws, chains=chains, random_seed=seed, progressbar=False, **others
    )


# Few draws are quick, and said to be few.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The (bulk|tail) of|The chains disagree:edp_bayes.EdpBayesWarning"
)


# Likelihoods and posteriors


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    n=st.integers(2, 40_000),
    share=st.floats(0.0, 1.0),
    prob=st.floats(1e-4, 0.9999),
    strength=st.floats(-1.0, 12.0),
)
def test_beta_binomial_masses_agree_with_fifty_digits(n, share, prob, strength):
    count, concentration = round(share * n), 10.0**strength
    with mpmath.workdps(50):
        a, b = (mpmath.mpf(p) * mpmath.mpf(concentration) for p in (prob, 1 - prob))
        log_choose = mpmath.loggamma(n + 1) - mpmath.loggamma(count + 1)
        log_choose -= mpmath.loggamma(n - count + 1)
        rise = mpmath.loggamma(count + a) - mpmath.loggamma(a) + mpmath.loggamma(n - count + b)
        rise += mpmath.loggamma(a + b) - mpmath.loggamma(b) - mpmath.loggamma(n + a + b)
        truth = float(log_choose + rise)
    found = beta_binomial_log_mass(*map(np.asarray, (float(count), float(n), prob, concentration)))
    assert float(found) == pytest.approx(truth, rel=1e-9, abs=1e-7)


def test_binomial_masses_agree_with_scipy():
    count = np.arange(0.0, 31.0)
    found = binomial_log_mass(count, np.asarray(30.0), np.asarray(0.2))
    np.testing.assert_allclose(found, stats.binom.logpmf(count, 30, 0.2), rtol=1e-11)


def test_a_single_property_has_its_conjugate_posterior():
    counts = PropertyCounts([10, 14], [100, 120])
    prob = BinomialModel().fit(counts, sampling(draws=5000)).prob.ravel()
    assert stats.kstest(prob, stats.beta(24.5, 196.5).cdf).pvalue > 0.01


def test_grid_draws_agree_with_a_brute_force_quadrature():
    """Against scipy's masses on a plain grid over (mean, share), with no logits."""
    count, n, scale = np.array([3, 9, 4, 14, 6]), 50, 50.0
    mean = np.linspace(0.0, 0.6, 302)[1:-1, None, None]
    share = np.linspace(0.0, 1.0, 302)[None, 1:-1, None]
    concentration = scale * share / (1.0 - share)
    log_mass = stats.betabinom.logpmf(count, n, mean * concentration, (1 - mean) * concentration)
    weight = np.exp(log_mass.sum(-1)) * stats.beta(0.5, 0.5).pdf(mean[..., 0])
    weight /= weight.sum()
    draws = BetaBinomialModel().fit(PropertyCounts(count, n), sampling(draws=10_000))
    shares = draws.concentration.ravel() / (draws.concentration.ravel() + scale)
    for values, axis, grid in (
        (draws.prob.ravel(), 1, mean[:, 0, 0]),
        (shares, 0, share[0, :, 0]),
    ):
        heaped = np.cumsum(weight.sum(axis))
        for level in (0.025, 0.25, 0.5, 0.75, 0.975):
            # Each weight is that of the cell around its point.
            truth = np.interp(level, heaped, grid + 0.5 * (grid[1] - grid[0]))
            # Three Monte Carlo errors of a share of 40,000 draws.
            assert abs((values <= truth).mean() - level) < 0.0075


@pytest.mark.parametrize(
    ("count", "n"),
    [
        (VARIED, 1000),
        ([103] * 12, 1000),
        ([300_000, 299_000, 301_000], 10**6),
        ([0, 0, 1], 500),
        ([3], 100),
    ],
    ids=["varied", "alike", "large", "rare", "single"],
)
def test_the_grid_holds_the_whole_posterior(count, n):
    """Its density is small at every edge, and well resolved: no draw is on a coarse lattice."""
    posterior = exact_draws.GridPosterior(
        np.array(count, dtype=float), np.full(len(count), float(n)), (0.5, 0.5), float(n)
    )
    density = np.exp(posterior.log_density(*posterior.box()))
    density /= density.sum()
    edges = density[[0, -1]].sum() + density[:, [0, -1]].sum()
    assert edges < 1e-6
    # A normal distribution with its peak at 0.06 has a standard deviation of more than six cells.
    assert density.sum(1).max() < 0.06
    assert density.sum(0).max() < 0.06


@pytest.mark.parametrize("name", ["binomial", "beta-binomial"])
def test_the_pymc_model_is_the_posterior_that_is_drawn_exactly(name):
    counts = PropertyCounts([7, 12, 30], [100, 100, 120])
    vectors = counts.count[:, 0].astype(float), counts.n.astype(float)
    model = {"binomial": BinomialModel(), "beta-binomial": BetaBinomialModel()}[name]
    pymc_model = model.build(counts)
    log_density = pymc_model.compile_logp(mode="FAST_COMPILE")
    start = pymc_model.initial_point()
    posterior = exact_draws.GridPosterior(*vectors, (0.5, 0.5), float(counts.n.mean()))
    errors, shares = np.array([-3.0, -0.5, 1.0, 2.0]), np.array([-4.0, -1.0, 2.0, 5.0])
    grid = posterior.log_density(errors, shares)
    found, truth = [], []
    for i, (error, share) in enumerate(zip(errors, shares, strict=True)):
        logit, concentration = posterior.parameters(error, share)
        point = {**start, "prob_logodds__": np.array([logit])}
        if name == "beta-binomial":
            point["share_interval__"] = np.array([share])
            # The grid's coordinate is the logit in standard errors.
            truth.append(grid[i, i] - np.log(posterior._inflation(concentration)))
        else:
            positives, total = vectors[0].sum(), vectors[1].sum()
            p = 1.0 / (1.0 + np.exp(-logit))
            beta = stats.beta(positives + 0.5, total - positives + 0.5)
            truth.append(beta.logpdf(p) + np.log(p * (1 - p)))
        found.append(float(log_density(point)))
    np.testing.assert_allclose(np.diff(found), np.diff(truth), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def several():
    counts = {"older": [437, 420], "veteran": [90, 104], "rare": [0, 1]}
    return audit_property(
        counts,
        1000,
        epsilon=EPSILON,
        draws=400,
        tune=500,
        chains=2,
        random_seed=3,
        progressbar=False,
    )


@pytest.mark.full
def test_several_properties_are_pooled_and_delta_is_that_of_the_riskiest(several):
    assert list(several.prob["property"].to_numpy()) == ["older", "veteran", "rare"]
    np.testing.assert_array_equal(several.delta, several.property_delta.max("property"))
    ends = several.prob.quantile([0.005, 0.995], ("chain", "draw")).to_numpy()
    truth = np.array([857, 194, 1]) / 2000
    assert ((ends[0] < truth) & (truth < ends[1])).all()
    # Every single curve is the exact one of its own draw of pi.
    one = several.property_delta.isel(chain=1, draw=7)
    pi = several.prob.isel(chain=1, draw=7).to_numpy()
    np.testing.assert_array_equal(one, delta(1000, pi[:, None], epsilon=EPSILON))
    assert several.checks.loc["convergence of prob", "statistic"] < 1.05
    assert "sample_stats" in several.tree.children
    table, medians = several.summary(), several.property_delta.median(("chain", "draw"))
    for name in ("older", "veteran", "rare"):
        for epsilon in EPSILON:
            row = table.loc[f"property_delta[{name}, {epsilon}]"]
            assert row["median"] == pytest.approx(
                float(medians.sel(property=name, epsilon=epsilon))
            )
    assert "prob[veteran]" in table.index


@pytest.mark.full
def test_a_users_own_pymc_model_can_be_audited():
    """A very strong prior of their own decides."""
    import pymc as pm

    def build(counts):
        with pm.Model() as model:
            pi = pm.Beta("pi", 5e6, 5e6, shape=1)
            pm.Binomial("count", n=counts.n[:, None], p=pi, observed=counts.count)
        return model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        found = audit_property(
            103, 1000, epsilon=[0.1], model=PyMCProbabilities(build, prob="pi"), tune=200, **QUICK
        )
        assert float(abs(found.prob - 0.5).max()) < 0.01


def test_a_model_without_the_named_variable_is_refused(several):
    counts = PropertyCounts([[1, 2, 3]], 10)
    posterior = several.tree["posterior"].to_dataset()
    with pytest.raises(InvalidInputError, match="must have a variable named 'other'"):
        _variable(posterior, "other", counts)
    with pytest.raises(InvalidInputError, match=r"must have shape \(4,\), one value a property"):
        _variable(posterior, "delta", PropertyCounts([[1, 2, 3, 4]], 10))


# Curves


def test_curves_are_the_exact_ones_of_every_draw():
    found = audit_property(103, 1000, epsilon=EPSILON, **QUICK)
    pi = found.prob.isel(property=0).to_numpy()[..., None]
    np.testing.assert_array_equal(found.delta, delta(1000, pi, epsilon=EPSILON))
    assert found.delta.dims == ("chain", "draw", "epsilon")
    assert found.property_delta.dims == ("chain", "draw", "property", "epsilon")
    np.testing.assert_array_equal(found.property_delta.isel(property=0), found.delta)
    with pytest.raises(InvalidInputError, match="dependent entries only"):
        _ = found.concentration


@pytest.mark.parametrize(
    "mechanism",
    [GaussianNoise(1e-3), (Subsampling(rate=0.5), GaussianNoise(2e-3)), LaplaceNoise(0.02)],
    ids=["gaussian", "subsampled", "laplace"],
)
@pytest.mark.parametrize("count", [4, 103, 500], ids=str)
def test_interpolated_curves_are_exact_to_1e5(mechanism, count):
    query = Query(1000, mechanism)
    pi = np.sort(BinomialModel().fit(PropertyCounts(count, 1000), sampling()).prob.ravel())
    epsilon = np.array([0.0, 0.02, 0.04])
    values, error = query.interpolated(pi, epsilon)
    some = [0, 3, 700, 1500, -1]
    truth = delta(1000, pi[some, None], epsilon=epsilon, mechanism=mechanism)
    # What is not exact to 1e-5 says so, and is then computed one by one.
    assert error <= 1e-5 or isinstance(mechanism, LaplaceNoise)
    np.testing.assert_allclose(values[some], truth, rtol=max(error, 1e-5), atol=1e-14)


def test_rough_curves_are_computed_one_by_one_and_thinned(monkeypatch):
    monkeypatch.setattr("edp_bayes.property_audit.curves.FEW", 20)
    narrow = GaussianNoise(1e-4)
    found = audit_property(103, 1000, epsilon=[0.1, 0.2], mechanism=narrow, **QUICK)
    assert found.delta.sizes["draw"] == 10
    assert found.settings["interpolation_error"] == 0.0
    pi = found.prob.isel(property=0).to_numpy()[..., None]
    np.testing.assert_array_equal(
        found.delta, delta(1000, pi, epsilon=[0.1, 0.2], mechanism=narrow)
    )
    full = audit_property(103, 1000, epsilon=[0.1, 0.2], **QUICK)
    np.testing.assert_array_equal(found.prob, full.prob.sel(draw=found.prob["draw"]))


def test_curves_of_dependent_entries_are_the_exact_ones():
    found = audit_property(
        VARIED, 1000, epsilon=EPSILON, model=BetaBinomialModel(), curve_draws=10, **QUICK
    )
    assert found.dependent
    assert found.delta.sizes == {"chain": 2, "draw": 5, "epsilon": 3}
    pi, strength = (
        part.isel(property=0).to_numpy()[..., None] for part in (found.prob, found.concentration)
    )
    truth = beta_binomial_delta(1000, pi * strength, (1 - pi) * strength, epsilon=EPSILON)
    np.testing.assert_array_equal(found.delta, truth)
    independent = delta(1000, pi, epsilon=EPSILON)
    assert (found.delta.to_numpy() > independent).all()


def test_known_entries_move_the_distribution_of_dependent_ones():
    """Against the two distributions of the unknown count, written out by scipy."""
    n, known, positive, a, b = 60, 20, 7, 3.0, 5.0
    query = Query(n, None, known, positive, dependent=True)
    found = query.exact(np.array([a / (a + b)]), np.array([a + b]), EPSILON, progressbar=False)
    rest = np.arange(n - known)
    distributions = np.zeros((2, n - known + 1))
    distributions[0, 1:] = stats.betabinom.pmf(
        rest, n - known - 1, a + positive + 1, b + known - positive
    )
    distributions[1, :-1] = stats.betabinom.pmf(
        rest, n - known - 1, a + positive, b + known - positive + 1
    )
    for k, epsilon in enumerate(EPSILON):
        sides = [
            np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
            for p, q in (distributions, distributions[::-1])
        ]
        assert found[0, k] == pytest.approx(max(sides), rel=1e-9)


@pytest.mark.parametrize("noise", [LaplaceNoise(0.02), GaussianNoise(0.02)])
def test_noise_beside_known_entries_is_that_of_the_share_of_all(noise):
    """Entries that hardly depend on each other are as good as independent."""
    known = {"known": 20, "known_positive": 8}
    query = Query(60, noise, **known, dependent=True)
    found = query.exact(np.array([0.4]), np.array([1e7]), EPSILON, progressbar=False)
    independent = delta(60, 0.4, epsilon=EPSILON, mechanism=noise, **known)
    np.testing.assert_allclose(found[0], independent, rtol=1e-4)


# Calibration


@pytest.mark.full
def test_bands_cover_the_truth_over_simulated_counts():
    """500 counts, each of its own pi; the error of a coverage of 0.95 is then 0.0097."""
    rng = np.random.default_rng(20)
    epsilon = np.array([0.1, 0.3])
    hits = []
    for k, pi in enumerate(rng.uniform(0.02, 0.98, 500)):
        counts = PropertyCounts(rng.binomial(1000, pi), 1000)
        draws = BinomialModel().fit(counts, sampling(400, 1, seed=k)).prob.ravel()
        curves = Query(1000).exact(draws, None, epsilon, progressbar=False)
        truth = delta(1000, pi, epsilon=epsilon)
        pointwise, whole = (make(curves, 0.95) for make in (bands.pointwise, bands.simultaneous))
        inside = (pointwise[0] <= truth) & (truth <= pointwise[1])
        hits.append([*inside, ((whole[0] <= truth) & (truth <= whole[1])).all()])
    coverage = np.mean(hits, axis=0)
    assert (coverage > 0.93).all()
    assert (coverage < 0.97).all()


@pytest.mark.full
@pytest.mark.parametrize("pi", [0.02, 0.1, 0.3])
def test_coverage_for_one_fixed_pi_summed_over_all_counts(pi):
    """No simulation: every count weighs as much as its binomial mass."""
    count = np.arange(1001)
    mass = stats.binom.pmf(count, 1000, pi)
    epsilon = np.array([0.1])
    truth, covered = float(delta(1000, pi, epsilon=0.1)), 0.0
    for k in count[mass > 1e-4]:
        draws = BinomialModel().fit(PropertyCounts(k, 1000), sampling(1000, 1, seed=k)).prob
        low, high = bands.pointwise(
            Query(1000).exact(draws.ravel(), None, epsilon, progressbar=False), 0.95
        )
        covered += mass[k] * float(low[0] <= truth <= high[0])
    assert 0.93 < covered < 0.97


# Dependence


def test_overdispersion_is_found_said_and_reported():
    with pytest.warns(EdpBayesWarning, match="Entries are dependent"):
        found = audit_property(VARIED, 1000, epsilon=EPSILON, curve_draws=40, **QUICK)
    assert found.dependent
    assert not found.checks.loc["overdispersion", "passed"]
    assert "beta-binomial" in found.warnings[0]
    assert set(found.tree["log_likelihood"].data_vars) == {"binomial", "beta_binomial"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        ignored = audit_property(VARIED, 1000, epsilon=EPSILON, model=BinomialModel(), **QUICK)
    assert float(found.delta[..., 0].median()) > 2.0 * float(ignored.delta[..., 0].median())


def test_independent_counts_pass_and_keep_the_binomial_curve():
    counts = np.random.default_rng(1).binomial(1000, 0.1, 12)
    found = audit_property(counts, 1000, epsilon=EPSILON, **{**QUICK, "draws": 400})
    assert not found.dependent
    assert found.warnings == ()
    assert found.checks.loc["overdispersion", "sentence"].startswith("No overdispersion")
    few = audit_property(counts[:4], 1000, epsilon=EPSILON, **{**QUICK, "draws": 400})
    assert few.checks.loc["overdispersion", "sentence"].startswith("Not tested: 4 database(s)")


@pytest.mark.full
def test_false_alarms_are_rare_and_strong_dependence_is_found():
    rng = np.random.default_rng(4)
    alarms = []
    for pi in (np.full((8, 10), 0.1), rng.beta(5.0, 45.0, (8, 10))):
        found = 0
        for row in pi:
            counts = PropertyCounts(rng.binomial(1000, row), 1000)
            fits = [
                model.fit(counts, sampling(200, 2))
                for model in (BinomialModel(), BetaBinomialModel())
            ]
            found += compare(*fits).present
        alarms.append(found)
    assert alarms[0] <= 1
    assert alarms[1] == 8


# Real data


def test_adults_of_forty_and_more_and_a_rare_property(data_dir):
    import pandas as pd

    table = pd.read_parquet(data_dir / "adult_with_pii.parquet")
    n = len(table)
    older = int((table["age"] >= 40).sum())
    rare = int((table["occupation"] == "Armed-Forces").sum())
    assert (n, older, rare) == (32561, 14237, 9)
    frequent, seldom = (
        audit_property(k, n, epsilon=[0.01, 0.1, 0.5], **QUICK) for k in (older, rare)
    )
    for found, count in ((frequent, older), (seldom, rare)):
        truth = delta(n, count / n, epsilon=[0.01, 0.1, 0.5])
        band = found.band(prob=0.99)
        assert ((band["lower"] <= truth) & (truth <= band["upper"])).all()
    # Fewer positives hide each other less, and their number is known less well.
    assert (seldom.delta.median(("chain", "draw")) > frequent.delta.median(("chain", "draw"))).all()
    spread = [float((found.band().upper / found.band().lower)[0]) for found in (frequent, seldom)]
    assert spread[1] - 1.0 > 20.0 * (spread[0] - 1.0)


# Results


@pytest.mark.parametrize("name", ["audit.nc", "audit.zarr"])
def test_a_saved_audit_loads_identical(several, tmp_path, name):
    several.save(tmp_path / name)
    loaded = load(tmp_path / name)
    assert loaded.tree.identical(several.tree)
    assert loaded.settings == several.settings
    assert loaded.dependent == several.dependent


def test_another_file_is_refused(tmp_path):
    import xarray as xr

    from edp_bayes.utils import files

    path = tmp_path / "other.nc"
    files.save_tree(xr.DataTree.from_dict({"posterior": xr.Dataset({"x": 1})}), path)
    with pytest.raises(InvalidInputError, match="is not a saved result"):
        load(path)


def test_bands_summary_and_plot_are_those_of_every_audit():
    found = audit_property({"older": 103}, 1000, epsilon=EPSILON, **QUICK)
    band = found.band(prob=0.9)
    assert band.attrs == {"quantity": "delta", "kind": "simultaneous", "prob": 0.9}
    table = found.summary(ci_prob=0.95)
    assert np.isfinite(table.to_numpy()).all()
    assert {"delta[0.1]", "prob[older]", "epsilon_at[0.01]"} <= set(table.index)
    assert found.settings["query"] == "the share with 'older'"
    assert found.plot_delta(backend="none") is not None


def test_the_seed_alone_decides():
    first, second, third = (
        audit_property(VARIED, 1000, epsilon=[0.1], model=BetaBinomialModel(), curve_draws=20,
                       **{**QUICK, "random_seed": seed})
        for seed in (1, 1, 2)
    )  # fmt: skip
    np.testing.assert_array_equal(first.delta, second.delta)
    assert (first.delta != third.delta).any()


def test_databases_of_unequal_size_release_the_smallest_by_default():
    found = audit_property([50, 103], [500, 1000], epsilon=[0.1], **QUICK)
    assert found.settings["individuals"] == 500
    pi = found.prob.isel(property=0).to_numpy()[..., None]
    np.testing.assert_array_equal(found.delta, delta(500, pi, epsilon=[0.1]))
    larger = audit_property([50, 103], [500, 1000], epsilon=[0.1], released_n=2000, **QUICK)
    np.testing.assert_array_equal(larger.delta, delta(2000, pi, epsilon=[0.1]))


@pytest.mark.parametrize("count", [0, 1000], ids=["none", "all"])
def test_nobody_or_everybody_is_no_trivial_query(count):
    found = audit_property(count, 1000, epsilon=EPSILON, **QUICK)
    assert np.isfinite(found.delta).all()
    assert ((found.prob > 0) & (found.prob < 1)).all()


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 1001}, "count must not exceed n, found 1001 of 1000 in database 0"),
        ({"count": -1}, "count must be at least 0, found -1"),
        ({"count": 1.5}, "count must hold whole numbers"),
        ({"count": np.nan}, "count must be finite, found nan"),
        ({"count": "many"}, "count must be numeric"),
        ({"count": []}, "count must be a number or have shape"),
        ({"count": {}}, "count must name at least one property"),
        ({"count": {"a": [1, 2], "b": [3]}}, "every property must have one count a database"),
        ({"count": {1: 2}}, "a property must be named by a text, found 1"),
        ({"n": 1}, "n must be at least 2, found 1"),
        ({"n": [1000, 1000]}, "n must be one number or one a database, found 2 for 1"),
        ({"n": np.nan}, "n must be finite"),
        ({"epsilon": [-0.1]}, "epsilon must not be negative"),
        ({"epsilon": [np.nan]}, "epsilon must be finite"),
        ({"epsilon": [800.0], "mechanism": GaussianNoise(0.1)}, "epsilon must be at most 700"),
        ({"mechanism": "gaussian"}, "mechanism must be Subsampling, GaussianNoise"),
        ({"mechanism": Subsampling(size=2000)}, "sample size must be at most n"),
        ({"known": 1000}, "known must be below n"),
        ({"known": 10, "known_positive": 11}, "known_positive must not exceed known"),
        ({"known": 10, "model": BetaBinomialModel()}, "known entries need known_positive"),
        ({"count": VARIED, "known": 10}, "known entries need known_positive"),
        ({"model": BetaBinomialModel(), "released_n": 10**8}, "n must be at most 10,000,000"),
        ({"model": "binomial"}, "model must be a model of probabilities"),
        ({"released_n": 0}, "released_n must be at least 1"),
        ({"released_n": 1}, "n must be at least 2, found 1"),
        ({"curve_draws": 10**6}, "curve_draws must be at most chains x draws = 400"),
        ({"draws": 0}, "draws must be at least 1"),
    ],
)  # fmt: skip
def test_bad_input_is_named_before_anything_is_drawn(changes, message, monkeypatch):
    def refuse(*_):
        raise AssertionError("something was fitted")

    monkeypatch.setattr(auditing, "_fit", refuse)
    arguments = {"count": 103, "n": 1000, "epsilon": EPSILON, **QUICK, **changes}
    with pytest.raises((InvalidInputError, InputTypeError), match=message):
        audit_property(**arguments)


@pytest.mark.parametrize("name", ["alpha", "beta", "pooled_deviation"])
def test_priors_must_be_above_zero(name):
    with pytest.raises(InvalidInputError, match=f"{name} must be greater than 0"):
        BinomialModel(**{name: 0.0})


def test_too_few_draws_to_compare_distributions():
    with pytest.raises(InvalidInputError, match="at least 25 draws in all chains, found 12"):
        audit_property(
            [10, 12, 9, 11, 8],
            [100] * 5,
            epsilon=[0.1, 0.5],
            draws=3,
            random_seed=1,
            progressbar=False,
        )
