"""The smoothed bootstrap of several responses: a Gaussian kernel with a matrix bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.contributions.spells import responses_in_question
from edp_bayes.coupling.joint_shift import JointShiftCoupling
from edp_bayes.distributions.multivariate import NormalMixture, Units
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import DefaultKernel
from edp_bayes.models.log_prior import gather
from edp_bayes.models.smoothed_bootstrap import GRID, Bandwidth, invert
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.models.smoothed_bootstrap import SmoothedBootstrap
    from edp_bayes.responses.dependence import Dependence
    from edp_bayes.responses.joined import JointResponses

__all__ = ["bandwidth_of", "fit_joint_bootstrap"]


def fit_joint_bootstrap(
    model: SmoothedBootstrap,
    responses: JointResponses,
    dependence: Dependence,
    settings: SamplerSettings,
) -> FittedJoint:
    """Draw exactly: Dirichlet weights, and the bandwidth by inversion of its distribution.

    The bandwidth is h^2 times the sample covariance. As in one dimension log h is normal about the
    rule of thumb n^(-1 / (d + 4)), times the leave-one-out likelihood.
    """
    from scipy.stats import lognorm

    from edp_bayes.models.joint import FittedJoint, joined_chains

    if model.kernel != "gaussian" and not isinstance(model.kernel, DefaultKernel):
        raise InvalidInputError(
            "a joint audit takes Gaussian kernels, found kernel = 'laplace': a Laplace kernel has "
            "no matrix bandwidth; give SmoothedBootstrap(kernel='gaussian')"
        )
    if model.variable:
        raise InvalidInputError(
            "a joint audit takes one bandwidth for all databases, found variable=True: leave it out"
        )
    units, n, d = Units.of(responses.response), responses.n_databases, responses.n_queries
    z = units.whiten(responses.response)
    middle = n ** (-1.0 / (d + 4.0))
    known = bandwidth_of(z, middle, model.bandwidth_spread)
    shape = (settings.chains, settings.draws)
    weights, bandwidth = np.empty((*shape, n)), np.empty(shape)
    for chain in range(settings.chains):
        rng = settings.generator("weights", chain)
        weights[chain] = rng.dirichlet(np.ones(n), settings.draws)
        bandwidth[chain] = invert(known.grid, known.probability, rng.random(settings.draws))
    mixture = NormalMixture(
        weights,
        np.broadcast_to(z, (*shape, n, d)),
        (bandwidth**2)[..., None, None, None] * np.eye(d),
    )
    index = np.searchsorted(known.grid, bandwidth).clip(0, GRID - 1)
    jacobian = np.log(np.diagonal(units.factor)).sum()
    log_prior = lognorm.logpdf(bandwidth, model.bandwidth_spread, scale=middle)
    in_question = responses_in_question(responses)
    return FittedJoint(
        mixture=mixture.in_units(units),
        coupling=JointShiftCoupling(
            mixture=joined_chains(mixture),
            units=units,
            responses=in_question,
            revealed={one.individual: (one.databases, one.alone) for one in dependence.revealed},
            seed=settings.random_seed or 0,
        ),
        responses=in_question,
        dependence=dependence,
        log_likelihood=known.scores[index] - jacobian,
        predictive=known.predictive() - jacobian,
        log_prior=gather({"bandwidth": np.asarray(log_prior)}),
        attributes={"model": repr(model), "sampler": "exact", "kernel": "gaussian"},
        remedy="try a transform of the responses",
        pooled=False,
    )


def bandwidth_of(z: Array, middle: float, spread: float) -> Bandwidth:
    """Return what is known of h on a grid, from whitened responses (n, d)."""
    from scipy.special import logsumexp

    n, d = z.shape
    grid = middle * np.exp(np.linspace(-4.0 * spread, 4.0 * spread, GRID))
    squares = ((z[:, None] - z) ** 2).sum(axis=2)
    scores, others = np.empty((2, GRID, n))
    log_prior = -0.5 * (np.log(grid / middle) / spread) ** 2
    for g, h in enumerate(grid):
        logs = -0.5 * squares / h**2 - d * np.log(h) - 0.5 * d * np.log(2.0 * np.pi)
        np.fill_diagonal(logs, -np.inf)
        total = logsumexp(logs, axis=1)
        scores[g] = total - np.log(n - 1.0)
        # of all other databases, each also without this one
        with np.errstate(divide="ignore"):
            kept = np.log1p(-np.minimum(np.exp(logs - total[:, None]), 1.0 - 1e-16))
        np.fill_diagonal(kept, 0.0)
        left = total[:, None] + kept
        np.fill_diagonal(left, 0.0)
        others[g] = left.sum(axis=0) - (n - 1.0) * np.log(n - 2.0) + log_prior[g]
    posterior = scores.sum(axis=1) + log_prior
    posterior = np.exp(posterior - posterior.max())
    return Bandwidth(grid, posterior / posterior.sum(), scores, others)
