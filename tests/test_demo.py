import subprocess
import sys

import pytest

import edp_bayes as edp


@pytest.mark.slow
def test_the_demo_audits_a_shop_against_whoever_has_seen_its_past(tmp_path):
    code = "import sys; from edp_bayes.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = " ".join(done.stdout.split())
    assert "--past 3 --trend --season 13 --changing-scale" in printed
    assert "65 databases, 10,010 individuals" in printed
    assert "DirichletProcessMixture" in printed
    against = "a person who has seen all earlier releases and the calendar"
    assert f"Against {against}: at epsilon = " in printed
    assert "Not established" not in printed
    assert "PSIS-LOO log predictive density" in printed
    assert len(list(tmp_path.iterdir())) == 7
    audit = edp.load_audit(tmp_path / "audit.nc")
    assert (audit.against, audit.withheld) == (against, None)
    failed = audit.checks.index[audit.checks["passed"].eq(False)]
    assert set(failed) <= {"out-of-sample log density"}
    # Both curves have something to show: far from 0 at the first epsilon, close to it at the last.
    for curve in (audit.delta, audit.total_risk):
        first, last = curve.median(("chain", "draw")).isel(epsilon=[0, -1]).to_numpy()
        assert 1e-3 < last + first < 1.0
        assert last < 0.05 * first
