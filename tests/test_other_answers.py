"""What other answers of the same data would leave, where a target is not met."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import edp_bayes as edp
from edp_bayes.auditing import other_answers
from edp_bayes.auditing.query import audit_for_verdict
from edp_bayes.responses.changed import limited, together
from edp_bayes.utils.defaults import CELL_CHAINS, CELL_DRAWS, CELL_KEEP, CELL_TUNE

EPSILON = [0.1, 0.3]
QUICK = {"draws": 50, "chains": 2, "tune": 100, "random_seed": 1, "progressbar": False}
AGAIN = {
    "epsilon": EPSILON, "draws": CELL_DRAWS, "tune": CELL_TUNE, "chains": CELL_CHAINS,
    "keep": CELL_KEEP, "random_seed": 1, "progressbar": False, "model": edp.SmoothedBootstrap(),
}  # fmt: skip


def amounts(people=4, **options):
    rng = np.random.default_rng(8)
    given = rng.gamma(2.0, 0.15, (62, people)) * (rng.random((62, people)) < 0.5)
    return edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 62) + given.sum(axis=1), contribution=given,
        **{"additive": True, "database": np.arange(62)} | options,
    )  # fmt: skip


def audited(responses, **options):
    model = {"model": edp.SmoothedBootstrap()}
    return edp.audit(responses, epsilon=EPSILON, **QUICK | model | options)


@pytest.fixture(scope="module")
def audit():
    return audited(amounts())


@pytest.mark.full
def test_each_is_the_audit_of_that_answer(audit):
    found = audit.other_answers
    assert json.loads(found.attrs["answers"]) == ["period", "limit"]
    longer = audit_for_verdict(together(amounts(), 2), **AGAIN)
    most = float(found["size"][1])
    sizes = amounts().contribution.data
    assert most == np.quantile(sizes, 0.9, method="inverted_cdf")
    cut = audit_for_verdict(limited(amounts(), most), **AGAIN)
    assert found["databases"].values.tolist() == [31, 62]
    said = " ".join(audit.verdict(delta=1e-6).helps)
    for k, one in enumerate((longer, cut)):
        drawn = one.delta.stack(sample=("chain", "draw")).transpose("sample", "epsilon")
        assert_array_equal(found["delta"][k], drawn)
        for delta in (0.5 * one.verdict(delta=0.5).limit, 0.5):
            verdict = one.verdict(delta=delta)
            if audit.verdict(delta=delta).status == "met":
                continue
            would = "would meet" if verdict.status == "met" else "would not meet"
            assert f", which {would} the target." in audit.verdict(delta=delta).helps[1 + k + 1]
    assert "With 2 databases in one, 31 in all, the limit would be" in said
    assert f"If nobody counted for more than {most:.4g}" in said
    assert "no figure here" not in said


@pytest.mark.full
def test_it_is_saved_and_every_place_says_the_same(audit, tmp_path):
    said = audit.verdict().helps
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    assert loaded.source is None
    for delta in (0.3, 0.01, 1e-5):
        assert loaded.verdict(delta=delta).helps == audit.verdict(delta=delta).helps
    assert audit.with_pseudonyms().verdict().helps == said
    wrong = loaded.tree.copy()
    wrong["other_answers"] = (
        wrong["other_answers"].to_dataset().assign(delta=lambda one: one.delta + 1)
    )
    edp.Audit(wrong).save(tmp_path / "wrong.nc")
    with pytest.raises(edp.InvalidInputError, match="other_answers/delta must be"):
        edp.load(tmp_path / "wrong.nc")
    rounded = audit.released(rounded_to=1.0, progressbar=False)
    assert "other_answers" not in rounded.tree.children
    assert rounded.other_answers is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("responses", "kinds"),
    [
        (
            amounts(database=np.roll(np.arange(62), 5)),
            ["limit"],
        ),  # in no order of time
        (amounts(additive=False), None),
        (amounts(people=51), None),
        (amounts(noise=edp.GaussianNoise(0.5)), None),
    ],
)
def test_answers_that_there_are_not_have_no_figure(responses, kinds):
    audit = audited(responses, draws=20)
    found = audit.other_answers
    assert (None if found is None else json.loads(found.attrs["answers"])) == kinds
    said = " ".join(audit.verdict(delta=0.0).helps)
    assert ("coarser period or another query may do" in said) == (kinds is None)
    assert "no figure here" in said


@pytest.mark.full
def test_it_is_against_the_same_adversary_and_found_once(monkeypatch):
    calls = []
    audits = other_answers.AuditedAgain._audited

    def counted(again, responses, adversary, epsilon):
        calls.append(adversary)
        return audits(again, responses, adversary, epsilon)

    monkeypatch.setattr(other_answers.AuditedAgain, "_audited", counted)
    known = edp.Adversary(past=1, season=8)
    audit = audited(amounts(), adversary=known)
    audit.verdict(delta=1e-5)
    assert calls == []
    assert audit.verdict(delta=1e-5).helps
    assert audit.with_release(title="Sales").verdict(delta=1e-4).helps
    longer, same = calls
    assert (longer.past, longer.season, same) == (1, 4.0, known)


def test_a_check_that_withholds_is_said():
    rng = np.random.default_rng(3)
    given = rng.gamma(2.0, 0.5, (60, 2))
    # a drift that nobody is said to know
    drifting = np.linspace(0.0, 6.0, 60) + rng.normal(0.0, 1.0, 60)
    responses = edp.Responses.from_arrays(
        drifting + given.sum(axis=1), contribution=given, additive=True, database=np.arange(60)
    )
    audit = audited(responses, draws=20)
    withheld = json.loads(audit.other_answers.attrs["withheld"])
    assert withheld[1]
    target = edp.results.verdict.Target.of(2, epsilon=0.1, delta=0.01)
    said = dict(
        edp.results.other_answers.other_answers_sentences(
            audit.other_answers, target, 0, prob=0.95, kind="pointwise"
        )
    )
    assert said["limit"].endswith("nothing would be established: a check withholds the verdict.")
