"""Planning: new databases follow the fitted model, and the search finds the fewest that suffice."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import edp_bayes as edp
from edp_bayes.auditing import planning
from edp_bayes.auditing.future_databases import FutureDatabases
from edp_bayes.auditing.planning import Plan, plan
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.models import DirichletProcessMixture, FiniteMixture, SamplerSettings

QUICK = {"repetitions": 4, "draws": 40, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(3)
    contribution = rng.normal(0.4, 0.15, (40, 3))
    contribution[:, 1] *= rng.random(40) < 0.5
    contribution[:, 2] += 0.2 * rng.standard_normal(40)
    rest = np.where(rng.random(40) < 0.4, 14.0, 10.0) + rng.standard_normal(40)
    return edp.Responses.from_arrays(
        rest + contribution.sum(axis=1), contribution=contribution, individual=["a", "b", "c"]
    )


@pytest.fixture(scope="module")
def coupling(responses):
    quick = SamplerSettings(draws=20, tune=300, chains=1, random_seed=1, progressbar=False)
    found = DirichletProcessMixture().fit(responses, quick).coupling
    assert isinstance(found, RegressionCoupling)
    return found


@pytest.mark.parametrize("draw", [0, 7, 19])
@pytest.mark.parametrize("individual", [0, 1, 2], ids=["steady", "absent half the time", "varied"])
def test_a_response_less_its_contribution_follows_the_distribution_without(
    coupling, draw, individual
):
    """Given a response from p, the contribution drawn leaves exactly p_i, and what it says of c."""
    rng = np.random.default_rng(1)
    p, p_i = (distribution[0][draw] for distribution in coupling.pair(individual))
    y = p.sample(40_000, rng)
    distribution = FutureDatabases(coupling, np.array([individual]))
    c = distribution._given(y, distribution._base(draw), draw, 0, rng)
    assert kstest(y - c, p_i.cdf).pvalue > 1e-4
    drawn = coupling.contributions(np.array([individual]))
    a, b, tau = (float(part[draw, 0]) for part in (drawn.intercept, drawn.slope, drawn.spread))
    rho = min(float(coupling.mixture.weights[0, draw] @ drawn.presence[draw, 0]), 1.0)
    assert abs((c != 0).mean() - rho) <= 5 * math.sqrt(rho * (1 - rho) / y.size)
    rest = (y - c)[c != 0]
    error = (c[c != 0] - a - b * rest) / tau
    assert kstest(error, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(error, rest)[0, 1]) < 5 / math.sqrt(error.size)


def test_simulated_responses_follow_the_distribution_of_the_draw(coupling):
    distribution = FutureDatabases(coupling, np.arange(3))
    y, c = distribution.sample(5, 40_000, np.random.default_rng(2))
    assert c.shape == (40_000, 3)
    assert kstest(y, coupling.mixture[0][5].cdf).pvalue > 1e-4


class KnownWidths:
    """A study whose average width at n databases is n to a known negative power."""

    def __init__(self, in_question, most, power):
        self.responses = type("InQuestion", (), {"n_databases": in_question})
        self.most, self.power, self.tried = most, power, []

    def measure(self, size):
        self.tried.append(size)
        return size**-self.power


@settings(derandomize=True, deadline=None)
@given(
    in_question=st.integers(8, 500),
    factor=st.floats(1.0, 100.0),
    power=st.floats(0.2, 1.0),
    wanted=st.floats(0.01, 0.5),
)
def test_the_search_finds_the_fewest_to_a_tenth(in_question, factor, power, wanted):
    study = KnownWidths(in_question, int(in_question * factor), power)
    found = planning._search(study, wanted)
    if study.most**-power > wanted:
        assert found is None
        return
    fewest = max(in_question, math.ceil(round(wanted ** (-1 / power), 9)))
    assert found**-power <= wanted
    assert fewest <= found <= max(fewest + 1, fewest / (1 - planning.TOLERANCE) + 1)
    assert len(set(study.tried)) < 25


@pytest.mark.full
def test_a_plan_repeats_itself_and_more_databases_narrow_the_band(responses):
    first = plan(responses, width=0.16, epsilon=[0.1, 0.3], prob=0.9, **QUICK)
    second = plan(responses, width=0.16, epsilon=[0.1, 0.3], prob=0.9, **QUICK)
    np.testing.assert_array_equal(first.sizes, second.sizes)
    np.testing.assert_array_equal(first.widths, second.widths)
    assert first.databases > responses.n_databases == first.sizes[0]
    table = first.table()
    assert table.loc[40, "width"] > 0.16 >= table.loc[first.databases, "width"]
    assert table["held"].mean() > 0.5  # 0.9 is expected; below a half something is broken
    assert str(first).startswith(f"{first.databases} databases: their simultaneous 90% bands")


def test_a_plan_says_when_the_most_are_too_few(responses):
    found = plan(responses, width=0.001, epsilon=0.1, most=45, kind="pointwise", **QUICK)
    assert found.databases is None
    assert found.sizes.tolist() == [40, 45]
    assert str(found).startswith("45 databases are too few: their pointwise 89% bands")


def test_known_noise_and_fewer_components_narrow_the_band(responses):
    options = {"width": 0.99, "epsilon": 0.1, "most": 40, **QUICK}
    noisy = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution, noise=edp.GaussianNoise(3.0)
    )
    plain = plan(responses, **options)
    assert plain.databases == 40
    assert plan(noisy, **options).widths.mean() < plain.widths.mean()
    normal = plan(responses, model=FiniteMixture(components=1), **options)
    assert normal.widths.mean() < plain.widths.mean()


def test_a_limit_asked_for_is_reached_by_half_of_the_futures(responses):
    found = plan(responses, delta=0.4, epsilon=[0.1, 0.3], **QUICK)
    assert found.prob == 0.95
    assert found.width is None
    assert found.databases is not None
    reached = found.limits[found.sizes == found.databases][0]
    assert (reached <= 0.4).mean() >= 0.5
    short = found.limits[found.sizes < found.databases]
    assert ((short <= 0.4).mean(axis=1) < 0.5).all()
    table = found.table()
    assert table["low_enough"].loc[found.databases] >= 0.5
    assert table["limit"].loc[found.databases] <= 0.4
    assert str(found).startswith(
        f"{found.databases} databases: in half of 4 simulated futures their simultaneous 95% upper"
    )


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_a_limit_is_the_least_that_half_of_the_futures_reach(limits):
    measured = np.array(limits)
    found = planning._typical(measured, 0.4)
    assert (measured <= found).mean() >= 0.5 > (measured < found).mean()
    assert planning._typical(measured, None) == pytest.approx(measured.mean())


@pytest.mark.full
def test_an_individual_seen_once_may_come_again():
    """After 1 of 20 databases a presence of 0.1 is likely, and more databases will show it."""
    rng, contribution = np.random.default_rng(4), np.zeros(20)
    contribution[7] = 6.0
    once = edp.Responses.from_arrays(
        rng.standard_normal(20) + contribution, contribution=contribution
    )
    options = {"model": FiniteMixture(components=1), "kind": "pointwise", **QUICK}
    options |= {"repetitions": 8, "draws": 100}
    found = plan(once, delta=0.1, epsilon=1.0, **options)
    assert 40 <= found.databases <= 300
    assert found.limits[0].min() > 0.1
    few = plan(once, delta=0.01, epsilon=1.0, most=60, **options)
    assert few.databases is None
    assert str(few).startswith("60 databases are too few: in half of 8 simulated futures")


BAD = {
    "both": (
        {"delta": 0.1},
        edp.InvalidInputError,
        "give width= or delta=, one of them, found width=0.1 and delta=0.1",
    ),
    "neither": ({"width": None}, edp.InvalidInputError, "one of them, found neither"),
    "delta": (
        {"width": None, "delta": 1.5},
        edp.InvalidInputError,
        "delta must lie strictly between 0 and 1",
    ),
    "not responses": ({"responses": [1.0]}, edp.InputTypeError, "must be Responses"),
    "width": ({"width": 1.5}, edp.InvalidInputError, "width must lie strictly between 0 and 1"),
    "kind": ({"kind": "global"}, edp.InvalidInputError, "kind must be one of"),
    "most": ({"most": 39}, edp.InvalidInputError, "most must be at least 40"),
    "bootstrap": ({"model": edp.SmoothedBootstrap()}, edp.InvalidInputError, "ShiftCoupling"),
    "model": ({"model": "mixture"}, edp.InputTypeError, "must be a density model"),
    "draws": (
        {"prob": 0.95, "draws": 19},
        edp.InvalidInputError,
        "draws must be at least 20, found 19",
    ),
    "adversary": (
        {"adversary": edp.Adversary(past=1, changing_scale=True)},
        edp.InvalidInputError,
        "plan cannot be made where the scale changes: .* without changing_scale=True",
    ),
    "nobody": ({"adversary": "me"}, edp.InputTypeError, "must be an Adversary"),
    "repetitions": ({"repetitions": 0}, edp.InvalidInputError, "repetitions must be at least 1"),
}


@pytest.mark.full
def test_an_adversary_is_planned_for():
    """The same databases, seen by one who knows the past, need no less than what an audit finds."""
    rng, n = np.random.default_rng(11), 50
    contribution = rng.normal(0.4, 0.1, (n, 2))
    y = np.zeros(n)
    for t in range(n):
        y[t] = (0.7 * y[t - 1] if t else 0.0) + rng.normal() + contribution[t].sum()
    responses = edp.Responses.from_arrays(y, contribution=contribution)
    known, model = edp.Adversary(past=2, trend=True), FiniteMixture(components=1)
    options = {"model": model, "adversary": known, "random_seed": 1, "progressbar": False}
    audit = edp.audit(responses, epsilon=[0.05], draws=250, **options)
    band = audit.band("delta", prob=0.9)
    now = float((band["upper"] - band["lower"]).item())
    found = plan(
        responses, epsilon=0.05, width=0.6 * now, prob=0.9, repetitions=6, draws=100, **options
    )
    assert found.sizes[0] == n
    assert found.widths[0].mean() == pytest.approx(now, rel=0.25)
    # widths fall as the root of the number of databases explained
    explained = (found.databases - 2) / (n - 2)
    assert 0.6 * explained**0.5 == pytest.approx(1.0, rel=0.35)
    assert found.held.mean() > 0.75
    assert "against a person who has seen the last 2 releases and knows the trend" in str(found)


def test_slopes_of_contributions_are_better_known_by_more_databases(responses):
    season = edp.Adversary(season=8)
    known = planning._known(responses, FiniteMixture(), season, 1)
    study = planning._Study(
        responses=known,
        epsilon=np.array([0.1]),
        kind="pointwise",
        prob=0.9,
        delta=None,
        model=FiniteMixture(),
        keep=3,
        repetitions=1,
        most=80,
        settings=SamplerSettings(draws=40, tune=50, chains=2, random_seed=1, progressbar=False),
    )
    study.simulate()
    few, many = (study._databases(size, 0).adjustment for size in (40, 80))
    np.testing.assert_allclose(many.variance, 0.5 * few.variance)
    assert few.odds == known.adjustment.odds
    assert many.odds == pytest.approx(few.odds**0.5)
    assert (few.variance > 0).all()


@pytest.mark.parametrize(("options", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(responses, options, error, message):
    given_options = {"responses": responses, "width": 0.1, "epsilon": 0.1, **QUICK, **options}
    data = given_options.pop("responses")
    with pytest.raises(error, match=message):
        plan(data, **given_options)


@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_randomised_queries_are_refused():
    y = np.arange(20.0)
    responses = edp.Responses.from_arrays(y, contribution=np.ones(20), samples=2)
    with pytest.raises(edp.InvalidInputError, match="one sample for each database, found 2"):
        plan(responses, width=0.1, epsilon=0.1)


def test_the_table_counts_what_is_narrow_enough():
    widths = np.array([[0.2, 0.4], [0.1, 0.2]])
    held = np.array([[True, True], [True, False]])
    sizes, epsilon = np.array([40, 80]), np.array([0.1])
    found = Plan(80, 0.15, epsilon, "pointwise", 0.9, sizes, widths, held, widths)
    table = found.table()
    assert table["narrow_enough"].tolist() == [0.0, 0.5]
    assert table["held"].tolist() == [1.0, 0.5]
