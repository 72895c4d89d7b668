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


def test_more_than_five_are_refused(table, tmp_path, capsys):
    six = [part for _ in range(6) for part in ("--query", "sum:kwh")]
    said = refused(capsys, *asked(table, tmp_path / "out", *six, "--no-past", "--quiet"))
    assert "at most 5 queries" in said
