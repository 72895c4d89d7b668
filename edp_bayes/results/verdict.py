"""The answer to a target (epsilon, delta): met, not met, undecided or not established.

Every sentence that claims something of a target is made here, so that the command line, summaries,
reports and pictures say the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.adversary.usual import PAST
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.results.bands import holds_limit
from edp_bayes.results.basis import on_what, resting
from edp_bayes.results.more_databases import Needed, needed
from edp_bayes.results.other_answers import other_answers_sentences
from edp_bayes.results.rounding import may_be_rounded, rounding_sentence
from edp_bayes.results.summaries import largest_and_spread
from edp_bayes.utils import validate
from edp_bayes.utils.formatting import (
    about,
    at_most,
    either,
    number,
    percent,
    risk,
    risk_least,
    risk_limit,
    rounded_up,
)

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.results.query import Audit

__all__ = [
    "MET",
    "NOT_ESTABLISHED",
    "NOT_MET",
    "STATUSES",
    "UNDECIDED",
    "Target",
    "Verdict",
    "exact_verdict",
    "no_less_than",
    "no_more_than_whole",
    "reach_verdict",
    "whole_curve",
]

MET, NOT_MET, UNDECIDED, NOT_ESTABLISHED = "met", "not met", "undecided", "not established"
STATUSES = (MET, NOT_MET, UNDECIDED, NOT_ESTABLISHED)

# The default target: this epsilon, and one over the number of individuals, for few of them this.
EPSILON, LARGEST_DELTA = 0.1, 0.1
# Where nobody is counted, as of a mechanism.
DELTA = 0.01
# Times the number of databases, the limit of an individual who was there once and contributed five
# standard deviations: 2.9 to 3.4 for 20 to 365 databases, by `edp_bayes.smallest_delta`.
ONCE = 3.3
KINDS = {
    "pointwise": "The limit is for this epsilon alone.",
    "simultaneous": "The limit is that of the whole curve, and holds at all epsilon at once.",
}


@dataclass(frozen=True)
class Target:
    """A target, and which of its numbers are defaults.

    Attributes
    ----------
    epsilon, delta : float
        What is asked for: delta(epsilon) is at most delta.
    defaults : tuple of str
        Which of both were not given.
    individuals : int or None
        How many there are, where the default of delta follows from them.

    See Also
    --------
    Verdict : whether a target is met
    Audit.verdict : the verdict of an audit

    Examples
    --------
    >>> Target.of(1000, epsilon=0.5)
    Target(epsilon=0.5, delta=0.001, defaults=('delta',), individuals=1000)
    """

    epsilon: float
    delta: float
    defaults: tuple[str, ...] = ()
    individuals: int | None = None

    @classmethod
    def of(
        cls,
        individuals: int | None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> Target:
        """Return the target given, or the default in place of what was not given.

        Parameters
        ----------
        individuals : int or None
            How many there are; None where nobody is counted, as of a mechanism.
        epsilon, delta : float, optional
            What is asked for.

        Raises
        ------
        InvalidInputError
            If epsilon is negative or delta does not lie in [0, 1).
        """
        defaults = tuple(
            name for name, given in (("epsilon", epsilon), ("delta", delta)) if given is None
        )
        usual = DELTA if individuals is None else min(1.0 / max(individuals, 1), LARGEST_DELTA)
        epsilon = EPSILON if epsilon is None else validate.number(epsilon, "epsilon")
        if epsilon < 0.0:
            raise InvalidInputError(f"epsilon of a target must not be negative, found {epsilon:g}")
        delta = usual if delta is None else validate.number(delta, "delta")
        if not 0.0 <= delta < 1.0:
            raise InvalidInputError(
                f"delta of a target must be at least 0 and below 1, found {delta:g}"
            )
        return cls(epsilon, delta, defaults, individuals)

    @property
    def words(self) -> str:
        """The target in words, and what of it is a default.

        Examples
        --------
        >>> Target(0.1, 0.01).words
        'The target is delta = 0.01 at epsilon = 0.1.'
        >>> Target(0.1, 0.0001, ("epsilon", "delta"), 10_000).words
        'The target is the default: epsilon = 0.1 and delta = 1.0e-4, one over 10,000 individuals.'
        """
        if not self.defaults:
            return f"The target is delta = {self.delta:.4g} at epsilon = {self.epsilon:.4g}."
        why = ""
        if "delta" in self.defaults:
            few = self.individuals is not None and self.individuals < 1.0 / LARGEST_DELTA
            if few:
                why = f", that of fewer than {1.0 / LARGEST_DELTA:.0f} individuals"
            elif self.individuals is not None:
                why = f", one over {self.individuals:,} individuals"
        said = f"epsilon = {self.epsilon:.4g} and delta = {risk(self.delta)}{why}"
        if len(self.defaults) == 2:
            return f"The target is the default: {said}."
        return f"The target is {said}; its {self.defaults[0]} is a default."


@dataclass(frozen=True)
class Verdict:
    """What a result answers to a target; `str` is the answer in sentences.

    Made by ``audit.verdict()``.

    Attributes
    ----------
    status : {"met", "not met", "undecided", "not established"}
        "met" where the upper limit of delta is at most the target, "not met" where the lower end of
        the band is above it, "undecided" where the band holds it. "not established" where a check
        that withholds failed, whatever the limit is.
    target : Target
        epsilon and delta, and which of them are defaults.
    prob : float
        Probability of the limit, and of the band.
    kind : {"pointwise", "simultaneous"}
        Whether both are for this epsilon alone or for the whole curve.
    limit, lower, upper, median : float
        Upper limit of delta at the target's epsilon, both ends of its band, posterior median.
    read_at : tuple of float
        The values of the grid at which limit and lower end were read: at the target's epsilon, or
        at its neighbours, both on the safe side. 0 and infinite beyond the ends of the grid, where
        the limit is 1 and the lower end 0.
    what : str
        What delta is, in words.
    against : str
        Against whom, in words: of the adversary, or of a person who knows no database where none
        was given.
    not_assumed : str
        Whom the command line would have assumed of databases in the order of time, in a sentence,
        where no adversary was given; else empty.
    withheld_by : tuple of str
        The checks that withhold a verdict.
    reason : str
        Why there is none, in a sentence.
    basis : str
        What the limit rests on, in sentences: the data, the shape of the distribution, the model.
    out_of_reach : str
        Why so few databases can hardly show the target of an individual who stood out, and of whom
        a smaller limit is; empty where they can.
    more : str
        How many databases would decide where it is undecided, in a sentence: of a plan where one
        was given, else by an estimate from the limit and the posterior median.
    decided_by : int or None
        That number; None where it is not known, or no number may show the target to be met.
    exact : bool
        Whether delta is computed rather than estimated.
    limit_said : str
        The limit in words.
    helping : callable
        Returns `helps`, which takes a while: it is asked for that alone.

    See Also
    --------
    Audit.verdict : whether a target is met
    edp_bayes.diagnostics.withheld : why there is no verdict
    remedies : what would help where a target is not met

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.1, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], draws=50, random_seed=1, progressbar=False
    ... )
    >>> verdict = audit.verdict(epsilon=0.1, delta=0.5)
    >>> verdict.status, verdict.limit < 0.5
    ('met', True)
    >>> audit.verdict(epsilon=0.1, delta=1e-6).status
    'not met'
    """

    status: str
    target: Target
    prob: float
    kind: str
    limit: float
    lower: float
    upper: float
    median: float
    read_at: tuple[float, float]
    what: str
    against: str = ""
    not_assumed: str = ""
    withheld_by: tuple[str, ...] = ()
    reason: str = ""
    basis: str = ""
    out_of_reach: str = ""
    more: str = ""
    decided_by: int | None = None
    exact: bool = False
    limit_said: str = ""
    helping: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def epsilon(self) -> float:
        """The epsilon of the target."""
        return self.target.epsilon

    @property
    def delta(self) -> float:
        """The delta of the target."""
        return self.target.delta

    @cached_property
    def helps(self) -> tuple[str, ...]:
        """What would help where the target is not met or undecided, in sentences."""
        return self.helping()

    @property
    def limit_shown(self) -> str:
        """The limit as a number: of a target that is met never above it."""
        return risk_limit(self.limit, target=self.delta)

    @property
    def claim(self) -> str:
        """The answer in one sentence, beginning with the status."""
        if self.status == NOT_ESTABLISHED:
            return self.reason
        where = f"at epsilon = {self.epsilon:.4g} the {self.what}"
        if self.against:
            where = f"against {self.against}, {where}"
        held = f"with {percent(self.prob)} probability"
        if self.exact:
            said = f"{where} is {about(self.limit, exact=True)}, computed exactly"
            return f"{'Met' if self.status == MET else 'Not met'}: {said}."
        if self.status == MET:
            return f"Met: {where} is {self.limit_said}, {held}."
        if self.status == NOT_MET:
            least = risk_least(self.lower, target=self.delta)
            return f"Not met: {where} is at least {least}, {held}."
        low = risk_least(self.lower)
        return (
            f"Undecided: {where} lies between {low} and {risk_limit(self.upper)}, {held}, and the "
            "target between them."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer, the target, the kind of the limit, and what else is to be said."""
        if self.status == NOT_ESTABLISHED:
            return (self.claim, self.target.words)
        said = [self.claim, self.target.words, "" if self.exact else KINDS[self.kind], self._read]
        said += [self.not_assumed, self.out_of_reach, self.more]
        return tuple(one for one in said if one)

    @property
    def _read(self) -> str:
        """At which epsilons it was read, where the target's is not in the grid."""
        left, right = self.read_at
        if left == right:
            return ""
        if left == 0.0:
            return f"The grid of epsilon begins at {right:.4g}, above that: no limit is known."
        if math.isinf(right):
            return f"The grid of epsilon ends below that: the limit is that at {left:.4g}."
        return (
            f"That epsilon is not in the grid: the limit is that at {left:.4g}, the lower end that "
            f"at {right:.4g}."
        )

    def __str__(self) -> str:
        """Return the answer in sentences."""
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        """Return the answer as a notebook shows it."""
        from html import escape

        first, *others = self.sentences
        more = [*others, *((self.basis,) if self.basis else ()), *self.helps]
        return f"<p><strong>{escape(first)}</strong></p>" + "".join(
            f"<p>{escape(sentence)}</p>" for sentence in more
        )


