"""What would help where a target is not met, tried on the data: `edp.remedies`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.auditing.other_answers import of_longer
from edp_bayes.distributions.noise import GaussianNoise
from edp_bayes.exceptions import EdpBayesError, EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.responses.changed import cuts, limited, require_sum, together
from edp_bayes.responses.responses import Responses
from edp_bayes.responses.rounding import moved_by, rounding_steps
from edp_bayes.results.query import Audit, require_audit_of
from edp_bayes.results.tried import Remedy, Tried
from edp_bayes.results.verdict import MET, Verdict
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import number
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.models.base import DensityModel

__all__ = ["REMEDIES", "remedies"]

# What is tried beside steps of rounding: standard deviations of noise, in those of the answers;
# and databases that become one.
NOISE = (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
PERIODS = (2, 4)


def remedies(
    audit: Audit,
    responses: Responses,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    prob: float = PROB,
    kinds: tuple[str, ...] | None = None,
    model: DensityModel | None = None,
    adversary: Adversary | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Tried:
    """Try what would help where a target is not met: rounding, noise, a longer period, a limit.

    Of every kind the mildest is looked for that meets the target; where none does, that of the
    smallest limit is returned.

    Parameters
    ----------
    audit : Audit
        Of one query, with its fit: as `edp_bayes.audit` returns it.
    responses : Responses
        That were audited.
    epsilon, delta : float, optional
        The target, as for ``audit.verdict``.
    prob : float
        Probability of the limits.
    kinds : tuple of str, optional
        Which are tried, all by default. "rounding": steps of 1, 2 or 5 times a power of ten, from a
        fifth of a standard deviation of the answers to five of them, to multiples of the step;
        "noise": Gaussian noise of a fifth of that deviation to ten of it, of which
        `edp_bayes.noise.calibrate` finds how much precisely; "period": 2 or 4 databases in the
        order of time become one; "limit": nobody counts for more than a quantile of all
        contributions (0.99, 0.9, 0.5), in size. The last two are for sums. Noise on answers
        between which there is no grid, and these two, are audits of their own.
    model, adversary
        As the audit had them, for audits of their own.
    progressbar : bool
        Show progress.
    **options
        More of `edp_bayes.audit`, for audits of their own: draws, chains, random_seed.

    Returns
    -------
    Tried
        A table with a row for each kind, and sentences. ``audit.with_tried`` makes verdicts and
        reports say them.

    Raises
    ------
    InvalidInputError, InputTypeError
        If the audit is of other responses or has no fit, or a kind is unknown.

    See Also
    --------
    edp_bayes.noise.calibrate : the least noise for a target
    Audit.verdict : whether a target is met
    Audit.releases_until : how many releases stay within a target
    edp_bayes.auditing.planning.plan : how many databases are needed

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 6))
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1), contribution=contribution,
    ...     additive=True,
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1], draws=50, random_seed=1, progressbar=False
    ... )
    >>> found = edp.remedies(
    ...     audit, responses, delta=0.05, kinds=("rounding",), progressbar=False
    ... )
    >>> found.table.index.tolist()
    ['rounding']
    """
    _require(audit, responses)
    chosen = tuple(REMEDIES) if kinds is None else tuple(kinds)
    if unknown := [kind for kind in chosen if kind not in REMEDIES]:
        raise InvalidInputError(
            f"kinds must be among {', '.join(REMEDIES)}, found {', '.join(map(str, unknown))}"
        )
    given = _Given(audit, responses, epsilon, delta, prob, model, adversary, options)
    rows = []
    for kind in track(chosen, "Remedies", total=len(chosen), show=progressbar):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdpBayesWarning)
            rows.append(_mildest(kind, REMEDIES[kind](given)))
    return Tried(tuple(rows), given.target.target, prob, responses.n_databases)


@dataclass(frozen=True, eq=False)
class _Given:
    """What was audited, and what for."""

    audit: Audit
    responses: Responses
    epsilon: float | None
    delta: float | None
    prob: float
    model: DensityModel | None
    adversary: Adversary | None
    options: dict[str, Any]

    def verdict(self, audit: Audit) -> Verdict:
        """Return what another audit answers to the target."""
        target = self.target
        return audit.verdict(epsilon=target.epsilon, delta=target.delta, prob=self.prob)

    def again(self, responses: Responses) -> Verdict:
        """Return the verdict of an audit of other responses."""
        from edp_bayes.auditing.query import audit

        found = audit(
            responses,
            epsilon=self.audit.epsilon.to_numpy(),
            model=self.model,
            adversary=self.adversary,
            progressbar=False,
            **self.options,
        )
        return self.verdict(found)

    @cached_property
    def target(self) -> Verdict:
        """The verdict of the answer itself."""
        return self.audit.verdict(epsilon=self.epsilon, delta=self.delta, prob=self.prob)

    @property
    def spread(self) -> float:
        """The standard deviation of the answers."""
        return float(self.responses.response.std())


def _mildest(kind: str, tried: Iterator[Remedy]) -> Remedy:
    """Return the first that meets the target, else that of the smallest limit."""
    found: list[Remedy] = []
    why = "there is nothing of the kind to try"
    try:
        for one in tried:
            if one.status == MET:
                return one
            found.append(one)
    except EdpBayesError as error:
        why = str(error)
    if not found:
        return Remedy(kind, "", None, math.nan, 0, why)
    return min(found, key=lambda one: (math.isnan(one.limit), one.limit))


def _rounding(given: _Given) -> Iterator[Remedy]:
    y, n = given.responses.response, given.responses.n_databases
    for size in rounding_steps(given.spread, _step(given.responses)):
        rounded = given.audit.released(rounded_to=size, progressbar=False)
        what = f"rounding to {number(size)}"
        yield Remedy("rounding", what, given.verdict(rounded), moved_by(y, size), n)


def _step(responses: Responses) -> float | None:
    """Return the step of the grid on which answers lie."""
    return float(responses.step) if responses.step is not None else None


def _noise(given: _Given) -> Iterator[Remedy]:
    """Yield the least noise of a ladder that meets the target, found by halving the ladder."""
    tried: dict[int, Remedy] = {}
    low, high = 0, len(NOISE) - 1
    while low < high:
        middle = (low + high) // 2
        tried[middle] = _with_noise(given, NOISE[middle])
        low, high = (low, middle) if tried[middle].status == MET else (middle + 1, high)
    yield tried.get(high) or _with_noise(given, NOISE[high])


def _with_noise(given: _Given, share: float) -> Remedy:
    """Return what Gaussian noise of a share of the answers' standard deviation leaves."""
    responses = given.responses
    deviation = share * given.spread
    noise = GaussianNoise(deviation)
    step = _step(responses)
    if step:
        found = given.audit.released(rounded_to=step, noise_after=noise, progressbar=False)
        verdict = given.verdict(found)
    else:
        verdict = given.again(responses.replaced(noise=noise))
    what = f"Gaussian noise of standard deviation {number(deviation)}"
    return Remedy("noise", what, verdict, share, responses.n_databases)


