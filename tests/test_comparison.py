"""Leave-one-database-out scores and stacking weights, against refits, brute force and ArviZ."""

import warnings

import arviz_stats
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import edp_bayes as edp
from edp_bayes.models import (
    BaseMeasure,
    DirichletProcessMixture,
    FiniteMixture,
    SamplerSettings,
    Stacked,
)
from edp_bayes.models.base import database_log_likelihood
from edp_bayes.models.base_measure import Standardisation
from edp_bayes.models.comparing import COLUMNS, compare
from edp_bayes.models.gibbs import draw_parameters
from edp_bayes.models.leave_one_out import doubtful, leave_one_out, stacking_weights

QUICK = {"draws": 300, "tune": 200, "chains": 2, "random_seed": 5, "progressbar": False}
MODELS = {
    "one": FiniteMixture(),
    "many": DirichletProcessMixture(),
    "bootstrap": edp.SmoothedBootstrap(),
}


def make_responses(n=40, seed=1, outlier=0.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, rng.normal(-2.0, 0.4, n), rng.normal(1.0, 0.6, n))
    y[0] += outlier
    c = rng.gamma(2.0, 0.05, (n, 4))
    return edp.Responses.from_arrays(y + c.sum(axis=1), contribution=sp.csc_array(c))


@pytest.fixture(scope="module")
def responses():
    return make_responses()


@pytest.fixture(scope="module")
def audits(responses):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return {
            name: edp.audit(responses, epsilon=[0.1], model=model, **QUICK)
            for name, model in MODELS.items()
        }


def simplex(steps):
    first, second = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1))
    inside = first + second <= steps
    pair = np.stack([first[inside], second[inside]], axis=1) / steps
    return np.column_stack([pair, 1.0 - pair.sum(axis=1)]).clip(0.0)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 60), spread=st.sampled_from([0.1, 1.0, 5.0]))
def test_no_point_of_a_grid_on_the_simplex_stacks_better(seed, n, spread):
    log_density = np.random.default_rng(seed).normal(-2.0, spread, (n, 3))
    weights = stacking_weights(log_density)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    on_grid = np.log(np.exp(log_density) @ simplex(60).T).mean(axis=0)
    mixed = logsumexp(log_density, axis=1, b=weights)
    assert mixed.mean() >= on_grid.max() - 1e-9
    # A concave function lies below its tangent: this bounds what any other weights could gain.
    assert np.exp(log_density - mixed[:, None]).mean(axis=0).max() <= 1.0 + 1e-4


def test_two_models_have_the_weight_that_a_fine_search_finds():
    log_density = np.random.default_rng(2).normal(-1.0, 0.5, (50, 2))
    first, second = np.exp(log_density).T
    grid = np.linspace(0.0, 1.0, 20_001)[:, None]
    values = np.log(grid * first + (1.0 - grid) * second).sum(axis=1)
    best = grid[values.argmax(), 0]
    assert 0 < best < 1
    assert stacking_weights(log_density)[0] == pytest.approx(best, abs=1e-4)


def test_weights_are_those_of_arviz(audits):
    scores = {name: leave_one_out(_likelihood(audit)) for name, audit in audits.items()}
    theirs = arviz_stats.compare(scores, round_to="none")["weight"]
    ours = stacking_weights(np.stack([np.asarray(s.elpd_i) for s in scores.values()], axis=1))
    np.testing.assert_allclose(ours, theirs[list(scores)], atol=2e-3)


def test_weights_do_not_underflow_and_equals_share():
    log_density = np.random.default_rng(4).normal(-1.0, 1.0, (30, 3))
    shift = np.linspace(-2000.0, 2000.0, 30)[:, None]
    np.testing.assert_allclose(
        stacking_weights(log_density + shift), stacking_weights(log_density), atol=1e-5
    )
    same = stacking_weights(np.repeat(log_density[:, :1], 4, axis=1))
    np.testing.assert_allclose(same, 0.25)
    np.testing.assert_array_equal(stacking_weights(log_density[:, :1]), [1.0])


def test_scores_are_those_of_refits_without_each_database():
    """The prior's units stay those of all databases, as importance sampling keeps them."""
    everything = make_responses(n=15, seed=3)
    options = {
        "components": 1,
        "base": BaseMeasure(),
        "concentration": (1.0, 1.0),
        "weight_concentration": 1.0,
        "thin": 1,
        "units": Standardisation.of(everything.response),
        "settings": SamplerSettings(
            draws=4000, tune=200, chains=2, random_seed=1, progressbar=False
        ),
    }
    y = everything.response_by_database
    exact = np.empty(15)
    for j in range(15):
        rest = draw_parameters(np.delete(y, j, axis=0), **options).mixture
        exact[j] = np.log(rest.pdf(y[j]).mean())
    whole = draw_parameters(y, **options).mixture
    found = leave_one_out(database_log_likelihood(whole, everything))
    assert doubtful(found) == 0
    np.testing.assert_allclose(found.elpd_i, exact, atol=0.05)


