"""One progress bar for everything that takes longer than a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

__all__ = ["track"]

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

    start = time.monotonic()
    bar = Progress(transient=True)
    task = bar.add_task(description, total=total)
    shown = False
    try:
        for item in items:
            if not shown and time.monotonic() - start > SECONDS_BEFORE_BAR:
                bar.start()
                shown = True
            yield item
            bar.advance(task)
    finally:
        if shown:
            bar.stop()
