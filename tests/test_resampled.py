"""Limits that rest on the databases themselves where a density may be too smooth."""

import dataclasses
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import edp_bayes as edp
from edp_bayes.auditing.lower_bounds import MeanMasses
from edp_bayes.auditing.resampled import Bootstrap, no_more
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.models import SamplerSettings
from edp_bayes.report.sections import words
from edp_bayes.report.sections.curves import crossings
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.summaries import individual_intervals
from tests.calibration.worlds import EPSILON, WORLDS, truth

SETTINGS = SamplerSettings(draws=50, chains=1, random_seed=5, progressbar=False)


def means(edges, p, q, noise=None):
    """Mean masses of the cells that end at these edges."""
    return MeanMasses(np.asarray(edges, float), noise, np.array([p, q], float))


def draws(responses, mean, epsilon, **options):
    bootstrap = Bootstrap.of(responses, SETTINGS, **options)
    found = bootstrap.draws(None, np.array([0]), [mean], np.asarray(epsilon, float))
    return found.individual_delta[:, 0]


@pytest.fixture
def of_means(monkeypatch):
    """Sets are chosen by the mean densities, and by no kernel estimate."""
    monkeypatch.setattr("edp_bayes.auditing.resampled.MOST_ANSWERS", 0)


@pytest.fixture
def gone(of_means):
    """30 answers; 12 are in [0, 1), of these 3 without the individual, and all others never."""
    y = np.concatenate([np.full(12, 0.5), np.full(18, 2.5)])
    z = np.concatenate([np.full(3, 0.5), np.full(9, 1.5), np.full(18, 2.5)])
    return edp.Responses.from_arrays(y, response_without=z[:, None])


def test_weights_of_databases_are_dirichlet(gone):
    # P(A) - e^eps P_i(A) for A = [0, 1): Dirichlet(3, 9, 18) shares w of databases in A with and
    # without the individual, with them alone, and never: (1 - e^eps) w_1 + w_2
    mean = means([0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9])
    for epsilon in (0.1, 0.7):
        found = draws(gone, mean, [epsilon])[:, 0]
        shares = stats.dirichlet([3, 9, 18])
        lost = 1.0 - np.exp(epsilon)
        expected = lost * shares.mean()[0] + shares.mean()[1]
        a = np.array([lost, 1.0, 0.0])
        assert found.mean() == pytest.approx(expected, abs=5.0 * found.std() / np.sqrt(500))
        assert found.std() == pytest.approx(np.sqrt(a @ shares.cov() @ a), rel=0.15)


def test_the_direction_and_the_set_are_those_that_tell_more(gone):
    # of the answers that are likelier without the individual: [1, 2), where 9 go
    mean = means([0.0, 1.0, 2.0], [0.0, 0.4, 0.0, 0.6], [0.0, 0.35, 0.3, 0.35])
    found = draws(gone, mean, [0.1, 0.9])
    assert found.mean(axis=0) == pytest.approx([0.3, 0.3], abs=0.02)


def test_where_densities_differ_little_the_databases_are_not_asked(gone):
    mean = means([0.0, 1.0], [0.0, 0.42, 0.58], [0.0, 0.3, 0.7])  # by a factor of 1.4 at most
    assert not draws(gone, mean, [0.01, 0.2, 2.0]).any()


def test_databases_at_an_atom_are_in_no_set(gone):
    mean = means([0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9])
    alone = draws(gone, mean, [0.1]).mean()
    assert draws(gone, mean, [0.1], databases=90).mean() == pytest.approx(alone / 3.0, rel=0.1)


def test_samples_of_a_database_share_its_weight(gone):
    y, c = gone.response, gone.contribution.toarray()
    twice = edp.Responses.from_arrays(
        np.repeat(y, 2), contribution=np.repeat(c, 2, axis=0), samples=2
    )
    mean = means([0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9])
    assert np.array_equal(draws(twice, mean, [0.1]), draws(gone, mean, [0.1]))


def test_known_noise_makes_events_probabilities(gone):
    noisy = gone.replaced(step=None, noise=edp.GaussianNoise(0.2))
    mean = means([0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9])
    inside = stats.norm.cdf([0.5, -0.5, -1.5], scale=0.2) - stats.norm.cdf(
        [-0.5, -1.5, -2.5], scale=0.2
    )
    p = (12 * inside[0] + 18 * inside[2]) / 30
    q = (3 * inside[0] + 9 * inside[1] + 18 * inside[2]) / 30
    found = draws(noisy, mean, [0.05]).mean()
    assert found == pytest.approx(max(p - np.exp(0.05) * q, 0.0), abs=0.005)


