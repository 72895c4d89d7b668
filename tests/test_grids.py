"""Answers that lie on a grid of digits or multiples until somebody's amount is added."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.diagnostics import check_grid
from edp_bayes.diagnostics.common_steps import common_steps, plain
from edp_bayes.diagnostics.joint import check_joint_grid

EPSILON, UPPER = np.array([0.05, 0.5]), np.array([0.3, 0.22])
ANY = np.full(2, 1e-9)  # every exposure is more than this


def data(amount, **options):
    names = [f"p{k}" for k in range(amount.shape[1])]
    total = np.array([sum(row) for row in amount.tolist()])  # one after the other: rounding errors
    return edp.Responses.from_arrays(total, contribution=amount, individual=names, **options)


def check(amount, upper=UPPER, **options):
    return check_grid(data(amount, **options), epsilon=EPSILON, upper=upper)["grid"]


def sparse(rng, amount, share):
    return np.where(rng.random(amount.shape) < share, amount, 0.0)


@pytest.mark.parametrize(
    ("step", "own"),
    [
        (0.5, 0.01),
        (0.25, 0.01),
        (0.1, 0.01),
        (5.0, 1.0),
        (100.0, 1.0),
        (25.0, 5.0),
        (0.5, None),
        (7.0, 1.0),
        (3.0, 1.0),
        (0.75, 0.01),
        (12.0, 1.0),
        (60.0, 1.0),
        (11.0, 1.0),
        (13.0, 1.0),
        (16.0, 1.0),
        (77.0, 1.0),
        (365.0, 1.0),
        (365.0, None),
        (1.1, 0.1),
        (1.1, None),
        (1234567.0, 1.0),
    ],
)
def test_whoever_breaks_the_grid_of_all_others_is_named(step, own):
    rng = np.random.default_rng(3)
    amount = rng.integers(1, 400, (41, 20)) * step
    fine = rng.uniform(1.0, 9.0, 41) * step
    amount[:, 3] = fine if own is None else np.rint(fine / own) * own + (fine % step == 0) * own
    found = check(amount)
    assert not found.passed
    assert found.statistic > 1.0 - (own or 0.0) / step - 0.15
    assert found.sentence.startswith(
        f"Individual 'p3' breaks a grid: without them the answer is a multiple of {step:.15g} "
        "in 41 of 41 databases, with them in "
    )
    assert found.sentence.naming(lambda label: f"<{label}>").startswith("Individual <p3> breaks")


def test_half_of_the_databases_on_a_grid_reveal_half():
    rng = np.random.default_rng(4)
    amount = rng.integers(1, 400, (60, 20)) * 0.5
    amount[::2, 5] += 0.13
    amount[:, 3] = np.round(rng.uniform(5.0, 30.0, 60), 1) + 0.01
    found = check(amount)
    assert not found.passed
    assert "Individual 'p3'" in found.sentence
    assert "in 30 of 60 databases, with them in 0" in found.sentence
    assert found.statistic == 0.5


@pytest.mark.parametrize("step", [365.0, 13.0, 77.0, 1.1])
def test_half_of_the_databases_on_an_odd_grid_reveal_half(step):
    rng = np.random.default_rng(4)
    amount = rng.integers(1, 400, (60, 20)) * step
    amount[::2, 5] += 0.17
    amount[:, 3] = np.round(rng.uniform(5.0, 30.0, 60) * step, 1) + 0.01
    found = check(amount)
    assert not found.passed
    assert f"'p3' breaks a grid: without them the answer is a multiple of {step:g} in" in (
        found.sentence
    )
    assert "in 30 of 60 databases, with them in 0" in found.sentence


def revealed(amount):
    """What "a multiple of the step" says of each individual at epsilon 0.05, of any step."""
    total, growth = amount.sum(axis=1), math.exp(EPSILON[0])
    steps = np.r_[np.arange(1, 800), np.arange(1, 100) / 10.0, np.arange(1, 100) / 100.0]
    worst = 0.0
    for step in steps:
        on = [
            np.abs(t / step - np.rint(t / step)) < 1e-6
            for t in (total[:, None], total[:, None] - amount)
        ]
        p, q = on[0].mean(axis=0), on[1].mean(axis=0)
        worst = max(worst, (q - growth * p).max(), ((1 - p) - growth * (1 - q)).max())
    return worst


@pytest.mark.full
@pytest.mark.parametrize("step", [365.0, 16.0, 11.0, 77.0, 1.1, 0.5])
def test_rounding_as_advised_leaves_no_step_that_tells(step):
    rng = np.random.default_rng(12)
    amount = rng.integers(1, 400, (400, 20)) * step
    amount[:, 3] = np.round(rng.uniform(1.0, 40.0, 400) * step, 1) + 0.01
    assert revealed(amount) > 0.9
    found = check(amount)
    named = float(re.search(r"Round amounts to multiples of ([0-9.e+-]+) ", found.sentence)[1])
    assert named == step
    rounded = np.rint(amount / named) * named
    assert check(rounded).passed
    assert revealed(rounded) < UPPER.min()


@settings(max_examples=200, deadline=None)
@given(
    whole=st.lists(st.integers(1, 50_000), min_size=1, max_size=30),
    step=st.sampled_from([1.0, 0.5, 0.01, 1.1, 0.75, 1 / 3, math.pi, 365.0, 1e-150, 1e12]),
    signs=st.integers(0, 2**30 - 1),
)
def test_a_common_step_is_the_greatest_common_divisor_times_the_unit(whole, step, signs):
    values = np.array([w * (1.0 if signs >> k & 1 else -1.0) for k, w in enumerate(whole)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = common_steps((values * step)[None], size=float(max(whole)) * step)[0]
    np.testing.assert_allclose(found, math.gcd(*whole) * step, rtol=1e-12)


@pytest.mark.full
@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(st.lists(st.integers(1, 400), min_size=2, max_size=40), min_size=2, max_size=40),
    step=st.sampled_from([0.01, 0.1, 1.1, 0.7, 365.0]),
)
def test_sums_of_floats_have_the_step_of_their_parts(parts, step):
    total = np.array([sum(w * step for w in row) for row in parts])  # with their rounding errors
    found = common_steps(total[None], size=float(total.max()))[0]
    right = math.gcd(*(sum(row) for row in parts)) * step
    assert plain(found) == pytest.approx(right, rel=1e-12)


def test_zeros_have_no_step_and_what_is_continuous_has_none():
    values = np.random.default_rng(1).normal(0.0, 10.0, (50, 12))
    values[0] = 0.0
    assert not common_steps(values, size=40.0).any()


def test_somebody_seldom_there_reveals_that_share():
    rng = np.random.default_rng(5)
    amount = sparse(rng, rng.integers(1, 400, (60, 30)).astype(float), 0.5)
    amount[:, 3] = 0.0
    amount[[5, 17, 40], 3] = 3.37
    assert check(amount, np.array([0.2, 0.1])).passed  # the limit allows for as much
    found = check(amount, np.array([0.04, 0.001]))
    assert not found.passed
    assert found.statistic == 3 / 60


def test_several_are_named_and_the_rest_counted():
    rng = np.random.default_rng(6)
    amount = rng.integers(1, 400, (60, 30)).astype(float)
    for k in range(6):  # each alone in ten databases
        amount[:, k] = 0.0
        amount[10 * k : 10 * k + 10, k] = 7.77
    sentence = check(amount, np.array([0.01, 0.01])).sentence
    assert sentence.count("so does individual") == 2
    assert "; and 3 more do. Round amounts to multiples of " in sentence


WORLDS = {
    "cents": lambda rng: np.round(rng.gamma(2.0, 10.0, (41, 30)), 2),
    "cents, seldom there": lambda rng: np.round(sparse(rng, rng.gamma(2, 10, (60, 90)), 0.1), 2),
    "halves": lambda rng: rng.integers(1, 400, (41, 20)) * 0.5,
    "whole numbers": lambda rng: rng.integers(1, 50, (41, 30)).astype(float),
    "few databases": lambda rng: rng.integers(1, 9, (8, 30)).astype(float),
    "counts": lambda rng: sparse(rng, rng.integers(1, 4, (60, 90)).astype(float), 0.2),
    "sevens": lambda rng: rng.integers(1, 60, (41, 30)) * 7.0,
    "threes": lambda rng: sparse(rng, rng.integers(1, 60, (41, 60)) * 3.0, 0.3),
    "three quarters": lambda rng: rng.integers(1, 60, (60, 30)) * 0.75,
    "eight of cents": lambda rng: np.round(rng.gamma(2.0, 10.0, (8, 30)), 2),
    "fifteen, seldom there": lambda rng: np.round(sparse(rng, rng.gamma(2, 9, (15, 90)), 0.1), 1),
    "continuous": lambda rng: rng.gamma(2.0, 10.0, (41, 30)),
    "continuous, seldom there": lambda rng: sparse(rng, rng.gamma(2.0, 10.0, (60, 90)), 0.1),
}


@pytest.mark.full
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")
def test_false_alarms_are_rarer_than_the_level(world):
    rng = np.random.default_rng(7)
    alarms = [not check(WORLDS[world](rng), ANY, step=None).passed for _ in range(40)]
    assert np.mean(alarms) <= 0.05


@pytest.mark.parametrize(("n", "m", "share"), [(8, 40, 0.5), (12, 25, 0.3), (60, 40, 0.5)])
def test_counts_as_they_are_read_raise_no_alarm(n, m, share):
    rng = np.random.default_rng(7)
    for _ in range(40):
        assert check(sparse(rng, np.ones((n, m)), share), ANY).passed


def test_what_is_rounded_or_randomised_is_not_looked_into():
    rng = np.random.default_rng(8)
    amount = rng.integers(1, 400, (41, 20)) * 0.5
    amount[:, 3] = 0.13
    rounded = data(np.rint(amount), step=1.0)
    assert check_grid(rounded, epsilon=EPSILON, upper=ANY).passed
    twice = edp.Responses.from_arrays(
        amount.sum(axis=1).repeat(2), contribution=amount.repeat(2, axis=0), samples=2
    )
    assert check_grid(twice, epsilon=EPSILON, upper=ANY).passed


def test_the_remedies_help():
    rng = np.random.default_rng(9)
    amount = rng.integers(1, 400, (41, 20)) * 0.5
    amount[:, 3] = 0.13
    assert not check(amount).passed
    assert check(np.round(amount / 0.5) * 0.5).passed
    assert check(amount, noise=edp.LaplaceNoise(0.5)).passed
    assert not check(amount, noise=edp.LaplaceNoise(0.01)).passed


def test_of_several_queries_the_one_is_named():
    rng = np.random.default_rng(10)
    amount = rng.integers(1, 400, (41, 20)) * 0.5
    amount[:, 3] = 0.13
    other = edp.Responses.from_arrays(
        rng.normal(50.0, 5.0, 41),
        contribution=np.ones((41, 20)),
        individual=data(amount).individual,
    )
    both = edp.Responses.join(other, edp.Responses.replaced(data(amount), query="sales"))
    found = check_joint_grid(both, epsilon=EPSILON, upper=UPPER)["grid"]
    assert found.sentence.startswith("sales: Individual 'p3' breaks a grid")


@pytest.mark.full
@pytest.mark.parametrize("known", [False, True])
def test_an_audit_withholds_and_looks_at_answers_as_they_were(known):
    rng = np.random.default_rng(11)
    amount = rng.integers(1, 400, (60, 6)) * 0.5
    amount[:, 3] = 0.13
    adversary = edp.Adversary(past=1, trend=True) if known else None
    audit = edp.audit(
        data(amount), epsilon=EPSILON, adversary=adversary, draws=30, tune=30, chains=2,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    assert not audit.checks.loc["grid", "passed"]
    assert "Individual 'p3' breaks a grid" in audit.withheld
    hidden = audit.with_pseudonyms()
    assert "p3" not in hidden.withheld
    assert "breaks a grid" in hidden.withheld


@pytest.mark.full
@pytest.mark.parametrize("query", ["proportion", "mean"])
def test_shares_of_a_few_records_break_no_grid(query):
    # 3/7 and 1/2 lie on many grids, with and without any individual
    alarms = 0
    for seed in range(6):
        rng = np.random.default_rng(seed + 50)
        week, pupil = np.nonzero(rng.random((60, 80)) < 0.7)
        rows = pd.DataFrame({
            "week": week, "pupil": pupil, "score": np.rint(rng.normal(50.0, 15.0, week.size)),
        })  # fmt: skip
        databases = edp.Databases.from_table(rows, database="week", individual="pupil")
        asked = {"proportion": edp.queries.Proportion("score", ">=", 60),
                 "mean": edp.queries.Mean("score")}[query]  # fmt: skip
        checks = check_grid(
            databases.respond(asked), epsilon=np.array([0.1, 0.5]), upper=np.array([0.1, 0.05])
        )
        alarms += not checks.passed
    assert alarms == 0
