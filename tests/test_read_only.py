"""An installation that nobody can write to, for a user whose home cannot be written either."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edp_bayes as edp

# Code compiled anew, a sampler of PyMC, and what is there of temporary folders.
WORK = """
import glob, os, sys, tempfile, warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import edp_bayes as edp
    from edp_bayes.utils import compiled
warnings.simplefilter("ignore")
assert edp.__file__.startswith(sys.argv[1]), edp.__file__
print([str(w.message) for w in said if w.category is edp.EdpBayesWarning])
print(float(compiled.decay(0.0)[0]))
print(oct(os.stat(os.environ["NUMBA_CACHE_DIR"]).st_mode & 0o777))
"""
SAMPLE = """
import numpy as np
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
import pymc as pm
with pm.Model() as model:
    pm.Normal("x")
settings = SamplerSettings(draws=10, tune=10, chains=1, progressbar=False, sampler="nutpie")
print(sample_nuts(model, settings)["posterior"]["x"].shape)
"""


def without_privileges() -> list[str]:
    """Return how to start a process that file permissions hold for."""
    if os.name != "posix":
        pytest.skip("permissions of folders are those of POSIX")
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("the superuser may write anywhere, and setpriv is not there")
    return ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]


def run(code, tmp_path):
    """Run code on a copy of the package, and return what it prints."""
    site, temporary = tmp_path / "site", tmp_path / "temporary"
    temporary.mkdir()
    own = Path(edp.__file__).parent
    shutil.copytree(own, site / own.name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder, _, _ in os.walk(site):
        Path(folder).chmod(0o555)
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {
        "HOME": str(site / "nobody"),
        "XDG_CACHE_HOME": str(site / "nobody"),
        "MPLCONFIGDIR": str(temporary),
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(temporary),
    }
    try:
        done = subprocess.run(
            [*without_privileges(), sys.executable, "-c", code, str(site)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=site,
            timeout=300,
        )
    finally:
        for folder, _, _ in os.walk(site):
            Path(folder).chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert not list(temporary.glob("edp_bayes_*"))
    return done.stdout.splitlines()


@pytest.mark.full
def test_code_is_kept_in_a_private_temporary_folder_and_that_is_said(tmp_path):
    said, value, mode = run(WORK, tmp_path)
    assert said.count("NUMBA_CACHE_DIR names a folder") == 1
    assert (value, mode) == ("1.0", "0o700")


@pytest.mark.full
def test_pymc_samples_without_a_home(tmp_path):
    assert run(SAMPLE, tmp_path) == ["(1, 10)"]
