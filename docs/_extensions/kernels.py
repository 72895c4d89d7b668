"""A few kernels run the code of all pages, ahead of the page that is being read.

A kernel of its own for every page would import and compile again, and Sphinx reads page by page.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any

from jupyter_cache import get_cache
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.execute import cache
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient, execute
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

if TYPE_CHECKING:
    from jupyter_cache.executors.utils import ExecutionResult
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# A page starts in its folder, without any name of the page before it.
START = "%reset -f\n__import__('os').chdir({folder!r})"
# Sphinx itself takes a core for half of the time.
KERNELS = max(1, min(2, os.cpu_count() or 1))


class Pages:
    """What the code of pages gives, each run once, by whichever kernel is free."""

    def __init__(self) -> None:
        self.own = local()
        self.running = ExitStack()
        self.threads = ThreadPoolExecutor(KERNELS)
        self.results: dict[tuple[str, ...], Future[ExecutionResult]] = {}

    def begin(self, app: Sphinx) -> None:
        """Start on the pages whose code has changed since it was last run."""
        known = get_cache(app.config.nb_execution_cache_path)
        options = {"timeout": app.config.nb_execution_timeout, "allow_errors": False}
        for path in pages_with_code(Path(app.srcdir)):
            page = read_myst_markdown_notebook(path.read_text(encoding="utf-8"))
            try:
                known.match_cache_notebook(page)
            except KeyError:
                self.results[code_of(page)] = self.threads.submit(
                    self._run, page, cwd=str(path.parent), **options
                )

    def run(self, page: NotebookNode, *, cwd: str, **options: Any) -> ExecutionResult:
        """Return what a page gives, as the function of jupyter_cache that this stands for."""
        found = self.results.pop(code_of(page), None)
        if found is None:
            return self._run(page, cwd=cwd, **options)
        result = found.result()
        page.metadata.update(result.nb.metadata)
        given = (cell for cell in result.nb.cells if cell.cell_type == "code")
        for cell in page.cells:
            if cell.cell_type == "code":
                ran = next(given)
                cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        return result

    def _run(self, page: NotebookNode, *, cwd: str, **options: Any) -> ExecutionResult:
        """Run the code of a page in the kernel of this thread."""
        if not hasattr(self.own, "client"):
            self.own.client = NotebookClient(new_notebook(), kernel_name="python3")
            self.running.enter_context(self.own.client.setup_kernel())
        shared = {"km": self.own.client.km, "kc": self.own.client.kc}
        execute(new_notebook(cells=[new_code_cell(START.format(folder=cwd))]), **shared)
        return single_nb_execution(page, cwd=cwd, **options, **shared)

    def stop(self, app: Sphinx, error: Exception | None) -> None:
        """End the kernels with the build."""
        self.threads.shutdown(cancel_futures=True)
        self.running.close()


def pages_with_code(folder: Path) -> Iterator[Path]:
    """Yield the pages that have code, in the order in which Sphinx reads them."""
    for path in sorted(folder.rglob("*.md"), key=lambda path: path.with_suffix("").as_posix()):
        made = path.relative_to(folder).parts[0] in ("_build", "generated")
        if not made and "\n```{code-cell}" in path.read_text(encoding="utf-8"):
            yield path


def code_of(page: NotebookNode) -> tuple[str, ...]:
    """Return the code of a page, by which its results are known."""
    return tuple(cell.source for cell in page.cells if cell.cell_type == "code")


def write_in_parallel(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Let several processes write pages, once one has read them all, which holds the results."""
    app.parallel = max(app.parallel, KERNELS)
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    """Let MyST-NB take what pages give from these kernels."""
    pages = Pages()
    cache.single_nb_execution = pages.run
    # Once the gallery has run, which comes before and compiles most of what pages need.
    app.connect("builder-inited", pages.begin, priority=900)
    app.connect("env-updated", write_in_parallel)
    app.connect("build-finished", pages.stop)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
