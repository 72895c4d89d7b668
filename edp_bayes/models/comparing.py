"""Which density model, given what, predicts a database it has not seen best: `edp.compare`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.adversary.known import FEWEST_FREE, Known
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.base import (
    DensityModel,
    checked_model,
    fit_as_asked,
    log_bin_densities,
    log_densities,
    models_rounding,
)
from edp_bayes.models.leave_one_out import doubtful, leave_one_out, stacking_weights
from edp_bayes.models.regression import Regression
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.responses import Responses
from edp_bayes.responses.transforms import transform_of
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import DRAWS, TUNE
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.query import Audit

__all__ = ["compare"]

AHEAD = (2, 100)  # chains and draws of fits to those before
OF_ANSWERS = "of the answers"
COLUMNS = ("rank", "elpd", "se", "elpd_diff", "dse", "weight", "doubtful")


def compare(
    source: Responses | Mapping[str, Audit] | Iterable[Audit],
    *,
    models: Mapping[str, DensityModel] | Iterable[DensityModel] | None = None,
    adversaries: Mapping[str, Adversary | None] | None = None,
    transforms: Mapping[str, Any] | Iterable[Any] | None = None,
    draws: int = DRAWS,
    tune: int = TUNE,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    sampler: str | None = None,
    cores: int | None = None,
    **sample_kwargs: Any,
) -> pd.DataFrame:
    """Compare density models by how well they predict each database from all others.

    With `adversaries` compare, too, how well what each of them knows predicts the response: of one
    database from all others, and of the next one from those before it. With `transforms` compare,
    too, on which scale the responses are predicted best.

    Parameters
    ----------
    source : Responses, or audits
        Responses, to which the models are fitted; or audits of the same responses already made,
        as a list or a mapping of names.
    models : iterable or mapping of DensityModel
        At least two, for responses only. In a list each is named by its own description. With
        adversaries or transforms one is enough, and ``DirichletProcessMixture()`` is taken if none
        is given.
    adversaries : mapping of names to Adversary or None, optional
        Who knows what, None for nobody who knows anything; for responses only. All are scored on
        the databases that every one of them explains.
    transforms : iterable or mapping of transforms, optional
        Scales to model the responses on, as ``transform`` of `Responses`, None for their own; for
        responses only.
    draws, tune, chains, random_seed, progressbar, sampler, cores, **sample_kwargs
        As for `edp_bayes.audit`, for responses only.

    Returns
    -------
    DataFrame
        One row a model, best first: rank; elpd, the sum over the databases of the log predictive
        density of each left out, with standard error se; elpd_diff, its difference to the best
        model's, with standard error dse; weight by stacking, as `edp_bayes.models.Stacked` uses it;
        doubtful, the number of databases whose score by importance sampling cannot be trusted.
        With adversaries also ahead, the sum over the last third of the databases of the log
        predictive density of each given those before it, with standard error ahead_se, and
        ahead_diff and ahead_dse, its difference to the best one's.
        With fewer than about 100 databases dse is itself uncertain, and differences below 4 are
        no reason to prefer a model (Sivula, Magnusson, Matamoros and Vehtari 2025).

    Raises
    ------
    InvalidInputError
        If there are fewer than two models, two have the same name or audits are of different data.
    InputTypeError
        If something is neither responses nor an audit, or no density model.

    Warns
    -----
    EdpBayesWarning
        Where a score is doubtful.

    See Also
    --------
    edp_bayes.models.Stacked : an average of several models
    edp_bayes.models.DensityModel : what every model of the response offers
    edp_bayes.diagnostics.posterior_predictive_check : whether the model fits the responses

    Notes
    -----
    Made by ArviZ: leave-one-database-out by Pareto smoothed importance sampling (Vehtari, Gelman
    and Gabry 2017), or the model's own leave-one-out predictive density where it has one. Weights
    are those of Yao, Vehtari, Simpson and Gelman (2018). Models of different kernels can be
    compared, and so can scales: every density is that of the response itself, log density of
    g(y) + log abs(g'(y)). Only the distribution of the response is judged; the contributions are
    not.

    What an adversary knows is to be fixed in advance, by what they can come to know, and not
    selected by this score: on short series a score drops knowledge that is needed, and the risk
    is then understated. The score says how much the response follows what they know.

    Leaving one database out looks into its future, so that ahead is the score of a series
    (Buerkner, Gabry and Vehtari 2020): the model is fitted to the databases before each of the
    last third, by 2 chains of 100 draws, a tenth of a second each by Gibbs sampling and much
    longer by NUTS.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 5))
    >>> response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    >>> responses = edp.Responses.from_arrays(response, response[:, None] - contribution)
    >>> models = {name: edp.SmoothedBootstrap(kernel=name) for name in ("laplace", "gaussian")}
    >>> table = compare(responses, models=models, random_seed=1, progressbar=False)
    >>> table.index.tolist()
    ['gaussian', 'laplace']
    """
    if isinstance(source, Responses):
        settings = SamplerSettings(
            draws=draws,
            tune=tune,
            chains=chains,
            random_seed=random_seed,
            progressbar=progressbar,
            sampler=sampler,
            cores=cores,
            sample_kwargs=sample_kwargs,
        )
        ahead: dict[str, Array] = {}
        scales = _scales(source, transforms)
        if adversaries is None:
            scores = _fitted_scores(scales, models, settings)
        else:
            scores, ahead = _given_scores(scales, models, adversaries, settings)
        attributes: dict[Hashable | None, Any] = {
            "fingerprint": source.fingerprint,
            "random_seed": settings.random_seed,
        }
    else:
        given = {"models": models, "adversaries": adversaries, "transforms": transforms}
        if asked := [name for name, value in given.items() if value is not None]:
            what = "models are" if asked[0] == "models" else f"{asked[0]} are for models"
            raise InvalidInputError(f"{what} fitted to responses; audits have theirs already")
        ahead = {}
        scores, attributes = _audit_scores(source)
    if len(scores) < 2:
        raise InvalidInputError(f"a comparison needs at least 2 models, found {len(scores)}")
    table = _table(scores)
    if ahead:
        table = table.join(_ahead_table(ahead))
    table.attrs = attributes
    for name, count in table["doubtful"].items():
        if count:
            warnings.warn(
                f"the score of {name} is doubtful: {count} databases have a Pareto k above "
                f"{float(scores[str(name)].good_k):.2f}, so a few databases dominate the fit",
                EdpBayesWarning,
                stacklevel=2,
            )
    return table


def _scales(source: Responses, transforms: Any) -> dict[str, Responses]:
    """Return the responses on every scale that is asked for, by its name."""
    if transforms is None:
        return {"": source}
    if isinstance(transforms, str) or not isinstance(transforms, Iterable):
        raise InputTypeError(
            "transforms must be a list or a mapping of names, such as [None, 'log'], found "
            f"{transforms!r}"
        )
    named = _named(transforms, lambda one: "none" if one is None else str(transform_of(one)))
    found = {name: source.replaced(transform=one) for name, one in named.items()}
    for name, responses in found.items():
        if not np.isfinite(responses.log_slope).all():
            raise InvalidInputError(
                f"transforms are compared by the density of the answers, and that on the scale of "
                f"{name} is not finite where an answer lies at its end: leave it out"
            )
    return found


def _labelled(
    scales: Mapping[str, Responses], models: Mapping[str, DensityModel]
) -> dict[str, tuple[Responses, DensityModel]]:
    """Return every model on every scale, named by what differs."""
    parts = [
        ([model] * (len(models) > 1) + [scale] * (len(scales) > 1), responses, one)
        for model, one in models.items()
        for scale, responses in scales.items()
    ]
    return {", ".join(names): (responses, one) for names, responses, one in parts}


def _models(
    models: Mapping[str, DensityModel] | Iterable[DensityModel] | None, *, needed: bool
) -> dict[str, DensityModel]:
    """Return models by their names, the default one where none is given and none is needed."""
    from edp_bayes.models.default import model_or_default

    if models is None and needed:
        raise InvalidInputError("responses need models to compare: give models=[...]")
    named = _named([model_or_default(None)] if models is None else models, repr)
    for name, model in named.items():
        checked_model(model, f"model {name}")
    return named


def _fitted_scores(
    scales: Mapping[str, Responses],
    models: Mapping[str, DensityModel] | Iterable[DensityModel] | None,
    settings: SamplerSettings,
) -> dict[str, Any]:
    named = _models(models, needed=len(scales) < 2)
    found = {}
    for label, (responses, model) in _labelled(scales, named).items():
        scored = _scored(responses, named)
        fit = model.fit(scored.on_scale, settings).per_answer(scored.log_slope)
        found[label or next(iter(named))] = leave_one_out(fit.log_likelihood, fit.predictive)
    return found


def _scored(responses: Responses, models: Mapping[str, DensityModel]) -> Responses:
    """Return the responses, as continuous ones unless all models are of what was rounded.

    Probabilities of bins are not to be compared with densities at their middles.
    """
    if responses.step is None or all(models_rounding(one, responses) for one in models.values()):
        return responses
    return responses.replaced(step=None)


def _given_scores(
    scales: Mapping[str, Responses],
    models: Mapping[str, DensityModel] | Iterable[DensityModel] | None,
    adversaries: Mapping[str, Adversary | None],
    settings: SamplerSettings,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return scores by leaving one database out and log densities of the last third, each ahead."""
    if not isinstance(adversaries, Mapping) or not adversaries:
        raise InputTypeError(
            "adversaries must be a mapping of names, such as "
            f'{{"none": None, "past": Adversary(past=1)}}, found {adversaries!r}'
        )
    for name, adversary in adversaries.items():
        if adversary is not None and not isinstance(adversary, Adversary):
            raise InputTypeError(f"adversary {name} must be an Adversary or None: {adversary!r}")
    named = _models(models, needed=False)
    known_on = {
        scale: {
            str(name): (one or Adversary()).given(_scored(responses, named))
            for name, one in adversaries.items()
        }
        for scale, responses in scales.items()
    }
    count = min(known.position.size for found in known_on.values() for known in found.values())
    candidates = [
        (
            ", ".join([*[name] * (len(named) > 1), given, *[scale] * (len(scales) > 1)]),
            model,
            known.last(count).bare,
        )
        for name, model in named.items()
        for scale, found in known_on.items()
        for given, known in found.items()
    ]
    scores, ahead = {}, {}
    for label, model, known in track(
        candidates, "Comparing", total=len(candidates), show=settings.progressbar
    ):
        fit = fit_as_asked(model, Regression.of(known), replace(settings, progressbar=False))
        fit = fit.per_answer(known.log_slope)
        scores[label] = leave_one_out(fit.log_likelihood, fit.predictive)
        ahead[label] = one_step_ahead(model, known, settings)
    return scores, ahead