def exact_verdict(value: float, target: Target, what: str, against: str = "") -> Verdict:
    """Return the answer where delta is computed: it is met or not."""
    return Verdict(
        status=MET if value <= target.delta else NOT_MET,
        target=target,
        prob=1.0,
        kind="pointwise",
        limit=value,
        lower=value,
        upper=value,
        median=value,
        read_at=(target.epsilon, target.epsilon),
        what=what,
        against=against,
        exact=True,
    )


def no_less_than(
    part: str,
    status: str,
    epsilon: float | None = None,
    *,
    limit: float = math.nan,
    lower: float = math.nan,
    delta: float = math.nan,
    prob: float = math.nan,
    against: str = "",
) -> str:
    """Return what is said of several answers of which one alone is worse than all together.

    Of one without a limit there is none of all either. Where the target is not met it is the lower
    end of the band of that one which says so.
    """
    start = f"{status[0].upper()}{status[1:]}"
    if epsilon is None:
        return f"{start}. So it is of {part} alone."
    whom = f"against {against}, " if against else ""
    where, held = f"{start}: {whom}at epsilon = {epsilon:.4g}", f"with {percent(prob)} probability"
    if status == NOT_MET:
        least = risk_least(lower, target=delta)
        return f"{where} the risk from {part} alone is at least {least}, {held}: together no less."
    most = risk_limit(limit, target=delta)
    return f"{where} the limit of {part} alone is {most}, {held}: of all together it is no less."


