"""One progress bar for everything that takes longer than a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["track", "working"]

SECONDS_BEFORE_BAR = 2.0


def track[T](items: Iterable[T], description: str, *, total: int, show: bool) -> Iterator[T]:
    """Yield the items and, once two seconds have passed, show how many are done.

    Parameters
    ----------
    items : iterable
        What to work through.
    description : str
        Text beside the bar.
    total : int
        Number of items.
    show : bool
        False to stay silent.
    """
    if not show:
        yield from items
        return
    from rich.progress import Progress

    bar = Progress(console=terminal(), transient=True)
    task = bar.add_task(description, total=total)
    with _shown_later(bar):
        for item in items:
            yield item
            bar.advance(task)


@contextmanager
def working(description: str, *, show: bool) -> Iterator[Callable[[str], None]]:
    """Show, once two seconds have passed, that something of unknown length goes on.

    What is yielded takes another text to show from then on.

    Parameters
    ----------
    description : str
        Text beside the bar.
    show : bool
        False to stay silent.
    """
    if not show:
        yield lambda text: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=terminal(),
        transient=True,
    )
    task = bar.add_task(description, total=None)
    with _shown_later(bar):
        yield lambda text: bar.update(task, description=text)


@contextmanager
def _shown_later(bar: Progress) -> Iterator[None]:
    """Start the bar from another thread: what is going on may not return for long."""
    timer = threading.Timer(SECONDS_BEFORE_BAR, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()
