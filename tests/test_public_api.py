"""The names others rely on, and what importing them costs."""

import inspect
import subprocess
import sys
from pathlib import Path

import edp_bayes as edp

HEAVY = ("pymc", "pytensor", "xarray", "scipy", "numba", "pandas", "arviz_base", "matplotlib")


def test_every_public_name_exists():
    for name in edp.__all__:
        assert getattr(edp, name) is not None
    assert set(dir(edp)) | {"__version__"} == set(edp.__all__)


def test_no_submodule_has_the_name_of_a_public_function():
    package = Path(edp.__file__).parent
    modules = {
        p.stem for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    functions = {name for name in edp.__all__ if not inspect.ismodule(getattr(edp, name))}
    assert not modules & functions


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, edp_bayes; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_numerics_import_neither_pymc_nor_arviz():
    code = (
        "import sys, edp_bayes.divergence, edp_bayes.distributions.mixtures, edp_bayes.plugin;"
        "import edp_bayes.coupling.contributions.posterior, edp_bayes.coupling.regression;"
        "import edp_bayes.mechanisms, edp_bayes.plugin.local_privacy;"
        "import edp_bayes.black_box.membership;"
        "import edp_bayes.interval;"
        "import edp_bayes.statistical_privacy.curves, edp_bayes.statistical_privacy.costs.choosing;"
        "print([m for m in ('pymc', 'pytensor', 'arviz_base', 'arviz_stats') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
