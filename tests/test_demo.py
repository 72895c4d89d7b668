import subprocess
import sys

import pytest

import edp_bayes as edp


@pytest.mark.slow
def test_the_demo_audits_a_shop_and_says_what_is_wrong_with_its_weeks(tmp_path):
    code = "import sys; from edp_bayes.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = " ".join(done.stdout.split())
    assert "65 databases, 10,010 individuals" in printed
    assert "DirichletProcessMixture" in printed
    assert "The databases are not independent: lag-1 autocorrelation 0.59" in printed
    assert "PSIS-LOO log predictive density" in printed
    assert len(list(tmp_path.iterdir())) == 7
    audit = edp.load_audit(tmp_path / "audit.nc")
    # Both curves have something to show: far from 0 at the first epsilon, close to it at the last.
    for curve in (audit.delta, audit.total_risk):
        first, last = curve.median(("chain", "draw")).isel(epsilon=[0, -1]).to_numpy()
        assert 1e-3 < last + first < 0.5
        assert last < 0.05 * first
