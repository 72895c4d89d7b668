"""Whether what identifies individuals is theirs, and not the number of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["IDENTIFIER", "check_identifier"]

IDENTIFIER = "identifier"
MOST_ONCE = 0.95  # of all individuals, in one database alone
FEWEST = 36  # individuals, of whom so many could not all be new by chance
ADVICE = (
    "Then the risks are those of records, and of a person they may be larger. Name the column of "
    "the person; if each person comes once, say appear_once=True, --appear-once."
)


def check_identifier(responses: Responses | JointResponses, *, appear_once: bool = False) -> Checks:
    """Check that some individuals are in more than one database.

    If 95% of at least 36 individuals are in one database alone, the identifier looks like the
    number of a record, or like one that is new in each database: the risk of a person with several
    records would be split. Data cannot tell such records from persons who come once, so that the
    latter has to be said.

    Parameters
    ----------
    responses : Responses or JointResponses
        Of all databases, as they were.
    appear_once : bool
        Individuals are persons, and nearly each comes once.

    Returns
    -------
    Checks
        The check `identifier`; its statistic is the share of individuals in one database alone.

    See Also
    --------
    edp_bayes.Databases.from_table : databases from records
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> data = edp.Responses.from_arrays(np.arange(40.0), contribution=np.eye(40))
    >>> check_identifier(data).passed, check_identifier(data, appear_once=True).passed
    (False, True)
    """
    first = responses.parts[0]
    people, once = first.n_individuals, int((first.presence == 1).sum())
    share = once / people
    text = f"{once:,} of {people:,} individuals are in one database alone"
    named = f"{first.identifier!r}" if first.identifier else "their identifier"
    doubtful = people >= FEWEST and share >= MOST_ONCE
    if doubtful and not appear_once:
        text += f": {named} looks like the number of a record, or like one new in each database"
    elif doubtful:
        text += ", and were said to be persons who come once"
    check = threshold(IDENTIFIER, share, appear_once or not doubtful, Sentence(text), ADVICE)
    return Checks((check,), 0.0)
