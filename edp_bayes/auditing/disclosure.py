"""Customary rules of disclosure control, database by database, and what they are worth here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.responses import Responses
from edp_bayes.results.query import Audit
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RULES", "Rule", "disclosure", "require_rules"]

Array = NDArray[np.float64]

HUNDEPOOL = "Hundepool and others (2012), Statistical Disclosure Control, Section 4.2"
WHY = (
    "They answer different questions: a rule looks at who made up one answer that is published, "
    "delta at how far all answers that could have been tell whether an individual is there."
)


@dataclass(frozen=True)
class Rule:
    """One rule, with its customary parameters.

    Attributes
    ----------
    name : str
        What it is called, with its parameters.
    worst : callable
        Takes the sizes of everybody's contributions to one database, falling, and returns a number.
    least : float
        The database passes where that number is at least this.
    source : str
        Where rule and parameters are from.
    published : dict
        What the rule makes of an answer, as arguments of `Audit.released`; empty where it only says
        whether an answer may be published.
    """

    name: str
    worst: Callable[[Array], float]
    least: float
    source: str
    published: dict[str, Any] = field(default_factory=dict)


def _count(sizes: Array) -> float:
    return float(sizes.size)


def _rest(sizes: Array, first: int) -> float:
    """Return the share of the total that all but the largest few make up."""
    total = float(sizes.sum())
    return float(sizes[first:].sum()) / total if total > 0.0 else 1.0


def _within(sizes: Array) -> float:
    """Return how closely the second largest learns the largest, relative to it."""
    return float(sizes[2:].sum() / sizes[0]) if sizes.size and sizes[0] > 0.0 else np.inf


def _fifteen(sizes: Array) -> float:
    """Return 1 where there are 15 individuals, none with more than 15% of the total, else 0."""
    return float(sizes.size >= 15 and 1.0 - _rest(sizes, 1) <= 0.15)


# The customary parameters: a small-number rule of English health data, the defaults of the output
# checkers' tool ACRO, and the rule of the Californian regulator for energy data.
RULES = (
    Rule(
        "at least 8 individuals; below redacted, then rounded to 5",
        _count,
        8.0,
        "OpenSAFELY, permitted outputs policy: counts of 7 and fewer are redacted, others rounded",
        {"threshold": 8.0, "rounded_to": 5.0},
    ),
    Rule(
        "midpoint rounding to 6",
        lambda _: 1.0,
        1.0,
        "OpenSAFELY, midpoint 6 rounding: counts become 3, 9, 15, ...",
        {"rounded_to": 6.0, "offset": 3.5},  # counts 1 to 6 are published as 3
    ),
    Rule("at least 10 individuals", _count, 10.0, HUNDEPOOL),
    Rule(
        "(n, k) dominance: the 2 largest at most 90%",
        lambda sizes: _rest(sizes, 2),
        0.1,
        HUNDEPOOL,
    ),
    Rule("p%: nobody learned to within 10%", _within, 0.1, HUNDEPOOL),
    Rule(
        "prior-posterior (p, q) = (10, 50): from within 50% to within 10%",
        _within,
        0.1 / 0.5,
        HUNDEPOOL,
    ),
    Rule(
        "15/15: 15 individuals, none above 15%",
        _fifteen,
        1.0,
        "California Public Utilities Commission (1997), Decision 97-10-031",
    ),
)


def disclosure(
    responses: Responses,
    *,
    audit: Audit | None = None,
    epsilon: float = 0.1,
    rules: tuple[Rule, ...] = RULES,
    prob: float = PROB,
) -> pd.DataFrame:
    """Return whether every database passes customary rules, and what the rules do to delta.

    A rule looks at who made up one answer that is published: how many individuals, and how far the
    largest dominate. delta asks how far all answers that could have been tell whether an individual
    is there. Either may be fine where the other is not.

    Parameters
    ----------
    responses : Responses
        A sum or a count, with everybody's contributions; sizes are absolute values.
    audit : Audit, optional
        Of these responses. With it, what each rule makes of the answer has a limit of delta: where
        a rule rounds or redacts, from the fit, if the audit still has it.
    epsilon : float
        At which delta is compared.
    rules : tuple of Rule
        By default frequency, dominance, p%, prior-posterior and 15/15, with customary parameters.
    prob : float
        Probability of the limits.

    Returns
    -------
    DataFrame
        Index rule; columns passed (in all databases), failing (number of databases), worst (the
        database with the smallest value), value (there), least (what the rule asks) and source;
        with an audit limit_before and limit_after, upper limits of delta, equal where a rule
        changes no answer, NaN where what it changes is not known: counts alone are redacted and
        rounded, by the fit of an audit that was not loaded. ``attrs["meaning"]`` says why both may
        differ.

    Raises
    ------
    InvalidInputError
        If contributions were not collected, the responses have several samples for a database or
        are no sum, the audit is of other responses, or epsilon is outside of its grid.
    InputTypeError
        If an argument has another type.

    References
    ----------
    Hundepool, Domingo-Ferrer, Franconi, Giessing, Schulte Nordholt, Spicer and de Wolf (2012),
    Statistical Disclosure Control, Wiley, Section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 20))
    >>> responses = edp.Responses.from_arrays(
    ...     contribution.sum(axis=1), contribution=contribution, additive=True
    ... )
    >>> table = edp.disclosure(responses)
    >>> bool(table.loc["at least 10 individuals", "passed"])
    True
    """
    import pandas as pd

    require_rules(responses)
    if audit is not None:
        _require_audit(audit, responses)
    epsilon = validate.number(epsilon, "epsilon")
    sizes = _sizes(responses)
    labels = list(responses.database)
    rows = {}
    for rule in rules:
        values = np.array([rule.worst(one) for one in sizes])
        least = int(np.argmin(values))
        rows[rule.name] = {
            "passed": bool((values >= rule.least).all()),
            "failing": int((values < rule.least).sum()),
            "worst": labels[least],
            "value": float(values[least]),
            "least": rule.least,
            "source": rule.source,
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")
    if audit is not None:
        before = _limit(audit, epsilon, prob)
        table["limit_before"] = before
        counts = bool((responses.collected.data == 1.0).all())
        table["limit_after"] = [
            _after(audit, rule, epsilon, prob, before) if counts or not rule.published else np.nan
            for rule in rules
        ]
    table.attrs["meaning"] = WHY
    return table


def require_rules(responses: Responses) -> None:
    """Refuse responses that rules cannot look at."""
    if not isinstance(responses, Responses):
        raise InputTypeError(
            f"responses must be Responses of one query, found {type(responses).__name__}: look at "
            "each query on its own"
        )
    if responses.remainder is not None:
        raise InvalidInputError(
            "rules look at everybody's contributions, and some were not collected: respond again "
            "without collect="
        )
    if responses.samples > 1 or not responses.additive:
        raise InvalidInputError(
            "rules are for sums and counts, one answer a database, to which contributions add up: "
            "with arrays of these, additive=True"
        )


def _require_audit(audit: Audit, responses: Responses) -> None:
    if not isinstance(audit, Audit):
        raise InputTypeError(f"audit must be an Audit, found {type(audit).__name__}")
    if audit.settings.get("fingerprint") != responses.fingerprint:
        raise InvalidInputError(
            "audit must be of these responses, found one of others: their fingerprints differ"
        )


def _sizes(responses: Responses) -> list[Array]:
    """Return the sizes of contributions to every database, falling."""
    matrix = abs(responses.collected.tocsr())
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return [np.sort(matrix.data[a:b][matrix.data[a:b] > 0.0])[::-1] for a, b in ends]


def _limit(audit: Audit, epsilon: float, prob: float) -> float:
    return audit.verdict(epsilon=epsilon, prob=prob).limit


def _after(audit: Audit, rule: Rule, epsilon: float, prob: float, before: float) -> float:
    """Return the limit of delta of what a rule makes of the answer; NaN where it is not known."""
    if not rule.published:
        return before
    if audit.source is None or audit.joint or "released" in audit.settings:
        return float("nan")
    published = audit.released(**rule.published, progressbar=False)
    return min(_limit(published, epsilon, prob), before)
