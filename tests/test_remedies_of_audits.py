"""What is advised in property audits and of few draws is done literally, and helps."""

import re

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.property_audit import BetaBinomialModel, BinomialModel, audit_property
from edp_bayes.statistical_privacy import LaplaceNoise, Subsampling
from tests.command_line import printed, refused

VARIED = [30, 60, 12, 44, 75, 20]
QUICK = {"epsilon": [0.1], "draws": 30, "tune": 30, "chains": 2, "random_seed": 1}
QUICK |= {"progressbar": False, "model": BetaBinomialModel()}
COMMAND = ("property", "--count", ",".join(map(str, VARIED)), "--epsilon", "0.1", "--seed", "1")
COMMAND += ("--draws", "30", "--chains", "2", "--model", "beta-binomial")


def options(given):
    """Return words of the command line, and the same arguments in Python."""
    words = [word for name in given for word in (f"--{name.replace('_', '-')}", str(given[name]))]
    size = {"mechanism": Subsampling(size=20)} if "mechanism" in given else {}
    return words, {**given, **size}


# What is asked for, what is advised first, and what that makes of it.
REMEDIES = {
    "too many": (
        {"n": 10**8},
        "give a smaller released_n (--released-n), or",
        {"n": 10**8, "released_n": 1000},
    ),
    "no positives": (
        {"n": 100, "known": 10},
        "give known_positive (--known-positive), or",
        {"n": 100, "known": 10, "known_positive": 3},
    ),
    "subsampled": (
        {"n": 100, "known": 10, "known_positive": 3, "mechanism": "subsampling:20"},
        "leave it out of mechanism (--mechanism), or",
        {"n": 100, "known": 10, "known_positive": 3},
    ),
    "all known": (
        {"n": 100, "known": 99, "known_positive": 30},
        "give a smaller known (--known), or",
        {"n": 100, "known": 98, "known_positive": 30},
    ),
}


@pytest.mark.parametrize("case", REMEDIES)
def test_what_dependent_entries_cannot_have_is_put_right_in_python(case):
    given, advice, better = REMEDIES[case]
    _, asked = options(given)
    with pytest.raises(edp.InvalidInputError, match=re.escape(advice)) as error:
        audit_property(VARIED, **asked, **QUICK)
    assert "model=BinomialModel() (--model binomial)" in str(error.value)
    for arguments, model in ((better, BetaBinomialModel()), (given, BinomialModel())):
        found = audit_property(VARIED, **options(arguments)[1], **{**QUICK, "model": model})
        assert np.isfinite(found.delta).all()


@pytest.mark.parametrize("case", REMEDIES)
def test_what_dependent_entries_cannot_have_is_put_right_on_the_command_line(case, capsys):
    given, advice, better = REMEDIES[case]
    assert advice in refused(capsys, *COMMAND, *options(given)[0])
    assert "Risk by epsilon" in printed(capsys, *COMMAND, *options(better)[0])
    independent = (*COMMAND[:-1], "binomial")
    assert "Risk by epsilon" in printed(capsys, *independent, *options(given)[0])


def test_the_entries_of_the_one_released_are_those_of_its_risk(capsys):
    given = (*COMMAND[:-1], "binomial", "--n", "1000")
    few, many = (
        printed(capsys, *given, "--released-n", n, "--mechanism", "gaussian:1") for n in (100, 1000)
    )
    assert few != many
    assert printed(capsys, *given, "--mechanism", "gaussian:1") == many
    assert "--released-n must be left out where --prob is given" in refused(
        capsys, "property", "--n", "100", "--prob", "0.1", "--released-n", "50"
    )


def test_no_end_of_a_curve_is_put_right_as_advised():
    wide = {**QUICK, "epsilon": [0.1, 1.0, 5.0, 25.0]}
    alike = [30, 34, 28, 31, 33, 29]  # few draws in which an answer gives an entry away
    dependent = audit_property(alike, 100, **wide)
    with pytest.raises(edp.InvalidInputError, match=r"such as (0\.\d*)?1(e-\d)?, or audit with"):
        dependent.epsilon_at(0.0)
    assert np.isfinite(dependent.epsilon_at(1e-6)).all()
    independent = {**wide, "model": BinomialModel()}
    given = audit_property(alike, 100, **independent)
    with pytest.raises(edp.InvalidInputError, match="1e-6, or add Laplace noise"):
        given.epsilon_at(0.0)
    assert np.isfinite(given.epsilon_at(1e-6)).all()
    noisy = audit_property(alike, 100, mechanism=LaplaceNoise(0.05), **independent)
    assert np.isfinite(noisy.epsilon_at(0.0)).all()


def test_more_draws_are_enough_where_more_are_asked_for():
    few_at_a_time = {"epsilon": [0.1], "chains": 2, "random_seed": 1, "progressbar": False}
    rng = np.random.default_rng(1)
    data = edp.Responses.from_arrays(
        rng.normal(50.0, 1.0, 30), contribution=rng.gamma(2.0, 0.05, (30, 3))
    )
    few, enough = (
        edp.audit(data, model=edp.SmoothedBootstrap(), draws=draws, **few_at_a_time)
        for draws in (60, 300)
    )
    advice = "Take more draws (draws=, --draws)."
    assert any(advice in said for said in few.warnings)
    assert not any(advice in said for said in enough.warnings)
