"""When individuals contributed last: who has left is seen at a glance."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.utils import labels

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["last_seen"]


def last_seen(*parts: Responses) -> NDArray[Any]:
    """Return the last database that everybody contributed to, in the order of the responses.

    Parameters
    ----------
    *parts : Responses
        Of one query or of several, on the same databases.

    Returns
    -------
    ndarray of str
        Shape (m,): its label; empty where there is none, or contributions were not collected.

    Examples
    --------
    >>> from edp_bayes.responses.responses import Responses
    >>> contribution = np.zeros((20, 2))
    >>> contribution[:4, 0] = 1.0
    >>> last_seen(Responses.from_arrays(np.arange(20.0), contribution=contribution)).tolist()
    ['3', '']
    """
    first = parts[0]
    last = np.full(first.n_individuals, -1)
    for part in parts:
        np.maximum.at(last, part.owner, part.collected.indices // part.samples)
    shown = np.array([*map(_text, labels.plain_list(first.database)), ""])
    return np.asarray(shown[last])


def _text(label: Any) -> str:
    return labels.show(label) if isinstance(label, date) else labels.as_text(label)
