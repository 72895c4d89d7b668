"""Printing: nothing that comes from a file steers the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from edp_bayes.characters import clean_lines

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["terminal"]


def terminal(**options: Any) -> Console:
    """Return a console that prints text as it is, control characters as visible ones.

    Parameters
    ----------
    **options
        Of `rich.console.Console`.
    """
    return _console()(highlight=False, markup=False, emoji=False, **options)


@cache
def _console() -> type[Console]:
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class Seen(Console):
        """Prints what is rendered with every character visible; its own controls are none."""

        def render(
            self, renderable: Any, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            """Return the pieces of what is printed."""
            for segment in super().render(renderable, options):
                yield (
                    segment if segment.control else segment._replace(text=clean_lines(segment.text))
                )

    return Seen
