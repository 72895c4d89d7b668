"""The notebooks as pages, with the outputs that they were saved with: nothing is run again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

ROOT = Path(__file__).parents[2]

INDEX = """\
# Notebooks

Each notebook is one study from start to end, shown as it was saved. The first four reproduce a
paper, with bands beside its point values, the fifth a chapter of a book; the others are audits from
start to end, attacks on them, and a model of your own. To run one, open the file of the same name
in the folder `notebooks` of the project.

```{{toctree}}
:maxdepth: 1

{entries}
```
"""


def as_page(text: str) -> str:
    """Return a notebook whose links to pages lead from `docs/generated/notebooks`."""
    return re.sub(r"\]\(\.\./docs/", "](../../", text)


def write_pages(app: Sphinx, config: Config) -> None:
    """Write the sources before Sphinx looks for sources."""
    folder = Path(app.srcdir) / "generated" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    pages = {path.name: as_page(path.read_text(encoding="utf-8")) for path in notebooks}
    pages["index.md"] = INDEX.format(entries="\n".join(path.stem for path in notebooks))
    # A page of a notebook that is gone would stand in no table of contents.
    for path in folder.iterdir():
        if path.is_file() and path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        # An unchanged file keeps its date, and Sphinx its work.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages as soon as the configuration is known."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
