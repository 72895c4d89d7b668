"""The adversary of databases in the order of time, where none was given."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.adversary.timeline import Timeline

__all__ = ["FEWEST", "PAST", "usual_adversary", "why_independent"]

# Databases from which on the past is taken for known, and how many lags of it.
FEWEST = 30
PAST = 2


def usual_adversary(database: NDArray[Any]) -> Adversary | None:
    """Return who is assumed on the command line; None where the past is not taken for known.

    Parameters
    ----------
    database : ndarray
        Shape (n,): the keys of the databases.

    Examples
    --------
    >>> import numpy as np
    >>> usual_adversary(np.arange(2000, 2030)).words
    'a person who has seen the last 2 releases and knows the trend and when each individual was
    last there'
    >>> usual_adversary(np.arange(2000, 2029)) is None
    True
    """
    return None if why_independent(database) else Adversary(past=PAST, trend=True)


def why_independent(database: NDArray[Any]) -> str:
    """Return why the past of databases is not taken for known; empty where it is."""
    timeline = Timeline.of(database)
    if not timeline.ordered:
        return f"because they are not in the order of time ({timeline.disorder})"
    return f"because they are fewer than {FEWEST}" if database.size < FEWEST else ""
