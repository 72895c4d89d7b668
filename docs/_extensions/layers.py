"""A picture of the packages and of what they import, made from the code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

ROOT = Path(__file__).parents[2]
WIDTH, ROW, BOX = 9.0, 0.62, 0.36


def contract() -> dict:
    """Return the contract on imports in pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["importlinter"]["contracts"][0]


def imports(found: dict) -> dict[str, set[str]]:
    """Return which packages each package imports, without the exceptions of the contract."""
    import grimp

    graph = grimp.build_graph("edp_bayes")
    for line in found["ignore_imports"]:
        importer, imported = line.split(" -> ")
        graph.remove_import(importer=importer, imported=imported)
    for package in graph.find_children("edp_bayes"):
        graph.squash_module(package)
    return {
        module.rpartition(".")[2]: {
            other.rpartition(".")[2]
            for other in graph.find_modules_directly_imported_by(module)
            if other not in ("edp_bayes", module)
        }
        for module in graph.find_children("edp_bayes")
    }


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out imports of what is also imported by way of another package."""

    def reached(start: str) -> set[str]:
        found, left = set(), list(edges[start])
        while left:
            package = left.pop()
            if package not in found:
                found.add(package)
                left.extend(edges[package])
        return found

    beyond = {package: set().union(*map(reached, direct)) for package, direct in edges.items()}
    return {package: direct - beyond[package] for package, direct in edges.items()}


def draw(target: Path) -> None:
    """Draw the layers of the contract, the lowest at the bottom, with an arrow for every import."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    found = contract()
    rows = [[name.strip() for name in layer.split("|")] for layer in reversed(found["layers"])]
    figure = Figure(figsize=(WIDTH, ROW * len(rows)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, WIDTH), ylim=(-0.5 * ROW, (len(rows) - 0.5) * ROW))
    axes.axis("off")
    place = {}
    for height, names in enumerate(rows):
        for k, name in enumerate(names):
            # Neighbouring layers stand apart, so that arrows do not pass behind boxes.
            shift = 1.1 * ((height % 3) - 1) if len(names) == 1 else 0.0
            place[name] = (WIDTH * (k + 1) / (len(names) + 1) + shift, height * ROW)
    for package, direct in reduced(imports(found)).items():
        for other in sorted(direct):
            axes.annotate(
                "",
                (place[other][0], place[other][1] + 0.5 * BOX),
                (place[package][0], place[package][1] - 0.5 * BOX),
                arrowprops={"arrowstyle": "->", "color": "0.55", "linewidth": 0.9},
            )
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": "#eaf2fb", "edgecolor": "#1f77b4"}
        axes.text(x, y, name, ha="center", va="center", fontsize=10, bbox=box)
    target.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "layers"}):
        figure.savefig(target, metadata={"Date": None})


def write_picture(app: Sphinx, config: Config) -> None:
    """Draw the picture before Sphinx looks for images."""
    draw(Path(app.srcdir) / "generated" / "layers.svg")


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw as soon as the configuration is known."""
    app.connect("config-inited", write_picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
