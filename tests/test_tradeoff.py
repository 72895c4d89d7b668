"""Trade-off, Gaussian mu, membership and advantage against closed forms, and attacks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.results import tradeoff
from edp_bayes.results.base import PrivacyCurves
from edp_bayes.results.recording import recorded

GRID = np.linspace(0.0, 3.0, 121)
LEVELS = np.linspace(0.0, 1.0, 41)


def result_of(curves, epsilon=GRID):
    """Return a result with these draws of delta, shape (draw, epsilon), and nothing else."""
    posterior = xr.Dataset(
        {"delta": (("chain", "draw", "epsilon"), curves[None])},
        {"chain": [0], "draw": np.arange(len(curves)), "epsilon": epsilon},
    )
    settings = {"query": "a query", "databases": 40, "individuals": 3}
    tree = recorded({"posterior": posterior}, settings=settings, checks=[], warnings=[])
    return PrivacyCurves(tree)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.2])
def test_power_of_a_shift_is_normal(mu):
    """Dong, Roth and Su (2022), equation 6: G_mu(a) = Phi(Phi^-1(1 - a) - mu)."""
    curve = gaussian_shift(mu, GRID)[None]
    exact = norm.sf(norm.isf(LEVELS) - mu)
    most = tradeoff.most_power(curve, GRID, LEVELS)[0]
    least = tradeoff.least_power(curve, GRID, LEVELS)[0]
    assert (most >= exact - 1e-12).all()
    assert (least <= exact + 1e-12).all()
    # the rest is beyond the grid, where a level is small
    inner = (LEVELS > 0.05) & (LEVELS < 0.95)
    assert (most - least)[inner].max() < 0.03


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.2])
def test_mu_is_that_of_a_shift_and_never_below(mu):
    for grid in (mu * GRID, np.array([0.0, 0.1, 0.5, 1.0])):
        curve = gaussian_shift(mu, grid)[None]
        (found,) = tradeoff.gaussian_mu(curve, grid)
        assert mu - 1e-9 <= found
        if grid.size == GRID.size:
            assert found < 1.02 * mu
    assert np.isinf(tradeoff.gaussian_mu(np.ones((1, 2)), np.array([0.0, 1.0])))[0]


def test_mu_is_that_of_the_grid_alone():
    """Present with probability 0.02 and then revealed: no mu is enough for all epsilons."""
    found = [
        tradeoff.gaussian_mu(np.full((1, 31), 0.02), np.linspace(0.0, end, 31))[0]
        for end in (0.5, 2.0, 8.0)
    ]
    assert found[0] < 0.5 * found[1] < 0.25 * found[2]


def test_randomised_response_is_told_from_its_curve():
    """Truth with probability t: the log ratio is log(t / (1 - t)), and everything is known."""
    truth = 0.7
    end = np.log(truth / (1.0 - truth))
    curve = np.maximum(truth - np.exp(GRID) * (1.0 - truth), 0.0)[None]
    power = tradeoff.most_power(curve, GRID, LEVELS)[0]
    exact = np.minimum(LEVELS * truth / (1.0 - truth), 1.0 - (1.0 - LEVELS) * (1 - truth) / truth)
    assert (power >= exact - 1e-12).all()
    assert (power - exact).max() < 0.02
    assert tradeoff.guessing(curve, GRID, 0.5)[0] == pytest.approx(truth)
    assert tradeoff.curve_at(curve, GRID, 0.0)[0] == pytest.approx(2.0 * truth - 1.0)
    exceeded = tradeoff.exceedance(curve, GRID)[0]
    # members answer the truth with probability t, which is the one log ratio above zero
    assert (exceeded[end > GRID] >= truth - 1e-12).all()
    assert (exceeded[end + 1e-9 < GRID][1:] < 1e-12).all()


def test_a_guess_uses_what_is_known_before():
    mu, prior = 0.7, 0.1
    curve = gaussian_shift(mu, GRID)[None]
    grid = np.linspace(-8.0, 9.0, 20001)
    joint = np.stack([prior * norm.pdf(grid - mu), (1.0 - prior) * norm.pdf(grid)])
    exact = float(np.trapezoid(joint.max(axis=0), grid))
    assert tradeoff.guessing(curve, GRID, prior)[0] == pytest.approx(exact, abs=2e-5)


def test_left_of_the_grid_the_most_that_can_be_is_taken():
    for mu in (0.01, 0.3, 2.0):
        grid = np.array([0.2, 1.0])
        found = tradeoff.curve_at(gaussian_shift(mu, grid)[None], grid, 0.0)
        assert found[0] >= gaussian_shift(mu, 0.0)
        middle = tradeoff.curve_at(gaussian_shift(mu, grid)[None], grid, 0.6)
        assert middle[0] >= gaussian_shift(mu, 0.6)


@pytest.mark.full
def test_results_have_bands_of_what_is_tested_and_believed():
    mus = np.linspace(0.2, 0.6, 199)
    result = result_of(gaussian_shift(mus[:, None], GRID))
    band = result.tradeoff(LEVELS, prob=0.9)
    assert band.attrs["kind"] == "simultaneous"
    assert (band["lower"] <= band["median"]).all()
    assert (band["median"] <= band["upper"]).all()
    ends = [norm.sf(norm.isf(LEVELS[1:-1]) - mu) for mu in (0.22, 0.58)]
    assert (band["lower"][1:-1] <= ends[0] + 1e-9).all()
    assert (band["upper"][1:-1] >= ends[1] - 1e-9).all()
    found_mu = result.gaussian_mu().to_numpy()[0]
    assert (found_mu >= mus - 1e-9).all()
    np.testing.assert_allclose(found_mu, mus, rtol=0.05)
    advantage = result.advantage().to_numpy()[0]
    np.testing.assert_allclose(advantage, gaussian_shift(mus, 0.0))
    found = result.membership_probability(prior=0.25)
    assert float(found["posterior"][0]) == pytest.approx(0.25)
    odds = found["posterior"] / (1.0 - found["posterior"])
    np.testing.assert_allclose(odds, np.exp(GRID) / 3.0)
    np.testing.assert_allclose(found["relative_risk"], found["posterior"] / 0.25)
    # log ratios of a member are N(mu^2 / 2, mu^2)
    exact = norm.sf(GRID, mus[:, None] ** 2 / 2, mus[:, None])
    assert (found["exceeded"].to_numpy()[0] >= exact - 1e-12).all()
    for plot in (result.plot_power, result.plot_membership):
        for backend in ("none", "matplotlib"):
            assert type(plot(backend=backend)).__name__ == "PlotCollection"


def test_what_was_never_seen_in_samples_is_left_room_for():
    same = edp.audit_mechanism([0] * 100, [0] * 100, epsilon=[0.0, 1.0], progressbar=False)
    unseen = 1.0 - 0.05 ** (1 / 100)
    assert (same.advantage() >= unseen - 1e-12).all()
    assert (same.power(0.05) >= 0.05 + unseen - 1e-12).all()


def test_a_curve_that_is_not_convex_is_at_most_its_value_at_the_left():
    grid = np.array([0.0, 1.0, 2.0])
    curve = np.array([[0.5, 0.49, 0.1]])
    found = [tradeoff.curve_at(curve, grid, x, convex=False)[0] for x in (0.0, 0.5, 1.0, 1.7, 3.0)]
    assert found == [0.5, 0.5, 0.49, 0.49, 0.1]


@pytest.mark.parametrize("levels", [[], [0.5, 0.2], [-0.1, 0.5], [0.5, 1.5], [[0.1]]])
def test_impossible_levels_are_refused(levels):
    result = result_of(gaussian_shift(0.3, GRID)[None])
    with pytest.raises(InvalidInputError):
        result.tradeoff(levels)


def test_impossible_priors_are_refused():
    result = result_of(gaussian_shift(0.3, GRID)[None])
    for prior in (0.0, 1.0, -1.0):
        with pytest.raises(InvalidInputError, match="prior"):
            result.membership_probability(prior=prior)


# Attacks


@pytest.mark.full
@pytest.mark.parametrize("method", ["likelihood_ratio", "neighbours", "forest"])
def test_attacks_come_near_the_best_test(method):
    if method == "forest":
        pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    mu, size = 1.0, 3000
    found = edp.attack(
        rng.normal(mu, 1.0, size), rng.normal(size=size), method=method, random_seed=1
    )
    best = 2.0 * norm.cdf(mu / 2.0) - 1.0
    # of the largest of 50 differences, each with a deviation of 0.013
    assert best - 0.1 < found.advantage < best + 0.05
    assert not found.beats(result_of(gaussian_shift(np.full((99, 1), mu), GRID)))
    assert found.beats(result_of(gaussian_shift(np.full((99, 1), 0.5 * mu), GRID)))
    table = found.table()
    assert (table["power_lower"] <= table["power"]).all()
    assert (table["false_alarm_upper"] >= table["false_alarm"]).all()


def test_an_attack_that_knows_the_densities_is_the_best_test():
    rng = np.random.default_rng(2)
    p, q = edp.Mixture(1.0, 0.8, 1.0), edp.Mixture(1.0, 0.0, 1.0)
    present, absent = (one.sample(4000, rng) for one in (p, q))
    found = edp.attack(present, absent, densities=(p, q), random_seed=1)
    table = found.table(prob=0.999)
    exact = norm.sf(norm.isf(table["false_alarm_upper"].clip(upper=1.0)) - 0.8)
    assert (table["power_lower"] <= exact).all()
    assert found.advantage == pytest.approx(2.0 * norm.cdf(0.4) - 1.0, abs=0.04)
    with pytest.raises(InputTypeError, match="two Mixtures"):
        edp.attack(present, absent, densities=(1, 2))


@pytest.mark.full
def test_several_answers_are_attacked_together():
    rng = np.random.default_rng(3)
    present, absent = rng.normal(0.5, 1.0, (3000, 3)), rng.normal(0.0, 1.0, (3000, 3))
    one = edp.attack(present[:, 0], absent[:, 0], random_seed=1).advantage
    both = edp.attack(present, absent, random_seed=1).advantage
    assert both > one + 0.1
    assert not edp.attack(present, absent, random_seed=1).beats(
        result_of(gaussian_shift(np.full((99, 1), 0.5 * 3**0.5), GRID))
    )


@pytest.mark.parametrize(
    ("present", "absent", "options", "said"),
    [
        (np.zeros(5), np.zeros(50), {}, "at least 20 releases, found 5"),
        (np.zeros((30, 2)), np.zeros(30), {}, "found 2 and 1"),
        (np.zeros(30), np.zeros(30), {}, "vary in every direction"),
        (np.full(30, np.nan), np.zeros(30), {}, "finite"),
        (np.zeros(30), np.zeros(30), {"method": "guess"}, "one of likelihood_ratio"),
        (np.zeros((30, 2)), np.zeros((30, 2)), {"densities": (1, 2)}, "one answer"),
    ],
)
def test_impossible_attacks_are_refused(present, absent, options, said):
    with pytest.raises(InvalidInputError, match=said):
        edp.attack(present, absent, **options)


@pytest.mark.full
def test_no_attack_on_new_databases_beats_the_band():
    """Attacks know the truth or learn from 6,000 releases of it; the audit saw 60 databases."""
    rng = np.random.default_rng(4)
    size, grid = 6000, np.linspace(0.0, 2.0, 21)

    def databases(count):
        contribution = rng.gamma(4.0, 0.1, (count, 6))
        contribution[:, 0] *= 2.0
        rest = np.where(rng.random(count) < 0.3, rng.normal(12.0, 0.7, count), 10.0)
        return rest + rng.normal(0.0, 0.6, count) + contribution.sum(axis=1), contribution

    response, contribution = databases(60)
    responses = edp.Responses.from_arrays(response, contribution=contribution)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        audit = edp.audit(responses, epsilon=grid, draws=100, random_seed=1, progressbar=False)
        several = edp.compose(audit, databases=3, draws=40, progressbar=False)
    # a band that promises two thirds of the advantage there is
    low = result_of(gaussian_shift(np.full((99, 1), 0.5), GRID))
    releases = [databases(3 * size) for _ in range(2)]
    present, absent = releases[0][0], releases[1][0] - releases[1][1][:, 0]
    for method in ("likelihood_ratio", "neighbours"):
        one = edp.attack(present[:size], absent[:size], method=method, random_seed=1)
        assert not one.beats(audit)
        assert one.beats(low)
        three = edp.attack(
            present.reshape(size, 3), absent.reshape(size, 3), method=method, random_seed=1
        )
        assert not three.beats(several)
        assert three.advantage > one.advantage
