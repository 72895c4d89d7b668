"""What an adversary knows of every database, as regressors of its response.

The response is y_t = c + x_t' beta + exp(gamma z_t) u_t. Lags are in the units of the response, all
other regressors have unit standard deviation, all of them mean zero; z runs from -1/2 to 1/2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.adversary.adversary import CALENDAR, Adversary
from edp_bayes.adversary.covariates import Covariate, aligned, buckets
from edp_bayes.adversary.pasts import Pasts, pasts_of
from edp_bayes.adversary.timeline import Timeline
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.dependence import linear_dependence
from edp_bayes.responses.responses import Responses
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.responses.joined import JointResponses

__all__ = [
    "INSIDERS",
    "LAG",
    "OTHER",
    "TREND",
    "Explained",
    "Known",
    "Regressor",
    "explained",
    "fits",
    "known",
    "say_many",
]

# Prior standard deviations of coefficients: of lags, of all others in residual deviations.
LAG, OTHER = 0.5, 2.0
TREND, INSIDERS = "trend", "insiders' records"  # names of regressors
NAMED = 3  # of those not assessed
HARMONIC = re.compile(r", (co)?sine \d+$")  # of those of a season
FEWEST_FREE = 8  # databases beyond the regressors
MANY = 1 / 6  # regressors a database, beyond which bands are said to be wide
SHORT = 10  # databases for each step of a season all of whose harmonics are taken
DATABASES_A_HARMONIC = 30
DETERMINED = 1e-12  # of the variance of the response
MOST_CALENDARS = 0.5  # of the series a season may last


@dataclass(frozen=True, eq=False)
class Regressor:
    """One column of x_t.

    Attributes
    ----------
    name : str
        What it is.
    values : ndarray
        Shape (n,): centred.
    target : float
        At the database in question, as far from the same centre.
    lag : bool
        In the units of the response.
    """

    name: str
    values: Array
    target: float
    lag: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """What is known of every database, and of the one in question, of one query or several.

    Attributes
    ----------
    regressors : tuple of Regressor
        Columns of x_t.
    position : ndarray
        Shape (n,): z_t, place in the series from -1/2 to 1/2.
    target_position : float
        z at the database in question.
    scaled : bool
        Whether the spread changes over the series.
    against : str
        Against whom, in words.
    at : label or None
        The database in question; None for the next one.
    warnings : tuple of str
        What is doubtful.
    insiders : tuple
        Labels of those whose contributions were subtracted.
    past_published : str
        What was published of earlier releases, in words; empty where it was the whole answer.
    last_published : tuple of str
        What was published of each of the last releases by that rule, the last one first.
    against_later : str
        The same adversary in words, whatever will have been published; empty without such a rule.
    pasts : Pasts or None
        What the last answers may have been, given what was published of them; None where they are
        known.
    tellers : tuple
        Where the adversary knows their own contribution, whose it is; then the other of the two
        whose contributions tell most of the response.
    unassessed : tuple
        Labels of those who contributed only to databases that serve as lags.
    """

    regressors: tuple[Regressor, ...]
    position: Array
    target_position: float
    scaled: bool
    against: str
    at: Any
    warnings: tuple[str, ...]
    insiders: tuple[Any, ...]
    past_published: str = ""
    last_published: tuple[str, ...] = ()
    against_later: str = ""
    pasts: Pasts | None = None
    tellers: tuple[Any, ...] = ()
    unassessed: tuple[Any, ...] = ()

    @property
    def design(self) -> Array:
        """The regressors, shape (n, regressor)."""
        columns = [part.values for part in self.regressors]
        return np.stack(columns, axis=1) if columns else np.empty((self.position.size, 0))

    @property
    def target(self) -> Array:
        """The regressors at the database in question, shape (regressor,)."""
        return np.array([part.target for part in self.regressors])

    @property
    def names(self) -> list[str]:
        """Name of every regressor."""
        return [part.name for part in self.regressors]

    @property
    def timed(self) -> bool:
        """Whether the databases are in the order of time: only such have a past or a calendar."""
        ordered = (part.lag or part.name == TREND for part in self.regressors)
        return self.scaled or any(ordered) or any(map(HARMONIC.search, self.names))

    def row_of(self, database: NDArray[Any]) -> int:
        """Return which of these databases is in question, their number if it comes after them."""
        if self.at is None:
            return int(database.size)
        place = labels.positions_of(database)
        return place.get(labels.lookup_key(self.at, database), int(database.size))


@dataclass(frozen=True, eq=False, kw_only=True)
class Known[R: (Responses, JointResponses)](Explained):
    """The same with the responses; further attributes are those of `Explained`.

    Attributes
    ----------
    responses : Responses or JointResponses
        Of the databases that are explained: the first ones serve as lags only. What insiders
        contributed to sums is subtracted, and insiders are no longer among the individuals. They
        are on the scale on which they are modelled, and so are the lags.
    log_slope : ndarray
        Shape (n,): what makes their log densities those of the answers, see `Responses.log_slope`.
    lagged : tuple of int
        Queries whose earlier answers are the first regressors, those of one lag after those of the
        lag before. Of a query that follows from the others there are none.
    """

    responses: R
    log_slope: Array
    lagged: tuple[int, ...] = (0,)

    def before(self: Known[Responses], count: int) -> Known[Responses]:
        """Return what was known when so many of the databases had been seen.

        The database in question is the one after these.
        """
        seen = self._rows(slice(0, count))
        parts = zip(seen.regressors, self.regressors, strict=True)
        return replace(
            seen,
            regressors=tuple(
                replace(
                    part, target=float(whole.values[count]) - float(whole.values[:count].mean())
                )
                for part, whole in parts
            ),
            position=np.linspace(-0.5, 0.5, count),
            target_position=0.5 + 1.0 / (count - 1),
            at=self.responses.database[count],
        )

    def last(self: Known[Responses], count: int) -> Known[Responses]:
        """Return the same of the last databases alone."""
        first = self.position.size - count
        return self if first == 0 else self._rows(slice(first, None))

    @property
    def bare(self: Known[Responses]) -> Known[Responses]:
        """The same of one individual of no importance, where only the response counts."""
        from scipy.sparse import csc_array

        y = self.responses.response
        return replace(
            self,
            responses=self.responses.replaced(
                contribution=csc_array(np.full((y.size, 1), 1e-3 * y.std())),
                half_step=self.responses.half_step,
                individual=np.array(["nobody"], dtype=object),
                presence=np.array([self.position.size]),
            ),
        )

    def _rows(self: Known[Responses], rows: slice) -> Known[Responses]:
        chosen = np.arange(self.position.size)[rows]
        parts = [
            replace(
                part,
                values=part.values[rows] - part.values[rows].mean(),
                target=part.target - part.values[rows].mean(),
            )
            for part in self.regressors
        ]
        return replace(
            self,
            responses=_kept(self.responses, chosen, ()),
            log_slope=self.log_slope[rows],
            regressors=tuple(parts),
            position=self.position[rows],
        )

    @property
    def row(self) -> int:
        """Which explained database is in question, their number for the next one."""
        return self.row_of(self.responses.database)

    @property
    def past(self) -> int:
        """Number of lags of each query."""
        return sum(part.lag for part in self.regressors) // len(self.lagged)


def known[R: (Responses, JointResponses)](
    adversary: Adversary, responses: R, at: Any, *, teller: int = 0
) -> Known[R]:
    """Return what an adversary knows; see `Adversary.given`.

    Where they know their own contribution, they are the individual whose tells most, or next most.
    The past of several queries is that of all of them: the answers y_t follow c + x_t' C +
    exp(gamma z_t) u_t with the earlier answers to every query among x_t, a vector autoregression.
    """
    several = len(responses.parts) > 1
    past: int = adversary.past
    if several:
        _refuse_for_several(adversary)
        databases = responses.n_databases
        refuse_many(past * len(responses.parts), databases - past, databases)
    if adversary.own:
        return _with_own(adversary, responses, at, teller)
    parts: list[Known[Any]] = [regressed(adversary, responses.parts[0], at)]
    # what is not a query's own is the same for all
    own = replace(
        adversary, trend=False, season=None, covariates=None, knows=None, bins=None,
        changing_scale=False,
    )  # fmt: skip
    parts += [regressed(own, part, at) for part in responses.parts[1:]]
    first = parts[0]
    rest: Any = responses.of_parts([part.responses for part in parts])
    lagged: tuple[int, ...] = first.lagged
    regressors = first.regressors
    if several:
        lagged = linear_dependence(rest).kept
        regressors = (
            *_lags_of(parts, responses.names, lagged, past),
            *_others_of(parts, responses.names),
        )
    shared = set.intersection(*(set(part.unassessed) for part in parts))
    unassessed = tuple(label for label in first.unassessed if label in shared)
    warnings = [said for part in parts for said in part.warnings]
    if unassessed:
        warnings.append(say_unassessed(unassessed, responses, past))
    count, n = len(regressors), rest.n_databases
    refuse_many(count, n, responses.n_databases)
    for name, part in zip(responses.names, rest.parts, strict=True):
        what = f"the answers to {name}" if several else "the response"
        refuse_determined(part, regressors, what)
    if count > MANY * n:
        warnings.append(say_many(count, n))
    return replace(
        first,
        responses=rest,
        lagged=lagged,
        regressors=regressors,
        warnings=tuple(dict.fromkeys(warnings)),
        unassessed=unassessed,
    )


def _refuse_for_several(adversary: Adversary) -> None:
    """Refuse what has no answer, or none that so few databases show, for several queries."""
    if adversary.own:
        raise InvalidInputError(
            "a joint audit takes no own=True: which individual's own contribution tells most has "
            "no single answer for several queries, since what narrows one combination of the "
            "answers may leave others as wide. Give those who tell most as insiders=[...]"
        )
    if adversary.past_published is not None:
        raise InvalidInputError(
            "a joint audit takes no past_published: how the past lies in intervals of several "
            "answers together is not learned from so few databases, and knowing it in full never "
            "lowers the risk. Leave it out, or audit each query on its own"
        )


def _lags_of(
    parts: Sequence[Known[Any]], names: tuple[str, ...], lagged: tuple[int, ...], past: int
) -> list[Regressor]:
    """Return the earlier answers to several queries, lag by lag."""
    return [
        replace(part, name=f"{part.name} of {names[k]}")
        for lag in range(past)
        for k in lagged
        for part in (parts[k].regressors[lag],)
    ]


def _others_of(parts: Sequence[Known[Any]], names: tuple[str, ...]) -> list[Regressor]:
    """Return all that is no lag, with the answer to every query on insiders' records."""
    return [
        replace(one, name=f"{INSIDERS}, {name}") if one.name == INSIDERS else one
        for part, name in zip(parts, names, strict=True)
        for one in part.regressors
        if not one.lag
    ]


