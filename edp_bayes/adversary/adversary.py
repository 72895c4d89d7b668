"""What an adversary knows beside the response: the past, the calendar, the public, insiders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from edp_bayes.distributions.published import Published, published_of
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from edp_bayes.adversary.known import Known
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["Adversary"]

CALENDAR = "calendar"


@dataclass(frozen=True, eq=False, kw_only=True)
class Adversary:
    """Who the response is to be private against, given to `edp_bayes.audit`.

    The risk is then that of the response given what they know: Burchard, Daoud and Dotterrer
    (2020), Definition 4, with g the values below. The hypotheses compared are that an individual is
    in the database in question or is not; the past is what was observed.

    Parameters
    ----------
    past : int
        How many earlier releases they have seen, as lags of the response; of joined responses lags
        of every query.
    past_published : mapping or Published, optional
        What was published of the earlier releases, where that is not the whole answer: rounded_to
        and offset, threshold, or bins, as for `Audit.released`. They have seen an interval, not
        the answer, and the risk is that after what was published last. For one query whose answers
        have no transform.
    trend : bool
        They know the trend over the databases.
    season : float or "calendar", optional
        They know the season: its period in databases, or the periods of the calendar that suit the
        dates (of hours the day and the week, of days the week and the year, else the year).
    covariates : dataframe or mapping, optional
        What is public about every database: a table whose first column, or the index if it has a
        name or holds no whole numbers, holds the keys of the databases, or a mapping of names to
        one value each.
        Numbers enter as they are, text as categories. A row with a key that is no database is that
        of the next one; without it the last row is taken, which the result says.
    changing_scale : bool
        The spread of the response may grow or fall over the databases; contributions that grow or
        fall with it are found by regression.
    insiders : iterable or float
        Labels of individuals who pool what they contributed, or the share of all individuals who
        do, drawn at random. What insiders contributed is subtracted where the query is a sum over
        individuals; elsewhere the answer on their records is a covariate.
    own : bool
        They contributed themselves and know how much: an individual whose own contribution tells
        most of the response is taken for an insider. `edp_bayes.audit` takes the one who leaves the
        others the largest risk. Not for joined responses.
    knows : sequence, mapping or Query, optional
        Value of any other query g on every database: numbers or categories.
    bins : sequence of float or int, optional
        Buckets of `knows`: inner edges, or how many of equal probability.
    random_seed : int
        Of insiders drawn at random.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range.

    See Also
    --------
    audit : audit a query
    leakage : delta for adversaries who know more and more
    edp_bayes.diagnostics.check_databases : whether the databases look independent
    edp_bayes.plots.plot_past : what an adversary has seen and expected

    Examples
    --------
    >>> Adversary(past=1).words
    'a person who has seen the last release and knows when each individual was last there'
    """

    past: int = 0
    past_published: Any = None
    trend: bool = False
    season: float | str | None = None
    covariates: Any = None
    changing_scale: bool = False
    insiders: Iterable[Any] | float = ()
    own: bool = False
    knows: Any = None
    bins: Any = None
    random_seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.past, int) and self.past < 0:
            raise InvalidInputError(f"past must be at least 0, found {self.past}")
        past = 0 if self.past == 0 else validate.positive_integer(self.past, "past")
        object.__setattr__(self, "past", past)
        object.__setattr__(self, "past_published", _published(self.past_published, past))
        for name in ("trend", "changing_scale", "own"):
            if not isinstance(getattr(self, name), bool):
                raise InputTypeError(f"{name} must be True or False, found {getattr(self, name)!r}")
        if isinstance(self.season, str):
            validate.choice(self.season, (CALENDAR,), "season")
        elif self.season is not None:
            period = validate.positive_number(self.season, "season")
            if period < 2:
                raise InvalidInputError(f"season must be at least 2 databases, found {period:g}")
        if isinstance(self.insiders, str) or not isinstance(self.insiders, Iterable | float | int):
            raise InputTypeError(
                f"insiders must be labels of individuals or a share, found {self.insiders!r}"
            )
        if isinstance(self.insiders, float | int):
            share = float(self.insiders)
            if not 0.0 <= share < 1.0:
                raise InvalidInputError(
                    f"a share of insiders must be at least 0 and less than 1, found {share:g}"
                )
            object.__setattr__(self, "insiders", share)
        else:
            object.__setattr__(self, "insiders", tuple(self.insiders))
        if self.bins is not None and self.knows is None:
            raise InvalidInputError("bins are buckets of knows: give what the adversary knows")
        validate.seed(self.random_seed)

    @property
    def nothing(self) -> bool:
        """Whether they know nothing but the distribution of the response."""
        known = (self.trend, self.season, self.changing_scale, self.own)
        others = self.covariates is not None or self.knows is not None
        return not (self.past or any(known) or self.insiders or others)

    @property
    def words(self) -> str:
        """Against whom, in words: what they have seen, know and learn, and nothing else."""
        return self.having_seen(())

    def having_seen(self, published: Sequence[str]) -> str:
        """Return against whom, in words, with what was published of the releases they have seen.

        Parameters
        ----------
        published : sequence of str
            Of each release, the last one first; nothing is said of it if empty.
        """
        parts = []
        if self.past:
            releases = "release" if self.past == 1 else f"{self.past} releases"
            rule, how = self.past_published, ""
            if rule is not None:
                last = " then ".join(published)
                was = ("it was " if self.past == 1 else "from the last one back: ") if last else ""
                how = f" as published ({rule.words}{f'; {was}{last}' if last else ''})"
            parts.append(f"has seen the last {releases}{how}")
        if known := self._known:
            parts.append(f"knows {_listed(known)}")
        if isinstance(self.insiders, float) and self.insiders:
            parts.append(
                f"learns from {self.insiders:.0%} of all individuals what they contributed"
            )
        elif self.insiders:
            count = len(tuple(self.insiders))  # type: ignore[arg-type]
            people = "an insider" if count == 1 else f"{count} insiders"
            parts.append(f"learns from {people} what they contributed")
        if self.own:
            parts.append("knows what they contributed themselves")
        if not parts:
            return "a person who knows nothing but the distribution of the response"
        return f"a person who {_listed(parts)}"

    @property
    def _known(self) -> list[str]:
        """What they know of every database beside earlier responses."""
        known = ["the trend"] if self.trend else []
        if self.season == CALENDAR:
            known.append("the seasons of the calendar")
        elif self.season is not None:
            known.append(f"a season of {float(self.season):g} databases")
        if self.changing_scale:
            known.append("how the spread changes")
        if self.covariates is not None:
            names = covariate_names(self.covariates)
            known.append(f"the covariate{'s' if len(names) > 1 else ''} {_listed(names)}")
        if self.knows is not None:
            known.append("what a further query answers")
        if self.past or self.trend or self.season is not None or self.changing_scale:
            # presence in the database in question follows each individual's own last one
            known.append("when each individual was last there")
        return known

    @overload
    def given(self, responses: Responses, *, at: Any = None) -> Known[Responses]: ...

    @overload
    def given(self, responses: JointResponses, *, at: Any = None) -> Known[JointResponses]: ...

    def given(self, responses: Any, *, at: Any = None) -> Any:
        """Return what they know of every database, as regressors of its response.

        Parameters
        ----------
        responses : Responses or JointResponses
            One database after the other; of joined responses the past is that of all queries.
        at : label, optional
            The database in question; the next one, after all of them, if not given.

        Raises
        ------
        InvalidInputError, InputTypeError
            If databases are not in the order of time, a covariate is missing or determines the
            response, a season is longer than half the series, everybody is an insider, or there
            are too few databases for what is known; of joined responses also if they are to know
            their own contribution.

        See Also
        --------
        leakage : delta for adversaries who know more and more
        audit : audit a query
        """
        from edp_bayes.adversary.known import known

        return known(self, responses, at)


def _published(asked: Any, past: int) -> Published | None:
    """Return what was published of earlier releases, or say what cannot be."""
    if asked is None:
        return None
    if not past:
        raise InvalidInputError(
            "past_published is what was published of earlier releases, and none was seen: give past"
        )
    return published_of(asked, "past_published")


def covariate_names(table: Any) -> list[str]:
    """Return the names of covariates."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    from edp_bayes.adversary.covariates import as_frame

    return [str(name) for name in as_frame(table).columns]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