def no_more_than_whole(verdict: Verdict, published: str) -> tuple[str, str]:
    """Return the status and the sentence of what is published of answers, from that of the whole.

    What is published tells no more than the whole answers: their limit holds. It may tell less:
    that they do not meet a target leaves open whether it does.

    Parameters
    ----------
    verdict : Verdict
        Of the whole answers.
    published : str
        What is published of them, in words.
    """
    if verdict.status == NOT_ESTABLISHED:
        return verdict.status, verdict.claim
    if verdict.status == NOT_MET:
        said = verdict.claim.removeprefix("Not met: ").removesuffix(".")
        left = f"what is left of that where they are {published} is not known"
        return UNDECIDED, f"Undecided: of the whole answers, {said}; {left}."
    more = f"That is of the whole answers: {published}, they tell no more."
    return verdict.status, f"{verdict.claim} {more}"


def whole_curve(result: PrivacyCurves, prob: float) -> tuple[str, ...]:
    """Return of every epsilon of the grid what the limit of the whole curve claims.

    As it is written beside a picture of delta, so that one may look before choosing epsilon.
    """
    limit = result.upper("delta", prob=prob, kind="simultaneous").to_numpy()
    middle = result.delta.median(("chain", "draw")).to_numpy()
    against, exact = result.settings.get("against"), result.exact_zeros
    what = _what(result)
    start, on = (f"Against {against}: at" if against else "At"), resting(result)
    return tuple(
        f"{start} ε = {epsilon:.4g} the {what} is "
        f"{at_most(high, exact=exact, resting=on)}, with {percent(prob)} probability; its median "
        f"is {about(half, exact=exact)}."
        for epsilon, high, half in zip(
            result.epsilon.to_numpy().tolist(), limit.tolist(), middle.tolist(), strict=True
        )
    )