def regressed(adversary: Adversary, responses: Responses, at: Any) -> Known[Responses]:
    """Return what an adversary knows of one query, however many regressors that are."""
    if responses.atoms is not None:
        raise InvalidInputError(
            "atoms are modelled of an answer of which nothing else is known: leave out the "
            "adversary (--no-past and nothing else of theirs), or atoms"
        )
    timeline, found = Timeline.of(responses.database), []
    timed = (adversary.past, adversary.trend, adversary.season, adversary.changing_scale)
    if any(timed):
        timeline.require_order("an adversary who knows earlier releases, a trend or a season")
        if timeline.uneven:
            found.append(_uneven(timeline))
    found += _partial(adversary, responses, at)
    insiders = _insiders(adversary, responses)
    answers, shared = _without(responses, insiders)
    rest = answers.on_scale
    first = adversary.past
    n = responses.n_databases - first
    refuse_many(first, n, responses.n_databases)
    rows = np.arange(first, responses.n_databases)
    row = None if at is None else _row(responses, at, first)
    seen = np.asarray(rest.response_by_database.mean(axis=1))
    regressors, around = _lags(seen, first, row), []
    time = timeline.position
    after = float(time[-1] + 1.0)
    if adversary.trend:
        regressors.append(
            _numeric(TREND, time[first:], after if row is None else time[first:][row])
        )
        around.append(time)
    for name, period in _periods(adversary, timeline).items():
        regressors += _season(name, period, time[first:], after, row)
        around += [part.values for part in _season(name, period, time, after, None)]
    covariates = (
        [] if adversary.covariates is None else aligned(adversary.covariates, responses.database)
    )
    if adversary.knows is not None:
        covariates.append(_further(adversary, responses))
    if shared is not None:
        covariates.append(shared)
    for covariate in covariates:
        if covariate.taken and row is None:
            found.append(_taken(covariate))
        where = None if row is None else row + first
        for name, values, target in covariate.columns(where):
            regressors.append(_numeric(name, values[first:], target))
            around.append(values)
    pasts, last = _pasts(adversary, responses, seen, around, row)
    if pasts is not None:
        regressors[:first] = [
            replace(lag, target=float(mean - seen.mean()))
            for lag, mean in zip(regressors, pasts.mean, strict=False)
        ]
    z = np.linspace(-0.5, 0.5, n)
    kept = _kept(rest, rows, insiders)
    return Known(
        responses=kept,
        log_slope=answers.log_slope[rows],
        regressors=tuple(regressors),
        position=z,
        target_position=0.5 + 1.0 / (n - 1) if row is None else float(z[row]),
        scaled=adversary.changing_scale,
        against=adversary.having_seen(last),
        at=at,
        warnings=tuple(map(Sentence, found)),
        insiders=insiders,
        past_published="" if adversary.past_published is None else adversary.past_published.words,
        last_published=last,
        against_later=adversary.words if last else "",
        pasts=pasts,
        unassessed=_only_in_lags(rest, kept),
    )


