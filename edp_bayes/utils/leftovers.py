"""Temporary folders: private ones, and those beside a target, locked while a run writes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["OLD", "Folder", "lock", "remove_leftovers", "temporary_folder"]

OLD = "old"  # the earlier result, while a folder takes its place
# Where folders cannot be locked, on Windows and some network drives, no write takes so long.
LONGEST_WRITE = 24 * 3600.0


class Folder:
    """A folder that only its owner can read, removed with this object or at the end."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@contextlib.contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Give a folder beside a target, its own until it is removed at the end."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        with _locked(folder, wait=True):
            if folder.exists():  # nobody removed it before it was locked
                try:
                    yield folder
                finally:
                    _remove(folder, target)
                return


def remove_leftovers(folder: Path, names: Iterable[str]) -> int:
    """Remove temporary folders of these targets that nobody writes to; return how many.

    An earlier result in one of them, of a run killed while it was replaced, takes its place again.
    """
    named = "|".join(map(re.escape, names))
    pattern = re.compile(rf"\.(?P<name>{named})\.[a-z0-9_]{{8}}", re.DOTALL)
    count = 0
    for left in sorted(folder.iterdir()) if folder.is_dir() else ():
        found = pattern.fullmatch(left.name)
        if found is None or left.is_symlink() or not left.is_dir():
            continue
        with _locked(left, wait=False) as abandoned:
            if not abandoned:
                continue
            _remove(left, folder / found["name"])
            count += not left.exists()
    return count


def _remove(folder: Path, target: Path) -> None:
    """Remove a temporary folder, but never the only result."""
    if (folder / OLD).exists() and not target.exists():
        os.replace(folder / OLD, target)
    shutil.rmtree(folder, ignore_errors=True)


def lock(handle: int) -> bool:
    """Lock an open folder until it is closed; tell whether nobody else has it, if anybody can."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        pass
    return True


@contextlib.contextmanager
def _locked(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Lock a folder; tell whether nobody else has it, by its age where it cannot be locked."""
    handle, alone = None, False
    try:
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        alone = True
    except BlockingIOError:
        pass
    except (OSError, AttributeError):
        with contextlib.suppress(OSError):
            alone = time.time() - folder.stat().st_mtime > LONGEST_WRITE
    try:
        yield alone
    finally:
        if handle is not None:
            os.close(handle)