def _what(result: PrivacyCurves) -> str:
    """Return what delta is, in words: of individuals, of how many."""
    if "individuals" not in result.tree.children:
        properties = len(result.settings.get("properties", ()))
        pairs = result.tree["posterior"].sizes.get("pair", 1)
        if properties > 1:
            return f"{result.risk} for the riskiest of {properties} properties"
        return f"{result.risk} for the worst of {pairs} pairs" if pairs > 1 else result.risk
    count = individuals_of(result) or 0
    single = count == 1
    whose = f"largest risk of any of {assessed_of(result)} individuals"
    if single:
        whose = "risk of the individual"
    if "released" in result.settings:
        whose = f"{whose} from the answer {result.settings['released']['words']}"
    return f"{whose} from all releases together" if "composition" in result.tree.children else whose


def individuals_of(result: PrivacyCurves) -> int | None:
    """Return how many individuals, or entries, a result is of; None where it counts none."""
    counted = result.settings.get("individuals")
    return None if counted is None else int(counted)


def assessed_of(result: PrivacyCurves) -> str:
    """Return of how many individuals a risk is, in words: who was seen in lags alone has none."""
    count = individuals_of(result) or 0
    left_out = int(result.settings.get("not_assessed", 0))
    return f"{count - left_out:,} of {count:,}" if left_out else f"{count:,}"


