"""Several releases, each on a fresh database: `edp.compose`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.coupling.views.unseen_past import given_in_full
from edp_bayes.divergence.composition.rounding import refuse_large
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.releases.carry_over import RELEASED, carry_over_of, checked_past, with_carry_over
from edp_bayes.releases.composing import JointSource, SingleSource, Source, composed_risks
from edp_bayes.releases.lower_ends import tested_risks
from edp_bayes.releases.parts import itself, part_groups
from edp_bayes.releases.sharing import names_of, refuse_shared
from edp_bayes.responses.atoms import refuse_atoms
from edp_bayes.results.query import Audit
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Index

if TYPE_CHECKING:
    from edp_bayes.results.composition import ComposedAudit

__all__ = ["DRAWS", "compose", "same_draws", "sources_of"]

DRAWS = 200
MOST_DATABASES = 100_000  # memory grows with their number
SHARED, INDEPENDENT = "the same draws", "independent draws"


def compose(
    audits: Audit | Iterable[Audit],
    *,
    databases: int | Sequence[int] = 1,
    epsilon: ArrayLike | None = None,
    keep: int = 10,
    draws: int | None = DRAWS,
    past: str = RELEASED,
    fresh: bool = False,
    progressbar: bool = True,
) -> ComposedAudit:
    """Put posterior draws on delta_i, delta and delta* of several releases together.

    Every release is of a fresh database: one the distribution gives anew, independent of all
    others. Several answers on the same databases tell more, and their audits are refused: join the
    responses (`Responses.join`) and audit these. What an individual risks is that someone tells,
    from all releases together, whether they were in all of these databases or in none.

    Parameters
    ----------
    audits : Audit or iterable of Audit
        What is released, one audit for each kind of database, with the fit: as `edp_bayes.audit`
        returns them.
    databases : int or sequence of int
        How many databases there are of each, 100,000 at most in all.
    epsilon : array_like, optional
        Shape (epsilon,): increasing, from 0 to at most 30; the grid of the first audit if not
        given.
    keep : int
        How many of the riskiest individuals keep their draws.
    draws : int, optional
        At most so many posterior draws are used, evenly spaced in each chain; None for all. Of one
        database all are.
    past : {"released", "others"}
        What later databases follow where an adversary knows earlier answers: the answers as they
        were released, or what the others contributed, so that contributions carry over to later
        answers.
        With "others" risks are upper bounds in both cases.
    fresh : bool
        State that the databases of all audits are fresh ones, although their data are the same or
        their labels agree: of another shop, say, or of later weeks. It stands in the result.
        Databases of one audit are fresh by definition.
    progressbar : bool
        Show progress.

    Returns
    -------
    ComposedAudit
        Draws of delta and delta* as of one audit. All are upper bounds, and the distance to the
        lower ones is the setting ``gap``. No upper limit, no upper end of a band and of the power
        of tests is below that of a part, which is found in all of the part's draws. One database
        of one audit is the audit: its draws, and of no more individuals than it keeps.

    Raises
    ------
    InvalidInputError, InputTypeError
        If audits share databases; an audit was loaded from a file and has no fit; or an argument
        is out of its range.

    Warns
    -----
    EdpBayesWarning
        If what was audited may not carry over to several databases; it also stands in the result.

    See Also
    --------
    ComposedAudit : the posterior of several releases
    Audit.compose : as many releases of one kind
    Audit.releases_until : how many releases stay within a target

    Notes
    -----
    The largest risk is the maximum of the composed risks, never the composition of the maximum.
    Audits share databases where they are of the same data (fingerprint), or where individuals and
    databases have the same labels, some of them at least, or databases lie in the same time. Data
    without labels are numbered from zero, and these labels agree, too.

    Audits of the same data with the same seed share their draws of the distribution, individual by
    individual; others are taken as independent. The setting ``assumed`` says which.

    Audits of several queries together compose like others. Their privacy losses are at points: the
    standard error of what is composed is added to upper bounds and taken off lower ones, so that it
    is part of ``gap``.

    An audit against an adversary gives the risk given what they know. Where that is the past,
    databases are an adaptive sequence: with the individual each has the distribution p(. | past),
    without them p_i(. | past), with the past as it was released in both. If later databases follow
    what the others contributed instead, an individual who is missing from all of them is missing
    from the past of each but the first, too: their contributions carry over to later answers, by
    the coefficients of the lags. With ``past="others"`` the risk is bounded by that of
    contributions as much larger as the carry-over may make them, in every draw
    (`edp_bayes.coupling.views.enlarged`, of several queries
    `edp_bayes.coupling.views.carried_answers`); a warning says by how much. In either case each
    database is as the one in question.

    Of what is published of an answer (`edp_bayes.released`) the bins compose. Where it is no bin of
    a few, curves are those of an answer that tells more, an upper bound; lower ends are what tests
    of what is published reach. Where an adversary's past is known as it was published, releases
    are bounded by whole answers whose past is known in full, whatever will be published: these say
    nothing of lower ends.

    References
    ----------
    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Connect the dots: tighter discrete
    approximations of privacy loss distributions, PETS, for the upper bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 5))
    >>> response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    >>> responses = edp.Responses.from_arrays(response, response[:, None] - contribution)
    >>> options = dict(epsilon=[0.1, 0.5], draws=20, random_seed=1, progressbar=False)
    >>> audit = edp.audit(responses, **options)
    >>> year = edp.compose(audit, databases=12, progressbar=False)
    >>> bool((year.delta.mean(("chain", "draw")) > audit.delta.mean(("chain", "draw"))).all())
    True
    """
    from edp_bayes.releases import assembly as composed_assembly

    if not isinstance(fresh, bool):
        raise InputTypeError(f"fresh must be True or False, found {fresh!r}")
    parts = _audits(audits, fresh=fresh)
    counts = _counts(databases, len(parts))
    grid = parts[0].epsilon.to_numpy() if epsilon is None else validate.epsilon_grid(epsilon)
    refuse_large(float(grid[-1]))
    keep = validate.positive_integer(keep, "keep")
    past = checked_past(past)
    if itself(parts, counts, grid):
        groups = composed_assembly.own_groups(parts[0], keep, grid, progressbar)
        people, assumed = parts[0].individuals["individual"].to_numpy(), SHARED
    else:
        sources, people, rows, assumed = sources_of(
            parts, counts, None if sum(counts) == 1 else draws, past
        )
        risks = composed_risks(sources, grid, keep=keep, progressbar=progressbar)
        tested = np.minimum(tested_risks(sources, risks.kept, grid), risks.individual)
        carries_over = past != RELEASED and max(map(carry_over_of, parts, counts)) > 1.0
        groups = composed_assembly.composed_groups(
            parts[0], people, rows, grid, risks, tested, enlarged=carries_over
        )
        groups = groups.beside(part_groups(parts, people[risks.kept], grid, progressbar))
    result = composed_assembly.assemble(parts, counts, people, groups, assumed, past, fresh=fresh)
    before = {str(said) for part in parts for said in part.warnings}
    for warning in result.warnings:
        if str(warning) not in before:
            warnings.warn(warning, EdpBayesWarning, stacklevel=2)
    return result


def sources_of(
    audits: Sequence[Audit], counts: Sequence[int], draws: int | None, past: str = RELEASED
) -> tuple[list[Source], NDArray[Any], Index, str]:
    """Return what is composed, everybody's labels, which draws, and whether audits share them.

    The draws are positions in the first audit, shape (chain, draw).
    """
    if draws is not None:
        draws = validate.positive_integer(draws, "draws")
    shapes = [(a.delta.sizes["chain"], a.delta.sizes["draw"]) for a in audits]
    chains, each = (min(sizes) for sizes in zip(*shapes, strict=True))
    step = 1 if draws is None else -(-chains * each // draws)
    shared = all(same_draws(audits[0], other) for other in audits[1:])
    names = names_of(audits)
    people = names[0]
    if not all(np.array_equal(people, other) for other in names[1:]):
        people = np.array(list(dict.fromkeys(label for part in names for label in part.tolist())))
    for part, count in zip(audits, counts, strict=True):
        _refuse_partial_past(part, count, past)
    sources: list[Source] = []
    for k, (part, count) in enumerate(zip(audits, counts, strict=True)):
        chosen = np.arange(np.prod(shapes[k])).reshape(shapes[k])[:chains, :each:step].ravel()
        order = np.arange(chosen.size)
        if k and not shared:
            # a seed that two audits have in common must not pair their draws
            order = np.random.default_rng([k, chosen.size]).permutation(chosen.size)
        published = _coupling(part)
        coupling: Any = published if count == 1 else given_in_full(published)
        bounded = coupling is not published
        if chosen.size < coupling.n_draws:
            coupling = pick(coupling, chosen)
        where = _positions(people, names[k])
        source: Source = (
            JointSource(coupling, count, where, order)
            if part.joint
            else SingleSource(coupling, count, where, order, bounded=bounded)
        )
        sources.append(source if past == RELEASED else with_carry_over(source, part, chosen))
    taken = np.arange(np.prod(shapes[0])).reshape(shapes[0])[:chains, :each:step]
    return sources, people, taken, SHARED if shared else INDEPENDENT


def _audits(audits: Audit | Iterable[Audit], *, fresh: bool) -> list[Audit]:
    parts = [audits] if isinstance(audits, Audit) else list(audits)
    if not parts:
        raise InvalidInputError("audits must hold at least one Audit, found none")
    for part in parts:
        if not isinstance(part, Audit):
            raise InputTypeError(
                f"audits must be of a query, as edp.audit returns them, found {type(part).__name__}"
            )
    if not fresh:
        refuse_shared(parts)
    for part in parts:
        _coupling(part)
    return parts


def _coupling(audit: Audit) -> Any:
    """Return the fit of an audit, or say that it is gone."""
    found = audit.fit
    if "reduced" in audit.settings:
        raise InvalidInputError(
            "the risks of individuals whose contributions were not collected are bounded for the "
            "answer itself alone: collect all of them, and audit again"
        )
    refuse_atoms(audit.settings.get("atoms"), "what several databases say together")
    if found is None:
        raise InvalidInputError(
            "an audit is composed from its fit, and this one was loaded from a file or made "
            "without: audit again, and compose what edp.audit returns"
        )
    return found


def _refuse_partial_past(audit: Audit, count: int, past: str) -> None:
    """Refuse several releases of more than their adversary has seen of the earlier ones."""
    seen = audit.settings.get("past_published")
    if seen is None or count == 1:
        return
    released = audit.settings.get("released", {}).get("words")
    if seen != released:
        raise InvalidInputError(
            f"of earlier releases this adversary has seen what was published ({seen}), and here "
            f"more is released each time ({released or 'the whole answer'}): compose what is "
            "published, by released(...) with the same arguments, or audit without past_published"
        )
    if past != RELEASED:
        raise InvalidInputError(
            "how contributions carry over to later releases through answers of which a part was "
            "published is not bounded: give past='released'"
        )


def _counts(databases: int | Sequence[int], kinds: int) -> list[int]:
    """Return the number of databases of each kind."""
    several = isinstance(databases, Iterable) and not isinstance(databases, str)
    values = list(databases) if several else [databases] * kinds  # type: ignore[arg-type]
    if len(values) != kinds:
        raise InvalidInputError(
            f"databases must be a number, or one number for each of the {kinds} audits, found "
            f"{len(values)}"
        )
    counts = [validate.positive_integer(value, "databases") for value in values]
    if sum(counts) > MOST_DATABASES:
        raise InvalidInputError(
            f"at most {MOST_DATABASES:,} databases are put together, found {sum(counts):,}"
        )
    return counts


def same_draws(one: Audit, other: Audit) -> bool:
    """Return whether two audits rest on the same draws of the distribution of the response."""
    names = ("fingerprint", "random_seed", "model", "sampler", "chains", "draws", "known")
    first, second = one.settings, other.settings
    alike = all(first.get(name) == second.get(name) for name in names)
    return one is other or (alike and first.get("random_seed") is not None)


def _positions(people: NDArray[Any], names: NDArray[Any]) -> Index:
    """Return where everybody is among some names, -1 for who is not."""
    place = {label: k for k, label in enumerate(names.tolist())}
    return np.array([place.get(label, -1) for label in people.tolist()], dtype=np.int64)