def _likelihood(audit):
    return audit.tree["log_likelihood"]["response"].to_numpy()


def test_the_table_is_that_of_arviz(responses, audits):
    table = compare(audits)
    assert tuple(table.columns) == COLUMNS
    assert table.notna().all().all()
    one = arviz_stats.loo(audits["one"].tree, pointwise=True)
    # The audit's tree gives ArviZ another effective sample size for the smoothing of the tails.
    assert table.loc["one", "elpd"] == pytest.approx(float(one.elpd), abs=0.02)
    assert table.loc["one", "se"] == pytest.approx(float(one.se), rel=0.01)
    assert table["elpd"].is_monotonic_decreasing
    np.testing.assert_allclose(table["elpd_diff"], table["elpd"] - table["elpd"].iloc[0], atol=1e-9)
    assert table.iloc[0][["rank", "elpd_diff", "dse"]].tolist() == [0, 0.0, 0.0]
    assert table["weight"].sum() == pytest.approx(1.0)
    assert table.index[-1] == "one"
    assert table.loc["one", "elpd_diff"] < -2 * table.loc["one", "dse"]


def test_the_bootstrap_is_scored_by_its_own_left_out_density(responses, audits):
    fitted = MODELS["bootstrap"].fit(responses, SamplerSettings(**QUICK))
    table = compare(audits)
    assert table.loc["bootstrap", "elpd"] == pytest.approx(fitted.predictive.sum(), rel=1e-12)
    # Importance sampling over the bandwidth finds the same.
    sampled = leave_one_out(_likelihood(audits["bootstrap"]))
    assert float(sampled.elpd) == pytest.approx(fitted.predictive.sum(), abs=0.1)


@pytest.mark.full
def test_responses_and_their_audits_give_one_table(responses, audits, tmp_path):
    direct = compare(responses, models=MODELS, **QUICK)
    made = compare(audits)
    np.testing.assert_allclose(direct.to_numpy(float), made.to_numpy(float), rtol=1e-12)
    assert direct.index.tolist() == made.index.tolist()
    assert direct.attrs["random_seed"] == 5
    saved = [edp.load(audit.save(tmp_path / f"{k}.nc")) for k, audit in audits.items()]
    again = compare(saved)
    np.testing.assert_allclose(again["elpd"], made["elpd"], rtol=1e-12)
    assert repr(MODELS["one"]) in again.index


def test_a_stack_predicts_no_worse_than_its_members(responses):
    kernel = {"kernel": "gaussian"}
    members = [FiniteMixture(), edp.SmoothedBootstrap(**kernel)]
    models = {"a": members[0], "b": members[1], "both": Stacked(members)}
    table = compare(responses, models=models, **QUICK)
    assert table.index[0] in ("both", "b")
    assert table.loc["both", "elpd"] >= table["elpd"].max() - 1e-6


def test_a_database_that_dominates_is_said():
    far = make_responses(outlier=40.0)
    with pytest.warns(edp.EdpBayesWarning, match="the score of one is doubtful: 1 databases"):
        table = compare(far, models=MODELS, **QUICK)
    assert table.loc["one", "doubtful"] == 1
    assert table.loc["bootstrap", "doubtful"] == 0
    assert table["elpd"].iloc[0] > table.loc["one", "elpd"]


def wrong(case, responses, audits):
    other = edp.audit(make_responses(seed=9), epsilon=[0.1], model=edp.SmoothedBootstrap(), **QUICK)
    return {
        "no models": lambda: compare(responses),
        "one model": lambda: compare(responses, models=[MODELS["one"]]),
        "twice": lambda: compare(responses, models=[MODELS["one"]] * 2),
        "no model": lambda: compare(responses, models=[MODELS["one"], "normal"]),
        "a class": lambda: compare(responses, models=[edp.SmoothedBootstrap, MODELS["one"]]),
        "models too": lambda: compare(audits, models=MODELS),
        "other data": lambda: compare({**audits, "other": other}),
        "one audit": lambda: compare(audits["one"]),
        "numbers": lambda: compare([1.0, 2.0]),
    }[case]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no models", "responses need models to compare"),
        ("one model", "at least 2 models, found 1"),
        ("twice", "two models are FiniteMixture.*give a mapping of names"),
        ("no model", "model 'normal' must be a density model"),
        ("a class", "must be a density model such as"),
        ("models too", "audits have theirs already"),
        ("other data", "must be of the same responses, found one of .*, other of"),
        ("one audit", "responses or a list of audits are needed, found Audit"),
        ("numbers", "responses or a list of audits are needed, found float"),
    ],
)
def test_bad_input_is_named(case, message, responses, audits):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        wrong(case, responses, audits)()


