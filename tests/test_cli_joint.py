"""Several queries on the command line."""

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from tests.command_line import refused


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    rows = 40 * 12
    frame = pd.DataFrame(
        {
            "week": np.repeat(np.arange(40), 12),
            "who": np.tile(np.arange(12), 40),
            "kwh": rng.gamma(2.0, 1.0, rows),
            "cost": rng.gamma(2.0, 1.0, rows),
        }
    )
    path = tmp_path / "meters.csv"
    frame.to_csv(path, index=False)
    return path


def asked(table, out, *more):
    keys = ["--database", "week", "--individual", "who", "--epsilon", "0.1,0.5", "--out", str(out)]
    return ["audit", str(table), *keys, "--draws", "50", "--model", "bootstrap", *more]


def test_queries_given_one_after_the_other_are_audited_together(table, tmp_path, capsys):
    out = tmp_path / "out"
    both = ["--query", "sum:kwh", "--query", "mean:cost", "--no-past", "--seed", "1"]
    assert main(asked(table, out, *both)) == 0
    said = " ".join(capsys.readouterr().out.split())
    audit = edp.load_audit(out / "audit.nc")
    assert isinstance(audit, edp.JointAudit)
    assert audit.settings["queries"] == ["sum:kwh", "mean:cost"]
    assert f"most: {audit.direction_of()}." in said
    assert (out / "density.png").stat().st_size > 0
    with pytest.raises(edp.InvalidInputError, match="several queries together are not composed"):
        audit.compose(databases=2)


def test_more_than_five_are_refused(table, tmp_path, capsys):
    six = [part for _ in range(6) for part in ("--query", "sum:kwh")]
    said = refused(capsys, *asked(table, tmp_path / "out", *six, "--no-past", "--quiet"))
    assert "at most 5 queries" in said


@pytest.mark.parametrize("option", [["--databases", "3"], ["--executor", "2"], ["--resume"]])
def test_what_is_for_one_query_is_refused_at_once(table, tmp_path, capsys, option):
    both = ["--query", "sum:kwh", "--query", "mean:cost", "--no-past", "--quiet", *option]
    said = refused(capsys, *asked(table, tmp_path / "out", *both))
    assert f"{option[0]} is for one query, found 2" in said
    assert not (tmp_path / "out").exists()


def test_a_joint_audit_is_against_nobody_with_a_past(table, tmp_path, capsys):
    both = ["--query", "sum:kwh", "--query", "mean:cost", "--quiet"]
    said = refused(capsys, *asked(table, tmp_path / "out", *both))
    assert "--no-past" in said
