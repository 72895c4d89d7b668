"""Every public name says what it takes, returns and is used for, and the examples run."""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "edp_bayes"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def with_examples():
    """Return the modules that hold an example, by a look at their text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>>" in path.read_text():
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__")


def public_entries():
    """Return every function and class of the API reference, once, by its qualified name."""
    sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
    try:
        api_pages = importlib.import_module("api_pages")
    finally:
        sys.path.pop(0)
    found = {}
    for module in api_pages.available():
        for name in api_pages.public_names(module):
            value = getattr(importlib.import_module(module), name.rpartition(".")[2])
            found.setdefault(id(value), (name, value))
    return dict(sorted(found.values()))


ENTRIES = public_entries()


def parameters(value):
    """Return the names of what a caller may give."""
    if inspect.isclass(value) and (issubclass(value, Exception) or inspect.isabstract(value)):
        return []
    if getattr(value, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(value).parameters if not name.startswith("_")]


def section(text, title):
    """Return a section of a numpydoc docstring, or nothing."""
    lines = text.splitlines()
    for k in range(len(lines) - 1):
        if lines[k] == title and set(lines[k + 1]) == {"-"}:
            end = next(
                (j for j in range(k + 3, len(lines)) if set(lines[j]) == {"-"}), len(lines) + 1
            )
            return "\n".join(lines[k + 2 : end - 1])
    return ""


def described_by(value):
    """Return what a docstring says of parameters, with that of bases or of another it names."""
    texts = [inspect.getdoc(base) or "" for base in getattr(value, "__mro__", (value,))]
    other = re.search(r"Arguments, results and errors are those of\s+`(\w+)`", texts[0])
    if other:
        texts.append(inspect.getdoc(getattr(inspect.getmodule(value), other[1])) or "")
    return "".join(section(t, "Parameters") + section(t, "Attributes") for t in texts)


# Their examples take seconds each.
SLOW = {
    "edp_bayes.auditing.planning",
    "edp_bayes.plots.statistical_privacy",
    "edp_bayes.releases.composition",
    "edp_bayes.releases.how_many",
    "edp_bayes.results.mechanism",
    "edp_bayes.results.query",
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_public_name_describes_itself(name):
    value = ENTRIES[name]
    text = inspect.getdoc(value) or ""
    assert ">>>" in section(text, "Examples"), "no example"
    described = described_by(value)
    missing = [parameter for parameter in parameters(value) if parameter not in described]
    assert not missing, f"not described: {', '.join(missing)}"
    if inspect.isclass(value) and hasattr(value, "__post_init__"):
        assert "Raises" in text, "does not say what it refuses"
    if inspect.isfunction(value) and inspect.signature(value).return_annotation != "None":
        by_reference = "Arguments, results and errors are those of" in text
        assert section(text, "Returns") or by_reference, "does not say what it returns"


@pytest.mark.parametrize(
    "module", [pytest.param(m, marks=[pytest.mark.full] * (m in SLOW)) for m in with_examples()]
)
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
def test_examples_run(module):
    outcome = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert outcome.attempted > 0
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} examples failed"
