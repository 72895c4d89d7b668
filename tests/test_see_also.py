"""Every entry of the reference leads on to related names, all of which the reference describes."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

from tests.test_docstrings import ENTRIES, section

ROOT = Path(__file__).parents[1]
FEWEST, MOST = 1, 4
RESULTS = [
    "edp_bayes.Audit",
    "edp_bayes.ComposedAudit",
    "edp_bayes.JointAudit",
    "edp_bayes.MechanismAudit",
    "edp_bayes.PropertyAudit",
    "edp_bayes.noise.Verification",
]


def extension(name):
    """Import an extension of the documentation."""
    sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


links = extension("links")
DESCRIBED = {links.documented()[id(value)]: value for value in ENTRIES.values()}


def related(text):
    """Return the names of a section with what is said of each."""
    found = []
    for line in section(text, "See Also").splitlines():
        if not line.strip():
            continue
        if line.startswith(" "):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
            continue
        name, _, said = line.partition(" : ")
        found.append((name, said))
    return found


def members():
    """Return the methods of classes that have such a section, and of results those with more."""
    for name, value in DESCRIBED.items():
        for member in dir(value) if inspect.isclass(value) else []:
            found = inspect.getattr_static(value, member)
            found = getattr(found, "__func__", found)
            if member.startswith("_") or not inspect.isfunction(found):
                continue
            if section(inspect.getdoc(found) or "", "See Also"):
                yield f"{name}.{member}"


MEMBERS = list(members())


def check(text, module, owner, own):
    names = related(text)
    assert FEWEST <= len(names) <= MOST, names
    targets = [links.described_at(name, module, owner) for name, _ in names]
    for (name, said), target in zip(names, targets, strict=True):
        assert target, f"the reference describes no {name}"
        assert re.fullmatch(r"\S.*[^.\s]", said), f"nothing is said of {name}"
    assert own not in targets, "it leads back to itself"
    assert len(set(targets)) == len(targets), "one name stands twice"


@pytest.mark.parametrize("name", DESCRIBED)
def test_an_entry_names_what_is_related(name):
    module, _, short = name.rpartition(".")
    value = DESCRIBED[name]
    owner = short if inspect.isclass(value) else None
    check(inspect.getdoc(value) or "", module, owner, name)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_method_names_what_is_related(name):
    cls, _, member = name.rpartition(".")
    module, _, owner = cls.rpartition(".")
    text = inspect.getdoc(getattr(DESCRIBED[cls], member))
    check(text, module, owner, name)
    for other, _ in related(text):
        # Sphinx looks into the module before it looks into the class.
        both = hasattr(DESCRIBED[cls], other) and links.value_of(f"{module}.{other}")
        assert not both, f"{other} may be the module's, too: write the class in front"


@pytest.mark.parametrize("cls", RESULTS)
def test_methods_of_results_lead_on(cls):
    """A method with a section on parameters has one, or its first line names the other function."""
    found = {name.rpartition(".")[2] for name in MEMBERS if name.rpartition(".")[0] == cls}
    for member, method in inspect.getmembers(DESCRIBED[cls], inspect.isfunction):
        text = inspect.getdoc(method) or ""
        if not member.startswith("_") and section(text, "Parameters"):
            assert member in found, member


def test_a_name_is_found_however_it_is_written():
    in_full = "edp_bayes.property_audit.audit_property"
    for name in ("audit_property", "edp_bayes.audit_property", in_full):
        assert links.described_at(name, "edp_bayes.noise") == in_full
    # A name of the same module comes before one of the package.
    assert links.described_at("posterior", "edp_bayes.interval") == "edp_bayes.interval.posterior"
    assert links.described_at("posterior", "edp_bayes.noise") is None
    assert links.described_at("os", "edp_bayes") is None
    assert links.described_at("Audit._repr_html_", "edp_bayes") is None


def test_examples_are_found_by_every_name():
    used_in = extension("used_in")
    names = used_in.used_as(DESCRIBED["edp_bayes.property_audit.audit_property"])
    assert {"edp_bayes.audit_property", "edp_bayes.property_audit.audit_property"} <= set(names)
    assert "edp_bayes.Responses.from_arrays" in used_in.used_as(DESCRIBED["edp_bayes.Responses"])
    names = used_in.used_as(DESCRIBED["edp_bayes.plots.plot_individuals"])
    assert "edp_bayes.Audit.plot_individuals" in names


def test_types_lead_to_classes_of_ours():
    words = links.words()
    for name, value in DESCRIBED.items():
        if inspect.isclass(value):
            assert words[name.rpartition(".")[2]] == name
