"""What a failed check does to a result: withhold its verdict, or advise its reader."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import NamedTuple

from edp_bayes.exceptions import InvalidInputError

__all__ = [
    "ADVISES",
    "DEPENDENCE",
    "EFFECTS",
    "FAMILIES",
    "LEVEL",
    "WITHHOLDS",
    "Effect",
    "effect_of",
    "shown",
    "withheld",
]

WITHHOLDS, ADVISES = "withholds", "advises"


class Effect(NamedTuple):
    """What a failure does, and why.

    Attributes
    ----------
    effect : {"withholds", "advises"}
        Whether there is no verdict where the check fails.
    reason : str
        What a failure says of the numbers, in a few words.
    """

    effect: str
    reason: str


_DEPENDS = "databases depend on each other: who knows the past knows more than the numbers allow"
_CHANGES = "databases do not follow one distribution: later ones may expose more"
_MISFIT = "the responses may be spread less evenly than modelled, and hide less"
_PRESENCE = "who comes depends on the rest, which the model denies"
_AMOUNTS = "amounts jump with the rest, which the model denies"
_PRECISION = "how precise the draws are, in either direction"

# Every check by its name. Where several fail, the reason given is that of the first one here.
EFFECTS = MappingProxyType(
    {
        "identifier": Effect(WITHHOLDS, "records pass for persons, whose risks are larger"),
        "individuals": Effect(WITHHOLDS, "contributions contradict their model"),
        "grid": Effect(WITHHOLDS, "digits of the answer tell who is in it"),
        "atoms": Effect(WITHHOLDS, "answers become one value, which the density denies"),
        "newcomers": Effect(WITHHOLDS, "new individuals may stay, which the data do not show"),
        "slopes": Effect(WITHHOLDS, "slopes are taken for known: bands are too narrow"),
        "dominant": Effect(WITHHOLDS, "a small difference of large variances stands for p_i"),
        "own contribution": Effect(WITHHOLDS, "the risk is larger against another individual"),
        "Ljung-Box": Effect(WITHHOLDS, _DEPENDS),
        "lag-1 autocorrelation": Effect(WITHHOLDS, _DEPENDS),
        "trend": Effect(WITHHOLDS, _CHANGES),
        "halves, distribution": Effect(WITHHOLDS, _CHANGES),
        "halves, spread": Effect(WITHHOLDS, _CHANGES),
        "spread, level": Effect(
            WITHHOLDS, "where little is expected an individual is exposed more"
        ),
        "presence": Effect(WITHHOLDS, _PRESENCE),
        "presence, middle": Effect(WITHHOLDS, _PRESENCE),
        "presence, once": Effect(WITHHOLDS, _PRESENCE),
        "amounts": Effect(WITHHOLDS, _AMOUNTS),
        "amounts, middle": Effect(WITHHOLDS, _AMOUNTS),
        "distribution": Effect(WITHHOLDS, _MISFIT),
        "standard deviation": Effect(WITHHOLDS, _MISFIT),
        "skewness": Effect(WITHHOLDS, _MISFIT),
        "minimum": Effect(WITHHOLDS, _MISFIT),
        "maximum": Effect(WITHHOLDS, _MISFIT),
        "detail": Effect(WITHHOLDS, _MISFIT),
        "largest share": Effect(ADVISES, "one individual's records describe a database"),
        "largest over next": Effect(ADVISES, "the largest risk rests on one individual's records"),
        "largest contribution": Effect(ADVISES, "tails of contributions decide the largest risk"),
        "ties": Effect(ADVISES, "components become too narrow, and risks too large"),
        "scale": Effect(ADVISES, "bands may be wider than on another scale; risks are the same"),
        "truncation": Effect(ADVISES, "risks below the size it names are not resolved"),
        "overdispersion": Effect(ADVISES, "the result is that of the model with dependence"),
        "convergence of delta": Effect(ADVISES, _PRECISION),
        "convergence of total_risk": Effect(ADVISES, _PRECISION),
        "convergence of local_epsilon": Effect(ADVISES, _PRECISION),
        "convergence of prob": Effect(ADVISES, _PRECISION),
        "out-of-sample log density": Effect(ADVISES, "a score of models, no part of a risk"),
        "data": Effect(ADVISES, "what is doubtful about the records and no check tests"),
    }
)
# Names of the checks that say whether databases are independent and alike, the plainest first.
DEPENDENCE = (
    "Ljung-Box",
    "lag-1 autocorrelation",
    "trend",
    "halves, distribution",
    "halves, spread",
)

# Tests that withhold, by the families of which each has this level after Holm's correction.
LEVEL = 0.05
FAMILIES = (
    (*DEPENDENCE, "presence", "presence, middle", "amounts", "amounts, middle"),
    ("presence, once",),
    ("spread, level",),
    ("distribution", "standard deviation", "skewness", "minimum", "maximum"),
)


def shown(name: str) -> str:
    """Return what a check is called where several are listed.

    Examples
    --------
    >>> shown("data"), shown("ties")
    ('doubts about the data', 'ties')
    """
    return "doubts about the data" if name == "data" else name


def effect_of(name: str) -> str:
    """Return what a failure of the check does; one that nothing is known of withholds.

    Examples
    --------
    >>> effect_of("presence"), effect_of("ties")
    ('withholds', 'advises')
    """
    return EFFECTS[name].effect if name in EFFECTS else WITHHOLDS


def require_known(name: str) -> None:
    """Refuse a check without an entry."""
    if name not in EFFECTS:
        raise InvalidInputError(
            f"the check {name!r} does not say whether it withholds or advises: enter it in EFFECTS"
        )


def withheld(failed: Iterable[tuple[str, str]]) -> str | None:
    """Return why there is no verdict, None where there is one.

    `EFFECTS` says which failures withhold it. The reason is the first one in its order; others are
    counted and named.

    Parameters
    ----------
    failed : iterable of (str, str)
        Name and sentence of every check that failed.

    Returns
    -------
    str or None
        A sentence.

    See Also
    --------
    Check : the outcome of one check
    edp_bayes.Audit.verdict : whether a target is met

    Examples
    --------
    >>> withheld([("trend", "The responses drift up.")])
    'Not established. The responses drift up.'
    >>> withheld([("trend", "The responses drift up."), ("presence", "Ann follows the rest.")])
    'Not established. The responses drift up. 1 more check withholds the verdict: presence.'
    >>> withheld([("ties", "Half of the responses are tied.")]) is None
    True
    """
    said: dict[str, str] = {}
    for name, sentence in failed:
        if effect_of(name) == WITHHOLDS:
            said.setdefault(name, sentence)
    if not said:
        return None
    first, *others = dict.fromkeys(name for name in (*EFFECTS, *said) if name in said)
    reason = f"Not established. {said[first]}"
    if not others:
        return reason
    count = "1 more check withholds" if len(others) == 1 else f"{len(others)} more checks withhold"
    return f"{reason} {count} the verdict: {', '.join(others)}."
