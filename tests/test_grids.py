"""Answers that lie on a grid of digits or multiples until somebody's amount is added."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics import check_grid
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
        f"Individual 'p3' breaks a grid: without them the answer is a multiple of {step:g} in 41 "
        "of 41 databases, with them in "
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
    "continuous": lambda rng: rng.gamma(2.0, 10.0, (41, 30)),
    "continuous, seldom there": lambda rng: sparse(rng, rng.gamma(2.0, 10.0, (60, 90)), 0.1),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.filterwarnings("ignore::edp_bayes.exceptions.EdpBayesWarning")
def test_false_alarms_are_rarer_than_the_level(world):
    rng = np.random.default_rng(7)
    alarms = [not check(WORLDS[world](rng), ANY, step=None).passed for _ in range(40)]
    assert np.mean(alarms) <= 0.05


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


@pytest.mark.parametrize("given", [False, True])
def test_an_audit_withholds_and_looks_at_answers_as_they_were(given):
    rng = np.random.default_rng(11)
    amount = rng.integers(1, 400, (60, 6)) * 0.5
    amount[:, 3] = 0.13
    adversary = edp.Adversary(past=1, trend=True) if given else None
    audit = edp.audit(
        data(amount), epsilon=EPSILON, adversary=adversary, draws=30, tune=30, chains=2,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    assert not audit.checks.loc["grid", "passed"]
    assert "Individual 'p3' breaks a grid" in audit.withheld
    hidden = audit.with_pseudonyms()
    assert "p3" not in hidden.withheld
    assert "breaks a grid" in hidden.withheld
