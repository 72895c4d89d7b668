"""Several queries answered on the same databases about the same individuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.multivariate import Units
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.records.remainder import require_collected
from edp_bayes.responses.entries import Entries
from edp_bayes.responses.responses import Adjustment, Responses
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Flags, Index
from edp_bayes.utils.sentences import Sentence

__all__ = [
    "MOST_QUERIES",
    "JointResponses",
    "SomeJointResponses",
    "join",
]

MOST_QUERIES = 5


@dataclass(frozen=True, eq=False, repr=False)
class JointResponses:
    """Responses of two to five queries on the same databases, with and without each individual.

    Made by `Responses.join`. The queries are published together: what is audited is what all the
    answers tell of an individual.

    Parameters
    ----------
    parts : tuple of Responses
        One for each query, individuals and databases in the same order.

    See Also
    --------
    Responses.join : several queries published together
    audit : audit a query
    JointAudit : the posterior of several queries together

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> price = rng.gamma(2.0, 10.0, (40, 3))
    >>> revenue = Responses.from_arrays(price.sum(1), contribution=price, query="revenue")
    >>> orders = Responses.from_arrays(
    ...     rng.poisson(9.0, 40) + 3.0, contribution=np.ones((40, 3)), query="orders"
    ... )
    >>> Responses.join(revenue, orders)
    JointResponses(revenue and orders: 40 databases, 3 individuals, 120 contributions)
    """

    parts: tuple[Responses, ...]

    @property
    def samples(self) -> int:
        """Responses a database to each query: one."""
        return self.parts[0].samples

    @property
    def adjustment(self) -> Adjustment | None:
        """How contributions were adjusted to the database in question of an adversary."""
        return self.parts[0].adjustment

    @property
    def n_databases(self) -> int:
        """Number n of databases."""
        return self.parts[0].n_databases

    @property
    def n_individuals(self) -> int:
        """Number m of individuals."""
        return self.parts[0].n_individuals

    @property
    def n_queries(self) -> int:
        """Number d of queries."""
        return len(self.parts)

    @property
    def individual(self) -> NDArray[Any]:
        """Labels of the individuals, shape (m,)."""
        return self.parts[0].individual

    @property
    def database(self) -> NDArray[Any]:
        """Labels of the databases, shape (n,)."""
        return self.parts[0].database

    @property
    def order(self) -> Index:
        """The individuals by sorted labels, shape (m,)."""
        return self.parts[0].order

    @property
    def rank(self) -> Index:
        """Place of every individual in the order of sorted labels, shape (m,)."""
        return self.parts[0].rank

    @property
    def query(self) -> str:
        """The queries, in words."""
        names = [part.query for part in self.parts]
        return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name of its own for each query."""
        names = [part.query for part in self.parts]
        several = len(set(names)) < len(names)
        return tuple(f"{name} ({k + 1})" if several else name for k, name in enumerate(names))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about the responses of any query."""
        return tuple(dict.fromkeys(w for part in self.parts for w in part.warnings))

    @cached_property
    def response(self) -> Array:
        """Shape (n, d)."""
        return np.stack([part.response for part in self.parts], axis=1)

    @cached_property
    def entries(self) -> Entries:
        """Contributions of every individual to all queries."""
        n, people = self.n_databases, self.n_individuals
        keys = [part.owner * n + part.contribution.indices for part in self.parts]
        cells = np.unique(np.concatenate(keys))
        value = np.zeros((cells.size, self.n_queries))
        for column, (key, part) in enumerate(zip(keys, self.parts, strict=True)):
            value[np.searchsorted(cells, key), column] = part.contribution.data
        owner, database = cells // n, cells % n
        start = np.searchsorted(owner, np.arange(people + 1))
        return Entries(owner, database, value, start)

    @property
    def remainder(self) -> None:
        """Nothing: everybody's contributions are collected."""
        return None

    @cached_property
    def reduced(self) -> Flags:
        """Whose contributions were not collected, shape (m,): nobody's."""
        return np.zeros(self.n_individuals, dtype=bool)

    @property
    def presence_cells(self) -> Index:
        """Individual * databases + database of every presence, in order."""
        return np.asarray(self.entries.owner * self.n_databases + self.entries.database)

    def covariance_without(self, units: Units) -> Array:
        """Return that of the responses without every individual, in some units, (m, d, d)."""
        z, c = units.whiten(self.response), units.shrink(self.entries.value)
        return self.entries.covariance_without(z, c)

    def response_without(self, individual: Any) -> Array:
        """Return the responses without one individual, shape (n, d)."""
        rest = self.response.copy()
        database, value = self.entries.of(self.index_of(individual))
        rest[database] -= value
        return rest

    @cached_property
    def presence(self) -> Index:
        """In how many databases every individual owns records, shape (m,)."""
        return np.asarray(np.max([part.presence for part in self.parts], axis=0))

    @cached_property
    def noise_variance(self) -> Array:
        """Variance of the known noise of every query, shape (d,)."""
        return np.array([0.0 if p.noise is None else p.noise.variance for p in self.parts])

    @property
    def read_as(self) -> str:
        """What is unusual about how files of the records were read."""
        return " ".join(dict.fromkeys(part.read_as for part in self.parts if part.read_as))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the fingerprints of all queries in their order."""
        return sha256("".join(part.fingerprint for part in self.parts).encode()).hexdigest()

    def index_of(self, individual: Any) -> int:
        """Return the column of an individual; raise InvalidInputError if there is none."""
        return self.parts[0].index_of(individual)

    def of_queries(self, some: Sequence[int]) -> JointResponses:
        """Return the same with some of the queries."""
        return JointResponses(tuple(self.parts[k] for k in some))

    def of_parts(self, parts: Sequence[Responses]) -> JointResponses:
        """Return what has other `parts`."""
        return JointResponses(tuple(parts))

    def __repr__(self) -> str:
        """Return the sizes, not the arrays."""
        return (
            f"JointResponses({self.query}: {self.n_databases} databases, {self.n_individuals} "
            f"individuals, {self.entries.owner.size} contributions)"
        )


@dataclass(frozen=True, eq=False)
class SomeJointResponses:
    """Contributions of some individuals to several queries; attributes as `JointResponses`."""

    response: Array
    entries: Entries
    rank: Index
    noise_variance: Array

    @classmethod
    def of(
        cls, responses: JointResponses | SomeJointResponses, members: Index
    ) -> SomeJointResponses:
        """Take those of some individuals."""
        found = responses.entries
        count = found.start[members + 1] - found.start[members]
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        owner = np.repeat(np.arange(members.size), count)
        entry = np.arange(owner.size) - start[owner] + found.start[members][owner]
        some = Entries(owner, found.database[entry], found.value[entry], start)
        return cls(responses.response, some, responses.rank[members], responses.noise_variance)

    @property
    def n_databases(self) -> int:
        """Number of databases."""
        return len(self.response)

    @property
    def n_individuals(self) -> int:
        """Number of these individuals."""
        return int(self.rank.size)


def join(responses: Sequence[Responses]) -> JointResponses:
    """Return several responses as one release; see `Responses.join`."""
    for part in responses:
        if not isinstance(part, Responses):
            raise InputTypeError(
                f"Responses.join takes Responses, found {type(part).__name__}: give the queries "
                "one by one, Responses.join(revenue, orders)"
            )
        require_collected(part.remainder, "a release of several queries")
    count = len(responses)
    if count < 2:
        raise InvalidInputError(
            f"at least two responses are joined, found {count}: audit a single query on its own"
        )
    if count > MOST_QUERIES:
        raise InvalidInputError(
            f"at most {MOST_QUERIES} queries are audited together, found {count}: a density in "
            "more dimensions cannot be learned from tens or hundreds of databases; join those "
            "that belong together"
        )
    first = responses[0]
    parts = [first]
    for part in responses[1:]:
        _same(first.database, part.database, "database", first.query, part.query)
        _same(first.individual, part.individual, "individual", first.query, part.query)
        parts.append(_aligned(first, part))
    for part in parts:
        if part.scale is not None:
            raise InvalidInputError(
                f"joined queries are modelled on their own scales, found transform {part.scale} of "
                f"{part.query}: join responses without transform, or their on_scale, whose risks "
                "are the same"
            )
        if part.atoms is not None:
            raise InvalidInputError(
                f"atoms are modelled of one answer alone, found atoms of {part.query}: join "
                "responses without atoms, or audit each query alone"
            )
        if part.samples > 1:
            raise InvalidInputError(
                f"joined queries must have one response a database, found {part.samples} samples "
                f"of {part.query}: nobody knows which samples of two queries belong together"
            )
        if isinstance(part.noise, LaplaceNoise):
            raise InvalidInputError(
                f"a joint audit takes Gaussian noise or none, found {part.noise} on {part.query}: "
                "correlated answers with Laplace noise have no closed density; audit without "
                "noise, which is on the safe side, and give released(noise_after={query: noise}) "
                "of the audit the noise, for an upper limit with it"
            )
    return JointResponses(tuple(map(_continuous, parts)))


def _continuous(part: Responses) -> Responses:
    """Return responses as continuous ones; where they are rounded a sentence says so."""
    if part.step is None:
        return part
    said = Sentence(
        f"Answers of {part.query} rounded to a grid of step {part.step:g} are treated as "
        "continuous together with others: released(rounded_to={...}) of the audit says what the "
        "rounding leaves of the risk"
    )
    others = [one for one in part.warnings if "rounded to a grid" not in one]
    return part.replaced(step=None, warnings=(*others, said))


def _aligned(first: Responses, part: Responses) -> Responses:
    """Return responses in the order of the first's databases and individuals."""
    rows, columns = (
        _places(ours, theirs)
        for ours, theirs in (
            (first.database, part.database),
            (first.individual, part.individual),
        )
    )
    if (np.diff(rows) == 1).all() and (np.diff(columns) == 1).all():
        return part
    matrix = part.contribution.tocsr()[rows].tocsc()[:, columns]
    return part.replaced(
        response=part.response.reshape(-1, part.samples)[rows].ravel(),
        contribution=matrix,
        database=first.database,
        individual=first.individual,
        presence=part.presence[columns],
    )


def _places(ours: NDArray[Any], theirs: NDArray[Any]) -> Index:
    where = {label: k for k, label in enumerate(labels.plain_list(theirs))}
    return np.array([where[label] for label in labels.plain_list(ours)], dtype=np.int64)


def _same(ours: NDArray[Any], theirs: NDArray[Any], what: str, one: str, other: str) -> None:
    """Refuse labels that are not the same, and name what differs."""
    left, right = (dict.fromkeys(labels.plain_list(part)) for part in (ours, theirs))
    missing, extra = [k for k in left if k not in right], [k for k in right if k not in left]
    if not missing and not extra:
        return
    found = []
    for names, there, absent in ((missing, one, other), (extra, other, one)):
        if names:
            found.append(
                f"{what} {labels.show(names[0])} is in {there} and not in {absent} "
                f"({len(names)} such)"
            )
    raise InvalidInputError(
        f"joined responses must be of the same {what}s, found {len(left)} of {one} and "
        f"{len(right)} of {other}: {'; '.join(found)}"
    )
