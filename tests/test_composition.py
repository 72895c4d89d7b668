"""Several releases of fresh databases: everybody composed by hand, hypotheses, contract."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulated import filtered, hockey_stick

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.coupling.contributions.posterior import ContributionDraws
from edp_bayes.coupling.views.enlarged import (
    CarryOver,
    apart,
    carried_over,
    revealed_curves,
    revealed_later,
)
from edp_bayes.coupling.views.one_spread import of_one_spread, once_in
from edp_bayes.coupling.views.some_draws import StackedCoupling, pick
from edp_bayes.coupling.views.some_individuals import taken
from edp_bayes.divergence.any_pair.components import GAUSSIAN, rows
from edp_bayes.divergence.composition import pairs
from edp_bayes.divergence.shifts import gaussian_shift
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.releases.composition import sources_of
from edp_bayes.releases.how_many import MOST_RELEASES
from edp_bayes.report.sections.words import in_words

EPSILON = np.array([0.1, 0.5, 1.0])


def responses_of(contribution, seed=1, **options):
    rng = np.random.default_rng(seed)
    response = rng.normal(10.0, 1.0, len(contribution)) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(response, contribution=contribution, **options)


def audited(responses, *, draws=15, seed=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        return edp.audit(
            responses, epsilon=EPSILON, draws=draws, chains=2, tune=200, random_seed=seed,
            progressbar=False, **options,
        )  # fmt: skip


def composed(audit, databases, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        return edp.compose(audit, databases=databases, progressbar=False, **options)


def alike_and_rare():
    """Return contributions of one who comes rarely, one who gives more than others, and others."""
    rng = np.random.default_rng(3)
    contribution = rng.gamma(50.0, 0.002, (40, 8))
    contribution[:, 0] = 0.0
    contribution[[4, 17], 0] = 3.0
    contribution[:, 1] = rng.gamma(50.0, 0.006, 40)
    return contribution


@cache
def rare_and_steady():
    """Return an audit of one who comes rarely and gives much, one steady, and others alike."""
    return audited(responses_of(alike_and_rare(), individual=[f"P{k}" for k in range(8)]))


def by_hand(audit, databases):
    """Return the upper and lower bounds of everybody, each composed."""
    (source,), people, _, _ = sources_of([audit], [databases], None)
    draws = np.arange(source.order.size)
    found = [
        pairs.curves([source.pair(k, draws)], [databases], EPSILON) for k in range(people.size)
    ]
    return tuple(np.stack(part, axis=1) for part in zip(*found, strict=True))


@pytest.mark.full
@pytest.mark.parametrize("databases", [1, 12])
def test_delta_is_the_largest_of_composed_individuals(databases):
    audit = rare_and_steady()
    upper, lower = by_hand(audit, databases)
    result = composed(audit, databases)
    found = result.delta.to_numpy().reshape(-1, EPSILON.size)
    # of one database the bound that everybody has may be the lower one
    assert (found <= upper.max(axis=1) + 1e-12).all()
    assert (found >= lower.max(axis=1)).all()
    if databases > 1:
        np.testing.assert_allclose(found, upper.max(axis=1), atol=1e-12)
    total = result.total_risk.to_numpy().reshape(found.shape)
    # who is bounded by a thousandth enters by the bound
    exact = 1.0 - np.prod(1.0 - upper, axis=1)
    least = 1.0 - np.prod(1.0 - lower, axis=1)
    assert (total >= (exact if databases > 1 else least) - 1e-9).all()
    assert (total <= exact + 8e-3).all()
    assert (total >= least - 1e-9).all()


QUANTITIES = ("delta", "total_risk", "total_risk_bound", "individual_delta")


def test_one_database_is_the_audit_itself():
    audit = rare_and_steady()
    result = composed(audit, 1, draws=5)
    for name in QUANTITIES:
        one, several = (each.tree["posterior"][name] for each in (audit, result))
        np.testing.assert_array_equal(several, one)
        np.testing.assert_array_equal(result.upper(name), audit.upper(name))
    assert result.band(prob=0.9).identical(audit.band(prob=0.9))
    assert result.settings["gap"] == result.settings["total_gap"] == 0.0
    assert result.failures == audit.failures


def test_one_database_at_other_epsilons_is_the_audit_there():
    audit = rare_and_steady()
    grid = np.array([0.2, 0.7])
    result = composed(audit, 1, epsilon=grid, draws=5)
    assert result.delta.shape[:2] == audit.delta.shape[:2]
    again = edp.audit(
        responses_of(alike_and_rare(), individual=[f"P{k}" for k in range(8)]), epsilon=grid,
        draws=15, chains=2, tune=200, random_seed=1, progressbar=False,
    )  # fmt: skip
    for name in QUANTITIES:
        exact, found = (each.tree["posterior"][name] for each in (again, result))
        np.testing.assert_array_equal(found, exact)
        np.testing.assert_array_equal(result.upper(name), again.upper(name))
    np.testing.assert_array_equal(result.band()["lower"], again.band()["lower"])


def first_limit(result):
    """Return the limit of the power that the report prints."""
    return float(re.search(r"of at most ([0-9.]*[0-9])", in_words(result)[0])[1])


@pytest.mark.full
@pytest.mark.parametrize("databases", [1, 2, [1, 1], [2, 1]])
@pytest.mark.parametrize("epsilon", [None, [0.05, 0.8]])
def test_no_limit_lies_below_that_of_a_part(databases, epsilon):
    """Whatever draws are taken: of few, quantiles err to either side."""
    rare = np.zeros((40, 2))
    rare[::9, 0], rare[::7, 1] = 4.0, 5.0
    parts = [audited(responses_of(rare, seed=k), draws=60, seed=k) for k in (1, 2)]
    used = parts if isinstance(databases, list) else parts[:1]
    grid = EPSILON if epsilon is None else np.array(epsilon)
    found = composed(used, databases, epsilon=epsilon, draws=3, fresh=True)
    for part in used:
        alone = composed(part, 1, epsilon=epsilon)
        for name in QUANTITIES:
            for prob, end in itertools.product((0.5, 0.8, 0.95), ("pointwise", "simultaneous")):
                own = alone.upper(name, prob=prob, kind=end)
                if name == "individual_delta":
                    own = own.sel(individual=found.individual_delta["individual"])
                assert (found.upper(name, prob=prob, kind=end).to_numpy() >= own.to_numpy()).all()
            for kind in ("pointwise", "simultaneous"):
                ends = [each.band("delta", kind=kind)["upper"] for each in (found, alone)]
                assert (ends[0] >= ends[1]).all()
        levels = [0.01, 0.1, 0.5]
        power = [each.tradeoff(levels)["upper"].to_numpy() for each in (found, alone)]
        assert (power[0] >= power[1] - 1e-12).all()
        printed, own = (first_limit(each) for each in (found, alone))
        assert printed >= own
    np.testing.assert_array_equal(found.epsilon, grid)


@pytest.mark.full
def test_so_many_releases_are_safe_only_where_one_is_by_the_limit_of_the_audit():
    rare = np.zeros((40, 2))
    rare[::9, 0], rare[::7, 1] = 4.0, 5.0
    audit = audited(responses_of(rare), draws=60)
    limit = float(audit.upper().sel(epsilon=0.5))
    for target in (0.99 * limit, 0.9999 * limit):
        found = audit.releases_until(epsilon=0.5, delta=target, draws=3, progressbar=False)
        assert float(found["safe"]) == 0.0
    assert float(audit.releases_until(epsilon=0.45, delta=0.99 * limit, draws=3,
                                      progressbar=False)["safe"]) == 0.0  # fmt: skip


@pytest.mark.full
def test_who_is_riskiest_changes_with_the_number_of_databases():
    """The maximum is taken after composing: the composition of the maximum would be larger."""
    audit = rare_and_steady()
    result = composed(audit, 52)
    at = {"epsilon": 1.0}
    for each, who in ((audit, "P0"), (result, "P1")):
        mean = each.individual_delta.sel(at).mean(("chain", "draw"))
        assert mean["individual"].to_numpy()[np.argmax(mean.to_numpy())] == who


@pytest.mark.full
def test_many_alike_are_composed_until_nobody_else_matters():
    rng = np.random.default_rng(5)
    audit = audited(responses_of(rng.gamma(40.0, 0.004, (40, 40))), draws=4)
    upper, _ = by_hand(audit, 6)
    found = composed(audit, 6).delta.to_numpy().reshape(-1, EPSILON.size)
    np.testing.assert_allclose(found, upper.max(axis=1), atol=1e-12)


@pytest.mark.full
def test_lower_ends_are_below_what_composition_reaches():
    result = composed(rare_and_steady(), 12)
    below = result.tree["lower_bounds"].to_dataset()
    for name in ("individual_delta", "delta", "total_risk"):
        above = result.tree["posterior"][name]
        assert (below[name] <= above + 1e-12).all()
    assert (result.band()["lower"] <= result.band()["median"]).all()
    # a test chosen once reaches most of it in most draws
    assert float(below["delta"].mean() / result.delta.mean()) > 0.5
    assert 0.0 <= result.settings["gap"] < 2e-3


@pytest.mark.full
def test_releases_agree_with_compositions():
    audit = rare_and_steady()
    found = audit.releases_until(epsilon=0.5, delta=0.2, progressbar=False)
    assert found["releases"].shape == audit.delta.shape[:2]
    for databases in (1, 3, 8):
        delta = composed(audit, databases).delta.sel(epsilon=0.5)
        agree = (delta <= 0.2).to_numpy() == (found["releases"] >= databases).to_numpy()
        assert agree.all()
    assert float(found["safe"]) <= float(found["lower"]) <= float(found["median"])
    never = audit.releases_until(epsilon=0.1, delta=1e-3, progressbar=False)
    assert float(never["upper"]) == 0.0


@pytest.mark.full
def test_the_number_of_releases_is_bracketed():
    audit = rare_and_steady()
    found = audit.releases_until(epsilon=0.5, delta=0.3, progressbar=False)
    assert (found["releases"] <= found["at_most"]).all()
    # both roundings agree but for a thousandth of delta
    assert float((found["at_most"] - found["releases"]).max()) <= 1.0
    below = found["at_most"].to_numpy().ravel() + 1
    upper = found["releases"].to_numpy().ravel()
    (source,), people, _, _ = sources_of([audit], [1], None)
    for draw in (0, 7, 21):
        here = [source.pair(k, np.array([draw])) for k in range(people.size)]
        for k, inside in ((upper[draw], True), (below[draw], False)):
            curves = [pairs.curves([pair], [int(k)], np.array([0.5])) for pair in here]
            largest = np.max(curves, axis=0)[:, 0, 0]
            assert largest[0] <= 0.3 if inside else largest[1] > 0.3


@pytest.mark.full
def test_carry_over_count_from_the_second_release_on():
    audit = against_the_past()
    options = {"epsilon": 0.5, "progressbar": False}
    once = float(audit.individual_delta.sel(epsilon=0.5).max())
    for target in (0.8 * once, 1.01 * once, 0.3):
        found, released = (
            audit.releases_until(delta=target, past=past, **options)
            for past in ("others", "released")
        )
        assert (found["releases"] <= released["releases"]).all()
        assert (found["at_most"] >= released["releases"]).all()
        fits = audit.delta.sel(epsilon=0.5, drop=True) <= target
        assert ((found["releases"] >= 1) == fits).all()


def test_releases_end_where_they_are_no_longer_counted():
    rng = np.random.default_rng(5)
    audit = audited(responses_of(rng.gamma(40.0, 2e-6, (40, 2))), draws=5)
    found = audit.releases_until(epsilon=1.0, delta=0.5, progressbar=False)
    assert (found["releases"] == MOST_RELEASES).all()


@pytest.mark.full
def test_audits_of_one_seed_share_their_draws_and_others_do_not():
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (40, 3))
    first = audited(responses_of(contribution))
    again = audited(responses_of(contribution))
    other = audited(responses_of(contribution, seed=2))
    reseeded = audited(responses_of(contribution), seed=7)
    whole = composed(first, 5)
    shared = composed([first, again], [2, 3], fresh=True)
    assert "share data and seed" in shared.settings["assumed"]
    assert "are fresh ones as was stated: audits 1" in shared.settings["assumed"]
    np.testing.assert_allclose(shared.delta, whole.delta, atol=2e-3)
    apart = composed([first, other], [2, 3], fresh=True)
    assert "do not share draws" in apart.settings["assumed"]
    assert apart.databases == 5
    with pytest.warns(EdpBayesWarning, match="different seeds or models"):
        edp.compose([first, reseeded], fresh=True, progressbar=False)


@pytest.mark.full
def test_individuals_who_are_in_some_audits_only_are_named_a_doubt():
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (40, 3))
    first = audited(responses_of(contribution, individual=["a", "b", "c"]), draws=10)
    later = 100 + np.arange(40)
    second = audited(
        responses_of(contribution, 2, individual=["b", "c", "d"], database=later), draws=10
    )
    with pytest.warns(EdpBayesWarning, match="different individuals, 4 in all"):
        found = edp.compose([first, second], progressbar=False)
    alone = composed(second, 1)
    own = found.individual_delta.sel(individual="d").to_numpy().ravel()
    np.testing.assert_allclose(
        np.sort(own), np.sort(alone.individual_delta.sel(individual="d"), axis=None), atol=2e-3
    )
    assert not found.settings["fresh"]


def weeks(start, count=40, step=7):
    return np.datetime64(start) + step * np.arange(count)


@cache
def labelled(start="2023-01-02", seed=1, *, step=7, individual=("a", "b", "c"), query="sales"):
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (40, len(individual)))
    return audited(
        responses_of(contribution, seed, individual=list(individual), query=query,
                     database=weeks(start, step=step)),
        draws=10,
    )  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, "are of the same data"),
        ({"seed": 2, "query": "orders"}, r"1 \(sales\) and 2 \(orders\) have 40 of 40 databases"),
        ({"seed": 2, "start": "2023-10-02"}, "have 1 of 40 databases and 3 individuals"),
        ({"seed": 2, "individual": ("c", "d")}, "have 40 of 40 databases and 1 individuals"),
        (
            {"seed": 2, "start": "2023-02-02", "step": 28},
            "in the same time, 2023-02-02 to 2023-10-",
        ),
    ],
)
def test_audits_that_share_databases_are_refused(other, said):
    parts = [labelled(), labelled(**other)]
    with pytest.raises(InvalidInputError, match=said) as caught:
        edp.compose(parts, progressbar=False)
    assert "Responses.join" in str(caught.value)
    assert "fresh=True" in str(caught.value)
    found = composed(parts, [1, 1], fresh=True)
    assert found.settings["fresh"]
    assert "as was stated" in found.settings["assumed"]


@pytest.mark.full
@pytest.mark.parametrize(
    "keys",
    [
        [f"{2021 + k // 4}Q{k % 4 + 1}" for k in range(40)],
        [100 * (2021 + k // 12) + k % 12 + 1 for k in range(40)],
        [f"{2023 + k // 52}-W{k % 52 + 1:02d}" for k in range(40)],
        list(range(1990, 2030)),
    ],
    ids=["quarters", "months", "weeks", "years"],
)
def test_codes_of_periods_lie_in_time(keys):
    contribution = np.random.default_rng(4).gamma(20.0, 0.01, (40, 3))
    other = responses_of(
        contribution, 5, individual=["a", "b", "c"], query="orders", database=np.array(keys)
    )
    with pytest.raises(InvalidInputError, match="have databases in the same time, 20"):
        edp.compose([labelled(), audited(other, draws=10)], progressbar=False)


@pytest.mark.full
def test_databases_of_other_weeks_or_other_people_are_fresh():
    later = labelled("2024-01-01", seed=2)
    found = composed([labelled(), later], [1, 1])
    assert not found.settings["fresh"]
    assert "stated" not in found.settings["assumed"]
    with pytest.warns(EdpBayesWarning, match="40 databases with the same labels and nobody"):
        edp.compose([labelled(), labelled(seed=2, individual=("x", "y"))], progressbar=False)


@pytest.mark.full
def test_a_query_and_the_same_without_somebody_are_no_fresh_databases(tmp_path):
    """41 databases, whoever sees both knows what A gave: no composition may say less."""
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.1, (41, 4))
    left = contribution.copy()
    left[:, 0] = 0.0
    response = rng.normal(10.0, 1.0, 41) + contribution.sum(axis=1)
    sales = edp.Responses.from_arrays(response, contribution=contribution, query="sales")
    without = edp.Responses.from_arrays(
        response - contribution[:, 0], contribution=left, query="sales without A"
    )
    audits = [audited(each) for each in (sales, without)]
    loaded = edp.load(audits[1].save(tmp_path / "without.nc"))
    for parts in (audits, [audits[0], loaded], audits[::-1]):
        with pytest.raises(InvalidInputError, match=r"Responses\.join"):
            edp.compose(parts, progressbar=False)
    both = audited(edp.Responses.join(sales, without))
    assert (both.upper() > 0.99).all()
    with pytest.raises(InvalidInputError, match=r"Responses\.join"):
        edp.compose([audits[0], both], progressbar=False)
    with pytest.raises(InputTypeError, match="fresh must be True or False"):
        edp.compose(audits, fresh="yes")


def test_audits_against_the_past_count_the_databases_of_the_past():
    """The first ones serve as lags only, and are databases that were released."""
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (60, 3))
    responses = responses_of(contribution, database=weeks("2023-01-02", 60))
    known = audited(responses, adversary=edp.Adversary(past=2), draws=10)
    before = audited(responses_of(contribution[:20], 2, database=weeks("2022-08-29", 20)), draws=10)
    assert str(before.tree["observed_data"]["database"].to_numpy()[-1])[:10] == "2023-01-09"
    with pytest.raises(InvalidInputError, match="have 2 of 20 databases"):
        edp.compose([known, before], progressbar=False)


@pytest.mark.full
def test_a_number_and_the_same_number_as_text_are_one_individual():
    contribution = np.random.default_rng(3).gamma(20.0, 0.01, (40, 2))
    numbers, text = (
        audited(responses_of(contribution, seed, individual=people), draws=10)
        for seed, people in ((1, [5, 6]), (2, ["5", "x"]))
    )
    with pytest.raises(InvalidInputError, match="40 of 40 databases and 1 individuals"):
        edp.compose([numbers, text], progressbar=False)
    found = composed([numbers, text], [3, 4], fresh=True)
    assert set(found.individual_delta["individual"].to_numpy()) == {"5", "6", "x"}
    for label in ("5", "6"):
        own = composed(numbers, 1).upper("individual_delta").sel(individual=int(label))
        assert (found.upper("individual_delta").sel(individual=label) >= own).all()


def drifting(seed, start):
    rng = np.random.default_rng(seed)
    contribution = rng.gamma(20.0, 0.01, (40, 3))
    return audited(
        edp.Responses.from_arrays(
            0.3 * np.arange(40) + rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1),
            contribution=contribution, database=weeks(start), query="drifting",
        ),
        draws=10,
    )  # fmt: skip


@pytest.mark.full
def test_what_a_part_does_not_establish_is_not_established(tmp_path):
    sound, drift = labelled(), drifting(1, "2025-01-06")
    assert sound.withheld is None
    assert drift.withheld is not None
    assert composed(sound, 5).withheld is None
    year = composed(drift, 5)
    assert year.withheld == drift.withheld
    for order in (1, -1):
        found = composed([sound, drift][::order], [2, 3])
        place = 2 if order == 1 else 1
        assert f"Part {place} (drifting)" in found.withheld
        assert "(sales)" not in found.withheld
        assert set(found.checks["part"]) == {"Part 1 (sales)", "Part 2 (drifting)"} or order == -1
        again = edp.load(found.save(tmp_path / f"both{order}.nc"))
        assert again.withheld == found.withheld
    twice = composed([drift, drifting(2, "2027-01-04")], [2, 3])
    assert "Withheld as well: Part 2 (drifting)." in twice.withheld
    page = twice.report(tmp_path / "twice.html").read_text(encoding="utf-8")
    assert "Not established. Part 1 (drifting): " in page


@pytest.mark.full
def test_fewer_draws_are_some_of_them():
    audit = rare_and_steady()
    few, many = composed(audit, 4, draws=10), composed(audit, 4, draws=None)
    assert few.delta.shape == (2, 5, 3)
    np.testing.assert_array_equal(few.delta, many.delta.sel(draw=few.delta["draw"]))


@pytest.mark.full
def test_a_composition_is_saved_summed_up_and_reported(tmp_path):
    result = composed(rare_and_steady(), 52)
    again = edp.load(result.save(tmp_path / "year.nc"))
    np.testing.assert_array_equal(again.delta, result.delta)
    assert again.databases == 52
    assert "all 52 databases, or in none" in again.hypotheses
    assert {"delta[0.1]", "total_risk[0.1]"} <= set(result.summary().index)
    page = again.report(tmp_path / "year.html").read_text(encoding="utf-8")
    assert "52 fresh databases" in page
    assert "from all releases together" in page
    assert "this release alone" not in page
    collection = result.plot_delta(backend="none")
    assert collection is not None
    hidden = result.save(tmp_path / "hidden.nc", names="pseudonyms")
    assert all(
        str(name).startswith("P-")
        for name in edp.load(hidden).individual_delta["individual"].to_numpy()
    )
    with pytest.raises(InvalidInputError, match="is a saved Audit, not ComposedAudit"):
        edp.load(rare_and_steady().save(tmp_path / "audit.nc"), kind=edp.ComposedAudit)


@pytest.mark.parametrize(
    ("databases", "error", "said"),
    [
        (0, InvalidInputError, "at least 1"),
        (2.5, InputTypeError, "integer"),
        (True, InputTypeError, "integer"),
        ([1, 2], InvalidInputError, "one number for each of the 1 audits"),
        (10**9, InvalidInputError, "at most 100,000 databases"),
    ],
)
def test_impossible_numbers_of_databases_are_refused(databases, error, said):
    with pytest.raises(error, match=said):
        edp.compose(rare_and_steady(), databases=databases)


@pytest.mark.full
def test_audits_without_their_fit_are_refused(tmp_path):
    audit = rare_and_steady()
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    for call in (lambda: loaded.compose(2), lambda: loaded.releases_until(epsilon=0.5, delta=0.1)):
        with pytest.raises(InvalidInputError, match="audit again"):
            call()
    with pytest.raises(InputTypeError, match="found str"):
        edp.compose(["audit.nc"])
    with pytest.raises(InvalidInputError, match="found none"):
        edp.compose([])
    with pytest.raises(InvalidInputError, match="strictly between"):
        audit.releases_until(epsilon=0.5, delta=0.0)


@pytest.mark.parametrize("kernel", ["gaussian", pytest.param("laplace", marks=pytest.mark.full)])
def test_the_smoothed_bootstrap_composes_too(kernel):
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (30, 3))
    audit = audited(
        responses_of(contribution), model=edp.SmoothedBootstrap(kernel=kernel), draws=10
    )
    upper, _ = by_hand(audit, 3)
    found = composed(audit, 3).delta.to_numpy().reshape(-1, EPSILON.size)
    np.testing.assert_allclose(found, upper.max(axis=1), atol=1e-12)


# An AR(1) whose joint distribution is known


def joint(phi, mean_shift, k):
    """Return mean and covariance of y_t = phi y_(t-1) + mean_shift + e_t from y_0 = 0."""
    echo = np.tril(phi ** np.maximum(np.subtract.outer(np.arange(k), np.arange(k)), 0.0))
    return echo @ np.full(k, mean_shift), echo @ echo.T


@pytest.mark.full
@pytest.mark.parametrize("phi", [0.6, -0.4])
def test_databases_that_follow_the_answers_released_compose_as_an_adaptive_sequence(phi):
    """With an individual y_t = phi y_(t-1) + c + e_t, without phi y_(t-1) + e_t, at all k times.

    The past is as it was released in both, so their parts in earlier answers act on later ones.
    """
    shift, k, size = 0.3, 12, 200_000
    rng = np.random.default_rng(1)
    (mean, covariance), (rest, _) = joint(phi, shift, k), joint(phi, 0.0, k)
    with_them, without = (stats.multivariate_normal(m, covariance) for m in (mean, rest))
    ratios = [
        with_them.logpdf(y) - without.logpdf(y)
        for y in (with_them.rvs(size, rng), without.rvs(size, rng))
    ]
    p, q = (rows(GAUSSIAN, np.ones((1, 1)), np.full((1, 1), m), 1.0) for m in (shift, 0.0))
    upper, lower = pairs.curves([(p, q)], [k], EPSILON)
    for e, epsilon in enumerate(EPSILON):
        simulated = hockey_stick(*ratios, epsilon)
        assert lower[0, e] - 4e-3 <= simulated <= upper[0, e] + 4e-3


NORMAL = ([1.0], [0.0], [1.0])
TWO = ([0.5, 0.5], [-1.5, 1.5], [0.5, 0.5])
SPIKE = ([0.7, 0.3], [0.0, 0.0], [1.0, 0.1])
# A narrow answer tells of the contributions to the wide ones before it.
QUIET = ([0.9, 0.1], [0.0, 40.0], [5.0, 0.05])
CALM = ([0.4, 0.6], [0.0, 12.0], [2.0, 0.5])


def carried_over_curve(beta, contribution, presence, rest, k):
    """Return the upper curve of k databases for contributions of known size and presence."""
    one = np.ones((1, 1))
    carry_over = CarryOver.most(np.array([beta]))
    found = carry_over(
        ContributionDraws(presence * one[..., None], contribution * one, 0.0 * one, 0.0 * one),
        np.zeros(1),
    )
    moved, shows_in = found.intercept.item(), carry_over.shows_in
    even, narrower = of_one_spread(
        edp.Mixture(*(np.array([[part]]) for part in rest)), presence * one, np.abs(moved) * one,
        shows_in=shows_in,
    )  # fmt: skip
    weights, locations, scales = (
        part[0, 0] for part in (even.weights, even.locations, even.scales)
    )
    both = np.concatenate([(1.0 - presence) * weights, presence * weights])[None]
    q = rows(GAUSSIAN, both, np.tile(locations, 2)[None], np.tile(scales, 2)[None])
    p = q.copy()
    p[:, weights.size :, 1] += moved
    told = apart(p, weights.size), apart(q, weights.size)
    hidden = (1.0 - narrower * once_in(np.array(presence), shows_in)) ** k
    return 1.0 - hidden * (1.0 - pairs.curves([told], [k], EPSILON)[0][0])


def with_lags(beta, presence, rest, contribution, k, follows, size):
    """Return delta by simulation: a filter over presence in the databases that lags reach.

    Where the others are autoregressive, r_t = sum_l beta_l r_(t-l) + e_t and y_t = r_t + c_t. Where
    the answers are, y_t = sum_l beta_l y_(t-l) + e_t + c_t, and without the individual y_t - c_t.
    """
    rng = np.random.default_rng(1)
    weights, locations, scales = map(np.array, rest)

    def density(x):
        return (stats.norm.pdf(x[..., None], locations, scales) * weights).sum(axis=-1)

    def seen(e, direct, lagged):
        """Return the log density of e_t + direct c_t + lagged sum_l beta_l c_(t-l)."""

        def moved(here, state):
            return direct * contribution * here + lagged * (contribution * np.dot(beta, state))

        return filtered(e, density, presence, len(beta), moved)

    def rests():
        which = rng.choice(weights.size, p=weights, size=(size, k))
        return locations[which] + scales[which] * rng.standard_normal((size, k))

    there = contribution * (rng.random((size, k)) < presence)
    later = np.zeros_like(there)
    for lag, slope in enumerate(beta, 1):
        later[:, lag:] += slope * there[:, :-lag]
    direct, lagged, without = (1, -1, 0) if follows == "others" else (1, 0, 1)
    under_p = rests() + direct * there + lagged * later
    under_q = rests() + without * later
    ratios = [seen(e, direct, lagged) - seen(e, 0, without) for e in (under_p, under_q)]
    return np.array([hockey_stick(*ratios, epsilon) for epsilon in EPSILON])


@pytest.mark.parametrize("follows", ["others", "answers"])
@pytest.mark.parametrize(
    ("beta", "contribution", "presence", "rest"),
    [
        ([0.6], 0.3, 1.0, NORMAL),
        ([-0.4], 0.3, 1.0, NORMAL),
        ([0.6], 0.3, 0.5, NORMAL),
        ([-0.4], 1.0, 0.5, NORMAL),
        ([0.6], 1.5, 0.05, NORMAL),
        ([0.3, -0.3], 1.0, 0.1, NORMAL),
        ([0.6], 1.5, 0.05, TWO),
        ([-0.4], 0.3, 0.5, SPIKE),
        ([0.6], 1.0, 0.5, QUIET),
        ([0.6, 0.3], 1.0, 0.1, QUIET),
        ([-0.4], 1.0, 0.2, CALM),
        ([0.2], 0.5, 0.5, CALM),
    ],
)
def test_curves_bound_contributions_that_carry_over(beta, contribution, presence, rest, follows):
    k, size = 8, 8_000
    upper = carried_over_curve(beta, contribution, presence, rest, k)
    simulated = with_lags(beta, presence, rest, contribution, k, follows, size)
    # three standard errors of a mean of numbers between 0 and 1
    error = 3.0 * np.sqrt(upper * (1.0 - upper) / size)
    assert (simulated <= upper + error).all()


def test_curves_without_enlarged_contributions_lie_below_the_truth():
    """What the factors are for: the tests above can fail."""
    shift, k = 0.3, 12
    exact = gaussian_shift(shift * np.sqrt(1.0 + 11 * 1.4**2), EPSILON)
    p, q = (rows(GAUSSIAN, np.ones((1, 1)), np.full((1, 1), m), 1.0) for m in (shift, 0.0))
    assert (exact > pairs.curves([(p, q)], [k], EPSILON)[0][0] + 0.1).all()
    upper = carried_over_curve([-0.4], shift, 1.0, NORMAL, k)
    assert (exact <= upper).all()
    assert (exact > upper - 0.03).all()


@cache
def against_the_past():
    """Return an audit against one who knows the last answer, of which each takes -0.6."""
    rng = np.random.default_rng(3)
    contribution = rng.gamma(20.0, 0.01, (60, 3))
    contribution[::2, 1] = 0.0
    rest = np.zeros(60)
    for t in range(1, 60):
        rest[t] = -0.6 * rest[t - 1] + rng.normal()
    responses = edp.Responses.from_arrays(
        10.0 + rest + contribution.sum(axis=1), contribution=contribution
    )
    return audited(responses, adversary=edp.Adversary(past=1))


@pytest.mark.full
def test_risks_against_an_adversary_who_knows_the_past_bound_both_hypotheses():
    audit = against_the_past()
    with pytest.warns(EdpBayesWarning, match=r"1\.[3-9]\d times as large, an upper bound"):
        found = audit.compose(6, past="others", progressbar=False)
    assert "in the past of each" in found.hypotheses
    assert found.against == audit.against
    with pytest.warns(EdpBayesWarning, match=r"may be 1\.[3-9]\d times as large as assumed"):
        released = audit.compose(6, progressbar=False)
    assert "the answers of earlier ones as they were released" in released.hypotheses
    for name in ("delta", "total_risk"):
        assert (getattr(found, name) > getattr(released, name)).all()
        below = (each.tree["lower_bounds"][name] for each in (found, released))
        assert float(next(below).mean()) < float(next(below).mean())
    same = [composed(audit, 1, past=past) for past in ("others", "released")]
    np.testing.assert_array_equal(same[0].delta, same[1].delta)
    with pytest.raises(InvalidInputError, match="released, others"):
        audit.compose(6, past="mine")
    with pytest.raises(InvalidInputError, match="audit again"):
        replace(audit, source=None).compose(6)


@pytest.mark.parametrize("individual", [0, 1])
def test_enlarged_contributions_are_those_of_the_coupling(individual):
    """Of one component, always or half the time present: p less F times the contribution."""
    coupling = against_the_past().source.coupling
    size = coupling.n_draws
    carry_over = CarryOver(np.full(size, 1.5), np.full(size, 2.0))
    plain = coupling.contributions(np.array([individual]))
    large = carried_over(coupling, carry_over).contributions(np.array([individual]))
    np.testing.assert_array_equal(large.presence, plain.presence)
    np.testing.assert_allclose(large.spread, 2.0 * plain.spread)
    centre = coupling.posterior.centre[individual]
    ratio = (large.intercept + large.slope * centre) / (plain.intercept + plain.slope * centre)
    np.testing.assert_allclose(ratio, 2.0 if individual else 1.5)
    one = CarryOver(np.ones(size), np.ones(size))
    people = np.array([individual])
    bound = revealed_curves(carried_over(coupling, one), people, EPSILON)
    # each answer tells its component: never less, and the same by single integrals
    assert (bound >= coupling.curves(people, EPSILON) - 1e-12).all()
    by_hand = revealed_curves.dispatch(object)(carried_over(coupling, one), people, EPSILON)
    assert (bound >= by_hand - 1e-12).all()
    np.testing.assert_allclose(bound, by_hand, atol=2e-3)


def test_answers_of_little_spread_reveal_all_contributions_that_show_in_them():
    """Beside a wide component one that is a thousand times narrower, in a tenth of the answers."""
    coupling = against_the_past().source.coupling
    size, people = coupling.n_draws, np.arange(3)
    one = np.ones((1, size, 1))
    mixture = edp.Mixture(
        one * np.array([0.9, 0.1]), one * np.array([0.0, 40.0]), one * np.array([1.0, 1e-3])
    )
    uneven = replace(coupling, mixture=mixture, presence=None)
    most = CarryOver.most(np.full((size, 1), 0.5))
    carried = carried_over(uneven, most)
    presence = uneven.contributions(people).presence.max(axis=2)
    shown = revealed_later(carried, people)
    np.testing.assert_allclose(shown, 0.1 * (1.0 - (1.0 - presence) ** 2), rtol=1e-12)
    # a block of individuals has the same numbers, and so has a stack of draws
    block = taken(carried, people[1:])
    np.testing.assert_array_equal(revealed_later(block, people[:2]), shown[:, 1:])
    rows = np.arange(size)
    blocks = tuple((part, pick(uneven, part)) for part in (rows[1:], rows[:1]))
    stacked = StackedCoupling(mixture, blocks)
    np.testing.assert_array_equal(revealed_later(carried_over(stacked, most), people), shown)
    # what is multiplied alone is of the components that were fitted
    least = carried_over(uneven, CarryOver.least(np.full((size, 1), 0.5)))
    np.testing.assert_array_equal(revealed_later(least, people), 0.0)
    assert least.mixture is mixture


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_one_spread_is_that_of_a_component_and_takes_narrower_ones_away(size, seed):
    rng = np.random.default_rng(seed)
    shape = (2, 3, size)
    mixture = edp.Mixture(
        rng.dirichlet(np.ones(size), shape[:2]), rng.normal(size=shape),
        rng.choice([0.1, 1.0, 3.0], shape),
    )  # fmt: skip
    presence, contribution = rng.uniform(0.1, 1.0, (6, 2)), rng.lognormal(0.0, 2.0, (6, 2))
    even, narrower = of_one_spread(mixture, presence, contribution, shows_in=3)
    spread, before = even.scales[..., :1], mixture.scales
    assert (even.scales == spread).all()
    assert (before == spread).any(axis=-1).all()
    away = np.where(before < spread, mixture.weights, 0.0).sum(axis=-1)
    np.testing.assert_allclose(narrower.reshape(2, 3), away, atol=1e-15)
    np.testing.assert_allclose(even.weights.sum(axis=-1), 1.0)
    np.testing.assert_allclose(
        even.weights * (1.0 - away[..., None]), np.where(before < spread, 0.0, mixture.weights)
    )
    alike = edp.Mixture(mixture.weights, mixture.locations, 2.0)
    assert of_one_spread(alike, presence, contribution, shows_in=3)[0] is alike


@pytest.mark.parametrize("kernel", ["gaussian", pytest.param("laplace", marks=pytest.mark.full)])
def test_the_smoothed_bootstrap_carry_over_too(kernel):
    rng = np.random.default_rng(3)
    responses = responses_of(rng.gamma(20.0, 0.01, (30, 3)))
    audit = audited(
        responses, model=edp.SmoothedBootstrap(kernel=kernel), draws=5,
        adversary=edp.Adversary(past=1),
    )  # fmt: skip
    found, released = (composed(audit, 3, past=past) for past in ("others", "released"))
    assert (found.delta >= released.delta - 1e-9).all()


@pytest.fixture
def sales(tmp_path):
    """Write a table of 25 weeks and four customers; return the audit's arguments."""
    rng = np.random.default_rng(3)
    table = tmp_path / "sales.csv"
    lines = [
        f"{t},c{i},{value:.4f}"
        for t, row in enumerate(rng.gamma(2.0, 1.0, (25, 4)))
        for i, value in enumerate(row)
    ]
    table.write_text("\n".join(["week,customer,spent", *lines]))
    return [
        "audit", str(table), "--verbose", "--database", "week", "--individual", "customer",
        "--query", "sum:spent", "--out", str(tmp_path / "out"), "--draws", "20",
        "--tune", "20", "--chains", "2", "--epsilon", "0.1,1", "--seed", "1",
    ]  # fmt: skip


