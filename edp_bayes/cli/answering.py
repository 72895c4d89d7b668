"""The target of a run, the verdict that its first line gives, the exit code and the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from edp_bayes.results.verdict import Verdict

__all__ = [
    "CODES",
    "exit_code",
    "parse_target",
    "print_verdict",
    "require_record",
    "severity",
    "with_target",
    "write_record",
]

# Exit codes under --check, the worst last.
CODES = {"met": 0, "undecided": 4, "not established": 5, "not met": 3}
ALIKE = {"revealed exactly": "not met", "no audit": "not established"}  # of cells


def parse_target(text: str | None, *, check: bool = False) -> tuple[float, float] | None:
    """Return epsilon and delta that EPSILON:DELTA stands for; None where no target was given.

    Raises
    ------
    InvalidInputError
        If the text is none, or out of range, or a check is asked for without a target.

    Examples
    --------
    >>> parse_target("0.1:0.01")
    (0.1, 0.01)
    """
    from edp_bayes.results.verdict import Target

    if text is None:
        if check:
            raise InvalidInputError(
                "--check is for a target: give --target with its epsilon and delta, such as "
                "--target 0.1:0.01"
            )
        return None
    try:
        epsilon, delta = (float(part) for part in text.split(":"))
    except ValueError:
        raise InvalidInputError(
            f"--target must be epsilon and delta with a colon between them, such as 0.1:0.01, "
            f"found {text!r}"
        ) from None
    found = Target.of(None, epsilon=epsilon, delta=delta)
    return found.epsilon, found.delta


def with_target(
    grid: NDArray[np.float64], target: tuple[float, float] | None
) -> NDArray[np.float64]:
    """Return a grid of epsilon that holds that of a target.

    Examples
    --------
    >>> import numpy as np
    >>> with_target(np.array([0.05, 0.2]), (0.1, 0.01))
    array([0.05, 0.1 , 0.2 ])
    """
    import numpy as np

    if target is None or np.isclose(grid, target[0], rtol=1e-9, atol=1e-12).any():
        return grid
    return np.sort(np.append(grid, target[0]))


def print_verdict(verdict: Verdict, console: Console, *, start: str = "") -> None:
    """Print the answer in the first line, then what belongs to it and what would help."""
    from rich.text import Text

    style = "bold" if verdict.status != "not established" else "bold red"
    console.print(Text(f"{start}{verdict.claim}", style=style))
    rest = " ".join(verdict.sentences[1:])
    for paragraph in (rest, verdict.basis, " ".join(verdict.helps)):
        if paragraph:
            console.print(Text(paragraph))


def exit_code(statuses: Iterable[str], *, check: bool) -> int:
    """Return 0, or under --check that of the worst status: 3 not met, 4 undecided, 5 no verdict.

    Examples
    --------
    >>> exit_code(["met", "undecided", "no audit"], check=True)
    5
    """
    worst = max(map(severity, statuses), default=0)
    return list(CODES.values())[worst] if check else 0


def severity(status: str) -> int:
    """Return how bad a status is, from 0 for a target that is met; no audit is no verdict."""
    return list(CODES).index(ALIKE.get(status, status))


def require_record(path: Path | None, sources: Iterable[Path] = ()) -> None:
    """Refuse, before any long work, a file of a record that cannot be written or is an input."""
    from edp_bayes.cli.folder import refuse_overwriting, require_writable

    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"--json must name a file, {path} is a folder")
    refuse_overwriting([path], sources)
    require_writable(path.parent)


def write_record(record: Mapping[str, Any], path: Path) -> Path:
    """Write a record as JSON, complete or not at all."""
    import json

    from edp_bayes.utils import files

    with files.replaced(path, private=True) as temporary:
        text = json.dumps(record, indent=2, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return path
