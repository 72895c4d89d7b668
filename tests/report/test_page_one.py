"""The first page: what is released, three risks, who decides."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import edp_bayes as edp
from edp_bayes.report.describing import describe
from edp_bayes.report.sections.page_one import _singling_out as singling_out
from edp_bayes.report.sections.words import guessed_right
from edp_bayes.results.inference import CELLS, FINEST, KNOWN_TO, _left, amount_errors
from edp_bayes.results.release import Release
from edp_bayes.utils.formatting import percent

WORDS = {
    "title": "Weekly revenue",
    "unit": "dollars",
    "period": "April to June",
    "publisher": "CD shop",
    "prepared_by": "A. Auditor",
    "next_review": "May 2027",
}


def responses(n=40, people=6, scale=0.2, seed=5):
    rng = np.random.default_rng(seed)
    contribution = rng.gamma(2.0, scale, (n, people))
    total = 20.0 + rng.normal(size=n) + contribution.sum(axis=1)
    return edp.Responses.from_arrays(total, contribution=contribution)


@pytest.fixture(scope="module")
def audit():
    return edp.audit(
        responses(), epsilon=[0.05, 0.1, 0.5], draws=150, random_seed=2, progressbar=False
    )


def row(content, risk):
    return next(one for one in content.first.rows if one.risk == risk)


@pytest.mark.full
def test_it_names_what_is_released_and_by_whom(audit, tmp_path):
    named = audit.with_release(**WORDS)
    content = describe(named, epsilon=0.1, delta=0.2)
    facts = {fact.name: fact.words for fact in content.first.facts}
    assert facts["Released"] == "Weekly revenue, dollars (arrays)"
    assert (facts["By whom"], facts["To whom"]) == ("CD shop", "anybody")
    assert facts["Period"] == "April to June"
    assert facts["Individuals"] == "6"
    assert content.title == "Privacy of Weekly revenue"
    page = named.report(tmp_path / "report.html").read_text(encoding="utf-8")
    for words in WORDS.values():
        assert words in page
    assert page.index("A. Auditor") < page.index("Privacy curve")
    assert "anonym" not in page.lower()
    kept = edp.load(named.save(tmp_path / "audit.nc"))
    assert kept.release == named.release == Release(**WORDS)
    assert audit.release == Release()


@pytest.mark.full
@pytest.mark.parametrize("words", [{}, {"title": "Weekly revenue"}, WORDS])
def test_what_is_published_is_said_once(audit, words):
    first = describe(audit.with_release(**words).released(rounded_to=0.5, progressbar=False)).first
    named = {fact.name: fact.words for fact in first.facts}["Released"]
    assert named.count("rounded to 0.5") == 1
    assert named.count("arrays") == 1


@pytest.mark.full
def test_several_releases_together_are_named_as_the_one(audit):
    named = audit.with_release(**WORDS)
    year = edp.compose(named, databases=2, draws=20, progressbar=False)
    assert year.release == named.release
    content = describe(year, epsilon=0.1, delta=0.2)
    assert content.title == "Privacy of Weekly revenue in 2 fresh databases"
    facts = {fact.name: fact.words for fact in content.first.facts}
    assert facts["Released"] == "Weekly revenue, dollars (arrays)"
    assert (facts["By whom"], content.first.prepared_by) == ("CD shop", "A. Auditor")
    other = audit.with_release(title="Visits", publisher="CD shop")
    both = edp.compose([named, other], fresh=True, draws=20, progressbar=False)
    assert both.release == Release(publisher="CD shop")
    assert edp.compose(audit, databases=2, draws=20, progressbar=False).release == Release()


@pytest.mark.full
def test_titles_and_axes_of_pictures_have_the_words(audit):
    named = audit.with_release(**WORDS)
    assert named.axis == "Weekly revenue, dollars"
    assert named.subject[0] == "Weekly revenue"
    assert describe(named).distributions[0].axis == "Weekly revenue, dollars"


def test_singling_out_is_the_verdict_and_says_how_often_a_guess_is_right(audit):
    content = describe(audit, epsilon=0.1, delta=0.2)
    found = row(content, "Singling out")
    assert found.status == content.verdict.status
    said = float(re.search(r"a probability of at most ([\d.]+)%", found.meaning)[1]) / 100.0
    # (e^epsilon + delta) / (e^epsilon + 1) at the limit, or by the whole curve what the section on
    # tests and guesses says, rounded up to a tenth of a percent
    section = re.search(r"guesses right with a probability of at most ([\d.]+)", str(content.words))
    at_most = min((1.105171 + content.verdict.limit) / 2.105171, guessed_right(audit, 0.95))
    assert 0.0 <= float(section[1]) - guessed_right(audit, 0.95) <= 0.01
    assert at_most - 1e-6 <= said <= at_most + 0.001 + 1e-6
    assert "50% likely" in found.meaning
    assert found.number.endswith("target 0.2")
    # the regulators' words come before delta
    assert found.number.startswith(f"membership guessed right: 50% before, at most {percent(said)}")


@pytest.mark.parametrize("shift", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_no_test_guesses_better_than_page_one_says(shift, epsilon):
    """Of two normal answers a shift apart the best guess hits with probability Phi(shift / 2)."""
    verdict = replace(
        edp.audit_property(
            3, 10, epsilon=[epsilon], draws=20, random_seed=1, progressbar=False
        ).verdict(epsilon=epsilon, delta=0.5),
        limit=float(
            edp.hockey_stick(
                edp.Mixture(1.0, shift, 1.0), edp.Mixture(1.0, 0.0, 1.0), epsilon=epsilon
            )
        ),
    )
    said = float(re.search(r"([\d.]+)%\.$", singling_out(verdict, 1.0).meaning)[1]) / 100.0
    assert said >= ndtr(shift / 2.0) - 1e-12


@pytest.mark.full
def test_linkability_is_not_assessed_unless_releases_are_given(audit):
    assert row(describe(audit), "Linkability").status == "not assessed"
    year = audit.compose(databases=4, progressbar=False)
    content = describe(audit, epsilon=0.1, delta=0.9, releases=year)
    found = row(content, "Linkability")
    assert found.status == year.verdict(epsilon=0.1, delta=0.9).status
    assert "4 fresh databases" in found.meaning


@pytest.mark.full
def test_an_amount_is_learned_no_closer_than_the_answer_can_be_predicted():
    rng = np.random.default_rng(3)
    rest = rng.normal(0.0, 1.0, 400)
    steady = np.full(400, 0.5)
    one = edp.Responses.from_arrays(rest + steady, contribution=steady)
    audit = edp.audit(one, epsilon=[0.1], draws=200, random_seed=1, progressbar=False)
    # the half-width of a normal answer of standard deviation 1, over the amount 0.5
    assert np.median(amount_errors(audit, 0.95)) == pytest.approx(1.96 / 0.5, rel=0.15)


@pytest.mark.parametrize("apart", [30.0, 1e3, 1e4])
def test_an_answer_of_modes_far_apart_tells_an_amount_as_closely_as_its_modes_are_wide(apart):
    """The whole spread of the answer is of no help to who knows the amount roughly."""
    amount, sd = 150.0, 1.0
    half = np.geomspace(FINEST, 1.0, CELLS) * KNOWN_TO * amount
    offsets = np.concatenate([-half[::-1], [0.0], half])
    modes = edp.Mixture([0.5, 0.5], [0.0, apart], sd)
    # those of both modes where the amount is not known well enough to tell these apart
    expected = 2.0 * 1.96 * sd * (1 if apart > KNOWN_TO * amount else 2)
    assert _left(modes, modes.locations, offsets, 0.95) == pytest.approx(expected, rel=0.03)


@pytest.mark.full
def test_that_an_answer_of_two_modes_hides_an_amount_is_not_said():
    rng = np.random.default_rng(2)
    amounts = np.column_stack([rng.uniform(50.0, 150.0, 60), rng.uniform(0.0, 1.0, 60)])
    modes = rng.choice([0.0, 1e4], 60) + rng.normal(size=60)
    one = edp.Responses.from_arrays(modes + amounts.sum(axis=1), contribution=amounts)
    audit = edp.audit(one, epsilon=[0.1], draws=50, chains=2, random_seed=1, progressbar=False)
    assert np.median(amount_errors(audit, 0.95)) < 1.0
    assert row(describe(audit, epsilon=0.1, delta=0.05), "Inference").status != "met"


@pytest.mark.full
def test_who_is_far_larger_than_the_rest_is_learned_closely():
    rng = np.random.default_rng(4)
    rest = rng.normal(0.0, 0.01, 100)
    amount = rng.normal(10.0, 1.0, 100)
    one = edp.Responses.from_arrays(rest + amount, contribution=amount)
    audit = edp.audit(one, epsilon=[0.1], draws=200, random_seed=1, progressbar=False)
    assert np.median(amount_errors(audit, 0.95)) == pytest.approx(0.0196 / amount.max(), rel=0.3)
    assert row(describe(audit), "Inference").status in ("not met", "not established")


@pytest.mark.full
def test_where_nothing_is_established_no_row_is():
    rng = np.random.default_rng(5)
    contribution = rng.gamma(2.0, 0.2, (40, 6))
    total = 20.0 + 0.2 * np.arange(40) + contribution.sum(axis=1) + rng.normal(size=40)
    drifting = edp.Responses.from_arrays(total, contribution=contribution)
    with pytest.warns(edp.EdpBayesWarning):
        audit = edp.audit(drifting, epsilon=[0.1], draws=100, random_seed=1, progressbar=False)
    content = describe(audit)
    assert {one.status for one in content.first.rows} == {"not established", "not assessed"}
    assert "trend" in content.first.withholding
    assert not any("at most" in one.number + one.meaning for one in content.first.rows)


@pytest.mark.full
def test_a_composition_and_a_mechanism_have_a_first_page(audit):
    year = describe(audit.compose(databases=4, progressbar=False))
    assert [one.risk for one in year.first.rows] == ["Linkability"]
    rng = np.random.default_rng(1)
    mechanism = edp.audit_mechanism(
        rng.random(500) < 0.6, rng.random(500) < 0.5, epsilon=[0.5], random_seed=1,
        progressbar=False,
    )  # fmt: skip
    assert [one.risk for one in describe(mechanism).first.rows] == ["Singling out"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"title": "<b>Revenue</b>"}, "title must be plain text, found markup"),
        ({"unit": "a&amp;b"}, "unit must be plain text, found markup"),
        ({"publisher": "two\nlines"}, "publisher must be one line"),
        ({"period": "x" * 201}, "period must have at most 200 characters"),
        ({"colour": "red"}, "a release has title, unit, period"),
    ],
)
def test_words_that_cannot_be_shown_are_refused(audit, words, message):
    with pytest.raises(edp.InvalidInputError, match=re.escape(message)):
        audit.with_release(**words)


def test_less_than_and_and_are_words():
    assert Release(title="Sales < 5 & A < B").title == "Sales < 5 & A < B"
