"""What a failure looks like on the command line: one line on stderr and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import IO, Any

import typer

from edp_bayes.characters import clean
from edp_bayes.exceptions import EdpBayesError

__all__ = ["refuse_interrupted", "run"]

WRONG = 2
# Signals that end a run in order, so that no temporary files stay, and what is said then; the
# exit code is 128 and the signal's number, as shells have it.
ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
# Base class of Typer's errors about options, wherever a version of Typer keeps it.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# The signals that came during the run.
_ended_by: list[signal.Signals] = []


def run(command: Any, arguments: Sequence[str]) -> int:
    """Run a command; turn whatever a user can get wrong into one line and an exit code."""
    with _watching_interrupts(), redirect_stdout(WhileRead(sys.stdout)):
        try:
            code = command.main(args=list(arguments), prog_name="edp-bayes", standalone_mode=False)
        except KeyboardInterrupt:
            if not _ended_by:
                _ended_by.append(signal.SIGINT)
        except typer.Abort:
            # A prompt gives up in this way at Ctrl-C, and also where there is no more input.
            if not _ended_by:
                return _say("no answer was given: the input ended", WRONG)
        except UsageError as error:
            return _say(getattr(error, "format_message", error.__str__)(), WRONG)
        except EdpBayesError as error:
            # A sampler that was interrupted reports draws that are missing.
            if not _ended_by:
                return _say(str(error), WRONG)
        except OSError as error:
            words = error.strerror or str(error)
            return _say(f"{error.filename}: {words}" if error.filename else words, WRONG)
        finally:
            sys.stdout.flush()
        if _ended_by:
            return _say(ENDING[_ended_by[0]], 128 + _ended_by[0])
        return code if isinstance(code, int) else 0


class WhileRead:
    """A stream of which the rest goes nowhere once nobody reads it, as with ``| head -1``.

    What a run writes to files is not lost by that.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, and return how many characters."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        """Write what is held."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        """Send what is held and what follows nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def refuse_interrupted() -> None:
    """Stop where the run was to end while a sampler swallowed the interrupt."""
    if _ended_by:
        raise KeyboardInterrupt


@contextmanager
def _watching_interrupts() -> Iterator[None]:
    """Remember that the run is to end: samplers may end early and not say so."""
    _ended_by.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def remember(number: int, frame: FrameType | None) -> None:
        _ended_by.append(signal.Signals(number))
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, remember) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _say(message: str, code: int) -> int:
    print(f"edp-bayes: {clean(' '.join(message.split()))}", file=sys.stderr)
    return code