def _only_in_lags(responses: Responses, kept: Responses) -> tuple[Any, ...]:
    """Return the labels of those who contributed, but to no database that is explained."""
    from edp_bayes.responses.responses import contributing

    ever = np.zeros(responses.n_individuals, dtype=bool)
    ever[responses.owner] = True
    among = [responses.index_of(label) for label in labels.plain_list(kept.individual)]
    now = contributing(kept.contribution, kept.n_databases, kept.samples) > 0
    return tuple(labels.plain_list(kept.individual[ever[among] & ~now]))


def say_unassessed(
    unassessed: tuple[Any, ...], responses: Responses | JointResponses, past: int
) -> Sentence:
    """Say who contributed to nothing that is explained."""
    first = (
        "first database, which serves as lag"
        if past == 1
        else (f"first {past} databases, which serve as lags")
    )
    named: list[Any] = []
    for label in unassessed[:NAMED]:
        named += [", ", name_of(responses.individual, responses.index_of(label))]
    more = len(unassessed) - NAMED
    return Sentence(
        f"{len(unassessed):,} of {responses.n_individuals:,} individuals contributed only to the "
        f"{first}: their risk in the database in question is not assessed (",
        *named[1:],
        f" and {more:,} more)." if more > 0 else ").",
    )


def explained[R: (Responses, JointResponses)](
    responses: R, rows: Index, insiders: tuple[Any, ...]
) -> R:
    """Return the responses of some databases, less what insiders contributed to a sum.

    They are answers as they were given, on their own scale.
    """
    return responses.of_parts(
        [_kept(_less(part, insiders), rows, insiders) for part in responses.parts]
    )