@pytest.mark.full
def test_the_command_line_composes_what_it_audited(tmp_path, sales, capsys):
    code = main([*sales, "--no-past", "--databases", "12", "--pseudonyms"])
    assert code == 0
    assert "12 fresh databases" in capsys.readouterr().out
    found = edp.load(tmp_path / "out" / "releases.nc")
    audit = edp.load(tmp_path / "out" / "audit.nc")
    assert found.databases == 12
    assert (found.delta.mean() > audit.delta.mean()).item()
    assert set(found.individual_delta["individual"].to_numpy()) <= set(
        audit.individuals["individual"].to_numpy()
    )


@pytest.mark.full
def test_the_command_line_bounds_what_carries_over(tmp_path, sales, capsys):
    delta = []
    for more in ([], ["--carry-over"]):
        assert main([*sales, "--past", "2", "--databases", "3", *more]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("--carry-over) gives an upper bound" in said) == (not more)
        found = edp.load(tmp_path / "out" / "releases.nc")
        delta.append(found.delta.mean(("chain", "draw")))
    assert (delta[1] >= delta[0]).all()
    assert (delta[1] > delta[0]).any()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "--carry-over is for several releases: give --databases, too"),
        (["--databases", "3", "--no-past"], "--carry-over and --no-past contradict"),
    ],
)
def test_carry_over_are_of_several_releases_that_follow_a_past(sales, capsys, given, said):
    assert main([*sales, "--carry-over", *given]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
