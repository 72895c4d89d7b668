"""Links to public names however they are written, and from the types of parameters and results."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import api_pages

if TYPE_CHECKING:
    from docutils.nodes import Element, TextElement
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

NUMPY = "https://numpy.org/doc/stable/"
XARRAY = "https://docs.xarray.dev/en/stable/generated/"
# A link needs no inventory of the other project, so that the build needs no network.
ELSEWHERE = {
    "arviz_plots.PlotCollection": (
        "https://python.arviz.org/projects/plots/en/stable/api/generated/"
        "arviz_plots.PlotCollection.html"
    ),
    "matplotlib.axes.Axes": ("https://matplotlib.org/stable/api/_as_gen/matplotlib.axes.Axes.html"),
    "numpy.array_like": f"{NUMPY}glossary.html#term-array_like",
    "numpy.ndarray": f"{NUMPY}reference/generated/numpy.ndarray.html",
    "numpy.random.Generator": f"{NUMPY}reference/random/generator.html",
    "numpy.random.SeedSequence": (
        f"{NUMPY}reference/random/bit_generators/generated/numpy.random.SeedSequence.html"
    ),
    "pandas.DataFrame": ("https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.html"),
    "pathlib.Path": "https://docs.python.org/3/library/pathlib.html#pathlib.Path",
    "xarray.DataArray": f"{XARRAY}xarray.DataArray.html",
    "xarray.DataTree": f"{XARRAY}xarray.DataTree.html",
    "xarray.Dataset": f"{XARRAY}xarray.Dataset.html",
}
# numpydoc links these words by means that need an inventory.
PLAIN = {
    "True", "False", "None", "bool", "boolean", "int", "float", "str", "string", "scalar", "array",
    "list", "tuple", "dict", "sequence", "iterable", "generator", "namedtuple", "contextmanager",
    "callable",
}  # fmt: skip


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
    # In the order in which Sphinx looks.
    of_class = [f"{module}.{owner}.{name}"] if owner else []
    for candidate in [f"{module}.{name}", *of_class, f"edp_bayes.{name}", name]:
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


def words() -> dict[str, str]:
    """Return what words of a type lead to: classes of ours, and a few of other projects."""
    ours = {
        name.rpartition(".")[2]: name
        for name in documented().values()
        if inspect.isclass(value_of(name))
    }
    others = {name.rpartition(".")[2]: name for name in ELSEWHERE}
    in_full = {name: f":obj:`{name}`" for name in ELSEWHERE}
    return (
        {word: word for word in PLAIN}
        | {"array-like": "numpy.array_like"}
        | others
        | in_full
        | ours
    )


def set_words(app: Sphinx, config: Config) -> None:
    """Let numpydoc link these words and no other."""
    config.numpydoc_xref_param_type = True
    config.numpydoc_xref_ignore = "all"
    config.numpydoc_xref_aliases = words()


def resolve(app: Sphinx, env: BuildEnvironment, node: Element, text: TextElement) -> Element | None:
    """Link a name that Sphinx does not find as it is written."""
    from docutils.nodes import reference
    from sphinx.util.nodes import make_refnode

    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if target in ELSEWHERE:
        return reference("", "", text, internal=False, refuri=ELSEWHERE[target])
    found = described_at(target, node.get("py:module") or "edp_bayes", node.get("py:class"))
    entry = env.domains["py"].objects.get(found)
    if entry is None:
        return None
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, text, found)


def setup(app: Sphinx) -> dict[str, bool]:
    """Set the words before numpydoc reads them."""
    app.connect("config-inited", set_words, priority=400)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
