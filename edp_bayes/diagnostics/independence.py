"""Whether the databases are independent draws of one distribution that no one individual rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.adversary.adversary import CALENDAR, Adversary
from edp_bayes.adversary.advice import advised, advised_more
from edp_bayes.diagnostics.checks import Check, Checks, PendingTest, decide, threshold
from edp_bayes.distributions.kernel_estimates import robust_spread
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.atoms import places
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["DatabaseChecks", "StatedPresence", "check_databases"]

type Wanted = tuple[str, tuple[Adversary, ...]]
# Takes positions of individuals, and returns how probable it is that they are in each database,
# given the response without them: shape (n, m).
type StatedPresence = Callable[[NDArray[np.int64]], Array]
type Advice = Callable[[float, str, tuple[Adversary, ...]], str]

LEVEL = 0.05
MAX_TIES = 0.1
MAX_SHARE = 0.25
MAX_RATIO = 5.0
WATCHED = 100  # individuals whose presence is compared with the rest
MOST_EXACT, MOST_RANKED = 12, 500  # databases with an individual, of how many, for exact p-values
LEAST_ADDED = 0.5  # of the upper limit of the largest risk, by coming with the rest
LEAST_GAP = 0.5  # of the range of the amounts of an individual, between the two that they give
LEAST_CHANCE = 1e-6  # of being in a database, or not: a model that is sure may be wrong
LEAST_SEEN = 2  # databases with and without an individual, where tests are made together
ALIKE = (
    "The bands assume independent databases and are likely too narrow, and a person who has seen "
    "the earlier answers knows more"
)
OPPOSED = (
    "The bands assume independent databases, and a person who has seen the earlier answers knows "
    "more"
)
REPEATS = (
    "The bands assume independent databases and may be too narrow; a person who knows what "
    "repeats, a season for one, knows more than they allow for"
)
BY_LEVEL = (
    "One spread is taken for all levels, so that risks are too small where little is expected."
)
AS_IT_IS = (
    "Where amounts grow with the level model its logarithm (transform='log', --transform log)."
)
ON_SCALE = "On another scale (transform=, --transform), or over longer periods, they may be alike."
LEFT = "The bands assume that databases are independent given what the adversary knows."
COMES_AND_GOES = (
    "No model here knows that within a component, and risks may be larger: give what both follow "
    "as covariates, adversary=Adversary(covariates=...), --covariates."
)
ONE_DISTRIBUTION = "The bands assume that all databases follow one distribution"
ONE_GIVEN = (
    "The bands assume that all databases follow one distribution given what the adversary knows: "
    "a trend, a changing scale or covariates may be missing."
)
# Whom to audit against, the most wanted first, where databases are alike, opposed or repeat, and
# where they drift.
PAST = (
    Adversary(past=2, trend=True),
    Adversary(past=1, trend=True),
    Adversary(past=1),
)
RELEASES = (Adversary(past=2), Adversary(past=1))
SEASON = (
    Adversary(past=4, season=CALENDAR),
    Adversary(past=4),
    *RELEASES,
)
DRIFT = (Adversary(trend=True, changing_scale=True), Adversary(trend=True))
SPREAD = (*DRIFT[:1], Adversary(changing_scale=True))


@dataclass(frozen=True)
class DatabaseChecks(Checks):
    """Outcome of `check_databases`: checks, level, passed, warnings and a table.

    See Also
    --------
    check_databases : whether the databases look independent
    PredictiveChecks : the outcome for the model

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes.responses.responses import Responses
    >>> y = np.random.default_rng(1).normal(10.0, 1.0, 60)
    >>> checks = check_databases(Responses.from_arrays(y, response_without=y - 0.01))
    >>> isinstance(checks, DatabaseChecks), checks.passed
    (True, True)
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences of the checks that failed; that of Ljung-Box also tells the lag-1 value."""
        failed = {check.name: check.sentence for check in self.checks if not check.passed}
        if "Ljung-Box" in failed:
            failed.pop("lag-1 autocorrelation", None)
        return tuple(failed.values())


def check_databases(
    responses: Responses,
    *,
    level: float = LEVEL,
    scores: Array | None = None,
    past: int = 0,
    regressors: int = 0,
    queries: int = 1,
    records: Responses | None = None,
    least: float = 0.0,
    expected: Array | None = None,
    stated: StatedPresence | None = None,
) -> DatabaseChecks:
    """Check that the databases look independent and identically distributed.

    Tests of order: lag-1 autocorrelation, Ljung-Box over min(10, n // 5) lags, Mann-Kendall
    trend, and the first half of the databases against the second in distribution
    (Kolmogorov-Smirnov) and in spread (Brown-Forsythe). A test of presence, where an individual is
    sometimes absent: the responses without them, in the databases in which they contribute against
    the others (Wilcoxon's rank sum, exact where either are few), for the 100 individuals who can
    matter most by contribution and presence, weighted by that; it fails, too, where the databases
    depend on each other. A test of amounts, likewise, where an individual gives a little in some
    databases and much in others, with nothing between. Holm's correction keeps the probability of
    any false alarm among all these at about the level. Apart from them those who are in one
    database alone, or absent from one alone, are compared likewise, at the level for themselves:
    corrected for all, no single database could fail. Given what an adversary knows, the sizes of
    residuals are tested against what is expected (Spearman's rank correlation): one spread is taken
    for all.
    Thresholds, without p-values: at most 10% of the responses tied; no individual above 25% of the
    size of a response in any database; no individual's largest contribution above 5 times that of
    the next.

    The order of the databases is the order of the responses. Several responses of one database
    are averaged before the tests of order.

    Parameters
    ----------
    responses : Responses
        Leave-one-out responses.
    level : float
        Family-wise level of the tests.
    scores : ndarray, optional
        Shape (n,): normal scores of the residuals, given what an adversary knows; the tests of
        order look at these.
    past : int
        Lags of the response among what they know: as many degrees of freedom Ljung-Box loses.
    regressors : int
        All that they know of each database: says what more they may be given.
    queries : int
        Queries that are published together.
    records : Responses, optional
        The responses as they were, where `responses` are those of the database in question. Ties
        and the largest contributions are those of records.
    least : float
        Presence is of no account where it can add no more than half of this to an individual's
        risk: the smallest upper limit of delta.
    expected : ndarray, optional
        Shape (n,): the answer that the adversary expects in every database, but for a constant.
    stated : callable, optional
        Takes positions of individuals, and returns how probable a model says they are in each
        database given the response without them, shape (n, m). The test of presence then asks
        whether they follow the rest otherwise than that: sums of ranks are compared with those
        that the model expects, by normal approximation.

    Returns
    -------
    DatabaseChecks
        Every check with statistic, p-value, outcome and a sentence.

    Raises
    ------
    InvalidInputError
        If the mean responses of all databases are equal or the level is no probability.

    See Also
    --------
    DatabaseChecks : the outcome for the databases
    posterior_predictive_check : whether the model fits the responses
    edp_bayes.Adversary : what is known beside the releases

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes.diagnostics import check_databases
    >>> from edp_bayes.responses.responses import Responses
    >>> y = np.cumsum(np.random.default_rng(1).normal(size=40))
    >>> checks = check_databases(Responses.from_arrays(y, response_without=y - 0.01))
    >>> checks["Ljung-Box"].passed
    False
    """
    level = validate.probability(level, "level")
    y = database_means(responses)
    if np.ptp(y) == 0:
        raise InvalidInputError(
            f"the mean response must vary between databases, found {y[0]:g} in all {y.size}"
        )
    order = y if scores is None else scores
    given = scores is not None

    def advice(p: float, why: str, wanted: tuple[Adversary, ...]) -> str:
        if p > level:  # passes whatever the other tests say
            return ""
        if given:
            return f"{why} {advised_more(y.size, regressors, queries=queries)}"
        return advised(responses, wanted, queries=queries, why=why)

    tests = (
        *_dependence(order, advice, past=past, given=given),
        *_drift(order, advice, given=given),
        *_presence(responses, y, least, stated),
    )
    once = _presence_once(responses, y, least)
    raw = responses if records is None else records
    checks = (
        *decide(tests, level),
        *decide(once, level),  # two of n at best, which no correction would leave below the level
        *decide(_level(order, expected, scaled=raw.scale is not None), level),
        _ties(raw),
        *_dominance(raw),
    )
    return DatabaseChecks(checks, level)


def database_means(responses: Responses) -> Array:
    """Return one response a database, the mean of its samples, shape (n,)."""
    return responses.response.reshape(-1, responses.samples).mean(axis=1)


def lag_one(y: Array) -> tuple[float, float]:
    """Return the lag-1 autocorrelation and its two-sided p-value, by normal approximation.

    References
    ----------
    Dufour, Roy (1985), Some robust exact results on sample autocorrelations and tests of
    randomness, Journal of Econometrics 29, 257-273: exact mean -1 / n for exchangeable data,
    and the exact variance for normal data.
    """
    from scipy.special import ndtr

    n = y.size
    centred = y - y.mean()
    correlation = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum())
    variance = (n**4 - 4 * n**3 + 3 * n**2 + 4 * n - 4) / ((n + 1) * n**2 * (n - 1) ** 2)
    z = (correlation + 1 / n) / np.sqrt(variance)
    return correlation, float(2 * ndtr(-abs(z)))


def ljung_box(y: Array, lags: int, *, fitted: int = 0) -> tuple[float, float]:
    """Return the statistic of Ljung and Box (1978) over some lags and its p-value.

    Lags that were fitted take degrees of freedom.
    """
    from scipy.special import chdtrc

    n = y.size
    centred = y - y.mean()
    products = np.array([centred[lag:] @ centred[:-lag] for lag in range(1, lags + 1)])
    correlations = products / (centred @ centred)
    statistic = n * (n + 2) * (correlations**2 / (n - np.arange(1, lags + 1))).sum()
    return float(statistic), float(chdtrc(max(lags - fitted, 1), statistic))


def _dependence(
    y: Array, advice: Advice, *, past: int, given: bool
) -> tuple[PendingTest, PendingTest]:
    correlation, p_lag = lag_one(y)
    lags = max(1, min(10, y.size // 5))
    statistic, p_ljung = ljung_box(y, lags, fitted=past)
    words = f"lag-1 autocorrelation {correlation:.2f}"
    neighbouring: Wanted = (ALIKE, PAST) if correlation > 0 else (OPPOSED, RELEASES)
    beyond: Wanted = neighbouring if p_lag < LEVEL else (REPEATS, SEASON)
    if given:
        neighbouring = beyond = (LEFT, ())
    neighbours = "Residuals of neighbouring" if given else "Neighbouring"
    return (
        PendingTest(
            "lag-1 autocorrelation",
            correlation,
            p_lag,
            words,
            f"{neighbours} databases are {'alike' if correlation > 0 else 'opposed'}",
            advice(p_lag, *neighbouring),
        ),
        PendingTest(
            "Ljung-Box",
            statistic,
            p_ljung,
            f"{words}, Ljung-Box over {lags} lags",
            f"The {'residuals of the ' if given else ''}databases are not independent",
            advice(p_ljung, *beyond),
        ),
    )


def _drift(
    y: Array, advice: Advice, *, given: bool
) -> tuple[PendingTest, PendingTest, PendingTest]:
    from scipy import stats

    tau, p_trend = (float(v) for v in stats.kendalltau(np.arange(y.size), y))
    early, late = y[: y.size // 2], y[y.size // 2 :]
    with warnings.catch_warnings():
        # SciPy says so where ties leave its exact sum without a result and it takes the limit.
        warnings.simplefilter("ignore", RuntimeWarning)
        distance, p_distribution = (float(v) for v in stats.ks_2samp(early, late))
    spread, p_spread = _brown_forsythe(early, late)
    why = ONE_GIVEN if given else ONE_DISTRIBUTION
    what, half, differ, are = (
        ("residuals", "Residuals of the first half of the databases", "differ from those of", "are")
        if given
        else ("responses", "The first half of the databases", "differs from", "is")
    )
    like = f"{are} not spread like {'those of ' if given else ''}the second"
    return (
        PendingTest(
            "trend",
            tau,
            p_trend,
            f"Kendall's tau {tau:.2f}",
            f"The {what} drift {'up' if tau > 0 else 'down'}",
            advice(p_trend, why, DRIFT),
        ),
        PendingTest(
            "halves, distribution",
            distance,
            p_distribution,
            f"Kolmogorov-Smirnov distance {distance:.2f}",
            f"{half} {differ} the second",
            advice(p_distribution, why, DRIFT),
        ),
        PendingTest(
            "halves, spread",
            spread,
            p_spread,
            f"standard deviations {early.std(ddof=1):.3g} and {late.std(ddof=1):.3g}",
            f"{half} {like}",
            advice(p_spread, why, SPREAD),
        ),
    )


def _level(scores: Array, expected: Array | None, *, scaled: bool) -> tuple[PendingTest, ...]:
    """Return the test that residuals are as large where much is expected as where little is."""
    if expected is None or np.ptp(expected) <= 1e-9 * np.abs(expected).max(initial=0.0):
        return ()
    from scipy import stats

    rho, p = stats.spearmanr(expected, np.abs(scores - np.median(scores)))
    return (
        PendingTest(
            "spread, level",
            float(rho),
            float(p),
            f"rank correlation {rho:.2f}",
            f"Residuals are {'larger' if rho > 0 else 'smaller'} where a larger answer is expected",
            f"{BY_LEVEL} {ON_SCALE if scaled else AS_IT_IS}" if rho > 0 else "",
        ),
    )


def _brown_forsythe(early: Array, late: Array) -> tuple[float, float]:
    from scipy import stats

    deviations = [np.abs(half - np.median(half)) for half in (early, late)]
    # Two values in equal shares deviate alike from their median: the statistic is 0 / 0 there.
    if all(np.ptp(half) == 0 for half in deviations):
        same = bool(deviations[0][0] == deviations[1][0])
        return (0.0, 1.0) if same else (float("inf"), 0.0)
    statistic, p = stats.levene(early, late, center="median")
    return float(statistic), float(p)


def _presence(
    responses: Responses, y: Array, least: float, stated: StatedPresence | None
) -> tuple[PendingTest, ...]:
    """Return the tests that nobody comes, or gives more, by the rest, if there are any.

    By rank sums of the rest, and of how far it is from its middle (Ansari and Bradley 1960).
    """
    from scipy import stats

    found: list[PendingTest] = []
    comers = _come_and_go(responses, y, least, between=(LEAST_SEEN, y.size))
    if stated is not None and comers.people.size:
        comers = replace(comers, chance=stated(comers.people))
    for check, groups in (
        ("presence", comers),
        ("amounts", _give_more(responses, y, least)),
    ):
        far = stats.rankdata(np.abs(groups.rank - (y.size + 1) / 2), axis=0)
        middle = "far from its middle", "near its middle"
        found.extend(_rank_test(check, ("high", "low"), groups.rank, groups))
        found.extend(_rank_test(f"{check}, middle", middle, far, groups))
    return tuple(found)


def _presence_once(responses: Responses, y: Array, least: float) -> tuple[PendingTest, ...]:
    """Return the test that those who came once, or were once away, do not follow the rest."""
    once = _come_and_go(responses, y, least, between=(1, LEAST_SEEN - 1))
    return _rank_test("presence, once", ("high", "low"), once.rank, once)


def _rank_test(
    check: str, where: tuple[str, str], rank: Array, groups: _Groups
) -> tuple[PendingTest, ...]:
    """Return the test that nobody is in the group where ranks are high, or low, by Bonferroni."""
    from scipy.special import ndtr

    n, seen = len(rank), groups.inside.sum(axis=0)
    if groups.chance is None:
        excess = np.where(groups.inside, rank, 0.0).sum(axis=0) - seen * (n + 1) / 2
        deviation = np.sqrt(seen * (n - seen) / n * rank.var(axis=0, ddof=1))
    else:
        excess, deviation = _beyond(groups.inside, rank, groups.chance)
    fewer = np.minimum(seen, n - seen)
    usable = (deviation > 0) & (fewer >= groups.between[0]) & (fewer <= groups.between[1])
    if not usable.any():
        return ()
    z = np.where(usable, excess / np.where(usable, deviation, 1.0), 0.0)
    # weighted: who can matter more has more of the level
    weight = np.where(usable, groups.most**2, 0.0)
    share = weight / weight.sum()
    p = np.full(seen.size, np.inf)
    raw = (
        rank_sum_p_values(n, seen[usable], excess[usable], z[usable])
        if groups.chance is None
        else 2.0 * ndtr(-np.abs(z[usable]))
    )
    p[usable] = raw / share[usable]
    worst, tried = int(np.lexsort((-np.abs(z), p))[0]), int(usable.sum())
    name = name_of(groups.names, groups.people[worst])
    off, beyond = "", ""
    if groups.chance is not None:
        off, beyond = " what the model states", " otherwise than the model states"
    return (
        PendingTest(
            check,
            float(z[worst]),
            min(1.0, float(p[worst])),
            Sentence(
                f"rank sum {abs(z[worst]):.1f} standard deviations off{off} for individual ",
                name,
                f", the most of {tried}",
            ),
            Sentence(
                "Individual ",
                name,
                f" {groups.does}{beyond} when the response without them is "
                f"{where[0 if z[worst] > 0 else 1]}",
            ),
            COMES_AND_GOES,
        ),
    )


def _beyond(inside: NDArray[np.bool_], rank: Array, chance: Array) -> tuple[Array, Array]:
    """Return by how much ranks in the group exceed what chances say, and its standard deviation.

    Ranks are about the mean of where it is uncertain who is in it: how many are says nothing.
    """
    chance = np.clip(chance, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    variance = chance * (1.0 - chance)
    about = rank - (variance * rank).sum(axis=0) / variance.sum(axis=0)
    excess = ((inside - chance) * about).sum(axis=0)
    return excess, np.sqrt((variance * about**2).sum(axis=0))


def rank_sum_p_values(
    n: int, seen: NDArray[np.int64], excess: Array, z: Array
) -> NDArray[np.float64]:
    """Return two-sided p-values of rank sums of some of n values.

    Of up to 12 of at most 500 they are exact, or somewhat too high where values are tied; of others
    by normal approximation.

    Parameters
    ----------
    n : int
        Number of values.
    seen : ndarray of int
        How many of them each sum is of.
    excess, z : ndarray
        By how much each sum exceeds its mean, and that in standard deviations.
    """
    from scipy.special import comb, ndtr

    p = 2.0 * ndtr(-np.abs(z))
    fewer = np.minimum(seen, n - seen)
    exact = (fewer <= MOST_EXACT) & (fewer > 0)
    if n > MOST_RANKED or not exact.any():
        return np.asarray(p)
    most = int(fewer[exact].max())
    size = most * (n - 1) // 2 + 2
    ways = np.zeros((most + 1, size))  # sets of so many of the ranks from 0 on with each sum
    ways[0, 0] = 1.0
    for rank in range(n):
        ways[1:, rank:] += ways[:-1, : max(size - rank, 0)]
    tails = np.cumsum(ways, axis=1)
    lower = np.ceil(fewer * (n - 1) / 2 - np.abs(excess) - 1e-9).astype(np.int64)[exact]
    found = tails[fewer[exact], np.minimum(lower, size - 1)] / comb(n, fewer[exact])
    p[exact] = np.minimum(1.0, 2.0 * found)
    return np.asarray(p)


@dataclass(frozen=True)
class _Groups:
    """Databases in two groups, by each of the individuals for whom that can matter most.

    Attributes
    ----------
    does : str
        What the individual does in the group.
    people : ndarray of int
        Shape (m,): their positions among all.
    most : ndarray
        Shape (m,): how much that can add to their risk, at worst.
    inside : ndarray of bool
        Shape (n, m): which databases are in the group.
    rank : ndarray
        Shape (n, m): ranks of the responses without them.
    between : tuple of int
        From how many databases on, and up to how many, are in the smaller group.
    names : ndarray
        Labels of all individuals.
    chance : ndarray, optional
        Shape (n, m): how probable a model says it is that a database is in the group, given the
        response without them; the same in all databases if not given.
    """

    does: str
    people: NDArray[np.int64]
    most: Array
    inside: NDArray[np.bool_]
    rank: Array
    between: tuple[int, int]
    names: NDArray[Any]
    chance: Array | None = None


def _come_and_go(
    responses: Responses, y: Array, least: float, *, between: tuple[int, int]
) -> _Groups:
    """Return in which databases they are who are in, or absent from, so many."""
    from scipy import stats

    n, samples = responses.n_databases, responses.samples
    entries = np.diff(responses.collected.indptr)
    missing = n * samples - entries
    fewest, most_often = between
    eligible = np.flatnonzero(
        (entries >= fewest)
        & (missing >= fewest * samples)
        & (np.minimum(entries, missing) <= most_often * samples)
    )
    people, most = _watched(responses, y, least, eligible)
    own = _contributions(responses, people)
    rank = stats.rankdata(y[:, None] - own.mean(axis=1), axis=0)
    inside = (own != 0).any(axis=1)
    return _Groups("comes", people, most, inside, rank, between, responses.individual)


def _give_more(responses: Responses, y: Array, least: float) -> _Groups:
    """Return in which databases they give the larger of two amounts, whose amounts fall in two.

    They do where, of amounts that are not zero, some are above all others by more than half of all
    that they range over. Amounts that change steadily with the rest are modelled by a slope.
    """
    from scipy import stats

    between = LEAST_SEEN, y.size
    entries = np.diff(responses.collected.indptr)
    eligible = np.flatnonzero(entries >= 2 * LEAST_SEEN * responses.samples)
    people, most = _watched(responses, y, least, eligible)
    amount = _contributions(responses, people).mean(axis=1)
    rank = stats.rankdata(y[:, None] - amount, axis=0)
    inside = np.zeros(amount.shape, dtype=bool)
    for column, own in zip(inside.T, amount.T, strict=True):
        given = np.sort(own[own != 0.0])
        gap = np.diff(given)
        if gap.size and gap.max() > LEAST_GAP * (max(given[-1], 0.0) - min(given[0], 0.0)):
            column[:] = own > given[gap.argmax()]
    return _Groups("gives more", people, most, inside, rank, between, responses.individual)


def _contributions(responses: Responses, people: NDArray[np.int64]) -> Array:
    """Return what some individuals contribute, shape (database, sample, individual)."""
    own = responses.collected[:, people].toarray()
    return np.asarray(own.reshape(responses.n_databases, responses.samples, people.size))


def _watched(
    responses: Responses, y: Array, least: float, eligible: NDArray[np.intp]
) -> tuple[NDArray[np.int64], Array]:
    """Return who can matter most by coming, or giving, with the rest, and how much.

    At worst they come in the databases alone in which the response without them lies just above a
    threshold: an interval of the size of their contribution is then empty with them and not without
    them. Its probability, and the share of databases in which they are, bound what that adds to
    their risk; who adds less than half of `least` is left out: what they add comes on top of what
    they risk if they come at random, and its size is itself an estimate.
    """
    entries = np.diff(responses.collected.indptr)[eligible]
    moved = responses.largest_contribution[eligible] / (robust_spread(y) * np.sqrt(2.0 * np.pi))
    most = np.minimum(moved, entries / (responses.n_databases * responses.samples))
    eligible, most = eligible[most > LEAST_ADDED * least], most[most > LEAST_ADDED * least]
    if eligible.size > WATCHED:
        top = np.partition(most, eligible.size - WATCHED)[eligible.size - WATCHED]
        eligible, most = eligible[most >= top], most[most >= top]
    order = np.argsort(-most, kind="stable")[:WATCHED]
    return eligible[order].astype(np.int64), most[order]


def _ties(responses: Responses) -> Check:
    y, at_none = responses.response, ""
    if isinstance(responses.atoms, np.ndarray):
        y, at_none = y[places(y, responses.atoms) < 0], " that are at no atom"
    _, counts = np.unique(y, return_counts=True)
    share = float(counts[counts > 1].sum() / y.size)
    found = f"{share:.0%} of the responses{at_none} equal another one"
    rounded = responses.half_step is not None
    if rounded:
        step = "" if responses.step is None else f" (step {responses.step:g})"
        found += f", as rounded answers do{step}"
    return threshold(
        "ties",
        share,
        share <= MAX_TIES or rounded,
        found,
        "A density is for responses without ties: bandwidths become too small.",
    )


def _dominance(responses: Responses) -> tuple[Check, ...]:
    """Return the checks that no individual rules a response or all contributions."""
    share = _share(responses)
    return (share,) if responses.n_individuals == 1 else (share, _ratio(responses))


def _share(responses: Responses) -> Check:
    contribution = responses.collected
    size = np.abs(contribution.data)
    if size.size == 0:
        return threshold("largest share", 0.0, True, "No individual changes a response", "")
    response = np.abs(responses.response)[contribution.indices]
    share = np.full(size.size, np.inf)
    np.divide(size, response, out=share, where=response > 0)
    top = int(share.argmax())
    column = int(np.searchsorted(contribution.indptr, top, side="right")) - 1
    most = float(share[top])
    database = labels.show(responses.database[int(contribution.indices[top]) // responses.samples])
    return threshold(
        "largest share",
        most,
        most <= MAX_SHARE,
        _largest(responses, column, database, most, float(size[top])),
        "The result may describe this individual alone, or a faulty record.",
    )


def _largest(
    responses: Responses, column: int, database: str, share: float, size: float
) -> Sentence:
    """Say what the largest share is of: contributions add up to the response of a sum alone.

    Of any other query, such as a median, a contribution is by how much the response would change,
    which is no part of a response where responses have both signs.
    """
    individual = name_of(responses.individual, column)
    where = f"the response of database {database}"
    if responses.additive:
        part = "more than the whole" if share > 1 else f"{share:.0%}"
        said = f" makes up {part} of {where}, the largest share there is"
        return Sentence("Individual ", individual, said)
    if responses.response.min() < 0 < responses.response.max():
        change = f"{size:.4g}"
    else:
        change = "more than itself" if share > 1 else f"{share:.0%} of itself, the most there is"
    return Sentence("Without individual ", individual, f" {where} would change by {change}")


def _ratio(responses: Responses) -> Check:
    largest = responses.largest_contribution
    second, first = np.argsort(largest, kind="stable")[-2:]
    ratio = 1.0
    if largest[first] > 0:
        ratio = float(largest[first] / largest[second]) if largest[second] > 0 else float("inf")
    return threshold(
        "largest over next",
        ratio,
        ratio <= MAX_RATIO,
        Sentence(
            "The largest contribution, of individual ",
            name_of(responses.individual, first),
            f", is {ratio:.1f} times that of the next, ",
            name_of(responses.individual, second),
        ),
        "The maximum over individuals rests on one: look for a faulty record.",
    )
