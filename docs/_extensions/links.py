"""Links to public names however they are written."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import api_pages

if TYPE_CHECKING:
    from docutils.nodes import Element, TextElement
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


@cache
def documented() -> dict[int, str]:
    """Return under which name each public function or class stands in the reference, by its id."""
    found: dict[int, str] = {}
    # In the order of the pages: the package comes last.
    for module in [*list(api_pages.available())[1:], "edp_bayes"]:
        for name in api_pages.public_names(module):
            found.setdefault(id(value_of(name)), name)
    return found


@cache
def value_of(name: str) -> Any:
    """Return what a dotted name of this package stands for; None if it stands for nothing."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            value = getattr(value, part, None)
        return value
    return None


def described_at(name: str, module: str, owner: str | None = None) -> str | None:
    """Return where the reference describes what a docstring calls by a name.

    Parameters
    ----------
    name : str
        As it is written: alone for a member of the same class or a name of the same module, with a
        class or module in front, or in full.
    module : str
        The public module whose page holds the docstring.
    owner : str, optional
        The class whose docstring it is, or that of one of its methods.

    Returns
    -------
    str or None
        The name in full as the reference lists it, None if it describes no such name.

    Examples
    --------
    >>> described_at("audit_property", "edp_bayes.noise")
    'edp_bayes.property_audit.audit_property'
    >>> described_at("upper", "edp_bayes.noise", "Verification")
    'edp_bayes.noise.Verification.upper'
    """
    wider = [f"{module}.{owner}.{name}"] if owner else []
    for candidate in [*wider, f"{module}.{name}", f"edp_bayes.{name}", name]:
        if not candidate.startswith("edp_bayes."):
            continue
        found = documented().get(id(value_of(candidate)))
        if found:
            return found
        parent, _, member = candidate.rpartition(".")
        within = documented().get(id(value_of(parent)))
        is_member = hasattr(value_of(parent), member) and not member.startswith("_")
        if within and inspect.isclass(value_of(parent)) and is_member:
            return f"{within}.{member}"
    return None


def resolve(app: Sphinx, env: BuildEnvironment, node: Element, text: TextElement) -> Element | None:
    """Link a name that Sphinx does not find as it is written."""
    from sphinx.util.nodes import make_refnode

    if node.get("refdomain") != "py":
        return None
    module = node.get("py:module") or "edp_bayes"
    found = described_at(node["reftarget"], module, node.get("py:class"))
    entry = env.domains["py"].objects.get(found)
    if entry is None:
        return None
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, text, found)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look where Sphinx found nothing."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
