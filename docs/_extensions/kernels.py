"""A few kernels run the code of all pages, ahead of the page that is being read.

A kernel of its own for every page would import and compile again, and Sphinx reads page by page.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread, local
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
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

# A page starts in its folder, without any name of the page before it.
START = "%reset -f\n__import__('os').chdir({folder!r})"
KERNELS = max(1, min(2, os.cpu_count() or 1))
# First what compiles nothing that the first examples of the gallery do, which run at the same time;
# then what takes longest, so that no kernel is left with it when the others have ended.
FIRST = (
    *("property_audits.md", "noise/optimal.md", "interval.md"),
    *("start/index.md", "guide/joint_queries.md", "guide/releases.md", "guide/cells.md"),
)


class Pages:
    """What the code of pages gives, each run once, by whichever kernel is free."""

    def __init__(self) -> None:
        self.own = local()
        self.running = ExitStack()
        self.threads: list[Thread] = []
        self.waiting: deque[tuple[NotebookNode, str, Future[ExecutionResult]]] = deque()
        self.results: dict[tuple[str, ...], Future[ExecutionResult]] = {}
        self.options: dict[str, Any] = {}

    def begin(self, app: Sphinx, config: Config) -> None:
        """Start one kernel on the pages whose code has changed since it was last run."""
        known = get_cache(config.nb_execution_cache_path)
        self.options = {"timeout": config.nb_execution_timeout, "allow_errors": False}
        for path in pages_with_code(Path(app.srcdir)):
            page = read_myst_markdown_notebook(path.read_text(encoding="utf-8"))
            try:
                known.match_cache_notebook(page)
            except KeyError:
                result = self.results[code_of(page)] = Future()
                self.waiting.append((page, str(path.parent), result))
        self._start()

    def join_in(self, app: Sphinx) -> None:
        """Start the other kernels, on the core that the gallery had."""
        for _ in range(KERNELS - 1):
            self._start()

    def _start(self) -> None:
        # A gallery that fails ends the build at once.
        self.threads.append(Thread(target=self._work, daemon=True))
        self.threads[-1].start()

    def _work(self) -> None:
        """Run one page after another in the kernel of this thread, until none is left."""
        with suppress(IndexError):
            while True:
                page, folder, result = self.waiting.popleft()
                try:
                    result.set_result(self._run(page, cwd=folder, **self.options))
                except Exception as error:
                    result.set_exception(error)

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
        self.waiting.clear()
        for thread in self.threads:
            thread.join()
        self.running.close()


def pages_with_code(folder: Path) -> Iterator[Path]:
    """Yield the pages that have code: the first ones, then all others as Sphinx reads them."""
    first = [folder / name for name in FIRST]
    rest = sorted(folder.rglob("*.md"), key=lambda path: path.with_suffix("").as_posix())
    for path in dict.fromkeys([*first, *rest]):
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
    # In between this process imports the package and runs the gallery.
    app.connect("config-inited", pages.begin, priority=100)
    app.connect("builder-inited", pages.join_in, priority=900)
    app.connect("env-updated", write_in_parallel)
    app.connect("build-finished", pages.stop)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
