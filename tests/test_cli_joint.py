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
    return ["audit", str(table), "--verbose", *keys, "--draws", "50", "--model", "bootstrap", *more]


@pytest.mark.full
def test_queries_given_one_after_the_other_are_audited_together(table, tmp_path, capsys):
    out = tmp_path / "out"
    both = ["--query", "sum:kwh", "--query", "mean:cost", "--no-past", "--seed", "1"]
    assert main(asked(table, out, *both)) == 0
    said = " ".join(capsys.readouterr().out.split())
    audit = edp.load(out / "audit.nc")
    assert isinstance(audit, edp.JointAudit)
    assert audit.settings["queries"] == ["sum:kwh", "mean:cost"]
    assert f"most: {audit.direction_of()}." in said
    assert (out / "density.png").stat().st_size > 0
    with pytest.raises(edp.InvalidInputError, match="loaded from a file"):
        audit.compose(databases=2)


def test_more_than_five_are_refused(table, tmp_path, capsys):
    six = [part for _ in range(6) for part in ("--query", "sum:kwh")]
    said = refused(capsys, *asked(table, tmp_path / "out", *six, "--no-past", "--quiet"))
    assert "at most 5 queries" in said


@pytest.mark.full
def test_threads_and_a_store_are_as_for_one_query(table, tmp_path, capsys):
    out = tmp_path / "out"
    both = ["--query", "sum:kwh", "--query", "mean:cost", "--no-past", "--seed", "1", "--resume"]
    assert main(asked(table, out, *both, "--executor", "2")) == 0
    assert isinstance(edp.load(out / "audit.nc"), edp.JointAudit)


@pytest.mark.full
def test_by_default_they_have_seen_the_past_of_all_queries(table, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(asked(table, out, "--query", "sum:kwh", "--query", "mean:cost", "--seed", "1")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--past 2 --trend are the default" in said
    assert "Against a person who has seen the last 2 releases and knows the trend and when" in said
    audit = edp.load(out / "audit.nc")
    lags = [f"lag {k} of {name}" for k in (1, 2) for name in ("sum:kwh", "mean:cost")]
    assert audit.settings["known"] == [*lags, "trend"]
    assert audit.settings["at"] == "the next database"


@pytest.mark.full
def test_the_past_is_said_by_options(table, tmp_path, capsys):
    staff = tmp_path / "staff.csv"
    staff.write_text("who\n3\n5\n")
    options = ["--past", "1", "--insiders", str(staff), "--at", "17", "--quiet", "--seed", "1"]
    both = ["--query", "sum:kwh", "--query", "mean:cost"]
    out = tmp_path / "out"
    assert main(asked(table, out, *both, *options)) == 0
    audit = edp.load(out / "audit.nc")
    assert audit.settings["known"] == [
        "lag 1 of sum:kwh",
        "lag 1 of mean:cost",
        "trend",
        "insiders' records, mean:cost",
    ]
    assert (audit.settings["at"], audit.settings["individuals"]) == ("17", 10)
