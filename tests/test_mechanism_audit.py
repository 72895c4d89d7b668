"""Black-box audits: cells, the field of log ratios, privacy from draws, pairs, bad input."""

import itertools
import math
import time
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import edp_bayes as edp
from edp_bayes import mechanisms
from edp_bayes.black_box.auditing import audit_mechanism, audit_mechanisms
from edp_bayes.black_box.cells import DENSITY, MERGED, POINT, Cells, count
from edp_bayes.black_box.outcomes import read_outcomes
from edp_bayes.black_box.posterior import field as fields
from edp_bayes.black_box.posterior.models import ClippedField
from edp_bayes.black_box.posterior.pooling import pool, pool_shares
from edp_bayes.black_box.posterior.privacy import (
    Distributions,
    delta_curves,
    distributions,
    local_epsilon,
)
from edp_bayes.loading import load
from tests.exact_sums import exact_sum

QUIET = {"random_seed": 1, "progressbar": False}


def samples(mechanism, size, seed=0):
    rng = np.random.default_rng(seed)
    return [mechanism(database, size, rng) for database in mechanism.pair]


def quick(mechanism, size, seed=0, model=None, **options):
    """An audit whose only warnings may be those about few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return audit_mechanism(
            *samples(mechanism, size, seed),
            epsilon=[0.1, 0.5, 1.0],
            model=model,
            draws=options.pop("draws", 150),
            tune=100,
            chains=options.pop("chains", 1),
            **{**QUIET, **options},
        )


def point_cells(a, b, sizes=None):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    size = a.size
    return Cells(
        a,
        b,
        np.full(size, POINT),
        np.zeros(size, dtype=int),
        np.arange(size, dtype=float),
        np.ones(size),
        np.zeros(size, dtype=bool),
        sizes or (int(a.sum()), int(b.sum())),
    )


# Kinds and cells


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "discrete"),
        (["a", "b", "c"], "discrete"),
        ([True, False, True], "discrete"),
        ([("a", 1), ("b", 2), ("a", 1)], "discrete"),
        (np.array([[1, 0], [0, 1], [1, 1]]), "discrete"),
        ([0.1, 0.2, 0.3], "continuous"),
        ([0.0, 0.2, 0.0], "mixed"),
    ],
    ids=["integers", "strings", "booleans", "tuples", "rows", "floats", "repeated floats"],
)
def test_kinds_are_told_apart(values, kind):
    other = np.asarray(values) + 0.05 if kind == "continuous" else values
    assert read_outcomes(values, other).kind == kind


def test_tuples_of_equal_length_are_single_outcomes():
    outcomes = read_outcomes([("a", 1), ("b", 2)], [("a", 1), ("a", 1)])
    cells = count(outcomes, 0.01)
    assert sorted(zip(cells.a, cells.b, strict=True)) == [(1.0, 0.0), (1.0, 2.0)]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    sizes=st.tuples(st.integers(1, 900), st.integers(1, 900)),
    kind=st.sampled_from(["continuous", "mixed", "integers", "many integers"]),
)
def test_every_outcome_is_counted_once(seed, sizes, kind):
    rng = np.random.default_rng(seed)
    sides = [rng.normal(0, 1, n) for n in sizes]
    if kind == "mixed":
        sides = [np.maximum(x, 0.0) for x in sides]
    elif kind != "continuous":
        sides = [np.round(x * (3 if kind == "integers" else 300)).astype(int) for x in sides]
    outcomes = read_outcomes(*sides)
    cells = count(outcomes, 0.01)
    assert (cells.a.sum(), cells.b.sum()) == sizes
    assert (cells.a + cells.b > 0).all()
    line = cells.role == DENSITY
    assert (np.diff(cells.position[line]) > 0).all()
    assert (cells.width > 0).all()
    assert cells.fresh[0]


def test_rare_values_are_merged_but_none_that_may_reach_tau():
    rng = np.random.default_rng(3)
    spread = np.round(rng.laplace(0, 300, 20_000)).astype(int)
    common = np.full(5000, 7)
    cells = count(read_outcomes(np.r_[spread, common], np.r_[spread + 1, common]), 0.01)
    assert cells.a.size < 250
    assert (cells.role == MERGED).any()
    own = (cells.a + cells.b) / 50_000 > 0.005
    assert (cells.role[own] == POINT).sum() == 1
    assert cells.a.sum() == 25_000


def test_rows_of_floats_are_sorted_by_what_repeats():
    rng = np.random.default_rng(1)
    rows = np.column_stack(
        [np.where(rng.random(400) < 0.5, 0.0, rng.normal(5, 1, 400)), np.ones(400)]
    )
    outcomes = read_outcomes(rows[:200], rows[200:])
    cells = count(outcomes, 0.01)
    assert outcomes.kind == "mixed"
    assert (cells.role == POINT).sum() == 1
    both = (cells.a + cells.b)[cells.role == POINT]
    assert both == (rows[:, 0] == 0.0).sum()


# The field: exact sums against enumeration


def small_field(ordered):
    edges = np.array([-2.0, -1.0, -0.2, 0.5, 2.0])
    grid = 0.5 * (edges[1:] + edges[:-1])
    a, b = np.array([3.0, 4.0, 2.0]), np.array([1.0, 0.0, 5.0])
    flags = np.full(3, ordered)
    fresh = np.array([True, False, False]) if ordered else np.full(3, True)
    x = np.array([-1.0, 0.2, 0.9])
    return fields.Field(a, b, x, flags, fresh, flags, np.zeros(3), 0.3, 0.05, edges, grid)


HYPER = np.array([0.1, -0.4, math.log(0.9), 0.3, math.log(0.8), -0.5, math.log(0.6)])


def laplace_cdf(t, scale):
    return stats.laplace.cdf(t, scale=scale)


def enumerate_paths(field, hyper):
    """Probability of every path of levels, prior times likelihood, by plain definitions."""
    size = field.grid.size
    share, wide = fields.WIDE_SHARE, fields.WIDE
    scale, step = np.exp(hyper[fields.LOG_BASE]), np.exp(hyper[fields.LOG_STEP])
    change = 1 / (1 + np.exp(-hyper[fields.LOGIT_CHANGE]))
    cut = np.r_[-np.inf, field.edges[1:-1], np.inf]
    base = (1 - share) * np.diff(laplace_cdf(cut, scale)) + share * np.diff(
        laplace_cdf(cut, wide * scale)
    )
    kernel = np.exp(-np.abs(field.grid[:, None] - field.grid) / step) * np.diff(field.edges)
    kernel /= kernel.sum(axis=1, keepdims=True)
    rho, stay = field.open_end, fields.STAY_INFINITE
    start = np.r_[(1 - 2 * rho) * base, rho, rho]
    move = np.zeros((size + 2, size + 2))
    move[:size, :size] = (1 - 2 * rho) * (
        (1 - change) * np.eye(size) + 0.5 * change * kernel + 0.5 * change * base
    )
    move[:size, size:] = rho
    move[size:, :size] = (1 - stay) * base
    move[size, size] = move[size + 1, size + 1] = stay
    found = {}
    for path in itertools.product(range(size + 2), repeat=field.a.size):
        weight = 1.0
        for k, level in enumerate(path):
            weight *= start[level] if field.fresh[k] else move[path[k - 1], level]
            weight *= cell_likelihood(field, hyper, k, level)
        found[path] = weight
    return found


def cell_likelihood(field, hyper, k, level):
    size = field.grid.size
    if level == size:
        return float(field.b[k] == 0)
    if level == size + 1:
        return float(field.a[k] == 0)
    r = field.grid[level]
    if field.ordered[k]:
        top = np.exp(hyper[fields.LOG_CLIP])
        r += hyper[fields.ALPHA] + hyper[fields.BETA] * field.x[k]
        r = np.clip(r, -top * np.exp(hyper[fields.CLIP_RATIO]), top)
    p = 1 / (1 + np.exp(-(r + field.offset)))
    return p ** field.a[k] * (1 - p) ** field.b[k]


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
def test_the_marginal_likelihood_is_the_sum_over_all_paths(ordered):
    field = small_field(ordered)
    table, filtered = np.empty((3, 4)), np.empty((3, 6))
    fields.fill_table(field, HYPER, table)
    found = fields.forward(field, HYPER, table, filtered)
    assert found == pytest.approx(math.log(sum(enumerate_paths(field, HYPER).values())), rel=1e-12)


def test_paths_are_drawn_with_their_posterior_probabilities():
    field = small_field(True)
    table, filtered = np.empty((3, 4)), np.empty((3, 6))
    fields.fill_table(field, HYPER, table)
    fields.forward(field, HYPER, table, filtered)
    paths = enumerate_paths(field, HYPER)
    total = sum(paths.values())
    rng = np.random.default_rng(4)
    level, stays = np.empty(3, np.int64), np.zeros(4, bool)
    draws = 40_000
    seen = dict.fromkeys(paths, 0)
    for _ in range(draws):
        fields._draw_levels(field, HYPER, filtered, rng, level, stays)
        seen[tuple(level.tolist())] += 1
    expected = np.array(list(paths.values())) / total * draws
    observed = np.array(list(seen.values()))
    large = expected > 10
    rest = [(~large) @ expected, (~large) @ observed]
    e, o = np.r_[expected[large], rest[0]], np.r_[observed[large], rest[1]]
    assert stats.chisquare(o, e * o.sum() / e.sum()).pvalue > 1e-3


# Privacy from draws


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_delta_is_the_larger_of_both_discrete_sums(seed):
    p, q = np.random.default_rng(seed).dirichlet(np.ones(6), (2, 3))
    epsilon = np.array([0.0, 0.3, 1.0])
    found = delta_curves(Distributions(np.log(p / q), p, q), epsilon)
    expected = np.maximum(exact_sum(p, q, epsilon), exact_sum(q, p, epsilon))
    np.testing.assert_allclose(found, expected, atol=1e-14)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.05, 0.4))
def test_the_local_epsilon_of_values_is_a_plain_maximum(seed, tau):
    p, q = np.random.default_rng(seed).dirichlet(np.ones(6), (2, 3))
    found = local_epsilon(
        point_cells(np.ones(6), np.ones(6)), Distributions(np.log(p / q), p, q), tau
    )
    for k in range(3):
        kept = np.maximum(p[k], q[k]) >= tau
        expected = np.abs(np.log(p[k] / q[k]))[kept].max(initial=0.0)
        assert found[k] == pytest.approx(expected)


def test_an_infinite_log_ratio_counts_only_where_tau_is_reached():
    ratio = np.array([[np.inf, 0.1, -0.2], [np.inf, 0.1, -0.2]])
    p = np.array([[0.02, 0.5, 0.48], [0.001, 0.509, 0.49]])
    q = np.array([[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    found = local_epsilon(point_cells(np.ones(3), np.ones(3)), Distributions(ratio, p, q), 0.01)
    assert found.tolist() == [np.inf, 0.2]


@pytest.mark.parametrize(
    "mechanism",
    [mechanisms.Gaussian(), mechanisms.Laplace(), mechanisms.NoisyMaxValue()],
    ids=lambda mechanism: mechanism.name,
)
def test_bins_hardly_change_the_truth(mechanism):
    """Exact counts of 4 million outcomes leave the error of binning and interpolation alone."""
    cells = count(read_outcomes(*samples(mechanism, 1_000_000, seed=3)), 0.01)
    p, q = (side / side.sum() for side in (cells.a + 1e-9, cells.b + 1e-9))
    found = Distributions(np.log(p / q)[None], p[None], q[None])
    epsilon = np.array([0.1, 0.5])
    truth = [mechanism.delta(epsilon=float(e)) for e in epsilon]
    np.testing.assert_allclose(delta_curves(found, epsilon)[0], truth, atol=0.003)


def test_distributions_have_the_spread_of_two_independent_samples():
    """For free log ratios the result is that of two Dirichlet posteriors."""
    a, b = np.array([6000.0, 3000.0, 1000.0]), np.array([2000.0, 1500.0, 1500.0])
    cells = point_cells(a, b)
    rng = np.random.default_rng(2)
    size = 20_000
    offset = math.log(a.sum() / b.sum())
    # Given the totals, logits are those of independent Beta posteriors.
    share = rng.beta(a, b, (size, 3))
    found = distributions(cells, np.log(share / (1 - share)) - offset, rng)
    p, q = a / a.sum(), b / b.sum()
    expected = np.sqrt((1 - p) / a + (1 - q) / b)
    np.testing.assert_allclose(found.log_ratio.std(axis=0), expected, rtol=0.03)
    np.testing.assert_allclose(found.log_ratio.mean(axis=0), np.log(p / q), atol=0.003)
    np.testing.assert_allclose(found.p.std(axis=0), np.sqrt(p * (1 - p) / a.sum()), rtol=0.03)
    np.testing.assert_allclose(found.p.sum(axis=1), 1.0)


# Whole audits


def test_the_lower_end_is_close_below_the_truth():
    ends = [
        np.quantile(quick(mechanisms.Laplace(), 10_000, seed).local_epsilon, [0.025, 0.975])
        for seed in range(5)
    ]
    low, high = np.median(ends, axis=0)
    assert 0.93 <= low <= 1.0 <= high <= 1.1


class IndependentCells:
    """Independent Dirichlet posteriors of both distributions, nothing shared between cells."""

    def draw(self, cells, settings):
        """Return draws of log(p / q), shape (chain * draw, cell)."""
        rng = settings.generator("field")
        shape = (settings.chains * settings.draws, cells.a.size)
        sides = []
        for counts in (cells.a, cells.b):
            mass = np.maximum(rng.standard_gamma(counts + 0.5, shape), 1e-300)
            sides.append(np.log(mass) - np.log(mass.sum(axis=1, keepdims=True)))
        return sides[0] - sides[1]


def test_independent_cells_have_the_winners_curse_and_the_field_has_not():
    mechanism = mechanisms.Geometric()
    truth = mechanism.local_epsilon(0.01)
    above = {"field": 0, "independent": 0}
    for seed in range(5):
        for name, model in (("field", ClippedField()), ("independent", IndependentCells())):
            draws = quick(mechanism, 10_000, seed, model=model).local_epsilon
            above[name] += bool(np.quantile(draws, 0.025) > truth)
    assert above["independent"] >= 4
    assert above["field"] <= 1


def test_an_infinite_truth_has_an_open_upper_end():
    for mechanism in (mechanisms.SparseVector(5), mechanisms.NoisyMaxValue(noise="exponential")):
        assert mechanism.local_epsilon(0.01) == np.inf
        audit = quick(mechanism, 10_000)
        low, high = audit.local_epsilon_interval(0.9)
        assert high == np.inf
        assert low > 2.0
        assert 0.05 < audit.infinite_probability <= 1.0


@pytest.mark.full
def test_a_large_audit_is_fast_and_its_band_narrow():
    mechanism = mechanisms.Gaussian()
    pair = samples(mechanism, 100_000)
    quick(mechanism, 1000)  # imports and compilation apart
    start = time.process_time()
    audit = audit_mechanism(*pair, epsilon=[0.1, 0.5, 1.0], **QUIET)
    assert time.process_time() - start < 10
    assert audit.warnings == ()
    band = audit.band(kind="pointwise", prob=0.95)
    truth = [mechanism.delta(epsilon=e) for e in (0.1, 0.5, 1.0)]
    assert (band.upper - band.lower).max() < 0.0587
    assert ((band.lower < truth) & (truth < band.upper)).all()


@pytest.mark.parametrize(
    "mechanism",
    [mechanisms.RandomizedResponse(), mechanisms.NumericalSparseVector(), mechanisms.Rappor()],
    ids=lambda mechanism: mechanism.name,
)
def test_draws_surround_the_truth_of_other_kinds(mechanism):
    """Only gross errors fail here, outside of all draws; coverage is measured elsewhere."""
    audit = quick(mechanism, 10_000, seed=5)
    assert audit.kind == mechanism.kind
    local, curve = audit.local_epsilon, audit.delta.sel(epsilon=0.5)
    assert local.min() <= mechanism.local_epsilon(0.01) <= local.max()
    assert curve.min() <= mechanism.delta(epsilon=0.5) <= curve.max()
    assert local.max() - local.min() < 0.7
    assert curve.max() - curve.min() < 0.1


def test_several_continuous_columns_give_a_lower_bound_and_say_so():
    mechanism = mechanisms.NoisyHistogram(0.5)
    pair = samples(mechanism, 20_000)
    few = {"epsilon": [0.1], "draws": 150, "tune": 100, "chains": 1, **QUIET}
    learned = few_draws(*pair, **few)
    stated = few_draws(*pair, statistic=first, **few)
    assert "column 0, learned" in learned.warnings[0]
    assert "a stated statistic, first" in stated.warnings[0]
    for audit in (learned, stated):
        assert audit.lower_bound
        low, high = audit.local_epsilon_interval(0.99)
        assert low <= mechanism.local_epsilon(0.01) <= high


def few_draws(*pair, **options):
    with pytest.warns(edp.EdpBayesWarning, match="is a lower bound for the mechanism"):
        return audit_mechanism(*pair, **options)


def first(rows):
    return rows[:, 0]


def test_the_same_seed_gives_the_same_draws_whatever_the_cores():
    one = quick(mechanisms.Laplace(), 2000, draws=30, chains=2, cores=1)
    two = quick(mechanisms.Laplace(), 2000, draws=30, chains=2, cores=2)
    other = quick(mechanisms.Laplace(), 2000, draws=30, chains=2, random_seed=2)
    np.testing.assert_array_equal(one.delta, two.delta)
    np.testing.assert_array_equal(one.local_epsilon, two.local_epsilon)
    assert (one.local_epsilon != other.local_epsilon).any()
    assert one.settings["fingerprint"] == other.settings["fingerprint"]


@pytest.mark.parametrize("name", ["audit.nc", "audit.zarr"])
def test_a_saved_audit_loads_identical(tmp_path, name):
    audit = quick(mechanisms.SparseVector(5), 2000, adjacency="add-remove", unit="a person")
    audit.save(tmp_path / name)
    loaded = load(tmp_path / name)
    assert loaded.tree.identical(audit.tree)
    assert np.isinf(loaded.local_epsilon).any()
    assert loaded.settings["adjacency"] == "add-remove"
    assert loaded.settings["unit"] == "a person"
    assert loaded.tau == 0.01
    assert loaded.settings["random_seed"] == 1
    with pytest.raises(edp.InvalidInputError, match="is a saved MechanismAudit, not Audit"):
        edp.load(tmp_path / name, kind=edp.Audit)


def test_the_summary_has_no_nan_and_says_where_infinity_begins():
    audit = quick(mechanisms.SparseVector(5), 5000, chains=2)
    table = audit.summary(ci_prob=0.9)
    assert table.loc["local_epsilon", "eti90_ub"] == np.inf
    assert not table.isna().to_numpy().any()
    assert np.isfinite(table.loc["delta[0.5]"]).all()


# Pairs


def shifted(database, size, rng):
    return rng.laplace(database, 1.0, size)


@pytest.mark.full
def test_the_budget_goes_to_the_worst_pair_and_the_maximum_is_joint():
    pairs = [(0.0, 0.2), (0.0, 1.0), (0.5, 0.6), (0.0, 0.1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = audit_mechanisms(
            shifted, pairs, epsilon=[0.1, 0.5], size=4000, draws=150, tune=100, chains=1, **QUIET
        )
    spent = [first for first, _ in found.settings["samples"]]
    assert spent.index(max(spent)) == 1
    assert sum(spent) <= 4 * 4000
    np.testing.assert_array_equal(found.local_epsilon, found.pair_local_epsilon.max("pair"))
    np.testing.assert_array_equal(found.delta, found.pair_delta.max("pair"))
    assert (found.pair_delta.diff("epsilon") <= 0.0).all()
    low, high = found.local_epsilon_interval(0.98)
    assert low <= 1.0 <= high
    by_database = found.database_local_epsilon
    assert list(by_database.database.to_numpy()) == ["0.0", "0.5"]
    np.testing.assert_array_equal(
        by_database.sel(database="0.5"), found.pair_local_epsilon.isel(pair=2)
    )
    assert found.lower_bound


def first_answer(database, size, rng):
    return rng.random(size) < 0.5 + 0.1 * database[0]


def test_databases_are_told_apart_however_long_they_are():
    zeros = [0.0] * 100
    ones = [*zeros[:-1], 1.0]
    pairs = [(zeros, ones), (np.array(zeros), ones), (zeros, [1.0, *zeros[1:]]), (ones, zeros)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        found = audit_mechanisms(
            first_answer, pairs, epsilon=[0.1], size=200, draws=20, tune=10, chains=1, **QUIET
        )
    assert found.database_local_epsilon.sizes["database"] == 3  # a list, an array and another list
    assert len(set(found.pair_local_epsilon["pair"].to_numpy())) == 4


def noisy_sum(database, size, rng):
    return np.sum(database) + rng.laplace(size=size)


def without_each(database):
    """Return the pairs of a database and its neighbours, by whom they lack."""
    return {f"without {i}": (database, np.delete(database, i)) for i in range(len(database))}


def audit_quietly(pairs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return audit_mechanisms(noisy_sum, pairs, epsilon=[0.5], chains=1, **QUIET, **options)


SHORT = {"size": 300, "draws": 40, "tune": 20}


def with_draws(audit, draws):
    """Return the audit with these draws (draw, pair) of the local epsilon instead of its own."""
    tree = audit.tree.copy(deep=True)
    tree["posterior"]["pair_local_epsilon"][0] = draws
    return edp.MechanismAudit(tree)


@pytest.mark.full
def test_the_data_centric_level_is_that_of_the_worst_neighbour_and_names_it():
    contributions = np.array([0.1, 1.0, 0.2])
    found = audit_quietly(without_each(contributions), size=4000, draws=150, tune=100)
    level = found.data_centric(prob=0.98)
    assert level["lower"] <= 1.0 <= level["upper"]
    low, high = found.local_epsilon_interval(0.98)
    assert (float(level["lower"]), float(level["upper"])) == (low, high)
    assert level["pair"].to_numpy()[0] == "without 1"
    assert float(level["worst"][0]) > 0.95
    by_name = level.sel(pair=[f"without {i}" for i in range(3)])
    assert (by_name["pair_lower"] <= contributions).all()
    assert (by_name["pair_upper"] >= contributions).all()
    assert level.attrs == {"prob": 0.98, "tau": 0.01}


@pytest.mark.full
@pytest.mark.parametrize(
    "contributions",
    [np.full(8, 0.5), np.linspace(0.1, 0.8, 8), np.r_[np.full(7, 0.1), 1.0]],
    ids=["equal", "spread", "exposed"],
)
def test_the_data_centric_level_covers(contributions):
    """Of 25 upper ends of bands of 90%, six or more are below with probability 1e-3.

    Lower ends may lie above the truth more often: each neighbour's posterior is half a standard
    deviation too high, and that of the level of equal neighbours is narrower than theirs.
    """
    truth, level_holds, upper_holds, all_hold = contributions.max(), 0, 0, 0
    for seed in range(25):
        options = {**QUIET, "random_seed": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", edp.EdpBayesWarning)
            found = audit_mechanisms(
                noisy_sum,
                without_each(contributions),
                epsilon=[0.5],
                size=3000,
                draws=150,
                tune=100,
                chains=1,
                **options,
            )
        level = found.data_centric(prob=0.9)
        level_holds += bool(level["lower"] <= truth <= level["upper"])
        upper_holds += bool(truth <= level["upper"])
        each = level.sel(pair=found.pair_local_epsilon["pair"])
        inside = (each["pair_lower"] <= contributions) & (contributions <= each["pair_upper"])
        all_hold += bool(inside.all())
    assert level_holds >= 14
    assert upper_holds >= 20
    assert all_hold >= 18


@pytest.mark.full
def test_neighbours_that_are_equally_bad_are_all_the_worst_and_infinity_stays():
    found = audit_quietly(without_each(np.array([0.5, 0.5, 0.1])), **SHORT)
    draws = np.column_stack([np.full(40, 0.5), np.full(40, 0.5), np.full(40, 0.1)])
    level = with_draws(found, draws).data_centric(prob=0.9)
    np.testing.assert_array_equal(level["worst"], [1.0, 1.0, 0.0])
    assert float(level["median"]) == 0.5
    draws[:20, 2] = np.inf
    level = with_draws(found, draws).data_centric(prob=0.9)
    assert level["pair"].to_numpy()[-1] == "without 2"
    np.testing.assert_array_equal(level["worst"], [0.5, 0.5, 0.5])
    assert float(level["upper"]) == np.inf
    assert float(level["lower"]) == 0.5
    last = level.isel(pair=-1)
    assert (float(last["pair_lower"]), float(last["pair_upper"])) == (0.1, np.inf)
    np.testing.assert_array_equal(level["pair_upper"][:2], [0.5, 0.5])


@pytest.mark.full
def test_of_several_databases_one_is_named(tmp_path):
    first, second = (0.5, 0.1), (1.0,)
    pairs = [(first, (0.5,)), (second, ()), (first, (0.1,))]
    found = audit_quietly(pairs, **SHORT)
    with pytest.raises(edp.InvalidInputError, match=r"must be named .* one of .*'\(0.5, 0.1\)'"):
        found.data_centric()
    with pytest.raises(edp.InvalidInputError, match=r"must be one of .* found '3'"):
        found.data_centric("3")
    level = found.data_centric("(0.5, 0.1)")
    assert set(level["pair"].to_numpy()) == {"(0.5, 0.1) / (0.5,)", "(0.5, 0.1) / (0.1,)"}
    draws = found.database_local_epsilon.sel(database="(0.5, 0.1)")
    assert float(level["median"]) == pytest.approx(float(np.median(draws)))
    loaded = load(found.save(tmp_path / "audit.nc"))
    xr.testing.assert_identical(loaded.data_centric("(0.5, 0.1)"), level)
    older = found.tree.copy(deep=True)
    older["posterior"] = older["posterior"].to_dataset().drop_vars("of_database")
    with pytest.raises(edp.InvalidInputError, match="audit again"):
        edp.MechanismAudit(older).data_centric("(1.0,)")


def test_one_pair_is_the_whole_of_its_level():
    found = audit_quietly({"without Ann": ((1.0,), ())}, **SHORT)
    level = found.data_centric()
    assert level["pair"].to_numpy().tolist() == ["without Ann"]
    assert float(level["worst"][0]) == 1.0
    with pytest.raises(edp.InvalidInputError, match="several pairs"):
        quick(mechanisms.RandomizedResponse(1.0), 100).data_centric()


def test_names_of_pairs_are_texts():
    with pytest.raises(edp.InputTypeError, match="the name of a pair must be a text"):
        audit_mechanisms(noisy_sum, {1: ((1.0,), ())}, epsilon=[0.5], **QUIET)


@pytest.mark.full
def test_the_joint_maximum_of_equal_pairs_covers_where_separate_ones_do_not():
    rng = np.random.default_rng(8)
    hits = {"joint": 0, "separate": 0}
    for _ in range(40):
        centre = rng.normal(0.0, 0.1, 25)
        separate = np.exp(centre + rng.normal(0.0, 0.1, (1000, 25)))
        joint = pool(separate, rng, 1000)
        for name, draws in (("joint", joint), ("separate", separate)):
            low, high = np.quantile(draws.max(axis=1), [0.05, 0.95])
            hits[name] += low <= 1.0 <= high
    assert hits["joint"] >= 30
    assert hits["separate"] <= 14


@pytest.mark.full
@pytest.mark.parametrize("truth", [0.1, 0.02, 0.0])
def test_the_joint_maximum_of_equal_deltas_covers_where_separate_ones_do_not(truth):
    rng = np.random.default_rng(4)
    hits = {"joint": 0, "separate": 0}
    for _ in range(40):
        centre = rng.normal(truth, 0.01, 25)
        separate = np.maximum(rng.normal(centre, 0.01, (1000, 25)), 0.0)
        joint = pool_shares(separate, rng)
        for name, draws in (("joint", joint), ("separate", separate)):
            low, high = np.quantile(draws.max(axis=1), [0.05, 0.95])
            hits[name] += low <= truth + 1e-3 and truth <= high
    assert hits["joint"] >= 30
    assert hits["separate"] <= 14


def test_no_delta_anywhere_stays_none():
    rng = np.random.default_rng(1)
    draws = np.zeros((50, 3))
    assert (pool_shares(draws, rng) == 0.0).all()
    draws[:, 1] = rng.uniform(0.1, 0.2, 50)
    np.testing.assert_array_equal(pool_shares(draws, rng), draws)
    draws[:, 2] = rng.uniform(0.1, 0.2, 50)
    joint = pool_shares(draws, rng)
    assert (joint[:, 0] == 0.0).all()
    assert (joint[:, 1:] > 0.0).all()


def test_pooling_leaves_a_pair_that_stands_out_alone():
    rng = np.random.default_rng(9)
    centre = np.r_[np.zeros(10), 1.0]
    draws = np.exp(centre + rng.normal(0.0, 0.05, (2000, 11)))
    joint = pool(draws, rng, 2000)
    # A normal distribution of all pairs draws it in, by less than its own error.
    assert np.log(joint[:, -1]).mean() == pytest.approx(1.0, abs=0.05)
    assert np.log(joint[:, -1]).std() == pytest.approx(0.05, rel=0.2)


# Bad input


def call(first=(0.1, 0.2, 0.3), second=(0.2, 0.3, 0.4), **options):
    return audit_mechanism(first, second, **{"epsilon": [0.5], **QUIET, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": ()}, "samples must hold at least one outcome, found none"),
        ({"second": []}, "samples_neighbour must hold at least one outcome"),
        ({"first": [0.1, np.nan]}, "samples must be finite, found nan at position 1"),
        ({"first": [1, 2, 3]}, "same kind of outcomes, found integers in samples and floats"),
        ({"first": ["a", "b"]}, "same kind of outcomes, found strings in samples and floats"),
        ({"first": np.ones((4, 2))}, "as many columns as each other"),
        ({"first": np.ones((2, 2, 2))}, r"shape \(size,\) or \(size, column\)"),
        ({"first": 3.0}, "samples must be a sequence of outcomes"),
        ({"kind": "count"}, "kind must be one of auto, continuous, discrete, mixed"),
        ({"first": ["a"], "second": ["b"], "kind": "continuous"}, "must be numbers, found strings"),
        ({"first": [None, "a"], "second": ["b", "a"]}, "must not be missing, found None at pos"),
        ({"tau": 0.0}, "tau must lie strictly between 0 and 1"),
        ({"epsilon": [-1.0]}, "epsilon must not be negative"),
        ({"adjacency": "any"}, "adjacency must be one of substitution, add-remove"),
        ({"unit": ""}, "unit must be a text"),
        ({"model": "field"}, "model must be a model of log ratios"),
        ({"statistic": first}, "statistic is for outcomes of several continuous columns"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"random_seed": -1}, "random_seed must not be negative"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
def test_bad_input_is_refused(options, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        call(**options)


def test_a_statistic_of_the_wrong_shape_is_refused():
    pair = samples(mechanisms.NoisyHistogram(0.5), 100)
    with pytest.raises(edp.InvalidInputError, match="statistic must return 100 finite numbers"):
        audit_mechanism(*pair, epsilon=[0.5], statistic=lambda rows: rows, **QUIET)


def raises(database, size, rng):
    if database == 2:
        raise RuntimeError("no such table")
    return rng.normal(database, 1, size)


def too_short(database, size, rng):
    return rng.normal(database, 1, size if database < 2 else size - 1)


def not_a_number(database, size, rng):
    return np.full(size, np.nan if database == 2 else 1.5)


def of_another_kind(database, size, rng):
    return rng.integers(0, 3, size) if database == 2 else rng.normal(0, 1, size)


def of_another_kind_for_one_pair(database, size, rng):
    return rng.integers(0, 3, size) if database else rng.normal(0, 1, size)


def test_kinds_that_differ_between_pairs_are_refused():
    with pytest.raises(edp.InvalidInputError, match=r"one kind, found continuous ones for pair"):
        audit_mechanisms(
            of_another_kind_for_one_pair, [(0, 0), (1, 2)], epsilon=[0.5], size=100, **QUIET
        )


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (raises, r"failed on database 1 of pair 1 \(0, 2\): RuntimeError: no such table"),
        (too_short, r"must return 100 outcomes, found shape \(99,\) for database 1 of pair 1"),
        (
            not_a_number,
            r"outcomes of pair 1 \(0, 2\) cannot be used: samples_neighbour must be fin",
        ),
        (of_another_kind, r"outcomes of pair 1 \(0, 2\) cannot be used: both samples must hold"),
    ],
    ids=["raises", "wrong length", "not finite", "another kind"],
)
def test_a_bad_mechanism_is_named_with_its_pair(mechanism, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        audit_mechanisms(mechanism, [(0, 1), (0, 2)], epsilon=[0.5], size=100, **QUIET)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "pairs must hold at least one"),
        ([(0, 1, 2)], "pair 0 must be a tuple"),
        (3, "pairs must be a sequence"),
    ],
    ids=["none", "a triple", "no sequence"],
)
def test_bad_pairs_are_refused(pairs, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        audit_mechanisms(shifted, pairs, epsilon=[0.5], **QUIET)


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(edp.InputTypeError, match="mechanism must be callable"):
        audit_mechanisms(3, [(0, 1)], epsilon=[0.5], **QUIET)


def test_a_model_with_a_wrong_probability_is_refused():
    with pytest.raises(edp.InvalidInputError, match="tie must lie strictly between 0 and 1"):
        ClippedField(tie=1.0)
    with pytest.raises(edp.InvalidInputError, match="twice open_end"):
        ClippedField(open_end=0.5)


def test_no_outcome_above_tau_is_said():
    rng = np.random.default_rng(1)
    with pytest.warns(edp.EdpBayesWarning, match="No outcome reaches tau"):
        audit = audit_mechanism(
            rng.integers(0, 500, 2000),
            rng.integers(0, 500, 2000),
            epsilon=[0.5],
            draws=8,
            tune=2,
            **QUIET,
        )
    assert (audit.local_epsilon == 0.0).all()


@given(st.integers(0, 10_000), st.integers(20, 400), st.sampled_from([4, 20, 100]))
@settings(max_examples=200, deadline=None)
def test_a_line_with_ties_has_no_empty_cell(seed, size, values):
    rng = np.random.default_rng(seed)
    sides = [np.round(rng.normal(shift, 1.0, size) * values) / values for shift in (0.0, 1.0)]
    cells = count(read_outcomes(*sides, kind="continuous"), 0.01)
    assert (cells.a + cells.b > 0).all()
    assert cells.a.sum() == cells.b.sum() == size
    assert np.isfinite(cells.position).all()
    assert (np.diff(cells.position) > 0).all()


@pytest.mark.parametrize(
    "statistic",
    [
        lambda rows: (rows > 0).sum(axis=1).astype(float),
        lambda rows: rows.argmax(axis=1).astype(float),
        lambda rows: rows[:, 0] > 1.0,
    ],
    ids=["count", "argmax", "indicator"],
)
def test_values_of_a_statistic_that_repeat_are_counted(statistic):
    rng = np.random.default_rng(3)
    sides = [rng.normal(shift, 1.0, (2000, 3)) for shift in (0.0, 0.5)]
    outcomes = read_outcomes(*sides)
    cells = count(outcomes, 0.01, statistic)
    expected = [np.asarray(statistic(rows), dtype=float) for rows in sides]
    values = np.unique(expected)
    assert (cells.role == POINT).all()
    for counted, numbers in zip((cells.a, cells.b), expected, strict=True):
        np.testing.assert_array_equal(counted, [(numbers == v).sum() for v in values])


@pytest.mark.parametrize(
    "statistic", [lambda rows: 1 / 0, lambda rows: ["a"] * len(rows)], ids=["fails", "text"]
)
def test_a_statistic_that_fails_is_named(statistic):
    rng = np.random.default_rng(3)
    sides = [rng.normal(size=(100, 2)) for _ in range(2)]
    with pytest.raises(edp.InvalidInputError, match="statistic must return a number"):
        audit_mechanism(*sides, epsilon=[0.1], statistic=statistic, **QUIET)


def test_pooled_shares_are_shares():
    rng = np.random.default_rng(1)
    separate = np.clip(rng.normal(0.99, 0.006, (4000, 5)), 0.0, 1.0)
    joint = pool_shares(separate, rng)
    assert joint.max() == 1.0
    assert joint.min() > 0.9


def test_few_outcomes_are_said_to_leave_much_to_the_prior():
    a, b = np.random.default_rng(3).laplace([[0.0], [1.0]], size=(2, 19))
    options = {"epsilon": [0.1, 1.0], "draws": 250, "random_seed": 1, "progressbar": False}
    with pytest.warns(edp.EdpBayesWarning, match="Only 19 outcomes of a side"):
        few = edp.audit_mechanism(np.r_[a, a], b, **options)
    assert any("Only 19 outcomes" in sentence for sentence in few.warnings)
    enough = edp.audit_mechanism(np.r_[a, 0.5], np.r_[b, 0.5], **options)
    assert not any("outcomes of a side" in sentence for sentence in enough.warnings)
