"""Whether answers gather more narrowly than the density model shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.base import draw_count
from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.diagnostics.predictive import MIN_REPLICATES
from edp_bayes.distributions.kernel_estimates import MOST_ANSWERS, left_out_scores
from edp_bayes.distributions.mixtures import Mixture, flat_draws
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["check_detail"]

DETAIL = "detail"
MOST_TIMES = 3.0  # the pseudo-Bayes factor from which it fails
MOST_DRAWS = 500
ADVICE = (
    "Individuals may hide in less. Ask for more databases, and see whether components "
    "of one width give a larger limit: "
    "DirichletProcessMixture(base_measure=BaseMeasure(scale_shape=None))."
)


def check_detail(mixture_draws: Mixture, responses: Responses) -> Checks:
    """Compare how well the model and a kernel estimate predict each response from all others.

    A density that is too smooth predicts worse than a kernel estimate of a small bandwidth. Both
    leave out the response which they predict: the model by truncated importance weights of its
    draws, the kernel estimate by putting a kernel about each of all others. It is averaged over
    Gaussian and Laplace kernels of 24 bandwidths from 0.02 to 1 robust standard deviations, each as
    likely before the data are seen. The check fails where the pseudo-Bayes factor, the ratio of the
    products of all these predictive densities, is above 3.

    Equal responses do not predict each other: ties are no detail of a density. Nothing is compared
    where responses are rounded or counts, of several samples, or of more than 1,000 databases.
    Audits given what an adversary knows do not make this check: residuals were fitted, which
    favours a kernel estimate of them.

    Parameters
    ----------
    mixture_draws : Mixture
        Draws of the density of the responses in leading axes, without the noise that a release
        adds.
    responses : Responses
        The responses the model was fitted to.

    Returns
    -------
    Checks
        The check `detail`, where it fails; its statistic is the log of the pseudo-Bayes factor.

    See Also
    --------
    posterior_predictive_check : whether the model fits the responses
    edp_bayes.compare : compare models by their predictions
    withheld : why there is no verdict

    References
    ----------
    Geisser, Eddy (1979), A predictive approach to model selection, Journal of the American
    Statistical Association 74, 153-160. Ionides (2008), Truncated importance sampling, Journal of
    Computational and Graphical Statistics 17, 295-311.

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes import Mixture, Responses
    >>> rng = np.random.default_rng(1)
    >>> y = rng.integers(0, 6, 60) + 0.05 * rng.standard_normal(60)
    >>> responses = Responses.from_arrays(y, contribution=0.1 * np.ones(60))
    >>> smooth = Mixture(np.ones((200, 1)), 2.5, 1.7)
    >>> peaks = Mixture(np.full((200, 6), 1 / 6), np.arange(6.0), 0.05)
    >>> [len(check_detail(draws, responses).checks) for draws in (smooth, peaks)]
    [1, 0]
    """
    n = responses.n_databases
    compared = (
        responses.samples == 1
        and responses.half_step is None
        and n <= MOST_ANSWERS
        and draw_count(mixture_draws) >= MIN_REPLICATES
    )
    if not compared:
        return Checks((), 0.0)
    y = np.asarray(responses.response)
    factor = _of_kernels(y) - _left_out(mixture_draws, y)
    if factor <= np.log(MOST_TIMES):
        return Checks((), 0.0)
    times = f"{np.exp(factor):.2g}" if factor < np.log(1e6) else "more than a million"
    text = (
        "The responses gather more narrowly than the density model shows: a kernel estimate "
        f"predicts each from the others {times} times as well"
    )
    return Checks((threshold(DETAIL, float(factor), False, text, ADVICE),), 0.0)


def _of_kernels(y: Array) -> float:
    """Return the log score of kernel estimates left out, averaged over kernels and bandwidths."""
    scores = left_out_scores(y)
    return float(np.logaddexp.reduce(scores.ravel()) - np.log(scores.size))


def _left_out(mixture: Mixture, y: Array) -> float:
    """Return the log score of the model, each response left out."""
    log = np.asarray(_thinned(mixture).logpdf(y))
    weight = np.exp(log.min(axis=0) - log)
    weight = np.minimum(weight, weight.mean(axis=0) * np.sqrt(len(log)))
    top = log.max(axis=0)
    density = (weight * np.exp(log - top)).sum(axis=0) / weight.sum(axis=0)
    return float((np.log(density) + top).sum())


def _thinned(mixture: Mixture) -> Mixture:
    """Return at most 500 of the draws, evenly spaced, in one leading axis."""
    draws = flat_draws(mixture)
    some = draws[spread_evenly(len(draws), MOST_DRAWS)]
    weights, locations, scales = np.moveaxis(some, 1, 0)
    return Mixture(weights, locations, scales, kernel=mixture.kernel)