def one_step_ahead(
    model: DensityModel, known: Known[Responses], settings: SamplerSettings
) -> Array:
    """Return the log predictive density of each of the last third given those before it.

    Raises
    ------
    InvalidInputError
        If there are too few databases before.
    """
    n = known.position.size
    first = n - n // 3
    if first - len(known.regressors) < FEWEST_FREE or first == n:
        raise InvalidInputError(
            f"{n} databases are too few to predict the last third from those before, given "
            f"{len(known.regressors)} regressors"
        )
    y = known.responses.response_by_database
    few = replace(settings, draws=AHEAD[1], chains=AHEAD[0], progressbar=False)
    found = []
    for count in range(first, n):
        fit = fit_as_asked(model, Regression.of(known.before(count)), few)
        assert fit.in_question is not None
        at = y[count : count + 1]
        half = known.responses.half_step
        each = (
            log_densities(fit.in_question.next_response, at)
            if half is None
            else log_bin_densities(fit.in_question.next_response, at[0], half[count : count + 1])
        )
        found.append(float(logsumexp(each) - np.log(each.size) + known.log_slope[count]))
    return np.array(found)


def _ahead_table(ahead: Mapping[str, Array]) -> pd.DataFrame:
    import pandas as pd

    best = max(ahead.values(), key=lambda values: float(values.sum()))
    rows = {
        name: (values.sum(), _error(values), (best - values).sum(), _error(best - values))
        for name, values in ahead.items()
    }
    columns = ["ahead", "ahead_se", "ahead_diff", "ahead_dse"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _error(values: Array) -> float:
    return float(np.sqrt(values.size) * values.std())


def _audit_scores(
    audits: Mapping[str, Audit] | Iterable[Audit],
) -> tuple[dict[str, Any], dict[Hashable | None, Any]]:
    from edp_bayes.results.query import Audit

    def model_of(audit: Any) -> str:
        return str(audit.settings["model"]) if isinstance(audit, Audit) else repr(audit)

    if not isinstance(audits, Iterable):
        raise _neither(audits)
    named = _named(audits, model_of)
    for audit in named.values():
        if not isinstance(audit, Audit):
            raise _neither(audit)
    prints = {}
    for name, audit in named.items():
        record = audit.settings
        prints[name] = record.get("fingerprint_of_answers", record["fingerprint"])
        if record.get("scores", OF_ANSWERS) != OF_ANSWERS:
            raise InvalidInputError(
                f"audit {name} has no density of the answers: on the scale of transform "
                f"{record['transform']} it is not finite where an answer lies at its end"
            )
    if len(set(prints.values())) > 1:
        found = ", ".join(f"{name} of {value[:16]}" for name, value in prints.items())
        raise InvalidInputError(f"audits to compare must be of the same responses, found {found}")
    scores = {name: _audit_score(audit) for name, audit in named.items()}
    return scores, {"fingerprint": next(iter(prints.values()), "")}


def _audit_score(audit: Audit) -> Any:
    tree = audit.tree
    values = tree["log_likelihood"]["response"].transpose("chain", "draw", "database").to_numpy()
    if "log_predictive" not in tree.children:
        return leave_one_out(values)
    return leave_one_out(values, tree["log_predictive"]["response"].to_numpy())


def _neither(found: object) -> InputTypeError:
    return InputTypeError(f"responses or a list of audits are needed, found {type(found).__name__}")


def _named(items: Any, describe: Callable[[Any], str]) -> dict[str, Any]:
    if isinstance(items, Mapping):
        names = [str(name) for name in items]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"the names of models must differ as text, found {list(items)}")
        return dict(zip(names, items.values(), strict=True))
    if not isinstance(items, Iterable) or isinstance(items, str):
        raise InputTypeError(f"models must be a list or a mapping of names, found {items!r}")
    named: dict[str, Any] = {}
    for item in items:
        name = describe(item)
        if name in named:
            raise InvalidInputError(f"two models are {name}; give a mapping of names to tell them")
        named[name] = item
    return named


def _table(scores: Mapping[str, Any]) -> pd.DataFrame:
    import arviz_stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said in words of our own
        table: pd.DataFrame = arviz_stats.compare(dict(scores), round_to="none")
    pointwise = np.stack([np.asarray(scores[name].elpd_i) for name in table.index], axis=1)
    # ArviZ's weights, from a solver that neither underflows nor stops early.
    table["weight"] = stacking_weights(pointwise)
    table["doubtful"] = [doubtful(scores[name]) for name in table.index]
    table.index.name = "model"
    return table[list(COLUMNS)]
