"""Customary rules of disclosure control beside delta."""

import html
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import edp_bayes as edp
from edp_bayes.auditing.disclosure import RULES, broken, rules_of
from edp_bayes.report.sections.rules import rules_held
from edp_bayes.utils.formatting import risk_limit

FREQUENCY, MIDPOINT, TEN, DOMINANCE, P_PERCENT, PRIOR, FIFTEEN = (rule.name for rule in RULES)


def of(contribution):
    contribution = np.asarray(contribution, dtype=float)
    return edp.Responses.from_arrays(
        contribution.sum(axis=1), contribution=contribution, additive=True, step=None
    )


def spread(rows, people=30, seed=1):
    """Return contributions of databases that pass, with rows of one's own at the end."""
    rng = np.random.default_rng(seed)
    usual = rng.uniform(1.0, 1.2, (20, people))
    padded = [np.pad(np.asarray(row, float), (0, people - len(row))) for row in rows]
    return np.vstack([usual, *padded])


def test_databases_of_many_who_are_alike_pass_everything():
    table = edp.disclosure(of(spread([])))
    assert table["passed"].all()
    assert (table["failing"] == 0).all()
    assert table["source"].str.len().min() > 10
    assert "different questions" in table.attrs["meaning"]


WHOLE = st.integers(1, 99)


@given(
    st.lists(st.integers(0, 40), min_size=3, max_size=8).filter(any),
    WHOLE,
    WHOLE,
    st.integers(1, 3),
)
@example([15, 20, 20, 20, 25], 15, 30, 1)
@example([15, 85, 0], 15, 85, 1)
@example([30, 5, 10], 10, 30, 1)
def test_rules_hold_what_fractions_say(sizes, p, q, n):
    def held(text):
        return not broken(csr_array([np.array(sizes, dtype=float)]), rules_of([text]))

    falling, total = sorted(sizes, reverse=True), sum(sizes)
    rest, largest = Fraction(sum(falling[2:])), falling[0]
    assert held(f"p:{p}") == (rest / largest >= Fraction(p, 100))
    if p < q:
        assert held(f"pq:{p}:{q}") == (rest / largest >= Fraction(p, q))
    assert held(f"dominance:{n}:{q}") == (Fraction(sum(falling[:n]), total) <= Fraction(q, 100))
    there = sum(one > 0 for one in sizes)
    assert held(f"concentration:{n}:{q}") == (
        there >= n and Fraction(largest, total) <= Fraction(q, 100)
    )
    assert held(f"frequency:{n}") == (there >= n)


@pytest.mark.parametrize(
    ("row", "failing"),
    [
        # 7 alike: too few for each frequency rule, and 15/15
        ([1.0] * 7, {FREQUENCY, TEN, FIFTEEN}),
        # two with 95% of the total
        ([60.0, 35.0, *[0.25] * 20], {DOMINANCE, P_PERCENT, PRIOR, FIFTEEN}),
        # what the second largest does not know is 8% of the largest
        ([50.0, 50.0, *[0.2] * 20], {DOMINANCE, P_PERCENT, PRIOR, FIFTEEN}),
        # within 15% of the largest: more than 10, less than 20
        ([50.0, 10.0, *[0.375] * 20], {PRIOR, FIFTEEN}),
        # 16% of one among many
        ([16.0, *[3.0] * 28], {FIFTEEN}),
    ],
)
def test_each_rule_finds_its_own_database(row, failing):
    responses = of(spread([row]))
    table = edp.disclosure(responses)
    assert set(table.index[~table["passed"]]) == failing
    for name in failing:
        assert table.loc[name, "failing"] == 1
        assert table.loc[name, "worst"] == 20
    # the report says of how many databases, in the right number
    table.attrs["epsilon"] = 0.1
    said = {one.rule: one.passed for one in rules_held(table).rows}
    assert said == {name: "no, 1 database" if name in failing else "yes" for name in table.index}