def _period(given: _Given) -> Iterator[Remedy]:
    from edp_bayes.adversary.timeline import Timeline

    require_sum(given.responses)
    timeline = Timeline.of(given.responses.database)
    timeline.require_order("a longer period")
    for count in PERIODS:
        longer = together(given.responses, count)
        knowing = replace(given, adversary=of_longer(given.adversary, count))
        verdict, what = knowing.again(longer), f"{count} databases in one"
        yield Remedy("period", what, verdict, math.nan, longer.n_databases)


def _limit(given: _Given) -> Iterator[Remedy]:
    responses = given.responses
    require_sum(responses)
    sizes = np.abs(responses.contribution.data)
    for most in dict.fromkeys(cuts(sizes, _step(responses))):
        less = limited(responses, most)
        moved = _moves(less.response - responses.response, given)
        yield Remedy(
            "limit",
            f"nobody counts for more than {number(most)}",
            given.again(less),
            moved,
            responses.n_databases,
        )


def _moves(moved: Array, given: _Given) -> float:
    return float(np.sqrt(np.mean(moved**2))) / given.spread


REMEDIES: dict[str, Callable[[_Given], Iterator[Remedy]]] = {
    "rounding": _rounding,
    "noise": _noise,
    "period": _period,
    "limit": _limit,
}


def _require(audit: Audit, responses: Responses) -> None:
    if not isinstance(responses, Responses):
        raise InputTypeError(
            "remedies are for one query: audit each query on its own, and give its Responses"
        )
    require_audit_of(audit, responses)
    if audit.source is None:
        raise InvalidInputError(
            "remedies are tried with the fit of an audit, and this one was loaded from a file or "
            "made without: audit again"
        )
