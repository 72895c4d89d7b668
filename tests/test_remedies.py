"""What would help where a target is not met."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.auditing.other_answers import of_longer
from edp_bayes.cli import main
from edp_bayes.mitigation import NOISE
from edp_bayes.report.describing import describe
from edp_bayes.responses.changed import CUTS, cuts, limited, together
from edp_bayes.responses.rounding import rounding_steps

FEW = {"draws": 30, "chains": 2, "tune": 100, "random_seed": 1, "progressbar": False}
EPSILON, DELTA = 0.1, 0.02


def amounts(seed=8):
    rng = np.random.default_rng(seed)
    given = rng.gamma(2.0, 0.15, (62, 12)) * (rng.random((62, 12)) < 0.5)
    return edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 62) + given.sum(axis=1), contribution=given, additive=True,
        database=np.arange("2020-01-06", "2022-01-01", 7, dtype="M8[D]")[:62],
    )  # fmt: skip


@pytest.fixture(scope="module")
def tried():
    responses = amounts()
    audit = edp.audit(responses, epsilon=[EPSILON], **FEW)
    return responses, audit, edp.remedies(audit, responses, delta=DELTA, **FEW)


@pytest.mark.full
def test_each_row_is_the_verdict_of_what_is_published_then(tried):
    responses, audit, found = tried
    table = found.table
    assert table.index.tolist() == ["rounding", "noise", "period", "limit"]
    share = table.loc["noise", "moves"]
    noisy = responses.replaced(noise=edp.GaussianNoise(share * responses.response.std()))
    again = edp.audit(noisy, epsilon=[EPSILON], **FEW).verdict(epsilon=EPSILON, delta=DELTA)
    assert table.loc["noise", "limit"] == again.limit <= DELTA
    assert (table.loc["noise", "status"], again.status) == ("met", "met")
    # the next smaller noise of the ladder does not do
    less = NOISE[NOISE.index(share) - 1]
    noisy = responses.replaced(noise=edp.GaussianNoise(less * responses.response.std()))
    assert edp.audit(noisy, epsilon=[EPSILON], **FEW).verdict(delta=DELTA).limit > DELTA
    step = float(table.loc["rounding", "remedy"].removeprefix("rounding to "))
    rounded = audit.released(rounded_to=step, progressbar=False)
    assert table.loc["rounding", "limit"] == rounded.verdict(epsilon=EPSILON, delta=DELTA).limit
    y = responses.response
    lost = np.sqrt(np.mean((step * np.round(y / step) - y) ** 2)) / y.std()
    assert table.loc["rounding", "moves"] == pytest.approx(lost)
    assert table.loc["period", "databases"] in (31, 15)
    assert np.isnan(table.loc["period", "moves"])


@pytest.mark.full
def test_verdicts_and_reports_say_what_was_tried(tried):
    _, audit, found = tried
    assert any("Gaussian noise of standard deviation" in one for one in found.sentences)
    kept = audit.with_tried(found)
    assert kept.verdict(epsilon=EPSILON, delta=DELTA).helps == found.sentences
    # of another target nothing was tried
    assert kept.verdict(epsilon=EPSILON, delta=0.03).helps == audit.verdict(delta=0.03).helps
    assert describe(kept, epsilon=EPSILON, delta=DELTA).first.tried == found.sentences
    assert "tried" not in kept.released(rounded_to=1.0, progressbar=False).tree.attrs
    with pytest.raises(edp.InputTypeError, match="tried must be Tried"):
        audit.with_tried("noise")


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_a_longer_period_adds_up_its_databases(count, seed):
    responses = amounts(seed % 7)
    longer = together(responses, count)
    start = 62 % count
    np.testing.assert_allclose(
        longer.response, responses.response[start:].reshape(-1, count).sum(axis=1)
    )
    whole = responses.contribution.toarray()[start:].reshape(-1, count, 12).sum(axis=1)
    np.testing.assert_allclose(longer.contribution.toarray(), whole)
    assert longer.database.tolist() == responses.database[start::count].tolist()


@given(st.integers(2, 60), st.sampled_from((2, 4)))
def test_a_season_is_as_long_in_databases_that_are_longer(season, count):
    known = edp.Adversary(past=1, season=season)
    phases = {(count * k) % season for k in range(season)}  # at which the longer databases begin
    if len(phases) == 1:
        assert of_longer(known, count).season is None
    elif season < 2 * count:
        with pytest.raises(edp.InvalidInputError, match=f"a season of {season} databases"):
            of_longer(known, count)
    else:
        assert of_longer(known, count).season * count == pytest.approx(season)
        assert of_longer(known, count).past == 1
    for other in (None, edp.Adversary(past=2), edp.Adversary(season="calendar")):
        assert of_longer(other, count) is other


def test_what_was_not_tried_is_named_and_where_the_reason_stands(tried):
    responses, audit, _ = tried
    found = edp.remedies(
        audit, responses, kinds=("period",), adversary=edp.Adversary(season=3), delta=DELTA, **FEW
    )
    # of seasons of three databases, two in one are no whole ones, nor two of them a season
    assert found.sentences == ("Not tried: a longer period; the table of remedies says why.",)
    assert "a season of 3 databases" in found.table.loc["period", "why"]


@given(st.integers(0, 6), st.floats(0.05, 1.0))
def test_a_limit_cuts_contributions_and_takes_off_what_is_cut(seed, most):
    responses = amounts(seed)
    less = limited(responses, most)
    whole = responses.contribution.toarray()
    np.testing.assert_allclose(less.contribution.toarray(), np.minimum(whole, most))
    rest = responses.response - whole.sum(axis=1)
    np.testing.assert_allclose(less.response - less.contribution.toarray().sum(axis=1), rest)


def test_what_is_tried_is_in_order_and_on_the_grid():
    sizes = list(rounding_steps(3.0, None))
    assert sizes == [1.0, 2.0, 5.0, 10.0]
    whole = list(rounding_steps(30.0, 1.0))
    assert whole == sorted(whole)
    assert all(size % 2 == 1 and size > 1 for size in whole)
    found = list(cuts(np.arange(1.0, 101.0), None))
    assert found == [np.quantile(np.arange(1.0, 101.0), q, method="inverted_cdf") for q in CUTS]
    assert list(cuts(np.ones(20), 1.0)) == []


@pytest.mark.full
def test_counts_are_rounded_and_made_noisy_on_their_grid():
    rng = np.random.default_rng(2)
    there = (rng.random((60, 30)) < 0.4).astype(float)
    responses = edp.Responses.from_arrays(there.sum(axis=1), contribution=there, additive=True)
    audit = edp.audit(responses, epsilon=[EPSILON], **FEW)
    table = edp.remedies(
        audit, responses, delta=0.005, kinds=("rounding", "noise", "limit"), **{**FEW, "draws": 15}
    ).table
    assert table.loc["noise", "limit"] < audit.verdict(delta=0.005).limit
    assert table.loc["limit", "status"] == "not tried"
    assert "nothing of the kind" in table.loc["limit", "why"]
    assert float(table.loc["rounding", "remedy"].removeprefix("rounding to ")) % 2 == 1


def test_what_cannot_be_tried_says_why_and_what_is_wrong_is_refused(tried):
    responses, audit, _ = tried
    mean = edp.Responses.from_arrays(
        responses.response, contribution=responses.contribution, database=responses.database
    )
    own = edp.audit(mean, epsilon=[EPSILON], **FEW)
    table = edp.remedies(own, mean, kinds=("period",), **FEW).table
    assert "it is for sums and counts" in table.loc["period", "why"]
    with pytest.raises(edp.InvalidInputError, match="their fingerprints differ"):
        edp.remedies(audit, amounts(3))
    with pytest.raises(edp.InvalidInputError, match="kinds must be among rounding, noise"):
        edp.remedies(audit, responses, kinds=("hope",))
    with pytest.raises(edp.InvalidInputError, match="loaded from a file or made without"):
        edp.remedies(edp.Audit(audit.tree), responses)
    with pytest.raises(edp.InputTypeError, match="audit must be an Audit"):
        edp.remedies(responses, responses)


@pytest.mark.full
def test_the_command_line_tries_what_would_help(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "week": np.repeat(pd.date_range("2023-01-02", periods=40, freq="7D"), 20),
        "who": np.tile(np.arange(20), 40), "cost": rng.gamma(2.0, 5.0, 800),
    })[rng.random(800) < 0.5]  # fmt: skip
    rows.to_csv(tmp_path / "visits.csv", index=False)
    words = "--database week --individual who --query sum:cost --seed 1 --draws 60 --chains 2"
    more = "--model finite:2 --tune 50 --epsilon 0.1 --no-past --target 0.1:0.001 --remedies"
    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), *more.split()]
    out = tmp_path / "out"
    record = ["--json", str(out / "verdict.json"), "--report", str(out / "report.html")]
    assert main([*asked, "--out", str(out), *record]) == 0
    said = " ".join(capsys.readouterr().out.split())
    table = pd.read_csv(out / "remedies.csv", index_col="kind")
    assert table.index.tolist() == ["rounding", "noise", "period", "limit"]
    assert table.loc["noise", "remedy"][1:] in said
    comments = json.loads((out / "verdict.json").read_text(encoding="utf-8"))["comments"]
    assert any("Gaussian noise" in one for one in comments)
    assert "Gaussian noise of standard deviation" in (out / "report.html").read_text("utf-8")
    joint = ["--query", "count", "--out", str(out)]
    assert main([*asked, *joint]) == 2
    assert "--remedies is for one query" in capsys.readouterr().err