@pytest.mark.usefixtures("of_means")
def test_answers_beyond_all_others_are_a_set_where_there_are_four():
    nothing = means([0.0], [0.5, 0.5], [0.5, 0.5])
    for beyond, expected in ((3, 0.0), (4, 4 / 30), (9, 9 / 30)):
        rest = np.linspace(0.0, 1.0, 30)
        y = np.where(np.arange(30) < beyond, rest + 2.0, rest)
        responses = edp.Responses.from_arrays(y, response_without=rest[:, None])
        found = draws(responses, nothing, [0.1, 1.0]).mean(axis=0)
        assert found == pytest.approx([expected, expected], abs=0.02)
        noisy = responses.replaced(noise=edp.GaussianNoise(0.1))
        assert not draws(noisy, nothing, [0.1]).any()


def test_narrow_places_that_the_means_miss_are_sets_of_the_kernel_estimate():
    # ten of 40 answers are moved from one narrow place to where nobody else is
    nothing = means([0.0], [0.5, 0.5], [0.5, 0.5])
    rest = (np.arange(40) % 4) + 0.01 * np.random.default_rng(2).normal(size=40)
    y = np.where(np.arange(40) % 4 == 1, rest + 0.3, rest)
    responses = edp.Responses.from_arrays(y, response_without=rest[:, None])
    found = draws(responses, nothing, [0.1, 1.0])
    assert found.mean(axis=0) == pytest.approx([0.25, 0.25], abs=0.02)
    several = edp.Responses.from_arrays(y, response_without=rest[:, None], samples=2)
    assert not draws(several, nothing, [0.1]).any()  # of which one predicts the other
    noisy = responses.replaced(noise=edp.GaussianNoise(0.1))
    assert not draws(noisy, nothing, [0.1]).any()
    assert not draws(responses, nothing, [0.1], residuals=True).any()


def audit_of(world, repetition, size=60):
    answers, without = WORLDS[world].sample(np.random.default_rng(repetition), size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(
            edp.Responses.from_arrays(answers, response_without=without[:, None]),
            epsilon=EPSILON,
            draws=250,
            chains=2,
            random_seed=repetition,
            progressbar=False,
        )


def model_limit(audit):
    tree = audit.to_datatree().copy()
    del tree["resampled"]
    return edp.Audit(tree).upper("delta").to_numpy()


@pytest.mark.full
def test_an_edge_that_the_density_smooths_is_in_the_limit():
    true = truth(WORLDS["strongly skewed, gives 0.4"])
    audit = audit_of("strongly skewed, gives 0.4", 8)
    limit = audit.upper("delta").to_numpy()
    assert model_limit(audit)[2] < true[2]
    assert (limit > np.maximum(true, model_limit(audit))).all()
    assert (limit < 1.5 * true).all()
    band = audit.band("delta", kind="pointwise", prob=0.95)
    assert (band["upper"].to_numpy() >= limit).all()
    assert (audit.upper("total_risk").to_numpy() >= limit).all()
    assert np.array_equal(audit.upper("individual_delta")[0], limit)


@pytest.mark.full
def test_peaks_that_the_density_smooths_are_in_the_limit():
    true = truth(WORLDS["six peaks, gives 0.3"])
    audits = [audit_of("six peaks, gives 0.3", repetition) for repetition in (1, 2, 3)]
    assert sum(model_limit(audit)[0] < true[0] for audit in audits) >= 2
    assert sum(audit.upper("delta").to_numpy()[0] >= true[0] for audit in audits) >= 2


def test_a_small_contribution_to_a_smooth_answer_keeps_its_limit():
    audit = audit_of("normal, gives 0.1", 1)
    assert np.array_equal(audit.upper("delta"), model_limit(audit))


@pytest.mark.full
def test_what_is_published_and_what_is_composed_ask_the_databases_too():
    audit = audit_of("strongly skewed, gives 0.4", 3)
    whole = audit.upper("delta").to_numpy()
    rounded = edp.released(audit, rounded_to=2.0, progressbar=False).upper("delta").to_numpy()
    assert (rounded < whole).all()
    year = edp.compose(audit, databases=2, draws=50, progressbar=False)
    assert (year.upper("delta").to_numpy() >= whole - 1e-12).all()


@pytest.fixture(scope="module")
def shown():
    """An audit of little risk, and the same where the databases show more than its model."""
    rng = np.random.default_rng(1)
    given = rng.gamma(2.0, 0.05, (40, 3))
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40) + given.sum(axis=1), contribution=given, additive=True
    )
    grid = [0.0, 0.1, 0.5, 1.0]
    audit = edp.audit(
        responses, epsilon=grid, draws=100, chains=2, random_seed=1, progressbar=False,
        model=edp.SmoothedBootstrap(),
    )  # fmt: skip
    curve = np.array([0.4, 0.35, 0.2, 0.1])
    assert (audit.upper("delta").to_numpy() < curve).all()
    tree = audit.tree.copy()
    group = tree["resampled"].to_dataset()
    every = ("delta", "individual_delta")
    tree["resampled"] = group.assign({k: xr.ones_like(group[k]) * curve for k in every})
    return audit, dataclasses.replace(audit, tree=tree), curve


