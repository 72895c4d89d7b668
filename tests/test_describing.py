"""A result in one paragraph: nothing but what stands in it, and nobody by name."""

import json

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.results.describing import without_names
from edp_bayes.utils.sentences import Name, Sentence, stored

LABELS = ["Zaphod Beeblebrox", "Trillian Ärztin", "Marvin 42"]
OPTIONS = {"epsilon": [0.1, 0.5], "draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}


def responses(*, exposed=False, trend=0.0):
    rng = np.random.default_rng(2)
    c = rng.gamma(2.0, 0.05, (40, 3))
    if exposed:
        c[::9, 1] = 40.0
    y = rng.normal(10.0, 1.0, 40) + c.sum(axis=1) + trend * np.arange(40)
    return edp.Responses.from_arrays(
        y, contribution=c, individual=LABELS, query="sum of dollars", additive=True
    )


@pytest.fixture(scope="module")
def audit():
    return edp.audit(responses(), model=edp.SmoothedBootstrap(), **OPTIONS)


@pytest.fixture(scope="module")
def doubtful():
    """An audit that establishes nothing, of which several sentences name individuals."""
    found = edp.audit(
        responses(exposed=True, trend=0.3), model=edp.SmoothedBootstrap(), individuals=LABELS,
        **OPTIONS,
    )  # fmt: skip
    rows = json.loads(found.tree.attrs["checks"])
    said = Sentence("Look at ", Name(repr(LABELS[0]), LABELS[0]), ".")
    rows.insert(0, {"check": "identifier", "passed": False, "sentence": stored(said)})
    plain = f"{LABELS[1]} is in it."
    rows.append({"check": "own contribution", "passed": False, "sentence": plain})
    found.tree.attrs["checks"] = json.dumps(rows)
    return found


def test_it_says_what_was_audited_how_and_against_whom(audit):
    said = audit.describe(epsilon=0.1, delta=0.5)
    assert said.startswith("Audited: sum of dollars; on 40 databases, 3 individuals. ")
    assert "against a person who knows the distribution of the answers, and no database." in said
    assert "The model is SmoothedBootstrap()." in said
    assert f"Drawn exactly: 2 chains of 60, with seed 1 (edp_bayes {edp.__version__})." in said
    assert "The grid of epsilon is 2 values from 0.1 to 0.5." in said
    assert "\n" not in said
    assert "  " not in said


@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_its_claim_is_that_of_the_verdict(audit, kind):
    target = {"epsilon": 0.1, "delta": 0.5, "prob": 0.9, "kind": kind}
    assert str(audit.verdict(**target)) in audit.describe(**target)
    assert str(audit.verdict()) in audit.describe()


def test_an_adversary_is_named_and_the_database_too():
    known = edp.Adversary(past=1, trend=True)
    audit = edp.audit(responses(trend=0.3), adversary=known, **OPTIONS)
    said = audit.describe()
    assert f"The risk is that of the next database, against {known.words}" in said
    assert "Contributions are known by empirical Bayes." in said
    assert "Drawn by Gibbs sampling: 2 chains of 60 after 1,000 of warm-up" in said


def test_checks_that_failed_are_said_by_what_they_do(audit, doubtful):
    said = doubtful.describe()
    withholding = said.partition("Withholding the verdict: ")[2].partition(".")[0].split(", ")
    # names hold commas, too
    assert ", ".join(withholding) == ", ".join(dict.fromkeys(doubtful.withheld_by))
    assert "Not established." in said
    assert "Withholding" not in audit.describe()


def test_it_names_no_individual(doubtful):
    assert LABELS[0] in str(doubtful.verdict())
    said = doubtful.describe()
    assert "Look at (name withheld)." in said
    for label in LABELS:
        assert label not in said
    assert "individual" in doubtful.subject[1]
    hidden = without_names(doubtful)
    assert not any(label in one.sentence for label in LABELS for one in hidden.outcomes)
    assert LABELS[0] in doubtful.withheld  # the result itself is as it was


@pytest.mark.full
def test_a_result_under_pseudonyms_and_a_loaded_one_say_the_same(audit, tmp_path):
    said = audit.describe()
    assert edp.load(audit.save(tmp_path / "audit.nc")).describe() == said
    assert audit.with_pseudonyms(key="a key of sixteen bytes").describe() == said


def test_words_for_what_is_released_stand_in_it(audit):
    words = {"title": "Revenue", "unit": "dollars", "publisher": "City", "period": "1997"}
    said = audit.with_release(audience="anybody", **words).describe()
    assert said.startswith(
        "Audited: Revenue (sum of dollars), in dollars, released by City, released to anybody, "
        "1997; on 40 databases"
    )


def test_a_scale_is_said():
    audit = edp.audit(responses(), transform="log", model=edp.SmoothedBootstrap(), **OPTIONS)
    assert "What is modelled is the log of the answer." in audit.describe()


@pytest.mark.full
def test_releases_together_say_their_hypotheses(audit):
    year = audit.compose(databases=4, progressbar=False)
    said = year.describe()
    assert said.startswith("Audited: sum of dollars in 4 fresh databases; on 40 databases")
    assert year.hypotheses in said
    assert str(year.verdict()) in said


def test_other_kinds_of_audit_say_what_they_compare():
    one = edp.audit_property(103, 1000, epsilon=0.1, random_seed=1, progressbar=False)
    said = one.describe()
    assert said.startswith("Audited: the share with 'property'; on 1 database, 1,000 individuals.")
    assert "none of the entries" in said
    assert "The grid of epsilon is 0.1." in said
    rng = np.random.default_rng(1)
    answers = [rng.random(500) < share for share in (0.75, 0.25)]
    mechanism = edp.audit_mechanism(*answers, epsilon=[0.5], random_seed=1, progressbar=False)
    said = mechanism.describe(epsilon=0.5)
    assert said.startswith("Audited: a mechanism of discrete outcomes; on samples of at least 500.")
    assert "neighbour, by substitution; the unit of privacy is one record." in said
    assert str(mechanism.verdict(epsilon=0.5)) in said
    model = edp.noise.FixedBandwidth(0.6)
    checked = edp.noise.verify(responses(), edp.LaplaceNoise(1.0), epsilon=[0.1], model=model)
    assert "with noise of expected size 1; on 40 databases" in checked.describe()


def test_one_individual_is_counted_in_the_singular(audit):
    tree = audit.tree.copy()
    tree.attrs = {
        **tree.attrs,
        "settings": json.dumps({**audit.settings, "individuals": 1, "databases": 1}),
    }
    assert edp.Audit(tree).subject[1] == "1 database, 1 individual"
