"""Mixtures of multivariate normals in PyMC: the posterior of `edp_bayes.models.joint_gibbs`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.distributions.multivariate import Units
from edp_bayes.models.base_measure import NARROWEST, NONE
from edp_bayes.models.conditional import given_of
from edp_bayes.models.joint_gibbs import ByNuts, JointDraws, Weights, hyperparameters, within_ties
from edp_bayes.models.prior_draws import normal_mixture
from edp_bayes.models.sampling import sample_nuts

if TYPE_CHECKING:
    from edp_bayes.models.base_measure import BaseMeasure
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.priors import Priors
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["build_joint", "draw_joint_nuts"]

Array = NDArray[np.float64]


def build_joint(
    z: Array,
    base: BaseMeasure,
    weights: Weights,
    regression: JointRegression | None = None,
    *,
    at_least: float = 0.0,
    priors: Priors = NONE,
) -> Any:
    """Return the PyMC model of whitened responses (n, d), or of a regression's residuals.

    With Bartlett's triangle C of the inverse Wishart distribution a root of Sigma_k is
    F = sqrt(2 r_k) C'^-1, so that Sigma_k = F F'. Locations are non-centred. Priors take the place
    of those of the base measure and of the concentration or share.
    """
    import pymc as pm
    import pytensor.tensor as pt

    seen = z if regression is None else regression.residuals(*regression.mode)
    prior = hyperparameters(seen, base, weights, at_least=at_least)
    size, d = weights.components, z.shape[1]
    coords = {
        "component": np.arange(size),
        "database": np.arange(len(z)),
        "axis": np.arange(d),
        "other_axis": np.arange(d),
    }
    with pm.Model(coords=coords) as model:
        if weights.dirichlet > 0.0:
            even = np.full(size, weights.dirichlet)
            share = priors.add("share", partial(pm.Dirichlet, a=even), shape=size)
        else:
            alpha, beta = weights.concentration
            concentration = priors.add("concentration", partial(pm.Gamma, alpha=alpha, beta=beta))
            stick = pm.Beta("stick", 1.0, concentration, shape=size - 1)
            left = pt.concatenate([[1.0], pt.cumprod(1.0 - stick)])
            share = pt.concatenate([stick, [1.0]]) * left
        share = pm.Deterministic("weights", share, dims="component")
        normal = partial(pm.Normal, mu=0.0, sigma=np.sqrt(prior.centre_variance))
        centre = priors.add("centre", normal, shape=d)
        rate = priors.add("rate", partial(pm.Gamma, alpha=prior.rate_shape, beta=prior.rate_rate))
        alpha, beta = prior.precision_shape, prior.precision_rate
        precision = priors.add("precision", partial(pm.Gamma, alpha=alpha, beta=beta))
        own = pm.Gamma("scale", prior.scale_shape, 1.0, shape=size) / rate
        inner = _triangles("covariance", prior.degrees, size, d)
        eye = pt.eye(d)
        offset = pm.Normal("offset", 0.0, 1.0, shape=(size, d))
        roots, sharp, heights = [], [], []
        for k in range(size):
            scale = pt.sqrt(2.0 * own[k])
            sharp.append(inner[k].T / scale)  # F^-1
            roots.append(scale * pt.linalg.solve_triangular(inner[k], eye, lower=True).T)
            heights.append(pt.log(pt.diagonal(inner[k])).sum() - d * pt.log(scale))
        root, whiten = pt.stack(roots), pt.stack(sharp)
        # components narrower than the responses can show have next to no density
        pm.Potential(NARROWEST, -0.5 * prior.least * (whiten**2).sum())
        locations = pm.Deterministic(
            "locations", centre + offset / pt.sqrt(precision), dims=("component", "axis")
        )
        pm.Deterministic("roots", root, dims=("component", "axis", "other_axis"))
        away = _residuals(z, regression)[:, None, :] - locations
        u = (whiten[None] * away[:, :, None, :]).sum(axis=3)
        constant = -0.5 * d * np.log(2.0 * np.pi)
        logs = pt.log(share) + pt.stack(heights) + constant - 0.5 * (u**2).sum(axis=2)
        pm.Potential("response", pt.logsumexp(logs, axis=1).sum())
    return model


def _residuals(z: Array, regression: JointRegression | None) -> Any:
    """Add coefficients and growth to the current model; return the residuals (n, d)."""
    import pymc as pm
    import pytensor.tensor as pt

    if regression is None:
        return pt.as_tensor(z)
    size, d = regression.deviation.size, z.shape[1]
    left = pt.as_tensor(z)
    if size:
        deviation = np.repeat(regression.deviation[:, None], d, axis=1)
        beta = pm.Normal("coefficients", 0.0, deviation, shape=(size, d))
        left = left - pt.dot(pt.as_tensor(regression.design), beta)
    if not regression.scaled:
        return left
    gamma = pm.Normal("growth", 0.0, regression.growth_deviation)
    pm.Potential("jacobian", -d * gamma * regression.position.sum())
    return left * pt.exp(-gamma * pt.as_tensor(regression.position))[:, None]


def draw_joint_nuts(
    y: Array,
    units: Units,
    *,
    base: BaseMeasure,
    weights: Weights,
    settings: SamplerSettings,
    stream: str = "",
    regression: JointRegression | None = None,
    priors: Priors = NONE,
) -> JointDraws:
    """Draw by NUTS; as `edp_bayes.models.joint_gibbs.draw_joint`."""
    z, ties = units.whiten(y), within_ties(y, units)
    model = build_joint(z, base, weights, regression, at_least=ties, priors=priors)
    tree = sample_nuts(model, settings)
    posterior = tree["posterior"].to_dataset()

    def of(name: str) -> Array:
        return np.asarray(posterior[name].transpose("chain", "draw", ...).to_numpy())

    mixture = normal_mixture(posterior)
    empty = mixture.weights.shape[:2]
    concentration = of("concentration") if not weights.dirichlet else np.ones(empty)
    start = given_of(regression, *y.shape).start
    return JointDraws(
        mixture,
        concentration,
        of("rate"),
        of("precision"),
        of("coefficients") if start.size else np.empty((*empty, *start.shape)),
        of("growth") if "growth" in posterior else np.zeros(empty),
        ByNuts(model, tree),
    )


def _triangles(name: str, degrees: float, size: int, d: int) -> list[Any]:
    """Return one of Bartlett's lower triangles for each component."""
    import pymc as pm
    import pytensor.tensor as pt

    squares = pm.ChiSquared(f"{name}_squares", nu=degrees - np.arange(d), shape=(size, d))
    below = d * (d - 1) // 2
    normal = pm.Normal(f"{name}_normals", 0.0, 1.0, shape=(size, below)) if below else None
    rows, columns = np.tril_indices(d, -1)
    found = []
    for k in range(size):
        triangle = pt.diag(pt.sqrt(squares[k]))
        if normal is not None:
            triangle = pt.set_subtensor(triangle[rows, columns], normal[k])
        found.append(triangle)
    return found
