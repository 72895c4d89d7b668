"""What a failed check does: one table in the code, the same one in the documents."""

import json
import re
from io import StringIO
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.diagnostics.checks import holm
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.report.describing import describe
from edp_bayes.results.effects import (
    ADVISES,
    EFFECTS,
    FAMILIES,
    LEVEL,
    WITHHOLDS,
    effect_of,
    withheld,
)
from edp_bayes.results.recording import recorded

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "checks.md"
PACKAGE = Path(__file__).parents[1] / "edp_bayes"


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.1, (40, 3))
    y = np.linspace(0.0, 8.0, 40) + rng.normal(size=40) + contribution.sum(axis=1)
    data = edp.Responses.from_arrays(y, contribution=contribution, individual=["ann", "bob", "cy"])
    with pytest.warns(edp.exceptions.EdpBayesWarning):
        return edp.audit(
            data, epsilon=[0.1, 0.5], draws=30, tune=30, random_seed=1, progressbar=False
        )


def test_the_documents_hold_the_same_table():
    rows = re.findall(r"^\| (.+?) \| (withholds|advises) \| (.+?) \|$", PAGE.read_text(), re.M)
    assert rows == [(name, one.effect, one.reason) for name, one in EFFECTS.items()]


@pytest.mark.full
def test_families_are_those_that_are_corrected_together(audit):
    rng = np.random.default_rng(2)
    contribution = rng.gamma(2.0, 0.1, (40, 4)) * (rng.random((40, 4)) < 0.6)
    contribution[:, 3] = 0.4 * (np.arange(40) == 17)  # who came once
    y = np.linspace(0.0, 8.0, 40) + rng.normal(size=40) + contribution.sum(axis=1)
    known = edp.audit(
        edp.Responses.from_arrays(y, contribution=contribution),
        epsilon=[0.1, 5.0],
        adversary=edp.Adversary(trend=True),
        draws=100,
        tune=100,
        random_seed=1,
        progressbar=False,
    )
    met = set()
    for checks in (audit.checks, known.checks):
        tests = checks[checks["p_value"].notna() & checks["effect"].eq(WITHHOLDS)]
        assert set(tests.index) <= set(chain.from_iterable(FAMILIES))
        for family in FAMILIES:
            own = tests[tests.index.isin(family)]
            # a result keeps ten decimals
            adjusted = pytest.approx(holm(own["p_value"].to_list()), abs=1e-9)
            assert own["p_adjusted"].to_list() == adjusted
            assert (own["passed"].astype(bool) == (own["p_adjusted"] >= LEVEL)).all()
            met |= {family} if len(own) else set()
    assert met == set(FAMILIES)


def test_every_check_has_an_entry_and_says_its_effect(audit):
    assert set(audit.checks.index) <= set(EFFECTS)
    assert audit.checks["effect"].to_dict() == {n: effect_of(n) for n in audit.checks.index}
    assert {one.effect for one in audit.outcomes} == {WITHHOLDS, ADVISES}


def test_a_check_without_an_entry_is_an_error(audit):
    posterior = {"posterior": audit.tree["posterior"].to_dataset()}
    row = {"check": "moon", "passed": True, "sentence": "Full."}
    with pytest.raises(InvalidInputError, match="'moon' does not say whether it withholds"):
        recorded(posterior, settings={}, checks=[row], warnings=[])


def test_names_in_the_code_are_entered():
    """Literals by which checks are made, beside the names the audits of the tests show."""
    made = r'(?:threshold|PendingTest|Check)\(\s*"([^"]+)"|"check": "([^"]+)"'
    found = set()
    for path in PACKAGE.rglob("*.py"):
        code = re.sub(r">>> .*", "", path.read_text())
        found |= {a or b for a, b in re.findall(made, code)}
    assert len(found) > 8
    assert found <= set(EFFECTS)


def test_the_first_reason_comes_first_and_others_are_counted(audit):
    failed = audit.checks.index[audit.checks["passed"].eq(False)]
    holding = [name for name in EFFECTS if name in failed and effect_of(name) == WITHHOLDS]
    assert len(holding) >= 3
    others = holding[1:]
    assert audit.withheld == (
        f"Not established. {audit.checks.loc[holding[0], 'sentence']} {len(others)} more checks "
        f"withhold the verdict: {', '.join(others)}."
    )
    said = [("trend", "Up."), ("presence", "Ann follows the rest."), ("individuals", "Bob.")]
    assert withheld(said).startswith("Not established. Bob. 2 more checks withhold the verdict: ")


@pytest.mark.parametrize("name", EFFECTS)
def test_each_failure_does_what_the_table_says(name):
    assert (withheld([(name, "Bad.")]) is not None) == (EFFECTS[name].effect == WITHHOLDS)
    assert EFFECTS[name].effect in (WITHHOLDS, ADVISES)


@pytest.mark.full
def test_report_and_saved_files_say_the_same(audit, tmp_path):
    content = describe(audit, names=True)
    assert content.withheld == audit.withheld
    assert all(row.effect == effect_of(row.name) for row in content.checks)
    audit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for row in content.checks:
        assert f"<strong>{row.name}</strong> ({row.effect}): " in page
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert again.withheld == audit.withheld
    # As older versions saved them: without the effect, which the table alone says.
    assert all("effect" not in row for row in json.loads(again.tree.attrs["checks"]))


@pytest.mark.full
def test_every_result_has_it(audit):
    year = audit.compose(databases=2, progressbar=False)
    assert year.withheld == audit.withheld


def test_the_command_line_says_what_each_check_does(audit):
    from rich.console import Console

    from edp_bayes.cli.report import diagnostics

    console = Console(width=400, file=StringIO())
    console.print(diagnostics(audit))
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    for one in audit.outcomes:
        if one.passed is False:
            assert any(
                line.startswith(f"{one.effect.upper()} ") and str(one.sentence) in line
                for line in lines
            )
        else:
            (line,) = [
                line
                for line in lines
                if re.search(rf"(^passed +|; ){re.escape(one.check)}(;| \()", line)
            ]
            assert f"({one.effect})" in line or f"(would {one.effect[:-1]})" in line
    order = [line.split(" ")[0] for line in lines if line.startswith(("WITHHOLDS", "ADVISES"))]
    assert order == sorted(order, reverse=True)
