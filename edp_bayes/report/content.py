"""What a report holds: plain numbers and words, without a trace of how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edp_bayes.results.verdict import Verdict

__all__ = [
    "Band",
    "CheckRow",
    "Content",
    "Crossing",
    "Curve",
    "Distributions",
    "Enough",
    "Fact",
    "Histogram",
    "IntervalRow",
    "LocalEpsilon",
    "NoiseFound",
    "PageOne",
    "People",
    "Person",
    "PropertyRow",
    "RiskRow",
    "RuleRow",
    "RulesHeld",
    "SeenSeries",
    "TotalRisk",
]

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Band:
    """Both ends of a band, one number a point."""

    lower: Numbers
    upper: Numbers


@dataclass(frozen=True)
class Curve:
    """A curve over epsilon (or over x), with its bands where it is uncertain."""

    median: Numbers
    pointwise: Band | None = None
    simultaneous: Band | None = None

    @property
    def widest(self) -> Band | None:
        """The simultaneous band where there is one, else the pointwise one."""
        return self.simultaneous or self.pointwise

    @property
    def least(self) -> Numbers:
        """The lower end of the widest band, or the curve itself where it is exact."""
        return self.median if self.widest is None else self.widest.lower


@dataclass(frozen=True)
class TotalRisk:
    """delta*, and the upper end of the simultaneous band of min(1, sum_i delta_i).

    The lower bound is the lower end of the privacy curve's band.
    """

    curve: Curve
    bound: Numbers


@dataclass(frozen=True)
class Crossing:
    """The epsilon at which delta falls to a target; infinite beyond the grid.

    `words` say lower end, median and upper end, or the exact number alone.
    """

    target: float
    lower: float | None
    median: float
    upper: float | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class LocalEpsilon:
    """The local epsilon of a mechanism; `name` is None for the worst of all pairs."""

    name: str | None
    lower: float
    median: float
    upper: float
    infinite: float


@dataclass(frozen=True)
class IntervalRow:
    """Probability of an answer within a relative width of its median.

    Lower end, median and upper end of the probability.
    """

    width: float
    level: tuple[float, float, float]


@dataclass(frozen=True)
class PropertyRow:
    """Lower end, median and upper end of a property's probability and of its delta."""

    name: str
    prob: tuple[float, float, float]
    delta: tuple[float, float, float]


@dataclass(frozen=True)
class Person:
    """One individual in the table.

    `interval` is the equal-tailed interval and the median of the draws where they were kept;
    all others have the posterior median alone.
    """

    name: str
    presence: int
    last_seen: str
    contribution: float
    median: float
    interval: tuple[float, float, float] | None
    median_at_first: float


@dataclass(frozen=True)
class Histogram:
    """Individuals outside of the table, counted by the power of ten of their median risk.

    `counts[k]` lie in [10**exponents[k], 10**exponents[k + 1]); `without` are below 1e-12.
    """

    exponents: tuple[int, ...]
    counts: tuple[int, ...]
    without: int


@dataclass(frozen=True)
class People:
    """The riskiest individuals by falling median risk, and a histogram of the rest.

    `contributes` tells whether contributions are as they were made or adjusted.
    """

    rows: tuple[Person, ...]
    total: int
    rest: Histogram
    contributes: str = "largest contribution"


@dataclass(frozen=True)
class Distributions:
    """Densities with and without one individual, and the logarithm of their ratio.

    `axis` says of what they are.
    """

    name: str
    x: Numbers
    present: Curve
    absent: Curve
    ratio_x: Numbers
    ratio: Curve
    axis: str = "answer"


@dataclass(frozen=True)
class SeenSeries:
    """Responses an adversary has seen, in their order, and what was expected of each.

    `first` is the number of the first database with an expectation, `at` the place of the one in
    question among these, which has no response if it is the next; `less` tells that what insiders
    contributed is subtracted, `query` names one of several, `axis` says what is shown. `dates` are
    those of the databases, with the one in question, where their keys are dates.
    """

    responses: Numbers
    first: int
    median: Numbers
    inner: Band
    inner_prob: float
    outer: Band
    at: int
    label: str
    less: bool
    query: str = ""
    axis: str = "answer"
    dates: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoiseFound:
    """A distribution of noise that was calibrated."""

    distribution: str
    method: str
    epsilon: float | None
    delta: float | None
    absolute: float
    deviation: float
    reached: float | None
    message: str


