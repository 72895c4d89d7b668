"""A search for noise ends: at its time limit with sound noise and a bound, and on hard cases."""

import math

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.noise import FixedBandwidth, calibrate, search
from edp_bayes.noise.calibration import DRAWS
from edp_bayes.noise.certificates.ratios import certified_log_ratios
from edp_bayes.noise.optimal import lattice_noise
from edp_bayes.noise.posterior import posterior_of
from edp_bayes.noise.scales import smallest_scale
from edp_bayes.noise.search import OutOfTimeError, TimeLimitError
from edp_bayes.utils import progress

MODEL = FixedBandwidth(0.5)
OPTIMAL = {"method": "optimal", "spacing": 0.15}


def shaped(method):
    return OPTIMAL if method == "optimal" else {"method": method}


def make_responses(seed=9, n=20, m=3):
    rng = np.random.default_rng(seed)
    contribution = rng.gamma(2.0, 0.05, (n, m))
    response = rng.normal(10.0, 1.0, n) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(response, contribution=contribution)


@pytest.fixture(scope="module")
def posterior():
    return posterior_of(make_responses(), model=MODEL)


@pytest.fixture(scope="module")
def unlimited(posterior):
    return calibrate(posterior, epsilon=0.2, **OPTIMAL, progressbar=False)


class Clock:
    """Counts the looks at it as seconds; time is over after so many."""

    def __init__(self, looks=math.inf):
        self.looks, self.count = looks, 0

    def __call__(self):
        self.count += 1
        return 0.0 if self.count <= self.looks else 100.0


def looks_of(monkeypatch, posterior, **options):
    clock = Clock()
    monkeypatch.setattr(search, "now", clock)
    options = options or OPTIMAL
    calibrate(posterior, epsilon=0.2, progressbar=False, time_limit=50.0, **options)
    return clock.count


@pytest.mark.full
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4])
def test_a_limit_at_any_time_returns_sound_noise_and_a_bound_or_an_error(
    monkeypatch, posterior, unlimited, share
):
    looks = looks_of(monkeypatch, posterior)
    monkeypatch.setattr(search, "now", Clock(int(share * looks)))
    found = calibrate(posterior, epsilon=0.2, **OPTIMAL, progressbar=False, time_limit=50.0)
    assert found.record["stopped_early"]
    assert certified_log_ratios(posterior, found, 0.2).share(0.2) == found.record["reached"] == 1.0
    lower, gap = found.record["lower_bound"], found.record["gap"]
    assert 0.0 <= lower <= unlimited.mean_absolute <= found.mean_absolute * 1.01
    assert gap == pytest.approx(1.0 - lower / found.mean_absolute)
    assert "time limit" in found.record["message"]


@pytest.mark.full
@pytest.mark.parametrize("rounds", [1, 4])
def test_a_bound_is_known_once_the_program_was_solved(monkeypatch, posterior, unlimited, rounds):
    said, clock = [], Clock()

    def say(text):
        said.append(text)
        if sum(text.startswith("Optimal noise:") for text in said) == rounds:
            clock.looks = 0

    monkeypatch.setattr(lattice_noise, "say", say)
    monkeypatch.setattr(search, "now", clock)
    found = calibrate(posterior, epsilon=0.2, **OPTIMAL, progressbar=False, time_limit=50.0)
    lower = found.record["lower_bound"]
    assert found.record["stopped_early"]
    assert 0.0 < lower <= unlimited.mean_absolute
    assert f"{lower:.6g}" in found.record["message"]
    assert f"{found.record['gap']:.1%}" in found.record["message"]


def test_laplace_noise_of_a_search_that_ended_is_the_best_so_far(monkeypatch, posterior):
    least = calibrate(posterior, epsilon=0.2, method="laplace", progressbar=False)
    sound = calibrate(posterior, epsilon=0.2, method="bottleneck", progressbar=False)
    looks = looks_of(monkeypatch, posterior, method="laplace")
    monkeypatch.setattr(search, "now", Clock(int(0.6 * looks)))
    found = calibrate(posterior, epsilon=0.2, method="laplace", progressbar=False, time_limit=50.0)
    assert least.mean_absolute <= found.mean_absolute <= sound.mean_absolute
    assert found.record["lower_bound"] <= least.mean_absolute
    assert "could not be certified" in found.record["message"]


@pytest.mark.parametrize("method", ["optimal", "laplace", "bottleneck", "partial"])
def test_without_any_sound_noise_an_error_says_what_to_do(monkeypatch, posterior, method):
    monkeypatch.setattr(search, "now", Clock(1))
    with pytest.raises(TimeLimitError, match=r"50 s passed: give a longer time_limit"):
        calibrate(posterior, epsilon=0.2, **shaped(method), progressbar=False, time_limit=50.0)


