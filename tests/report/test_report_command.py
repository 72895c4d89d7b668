"""The report from the command line."""

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    rng = np.random.default_rng(3)
    n, people = 30, ["Anna Meier", "Bob Odenkirk", "Cleo Chan"]
    frame = pd.DataFrame(
        {
            "year": np.repeat(1990 + np.arange(n), len(people)),
            "customer": np.tile(people, n),
            "kwh": rng.gamma(2.0, 1.0, n * len(people)),
        }
    )
    path = tmp_path_factory.mktemp("table") / "meters.csv"
    frame.to_csv(path, index=False)
    options = "--database year --individual customer --query sum:kwh --model bootstrap --seed 7"
    return [
        "audit",
        str(path),
        "--verbose",
        *options.split(),
        "--epsilon",
        "0.1,0.5,1",
        "--draws",
        "50",
    ]


@pytest.mark.full
def test_a_report_is_written_where_it_is_asked_for(arguments, tmp_path, capsys):
    report = tmp_path / "to hand on" / "report.html"
    out = tmp_path / "run"
    assert main([*arguments, "--out", str(out), "--report", str(report)]) == 0
    assert "tohandon" in "".join(capsys.readouterr().out.split())
    written = report.read_text(encoding="utf-8")
    assert "95% simultaneous band" in written
    assert "Anna" not in written
    audit = edp.load(out / "audit.nc")
    again = audit.report(tmp_path / "again.html", prob=0.95)
    assert again.read_text(encoding="utf-8") == written
    named = audit.report(tmp_path / "named.html", names=True)
    assert "Anna Meier" in named.read_text(encoding="utf-8")


@pytest.mark.full
def test_names_are_shown_on_demand(arguments, tmp_path):
    report = tmp_path / "report.html"
    more = ["--report", str(report), "--report-names"]
    assert main([*arguments, "--out", str(tmp_path), "--quiet", *more]) == 0
    assert "Anna Meier" in report.read_text(encoding="utf-8")


def test_a_folder_is_no_report_and_that_is_said_before_any_work(arguments, tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*arguments, "--out", str(out), "--report", str(tmp_path)]) == 2
    assert "--report must name a file" in capsys.readouterr().err
    assert not out.exists()