@dataclass(frozen=True)
class Enough:
    """Laplace noise that is always enough: its scale at each epsilon, and the response's spread.

    The scale is infinite at epsilon = 0; `largest` is the largest contribution seen.
    """

    largest: float
    scale: Numbers
    spread: float


@dataclass(frozen=True)
class CheckRow:
    """One check in plain words; passed is None where it could not be made.

    `effect` says whether a failure withholds the verdict or advises.
    """

    name: str
    passed: bool | None
    sentence: str
    effect: str


@dataclass(frozen=True)
class Fact:
    """What the first page says of the release, under its name."""

    name: str
    words: str


@dataclass(frozen=True)
class RuleRow:
    """A rule of disclosure control: whether it passes, and the limit of delta before and after."""

    rule: str
    passed: str
    before: str
    after: str


@dataclass(frozen=True)
class RulesHeld:
    """The rules that every database was held to, at which epsilon, and what they mean."""

    rows: tuple[RuleRow, ...]
    epsilon: float
    meaning: str


@dataclass(frozen=True)
class RiskRow:
    """One of the three risks of the first page: its number, band, meaning, basis and status."""

    risk: str
    number: str
    band: str
    meaning: str
    basis: str
    status: str


@dataclass(frozen=True)
class PageOne:
    """The first page, which is signed.

    `withholding` and `advising` name the checks that failed; `tried` is what was done against the
    risk, with what it costs.
    """

    facts: tuple[Fact, ...]
    rows: tuple[RiskRow, ...]
    withholding: tuple[str, ...] = ()
    advising: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    fingerprint: str = ""
    prepared_by: str = ""
    next_review: str = ""


@dataclass(frozen=True)
class Content:
    """Everything that a report says.

    Attributes
    ----------
    title : str
        What was audited.
    kind : {"query", "composition", "mechanism", "property"}
        Whose privacy: that of individuals behind a query or several releases, of a sampler, of a
        property query.
    prob : float
        Probability of every limit, band and interval.
    epsilon : tuple of float
        The grid shown.
    at : int
        Position in the grid of the epsilon of the target, or of the next one below.
    verdict : Verdict
        The answer to the target.
    first : PageOne or None
        The first page; None for a curve that is computed.
    claims : tuple of str
        What the limit of the whole curve claims at every epsilon; empty where it is exact.
    curve : Curve
        delta over epsilon.
    limit : tuple of float or None
        One-sided upper limit of delta as a whole curve; None where it is exact.
    exact_zeros : bool
        Whether a risk of zero is that.
    resting : str
        What a limit rests on that is too small to be known.
    basis : tuple of str
        What the limit rests on at every epsilon of the grid, in sentences; empty where it is not
        distinguished.
    withheld : str or None
        Why there is no verdict.
    against : str or None
        Against whom, where an adversary was given.
    seen : tuple of SeenSeries
        What the adversary has seen, where there is one: one of each query.
    words : tuple of str
        What the curve means for tests and guesses.
    rules : RulesHeld or None
        Customary rules beside delta, where asked for.
    pseudonyms : str or None
        How the names were replaced; None where they are shown or there are none.
    settings : tuple of (str, str)
        Every setting, version, seed and fingerprint.
    """

    title: str
    kind: str
    prob: float
    epsilon: Numbers
    at: int
    curve: Curve
    crossings: tuple[Crossing, ...]
    verdict: Verdict
    assumptions: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    total: TotalRisk | None = None
    local: tuple[LocalEpsilon, ...] = ()
    properties: tuple[PropertyRow, ...] = ()
    people: People | None = None
    distributions: tuple[Distributions, ...] = ()
    intervals: tuple[IntervalRow, ...] = ()
    noise: tuple[NoiseFound, ...] = ()
    enough: Enough | None = None
    checks: tuple[CheckRow, ...] = ()
    pseudonyms: str | None = None
    limit: Numbers | None = None
    claims: tuple[str, ...] = ()
    first: PageOne | None = None
    exact_zeros: bool = False
    resting: str = ""
    basis: tuple[str, ...] = ()
    withheld: str | None = None
    against: str | None = None
    seen: tuple[SeenSeries, ...] = ()
    words: tuple[str, ...] = ()
    rules: RulesHeld | None = None

    @property
    def failed(self) -> tuple[CheckRow, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def untested(self) -> tuple[CheckRow, ...]:
        """The checks that could not be made."""
        return tuple(check for check in self.checks if check.passed is None)

    @property
    def exact(self) -> bool:
        """Whether the curve is computed rather than estimated."""
        return self.curve.widest is None
