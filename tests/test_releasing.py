"""What a release consists of says the same of itself everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

import edp_bayes as edp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Packages that conda calls otherwise, and those that an extra of a dependency brings.
CONDA = {"duckdb": "python-duckdb", "lazy-loader": "lazy_loader"}
BROUGHT = {
    "arviz-plots[matplotlib]": "matplotlib-base",
    "arviz-stats[xarray]": "xarray-einstats",
    "h5netcdf[h5py]": "h5py",
}
REQUIREMENT = re.compile(r"([A-Za-z0-9_-]+)(\[[a-z0-9,]+\])?(.*)")


@pytest.fixture(scope="module")
def recipe():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((ROOT / "docs/contributing/recipe/recipe.yaml").read_text())


def for_conda(requirement):
    """Return a requirement as conda writes it, and what its extra brings."""
    name, extra, versions = REQUIREMENT.fullmatch(requirement).groups()
    found = [f"{CONDA.get(name, name)} {versions}"]
    return [*found, BROUGHT[name + extra]] if extra else found


def test_the_recipe_needs_what_the_project_needs(recipe):
    run = recipe["requirements"]["run"]
    expected = [one for needed in PROJECT["dependencies"] for one in for_conda(needed)]
    assert run[0] == "python >=${{ python_min }}"
    assert run[1:] == sorted(run[1:], key=lambda one: one.split()[0])
    assert sorted(run[1:]) == sorted(expected)


def test_the_recipe_constrains_what_extras_bring(recipe):
    extras = [one for needed in PROJECT["optional-dependencies"].values() for one in needed]
    names = [REQUIREMENT.fullmatch(one).groups() for one in extras]
    expected = [f"{name} {versions}" for name, _, versions in names]
    assert recipe["requirements"]["run_constraints"] == sorted(expected)


def test_the_recipe_says_what_the_project_says(recipe):
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == PROJECT["version"]
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert [recipe["about"]["license_file"]] == PROJECT["license-files"]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert recipe["requirements"]["host"][2:] == [one for r in built for one in for_conda(r)]
    place = ROOT / "docs/contributing/recipe" / recipe["source"]["path"]
    assert place.resolve() == ROOT


def test_nutpie_is_an_extra_and_no_dependency():
    assert not any(one.startswith("nutpie") for one in PROJECT["dependencies"])
    (needed,) = PROJECT["optional-dependencies"]["nuts"]
    assert needed.startswith("nutpie")


def test_one_version_stands_everywhere():
    version = PROJECT["version"]
    assert edp.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "docs/changelog.md").read_text()
    assert re.search(r"^## (\S+), \d+ [A-Z][a-z]+ \d{4}$", changes, re.M).group(1) == version