def _pasts(
    adversary: Adversary,
    responses: Responses,
    seen: Array,
    around: list[Array],
    row: int | None,
) -> tuple[Pasts | None, tuple[str, ...]]:
    """Return what the past may have been, and what was published of it.

    None where it is known in full. That is taken for granted where the spread changes, too: knowing
    more never lowers the risk.
    """
    published, past = adversary.past_published, adversary.past
    if published is None:
        return None, ()
    if responses.scale is not None or responses.samples > 1:
        raise InvalidInputError(
            "past_published is for one answer a database, on its own scale: leave out transform, "
            "or past_published"
        )
    y = responses.response
    if published.same(y):
        raise InvalidInputError(
            f"all answers are published as the same value ({published.words}), so that the past "
            "tells nothing: leave out past"
        )
    next_one = y.size if row is None else row + past
    last = tuple(published.said_of(float(y[next_one - lag])) for lag in range(1, past + 1))
    if adversary.changing_scale:
        return None, last
    low, high = (end - (y - seen) for end in published.intervals(y))
    others = np.stack(around, axis=1) if around else np.empty((y.size, 0))
    found = pasts_of(seen, low, high, others, past=past, row=row)
    return (found if found.size > 1 else None), last


def _lags(y: Array, past: int, row: int | None) -> list[Regressor]:
    """Return earlier responses as far as they were seen."""
    n, mean = y.size - past, float(y.mean())
    target = n if row is None else row
    return [
        Regressor(
            f"lag {lag}",
            y[past - lag : y.size - lag] - mean,
            float(y[past - lag + target]) - mean,
            True,
        )
        for lag in range(1, past + 1)
    ]