def reach_verdict(
    result: PrivacyCurves,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    prob: float,
    kind: str = "pointwise",
    plan: Any = None,
) -> Verdict:
    """Return the answer to a target; see `edp_bayes.results.base.PrivacyCurves.verdict`."""
    prob = validate.probability(prob, "prob")
    kind = validate.choice(kind, tuple(KINDS), "kind")
    target = Target.of(individuals_of(result), epsilon=epsilon, delta=delta)
    grid = result.epsilon.to_numpy()
    at, left, right = _places(grid, target.epsilon)
    band = result.band("delta", kind=kind, prob=prob)
    upper = result.upper("delta", kind=kind, prob=prob).to_numpy()
    limit = 1.0 if left < 0 else float(upper[left])
    lower = 0.0 if right == grid.size else float(band["lower"][right])
    _refuse_beyond_draws(result, prob)
    reason = result.withheld
    if reason is not None:
        status = NOT_ESTABLISHED
    elif limit <= target.delta:
        status = MET
    else:
        status = NOT_MET if lower > target.delta else UNDECIDED
    undecided = status == UNDECIDED
    more: Needed | None = None
    if undecided:
        more = _needed(result, target, limit, band, left)
        if plan is not None:
            more = _planned(plan, target)
    exact = result.exact_zeros
    return Verdict(
        status=status,
        target=target,
        prob=prob,
        kind=kind,
        limit=limit,
        lower=lower,
        upper=1.0 if left < 0 else float(band["upper"][left]),
        median=float(band["median"][at]),
        read_at=(
            0.0 if left < 0 else float(grid[left]),
            math.inf if right == grid.size else float(grid[right]),
        ),
        what=_what(result),
        against=result.against_whom,
        not_assumed=_not_assumed(result),
        withheld_by=result.withheld_by if reason is not None else (),
        reason=reason or "",
        basis=_basis(result, left, prob, kind),
        out_of_reach=_out_of_reach(result, target, limit) if undecided else "",
        more="" if more is None else more.sentence,
        decided_by=None if more is None else more.databases,
        limit_said=at_most(limit, exact=exact, resting=resting(result), target=target.delta),
        helping=(
            partial(_helps, result, target, left, prob=prob, kind=kind)
            if status in (NOT_MET, UNDECIDED)
            else tuple
        ),
    )


def _refuse_beyond_draws(result: PrivacyCurves, prob: float) -> None:
    """Refuse a probability of which the draws hold no quantile."""
    draws = result.delta.sizes["chain"] * result.delta.sizes["draw"]
    if draws > 1 and not holds_limit(draws, prob):
        needed = math.ceil(round(1.0 / (1.0 - prob), 6))
        raise InvalidInputError(
            f"prob = {prob:g} needs at least {needed:,} draws, found {draws:,}: audit with more "
            "draws (draws=), or take a smaller prob"
        )


def _places(grid: np.ndarray, epsilon: float) -> tuple[int, int, int]:
    """Return where in a grid the median, a limit and a lower end of some epsilon are read.

    delta never rises with epsilon, so that the limit at a smaller epsilon and the lower end at a
    larger one are safe. -1 and the size where the grid has none.
    """
    near = int(np.argmin(np.abs(grid - epsilon)))
    if math.isclose(float(grid[near]), epsilon, rel_tol=1e-9, abs_tol=1e-12):
        return near, near, near
    right = int(np.searchsorted(grid, epsilon))
    return max(right - 1, 0), right - 1, right


def _not_assumed(result: PrivacyCurves) -> str:
    """Return whom a sibling of this audit is against by default; empty where that is nobody."""
    who = result.settings.get("not_assumed")
    if not who:
        return ""
    return (
        "Not assumed: that anybody knows earlier answers. By default the command line assumes "
        f"{who}: adversary=edp.Adversary(past={PAST}, trend=True)."
    )


def _basis(result: PrivacyCurves, at: int, prob: float, kind: str) -> str:
    from edp_bayes.results.query import Audit

    if not isinstance(result, Audit) or "individuals" not in result.tree.children:
        return ""
    if result.withheld is not None or at < 0:
        return ""
    return on_what(result, prob, kind=kind)[at]


def _out_of_reach(result: PrivacyCurves, target: Target, limit: float) -> str:
    """Return that so few databases can hardly show the target of an individual who stood out.

    A limit may be smaller, of individuals of whom none did: then both say of whom they are.
    """
    groups = result.tree.children
    if "individuals" not in groups or "composition" in groups:
        return ""
    databases = int(result.settings["databases"])
    least = ONCE / databases
    if least <= target.delta:
        return ""
    here = (
        " The limit here is smaller: it is that of the individuals in these data, not of one who "
        "stands out so."
    )
    return (
        f"The target is out of reach of {databases:,} databases for an individual who contributed "
        f"several standard deviations of the answer, if only once: they show no limit below about "
        f"{least:.2g} (edp_bayes.smallest_delta).{here if limit < least else ''}"
    )


