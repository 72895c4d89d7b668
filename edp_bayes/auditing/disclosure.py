"""Customary rules of disclosure control, database by database, and what they are worth here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import EdpBayesError, InputTypeError, InvalidInputError
from edp_bayes.responses.responses import Responses
from edp_bayes.results.query import Audit, require_audit_of
from edp_bayes.results.verdict import NOT_ESTABLISHED
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KINDS",
    "RULES",
    "Rule",
    "broken",
    "disclosure",
    "require_rules",
    "rule_of",
    "rules_of",
]

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


OPENSAFELY = (
    "OpenSAFELY, permitted outputs policy: counts of 7 and fewer are redacted, others rounded"
)


def frequency(least: float, rounded_to: float | None = None) -> Rule:
    """Return the rule that so many individuals are in an answer.

    Answers of fewer are redacted, and all others rounded, where a step of rounding is given.
    """
    count = validate.positive_number(least, "individuals of a frequency rule")
    if rounded_to is None:
        return Rule(f"at least {count:g} individuals", _count, count, HUNDEPOOL)
    step = validate.positive_number(rounded_to, "the step of a frequency rule")
    return Rule(
        f"at least {count:g} individuals; below redacted, then rounded to {step:g}",
        _count,
        count,
        OPENSAFELY,
        {"threshold": count, "rounded_to": step},
    )


def midpoint(step: float) -> Rule:
    """Return midpoint rounding: counts of 1 to step become their middle, and so on."""
    step = validate.positive_integer(step, "the step of midpoint rounding")
    return Rule(
        f"midpoint rounding to {step:g}",
        lambda _: 1.0,
        1.0,
        "OpenSAFELY, midpoint 6 rounding: counts become 3, 9, 15, ...",
        {"rounded_to": float(step), "offset": 0.5 * (step + 1.0)},
    )


def dominance(n: float, k: float) -> Rule:
    """Return the rule that the n largest make up at most k% of the total."""
    count, share = validate.positive_integer(n, "n of a dominance rule"), _percent(k, "k")
    # rounded once, as the shares of contributions are: a share of just k% passes
    rest = (100.0 - share) / 100.0
    largest = f"the {count} largest" if count > 1 else "the largest"
    return Rule(
        f"(n, k) dominance: {largest} at most {k:g}%",
        lambda sizes: _rest(sizes, count),
        rest,
        HUNDEPOOL,
    )


def p_percent(p: float) -> Rule:
    """Return the rule that the second largest learns the largest no closer than to within p%."""
    return Rule(
        f"p%: nobody learned to within {p:g}%", _within, _percent(p, "p") / 100.0, HUNDEPOOL
    )


def prior_posterior(p: float, q: float) -> Rule:
    """Return the p% rule for those who knew all others to within q% before."""
    least, before = _percent(p, "p"), _percent(q, "q")
    if least >= before:
        raise InvalidInputError(
            f"a prior-posterior rule is from within q% to within p%, p the smaller, found p = {p:g}"
            f" and q = {q:g}"
        )
    return Rule(
        f"prior-posterior (p, q) = ({p:g}, {q:g}): from within {q:g}% to within {p:g}%",
        _within,
        least / before,
        HUNDEPOOL,
    )


def concentration(count: float, share: float) -> Rule:
    """Return the rule that there are so many individuals, none above a share of the total in %."""
    people = validate.positive_integer(count, "individuals of a concentration rule")
    most = _percent(share, "the share of a concentration rule") / 100.0
    return Rule(
        f"{people}/{share:g}: {people} individuals, none above {share:g}%",
        lambda sizes: float(sizes.size >= people and sizes[0] / sizes.sum() <= most),
        1.0,
        "California Public Utilities Commission (1997), Decision 97-10-031",
    )


# By the word before the first colon: how a rule is made, and what its numbers are.
KINDS: dict[str, tuple[Callable[..., Rule], str]] = {
    "frequency": (frequency, "frequency:8 or frequency:8:5"),
    "midpoint": (midpoint, "midpoint:6"),
    "dominance": (dominance, "dominance:2:90"),
    "p": (p_percent, "p:10"),
    "pq": (prior_posterior, "pq:10:50"),
    "concentration": (concentration, "concentration:15:15"),
}


def rule_of(text: str) -> Rule:
    """Return the rule that a text stands for, its numbers after colons.

    Raises
    ------
    InvalidInputError
        If it stands for none, or a number is out of its range.

    Examples
    --------
    >>> rule_of("dominance:1:85").name
    '(n, k) dominance: the largest at most 85%'
    """
    kind, *numbers = text.split(":")
    try:
        make, _ = KINDS[kind]
        return make(*(int(one) if one.isdecimal() else float(one) for one in numbers))
    except (KeyError, ValueError, TypeError) as error:
        if isinstance(error, EdpBayesError):
            raise
        usual = ", ".join(example for _, example in KINDS.values())
        raise InvalidInputError(f"a rule must be such as {usual}, found {text!r}") from None


def _percent(value: float, name: str) -> float:
    found = validate.positive_number(value, name)
    if found >= 100.0:
        raise InvalidInputError(f"{name} must be less than 100%, found {found:g}%")
    return found


def _count(sizes: Array) -> float:
    return float(sizes.size)


def _rest(sizes: Array, first: int) -> float:
    """Return the share of the total that all but the largest few make up."""
    total = float(sizes.sum())
    return float(sizes[first:].sum()) / total if total > 0.0 else 1.0


def _within(sizes: Array) -> float:
    """Return how closely the second largest learns the largest, relative to it."""
    return float(sizes[2:].sum() / sizes[0]) if sizes.size and sizes[0] > 0.0 else np.inf


# The customary parameters: a small-number rule of English health data, the defaults of the output
# checkers' tool ACRO, and the rule of the Californian regulator for energy data.
RULES = (
    frequency(8, 5),
    midpoint(6),
    frequency(10),
    dominance(2, 90),
    p_percent(10),
    prior_posterior(10, 50),
    concentration(15, 15),
)


def disclosure(
    responses: Responses,
    *,
    audit: Audit | None = None,
    epsilon: float = 0.1,
    rules: Sequence[Rule | str] = RULES,
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
    rules : sequence of str or Rule
        By default frequency, dominance, p%, prior-posterior and 15/15, with customary parameters.
        Others as text: "frequency:8" individuals at least, "frequency:8:5" (the others redacted,
        then rounded to 5), "midpoint:6", "dominance:2:90" (n and k), "p:10", "pq:10:50",
        "concentration:15:15" (individuals, and the largest share in %).
    prob : float
        Probability of the limits.

    Returns
    -------
    DataFrame
        Index rule; columns passed (in all databases), failing (number of databases), worst (the
        database with the smallest value), value (there), least (what the rule asks) and source;
        with an audit limit_before and limit_after, upper limits of delta, equal where a rule
        changes no answer, NaN where what it changes is not known: counts alone are redacted and
        rounded, by the fit of an audit that was not loaded. Both are NaN where a check withholds
        the verdict. ``attrs["meaning"]`` says why rules and delta may differ, ``attrs["epsilon"]``
        is that of the limits.

    Raises
    ------
    InvalidInputError
        If contributions were not collected, the responses have several samples for a database or
        are no sum, the audit is of other responses, epsilon is outside of its grid, or a text is
        no rule.
    InputTypeError
        If an argument has another type.

    See Also
    --------
    Audit.disclosure : the same from a finished audit
    audit_cells : audit every cell of a table
    remedies : what would help where a target is not met

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
        require_audit_of(audit, responses)
    epsilon = validate.number(epsilon, "epsilon")
    chosen = rules_of(rules)
    sizes = _sizes(responses.collected)
    labels = list(responses.database)
    rows = {}
    for rule in chosen:
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
            for rule in chosen
        ]
    table.attrs |= {"meaning": WHY, "epsilon": epsilon}
    return table


def rules_of(asked: Sequence[Rule | str]) -> list[Rule]:
    """Return rules, made of those that are texts; each once."""
    if isinstance(asked, str):
        raise InputTypeError(f"rules must be a sequence, found {asked!r}: give [{asked!r}]")
    found = [rule_of(one) if isinstance(one, str) else one for one in asked]
    for one in found:
        if not isinstance(one, Rule):
            raise InputTypeError(f"rules must be texts or Rule, found {type(one).__name__}")
    return list({one.name: one for one in found}.values())


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


def broken(contribution: Any, rules: Sequence[Rule]) -> list[str]:
    """Return the names of the rules that an answer breaks in some database.

    Contributions are sparse, of shape (database, individual), and everybody's.
    """
    sizes = _sizes(contribution)
    return [rule.name for rule in rules if any(rule.worst(one) < rule.least for one in sizes)]


def _sizes(contribution: Any) -> list[Array]:
    """Return the sizes of contributions to every database, falling."""
    matrix = abs(contribution.tocsr())
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return [np.sort(matrix.data[a:b][matrix.data[a:b] > 0.0])[::-1] for a, b in ends]


def _limit(audit: Audit, epsilon: float, prob: float) -> float:
    """Return the limit of delta; NaN where a check withholds it."""
    verdict = audit.verdict(epsilon=epsilon, prob=prob)
    return float("nan") if verdict.status == NOT_ESTABLISHED else verdict.limit


def _after(audit: Audit, rule: Rule, epsilon: float, prob: float, before: float) -> float:
    """Return the limit of delta of what a rule makes of the answer; NaN where it is not known."""
    if not rule.published or np.isnan(before):
        return before
    if audit.source is None or audit.joint or "released" in audit.settings:
        return float("nan")
    published = audit.released(**rule.published, progressbar=False)
    return min(_limit(published, epsilon, prob), before)