def test_no_scale_of_gaussian_noise_in_time_is_an_error(monkeypatch, posterior):
    monkeypatch.setattr(search, "now", Clock(1))
    with (
        search.searching(50.0, show=False),
        pytest.raises(TimeLimitError, match="any gaussian noise"),
    ):
        smallest_scale(posterior, "gaussian", 0.2, 0.01, prob=0.95, start=1.0)


@pytest.mark.full
def test_time_that_suffices_changes_nothing(posterior, unlimited):
    found = calibrate(posterior, epsilon=0.2, **OPTIMAL, progressbar=False, time_limit=1e6)
    assert found.mean_absolute == pytest.approx(unlimited.mean_absolute, rel=1e-9)
    assert "stopped_early" not in found.record


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, "1"])
def test_a_limit_that_is_no_time_is_refused(posterior, limit):
    with pytest.raises((InvalidInputError, TypeError), match="time_limit"):
        calibrate(posterior, epsilon=0.2, progressbar=False, time_limit=limit)


def test_there_is_no_limit_outside_of_a_search(monkeypatch):
    search.check_time()
    monkeypatch.setattr(search, "now", Clock(1))
    with search.searching(50.0, show=False), pytest.raises(OutOfTimeError):
        search.check_time()
    search.check_time()


@pytest.mark.full
@pytest.mark.parametrize("method", ["optimal", "laplace", "bottleneck", "partial"])
@pytest.mark.parametrize("show", [True, False])
def test_progress_is_shown_for_every_method(monkeypatch, posterior, method, show):
    shown = []

    def bar(description, *, show):
        if show:
            shown.append(description)
        return working(description, show=False)

    working = progress.working
    monkeypatch.setattr(search, "working", bar)
    calibrate(posterior, epsilon=0.2, **shaped(method), progressbar=show)
    assert shown == (["Looking for noise"] if show else [])


@pytest.mark.full
def test_the_bar_says_what_the_search_is_at(monkeypatch, posterior):
    said = []
    quiet = search.NOTHING
    monkeypatch.setattr(
        search, "_Search", lambda limit, end, say: type(quiet)(limit, end, said.append)
    )
    calibrate(posterior, epsilon=0.2, **OPTIMAL, progressbar=False)
    assert any(text.startswith("Laplace noise of scale") for text in said)
    assert any(text.startswith("Optimal noise:") for text in said)


@pytest.mark.full
def test_a_few_customers_of_a_shop_are_done_soon():
    from tests.benchmarks.noise import few_customers

    case = few_customers()
    posterior = posterior_of(
        case.responses, model=edp.SmoothedBootstrap(), draws=1, chains=1, random_seed=1
    )
    with pytest.warns(EdpBayesWarning, match="larger than the spread"):
        laplace = calibrate(posterior, epsilon=0.2, method="laplace", progressbar=False)
    with pytest.warns(EdpBayesWarning, match="larger than the spread"):
        found = calibrate(posterior, epsilon=0.2, method="optimal", spacing=15.0, progressbar=False)
    assert certified_log_ratios(posterior, found, 0.2).share(0.2) == 1.0
    assert found.record["lower_bound"] <= found.mean_absolute <= laplace.mean_absolute


@pytest.mark.full
@pytest.mark.parametrize("ask", [edp.noise.calibrate, edp.noise.tradeoff])
def test_no_linear_program_is_solved_unless_it_is_asked_for_by_name(monkeypatch, ask):
    def fail(*_, **__):
        raise AssertionError("nobody asked for the optimal noise")

    monkeypatch.setattr(lattice_noise, "optimal_noise", fail)
    epsilon = 0.2 if ask is edp.noise.calibrate else [0.2]
    found = ask(make_responses(), epsilon=epsilon, chains=1, tune=50, progressbar=False)
    (noise,) = getattr(found, "noises", (found,))
    assert noise.record["method"] == "laplace"
    assert noise.record["draws"] == DRAWS
    with pytest.raises(AssertionError, match="nobody asked"):
        calibrate(make_responses(), epsilon=0.2, method="optimal", model=MODEL, progressbar=False)


@pytest.mark.full
def test_noise_of_any_shape_is_held_to_draws_it_was_not_made_for():
    from tests.benchmarks.noise import few_customers

    with pytest.warns(EdpBayesWarning, match="larger than the spread"):
        found = calibrate(
            few_customers().responses,
            epsilon=0.2,
            method="optimal",
            random_seed=1,
            progressbar=False,
        )
    assert found.record["draws"] == 320
    assert found.record["reached"] >= 0.95
