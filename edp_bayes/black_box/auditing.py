"""Audits of a mechanism that is only there as a sampler: `audit_mechanism`, `audit_mechanisms`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from edp_bayes.black_box.outcomes import KINDS, Outcomes, read_outcomes
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import MECHANISM_DRAWS

if TYPE_CHECKING:
    from edp_bayes.black_box.pairs import Sampler
    from edp_bayes.black_box.posterior.models import LogRatioModel
    from edp_bayes.results.mechanism import MechanismAudit

__all__ = ["audit_mechanism", "audit_mechanisms"]

TAU = 0.01
ADJACENCIES = ("substitution", "add-remove")


def audit_mechanism(
    samples: Any,
    samples_neighbour: Any,
    *,
    epsilon: ArrayLike,
    model: LogRatioModel | None = None,
    kind: str = "auto",
    tau: float = TAU,
    statistic: Callable[[Array], Array] | None = None,
    adjacency: str = "substitution",
    unit: str = "one record",
    draws: int = MECHANISM_DRAWS,
    tune: int = 300,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    cores: int | None = None,
) -> MechanismAudit:
    """Put posterior draws on the privacy of a mechanism, from two independent samples.

    Parameters
    ----------
    samples, samples_neighbour : array_like
        Shape (size,) or (size, column): independent outcomes for a database and for a neighbour.
        The sizes may differ.
    epsilon : array_like
        Shape (epsilon,): increasing, not negative.
    model : LogRatioModel, optional
        ``ClippedField()`` if not given.
    kind : {"auto", "continuous", "discrete", "mixed"}
        "auto" takes integers, strings, booleans and tuples as discrete, floats as continuous and
        their repeated values as atoms.
    tau : float
        Outcomes count towards the local epsilon where max(p, q) >= tau: a probability for values,
        relative to the largest density for continuous outcomes. Fix it before looking.
    statistic : callable, optional
        Map from rows (size, column) of floats to numbers (size,). Without one, outcomes of
        several continuous columns are reduced to a number that is learned on half of each sample.
        Either way the audit is then of a function of the outcomes: a lower bound.
    adjacency : {"substitution", "add-remove"}
        How the two databases differ; recorded.
    unit : str
        The unit of privacy, such as "a person" or "a person-day"; recorded.
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and the number of chains.
    random_seed : int, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show how many chains are done.
    cores : int, optional
        Chains drawn at the same time.

    Returns
    -------
    MechanismAudit
        Draws of delta(epsilon), the larger of both hockey-stick integrals, and of the local
        epsilon, which are infinite where the data cannot exclude that an outcome has no
        probability under one of the two databases.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument or the samples cannot be used; the message says what would be right.

    Warns
    -----
    EdpBayesWarning
        If the audit is a lower bound, no outcome reaches tau or the draws have not converged.

    See Also
    --------
    audit_mechanisms : a mechanism on many pairs
    edp_bayes.mechanism_guarantee : a band that holds for any mechanism
    edp_bayes.MechanismAudit : the posterior of a mechanism
    edp_bayes.mechanisms.suite : every reference mechanism

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes.black_box.auditing import audit_mechanism
    >>> rng = np.random.default_rng(1)
    >>> answers = [rng.random(2000) < share for share in (0.75, 0.25)]
    >>> found = audit_mechanism(*answers, epsilon=[0.5], random_seed=1, progressbar=False)
    >>> found.kind, found.local_epsilon.dims
    ('discrete', ('chain', 'draw'))
    >>> low, high = np.quantile(found.local_epsilon, [0.05, 0.95])
    >>> bool(low < np.log(3) < high)
    True
    """
    from edp_bayes.black_box.analysis import analyse
    from edp_bayes.black_box.assembly import assemble

    grid = validate.epsilon_grid(epsilon)
    tau = validate.probability(tau, "tau")
    chosen = _model(model)
    outcomes = read_outcomes(samples, samples_neighbour, kind)
    _refuse_statistic(statistic, outcomes)
    settings = SamplerSettings(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=random_seed,
        progressbar=progressbar,
        cores=cores,
    )
    found = analyse(outcomes, chosen, settings, grid, tau, statistic)
    result = assemble(
        found,
        outcomes=outcomes,
        model=chosen,
        settings=settings,
        epsilon=grid,
        record={
            "tau": tau,
            "adjacency": validate.choice(adjacency, ADJACENCIES, "adjacency"),
            "unit": _text(unit, "unit"),
        },
    )
    _warn(result.warnings)
    return result


def audit_mechanisms(
    mechanism: Sampler,
    pairs: Iterable[tuple[Any, Any]] | Mapping[str, tuple[Any, Any]],
    *,
    epsilon: ArrayLike,
    size: int = 100_000,
    first_share: float = 0.3,
    model: LogRatioModel | None = None,
    kind: str = "auto",
    tau: float = TAU,
    statistic: Callable[[Array], Array] | None = None,
    adjacency: str = "substitution",
    unit: str = "one record",
    draws: int = MECHANISM_DRAWS,
    tune: int = 300,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    cores: int | None = None,
) -> MechanismAudit:
    """Audit a mechanism on many neighbouring pairs, with a joint posterior of the maximum.

    A first stage spends `first_share` of the budget evenly; the second spends the rest on pairs
    in proportion to their posterior probability of being the worst. Both stages' samples count.
    The pairs' log local epsilons have a common normal distribution, clipped at a level that is
    shared, so that the maximum is not the largest of many noisy answers.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(database, size, rng)`` returns `size` independent outcomes, shape (size,) or
        (size, column); rng is a numpy.random.Generator.
    pairs : iterable of tuple, or mapping of str to tuple
        Neighbouring databases (x, x'); the keys of a mapping name the pairs, such as by whose
        record is removed. For the data-centric level of a database x, give each of its neighbours
        a pair and call `MechanismAudit.data_centric`.
    epsilon, model, kind, tau, statistic, adjacency, unit, draws, tune, chains, random_seed
        As for `audit_mechanism`.
    size : int
        Outcomes to draw for each database of a pair, on average over the pairs.
    first_share : float
        Share of the budget for the first stage, strictly between 0 and 1.
    progressbar : bool
        Show how many pairs are done.
    cores : int, optional
        As for `audit_mechanism`.

    Returns
    -------
    MechanismAudit
        `local_epsilon` and `delta` are those of the worst pair in each draw: a lower bound for
        the mechanism. `pair_local_epsilon`, `pair_delta` and `database_local_epsilon` (the sup
        over the neighbours of x) are there for each pair and each x.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used, or the mechanism fails or returns what does not fit; the
        message says for which pair.

    Warns
    -----
    EdpBayesWarning
        As for `audit_mechanism`.

    See Also
    --------
    audit_mechanism : a mechanism on one pair of databases
    edp_bayes.plugin.local_privacy.mpl : the published estimate of the local epsilon
    edp_bayes.MechanismAudit : the posterior of a mechanism

    Examples
    --------
    >>> from edp_bayes.black_box.auditing import audit_mechanisms
    >>> def respond(answer, size, rng):
    ...     return (rng.random(size) < 0.25) != answer
    >>> found = audit_mechanisms(
    ...     respond, [(True, False), (True, True)], epsilon=[0.5], size=1000, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> found.pair_local_epsilon.dims
    ('chain', 'draw', 'pair')

    The neighbours of one database, named; the worst of them comes first.

    >>> neighbours = {"another answer": (True, False), "the same answer": (True, True)}
    >>> found = audit_mechanisms(
    ...     respond, neighbours, epsilon=[0.5], size=1000, random_seed=1, progressbar=False
    ... )
    >>> found.data_centric()["pair"].to_numpy().tolist()
    ['another answer', 'the same answer']
    """
    from edp_bayes.black_box.pairs import audit_pairs

    grid = validate.epsilon_grid(epsilon)
    settings = SamplerSettings(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=random_seed,
        progressbar=progressbar,
        cores=cores,
    )
    if not callable(mechanism):
        raise InputTypeError(
            f"mechanism must be callable as mechanism(database, size, rng), found {mechanism!r}"
        )
    names, listed = _pairs(pairs)
    result = audit_pairs(
        mechanism,
        listed,
        names=names,
        model=_model(model),
        settings=settings,
        epsilon=grid,
        size=validate.positive_integer(size, "size"),
        first_share=validate.probability(first_share, "first_share"),
        kind=validate.choice(kind, KINDS, "kind"),
        statistic=statistic,
        record={
            "tau": validate.probability(tau, "tau"),
            "adjacency": validate.choice(adjacency, ADJACENCIES, "adjacency"),
            "unit": _text(unit, "unit"),
        },
    )
    _warn(result.warnings)
    return result


def _model(model: Any) -> LogRatioModel:
    from edp_bayes.black_box.posterior import models

    if model is None:
        return models.ClippedField()
    if not isinstance(model, models.LogRatioModel):
        raise InputTypeError(
            f"model must be a model of log ratios such as ClippedField(), found {model!r}"
        )
    return model


def _pairs(pairs: Any) -> tuple[list[str] | None, list[tuple[Any, Any]]]:
    """Return the names of the pairs, if they have any, and the pairs."""
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise InputTypeError(
            "pairs must be a sequence of (database, neighbour), or a mapping of names to them, "
            f"found {pairs!r}"
        )
    names = None
    if isinstance(pairs, Mapping):
        names, pairs = [_text(name, "the name of a pair") for name in pairs], pairs.values()
    found = []
    for k, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputTypeError(f"pair {k} must be a tuple (database, neighbour), found {pair!r}")
        found.append((pair[0], pair[1]))
    if not found:
        raise InvalidInputError("pairs must hold at least one (database, neighbour), found none")
    return names, found


def _refuse_statistic(statistic: object, outcomes: Outcomes) -> None:
    if statistic is None:
        return
    if not callable(statistic):
        raise InputTypeError(f"statistic must be callable on rows, found {statistic!r}")
    if outcomes.kind == "discrete" or outcomes.columns == 1:
        raise InvalidInputError(
            "statistic is for outcomes of several continuous columns, found "
            f"{outcomes.kind} outcomes of {outcomes.columns} column(s)"
        )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputTypeError(f"{name} must be a text that is not empty, found {value!r}")
    return value


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, EdpBayesWarning, stacklevel=3)
