"""Whether audits that are composed are of the same databases, which are no fresh ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.adversary.timeline import time_of
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.labels import NUMERIC_KINDS, as_text

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["alike_only", "names_of", "refuse_shared", "shared"]


def names_of(audits: Sequence[Audit]) -> list[NDArray[Any]]:
    """Return the labels of everybody in each audit; as text where numbers and text meet.

    An individual is the same in two audits where the label is: 5 and "5" are one.
    """
    return _comparable([part.individuals["individual"].to_numpy() for part in audits])


def refuse_shared(audits: Sequence[Audit]) -> None:
    """Refuse audits that share databases.

    Raises
    ------
    InvalidInputError
        Names two of them, what they share, and what would be right.
    """
    found = shared(audits)
    if found:
        raise InvalidInputError(
            f"{found[0]}. A composition is of fresh databases, and several answers on the same "
            "ones tell more: put their responses together with Responses.join and audit these. "
            "Releases of one query take databases= of a single audit. If the databases are fresh "
            "ones, whatever their labels say, state it with fresh=True"
        )


def shared(audits: Sequence[Audit]) -> list[str]:
    """Return in words which audits share databases, and how that shows.

    The same data; or individuals of the same labels in databases of the same labels, all or some
    of them, or in databases whose dates lie in the same time, such as the weeks and the months of
    a year.
    """
    everybody = [set(names.tolist()) for names in names_of(audits)]
    databases = [_databases(part) for part in audits]
    times = [time_of(labels) for labels in databases]
    found = []
    for one, other in combinations(range(len(audits)), 2):
        settings = [audits[k].settings for k in (one, other)]
        names = " and ".join(f"{k + 1} ({audits[k].settings['query']})" for k in (one, other))
        people = len(everybody[one] & everybody[other])
        alike = _in_common(databases[one], databases[other])
        first, second = times[one], times[other]
        if settings[0]["fingerprint"] == settings[1]["fingerprint"]:
            found.append(f"audits {names} are of the same data")
        elif people and alike:
            total = min(len(databases[one]), len(databases[other]))
            found.append(
                f"audits {names} have {alike:,} of {total:,} databases and {people:,} individuals "
                "with the same labels"
            )
        elif people and first and second and first[0] < second[1] and second[0] < first[1]:
            ends = max(first[0], second[0]), min(first[1], second[1])
            start, end = (np.datetime_as_string(time, "D") for time in ends)
            found.append(
                f"audits {names} have databases in the same time, {start} to {end}, and {people:,} "
                "individuals with the same labels"
            )
    return found


def alike_only(audits: Sequence[Audit]) -> list[str]:
    """Return in words which audits have databases of the same names and nobody in common.

    Numbers are no names: data without labels are numbered.
    """
    everybody = [set(names.tolist()) for names in names_of(audits)]
    databases = [_databases(part) for part in audits]
    found = []
    for one, other in combinations(range(len(audits)), 2):
        alike = _in_common(databases[one], databases[other])
        numbers = databases[one].dtype.kind in "iuf"
        if alike and not numbers and not everybody[one] & everybody[other]:
            found.append(
                f"audits {one + 1} and {other + 1} have {alike:,} databases with the same labels "
                "and nobody in common; their answers are taken as independent, and where they are "
                "not, a reader of both knows more of each"
            )
    return found


def _databases(audit: Audit) -> NDArray[Any]:
    """Return the labels of all databases, also of those that serve as the past of others only."""
    if "known" in audit.tree.children:
        return np.asarray(audit.tree["known"]["release"].to_numpy())
    return np.asarray(audit.tree["observed_data"]["database"].to_numpy())


def _in_common(one: NDArray[Any], other: NDArray[Any]) -> int:
    """Return how many labels are in both, text and numbers compared as text."""
    if one.dtype.kind == other.dtype.kind == "M":
        return int(np.intersect1d(one.astype("M8[us]"), other.astype("M8[us]")).size)
    first, second = _comparable([one, other])
    return len(set(first.tolist()) & set(second.tolist()))


def _comparable(names: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return labels as they are where all are of one kind, as text where not."""
    kinds = {"n" if part.dtype.kind in NUMERIC_KINDS else part.dtype.kind for part in names}
    if len(kinds) == 1:
        return list(names)
    return [np.array([as_text(label) for label in part.tolist()]) for part in names]
