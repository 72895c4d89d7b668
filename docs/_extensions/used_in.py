"""Below each entry of the reference, the examples of the gallery that use it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import api_pages
import links

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config


def names_of(value: Any) -> Iterator[str]:
    """Return the names under which an example may use a function or class.

    The gallery lists what a script uses by the names that it writes, and instances and their
    methods by where the class is defined.
    """
    yield f"{value.__module__}.{value.__qualname__}"
    for module in api_pages.available():
        for name in api_pages.public_names(module):
            if links.value_of(name) is value:
                yield name


def used_as(value: Any) -> list[str]:
    """Return those names, of a class with its methods, of a picture with what plots it."""
    found = list(names_of(value))
    if inspect.isclass(value):
        found += [f"{name}.{member}" for name in list(found) for member in _public(value)]
    elif value.__name__.startswith("plot_"):
        classes = [
            v for v in map(links.value_of, links.documented().values()) if inspect.isclass(v)
        ]
        plotting = [c for c in classes if hasattr(c, value.__name__)]
        found += [f"{name}.{value.__name__}" for c in plotting for name in names_of(c)]
    return sorted(set(found))


def _public(value: type) -> list[str]:
    return [member for member in dir(value) if not member.startswith("_")]


def set_names(app: Sphinx, config: Config) -> None:
    """Give the templates of entries what to look for."""
    entries = links.documented().values()
    config.autosummary_context = {
        "used_as": {name: " ".join(used_as(links.value_of(name))) for name in entries}
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Set the names as soon as the configuration is known."""
    app.connect("config-inited", set_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