def _needed(
    result: PrivacyCurves, target: Target, limit: float, band: xr.Dataset, at: int
) -> Needed | None:
    """Return how many databases would decide, None where a result is of no databases."""
    groups = result.tree.children
    if at < 0 or "individuals" not in groups or "composition" in groups:
        return None
    median, lower = float(band["median"][at]), float(band["lower"][at])
    return needed(limit, median, lower, target.delta, int(result.settings["databases"]))


def _planned(plan: Any, target: Target) -> Needed:
    """Return the number and the sentence of a plan, which must be one of the same delta."""
    if getattr(plan, "limits", None) is None:
        raise InputTypeError(f"plan must be what edp_bayes.plan returned, found {plan!r}")
    if plan.delta != target.delta:
        raise InvalidInputError(
            f"plan must be one of delta = {target.delta:g}, as the target, found {plan.delta}: "
            "plan with delta= that of the target"
        )
    return Needed(plan.databases, str(plan))


def _helps(
    result: PrivacyCurves, target: Target, at: int, *, prob: float, kind: str
) -> tuple[str, ...]:
    """Return what was tried for this target, or what may help: noise and rounding, with figures."""
    from edp_bayes.results.query import Audit

    if not isinstance(result, Audit) or "individuals" not in result.tree.children:
        return ()
    tried = result.tree.attrs.get("tried")
    if tried is not None:
        record = json.loads(tried)
        if (record["epsilon"], record["delta"]) == (target.epsilon, target.delta):
            return tuple(record["sentences"])
    known = result.rounding if at >= 0 else None
    rounding = "" if known is None else rounding_sentence(known, target, at, prob=prob, kind=kind)
    others = None if at < 0 else result.other_answers
    found = (
        {}
        if others is None
        else dict(other_answers_sentences(others, target, at, prob=prob, kind=kind))
    )
    more = _more(result, {*found, *(["rounding"] if rounding else [])})
    return tuple(filter(None, (_noise(result, target), rounding, *found.values(), more)))


def _more(result: Audit, found: set[str]) -> str:
    """Return what else may help, of which no figure was found."""
    whole = may_be_rounded(result)
    tries = (
        "edp_bayes.remedies (--remedies) tries what may help on the data."
        if whole
        else "edp_bayes.audit says what another query leaves."
    )
    fits = [kind for kind in ("period", "limit") if kind not in found]
    left = [{"period": "a coarser period", "limit": "another query"}[kind] for kind in fits]
    if whole and "rounding" not in found:
        left = ["rounding (released)", *left]
    if not left:
        return tries
    said = either(left)
    said = f"{said[0].upper()}{said[1:]} may do."
    if not fits:
        return f"{said} {tries}"
    of = either({"period": "a period", "limit": "a query"}[kind] for kind in fits)
    said += (
        f" Of {of} there is no figure here, because each takes a fit of its own: seconds for few "
        "individuals, minutes for many (edp_bayes.audit)."
    )
    return f"{said} {tries}" if whole else said


def _noise(result: Audit, target: Target) -> str:
    """Return which Laplace noise is always enough; empty where that is not known."""
    need = largest_and_spread(result)
    if need is None or target.epsilon == 0.0:
        return ""
    largest, spread = rounded_up(need[0]), need[1]
    scale = largest / target.epsilon
    times = math.sqrt(2.0) * scale / spread if spread > 0.0 else math.inf
    # calibrated against the density of the answer itself, without atoms
    whole = not (result.transform or result.at_atoms)
    less = " edp_bayes.noise.calibrate finds how much less does." if whole else ""
    return (
        f"Laplace noise of scale {number(scale, 3)} on the answer is enough as long as nobody "
        f"contributes more than {number(largest)}: its standard deviation is {number(times, 3)} "
        f"times that of the answers.{less}"
    )
