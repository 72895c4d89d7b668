"""Whether the density model could have produced the responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.diagnostics.checks import Checks, PendingTest, decide
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.responses.responses import Responses

__all__ = ["PredictiveChecks", "posterior_predictive_check", "predictive_checks_of"]


MIN_REPLICATES = 100
ADJUSTED = "adjusted to the database in question"
ADVICE = "try another model or a transform of the responses"


@dataclass(frozen=True)
class PredictiveChecks(Checks):
    """Outcome of `posterior_predictive_check`: checks, level, passed, warnings and a table.

    See Also
    --------
    posterior_predictive_check : whether the model fits the responses
    DatabaseChecks : the outcome for the databases

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes import Mixture, Responses
    >>> y = np.random.default_rng(1).normal(size=40)
    >>> draws = Mixture(np.ones((200, 1)), 0.0, 1.0)
    >>> checks = posterior_predictive_check(draws, Responses.from_arrays(y, contribution=y), 1)
    >>> isinstance(checks, PredictiveChecks)
    True
    """


def posterior_predictive_check(
    mixture_draws: Mixture,
    responses: Responses,
    random_seed: int | np.random.SeedSequence | np.random.Generator | None = None,
    *,
    level: float = 0.05,
    advice: str = ADVICE,
    adjusted: bool = False,
) -> PredictiveChecks:
    """Compare the responses with replicates drawn from the posterior draws of their density.

    Each draw of the density makes one replicate of the same size. Standard deviation,
    skewness, minimum and maximum have two-sided p-values; the distance is the largest
    difference between a sample's distribution function and that of all replicates together,
    with a one-sided p-value. Predictive p-values are cautious: the model has seen the data. A
    randomised query enters with the first sample of each database. Where responses are rounded
    replicates are, too, each to the bins of its database.

    Parameters
    ----------
    mixture_draws : Mixture
        Draws of the density of the responses in leading axes, at least 100 of them, without
        the noise that a release adds.
    responses : Responses
        The responses the model was fitted to.
    random_seed : int, SeedSequence or Generator, optional
        Seed; the same one gives the same p-values.
    level : float
        Family-wise level, after Holm's correction.
    advice : str
        What helps where the model does not fit.
    adjusted : bool
        Whether the responses are those adjusted to the database in question of an adversary, which
        nobody observed.

    Returns
    -------
    PredictiveChecks
        One check a statistic.

    Raises
    ------
    InvalidInputError
        If there are fewer than 100 draws, or the mixture carries noise.

    See Also
    --------
    PredictiveChecks : the outcome for the model
    prior_sensitivity : how far the result follows the prior
    edp_bayes.compare : compare models by their predictions

    References
    ----------
    Gelman, Meng, Stern (1996), Posterior predictive assessment of model fitness via realized
    discrepancies, Statistica Sinica 6, 733-807.

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes import Mixture, Responses
    >>> y = np.random.default_rng(1).normal(size=40)
    >>> responses = Responses.from_arrays(y, contribution=0.1 * y)
    >>> good = Mixture(np.ones((200, 1)), 0.0, 1.0)
    >>> narrow = Mixture(np.ones((200, 1)), 0.0, 0.3)
    >>> [posterior_predictive_check(draws, responses, 1).passed for draws in (good, narrow)]
    [True, False]
    """
    level = validate.probability(level, "level")
    if mixture_draws.noise is not None:
        raise InvalidInputError(
            f"the mixture must be that of the responses alone, found {mixture_draws.noise}"
        )
    y = responses.response[:: responses.samples]
    rng = validate.generator(random_seed)
    replicates = replicates_of(mixture_draws, responses, rng).reshape(-1, y.size)
    return predictive_checks_of(y, replicates, level=level, advice=advice, adjusted=adjusted)


def replicates_of(mixture: Mixture, responses: Responses, rng: np.random.Generator) -> Array:
    """Return a replicate of every database's response, of every draw: shape (..., database).

    Of a randomised query it is one of its samples. Where responses are rounded so are replicates.
    """
    y = responses.response[:: responses.samples]
    replicates = np.asarray(mixture.sample(y.size, rng))
    if responses.half_step is None:
        return replicates
    width = 2.0 * responses.half_step
    return np.asarray(y + width * np.round((replicates - y) / width))


def predictive_checks_of(
    y: Array, replicates: Array, *, level: float, advice: str, adjusted: bool = False
) -> PredictiveChecks:
    """Compare values (n,) with replicates of them (draw, n)."""
    if replicates.shape[0] < MIN_REPLICATES:
        raise InvalidInputError(
            f"a predictive check needs at least {MIN_REPLICATES} draws of the density, found "
            f"{replicates.shape[0]}"
        )
    tests = [_two_sided(name, statistic, y, replicates) for name, statistic in STATISTICS.items()]
    said = f"The density model does not fit: {advice}."
    found = [replace(test, advice=said) for test in (*tests, _distance(y, replicates))]
    if adjusted:
        found = [
            replace(
                test,
                numbers=test.numbers.replace(" observed", f" {ADJUSTED}", 1),
                failure=test.failure.replace("responses", f"responses {ADJUSTED}", 1),
            )
            for test in found
        ]
    return PredictiveChecks(decide(found, level), level)


def skewness(samples: Array) -> Array:
    """Return the moment skewness along the last axis; zero where there is no spread."""
    centred = samples - samples.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1)
    third = (centred**3).mean(axis=-1)
    return np.divide(third, variance**1.5, out=np.zeros_like(third), where=variance > 0)


STATISTICS: dict[str, Callable[[Array], Array]] = {
    "standard deviation": lambda samples: np.std(samples, axis=-1, ddof=1),
    "skewness": skewness,
    "minimum": lambda samples: np.min(samples, axis=-1),
    "maximum": lambda samples: np.max(samples, axis=-1),
}


def _two_sided(
    name: str, statistic: Callable[[Array], Array], y: Array, replicates: Array
) -> PendingTest:
    observed = float(statistic(y[None])[0])
    replicated = statistic(replicates)
    above, below = (_share(hits) for hits in (replicated >= observed, replicated <= observed))
    low, high = np.quantile(replicated, [0.025, 0.975])
    return PendingTest(
        name,
        observed,
        min(1.0, 2 * min(above, below)),
        f"{observed:.3g} observed, 95% of replicates from {low:.3g} to {high:.3g}",
        f"The {name} of the responses is {'above' if above < below else 'below'} what the model "
        "expects",
    )


def _distance(y: Array, replicates: Array) -> PendingTest:
    """Return the test of the Kolmogorov-Smirnov distance to the pooled replicates."""
    pooled = np.sort(replicates, axis=None)
    observed = float(_to_pooled(y[None], pooled)[0])
    replicated = _to_pooled(replicates, pooled)
    return PendingTest(
        "distribution",
        observed,
        _share(replicated >= observed),
        f"distance {observed:.3g} observed, {np.median(replicated):.3g} in a typical replicate",
        "The responses are not distributed as the model expects",
    )


def _to_pooled(samples: Array, pooled: Array) -> Array:
    size = samples.shape[-1]
    level = np.searchsorted(pooled, np.sort(samples, axis=-1), side="right") / pooled.size
    steps = np.arange(size) / size
    gap = np.maximum(np.abs(level - steps), np.abs(level - steps - 1 / size))
    return np.asarray(gap.max(axis=-1))


def _share(hits: NDArray[np.bool_]) -> float:
    """Return the share of hits, counting the observed sample itself: never zero."""
    return float((hits.sum() + 1) / (hits.size + 1))
