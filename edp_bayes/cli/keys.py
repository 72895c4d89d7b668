"""The secret key of pseudonyms: random and kept nowhere, or in a file of the user's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    from edp_bayes.cli.run import Run

__all__ = ["pseudonym_key", "require_key_apart"]

SIZE = 32
SHORTEST = 16


def require_key_apart(path: Path, run: Run, read: Iterable[Path]) -> None:
    """Refuse a key that would be handed on with the results, or cannot be used.

    Raises
    ------
    InvalidInputError
        If no pseudonyms are asked for, or the file lies in the folder of the results, is one of
        the run's own, holds too short a key or cannot be read or made.
    """
    from edp_bayes.cli.folder import require_writable

    if not run.pseudonyms:
        raise InvalidInputError("--pseudonym-key is for pseudonyms: give --pseudonyms with it")
    place = path.resolve()
    if run.out.resolve() in place.parents:
        raise InvalidInputError(
            f"--pseudonym-key must lie outside of the folder of the results, found {path}: a "
            "reader of both can try out all names"
        )
    others = [other.resolve() for other in (run.report, *read) if other is not None]
    if place in others:
        raise InvalidInputError(f"--pseudonym-key must be a file of its own, found {path}")
    if path.exists():
        _read(path)
    else:
        require_writable(path.parent)


def pseudonym_key(run: Run) -> bytes:
    """Return the key of a run; make its file, for its owner alone, where there is none."""
    if run.pseudonym_key is None:
        return secrets.token_bytes(SIZE)
    path = run.pseudonym_key
    if path.exists():
        return _read(path)
    # As text, so that it can be given to Python as it stands.
    key = secrets.token_hex(SIZE).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror or error}") from None
    return key


def _read(path: Path) -> bytes:
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None
    if len(key) < SHORTEST:
        raise InvalidInputError(
            f"the key in {path} must have at least {SHORTEST} bytes, found {len(key)}"
        )
    return key