def _numeric(name: str, values: Array, target: float) -> Regressor:
    """Return a regressor of mean zero and unit standard deviation."""
    mean, deviation = float(values.mean()), float(values.std())
    if deviation <= 1e-12 * max(1.0, float(np.abs(values).max())):
        raise InvalidInputError(
            f"{name!r} is {values[0]:g} in all databases that are explained: leave it out"
        )
    return Regressor(name, (values - mean) / deviation, (float(target) - mean) / deviation)


def _periods(adversary: Adversary, timeline: Timeline) -> dict[str, float]:
    if adversary.season is None:
        return {}
    n = timeline.position.size
    periods = (
        timeline.seasons()
        if adversary.season == CALENDAR
        else {f"season of {float(adversary.season):g}": float(adversary.season)}
    )
    short = {name: p for name, p in periods.items() if p <= MOST_CALENDARS * n}
    if not short:
        name, period = next(iter(periods.items()))
        raise InvalidInputError(
            f"a season must be no longer than half the series, {n // 2} databases, found {name} "
            f"of {period:.4g}: what was seen less than twice is no season. Leave out season"
            if adversary.season == CALENDAR
            else f"season must be no longer than half the series, {n // 2} databases, found "
            f"{period:g}: what was seen less than twice is no season. Give a shorter one, or leave "
            "it out"
        )
    return short


