"""The audit of draws that were made elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from edp_bayes.auditing.query import audit
from edp_bayes.exceptions import InputTypeError
from edp_bayes.models.base import NAMES
from edp_bayes.models.drawn import DrawnMixture, ToMixture
from edp_bayes.responses.responses import Responses

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["audit_trace"]


def audit_trace(
    draws: Any,
    responses: Responses,
    *,
    epsilon: ArrayLike,
    mixture: ToMixture = NAMES,
    kernel: str = "gaussian",
    contributions: tuple[str, str, str, str] | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Audit:
    """Audit a posterior of the response's distribution that was drawn elsewhere.

    By PyMC, NumPyro or Stan, and read by ArviZ. The distributions without each individual are
    those of every other audit: each draw is coupled to how the individual contributes.

    Parameters
    ----------
    draws : DataTree, InferenceData or Dataset
        With a group posterior of dims chain and draw, or that group itself; a group sample_stats
        with ``diverging`` is looked at, too.
    responses : Responses
        What the draws were fitted to.
    epsilon : array_like
        As for `edp_bayes.audit`.
    mixture : tuple of str, or callable
        Names of the variables that are weights, locations and scales, of one value for each
        component, in the units of the response; or a function that makes a `Mixture` of shape
        (chain, draw, component) of the posterior, a Dataset.
    kernel : {"gaussian", "laplace"}
        Family of every component, where names are given.
    contributions : tuple of str, optional
        Names of the variables of how individuals contribute: presence, intercept, slope and spread,
        as for `edp_bayes.PyMCMixture`. By default each draw is coupled to contributions known by
        empirical Bayes.
    random_seed : int, optional
        Of the contributions: the same seed gives the same numbers.
    progressbar : bool
        Show progress.
    **options
        More of `edp_bayes.audit`: individuals, keep, executor, exact_up_to, only_largest.

    Returns
    -------
    Audit
        With the group ``parameters``, every variable of the posterior.

    Raises
    ------
    InvalidInputError, InputTypeError
        If draws or responses cannot be used; the message says what would be right.

    Warns
    -----
    EdpBayesWarning
        As `edp_bayes.audit`; rounded answers are taken as continuous.

    See Also
    --------
    edp_bayes.models.PyMCMixture : a PyMC model of your own
    audit : audit a query

    Notes
    -----
    Draws whose ``observed_data`` has a ``response`` are refused if it is not that of `responses`.
    Otherwise they are taken at their word: whether they are of a posterior of these responses only
    the posterior predictive check can say.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 5))
    >>> y = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    >>> responses = edp.Responses.from_arrays(y, contribution=contribution)
    >>> sigma = np.sqrt(39 * y.var(ddof=1) / rng.chisquare(39, (4, 100)))
    >>> draws = xr.Dataset({  # of a normal response with the prior 1 / sigma^2
    ...     "mu": (("chain", "draw"), rng.normal(y.mean(), sigma / np.sqrt(40))),
    ...     "sigma": (("chain", "draw"), sigma),
    ... })
    >>> def normal(posterior):
    ...     mu, sigma = (posterior[name].to_numpy()[..., None] for name in ("mu", "sigma"))
    ...     return edp.Mixture(np.ones_like(mu), mu, sigma)
    >>> found = edp.audit_trace(
    ...     draws, responses, epsilon=[0.1], mixture=normal, random_seed=1, progressbar=False
    ... )
    >>> found.delta.sizes["draw"], sorted(found.tree["parameters"].data_vars)
    (100, ['mu', 'sigma'])
    """
    if not isinstance(responses, Responses):
        raise InputTypeError(
            f"responses must be Responses of one query, found {type(responses).__name__}"
        )
    model = DrawnMixture(draws, mixture, kernel, contributions)
    chains, size = model.shape
    return audit(
        responses,
        epsilon=epsilon,
        model=model,
        chains=chains,
        draws=size,
        random_seed=random_seed,
        progressbar=progressbar,
        **options,
    )
