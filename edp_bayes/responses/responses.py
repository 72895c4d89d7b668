"""What a query returned on every database, with and without each individual."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.cut_off import Partial
from edp_bayes.records.remainder import WAY_OUT, NotCollected, Remainder
from edp_bayes.responses.atoms import checked_atoms, places, tied_ends
from edp_bayes.responses.entries import Entries
from edp_bayes.responses.rounding import FOUND, ROUNDING, checked_step
from edp_bayes.responses.transforms import Transform, transform_of
from edp_bayes.utils import labels, validate
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from edp_bayes.distributions.multivariate import Units
    from edp_bayes.responses.joined import JointResponses

__all__ = ["Adjustment", "Responses", "contributing", "entry_columns"]

FEWEST_DATABASES = 8
FEW_DATABASES = 20
HEAVY_TIES = 0.5
# Between these, powers up to the fourth stay in the range of doubles, and densities in that of the
# floats of single precision in which they are kept.
LEAST_UNIT, LARGEST_UNIT = 1e-30, 1e30
# A dataclass's own __init__ counts as ours; its file is "<string>".
_OWN_FILES = (os.path.dirname(__file__), "<string>")


class Adjustment(NamedTuple):
    """How contributions were adjusted to the database in question, as what is known predicts.

    Attributes
    ----------
    degrees : ndarray
        Shape (m,): degrees of freedom that the regression of the contributions took.
    variance : ndarray
        Shape (m,): variance that it adds to the mean contribution at the database in question, in
        units of the residual variance.
    odds : float
        Odds of presence at the database in question over those on average.
    spells : ndarray
        Shape (m,): by how much spells widen the variance of the share of databases in which an
        individual is present, at least 1.
    recent : ndarray
        Shape (m,): odds of presence at the database in question, given whether an individual was in
        the one before, over those of everybody.
    """

    degrees: NDArray[np.float64]
    variance: NDArray[np.float64]
    odds: float
    spells: NDArray[np.float64]
    recent: NDArray[np.float64]

    @classmethod
    def none(cls, m: int) -> Adjustment:
        """Return that of contributions as they were."""
        return cls(np.zeros(m), np.zeros(m), 1.0, np.ones(m), np.ones(m))

    @property
    def own_odds(self) -> NDArray[np.float64]:
        """Odds of everybody's presence at the database in question over those on average, (m,)."""
        return self.odds * self.recent