def _season(
    name: str, period: float, time: Array, after: float, row: int | None
) -> list[Regressor]:
    """Return sine and cosine of a period's harmonics: all of a short one, the slowest of others."""
    n = time.size
    every = int(period // 2)
    most = every if period * SHORT <= n else max(1, min(every, n // DATABASES_A_HARMONIC))
    found = []
    for harmonic in range(1, most + 1):
        rate = 2.0 * np.pi * harmonic / period
        for part, function in (("cosine", np.cos), ("sine", np.sin)):
            values = function(rate * time)
            # of the fastest harmonic of an even period the sine is zero
            if np.ptp(values) > 1e-6:
                at = after if row is None else time[row]
                label = f"{name}, {part} {harmonic}"
                found.append(_numeric(label, values, float(function(rate * at))))
    return found


def _further(adversary: Adversary, responses: Responses) -> Covariate:
    """Return the values of a further query that is known, or their buckets."""
    value = adversary.knows
    if hasattr(value, "leave_one_out"):
        if responses.ask is None:
            raise InvalidInputError(
                "a query as knows needs responses made by Databases.respond; give its values "
                "on the databases"
            )
        value = responses.ask(value, None)
    plain = isinstance(value, Sequence) or not (
        isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "index")
    )
    found = aligned({"knows": value} if plain else value, responses.database)
    if len(found) != 1:
        raise InvalidInputError(
            f"knows must be the values of one query, found columns "
            f"{', '.join(part.name for part in found)}; give them as covariates"
        )
    (covariate,) = found
    if adversary.bins is None:
        return covariate
    if covariate.values.dtype.kind != "f":
        raise InvalidInputError("bins are for numbers, what the adversary knows is categories")
    bucket = buckets(covariate.values, covariate.following, adversary.bins)
    return Covariate(covariate.name, bucket[:-1], bucket[-1].item(), covariate.taken)


def _insiders(adversary: Adversary, responses: Responses) -> tuple[Any, ...]:
    """Return the labels of those whose contributions are known."""
    people = responses.n_individuals
    if isinstance(adversary.insiders, float):
        count = round(adversary.insiders * people)
        rng = np.random.default_rng(adversary.random_seed)
        chosen = responses.order[rng.permutation(people)[:count]]
    else:
        chosen = np.array([responses.index_of(name) for name in adversary.insiders], dtype=np.int64)
    if np.unique(chosen).size >= people:
        raise InvalidInputError(
            f"insiders must leave an individual to audit, found all {people} individuals among them"
        )
    return tuple(responses.individual[np.unique(chosen)].tolist())


def _with_own(adversary: Adversary, responses: Any, at: Any, teller: int) -> Known[Any]:
    """Return what is known where one whose contribution tells most is an insider."""
    others = replace(adversary, own=False)
    base = known(others, responses, at)
    tellers = _tellers(base)
    tellers = (tellers[teller], *(one for k, one in enumerate(tellers) if k != teller))
    found = known(replace(others, insiders=(*base.insiders, tellers[0])), responses, at)
    return replace(
        found,
        against=adversary.having_seen(found.last_published),
        against_later=adversary.words if found.last_published else "",
        tellers=tellers,
    )


def _tellers(known: Known[Responses]) -> tuple[Any, ...]:
    """Return the two whose own contribution, given all else, leaves the least variance.

    Risks grow as the response narrows. So what tells most is worst for all others, and what tells
    second most for whoever is first: nobody else can be the worst.
    """
    responses = known.responses
    c: csc_array[np.float64] = responses.contribution
    rows = np.repeat(known.design, responses.samples, axis=0)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(rows)), rows]))
    y = responses.response - basis @ (basis.T @ responses.response)
    explained = np.asarray(c.power(2).sum(axis=0)).ravel() - ((c.T @ basis) ** 2).sum(axis=1)
    left = (explained - 2.0 * (c.T @ y))[responses.order]
    most = responses.order[np.argsort(left, kind="stable")[:2]]
    return tuple(responses.individual[most].tolist())


def _without(responses: Responses, insiders: tuple[Any, ...]) -> tuple[Responses, Covariate | None]:
    """Return responses less what insiders contributed, or their answer as a covariate."""
    if not insiders:
        return responses, None
    if responses.additive:
        return _less(responses, insiders), None
    if responses.ask is None:
        raise InvalidInputError(
            f"what insiders know of {responses.query} cannot be subtracted, which is no sum over "
            "individuals: use responses made by Databases.respond, or say additive=True of arrays "
            "that are"
        )
    answers = responses.ask(None, insiders)
    return responses, Covariate(INSIDERS, answers, answers[-1], True)


def _less(responses: Responses, insiders: tuple[Any, ...]) -> Responses:
    if not (insiders and responses.additive):
        return responses
    columns = [responses.index_of(name) for name in insiders]
    told: Array = np.asarray(responses.contribution[:, columns].sum(axis=1)).ravel()
    rest = responses.replaced(
        response=responses.response - told, half_step=responses.half_step, transform=None
    )
    if responses.transform is None:
        return rest
    try:
        # nobody asks for the answers without an insider: those of others have to be on the scale
        return _silenced(rest, columns).replaced(transform=responses.transform)
    except InvalidInputError as error:
        raise InvalidInputError(f"less what insiders contributed: {error}") from None


def _silenced(responses: Responses, columns: list[int]) -> Responses:
    """Return responses to which some individuals contribute nothing."""
    from scipy.sparse import csc_array

    matrix = responses.contribution
    data = np.where(np.isin(responses.owner, columns), 0.0, matrix.data)
    return responses.replaced(
        contribution=csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    )


def _kept(responses: Responses, rows: Index, insiders: tuple[Any, ...]) -> Responses:
    """Return the responses of the databases that are explained, without insiders as individuals."""
    samples = responses.samples
    entries = (rows[:, None] * samples + np.arange(samples)).ravel()
    hidden = np.zeros(responses.n_individuals, dtype=bool)
    hidden[[responses.index_of(name) for name in insiders]] = True
    others = np.flatnonzero(~hidden)
    matrix: csc_array[np.float64] = responses.contribution[:, others].tocsr()[entries].tocsc()
    silent = responses.presence[others] - _counted(responses.contribution[:, others], samples)
    count = _counted(matrix, samples)
    half = responses.half_step
    return responses.replaced(
        half_step=None if half is None else half[rows],
        response=responses.response[entries],
        contribution=matrix,
        individual=responses.individual[others],
        database=responses.database[rows],
        presence=np.minimum(count + silent, rows.size),
    )