@given(st.lists(st.floats(0.01, 100.0), min_size=3, max_size=12), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_values_are_those_of_the_textbook(sizes, seed):
    contribution = spread([sizes], people=14, seed=seed)
    table = edp.disclosure(of(contribution))
    ratios, shares = [], []
    for row in contribution:
        falling = sorted(row[row > 0], reverse=True)
        ratios.append((sum(falling) - falling[0] - falling[1]) / falling[0])
        shares.append(1.0 - (falling[0] + falling[1]) / sum(falling))
    assert table.loc[P_PERCENT, "value"] == pytest.approx(min(ratios))
    assert table.loc[DOMINANCE, "value"] == pytest.approx(min(shares), abs=1e-12)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    there = (rng.random((62, 40)) < 0.4).astype(float)
    responses = edp.Responses.from_arrays(there.sum(axis=1), contribution=there, additive=True)
    audit = edp.audit(
        responses, epsilon=[0.05, 0.1, 0.2], draws=100, random_seed=1, progressbar=False
    )
    return responses, audit


@pytest.mark.full
def test_what_a_rule_does_to_delta_is_that_of_what_it_publishes(counts):
    responses, audit = counts
    table = audit.disclosure(responses, epsilon=0.1)
    limit = audit.verdict(epsilon=0.1).limit
    assert (table["limit_before"] == limit).all()
    rounded = audit.released(rounded_to=6.0, offset=3.5, progressbar=False)
    assert table.loc[MIDPOINT, "limit_after"] == rounded.verdict(epsilon=0.1).limit < limit
    assert table.loc[TEN, "limit_after"] == limit
    assert audit.disclosure(epsilon=0.1).equals(table)
    loaded = edp.Audit(audit.tree)
    with pytest.raises(edp.InvalidInputError, match="responses= must be given"):
        loaded.disclosure()
    assert np.isnan(edp.disclosure(responses, audit=loaded).loc[MIDPOINT, "limit_after"])


def test_a_limit_that_a_check_withholds_stands_in_no_table(counts):
    responses, audit = counts
    checks = json.loads(audit.tree.attrs["checks"])
    failed = {"check": "trend", "passed": False, "sentence": "The responses drift up."}
    doubtful = edp.Audit(audit.tree.copy(), audit.source)
    doubtful.tree.attrs["checks"] = json.dumps([*checks, failed])
    table = doubtful.disclosure(responses, epsilon=0.1)
    assert doubtful.verdict(epsilon=0.1).status == "not established"
    assert table[["limit_before", "limit_after"]].isna().all(axis=None)
    assert not audit.disclosure(responses, rules=["frequency:2"])["limit_before"].isna().any()


@pytest.mark.full
def test_a_report_shows_the_rules_beside_delta(counts, tmp_path):
    responses, audit = counts
    rules = audit.disclosure(responses, epsilon=0.1, rules=["frequency:2", "frequency:40"])
    page = audit.report(tmp_path / "report.html", rules=rules).read_text("utf-8")
    first, section = page.split('<section id="verdict"')[0], page.split('<section id="rules">')[1]
    section = section.split("</section>")[0]
    assert "1 of 2 passed in all databases" in first
    assert html.escape(rules.attrs["meaning"]) in section
    limit = risk_limit(rules["limit_before"].iloc[0])
    for name, passed in (("at least 2 individuals", "yes"), ("at least 40", "no, 62 databases")):
        row = next(one for one in section.split("<tr>") if name in one)
        assert f"<td>{passed}</td><td>{limit}</td><td>{limit}</td>" in row
    assert 'id="rules"' not in audit.report(tmp_path / "without.html").read_text("utf-8")
    with pytest.raises(edp.InputTypeError, match=r"rules must be what edp_bayes\.disclosure"):
        audit.report(tmp_path / "other.html", rules=[1])


@pytest.mark.full
def test_midpoint_rounding_publishes_1_to_6_as_one_value(counts):
    _, audit = counts
    edges = np.arange(-203.5, 240.0, 6.0)  # as far as any draw reaches
    binned = audit.released(bins=edges, progressbar=False)
    rounded = audit.released(rounded_to=6.0, offset=3.5, progressbar=False)
    np.testing.assert_allclose(rounded.delta, binned.delta, atol=1e-9)


@pytest.mark.full
def test_rules_may_pass_where_delta_is_large():
    rng = np.random.default_rng(2)
    there = np.ones((60, 40))
    there[:, 0] = rng.random(60) < 0.5
    responses = edp.Responses.from_arrays(
        there.sum(axis=1) + 0.05 * rng.normal(size=60), contribution=there, additive=True, step=None
    )
    audit = edp.audit(responses, epsilon=[0.1], draws=100, random_seed=1, progressbar=False)
    table = edp.disclosure(responses, audit=audit)
    assert table["passed"].all()
    assert table["limit_before"].iloc[0] > 0.3


def test_parameters_of_ones_own_are_looked_at():
    rows = [[1.0] * 5, [8.0, *[0.1] * 20], [18.0, *[3.0] * 28]]
    table = edp.disclosure(
        of(spread(rows)),
        rules=["frequency:6", "frequency:5:10", "dominance:1:75", "p:30", "p:20", "pq:20:50",
               "concentration:5:16", "concentration:5:85", "midpoint:10", "frequency:6"],
    )  # fmt: skip
    names = [
        "at least 6 individuals",
        "at least 5 individuals; below redacted, then rounded to 10",
        "(n, k) dominance: the largest at most 75%",
        "p%: nobody learned to within 30%",
        "p%: nobody learned to within 20%",
        "prior-posterior (p, q) = (20, 50): from within 50% to within 20%",
        "5/16: 5 individuals, none above 16%",
        "5/85: 5 individuals, none above 85%",
        "midpoint rounding to 10",
    ]
    assert table.index.tolist() == names
    # 8 of 10, of which the second largest does not know 1.9
    assert table["failing"].tolist() == [1, 0, 1, 1, 0, 1, 3, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frequency", "a rule must be such as frequency:8 or frequency:8:5, midpoint:6"),
        ("frequency:x", "found 'frequency:x'"),
        ("frequency:1:2:3", "found 'frequency:1:2:3'"),
        ("largest:3", "found 'largest:3'"),
        ("p:100", "less than 100%, found 100%"),
        ("p:-1", "p must be greater than 0"),
        ("pq:50:10", "p the smaller, found p = 50 and q = 10"),
        ("dominance:1.5:80", "n of a dominance rule"),
    ],
)
def test_texts_that_are_no_rules_are_refused(text, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        edp.disclosure(of(spread([])), rules=[text])


def test_what_rules_cannot_look_at_is_refused(counts):
    responses, audit = counts
    plain = edp.Responses.from_arrays(
        np.arange(20.0), contribution=np.ones((20, 2)) * np.arange(1, 3)
    )
    with pytest.raises(edp.InvalidInputError, match="rules are for sums and counts"):
        edp.disclosure(plain)
    with pytest.raises(edp.InvalidInputError, match="audit must be of these responses"):
        edp.disclosure(of(spread([])), audit=audit)
    with pytest.raises(edp.InputTypeError, match="responses must be Responses"):
        edp.disclosure(np.ones(3))
    with pytest.raises(edp.InputTypeError, match="audit must be an Audit"):
        edp.disclosure(responses, audit=3)


@pytest.mark.full
def test_the_command_line_prints_and_writes_the_rules(capsys, tmp_path):
    rng = np.random.default_rng(3)
    rows = [f"{w},{p}" for w in range(40) for p in range(20) if rng.random() < 0.6]
    (tmp_path / "visits.csv").write_text("\n".join(["week,who", *rows]))
    words = "--database week --individual who --query count --no-past --seed 1 --draws 50"
    few = "--chains 2 --model finite:2 --tune 50 --rules --epsilon 0.1,0.2"
    from edp_bayes.cli import main

    asked = ["audit", str(tmp_path / "visits.csv"), *words.split(), *few.split()]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Rules of disclosure control, and delta at epsilon = 0.1" in printed
    assert "They answer different questions" in printed
    own = [*(one for one in asked if one != "--rules"), "--rule", "frequency:12", "--rule", "p:5"]
    assert main([*own, "--out", str(tmp_path / "own")]) == 0
    assert "at least 12 individuals" in capsys.readouterr().out
    assert len((tmp_path / "own" / "rules.csv").read_text().splitlines()) == 3
    assert main([*own, "--rule", "p:200", "--out", str(tmp_path / "own")]) == 2
    assert "p must be less than 100%" in capsys.readouterr().err
    header = (tmp_path / "out" / "rules.csv").read_text().splitlines()[0]
    assert header.startswith("rule,passed,failing,worst,value,least,source,limit_before")


@pytest.mark.parametrize(("prior", "posterior"), [(0.5, 0.525), (0.1, 0.3), (0.5, 0.4)])
def test_epsilon_for_moves_the_odds_as_far(prior, posterior):
    epsilon = edp.Audit.epsilon_for(prior=prior, posterior=posterior)
    odds = prior / (1 - prior) * np.exp(epsilon if posterior > prior else -epsilon)
    assert odds / (1 + odds) == pytest.approx(posterior)
    with pytest.raises(edp.InvalidInputError, match="prior"):
        edp.Audit.epsilon_for(prior=1.0, posterior=posterior)
