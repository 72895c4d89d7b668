"""Why a result gives no verdict: a failed check that its numbers cannot survive."""

from __future__ import annotations

from collections.abc import Iterable

from edp_bayes.diagnostics.independence import ORDER
from edp_bayes.diagnostics.individuals import NAME

__all__ = ["withheld"]


def withheld(failed: Iterable[tuple[str, str]]) -> str | None:
    """Return why there is no verdict, None where there is one.

    An individual contradicts the model, or databases depend on each other or change, so that
    whoever knows the past or the calendar knows more than the numbers allow for.

    Parameters
    ----------
    failed : iterable of (str, str)
        Name and sentence of every check that failed.

    Returns
    -------
    str or None
        A sentence.

    Examples
    --------
    >>> withheld([("trend", "The responses drift up.")])
    'Not established. The responses drift up.'
    >>> withheld([("ties", "Half of the responses are tied.")]) is None
    True
    """
    said = dict(failed)
    for name in (NAME, *ORDER):
        if name in said:
            start = "No verdict." if name == NAME else "Not established."
            return f"{start} {said[name]}"
    return None