@pytest.mark.full
def test_no_sentence_and_no_picture_is_below_what_the_databases_show(shown):
    audit, more, curve = shown
    assert more.upper("delta").to_numpy().tolist() == curve.tolist()
    grid = audit.epsilon.to_numpy()
    power, guessed, advantage, exceeded, mu = words._limits(more, 0.95)
    assert (guessed, advantage, exceeded) == (pytest.approx(0.7), 0.4, pytest.approx(curve[-1]))
    # delta(e) <= power(a) - exp(e) a at every level, and the best test reaches it at some
    test = 0.05 + np.max([d - (np.exp(e) - 1.0) * 0.05 for d, e in zip(curve, grid, strict=True)])
    assert words._limits(audit, 0.95)[0] < power <= test
    assert (gaussian_shift(mu + 1e-9, grid) >= curve).all()
    assert (gaussian_shift(mu - 1e-6, grid) < curve).any()
    levels = [0.05, 0.2, 0.5]
    found, before = more.tradeoff(levels), audit.tradeoff(levels)
    assert (found["upper"] > before["upper"]).all()
    assert found["upper"][0] == pytest.approx(power)
    for name in ("lower", "median"):
        assert (found[name] == before[name]).all()
    ends = {one.target: one for one in crossings(more, 0.95)}
    last = {target: grid[curve > target].max() for target in ends}
    for target, one in ends.items():
        assert one.upper >= last[target]
    assert words.guessed_right(more, 0.95) == pytest.approx(0.7)
    for at, upper in enumerate(more.upper("individual_delta").transpose("epsilon", ...).values):
        assert (individual_intervals(more, at, 0.95)[:, 2] >= upper).all()


@pytest.mark.full
def test_as_many_releases_as_one_that_is_too_many_are_none(shown):
    audit, more, _ = shown
    asked = {"epsilon": 0.5, "delta": 0.15, "draws": 20, "progressbar": False}
    assert edp.releases_until(audit, **asked)["safe"] > 0
    assert edp.releases_until(more, **asked)["safe"] == 0


def test_rounding_raises_no_limit():
    audit = audit_of("six peaks, gives 0.3", 1)
    for step in (0.05, 2.0):
        rounded = audit.released(rounded_to=step, progressbar=False)
        for name in ("delta", "individual_delta", "total_risk"):
            less, whole = (one.upper(name).to_numpy() for one in (rounded, audit))
            assert (less <= whole + 1e-12).all()


@given(
    shown=arrays(float, (7, 2), elements=st.floats(0.0, 1.0)),
    draws=arrays(float, (5, 2), elements=st.floats(0.0, 1.0)),
    whole=arrays(float, (7, 2), elements=st.floats(0.0, 1.0)),
    rank=st.integers(2, 6),
)
def test_quantiles_of_less_are_at_most_the_larger_of_both(shown, draws, whole, rank):
    found = no_more(shown, draws, whole)
    prob = rank / 8.0
    assert (found <= shown).all()
    limits = [upper_limit(one, prob) for one in (found, draws, whole)]
    assert (limits[0] <= np.maximum(limits[1], limits[2]) + 1e-12).all()
    # nothing is taken off what is not above
    assert (no_more(shown, np.ones_like(draws), None) == shown).all()
