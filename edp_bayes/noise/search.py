"""What bounds a search for noise and shows it: its time, and what it is at."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from edp_bayes.exceptions import EdpBayesError
from edp_bayes.utils.progress import working

__all__ = [
    "OutOfTimeError",
    "TimeLimitError",
    "check_time",
    "more_time",
    "say",
    "searching",
    "seconds_left",
]

now = time.monotonic


class TimeLimitError(EdpBayesError, TimeoutError):
    """The time limit passed before any noise was known to be enough."""


class OutOfTimeError(Exception):
    """The time of a search is over; `edp_bayes.noise.calibrate` returns what it has by then."""


@dataclass(frozen=True)
class _Search:
    limit: float
    end: float
    say: Callable[[str], None]


NOTHING = _Search(math.inf, math.inf, lambda text: None)
_current: ContextVar[_Search] = ContextVar("search", default=NOTHING)


@contextmanager
def searching(time_limit: float | None, *, show: bool) -> Iterator[None]:
    """Bound what goes on inside by so many seconds, and show it.

    Parameters
    ----------
    time_limit : float or None
        Seconds; None for no limit.
    show : bool
        Whether a bar appears after two seconds.
    """
    limit = math.inf if time_limit is None else time_limit
    with working("Looking for noise", show=show) as say_so:
        token = _current.set(_Search(limit, now() + limit, say_so))
        try:
            yield
        finally:
            _current.reset(token)


@contextmanager
def more_time() -> Iterator[None]:
    """Allow a tenth of the limit more, and a second at least, for a bound on the least noise."""
    search = _current.get()
    token = _current.set(replace(search, end=now() + max(1.0, 0.1 * search.limit)))
    try:
        yield
    finally:
        _current.reset(token)


def check_time() -> None:
    """Raise OutOfTimeError once the time of the current search is over."""
    if seconds_left() <= 0.0:
        raise OutOfTimeError


def seconds_left() -> float:
    """Return the seconds that the current search still has, infinite without a limit."""
    return _current.get().end - now()


def say(text: str) -> None:
    """Show what the current search is at."""
    _current.get().say(text)
