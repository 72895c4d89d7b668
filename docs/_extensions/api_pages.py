"""The API reference: a page for each public module, from the module's own list of public names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

MODULES = {
    "edp_bayes": "Audits and their parts",
    "edp_bayes.queries": "Queries",
    "edp_bayes.models": "Density models",
    "edp_bayes.auditing.planning": "Planning",
    "edp_bayes.diagnostics": "Diagnostics",
    "edp_bayes.plots": "Plots",
    "edp_bayes.noise": "Noise",
    "edp_bayes.results.bands": "Bands",
    "edp_bayes.plugin": "Published point estimates",
    "edp_bayes.interval": "Epsilon by interval estimation",
    "edp_bayes.black_box.membership": "Epsilon from membership counts",
    "edp_bayes.statistical_privacy": "Property queries",
    "edp_bayes.plots.breutigam_reischuk": "Figures of Breutigam and Reischuk",
    "edp_bayes.plots.statistical_privacy": "Figures of statistical privacy",
    "edp_bayes.plots.style": "The style of the figures",
    "edp_bayes.property_audit": "Audits of property queries",
    "edp_bayes.black_box.auditing": "Black-box mechanisms",
    "edp_bayes.plugin.local_privacy": "Local privacy",
    "edp_bayes.mechanisms": "Reference mechanisms",
    "edp_bayes.report": "Reports",
    "edp_bayes.data": "Data",
}

INDEX = """\
API reference
=============

Everything is imported when it is first used. Every name below is public; what it means does not
change under its name. To find a name by what you want to do, see
:doc:`What do you want to do? </tasks>`

.. toctree::
   :maxdepth: 1

{entries}
"""

PAGE = """\
{title}
{rule}

.. automodule:: {module}
   :no-members:

.. autosummary::
   :toctree: objects
   :nosignatures:

{entries}
"""


def public_names(module_name: str) -> list[str]:
    """Return the qualified names of the functions and classes of a module's ``__all__``."""
    module = import_module(module_name)
    found = [(name, getattr(module, name)) for name in module.__all__]
    return [
        f"{module_name}.{name}"
        for name, value in found
        if inspect.isclass(value) or inspect.isroutine(value)
    ]


def available() -> dict[str, str]:
    """Return the public modules that this version of the package has, with their titles."""
    root = Path(import_module("edp_bayes").__file__ or "").parent
    paths = {name: root.joinpath(*name.split(".")[1:]) for name in MODULES}
    return {
        name: MODULES[name]
        for name, path in paths.items()
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
    }


def write_pages(app: Sphinx, config: Config) -> None:
    """Write the sources of the reference before Sphinx looks for sources."""
    folder = Path(app.srcdir) / "generated" / "api"
    modules = available()
    pages = {"index": INDEX.format(entries=_listed(modules))}
    listed: set[int] = set()
    documented: list[str] = []
    # The package itself comes last, so that what it takes from elsewhere is described there.
    for module in [*list(modules)[1:], "edp_bayes"]:
        names = public_names(module)
        here = [name for name in names if id(_object(name)) not in listed]
        listed |= {id(_object(name)) for name in here}
        documented += here
        pages[module] = PAGE.format(
            title=modules[module],
            rule="=" * len(modules[module]),
            module=module,
            entries=_listed(name.rpartition(".")[2] for name in here),
        )
    config.autosummary_filename_map = _apart([name for m in modules for name in public_names(m)])
    # A page of a name that is gone would stand in no table of contents.
    wanted = {config.autosummary_filename_map.get(name, name) for name in documented}
    for stub in (folder / "objects").glob("*.rst"):
        if stub.stem not in wanted:
            stub.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        # An unchanged file keeps its date, and Sphinx its work.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _apart(names: list[str]) -> dict[str, str]:
    """Rename pages of classes whose names differ from a function's by a capital alone."""
    functions = {name for name in names if not inspect.isclass(_object(name))}
    return {
        name: f"{name}-class"
        for name in names
        if name not in functions and name.lower() in {other.lower() for other in functions}
    }


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"   {name}" for name in names)


def _object(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages as soon as the configuration is known."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
