"""One kernel runs the code of every page: each of its own would import and compile again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.execute import cache
from nbclient import NotebookClient, execute
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

if TYPE_CHECKING:
    from jupyter_cache.executors.utils import ExecutionResult
    from sphinx.application import Sphinx

# A page starts in its folder, without any name of the page before it.
START = "%reset -f\n__import__('os').chdir({folder!r})"


class Kernel:
    """A kernel that starts with the first page that is not in the cache."""

    def __init__(self) -> None:
        self.client = NotebookClient(new_notebook(), kernel_name="python3")
        self.running = ExitStack()

    def run(self, page: NotebookNode, *, cwd: str, **options: Any) -> ExecutionResult:
        """Run the code of a page, as the function of jupyter_cache that this stands for."""
        if self.client.km is None:
            self.running.enter_context(self.client.setup_kernel())
        shared = {"km": self.client.km, "kc": self.client.kc}
        execute(new_notebook(cells=[new_code_cell(START.format(folder=cwd))]), **shared)
        return single_nb_execution(page, cwd=cwd, **options, **shared)

    def stop(self, app: Sphinx, error: Exception | None) -> None:
        """End the kernel with the build."""
        self.running.close()


def setup(app: Sphinx) -> dict[str, bool]:
    """Let MyST-NB run its pages in one kernel."""
    kernel = Kernel()
    cache.single_nb_execution = kernel.run
    app.connect("build-finished", kernel.stop)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
