"""The answer to a target: one object that every sentence comes from."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.cli.answering import CODES, exit_code
from edp_bayes.results.base import NOBODY_KNOWN, PrivacyCurves
from edp_bayes.results.more_databases import needed
from edp_bayes.results.verdict import (
    MET,
    NOT_ESTABLISHED,
    NOT_MET,
    STATUSES,
    UNDECIDED,
    Target,
    exact_verdict,
    reach_verdict,
)
from edp_bayes.results.verdict_record import record
from edp_bayes.utils.formatting import risk_least, risk_limit

GRID = np.array([0.05, 0.1, 0.2, 0.5])


def curves(draws, grid=GRID, *, failed=None, individuals=100, **more):
    """Return a result of these draws of delta, shape (draw, epsilon)."""
    posterior = xr.Dataset(
        {"delta": (("chain", "draw", "epsilon"), np.asarray(draws)[None])},
        {"epsilon": grid, "chain": [0], "draw": np.arange(len(draws))},
    )
    checks = [{"check": failed, "passed": False, "sentence": "It fails."}] if failed else []
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.attrs = {
        "settings": json.dumps({"individuals": individuals, "databases": 60, **more}),
        "checks": json.dumps(checks),
        "warnings": "[]",
    }
    return PrivacyCurves(tree)


def falling(level, spread=0.3, draws=400, seed=1):
    """Return draws of curves around a level at the first epsilon."""
    rng = np.random.default_rng(seed)
    return level * np.exp(rng.normal(0.0, spread, draws))[:, None] * np.exp(-2.0 * GRID)


def test_the_status_follows_from_the_limit_and_the_band():
    result = curves(falling(0.02))
    limit = float(result.upper("delta").sel(epsilon=0.1))
    lower = float(result.band(kind="pointwise", prob=0.95)["lower"].sel(epsilon=0.1))
    for delta, status in (
        (limit, MET),
        (limit * 0.999, UNDECIDED),
        (lower, UNDECIDED),
        (lower * 0.999, NOT_MET),
    ):
        found = result.verdict(epsilon=0.1, delta=delta)
        assert found.status == status
        assert (found.limit, found.lower) == (limit, lower)
        assert str(found).startswith(status.capitalize() + ":")


@settings(deadline=None)
@given(limit=st.floats(1e-5, 0.9), above=st.floats(0.0, 0.02))
def test_a_limit_that_meets_its_target_is_never_shown_above_it(limit, above):
    target = limit * (1.0 + above)
    shown = risk_limit(limit, target=target)
    assert limit * (1.0 - 1e-9) <= float(shown) <= target * (1.0 + 1e-9)
    least = risk_least(target, target=limit)
    assert float(least) <= target * (1.0 + 1e-9)
    assert target <= limit * (1.0 + 1e-9) or float(least) > limit


def test_met_and_not_met_say_a_limit_on_their_side_of_the_target():
    result = curves(np.full((400, 4), 0.10028))
    met = result.verdict(epsilon=0.1, delta=0.101)
    assert (met.status, met.limit_shown) == (MET, "0.101")
    assert "at most 0.101" in met.claim
    not_met = result.verdict(epsilon=0.1, delta=0.1)
    assert "at least 0.1002" in not_met.claim


def test_a_probability_beyond_the_draws_is_refused():
    result = curves(falling(0.02, draws=200))
    with pytest.raises(edp.InvalidInputError, match="needs at least 10,000 draws, found 200"):
        result.verdict(epsilon=0.1, delta=0.02, prob=0.9999)


def test_the_limit_of_the_whole_curve_is_no_smaller():
    result = curves(falling(0.02))
    alone, whole = (
        result.verdict(epsilon=0.1, delta=0.5, kind=kind) for kind in ("pointwise", "simultaneous")
    )
    assert alone.limit <= whole.limit
    assert "for this epsilon alone" in str(alone)
    assert "whole curve" in str(whole)


def test_a_failed_check_leaves_no_verdict_whatever_the_limit():
    result = curves(falling(1e-5), failed="trend")
    found = result.verdict(epsilon=0.1, delta=0.5)
    assert found.status == NOT_ESTABLISHED
    assert found.withheld_by == ("trend",)
    assert str(found).startswith("Not established. It fails.")
    assert "at most" not in str(found)
    advised = curves(falling(1e-5), failed="ties")
    assert advised.verdict(epsilon=0.1, delta=0.5).status == MET


def test_the_default_target_is_one_over_the_individuals_and_says_so():
    for individuals, delta in ((10_000, 1e-4), (100, 0.01), (7, 0.1), (1, 0.1)):
        found = curves(falling(1e-3), individuals=individuals).verdict()
        assert (found.epsilon, found.delta) == (0.1, delta)
        assert "The target is the default" in str(found)
    given_one = curves(falling(1e-3)).verdict(delta=0.2)
    assert "its epsilon is a default" in str(given_one)
    assert "default" not in str(curves(falling(1e-3)).verdict(epsilon=0.1, delta=0.2))


def test_nobody_counted_has_a_default_of_a_hundredth():
    assert Target.of(None).delta == 0.01
    assert curves(falling(1e-3), individuals=None).verdict().delta == 0.01


@given(
    epsilon=st.floats(0.0, 3.0),
    level=st.floats(1e-5, 0.5),
    delta=st.floats(0.0, 0.99),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_between_values_of_the_grid_the_answer_errs_on_the_safe_side(epsilon, level, delta, seed):
    # the draws at this very epsilon give an answer; that of the grid is never more favourable
    draws = falling(level, draws=60, seed=seed)
    exact = draws[:, :1] * np.exp(-2.0 * (epsilon - GRID[0]))
    sparse = curves(np.minimum(draws, 1.0)).verdict(epsilon=epsilon, delta=delta)
    here = curves(np.minimum(exact, 1.0), np.array([epsilon])).verdict(epsilon=epsilon, delta=delta)
    assert sparse.limit >= here.limit - 1e-12
    assert sparse.lower <= here.lower + 1e-12
    assert sparse.status in (here.status, UNDECIDED)


def test_beyond_the_grid_it_says_what_is_not_known():
    result = curves(falling(0.02))
    left = result.verdict(epsilon=0.01, delta=0.5)
    assert (left.status, left.limit, left.read_at) == (UNDECIDED, 1.0, (0.0, 0.05))
    assert "no limit is known" in str(left)
    right = result.verdict(epsilon=2.0, delta=0.5)
    assert right.status == MET
    assert right.read_at == (0.5, math.inf)
    assert "the limit is that at 0.5" in str(right)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1, "delta": 0.1}, "must not be negative"),
        ({"epsilon": 0.1, "delta": 1.0}, "must be at least 0 and below 1"),
        ({"epsilon": 0.1, "delta": -0.1}, "must be at least 0 and below 1"),
        ({"epsilon": math.nan, "delta": 0.1}, "epsilon"),
        ({"prob": 1.5}, "prob"),
        ({"kind": "both"}, "kind"),
    ],
)
def test_a_target_out_of_range_is_refused(options, message):
    with pytest.raises(edp.InvalidInputError, match=message):
        curves(falling(0.02)).verdict(**options)


def test_what_is_computed_is_met_or_not():
    target = Target.of(1000, epsilon=0.1, delta=0.01)
    assert exact_verdict(0.01, target, "risk").status == MET
    assert exact_verdict(0.0101, target, "risk").status == NOT_MET
    assert "computed exactly" in str(exact_verdict(0.002, target, "risk of the critical entry"))


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.05, (62, 20)) * (rng.random((62, 20)) < 0.5)
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 62) + contribution.sum(axis=1), contribution=contribution
    )
    return edp.audit(
        responses, epsilon=[0.05, 0.1, 0.2], draws=200, random_seed=1, progressbar=False
    )


def test_every_verdict_says_against_whom(audit):
    shares = edp.audit_property(103, 1000, epsilon=[0.1], random_seed=1, progressbar=False)
    coins = (np.random.default_rng(k).random(2000) < 0.5 for k in range(2))
    mechanism = edp.audit_mechanism(*coins, epsilon=[0.1], random_seed=1, progressbar=False)
    for result, against in (
        (audit, NOBODY_KNOWN),
        (shares, "a person who knows the probability of the property, and none of the entries"),
        (mechanism, "a person who knows both databases of a pair"),
        (curves(falling(0.02), against="Eve"), "Eve"),
    ):
        for delta in (1e-9, 0.9):
            found = result.verdict(epsilon=0.1, delta=delta)
            assert f": against {against}, at epsilon = 0.1 the " in found.claim
            assert record(result, found)["verdict"]["against"] == found.against == against
            assert result.opponent


@pytest.mark.full
def test_an_audit_says_whom_the_command_line_would_have_assumed(audit):
    said = audit.verdict(epsilon=0.1, delta=0.5)
    assert said.not_assumed in said.sentences
    assert edp.Adversary(past=2, trend=True).words in said.not_assumed
    assert said.not_assumed in audit.describe(epsilon=0.1, delta=0.5)
    twice = audit.compose(2, draws=50, progressbar=False)
    assert said.not_assumed in twice.verdict().sentences
    rng = np.random.default_rng(1)
    for n, known, told in ((30, None, True), (29, None, False), (30, {"trend": True}, False)):
        responses = edp.Responses.from_arrays(
            rng.normal(size=n), contribution=rng.gamma(2.0, 0.05, (n, 2))
        )
        other = edp.audit(
            responses,
            epsilon=[0.1],
            adversary=None if known is None else edp.Adversary(**known),
            model=edp.FiniteMixture(components=1),
            draws=50,
            random_seed=1,
            progressbar=False,
        )
        assert bool(other.verdict().not_assumed) is told


@pytest.mark.full
def test_out_of_reach_is_said_where_it_is_undecided(audit):
    found = audit.verdict(epsilon=0.1, delta=0.005)
    assert found.status == UNDECIDED
    assert "out of reach of 62 databases" in str(found)
    assert "no limit below about 0.053" in str(found)
    # both numbers are said of whom they are
    assert found.limit < 0.053
    assert "The limit here is smaller: it is that of the individuals in these data" in str(found)
    assert "out of reach" not in str(audit.verdict(epsilon=0.1, delta=0.5))


def test_a_limit_as_large_as_that_of_who_stands_out_is_not_called_smaller():
    draws = falling(0.1)
    result = curves(draws)
    people = xr.Dataset({"presence": ("individual", [1.0])}, {"individual": ["Ann"]})
    result.tree["individuals"] = xr.DataTree(people)
    smaller = "The limit here is smaller"
    limit = result.verdict(epsilon=0.1, delta=0.9).limit
    assert limit > 3.3 / 60
    found = str(result.verdict(epsilon=0.1, delta=0.053))
    assert "out of reach of 60 databases" in found
    assert smaller not in found
    result.tree["posterior"]["delta"] *= 0.05 / limit
    assert smaller in str(result.verdict(epsilon=0.1, delta=0.045))


def test_what_would_help_has_its_figure(audit):
    largest = float(audit.individuals["largest_contribution"].max())
    found = audit.verdict(epsilon=0.1, delta=1e-5)
    assert found.status == NOT_MET
    scale = float(found.helps[0].split("scale ")[1].split(" ")[0])
    assert largest / 0.1 <= scale <= 1.1 * largest / 0.1
    assert audit.verdict(epsilon=0.1, delta=0.5).helps == ()


def test_a_plan_says_how_many_databases_decide(audit):
    rng = np.random.default_rng(1)
    steady = rng.normal(0.4, 0.05, 40)
    responses = edp.Responses.from_arrays(rng.normal(0.0, 1.0, 40) + steady, contribution=steady)
    plan = edp.plan(
        responses, delta=0.2, epsilon=0.1, kind="pointwise", repetitions=2, draws=50, most=80,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    one = edp.audit(responses, epsilon=[0.1], draws=100, random_seed=1, progressbar=False)
    found = one.verdict(epsilon=0.1, delta=0.2, plan=plan)
    assert found.status == UNDECIDED
    assert str(plan) in str(found)
    assert found.decided_by == plan.databases
    with pytest.raises(edp.InvalidInputError, match=r"plan must be one of delta = 0\.19"):
        one.verdict(epsilon=0.1, delta=0.19, plan=plan)
    with pytest.raises(edp.InputTypeError, match="plan must be what"):
        one.verdict(epsilon=0.1, delta=0.19, plan=80)


def test_it_says_how_many_databases_would_decide(audit):
    first = audit.verdict(epsilon=0.1)
    middle = 0.5 * (first.lower + first.median)
    found = audit.verdict(epsilon=0.1, delta=0.5 * (middle + first.limit))
    assert found.status == UNDECIDED
    # half of the way that is left, by the root of four times as many
    assert 4 * 62 <= found.decided_by <= 1.1 * 4 * 62
    assert f"About {found.decided_by} databases would decide" in str(found)
    kept = json.loads(json.dumps(record(audit, found)))["verdict"]
    assert kept["decided_by"] == found.decided_by
    for delta, status in ((0.5, MET), (1e-5, NOT_MET)):
        decided = audit.verdict(epsilon=0.1, delta=delta)
        assert (decided.status, decided.more, decided.decided_by) == (status, "", None)


def test_more_databases_may_show_the_contrary(audit):
    first = audit.verdict(epsilon=0.1)
    found = audit.verdict(epsilon=0.1, delta=0.75 * first.lower + 0.25 * first.median)
    assert found.status == UNDECIDED
    assert found.decided_by is None
    assert "more databases may well show that it is not met" in str(found)
    near = needed(0.3, 0.15, 0.05, 0.1001, 40)
    assert near.databases is None
    assert "More than 40,000 databases would have to decide" in near.sentence


@pytest.mark.full
@pytest.mark.parametrize(("seed", "people", "share"), [(1, 1, 0.5), (2, 1, 0.5), (3, 5, 0.4)])
def test_the_number_of_databases_is_near_that_of_a_plan(seed, people, share):
    rng = np.random.default_rng(seed)
    steady = rng.normal(0.4, 0.05, (40, people))
    responses = edp.Responses.from_arrays(
        rng.normal(0.0, 1.0, 40) + steady.sum(axis=1), contribution=steady
    )
    one = edp.audit(responses, epsilon=[0.1], random_seed=1, progressbar=False)
    first = one.verdict(epsilon=0.1)
    delta = first.median + share * (first.limit - first.median)
    found = one.verdict(epsilon=0.1, delta=delta)
    plan = edp.plan(
        responses, delta=delta, epsilon=0.1, kind="pointwise", repetitions=16, draws=100,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    # half of the futures of a plan stay below: the estimate is to be no further than twice away
    assert plan.databases is not None
    assert 0.5 <= found.decided_by / plan.databases <= 2.0


@pytest.mark.full
def test_every_place_says_the_same(audit, tmp_path):
    said = audit.verdict()
    assert audit.summary().attrs["verdict"] == str(said)
    assert said.claim in audit._repr_html_()
    page = audit.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert said.claim in page
    chosen = audit.verdict(epsilon=0.2, delta=0.005)
    page = audit.report(tmp_path / "report.html", epsilon=0.2, delta=0.005).read_text("utf-8")
    assert chosen.claim in page
    assert said.claim not in page


def test_the_record_is_json_with_the_keys_of_output_checkers(audit):
    found = audit.verdict(epsilon=2.0, delta=0.01)
    kept = json.loads(json.dumps(record(audit, found), allow_nan=False))
    acro = "uid status type properties sdc command summary outcome output timestamp comments"
    assert {*acro.split(), "exception"} <= kept.keys()
    assert kept["status"] in ("pass", "fail", "review")
    assert kept["verdict"]["status"] in STATUSES
    assert kept["verdict"]["read_at"] == [0.2, None]
    assert kept["fingerprint"] == audit.settings["fingerprint"]
    assert kept["seed"] == 1
    assert kept["versions"]["edp_bayes"] == edp.__version__
    assert len(kept["checks"]) == len(audit.checks)
    assert all(uri.startswith("https://www.w3id.org/statbarnsdc#") for uri in kept["sdc"]["risks"])


@pytest.mark.parametrize(
    ("delta", "failed", "status"),
    [(0.5, None, "pass"), (1e-9, None, "fail"), (0.018, None, "review"), (0.5, "trend", "review")],
)
def test_undecided_and_not_established_are_for_review(delta, failed, status):
    result = curves(falling(0.02), failed=failed)
    found = reach_verdict(result, epsilon=0.1, delta=delta, prob=0.95)
    kept = record(result, found)
    assert kept["status"] == status
    numbers = {"limit": found.limit, "band": [found.lower, found.upper], "median": found.median}
    if failed:
        numbers = {"limit": None, "band": [None, None], "median": None}
        assert kept["verdict"]["limit_withheld"] == found.limit
    assert numbers.items() <= kept["verdict"].items()


def test_markup_in_names_is_no_markup_in_a_notebook():
    result = curves(falling(0.02), against="<b>Eve</b>")
    assert "<b>" not in result.verdict()._repr_html_()
    assert "&lt;b&gt;Eve" in result.verdict()._repr_html_()


def test_the_worst_of_several_verdicts_decides_the_exit_code():
    for last, worst in enumerate(CODES):
        for better in list(CODES)[: last + 1]:
            assert exit_code([worst, better], check=True) == CODES[worst]
            assert exit_code([better, worst], check=True) == CODES[worst]
            assert exit_code([better, worst], check=False) == 0


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(2)
    rows = [
        f"{week},{who},{rng.gamma(2.0, 5.0):.3f}"
        for week in range(40)
        for who in range(12)
        if rng.random() < 0.7
    ]
    path = tmp_path_factory.mktemp("table") / "spent.csv"
    path.write_text("\n".join(["week,who,spent", *rows]))
    return path


def run(capsys, table, out, *words):
    """Return the exit code, what is printed and what stands on stderr."""
    from edp_bayes.cli import main

    keys = [
        "--database",
        "week",
        "--individual",
        "who",
        "--query",
        "sum:spent",
        "--no-past",
        "--seed",
        "1",
    ]
    few = ["--model", "finite:2", "--draws", "60", "--chains", "2", "--tune", "60"]
    code = main(["audit", str(table), *keys, *few, "--out", str(out), *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "status", "code"),
    [("0.1:0.9", "Met", 0), ("0.1:0.0001", "Not met", 3), ("0.1:0.2", "Undecided", 4)],
)
def test_the_first_line_and_the_exit_code_tell_the_verdict(
    capsys, table, tmp_path, target, status, code
):
    words = ["--target", target, "--check", "--json", str(tmp_path / "verdict.json")]
    found, printed, error = run(capsys, table, tmp_path / "out", *words)
    assert (found, error) == (code, "")
    said = " ".join(printed.split())
    assert said.startswith(f"{status}: against {NOBODY_KNOWN}, at epsilon = 0.1 the")
    assert printed.count("┏") == 1
    assert "Riskiest individuals" not in printed
    kept = json.loads((tmp_path / "verdict.json").read_text())
    epsilon, delta = map(float, target.split(":"))
    loaded = edp.load(tmp_path / "out" / "audit.nc")
    again = loaded.verdict(epsilon=epsilon, delta=delta)
    assert kept["verdict"]["status"] == again.status == status.lower()
    assert kept["verdict"]["limit"] == again.limit
    assert again.claim in said


@pytest.mark.parametrize(("target", "code"), [("0.1:0.9", 0), ("0.1:0.0001", 3)])
def test_a_check_ends_an_audit_in_the_code_of_its_verdict(
    capsys, table, tmp_path, monkeypatch, target, code
):
    monkeypatch.setattr("edp_bayes.cli.folder.write", lambda *_, **__: [])  # pictures take long
    words = ["--epsilon", "0.1", "--target", target]
    assert run(capsys, table, tmp_path / "out", *words, "--check")[0] == code
    assert run(capsys, table, tmp_path / "out", *words)[0] == 0


@pytest.mark.full
def test_without_a_check_the_exit_code_is_zero_and_the_default_is_said(capsys, table, tmp_path):
    code, printed, _ = run(capsys, table, tmp_path / "out", "--epsilon", "0.05,0.2")
    assert code == 0
    said = " ".join(printed.split())
    assert "The target is the default: epsilon = 0.1 and delta = 0.083, one over 12" in said
    assert "the limit is that at 0.05, the lower end that at 0.2" in said
    code, printed, _ = run(capsys, table, tmp_path / "v", "--epsilon", "0.05,0.2", "--verbose")
    assert code == 0
    assert "Riskiest individuals" in printed


@pytest.mark.full
def test_the_epsilon_of_a_target_joins_the_grid(capsys, table, tmp_path):
    words = ["--epsilon", "0.05,0.2", "--target", "0.1:0.5"]
    assert run(capsys, table, tmp_path / "out", *words)[0] == 0
    grid = edp.load(tmp_path / "out" / "audit.nc").epsilon.to_numpy()
    assert grid.tolist() == [0.05, 0.1, 0.2]


@pytest.mark.full
def test_not_established_is_a_code_of_its_own(capsys, tmp_path):
    rows = [f"{w},{p},{10 + w + p}" for w in range(40) for p in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["week,who,spent", *rows]))
    words = ["--target", "0.1:0.9", "--check"]
    code, printed, _ = run(capsys, tmp_path / "t.csv", tmp_path / "out", *words)
    assert code == 5
    assert printed.startswith("Not established. ")


@pytest.mark.full
def test_what_is_published_counts_in_place_of_the_answer(capsys, table, tmp_path):
    words = ["--target", "0.1:0.2", "--check", "--rounded-to", "100000"]
    code, printed, _ = run(capsys, table, tmp_path / "out", *words)
    assert code == 0
    assert printed.startswith("The answer rounded to 100000. Met: ")
    assert "The whole answer. Undecided: " in " ".join(printed.split())


@pytest.mark.full
def test_a_plan_says_on_the_command_line_how_many_databases_decide(capsys, table, tmp_path):
    words = ["--target", "0.1:0.2", "--check", "--plan"]
    code, printed, _ = run(capsys, table, tmp_path / "out", *words)
    said = " ".join(printed.split())
    assert code == 4
    assert "simulated futures their pointwise 95% upper limit of delta" in said
    assert "0.2 was asked for" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--check"], "--check is for a target: give --target"),
        (["--target", "0.1"], "--target must be epsilon and delta with a colon"),
        (["--target", "0.1:2"], "delta of a target must be at least 0"),
        (["--target", "-1:0.1"], "epsilon of a target must not be negative"),
        (["--json", "{out}/audit.nc"], "--json must have a name of its own"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused_before_any_work(
    capsys, table, tmp_path, words, message
):
    out = tmp_path / "out"
    code, printed, error = run(capsys, table, out, *(word.format(out=out) for word in words))
    assert (code, printed) == (2, "")
    assert message in error
    assert not out.exists()
