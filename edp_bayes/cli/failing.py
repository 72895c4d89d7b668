"""What a failure looks like on the command line: one line on stderr and an exit code."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from edp_bayes.exceptions import EdpBayesError

__all__ = ["refuse_interrupted", "run"]

WRONG = 2
INTERRUPTED = 130
# Base class of Typer's errors about options, wherever a version of Typer keeps it.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_interrupted = threading.Event()


def run(command: Any, arguments: Sequence[str]) -> int:
    """Run a command; turn whatever a user can get wrong into one line and an exit code."""
    with _watching_interrupts():
        try:
            code = command.main(args=list(arguments), prog_name="edp-bayes", standalone_mode=False)
        except (KeyboardInterrupt, typer.Abort):
            _interrupted.set()
        except UsageError as error:
            return _say(getattr(error, "format_message", error.__str__)(), WRONG)
        except EdpBayesError as error:
            # A sampler that was interrupted reports draws that are missing.
            if not _interrupted.is_set():
                return _say(str(error), WRONG)
        except OSError as error:
            named = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return _say(named, WRONG)
        if _interrupted.is_set():
            return _say("interrupted", INTERRUPTED)
        return code if isinstance(code, int) else 0


def refuse_interrupted() -> None:
    """Stop where Ctrl-C was pressed while a sampler swallowed it."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


@contextmanager
def _watching_interrupts() -> Iterator[None]:
    """Remember that Ctrl-C was pressed: samplers may end early and not say so."""
    _interrupted.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def remember(number: int, frame: FrameType | None) -> None:
        _interrupted.set()
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _say(message: str, code: int) -> int:
    print(f"edp-bayes: {' '.join(message.split())}", file=sys.stderr)
    return code