def _counted(matrix: csc_array[np.float64], samples: int) -> Index:
    from edp_bayes.responses.responses import contributing

    return contributing(matrix, matrix.shape[0] // samples, samples)


def _row(responses: Responses, at: Any, first: int) -> int:
    """Return the place of the database in question among those explained."""
    places = labels.positions_of(responses.database)
    key = labels.lookup_key(at, responses.database)
    if key not in places:
        raise InvalidInputError(
            f"at must be a database, found {labels.show(at)}; there are "
            f"{labels.show_some(responses.database)}"
        )
    if places[key] < first:
        raise InvalidInputError(
            f"at must be a database with {first} before it, found {labels.show(at)}, number "
            f"{places[key] + 1}"
        )
    return places[key] - first


def fits(count: int, n: int) -> bool:
    """Return whether so many databases, without those that are lags only, allow the regressors."""
    return n - count >= FEWEST_FREE


def refuse_many(count: int, n: int, databases: int) -> None:
    """Refuse more regressors than the databases allow, n of which are left after the lags."""
    if not fits(count, n):
        raise InvalidInputError(
            f"{databases} databases are too few for what the adversary knows: after the lags "
            f"{max(n, 0)} are left for {count} regressors, at least {FEWEST_FREE} more than these "
            "are needed"
        )


def refuse_determined(
    responses: Responses, regressors: Sequence[Regressor], what: str = "the response"
) -> None:
    """Refuse regressors that leave nothing random of a response, which is called so."""
    if not regressors:
        return
    y = responses.response_by_database.mean(axis=1)
    x = np.stack([part.values / max(part.values.std(), 1e-300) for part in regressors], axis=1)
    full = np.column_stack([np.ones(y.size), x])
    coefficients, *_ = np.linalg.lstsq(full, y, rcond=None)
    left = float(((y - full @ coefficients) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    if left <= DETERMINED * total:
        weight = np.abs(coefficients[1:]) > np.sqrt(DETERMINED) * y.std()
        telling = [part.name for part, counts in zip(regressors, weight, strict=True) if counts]
        raise InvalidInputError(
            f"{', '.join(telling)} determine"
            f"{'s' if len(telling) == 1 else ''} {what}: nothing is random any more, and "
            "every contributor is revealed"
        )


def _uneven(timeline: Timeline) -> str:
    more = f" and {len(timeline.uneven) - 3} more" if len(timeline.uneven) > 3 else ""
    return (
        f"The databases are not evenly spaced: {'; '.join(timeline.uneven[:3])}{more}. Lags count "
        "databases, not time."
    )


def _partial(adversary: Adversary, responses: Responses, at: Any) -> list[str]:
    """Return that the last database is cut off, and in question or what a forecast follows."""
    partial = responses.partial
    if partial is None or partial.choice != "keep" or partial.last is None:
        return []
    last = labels.show(partial.last)
    remedy = "partial='drop' (--partial drop) leaves it out"
    if at is None and adversary.past:
        return [
            f"The last period, {last}, is cut off, and is lag 1 of the next database: what the "
            f"adversary expects follows a partial answer; {remedy}."
        ]
    if at is not None and labels.show(at) == last:
        return [f"The database in question, {last}, is cut off; {remedy}."]
    return []


def say_many(count: int, n: int) -> Sentence:
    """Say that there are many regressors."""
    return Sentence(
        f"{count} regressors for {n} databases make the bands wider: nine for 41 made them 1.5 "
        "times as wide."
    )


def _taken(covariate: Covariate) -> str:
    return (
        f"Covariate {covariate.name!r} of the next database was not given: that of the last one, "
        f"{covariate.following}, is taken."
    )
