"""A scale that is advised, and scales compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import edp_bayes as edp
from edp_bayes.diagnostics import check_scale
from edp_bayes.distributions.noise import GaussianNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError

Array = NDArray[np.float64]
QUIET: dict[str, Any] = {"random_seed": 1, "progressbar": False}


def responses_of(y: Array, share: float = 0.05, **options: Any) -> edp.Responses:
    return edp.Responses.from_arrays(y, contribution=share * np.abs(y), **options)


def totals(seed: int, n: int = 100) -> Array:
    return np.exp(np.random.default_rng(seed).normal(3.0, 1.0, n))


def shares(seed: int, n: int = 100) -> Array:
    return 1.0 / (1.0 + np.exp(-np.random.default_rng(seed).normal(3.0, 1.0, n)))


@pytest.mark.parametrize(
    ("values", "name", "others"),
    [
        (totals, "log", ()),
        (shares, "logit", ()),
        (lambda s: totals(s, 41), "log", ("sqrt",)),  # a few draws of 41 are less skewed
    ],
)
def test_a_transform_is_advised_for_skewed_totals_and_shares(
    values: Any, name: str, others: tuple[str, ...]
) -> None:
    found = [check_scale(responses_of(values(seed))) for seed in range(20)]
    advised = [checks.warnings[0] for checks in found if checks.checks]
    assert len(advised) >= 18
    told = [one.rpartition("--transform ")[2].rstrip(").") for one in advised]
    assert set(told) <= {name, *others}
    assert told.count(name) >= 15


def test_none_is_advised_for_what_is_not_skewed() -> None:
    draws = {
        "normal": lambda rng, n: rng.normal(10.0, 2.0, n),
        "heavy": lambda rng, n: 20.0 + rng.standard_t(3, n),
        "gamma": lambda rng, n: rng.gamma(50.0, 1.0, n),
        "middle shares": lambda rng, n: rng.beta(20.0, 20.0, n),
        "below": lambda rng, n: -np.exp(rng.normal(0.0, 1.0, n)),
    }
    for name, draw in draws.items():
        alarms = sum(
            bool(check_scale(responses_of(draw(np.random.default_rng(seed), n))).checks)
            for seed in range(25)
            for n in (41, 100)
        )
        assert alarms <= 1, name


def test_none_is_advised_that_cannot_be_used() -> None:
    y = totals(1)
    skewed = check_scale(responses_of(y))
    assert skewed["scale"].statistic > 10.0
    assert not skewed.passed
    for data in (
        responses_of(y, transform="log"),
        responses_of(y, noise=GaussianNoise(1.0)),
        responses_of(y, share=1.0),  # nothing is left without them
        responses_of(np.ceil(y), share=0.0, step=1.0),
    ):
        assert check_scale(data).checks == ()


@pytest.mark.full
def test_an_audit_advises_and_is_not_withheld_for_it() -> None:
    data = responses_of(totals(2))
    with pytest.warns(edp.EdpBayesWarning, match="strongly skewed"):
        found = edp.audit(data, epsilon=[0.1], draws=100, **QUIET)
    assert found.checks.loc["scale", "effect"] == "advises"
    assert any("edp.compare(responses, transforms=[None, 'log'])" in one for one in found.warnings)
    log = edp.audit(data, epsilon=[0.1], draws=100, transform="log", **QUIET)
    assert "scale" not in log.checks.index
    assert log.upper("delta")[0] < found.upper("delta")[0]


@pytest.mark.full
def test_scales_are_compared_by_the_density_of_the_answers() -> None:
    y = totals(3)
    table = edp.compare(responses_of(y), transforms=[None, "log", "sqrt"], **QUIET)
    assert table.index.tolist() == ["log", "sqrt", "none"]
    assert table.loc["none", "elpd_diff"] < -5.0
    # of a normal distribution of logarithms the score is known
    one = edp.compare(
        responses_of(y), models=[edp.FiniteMixture(components=1)], transforms=[None, "log"], **QUIET
    )
    x = np.log(y)
    expected = -0.5 * y.size * np.log(2.0 * np.pi * np.e * x.var()) - x.sum()
    assert one.loc["log", "elpd"] == pytest.approx(expected, abs=4.0)
    assert one.loc["none", "elpd"] < expected - 40.0


@pytest.mark.full
def test_a_normal_answer_stays_on_its_own_scale() -> None:
    y = np.random.default_rng(4).normal(10.0, 3.0, 200)
    y = y[y > 0.5]
    table = edp.compare(responses_of(y), transforms=[None, "log"], **QUIET)
    assert table.index[0] == "none"


def test_scores_are_those_of_the_same_model_by_hand() -> None:
    y = totals(5, 40)
    models = {"laplace": edp.SmoothedBootstrap(), "gaussian": edp.SmoothedBootstrap("gaussian")}
    ours = edp.compare(
        responses_of(y), models=models, transforms={"l": "log", "own": None}, **QUIET
    )
    hand = edp.compare(
        edp.Responses.from_arrays(np.log(y), contribution=np.full(40, 0.1)), models=models, **QUIET
    )
    for name in models:
        moved = hand.loc[name, "elpd"] - np.log(y).sum()
        assert ours.loc[f"{name}, l", "elpd"] == pytest.approx(moved, rel=1e-12)


@pytest.mark.full
def test_what_an_adversary_knows_is_compared_on_every_scale() -> None:
    rng = np.random.default_rng(6)
    x = np.zeros(60)
    for t in range(1, 60):
        x[t] = 0.7 * x[t - 1] + rng.normal(0.0, 0.8)
    y = np.exp(3.0 + x)
    who = {"nobody": None, "past": edp.Adversary(past=1)}
    model = [edp.FiniteMixture(components=1)]
    ours = edp.compare(
        responses_of(y), models=model, adversaries=who, transforms=[None, "log"], **QUIET
    )
    assert ours.index[0] == "past, log"
    hand = edp.compare(
        edp.Responses.from_arrays(np.log(y), contribution=np.full(60, 0.1)),
        models=model,
        adversaries=who,
        **QUIET,
    )
    for name in who:
        moved = hand.loc[name, "elpd"] - np.log(y)[1:].sum()
        assert ours.loc[f"{name}, log", "elpd"] == pytest.approx(moved, rel=1e-9)
        ahead = hand.loc[name, "ahead"] - np.log(y)[41:].sum()
        assert ours.loc[f"{name}, log", "ahead"] == pytest.approx(ahead, rel=1e-9)


@pytest.mark.full
def test_audits_on_different_scales_are_compared() -> None:
    data = responses_of(totals(7))
    options: dict[str, Any] = {"epsilon": [0.1], "draws": 100, **QUIET}
    found = {
        name: edp.audit(data, transform=scale, **options)
        for name, scale in (("own", None), ("log", "log"))
    }
    table = edp.compare(found)
    assert table.index.tolist() == ["log", "own"]
    other = edp.audit(responses_of(totals(8)), transform="log", **options)
    with pytest.raises(InvalidInputError, match="same responses"):
        edp.compare({"one": found["log"], "other": other})


@pytest.mark.full
def test_what_cannot_be_compared_is_refused() -> None:
    y = totals(9)
    data = responses_of(y)
    with pytest.raises(InvalidInputError, match="at least 2 models"):
        edp.compare(data, transforms=["log"], models=[edp.FiniteMixture()], **QUIET)
    with pytest.raises(InputTypeError, match="list or a mapping"):
        edp.compare(data, transforms="log", **QUIET)
    y[3] = 0.0
    with pytest.raises(InvalidInputError, match="not finite where an answer lies at its end"):
        edp.compare(responses_of(y), transforms=[None, "sqrt"], **QUIET)
    found = edp.audit(responses_of(y), epsilon=[0.1], draws=50, transform="sqrt", **QUIET)
    with pytest.raises(InvalidInputError, match="no density of the answers"):
        edp.compare([found], **QUIET)
    with pytest.raises(InvalidInputError, match="transforms are for models"):
        edp.compare([found], transforms=[None, "log"])