@dataclass(frozen=True, eq=False)
class Responses:
    """Responses of a query and the contribution of every individual to each of them.

    Parameters
    ----------
    response : array_like
        Shape (n * samples,): y_j = f(X^j). Row j * samples + k is sample k of database j; the
        samples of a database share its weight, they are a cluster and not independent databases.
    contribution : scipy.sparse array
        Shape (n * samples, m): c_ij = y_j - y_ij, zero where i is absent. Kept by columns; zeros
        are not stored.
    individual, database : array_like
        The m and the n labels; compound keys are tuples.
    presence : array_like of int
        Shape (m,): in how many databases the individual owns records, contributing or not.
    samples : int
        Samples of a randomised query for each database; 1 for any other.
    noise : GaussianNoise or LaplaceNoise, optional
        Known distribution of additive noise that the release has and `response` has not.
    query : str
        Description of the query.
    additive : bool
        The response is a sum over individuals: without several of them it is less by the sum of
        their contributions.
    ask : callable, optional
        Takes a query, None for this one, and labels of individuals, None for all, and returns what
        it answers on the records of these in every database, shape (n,).
    adjustment : Adjustment, optional
        How contributions were adjusted to the database in question of an adversary.
    step : float, optional
        Responses are rounded to a grid of this step, as counts are to 1: the audit's own mixtures
        model what was rounded, and risks are those of the rounded answer. By default it is found
        from the data where most responses are tied and all lie on a grid; None treats them as
        continuous.
    half_step : ndarray, optional
        Shape (n,): half the width of the bin of which each response is the middle, where it is
        rounded; half the step of those on a grid.
    warnings : tuple of str
        What was found to be legal but doubtful about the records. What is doubtful about the
        responses themselves is put before it; each was also a warning.
    identifier : str
        Name of the column that identifies individuals, where there is one.
    remainder : Remainder, optional
        What is known of individuals whose contributions were not collected, see the option
        ``collect`` of `Databases.respond`. Their columns are empty, and `contribution` refuses
        whatever needs everybody's; those that were collected are in `collected`.
    read_as : str, optional
        What is unusual about how a file of the records was read, in a sentence.
    partial : Partial, optional
        First and last databases that are periods cut off, and whether they were kept.
    transform : {"log", "logit", "sqrt"} or pair of callables, optional
        The scale on which the responses are modelled; responses and contributions are given, and
        kept, as they are. No risk changes under a strictly monotone map of the answer, so it is to
        be the scale on which contributions are near linear in the rest: log for shares of a total,
        logit for proportions near an end. A pair is a strictly monotone function of arrays and its
        inverse. Not where answers are rounded, carry known noise or lack contributions.
    atoms : array_like of float or "found", optional
        One to five values that the answer has again and again, such as 0 or a cap, in at least
        three databases with or without an individual: each is a point mass of its distribution,
        and the density is that of all other answers. An answer that is an atom with an individual
        and another without them, or the other way round, is kept apart. "found" takes the
        smallest and the largest answer where these are tied. For continuous answers, without known
        noise, samples or a transform.

    Raises
    ------
    InvalidInputError
        If a value is not finite, there are fewer than 8 databases, the responses are constant or
        spread by less than 1e-30, a value is above 1e30, labels are missing or repeated, shapes
        disagree, a response, with or without an individual, has no value on the scale of
        `transform`, or `atoms` are not what they have to be.
    InputTypeError
        If an argument has a type that cannot be used.

    See Also
    --------
    Databases.respond : the responses of a query
    from_arrays : responses computed elsewhere
    JointResponses : the responses of several queries
    audit : audit a query

    Notes
    -----
    Vocabulary and sign of the contribution follow Burchard, Daoud and Dotterrer (2020),
    Definitions 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array
    >>> responses = Responses(
    ...     response=np.arange(20.0),
    ...     contribution=csc_array(np.eye(20, 2)),
    ...     individual=["ann", "bob"],
    ...     database=np.arange(20),
    ...     presence=np.array([1, 1]),
    ... )
    >>> responses.contribution_of("bob")[:3]
    array([0., 1., 0.])
    """

    response: NDArray[np.float64]
    contribution: csc_array[np.float64]
    individual: NDArray[Any]
    database: NDArray[Any]
    presence: NDArray[np.int64]
    samples: int = 1
    noise: GaussianNoise | LaplaceNoise | None = None
    query: str = "query"
    additive: bool = False
    ask: Callable[[Any, Any], NDArray[Any]] | None = field(default=None, repr=False)
    adjustment: Adjustment | None = field(default=None, repr=False)
    step: float | str | None = FOUND
    half_step: NDArray[np.float64] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    identifier: str = ""
    remainder: Remainder | None = field(default=None, repr=False)
    read_as: str = field(default="", repr=False)
    partial: Partial | None = field(default=None, repr=False)
    transform: Transform | str | tuple[Callable[..., Any], Callable[..., Any]] | None = None
    atoms: ArrayLike | str | None = None
    collected: csc_array[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        samples = validate.positive_integer(self.samples, "samples")
        database = labels.as_labels(self.database, "database")
        individual = labels.as_labels(self.individual, "individual")
        labels.refuse_duplicates(database, "database")
        labels.refuse_duplicates(individual, "individual")
        require_databases(database.size)
        shape = (database.size * samples, individual.size)
        response = _response(self.response, database, samples)
        given: Any = self.contribution
        given = given.collected if isinstance(given, NotCollected) else given
        contribution = _contribution(given, shape)
        _refuse_non_finite(contribution, individual, database, samples)
        _refuse_constant(response)
        require_noise(self.noise)
        _refuse_extreme(response, contribution, self.noise)
        presence = _presence(self.presence, contribution, individual, database.size, samples)
        response.setflags(write=False)
        plain = samples == 1 and self.noise is None
        atoms = checked_atoms(self.atoms, response, contribution)
        free = response if atoms is None else response[places(response, atoms) < 0]
        tied = _tied(free) > HEAVY_TIES * free.size
        step = (
            None
            if self.step == FOUND and not tied
            else checked_step(self.step, response, contribution, plain=plain)
        )
        half_step = self.half_step
        if step is not None:
            half_step = np.full(database.size, 0.5 * step)
        own = _warnings(free, database, step if self.step == FOUND else self.step)
        alone = plain and self.transform is None and self.remainder is None
        if atoms is not None:
            _refuse_beside_atoms(self, step, free.size)
        elif alone and self.step == FOUND and step is None and self.adjustment is None and not tied:
            own = (*own, *_of_tied_ends(response, contribution))
        transform = transform_of(self.transform)
        if transform is not None:
            _refuse_transform(transform, step, self.noise, self.remainder)
            _refuse_edges(transform, response, contribution, individual, database, samples)
        for name, value in (
            ("response", response),
            ("collected", contribution),
            ("contribution", self._guarded(contribution)),
            ("individual", individual),
            ("database", database),
            ("presence", presence),
            ("samples", samples),
            ("query", str(self.query)),
            ("additive", bool(self.additive)),
            ("step", step),
            ("half_step", half_step),
            ("transform", transform),
            ("atoms", atoms),
            ("warnings", tuple(dict.fromkeys((*own, *self.warnings)))),
        ):
            object.__setattr__(self, name, value)
        for sentence in own:
            warnings.warn(sentence, EdpBayesWarning, stacklevel=frames_of_our_own())

    def _guarded(self, collected: csc_array[np.float64]) -> Any:
        """Return the matrix of contributions, or what refuses where some are not in it."""
        if self.remainder is None:
            return collected
        return NotCollected(collected, self.remainder.size)

    @classmethod
    def from_arrays(
        cls,
        response: ArrayLike,
        response_without: ArrayLike | None = None,
        contribution: ArrayLike | csc_array[np.float64] | None = None,
        individual: Sequence[Any] | NDArray[Any] | None = None,
        database: Sequence[Any] | NDArray[Any] | None = None,
        *,
        presence: ArrayLike | None = None,
        samples: int = 1,
        noise: GaussianNoise | LaplaceNoise | None = None,
        query: str = "arrays",
        additive: bool = False,
        step: float | str | None = FOUND,
        transform: Transform | str | tuple[Callable[..., Any], Callable[..., Any]] | None = None,
        atoms: ArrayLike | str | None = None,
    ) -> Responses:
        """Return responses that were computed elsewhere.

        Parameters
        ----------
        response : array_like
            Shape (n * samples,).
        response_without : array_like, optional
            Shape (n * samples, m), or (n * samples,) for a single individual: y_ij. What differs
            from the response by rounding alone (16 units in the last place) is no contribution.
        contribution : array_like or scipy.sparse array, optional
            Same shape: c_ij = y_j - y_ij. Give either this or `response_without`.
        individual, database : sequence, optional
            Labels; by default 0..m-1 and 0..n-1.
        presence : array_like of int, optional
            Shape (m,); by default the number of databases with a contribution other than zero.
        samples, noise, query, additive, step, transform, atoms
            As for the class.

        Raises
        ------
        InvalidInputError
            If both or neither of `response_without` and `contribution` are given, shapes
            disagree, or the responses are not valid.

        See Also
        --------
        Databases.respond : the responses of a query
        audit : audit a query

        Examples
        --------
        >>> import numpy as np
        >>> y = np.arange(20.0)
        >>> responses = Responses.from_arrays(y, response_without=y - 0.5, individual=["ann"])
        >>> responses.largest_contribution
        array([0.5])
        """
        samples = validate.positive_integer(samples, "samples")
        y = _numeric(response, "response")
        if y.ndim != 1 or y.size % samples:
            raise InvalidInputError(
                f"response must be a vector of {samples} sample(s) for each database, "
                f"found shape {y.shape}"
            )
        if database is None:
            database = np.arange(y.size // samples)
        matrix = _either(y, response_without, contribution)
        if individual is None:
            individual = np.arange(matrix.shape[1])
        return cls(
            response=y,
            contribution=matrix,
            individual=labels.as_labels(individual, "individual"),
            database=labels.as_labels(database, "database"),
            presence=presence,  # type: ignore[arg-type]
            samples=samples,
            noise=noise,
            query=query,
            additive=additive,
            step=step,
            transform=transform,
            atoms=atoms,
        )

    @staticmethod
    def join(*responses: Responses) -> JointResponses:
        """Return the responses of two to five queries that are published together.

        Parameters
        ----------
        *responses : Responses
            Of the same databases and individuals, in any order; one response a database.

        Returns
        -------
        JointResponses
            What `edp_bayes.audit` takes for a joint audit.

        Raises
        ------
        InvalidInputError, InputTypeError
            If databases or individuals differ, there is one query or more than five, a query is
            randomised, or known noise is other than Gaussian; the message names what differs.

        See Also
        --------
        JointResponses : the responses of several queries
        audit : audit a query
        JointAudit : the posterior of several queries together

        Examples
        --------
        >>> import numpy as np
        >>> y = np.arange(20.0)
        >>> one = Responses.from_arrays(y, contribution=np.ones(20), query="sum")
        >>> two = Responses.from_arrays(y % 7, contribution=np.ones(20), query="count")
        >>> Responses.join(one, two).n_queries
        2
        """
        from edp_bayes.responses.joined import join

        return join(responses)

    def replaced(self, **changes: Any) -> Responses:
        """Return the same responses with other parts; what is doubtful is said once, not again.

        Other responses or contributions are on no grid, and are not known to be rounded.
        """
        if changes.keys() & {"response", "contribution"}:
            changes.setdefault("step", None)
        if "step" in changes:
            changes.setdefault("half_step", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdpBayesWarning)
            return replace(self, **changes)

    def of_parts(self, parts: Sequence[Responses]) -> Responses:
        """Return what has other `parts`, of which there is one."""
        (one,) = parts
        return one

    @cached_property
    def on_scale(self) -> Responses:
        """Responses and contributions as a density models them; these if it models them all.

        On the scale of a transform contributions are differences there: g(y_j) - g(y_ij), zero
        where they were. Where there are atoms these are the databases whose answer is none.
        """
        from scipy.sparse import csc_array

        if isinstance(self.atoms, np.ndarray):
            return self._at_no_atom(self.atoms)
        scale = self.scale
        if scale is None:
            return self
        y, c = self.response, self.collected
        moved = scale.difference(y[c.indices], c.data)
        return self.replaced(
            response=scale.forward(y),
            contribution=csc_array((moved, c.indices, c.indptr), shape=c.shape),
            additive=False,
            transform=None,
        )

    def _at_no_atom(self, atoms: NDArray[np.float64]) -> Responses:
        """Return the databases whose answer is no atom."""
        rows = places(self.response, atoms) < 0
        return self.replaced(
            response=self.response[rows],
            contribution=self.collected[rows],
            database=self.database[rows],
            presence=np.minimum(self.presence, int(rows.sum())),
            ask=None,
            partial=None,
            atoms=None,
        )

    @property
    def scale(self) -> Transform | None:
        """The transform, None where responses are modelled as they are."""
        assert self.transform is None or isinstance(self.transform, Transform)
        return self.transform

    @cached_property
    def log_slope(self) -> NDArray[np.float64]:
        """What makes the log density of a response of one on the modelled scale, shape (n,).

        Several samples of a database share the weight of one.
        """
        scale = self.scale
        if scale is None:
            return np.zeros(self.on_scale.n_databases)
        return np.asarray(scale.log_slope(self.response_by_database).mean(axis=1))

    @property
    def n_databases(self) -> int:
        """Number n of databases."""
        return int(self.database.size)

    @property
    def n_individuals(self) -> int:
        """Number m of individuals."""
        return int(self.individual.size)

    @property
    def cluster(self) -> NDArray[np.int64]:
        """Database of every row, shape (n * samples,)."""
        return np.repeat(np.arange(self.n_databases), self.samples)

    @property
    def response_by_database(self) -> NDArray[np.float64]:
        """The responses, shape (n, samples)."""
        return self.response.reshape(self.n_databases, self.samples)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Individual of every collected contribution, shape (collected.nnz,)."""
        owner = entry_columns(self.collected)
        owner.setflags(write=False)
        return owner

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The individuals by sorted labels, shape (m,)."""
        order = labels.sorted_order(self.individual)
        order.setflags(write=False)
        return order

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Place of every individual in the order of sorted labels, shape (m,).

        It numbers their random streams, so that no draw depends on the order of the columns.
        """
        rank = np.empty(self.n_individuals, dtype=np.int64)
        rank[self.order] = np.arange(self.n_individuals)
        rank.setflags(write=False)
        return rank

    @cached_property
    def reduced(self) -> NDArray[np.bool_]:
        """Whose contributions were not collected, shape (m,)."""
        reduced = np.zeros(self.n_individuals, dtype=bool)
        if self.remainder is not None:
            reduced[self.remainder.individuals] = True
        reduced.setflags(write=False)
        return reduced

    @cached_property
    def largest_contribution(self) -> NDArray[np.float64]:
        """Largest abs(c_ij) of every individual over the rows, shape (m,)."""
        largest = np.zeros(self.n_individuals)
        start = self.collected.indptr[:-1]
        occupied = np.diff(self.collected.indptr) > 0
        if occupied.any():
            size = np.abs(self.collected.data)
            largest[occupied] = np.maximum.reduceat(size, start[occupied])
        if self.remainder is not None:
            largest[self.remainder.individuals] = self.remainder.largest
        largest.setflags(write=False)
        return largest

    @property
    def parts(self) -> tuple[Responses, ...]:
        """The queries, of which this is the only one: as of several, see `JointResponses`."""
        return (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every query, of which this is the only one."""
        return (self.query,)

    @property
    def entries(self) -> Entries:
        """Contributions entry by entry, as those to several queries; collected ones alone."""
        matrix: Any = self.collected
        return Entries(self.owner, matrix.indices, matrix.data[:, None], matrix.indptr)

    @cached_property
    def presence_cells(self) -> NDArray[np.int64]:
        """Individual * databases + database of every presence collected, in order."""
        place = self.collected.indices // self.samples
        return np.unique(self.owner * self.n_databases + place)

    @property
    def noise_variance(self) -> NDArray[np.float64]:
        """Variance of the known noise, shape (1,)."""
        return np.array([0.0 if self.noise is None else self.noise.variance])

    def covariance_without(self, units: Units) -> NDArray[np.float64]:
        """Return `variance_without` in some units, shape (m, 1, 1)."""
        return np.asarray((self.variance_without / units.factor[0, 0] ** 2)[:, None, None])

    @cached_property
    def variance_without(self) -> NDArray[np.float64]:
        """Variance over the rows of the responses without every individual, shape (m,)."""
        y, c, people, owner = self.response, self.collected, self.n_individuals, self.owner
        u = y[c.indices] - y.mean()
        # The responses without an individual are the responses themselves where they are absent.
        moved = np.bincount(owner, (u - c.data) ** 2 - u**2, people) / y.size
        mean = np.bincount(owner, c.data, people) / y.size
        if self.remainder is not None:
            others = self.remainder.individuals
            moved[others] = self.remainder.moved(float(y.mean())) / y.size
            mean[others] = self.remainder.contribution / y.size
        variance = np.maximum(y.var() + moved - mean**2, 0.0)
        variance.setflags(write=False)
        return variance

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of responses, contributions and labels.

        The same data give the same fingerprint on every machine; noise and query are left out, the
        scale of `transform` and the atoms are part of it.
        Where some contributions were not collected it is that of what is known instead.
        """
        matrix = self.collected
        digest = sha256(f"{self.samples}".encode())
        for part in (
            self.response.astype("<f8").tobytes(),
            matrix.indptr.astype("<i8").tobytes(),
            matrix.indices.astype("<i8").tobytes(),
            matrix.data.astype("<f8").tobytes(),
            labels.encode(self.database),
            labels.encode(self.individual),
            *([] if self.remainder is None else [b"reduced", *self.remainder.parts()]),
            # of a pair of functions nothing else tells which they are
            *([] if self.scale is None else [b"transform", self.on_scale.fingerprint.encode()]),
            *([] if self.atoms is None else [b"atoms", np.asarray(self.atoms, "<f8").tobytes()]),
        ):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def index_of(self, individual: Any) -> int:
        """Return the column of an individual.

        Raises
        ------
        InvalidInputError
            If no individual has this label.
        """
        key = labels.lookup_key(individual, self.individual)
        try:
            return self._positions[key]
        except (KeyError, TypeError):
            raise InvalidInputError(
                f"unknown individual {labels.show(individual)}; "
                f"there are {labels.show_some(self.individual)}"
            ) from None

    def contribution_of(self, individual: Any) -> NDArray[np.float64]:
        """Return the contributions of one individual, shape (n * samples,)."""
        column = self.index_of(individual)
        if self.reduced[column]:
            raise InvalidInputError(
                f"the contributions of individual {labels.show(individual)} were not collected: "
                "collect those of more individuals"
            )
        start, stop = self.collected.indptr[column : column + 2]
        dense = np.zeros(self.response.size)
        dense[self.collected.indices[start:stop]] = self.collected.data[start:stop]
        return dense

    def response_without(self, individual: Any) -> NDArray[np.float64]:
        """Return y_ij, the responses without one individual, shape (n * samples,)."""
        return self.response - self.contribution_of(individual)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return labels.positions_of(self.individual)

    def __repr__(self) -> str:
        """Return the sizes, not the arrays."""
        return (
            f"Responses({self.query}: {self.n_databases} databases, {self.n_individuals} "
            f"individuals, {self.collected.nnz} contributions"
            + ("" if self.remainder is None else f", {self.remainder.size} individuals reduced")
            + ("" if self.scale is None else f", transform {self.scale}")
            + ("" if self.atoms is None else f", atoms {np.asarray(self.atoms).tolist()}")
            + ")"
        )


def require_noise(noise: object) -> None:
    """Refuse anything but a distribution of noise or none."""
    if not isinstance(noise, GaussianNoise | LaplaceNoise | None):
        raise InputTypeError(f"noise must be GaussianNoise or LaplaceNoise, found {noise!r}")


def require_databases(count: int) -> None:
    """Refuse fewer databases than any density can be estimated from."""
    if count < FEWEST_DATABASES:
        raise InvalidInputError(
            f"at least {FEWEST_DATABASES} databases are needed, found {count}: "
            "the distribution of the response cannot be estimated from so few"
        )


def _either(
    response: NDArray[np.float64],
    response_without: ArrayLike | None,
    contribution: ArrayLike | csc_array[np.float64] | None,
) -> csc_array[np.float64]:
    from scipy.sparse import csc_array, issparse

    if (response_without is None) == (contribution is None):
        found = "neither" if contribution is None else "both"
        raise InvalidInputError(
            f"give either response_without or contribution, found {found} of them"
        )
    name = "contribution" if response_without is None else "response_without"
    value: Any = contribution if response_without is None else response_without
    if not issparse(value):
        # Non-finite values pass here: the check of the whole names database and individual.
        value = _numeric(value, name)
        value = value[:, None] if value.ndim == 1 else value
    elif name == "response_without":
        raise InputTypeError("response_without must be dense; give sparse data as contribution")
    if value.ndim != 2 or value.shape[0] != response.size:
        raise InvalidInputError(
            f"{name} must have one row for each response: response has shape {response.shape}, "
            f"{name} {value.shape}"
        )
    if name == "response_without":
        with np.errstate(invalid="ignore"):
            without, value = value, response[:, None] - value
            size = np.maximum(np.abs(response)[:, None], np.abs(without))
            # of who is absent the response comes out the same but for rounding
            value[np.isfinite(value) & (np.abs(value) <= ROUNDING * size)] = 0.0
    return csc_array(value, dtype=np.float64)


def _numeric(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Copy to float64; non-finite values pass, to be named later by database and individual."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputTypeError(f"{name} must be a numeric array: {error}") from None
    if array.dtype.kind not in labels.NUMERIC_KINDS:
        raise InputTypeError(f"{name} must be numeric, found {array.dtype} data")
    validate.refuse_masked(value, name)
    return np.array(array, dtype=np.float64)


def _response(value: ArrayLike, database: NDArray[Any], samples: int) -> NDArray[np.float64]:
    response = _numeric(value, "response")
    if response.shape != (database.size * samples,):
        raise InvalidInputError(
            f"response must have shape ({database.size * samples},) for {database.size} "
            f"databases with {samples} sample(s) each, found shape {response.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(response))
    if bad.size:
        raise InvalidInputError(
            f"the response of database {labels.show(database[bad[0] // samples])} is "
            f"{response[bad[0]]}, it must be finite ({bad.size} of {response.size} values)"
        )
    return response


def _contribution(value: Any, shape: tuple[int, int]) -> csc_array[np.float64]:
    from scipy.sparse import csc_array, issparse

    # Kept as Any: what issparse narrows to has no shape in the stubs.
    sparse: bool = issparse(value)
    if not sparse:
        raise InputTypeError(
            f"contribution must be a scipy.sparse array, found {type(value).__name__}; "
            "Responses.from_arrays takes dense arrays"
        )
    if value.shape != shape:
        raise InvalidInputError(
            f"contribution must have shape {shape}, rows by individuals, found {value.shape}"
        )
    if 0 in shape:
        raise InvalidInputError("at least one individual is needed, found none")
    matrix: csc_array[np.float64] = csc_array(value, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def _refuse_non_finite(
    matrix: csc_array[np.float64], individual: NDArray[Any], database: NDArray[Any], samples: int
) -> None:
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size == 0:
        return
    column = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
    row = int(matrix.indices[bad[0]]) // samples
    raise InvalidInputError(
        f"the contribution of individual {labels.show(individual[column])} to database "
        f"{labels.show(database[row])} is {matrix.data[bad[0]]}, it must be finite "
        f"({bad.size} contributions are not)"
    )


def _refuse_constant(response: NDArray[np.float64]) -> None:
    spread = float(response.max() - response.min())
    if spread <= ROUNDING * float(np.abs(response).max()):
        raise InvalidInputError(
            f"the responses of all {response.size} rows equal {response[0]:.12g}: "
            "a constant response has no density to compare"
        )


def _refuse_extreme(
    response: NDArray[np.float64],
    contribution: csc_array[np.float64],
    noise: GaussianNoise | LaplaceNoise | None,
) -> None:
    """Refuse units in which powers of responses or their densities leave the range of floats."""
    spread = float(response.max() - response.min())
    if spread < LEAST_UNIT:
        raise InvalidInputError(
            f"the responses spread by {spread:.3g}: give them in another unit, in which they "
            f"spread by at least {LEAST_UNIT:g}"
        )
    largest = {
        "response": float(np.abs(response).max()),
        "contribution": float(np.abs(contribution.data).max(initial=0.0)),
        "scale of the noise": 0.0 if noise is None else float(noise.scale),
    }
    for name, value in largest.items():
        if value > LARGEST_UNIT:
            raise InvalidInputError(
                f"the largest {name} is {value:.3g}: give responses, contributions and noise in "
                f"another unit, in which they are at most {LARGEST_UNIT:g}"
            )


def _refuse_beside_atoms(responses: Responses, step: float | None, others: int) -> None:
    """Refuse atoms beside what is known without them alone, or beside too few other answers."""
    if step is not None:
        raise InvalidInputError(
            f"atoms are for continuous answers, and these are rounded to a grid of step {step:g}, "
            "whose every value has a probability of its own: leave out atoms, or treat them as "
            "continuous by step=None (--no-step)"
        )
    for given, name in (
        (responses.noise is not None, "known noise"),
        (responses.samples > 1, "several samples of a database"),
        (responses.transform is not None, "transform"),
        (responses.remainder is not None, "contributions that were not collected"),
    ):
        if given:
            raise InvalidInputError(
                f"atoms are modelled on the answer itself, one for each database, with everybody's "
                f"contributions, found {name} beside them: leave out one of the two"
            )
    if others < FEWEST_DATABASES:
        raise InvalidInputError(
            f"at least {FEWEST_DATABASES} answers must be at no atom, found {others}: the density "
            "of these cannot be estimated from so few; leave out atoms"
        )


def _of_tied_ends(
    response: NDArray[np.float64], contribution: csc_array[np.float64]
) -> tuple[Sentence, ...]:
    """Return in words which ends of the answers are atoms that nobody named."""
    ends = [f"{end:.12g}" for end in tied_ends(response, contribution)]
    if not ends:
        return ()
    both = len(ends) > 1
    return (
        Sentence(
            f"{' and '.join(ends)}, {'the ends' if both else 'an end'} of the answers, "
            f"{'are' if both else 'is'} the answer of several databases, with or without an "
            "individual, and a density has no such value: "
            f"responses.replaced(atoms=[{', '.join(ends)}]) (--atoms {','.join(ends)}) gives it a "
            "probability of its own, in an audit without an adversary (--no-past)"
        ),
    )


def _refuse_transform(
    transform: Transform,
    step: float | None,
    noise: GaussianNoise | LaplaceNoise | None,
    remainder: Remainder | None,
) -> None:
    """Refuse another scale for what is modelled on the answer's own."""
    if step is not None:
        raise InvalidInputError(
            f"transform {transform} is for continuous answers, and these are rounded to a grid of "
            f"step {step:g}, which is a grid on their own scale alone: leave out transform, or "
            "treat them as continuous by step=None (--no-step)"
        )
    if noise is not None:
        raise InvalidInputError(
            f"transform {transform} is for answers without noise, and {noise} is added on their "
            "own scale: leave out one of the two; an audit without the noise is on the safe side"
        )
    if remainder is not None:
        raise InvalidInputError(
            f"transform {transform} needs the contributions of everybody, and those of "
            f"{remainder.size:,} individuals were not collected: {WAY_OUT}, or leave out transform"
        )


def _refuse_edges(
    transform: Transform,
    response: NDArray[np.float64],
    contribution: csc_array[np.float64],
    individual: NDArray[Any],
    database: NDArray[Any],
    samples: int,
) -> None:
    """Refuse answers, with or without an individual, that have no value on a scale."""
    ways = (
        "give another transform or none, or ask another query. An answer that is the same again "
        "and again, such as 0, is an atom: name it without a transform, "
        "responses.replaced(atoms=[0]) (--atoms 0)"
    )
    outside = np.flatnonzero(~transform.inside(response))
    if outside.size:
        k = int(outside[0])
        raise InvalidInputError(
            f"transform {transform} needs {transform.needs}, and the answer of database "
            f"{labels.show(database[k // samples])} is {response[k]:.12g} ({outside.size} of "
            f"{response.size} answers): {ways}"
        )
    rows = contribution.indices
    without = response[rows] - contribution.data
    bad = np.flatnonzero(~transform.inside(without))
    if bad.size:
        people = np.unique(entry_columns(contribution)[bad])
        row, person = int(rows[bad[0]]), int(people[0])
        raise InvalidInputError(
            f"transform {transform} needs {transform.needs}, and without individual "
            f"{labels.show(individual[person])} the answer of database "
            f"{labels.show(database[row // samples])} is {without[bad[0]]:.12g} ({people.size} of "
            f"{individual.size} individuals are such): {ways}"
        )
    transform.refuse_unfit(response, without)


def _presence(
    value: ArrayLike | None,
    matrix: csc_array[np.float64],
    individual: NDArray[Any],
    n_databases: int,
    samples: int,
) -> NDArray[np.int64]:
    at_least = contributing(matrix, n_databases, samples)
    presence = at_least if value is None else np.array(value)
    if presence.shape != at_least.shape or presence.dtype.kind not in "iu":
        raise InvalidInputError(
            f"presence must hold one integer for each of {at_least.size} individuals, "
            f"found {presence.dtype} of shape {presence.shape}"
        )
    presence = presence.astype(np.int64)
    bad = np.flatnonzero((presence < at_least) | (presence > n_databases))
    if bad.size:
        raise InvalidInputError(
            f"presence of individual {labels.show(individual[bad[0]])} must lie between "
            f"{at_least[bad[0]]}, the databases with a contribution, and {n_databases}, "
            f"found {presence[bad[0]]}"
        )
    presence.setflags(write=False)
    return presence


def entry_columns(matrix: csc_array[np.float64]) -> NDArray[np.int64]:
    """Return the column of every stored entry."""
    return np.repeat(np.arange(matrix.indptr.size - 1), np.diff(matrix.indptr))


def contributing(
    matrix: csc_array[np.float64], n_databases: int, samples: int
) -> NDArray[np.int64]:
    """Count the databases in which any sample has a contribution, for each individual."""
    count = np.diff(matrix.indptr).astype(np.int64)
    if samples == 1:
        return count
    cells = np.unique(entry_columns(matrix) * n_databases + matrix.indices // samples)
    return np.bincount(cells // n_databases, minlength=count.size)


def frames_of_our_own() -> int:
    """Return the stack level, seen from the function that asks, of the first caller outside."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FILES):
        level, frame = level + 1, frame.f_back
    return level


def _tied(response: NDArray[np.float64]) -> int:
    """Count the responses that equal another one."""
    _, count = np.unique(response, return_counts=True)
    return int(count[count > 1].sum())


def _warnings(
    response: NDArray[np.float64], database: NDArray[Any], step: object
) -> tuple[str, ...]:
    found = []
    if labels.look_like_dates_in_disorder(database):
        formats = " or ".join(map(repr, labels.date_formats_of(database)))
        found.append(
            f"the databases are in the order of text such as {database[0]!r} and "
            f"{database[1]!r}, which is not that of time: the checks of independence and drift "
            "mean nothing until the keys are dates or text such as 2024-12-31: "
            + (
                f"date_format={formats} (--date-format) makes them dates"
                if formats
                else "date_format= (--date-format), such as '%b %d %Y', makes them dates"
            )
        )
    if database.size < FEW_DATABASES:
        found.append(
            f"only {database.size} databases: with fewer than {FEW_DATABASES} the prior decides "
            "much of the result"
        )
    tied = _tied(response)
    if tied > HEAVY_TIES * response.size:
        found.append(
            f"{tied} of {response.size} responses are tied: "
            + (
                "a discrete response is treated as continuous"
                if step is None
                else f"answers are taken to be rounded to a grid of step {step:g} "
                "(step=None, --no-step, treats them as continuous)"
            )
        )
    return tuple(map(Sentence, found))