NORMAL = edp.FiniteMixture(components=1)


def series(n=90, coefficient=0.9, seed=4):
    rng = np.random.default_rng(seed)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = coefficient * y[t - 1] + rng.normal()
    return edp.Responses.from_arrays(50.0 + y, contribution=rng.gamma(2.0, 0.1, (n, 3)))


ADVERSARIES = {
    "none": None,
    "past": edp.Adversary(past=1),
    "more": edp.Adversary(past=2, trend=True),
}


@pytest.fixture(scope="module")
def against():
    return edp.compare(
        series(),
        models=[NORMAL],
        adversaries=ADVERSARIES,
        draws=100,
        random_seed=1,
        progressbar=False,
    )


@pytest.mark.full
def test_what_predicts_the_response_scores_best(against):
    assert against.index[-1] == "none"
    assert against["ahead_diff"]["none"] > 5.0
    assert against["ahead_diff"].min() == 0.0
    assert (against["ahead_se"] > 0.0).all()
    assert against["elpd_diff"]["none"] < -10.0


@pytest.mark.full
def test_one_step_ahead_is_that_of_regressions_on_those_before():
    data = series(45)
    found = edp.compare(
        data,
        models=[NORMAL],
        adversaries={name: ADVERSARIES[name] for name in ("past", "more")},
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    # both start where the one with two lags does
    y = data.response[1:]
    n = y.size - 1
    expected = []
    for count in range(n - n // 3, n):
        before, after = y[:count], y[1 : count + 1]
        design = np.stack([np.ones(count), before], axis=1)
        beta, left, *_ = np.linalg.lstsq(design, after, rcond=None)
        at = np.array([1.0, y[count]])
        spread = left[0] / (count - 2) * (1.0 + at @ np.linalg.inv(design.T @ design) @ at)
        gap = y[count + 1] - at @ beta
        expected.append(-0.5 * (np.log(2.0 * np.pi * spread) + gap**2 / spread))
    assert found["ahead"]["past"] == pytest.approx(sum(expected), abs=0.5)


@pytest.mark.full
def test_all_are_scored_on_the_databases_that_everyone_explains(against):
    alone = edp.compare(
        series(),
        models=[NORMAL],
        adversaries={"past": ADVERSARIES["past"], "none": None},
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    # one database more, of a log density of about -1.4
    assert -3.5 < alone["elpd"]["past"] - against["elpd"]["past"] < -0.7


@pytest.mark.full
def test_models_and_adversaries_are_crossed_by_name():
    table = edp.compare(
        series(45),
        models={"normal": NORMAL, "bootstrap": edp.SmoothedBootstrap()},
        adversaries={"none": None, "past": edp.Adversary(past=1)},
        draws=50,
        random_seed=1,
        progressbar=False,
    )
    assert set(table.index) == {
        "normal, none",
        "normal, past",
        "bootstrap, none",
        "bootstrap, past",
    }
    assert np.isfinite(table.to_numpy()).all()


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"adversaries": [None]}, edp.InputTypeError, "must be a mapping of names"),
        ({"adversaries": {"me": "me"}}, edp.InputTypeError, "adversary me must be"),
        ({"adversaries": {"none": None}, "models": [NORMAL]}, edp.InvalidInputError, "at least 2"),
    ],
)
def test_bad_adversaries_are_named(options, error, message):
    with pytest.raises(error, match=message):
        edp.compare(series(45), **{"draws": 50, "progressbar": False, **options})


def test_short_series_and_audits_have_no_last_third(audits):
    with pytest.raises(edp.InvalidInputError, match="too few to predict the last third"):
        edp.compare(
            series(14),
            models=[NORMAL],
            adversaries={"none": None, "past": edp.Adversary(past=3)},
            draws=50,
            progressbar=False,
        )
    with pytest.raises(edp.InvalidInputError, match="adversaries are for models fitted"):
        edp.compare(audits, adversaries=ADVERSARIES)
