"""The demo that the README names, as `.ci/run` made it or made here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edp_bayes as edp

# It takes a minute, unless it was made before.
pytestmark = [] if "EDP_BAYES_DEMO" in os.environ else [pytest.mark.full]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return the folder of the demo, and what was printed."""
    if made := os.environ.get("EDP_BAYES_DEMO"):
        said = Path(f"{made}.err").read_text(encoding="utf-8")  # uv speaks there, too
        assert "Warning" not in said
        assert "Error" not in said
        return Path(made), Path(f"{made}.txt").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("demo")
    code = "import sys; from edp_bayes.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_the_demo_audits_a_shop_against_whoever_has_seen_its_past(demo):
    folder, said = demo
    printed = " ".join(said.split())
    assert "--past 3 --trend --season 13 --changing-scale" in printed
    against = (
        "a person who has seen the last 3 releases and knows the trend, a season of 13 databases, "
        "how the spread changes and when each individual was last there"
    )
    # the verdict stands in the first line, and one table follows
    start = (
        f"Undecided: against {against}, at epsilon = 0.1 the largest risk of any of 9,503 of "
        "10,010 individuals"
    )
    assert printed.startswith(start)
    assert "epsilon = 0.1 and delta = 1.0e-4, one over 10,010 individuals" in printed
    assert "out of reach of 65 databases" in printed
    assert "more databases may well show that it is not met" in printed
    assert "Not established" not in printed
    assert said.count("┏") == 1
    assert len(list(folder.iterdir())) == 7
    audit = edp.load(folder / "audit.nc")
    assert (audit.against, audit.withheld) == (against, None)
    assert audit.verdict().claim in printed
    assert audit.settings["model"].startswith("DirichletProcessMixture")
    assert "PSIS-LOO log predictive density" in " ".join(audit.checks["sentence"])
    failed = audit.checks.index[audit.checks["passed"].eq(False)]
    assert set(failed) <= {"out-of-sample log density"}
    # Both curves have something to show: far from 0 at the first epsilon, close to it at the last.
    for curve in (audit.delta, audit.total_risk):
        first, last = curve.median(("chain", "draw")).isel(epsilon=[0, -1]).to_numpy()
        assert 1e-3 < last + first < 1.0
        assert last < 0.05 * first
