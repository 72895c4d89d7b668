"""From responses to privacy quantities with bands: `edp.audit`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.adversary.known import Explained, known
from edp_bayes.auditing.evaluation import Risks, evaluate, riskiest
from edp_bayes.auditing.executors.base import Runner, running
from edp_bayes.auditing.other_answers import AuditedAgain
from edp_bayes.auditing.rounded import modelled_step, rounded_coupling
from edp_bayes.auditing.store import described, opened, remove, seed_in
from edp_bayes.auditing.unseen_past import with_pasts
from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.atoms import ATOM_SHARE, beside_atoms, shares_of
from edp_bayes.models.base import DensityModel, FittedModel, fit_as_asked
from edp_bayes.models.joint import FittedJoint, fit_joint
from edp_bayes.models.joint_regression import (
    JointRegression,
    fit_joint_given,
    joint_regression_on,
)
from edp_bayes.models.regression import Regression, regression_on
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.records.remainder import require_collected
from edp_bayes.responses.dependence import linear_dependence
from edp_bayes.responses.joined import JointResponses
from edp_bayes.responses.responses import Responses
from edp_bayes.results.bands import upper_limit
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import DRAWS, EXACT_UP_TO, PROB, TUNE
from edp_bayes.utils.progress import working

if TYPE_CHECKING:
    from edp_bayes.diagnostics.checks import Checks
    from edp_bayes.results.query import Audit

__all__ = ["audit", "audit_for_verdict"]

# Where in a store the second of two adversaries is kept.
SECOND = "second"


def audit(
    responses: Responses | JointResponses,
    *,
    epsilon: ArrayLike,
    model: DensityModel | None = None,
    adversary: Adversary | None = None,
    at: Any = None,
    individuals: Iterable[Any] = (),
    keep: int = 10,
    draws: int = DRAWS,
    tune: int = TUNE,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    sampler: str | None = None,
    cores: int | None = None,
    executor: Any = None,
    store: str | PathLike[str] | None = None,
    keep_store: bool = False,
    exact_up_to: int = EXACT_UP_TO,
    only_largest: bool = False,
    keep_parameters: bool = True,
    appear_once: bool = False,
    transform: Any = None,
    **sample_kwargs: Any,
) -> Audit:
    """Put posterior draws on delta_i, delta and delta* of a query.

    Parameters
    ----------
    responses : Responses or JointResponses
        The query's responses with and without each individual, or those of several queries that
        are published together (`Responses.join`).
    epsilon : array_like
        Shape (epsilon,): increasing, not negative.
    model : DensityModel, optional
        Distribution of the response; if not given ``DirichletProcessMixture()``, and with a sampler
        of NUTS ``FullPosterior()`` for up to 100 individuals.
    adversary : Adversary, optional
        What they know beside the response: the risk is that of the response given it. By default
        nothing but its distribution, as in the paper, and databases are independent. Of joined
        responses they have seen the earlier answers to all queries.
    at : label, optional
        The database in question of that adversary; the next one, after all of them, if not given.
    individuals : iterable
        Labels of individuals whose draws are kept whatever their risk.
    keep : int
        How many of the riskiest individuals keep their draws; all others keep the posterior mean
        and standard deviation of delta_i.
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and the number of chains.
    random_seed : int, optional
        The same seed gives the same numbers, whatever the number of cores and the order of the
        individuals: streams of random numbers follow the labels (without labels, the positions).
        Only the last bits of delta* and of the sum of all risks depend on that order.
    progressbar : bool
        Show progress of sampling and of the individuals.
    sampler : {"gibbs", "nutpie", "pymc", "numpyro", "blackjax"}, optional
        Gibbs sampling, or NUTS by one of four libraries, of which PyMC's own is always there. By
        default Gibbs sampling where a model has it, and NUTS where it has not: by nutpie where that
        is installed, otherwise by PyMC, as for ``pymc.sample``. A library of NUTS that is named,
        without a model, draws the response and all contributions, of up to 100 individuals, in one
        PyMC model; that took 87 s for 50 and 218 s for 100 in 41 databases, on two cores.
    cores : int, optional
        Chains sampled at the same time.
    executor : int, Executor, Client, SparkSession or str, optional
        Where individuals are evaluated: so many threads, each with individuals of its own; an
        executor of ``concurrent.futures``; the workers of a ``distributed.Client`` of Dask; a
        ``SparkSession``, classic or Connect; or the address of one of the two, such as
        ``tcp://scheduler:8786`` or ``sc://server:15002``. By default one after the other, each in
        all threads. The numbers are the same, bit for bit, wherever and by however many.
    store : path, optional
        Folder that keeps the draws of NUTS and the individuals evaluated already, with the
        fingerprint of the data, the settings and the versions. After a kill the same call
        continues, and gives the numbers of a run without one. Draws by Gibbs sampling and of the
        bootstrap are drawn again, from the seed. Without a seed that of the store is taken.
    keep_store : bool
        Do not remove the store at the end.
    exact_up_to : int
        In populations of more individuals than this, those whose risk is surely below a ten
        thousandth of the largest, or below 1e-9, enter by an upper bound of their risk. delta stays
        as it is; delta* and the sum of all risks become too high, never too low, by no more than
        ``settings["bounded"]`` says. Lower ends of bands leave these individuals out. Of several
        queries together it is all whose bounds show that their risk is not the largest.
    only_largest : bool
        In populations of more than 128, all whose risk is surely not the largest, or below 1e-9,
        enter by an upper bound of it: delta stays as it is, in less time; delta* and the sum of all
        risks become too high. Who is kept goes by these. Nothing is drawn of a new individual, in
        populations of any size. Without effect on several queries.
    keep_parameters : bool
        Keep the draws of a model's parameters, draws from their prior, and the responses that both
        predict; `Audit.trace` has them as ArviZ's functions take them.
    appear_once : bool
        Individuals are persons, although nearly each is in one database alone. It has to be said:
        otherwise the identifier passes for the number of a record, and there is no verdict.
    transform : {"log", "logit", "sqrt"} or pair of callables, optional
        The scale on which the response is modelled, as for `Responses`; that of the responses if
        not given. Risks are the same on every scale; how well a density follows the data is not.
    **sample_kwargs
        Further arguments of ``pymc.sample`` for NUTS, such as ``target_accept``, ``initvals``,
        ``nuts``, ``backend`` and ``compile_kwargs``; refused where a mixture is drawn by Gibbs
        sampling. ``nuts_sampler`` is another name of sampler.

    Returns
    -------
    Audit
        Draws of delta(epsilon) = max_i delta_i and delta*(epsilon) = 1 - prod_i (1 - delta_i),
        of delta_i for the riskiest, and every diagnostic.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used, or the store is of another audit; the message says what would
        be right.
    ExecutorError
        If the workers of an executor were lost, or lack this version of the library.
    SamplingError
        If a chain was interrupted or is not finite.

    Warns
    -----
    EdpBayesWarning
        For each failed check of the databases or of the draws; they also stand in the result.

    See Also
    --------
    Audit : the posterior of a query
    Adversary : what is known beside the releases
    audit_cells : audit every cell of a table
    audit_trace : audit a posterior drawn elsewhere

    Notes
    -----
    delta_i = max(H_eps(p || p_i), H_eps(p_i || p)): Burchard, Daoud and Dotterrer (2020),
    Definitions 3 and 4, with p and every p_i functionals of one posterior draw.

    What NUTS drew is not lost where something fails later, or is interrupted: without a store the
    error has it in its attribute ``draws``, a DataTree of each model.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 5))
    >>> response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    >>> responses = edp.Responses.from_arrays(response, response[:, None] - contribution)
    >>> result = edp.audit(
    ...     responses,
    ...     epsilon=[0.1, 0.5],
    ...     model=edp.SmoothedBootstrap(),
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> result.delta.dims
    ('chain', 'draw', 'epsilon')
    """
    asked = Asked(
        epsilon=epsilon,
        model=model,
        adversary=adversary,
        at=at,
        individuals=individuals,
        keep=keep,
        executor=executor,
        store=store,
        keep_store=keep_store,
        exact_up_to=exact_up_to,
        only_largest=only_largest,
        keep_parameters=keep_parameters,
        appear_once=appear_once,
        transform=transform,
    )
    held: list[Any] = []  # what was drawn stays, whatever goes wrong later
    settings = SamplerSettings(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=seed_in(store) if random_seed is None and store is not None else random_seed,
        progressbar=progressbar,
        sampler=sampler,
        cores=cores,
        sample_kwargs=sample_kwargs,
        keep=partial(_keep, held),
    )
    try:
        result = _audited(responses, asked, settings)
    except BaseException as error:
        if held:
            vars(error)["draws"] = tuple(held)
            error.add_note("What NUTS drew before is in the attribute draws of this error.")
        raise
    return _warned(result, responses)


def _keep(held: list[Any], _model: Any, draw: Callable[[], Any]) -> Any:
    """Return draws of NUTS, and hold them, too."""
    held.append(draw())
    return held[-1]


def audit_for_verdict(responses: Responses | JointResponses, **options: Any) -> Audit:
    """Audit one query for its verdict alone: no pictures, no score, no checks that only advise.

    The verdict is that of `audit` with the same options. Several queries are audited in whole.
    """
    ours, settings = (
        {name: options.pop(name) for name in names if name in options}
        for names in (_names(Asked), _names(SamplerSettings))
    )
    asked = Asked(**ours, for_verdict=True)
    return _audited(responses, asked, SamplerSettings(**settings, sample_kwargs=options))


def _names(of: type) -> list[str]:
    return [field.name for field in fields(of)]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of an audit: arguments of `audit`, which describes them.

    `for_verdict` leaves out of the result whatever its verdict does not need.
    """

    epsilon: ArrayLike
    model: DensityModel | None = None
    adversary: Adversary | None = None
    at: Any = None
    individuals: Iterable[Any] = ()
    keep: int = 10
    executor: Any = None
    store: str | PathLike[str] | None = None
    keep_store: bool = False
    exact_up_to: int = EXACT_UP_TO
    only_largest: bool = False
    keep_parameters: bool = True
    appear_once: bool = False
    transform: Any = None
    for_verdict: bool = False


def _audited(responses: Any, asked: Asked, settings: SamplerSettings) -> Audit:
    """Return the audit that is asked for."""
    from edp_bayes.auditing.assembly.assembling import Given, assemble
    from edp_bayes.auditing.assembly.one_query import OneQuery
    from edp_bayes.auditing.assembly.several_queries import SeveralQueries
    from edp_bayes.diagnostics.convergence import require_enough_draws
    from edp_bayes.models.default import model_of_sampler

    if not isinstance(responses, Responses | JointResponses):
        raise InputTypeError(
            f"responses must be Responses, found {type(responses).__name__}; make them by "
            "Databases.respond or Responses.from_arrays"
        )
    grid = validate.epsilon_grid(asked.epsilon)
    keep = validate.positive_integer(asked.keep, "keep")
    exact_up_to = validate.positive_integer(asked.exact_up_to, "exact_up_to")
    individuals, adversary, store = asked.individuals, asked.adversary, asked.store
    if isinstance(individuals, str) or not isinstance(individuals, Iterable):
        raise InputTypeError(f"individuals must be a list of labels, found {individuals!r}")
    wanted = [label for label in individuals if responses.index_of(label) >= 0]
    responses = _on_scale_asked(responses, asked.transform)
    _refuse_reduced(responses, wanted, adversary)
    chosen, partly = model_of_sampler(asked.model, settings.sampler, responses)
    require_enough_draws(settings.chains, settings.draws)
    several = len(responses.parts) > 1
    unlike: tuple[str, ...] = ()
    regress: Any = joint_regression_on if several else regression_on
    if not several:
        responses, unlike = modelled_step(responses, chosen)
    first = regress(responses, adversary, asked.at)
    if first is not None:
        _refuse_insiders(wanted, responses, first.known)
    released = responses
    checks: list[Checks] = []
    with running(asked.executor) as run:
        drawn = partial(
            _drawn, chosen, responses, settings, grid, run, exact_up_to, asked.only_largest
        )
        found = drawn(first, store)
        if first is not None and adversary is not None and len(first.known.tellers) > 1:
            second = Regression.of(known(adversary, responses, asked.at, teller=1))
            _refuse_insiders(wanted, responses, second.known)
            inner = None if store is None else Path(store) / SECOND
            found, check = _worst(found, drawn(second, inner), responses, grid)
            checks.append(check)
    fitted, risks = found.fitted, found.risks
    fitted = replace(fitted, warnings=(*fitted.warnings, *unlike, *partly))
    responses = found.responses
    named = list(dict.fromkeys(responses.index_of(label) for label in wanted))
    order = responses.order
    some = ~responses.reduced[order]  # Of all others there is a bound alone.
    place = np.cumsum(some) - 1
    kept = order[some][riskiest(risks.mean[order[some]], keep, place[responses.rank[named]])]
    for_verdict = asked.for_verdict and not several  # several are audited in whole
    with working("Diagnostics", show=settings.progressbar):
        given: Given[Any, Any, Any] = Given(
            responses=responses,
            released=released,
            regression=found.regression,
            fitted=fitted,
            epsilon=grid,
            risks=risks,
            kept=kept,
            settings=settings,
            more=checks,
            appear_once=asked.appear_once,
            new_individual=not asked.only_largest,
            for_verdict=for_verdict,
            keep_parameters=asked.keep_parameters and not for_verdict,
            again=None if several else _again(released, chosen, asked, settings),
        )
        result = assemble(SeveralQueries(given) if several else OneQuery(given))
    if store is not None and not asked.keep_store:
        remove(Path(store) / SECOND)
        remove(store)
    return result


def _again(
    responses: Responses, model: DensityModel, asked: Asked, settings: SamplerSettings
) -> AuditedAgain | None:
    """Return how other answers of the same data are audited; None of a database that is named."""
    if asked.at is not None or asked.for_verdict:
        return None
    return AuditedAgain(responses, model, asked.adversary, settings)


def _on_scale_asked(responses: Any, transform: Any) -> Any:
    """Return responses that are modelled on the scale asked for."""
    if transform is None:
        return responses
    if len(responses.parts) > 1:
        raise InvalidInputError(
            "a joint audit models every answer on its own scale: leave out transform, or audit "
            "each query alone"
        )
    return responses.replaced(transform=transform)


def _warned(result: Audit, responses: Responses | JointResponses) -> Audit:
    """Return the result, and warn of what is doubtful and was not said before."""
    for warning in result.warnings:
        if warning not in responses.warnings:
            warnings.warn(warning, EdpBayesWarning, stacklevel=3)
    return result


class _Drawn(NamedTuple):
    """A fit, everybody's risk under it, and the responses whose risks they are."""

    regression: Any
    fitted: Any
    risks: Risks
    responses: Any


def _drawn(
    model: DensityModel,
    responses: Responses | JointResponses,
    settings: SamplerSettings,
    grid: Array,
    run: Runner,
    exact_up_to: int,
    only_largest: bool,
    regression: Regression | JointRegression | None,
    store: str | PathLike[str] | None,
) -> _Drawn:
    """Fit the model and evaluate everybody; a store keeps what is finished."""
    several = len(responses.parts) > 1
    with ExitStack() as stack:
        if store is not None:
            description = described(responses, regression, model, grid, settings, exact_up_to)
            description["only_largest"] = str(only_largest)
            held = stack.enter_context(opened(store, description))
            settings, run = replace(settings, keep=held.draws), held.keeping(run)
        fit: Any = _fitted_jointly if several else _fitted
        fitted, individuals = fit(model, responses, regression, settings)
        copies = settings.generator("copies").integers(
            0, individuals.n_individuals, fitted.coupling.n_draws
        )
        risks = evaluate(
            fitted.coupling,
            grid,
            progressbar=settings.progressbar,
            copies=individuals.order[copies],
            run=run,
            exact_up_to=exact_up_to,
            only_largest=only_largest and not several,
        )
    return _Drawn(regression, fitted, risks, individuals)


def _fitted(
    model: DensityModel,
    responses: Responses,
    regression: Regression | None,
    settings: SamplerSettings,
) -> tuple[FittedModel, Responses]:
    """Fit the model to one query, and return the responses in question, too."""
    fitted = fit_as_asked(model, responses if regression is None else regression, settings)
    mixed = with_pasts(fitted.coupling, regression, fitted.in_question, settings)
    fitted = replace(fitted, coupling=mixed)
    if responses.step is not None:
        rounded = rounded_coupling(fitted.coupling, responses, regression, fitted.in_question)
        fitted = replace(fitted, coupling=rounded)
    whole = beside_atoms(fitted.coupling, responses, fitted.parameters, settings)
    fitted = replace(fitted, coupling=whole)
    if isinstance(whole, AtomCoupling) and fitted.parameters is not None:
        shares = shares_of(whole, responses, fitted.mixture.weights.shape[:-1])
        fitted = replace(fitted, parameters=fitted.parameters.assign({ATOM_SHARE: shares}))
    slope = responses.log_slope if regression is None else regression.known.log_slope
    fitted = fitted.per_answer(slope)
    in_question = fitted.in_question
    return fitted, responses.on_scale if in_question is None else in_question.responses


def _fitted_jointly(
    model: DensityModel,
    responses: JointResponses,
    regression: JointRegression | None,
    settings: SamplerSettings,
) -> tuple[FittedJoint, JointResponses]:
    """Fit the model to several queries, and return the responses to all that are explained."""
    if regression is not None:
        return fit_joint_given(model, regression, settings), regression.known.responses
    dependence = linear_dependence(responses)
    kept = responses.of_queries(dependence.kept)
    return fit_joint(model, kept, dependence, settings), responses


def _worst(
    first: _Drawn, second: _Drawn, responses: Responses, grid: Array
) -> tuple[_Drawn, Checks]:
    """Return that of the two tellers whose knowledge is worse over the grid, and a check on it."""
    from edp_bayes.diagnostics.own import check_own

    limits = [upper_limit(drawn.risks.delta, PROB) for drawn in (first, second)]
    worse = int(limits[1].sum() > limits[0].sum())
    found = (first, second)[worse]
    assert found.regression is not None
    return found, check_own(
        responses,
        found.regression.known.tellers,
        epsilon=grid,
        upper=limits[worse],
        other=limits[1 - worse],
    )


def _refuse_reduced(
    responses: Responses | JointResponses, asked: list[Any], adversary: Adversary | None
) -> None:
    """Refuse what needs contributions that were not collected."""
    if responses.remainder is None:
        return
    if adversary is not None:
        require_collected(responses.remainder, "an audit against an adversary")
    for label in asked:
        if responses.reduced[responses.index_of(label)]:
            raise InvalidInputError(
                f"the contributions of individual {labels.show(label)} were not collected, and "
                "their risk is only bounded: collect those of more individuals, or leave them out"
            )


def _refuse_insiders(
    asked: list[Any], responses: Responses | JointResponses, known: Explained
) -> None:
    """Refuse to keep the risk of an individual whose contributions are known."""
    lags = {responses.index_of(name) for name in known.unassessed}
    insiders, tellers = {responses.index_of(name) for name in known.insiders}, known.tellers
    for label in asked:
        if responses.index_of(label) in lags:
            raise InvalidInputError(
                f"individual {labels.show(label)} contributed only to databases that serve as "
                "lags, and their risk is not assessed: leave them out, or give fewer lags"
            )
        if responses.index_of(label) in insiders:
            own = bool(tellers) and responses.index_of(label) == responses.index_of(tellers[0])
            raise InvalidInputError(
                f"individual {labels.show(label)} knows their own contribution and is an insider, "
                "whose risk is not audited: audit without own=True"
                if own
                else f"individual {labels.show(label)} is an insider, whose risk is not audited: "
                "leave out one of the two"
            )
