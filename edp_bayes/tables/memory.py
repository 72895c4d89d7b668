"""Memory that this process may use, and refusing what it does not hold before it runs out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from edp_bayes.exceptions import InvalidInputError

__all__ = ["allowed", "require_room", "used"]

LEAST_MEMORY = 8 * 2**30  # Where it cannot be asked for.


def allowed() -> int:
    """Return the bytes of memory that this process may use."""
    found = [LEAST_MEMORY]
    if hasattr(os, "sysconf"):
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):  # No limit is the word "max".
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with contextlib.suppress(ImportError):  # Not on Windows.
        import resource

        limits = (
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        )
        found += [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min(found)


def used() -> int:
    """Return the bytes that this process holds; zero where that cannot be asked for."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def require_room(most: int, pairs: Callable[[], int], each: int) -> None:
    """Refuse to collect more pairs of a database and an individual than memory holds.

    Parameters
    ----------
    most : int
        Bound of the number of pairs.
    pairs : callable
        Counts them, where the bound is too large.
    each : int
        Bytes that a pair takes.

    Raises
    ------
    InvalidInputError
        If they take more than is left.
    """
    room = allowed() - used()
    if most * each <= room or (found := pairs()) * each <= room:
        return
    raise InvalidInputError(
        f"{found:,} pairs of a database and an individual take {found * each / 1e9:.3g} GB while "
        f"they are collected, and {max(room, 0) / 1e9:.3g} of {allowed() / 1e9:.3g} GB are left: "
        "audit on a machine with more memory, or ask a sum or a count, of which a pair takes less"
    )
