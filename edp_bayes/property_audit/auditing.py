"""From counts of positives to privacy curves with bands: `edp.audit_property`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.property_audit.counts import PropertyCounts
from edp_bayes.property_audit.curves import TOLERANCE, Query
from edp_bayes.property_audit.models import (
    BetaBinomialModel,
    BinomialModel,
    ProbabilityDraws,
    ProbabilityModel,
)
from edp_bayes.property_audit.overdispersion import LEAST_DATABASES, compare
from edp_bayes.statistical_privacy.counts import noise_curves
from edp_bayes.statistical_privacy.mechanisms import Mechanism, parts
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import DRAWS, TUNE
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.results.property import PropertyAudit

__all__ = ["audit_property"]

Draws = NDArray[np.int64]


def audit_property(
    count: ArrayLike | Mapping[str, ArrayLike],
    n: ArrayLike,
    *,
    epsilon: ArrayLike,
    mechanism: Mechanism = None,
    known: int = 0,
    known_positive: int | None = None,
    released_n: int | None = None,
    model: ProbabilityModel | None = None,
    curve_draws: int | None = None,
    draws: int = DRAWS,
    tune: int = TUNE,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    sampler: str | None = None,
    cores: int | None = None,
    **sample_kwargs: Any,
) -> PropertyAudit:
    """Put posterior draws on the privacy curve of a property query whose pi is estimated.

    The query answers with the share of n entries that have a property; the adversary knows the
    probability pi, we do not. Counts from one or many databases give its posterior, and every
    draw of pi its exact curve delta(epsilon), of `edp_bayes.statistical_privacy.delta`.

    Parameters
    ----------
    count : array_like of int, or mapping from names to them
        Positives: a number for one database, shape (database,) for several, (database, property)
        for several properties, or a number or vector under the name of each property.
    n : array_like of int
        Entries of each database: a number, or shape (database,).
    epsilon : array_like
        Shape (epsilon,): increasing, not negative.
    mechanism, known, known_positive
        As for `edp_bayes.statistical_privacy.delta`.
    released_n : int, optional
        Entries of the database whose answer is released; the smallest n if not given.
    model : ProbabilityModel, optional
        ``BinomialModel()``, independent entries, ``BetaBinomialModel()``, exchangeable and
        dependent ones, or a PyMC model in `PyMCProbabilities`. If not given, both are fitted
        from five databases on and compared by PSIS-LOO; the beta-binomial one is reported where
        it predicts better by more than 1 in log density.
    curve_draws : int, optional
        Draws of all chains whose curves are computed one by one and kept, evenly thinned. If not
        given, all of them for independent entries; with noise, or known entries and subsampling,
        curves are then interpolated over pi, to a relative 1e-5, and 800 computed one by one
        where they are too rough. For dependent entries as many as cost little, at least 800.
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and the number of chains.
    random_seed : int, optional
        The same seed gives the same numbers, whatever the number of cores.
    progressbar : bool
        Show progress.
    sampler : {"nutpie", "pymc", "numpyro", "blackjax"}, optional
        Implementation of NUTS, which several properties need; see `edp_bayes.audit`.
    cores : int, optional
        Chains sampled at the same time.
    **sample_kwargs
        Further arguments of ``pymc.sample``.

    Returns
    -------
    PropertyAudit
        Draws of delta(epsilon), of the riskiest property if there are several, and of pi, with
        bands, a summary, plots and a file.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used; the message says what would be right.
    SamplingError
        If a chain was interrupted or is not finite.

    Warns
    -----
    EdpBayesWarning
        If entries are dependent, or draws have not converged; also kept in the result.

    See Also
    --------
    edp_bayes.PropertyAudit : the posterior of a property query
    PropertyCounts : how many entries have each property
    BinomialModel : independent entries
    edp_bayes.statistical_privacy.PropertyQuery : the share of entries with a property

    References
    ----------
    Breutigam and Reischuk, "Statistical Privacy", for the curve of a known pi.

    Examples
    --------
    >>> from edp_bayes.property_audit import audit_property
    >>> found = audit_property(103, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False)
    >>> found.delta.dims, found.prob.dims
    (('chain', 'draw', 'epsilon'), ('chain', 'draw', 'property'))
    >>> round(float(found.prob.median()), 2)
    0.1
    """
    from edp_bayes.property_audit.assembly import assemble

    counts = PropertyCounts(count, n)
    grid = validate.epsilon_grid(epsilon)
    if parts(mechanism)[1] is not None:
        noise_curves.check(grid)
    if model is not None and not isinstance(model, ProbabilityModel):
        raise InputTypeError(
            f"model must be a model of probabilities such as BinomialModel(), found {model!r}"
        )
    compared = model is None and counts.n_databases >= LEAST_DATABASES
    entries = (
        int(counts.n.min())
        if released_n is None
        else validate.positive_integer(released_n, "released_n")
    )
    query = Query(
        entries,
        mechanism,
        known,
        known_positive,
        dependent=compared or (model is not None and model.dependent),
    )
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
    wanted = None if curve_draws is None else _curve_draws(curve_draws, settings)
    fits, checks, found = _fit(counts, model, settings, compared)
    chosen = list(fits.values())[-1]
    kept, curves, error = _curves(query, chosen, grid, settings, wanted)
    result = assemble(
        counts=counts,
        draws=chosen,
        likelihoods={name: fit.log_likelihood for name, fit in fits.items()},
        kept=kept,
        curves=curves,
        epsilon=grid,
        checks=checks,
        warnings=found,
        record={
            "query": "the share with " + " or ".join(map(repr, counts.properties)),
            "databases": counts.n_databases,
            "individuals": entries,
            "properties": list(counts.properties),
            "mechanism": repr(mechanism),
            "known": int(known),
            "known_positive": None if known_positive is None else int(known_positive),
            "fingerprint": counts.fingerprint,
            **settings.record,
            "draws": int(kept.size),
            "draws_of_pi": settings.draws,
            "interpolation_error": error,
            **chosen.attributes,
        },
        query=query,
    )
    for sentence in result.warnings:
        warnings.warn(sentence, EdpBayesWarning, stacklevel=2)
    return result


def _fit(
    counts: PropertyCounts,
    model: ProbabilityModel | None,
    settings: SamplerSettings,
    compared: bool,
) -> tuple[dict[str, ProbabilityDraws], list[dict[str, Any]], list[str]]:
    """Return every fit, that to report last, and what the comparison says."""
    if model is not None:
        return {"count": model.fit(counts, settings)}, [], []
    independent = BinomialModel().fit(counts, settings)
    row: dict[str, Any] = {"check": "overdispersion", "statistic": None, "passed": None}
    if not compared:
        row["sentence"] = (
            f"Not tested: {counts.n_databases} database(s) are there, {LEAST_DATABASES} are "
            "needed. That entries are independent is an assumption."
        )
        return {"count": independent}, [row], []
    dependent = BetaBinomialModel().fit(counts, settings)
    found = compare(independent, dependent)
    row |= {
        "statistic": found.difference,
        "passed": not found.present,
        "sentence": found.sentence,
    }
    fits = {"binomial": independent, "beta_binomial": dependent}
    if found.present:
        return fits, [row], [found.sentence]
    return dict(reversed(fits.items())), [row], []


def _curves(
    query: Query,
    fit: ProbabilityDraws,
    epsilon: Array,
    settings: SamplerSettings,
    wanted: int | None,
) -> tuple[Draws, Array, float]:
    """Return kept draws, their delta (chain, draw, property, epsilon) and its relative error."""
    total = settings.chains * settings.draws
    if wanted is None and fit.concentration is None and query.is_smooth:
        everything = np.arange(settings.draws)
        found = [query.interpolated(pi.ravel(), epsilon) for pi in np.moveaxis(fit.prob, -1, 0)]
        error = max(error for _, error in found)
        if error <= TOLERANCE:
            return everything, _stacked([curve for curve, _ in found], settings.chains), error
    size = query.affordable(fit.concentration is not None, total) if wanted is None else wanted
    each = max(1, -(-size // settings.chains))
    kept = spread_evenly(settings.draws, each)
    curves = []
    for k in range(fit.prob.shape[-1]):
        strength = None if fit.concentration is None else fit.concentration[:, kept, k].ravel()
        pi = fit.prob[:, kept, k].ravel()
        curves.append(query.exact(pi, strength, epsilon, progressbar=settings.progressbar))
    return kept, _stacked(curves, settings.chains), 0.0


def _stacked(curves: list[Array], chains: int) -> Array:
    """Return the curves of all properties, (chain * draw, epsilon) each, as one array."""
    together = np.stack(curves, axis=1)
    return together.reshape(chains, -1, *together.shape[1:])


def _curve_draws(value: Any, settings: SamplerSettings) -> int:
    size = validate.positive_integer(value, "curve_draws")
    total = settings.chains * settings.draws
    if size > total:
        raise InvalidInputError(
            f"curve_draws must be at most chains x draws = {total}, found {size}"
        )
    return size
